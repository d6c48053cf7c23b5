"""How often do the intervals of FIP, MPP, RCI and the gap hold the truth, near the ends of the scale too?

    python benchmarks/studies/intervals.py [--runs 1000] [--only NAME ...] [--all]

Answers of a made-up model whose FIP and MPP are known, drawn many times; on each sample the interval as
it was (percentile bootstrap over clusters, widened by their number) and as it is (``lmms_patch.stats.intervals``).
Prints two Markdown tables: coverage by number of docs and kind of clusters, least and most over the
pairs of FIP and MPP; then every cell that is not within 93 to 99 %. Such a cell is drawn again with five
times as many other samples first, and these count: of some 600 cells, a few are outside by chance.
``--all`` prints every cell. Some six minutes on one core with 1,000 runs.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import parse
from lmms_patch.stats import intervals
from lmms_patch.stats.intervals import UNSEEN_OF_PAIRS, Sample, effective_clusters
from lmms_patch.stats.resample import DRAWS

Array = NDArray[np.float64]
Ends = tuple[float, float]

WITHIN = 0.6
"""Correlation of full image and best cell of a doc (of latent normals)."""
DOCS = (50, 100, 300, 1000)
PAIRS = (
    (0.3, 0.01),
    (0.6, 0.1),
    (0.3, 0.3),
    (0.9, 0.3),
    (0.6, 0.6),
    (0.9, 0.6),
    (0.9, 0.9),
    (0.99, 0.9),
    (0.9, 0.95),
    (0.99, 0.99),
    (0.9, 0.995),
    (0.99, 0.995),
    (0.99, 0.999),
)
"""FIP and MPP."""
GRADES, STEP = (0.9, 0.6, 0.3), 0.04
"""Graded scores beside 0 and 1, and the share of docs that each has, where there is room for it."""
WORTH = 13
"""Effective number of clusters of the power law, from 63 of them (at most one for each two docs)."""
LOW, HIGH = 0.93, 0.99
CORNERS = np.array([[full, best, 1.0] for full in (0.0, 1.0) for best in (0.0, 1.0)])

NUMBERS: dict[str, Callable[[Array], Array]] = {
    "FIP": lambda s: s[..., 0] / s[..., 2],
    "MPP": lambda s: s[..., 1] / s[..., 2],
    "RCI": lambda s: 1 - s[..., 1] / s[..., 0],
    "gap": lambda s: (s[..., 0] - s[..., 1]) / s[..., 2],
}


# --- made-up answers ------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """What docs are like.

    Attributes:
        clusters: ``none``, ``even`` (of 4 docs) or ``power law``.
        icc: correlation of the docs of a cluster (of latent normals).
        graded: scores between 0 and 1 too.
    """

    clusters: str = "none"
    icc: float = 0.3
    graded: bool = False


WORLDS = {
    "independent": World(),
    "even clusters": World("even"),
    "power law": World("power law"),
    "graded": World(graded=True),
    "graded, even clusters": World("even", graded=True),
    "even clusters of near copies": World("even", icc=0.95),
    "power law of near copies": World("power law", icc=0.95),
}


def sizes_of(kind: str, docs: int) -> NDArray[np.intp]:
    """Docs of each cluster."""
    if kind == "none":
        return np.ones(docs, np.intp)
    if kind == "even":
        return np.array([4] * (docs // 4) + [docs % 4] * (docs % 4 > 0))
    best, count = np.ones(docs, np.intp), min(63, docs // 2)
    for exponent in np.linspace(0, 2, 201):
        shares = np.arange(1, count + 1) ** -exponent
        sizes = np.maximum(1, np.round(docs * shares / shares.sum())).astype(np.intp)
        sizes[0] += docs - sizes.sum()
        if sizes[0] > 0 and abs(effective_clusters(sizes) - WORTH) < abs(effective_clusters(best) - WORTH):
            best = sizes
    return best


def ends_of_grades(mean: float, graded: bool) -> Array:
    """Up to which share of docs, the best first, each score is reached: 1, then the grades."""
    if not graded:
        return np.array([mean])
    return np.clip([mean + (k - sum(GRADES)) * STEP for k in range(len(GRADES) + 1)], 0, 1)


def steps(graded: bool) -> Array:
    """By how much a doc's score rises at each of these ends."""
    return -np.diff([1, *GRADES, 0])[::-1] if graded else np.ones(1)


def truth_of(mean: float, graded: bool) -> float:
    """The mean score; near the ends there is no room for all grades, so that it is not what was asked for."""
    return float(ends_of_grades(mean, graded) @ steps(graded))


def scores(stream: np.random.Generator, sizes: NDArray[np.intp], world: World, means: Sequence[float]) -> Array:
    """Scores on full image and best cell, shape (docs, 2)."""

    def normals(rows: int) -> Array:
        return math.sqrt(WITHIN) * stream.standard_normal((rows, 1)) + math.sqrt(1 - WITHIN) * stream.standard_normal(
            (rows, 2)
        )

    z = normals(int(sizes.sum()))
    if len(sizes) < len(z):
        z = math.sqrt(world.icc) * np.repeat(normals(len(sizes)), sizes, axis=0) + math.sqrt(1 - world.icc) * z
    shares = ndtr(z)
    return np.column_stack(
        [(shares[:, [k]] < ends_of_grades(mean, world.graded)) @ steps(world.graded) for k, mean in enumerate(means)]
    )


# --- intervals as they were, and as they are ------------------------------------------------------


def before(rows: Array, labels: NDArray[np.intp] | None, stream: np.random.Generator) -> dict[str, Ends | None]:
    """Percentile bootstrap over clusters; under 50 of them widened by Student's t, under 10 none."""
    totals = rows if labels is None else np.column_stack([np.bincount(labels, column) for column in rows.T])
    groups = len(totals)
    kinds, counts = np.unique(totals, axis=0, return_counts=True)
    drawn = stream.multinomial(groups, counts / groups, size=DRAWS) @ kinds
    factor = stdtrit(groups - 1, 0.975) / ndtri(0.975) * math.sqrt(groups / (groups - 1)) if groups < 50 else 1.0
    out: dict[str, Ends | None] = {}
    for name, number in NUMBERS.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            value, values = float(number(rows.sum(axis=0))), number(drawn)
        known = values[np.isfinite(values)]
        if groups < 10 or not math.isfinite(value) or len(known) < 0.9 * DRAWS:
            out[name] = None
            continue
        low, high = np.quantile(known, [0.025, 0.975])
        out[name] = value - (value - low) * factor, value + (high - value) * factor
    return out


def after(rows: Array, labels: NDArray[np.intp] | None, stream: np.random.Generator) -> dict[str, Ends | None]:
    """By ``lmms_patch.stats.intervals``, as ``lmms_patch.rci.draws`` asks it."""
    sample = Sample(rows, labels, seed=stream)
    found = {name: intervals.mean(rows[:, k], labels, seed=stream) for k, name in enumerate(("FIP", "MPP"))}
    found |= {name: sample.estimate(NUMBERS[name], CORNERS, unseen=UNSEEN_OF_PAIRS) for name in ("RCI", "gap")}
    return {name: None if one.low is None or one.high is None else (one.low, one.high) for name, one in found.items()}


WAYS = {"before": before, "after": after}


# --- coverage -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """How often the intervals of one setting hold the truth.

    Attributes:
        held: by way and number, the share of runs with an interval in which it holds the truth; nan where no run has
        one.
        none: by way and number, the share of runs without an interval (or without the number).
        width: by way and number, median width.
    """

    held: dict[tuple[str, str], float]
    none: dict[tuple[str, str], float]
    width: dict[tuple[str, str], float]


def cell(world: World, docs: int, means: tuple[float, float], runs: int, seed: int) -> Cell:
    """Draw many samples of one setting."""
    sizes, stream = (
        sizes_of(world.clusters, docs),
        np.random.default_rng([seed, docs, *(round(1000 * mean) for mean in means)]),
    )
    labels = None if world.clusters == "none" else np.repeat(np.arange(len(sizes)), sizes)
    full, best = (truth_of(mean, world.graded) for mean in means)
    truths = {"FIP": full, "MPP": best, "RCI": 1 - best / full, "gap": full - best}
    held: dict[tuple[str, str], list[bool]] = {(way, name): [] for way in WAYS for name in NUMBERS}
    widths: dict[tuple[str, str], list[float]] = {key: [] for key in held}
    for _ in range(runs):
        rows = np.column_stack([scores(stream, sizes, world, means), np.ones(docs)])
        for way, made in WAYS.items():
            for name, ends in made(rows, labels, stream).items():
                if ends is not None:
                    held[way, name].append(ends[0] <= truths[name] + 1e-9 and truths[name] - 1e-9 <= ends[1])
                    widths[way, name].append(ends[1] - ends[0])
    return Cell(
        {key: float(np.mean(one)) if one else math.nan for key, one in held.items()},
        {key: 1 - len(one) / runs for key, one in held.items()},
        {key: float(np.median(one)) if one else math.nan for key, one in widths.items()},
    )


def settled(world: World, docs: int, means: tuple[float, float], runs: int, seed: int) -> Cell:
    """A cell; one with a coverage outside the limits from five times as many other samples."""
    found = cell(world, docs, means, runs, seed)
    apart = any(not LOW <= found.held["after", name] <= HIGH for name in NUMBERS)
    return cell(world, docs, means, 5 * runs, seed + 1) if apart else found


def percent(share: float) -> str:
    """A share as it is printed."""
    return "none" if math.isnan(share) else f"{100 * share:.1f}"


def span(cells: Sequence[Cell], way: str, name: str) -> str:
    """Least and most coverage of some cells."""
    shares = [one.held[way, name] for one in cells if not math.isnan(one.held[way, name])]
    return f"{percent(min(shares))} to {percent(max(shares))}" if shares else "none"


def main() -> int:
    """Print the tables; coverage outside the limits is told, and no miss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="samples of each cell (1000)")
    parser.add_argument("--only", nargs="*", choices=WORLDS, default=list(WORLDS), help="kinds of docs")
    parser.add_argument("--all", action="store_true", help="print every cell")
    parser.add_argument("--docs", nargs="+", type=int, default=DOCS, help="numbers of docs")
    parser.add_argument("--seed", type=int, default=20)
    args = parse(parser, runs=1, docs=(50,), all=True)
    start = time.monotonic()
    columns = [f"{name} {way}" for name in NUMBERS for way in WAYS]
    print(f"| docs are | n | worth | {' | '.join(columns)} |\n|{'---|' * (3 + len(columns))}")
    outside, every, shares = [], [], list[float]()
    for kind in args.only:
        for docs in args.docs:
            cells = {means: settled(WORLDS[kind], docs, means, args.runs, args.seed) for means in PAIRS}
            worth = effective_clusters(sizes_of(WORLDS[kind].clusters, docs))
            shown = [span(list(cells.values()), way, name) for name in NUMBERS for way in WAYS]
            print(f"| {kind} | {docs} | {worth:.0f} | {' | '.join(shown)} |", flush=True)
            for means, one in cells.items():
                row = f"| {kind} | {docs} | {means[0]:g} | {means[1]:g} | {{}} | {{}} | {{}} | {{}} |"
                for name in NUMBERS:
                    shares.append(one.held["after", name])
                    then, now = (one.held[way, name] for way in WAYS)
                    wider = (
                        one.width["after", name] / one.width["before", name]
                        if one.width["before", name] > 1e-9
                        else math.inf
                    )
                    every.append(
                        row.format(
                            name, percent(then), percent(now), f"{wider:.2f}" if math.isfinite(wider) else "had none"
                        )
                    )
                    if not LOW <= now <= HIGH:
                        outside.append(every[-1])
    assert np.nanmean(shares) > 0.85, f"intervals hold the truth in {percent(float(np.nanmean(shares)))} % of all runs"
    head = "\n| docs are | n | FIP | MPP | number | before | after | width, after / before |\n|---|---|---|---|---|---|---|---|"
    print(
        f"\nOutside {100 * LOW:.0f} to {100 * HIGH:.0f} % (of {len(every)} cells {len(outside)}):\n{head}",
        *outside,
        sep="\n",
    )
    if args.all:
        print(f"\nEvery cell:\n{head}", *every, sep="\n")
    print(f"\n{args.runs} runs, {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
