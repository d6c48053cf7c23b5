"""Folds of a test set: stratified by gold and category, no group in two folds. Pure.

Items that show the same image, scene or video share more than a question, so random folds let a diagnostic recognise the *source*. That difference is
source leakage, not a language shortcut. Items of the same text on different sources are not grouped: their regularity is what the test measures.
Text-grouped folds say how much of it is repeated texts.

Source: TsT paper (https://arxiv.org/abs/2511.04655), 3.1; the groupings are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmms_patch.ask.answers import as_number
from lmms_patch.errors import OptionError
from lmms_patch.stats.resample import generator
from lmms_patch.tst.items import Item, Places

GROUPINGS = ("none", "source", "text")
FEW_FOLDS, MANY_FOLDS = 2, 50
_BINS = 10
"""Bins of numeric golds, for stratification."""


@dataclass(frozen=True)
class Grouping:
    """Groups of items that must stay in one fold.

    Attributes:
        name: one of ``GROUPINGS``.
        groups: the group number of each item, shape (n,), from 0.
        usable: whether it groups anything: False where the key is unknown, the same for all, or different for all.
        reason: why it is not usable; empty otherwise.
    """

    name: str
    groups: Places
    usable: bool
    reason: str = ""


def text_of(item: Item) -> str:
    """Return the text by which items count as equal: question and options, in lower case and stripped."""
    return "\n".join(part.strip().lower() for part in (item.question, *item.options))


def grouping(items: Sequence[Item], name: str) -> Grouping:
    """Group items by name of the grouping.

    ``none``: every item alone. ``source``: items of one source; items without a source alone. ``text``: items of one text (question and options, in
    the order of the options).

    Raises:
        OptionError: the name is unknown.
    """
    if name not in GROUPINGS:
        raise OptionError(f"grouping {name!r} is not known; allowed: {', '.join(GROUPINGS)}")
    if name == "none":
        return Grouping(name, np.arange(len(items)), True)
    keys: list[Hashable] = [item.source if name == "source" else text_of(item) for item in items]
    own = [("own", i) if key is None else ("shared", repr(key)) for i, key in enumerate(keys)]
    numbers = {key: i for i, key in enumerate(dict.fromkeys(own))}
    groups = np.array([numbers[key] for key in own], np.intp)
    reason = _why_no_grouping(name, keys, len(numbers))
    return Grouping(name, groups, not reason, reason)


def _why_no_grouping(name: str, keys: Sequence[Hashable], groups: int) -> str:
    if all(key is None for key in keys):
        return "no grouping: no source is known (option 'group' names the field of the image, scene or video)"
    if groups == 1:
        return f"no grouping: the {name} is the same for all docs"
    if groups == len(keys):
        return f"no grouping: the {name} is different for every doc"
    return ""


def folds(items: Sequence[Item], k: int, groups: Places, seed: int) -> Places:
    """Return the fold of each item, 0..k-1.

    Whole groups are dealt, the largest first and those of one size in random order. Each goes to the fold where its golds and categories are scarcest
    (least sum of squares of the class counts, each class weighted by its size). So a class smaller than k is in fewer folds, and folds differ in size
    only as much as groups force them to.

    Args:
        items: n items.
        k: number of folds.
        groups: shape (n,), from 0 (``Grouping.groups``).
        seed: of the random order.

    Raises:
        OptionError: k is out of range, or there are fewer groups than folds.
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    if not FEW_FOLDS <= k <= MANY_FOLDS:
        raise OptionError(f"{k} folds are not possible; allowed: {FEW_FOLDS} to {MANY_FOLDS}; type '..._tst5'")
    if count < k:
        what = "docs" if count == len(items) else "groups of docs"
        raise OptionError(f"{count} {what} cannot be dealt to {k} folds; use fewer folds, or group by a field with more values")
    stream = generator(seed)
    classes, groups_of_size = classes_of(items), np.bincount(groups, minlength=count)
    order = np.argsort(groups, kind="stable")
    members = np.split(classes[order], np.cumsum(groups_of_size)[:-1])
    shuffled = stream.permutation(count)
    dealt = shuffled[np.argsort(-groups_of_size[shuffled], kind="stable")]
    return _deal(members, dealt, np.bincount(classes), k, stream)[groups]


def classes_of(items: Sequence[Item]) -> Places:
    """Return the stratum of each item: category, format and gold (numbers in ten bins of their category)."""
    numbers: dict[str, list[float]] = {}
    for item in items:
        value = as_number(item.golds[0]) if item.format == "number" and item.golds else None
        if value is not None:
            numbers.setdefault(item.category, []).append(value)
    edges = {category: np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]) for category, values in numbers.items()}
    codes: dict[Any, int] = {}
    out = np.empty(len(items), np.intp)
    for i, item in enumerate(items):
        gold: Any = item.golds[0] if item.golds else None
        if item.format == "number" and gold is not None and (value := as_number(gold)) is not None:
            gold = int(np.searchsorted(edges[item.category], value))
        out[i] = codes.setdefault((item.category, item.format, gold), len(codes))
    return out


def _deal(members: Sequence[Places], order: Places, sizes: Places, k: int, stream: np.random.Generator) -> Places:
    """Return the fold of each group; among equally good folds the one with the fewest items, then a random one."""
    counts = np.zeros((k, len(sizes)))
    totals = np.zeros(k)
    out = np.zeros(len(members), np.intp)
    for group in order:
        classes, own = np.unique(members[group], return_counts=True)
        # adding `own` to a fold changes the sum of squares by own² + 2·own·count; own² is the same for all folds
        cost = ((counts[:, classes] * own) / sizes[classes]).sum(axis=1) + totals / max(1, totals.sum()) * 1e-6
        fold = int(np.lexsort((stream.random(k), totals, np.round(cost, 9)))[0])
        counts[fold, classes] += own
        totals[fold] += len(members[group])
        out[group] = fold
    return out


def check_folds(fold: Places, groups: Places) -> None:
    """Check that no group is in two folds.

    Raises:
        AssertionError: a group is; a defect of this program, never a user's mistake.
    """
    first = np.full(int(groups.max()) + 1 if len(groups) else 0, -1)
    first[groups] = fold
    assert (first[groups] == fold).all(), "a group is in two folds"


@dataclass(frozen=True)
class Repeats:
    """Counts of repeated texts.

    Attributes:
        texts: number of different texts.
        repeated: number of items whose text another item has too.
        conflicting: number of items whose text occurs with different golds.
    """

    texts: int
    repeated: int
    conflicting: int


def repeats(items: Sequence[Item]) -> Repeats:
    """Count repeated texts and label conflicts among them; options count in their order, since a letter stands for a place."""
    texts = [text_of(item) for item in items]
    counts = Counter(texts)
    golds: dict[str, set[str]] = {}
    for text, item in zip(texts, items, strict=True):
        golds.setdefault(text, set()).update(item.golds[:1])
    return Repeats(len(counts), sum(counts[t] > 1 for t in texts), sum(len(golds[t]) > 1 for t in texts))
