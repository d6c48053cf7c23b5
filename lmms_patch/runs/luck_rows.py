"""The rows that luck is computed from: what answers earn on wrong images, and by the golds of other docs."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from lmms_patch.ask.kinds import Key
from lmms_patch.runs.docs import entries_of
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
from lmms_patch.stats.forms import Form, Picked
from lmms_patch.stats.luck import MOST_NAMED, Habits, Measured
from lmms_patch.stats.resample import Array, Bools


def measured(table: Table, key: Key, form: Form, used: Bools, *, with_full: bool = False) -> Measured | None:
    """Return the rows of the used docs, and of those also asked on a wrong image.

    None where no doc was asked so, or a gold has no score.

    Args:
        table: the docs.
        key: a grid, or a set of boxes.
        form: the aggregation.
        used: shape (docs,), the docs that are used for it.
        with_full: whether the full image is one of the views of which the best counts; of forms that go by scores
            alone.
    """
    best, wrong = table.best(key), table.wrong.best(key)
    if with_full:
        best, wrong = (
            Chosen(np.maximum(cell.scores, whole.scores))
            for cell, whole in ((best, table.full), (wrong, table.wrong.full))
        )
    golds = table.references.ceiling
    asked = used & np.isfinite(wrong.scores) & np.isfinite(table.wrong.full.scores)
    if golds is None or not asked.any():
        return None

    def rows(chosen: Chosen, mask: Bools) -> Array:
        found = form.rows(table.picked(chosen.where(mask)))[used]
        # a row without a score adds nothing to the sums
        found[~np.isfinite(found).all(axis=1)] = 0
        return found

    classes, labels = table.groups.answer_classes
    corners = form.rows(Picked(np.array([0.0, float(golds.scores.max())]))) if form.plain else None
    return Measured(
        rows(table.full, used),
        rows(best, used),
        rows(golds, used),
        rows(table.wrong.full, asked),
        rows(wrong, asked),
        asked[used],
        classes[used],
        labels,
        corners,
        table.sampling.stands_for(2, used),
        _habits(table, key, used, asked, with_full)
        if form.plain and table.higher and not table.sampling.used
        else None,
    )


def _misread(table: Table) -> float:
    """Return the share of answers with full marks read as another answer than the gold, 0..1: wrong answers may be misread as often."""
    rows = pl.concat([table.views.rows, table.wrong.views.rows])
    right = rows.filter((pl.col("names") > 0) & (pl.col("names") == pl.col("gold_at")))
    return float(right["misread"].fill_null(False).cast(pl.Float64).mean() or 0.0)  # type: ignore[arg-type]


def _habits(table: Table, key: Key, used: Bools, asked: Bools, with_full: bool) -> Habits:
    """Return which options the used docs name, and for docs without options what their answers earn elsewhere.

    A doc with an unread view counts as a doc without options.

    Args:
        table: the docs.
        key: a grid, or a set of boxes.
        used: shape (docs,), the docs that are used for it.
        asked: shape (docs,), those of them that were asked on a wrong image.
        with_full: as in ``measured``.
    """
    gold, options = (table.docs[name].fill_null(0).to_numpy().astype(np.intp) for name in ("gold_at", "choices"))
    own, null = (
        views.named(key, int(options[used].clip(max=MOST_NAMED).max(initial=0)), with_full)
        for views in (table.views, table.wrong.views)
    )
    known = own.known & (null.known | ~asked) & (options <= MOST_NAMED)
    options, gold = np.where(known & (options > 1) & (gold > 0), options, 0), gold - 1
    answers = table.wrong.views.rows.group_by("doc").agg(pl.n_unique("answer_no"))
    varied = np.zeros(len(table), bool)
    varied[answers["doc"]] = answers["answer_no"] > 1
    return Habits(
        options[used],
        gold[used],
        own.cells[used],
        own.full[used],
        own.tries[used],
        null.cells[used],
        null.full[used],
        _elsewhere(table, key, with_full)[used],
        varied[used],
        _misread(table),
    )


def _elsewhere(table: Table, key: Key, with_full: bool) -> Array:
    """Return each doc's mean loss of its answers, over its gold and the golds of docs asked alike (``Habits.elsewhere``)."""
    assert table.references.ceiling is not None
    # no division by zero where a gold earns nothing
    marks = np.maximum(table.references.ceiling.scores, 1e-300)
    exchanged = entries_of(table.docs, "exchanged")
    best, docs = exchanged.filter(set=str(key)), np.zeros(len(table), bool)
    docs[best["doc"]] = True
    pairs = exchanged.filter(set="full").join(best, on=["doc", "to"], suffix="_best")
    places = pl.DataFrame({"to": table.doc_id, "place": np.arange(len(table))})
    # golds of docs that the table lacks are left out
    pairs = pairs.join(places, on="to")
    earned = pairs.select("score", "score_best", "wrong", "wrong_best").cast(pl.Float64).fill_null(math.nan).to_numpy()
    own = [table.full.scores, table.best(key).scores, table.wrong.full.scores, table.wrong.best(key).scores]
    to, of = (np.append(pairs[name].to_numpy(), np.flatnonzero(docs)) for name in ("place", "doc"))
    earned = np.vstack([earned, np.column_stack(own)[docs]]) / marks[to][:, None]
    if with_full:
        earned[:, 1::2] = np.maximum(earned[:, ::2], earned[:, 1::2])
    # an answer may earn more than the gold, but loses no less than nothing
    losses = (1 - earned).clip(min=0)
    out = np.full((len(table), 4), math.nan)
    sums = np.column_stack([np.bincount(of, loss, len(table)) for loss in losses.T])
    out[docs] = sums[docs] / np.bincount(of, minlength=len(table))[docs, None]
    return out
