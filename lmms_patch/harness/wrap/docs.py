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

from PIL import Image

from lmms_patch.ask.kinds import KINDS, REGIONS, Key
from lmms_patch.ask.orders import MOST
from lmms_patch.ask.references import Doc
from lmms_patch.ask.spec import Options
from lmms_patch.ask.views import (
    DESCRIBE,
    MOST_TIMES,
    TEXTS,
    HiddenView,
    Region,
    View,
    again,
    cut,
    is_usable,
    swapped,
    views_of,
)
from lmms_patch.ask.wrong_images import Look
from lmms_patch.errors import OptionError, PatchError, RecordError
from lmms_patch.harness.refuse import refuse
from lmms_patch.harness.video import cache
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.forms import BoxTable, OrderTable, WrongImages
from lmms_patch.harness.wrap.known import Known
from lmms_patch.harness.wrap.shelf import Shelf, Show, Walk, fetched
from lmms_patch.harness.wrap.text_only import TextOnly

IN_TIME = frozenset(kind.view for kind in KINDS.values() if kind.needs_video)
"""The kinds of views that cut a clip in time."""


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


class Cutter:
    """Shows docs as their base does, cut to a view; remembers the docs that were shown as a grey image.

    Attributes:
        batch: how many requests the model takes at a time.

    Args:
        shelf: the docs as the base shows them.
        options: those with an effect on pixels: ``images``, ``min_side``, ``min_cell``, ``seed``.
        boxes: the docs' boxes; None where views are made of no boxes.
        orders: the orders of docs' options; None where docs are asked in their own order alone.
    """

    def __init__(self, shelf: Shelf, options: Options, boxes: BoxTable | None, orders: OrderTable | None) -> None:
        self._shelf, self._options, self._boxes, self._orders = shelf, options, boxes, orders
        self._stand_ins: dict[tuple[int, bool], str] = {}
        self._no_room: PatchError | None = None
        self.batch = 1

    def shown(self, doc_id: int, view: View, donor: int | None, show: Show, walk: Walk) -> Any:
        """Return what the base shows of a doc, with its images replaced by those of a view.

        Args:
            doc_id: the doc.
            view: the view.
            donor: the doc whose images are cut instead; None where the doc's own are.
            show: how the base shows a doc.
            walk: replaces the images in what ``show`` returns.
        """
        if view.kind in TEXTS:
            payload, why = self._shelf.blind(doc_id, show)
            self._stand_ins |= {(doc_id, False): why} if why else {}
            return media.with_text(payload, view)
        (payload, images), facts = self._shelf.shown(doc_id, show, walk), self._shelf.of(doc_id)
        # messages hold the prompt with the options in their order; visuals do not
        if self._orders is not None and view.turn and show != self._shelf.base.doc_to_visual and not facts.unreadable:
            payload = show(dict(self._orders.as_shown(self._shelf.row(doc_id), doc_id, view.turn)))
        if facts.unreadable:
            self._stand_ins[doc_id, view.swapped] = facts.problem
            return walk(payload, lambda medium, _: medium.copy())
        # show it as the base would: the doc is left out of the index, and the run goes on
        if facts.problem:
            return copy.copy(payload)
        cuts = images if donor is None else self._shelf.shown(donor, show, walk)[1]
        # the wrong image changed, or vanished, after it was chosen
        if donor is not None and len(cuts) != len(images):
            why = self._shelf.of(donor).problem or "it has changed since it was chosen"
            self._stand_ins[doc_id, True] = f"the wrong image: {why}"
            return walk(payload, lambda *_: media.stand_in())
        # which of the doc's images the view changes; None: all of them
        only = 0 if self._options.images == "first" and view.n > 0 else None
        # a doc that a grid cannot use is shown whole
        usable = not view.n or self.why_unusable(doc_id, view.n) is None
        if self._boxes is not None and isinstance(view, (Region, HiddenView)):
            only, usable = self._boxes.place(images), not self._boxes.misfit(doc_id)
        usable = usable and view.kind not in ("full", "describe")

        def replace(medium: Any, index: int) -> Any:
            shown = cuts[index]
            still = isinstance(shown, Image.Image) and view.kind in IN_TIME
            whole = not usable or only not in (None, index) or still
            if whole and donor is None and not view.trim:
                return medium.copy() if isinstance(medium, Image.Image) else medium
            seed, part = f"{self._options.seed}/{doc_id}", View("full", trim=view.trim) if whole else view
            if isinstance(shown, Image.Image):
                return cut(shown, part, min_cell=self._options.min_cell, seed=seed)
            key, min_cell = (doc_id, index, donor, repr(view), view.trim), self._options.min_cell
            try:
                return cache.written(self, key, shown, part, min_cell=min_cell, seed=seed, batch=self.batch)
            except (OptionError, RecordError) as error:
                # an adapter may take the exception for a failed call: ``forget`` then ends the run
                self._no_room = error
                refuse(error)

        return walk(payload, replace)

    def forget(self) -> None:
        """Remove the files written for views of clips. Where a file could not be written, end the run."""
        cache.forget(self)
        if self._no_room is not None:
            refuse(self._no_room)

    def not_shown(self, doc_id: int, view: View) -> str:
        """Say why the model saw a grey image in place of a doc's images; "" where the model saw the images.

        Where a doc's image breaks between two of its views, none of its views counts as shown.
        """
        return self._stand_ins.get((doc_id, view.swapped), "")

    def has_stand_in(self, doc_id: int) -> bool:
        """Return whether the model saw a grey image instead of a doc's images in any view."""
        return any((doc_id, swapped) in self._stand_ins for swapped in (False, True))

    def why_unusable(self, doc_id: int, n: Key) -> str | None:
        """Say why a doc is unusable for an n×n grid, a set of boxes, or the view beside its image; None where usable."""
        if self._boxes is not None and n in REGIONS:
            return self._boxes.why_none(doc_id, str(n))
        facts = self._shelf.known(doc_id)
        if facts.no_image or isinstance(n, str):
            return facts.no_image or None
        if self._shelf.in_time:
            short = min((frames for frames, _ in facts.clips), default=0)
            return f"the clip has {short} frame{'s' * (short != 1)}, too few for {n}" if short < n else None
        sizes = (facts.sizes or ())[:1] if self._options.images == "first" else facts.sizes or ()
        small = next((size for size in sizes if not is_usable(size, n, self._options.min_side)), None)
        return None if small is None else f"image of {small[0]}x{small[1]} pixels is too small"


class VariantDocs:
    """The table of all views of all docs of a task. Index ``doc · V + view``, length ``docs · V``.

    Where docs have boxes of their own, most have fewer than V views, and the indices between mean nothing.

    Safe for threads. ``shelf`` has rows and images.
    """

    def __init__(
        self,
        known: Known,
        read: Callable[[], Sequence[Doc]],
        *,
        orders: OrderTable | None = None,
        asks_again: Callable[[int], int] | None = None,
        text_only: TextOnly | None = None,
    ) -> None:
        """Make the table; nothing is read yet.

        Args:
            known: the task.
            read: gives all docs of the split, as ``ask.references.plan`` takes them.
            orders: the orders of docs' options; None where docs are asked in their own order alone.
            asks_again: returns how often a doc's views are asked; None: once.
            text_only: the docs as a text-only diagnostic sees them; None where images are shown.
        """
        self.captions: dict[int, str] = {}
        """By doc id, the description that stands in place of the doc's images."""
        self._known, self.rows, self.base, self.views = known, known.rows, known.base, views_of(known.spec)
        self._kind, self.orders, self.text_only = known.spec.kind, orders, text_only
        self._asks_again, self._again = asks_again, dict[int, tuple[View, ...]]()
        # a ``_swap`` task shows wrong images alone; further kinds show some for the null
        swaps = self._kind.swapped or (self._kind.has_index and known.spec.options.null)
        self.wrong = WrongImages(known, read, self.look) if swaps else None
        self.shelf = Shelf(known)
        self.row, self.sizes = self.shelf.row, self.shelf.sizes
        self.boxes = BoxTable(known, self.shelf) if self._kind.own_boxes else None
        self.cutter = Cutter(self.shelf, known.spec.options, self.boxes, orders)
        self._own: dict[int, tuple[View, ...]] = {}

    def views_of(self, doc_id: int) -> tuple[View, ...]:
        """Return the views of a doc in request order: on its image, then, if asked, on a wrong image, then those asked again.

        Only the composition compares parts of a wrong image: a doc that is asked once sees the whole of it alone.
        """
        own = self.own_views_of(doc_id)
        if self.wrong_image_of(doc_id) is not None and not self._kind.swapped:
            own = (*own, *swapped(own if self.again(doc_id) else own[:1]))
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
                if not wrong or len(self.wrong.donors(doc_id, times)) == times:
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
        if self._kind.turns and self.orders is not None:
            return self.orders.views_of(doc_id, self.views)
        if doc_id in self.captions:
            said = self.captions[doc_id]
            return tuple(dataclasses.replace(one, adds=said) if one.kind == "caption" else one for one in self.views)
        if self.boxes is None:
            return self.views
        # decided once: a file that vanishes later must not change what is asked
        if doc_id not in self._own:
            self._own[doc_id] = (*self.views, *self.boxes.views(doc_id))
        return self._own[doc_id]

    def wrong_image_of(self, doc_id: int) -> int | None:
        """Return the doc whose images replace a doc's images in its swapped views.

        None where the doc has no such views.
        """
        if self.wrong is None or not (self._kind.swapped or doc_id in self.wrong.sampled):
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
        own = len(self.views) * (MOST if self._kind.turns else 1) + (0 if self.boxes is None else self.boxes.most)
        if self._asks_again is not None:
            return MOST_TIMES * (2 * own + 2)
        return own if self.wrong is None or self._kind.swapped else own + 1

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
        if view.kind in TEXTS and not self._known.own_messages:
            text = media.blind_prompt(self.base.doc_to_text(dict(self.row(doc.doc_id))), view)
            return [{"role": "user", "content": [{"type": "text", "text": text}]}]
        found: list[dict[str, Any]] = self._cut(doc, view, self.base.doc_to_messages, media.replace_in_messages)
        return media.to_describe(found, self._known.spec.options.caption_prompt) if view == DESCRIBE else found

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
        if facts.no_image or not facts.sizes:
            return None
        usable = all(self.cutter.why_unusable(doc_id, n) is None for n in {view.n for view in self.views if view.n})
        return Look(facts.sizes, self.shelf.prints(doc_id), usable, len(facts.clips))
