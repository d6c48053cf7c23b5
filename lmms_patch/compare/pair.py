"""Two results of one benchmark, joined by doc: the docs that both have scored, in one order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from lmms_patch.ask.kinds import Kind
from lmms_patch.compare.alike import plain_name
from lmms_patch.errors import RecordError
from lmms_patch.rci.recompute import Changes, TaskRun, form_of, sets_of, table_of
from lmms_patch.runs.docs import numbers_of
from lmms_patch.runs.run import Result
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import forms
from lmms_patch.stats.forms import Form
from lmms_patch.stats.resample import Estimate, Ints

_COUNTS, _BY_CATEGORY = ("f1", "precision", "recall"), ("mme", "macro")


class Side:
    """The first or the second result, with its docs.

    Attributes:
        result: the result.
        settings: of its statistics.
        table: all its docs.
        form: of its aggregation; None: only the run can compute it.
        docs: a row a doc: its gold; whether its first view has an item (``known``) and a score (``scored``), null of
            docs that the table lacks.
    """

    def __init__(self, result: Result) -> None:
        self.result, run = result, TaskRun(result)
        self.settings, _, self.table = table_of(run, Changes())
        self.form: Form | None = forms.MEAN
        if not result.kind.folds:
            self.form = form_of(run, self.table, self.settings, sets_of(run))
        frame = result.frame(["doc_id", "gold", "cluster", "tst"])
        self.docs = frame.group_by("doc_id").agg(pl.all().first()).sort("doc_id")
        firsts = self.firsts(self.table)
        there = {"doc_id": self.table.doc_id, "known": firsts.known, "scored": np.isfinite(firsts.scores)}
        self.docs = self.docs.join(pl.DataFrame(there), on="doc_id", how="left", maintain_order="left")

    @cached_property
    def measures(self) -> dict[str, Estimate]:
        """The run's numbers, the index of every task by the name ``rci``."""
        return {plain_name(name): one for name, one in self.result.measures.items()}

    def firsts(self, table: Table) -> Chosen:
        """Return the item of each doc at the first view; of a text-only cross-validation its mean over fold seeds."""
        if not self.result.kind.folds:
            return table.full
        folds = self.docs.select("doc_id", pl.col("tst").struct.field("folds")).explode("folds").unnest("folds")
        scores = folds.filter(grouping=self.result.tst.headline if self.result.tst else "").group_by("doc_id")
        # a doc without the score of a fold seed has none
        mean = scores.agg(pl.when(pl.col("score").is_not_null().all()).then(pl.mean("score")))
        return Chosen(_in_order(table, mean)["score"].cast(pl.Float64).fill_null(math.nan).to_numpy())

    def clusters(self, table: Table) -> Ints | None:
        """Return what each doc is drawn with; of a text-only cross-validation its source, else its cluster, else its copies."""
        if not self.result.kind.folds:
            return table.groups.clusters
        tst = pl.col("tst").struct
        label = pl.coalesce(tst.field("source"), "cluster", pl.format("copies {}", tst.field("text")))
        return numbers_of(_in_order(table, self.docs.select("doc_id", label=label))["label"])


def _in_order(table: Table, docs: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a table's docs, in its order."""
    return pl.DataFrame({"doc_id": table.doc_id}).join(docs, on="doc_id", how="left", maintain_order="left")


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


def join(first: Result, second: Result) -> Pair:
    """Join two results by doc id, and return the docs scored in both, in order.

    Raises:
        RecordError: no such doc; other golds or categories.
    """
    sides = Side(first), Side(second)
    both = sides[0].docs.join(sides[1].docs, on="doc_id", suffix="_2", maintain_order="left")
    if both.is_empty():
        raise RecordError(f"{second.task}: the two runs have no doc in common; both must be asked the same docs")
    # docs are joined by number alone
    for doc_id, ours, theirs in both.filter(pl.col("gold") != pl.col("gold_2"))["doc_id", "gold", "gold_2"].iter_rows():
        raise RecordError(
            f"{second.task}: doc {doc_id} has the gold {ours!r} in the first run and {theirs!r} in the second: the benchmark has changed"
        )
    ours, theirs = (tuple(side.docs.join(both, on="doc_id", how="anti")["doc_id"].to_list()) for side in sides)
    # a run that scored too little to have a number has no form to know it by
    known = [side.form for side in sides if side.form is not None or side.result.measures["score"].value is not None]
    form = known[0] if known and known[0] is known[-1] else None
    # an aggregation of items needs no score
    there = "known" if form is None or form.name in _COUNTS else "scored"
    scored = both.filter(there, f"{there}_2")["doc_id"].to_numpy()
    # of a doc in neither table the scorer may have given another metric than the task's
    due = both.filter(pl.any_horizontal(pl.col("scored", "scored_2").is_not_null()))
    kept, warnings = scored, list[str]()
    for side in sides:
        places = side.table.doc_id
        kept = kept[~np.isin(kept, places[~side.table.groups.complete(np.isin(places, scored))])]
    if len(kept) < len(scored):
        warnings.append(
            f"{len(scored) - len(kept)} docs are left out: not all docs of their cluster are scored in both runs"
        )
    if not len(kept):
        raise RecordError(f"{second.task}: no doc is scored in both runs")
    # all docs of a table, as a rule: then it is the table itself, which takes no memory
    one, other = (side.table if len(side.table) == len(kept) else side.table.of(kept.tolist()) for side in sides)
    kinds = [(table.groups.categories, table.groups.merged) for table in (one, other)]
    if form is not None and form.name in _BY_CATEGORY and kinds[0] != kinds[1]:
        raise RecordError(
            f"{second.label}: {second.metric} is made of categories, and the two runs put docs in other categories"
        )
    form = None if form is None else forms.on(form, one.groups.merged)
    # what is drawn together: the second run's clusters, unless only the first has clusters
    clusters = sides[1].clusters(other)
    clusters = sides[0].clusters(one) if clusters is None else clusters
    return Pair(sides, form, kept.tolist(), (one, other), clusters, (ours, theirs), len(due) - len(scored), warnings)
