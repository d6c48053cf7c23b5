"""Features of items and of their options, from prompt, options and category alone. No template is written by hand.

A multiple-choice item has one row per option ("is this option right?"), so that models learn about options, not
letters. An item with a number as gold has one row. Golds enter only as statistics of the training folds
(``target_encoding``). Ids, sources and other fields never enter.

Source: TsT paper (https://arxiv.org/abs/2511.04655), B.2 and B.3: the same kinds of features, but found in the data
instead of by regular expressions for each benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.answers import as_number
from lmms_patch.tst import linear
from lmms_patch.tst.items import Item, Places
from lmms_patch.tst.options import MOST_RIVALS, OptionKeys, OptionRows, extras, numbered, pairs_within
from lmms_patch.tst.target_encoding import Array, Family, agreement, inner_folds, moments, rates
from lmms_patch.tst.templates import Slots, Texts, find_slots, mix, words
from lmms_patch.tst.tfidf import TextSpace

MOST_CLOSED, CLOSED_SHARE = 6, 0.05
"""The linear model reads the questions apart for each option that at least this share of the training items offers; the most such options."""
LINEAR, SHARE = "linear model: score", "linear model: share"
"""The features that hold its scores, and the probabilities of the options of an item by them."""

_NOT_NUMBER = re.compile(r"[^\d.eE+-]")


@dataclass(frozen=True)
class Features:
    """A feature table for a model.

    Attributes:
        values: shape (rows, features), float32; nan where a feature does not apply.
        names: names of the features.
        inner: the inner fold of each row, -1 where it is held out.
    """

    values: NDArray[np.float32]
    names: tuple[str, ...]
    inner: Places

    @property
    def share(self) -> int | None:
        """The column with the linear model's probabilities of the options; None where the model was left out."""
        return self.names.index(SHARE) if SHARE in self.names else None

    @classmethod
    def of(cls, columns: Mapping[str, Array], inner: Places) -> Features:
        """Put columns side by side."""
        values = np.column_stack(list(columns.values())) if columns else np.empty((len(inner), 0))
        return cls(values.astype(np.float32), tuple(columns), inner)


def asked_of(item: Item) -> str:
    """Return what an item asks: the context beside the question, then the question."""
    return f"{item.context}\n{item.question}" if item.context else item.question


def _item_features(items: Sequence[Item], texts: Texts) -> dict[str, Array]:
    """Return the features of whole questions, without use of golds."""
    marks = np.array([name[0].isdigit() for name in texts.names] or [False])
    numbers: Array = np.bincount(texts.owner[marks[texts.words]], minlength=len(items)).astype(float)
    return {
        "question.characters": np.array([len(item.question) for item in items], float),
        "question.numbers": numbers,
        "question.options": np.array([len(item.options) for item in items], float),
        **extras(items),
    }


class OptionTable:
    """The table of options: a row for each option of each item.

    Args:
        rows: which option of which item each row is.
    """

    def __init__(self, rows: OptionRows) -> None:
        self.rows = rows
        self._keys = OptionKeys(rows)

    @cached_property
    def _space(self) -> TextSpace:
        return TextSpace([item.question for item in self.rows.items])

    @cached_property
    def _context_space(self) -> TextSpace:
        return TextSpace(self.rows.contexts)

    @cached_property
    def _option_space(self) -> TextSpace:
        return TextSpace(self.rows.names)

    def _shown(self, train: Places) -> Places:
        """Return the distinct options of the training items, in order of first appearance."""
        return _first_seen(self.rows.text[self.rows.of(train)])

    @cached_property
    def _static(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """The features without golds: of rows (with a version less the item's mean), and of items."""
        rows, names = self.rows, self.rows.names
        of_text = {
            "option.characters": [len(name) for name in names],
            "option.words": [len(name.split()) for name in names],
            "option.segments": [len(parts) for parts in rows.segments],
            "option.number": [
                np.nan if (v := as_number(_NOT_NUMBER.sub("", name) or "x")) is None else v for name in names
            ],
        }
        out = {name: np.array(values, float)[rows.text] for name, values in of_text.items()}
        if any(rows.contexts):
            out["option.in context"] = rows.shares_in(rows.contexts)
        # Nobody wrote candidates to go together.
        likeness, same = np.zeros((2, rows.count)) if rows.are_candidates else _likeness(rows)
        out |= {
            "option.in question": rows.shares_in([item.question for item in rows.items]),
            "option.like others": likeness,
            "option.segments shared": same,
            "option.place": rows.place.astype(float),
        }
        return out, _item_features(rows.items, rows.questions)

    def _terms(self, train: Places) -> linear.Terms:
        """Return what the linear model reads of each row.

        It is the option's text; the question, for each option apart that many training items offer (as yes and no); the
        option and its place by category.
        """
        rows, every = self.rows, np.arange(self.rows.count)
        shown = rows.of(train)
        names, times = np.unique(rows.hashes[shown], return_counts=True)
        often = np.argsort(-times, kind="stable")[:MOST_CLOSED]
        closed = names[often[times[often] >= CLOSED_SHARE * max(1, len(train))]]
        spaces = [self._space, self._context_space] if any(rows.contexts) else [self._space]
        blocks = [
            _block(self._option_space.weighted(rows.text[shown]), rows.text),
            *(_block(space.weighted(train), space.place[rows.owner], rows.hashes, closed) for space in spaces),
        ]
        for salt, own in ((31, rows.hashes), (32, rows.place)):
            kind = mix(salt, rows.category[rows.owner], own)
            blocks.append(_block(np.array([[0.5]]), np.zeros_like(every), kind, np.unique(kind[shown])))
        return linear.Terms(rows.count, [block for block in blocks if block.width])

    def features(
        self, train: Places, groups: Places, seed: int, *, trees: bool = True, linear_model: bool = True
    ) -> Features:
        """Return the features of all rows, for a model trained on the items at ``train``.

        Args:
            train: places of the training items.
            groups: group of each item, shape (n,): the inner folds keep groups whole.
            seed: of the inner folds.
            trees: whether to compute what trees read.
            linear_model: whether to compute the linear model's scores.
        """
        rows = self.rows
        inner = inner_folds(train, groups, len(rows.items), seed)[rows.owner]
        columns = self._for_trees(train, inner, seed) if trees else {}
        if linear_model and 0 < rows.count <= linear.MOST_ROWS:
            scores = (
                linear.option_scores(self._terms(train), rows.owner, rows.target, inner)
                if len(train)
                else np.zeros(rows.count)
            )
            columns |= {LINEAR: rows.less_mean(scores), SHARE: linear.shares(scores, rows.owner)}
        return Features.of(columns, inner)

    def _for_trees(self, train: Places, inner: Places, seed: int) -> dict[str, Array]:
        """Return the features for trees by name; arguments as in ``features``, with ``inner`` of each row."""
        rows, keys = self.rows, self._keys
        slots = find_slots(rows.questions, rows.category, train)
        residual = rows.target - 1 / np.maximum(rows.sizes, 1)[rows.owner]
        columns: dict[str, Array] = {}
        usual, place = keys.usual_places
        learned = [(family.name, rates(family, residual, inner)) for family in [*keys.fixed, *keys.of_slots(slots)]]
        for family, statistics in [*learned, (usual.name, agreement(usual, place, rows.target, inner))]:
            # An option competes only with the options of its own item.
            for name, values in statistics.items():
                columns[f"{family}: {name}"] = values if name == "count" else rows.less_mean(values)
        of_rows, of_items = self._static
        for name, values in {**of_rows, "option.times offered": keys.offered(train)}.items():
            columns |= {name: values, f"{name}, relative": rows.less_mean(values)}
        columns |= {name: values[rows.owner] for name, values in of_items.items()}
        columns["category"] = _as_seen(rows.category, train)[rows.owner]
        columns |= _by_number("question text (TF-IDF)", self._space.components(train, seed).T[rows.owner])
        shown = self._option_space.components(self._shown(train), seed)
        return columns | _by_number("option text (TF-IDF)", shown.T[rows.text])


def _likeness(rows: OptionRows) -> Array:
    """Return two features of each option, shape (2, rows).

    They are: the mean Jaccard index of its words with those of the other options; the mean share of equal segments.
    """
    out = np.zeros((2, rows.count))
    alike: dict[tuple[int, ...], Array] = {}
    for item in range(len(rows.items)):
        own = rows.of_item(item)
        texts = tuple(rows.text[own].tolist())
        if texts not in alike:
            found = [_alike(rows, texts, offset) for offset in range(len(texts))]
            alike[texts] = np.array(found).reshape(-1, 2).T
        out[:, own] = alike[texts]
    return out


def _by_number(name: str, columns: NDArray[np.float32]) -> dict[str, Array]:
    """Return the columns of an array as features."""
    return {f"{name} {number}": values.astype(float) for number, values in enumerate(columns.T)}


def _known(values: NDArray[np.uint64], kinds: NDArray[np.uint64]) -> Places:
    """Return the place of each value among ``kinds``; -1 for a value of no kind.

    No held-out row adds a kind: kinds are those of training rows.
    """
    order = np.argsort(kinds)
    at = np.minimum(np.searchsorted(kinds, values, sorter=order), len(kinds) - 1)
    return np.where(kinds[order][at] == values, order[at], -1)


def _block(
    terms: Any, text: Places, of: NDArray[np.uint64] | None = None, kinds: NDArray[np.uint64] | None = None
) -> linear.Block:
    """Return the terms of each row.

    Args:
        terms: of the texts, shape (texts, terms).
        text: the text of each row.
        of: what each row is of, shape (rows,); None: weights are the same for all rows.
        kinds: the kinds that have weights of their own; rows of no kind have no terms.
    """
    if of is None or kinds is None:
        return linear.Block(terms, np.arange(len(text)), text, np.zeros(len(text), np.intp))
    kind = _known(of, kinds) if len(kinds) else np.full(len(of), -1)
    row = np.flatnonzero(kind >= 0)
    return linear.Block(terms, row, text[row], kind[row], len(kinds))


def _as_seen(category: Places, train: Places) -> Array:
    """Return categories as numbers from 0 in the order in which training items show them.

    Nan for categories that no training item shows.

    The order of all items would let held-out items decide the numbers.
    """
    shown = _first_seen(category[train])
    codes = np.full(int(category.max()) + 1 if len(category) else 0, np.nan)
    codes[shown] = np.arange(len(shown))
    return codes[category]


def _first_seen(values: Places) -> Places:
    """Return the distinct values in order of first appearance."""
    distinct, first = np.unique(values, return_index=True)
    return distinct[np.argsort(first)]


def _alike(rows: OptionRows, texts: Sequence[int], offset: int) -> tuple[float, float]:
    """Return the words and the segments shared by an option and its rivals in the item, each from 0 to 1.

    Args:
        rows: all options.
        texts: those of the item, by the number of their text.
        offset: the place of the option among them.
    """
    a, others = texts[offset], [b for place, b in enumerate(texts[:MOST_RIVALS]) if place != offset]
    if not others:
        return 0.0, 0.0
    said, parts = rows.vocabulary, rows.segments
    likeness = sum(len(said[a] & said[b]) / max(1, len(said[a] | said[b])) for b in others)
    return likeness / len(others), sum(_shared(parts[a], parts[b]) for b in others) / len(others)


def _shared(a: Sequence[str], b: Sequence[str]) -> float:
    return sum(x == y for x, y in zip(a, b, strict=False)) / max(len(a), len(b))


class NumberTable:
    """The table of number questions: a row for each item whose answer is a number.

    Args:
        items: n items.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.category = numbered(item.category for item in items)
        # None becomes nan.
        self.golds = np.array([as_number(item.golds[0]) if item.golds else None for item in items], float)
        self.questions = Texts.of(list(map(asked_of, items)))

    @cached_property
    def _space(self) -> TextSpace:
        return TextSpace([f"{item.question}\n{item.context}" for item in self.items])

    @cached_property
    def _static(self) -> dict[str, Array]:
        values = [[v for word in words(item.question) if (v := as_number(word)) is not None] for item in self.items]
        first = np.array([own[0] if own else np.nan for own in values])
        return {**_item_features(self.items, self.questions), "question.first number": first}

    def standardised(self, train: Places) -> tuple[Array, NDArray[np.bool_]]:
        """Standardise golds to mean 0 and SD 1 within each category, by the training items, on a fitting scale.

        The scale is the logarithm where all training golds of the category are above 0 and it makes them less skewed.

        Args:
            train: places of the training items.

        Returns:
            Shape (n,): 0 for items without a number; and whether each item's category is on the log scale.
        """
        out, logarithmic = np.zeros(len(self.items)), np.zeros(len(self.items), bool)
        for category in range(int(self.category.max()) + 1 if len(self.items) else 0):
            own = self.category == category
            seen = self.golds[train][own[train]]
            seen = seen[np.isfinite(seen)]
            if not len(seen):
                continue
            log = bool((seen > 0).all()) and abs(_skewness(np.log(seen))) < abs(_skewness(seen))
            logarithmic[own] = log
            scaled = np.log(np.where(self.golds > 0, self.golds, np.nan)) if log else self.golds
            known = np.log(seen) if log else seen
            spread = float(known.std()) or 1.0
            out[own] = np.nan_to_num((scaled[own] - known.mean()) / spread)
        return out, logarithmic

    def _families(self, slots: Slots) -> list[Family]:
        every = np.arange(len(self.items))
        category = self.category[slots.owner]
        at, after = pairs_within(slots.owner, range(1, 6))
        a, b, row = slots.value[at], slots.value[after], slots.owner[at]
        asked = self.questions
        return [
            Family("category", every, mix(21, self.category), single=True),
            Family("template", every, mix(22, slots.skeleton), single=True),
            Family("slot value", slots.owner, mix(23, category, slots.value)),
            Family("slot value at its place", slots.owner, mix(24, category, slots.number, slots.value)),
            Family("pair of slot values", row, mix(25, self.category[row], np.minimum(a, b), np.maximum(a, b))),
            Family("word of the question", asked.owner, mix(26, self.category[asked.owner], asked.hashes[asked.words])),
        ]

    def features(
        self, train: Places, groups: Places, seed: int, *, trees: bool = True, linear_model: bool = True
    ) -> Features:
        """Return the features of all items; arguments as in ``OptionTable.features``."""
        inner = inner_folds(train, groups, len(self.items), seed)
        # Without a gold there is nothing to learn from, so such items are in no inner fold.
        inner[~np.isfinite(self.golds)] = -1
        target, _ = self.standardised(train)
        columns = self._for_trees(train, target, inner, seed) if trees else {}
        if linear_model and len(train) and len(self.items) <= linear.MOST_ROWS:
            columns[LINEAR] = linear.number_scores(self._space.weighted(train)[self._space.place], target, inner)
        return Features.of(columns, inner)

    def _for_trees(self, train: Places, target: Array, inner: Places, seed: int) -> dict[str, Array]:
        """Return the features for trees by name; ``target``, ``inner`` as in ``target_encoding.moments``."""
        slots = find_slots(self.questions, self.category, train)
        columns: dict[str, Array] = {}
        for family in self._families(slots):
            columns |= {f"{family.name}: {name}": values for name, values in moments(family, target, inner).items()}
        columns |= {**self._static, "category": _as_seen(self.category, train)}
        return columns | _by_number("question text (TF-IDF)", self._space.components(train, seed).T)


def _skewness(values: Array) -> float:
    spread = float(values.std())
    return float((((values - values.mean()) / spread) ** 3).mean()) if spread else 0.0
