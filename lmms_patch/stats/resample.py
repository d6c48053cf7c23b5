"""Bootstrap draws of docs: all views of a doc together, all docs of a cluster together. NumPy only.

A mean or a ratio of sums needs only the totals of each cluster. Clusters with equal totals are interchangeable, so a
draw needs one weight for each *distinct* total: for accuracies a handful instead of the number of docs.
``stats.intervals`` makes intervals of the draws.

Sources: Rubin, The Bayesian Bootstrap (1981), for random weights; Efron & Tibshirani, An Introduction to the Bootstrap
(1993), for whole samples, where a number must be computed by calls.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike, NDArray

from lmms_patch.stats.bounds import LARGEST, Count, Level, Number

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
Seed = int | np.random.Generator

DRAWS = 1000
LEVEL = 0.95
_BLOCK = 4_000_000
"""How many numbers are drawn at a time; bounds the memory, whatever the number of docs."""


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty.

    Attributes:
        value: the estimate on the data as they are; None where it is not defined.
        se: standard deviation over the draws; None with the interval.
        low, high: interval at ``level`` (``stats.intervals``); None where it is not defined.
        n: number of docs.
        clusters: number of clusters (n where each doc is its own cluster).
        draws: number of draws on which the estimate is defined.
        level: the interval's nominal coverage, in 0..1.
        reason: why value or interval is None, or a warning that goes with it; empty otherwise.
        effective: effective number of clusters, which uneven sizes make smaller.
        words: what tables show beside the number, such as ``contradicted``; files lack them.
    """

    value: Number | None
    se: Number | None
    low: Number | None
    high: Number | None
    n: Count
    clusters: Count
    draws: Count
    level: Level = LEVEL
    reason: str = ""
    effective: Annotated[float, Meta(ge=0, le=LARGEST)] | None = None
    words: tuple[str, ...] = ()

    @classmethod
    def nothing(cls, docs: int, reason: str = "", level: float = LEVEL) -> Estimate:
        """Return a number of so many docs that is not defined."""
        return cls(None, None, None, None, docs, docs, 0, level, reason)

    def without(self, reason: str | None = None) -> Estimate:
        """Return the number without value and interval, with its own reason or another."""
        kept = self.reason if reason is None else reason
        return dataclasses.replace(self, value=None, se=None, low=None, high=None, draws=0, reason=kept)


def generator(seed: Seed) -> np.random.Generator:
    """Return a random generator for a seed; a generator is returned as it is. All randomness enters here."""
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)


def cluster_numbers(labels: Sequence[Hashable] | None) -> Ints | None:
    """Return cluster numbers from 0 for labels of any type, by their ``repr``; None stays None."""
    # labels of several types cannot be sorted, their texts can
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
    # "+=" would add one row of each cluster alone
    np.add.at(out, place, array)
    return out


def weighted_sums(cluster_totals: Array, draws: int, seed: Seed, shape: float = 1.0) -> Array:
    """Return the column sums of clusters under random weights, as the Bayesian bootstrap draws them (Rubin 1981).

    Weights are gamma variates of mean 1 and variance 1 / shape. The sum of m such variates is a gamma variate too, so
    all clusters with equal totals need only one draw.

    Args:
        cluster_totals: shape (G, d).
        draws: B.
        seed: see ``generator``.
        shape: 1 gives the spread of the bootstrap; a smaller shape gives a wider one.

    Returns:
        Shape (B, d). Only ratios of sums have a meaning: the weights of a draw do not add up to G.
    """
    stream = generator(seed)
    distinct = _distinct(cluster_totals)
    rows, shapes = (cluster_totals, shape) if distinct is None else (distinct[0], shape * distinct[1])
    out = np.empty((draws, cluster_totals.shape[1]))
    step = max(1, _BLOCK // max(1, len(rows)))
    for start in range(0, draws, step):
        stop = min(draws, start + step)
        out[start:stop] = stream.standard_gamma(shapes, (stop - start, len(rows))) @ rows / shape
    return out


def _distinct(array: Array) -> tuple[Array, Ints] | None:
    """Return the distinct rows and how often each occurs; None where more than half of all rows are distinct.

    Same result as ``np.unique(axis=0)`` but for the order, and ten times as fast: it goes column by column.
    """
    most = len(array) // 2
    code, kinds = np.zeros(len(array), np.intp), 1
    for column in array.T:
        values, place = np.unique(column, return_inverse=True)
        code, kinds = code * len(values) + place, kinds * len(values)
        # renumber the combinations that occur: with many columns, products of their numbers would overflow
        if kinds > 4 * len(array):
            used, code = np.unique(code, return_inverse=True)
            kinds = len(used)
        if len(values) > most or (kinds > most and len(np.unique(code)) > most):
            return None
    first = np.zeros(kinds, np.intp)
    first[code] = np.arange(len(array))
    counts = np.bincount(code, minlength=kinds)
    return array[first[counts > 0]], counts[counts > 0]


def bootstrap_by_calls(
    statistic: Callable[[Ints], Sequence[float | None]],
    n: int,
    clusters: ArrayLike | None = None,
    *,
    draws: int = DRAWS,
    seconds: float = 60.0,
    seed: Seed = 0,
) -> Array:
    """Bootstrap a statistic that only its own code can compute, for as long as the time allows.

    Args:
        statistic: a function from the places of the docs of a sample (some more than once) to d values; None or nan
        where not defined.
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
