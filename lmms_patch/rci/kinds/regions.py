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
from lmms_patch.runs.docs import used_for
from lmms_patch.runs.numbers import Analysis, Grid, Regions
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
from lmms_patch.stats.forms import Form
from lmms_patch.stats.resample import Bools, Estimate, Ints, Seed, generator

if TYPE_CHECKING:
    from lmms_patch.rci.work import Work

DRAWN = 20
"""How many times boxes are drawn where their expectation has no closed form (MME, F1)."""


def of(kind: Kind) -> bool:
    """Return whether tasks of a kind have the part."""
    return kind.regions


def sets(work: Work) -> dict[str, list[Chosen]]:
    """Return sets of answers by name (``Part.sets``)."""
    return region_sets(work.table, work.form, work.best, work.used, work.settings.seed)


def add(work: Work, found: Analysis, by_set: Mapping[Key, Grid]) -> Analysis:
    """Return an analysis with the part's numbers (``Part.add``)."""
    return dataclasses.replace(found, regions=_numbers(work, by_set))


def _numbers(work: Work, sets: Mapping[Key, Grid]) -> Regions:
    """Return the numbers of both sets of boxes, and of their difference."""
    both = work.used[REGIONS[0]] & work.used[REGIONS[1]]
    counts = {key: work.table.views.per_doc(scored_boxes(work.table, key)) for key in REGIONS}
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
        boxes={key: int(counts[key][work.used[key]].sum()) for key in REGIONS},
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


def scored_boxes(table: Table, key: Key) -> Bools:
    """Mark the scored views in a set of docs that are used for it, shape (views,)."""
    views = table.views
    return views.in_set(key) & np.isfinite(views.scores) & used_for(table.docs, key)[views.docs]


def region_sets(
    table: Table, form: Form | None, best: Mapping[Key, Chosen], used: Mapping[Key, Bools], seed: Seed
) -> dict[str, list[Chosen]]:
    """Return the sets of items by name.

    ``mean_<set>`` is over the docs of a set; ``both_best_<set>``, ``both_even_<set>`` and ``both_mean_<set>`` are over
    the docs of both sets. Several choices under one name are averaged. Where the aggregation must be called, only best
    boxes are returned: each draw of boxes would be a call.

    Args:
        table: the docs.
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
    boxes = {key: scored_boxes(table, key) for key in REGIONS}
    counts = {key: table.views.per_doc(of) for key, of in boxes.items()}
    # As many boxes of each set as the smaller set has: else the larger set wins by more tries.
    least = np.minimum(*counts.values())
    for key in REGIONS:
        single = drawn(table, form, boxes[key], counts[key].clip(max=1), stream)
        sets[f"mean_{key}"] = [chosen.where(used[key]) for chosen in single]
        sets[f"both_mean_{key}"] = [chosen.where(both) for chosen in single]
        sets[f"both_even_{key}"] = [chosen.where(both) for chosen in drawn(table, form, boxes[key], least, stream)]
    return sets


def drawn(table: Table, form: Form, of: Bools, sizes: Ints, stream: np.random.Generator) -> list[Chosen]:
    """Return the best of ``sizes`` scored views of each doc, drawn at random without replacement.

    Where the form is linear in scores these are expected scores, otherwise some draws.

    Args:
        table: the docs.
        form: the aggregation's form.
        of: shape (views,), the views to draw from.
        sizes: shape (docs,); 0: none is drawn.
        stream: of the draws.
    """
    views = table.views
    counts, entries = views.per_doc(of), np.flatnonzero(of)
    begins = np.cumsum(counts) - counts
    docs = np.flatnonzero(sizes)
    if form.linear:
        scores = np.full(len(table), math.nan)
        for doc in docs.tolist():
            own = views.scores[entries[begins[doc] : begins[doc] + counts[doc]]].tolist()
            scores[doc] = expected_best(own, int(sizes[doc]), table.higher)
        return [Chosen(scores)]
    out = []
    for _ in range(DRAWN):
        kept = np.zeros(len(views.scores), bool)
        for doc in docs.tolist():
            kept[entries[begins[doc] + stream.permutation(int(counts[doc]))[: sizes[doc]]]] = True
        out.append(views.chosen(views.best(kept, table.higher)))
    return out
