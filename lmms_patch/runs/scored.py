"""The views of a doc as the base task scored them, and the record that is made of them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from msgspec import Struct

from lmms_patch.ask.kinds import Key
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.views import HiddenView, Region, Size, View
from lmms_patch.runs import record
from lmms_patch.runs.record import SCHEMA
from lmms_patch.runs.scoring import Scalar, best, plain, worst_orders
from lmms_patch.runs.typed import convert


class ScoredView(Struct, frozen=True):
    """A view of a doc, scored by the base task.

    Attributes:
        view: which view.
        items: native item of each metric, as the base's ``process_results`` returned it.
        scores: scalar of each metric (fraction, or whatever the metric's own scale is), None: unscored.
        error: why there is no score (the scorer's exception, in one line); None where it scored.
        from_m: the metric whose scalar is the aggregation of its one item, if any; not logged.
        failed: what came in place of an answer, in one short line: the view is unscored. Its items are for the native
        metric; not logged.
        unfinished: whether the answer was cut by the token limit.
        names: the place of the answer among the doc's options, from 1; 0: it is none; None: not known
        (``References.named``).
        misread: whether the answer has full marks, though read by itself it would not name the gold.
    """

    view: View
    items: Mapping[str, Any] = {}
    scores: Mapping[str, Scalar] = {}
    error: str | None = None
    from_m: str | None = None
    failed: str = ""
    unfinished: bool = False
    names: int | None = None
    misread: bool = False

    @property
    def unscored(self) -> bool:
        """Whether the view has no score because its call or its scorer failed."""
        return bool(self.failed) or self.error is not None


@dataclass(frozen=True)
class Baseline:
    """An uninformed answer of a doc, or its gold, scored by the base task.

    Attributes:
        answer: what was answered.
        roles: ``gold``, ``option``, ``constant``, ``stratum``, ``other`` (``ask.references.Plan``).
        items, scores: as in ``ScoredView``.
    """

    answer: str
    roles: tuple[str, ...]
    items: Mapping[str, Any]
    scores: Mapping[str, Scalar]

    def record(self) -> record.Baseline:
        """Return the answer as a record holds it; items that equal their scalar are left out."""
        # an item that is its own scalar would be logged twice
        items = {m: item for m, item in self.items.items() if plain(item) != self.scores.get(m)}
        return record.Baseline(self.answer, cast(Any, list(self.roles)), plain(self.scores), plain(items))


@dataclass(frozen=True)
class Exchanged:
    """This doc's answers under the gold of a doc asked alike, for the primary metric.

    Attributes:
        to: the other doc.
        full: scalar of the full image's answer.
        best: for each set that this doc is used for, scalar of the best cell's or box's answer.
        wrong_full: scalar of the whole wrong image's answer.
        wrong_best: as ``best``, of the wrong image.
    """

    to: int
    full: Scalar
    best: Mapping[Key, Scalar]
    wrong_full: Scalar
    wrong_best: Mapping[Key, Scalar]


@dataclass(frozen=True)
class WrongImage:
    """A doc's question, asked on another doc's image.

    Attributes:
        source: the doc whose images were shown.
        sizes: width and height in pixels of each.
        views: the scored views; none where they are the doc's only views (a ``_swap`` task).
        said: of each view, what was answered, short: equal for equal answers.
    """

    source: int
    sizes: tuple[Size, ...]
    views: tuple[ScoredView, ...] = ()
    said: tuple[str, ...] = ()

    def record(self, first_only: bool) -> record.WrongImage:
        """Return the wrong image as a record holds it.

        Args:
            first_only: only the first image of a doc was cut.
        """
        # boxes are written for the images that were cut
        sizes = self.sizes[:1] if first_only else self.sizes
        views = [_view(view, sizes, said) for view, said in zip(self.views, self.said, strict=True)]
        return record.WrongImage(int(self.source), [list(size) for size in self.sizes], views)


@dataclass(frozen=True)
class SampleRecord:
    """All views of a doc, and everything else that its record says.

    Attributes:
        task: the wrapped task's name.
        spec: what was asked.
        doc_id: the doc's row in the base task's eval split.
        sizes: width and height in pixels of each image of the doc, or of the frames of each clip.
        views: the scored views, in request order.
        best: for each set of views (a grid, or the relevant or adversarial boxes), the index into ``views`` of the best
            one for the primary metric; only sets for which the doc is used.
        excluded: for each set for which the doc is not used, the reason.
        fields: values of the doc fields that the options name (cluster, group, category, stratum, choices).
        answer: how the doc is to be answered: format, label (answer class), number of options, gold; empty where it is
        not known.
        stratum: the name of the doc's stratum.
        baselines: uninformed answers and the gold, scored.
        exchanged: this doc's answers on its own and on a wrong image under the golds of docs that are asked alike.
        tst: what the text-only cross-validation says of the doc (docs/records.md); empty for other kinds.
        wrong_image: the doc's question on another doc's image; None where it was not asked so.
        images: digest of the images that the doc shows; empty where it shows none.
        asked: how the doc was asked, in a run that left views out.
        clips: the clips that the doc shows; none where it shows images.
    """

    task: str
    spec: WrapSpec
    doc_id: int
    sizes: tuple[Size, ...]
    views: tuple[ScoredView, ...]
    best: Mapping[Key, int]
    excluded: Mapping[Key, str]
    fields: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    stratum: str = ""
    baselines: tuple[Baseline, ...] = ()
    exchanged: Sequence[Exchanged] = ()
    tst: Mapping[str, Any] = field(default_factory=dict)
    wrong_image: WrongImage | None = None
    images: str = ""
    asked: record.Asked | None = None
    clips: tuple[record.Clip, ...] = ()

    def record(self) -> record.Record:
        """Return the doc's record, as written to the sample log."""
        first_only = self.spec.options.images == "first"
        return record.Record(
            schema=SCHEMA,
            task=self.task,
            base=self.spec.base,
            kind=cast(Any, self.spec.kind.name),
            grids=list(self.spec.grids),
            doc_id=int(self.doc_id),
            image_sizes=[list(size) for size in self.sizes],
            clips=list(self.clips),
            images=self.images or None,
            views=[_view(view, self.sizes[:1] if first_only else self.sizes) for view in self.views],
            best={str(n): index for n, index in self.best.items()},
            excluded={str(n): reason for n, reason in self.excluded.items()},
            fields=plain(self.fields),
            answer=record.Answer(**plain(self.answer)) if self.answer else record.NO_ANSWER,
            stratum=self.stratum if self.answer else "",
            baselines=[one.record() for one in self.baselines],
            exchanged=_columns(self.exchanged) if self.exchanged else None,
            tst=convert(plain(self.tst), record.Tested) if self.tst else None,
            wrong_image=self.wrong_image.record(first_only) if self.wrong_image else None,
            asked=self.asked,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the ``patch`` object, in plain JSON types (docs/records.md)."""
        found: dict[str, Any] = msgspec.to_builtins(self.record())
        return found


def _columns(scores: Sequence[Exchanged]) -> record.Exchanged:
    """Turn scores under other golds into columns, an entry per doc; scores of sets get a column per set."""
    columns: dict[str, Any] = {
        name: [getattr(one, name) for one in scores] for name in record.Exchanged.__struct_fields__
    }
    by_set = {
        name: {str(key): [one[key] for one in columns[name]] for key in columns[name][0]}
        for name in ("best", "wrong_best")
    }
    return record.Exchanged(**columns | by_set)


def _view(scored: ScoredView, sizes: Sequence[Size], said: str | None = None) -> record.View:
    """Return a scored view as a record holds it; a failed call has no items."""
    return record.View(
        **_where(scored.view, tuple(sizes)),
        scores=plain(scored.scores),
        # items of a failed call are for the native metric alone
        items={} if scored.failed else plain(scored.items),
        error=scored.error,
        failed=scored.failed or None,
        unfinished=scored.unfinished,
        said=said,
        names=scored.names,
        misread=scored.misread,
    )


@functools.lru_cache(maxsize=4096)
def _where(view: View, sizes: tuple[Size, ...]) -> dict[str, Any]:
    """Return what a record says of a view apart from its scores; many docs share the result."""
    out: dict[str, Any] = {
        "kind": view.kind,
        "swapped": view.swapped,
        # a record leaves out what a view has as 0
        "n": view.n or None,
        "turn": view.turn or None,
        "gold_at": view.gold or None,
    }
    if view.cell is not None or view.kind == "window":
        boxes = [list(box) for size in sizes if (box := view.box(size)) is not None]
        out |= {
            "cell": view.cell,
            "row": view.row,
            "col": view.col,
            # a segment is cut in time, and has no box
            **({"boxes": boxes} if view.kind != "segment" else {}),
        }
    if view.kind == "caption":
        out["caption"] = view.adds
    if isinstance(view, Region):
        out |= {"region": view.number, "relevant": view.relevant, "boxes": [list(view.area)]}
    if isinstance(view, HiddenView):
        out |= {"relevant": view.relevant, "hidden": view.share, "boxes": [list(area) for area in view.areas]}
    return out


def cells_of(views: Sequence[View], key: Key) -> list[int]:
    """Return the indices of a set's views, in their order: the cells of a grid, or the relevant or adversarial boxes."""
    return [i for i, view in enumerate(views) if view.set == key]


def best_cell(
    views: Sequence[ScoredView], key: Key, metric: str, higher_is_better: bool = True, *, every_order: bool = False
) -> int | None:
    """Return the index into ``views`` of the best view of a set for a metric; ties go to the first.

    Args:
        views: all views of a doc.
        key: the set.
        metric: the metric.
        higher_is_better: whether the highest is the best.
        every_order: whether each view was asked in every order of the options, and counts as its worst order.

    Returns:
        None where none is scored.
    """
    cells = cells_of([v.view for v in views], key)
    # a cell counts by its worst order, so only the view of that order competes
    if every_order:
        cells = [cells[i] for i in decisive([views[i] for i in cells], metric, higher_is_better)]
    place = best([views[i].scores.get(metric) for i in cells], higher_is_better)
    return None if place is None else cells[place]


def decisive(views: Sequence[ScoredView], metric: str, higher_is_better: bool = True) -> list[int]:
    """Return the places of the orders by which a doc's views count (``scoring.worst_orders``)."""
    return worst_orders(views, lambda one: one.view.place, lambda one: one.scores.get(metric), higher_is_better)
