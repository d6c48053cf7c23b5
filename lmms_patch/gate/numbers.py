"""The number that a verdict goes by: a result's own, or its difference to the baseline, with its interval at the verdict's level."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from lmms_patch.compare.alike import plain_name
from lmms_patch.errors import RecordError
from lmms_patch.gate.limits import Basis
from lmms_patch.gate.sides import Baseline, Subject
from lmms_patch.runs import reading
from lmms_patch.runs.measures import full_marks_of, matching
from lmms_patch.runs.unjudged import BY_JUDGE
from lmms_patch.stats.intervals import at_level, difference, magnitude, magnitude_difference
from lmms_patch.stats.resample import Estimate

OVER_CHANCE = "tst_over_chance"


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
    """Return a number of a result at a level; its distance from 0 where ``absolute``."""
    value = _leveled(one, name, level)
    value = magnitude(value) if absolute else value
    return Judged(value, value)


def bounds_of(one: Subject, name: str, level: float) -> tuple[Judged, Judged] | None:
    """Return a number by a judge with its unjudged docs all wrong, and all right; None where every doc is judged."""
    if name not in one.bounds:
        return None
    low, high = (at_level(end, level, _scale(one, name)) for end in (one.bounds[name].low, one.bounds[name].high))
    return Judged(low, low), Judged(high, high)


def _leveled(one: Subject, name: str, level: float) -> Estimate:
    """Return a number with its interval at another level; without a value where the run lacks the number."""
    if name not in one.numbers:
        return Estimate.nothing(one.result.docs, "the run does not have it", level)
    return at_level(one.numbers[name], level, _scale(one, name))


def _scale(one: Subject, name: str) -> tuple[float, float] | None:
    """Return the ends of the scale for a mean of scores; else None."""
    result, top = one.result, full_marks_of(one.result)
    means = ("score", "fip", "tst", result.metric, *(f"mpp{n}" for n in result.grids))
    is_mean = not name.endswith("_micro") if result.kind.name == "magic" else name in means
    return (0.0, top) if top is not None and is_mean else None


# --- what is known beside numbers -----------------------------------------------------------------


def known(docs: int, value: float | None, reason: str = "", *, sure: bool = True) -> Estimate:
    """Return something known of so many docs as a number: of states 1 holds, 0 does not; either may be true where not sure."""
    ends = (value, value) if sure else (0.0, 1.0)
    return Estimate(value, None, *ends, docs, docs, 0, reason=reason)


def gate(one: Subject) -> Estimate:
    """Return whether the full image beats chance and a wrong image (``stats.gate``)."""
    analysis = one.result.analysis
    if analysis is None or analysis.gate.valid is None:
        return known(one.result.docs, None, (analysis.gate.reason if analysis else "") or "unknown")
    # Without wrong images nobody knows: else cutting them out of the samples would turn a failure into a pass.
    unchecked = reading.why_unchecked(analysis, one.result.kind.words)
    return known(one.result.docs, float(analysis.gate.valid), unchecked or analysis.gate.reason, sure=not unchecked)


def looks(one: Subject) -> Estimate:
    """Return whether the answers are shown to depend on the image."""
    analysis = one.result.analysis
    value = reading.looks(analysis.gate) if analysis else None
    told = [shown.reason for shown in analysis.gate.looks if shown.value is value and shown.reason] if analysis else []
    why = "" if value else one.result.kind.words.say(f"{reading.NOT_CHECKED}; {reading.MEASURE_IT}")
    return known(one.result.docs, float(bool(value)), (told or [why])[0] if not value else "", sure=value is not None)


def excluded(one: Subject) -> Estimate:
    """Return the largest share of docs left out by a grid, 0..1, and name the grid."""
    result, analysis = one.result, one.result.analysis
    counts = {n: grid.excluded for n in result.grids if (grid := result.grid(n))}
    if analysis is None or not analysis.n_docs or len(counts) < len(result.grids):
        return known(one.result.docs, None, "the run does not say how many docs it left out")
    worst, docs = max(counts, key=counts.__getitem__), analysis.n_docs
    return known(
        one.result.docs, counts[worst] / docs, f"{counts[worst]} of {docs} docs at {result.kind.words.grid(worst)}"
    )


def docs(one: Subject) -> Estimate:
    """Return how many docs have the primary metric."""
    analysis = one.result.analysis
    if one.result.kind.name == "magic":
        return known(one.result.docs, one.result.docs)
    if analysis is None:
        return known(one.result.docs, None, "the run does not say")
    asked = analysis.asked.docs if analysis.asked and analysis.asked.estimated else analysis.n_docs
    return known(one.result.docs, asked)


# --- differences ----------------------------------------------------------------------------------


def difference_of(one: Subject, name: str, before: Baseline, level: float, absolute: bool) -> Judged:
    """Return the difference of a number to the baseline's: paired by doc where the comparison has the number.

    Args:
        one: the result.
        name: of its numbers.
        before: the baseline.
        level: of the interval, 0..1.
        absolute: whether the distances from 0 are compared.

    Raises:
        RecordError: the baseline does not have the number, another judge gave it, or as ``Baseline.compared``.
    """
    other = before.partner(one)
    theirs = next((match for match in matching(other.numbers, name) if plain_name(match) == plain_name(name)), None)
    if theirs is None:
        raise RecordError(
            f"{other.result.run.path}: the baseline of {one.label} has no {name}; it has {', '.join(other.numbers)}"
        )
    judges = [side.result.fingerprint.get("judge") for side in (other, one)]
    # even where the rules ignore the judge
    if name in BY_JUDGE and judges[0] != judges[1]:
        raise RecordError(
            f"{other.result.run.path}: {name} of {one.label} was judged by {judges[0]} in the baseline and by {judges[1]} in this run"
        )
    first, second = _leveled(other, theirs, level), _leveled(one, name, level)
    compared = before.compared(one, level)
    names = [name, *(("score", one.result.metric) if name in ("score", one.result.metric) else ())]
    paired = next((compared.differences[key] for key in names if key in compared.differences), None)
    values = [math.nan if side.value is None else side.value for side in (first, second)]
    same = first.value == second.value or math.isclose(*values, rel_tol=1e-9, abs_tol=1e-12)
    # ``differing`` is None for an unpaired difference
    basis: Basis = "unpaired" if paired is None or paired.differing is None else "paired"
    if paired is None or paired.differing is None:
        change = difference(first, second)
        for which, side in (("this run", second), ("the baseline", first)):
            if side.value is None:
                why = ": ".join(filter(None, [f"not defined in {which}", side.reason]))
                change = dataclasses.replace(change, reason=why)
    else:
        change = paired.estimate
        first, second = (_over_pairs(*side, change) for side in ((first, paired.first), (second, paired.second)))
    if absolute:
        change = magnitude_difference(first, second, change)
        first, second = magnitude(first), magnitude(second)
    return Judged(change, second, first.value, basis, same and name in compared.unchanged)


def difference_bounds_of(one: Subject, name: str, before: Baseline, level: float) -> tuple[Judged, Judged] | None:
    """Return the least and the greatest difference under any values for missing verdicts (``compare.magic``).

    None where none is missing among the docs that both runs scored, and for other numbers.

    The difference is least where docs without a verdict are wrong in this run and right in the baseline.
    """
    if name not in one.bounds and name not in before.partner(one).bounds:
        return None
    compared = before.compared(one, level)
    ends = compared.bounds.get(compared.metric if name == "score" else name)
    own = bounds_of(one, name, level) or (number_of(one, name, level, False),) * 2
    if ends is None:
        return None
    low, high = (
        Judged(end.estimate, _over_pairs(side.value, end.second, end.estimate), end.first, "paired")
        for end, side in zip(ends, own, strict=True)
    )
    return low, high


def _over_pairs(stored: Estimate, value: float | None, change: Estimate) -> Estimate:
    """Return a side of a paired difference over the paired docs.

    Where all docs are paired that is the run's own number; else one without interval, as the run's is of other docs.
    """
    if value is None:
        return stored.without(change.reason)
    if stored.value is not None and math.isclose(stored.value, value, rel_tol=1e-9, abs_tol=1e-9):
        return stored
    why = f"over the {change.n} docs that are paired"
    return Estimate(value, None, None, None, change.n, change.clusters, 0, stored.level, why)


# --- docs that a number lost ----------------------------------------------------------------------


def lost(number: Judged, sides: list[Subject], name: str, most: float) -> str:
    """Say how many docs a number lost, where these are more than a rule allows; else empty.

    A doc is lost to a failed call, or in a comparison when only one run has it. Without this check a model would get
    better by failing on the docs that it answers wrong.

    Args:
        number: what is judged.
        sides: the results that it is made of.
        name: of the number.
        most: the share of docs that may be lost.
    """
    counts = [_docs_of(one, name) for one in sides]
    # With sampling, the two runs ask different docs by design: a doc in one run only is not lost.
    if any(reading.is_sampled(one.result.analysis) for one in sides):
        left, gone = max(counts, key=lambda count: count[1] / max(1, sum(count)))
        whole = left + gone
    else:
        left = number.judged.n if number.basis == "paired" else min(docs for docs, _ in counts)
        whole = max(map(sum, counts))
    # The slack keeps a share exactly at the limit from failing by rounding.
    if whole <= left or (whole - left) / whole <= most + 1e-12:
        return ""
    return f"{whole - left} of {whole} docs are lost ({(whole - left) / whole:.1%}, more than max_lost {most:.1%})"


def _docs_of(one: Subject, name: str) -> tuple[int, int]:
    """Return the number of docs behind a number, and the number of docs lost to failed calls.

    Docs without a verdict are not lost: they count as wrong, or as right.
    """
    result = one.result
    # The luck-corrected index rests on the docs with wrong images alone, which would look like a loss.
    raw = name.partition("_adj")[0]
    docs = next((one.numbers[match].n for match in matching(one.numbers, raw)), result.docs)
    if result.kind.name == "magic":
        return one.bounds[name].low.n if name in one.bounds else docs, result.magic.failed if result.magic else 0
    if name.startswith("tst"):
        return docs, result.tst.unscored if result.tst else 0
    analysis, failed = result.analysis, result.analysis.failed if result.analysis else None
    without_first = failed.first if failed else 0
    gone = without_first if raw in ("score", "fip", result.metric) else failed.docs if failed else 0
    # An estimate stands for all docs, but a doc that was never asked cannot be lost.
    if analysis and analysis.asked and analysis.asked.estimated:
        # ``asked.docs`` leaves out docs whose first call failed.
        docs = analysis.asked.docs - (gone - without_first)
    return docs, gone
