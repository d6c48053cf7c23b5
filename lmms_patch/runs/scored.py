"""A doc with its views as the base task scored them: what the harness makes of it, in memory and between ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from msgspec import Struct, structs

from lmms_patch.ask import answers
from lmms_patch.ask.kinds import Key
from lmms_patch.ask.views import Size, View
from lmms_patch.runs.scoring import Scalar, best, plain, worst_orders


# without garbage collection: a run has too many for each collection to walk through
class ScoredView(Struct, frozen=True, gc=False):
    """A view of a doc, scored by the base task.

    Attributes:
        view: which view.
        items: native item of each metric, as the base's ``process_results`` returned it.
        scores: scalar of each metric (fraction, or whatever the metric's own scale is), None: unscored.
        error: why there is no score (the scorer's exception, in one line); None where it scored.
        from_m: the metric whose scalar is the aggregation of its one item, if any.
        failed: what came in place of an answer, in one short line: the view is unscored. Its items are for the native
        metric.
        unfinished: whether the answer was cut by the token limit.
        names: the place of the answer among the doc's options, from 1; 0: it is none; None: not known
        (``References.named``).
        misread: whether the answer has full marks, though read by itself it would not name the gold.
        answer: what was answered, after the filter.
        losses: of each option, of a task that compares log-likelihoods.
        tokens: of the request and of the answer, where the adapter counts them.
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
    answer: str | None = None
    losses: list[float] | None = None
    tokens: tuple[int | None, int | None] = (None, None)

    @property
    def unscored(self) -> bool:
        """Whether the view has no score because its call or its scorer failed."""
        return bool(self.failed) or self.error is not None

    def plain(self) -> ScoredView:
        """Return the view with items in plain JSON types: a native item may hold a whole doc, and may be changed later.

        A failed call keeps no items.
        """
        return structs.replace(self, items={} if self.failed else plain(self.items))


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

    @classmethod
    def of(cls, answer: str, roles: Sequence[str], scored: ScoredView) -> Baseline:
        """Return an answer as it was scored; items that are more than their scalar are kept, in plain JSON types."""
        items = {name: own for name, item in scored.items.items() if (own := plain(item)) != scored.scores.get(name)}
        return cls(answer, tuple(roles), items, scored.scores)


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


class Asked(Struct, kw_only=True, omit_defaults=True, gc=False):
    """How a doc was asked, in a run that left views out (docs/quick.md).

    A doc of which nothing was asked has one view, the full image without scores.

    Attributes:
        metric: the metric by whose scores it was decided what to ask
        block: 0: asked whole, so that the rest could be planned; later docs in the order of their blocks
        steps: 0: nothing was asked; 1: the full image; 2: the cells too, of each grid until one earned full marks
        p: the probability of each of the two steps
        unasked: views that were not asked
        full: what the full image was expected to score; this and the next two are absent where both steps were certain
        before: by grid, what the best cell was expected to score before the full image was asked
        after: the same after it
    """

    metric: str
    block: int
    steps: int
    p: list[float] = msgspec.field(default_factory=lambda: [1.0, 1.0])
    unasked: int = 0
    full: float | None = None
    before: dict[str, float] = {}
    after: dict[str, float] = {}


@dataclass(frozen=True)
class SampleRecord:
    """All views of a doc, and everything else that its rows say (``runs.frames``).

    Attributes:
        doc_id: the doc's row in the base task's eval split.
        sizes: width and height in pixels of each image of the doc, or of the frames of each clip.
        views: the scored views, in request order.
        best: for each set of views (a grid, or the relevant or adversarial boxes), the index into ``views`` of the best
            one for the primary metric; only sets for which the doc is used.
        excluded: for each set for which the doc is not used, the reason.
        fields: values of the doc fields that the options name (cluster, group, category, stratum, choices), in plain
            types.
        answer: how the doc is to be answered: format, label (answer class), number of options, gold and its place;
            empty where it is not known.
        stratum: the name of the doc's stratum.
        baselines: uninformed answers and the gold, scored.
        exchanged: this doc's answers on its own and on a wrong image under the golds of docs that are asked alike.
        tst: what the text-only cross-validation says of the doc (column ``tst``); empty for other kinds.
        wrong_image: the doc's question on another doc's image; None where it was not asked so.
        images: digest of the images that the doc shows; empty where it shows none.
        asked: how the doc was asked, in a run that left views out.
        clips: frames and seconds of each clip that the doc shows; none where it shows images.
        asks: its prompt, target and options.
    """

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
    asked: Asked | None = None
    clips: tuple[tuple[int, float | None], ...] = ()
    asks: answers.Asked | None = None

    @property
    def every_view(self) -> tuple[ScoredView, ...]:
        """The views of the doc's image, then those on another doc's image."""
        return self.views if self.wrong_image is None else self.views + self.wrong_image.views

    @property
    def is_asked(self) -> bool:
        """Whether any of the doc's views was asked."""
        return self.asked is None or self.asked.steps > 0

    @property
    def estimated(self) -> bool:
        """Whether some of its scores stand for docs that were left out."""
        return self.asked is not None and min(self.asked.p) < 1

    @property
    def unanswered(self) -> bool:
        """Whether the call for the first view failed: then nothing of ours can be said of the doc."""
        return bool(self.views[0].failed)

    def plain(self) -> SampleRecord:
        """Return the doc with the native items of its views in plain JSON types."""
        wrong = self.wrong_image
        if wrong is not None:
            wrong = replace(wrong, views=tuple(one.plain() for one in wrong.views))
        return replace(self, views=tuple(one.plain() for one in self.views), wrong_image=wrong)

    def unscored(self, metric: str) -> bool:
        """Return whether the first view was answered, but got no value of the metric from the scorer."""
        first = self.views[0]
        return self.is_asked and not first.unscored and answers.is_missing(first.items.get(metric))


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
