"""Sets of items for the numbers of docs' own boxes, beside each doc's best box. NumPy only.

A doc with three relevant boxes and one adversarial box has three tries on one side and one on the other, so its best
relevant box also wins by luck. Two numbers do not reward tries: M of one box drawn at random, and M of the best of k
boxes drawn at random, k being the number of boxes of the smaller set.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lmms_patch.ask.kinds import REGIONS, Key, Kind
from lmms_patch.rci.draws import minus
from lmms_patch.rci.kinds.part import left_out
from lmms_patch.runs.numbers import Analysis, Grid, Regions
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen, set_places
from lmms_patch.stats.forms import Form
from lmms_patch.stats.resample import Bools, Estimate, Seed, generator

if TYPE_CHECKING:
    from lmms_patch.rci.work import Work

DRAWN = 20
"""How many times boxes are drawn where their expectation has no closed form (MME, F1)."""

Places = Sequence[Sequence[int]]


class _Boxes:
    """The part of kinds with docs' boxes shown alone, a box per view."""

    def of(self, kind: Kind) -> bool:
        return kind.regions

    def sets(self, work: Work) -> dict[str, list[Chosen]]:
        return region_sets(work.table, work.form, work.best, work.used, work.settings.seed)

    def add(self, work: Work, found: Analysis, by_set: Mapping[Key, Grid]) -> Analysis:
        return dataclasses.replace(found, regions=_numbers(work, by_set))


BOXES = _Boxes()


def _numbers(work: Work, sets: Mapping[Key, Grid]) -> Regions:
    """Return the numbers of both sets of boxes, and of their difference."""
    both = work.used[REGIONS[0]] & work.used[REGIONS[1]]
    counts = {key: [len(places) for places in scored_places(work.table, key)] for key in REGIONS}
    no_both = (
        next(filter(None, work.too_many.values()), "")
        or work.cells[REGIONS[0]][2]
        or work.cells[REGIONS[1]][2]
        or ("" if both.any() else "no doc has boxes of both sets")
    )

    def difference(how: str) -> Estimate:
        return _of_boxes(work, minus, (f"both_{how}_{REGIONS[0]}", f"both_{how}_{REGIONS[1]}"), both, no_both)

    return Regions(
        sets={key: sets[key] for key in REGIONS},
        mean={
            key: _of_boxes(
                work, lambda one: one, (f"mean_{key}",), work.used[key], work.too_many[key] or work.cells[key][2]
            )
            for key in REGIONS
        },
        boxes={key: int(np.array(counts[key])[work.used[key]].sum()) for key in REGIONS},
        # a doc may be in the set, but have no scored item, or be of a cluster that lost a doc
        left_out={key: left_out(work.table, key, sets[key].excluded, "no box with a score") for key in REGIONS},
        both=int(both.sum()),
        best=difference("best"),
        even=difference("even"),
        average=difference("mean"),
    )


def _of_boxes(work: Work, statistic: Callable[..., Any], names: tuple[str, ...], used: Bools, why: str) -> Estimate:
    """Return a number computed from boxes.

    Without a value, and with the reason, where the best boxes have none either.
    """
    estimate = work.draws.estimate_of(statistic, names, None, used)
    if why:
        return estimate.without(why)
    if estimate.value is None and not estimate.reason:
        return dataclasses.replace(
            estimate, reason=f"boxes cannot be averaged: the aggregation of {work.table.metric} has no known form"
        )
    return estimate


def expected_best(scores: Sequence[float], k: int, higher: bool = True) -> float:
    """Return the expected best of k scores drawn at random without replacement.

    With the scores in ascending order s_1 ≤ ... ≤ s_r, s_j is the best in C(j − 1, k − 1) of C(r, k) draws.

    Args:
        scores: r scores, finite.
        k: 1..r; 1 gives the mean.
        higher: whether higher is better.

    >>> expected_best([0.0, 0.0, 1.0], 1), expected_best([0.0, 0.0, 1.0], 2), expected_best([0.0, 0.0, 1.0], 3)
    (0.3333333333333333, 0.6666666666666666, 1.0)
    """
    ranked = sorted(scores, reverse=not higher)
    # exact, since binomials of many boxes differ by orders of magnitude
    return math.fsum(score * math.comb(j, k - 1) for j, score in enumerate(ranked)) / math.comb(len(ranked), k)


def scored_places(table: Table, key: Key) -> list[list[int]]:
    """Return each doc's scored views in a set; none for a doc not used in the set."""
    metric = table.metric
    return [
        [i for i in places if record.views[i].scores.get(metric) is not None]
        for record, places in zip(table.records, set_places(table.records, key), strict=True)
    ]


def region_sets(
    table: Table, form: Form | None, best: Mapping[Key, Chosen], used: Mapping[Key, Bools], seed: Seed
) -> dict[str, list[Chosen]]:
    """Return the sets of items by name.

    ``mean_<set>`` is over the docs of a set; ``both_best_<set>``, ``both_even_<set>`` and ``both_mean_<set>`` are over
    the docs of both sets. Several choices under one name are averaged. Where the aggregation must be called, only best
    boxes are returned: each draw of boxes would be a call.

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
    # As many boxes of each set as the smaller set has: else the larger set wins by more tries.
    least = [min(map(len, pair)) for pair in zip(*places.values(), strict=True)]
    for key in REGIONS:
        one = drawn(table, form, places[key], [min(1, len(boxes)) for boxes in places[key]], stream)
        sets[f"mean_{key}"] = [chosen.where(used[key]) for chosen in one]
        sets[f"both_mean_{key}"] = [chosen.where(both) for chosen in one]
        sets[f"both_even_{key}"] = [chosen.where(both) for chosen in drawn(table, form, places[key], least, stream)]
    return sets


def drawn(table: Table, form: Form, places: Places, sizes: Sequence[int], stream: np.random.Generator) -> list[Chosen]:
    """Return the best of ``sizes`` views of each doc, drawn at random.

    Where the form is linear in scores these are expected scores, otherwise some draws.
    """
    if form.linear:
        scores = [
            expected_best([record.views[i].scores[table.metric] or 0.0 for i in boxes], k, table.higher)
            if k
            else math.nan
            for record, boxes, k in zip(table.records, places, sizes, strict=True)
        ]
        return [
            Chosen(
                table.at([boxes[0] if k else None for boxes, k in zip(places, sizes, strict=True)]).items,
                np.asarray(scores, float),
            )
        ]
    return [
        table.at([_best_of(table, i, boxes, k, stream) for i, (boxes, k) in enumerate(zip(places, sizes, strict=True))])
        for _ in range(DRAWN)
    ]


def _best_of(table: Table, doc: int, boxes: Sequence[int], k: int, stream: np.random.Generator) -> int | None:
    """Return the best of k views of a doc, drawn at random without replacement; None where k is 0."""
    if not k:
        return None
    views, sign = table.records[doc].views, 1 if table.higher else -1
    drawn = sorted(int(boxes[j]) for j in stream.permutation(len(boxes))[:k])
    return max(drawn, key=lambda i: sign * (views[i].scores[table.metric] or 0.0))
