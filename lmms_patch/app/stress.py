"""A Test-set Stress-Test without a harness command line: this writes that very command line, and runs it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lmms_patch.app.options import StressArguments as Arguments
from lmms_patch.app.watched import RunError, Watch, last_line, lmms_eval
from lmms_patch.ask.kinds import TST
from lmms_patch.ask.spec import Options, check_folds
from lmms_patch.errors import OptionError, require
from lmms_patch.runs.results import results_files


def command_of(arguments: Arguments, folder: Path) -> list[str]:
    """Return the options of lmms-eval.

    Args:
        arguments: what to test.
        folder: an empty folder, for a task file where options are given.

    Raises:
        PatchError: an option out of range.
    """
    name = f"{arguments.task}_tst{check_folds(TST, (arguments.folds,), '--folds')}"
    if arguments.check and arguments.diagnostic != "rf":
        raise OptionError("--check: a language model has no features to check; it is for --diagnostic rf")
    given = {
        key: value for key in ("fold_seed", "fold_seeds", "grouping") if (value := getattr(arguments, key)) is not None
    }
    Options.from_mapping(given, "lmms-patch tst")
    include = [str(arguments.include_path)] if arguments.include_path else []
    if given:
        include.append(
            _task_file(folder, name, {"base": arguments.task, "kind": "tst", "folds": arguments.folds, **given})
        )
    command = ["--model", f"tst_{arguments.diagnostic}", "--tasks", name]
    command += ["--log_samples", "--output_path", str(arguments.output)]
    model_args = ",".join(part for part in (arguments.model_args, "check=True" if arguments.check else "") if part)
    command += ["--model_args", model_args] if model_args else []
    command += ["--limit", str(arguments.limit)] if arguments.limit is not None else []
    return command + (["--include_path", os.pathsep.join(include)] if include else [])


def _task_file(folder: Path, name: str, config: Mapping[str, Any]) -> str:
    text = yaml.safe_dump({"task": name, **config}, sort_keys=False)
    (folder / f"{name}.yaml").write_text(f"class: !function lmms_patch.Wrap\n{text}", encoding="utf-8")
    return str(folder)


def run(arguments: Arguments, quiet: bool = False, watch: Watch = lambda what, done, of: None) -> Path:
    """Run a text-only cross-validation (Test-set Stress-Test) with lmms-eval, and return its results file.

    Args:
        arguments: what to test.
        quiet: keep the harness's own lines back; where it fails, the last of them is told.
        watch: told of progress, where its lines are kept back.

    Returns:
        The results file.

    Raises:
        PatchError: a module of the diagnostic is not installed.
        RunError: the harness ended with an error, or wrote no results.
    """
    # lmms-eval takes long to start: what is missing is said before.
    require("tst" if arguments.diagnostic == "rf" else "lora")
    before = set(_results(arguments.output))
    with tempfile.TemporaryDirectory(prefix="lmms_patch_") as folder:
        log = lmms_eval(command_of(arguments, Path(folder)), arguments.output, quiet=quiet, watch=watch)
    new = [path for path in _results(arguments.output) if path not in before]
    if not new:
        why = "the last lines of lmms-eval say why" if log is None else f"{last_line(log)}; all it said: {log}"
        raise RunError(f"{arguments.output}: no *_results.json here from this run; {why}")
    return new[-1]


def _results(folder: Path) -> list[Path]:
    return results_files(folder) if any(folder.rglob("*_results.json")) else []
