"""How long a board, a report and a table of numbers over many runs take.

    python benchmarks/many.py [--runs 1000] [--docs 100] [--benchmarks 20]

Makes runs of one task each (``tests/making/runs.py``: 4 options, full image and 3×3 cells), each with its table
and its numbers. They are of 20 benchmarks; 10 models or more are asked each on 10 days, so the board
reads all runs, and the report shows the newest of each model and benchmark. A few runs of each benchmark are made, and
copied under the names of other models and days. Times and peak memory are those of whole commands, imports included. See
benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import apart, command, parse

DAYS, DIFFERENT = 10, 5
"""Days, and runs of each benchmark that are made; the others are copies."""
TARGETS = {"leaderboard": (30.0, 1024.0, 10.0), "report": (60.0, 2048.0, 10.0), "numbers": (30.0, 1024.0, 10.0)}
"""Of each command: seconds of processor time, MiB of peak memory, MB of its page."""


def make(folder: Path, count: int, benchmarks: int, docs: int) -> None:
    """The files of the runs, one folder each."""
    from loguru import logger
    from msgspec import structs

    from lmms_patch.runs import cache, samples
    from lmms_patch.runs.run import read
    from tests.making.runs import guess, world_run, write_run

    logger.disable("lmms_patch")
    for number in range(min(count, benchmarks * DIFFERENT)):
        bench, answers = number % benchmarks, number // benchmarks
        full, cell = 0.95 - 0.08 * answers, 0.4 + 0.1 * (bench % 5)

        def say(stream, gold, full=full, cell=cell):  # type: ignore[no-untyped-def]
            known = [gold if stream.random() < chance else guess(stream) for chance in (full, cell, *[0] * 8)]
            return known, [guess(stream) for _ in known]

        name = f"bench{bench:02d}"
        made = world_run(say, n=docs, grid=3, seed=bench, base=name, answers=1 + answers)
        write_run(folder / f"made{number:05d}", {f"{name}_rci3": made})
    for number in range(count):
        of = folder / f"made{number % (benchmarks * DIFFERENT):05d}"
        day, model = number // benchmarks % DAYS, number // (benchmarks * DAYS)
        date = f"2026-01-{1 + day:02d}T00-00-00.000000"
        [table] = of.glob("*_samples_*.parquet")
        about = samples.about_of(table)
        named = structs.replace(about.model, name=f"org/model-{model:04d}", date=date)
        results = folder / f"run{number:05d}" / f"{date}_results.json"
        results.parent.mkdir()
        own = samples.path_of(results, about.task)
        samples.write(own, samples.frame_of(table), structs.replace(about, model=named, run=str(number)))
        # a run leaves its numbers beside its tables
        given = read(table).results[0].computed
        cache.keep([replace(one, given=given) for one in read(own).results])
    for number in range(min(count, benchmarks * DIFFERENT)):
        shutil.rmtree(folder / f"made{number:05d}")


def numbers(runs: Path) -> int:
    """Number of runs in the table of all numbers."""
    import lmms_patch

    return len(lmms_patch.results(runs)["path"].unique())


def main() -> int:
    """1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--docs", type=int, default=100)
    parser.add_argument("--benchmarks", type=int, default=20)
    args = parse(parser, runs=12, docs=12, benchmarks=1)
    missed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = folder / "runs"
        apart(
            make, runs, args.runs, args.benchmarks, args.docs, tiny=args.tiny
        )  # a child's peak memory starts from its parent's
        print(f"{args.runs:,} runs of {args.docs} docs of 10 views", flush=True)
        for what, target in TARGETS.items():
            out = folder / what
            if what == "numbers":
                found, seconds, worked, memory = apart(numbers, runs, tiny=args.tiny)
                assert found == args.runs, f"{found} runs in the table"
            else:
                _, seconds, worked, memory = apart(command, what, str(runs), "--output", str(out), tiny=args.tiny)
                assert all(
                    f"bench{number:02d}" in (out / "index.html").read_text(encoding="utf-8")
                    for number in range(min(args.runs, args.benchmarks))
                )
            page = (out / "index.html").stat().st_size / 1e6 if out.is_dir() else 0.0
            said = f"{seconds:.1f} s ({worked:.1f} s of processor time), {memory:.0f} MiB, page of {page:.1f} MB"
            print(f"{what}: {said} (targets {target})", flush=True)
            missed |= worked > target[0] or memory > target[1] or page > target[2]
    print(f"targets: {'MISSED' if missed else 'met'}")
    return int(missed and not args.tiny)


if __name__ == "__main__":
    sys.exit(main())
