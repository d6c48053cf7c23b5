"""What ``lmms-patch compare`` shows: tables, and what they say in words. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from lmms_patch.compare.tasks import Comparison, Number, Side, Task
from lmms_patch.present.sheets import Cell, Column, Sheet, shown
from lmms_patch.runs import reading
from lmms_patch.stats.paired import Difference

NAMED = 10
"""Docs of one run alone that are named; the JSON file has all."""

_PLACES = {"blind": "without the image", "blank": "on grey images", "shuffle": "on shuffled cells", "tst": "from the text alone"}
_SHOWN = (
    Column("number", "", help="fip, mpp<n>, rci<n>, gap<n>; score, or tst: docs/metrics.md"),
    Column("a", "A"),
    Column("b", "B"),
    Column("difference", "B - A", signed=True),
    Column("p", "p"),
    Column("p_holm", "Holm"),
)
_SIGNED = Column("", "", signed=True)
_MAGIC = (
    (("magiscore_f1_macro",), "{higher} looks more at the boxes that the question needs, and at those only", "in region focus"),
    (("acc_short", "acc_synonym"), "{higher} answers better", "in the final answers"),
    (("self_heal", "self_heal_words"), "{higher} corrects more of the injected errors", "in self-correction"),
)
"""Of MAGIC tasks: numbers that get a sentence (the first of each that is there), and how it says so."""
_INDEX = re.compile(r"(rci|pcri)\d+(_adj)?$")


# --- for a terminal -------------------------------------------------------------------------------


def text(found: Comparison) -> str:
    """Everything, for people."""
    blocks = [_head(found), *(_block(found, task) for task in found.tasks), _foot(found)]
    return "\n\n".join(block for block in blocks if block)


def _head(found: Comparison) -> str:
    lines = [f"A: {_of(found.first)}", f"B: {_of(found.second)}"]
    if found.same_run:
        lines.append("A and B are the same run: every difference is 0.")
    elif all(task.compared.identical for task in found.tasks):
        lines.append("A and B score the same on every doc and view: a copy of one run, or a model that answers alike.")
    return "\n".join(lines)


def _of(side: Side) -> str:
    older = f"; {side.older} older result{'s' * (side.older > 1)} of the same tasks left aside" if side.older else ""
    return f"{side.model}  ({side.path}{older})"


def _block(found: Comparison, task: Task) -> str:
    compared = task.compared
    name = task.second if task.first == task.second else f"{task.first} (A) and {task.second} (B)"
    clusters = "" if compared.clusters is None else f" in {compared.clusters} clusters"
    columns = _SHOWN if any(number.tests > 1 for number in task.numbers) else _SHOWN[:-1]
    lines = [
        f"{name}, {compared.metric}: {compared.docs} docs{clusters}; primary: {task.numbers[0].name}",
        Sheet("", "", columns, tuple(_row(n, compared.marks) for n in task.numbers)).to_text(),
    ]
    lines += [line for line in (_right(task), *docs(task)) if line]
    lines += [f"mind: {line}" for line in minds(task)]
    return "\n".join([*lines, *sentences(found, task)])


def _row(number: Number, marks: Collection[str]) -> dict[str, Cell]:
    one = number.difference
    return {
        "number": f"{number.name}, {reading.CONTRADICTED}" if number.name in marks else number.name,
        "a": "N/A" if one.first is None else one.first,
        "b": "N/A" if one.second is None else one.second,
        "difference": one.estimate,
        "p": p_text(one.p),
        "p_holm": p_text(number.p_holm),
    }


def _foot(found: Comparison) -> str:
    lines = []
    for own, other, side in (("A", "B", found.first), ("B", "A", found.second)):
        if side.only:
            lines.append(f"{len(side.only)} task{'s' * (len(side.only) > 1)} only in {own}, not in {other}: {', '.join(side.only)}")
    interval = f"{100 * found.level:g} % intervals of B - A, paired by doc, clusters together."
    return "\n".join([*lines, f"{interval} {_holm(found)}"])


def _holm(found: Comparison) -> str:
    """Say which numbers are primary, and over how many p-values they and the others are corrected."""
    every = [number for task in found.tasks for number in task.numbers]
    names = ", ".join(dict.fromkeys(number.name for number in every if number.primary))
    first, others = (next((number.tests for number in every if number.primary is which), 0) for which in (True, False))
    if not first and not others:
        return "Holm: nothing to correct, no number has a p-value."
    over = f" (Holm over {first} tasks)" if first > 1 else ""
    return f"Primary: {names}{over}." + (f" All other numbers are corrected together: Holm over {others}." if others > 1 else "")


def p_text(p: float | None) -> str:
    """A p-value as it is printed.

    >>> p_text(0.0004), p_text(0.0421), p_text(None)
    ('<0.001', '0.042', '')
    """
    return "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


# --- in words -------------------------------------------------------------------------------------


def _right(task: Task) -> str:
    found = {"": task.compared.mcnemar, **task.compared.tests}
    return "\n".join(
        f"{f'{name}: ' if name else ''}{'better' if name in task.compared.lower else 'right'} in A only: {one.only_first} docs, "
        f"in B only: {one.only_second}; McNemar's exact p {p_text(one.p)}"
        for name, one in found.items()
        if one is not None and (not name or one.only_first or one.only_second)
    )


def docs(task: Task) -> list[str]:
    """Which docs are not in both, and which were not scored."""
    found, lines = task.compared, []
    for own, ids in (("A", found.only_first), ("B", found.only_second)):
        if ids:
            more = f", ... ({len(ids) - NAMED} more)" if len(ids) > NAMED else ""
            lines.append(f"{len(ids)} docs only in {own}, left out: {', '.join(map(str, ids[:NAMED]))}{more}")
    if found.unscored:
        lines.append(f"{found.unscored} docs of both could not be scored in one of them, left out")
    return lines


def minds(task: Task) -> list[str]:
    """What to mind of a task: other settings, warnings, McNemar's test with clusters."""
    found = task.compared
    lines = [f"A and B differ in {', '.join(found.settings)}: that may be where a difference comes from"] if found.settings else []
    lines += [_letters(line) for line in found.warnings]
    if (found.mcnemar is not None or found.tests) and found.clusters is not None and found.clusters < found.docs and not found.identical:
        lines.append(
            f"McNemar's test takes docs as independent, but they hang together in {found.clusters} clusters: go by the p-values of the table"
        )
    return lines


def sentences(found: Comparison, task: Task) -> list[str]:
    """Say in words what the numbers of a task show: one sentence for its score, one for each index."""
    if task.compared.identical:
        return ["A and B score the same on each of these docs."]
    out = []
    if task.compared.kind == "magic":
        return _magic_sentences(found, task)
    for number in task.numbers:
        if number.name in ("fip", "score", "tst"):
            place = _PLACES.get(task.compared.kind, "on the full image")
            out.append(_sentence(found, task, number, f"{{higher}} is better {place}", place))
        elif _INDEX.match(number.name):
            said = _sentence(found, task, number, *_of_index(number.difference))
            out.append(" ".join([said, *(f"The index {_letters(line)}." for line in task.compared.marks.get(number.name, ()))]))
    return out


def _of_index(one: Difference) -> tuple[str, str]:
    """Say what a higher index means beside a lower one, which depends on their signs: below 0 one cell beats the full image."""
    if one.first is None or one.second is None or min(one.first, one.second) >= 0:
        return "{higher} needs more of the image", "in how much of the image is needed"
    if max(one.first, one.second) < 0:
        return "One cell beats the full image in both, by more in {lower}", "in how far one cell beats the full image"
    return "{higher} needs more of the image; in {lower} one cell beats the full image", "in how much of the image is needed"


def _magic_sentences(found: Comparison, task: Task) -> list[str]:
    numbers = {number.name: number for number in task.numbers}
    told = [(next((name for name in names if name in numbers), ""), more, where) for names, more, where in _MAGIC]
    return [_sentence(found, task, numbers[name], more, where) for name, more, where in told if name]


def _sentence(found: Comparison, task: Task, number: Number, more: str, where: str) -> str:
    one, what = number.difference, number.name
    estimate = one.estimate
    if estimate.value is None:
        return f"{what}: no difference can be given: {_letters(estimate.reason or 'not defined')}."
    value = shown(estimate, _SIGNED)
    if one.p is None or number.p_holm is None:
        return f"{what}: B - A = {value}; no test: {_letters(estimate.reason or 'no interval')}."
    after = f", {p_text(number.p_holm)} after Holm's correction over {number.tests} {'tasks' if number.primary else 'numbers'}"
    after = after if number.tests > 1 else ""
    said = f"B - A = {value}, p = {p_text(one.p)}{after}".replace("= <", "< ")
    if number.p_holm <= found.alpha:
        upwards = task.compared.higher or number.name not in ("fip", "score", "tst")
        higher, lower = "BA" if (estimate.value > 0) == upwards else "AB"
        return f"{more.format(higher=higher, lower=lower)} ({what}): {said}."
    return f"No difference is shown {where} ({what}): {said}. {_power(number, estimate.reason)}"


def _power(number: Number, reason: str) -> str:
    if number.detectable is None:
        return f"Too little differs to show one: {reason}." if reason else "Too little differs to show one."
    return f"With these docs a difference of {number.detectable:.3f} would be found with 80 % power."


def _letters(line: str) -> str:
    """The runs called as they are here."""
    return line.replace("the first run", "A").replace("the second run", "B").replace("the two runs", "A and B")


# --- for files ------------------------------------------------------------------------------------


def sheet(found: Comparison) -> Sheet:
    """All numbers of all tasks, one row each."""
    columns = (
        Column("task", "task", help="its name in B"),
        Column("metric", "metric"),
        Column("docs", "docs", help="compared: scored in both runs"),
        Column("number", "number", help="docs/metrics.md"),
        Column("a", "A", help="over the compared docs, on the metric's own scale"),
        Column("b", "B", help="over the compared docs, on the metric's own scale"),
        Column("difference", "B - A", signed=True, help=f"paired by doc, with its {100 * found.level:g} % interval"),
        Column("p", "p", digits=4, help="two-sided, paired clustered bootstrap"),
        Column("claim", "claim", help="primary: carries the claim, corrected over the tasks alone; other: corrected with all others together"),
        Column("p_holm", "p (Holm)", digits=4, help="corrected by Holm's method, as the claim says"),
        Column("detectable", "detectable", help="difference that would be found with 80 % power"),
        Column("contradicted", "contradicted", help="which run's index as published the one with luck removed contradicts, and how"),
        Column("only_a_right", "right in A only", help="docs; 0/1 scores of the first view"),
        Column("only_b_right", "right in B only", help="docs; 0/1 scores of the first view"),
        Column("p_mcnemar", "p (McNemar)", digits=4, help="exact; docs taken as independent"),
        Column("only_in_a", "docs only in A"),
        Column("only_in_b", "docs only in B"),
        Column("unscored", "unscored", help="docs of both that one of them could not score"),
    )
    rows = tuple(_cells(task, number) for task in found.tasks for number in task.numbers)
    return Sheet("compare", _title(found), columns, rows, _foot(found))


def _title(found: Comparison) -> str:
    """The two models; where both are called the same (two versions, two runs), with where they are from."""
    if found.first.model == found.second.model:
        return f"A: {found.first.model} ({found.first.path}), B: {found.second.model} ({found.second.path})"
    return f"A: {found.first.model}, B: {found.second.model}"


def _cells(task: Task, number: Number) -> dict[str, Cell]:
    compared, one = task.compared, number.difference
    tested = compared.mcnemar if number.name in ("fip", "score", "tst") else compared.tests.get(number.name)
    return {
        "task": task.second,
        "metric": compared.metric,
        "docs": one.estimate.n,
        "number": number.name,
        "a": one.first,
        "b": one.second,
        "difference": one.estimate,
        "p": one.p,
        "claim": "primary" if number.primary else "other",
        "p_holm": number.p_holm,
        "detectable": number.detectable,
        "contradicted": "; ".join(map(_letters, compared.marks.get(number.name, ()))) or None,
        "only_a_right": None if tested is None else tested.only_first,
        "only_b_right": None if tested is None else tested.only_second,
        "p_mcnemar": None if tested is None else tested.p,
        "only_in_a": len(compared.only_first),
        "only_in_b": len(compared.only_second),
        "unscored": compared.unscored,
    }
