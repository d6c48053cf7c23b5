"""Items with golds that mean nothing, or no more than their category does: what a diagnostic scores on them is no shortcut of the question. Pure."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from lmms_patch.stats.resample import Seed, generator
from lmms_patch.tst.items import Item


def shuffle_golds(items: Sequence[Item], seed: Seed) -> list[Item]:
    """Return the items with golds drawn anew; items without a gold stay as they are.

    The new gold of a choice item is one of its own options, all equally likely. Numbers and open answers get the golds
    of the items of the same category and format, permuted.

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


def permute_golds(items: Sequence[Item], seed: Seed, *, within_category: bool = True) -> list[Item]:
    """Return the items with their golds permuted; items without a gold stay as they are.

    Golds change hands among items of one format and number of options. Where every gold's text is among the options of
    all of these items (yes and no, or the same colours in another order), a choice item takes the other's text, else
    its place. So how often each gold occurs stays as it is, and what a category says of its golds with it.

    Args:
        items: the items.
        seed: see ``stats.resample.generator``.
        within_category: whether golds stay in their category.
    """
    stream = generator(seed)
    drawn: list[tuple[str, ...]] = [item.golds for item in items]
    kinds: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for i, item in enumerate(items):
        if item.golds and (not item.is_choice or item.right is not None):
            kinds[item.category if within_category else "", item.format, len(item.answers)].append(i)
    for members in kinds.values():
        by_text = _share_texts([items[i] for i in members])
        for i, j in zip(members, stream.permutation(members), strict=True):
            drawn[i] = _taken(items[i], items[int(j)], by_text)
    return [dataclasses.replace(item, golds=golds) for item, golds in zip(items, drawn, strict=True)]


def _share_texts(items: Sequence[Item]) -> bool:
    """Return whether the text of each gold is among the options of every item."""
    golds = {item.options[item.right] for item in items if item.right is not None}
    return all(golds <= set(item.options) for item in items)


def _taken(item: Item, other: Item, by_text: bool) -> tuple[str, ...]:
    """Return the gold of another item as this one would have it."""
    if not item.is_choice or other.right is None:
        return other.golds
    return (item.answers[item.options.index(other.options[other.right]) if by_text else other.right],)
