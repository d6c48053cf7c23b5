"""Sizes of portions: about a minute of work, in whole batches, never less than eight of them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.harness.asking.in_portions import BATCHES, FIRST, GROWTH, SECONDS, Portions


def sizes(total, per_request, *batch):
    """The portions of a run whose requests take so many seconds each."""
    made, out = Portions(*batch), []
    while sum(out) < total:
        out.append(made.size(total - sum(out)))
        made.took(out[-1], out[-1] * per_request)
    return out


@given(st.integers(1, 10**4), st.floats(1e-4, 100), st.integers(1, 64))
def test_every_request_is_asked_once_and_portions_are_no_smaller_than_promised(total, per_request, batch):
    found = sizes(total, per_request, batch)
    assert sum(found) == total
    least = BATCHES * batch
    assert all(size >= least for size in found[:-1])
    assert found[-1] >= min(total, least / 2)
    assert all(size % batch == 0 for size in found[:-1])
    assert all(second <= 1.5 * max(GROWTH * first, least) + batch for first, second in itertools.pairwise(found))


@pytest.mark.parametrize("per_request", [0.01, 0.1, 1, 3])
def test_a_portion_takes_half_a_minute_to_two(per_request):
    """Where eight batches take less; the first portions only measure."""
    found = sizes(10**5, per_request, 1)[6:-1]
    assert found
    assert all(30 <= size * per_request <= 2 * SECONDS for size in found)


@pytest.mark.parametrize(
    ("told", "first"),
    [((None, None), FIRST), (("auto", None), FIRST), (("16", 4), 128), ((0, "x"), FIRST), ((-3, 2.5), FIRST)],
)
def test_batch_sizes_of_every_form(told, first):
    assert Portions(*told).size(10**6) == first
