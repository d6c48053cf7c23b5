"""May an index be read: is the full image better than an uninformed answer, and better than a wrong image? Pure.

Source: RCI paper, 3.2 and A.2, eq. 2; PCRI paper, A.2. Ours is stricter (DESIGN 6): the floor is the best uninformed answer, the
standard error is that of the paired difference FIP − floor, and the answers must depend on the image.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

from lmms_patch.stats.bounds import Count, Number
from lmms_patch.stats.resample import Estimate

DELTA = 0.01
"""The margin δ as a share of the metric's scale: one percentage point."""
LOOKS_SE = 2.0
"""How many standard errors the full image must beat the wrong one by."""
POWER_SE = 2.84
"""Standard errors at which a difference is found in 80 % of runs: 2 + z(0.8)."""
NEARLY_NONE = 5
"""A difference that is shown to be below this many δ is called none."""
SAME, NOT_SHOWN = "the answers do not depend on the image", "not shown that it looks"
"""What the reason of a gate that fails for the image starts with."""

Against = Literal["wrong images", "blind"]


@dataclass(frozen=True)
class Looks:
    """Whether the model's answers depend on the image: the full image against a wrong one (or none).

    Attributes:
        against: ``wrong images`` or ``blind``.
        value: True; False (they do not, or it is not shown); None (unknown).
        full, other: the metric on full images, and on the others: over the same docs and paired, or, where that makes their difference
            surer, on the full images of all docs.
        difference: full less other, with its interval; on the metric's own scale.
        docs: how many were asked both.
        wanted: how many docs would settle it; None where it is settled.
        reason: why it is not True; empty otherwise.
    """

    against: Against
    value: bool | None
    full: Number | None
    other: Number | None
    difference: Estimate
    docs: Count
    wanted: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Gate:
    """FIP ≥ chance + max(δ, 2 SE), and answers that depend on the image; with every term.

    Attributes:
        valid: True, False (near chance, or the answers do not depend on the image), or None (unknown).
        fip, chance: on the metric's own scale.
        delta: δ on the metric's own scale.
        se_fip, se_chance: standard errors of the two alone, clustered; None where there is none.
        threshold: the right-hand side; None where unknown.
        reason: why it is unknown or failed, or a warning; empty otherwise.
        se: the standard error that counts: of the paired difference FIP − floor; None where there is none.
        marginal: whether FIP passes by less than one further standard error: the index of such a run is often far off.
        looks: the conditions on the image; empty where no doc was asked without the right one.
    """

    valid: bool | None
    fip: Number | None
    chance: Number | None
    delta: Number | None
    se_fip: Number | None
    se_chance: Number | None
    threshold: Number | None
    reason: str = ""
    se: Number | None = None
    marginal: bool = False
    looks: tuple[Looks, ...] = ()

    @property
    def number(self) -> int | None:
        """1 valid, 0 failed, None unknown: as in the results file."""
        return None if self.valid is None else int(self.valid)


def gate(
    fip: float | None,
    chance: float | None,
    *,
    se: float | None,
    se_fip: float | None = None,
    se_chance: float | None = None,
    delta: float | None = DELTA,
    uniform: float | None = None,
    se_uniform: float | None = None,
) -> Gate:
    """Compare FIP with the floor.

    Args:
        fip: the native metric on full images.
        chance: the floor, same scale.
        se: standard error of the paired difference FIP − floor. None: unknown, and so is the gate, unless FIP is below chance + δ.
        se_fip, se_chance: those of the two alone, to be told.
        delta: δ on the metric's own scale (1 % of it).
        uniform: what a uniform guess scores, same scale: a warning says where only that is beaten.
        se_uniform: standard error of the paired difference FIP − uniform.

    >>> gate(0.80, 0.50, se=0.02).valid
    True
    >>> gate(0.53, 0.50, se=0.02).valid
    False
    >>> gate(0.55, 0.50, se=0.02).marginal
    True
    """
    missing = [
        name for name, term in (("FIP", fip), ("chance", chance), ("standard error of FIP - chance", se), ("scale", delta)) if not _known(term)
    ]
    if fip is not None and chance is not None and delta is not None and _known(fip - chance - delta) and fip < chance + delta and missing:
        reason = f"near chance: FIP {fip:.4g} is below {chance + delta:.4g}, the floor {chance:.4g} and its least margin"
        return Gate(False, fip, chance, delta, se_fip, se_chance, chance + delta, reason, se)
    if missing or fip is None or chance is None or se is None or delta is None:
        return Gate(None, fip, chance, delta, se_fip, se_chance, None, f"unknown: no {', no '.join(missing)}", se)
    threshold = chance + max(delta, 2 * se)
    if fip >= threshold:
        return Gate(True, fip, chance, delta, se_fip, se_chance, threshold, "", se, fip < threshold + se)
    reason = f"near chance: FIP {fip:.4g} is below {threshold:.4g}, the floor {chance:.4g} and its margin"
    if uniform is not None and se_uniform is not None and fip >= uniform + max(delta, 2 * se_uniform):
        reason += f"; it passes only against a uniform guess ({uniform:.4g})"
    return Gate(False, fip, chance, delta, se_fip, se_chance, threshold, reason, se)


def wanted(difference: Estimate, docs: int, step: float) -> float:
    """Return how many docs asked on both would settle whether the answers depend on the image, in 80 % of runs; infinite where none would.

    Args:
        difference: full less other, paired by doc.
        docs: how many were asked both.
        step: what one doc at full marks adds to the metric.
    """
    z = _z(difference, step)
    return math.ceil(docs * (POWER_SE / z) ** 2 / 100) * 100 if z > 0 else math.inf


def looks(
    difference: Estimate,
    full: float | None,
    other: float | None,
    docs: int,
    *,
    against: Against,
    everyone: int,
    step: float,
    delta: float,
    wanted: float,
) -> Looks:
    """Judge whether the answers depend on the image.

    The difference, less what one doc weighs, must exceed 2 SE. Why less one doc: with five docs that differ, all in favour, plain
    2 SE would let 3 % of models through that do not look (the continuity correction of McNemar's test).

    Args:
        difference: full less other: paired by doc, or, where that is surer, the full image of all docs less the other of those asked.
        full, other: the two numbers.
        docs: how many were asked both.
        against: ``wrong images`` or ``blind``.
        everyone: how many docs could be asked.
        step: what one doc at full marks adds to the metric.
        delta: the gate's δ: a difference that is shown to be smaller counts as none.
        wanted: how many docs asked both would settle it (``wanted``).
    """
    value, se = difference.value, difference.se
    if value is None or se is None:
        return Looks(against, None, full, other, difference, docs, None, f"unknown whether it looks: {difference.reason or 'no standard error'}")
    if _z(difference, step) > LOOKS_SE:
        return Looks(against, True, full, other, difference, docs)
    named = "a wrong image" if against == "wrong images" else "no image"
    told = f"full image {full:.4g}, {named} {other:.4g}, {docs} docs" if full is not None and other is not None else f"{docs} docs"
    if se == 0 or (difference.high is not None and difference.high < NEARLY_NONE * delta):
        return Looks(against, False, full, other, difference, docs, None, f"{SAME} ({told})")
    if wanted > everyone:
        asked = "all docs were asked" if docs >= everyone else f"null: {everyone} asks all docs"
        return Looks(against, False, full, other, difference, docs, None, f"{NOT_SHOWN} ({told}); {asked}")
    settle = f"; null: {wanted} would settle it" if against == "wrong images" else ""
    return Looks(against, False, full, other, difference, docs, int(wanted), f"{NOT_SHOWN} ({told}){settle}")


def with_looks(judged: Gate, found: tuple[Looks, ...], *, part: bool = False) -> Gate:
    """Add the conditions on the image to a gate: one that fails makes it fail, one that is unknown leaves it as it is.

    Args:
        judged: the gate.
        found: the conditions.
        part: whether they are of a part of a task (a category). Few of its docs were asked on a wrong image, so that a condition fails only
            where it is shown that the answers do not depend on the image, not where it is not shown that they do.
    """
    failed = next((one.reason for one in found if one.value is False and (not part or one.reason.startswith(SAME))), "")
    if judged.valid is False or not failed:
        return dataclasses.replace(judged, looks=found)
    return dataclasses.replace(judged, valid=False, reason=failed, looks=found)


def se_at_chance(se_fip: float | None, fip: float | None, chance: float | None, scale: float = 1.0) -> float:
    """The standard error that FIP would have at chance level, for a floor that has none of its own (documented, or a uniform guess).

    A share varies most near 1/2: above it, a model that got lucky has a smaller standard error than it had to beat, and at
    a chance of 0.8 in 4.4 % of runs (50 clusters of 4) passes where this holds it to 2.4 %.

    Formula: SE_FIP · √(c (S − c) / (f (S − f))), f = FIP, c = chance, S = scale; 0 where f or c is not inside 0..S.
    """
    if se_fip is None or fip is None or chance is None or not (0 < fip < scale and 0 < chance < scale):
        return 0.0
    return se_fip * math.sqrt(chance * (scale - chance) / (fip * (scale - fip)))


def _z(difference: Estimate, step: float) -> float:
    value, se = difference.value or 0.0, difference.se or 0.0
    return (value - step) / se if se > 0 else math.copysign(math.inf, value - step)


def _known(term: float | None) -> bool:
    return term is not None and math.isfinite(term)
