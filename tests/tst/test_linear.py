"""The linear model against the same model fitted by a general optimiser, and what an item may see of its own gold."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax
from sklearn.linear_model import Ridge

from lmms_patch.tst import linear
from lmms_patch.tst.linear import Block, Terms, items_of, number_scores, shares


def option_scores(terms, *rest):
    """Scores of rows that each have a text of their own."""
    every = np.arange(terms.shape[0])
    return linear.option_scores(Terms(len(every), [Block(terms, every, every, 0 * every)]), *rest)


def problem(items=60, terms=12, seed=0):
    """Items of two to four options, each with some terms; the last 15 are held out."""
    stream = np.random.default_rng(seed)
    owner = np.repeat(np.arange(items), stream.integers(2, 5, items))
    x = stream.random((len(owner), terms)) * (stream.random((len(owner), terms)) < 0.4)
    truth = 3 * stream.standard_normal(terms)
    starts, item = items_of(owner)
    target = np.zeros(len(owner))
    for own in np.split(np.arange(len(owner)), starts[1:]):
        target[own[np.argmax(x[own] @ truth + stream.gumbel(size=len(own)))]] = 1
    inner = np.where(item < items - 15, item % 5, -1)
    return csr_matrix(x), owner, target, inner


def test_held_out_scores_are_those_of_a_conditional_logit(monkeypatch):
    """Truth: the penalised likelihood, item by item, by Nelder-Mead's better: BFGS with numeric gradients.

    Compared as probabilities.
    """
    monkeypatch.setattr(linear, "_STEPS", 500)
    terms, owner, target, inner = problem(terms=5)
    x, seen = terms.toarray(), inner >= 0

    def loss(weights):
        return weights @ weights / 2 - sum(
            log_softmax(x[owner == i] @ weights)[target[owner == i] == 1].sum() for i in np.unique(owner[seen])
        )

    weights = minimize(loss, np.zeros(5), method="BFGS").x
    found = shares(option_scores(terms, owner, target, inner), owner)
    expected = shares(x @ weights, owner)
    np.testing.assert_allclose(found[~seen], expected[~seen], atol=2e-3)
    assert np.abs(found[seen] - expected[seen]).max() > 0.01  # a training item is scored by a fit that has not seen it


def test_numbers_are_those_of_ridge_regression():
    terms, _, _, _ = problem(terms=6)
    stream = np.random.default_rng(1)
    target = terms.toarray() @ stream.standard_normal(6) + 0.1 * stream.standard_normal(terms.shape[0])
    inner = np.where(np.arange(len(target)) % 6 == 5, -1, np.arange(len(target)) % 6)
    found = number_scores(terms, np.where(inner < 0, np.nan, target), inner)
    x, fold = terms.toarray(), np.where(inner < 0, -1, inner % linear.FOLDS)
    for number in (-1, 0, 1, 2):
        known = (fold >= 0) & (fold != number)
        expected = Ridge(linear._RIDGE, fit_intercept=False).fit(x[known], target[known]).predict(x[fold == number])
        np.testing.assert_allclose(found[fold == number], expected, atol=5e-3)


def test_no_item_sees_a_gold_of_its_inner_fold():
    terms, owner, target, inner = problem()
    before = option_scores(terms, owner, target, inner)
    for fold in (0, 3, -1):
        other = target.copy()
        other[inner == fold] = stream_of(fold).permutation(other[inner == fold])
        after = option_scores(terms, owner, other, inner)
        np.testing.assert_array_equal(before[inner == fold], after[inner == fold])
        if fold >= 0:
            assert not np.array_equal(before, after)
    np.testing.assert_array_equal(before, option_scores(terms, owner, np.where(inner < 0, np.nan, target), inner))


def stream_of(fold):
    return np.random.default_rng(fold + 1)


def test_terms_of_held_out_rows_alone_change_nothing():
    terms, owner, target, inner = problem()
    more = terms.toarray()
    more = np.column_stack([np.where(inner < 0, 5.0, 0.0), more])
    np.testing.assert_array_equal(
        option_scores(terms, owner, target, inner), option_scores(csr_matrix(more), owner, target, inner)
    )


@pytest.mark.parametrize("seed", range(5))
def test_blocks_are_a_table_of_terms(seed):
    """Truth: the table written out, a column for each kind and term."""
    stream, rows = np.random.default_rng(seed), 40
    blocks, columns = [], []
    for kinds, made in ((1, csr_matrix), (3, csr_matrix), (4, np.asarray)):
        own = np.flatnonzero(stream.random(rows) < 0.7)
        texts = np.asarray(stream.random((6, 5)) * (stream.random((6, 5)) < 0.3))
        text, kind = stream.integers(6, size=len(own)), stream.integers(kinds, size=len(own))
        table = np.zeros((rows, 5, kinds))
        table[own, :, kind] = texts[text]
        blocks.append(Block(made(texts), own, text, kind, kinds))
        columns.append(table.reshape(rows, -1))
    terms, table = Terms(rows, blocks), np.hstack(columns)
    some, weights, values = (
        np.flatnonzero(stream.random(rows) < 0.5),
        stream.random(table.shape[1]),
        stream.random(rows),
    )
    np.testing.assert_allclose(terms @ weights, table @ weights)
    np.testing.assert_allclose(terms.turned_times(values), table.T @ values)
    np.testing.assert_allclose(terms[some] @ weights, table[some] @ weights)
    np.testing.assert_allclose(terms[some].turned_times(values[some]), table[some].T @ values[some])
    kept = terms.used(some)
    assert (table[some].any(axis=0)).sum() <= kept.width <= terms.width
    assert np.sort(kept[some].turned_times(values[some])).sum() == pytest.approx((table[some].T @ values[some]).sum())
    assert (terms[some[:0]] @ weights).shape == (0,)
