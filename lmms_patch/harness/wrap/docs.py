"""Docs times views, behind the harness's own indexing: an id fetches a doc that knows its view.

Most adapters of lmms-eval take the first request's function, task and split for a whole batch; only the doc id belongs
to each request. So our id (``ViewId``) says which doc *and* which view, and knows its own table. The doc that it
fetches (``TaggedDoc``) carries the view to whichever ``doc_to_visual`` the adapter calls.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lmms_patch.ask.orders import MOST
from lmms_patch.ask.spec import Options
from lmms_patch.ask.views import DESCRIBE, MOST_TIMES, TEXTS, View, again, swapped
from lmms_patch.ask.wrong_images import Look
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.boxes import BoxTable
from lmms_patch.harness.wrap.clips import ClipFiles
from lmms_patch.harness.wrap.cutter import IN_TIME, Cutter
from lmms_patch.harness.wrap.orders import OrderTable
from lmms_patch.harness.wrap.shelf import Shelf, Show, Walk, fetched
from lmms_patch.harness.wrap.swap import WrongImages
from lmms_patch.harness.wrap.text_only import TextOnly


class ViewId(int):
    """An int, ``doc · V + view``, that knows its table in this process.

    V is the largest number of views of a doc.

    A pickle or a deep copy is a plain int, or the whole dataset would come along. The table of the same task reads the
    plain int rightly.
    """

    table: VariantDocs

    def __new__(cls, value: int, table: VariantDocs) -> ViewId:
        self = super().__new__(cls, value)
        self.table = table
        return self

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)

    def __copy__(self) -> ViewId:
        return self

    def __deepcopy__(self, _: Any) -> int:
        return int(self)


class TaggedDoc(dict):  # type: ignore[type-arg]
    """A row of the base task with its number. Scorers see a plain row.

    Attributes:
        doc_id: the row's number in the base task's eval split.
        view: the index of the view; None where the doc was not fetched for a request.
        table: the table that the doc came from; None as above.
    """

    doc_id: int
    view: int | None = None
    table: VariantDocs | None = None

    def __init__(self, row: Any, doc_id: int, view: int | None = None, table: VariantDocs | None = None) -> None:
        super().__init__(row)
        self.doc_id, self.view, self.table = doc_id, view, table

    def __reduce__(self) -> tuple[type[dict[Any, Any]], tuple[dict[Any, Any]]]:
        return dict, (dict(self),)

    def copy(self) -> TaggedDoc:
        return TaggedDoc(self, self.doc_id, self.view, self.table)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> TaggedDoc:
        return TaggedDoc(copy.deepcopy(dict(self), memo), self.doc_id, self.view, self.table)


class TaggedDocs(Sequence[Any]):
    """The docs of the base task, each with its number; as long and as lazy as the base's list.

    Args:
        rows: the docs.
        plain: gives the docs without media. A doc whose media cannot be decoded comes from there.
    """

    def __init__(self, rows: Any, plain: Callable[[], Any] | None = None) -> None:
        self._rows, self._plain = rows, plain

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        # a slice or a column is not a row: there is no number to add
        if isinstance(index, (slice, str)):
            return self._rows[index]
        place = int(index)
        return TaggedDoc(fetched(self._rows, place, self._plain)[0], place if place >= 0 else place + len(self))

    def __iter__(self) -> Iterator[TaggedDoc]:
        return map(self.__getitem__, range(len(self)))

    def __getattr__(self, name: str) -> Any:
        # while a copy is being made ``_rows`` is still missing, and looking for it here would never end
        if name.startswith("__") or name in ("_rows", "_plain"):
            raise AttributeError(name)
        return getattr(self._rows, name)


class VariantDocs:
    """The table of all views of all docs of a task. Index ``doc · V + view``, length ``docs · V``.

    Where docs have boxes of their own, most have fewer than V views, and the indices between mean nothing.

    Safe for threads. ``shelf`` has rows and images.
    """

    def __init__(
        self,
        rows: Any,
        base: Any,
        views: Sequence[View],
        options: Options,
        *,
        prompt: Callable[[Any], str] | None = None,
        boxes: BoxTable | None = None,
        plain: Callable[[], Any] | None = None,
        wrong: Callable[[Callable[[int], Look | None]], WrongImages] | None = None,
        orders: OrderTable | None = None,
        every_order: bool = False,
        asks_again: Callable[[int], int] | None = None,
        text_only: TextOnly | None = None,
    ) -> None:
        """Make the table; nothing is read yet.

        Args:
            rows: the base task's eval split, media included; indexed by doc id.
            base: the base task.
            views: the views that each doc has, in request order.
            options: those that change pixels, and what a model is asked for a description.
            prompt: gives the text that the base puts after its visuals; None where messages may hold more.
            boxes: the docs' own boxes, which make further views.
            plain: gives the docs without media.
            wrong: makes what says whose images replace a doc's own, of how to look at a doc's images; None where no doc
                is asked on a wrong image.
            orders: the orders of docs' options; None where docs are asked in their own order alone.
            every_order: whether each doc is asked in all of them.
            asks_again: returns how often a doc's views are asked; None: once.
            text_only: the docs as a text-only diagnostic sees them; None where images are shown.
        """
        self.captions: dict[int, str] = {}
        """By doc id, the description that stands in place of the doc's images."""
        self.rows, self.base, self.views, self._options = rows, base, tuple(views), options
        self._prompt, self._boxes, self.orders, self.text_only = prompt, boxes, orders, text_only
        self.wrong = None if wrong is None else wrong(self.look)
        self._every_order, self._asks_again, self._again = every_order, asks_again, dict[int, tuple[View, ...]]()
        in_time = any(view.kind in IN_TIME for view in self.views)
        self.shelf = Shelf(rows, base, plain, in_time=in_time, boxed=boxes is not None)
        self.row, self.sizes, self.clips = self.shelf.row, self.shelf.sizes, self.shelf.clips
        self._all_swapped = all(view.swapped for view in self.views)
        self.files = ClipFiles(options.min_cell)
        self.cutter = Cutter(self.shelf, options, self.files, boxes, orders)
        self._own: dict[int, tuple[View, ...]] = {}

    def views_of(self, doc_id: int) -> tuple[View, ...]:
        """Return the views of a doc in request order: on its image, then, if asked, the same on a wrong image, then those asked again."""
        own = self.own_views_of(doc_id)
        if self.wrong_image_of(doc_id) is not None and not self._all_swapped:
            own = (*own, *swapped(own))
        return own if self._asks_again is None else (*own, *self.again(doc_id))

    def again(self, doc_id: int) -> tuple[View, ...]:
        """Return the views by which a doc is asked again; none where it is not, or where too few other docs' images fit."""
        if doc_id not in self._again:
            self._again[doc_id] = ()
            if (
                self.orders is not None
                and self.wrong is not None
                and self._asks_again is not None
                and (times := self._asks_again(doc_id))
            ):
                golds = [one.gold for one in self.orders.of(doc_id).orders[:times]] or [0]
                wrong = self.wrong_image_of(doc_id) is not None
                # clips are not trimmed: only options that can be moved make another request of theirs
                if not (self.clips(doc_id) and len(golds) < times) and (
                    not wrong or len(self.wrong.donors(doc_id, times)) == times
                ):
                    self._again[doc_id] = again(self.views, times, golds, wrong=wrong)
        return self._again[doc_id]

    def donor_of(self, doc_id: int, view: View) -> int | None:
        """Return the doc whose images a view shows in place of the doc's own; None where it shows the doc's own."""
        first = self.wrong_image_of(doc_id) if view.swapped else None
        if first is None or not view.donor:
            return first
        assert self.wrong is not None
        times = 1 + max(one.donor for one in self.again(doc_id))
        return self.wrong.donors(doc_id, times)[view.donor]

    def own_views_of(self, doc_id: int) -> tuple[View, ...]:
        """Return the views of a doc, without those on a wrong image.

        A doc with a box that cannot be cut has only its full view: its boxes would not count, so we do not ask them. To
        know that, its image is decoded.
        """
        if self._every_order and self.orders is not None:
            return self.orders.views_of(doc_id, self.views)
        if doc_id in self.captions:
            said = self.captions[doc_id]
            return tuple(dataclasses.replace(one, adds=said) if one.kind == "caption" else one for one in self.views)
        if self._boxes is None:
            return self.views
        # decided once: a file that vanishes later must not change what is asked
        if doc_id not in self._own:
            self._own[doc_id] = (*self.views, *self._boxes.views(doc_id, self.shelf))
        return self._own[doc_id]

    def wrong_image_of(self, doc_id: int) -> int | None:
        """Return the doc whose images replace a doc's images in its swapped views.

        None where the doc has no such views.
        """
        if self.wrong is None or not (self._all_swapped or doc_id in self.wrong.sampled):
            return None
        return self.wrong.donor(doc_id)

    def shortest_side(self, doc_id: int, number: int) -> int | None:
        """Return the shortest side (pixels) of what a view cuts out of a doc's images; None where it cuts nothing out."""
        view = self.views_of(doc_id)[number]
        shown = self.donor_of(doc_id, view) if view.swapped else doc_id
        if view.kind not in ("cell", "window", "region") or shown is None:
            return None
        boxes = [box for size in self.sizes(shown) if (box := view.box(size)) is not None]
        return min((min(right - left, lower - upper) for left, upper, right, lower in boxes), default=None)

    @property
    def most(self) -> int:
        """V, the largest number of views of a doc."""
        own = len(self.views) * (MOST if self._every_order else 1) + (0 if self._boxes is None else self._boxes.most)
        if self._asks_again is not None:
            return MOST_TIMES * (2 * own + 2)
        return own if self.wrong is None or self._all_swapped else 2 * own

    def id(self, doc_id: int, view: int) -> ViewId:
        """Return the id of a view of a doc."""
        return ViewId(doc_id * self.most + view, self)

    def __len__(self) -> int:
        return len(self.rows) * self.most

    def __getitem__(self, key: int) -> TaggedDoc:
        """Return the doc of an id from the table of the id, whichever task's table an adapter asks."""
        # an id that was pickled is a plain int; the table that was asked reads it
        table = getattr(key, "table", self)
        # ``range`` takes negative numbers as lists do, and its IndexError at the end ends a plain loop over the docs
        doc_id, view = divmod(range(len(table))[int(key)], table.most)
        if view >= len(table.views_of(doc_id)):
            raise IndexError(f"doc {doc_id} has {len(table.views_of(doc_id))} views; there is no view {view}")
        return TaggedDoc(table.as_shown(table.row(doc_id), doc_id, view), doc_id, view, table)

    def __iter__(self) -> Iterator[TaggedDoc]:
        for doc_id in range(len(self.rows)):
            for view in range(len(self.views_of(doc_id))):
                yield self[self.id(doc_id, view)]

    def __deepcopy__(self, _: Any) -> VariantDocs:
        # a copy would copy the whole dataset
        return self

    def visuals(self, doc: TaggedDoc) -> list[Any]:
        """Return what a simple adapter shows for this doc and view. For a blind view the base is not asked at all."""
        view = self._view_of(doc)
        return [] if view.kind in TEXTS else self._cut(doc, view, self.base.doc_to_visual, media.replace_in_visuals)

    def messages(self, doc: TaggedDoc) -> list[dict[str, Any]]:
        """Return what a chat adapter sends for this doc and view.

        Where the base only puts visuals before its prompt, a blind view is the prompt: no video need be there.
        """
        view = self._view_of(doc)
        if view.kind in TEXTS and self._prompt is not None:
            text = media.blind_prompt(self._prompt(dict(self.row(doc.doc_id))), view)
            return [{"role": "user", "content": [{"type": "text", "text": text}]}]
        found: list[dict[str, Any]] = self._cut(doc, view, self.base.doc_to_messages, media.replace_in_messages)
        return media.to_describe(found, self._options.caption_prompt) if view == DESCRIBE else found

    def _view_of(self, doc: TaggedDoc) -> View:
        assert doc.view is not None
        return self.views_of(doc.doc_id)[doc.view]

    def _cut(self, doc: TaggedDoc, view: View, show: Show, walk: Walk) -> Any:
        return self.cutter.shown(doc.doc_id, view, self.donor_of(doc.doc_id, view), show, walk)

    def as_shown(self, row: Any, doc_id: int, number: int) -> Any:
        """Return a row as shown by a view of the doc: with its options in the view's order."""
        return row if self.orders is None else self.orders.as_shown(row, doc_id, self.views_of(doc_id)[number].turn)

    def look(self, doc_id: int) -> Look | None:
        """Return what is known of a doc's images, after decoding them; None where they cannot be loaded."""
        facts = self.shelf.known(doc_id)
        if not facts.sizes or facts.problem:
            return None
        usable = all(self.cutter.why_unusable(doc_id, n) is None for n in {view.n for view in self.views if view.n})
        return Look(facts.sizes, self.shelf.prints(doc_id), usable, len(facts.clips))
