import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lmms_patch.stats import resample
from lmms_patch.stats.intervals import estimate
from lmms_patch.stats.resample import (
    bootstrap_by_calls,
    cluster_numbers,
    totals,
    weighted_sums,
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


@pytest.mark.parametrize("shape", [1.0, 0.6])
@pytest.mark.parametrize(
    "values", [[0.0, 1.0, 1.0, 1.0, 0.0, 1.0], [0.1, 0.7, 0.4, 0.9, 0.2, 0.5]]
)  # few and all distinct totals: both branches
def test_weighted_means_have_the_moments_of_the_dirichlet(values, shape):
    """Weights w ~ Dirichlet(a, ..., a): the mean of Σ w x is x̄, its variance Σ (x − x̄)² / (G (G a + 1)) (moments of the Dirichlet distribution)."""
    array = np.asarray(values)
    drawn = mean(weighted_sums(with_ones(array), 40_000, 1, shape))
    size = len(array)
    variance = ((array - array.mean()) ** 2).sum() / (size * (size * shape + 1))
    assert drawn.mean() == pytest.approx(array.mean(), abs=4 * math.sqrt(variance / 40_000))
    assert drawn.var() == pytest.approx(variance, rel=0.05)


def test_a_weighted_share_is_a_beta_variable():
    """3 right of 8 under gamma weights: Γ(3) / (Γ(3) + Γ(5)) is Beta(3, 5), and 2 of 3 clusters of equal totals Beta(2, 1)."""
    drawn = mean(weighted_sums(with_ones([1.0] * 3 + [0.0] * 5), 20_000, 2))
    assert stats.kstest(drawn, stats.beta(3, 5).cdf).pvalue > 0.001
    drawn = mean(weighted_sums(totals(with_ones([1, 1, 1, 1, 0, 0]), [0, 0, 1, 1, 2, 2]), 20_000, 3))
    assert stats.kstest(drawn, stats.beta(2, 1).cdf).pvalue > 0.001


def test_blocks_bound_the_memory_and_change_nothing(monkeypatch):
    values = with_ones(np.random.default_rng(3).random(30))
    whole = weighted_sums(values, 50, 4)
    monkeypatch.setattr(resample, "_BLOCK", 200)
    assert weighted_sums(values, 50, 4) == pytest.approx(whole)


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
    """The median of three docs, against the enumeration of all 27 resamples.

    The mean over the same draws as second value.
    """
    scores = np.array([0.1, 0.5, 0.7])
    every = [scores[list(pick)] for pick in itertools.product(range(3), repeat=3)]
    drawn = bootstrap_by_calls(lambda docs: [np.median(scores[docs]), scores[docs].mean()], 3, draws=6000, seed=4)
    assert drawn.shape == (6000, 2)
    close_to(shares(drawn[:, 0]), shares([np.median(pick) for pick in every]), 6000)
    close_to(shares(drawn[:, 1]), shares([pick.mean() for pick in every]), 6000)


def test_calls_take_whole_clusters():
    """Clusters {0, 2} and {1}: the draws are both-both, both-one, one-both, one-one.

    By hand the means of scores 1, 0, 1 are.
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
    sums = estimate(np.column_stack([full, best]), rci, clusters, draws=4000, seed=1)
    calls = bootstrap_by_calls(
        lambda docs: [1 - best[docs].mean() / full[docs].mean()], 240, clusters, draws=4000, seed=2
    )[:, 0]
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
    """A draw takes a second here.

    The one that exceeds the budget is the last, so 2.5 s are three; there is always one.
    """
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
