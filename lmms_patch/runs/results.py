"""Results files of lmms-eval, as the harness writes them, and the file beside each that has the long objects of our tasks.

The objects (``results.<task>."patch,<filter>"``) take some 6 kB for each task. So they stand in ``<date>_patch.json``
beside the results file, which names that file under ``lmms_patch``. ``read_json`` puts the two together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.errors import OTHER_VERSION, RecordError, shown

_OBJECTS_OF_TASKS = ("n-samples", "higher_is_better")
_OF_TASKS = ("config", "group_subtasks", "n-shot", "versions", *_OBJECTS_OF_TASKS)
"""What the harness writes of a run beside results and configs: objects, or null; by task, but for ``config``."""

OBJECTS_SCHEMA = 1
"""Of the file beside a results file that has the long objects of its tasks."""

_RESULTS = "[0-9]*_results.json"
_OF_RUNS = (_RESULTS, "[0-9]*_patch.json", "[0-9]*_samples_*.jsonl", "[0-9]*_samples_*.parquet")
"""How the files of a run are named: they begin with its date."""


def results_files(folder: Path) -> list[Path]:
    """Return the harness's results files under a folder, oldest first.

    Raises:
        RecordError: there is none.
    """
    # the names begin with the date
    files = sorted(Path(folder).rglob(_RESULTS), key=lambda path: path.name)
    if not files:
        raise RecordError(f"{folder}: no *_results.json here; give the folder that was --output_path of a run")
    return files


def is_of_run(path: Path) -> bool:
    """Return whether a path is named like a file of a run: results, sample log, or a file of ours beside."""
    return any(fnmatch(path.name, pattern) for pattern in _OF_RUNS)


@dataclass(frozen=True)
class Taken:
    """The run chosen for a path.

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
        """A line about which run was taken, and how to name another; empty where there is only a single run."""
        if not self.aside:
            return ""
        newest = f"the newest {self.what}" if self.what else "the newest"
        return f"{self.path}: taken as {newest} of {self.aside + 1} runs here ({self.aside} left aside); to take another, give its *_results.json"


def newest(path: Path, fits: Callable[[Path], bool] = lambda file: True, what: str = "") -> Taken:
    """Return the newest run under a path of the right kind.

    Where no run is of that kind, return the newest of all, so that its reader can say what the run lacks.

    Args:
        path: the ``--output_path`` of runs, or one results file.
        fits: whether a results file is of the right kind; it raises what ``runs.run.read`` does.
        what: the kind in a word or two, such as "with an index".

    Raises:
        RecordError: there is no run, or one that was looked at cannot be read.
    """
    if Path(path).is_file():
        return Taken(Path(path))
    files = results_files(path)
    # a single file is taken unread: its reader says what it lacks
    found = next((file for file in reversed(files) if fits(file)), files[-1]) if len(files) > 1 else files[0]
    return Taken(found, len(files) - 1, what)


def read_json(path: Path) -> dict[str, Any]:
    """Read a results file, with the objects from the file beside put in their places.

    Raises:
        RecordError: the file is truncated or not a results file of lmms-eval, or the file beside it is missing or
            truncated.
    """
    try:
        content = files.read(Path(path))
        if content.startswith(files.POINTER):
            raise RecordError(f"{path}: {files.PULL}")
        data = files.parse_json(content.decode("utf-8"))
        if not isinstance(data["configs"], dict) or not all(
            isinstance(values, dict) for values in data["results"].values()
        ):
            raise TypeError("its tasks are no objects")
        # checked here, since readers would fail far from here
        told = {key: data[key] for key in _OF_TASKS if data.get(key)}
        if odd := [key for key, one in told.items() if not isinstance(one, dict)]:
            raise TypeError(f"{odd[0]} is no object")
        if odd := [
            key
            for key in _OBJECTS_OF_TASKS
            if any(one and not isinstance(one, dict) for one in told.get(key, {}).values())
        ]:
            raise TypeError(f"{odd[0]} is no object of objects")
        if any(members and not isinstance(members, list) for members in told.get("group_subtasks", {}).values()):
            raise TypeError("group_subtasks is no object of lists")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(f"{path}: not a whole results file of lmms-eval ({type(error).__name__}: {error})") from None
    # readers find an object or no key
    whole = _with_objects(dict(data), Path(path))
    return {key: one for key, one in whole.items() if key in told or key not in _OF_TASKS}


def objects_file(results: Path) -> Path:
    """Return the path of the long objects of a results file: ``<date>_patch.json`` beside the results."""
    return results.with_name(results.name.removesuffix("_results.json") + "_patch.json")


def objects_text(objects: Mapping[str, Mapping[str, Any]], default: Callable[[Any], Any] | None = None) -> bytes:
    """Return the content of the file beside a results file.

    Args:
        objects: by task, the columns that have an object.
        default: makes JSON of what is no plain type.
    """
    return json.dumps(
        {"schema": OBJECTS_SCHEMA, "results": objects}, indent=1, default=default, ensure_ascii=False
    ).encode()


def _with_objects(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Put the objects from the file beside a results file in their places, where the results file names one."""
    if "lmms_patch" not in data:
        return data
    beside = objects_file(path)
    try:
        content = files.read(beside)
        if content.startswith(files.POINTER):
            raise RecordError(f"{beside}: {files.PULL}")
        found = files.parse_json(content.decode("utf-8"))
        if found["schema"] != OBJECTS_SCHEMA:
            raise RecordError(f"{beside}: of schema {shown(found['schema'])}; {OTHER_VERSION}")
        objects = {task: dict(columns) for task, columns in found["results"].items()}
    except FileNotFoundError:
        raise RecordError(
            f"{path}: {beside.name}, which has the intervals of its tasks, is not beside it; copy it there too"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(f"{beside}: not a whole file of lmms-patch ({type(error).__name__}: {error})") from None
    results = {task: {**columns, **objects.get(task, {})} for task, columns in data["results"].items()}
    return {**data, "results": results}


def groups_of(path: Path) -> dict[str, list[str]]:
    """Return the groups of a results file with their members; empty where there is none."""
    found = read_json(path).get("group_subtasks", {})
    return {group: [str(member) for member in members] for group, members in found.items() if members}


def by_filter(results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a task's values by filter pipeline and metric, from the keys ``"<metric>,<filter>"`` of a results file."""
    out: dict[str, dict[str, Any]] = {}
    for key, value in results.items():
        metric, comma, name = key.partition(",")
        if comma and "_stderr" not in metric:
            out.setdefault(name, {})[metric] = value
    return out


def samples_file(results: Path, task: str) -> Path | None:
    """Return a task's sample log, beside a results file of the same run; None where nothing was logged."""
    try:
        path = results.with_name(results.name.removesuffix("_results.json") + f"_samples_{task}.jsonl")
        return path if path.is_file() else None
    except (ValueError, OSError):
        # a name with a separator, which would lead elsewhere, or one that no file can have
        return None


def sample_log(results: Path, task: str) -> Path:
    """Return the sample log of a task.

    Raises:
        RecordError: there is none.
    """
    log = samples_file(results, task)
    if log is None:
        raise RecordError(f"{results}: no sample log of {task} beside it; run with --log_samples")
    return log


def check_docs(log: Path, docs: int, scored: int) -> None:
    """Refuse a sample log with more or fewer docs than the run scored.

    Raises:
        RecordError: the numbers differ.
    """
    if docs != scored:
        raise RecordError(f"{log}: {docs} docs, but the run scored {scored}; the file is not whole, or of another run")
