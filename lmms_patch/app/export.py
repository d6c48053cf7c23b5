"""Tables as files: Parquet, CSV that no spreadsheet runs, and JSON lines. And the numbers of a run for other sites."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import polars as pl

from lmms_patch import files
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.runs.cache import place
from lmms_patch.runs.run import Run
from lmms_patch.text import block, csv_cell, harmless

_OF_RUNS = ("[0-9]*_results.json", "[0-9]*_numbers.parquet", "[0-9]*_samples_*")
"""How the files of a run are named: they begin with its date."""
FORMS = ("parquet", "csv", "jsonl")
SITES = {"every-eval-ever": "every_eval_ever.json", "eval-results": "eval_results.yaml"}
"""The forms of other sites, and how their files are called where nothing else is said."""


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
    own = [run.path, place(run.path), *(result.path for result in run.results if result.path is not None)]
    if output.resolve() in [path.resolve() for path in own]:
        raise OptionError(f"--output {output}: this is a file of the run itself; give another name")
    if any(fnmatch(output.name, pattern) for pattern in _OF_RUNS):
        raise OptionError(
            f"--output {output}: this is how lmms-eval names the files of a run, which would be lost or mistaken; give another name"
        )


def write(frame: pl.DataFrame, path: Path, form: str) -> None:
    """Write a table, whole or not at all.

    CSV and JSON lines have texts without control characters and secrets, Parquet has them as they are. Lists are JSON in
    a CSV.

    Raises:
        RecordError: the file cannot be written.
    """
    with files.replacing(path) as part:
        if form == "parquet":
            frame.write_parquet(part)
        elif form == "jsonl":
            _changed(frame, block).write_ndjson(part)
        else:
            lists = {name: kind for name, kind in frame.schema.items() if kind.is_nested()}
            flat = frame.with_columns(
                pl.Series(name, map(_as_json, frame[name].to_list()), pl.String) for name in lists
            )
            _changed(flat, csv_cell).write_csv(part)


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _changed(frame: pl.DataFrame, change: Callable[[str], str]) -> pl.DataFrame:
    """Return rows with every text and every name of a column changed."""
    out = frame
    for name in (name for name, kind in frame.schema.items() if kind == pl.String):
        # each different text once, since a prompt stands in a row for each view
        known = frame[name].drop_nulls().unique().to_list()
        out = out.with_columns(pl.col(name).replace(known, list(map(change, known))))
    nested = {name: kind for name, kind in frame.schema.items() if kind.is_nested()}
    out = out.with_columns(
        pl.Series(name, [harmless(value) for value in frame[name].to_list()], kind) for name, kind in nested.items()
    )
    return out.rename({name: change(name) for name in out.columns})


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
