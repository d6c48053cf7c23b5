"""How often does the gate of a CI fail, and how often should it? Rules of `model-regression` on simulated pairs of runs.

    python benchmarks/studies/rules.py [--runs 1000] [--seed 0]

Prints three Markdown tables. The first: for each world, number of docs and true drop, how often the rule on the score
passes and fails. The second: how often the rule on the share that needs the whole image fails, of models that
differ in a known way. The third: how often `compare` says something of two models that are alike. Ends with status 1 where a
target is missed. Four worlds of the first:

- independent: every doc is right with the same chance, answers are drawn anew in each run.
- easy and hard: three of five docs are right with 0.95, the others with 0.325; answers drawn anew.
- clusters: four questions an image; images are easy or hard, and the luck of a run is shared by the questions of an
  image.
- deterministic: the new run repeats the old answers, but for the docs that the drop turns from right to wrong.

Runs exist only as arrays here: reading 2,000 files for each row would take a day. Everything from the arrays to the
verdict is the gate's own code; tests/gate/test_simulations.py checks that the command line says the same of the same
answers.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import parse
from benchmarks.studies.composition import asked, sampled
from lmms_patch.ask.kinds import KINDS
from lmms_patch.compare.formats import Task, numbers_of
from lmms_patch.gate import judge, limits, rules
from lmms_patch.gate.formats import Verdict
from lmms_patch.stats import paired
from lmms_patch.stats.composition import WHOLE, Composition, compose
from lmms_patch.stats.forms import MEAN
from lmms_patch.stats.intervals import UNSEEN, Sample
from lmms_patch.stats.resample import LEVEL, Estimate
from lmms_patch.stats.spatial import holm

Array = NDArray[np.float64]
WORLDS = ("independent", "easy and hard", "clusters", "deterministic")
SIZES = (150, 300, 1000)
DROPS = (0.0, 0.01, 0.02, 0.03, 0.05)
SCORE, BEST = 0.70, 0.60
"""How often the old model is right on the full image, and on the best cell."""
SHARE, SPREAD = 0.6, 0.25
"""Of easy docs; by how much they are easier than the mean."""
PER_IMAGE, LUCK = 4, 0.3
"""Questions an image, and the correlation of their luck in a run."""
DRAWS = 500
"""The gate itself draws 10,000, for small p-values. The ends of intervals need fewer: with 3,000, 0.3 % fewer builds fail at the margin."""
NO_CHANGE, INSIDE = 0.01, 0.025
"""Targets: how often a build may fail where nothing changed, and where the true drop is at most the margin."""


def counted(scores: Array) -> Array:
    """Return what a mean sums of each doc: its score, and 1; shape (docs, 2)."""
    return np.column_stack([scores, np.ones(len(scores))])


@dataclass(frozen=True)
class Answers:
    """What a model answers: 0 or 1 for each doc, on the full image and on its best cell; shape (docs,) each."""

    full: Array
    best: Array


@dataclass(frozen=True)
class Pair:
    """Two runs on the same docs; ``clusters`` of shape (docs,), None where docs are independent."""

    old: Answers
    new: Answers
    clusters: NDArray[np.intp] | None


def pair(world: str, docs: int, drop: float, stream: np.random.Generator) -> Pair:
    """Return two runs whose expected scores differ by ``drop``, on the full image and on the best cell."""
    images = np.arange(docs) // PER_IMAGE
    unit = images if world == "clusters" else np.arange(docs)
    if world in ("easy and hard", "clusters"):
        easy = stream.random(int(unit.max()) + 1)[unit] < SHARE
        shift = np.where(easy, SPREAD, -SPREAD * SHARE / (1 - SHARE))
    else:
        shift = np.zeros(docs)

    def drawn(mean: float) -> Array:
        luck = stream.standard_normal(docs)
        if world == "clusters":
            luck = math.sqrt(LUCK) * stream.standard_normal(int(images.max()) + 1)[images] + math.sqrt(1 - LUCK) * luck
        return (_below(luck) < mean + shift).astype(float)

    old = Answers(drawn(SCORE), drawn(BEST))
    if world == "deterministic":
        new = Answers(
            *(right * (stream.random(docs) >= drop / mean) for right, mean in ((old.full, SCORE), (old.best, BEST)))
        )
    else:
        new = Answers(drawn(SCORE - drop), drawn(BEST - drop))
    return Pair(old, new, images if world == "clusters" else None)


def _below(normal: Array) -> Array:
    """Return the standard normal distribution function."""
    from scipy.special import ndtr

    return np.asarray(ndtr(normal))


# --- the gate, without files ------------------------------------------------------------------------


def unseen(scores: int) -> Array:
    """Return the rows that an unseen doc may have: every way to be right or wrong in each of its scores, and a one."""
    return np.array([[*right, 1.0] for right in itertools.product((0.0, 1.0), repeat=scores)])


class Side:
    """A finished run of one task, as far as the gate reads it (``gate.sides.Subject``)."""

    label, model, sampled = "toy_rci2", "toy", False

    def __init__(self, answers: Answers, clusters: NDArray[np.intp] | None) -> None:
        self.answers, self.clusters = answers, clusters
        self.result = SimpleNamespace(
            docs=len(answers.full),
            base="toy",
            metric="acc",
            fingerprint={},
            run=SimpleNamespace(path="toy"),
            kind=KINDS["rci"],
            grids=[2],
            about=SimpleNamespace(settings=SimpleNamespace(signed=False, scale=None)),
            analysis=SimpleNamespace(form="mean", ceiling=1.0, sets={}, failed=None, asked=None),
        )

    @cached_property
    def numbers(self) -> dict[str, Estimate]:
        """The score, with the interval of a run."""
        sample = Sample(counted(self.answers.full), self.clusters, draws=DRAWS)
        score = sample.estimate(lambda s: s[..., 0] / s[..., 1], unseen(1), unseen=UNSEEN)
        return {"score": score, "fip": score}

    def unjudged(self, name: str) -> int:
        """Return how many docs have no verdict of a judge."""
        return 0


class Before:
    """The baseline of a run (``gate.sides.Baseline``)."""

    def __init__(self, old: Side, new: Side) -> None:
        self.old, self.new, self.known = old, new, dict[float, Task]()

    def partner(self, one: Side) -> Side:
        """Return the run that another is set against."""
        return self.old

    def compared(self, one: Side, level: float = LEVEL) -> Task:
        """Return the paired differences, as ``paired.compare`` makes them of logs."""
        if level not in self.known:
            self.known[level] = self._compared(level)
        return self.known[level]

    def _compared(self, level: float) -> Task:
        sides, clusters = (self.old.answers, self.new.answers), self.new.clusters
        differences = paired.differences(
            MEAN,
            {"full": (counted(sides[0].full), counted(sides[1].full))},
            {"fip": paired.Number(("full",))},
            clusters,
            draws=DRAWS,
            level=level,
        )
        groups = None if clusters is None else int(clusters.max()) + 1
        test = paired.mcnemar(sides[0].full, sides[1].full)
        return Task(
            first="toy_rci2",
            second="toy_rci2",
            metric="acc",
            docs=len(sides[0].full),
            only_first=(),
            only_second=(),
            unscored=0,
            mcnemar=test,
            settings=(),
            warnings=(),
            base="toy",
            kind="rci",
            index="rci",
            higher=True,
            clusters=groups,
            draws=DRAWS,
            identical=False,
            numbers=numbers_of(differences, "fip"),
        )


@cache
def shipped() -> rules.Rules:
    """Return the rules of `model-regression`."""
    return rules.read("model-regression")


def verdict(two: Pair, found: rules.Rules | None = None) -> Verdict:
    """Return the verdict of a rule on the score (by default the shipped one) on two runs."""
    old, new = (Side(answers, two.clusters) for answers in (two.old, two.new))
    before: Any = Before(old, new)
    asked_of: Any = new
    (rule,) = (one for one in (found or shipped()).rules if one.metric == "fip")
    (made,) = judge.verdicts([judge.Check(rule, asked_of, "fip", (-(rule.max_drop or 0), rule.max_rise), before)])
    return made


# --- the study --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The verdicts on the score of many builds of one kind: how many of ``runs`` end in each."""

    world: str
    docs: int
    drop: float
    runs: int
    score: Counter[str]

    @property
    def failed(self) -> int:
        """How many builds fail."""
        return self.score["fail"]

    @property
    def target(self) -> float | None:
        """The largest allowed share of failed builds; None where the drop is beyond the margin."""
        return NO_CHANGE if not self.drop else INSIDE if self.drop <= 0.02 else None

    @property
    def missed(self) -> bool:
        """Whether the target is missed by more than two standard errors of the simulation.

        Identical runs must all pass.
        """
        if self.world == "deterministic" and not self.drop:
            return {*self.score} != {"pass"}
        if self.target is None:
            return False
        return self.failed / self.runs > self.target + 2 * math.sqrt(self.target * (1 - self.target) / self.runs)


def study(
    runs: int,
    seed: int = 0,
    worlds: Sequence[str] = WORLDS,
    sizes: Sequence[int] = SIZES,
    drops: Sequence[float] = DROPS,
) -> Iterator[Row]:
    """Yield one row for each world, number of docs and drop."""
    for world in worlds:
        for docs in sizes:
            for drop in drops:
                score = Counter[str]()
                for run in range(runs):
                    stream = np.random.default_rng([seed, WORLDS.index(world), docs, round(1000 * drop), run])
                    score[verdict(pair(world, docs, drop, stream)).verdict] += 1
                yield Row(world, docs, drop, runs, score)


def line(row: Row) -> str:
    """Return a row of the table, in percent of builds."""

    def share(count: int) -> str:
        return f"{100 * count / row.runs:.1f}"

    target = "" if row.target is None else f"{100 * row.target:g}"
    missed = " **missed**" if row.missed else ""
    cells = [
        row.world,
        f"{row.docs:,}",
        f"{100 * row.drop:g}",
        *(share(row.score[call]) for call in ("pass", "inconclusive")),
    ]
    return " | ".join(["", *cells, share(row.failed) + missed, target, ""]).strip()


SHARES: dict[str, tuple[tuple[float, ...], dict[str, Any], float | None]] = {
    "nothing changed": ((0.2, 0.2, 0.4, 0.2), {}, NO_CHANGE),
    "it abstains where it guessed": ((0.2, 0.2, 0.4, 0.2), {"own": "silent"}, NO_CHANGE),
    "one cell is enough for .1 more": ((0.2, 0.3, 0.4, 0.1), {}, NO_CHANGE),
    ".05 fewer need the whole image (the margin)": ((0.2, 0.2, 0.35, 0.25), {}, INSIDE),
    ".2 fewer, by text in its place": ((0.4, 0.2, 0.2, 0.2), {}, None),
    ".2 fewer, not solved": ((0.2, 0.2, 0.2, 0.4), {}, None),
}
"""What a new model solves: by text, one cell, the whole image, and not at all; how it answers; and how many builds may fail."""


def shares(runs: int, docs: int, seed: int = 0) -> Iterator[tuple[str, float, float, bool]]:
    """Yield for each new model how often the rule on the share of the whole image fails and passes, and whether a target is missed."""
    (rule,) = (one for one in shipped().rules if one.metric == "whole?")
    for what, (mix, world, most) in SHARES.items():
        calls = Counter[str]()
        for run in range(runs):
            made = [
                compose(*sampled(*asked(np.random.default_rng([seed, 11, run]), *of, docs=docs, **how)), seed=run)
                for of, how in (((SHARES["nothing changed"][0],), {}), ((mix,), world))
            ]
            old, new = (one.shares[WHOLE] for one in made if isinstance(one, Composition))
            change = paired.unpaired(old, new, level=rule.level).estimate
            calls[limits.judged(change, (-rule.margin, None))[0]] += 1
        failed = calls["fail"] / runs
        missed = most is not None and failed > most + 2 * math.sqrt(most * (1 - most) / runs)
        yield what, failed, calls["pass"] / runs, missed


def said_of_alike(world: str, docs: int, runs: int, seed: int = 0) -> tuple[float, float, float]:
    """Return how often `compare` says something of two models that are alike, of one task on two grids.

    Returns:
        Shares of the comparisons: of the primary number, of any of the six others by Holm's correction, of any of them
            without.
    """
    said = np.zeros(3)
    for run in range(runs):
        stream = np.random.default_rng([seed, 9, WORLDS.index(world), docs, run])
        one, other = pair(world, docs, 0.0, stream), pair(world, docs, 0.0, stream)
        finer = [
            1 - (1 - side.best) * (1 - more) for side, more in ((one.old, other.old.best), (one.new, other.new.best))
        ]
        sets = {"full": (one.old.full, one.new.full), "best2": (one.old.best, one.new.best), "best3": tuple(finer)}
        of = {"mpp": lambda f, b: b, "rci": lambda f, b: 1 - b / f, "gap": lambda f, b: f - b}
        numbers = {
            f"{name}{n}": paired.Number(("full", f"best{n}"), number) for n in (2, 3) for name, number in of.items()
        }
        rows = {name: (counted(first), counted(second)) for name, (first, second) in sets.items()}
        found = paired.differences(MEAN, rows, {"fip2": paired.Number(("full",)), **numbers}, one.clusters, draws=2_000)
        p = {name: 1.0 if difference.p is None else difference.p for name, difference in found.items()}
        others = np.array([value for name, value in p.items() if name != "fip2"])
        said += [p["fip2"] <= 1 - LEVEL, bool((holm(others) <= 1 - LEVEL).any()), bool((others <= 1 - LEVEL).any())]
    primary, corrected, bare = (said / runs).tolist()
    return primary, corrected, bare


def main() -> int:
    """Print the tables; the exit status is 1 where a target is missed."""
    parser = argparse.ArgumentParser(description="False alarms and power of the rules of a CI.")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--world", choices=WORLDS, nargs="*", default=WORLDS)
    given = parse(parser, runs=2)
    start, missed, failed = time.process_time(), 0, Counter[float]()
    print("| answers | docs | true drop, points | passes, % | undecided | fails | at most |")
    print("|---|---|---|---|---|---|---|")
    for row in study(given.runs, given.seed, given.world):
        missed += row.missed
        failed[row.drop] += row.failed
        assert row.drop or row.world != "deterministic" or not row.missed, "two identical runs must pass"
        print(line(row), flush=True)
    assert failed[DROPS[-1]] > failed[DROPS[0]], f"the largest drop fails most: {failed}"
    print("\n| the new model | docs | fails, % | passes |")
    print("|---|---|---|---|")
    for docs in (300, 1000):
        for what, fails, passes, off in shares(max(2, given.runs // 5), docs, given.seed):
            missed += off
            print(f"| {what} | {docs:,} | {100 * fails:.1f}{' **missed**' * off} | {100 * passes:.1f} |", flush=True)
    print("\n| answers | docs | the primary number differs | any of six others | without correction |")
    print("|---|---|---|---|---|")
    for world, docs in ((world, docs) for world in given.world if world != "deterministic" for docs in (200, 1000)):
        print(
            f"| {world} | {docs:,} | {' | '.join(f'{100 * one:.1f}' for one in said_of_alike(world, docs, given.runs, given.seed))} |",
            flush=True,
        )
    print(
        f"\n{given.runs} builds a row, {time.process_time() - start:.0f} processor seconds, {missed} targets missed.",
        file=sys.stderr,
    )
    return int(missed > 0 and not given.tiny)


if __name__ == "__main__":
    raise SystemExit(main())
