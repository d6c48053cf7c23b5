"""Tables as files: Parquet, CSV that no spreadsheet runs, and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from lmms_patch import files
from lmms_patch.errors import OptionError
from lmms_patch.runs.results import is_of_run
from lmms_patch.runs.run import Run
from lmms_patch.text import block, csv_cell

FORMS = ("parquet", "csv", "jsonl")
_ROWS = 10_000


def form_of(to: str | None, output: Path | None) -> str:
    """Return the form of a file: the one that is asked for, else the one that the file's name ends in, else Parquet.

    Raises:
        OptionError: it is none of ``FORMS``.
    """
    form = to or (output.suffix.removeprefix(".").lower() if output is not None else FORMS[0])
    if form not in FORMS:
        where = f"--output {output}: " if to is None else ""
        raise OptionError(f"{where}a table cannot be written as {form!r}; allowed: {', '.join(FORMS)} (--to)")
    return form


def check_output(output: Path, run: Run) -> None:
    """Refuse to write over a file of the run itself, or under a name that readers take for a file of some run.

    Raises:
        OptionError: the file is a results file, a sample log, or a table beside one.
    """
    logs = [result.log for result in run.results if result.log is not None]
    own = [run.path, *logs, *(log.with_suffix(".parquet") for log in logs)]
    if output.resolve() in [path.resolve() for path in own]:
        raise OptionError(f"--output {output}: this is a file of the run itself; give another name")
    if is_of_run(output):
        raise OptionError(f"--output {output}: this is how lmms-eval names the files of a run, which would be lost or mistaken; give another name")


def write(table: pa.Table, path: Path, form: str) -> None:
    """Write a table, whole or not at all. CSV and JSON lines have texts without control characters and secrets, Parquet has them as they are.

    Raises:
        RecordError: the file cannot be written.
    """
    with files.replacing(path) as part:
        if form == "parquet":
            pq.write_table(table, part, compression="zstd")
        elif form == "csv":
            _write_csv(table, part)
        else:
            encoder = msgspec.json.Encoder()
            with open(part, "wb") as out:
                for batch in table.to_batches(_ROWS):
                    out.writelines(encoder.encode(row) + b"\n" for row in _changed(batch, block).to_pylist())


def _write_csv(table: pa.Table, path: Path) -> None:
    """Write a table as CSV; lists are JSON texts."""
    schema = _changed(table.slice(0, 0), csv_cell, flat=True).schema
    with csv.CSVWriter(path, schema) as out:
        for batch in table.to_batches(_ROWS):
            out.write_batch(_changed(batch, csv_cell, flat=True))


def _changed(rows: pa.Table | pa.RecordBatch, change: Callable[[str], str], flat: bool = False) -> pa.Table | pa.RecordBatch:
    """Return rows with every text and every name of a column changed; dictionaries become texts.

    Args:
        rows: any.
        change: what is made of a text.
        flat: write lists as JSON texts.
    """

    def of_cell(value: Any) -> Any:
        if isinstance(value, list):
            inner = [None if one is None else block(one) for one in value]
            return change(json.dumps(inner, ensure_ascii=False)) if flat else inner
        if value is not None and value not in known:
            known[value] = change(value)
        return known.get(value)

    known: dict[str, str] = {}
    columns = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) or pa.types.is_list(kind):
            column = pa.array(map(of_cell, column.to_pylist()), pa.string() if flat else kind)
        columns[change(name)] = column
    return type(rows).from_pydict(columns)
