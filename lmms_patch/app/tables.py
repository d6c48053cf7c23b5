"""Finished runs as Arrow tables (docs/tables.md): ``lmms_patch.samples`` and ``lmms_patch.results``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_patch.runs import run as runs
from lmms_patch.runs.results import newest

if TYPE_CHECKING:
    from pyarrow import Table

    from lmms_patch.runs.results import Taken


def samples(run: str | Path, task: str | None = None, columns: Sequence[str] | None = None) -> Table:
    """Return the answers and scores of a finished run as an Arrow table: one row for each doc and view (docs/tables.md).

    The table comes from the Parquet file beside a task's sample log, or from the log itself where that file is missing
    or does not fit the log.

    Args:
        run: the ``--output_path`` of the run, or one ``*_results.json``. Of several runs, the newest with a wrapped
            task is taken.
        task: one of the run's tasks; None: all but MAGIC tasks, whose docs have no views.
        columns: their names, in the order wanted; None: all.

    Raises:
        OptionError: the run has no such task, or its table no such column.
        RecordError: there is no such run, no task with views, or a sample log that is missing or cannot be read.
    """
    from lmms_patch.runs.samples import joined

    return joined(runs.read(newest_wrapped(run).path), task, columns)


def results(folders: str | Path | Sequence[str | Path]) -> Table:
    """Return the numbers of finished runs as an Arrow table with one row per task and number (docs/tables.md).

    Args:
        folders: folders with runs, at any depth, or single ``*_results.json``; one is enough.

    Raises:
        RecordError: a path without a run, or a file that cannot be read.
    """
    from lmms_patch.runs.tabular import numbers_of

    given = [folders] if isinstance(folders, (str, Path)) else folders
    return numbers_of(runs.find([Path(path) for path in given]))


def newest_wrapped(folder: str | Path) -> Taken:
    """Return the newest run with a wrapped task under a path.

    Raises:
        RecordError: there is no run, or one that was looked at cannot be read.
    """
    return newest(Path(folder), lambda file: bool(runs.read(file).results), "with a task of lmms-patch")
