"""The MAGIC tasks of finished runs: their numbers, and what other boxes change (``compare.contrast``). Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_patch.compare import magic
from lmms_patch.compare.contrast import CONTRASTS, Contrast, contrast
from lmms_patch.errors import OptionError, RecordError, nearest
from lmms_patch.magic.method import read
from lmms_patch.magic.score import logs, results
from lmms_patch.magic.score.logs import Line
from lmms_patch.runs import run as runs
from lmms_patch.runs.results import sample_log
from lmms_patch.stats.resample import Estimate

Lines = list[Line]

_STEM = re.compile(r"_(?:relevant|nobox|selfheal)$")
_SAME = ("limit", "few-shot", "system instruction", "generation", "benchmark version", "lmms-eval version", "judge")
"""Parts of a fingerprint that two variants of one run share."""
_ASKED = {
    "seed": "the numbering of boxes",
    "examples": "in-context examples",
    "pixels": "how boxes are drawn",
    "prompts": "the prompt's wording",
}
"""What else two variants of one run share, of what the run wrote of a task."""


@dataclass(frozen=True)
class MagicTask:
    """A MAGIC task of a finished run.

    Attributes:
        model: a name for the model, told apart from the others shown.
        result: its result.
        numbers: every metric (``magic.results``) with its interval, as the run computed it.
    """

    model: str
    result: runs.Result
    numbers: Mapping[str, Estimate]

    @property
    def task(self) -> str:
        """The task's name."""
        return self.result.task

    @property
    def about(self) -> Mapping[str, Any]:
        """The ``magic`` object in the run's file (docs/magic.md): variant, dataset, judge, counts, warnings, ..."""
        return dict(self.result.details["magic"])

    @property
    def variant(self) -> str:
        """The variant, out of ``magic.results.VARIANTS``."""
        return str(self.about["variant"])


@dataclass(frozen=True)
class Contrasted:
    """Two tasks of a model, compared item by item.

    Attributes:
        model: as in ``MagicTask``.
        first, second: names of the tasks; differences are second less first.
        found: the differences.
        minds: what to mind, one line each.
    """

    model: str
    first: str
    second: str
    found: Contrast
    minds: tuple[str, ...] = ()


@dataclass(frozen=True)
class MagicRuns:
    """What finished runs say of MAGIC.

    Attributes:
        tasks: of each model and task the newest result; by model, data and variant.
        contrasts: where a model has two variants of the same data.
        notes: what was left aside, and why; one line each.
    """

    tasks: tuple[MagicTask, ...]
    contrasts: tuple[Contrasted, ...]
    notes: tuple[str, ...]


def gather(paths: Sequence[str | Path]) -> MagicRuns:
    """Return the MAGIC tasks of some runs, and the contrasts between their variants.

    Args:
        paths: folders of runs (``--output_path``), or results files.

    Raises:
        RecordError: no run, a file that cannot be read, or no MAGIC task.
    """
    newest, older = runs.newest(result for run in runs.find([Path(path) for path in paths]) for result in run.results)
    asked = [result for result in newest if result.kind.name == "magic"]
    scored = [result for result in asked if result.details.get("magic")]
    notes = [f"{result.task}: nothing was scored" for result in asked if not result.details.get("magic")]
    if not scored:
        said = f" ({'; '.join(notes)})" if notes else "; ask for one, such as --tasks magic_mosaic"
        raise RecordError(f"{', '.join(map(str, paths))}: no MAGIC task in this run{said}")
    names = runs.labels(result.run for result in scored)
    tasks = [MagicTask(names[result.run.identity], result, numbers_of(result)) for result in scored]
    if odd := [task for task in tasks if task.variant not in results.VARIANTS]:
        raise RecordError(
            f"{odd[0].result.run.path}: {odd[0].task}: no variant {odd[0].variant!r}; there is {', '.join(results.VARIANTS)}"
        )
    tasks.sort(key=lambda task: (task.model, _STEM.sub("", task.task), results.VARIANTS.index(task.variant)))
    if older:
        notes.append(f"{older} older result{'s' * (older > 1)} of the same tasks left aside")
    contrasts, why = _contrasts(tasks)
    return MagicRuns(tuple(tasks), contrasts, (*notes, *why))


def numbers_of(result: runs.Result) -> dict[str, Estimate]:
    """Return every metric of a MAGIC task, as computed in the run."""
    return {name: one for name, one in result.measures.items() if name in result.details["magic"]["numbers"]}


def lines_of(path: Path, task: str | None = None) -> tuple[str, Lines]:
    """Return the name of a MAGIC task of a run, and the lines of its sample log.

    Args:
        path: ``--output_path`` of the run (of several the newest with such a task), or its results file.
        task: the task; None: the one with all boxes, else the only one.

    Raises:
        OptionError: there is no such task, several, or one whose responses only go on from injected steps.
        RecordError: no run, no MAGIC task, or a log that is missing or not whole.
    """
    newest, _ = runs.newest(result for run in runs.find([path]) for result in run.results)
    there = [(result, str(result.described.get("variant") or "")) for result in newest if result.kind.name == "magic"]
    if not there:
        raise RecordError(f"{path}: no MAGIC task in this run; ask for one, such as --tasks magic_mosaic")
    if task is not None:
        chosen = [one for one in there if one[0].task == task]
    else:
        with_steps = [one for one in there if one[1] != "selfheal"]
        chosen = [one for one in with_steps if one[1] == "all"] or with_steps
    if not chosen:
        names = list(dict.fromkeys(result.task for result, _ in there))
        close = nearest(task or "", names)
        raise OptionError(
            f"{path}: no task {task!r} with steps of its own; "
            + (f"did you mean {close[0]}?" if close else f"there: {', '.join(names)}")
        )
    if len(chosen) > 1:
        which = sorted({f"{result.task} of {result.run.model}" for result, _ in chosen})
        raise OptionError(
            f"{path}: several tasks ({', '.join(which)}); name one by --task, or give one run's *_results.json"
        )
    result, variant = chosen[0]
    if variant == "selfheal":
        raise OptionError(
            f"{result.task}: its responses go on from injected steps; label the steps of a task such as magic"
        )
    return result.task, [
        line
        for line in logs.lines(sample_log(result.run.path, result.task), result.place)
        if line.record.failed is None
    ]


# --- contrasts --------------------------------------------------------------------------------------


def _contrasts(tasks: Sequence[MagicTask]) -> tuple[tuple[Contrasted, ...], tuple[str, ...]]:
    """Return every contrast possible between the tasks, and the reasons for missing contrasts."""
    contrasts, notes = [], []
    logs_read: dict[tuple[Path, str, int], Lines] = {}
    for name, (variant, other_variant) in CONTRASTS.items():
        for first in (task for task in tasks if task.variant == variant):
            others = [task for task in tasks if task.variant == other_variant and task.model == first.model]
            partners = [task for task in others if task.about.get("dataset") == first.about.get("dataset")]
            # of several partners those whose name says that they belong together
            partners = [task for task in partners if _STEM.sub("", task.task) == _STEM.sub("", first.task)] or partners
            if not partners:
                data = first.about.get("dataset")
                notes += [
                    f"{task.task} (of {task.about.get('dataset')}) is not compared with {first.task} (of {data}): other data"
                    for task in others
                ]
            for second in partners:
                try:
                    lines = [_lines(task, logs_read) for task in (first, second)]
                    contrasts.append(_contrast(name, first, second, lines))
                except RecordError as error:
                    notes.append(
                        f"{second.task} is not compared with {first.task}: {_without_folders(error, first, second)}"
                    )
    return tuple(contrasts), tuple(dict.fromkeys(notes))


def _without_folders(error: RecordError, *tasks: MagicTask) -> str:
    """Return what went wrong with files named but not where they lie: notes stand in reports."""
    said = str(error)
    for task in tasks:
        said = said.replace(f"{task.result.run.path.parent}{os.sep}", "")
    return said


def _lines(task: MagicTask, logs_read: dict[tuple[Path, str, int], Lines]) -> Lines:
    """Return the lines of a task's log; each log is read once.

    Raises:
        RecordError: it is missing, not whole, or of another run.
    """
    key = task.result.run.path, task.task, task.result.place
    if key not in logs_read:
        logs_read[key] = list(read(task.result).values())
    return logs_read[key]


def _contrast(name: str, first: MagicTask, second: MagicTask, lines: Sequence[Lines]) -> Contrasted:
    golds: list[dict[str, str]] = [{line.record.item: str(line.target) for line in side} for side in lines]
    if other := [item for item in golds[0] if item in golds[1] and golds[0][item] != golds[1][item]]:
        raise RecordError(
            f"item {other[0]} has the gold {golds[0][other[0]]!r} in one and {golds[1][other[0]]!r} in the other: other data"
        )
    prints = [task.result.fingerprint for task in (first, second)]
    apart = runs.differences({key: prints[0].get(key) for key in _SAME}, prints[1])
    apart += [said for key, said in _ASKED.items() if first.about.get(key) != second.about.get(key)]
    minds = (
        [f"{first.task} and {second.task} differ in {', '.join(apart)}: that may be where a difference comes from"]
        if apart
        else []
    )
    ours, theirs = ([line.record for line in side] for side in lines)
    skip = tuple(results.JUDGED) if prints[0].get("judge") != prints[1].get("judge") else ()
    compared = contrast(name, ours, theirs, skip=skip)
    for count, task in ((compared.only_first, first.task), (compared.only_second, second.task)):
        if count:
            minds.append(f"{count} items only in {task}, left out")
    minds += [f"{metric}: {said}" for metric, ends in compared.bounds.items() if (said := magic.said_bounds(ends))]
    return Contrasted(first.model, first.task, second.task, compared, tuple(minds))
