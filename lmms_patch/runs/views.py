"""A native item of each doc with its scalar, and the views of docs as arrays. NumPy only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import Key
from lmms_patch.runs.failures import different
from lmms_patch.runs.record import Record, View, in_set
from lmms_patch.stats.resample import Array, Bools, Ints


@dataclass(frozen=True)
class Chosen:
    """A native item of each doc, with its scalar.

    Attributes:
        items: native items.
        scores: shape (docs,), their scalars; nan where there is none.
    """

    items: list[Any]
    scores: Array

    @property
    def known(self) -> Bools:
        """Which docs have an item, shape (docs,)."""
        return np.array([item is not None for item in self.items], bool)

    def where(self, mask: Bools) -> Chosen:
        """Return the items and scores of some docs; None and nan for the rest, which then count for nothing."""
        return Chosen(
            [item if keep else None for item, keep in zip(self.items, mask, strict=True)],
            np.where(mask, self.scores, math.nan),
        )


class Views:
    """The views of docs as arrays, an entry per view.

    Docs that are read from a log share the objects of equal views: each is looked at once.

    Attributes:
        different: the different views.
        docs: the doc of each view.
        starts: where each doc's views begin.

    Args:
        of_docs: the views of each doc.
    """

    def __init__(self, of_docs: Sequence[Sequence[View]]) -> None:
        every = list(itertools.chain.from_iterable(of_docs))
        self.different = different(every)
        numbers = {id(view): number for number, view in enumerate(self.different)}
        # each view by the number of its object, so that shared objects are looked at once
        self._codes = np.fromiter((numbers[id(view)] for view in every), np.intp, len(every))
        counts = np.fromiter(map(len, of_docs), np.intp, len(of_docs))
        self.docs = np.repeat(np.arange(len(of_docs)), counts)
        self.starts = np.cumsum(counts) - counts
        self._scores: dict[str, Array] = {}

    def scores(self, metric: str) -> Array:
        """Return the score of each view; nan where there is none."""
        if metric not in self._scores:
            # None becomes nan
            self._scores[metric] = np.array([view.scores.get(metric) for view in self.different], float)[self._codes]
        return self._scores[metric]

    def has(self, metric: str) -> Bools:
        """Mark the views with a native item of a metric, shape (views,)."""
        return np.array([metric in view.items for view in self.different], bool)[self._codes]

    def in_set(self, key: Key) -> Bools:
        """Mark the views of a set, shape (views,)."""
        return np.array([in_set(view, key) for view in self.different], bool)[self._codes]

    def scored(self, metric: str) -> list[float]:
        """Return the scores of the different views; views without a score are left out."""
        scores = (view.scores.get(metric) for view in self.different)
        return [score for score in scores if score is not None]

    def cells(self, metric: str, key: Key, count: int, docs: Bools) -> Array:
        """Return the scores of the views of a set, shape (docs, count); nan where a doc has another number of them.

        Args:
            metric: the metric.
            key: the set.
            count: how many views it has.
            docs: shape (docs,), the docs that are used; the others are nan too.
        """
        inside = self.in_set(key)
        # only docs with every cell: the reshape below needs complete rows
        whole = docs & (self.per_doc(inside) == count)
        out = np.full((len(docs), count), math.nan)
        out[whole] = self.scores(metric)[inside & whole[self.docs]].reshape(-1, count)
        return out

    def per_doc(self, of_views: Bools) -> Ints:
        """Count the marked views of each doc."""
        return np.bincount(self.docs[of_views], minlength=len(self.starts))

    def best(self, metric: str, of: Bools, higher: bool) -> Ints:
        """Return the place of each doc's best scored view among some; ties go to the first; -1 where none is scored."""
        out = np.full(len(self.starts), -1, np.intp)
        known = np.flatnonzero(of & np.isfinite(scores := self.scores(metric)))
        docs = self.docs[known]
        # ``lexsort`` sorts by its last key first: doc, then score, then place, so that ties go to the first view
        order = np.lexsort((known, -scores[known] if higher else scores[known], docs))
        first = order[np.flatnonzero(np.diff(docs[order], prepend=-1))]
        out[docs[first]] = known[first] - self.starts[docs[first]]
        return out

    def named(self, key: Key, most: int, with_full: bool) -> Named:
        """Return which options docs name on a set of views and on their first view.

        Args:
            key: the set.
            most: the most options of a doc.
            with_full: whether the first view is counted among those of the set.
        """
        names = np.array([-1 if view.names is None else view.names for view in self.different], np.intp)[self._codes]
        inside, count = self.in_set(key), len(self.starts)
        cells = np.zeros((count, most + 1), np.intp)
        np.add.at(cells, (self.docs[inside], names[inside].clip(0, most)), 1)
        # a doc without views takes the appended -1 at the end
        first = np.append(names, -1)[np.where(self.per_doc(np.ones(len(names), bool)) > 0, self.starts, -1)]
        known = (first >= 0) & (self.per_doc(inside & (names < 0)) == 0)
        if with_full:
            cells[np.arange(count), first.clip(0, most)] += 1
        return Named(cells[:, 1:], first - 1, self.per_doc(inside) + with_full, known)

    def chosen(self, metric: str, places: Sequence[int | None]) -> Chosen:
        """Return item and score of a view of each doc, by the view's place in the doc.

        None and nan where there is no place.
        """
        place = np.fromiter((-1 if one is None else one for one in places), np.intp, len(places))
        # -1: the entry for nothing, which is last
        at = np.where(place < 0, -1, self.starts + place)
        items = [*(view.items.get(metric) for view in self.different), None]
        return Chosen(
            [items[code] for code in np.append(self._codes, -1)[at].tolist()],
            np.append(self.scores(metric), math.nan)[at],
        )


@dataclass(frozen=True)
class Named:
    """Which options docs name on a set of views.

    Attributes:
        cells: shape (docs, most options), how often each is named on the set.
        full: shape (docs,), the place of that of the first view, from 0; negative: none.
        tries: shape (docs,), how many views of the set there are.
        known: shape (docs,), whether all these views were read.
    """

    cells: Ints
    full: Ints
    tries: Ints
    known: Bools


def used_for(records: Sequence[Record], key: Key) -> Bools:
    """Return which docs are used for a set of views, shape (docs,)."""
    return np.array([str(key) not in record.excluded for record in records], bool)


def set_places(records: Sequence[Record], key: Key) -> list[list[int]]:
    """Return the places of each doc's views of a set, in their order; empty where the doc is not used for the set."""
    return [
        [] if str(key) in record.excluded else [i for i, view in enumerate(record.views) if in_set(view, key)]
        for record in records
    ]


def point_places(records: Sequence[Record], key: Key) -> list[int | None]:
    """Return the place of each doc's view of a point (``Kind.points``); None where there is no such view."""

    def at(view: View) -> bool:
        return in_set(view, key) if isinstance(key, str) else view.n == key

    return [
        next((i for i, view in enumerate(record.views) if str(key) not in record.excluded and at(view)), None)
        for record in records
    ]
