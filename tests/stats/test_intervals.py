"""Intervals against SciPy, closed forms, derivations by hand, brute force, and simulations whose truth is known."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lmms_patch.stats import forms, intervals
from lmms_patch.stats.intervals import (
    UNSEEN_OF_PAIRS,
    Sample,
    at_level,
    clopper_pearson,
    difference,
    effective_clusters,
    ends_of,
    estimate,
    few_clusters,
    half_width,
    magnitude,
    normal_quantile,
    of_right_or_wrong,
    quantile,
    summarise,
    trimmed,
)
from lmms_patch.stats.resample import Estimate, weighted_sums
from tests.sizes import examples, size

SHARE = np.array([[0.0, 1.0], [1.0, 1.0]])
CORNERS = np.array([[a, b, 1.0] for a in (0.0, 1.0) for b in (0.0, 1.0)])


def mean(sums):
    return sums[..., 0] / sums[..., 1]


def rci(sums):
    return 1 - sums[..., 1] / sums[..., 0]


def gap(sums):
    return (sums[..., 0] - sums[..., 1]) / sums[..., 2]


def with_ones(*columns):
    return np.column_stack([*columns, np.ones(len(columns[0]))])


def right(hits, n):
    return np.r_[np.ones(hits), np.zeros(n - hits)]


# --- quantiles and clusters -------------------------------------------------------------------------


@pytest.mark.parametrize("df", [1, 9, 11.7, 48])
def test_quantiles_by_tables(df):
    assert quantile(0.975, df + 1) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-9)
    assert normal_quantile(0.975) == pytest.approx(1.959964, abs=1e-6)
    assert quantile(0.975, 10) == pytest.approx(2.262, abs=5e-4)


@pytest.mark.parametrize(
    ("sizes", "by_hand"),
    [([5] * 8, 8), ([1] * 63, 63), ([6, 2, 2, 2], 144 / 48), ([10, 1, 1, 1, 1], 196 / 104), ([3, 0, 3], 2), ([], 0)],
)
def test_effective_clusters_by_hand(sizes, by_hand):
    assert effective_clusters(sizes) == pytest.approx(by_hand)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_effective_clusters_are_at_most_as_many_as_there_are(sizes):
    found = effective_clusters(sizes)
    assert found + 1e-9 >= 1
    assert found <= len(sizes) + 1e-9
    assert found == pytest.approx(effective_clusters([7 * size for size in sizes]))


def test_few_clusters_widen_by_student_and_by_the_shortfall_of_the_bootstrap():
    """20 clusters: 2.0930 / 1.9600 · √(20 / 19) = 1.0956; none from 50 on."""
    assert few_clusters(20) == pytest.approx(1.0956, abs=1e-4)
    assert few_clusters(12.9) == pytest.approx(stats.t.ppf(0.975, 11.9) / 1.959964 * math.sqrt(12.9 / 11.9), rel=1e-6)
    assert few_clusters(50) == few_clusters(5000) == 1
    assert half_width(1000, 0.99) == pytest.approx(2.5758, abs=1e-4)


# --- shares -----------------------------------------------------------------------------------------


@given(st.integers(1, 200), st.data(), st.sampled_from([0.8, 0.95, 0.999]))
def test_clopper_pearson_is_scipys(n, data, level):
    hits = data.draw(st.integers(0, n))
    exact = stats.binomtest(hits, n).proportion_ci(level, "exact")
    assert clopper_pearson(hits, n, level) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_all_right_is_the_rule_of_three():
    assert clopper_pearson(40, 40) == (pytest.approx(0.025 ** (1 / 40)), 1.0)
    assert intervals.mean(np.ones(40)).low == pytest.approx(0.025 ** (1 / 40))


@pytest.mark.parametrize(("hits", "n"), [(60, 60), (59, 60), (0, 60), (1, 300), (150, 300), (995, 1000)])
def test_draws_of_a_share_end_where_clopper_and_pearson_do(hits, n):
    """The lower end is a quantile of Γ(k) / (Γ(k) + Γ(n − k) + Γ(1)), Beta(k, n − k + 1): the unseen doc is wrong.

    The upper one likewise.
    """
    ours = estimate(with_ones(right(hits, n)), mean, extremes=SHARE, draws=40_000)
    exact = stats.binomtest(hits, n).proportion_ci(0.95, "exact")
    for end, true in ((ours.low, exact.low), (ours.high, exact.high)):
        assert end == pytest.approx(
            true, abs=0.04 * ours.se
        )  # a 2.5 % quantile of 40,000 draws is good to some 0.02 standard errors


@pytest.mark.parametrize(("hits", "n"), [(60, 60), (3, 60), (150, 300)])
def test_right_or_wrong_is_exact(hits, n):
    exact = stats.binomtest(hits, n).proportion_ci(0.95, "exact")
    found = of_right_or_wrong(right(hits, n))
    assert (found.value, found.low, found.high) == pytest.approx((hits / n, exact.low, exact.high))
    drawn = estimate(with_ones(right(hits, n)), mean, extremes=SHARE, draws=40_000)
    assert found.se == pytest.approx(drawn.se, rel=0.03)
    percent = of_right_or_wrong(100 * right(hits, n), (0.0, 100.0))
    assert (percent.value, percent.low, percent.se) == pytest.approx(
        (100 * found.value, 100 * found.low, 100 * found.se)
    )
    assert of_right_or_wrong([0.0, 1.0, 0.3] * 20) is None
    assert of_right_or_wrong([0.0, 1.0] * 4) is None  # 8 docs: too few for an interval


def test_ends_of_a_scale():
    assert ends_of([0.0, 1.0, math.nan]) == (0, 1)
    assert ends_of([0.2, 40.0], 100.0) == (0, 100)
    assert ends_of([0.2, 40.0]) == (0, 40)  # unknown full marks: as much as was seen
    assert ends_of([0.2, 4.0], 1.0) == (0, 4)  # a gold answer that scores less than others do
    assert ends_of([-0.5, 0.2]) == (-1, 1)
    assert ends_of([-7.0, 3.0]) == (-7, 3)


# --- functions of sums ------------------------------------------------------------------------------


def test_against_scipy_on_an_unclustered_mean():
    pytest.importorskip("scipy", minversion="1.15", reason="before, the random stream had another name")
    scores = np.random.default_rng(3).random(400)
    ours = estimate(with_ones(scores), mean, draws=9999, seed=5)
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
        picked = [place for c in stream.integers(0, 80, 80).tolist() for place in range(5 * c, 5 * c + 5)]
        loop.append(scores[picked].mean())
    ours = estimate(with_ones(scores), mean, clusters, draws=4000)
    assert ours.se == pytest.approx(np.std(loop), rel=0.08)
    assert (ours.low, ours.high) == pytest.approx(tuple(np.quantile(loop, [0.025, 0.975])), abs=0.2 * ours.se)
    assert ours.se > 1.3 * estimate(with_ones(scores), mean, draws=4000).se  # ignoring the clusters would be too sure


@pytest.mark.parametrize("table", [(10, 3, 5, 42), (0, 0, 0, 60), (2, 0, 58, 0)])
def test_an_index_is_the_worst_of_all_dirichlet_posteriors(table):
    """Brute force: half a doc is added to each cell of the table of full × best in turn, RCI drawn from SciPy's Dirichlet, and the
    widest interval taken. An empty cell has no weight there.
    """
    cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)
    scores = np.repeat(cells, table, axis=0)
    ours = estimate(with_ones(*scores.T), rci, extremes=CORNERS, unseen=UNSEEN_OF_PAIRS, draws=20_000)
    lows, highs = [], []
    for k in range(4):
        prior = np.array(table, float)
        prior[k] += 0.5
        drawn = np.zeros((20_000, 4))
        drawn[:, prior > 0] = (
            stats.dirichlet(prior[prior > 0]).rvs(20_000, np.random.default_rng(k)) if (prior > 0).sum() > 1 else 1
        )
        index = 1 - (drawn @ cells)[:, 1] / (drawn @ cells)[:, 0]
        lows.append(np.quantile(index, 0.025))
        highs.append(np.quantile(index, 0.975))
    width = max(highs) - min(lows)
    assert ours.low == pytest.approx(min(lows), abs=0.03 * width)
    assert ours.high == pytest.approx(max(highs), abs=0.03 * width)


@pytest.mark.parametrize("size", [1, 3, 6])
def test_copies_of_a_doc_say_no_more_than_the_doc(size):
    """60 clusters of copies: as wide as 60 docs, also where all are right."""
    for hits in (60, 57, 30):
        scores = right(hits, 60)
        alone = estimate(with_ones(scores), mean, extremes=SHARE, seed=1)
        copied = estimate(
            with_ones(np.repeat(scores, size)), mean, np.repeat(np.arange(60), size), extremes=SHARE, seed=1
        )
        assert (copied.low, copied.high) == pytest.approx((alone.low, alone.high), abs=1e-9)
        assert (copied.n, copied.clusters, copied.effective) == (60 * size, 60, 60)


def test_clusters_without_any_likeness_cost_little():
    """200 clusters of 5 with 100 single wrong docs among 1,000: docs do not hang together, so the interval is nearly that of 1,000 docs."""
    scores = np.ones(1000)
    scores[::10] = 0
    clustered = estimate(with_ones(scores), mean, np.arange(1000) // 5, extremes=SHARE)
    exact = clopper_pearson(900, 1000)
    assert clustered.high - clustered.low < 1.02 * (exact[1] - exact[0])


def test_the_unseen_doc_brings_its_cluster_along_by_hand():
    """30 clusters of 4 docs, 2 docs wrong, in one cluster.

    Seen from a wrong doc z = 1 for wrong docs but for the mean p = 1/60: z_i = (x_i − p) / (1 − p),.
    with x = 1 for wrong. Weight = (Σ z_c² + 4) / (Σ z_i² + 1).
    """
    wrong = np.zeros(120)
    wrong[:2] = 1
    sample = Sample(with_ones(1 - wrong), np.arange(120) // 4)
    z = (wrong - 1 / 60) / (1 - 1 / 60)
    by_hand = ((z.reshape(30, 4).sum(axis=1) ** 2).sum() + 4) / ((z**2).sum() + 1)
    assert sample._weight(mean, SHARE[0]) == pytest.approx(by_hand, rel=1e-3)
    assert sample.unit == 4
    assert (
        Sample(with_ones(np.ones(120)), np.arange(120) // 4)._weight(mean, SHARE[0]) == 4
    )  # nothing is known: a whole cluster


def test_few_clusters_widen_the_draws_themselves():
    """20 clusters: half-widths grow by 1.0956, and still end where the scale does."""
    stream = np.random.default_rng(1)
    scores, clusters = np.clip(stream.normal(0.5, 0.1, 200), 0, 1), np.arange(200) // 10
    found = estimate(with_ones(scores), mean, clusters, draws=20_000)
    spread = scores.reshape(20, 10).mean(axis=1).std() / math.sqrt(20)  # of the bootstrap: by n, not by n − 1
    assert found.se == pytest.approx(spread, rel=0.03)
    assert (found.high - found.low) / 2 == pytest.approx(1.0956 * 1.96 * spread, rel=0.03)
    assert found.reason == "20 clusters are few: the interval is widened by 1.10"
    high = estimate(with_ones(np.repeat(right(11, 12), 5)), mean, np.arange(60) // 5, extremes=SHARE)
    assert high.low < 11 / 12 < high.high <= 1


def test_uneven_clusters_count_as_fewer():
    """63 clusters, one with 60 docs and the others with 5: (60 + 310)² / (3600 + 1550) = 26.6."""
    sizes = [60] + [5] * 62
    clusters = np.repeat(np.arange(63), sizes)
    found = estimate(with_ones(np.random.default_rng(2).random(370)), mean, clusters)
    assert found.effective == pytest.approx(370**2 / 5150)
    assert found.clusters == 63
    assert (
        found.reason
        == f"63 clusters, by their sizes worth 26.6, are few: the interval is widened by {few_clusters(found.effective):.2f}"
    )
    few = estimate(with_ones(np.ones(100)), mean, np.repeat(np.arange(12), [89] + [1] * 11), extremes=SHARE)
    assert (few.value, few.low, few.se) == (1, None, None)
    assert (
        few.reason == "12 clusters, by their sizes worth 1.3, are too few for an interval; about 794 docs would do"
    )  # 100 * 10 * 7932 / 100²


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
    found = estimate(values, mean, clusters, extremes=SHARE)
    assert found.value == value
    assert found.low is found.high is found.se is None
    assert says in found.reason


def test_what_cannot_vary_has_no_interval_rather_than_a_point():
    found = estimate(with_ones([0.25] * 100), mean)  # nobody says what else a doc could score
    assert (found.value, found.low, found.high, found.se) == (0.25, None, None, 0.0)
    assert found.reason == "no draw differs, so nothing says how sure this is"


def test_an_index_that_rests_on_one_doc_says_so_by_its_width():
    """FIP is 1 of 60: 1 − 1 / FIP = −59, and FIP may as well be 0.0004 or 0.09, so the index anything from −2,000 to −10."""
    found = estimate(with_ones(np.eye(60)[0], np.ones(60)), rci, extremes=CORNERS, unseen=UNSEEN_OF_PAIRS)
    assert found.value == -59.0
    assert found.low < -1000
    assert -20 < found.high < -5


# --- properties -------------------------------------------------------------------------------------

SCORES = st.sampled_from([0.0, 1.0]) | st.sampled_from([0.0, 0.3, 1.0]) | st.floats(0.001, 1)


@given(
    st.lists(st.tuples(SCORES, SCORES), min_size=10, max_size=60), st.integers(1, 4), st.sampled_from([0.5, 0.95, 0.99])
)
@examples(150)
def test_intervals_have_width_hold_their_value_and_stay_in_range(pairs, size, level):
    rows = with_ones(*np.array(pairs).T)
    clusters = None if size == 1 else np.arange(len(rows)) // size
    ranges = {"fip": (0, 1), "gap": (-1, 1), "rci": (-math.inf, 1)}
    numbers = {"fip": lambda s: s[..., 0] / s[..., 2], "gap": gap, "rci": rci}
    for name, number in numbers.items():
        found = estimate(rows, number, clusters, extremes=CORNERS, level=level, draws=200)
        if found.value is None or effective_clusters(np.bincount(clusters) if size > 1 else np.ones(len(rows))) < 10:
            assert found.low is found.high is None
            assert found.reason
            continue
        assert found.low <= found.value <= found.high
        assert found.high - found.low > 1e-9
        assert ranges[name][0] <= found.low
        assert found.high <= ranges[name][1] + 1e-12
        assert found.se > 0


@given(st.lists(st.floats(0, 1), min_size=12, max_size=40), st.randoms())
@examples(30)
def test_the_order_of_docs_changes_nothing(scores, shuffler):
    mixed = list(scores)
    shuffler.shuffle(mixed)
    one, two = (estimate(with_ones(np.round(s, 1)), mean, extremes=SHARE, seed=3) for s in (scores, mixed))
    assert one.value == pytest.approx(two.value)
    if len(set(np.round(scores, 1))) <= len(scores) // 2:
        assert (one.low, one.high) == pytest.approx((two.low, two.high))


PICKED = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 2)), min_size=20, max_size=60)


@given(PICKED, st.sampled_from(sorted(forms.FORMS)))
@examples(100)
def test_every_form_stays_in_range_and_never_has_a_point_for_an_interval(docs, name):
    """Shares within 0..1, percent 0..100, a sum 0..n, MME 0..200 for each category.

    Also where all answers are right, or one category is small.
    """
    said, gold, categories = (np.array(column) for column in zip(*docs, strict=True))
    categories = np.unique(categories, return_inverse=True)[1]
    form, n = forms.FORMS[name], len(docs)
    clusters = np.arange(n) // 2 if form.whole else None
    if form.whole:
        categories = categories[clusters * 2]
        categories = np.unique(categories, return_inverse=True)[1]
    rows = form.rows(forms.Picked((said == gold).astype(float), said, gold, clusters, categories))
    sample = Sample(rows, clusters, whole=form.whole, draws=200)
    found = sample.estimate(lambda sums: form.of_weighted(sums, n), form.unseen((0.0, 1.0), rows.shape[1], 1))
    if found.value is None:
        assert name in ("f1", "precision", "recall")
        return
    top = {"percent": 100, "sum": n, "mme": 200 * len(set(categories.tolist()))}.get(name, 1)
    assert 0 <= found.low <= found.value <= found.high <= top + 1e-9
    assert found.high - found.low > 1e-6
    assert found.value == pytest.approx(float(form.value(rows.sum(axis=0))))


def test_no_draw_loses_a_category():
    """MME's and MMStar's score with a category of 2 pairs among 40: a sample with replacement has none of them in e^-2 = 13 % of draws, and then
    a score of one category less. Under weights every category is there in every draw, so MME stays above what the
    others give.
    """
    categories = np.r_[np.zeros(4, int), np.ones(76, int)]
    for form, docs in ((forms.MME, np.arange(80) // 2), (forms.MACRO, None)):
        rows = form.rows(forms.Picked(np.ones(80), clusters=docs, categories=categories))
        drawn = form.value(Sample(rows, docs, whole=form.whole).drawn)
        assert drawn == pytest.approx(np.full(1000, 400.0 if form.whole else 1.0))


def test_an_unseen_doc_of_every_kind_by_enumeration():
    """Of F1 a doc is positive (missed or found) or negative (called positive or not); on two images that is 8 rows."""
    rows = forms.F1.unseen((0, 1), 3, 2)
    found, missed, false, silent = [1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]
    expected = [
        one + two for kind in ((missed, found), (false, silent)) for one, two in itertools.product(kind, repeat=2)
    ]
    assert sorted(rows.tolist()) == sorted(expected)
    assert forms.MME.unseen((0, 1), 4, 1).tolist() == [[0, 0, 1, 0], [200, 0, 1, 0], [0, 0, 0, 1], [0, 200, 0, 1]]
    assert forms.MEAN.unseen((0, 5), 2, 2).tolist() == [[0, 1, 0, 1], [0, 1, 5, 1], [5, 1, 0, 1], [5, 1, 5, 1]]


# --- coverage ---------------------------------------------------------------------------------------


def held(found, truth):
    return found.low <= truth + 1e-12 and truth - 1e-12 <= found.high


@cache
def of_share(k, n):
    """Return the interval of k right docs of n."""
    return intervals.mean(right(k, n))


@pytest.mark.parametrize("n", [50, 300])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.95, 0.995])
def test_a_share_is_covered_exactly(n, share):
    """Summed over all outcomes of the binomial that come up: no simulation. At least 95 %."""
    outcomes = stats.binom(n, share).pmf(np.arange(n + 1))
    cover = sum(outcomes[k] for k in range(n + 1) if outcomes[k] > 1e-6 and held(of_share(k, n), share))
    assert 0.95 <= cover <= 0.999


@pytest.mark.parametrize(
    ("n", "full", "best", "together"),
    [
        (50, 0.9, 0.95, 1),
        (100, 0.3, 0.01, 1),
        (100, 0.99, 0.9, 1),
        (300, 0.99, 0.995, 1),
        (300, 0.9, 0.99, 4),
        (200, 0.6, 0.6, 4),
        (100, 0.9, 0.6, 4),
    ],
)
def test_index_and_gap_are_covered(n, full, best, together):
    """Hundreds of runs: two views of a doc and docs of a cluster hang together.

    At least 93 % (less 4 standard errors), where the bootstrap has 22 to 94 %.

    benchmarks/studies/intervals.py does it in all cells, with more runs.
    """
    stream, runs, hits = np.random.default_rng(n), size(100, 400), np.zeros(2)
    for _ in range(runs):
        shared = np.repeat(stream.standard_normal(n // together), together)[:, None] * math.sqrt(
            0.3 if together > 1 else 0.0
        )
        own = math.sqrt(0.6) * stream.standard_normal((n, 1)) + math.sqrt(0.4) * stream.standard_normal((n, 2))
        z = shared + math.sqrt(0.7 if together > 1 else 1.0) * own
        rows = with_ones(*(z < stats.norm.ppf([full, best])).T.astype(float))
        clusters = None if together == 1 else np.arange(n) // together
        for k, (number, truth) in enumerate(((rci, 1 - best / full), (gap, full - best))):
            hits[k] += held(
                estimate(rows, number, clusters, extremes=CORNERS, unseen=UNSEEN_OF_PAIRS, draws=400, seed=stream),
                truth,
            )
    assert (hits / runs >= 0.93 - 4 * math.sqrt(0.93 * 0.07 / runs)).all()


def test_copies_are_covered_where_the_bootstrap_sees_nothing():
    """100 clusters of 5 copies, 99 % right: all are right in 37 % of samples, where a bootstrap interval is [1, 1] and misses the truth."""
    stream, hits, runs = np.random.default_rng(3), 0, size(80, 300)
    for _ in range(runs):
        scores = np.repeat(stream.random(100) < 0.99, 5).astype(float)
        hits += held(intervals.mean(scores, np.arange(500) // 5, draws=400, seed=stream), 0.99)
    assert hits / runs >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs)


# --- draws that were made elsewhere -----------------------------------------------------------------


def test_summary_by_hand():
    """1000 draws 0.000, 0.001, ..., 0.999 of 60 docs: the 2.5 % and 97.5 % points are 0.999 times that share."""
    found = summarise(0.5, np.arange(1000) / 1000, 60, 60)
    assert (found.value, found.n, found.clusters, found.draws, found.reason) == (0.5, 60, 60, 1000, "")
    assert (found.low, found.high) == pytest.approx((0.025 * 0.999, 0.975 * 0.999))
    assert found.se == pytest.approx(
        math.sqrt((1000**2 - 1) / 12 * 1000 / 999) / 1000
    )  # of the numbers 0..999, by n - 1
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


@pytest.mark.parametrize(
    ("groups", "interval", "widened"),
    [(9, False, False), (9.99, False, False), (10, True, True), (49, True, True), (50, True, False)],
)
def test_edges_of_few(groups, interval, widened):
    found = summarise(0.5, np.linspace(0, 1, 1000), 100, 60, groups)
    assert (found.low is not None) == interval
    assert ("widened" in found.reason) == widened


# --- stored intervals -------------------------------------------------------------------------------


def stored(value, low=None, high=None, se=0.01, n=1000, clusters=None, level=0.95, effective=None):
    return Estimate(value, se, low, high, n, clusters or n, 1000, level, "", effective)


@pytest.mark.parametrize("weight", [0.25, 3.0])
def test_the_weight_of_docs_in_a_ratio_changes_nothing(weight):
    """Each doc adds ``weight`` below the line, and so does the doc that nobody has seen."""
    scores = np.random.default_rng(2).random(60)
    plain, heavy = (intervals.ratio(scores * each, np.full(60, each), draws=500) for each in (1.0, weight))
    assert (heavy.value, heavy.low, heavy.high, heavy.se) == pytest.approx(
        (plain.value, plain.low, plain.high, plain.se)
    )


@pytest.mark.parametrize("shape", [0.25, 1.0, 4.0])
@pytest.mark.parametrize(
    "rows", [np.ones((30, 1)), 1 + np.arange(30.0)[:, None] / 1000], ids=["alike", "all different"]
)
def test_a_weight_of_a_draw_has_mean_1_and_variance_1_over_its_shape(rows, shape):
    """What the unseen doc's own weight of mean 1 is set beside. 20,000 draws: the mean of a sum of 30 within 4 of its standard errors."""
    drawn = weighted_sums(rows, 20_000, 6, shape)[:, 0]
    total, variance = rows.sum(), (rows**2).sum() / shape
    assert abs(drawn.mean() - total) < 4 * math.sqrt(variance / 20_000)
    assert drawn.var() == pytest.approx(variance, rel=0.1)


def test_at_another_level_by_the_ratio_of_quantiles():
    out = at_level(stored(0.5, 0.5 - 1.96, 0.5 + 0.98), 0.99)
    assert (out.value - out.low, out.high - out.value) == (
        pytest.approx(2.5758, abs=1e-3),
        pytest.approx(1.2879, abs=1e-3),
    )
    few = at_level(stored(0.0, -2.262, 2.262, clusters=10), 0.99)  # t tables, 9 degrees: 2.262 and 3.250
    assert few.high == pytest.approx(3.250, abs=2e-3)
    uneven = at_level(stored(0.0, -2.262, 2.262, clusters=70, effective=10.0), 0.99)
    assert uneven.high == pytest.approx(3.250, abs=2e-3)
    assert at_level(stored(0.5, 0.4, 0.6), 0.95) == stored(0.5, 0.4, 0.6)


@pytest.mark.parametrize(("hits", "n"), [(40, 40), (39, 40), (0, 60), (997, 1000), (5, 300)])
@pytest.mark.parametrize("level", [0.8, 0.99, 0.999])
def test_a_share_near_an_end_at_another_level_is_the_exact_one(hits, n, level):
    """From the 95 % interval alone; half-widths by the ratio of quantiles may be wider, and are what counts then."""
    found = at_level(intervals.mean(right(hits, n)), level, (0.0, 1.0))
    exact = stats.binomtest(hits, n).proportion_ci(level, "exact")
    assert 0 <= found.low <= exact.low + 1e-6
    assert exact.high - 1e-6 <= found.high <= 1
    if level > 0.95:
        far, true = (1 - found.low, 1 - exact.low) if hits > n / 2 else (found.high, exact.high)
        assert far == pytest.approx(true, rel=1e-3)


@pytest.mark.parametrize(("hits", "n"), [(199, 200), (3, 200), (0, 40)])
def test_a_share_of_another_scale_moves_with_its_scale(hits, n):
    """A share of -0.25 to 0.75 (accuracy less a chance of 0.25) at 99 % is that of 0 to 1, moved."""
    low, high = clopper_pearson(hits, n)
    plain = Estimate(hits / n, 0.01, low, high, n, n, 1000)
    moved = Estimate(hits / n - 0.25, 0.01, low - 0.25, high - 0.25, n, n, 1000)
    one, other = at_level(plain, 0.99, (0.0, 1.0)), at_level(moved, 0.99, (-0.25, 0.75))
    assert (other.low + 0.25, other.high + 0.25) == pytest.approx((one.low, one.high), abs=1e-9)


def test_trimmed_to_a_scale():
    assert (trimmed(stored(0.9, 0.8, 1.1), (0, 1)).low, trimmed(stored(0.9, 0.8, 1.1), (0, 1)).high) == (0.8, 1)
    assert trimmed(stored(0.9, 0.9, 0.9, se=0.0), (0, 1)).low is None
    assert trimmed(stored(1.2, 1.1, 1.3), (0, 1)).high == 1.2  # a value beyond its scale is not cut off


# --- two numbers of different docs ------------------------------------------------------------------


def test_a_difference_is_newcombes_tenth_method():
    """Newcombe (1998), table II, row 1: 56/70 − 48/80 = 0.20, 95 % interval 0.0524 to 0.3339 (from Wilson intervals)."""
    wilson = [stats.binomtest(k, n).proportion_ci(0.95, "wilson") for k, n in ((56, 70), (48, 80))]
    (one, two) = (stored(v, w.low, w.high) for v, w in zip((0.8, 0.6), wilson, strict=True))
    out = difference(two, one)
    assert (out.value, out.low, out.high) == (
        pytest.approx(0.2),
        pytest.approx(0.0524, abs=1e-4),
        pytest.approx(0.3339, abs=1e-4),
    )
    assert difference(stored(None), one).value is None
    assert difference(stored(0.5, se=None), one).low is None


@given(st.integers(0, 30), st.integers(0, 30))
def test_a_difference_of_shares_stays_within_one(a, b):
    out = difference(intervals.mean(right(a, 30)), intervals.mean(right(b, 30)))
    assert -1 <= out.low < out.value + 1e-12
    assert out.value - 1e-12 < out.high <= 1


# --- few heavy clusters ------------------------------------------------------------------------------


HEAVY = {
    "three of 60 clusters have half of the docs": (60, lambda stream: np.r_[[60] * 3, np.full(57, 3)]),
    "20 clusters of unequal sizes": (20, lambda stream: stream.lognormal(2, 1, 20).astype(int) + 1),
    "40 clusters of very unequal sizes": (40, lambda stream: stream.lognormal(2, 1.2, 40).astype(int) + 1),
    "12 equal clusters": (12, lambda stream: np.full(12, 20)),
}


@pytest.mark.parametrize("name", HEAVY)
def test_few_heavy_clusters_hold_the_truth(name):
    """Docs of a cluster are alike (a beta distribution with mean 0.7); where an interval is given, it holds 0.7 in 93 to 97 % of samples."""
    (count, sizes), held = HEAVY[name], []
    for run in range(size(60, 400)):
        stream = np.random.default_rng([3, run])
        clusters = np.repeat(np.arange(count), sizes(np.random.default_rng(run)))
        right = stream.random(len(clusters)) < stream.beta(2.8, 1.2, count)[clusters]
        found = intervals.mean(right, clusters, draws=1500, seed=run)
        held += [] if found.low is None else [found.low <= 0.7 <= found.high]
    error = np.sqrt(0.05 * 0.95 / len(held))
    assert 0.93 - 2 * error <= np.mean(held) <= min(0.97 + 2 * error, 1)


# --- distances from 0 -----------------------------------------------------------------------------


ENDS = [(None, None), (0.1, None), (None, 0.3)]


def number(value, low=None, high=None):
    return Estimate(value, 0.01, low, high, 1000, 1000, 1000)


def test_the_distance_of_a_number_from_zero():
    for ends, expected in (((0.1, 0.3), (0.1, 0.3)), ((-0.3, -0.1), (0.1, 0.3)), ((-0.3, 0.1), (0.0, 0.3))):
        out = magnitude(number(sum(ends) / 2, *ends))
        assert (out.low, out.high) == pytest.approx(expected)


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_the_distance_of_a_number_without_an_interval(low, high):
    found = magnitude(number(-0.2, low, high))
    assert found.value == 0.2
    assert None in (found.low, found.high)


def test_no_number_has_no_distance():
    assert magnitude(number(None, 0.1, 0.3)) == number(None, 0.1, 0.3)
