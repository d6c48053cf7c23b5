"""Does a number keep a limit? The verdict, and the level of several intervals together.

Source: Piaggio et al. (2012, JAMA 308: 2594), non-inferiority by an interval. ``stats.intervals`` makes the intervals.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from lmms_patch.stats.paired import detectable
from lmms_patch.stats.resample import Estimate

Call = Literal["pass", "fail", "inconclusive"]
Basis = Literal["paired", "unpaired", "interval", "number"]
"""What a verdict rests on: a paired or unpaired difference, the number's own interval, or the number alone."""
CALLS: tuple[Call, ...] = ("pass", "inconclusive", "fail")
"""From best to worst."""
TOLERANCE = 1e-12


def call(
    low: float, high: float, *, least: float | None = None, most: float | None = None, margin: float = 0.0
) -> Call:
    """Return the verdict on a number between ``low`` and ``high``.

    The margin moves a limit outwards, and the moved limit B alone decides (non-inferiority). For a lower limit, B = L −
    margin: pass where low ≥ B, fail where high < B, else inconclusive. An upper limit is its mirror image. With both
    limits the worse verdict counts.

    >>> call(0.48, 0.55, least=0.5, margin=0.02), call(0.40, 0.47, least=0.5), call(0.47, 0.49, least=0.5, margin=0.02)
    ('pass', 'fail', 'inconclusive')
    """
    sides = [(low, high, least - margin)] if least is not None else []
    sides += [(-high, -low, -most - margin)] if most is not None else []
    calls: list[Call] = []
    for lower, upper, bound in sides:
        # Adding the margin may change the last digit of the bound.
        bound -= TOLERANCE * max(1.0, abs(bound))
        calls.append("pass" if lower >= bound else "fail" if upper < bound else "inconclusive")
    return max(calls, key=CALLS.index)


def judged(
    number: Estimate, least: float | None, most: float | None, margin: float = 0.0, interval: bool = True
) -> tuple[Call, str]:
    """Return the verdict on a number with limits, and why.

    Args:
        number: the number, or the difference, with its interval at the verdict's level.
        least: the lower limit; None: there is none.
        most: the upper limit; None: there is none.
        margin: see ``call``.
        interval: whether the interval decides; else the number alone.

    Returns:
        As ``call``; the reason says where the limit is missed for certain, but by less than the margin. Without a
        number: fail. Without an interval: fail where the number alone is beyond limit and margin, else inconclusive.
    """
    if number.value is None:
        # Fail, not inconclusive: a run must not pass a gate by losing its number.
        return "fail", f"not defined: {number.reason}" if number.reason else "not defined"
    alone = call(number.value, number.value, least=least, most=most, margin=margin)
    if not interval:
        return alone, "by the number alone, as the rule says"
    if number.low is None or number.high is None:
        why = f"no interval ({number.reason or 'not computed'})"
        return (
            ("fail", f"{why}, and the number alone is beyond the limit") if alone == "fail" else ("inconclusive", why)
        )
    found, why = call(number.low, number.high, least=least, most=most, margin=margin), number.reason
    if found == "pass" and call(number.low, number.high, least=least, most=most) == "fail":
        why = "; ".join(filter(None, ["the limit is missed, but by less than the margin", why]))
    return found, why


def plain(value: float, digits: int = 12) -> str:
    """Return a limit, or another number of a rule, with up to so many significant digits and without an exponent.

    Below 1e-9 there is an exponent after all: so many zeros cannot be counted.

    >>> plain(-0.02), plain(0.3 - 0.1), plain(1e-05), plain(2e-12)
    ('-0.02', '0.2', '0.00001', '2e-12')
    """
    text = f"{value:.{digits}g}"
    return text if 0 < abs(value) < 1e-9 else format(Decimal(text), "f")


def corrected(level: float, count: int) -> float:
    """Return the level of each of ``count`` intervals at which all of them hold at ``level`` together (Bonferroni).

    >>> round(corrected(0.95, 5), 3)
    0.99
    """
    return 1 - (1 - level) / max(1, count)


def smallest(number: Estimate, level: float) -> float | None:
    """Return the minimum detectable effect: how far beyond limit and margin the truth must be for 80 % of runs to fail.

    If the truth is as far inside, 80 % of runs pass. None where nothing varies.
    """
    clusters = number.clusters if number.effective is None else number.effective
    return detectable(number.se, clusters, level=level) if number.se else None
