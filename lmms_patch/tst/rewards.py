"""Native scores of answers, asked once for each (answer, gold). Pure: the scorer is handed in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.answers import as_number, same_answer
from lmms_patch.tst.items import AnswerScores, Item, Places, Score

Array = NDArray[np.float64]

_PROBES = 20
"""How many items of a category are asked whether their scorer rewards nearness."""
MOST_VALUES = 60
"""The most different numbers in a predictive distribution of numbers, per category."""


class Rewards:
    """Native scores of answers, remembered.

    A reported score is the item's own (``exact``). Scores that choose answers, and scores in ``s``, are shared: for
    choices and numbers they are assumed to depend only on answer, gold, format and category, so that one item stands
    for all like it. Open answers are scored item by item.

    Args:
        items: all items.
        score: the native scorer; where it gives None the score is nan.
        costly: whether the scorer asks a judge. Reported scores are then shared too, so that the judge is asked once
            for all items alike.
    """

    def __init__(self, items: Sequence[Item], score: Score, costly: bool = False) -> None:
        self.items, self._score, self._costly = items, score, costly
        self._known: dict[tuple[object, ...], dict[str, float]] = defaultdict(dict)
        self._own: dict[tuple[int, str], float] = {}
        self._vectors: dict[tuple[object, ...], tuple[tuple[str, ...], Array]] = {}

    def _kind(self, place: int) -> tuple[object, ...]:
        """Return a key shared by all items with the same scores."""
        item = self.items[place]
        return _like(item) if len(item.golds) < 2 and (item.is_choice or item.format == "number") else (place,)

    def of(self, place: int, answer: str) -> float:
        """Return the shared score of an answer on the item at a place; nan for an unscorable answer."""
        return self._scored(self._known[self._kind(place)], place, answer)

    def exact(self, place: int, answer: str) -> float:
        """Return the score of an answer on this very item, whatever else its scorer reads of the doc.

        Nan where it cannot be scored.
        """
        # Each call of a costly scorer counts, so spellings share a score.
        if self._costly:
            return self.of(place, answer)
        key = place, answer
        if key not in self._own:
            value = self._score(place, answer)
            self._own[key] = np.nan if value is None else float(value)
        return self._own[key]

    @cached_property
    def scale(self) -> float:
        """The full marks in native scores: the highest score of the golds of about 200 items.

        1 where that is not above 0.
        """
        golds = [place for place, item in enumerate(self.items) if item.golds]
        marks = np.array(
            [self.exact(place, self.items[place].golds[0]) for place in golds[:: max(1, len(golds) // 200)]]
        )
        most = float(np.nanmax(marks)) if np.isfinite(marks).any() else 1.0
        return most if most > 0 else 1.0

    def _scored(self, known: dict[str, float], place: int, answer: str) -> float:
        if answer not in known:
            value = self._score(place, answer)
            known[answer] = np.nan if value is None else float(value)
        return known[answer]

    def vector(self, place: int, answers: tuple[str, ...]) -> Array:
        """Return the shared scores of several answers on the item at a place, shape (answers,)."""
        kind = self._kind(place)
        # by identity: to hash hundreds of texts for every doc would be slow
        key = *kind, id(answers)
        kept = self._vectors.get(key)
        # ``id`` may be reused after a tuple is gone, so the kept tuple itself is compared.
        if kept is None or kept[0] is not answers:
            known = self._known[kind]
            kept = self._vectors[key] = answers, np.array([self._scored(known, place, answer) for answer in answers])
            # open answers have a vector for each doc and fold, which would fill the memory
            if len(self._vectors) > 200_000:
                self._vectors.clear()
        return kept[1]

    def regold(self, items: Sequence[Item]) -> Rewards:
        """Return rewards of the same items with different golds.

        An answer is scored on an item of the same category, format and answers that really has the new golds. Where
        there is none, it earns full marks if it is one of the new golds in any spelling, else 0. A judge is not asked
        about open answers here: that would cost a call for each.
        """
        like: dict[tuple[object, ...], int] = {}
        for place, item in enumerate(self.items):
            if not self._costly or self._kind(place) == _like(item):
                like.setdefault(_like(item), place)
        return Rewards(items, lambda place, answer: _shifted(self, like, items[place], answer))


def _like(item: Item) -> tuple[object, ...]:
    """Return what items have in common on which an answer earns the same, as far as a scorer is known."""
    return item.format, item.category, item.answers, item.golds


def _shifted(rewards: Rewards, like: dict[tuple[object, ...], int], item: Item, answer: str) -> float:
    same = like.get(_like(item))
    if same is not None:
        return rewards.of(same, answer)
    if item.is_choice:
        return rewards.scale * (answer in item.golds)
    return rewards.scale * (same_answer(answer) in map(same_answer, item.golds))


@dataclass(frozen=True)
class Values:
    """The distinct values in the training golds of a category.

    Attributes:
        texts: their spellings, as in the golds; ascending.
        place: the place in ``texts`` of each training gold, shape (training items of the category,).
        reward: shape (answers, golds): the native score of giving one as answer where another is right.
    """

    texts: tuple[str, ...]
    place: Places
    reward: Array


def rewards_nearness(rewards: AnswerScores, places: Sequence[int]) -> bool:
    """Return whether the scorer gives credit to numbers near the gold, tried on some items of a category.

    Args:
        rewards: the native scores.
        places: items whose golds are numbers; some 20 with different golds are asked with the golds of the others, and
            with numbers 1 % and 1 away.
    """
    golds = {as_number(rewards.items[place].golds[0]) or 0.0: place for place in places}
    some = sorted(golds)[:: -(-len(golds) // _PROBES) or 1]
    for gold in some:
        # golds may lie far apart, so numbers 1 % and 1 above are tried, too
        others = [rewards.items[golds[value]].golds[0] for value in some] + [f"{gold * 1.01:.6g}", f"{gold + 1:.6g}"]
        if any(rewards.of(golds[gold], text) > 0 for text in others if as_number(text) != gold):
            return True
    return False


def values_of(rewards: AnswerScores, places: Places) -> Values:
    """Summarise the training golds of a category by their distinct values, or by ``MOST_VALUES`` quantiles.

    Args:
        rewards: the native scores.
        places: training items whose golds are numbers.
    """
    golds = [rewards.items[place].golds[0] for place in places]
    numbers = np.array([as_number(gold) for gold in golds], float)
    order = np.argsort(numbers, kind="stable")
    distinct = np.unique(numbers)
    if len(distinct) > MOST_VALUES:
        # Quantiles, so that frequent regions keep more values.
        picks = np.unique(np.round(np.linspace(0, len(order) - 1, MOST_VALUES)).astype(int))
        distinct = np.unique(numbers[order[picks]])
    chosen = order[np.searchsorted(numbers[order], distinct)]
    texts = tuple(golds[i] for i in chosen)
    middle = (distinct[1:] + distinct[:-1]) / 2
    reward = np.array([np.nan_to_num(rewards.vector(int(places[i]), texts)) for i in chosen]).T
    return Values(texts, np.searchsorted(middle, numbers).astype(np.intp), reward)
