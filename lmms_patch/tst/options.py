"""The options of items as rows, and what rows say that golds are counted by (``target_encoding``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from lmms_patch.tst.items import Item, Places
from lmms_patch.tst.target_encoding import Array, Family
from lmms_patch.tst.templates import Hashes, Slots, Texts, hash_of, mix, words

MOST_SEGMENTS = 8
"""The most parts of an option that lists several things."""
MOST_WORDS = 32
"""The most words of a question that are paired with options: bounds the memory for long texts."""
MOST_RIVALS = 32
"""The most options with which every option of an item is compared: bounds the memory for long lists."""

_SEGMENT = re.compile(r"[,;/]|→|->|\band\b|\bthen\b")


def option_name(text: str) -> str:
    """Return the text of an option in lower case, without outer white space and final periods."""
    return text.strip().lower().rstrip(".")


def numbered(values: Iterable[Any]) -> Places:
    """Return values as numbers from 0, in order of first appearance."""
    codes: dict[Any, int] = {}
    return np.array([codes.setdefault(value, len(codes)) for value in values], np.intp)


def segments(text: str) -> list[str]:
    """Split the text of a list into parts: "cup, door" -> cup, door; at most ``MOST_SEGMENTS``."""
    return [part.strip() for part in _SEGMENT.split(text) if part.strip()][:MOST_SEGMENTS] or [text]


def extras(items: Sequence[Item]) -> dict[str, Array]:
    """Return the features of profile functions: numbers as they are, texts as codes."""
    names = sorted({name for item in items for name in item.extra})
    out: dict[str, Array] = {}
    for name in names:
        given = [item.extra.get(name) for item in items]
        as_text = any(isinstance(value, str) for value in given)
        # None becomes nan.
        codes = [None if v is None else hash_of(str(v)) % 997 for v in given] if as_text else given
        out[f"extra.{name}"] = np.array(codes, float)
    return out


class OptionRows:
    """A row for each option of each item.

    Args:
        items: n items.
        options: the option texts of each item; default: its own.
        right: the places of the right options of each item; default: those of its gold.

    Attributes:
        items: as given.
        are_candidates: whether options were given, which are not those of the items.
        category: the number of each item's category, with its format and its number of options, shape (n,).
        sizes: how many options each item has, shape (n,).
        start: the first row of each item, shape (n,).
        count: how many rows there are.
        owner: the item of each row, shape (rows,), ascending.
        place: the place of each row among the options of its item, shape (rows,).
        names: the distinct texts of options.
        text: the number of each row's text among ``names``, shape (rows,).
        hashes: the hash of each row's text, shape (rows,).
        target: 1 where the option is right, else 0, shape (rows,).
        questions: the words of the items' questions.
        contexts: what the prompt of each item says beside the question.
    """

    def __init__(
        self,
        items: Sequence[Item],
        options: Sequence[Sequence[str]] | None = None,
        right: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.items, self.are_candidates = items, options is not None
        given = [item.options for item in items] if options is None else options
        self.category = numbered((item.category, item.format, len(item.answers)) for item in items)
        self.sizes = np.array([len(own) for own in given], np.intp)
        self.start = np.cumsum(self.sizes) - self.sizes
        self.count = int(self.sizes.sum())
        self.owner = np.repeat(np.arange(len(items)), self.sizes)
        self.place = _within(self.sizes, self.owner)
        texts = [option_name(text) for own in given for text in own]
        self.names, self.text = list(dict.fromkeys(texts)), numbered(texts)
        self.hashes = np.array([hash_of(name) for name in self.names], np.uint64)[self.text]
        self.target = np.zeros(self.count)
        for i, item in enumerate(items):
            for place in right[i] if right is not None else item.rights:
                self.target[self.start[i] + place] = 1.0
        self.questions = Texts.of([item.question for item in items])
        self.contexts = [item.context for item in items]

    @cached_property
    def vocabulary(self) -> list[frozenset[str]]:
        """The words of each distinct text."""
        return [frozenset(words(name)) for name in self.names]

    @cached_property
    def segments(self) -> list[list[str]]:
        """The parts of each distinct text."""
        return list(map(segments, self.names))

    def of(self, places: Places) -> Places:
        """Return the rows of the items at these places."""
        return np.flatnonzero(np.isin(self.owner, places))

    def of_item(self, item: int) -> slice:
        """Return the rows of the item at a place."""
        return slice(self.start[item], self.start[item] + self.sizes[item])

    def less_mean(self, values: Array) -> Array:
        """Subtract from each row the mean of the rows of its item."""
        known, items = np.isfinite(values), len(self.items)
        owner = self.owner[known]
        means = np.bincount(owner, values[known], items) / np.maximum(np.bincount(owner, minlength=items), 1)
        return values - means[self.owner]

    def shares_in(self, texts: Sequence[str]) -> Array:
        """Return for each row the share of its words in the text of its item.

        Args:
            texts: n texts.
        """
        read = [frozenset(words(text)) for text in texts]
        own = [(self.vocabulary[text], read[item]) for text, item in zip(self.text, self.owner, strict=True)]
        return np.array([len(said & known) / max(1, len(said)) for said, known in own])

    def spread(self, owner: Places) -> tuple[Places, Places]:
        """Pair every entry of an item with every row of the item; return (entry, row), rows ascending."""
        counts = self.sizes[owner]
        entry = np.repeat(np.arange(len(owner)), counts)
        row = self.start[owner][entry] + _within(counts, entry)
        order = np.argsort(row, kind="stable")
        return entry[order], row[order]


class OptionKeys:
    """The keys under which right options are counted: the option, its letter, a segment, a word of the question with it.

    Args:
        rows: the options.
    """

    def __init__(self, rows: OptionRows) -> None:
        self._rows = rows
        self._every, self._category = np.arange(rows.count), rows.category[rows.owner]

    @cached_property
    def _parts(self) -> tuple[Places, Places, Hashes]:
        """Row, place in the option, and hash of each segment."""
        cut = [[hash_of(part) for part in parts] for parts in self._rows.segments]
        row, place, at = _laid_out(np.array([len(parts) for parts in cut], np.intp), self._rows.text)
        return row, place, np.array([h for parts in cut for h in parts], np.uint64)[at]

    @cached_property
    def fixed(self) -> list[Family]:
        """The keys equal for every split into folds; the first are the options."""
        rows, every, category = self._rows, self._every, self._category
        row, place, part = self._parts
        few = np.flatnonzero(rows.place < MOST_RIVALS)
        entry, rival = rows.spread(rows.owner[few])
        entry = few[entry]
        # An option is no rival of itself.
        other = entry != rival
        words_of = Texts.of(rows.names)
        word_row, _, at = _laid_out(np.bincount(words_of.owner, minlength=len(rows.names)), rows.text)
        word = words_of.hashes[words_of.words[at]]
        out = [
            Family("option", every, mix(1, category, rows.hashes), single=True),
            Family("letter", every, mix(2, category, rows.place), single=True),
            Family(
                "option and rival", rival[other], mix(3, category[rival], rows.hashes[rival], rows.hashes[entry])[other]
            ),
            Family("segment", row, mix(4, category[row], part)),
            Family("segment at its place", row, mix(5, category[row], place, part)),
            self._segment_pairs("neighbouring segments", 6, [1]),
            self._segment_pairs("order of segments", 7, range(1, MOST_SEGMENTS)),
            Family("word of the option", word_row, mix(8, category[word_row], word)),
            Family("word of the option, any category", word_row, mix(9, word)),
            self._with_words("word of the question and option", 10, rows.questions, rows.hashes),
        ]
        for number, (name, values) in enumerate(extras(rows.items).items()):
            code = mix(35, number, np.nan_to_num(values, nan=-1e300).view(np.uint64))
            out.append(Family(name, every, mix(36, code[rows.owner], rows.hashes), single=True))
        if any(rows.contexts):
            beside = Texts.of(rows.contexts)
            out.append(self._with_words("word of the context and option", 33, beside, rows.hashes))
            out.append(self._with_words("word of the context and letter", 34, beside, rows.place))
        return out

    def _with_words(self, name: str, salt: int, texts: Texts, own: Hashes | Places) -> Family:
        """Return pairs of each early word of an item's text with each option's value, shape (rows,)."""
        kept = np.arange(len(texts.owner)) - np.searchsorted(texts.owner, texts.owner) < MOST_WORDS
        entry, row = self._rows.spread(texts.owner[kept])
        return Family(name, row, mix(salt, texts.hashes[texts.words[kept]][entry], own[row]))

    def _segment_pairs(self, name: str, salt: int, distances: Iterable[int]) -> Family:
        row, _, part = self._parts
        at, after = pairs_within(row, distances)
        return Family(name, row[at], mix(salt, self._category[row[at]], part[at], part[after]))

    @cached_property
    def usual_places(self) -> tuple[Family, Array]:
        """The segments of options, with the position of each from -1/2 (first) to 1/2 (last)."""
        row, place, part = self._parts
        last = (np.bincount(row, minlength=self._rows.count) - 1)[row]
        family = Family("usual place of segments", row, mix(15, self._category[row], part))
        return family, place / np.maximum(last, 1) - (last > 0) / 2

    def of_slots(self, slots: Slots) -> list[Family]:
        """Return keys of rows from templates found in the training texts."""
        rows, every = self._rows, self._every
        entry, row = rows.spread(slots.owner)
        category, value, hashes = self._category[row], slots.value[entry], rows.hashes[row]
        return [
            Family("template and option", every, mix(11, slots.skeleton[rows.owner], rows.hashes), single=True),
            Family("slot value and option", row, mix(12, category, value, hashes)),
            Family("slot value at its place and option", row, mix(13, category, slots.number[entry], value, hashes)),
        ]

    def offered(self, train: Places) -> Array:
        """Return how often the option is offered by training items of its category, as log(1 + count)."""
        in_train = np.isin(self._rows.owner, train)
        kinds, code = self.fixed[0].coded
        # A training item does not count itself, as a held-out item is not counted either.
        return np.log1p(np.bincount(code[in_train], minlength=kinds)[code] - in_train)


def pairs_within(row: Places, distances: Iterable[int]) -> tuple[Places, Places]:
    """Pair the entries of a row at some distances; return the places of the first and of the second, rows ascending.

    Args:
        row: the row of each entry, ascending.
        distances: how far apart, in entries.
    """
    firsts = [(np.flatnonzero(row[d:] == row[:-d]), d) for d in distances if len(row) > d]
    at = np.concatenate([first for first, _ in firsts]) if firsts else np.empty(0, np.intp)
    after = np.concatenate([first + d for first, d in firsts]) if firsts else at
    order = np.argsort(row[at], kind="stable")
    return at[order], after[order]


def _laid_out(lengths: Places, text: Places) -> tuple[Places, Places, Places]:
    """Return for each part of each row's text: the row, the place in the text, and the place among the parts of all texts.

    Args:
        lengths: how many parts each text has.
        text: the text of each row.
    """
    own = lengths[text]
    row = np.repeat(np.arange(len(text)), own)
    within = _within(own, row)
    return row, within, (np.cumsum(lengths) - lengths)[text][row] + within


def _within(lengths: Places, row: Places) -> Places:
    """Return the place of each entry among those of its row, from how many each row has and the row of each entry."""
    return np.arange(len(row)) - (np.cumsum(lengths) - lengths)[row]
