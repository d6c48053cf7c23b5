"""The numbers of docs that are asked in every cyclic order of their options: right in all of them, on average, and by the place of the gold.

A guesser who draws anew in each of k orders is right in all of them with probability (1/k)^k; one who always takes the
same place is never right in all, since the gold comes to each place once; one who always takes the same text keeps the
rate that it has in one order.

Source: CircularEval, in MMBench (https://arxiv.org/abs/2307.06281).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lmms_patch.ask.kinds import TURNS, Key, Kind
from lmms_patch.rci.draws import Draws, minus
from lmms_patch.rci.kinds.part import warned
from lmms_patch.rci.kinds.regions import drawn
from lmms_patch.runs import failures, reading
from lmms_patch.runs.docs import used_for
from lmms_patch.runs.numbers import Analysis, Grid, Placed, Turned
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import TURNED, Chosen
from lmms_patch.stats import spatial
from lmms_patch.stats.forms import Form
from lmms_patch.stats.resample import Bools, Estimate, Ints, Seed, generator

if TYPE_CHECKING:
    from lmms_patch.rci.work import Work

_UNSCORED = "an answer has no score"


def of(kind: Kind) -> bool:
    """Return whether tasks of a kind have the part."""
    return kind.turns


def sets(work: Work) -> dict[str, list[Chosen]]:
    """Return sets of answers by name (``Part.sets``)."""
    return turn_sets(work.table, work.form, work.settings.seed)


def add(work: Work, found: Analysis, by_set: Mapping[Key, Grid]) -> Analysis:
    """Return an analysis with the part's numbers (``Part.add``)."""
    refused = failures.too_many(work.table, TURNS) if work.failed else ""
    orders = turned(work.table, work.draws, refused)
    why = f"no score in every order of the options: {refused}" if refused else ""
    return warned(dataclasses.replace(found, turned=orders), why, *reading.not_turned(orders.left_out))


def turn_sets(table: Table, form: Form | None, seed: Seed) -> dict[str, list[Chosen]]:
    """Return the sets of items by name.

    Over the docs that are asked in every order, ``turns_once`` has the answer to the doc's own order, ``turns_mean``
    one order drawn at random (several choices are averaged), and ``turns_every`` the worst order: that is right only
    where all are; where M is linear, ``turns_lost`` has what a doc loses from the first to the last. Over the docs with
    the commonest number of options, ``turns_at_<p>`` has the order that shows the gold at place p.

    Args:
        table: the docs.
        form: the aggregation's form; None: it must be called, and there are no sets.
        seed: of the drawn orders, where their mean has no closed form.
    """
    if form is None:
        return {}
    views, higher = table.views, table.higher
    own = orders_of(table)
    counts = views.per_doc(own)
    sets = {
        "turns_once": [views.chosen(views.first(own))],
        "turns_mean": drawn(table, form, own, counts.clip(max=1), generator(seed)),
        "turns_every": [views.chosen(views.best(own, not higher))],
    }
    # Docs lost by turning are a share, so the interval must not reach below 0 as a difference's would.
    if form.linear and higher:
        sets["turns_lost"] = [Chosen(sets["turns_once"][0].scores - sets["turns_every"][0].scores)]
    gold_at, count = views.column("gold_at", 0), commonest(counts)
    for place in range(1, count + 1):
        shown = own & (counts == count)[views.docs] & (gold_at == place)
        sets[f"turns_at_{place}"] = [views.chosen(views.first(shown))]
    return sets


def orders_of(table: Table) -> Bools:
    """Mark the full views of docs asked in every order of their options, shape (views,); none of a doc where one has no score."""
    views = table.views
    own = views.where(TURNED) & (used_for(table.docs, TURNS) & table.kind.turns)[views.docs]
    return np.asarray(own & (views.per_doc(own & np.isnan(views.scores)) == 0)[views.docs])


def commonest(counts: Ints) -> int:
    """Return the commonest number of options, of several the least; 0 where no doc is asked in every order."""
    times = np.bincount(counts)
    times[0] = 0
    return int(times.argmax())


def turned(table: Table, draws: Draws, refused: str = "") -> Turned:
    """Return the numbers of a task asked in every order of the options.

    Args:
        table: the docs.
        draws: M of ``turn_sets`` on each draw.
        refused: why no number may be read, such as too many failed calls; empty where they may.
    """
    counts = table.views.per_doc(orders_of(table))
    used = counts > 0

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

    placed, count = None, commonest(counts)
    if count:
        mine = counts == count
        scores = tuple(estimate(same, f"turns_at_{place}", of=mine) for place in range(1, count + 1))
        placed = Placed(int(mine.sum()), scores, None if refused else evenness(table, count, draws.settings.seed))
    return Turned(
        docs=int(used.sum()),
        left_out=_left_out(table, table.doc_id[used].tolist()),
        once=estimate(same, "turns_once"),
        mean=estimate(same, "turns_mean"),
        every=estimate(same, "turns_every"),
        lost=estimate(same, "turns_lost")
        if "turns_lost" in draws.sets
        else estimate(minus, "turns_once", "turns_every"),
        guess=None if refused else _guess(table, draws.form, counts),
        placed=placed,
    )


def _left_out(table: Table, kept: list[int]) -> dict[str, int]:
    """Return why docs that were answered are not in the numbers, and how many.

    Args:
        table: the docs.
        kept: ids of the docs that are in them.
    """
    of_docs = table.logged.filter(~pl.col("other")).group_by("doc_id", maintain_order=True)
    docs = of_docs.agg(pl.col("failed").count(), first=pl.col("failed").first()).filter(pl.col("first").is_null())
    docs = docs.filter(~pl.col("doc_id").is_in(kept))
    docs = docs.join(table.excluded.filter(set=TURNS), on="doc_id", how="left", maintain_order="left")
    otherwise = pl.when(pl.col("failed") > 0).then(pl.lit(failures.REASON)).otherwise(pl.lit(_UNSCORED))
    return dict(Counter(docs.select(pl.coalesce("why", otherwise)).to_series()))


def evenness(table: Table, count: int, seed: Seed) -> float | None:
    """Return the p-value of the hypothesis of no effect of the gold's place.

    None where nothing scores, or scores are no counts.

    Each doc's scores in the order of the gold's place are rotated at random (``spatial.cell_shares``), which under the
    hypothesis changes nothing.
    """
    views, own = table.views, orders_of(table)
    docs = views.per_doc(own) == count
    shown = np.flatnonzero(own & docs[views.docs])
    order = np.lexsort((views.column("gold_at", 0)[shown], views.docs[shown]))
    scores = views.scores[shown[order]].reshape(-1, count)
    if scores.min() < 0 or not table.higher:
        return None
    clusters = table.groups.clusters_of(docs)
    return spatial.cell_shares(scores, clusters, shape=(1, count), seed=seed).p


def _guess(table: Table, form: Form | None, counts: Any) -> float | None:
    """Return what independent guesses earn in the worst order; None where M is not linear in scores."""
    used = counts > 0
    if form is None or not form.linear or not used.any() or not table.higher:
        return None
    return float(table.value(form, Chosen(table.marks * guessed(counts)), used))


def guessed(counts: Any) -> Any:
    """Return the probability of guessing right in all k orders of k options: (1/k)^k; 0 without options.

    Args:
        counts: how many options docs have.
    """
    several = np.maximum(counts, 1)
    return np.where(np.asarray(counts) > 0, 1.0 / several, 0.0) ** several
