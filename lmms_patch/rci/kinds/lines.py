"""How much falls on the lines of the grid: what a cell, or a window between the cells, answers.

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
from lmms_patch.rci.necessity import composed
from lmms_patch.runs.numbers import Analysis, Grid, Lines
from lmms_patch.runs.views import Chosen
from lmms_patch.stats.composition import CELL
from lmms_patch.stats.resample import Estimate

if TYPE_CHECKING:
    from lmms_patch.rci.work import Work


def of(kind: Kind) -> bool:
    """Return whether tasks of a kind have the part."""
    return kind.shifted


def sets(work: Work) -> dict[str, list[Chosen]]:
    """Return sets of answers by name (``Part.sets``)."""
    return {str(windows(n)): [_best(work, n)] for n in work.used if isinstance(n, int)}


def add(work: Work, found: Analysis, by_set: Mapping[Key, Grid]) -> Analysis:
    """Return an analysis with the part's numbers (``Part.add``)."""
    return dataclasses.replace(found, lines={n: _lines(work, n, grid, found) for n, grid in found.grids.items()})


def _best(work: Work, n: int) -> Chosen:
    """Return each doc's best item among its cells and windows; none for a doc of which a cell or a window has no score."""
    whole = work.table.views.scored(windows(n)) == len(between(n)) + work.table.kind.cells(n)
    return work.table.best(windows(n)).where(work.used[n] & whole)


def _lines(work: Work, n: int, grid: Grid, found: Analysis) -> Lines:
    """Return the numbers of the windows between the cells of a grid."""
    used = np.isfinite(_best(work, n).scores)
    mpp = work.draws.estimate(str(windows(n)), None, used) if used.any() else work.nothing(grid.reason)
    needs = next((one for one in found.necessity if one.n == n), None)
    if needs is None:
        return Lines(mpp, None)
    # what says nothing of cells says nothing of windows
    made, docs, _ = composed(work.table, windows(n), work.settings, next(iter(needs.shares.values())).reason)
    return Lines(mpp, Estimate.nothing(docs, made, mpp.level) if isinstance(made, str) else made.shares[CELL])
