"""The rows of scored docs as a frame of the samples table (``runs.schema``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from lmms_patch.ask.answers import is_missing
from lmms_patch.ask.kinds import Key
from lmms_patch.ask.views import HiddenView, Region, View
from lmms_patch.runs.schema import FIELD, LISTS, OF_DOC, OF_VIEW, OTHER_METRIC, TYPES
from lmms_patch.runs.views import Items
from lmms_patch.text import whole


class Doc(NamedTuple):
    """A scored doc.

    Attributes:
        rows: of each view the columns that say something; those of the doc in the first row alone.
        items: of each view, by metric, what the native ``process_results`` returned.
        references: the native item of each entry of the first row's ``references``.
        merged: what the doc's category counts in, where several count as one; else None.
    """

    rows: list[dict[str, Any]]
    items: list[Mapping[str, Any]]
    references: list[Any]
    merged: str | None = None

    @property
    def doc_id(self) -> int:
        """The doc's row in the base task's eval split."""
        return int(self.rows[0]["doc_id"])

    @property
    def failed(self) -> bool:
        """Whether the call for the first view failed: then nothing of ours can be said of the doc."""
        return "failed" in self.rows[0]

    @property
    def unscored(self) -> bool:
        """Whether the first view could not be scored."""
        return "error" in self.rows[0]

    def excluded(self, key: Key) -> str:
        """Say why the doc is not used for a set of views; "" for a used doc."""
        entries = self.rows[0].get("excluded", ())
        return next((str(one["why"]) for one in entries if one["set"] == str(key)), "")


def frame_of(docs: Sequence[Doc], metrics: Sequence[str]) -> pl.DataFrame:
    """Return the rows of some docs, by doc and view, with every column of the schema.

    Args:
        docs: the docs.
        metrics: the native metrics, the primary one first.
    """
    docs = sorted(docs, key=lambda doc: doc.doc_id)
    rows, firsts = [row for doc in docs for row in doc.rows], [doc.rows[0] for doc in docs]
    places = pl.Series([place for place, doc in enumerate(docs) for _ in doc.rows], dtype=pl.UInt32)
    others = [f"{OTHER_METRIC}{name}" for name in metrics[1:]]
    fields = sorted({name for first in firsts for name in first if name.startswith(FIELD)})
    of_view = [_column(name, [row.get(name) for row in rows]) for name in (*OF_VIEW, *others, *LISTS)]
    of_doc = [_column(name, [first.get(name) for first in firsts]).gather(places) for name in (*OF_DOC, *fields)]
    return pl.DataFrame(of_view + of_doc)


def items_of(docs: Sequence[Doc], metric: str) -> Items:
    """Return the native items of the rows of ``frame_of``, by a metric."""
    docs = sorted(docs, key=lambda doc: doc.doc_id)
    views = [items.get(metric) for doc in docs for items in doc.items]
    return Items([None if is_missing(item) else item for item in views], {doc.doc_id: doc.references for doc in docs})


def merged_of(docs: Sequence[Doc]) -> dict[str, str]:
    """Return what categories count in, where several count as a single category."""
    return {str(doc.rows[0].get("category")): doc.merged for doc in docs if doc.merged is not None}


def images_of(docs: pl.DataFrame) -> Iterator[tuple[int, list[tuple[int, int]], str]]:
    """Yield of docs' first rows the id, the sizes of the images shown, and their digest."""
    for doc_id, sizes, images in docs.select("doc_id", "shown", "images").iter_rows():
        yield doc_id, [(one["width"], one["height"]) for one in sizes or ()], images or ""


def shown(view: View) -> dict[str, Any]:
    """Return the columns of a view; 0 is null."""
    placed = view.cell is not None or view.kind == "window"
    areas = [view.area] if isinstance(view, Region) else view.areas if isinstance(view, HiddenView) else ()
    return {
        "kind": view.kind,
        "swapped": view.swapped or None,
        "n": view.n or None,
        "cell": view.cell,
        "row": view.row if placed else None,
        "col": view.col if placed else None,
        "region": view.number if isinstance(view, Region) else None,
        "relevant": view.relevant if isinstance(view, Region | HiddenView) else None,
        "hidden": view.share if isinstance(view, HiddenView) else None,
        "boxes": [list(area) for area in areas] or None,
        "turn": view.turn or None,
        "repeat": view.repeat or None,
        "caption": view.adds if view.kind == "caption" else None,
    }


def labels(item: Any) -> dict[str, bool | None]:
    """Return whether an item's answer, and its gold, is the positive label; None without labels."""
    if not isinstance(item, Mapping) or not {"prediction", "ground_truth"} <= item.keys():
        return {"said_yes": None, "gold_yes": None}
    said, gold = (str(item[key]).strip().lower() == "yes" for key in ("prediction", "ground_truth"))
    return {"said_yes": said, "gold_yes": gold}


def text(value: Any) -> str | None:
    """Return a value as a text for UTF-8."""
    return None if value is None else whole(value if isinstance(value, str) else str(value))


def _column(name: str, values: list[Any]) -> pl.Series:
    if name.startswith(FIELD):
        return pl.Series(whole(name), _alike(values))
    if name.startswith(OTHER_METRIC):
        return pl.Series(whole(name), values, TYPES["score"])
    if TYPES[name].is_nested():
        # Arrow takes a tenth of the time; as a table, since polars 1.30 cannot filter by what it makes of an array alone
        kind = pl.Series([], dtype=TYPES[name]).to_arrow().type
        return pl.DataFrame(pl.from_arrow(pa.table({name: pa.array(values, kind)})))[name].cast(TYPES[name])
    return pl.Series(name, list(map(text, values)) if TYPES[name] == pl.String else values, TYPES[name])


def _alike(values: list[Any]) -> list[Any]:
    """Return the values of a field in one type: texts where some doc has a text; numbers, with yes as 1, where types mix."""
    kinds = {type(value) for value in values if value is not None}
    make = text if str in kinds else float if len(kinds) > 1 else None
    return [value if value is None else make(value) for value in values] if make else values
