"""The numbers of docs that are asked in every cyclic order of their options: right in all of them, on average, and by the place of the gold.

A guesser who draws anew in each of k orders is right in all of them with probability (1/k)^k; one who always takes the
same place is never right in all, since the gold comes to each place once; one who always takes the same text keeps the
rate that it has in one order.

Source: CircularEval, in MMBench (https://arxiv.org/abs/2307.06281).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lmms_patch.ask.kinds import Key, Kind
from lmms_patch.rci.draws import Draws
from lmms_patch.rci.kinds.part import warned
from lmms_patch.rci.kinds.regions import drawn
from lmms_patch.runs import failures, reading
from lmms_patch.runs.numbers import Analysis, Grid, Placed, Turned
from lmms_patch.runs.record import TURNS, Record
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import spatial
from lmms_patch.stats.forms import Form
from lmms_patch.stats.resample import Estimate, Seed, generator

if TYPE_CHECKING:
    from lmms_patch.rci.work import Work

_UNSCORED = "an answer has no score"


class _Orders:
    """The part of kinds with docs asked in every order of their options."""

    def of(self, kind: Kind) -> bool:
        return kind.turns

    def sets(self, work: Work) -> dict[str, list[Chosen]]:
        return turn_sets(work.table.in_orders, work.form, work.settings.seed)

    def add(self, work: Work, found: Analysis, by_set: Mapping[Key, Grid]) -> Analysis:
        logged = work.table.logged
        refused = failures.too_many(logged, TURNS) if work.failed else ""
        answered = [record for record in logged if not failures.unanswered(record)]
        orders = turned(work.table.in_orders, answered, work.draws, refused)
        why = f"no score in every order of the options: {refused}" if refused else ""
        return warned(dataclasses.replace(found, turned=orders), why, *reading.not_turned(orders.left_out))


ORDERS = _Orders()


def turn_sets(table: Table, form: Form | None, seed: Seed) -> dict[str, list[Chosen]]:
    """Return the sets of items by name.

    Over the docs that are asked in every order, ``turns_once`` has the answer to the doc's own order, ``turns_mean``
    one order drawn at random (several choices are averaged), and ``turns_every`` the worst order: that is right only
    where all are; where M is linear, ``turns_lost`` has what a doc loses from the first to the last. Over the docs with
    k options, ``turns_<k>_<p>`` has the order that shows the gold at place p.

    Args:
        table: the records.
        form: the aggregation's form; None: it must be called, and there are no sets.
        seed: of the drawn orders, where their mean has no closed form.
    """
    if form is None:
        return {}
    places, higher = orders_of(table), table.higher
    scores = [
        [record.views[i].scores[table.metric] or 0.0 for i in own]
        for record, own in zip(table.records, places, strict=True)
    ]
    worst = [
        own[int((np.argmin if higher else np.argmax)(one))] if own else None
        for own, one in zip(places, scores, strict=True)
    ]
    sets = {
        "turns_once": [table.at([own[0] if own else None for own in places])],
        "turns_mean": drawn(table, form, places, [min(1, len(own)) for own in places], generator(seed)),
        "turns_every": [table.at(worst)],
    }
    # Docs lost by turning are a share, so the interval must not reach below 0 as a difference's would.
    if form.linear and higher:
        once, every = sets["turns_once"][0], sets["turns_every"][0]
        sets["turns_lost"] = [Chosen(once.items, once.scores - every.scores)]
    for count in sorted({len(own) for own in places} - {0}):
        for place in range(1, count + 1):
            sets[f"turns_{count}_{place}"] = [
                table.at(
                    [
                        _with_gold_at(record, own, place) if len(own) == count else None
                        for record, own in zip(table.records, places, strict=True)
                    ]
                )
            ]
    return sets


def orders_of(table: Table) -> list[list[int]]:
    """Return the full views of each doc asked in every order of its options; none where a view has no score."""
    every = (
        [i for i, view in enumerate(record.views) if view.gold_at is not None and view.cell is None]
        if table.kind.turns
        else []
        for record in table.records
    )
    return [
        own if all(record.views[i].scores.get(table.metric) is not None for i in own) else []
        for record, own in zip(table.records, every, strict=True)
    ]


def _with_gold_at(record: Record, own: Sequence[int], place: int) -> int:
    """Return the view of a doc that shows the gold at a place.

    Args:
        record: the doc.
        own: its views in every order (``orders_of``).
        place: from 1.
    """
    return next(i for i in own if record.views[i].gold_at == place)


def turned(table: Table, everyone: Sequence[Record], draws: Draws, refused: str = "") -> Turned:
    """Return the numbers of a task asked in every order of the options.

    Args:
        table: the records, with the views in all their orders.
        everyone: the docs that were asked; those that the table lacks, or cannot use, are counted with the reason.
        draws: M of ``turn_sets`` on each draw.
        refused: why no number may be read, such as too many failed calls; empty where they may.
    """
    counts = np.array([len(own) for own in orders_of(table)])
    used = counts > 0
    kept = {record.doc_id for record, one in zip(table.records, used, strict=True) if one}
    reasons = Counter(
        record.excluded.get(TURNS) or (failures.REASON if any(map(failures.has_failed, record.views)) else _UNSCORED)
        for record in everyone
        if record.doc_id not in kept
    )

    def estimate(statistic: Callable[..., Any], *names: str, of: Any = used) -> Estimate:
        found = draws.estimate_of(statistic, names, None, of)
        if refused:
            return found.without(refused)
        if draws.form is None and not found.reason:
            return dataclasses.replace(
                found, reason=f"orders cannot be averaged: the aggregation of {table.metric} has no known form"
            )
        return found

    def same(one: Any) -> Any:
        return one

    by_place = {}
    for count in sorted(set(counts[used].tolist())):
        mine = counts == count
        scores = tuple(estimate(same, f"turns_{count}_{place}", of=mine) for place in range(1, count + 1))
        by_place[count] = Placed(
            int(mine.sum()), scores, None if refused else evenness(table, count, draws.settings.seed)
        )
    return Turned(
        docs=int(used.sum()),
        left_out=dict(reasons),
        once=estimate(same, "turns_once"),
        mean=estimate(same, "turns_mean"),
        every=estimate(same, "turns_every"),
        lost=estimate(same, "turns_lost")
        if "turns_lost" in draws.sets
        else estimate(lambda a, b: a - b, "turns_once", "turns_every"),
        guess=None if refused else _guess(table, draws.form, counts),
        places=by_place,
    )


def evenness(table: Table, count: int, seed: Seed) -> float | None:
    """Return the p-value of the hypothesis of no effect of the gold's place.

    None where nothing scores, or scores are no counts.

    Each doc's scores in the order of the gold's place are rotated at random (``spatial.cell_shares``), which under the
    hypothesis changes nothing.
    """
    orders = orders_of(table)
    scores = np.array(
        [
            [record.views[_with_gold_at(record, own, place)].scores[table.metric] for place in range(1, count + 1)]
            for record, own in zip(table.records, orders, strict=True)
            if len(own) == count
        ],
        float,
    )
    if scores.min() < 0 or not table.higher:
        return None
    clusters = table.groups.clusters_of([len(own) == count for own in orders])
    return spatial.cell_shares(scores, clusters, shape=(1, count), seed=seed).p


def _guess(table: Table, form: Form | None, counts: Any) -> float | None:
    """Return what independent guesses earn in the worst order; None where M is not linear in scores."""
    used = counts > 0
    if form is None or not form.linear or not used.any() or not table.higher:
        return None
    return float(table.value(form, Chosen(table.full.items, table.marks * guessed(counts)), used))


def guessed(counts: Any) -> Any:
    """Return the probability of guessing right in all k orders of k options: (1/k)^k; 0 without options.

    Args:
        counts: how many options docs have.
    """
    several = np.maximum(counts, 1)
    return np.where(np.asarray(counts) > 0, 1.0 / several, 0.0) ** several
