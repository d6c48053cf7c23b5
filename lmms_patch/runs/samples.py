"""The docs of a finished run as tables (docs/tables.md): from the Parquet file beside a sample log, else from the log.

NumPy and pyarrow.

A Parquet file is used only where it is whole and says the same as its log. Its own digest shows that it is whole: it
stands between the last page and the footer, where Parquet leaves room, and covers every other byte. (The checksums of
Parquet itself cover neither the headers of pages nor the footer.) Size and SHA-256 of the log show that the log is
still the same file: a time of change would be quicker to compare, but copies lose it and edits can keep it, and the
hash of a log takes a twentieth of the time that reading it takes.

Whoever changes a Parquet file can write its digest anew, which takes no key. So each time the rows of some docs, chosen
at random, are made from the log again and compared (``HELD``); a log with no more docs is read itself.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import math
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lmms_patch import files
from lmms_patch.errors import OptionError, RecordError, shown, unknown
from lmms_patch.runs import packed
from lmms_patch.runs.logs import Line, lines_at
from lmms_patch.runs.record import Record, log_digest
from lmms_patch.runs.results import sample_log
from lmms_patch.runs.rows import BATCH, batch_of, batches, schema_of
from lmms_patch.runs.run import Result, Run
from lmms_patch.text import log

SCHEMA = 6
"""The version of the Parquet files; readers take no other. It goes up, too, when a column is made otherwise (``tests/runs/test_frozen_rows.py``)."""
_ABOUT = b"lmms_patch"
"""The key of what a file says of itself, in its metadata."""
_MAGIC, _TAIL, _DIGEST = b"PAR1", 8, 32
"""How a Parquet file begins and ends; bytes after the footer (its length, and ``_MAGIC``); bytes of our digest before it."""
HELD = 200
"""Docs of a Parquet file that are compared with the log: a file with forged rows of 1 doc in 20 passes 3 times in 100,000."""
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


def checked(result: Result) -> list[Record] | None:
    """Return the records in the Parquet file beside a task's log, if shown to be the records of the results file.

    When the file was written, the digest of the log's records was found to be the one in the results file; and the log
    is still the same file.

    Returns:
        The records, as ``records`` gives them; None where the file is missing, must not be used, or is of a version
        that did not compare.
    """
    path = _beside(result)
    if path is None:
        return None
    # whatever is wrong with the file, the log has the records
    with contextlib.suppress(_UnfitError, OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        found = packed.unpack(_read(path, result, list(packed.COLUMNS), checked=True))
        return found if len(found) == result.docs else None
    return None


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

    The file says whether the log's records have the digest that the results file has (``checked``).

    Args:
        results: all results of the task, one for each filter pipeline.

    Raises:
        RecordError: the log cannot be read, or the file cannot be written.
    """
    try:
        return _write(results, same=True)
    # records are hashed while they are written, so a difference shows at the end: write again without the claim
    except _OtherRecordsError:
        return _write(results, same=False)


class _OtherRecordsError(Exception):
    """The records of a log are not the records behind the results file."""


def _write(results: Sequence[Result], *, same: bool) -> Path:
    """Write the Parquet file of a task.

    Args:
        results: as in ``write``.
        same: whether to say that the log's records are those of the results file, where that has their digest.

    Raises:
        _OtherRecordsError: they are not.
    """
    first = results[0]
    log = sample_log(first.run.path, first.task)
    # each batch becomes a row group, so the groups of a result are known beforehand
    groups = [0, *itertools.accumulate(math.ceil(result.docs / BATCH) for result in results)]
    filters = [
        {
            "name": result.filter,
            "docs": result.docs,
            "log": (told := _digest_in(result)),
            "groups": [start, end],
            "checked": same and told is not None,
        }
        for result, (start, end) in zip(results, itertools.pairwise(groups), strict=True)
    ]
    about = {"schema": SCHEMA, "task": first.task, "sample_log": _state_of(log), "filters": filters}
    schema = schema_of(first, packed=True).with_metadata({_ABOUT: json.dumps(about)})
    path = log.with_suffix(".parquet")
    with files.replacing(path) as part:
        with pq.ParquetWriter(part, schema, compression="zstd", dictionary_pagesize_limit=_DICTIONARY) as out:
            for result in results:
                hashes: list[bytes] = []
                for batch in batches(result, packed=True, hashes=hashes):
                    out.write_batch(batch, row_group_size=batch.num_rows)
                if same and (told := _digest_in(result)) is not None and log_digest(hashes, result.all_docs) != told:
                    raise _OtherRecordsError
        _seal(part)
    return path


def _digest_in(result: Result) -> str | None:
    """Return the digest of a result's records in its results file; None in older files."""
    return result.made.log or None


def _state_of(path: Path) -> dict[str, Any]:
    """Return size and SHA-256 of a file."""
    about = path.stat()
    return {"size": about.st_size, "sha256": _hashed(path)[0]}


def _hashed(path: Path) -> tuple[str, NDArray[np.int64]]:
    """Return the SHA-256 of a file, and where each of its lines ends."""
    about = path.stat()
    return _hashed_once(path, about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino)


@functools.lru_cache(maxsize=1024)
def _hashed_once(path: Path, *state: int) -> tuple[str, NDArray[np.int64]]:
    """Return what ``_hashed`` returns; computed once for each state of the file."""
    # the hash and the ends of lines in a single pass over the file
    digest, ends, at = hashlib.sha256(), [np.zeros(0, np.int64)], 0
    with open(path, "rb") as file:
        # a log may be larger than the memory
        while part := file.read(1 << 20):
            digest.update(part)
            ends.append(np.flatnonzero(np.frombuffer(part, np.uint8) == ord("\n")) + at)
            at += len(part)
    return digest.hexdigest(), np.concatenate(ends)


def _seal(path: Path) -> None:
    """Write the digest of a Parquet file into the file, before its footer."""
    with open(path, "r+b") as file:
        whole = file.read()
        footer = _footer(whole)
        file.seek(footer)
        file.write(hashlib.sha256(whole).digest() + whole[footer:])


def _check_seal(whole: memoryview) -> None:
    """Refuse a file of which a byte was changed since it was written.

    Raises:
        _UnfitError: a byte was changed, or lmms-patch did not write the file.
    """
    footer = _footer(whole)
    digest = hashlib.sha256(whole[: footer - _DIGEST])
    digest.update(whole[footer:])
    if digest.digest() != whole[footer - _DIGEST : footer]:
        raise _UnfitError("it was changed, or was not written by lmms-patch")


def _footer(whole: bytes | memoryview) -> int:
    """Return where the footer of a Parquet file begins.

    Raises:
        _UnfitError: the file does not begin and end as a Parquet file does.
    """
    # a Parquet file ends with the length of its footer and the word PAR1
    footer = len(whole) - _TAIL - int.from_bytes(whole[-_TAIL:-4], "little")
    if whole[:4] != _MAGIC or whole[-4:] != _MAGIC or footer < len(_MAGIC):
        raise _UnfitError("it is cut, or no Parquet file")
    return footer


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


def _read(path: Path, result: Result, columns: Sequence[str], *, checked: bool = False) -> pa.Table:
    """Return columns of a result from a Parquet file.

    Args:
        path: the file.
        result: the result.
        columns: their names.
        checked: take only a file whose records were compared with the results file when it was written.

    Raises:
        _UnfitError: it is not whole, or not of this log.
    """
    whole = pa.memory_map(str(path)).read_buffer()
    _check_seal(memoryview(whole).cast("B"))
    # read from the bytes that were checked: another process may replace the file meanwhile
    file = pq.ParquetFile(pa.BufferReader(whole))
    about = json.loads(file.metadata.metadata[_ABOUT])
    if about["schema"] != SCHEMA:
        raise _UnfitError(f"it is of schema {shown(about['schema'])}; this version of lmms-patch reads schema {SCHEMA}")
    if about["task"] != result.task:
        raise _UnfitError(f"it is of the task {about['task']}")
    if about["sample_log"] != _state_of(sample_log(result.run.path, result.task)):
        raise _UnfitError("the sample log was changed after it was written")
    own = [
        one
        for one in about["filters"][result.place : result.place + 1]
        if one["name"] == result.filter and one["docs"] == result.docs
    ]
    if not own or own[0]["log"] != _digest_in(result):
        raise _UnfitError("it is of another run than the results file")
    if checked and own[0].get("checked") is not True:
        raise _UnfitError("its records were not compared with the results file")
    if not file.schema_arrow.equals(schema_of(result, packed=True)):
        raise _UnfitError("its columns are not those of this version of lmms-patch")
    # ``_is_of_log`` finds the docs by their first views
    needed = list(dict.fromkeys([*columns, "doc_id", "view"]))
    found = file.read_row_groups(range(*own[0]["groups"]), columns=needed).replace_schema_metadata(None)
    if not _is_of_log(found, result):
        raise _UnfitError("its rows are not those of the sample log")
    return found.select(columns)


def _is_of_log(found: pa.Table, result: Result) -> bool:
    """Return whether the rows of some docs, chosen at random, equal the rows made from the log."""
    views = found["view"].to_numpy()
    starts = np.flatnonzero(views == 0)
    ends = np.append(starts[1:], len(views))
    if len(starts) != result.docs or starts[0] != 0:
        return False
    # not from a seed: a forger must not know which docs are compared
    chosen = sorted(secrets.SystemRandom().sample(range(len(starts)), min(HELD, len(starts))))
    own = found.take(np.concatenate([np.arange(starts[doc], ends[doc]) for doc in chosen]))
    fresh = batch_of(result, _lines(result, chosen), packed=True).select(found.column_names)
    # in its repr, nan is nan
    return repr(own.to_pydict()) == repr(pa.Table.from_batches([fresh]).to_pydict())


def _lines(result: Result, places: Sequence[int]) -> list[Line]:
    """Return lines of a result from the log, by their places among the result's lines, from 0."""
    # which lines are of which filter, only the lines before tell
    if result.pipelines > 1:
        wanted = set(places)
        return [line for place, line in enumerate(result.lines()) if place in wanted]
    log = sample_log(result.run.path, result.task)
    ends = _hashed(log)[1]
    spans = [(int(ends[place - 1]) + 1 if place else 0, int(ends[place])) for place in places]
    return list(lines_at(log, spans))
