"""What a verdict goes by: a number of a result, its difference to the baseline, or another fact about the result."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lmms_patch.compare.alike import plain_name
from lmms_patch.errors import RecordError
from lmms_patch.gate.limits import Basis
from lmms_patch.gate.sides import Baseline, Subject
from lmms_patch.runs import reading
from lmms_patch.runs.measures import full_marks_of, matching
from lmms_patch.runs.unjudged import BY_JUDGE
from lmms_patch.stats.intervals import at_level, difference, magnitude
from lmms_patch.stats.resample import Estimate


@dataclass(frozen=True)
class Judged:
    """The number on which a verdict is made, with its interval.

    Attributes:
        judged: the number, or number − baseline, with its interval at the verdict's level.
        value: the number itself, with its own interval at that level.
        baseline: the baseline's number; None without, or where it is not defined.
        basis: ``interval``, ``paired`` or ``unpaired``; of facts ``number``.
        unchanged: whether the number is made of the same scores, doc by doc, as the baseline's.
        lost: share of the docs of one run that the other has no score of, 0..1; of a run that left docs out 0.
    """

    judged: Estimate
    value: Estimate
    baseline: float | None = None
    basis: Basis = "interval"
    unchanged: bool = False
    lost: float = 0.0


def number_of(one: Subject, name: str, level: float, absolute: bool = False) -> Judged:
    """Return a number of a result at a level; its distance from 0 where ``absolute``."""
    value = at_level(one.numbers[name], level, _scale(one, name))
    value = magnitude(value) if absolute else value
    return Judged(value, value)


def _scale(one: Subject, name: str) -> tuple[float, float] | None:
    """Return the ends of the scale for a mean of scores; else None."""
    result, top = one.result, full_marks_of(one.result)
    means = ("score", "fip", "tst", result.metric, *(f"mpp{n}" for n in result.grids))
    is_mean = not name.endswith("_micro") if result.kind.name == "magic" else name in means
    return (0.0, top) if top is not None and is_mean else None


def difference_of(one: Subject, name: str, before: Baseline, level: float) -> Judged:
    """Return the difference of a number to the baseline's: paired by doc where the comparison has the number.

    Args:
        one: the result.
        name: of its numbers.
        before: the baseline.
        level: of the interval, 0..1.

    Raises:
        RecordError: the baseline does not have the number, another judge gave it, or as ``Baseline.compared``.
    """
    other, where = before.partner(one), f"{before.partner(one).result.run.path}: {name} of {one.label}"
    theirs = next((match for match in matching(other.numbers, name) if plain_name(match) == plain_name(name)), None)
    if theirs is None:
        raise RecordError(f"{where}: the baseline has no such number; it has {', '.join(other.numbers)}")
    # even where the rules ignore the judge
    if name in BY_JUDGE and len({side.result.fingerprint.get("judge") for side in (other, one)}) > 1:
        raise RecordError(f"{where} has another judge in the baseline")
    first, second = number_of(other, theirs, level).value, number_of(one, name, level).value
    compared = before.compared(one, level)
    is_score = one.numbers[name] is one.numbers["score"]
    paired = next((number for number in compared.numbers if number.name == name or (is_score and number.primary)), None)
    # ``differing`` is None for an unpaired difference
    if paired is None or paired.differing is None:
        basis: Basis = "unpaired"
        change = difference(first, second) if paired is None else paired.difference
    else:
        basis, change = "paired", paired.difference
        first, second = (_over_pairs(*side, change) for side in ((first, paired.first), (second, paired.second)))
    docs = max(one.result.docs, other.result.docs)
    unchanged = compared.identical or (paired is not None and paired.differing == 0 and change.n == docs)
    most = max(side.numbers[own].n for side, own in ((other, theirs), (one, name)))
    lost = 0.0 if basis == "unpaired" or most == 0 or one.sampled or other.sampled else 1 - change.n / most
    return Judged(change, second, first.value, basis, unchanged, lost)


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
    value = shown and reading.looks(shown)
    if value:
        return known(one, 1.0)
    told = [way.reason for way in shown.looks if way.value is value and way.reason] if shown else []
    unchecked = one.result.kind.words.say(f"{reading.NOT_CHECKED}; {reading.MEASURE_IT}")
    return known(one, 0.0, (told or [unchecked])[0], sure=value is not None)


def excluded(one: Subject) -> Judged:
    """Return the largest share of docs left out by a grid, 0..1, and name the grid."""
    result, docs = one.result, one.result.scored
    counts = {n: grid.excluded for n in result.grids if (grid := result.grid(n))}
    if not docs or not counts:
        return known(one, None, "the run does not say how many docs it left out")
    worst = max(counts, key=counts.__getitem__)
    return known(one, counts[worst] / docs, f"{counts[worst]} of {docs} docs at {result.kind.words.grid(worst)}")


def docs(one: Subject) -> Judged:
    """Return how many docs have the primary metric."""
    result, asked = one.result, one.result.analysis and one.result.analysis.asked
    return known(one, result.docs if result.magic else asked.docs if asked and asked.estimated else result.scored)


FACTS = {"gate": ("index", gate), "looks": ("index", looks), "excluded": ("index", excluded), "n_docs": ("name", docs)}
"""By name: what a kind has where it is known, and from a result to what is known of it."""
