"""What is the same in two results: images, scores, and the numbers of which no answer changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lmms_patch.compare.checks import (
    view_sets,
)
from lmms_patch.compare.pair import Pair, of_items
from lmms_patch.runs import catalogue
from lmms_patch.runs.record import Record
from lmms_patch.runs.run import Result

_OF_CELLS = ("mpp{key}", "{index}{key}", "{index}{key}_adj", "gap{key}")
"""The numbers (``catalogue.Number.name``) that are made of the cells of a grid."""


def other_images(pair: Pair) -> int:
    """Count the docs asked with different images in the two runs; unknown images count as equal."""
    ours, theirs = (side.records for side in pair.sides)
    images = [(record.images, theirs[doc_id].images) for doc_id, record in ours.items() if doc_id in theirs]
    return sum(bool(first) and bool(second) and first != second for first, second in images)


def identical(pair: Pair) -> bool:
    """Return whether every doc has the same scores in every view."""
    if pair.only[0] or pair.only[1]:
        return False
    if pair.kind.folds:
        return np.array_equal(pair.firsts[0].scores, pair.firsts[1].scores)
    ours, theirs = (
        [[view.scores for view in record.views] for record in table.in_orders.records] for table in pair.tables
    )
    return ours == theirs


def unchanged(pair: Pair) -> tuple[str, ...]:
    """Return the numbers of the second run of which no answer changed (``Compared.unchanged``)."""
    if pair.only[0] or pair.only[1]:
        return ()
    ours, theirs = (side.records for side in pair.sides)
    result = pair.sides[1].run.result
    names = tuple(result.measures)
    if pair.kind.folds:
        return names if all(record.tst == theirs[doc_id].tst for doc_id, record in ours.items()) else ()
    changed = {change for doc_id, record in ours.items() for change in _changes(record, theirs[doc_id])}
    natives = {metric for record in ours.values() for metric in record.views[0].items}
    primary = result.metric

    def alike(name: str) -> bool:
        metric = name if name in natives else primary
        parts = {"scores", "items"} if metric != primary or of_items(pair.form) else {"scores"}
        sets = {""} if name in (*natives, "score", "fip") else _sets_of(name, result)
        # Chance and numbers of boxes may be made of any view, so any change counts.
        if sets is None:
            return not changed
        return not any(key in sets and (not of or (of == metric and part in parts)) for key, of, part in changed)

    return tuple(name for name in names if alike(name))


def _sets_of(name: str, result: Result) -> set[str] | None:
    """Return the sets of views behind a number of a grid; None for numbers of no grid."""
    grids, number = catalogue.grids_of(result.kind, result.grids), catalogue.named(result.kind, result.grids).get(name)
    if name not in grids or (number is not None and number.name not in _OF_CELLS):
        return None
    first_view = set() if number is None or number.name == _OF_CELLS[0] else {""}
    return (
        {str(grids[name])}
        | first_view
        | ({"wrong image"} if number is not None and number.words == "corrected" else set())
    )


def _changes(one: Record, other: Record) -> Iterator[tuple[str, str, str]]:
    """Yield the differences of a doc between two runs as (set of views, metric, ``scores`` or ``items``).

    The metric is empty where the views themselves differ, or what excludes them, or the answers on a wrong image.
    """
    if one.wrong_image != other.wrong_image:
        yield "wrong image", "", ""
    ours, theirs = view_sets(one), view_sets(other)
    if one.asked != other.asked:
        yield from ((key, "", "") for key in {"", *ours, *theirs, *one.asked_grids, *other.asked_grids})
    for key in {*ours, *theirs}:
        views = list(zip(ours.get(key, ()), theirs.get(key, ()), strict=False))
        left_out = one.excluded.get(key), other.excluded.get(key)
        if left_out[0] != left_out[1] or len(ours.get(key, ())) != len(theirs.get(key, ())):
            yield key, "", ""
        for a, b in views:
            for part, ours_of, theirs_of in (("scores", a.scores, b.scores), ("items", a.items, b.items)):
                if ours_of != theirs_of:
                    yield from ((key, m, part) for m in {*ours_of, *theirs_of} if ours_of.get(m) != theirs_of.get(m))
