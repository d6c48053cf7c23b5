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


def brute(low, high, least, most):
    """The definition, over every point of a fine grid inside the interval, in whole tenths."""
    points = range(round(10 * low), round(10 * high) + 1)
    words = []
    for limit, sign in ((least, 1), (most, -1)):
        if limit is not None:
            kept = [sign * p >= sign * round(10 * limit) for p in points]
            words.append("pass" if all(kept) else "fail" if not any(kept) else "inconclusive")
    return "fail" if "fail" in words else "inconclusive" if "inconclusive" in words else "pass"


@given(TENTHS, TENTHS, st.none() | TENTHS, TENTHS)
def test_the_verdict_is_the_definition(a, b, least, most):
    low, high = min(a, b), max(a, b)
    assert limits.call(low, high, (least, most)) == brute(low, high, least, most)
    assert limits.call(low, high, (most, None)) == brute(low, high, most, None)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.485, 0.495, "pass"),
        (0.48, 0.60, "pass"),  # an end on the edge, which 0.5 - 0.02 misses by a rounding error or not
        (0.47, 0.495, "inconclusive"),
        (0.40, 0.48, "inconclusive"),
        (0.40, 0.479, "fail"),
    ],
)
def test_the_edge(low, high, expected):
    assert limits.call(low, high, (0.5 - 0.02, None)) == expected
    assert limits.call(-high, -low, (None, -0.5 + 0.02)) == expected


def test_without_interval_never_pass_but_fail_where_the_number_alone_is_beyond():
    assert verdict(estimate(0.9, se=None), (0.5, None))[0] == "inconclusive"
    assert verdict(estimate(0.4, se=None), (0.48, None))[0] == "fail"
    assert verdict(estimate(0.9, se=None), (0.5, None), interval=False)[0] == "pass"
    assert verdict(estimate(None), (0.5, None)) == ("fail", "not defined")
    assert verdict(estimate(None), (0.5, None), interval=False)[0] == "fail"


def test_the_detectable_effect():
    assert limits.smallest(estimate(0.5), 0.95) == pytest.approx(0.01 * (1.959964 + 0.841621), abs=1e-6)
    t = 0.01 * math.sqrt(10 / 9) * 2.262157 / 1.959964
    assert limits.smallest(estimate(0.5, clusters=10), 0.95) == pytest.approx(t * (1.959964 + 0.841621), rel=1e-4)
    assert limits.smallest(estimate(0.5, se=0.0), 0.95) is None
