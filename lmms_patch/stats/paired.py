"""Two runs on the same docs: the difference of a number, with everything that happened to a doc kept together. NumPy only.

Sources: Efron & Tibshirani (1993), ch. 13 and 15 (percentile interval and the p-value that inverts it); McNemar (1947), in its
exact form; Ernst (2004, Statistical Science 19: 676; the least p-value of a paired permutation test); Cameron & Miller (2015), §VI for few clusters.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lmms_patch.stats.resample import (
    FEW_CLUSTERS,
    LEVEL,
    TOO_FEW_CLUSTERS,
    Array,
    Estimate,
    Seed,
    normal_quantile,
    resampled_sums,
    summarise,
    t_quantile,
    totals,
)

DRAWS = 10_000
"""More than for an interval: Holm's correction over many tasks needs small p-values. The smallest is 2 / (B + 1)."""


@dataclass(frozen=True)
class Difference:
    """A difference, second less first.

    Attributes:
        first, second: the numbers; None where not defined.
        estimate: the difference with its interval.
        p: two-sided p-value of no difference; None where there is no interval.
        differing: in how many clusters (docs) the two differ at all; None: not counted.
    """

    first: float | None
    second: float | None
    estimate: Estimate
    p: float | None
    differing: int | None = None


def differences(
    rows: ArrayLike,
    statistics: Mapping[str, Callable[[Array], tuple[Any, Any]]],
    clusters: ArrayLike | None = None,
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
    differing: Mapping[str, int] | None = None,
) -> dict[str, Difference]:
    """Several differences from the same bootstrap draws of docs, clusters together.

    Args:
        rows: shape (docs, d): what is summed over docs, of both runs, one row per doc.
        statistics: by name, from sums of shape (..., d) to the two numbers, shapes (...); nan where not defined.
        clusters: labels of shape (docs,); None: docs are independent.
        draws: B.
        level: nominal coverage of the intervals, 0..1.
        seed: see ``resample.generator``.
        differing: by name, in how many clusters the two runs differ at all (k). Exchanging the runs in any of them is as likely
            as not if the runs are alike, so no test of that can have a p-value below 2 · 2⁻ᵏ: p is at least that, and the interval
            reaches 0 where that is more than 1 − level. Without this, three docs of a thousand would "show" a difference.
            None: as far as the draws go.

    >>> rows = np.array([[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]] * 50)  # first right on half of the docs, second on all, and a one
    >>> differences(rows, {"score": lambda s: (s[..., 0] / s[..., 2], s[..., 1] / s[..., 2])})["score"].estimate.value
    0.5
    """
    array = np.asarray(rows, float)
    per_cluster = totals(array, clusters)
    groups = len(per_cluster)
    drawn = resampled_sums(per_cluster, draws, seed) if groups >= TOO_FEW_CLUSTERS else np.empty((0, array.shape[1]))
    what = "docs" if clusters is None else "clusters"
    out = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for name, statistic in statistics.items():
            first, second = (float(value) for value in statistic(per_cluster.sum(axis=0)))
            spread = np.asarray(np.subtract(*statistic(drawn)[::-1]), float) if len(drawn) else np.empty(0)
            estimate = summarise(second - first, spread, len(array), groups, level=level, what=what)
            p = None if estimate.low is None else p_value(second - first, spread, groups)
            found = Difference(_known(first), _known(second), estimate, p)
            out[name] = found if differing is None else _at_least(found, differing[name], what)
    return out


def p_value(value: float, drawn: Array, groups: int) -> float:
    """Two-sided p-value of 0 by inverting the percentile interval: twice the smaller share of draws on either side of 0.

    Under 50 clusters the draws are spread as the interval's ends at 95 % are. The tails of Student's t are heavier than that
    further out: the p-value is at least that of the t which has G − 1 degrees of freedom and the normal quantile z that the
    draws give, t = z / √(G / (G − 1)).

    Args:
        value: the difference on the data.
        drawn: shape (B,), on each draw; nan where not defined.
        groups: number of clusters G.
    """
    known = drawn[np.isfinite(drawn)]
    if groups >= FEW_CLUSTERS:
        return _inverted(value, known)[0]
    p, crossed = _inverted(value, known)
    z = normal_quantile(1 - p / 2) if p < 1 else 0.0
    if not crossed and (spread := float(known.std(ddof=1))) > 0:  # further out than draws can say
        z = max(z, abs(value) / spread)
    correction = math.sqrt(groups / (groups - 1))
    widened = value + (known - value) * t_quantile(0.975, groups - 1) / normal_quantile(0.975) * correction
    return max(_inverted(value, widened)[0], t_tails(z / correction, groups - 1))


def _inverted(value: float, known: Array) -> tuple[float, int]:
    """The p-value, and how many draws lie on the other side of 0."""
    tolerance = 1e-12 * max(1.0, abs(value))
    fewer = min(int((known <= tolerance).sum()), int((known >= -tolerance).sum()))
    return min(1.0, 2 * (1 + fewer) / (1 + len(known))), fewer


def t_tails(t: float, df: int) -> float:
    """Two-sided p-value of Student's t with ``df`` degrees of freedom.

    >>> round(t_tails(2.262, 9), 3)
    0.05
    """
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(t)))


def least_p(differing: int) -> float:
    """The least two-sided p-value that a paired test can have where the runs differ in so many docs or clusters: 2 · 2⁻ᵏ, at most 1.

    >>> [least_p(k) for k in (0, 1, 2, 6)]
    [1.0, 1.0, 0.5, 0.03125]
    """
    return min(1.0, 2.0 ** (1 - differing))


def _at_least(found: Difference, differing: int, what: str) -> Difference:
    """The difference with the least p-value that exchanging the runs leaves, and an interval that agrees with it."""
    estimate, least = found.estimate, least_p(differing)
    if found.p is None or estimate.low is None or estimate.high is None:
        return dataclasses.replace(found, differing=differing)
    low, high, reason = estimate.low, estimate.high, ""
    if not differing:
        reason = f"the runs differ in none of the {what}"
    elif least > 1 - estimate.level and not low <= 0 <= high:
        reason = f"the runs differ in only {differing} {what}: too few to exclude 0"
        low, high = min(low, 0.0), max(high, 0.0)
    estimate = dataclasses.replace(estimate, low=low, high=high, reason="; ".join(filter(None, [estimate.reason, reason])))
    return Difference(found.first, found.second, estimate, max(found.p, least), differing)


def unpaired(first: Estimate, second: Estimate, *, level: float = LEVEL) -> Difference:
    """The difference of two independent estimates by their standard errors: normal interval and p-value.

    Under 50 clusters on either side, Student's t with G − 1 degrees of freedom and √(G / (G − 1)), as for single estimates.
    Without interval where a standard error is missing, or both are 0 and the values differ: then nothing says how sure that is.
    """
    nothing = Difference(first.value, second.value, dataclasses.replace(second, value=None, se=None, low=None, high=None, level=level), None)
    if first.value is None or second.value is None:
        where, side = ("first", first) if first.value is None else ("second", second)
        reason = f"not defined in the {where} run" + (f": {side.reason}" if side.reason else "")
        return dataclasses.replace(nothing, estimate=dataclasses.replace(nothing.estimate, reason=reason))
    value = second.value - first.value
    n, groups = min(first.n, second.n), min(first.clusters, second.clusters)
    bare = Estimate(value, None, None, None, n, groups, 0, level, "no standard error: no interval")
    if first.se is None or second.se is None:
        return Difference(first.value, second.value, bare, None)
    se = math.hypot(first.se, second.se)
    if not se and value:
        return Difference(first.value, second.value, dataclasses.replace(bare, reason="no doc varies in either run: no interval"), None)
    few = 1 < groups < FEW_CLUSTERS
    factor = math.sqrt(groups / (groups - 1)) if few else 1.0
    half = (t_quantile((1 + level) / 2, groups - 1) if few else normal_quantile((1 + level) / 2)) * factor * se
    z = abs(value) / se / factor if se else 0.0
    p = t_tails(z, groups - 1) if few else math.erfc(z / math.sqrt(2))
    return Difference(first.value, second.value, Estimate(value, se, value - half, value + half, n, groups, 0, level, "unpaired"), p)


@dataclass(frozen=True)
class McNemar:
    """Docs on which exactly one of two runs is right.

    Attributes:
        only_first, only_second: how many.
        p: two-sided exact binomial p-value; docs taken as independent.
    """

    only_first: int
    only_second: int
    p: float


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar | None:
    """McNemar's exact test; None unless all scores are 0 or 1.

    Args:
        first, second: shape (docs,), scores of the same docs.

    >>> mcnemar([1, 1, 1, 0], [0, 1, 1, 0])
    McNemar(only_first=1, only_second=0, p=1.0)
    """
    from scipy.stats import binomtest

    a, b = np.asarray(first, float), np.asarray(second, float)
    if not len(a) or not np.isin(np.concatenate([a, b]), (0.0, 1.0)).all():
        return None
    one, other = int((a > b).sum()), int((b > a).sum())
    return McNemar(one, other, float(binomtest(one, one + other).pvalue) if one + other else 1.0)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def detectable(se: float | None, *, level: float = LEVEL, power: float = 0.8) -> float | None:
    """The minimum detectable effect: the true difference that an interval at ``level`` leaves 0 out of with this power.

    Formula: (z_{(1+level)/2} + z_{power}) · SE. Same units as the standard error; None without one. Under some 20 clusters, and
    where only a handful of docs differ, more than this is needed.

    >>> round(detectable(0.01), 4)
    0.028
    """
    return None if se is None else (normal_quantile((1 + level) / 2) + normal_quantile(power)) * se
