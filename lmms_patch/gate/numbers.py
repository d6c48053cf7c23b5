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
        basis: ``interval``, ``paired`` or ``unpaired``; of facts ``number``.
        unchanged: whether the number is made of the same scores, doc by doc, as the baseline's.
        ends: the least and the greatest that it is under any values for a judge's missing verdicts; None where none is
            missing.
    """

    judged: Estimate
    value: Estimate
    baseline: float | None = None
    basis: Basis = "interval"
    unchanged: bool = False
    ends: tuple[Judged, Judged] | None = None


def number_of(one: Subject, name: str, level: float, absolute: bool) -> Judged:
    """Return a number of a result at a level; its distance from 0 where ``absolute``."""
    value = _leveled(one, name, level)
    value = magnitude(value) if absolute else value
    ends = None
    if found := one.bounds.get(name):
        low, high = (at_level(end, level, _scale(one, name)) for end in (found.low, found.high))
        ends = Judged(low, low), Judged(high, high)
    return Judged(value, value, ends=ends)


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
    first, second, compared = _leveled(other, theirs, level), _leveled(one, name, level), before.compared(one, level)
    values = [math.nan if side.value is None else side.value for side in (first, second)]
    same = first.value == second.value or math.isclose(*values, rel_tol=1e-9, abs_tol=1e-12)
    is_score = one.numbers.get(name) is one.numbers["score"]
    paired = next((number for number in compared.numbers if number.name == name or (is_score and number.primary)), None)
    # ``differing`` is None for an unpaired difference
    basis: Basis = "unpaired" if paired is None or paired.differing is None else "paired"
    if paired is None or basis == "unpaired":
        change = difference(first, second)
        for which, side in (("this run", second), ("the baseline", first)):
            if side.value is None:
                why = ": ".join(filter(None, [f"not defined in {which}", side.reason]))
                change = dataclasses.replace(change, reason=why)
    else:
        change = paired.difference
        first, second = (_over_pairs(*side, change) for side in ((first, paired.first), (second, paired.second)))
    if absolute:
        change = magnitude_difference(first, second, change)
        first, second = magnitude(first), magnitude(second)
    docs = max(one.result.docs, other.result.docs)
    unchanged = compared.identical or (paired is not None and paired.differing == 0 and change.n == docs)
    ends, own = compared.bounds.get(compared.metric if name == "score" else name), number_of(one, name, level, False)
    bounded = None
    if ends is not None:
        least, greatest = (
            Judged(end.estimate, _over_pairs(side.value, end.second, end.estimate), end.first, "paired")
            for end, side in zip(ends, own.ends or (own, own), strict=True)
        )
        bounded = least, greatest
    return Judged(change, second, first.value, basis, same and unchanged, bounded)


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


# --- what is known beside numbers -----------------------------------------------------------------


def known(one: Subject, value: float | None, reason: str = "", *, sure: bool = True) -> Judged:
    """Return a fact about a result as a number: of states 1 holds, 0 does not; either may be true where not sure."""
    docs, ends = one.result.docs, (value, value) if sure else (0.0, 1.0)
    fact = Estimate(value, None, *ends, docs, docs, 0, reason=reason)
    return Judged(fact, fact, basis="number")


def gate(one: Subject) -> Judged:
    """Return whether the full image beats chance and a wrong image (``stats.gate``)."""
    analysis = one.result.analysis
    if analysis is None or analysis.gate.valid is None:
        return known(one, None, (analysis.gate.reason if analysis else "") or "unknown")
    # without wrong images nobody knows: else cutting them out of the samples would turn a failure into a pass
    unchecked = reading.why_unchecked(analysis, one.result.kind.words)
    return known(one, float(analysis.gate.valid), unchecked or analysis.gate.reason, sure=not unchecked)


def looks(one: Subject) -> Judged:
    """Return whether the answers are shown to depend on the image."""
    shown = one.result.analysis.gate if one.result.analysis else None
    value = reading.looks(shown) if shown else None
    if value:
        return known(one, 1.0)
    told = [way.reason for way in shown.looks if way.value is value and way.reason] if shown else []
    unchecked = one.result.kind.words.say(f"{reading.NOT_CHECKED}; {reading.MEASURE_IT}")
    return known(one, 0.0, (told or [unchecked])[0], sure=value is not None)


def excluded(one: Subject) -> Judged:
    """Return the largest share of docs left out by a grid, 0..1, and name the grid."""
    result, analysis = one.result, one.result.analysis
    counts = {n: grid.excluded for n in result.grids if (grid := result.grid(n))}
    if analysis is None or not analysis.n_docs or len(counts) < len(result.grids):
        return known(one, None, "the run does not say how many docs it left out")
    worst, docs = max(counts, key=counts.__getitem__), analysis.n_docs
    return known(one, counts[worst] / docs, f"{counts[worst]} of {docs} docs at {result.kind.words.grid(worst)}")


def docs(one: Subject) -> Judged:
    """Return how many docs have the primary metric."""
    analysis = one.result.analysis
    if one.result.kind.name == "magic":
        return known(one, one.result.docs)
    if analysis is None:
        return known(one, None, "the run does not say")
    return known(one, analysis.asked.docs if analysis.asked and analysis.asked.estimated else analysis.n_docs)


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
    # with sampling, the two runs ask different docs by design: a doc in one run only is not lost
    if any(reading.is_sampled(one.result.analysis) for one in sides):
        left, gone = max(counts, key=lambda count: count[1] / max(1, sum(count)))
        whole = left + gone
    else:
        left = number.judged.n if number.basis == "paired" else min(docs for docs, _ in counts)
        whole = max(map(sum, counts))
    # the slack keeps a share exactly at the limit from failing by rounding
    if whole <= left or (whole - left) / whole <= most + 1e-12:
        return ""
    return f"{whole - left} of {whole} docs are lost ({(whole - left) / whole:.1%}, more than max_lost {most:.1%})"


def _docs_of(one: Subject, name: str) -> tuple[int, int]:
    """Return the number of docs behind a number, and the number of docs lost to failed calls.

    Docs without a verdict are not lost: they count as wrong, or as right.
    """
    result, analysis = one.result, one.result.analysis
    # the luck-corrected index rests on the docs with wrong images alone, which would look like a loss
    raw = name.partition("_adj")[0]
    docs = next((one.numbers[match].n for match in matching(one.numbers, raw)), result.docs)
    if result.kind.name == "magic":
        return one.bounds[name].low.n if name in one.bounds else docs, result.failed
    if name.startswith("tst"):
        return docs, result.tst.unscored if result.tst else 0
    if analysis is None or analysis.failed is None:
        return docs, 0
    first = analysis.failed.first
    gone = first if raw in ("score", "fip", result.metric) else analysis.failed.docs
    # an estimate stands for all docs, but a doc that was never asked cannot be lost; ``asked`` lacks failed first calls
    if analysis.asked and analysis.asked.estimated:
        docs = analysis.asked.docs - (gone - first)
    return docs, gone
