"""What a run leaves for each doc: the ``patch`` object of a sample-log line, schema version 2.

The schema is written down in docs/records.md. This module makes the object from scored views, and
reads it back from a finished run's files; it needs neither the model, the dataset nor lmms_eval.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.ask.spec import KINDS, REGIONS, Key, WrapSpec
from lmms_patch.ask.views import Region, Size, View
from lmms_patch.errors import RecordError
from lmms_patch.runs import expect
from lmms_patch.runs.record_checks import fault, is_right, wrong_views
from lmms_patch.runs.scoring import Scalar, best, plain
from lmms_patch.stats import bounds

SCHEMA = 2
MAGIC_SCHEMA = 1
"""Of the ``magic`` objects that MAGIC tasks leave in place of ``patch`` (``magic.results``)."""
OBJECTS = ("patch", "magic")
_OBJECTS_OF_TASKS = ("n-samples", "higher_is_better")
_OF_TASKS = ("config", "group_subtasks", "n-shot", "versions", *_OBJECTS_OF_TASKS)
"""What the harness writes of a run beside results and configs: objects, or null; by task, but for ``config``."""


@dataclass(frozen=True)
class ScoredView:
    """One view of a doc, scored by the base task.

    Attributes:
        view: which view.
        items: native item of each metric, as the base's ``process_results`` returned it.
        scores: scalar of each metric (fraction, or whatever the metric's own scale is), None: unscored.
        error: why there is no score (the scorer's exception, in one line); None where it scored.
        from_m: the metric whose scalar is the aggregation of its one item, if any; not logged.
        failed: what came in place of an answer, in one short line: the view is unscored. Its items are for the native metric; not logged.
    """

    view: View
    items: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, Scalar] = field(default_factory=dict)
    error: str | None = None
    from_m: str | None = None
    failed: str = ""

    @property
    def unscored(self) -> bool:
        """Whether the view has no score because its call or its scorer failed."""
        return bool(self.failed) or self.error is not None


@dataclass(frozen=True)
class Baseline:
    """One uninformed (or gold) answer of a doc, scored by the base task.

    Attributes:
        answer: what was answered.
        roles: ``gold``, ``option``, ``constant``, ``stratum``, ``other`` (``planning.Plan``).
        items, scores: as in ``ScoredView``.
    """

    answer: str
    roles: tuple[str, ...]
    items: Mapping[str, Any]
    scores: Mapping[str, Scalar]

    def to_json(self) -> dict[str, Any]:
        """In plain JSON types; items that are no more than their scalar are left out."""
        items = {m: item for m, item in self.items.items() if plain(item) != self.scores.get(m)}
        return {"answer": self.answer, "roles": list(self.roles), "scores": plain(self.scores), **({"items": plain(items)} if items else {})}


@dataclass(frozen=True)
class Lent:
    """This doc's answers under the gold of another doc, for the primary metric.

    Attributes:
        to: the other doc.
        p: the number of this donor among its donors, from 0.
        full: scalar of the full image's answer.
        best: for each set (``spec.Key``) that this doc is used for, scalar of the best cell's or box's answer.
    """

    to: int
    p: int
    full: Scalar
    best: Mapping[Key, Scalar]


@dataclass(frozen=True)
class WrongImage:
    """A doc's question, asked on another doc's image.

    Attributes:
        source: the doc whose images were shown.
        sizes: width and height in pixels of each.
        views: the scored views; none where they are the doc's only views (a ``_swap`` task).
        said: of each view, what was answered, short: equal for equal answers.
    """

    source: int
    sizes: tuple[Size, ...]
    views: tuple[ScoredView, ...] = ()
    said: tuple[str, ...] = ()

    def to_json(self, first_only: bool) -> dict[str, Any]:
        """In plain JSON types (docs/records.md)."""
        sizes = self.sizes[:1] if first_only else self.sizes
        views = [{**_view_json(view, sizes), "said": said} for view, said in zip(self.views, self.said, strict=True)]
        return {"from": int(self.source), "image_sizes": [list(size) for size in self.sizes], **({"views": views} if views else {})}


@dataclass(frozen=True)
class SampleRecord:
    """All views of one doc.

    Attributes:
        task: the wrapped task's name.
        spec: what was asked.
        doc_id: the doc's row in the base task's eval split.
        sizes: width and height in pixels of each image of the doc.
        views: the scored views, in request order.
        best: for each set of views (a grid, or the relevant or adversarial boxes), the index into ``views`` of the best one for the
            primary metric; only sets for which the doc is used.
        excluded: for each set for which the doc is not used, the reason.
        fields: values of the doc fields that the options name (cluster, group, category, stratum, choices).
        answer: how the doc is to be answered: format, label (answer class), number of options, gold; empty where it is not known.
        stratum: the name of the doc's stratum.
        baselines: uninformed answers and the gold, scored.
        lent: this doc's answers under other docs' golds.
        tst: what the text-only cross-validation says of the doc (docs/records.md); empty for other kinds.
        wrong_image: the doc's question on another doc's image; None where it was not asked so.
        images: digest of the images that the doc shows; empty where it shows none.
    """

    task: str
    spec: WrapSpec
    doc_id: int
    sizes: tuple[Size, ...]
    views: tuple[ScoredView, ...]
    best: Mapping[Key, int]
    excluded: Mapping[Key, str]
    fields: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    stratum: str = ""
    baselines: tuple[Baseline, ...] = ()
    lent: tuple[Lent, ...] = ()
    tst: Mapping[str, Any] = field(default_factory=dict)
    wrong_image: WrongImage | None = None
    images: str = ""

    def to_json(self) -> dict[str, Any]:
        """The ``patch`` object, in plain JSON types (docs/records.md)."""
        lent = [key for key in self.spec.sets if any(key in loan.best for loan in self.lent)]
        return {
            "schema": SCHEMA,
            "task": self.task,
            "base": self.spec.base,
            "kind": self.spec.kind,
            "grids": list(self.spec.grids),
            "doc_id": int(self.doc_id),
            "image_sizes": [list(size) for size in self.sizes],
            **({"images": self.images} if self.images else {}),
            "views": [_view_json(view, self.sizes[:1] if self.spec.options.images == "first" else self.sizes) for view in self.views],
            "best": {str(n): index for n, index in self.best.items()},
            "excluded": {str(n): reason for n, reason in self.excluded.items()},
            **({"fields": plain(self.fields)} if self.fields else {}),
            **({"answer": plain(self.answer), "stratum": self.stratum} if self.answer else {}),
            **({"baselines": [one.to_json() for one in self.baselines]} if self.baselines else {}),
            **({"lent": _lent_json(self.lent, lent)} if self.lent else {}),
            **({"tst": plain(self.tst)} if self.tst else {}),
            **({"wrong_image": self.wrong_image.to_json(self.spec.options.images == "first")} if self.wrong_image else {}),
        }


def _lent_json(lent: Sequence[Lent], sets: Sequence[Key]) -> dict[str, Any]:
    """By column, one entry per loan."""
    return {
        "to": [loan.to for loan in lent],
        "p": [loan.p for loan in lent],
        "full": [loan.full for loan in lent],
        "best": {str(key): [loan.best.get(key) for loan in lent] for key in sets},
    }


def _view_json(scored: ScoredView, sizes: Sequence[Size]) -> dict[str, Any]:
    out = _where(scored.view, tuple(sizes)) | {"scores": plain(scored.scores), "items": {} if scored.failed else plain(scored.items)}
    if scored.error is not None:
        out["error"] = scored.error
    if scored.failed:
        out["failed"] = scored.failed
    return out


@functools.lru_cache(maxsize=4096)
def _where(view: View, sizes: tuple[Size, ...]) -> dict[str, Any]:
    """Return what a record says of a view but its scores; many docs share it."""
    out: dict[str, Any] = {"kind": view.kind, **({"swapped": True} if view.swapped else {})}
    if view.n:
        out["n"] = view.n
    if view.cell is not None:
        out |= {"cell": view.cell, "row": view.row, "col": view.col, "boxes": [list(view.box(size) or ()) for size in sizes]}
    if isinstance(view, Region):
        out |= {"region": view.number, "relevant": view.relevant, "boxes": [list(view.area)]}
    return out


def cells_of(views: Sequence[View], key: Key) -> list[int]:
    """The indices of the views of one set: the cells of a grid, or the relevant or adversarial boxes; in their order."""
    return [i for i, view in enumerate(views) if view.set == key]


def in_set(view: Mapping[str, Any], key: Key) -> bool:
    """Whether a view, as a record writes it, is of this set."""
    return view.get("n") == key and "cell" in view if isinstance(key, int) else view.get("relevant") is (key == REGIONS[0])


def best_cell(views: Sequence[ScoredView], key: Key, metric: str, higher_is_better: bool = True) -> int | None:
    """The index into ``views`` of the best view of a set for a metric; ties go to the first.

    Returns:
        None where none is scored.
    """
    cells = cells_of([v.view for v in views], key)
    place = best([views[i].scores.get(metric) for i in cells], higher_is_better)
    return None if place is None else cells[place]


# --- reading a finished run -------------------------------------------------------------------


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
    """The harness's results files under a folder, oldest first.

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
    """A results file, as it is.

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
    """The wrapped tasks of one results file, in its order.

    Raises:
        RecordError: the file is truncated or not a results file of lmms-eval.
    """
    return wrapped_tasks(read_json(path), path)


def wrapped_tasks(data: Mapping[str, Any], path: Path) -> list[TaskResult]:
    """The wrapped tasks of a results file that was read already.

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
        if said := expect.wrong(described, {}):
            raise RecordError(f"{path}: {task}: {said}; the file was changed or written by another program")
        for place, (name, values) in enumerate(by_filter(results[task]).items()):
            objects = {name: values.pop(name, None) for name in OBJECTS}  # a wrapped MAGIC task has both
            found = objects["magic" if described["kind"] == "magic" else "patch"]
            details = found if isinstance(found, dict) else {}
            if said := expect.wrong(described, details):
                raise RecordError(f"{path}: {task}: {said}; the file was changed or written by another program")
            flat = {**{key: value for key, value in details.items() if not isinstance(value, dict)}, **values}
            # A judge changes what a MAGIC task is about, and its config, which the response cache goes by, does not know of the judge.
            about = {**described, "metric": (details.get("magic") or {}).get("metric") or described["metric"]}
            out.append(TaskResult(task, about, {key: _finite(value) for key, value in flat.items()}, name, details, place))
    return out


def _description(config: Any) -> dict[str, Any] | None:
    """What a config says of a task of ours: a wrapped one, or one of the MAGIC tasks; None of any other."""
    if not isinstance(config, dict):
        return None
    metadata = config.get("metadata")
    found = config.get("lmms_patch")
    if found is None and isinstance(metadata, dict) and isinstance(metadata.get("magic"), dict) and metadata["magic"].get("kind") == "magic":
        found = metadata["magic"]
    return found if isinstance(found, dict) else None


def groups_of(path: Path) -> dict[str, list[str]]:
    """The groups of a results file with their members; empty where there is none."""
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
    """The sample log of a task, beside a results file of the same run; None where it was not logged."""
    try:
        path = results.with_name(results.name.removesuffix("_results.json") + f"_samples_{task}.jsonl")
        return path if path.is_file() else None
    except (ValueError, OSError):  # a name with a separator, which would lead elsewhere, or one that no file can have
        return None


def _check_schema(schema: Any, where: object, known: int = SCHEMA) -> None:
    if schema != known:
        raise RecordError(f"{where}: records of schema {schema!r}; this version of lmms-patch reads schema {known}")


def read_samples(path: Path, filter_place: int | None = None, *, lean: bool = False) -> Iterator[dict[str, Any]]:
    """The ``patch`` objects of a sample log, in file order.

    Args:
        path: the log.
        filter_place: only those of this filter pipeline: the host writes a line per doc and filter, in the order of the filters.
        lean: without the boxes, and with equal views and baselines as one object: a tenth of the memory. Only to read.

    Raises:
        RecordError: a line that is cut or has no ``patch``, a part of another type, records of an unknown schema, or a doc twice.
    """
    shared: dict[str, Any] = {}
    for sample in read_lines(path, filter_place):
        yield lean_record(sample["patch"], shared) if lean else sample["patch"]


def read_lines(path: Path, filter_place: int | None = None) -> Iterator[dict[str, Any]]:
    """The lines of a wrapped task's sample log, checked as ``read_samples`` says."""
    seen: Counter[int] = Counter()
    for number, sample in json_lines(path):
        where = f"{path}, line {number}"
        record = sample.get("patch")
        if not isinstance(record, dict):
            raise RecordError(f"{where}: no 'patch' object; this is not the log of a wrapped task")
        _check_schema(record.get("schema"), where)
        if not is_right(record):
            raise RecordError(f"{where}: {fault(record)}; the file was changed or written by another program")
        doc_id = record["doc_id"]
        seen[doc_id] += 1
        if filter_place is None or seen[doc_id] == filter_place + 1:
            yield sample
    often = min(seen.values(), default=0)
    twice = [doc_id for doc_id, times in seen.items() if times != often]
    if twice:
        raise RecordError(
            f"{path}: doc {twice[0]} is there {seen[twice[0]]} times, others {often} times; each doc has one line per filter: two runs in one file?"
        )


def lean_record(record: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """The record with its views (without boxes) and baselines replaced by equal ones that were there before, in ``shared``."""

    def lean(views: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        found = [{key: value for key, value in view.items() if key != "boxes"} for view in views]
        return [shared.setdefault(repr(view), view) for view in found]

    record["views"] = lean(record["views"])
    if wrong := wrong_views(record):
        record["wrong_image"] = {**record["wrong_image"], "views": lean(wrong)}
    if "baselines" in record:
        record["baselines"] = [shared.setdefault(repr(one), one) for one in record["baselines"]]
    record["image_sizes"] = shared.setdefault(repr(record.get("image_sizes")), record.get("image_sizes"))
    for key in ("stratum", "task", "base"):
        record[key] = shared.setdefault(key + str(record.get(key)), record.get(key))
    record["answer"] = shared.setdefault(repr(record.get("answer", {})), record.get("answer", {}))
    return record


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines of a sample log as objects, each with its number from 1.

    Raises:
        RecordError: the log cannot be opened, or a line is cut, or no JSON object.
    """
    try:
        lines = open(path, "rb")  # noqa: SIM115 - closed below; only opening it is a matter of this message
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from None
    with lines:
        for number, line in enumerate(lines, 1):
            try:
                sample = json.loads(line)
            except (ValueError, RecursionError):
                sample = None
            if not isinstance(sample, dict):
                raise RecordError(f"{path}, line {number}: cut or not JSON; the run did not finish writing this file")
            yield number, sample
