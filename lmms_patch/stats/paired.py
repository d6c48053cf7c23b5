"""Two runs on the same docs: the difference of a number, with everything that happened to a doc kept together. NumPy only.

Sources: Efron & Tibshirani (1993), ch. 13 and 15 (percentile interval and the p-value that inverts it); McNemar (1947), in its
exact form; DESIGN §6 for few clusters.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
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
    """

    first: float | None
    second: float | None
    estimate: Estimate
    p: float | None


def differences(
    rows: ArrayLike,
    statistics: dict[str, Callable[[Array], tuple[Any, Any]]],
    clusters: ArrayLike | None = None,
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
) -> dict[str, Difference]:
    """Several differences from the same bootstrap draws of docs, clusters together.

    Args:
        rows: shape (docs, d): what is summed over docs, of both runs, one row per doc.
        statistics: by name, from sums of shape (..., d) to the two numbers, shapes (...); nan where not defined.
        clusters: labels of shape (docs,); None: docs are independent.
        draws: B.
        level: nominal coverage of the intervals, 0..1.
        seed: see ``resample.generator``.

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
            spread = np.subtract(*statistic(drawn)[::-1]) if len(drawn) else np.empty(0)
            estimate = summarise(second - first, np.asarray(spread, float), len(array), groups, level=level, what=what)
            p = None if estimate.low is None else p_value(second - first, spread, groups)
            out[name] = Difference(_known(first), _known(second), estimate, p)
    return out


def p_value(value: float, drawn: Array, groups: int) -> float:
    """Two-sided p-value of 0 by inverting the percentile interval: twice the smaller share of draws on either side of 0.

    Args:
        value: the difference on the data.
        drawn: shape (B,), on each draw; nan where not defined.
        groups: number of clusters; under 50 the draws are spread as the interval's ends at 95 % are.
    """
    known = drawn[np.isfinite(drawn)]
    if groups < FEW_CLUSTERS:
        known = value + (known - value) * t_quantile(0.975, groups - 1) / normal_quantile(0.975) * math.sqrt(groups / (groups - 1))
    tolerance = 1e-12 * max(1.0, abs(value))
    below, above = int((known <= tolerance).sum()), int((known >= -tolerance).sum())
    return min(1.0, 2 * (1 + min(below, above)) / (1 + len(known)))


def unpaired(first: Estimate, second: Estimate, *, level: float = LEVEL) -> Difference:
    """The difference of two independent estimates by their standard errors: normal interval and p-value."""
    nothing = Difference(first.value, second.value, dataclasses.replace(second, value=None, se=None, low=None, high=None, level=level), None)
    if first.value is None or second.value is None:
        return nothing
    value = second.value - first.value
    if first.se is None or second.se is None:
        reason = "no standard error: no interval"
        return dataclasses.replace(nothing, estimate=dataclasses.replace(nothing.estimate, value=value, reason=reason))
    se = math.hypot(first.se, second.se)
    half = normal_quantile((1 + level) / 2) * se
    p = math.erfc(abs(value) / se / math.sqrt(2)) if se else float(value == 0)
    n, groups = min(first.n, second.n), min(first.clusters, second.clusters)
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

    Formula: (z_{(1+level)/2} + z_{power}) · SE. Same units as the standard error; None without one.

    >>> round(detectable(0.01), 4)
    0.028
    """
    return None if se is None else (normal_quantile((1 + level) / 2) + normal_quantile(power)) * se
