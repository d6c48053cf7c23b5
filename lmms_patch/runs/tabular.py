"""Many finished runs as one table of numbers: a row for each number of each task (docs/tables.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

import polars as pl

from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.run import Result

COLUMNS: Final[dict[str, Any]] = {
    **dict.fromkeys(
        ("model", "adapter", "model_args", "date", "task", "filter", "base", "kind", "metric"), pl.String()
    ),
    "docs": pl.Int64(),
    "gate": pl.Boolean(),
    "measure": pl.String(),
    "grid": pl.Int8(),
    **dict.fromkeys(("value", "se", "low", "high", "level"), pl.Float64()),
    "n": pl.Int64(),
    **dict.fromkeys(("note", "reason", "path"), pl.String()),
}


def rows_of(results: Iterable[Result]) -> pl.DataFrame:
    """Return the numbers of some results, a row each (``Result.measures``).

    Raises:
        RecordError: a table is not whole.
    """
    return pl.DataFrame([row for result in results for row in _rows(result)], schema=COLUMNS)


def _rows(result: Result) -> Iterable[dict[str, Any]]:
    """Yield the rows of a task, a row for each number."""
    analysis, grids = result.analysis, catalogue.grids_of(result.kind, result.grids)
    of_task = {
        **{name: getattr(result.run, name) for name in ("model", "adapter", "model_args", "date")},
        **{name: getattr(result, name) for name in ("task", "filter", "base", "metric", "docs")},
        "kind": result.kind.name,
        "gate": analysis.gate.valid if analysis and result.kind.has_index else None,
        "path": os.fsencode(result.run.path).decode("utf-8", "replace"),
    }
    for name, one in result.measures.items():
        yield {
            **of_task,
            "measure": name,
            "grid": grids.get(name),
            **{key: getattr(one, key) for key in ("value", "se", "low", "high", "level", "n")},
            "note": ", ".join(reading.words(one)) or None,
            "reason": one.reason or None,
        }
