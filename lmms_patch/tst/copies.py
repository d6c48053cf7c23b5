"""Copies: items that ask the same question, whatever they show. Pure.

A copy in the training folds tells a diagnostic something about the held-out item. There are two cases, and accuracy
alone does not tell them apart. Where copies mostly have the *same* gold ("a car" is mostly wrong), the text has a
prior, and who answers by it uses a shortcut of the language. Where a benchmark is balanced, so that copies have
*opposite* golds, the training copy gives the held-out answer away in reverse. That is a property of the set's design:
nobody who sees one question can use it.

Items are copies if they have the same words. Near copies differ by a few of them, or by their order: a typo, a
paraphrase. Folds by text keep both together.

Copies that no source tells apart may be one item that stands twice. Their golds then depend on each other, so they are
one piece of evidence: one cluster (``cluster_of``), whose golds are shuffled together (``tst.shuffle``).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.answers import as_number
from lmms_patch.runs.numbers import NEAR, CopyClass
from lmms_patch.tst.items import AnswerScores, Item, Places
from lmms_patch.tst.rewards import values_of

CLASSES: tuple[CopyClass, ...] = get_args(CopyClass)
"""``agreeing``: the other copies suggest an answer that is right for this item too. ``conflicting``: what they suggest is wrong for it.
``single``: there is no other copy, or they suggest both."""

_RARE, _RARE_TEXTS = 0.01, (10, 200)
"""Rare n-grams are in at most this share of the texts, and in a number of texts that is cut to this range. Questions of one template are alike in all
n-grams, questions on one thing in the rare ones; near copies are alike in both."""
_ROWS = 500
FEW_COPIES = 5
"""Copies of one item are at most one in so many docs: a question that more docs share is the task's own."""
_BEYOND = 1.645
"""Standard errors."""
_TOKENS = re.compile(r"(?P<number>(?:(?<![\w.])[-+\u2212])?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?)|[^\W_]+|[^\w\s]")
_APOSTROPHES = re.compile(r"(?<=\w)['\N{RIGHT SINGLE QUOTATION MARK}](?=\w)")
_TELLING = "%#&@*/\\"
"""Punctuation that changes what a text says; symbols such as + and < are no punctuation in Unicode, and are kept as well."""


# kept, since options and questions recur, and every shuffle of golds asks anew
@lru_cache(maxsize=2**16)
def normal(text: str) -> str:
    """Return a text without what does not change its meaning: case, white space, punctuation, Unicode form, spelling of numbers.

    >>> normal("  Is it 1,000.0 m - or LESS? "), normal("x < -2"), normal("don't")
    ('is it 1000 m or less', 'x < -2', 'dont')
    """
    plain = _APOSTROPHES.sub("", unicodedata.normalize("NFKC", text)).casefold()
    out = []
    for match in _TOKENS.finditer(plain):
        token = match[0]
        if match["number"]:
            out.append(_by_value(token))
        elif token in _TELLING or not unicodedata.category(token[0]).startswith("P"):
            out.append(token)
    return " ".join(out) or " ".join(text.split()).casefold()


def _by_value(number: str) -> str:
    """Return a number normalised for comparing copies: no thousands commas, plus signs or trailing zeros."""
    value = Decimal(number.replace(",", "").replace("\N{MINUS SIGN}", "-")).normalize()
    # + 0 turns -0 into 0
    return f"{value + 0:f}"


def text_of(item: Item) -> str:
    """Return the text by which items count as copies: question, options in any order, and the words of the rest of the prompt in any order.

    The rest of the prompt (a passage, a hint) belongs to the text, because the same question about another passage is
    another question. Its words count without their order, because the prompt lists the options in the order of the
    item.
    """
    options = sorted(normal(option) for option in item.options)
    # Words of the prompt are sorted: options in another order are still the same question.
    return "\n".join((normal(item.question), *options, " ".join(sorted(normal(item.prompt).split()))))


def near_texts(items: Sequence[Item]) -> list[int]:
    """Return a number for each item, equal for items in the same chain of near copies."""
    keys = [text_of(item) for item in items]
    # from the end, so that of equal texts the first item stays
    first = {key: item for item, key in zip(reversed(items), reversed(keys), strict=True)}
    asked = [
        ("\n".join((normal(item.question), *sorted(map(normal, item.options)))), normal(item.context))
        for item in first.values()
    ]
    number = dict(zip(first, _chained(tuple(asked)), strict=True))
    return [number[key] for key in keys]


# kept, since folds, clusters and copies ask for the same texts
@lru_cache(maxsize=8)
def _chained(asked: tuple[tuple[str, str], ...]) -> list[int]:
    """Return the chain of near copies of each text; texts with different contexts are never near."""
    from scipy.sparse import coo_array, diags
    from scipy.sparse.csgraph import connected_components
    from sklearn.feature_extraction.text import TfidfVectorizer

    count = len(asked)
    try:
        weights = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(3, 4), sublinear_tf=True, dtype=np.float32
        ).fit_transform(q for q, _ in asked)
    # scikit-learn raises where every text is empty and none has an n-gram: then nothing is a copy.
    except ValueError:
        return list(range(count))
    # Candidates by rare n-grams alone: frequent ones would make nearly every pair a candidate.
    rare = weights[:, weights.getnnz(axis=0) <= np.clip(_RARE * count, *_RARE_TEXTS)]
    # a text without a rare n-gram has the length 0
    rare = (diags(1 / np.sqrt(np.maximum(rare.multiply(rare).sum(axis=1).A1, 1e-12))) @ rare).tocsr()
    pairs = []
    # In blocks of rows, since all pairs at once would not fit memory.
    for start in range(0, count, _ROWS):
        alike = (rare[start : start + _ROWS] @ rare.T).tocoo()
        pairs.append(np.array([alike.row + start, alike.col])[:, alike.data >= NEAR])
    a, b = np.concatenate(pairs, axis=1)
    near = weights[a].multiply(weights[b]).sum(axis=1).A1 >= NEAR
    # The same question beside another context is another question.
    near &= np.array([asked[i][1] == asked[j][1] for i, j in zip(a, b, strict=True)], bool)
    return list(
        connected_components(
            coo_array((np.ones(near.sum()), (a[near], b[near])), shape=(count, count)), directed=False
        )[1].tolist()
    )


def unnamed_copies(items: Sequence[Item]) -> list[int | None]:
    """Give a number to each group of copies and near copies among the items that name neither source nor cluster.

    Returns:
        For each item the number of its group; None for an item that names a source or cluster, or has no copy.
    """
    unnamed = [i for i, item in enumerate(items) if item.source is None and item.cluster is None]
    out: list[int | None] = [None] * len(items)
    texts = near_texts([items[i] for i in unnamed])
    times = Counter(texts)
    for i, text in zip(unnamed, texts, strict=True):
        # A text shared by many docs is a template, not copies.
        if 1 < times[text] <= len(items) / FEW_COPIES:
            out[i] = text
    return out


def cluster_of(items: Sequence[Item]) -> Places | None:
    """Return the cluster number of each item: by source, else by cluster, else copies and near copies together, else alone.

    None where all items stand alone.
    """
    keys: list[tuple[str, Hashable]] = []
    for i, (item, copies) in enumerate(zip(items, unnamed_copies(items), strict=True)):
        named = item.source if item.source is not None else item.cluster
        alone = ("own", i) if copies is None else ("copies", copies)
        # by ``repr``, since 1 and "1" are two sources
        keys.append(alone if named is None else ("named", repr(named)))
    if all(kind == "own" for kind, _ in keys):
        return None
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], np.intp)


def gold_of(item: Item) -> str | None:
    """Return the gold for comparing copies: of choices the option's text, of numbers the value, else the text.

    None without a gold.
    """
    if not item.golds:
        return None
    gold = item.golds[0]
    if item.is_choice and item.right is not None:
        gold = item.options[item.right]
    value = as_number(gold)
    # ``+ 0.0`` turns -0.0 into 0.0, which is the same gold.
    return normal(gold) if value is None else repr(value + 0.0)


@dataclass(frozen=True)
class Copies:
    """The copies among items.

    Attributes:
        items: all items.
    """

    items: Sequence[Item]

    @cached_property
    def texts(self) -> list[int]:
        """A number for every item, equal for copies and near copies."""
        return near_texts(self.items)

    @cached_property
    def golds(self) -> list[str | None]:
        """The gold of every item for comparing copies."""
        return [gold_of(item) for item in self.items]

    def repeats(self) -> Repeats:
        """Count copies, those among them with different golds, and near copies."""
        exact = [text_of(item) for item in self.items]
        counts, chains = Counter(exact), Counter(self.texts)
        golds: dict[str, set[str]] = defaultdict(set)
        for text, gold in zip(exact, self.golds, strict=True):
            golds[text] |= set() if gold is None else {gold}
        near = sum(chains[chain] > counts[text] for text, chain in zip(exact, self.texts, strict=True))
        return Repeats(
            len(counts), sum(counts[text] > 1 for text in exact), sum(len(golds[text]) > 1 for text in exact), near
        )

    @property
    def conflict(self) -> bool:
        """Whether some copies, or near copies, have different golds."""
        known = [(text, gold) for text, gold in zip(self.texts, self.golds, strict=True) if gold is not None]
        return len(set(known)) > len({text for text, _ in known})

    def classes(self, places: Places, rewards: AnswerScores, full_marks: float = 1.0) -> list[CopyClass]:
        """Return each item's class of copies; an item's gold does not decide what the item's copies suggest.

        Copies suggest the gold that most of them have; for numbers the value that the native scorer rewards most on
        their golds. A suggestion is right where it is the item's gold, or for numbers where it earns at least half of
        the full marks. Where several answers are suggested alike, some right and some wrong, the copies suggest
        nothing.

        Args:
            places: the items that take part, shape (n,).
            rewards: the native scores, for numbers.
            full_marks: what a gold scores.

        Returns:
            One of ``CLASSES`` for each of ``places``.
        """
        out: list[CopyClass] = ["single"] * len(places)
        at = {int(place): i for i, place in enumerate(places)}
        for own in _members(self.texts, [place for place in at if self.golds[place] is not None]).values():
            if len(own) > 1:
                for place, said in zip(own, self._suggested(own, rewards, full_marks), strict=True):
                    out[at[place]] = said
        return out

    def _suggested(self, own: Sequence[int], rewards: AnswerScores, full_marks: float) -> list[CopyClass]:
        """Return the class of each copy of a text."""
        if self._are_numbers(own):
            values = values_of(rewards, np.array(own, np.intp))
            gains = values.reward @ np.bincount(values.place, minlength=len(values.texts))
            right = values.reward >= full_marks / 2
            suggested = [
                # what earns as much but for float error is suggested as well
                right[(gains - earned) >= (gains - earned).max() - 1e-9, v]
                for v, earned in enumerate(values.reward.T)
            ]
            by_value: list[CopyClass] = [
                "agreeing" if one.all() else "single" if one.any() else "conflicting" for one in suggested
            ]
            return [by_value[value] for value in values.place]
        counts = Counter(self.golds[i] for i in own)
        (first, most), (_, second) = [*counts.most_common(2), (None, 0)][:2]
        out: list[CopyClass] = []
        for gold in (self.golds[i] for i in own):
            # Without the item's own gold: the question is what its copies suggest.
            same, other = counts[gold] - 1, second if gold == first else most
            out.append("agreeing" if same > other else "single" if same == other else "conflicting")
        return out

    def _are_numbers(self, own: Sequence[int]) -> bool:
        return all(self.items[i].format == "number" and as_number(self.items[i].golds[0]) is not None for i in own)

    def prior(self, rewards: AnswerScores, full_marks: float = 1.0) -> tuple[float, float] | None:
        """Return how often two copies agree and how often two docs of a category agree; None unless copies agree more.

        Both are means over the docs that have copies, of the share of the others that agree with the doc: so coins
        agree alike in both, however many copies there are. More often: by more than 1.645 standard errors over texts,
        which is a one-sided test at 5 %. Numbers agree where one earns at least half of the full marks as answer to the
        other.
        """
        kinds = [f"{item.category}\n{item.format}\n{len(item.answers)}" for item in self.items]
        # Options differ between docs of a category, so golds compare by letter there.
        places = [
            str(item.right) if item.is_choice and item.right is not None else gold
            for item, gold in zip(self.items, self.golds, strict=True)
        ]
        of_text, of_kind = (
            self._agreement(keys, golds, rewards, full_marks)
            for keys, golds in ((self.texts, self.golds), (kinds, places))
        )
        known = np.flatnonzero(np.isfinite(of_text) & np.isfinite(of_kind))
        if not len(known):
            return None
        _, text = np.unique([self.texts[i] for i in known], return_inverse=True)
        gain = np.bincount(text, (of_text - of_kind)[known])
        more = gain.sum() > _BEYOND * float(np.sqrt((gain**2).sum()))
        return (float(of_text[known].mean()), float(of_kind[known].mean())) if more else None

    def _agreement(
        self, keys: Sequence[Hashable], golds: Sequence[str | None], rewards: AnswerScores, full_marks: float
    ) -> NDArray[np.float64]:
        """Return for each item the share of agreeing items among the rest of its key's items, shape (n,).

        Nan where there is no other.
        """
        out = np.full(len(self.items), np.nan)
        for own in _members(keys, [i for i, gold in enumerate(golds) if gold is not None]).values():
            if len(own) < 2:
                continue
            if self._are_numbers(own):
                values = values_of(rewards, np.array(own, np.intp))
                alike = (np.bincount(values.place, minlength=len(values.texts)) @ (values.reward >= full_marks / 2))[
                    values.place
                ]
            else:
                counts = Counter(golds[i] for i in own)
                alike = np.array([counts[golds[i]] for i in own])
            # Less one for the doc itself.
            out[own] = (alike - 1) / (len(own) - 1)
        return out


def _members(keys: Sequence[Hashable], places: Sequence[int]) -> dict[Hashable, list[int]]:
    """Return the places of each key."""
    out: dict[Hashable, list[int]] = defaultdict(list)
    for place in places:
        out[keys[place]].append(place)
    return out


@dataclass(frozen=True)
class Repeats:
    """Counts of repeated texts.

    Attributes:
        different: number of different texts.
        repeated: number of items whose text another item has too.
        conflicting: number of items whose text occurs with different golds.
        near: number of items that have a near copy.
    """

    different: int
    repeated: int
    conflicting: int
    near: int
