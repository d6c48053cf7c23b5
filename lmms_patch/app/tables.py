"""Finished runs as polars frames (docs/tables.md): ``lmms_patch.samples`` and ``lmms_patch.results``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_patch.errors import OptionError, nearest
from lmms_patch.runs import run as runs
from lmms_patch.runs.samples import frame_of

if TYPE_CHECKING:
    from polars import DataFrame


def samples(run: str | Path, task: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
    """Return the answers and scores of a finished run: one row for each doc and view (docs/tables.md), with ``task`` first.

    Args:
        run: the ``--output_path`` of the run, one ``*_results.json``, or one table. Of several runs, the newest is taken.
        task: one of the run's tasks; None: all.
        columns: their names, in the order wanted; None: those of docs/tables.md, and all others that some task has.

    Raises:
        OptionError: the run has no such task, or its tables no such column.
        RecordError: there is no such run, or a table cannot be read.
    """
    import polars as pl

    found = runs.newest_of(Path(run)).run
    every = list({result.task: result for result in found.results}.values())
    wanted = [result for result in every if task in (None, result.task)]
    if not wanted:
        raise OptionError(f"{found.path}: no task {task!r}; allowed: {', '.join(result.task for result in every)}")
    frames = [frame_of(result.path).with_columns(task=pl.lit(result.task)) for result in wanted if result.path]
    whole = pl.concat(frames, how="diagonal_relaxed")
    names = ["task", *(name for name in whole.columns if name != "task")]
    if missing := [name for name in columns or () if name not in names]:
        close = ", ".join(nearest(missing[0], names, 3) or names)
        raise OptionError(f"{found.path}: no column {missing[0]!r}; did you mean {close}? (docs/tables.md)")
    return whole.select(columns or names)


def results(folders: str | Path | Sequence[str | Path]) -> DataFrame:
    """Return the numbers of finished runs: one row per task and number (docs/tables.md).

    Args:
        folders: folders with runs, at any depth, or single ``*_results.json``; one is enough.

    Raises:
        RecordError: a path without a run, or a file that cannot be read.
    """
    from lmms_patch.runs.tabular import rows_of

    given = [folders] if isinstance(folders, (str, Path)) else folders
    return rows_of(one for run in runs.find([Path(path) for path in given]) for one in run.results)
