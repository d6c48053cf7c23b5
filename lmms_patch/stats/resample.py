"""Bootstrap over docs: all views of a doc together, clusters of docs together. NumPy only.

Everything that is a mean, or a ratio of sums, needs only the totals of each cluster. A draw is how
often each cluster is taken; clusters with equal totals are interchangeable, so that a draw is a
multinomial over the *distinct* totals. That is the same distribution, at the cost of the number of
distinct totals (for accuracies a handful) in place of the number of docs.

Source: Efron & Tibshirani, An Introduction to the Bootstrap (1993), ch. 13 (percentile interval);
the widening for few clusters follows Cameron & Miller, A Practitioner's Guide to Cluster-Robust
Inference (2015), §VI.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Seed = int | np.random.Generator

DRAWS = 1000
LEVEL = 0.95
FEW_CLUSTERS, TOO_FEW_CLUSTERS = 50, 10
FEWEST_DRAWS = 200
"""With fewer draws the ends of a 95 % interval rest on less than 5 of them."""
_BLOCK = 4_000_000
"""Numbers drawn at a time: bounds the memory, whatever the number of docs."""


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty.

    Attributes:
        value: the estimate on the data as they are; None where it is not defined.
        se: standard deviation over the draws; None with the interval.
        low, high: percentile interval at ``level``; None where it is not defined.
        n: number of docs.
        clusters: number of clusters (n where docs are their own).
        draws: number of draws on which the estimate is defined.
        level: the interval's nominal coverage, in 0..1.
        reason: why value or interval is None, or a warning that goes with it; empty otherwise.
    """

    value: float | None
    se: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    draws: int
    level: float = LEVEL
    reason: str = ""


def generator(seed: Seed) -> np.random.Generator:
    """The one door to randomness: a seed or a generator."""
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)


def cluster_numbers(labels: Sequence[Hashable] | None) -> NDArray[np.intp] | None:
    """Labels of any kind (also mixed) as numbers from 0, by their text; None stays None."""
    return None if labels is None else np.unique([repr(label) for label in labels], return_inverse=True)[1]


def totals(values: ArrayLike, clusters: ArrayLike | None = None) -> Array:
    """Sum the rows of each cluster.

    Args:
        values: shape (docs, d).
        clusters: shape (docs,), any labels; None: each doc is its own cluster.

    Returns:
        Shape (clusters, d), in the order of the sorted labels.
    """
    array = np.atleast_2d(np.asarray(values, float))
    if clusters is None:
        return array
    _, place = np.unique(np.asarray(clusters), return_inverse=True)
    out = np.zeros((int(place.max()) + 1 if len(place) else 0, array.shape[1]))
    np.add.at(out, place, array)
    return out


def resampled_sums(cluster_totals: Array, draws: int, seed: Seed) -> Array:
    """Column sums of ``draws`` bootstrap samples of clusters.

    Args:
        cluster_totals: shape (G, d).
        draws: B.
        seed: see ``generator``.

    Returns:
        Shape (B, d): the sums over G clusters drawn with replacement.
    """
    stream = generator(seed)
    size = len(cluster_totals)
    out = np.empty((draws, cluster_totals.shape[1]))
    found = _distinct(cluster_totals)
    if found is None:
        columns = np.ascontiguousarray(cluster_totals.T)
        for i in range(draws):
            out[i] = columns @ np.bincount(stream.integers(0, size, size), minlength=size).astype(float)
        return out
    rows, counts = found
    step = max(1, _BLOCK // max(1, len(rows)))
    for start in range(0, draws, step):
        stop = min(draws, start + step)
        out[start:stop] = stream.multinomial(size, counts / size, size=stop - start) @ rows
    return out


def _distinct(array: Array) -> tuple[Array, NDArray[np.intp]] | None:
    """The distinct rows and how often each comes; None where they are more than half of all.

    As ``np.unique(axis=0)``, but column by column: ten times as fast.
    """
    most = len(array) // 2
    code, kinds = np.zeros(len(array), np.intp), 1
    for column in array.T:
        values, place = np.unique(column, return_inverse=True)
        code, kinds = code * len(values) + place, kinds * len(values)
        if kinds > 4 * len(array):  # renumber the combinations that are there
            used, code = np.unique(code, return_inverse=True)
            kinds = len(used)
        if len(values) > most or (kinds > most and len(np.unique(code)) > most):
            return None
    first = np.zeros(kinds, np.intp)
    first[code] = np.arange(len(array))
    counts = np.bincount(code, minlength=kinds)
    return array[first[counts > 0]], counts[counts > 0]


def bootstrap(
    values: ArrayLike,
    statistic: Callable[[Array], Any],
    clusters: ArrayLike | None = None,
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
) -> Estimate:
    """Percentile interval of a statistic of column sums: a mean, a weighted mean, a ratio of means.

    Args:
        values: shape (docs, d): what is summed, one row per doc (say ``[full, best, 1]``).
        statistic: from sums of shape (..., d) to values of shape (...); nan where it is not defined.
        clusters: labels of shape (docs,); None: docs are independent.
        draws: B.
        level: nominal coverage in 0..1.
        seed: see ``generator``.

    Returns:
        The estimate. With no docs, or a statistic that is not defined on the data, the value is None;
        with one cluster, under 10 clusters, or a statistic that is defined on under 90 % of the draws, the
        interval is None; with 10 to 49 clusters it is widened. The reason says so.

    >>> bootstrap([[1.0, 1.0], [0.0, 1.0]] * 50, lambda s: s[..., 0] / s[..., 1]).value
    0.5
    """
    array = np.asarray(values, float)
    if not len(array):
        return Estimate(None, None, None, None, 0, 0, 0, level, "no docs")
    per_cluster = totals(array, clusters)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(per_cluster.sum(axis=0)))
        drawn = np.asarray(statistic(resampled_sums(per_cluster, draws, seed)), float) if len(per_cluster) >= TOO_FEW_CLUSTERS else np.empty(0)
    what = "docs" if clusters is None else "clusters"
    return summarise(value, drawn, len(array), len(per_cluster), level=level, what=what)


def summarise(value: float, drawn: Array, n: int, groups: int, *, level: float = LEVEL, draws: int | None = None, what: str = "clusters") -> Estimate:
    """The estimate of a value and its draws, with what DESIGN §6 says of few clusters and undefined draws.

    Args:
        value: the estimate on the data as they are.
        drawn: shape (B,), the estimate on each draw; nan where it is not defined there.
        n: number of docs.
        groups: number of clusters.
        level: nominal coverage in 0..1.
        draws: how many draws were asked for, where fewer could be made; default: as many as there are.
        what: what is resampled, for the reason: docs or clusters.
    """
    if not math.isfinite(value):
        return Estimate(None, None, None, None, n, groups, 0, level, "not defined on these docs")
    if groups < TOO_FEW_CLUSTERS:
        return Estimate(value, None, None, None, n, groups, 0, level, f"{groups} {what} are too few for an interval")
    asked = draws or len(drawn)
    known = drawn[np.isfinite(drawn)]
    if len(known) < 0.9 * len(drawn) or len(known) < min(asked, FEWEST_DRAWS):
        what = "defined on" if len(drawn) == asked else "time for"
        return Estimate(value, None, None, None, n, groups, len(known), level, f"{what} only {len(known)} of {asked} draws")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    reason = "" if len(drawn) == asked else f"time for only {len(known)} of {asked} draws"
    if groups < FEW_CLUSTERS:
        factor = t_quantile((1 + level) / 2, groups - 1) / normal_quantile((1 + level) / 2) * math.sqrt(groups / (groups - 1))
        low, high = value - (value - low) * factor, value + (high - value) * factor
        reason = "; ".join(filter(None, [reason, f"{groups} {what} are few: the interval is widened by {factor:.2f}"]))
    return Estimate(value, float(known.std(ddof=1)), float(low), float(high), n, groups, len(known), level, reason)


def unit_weights(units: int, draws: int, seed: Seed, columns: int = 1) -> Iterator[NDArray[np.float32]]:
    """How often each unit is taken in each bootstrap sample, in blocks.

    Args:
        units: number of clusters (docs where they are their own).
        draws: B.
        seed: see ``generator``.
        columns: how many arrays of the size of a block the caller keeps at a time; bounds the memory.

    Yields:
        Shape (b, units), whole numbers; the rows of all blocks are B.
    """
    stream = generator(seed)
    step = max(1, min(draws, _BLOCK // max(1, units * columns)))
    for start in range(0, draws, step):
        rows = [np.bincount(stream.integers(0, units, units, dtype=np.uint32), minlength=units) for _ in range(min(step, draws - start))]
        yield np.asarray(rows, np.float32)


def bootstrap_by_calls(
    statistic: Callable[[NDArray[np.intp]], Sequence[float | None]],
    n: int,
    clusters: ArrayLike | None = None,
    *,
    draws: int = DRAWS,
    seconds: float = 60.0,
    seed: Seed = 0,
) -> Array:
    """Bootstrap a statistic that only its own code can compute, for as long as the time allows.

    Args:
        statistic: from the places of the docs of a sample (some more than once) to d values; None or nan where not defined.
        n: number of docs.
        clusters: labels of shape (n,); None: docs are independent.
        draws: B.
        seconds: time budget; the draw that exceeds it is the last.
        seed: see ``generator``.

    Returns:
        Shape (made, d), made ≤ B.
    """
    stream, end = generator(seed), time.monotonic() + seconds
    places = np.arange(n) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    members = np.split(np.argsort(places, kind="stable"), np.cumsum(np.bincount(places))[:-1]) if n else []
    out: list[list[float]] = []
    while n and len(out) < draws and (not out or time.monotonic() < end):
        picked = np.concatenate([members[c] for c in stream.integers(0, len(members), len(members))])
        out.append([math.nan if value is None else float(value) for value in statistic(picked)])
    return np.asarray(out, float)


@functools.cache
def normal_quantile(p: float) -> float:
    """The standard normal quantile, by bisection of ``erf``."""
    return _bisect(lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))), p)


@functools.cache
def t_quantile(p: float, df: int) -> float:
    """The quantile of Student's t with ``df`` degrees of freedom, by bisection of its integral (Simpson, 2,000 steps)."""
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)

    def below(x: float) -> float:
        grid = np.linspace(0.0, x, 2001)
        density = np.exp(log_scale - (df + 1) / 2 * np.log1p(grid**2 / df))
        weights = np.ones(2001)
        weights[1:-1:2], weights[2:-1:2] = 4, 2
        return float(0.5 + (weights * density).sum() * (grid[1] - grid[0]) / 3)

    return _bisect(below, p)


def _bisect(increasing: Callable[[float], float], target: float) -> float:
    low, high = -100.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) < target else (low, middle)
    return (low + high) / 2
