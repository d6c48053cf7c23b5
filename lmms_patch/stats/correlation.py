"""Agreement of two columns of numbers: Pearson's r with Fisher's interval, Spearman's rho, percentile ranks.

NumPy only.

Sources: Fisher, On the "probable error" of a coefficient of correlation (1921): z = atanh r is nearly normal with
standard error 1/√(n − 3). Spearman (1904), ties at their mean rank. RCI paper (https://arxiv.org/abs/2509.23673),
figures 2 and 5 (r over benchmarks) and 3.2 (percentile calibration).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from lmms_patch.stats.intervals import normal_quantile
from lmms_patch.stats.resample import LEVEL, Array, Estimate

FEWEST = 4
"""The fewest pairs: with 3, Fisher's standard error is infinite."""


def pearson(x: ArrayLike, y: ArrayLike, *, level: float = LEVEL) -> Estimate:
    """Return Pearson's r with Fisher's interval.

    Formula: tanh(atanh r ± z/√(n − 3)). The interval assumes that the pairs are a random sample of a bivariate normal
    distribution.

    Args:
        x: shape (n,), finite.
        y: shape (n,), finite.
        level: nominal coverage, 0..1.

    Returns:
        r in −1..1, n the number of pairs. The value is None, with the reason, under 4 pairs or where a column does not
        vary. There is no interval at r = ±1.

    Raises:
        ValueError: the columns differ in length, or a number is not finite.

    >>> pearson([1, 2, 3, 4], [2, 4, 6, 9]).value.__round__(4)
    0.9944
    """
    a, b = _columns(x, y)
    nothing = Estimate.nothing(len(a), level=level)
    if len(a) < FEWEST:
        return dataclasses.replace(nothing, reason=f"{len(a)} pairs: a correlation needs {FEWEST}")
    if (a == a[0]).all() or (b == b[0]).all():
        return dataclasses.replace(nothing, reason="a column that does not vary has no correlation")
    r = _r(a, b)
    # columns on a line give an r of 1 only up to float error, and atanh(1) is infinite
    if 1 - abs(r) < 1e-12:
        return dataclasses.replace(
            nothing, value=math.copysign(1.0, r), reason="the columns lie on a line: no interval"
        )
    half = normal_quantile((1 + level) / 2) / math.sqrt(len(a) - 3)
    return dataclasses.replace(
        nothing, value=r, low=math.tanh(math.atanh(r) - half), high=math.tanh(math.atanh(r) + half)
    )


def spearman(x: ArrayLike, y: ArrayLike) -> float | None:
    """Return Spearman's rho: Pearson's r of the ranks, ties at their mean rank.

    None under 4 pairs or where a column does not vary.

    Args:
        x: shape (n,), finite.
        y: shape (n,), finite.

    >>> spearman([1, 2, 3, 4], [1, 4, 9, 17])
    1.0
    """
    a, b = _columns(x, y)
    if len(a) < FEWEST or (a == a[0]).all() or (b == b[0]).all():
        return None
    r = _r(ranks(a), ranks(b))
    # columns in the same order, or in the opposite one, may come out a trace off
    return math.copysign(1.0, r) if 1 - abs(r) < 1e-12 else r


def ranks(values: ArrayLike) -> Array:
    """Return ranks from 1, ties at their mean rank; shape (n,).

    >>> ranks([0.3, 0.1, 0.3]).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, counts = np.unique(np.asarray(values, float), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Array = ((2 * last - counts + 1) / 2)[place]
    return means


def _columns(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    a, b = np.asarray(x, float), np.asarray(y, float)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"two columns of one length are needed; these have shapes {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("a correlation needs finite numbers")
    return a, b


def _r(a: Array, b: Array) -> float:
    # Scaled first: the squares of very small or large numbers would be 0 or inf.
    a, b = (column - column.mean() for column in (a, b))
    a, b = (column / np.abs(column).max() for column in (a, b))
    # float error may put it a trace outside
    return float(np.clip((a @ b) / math.sqrt((a @ a) * (b @ b)), -1, 1))
