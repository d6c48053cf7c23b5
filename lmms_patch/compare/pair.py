"""Two results of one benchmark, joined by doc: the docs that both have scored, in one order. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmms_patch.ask.kinds import Key, Kind
from lmms_patch.compare.checks import (
    check_golds,
    load,
    sources,
    tst_score,
)
from lmms_patch.errors import RecordError
from lmms_patch.rci.recompute import Changes, TaskRun, check_number, fip_of, form_of, table_of
from lmms_patch.runs.details import Settings
from lmms_patch.runs.failures import has_failed
from lmms_patch.runs.record import Record
from lmms_patch.runs.run import Result
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import forms, paired
from lmms_patch.stats.forms import Form
from lmms_patch.stats.paired import McNemar
from lmms_patch.stats.resample import Bools, Ints, cluster_numbers

_COUNTS = ("f1", "precision", "recall")
_BY_CATEGORY = ("mme", "macro")


@dataclass(frozen=True)
class PairSide:
    """The first or the second result, with its records as a table.

    Attributes:
        run: its result and records.
        settings: of its statistics.
        table: all its docs.
        form: of its aggregation; None: only the run can compute it.
    """

    run: TaskRun
    settings: Settings
    table: Table
    form: Form | None

    @property
    def kind(self) -> Kind:
        """The kind of its task."""
        return self.run.result.kind

    @property
    def grids(self) -> list[int]:
        """The grids of its index."""
        return list(self.run.result.grids) if self.kind.index else []

    @property
    def records(self) -> dict[int, Record]:
        """Its records by doc id."""
        return {record.doc_id: record for record in self.run.records}

    def first_views(self, table: Table) -> Chosen:
        """Return the item of each doc at the first view.

        Of a text-only cross-validation its score, the mean over fold seeds.
        """
        if not self.kind.folds:
            return table.full
        return Chosen([None] * len(table), np.array([tst_score(record) for record in table.records], float))


def join(first: TaskRun, second: TaskRun) -> Pair:
    """Join two runs by doc id, and return the docs scored in both, in order.

    Raises:
        RecordError: no such doc; other golds or categories; a log that does not give the run's own numbers.
    """
    ids = [{record.doc_id for record in run.records} for run in (first, second)]
    common = sorted(ids[0] & ids[1])
    if not common:
        raise RecordError(f"{first.result.task}: the two runs have no doc in common; both must be asked the same docs")
    check_golds(first, second, set(common))
    sides = _sides(first, second)
    form = sides[0].form if sides[0].form is sides[1].form else None
    warnings: list[str] = []
    for side in sides:
        warnings += _check_score(side, bool(sides[1].kind.folds))
    scored = _scored(sides, form, common)
    unscored = len(common) - len(scored) - _of_another_metric(sides, common)
    if any(side.table.groups.whole for side in sides):
        whole = scored - _of_broken_clusters(sides, scored)
        if len(whole) < len(scored):
            warnings.append(
                f"{len(scored) - len(whole)} docs are left out: not all docs of their cluster are scored in both runs"
            )
        scored = whole
    compared = [doc_id for doc_id in common if doc_id in scored]
    if not compared:
        raise RecordError(f"{first.result.task}: no doc is scored in both runs")
    tables = sides[0].table.of(compared), sides[1].table.of(compared)
    kinds = [(table.groups.categories, table.groups.merged) for table in tables]
    if form is not None and form.name in _BY_CATEGORY and kinds[0] != kinds[1]:
        raise RecordError(
            f"{second.name}: {tables[1].metric} is made of categories, and the two runs put docs in other categories"
        )
    only = tuple(sorted(ids[0] - ids[1])), tuple(sorted(ids[1] - ids[0]))
    form = None if form is None else forms.on(form, tables[0].groups.merged)
    return Pair(sides, form, compared, tables, _clusters(sides, tables, warnings), only, unscored, warnings)


def check_log(result: Result) -> list[str]:
    """Hold a result's score to its sample log; return what is only nearly so.

    Raises:
        RecordError: the log is cut, of other docs or of another run.
    """
    run = load(result)
    settings, _, table = table_of(run, Changes())
    side = PairSide(run, settings, table, None)
    form = forms.MEAN if side.kind.folds else form_of(run, table, settings, side.grids)
    return _check_score(dataclasses.replace(side, form=form), bool(side.kind.folds))


def _check_score(side: PairSide, folds: bool) -> list[str]:
    """Hold the score of the first views to the score that the run reported; return what is only nearly so.

    Raises:
        RecordError: the log is of another run.
    """
    result, table, form = side.run.result, side.table, side.form
    reported = result.metrics.get("tst") if folds else fip_of(result, table)
    scores = side.first_views(table).scores
    if form is None or reported is None or not np.isfinite(scores).all():
        return []
    value = float(scores.mean()) if folds else table.value(form, table.full)
    return check_number(side.run.name, table.metric, form, value, reported, table)


def _sides(first: TaskRun, second: TaskRun) -> tuple[PairSide, PairSide]:
    """Return both sides, each with the form of its aggregation.

    A run that could not score some docs may have no number to recognize its form by. Then it has the form of the other
    run.
    """
    sides = []
    for run in (first, second):
        settings, _, table = table_of(run, Changes())
        sides.append(PairSide(run, settings, table, None))
    if sides[1].kind.folds:
        known: list[Form | None] = [forms.MEAN, forms.MEAN]
    else:
        known = [form_of(side.run, side.table, side.settings, side.grids) for side in sides]
    numberless = [side.run.result.metrics.get(side.table.metric) is None for side in sides]
    one, two = (known[1 - k] if known[k] is None and numberless[k] else known[k] for k in (0, 1))
    return dataclasses.replace(sides[0], form=one), dataclasses.replace(sides[1], form=two)


def _scored(sides: Sequence[PairSide], form: Form | None, common: Sequence[int]) -> set[int]:
    """Return the docs with a score on the first view in both runs; with an item, for aggregations of items."""
    scored = set(common)
    for side in sides:
        firsts = side.first_views(side.table)
        known = firsts.known if of_items(form) else np.isfinite(firsts.scores)
        scored &= {
            record.doc_id for record, is_known in zip(side.table.records, known.tolist(), strict=True) if is_known
        }
    return scored


def of_items(form: Form | None) -> bool:
    """Return whether an aggregation goes by whole items, not by their scores."""
    return form is None or form.name in _COUNTS


def _of_another_metric(sides: Sequence[PairSide], common: Sequence[int]) -> int:
    """Count the docs in neither table though no call failed: their scorer gave another metric than the task's."""
    absent = {doc_id for doc_id in common if all(doc_id not in side.table.place for side in sides)}
    records = [record for side in sides for record in side.run.records if record.doc_id in absent]
    return len(
        {
            record.doc_id
            for record in records
            if not any(view.error is not None or has_failed(view) for view in record.views)
        }
    )


def _of_broken_clusters(sides: Sequence[PairSide], scored: set[int]) -> set[int]:
    """Return the docs of each cluster with an unscored doc."""
    docs: set[int] = set()
    for side in sides:
        table = side.table
        labels = (table.groups.clusters if table.groups.clusters is not None else np.arange(len(table))).tolist()
        missing = {label for record, label in zip(table.records, labels, strict=True) if record.doc_id not in scored}
        docs |= {record.doc_id for record, label in zip(table.records, labels, strict=True) if label in missing}
    return docs


def _clusters(sides: Sequence[PairSide], tables: Sequence[Table], warnings: list[str]) -> Ints | None:
    """Return what is drawn together: the second run's clusters, unless only the first has clusters, or has fewer."""
    labels = [cluster_numbers(sources(table)) if sides[1].kind.folds else table.groups.clusters for table in tables]
    known = [one for one in labels if one is not None]
    if len(known) == 2 and len(np.unique(np.stack(known), axis=1).T) != max(len(np.unique(one)) for one in known):
        warnings.append("the two runs name other clusters of docs: the ones with fewer clusters are used")
    return min(reversed(known), key=lambda one: len(np.unique(one))) if known else None


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

    sides: tuple[PairSide, PairSide]
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
        return self.sides[1].kind

    @property
    def higher(self) -> bool:
        """Whether higher scores are better."""
        return self.sides[1].table.higher

    @property
    def firsts(self) -> tuple[Chosen, Chosen]:
        """The first views of both sides."""
        one, two = (side.first_views(table) for side, table in zip(self.sides, self.tables, strict=True))
        return one, two

    @property
    def shared_grids(self) -> list[int]:
        """The grids of both sides, in order."""
        return [n for n in self.sides[0].grids if n in self.sides[1].grids]

    def mcnemar(self) -> McNemar | None:
        """Return McNemar's test of the first views' scores; where lower is better, 0 counts as right."""
        return paired.mcnemar(*(side.scores if self.higher else 1 - side.scores for side in self.firsts))

    def at(self, key: Key) -> tuple[Chosen, Chosen]:
        """Return what both sides score at a point."""
        one, two = (table.points[key] for table in self.tables)
        return one, two

    def with_partners(self, docs: Bools) -> Bools:
        """Return these docs; where the aggregation works on whole clusters, with all docs of their clusters."""
        clusters = next((table.groups.clusters for table in self.tables if table.groups.whole), None)
        return docs if clusters is None else np.asarray(np.isin(clusters, clusters[docs]))
