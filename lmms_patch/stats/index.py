"""RCI and PCRI: 1 − MPP_n / FIP, with its bands.

Source: RCI paper (https://arxiv.org/abs/2509.23673), eq. 1; PCRI paper (https://arxiv.org/abs/2509.23879), §3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Index:
    """The index at one grid.

    Attributes:
        value: 1 − MPP/FIP, without unit; None where it is not defined.
        gap: FIP − MPP, on the metric's own scale; None where either is missing.
        reason: why ``value`` is None; empty otherwise.
    """

    value: float | None
    gap: float | None
    reason: str = ""


SIGNED = "the metric's scale goes below 0, so it has no natural zero: 1 - MPP/FIP has no meaning"
"""The reason why a metric on a scale such as −1..1 has no index: adding a constant to every score would change it. The gap stays."""


def index(fip: float | None, mpp: float | None, *, higher_is_better: bool = True, signed: bool = False) -> Index:
    """Return RCI_n = 1 − MPP_n / FIP, or the reason why there is none; never inf or nan.

    Args:
        fip: the native metric on full images (P_whole), on the metric's own scale.
        mpp: the native metric when each doc keeps the answer of its best cell (P_patch,n), same scale.
        higher_is_better: where False, there is no index: the ratio has no meaning for a metric that should be low.
        signed: whether the metric's scale goes below 0. A negative FIP or MPP shows it, too.

    >>> index(0.8, 0.9).value
    -0.125
    """
    if fip is None or mpp is None or not (math.isfinite(fip) and math.isfinite(mpp)):
        missing = "FIP" if fip is None or not math.isfinite(fip) else "MPP"
        return Index(None, None, f"{missing} is not a number")
    gap = fip - mpp
    if not higher_is_better:
        return Index(None, gap, "the metric is better when lower: 1 - MPP/FIP has no meaning")
    if signed or fip < 0 or mpp < 0:
        return Index(None, gap, SIGNED)
    if fip == 0:
        return Index(None, gap, "FIP is 0: nothing is answered on the full image")
    return Index(1 - mpp / fip, gap)


BANDS = (
    (-0.30, "strong local"),
    (-0.10, "moderate local"),
    (0.10, "balanced"),
    (0.30, "moderate global"),
)
"""Upper ends of the bands (RCI paper, §3.2). The last end is open: 0.30 itself is strong global."""

FRAGMENTED = 5
"""The least grid whose cells are so small that the index rises for that reason alone. The segments of a clip are never as small."""
_DIGITS = 9
"""The decimals to which an index is rounded before it gets a band: finer than any docs can resolve, coarser than float error."""


def band(value: float) -> str:
    """Return the band of an index (RCI paper, §3.2): ≤ −0.30, ≤ −0.10, ≤ +0.10, < +0.30, ≥ +0.30.

    >>> band(1 - 0.88 / 0.8), band(0.1), band(0.3)  # the first is -0.0999999999999999 in floating point
    ('moderate local', 'balanced', 'strong global')
    """
    value = round(value, _DIGITS)
    for end, name in BANDS[:-1]:
        if value <= end:
            return name
    return BANDS[-1][1] if value < BANDS[-1][0] else "strong global"


def span(low: float, high: float) -> str:
    """Return the bands that an interval reaches: one, or the first and the last.

    >>> span(-0.2, 0.05)
    'moderate local to balanced'
    """
    first, last = band(low), band(high)
    return first if first == last else f"{first} to {last}"


def disagreement(raw: float, steady: float) -> str:
    """Describe how the index of one pass and the steady index contradict each other; empty where they do not.

    They contradict each other in bands that do not touch. A share is never below 0, so an index below 0 counts as balanced.

    >>> disagreement(-0.085, 0.866)
    'from one pass -0.085 (balanced), steady 0.866 (strong global): the first is mostly luck'
    >>> disagreement(0.2, 0.25)
    ''
    """
    names = [name for _, name in BANDS] + ["strong global"]
    first, second = band(max(raw, 0.0)), band(steady)
    if abs(names.index(first) - names.index(second)) <= 1:
        return ""
    why = ": the first is mostly luck" if steady > raw else ""
    return f"from one pass {raw:.3f} ({band(raw)}), steady {steady:.3f} ({second}){why}"


def relative_change(coarse: float | None, fine: float | None) -> float | None:
    """Return how far an index moves from one grid to a finer one, relative to the first (PCRI paper, §A.4.6).

    Formula: (fine − coarse) / |coarse|, a fraction; −1.19 is the paper's "relative drop of 119 %".

    Returns:
        None where either is missing or the first is 0.
    """
    if coarse is None or fine is None or coarse == 0:
        return None
    return (fine - coarse) / abs(coarse)


def fragmentation(n: int, cells: int | None = None) -> str:
    """Return a warning for grids whose cells are too small to keep their context (RCI paper, §A.5.3).

    Empty below 5×5 cells.

    Args:
        n: the size of the grid.
        cells: how many cells it has; None: n².
    """
    cells = n * n if cells is None else cells
    if cells < FRAGMENTED**2:
        return ""
    return f"grid {n}: cells of {100 / cells:.0f} % of the image lose their context, which makes the index rise whatever the task needs; use 2 or 3"
