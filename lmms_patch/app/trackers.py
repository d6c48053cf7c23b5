"""A finished run as a run of an experiment tracker: MLflow, Trackio or Weights & Biases.

lmms-eval logs to Weights & Biases and SwanLab while it runs (``--wandb_args``, ``--swanlab_args``). These doors are for the other trackers, and
for runs that are finished. Where a tracker keeps its runs is its own setting (``MLFLOW_TRACKING_URI``, ``TRACKIO_DIR``, ``WANDB_MODE``, ...).
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.errors import PatchError
from lmms_patch.present.findings import case, findings
from lmms_patch.runs.columns import MOST, tracked
from lmms_patch.runs.results import objects_file
from lmms_patch.runs.run import Result, Run
from lmms_patch.text import MASK, arguments, clean, is_secret

TRACKERS = ("mlflow", "trackio", "wandb")
PROJECT = "lmms-patch"
"""The project of a tracker that needs one, where none is named."""
_ODD = re.compile(r"[^\w\-. :/]")
"""Matches the characters that MLflow forbids in the name of a metric."""


def log(run: Run, results: Sequence[Result], to: str, project: str | None = None) -> int:
    """Log results as one run of a tracker, and return how many numbers it got: at most 20 for each task, and the findings.

    Args:
        run: the finished run.
        results: those of its results that are wanted.
        to: one of ``TRACKERS``.
        project: the experiment of MLflow, or the project of the others; None: the tracker's own default, or ``PROJECT``.

    Raises:
        PatchError: the tracker is not installed, or it refuses the run; the message has its words.
    """
    try:
        tracker = importlib.import_module(to)
    except ModuleNotFoundError as error:
        missing = error.name or to
        raise PatchError(f"{missing} is not installed; type: pip install {missing}") from None
    by_task: dict[str, list[Result]] = {}
    for result in results:
        by_task.setdefault(result.task, []).append(result)
    numbers = {
        _ODD.sub("_", f"{result.label}/{name}"): value
        for of_task in by_task.values()
        for result in of_task
        for name, value in tracked(result, MOST // len(of_task)).items()
    }
    told = [one.text for one in findings([case(result) for result in results])]
    about = {"model": run.model, "adapter": run.adapter, "model_args": run.model_args, "limit": run.about.get("limit"), "date": run.date}
    config = {name: clean(value, 400) for name, value in about.items() if value not in (None, "")}
    name = clean(f"{run.model or run.adapter} {run.date}")
    try:
        (_to_mlflow if to == "mlflow" else _to_wandb)(tracker, run, name, project, config, numbers, told)
    except Exception as error:  # of any library, over any network
        raise PatchError(f"{to} did not take the run: {type(error).__name__}: {clean(error, 300)}") from None
    return len(numbers)


def _to_mlflow(mlflow: Any, run: Run, name: str, project: str | None, config: dict[str, str], numbers: dict[str, float], told: Sequence[str]) -> None:
    """Log to MLflow: numbers as metrics, findings as the run's description and a file, the results file and the one beside it without secrets."""
    if project:
        mlflow.set_experiment(project)
    with mlflow.start_run(run_name=name, description="\n\n".join(told)):
        mlflow.log_params(config)
        mlflow.log_metrics(numbers)
        mlflow.log_text("\n\n".join(told) + "\n", "findings.md")
        for path in (run.path, objects_file(run.path)):
            if path.is_file():
                mlflow.log_text(_public(path), path.name)


def _public(path: Path) -> str:
    """Return a JSON file of a run without secrets; as it is where it has none, because the digests in a results file are of such texts."""
    text = path.read_text(encoding="utf-8")
    data = files.parse_json(text)
    public = _without_secrets(data)
    return text if public == data else json.dumps(public, indent=2, ensure_ascii=False) + "\n"


def _without_secrets(value: Any, key: str = "") -> Any:
    """Return plain JSON types without secrets: texts as ``--model_args`` are shown, and no value of a key that names a secret.

    Args:
        value: any.
        key: under which it stands.
    """
    if isinstance(value, Mapping):
        return {name: _without_secrets(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_secrets(one, key) for one in value]
    if value is None or isinstance(value, (bool, float)) or ("," in key and not isinstance(value, str)):  # a metric, as "token_f1,none" is one
        return value
    return MASK if is_secret(key, str(value)) else arguments(value) if isinstance(value, str) else value


def _to_wandb(tracker: Any, run: Run, name: str, project: str | None, config: dict[str, str], numbers: dict[str, float], told: Sequence[str]) -> None:
    """Log to Weights & Biases, or to Trackio, which has the same functions: numbers in one step, findings in the run's configuration."""
    tracker.init(project=project or PROJECT, name=name, config={**config, "findings": " ".join(told)})
    tracker.log(numbers)
    tracker.finish()
