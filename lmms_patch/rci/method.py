"""RCI as a method (``ask.methods``): all its numbers are those of the analysis, which every wrapped task has."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lmms_patch.ask.kinds import Kind, end
from lmms_patch.ask.methods import Method
from lmms_patch.rci.recompute import analysed
from lmms_patch.runs.numbers import Analysis
from lmms_patch.runs.run import Result
from lmms_patch.stats.forms import FORMS, Picked, value_of


class _Rci(Method):
    def numbers_of(self, result: Result) -> Analysis | None:
        return analysed(result)

    def drops_of(self, result: Result) -> dict[str, float | None]:
        return drops(result.frame(COLUMNS), result.kind, result.grids, result.native.form)


COLUMNS = ("doc_id", "view", "n", "score", "best")
"""Those that ``drops`` needs."""


def drops(frame: pl.DataFrame, kind: Kind, grids: Sequence[int], form: str | None) -> dict[str, float | None]:
    """Return, of a task that hides one cell at a time, the score on full images less that with the worst cell hidden.

    Args:
        frame: its rows.
        kind: of the task; other kinds have none.
        grids: that were asked.
        form: of the aggregation; None: it cannot be computed.
    """
    if not kind.per_cell or kind.keeps_best or form is None:
        return {}
    full = frame.filter(pl.col("view") == 0).select("doc_id", full="score")
    out: dict[str, float | None] = {}
    for n in kind.sets(grids):
        worst = frame.filter(pl.col("best") & (pl.col("n") == n)).select("doc_id", worst="score")
        scores = full.join(worst, on="doc_id").drop_nulls().sort("doc_id")
        values = [value_of(FORMS[form], Picked(scores[name].to_numpy())) for name in ("full", "worst")]
        out[f"drop{end(n)}"] = values[0] - values[1] if len(scores) else None
    return out


METHOD = _Rci()
