"""The tables of ``lmms-patch compare``, and what they say in words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from lmms_patch.ask.kinds import KINDS, RCI, TRCI, Kind
from lmms_patch.compare.formats import Change, Comparison, Side, Task
from lmms_patch.present import sheets
from lmms_patch.present.findings import in_words
from lmms_patch.present.sheets import Cells, Column, Heads, or_na, shown, signed
from lmms_patch.present.terminal.folding import fold
from lmms_patch.runs import reading
from lmms_patch.runs.catalogue import indices, keyed
from lmms_patch.text import clean

NAMED = 10
"""Docs of one run alone that are named; the JSON file has all."""

_HEADS = ("", "A", "B", Column("B - A", signed=True))
_MORE = Column("would be found", digits=3)
FIRST = 3
"""Tasks that the first line gives numbers of; the others are counted."""
_SCORES = ("fip", "score", "tst")


# --- for a terminal -------------------------------------------------------------------------------


def text(comparison: Comparison, *, wide: bool = False, most: int | None = None) -> str:
    """Return everything, for people: which is better first, then a table for each task.

    Args:
        comparison: the comparison.
        wide: all columns.
        most: cells in a line of a table or a text; None: any.
    """
    head = [headline(comparison), f"A: {_of(comparison.first)}", f"B: {_of(comparison.second)}"]
    told = _told(comparison)
    blocks = [
        "\n".join(fold(each, most) for each in head),
        *(_block(comparison, task, wide, most, told) for task in comparison.tasks),
    ]
    shared = {line: names for line, names in told.items() if len(names) > 1}
    if shared:
        every = len(comparison.tasks)
        named = (
            f"- {f'all {every} tasks' if len(names) == every else in_words(names)}: {line}"
            for line, names in shared.items()
        )
        blocks.append("\n".join(["What to mind of several tasks", *(fold(each, most) for each in named)]))
    return "\n\n".join([*blocks, "\n".join(fold(each, most) for each in _foot(comparison).splitlines())])


def headline(comparison: Comparison) -> str:
    """Return the first line: the better side on each task and by how much, or the smallest detectable difference."""
    if comparison.same_run:
        return "A and B are the same run: every difference is 0."
    if all(task.identical for task in comparison.tasks):
        return "A and B score the same on every doc and view: a copy of one run, or a model that answers alike."
    better: dict[str, list[Task]] = {}
    for task in comparison.tasks:
        better.setdefault(_better(comparison, task), []).append(task)
    models = {"A": comparison.first.model, "B": comparison.second.model}
    said = [
        f"{side} ({clean(models[side], 60)}) is better on {_listed(comparison, better[side], _by)}"
        for side in "BA"
        if side in better
    ]
    open_ones = better.get("", [])
    if open_ones and said:
        said.append(f"no difference is shown on {_listed(comparison, open_ones, _detectable)}")
    elif open_ones:
        both = _listed(comparison, open_ones, lambda task: f"{_by(task)}; {_detectable(task)}")
        said.append(f"A and B cannot be told apart on {both}")
    return f"{'; '.join(said)}."


def _better(comparison: Comparison, task: Task) -> str:
    """Return which side is shown to be better by the primary number, ``A`` or ``B``; empty where none is."""
    number = task.numbers[0]
    value = number.difference.value
    if number.p_holm is None or number.p_holm > comparison.alpha or not value:
        return ""
    lower = number.name in task.lower or (number.name in _SCORES and not task.higher)
    return "BA"[lower != (value < 0)]


def _listed(comparison: Comparison, tasks: Sequence[Task], numbers: Callable[[Task], str]) -> str:
    """Return some tasks of a comparison as a list in words, the first few with their numbers.

    A task is named by its benchmark; where another task of the comparison is of the same one, by its own name, as one
    line has both lists.
    """
    of_base = Counter(clean(task.base) for task in comparison.tasks)
    named = [
        (clean(task.second if of_base[clean(task.base)] > 1 else task.base or task.second), task) for task in tasks
    ]
    said = [f"{name} ({numbers(task)})" for name, task in named[:FIRST]]
    return in_words([*said, *([f"{len(tasks) - FIRST} more"] if len(tasks) > FIRST else [])])


def _by(task: Task) -> str:
    """Return the primary numbers of both sides and their difference, in words."""
    number = task.numbers[0]
    sides = " → ".join(shown(or_na(side)) for side in (number.first, number.second))
    name = task.metric if number.name in _SCORES else number.name
    where = _kind(task).where
    beside = "" if where in (RCI.where, TRCI.where) else f" {where}"
    return f"{clean(name)}{beside} {sides}, B - A = {signed(number.difference)}"


def _detectable(task: Task) -> str:
    found = task.numbers[0].detectable
    return (
        "too little differs to say what would be found"
        if found is None
        else f"{found:.3f} would be found in 4 of 5 comparisons"
    )


def _of(side: Side) -> str:
    older = f"; {side.older} older result{'s' * (side.older > 1)} of the same tasks left aside" if side.older else ""
    return f"{side.model} ({side.path}{older})"


def _told(comparison: Comparison) -> dict[str, list[str]]:
    """Return the cautions about all tasks, each with the tasks concerned."""
    told: dict[str, list[str]] = {}
    for task in comparison.tasks:
        for line in minds(task):
            told.setdefault(line, []).append(clean(task.second))
    return told


def _kind(task: Task) -> Kind:
    return KINDS[task.kind]


def _words(task: Task) -> dict[str, str]:
    """Return the names of a task's possible numbers for pages, by key."""
    kind = _kind(task)
    least, most = kind.sizes
    every = keyed(kind, range(least, most + 1))
    known = {name: number.called(kind, key) for name, (number, key) in every.items()}
    return {**known, "fip": f"Full {kind.words.medium} (FIP)"}


def _block(
    comparison: Comparison, task: Task, wide: bool, most: int | None, told: Mapping[str, Collection[str]]
) -> str:
    """Return a task's table, with a heading above and sentences below.

    Args:
        comparison: the comparison.
        task: the task.
        wide: all columns.
        most: cells in a line; None: any.
        told: what there is to mind, with its tasks; what is true of several stands below all tables.
    """
    name = task.second if task.first == task.second else f"{task.first} (A) and {task.second} (B)"
    clusters = "" if task.clusters is None else f" in {task.clusters} clusters"
    corrected = any(number.tests > 1 for number in task.numbers)
    heads: Heads = [
        *_HEADS,
        *(["p"] if wide or not corrected else []),
        *(["p (Holm)"] if corrected else []),
        *([_MORE] if wide else []),
    ]
    words = _words(task)
    # the two that matter first: the score, and the index that people should go by
    matter = [task.numbers[0], *(number for name in _indices(task) if (number := task.by_name.get(name)))][:2]
    ordered = dict.fromkeys([*(number.name for number in matter), *task.by_name])
    rows = [_row(task.by_name[name], words, task.marks, corrected, wide) for name in ordered]
    about = f"{name}, {task.metric}: {task.docs} docs{clusters}"
    lines = [line for line in (*_right(task), *docs(task)) if line]
    lines += [f"mind: {line}" for line in minds(task) if len(told[line]) == 1]
    said = [fold(each, most) for each in (*lines, *notes(comparison, task))]
    return "\n".join([fold(about, most), sheets.table(heads, rows).to_text(most), *said])


def _indices(task: Task) -> list[str]:
    """Return the names of a task's indices, the one that people should go by first."""
    known = [number.name for number in task.numbers if number.name in indices()]
    return sorted(known, key=lambda name: not name.endswith("_steady"))


def _row(number: Change, words: Mapping[str, str], marks: Collection[str], corrected: bool, wide: bool) -> Cells:
    """Return the row of a number: both sides, the difference, and p-values."""
    name = words.get(number.name, number.name)
    name = f"{name}, {reading.CONTRADICTED}" if number.name in marks else name
    sides = map(or_na, (number.first, number.second))
    p = [reading.p_text(number.p)] * (wide or not corrected) + [reading.p_text(number.p_holm)] * corrected
    return [name, *sides, number.difference, *p, *([number.detectable] if wide else [])]


def _foot(comparison: Comparison) -> str:
    """Return the text below all tables: tasks in a single run only, and how intervals and p-values were made."""
    lines = []
    for own, other, side in (("A", "B", comparison.first), ("B", "A", comparison.second)):
        if side.only:
            lines.append(
                f"{len(side.only)} task{'s' * (len(side.only) > 1)} only in {own}, not in {other}: {', '.join(side.only)}"
            )
    interval = f"{100 * comparison.level:g} % intervals of B - A, paired by doc, clusters together."
    return "\n".join([*lines, f"{interval} {_holm(comparison)}"])


def _holm(comparison: Comparison) -> str:
    """Say which numbers are primary, and over how many p-values each family is corrected."""
    every = [number for task in comparison.tasks for number in task.numbers]
    first, others = (next((number.tests for number in every if number.primary is which), 0) for which in (True, False))
    if not first and not others:
        return "Holm: nothing to correct, no number has a p-value."
    over = f" (Holm over {first} tasks)" if first > 1 else ""
    return f"The first number of each task is primary{over}." + (
        f" All other numbers are corrected together: Holm over {others}." if others > 1 else ""
    )


# --- in words -------------------------------------------------------------------------------------


def _right(task: Task) -> list[str]:
    """Return a line on the docs that are right on a single side only, with McNemar's test."""
    one = task.mcnemar
    said = (
        one
        and f"right in A only: {one.only_first} docs, in B only: {one.only_second}; McNemar's exact p {reading.p_text(one.p)}"
    )
    return [said] if said else []


def docs(task: Task) -> list[str]:
    """Say which docs are not in both runs, and which were not scored."""
    lines = []
    for own, ids in (("A", task.only_first), ("B", task.only_second)):
        if ids:
            more = f", ... ({len(ids) - NAMED} more)" if len(ids) > NAMED else ""
            lines.append(f"{len(ids)} docs only in {own}, left out: {', '.join(map(str, ids[:NAMED]))}{more}")
    if task.unscored:
        lines.append(f"{task.unscored} docs of both could not be scored in one of them, left out")
    return lines


def minds(task: Task) -> list[str]:
    """Return the cautions about a task: differing settings, warnings, McNemar's test on clustered docs."""
    clusters = task.clusters
    lines = (
        [f"A and B differ in {', '.join(task.settings)}: that may be where a difference comes from"]
        if task.settings
        else []
    )
    of_task = tuple(f"{name}: " for name in (task.first, task.second))
    lines += [
        _letters(next((line.removeprefix(name) for name in of_task if line.startswith(name)), line))
        for line in task.warnings
    ]
    if task.mcnemar is not None and clusters is not None and clusters < task.docs and not task.identical:
        lines.append(
            f"McNemar's test takes docs as independent, but they hang together in {clusters} clusters: go by the p-values of the table"
        )
    return list(dict.fromkeys(lines))


def notes(comparison: Comparison, task: Task) -> list[str]:
    """Return what the difference of the index says, why numbers have none, and where one pass misleads, a line each."""
    if task.identical:
        return ["A and B score the same on each of these docs."]
    words, why, out = _words(task), dict[str, list[str]](), list[str]()
    for name in _indices(task)[:1]:
        number = task.by_name[name]
        if number.p_holm is not None and number.p_holm <= comparison.alpha and number.difference.value:
            out.append(f"{words[name]}: {_kind(task).words.say(_of_index(number))}")
    for number in task.numbers:
        # of a number with a difference its reason says how sure that is, which the interval shows
        if reason := number.difference.reason if number.primary or number.difference.value is None else "":
            why.setdefault(_letters(reason), []).append(words.get(number.name, number.name))
    out += [f"{in_words(names)}: {reason}" for reason, names in why.items()]
    return out + [f"{words[name]}: {_letters(line)}" for name, lines in task.marks.items() for line in lines]


def _of_index(one: Change) -> str:
    """Say what the higher of two indices means, given their signs: below 0 a cell beats the full image."""
    higher, lower = "BA" if (one.difference.value or 0) > 0 else "AB"
    if one.first is not None and one.second is not None:
        if max(one.first, one.second) < 0:
            return f"one cell beats the full image in both, by more in {lower}"
        if min(one.first, one.second) < 0:
            return f"{higher} needs more of the image; in {lower} one cell beats the full image"
    return f"{higher} needs more of the image"


def _letters(line: str) -> str:
    """Call the runs A and B, as all tables here do."""
    return line.replace("the first run", "A").replace("the second run", "B").replace("the two runs", "A and B")
