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
stands brings the words that every table sets beside it (``contradicted``, ...).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.catalogue import without_interval
from lmms_patch.stats.index import SIGNED
from lmms_patch.stats.resample import Estimate

if TYPE_CHECKING:
    from lmms_patch.runs.details import MagicNumbers, TstDetails
    from lmms_patch.runs.numbers import Analysis
    from lmms_patch.runs.run import Result


def measures(result: Result) -> dict[str, Estimate]:
    """Return the numbers of a task of a finished run, in the order of the catalogue.

    Returns:
        An estimate for each number that this kind of task has; its value is None, with the reason, where it is not
        defined.
    """
    kind, metric, computed = result.kind, result.metric, result.computed
    if computed.magic is not None:
        out = _of_magic(computed.magic)
        return {**out, "score": out[metric]}
    out = {} if computed.analysis is None else catalogue.estimates(computed.analysis, kind)
    values = result.native.values
    if "score" not in out:
        out["score"] = without_interval(
            values.get(metric), result.docs, "nothing was scored" if not result.docs else ""
        )
    if kind.full:
        out["fip"] = out["score"]
    for name in result.about.metrics:
        out[name] = out["score"] if name == metric else without_interval(values.get(name), result.docs)
    out |= {name: without_interval(value, result.docs) for name, value in computed.drops.items()}
    # means over fold seeds; the harness's own number is of the first seed
    if computed.tst is not None:
        out |= _of_tst(computed.tst)
        out |= {
            "score": out["tst"],
            metric: without_interval(values.get(metric), result.docs),
            "chance": without_interval(computed.tst.chance, out["tst"].n),
        }
    return out


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
    top = analysis.ceiling if scale is None else scale
    return top if analysis.form in ("mean", "percent") and top is not None and top > 0 else None


def full_marks_of(result: Result) -> float | None:
    """Return full marks on the scale of a result's metric, as ``full_marks``."""
    if result.kind.name == "magic":
        return 1.0
    settings = result.about.settings
    return full_marks(result.analysis, settings.scale, signed=settings.signed)


def _of_magic(magic: MagicNumbers) -> dict[str, Estimate]:
    """Return the numbers of a MAGIC task; a judge's number without all verdicts brings its bounds."""
    said = {name: one.span for name, one in magic.bounds.items() if one.matter}
    return {name: reading.noted(one, said.get(name, "")) for name, one in magic.numbers.items()}


def _of_tst(found: TstDetails) -> dict[str, Estimate]:
    """Return the numbers of a text-only cross-validation by name, with their intervals."""
    head = found.by_grouping[found.headline]
    tst = head.accuracy
    out = {"tst": tst, "tst_majority": without_interval(head.majority, tst.n), "tst_above": head.above}
    if (chance := found.chance) is None:
        out["tst_over_chance"] = without_interval(None, tst.n, "chance is unknown")
    else:
        ends = {end: getattr(tst, end) for end in ("value", "low", "high")}
        moved: dict[str, Any] = {name: None if end is None else end - chance for name, end in ends.items()}
        out["tst_over_chance"] = dataclasses.replace(tst, **moved)
    for name in ("leakage", "zero_shot", "delta"):
        if (one := getattr(found, name)) is not None:
            out[f"tst_{name}"] = one
    out["tst_s"] = without_interval(found.s, tst.n)
    return out


def matching(names: Mapping[str, Any], pattern: str) -> list[str]:
    """Return the names matched by a user's wildcard; ``rci`` and ``pcri`` mean the same: the task's index.

    >>> matching({"fip": 0, "pcri3": 0, "pcri3_steady": 0}, "rci3*")
    ['pcri3', 'pcri3_steady']
    """
    other = catalogue.spellings()
    return [name for name in names if fnmatchcase(name, pattern) or fnmatchcase(other.get(name, name), pattern)]
