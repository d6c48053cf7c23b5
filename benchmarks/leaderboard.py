"""How long a board of many runs takes.

    python benchmarks/leaderboard.py [--runs 500] [--benchmarks 20]

Makes results files of a made-up benchmark on both grids (``tests/making/runs.py``): a run for each model, with that
many benchmarks. Five models of different strength are made, and their numbers copied under the names of other models
and benchmarks, in turn. A process then makes the board; time and peak memory are of all of it, imports included. See
benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import apart, parse

SECONDS, MEMORY = 60.0, 1280.0
"""The targets of the whole board: seconds and MiB."""
DIFFERENT = 5
"""So many different models are made."""


def make(folder: Path) -> Path:
    """The results file of models that guess on cells; each is a task of it."""
    from tests.making.runs import guess, world_run, write_run

    runs = {}
    for number in range(DIFFERENT):

        def say(stream: np.random.Generator, gold: str, full: float = 0.95 - 0.08 * number) -> tuple[list[str], None]:
            return [gold if stream.random() < known else guess(stream) for known in (full, 0.4, *[0.0] * 12)], None

        runs[str(number)] = world_run(say, grid=(2, 3))
    return Path(write_run(folder, runs))


def board_of(runs: Path, board: Path) -> tuple[int, int]:
    """Number of runs and entries of the board."""
    from lmms_patch.present.board.build import leaderboard

    built = leaderboard([runs], board)
    return len(built.board.runs), sum(len(group.entries) for group in built.board.groups)


def run_of(made: dict[str, Any], model: int, benchmarks: int) -> dict[str, Any]:
    """The results file of one model."""
    results, configs, versions, shots = {}, {}, {}, {}
    for b in range(benchmarks):
        name = f"bench{b:02d}_rci"
        task = str((model + b) % DIFFERENT)
        prints = {"docs": f"docs{b:012d}", "prompts": f"prompts{b:09d}", "lmms_eval": "0.7.3", "lmms_patch": "0.1"}
        found = {
            **made["results"][task],
            "patch,none": {
                **made["results"][task]["patch,none"],
                "made": {**made["results"][task]["patch,none"]["made"], **prints},
            },
        }
        described = {**made["configs"][task]["lmms_patch"], "base": f"bench{b:02d}"}
        described["options"] = {**described["options"], "type": ("mcq", "yesno", "vqa", "caption")[b % 4]}
        results[name], configs[name] = (
            found,
            {**made["configs"][task], "lmms_patch": described, "dataset_path": f"org/bench{b:02d}"},
        )
        versions[name], shots[name] = 1.0, 0
    about = {"model_name": f"org/model-{model:04d}", "versions": versions, "n-shot": shots, "group_subtasks": {}}
    return {**made, **about, "results": results, "configs": configs, "date": f"20260101_{model:06d}"}


def main() -> int:
    """Make the runs, time the board; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description="How long a board of many runs takes")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--benchmarks", type=int, default=20)
    args = parse(parser, runs=2, benchmarks=2)
    with tempfile.TemporaryDirectory() as folder:
        made = json.loads(apart(make, Path(folder, "made"), tiny=args.tiny).value.read_text(encoding="utf-8"))
        runs, board = Path(folder, "runs"), Path(folder, "board")
        for model in range(args.runs):
            place = runs / f"model-{model:04d}"
            place.mkdir(parents=True)
            text = json.dumps(run_of(made, model, args.benchmarks), indent=2)
            (place / f"20260101_{model:06d}_results.json").write_text(text, encoding="utf-8")
        size = sum(path.stat().st_size for path in runs.rglob("*.json")) / 2**20
        whole = apart(board_of, runs, board, tiny=args.tiny)
        files = {path.name: path.stat().st_size / 2**20 for path in sorted(board.iterdir()) if path.is_file()}
    print(f"{args.runs} runs x {args.benchmarks} benchmarks, {size:.0f} MiB of results files")
    assert whole.value == (args.runs, 2 * args.runs * args.benchmarks), whole  # two grids
    print(f"{whole.wall:.1f} s ({whole.processor:.1f} s of processor time), peak {whole.memory:.0f} MiB")
    print("files in MiB:", ", ".join(f"{name} {mib:.1f}" for name, mib in files.items()))
    missed = whole.wall > SECONDS or whole.memory > MEMORY
    print(f"targets: {SECONDS:.0f} s, {MEMORY:.0f} MiB: {'MISSED' if missed else 'met'}")
    return int(missed and not args.tiny)


if __name__ == "__main__":
    sys.exit(main())
