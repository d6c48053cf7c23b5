"""Do the statistics keep what they promise? Made-up answers whose truth is known, many times over.

    python benchmarks/calibration.py [--runs 4000] [--only NAME ...] [--processes 2]

Every study draws answers from a model whose index is known by construction, computes the numbers with
the functions of ``lmms_patch`` themselves, and counts over the runs. It prints one Markdown table per
study; ``--only`` takes names of ``STUDIES``. The last column of a table holds the target and whether
it is met, where there is one. See docs/statistics.md for what follows from it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lmms_patch.stats.resample import Array, normal_quantile

SEED = 20
WITHIN, ICC = 0.6, 0.3
"""Correlations of the latent normals: of two readers of one doc, and of two docs of one cluster."""
ADJ_DRAWS = 500
"""Draws for the index with luck removed; the rows with 1000 show that it makes no difference."""
GRADES = (1.0, 0.9, 0.6, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""What the ten possible answers of a doc score where scores are graded (a consensus of ten people)."""

Ints = NDArray[np.intp]
Stream = np.random.Generator
Numbers = dict[str, float]


# --- made-up answers ----------------------------------------------------------------------------


def labels(stream: Stream, docs: int, size: int | str) -> Ints | None:
    """Cluster numbers: clusters of one size, or of ``uneven`` sizes (geometric, 5 on average); None for size 1."""
    if size == 1:
        return None
    if isinstance(size, int):
        return np.arange(docs) // size
    sizes = stream.geometric(1 / 5, docs)
    return np.repeat(np.arange(docs), sizes)[:docs]


@functools.cache
def quantile(p: float) -> float:
    """The normal quantile, remembered."""
    return normal_quantile(p)


def known(stream: Stream, shares: Sequence[float], docs: int, clusters: Ints | None = None) -> NDArray[np.bool_]:
    """What each of some readers knows: shape (docs, readers).

    Latent normals, correlated between readers of a doc and between docs of a cluster; the share of each
    reader is exact, whatever the correlations.
    """

    def normals(rows: int) -> Array:
        common = stream.standard_normal((rows, 1))
        return math.sqrt(WITHIN) * common + math.sqrt(1 - WITHIN) * stream.standard_normal((rows, len(shares)))

    z = normals(docs)
    if clusters is not None:
        z = math.sqrt(ICC) * normals(int(clusters.max()) + 1)[clusters] + math.sqrt(1 - ICC) * z
    return np.asarray(z < [quantile(share) for share in shares])


def two_scores(stream: Stream, docs: int, fip: float, mpp: float, clusters: Ints | None, graded: bool = False) -> Array:
    """Scores on the full image and on the best cell, shape (docs, 2), with these means; graded: 1, .9, .6, .3 or 0."""
    if not graded:
        return known(stream, (fip, mpp), docs, clusters).astype(float)
    part = 0.04  # the share of each of .9, .6 and .3, which adds 1.8 · part to the mean
    steps = [share for mean in (fip, mpp) for share in np.cumsum([mean - 1.8 * part, part, part, part]).tolist()]
    below = known_steps(stream, steps, docs, clusters)
    return np.asarray(below @ np.array([0.1, 0.3, 0.3, 0.3]))


def known_steps(stream: Stream, steps: Sequence[float], docs: int, clusters: Ints | None) -> NDArray[np.bool_]:
    """Two readers with four thresholds each: shape (docs, 2, 4)."""
    half = len(steps) // 2
    u = known_ranks(stream, docs, clusters)
    return np.asarray(u[:, :, None] < np.array([[quantile(s) for s in steps[:half]], [quantile(s) for s in steps[half:]]]))


def known_ranks(stream: Stream, docs: int, clusters: Ints | None) -> Array:
    """The latent normals of two readers, shape (docs, 2)."""
    mix = np.linalg.cholesky(np.array([[1, WITHIN], [WITHIN, 1]])).T
    z = stream.standard_normal((docs, 2)) @ mix
    if clusters is None:
        return np.asarray(z)
    return np.asarray(math.sqrt(ICC) * (stream.standard_normal((int(clusters.max()) + 1, 2)) @ mix)[clusters] + math.sqrt(1 - ICC) * z)
