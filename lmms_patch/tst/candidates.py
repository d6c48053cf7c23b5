"""Candidates for open answers: the golds among which a doc's answer is looked for. NumPy and SciPy.

A task has hundreds of different answers. Of each doc a few are asked ("is this one right?"): the most frequent golds of
its category, and the golds that its words speak for. A word speaks for a gold where the two stand together
significantly more often than by chance; how strongly, is the log of how much more often (naive Bayes on chosen words).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lmms_patch.ask.answers import counted, same_answer
from lmms_patch.tst.items import Item, Places
from lmms_patch.tst.templates import words

CANDIDATES, FREQUENT = 8, 2
"""How many candidates a doc has, and how many of these are the most frequent golds of its category, whatever its words. Of 2,000 made-up
questions in the manner of GQA (benchmarks/tst.py) these 8 answer .393, the 8 most frequent golds .316, and the 24 most frequent .348 in twice the
time."""
SPEAKS = 3.84
"""The deviance from which on a word speaks for a gold: chi-squared with one degree of freedom, 5 %. In long questions all words together, those that
say nothing too, drown the one that tells."""
# one block of scores, rows times golds, takes 64 MB
_ROWS, _MOST_GOLDS = 4096, 2000


class Candidates:
    """The words of open questions, from which every fold draws candidates.

    Args:
        items: n items.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        # no word begins with \0, so that a category is not taken for a word of the question
        read = [{*words(item.question), *words(item.context), f"\0{item.category}"} for item in items]
        self._category = [item.category for item in items]
        # in the order of the alphabet: held-out words must not decide in which order others are added up
        number = {word: i for i, word in enumerate(sorted(set().union(*read)))}
        place = [sorted(number[word] for word in own) for own in read]
        ends = np.cumsum([0, *map(len, place)])
        self._has = csr_array(
            (np.ones(ends[-1]), np.concatenate([*place, []]).astype(np.intp), ends), shape=(len(items), len(number))
        )

    def of(self, train: Places, inner: Places) -> tuple[list[list[str]], list[list[int]]]:
        """Return, for each item, candidate answers and which of them are right.

        A training item sees the golds of the other inner folds only: a gold that it alone has is not among its
        candidates.

        Args:
            train: places of the training items.
            inner: the inner fold of each item; -1: held out.
        """
        candidates: list[list[str]] = [[] for _ in self._items]
        for fold in np.unique(inner):
            self._draw(train[inner[train] != fold], np.flatnonzero(inner == fold), candidates)
        golds = [set(map(same_answer, item.golds[:10])) for item in self._items]
        return candidates, [
            [place for place, text in enumerate(own) if same_answer(text) in known]
            for own, known in zip(candidates, golds, strict=True)
        ]

    def _draw(self, known: Places, asked: Places, candidates: list[list[str]]) -> None:
        """Write the candidates of the asked items, drawn from the golds of the known ones."""
        often = counted(self._items[i].golds[0] for i in known)[:_MOST_GOLDS]
        if not often:
            return
        texts, share = [text for text, _ in often], np.array([count for _, count in often]) / len(known)
        number = {same_answer(text): place for place, text in enumerate(texts)}
        # -1: too rare to be a candidate
        gold = np.array([number.get(same_answer(self._items[i].golds[0]), -1) for i in known])
        frequent: dict[str, list[int]] = {}
        for category in {self._category[i] for i in asked}:
            own = gold[[self._category[i] == category for i in known]]
            counts = np.bincount(own[own >= 0], minlength=len(texts))
            # stable, so that of golds of one count the same come first on every machine
            frequent[category] = [k for k in np.argsort(-counts, kind="stable")[:FREQUENT].tolist() if counts[k]]
        speaks = self._speaks(known, gold, share)
        for start in range(0, len(asked), _ROWS):
            rows = asked[start : start + _ROWS]
            scores = np.log(share) + (self._has[rows] @ speaks).toarray()
            # rounded, so that float error decides no tie
            best = np.argsort(-scores.round(9), axis=1, kind="stable")[:, :CANDIDATES]
            for i, own in zip(rows.tolist(), best.tolist(), strict=True):
                chosen = dict.fromkeys([*own[: CANDIDATES - FREQUENT], *frequent[self._category[i]], *own])
                candidates[i] = [texts[k] for k in sorted(list(chosen)[:CANDIDATES])]

    def _speaks(self, known: Places, gold: Places, share: NDArray[np.float64]) -> csr_array:
        """Return how strongly each word speaks for each gold, shape (words, golds).

        Args:
            known: places of items with a gold.
            gold: the gold of each; -1: none of the most frequent.
            share: the share of each gold among them.
        """
        has, counted_in = self._has[known], np.flatnonzero(gold >= 0)
        is_gold = csr_array((np.ones(len(counted_in)), (counted_in, gold[counted_in])), shape=(len(known), len(share)))
        together = csr_array(has.T @ is_gold)
        expected = np.repeat(has.sum(axis=0), np.diff(together.indptr)) * share[together.indices]
        more = np.log(together.data / expected)
        deviance = 2 * (together.data * more - (together.data - expected))
        together.data = np.where((more > 0) & (deviance > SPEAKS), more, 0)
        return together
