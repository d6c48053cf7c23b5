"""The score at each point of a curve, or with boxes hidden or beside the full image, and how far the full image is above it (``Kind.points``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lmms_patch.ask.kinds import Key, Kind, end
from lmms_patch.rci.draws import minus
from lmms_patch.rci.kinds.part import warned
from lmms_patch.runs.numbers import Analysis, Grid, none_used
from lmms_patch.runs.views import Chosen
from lmms_patch.stats.resample import Estimate

if TYPE_CHECKING:
    from lmms_patch.rci.work import Work


def of(kind: Kind) -> bool:
    """Return whether tasks of a kind have the part."""
    return kind.has_points


def sets(work: Work) -> dict[str, list[Chosen]]:
    """Return sets of answers by name (``Part.sets``)."""
    kind, out = work.table.kind, {}
    for key, chosen in work.table.points.items():
        out[f"{kind.name}{end(key)}"] = [chosen]
        if kind.full:
            out[f"{kind.name}{end(key)}_full"] = [work.table.full.where(np.isfinite(chosen.scores))]
    return out


def add(work: Work, found: Analysis, by_set: Mapping[Key, Grid]) -> Analysis:
    """Return an analysis with the part's numbers (``Part.add``)."""
    kind, points = work.table.kind, work.table.points
    found = dataclasses.replace(
        found,
        curve={key: _score(work, key) for key in points} or None,
        drops={key: _score(work, key, drop=True) for key in points} if kind.full and points else None,
    )
    by_reason: dict[str, list[str]] = {}
    for key in points if kind.curve else ():
        by_reason.setdefault(work.too_many[key], []).append(f"{kind.name}{end(key)}")
    return warned(found, *(f"no {', '.join(names)}: {why}" for why, names in by_reason.items() if why))


def _score(work: Work, key: Key, *, drop: bool = False) -> Estimate:
    """Return M at a point with an interval, over the docs used there.

    Args:
        work: the analysis in progress.
        key: the point (``Kind.points``).
        drop: return M on the full image less that, over the same docs and paired by doc.
    """
    kind = work.table.kind
    used = np.isfinite(work.table.points[key].scores)
    if not used.any():
        of_grid = "no image is large enough" if kind.words.sized else "no doc has so many frames and a score"
        return work.nothing(none_used(key) if isinstance(key, str) else of_grid)
    if why := work.too_many.get(key):
        return work.nothing(why)
    own = f"{kind.name}{end(key)}"
    return (
        work.draws.estimate_of(minus, (f"{own}_full", own), None, used)
        if drop
        else work.draws.estimate(own, None, used)
    )
