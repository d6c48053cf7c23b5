"""Many finished runs as one Arrow table: a row for each number of each task (docs/tables.md). NumPy and pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.packed import SHARED_TEXT
from lmms_patch.runs.rows import texts
from lmms_patch.runs.run import Result, Run

COLUMNS: dict[str, pa.DataType] = {
    "model": SHARED_TEXT,
    "adapter": SHARED_TEXT,
    "model_args": SHARED_TEXT,
    "date": pa.string(),
    "task": SHARED_TEXT,
    "filter": SHARED_TEXT,
    "base": SHARED_TEXT,
    "kind": SHARED_TEXT,
    "metric": SHARED_TEXT,
    "docs": pa.int64(),
    "gate": pa.bool_(),
    "measure": SHARED_TEXT,
    "grid": pa.int8(),
    "value": pa.float64(),
    "se": pa.float64(),
    "low": pa.float64(),
    "high": pa.float64(),
    "level": pa.float64(),
    "n": pa.int64(),
    "note": pa.string(),
    "reason": pa.string(),
    "path": pa.string(),
}


def numbers_of(runs: Iterable[Run]) -> pa.Table:
    """Return the numbers of all tasks of some runs as a table, a row per number (``Result.measures``).

    Raises:
        RecordError: a MAGIC task without its numbers.
    """
    rows = [row for run in runs for result in run.results for row in _rows(result)]
    return pa.table({name: _column([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values as a column of a type."""
    is_text = pa.types.is_string(kind) or pa.types.is_dictionary(kind)
    return texts(values).cast(kind) if is_text else pa.array(values, kind)


def _rows(result: Result) -> Iterable[dict[str, Any]]:
    """Yield the rows of a task, a row for each number."""
    run, gate = result.run, result.metrics.get("gate")
    of_task = {
        "model": run.model,
        "adapter": run.adapter,
        "model_args": run.model_args,
        "date": run.date,
        "task": result.task,
        "filter": result.filter,
        "base": result.base,
        "kind": result.kind.name,
        "metric": result.metric,
        "docs": result.docs,
        "gate": None if gate is None else bool(gate),
        "path": str(run.path),
    }
    grids = catalogue.grids_of(result.kind, result.grids)
    for name, one in result.measures.items():
        yield {
            **of_task,
            "measure": name,
            "grid": grids.get(name),
            **{key: getattr(one, key) for key in ("value", "se", "low", "high", "level", "n")},
            "note": ", ".join(reading.words(one)) or None,
            "reason": one.reason or None,
        }
