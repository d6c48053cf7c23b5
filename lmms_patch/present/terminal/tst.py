"""The tables of a Test-set Stress-Test, in plain text. Numbers are fractions on the metric's own scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_patch.errors import RecordError
from lmms_patch.present.terminal.rci import aligned, number
from lmms_patch.runs.results import TaskResult
from lmms_patch.text import line

_NEEDED = {
    "": ("diagnostic", "folds", "unusable", "leakage", "zero_shot", "delta", "texts", "categories", "importance", "causes"),
    "texts": ("different", "repeated", "conflicting"),
    "categories": ("docs", "chance", "majority", "accuracy", "low", "high", "s"),
    "importance": ("kind", "feature", "gain", "permutation"),
    "causes": ("words", "category", "rank", "docs", "s_minus_chance", "gold", "gold_share", "mean", "sd", "cv"),
    "by_grouping": ("accuracy", "majority", "above", "sd", "p"),
}
"""What the tables take of ``tst_details``, and of each row in its lists and objects; other readers need less."""
_FOLDS = {"source": "by source", "none": "random", "text": "by text"}


def stress_table(tested: Sequence[TaskResult]) -> str:
    """One row per task: what answers the questions without looking, and what that is to be compared with."""
    header = [
        "task",
        "metric",
        "diagnostic",
        "docs",
        "folds",
        "chance",
        "majority",
        "TsT [95 %]",
        "SD",
        "p",
        "random folds",
        "by text",
        "zero-shot",
        "delta",
    ]
    return aligned([header, *(_row(result) for result in tested)])


def _told(result: TaskResult) -> Mapping[str, Any]:
    """Return what a text-only cross-validation found.

    Raises:
        RecordError: it lacks what the tables need.
    """
    found: Mapping[str, Any] = result.details["tst_details"]
    parts = [("tst_details", found, _NEEDED[""])]
    for name, keys in _NEEDED.items():
        inner = found.get(name) or ()
        rows = [inner] if name == "texts" and inner else inner.values() if isinstance(inner, Mapping) else inner
        parts += [(f"tst_details.{name}", row, keys) for row in rows if name]
    for where, part, keys in parts:
        if missing := [key for key in keys if key not in part]:
            raise RecordError(f"{result.task}: {where} has no {missing[0]!r}; the results file was changed or written by another program")
    return found


def _row(result: TaskResult) -> list[str]:
    found = _told(result)
    head = found["by_grouping"][found["headline"]]
    others = [_value(found["by_grouping"].get(name)) for name in ("none", "text")]
    return [
        result.task,
        str(result.described["metric"]),
        found["diagnostic"],
        str(head["accuracy"]["n"]),
        f"{found['folds']} {_FOLDS[found['headline']]}",
        number(found["chance"]),
        number(head["majority"]),
        number(head["accuracy"]["value"]) + _span(head["accuracy"]),
        "" if head["sd"] is None else number(head["sd"]),
        "" if head["p"] is None else f"{head['p']:.4f}",
        *others,
        "" if found["zero_shot"] is None else number(found["zero_shot"]["value"]),
        "" if found["delta"] is None else number(found["delta"]["value"], signed=True),
    ]


def _short(text: str) -> str:
    """A text as a cell of a table: one line, not too long."""
    return line(text[:400])[:40]


def _value(grouped: Mapping[str, Any] | None) -> str:
    return "" if grouped is None else number(grouped["accuracy"]["value"])


def _span(estimate: Mapping[str, Any]) -> str:
    return "" if estimate["low"] is None else f" [{number(estimate['low'])}, {number(estimate['high'])}]"


def categories(result: TaskResult, most: int = 40) -> str:
    """One row per category of a task, those with the most docs where there are many; empty where there is but one."""
    found = _told(result)
    if not found["categories"]:
        return ""
    shown = sorted(found["categories"], key=lambda name: -found["categories"][name]["docs"])[:most]
    header = [f"{result.task}, category", "docs", "chance", "majority", "TsT [95 %]", "s(x)"]
    rows = [
        [_short(name), str(c["docs"]), number(c["chance"]), number(c["majority"]), number(c["accuracy"]) + _span(c), number(c["s"])]
        for name, c in found["categories"].items()
        if name in shown
    ]
    more = len(found["categories"]) - len(shown)
    return aligned([header, *rows]) + (f"\nand {more} smaller categories" if more else "")


def importances(result: TaskResult, most: int = 12) -> str:
    """Which features the diagnostic leans on, the most important first; empty for one without features."""
    rows = _told(result)["importance"]
    if not rows:
        return ""
    header = [f"{result.task}, features of", "feature", "share of gain", "score lost when shuffled"]
    kinds: dict[str, list[list[str]]] = {}
    for row in rows:
        lost = "" if row["permutation"] is None else number(row["permutation"], signed=True)
        kinds.setdefault(row["kind"], []).append([row["kind"], row["feature"], number(row["gain"]), lost])
    return aligned([header, *(line for lines in kinds.values() for line in lines[:most])])


def causes(result: TaskResult, most: int = 15) -> str:
    """What the most exploitable questions ask about, and at the end what the least do (TsT paper, Table 10)."""
    rows = _told(result)["causes"]
    header = [f"{result.task}: words", "category", "rank", "docs", "s(x) above chance", "most frequent gold", "its share", "mean", "SD", "CV"]
    shown = [row for i, row in enumerate(rows) if i < most or i >= len(rows) - 5]
    lines = [
        [
            _short(row["words"]),
            _short(row["category"]),
            str(row["rank"]),
            str(row["docs"]),
            number(row["s_minus_chance"], signed=True),
            _short(row["gold"]),
            number(row["gold_share"]),
            *("" if row[name] is None else f"{row[name]:.4g}" for name in ("mean", "sd", "cv")),
        ]
        for row in shown
    ]
    return aligned([header, *lines])


def notes(result: TaskResult) -> list[str]:
    """What the numbers mean, one line each."""
    found = _told(result)
    head = found["by_grouping"][found["headline"]]
    out = [_verdict(result.task, head)]
    out += [f"{result.task}: folds grouped by {name}: {why}" for name, why in found["unusable"].items()]
    leak = found["leakage"]
    if leak is not None and leak["low"] is not None and (leak["low"] > 0 or leak["high"] < 0):
        out.append(
            f"{result.task}: random folds score {number(leak['value'], signed=True)}{_span(leak)} against source-grouped ones: "
            "that is recognising the source (source leakage), not a shortcut in the language"
        )
    texts = found["texts"]
    if texts["conflicting"]:
        out.append(
            f"{result.task}: {texts['repeated']} docs have a text that another doc has too ({texts['different']} different texts), "
            f"and {texts['conflicting']} of them a text with different golds: random folds can leak answers, also reversed ones"
        )
    return [line(one) for one in out]


def _verdict(task: str, head: Mapping[str, Any]) -> str:
    above = head["above"]
    if above["low"] is None or head["p"] is None:
        return f"{task}: too few independent docs to say whether it can be answered without looking"
    if above["low"] > 0 and head["p"] < 0.05:
        return f"{task}: can in part be answered without looking: {number(above['value'], signed=True)}{_span(above)} above the majority answer"
    if above["high"] < 0:
        return f"{task}: text-only answers are worse than the majority answer ({number(above['value'], signed=True)}{_span(above)})"
    return f"{task}: no shortcut found by this diagnostic ({number(above['value'], signed=True)}{_span(above)} against the majority answer)"
