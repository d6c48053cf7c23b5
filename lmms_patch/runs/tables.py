"""The records of a task as arrays: what the statistics are computed from. NumPy at most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import RCI, Key
from lmms_patch.runs import failures
from lmms_patch.runs.groups import Groups
from lmms_patch.runs.record import TURNS, Record, full_marks, in_worst_order
from lmms_patch.runs.references import References
from lmms_patch.runs.sampling import Sampling
from lmms_patch.runs.views import Chosen, Views, point_places, used_for
from lmms_patch.runs.wrong_images import WrongImages
from lmms_patch.stats.forms import Form, Picked, on, value_of
from lmms_patch.stats.resample import Array, Bools, Ints
from lmms_patch.stats.sampled import Sampled

_ROUNDING = 1e-9


class Table:
    """The docs of a task with a given metric and an answer to their first view.

    Where the index is of every order of the options (``Kind.every_order``), each view stands in its worst order by the
    metric, and docs whose options cannot be moved are no docs of the table.

    Attributes:
        records: those docs.
        asked_records: also the docs whose first call failed, or whose first view has no value of the metric.
        unscored: the ids of the latter.
        logged: the docs that have the metric, as the log has them.
        kind: the kind of task that the records are of; that of images without records.
        place: the place of each doc in ``records``, by its id.
        groups: the docs' clusters, categories and classes of answers.
        references: their golds and uninformed answers.
        wrong: what they score on another doc's image.
        sampling: how they were asked, in a run that left views out.

    Args:
        records: ``patch`` objects, one per doc.
        metric: the metric; docs without it are left out.
        higher: whether higher is better.
        cluster: a key of ``fields`` in the records, or None: docs are independent.
        whole: the aggregation works on whole clusters (MME's pairs): all docs of a cluster are used or none.
        in_orders: whether views stand in all their orders, also where the index is of every order.
        as_given: whether the docs stay in the order of the records; else they stand by their ids.
    """

    def __init__(
        self,
        records: Sequence[Record],
        metric: str,
        *,
        higher: bool = True,
        cluster: str | None = "cluster",
        whole: bool = False,
        in_orders: bool = False,
        as_given: bool = False,
    ) -> None:
        self.metric, self.higher = metric, higher
        self.logged = [record for record in records if _has(record, metric)]
        # a log's lines stand in the order of the ranks, and bootstrap draws go by place
        if not as_given:
            self.logged.sort(key=lambda record: record.doc_id)
        self.kind = self.logged[0].task_kind if self.logged else RCI
        self.asked_records = self.logged
        if self.kind.every_order and not in_orders:
            self.asked_records = [
                in_worst_order(record, metric, higher) for record in self.logged if TURNS not in record.excluded
            ]
        self.unscored = {record.doc_id for record in self.asked_records if failures.unscored(record, metric)}
        lost = {record.doc_id for record in self.asked_records if failures.unanswered(record)} | self.unscored
        # an aggregation over whole clusters (MME's pairs) fails on half a cluster, so the rest of the cluster goes too
        kept = Groups(self.asked_records, cluster, whole).complete(
            [None if record.doc_id in lost else record for record in self.asked_records]
        )
        self.records = [record for record in kept if record is not None]
        self.place = {record.doc_id: i for i, record in enumerate(self.records)}
        self.groups = Groups(self.records, cluster, whole)
        self.references = References(self.records, metric)
        self.wrong = WrongImages(self.records, metric, higher, self.groups)
        self.sampling = Sampling(self.records, metric)
        self._best: dict[Key, Chosen] = {}

    def __len__(self) -> int:
        return len(self.records)

    def of(self, doc_ids: Iterable[int], *, in_orders: bool = False) -> Table:
        """Return the table of chosen docs, among those with the metric.

        Args:
            doc_ids: ids of the docs, in the order that the table is to have.
            in_orders: whether views stand in all their orders, also where the index is of every order.
        """
        by_id = {record.doc_id: record for record in self.logged}
        records = [by_id[doc_id] for doc_id in doc_ids]
        return Table(
            records,
            self.metric,
            higher=self.higher,
            cluster=self.groups.cluster,
            whole=self.groups.whole,
            in_orders=in_orders,
            as_given=True,
        )

    # --- items ------------------------------------------------------------------------------------

    def at(self, places: Sequence[int | None]) -> Chosen:
        """Return the item of each doc at a view; nan and None where the view is None or has no item."""
        return self.views.chosen(self.metric, places)

    @cached_property
    def full(self) -> Chosen:
        """What each doc scores on the full image (its first view).

        In a run that left docs out: an estimate, which may exceed the scale.
        """
        return (
            self._estimates(self.how_asked(None).whole, np.ones(len(self), bool))
            if self.sampling.used
            else self.full_seen
        )

    @cached_property
    def full_seen(self) -> Chosen:
        """What each doc scores on the full image; nan and None where the full image was not asked."""
        return self.at([0] * len(self))

    def how_asked(self, key: Key | None) -> Sampled:
        """Return how each doc was asked, and its scores on the full image and on the best cell of a set (None: of no set)."""
        best = np.full(len(self), math.nan) if key is None else self.best_seen(key).scores
        return self.sampling.sampled(key, self.full_seen.scores, best)

    @cached_property
    def signed(self) -> bool:
        """Whether an answer, of the model or uninformed, scores below 0: then the metric's scale has no natural zero."""
        return any(score < -_ROUNDING for score in (*self.views.scored(self.metric), *self.references.scores))

    def value(self, form: Form, chosen: Chosen, mask: Bools | None = None) -> float:
        """Return M of some items by its form; nan where undefined.

        An estimate beyond the scale is moved to the scale's end.
        """
        picked = self.picked(chosen)
        return value_of(self.fitted(form), picked if mask is None else picked.where(mask))

    def _estimates(self, scores: Array, used: Bools) -> Chosen:
        """Return estimated scores as items, each score being the item.

        Where the mean of the used docs lies outside the scale, as the mean of few heavy docs may, all scores are moved by the
        same amount, so that the mean lies at the scale's end. Draws then lie on both sides of the end, and the interval
        keeps its width.
        """
        if used.any():
            mean = float(scores[used].mean())
            scores = scores + float(np.clip(mean, min(0.0, self.range_seen[0]), self.range_seen[1])) - mean
        return Chosen(scores.tolist(), scores)

    def fitted(self, form: Form) -> Form:
        """Return the form of M for these docs: with merged categories, and in a sampled run bounded by the scale."""
        form = on(form, self.groups.merged)
        return form.within(min(0.0, self.range_seen[0]), self.range_seen[1]) if self.sampling.used else form

    @cached_property
    def range_seen(self) -> tuple[float, float]:
        """The least and the highest score of any view, uninformed answer or gold; 0 and 1 where nothing is scored."""
        known = [*self.views.scored(self.metric), *self.wrong.views.scored(self.metric), *self.references.scores]
        return min(known, default=0.0), max(known, default=1.0)

    def cells(self, n: int) -> Array:
        """Return the scalars of the cells of a grid (``Kind.cells`` of them), shape (docs, cells).

        Nan where the doc is not used for the grid.

        In a run that left views out, only docs asked whole to plan the rest count. Further docs may have all cells asked too,
        but only because none of their cells earned full marks.
        """
        docs = self.sampling.pilot & used_for(self.records, n)
        return self.views.cells(self.metric, n, self.kind.cells(n), docs)

    @cached_property
    def points(self) -> dict[Key, Chosen]:
        """What each doc scores at each point (``Kind.points``), ascending; None where the doc is unused there.

        Empty for kinds without points.

        Where the full image is asked too, a doc is used only if its full image has a score: then each point can be compared
        with the full image, doc by doc.
        """
        out = {}
        for key in self.kind.points(sorted({n for record in self.records for n in record.grids})):
            found = self.at(point_places(self.records, key))
            used = np.isfinite(found.scores)
            out[key] = found.where(used & np.isfinite(self.full.scores) if self.kind.full else used)
        return out

    @cached_property
    def in_orders(self) -> Table:
        """The same docs with their views in all asked orders of the options.

        The table itself where its views stand in all orders already.
        """
        if not self.kind.every_order:
            return self
        return self.of(list(self.place), in_orders=True)

    def best(self, key: Key) -> Chosen:
        """Return the item of each doc's best view of a set; in a sampled run an estimate, as in ``full``.

        None where it is not used for the set.
        """
        if self.sampling.no_best:
            return self.at([None] * len(self))
        if not self.sampling.used:
            return self.best_seen(key)
        used = used_for(self.records, key)
        return self._estimates(self.how_asked(key).cells, used).where(used)

    def best_seen(self, key: Key) -> Chosen:
        """Return the item of each doc's best view among those asked (``best_places``).

        Computed once: several numbers are made of it.
        """
        if key not in self._best:
            self._best[key] = self.at(self.best_places(key))
        return self._best[key]

    def best_places(self, key: Key) -> list[int | None]:
        """Return the place of each doc's best view of a set, by this metric's scalar, else by the record's choice.

        None where the doc is not used.
        """
        name, views, used = str(key), self.views, used_for(self.records, key)
        best, kept = views.best(self.metric, views.in_set(key) & used[views.docs], self.higher), views.has(self.metric)
        out: list[int | None] = [None] * len(self)
        for doc, (record, place) in enumerate(zip(self.records, best.tolist(), strict=True)):
            if used[doc]:
                found = record.best.get(name) if place < 0 else place
                out[doc] = found if found is not None and kept[views.starts[doc] + found] else None
        return self.groups.complete(out)

    def picked(self, chosen: Chosen) -> Picked:
        """Return what a form sums of some items."""
        said, gold = (_labels(chosen.items, key) for key in ("prediction", "ground_truth"))
        groups = self.groups
        return Picked(chosen.scores, said, gold, groups.clusters, groups.category_numbers, groups.merged)

    @cached_property
    def views(self) -> Views:
        """The views of the docs, as arrays."""
        return Views([record.views for record in self.records])

    def scored(self, key: Key) -> Ints:
        """Return for each doc how many views of a set were asked and have a score."""
        return self.views.per_doc(self.views.in_set(key) & np.isfinite(self.views.scores(self.metric)))

    @cached_property
    def marks(self) -> Array:
        """What the gold of each doc scores (``record.full_marks``)."""
        return np.array([full_marks(record, self.metric) for record in self.records], float)


def _labels(items: Sequence[Any], key: str) -> Bools | None:
    """Return whether each item's label under a key is "yes"; False where there is no item.

    None where an item lacks the key.
    """
    there = [item for item in items if item is not None]
    if not there or not all(isinstance(item, Mapping) and key in item for item in there):
        return None
    return np.array([item is not None and str(item[key]).strip().lower() == "yes" for item in items])


def _has(record: Record, metric: str) -> bool:
    """Return whether a doc has a metric, or may have the metric: none of its calls succeeded, or none was made."""
    if not record.is_asked:
        return True
    if any(metric in view.items for view in record.views):
        return True
    return not any(view.items or view.error for view in record.views)


def range_of(tables: Sequence[Table]) -> tuple[float, float]:
    """Return the least and the highest score in any of some tables (``Table.range_seen``)."""
    lows, highs = zip(*(table.range_seen for table in tables), strict=True)
    return min(lows), max(highs)
