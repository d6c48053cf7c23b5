"""The MAGIC tasks of finished runs: their numbers, and what other boxes change (``magic.contrast``). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_patch.compare import contrast
from lmms_patch.compare.contrast import CONTRASTS, Contrast
from lmms_patch.errors import OptionError, RecordError, nearest
from lmms_patch.magic.score import logs, results
from lmms_patch.runs import run as runs
from lmms_patch.runs.measures import measures
from lmms_patch.runs.results import TaskResult
from lmms_patch.runs.run import Run
from lmms_patch.stats import paired
from lmms_patch.stats.resample import LEVEL, Estimate

_STEM = re.compile(r"_(?:relevant|nobox|selfheal)$")
_SAME = ("limit", "few-shot", "system instruction", "generation", "benchmark version", "lmms-eval version", "judge")
"""Parts of a fingerprint that two variants of one run share."""
_ASKED = {"seed": "the numbering of boxes", "examples": "in-context examples", "pixels": "how boxes are drawn", "prompts": "the prompt's wording"}
"""What else two variants of one run share, of what the run wrote of a task."""


@dataclass(frozen=True)
class MagicTask:
    """One MAGIC task of a finished run.

    Attributes:
        model: a name for the model, told apart from the others shown.
        run, result: where it is from.
        numbers: every metric (``magic.results``) with its interval, as the run computed it.
    """

    model: str
    run: Run
    result: TaskResult
    numbers: Mapping[str, Estimate]

    @property
    def task(self) -> str:
        """Its name."""
        return self.result.task

    @property
    def about(self) -> Mapping[str, Any]:
        """What the run wrote of it (docs/magic.md): variant, dataset, judge, counts, warnings, ..."""
        found = self.result.details["magic"]
        return dict(found)

    @property
    def variant(self) -> str:
        """One of ``magic.results.VARIANTS``."""
        return str(self.about["variant"])


@dataclass(frozen=True)
class Contrasted:
    """Two tasks of one model, compared item by item.

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


def gather(paths: Sequence[str | Path], *, draws: int = paired.DRAWS, level: float = LEVEL, seed: int = 0) -> MagicRuns:
    """The MAGIC tasks of some runs.

    Args:
        paths: folders of runs (``--output_path``), or results files.
        draws, level, seed: of the contrasts' bootstrap; the tasks' own numbers are those of the run.

    Raises:
        RecordError: no run, a file that cannot be read, or no MAGIC task.
    """
    found = runs.find([Path(path) for path in paths])
    newest, older = runs.newest(found)
    magic = [(run, result) for run, result in newest if result.described["kind"] == "magic"]
    scored = [(run, result) for run, result in magic if result.details.get("magic")]
    notes = [f"{result.task}: nothing was scored" for run, result in magic if (run, result) not in scored]
    if not scored:
        said = f" ({'; '.join(notes)})" if notes else "; ask for one, such as --tasks magic_mosaic"
        raise RecordError(f"{', '.join(map(str, paths))}: no MAGIC task in this run{said}")
    names = runs.labels(run for run, _ in scored)
    made = [MagicTask(names[run.identity], run, result, numbers_of(result)) for run, result in scored]
    if odd := [one for one in made if one.variant not in results.VARIANTS]:
        raise RecordError(f"{odd[0].run.path}: {odd[0].task}: no variant {odd[0].variant!r}; there is {', '.join(results.VARIANTS)}")
    tasks = tuple(sorted(made, key=lambda one: (one.model, _STEM.sub("", one.task), results.VARIANTS.index(one.variant))))
    if older:
        notes.append(f"{older} older result{'s' * (older > 1)} of the same tasks left aside")
    pairs, why = _contrasts(tasks, draws, level, seed)
    return MagicRuns(tasks, pairs, (*notes, *why))


def numbers_of(result: TaskResult) -> dict[str, Estimate]:
    """Every metric of a MAGIC task, as the run computed it."""
    return {name: one for name, one in measures(result).items() if name in result.details["magic"]["numbers"]}


def lines_of(path: Path, task: str | None = None) -> tuple[str, list[dict[str, Any]]]:
    """A MAGIC task of a run, and the lines of its sample log (``magic.logs``).

    Args:
        path: ``--output_path`` of the run (of several the newest with such a task), or its results file.
        task: the task; None: the one with all boxes, else the only one.

    Raises:
        OptionError: there is no such task, several, or one whose responses only go on from injected steps.
        RecordError: no run, no MAGIC task, or a log that is missing or not whole.
    """
    newest, _ = runs.newest(runs.find([path]))
    found = [(run, result) for run, result in newest if result.described["kind"] == "magic"]
    if not found:
        raise RecordError(f"{path}: no MAGIC task in this run; ask for one, such as --tasks magic_mosaic")
    variants = [str(result.described.get("variant") or "") for _, result in found]
    if task is not None:
        chosen = [place for place, (_, result) in enumerate(found) if result.task == task]
    else:
        own = [place for place, variant in enumerate(variants) if variant != "selfheal"]
        chosen = [place for place in own if variants[place] == "all"] or own
    names = list(dict.fromkeys(result.task for _, result in found))
    if not chosen:
        close = nearest(task or "", names)
        raise OptionError(
            f"{path}: no task {task!r} with steps of its own; " + (f"did you mean {close[0]}?" if close else f"there: {', '.join(names)}")
        )
    if len(chosen) > 1:
        which = sorted({f"{found[place][1].task} of {found[place][0].model}" for place in chosen})
        raise OptionError(f"{path}: several tasks ({', '.join(which)}); name one by --task, or give one run's *_results.json")
    if variants[chosen[0]] == "selfheal":
        raise OptionError(f"{found[chosen[0]][1].task}: its responses go on from injected steps; label the steps of a task such as magic")
    run, result = found[chosen[0]]
    log = run.log(result)
    if log is None:
        raise RecordError(f"{run.path}: no sample log of {result.task} beside it; run with --log_samples")
    return result.task, [line for line in logs.lines(log, result.place) if "failed" not in line["magic"]]


def _contrasts(tasks: Sequence[MagicTask], draws: int, level: float, seed: int) -> tuple[tuple[Contrasted, ...], tuple[str, ...]]:
    """Every contrast that the tasks allow, and why others are not there."""
    out, notes = [], []
    read: dict[Path, list[dict[str, Any]]] = {}
    for name, variants in CONTRASTS.items():
        for first in tasks:
            partners = _partners(first, tasks, variants)
            if not partners and first.variant == variants[0]:
                others = [one for one in tasks if one.variant == variants[1] and one.model == first.model]
                data = first.about.get("dataset")
                notes += [f"{one.task} (of {one.about.get('dataset')}) is not compared with {first.task} (of {data}): other data" for one in others]
            for second in partners:
                try:
                    lines = [_log(one, read) for one in (first, second)]
                    out.append(_contrast(name, first, second, lines, draws, level, seed))
                except RecordError as error:
                    notes.append(f"{second.task} is not compared with {first.task}: {error}")
    return tuple(out), tuple(dict.fromkeys(notes))


def _partners(first: MagicTask, tasks: Sequence[MagicTask], variants: tuple[str, str]) -> list[MagicTask]:
    """The tasks that show another variant of the same data to the same model; of several those whose name says that they belong together."""
    if first.variant != variants[0]:
        return []
    found = [
        one for one in tasks if one.variant == variants[1] and one.model == first.model and one.about.get("dataset") == first.about.get("dataset")
    ]
    return [one for one in found if _STEM.sub("", one.task) == _STEM.sub("", first.task)] or found


def _log(task: MagicTask, read: dict[Path, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The lines of a task's log; each log is read once.

    Raises:
        RecordError: it is missing, not whole, or of another run.
    """
    path = task.run.log(task.result)
    if path is None:
        raise RecordError(f"no sample log of {task.task} beside {task.run.path.name}; run with --log_samples")
    if path in read:
        return read[path]
    lines = list(logs.lines(path, task.result.place))
    if len(lines) != task.result.docs:
        raise RecordError(f"{path.name} has {len(lines)} docs, but the run scored {task.result.docs}; it is not whole, or of another run")
    for metric in results.ANSWERS:
        if metric not in task.numbers:
            raise RecordError(f"{task.run.path.name}: {task.task} has no {metric}; the file was changed or written by another program")
        own, value = task.numbers[metric].value, _mean([results.score(line["magic"], metric) for line in lines])
        if own is not None and value is not None and abs(own - value) > 1e-6:
            raise RecordError(f"{path.name} gives {metric} {value:.4g}, but the run reported {own:.4g}; it is of another run, or was changed")
    read[path] = lines
    return lines


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _contrast(
    name: str, first: MagicTask, second: MagicTask, lines: Sequence[Sequence[Mapping[str, Any]]], draws: int, level: float, seed: int
) -> Contrasted:
    golds: list[dict[str, str]] = [{line["magic"]["item"]: str(line.get("target")) for line in side} for side in lines]
    if other := [item for item in golds[0] if item in golds[1] and golds[0][item] != golds[1][item]]:
        raise RecordError(f"item {other[0]} has the gold {golds[0][other[0]]!r} in one and {golds[1][other[0]]!r} in the other: other data")
    prints = [runs.fingerprint(one.run, one.result) for one in (first, second)]
    apart = runs.differences({key: prints[0].get(key) for key in _SAME}, prints[1])
    apart += [said for key, said in _ASKED.items() if first.about.get(key) != second.about.get(key)]
    minds = [f"{first.task} and {second.task} differ in {', '.join(apart)}: that may be where a difference comes from"] if apart else []
    records = [[line["magic"] for line in side] for side in lines]
    skip = tuple(results.JUDGED) if prints[0].get("judge") != prints[1].get("judge") else ()
    found = contrast.contrast(name, *records, skip=skip, draws=draws, level=level, seed=seed)
    for count, task in ((found.only_first, first.task), (found.only_second, second.task)):
        if count:
            minds.append(f"{count} items only in {task}, left out")
    return Contrasted(first.model, first.task, second.task, found, tuple(minds))
