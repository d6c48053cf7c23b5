"""RCI and PCRI: 1 − MPP_n / FIP (RCI paper eq. 1; PCRI paper §3)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from lmms_patch.stats.resample import LEVEL, Estimate, Seed, bootstrap


@dataclass(frozen=True)
class Index:
    """A spatial index at one grid.

    Attributes:
        value: 1 − MPP/FIP, without unit; None where it is not defined.
        gap: FIP − MPP, on the metric's own scale; None where either is missing.
        reason: why ``value`` is None; empty otherwise.
    """

    value: float | None
    gap: float | None
    reason: str = ""


def index(fip: float | None, mpp: float | None, *, higher_is_better: bool = True) -> Index:
    """RCI_n = 1 − MPP_n / FIP, or the reason why there is none. Never inf or nan.

    Args:
        fip: the native metric on full images (P_whole), on the metric's own scale.
        mpp: the native metric when each doc keeps the answer of its best cell (P_patch,n), same scale.
        higher_is_better: an index of a metric that should be low has no meaning.

    >>> index(0.8, 0.9).value
    -0.125
    """
    if fip is None or mpp is None or not (math.isfinite(fip) and math.isfinite(mpp)):
        missing = "FIP" if fip is None or not math.isfinite(fip) else "MPP"
        return Index(None, None, f"{missing} is not a number")
    gap = fip - mpp
    if not higher_is_better:
        return Index(None, gap, "the metric is better when lower: 1 - MPP/FIP has no meaning")
    if fip == 0:
        return Index(None, gap, "FIP is 0: nothing is answered on the full image")
    if fip < 0:
        return Index(None, gap, "FIP is negative: the ratio has no meaning")
    return Index(1 - mpp / fip, gap)


def interval(
    full: Sequence[float], best: Sequence[float], clusters: Sequence[Hashable] | None = None, *, level: float = LEVEL, seed: Seed = 0
) -> Estimate:
    """The index with its interval, for a metric that is a mean (or any multiple of one): 1 − Σ best / Σ full.

    Args:
        full: scalar of each doc on the full image, on the metric's own scale.
        best: scalar of each doc on its best cell, same docs, same order.
        clusters: cluster label of each doc; None: docs are independent.
        level: nominal coverage in 0..1.
        seed: of the bootstrap over docs, both scores of a doc together.

    >>> interval([1.0, 0.0] * 50, [1.0, 0.5] * 50).value
    -0.5
    """
    labels = None if clusters is None else np.unique([repr(label) for label in clusters], return_inverse=True)[1]
    return bootstrap(np.column_stack([full, best]), lambda sums: 1 - sums[..., 1] / sums[..., 0], labels, level=level, seed=seed)
