"""Locality: how much of a doc a single cell solves.

A score to prune by, from a finished rci or pcri run; needs neither model nor data.

The RCI paper (https://arxiv.org/abs/2509.23673) leaves it to future work to keep the items that need the whole image.
For a doc, at grid n,

    locality = score of its best cell − mean over its donors of what the best of *their* cells' answers scores under its
    gold

A doc that the best of n² guesses solves as well is therefore not called local. For scores in 0..1 locality lies in [−1,
1]: 1 where a cell solves the doc and no donor's cells do; about 0 where that is luck, or where no cell does. Donors:
docs/records.md (``lent``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmms_patch.errors import RecordError
from lmms_patch.runs.record import Record


@dataclass(frozen=True)
class Locality:
    """The locality of every doc at a grid.

    Attributes:
        grid: n.
        metric: the run's primary metric, whose scores these are.
        scores: by doc id, on the metric's own scale; nan: not known.
        unusable: number of docs that the run could not use at this grid.
        without_donor: number of usable docs without a donor.
        warnings: one line each.
    """

    grid: int
    metric: str
    scores: Mapping[int, float]
    unusable: int
    without_donor: int
    warnings: tuple[str, ...]


def locality(
    records: Sequence[Record], n: int | None = None, metric: str | None = None, *, higher: bool = True
) -> Locality:
    """Compute the locality of each doc.

    Args:
        records: the ``patch`` objects of an rci or pcri run, one per doc.
        n: grid; default: the finest of the run, whose cells show the least of the image.
        metric: the run's primary metric; needed where docs are scored by several.
        higher: whether higher scores are better.

    Raises:
        RecordError: the run is of another kind, or has no such grid or metric.
    """
    grids = _grids(records)
    n = max(grids) if n is None else n
    if n not in grids:
        raise RecordError(f"{records[0].task}: no grid {n} in this run; allowed: {', '.join(map(str, sorted(grids)))}")
    metric = _metric(records, metric)
    best, luck = _best(records, n, metric), _luck(records, n)
    sign = 1 if higher else -1
    by_doc = {doc_id: sign * (score - luck.get(doc_id, math.nan)) for doc_id, score in best.items()}
    unusable = sum(math.isnan(score) for score in best.values())
    without = sum(not math.isnan(score) and doc_id not in luck for doc_id, score in best.items())
    return Locality(n, metric, by_doc, unusable, without, _warnings(n, len(best), unusable, without))


def _grids(records: Sequence[Record]) -> set[int]:
    if not records:
        raise RecordError("no docs: locality needs the records of an rci or pcri run")
    for record in records:
        if record.task_kind.index is None:
            raise RecordError(
                f"{record.task}: a run of kind {record.kind}; locality needs one of kind rci or pcri, such as --tasks gqa_rci3"
            )
        if record.asked is not None:
            whole = record.task.removesuffix("_quick")
            raise RecordError(
                f"{record.task}: a run that left views out; locality needs every cell of every doc, such as --tasks {whole}"
            )
    return {int(n) for record in records for n in record.grids}


def _metric(records: Sequence[Record], metric: str | None) -> str:
    known: list[str] = sorted({name for record in records for view in record.views for name in view.scores})
    if metric is None and len(known) > 1:
        raise RecordError(f"{records[0].task}: several metrics; say which is the primary one: {', '.join(known)}")
    if not known or metric not in (None, *known):
        raise RecordError(
            f"{records[0].task}: no metric {metric or ''!r} in the log; allowed: {', '.join(known) or 'none (nothing was scored)'}"
        )
    return metric or known[0]


def _best(records: Sequence[Record], n: int, metric: str) -> dict[int, float]:
    """Return the score of each doc's best cell, by doc id.

    Nan where the doc is not used at this grid, or its best cell is unscored.
    """
    out = {}
    for record in records:
        place = None if str(n) in record.excluded else record.best.get(str(n))
        score = None if place is None else record.views[place].scores.get(metric)
        out[record.doc_id] = math.nan if score is None else float(score)
    return out


def _luck(records: Sequence[Record], n: int) -> dict[int, float]:
    """Return by doc id the mean score of donors' best cell answers under the doc's gold, for docs with donors."""
    lent: dict[int, list[float]] = {}
    for record in records:
        # not strict: a doc that is not used at this grid lent no answer there
        lent_best = [] if record.lent is None else zip(record.lent.to, record.lent.best.get(str(n), ()), strict=False)
        for to, score in lent_best:
            if score is not None:
                lent.setdefault(to, []).append(score)
    return {doc_id: float(np.mean(earned)) for doc_id, earned in lent.items()}


def _warnings(n: int, docs: int, unusable: int, without: int) -> tuple[str, ...]:
    out = []
    if unusable:
        out.append(f"{unusable} of {docs} docs have no locality: they could not be used at grid {n}")
    if without:
        out.append(
            f"{without} of {docs} docs have no locality: no other doc of their kind lent an answer to estimate luck from"
        )
    return tuple(out)
