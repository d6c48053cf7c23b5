"""The verdict, and the intervals that it goes by: against brute force, published tables and derivations."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, multinomial

from lmms_patch.errors import RecordError
from lmms_patch.gate import limits
from lmms_patch.gate.judge import verdict
from lmms_patch.stats.paired import McNemar
from lmms_patch.stats.resample import Estimate

TENTHS = st.integers(-20, 20).map(lambda k: k / 10)


def estimate(value, low=None, high=None, se=0.01, n=1000, clusters=None, level=0.95):
    return Estimate(value, se, low, high, n, clusters or n, 1000, level)


# --- the picture ----------------------------------------------------------------------------------


def brute(low, high, least, most, margin):
    """The definition, over every point of a fine grid inside the interval, in whole tenths."""
    points = range(round(10 * low), round(10 * high) + 1)
    words = []
    for limit, sign in ((least, 1), (most, -1)):
        if limit is None:
            continue
        kept = [sign * p >= sign * round(10 * limit) - round(10 * margin) for p in points]
        words.append("pass" if all(kept) else "fail" if not any(kept) else "inconclusive")
    return "fail" if "fail" in words else "inconclusive" if "inconclusive" in words else "pass"


@given(TENTHS, TENTHS, st.none() | TENTHS, st.none() | TENTHS, st.integers(0, 10).map(lambda k: k / 10))
def test_the_verdict_is_the_definition(a, b, least, most, margin):
    low, high = min(a, b), max(a, b)
    if least is None and most is None:
        with pytest.raises(ValueError, match="no limit"):
            limits.call(low, high)
    else:
        assert limits.call(low, high, least=least, most=most, margin=margin) == brute(low, high, least, most, margin)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [  # limit 0.50, margin 0.02: everything is decided at 0.48
        (0.51, 0.55, "pass"),  # wholly above the limit
        (0.49, 0.55, "pass"),  # perhaps below the limit, but above 0.48
        (0.485, 0.495, "pass"),  # certainly below the limit, and above 0.48
        (0.48, 0.60, "pass"),  # an end on the edge, which 0.5 - 0.02 misses by a rounding error or not
        (0.47, 0.495, "inconclusive"),  # certainly below the limit: whether by more than the margin is not known
        (0.45, 0.55, "inconclusive"),
        (0.40, 0.48, "inconclusive"),
        (0.40, 0.479, "fail"),  # certainly below 0.48
        (0.40, 0.47, "fail"),
    ],
)
def test_the_margin_picture(low, high, expected):
    assert limits.call(low, high, least=0.5, margin=0.02) == expected
    assert limits.call(-high, -low, most=-0.5, margin=0.02) == expected


@pytest.mark.parametrize(
    ("low", "high", "max_drop", "max_rise", "margin", "expected"),
    [  # difference = number − baseline; a drop of 2 points is −0.02
        (-0.010, 0.010, 0.00, None, 0.02, "pass"),  # a true drop of 1 point would be inside
        (-0.030, -0.001, 0.00, None, 0.02, "inconclusive"),  # a drop is shown, but not that it is beyond the margin
        (-0.060, -0.021, 0.00, None, 0.02, "fail"),
        (-0.060, -0.021, 0.02, None, 0.00, "fail"),  # limit and margin are one bound: 0 + 0.02 is 0.02 + 0
        (-0.060, -0.021, 0.01, None, 0.01, "fail"),
        (-0.030, 0.010, None, 0.00, 0.02, "pass"),
        (0.021, 0.050, None, 0.00, 0.02, "fail"),
        (0.010, 0.050, None, 0.00, 0.02, "inconclusive"),
        (-0.010, 0.010, 0.00, 0.00, 0.02, "pass"),  # both: equivalence
        (-0.030, 0.010, 0.00, 0.00, 0.02, "inconclusive"),
        (0.030, 0.040, 0.00, 0.00, 0.02, "fail"),  # inside the drop, beyond the rise: the worse counts
        (0.005, 0.020, -0.01, None, 0.00, "inconclusive"),  # a drop of at most −1 point: a rise of at least 1 point is asked
        (0.000, 0.000, -0.01, None, 0.00, "fail"),
    ],
)
def test_the_truth_table_of_differences(low, high, max_drop, max_rise, margin, expected):
    """By hand: the interval wholly inside limit + margin, wholly beyond it, or neither."""
    least = None if max_drop is None else -max_drop
    assert limits.call(low, high, least=least, most=max_rise, margin=margin) == expected


def test_a_limit_that_is_missed_within_the_margin_is_said_to_be():
    assert verdict(estimate(-0.015, -0.019, -0.011), 0.0, None, 0.02) == ("pass", "the limit is missed, but by less than the margin")
    assert verdict(estimate(-0.005, -0.015, 0.005), 0.0, None, 0.02) == ("pass", "")


@given(TENTHS, TENTHS, TENTHS, st.integers(0, 5).map(lambda k: k / 10))
def test_a_narrower_interval_never_turns_pass_into_fail(a, b, limit, margin):
    low, high = min(a, b), max(a, b)
    middle = (low + high) / 2
    calls = {limits.call(low, high, least=limit, margin=margin), limits.call(middle, middle, least=limit, margin=margin)}
    assert calls != {"pass", "fail"}


def test_without_interval_never_pass_but_fail_where_the_number_alone_is_beyond():
    assert verdict(estimate(0.9, se=None), 0.5, None, 0.0)[0] == "inconclusive"
    assert verdict(estimate(0.49, se=None), 0.5, None, 0.02)[0] == "inconclusive"
    assert verdict(estimate(0.4, se=None), 0.5, None, 0.02)[0] == "fail"
    assert verdict(estimate(0.9, se=None), 0.5, None, 0.0, interval=False)[0] == "pass"
    assert verdict(estimate(None), 0.5, None, 0.0) == ("fail", "not defined")
    assert verdict(estimate(None), 0.5, None, 0.0, interval=False)[0] == "fail"


# --- levels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "expected"), [(0, 0.95), (1, 0.95), (2, 0.975), (5, 0.99), (50, 0.999)])
def test_bonferroni(count, expected):
    assert limits.corrected(0.95, count) == pytest.approx(expected)


def test_at_another_level_by_the_ratio_of_quantiles():
    out = limits.at_level(estimate(0.5, 0.5 - 1.96, 0.5 + 0.98), 0.99)
    assert (out.value - out.low, out.high - out.value) == (pytest.approx(2.5758, abs=1e-3), pytest.approx(1.2879, abs=1e-3))
    few = limits.at_level(estimate(0.0, -2.262, 2.262, clusters=10), 0.99)  # t tables, 9 degrees: 2.262 and 3.250
    assert few.high == pytest.approx(3.250, abs=2e-3)


def test_numbers_of_a_damaged_file():
    assert limits.checked(estimate(math.nan, 0, 1)).value is None
    assert limits.checked(estimate(0.5, -math.inf, 1)).low is None
    with pytest.raises(RecordError, match=r"from 0\.7 to 0\.3"):
        limits.checked(estimate(0.5, 0.7, 0.3))


# --- ends of the scale ----------------------------------------------------------------------------


def test_all_right_is_the_rule_of_three():
    low, high = limits.binomial(40, 40, 0.95)
    assert (low, high) == (pytest.approx(0.025 ** (1 / 40)), 1.0)
    out = limits.of_number(estimate(1.0, 1.0, 1.0, se=0.0, n=80, clusters=40), 0.95, (0.0, 1.0))
    assert (out.low, out.high) == (pytest.approx(0.9119, abs=1e-4), 1.0)  # Clopper & Pearson: 40 of 40


@given(st.integers(1, 200), st.data(), st.sampled_from([0.8, 0.95, 0.999]))
def test_the_binomial_interval_is_scipys(n, data, level):
    hits = data.draw(st.integers(0, n))
    exact = binomtest(hits, n).proportion_ci(level, "exact")
    assert limits.binomial(hits, n, level) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_near_an_end_the_exact_interval_too_and_elsewhere_none_without_spread():
    near = limits.of_number(estimate(99.0, 97.0, 100.0, n=100), 0.95, (0.0, 100.0))  # of 99 right of 100, in percent
    assert (near.low, near.high) == (pytest.approx(94.55, abs=0.01), pytest.approx(100.0))
    far = limits.of_number(estimate(0.5, 0.4, 0.6, n=100), 0.95, (0.0, 1.0))
    assert (far.low, far.high) == (0.4, 0.6)
    assert limits.of_number(estimate(0.5, 0.5, 0.5, se=0.0), 0.95, (0.0, 1.0)).low is None
    assert limits.of_number(estimate(1.0, 1.0, 1.0, se=0.0), 0.95, None).low is None
    assert limits.of_number(estimate(0.9, None, None, se=None, n=5), 0.95, (0.0, 1.0)).low is None  # too few docs: none, not a made-up one


# --- differences ----------------------------------------------------------------------------------


def test_where_no_doc_differs_some_still_might():
    out = limits.of_paired(estimate(0.0, 0.0, 0.0, se=0.0), 0.95, reach=1.0, differing=0)
    # with a share of 1 − 0.025^(1/1000) of docs that differ, 1,000 docs show none in 2.5 % of samples
    assert (1 - out.high) ** 1000 == pytest.approx(0.025)
    assert out.low == -out.high
    assert limits.of_paired(estimate(0.0, 0.0, 0.0, se=0.0), 0.95, reach=None, differing=0).low is None


def test_few_docs_that_differ_are_judged_by_mcnemars_exact_test():
    """7 of 8 against: p = 2 · (1 + 8) / 2⁸ = 0.0703, so 0 is not excluded; a bootstrap of 1,000 docs would."""
    out = limits.of_paired(estimate(-0.006, -0.011, -0.001), 0.95, reach=1.0, differing=8, unit=1.0, mcnemar=McNemar(7, 1, 0.07))
    assert out.low < 0 < out.high
    shown = limits.of_paired(estimate(-0.010, -0.016, -0.004), 0.95, reach=1.0, differing=10, unit=1.0, mcnemar=McNemar(10, 0, 0.002))
    assert shown.high < 0
    lower = limits.of_paired(estimate(0.010, 0.004, 0.016), 0.95, reach=1.0, differing=10, unit=-1.0, mcnemar=McNemar(10, 0, 0.002))
    assert (lower.low, lower.high) == (pytest.approx(-shown.high), pytest.approx(-shown.low))


@given(st.integers(0, 30), st.integers(0, 30), st.sampled_from([0.95, 0.99]))
def test_zero_is_excluded_only_where_mcnemars_exact_test_does(down, up, level):
    count, n = down + up, 1000
    value = (up - down) / n
    if not value:
        return
    half = abs(value) * 0.99  # an interval that just excludes 0 at 95 %
    out = limits.of_paired(estimate(value, value - half, value + half), level, reach=1.0, differing=count, unit=1.0, mcnemar=McNemar(down, up, 1.0))
    excluded = out.low > 0 or out.high < 0
    if count < limits.FEW_DIFFER and excluded:
        assert binomtest(up, count).pvalue <= 1 - level + 1e-9


def profile(b, c, n, d):
    """The score statistic of a paired difference d by brute force: the likeliest share p that only the first has right, on a fine grid."""
    shares = np.linspace(max(0.0, -d), (1 - d) / 2, 400_001)[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [(b, shares + d), (c, shares), (n - b - c, 1 - 2 * shares - d)]
        likely = sum(count * np.log(share) if count else 0 * share for count, share in parts)
    p = shares[np.nanargmax(np.where(np.isfinite(likely), likely, np.nan))]
    return (b - c - n * d) / math.sqrt(n * (2 * p + d - d * d))


@pytest.mark.parametrize(("only_first", "only_second", "n"), [(3, 9, 100), (9, 3, 100), (1, 1, 60), (20, 25, 400)])
@pytest.mark.parametrize("level", [0.95, 0.9875])
def test_the_score_interval_is_where_the_likeliest_data_are_z_away(only_first, only_second, n, level):
    low, high = limits.score_interval(only_first, only_second, n, level)
    z = statistics.NormalDist().inv_cdf((1 + level) / 2)
    assert (profile(only_second, only_first, n, low), profile(only_second, only_first, n, high)) == (
        pytest.approx(z, abs=1e-3),
        pytest.approx(-z, abs=1e-3),
    )


@pytest.mark.parametrize(("count", "n"), [(1, 300), (6, 300), (10, 44)])
def test_where_all_docs_turn_one_way_the_score_interval_is_wilsons(count, n):
    wilson = binomtest(count, n).proportion_ci(0.95, "wilson")
    low, high = limits.score_interval(count, 0, n, 0.95)
    assert -low == pytest.approx(wilson.high, abs=1e-6)
    assert limits.score_interval(0, count, n, 0.95) == (pytest.approx(-high), pytest.approx(-low))


@pytest.mark.parametrize(("up", "down"), [(0.0, 0.02), (0.01, 0.03), (0.03, 0.03)])
def test_few_docs_that_differ_do_not_show_that_a_drop_is_small(up, down):
    """Of 300 docs: the low end lies above the true difference in at most 2.5 % of runs (and 4 standard errors); the bootstrap's does in 6 % of (0, 0.02).

    Sums over all counts that come up, with their exact probabilities; the bootstrap's interval as a normal one, which is shorter still.
    """
    n, wrong = 300, 0.0
    for down_count, up_count in itertools.product(range(30), repeat=2):
        if not down_count + up_count:
            continue
        chance = multinomial.pmf([up_count, down_count, n - up_count - down_count], n, [up, down, 1 - up - down])
        value = (up_count - down_count) / n
        half = 1.96 * math.sqrt((up_count + down_count) / n - value**2) / math.sqrt(n)
        mcnemar = McNemar(down_count, up_count, 1.0)
        out = limits.of_paired(
            estimate(value, value - half, value + half, se=half, n=n), 0.95, reach=1.0, differing=up_count + down_count, unit=1.0, mcnemar=mcnemar
        )
        wrong += chance * (out.low > up - down + 1e-9)
    assert wrong <= 0.025


def test_few_docs_or_clusters_that_differ_cannot_exclude_zero():
    out = limits.of_paired(estimate(-0.01, -0.014, -0.006), 0.95, reach=1.0, differing=5)  # 2 · 2⁻⁵ = 0.0625
    assert out.high == 0.0
    t5 = 2.5706 / 1.9600 * math.sqrt(6 / 5)  # t tables, 5 degrees of freedom
    assert limits.of_paired(estimate(-0.01, -0.014, -0.006), 0.95, reach=1.0, differing=6).high == pytest.approx(-0.01 + 0.004 * t5, abs=1e-5)


def test_unpaired_is_newcombes_tenth_method():
    """Newcombe (1998), table II, row 1: 56/70 − 48/80 = 0.20, 95 % interval 0.0524 to 0.3339 (from Wilson intervals)."""
    wilson = [binomtest(k, n).proportion_ci(0.95, "wilson") for k, n in ((56, 70), (48, 80))]
    (one, two) = (estimate(v, w.low, w.high) for v, w in zip((0.8, 0.6), wilson, strict=True))
    out = limits.of_unpaired(two, one)
    assert (out.value, out.low, out.high) == (pytest.approx(0.2), pytest.approx(0.0524, abs=1e-4), pytest.approx(0.3339, abs=1e-4))
    assert "the baseline" in limits.of_unpaired(estimate(None), one).reason
    assert limits.of_unpaired(estimate(0.5, se=None), one).low is None


# --- distances from 0 -----------------------------------------------------------------------------


def test_the_distance_of_a_number_from_zero():
    for ends, expected in (((0.1, 0.3), (0.1, 0.3)), ((-0.3, -0.1), (0.1, 0.3)), ((-0.3, 0.1), (0.0, 0.3))):
        out = limits.magnitude(estimate(sum(ends) / 2, *ends))
        assert (out.low, out.high) == pytest.approx(expected)


@given(st.tuples(TENTHS, TENTHS), st.tuples(TENTHS, TENTHS), st.tuples(TENTHS, TENTHS))
def test_the_difference_of_distances_covers_all_that_the_intervals_allow(first, second, change):
    ends = [sorted(pair) for pair in (first, second, change)]
    one, two, diff = (estimate(sum(pair) / 2, *pair) for pair in ends)
    out = limits.magnitude_difference(one, two, diff)
    inside = [abs(b) - abs(a) for a, b in itertools.product(np.linspace(*ends[0], 9), np.linspace(*ends[1], 9)) if ends[2][0] <= b - a <= ends[2][1]]
    assert all(out.low - 1e-9 <= value <= out.high + 1e-9 for value in inside)


def test_the_difference_of_distances_where_signs_are_clear_is_the_difference():
    one, two, diff = estimate(-0.2, -0.3, -0.1), estimate(-0.3, -0.4, -0.15), estimate(-0.1, -0.15, -0.05)
    out = limits.magnitude_difference(one, two, diff)
    assert (out.value, out.low, out.high) == (pytest.approx(0.1), pytest.approx(0.05), pytest.approx(0.15))
    risen = limits.magnitude_difference(estimate(0.0, -0.05, 0.05), estimate(0.5, 0.4, 0.6), estimate(0.5, 0.4, 0.6))
    assert risen.low == pytest.approx(0.35)  # 0.4 from 0 at least, less 0.05 at most


# --- power ----------------------------------------------------------------------------------------


def test_the_detectable_effect():
    assert limits.smallest(0.01, 0.95, 1000) == pytest.approx(0.01 * (1.959964 + 0.841621), abs=1e-6)
    t = 0.01 * math.sqrt(10 / 9) * 2.262157 / 1.959964
    assert limits.smallest(0.01, 0.95, 10) == pytest.approx(t * (1.959964 + 0.841621), rel=1e-4)
    assert limits.smallest(0.0, 0.95, 100) is None


def test_the_index_where_no_doc_differs():
    """FIP 0.8, MPP 0.6; a share U of docs may differ: 1 − MPP'/FIP' at the worst is 1 − 0.6/0.8 ± the bound, at most."""
    rare = limits.rarely(500, 0.95)
    bound = limits.of_same_index(estimate(0.25, 0.25, 0.25, n=500), estimate(0.8, 0.8, 0.8, n=500), 1.0, 0.95)
    worst = max(abs((1 - m / f) - 0.25) for f in (0.8 - rare, 0.8 + rare) for m in (0.6 - rare, 0.6 + rare))
    assert worst <= bound <= 1.1 * worst
    assert limits.of_same_index(estimate(0.25, 0.2, 0.3, n=5), estimate(0.4, 0.3, 0.5, n=5), 1.0, 0.95) is None
