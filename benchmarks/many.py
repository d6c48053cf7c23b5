"""How long a board, a report and a table of numbers over many runs take.

    python benchmarks/many.py [--runs 2000] [--docs 100]

Makes runs of one task each (``tests/making/runs.py``: 4 options, full image and 3×3 cells), each with its sample log and the Parquet file beside it.
They are of 20 benchmarks; 10 models or more are asked each on 10 days, so the board reads all runs, and the report shows the newest of each model
and benchmark. A few runs of each benchmark are made, and copied under the names of other models and days. Times and peak memory are those of
whole commands, imports included. At the end the Parquet files are removed, and the board is made once more from the logs: the same numbers.
See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BENCHMARKS, DAYS, DIFFERENT = 20, 10, 5
"""Benchmarks, days, and runs of each benchmark that are made; the others are copies."""
TARGETS = {"leaderboard": (30.0, 1024.0, 10.0), "report": (60.0, 2048.0, 10.0), "numbers": (30.0, 1024.0, 10.0)}
"""Of each command: seconds of processor time, MiB of peak memory, MB of its page."""
_NUMBERS = "import sys, lmms_patch; print(lmms_patch.results(sys.argv[1]).num_rows)"


def make(folder: Path, count: int, docs: int) -> None:
    """The files of the runs, one folder each."""
    sys.path.insert(0, str(ROOT))
    from loguru import logger

    from lmms_patch.runs.run import find
    from lmms_patch.runs.samples import write
    from tests.making.runs import guess, world_run, write_run

    logger.disable("lmms_patch")
    for number in range(min(count, BENCHMARKS * DIFFERENT)):
        bench, answers = number % BENCHMARKS, number // BENCHMARKS
        full, cell = 0.95 - 0.08 * answers, 0.4 + 0.1 * (bench % 5)

        def say(stream, gold, full=full, cell=cell):  # type: ignore[no-untyped-def]
            known = [gold if stream.random() < chance else guess(stream) for chance in (full, cell, *[0] * 8)]
            return known, [guess(stream) for _ in known]

        name = f"bench{bench:02d}"
        path = write_run(folder / f"run{number:05d}", {f"{name}_rci3": world_run(say, n=docs, grid=3, seed=bench, base=name, answers=1 + answers)})
        write(find([path])[0].results)
    for number in range(count):  # the first are those that were made: their names come last, when they are copied
        place, of = folder / f"run{number:05d}", folder / f"run{number % (BENCHMARKS * DIFFERENT):05d}"
        if place != of:
            shutil.copytree(of, place, copy_function=os.link)
        [results] = place.glob("*_results.json")
        day, model = number // BENCHMARKS % DAYS, number // (BENCHMARKS * DAYS)
        about = {"model_name": f"org/model-{model:04d}", "date": f"2026-01-{1 + day:02d}T00-00-00.000000", "start_time": float(number)}
        data = json.loads(results.read_text(encoding="utf-8")) | about
        results.unlink()  # it is a link to the one that it was copied from
        results.write_text(json.dumps(data), encoding="utf-8")


def timed(*command: str) -> tuple[float, float, float]:
    """Seconds, seconds of processor time and MiB at most of a command."""
    start = time.perf_counter()
    _, status, used = os.wait4(subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL).pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> int:
    """1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--docs", type=int, default=100)
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.make:  # in a process of its own: a child's peak memory starts from its parent's
        make(args.make, args.runs, args.docs)
        return 0
    missed, took = False, dict[str, float]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = folder / "runs"
        subprocess.run([sys.executable, __file__, "--runs", str(args.runs), "--docs", str(args.docs), "--make", str(runs)], check=True)
        print(f"{args.runs:,} runs of {args.docs} docs of 10 views", flush=True)
        for what, target in TARGETS.items():
            out = folder / what
            command = (
                ["-c", _NUMBERS, str(runs)] if what == "numbers" else ["-m", "lmms_patch.app.cli", what, str(runs), "--output", str(out), "--quiet"]
            )
            seconds, worked, memory = timed(*command)
            page = (out / "index.html").stat().st_size / 1e6 if out.is_dir() else 0.0
            said = f"{seconds:.1f} s ({worked:.1f} s of processor time), {memory:.0f} MiB, page of {page:.1f} MB"
            print(f"{what}: {said} (targets {target})", flush=True)
            missed |= worked > target[0] or memory > target[1] or page > target[2]
            took[what] = worked
        for table in runs.rglob("*.parquet"):
            table.unlink()
        out = folder / "from-logs"
        _, worked, _ = timed("-m", "lmms_patch.app.cli", "leaderboard", str(runs), "--output", str(out), "--quiet")
        one, two = ((folder / name / "leaderboard.csv").read_bytes() for name in ("leaderboard", "from-logs"))
        same = "the same numbers" if one == two else "OTHER numbers"
        print(f"leaderboard from the logs: {worked:.1f} s of processor time, {worked / took['leaderboard']:.2f} times as long; {same}")
        missed |= one != two
    print(f"targets: {'MISSED' if missed else 'met'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
