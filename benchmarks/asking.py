"""How many calls does `_quick` need, and do its intervals hold the truth? Replays on made-up worlds, and on answers of a real model.

    python benchmarks/asking.py [--replays 500] [--only WORD ...] [--processes 2]
    python benchmarks/asking.py --answers benchmarks/data/mosaic_answers.parquet [--replays 300]

A made-up world draws, for each replay, a fresh set of docs: a trait of the doc makes it easy or hard, one of its 3 x 3
cells shows more than the others, docs of one image share a part of the trait. Each replay has fresh hashes, too. The
design sees nothing but the answers it asks for. Printed per row:

- calls, as a share of a full pass (10 per doc), with their 5 % and 95 % quantiles; calls of the luck null are not
  counted;
- how often the interval holds the truth: what the full pass would print (benchmark), or the index of the whole world
  (population);
- the mean half-width, its 95 % quantile, and the largest overshoot of the half-width that was asked for;
- beside it, the calls of two simple plans that reach the same width by a sample whose size somebody told them: all
  cells of each doc (``all``), and the cells up to the first right one (``exit``).

Worlds that break what the design hopes for: a few images that have hundreds of docs, a benchmark in which a doc's cells
score alike, and a model that is rarely right (where all is asked, the number is exact and holds). No world tells its kinds of
questions. The script ends with status 1 where a target is missed. 500 replays of all rows take about an hour on two
cores.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import parse, workers
from lmms_patch.stats import paired
from lmms_patch.stats.asking import Answers, Asking, Docs, Goal
from lmms_patch.stats.forms import MEAN
from lmms_patch.stats.sampled import Ends, Target

Array = NDArray[np.float64]
Z = 1.959964
CELLS = 9
CENTRE = np.array([0.06, 0.1, 0.06, 0.12, 0.32, 0.12, 0.06, 0.1, 0.06])
KINDS = 6
COVERAGE = (94.0, 97.0)


@dataclass(frozen=True)
class World:
    """A made-up model on a made-up benchmark. Numbers are on the scale of logits.

    Attributes:
        name: what the rows call it.
        spread: of the doc's trait.
        cell, shown, other: of cells: their level, what the cell that shows the answer adds, and what the others add.
        image: level of the full image.
        kinds: how much kinds of questions differ.
        heavy: whether a few images have most of the docs.
        alike: spread of a cell's own luck; 0: the cells of a doc differ by what they show alone.
    """

    name: str
    spread: float
    cell: float
    shown: float
    other: float
    image: float
    kinds: float = 0.3
    heavy: bool = False
    alike: float = 0.8


WORLDS = {
    world.name: world
    for world in (
        World("prior-led", 2.6, -0.6, 1.0, -0.3, 0.75),
        World("local", 1.6, -1.6, 2.6, -0.4, 0.62),
        World("global", 1.8, -2.6, 1.2, -0.6, 0.6),
        World("mixed", 1.8, -1.4, 1.8, -0.4, 0.6, kinds=1.3),
        World("heavy", 1.8, -1.4, 1.8, -0.4, 0.6, heavy=True),
        World("alike", 2.6, -1.0, 0.0, 0.0, 0.6, alike=0.0),
        World("rare", 1.5, -7.0, 2.0, 0.0, -4.5),
    )
}


@dataclass(frozen=True)
class Benchmark:
    """One made-up benchmark, answered whole.

    Attributes:
        scores: shape (docs, 10), full image and cells.
        clusters: shape (docs,), the image of each doc.
        kinds: shape (docs,), the kind of each question, where it is told.
    """

    scores: Array
    clusters: NDArray[np.intp]
    kinds: NDArray[np.intp] | None = None

    @property
    def index(self) -> float:
        """RCI, as a full pass would print it."""
        return 1 - float(self.scores[:, 1:].max(axis=1).mean() / self.scores[:, 0].mean())


def drawn(world: World, docs: int, seed: int, graded: bool = False) -> Benchmark:
    """Draw a benchmark and the answers of a model."""
    stream = np.random.default_rng([seed, docs])
    clusters = images(world, docs, stream)
    kinds = np.random.default_rng(99)  # the same in every replay
    of_cells, of_image, more = (
        kinds.normal(size=KINDS) * factor for factor in (world.kinds, 0.7 * world.kinds, 0.3 * world.kinds)
    )
    kind = stream.integers(0, KINDS, docs)
    trait = math.sqrt(0.1) * stream.normal(size=docs)[clusters] + math.sqrt(0.9) * stream.normal(size=docs)
    where = np.array([CENTRE if k % 2 else np.roll(CENTRE, 3 * (k // 2) - 3) for k in range(KINDS)])
    cumulated = (where / where.sum(axis=1, keepdims=True)).cumsum(axis=1)[kind]
    place = (stream.random((docs, 1)) > cumulated).sum(axis=1).clip(0, CELLS - 1)
    shown = np.full((docs, CELLS), world.other)
    shown[np.arange(docs), place] = world.shown * (1 + more[kind])
    luck = world.alike * stream.normal(size=(docs, CELLS))
    cells = world.cell + (world.spread * trait + of_cells[kind])[:, None] + shown + luck
    full = world.image + 0.9 * world.spread * trait + of_image[kind]
    logits = np.column_stack([full, cells])
    scores = answered(logits, stream, graded)
    return Benchmark(scores, clusters)


def images(world: World, docs: int, stream: np.random.Generator) -> NDArray[np.intp]:
    """Return the image of each doc: as GQA's test-dev (12,578 docs on 398), one each below 3,000 docs, or most docs on a few."""
    if world.heavy:
        count = max(20, docs // 25)
        weights = 1 / np.arange(1, count + 1)
        return np.sort(stream.choice(count, size=docs, p=weights / weights.sum()))
    count = {12578: 398, 3000: 1000}.get(docs, docs)
    return np.sort(stream.integers(0, count, docs)) if count < docs else np.arange(docs)


def answered(logits: Array, stream: np.random.Generator, graded: bool) -> Array:
    """Return right (1) and wrong (0) answers; graded ones also 0.6 and 0.3."""
    luck = stream.random(logits.shape)

    def below(more: float) -> NDArray[np.bool_]:
        return luck < 1 / (1 + np.exp(-(logits + more)))

    return np.select([below(0), below(0.6), below(1.1)], [1.0, 0.6, 0.3], 0.0) if graded else below(0).astype(float)


@cache
def truth(name: str, parts: int = 60) -> float:
    """Return the true index of a world, computed from made-up docs.

    Args:
        name: of the world.
        parts: how many times 100,000 docs; 60 (6 million docs) give a standard error of about 0.0006.
    """
    world = WORLDS[name]
    single = World(
        world.name, world.spread, world.cell, world.shown, world.other, world.image, world.kinds, False, world.alike
    )
    sums = np.zeros(2)
    for seed in range(parts):
        scores = drawn(single, 100_000, 10**6 + seed).scores
        sums += scores[:, 1:].max(axis=1).sum(), scores[:, 0].sum()
    return 1 - float(sums[0] / sums[1])


# --- replays ----------------------------------------------------------------------------------------


def pilot_of(docs: int) -> int:
    """Return the pilot that the plugin takes by itself."""
    return min(300, max(100, docs // 10))


def replay(made: Benchmark, goal: Goal, seed: int, pilot: int | None = None) -> Answers:
    """Ask a benchmark whose answers are known, and return what was asked."""
    stream = np.random.default_rng([seed, 7])
    n = len(made.scores)
    keys = stream.random(int(made.clusters.max()) + 1)[made.clusters]
    docs = Docs(
        np.lexsort((made.clusters, keys)),
        stream.random(n),
        made.clusters,
        np.ones(n),
        (CELLS,),
        pilot_of(n) if pilot is None else pilot,
        made.kinds,
    )
    asking = Asking(docs, goal)
    rounds = asking.rounds()
    try:
        wanted = next(rounds)
        while True:
            wanted = rounds.send(made.scores[wanted])
    except StopIteration:
        return asking.answers


@dataclass(frozen=True)
class Row:
    """One setting of the study."""

    world: str
    docs: int
    half: float
    target: Target = "benchmark"
    graded: bool = False

    def __str__(self) -> str:
        return f"{self.world} {self.docs} {self.half} {self.target}{' graded' * self.graded}"


def check(made: Benchmark, answers: Answers) -> None:
    """Hold that an index is within its interval, and where every answer was asked for what a full pass prints."""
    ends = answers.interval(0)
    assert ends.low <= ends.value <= ends.high, ends
    assert answers.calls <= made.scores.size, f"{answers.calls} of {made.scores.size} calls"
    assert answers.calls < made.scores.size or math.isclose(ends.value, made.index, abs_tol=1e-9), (
        f"{ends.value} of all answers, not {made.index}"
    )


def holds(ends: Ends, truth: float) -> float:
    """Return whether an interval holds the truth (1.0 or 0.0).

    Where all is asked, its ends are one number, equal to the truth up to rounding.
    """
    return float(ends.low - 1e-9 <= truth <= ends.high + 1e-9)


def simple_plans(made: Benchmark, half: float) -> tuple[float, float]:
    """Return the calls, as shares of a full pass, of a random sample that just reaches a half-width: all cells, and up to the first right one."""
    best, full = made.scores[:, 1:].max(axis=1), made.scores[:, 0]
    n, ratio = len(best), best.mean() / full.mean()
    variance = float(((best - ratio * full) ** 2).mean() / full.mean() ** 2)
    sample = min(n, math.ceil(1 / ((half / Z) ** 2 / variance + 1 / n)))
    order = np.argsort(-made.scores[:, 1:].mean(axis=0))
    right = made.scores[:, 1:][:, order] >= 1
    cells = np.where(right.any(axis=1), right.argmax(axis=1) + 1, CELLS)
    return sample / n, sample / n * (1 + float(cells.mean())) / (1 + CELLS)


def one(job: tuple[Row, int, float | None]) -> list[float]:
    """Replay a setting once."""
    row, seed, whole = job
    made = drawn(WORLDS[row.world], row.docs, 50_000 + seed, row.graded)
    answers = replay(made, Goal(row.half, row.target), seed)
    ends = answers.interval(0)
    wanted = made.index if whole is None else whole
    check(made, answers)
    return [
        answers.calls / made.scores.size,
        holds(ends, wanted),
        ends.half,
        ends.value - wanted,
        *simple_plans(made, row.half),
    ]


def rows() -> Iterator[Row]:
    """Yield all settings."""
    usual = ("prior-led", "local", "global", "mixed", "heavy")
    for docs, half in itertools.product((12578, 3000, 1500), (0.03, 0.05)):
        for world in usual if (docs, half) != (12578, 0.05) else ("local",):
            yield Row(world, docs, half)
    for world in usual:
        yield Row(world, 12578, 0.03, "population")
        yield Row(world, 3000, 0.05, "population")
    for docs, half in ((800, 0.1), (1500, 0.05), (12578, 0.05)):
        yield Row("rare", docs, half)
    for docs in (3000, 12578):
        yield Row("alike", docs, 0.03)
        yield Row("local", docs, 0.03, graded=True)


TARGETS: list[tuple[Callable[[Row], bool], float]] = [
    (lambda row: row.docs == 12578 and row.half == 0.03 and row.target == "benchmark", 17),
    (lambda row: row.docs == 12578 and row.half == 0.03 and row.target == "population", 22),
    (lambda row: row.docs == 3000 and row.half == 0.03 and row.target == "benchmark", 43),
    (lambda row: row.docs == 1500 and row.half == 0.03, 58),
    (lambda row: row.docs == 12578 and row.half == 0.05 and row.world == "local", 8),
    (
        lambda row: row.docs == 3000 and row.half == 0.05 and row.world == "local" and row.target == "benchmark",
        25,
    ),
]


def target_of(row: Row) -> float | None:
    """Return the most calls (% of a full pass) that a setting may take; None where no target is set."""
    if row.world in ("heavy", "alike", "rare") or row.graded:
        return None
    return next((most for fits, most in TARGETS if fits(row)), None)


HEADING = (
    "| docs | half-width | interval of | world | replays | calls % (5 to 95) | target | all, exit | holds % "
    "| half-width mean, 95 % | overshoot | bias |"
)


def shown(row: Row, found: Array) -> tuple[str, bool]:
    """Return a line of the table, and whether the setting meets its targets."""
    calls, holds, half, bias, every, early = found.T
    target, most = target_of(row), row.half
    cover = 100 * holds.mean()
    slack = 200 * math.sqrt(0.95 * 0.05 / len(found))  # two standard errors of a share
    missed = [
        *(["calls"] if target is not None and 100 * calls.mean() > target else []),
        *(
            ["coverage"]
            if not COVERAGE[0] - slack <= cover <= (100 if row.world == "rare" else COVERAGE[1] + slack)
            else []
        ),
    ]
    low, high = 100 * np.quantile(calls, [0.05, 0.95])
    line = (
        f"| {row.docs:,} | {row.half} | {row.target} | {row.world}{', graded' * row.graded} | {len(found)} | "
        f"{100 * calls.mean():.1f} ({low:.1f} to {high:.1f}) | {'' if target is None else f'{target:g}'} | "
        f"{100 * every.mean():.0f}, {100 * early.mean():.0f} | {cover:.1f} | {half.mean():.4f}, {np.quantile(half, 0.95):.4f} | "
        f"{max(0.0, float(half.max()) / most - 1):.1%} | {bias.mean():+.4f} |{' **missed: ' + ', '.join(missed) + '**' if missed else ''}"
    )
    return line, not missed


def study(pool: Executor, replays: int, words: list[str], seed: int, parts: int) -> bool:
    """Print the table of all settings whose name has one of the words; tell whether all meet their targets."""
    print(HEADING + "\n" + "|---" * HEADING.count(" | ") + "|---|", flush=True)
    good, held = True, []
    for row in rows():
        if words and not any(word in str(row) for word in words):
            continue
        whole = truth(row.world, parts) if row.target == "population" else None
        found = np.array(list(pool.map(one, [(row, seed + k, whole) for k in range(replays)], chunksize=4)))
        line, fine = shown(row, found)
        good &= fine
        held.append(found[:, 1].mean())
        print(line, flush=True)
    assert np.mean(held) > 0.7, "intervals hold the truth"
    return good


# --- answers of a real model --------------------------------------------------------------------------


FAMILIES = ("local", "center", "count", "sum", "larger")


def recorded(path: Path) -> Benchmark:
    """Return the answers of the embedded model to five families of 600 docs."""
    import pyarrow.parquet as parquet

    rows = [row for row in parquet.read_table(path).to_pylist() if row["family"] in FAMILIES]
    scores = np.array([row["shipped_scores"] for row in rows], float)
    scenes = np.unique([f"{row['family']} {row['scene']}" for row in rows], return_inverse=True)[1]
    kinds = np.unique([row["family"] for row in rows], return_inverse=True)[1]
    return Benchmark(scores, scenes, kinds)


def differs(made: Benchmark, answers: Answers, seed: int) -> bool:
    """Return whether a comparison with the full run of the same model, as ``lmms-patch compare`` makes it, finds another index."""
    done, part = float((answers.steps >= 2).mean()), answers.sampled(0)
    ones = np.ones(len(made.scores))
    pairs = {"full": (made.scores[:, 0], part.whole), "best": (made.scores[:, 1:].max(axis=1), part.cells)}
    sets = {
        name: (np.column_stack([first, ones]), np.column_stack([second, ones]))
        for name, (first, second) in pairs.items()
    }
    index = paired.Number(("full", "best"), lambda full, best: 1 - best / full)
    form = MEAN.within(0.0, 1.0)
    found = paired.differences(
        form, sets, {"index": index}, made.clusters, draws=1000, seed=seed, stands_for=(1.0, 1 / done)
    )["index"].estimate
    return found.low is None or found.high is None or not found.low <= 0 <= found.high


def replay_recorded(job: tuple[Path, float, int]) -> list[float]:
    """Replay the recorded answers once, with fresh hashes."""
    path, half, seed = job
    made = recorded(path)
    answers = replay(made, Goal(half), seed)
    ends = answers.interval(0)
    check(made, answers)
    held = holds(ends, made.index)
    return [
        answers.calls / made.scores.size,
        held,
        ends.half,
        ends.value - made.index,
        *simple_plans(made, half),
        float(differs(made, answers, seed)),
    ]


def study_recorded(pool: Executor, path: Path, replays: int) -> bool:
    """Print the table of a real model's answers.

    Return whether intervals hold the truth, and comparisons find nothing, often enough.
    """
    made, good = recorded(path), True
    print(f"{len(made.scores):,} docs, RCI {made.index:+.4f}\n")
    print(
        "| half-width | replays | calls % (5 to 95) | all, exit | holds % | half-width mean, 95 % | bias | compared: differs % |"
    )
    print("|---" * 8 + "|", flush=True)
    for half in (0.03, 0.05):
        found = np.array(list(pool.map(replay_recorded, [(path, half, k) for k in range(replays)], chunksize=4)))
        calls, holds, width, bias, every, early, differ = found.T
        low, high, wide = *(100 * np.quantile(calls, [0.05, 0.95])), np.quantile(width, 0.95)
        print(
            f"| {half} | {replays} | {100 * calls.mean():.1f} ({low:.1f} to {high:.1f}) | "
            f"{100 * every.mean():.0f}, {100 * early.mean():.0f} | {100 * holds.mean():.1f} | {width.mean():.4f}, {wide:.4f} | "
            f"{bias.mean():+.4f} | {100 * differ.mean():.1f} |",
            flush=True,
        )
        good &= holds.mean() > 0.92 and differ.mean() < 0.08
    return bool(good)


def main() -> int:
    """Run the study; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replays", type=int, default=500)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--answers", type=Path, help="a file of recorded answers, in place of made-up worlds")
    some = ["local 1500 0.05", "heavy 1500 0.05", "mixed 3000 0.05 population", "alike 3000"]
    recorded_answers = Path(__file__).parent / "data" / "mosaic_answers.parquet"
    args = parse(parser, replays=1, only=some, processes=0, answers=recorded_answers)
    with workers(args.processes) as pool:
        good = args.answers is None or study_recorded(pool, args.answers, args.replays)
        if args.answers is None or args.tiny:
            good &= study(pool, args.replays, args.only, args.seed, 1 if args.tiny else 60)
    return int(not good and not args.tiny)


if __name__ == "__main__":
    sys.exit(main())
