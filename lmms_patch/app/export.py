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
from lmms_patch.runs.rows import COLUMNS
from lmms_patch.runs.run import Run
from lmms_patch.text import block, csv_cell

FORMS = ("parquet", "csv", "jsonl")
SITES = {"every-eval-ever": "every_eval_ever.json", "eval-results": "eval_results.yaml"}
"""The forms of other sites, and how their files are called where nothing else is said."""
# rows at a time: as Python objects they take many times the table's memory
_ROWS = 10_000
_LINE = 2**24
"""Bytes of a file's first line that are read to tell whose file it is."""


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


def check_output(output: Path, run: Run, *, force: bool = False) -> None:
    """Refuse to write over a file of a run, over anything but an earlier export, or under a run's file name.

    Args:
        output: the file.
        run: the run that is exported.
        force: replace whatever is there, but for files of a run.

    Raises:
        OptionError: the file is a results file, a sample log, a table beside one, or of somebody else.
    """
    logs = [result.log for result in run.results if result.log is not None]
    own = [run.path, *logs, *(log.with_suffix(".parquet") for log in logs)]
    if output.resolve() in [path.resolve() for path in own]:
        raise OptionError(f"--output {output}: this is a file of the run itself; give another name")
    if is_of_run(output):
        raise OptionError(
            f"--output {output}: this is how lmms-eval names the files of a run, which would be lost or mistaken; give another name"
        )
    if not force and output.is_file() and not _is_export(output):
        raise OptionError(
            f"{output}: there already, and no earlier export; type --force to replace it, or --output with another name"
        )


def _is_export(path: Path) -> bool:
    """Return whether a file is an earlier export: a table by its first columns, a log by its named source."""
    import yaml

    from lmms_patch.present.board.model_index import SOURCE

    first = list(COLUMNS)[:4]
    try:
        with open(path, "rb") as file:
            head = file.readline(_LINE)
        if head.startswith(b"PAR1"):
            return bool(pq.read_schema(path).names[:4] == first)
        if head.startswith(b'{"'):
            return list(files.parse_json(head))[:4] == first
        # a log for Every Eval Ever is an indented object, whose first line is a bare brace
        if head.startswith(b"{"):
            return bool(files.parse_json(path.read_bytes())["source_metadata"]["source_name"] == SOURCE)
        if head.startswith(b"- "):
            return all(
                one["source"]["name"] == SOURCE for one in yaml.load(path.read_text(encoding="utf-8"), files.YamlLoader)
            )
        return head.startswith(",".join(f'"{name}"' for name in first).encode())
    except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError, pa.ArrowException):
        return False


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
    """What was written for another site.

    Attributes:
        to: the site.
        numbers: how many numbers.
        path: the file.
        left_out: the tasks without any number there, and why; empty where all have one.
    """

    to: str
    numbers: int
    path: Path
    left_out: str = ""


def publish(
    run: Run, to: str, task: str | None, output: Path | None, *, organization: str, relationship: str, force: bool
) -> Published:
    """Write the numbers of a run in the form of another site (``api.publish``)."""
    from lmms_patch.compare import audit
    from lmms_patch.present import published

    if to not in SITES:
        raise OptionError(f"--to {to}: allowed: {', '.join((*FORMS, *SITES))}")
    results = [result for result in run.results if task in (None, result.task)]
    if not results:
        raise OptionError(f"{run.path}: no task {task!r}; allowed: {', '.join(result.task for result in run.results)}")
    # no number goes out that its own log contradicts
    for result in results:
        audit.check(result)
    path = output or Path(SITES[to])
    check_output(path, run, force=force)
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
    return Published(to, count, path, left_out)
