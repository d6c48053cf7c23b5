"""Shares of the score per cell of an image, or per segment of a clip, and a test of whether they could be even.

NumPy only.

Source: RCI paper (https://arxiv.org/abs/2509.23673), 3.3 (the share of correct predictions that each patch earns in
isolation).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike

from lmms_patch.stats.bounds import Count, Number, Share
from lmms_patch.stats.resample import Array, Ints, Seed, generator, totals

# with the data themselves these are 1,000, so p is a multiple of 0.001
PERMUTATIONS = 999
_BLOCK = 4_000_000
"""How many numbers are drawn at a time; bounds the memory, whatever the number of docs."""


Cells = Annotated[Array, Meta(extra_json_schema={"type": "array", "items": {"type": "number"}})]
"""A number for each cell, in reading order."""


@dataclass(frozen=True)
class CellShares:
    """How the score spreads over the cells of a grid.

    Cells row by row from the top left, segments in the order of time.

    Attributes:
        score: share of all the cells' score that each cell earns in isolation, sums to 1; None where nothing scores.
        win: share of the docs' best cells, ties split, sums to 1; None where no doc has a cell that scores.
        centre: the score share of the middle over its share of the area: 1 is even, above 1 favours the middle. The
            middle is one cell, or two in a direction where their number is even; None where that is all cells.
        p: permutation p-value of an even spread, over all cells; None where nothing scores.
        p_cells: permutation p-value of each cell's score share, Holm-corrected over cells.
        docs: number of docs.
    """

    score: Cells | None
    win: Cells | None
    centre: Number | None
    p: Share | None
    p_cells: Cells | None
    docs: Count


def cell_shares(
    scores: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    shape: tuple[int, int] | None = None,
    permutations: int = PERMUTATIONS,
    seed: Seed = 0,
) -> CellShares:
    """Return the share of the score that each cell earns, and test whether the shares could be even.

    The null hypothesis is that no place is special: rotating the cells of a doc by any number of places (row by row,
    the last becomes the first) changes nothing. A rotation keeps neighbours together, and a doc that is right in every
    cell, or in none, has no influence. All docs of a cluster (questions on one image) are rotated alike.

    Args:
        scores: shape (docs, cells), the score of each cell, 0 or more; docs with an unscored cell must be left out
        before.
        clusters: labels of shape (docs,); None: docs are independent.
        shape: rows and columns of the grid; None: a square where the number of cells allows it, else one row.
        permutations: number of random rotations of all docs; the smallest p-value is 1 / (permutations + 1).
        seed: see ``generator``.

    Raises:
        ValueError: a score is negative: shares of negative scores have no meaning.
    """
    array = np.asarray(scores, float)
    if array.size and array.min() < 0:
        raise ValueError("negative scores have no shares")
    total = array.sum()
    if not total:
        return CellShares(None, None, None, None, None, len(array))
    sums = array.sum(axis=0)
    drawn = _permuted_sums(totals(array, clusters), permutations, generator(seed))
    even = total / array.shape[1]
    tolerance = 1e-9 * total
    spread = ((sums - even) ** 2).sum()
    # a rotation that gives the same shares must count as one
    # that is as far from even, whatever float error says
    more = (((drawn - even) ** 2).sum(axis=1) >= spread - 1e-12 * total * total).sum()
    further = (np.abs(drawn - even) >= np.abs(sums - even) - tolerance).sum(axis=0)
    share = sums / total
    # the data are one permutation too (Phipson & Smyth 2010)
    p = (np.append(further, more) + 1) / (permutations + 1)
    side = math.isqrt(len(share))
    grid = share.reshape(shape or ((side, side) if side * side == len(share) else (1, -1)))
    return CellShares(share, win_share(array), _centre(grid), float(p[-1]), holm(p[:-1]), len(array))


def win_share(scores: Array) -> Array | None:
    """Return the share of docs in which each cell is best.

    Ties are split, docs in which no cell scores are left out.
    """
    scored = scores[scores.max(axis=1) > 0]
    if not len(scored):
        return None
    best = scored == scored.max(axis=1, keepdims=True)
    shares: Array = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def _centre(shares: Array) -> float | None:
    """Return the share of the middle of a grid over its share of the area; None where all cells are its middle."""
    rows, columns = (slice((side - 1) // 2, side // 2 + 1) for side in shares.shape)
    middle = shares[rows, columns]
    return None if middle.size == shares.size else float(middle.sum() * shares.size / middle.size)


def _permuted_sums(scores: Array, permutations: int, stream: np.random.Generator) -> Array:
    """Return column sums after rotating each row by a random number of places, shape (permutations, cells).

    Docs with the same rotation are summed first: one product of matrices then makes many permutations.
    """
    docs, cells = scores.shape
    varied = scores[scores.min(axis=1) < scores.max(axis=1)]
    out = np.tile(scores.sum(axis=0) - varied.sum(axis=0), (permutations, 1))
    rows, counts = np.unique(varied, axis=0, return_counts=True) if len(varied) else (varied, np.zeros(0, int))
    # so many permutations at a time that their table fits the memory
    step = max(1, _BLOCK // max(1, cells * len(rows) if len(rows) <= docs // 4 else cells * docs))
    for start in range(0, permutations, step):
        stop = min(permutations, start + step)
        # (block, turns, cells): sum of the rows that are turned so
        turned = _turns(rows, counts, varied, stop - start, stream)
        for turn in range(cells):
            out[start:stop] += np.roll(turned[:, turn], turn, axis=1)
    return out


def _turns(rows: Array, counts: Ints, varied: Array, block: int, stream: np.random.Generator) -> Array:
    """Return the sum of the rows that are rotated by each number of places, for each permutation, shape (block, turns, cells)."""
    cells = varied.shape[1]
    # equal rows are interchangeable: draw only how many of them take each rotation
    if len(rows) <= len(varied) // 4:
        taken = stream.multinomial(counts, np.full(cells, 1 / cells), size=(block, len(rows)))
        return np.asarray(np.einsum("brt,rc->btc", taken, rows, optimize=True), float)
    # bytes, since this is the largest array, and no grid has more than 81 cells
    turns = stream.integers(0, cells, size=(block, len(varied)), dtype=np.uint8)
    return np.stack([(turns == t) @ varied for t in range(cells)], axis=1)


def holm(p_values: ArrayLike) -> Array:
    """Return p-values adjusted by Holm's step-down correction, in the given order (Holm 1979).

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, float)
    order = np.argsort(p)
    # no adjusted p is smaller than that of a smaller p
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    out = np.empty_like(p)
    out[order] = np.minimum(steps, 1.0)
    return out
