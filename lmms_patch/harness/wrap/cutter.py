"""Cuts the images and clips of a doc to a view, and says which docs cannot be cut."""

from __future__ import annotations

import copy
from typing import Any

from PIL import Image

from lmms_patch.ask.kinds import KINDS, REGIONS, Key
from lmms_patch.ask.spec import Options
from lmms_patch.ask.views import TEXTS, HiddenView, Region, View, cut, is_usable
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.boxes import BoxTable
from lmms_patch.harness.wrap.clips import ClipFiles
from lmms_patch.harness.wrap.orders import OrderTable
from lmms_patch.harness.wrap.shelf import Shelf, Show, Walk

IN_TIME = frozenset(kind.view for kind in KINDS.values() if kind.needs_video)
"""The kinds of views that cut a clip in time."""


class Cutter:
    """Shows docs as their base does, cut to a view; remembers the docs that were shown as a grey image.

    Args:
        shelf: the docs as the base shows them.
        options: those with an effect on pixels: ``images``, ``min_side``, ``min_cell``, ``seed``.
        files: the files that hold views of clips.
        boxes: the docs' boxes; None where views are made of no boxes.
        orders: the orders of docs' options; None where docs are asked in their own order alone.
    """

    def __init__(
        self, shelf: Shelf, options: Options, files: ClipFiles, boxes: BoxTable | None, orders: OrderTable | None
    ) -> None:
        self._shelf, self._options, self._files = shelf, options, files
        self._boxes, self._orders = boxes, orders
        self._stand_ins: dict[tuple[int, bool], str] = {}

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
            only, usable = self._boxes.place(images), not self._boxes.misfit(doc_id, self._shelf)
            # the box is of the doc's own image, and the wrong image may have another size
            if donor is not None and isinstance(view, Region):
                view = view.on(images[only].size, cuts[self._boxes.place(cuts)].size)
        usable = usable and view.kind not in ("full", "describe")

        def replace(medium: Any, index: int) -> Any:
            shown = cuts[index]
            still = isinstance(shown, Image.Image) and view.kind in IN_TIME
            whole = not usable or only not in (None, index) or still
            if whole and donor is None and not view.trim:
                return medium.copy() if isinstance(medium, Image.Image) else medium
            seed = f"{self._options.seed}/{doc_id}"
            if isinstance(shown, Image.Image):
                part = View("full", trim=view.trim) if whole else view
                return cut(shown, part, min_cell=self._options.min_cell, seed=seed)
            key = doc_id, index, donor, repr(view)
            return self._files.write(shown, View("full") if whole else view, key, seed)

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
        if self._boxes is not None and n in REGIONS:
            return self._boxes.why_none(doc_id, str(n), self._shelf)
        facts = self._shelf.known(doc_id)
        if not facts.sizes or facts.problem:
            return facts.problem or "no image"
        if isinstance(n, str):
            return None
        if self._shelf.in_time:
            short = min((frames for frames, _ in facts.clips), default=0)
            return f"the clip has {short} frame{'s' * (short != 1)}, too few for {n}" if short < n else None
        cut = facts.sizes[:1] if self._options.images == "first" else facts.sizes
        small = next((size for size in cut if not is_usable(size, n, self._options.min_side)), None)
        return None if small is None else f"image of {small[0]}x{small[1]} pixels is too small"
