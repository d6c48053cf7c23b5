"""A linear model on n-grams of words and characters, with scores for its own training items too. NumPy and SciPy.

Trees ask for one word at a time, so a shortcut that is spread over many weak words (SugarCrepe's captions, AMBER's
questions) escapes them. A linear model adds such words up. Its scores are a feature of the trees and a member of their
ensemble; alone it judges what the trees have pruned.

- Options: a conditional logit. The options of an item compete, and exactly one share of right is divided among them.
- Numbers: ridge regression of the standardised gold.

Every training item is scored by a model that was fitted without its inner fold, so that trees on top do not learn to
trust a memory.

Source: conditional logit: McFadden, in Frontiers in Econometrics, 1974, 105-142; stacking: Wolpert, Neural Networks
5(2), 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.tst.items import Places

Array = NDArray[np.float64]

FOLDS = 3
"""Inner folds of the scores: the inner folds of the features, joined."""
MOST_ROWS = 500_000
"""Of a task with more rows there is no linear model: its table of n-grams would need several GiB."""
_PENALTY, _STEPS, _RIDGE = 1.0, 15, 3.0


@dataclass(frozen=True)
class Block:
    """Terms of some rows of a table; a text shared by many rows is stored once.

    Attributes:
        terms: shape (texts, terms), sparse or dense, float64.
        row: the rows that have terms, ascending, shape (m,).
        text: the text of each of these.
        kind: the kind of each of these, from 0: every kind has weights of its own.
        kinds: how many kinds there are.
    """

    terms: Any
    row: Places
    text: Places
    kind: Places
    kinds: int = 1

    @property
    def width(self) -> int:
        """The number of weights."""
        return int(self.terms.shape[1]) * self.kinds

    @cached_property
    def _turned(self) -> Any:
        return self.terms.T

    def times(self, weights: Array) -> Array:
        """Return the sum of weights (shape (width,)) times terms for each row with terms."""
        return np.asarray(self.terms @ weights.reshape(-1, self.kinds))[self.text, self.kind]

    def turned_times(self, values: Array) -> Array:
        """Return for each weight the sum of its terms times the values of rows with terms, shape (width,)."""
        cells = np.bincount(self.text * self.kinds + self.kind, values, self.terms.shape[0] * self.kinds)
        return np.asarray(self._turned @ cells.reshape(-1, self.kinds)).ravel()

    def of(self, rows: Places) -> Block:
        """Return the block of some rows, ascending, with their texts in the order in which they show them."""
        at = np.searchsorted(rows, self.row)
        # a row behind all of these would point behind the end
        kept = np.flatnonzero(rows[np.minimum(at, len(rows) - 1)] == self.row) if len(rows) else rows
        texts, first, place = np.unique(self.text[kept], return_index=True, return_inverse=True)
        order = np.argsort(first)
        return Block(self.terms[texts[order]], at[kept], np.argsort(order)[place], self.kind[kept], self.kinds)

    def used(self, rows: Places) -> Block:
        """Return the block without terms absent from the given rows, whose weights would be 0 and cost time."""
        terms = self.of(rows).terms
        columns = np.flatnonzero(np.asarray(abs(terms).sum(axis=0)).ravel())
        return Block(self.terms[:, columns], self.row, self.text, self.kind, self.kinds)


@dataclass(frozen=True)
class Terms:
    """What the linear model reads of the rows of a table: blocks side by side.

    Attributes:
        rows: how many rows there are.
        blocks: what they have.
    """

    rows: int
    blocks: Sequence[Block]

    @property
    def width(self) -> int:
        """The number of weights."""
        return sum(block.width for block in self.blocks)

    def __getitem__(self, rows: Places) -> Terms:
        return Terms(len(rows), [block.of(rows) for block in self.blocks])

    def __matmul__(self, weights: Array) -> Array:
        out, start = np.zeros(self.rows), 0
        for block in self.blocks:
            out[block.row] += block.times(weights[start : start + block.width])
            start += block.width
        return out

    def turned_times(self, values: Array) -> Array:
        """Return the sums over the rows of each term times ``values``, shape (width,)."""
        return np.concatenate([block.turned_times(values[block.row]) for block in self.blocks] or [np.zeros(0)])

    def used(self, rows: Places) -> Terms:
        """Return the terms present in some of the given rows."""
        return Terms(self.rows, [block.used(rows) for block in self.blocks])


def option_scores(terms: Terms, owner: Places, target: Array, inner: Places) -> Array:
    """Return how strongly a linear model holds each option for right: the log of its probability within its item, up to a constant of the item.

    Args:
        terms: of the rows.
        owner: the item of each row, shape (rows,), ascending.
        target: shape (rows,), 1 where the option is right.
        inner: the inner fold of each row; -1: held out, its target is never read.

    Returns:
        Shape (rows,).
    """

    def fit(known: Any, rows: Places) -> Array:
        return _conditional_logit(known, owner[rows], target[rows])

    used = terms.used(np.flatnonzero(inner >= 0))
    return _out_of_fold(used, inner, fit) if used.width else np.zeros(len(inner))


def number_scores(terms: Any, target: Array, inner: Places) -> Array:
    """Return each item's standardised number as expected by a ridge regression, shape (n,).

    Args:
        terms: sparse, shape (n, terms), float64.
        target: shape (n,), standardised golds; read for training items only.
        inner: the inner fold of each item; -1: held out.
    """
    from sklearn.linear_model import Ridge

    def fit(known: Any, rows: Places) -> Array:
        return np.asarray(
            Ridge(_RIDGE, fit_intercept=False, solver="sparse_cg", tol=1e-3, max_iter=30).fit(known, target[rows]).coef_
        )

    used = _used(terms, np.flatnonzero(inner >= 0))
    return _out_of_fold(used, inner, fit) if used.shape[1] else np.zeros(len(inner))


def _out_of_fold(terms: Any, inner: Places, fit: Callable[[Any, Places], Array]) -> Array:
    """Return the scores of all rows: of a training row by the fit without its inner fold, of a held-out row by the fit to all training rows.

    Args:
        terms: of the rows; some rows are ``terms[rows]``.
        inner: see ``option_scores``.
        fit: a function (terms of some rows, these rows) -> weights.
    """
    fold = np.where(inner < 0, -1, inner % FOLDS)
    out = np.zeros(len(fold))
    for number in np.unique(fold):
        rows, asked = np.flatnonzero((fold >= 0) & (fold != number)), np.flatnonzero(fold == number)
        if len(rows):
            out[asked] = terms[asked] @ fit(terms[rows], rows)
    return out


def _used(terms: Any, train: Places) -> Any:
    """Return the columns present in training rows, in order; further columns would get weight 0, and cost time."""
    from scipy.sparse import csr_matrix

    columns = np.flatnonzero(np.bincount(terms[train].indices, minlength=terms.shape[1]))
    number = np.full(terms.shape[1], -1)
    number[columns] = np.arange(len(columns))
    kept = number[terms.indices] >= 0
    ends = np.r_[0, np.cumsum(kept)][terms.indptr]
    return csr_matrix((terms.data[kept], number[terms.indices[kept]], ends), shape=(terms.shape[0], len(columns)))


def _conditional_logit(terms: Terms, owner: Places, target: Array) -> Array:
    """Return the weights, shape (terms,), after few steps: the likelihood of the last per cent is not worth their time."""
    from scipy.optimize import minimize

    starts, item = items_of(owner)
    share = target / np.maximum(np.add.reduceat(target, starts), 1)[item]
    # An item whose candidates lack the gold teaches nothing.
    known = np.add.reduceat(share, starts) > 0

    def loss(weights: Array) -> tuple[float, Array]:
        scores = terms @ weights
        top = np.maximum.reduceat(scores, starts)
        # less the highest of the item, or exp() could overflow
        odds = np.exp(scores - top[item])
        total = np.add.reduceat(odds, starts)
        fit = ((np.log(total) + top) * known).sum() - share @ scores
        return float(fit + _PENALTY / 2 * weights @ weights), terms.turned_times(
            odds / total[item] * known[item] - share
        ) + _PENALTY * weights

    found = minimize(loss, np.zeros(terms.width), jac=True, method="CG", options={"maxiter": _STEPS})
    return np.asarray(found.x)


def shares(scores: Array, owner: Places) -> Array:
    """Return the probability of each row among the rows of its item: the softmax of its scores, shape (rows,)."""
    if not len(scores):
        return scores
    starts, item = items_of(owner)
    odds = np.exp(scores - np.maximum.reduceat(scores, starts)[item])
    return odds / np.add.reduceat(odds, starts)[item]


def items_of(owner: Places) -> tuple[Places, Places]:
    """Return the first row of each item, and the item of each row, counted from 0."""
    first = np.r_[True, owner[1:] != owner[:-1]]
    return np.flatnonzero(first), np.cumsum(first) - 1
