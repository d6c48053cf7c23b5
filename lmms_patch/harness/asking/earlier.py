"""Earlier runs on the same docs, from which a quick run predicts answers.

A prediction that is wrong costs calls, and moves no number.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lmms_patch.errors import PatchError
from lmms_patch.harness.asking.settings import REFERENCES
from lmms_patch.runs.run import Result, find
from lmms_patch.runs.schema import TYPES
from lmms_patch.stats.asking import MOST_OF_EARLIER
from lmms_patch.stats.resample import Array
from lmms_patch.text import line, log

if TYPE_CHECKING:
    from lmms_patch.harness.wrap.session import Session


def earlier_scores(session: Session, evaluated: Sequence[int]) -> Array | None:
    """Read the scores of earlier runs on the same docs, from the folders of ``LMMS_PATCH_REFERENCES``.

    None if no run fits.

    A run fits that asked the same docs, known by their digest, in the same grids, with the same metric, and asked all
    views. The newest runs count.

    Returns:
        Shape (runs, evaluated docs, views), nan where a run gives no score.
    """
    plan, named = session.golds.plan, os.environ.get(REFERENCES, "")
    folders = [Path(name).expanduser() for name in named.split(os.pathsep) if name.strip()]
    if plan is None or not folders:
        return None
    found: list[Result] = []
    for folder in folders:
        try:
            found += [one for run in find([folder]) for one in run.results if _fits(one, session, plan.digests["docs"])]
        except (PatchError, OSError) as error:
            log().warning(f"{session.spec.name}: no earlier run is taken from {folder}: {line(error)}")
    kept: list[Array] = []
    for one in sorted(found, key=lambda one: one.run.date, reverse=True):
        scores = _scores(one, session, evaluated)
        if scores is not None and len(kept) < MOST_OF_EARLIER:
            kept.append(scores)
            log().info(f"{session.spec.name}: predicts from an earlier run of {line(one.run.model)} ({one.run.path})")
    if not kept:
        log().warning(
            f"{session.spec.name}: {REFERENCES} holds no whole run of {session.spec.base} on these docs in these grids; asked without"
        )
    return np.stack(kept) if kept else None


def _fits(one: Result, session: Session, docs: str) -> bool:
    """Return whether an earlier result is of the same docs, cut in the same way into the same grids, and of the same metric."""
    described: Any = one.described
    same = (
        described["base"] == session.spec.base
        and described["metric"] == session.primary
        and set(session.spec.grids) <= set(described["grids"])
    )
    alike = one.kind.index and one.kind.view == session.spec.kind.view
    return bool(same and alike and one.made.docs == docs)


def _scores(one: Result, session: Session, evaluated: Sequence[int]) -> Array | None:
    """Return an earlier run's scores, shape (evaluated docs, views).

    None where it left views out, or its table cannot be read.
    """
    try:
        rows = one.frame(["doc_id", "n", "cell", "swapped", "score", "quick"])
    except (PatchError, OSError) as error:
        log().warning(f"{session.spec.name}: the earlier run {one.run.path} is not used: {line(error)}")
        return None
    if rows["quick"].count():
        return None
    docs = pl.DataFrame({"doc_id": evaluated}).with_row_index("doc")
    views = pl.DataFrame(
        [(view.n, view.cell) for view in session.table.views], {"n": TYPES["n"], "cell": TYPES["cell"]}, orient="row"
    ).with_row_index("place")
    own = rows.filter(pl.col("swapped").is_null(), pl.col("score").is_not_null()).with_columns(pl.col("n").fill_null(0))
    own = own.join(docs, on="doc_id").join(views, on=["n", "cell"], nulls_equal=True)
    out = np.full((len(docs), len(views)), math.nan)
    out[own["doc"], own["place"]] = own["score"]
    return out
