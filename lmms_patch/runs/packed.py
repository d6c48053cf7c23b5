"""The records of docs as columns beside the rows of their views, and back: what analysis needs of a log, without its JSON. NumPy and pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from lmms_patch.runs.record import (
    NO_ANSWER,
    Answer,
    Asked,
    Baseline,
    Clip,
    Exchanged,
    Record,
    Tested,
    View,
    WrongImage,
)
from lmms_patch.stats.bounds import Some

SHARED_TEXT = pa.dictionary(pa.int32(), pa.string())
"""The type of a column of texts that stores each different text once."""
COLUMNS: dict[str, pa.DataType] = {"record.view": SHARED_TEXT, "record.alike": SHARED_TEXT, "record.own": pa.string()}
"""Columns of JSON: the view of each row, without its boxes; of each doc, in its first row, what many docs have alike, and what it has alone."""


class _Alike(Struct, omit_defaults=True):
    """The parts of a record shared by many docs."""

    schema: Any
    task: str
    base: str
    kind: str
    grids: list[int]
    image_sizes: list[list[int]]
    clips: list[Clip] = []
    answer: Answer = NO_ANSWER
    stratum: str = ""
    baselines: list[Baseline] = []


class _Own(Struct, omit_defaults=True, kw_only=True):
    """The parts of a record which differ from doc to doc.

    ``count`` is the number of views on the doc's image, ``wrong_image`` is without its views.
    """

    count: Some
    doc_id: int
    best: dict[str, int]
    excluded: dict[str, str]
    images: str | None = None
    fields: dict[Any, Any] = {}
    exchanged: Exchanged | None = None
    tst: Tested | None = None
    wrong_image: WrongImage | None = None
    asked: Asked | None = None


_VIEW, _ALIKE, _OWN = msgspec.json.Decoder(View), msgspec.json.Decoder(_Alike), msgspec.json.Decoder(_Own)


def pack(records: Sequence[Record], views: Sequence[Sequence[View | None]]) -> dict[str, pa.Array]:
    """Pack records into columns of JSON; all columns are null if some record does not fit.

    Args:
        records: of the docs.
        views: the rows of each doc; None: the record has no such view.
    """
    flat = [view for of_doc in views for view in of_doc]
    different = {id(view): view for view in flat if view is not None}
    starts = np.cumsum([0, *map(len, views)])[:-1]
    # what a doc has alone stands in its first row only
    places = np.full(len(flat), -1)
    places[starts] = np.arange(len(records))
    first = pa.array(places, mask=places < 0)
    try:
        # views in another order would be read back as another record
        if any(
            [view for view in rows if view is not None] != record.every_view
            for record, rows in zip(records, views, strict=True)
        ):
            raise ValueError("views in another order")
        encoded = {
            key: msgspec.json.encode(msgspec.structs.replace(view, boxes=None)).decode()
            for key, view in different.items()
        }
        alike = pa.array([msgspec.json.encode(_part(record, _Alike)).decode() for record in records], pa.string()).take(
            first
        )
        own = [
            msgspec.json.encode(
                _part(record, _Own, count=len(record.views), wrong_image=_bare(record.wrong_image))
            ).decode()
            for record in records
        ]
        of_rows = pa.array([None if view is None else encoded[id(view)] for view in flat], pa.string())
        columns = {"record.view": of_rows, "record.alike": alike, "record.own": pa.array(own, pa.string()).take(first)}
        return {
            name: column.dictionary_encode() if COLUMNS[name] == SHARED_TEXT else column
            for name, column in columns.items()
        }
    except (ValueError, OverflowError):
        # half a character (UnicodeEncodeError), a number of more than 64 bits
        return {name: pa.nulls(len(flat), kind) for name, kind in COLUMNS.items()}


def _part(record: Record, kind: Any, **changed: Any) -> Any:
    """Return a type's part of a record, with some fields changed."""
    return kind(
        **{**{name: getattr(record, name) for name in kind.__struct_fields__ if hasattr(record, name)}, **changed}
    )


def _bare(wrong: WrongImage | None) -> WrongImage | None:
    """Return a record's wrong image without its views, which have separate rows."""
    return None if wrong is None else msgspec.structs.replace(wrong, views=[])


def unpack(columns: pa.Table) -> list[Record]:
    """Return the records of the columns; equal parts of different docs are the same object. Only to read.

    Raises:
        ValueError: a record is not there.
    """
    views = _objects(columns["record.view"], _VIEW)
    # a doc begins where the part stands that it has alone
    starts = np.flatnonzero(columns["record.own"].is_valid().to_numpy())
    alike = [one for one in _objects(columns["record.alike"], _ALIKE) if one is not None]
    if len(alike) != len(starts) or (len(views) and (not len(starts) or starts[0] != 0)):
        raise ValueError("records are missing")
    out = []
    ends = np.append(starts[1:], len(views)).tolist()
    for start, end, same, text in zip(
        starts.tolist(), ends, alike, columns["record.own"].drop_null().to_pylist(), strict=True
    ):
        own = _OWN.decode(text)
        of_doc = views[start:end]
        # the row of a view that was left out has no view
        if None in of_doc:
            of_doc = [view for view in of_doc if view is not None]
        if own.wrong_image is not None:
            own.wrong_image.views = of_doc[own.count :]
        out.append(
            Record(
                schema=same.schema, task=same.task, base=same.base, kind=same.kind, grids=same.grids, doc_id=own.doc_id, image_sizes=same.image_sizes,
                clips=same.clips, images=own.images, views=of_doc[: own.count], best=own.best, excluded=own.excluded, fields=own.fields,
                answer=same.answer, stratum=same.stratum, baselines=same.baselines, exchanged=own.exchanged,
                tst=own.tst,
                wrong_image=own.wrong_image, asked=own.asked,
            )
        )  # fmt: skip
    return out


def _objects(column: pa.ChunkedArray, decoder: Any) -> list[Any]:
    """Return the objects of a column of JSON, each different text decoded once; None where there is none."""
    known: dict[str, Any] = {}
    out: list[Any] = []
    for chunk in column.chunks:
        texts = chunk.dictionary.to_pylist()
        known |= {text: decoder.decode(text) for text in texts if text not in known}
        # the last place stands for null
        objects = [*(known[text] for text in texts), None]
        out.extend(map(objects.__getitem__, chunk.indices.fill_null(len(objects) - 1).to_pylist()))
    return out
