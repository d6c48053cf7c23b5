"""RCI as a metric of Hugging Face ``evaluate``, for scores that were made outside the harness."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import datasets
import evaluate
import numpy as np
import polars as pl

from lmms_patch.ask import kinds
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.draws import ByForm
from lmms_patch.runs import catalogue
from lmms_patch.runs.details import Settings
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.tables import Table
from lmms_patch.stats.forms import MEAN


class RCI(evaluate.Metric):  # type: ignore[misc] # evaluate has no types
    """Compute RCI, with its interval and gate, of scores that were made elsewhere (arXiv 2509.23673).

    RCI_n = 1 - MPP_n / FIP. FIP is the mean score on full images, MPP_n the mean of each item's best score over the n x n
    cells of its image. Below 0: one cell is enough. Above 0: the whole image is needed. It means something only where FIP
    beats an uninformed answer: give ``chance``, and the index is None where it does not.

    ``compute`` takes

    - ``full_scores``: of each item, its score on the full image (0/1 or graded; higher is better).
    - ``cell_scores``: of each item, its scores on the n*n cells, row by row. An item with a NaN counts nowhere.
    - ``chance``: what an uninformed answer scores: the best constant answer, or 1/options. None: the gate is unknown.
    - ``clusters``: of each item, a label that items share which belong together (questions on one image).
    - ``scale``: the full marks of the metric (default 1.0).
    - ``in_time``: whether the cells are the segments of a clip, in the order of time (default False).
    - ``level``, ``draws``, ``seed``: of the intervals.

    and returns the numbers of docs/metrics.md by name, such as ``fip``, ``mpp3``, ``rci3`` and ``gap3``, with their ends
    ``rci3_low`` and ``rci3_high``;
    ``gate`` (1 valid, 0 near chance, None unknown); ``n`` items; ``cells``: of each cell, row by row, its share of the ``score`` and of the best
    cells (``win``), with Holm's ``p_cells``; ``reason``: why there is no index; ``warnings``.

    >>> RCI().compute(full_scores=[1.0, 0.0] * 50, cell_scores=[[1, 0, 0, 0], [0, 1, 0, 0]] * 50, chance=0.25)["rci2"]
    -1.0
    """

    def _info(self) -> Any:
        score = datasets.Value("float64")
        features = datasets.Features({"full_scores": score, "cell_scores": datasets.Sequence(score)})
        return evaluate.MetricInfo(
            description=RCI.__doc__, citation="", inputs_description=RCI.__doc__, features=features
        )

    def _compute(
        self,
        full_scores: Sequence[float],
        cell_scores: Sequence[Sequence[float]],
        clusters: Sequence[Hashable] | None = None,
        in_time: bool = False,
        scale: float = 1.0,
        **settings: Any,
    ) -> dict[str, Any]:
        scores = np.column_stack([full_scores, cell_scores])
        known = np.isfinite(scores).all(axis=1)
        docs, views = scores[known].shape
        kind, n = (kinds.TRCI, views - 1) if in_time else (kinds.RCI, math.isqrt(views - 1))
        if n < kinds.MIN_GRID or kind.cells(n) != views - 1:
            raise ValueError(f"cell_scores must have n*n cells (4, 9, ...), or 2 segments or more, not {views - 1}")
        view, labels = np.arange(views), np.arange(len(known)) if clusters is None else np.array(clusters)
        frame = pl.DataFrame(
            {
                "doc_id": np.flatnonzero(known).repeat(views),
                "view": np.tile(view, docs),
                "kind": np.tile(np.where(view, kind.view, "full"), docs),
                "cluster": labels[known].repeat(views),
                "score": scores[known].ravel(),
            }
        ).with_columns(pl.when(pl.col("view") > 0).then(pl.struct(n=n, cell="view")).struct.unnest())
        table = Table(frame, "score", kind=kind)
        found = analyse(table, ByForm(table, MEAN), Settings(scale=scale, **settings), [n])
        numbers, ends = catalogue.estimates(found, kind), {"": "value", "_low": "low", "_high": "high"}
        return {
            **{f"{name}{end}": getattr(one, key) for name, one in numbers.items() for end, key in ends.items()},
            "gate": found.gate.number,
            "n": found.n_docs,
            "cells": to_json(found.grids[n].shares),
            "reason": found.grids[n].reason,
            "warnings": [*found.warnings, *found.grids[n].warnings],
        }
