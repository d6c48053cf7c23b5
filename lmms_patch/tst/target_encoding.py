"""Target encoding: statistics of training golds by key, out-of-fold inside the training folds too. NumPy only.

A key is a hash of something that an item says: a slot value, a pair of values, an option. The golds of the training
items with that key are a strong feature, and a leak if an item's own gold is part of it. So the training items are
divided into inner folds, and each sees the statistics of the other folds; a held-out item sees those of all training
items.

Source: TsT paper (https://arxiv.org/abs/2511.04655), B.3 (frequencies, means and spreads by object); out-of-fold target
encoding: Micci-Barreca, SIGKDD Explorations 3(1), 2001, 2, with the inner folds that every stacked model needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmms_patch.stats.resample import generator
from lmms_patch.tst.items import Places
from lmms_patch.tst.templates import Hashes

Array = NDArray[np.float64]

INNER_FOLDS = 5
PRIOR = 3.0
"""The weight of the overall mean, in items: it shrinks the statistics of keys that few items have."""


@dataclass(frozen=True)
class Family:
    """Keys of a kind: entry e says that row ``row[e]`` has the key ``key[e]``; rows ascend.

    Attributes:
        name: what the keys are, for importances.
        row: shape (E,).
        key: shape (E,).
        single: whether each row has exactly one key.
    """

    name: str
    row: Places
    key: Hashes
    single: bool = False

    @cached_property
    def coded(self) -> tuple[int, Places]:
        """The number of different keys, and each entry's key as a number from 0."""
        kinds, code = np.unique(self.key, return_inverse=True)
        return len(kinds), code


def inner_folds(train: Places, groups: Places, count: int, seed: int) -> Places:
    """Return the inner fold of each item, shape (n,); -1 for items outside ``train``. Groups stay whole."""
    out = np.full(count, -1)
    _, own = np.unique(groups[train], return_inverse=True)
    order = generator(seed).permutation(int(own.max()) + 1 if len(own) else 0)
    out[train] = order[own] % INNER_FOLDS
    return out


@dataclass(frozen=True)
class _Sums:
    """Number, sum and sum of squares of targets with an entry's key, over the rows visible to the entry.

    Shape (E,) each.
    """

    n: Array
    total: Array
    squares: Array


def _others(family: Family, inner: Places) -> Callable[[Array], Array]:
    """Return a function for summing weights by key over the rows visible to each entry: shape (E,) -> shape (E,)."""
    seen = inner[family.row] >= 0
    kinds, code = family.coded
    # rows outside the training folds, -1, get any cell: they are never summed
    cell = code * INNER_FOLDS + np.maximum(inner[family.row], 0)

    def others(weights: Array) -> Array:
        by_cell = np.bincount(cell[seen], weights[seen], kinds * INNER_FOLDS).reshape(-1, INNER_FOLDS)
        # summed anew for each fold: the total less the own part would still carry the own part's rounding error, which
        # is a leak
        without = np.column_stack([np.delete(by_cell, fold, axis=1).sum(axis=1) for fold in range(INNER_FOLDS)])
        return np.where(seen, without.ravel()[cell], by_cell.sum(axis=1)[code])

    return others


def _sums(family: Family, target: Array, inner: Places, squares: bool) -> _Sums:
    others, own = _others(family, inner), target[family.row]
    ones = np.ones(len(own))
    return _Sums(others(ones), others(own), others(own * own) if squares else ones)


def _highest(values: Array, row: Places, rows: int) -> Array:
    out = np.zeros(rows)
    if len(row):
        first = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
        out[row[first]] = np.maximum.reduceat(values, first)
    return out


def rates(family: Family, residual: Array, inner: Places) -> dict[str, Array]:
    """Return how much more often than by chance the rows with the same keys are right.

    Args:
        family: keys of the rows.
        residual: shape (rows,), 1 or 0 for right or wrong, less what a guess earns.
        inner: the inner fold of each row; -1: held out, its residual is never read.

    Returns:
        By name, shape (rows,): ``rate`` over all keys of the row together; for rows with several keys also their
        ``mean`` and ``max``; and ``count``, the log of 1 + the number of rows seen.
    """
    rows = len(inner)
    sums = _sums(family, residual, inner, squares=False)
    count = np.bincount(family.row, sums.n, rows)
    out = {"rate": np.bincount(family.row, sums.total, rows) / (count + PRIOR), "count": np.log1p(count)}
    # With a single key per row, mean and maximum would repeat the rate.
    if not family.single:
        shrunk = sums.total / (sums.n + PRIOR)
        out["mean"] = np.bincount(family.row, shrunk, rows) / np.maximum(np.bincount(family.row, minlength=rows), 1)
        out["max"] = _highest(shrunk, family.row, rows)
    return out


def agreement(family: Family, value: Array, right: Array, inner: Places) -> dict[str, Array]:
    """Return the agreement of a row's values for its keys with the values in right rows.

    Args:
        family: keys of the rows.
        value: shape (E,), value of each entry, centred within its row: where the row puts this key.
        right: shape (rows,), 1 or 0; values of held-out rows are never read.
        inner: as in ``rates``.

    Returns:
        By name, shape (rows,): ``agreement``, the sum over the keys of value x mean value of the key among right rows
        (shrunk towards 0), and ``count``, the log of 1 + the number of right rows' entries seen.
    """
    others, own = _others(family, inner), right[family.row]
    n = others(own)
    usual = others(own * value) / (n + PRIOR)
    rows = len(inner)
    return {
        "agreement": np.bincount(family.row, value * usual, rows),
        "count": np.log1p(np.bincount(family.row, n, rows)),
    }


def moments(family: Family, target: Array, inner: Places) -> dict[str, Array]:
    """Return mean and spread of the targets of the rows with the same keys.

    Args:
        family: keys of the rows.
        target: shape (rows,), standardised: mean 0 and SD 1 over the training rows of a category.
        inner: as in ``rates``.

    Returns:
        By name, shape (rows,): ``mean`` (shrunk towards 0), ``spread`` (SD, shrunk towards 1), ``count`` (log of 1 +
        rows seen); for rows with several keys these are means over the keys, with ``max`` and ``min`` of the keys'
        means.
    """
    rows = len(inner)
    sums = _sums(family, target, inner, squares=True)
    keys = np.maximum(np.bincount(family.row, minlength=rows), 1)
    mean = sums.total / (sums.n + PRIOR)
    known = np.maximum(sums.n, 1)
    # float error may make a difference of squares negative
    variance = np.maximum(0, sums.squares / known - (sums.total / known) ** 2)
    # The spread is shrunk towards 1, the SD of standardised golds.
    spread = np.sqrt((variance * sums.n + PRIOR) / (sums.n + PRIOR))
    out = {
        "mean": np.bincount(family.row, mean, rows) / keys,
        "spread": np.bincount(family.row, spread, rows) / keys,
        "count": np.log1p(np.bincount(family.row, sums.n, rows)),
    }
    if not family.single:
        out["max"] = _highest(mean, family.row, rows)
        out["min"] = -_highest(-mean, family.row, rows)
    return out
