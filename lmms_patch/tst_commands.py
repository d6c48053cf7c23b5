"""``lmms-patch tst``: a Test-set Stress-Test without a harness command line; it runs that very command line."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lmms_patch.errors import OptionError, PatchError
from lmms_patch.records import results_files
from lmms_patch.spec import GROUPINGS, Options, check_folds

DIAGNOSTICS = ("rf", "lora")


class RunError(PatchError):
    """The harness ended with an error; its own lines say why."""


def add_parser(commands: Any) -> None:
    """The arguments of ``lmms-patch tst``."""
    parser = commands.add_parser("tst", help="Test-set Stress-Test: can a text-only model, cross-validated on the test set, answer without looking?")
    parser.add_argument("task", help="a base task, group or tag, such as gqa")
    parser.add_argument(
        "--diagnostic", default="rf", choices=DIAGNOSTICS, help="rf: features and trees, on the CPU; lora: a language model (default: rf)"
    )
    parser.add_argument("--folds", type=int, default=5, metavar="K", help="number of folds, 2 to 50 (default: 5)")
    parser.add_argument("--fold-seed", type=int, metavar="S", help="the first fold seed (default: 0)")
    parser.add_argument("--fold-seeds", type=int, metavar="R", help="number of fold seeds to average over (default: 3)")
    parser.add_argument("--grouping", choices=GROUPINGS, help="what stays in one fold (default: auto: the source, where it is known)")
    parser.add_argument("--model-args", default="", metavar="K=V,...", help="arguments of the diagnostic, such as model=forest,trees=1000")
    parser.add_argument("--check", action="store_true", help="first see on these docs that nothing leaks from held-out ones (rf only)")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N docs only")
    parser.add_argument("--include-path", metavar="DIR", help="a folder with more task files")
    parser.add_argument("--output", type=Path, metavar="OUT", default=Path("out/tst"), help="folder for results and sample log (default: out/tst)")


def command_of(args: argparse.Namespace, folder: Path) -> list[str]:
    """The harness command line.

    Args:
        args: of ``lmms-patch tst``.
        folder: an empty folder, for a task file where options are given.

    Raises:
        PatchError: an option out of range.
    """
    name = f"{args.task}_tst{check_folds('tst', (args.folds,), '--folds')}"
    given = {key: value for key in ("fold_seed", "fold_seeds", "grouping") if (value := getattr(args, key)) is not None}
    Options.from_mapping(given, "lmms-patch tst")
    include = [args.include_path] if args.include_path else []
    if given:
        include.append(_task_file(folder, name, {"base": args.task, "kind": "tst", "folds": args.folds, **given}))
    command = [
        sys.executable,
        "-m",
        "lmms_eval",
        "--model",
        f"tst_{args.diagnostic}",
        "--tasks",
        name,
        "--log_samples",
        "--output_path",
        str(args.output),
    ]
    if args.check and args.diagnostic != "rf":
        raise OptionError("--check: a language model has no features to check; it is for --diagnostic rf")
    model_args = ",".join(part for part in (args.model_args, "check=True" if args.check else "") if part)
    command += ["--model_args", model_args] if model_args else []
    command += ["--limit", str(args.limit)] if args.limit is not None else []
    if len(include) > 1:
        raise OptionError(
            "--fold-seed, --fold-seeds and --grouping cannot be given beside --include-path: write them into the task's metadata.lmms_patch"
        )
    return command + (["--include_path", include[0]] if include else [])


def _task_file(folder: Path, name: str, config: Mapping[str, Any]) -> str:
    text = yaml.safe_dump({"task": name, **config}, sort_keys=False)
    (folder / f"{name}.yaml").write_text(f"class: !function lmms_patch.Wrap\n{text}", encoding="utf-8")
    return str(folder)


def run(args: argparse.Namespace) -> Path:
    """Run the test.

    Returns:
        The results file.

    Raises:
        RunError: the harness ended with an error, or wrote no results.
    """
    before = set(_results(args.output))
    with tempfile.TemporaryDirectory(prefix="lmms_patch_") as folder:
        status = subprocess.run(command_of(args, Path(folder)), env={**os.environ, "TOKENIZERS_PARALLELISM": "false"}, check=False).returncode
    if status:
        raise RunError(f"lmms-eval ended with status {status}; its last lines say why")
    new = [path for path in _results(args.output) if path not in before]
    if not new:
        raise RunError(f"{args.output}: no *_results.json here from this run; the last lines of lmms-eval say why")
    return new[-1]


def _results(folder: Path) -> list[Path]:
    return results_files(folder) if any(folder.rglob("*_results.json")) else []
