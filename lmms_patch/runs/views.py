"""Scored answers of docs as arrays, and one chosen answer of each doc."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lmms_patch.ask.kinds import BESIDE, REGIONS, Key
from lmms_patch.stats.resample import Array, Bools, Ints


class Items(NamedTuple):
    """What a native ``process_results`` returned by a metric; known in the run alone.

    Attributes:
        views: of each row of the samples; None where there is no such item.
        references: by doc id, of each entry of the doc's ``references``.
    """

    views: Sequence[Any]
    references: Mapping[int, Sequence[Any]]


@dataclass(frozen=True)
class Chosen:
    """An answer of each doc.

    Attributes:
        scores: shape (docs,); nan where there is none.
        said, gold: shape (docs,), whether the answer, and the gold, is the positive label: 1, 0, or -1 where there is no
            label; None: no answer has one.
        items: the native items, in the run alone; None: not known.
    """

    scores: Array
    said: Ints | None = None
    gold: Ints | None = None
    items: list[Any] | None = None

    @property
    def known(self) -> Bools:
        """Which docs have an item, or what is kept of it: a score or a label. Shape (docs,)."""
        if self.items is not None:
            return np.array([item is not None for item in self.items], bool)
        scored = np.isfinite(self.scores)
        return scored if self.said is None else scored | (self.said >= 0)

    def where(self, mask: Bools) -> Chosen:
        """Return the answers of some docs; there is none of the rest, which then count for nothing."""
        said, gold = (None if of is None else np.where(mask, of, -1) for of in (self.said, self.gold))
        items = self.items and [item if keep else None for item, keep in zip(self.items, mask, strict=True)]
        return Chosen(np.where(mask, self.scores, math.nan), said, gold, items)

    def labels(self) -> tuple[Bools, Bools] | None:
        """Return ``said`` and ``gold`` as flags, False where there is no answer; None where an answer has no label."""
        if self.said is None or self.gold is None:
            return None
        known = self.known
        both = known.any() and (np.minimum(self.said, self.gold)[known] >= 0).all()
        return (self.said == 1, self.gold == 1) if both else None


class Answers:
    """Scored answers of docs, an entry an answer, those of a doc one after the other.

    Places are of an answer within its doc, from 0; -1: none.

    Attributes:
        rows: their rows.
        docs: shape (answers,), the place of the doc of each.
        count: how many docs there are; some may have no answers.
        starts: shape (docs,), where each doc's answers begin.
        scores: shape (answers,); nan where there is none.
        said, gold: as in ``Chosen``.

    Args:
        rows: ``doc``, ``score``, ``said_yes``, ``gold_yes``; with items also ``item``, the place of each row's item.
        count: how many docs there are.
        items: native items.
    """

    def __init__(self, rows: pl.DataFrame, count: int, items: Sequence[Any] | None = None) -> None:
        self.rows, self.count, self._items = rows, count, items
        self.docs: Ints = rows["doc"].to_numpy().astype(np.intp, copy=False)
        self.starts: Ints = np.searchsorted(self.docs, np.arange(count))
        self.scores: Array = self.column("score", math.nan)
        self.said, self.gold = (_labels(rows[name]) for name in ("said_yes", "gold_yes"))

    def where(self, which: pl.Expr) -> Bools:
        """Mark answers by an expression over their rows, shape (answers,); null is False."""
        return self.rows.select(which.fill_null(False)).to_series().to_numpy()

    def column(self, name: str, nothing: float) -> Any:
        """Return a column of numbers as an array, with another value for null."""
        return self.rows[name].fill_null(nothing).to_numpy()

    def per_doc(self, of: Bools) -> Ints:
        """Count the marked answers of each doc."""
        return np.bincount(self.docs[of], minlength=self.count)

    def first(self, of: Bools | Ints) -> Ints:
        """Return the place of each doc's first answer among some, marked or numbered with those of a doc together."""
        out = np.full(self.count, -1, np.intp)
        entries = np.flatnonzero(of) if of.dtype == bool else of
        entries = entries[np.flatnonzero(np.diff(self.docs[entries], prepend=-1))]
        docs = self.docs[entries]
        out[docs] = entries - self.starts[docs]
        return out

    def best(self, of: Bools, higher: bool = True) -> Ints:
        """Return the place of each doc's best scored answer among some; ties go to the first."""
        entries = np.flatnonzero(of & np.isfinite(self.scores))
        scores = self.scores[entries] if higher else -self.scores[entries]
        return self.first(entries[np.lexsort((-scores, self.docs[entries]))])

    def chosen(self, places: Ints) -> Chosen:
        """Return the answer of each doc at a place."""
        there = np.flatnonzero(places >= 0)
        entries = self.starts[there] + places[there]

        def taken(of: Any, nothing: Any) -> Any:
            out = np.full(self.count, nothing)
            out[there] = of[entries]
            return out

        said, gold = (None if of is None else taken(of, -1) for of in (self.said, self.gold))
        items: list[Any] | None = None
        if self._items is not None:
            items = [None] * self.count
            for doc, item in zip(there.tolist(), self.rows["item"][entries].to_list(), strict=True):
                items[doc] = self._items[item]
        return Chosen(taken(self.scores, math.nan), said, gold, items)


class Views(Answers):
    """The views of docs."""

    def in_set(self, key: Key) -> Bools:
        """Mark the views of a set, shape (views,)."""
        return self.where(set_of(key))

    def scored(self, key: Key) -> Ints:
        """Return for each doc how many views of a set have a score."""
        return self.per_doc(self.in_set(key) & np.isfinite(self.scores))

    def cells(self, key: Key, count: int, docs: Bools) -> Array:
        """Return the scores of the views of a set, shape (docs, count); nan where a doc has another number of them.

        Args:
            key: the set.
            count: how many views it has.
            docs: shape (docs,), the docs that are used; the others are nan too.
        """
        inside = self.in_set(key)
        # only docs with every cell: the reshape below needs complete rows
        whole = docs & (self.per_doc(inside) == count)
        out = np.full((self.count, count), math.nan)
        out[whole] = self.scores[inside & whole[self.docs]].reshape(-1, count)
        return out

    @cached_property
    def faulty(self) -> bool:
        """Whether some view could not be scored."""
        return self.rows["error"].null_count() < len(self.rows)


TURNED = pl.col("gold_at").is_not_null() & pl.col("cell").is_null()
"""The full views in an order of their own, of docs whose options are moved."""


def set_of(key: Key) -> pl.Expr:
    """Return which views belong to a set.

    A set has the cells of a grid, these and the windows between them, the segments of a clip, or the relevant or
    adversarial boxes, alone or all hidden, or is the view beside the full image.
    """
    if key == BESIDE:
        return pl.col("kind") != "full"
    if isinstance(key, int):
        return (pl.col("n") == key) & pl.col("cell").is_not_null()
    if key in REGIONS:
        return pl.col("relevant") == (key == REGIONS[0])
    return (pl.format("windows{}", "n") == key) & pl.col("row").is_not_null()


def _labels(flags: pl.Series) -> Ints | None:
    return None if flags.null_count() == len(flags) else flags.cast(pl.Int8).fill_null(-1).to_numpy()
