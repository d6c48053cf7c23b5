"""The number that a verdict goes by: a result's own, or its difference to the baseline, with its interval at the verdict's level. Pure."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from lmms_patch.compare.engine import Compared, plain_name
from lmms_patch.errors import RecordError
from lmms_patch.gate.limits import Basis
from lmms_patch.gate.sides import Baseline, Subject
from lmms_patch.runs.measures import full_marks_of, matching
from lmms_patch.runs.unjudged import BY_JUDGE
from lmms_patch.stats.intervals import at_level, difference, magnitude, magnitude_difference
from lmms_patch.stats.paired import Difference
from lmms_patch.stats.resample import Estimate


@dataclass(frozen=True)
class Judged:
    """The number on which a verdict is made, with its interval.

    Attributes:
        judged: the number, or number − baseline, with its interval at the verdict's level.
        value: the number itself, with its own interval at that level.
        baseline: the baseline's number; None without, or where it is not defined.
        basis: ``interval``, ``paired`` or ``unpaired``.
        unchanged: whether the number is made of the same scores, doc by doc, as the baseline's.
    """

    judged: Estimate
    value: Estimate
    baseline: float | None = None
    basis: Basis = "interval"
    unchanged: bool = False


def number_of(one: Subject, name: str, level: float, absolute: bool) -> Judged:
    """Return a number of a result.

    Args:
        one: the result.
        name: of ``measures``; a text-only cross-validation may lack the number.
        level: of the interval, 0..1.
        absolute: whether its distance from 0 is meant.
    """
    value = _leveled(one, name, level)
    value = magnitude(value) if absolute else value
    return Judged(value, value)


def bounds_of(one: Subject, name: str, level: float) -> tuple[Judged, Judged] | None:
    """Return a number by a judge with its unjudged docs all wrong, and all right.

    None where every doc is judged, and for other numbers.

    Args:
        one: the result.
        name: of ``measures``.
        level: of the intervals, 0..1.
    """
    if one.bounds(name) is None:
        return None
    low, high = _leveled_ends(one, name, level)
    return Judged(low, low), Judged(high, high)


def _leveled_ends(one: Subject, name: str, level: float) -> tuple[Estimate, Estimate]:
    """Return a number with its unjudged docs all wrong, and all right.

    Twice the number itself where every doc is judged.
    """
    found = one.bounds(name)
    ends = (one.measures[name],) * 2 if found is None else (found.low, found.high)
    low, high = (at_level(end, level, _scale(one, name)) for end in ends)
    return low, high


def _leveled(one: Subject, name: str, level: float) -> Estimate:
    """Return a number with its interval at another level; without a value where the run lacks the number."""
    if name not in one.measures:
        docs = one.result.docs
        return Estimate.nothing(docs, "the run does not have it", level)
    return at_level(one.measures[name], level, _scale(one, name))


def _is_mean(one: Subject, name: str) -> bool:
    """Return whether a number is a mean of the docs' scores."""
    if one.kind == "magic":
        return not name.endswith("_micro")
    return name in ("score", "fip", "tst", one.result.metric, *(f"mpp{n}" for n in one.result.grids))


def _scale(one: Subject, name: str) -> tuple[float, float] | None:
    """Return the ends of the scale for a mean of scores; else None."""
    top = full_marks_of(one.result)
    if top is None:
        return None
    # Less chance, the scale moves with the score.
    if name == "tst_over_chance":
        tst, over = one.measures["tst"].value, one.measures[name].value
        return None if tst is None or over is None else (over - tst, over - tst + top)
    return (0.0, top) if _is_mean(one, name) else None


# --- differences ----------------------------------------------------------------------------------


def difference_of(one: Subject, name: str, before: Baseline, level: float, absolute: bool) -> Judged:
    """Return the difference of a number to the baseline's: paired by doc where both have logs and the comparison has the number.

    Args:
        one: the result.
        name: of its ``measures``.
        before: the baseline.
        level: of the interval, 0..1.
        absolute: whether the distances from 0 are compared.

    Raises:
        RecordError: the baseline does not have the number, or as ``Baseline.compared``.
    """
    other = before.partner(one)
    theirs = next((match for match in matching(other.measures, name) if plain_name(match) == plain_name(name)), None)
    if theirs is None:
        raise RecordError(
            f"{other.run.path}: the baseline of {one.task} has no {name}; it has {', '.join(other.measures)}"
        )
    _check_judge(one, other, name)
    first, second = _leveled(other, theirs, level), _leveled(one, name, level)
    compared = before.compared(one, level)
    unchanged = compared is not None and name in compared.unchanged and _same(first.value, second.value)
    paired = None if compared is None else _paired(one, other, name, compared)
    basis: Basis = "unpaired" if paired is None else "paired"
    if paired is None:
        change, ours = _unpaired(first, second), second
    else:
        change = paired.estimate
        shift = _shift(one) if name == "tst_over_chance" else 0.0
        first, _ = _over_pairs(first, paired.first, shift, paired)
        second, ours = _over_pairs(second, paired.second, shift, paired)
    if absolute:
        change = magnitude_difference(first, second, change)
        first, ours = magnitude(first), magnitude(ours)
    return Judged(change, ours, first.value, basis, unchanged)


def difference_bounds_of(one: Subject, name: str, before: Baseline, level: float) -> tuple[Judged, Judged] | None:
    """Return the least and the greatest difference under any values for missing verdicts.

    None where none is missing, and for other numbers.

    The difference is least where docs without a verdict are wrong in this run and right in the baseline. Where both
    have logs, the two are ``compare.magic.bounds``. Else they are differences of the two runs' own bounds.

    Args:
        one: the result.
        name: of its ``measures``.
        before: the baseline.
        level: of the intervals, 0..1.
    """
    other = before.partner(one)
    if one.bounds(name) is None and other.bounds(name) is None:
        return None
    sides = [_leveled_ends(side, name, level) for side in (other, one)]
    compared = before.compared(one, level)
    out = []
    for end in (0, 1):
        first, second = sides[0][1 - end], sides[1][end]
        if compared is None:
            out.append(Judged(_unpaired(first, second), second, first.value, "unpaired"))
            continue
        paired = compared.bounds.get(compared.metric if name == "score" else name)
        # no doc that both runs scored lacks a verdict
        if paired is None:
            return None
        _, shown = _over_pairs(second, paired[end].second, 0.0, paired[end])
        out.append(Judged(paired[end].estimate, shown, paired[end].first, "paired"))
    return out[0], out[1]


def _same(first: float | None, second: float | None) -> bool:
    # numbers are summed anew, and their last digits may differ
    return first == second or (
        first is not None and second is not None and math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)
    )


def _check_judge(one: Subject, other: Subject, name: str) -> None:
    """Refuse a judged number with different judges in run and baseline, even where the rules ignore the judge.

    Raises:
        RecordError: it has two.
    """
    judges = [side.fingerprint.get("judge") for side in (other, one)]
    if name in BY_JUDGE and one.kind == "magic" and judges[0] != judges[1]:
        raise RecordError(
            f"{other.run.path}: {name} of {one.task} was judged by {judges[0]} in the baseline and by {judges[1]} in this run"
        )


def _over_pairs(stored: Estimate, value: float | None, shift: float, paired: Difference) -> tuple[Estimate, Estimate]:
    """Return a side of a paired difference over the paired docs: an estimate to compute with, and another to show.

    Where all docs are paired, both are the run's own number. Else the run's own interval is moved to the number, to
    compute with. This interval is not shown, as its width comes from other docs.
    """
    if value is None:
        nothing = stored.without(paired.estimate.reason)
        return nothing, nothing
    value -= shift
    if stored.value is not None and math.isclose(stored.value, value, rel_tol=1e-9, abs_tol=1e-9):
        return stored, stored
    n, clusters = paired.estimate.n, paired.estimate.clusters
    bare = Estimate(value, None, None, None, n, clusters, 0, stored.level, f"over the {n} docs that are paired")
    if stored.value is None or stored.low is None or stored.high is None:
        return bare, bare
    by = value - stored.value
    return dataclasses.replace(bare, se=stored.se, low=stored.low + by, high=stored.high + by), bare


def _paired(one: Subject, other: Subject, name: str, compared: Compared) -> Difference | None:
    """Return the paired difference of a number; None where the comparison lacks it."""
    primary = one.result.metric
    names = ["score" if name == primary else name]
    if name == "tst_over_chance":
        # With different chance levels, the paired difference of scores is not the difference over chance.
        same_chance = math.isclose(_shift(one), _shift(other), abs_tol=1e-9)
        names = ["tst"] if same_chance else []
    elif one.kind == "magic":
        names.insert(0, primary if name == "score" else name)
    change = next((compared.differences[key] for key in names if key in compared.differences), None)
    # ``differing`` is None for an unpaired difference.
    return None if change is None or change.differing is None else change


def _shift(side: Subject) -> float:
    """Return the chance level subtracted in ``tst_over_chance``."""
    tst, over = side.measures["tst"].value, side.measures["tst_over_chance"].value
    return math.nan if tst is None or over is None else tst - over


def _unpaired(first: Estimate, second: Estimate) -> Estimate:
    """Return the difference of two numbers without pairing, with the reason where a number is not defined."""
    change = difference(first, second)
    for which, side in (("the baseline", first), ("this run", second)):
        if side.value is None:
            return dataclasses.replace(
                change, reason=f"not defined in {which}" + (f": {side.reason}" if side.reason else "")
            )
    return change
