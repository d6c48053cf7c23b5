"""Two runs on the same docs: the difference of a number, with everything that happened to a doc kept together. NumPy only.

Intervals are those of ``stats.intervals``, and the p-value is where they would just hold 0. On 0/1 scores of independent docs that is
McNemar's exact p-value: with b and c docs that differ, the chance that b random weights add up to less than those of c docs and the
unseen one, P(Γ(b) < Γ(c + 1)), is the binomial tail P(X ≥ b) of b + c tosses.

Sources: McNemar (1947), in its exact form; Ernst (2004, Statistical Science 19: 676; the least p-value of a paired permutation test);
Cameron & Miller (2015), VI for few clusters.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lmms_patch.stats import intervals
from lmms_patch.stats.intervals import FEW_CLUSTERS, Sample, few_clusters, half_width, normal_quantile, t_quantile
from lmms_patch.stats.resample import LEVEL, Array, Estimate, Seed

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


def differences(
    rows: ArrayLike,
    statistics: Mapping[str, Callable[[Array], tuple[Any, Any]]],
    clusters: ArrayLike | None = None,
    *,
    extremes: Mapping[str, Array] | None = None,
    whole: bool = False,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
    differing: Mapping[str, int] | None = None,
    tests: Mapping[str, McNemar] | None = None,
) -> dict[str, Difference]:
    """Return several differences from the same draws of docs, clusters together.

    Args:
        rows: shape (docs, d): what is summed over docs, of both runs, one row per doc.
        statistics: by name, from sums of shape (..., d) to the two numbers, shapes (...); nan where not defined.
        clusters: labels of shape (docs,); None: docs are independent.
        extremes: by name, shape (C, d), the rows that an unseen doc may have; without it three docs of a thousand would "show" a difference.
        whole: a row stands for its whole cluster.
        draws: B.
        level: nominal coverage of the intervals, 0..1.
        seed: see ``resample.generator``.
        differing: by name, in how many clusters the two runs differ at all; is only told.
        tests: by name, of differences of shares: where docs are independent their p-value is taken, which has no noise of draws.

    >>> rows = np.array([[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]] * 50)  # first right on half of the docs, second on all, and a one
    >>> differences(rows, {"score": lambda s: (s[..., 0] / s[..., 2], s[..., 1] / s[..., 2])})["score"].estimate.value
    0.5
    """
    sample = Sample(rows, clusters, whole=whole, draws=draws, level=level, seed=seed)
    out = {}
    for name, statistic in statistics.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = (float(value) for value in statistic(sample.sums))

        def change(sums: Array, of: Callable[[Array], tuple[Any, Any]] = statistic) -> Any:
            return np.subtract(*of(sums)[::-1])

        ends = sample.ends(change, None if extremes is None else extremes[name]) if math.isfinite(second - first) else (np.empty(0),) * 2
        estimate = sample.of_ends(second - first, *ends)
        p = None if estimate.low is None else p_value(second - first, *ends, sample.effective, level)
        if p is not None and tests and name in tests and sample.places is None:
            p = tests[name].p
        count = None if differing is None else differing[name]
        few = "" if count is None or p is None else _few(count, "docs" if sample.places is None else "clusters", level)
        estimate = dataclasses.replace(estimate, reason="; ".join(filter(None, [estimate.reason, few])))
        out[name] = Difference(_known(first), _known(second), estimate, p, count)
    return out


def _few(differing: int, what: str, level: float) -> str:
    """Say where so little differs that no test could show it; empty elsewhere."""
    if not differing:
        return f"the runs differ in none of the {what}"
    return f"the runs differ in only {differing} {what}: too few to exclude 0" if least_p(differing) > 1 - level else ""


def unseen_ratios(rows: Array) -> Array:
    """Return the rows that an unseen doc may have where both numbers are ratios of sums: 0 or 1 of what a doc adds below the line.

    Args:
        rows: shape (docs, 4): above and below the line, of the first run and of the second.

    Returns:
        Shape (4, 4).
    """
    one, two = (float(side[side > 0].mean()) if (side > 0).any() else 1.0 for side in (rows[:, 1], rows[:, 3]))
    return np.array([[a * one, one, b * two, two] for a in (0.0, 1.0) for b in (0.0, 1.0)])


def p_value(value: float, low: Array, high: Array, groups: float, level: float = LEVEL) -> float:
    """Return the two-sided p-value of 0: twice the smaller share of draws on the other side of it.

    Under 50 clusters the draws are spread as the interval's ends ask. The tails of Student's t are heavier than that further out: the
    p-value is at least that of the t which has G − 1 degrees of freedom where the draws give the normal quantile z.

    Args:
        value: the difference on the data.
        low, high: shape (B,), the draws of both ends of its interval (``Sample.ends``); nan where not defined.
        groups: effective number of clusters G.
        level: the level for which the draws were spread.
    """
    ends = [drawn[np.isfinite(drawn)] for drawn in (low, high)]
    tolerance = 1e-12 * max(1.0, abs(value))
    shares = [(1 + int(beyond.sum())) / (1 + len(beyond)) for beyond in (ends[0] <= tolerance, ends[1] >= -tolerance)]
    p = min(1.0, 2 * min(shares))
    if not 1 < groups < FEW_CLUSTERS:
        return p
    z, spread = normal_quantile(1 - p / 2) if p < 1 else 0.0, max(float(drawn.std(ddof=1)) for drawn in ends)
    if min(shares) <= 1 / (1 + len(ends[0])) and spread > 0:  # further out than draws can say
        z = max(z, abs(value) / spread)
    return max(p, t_tails(z * few_clusters(groups, level) / math.sqrt(groups / (groups - 1)), groups - 1))


def t_tails(t: float, df: float) -> float:
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


def unpaired(first: Estimate, second: Estimate, *, level: float = LEVEL) -> Difference:
    """Return the difference of two independent numbers from their own intervals, and the p-value that agrees with it.

    Without interval where one of them has none: then nothing says how sure the difference is.
    """
    ours, theirs = (intervals.at_level(one, level) for one in (first, second))
    found = intervals.difference(ours, theirs)
    for which, one in (("first", first), ("second", second)):
        if one.value is None:
            reason = f"not defined in the {which} run" + (f": {one.reason}" if one.reason else "")
            return Difference(first.value, second.value, dataclasses.replace(found, reason=reason), None)
    if found.value is None or found.low is None or found.high is None:
        return Difference(first.value, second.value, found, None)
    groups = found.clusters if found.effective is None else found.effective
    toward = found.value - found.low if found.value > 0 else found.high - found.value
    quantile = t_quantile((1 + level) / 2, groups - 1) if 1 < groups < FEW_CLUSTERS else half_width(groups, level)
    beyond = quantile * abs(found.value) / toward if found.value else 0.0
    p = t_tails(beyond, groups - 1) if 1 < groups < FEW_CLUSTERS else math.erfc(beyond / math.sqrt(2))
    return Difference(first.value, second.value, found, p)


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
