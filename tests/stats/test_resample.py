import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lmms_patch.stats import resample
from lmms_patch.stats.resample import (
    bootstrap,
    bootstrap_by_calls,
    cluster_numbers,
    generator,
    normal_quantile,
    resampled_sums,
    summarise,
    t_quantile,
    totals,
    unit_weights,
)


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


# --- bootstrap by calls --------------------------------------------------------------------------------


def shares(values):
    """How often each value came, in 0..1."""
    found, counts = np.unique(np.round(np.asarray(values, float), 9), return_counts=True)
    return dict(zip(found.tolist(), (counts / counts.sum()).tolist(), strict=True))


def close_to(shares_found, exact, draws):
    """Whether observed shares are the exact ones, within 4 standard errors of a share."""
    assert set(shares_found) <= set(exact)
    for value, share in exact.items():
        assert shares_found.get(value, 0) == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / draws))


def test_calls_see_every_resample_as_often_as_it_should_come():
    """The median of three docs, against the enumeration of all 27 resamples; the mean over the same draws as second value."""
    scores = np.array([0.1, 0.5, 0.7])
    every = [scores[list(pick)] for pick in itertools.product(range(3), repeat=3)]
    drawn = bootstrap_by_calls(lambda docs: [np.median(scores[docs]), scores[docs].mean()], 3, draws=6000, seed=4)
    assert drawn.shape == (6000, 2)
    close_to(shares(drawn[:, 0]), shares([np.median(pick) for pick in every]), 6000)
    close_to(shares(drawn[:, 1]), shares([pick.mean() for pick in every]), 6000)


def test_calls_take_whole_clusters():
    """Clusters {0, 2} and {1}: the draws are both-both, both-one, one-both, one-one; by hand the means of scores 1, 0, 1 are
    1, 2/3, 2/3 and 0.
    """
    scores, seen = np.array([1.0, 0.0, 1.0]), []

    def mean_score(docs):
        seen.append(sorted(docs.tolist()))
        return [scores[docs].mean()]

    drawn = bootstrap_by_calls(mean_score, 3, ["x", "y", "x"], draws=4000, seed=2)
    close_to(shares(drawn[:, 0]), {1.0: 0.25, round(2 / 3, 9): 0.5, 0.0: 0.25}, 4000)
    assert {tuple(docs) for docs in seen} == {(0, 0, 2, 2), (0, 1, 2), (1, 1)}


@pytest.mark.parametrize("clustered", [False, True])
def test_by_calls_and_by_sums_are_one_bootstrap(clustered):
    stream = np.random.default_rng(11)
    clusters = np.arange(240) // 4 if clustered else None
    full = (stream.random(240) < np.repeat(stream.random(60), 4)).astype(float)
    best = np.maximum(full, stream.random(240) < 0.3)
    sums = bootstrap(np.column_stack([full, best]), rci, clusters, draws=4000, seed=1)
    calls = bootstrap_by_calls(lambda docs: [1 - best[docs].mean() / full[docs].mean()], 240, clusters, draws=4000, seed=2)[:, 0]
    assert calls.std(ddof=1) == pytest.approx(sums.se, rel=0.08)
    assert np.quantile(calls, [0.025, 0.975]).tolist() == pytest.approx([sums.low, sums.high], abs=0.2 * sums.se)


def test_values_that_are_not_defined_are_nan_never_zero():
    drawn = bootstrap_by_calls(lambda docs: [None, math.nan, 0.5], 4, draws=7)
    assert drawn.shape == (7, 3)
    assert np.isnan(drawn[:, :2]).all()
    assert (drawn[:, 2] == 0.5).all()


class Clock:
    """A clock that goes on by one second each time that something is computed."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def tick(self, docs):
        self.now += 1.0
        return [1.0]


@pytest.mark.parametrize(("seconds", "made"), [(0.0, 1), (0.5, 1), (1.0, 1), (2.5, 3), (7.0, 7), (1000.0, 20)])
def test_time_budget(monkeypatch, seconds, made):
    """A draw takes a second here. The one that exceeds the budget is the last, so 2.5 s are three; there is always one."""
    clock = Clock()
    monkeypatch.setattr(resample, "time", clock)
    assert len(bootstrap_by_calls(clock.tick, 5, draws=20, seconds=seconds)) == made


def test_calls_on_nothing_and_on_one_doc():
    assert bootstrap_by_calls(lambda docs: pytest.fail("no docs to call it with"), 0).size == 0
    assert bootstrap_by_calls(lambda docs: [float(docs[0]), float(len(docs))], 1, draws=3).tolist() == [[0, 1]] * 3
    assert bootstrap_by_calls(lambda docs: [1.0], 5, draws=0).size == 0


def test_seeds_decide():
    one, two, other = (bootstrap_by_calls(lambda docs: [docs.sum()], 30, draws=20, seed=seed) for seed in (1, 1, 2))
    assert one.tolist() == two.tolist() != other.tolist()


# --- weights of units ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("units", "draws", "block"), [(7, 10, None), (7, 10, 21), (7, 10, 1), (1, 3, None)])
def test_weights_are_whole_samples_in_blocks(monkeypatch, units, draws, block):
    """A bootstrap sample of U units takes U of them. Blocks of 21 numbers hold three rows of 7."""
    if block is not None:
        monkeypatch.setattr(resample, "_BLOCK", block)
    blocks = list(unit_weights(units, draws, 3))
    rows = np.concatenate(blocks)
    assert rows.shape == (draws, units)
    assert rows.dtype == np.float32
    assert (rows == np.round(rows)).all()
    assert (rows >= 0).all()
    assert (rows.sum(axis=1) == units).all()
    if block is not None:
        assert {len(b) for b in blocks} <= {max(1, block // units), draws % max(1, block // units)}
        assert np.concatenate(list(unit_weights(units, draws, 3, columns=5))).tolist() == rows.tolist()


def test_weights_are_multinomial():
    """Of a multinomial with U trials and U equal cells: mean 1, variance 1 - 1/U, covariance -1/U (Efron & Tibshirani 1993, ch. 20)."""
    rows = np.concatenate(list(unit_weights(5, 20_000, 9)))
    assert rows.mean(axis=0) == pytest.approx(np.ones(5), abs=0.03)
    assert np.cov(rows.T) == pytest.approx(np.eye(5) - 0.2, abs=0.04)
    close_to(shares(rows[:, 0]), shares([pick.count(0) for pick in itertools.product(range(5), repeat=5)]), 20_000)


def test_weights_and_sums_are_one_bootstrap():
    stream = np.random.default_rng(5)
    values = with_ones(stream.random(100))
    sums = np.concatenate(list(unit_weights(100, 4000, 1))) @ values
    ours = bootstrap(values, mean, draws=4000, seed=2)
    assert mean(sums).std(ddof=1) == pytest.approx(ours.se, rel=0.08)
    assert np.quantile(mean(sums), [0.025, 0.975]).tolist() == pytest.approx([ours.low, ours.high], abs=0.2 * ours.se)


# --- what is said of draws ------------------------------------------------------------------------------


def test_summary_by_hand():
    """1000 draws 0.000, 0.001, ..., 0.999 of 60 docs: the 2.5 % and 97.5 % points are 0.999 times that share."""
    found = summarise(0.5, np.arange(1000) / 1000, 60, 60)
    assert (found.value, found.n, found.clusters, found.draws, found.reason) == (0.5, 60, 60, 1000, "")
    assert (found.low, found.high) == pytest.approx((0.025 * 0.999, 0.975 * 0.999))
    assert found.se == pytest.approx(math.sqrt((1000**2 - 1) / 12 * 1000 / 999) / 1000)  # of the numbers 0..999, by n - 1
    assert summarise(0.5, np.arange(1000) / 1000, 60, 60, level=0.8).low == pytest.approx(0.1 * 0.999)


@pytest.mark.parametrize(
    ("made", "undefined", "asked", "interval", "says"),
    [
        (1000, 0, None, True, ""),
        (1000, 100, None, True, ""),  # 90 % are defined: just enough
        (1000, 101, None, False, "defined on only 899 of 1000 draws"),
        (1000, 1000, None, False, "defined on only 0 of 1000 draws"),
        (200, 0, 1000, True, "time for only 200 of 1000 draws"),
        (199, 0, 1000, False, "time for only 199 of 1000 draws"),
        (50, 0, 50, True, ""),  # so few were asked for
        (0, 0, 1000, False, "time for only 0 of 1000 draws"),
    ],
)
def test_few_or_undefined_draws(made, undefined, asked, interval, says):
    drawn = np.concatenate([np.linspace(0, 1, made - undefined), np.full(undefined, math.nan)])
    found = summarise(0.5, drawn, 100, 100, draws=asked)
    assert found.value == 0.5
    assert (found.low is not None, found.high is not None, found.se is not None) == (interval,) * 3
    assert found.reason == says
    assert found.draws == made - undefined


def test_value_without_a_meaning_has_no_interval():
    found = summarise(math.nan, np.linspace(0, 1, 1000), 100, 100)
    assert (found.value, found.low, found.se, found.reason) == (None, None, None, "not defined on these docs")


def test_few_units_and_little_time_are_both_said():
    """20 units: the half-widths grow by t(19, .975)/1.96 * sqrt(20/19) = 2.0930/1.9600 * 1.0260 = 1.0956 on both sides of the value."""
    found = summarise(0.5, np.linspace(0.4, 0.7, 300), 20, 20, draws=1000, what="docs")
    assert found.reason == "time for only 300 of 1000 draws; 20 docs are few: the interval is widened by 1.10"
    assert 0.5 - found.low == pytest.approx(1.0956 * (0.1 - 0.3 * 0.025), abs=1e-4)
    assert found.high - 0.5 == pytest.approx(1.0956 * (0.2 - 0.3 * 0.025), abs=1e-4)


@pytest.mark.parametrize(("groups", "interval", "widened"), [(9, False, False), (10, True, True), (49, True, True), (50, True, False)])
def test_edges_of_few(groups, interval, widened):
    found = summarise(0.5, np.linspace(0, 1, 1000), 100, groups)
    assert (found.low is not None) == interval
    assert ("widened" in found.reason) == widened


def test_labels_of_clusters_of_any_kind():
    """A number and its text are two labels; None among others is one too; no labels stay none."""
    assert cluster_numbers(None) is None
    numbers = cluster_numbers(["1", 1, "1", None, ("a", 2), 1])
    assert len(set(numbers.tolist())) == 4
    assert numbers[0] == numbers[2]
    assert numbers[1] == numbers[5]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), max_size=20))
def test_totals_against_a_dict(rows):
    by_hand = {}
    for label, value in rows:
        by_hand[label] = by_hand.get(label, 0) + value
    found = totals(np.array([[value] for _, value in rows], float).reshape(-1, 1), [label for label, _ in rows])
    assert found[:, 0].tolist() == [by_hand[label] for label in sorted(by_hand)]
