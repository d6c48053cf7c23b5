"""Detection of question templates: the words that stay the same, and what fills the slots. NumPy only.

A word that most questions of a category have belongs to the template. The other words fill slots, and neighbouring ones
fill one slot together ("ceiling light"). Templates are not written down by hand: the document frequencies of the
*training* texts decide, so that held-out texts do not change how training texts are read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmms_patch.tst.items import Places

Hashes = NDArray[np.uint64]

TEMPLATE_SHARE = 0.5
"""A word in at least this share of a category's training questions belongs to the template."""
MOST_SLOTS = 12
"""The most slots of a question: bounds the memory for free text."""

_WORD = re.compile(r"\w+|[^\w\s]")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def words(text: str) -> list[str]:
    """Split a text into words and marks in lower case; in languages without spaces a run of letters is a word.

    >>> words("Is the tv left?")
    ['is', 'the', 'tv', 'left', '?']
    """
    return _WORD.findall(text.lower())


def hash_of(text: str) -> int:
    """Return a 64-bit hash of a text, the same in every process."""
    # half a character (a lone surrogate) has no bytes in UTF-8
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def mix(*parts: Hashes | Places | int) -> Hashes:
    """Combine several values into a hash by splitmix64's finaliser; their order matters and shapes broadcast.

    Overflow wraps silently.
    """
    # digits of pi: any number but 0 would do
    out: Hashes = np.asarray(0x243F6A8885A308D3, np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            value = np.asarray(part).astype(np.uint64)
            z = (out ^ value) * _MULTIPLIER
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            out = z ^ (z >> np.uint64(31))
    return out


@dataclass(frozen=True)
class Texts:
    """Texts split into words, as flat arrays.

    Attributes:
        words: the number of each word, shape (W,).
        owner: the text to which each word belongs, shape (W,), ascending.
        hashes: the hash of each distinct word, by its number.
        count: number of texts.
        names: the distinct words, by number.
    """

    words: Places
    owner: Places
    hashes: Hashes
    count: int
    names: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Split texts into words."""
        numbers: dict[str, int] = {}
        cut = [[numbers.setdefault(word, len(numbers)) for word in words(text)] for text in texts]
        lengths = [len(c) for c in cut]
        flat = np.fromiter((w for c in cut for w in c), np.intp, sum(lengths))
        names = tuple(numbers)
        hashes = np.array([hash_of(name) for name in names], np.uint64)
        return cls(flat, np.repeat(np.arange(len(texts)), lengths), hashes, len(texts), names)


@dataclass(frozen=True)
class Slots:
    """The slots of all texts.

    Attributes:
        owner: the text of each slot, shape (S,), ascending.
        number: the place of the slot in its text, from 0, shape (S,).
        value: hash of the words that fill it, shape (S,).
        start: its first word in ``Texts.words``, shape (S,).
        stop: one past its last word, shape (S,).
        skeleton: hash of the template of each text, shape (texts,).
    """

    owner: Places
    number: Places
    value: Hashes
    start: Places
    stop: Places
    skeleton: Hashes


def find_slots(texts: Texts, category: Places, train: Places, share: float = TEMPLATE_SHARE) -> Slots:
    """Find the slots of all texts, by the document frequencies of the training texts.

    Args:
        texts: all texts.
        category: the category of each text, shape (texts,), from 0.
        train: the places of the training texts.
        share: see ``TEMPLATE_SHARE``.
    """
    in_train = np.zeros(texts.count, bool)
    in_train[train] = True
    # A word counts for a category, so the code has both.
    code = category[texts.owner] * len(texts.names) + texts.words
    distinct = (
        np.unique(np.stack([texts.owner, code])[:, in_train[texts.owner]], axis=1)
        if len(code)
        else np.empty((2, 0), np.intp)
    )
    kinds, frequency = np.unique(distinct[1], return_counts=True)
    sizes = np.bincount(category[train], minlength=int(category.max()) + 1 if len(category) else 1)
    place = np.minimum(np.searchsorted(kinds, code), max(0, len(kinds) - 1))
    known = kinds[place] == code if len(kinds) else np.zeros(len(code), bool)
    # Only training texts decide which words stay the same.
    frequent = known & (frequency[place] >= share * sizes[category[texts.owner]]) if len(kinds) else known
    mark = np.array([not name[0].isalnum() for name in texts.names], bool)[texts.words] if len(code) else known
    return _slots(texts, ~frequent & ~mark)


def _slots(texts: Texts, filling: NDArray[np.bool_]) -> Slots:
    """Return the slots: runs of filling words within a text."""
    if not len(filling):
        empty = np.empty(0, np.intp)
        return Slots(empty, empty, np.empty(0, np.uint64), empty, empty, np.zeros(texts.count, np.uint64))
    first_of_text = np.r_[True, texts.owner[1:] != texts.owner[:-1]]
    starts = filling & (first_of_text | ~np.r_[False, filling[:-1]])
    start = np.flatnonzero(starts)
    last_of_text = np.r_[first_of_text[1:], True]
    stop = np.flatnonzero(filling & (last_of_text | ~np.r_[filling[1:], False])) + 1
    run = np.maximum(np.cumsum(starts) - 1, 0)
    within = np.arange(len(filling)) - (start[run] if len(start) else 0)
    spelled = mix(texts.hashes[texts.words], within.astype(np.uint64))
    value = np.zeros(len(start), np.uint64)
    # hashes wrap around on purpose
    with np.errstate(over="ignore"):
        np.add.at(value, run[filling], spelled[filling])
    owner = texts.owner[start]
    number = np.arange(len(start)) - np.searchsorted(owner, owner)
    # the template: its words in order, with one mark for a slot, however many words fill it
    shown = starts | ~filling
    place = np.cumsum(shown) - 1
    position = place - place[np.flatnonzero(first_of_text)][np.cumsum(first_of_text) - 1]
    part = mix(np.where(filling, np.uint64(0), texts.hashes[texts.words]), position.astype(np.uint64))
    skeleton = np.zeros(texts.count, np.uint64)
    with np.errstate(over="ignore"):
        np.add.at(skeleton, texts.owner[shown], part[shown])
    keep = number < MOST_SLOTS
    return Slots(owner[keep], number[keep], value[keep], start[keep], stop[keep], skeleton)
