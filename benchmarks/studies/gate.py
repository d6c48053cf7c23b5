"""Does the gate stop models that know nothing, and let through those that look?

    python benchmarks/studies/gate.py [--runs 1000] [--large-runs 300] [--processes 2]

Made-up answers go the way of a run: plan, records, analysis (2×2 grid). A model "passes" where the gate of its index is
valid. Prints one Markdown table; ends with status 1 where a target is missed: at most 2.5 % of those that know nothing
pass, and at least 95 % of those that are right 10 points above chance and look. Rows without a target show what the
gate cannot do: without a measured null and without a blind run it lets text priors through (the analysis says so, and
such a run is not ranked), and a model that is right as often as the floor by other answers than the floor's is only
held to the level of two standard errors.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import parse, workers
from lmms_patch.ask.answers import Asked
from lmms_patch.ask.kinds import KINDS, RCI
from lmms_patch.ask.references import Doc, plan
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.views import View, swapped, views_of
from lmms_patch.rci.analysis import analyse
from lmms_patch.runs.details import Settings
from lmms_patch.runs.frames import Doc as Rows
from lmms_patch.runs.frames import frame_of, shown
from lmms_patch.runs.numbers import Analysis
from lmms_patch.runs.tables import Table
from lmms_patch.stats.resample import Array

Ints = NDArray[np.intp]
Stream = np.random.Generator

METRIC, GRID, NULL, DRAWS = "acc", 2, 300, 400
SIZES = (60, 200, 1000)
KNOWS_NOTHING, LOOKS = 0.025, 0.95
"""Targets: at most so many pass, at least so many pass."""
SHARED = 0.5
"""Share of the docs of a cluster that take its gold, and its answers."""
LETTERS, SIZE = "ABCDEFGHIJ", {"width": 640, "height": 480}
STARTS = [
    f"{first} {second}"
    for first in ("how", "what", "where", "who", "which", "why")
    for second in ("is", "are", "was", "can", "did")
]


@dataclass(frozen=True)
class Golds:
    """A benchmark.

    Attributes:
        name: said in the table.
        shares: of each type of question, the share of each gold.
        sizes: docs of a cluster: 1, 4, or ``uneven`` (some clusters far larger than others).
    """

    name: str
    shares: tuple[tuple[float, ...], ...]
    sizes: int | str = 1

    def clusters(self, docs: int) -> Ints | None:
        """Cluster numbers of docs; None where each is its own."""
        if self.sizes == 1:
            return None
        if isinstance(self.sizes, int):
            return np.arange(docs) // self.sizes
        count = docs // 3
        shares = np.arange(1, count + 1) ** -0.7
        ends = np.floor(np.cumsum(shares) / shares.sum() * docs + 1e-9)
        return np.searchsorted(ends, np.arange(docs), side="right").clip(max=count - 1)


EVEN = Golds("4 options, even", ((0.25,) * 4,))
UNEVEN = Golds("4 options, one has 0.4", ((0.4, 0.2, 0.2, 0.2),))
MANY = Golds("4 options, even, 30 types", ((0.25,) * 4,) * 30)
TYPES = Golds("yes/no, 0.8 in one type, 0.2 in the other", ((0.8, 0.2), (0.2, 0.8)))
CLUSTERS = Golds("yes/no, clusters of 4", ((0.5, 0.5),), 4)
POWER = Golds("4 options, uneven clusters", ((0.25,) * 4,), "uneven")


@dataclass(frozen=True)
class Made:
    """One sample: kinds and golds of docs, answers on own views and on those of a wrong picture (numbers), answers to the text alone."""

    kinds: Ints
    golds: Ints
    seen: Ints
    wrong: Ints
    blind: Ints
    clusters: Ints | None


Model = Callable[[Stream, Golds, Ints, Ints, Ints | None, int], tuple[Ints, Ints, Ints]]
"""From a stream, the benchmark, kinds, golds, clusters and number of views to ``seen``, ``wrong`` and ``blind``."""


def drawn(stream: Stream, shares: Array, clusters: Ints | None) -> Ints:
    """Draw one answer for each doc, each answer as often as the doc's row of ``shares`` says.

    Within a cluster, a share ``SHARED`` of the docs uses one common random number, so their answers depend on each other.
    """
    u = stream.random(len(shares))
    if clusters is not None:
        common = stream.random(int(clusters.max()) + 1)[clusters]
        u = np.where(stream.random(len(shares)) < SHARED, common, u)
    return (u[:, None] > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)


def guesses(of: str) -> Model:
    """A model that guesses on every view: ``evenly``, or as often as each gold of the type ``comes``."""

    def model(
        stream: Stream, golds: Golds, kinds: Ints, _: Ints, clusters: Ints | None, views: int
    ) -> tuple[Ints, Ints, Ints]:
        shares = np.asarray(golds.shares)[kinds]
        shares = shares if of == "comes" else np.full_like(shares, 1 / shares.shape[1])
        made = np.column_stack([drawn(stream, shares, clusters) for _ in range(2 * views + 1)])
        return made[:, :views], made[:, views : 2 * views], made[:, -1]

    return model


def constant(of: str) -> Model:
    """A model that always says one thing: the most frequent ``letter``, or the most frequent gold of the ``type`` (``of the same docs``)."""

    def model(
        stream: Stream, golds: Golds, kinds: Ints, right: Ints, clusters: Ints | None, views: int
    ) -> tuple[Ints, Ints, Ints]:
        count, shares = len(golds.shares[0]), np.asarray(golds.shares)
        by_kind = np.array([np.bincount(right[kinds == kind], minlength=count).argmax() for kind in range(len(shares))])
        answer = {
            "letter": np.full(len(right), shares.mean(axis=0).argmax()),
            "type": shares.argmax(axis=1)[kinds],
            "type, of the same docs": by_kind[kinds],
        }[of]
        whole = np.repeat(answer[:, None], views, axis=1)
        return whole, whole, answer

    return model


def text(share: float, *, anew: bool = False, image: float = 0.0) -> Model:
    """A model with text priors.

    Args:
        share: of the docs that the question alone answers rightly.
        anew: whether that is drawn anew for each view (a model that samples).
        image: share of the other docs that the full image answers.
    """

    def model(
        stream: Stream, golds: Golds, kinds: Ints, right: Ints, clusters: Ints | None, views: int
    ) -> tuple[Ints, Ints, Ints]:
        count, total = len(golds.shares[0]), 2 * views + 1
        false = (right + stream.integers(1, count, len(right))) % count
        solved = np.column_stack(
            [drawn(stream, np.tile([1 - share, share], (len(right), 1)), clusters) for _ in range(total if anew else 1)]
        )
        made = np.where(np.broadcast_to(solved, (len(right), total)) == 1, right[:, None], false[:, None])
        seen, wrong, blind = made[:, :views].copy(), made[:, views : 2 * views], made[:, -1]
        seen[:, 0] = np.where(stream.random(len(right)) < image, right, seen[:, 0])
        return seen, wrong, blind

    return model


def looks(above: float, *, repeats: bool = False) -> Model:
    """A model that guesses evenly, and knows so much from the full image that it is ``above`` chance.

    ``repeats``: it guesses once a doc.
    """

    def model(
        stream: Stream, golds: Golds, kinds: Ints, right: Ints, clusters: Ints | None, views: int
    ) -> tuple[Ints, Ints, Ints]:
        seen, wrong, blind = guesses("evenly")(stream, golds, kinds, right, clusters, views)
        if repeats:
            seen, wrong = np.repeat(blind[:, None], views, axis=1), np.repeat(blind[:, None], views, axis=1)
        knows = stream.random(len(right)) < above / (1 - 1 / len(golds.shares[0]))
        seen[:, 0] = np.where(knows, right, seen[:, 0])
        return seen, wrong, blind

    return model


def as_the_floor(
    stream: Stream, golds: Golds, kinds: Ints, right: Ints, clusters: Ints | None, views: int
) -> tuple[Ints, Ints, Ints]:
    """A model that is right as often as the best constant answer, on other docs, from the full image."""
    seen, wrong, blind = guesses("evenly")(stream, golds, kinds, right, clusters, views)
    share = float(np.max(golds.shares, axis=1).mean())
    false = (right + 1) % len(golds.shares[0])
    seen[:, 0] = np.where(stream.random(len(right)) < share, right, false)
    return seen, wrong, blind


def sample(stream: Stream, golds: Golds, model: Model, docs: int, grid: int = GRID) -> Made:
    """Draw docs of a benchmark and a model's answers to them, on the full image and the cells of a ``grid`` × ``grid``."""
    clusters = golds.clusters(docs)
    kinds = stream.integers(0, len(golds.shares), docs)
    right = drawn(stream, np.asarray(golds.shares)[kinds], clusters)
    return Made(kinds, right, *model(stream, golds, kinds, right, clusters, 1 + grid**2), clusters)


def analysed(made: Made, options: int, null: int, blind: bool, seed: int) -> Analysis:
    """The numbers of a run with these answers.

    Args:
        made: the answers.
        options: number of answers.
        null: docs asked on a wrong picture.
        blind: whether a blind run is at hand.
        seed: of plan and draws.
    """
    docs = list(docs_of(made, options, null, seed))
    table = Table(frame_of(docs, [METRIC]), METRIC, kind=RCI)
    known = dict(enumerate((made.blind == made.golds).astype(float).tolist())) if blind else {}
    return analyse(table, Mean(table, GRID), Settings(draws=DRAWS, seed=seed), [GRID], known)


def docs_of(made: Made, options: int, null: int, seed: int) -> Iterator[Rows]:
    """The docs of a run with these answers; arguments as of ``analysed``."""
    grid = math.isqrt(made.seen.shape[1] - 1)
    spec = WrapSpec("made_up", KINDS["rci"], (grid,))
    names = ("yes", "no") if options == 2 else tuple(LETTERS[:options])
    choices = () if options == 2 else tuple(f"item {name}" for name in names)
    units = [None] * len(made.golds) if made.clusters is None else made.clusters.tolist()
    docs = [
        Doc(i, Asked("", names[gold], choices), f"{STARTS[kind]} things?", unit)
        for i, (gold, kind, unit) in enumerate(zip(made.golds.tolist(), made.kinds.tolist(), units, strict=True))
    ]
    by = plan(docs, seed=seed)
    numbers = {name: k for k, name in enumerate(names)}
    asked = np.arange(len(docs)) < null  # docs come in no order
    if made.clusters is not None and null:
        asked = made.clusters <= made.clusters[min(null, len(docs)) - 1]
    own = views_of(spec)
    other = swapped(own)
    for i, (gold, seen, wrong) in enumerate(
        zip(made.golds.tolist(), made.seen.tolist(), made.wrong.tolist(), strict=True)
    ):
        answer = by.answers[i]
        best = 1 + _best(seen[1:], gold)
        rows = _rows(i, own, seen, gold) + (_rows(i, other, wrong, gold) if asked[i] else [])
        for at, row in enumerate(rows):
            row |= {"view": at} | ({"best": True} if at == best else {})
            if at >= len(own):
                row |= {"wrong_from": (i + 1) % len(docs)}
        rows[0] |= {
            "cluster": units[i],
            "choices": len(answer.options),
            "label": answer.label,
            "gold": answer.gold,
            "stratum": by.strata[i],
            "shown": [SIZE],
            "references": [
                {"answer": said, "roles": list(roles), "metric": METRIC, "score": float(numbers.get(said, -1) == gold)}
                for said, roles in by.baselines[i].items()
            ],
        }
        yield Rows(rows, [{} for _ in rows], [])


def _rows(doc_id: int, views: Sequence[View], said: Sequence[int], gold: int) -> list[dict[str, Any]]:
    return [
        {"doc_id": doc_id, **shown(view), "score": float(one == gold)} for view, one in zip(views, said, strict=True)
    ]


def _best(said: Sequence[int], gold: int) -> int:
    """The first right cell, else the first."""
    return said.index(gold) if gold in said else 0


class Mean:
    """A native aggregation that is a mean, as a run hands it to the statistics (``draws.Native``)."""

    form = None
    no_calls = ""

    def __init__(self, table: Table, grid: int) -> None:
        self.full = float(table.full.scores.mean())
        self.best = float(table.best_seen(grid).scores.mean())

    def whole(self) -> float:
        return self.full

    def over_cells(self, _: Any) -> tuple[float, float, str]:
        return self.full, self.best, ""

    def aggregate(self, items: list[Any]) -> float | None:
        return float(np.mean(items)) if items else None


# --- rows of the table ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A model on a benchmark.

    Attributes:
        golds, model: the two.
        name: of the model, said in the table.
        target: most that may pass, or least that must; None: shown only.
        null, blind: docs asked on a wrong picture, and whether a blind run is at hand.
        sizes: numbers of docs.
    """

    golds: Golds
    model: Model
    name: str
    target: tuple[float, float] | None = (0.0, KNOWS_NOTHING)
    null: int = NULL
    blind: bool = False
    sizes: tuple[int, ...] = SIZES


MUST_PASS = (LOOKS, 1.0)
ROWS = [
    *(
        Row(golds, guesses("comes"), "guesses as often as each gold comes")
        for golds in (EVEN, UNEVEN, MANY, TYPES, CLUSTERS, POWER)
    ),
    *(
        Row(golds, guesses("comes"), "the same, no wrong pictures", None, 0)
        for golds in (UNEVEN, MANY, TYPES, CLUSTERS, POWER)
    ),
    *(
        Row(golds, constant("letter"), "always the most frequent letter", null=null)
        for golds in (UNEVEN, MANY)
        for null in (NULL, 0)
    ),
    *(
        Row(golds, constant("type"), "the most frequent gold of the type", null=null)
        for golds in (MANY, TYPES)
        for null in (NULL, 0)
    ),
    Row(MANY, constant("type, of the same docs"), "the most frequent gold of the type, counted on these very docs"),
    Row(MANY, constant("type, of the same docs"), "the same, no wrong pictures", None, 0),
    *(Row(golds, text(0.6), "the text answers 0.6, the same on every view") for golds in (EVEN, MANY, POWER)),
    *(
        Row(golds, text(0.6, anew=True), "the text answers 0.6, drawn anew on every view")
        for golds in (EVEN, MANY, POWER)
    ),
    Row(EVEN, text(0.6), "the text answers 0.6, the same in a blind run", null=0, blind=True),
    Row(EVEN, text(0.6, anew=True), "the text answers 0.6, anew in a blind run", null=0, blind=True),
    Row(POWER, text(0.6, anew=True), "the text answers 0.6, anew in a blind run", null=0, blind=True),
    Row(EVEN, text(0.6), "the text answers 0.6, neither wrong pictures nor a blind run", None, 0),
    *(Row(golds, as_the_floor, "as often right as the floor, on other docs", None) for golds in (UNEVEN, TYPES)),
    Row(MANY, looks(0.1, repeats=True), "10 points above chance, one guess a doc", MUST_PASS, sizes=(1000,)),
    Row(MANY, looks(0.1), "10 points above chance, guesses anew on every view", MUST_PASS, sizes=(1000,)),
    Row(MANY, looks(0.1), "the same, no wrong pictures", MUST_PASS, 0, sizes=(1000,)),
    Row(EVEN, looks(0.1), "10 points above chance, guesses anew on every view", None),
    Row(EVEN, text(0.6, image=0.125), "the text answers 0.6, the image 5 points more", None),
    Row(EVEN, text(0.6, image=0.25), "the text answers 0.6, the image 10 points more", None),
]


def passes(place: int, docs: int, runs: int, seed: int) -> float:
    """Return in which share of ``runs`` samples of a row the gate lets the model pass."""
    row, found = ROWS[place], []
    for run in range(runs):
        stream = np.random.default_rng([seed, place, docs, run])
        made = sample(stream, row.golds, row.model, docs)
        analysis = analysed(made, len(row.golds.shares[0]), row.null, row.blind, run)
        assert math.isclose(analysis.fip.value or 0.0, float((made.seen[:, 0] == made.golds).mean())), (
            "FIP is the share of right answers"
        )
        found.append(analysis.gate.valid is True)
    return float(np.mean(found))


def main() -> int:
    """Print the table; 0 where all targets are met, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="samples of each setting (1000)")
    parser.add_argument("--large-runs", type=int, default=300, help="the same where there are 1,000 docs (300)")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--seed", type=int, default=20)
    args = parse(parser, runs=1, large_runs=1, processes=0)
    sizes = [row.sizes[:1] if args.tiny else row.sizes for row in ROWS]
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes that are started: each has a core
    start, missed, shares = time.monotonic(), [], dict[float, list[float]]()
    with workers(args.processes) as pool:
        runs = {docs: args.large_runs if docs == SIZES[-1] else args.runs for docs in SIZES}
        waiting = {
            (place, docs): pool.submit(passes, place, docs, runs[docs], args.seed)
            for place in range(len(ROWS))
            for docs in sizes[place]
        }
        print(
            f"| benchmark | the model | asked on wrong pictures | {' | '.join(f'passes at {docs}, %' for docs in SIZES)} | target |"
        )
        print(f"|---|---|---|{'---|' * (len(SIZES) + 1)}")
        for place, row in enumerate(ROWS):
            found = {docs: waiting[place, docs].result() for docs in sizes[place]}
            shown = " | ".join(f"{100 * found[docs]:.1f}" if docs in found else "" for docs in SIZES)
            goal = (
                ""
                if row.target is None
                else f"at least {100 * row.target[0]:g}"
                if row.target[0]
                else f"at most {100 * row.target[1]:g}"
            )
            print(
                f"| {row.golds.name} | {row.name} | {row.null if row.null else 'none'} | {shown} | {goal} |", flush=True
            )
            if row.target:
                shares.setdefault(row.target[0], []).extend(found.values())
                missed += [
                    (row, docs, share) for docs, share in found.items() if not row.target[0] <= share <= row.target[1]
                ]
    assert np.mean(shares[LOOKS]) > 0.5 > np.mean(shares[0.0]), f"the gate tells nothing: {shares}"
    errors = [
        f"{100 * math.sqrt(KNOWS_NOTHING * (1 - KNOWS_NOTHING) / count):.1f}" for count in (args.runs, args.large_runs)
    ]
    print(
        f"\n{args.runs} runs of a setting, {args.large_runs} at {SIZES[-1]} docs (the error of 2.5 % is {errors[0]} and {errors[1]});",
        end=" ",
    )
    print(f"{time.monotonic() - start:.0f} s.", end=" ")
    print("All targets met." if not missed else "Missed:")
    print(*(f"- {row.golds.name}: {row.name}, {docs} docs: {share:.1%}" for row, docs, share in missed), sep="\n")
    return int(bool(missed) and not args.tiny)


if __name__ == "__main__":
    sys.exit(main())
