"""How fast the bootstrap and the whole analysis of a large task are.

    python benchmarks/bootstrap.py [--docs 100000] [--rounds 3] [--only bootstrap analysis]

**bootstrap**: RCI's interval from ``stats.intervals.estimate`` (1000 draws), against
``scipy.stats.bootstrap`` (percentile, paired, vectorised, in the batches in which it is fastest) and
against the plain loop over draws. The ways take turns, and the least processor time of each counts.

**analysis**: one process writes the ``patch`` objects of made-up docs (full image and the nine cells of
3×3, baselines, 300 docs on a wrong image) as a run does; another reads them into memory and runs
``analysis.analyse``: chance, gate, index with interval, cells. Time and memory are those of the
analysis; the records themselves, as the objects that ``json`` makes of the file, are counted apart.
See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

from lmms_patch.ask.kinds import RCI
from lmms_patch.rci.analysis import analyse
from lmms_patch.runs.details import Settings
from lmms_patch.runs.frames import frame_of
from lmms_patch.runs.tables import Table
from lmms_patch.stats.intervals import estimate
from lmms_patch.stats.resample import DRAWS, Array

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import apart, parse
from benchmarks.studies import gate

BATCH = 10
"""Draws at a time in SciPy: of 1, 5, 10, 20 and 50 the fastest with 100,000 docs."""

OF_SCIPY = {
    "accuracy: 4 pairs": 20.0,
    "consensus scores: 25 pairs": 20.0,
    "400 distinct pairs": 20.0,
    "1000 distinct pairs": 8.0,
    "1000 values each": 1.5,
    "continuous": 1.5,
}
"""The targets: how many times as fast as SciPy, by the scores on full image and best cell."""
SECONDS, MEMORY = 20.0, 2048.0
"""The targets of the analysis: seconds, and MiB on top of the records."""

Interval = tuple[float, float]


def scores_of(kind: str, docs: int) -> Array:
    """Scores on full image and best cell, shape (docs, 2)."""
    stream = np.random.default_rng(0)
    if kind.startswith("accuracy"):
        return np.column_stack([stream.random(docs) < 0.6, stream.random(docs) < 0.7]).astype(float)
    if kind.startswith("consensus"):
        return np.array([0, 0.3, 0.6, 0.9, 1])[stream.integers(0, 5, (docs, 2))]
    if kind.endswith("distinct pairs"):
        pairs = int(kind.split()[0])
        return stream.random((pairs, 2))[stream.integers(0, pairs, docs)]
    return np.round(stream.random((docs, 2)), 3) if kind.startswith("1000") else stream.random((docs, 2))


def ours(scores: Array) -> Interval:
    """By ``stats.intervals``, without an unseen doc."""
    found = estimate(scores, lambda sums: 1 - sums[..., 1] / sums[..., 0])
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def by_scipy(scores: Array) -> Interval:
    """By SciPy."""
    found = stats.bootstrap(
        tuple(np.ascontiguousarray(scores.T)),
        lambda full, best, axis: 1 - best.mean(axis=axis) / full.mean(axis=axis),
        n_resamples=DRAWS,
        batch=BATCH,
        paired=True,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def by_loop(scores: Array) -> Interval:
    """One draw after the other."""
    stream, drawn = np.random.default_rng(0), []
    full, best = np.ascontiguousarray(scores.T)
    for _ in range(DRAWS):
        places = stream.integers(0, len(scores), len(scores))
        drawn.append(1 - best[places].mean() / full[places].mean())
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


WAYS: dict[str, Callable[[Array], Interval]] = {"ours": ours, "scipy": by_scipy, "loop": by_loop}


def bootstraps(docs: int, rounds: int) -> int:
    """Prints the table of the bootstrap; the number of targets that are missed."""
    print(f"\n{docs} docs, {DRAWS} draws; processor seconds, least of {rounds} rounds\n")
    print("| scores | ours | SciPy | plain loop | SciPy / ours | loop / ours | target |\n|---|---|---|---|---|---|---|")
    failures = 0
    for kind, target in OF_SCIPY.items():
        scores = scores_of(kind, docs)
        seconds: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(rounds):
            found = {}
            for name, way in WAYS.items():
                start = time.process_time()
                found[name] = way(scores)
                seconds[name].append(time.process_time() - start)
            wide = found["loop"][1] - found["loop"][0]
            assert all(np.allclose(ends, found["loop"], atol=0.15 * wide) for ends in found.values()), (
                f"the ways must agree: {found}"
            )
        least = {name: min(times) for name, times in seconds.items()}
        of_scipy, of_loop = least["scipy"] / least["ours"], least["loop"] / least["ours"]
        failures += of_scipy < target
        times = " | ".join(f"{least[name]:.4f}" for name in WAYS)
        print(
            f"| {kind} | {times} | {of_scipy:.1f} | {of_loop:.1f} | at least {target}: {met(of_scipy >= target)} |",
            flush=True,
        )
    return failures


def met(yes: bool) -> str:
    """The word in the tables."""
    return "met" if yes else "MISSED"


def write_records(path: Path, docs: int) -> None:
    """The docs of a model that is right 60 points above chance, and guesses on cells."""
    made = gate.sample(np.random.default_rng(0), gate.EVEN, gate.looks(0.6), docs, grid=3)
    path.write_bytes(pickle.dumps(list(gate.docs_of(made, 4, gate.NULL, 0))))


def resident() -> float:
    """Peak memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * (1024 if sys.platform == "darwin" else 1))


def analysis(path: Path) -> tuple[float, float, float]:
    """Processor seconds of the analysis; memory before it, and what it adds at its peak (MiB)."""
    records = pickle.loads(path.read_bytes())
    before, start = resident(), time.process_time()
    table = Table(frame_of(records, [gate.METRIC]), gate.METRIC, kind=RCI)
    found = analyse(table, gate.Mean(table, 3), Settings(draws=DRAWS), [3])
    seconds = time.process_time() - start
    grid = found.grids[3]
    assert grid.index.low is not None
    assert grid.shares is not None
    return seconds, before, resident() - before


def analyses(docs: int, tiny: bool) -> int:
    """Prints the table of the analysis; the number of targets that are missed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        apart(write_records, path, docs, tiny=tiny)  # what it leaves in memory is not to be counted
        size = path.stat().st_size / 2**20
        seconds, before, more = apart(analysis, path, tiny=tiny).value
    print(
        f"\nanalysis of {docs} docs, 10 views each, {DRAWS} draws; records: {size:.0f} MiB as text, {before:.0f} MiB in memory (Python included)\n"
    )
    print("| | measured | target |\n|---|---|---|")
    print(f"| processor seconds | {seconds:.1f} | at most {SECONDS:.0f}: {met(seconds <= SECONDS)} |")
    print(f"| memory on top of the records, MiB | {more:.0f} | at most {MEMORY:.0f}: {met(more <= MEMORY)} |")
    return (seconds > SECONDS) + (more > MEMORY)


def main() -> int:
    """Reads the command line; 0 where all targets are met, else 1."""
    parser = argparse.ArgumentParser(description="Speed of the statistics; see the head of this file.")
    parser.add_argument("--docs", type=int, default=100_000, help="number of docs (default 100000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each way is timed (default 3)")
    parser.add_argument("--only", nargs="+", choices=("bootstrap", "analysis"), default=("bootstrap", "analysis"))
    arguments = parse(parser, docs=500, rounds=1)
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that are started
    failures = 0
    if "bootstrap" in arguments.only:
        failures += apart(bootstraps, arguments.docs, arguments.rounds, tiny=arguments.tiny).value
    if "analysis" in arguments.only:
        failures += analyses(arguments.docs, arguments.tiny)
    return int(failures > 0 and not arguments.tiny)


if __name__ == "__main__":
    sys.exit(main())
