"""The records of a task as arrays: what the statistics are computed from. NumPy at most."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.kinds import RCI, Key
from lmms_patch.ask.timeline import POINTS
from lmms_patch.errors import RecordError
from lmms_patch.runs import failures
from lmms_patch.runs.failures import different
from lmms_patch.runs.record import TURNS, Asked, Baseline, Record, View, full_marks, in_set, in_worst_order
from lmms_patch.stats import chance
from lmms_patch.stats.asking import Sampled
from lmms_patch.stats.chance import Uninformed
from lmms_patch.stats.forms import Form, Picked, on, value_of
from lmms_patch.stats.luck import Ints
from lmms_patch.stats.resample import Array, cluster_numbers

_ROUNDING = 1e-9
LEAST_CLASS = 20
"""Docs that an answer class of its own needs."""


@dataclass(frozen=True)
class Chosen:
    """A native item of each doc, with its scalar.

    Attributes:
        items: native items.
        scores: shape (docs,), their scalars; nan where there is none.
    """

    items: list[Any]
    scores: Array

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which docs have an item, shape (docs,)."""
        return np.array([item is not None for item in self.items], bool)

    def where(self, mask: NDArray[np.bool_]) -> Chosen:
        """Return the items and scores of some docs; None and nan for the rest, which then count for nothing."""
        return Chosen(
            [item if keep else None for item, keep in zip(self.items, mask, strict=True)],
            np.where(mask, self.scores, math.nan),
        )


class Table:
    """The docs of a task with a given metric and an answer to their first view.

    Where the index is of every order of the options (``Kind.every_order``), each view stands in its worst order by the
    metric, and docs whose options cannot be moved are no docs of the table.

    Attributes:
        records: those docs.
        asked_records: also the docs whose first call failed, or whose first view has no value of the metric.
        unscored: the ids of the latter.
        logged: the docs that have the metric, as the log has them.

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
        self.metric, self.higher, self.cluster, self.whole = metric, higher, cluster, whole
        self.logged = [record for record in records if _has(record, metric)]
        # a log's lines stand in the order of the ranks, and bootstrap draws go by place
        if not as_given:
            self.logged.sort(key=lambda record: record.doc_id)
        self.kind = self.logged[0].task_kind if self.logged else RCI
        """The kind of task that the records are of; that of images without records."""
        self.asked_records = self.logged
        if self.kind.every_order and not in_orders:
            self.asked_records = [
                in_worst_order(record, metric, higher) for record in self.logged if TURNS not in record.excluded
            ]
        self.unscored = {record.doc_id for record in self.asked_records if failures.unscored(record, metric)}
        lost = {record.doc_id for record in self.asked_records if failures.unanswered(record)} | self.unscored
        # an aggregation over whole clusters (MME's pairs) fails on half a cluster, so the rest of the cluster goes too
        halved = (
            {_label(record, cluster) for record in self.asked_records if record.doc_id in lost}
            if whole and cluster is not None
            else set()
        )
        self.records = [
            r for r in self.asked_records if r.doc_id not in lost and not (halved and _label(r, cluster) in halved)
        ]
        self.place = {record.doc_id: i for i, record in enumerate(self.records)}
        self._best: dict[Key, Chosen] = {}
        self.sampled = any(record.estimated for record in self.records)
        """Whether docs were left out, so that a doc's scores on the full image and its best cell are estimates (``stats.asking``)."""
        # cells were left out by the scores of a single metric; the best cell by another metric may be among them
        other = next(
            (
                one.metric
                for one in (record.asked for record in self.records)
                if one is not None and one.unasked and one.metric != metric
            ),
            "",
        )
        self.no_best = f"cells were left out by the scores of {other}" if other else ""
        """Why no doc's best cell is known by this metric; empty where it is."""

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
            cluster=self.cluster,
            whole=self.whole,
            in_orders=in_orders,
            as_given=True,
        )

    # --- labels -----------------------------------------------------------------------------------

    def field(self, name: str) -> list[Hashable] | None:
        """Return the values of a named field, as text; None where a doc has no value."""
        values = [record.fields.get(name) for record in self.records]
        return None if not values or None in values else [repr(value) for value in values]

    @cached_property
    def clusters(self) -> Ints | None:
        """Cluster numbers of the docs; None where docs are independent.

        A doc without a label is a cluster of its own.
        """
        if self.cluster is None:
            return None
        labels = drawn_with([record.fields.get(self.cluster) for record in self.records])
        return None if labels is None else cluster_numbers(labels)

    def clusters_of(self, docs: Any, *, renumbered: bool = False) -> Ints | None:
        """Return the cluster numbers of some docs, as they are or from 0 on; None where docs are independent."""
        if self.clusters is None:
            return None
        return cluster_numbers(self.clusters[docs].tolist()) if renumbered else self.clusters[docs]

    @cached_property
    def categories(self) -> list[Hashable] | None:
        """Category of each doc, as text."""
        return self.field("category")

    @cached_property
    def _category_numbers(self) -> Ints | None:
        return cluster_numbers(self.categories)

    @cached_property
    def merged(self) -> tuple[int, ...]:
        """For each category, the number of its group, as ``stats.forms.on`` takes them; () where each counts by itself."""
        into: dict[int, tuple[str, str]] = {}
        for record, number in zip(
            self.records, () if self._category_numbers is None else self._category_numbers.tolist(), strict=False
        ):
            name = record.fields.get("merged")
            into[number] = ("alone", str(number)) if name is None else ("merged", str(name))
        numbers = (
            cluster_numbers([into[number] for number in sorted(into)])
            if any(how == "merged" for how, _ in into.values())
            else None
        )
        return () if numbers is None else tuple(numbers.tolist())

    @cached_property
    def answer_classes(self) -> tuple[Ints, tuple[str, ...]]:
        """Number of each doc's answer class, and the classes' names; rare answers go by their format alone."""
        labels = [record.answer.label for record in self.records]
        formats = [record.answer.format for record in self.records]
        often = {label for label, count in Counter(labels).items() if count >= LEAST_CLASS}
        final = [label if label in often else name for label, name in zip(labels, formats, strict=True)]
        names, numbers = (
            np.unique(np.asarray(final, object).astype(str), return_inverse=True)
            if final
            else (np.zeros(0, str), np.zeros(0, np.intp))
        )
        return numbers, tuple(names.tolist())

    # --- items ------------------------------------------------------------------------------------

    def at(self, places: Sequence[int | None]) -> Chosen:
        """Return the item of each doc at a view; nan and None where the view is None or has no item."""
        return self.views.chosen(self.metric, places)

    @cached_property
    def full(self) -> Chosen:
        """What each doc scores on the full image (its first view).

        In a run that left docs out: an estimate, which may exceed the scale.
        """
        return self._estimates(self.how_asked(None).whole, np.ones(len(self), bool)) if self.sampled else self.full_seen

    @cached_property
    def full_seen(self) -> Chosen:
        """What each doc scores on the full image; nan and None where the full image was not asked."""
        return self.at([0] * len(self))

    def how_asked(self, key: Key | None) -> Sampled:
        """Return how each doc was asked, and its scores on the full image and on the best cell of a set (None: of no set)."""
        asked = [record.asked or WHOLE for record in self.records]
        best = np.full(len(self), math.nan) if key is None else self.best_seen(key).scores
        # what a doc was expected to score is of the metric that the run went by; by another metric expect 0
        own, name = (
            [
                one if one.metric in ("", self.metric) else msgspec.structs.replace(one, full=0.0, before={}, after={})
                for one in asked
            ],
            str(key),
        )
        return Sampled(
            np.nan_to_num(self.full_seen.scores),
            np.nan_to_num(best),
            np.array([one.steps for one in own], np.intp),
            np.array([one.p for one in own], float).reshape(-1, 2),
            np.array([one.full or 0.0 for one in own], float),
            np.array([one.before.get(name, 0.0) for one in own], float),
            np.array([one.after.get(name, 0.0) for one in own], float),
        )

    @cached_property
    def signed(self) -> bool:
        """Whether an answer, of the model or uninformed, scores below 0: then the metric's scale has no natural zero."""
        every = [one.scores for one in self.views.different] + [one.scores for one in self._baselines]
        return any((scores.get(self.metric) or 0.0) < -_ROUNDING for scores in every)

    def value(self, form: Form, chosen: Chosen, mask: NDArray[np.bool_] | None = None) -> float:
        """Return M of some items by its form; nan where undefined.

        An estimate beyond the scale is moved to the scale's end.
        """
        picked = self.picked(chosen)
        return value_of(self.fitted(form), picked if mask is None else picked.where(mask))

    def _estimates(self, scores: Array, used: NDArray[np.bool_]) -> Chosen:
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
        form = on(form, self.merged)
        return form.within(min(0.0, self.range_seen[0]), self.range_seen[1]) if self.sampled else form

    @cached_property
    def range_seen(self) -> tuple[float, float]:
        """The least and the highest score of any view, uninformed answer or gold; 0 and 1 where nothing is scored."""
        every = [one.scores for views in (self.views, self.wrong_views) for one in views.different] + [
            one.scores for one in self._baselines
        ]
        known = [score for scores in every if (score := scores.get(self.metric)) is not None]
        return min(known, default=0.0), max(known, default=1.0)

    @property
    def asked_docs(self) -> int:
        """How many docs were asked anything."""
        return sum(record.is_asked for record in self.records)

    def stands_for(self, steps: int, used: NDArray[np.bool_]) -> float:
        """Return how many docs are represented by a doc asked in so many steps; 1 where all docs were asked."""
        if not self.sampled:
            return 1.0
        asked = [
            (record.asked or WHOLE).steps >= steps for record, keep in zip(self.records, used, strict=True) if keep
        ]
        return len(asked) / max(1, sum(asked))

    def cells(self, n: int) -> Array:
        """Return the scalars of the cells of a grid (``Kind.cells`` of them), shape (docs, cells).

        Nan where the doc is not used for the grid.

        In a run that left views out, only docs asked whole to plan the rest count. Further docs may have all cells asked too,
        but only because none of their cells earned full marks.
        """
        return self._cells_of(
            self.views, n, np.array([record.asked is None or not record.asked.block for record in self.records], bool)
        )

    def wrong_cells(self, n: int) -> Array:
        """Return the scalars of the cells of another doc's image, as ``cells`` does; nan for docs without a wrong image."""
        return self._cells_of(self.wrong_views, n, np.ones(len(self), bool))

    def _cells_of(self, views: _Views, n: int, docs: NDArray[np.bool_]) -> Array:
        inside, size = views.in_set(n), self.kind.cells(n)
        used = np.array([str(n) not in record.excluded for record in self.records], bool)
        # only docs with every cell: the reshape below needs complete rows
        whole = docs & used & (views.per_doc(inside) == size)
        out = np.full((len(self), size), math.nan)
        out[whole] = views.scores(self.metric)[inside & whole[views.docs]].reshape(-1, size)
        return out

    @cached_property
    def points(self) -> dict[Key, Chosen]:
        """What each doc scores at each point (``Kind.points``), ascending; None where the doc is unused there.

        Empty for kinds without points.

        Where the full image is asked too, a doc is used only if its full image has a score: then each point can be compared
        with the full image, doc by doc.
        """
        out = {}
        for key in self.kind.points(sorted({n for record in self.records for n in record.grids})):
            found = self.at(self._point_places(key))
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

    @cached_property
    def turned(self) -> list[list[int]]:
        """The full views of each doc asked in every order of its options; none where a view has no score."""
        if not self.kind.turns:
            return [[] for _ in self.records]
        every = [
            [i for i, view in enumerate(record.views) if view.gold_at is not None and view.cell is None]
            for record in self.records
        ]
        known = (
            all(record.views[i].scores.get(self.metric) is not None for i in own)
            for record, own in zip(self.records, every, strict=True)
        )
        return [own if scored else [] for own, scored in zip(every, known, strict=True)]

    def _point_places(self, key: Key) -> list[int | None]:
        """Return each doc's view of a point; None where there is no such view."""
        if isinstance(key, str):
            return [next(iter(places), None) for places in self.set_places(key)]
        of_docs = (
            [view.n for view in record.views] if str(key) not in record.excluded else [] for record in self.records
        )
        return [numbers.index(key) if key in numbers else None for numbers in of_docs]

    def hidden(self, key: Key) -> Array:
        """Return what part of each doc's image is hidden with a set of boxes, shape (docs,).

        Nan where the doc is not used for it.
        """
        shares = (
            record.views[places[0]].hidden if places else None
            for record, places in zip(self.records, self.set_places(key), strict=True)
        )
        return np.array([math.nan if share is None else share for share in shares], float)

    def set_places(self, key: Key) -> list[list[int]]:
        """Return the places of each doc's views of a set, in their order; empty where the doc is not used for the set."""
        return [
            [] if str(key) in record.excluded else [i for i, view in enumerate(record.views) if in_set(view, key)]
            for record in self.records
        ]

    @property
    def pointing(self) -> NDArray[np.bool_]:
        """Whether each doc is left out because its question names a moment of the clip, shape (docs,)."""
        return np.array(
            [any(why.startswith(POINTS) for why in record.excluded.values()) for record in self.records], bool
        )

    def best(self, key: Key) -> Chosen:
        """Return the item of each doc's best view of a set; in a sampled run an estimate, as in ``full``.

        None where it is not used for the set.
        """
        if self.no_best:
            return Chosen([None] * len(self), np.full(len(self), math.nan))
        if not self.sampled:
            return self.best_seen(key)
        used = np.array([str(key) not in record.excluded for record in self.records], bool)
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
        name, views = str(key), self.views
        used = np.array([name not in record.excluded for record in self.records], bool)
        best, kept = views.best(self.metric, views.in_set(key) & used[views.docs], self.higher), views.has(self.metric)
        out: list[int | None] = [None] * len(self)
        for doc, (record, place) in enumerate(zip(self.records, best.tolist(), strict=True)):
            if used[doc]:
                found = record.best.get(name) if place < 0 else place
                out[doc] = found if found is not None and kept[views.starts[doc] + found] else None
        return self._of_whole_clusters(out)

    def _of_whole_clusters(self, places: list[int | None]) -> list[int | None]:
        """Return places of docs, without those of clusters with a missing place where the aggregation needs clusters complete."""
        if not self.whole or self.clusters is None:
            return places
        of_docs = list(zip(self.clusters.tolist(), places, strict=True))
        halved = {cluster for cluster, place in of_docs if place is None}
        return [None if cluster in halved else place for cluster, place in of_docs]

    # --- on wrong images --------------------------------------------------------------------------

    @cached_property
    def wrong_full(self) -> Chosen:
        """Each doc's item on the whole of another doc's image; nan and None for docs without a wrong image."""
        return self._of_wrong(
            [0 if there else None for there in self.wrong_views.per_doc(np.ones(len(self.wrong_views.docs), bool))]
        )

    def wrong_best(self, key: Key) -> Chosen:
        """Return each doc's best item of a set of views of another doc's image.

        Nan and None where the doc was not asked so, or is not used.
        """
        name, views = str(key), self.wrong_views
        used = np.array([name not in record.excluded for record in self.records], bool)
        inside = views.in_set(key) & used[views.docs]
        # a set with an unscored view has no best view: the unscored view might have been the best
        scored = views.per_doc(inside & np.isnan(views.scores(self.metric))) == 0
        best = np.where(scored, views.best(self.metric, inside, self.higher), -1)
        return self._of_wrong(self._of_whole_clusters([None if place < 0 else place for place in best.tolist()]))

    def _of_wrong(self, places: Sequence[int | None]) -> Chosen:
        found = self.wrong_views.chosen(self.metric, places)
        return found.where(np.isfinite(found.scores))

    def picked(self, chosen: Chosen, scores: Array | None = None) -> Picked:
        """Return what a form sums of some items."""
        said, gold = _labels(chosen.items, "prediction"), _labels(chosen.items, "ground_truth")
        return Picked(
            chosen.scores if scores is None else scores, said, gold, self.clusters, self._category_numbers, self.merged
        )

    # --- references -------------------------------------------------------------------------------

    @cached_property
    def asked(self) -> list[chance.Asked]:
        """The uninformed answers of each doc; docs with the same answers share an object."""
        of_one = {
            id(one): Uninformed(
                one.answer,
                frozenset(one.roles),
                one.scores.get(self.metric),
                one.items.get(self.metric, one.scores.get(self.metric)),
            )
            for one in self._baselines
        }
        known: dict[Any, chance.Asked] = {}
        out = []
        for record in self.records:
            # by identity: equal answers that were read from a log are a single object
            answer, ids = record.answer, tuple(map(id, record.baselines))
            about = (answer.format or "open", answer.options, answer.gold)
            if (asked := known.get((about, ids))) is None:
                asked = known[about, ids] = chance.Asked(*about, tuple(of_one[one] for one in ids))
            out.append(asked)
        return out

    @cached_property
    def _baselines(self) -> list[Baseline]:
        """The different uninformed answers of all docs."""
        return different(one for record in self.records for one in record.baselines)

    @cached_property
    def views(self) -> _Views:
        return _Views([record.views for record in self.records])

    @cached_property
    def wrong_views(self) -> _Views:
        return _Views([record.wrong_views for record in self.records])

    @cached_property
    def ceiling(self) -> Chosen | None:
        """Each doc's gold under the scorer (the best of several golds); None where some doc has none."""
        best = {
            id(doc): max(found, key=lambda one: one.score or 0.0) if (found := doc.of("gold")) else None
            for doc in different(self.asked)
        }
        golds = [best[id(doc)] for doc in self.asked]
        if not golds or None in golds:
            return None
        return Chosen([one.item for one in golds if one], np.asarray([one.score for one in golds if one], float))

    def scored(self, key: Key) -> Ints:
        """Return for each doc how many views of a set were asked and have a score."""
        return self.views.per_doc(self.views.in_set(key) & np.isfinite(self.views.scores(self.metric)))

    @cached_property
    def marks(self) -> Array:
        """What the gold of each doc scores (``record.full_marks``)."""
        return np.array([full_marks(record, self.metric) for record in self.records], float)


@dataclass(frozen=True)
class _Named:
    """Which options docs name on a set of views.

    Attributes:
        cells: shape (docs, most options), how often each is named on the set.
        full: shape (docs,), the place of that of the first view, from 0; negative: none.
        tries: shape (docs,), how many views of the set there are.
        known: shape (docs,), whether all these views were read.
    """

    cells: Ints
    full: Ints
    tries: Ints
    known: NDArray[np.bool_]


class _Views:
    """The views of docs as arrays, an entry per view.

    Docs that are read from a log share the objects of equal views: each is looked at once.

    Attributes:
        different: the different views.
        docs: the doc of each view.
        starts: where each doc's views begin.

    Args:
        of_docs: the views of each doc.
    """

    def __init__(self, of_docs: Sequence[Sequence[View]]) -> None:
        every = list(itertools.chain.from_iterable(of_docs))
        self.different = different(every)
        numbers = {id(view): number for number, view in enumerate(self.different)}
        # each view by the number of its object, so that shared objects are looked at once
        self._codes = np.fromiter((numbers[id(view)] for view in every), np.intp, len(every))
        counts = np.fromiter(map(len, of_docs), np.intp, len(of_docs))
        self.docs = np.repeat(np.arange(len(of_docs)), counts)
        self.starts = np.cumsum(counts) - counts
        self._scores: dict[str, Array] = {}

    def scores(self, metric: str) -> Array:
        """Return the score of each view; nan where there is none."""
        if metric not in self._scores:
            self._scores[metric] = np.array([_nan(view.scores.get(metric)) for view in self.different], float)[
                self._codes
            ]
        return self._scores[metric]

    def has(self, metric: str) -> NDArray[np.bool_]:
        """Mark the views with a native item of a metric, shape (views,)."""
        return np.array([metric in view.items for view in self.different], bool)[self._codes]

    def in_set(self, key: Key) -> NDArray[np.bool_]:
        """Mark the views of a set, shape (views,)."""
        return np.array([in_set(view, key) for view in self.different], bool)[self._codes]

    def per_doc(self, of_views: NDArray[np.bool_]) -> Ints:
        """Count the marked views of each doc."""
        return np.bincount(self.docs[of_views], minlength=len(self.starts))

    def best(self, metric: str, of: NDArray[np.bool_], higher: bool) -> Ints:
        """Return the place of each doc's best scored view among some; ties go to the first; -1 where none is scored."""
        out = np.full(len(self.starts), -1, np.intp)
        known = np.flatnonzero(of & np.isfinite(scores := self.scores(metric)))
        docs = self.docs[known]
        # ``lexsort`` sorts by its last key first: doc, then score, then place, so that ties go to the first view
        order = np.lexsort((known, -scores[known] if higher else scores[known], docs))
        first = order[np.flatnonzero(np.diff(docs[order], prepend=-1))]
        out[docs[first]] = known[first] - self.starts[docs[first]]
        return out

    def named(self, key: Key, most: int, with_full: bool) -> _Named:
        """Return which options docs name on a set of views and on their first view.

        Args:
            key: the set.
            most: the most options of a doc.
            with_full: whether the first view is counted among those of the set.
        """
        names = np.array([-1 if view.names is None else view.names for view in self.different], np.intp)[self._codes]
        inside, count = self.in_set(key), len(self.starts)
        cells = np.zeros((count, most + 1), np.intp)
        np.add.at(cells, (self.docs[inside], names[inside].clip(0, most)), 1)
        # a doc without views takes the appended -1 at the end
        first = np.append(names, -1)[np.where(self.per_doc(np.ones(len(names), bool)) > 0, self.starts, -1)]
        known = (first >= 0) & (self.per_doc(inside & (names < 0)) == 0)
        if with_full:
            cells[np.arange(count), first.clip(0, most)] += 1
        return _Named(cells[:, 1:], first - 1, self.per_doc(inside) + with_full, known)

    def chosen(self, metric: str, places: Sequence[int | None]) -> Chosen:
        """Return item and score of a view of each doc, by the view's place in the doc.

        None and nan where there is no place.
        """
        place = np.fromiter((-1 if one is None else one for one in places), np.intp, len(places))
        # -1: the entry for nothing, which is last
        codes = np.append(self._codes, -1)[np.where(place < 0, -1, self.starts + place)]
        items = [*(view.items.get(metric) for view in self.different), None]
        scores = np.append(np.array([_nan(view.scores.get(metric)) for view in self.different], float), math.nan)
        return Chosen([items[code] for code in codes.tolist()], scores[codes])


def _labels(items: Sequence[Any], key: str) -> NDArray[np.bool_] | None:
    """Return whether each item's label under a key is "yes"; False where there is no item.

    None where an item lacks the key.
    """
    if not all(isinstance(item, Mapping) and key in item for item in items if item is not None) or not any(
        item is not None for item in items
    ):
        return None
    return np.array([item is not None and str(item[key]).strip().lower() == "yes" for item in items])


WHOLE = Asked(metric="", block=0, steps=2)
"""Of a doc all of whose views were asked."""


def _has(record: Record, metric: str) -> bool:
    """Return whether a doc has a metric, or may have the metric: none of its calls succeeded, or none was made."""
    if not record.is_asked:
        return True
    if any(metric in view.items for view in record.views):
        return True
    return not any(view.items or view.error for view in record.views)


def _label(record: Record, cluster: str | None) -> str:
    """Return the label of a doc's cluster; a doc without a label is labelled by its number."""
    label = record.fields.get(cluster or "")
    return f"doc {record.doc_id}" if label is None else repr(label)


def drawn_with(labels: Sequence[Any]) -> list[Hashable] | None:
    """Return what each doc is drawn with; a doc without a label is alone. None where no doc has a label."""
    if all(label is None for label in labels):
        return None
    return [f"doc {i}" if label is None else repr(label) for i, label in enumerate(labels)]


def _nan(score: float | None) -> float:
    return math.nan if score is None else score


def only(records: Sequence[Record], category: str) -> list[Record]:
    """Return the records of a category.

    Raises:
        RecordError: no record has the category; the message lists the categories there are.
    """
    values = [record.fields.get("category") for record in records]
    kept = [
        record for record, value in zip(records, values, strict=True) if value is not None and str(value) == category
    ]
    if not kept:
        known = sorted({str(value) for value in values if value is not None})
        raise RecordError(
            f"no doc of category {category!r}; allowed: {', '.join(known) or 'none (the run named no category)'}"
        )
    return kept
