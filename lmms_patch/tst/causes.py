"""The root-cause table: the words and categories of questions that can be answered without looking. Pure.

Source: TsT paper (https://arxiv.org/abs/2511.04655), Appendix D, Table 10 (object, mean, standard deviation,
coefficient of variation, rank by s(x)).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.answers import as_number, counted
from lmms_patch.tst.items import Item
from lmms_patch.tst.options import numbered
from lmms_patch.tst.templates import Texts, find_slots

Array = NDArray[np.float64]

FEWEST = 5
"""The fewest docs of a row."""
MOST_ROWS, LAST_ROWS = 30, 5
"""The number of rows shown from the top and from the bottom of the table."""


@dataclass(frozen=True)
class Cause:
    """A row of the table: docs of a category with the same words in a slot.

    Attributes:
        rank: by ``s_minus_chance``, from 1.
        category: their category.
        words: what fills the slot; "(any)" for a question without slots.
        docs: number of docs.
        s: mean of s(x) (fraction).
        s_minus_chance: mean of s(x) less chance (fraction).
        gold: the most frequent gold (for choices the option's text).
        gold_share: its share of the docs (fraction).
        mean: mean of the golds where they are numbers (the golds' own unit); None otherwise.
        sd: their standard deviation; None otherwise.
        cv: sd / |mean|; None otherwise.
    """

    rank: int
    category: str
    words: str
    docs: int
    s: float
    s_minus_chance: float
    gold: str
    gold_share: float
    mean: float | None = None
    sd: float | None = None
    cv: float | None = None


def causes(items: Sequence[Item], s: Array, chance: Array) -> list[Cause]:
    """Return the root-cause table: the most exploitable rows first, then the least exploitable rows.

    Args:
        items: n items.
        s: shape (n,), bias scores; nan: unscored.
        chance: shape (n,), what an uninformed guess earns; nan: unscored.

    Returns:
        At most ``MOST_ROWS`` + ``LAST_ROWS`` rows of at least ``FEWEST`` docs each.
    """
    rows = []
    for (category, words), members in _members(items).items():
        own = np.array([i for i in members if np.isfinite(s[i]) and np.isfinite(chance[i])], np.intp)
        if len(own) >= FEWEST:
            rows.append((float((s[own] - chance[own]).mean()), category, words, own))
    rows.sort(key=lambda row: (-row[0], row[1], row[2]))
    shown = [(rank, row) for rank, row in enumerate(rows, 1) if rank <= MOST_ROWS or rank > len(rows) - LAST_ROWS]
    return [
        _cause(rank, category, words, [items[i] for i in own], s[own], above)
        for rank, (above, category, words, own) in shown
    ]


def _members(items: Sequence[Item]) -> dict[tuple[str, str], list[int]]:
    texts = Texts.of([item.question for item in items])
    category = numbered((item.category, item.format) for item in items)
    slots = find_slots(texts, category, np.arange(len(items)))
    out: dict[tuple[str, str], list[int]] = defaultdict(list)
    filled: dict[int, set[str]] = defaultdict(set)
    for owner, start, stop in zip(slots.owner, slots.start, slots.stop, strict=True):
        filled[int(owner)].add(" ".join(texts.names[word] for word in texts.words[start:stop]))
    for i, item in enumerate(items):
        for words in filled.get(i, {"(any)"}):
            out[item.category, words].append(i)
    return out


def _cause(rank: int, category: str, words: str, items: Sequence[Item], s: Array, above: float) -> Cause:
    golds = [
        item.options[item.right] if item.is_choice and item.right is not None else item.golds[0]
        for item in items
        if item.golds
    ]
    gold, times = counted(golds)[0] if golds else ("", 0)
    numbers = [as_number(gold) for gold in golds] if all(item.format == "number" for item in items) else []
    known = np.array([number for number in numbers if number is not None])
    mean, sd = (float(known.mean()), float(known.std(ddof=1))) if len(known) > 1 else (None, None)
    cv = sd / abs(mean) if mean and sd is not None else None
    return Cause(
        rank, category, words, len(items), float(s.mean()), above, gold, times / max(1, len(golds)), mean, sd, cv
    )
