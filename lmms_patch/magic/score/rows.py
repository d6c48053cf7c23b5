"""Docs of a MAGIC task as rows of the samples table (``runs.schema``), and back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

from lmms_patch import files
from lmms_patch.errors import RecordError, shown
from lmms_patch.magic.score.results import SCHEMA, Record
from lmms_patch.runs.schema import TYPES
from lmms_patch.runs.typed import read_as
from lmms_patch.text import line

_SAME = (
    *("id", "item", "type", "boxes", "relevant", "used", "invented", "dismissed", "steps"),
    *("answer", "exact", "synonym", "short", "full", "healed"),
)
"""Parts of the struct ``magic`` that a record has under the same name."""
_JSON = ("asked", "first", "last")


def frame_of(records: Sequence[Record]) -> pl.DataFrame:
    """Return a row for each of some docs, by doc."""
    records = sorted(records, key=lambda record: record.doc_id)
    columns: dict[str, list[Any]] = {
        "doc_id": [record.doc_id for record in records],
        "view": [0] * len(records),
        "kind": ["full"] * len(records),
        "answer": [record.response for record in records],
        "failed": [record.failed for record in records],
        "judged": [_json(record.judge) for record in records],
        "question": [record.question for record in records],
        "gold": [record.target for record in records],
        "cluster": [record.group or None for record in records],
        "magic": [
            {name: getattr(record, name) for name in _SAME}
            | {name: _json(getattr(record, name)) for name in _JSON}
            | {"found": record.answer_found}
            for record in records
        ],
    }
    return pl.DataFrame({name: pl.Series(values, dtype=TYPES[name]) for name, values in columns.items()})


def records_of(frame: pl.DataFrame, variant: str) -> list[Record]:
    """Return the docs of a table, in its order.

    Args:
        frame: its rows.
        variant: what the task shows.

    Raises:
        RecordError: a row is not of a MAGIC task, or a doc is there twice.
    """
    told = ("doc_id", "answer", "failed", "judged", "question", "gold", "cluster", "magic")
    records = [_record(row, variant) for row in frame.select(told).iter_rows(named=True)]
    if twice := [name for name, times in Counter(one.id for one in records).items() if times > 1]:
        raise RecordError(f"doc {shown(twice[0])} is there twice; two runs in one table?")
    return records


def _record(row: dict[str, Any], variant: str) -> Record:
    magic, where = row["magic"], f"doc {row['doc_id']}: magic"
    if magic is None:
        raise RecordError(f"{where} is missing; this is not the table of a MAGIC task")
    told = {
        "schema": SCHEMA,
        "variant": variant,
        "doc_id": row["doc_id"],
        "group": row["cluster"] or "",
        "question": row["question"] or "",
        "target": row["gold"] or "",
        "response": row["answer"] or "",
        "failed": row["failed"],
        "judge": _parsed(row["judged"], f"doc {row['doc_id']}: judged"),
        "answer_found": magic["found"],
        **{name: magic[name] for name in _SAME},
        **{name: _parsed(magic[name], f"{where}.{name}") for name in ("first", "last")},
        "asked": _parsed(magic["asked"], f"{where}.asked") or {},
    }
    record = read_as(told, Record, where)
    # what is dismissed is a part of what is used
    named = {*record.used, *record.relevant, *(record.dismissed or ())}
    if outside := sorted(box for box in named if not 1 <= box <= record.boxes):
        raise RecordError(f"{where}: it names box {outside[0]} of {record.boxes}")
    return record


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _parsed(text: str | None, where: str) -> Any:
    try:
        return None if text is None else files.parse_json(text)
    except ValueError as error:
        raise RecordError(f"{where} is not JSON ({line(str(error), 100)})") from None
