"""The docs of a finished run as tables (docs/tables.md): from the Parquet file beside a sample log, else from the log.

NumPy and pyarrow.

A Parquet file is used only where it is whole (its pages have checksums) and of its log: size and SHA-256 of the log show
that the log is still the file that it was made of. The hash takes a twentieth of the time that reading the log takes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lmms_patch import files
from lmms_patch.errors import OTHER_VERSION, OptionError, RecordError, shown, unknown
from lmms_patch.runs import packed
from lmms_patch.runs.record import Record
from lmms_patch.runs.results import sample_log
from lmms_patch.runs.rows import BATCH, batches, schema_of
from lmms_patch.runs.run import Result, Run
from lmms_patch.text import log

SCHEMA = 1
"""The version of the Parquet files; readers take no other. It goes up, too, when a column is made otherwise."""
_ABOUT = b"lmms_patch"
"""The key of what a file says of itself, in its metadata."""
WORTH = 200
"""Docs of a log up to which it is as quickly read as its Parquet file, and is read."""
_DICTIONARY = 16 * 1024 * 1024
"""Bytes of the different texts of a column, of some thousand docs, up to which each is stored once."""


def table(result: Result, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the docs of a task as a table, a row for each doc and view.

    Args:
        result: a task of a finished run.
        columns: their names, in the order wanted; None: all.

    Raises:
        OptionError: there is no such column.
        RecordError: the task has no sample log, its log cannot be read, or it is a MAGIC task, whose docs have no
            views.
    """
    schema = schema_of(result)
    wanted = schema.names if columns is None else list(columns)
    if missing := [name for name in wanted if name not in schema.names]:
        raise OptionError(f"{result.task}: {unknown(missing[0], schema.names)}".replace("unknown option", "no column"))
    stored = _stored(result, wanted)
    return from_log(result, wanted) if stored is None else stored


def from_log(result: Result, columns: Sequence[str]) -> pa.Table:
    """Return columns of ``table`` from the sample log, whatever lies beside the log."""
    schema = schema_of(result)
    return pa.Table.from_batches(
        [batch.select(columns) for batch in batches(result)], pa.schema([schema.field(name) for name in columns])
    )


def records(result: Result) -> list[Record]:
    """Return the records of a task from the Parquet file beside its log, or else from the log.

    The log is read where the Parquet file is missing or must not be used. The records are only to be read: docs share the
    objects of equal parts. They are without the boxes of their views.

    Raises:
        RecordError: as ``Result.records``.
    """
    stored = _stored(result, list(packed.COLUMNS))
    if stored is not None:
        # a run whose records JSON cannot hold as we write it
        with contextlib.suppress(ValueError):
            found = packed.unpack(stored)
            # some thousand docs are left out of the columns where one of them cannot be held
            if len(found) == result.docs:
                return found
    return list(result.records())


def joined(run: Run, task: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the docs of a run's tasks as a single table; null where a task lacks a column.

    Args:
        run: the run.
        task: one of its tasks; None: all but MAGIC tasks.
        columns: as in ``table``.

    Raises:
        OptionError: the run has no such task, or one of the tasks no such column.
        RecordError: no task has views, or a sample log is missing or cannot be read.
    """
    with_views = [result for result in run.results if result.kind.name != "magic" or result.task == task]
    wanted = [result for result in with_views if task in (None, result.task)]
    if not wanted and task is not None:
        raise OptionError(
            f"{run.path}: no task {task!r}; allowed: {', '.join(dict.fromkeys(result.task for result in run.results)) or 'none'}"
        )
    if not wanted:
        raise RecordError(f"{run.path}: no task whose docs have views; ask for one, such as --tasks gqa_rci3")
    return pa.concat_tables(
        [table(result, columns) for result in wanted], promote_options="default"
    ).unify_dictionaries()


# --- the file -------------------------------------------------------------------------------------


def write(results: Sequence[Result]) -> Path:
    """Write the Parquet file of a task beside its sample log, and return its path.

    Args:
        results: all results of the task, one for each filter pipeline.

    Raises:
        RecordError: the log cannot be read, or the file cannot be written.
    """
    first = results[0]
    log = sample_log(first.run.path, first.task)
    # each batch becomes a row group, so the groups of a result are known beforehand
    groups = [0, *itertools.accumulate(math.ceil(result.docs / BATCH) for result in results)]
    filters = [
        {"name": result.filter, "docs": result.docs, "groups": [start, end]}
        for result, (start, end) in zip(results, itertools.pairwise(groups), strict=True)
    ]
    about = {"schema": SCHEMA, "task": first.task, "sample_log": _state_of(log), "filters": filters}
    schema = schema_of(first, packed=True).with_metadata({_ABOUT: json.dumps(about)})
    path = log.with_suffix(".parquet")
    options = {"compression": "zstd", "dictionary_pagesize_limit": _DICTIONARY, "write_page_checksum": True}
    with files.replacing(path) as part, pq.ParquetWriter(part, schema, **options) as out:
        for result in results:
            for batch in batches(result, packed=True):
                out.write_batch(batch, row_group_size=batch.num_rows)
    return path


def _state_of(path: Path) -> dict[str, Any]:
    """Return size and SHA-256 of a file."""
    about = path.stat()
    return {"size": about.st_size, "sha256": _hashed(path, about.st_size, about.st_mtime_ns, about.st_ino)}


@functools.lru_cache(maxsize=1024)
def _hashed(path: Path, *state: int) -> str:
    """Return the SHA-256 of a file; computed once for each state of the file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        # a log may be larger than the memory
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


# --- reading it -----------------------------------------------------------------------------------


class _UnfitError(RecordError):
    """Why a Parquet file must not be used."""


def _beside(result: Result) -> Path | None:
    """Return the Parquet file beside a log; None without such a file, and where reading the log is as quick."""
    path = None if result.log is None or result.docs <= WORTH else result.log.with_suffix(".parquet")
    return path if path is not None and path.is_file() else None


def _stored(result: Result, columns: Sequence[str]) -> pa.Table | None:
    """Return columns of a task's Parquet file.

    None where there is no file that is worth it, or one that must not be used (a warning then says why).
    """
    path = _beside(result)
    if path is None:
        return None
    try:
        return _read(path, result, columns)
    except _UnfitError as unfit:
        why = str(unfit)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        why = f"it cannot be read ({type(error).__name__})"
    log().warning(f"{path}: not used, the sample log is read instead: {why}")
    return None


def _read(path: Path, result: Result, columns: Sequence[str]) -> pa.Table:
    """Return columns of a result from a Parquet file.

    Raises:
        _UnfitError: it is not whole, or not of this log.
    """
    file = pq.ParquetFile(path, memory_map=True, page_checksum_verification=True)
    about = json.loads(file.metadata.metadata[_ABOUT])
    if about["schema"] != SCHEMA:
        raise _UnfitError(f"it is of schema {shown(about['schema'])}; {OTHER_VERSION}")
    if about["task"] != result.task:
        raise _UnfitError(f"it is of the task {about['task']}")
    if about["sample_log"] != _state_of(sample_log(result.run.path, result.task)):
        raise _UnfitError("the sample log was changed after it was written")
    own = [
        one
        for one in about["filters"][result.place : result.place + 1]
        if one["name"] == result.filter and one["docs"] == result.docs
    ]
    if not own:
        raise _UnfitError("it is of another run than the results file")
    if not file.schema_arrow.equals(schema_of(result, packed=True)):
        raise _UnfitError("its columns are not those of this version of lmms-patch")
    return file.read_row_groups(range(*own[0]["groups"]), columns=columns).replace_schema_metadata(None)
