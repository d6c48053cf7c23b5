"""The items that the numbers of docs' own boxes are made of, beside each doc's best box. NumPy only.

A doc with three relevant boxes and one adversarial box has three tries on one side and one on the other, so that the best relevant box
wins by luck too. Two numbers do not reward tries: M of one box drawn at random, and M of the best of k boxes drawn at random, k being
the number of boxes of the smaller set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.spec import REGIONS, Key
from lmms_patch.runs.tables import Chosen, Table
from lmms_patch.stats.forms import Form
from lmms_patch.stats.resample import Seed, generator

DRAWN = 20
"""Random draws of boxes where their expectation has no closed form (MME, F1)."""

Places = Sequence[Sequence[int]]


def expected_best(scores: Sequence[float], k: int, higher: bool = True) -> float:
    """The expected best of k scores drawn at random without replacement.

    Of the scores in ascending order s_1 ≤ ... ≤ s_r, s_j is the best in C(j − 1, k − 1) of C(r, k) draws.

    Args:
        scores: r of them, finite.
        k: 1..r; 1 gives the mean.
        higher: whether higher is better.

    >>> expected_best([0.0, 0.0, 1.0], 1), expected_best([0.0, 0.0, 1.0], 2), expected_best([0.0, 0.0, 1.0], 3)
    (0.3333333333333333, 0.6666666666666666, 1.0)
    """
    ranked = sorted(scores, reverse=not higher)
    return math.fsum(score * math.comb(j, k - 1) for j, score in enumerate(ranked)) / math.comb(len(ranked), k)


def scored_places(table: Table, key: Key) -> list[list[int]]:
    """The views of each doc that are of a set and have a score; none where the doc is not used for it."""
    metric = table.metric
    return [
        [i for i in places if record.views[i].scores.get(metric) is not None]
        for record, places in zip(table.records, table.set_places(key), strict=True)
    ]


def region_sets(
    table: Table, form: Form | None, best: Mapping[Key, Chosen], used: Mapping[Key, NDArray[np.bool_]], seed: Seed
) -> dict[str, list[Chosen]]:
    """The sets of items by name: ``mean_<set>`` over the docs of a set; ``both_best_<set>``, ``both_even_<set>`` and ``both_mean_<set>``
    over those of both.

    Several under one name are averaged. Where the aggregation must be called, only best boxes: each draw of boxes would be a call.

    Args:
        table: the records.
        form: the aggregation's form; None: it must be called.
        best: each doc's best box, by set.
        used: shape (docs,), the docs of each set.
        seed: of the draws of boxes.
    """
    both = used[REGIONS[0]] & used[REGIONS[1]]
    sets = {f"both_best_{key}": [best[key].where(both)] for key in REGIONS}
    if form is None:
        return sets
    stream = generator(seed)
    places: dict[Key, list[list[int]]] = {key: scored_places(table, key) for key in REGIONS}
    least = [min(map(len, pair)) for pair in zip(*places.values(), strict=True)]
    for key in REGIONS:
        one = _drawn(table, form, places[key], [min(1, len(found)) for found in places[key]], stream)
        sets[f"mean_{key}"] = [chosen.where(used[key]) for chosen in one]
        sets[f"both_mean_{key}"] = [chosen.where(both) for chosen in one]
        sets[f"both_even_{key}"] = [chosen.where(both) for chosen in _drawn(table, form, places[key], least, stream)]
    return sets


def _drawn(table: Table, form: Form, places: Places, sizes: Sequence[int], stream: np.random.Generator) -> list[Chosen]:
    """The best of so many boxes of each doc, drawn at random: expected scores where the form is linear in them, else some draws."""
    if form.linear:
        scores = [
            expected_best([record.views[i].scores[table.metric] or 0.0 for i in found], k, table.higher) if k else math.nan
            for record, found, k in zip(table.records, places, sizes, strict=True)
        ]
        return [Chosen(table.at([found[0] if k else None for found, k in zip(places, sizes, strict=True)]).items, np.asarray(scores, float))]
    return [table.at([_best_of(table, i, found, k, stream) for i, (found, k) in enumerate(zip(places, sizes, strict=True))]) for _ in range(DRAWN)]


def _best_of(table: Table, doc: int, found: Sequence[int], k: int, stream: np.random.Generator) -> int | None:
    """The best of k views of a doc, drawn at random without replacement; None where k is 0."""
    if not k:
        return None
    views, sign = table.records[doc].views, 1 if table.higher else -1
    drawn = sorted(int(found[j]) for j in stream.permutation(len(found))[:k])
    return max(drawn, key=lambda i: sign * (views[i].scores[table.metric] or 0.0))
