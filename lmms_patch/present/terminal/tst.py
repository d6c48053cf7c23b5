"""The tables of a Test-set Stress-Test, in plain text. Numbers are fractions on the metric's own scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_patch.errors import RecordError
from lmms_patch.present import sheets, text_only
from lmms_patch.present.sheets import Cell, Column, number
from lmms_patch.runs.run import Result
from lmms_patch.stats.resample import LEVEL
from lmms_patch.text import clean, line

_NEEDED = {
    "": ("diagnostic", "folds", "unusable", "leakage", "zero_shot", "delta", "texts", "categories", "importance", "causes"),
    "texts": ("different", "repeated", "conflicting"),
    "categories": ("docs", "chance", "majority", "accuracy", "low", "high", "s"),
    "importance": ("kind", "feature", "gain", "permutation"),
    "causes": ("words", "category", "rank", "docs", "s_minus_chance", "gold", "gold_share", "mean", "sd", "cv"),
    "by_grouping": ("accuracy", "majority", "above", "sd", "p"),
}
"""What the tables take of ``tst_details``, and of each row in its lists and objects; other readers need less."""
CELL = 40
"""The most characters of a text that a cell of these tables shows; longer texts are cut."""
_FOLDS = {"source": "by source", "none": "random", "text": "by text", "joined": "by source and text"}


def stress_table(tested: Sequence[Result], width: int | None = None) -> str:
    """Return one row per task: what answers the questions without looking, and what that is to be compared with.

    Args:
        tested: text-only cross-validations.
        width: characters in a line, for the columns that matter most; None: any, for all columns.
    """
    rows = [_row(result) for result in tested]
    heads: list[str | Column] = ["task", "docs", "chance", "majority", _title(rows), "without copies"]
    if width is None:
        heads += ["metric", "diagnostic", "folds", "SD", "p", "random folds", "zero-shot", Column("", "delta", signed=True)]
    return sheets.table(heads, [row[: len(heads)] for row in rows]).to_text(width)


def _title(rows: Iterable[Iterable[Cell]]) -> str:
    """Return the head of the column of scores: with the level of the intervals in it, that of any new one where it has none."""
    return f"TsT [{sheets.levels(cell for row in rows for cell in row) or f'{100 * LEVEL:g} %'}]"


def _told(result: Result) -> Mapping[str, Any]:
    """Return what a text-only cross-validation found.

    Raises:
        RecordError: it lacks what the tables need.
    """
    details: Mapping[str, Any] = result.details["tst_details"]
    parts = [("tst_details", details, _NEEDED[""])]
    for name, keys in _NEEDED.items():
        inner = details.get(name) or ()
        rows = [inner] if name == "texts" and inner else inner.values() if isinstance(inner, Mapping) else inner
        parts += [(f"tst_details.{name}", row, keys) for row in rows if name]
    for where, part, keys in parts:
        if missing := [key for key in keys if key not in part]:
            raise RecordError(f"{result.task}: {where} has no {missing[0]!r}; the results file was changed or written by another program")
    return details


def _row(result: Result) -> list[Cell]:
    """Return the row of a text-only cross-validation."""
    details = _told(result)
    head = details["by_grouping"][details["headline"]]
    random, together = (details["by_grouping"].get(name) for name in ("none", "joined" if "joined" in details["by_grouping"] else "text"))
    return [
        result.task,
        head["accuracy"]["n"],
        number(details["chance"]),
        number(head["majority"]),
        text_only.estimate(head["accuracy"]),
        None if together is None else number(together["accuracy"]["value"]),
        str(result.metric),
        details["diagnostic"],
        f"{details['folds']} {_FOLDS[details['headline']]}",
        head["sd"],
        None if head["p"] is None else f"{head['p']:.4f}",
        None if random is None else number(random["accuracy"]["value"]),
        *(None if details[name] is None else number(details[name]["value"], signed=name == "delta") for name in ("zero_shot", "delta")),
    ]


def categories(result: Result, most: int = 40) -> str:
    """Return one row per category of a task, those with the most docs where there are many; empty where there is but one."""
    known = _told(result)["categories"]
    if not known:
        return ""
    largest = sorted(known, key=lambda name: -known[name]["docs"])[:most]
    rows = [
        [clean(name, CELL), c["docs"], number(c["chance"]), number(c["majority"]), text_only.estimate(c, "accuracy"), number(c["s"])]
        for name, c in known.items()
        if name in largest
    ]
    more = len(known) - len(largest)
    made = sheets.table([f"{result.task}, category", "docs", "chance", "majority", _title(rows), "s(x)"], rows).to_text()
    return made + (f"\nand {more} smaller categories" if more else "")


def importances(result: Result, most: int = 12) -> str:
    """Return which features the diagnostic leans on, the most important first; empty for a diagnostic without features."""
    kinds: dict[str, list[list[Cell]]] = {}
    for row in _told(result)["importance"]:
        kinds.setdefault(row["kind"], []).append([row["kind"], row["feature"], number(row["gain"]), row["permutation"]])
    heads: list[str | Column] = [f"{result.task}, features of", "feature", "share of gain", Column("", "score lost when shuffled", signed=True)]
    return sheets.table(heads, [row for rows in kinds.values() for row in rows[:most]]).to_text() if kinds else ""


def causes(result: Result, most: int = 15) -> str:
    """Return what the most exploitable questions ask about, and at the end what the least do (TsT paper, Table 10)."""
    known = _told(result)["causes"]
    heads: list[str | Column] = [f"{result.task}: words", "category", "rank", "docs", Column("", "s(x) above chance", signed=True)]
    heads += ["most frequent gold", "its share", "mean", "SD", "CV"]
    rows: list[list[Cell]] = []
    for row in (row for i, row in enumerate(known) if i < most or i >= len(known) - 5):
        spread = (None if row[name] is None else f"{row[name]:.4g}" for name in ("mean", "sd", "cv"))
        golds = [clean(row["gold"], CELL), number(row["gold_share"]), *spread]
        rows.append([clean(row["words"], CELL), clean(row["category"], CELL), row["rank"], row["docs"], row["s_minus_chance"], *golds])
    return sheets.table(heads, rows).to_text()


def next_steps(tested: Sequence[Result]) -> list[str]:
    """Return what to do next after each text-only cross-validation, one line each."""
    return [line(f"next for {result.task}: {text_only.next_step(_told(result), result.base)}") for result in tested]


def notes(result: Result) -> list[str]:
    """Return what the numbers mean, one line each."""
    return [line(f"{result.task}: {one}") for one in text_only.notes(_told(result))]
