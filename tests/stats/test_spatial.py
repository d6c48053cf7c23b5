import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lmms_patch.stats import spatial
from lmms_patch.stats.spatial import cell_shares, holm, win_share
from tests.sizes import examples, size


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
    stream, runs = np.random.default_rng(0), size(120, 300)
    p = [cell_shares((stream.random((40, 9)) < 0.3).astype(float), permutations=99, seed=run).p for run in range(runs)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p) <= level) == pytest.approx(level, abs=4 * (level * (1 - level) / runs) ** 0.5)


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
@examples(40)
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


def test_docs_of_a_cluster_are_one_observation():
    """40 copies of one doc that is right in cell 1 alone: one image, so any of 4 cells would have looked as uneven."""
    scores = np.tile([1.0, 0, 0, 0], (40, 1))
    assert cell_shares(scores).p == 0.001
    assert cell_shares(scores, ["a"] * 40).p == 1.0


# --- the turn test ------------------------------------------------------------------------------------


def exact_p(scores, clusters=None):
    """The p-values by the definition: every way to turn each cluster's docs together by 0..n²−1 places in reading order.

    Returns:
        p over all cells (sum of squared distances from even), and p of each cell (distance from even), before Holm.
    """
    rows, cells = [list(map(float, row)) for row in scores], len(scores[0])
    labels = list(range(len(rows))) if clusters is None else list(clusters)
    names = sorted(set(labels))
    even = sum(map(sum, rows)) / cells
    at_least, further, ways = 0, [0] * cells, 0

    def sums(turns):
        out = [0.0] * cells
        for row, label in zip(rows, labels, strict=True):
            for c in range(cells):
                out[(c + turns[names.index(label)]) % cells] += row[c]
        return out

    observed = sums([0] * len(names))
    spread = sum((x - even) ** 2 for x in observed)
    for turns in itertools.product(range(cells), repeat=len(names)):
        drawn = sums(turns)
        ways += 1
        at_least += sum((x - even) ** 2 for x in drawn) >= spread - 1e-9
        for c in range(cells):
            further[c] += abs(drawn[c] - even) >= abs(observed[c] - even) - 1e-9
    return at_least / ways, [count / ways for count in further]


SMALL = {
    "2x2, three docs": ([[1, 0, 0, 0], [1, 1, 0, 0], [0.7, 0.1, 0.2, 0]], None),
    "2x2, four equal docs (counted, not turned one by one)": ([[1, 0, 0, 0]] * 4, None),
    "2x2, eight docs of two kinds, some that say nothing": (
        [[1, 0, 0, 0]] * 3 + [[1, 0, 1, 0]] * 2 + [[1, 1, 1, 1]] * 2 + [[0, 0, 0, 0]],
        None,
    ),
    "2x2, three clusters of two": (
        [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0.5, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]],
        list("aabbcc"),
    ),
    "3x3, two docs": ([[0, 0, 0, 0, 1, 0.5, 0, 0, 0], [0, 0.3, 0, 0, 1, 0, 0, 0, 0]], None),
    "3x3, three docs": ([[0, 0, 0, 0, 1, 1, 0, 0, 0], [0, 1, 0, 0, 1, 0, 0, 0, 0], [1, 0, 0, 0, 1, 0, 0, 0, 0]], None),
    "five segments in a row, three docs": ([[0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 0, 0.5]], None),
    "4x4, two docs": ([[0] * 5 + [1, 1] + [0] * 9, [0] * 5 + [1, 0] + [0] * 8 + [1]], None),
}


@pytest.mark.parametrize("name", SMALL)
def test_turns_against_the_enumeration_of_all_turns(name):
    """With 19,999 random turns a p-value of 1/4 has a standard error of 0.003."""
    scores, clusters = SMALL[name]
    p, p_cells = exact_p(scores, clusters)
    found = cell_shares(scores, clusters, permutations=19_999, seed=1)
    assert found.p == pytest.approx(p, abs=0.015)
    assert found.p_cells.tolist() == pytest.approx(holm(p_cells).tolist(), abs=0.015 * len(p_cells))


def test_the_smallest_p_value_counts_the_data_as_one_permutation():
    """(0 + 1) / (19 + 1); Phipson & Smyth 2010: a permutation p-value is never 0."""
    scores = np.zeros((200, 9))
    scores[:, 4] = 1
    assert cell_shares(scores, permutations=19).p == pytest.approx(1 / 20)


@pytest.mark.parametrize("layout", ["ring", "torus"])
def test_p_values_are_flat_where_right_cells_hang_together(layout):
    """The null of the test: each doc is right in a random cell and its neighbours, no place is special.

    On the ring neighbours follow each other in reading order, as the turns have it; on the torus they are above, below
    and beside (the edges meet), which turns do not copy exactly. A shuffle of single cells would say p < 0.05 more
    often than that.
    """
    stream, runs, docs = np.random.default_rng(3), size(120, 300), 40
    beside = {"ring": [(0, 0), (0, 1), (0, -1)], "torus": [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]}[layout]
    p = []
    for run in range(runs):
        scores = np.zeros((docs, 9))
        for doc, at in enumerate(stream.integers(0, 9, docs)):
            for down, right in beside:
                cell = (at + right) % 9 if layout == "ring" else (at // 3 + down) % 3 * 3 + (at % 3 + right) % 3
                scores[doc, cell] = 1
        p.append(cell_shares(scores, permutations=99, seed=run).p)
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p) <= level) == pytest.approx(level, abs=4 * (level * (1 - level) / runs) ** 0.5)


def test_p_values_are_flat_where_docs_share_images():
    """30 images of four questions each, all four right in the same random cell: without clusters the test would be far too sure."""
    stream, runs = np.random.default_rng(8), size(80, 200)
    images = np.arange(120) // 4
    kept, lost = [], []
    for run in range(runs):
        scores = np.eye(4)[stream.integers(0, 4, 30)][images]
        kept.append(cell_shares(scores, images, permutations=99, seed=run).p)
        lost.append(cell_shares(scores, permutations=99, seed=run).p)
    assert np.mean(np.array(kept) <= 0.1) == pytest.approx(0.1, abs=4 * (0.1 * 0.9 / runs) ** 0.5)
    assert np.mean(np.array(lost) <= 0.1) > 0.4


def test_blocks_of_permutations_are_all_made(monkeypatch):
    """One permutation at a time, as for very many docs: the same p-value, up to chance."""
    scores = np.random.default_rng(2).random((30, 9))
    whole = cell_shares(scores, permutations=199).p
    monkeypatch.setattr(spatial, "_BLOCK", 1)
    assert cell_shares(scores, permutations=199).p == pytest.approx(whole, abs=0.15)


# --- properties -----------------------------------------------------------------------------------------

nine = arrays(float, st.tuples(st.integers(1, 15), st.just(9)), elements=st.sampled_from([0.0, 0.0, 0.3, 1.0]))


@given(nine, st.randoms())
@examples(40)
def test_the_order_of_docs_changes_no_share(scores, shuffler):
    order = list(range(len(scores)))
    shuffler.shuffle(order)
    one, two = cell_shares(scores, permutations=9), cell_shares(scores[order], permutations=9)
    if one.score is None:
        assert two.score is None
        return
    assert two.score.tolist() == pytest.approx(one.score.tolist())
    assert two.win.tolist() == pytest.approx(one.win.tolist())
    assert two.centre == pytest.approx(one.centre)


@given(
    st.lists(st.sampled_from([(1.0, 0, 0, 0), (0, 1.0, 0, 0), (1.0, 0, 1.0, 0)]), min_size=12, max_size=30),
    st.randoms(),
)
@examples(20)
def test_the_order_of_docs_changes_no_p_value_where_docs_are_counted(rows, shuffler):
    mixed = list(rows)
    shuffler.shuffle(mixed)
    assert cell_shares(rows, permutations=49).p == cell_shares(mixed, permutations=49).p


@given(nine)
@examples(60)
def test_wins_by_their_definition(scores):
    """Each doc in which a cell scores gives 1/k to each of its k best cells; a cell that is never best gets nothing."""
    wins, docs = [0.0] * 9, 0
    for row in scores.tolist():
        best = [c for c in range(9) if row[c] == max(row)]
        if max(row) > 0:
            docs += 1
            for c in best:
                wins[c] += 1 / len(best)
    found = win_share(scores)
    if not docs:
        assert found is None
    else:
        assert found.tolist() == pytest.approx([w / docs for w in wins])


@given(nine, st.integers(0, 9))
@examples(40)
def test_a_cell_that_never_scores_changes_no_win(scores, place):
    found, wider = win_share(scores), win_share(np.insert(scores, place, 0.0, axis=1))
    if found is None:
        assert wider is None
    else:
        assert wider[place] == 0
        assert np.delete(wider, place).tolist() == found.tolist()


@given(nine, st.integers(0, 8))
@examples(30)
def test_turning_all_docs_alike_turns_the_shares(scores, places):
    one, two = cell_shares(scores, permutations=9), cell_shares(np.roll(scores, places, axis=1), permutations=9)
    if one.score is not None:
        assert two.score.tolist() == pytest.approx(np.roll(one.score, places).tolist())
        assert two.win.tolist() == pytest.approx(np.roll(one.win, places).tolist())


@given(nine, st.sampled_from([1 / 128, 64.0]))
@examples(30)
def test_the_scale_of_the_metric_changes_nothing(scores, scale):
    """Powers of two, so that floats are exact."""
    one, two = cell_shares(scores, permutations=19), cell_shares(scores * scale, permutations=19)
    if one.score is not None:
        assert two.score.tolist() == one.score.tolist()
        assert (two.p, two.p_cells.tolist()) == (one.p, one.p_cells.tolist())


@pytest.mark.parametrize(
    "rows", [[[0.003] + [0] * 8], [[0.3] + [0] * 8] * 7, [[0.003, 0, 0, 0]] * 7, [[0, 0.3, 0.6, 0.6, 0.6, 0, 0, 0, 0]]]
)
def test_turns_of_one_image_are_all_as_uneven(rows):
    """One cluster: every turn has the same spread, so p is 1 whatever the scores."""
    assert cell_shares(rows, ["a"] * len(rows)).p == 1.0


@given(st.lists(st.floats(0.0001, 1), min_size=1, max_size=9))
def test_holm_by_its_definition(p):
    """Holm 1979: sorted p(1) <= ... <= p(m); the adjusted one is max over j <= i of (m - j + 1) p(j), at most 1."""
    m, ordered = len(p), sorted(p)
    found = holm(p)
    for value, adjusted in zip(p, found, strict=True):
        rank = max(i for i, other in enumerate(ordered) if other == value)
        assert adjusted == pytest.approx(min(1.0, max((m - j) * ordered[j] for j in range(rank + 1))))


@pytest.mark.parametrize(
    ("shares", "shape", "centre"),
    [
        ([0.1, 0.2, 0.4, 0.2, 0.1], (1, 5), 2.0),  # the middle one of five: 0.4 of the score on 1/5 of the clip
        ([0.4, 0.1, 0.1, 0.4], (1, 4), 0.4),  # the middle two of four: 0.2 on 1/2
        ([0.4, 0.1, 0.1, 0.4], (2, 2), None),  # every cell touches the middle
        ([0.3, 0.7], (1, 2), None),
        ([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], (3, 3), 9.0),
        ([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], (1, 9), 9.0),
        ([0.2] * 5, None, 1.0),  # five cells are no square, so they stand in a row
    ],
)
def test_the_middle_of_a_row_is_its_middle_segments(shares, shape, centre):
    found = cell_shares([shares], shape=shape, permutations=9)
    assert found.score == pytest.approx(shares)
    assert found.centre is None if centre is None else found.centre == pytest.approx(centre)
