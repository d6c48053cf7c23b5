"""Finished runs: which model, which benchmark, under which settings. Pure: from results files alone.

Two results may be set side by side only where everything but the model is the same. What that is, is the
fingerprint of a result; boards, comparisons and gates all go by it.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from lmms_patch.ask.references import digest
from lmms_patch.ask.spec import KINDS, Kind
from lmms_patch.errors import RecordError
from lmms_patch.runs.results import TaskResult, read_json, results_files, samples_file, wrapped_tasks
from lmms_patch.text import arguments, masked, unique

_VIEW_OPTIONS = ("images", "min_side", "min_cell")
_NUMBER_OPTIONS = ("score", "scorer", "aggregation", "chance", "scale", "delta", "format", "gold", "cluster", "group", "stratum")
_MAGIC = ("variant", "seed", "examples", "prefill", "prompts", "pixels")
_TST_OPTIONS = ("grouping", "fold_seed", "fold_seeds", "features")
RECORDED = (
    *("docs", "prompts", "dataset", "revision", "split", "image sizes", "images"),
    *("few-shot", "system instruction", "benchmark version", "lmms-eval version"),
)
"""Settings that every run has. Where a file does not say one (an older version wrote it) it is unknown: not compared, and told."""
_LOADERS = ("parquet", "json", "csv", "text", "imagefolder", "arrow", "webdataset", "pandas")
"""Dataset paths that name a loader, not a dataset."""


@dataclass(frozen=True)
class Run:
    """One finished run of the harness.

    Attributes:
        path: its results file.
        model: what names the model: its checkpoint (of a local folder the name), or else the adapter.
        adapter: what ``--model`` was.
        model_args: what ``--model_args`` was, without secrets: runs that differ in these alone are runs of one model.
        date: as the harness writes it; sorts by time.
        tasks: its wrapped tasks, in order; a task with several filter pipelines comes once for each.
        configs: of every task (also plain ones), the harness's own description.
        results: of every task, what the harness wrote of it.
        about: other facts: ``limit``, ``offset``, ``gen_kwargs``, ``log_samples``, ``start_time``; by task ``n-shot``, ``versions``, ``n-samples``;
            ``system_instruction``: its digest, ``none`` where none was given, None where the file does not say.
    """

    path: Path
    model: str
    adapter: str
    model_args: str
    date: str
    tasks: tuple[TaskResult, ...]
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two runs runs of one model."""
        return self.model, self.adapter, self.model_args

    def log(self, result: TaskResult) -> Path | None:
        """Return the sample log of one of its tasks; None where it was not logged."""
        return samples_file(self.path, result.task)


def read(path: Path) -> Run:
    """Read one run.

    Raises:
        RecordError: the file is truncated, not a results file of lmms-eval, or of another schema.
    """
    data = read_json(path)
    config = _object(data.get("config"))
    adapter = str(config.get("model") or data.get("model_source") or "")
    about = {key: config.get(key) for key in ("limit", "offset", "gen_kwargs")} | {"start_time": data.get("start_time")}
    about |= {"system_instruction": _system_instruction(data), **{key: _object(data.get(key)) for key in ("n-shot", "versions", "n-samples")}}
    about["log_samples"] = _object(config.get("resolved_cli_args")).get("log_samples")
    return Run(
        Path(path),
        _name(masked(str(data.get("model_name") or adapter or Path(path).parent.name))),
        adapter,
        arguments(_arguments(config.get("model_args"))),
        str(data.get("date") or Path(path).name.removesuffix("_results.json")),
        tuple(wrapped_tasks(data, path)),
        data["configs"],
        data["results"],
        about,
    )


def _name(model: str) -> str:
    """Return a hub id as it is; of a local folder its own name, without where it lies on somebody's disk."""
    return PurePath(model).name or model if model.startswith(("/", "~", ".")) else model


def _system_instruction(data: Mapping[str, Any]) -> str | None:
    """Return a digest of the system instruction; ``none`` where none was given (the harness writes null), None where the file does not say."""
    known = [data[key] for key in ("system_instruction_sha", "system_instruction") if key in data]
    given = next((one for one in known if one), None)
    return (digest([given]) if given else "none") if known else None


def _object(value: Any) -> dict[str, Any]:
    """Return a JSON object, or an empty one where something else stands."""
    return value if isinstance(value, dict) else {}


def _arguments(given: Any) -> str:
    return ",".join(f"{key}={value}" for key, value in given.items()) if isinstance(given, dict) else str(given or "")


def find(paths: Iterable[Path]) -> list[Run]:
    """Return the runs in some folders (at any depth) or of some results files, each once, oldest first.

    Raises:
        RecordError: a path without a run, or a file that cannot be read.
    """
    files: dict[Path, Path] = {}
    for path in paths:
        for file in [Path(path)] if Path(path).is_file() else results_files(Path(path)):
            files.setdefault(Path(os.path.realpath(file)), file)  # resolve() raises where a link leads to itself
    return sorted((read(file) for file in files.values()), key=lambda run: (re.sub(r"\D", "", run.date), run.path.name, str(run.path)))


def origin(run: Run, result: TaskResult) -> str:
    """Return what tells one result from every other, wherever its file lies and however it is laid out: a digest of date, model and numbers."""
    return digest(
        [
            run.date,
            run.about.get("start_time"),
            *run.identity,
            result.task,
            result.filter,
            json.dumps(run.results.get(result.task), sort_keys=True, default=str),
        ]
    )


def is_same(one: tuple[Run, TaskResult], other: tuple[Run, TaskResult]) -> bool:
    """Return whether two results are one: the same file, or a copy of it."""
    same_file = one[0].path.resolve() == other[0].path.resolve() and one[1].task == other[1].task and one[1].place == other[1].place
    return same_file or origin(*one) == origin(*other)


def newest(runs: Sequence[Run]) -> tuple[list[tuple[Run, TaskResult]], int]:
    """Of each model, task and filter the newest result, in the order of the runs; and how many older ones there are."""
    last: dict[tuple[Any, ...], tuple[Run, TaskResult]] = {}
    count = 0
    for run in runs:
        for result in run.tasks:
            count += 1
            key = (*run.identity, result.task, result.filter)
            last.pop(key, None)
            last[key] = run, result
    return list(last.values()), count - len(last)


def labels(runs: Iterable[Run]) -> dict[tuple[str, str, str], str]:
    """Return a name for each model, told apart by adapter and arguments only where the checkpoint's name is not enough; safe to show, and unique."""
    known = sorted({run.identity for run in runs})
    names = Counter(model for model, _, _ in known)
    adapters = Counter((model, adapter) for model, adapter, _ in known)
    out = {}
    for model, adapter, args in known:
        parts = [part for part, needed in ((adapter, adapters[model, adapter] < names[model]), (args, adapters[model, adapter] > 1)) if needed]
        more = ", ".join(part or "default" for part in parts)
        out[model, adapter, args] = f"{model} ({more})" if more else model
    return unique(out)


def task_label(run: Run, result: TaskResult) -> str:
    """Return the task's name, with the filter where the task has several."""
    several = sum(other.task == result.task for other in run.tasks) > 1
    return f"{result.task}, {result.filter}" if several else result.task


# --- what must be the same ------------------------------------------------------------------------


def fingerprint(run: Run, result: TaskResult) -> dict[str, Any]:
    """Everything but the model and the grids that a result depends on; None where the run does not say.

    The keys are words for people: ``benchmark``, ``docs`` (which docs with which golds), ``prompts``, ``limit``, ``few-shot``,
    ``system instruction``, ``generation``, ``kind``, ``metric``, ``filter``, ``views``, ``statistics``, ``benchmark version``,
    ``lmms-eval version``, ``dataset``, ``revision``, ``split``, ``image sizes`` and ``images`` (what the full views show); of a MAGIC task
    also ``boxes shown`` and ``judge``.
    """
    described, made = result.described, result.details.get("made") or {}
    kind, options = KINDS[described["kind"]], described["options"]
    statistics = {name: options.get(name) for name in _NUMBER_OPTIONS}
    settings = result.details.get("settings") or {}
    magic = result.details.get("magic") or {}
    return {
        "benchmark": described["base"],
        "kind": "index" if kind.index else kind.name,
        "metric": described["metric"],
        "filter": result.filter,
        "docs": made.get("docs"),
        "number of docs": result.docs,
        "prompts": made.get("prompts"),
        **_images(kind, made),
        **asked(run, result.task),
        "views": digest([described.get("pixels"), {n: options.get(n) for n in (*_VIEW_OPTIONS, *(["seed"] if kind.name == "shuffle" else []))}]),
        **({"boxes shown": digest([magic.get(name) for name in _MAGIC]), "judge": _judge(magic)} if magic else {}),
        "statistics": digest([statistics, settings.get("level"), {n: options.get(n) for n in _TST_OPTIONS} if kind.folds else None]),
        "folds": described.get("folds"),
        "lmms-eval version": made.get("lmms_eval"),
    }


def asked(run: Run, task: str) -> dict[str, Any]:
    """Return the part of a fingerprint that a task of the harness has too, wrapped or not."""
    config, about = run.configs.get(task, {}), run.about
    version = about.get("versions", {}).get(task)
    return {
        **_data(config),
        "limit": _limit(about),
        "few-shot": about.get("n-shot", {}).get(task),
        "system instruction": about.get("system_instruction"),
        "generation": digest([config.get("generation_kwargs"), about.get("gen_kwargs") or None]),
        "benchmark version": None if version is None else str(version),
    }


def _data(config: Mapping[str, Any]) -> dict[str, str | None]:
    """Return which data a task's config names; where a file lies on somebody's disk is left out."""
    if "dataset_path" not in config:
        return dict.fromkeys(("dataset", "revision", "split"))
    path, name = config["dataset_path"], config.get("dataset_name")
    where = "none named" if not path else str(path) if is_hub(path) else "local files"
    revision = _object(config.get("dataset_kwargs")).get("revision")
    return {"dataset": f"{where}, {name}" if name else where, "revision": str(revision or "none"), "split": split_of(config) or "none"}


def is_hub(path: Any) -> bool:
    """Return whether a dataset's path is a name on the Hub, rather than a loader or a place on somebody's disk."""
    return isinstance(path, str) and re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", path) is not None and path not in _LOADERS


def split_of(config: Mapping[str, Any]) -> str | None:
    """Return the split that the harness evaluates: test, else validation; None where the config names none."""
    return next((str(config[key]) for key in ("test_split", "validation_split", "training_split") if config.get(key)), None)


def _images(kind: Kind, made: Mapping[str, Any]) -> dict[str, str | None]:
    """Return digests of what the full views show: their sizes, and their pixels."""
    if kind.name == "magic":
        return dict.fromkeys(("image sizes", "images"), "of the docs")  # their digest covers the images
    if not kind.needs_image:
        return dict.fromkeys(("image sizes", "images"), "none shown")
    return {"image sizes": made.get("image_sizes"), "images": made.get("images")}


def _judge(magic: Mapping[str, Any]) -> str:
    """Return the judge of a MAGIC task and how it was asked; on which server does not matter."""
    asked = magic.get("judged_by") or {}
    return f"{magic['judge']} {digest([asked.get('sampling'), asked.get('prompts')])[:6]}" if magic.get("judge") else "none"


def _limit(about: Mapping[str, Any]) -> str:
    limit, offset = about.get("limit"), about.get("offset") or 0
    said = f"{limit:g}" if isinstance(limit, (int, float)) else str(limit)
    return f"{'all' if limit in (None, -1) else said}{f' from {offset}' if offset else ''}"


def differences(one: Mapping[str, Any], other: Mapping[str, Any], ignore: Iterable[str] = ()) -> list[str]:
    """In what two fingerprints differ, in words; what one of them does not say is not compared: see ``not_compared``."""
    skip = set(ignore)
    out = []
    for key, value in one.items():
        theirs = other.get(key)
        if key not in skip and value is not None and theirs is not None and value != theirs:
            out.append(f"{key} ({value} and {theirs})" if len(f"{value}{theirs}") < 60 else key)
    return out


def not_compared(one: Mapping[str, Any], other: Mapping[str, Any], ignore: Iterable[str] = ()) -> str:
    """Say which settings cannot be compared, since one of two fingerprints does not have them; empty where all can."""
    skip = set(ignore)
    unknown = [key for key in RECORDED if key not in skip and (key in one or key in other) and (one.get(key) is None or other.get(key) is None)]
    return f"not recorded in both runs, so not compared: {', '.join(unknown)}" if unknown else ""


def check_keys(keys: Iterable[str], known: Mapping[str, Any]) -> None:
    """Whether some names are keys of a fingerprint.

    Raises:
        RecordError: one is not; says which there are.
    """
    for key in keys:
        if key not in known:
            raise RecordError(f"no setting {key!r} to ignore; allowed: {', '.join(known)}")
