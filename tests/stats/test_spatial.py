import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lmms_patch.stats.spatial import cell_shares, holm, win_share


def test_shares_by_hand():
    """Three docs on 2x2: cells right are {1}, {1, 2}, none. Score 2/3 and 1/3; wins 1 + 1/2 and 1/2 of two docs."""
    found = cell_shares([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]])
    assert found.score.tolist() == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert found.win.tolist() == pytest.approx([0.75, 0.25, 0, 0])
    assert found.centre is None
    assert found.docs == 3


def test_p_values_against_all_permutations():
    """Three docs on 2 cells, enumerated: 2^3 ways to permute within docs."""
    scores = np.array([[1.0, 0.0], [1.0, 0.0], [0.7, 0.1]])
    ways = itertools.product([(0, 1), (1, 0)], repeat=3)
    sums = np.array([sum(row[list(order)] for row, order in zip(scores, orders, strict=True)) for orders in ways])
    even = scores.sum() / 2
    exact = np.mean(((sums - even) ** 2).sum(axis=1) >= ((scores.sum(axis=0) - even) ** 2).sum() - 1e-9)
    found = cell_shares(scores, permutations=9999)
    assert exact == 0.25
    assert found.p == pytest.approx(exact, abs=0.02)
    assert found.p_cells.tolist() == pytest.approx([2 * exact] * 2, abs=0.04)


def test_p_values_are_flat_where_cells_are_exchangeable():
    stream = np.random.default_rng(0)
    p = [cell_shares((stream.random((40, 9)) < 0.3).astype(float), permutations=99, seed=run).p for run in range(300)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p) <= level) == pytest.approx(level, abs=4 * (level * (1 - level) / 300) ** 0.5)


def test_a_task_that_lives_in_the_middle_is_found():
    scores = np.zeros((60, 9))
    scores[:, 4] = 1
    scores[:6, 0] = 1
    found = cell_shares(scores)
    assert found.p == 0.001
    assert found.p_cells[4] == pytest.approx(0.009)
    assert found.centre == pytest.approx(9 * 60 / 66)


def test_the_middle_of_an_even_grid_is_its_four_inner_cells():
    scores = np.zeros((1, 16))
    scores[0, [5, 6, 9, 10]] = 1
    assert cell_shares(scores, permutations=9).centre == pytest.approx(4.0)


def test_nothing_scored_has_no_shares():
    found = cell_shares(np.zeros((5, 4)))
    assert found.score is found.win is found.centre is found.p is None
    with pytest.raises(ValueError, match="negative"):
        cell_shares([[-1.0, 1.0]])


grids = arrays(float, st.tuples(st.integers(1, 12), st.just(4)), elements=st.sampled_from([0.0, 0.3, 1.0]))


@given(grids)
@settings(max_examples=40, deadline=None)
def test_properties(scores):
    found = cell_shares(scores, permutations=19)
    if found.score is None:
        return
    assert found.score.sum() == pytest.approx(1)
    assert found.win.sum() == pytest.approx(1)
    never_best = [c for c in range(4) if not any(row[c] == row.max() > 0 for row in scores)]
    assert all(found.win[c] == 0 for c in never_best)
    turned = cell_shares(scores[::-1], permutations=19)
    assert turned.score.tolist() == pytest.approx(found.score.tolist())
    wider = np.column_stack([scores, np.zeros(len(scores))])
    assert win_share(wider)[:4].tolist() == pytest.approx(found.win.tolist())


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.5]).tolist() == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.6, 0.9]).tolist() == [1.0, 1.0]


def test_docs_of_a_cluster_are_one_observation():
    """40 copies of one doc that is right in cell 1 alone: one image, so any of 4 cells would have looked as uneven."""
    scores = np.tile([1.0, 0, 0, 0], (40, 1))
    assert cell_shares(scores).p == 0.001
    assert cell_shares(scores, ["a"] * 40).p == 1.0
