"""MAGIC tasks in a report: their results, their tables, and what other boxes change. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_patch.compare.magic import Contrast, gather
from lmms_patch.present.report.data import Entry, Part
from lmms_patch.present.report.magic_words import CONTRASTS, COUNTS, VARIANTS, WORDS, columns, order
from lmms_patch.present.sheets import Cell, Column, Row, Sheet, levels_in, used
from lmms_patch.runs.details import MagicNumbers
from lmms_patch.runs.run import Run
from lmms_patch.stats.resample import Estimate

_MODEL = Column("model")
_DATA = Column("dataset")
_TASK = Column("task")
_DOCS = Column("docs", help="docs that were scored; a number may rest on fewer (report.json has the n of each)")
_JUDGE = Column("judge", help="the model that gives Acc short, Acc full and Self-Heal; none: these are not there")


# --- what a result gives --------------------------------------------------------------------------


def parts(found: MagicNumbers) -> dict[str, Part]:
    """Return the numbers of each question type, as computed by the run; empty with a single type."""
    out = {}
    for name, numbers in (found.by_type or {}).items():
        score = {"score": numbers[found.metric]} if found.metric in numbers else {}
        out[name] = Part(max((one.n for one in numbers.values()), default=0), {**score, **numbers}, None)
    return out


def numbers_of(part: Part) -> dict[str, Estimate]:
    """Return the MAGIC numbers of some docs, by name, in the order of the paper's Table 2."""
    return {name: part.measures[name] for name in order(part.measures)}


def contrasts(given: Sequence[Run], labels: Mapping[tuple[str, str, str], str]) -> tuple[list[Contrast], list[str]]:
    """Return the effects of changed boxes, for each model with two variants of the same data.

    And why others are not there.

    Args:
        given: the runs of the report.
        labels: the models' names in the report.
    """
    scored = [run.path for run in given if any(result.kind.name == "magic" and result.magic for result in run.results)]
    if not scored:
        return [], []
    gathered = gather(scored)
    named = {task.model: labels[task.result.run.identity] for task in gathered.tasks}
    notes = [note for note in gathered.notes if "is not compared with" in note]
    return [dataclasses.replace(one, model=named[one.model]) for one in gathered.contrasts], notes


# --- tables ---------------------------------------------------------------------------------------


def sheets(entries: Sequence[Entry], changed: Sequence[Contrast] = ()) -> list[Sheet]:
    """Return all tables of MAGIC; those without rows are left out."""
    some = [entry for entry in entries if entry.result.magic]
    return [
        sheet
        for sheet in (
            overview(some),
            contrast(changed),
            contrast_sides(changed),
            tasks(some),
            types(some),
            counts(some),
        )
        if sheet.rows
    ]


def _found(entry: Entry) -> MagicNumbers:
    """Return the numbers of a MAGIC task."""
    assert entry.result.magic is not None
    return entry.result.magic


def _about(entry: Entry) -> Row:
    """Return the cells with a result's model, dataset, task and judge."""
    found = _found(entry)
    return {
        "model": entry.model,
        "dataset": found.dataset or "",
        "task": entry.result.label,
        "judge": found.judge or "none",
    }


_OVERVIEW = tuple(name for name in WORDS if not name.startswith(("self_heal", "answer_found")))


def overview(entries: Sequence[Entry]) -> Sheet:
    """Return the paper's Table 2: of each model, answers and MagiScore with all boxes drawn, and Self-Heal beside them."""
    rows = []
    for entry in (one for one in entries if _found(one).variant == "all"):
        healing = [one for one in entries if _found(one).variant == "selfheal" and _together(one) == _together(entry)]
        numbers = numbers_of(entry.whole)
        healed = numbers_of(healing[-1].whole) if healing else {}
        row: Row = {
            **_about(entry),
            "docs": entry.whole.docs,
            **{name: numbers.get(name) for name in _OVERVIEW},
        }
        rows.append({**row, "self_heal": healed.get("self_heal")})
    heads = (_MODEL, _DATA, _DOCS, *_metrics(rows), _JUDGE)
    note = "As the MAGIC paper's Table 2: relevant and adversarial boxes are drawn. Fractions, not percent. "
    note += f"{_brackets(rows)}Self-Heal is of its own task."
    return Sheet("magic", "Region focus and answers", heads, rows, note)


def _brackets(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Return the sentence of a table's note on its intervals, and a space; empty where no number has an interval."""
    cells = (cell for row in rows for cell in row.values())
    return levels_in("In brackets: {} interval, from a bootstrap over images, all docs on one image together. ", cells)


def _together(entry: Entry) -> tuple[Any, ...]:
    """Return the settings shared by results shown side by side: model, dataset, seed and judge."""
    found = _found(entry)
    return entry.model, found.dataset, found.seed, found.judge, found.judged_by


def tasks(entries: Sequence[Entry]) -> Sheet:
    """Return every number of every task."""
    rows: list[Row] = [
        {**_about(entry), "shown": VARIANTS[_found(entry).variant], "docs": entry.whole.docs, **numbers_of(entry.whole)}
        for entry in entries
    ]
    drawn = Column(
        "shown",
        help="on the image: all boxes (relevant and adversarial), the relevant ones, or none",
    )
    heads = (_MODEL, _TASK, drawn, _DOCS, *_metrics(rows), _JUDGE)
    note = f"{_brackets(rows)}N/A: not defined, with the reason; empty: not a number of this task."
    return Sheet("magic_tasks", "Every MAGIC task", heads, rows, note)


def _metrics(rows: Sequence[Mapping[str, Cell]]) -> tuple[Column, ...]:
    return columns(name for row in rows for name, cell in row.items() if cell is not None)


def types(entries: Sequence[Entry]) -> Sheet:
    """Return every number by question type."""
    rows: list[Row] = [
        {**_about(entry), "type": name or "(none)", "docs": part.docs, **numbers_of(part)}
        for entry in entries
        for name, part in entry.categories.items()
    ]
    heads = (_MODEL, _TASK, Column("type", "question type", help="MAGIC paper, 3"), _DOCS, *_metrics(rows))
    note = f"{_brackets(rows)}Many types at once: one in twenty intervals misses by luck alone."
    return Sheet("magic_types", "By question type", heads, rows, note)


_HOW = "; ".join(f"{name}: {words}" for name, words in CONTRASTS.values())
_CONTRAST = Column("contrast", help=_HOW)
_MIND = Column("mind")


def contrast(contrasted: Sequence[Contrast]) -> Sheet:
    """Return the effects of changed boxes, paired by item: a row for each model and contrast."""
    rows: list[Row] = []
    for one in contrasted:
        differences = {number.name: number.difference for number in one.found.numbers}
        about: Row = {
            "model": one.model,
            "contrast": CONTRASTS[one.name][0],
            "tasks": f"{one.found.second} − {one.found.first}",
        }
        rows.append({**about, "items": one.found.docs, **differences, "mind": "; ".join(one.minds) or None})
    heads = (_MODEL, _CONTRAST, Column("tasks"), Column("items", help="that both tasks have"))
    metrics = tuple(
        dataclasses.replace(column, signed=True, help=f"difference of: {column.help}") for column in _metrics(rows)
    )
    sure = levels_in(
        ", with {} intervals from a bootstrap over images", (cell for row in rows for cell in row.values())
    )
    note = (
        f"{_HOW[0].upper()}{_HOW[1:]}. Differences paired by item{sure}. "
        "Precision and F1 are not contrasted: without adversarial boxes they rise by construction."
    )
    last = (_MIND,) if any(row["mind"] for row in rows) else ()
    return Sheet("magic_contrasts", "What other boxes cost or give", (*heads, *metrics, *last), rows, note)


def contrast_sides(contrasted: Sequence[Contrast]) -> Sheet:
    """Return the effects of changed boxes with both sides and p-values, a row for each metric."""
    rows: list[Row] = [
        {
            "model": one.model,
            "contrast": CONTRASTS[one.name][0],
            "metric": WORDS[number.name][0],
            "first": number.first,
            "second": number.second,
            "difference": number.difference,
            "p": number.p,
            "items": number.difference.n,
        }
        for one in contrasted
        for number in one.found.numbers
    ]
    heads = (
        _MODEL,
        _CONTRAST,
        Column("metric"),
        Column("first", help="the task that is subtracted"),
        Column("second"),
        Column("difference", signed=True, help="second − first"),
        Column("p", digits=4, help="two-sided, paired bootstrap over images; not corrected for the number of rows"),
        Column("items", help="that both tasks have, and that count in the metric"),
    )
    return Sheet("magic_contrast_sides", "The same with both sides and p-values", heads, rows, "Paired by item.")


def counts(entries: Sequence[Entry]) -> Sheet:
    """Return how many docs each convention touches."""
    rows: list[Row] = []
    for entry in entries:
        found = _found(entry)
        known = {key: value for key, value in found.counts.items() if key in COUNTS and isinstance(value, int)}
        rows.append(
            {
                "model": entry.model,
                "task": entry.result.label,
                **known,
                "left_out": found.left_out.items,
                "warnings": len(entry.warnings),
            }
        )
    heads = (
        _MODEL,
        _TASK,
        *(Column(key, words) for key, words in COUNTS.items()),
        Column("left_out", "items of the dataset that cannot be used"),
        Column("warnings", help="the details list them"),
    )
    note = "What is behind the numbers (docs/magic.md): which docs a convention decides, and what could not be judged."
    return Sheet("magic_counts", "Counts behind the conventions", used(heads, rows), rows, note)
