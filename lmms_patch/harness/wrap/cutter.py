"""Cuts the images and clips of a doc to a view, and says which docs cannot be cut."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from PIL import Image

from lmms_patch.ask.kinds import KINDS, REGIONS, Key
from lmms_patch.ask.views import TEXTS, HiddenView, Region, View, cut, is_usable
from lmms_patch.harness.video.clip import Clip
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.boxes import BoxedImages
from lmms_patch.harness.wrap.clips import ClipFiles
from lmms_patch.harness.wrap.orders import OrderTable
from lmms_patch.harness.wrap.shelf import Cutting, Shelf

IN_TIME = frozenset(kind.view for kind in KINDS.values() if kind.needs_video)
"""The kinds of views that cut a clip in time."""


class Cutter:
    """Shows docs as their base does, cut to a view; remembers the docs that were shown as a grey image.

    Args:
        shelf: the docs as the base shows them.
        cutting: the options that change pixels.
        files: the files that hold views of clips.
        boxed: the docs' boxes; None where views are made of no boxes.
        orders: the orders of docs' options; None where docs are asked in their own order alone.
    """

    def __init__(
        self,
        shelf: Shelf,
        cutting: Cutting,
        files: ClipFiles,
        boxed: BoxedImages | None,
        orders: OrderTable | None,
    ) -> None:
        self._shelf, self._cutting, self._files = shelf, cutting, files
        self._boxed, self._orders = boxed, orders
        self._stand_ins: dict[tuple[int, bool], str] = {}

    def shown(
        self, doc_id: int, view: View, donor: int | None, show: Callable[[Any], Any], walk: Callable[..., Any]
    ) -> Any:
        """Return what the base shows of a doc, with its images replaced by those of a view.

        Args:
            doc_id: the doc.
            view: the view.
            donor: the doc whose images are cut instead; None where the doc's own are.
            show: ``doc_to_visual`` or ``doc_to_messages`` of the base.
            walk: the function of ``media`` that replaces the images in what ``show`` returns.
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
        boxed = self._boxed if isinstance(view, (Region, HiddenView)) else None
        # a doc that a grid cannot use is shown whole
        usable = self.why_unusable(doc_id, view.n) is None if view.n else boxed is None or not boxed.misfit(doc_id)
        # which of the doc's images the view changes; None: all of them
        only = boxed.place(images) if boxed is not None else 0 if self._cutting.first_only and view.n > 0 else None
        in_time = view.kind in IN_TIME
        cuts = images if donor is None else self._shelf.shown(donor, show, walk)[1]
        # the wrong image changed, or vanished, after it was chosen
        if donor is not None and len(cuts) != len(images):
            self._stand_ins[doc_id, True] = (
                f"the wrong image: {self._shelf.of(donor).problem or 'it has changed since it was chosen'}"
            )
            return walk(payload, lambda *_: media.stand_in())
        # the box is of the doc's own image, and the wrong image may have another size
        if donor is not None and isinstance(view, Region) and boxed is not None:
            view = view.on(images[boxed.place(images)].size, cuts[boxed.place(cuts)].size)

        def replace(medium: Any, index: int) -> Any:
            shown = cuts[index]
            whole = (
                view.kind in ("full", "describe")
                or not usable
                or (only is not None and index != only)
                or (in_time and not isinstance(shown, Clip))
            )
            if whole and donor is None and not view.trim:
                return medium.copy() if isinstance(medium, Image.Image) else medium
            seed = f"{self._cutting.seed}/{doc_id}"
            if isinstance(shown, Clip):
                return self._files.write(
                    shown, View("full") if whole else view, (doc_id, index, donor, repr(view)), seed
                )
            whole_view = View("full", trim=view.trim) if whole else view
            return cut(shown, whole_view, min_cell=self._cutting.min_cell, seed=seed)

        return walk(payload, replace)

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
        if n in REGIONS:
            assert self._boxed is not None
            return self._boxed.why_none(doc_id, str(n))
        sizes = self._shelf.sizes(doc_id)
        if not sizes or self._shelf.of(doc_id).problem:
            return self._shelf.of(doc_id).problem or "no image"
        if isinstance(n, str):
            return None
        if self._shelf.in_time:
            short = min((frames for frames, _ in self._shelf.clips(doc_id)), default=0)
            return f"the clip has {short} frame{'s' * (short != 1)}, too few for {n}" if short < n else None
        for width, height in sizes[:1] if self._cutting.first_only else sizes:
            if not is_usable((width, height), n, self._cutting.min_side):
                return f"image of {width}x{height} pixels is too small"
        return None
