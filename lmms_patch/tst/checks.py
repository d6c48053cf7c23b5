"""Two checks, on the items at hand, that a diagnostic on features does not peek at held-out items. Pure.

1. Changing the golds of held-out items must change no feature of any item.
2. Changing the texts of held-out items must change no feature of a training item.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from lmms_patch.tst.features import Features
from lmms_patch.tst.items import Item, Places


class Featured(Protocol):
    """A prepared diagnostic with access to its models' features."""

    def features(self, train: Places, seed: int, groups: Places) -> list[Features]:
        """Return the features of each kind of item, for models trained on the items at ``train``."""
        ...


def other_golds(items: Sequence[Item], held: Places) -> list[Item]:
    """Return the items with held-out golds rotated among items of the same format and answers."""
    kinds: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for i in held:
        if items[i].golds:
            kinds[items[i].format, items[i].answers].append(int(i))
    out = list(items)
    for own in kinds.values():
        for i, j in zip(own, own[1:] + own[:1], strict=True):
            out[i] = dataclasses.replace(items[i], golds=items[j].golds)
    return out


def other_texts(items: Sequence[Item], train: Places, held: Places) -> list[Item]:
    """Return the items with new texts for the held-out items.

    Their questions become, in turn, a new text and the text of a training item. Their options are reversed, and one is
    replaced.
    """
    out = list(items)
    for turn, i in enumerate(held):
        question = (
            items[train[-1 - turn % len(train)]].question if turn % 2 else f"{turn} words that no other question has"
        )
        options = (*items[i].options[:0:-1], f"{turn} words that no other option has") if items[i].options else ()
        out[i] = dataclasses.replace(
            items[i], question=question, context=question if items[i].context else "", prompt=question, options=options
        )
    return out


def leaks(
    items: Sequence[Item],
    prepare: Callable[[Sequence[Item]], Featured],
    train: Places,
    held: Places,
    seed: int,
    groups: Places,
) -> list[str]:
    """Find features with knowledge of held-out golds or texts: compare features bit by bit after changing these.

    Args:
        items: all items.
        prepare: makes the diagnostic for items.
        train: places of the training items of one fold.
        held: places of its held-out items.
        seed: of the fits.
        groups: the group of every item.

    Returns:
        A line for each feature that changed; empty where none did.
    """
    own = prepare(items).features(train, seed, groups)
    lines = []
    for changed, what, training_only in (
        (other_golds(items, held), "the golds of held-out docs move the feature", False),
        (other_texts(items, train, held), "the texts of held-out docs move the feature of training docs", True),
    ):
        for before, after in zip(own, prepare(changed).features(train, seed, groups), strict=True):
            lines += [f"{what} {name!r}" for name in _moved(before, after, training_only)]
    return lines


def _moved(before: Features, after: Features, training_only: bool) -> list[str]:
    first, second = (f.values[f.inner >= 0] if training_only else f.values for f in (before, after))
    if before.names != after.names or first.shape != second.shape:
        return ["(the list of features)"]
    return [
        name for j, name in enumerate(before.names) if not np.array_equal(first[:, j], second[:, j], equal_nan=True)
    ]
