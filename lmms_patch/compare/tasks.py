"""Two finished runs, or folders of runs, task by task: which of two models, or versions, is better, and is that more than noise? Pure.

Each task that both have is compared doc by doc (``compare.result``). One number per task is primary (mostly FIP) and
carries the claim. The p-values of primary numbers are corrected over the tasks. All other numbers (MPP_3, RCI_3, ...)
of all tasks are corrected together. Both corrections use Holm's method.

Source: Holm (1979).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from operator import ne
from pathlib import Path
from typing import Any

from lmms_patch.compare import result as paired
from lmms_patch.compare.engine import Compared, matches, primary_of
from lmms_patch.compare.formats import Change, Comparison, Side, Task
from lmms_patch.errors import RecordError, nearest
from lmms_patch.runs.run import Result, find, labels, newest
from lmms_patch.stats.bounds import check_bootstrap
from lmms_patch.stats.paired import Difference, detectable, least_p
from lmms_patch.stats.resample import LEVEL
from lmms_patch.stats.spatial import holm
from lmms_patch.text import line

POWER = 0.8

Pair = tuple[Result, Result]
Watch = Callable[[Collection[Pair], str], Iterable[Pair]]


def compare(
    first: str | Path,
    second: str | Path,
    *,
    task: str | None = None,
    level: float = LEVEL,
    draws: int = 0,
    seed: int = 0,
    watch: Watch = lambda pairs, _: pairs,
) -> Comparison:
    """Compare all tasks shared by two runs, or by two folders of runs with a single model each.

    Args:
        first: ``--output_path`` of a run, a folder of runs, or one ``*_results.json``.
        second: the same of the other side.
        task: a wildcard: only tasks whose name, or whose base task's name, it matches.
        level: nominal coverage of the intervals, from 0.5 to below 1.
        draws: bootstrap draws, 200 to 100,000; 0: 10,000, and 2,000 for more than 20,000 docs.
        seed: of the bootstrap, 0 or more.
        watch: passes the pairs of results on one by one, to show progress.

    Raises:
        OptionError: an option out of range.
        RecordError: a file that cannot be read, no task in both, several models in one folder, or results that cannot
            be compared.
    """
    check_bootstrap(draws or None, level, seed)
    sides = [_results(Path(path), task) for path in (first, second)]
    pairs = _pairs(*(results for results, _ in sides))
    if not pairs:
        names = [", ".join(sorted({result.task for result in results})) for results, _ in sides]
        raise RecordError(f"no task in both: {first} has {names[0]}; {second} has {names[1]}")
    compared = [_compared(one, other, level, draws, seed, len(pairs) > 1) for one, other in watch(pairs, "Comparing")]
    named = labels(result.run for results, _ in sides for result in results)
    one, other = (_side(Path(path), k, *sides[k], pairs, named) for k, path in enumerate((first, second)))
    # Two paths may lead to the same run, whose differences are 0 without saying anything.
    same = all(one.is_same(other) for one, other in pairs)
    tasks = _corrected(compared, level)
    return Comparison(first=one, second=other, same_run=same, level=level, seed=seed, tasks=tasks)


# --- which results --------------------------------------------------------------------------------


def _results(path: Path, pattern: str | None) -> tuple[list[Result], int]:
    """Return the newest result of each task, all of the same model, and the number of older results.

    Raises:
        RecordError: no wrapped task, none that the wildcard matches, or several models.
    """
    every = [result for run in find([path]) for result in run.results]
    if not every:
        raise RecordError(f"{path}: no wrapped task in this run; ask for one, such as --tasks gqa_rci3")
    if pattern is not None:
        known = sorted({name for result in every for name in (result.task, result.base)})
        every = [result for result in every if any(fnmatchcase(name, pattern) for name in (result.task, result.base))]
        if not every:
            close = nearest(pattern, known) or known[:5]
            raise RecordError(
                f"{path}: no task {pattern!r}; allowed: {', '.join(close)}{', ...' if len(known) > len(close) else ''}"
            )
    named = labels(result.run for result in every)
    if len(named) > 1:
        files = {result.run.identity: result.run.path for result in every}
        listed = "; ".join(f"{named[identity]}: {file}" for identity, file in list(files.items())[:4])
        raise RecordError(f"{path}: {len(named)} models in this folder; give the folder or the file of one ({listed})")
    results, older = newest(every)
    return results, older


def _pairs(first: Sequence[Result], second: Sequence[Result]) -> list[Pair]:
    """Return the pairs to compare: tasks of equal name first, then by most shared grids, ties by the finest grid."""
    left, taken = list(second), {}
    # Equal names first, so that a quick run is not paired with a full run of the same benchmark.
    for named_alike in (True, False):
        for k, one in enumerate(first):
            candidates = [
                other for other in left if matches(one, other) and (not named_alike or one.task == other.task)
            ]
            if k not in taken and candidates:
                taken[k] = max(candidates, key=partial(_shared, one))
                # A result is compared once.
                left.remove(taken[k])
    return [(first[k], taken[k]) for k in sorted(taken)]


def _shared(one: Result, other: Result) -> tuple[int, int]:
    both = set(one.grids) & set(other.grids)
    return len(both), max(both, default=0)


def _side(
    path: Path, k: int, results: Sequence[Result], older: int, pairs: Sequence[Pair], named: Mapping[Any, str]
) -> Side:
    used = [pair[k] for pair in pairs]
    only = tuple(result.label for result in results if not any(result is one for one in used))
    files = tuple(dict.fromkeys(line(result.run.path) for result in used))
    return Side(line(path), named[used[0].run.identity], files, older, only)


# --- numbers --------------------------------------------------------------------------------------


def _compared(one: Result, other: Result, level: float, draws: int, seed: int, several: bool) -> Compared:
    try:
        return paired.compare(one, other, level=level, draws=draws, seed=seed)
    except RecordError as error:
        raise RecordError(f"{error}; other tasks can be chosen with --task") from None if several else error


def _corrected(compared: Sequence[Compared], level: float) -> tuple[Task, ...]:
    """Return the tasks with p-values corrected by Holm: primary numbers over tasks, all further numbers together."""
    primary = [primary_of(task) for task in compared]
    numbers = [
        # ``score`` and ``fip`` are the same number: counted twice, it would be corrected twice.
        [name for name in task.differences if not (name == "score" and "fip" in task.differences)]
        for task in compared
    ]
    corrected: dict[tuple[int, str], float] = {}
    tests = {}
    for first in (True, False):
        own = [(k, name) for k, names in enumerate(numbers) for name in names if (name == primary[k]) == first]
        known = [(key, p) for key in own if (p := compared[key[0]].differences[key[1]].p) is not None]
        tests[first] = len(known)
        corrected |= {key: float(p) for (key, _), p in zip(known, holm([p for _, p in known]), strict=True)}

    def number(k: int, name: str) -> Change:
        primary_one, change = name == primary[k], compared[k].differences[name]
        count = tests[primary_one]
        return Change(
            name,
            primary_one,
            change.first,
            change.second,
            change.estimate,
            change.p,
            corrected.get((k, name)),
            count,
            _detectable(change, count, level),
            change.differing,
        )

    told = [name for name in Task.__struct_fields__ if name != "numbers"]
    return tuple(
        Task(
            **{name: getattr(task, name) for name in told},
            # False sorts first, so the primary number comes first and the others keep their order
            numbers=tuple(number(k, name) for name in sorted(numbers[k], key=partial(ne, primary[k]))),
        )
        for k, task in enumerate(compared)
    )


def _detectable(difference: Difference, tests: int, level: float) -> float | None:
    alpha = (1 - level) / max(1, tests)
    enough = difference.differing is None or least_p(difference.differing) <= alpha
    se = difference.estimate.se if difference.p is not None and enough else None
    return detectable(se, level=1 - alpha, power=POWER) if se else None
