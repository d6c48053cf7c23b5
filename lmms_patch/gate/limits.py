"""Does a number keep a limit? The level of several intervals together, distances from 0, and the verdict. Pure.

Source: Piaggio et al. (2012, JAMA 308: 2594), non-inferiority by an interval. ``stats.intervals`` makes the intervals.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from lmms_patch.errors import RecordError
from lmms_patch.stats.paired import detectable
from lmms_patch.stats.resample import Estimate

Call = Literal["pass", "fail", "inconclusive"]
CALLS: tuple[Call, ...] = ("pass", "inconclusive", "fail")
"""From best to worst."""
_TOLERANCE = 1e-12


def call(low: float, high: float, *, least: float | None = None, most: float | None = None, margin: float = 0.0) -> Call:
    """Return the verdict on a number that lies between ``low`` and ``high``.

    The margin moves a limit outwards, and the moved limit B alone decides (non-inferiority). For a lower limit, B = L − margin: pass
    where low ≥ B, fail where high < B, else inconclusive. For an upper limit its mirror image. With both limits the worse of the two.

    >>> call(0.48, 0.55, least=0.5, margin=0.02), call(0.40, 0.47, least=0.5), call(0.47, 0.49, least=0.5, margin=0.02)
    ('pass', 'fail', 'inconclusive')
    """
    calls: list[Call] = []
    if least is not None:
        calls.append(_above(low, high, least - margin))
    if most is not None:
        calls.append(_above(-high, -low, -most - margin))
    if not calls:
        raise ValueError("no limit")
    return max(calls, key=CALLS.index)


def _above(low: float, high: float, bound: float) -> Call:
    slack = _TOLERANCE * max(1.0, abs(bound))  # what adding the margin may lose in the last digit
    if low >= bound - slack:
        return "pass"
    return "fail" if high < bound - slack else "inconclusive"


# --- intervals ------------------------------------------------------------------------------------


def corrected(level: float, count: int) -> float:
    """Bonferroni: the level of each of ``count`` intervals at which all of them hold at ``level`` together.

    >>> round(corrected(0.95, 5), 3)
    0.99
    """
    return 1 - (1 - level) / max(1, count)


def checked(estimate: Estimate) -> Estimate:
    """An estimate from a file: what is not a finite number is None.

    Raises:
        RecordError: ends that are in the wrong order, or do not go with the value.
    """
    value, se, low, high = (
        None if end is None or not math.isfinite(end) else end for end in (estimate.value, estimate.se, estimate.low, estimate.high)
    )
    if value is None or low is None or high is None:
        low = high = None
    elif low > high:
        raise RecordError(f"an interval from {low:g} to {high:g}; the file was changed or written by another program")
    return dataclasses.replace(estimate, value=value, se=se, low=low, high=high)


# --- power ----------------------------------------------------------------------------------------


def smallest(estimate: Estimate, level: float) -> float | None:
    """Return the minimum detectable effect: how far beyond limit and margin the truth must be for 80 % of runs to fail.

    As far inside, 80 % of runs pass: the interval then lies wholly on the other side of the same point. Under 50 clusters the standard
    error counts for more, as the interval is wider. None where nothing varies.
    """
    groups = estimate.clusters if estimate.effective is None else estimate.effective
    return detectable(estimate.se, groups, level=level) if estimate.se else None
