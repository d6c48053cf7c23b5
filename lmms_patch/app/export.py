"""Tables as files: Parquet, CSV that no spreadsheet runs, and JSON lines. And the numbers of a run for other sites."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from lmms_patch import files
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.runs.results import is_of_run
from lmms_patch.runs.run import Run
from lmms_patch.text import block, csv_cell

FORMS = ("parquet", "csv", "jsonl")
SITES = {"every-eval-ever": "every_eval_ever.json", "eval-results": "eval_results.yaml"}
"""The forms of other sites, and how their files are called where nothing else is said."""
# rows at a time: as Python objects they take many times the table's memory
_ROWS = 10_000


def form_of(to: str | None, output: Path | None) -> str:
    """Return the form of a file: as asked for, else by the file name's ending, else Parquet.

    Raises:
        OptionError: it is none of ``FORMS``.
    """
    form = to or (output.suffix.removeprefix(".").lower() if output is not None else FORMS[0])
    if form not in FORMS:
        where = f"--output {output}: " if to is None else ""
        raise OptionError(f"{where}a table cannot be written as {form!r}; allowed: {', '.join(FORMS)} (--to)")
    return form


def check_output(output: Path, run: Run) -> None:
    """Refuse to write over a file of a run, or under a run's file name.

    Args:
        output: the file.
        run: the run that is exported.

    Raises:
        OptionError: the file is a results file, a sample log, or a table beside a log.
    """
    logs = [result.log for result in run.results if result.log is not None]
    own = [run.path, *logs, *(log.with_suffix(".parquet") for log in logs)]
    if output.resolve() in [path.resolve() for path in own]:
        raise OptionError(f"--output {output}: this is a file of the run itself; give another name")
    if is_of_run(output):
        raise OptionError(
            f"--output {output}: this is how lmms-eval names the files of a run, which would be lost or mistaken; give another name"
        )


def write(table: pa.Table, path: Path, form: str) -> None:
    """Write a table, whole or not at all.

    CSV and JSON lines have texts without control characters and secrets, Parquet has them as they are.

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


def _changed(
    rows: pa.Table | pa.RecordBatch, change: Callable[[str], str], flat: bool = False
) -> pa.Table | pa.RecordBatch:
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

    # each different text is changed once, since a prompt stands in a row for each view
    known: dict[str, str] = {}
    columns = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) or pa.types.is_list(kind):
            column = pa.array(map(of_cell, column.to_pylist()), pa.string() if flat else kind)
        columns[change(name)] = column
    return type(rows).from_pydict(columns)


# --- numbers for other sites ----------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """What was written.

    Attributes:
        path: the file.
        what: how many rows, or numbers, in words.
        left_out: the tasks without any number there, and why; empty where all have one.
    """

    path: Path
    what: str
    left_out: str = ""


def publish(
    run: Run, to: str, task: str | None, output: Path | None, *, organization: str, relationship: str
) -> Published:
    """Write the numbers of a run in the form of another site.

    Raises:
        OptionError: an unknown relationship, a file of the run itself, or no such task.
        RecordError: no number can be published, or the file cannot be written.
    """
    from lmms_patch.present import published

    results = [result for result in run.results if task in (None, result.task)]
    if not results:
        raise OptionError(f"{run.path}: no task {task!r}; allowed: {', '.join(result.task for result in run.results)}")
    path = output or Path(SITES[to])
    check_output(path, run)
    if to == "every-eval-ever":
        if relationship not in published.RELATIONSHIPS:
            raise OptionError(f"--relationship {relationship}: allowed: {', '.join(published.RELATIONSHIPS)}")
        made = published.every_eval_ever(
            run, results, organization=organization, relationship=relationship, retrieved=int(time.time())
        )
        count, content, away = len(made["evaluation_results"]), published.json_text(made), list[str]()
    else:
        import yaml
        from huggingface_hub import eval_result_entries_to_yaml

        entries, away = published.eval_results(run, results)
        count, content = (
            len(entries),
            yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=False),
        )
    left_out = f"{', '.join(away)}: the data are not on the Hub" if away else ""
    if not count:
        raise RecordError(f"{run.path}: no number can go to {to}: {left_out or 'none is defined'}")
    files.write(path, content)
    return Published(path, f"{count} numbers", left_out)
