"""Two finished runs, or folders of runs, task by task: which of two models, or versions, is better, and is that more than noise?

Each task that both have is compared doc by doc (``compare.result``). One number per task is primary (mostly FIP) and
carries the claim. The p-values of primary numbers are corrected over the tasks. All other numbers (MPP_3, RCI_3, ...)
of all tasks are corrected together. Both corrections use Holm's method.

Source: Holm (1979).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import structs

from lmms_patch.compare import result as paired
from lmms_patch.compare.alike import matches
from lmms_patch.compare.formats import Change, Comparison, Side, Task
from lmms_patch.errors import RecordError
from lmms_patch.runs.run import Result, find, labels, newest
from lmms_patch.stats.bounds import check_bootstrap
from lmms_patch.stats.paired import detectable, least_p
from lmms_patch.stats.resample import LEVEL
from lmms_patch.stats.spatial import holm
from lmms_patch.text import line

Pair = tuple[Result, Result]
Watch = Callable[[Collection[Pair], str], Iterable[Pair]]


def compare(
    first: str | Path,
    second: str | Path,
    *,
    task: str | None = None,
    level: float = LEVEL,
    draws: int = 0,
    watch: Watch = lambda pairs, _: pairs,
) -> Comparison:
    """Compare all tasks shared by two runs, or by two folders of runs with a single model each.

    Args:
        first: ``--output_path`` of a run, a folder of runs, or one ``*_results.json``.
        second: the same of the other side.
        task: a wildcard: only tasks whose name, or whose base task's name, it matches.
        level: nominal coverage of the intervals, from 0.5 to below 1.
        draws: bootstrap draws, 200 to 100,000; 0: 10,000, and 2,000 for more than 20,000 docs.
        watch: passes the pairs of results on one by one, to show progress.

    Raises:
        OptionError: an option out of range.
        RecordError: a file that cannot be read, no task in both, several models in one folder, or results that cannot
            be compared.
    """
    check_bootstrap(draws or None, level)
    sides = [_results(Path(path), task) for path in (first, second)]
    pairs = _pairs(sides[0][0], sides[1][0])
    if not pairs:
        names = [", ".join(sorted({result.task for result in results})) for results, _ in sides]
        raise RecordError(f"no task in both: {first} has {names[0]}; {second} has {names[1]}")
    compared = [paired.compare(*pair, level=level, draws=draws) for pair in watch(pairs, "Comparing")]
    named = labels(result.run for results, _ in sides for result in results)
    ours, theirs = (
        Side(
            line(path),
            named[used[0].run.identity],
            older,
            tuple(one.label for one in results if not any(one is other for other in used)),
        )
        for path, (results, older), used in zip((first, second), sides, zip(*pairs, strict=True), strict=True)
    )
    return Comparison(
        first=ours,
        second=theirs,
        # two paths may lead to the same run, whose differences are 0 without saying anything
        same_run=all(one.origin == other.origin for one, other in pairs),
        level=level,
        tasks=_corrected(compared, level),
    )


def _results(path: Path, pattern: str | None) -> tuple[list[Result], int]:
    """Return the newest result of each task, all of the same model, and the number of older results.

    Raises:
        RecordError: no wrapped task, none that the wildcard matches, or several models.
    """
    every = [result for run in find([path]) for result in run.results]
    known = sorted({name for one in every for name in (one.task, one.base)})
    every = [one for one in every if any(fnmatchcase(name, pattern or "*") for name in (one.task, one.base))]
    if not every:
        there = ", ".join(known[:5])
        raise RecordError(f"{path}: no task {pattern or 'of lmms-patch'}; there is {there or 'none'}")
    named = labels(one.run for one in every)
    if len(named) > 1:
        raise RecordError(
            f"{path}: {len(named)} models in this folder ({', '.join(named.values())}); give the folder or the file of one"
        )
    return newest(every)


def _pairs(first: Sequence[Result], second: Sequence[Result]) -> list[Pair]:
    """Return the tasks to compare, each once: equal names first, then by most shared grids.

    Equal names come first, so that a quick run is not paired with a full run of the same benchmark.
    """
    fits = [(one, other) for one in first for other in second if matches(one, other)]
    fits.sort(key=lambda pair: (pair[0].task == pair[1].task, len({*pair[0].grids} & {*pair[1].grids})), reverse=True)
    taken: list[Pair] = []
    for pair in fits:
        if not any(one is used for pairs in taken for one, used in zip(pair, pairs, strict=True)):
            taken.append(pair)
    order = [id(one) for one in first]
    return sorted(taken, key=lambda pair: order.index(id(pair[0])))


def _corrected(compared: Sequence[Task], level: float) -> tuple[Task, ...]:
    """Return the tasks with p-values corrected by Holm: primary numbers over tasks, all further numbers together."""
    numbers: dict[int, list[Change]] = {id(task): [] for task in compared}
    for primary in (True, False):
        family = [(task, one) for task in compared for one in task.numbers if one.primary == primary]
        tested = [one.p for _, one in family if one.p is not None]
        corrected, alpha = iter(holm(tested)), (1 - level) / max(1, len(tested))
        for task, one in family:
            p_holm = None if one.p is None else float(next(corrected))
            enough = one.p is not None and (one.differing is None or least_p(one.differing) <= alpha)
            found = detectable(one.difference.se or None, level=1 - alpha) if enough else None
            numbers[id(task)].append(structs.replace(one, p_holm=p_holm, tests=len(tested), detectable=found))
    return tuple(structs.replace(task, numbers=tuple(numbers[id(task)])) for task in compared)
