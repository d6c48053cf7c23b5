"""The boxes of all docs of a ``_regions`` or ``_hidden`` task, read once from its rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from tqdm import tqdm

from lmms_patch.ask.boxes import DocBoxes, hide, misfit, read
from lmms_patch.ask.kinds import REGIONS
from lmms_patch.ask.references import digest
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.views import Region, Size, View
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.wrap.shelf import Cutting, Shelf

_MANY = 5_000


class BoxTable:
    """The boxes of a task's docs, by doc id.

    The boxes of all docs of the split are read, whatever ``--limit`` says, so that a ``ViewId`` means the same view in
    every run.

    Args:
        spec: what was asked.
        rows: gives the docs, without media where the base can.
    """

    def __init__(self, spec: WrapSpec, rows: Callable[[], Any]) -> None:
        self._spec, self._rows = spec, rows
        self._hides = spec.kind.hides
        self._lock = threading.Lock()
        self._known: list[DocBoxes] | None = None

    @property
    def _of_docs(self) -> list[DocBoxes]:
        """The boxes of each doc, read when they are first asked for."""
        with self._lock:
            if self._known is None:
                options = self._spec.options
                rows = _columns(self._rows(), (options.boxes, options.relevant))
                bar = tqdm(rows, desc=f"{self._spec.name}: boxes", disable=len(rows) < _MANY)
                self._known = [
                    read(row, options.boxes, options.relevant, options.box_form)
                    if isinstance(row, Mapping)
                    else DocBoxes()
                    for row in bar
                ]
            return self._known

    def boxes(self, doc_id: int) -> tuple[Region, ...]:
        """Return the boxes of a doc, in the doc's order."""
        return self._of_docs[doc_id].boxes

    def fault(self, doc_id: int) -> str:
        """Say why a doc's boxes cannot be used, as far as its row shows; "" where they can."""
        return self._of_docs[doc_id].fault

    def views(self, doc_id: int, size: Size) -> tuple[View, ...]:
        """Return the views made from a doc's boxes: each box by itself, or each set hidden.

        Args:
            doc_id: the doc; its boxes fit the image.
            size: of the image (pixels).
        """
        boxes = self.boxes(doc_id)
        return (
            tuple(one for name in REGIONS if not isinstance(one := hide(boxes, name, size), str))
            if self._hides
            else boxes
        )

    def why_none(self, doc_id: int, name: str, size: Size) -> str:
        """Say why the boxes of a set make no view of an image, though they fit; "" where they make one."""
        found = hide(self.boxes(doc_id), name, size) if self._hides else ""
        return found if isinstance(found, str) else ""

    def at_most(self, doc_id: int) -> int:
        """Return how many views a doc's boxes make, if all can be cut."""
        return self._count(self._of_docs[doc_id])

    def _count(self, doc: DocBoxes) -> int:
        # boxes are hidden all at once: a view for each set
        return len({box.set for box in doc.boxes}) if self._hides else len(doc.boxes)

    @cached_property
    def most(self) -> int:
        """The largest number of views from a doc's boxes."""
        return max(map(self._count, self._of_docs), default=0)

    @cached_property
    def digest(self) -> str:
        """A digest (16 hex digits) of all boxes in their order.

        Where it differs, runs show different views under the same ids.
        """
        return digest([[*one.area, one.relevant] for one in doc.boxes] for doc in self._of_docs)

    def check(self, doc_ids: list[int]) -> None:
        """Refuse to go on where no evaluated doc has boxes.

        Args:
            doc_ids: the docs that are evaluated.

        Raises:
            CannotWrapError: none of them has a box of either set; the message says why, and what to type.
        """
        docs = [self._of_docs[i] for i in doc_ids]
        if not docs or any(doc.boxes for doc in docs):
            return
        name, base, options = self._spec.name, self._spec.base, self._spec.options
        if self.most:
            raise CannotWrapError(
                f"{name}: none of the {len(docs)} docs asked has boxes that can be used, others of {base} have; raise --limit"
            )
        # what stands after the colon differs from doc to doc
        faults = Counter(doc.fault.partition(":")[0] for doc in docs if doc.fault)
        if faults:
            kind, count = faults.most_common(1)[0]
            first = next(
                (i, doc.fault) for i, doc in zip(doc_ids, docs, strict=True) if doc.fault.partition(":")[0] == kind
            )
            raise CannotWrapError(
                f"{name}: no doc of {base} has boxes that can be used; {count} of {len(docs)} have {first[1]} (doc {first[0]})"
            )
        fields = ", ".join(map(str, self._rows()[doc_ids[0]]))
        raise CannotWrapError(
            f"{name}: the docs of {base} have no boxes in their field {options.boxes!r}; each needs a list of [left, top, right, bottom] in pixels, "
            f"and a list of true and false in {options.relevant!r}; the options 'boxes' and 'relevant' name others of {fields} (docs/regions.md)"
        )

    def counts(self, doc_ids: list[int]) -> str:
        """Return, in words, how many boxes of each set the docs have, and how they are asked."""
        boxes = [box for i in doc_ids for box in self._of_docs[i].boxes]
        by_set = ", ".join(f"{sum(box.set == name for box in boxes)} {name}" for name in REGIONS)
        how = "all boxes of a set are hidden at once" if self._hides else "each is asked once"
        most = max((len(self._of_docs[i].boxes) for i in doc_ids), default=0)
        return f"{len(doc_ids)} docs with {by_set} boxes, up to {most} in one; {how}, beside the full images"


def _columns(rows: Any, names: tuple[str, ...]) -> Any:
    """Return the rows with only the columns of some fields, if the dataset can leave columns out."""
    # the columns left out may hold images, which reading a row decodes
    columns = getattr(rows, "column_names", None)
    if not isinstance(columns, list) or not hasattr(rows, "select_columns"):
        return rows
    # a name may be of a field inside a column: ``meta.boxes``
    kept = [
        name
        for name in dict.fromkeys(part for name in names for part in (name, name.partition(".")[0]))
        if name in columns
    ]
    return rows.select_columns(kept) if kept else rows


class BoxedImages:
    """The boxes of docs on the images shown by the base.

    Args:
        boxes: the boxes.
        shelf: the docs.
        cutting: which image the boxes lie on, and how small a box may be.
    """

    def __init__(self, boxes: BoxTable, shelf: Shelf, cutting: Cutting) -> None:
        self._boxes, self._shelf, self._cutting = boxes, shelf, cutting

    def why_none(self, doc_id: int, name: str) -> str | None:
        """Say why a doc has no usable box of a set; None where there is such a box."""
        if fault := self._boxes.fault(doc_id):
            return fault
        boxes = self._boxes.boxes(doc_id)
        if not any(box.set == name for box in boxes):
            return f"no {name} box" if boxes else "no box"
        return self.misfit(doc_id) or self._boxes.why_none(doc_id, name, self.size(doc_id)) or None

    def misfit(self, doc_id: int) -> str:
        """Say why a doc's boxes cannot be cut from the image shown by the base; "" where they can."""
        sizes, facts = self._shelf.sizes(doc_id), self._shelf.of(doc_id)
        if not sizes or facts.problem:
            return facts.problem or "no image"
        own = facts.stored
        size = self.size(doc_id)
        # boxes are in pixels of the stored image
        if own and size not in own:
            shown, stored = f"{size[0]}x{size[1]}", ", ".join(f"{width}x{height}" for width, height in sorted(own))
            return f"an image that is shown in another size than the doc has it, so that its boxes are elsewhere: {shown} pixels, not {stored}"
        return misfit(self._boxes.boxes(doc_id), size, self._cutting.min_side)

    def size(self, doc_id: int) -> Size:
        """Return the size of the image that the boxes lie on."""
        sizes = self._shelf.sizes(doc_id)
        return sizes[self.place(sizes)]

    def place(self, images: Sequence[Any]) -> int:
        """Return which image of the doc the boxes lie on."""
        return len(images) - 1 if self._cutting.boxes_on_last else 0
