"""The boxes of all docs of a task, read once from its rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from tqdm import tqdm

from lmms_patch.ask.boxes import DocBoxes, read
from lmms_patch.ask.references import digest
from lmms_patch.ask.spec import REGIONS, WrapSpec
from lmms_patch.ask.views import Region
from lmms_patch.errors import CannotWrapError

_MANY = 5_000


class BoxTable:
    """The boxes of the docs of one ``_regions`` task, by doc id.

    Read from all docs of the split, whatever ``--limit`` says: then an id means the same view in every run.

    Args:
        spec: what was asked.
        rows: gives the docs, without media where the base can.
    """

    def __init__(self, spec: WrapSpec, rows: Callable[[], Any]) -> None:
        self._spec, self._rows = spec, rows
        self._lock = threading.Lock()
        self._found: list[DocBoxes] | None = None

    @property
    def found(self) -> list[DocBoxes]:
        """The boxes of each doc."""
        with self._lock:
            if self._found is None:
                options = self._spec.options
                rows = _columns(self._rows(), (options.boxes, options.relevant))
                bar = tqdm(rows, desc=f"{self._spec.name}: boxes", disable=len(rows) < _MANY)
                self._found = [
                    read(row, options.boxes, options.relevant, options.box_form) if isinstance(row, Mapping) else DocBoxes() for row in bar
                ]
            return self._found

    def boxes(self, doc_id: int) -> tuple[Region, ...]:
        """The boxes of a doc, in its order."""
        return self.found[doc_id].boxes

    def fault(self, doc_id: int) -> str:
        """Why a doc's boxes cannot be used, as far as its row shows; empty where they can."""
        return self.found[doc_id].fault

    @cached_property
    def most(self) -> int:
        """The number of boxes of the doc that has most."""
        return max((len(one.boxes) for one in self.found), default=0)

    @cached_property
    def digest(self) -> str:
        """Which boxes, in which order: 16 hex digits. Two runs with other boxes show other views under the same numbers."""
        return digest([[*one.area, one.relevant] for one in doc.boxes] for doc in self.found)

    def check(self, doc_ids: list[int]) -> None:
        """Refuse docs that carry no boxes.

        Args:
            doc_ids: the docs that are evaluated.

        Raises:
            CannotWrapError: none of them has a box of either set; says why, and what to type.
        """
        docs = [self.found[i] for i in doc_ids]
        if not docs or any(doc.boxes for doc in docs):
            return
        name, base, options = self._spec.name, self._spec.base, self._spec.options
        if self.most:
            raise CannotWrapError(f"{name}: none of the {len(docs)} docs asked has boxes that can be used, others of {base} have; raise --limit")
        faults = Counter(doc.fault.partition(":")[0] for doc in docs if doc.fault)
        if faults:
            kind, count = faults.most_common(1)[0]
            first = next((i, doc.fault) for i, doc in zip(doc_ids, docs, strict=True) if doc.fault.partition(":")[0] == kind)
            raise CannotWrapError(f"{name}: no doc of {base} has boxes that can be used; {count} of {len(docs)} have {first[1]} (doc {first[0]})")
        fields = ", ".join(map(str, self._rows()[doc_ids[0]]))
        raise CannotWrapError(
            f"{name}: the docs of {base} have no boxes in their field {options.boxes!r}; each needs a list of [left, top, right, bottom] in pixels, "
            f"and a list of true and false in {options.relevant!r}; the options 'boxes' and 'relevant' name others of {fields} (docs/regions.md)"
        )

    def counts(self, doc_ids: list[int]) -> str:
        """How many boxes there are of each set, in words."""
        found = [one for i in doc_ids for one in self.found[i].boxes]
        by_set = ", ".join(f"{sum(one.set == name for one in found)} {name}" for name in REGIONS)
        return f"{len(doc_ids)} docs with {by_set} boxes, up to {max((len(self.found[i].boxes) for i in doc_ids), default=0)} in one"


def _columns(rows: Any, names: tuple[str, ...]) -> Any:
    """The rows with the columns of these fields alone, where that can be had without reading the others."""
    columns = getattr(rows, "column_names", None)
    if not isinstance(columns, list) or not hasattr(rows, "select_columns"):
        return rows
    kept = [name for name in dict.fromkeys(part for name in names for part in (name, name.partition(".")[0])) if name in columns]
    return rows.select_columns(kept) if kept else rows
