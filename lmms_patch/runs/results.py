"""Results files of lmms-eval, and what they say of tasks of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.ask.spec import KINDS
from lmms_patch.errors import RecordError
from lmms_patch.runs.details import wrong
from lmms_patch.runs.record import SCHEMA
from lmms_patch.stats import bounds

MAGIC_SCHEMA = 1
"""Of the ``magic`` objects that MAGIC tasks leave in place of ``patch`` (``magic.results``)."""
OBJECTS = ("patch", "magic")
_OBJECTS_OF_TASKS = ("n-samples", "higher_is_better")
_OF_TASKS = ("config", "group_subtasks", "n-shot", "versions", *_OBJECTS_OF_TASKS)
"""What the harness writes of a run beside results and configs: objects, or null; by task, but for ``config``."""


@dataclass(frozen=True)
class TaskResult:
    """One wrapped task of a finished run.

    Attributes:
        task: its name.
        described: what was wrapped and how (``WrapSpec.described``, plus the primary metric).
        metrics: aggregated metrics by name (filter left out), those of the metric ``patch`` among them; null where not defined.
        filter: the name of the harness's filter pipeline.
        details: the whole value of the metric ``patch`` (docs/records.md); empty where nothing was scored.
        place: the place of the filter pipeline among those of the task.
    """

    task: str
    described: Mapping[str, Any]
    metrics: Mapping[str, float | None]
    filter: str
    details: Mapping[str, Any] = field(default_factory=dict)
    place: int = 0

    @property
    def docs(self) -> int:
        """How many docs have a record."""
        return int(self.metrics.get("records") or 0)


def results_files(folder: Path) -> list[Path]:
    """Return the harness's results files under a folder, oldest first.

    Raises:
        RecordError: there is none.
    """
    files = sorted(Path(folder).rglob("[0-9]*_results.json"), key=lambda path: path.name)
    if not files:
        raise RecordError(f"{folder}: no *_results.json here; give the folder that was --output_path of a run")
    return files


@dataclass(frozen=True)
class Taken:
    """The run that a path stands for.

    Attributes:
        path: its results file.
        aside: how many other runs lie in the folder; 0 where a file was given.
        what: what it is the newest of, in a word or two; empty: of all.
    """

    path: Path
    aside: int = 0
    what: str = ""

    @property
    def said(self) -> str:
        """One line that says which run was taken and how another is named; empty where there is only one."""
        if not self.aside:
            return ""
        newest = f"the newest {self.what}" if self.what else "the newest"
        return f"{self.path}: taken as {newest} of {self.aside + 1} runs here ({self.aside} left aside); to take another, give its *_results.json"


def newest(path: Path, fits: Callable[[Path], bool] = lambda file: True, what: str = "") -> Taken:
    """Return the newest run under a path that is of the right kind; where none is, the newest of all, so that its reader can say what it lacks.

    Args:
        path: the ``--output_path`` of runs, or one results file.
        fits: whether a results file is of the right kind; it raises what ``read_results`` does.
        what: the kind in a word or two, such as "with an index".

    Raises:
        RecordError: there is no run, or one that was looked at cannot be read.
    """
    if Path(path).is_file():
        return Taken(Path(path))
    files = results_files(path)
    found = next((file for file in reversed(files) if fits(file)), files[-1]) if len(files) > 1 else files[0]
    return Taken(found, len(files) - 1, what)


def read_json(path: Path) -> dict[str, Any]:
    """Read a results file, as it is.

    Raises:
        RecordError: the file is truncated or not a results file of lmms-eval.
    """
    try:
        data = files.parse_json(Path(path).read_text(encoding="utf-8"))
        if not isinstance(data["configs"], dict) or not all(isinstance(values, dict) for values in data["results"].values()):
            raise TypeError("its tasks are no objects")
        if odd := [key for key in _OF_TASKS if not isinstance(data.get(key) or {}, dict)]:
            raise TypeError(f"{odd[0]} is no object")
        if odd := [key for key in _OBJECTS_OF_TASKS if not all(isinstance(one or {}, dict) for one in (data.get(key) or {}).values())]:
            raise TypeError(f"{odd[0]} is no object of objects")
        if not all(isinstance(members or [], list) for members in (data.get("group_subtasks") or {}).values()):
            raise TypeError("group_subtasks is no object of lists")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(f"{path}: not a whole results file of lmms-eval ({type(error).__name__}: {error})") from None
    return dict(data)


def read_results(path: Path) -> list[TaskResult]:
    """Return the wrapped tasks of a results file, in its order.

    Raises:
        RecordError: the file is truncated or not a results file of lmms-eval.
    """
    return wrapped_tasks(read_json(path), path)


def wrapped_tasks(data: Mapping[str, Any], path: Path) -> list[TaskResult]:
    """Return the wrapped tasks of a results file that was read already.

    Raises:
        RecordError: what describes a wrapped task is not as this version writes it.
    """
    results = data["results"]
    out = []
    for task, config in data["configs"].items():
        described = _description(config)
        if described is None or task not in results:
            continue
        _check_schema(described.get("schema"), path, MAGIC_SCHEMA if described.get("kind") == "magic" else SCHEMA)
        if missing := [key for key in ("base", "kind", "grids", "metric", "options") if key not in described]:
            raise RecordError(f"{path}: {task} is described without its {missing[0]!r}; the file was changed or written by another program")
        if str(described["kind"]) not in KINDS:
            raise RecordError(f"{path}: {task} is of the unknown kind {described['kind']!r}; allowed: {', '.join(KINDS)}")
        if said := wrong(described, {}):
            raise RecordError(f"{path}: {task}: {said}; the file was changed or written by another program")
        for place, (name, values) in enumerate(by_filter(results[task]).items()):
            objects = {name: values.pop(name, None) for name in OBJECTS}  # a wrapped MAGIC task has both
            found = objects["magic" if described["kind"] == "magic" else "patch"]
            details = found if isinstance(found, dict) else {}
            if said := wrong(described, details):
                raise RecordError(f"{path}: {task}: {said}; the file was changed or written by another program")
            flat = {**{key: value for key, value in details.items() if not isinstance(value, dict)}, **values}
            # A judge changes what a MAGIC task is about, and its config, which the response cache goes by, does not know of the judge.
            about = {**described, "metric": (details.get("magic") or {}).get("metric") or described["metric"]}
            out.append(TaskResult(task, about, {key: _finite(value) for key, value in flat.items()}, name, details, place))
    return out


def _description(config: Any) -> dict[str, Any] | None:
    """Return what a config says of a task of ours: a wrapped one, or one of the MAGIC tasks; None of any other."""
    if not isinstance(config, dict):
        return None
    metadata = config.get("metadata")
    found = config.get("lmms_patch")
    if found is None and isinstance(metadata, dict) and isinstance(metadata.get("magic"), dict) and metadata["magic"].get("kind") == "magic":
        found = metadata["magic"]
    return found if isinstance(found, dict) else None


def groups_of(path: Path) -> dict[str, list[str]]:
    """Return the groups of a results file with their members; empty where there is none."""
    found = read_json(path).get("group_subtasks") or {}
    return {group: [str(member) for member in members] for group, members in found.items() if members}


def _finite(value: Any) -> float | None:
    return float(value) if bounds.is_number(value) else None


def by_filter(results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Values of one task by filter pipeline and metric, from the keys ``"<metric>,<filter>"`` of a results file."""
    out: dict[str, dict[str, Any]] = {}
    for key, value in results.items():
        metric, comma, name = key.partition(",")
        if comma and "_stderr" not in metric:
            out.setdefault(name, {})[metric] = value
    return out


def samples_file(results: Path, task: str) -> Path | None:
    """Return the sample log of a task, beside a results file of the same run; None where it was not logged."""
    try:
        path = results.with_name(results.name.removesuffix("_results.json") + f"_samples_{task}.jsonl")
        return path if path.is_file() else None
    except (ValueError, OSError):  # a name with a separator, which would lead elsewhere, or one that no file can have
        return None


def _check_schema(schema: Any, where: object, known: int = SCHEMA) -> None:
    if schema != known:
        raise RecordError(f"{where}: records of schema {schema!r}; this version of lmms-patch reads schema {known}")
