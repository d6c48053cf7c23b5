"""How long a board of many runs takes, and what one more run costs.

    python benchmarks/leaderboard.py RESULTS.json [--runs 500] [--benchmarks 20]

Makes results files from a real one (``--output_path`` of any run with a task that was asked on both grids, such as ``make demo``): a
run for each model, with that many benchmarks; every number moves a little from model to model. One process
then makes the board of all of them, a second adds one run, a third finds nothing new. Time and peak
memory are those of whole processes, imports included. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

SECONDS, MEMORY = 30.0, 1024.0
"""The targets of the whole board: seconds and MiB."""
_BOARD = """
import sys
from pathlib import Path
from lmms_patch.present.board.build import leaderboard
built = leaderboard([Path(sys.argv[1])], Path(sys.argv[2]))
print(built.update.read, sum(len(group.entries) for group in built.board.groups), len(built.written))
"""


def moved(value: Any, by: float) -> Any:
    """An estimate (or anything that holds some) with its numbers moved."""
    if isinstance(value, dict) and "low" in value and isinstance(value.get("value"), float):
        return {**value, **{key: value[key] + by for key in ("value", "low", "high") if isinstance(value[key], float)}}
    if isinstance(value, dict):
        return {key: moved(one, by) for key, one in value.items()}
    return value


def run_of(real: dict[str, Any], task: str, model: int, benchmarks: int, stream: np.random.Generator) -> dict[str, Any]:
    """The results file of one model."""
    results, configs, versions, shots = {}, {}, {}, {}
    for b in range(benchmarks):
        name = f"bench{b:02d}_rci"
        found = moved(real["results"][task], float(stream.normal(0, 0.1)))
        made = {"docs": f"docs{b:012d}", "prompts": f"prompts{b:09d}", "lmms_eval": "0.7.3", "lmms_patch": "0.1"}
        found["patch,none"] = {**found["patch,none"], "made": made}
        described = {**real["configs"][task]["lmms_patch"], "base": f"bench{b:02d}"}
        described["options"] = {**described["options"], "type": ("mcq", "yesno", "vqa", "caption")[b % 4]}
        results[name], configs[name] = found, {**real["configs"][task], "lmms_patch": described, "dataset_path": f"org/bench{b:02d}"}
        versions[name], shots[name] = 1.0, 0
    about = {"model_name": f"org/model-{model:04d}", "versions": versions, "n-shot": shots, "group_subtasks": {}}
    return {**real, **about, "results": results, "configs": configs, "date": f"20260101_{model:06d}"}


def timed(runs: Path, board: Path) -> tuple[float, float, float, str]:
    """Seconds, seconds of processor time, peak memory in MiB so far of any process, and what it says."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run([sys.executable, "-c", _BOARD, str(runs), str(board)], check=True, capture_output=True, text=True).stdout.strip()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, worked, after.ru_maxrss / 1024, out


def main() -> None:
    """Make the runs, time the board."""
    parser = argparse.ArgumentParser(description="How long a board of many runs takes")
    parser.add_argument("results", type=Path)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--benchmarks", type=int, default=20)
    args = parser.parse_args()
    real = json.loads(args.results.read_text(encoding="utf-8"))
    task = next(name for name, config in real["configs"].items() if config.get("lmms_patch", {}).get("grids") == [2, 3])
    stream = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        runs, board = Path(folder, "runs"), Path(folder, "board")
        for model in range(args.runs + 1):
            place = runs / f"model-{model:04d}"
            if model == args.runs:
                whole = timed(runs, board)
            place.mkdir(parents=True)
            text = json.dumps(run_of(real, task, model, args.benchmarks, stream), indent=2)
            (place / f"20260101_{model:06d}_results.json").write_text(text, encoding="utf-8")
        size = sum(path.stat().st_size for path in runs.rglob("*.json")) / 2**20
        one, none = timed(runs, board), timed(runs, board)
        files = {path.name: path.stat().st_size / 2**20 for path in sorted(board.iterdir()) if path.is_file()}
    print(f"{args.runs} runs x {args.benchmarks} benchmarks, {size:.0f} MiB of results files")
    for words, (seconds, worked, memory, out) in (("whole board", whole), ("one run more", one), ("nothing new", none)):
        print(f"{words}: {seconds:.1f} s ({worked:.1f} s of processor time), peak {memory:.0f} MiB (files read, entries, files written: {out})")
    print("files in MiB:", ", ".join(f"{name} {mib:.1f}" for name, mib in files.items()))
    print(f"targets: {SECONDS:.0f} s, {MEMORY:.0f} MiB: {'met' if whole[0] < SECONDS and whole[2] < MEMORY else 'MISSED'}")


if __name__ == "__main__":
    main()
