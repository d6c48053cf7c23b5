"""Out-of-fold statistics against a double loop over rows, and: what must not be read is not read."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.tst.target_encoding import INNER_FOLDS, PRIOR, Family, inner_folds, moments, rates
from tests.sizes import examples

WEIGHT = 3.0
"""Of the prior, in items: what the module says it is."""


def visible(row, inner):
    """The rows whose targets a row may see: training rows, but for those of its own inner fold."""
    return [other for other in range(len(inner)) if inner[other] >= 0 and inner[other] != inner[row]]


def by_key(family, row, target, inner):
    """For each key of a row the targets that it may see, one per entry."""
    own = [key for r, key in zip(family.row.tolist(), family.key.tolist(), strict=True) if r == row]
    allowed = set(visible(row, inner))
    entries = list(zip(family.row.tolist(), family.key.tolist(), strict=True))
    return [[target[r] for r, k in entries if k == key and r in allowed] for key in own]


def slow_rates(family, target, inner):
    out = {name: [] for name in (("rate", "count") if family.single else ("rate", "count", "mean", "max"))}
    for row in range(len(inner)):
        seen = by_key(family, row, target, inner)
        count = sum(map(len, seen))
        out["rate"].append(sum(map(sum, seen)) / (count + WEIGHT))
        out["count"].append(math.log(1 + count))
        if not family.single:
            shrunk = [sum(own) / (len(own) + WEIGHT) for own in seen]
            out["mean"].append(sum(shrunk) / max(1, len(shrunk)))
            out["max"].append(max(shrunk, default=0.0))
    return out


def slow_moments(family, target, inner):
    names = ("mean", "spread", "count") if family.single else ("mean", "spread", "count", "max", "min")
    out = {name: [] for name in names}
    for row in range(len(inner)):
        seen = by_key(family, row, target, inner)
        means = [sum(own) / (len(own) + WEIGHT) for own in seen]
        spreads = [math.sqrt(((np.var(own) if own else 0.0) * len(own) + WEIGHT) / (len(own) + WEIGHT)) for own in seen]
        out["mean"].append(sum(means) / max(1, len(seen)))
        out["spread"].append(sum(spreads) / max(1, len(seen)))
        out["count"].append(math.log(1 + sum(map(len, seen))))
        if not family.single:
            out["max"].append(max(means, default=0.0))
            out["min"].append(min(means, default=0.0))
    return out


@st.composite
def worlds(draw):
    rows = draw(st.integers(1, 14))
    single = draw(st.booleans())
    counts = [1] * rows if single else draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    row = np.repeat(np.arange(rows), counts)
    key = np.array(draw(st.lists(st.integers(0, 3), min_size=len(row), max_size=len(row))), np.uint64)
    inner = np.array(draw(st.lists(st.integers(-1, INNER_FOLDS - 1), min_size=rows, max_size=rows)))
    target = np.array(draw(st.lists(st.floats(-3, 3), min_size=rows, max_size=rows)))
    return Family("f", row, key, single), target, inner


@pytest.mark.parametrize(("fast", "slow"), [(rates, slow_rates), (moments, slow_moments)])
@examples(150)
@given(world=worlds())
def test_against_a_double_loop(fast, slow, world):
    found, expected = fast(*world), slow(*world)
    assert set(found) == set(expected)
    for name, values in found.items():
        np.testing.assert_allclose(values, expected[name], atol=1e-6, err_msg=name)


@pytest.mark.parametrize("fast", [rates, moments])
@examples(60)
@given(world=worlds(), noise=st.floats(0.5, 100))
def test_held_out_targets_and_those_of_the_own_inner_fold_are_never_read(fast, world, noise):
    family, target, inner = world
    before = fast(family, target, inner)
    for own in range(-1, INNER_FOLDS):
        changed = np.where(inner == own, target + noise, target)
        after = fast(family, changed, inner)
        deaf = np.ones(len(inner), bool) if own < 0 else inner == own
        for name in before:
            np.testing.assert_array_equal(before[name][deaf], after[name][deaf])
    spoilt = fast(family, np.where(inner < 0, np.inf, target), inner)
    assert all(np.isfinite(values).all() for values in spoilt.values())


def test_by_hand():
    """Key 7 on rows 0 (fold 0), 1 (fold 1), 2 (held out). Row 0 sees row 1: 0.5 / (1 + 3).

    Row 2 sees both: 0 / (2 + 3).
    """
    family = Family("f", np.arange(3), np.full(3, 7, np.uint64), single=True)
    found = rates(family, np.array([-0.5, 0.5, 99.0]), np.array([0, 1, -1]))
    assert PRIOR == 3
    np.testing.assert_allclose(found["rate"], [0.125, -0.125, 0.0])
    np.testing.assert_allclose(found["count"], np.log([2, 2, 3]))


def test_a_row_without_keys_has_no_statistics():
    found = rates(Family("f", np.array([1]), np.array([5], np.uint64)), np.ones(3), np.array([0, 1, -1]))
    assert all(found[name][[0, 2]].tolist() == [0, 0] for name in found)


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 11), st.booleans()), min_size=1, max_size=60), st.integers(0, 9))
def test_inner_folds_keep_groups_whole_and_even(rows, seed):
    groups = np.array([group for group, _ in rows])
    train = np.flatnonzero([inside for _, inside in rows])
    inner = inner_folds(train, groups, len(rows), seed)
    assert (inner[np.setdiff1d(np.arange(len(rows)), train)] == -1).all()
    fold_of = {}
    for place in train:
        assert 0 <= inner[place] < INNER_FOLDS
        assert fold_of.setdefault(groups[place], inner[place]) == inner[place]
    if fold_of:
        assert np.ptp(np.bincount(list(fold_of.values()), minlength=INNER_FOLDS)) <= 1
    np.testing.assert_array_equal(inner, inner_folds(train, groups, len(rows), seed))


def test_the_groups_of_held_out_items_do_not_change_the_inner_folds():
    train = np.arange(20)
    groups = np.arange(30)
    other = groups.copy()
    other[20:] = 0
    np.testing.assert_array_equal(inner_folds(train, groups, 30, 1)[train], inner_folds(train, other, 30, 1)[train])
