"""The boxes of all docs of a ``_regions`` or ``_hidden`` task, read once from its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from tqdm import tqdm

from lmms_patch.ask.boxes import DocBoxes, hide, misfit, read
from lmms_patch.ask.kinds import REGIONS
from lmms_patch.ask.references import digest
from lmms_patch.ask.views import Size, View
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.wrap.known import Known
from lmms_patch.harness.wrap.shelf import Shelf

_MANY = 5_000


class BoxTable:
    """The boxes of a task's docs, by doc id.

    The boxes of all docs of the split are read, whatever ``--limit`` says, so that a ``ViewId`` means the same view in
    every run.

    Args:
        known: the task.
        shelf: shows its docs.
    """

    def __init__(self, known: Known, shelf: Shelf) -> None:
        self._known, self._spec, self._shelf = known, known.spec, shelf

    @cached_property
    def _of_docs(self) -> list[DocBoxes]:
        """The boxes of each doc, read when they are first asked for."""
        options, rows = self._spec.options, self._known.plain_rows
        return [
            read(row, options.boxes, options.relevant, options.box_form) if isinstance(row, Mapping) else DocBoxes()
            for row in tqdm(rows, desc=f"{self._spec.name}: boxes", disable=len(rows) < _MANY)
        ]

    @cached_property
    def most(self) -> int:
        """The largest number of views from a doc's boxes: of hidden boxes one for each set."""
        boxes = [doc.boxes for doc in self._of_docs]
        return max(
            (len({box.set for box in of_doc} if self._spec.kind.hides else of_doc) for of_doc in boxes), default=0
        )

    @cached_property
    def digest(self) -> str:
        """A digest (16 hex digits) of all boxes in their order.

        Where it differs, runs show different views under the same ids.
        """
        return digest([[*one.area, one.relevant] for one in doc.boxes] for doc in self._of_docs)

    def check(self, doc_ids: Sequence[int]) -> str:
        """Refuse to go on where no evaluated doc has boxes; else return, in words, how many boxes of each set they have.

        Args:
            doc_ids: the docs that are evaluated.

        Raises:
            CannotWrapError: none of them has a box of either set; the message says why, and what to type.
        """
        sets = Counter(box.set for doc_id in doc_ids for box in self._of_docs[doc_id].boxes)
        if sets:
            return f"{len(doc_ids)} docs with {', '.join(f'{sets[name]} {name}' for name in REGIONS)} boxes"
        base, options = self._spec.base, self._spec.options
        faults = [f"{fault} (doc {doc_id})" for doc_id in doc_ids if (fault := self._of_docs[doc_id].fault)]
        if self.most or faults:
            first = f"; the first of {len(faults)} faults: {faults[0]}" if faults else ""
            why = f"none of the {len(doc_ids)} docs asked has boxes that can be used{first}; if others of {base} have, raise --limit"
        else:
            fields = ", ".join(map(str, self._known.plain_rows[doc_ids[0]]))
            why = (
                f"the docs of {base} have no boxes in their field {options.boxes!r}; each needs a list of [left, top, right, bottom] in pixels, and "
                f"a list of true and false in {options.relevant!r}; the options 'boxes' and 'relevant' name others of {fields} (docs/regions.md)"
            )
        raise CannotWrapError(f"{self._spec.name}: {why}")

    # --- on the images that the base shows ----------------------------------------------------------

    def views(self, doc_id: int) -> tuple[View, ...]:
        """Return the views made from a doc's boxes: each box by itself, or each set hidden; none where a box cannot be cut."""
        boxes = self._of_docs[doc_id].boxes
        if not boxes or self.misfit(doc_id):
            return ()
        if not self._spec.kind.hides:
            return boxes
        hidden = [hide(boxes, name, self._size(doc_id)) for name in REGIONS]
        return tuple(view for view in hidden if not isinstance(view, str))

    def why_none(self, doc_id: int, name: str) -> str | None:
        """Say why a doc has no usable box of a set; None where there is such a box."""
        doc = self._of_docs[doc_id]
        if doc.fault or not any(box.set == name for box in doc.boxes):
            return doc.fault or (f"no {name} box" if doc.boxes else "no box")
        if (why := self.misfit(doc_id)) or not self._spec.kind.hides:
            return why or None
        view = hide(doc.boxes, name, self._size(doc_id))
        return view if isinstance(view, str) else None

    def misfit(self, doc_id: int) -> str:
        """Say why a doc's boxes cannot be cut from the image shown by the base; "" where they can."""
        facts = self._shelf.known(doc_id)
        if facts.no_image:
            return facts.no_image
        size = self._size(doc_id)
        # boxes are in pixels of the stored image
        if facts.stored and size not in facts.stored:
            shown, *stored = (f"{width}x{height}" for width, height in (size, *sorted(facts.stored)))
            return (
                "an image that is shown in another size than the doc has it, so that its boxes are elsewhere: "
                f"{shown} pixels, not {', '.join(stored)}"
            )
        return misfit(self._of_docs[doc_id].boxes, size, self._spec.options.min_side)

    def _size(self, doc_id: int) -> Size:
        """Return the size of the image that the boxes lie on."""
        sizes = self._shelf.sizes(doc_id)
        return sizes[self.place(sizes)]

    def place(self, images: Sequence[Any]) -> int:
        """Return which image of a doc the boxes lie on."""
        return len(images) - 1 if self._spec.options.box_image == "last" else 0
