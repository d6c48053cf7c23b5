"""Features of items and of their options, from prompt, options and category alone. No template is written by hand.

A multiple-choice item has one row per option ("is this option right?"), so that models learn about options, not
letters. An item with a number as gold has one row. Golds enter only as statistics of the training folds
(``target_encoding``). Ids, sources and other fields never enter.

Source: TsT paper (https://arxiv.org/abs/2511.04655), B.2 and B.3: the same kinds of features, but found in the data
instead of by regular expressions for each benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.answers import as_number
from lmms_patch.tst import linear
from lmms_patch.tst.items import Item, Places
from lmms_patch.tst.target_encoding import Array, Family, agreement, inner_folds, moments, rates
from lmms_patch.tst.templates import Slots, Texts, find_slots, hash_of, mix, words
from lmms_patch.tst.tfidf import TextSpace
from lmms_patch.tst.vectors import Embed, VectorSpace

MOST_SEGMENTS = 8
"""The most parts of an option that lists several things."""
MOST_WORDS = 32
"""The most words of a question that are paired with options: bounds the memory for long texts."""
MOST_RIVALS = 32
"""The most options with which every option of an item is compared: bounds the memory for long lists."""
MOST_CLOSED, CLOSED_SHARE = 6, 0.05
"""The linear model reads the questions apart for each option that at least this share of the training items offers; the most such options."""
NEAR_WEIGHT, COMPONENT_WEIGHT = 10.0, 2.0
"""How much the linear model hears of embeddings, beside n-grams of length 1: of the cosine of option and question, and of components."""
LINEAR, SHARE = "linear model: score", "linear model: share"
"""The features that hold its scores, and the probabilities of the options of an item by them."""

_SEGMENT = re.compile(r"[,;/]|→|->|\band\b|\bthen\b")
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


def asked_of(item: Item) -> str:
    """Return the text of an item for embedding: the context beside the question, then the question."""
    return f"{item.context}\n{item.question}" if item.context else item.question


def option_name(text: str) -> str:
    """Return the text of an option in lower case, without outer white space and final periods."""
    return text.strip().lower().rstrip(".")


def numbered(values: Iterable[Any]) -> Places:
    """Return values as numbers from 0, in order of first appearance."""
    codes: dict[Any, int] = {}
    return np.array([codes.setdefault(value, len(codes)) for value in values], np.intp)


def _segments(text: str) -> list[str]:
    """Split the text of a list into parts: "cup, door" -> cup, door; at most ``MOST_SEGMENTS``."""
    return [part.strip() for part in _SEGMENT.split(text) if part.strip()][:MOST_SEGMENTS] or [text]


def _less_mean(values: Array, owner: Places, items: int) -> Array:
    """Subtract from each row the mean of the rows of its item."""
    known = np.isfinite(values)
    means = np.bincount(owner[known], values[known], items) / np.maximum(np.bincount(owner[known], minlength=items), 1)
    return np.asarray(values - means[owner])


def _extras(items: Sequence[Item]) -> dict[str, Array]:
    """Return the features of profile functions: numbers as they are, texts as codes."""
    names = sorted({name for item in items for name in item.extra})
    out: dict[str, Array] = {}
    for name in names:
        given = [item.extra.get(name) for item in items]
        as_text = any(isinstance(value, str) for value in given)
        codes = [hash_of(str(v)) % 997 if v is not None else np.nan for v in given] if as_text else given
        out[f"extra.{name}"] = np.array([np.nan if v is None else float(v) for v in codes])
    return out


def _item_features(items: Sequence[Item], texts: Texts) -> dict[str, Array]:
    """Return the features of whole questions, without use of golds."""
    marks = np.array([name[0].isdigit() for name in texts.names] or [False])
    numbers: Array = np.bincount(texts.owner[marks[texts.words]], minlength=len(items)).astype(float)
    return {
        "question.characters": np.array([len(item.question) for item in items], float),
        "question.numbers": numbers,
        "question.options": np.array([len(item.options) for item in items], float),
        **_extras(items),
    }


class OptionTable:
    """The table of options: a row for each option of each item.

    Args:
        items: n items.
        options: the option texts of each item; default: its own.
        right: the places of the right options of each item; default: those of its gold.
        embed: a text-embedding model; None: no embeddings.
    """

    def __init__(
        self,
        items: Sequence[Item],
        options: Sequence[Sequence[str]] | None = None,
        right: Sequence[Sequence[int]] | None = None,
        embed: Embed | None = None,
    ) -> None:
        self.items, self._embed, self._are_candidates = items, embed, options is not None
        given = [item.options for item in items] if options is None else options
        self.category = numbered((item.category, item.format, len(item.answers)) for item in items)
        self.sizes = np.array([len(own) for own in given], np.intp)
        self.start = np.cumsum(self.sizes) - self.sizes
        self.rows = int(self.sizes.sum())
        self.owner = np.repeat(np.arange(len(items)), self.sizes)
        self.place = np.arange(self.rows) - self.start[self.owner]
        self.names, self.text = _distinct([option_name(text) for own in given for text in own])
        self.hashes = (
            np.array([hash_of(name) for name in self.names], np.uint64)[self.text]
            if self.rows
            else np.empty(0, np.uint64)
        )
        self.target = np.zeros(self.rows)
        for i, item in enumerate(items):
            for place in right[i] if right is not None else item.rights:
                self.target[self.start[i] + place] = 1.0
        self.questions = Texts.of([item.question for item in items])
        self._contexts = [item.context for item in items]

    def rows_of(self, places: Places) -> Places:
        """Return the rows of the items at these places."""
        return np.flatnonzero(np.isin(self.owner, places))

    @cached_property
    def _option_words(self) -> Texts:
        return Texts.of(self.names)

    @cached_property
    def _parts(self) -> tuple[Places, Places, NDArray[np.uint64]]:
        """Row, place in the option, and hash of each segment."""
        cut = [[hash_of(part) for part in _segments(name)] for name in self.names]
        lengths = np.array([len(parts) for parts in cut], np.intp)
        flat = np.array([h for parts in cut for h in parts], np.uint64)
        at = np.cumsum(lengths) - lengths
        row = np.repeat(np.arange(self.rows), lengths[self.text])
        within = _within(lengths[self.text], row)
        return row, within, flat[at[self.text][row] + within]

    @cached_property
    def _space(self) -> TextSpace:
        return TextSpace([item.question for item in self.items])

    @cached_property
    def _context_space(self) -> TextSpace:
        return TextSpace(self._contexts)

    @cached_property
    def _option_space(self) -> TextSpace:
        return TextSpace(self.names)

    @cached_property
    def _vectors(self) -> tuple[VectorSpace, VectorSpace] | None:
        """The embeddings of the items' questions, and of the distinct options."""
        return (
            None
            if self._embed is None
            else (_question_vectors(self._embed, self.items), VectorSpace(self._embed, self.names))
        )

    @cached_property
    def _near(self) -> Array:
        """The cosine of each option with the question, shape (rows,)."""
        assert self._vectors is not None
        questions, options = self._vectors
        return options.cosines(self.text, questions, self.owner).astype(float)

    def _components(self, train: Places, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the principal components of the embeddings.

        Those of the questions have shape (items, components), those of the distinct option texts (option texts,
        components).
        """
        if self._vectors is None:
            return np.empty((len(self.items), 0), np.float32), np.empty((len(self.names), 0), np.float32)
        questions, options = self._vectors
        return questions.components(train, seed), options.components(self._shown(train), seed)

    def _shown(self, train: Places) -> Places:
        """Return the distinct options of the training items, in order of first appearance."""
        return _first_seen(self.text[np.isin(self.owner, train)])

    @cached_property
    def _static(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """The features without golds: of rows (with a version less the item's mean), and of items."""
        names = self.names
        of_text = {
            "option.characters": [len(name) for name in names],
            "option.words": [len(name.split()) for name in names],
            "option.segments": [len(_segments(name)) for name in names],
            "option.number": [
                np.nan if (v := as_number(_NOT_NUMBER.sub("", name) or "x")) is None else v for name in names
            ],
        }
        rows = {
            name: np.array(values, float)[self.text] if self.rows else np.zeros(0) for name, values in of_text.items()
        }
        overlap, likeness, same = self._overlaps()
        if any(self._contexts):
            rows["option.in context"] = self._in_context()
        if self._embed is not None:
            rows["option.near question"] = self._near
        rows |= {
            "option.in question": overlap,
            "option.like others": likeness,
            "option.segments shared": same,
            "option.place": self.place.astype(float),
        }
        return rows, _item_features(self.items, self.questions)

    def _in_context(self) -> Array:
        """Return for each option the share of its words in the item's context."""
        vocabulary = [frozenset(words(name)) for name in self.names]
        read = [frozenset(words(context)) for context in self._contexts]
        return np.array(
            [
                len(vocabulary[text] & read[item]) / max(1, len(vocabulary[text]))
                for text, item in zip(self.text, self.owner, strict=True)
            ]
        )

    def _overlaps(self) -> tuple[Array, Array, Array]:
        """Return three features of each option.

        They are: the share of its words that the question has; the mean Jaccard index with the words of the other
        options; the mean share of equal segments. The last two are 0 for candidates, which nobody wrote to go together.
        """
        vocabulary = [frozenset(words(name)) for name in self.names]
        parts = [_segments(name) for name in self.names]
        overlap, likeness, same = np.zeros(self.rows), np.zeros(self.rows), np.zeros(self.rows)
        alike: dict[tuple[int, ...], Array] = {}
        for i, item in enumerate(self.items):
            rows = slice(self.start[i], self.start[i] + self.sizes[i])
            texts = tuple(self.text[rows].tolist())
            question = frozenset(words(item.question))
            overlap[rows] = [len(vocabulary[a] & question) / max(1, len(vocabulary[a])) for a in texts]
            if self._are_candidates:
                continue
            if texts not in alike:
                alike[texts] = (
                    np.array([_alike(texts, offset, vocabulary, parts) for offset in range(len(texts))])
                    .reshape(-1, 2)
                    .T
                )
            likeness[rows], same[rows] = alike[texts]
        return overlap, likeness, same

    def _spread(self, owner: Places) -> tuple[Places, Places]:
        """Pair every entry of an item with every row of the item; return (entry, row), rows ascending."""
        counts = self.sizes[owner]
        entry = np.repeat(np.arange(len(owner)), counts)
        row = self.start[owner][entry] + np.arange(len(entry)) - (np.cumsum(counts) - counts)[entry]
        order = np.argsort(row, kind="stable")
        return entry[order], row[order]

    @cached_property
    def _fixed_families(self) -> list[Family]:
        """The keys of rows, equal for every split into folds."""
        every = np.arange(self.rows)
        category = self.category[self.owner].astype(np.uint64)
        row, place, part = self._parts
        few = np.flatnonzero(self.place < MOST_RIVALS)
        entry, rival = self._spread(self.owner[few])
        entry = few[entry]
        # An option is no rival of itself.
        other = entry != rival
        out = [
            Family("option", every, mix(1, category, self.hashes), single=True),
            Family("letter", every, mix(2, category, self.place), single=True),
            Family(
                "option and rival", rival[other], mix(3, category[rival], self.hashes[rival], self.hashes[entry])[other]
            ),
            Family("segment", row, mix(4, category[row], part)),
            Family("segment at its place", row, mix(5, category[row], place, part)),
            self._segment_pairs("neighbouring segments", 6, [1]),
            self._segment_pairs("order of segments", 7, range(1, MOST_SEGMENTS)),
        ]
        texts = self._option_words
        lengths = np.bincount(texts.owner, minlength=len(self.names))
        word_row = np.repeat(every, lengths[self.text])
        first = np.cumsum(lengths) - lengths
        word = texts.hashes[texts.words[first[self.text][word_row] + _within(lengths[self.text], word_row)]]
        out.append(Family("word of the option", word_row, mix(8, category[word_row], word)))
        out.append(Family("word of the option, any category", word_row, mix(9, word)))
        out.append(self._words_and_options("word of the question and option", 10, self.questions, self.hashes))
        for number, (name, values) in enumerate(_extras(self.items).items()):
            code = mix(35, number, np.nan_to_num(values, nan=-1e300).view(np.uint64))
            out.append(Family(name, every, mix(36, code[self.owner], self.hashes), single=True))
        if any(self._contexts):
            beside = Texts.of(self._contexts)
            out.append(self._words_and_options("word of the context and option", 33, beside, self.hashes))
            out.append(
                self._words_and_options("word of the context and letter", 34, beside, self.place.astype(np.uint64))
            )
        return out

    def _words_and_options(self, name: str, salt: int, texts: Texts, own: NDArray[np.uint64]) -> Family:
        """Return pairs of each early word of an item's text with each option's value, shape (rows,)."""
        within = np.arange(len(texts.owner)) - np.searchsorted(texts.owner, texts.owner)
        kept = within < MOST_WORDS
        entry, row = self._spread(texts.owner[kept])
        return Family(name, row, mix(salt, texts.hashes[texts.words[kept]][entry], own[row]))

    @cached_property
    def _usual_places(self) -> tuple[Family, Array]:
        """The segments of options, with the position of each from -1/2 (first) to 1/2 (last)."""
        row, place, part = self._parts
        last = (np.bincount(row, minlength=self.rows) - 1)[row]
        return Family(
            "usual place of segments", row, mix(15, self.category[self.owner[row]], part)
        ), place / np.maximum(last, 1) - (last > 0) / 2

    def _segment_pairs(self, name: str, salt: int, distances: Iterable[int]) -> Family:
        row, _, part = self._parts
        firsts = [(np.flatnonzero(row[d:] == row[:-d]), d) for d in distances if len(row) > d]
        at = np.concatenate([first for first, _ in firsts]) if firsts else np.empty(0, np.intp)
        after = np.concatenate([first + d for first, d in firsts]) if firsts else at
        order = np.argsort(row[at], kind="stable")
        at, after = at[order], after[order]
        return Family(name, row[at], mix(salt, self.category[self.owner[row[at]]], part[at], part[after]))

    def _slot_families(self, slots: Slots) -> list[Family]:
        """Return keys of rows from templates found in the training texts."""
        entry, row = self._spread(slots.owner)
        category = self.category[self.owner[row]]
        every = np.arange(self.rows)
        return [
            Family("template and option", every, mix(11, slots.skeleton[self.owner], self.hashes), single=True),
            Family("slot value and option", row, mix(12, category, slots.value[entry], self.hashes[row])),
            Family(
                "slot value at its place and option",
                row,
                mix(13, category, slots.number[entry], slots.value[entry], self.hashes[row]),
            ),
        ]

    def _terms(self, train: Places, questions: NDArray[np.float32], options: NDArray[np.float32]) -> linear.Terms:
        """Return what the linear model reads of each row.

        It is the option's text; the question, for each option apart that many training items offer (as yes and no); the
        option and its place by category. With embeddings also the components of both, and how near the option is to the
        question.

        Args:
            train: places of the training items.
            questions: their components, shape (items, count).
            options: their components, shape (options, count).
        """
        shown, every = np.flatnonzero(np.isin(self.owner, train)), np.arange(self.rows)
        names, times = np.unique(self.hashes[shown], return_counts=True)
        often = np.argsort(-times, kind="stable")[:MOST_CLOSED]
        closed = names[often[times[often] >= CLOSED_SHARE * max(1, len(train))]]
        spaces = [self._space, self._context_space] if any(self._contexts) else [self._space]
        blocks = [
            _block(self._option_space.weighted(self.text[shown]), self.text),
            _block(COMPONENT_WEIGHT * options.astype(float), self.text),
            *([] if self._embed is None else [_block(NEAR_WEIGHT * self._near[:, None], every)]),
            *(_block(space.weighted(train), space.place[self.owner], self.hashes, closed) for space in spaces),
            _block(COMPONENT_WEIGHT * questions.astype(float), self.owner, self.hashes, closed),
        ]
        for kind in (mix(31, self.category[self.owner], self.hashes), mix(32, self.category[self.owner], self.place)):
            blocks.append(_block(np.array([[0.5]]), np.zeros(self.rows, np.intp), kind, np.unique(kind[shown])))
        return linear.Terms(self.rows, [block for block in blocks if block.width])

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
        inner = inner_folds(train, groups, len(self.items), seed)[self.owner]
        questions, options = self._components(train, seed)
        columns = self._for_trees(train, inner, seed) if trees else {}
        if trees:
            columns |= _by_number("question text (embedding)", questions[self.owner])
            columns |= _by_number("option text (embedding)", options[self.text])
        if linear_model and 0 < self.rows <= linear.MOST_ROWS:
            scores = (
                linear.option_scores(self._terms(train, questions, options), self.owner, self.target, inner)
                if len(train)
                else np.zeros(self.rows)
            )
            columns |= {LINEAR: _less_mean(scores, self.owner, len(self.items))}
            columns[SHARE] = linear.shares(scores, self.owner)
        return Features(_table(columns, self.rows), tuple(columns), inner)

    def _for_trees(self, train: Places, inner: Places, seed: int) -> dict[str, Array]:
        """Return the features for trees by name; arguments as in ``features``, with ``inner`` of each row."""
        count = len(self.items)
        slots = find_slots(self.questions, self.category, train)
        residual = self.target - 1 / np.maximum(self.sizes, 1)[self.owner]
        columns: dict[str, Array] = {}
        usual, place = self._usual_places
        learned = [
            (family.name, rates(family, residual, inner))
            for family in [*self._fixed_families, *self._slot_families(slots)]
        ]
        for family, statistics in [*learned, (usual.name, agreement(usual, place, self.target, inner))]:
            # An option competes only with the options of its own item.
            for name, values in statistics.items():
                columns[f"{family}: {name}"] = values if name == "count" else _less_mean(values, self.owner, count)
        rows, items = self._static
        for name, values in rows.items():
            columns[name] = values
            columns[f"{name}, relative"] = _less_mean(values, self.owner, count)
        offered = self._offered(train)
        columns |= {
            "option.times offered": offered,
            "option.times offered, relative": _less_mean(offered, self.owner, count),
        }
        columns |= {name: values[self.owner] for name, values in items.items()}
        columns["category"] = _as_seen(self.category, train)[self.owner]
        columns |= {
            f"question text (TF-IDF) {i}": v[self.owner] for i, v in enumerate(self._space.components(train, seed))
        }
        columns |= {
            f"option text (TF-IDF) {i}": v[self.text]
            for i, v in enumerate(self._option_space.components(self._shown(train), seed))
        }
        return columns

    def _offered(self, train: Places) -> Array:
        """Return how often the option is offered by training items of its category, as log(1 + count)."""
        in_train = np.zeros(len(self.items), bool)
        in_train[train] = True
        kinds, code = next(family for family in self._fixed_families if family.name == "option").coded
        return np.asarray(
            # A training item does not count itself, as a held-out item is not counted either.
            np.log1p(np.bincount(code[in_train[self.owner]], minlength=kinds)[code] - in_train[self.owner])
        )


def _question_vectors(embed: Embed, items: Sequence[Item]) -> VectorSpace:
    return VectorSpace(embed, [asked_of(item) for item in items])


def _by_number(name: str, columns: NDArray[np.float32]) -> dict[str, Array]:
    """Return the columns of an array as features."""
    return {f"{name} {number}": values.astype(float) for number, values in enumerate(columns.T)}


def _table(columns: dict[str, Array], rows: int) -> NDArray[np.float32]:
    """Return columns side by side, shape (rows, columns)."""
    return np.column_stack(list(columns.values())).astype(np.float32) if columns else np.empty((rows, 0), np.float32)


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
    return np.asarray(codes[category])


def _first_seen(values: Places) -> Places:
    """Return the distinct values in order of first appearance."""
    distinct, first = np.unique(values, return_index=True)
    return np.asarray(distinct[np.argsort(first)])


def _alike(
    texts: Sequence[int], offset: int, vocabulary: Sequence[frozenset[str]], parts: Sequence[Sequence[str]]
) -> tuple[float, float]:
    """Return the words and the segments shared by an option and its rivals in the item, each from 0 to 1.

    Args:
        texts: the options, by their number among all texts.
        offset: the place of the option among them.
        vocabulary: the words of each text.
        parts: the segments of each text.
    """
    a, others = texts[offset], [b for place, b in enumerate(texts[:MOST_RIVALS]) if place != offset]
    if not others:
        return 0.0, 0.0
    likeness = sum(
        len(vocabulary[a] & vocabulary[b]) / max(1, len(vocabulary[a] | vocabulary[b])) for b in others
    ) / len(others)
    return likeness, sum(_shared(parts[a], parts[b]) for b in others) / len(others)


def _shared(a: Sequence[str], b: Sequence[str]) -> float:
    return sum(x == y for x, y in zip(a, b, strict=False)) / max(len(a), len(b))


def _within(lengths: Places, row: Places) -> Places:
    """Return the place of each entry among those of its row, from how many each row has and the row of each entry."""
    return np.arange(len(row)) - (np.cumsum(lengths) - lengths)[row]


def _distinct(texts: Sequence[str]) -> tuple[list[str], Places]:
    return list(dict.fromkeys(texts)), numbered(texts)


class NumberTable:
    """The table of number questions: a row for each item whose answer is a number.

    Args:
        items: n items.
        embed: a text-embedding model; None: no embeddings.
    """

    def __init__(self, items: Sequence[Item], embed: Embed | None = None) -> None:
        self.items, self._embed = items, embed
        self.category = numbered(item.category for item in items)
        golds = [as_number(item.golds[0]) if item.golds else None for item in items]
        self.golds = np.array([np.nan if gold is None else gold for gold in golds])
        self.questions = Texts.of(list(map(asked_of, items)))

    @cached_property
    def _space(self) -> TextSpace:
        return TextSpace([f"{item.question}\n{item.context}" for item in self.items])

    @cached_property
    def _vectors(self) -> VectorSpace | None:
        return None if self._embed is None else _question_vectors(self._embed, self.items)

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
        pairs = [(np.flatnonzero(slots.owner[d:] == slots.owner[:-d]), d) for d in range(1, 6) if len(slots.owner) > d]
        at = np.concatenate([first for first, _ in pairs]) if pairs else np.empty(0, np.intp)
        after = np.concatenate([first + d for first, d in pairs]) if pairs else at
        order = np.argsort(slots.owner[at], kind="stable")
        a, b = slots.value[at[order]], slots.value[after[order]]
        row = slots.owner[at[order]]
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
        components = (
            np.empty((len(self.items), 0), np.float32)
            if self._vectors is None
            else self._vectors.components(train, seed)
        )
        columns = (
            self._for_trees(train, target, inner, seed) | _by_number("question text (embedding)", components)
            if trees
            else {}
        )
        if linear_model and len(train) and len(self.items) <= linear.MOST_ROWS:
            columns[LINEAR] = linear.number_scores(self._terms(train, components), target, inner)
        return Features(_table(columns, len(self.items)), tuple(columns), inner)

    def _terms(self, train: Places, components: NDArray[np.float32]) -> Any:
        """Return what the linear model reads of each item, sparse, shape (n, terms): its text, and the components of its embedding."""
        from scipy.sparse import csr_matrix, hstack

        return hstack(
            [self._space.weighted(train)[self._space.place], csr_matrix(COMPONENT_WEIGHT * components.astype(float))]
        ).tocsr()

    def _for_trees(self, train: Places, target: Array, inner: Places, seed: int) -> dict[str, Array]:
        """Return the features for trees by name; ``target``, ``inner`` as in ``target_encoding.moments``."""
        slots = find_slots(self.questions, self.category, train)
        columns: dict[str, Array] = {}
        for family in self._families(slots):
            columns |= {f"{family.name}: {name}": values for name, values in moments(family, target, inner).items()}
        columns |= {**self._static, "category": _as_seen(self.category, train)}
        columns |= {f"question text (TF-IDF) {i}": v for i, v in enumerate(self._space.components(train, seed))}
        return columns


def _skewness(values: Array) -> float:
    spread = float(values.std())
    return float((((values - values.mean()) / spread) ** 3).mean()) if spread else 0.0
