"""Every number of a wrapped task by its name, each with its interval: what reports, boards, comparisons and gates show. Pure.

``runs.catalogue`` has those of an analysis. Beside them stand:

| name | of | what |
|---|---|---|
| ``<metric>`` | every task | each native metric under its own name; only the primary one has an interval |
| ``drop<n>`` | occlude | the native metric with the worst cell hidden |
| ``tst``, ``tst_majority``, ``tst_above``, ``tst_over_chance`` | tst | the text-only cross-validation (docs/tst.md) |
| ``tst_leakage``, ``tst_zero_shot``, ``tst_delta``, ``tst_s`` | tst | where the diagnostic has them |
| ``magiscore_...``, ``regions_...``, ``acc_...``, ``self_heal...`` | magic | docs/magic.md; all with intervals |

All on the metric's own scale (fractions where it is one), indices without unit. An index that must not be read as it
stands is a ``reading.Noted``: it brings the words that every table sets beside it (``contradicted``,
...).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from lmms_patch.ask.kinds import end
from lmms_patch.errors import RecordError
from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.catalogue import without_interval
from lmms_patch.runs.unjudged import stored_bounds
from lmms_patch.stats.index import SIGNED
from lmms_patch.stats.intervals import of_file
from lmms_patch.stats.resample import Estimate

if TYPE_CHECKING:
    from lmms_patch.ask.kinds import Kind
    from lmms_patch.runs.numbers import Analysis
    from lmms_patch.runs.run import Result

NOT_NATIVE = ("records", "patch")
"""Columns that are no number of the task."""


def measures(result: Result) -> dict[str, Estimate]:
    """Return the numbers of a task of a finished run, in the order of the catalogue.

    Returns:
        An estimate for each number that this kind of task has; its value is None, with the reason, where it is not
        defined.

    Raises:
        RecordError: a MAGIC task without its numbers.
    """
    kind, metric, numbers = result.kind, result.metric, result.metrics
    out = {} if result.analysis is None else of_analysis(result.analysis, kind)
    ours = {*catalogue.named(kind, result.grids), *over_cells(result), *NOT_NATIVE}
    if "score" not in out:
        out["score"] = without_interval(
            numbers.get(metric), result.docs, "nothing was scored" if not result.docs else ""
        )
    if kind.full:
        out["fip"] = out["score"]
    for name, value in numbers.items():
        # the ends of intervals are columns of MAGIC tasks too
        if kind.name == "magic" and _is_end(name, numbers):
            continue
        if name == metric and not kind.every_order:
            out[name] = out["score"]
        elif name.startswith(f"{metric}_drop"):
            out[name.removeprefix(f"{metric}_")] = without_interval(value, result.docs)
        elif name not in ours and not (kind.folds and name.startswith("tst")):
            out[name] = without_interval(value, result.docs)
    magic = result.details.get("magic")
    # bare numbers would pass for the task's own
    if kind.name == "magic" and not magic and any(value is not None for value in numbers.values()):
        raise RecordError(
            f"{result.task} has no 'magic' object with its numbers; the results file was changed or written by another program"
        )
    if magic:
        out |= _of_magic(magic)
        out["score"] = out[metric]
    found = result.details.get("tst_details")
    # means over fold seeds; the harness's own number is of the first seed
    if found:
        out |= _of_tst(found, numbers)
        out |= {
            "score": out["tst"],
            metric: without_interval(numbers.get(metric), result.docs),
            "chance": without_interval(found["chance"], out["tst"].n),
        }
    return out


def over_cells(result: Result) -> set[str]:
    """Return the names of the native metrics over each doc's chosen cell."""
    keys, native = result.kind.sets(result.grids), result.details.get("higher_is_better") or {result.metric: True}
    return {f"{metric}_{what}{end(key)}" for metric in native for what in ("mpp", "drop") for key in keys}


def _is_end(name: str, numbers: Mapping[str, Any]) -> bool:
    """Return whether a number is an end of the interval of another."""
    of, _, side = name.rpartition("_")
    return side in ("low", "high") and of in numbers


def full_marks(analysis: Analysis | None, scale: float | None = None, *, signed: bool = False) -> float | None:
    """Return full marks on the metric's scale, where the metric is a mean of scores from 0 up.

    None where that is not known.

    Args:
        analysis: the numbers; None: there are none.
        scale: what the task's options say; else what the gold answers score counts.
        signed: whether the run's settings say that the scale goes below 0; the analysis may say so too.
    """
    if analysis is None or signed or any(grid.reason == SIGNED for grid in analysis.sets.values()):
        return None
    top = scale if isinstance(scale, (int, float)) else analysis.ceiling
    if analysis.form not in ("mean", "percent") or top is None or not math.isfinite(top) or top <= 0:
        return None
    return float(top)


def full_marks_of(result: Result) -> float | None:
    """Return full marks on the scale of a result's metric, as ``full_marks``."""
    if result.kind.name == "magic":
        return 1.0
    return full_marks(result.analysis, result.options.scale, signed=getattr(result.stored.settings, "signed", False))


def of_analysis(analysis: Analysis, kind: Kind) -> dict[str, Estimate]:
    """Return an analysis's numbers with a row in the catalogue.

    Args:
        analysis: the numbers.
        kind: of the task.
    """
    return catalogue.estimates(analysis, kind)


def _of_magic(magic: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return the numbers of a MAGIC task; a judge's number without all verdicts brings its bounds."""
    said = {name: one.span for name, one in stored_bounds(magic).items() if one.matter}
    out = {name: of_file(one) for name, one in magic["numbers"].items()}
    return {name: reading.noted(one, said[name]) if name in said else one for name, one in out.items()}


def _of_tst(found: Mapping[str, Any], numbers: Mapping[str, float | None]) -> dict[str, Estimate]:
    """Return the numbers of a text-only cross-validation by name, with their intervals."""
    head = found["by_grouping"][found["headline"]]
    tst, chance = of_file(head["accuracy"]), found["chance"]
    out = {"tst": tst, "tst_majority": without_interval(head["majority"], tst.n), "tst_above": of_file(head["above"])}
    out["tst_over_chance"] = (
        without_interval(None, tst.n, "chance is unknown") if chance is None else _moved(tst, -chance)
    )
    for name in ("leakage", "zero_shot", "delta"):
        if found.get(name) is not None:
            out[f"tst_{name}"] = of_file(found[name])
    out["tst_s"] = without_interval(numbers.get("tst_s"), tst.n)
    return out


def _moved(found: Estimate, by: float) -> Estimate:
    value, low, high = (None if end is None else end + by for end in (found.value, found.low, found.high))
    return dataclasses.replace(found, value=value, low=low, high=high)


def matching(names: Mapping[str, Any], pattern: str) -> list[str]:
    """Return the names matched by a wildcard that a user wrote; ``rci`` and ``pcri`` mean the same: the task's index.

    >>> matching({"fip": 0, "pcri3": 0, "pcri3_adj": 0}, "rci3*")
    ['pcri3', 'pcri3_adj']
    """
    other = catalogue.spellings()
    return [name for name in names if fnmatchcase(name, pattern) or fnmatchcase(other.get(name, name), pattern)]
