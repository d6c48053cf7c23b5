"""Correlations and ranks, against numpy, scipy, hand values, and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lmms_patch.stats.correlation import pearson, ranks, spearman


@pytest.mark.parametrize("seed", range(5))
def test_pearson_is_numpys_and_scipys_with_its_interval(seed):
    stream = np.random.default_rng(seed)
    x = stream.normal(size=13)
    y = x + stream.normal(size=13)
    found = pearson(x, y)
    theirs = stats.pearsonr(x, y)
    ends = theirs.confidence_interval(0.95)
    assert found.value == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-12)
    assert (found.value, found.low, found.high) == pytest.approx((theirs.statistic, ends.low, ends.high), abs=1e-9)
    assert found.n == 13


def test_fishers_interval_by_hand():
    # x and y deviate from their means by (-3,-1,1,3) and (-1,-3,3,1): r = (3+3+3+3)/20 = 0.6, n = 4, so z = atanh 0.6 =
    # ln 2 = 0.693147, its standard error is 1/sqrt(1) = 1, and the ends are tanh(0.693147 -+ 1.959964) =
    # tanh(-1.266817), tanh(2.653111).
    found = pearson([0, 2, 4, 6], [2, 0, 6, 4])
    assert found.value == pytest.approx(0.6)
    assert found.low == pytest.approx((math.exp(-2.533634) - 1) / (math.exp(-2.533634) + 1), abs=1e-6)
    assert found.high == pytest.approx((math.exp(5.306222) - 1) / (math.exp(5.306222) + 1), abs=1e-6)


def test_the_interval_covers_at_its_level():
    stream, rho, runs, hits = np.random.default_rng(3), 0.8, 1500, 0
    for _ in range(runs):
        x = stream.normal(size=10)
        y = rho * x + math.sqrt(1 - rho**2) * stream.normal(size=10)
        found = pearson(x, y)
        hits += found.low <= rho <= found.high
    assert 0.93 <= hits / runs <= 0.97


def test_what_has_no_correlation_says_why():
    few = pearson([1, 2, 3], [1, 2, 4])
    flat = pearson([0.1] * 6, range(6))
    assert (few.value, few.n) == (None, 3)
    assert "needs 4" in few.reason
    assert flat.value is None
    assert "does not vary" in flat.reason
    assert spearman([1, 2, 3], [1, 2, 4]) is None
    assert spearman([0.1] * 6, range(6)) is None


def test_columns_on_a_line_have_no_interval():
    found = pearson([1, 2, 3, 4], [-2, -4, -6, -8])
    assert (found.value, found.low, found.high) == (-1.0, None, None)
    assert "line" in found.reason


def test_very_small_numbers_do_not_vanish():
    x = np.array([1.0, 2.0, 3.0, 5.0])
    assert pearson(x * 1e-200, x**2).value == pytest.approx(np.corrcoef(x, x**2)[0, 1])


@pytest.mark.parametrize(("x", "y"), [([1, 2], [1, 2, 3]), ([1, 2, 3, math.nan], [1, 2, 3, 4]), ([[1, 2]], [[1, 2]])])
def test_what_is_not_two_columns_is_refused(x, y):
    with pytest.raises(ValueError, match=r"columns|finite"):
        pearson(x, y)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=4, max_size=15))
def test_spearman_is_scipys_with_ties(pairs):
    x, y = np.array(pairs, float).T
    found = spearman(x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert found is None
    else:
        assert found == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=12))
def test_ranks_by_brute_force(values):
    assert ranks(values).tolist() == stats.rankdata(values).tolist()
