"""The tables of a Test-set Stress-Test, in plain text. Numbers are fractions on the metric's own scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lmms_patch.present import sheets, text_only
from lmms_patch.present.sheets import Cell, Cells, Column, Heads, number
from lmms_patch.present.terminal.folding import fold
from lmms_patch.runs.details import TstDetails
from lmms_patch.runs.run import Result
from lmms_patch.stats.resample import LEVEL, Estimate
from lmms_patch.text import clean, line

CELL = 40
"""The most characters of a text that a cell of these tables shows; longer texts are cut."""
_FOLDS = {"source": "by source", "none": "random", "text": "by text", "joined": "by source and text"}


def stress_table(tested: Sequence[Result], width: int | None = None) -> str:
    """Return a row per task: text-only score and the scores to compare with.

    Args:
        tested: text-only cross-validations.
        width: characters in a line, for the columns that matter most; None: any, for all columns.
    """
    rows = [_row(result) for result in tested]
    heads: Heads = ["task", "docs", "chance", "majority", _title(rows), "without copies"]
    if width is None:
        heads += [
            "metric",
            "diagnostic",
            "folds",
            "SD",
            "p",
            "random folds",
            "zero-shot",
            Column("delta", signed=True),
        ]
    return sheets.table(heads, [row[: len(heads)] for row in rows]).to_text(width)


def _title(rows: Iterable[Iterable[Cell]]) -> str:
    """Return the head of the column of scores, with the level of the intervals."""
    return f"TsT [{sheets.levels(cell for row in rows for cell in row) or f'{100 * LEVEL:g} %'}]"


def _told(result: Result) -> TstDetails:
    assert result.tst is not None
    return result.tst


def _row(result: Result) -> Cells:
    """Return the row of a text-only cross-validation."""
    found = _told(result)
    head, random, together = found.by_grouping[found.headline], found.by_grouping.get("none"), text_only.together(found)
    return [
        result.task,
        head.accuracy.n,
        number(found.chance),
        number(head.majority),
        head.accuracy,
        None if together is None else number(together.accuracy.value),
        result.metric,
        found.diagnostic,
        f"{found.folds} {_FOLDS[found.headline]}",
        head.sd,
        None if head.p is None else f"{head.p:.4f}",
        None if random is None else number(random.accuracy.value),
        found.zero_shot and number(found.zero_shot.value),
        found.delta and number(found.delta.value, signed=True),
    ]


def categories(result: Result, most: int = 40) -> str:
    """Return a row per category of a task; where there are many, the categories with the most docs.

    Empty where there is but one.
    """
    found = _told(result).categories
    if not found:
        return ""
    largest = sorted(found, key=lambda name: -found[name].docs)[:most]
    rows: list[Cells] = []
    for name, c in found.items():
        if name in largest:
            score = Estimate(c.accuracy, None, c.low, c.high, c.docs, c.docs, 0)
            rows.append([clean(name, CELL), c.docs, number(c.chance), number(c.majority), score, number(c.s)])
    more = len(found) - len(largest)
    made = sheets.table(
        [f"{result.task}, category", "docs", "chance", "majority", _title(rows), "s(x)"], rows
    ).to_text()
    return made + (f"\nand {more} smaller categories" if more else "")


def importances(result: Result, most: int = 12) -> str:
    """Return which features the diagnostic leans on, the most important first.

    Empty for a diagnostic without features.
    """
    kinds: dict[str, list[Cells]] = {}
    for row in _told(result).importance or ():
        kinds.setdefault(row.kind, []).append([row.kind, row.feature, number(row.gain), row.permutation])
    heads: Heads = [
        f"{result.task}, features of",
        "feature",
        "share of gain",
        Column("score lost when shuffled", signed=True),
    ]
    return sheets.table(heads, [row for rows in kinds.values() for row in rows[:most]]).to_text() if kinds else ""


def causes(result: Result, most: int = 15) -> str:
    """Return what the most exploitable questions ask about, and at the end what the least do (TsT paper, Table 10)."""
    found = _told(result).causes or ()
    heads: Heads = [
        f"{result.task}: words",
        "category",
        "rank",
        "docs",
        Column("s(x) above chance", signed=True),
    ]
    heads += ["most frequent gold", "its share", "mean", "SD", "CV"]
    rows: list[Cells] = []
    for cause in (cause for i, cause in enumerate(found) if i < most or i >= len(found) - 5):
        spread = (None if value is None else f"{value:.4g}" for value in (cause.mean, cause.sd, cause.cv))
        golds = [clean(cause.gold, CELL), number(cause.gold_share), *spread]
        rows.append(
            [
                clean(cause.words, CELL),
                clean(cause.category, CELL),
                cause.rank,
                cause.docs,
                cause.s_minus_chance,
                *golds,
            ]
        )
    return sheets.table(heads, rows).to_text()


def next_steps(tested: Sequence[Result]) -> list[str]:
    """Return what to do next after text-only cross-validations."""
    return [line(said) for said in text_only.next_steps([(result.base, _told(result)) for result in tested])]


def blocks(tested: Sequence[Result], of_causes: bool, width: int | None) -> list[str]:
    """Return what text-only cross-validations say, and their tables; empty where a task has nothing to show."""
    said = [fold(one, width, "- ") for one in next_steps(tested)]
    told = [fold(one, width, "- ") for result in tested for one in notes(result)]
    out = ["\n".join(said), stress_table(tested, width), "\n".join(told)]
    for result in tested:
        out += [categories(result), *([importances(result), causes(result)] if of_causes else [])]
    return out


def notes(result: Result) -> list[str]:
    """Return the meaning of the numbers, a line each."""
    told = [*(result.analysis.same if result.analysis else ()), *text_only.notes(_told(result))]
    return [line(f"{result.task}: {one}") for one in told]
