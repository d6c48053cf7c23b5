"""Intervals of numbers that are computed from docs: how they are made, widened, moved to another level and combined.

A number is a function of sums over docs. Its interval is made from random draws. In a draw each cluster of docs has a
random weight (Rubin 1981, *The Bayesian Bootstrap*), and one imagined doc is added: for the lower end the doc that
lowers the number most, for the upper end the doc that raises it most, within the scale of a doc (Walley 1996,
*Inferences from Multinomial Data*). In the middle of the scale this gives the bootstrap's interval. Near an end of the
scale all docs of a sample may be right. The bootstrap then draws no wrong doc and its interval has no width; the
imagined doc keeps the interval open. For a share of independent docs the two ends are exactly those of Clopper &
Pearson (1934). For the difference of two runs the interval excludes 0 exactly where McNemar's exact test does.

An interval never has zero width, never leaves the range of its number (the draws are numbers of possible samples), and
holds its value.

Few clusters: Cameron & Miller (2015), *A Practitioner's Guide to Cluster-Robust Inference*, section VI, with the
effective number of clusters of uneven sizes (Kish 1965, section 5.4; Carter, Schnepel & Steigerwald 2017).
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lmms_patch.stats.bounds import FEWEST_DRAWS
from lmms_patch.stats.resample import DRAWS, LEVEL, Array, Bools, Estimate, Ints, Seed, generator, totals, weighted_sums

FEW_CLUSTERS, TOO_FEW_CLUSTERS = 50, 10
UNSEEN, UNSEEN_OF_PAIRS = 1.0, 0.5
"""How many unseen docs are added. One unseen doc makes the interval of a share exact. An index or a gap is made of two numbers of the same
docs, and the worst doc is worst for both at once: half a doc is enough (docs/statistics-appendix.md)."""
NEAR_END = 10
"""A share is near an end of its scale when fewer than this many docs separate it from that end. There ``at_level`` uses the exact interval too."""
NO_SPREAD = "no draw differs, so nothing says how sure this is"
_STEP = 1e-4
"""The weight of a doc that is added to measure how far the number moves. It is small: a sample has at least ten docs of weight 1."""
# relative: numbers that differ by less do so by float error alone
_TOLERANCE = 1e-12

Statistic = Callable[[Array], Any]


# --- few clusters ---------------------------------------------------------------------------------


def is_few(clusters: float) -> bool:
    """Return whether an effective number of clusters is so small that intervals need Student's t.

    At most 1 cluster allows no interval at all.
    """
    return 1 < clusters < FEW_CLUSTERS


def normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution.

    >>> round(normal_quantile(0.975), 3)
    1.96
    """
    # SciPy is imported where it is used: that costs a quarter of a second, also where no interval is wanted
    from scipy.special import ndtri

    return float(ndtri(p))


def quantile(p: float, clusters: float) -> float:
    """Return the quantile of a standardized number: Student's t with G − 1 degrees of freedom under 50 clusters, else normal.

    >>> round(quantile(0.975, 10), 3), round(quantile(0.975, 50), 3)
    (2.262, 1.96)
    """
    from scipy.special import stdtrit

    return float(stdtrit(clusters - 1, p)) if is_few(clusters) else normal_quantile(p)


def tails(standardized: float, clusters: float) -> float:
    """Return the two-sided p-value of a standardized number, by the distribution of ``quantile``.

    >>> round(tails(2.262, 10), 3), round(tails(1.96, 50), 3)
    (0.05, 0.05)
    """
    from scipy.special import stdtr

    return (
        float(2 * stdtr(clusters - 1, -abs(standardized)))
        if is_few(clusters)
        else math.erfc(abs(standardized) / math.sqrt(2))
    )


def shortfall(clusters: float) -> float:
    """Return how much too small the bootstrap's standard error is under 50 clusters: √(G / (G − 1)); 1 from 50 on."""
    return math.sqrt(clusters / (clusters - 1)) if is_few(clusters) else 1.0


def half_width(clusters: float, level: float = LEVEL) -> float:
    """Return the half-width of an interval in standard errors of the bootstrap.

    Args:
        clusters: effective number of clusters G.
        level: nominal coverage, 0..1.
    """
    return quantile((1 + level) / 2, clusters) * shortfall(clusters)


def few_clusters(clusters: float, level: float = LEVEL) -> float:
    """Return the factor by which few clusters widen an interval; 1 from 50 on.

    >>> round(few_clusters(20), 3), few_clusters(50)
    (1.096, 1.0)
    """
    return half_width(clusters, level) / normal_quantile((1 + level) / 2)


def effective_clusters(sizes: ArrayLike) -> float:
    """Return how many clusters of equal size carry as much information as these: (Σs)² / Σs².

    Args:
        sizes: number of used docs of each cluster; clusters without a used doc do not count.

    >>> effective_clusters([4, 4, 4, 0]), effective_clusters([8, 2, 2])
    (3.0, 2.0)
    """
    array = np.asarray(sizes, float)
    squares = float((array**2).sum())
    return float(array.sum()) ** 2 / squares if squares else 0.0


def would_do(docs: int, effective: float) -> str:
    """Return how many docs would be enough for an interval, as the end of a sentence that says that there are too few clusters.

    >>> would_do(12, 6.0)
    '; about 20 docs would do'
    """
    return f"; about {math.ceil(docs * TOO_FEW_CLUSTERS / effective)} docs would do" if effective > 0 else ""


def places_of(clusters: ArrayLike | None) -> Ints | None:
    """Return cluster numbers from 0; None where each doc is its own cluster.

    >>> places_of(["b", "a", "b"]).tolist(), places_of(["b", "a", "c"])
    ([1, 0, 1], None)
    """
    if clusters is None:
        return None
    labels, places = np.unique(np.asarray(clusters), return_inverse=True)
    # clusters of one doc each are none: the exact ways for independent docs hold
    return None if len(labels) == len(places) else places


# --- shares ---------------------------------------------------------------------------------------


def clopper_pearson(hits: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Return the exact interval of a share (Clopper & Pearson 1934), in 0..1.

    Args:
        hits: successes, 0..n; may be a fraction (scores between 0 and 1).
        n: tries; may be a fraction (an effective number of docs).
        level: nominal coverage, 0..1.

    >>> clopper_pearson(40, 40)[1], round(clopper_pearson(40, 40)[0], 4)
    (1.0, 0.9119)
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if hits <= 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits >= n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return low, high


def of_right_or_wrong(
    scores: ArrayLike, ends: tuple[float, float] = (0.0, 1.0), level: float = LEVEL
) -> Estimate | None:
    """Return the mean of independent scores with its exact interval.

    None unless each score is right or wrong, and there are at least 10.

    Draws (``Sample.ends``) would give the same interval, but with noise.

    Args:
        scores: shape (docs,), finite.
        ends: what a wrong and a right answer score.
        level: nominal coverage, 0..1.

    >>> of_right_or_wrong([1.0] * 40).low == clopper_pearson(40, 40)[0], of_right_or_wrong([0.5] * 40)
    (True, None)
    """
    array, (wrong, right) = np.asarray(scores, float), ends
    n, hits = len(array), int((array == right).sum())
    if n < TOO_FEW_CLUSTERS or hits + int((array == wrong).sum()) < n:
        return None
    width = right - wrong
    low, high = clopper_pearson(hits, n, level)
    # the larger standard deviation of the two beta distributions whose quantiles the ends are
    se = max(math.sqrt(a * (n + 1 - a) / ((n + 1) ** 2 * (n + 2))) for a in (hits, hits + 1))
    return Estimate(
        wrong + width * hits / n,
        width * se,
        wrong + width * low,
        wrong + width * high,
        n,
        n,
        0,
        level,
        effective=float(n),
    )


# --- a sample -------------------------------------------------------------------------------------


class Sample:
    """The sums over docs that a number is made of, on the data and on each draw.

    Args:
        rows: shape (docs, d), what is summed; zeros for docs that are not used.
        clusters: labels of shape (docs,); None: docs are independent.
        used: shape (docs,), which docs the number is of; None: all.
        whole: whether a row stands for its whole cluster (MME's pairs).
        draws: B.
        level: nominal coverage, 0..1.
        seed: see ``resample.generator``.

    Attributes:
        n: number of docs used.
        clusters: number of clusters with a used doc; n where docs are independent.
        effective: ``effective_clusters`` of these clusters.
        unit: size of the cluster of a random doc. An unseen doc weighs as much where nothing shows how docs of a
        cluster hang together.
        sums: shape (d,), on the data.
        factor: ``few_clusters``; the draws are already spread by it.
        drawn: shape (B, d), on each draw; no draws under 10 effective clusters.
    """

    def __init__(
        self,
        rows: ArrayLike,
        clusters: ArrayLike | None = None,
        *,
        used: Bools | None = None,
        whole: bool = False,
        draws: int = DRAWS,
        level: float = LEVEL,
        seed: Seed = 0,
    ) -> None:
        self.rows, self.level, self.asked = np.asarray(rows, float), level, draws
        mask = np.ones(len(self.rows), bool) if used is None else used
        self.n = int(mask.sum())
        self.places = places_of(clusters)
        sizes = np.ones(self.n) if self.places is None else np.bincount(self.places[mask]).astype(float)
        # a form on whole clusters has one row for each, whatever its size
        sizes = np.minimum(sizes[sizes > 0], 1.0) if whole else sizes[sizes > 0]
        self.clusters, self.effective = len(sizes), effective_clusters(sizes)
        # the size of the cluster of a random doc, on average
        self.unit = float((sizes**2).sum() / sizes.sum()) if self.n else 1.0
        self.sums = self.rows.sum(axis=0)
        self.factor = few_clusters(self.effective, level)
        stream = generator(seed)
        # shares made of gamma weights of shape k vary as 1 / (k G +
        # 1) among G clusters; this k makes that factor² / G
        shape = 1.0 if self.factor == 1 else 1 / self.factor**2 - 1 / self.effective
        enough = self.n > 0 and self.effective >= TOO_FEW_CLUSTERS
        self.drawn = (
            weighted_sums(totals(self.rows, self.places), draws, stream, shape)
            if enough
            else np.empty((0, self.rows.shape[1]))
        )
        # drawn once, since all numbers of a sample are compared on the same draws
        self._unseen = {mass: stream.standard_gamma(mass, len(self.drawn)) for mass in (UNSEEN, UNSEEN_OF_PAIRS)}

    def take(self, columns: Ints) -> Sample:
        """Return the same sample and draws with some of the sums only."""
        # shallow: the weights of imagined docs stay those of the whole sample
        part = copy.copy(self)
        part.rows, part.sums, part.drawn = self.rows[:, columns], self.sums[columns], self.drawn[:, columns]
        return part

    def ends(self, statistic: Statistic, extremes: Array | None, unseen: float = UNSEEN) -> tuple[Array, Array]:
        """Return the draws of the lower and of the upper end of an interval, shape (B,) each.

        The ends are quantiles of these draws.

        Args:
            statistic: from sums of shape (..., d) to values of shape (...); nan where it is not defined.
            extremes: shape (C, d), the rows that an unseen doc may have; None: no doc is added.
            unseen: how many unseen docs are added: ``UNSEEN`` or ``UNSEEN_OF_PAIRS``.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = None if extremes is None else np.asarray(statistic(self.sums + self.unit * extremes), float)
            # where every imagined doc leaves the number undefined, none of them is the worst
            if extremes is None or moved is None or np.isnan(moved).all():
                drawn = np.asarray(statistic(self.drawn), float)
                return drawn, drawn
            worst = (extremes[np.nanargmin(moved)], extremes[np.nanargmax(moved)])
            weights = (self._unseen[unseen] * self._weight(statistic, row) for row in worst)
            low, high = (
                np.asarray(statistic(self.drawn + weight[:, None] * row), float)
                for row, weight in zip(worst, weights, strict=True)
            )
        return low, high

    def _weight(self, statistic: Statistic, extreme: Array) -> float:
        """Return the weight of the unseen doc: how many docs of a cluster fail when one of them fails.

        This is the design effect of the number at this extreme, Σ z_c² / Σ z_i². Here z_i is how far doc i moves the
        number, as a share of how far the extreme doc moves it, and z_c is the sum of z_i over cluster c. Near an end of
        the scale few docs move the number at all, so the unseen doc is counted too, as if its whole cluster failed: (Σ
        z_c² + unit) / (Σ z_i² + 1).
        """
        if self.places is None or self.unit == 1:
            return 1.0
        start = statistic(self.sums)
        moved = (statistic(self.sums + _STEP * self.rows) - start) / (statistic(self.sums + _STEP * extreme) - start)
        if not np.isfinite(moved).all():
            return self.unit
        together = float((np.bincount(self.places, moved) ** 2).sum())
        return min(self.unit, max(1.0, (together + self.unit) / (float((moved**2).sum()) + 1)))

    def estimate(
        self, statistic: Statistic, extremes: Array | None = None, *, unseen: float = UNSEEN, value: float | None = None
    ) -> Estimate:
        """Return a number with its interval.

        Args:
            statistic: see ``ends``.
            extremes: see ``ends``.
            unseen: see ``ends``.
            value: the number itself, where it is known; default: the statistic of the sums.
        """
        if not self.n:
            return Estimate.nothing(0, "no docs", self.level)
        with np.errstate(divide="ignore", invalid="ignore"):
            # a number that is not defined is 0 / 0 here
            point = float(statistic(self.sums)) if value is None else value
        low, high = (
            self.ends(statistic, extremes, unseen)
            if len(self.drawn) and math.isfinite(point)
            else (np.empty(0), np.empty(0))
        )
        return self.of_ends(point, low, high)

    def of_ends(self, value: float, low: Array, high: Array) -> Estimate:
        """Return a number with the interval that the draws of both ends give (``ends``)."""
        what = "docs" if self.places is None else "clusters"
        return _summary(
            value, low, high, self.n, self.clusters, self.effective, self.level, self.asked, what, widened=True
        )


def estimate(
    rows: ArrayLike,
    statistic: Statistic,
    clusters: ArrayLike | None = None,
    *,
    extremes: ArrayLike | None = None,
    unseen: float = UNSEEN,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
) -> Estimate:
    """Return a function of sums over docs (a mean, a ratio of means, an index) with its interval.

    Args:
        rows: shape (docs, d): what is summed, one row per doc (say ``[full, best, 1]``).
        statistic: from sums of shape (..., d) to values of shape (...); nan where it is not defined.
        clusters: labels of shape (docs,); None: docs are independent.
        extremes: shape (C, d), the rows that an unseen doc may have, such as ``[[0, 1], [1, 1]]`` for a share; None: no
        doc is added.
        unseen: how many unseen docs are added.
        draws: B.
        level: nominal coverage, 0..1.
        seed: see ``resample.generator``.

    Returns:
        The number. Its value is None without docs, or where the statistic is not defined on the data. Its interval is
        None under 10 effective clusters, and where no draw differs; from 10 to 49 clusters it is widened. The reason
        says so.

    >>> share = estimate([[1.0, 1.0]] * 40, lambda s: s[..., 0] / s[..., 1], extremes=[[0, 1], [1, 1]])
    >>> share.value, share.high, 0.88 < share.low < 0.93
    (1.0, 1.0, True)
    """
    array = np.asarray(rows, float)
    if not len(array):
        return Estimate.nothing(0, "no docs", level)
    sample = Sample(array, clusters, draws=draws, level=level, seed=seed)
    return sample.estimate(statistic, None if extremes is None else np.asarray(extremes, float), unseen=unseen)


def ratio(
    above: ArrayLike,
    below: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    ends: tuple[float, float] = (0.0, 1.0),
    **options: Any,
) -> Estimate:
    """Return a ratio of sums over docs with its interval.

    Args:
        above: shape (docs,), what a doc adds above the line.
        below: shape (docs,), what it adds below, at least 0; docs that add nothing are left out.
        clusters: labels of shape (docs,); None: docs are independent.
        ends: least and most that the ratio of a single doc can be.
        options: ``draws``, ``level``, ``seed`` as of ``estimate``.
    """
    rows = np.column_stack([np.asarray(above, float), np.asarray(below, float)])
    kept = rows[:, 1] > 0
    if len(rows) and not kept.any():
        return Estimate.nothing(0, "not defined on these docs", options.get("level", LEVEL))
    weight = float(rows[kept, 1].mean()) if len(rows) else 1.0
    labels = None if clusters is None else np.asarray(clusters)[kept]
    extremes = [[end * weight, weight] for end in ends]
    return estimate(rows[kept], lambda sums: sums[..., 0] / sums[..., 1], labels, extremes=extremes, **options)


def mean(
    scores: ArrayLike, clusters: ArrayLike | None = None, *, ends: tuple[float, float] = (0.0, 1.0), **options: Any
) -> Estimate:
    """Return the mean of scores with its interval.

    Args:
        scores: shape (docs,).
        clusters: labels of shape (docs,); None: docs are independent.
        ends: least and most that a doc can score.
        options: ``draws``, ``level``, ``seed`` as of ``estimate``.

    >>> mean([0.0, 1.0] * 30).value
    0.5
    """
    exact = of_right_or_wrong(scores, ends, options.get("level", LEVEL)) if places_of(clusters) is None else None
    return exact or ratio(scores, np.ones(len(np.asarray(scores, float))), clusters, ends=ends, **options)


def ends_of(scores: ArrayLike, marks: float | None = None) -> tuple[float, float]:
    """Return the least and the most that a doc can score, as far as scores and full marks tell.

    Args:
        scores: any shape; nan is left out.
        marks: what a doc with full marks scores, where that is known.

    >>> ends_of([0.0, 0.4]), ends_of([0.0, 3.0], 5.0), ends_of([0.0, 3.0]), ends_of([-0.2, 0.1])
    ((0.0, 1.0), (0.0, 5.0), (0.0, 3.0), (-1.0, 1.0))
    """
    known = np.asarray(scores, float)
    known = known[np.isfinite(known)]
    least, most = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    # a score below 0 on a scale up to 1 is one such as a correlation's, from -1
    low = 0.0 if least >= 0 else -1.0 if least >= -1 and most <= 1 else least
    return low, marks if marks is not None and marks >= max(most, 1.0) else 1.0 if most <= 1 else most


# --- draws that were made elsewhere ---------------------------------------------------------------


def summarise(
    value: float,
    drawn: Array,
    n: int,
    clusters: int,
    effective: float | None = None,
    *,
    level: float = LEVEL,
    draws: int | None = None,
    what: str = "clusters",
) -> Estimate:
    """Return a number with the percentile interval of given bootstrap draws.

    For numbers that are no function of sums over docs.

    Args:
        value: the number on the data.
        drawn: shape (B,), on each draw; nan where it is not defined there.
        n: number of docs.
        clusters: number of clusters.
        effective: ``effective_clusters``; default: as many as there are.
        level: nominal coverage, 0..1.
        draws: how many draws were asked for, where fewer could be made; default: as many as there are.
        what: the word for what is resampled, for the reason: docs or clusters.
    """
    count = float(clusters) if effective is None else effective
    return _summary(value, drawn, drawn, n, clusters, count, level, draws or len(drawn), what)


def _summary(
    value: float,
    low_draws: Array,
    high_draws: Array,
    n: int,
    clusters: int,
    effective: float,
    level: float,
    asked: int,
    what: str,
    *,
    widened: bool = False,
) -> Estimate:
    """Return the estimate that draws give; ``widened`` says that the draws are already spread for few clusters."""
    # sizes that differ this little are as good as equal
    counted = (
        f"{clusters} {what}"
        if effective > clusters - 0.5
        else f"{clusters} {what}, by their sizes worth {effective:.1f},"
    )
    nothing = Estimate(value, None, None, None, n, clusters, 0, level, effective=effective)
    if not math.isfinite(value):
        return dataclasses.replace(nothing, value=None, reason="not defined on these docs")
    if effective < TOO_FEW_CLUSTERS:
        return dataclasses.replace(nothing, reason=f"{counted} are too few for an interval{would_do(n, effective)}")
    known = [drawn[np.isfinite(drawn)] for drawn in (low_draws, high_draws)]
    made, defined = len(low_draws), min(map(len, known))
    # draws without a value are no random part of all draws (say, FIP
    # is 0 there), so without them the interval is too narrow
    if defined < 0.9 * made or defined < min(asked, FEWEST_DRAWS):
        how = "defined on" if made == asked else "time for"
        return dataclasses.replace(nothing, draws=defined, reason=f"{how} only {defined} of {asked} draws")
    reasons = [] if made == asked else [f"time for only {defined} of {asked} draws"]
    factor = few_clusters(effective, level)
    # the two ends have different imagined docs; the wider spread is the safe one
    se = max(float(drawn.std(ddof=1)) for drawn in known) / (factor if widened else 1)
    low, high = float(np.quantile(known[0], (1 - level) / 2)), float(np.quantile(known[1], (1 + level) / 2))
    if factor > 1:
        low, high = (low, high) if widened else (value - (value - low) * factor, value + (high - value) * factor)
        reasons.append(f"{counted} are few: the interval is widened by {factor:.2f}")
    # lopsided draws can lie on one side of the value, and every
    # reader takes for granted that the interval holds it
    low, high = min(low, value), max(high, value)
    if high - low <= _TOLERANCE * max(1.0, abs(value)):
        return dataclasses.replace(nothing, se=0.0, draws=defined, reason="; ".join([*reasons, NO_SPREAD]))
    return Estimate(value, se, low, high, n, clusters, defined, level, "; ".join(reasons), effective)


# --- intervals that are stored --------------------------------------------------------------------


def trimmed(stored: Estimate, scale: tuple[float, float] = (-math.inf, math.inf)) -> Estimate:
    """Return a number with its interval cut to its scale; without interval where that leaves no width.

    >>> trimmed(Estimate(0.925, 0.05, 0.82, 1.003, 40, 40, 1000), (0.0, 1.0)).high
    1.0
    """
    if stored.value is None or stored.low is None or stored.high is None:
        return stored
    low, high = max(min(scale[0], stored.value), stored.low), min(max(scale[1], stored.value), stored.high)
    if high - low > _TOLERANCE and stored.se != 0:
        return dataclasses.replace(stored, low=low, high=high)
    return dataclasses.replace(
        stored, low=None, high=None, reason="; ".join(dict.fromkeys(filter(None, [stored.reason, NO_SPREAD])))
    )


def at_level(stored: Estimate, level: float, scale: tuple[float, float] | None = None) -> Estimate:
    """Return a stored number with its interval at another level. For numbers whose docs are not at hand.

    Each half-width grows by the ratio of the quantiles, which is right where draws are normal. Near an end of the scale
    they are not. There the interval is joined with the exact one, for as many docs as would give the stored interval.

    Args:
        stored: the number.
        level: nominal coverage, 0..1.
        scale: for a mean of scores, least and most that a doc can score; None for other numbers.
    """
    if stored.value is None or stored.low is None or stored.high is None or stored.level == level:
        return dataclasses.replace(stored, level=level)
    groups = stored.clusters if stored.effective is None else stored.effective
    factor = half_width(groups, level) / half_width(groups, stored.level)
    low, high = (
        stored.value - factor * (stored.value - stored.low),
        stored.value + factor * (stored.high - stored.value),
    )
    out = dataclasses.replace(stored, low=low, high=high, level=level)
    return out if scale is None else _joined_with_exact(out, scale, _worth(stored, scale))


def _worth(stored: Estimate, scale: tuple[float, float]) -> float:
    """Return how many docs would give the stored interval of a share by Clopper & Pearson.

    The interval has a near and a far end, seen from the nearer end of the scale. The far end decides.
    """
    assert stored.value is not None
    assert stored.low is not None
    assert stored.high is not None
    width = scale[1] - scale[0]
    share = min(1.0, max(0.0, (stored.value - scale[0]) / width))
    miss, far = (
        (1 - share, (scale[1] - stored.low) / width) if share > 0.5 else (share, (stored.high - scale[0]) / width)
    )
    least, most = 1.0, float(max(stored.n, 1))
    # bisection, in logarithms since a benchmark may have ten docs
    # or a million; the interval narrows as docs are added
    for _ in range(50):
        middle = math.sqrt(least * most)
        least, most = (
            (middle, most) if clopper_pearson(miss * middle, middle, stored.level)[1] > far else (least, middle)
        )
    return most


def _joined_with_exact(stored: Estimate, scale: tuple[float, float], docs: float) -> Estimate:
    """Return a share whose interval stays within its scale and, near an end, covers the exact interval of so many docs."""
    assert stored.value is not None
    assert stored.low is not None
    assert stored.high is not None
    width = scale[1] - scale[0]
    share = (stored.value - scale[0]) / width
    # float error may put a share a trace outside its scale
    if not -_TOLERANCE <= share <= 1 + _TOLERANCE or docs * min(share, 1 - share) >= NEAR_END or docs < 1:
        return trimmed(stored, scale)
    ends = [scale[0] + width * end for end in clopper_pearson(docs * min(1.0, max(0.0, share)), docs, stored.level)]
    low, high = min(max(scale[0], stored.low), ends[0]), max(min(scale[1], stored.high), ends[1])
    return dataclasses.replace(stored, low=low, high=high)


# --- two numbers of different docs ----------------------------------------------------------------


def difference(first: Estimate, second: Estimate) -> Estimate:
    """Return second less first of two independent numbers, from their own intervals at one level.

    Formula (Newcombe 1998, method 10; Zou & Donner 2008): d − √((v₂ − l₂)² + (u₁ − v₁)²) to d + √((u₂ − v₂)² + (v₁ −
    l₁)²). The two intervals may be lopsided. The difference of two shares stays within −1..1.
    """
    n, clusters = min(first.n, second.n), min(first.clusters, second.clusters)
    effective = min((side.effective for side in (first, second) if side.effective is not None), default=None)
    nothing = Estimate(None, None, None, None, n, clusters, 0, second.level, effective=effective)
    if first.value is None or second.value is None:
        return nothing
    value = second.value - first.value
    se = None if first.se is None or second.se is None else math.hypot(first.se, second.se)
    if first.low is None or first.high is None or second.low is None or second.high is None:
        missing = first if first.low is None else second
        return dataclasses.replace(nothing, value=value, reason=missing.reason or "no interval")
    low = value - math.hypot(second.value - second.low, first.high - first.value)
    high = value + math.hypot(second.high - second.value, first.value - first.low)
    return dataclasses.replace(nothing, value=value, se=se, low=low, high=high, reason="unpaired")


# --- distances from 0 -----------------------------------------------------------------------------


def magnitude(number: Estimate) -> Estimate:
    """Return |x| with its interval. An interval that holds 0 becomes one from 0 to its farther end."""
    if number.value is None:
        return number
    low, high = number.low, number.high
    if low is not None and high is not None:
        low, high = max(0.0, low, -high), max(abs(low), abs(high))
    return dataclasses.replace(number, value=abs(number.value), low=low, high=high)
