import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.errors import OptionError
from lmms_patch.present.ranking import (
    BY,
    Place,
    badness,
    by_of,
    change,
    folded,
    places,
)
from lmms_patch.stats.resample import Estimate


def estimate(value, low, high):
    return Estimate(value, None, low, high, 9, 9, 9)


def test_ranges_by_hand():
    """a [1, 2] lies below c [4, 5] and d [6, 7]; b [1.5, 4.5] overlaps a and c.

    D is above all: a 1-2, b 1-3, c 2-3, d 4.
    """
    found = places([(1, 2), (1.5, 4.5), (4, 5), (6, 7)])
    assert [(one.first, one.last) for one in found] == [(1, 2), (1, 3), (2, 3), (4, 4)]
    assert [str(one) for one in found] == ["1–2", "1–3", "2–3", "4"]
    assert {one.of for one in found} == {4}


def test_intervals_that_touch_overlap():
    assert [str(one) for one in places([(0, 1), (1, 2)])] == ["1–2", "1–2"]


def test_without_an_interval_any_place_is_possible_and_nobody_moves_because_of_it():
    found = places([(0, 1), (2, 3), (-math.inf, math.inf)])
    assert [(one.first, one.last) for one in found] == [(1, 2), (2, 3), (1, 3)]


def test_none_and_one():
    assert places([]) == []
    assert places([(0.0, 0.0)]) == [Place(1, 1, 1)]


numbers = st.integers(-5, 5).map(float)
intervals = st.tuples(numbers, numbers).map(lambda ends: (min(ends), max(ends)))


@given(st.lists(intervals, max_size=12))
def test_ranges_are_those_of_the_definition(ends):
    """Brute force: count, for each, who lies wholly below and who wholly above."""
    for one, place in zip(ends, places(ends), strict=True):
        better = sum(other[1] < one[0] for other in ends)
        worse = sum(other[0] > one[1] for other in ends)
        assert (place.first, place.last) == (1 + better, len(ends) - worse)
        assert 1 <= place.first <= place.last <= len(ends)


@given(st.lists(intervals, min_size=1, max_size=6), st.randoms())
def test_whatever_the_truth_within_the_intervals_the_true_rank_is_in_the_range(ends, random):
    truth = [random.uniform(*one) for one in ends]
    for value, place in zip(truth, places(ends), strict=True):
        better = sum(other < value for other in truth)
        as_good = sum(other <= value for other in truth)
        assert place.first <= 1 + better
        assert as_good <= place.last


FOLDED = [
    (-0.3, 0.1, (0, 0.3)), (-0.1, 0.3, (0, 0.3)), (0.1, 0.3, (0.1, 0.3)), (-0.3, -0.1, (0.1, 0.3)), (0, 0, (0, 0)),
    (0, 0.2, (0, 0.2)),
]  # fmt: skip


@pytest.mark.parametrize(("low", "high", "expected"), FOLDED)
def test_the_interval_of_a_distance_from_0(low, high, expected):
    assert folded(low, high) == pytest.approx(expected)


@given(numbers, numbers, st.floats(0, 1))
def test_a_value_in_an_interval_is_as_far_from_0_as_its_folded_interval_says(a, b, share):
    low, high = min(a, b), max(a, b)
    value = min(max(low + share * (high - low), low), high)
    near, far = folded(low, high)
    assert near <= abs(value) <= far


def test_direction():
    """Nearer 0 is better for an index; more is better for a score, unless its metric says less."""
    assert badness(estimate(-0.2, -0.3, -0.1), BY["index"], True) == (0.2, (0.1, 0.3))
    assert badness(estimate(0.7, 0.6, 0.8), BY["score"], True) == (-0.7, (-0.8, -0.6))
    assert badness(estimate(0.7, 0.6, 0.8), BY["score"], False) == (0.7, (0.6, 0.8))
    assert badness(estimate(0.7, None, None), BY["score"], True)[1] == (-math.inf, math.inf)


def test_names():
    assert by_of("rci") is by_of("pcri") is BY["index"]
    assert by_of("fip") is BY["score"]
    with pytest.raises(OptionError, match=r"'pcr'; did you mean 'pcri'\? allowed: fip, pcri, rci, steady, gap, mpp"):
        by_of("pcr")


# --- means ---


def test_a_change_needs_a_coarser_index_that_is_not_0():
    assert change(estimate(-0.2, -0.3, -0.1), estimate(-0.3, -0.4, -0.2)).value == pytest.approx(-0.5)
    assert (
        change(estimate(0.01, -0.1, 0.1), estimate(0.3, 0.2, 0.4)).reason
        == "the coarser index, 0.010, cannot be told from 0"
    )
    assert change(estimate(0.2, None, None), estimate(0.3, None, None)).value is None
    assert change(estimate(0.2, None, None), estimate(0.3, None, None), published=True).value == pytest.approx(0.5)
