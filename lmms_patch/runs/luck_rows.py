"""The rows that luck is computed from: what answers earn on wrong images, and by the golds of other docs. NumPy only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.kinds import Key
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
from lmms_patch.stats.forms import Form, Picked
from lmms_patch.stats.luck import MOST_NAMED, Habits, Measured
from lmms_patch.stats.resample import Array, Bools, Ints


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
            Chosen([None] * len(table), np.maximum(one.scores, whole.scores))
            for one, whole in ((best, table.full), (wrong, table.wrong.full))
        )
    golds = table.references.ceiling
    asked = used & np.isfinite(wrong.scores) & np.isfinite(table.wrong.full.scores)
    if golds is None or not asked.any():
        return None

    def rows(chosen: Chosen, mask: Bools) -> Array:
        return _rows(table, form, chosen.where(mask), used)

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
        if form.plain and table.higher and not table.sampling.used and not table.kind.every_order
        else None,
    )


def _rows(table: Table, form: Form, chosen: Chosen, used: Bools) -> Array:
    """Return what a form sums of the used docs; a row without a score adds nothing to the sums."""
    found = form.rows(table.picked(chosen))[used]
    found[~np.isfinite(found).all(axis=1)] = 0
    return found


def _misread(table: Table) -> float:
    """Return the share of answers with full marks read as another answer than the gold, 0..1: wrong answers may be misread as often."""
    right = [
        view.misread
        for record in table.records
        for view in record.every_view
        if view.names and view.names == record.answer.gold_at
    ]
    return float(np.mean(right)) if right else 0.0


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
    gold: Ints = np.array([record.answer.gold_at or 0 for record in table.records], np.intp)
    options = np.array([record.answer.options for record in table.records], np.intp)
    own, null = (
        views.named(key, int(options[used].clip(max=MOST_NAMED).max(initial=0)), with_full)
        for views in (table.views, table.wrong.views)
    )
    known = own.known & (null.known | ~asked) & (options <= MOST_NAMED)
    options, gold = np.where(known & (options > 1) & (gold > 0), options, 0), gold - 1
    varied = np.array([len({view.said for view in record.wrong_views}) > 1 for record in table.records], bool)
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
    out = np.full((len(table), 4), math.nan)
    # no division by zero where a gold earns nothing
    marks = np.maximum(table.references.ceiling.scores, 1e-300)
    scored = [table.full.scores, table.best(key).scores, table.wrong.full.scores, table.wrong.best(key).scores]
    others = {
        d: other
        for d, record in enumerate(table.records)
        if (other := record.exchanged) is not None and str(key) in other.best
    }
    ends = np.cumsum([0, *(len(other.to) for other in others.values())])
    places = np.split(_places_of(table, _flat(other.to for other in others.values())), ends[1:-1])
    # not strict: of no docs at all, np.split makes one empty part
    for (doc, other), place in zip(others.items(), places, strict=False):
        earned = np.array([other.full, other.best[str(key)], other.wrong_full, other.wrong_best[str(key)]], float)
        earned = np.column_stack([earned, [scores[doc] for scores in scored]]) / np.append(marks[place], marks[doc])
        if with_full:
            earned[1::2] = np.maximum(earned[::2], earned[1::2])
        # an answer may earn more than the gold, but loses no less than nothing
        out[doc] = (1 - earned[:, np.append(place >= 0, True)]).clip(min=0).mean(axis=1)
    return out


def _places_of(table: Table, ids: Ints) -> Ints:
    """Return the places of docs by their ids; -1 where there is no such doc."""
    own = np.array(list(table.place), np.int64)
    order = np.argsort(own, kind="stable")
    # ``searchsorted`` gives ``len(own)`` for ids above all; the comparison below rejects them
    found = np.searchsorted(own, ids, sorter=order).clip(max=len(own) - 1)
    return np.where(own[order[found]] == ids, order[found], -1)


def _flat(values: Iterable[Sequence[Any]], kind: Any = np.intp) -> NDArray[Any]:
    """Return the values of many lists as a single array; None becomes nan."""
    return np.array(list(itertools.chain.from_iterable(values)), kind)
