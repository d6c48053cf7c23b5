"""Items with golds that mean nothing: what a diagnostic scores on them is not a shortcut. Pure."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from lmms_patch.stats.resample import Seed, generator
from lmms_patch.tst.items import Item


def shuffle_golds(items: Sequence[Item], seed: Seed) -> list[Item]:
    """Return the items with golds drawn anew; items without a gold stay as they are.

    The new gold of a choice item is one of its own options, all equally likely. Numbers and open answers get the golds of the items of the same
    category and format, permuted.

    Args:
        items: the items.
        seed: see ``stats.resample.generator``.
    """
    stream = generator(seed)
    drawn: list[tuple[str, ...]] = [item.golds for item in items]
    kinds: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, item in enumerate(items):
        if item.is_choice and item.right is not None:
            drawn[i] = (item.answers[int(stream.integers(len(item.answers)))],)
        elif item.golds and not item.is_choice:
            kinds[item.category, item.format].append(i)
    for members in kinds.values():
        for i, j in zip(members, stream.permutation(members), strict=True):
            drawn[i] = items[int(j)].golds
    return [dataclasses.replace(item, golds=golds) for item, golds in zip(items, drawn, strict=True)]
