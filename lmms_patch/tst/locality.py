"""Which docs does one cell solve? A score to prune by, from a finished rci or pcri run. Needs neither model nor data.

The RCI paper leaves it to future work to keep the items that need the whole image. Of a doc, with its grid n,

    locality = score of its best cell − mean over its donors of what the best of *their* cells' answers scores under its gold

so that a doc which the best of n² guesses solves as well is not called local. For scores in 0..1 it lies in
[−1, 1]: 1 where a cell solves the doc and no donor's cells do, about 0 where that is luck, or where no cell does.

Source: RCI paper, future work; donors: DESIGN 6, docs/records.md (``lent``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmms_patch.ask.spec import KINDS
from lmms_patch.errors import RecordError
from lmms_patch.runs.record import Record


@dataclass(frozen=True)
class Locality:
    """The locality of every doc at one grid.

    Attributes:
        grid: n.
        metric: what the scores are of: the run's primary metric.
        scores: by doc id, on the metric's own scale; nan: not known.
        unusable: docs that the run could not use at this grid.
        without_donor: usable docs for which there is no donor.
        warnings: one line each.
    """

    grid: int
    metric: str
    scores: Mapping[int, float]
    unusable: int
    without_donor: int
    warnings: tuple[str, ...]


def choose_grid(records: Sequence[Record]) -> int:
    """The finest grid of a run: what one of its cells solves needs the least of the image.

    Raises:
        RecordError: not the records of an rci or pcri run.
    """
    return max(_grids(records))


def scores(records: Sequence[Record], n: int | None = None, metric: str | None = None) -> dict[int, float]:
    """The locality of each doc by its id; nan where it is not known. See ``locality``."""
    return dict(locality(records, n, metric).scores)


def locality(records: Sequence[Record], n: int | None = None, metric: str | None = None, *, higher: bool = True) -> Locality:
    """The locality of each doc.

    Args:
        records: the ``patch`` objects of an rci or pcri run, one per doc.
        n: grid; default: the finest of the run.
        metric: the run's primary metric; needed where docs are scored by several.
        higher: whether higher scores are better.

    Raises:
        RecordError: another kind of run, a grid that is not in it, or a metric that is not.
    """
    grids = _grids(records)
    n = max(grids) if n is None else n
    if n not in grids:
        raise RecordError(f"{records[0].task}: no grid {n} in this run; allowed: {', '.join(map(str, sorted(grids)))}")
    metric = _metric(records, metric)
    best, luck = _best(records, n, metric), _luck(records, n)
    sign = 1 if higher else -1
    found = {doc_id: sign * (score - luck.get(doc_id, math.nan)) for doc_id, score in best.items()}
    unusable = sum(math.isnan(score) for score in best.values())
    without = sum(not math.isnan(score) and doc_id not in luck for doc_id, score in best.items())
    return Locality(n, metric, found, unusable, without, _warnings(n, len(best), unusable, without))


def _grids(records: Sequence[Record]) -> set[int]:
    if not records:
        raise RecordError("no docs: locality needs the records of an rci or pcri run")
    for record in records:
        if KINDS[record.kind].index is None:
            raise RecordError(f"{record.task}: a run of kind {record.kind}; locality needs one of kind rci or pcri, such as --tasks gqa_rci3")
    return {int(n) for record in records for n in record.grids}


def _metric(records: Sequence[Record], metric: str | None) -> str:
    known: list[str] = sorted({name for record in records for view in record.views for name in view.scores})
    if metric is None and len(known) > 1:
        raise RecordError(f"{records[0].task}: several metrics; say which is the primary one: {', '.join(known)}")
    if not known or metric not in (None, *known):
        raise RecordError(f"{records[0].task}: no metric {metric or ''!r} in the log; allowed: {', '.join(known) or 'none (nothing was scored)'}")
    return metric or known[0]


def _best(records: Sequence[Record], n: int, metric: str) -> dict[int, float]:
    """Score of each doc's best cell, by doc id; nan where the doc is not used at this grid, or its best cell is unscored."""
    out = {}
    for record in records:
        place = None if str(n) in record.excluded else record.best.get(str(n))
        score = None if place is None else record.views[place].scores.get(metric)
        out[record.doc_id] = math.nan if score is None else float(score)
    return out


def _luck(records: Sequence[Record], n: int) -> dict[int, float]:
    """Mean over the donors of each doc of what the best of their cells' answers scores under its gold; only docs that have a donor."""
    lent: dict[int, list[float]] = {}
    for record in records:
        lent_best = [] if record.lent is None else zip(record.lent.to, record.lent.best.get(str(n), ()), strict=False)
        for to, score in lent_best:
            if score is not None:
                lent.setdefault(to, []).append(score)
    return {doc_id: float(np.mean(found)) for doc_id, found in lent.items()}


def _warnings(n: int, docs: int, unusable: int, without: int) -> tuple[str, ...]:
    out = []
    if unusable:
        out.append(f"{unusable} of {docs} docs could not be used at grid {n}: they have no locality")
    if without:
        out.append(f"{without} of {docs} docs have no donor, an answer of another doc of their kind to tell luck by: they have no locality")
    return tuple(out)
