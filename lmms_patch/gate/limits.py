"""Does a number keep a limit?

Source: Piaggio et al. (2012, JAMA 308: 2594), non-inferiority by an interval. ``stats.intervals`` makes the intervals.
"""

from __future__ import annotations

from typing import Literal

from lmms_patch.stats.paired import detectable
from lmms_patch.stats.resample import Estimate

Call = Literal["pass", "fail", "inconclusive"]
Basis = Literal["paired", "unpaired", "interval", "number"]
"""What a verdict rests on: a paired or unpaired difference, the number's own interval, or the number alone."""
ORDER = ("fail", "inconclusive", "warned", "pass")
"""The words of verdicts (``Verdict.word``), worst first."""
Ends = tuple[float | None, float | None]
"""A lower and an upper limit; None: there is no such limit."""


def call(low: float, high: float, allowed: Ends) -> Call:
    """Return the verdict on a number between ``low`` and ``high``.

    For a lower limit B: pass where low ≥ B, fail where high < B, else inconclusive. An upper limit is its mirror image.
    With both limits the worse verdict counts.

    >>> call(0.48, 0.55, (0.48, None)), call(0.40, 0.47, (0.5, None)), call(0.47, 0.49, (None, 0.48))
    ('pass', 'fail', 'inconclusive')
    """
    least, most = allowed
    sides = [(low, high, least)] if least is not None else []
    sides += [(-high, -low, -most)] if most is not None else []
    calls: list[Call] = []
    for lower, upper, bound in sides:
        # limit and margin together may differ from a plain number in the last digit
        bound -= 1e-12 * max(1.0, abs(bound))
        calls.append("pass" if lower >= bound else "fail" if upper < bound else "inconclusive")
    return min(calls, key=ORDER.index)


def judged(number: Estimate, allowed: Ends, interval: bool = True) -> tuple[Call, str]:
    """Return the verdict on a number with limits, and why.

    Args:
        number: the number, or the difference, with its interval at the verdict's level.
        allowed: the limits, the margin included.
        interval: whether the interval decides; else the number alone.

    Returns:
        As ``call``, and why. Without a number: fail. Without an interval: fail where the number alone is beyond what is
        allowed, else inconclusive.
    """
    if number.value is None:
        # Fail, not inconclusive: a run must not pass a gate by losing its number.
        return "fail", f"not defined: {number.reason}" if number.reason else "not defined"
    alone = call(number.value, number.value, allowed)
    if not interval:
        return alone, "by the number alone, as the rule says"
    if number.low is None or number.high is None:
        return "fail" if alone == "fail" else "inconclusive", f"no interval ({number.reason or 'not computed'})"
    return call(number.low, number.high, allowed), number.reason


def smallest(number: Estimate, level: float) -> float | None:
    """Return the minimum detectable effect: how far beyond limit and margin the truth must be for 80 % of runs to fail.

    If the truth is as far inside, 80 % of runs pass. None where nothing varies.
    """
    clusters = number.clusters if number.effective is None else number.effective
    return detectable(number.se, clusters, level=level) if number.se else None
