import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lmms_patch.stats.resample import bootstrap, generator, normal_quantile, resampled_sums, t_quantile, totals


def mean(sums):
    return sums[..., 0] / sums[..., 1]


def rci(sums):
    return 1 - sums[..., 1] / sums[..., 0]


def with_ones(scores):
    return np.column_stack([scores, np.ones(len(scores))])


def test_totals_by_hand():
    assert totals([[1, 2], [3, 4], [5, 6]], ["b", "a", "b"]).tolist() == [[3, 4], [6, 8]]
    assert totals([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("values", [[[0.0], [1.0], [1.0], [1.0]], [[0.1], [0.7], [0.4], [0.9]]])  # few and all distinct totals: both branches
def test_draws_have_the_distribution_of_all_resamples(values):
    """Against the enumeration of all 4^4 equally likely resamples of 4 docs."""
    array = np.asarray(values)
    exact = np.array([array[list(pick)].sum() for pick in itertools.product(range(4), repeat=4)])
    drawn = resampled_sums(array, 40_000, 1)[:, 0]
    for x in np.unique(np.round(exact, 9)):
        share = np.mean(exact <= x + 1e-9)
        error = 4 * math.sqrt(max(share * (1 - share), 1e-4) / len(drawn))
        assert np.mean(drawn <= x + 1e-9) == pytest.approx(share, abs=error)


def test_against_scipy_on_an_unclustered_mean():
    scores = np.random.default_rng(3).random(400)
    ours = bootstrap(with_ones(scores), mean, draws=9999, seed=5)
    theirs = stats.bootstrap((scores,), np.mean, n_resamples=9999, method="percentile", rng=np.random.default_rng(5))
    assert ours.value == pytest.approx(scores.mean())
    assert ours.se == pytest.approx(theirs.standard_error, rel=0.05)
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.1 * ours.se)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.1 * ours.se)


def test_against_the_plain_loop_with_clusters():
    stream = np.random.default_rng(0)
    clusters = np.repeat(np.arange(80), 5)
    scores = (stream.random(400) < np.repeat(stream.random(80), 5)).astype(float)
    loop = []
    for _ in range(4000):
        picked = np.concatenate([np.flatnonzero(clusters == c) for c in stream.integers(0, 80, 80)])
        loop.append(scores[picked].mean())
    ours = bootstrap(with_ones(scores), mean, clusters, draws=4000)
    assert ours.se == pytest.approx(np.std(loop), rel=0.08)
    assert (ours.low, ours.high) == pytest.approx(tuple(np.quantile(loop, [0.025, 0.975])), abs=0.2 * ours.se)
    assert ours.se > 1.3 * bootstrap(with_ones(scores), mean, draws=4000).se  # ignoring the clusters would be too sure


def test_interval_of_rci_covers():
    """300 docs, full 0.6, best 0.75, correlated: the 95 % interval holds the truth 1 − 0.75/0.6 in 95 % of 400 runs (± 4 SE)."""
    stream, hits = np.random.default_rng(7), 0
    for run in range(400):
        u = stream.random(300)
        full, best = (u < 0.6).astype(float), (u + stream.normal(0, 0.1, 300) < 0.75).astype(float)
        truth = 1 - stats.norm.cdf((0.75 - np.linspace(0, 1, 20001)) / 0.1).mean() / 0.6
        found = bootstrap(np.column_stack([full, best]), rci, seed=run)
        hits += found.low <= truth <= found.high
    assert abs(hits / 400 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 400)


@pytest.mark.parametrize(
    ("values", "clusters", "value", "says"),
    [
        (np.empty((0, 2)), None, None, "no docs"),
        (with_ones([1.0]), None, 1.0, "1 docs are too few"),
        (with_ones([1.0] * 40), [0] * 40, 1.0, "1 clusters are too few"),
        (with_ones([1.0] * 40), np.arange(40) // 8, 1.0, "5 clusters are too few"),
        (np.zeros((50, 2)), None, None, "not defined"),
    ],
)
def test_degenerate_input_is_said_never_zero_by_accident(values, clusters, value, says):
    found = bootstrap(values, mean, clusters)
    assert found.value == value
    assert found.low is found.high is found.se is None
    assert says in found.reason


def test_all_equal_scores_have_a_point_as_interval():
    found = bootstrap(with_ones([1.0] * 100), mean)
    assert (found.value, found.se, found.low, found.high) == (1.0, 0.0, 1.0, 1.0)


def test_a_statistic_that_is_rarely_defined_has_no_interval():
    """FIP rests on one doc of 60: some 36 % of the draws miss it, and the ratio is not defined there."""
    values = np.column_stack([np.eye(60)[0], np.ones(60)])
    found = bootstrap(values, rci)
    assert found.value == -59.0
    assert found.low is None
    assert "of 1000 draws" in found.reason


def test_few_clusters_widen_the_interval_by_the_formula():
    stream = np.random.default_rng(1)
    scores, clusters = stream.random(200), np.arange(200) // 10  # 20 clusters
    found = bootstrap(with_ones(scores), mean, clusters)
    plain = np.quantile(mean(resampled_sums(totals(with_ones(scores), clusters), 1000, 0)), [0.025, 0.975])
    factor = stats.t.ppf(0.975, 19) / 1.959964 * math.sqrt(20 / 19)
    assert found.high - found.value == pytest.approx(factor * (plain[1] - found.value), rel=1e-5)
    assert f"widened by {factor:.2f}" in found.reason


@given(st.lists(st.floats(0, 1), min_size=12, max_size=40), st.randoms())
@settings(max_examples=30, deadline=None)
def test_the_order_of_docs_changes_nothing(scores, shuffler):
    mixed = list(scores)
    shuffler.shuffle(mixed)
    labels = [f"c{s}" for s in scores], [f"c{s}" for s in mixed]
    one, two = (bootstrap(with_ones(np.round(s, 1)), mean, None, seed=3) for s in (scores, mixed))
    assert one.value == pytest.approx(two.value)
    if len(set(np.round(scores, 1))) <= len(scores) // 2:
        assert (one.low, one.high) == pytest.approx((two.low, two.high))
    assert len(totals(with_ones(scores), labels[0])) == len(totals(with_ones(mixed), labels[1]))


def test_quantiles_against_scipy():
    for df in (1, 9, 30, 48):
        assert t_quantile(0.975, df) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-9)
    assert normal_quantile(0.975) == pytest.approx(stats.norm.ppf(0.975), rel=1e-9)


def test_one_door():
    stream = np.random.default_rng(1)
    assert generator(stream) is stream
    assert generator(1).random() == np.random.default_rng(1).random()
