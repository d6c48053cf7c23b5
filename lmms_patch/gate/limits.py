"""Does a number keep a limit? Intervals at another level, exact ends of the scale, distances from 0, and the verdict. Pure.

Sources: Piaggio et al. (2012, JAMA 308: 2594), non-inferiority by an interval; Clopper & Pearson (1934), the exact binomial interval;
Newcombe (1998), method 10, and Zou & Donner (2008), the difference of two numbers from their own intervals (MOVER); McNemar (1947),
conditional on the docs that differ; Tango (1998, Statistics in Medicine 17: 891), the score interval of a paired difference of shares.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from lmms_patch.errors import RecordError
from lmms_patch.stats.paired import McNemar, detectable, least_p
from lmms_patch.stats.resample import FEW_CLUSTERS, Estimate, normal_quantile, t_quantile

Call = Literal["pass", "fail", "inconclusive"]
CALLS: tuple[Call, ...] = ("pass", "inconclusive", "fail")
"""From best to worst."""
NEAR_END = 10
"""With fewer than this many docs away from an end of the scale, the bootstrap has too few of them to draw from."""
FEW_DIFFER = 50
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


def quantile(level: float, clusters: int) -> float:
    """Half-width of a two-sided interval in standard errors: of Student's t for 2 to 49 clusters, else of the normal distribution."""
    p = (1 + level) / 2
    return t_quantile(p, clusters - 1) if 1 < clusters < FEW_CLUSTERS else normal_quantile(p)


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


def _known(end: float | None) -> float | None:
    return None if end is None or not math.isfinite(end) else end


def at_level(estimate: Estimate, level: float) -> Estimate:
    """The interval at another level: each half-width times the ratio of the quantiles.

    An approximation: exact where the draws are normal, and each side keeps its own width. Further out than the stored
    interval the draws are too few to be asked themselves.
    """
    if estimate.value is None or estimate.low is None or estimate.high is None or estimate.level == level:
        return dataclasses.replace(estimate, level=level)
    factor = quantile(level, estimate.clusters) / quantile(estimate.level, estimate.clusters)
    low, high = estimate.value - factor * (estimate.value - estimate.low), estimate.value + factor * (estimate.high - estimate.value)
    return dataclasses.replace(estimate, low=low, high=high, level=level)


def binomial(hits: float, n: int, level: float) -> tuple[float, float]:
    """The exact interval of a share by Clopper & Pearson, in 0..1; ``hits`` need not be whole (scores between 0 and 1)."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if hits <= 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits >= n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return low, high


def of_number(estimate: Estimate, level: float, scale: tuple[float, float] | None) -> Estimate:
    """The interval of a number at a level, with the exact one where the bootstrap cannot know better.

    Args:
        estimate: the number as it is stored.
        level: 0..1.
        scale: for a mean of scores, the ends of their scale; None for anything else (an index).

    Returns:
        Near an end of the scale (fewer than 10 clusters' worth away) the interval covers the exact binomial one as well, with as many
        docs as there are clusters. Elsewhere an interval without width is none.
    """
    out = at_level(estimate, level)
    if out.value is None or out.low is None or out.high is None:
        return out
    if scale is not None and scale[0] - _TOLERANCE <= out.value <= scale[1] + _TOLERANCE:
        share, width = min(1.0, max(0.0, (out.value - scale[0]) / (scale[1] - scale[0]))), scale[1] - scale[0]
        low, high = max(scale[0], out.low), min(scale[1], out.high)
        if out.clusters * min(share, 1 - share) < NEAR_END:
            ends = [scale[0] + width * end for end in binomial(out.clusters * share, out.clusters, level)]
            return _noted(out, min(low, ends[0]), max(high, ends[1]), "near an end of its scale: with the exact binomial interval")
        out = dataclasses.replace(out, low=low, high=high)
    if _flat(out):
        return dataclasses.replace(out, low=None, high=None, reason=_joined(out.reason, "no spread at all, so nothing says how sure it is"))
    return out


def of_ratio(fip: Estimate, mpp: Estimate, index: bool) -> tuple[float, float] | None:
    """Ends of 1 − MPP/FIP (or FIP − MPP), from those of both: for a number without spread. None where FIP may be 0.

    Args:
        fip, mpp: each with its interval at 1 − (1 − level) / 2, so that both hold at the level together (Bonferroni).
        index: the index, not the gap.
    """
    if fip.low is None or fip.high is None or mpp.low is None or mpp.high is None or (index and fip.low <= 0):
        return None
    return (1 - mpp.high / fip.low, 1 - mpp.low / fip.high) if index else (fip.low - mpp.high, fip.high - mpp.low)


def _flat(estimate: Estimate) -> bool:
    return estimate.low is not None and estimate.high is not None and (estimate.high - estimate.low <= _TOLERANCE or estimate.se == 0)


def _noted(estimate: Estimate, low: float, high: float, reason: str) -> Estimate:
    return dataclasses.replace(estimate, low=low, high=high, reason=_joined(estimate.reason, reason))


def _joined(*parts: str) -> str:
    return "; ".join(dict.fromkeys(part for part in parts if part))


# --- differences ----------------------------------------------------------------------------------


def rarely(clusters: int, level: float, differing: int = 0) -> float:
    """The largest share of clusters that may differ where so many of them do: the upper end by Clopper & Pearson.

    For none that is 1 − ((1 − level) / 2)^(1/G).
    """
    return binomial(differing, clusters, level)[1] if clusters else 1.0


def of_paired(
    difference: Estimate,
    level: float,
    *,
    reach: float | None,
    differing: int | None,
    unit: float | None = None,
    mcnemar: McNemar | None = None,
    drawn: Estimate | None = None,
) -> Estimate:
    """The interval of a paired difference at a level, with exact or wider ones where few docs or clusters differ.

    Args:
        difference: second less first, as the bootstrap gives it.
        level: 0..1.
        reach: by how much one doc can change at most, on the metric's own scale; None: unknown.
        differing: in how many clusters the two runs differ at all; None: unknown.
        unit: what a doc that turns from wrong to right adds (negative where lower is better); with ``mcnemar``.
        mcnemar: where scores are 0 or 1; only heard where docs are independent.
        drawn: the same difference with its bootstrap interval drawn at ``level``; the wider end of both counts.
    """
    out = at_level(difference, level)
    if out.value is None or out.low is None or out.high is None:
        return out
    near, far = out.low, out.high
    if _flat(out):
        if reach is None:
            return dataclasses.replace(out, low=None, high=None, reason=_joined(out.reason, "no spread at all, so nothing says how sure it is"))
        rare = rarely(out.clusters, level)
        low, high = out.value - rare * (out.value + reach), out.value + rare * (reach - out.value)
        return _noted(out, min(low, out.value), max(high, out.value), f"all alike: up to {100 * rare:.2g} % of docs may be otherwise")
    if drawn is not None and drawn.low is not None and drawn.high is not None:
        near, far = min(near, drawn.low), max(far, drawn.high)
        out = dataclasses.replace(out, low=near, high=far)
    # where docs hang together, not docs but clusters are exchangeable, and McNemar's test counts docs
    if out.clusters == out.n and mcnemar is not None and unit is not None and 0 < (count := mcnemar.only_first + mcnemar.only_second) < FEW_DIFFER:
        ends = [unit * count / out.n * (2 * share - 1) for share in binomial(mcnemar.only_second, count, level)]
        ends += [unit * end for end in score_interval(mcnemar.only_first, mcnemar.only_second, out.n, level)]
        return _noted(out, min(near, *ends), max(far, *ends), f"only {count} docs differ: with McNemar's exact interval and Tango's")
    return out if differing is None or differing >= FEW_DIFFER else _few_differ(out, differing, reach)


def score_interval(only_first: int, only_second: int, n: int, level: float) -> tuple[float, float]:
    """Return Tango's score interval of the difference of two paired shares, second less first.

    McNemar's interval takes the number of docs that differ as given. Here that number is uncertain too, which counts at the end that
    is farther from 0: where one doc of 300 turned wrong, 2 % may.

    Args:
        only_first, only_second: docs that exactly one of the two has right.
        n: all docs.
        level: 0..1.
    """
    z, value = normal_quantile((1 + level) / 2), (only_second - only_first) / n

    def distance(d: float) -> float:
        """Return how many standard errors the data lie above a true difference d."""
        a, b, c = 2 * n, -only_first - only_second + (2 * n - only_second + only_first) * d, -only_first * d * (1 - d)
        loss = (math.sqrt(max(0.0, b * b - 4 * a * c)) - b) / (2 * a)  # the likeliest share that only the first has right, given d
        return (only_second - only_first - n * d) / math.sqrt(max(n * (2 * loss + d * (1 - d)), 1e-300))

    def solved(inner: float, outer: float, target: float) -> float:
        for _ in range(60):
            middle = (inner + outer) / 2
            inner, outer = (inner, middle) if abs(distance(middle)) > target else (middle, outer)
        return (inner + outer) / 2

    return solved(value, -1.0, z), solved(value, 1.0, z)


def _few_differ(estimate: Estimate, differing: int, reach: float | None) -> Estimate:
    """Return the interval where the runs differ in k < 50 of G docs or clusters.

    Those that agree carry no information on the sign, so the degrees of freedom come from k. Half-widths times
    (t of k − 1 degrees · √(k / (k − 1))) / (what they were made with), but to no more than all that the share which may differ
    (Clopper & Pearson) could change; never narrower than it came. With so few that a test could not exclude 0 (``least_p``), it holds 0.
    """
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    k, groups, level, value = max(2, differing), estimate.clusters, estimate.level, estimate.value
    factor = max(1.0, _width(k, level) / _width(groups, level))
    low, high = value - factor * (value - estimate.low), value + factor * (estimate.high - value)
    if reach is not None:
        most = rarely(groups, level, differing) * reach
        low, high = max(low, -most), min(high, most)
    if least_p(differing) > 1 - level:
        low, high = min(low, 0.0), max(high, 0.0)
    what = "docs" if groups == estimate.n else "clusters"
    reason = f"the runs differ in only {differing} of {groups} {what}: widened to what those can show"
    return _noted(estimate, min(low, estimate.low), max(high, estimate.high), reason)


def _width(clusters: int, level: float) -> float:
    """Half-width in standard errors of a mean over clusters: under 50 of Student's t, with √(G / (G − 1)) for the bootstrap's own shortfall."""
    return quantile(level, clusters) * (math.sqrt(clusters / (clusters - 1)) if 1 < clusters < FEW_CLUSTERS else 1.0)


def of_unpaired(first: Estimate, second: Estimate) -> Estimate:
    """Second less first of two independent numbers, from their own intervals (at one level), which may be lopsided.

    Formula: d − √((v₂ − l₂)² + (u₁ − v₁)²) to d + √((u₂ − v₂)² + (v₁ − l₁)²).
    """
    n, groups = min(first.n, second.n), min(first.clusters, second.clusters)
    empty = Estimate(None, None, None, None, n, groups, 0, second.level)
    for which, one in (("the baseline", first), ("this run", second)):
        if one.value is None:
            return dataclasses.replace(empty, reason=f"not defined in {which}" + (f": {one.reason}" if one.reason else ""))
    assert first.value is not None
    assert second.value is not None
    value = second.value - first.value
    se = None if first.se is None or second.se is None else math.hypot(first.se, second.se)
    if first.low is None or first.high is None or second.low is None or second.high is None:
        missing = first if first.low is None else second
        return dataclasses.replace(empty, value=value, reason=missing.reason or "no interval")
    low = value - math.hypot(second.value - second.low, first.high - first.value)
    high = value + math.hypot(second.high - second.value, first.value - first.low)
    return Estimate(value, se, low, high, n, groups, 0, second.level, "unpaired")


def of_same_index(index: Estimate, fip: Estimate, top: float, level: float, differing: int = 0) -> float | None:
    """By how much an index may differ in truth, where the runs differ in so few clusters; None where that cannot be said.

    With a share U of docs that may be otherwise (``rarely``), FIP and MPP each move by at most U · top, and so
    1 − MPP/FIP by at most U · top · (1 + MPP/FIP) / (FIP − U · top).
    """
    if index.low is None or fip.low is None:
        return None
    moved = rarely(index.clusters, level, differing) * top
    return None if fip.low <= moved else moved * (1 + max(0.0, 1 - index.low)) / (fip.low - moved)


# --- distances from 0 -----------------------------------------------------------------------------


def magnitude(estimate: Estimate) -> Estimate:
    """|x| of a number with its interval: where that holds 0, from 0 to its farther end."""
    if estimate.value is None:
        return estimate
    low, high = estimate.low, estimate.high
    if low is not None and high is not None:
        low, high = max(0.0, low, -high), max(abs(low), abs(high))
    return dataclasses.replace(estimate, value=abs(estimate.value), low=low, high=high)


def magnitude_difference(first: Estimate, second: Estimate, difference: Estimate) -> Estimate:
    """|b| − |a| with its interval, from those of a, b and b − a at one level.

    All (a, b) that the three intervals allow form a polygon; on it |b| − |a| is linear but for folds at 0, so its extremes are at
    corners. Where both signs are clear this is b − a or its mirror image; where they are not, it is wider, never narrower.
    """
    if first.value is None or second.value is None or difference.value is None:
        return dataclasses.replace(difference, value=None, low=None, high=None)
    value = abs(second.value) - abs(first.value)
    if difference.low is None or difference.high is None:
        return dataclasses.replace(difference, value=value)
    far = max(abs(difference.low), abs(difference.high))
    found = [] if None in (first.low, second.low) else _corners(first, second, difference.low, difference.high)
    low, high = (min(found), max(found)) if found else (-far, far)
    return dataclasses.replace(difference, value=value, low=min(low, value), high=max(high, value))


def _corners(first: Estimate, second: Estimate, low: float, high: float) -> list[float]:
    """|b| − |a| at the corners of the polygon; empty where no (a, b) satisfies all three intervals."""
    assert first.low is not None
    assert first.high is not None
    assert second.low is not None
    assert second.high is not None
    edges = (second.low, second.high, 0.0)
    out = []
    for a in (first.low, first.high, 0.0, *(b - d for b in edges for d in (low, high))):
        down, up = max(second.low, a + low), min(second.high, a + high)
        if first.low - _TOLERANCE <= a <= first.high + _TOLERANCE and down <= up + _TOLERANCE:  # a corner is where ends meet, up to rounding
            out += [abs(b) - abs(a) for b in (down, up, *([0.0] if down <= 0 <= up else []))]
    return out


# --- power ----------------------------------------------------------------------------------------


def smallest(se: float | None, level: float, clusters: int) -> float | None:
    """Return the minimum detectable effect: how far beyond limit and margin the truth must be for 80 % of runs to fail.

    As far inside, 80 % of runs pass: the interval then lies wholly on the other side of the same point. Under 50 clusters the standard
    error counts for more, as the interval is wider. None where nothing varies.
    """
    if not se:
        return None
    few = 1 < clusters < FEW_CLUSTERS
    widened = se * (quantile(level, clusters) / normal_quantile((1 + level) / 2) * math.sqrt(clusters / (clusters - 1)) if few else 1.0)
    return detectable(widened, level=level)
