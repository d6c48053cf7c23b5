"""Two results of one benchmark, joined by doc: the docs that both have scored, in one order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from lmms_patch.ask.kinds import Kind
from lmms_patch.errors import RecordError
from lmms_patch.rci.recompute import Changes, TaskRun, form_of, sets_of, table_of
from lmms_patch.runs.docs import numbers_of
from lmms_patch.runs.run import Result
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import forms
from lmms_patch.stats.forms import Form
from lmms_patch.stats.resample import Bools, Ints

_COUNTS, _BY_CATEGORY = ("f1", "precision", "recall"), ("mme", "macro")


_MORE = ("answer", "col", "region", "turn", "wrong_from", "tst")
"""Columns beside those of a table."""


class Side:
    """The first or the second result, with its docs.

    Attributes:
        result: the result.
        run: the same for ``rci``.
        settings: of its statistics.
        table: all its docs.
        form: of its aggregation; None: only the run can compute it.
        frame: its samples.
        docs: a row a doc, with whether a call of it failed or a view of it could not be scored.
    """

    def __init__(self, result: Result) -> None:
        self.result, self.run = result, TaskRun(result)
        self.settings, _, self.table = table_of(self.run, Changes())
        self.form: Form | None = forms.MEAN
        if not result.kind.folds:
            self.form = form_of(self.run, self.table, self.settings, sets_of(self.run))
        self.frame = self.run.samples.hstack(result.frame(_MORE))
        lost = pl.any_horizontal(pl.col("failed", "error").is_not_null()).any().alias("lost")
        of_docs = self.frame.group_by("doc_id").agg(pl.col("gold", "cluster", "tst").first(), lost)
        self.docs = of_docs.sort("doc_id")

    def firsts(self, table: Table) -> Chosen:
        """Return the item of each doc at the first view; of a text-only cross-validation its mean over fold seeds."""
        if not self.result.kind.folds:
            return table.full
        folds = self.docs.select("doc_id", pl.col("tst").struct.field("folds")).explode("folds").unnest("folds")
        own = folds.filter(grouping=self.result.tst.headline if self.result.tst else "").group_by("doc_id")
        # a doc without the score of a fold seed has none
        scores = dict(own.agg(pl.when(pl.col("score").is_not_null().all()).then(pl.mean("score"))).iter_rows())
        return Chosen(np.array([scores.get(one) for one in table.place], float))

    def clusters(self, table: Table) -> Ints | None:
        """Return what each doc is drawn with; of a text-only cross-validation its source, else its cluster, else its copies."""
        if not self.result.kind.folds:
            return table.groups.clusters
        tst = pl.col("tst").struct
        label = pl.coalesce(tst.field("source"), "cluster", pl.format("copies {}", tst.field("text")))
        labels = dict(self.docs.select("doc_id", label.alias("label")).iter_rows())
        return numbers_of(pl.Series([labels[one] for one in table.place], dtype=pl.String))


@dataclass(frozen=True)
class Pair:
    """The docs scored in both runs, in the order of their ids.

    Attributes:
        sides: the two results.
        form: of the aggregation; None where the two differ, or only the run can compute it.
        ids: of the docs.
        tables: the docs of each side.
        clusters: shape (docs,), what is drawn together; None: docs are independent.
        only: ids of docs that only the first, and only the second run asked.
        unscored: number of docs that both asked and that one of them could not score.
        warnings: what a reader must know; grows as numbers are computed.
    """

    sides: tuple[Side, Side]
    form: Form | None
    ids: list[int]
    tables: tuple[Table, Table]
    clusters: Ints | None
    only: tuple[tuple[int, ...], tuple[int, ...]]
    unscored: int
    warnings: list[str]

    @property
    def kind(self) -> Kind:
        """The kind of the second task."""
        return self.sides[1].result.kind

    @property
    def higher(self) -> bool:
        """Whether higher scores are better."""
        return self.sides[1].table.higher

    @cached_property
    def firsts(self) -> tuple[Chosen, Chosen]:
        """The first views of both sides."""
        return self.sides[0].firsts(self.tables[0]), self.sides[1].firsts(self.tables[1])

    @property
    def grids(self) -> list[int]:
        """The grids with an index on both sides, in order."""
        return [n for n in self.sides[0].result.indexed if n in self.sides[1].result.indexed]

    def broken(self, n: int) -> Bools:
        """Return the docs with an unscored cell of a grid in either run.

        Where the aggregation works on whole clusters, with all docs of their clusters.
        """
        errors = pl.concat(side.frame.filter(pl.col("n") == n, pl.col("error").is_not_null()) for side in self.sides)
        docs = np.isin(self.ids, errors["doc_id"].to_numpy())
        clusters = next((table.groups.clusters for table in self.tables if table.groups.whole), None)
        return docs if clusters is None else np.isin(clusters, clusters[docs])


def join(first: Result, second: Result) -> Pair:
    """Join two results by doc id, and return the docs scored in both, in order.

    Raises:
        RecordError: no such doc; other golds or categories.
    """
    sides = Side(first), Side(second)
    both = sides[0].docs.join(sides[1].docs, on="doc_id", suffix="_2").sort("doc_id")
    if both.is_empty():
        raise RecordError(f"{second.task}: the two runs have no doc in common; both must be asked the same docs")
    # docs are joined by number alone
    for doc_id, one, other in (
        both.filter(pl.col("gold") != pl.col("gold_2")).select("doc_id", "gold", "gold_2").iter_rows()
    ):
        raise RecordError(
            f"{second.task}: doc {doc_id} has the gold {one!r} in the first run and {other!r} in the second: the benchmark has changed"
        )
    ids = [side.docs.join(both, on="doc_id", how="anti")["doc_id"].to_list() for side in sides]
    known = [side.form for side in sides]
    for k in (0, 1):
        # a run that scored too little to have a number has no form to know it by
        if known[k] is None and sides[k].result.measures["score"].value is None:
            known[k] = known[1 - k]
    form = known[0] if known[0] is known[1] else None
    scored, warnings = set(both["doc_id"]), list[str]()
    for side in sides:
        # an aggregation of items needs no score
        firsts = side.firsts(side.table)
        there = firsts.known if form is None or form.name in _COUNTS else np.isfinite(firsts.scores)
        scored &= {doc_id for doc_id, is_there in zip(side.table.place, there, strict=True) if is_there}
    # a doc in neither table though no call failed: its scorer gave another metric than the task's
    of_table = pl.col("doc_id").is_in(list(sides[0].table.place | sides[1].table.place))
    due = both.filter(of_table | pl.col("lost") | pl.col("lost_2"))["doc_id"].to_list()
    kept = np.array(sorted(scored), int)
    for table in (side.table for side in sides if side.table.groups.whole):
        places, clusters = np.array(list(table.place)), table.groups.clusters
        if clusters is not None:
            halved = np.isin(clusters, clusters[~np.isin(places, list(scored))])
            kept = kept[~np.isin(kept, places[halved])]
    if len(kept) < len(scored):
        warnings.append(
            f"{len(scored) - len(kept)} docs are left out: not all docs of their cluster are scored in both runs"
        )
    if not len(kept):
        raise RecordError(f"{second.task}: no doc is scored in both runs")
    # all docs of a table, as a rule: then it is the table itself, which takes no memory
    one, other = (side.table if len(side.table) == len(kept) else side.table.of(kept.tolist()) for side in sides)
    tables = one, other
    kinds = [(table.groups.categories, table.groups.merged) for table in tables]
    if form is not None and form.name in _BY_CATEGORY and kinds[0] != kinds[1]:
        raise RecordError(
            f"{second.label}: {second.metric} is made of categories, and the two runs put docs in other categories"
        )
    form = None if form is None else forms.on(form, tables[0].groups.merged)
    # what is drawn together: the second run's clusters, unless only the first has clusters, or has fewer
    labels = [one for side, table in zip(sides, tables, strict=True) if (one := side.clusters(table)) is not None]
    fewest = min(reversed(labels), key=lambda one: len(np.unique(one)), default=None)
    if len(labels) == 2 and len(np.unique(np.stack(labels), axis=1).T) != max(len(np.unique(one)) for one in labels):
        warnings.append("the two runs name other clusters of docs: the ones with fewer clusters are used")
    unscored = len(set(due) - scored)
    return Pair(sides, form, kept.tolist(), tables, fewest, (tuple(ids[0]), tuple(ids[1])), unscored, warnings)
