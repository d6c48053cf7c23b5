"""How much falls on the lines of the grid: what windows between the cells answer that no cell answers.

RCI depends on where the lines fall, which the RCI paper names as its limitation (https://arxiv.org/abs/2509.23673).
Windows as large as a cell, moved by half its sides, have no line where the cells have theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.spec import windows
from lmms_patch.runs.numbers import Grid, Lines
from lmms_patch.runs.tables import Table
from lmms_patch.stats import forms, luck
from lmms_patch.stats.forms import Form
from lmms_patch.stats.resample import Estimate, cluster_numbers

NO_WRONG = "no doc was asked on a wrong image (option null), so luck is not known"
NO_SHARE = "shares of docs need a metric that is a mean of docs' scores, of which higher is better"


def lines(
    table: Table,
    n: int,
    used: NDArray[np.bool_],
    grid: Grid,
    mpp: Estimate,
    form: Form | None,
    scale: float,
    how: dict[str, Any],
) -> Lines:
    """Return the numbers of the windows between the cells of one grid.

    Args:
        table: the docs.
        n: the grid.
        used: shape (docs,), the docs with a score of a window.
        grid: the numbers of the cells.
        mpp: the metric over the best of cells and windows.
        form: the aggregation.
        scale: the metric's scale.
        how: ``draws``, ``level`` and ``seed`` of the intervals.
    """
    docs = int(used.sum())
    why = grid.reason or ("" if grid.adj is None else grid.adj.estimate.reason)
    if not why and (form is None or not form.plain or not table.higher):
        why = NO_SHARE
    found = [
        table.measured_scores(key, forms.MEAN, used, with_full=with_full)
        for with_full in (False, True)
        for key in ((n, windows(n)) if not why else ())
    ]
    scores = [one for one in found if one is not None]
    clusters = None if table.clusters is None else cluster_numbers(table.clusters[used].tolist())
    if len(scores) == 4:  # of so many more tries luck may leave nothing to measure
        why = luck.measured(scores[1], forms.MEAN.value, clusters, scale=scale, **how).estimate.reason
    if why or len(scores) < 4:
        nothing = Estimate(None, None, None, None, docs, docs, 0, mpp.level, why or NO_WRONG)
        return Lines(mpp, nothing, nothing)
    cells, both, *with_full = scores
    return Lines(mpp, *luck.on_lines(cells, both, (with_full[0], with_full[1]), clusters, **how))
