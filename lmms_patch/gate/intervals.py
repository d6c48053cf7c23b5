"""The number that a verdict goes by, with its interval at the verdict's level: of a result, or of its difference to the baseline. Pure."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass

from lmms_patch.errors import RecordError
from lmms_patch.gate import limits
from lmms_patch.gate.sides import Baseline, Result
from lmms_patch.measures import matching
from lmms_patch.paired import Compared, plain_name
from lmms_patch.stats.paired import Difference
from lmms_patch.stats.resample import Estimate

_FULL_MARKS = {"mean": 1.0, "percent": 100.0}
"""What a doc of score 1 adds to its aggregation."""
_MPP, _GAP, _INDEX = re.compile(r"^mpp\d+$"), re.compile(r"^gap(\d+)$"), re.compile(r"^p?rci(\d+)$")


@dataclass(frozen=True)
class Judged:
    """What a verdict goes by.

    Attributes:
        judged: the number, or number − baseline, with its interval at the level that counts.
        value: the number itself, with its own interval at that level.
        baseline: the baseline's number; None without, or where it is not defined.
        basis: ``interval``, ``paired`` or ``unpaired``.
    """

    judged: Estimate
    value: Estimate
    baseline: float | None = None
    basis: str = "interval"


def number_of(one: Result, name: str, level: float, absolute: bool) -> Judged:
    """A number of a result.

    Args:
        one: the result.
        name: of ``measures``; a text-only cross-validation without its numbers has none.
        level: of the interval, 0..1.
        absolute: its distance from 0.
    """
    value = _leveled(one, name, level)
    value = limits.magnitude(value) if absolute else value
    return Judged(value, value)


def _leveled(one: Result, name: str, level: float) -> Estimate:
    found = one.measures.get(name)
    if found is None:
        docs = one.result.docs
        return Estimate(None, None, None, None, docs, docs, 0, level, "the run does not have it")
    out = limits.of_number(found, level, _scale(one, name))
    if out.low is None and found.low is not None and (match := _INDEX.match(name) or _GAP.match(name)):
        return _boxed(one, match[1], out, level, bool(_INDEX.match(name)))
    return out


def _boxed(one: Result, grid: str, flat: Estimate, level: float, index: bool) -> Estimate:
    """An index or gap without spread (every cell wrong, say), with what the exact intervals of FIP and MPP leave for it."""
    if one.result.metrics.get(f"n_excluded{grid}") != 0 or f"mpp{grid}" not in one.measures:  # else FIP is of other docs than MPP
        return flat
    fip, mpp = (limits.of_number(one.measures[name], limits.corrected(level, 2), _scale(one, name)) for name in ("fip", f"mpp{grid}"))
    ends = limits.of_ratio(fip, mpp, index)
    return flat if ends is None else dataclasses.replace(flat, low=ends[0], high=ends[1], reason="from the exact intervals of FIP and MPP")


def _form(one: Result) -> str | None:
    form = (one.result.details.get("analysis") or {}).get("form")
    return form if isinstance(form, str) else None


def _top(one: Result) -> float | None:
    """Full marks on the metric's own scale, where the metric is a mean of scores from 0 up; None where that is not known."""
    ceiling = one.measures.get("ceiling")
    scale = one.result.described["options"].get("scale")
    top = scale if isinstance(scale, (int, float)) else None if ceiling is None else ceiling.value
    return float(top) if _form(one) in _FULL_MARKS and top is not None and math.isfinite(top) and top > 0 else None


def _plain(one: Result, name: str) -> bool:
    """Whether a number is a mean of the docs' scores."""
    return name in ("score", "fip", one.result.described["metric"]) or bool(_MPP.match(name)) or (name == "tst" and _form(one) == "mean")


def _scale(one: Result, name: str) -> tuple[float, float] | None:
    """The ends of the scale of a mean of scores; None for other numbers."""
    top = _top(one)
    if top is None:
        return None
    if name == "tst_over_chance" and _plain(one, "tst"):
        tst, over = one.measures["tst"].value, one.measures[name].value
        return None if tst is None or over is None else (over - tst, over - tst + top)
    return (0.0, top) if _plain(one, name) else None


# --- differences ----------------------------------------------------------------------------------


def difference_of(one: Result, name: str, before: Baseline, level: float, absolute: bool) -> Judged:
    """The difference of a number to the baseline's: paired by doc where both have logs and the comparison has the number.

    Args:
        one: the result.
        name: of its ``measures``.
        before: the baseline.
        level: of the interval, 0..1.
        absolute: of the distances from 0.

    Raises:
        RecordError: the baseline does not have the number, or as ``Baseline.compared``.
    """
    other = before.partner(one)
    theirs = next((match for match in matching(other.measures, name) if plain_name(match) == plain_name(name)), None)
    if theirs is None:
        raise RecordError(f"{other.run.path}: the baseline of {one.task} has no {name}; it has {', '.join(other.measures)}")
    first, second = _leveled(other, theirs, level), _leveled(one, name, level)
    compared = before.compared(one)
    paired = None if compared is None else _paired(one, other, name, compared)
    if compared is None or paired is None:
        change, basis = limits.of_unpaired(first, second), "unpaired"
    else:
        change, basis = _of_paired(one, name, first, paired, compared, level), "paired"
    ours, base = second, first.value if paired is None else paired.first
    if absolute:
        change = limits.magnitude_difference(first, second, change)
        ours, base = limits.magnitude(second), None if base is None else abs(base)
    return Judged(change, ours, base, basis)


def _paired(one: Result, other: Result, name: str, compared: Compared) -> Difference | None:
    """The paired difference of a number; None where the comparison does not have it."""
    if name == "tst_over_chance":
        same = math.isclose(_shift(one), _shift(other), abs_tol=1e-9)  # else the difference is also one of chance
        found = compared.differences.get("tst") if same else None
    else:
        found = compared.differences.get("score" if name == one.result.described["metric"] else name)
    if found is None or (found.differing is None and found.estimate.reason.startswith("unpaired")):
        return None
    return found


def _shift(side: Result) -> float:
    """Chance, as ``tst_over_chance`` takes it off."""
    tst, over = side.measures["tst"].value, side.measures["tst_over_chance"].value
    return math.nan if tst is None or over is None else tst - over


def _of_paired(one: Result, name: str, first: Estimate, found: Difference, compared: Compared, level: float) -> Estimate:
    """A paired difference at a level, with exact intervals where few docs differ, or none."""
    top, form = _top(one), _form(one)
    plain = _plain(one, name) or name == "tst_over_chance"
    reach = None if top is None else top if plain else 2 * top if _GAP.match(name) else None
    if _INDEX.match(name) and found.differing == 0 and top is not None and found.estimate.value == 0:
        # every doc alike in both runs: the index moves by what the few that might not be could do
        reach = _index_reach(one, first, top, level)
    views = name in ("score", "fip", one.result.described["metric"])
    unit = _FULL_MARKS.get(form or "") if views else None
    if unit is not None and not compared.higher:
        unit = -unit
    return limits.of_paired(found.estimate, level, reach=reach, differing=found.differing, unit=unit, mcnemar=compared.mcnemar if views else None)


def _index_reach(one: Result, index: Estimate, top: float, level: float) -> float | None:
    """What ``of_paired`` scales by the share that may differ, so that the index's own bound comes out."""
    fip = limits.at_level(one.measures["fip"], level)
    moved = limits.of_same_index(index, fip, top, level)
    rare = limits.rarely(index.clusters, level)
    return None if moved is None or not rare else moved / rare
