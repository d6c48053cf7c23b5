"""Differences between two runs on the same docs, paired by doc. NumPy only.

The same random draws of docs serve both runs, so what a doc is like (hard, easy) cancels out of the difference. The
intervals are those of ``stats.intervals``. The p-value is the level at which the interval would just hold 0. On 0/1
scores of independent docs that is McNemar's exact p-value. Let b docs be right in the first run only, and c docs in the
second only. The chance that the random weights of the b docs add up to less than those of the c docs and the unseen
doc, P(Γ(b) < Γ(c + 1)), is the binomial tail P(X ≥ b) of b + c tosses.

Sources: McNemar (1947), in its exact form; Ernst (2004, Statistical Science 19: 676; the least p-value of a paired
permutation test); Cameron & Miller (2015), VI for few clusters.
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
from lmms_patch.stats.bounds import Count, Share
from lmms_patch.stats.forms import Form
from lmms_patch.stats.intervals import Sample, few_clusters, is_few, normal_quantile, quantile, shortfall, tails
from lmms_patch.stats.resample import LEVEL, Array, Bools, Estimate, Seed, totals

DRAWS = 10_000
"""Holm's correction over many tasks needs small p-values, so there are more draws than for an interval. The smallest p is 2 / (B + 1)."""


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
        only_first: docs that only A has right
        only_second: docs that only B has right
        p: exact, two-sided; docs taken as independent
    """

    only_first: Count
    only_second: Count
    p: Share


def itself(value: Any) -> Any:
    """Return M: the number of a ``Number`` that is M itself."""
    return value


@dataclass(frozen=True)
class Number:
    """A number of a run: a function of the aggregation M of some sets of answers.

    Attributes:
        sets: names of the sets.
        of: from M of each set, shapes (...), to the number; nan where it is not defined.
    """

    sets: tuple[str, ...]
    of: Callable[..., Any] = itself


def differences(
    form: Form,
    sets: Mapping[str, tuple[Array, Array]],
    numbers: Mapping[str, Number],
    clusters: ArrayLike | None = None,
    *,
    ends: tuple[float, float] | None = (0.0, 1.0),
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
    exact: Mapping[str, McNemar] | None = None,
    stands_for: tuple[float, float] = (1.0, 1.0),
) -> dict[str, Difference]:
    """Return several differences from the same draws of docs, clusters together.

    Args:
        form: of the aggregation M.
        sets: by name, what the form sums of each doc in the first and in the second run, shape (docs, d) each.
        numbers: what to compare, by name.
        clusters: labels of shape (docs,); None: docs are independent.
        ends: least and most that a doc can score; None: no unseen doc is added (three docs of a thousand would then
        "show" a difference).
        draws: B.
        level: nominal coverage of the intervals, 0..1.
        seed: see ``resample.generator``.
        exact: by name, McNemar's test of numbers that are shares. Where docs are independent its p-value is used: it
        has no noise of draws.
        stands_for: of each run, how many docs a doc stands for that was asked; above 1 where docs were left out.

    >>> first, second = np.array([[0.0, 1.0], [1.0, 1.0]] * 50), np.ones((100, 2))  # first run right on half of the docs, second run on all
    >>> from lmms_patch.stats.forms import MEAN
    >>> differences(MEAN, {"full": (first, second)}, {"score": Number(("full",))})["score"].estimate.value
    0.5
    """
    sample = Sample(
        np.hstack([side for sides in sets.values() for side in sides]),
        clusters,
        whole=form.whole,
        draws=draws,
        level=level,
        seed=seed,
    )
    changed = {name: _changed(*sides, clusters) for name, sides in sets.items()}
    docs, width = next(iter(sets.values()))[0].shape
    places = {name: np.arange(2 * width * k, 2 * width * (k + 1)) for k, name in enumerate(sets)}
    what = "docs" if sample.places is None else "clusters"
    out = {}
    for name, number in numbers.items():
        part, count = sample.take(np.concatenate([places[one] for one in number.sets])), 2 * len(number.sets)

        # bound by default arguments: a function made in a loop would see the last number only
        def both(sums: Array, number: Number = number, count: int = count) -> tuple[Any, Any]:
            values = [form.of_weighted(sums[..., k * width : (k + 1) * width], docs) for k in range(count)]
            return number.of(*values[::2]), number.of(*values[1::2])

        def change(sums: Array, both: Callable[[Array], tuple[Any, Any]] = both) -> Any:
            return np.subtract(*both(sums)[::-1])

        unseen = None
        if ends is not None:
            weights = [
                form.weight(side) * docs_each
                for one in number.sets
                for side, docs_each in zip(sets[one], stands_for, strict=True)
            ]
            unseen = form.unseen(ends, width, count) * np.repeat(weights, width)
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = (float(value) for value in both(part.sums))
        drawn = part.ends(change, unseen) if math.isfinite(second - first) else (np.empty(0), np.empty(0))
        estimate = part.of_ends(second - first, *drawn)
        p = None if estimate.low is None else p_value(second - first, *drawn, sample.effective, level)
        # McNemar's test takes docs for independent
        if p is not None and exact and name in exact and sample.places is None:
            p = exact[name].p
        differing = int(np.any([changed[one] for one in number.sets], axis=0).sum())
        reasons = [estimate.reason, "" if p is None else _few(differing, what, level)]
        estimate = dataclasses.replace(estimate, reason="; ".join(filter(None, reasons)))
        out[name] = Difference(_known(first), _known(second), estimate, p, differing)
    return out


def _changed(first: Array, second: Array, clusters: ArrayLike | None) -> Bools:
    """Tell of each cluster whether its sums differ between the runs."""
    # the same scores summed in another order may differ in the last digits
    return np.asarray(
        np.any(~np.isclose(totals(first, clusters), totals(second, clusters), rtol=0, atol=1e-12), axis=1)
    )


def _few(differing: int, what: str, level: float) -> str:
    """Say that too few docs or clusters differ for any test to show a difference; empty where enough differ."""
    if not differing:
        return f"the runs differ in none of the {what}"
    return f"the runs differ in only {differing} {what}: too few to exclude 0" if least_p(differing) > 1 - level else ""


def p_value(value: float, low: Array, high: Array, groups: float, level: float = LEVEL) -> float:
    """Return the two-sided p-value of 0: twice the smaller share of draws beyond 0.

    Under 50 clusters the draws are normal, but spread to the width of the t interval at one level. Further out the
    tails of Student's t are heavier. There the p-value is at least that of Student's t with G − 1 degrees of freedom.

    Args:
        value: the difference on the data.
        low: shape (B,), the draws of the interval's lower end (``Sample.ends``); nan where not defined.
        high: the same of the upper end.
        groups: effective number of clusters G.
        level: the level for which the draws were spread.
    """
    ends = [drawn[np.isfinite(drawn)] for drawn in (low, high)]
    tolerance = 1e-12 * max(1.0, abs(value))
    # The data count as one of the draws, or p could be 0. Draws of 0 count on both sides, up to float error.
    shares = [(1 + int(beyond.sum())) / (1 + len(beyond)) for beyond in (ends[0] <= tolerance, ends[1] >= -tolerance)]
    p = min(1.0, 2 * min(shares))
    if not is_few(groups):
        return p
    z, spread = normal_quantile(1 - p / 2) if p < 1 else 0.0, max(float(drawn.std(ddof=1)) for drawn in ends)
    # further out than draws can say
    if min(shares) <= 1 / (1 + len(ends[0])) and spread > 0:
        z = max(z, abs(value) / spread)
    return max(p, tails(z * few_clusters(groups, level) / shortfall(groups), groups))


def least_p(differing: int) -> float:
    """Return the least two-sided p-value of a paired test where the runs differ in so many docs or clusters: 2 · 2⁻ᵏ, at most 1.

    >>> [least_p(k) for k in (0, 1, 2, 6)]
    [1.0, 1.0, 0.5, 0.03125]
    """
    return min(1.0, 2.0 ** (1 - differing))


def unpaired(first: Estimate, second: Estimate, *, level: float = LEVEL) -> Difference:
    """Return the difference of two independent numbers from their own intervals, and the p-value that agrees with it.

    Where one of the two has no interval, neither has the difference.
    """
    ours, theirs = (intervals.at_level(side, level) for side in (first, second))
    change = intervals.difference(ours, theirs)
    for which, side in (("first", first), ("second", second)):
        if side.value is None:
            reason = f"not defined in the {which} run" + (f": {side.reason}" if side.reason else "")
            return Difference(first.value, second.value, dataclasses.replace(change, reason=reason), None)
    if change.value is None or change.low is None or change.high is None:
        return Difference(first.value, second.value, change, None)
    clusters = change.clusters if change.effective is None else change.effective
    # the two halves of the interval may differ in length; the half that faces 0 decides
    toward = change.value - change.low if change.value > 0 else change.high - change.value
    beyond = quantile((1 + level) / 2, clusters) * abs(change.value) / toward if change.value else 0.0
    return Difference(first.value, second.value, change, tails(beyond, clusters))


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar | None:
    """Return McNemar's exact test; None unless all scores are 0 or 1.

    Args:
        first: shape (docs,), scores of the first run.
        second: scores of the second run on the same docs.

    >>> mcnemar([1, 1, 1, 0], [0, 1, 1, 0])
    McNemar(only_first=1, only_second=0, p=1.0)
    """
    from scipy.stats import binomtest

    a, b = np.asarray(first, float), np.asarray(second, float)
    if not len(a) or not np.isin(np.concatenate([a, b]), (0.0, 1.0)).all():
        return None
    only_first, only_second = int((a > b).sum()), int((b > a).sum())
    tosses = only_first + only_second
    return McNemar(only_first, only_second, float(binomtest(only_first, tosses).pvalue) if tosses else 1.0)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def detectable(
    se: float | None, clusters: float = math.inf, *, level: float = LEVEL, power: float = 0.8
) -> float | None:
    """Return the minimum detectable effect: the true difference whose interval at ``level`` excludes 0 with this power.

    Formula: (z_{(1+level)/2} + z_{power}) · SE, with SE widened for few clusters. Same units as the standard error;
    None without one. Where only a handful of docs differ, the truth must be larger than this.

    >>> round(detectable(0.01), 4)
    0.028
    """
    if se is None:
        return None
    return (normal_quantile((1 + level) / 2) + normal_quantile(power)) * (se * few_clusters(clusters, level))
