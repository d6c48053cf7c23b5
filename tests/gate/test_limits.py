"""The verdict, and the intervals that it goes by: against brute force, published tables and derivations."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.gate import limits
from lmms_patch.gate.limits import judged as verdict
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
        with pytest.raises(ValueError, match="empty"):
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


def test_a_limit_that_is_missed_within_the_margin_is_said_to_be():
    assert verdict(estimate(-0.015, -0.019, -0.011), 0.0, None, 0.02) == (
        "pass",
        "the limit is missed, but by less than the margin",
    )
    assert verdict(estimate(-0.005, -0.015, 0.005), 0.0, None, 0.02) == ("pass", "")


@given(TENTHS, TENTHS, TENTHS, st.integers(0, 5).map(lambda k: k / 10))
def test_a_narrower_interval_never_turns_pass_into_fail(a, b, limit, margin):
    low, high = min(a, b), max(a, b)
    middle = (low + high) / 2
    calls = {
        limits.call(low, high, least=limit, margin=margin),
        limits.call(middle, middle, least=limit, margin=margin),
    }
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


# --- power ----------------------------------------------------------------------------------------


def test_the_detectable_effect():
    assert limits.smallest(estimate(0.5), 0.95) == pytest.approx(0.01 * (1.959964 + 0.841621), abs=1e-6)
    t = 0.01 * math.sqrt(10 / 9) * 2.262157 / 1.959964
    assert limits.smallest(estimate(0.5, clusters=10), 0.95) == pytest.approx(t * (1.959964 + 0.841621), rel=1e-4)
    assert limits.smallest(estimate(0.5, se=0.0), 0.95) is None
