"""Items with golds that mean nothing, or no more than their category does: what a diagnostic scores on them is no shortcut of the question. Pure.

Copies that may be one item (``copies.unnamed_copies``) have golds that depend on each other. Golds that were shuffled
doc by doc would lack that, and scores on them would vary less than scores on the golds as they are. So copies with one
gold get one gold, and copies with several golds get those of as many other copies.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from lmms_patch.stats.resample import Seed, generator
from lmms_patch.tst.copies import gold_of, normal, unnamed_copies
from lmms_patch.tst.items import Item

Unit = list[int]
"""The places of the items whose golds change hands together: copies of each other, or a single item."""


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
    others = []
    for unit in _units(items):
        if not items[unit[0]].is_choice:
            others.append(unit)
            continue
        for part in [unit] if _have_one_gold(items, unit) else [[i] for i in unit]:
            first = items[part[0]]
            right = int(stream.integers(len(first.answers)))
            for i in part:
                drawn[i] = (items[i].answers[_same_option(first, right, items[i])],)
    _permute(items, others, stream, drawn)
    return [dataclasses.replace(item, golds=golds) for item, golds in zip(items, drawn, strict=True)]


def permute_golds(items: Sequence[Item], seed: Seed) -> list[Item]:
    """Return the items with their golds permuted; items without a gold stay as they are.

    Golds change hands among items of one category, format and number of options. Where every gold's text is among the options of
    all of these items (yes and no, or the same colours in another order), a choice item takes the other's text, else
    its place. So how often each gold occurs stays as it is, and what a category says of its golds with it. Copies with
    one gold count as one item.

    Args:
        items: the items.
        seed: see ``stats.resample.generator``.
    """
    drawn: list[tuple[str, ...]] = [item.golds for item in items]
    _permute(items, _units(items), generator(seed), drawn)
    return [dataclasses.replace(item, golds=golds) for item, golds in zip(items, drawn, strict=True)]


def _units(items: Sequence[Item]) -> list[Unit]:
    """Return the units of the items with golds, in the order of their first items."""
    units: dict[Hashable, Unit] = defaultdict(list)
    for i, (item, copies) in enumerate(zip(items, unnamed_copies(items), strict=True)):
        if item.golds and (not item.is_choice or item.right is not None):
            units[("own", i) if copies is None else (copies, item.is_choice)].append(i)
    return list(units.values())


def _have_one_gold(items: Sequence[Item], unit: Unit) -> bool:
    return len({gold_of(items[i]) for i in unit}) == 1


def _permute(
    items: Sequence[Item],
    units: Sequence[Unit],
    stream: np.random.Generator,
    drawn: list[tuple[str, ...]],
) -> None:
    """Permute the golds of similar units, into ``drawn``.

    Units with one gold are alike whatever their size, the others where they have as many items. The place of a gold is
    that among the options of the unit's first item, so that copies whose options stand in other orders keep one gold.
    """

    def kind(i: int) -> Hashable:
        return items[i].category, items[i].format, len(items[i].answers)

    pools: dict[tuple[Hashable, ...], list[Unit]] = defaultdict(list)
    for unit in units:
        kinds = tuple(map(kind, unit))
        pools[kinds[:1] if len(set(kinds)) == 1 and _have_one_gold(items, unit) else kinds].append(unit)
    for kinds in [kinds for kinds, pool in pools.items() if len(kinds) > len(pool) == 1]:
        # no other copies are like these, so each of them changes golds by itself
        for i in pools.pop(kinds)[0]:
            pools[kind(i),].append([i])
    for kinds, pool in pools.items():
        by_text = _share_texts([items[i] for unit in pool for i in unit])
        for unit, at in zip(pool, stream.permutation(len(pool)), strict=True):
            lenders = pool[at] if len(kinds) > 1 else pool[at][:1] * len(unit)
            first, lent = items[unit[0]], items[lenders[0]]
            for i, lender in zip(unit, lenders, strict=True):
                item, other = items[i], items[lender]
                if not item.is_choice or other.right is None:
                    drawn[i] = other.golds
                elif by_text:
                    drawn[i] = (item.answers[item.options.index(other.options[other.right])],)
                else:
                    right = _same_option(first, _same_option(other, other.right, lent), item)
                    drawn[i] = (item.answers[right],)


def _share_texts(items: Sequence[Item]) -> bool:
    """Return whether the text of each gold is among the options of every item."""
    golds = {item.options[item.right] for item in items if item.right is not None}
    return all(golds <= set(item.options) for item in items)


def _same_option(item: Item, place: int, other: Item) -> int:
    """Return the place of an item's option in another item; the same place where the option is missing there."""
    if item is other:
        return place
    text, texts = normal(item.options[place]), [normal(option) for option in other.options]
    return texts.index(text) if text in texts else place
