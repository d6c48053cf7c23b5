"""Paired differences against loops over docs, exact tables, scipy, and simulations whose truth is known."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lmms_patch.stats.forms import MEAN, RATIO
from lmms_patch.stats.intervals import few_clusters, half_width, tails
from lmms_patch.stats.paired import Number, detectable, differences, least_p, mcnemar, p_value, unpaired
from lmms_patch.stats.resample import Estimate
from tests.sizes import examples, size


def scored(*sides):
    """A set of answers: of each run the scores, and a one."""
    return tuple(np.column_stack([side, np.ones(len(side))]) for side in sides)


def compared(first, second, clusters=None, **options):
    return differences(MEAN, {"full": scored(first, second)}, {"score": Number(("full",))}, clusters, **options)[
        "score"
    ]


def estimate(value, se, n=200, clusters=200):
    """A normal interval: value ± 1.96 standard errors, of Student's t under 50 clusters."""
    half = None if se is None else se * half_width(clusters)
    return Estimate(value, se, *((None, None) if se is None else (value - half, value + half)), n, clusters, 1000)


def correlated(stream, n, per_cluster=1, shift=0.0):
    """Scores 0/1 of two runs on the same docs: docs and clusters have a difficulty that both feel.

    True difference: ``shift``.
    """
    hard = np.repeat(stream.normal(size=n // per_cluster), per_cluster) + stream.normal(size=n)
    base = 1 / (1 + np.exp(-1.5 * hard))
    return (stream.random(n) < 0.8 * base).astype(float), (stream.random(n) < 0.8 * base + shift).astype(float)


# --- the bootstrap --------------------------------------------------------------------------------


@pytest.mark.parametrize("per_cluster", [1, 4])
def test_against_a_loop_over_docs(per_cluster):
    stream = np.random.default_rng(0)
    first, second = correlated(stream, 120, per_cluster, 0.1)
    clusters = None if per_cluster == 1 else np.repeat(np.arange(120 // per_cluster), per_cluster)
    found = compared(first, second, clusters, draws=8000)
    groups = (
        [[i] for i in range(120)] if clusters is None else [np.flatnonzero(clusters == c).tolist() for c in range(30)]
    )
    slow, change = [], (second - first).tolist()
    for _ in range(4000):
        picked = [i for g in stream.integers(0, len(groups), len(groups)) for i in groups[g]]
        slow.append(sum(change[i] for i in picked) / len(picked))
    slow = np.array(slow)
    value = second.mean() - first.mean()
    ends = np.quantile(slow, [0.025, 0.975])
    if clusters is not None:  # 30 clusters: wider by the t quantile and √(G / (G − 1)); 2.045 = t(29, 0.975)
        ends = value + (ends - value) * 2.0452 / 1.95996 * math.sqrt(30 / 29)
    assert found.estimate.value == pytest.approx(value)
    assert found.estimate.se == pytest.approx(slow.std(ddof=1), rel=0.05)
    np.testing.assert_allclose(
        [found.estimate.low, found.estimate.high], ends, atol=0.15 * found.estimate.se + 1 / 120
    )  # a doc more or less
    if clusters is None:
        assert found.p == pytest.approx(2 * min((slow <= 1e-12).mean(), (slow >= -1e-12).mean()), abs=0.02)


def within(share, nominal, repetitions, sides=4):
    return abs(share - nominal) <= sides * math.sqrt(nominal * (1 - nominal) / repetitions)


@pytest.mark.parametrize("per_cluster", [1, 3])
def test_coverage_and_flat_p_values(per_cluster):
    """Hundreds of pairs of runs of 240 docs: the interval holds the truth in 95 %, and under the null p is below x in x of them (4 SE)."""
    stream, repetitions, n = np.random.default_rng(1), size(200, 500), 240
    clusters = None if per_cluster == 1 else np.repeat(np.arange(n // per_cluster), per_cluster)
    covered, ps = 0, []
    for _ in range(repetitions):
        found = compared(*correlated(stream, n, per_cluster, 0.1), clusters, draws=400, seed=stream)
        covered += found.estimate.low <= 0.1 <= found.estimate.high
        ps.append(compared(*correlated(stream, n, per_cluster), clusters, draws=400, seed=stream).p)
    assert within(covered / repetitions, 0.95, repetitions)
    for x in (0.05, 0.2, 0.5):
        assert within(np.mean(np.array(ps) <= x), x, repetitions), x


def test_clusters_that_are_ignored_are_told_apart_from_those_that_are_not():
    """With questions that fall and rise with their image, the interval must be wider than that of independent docs."""
    stream = np.random.default_rng(2)
    clusters = np.repeat(np.arange(60), 8)
    effect = np.repeat(stream.random(60) < 0.5, 8)
    first, second = np.where(effect, 1.0, 0.0), np.where(effect, 0.0, 1.0)
    assert compared(first, second, clusters).estimate.se > 2 * compared(first, second).estimate.se


def test_few_clusters_do_not_cry_wolf():
    """12 clusters under the null: p at most 5 % in at most 5 % of 600 runs, and at most 1 % in at most 1 % (4 SE above)."""
    stream, repetitions = np.random.default_rng(3), 600
    clusters = np.repeat(np.arange(12), 10)
    ps = []
    for _ in range(repetitions):
        shared = np.repeat(stream.normal(size=(2, 12)), 10, axis=1)
        ps.append(compared(*(shared + stream.normal(size=(2, 120))), clusters, draws=400, seed=stream).p)
    for x in (0.05, 0.01):
        assert np.mean(np.array(ps) <= x) <= x + 4 * math.sqrt(x * (1 - x) / repetitions)


def test_p_values_of_few_clusters_follow_student():
    """Draws of a normal with a standard error of 1, spread as an interval of 12 clusters asks: p is that of t = value / √(G / (G − 1)), not of
    the normal, or above.
    """
    drawn = few_clusters(12) * np.random.default_rng(4).normal(size=40_000)
    for value in (1.0, 2.5, 3.2):
        t = value / math.sqrt(12 / 11)
        exact = 2 * stats.t.sf(t, 11)
        assert exact * 0.93 <= p_value(value, value + drawn, value + drawn, 12) <= exact * 1.25
    beyond = p_value(6.0, 6 + drawn, 6 + drawn, 12)  # further out than all draws
    assert beyond == pytest.approx(max(2 / 40_001, 2 * stats.t.sf(6 / math.sqrt(12 / 11), 11)), rel=0.05)


@examples(80)
@given(st.integers(10, 80), st.floats(-0.4, 0.4), st.integers(0, 999))
def test_p_and_interval_agree(groups, shift, seed):
    """A p below 5 % never stands beside a 95 % interval that holds 0, but for what a draw more or less makes."""
    stream = np.random.default_rng(seed)
    found = compared(stream.normal(size=groups), stream.normal(size=groups) + shift, draws=1000)
    if found.p < 0.045:
        assert found.estimate.low > 0 or found.estimate.high < 0


@examples(40)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), min_size=10, max_size=60)
)
def test_swapping_the_runs_turns_the_sign(pairs):
    first, second = np.array(pairs).T
    there, back = compared(first, second, draws=300), compared(second, first, draws=300)
    assert (there.first, there.second) == (back.second, back.first)
    assert there.estimate.value == -back.estimate.value
    assert there.estimate.low == pytest.approx(-back.estimate.high, abs=0.15)
    assert there.p == pytest.approx(back.p, abs=0.2)


def test_the_order_of_docs_changes_nothing_but_the_draws():
    stream = np.random.default_rng(5)
    first, second = correlated(stream, 300, 1, 0.05)
    order = stream.permutation(300)
    assert compared(first, second) == compared(
        first[order], second[order]
    )  # equal docs are drawn by how many there are


def test_pairing_is_narrower_than_two_samples():
    stream = np.random.default_rng(6)
    first = (stream.random(500) < 0.6).astype(float)
    second = np.where(stream.random(500) < 0.1, 1 - first, first)
    found = compared(first, second).estimate
    alone = [estimate(side.mean(), side.std(ddof=1) / math.sqrt(500)) for side in (first, second)]
    assert found.se < 0.6 * unpaired(*alone).estimate.se
    exact = (second - first).std(ddof=1) / math.sqrt(500)
    assert found.se == pytest.approx(exact, rel=0.04)


def test_nothing_differs():
    """1,000 docs alike: if more than 1 − 0.025^(1/1000) of docs changed, 1,000 without a change would come in less than 2.5 % of samples."""
    found = compared(np.ones(1000), np.ones(1000), draws=40_000)
    assert (found.estimate.value, found.p) == (0, 1)
    assert (-found.estimate.low, found.estimate.high) == pytest.approx((1 - 0.025 ** (1 / 1000),) * 2, rel=0.05)
    assert (
        compared(np.ones(1000), np.ones(1000), ends=None).estimate.low is None
    )  # nobody says what could change: no interval of no width


def test_not_defined_and_too_few():
    none = differences(MEAN, {"full": (np.zeros((40, 2)),) * 2}, {"score": Number(("full",))})["score"]
    assert (none.first, none.second, none.estimate.value, none.p) == (None, None, None, None)
    few = compared(np.zeros(9), np.ones(9))
    assert (few.estimate.value, few.estimate.low, few.p) == (1, None, None)
    assert "9 docs are too few" in few.estimate.reason


# --- where only a handful of docs differ ------------------------------------------------------------


def test_least_p_by_enumeration():
    """Of all 2^k ways to exchange two runs on k docs of which the second is better, two are as extreme as what is seen."""
    for k in range(1, 9):
        sums = [sum(1 if way >> i & 1 else -1 for i in range(k)) for way in range(2**k)]
        assert least_p(k) == pytest.approx(np.mean([abs(total) >= k for total in sums]))


@pytest.mark.parametrize(("better", "p"), [(1, 1.0), (2, 0.5), (3, 0.25), (5, 0.0625), (6, 0.03125)])
def test_a_handful_of_docs_shows_no_more_than_mcnemar(better, p):
    first, second = np.zeros(1000), np.zeros(1000)
    second[:better] = 1
    plain, careful = compared(first, second, ends=None), compared(first, second, draws=40_000)
    assert plain.p < p / 2
    assert mcnemar(first, second).p == p
    assert careful.p == pytest.approx(p, abs=4 * math.sqrt(p * 2 / 40_000))
    assert careful.differing == better
    assert (careful.estimate.low > 0) == (p < 0.05)


@pytest.mark.parametrize(("worse", "better"), [(2, 8), (1, 6), (3, 3), (0, 6), (10, 30), (20, 35)])
def test_the_p_value_of_right_and_wrong_is_mcnemars(worse, better):
    """P(Γ(b) < Γ(c + 1)) is the binomial tail of b + c tosses."""
    first, second = np.zeros(500), np.zeros(500)
    first[:worse], second[worse : worse + better] = 1, 1
    exact = mcnemar(first, second).p
    assert compared(first, second, draws=40_000).p == pytest.approx(
        exact, abs=4 * math.sqrt(max(exact, 1e-3) * 2 / 40_000)
    )


@pytest.mark.parametrize(("up", "down"), [(0.0, 0.02), (0.01, 0.03), (0.03, 0.03)])
def test_few_docs_that_differ_do_not_show_that_a_drop_is_small(up, down):
    """Of 300 docs: each end lies beyond the true difference in at most 2.5 % of runs.

    A percentile bootstrap's lower end does in 6 % of (0, 0.02).

    Sums over the counts that come up, with their exact probabilities; what is left out counts as wrong.
    """
    n, wrong = 300, np.ones(2)
    for lost, won in itertools.product(range(25), repeat=2):
        chance = stats.multinomial.pmf([won, lost, n - won - lost], n, [up, down, 1 - up - down])
        if chance > 1e-4:
            first, second = np.zeros(n), np.zeros(n)
            first[:lost], second[lost : lost + won] = 1, 1
            found = compared(first, second, draws=3_000).estimate
            wrong -= chance * np.array([found.low <= up - down + 1e-9, found.high >= up - down - 1e-9])
    assert wrong.max() <= 0.025


def test_a_handful_of_clusters_shows_no_more_than_a_sign_test():
    """Of 60 clusters of 8, k lose all 8 answers: by exchanging runs in whole clusters p is at least 2 · 2⁻ᵏ, however many docs that is."""
    clusters = np.repeat(np.arange(60), 8)
    for k, p in ((1, 1.0), (3, 0.25), (5, 0.0625), (6, 0.03125)):
        second = np.repeat(np.r_[np.zeros(k), np.ones(60 - k)], 8)
        found = compared(np.ones(480), second, clusters, draws=20_000)
        assert found.p >= p - 4 * math.sqrt(p * 2 / 20_000)
        assert (found.estimate.high < 0) <= (p < 0.05)


# --- McNemar ---------------------------------------------------------------------------------------


def table(both, only_first, only_second, neither):
    first = [1] * both + [1] * only_first + [0] * only_second + [0] * neither
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    return first, second


@pytest.mark.parametrize(
    ("one", "other", "p"), [(1, 6, 0.125), (0, 5, 0.0625), (0, 6, 0.03125), (3, 3, 1.0), (0, 0, 1.0), (2, 8, 0.109375)]
)
def test_mcnemar_by_hand(one, other, p):
    """1 against 6: 2 · (C(7, 0) + C(7, 1)) / 2^7 = 16 / 128. 2 against 8: 2 · (1 + 10 + 45) / 1024."""
    found = mcnemar(*table(10, one, other, 10))
    assert (found.only_first, found.only_second) == (one, other)
    assert found.p == pytest.approx(p)


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_against_its_definition(one, other):
    n, least = one + other, min(one, other)
    tail = sum(math.comb(n, i) for i in range(least + 1)) / 2**n
    assert mcnemar(*table(3, one, other, 3)).p == pytest.approx(min(1.0, 2 * tail))


def test_mcnemar_wants_right_or_wrong():
    assert mcnemar([0.5, 1], [0, 1]) is None
    assert mcnemar([math.nan, 1], [0, 1]) is None
    assert mcnemar([], []) is None


# --- two samples -------------------------------------------------------------------------------------


def test_unpaired_by_hand():
    """√(0.03² + 0.04²) = 0.05; −0.1 ± 1.96 · 0.05; z = 2, p = 0.0455.

    Of two normal intervals Newcombe's is the normal one.
    """
    found = unpaired(estimate(0.8, 0.03), estimate(0.7, 0.04))
    assert found.estimate.value == pytest.approx(-0.1)
    assert found.estimate.se == pytest.approx(0.05)
    assert (found.estimate.low, found.estimate.high) == (
        pytest.approx(-0.198, abs=1e-4),
        pytest.approx(-0.002, abs=1e-4),
    )
    assert found.p == pytest.approx(0.0455, abs=1e-4)


def test_unpaired_with_few_clusters_by_student():
    found = unpaired(estimate(0.8, 0.03, clusters=12), estimate(0.7, 0.04, clusters=12))
    factor = math.sqrt(12 / 11)
    assert found.estimate.high - found.estimate.value == pytest.approx(stats.t.ppf(0.975, 11) * factor * 0.05, rel=1e-4)
    assert found.p == pytest.approx(2 * stats.t.sf(2 / factor, 11), rel=1e-4)
    one = unpaired(
        estimate(0.8, 0.03, clusters=12), estimate(0.7, 0.04)
    )  # only one of them has few: its half of the width grows
    assert one.estimate.high - one.estimate.value == pytest.approx(
        math.hypot(stats.t.ppf(0.975, 11) * factor * 0.03, 1.95996 * 0.04), rel=1e-4
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [((100, 20, 15.0), (300, 60, 55.0)), ((100, 60, 55.0), (300, 20, 15.0)), ((300, 60, None), (100, 20, 15.0))],
)
def test_the_difference_of_two_runs_rests_on_the_smaller(one, other):
    """Docs, clusters and effective clusters are each the fewer of the two: what is said to rest on 300 docs does not where a run had 100."""
    first, second = (
        dataclasses.replace(estimate(0.5, 0.03), n=n, clusters=clusters, effective=effective)
        for n, clusters, effective in (one, other)
    )
    for found in (unpaired(first, second), unpaired(second, first)):
        assert (found.estimate.n, found.estimate.clusters, found.estimate.effective) == (100, 20, 15.0)
    missing = unpaired(first, Estimate(None, None, None, None, 300, 300, 0))
    assert missing.estimate.n == min(one[0], 300)


def test_few_clusters_of_either_run_count_for_the_p_value():
    """The shares 0.5 and 0.6 with one run of 12 clusters: p is that of Student's t with 11 degrees of freedom on either side."""
    few, many = estimate(0.5, 0.03, clusters=12), estimate(0.6, 0.03)
    there, back = unpaired(few, many), unpaired(dataclasses.replace(many, value=0.6), few)
    assert there.p == pytest.approx(back.p)
    half = there.estimate.value - there.estimate.low
    assert there.p == pytest.approx(2 * stats.t.sf(stats.t.ppf(0.975, 11) * 0.1 / half, 11), rel=1e-6)


def test_an_unpaired_p_of_five_percent_is_an_interval_that_ends_at_zero():
    for clusters in (12, 200):
        first = estimate(0.5, 0.03, clusters=clusters)
        second = estimate(0.5 + 0.05 * half_width(clusters), 0.04, clusters=clusters)
        found = unpaired(first, second)
        assert found.estimate.low == pytest.approx(0, abs=1e-9)
        assert found.p == pytest.approx(0.05, abs=1e-6)


@given(st.floats(0, 30), st.integers(2, 100))
def test_tails_are_students_under_50_clusters_and_normal_from_there(t, clusters):
    exact = 2 * stats.t.sf(t, clusters - 1) if clusters < 50 else 2 * stats.norm.sf(t)
    assert tails(t, clusters) == pytest.approx(exact, rel=1e-6, abs=1e-300)


# --- what could be found -------------------------------------------------------------------------------


def test_detectable_by_tables():
    """1.95996 + 0.84162 = 2.80158 at 95 % and 80 %; 1.64485 + 1.28155 at 90 % and 90 %."""
    assert detectable(1.0) == pytest.approx(2.80158, abs=1e-4)
    assert detectable(2.0, level=0.9, power=0.9) == pytest.approx(2 * 2.92640, abs=1e-4)
    assert detectable(None) is None
    # 10 clusters: as much wider as their interval
    assert detectable(1.0, 10) == pytest.approx(2.80158 * math.sqrt(10 / 9) * 2.262157 / 1.959964, rel=1e-4)


# --- several numbers, and docs of other weights ---------------------------------------------------------


def test_an_unseen_doc_of_a_ratio_weighs_what_a_doc_of_its_run_weighs():
    """Ten times the boxes in the second run change nothing: a ratio of sums does not depend on the unit of its docs."""
    stream = np.random.default_rng(10)
    below = stream.integers(0, 4, (2, 80))
    first, second = (np.column_stack([stream.binomial(boxes, 0.6), boxes]).astype(float) for boxes in below)
    one, ten = (
        differences(RATIO, {"": (first, factor * second)}, {"f1": Number(("",))}, draws=300)["f1"].estimate
        for factor in (1, 10)
    )
    assert (one.value, one.low, one.high) == pytest.approx((ten.value, ten.low, ten.high))


def test_what_is_called_detectable_is_detected():
    """Hundreds of pairs of runs of 400 docs with a true difference of just that size: found in 80 % (4 SE)."""
    stream, repetitions = np.random.default_rng(7), size(150, 400)
    se = np.mean([compared(*correlated(stream, 400, 1, 0.1), draws=300).estimate.se for _ in range(20)])
    shift = detectable(float(se))
    found = np.mean(
        [compared(*correlated(stream, 400, 1, shift), draws=300, seed=stream).p <= 0.05 for _ in range(repetitions)]
    )
    assert within(found, 0.8, repetitions)


def test_coverage_of_a_difference_of_indices():
    """Hundreds of pairs of runs of 300 docs: 1 − 0.85 / 0.8 against 1 − 0.6 / 0.75, so the truth is 0.2 + 0.0625 = 0.2625."""
    stream, repetitions, covered = np.random.default_rng(8), size(150, 400), 0

    rci = Number(("full", "best"), lambda full, best: 1 - best / full)
    for _ in range(repetitions):
        full_one, best_one, full_two, best_two = (stream.random((300, 4)) < [0.8, 0.85, 0.75, 0.6]).T.astype(float)
        sets = {"full": scored(full_one, full_two), "best": scored(best_one, best_two)}
        estimate = differences(MEAN, sets, {"rci": rci}, ends=None, draws=400, seed=stream)["rci"].estimate
        covered += estimate.low <= 0.2625 <= estimate.high
    assert within(covered / repetitions, 0.95, repetitions)
