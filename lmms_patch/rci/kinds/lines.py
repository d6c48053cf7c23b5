"""How much falls on the lines of the grid: what windows between the cells answer that no cell answers.

RCI depends on where the lines fall, which the RCI paper names as its limitation (https://arxiv.org/abs/2509.23673).
Windows as large as a cell, moved by half its sides, have no line where the cells have theirs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lmms_patch.ask.kinds import Key, Kind, windows
from lmms_patch.ask.views import between
from lmms_patch.runs import luck_rows
from lmms_patch.runs.numbers import Analysis, Grid, Lines
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import forms, luck
from lmms_patch.stats.resample import Estimate

if TYPE_CHECKING:
    from lmms_patch.rci.work import Work

NO_WRONG = "no doc was asked on a wrong image (option null), so luck is not known"
NO_SHARE = "shares of docs need a metric that is a mean of docs' scores, of which higher is better"


def of(kind: Kind) -> bool:
    """Return whether tasks of a kind have the part."""
    return kind.shifted


def sets(work: Work) -> dict[str, list[Chosen]]:
    """Return sets of answers by name (``Part.sets``)."""
    return {str(windows(n)): [_best(work, n)] for n in work.used if isinstance(n, int)}


def add(work: Work, found: Analysis, by_set: Mapping[Key, Grid]) -> Analysis:
    """Return an analysis with the part's numbers (``Part.add``)."""
    return dataclasses.replace(found, lines={n: _lines(work, n, grid) for n, grid in found.grids.items()})


def _best(work: Work, n: int) -> Chosen:
    """Return each doc's best item among its cells and windows; none for a doc of which a cell or a window has no score."""
    whole = work.table.views.scored(windows(n)) == len(between(n)) + work.table.kind.cells(n)
    return work.table.best(windows(n)).where(work.used[n] & whole)


def _lines(work: Work, n: int, grid: Grid) -> Lines:
    """Return the numbers of the windows between the cells of a grid."""
    table, s = work.table, work.settings
    used = np.isfinite(_best(work, n).scores)
    mpp = work.draws.estimate(str(windows(n)), None, used) if used.any() else work.nothing(grid.reason)
    why = grid.reason or ("" if grid.adj is None else grid.adj.estimate.reason)
    if not why and (work.form is None or not work.form.plain or not table.higher):
        why = NO_SHARE
    found = [
        luck_rows.measured(table, key, forms.MEAN, used, with_full=with_full)
        for with_full in (False, True)
        for key in ((n, windows(n)) if not why else ())
    ]
    scores = [one for one in found if one is not None]
    clusters = table.groups.clusters_of(used, renumbered=True)
    how = s.how
    # Windows add tries, so luck alone may explain the score: then there is nothing to measure.
    if len(scores) == 4:
        scale = s.scale or float(np.max(table.marks[used]))
        why = luck.measured(scores[1], forms.MEAN.value, clusters, scale=scale, **how).estimate.reason
    if why or len(scores) < 4:
        docs = int(used.sum())
        nothing = Estimate.nothing(docs, why or NO_WRONG, mpp.level)
        return Lines(mpp, nothing, nothing)
    cells, both, *with_full = scores
    return Lines(mpp, *luck.on_lines(cells, both, (with_full[0], with_full[1]), clusters, **how))
