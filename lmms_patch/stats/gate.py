"""The gate: an index may be read only where the full image beats an uninformed answer, and beats a wrong image. Pure.

Source: RCI paper (https://arxiv.org/abs/2509.23673), 3.2 and A.2, eq. 2; PCRI paper (https://arxiv.org/abs/2509.23879),
A.2. Our gate is stricter: the floor is the best uninformed answer, the standard error is that of the paired difference
FIP − floor, and the answers must depend on the image.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

from lmms_patch.stats.bounds import Count, Number
from lmms_patch.stats.resample import Estimate

DELTA = 0.01
"""The least margin δ as a share of the metric's scale: one percentage point."""
LOOKS_SE = 2.0
"""The number of standard errors by which the full image must beat the wrong one."""
POWER_SE = 2.84
"""The size of a difference, in standard errors, that is found in 80 % of runs: 2 + z(0.8)."""
NEARLY_NONE = 5
"""A difference counts as none where its interval lies below this many δ."""
SAME, NOT_SHOWN = "the answers do not depend on the image", "not shown that it looks"
"""The two beginnings of the reason of a gate that fails because of the image."""

Against = Literal["wrong images", "blind"]


@dataclass(frozen=True)
class Looks:
    """Whether the model's answers depend on the image: the full image against a wrong image or none.

    Attributes:
        against: ``wrong images`` or ``blind``.
        value: True; False (they do not, or it is not shown that they do); None (unknown).
        full: the metric on full images: over the docs that were asked both, or over all docs where that makes the
        difference more precise.
        other: the metric on the other images.
        difference: ``full`` less ``other`` with its interval, on the metric's own scale.
        docs: number of docs that were asked both.
        wanted: number of docs that would settle it; None where it is settled.
        reason: why ``value`` is not True; empty otherwise.
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
    """The verdict of the gate with every term: FIP ≥ chance + max(δ, 2 SE), and answers that depend on the image.

    Attributes:
        valid: True, False (near chance, or the answers do not depend on the image), or None (unknown).
        fip: FIP, on the metric's own scale.
        chance: the chance floor, on the metric's own scale.
        delta: δ on the metric's own scale.
        se_fip: clustered standard error of FIP; None where there is none.
        se_chance: clustered standard error of the floor; None where there is none.
        threshold: the right-hand side of the condition; None where unknown.
        reason: why the gate is unknown or failed, or a warning; empty otherwise.
        se: standard error of the paired difference FIP − floor, the one in the condition; None where there is none.
        marginal: whether FIP passes by less than one more standard error: the index of such a run is often far off.
        looks: the conditions on the image; empty where every doc was asked on its own image only.
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
    def number(self) -> Literal[0, 1, None]:
        """The verdict as the results file has it: 1 valid, 0 failed, None unknown."""
        return None if self.valid is None else 1 if self.valid else 0


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
    """Compare FIP with the chance floor.

    Args:
        fip: the native metric on full images.
        chance: the floor, same scale.
        se: standard error of the paired difference FIP − floor. Where it is None the gate is unknown, unless FIP is
        below chance + δ.
        se_fip: standard error of FIP alone, for display.
        se_chance: standard error of the floor alone, for display.
        delta: δ on the metric's own scale (``DELTA`` of it).
        uniform: the score of a uniform guess, same scale: the reason says where FIP beats only that.
        se_uniform: standard error of the paired difference FIP − uniform.

    >>> gate(0.80, 0.50, se=0.02).valid
    True
    >>> gate(0.53, 0.50, se=0.02).valid
    False
    >>> gate(0.55, 0.50, se=0.02).marginal
    True
    """
    missing = [
        name
        for name, term in (("FIP", fip), ("chance", chance), ("standard error of FIP - chance", se), ("scale", delta))
        if not _known(term)
    ]
    if (
        fip is not None
        and chance is not None
        and delta is not None
        and _known(fip - chance - delta)
        # whatever is missing, the margin is at least δ
        and fip < chance + delta
        and missing
    ):
        reason = (
            f"near chance: FIP {fip:.4g} is below {chance + delta:.4g}, the floor {chance:.4g} and its least margin"
        )
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
    """Return how many docs must be asked on both images to settle whether the answers depend on the image, in 80 % of runs; or infinity.

    Args:
        difference: full less other, paired by doc.
        docs: number of docs that were asked both.
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

    The difference, less the weight of one doc, must exceed 2 SE. Why less one doc: where only five docs differ, all in
    favour, plain 2 SE would pass 3 % of models that do not look (this is the continuity correction of McNemar's test).

    Args:
        difference: full less other: paired by doc, or, where that is more precise, full images of all docs less the
        others of those asked.
        full: the metric on full images.
        other: the metric on the other images.
        docs: number of docs that were asked both.
        against: ``wrong images`` or ``blind``.
        everyone: number of docs that could be asked.
        step: what one doc at full marks adds to the metric.
        delta: the gate's δ: a difference that is shown to be a few δ at most counts as none.
        wanted: number of docs asked both that would settle it (``wanted``).
    """
    value, se = difference.value, difference.se
    if value is None or se is None:
        return Looks(
            against,
            None,
            full,
            other,
            difference,
            docs,
            None,
            f"unknown whether it looks: {difference.reason or 'no standard error'}",
        )
    if _z(difference, step) > LOOKS_SE:
        return Looks(against, True, full, other, difference, docs)
    named = "a wrong image" if against == "wrong images" else "no image"
    told = (
        f"full image {full:.4g}, {named} {other:.4g}, {docs} docs"
        if full is not None and other is not None
        else f"{docs} docs"
    )
    if se == 0 or (difference.high is not None and difference.high < NEARLY_NONE * delta):
        return Looks(against, False, full, other, difference, docs, None, f"{SAME} ({told})")
    if wanted > everyone:
        asked = "all docs were asked" if docs >= everyone else f"null: {everyone} asks all docs"
        return Looks(against, False, full, other, difference, docs, None, f"{NOT_SHOWN} ({told}); {asked}")
    settle = f"; null: {wanted} would settle it" if against == "wrong images" else ""
    return Looks(against, False, full, other, difference, docs, int(wanted), f"{NOT_SHOWN} ({told}){settle}")


def with_looks(judged: Gate, conditions: tuple[Looks, ...], *, part: bool = False) -> Gate:
    """Add the conditions on the image to a gate: a failed condition makes it fail, an unknown one leaves it as it is.

    Args:
        judged: the gate.
        conditions: the conditions.
        part: whether they belong to a part of a task (a category). Few docs of a part were asked on a wrong image, so a
            part fails only where it is shown that its answers do not depend on the image, not where the opposite is not
            shown.
    """
    failed = next(
        (one.reason for one in conditions if one.value is False and (not part or one.reason.startswith(SAME))), ""
    )
    if judged.valid is False or not failed:
        return dataclasses.replace(judged, looks=conditions)
    return dataclasses.replace(judged, valid=False, reason=failed, looks=conditions)


def se_at_chance(se_fip: float | None, fip: float | None, chance: float | None, scale: float = 1.0) -> float:
    """Return the standard error that FIP would have at chance level, for a floor without its own (documented, or a uniform guess).

    A share varies most near 1/2. Above it, a lucky model has a smaller standard error than the one it had to beat: at a
    chance of 0.8 it passes in 4.4 % of runs (50 clusters of 4), and in 2.4 % with this correction.

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
