"""What guesses earn, by enumeration, and what windows between the cells answer, in simulations whose truth is known."""

import itertools
import math

import numpy as np
import pytest

from lmms_patch.stats import luck
from lmms_patch.stats.luck import luck_ceiling
from tests.sizes import size

# --- the analytic ceiling ---------------------------------------------------------------------------------------


def test_ceiling_of_luck_by_enumeration():
    """Four coins: 15 of 16 outcomes hold a right guess. Nine guesses of 4 options: 1 - (3/4)^9."""
    assert luck_ceiling(np.array([0.5]), 4) == pytest.approx(15 / 16)
    assert luck_ceiling(np.array([0.25]), 9) == pytest.approx(1 - 0.75**9)
    assert luck_ceiling(np.array([0.5, 0.25]), 4) == pytest.approx((15 / 16 + 1 - 0.75**4) / 2)
    assert luck_ceiling(np.array([1.0, 0.0]), 9) == 0.5


@pytest.mark.parametrize(("options", "tries"), [(2, 2), (3, 4), (4, 5), (2, 9)])
def test_the_luck_of_k_segments_by_every_way_to_guess(options, tries):
    ways = list(itertools.product(range(options), repeat=tries))  # option 0 is right
    assert luck_ceiling(np.array([1 / options]), tries) == pytest.approx(sum(0 in way for way in ways) / len(ways))


def test_docs_may_have_other_numbers_of_tries():
    assert luck_ceiling(np.array([0.5, 0.5]), np.array([1, 2])) == pytest.approx((0.5 + 0.75) / 2)


# --- windows between the cells --------------------------------------------------------------------


def answers_of_windows(rng, docs, guesses, *, wrong_is_read=False, prior=0.0):
    """Return golds, and the options that a made-up model names on its own and on a wrong image, shape (docs, 26).

    The first view is the full image, the next nine are cells, the others windows. A quarter of the docs is known from a
    cell, 7/16 from windows only, the rest from the full image alone. Where the model knows nothing it names the gold
    with probability ``prior``, else one of four options with probability ``guesses``, else nothing (-1).
    """
    kind, gold = rng.choice(3, docs, p=(4 / 16, 7 / 16, 5 / 16)), rng.integers(0, 4, docs)
    every = np.arange(docs)

    def seen():
        named = np.where(rng.random((docs, 26)) < guesses, rng.integers(0, 4, (docs, 26)), -1)
        return np.where(rng.random((docs, 26)) < prior, gold[:, None], named)

    own, wrong = seen(), seen()
    for out, whose in ((own, every), (wrong, rng.permutation(docs)))[: 1 + wrong_is_read]:
        out[:, 0] = gold[whose]
        cell, window = rng.integers(1, 10, docs), rng.integers(10, 26, docs)
        from_cell, from_window = kind[whose] == 0, kind[whose] <= 1
        out[every[from_cell], cell[from_cell]] = gold[whose][from_cell]
        out[every[from_window], window[from_window]] = gold[whose][from_window]
    return gold, own, wrong


def of_windows(gold, own, wrong, *, full, views, habits=True):
    """Return the input of the correction over some views of ``answers_of_windows``, with or without the full image."""
    docs, cols = len(gold), [*views, *([0] if full else [])]
    right, right_wrong = own == gold[:, None], wrong == gold[:, None]

    def rows(scores):
        return np.column_stack([scores.astype(float), np.ones(docs)])

    def named(view):
        return np.stack([(view[:, cols] == option).sum(axis=1) for option in range(4)], axis=1)

    said = luck.Habits(
        np.full(docs, 4), gold, named(own), own[:, 0], np.full(docs, len(cols)), named(wrong), wrong[:, 0],
        np.full((docs, 4), math.nan), np.ones(docs, bool),
    )  # fmt: skip
    return luck.Measured(
        rows(right[:, 0]), rows(right[:, cols].max(axis=1)), rows(np.ones(docs)), rows(right_wrong[:, 0]),
        rows(right_wrong[:, cols].max(axis=1)), np.ones(docs, bool), np.zeros(docs, np.intp), ("mc4",),
        np.array([[0.0, 1.0], [1.0, 1.0]]), 1.0, said if habits else None,
    )  # fmt: skip


@pytest.mark.parametrize(
    "world",
    [
        pytest.param({"guesses": 1 / 8}, id="a wrong picture is answered as a cell that shows nothing"),
        pytest.param({"guesses": 1 / 8, "wrong_is_read": True}, id="wrong pictures are read"),
        pytest.param({"guesses": 0.1, "prior": 0.02}, id="the text alone says a little"),
    ],
)
def test_windows_answer_what_lies_on_lines(world):
    """Planted: 7/16 of all docs, and 7/12 of those that no cell answers, are known from a window between the cells."""
    rng, runs, inside, values = np.random.default_rng(5), size(10, 100), [], []
    for _ in range(runs):
        given = answers_of_windows(rng, 400, **world)
        cells, windows, *with_full = (
            of_windows(*given, full=full, views=views) for full in (0, 1) for views in (range(1, 10), range(1, 26))
        )
        rise, share = luck.on_lines(cells, windows, tuple(with_full), draws=200)
        inside.append((rise.low <= 7 / 16 <= rise.high, share.low <= 7 / 12 <= share.high))
        values.append((rise.value, share.value))
    mean, spread = np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / math.sqrt(runs)
    assert np.all(np.abs(mean - (7 / 16, 7 / 12)) < 4 * spread + 0.01)
    assert np.mean(inside, axis=0).min() >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs)


def test_where_no_doc_needs_more_than_a_cell_there_is_no_share():
    """The text answers all: a cell, a window and the full image are right alike."""
    rng = np.random.default_rng(6)
    given = rng.integers(0, 4, 300), *(rng.integers(0, 4, (300, 26)) for _ in "ab")
    cells, windows, *with_full = (
        of_windows(*given, full=full, views=views) for full in (0, 1) for views in (range(1, 3), range(1, 4))
    )
    assert luck.on_lines(cells, windows, tuple(with_full), draws=200)[1].value is None
