"""RCI and PCRI: 1 − MPP_n / FIP (RCI paper eq. 1; PCRI paper §3)."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Index:
    """A spatial index at one grid.

    Attributes:
        value: 1 − MPP/FIP, without unit; None where it is not defined.
        gap: FIP − MPP, on the metric's own scale; None where either is missing.
        reason: why ``value`` is None; empty otherwise.
    """

    value: float | None
    gap: float | None
    reason: str = ""


def index(fip: float | None, mpp: float | None, *, higher_is_better: bool = True) -> Index:
    """RCI_n = 1 − MPP_n / FIP, or the reason why there is none. Never inf or nan.

    Args:
        fip: the native metric on full images (P_whole), on the metric's own scale.
        mpp: the native metric when each doc keeps the answer of its best cell (P_patch,n), same scale.
        higher_is_better: an index of a metric that should be low has no meaning.

    >>> index(0.8, 0.9).value
    -0.125
    """
    if fip is None or mpp is None or not (math.isfinite(fip) and math.isfinite(mpp)):
        missing = "FIP" if fip is None or not math.isfinite(fip) else "MPP"
        return Index(None, None, f"{missing} is not a number")
    gap = fip - mpp
    if not higher_is_better:
        return Index(None, gap, "the metric is better when lower: 1 - MPP/FIP has no meaning")
    if fip == 0:
        return Index(None, gap, "FIP is 0: nothing is answered on the full image")
    if fip < 0:
        return Index(None, gap, "FIP is negative: the ratio has no meaning")
    return Index(1 - mpp / fip, gap)
