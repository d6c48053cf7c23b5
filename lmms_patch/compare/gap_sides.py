"""Per-doc scores of finished runs, for the vision-blind gap: of wrapped tasks, and of plain native tasks. Pure.

Of a plain run the harness's own sample log is read, and those of its metrics that have a number per doc.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lmms_patch.ask.kinds import KINDS
from lmms_patch.errors import RecordError
from lmms_patch.runs.logs import line_object
from lmms_patch.runs.record import Record
from lmms_patch.runs.results import by_filter, check_docs, newest, sample_log
from lmms_patch.runs.run import Result, Run, read
from lmms_patch.runs.scoring import Scalar, scalar
from lmms_patch.text import arguments
from lmms_patch.tst import pruned

Which = Literal["full", "blind"]

PLAIN = "plain"
"""The kind of a native task that is not wrapped."""
BLIND_KINDS = ("blind", "tst")


@dataclass(frozen=True)
class GapSide:
    """The full or the blind run, doc by doc.

    Attributes:
        task: the task's name in its run.
        base: the benchmark: the base task of a wrapped task, a plain task's own name.
        kind: ``plain``, or the kind of the wrapped task (``ask.kinds.KINDS``).
        metric: the metric of the scores.
        scores: by doc id, on the metric's own scale; None: unscored.
        clusters: by doc id, what is resampled together; only docs where it is known.
        groups: by doc id, answer class and category; only docs where they are known.
        higher: whether higher scores are better.
        model: the model and its arguments; "" where the run does not say.
        warnings: what a reader must know, one line each.
        file: the results file; None where it was not read from one.
    """

    task: str
    base: str
    kind: str
    metric: str
    scores: Mapping[int, Scalar]
    clusters: Mapping[int, Hashable] = field(default_factory=dict)
    groups: Mapping[int, Hashable] = field(default_factory=dict)
    higher: bool = True
    model: str = ""
    warnings: tuple[str, ...] = ()
    file: Path | None = field(default=None, compare=False)


@dataclass(frozen=True)
class _Task:
    """A task of a run, wrapped or plain.

    Attributes:
        run: the run.
        task: its name.
        result: its result, of the first filter pipeline; None for a plain task.
        taken: a line on the choice among several runs (``results.Taken``).
    """

    run: Run
    task: str
    result: Result | None
    taken: str = ""

    @property
    def base(self) -> str:
        """The benchmark (``GapSide``)."""
        return self.task if self.result is None else self.result.base

    @property
    def kind(self) -> str:
        """The kind (``GapSide``)."""
        return PLAIN if self.result is None else self.result.kind.name

    @property
    def filters(self) -> list[dict[str, Any]]:
        """Of each filter pipeline the aggregated values by metric."""
        return list(by_filter(self.run.written[self.task]).values())

    @property
    def values(self) -> Mapping[str, Any]:
        """The aggregated values of the first filter pipeline."""
        return next(iter(self.filters), {})

    def higher(self, metric: str) -> bool:
        """Return whether a metric is better when higher."""
        told = self.run.about["higher_is_better"].get(self.task) or {}
        known = {name: bool(value) for name, value in told.items() if value is not None}
        own = {} if self.result is None else self.result.details.get("higher_is_better", {})
        return bool({**known, **own}.get(metric, True))

    def check_docs(self, log: Path, docs: int) -> None:
        """Refuse an empty log, and a plain task's log with fewer docs than scored."""
        counts = self.run.counted(self.task)
        if counts is not None and self.result is None:
            check_docs(log, docs, counts.effective)
        if not docs:
            raise RecordError(f"{log}: no docs in this sample log")


def read_side(path: Path, which: Which, *, task: str | None = None, metric: str | None = None) -> GapSide:
    """Return the full or the blind side from a finished run.

    Args:
        path: the folder that was --output_path, or a results file.
        which: ``full``: an rci, pcri or occlude task, or a plain native task. ``blind``: a blind or tst task.
        task: the task's name, or its base's, where the run has several.
        metric: another metric than the primary one; a plain task with several metrics needs it.

    Raises:
        RecordError: no such task or several, no sample log, a metric that is not there.
    """
    tasks = _candidates(Path(path), which, lambda one: task in (None, one.task, one.base))
    named = [one for one in tasks if task in (None, one.task)] or [one for one in tasks if one.base == task]
    best = _preferred(named)
    if not best:
        raise RecordError(f"{path}: no task {task!r} for the {which} side; allowed: {_names(tasks)}")
    if len(best) > 1:
        raise RecordError(f"{path}: {len(best)} tasks for the {which} side ({_names(best)}); choose one with --task")
    return _side(best[0], metric)


def read_pair(
    full: Path, blind: Path, *, task: str | None = None, metric: str | None = None
) -> tuple[GapSide, GapSide]:
    """Return both sides: the tasks of the same benchmark in two runs; both paths may name the same run.

    Args:
        full: folder or results file of the run with the image.
        blind: the same of the run without.
        task: name of a task on either side, or of the base, where there are several pairs.
        metric: see ``read_side``; default: the blind task's primary metric.

    Raises:
        RecordError: as ``read_side``; no pair, or several.
    """
    theirs = _candidates(
        Path(blind),
        "blind",
        lambda one: task is None or task in (one.task, one.base) or task.startswith(f"{one.base}_"),
    )
    # The blind run decides the benchmark: a full run often has many more tasks.
    bases = {one.base for one in theirs}
    ours = _candidates(Path(full), "full", lambda one: one.base in bases)
    pairs = _pairs(ours, theirs, task)
    if not pairs:
        what = "no two tasks of one benchmark" if task is None else f"no pair of tasks of {task!r}"
        raise RecordError(f"{what}: the full run has {_names(ours)}, the blind run {_names(theirs)}")
    if len(pairs) > 1:
        listed = ", ".join(f"{a.task} and {b.task}" for a, b in pairs)
        raise RecordError(
            f"{len(pairs)} pairs of tasks of one benchmark ({listed}); choose one with --task {pairs[0][1].task}"
        )
    dark = _side(pairs[0][1], metric)
    # Plain scores are read by the same keys as the wrapped task reads them, so that both sides are on one scale.
    keys = _score_keys(pairs[0][1].result)
    return _side(pairs[0][0], dark.metric, keys), dark


def _pairs(ours: Sequence[_Task], theirs: Sequence[_Task], task: str | None) -> list[tuple[_Task, _Task]]:
    """Return the pairs of tasks with the same base, where ``task`` names either task or the base."""
    pairs = [(a, b) for a in ours for b in theirs if a.base == b.base and task in (None, a.task, b.task, a.base)]
    full = {(one.base, one.task) for one in _preferred([a for a, _ in pairs])}
    return [(a, b) for a, b in pairs if (a.base, a.task) in full]


def _preferred(tasks: Sequence[_Task]) -> list[_Task]:
    """Keep a single full side for each base, and all blind sides.

    All full sides show the same image, and a wrapped task is preferred as it also says which docs belong together.
    Blind sides differ.
    """
    out: dict[tuple[str, str], _Task] = {}
    for one in sorted(tasks, key=lambda one: one.kind == PLAIN):
        out.setdefault((one.base, one.task if one.kind in BLIND_KINDS else ""), one)
    return list(out.values())


def _candidates(path: Path, which: Which, sought: Callable[[_Task], bool]) -> list[_Task]:
    """Return the tasks suited for a side, from the newest run with the sought task.

    Raises:
        RecordError: there is none.
    """

    def fitting(file: Path) -> list[_Task]:
        return [
            one
            for one in _tasks(file)
            if (one.kind in BLIND_KINDS if which == "blind" else one.kind == PLAIN or KINDS[one.kind].full)
        ]

    taken = newest(path, lambda file: any(map(sought, fitting(file))), f"with a task for the {which} side")
    file = taken.path
    fits = [dataclasses.replace(one, taken=taken.said) for one in fitting(file)]
    if not fits:
        wanted = (
            "a task such as gqa, or gqa_rci3," if which == "full" else "a blind task, such as gqa_blind or gqa_tst5,"
        )
        raise RecordError(
            f"{file}: no {which} side in this run ({_names(_tasks(file))}); ask for {wanted} with --log_samples"
        )
    return fits


def _names(tasks: Sequence[_Task]) -> str:
    return ", ".join(one.task for one in tasks) or "no task"


def _tasks(file: Path) -> list[_Task]:
    """Return all tasks of a results file, wrapped and plain, in its order.

    Raises:
        RecordError: the file is truncated or not a results file of lmms-eval.
    """
    run = read(file)
    wrapped = {result.task: result for result in run.results if not result.place}
    plain = {task for task, config in run.configs.items() if not (isinstance(config, dict) and "lmms_patch" in config)}
    return [
        _Task(run, task, wrapped.get(task))
        for task in run.configs
        if task in run.written and (task in wrapped or task in plain)
    ]


def _side(task: _Task, metric: str | None, keys: Sequence[str] = ("score",)) -> GapSide:
    log = sample_log(task.run.path, task.task)
    side = (
        _plain_side(task, log, metric, keys) if task.result is None else _wrapped_side(task, task.result, log, metric)
    )
    left_out = (
        (0 if task.result is None else sum(not record.is_asked for record in task.result.records()))
        if log.is_file()
        else 0
    )
    part = (
        f"{task.task}: {left_out} docs were not asked (a quick run); gaps are of the others, a random part of the docs"
        if left_out
        else ""
    )
    warnings = tuple(filter(None, [task.taken, part, *_doubts(task, side)]))
    model = " ".join(filter(None, [arguments(task.run.adapter), task.run.model_args]))
    return dataclasses.replace(side, model=model, warnings=warnings, file=task.run.path)


def _wrapped_side(task: _Task, result: Result, log: Path, metric: str | None) -> GapSide:
    records = list(result.records(lean=False))
    task.check_docs(log, len(records))
    metric = metric or str(result.metric)
    known = {name for record in records for name in record.views[0].scores}
    if metric not in known:
        raise RecordError(
            f"{task.task}: no metric {metric!r} in the log; allowed: {', '.join(sorted(known)) or 'none (nothing was scored)'}"
        )
    scores = {record.doc_id: record.views[0].scores.get(metric) for record in records}
    clusters = {record.doc_id: of for record in records if (of := _cluster(record.fields)) is not None}
    groups = {record.doc_id: group for record in records if (group := _group(record)) is not None}
    return GapSide(task.task, task.base, task.kind, metric, scores, clusters, groups, task.higher(metric))


def _cluster(fields: Mapping[str, Any]) -> str | None:
    label = fields.get("cluster") if fields.get("cluster") is not None else fields.get("group")
    return None if label is None else repr(label)


def _group(record: Record) -> tuple[str, str] | None:
    """Return answer class and category; None where the record has neither."""
    answer, category = record.answer, record.fields.get("category")
    label = answer.label or answer.format
    return (label, "" if category is None else repr(category)) if label or category is not None else None


def _score_keys(result: Result | None) -> tuple[str, ...]:
    """Return the keys for the scalar in an item, as in the wrapped task."""
    named = None if result is None else result.options.score
    return ("score",) if not named else (named,) if isinstance(named, str) else tuple(named)


def _plain_side(task: _Task, log: Path, metric: str | None, keys: Sequence[str]) -> GapSide:
    """Read a native log with a line per doc and filter; the first line of each doc counts."""
    lines: dict[int, dict[str, Any]] = {}
    values = task.values
    with open(log, "rb") as file:
        for number, text in enumerate(file, 1):
            line = _line(text, f"{log}, line {number}")
            lines.setdefault(line["doc_id"], {name: line.get(name) for name in values})
    task.check_docs(log, len(lines))
    scores = {name: {doc_id: scalar(line[name], keys) for doc_id, line in lines.items()} for name in values}
    numeric = [name for name, own in scores.items() if any(score is not None for score in own.values())]
    chosen = _choose(task.task, metric, numeric)
    return GapSide(task.task, task.base, PLAIN, chosen, scores[chosen], higher=task.higher(chosen))


def _choose(task: str, metric: str | None, numeric: Sequence[str]) -> str:
    """Return the named metric, or the only metric with a number for each doc."""
    if not numeric:
        raise RecordError(
            f"{task}: no metric has a number for each doc in the log of this plain task; run {task}_rci2 in its place"
        )
    if metric is None and len(numeric) > 1:
        raise RecordError(f"{task}: several metrics in the log; choose one with --metric: {', '.join(numeric)}")
    if metric is not None and metric not in numeric:
        raise RecordError(
            f"{task}: no metric {metric!r} with a number for each doc in the log; allowed: {', '.join(numeric)}"
        )
    return metric or numeric[0]


def _line(text: bytes, where: str) -> dict[str, Any]:
    line = line_object(text, where)
    if not isinstance(line.get("doc_id"), int):
        raise RecordError(f"{where}: no doc_id; this is not a sample log of lmms-eval")
    return line


def _doubts(task: _Task, side: GapSide) -> list[str]:
    """Return warnings about the side's scores."""
    out = []
    if len(task.filters) > 1:
        out.append(f"{task.task}: {len(task.filters)} filters in the run; the scores are those of the first")
    scored = [score for score in side.scores.values() if score is not None]
    told = task.values.get(side.metric)
    if scored and isinstance(told, (int, float)) and not isinstance(told, bool):
        mean = math.fsum(scored) / len(scored)
        # some metrics are aggregated in percent
        if not any(math.isclose(told, mean * scale, rel_tol=1e-3, abs_tol=1e-6) for scale in (1, 100)):
            out.append(
                f"{task.task}: the run's own {side.metric} is {told:.4g}, not the mean over docs, {mean:.4g}; gaps are those of means"
            )
    return out


# --- reading the subset -------------------------------------------------------------------------


def read_subset(path: Path, base: str | None = None) -> set[int]:
    """Read the doc ids of a subset.

    Args:
        path: the folder of a pruning, its ``pruned.json`` or ``kept_ids.txt``, or a text file with one doc id a line.
        base: the benchmark that it must be of, where the pruning names its benchmark.

    Raises:
        RecordError: none of these, or of another benchmark.
    """
    path = Path(path)
    if path.is_dir():
        return _of_pruning(path / "pruned.json", base)
    if path.suffix == ".json":
        return _of_pruning(path, base)
    beside = path.with_name("pruned.json")
    if path.name == "kept_ids.txt" and beside.is_file():
        return _of_pruning(beside, base)
    return _of_text(path)


def _of_pruning(path: Path, base: str | None) -> set[int]:
    if not path.exists():
        raise RecordError(
            f"{path}: not there; give the folder of a finished pruning, or a text file with one doc id a line"
        )
    pruning = pruned.read(path)
    if base is not None and pruning.base not in ("", base):
        raise RecordError(f"{path}: a pruning of {pruning.base}, but the runs are of {base}")
    if not pruning.kept:
        raise RecordError(f"{path}: no kept docs")
    return {one.doc_id for one in pruning.kept}


def _of_text(path: Path) -> set[int]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = type(error).__name__
        raise RecordError(
            f"{path}: cannot be read ({why}); give the folder of a pruning, or a text file with one doc id a line"
        ) from None
    out = set()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        # ``int`` would take digits of other scripts, too
        if not re.fullmatch(r"\d{1,15}", line.strip(), re.ASCII):
            said = line.strip()[:40]
            raise RecordError(
                f"{path}, line {number}: {said!r} is no doc id; write one whole number a line, or give the folder of the pruning"
            )
        out.add(int(line))
    if not out:
        raise RecordError(f"{path}: no doc ids")
    return out
