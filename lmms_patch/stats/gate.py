"""Is the full image better than an uninformed answer? Without that, an index means nothing. Pure.

Source: RCI paper, §3.2 and §A.2, eq. 2; PCRI paper, §A.2. Ours is stricter: the floor is the best
uninformed answer, and the floor's own standard error counts too (DESIGN §6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

DELTA = 0.01
"""The margin δ as a share of the metric's scale: one percentage point."""


@dataclass(frozen=True)
class Gate:
    """FIP ≥ chance + max(δ, 2 · max(SE_FIP, SE_chance)), with every term.

    Attributes:
        valid: True, False (near chance), or None (unknown).
        fip, chance: on the metric's own scale.
        delta: δ on the metric's own scale.
        se_fip, se_chance: standard errors, clustered; None where there is none.
        threshold: the right-hand side; None where unknown.
        reason: why it is unknown or near chance, or a warning; empty otherwise.
    """

    valid: bool | None
    fip: float | None
    chance: float | None
    delta: float | None
    se_fip: float | None
    se_chance: float | None
    threshold: float | None
    reason: str = ""

    @property
    def number(self) -> int | None:
        """1 valid, 0 near chance, None unknown: as in the results file."""
        return None if self.valid is None else int(self.valid)


def gate(
    fip: float | None,
    chance: float | None,
    *,
    se_fip: float | None,
    se_chance: float | None = 0.0,
    delta: float | None = DELTA,
    se_uniform: float | None = None,
    uniform: float | None = None,
) -> Gate:
    """Whether an index may be read.

    Args:
        fip: the native metric on full images.
        chance: the floor, same scale.
        se_fip: standard error of FIP; None: unknown, and so is the gate, unless FIP is below chance + δ.
        se_chance: standard error of the floor; ``se_at_chance`` for one that has none; None: unknown.
        delta: δ on the metric's own scale (1 % of it).
        uniform: what a uniform guess scores, same scale: a warning says where only that is beaten.
        se_uniform: its standard error.

    >>> gate(0.80, 0.50, se_fip=0.02).valid
    True
    >>> gate(0.53, 0.50, se_fip=0.02).valid
    False
    """
    missing = [
        name
        for name, term in (("FIP", fip), ("chance", chance), ("SE of FIP", se_fip), ("SE of chance", se_chance), ("scale", delta))
        if not _known(term)
    ]
    if fip is not None and chance is not None and delta is not None and _known(fip - chance - delta) and fip < chance + delta and missing:
        reason = f"near chance: FIP {fip:.4g} is below {chance + delta:.4g}, the floor {chance:.4g} and its least margin"
        return Gate(False, fip, chance, delta, se_fip, se_chance, chance + delta, reason)
    if missing or fip is None or chance is None or se_fip is None or se_chance is None or delta is None:
        return Gate(None, fip, chance, delta, se_fip, se_chance, None, f"unknown: no {', no '.join(missing)}")
    threshold = chance + max(delta, 2 * max(se_fip, se_chance))
    if fip >= threshold:
        return Gate(True, fip, chance, delta, se_fip, se_chance, threshold)
    reason = f"near chance: FIP {fip:.4g} is below {threshold:.4g}, the floor {chance:.4g} and its margin"
    if uniform is not None and se_uniform is not None and fip >= uniform + max(delta, 2 * max(se_fip, se_uniform)):
        reason += f"; it passes only against a uniform guess ({uniform:.4g})"
    return Gate(False, fip, chance, delta, se_fip, se_chance, threshold, reason)


def se_at_chance(se_fip: float | None, fip: float | None, chance: float | None, scale: float = 1.0) -> float:
    """The standard error that FIP would have at chance level, for a floor that has none of its own (documented, or a uniform guess).

    A share varies most near 1/2: above it, a model that got lucky has a smaller standard error than it had to beat, and at
    a chance of 0.8 in 4.4 % of runs (50 clusters of 4) passes where this holds it to 2.4 %.

    Formula: SE_FIP · √(c (S − c) / (f (S − f))), f = FIP, c = chance, S = scale; 0 where f or c is not inside 0..S.
    """
    if se_fip is None or fip is None or chance is None or not (0 < fip < scale and 0 < chance < scale):
        return 0.0
    return se_fip * math.sqrt(chance * (scale - chance) / (fip * (scale - fip)))


def _known(term: float | None) -> bool:
    return term is not None and math.isfinite(term)
