"""RCI as a metric of Hugging Face ``evaluate``, for scores that were made outside the harness."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import datasets
import evaluate
import numpy as np

from lmms_patch.ask import kinds
from lmms_patch.ask.kinds import MIN_GRID
from lmms_patch.runs.numbers import to_json
from lmms_patch.stats import intervals
from lmms_patch.stats.gate import DELTA, gate, se_at_chance
from lmms_patch.stats.index import band, fragmentation, index, span
from lmms_patch.stats.resample import DRAWS, LEVEL, Estimate, cluster_numbers
from lmms_patch.stats.spatial import cell_shares

_DESCRIPTION = """\
Region Comprehension Index: RCI_n = 1 - MPP_n / FIP. FIP is the mean score on full images, MPP_n the mean of each item's best
score over the n x n cells of its image. Below 0: one cell is enough. Above 0: the whole image is needed. It means something
only where FIP beats an uninformed answer: give `chance`, and the index is None where it does not.
"""

_CITATION = """\
@article{agarwal2025rci,
  title={RCI: A Score for Evaluating Global and Local Reasoning in Multimodal Benchmarks},
  author={Agarwal, Amit and Patel, Hitesh Laxmichand and Panda, Srikant and Meghwani, Hansa and Singh, Jyotika and Dua, Karan
          and Li, Paul and Sheng, Tao and Ravi, Sujith and Roth, Dan},
  year={2025}
}
"""

_INPUTS = """
Args:
    full_scores: of each item, its score on the full image (0/1 or graded; higher is better).
    cell_scores: of each item, its scores on the n*n cells, row by row; the same n for all. An item with a NaN counts nowhere.
    in_time: whether these are the scores of the n segments of a clip, in the order of time (default False).
    chance: what an uninformed answer scores, on the same scale: the best constant answer, or 1/options. None: the gate is unknown.
    clusters: of each item, a label that items share which belong together (questions on one image). None: items are independent.
    scale: the full marks of the metric (default 1.0); the gate's margin is ``stats.gate.DELTA`` of it.
    level: coverage of the intervals (default 0.95).
    draws: bootstrap draws over items, clusters together (default 1000).
    seed: of bootstrap and permutations (default 0).
Returns:
    rci, rci_low, rci_high: the index with its interval; None where it means nothing (`reason` says why).
    band: its band by the paper (strong local ... strong global), and what the interval spans.
    fip, mpp, gap, gap_low, gap_high: on the scale of the scores. chance, gate (1 valid, 0 near chance, None unknown), threshold.
    n, n_docs, n_excluded, n_clusters.
    score_share, win_share: of each cell, row by row: share of all cells' score, share of best cells; p_uniform, p_cells (Holm).
    reason, warnings.
Examples:
    >>> from lmms_patch.metrics import RCI
    >>> found = RCI().compute(full_scores=[1.0, 0.0] * 50, cell_scores=[[1, 0, 0, 0], [0, 1, 0, 0]] * 50, chance=0.25)
    >>> found["rci"]
    -1.0
"""


class RCI(evaluate.Metric):  # type: ignore[misc] # evaluate has no types
    """RCI with its interval, gate and spatial shares; ``RCI().inputs_description`` says what goes in and comes out."""

    def _info(self) -> Any:
        features = {
            "full_scores": datasets.Value("float64"),
            "cell_scores": datasets.Sequence(datasets.Value("float64")),
        }
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(features),
        )

    def _compute(
        self,
        full_scores: Sequence[float],
        cell_scores: Sequence[Sequence[float]],
        chance: float | None = None,
        clusters: Sequence[Hashable] | None = None,
        scale: float = 1.0,
        level: float = LEVEL,
        draws: int = DRAWS,
        seed: int = 0,
        in_time: bool = False,
    ) -> dict[str, Any]:
        """Return FIP, MPP, the index and the gate for scores of full images and of cells (the parameters: see the class)."""
        n = _segments(cell_scores) if in_time else _grid(cell_scores)
        kind = kinds.TRCI if in_time else kinds.RCI
        full, cells = (
            np.asarray(full_scores, float),
            np.asarray(cell_scores, float).reshape(len(full_scores), kind.cells(n)),
        )
        if clusters is not None and len(clusters) != len(full):
            raise ValueError(f"clusters must have one label for each of the {len(full)} items, not {len(clusters)}")
        known = np.isfinite(full) & np.isfinite(cells).all(axis=1)
        labels = (
            None if clusters is None else cluster_numbers([c for c, keep in zip(clusters, known, strict=True) if keep])
        )
        rows = (
            np.column_stack([full[known], cells[known].max(axis=1), np.ones(known.sum())])
            if known.any()
            else np.zeros((0, 3))
        )

        ends = intervals.ends_of(rows[:, :2], scale)
        extremes = [[whole, best, 1.0] for whole in ends for best in ends]

        def estimate(statistic: Any, unseen: float = intervals.UNSEEN_OF_PAIRS) -> Estimate:
            return intervals.estimate(
                rows, statistic, labels, extremes=extremes, unseen=unseen, draws=draws, level=level, seed=seed
            )

        fip, mpp = (estimate(lambda s, k=k: s[..., k] / s[..., 2], intervals.UNSEEN) for k in (0, 1))
        # a share varies less the further it is above 1/2, so a lucky score would be held to too little
        se = None if fip.se is None else max(fip.se, se_at_chance(fip.se, fip.value, chance, scale))
        judged = gate(fip.value, chance, se=se, se_fip=fip.se, delta=DELTA * scale)
        point = index(fip.value, mpp.value, signed=bool((full[known] < 0).any() or (cells[known] < 0).any()))
        reason = judged.reason if judged.valid is False else point.reason
        value = fip.without() if reason else estimate(lambda s: 1 - s[..., 1] / s[..., 0])
        gap = fip.without() if judged.valid is False else estimate(lambda s: (s[..., 0] - s[..., 1]) / s[..., 2])
        shares = (
            cell_shares(cells[known], labels, shape=kind.shape(n), seed=seed)
            # shares of a sum to which some cells add less than nothing mean nothing
            if known.any() and cells[known].min() >= 0
            else None
        )
        warnings = [
            fragmentation(n, kind.cells(n)),
            value.reason,
            "" if judged.valid is not None else f"the gate is {judged.reason}",
        ]
        return {
            "rci": value.value,
            "rci_low": value.low,
            "rci_high": value.high,
            "band": None if value.value is None else band(value.value),
            "span": None if value.low is None or value.high is None else span(value.low, value.high),
            "fip": fip.value,
            "mpp": mpp.value,
            "gap": gap.value,
            "gap_low": gap.low,
            "gap_high": gap.high,
            "chance": chance,
            "gate": judged.number,
            "threshold": judged.threshold,
            "n": n,
            "n_docs": int(known.sum()),
            "n_excluded": int((~known).sum()),
            "n_clusters": fip.clusters,
            "score_share": to_json(shares.score if shares else None),
            "win_share": to_json(shares.win if shares else None),
            "p_uniform": shares.p if shares else None,
            "p_cells": to_json(shares.p_cells if shares else None),
            "reason": reason,
            "warnings": [line for line in warnings if line],
        }


def _grid(cell_scores: Sequence[Sequence[float]]) -> int:
    """Return the grid size n.

    Raises:
        ValueError: there are no items, items have different numbers of cells, or the number is not n² with n of at
            least 2.
    """
    count = _count(cell_scores)
    n = math.isqrt(count)
    if n < 2 or n * n != count:
        raise ValueError(f"cell_scores must have n*n cells (4, 9, 16, ...), row by row, not {count}")
    return n


def _segments(cell_scores: Sequence[Sequence[float]]) -> int:
    """Return the number of segments.

    Raises:
        ValueError: there are no items, items have different numbers of segments, or fewer than 2.
    """
    count = _count(cell_scores)
    if count < MIN_GRID:
        raise ValueError(f"cell_scores must have at least {MIN_GRID} segments, not {count}")
    return count


def _count(cell_scores: Sequence[Sequence[float]]) -> int:
    """Return how many cells each item has."""
    counts = {len(cells) for cells in cell_scores}
    if len(counts) != 1:
        raise ValueError(
            "no items"
            if not counts
            else f"cell_scores must have the same number of cells for all items, not {sorted(counts)}"
        )
    return counts.pop()
