"""Samples tables as files: written whole or not at all, and checked once, at the door (docs/tables.md).

pyarrow writes and reads, with a checksum on every page: a file with a changed byte is refused, where polars alone would
give another number, or panic.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lmms_patch import files
from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import Options
from lmms_patch.errors import OTHER_VERSION, RecordError, shown
from lmms_patch.runs.details import About
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.schema import FIELD, MAY_LACK, OTHER_METRIC, RANGES, REAL, TYPES
from lmms_patch.runs.typed import read_as
from lmms_patch.stats.bounds import LARGEST
from lmms_patch.text import line, whole

KEY = b"lmms_patch"
"""Of the JSON in the footer."""
CHECKSUM = b"lmms_patch_checksum"
"""Of the checksum of that JSON; tables of other programs have none."""
NAME = "_samples_"
"""What stands in a file's name between the run's date and the task."""
_FAULTS = (OSError, ValueError, pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What pyarrow and polars raise at a damaged file; a panic is no ``Exception``."""
_ROWS = 1 << 17
"""Rows of a group: so many are held at once by who reads a table in parts."""


class _Asked(msgspec.Struct):
    """What must be known of a wrapped task."""

    base: str
    kind: str
    grids: list[int]
    metric: str
    options: Options


def path_of(results: Path, task: str) -> Path:
    """Return the place of a task's table, beside the results file of its run."""
    return results.with_name(f"{results.name.removesuffix('_results.json')}{NAME}{task}.parquet")


def write(path: Path, frame: pl.DataFrame, about: About) -> About:
    """Write a task's table, and return what its footer says.

    Args:
        path: the file.
        frame: its rows (``runs.schema``); columns that are null in every row are left out.
        about: what the footer says beside rows, docs and columns.

    Raises:
        RecordError: the file cannot be written.
    """
    kept = frame.select(column.name for column in frame if column.null_count() < len(column))
    told = msgspec.structs.replace(about, rows=len(kept), docs=frame["doc_id"].n_unique(), columns=kept.columns)
    footer = whole(json.dumps(to_json(told), ensure_ascii=False)).encode()
    store(path, kept, {KEY: footer, CHECKSUM: _checksum(footer)})
    return about_of(path)


def store(path: Path, frame: pl.DataFrame, footer: Mapping[bytes, bytes]) -> None:
    """Write a frame with its footer, whole or not at all; every page has a checksum."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest()).replace_schema_metadata(footer)
    with files.replacing(path) as part, open(part, "wb") as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True, row_group_size=_ROWS)


def _checksum(footer: bytes) -> bytes:
    return hashlib.sha256(footer).hexdigest()[:16].encode()


def about_of(path: Path) -> About:
    """Return what the footer of a table says.

    Raises:
        RecordError: it is no such table, is cut, or was written by another version.
    """
    return _about(path, *_state(path))


def is_table(path: Path) -> bool:
    """Return whether a file is a samples table, or was one: what only stands for it, or is cut, counts too."""
    try:
        return KEY in (pq.read_metadata(mapped(path)).metadata or {})
    except _FAULTS:
        return True


def mapped(path: Path) -> pa.MemoryMappedFile:
    """Open a file; pyarrow by itself takes no name that is no Unicode."""
    return pa.memory_map(os.fsencode(path))


def digest_of(path: Path) -> str:
    """Return a digest of a table's content, 16 hex digits; computed once for each state of the file."""
    return _digest(path, *_state(path))


def frame_of(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the rows of a table, checked, with every column of the schema; those that the file lacks are null.

    Args:
        path: the file.
        columns: which to read; None: all.

    Raises:
        RecordError: the file is cut, or not as this version writes it; the message names the doc.
    """
    if _check(path, *_state(path)):
        return _read(path, columns)
    # another program wrote the rows in an order of its own
    whole = _read(path, None if columns is None else list(dict.fromkeys([*columns, *_PLACE])))
    return whole.sort(_PLACE).select(columns or whole.columns)


def _state(path: Path) -> tuple[int, int]:
    try:
        about = path.stat()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from None
    return about.st_size, about.st_mtime_ns


@functools.lru_cache(maxsize=4096)
def _about(path: Path, *state: int) -> About:
    try:
        metadata = pq.read_metadata(mapped(path)).metadata or {}
        told = metadata.get(KEY)
        # pages have checksums in Parquet, the footer has none
        if told is not None and metadata.get(CHECKSUM, _checksum(told)) != _checksum(told):
            raise ValueError("its footer was changed")
        given = None if told is None else files.parse_json(told.decode())
    except _FAULTS as error:
        raise RecordError(f"{path}: {_why(path, error)}") from None
    if not isinstance(given, dict):
        raise RecordError(
            f"{path}: no samples table of lmms-patch: its footer has no {KEY.decode()!r} (docs/tables.md)"
        )
    if given.get("schema") != 1:
        raise RecordError(f"{path}: a table of schema {shown(given.get('schema'))}; {OTHER_VERSION}")
    try:
        about = read_as(given, About, "footer")
        asked = read_as(about.asked, _Asked, "footer.asked")
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from None
    if asked.kind not in KINDS:
        allowed = ", ".join(KINDS)
        raise RecordError(f"{path}: {about.task} is of the unknown kind {shown(asked.kind)}; allowed: {allowed}")
    least, most = KINDS[asked.kind].sizes
    if not all(least <= n <= most for n in asked.grids):
        raise RecordError(
            f"{path}: footer.asked.grids must be whole numbers from {least} to {most}, not {shown(asked.grids)}"
        )
    return about


@functools.lru_cache(maxsize=4096)
def _digest(path: Path, *state: int) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def _why(path: Path, error: BaseException) -> str:
    """Say why a file cannot be read."""
    try:
        with open(path, "rb") as file:
            if file.read(len(files.POINTER)) == files.POINTER:
                return files.PULL
    except OSError as missing:
        return f"cannot be read ({missing.strerror})"
    return f"cut, or damaged ({line(str(error), 200)}); copy it again, or run the task again"


def _read(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    try:
        with pq.ParquetFile(mapped(path), page_checksum_verification=True) as file:
            there = set(file.schema_arrow.names)
            wanted = list(TYPES) + sorted(there - TYPES.keys()) if columns is None else list(columns)
            # a column that is always there says how many rows there are
            frame = pl.DataFrame(pl.from_arrow(file.read([*there & {"doc_id", *wanted}])))
    except _FAULTS as error:
        raise RecordError(f"{path}: {_why(path, error)}") from None
    nulls = [pl.lit(None, TYPES.get(name, REAL)).alias(name) for name in wanted if name not in there]
    return frame.with_columns(nulls).select(wanted)


# --- the check ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _check(path: Path, *state: int) -> bool:
    """Refuse a table that is not as we write it; return whether its rows lie by doc and view.

    Raises:
        RecordError: says what is wrong, of the first doc.
    """
    about = about_of(path)
    try:
        found = pl.DataFrame(pl.from_arrow(pq.read_schema(mapped(path)).empty_table())).schema
    except _FAULTS as error:
        raise RecordError(f"{path}: {_why(path, error)}") from None
    if missing := [
        name for name in about.columns if name not in found and name not in MAY_LACK and not name.startswith(FIELD)
    ]:
        raise RecordError(f"{path}: the column {shown(missing[0])} is missing, which the footer names")
    for name, kind in found.items():
        wanted = REAL if name.startswith(OTHER_METRIC) else TYPES.get(name)
        if wanted is not None and kind != wanted:
            raise RecordError(f"{path}: the column {name} must be {wanted}, not {kind}")
    lists = [name for name in found if name in _LISTS or name.startswith(OTHER_METRIC)]
    frame = _read(path, list(dict.fromkeys([*_NEEDED, *RANGES, *lists])))
    rows, docs = len(frame), frame["doc_id"].n_unique()
    if (rows, docs) != (about.rows, about.docs):
        raise RecordError(
            f"{path}: {rows:,} rows of {docs:,} docs, but its footer says {about.rows:,} of {about.docs:,}; a part is missing or doubled"
        )
    for told, rule in _rules(frame, about).items():
        if len(wrong := frame.filter(rule)):
            raise RecordError(f"{path}: doc {wrong['doc_id'][0]}: {told}")
    doc, view = (pl.col(name).diff() for name in _PLACE)
    later = ((doc > 0) | ((doc == 0) & (view > 0))).over("filter")
    return bool(frame.select(later.fill_null(True).all()).item())


_PLACE = ("doc_id", "view")
_NEEDED = ("filter", "doc_id", "view", "kind", "swapped", "n", "cell", "row", "col", "names", "choices", "gold_at")
_LISTS = {
    "references": ("answer", "roles", "metric"),
    "quick": ("block", "steps", "p_full", "p_cells", "unasked"),
    "tst": (),
}
"""Lists of which numbers are made, and their parts that are never null."""


def _rules(frame: pl.DataFrame, about: About) -> dict[str, pl.Expr]:
    """Return what may be wrong with rows: in words, and an expression that is true of such rows."""
    views = pl.col("view").sort() != pl.int_range(pl.len(), dtype=pl.Int32)
    out = {
        "doc_id, view and kind must not be null": pl.any_horizontal(pl.col("doc_id", "view", "kind").is_null()),
        "it has a view twice, or lacks one": views.any().over("filter", "doc_id"),
        f"filter must be one of {', '.join(about.filters)}": ~pl.col("filter").is_in(about.filters)
        & (len(about.filters) > 1),
        "its first view must show its own image": pl.col("swapped")
        & (pl.col("view") == 0)
        & (not KINDS[about.asked["kind"]].swapped),
    }
    for name, (least, most) in RANGES.items():
        out[f"{name} must be a number from {least:,} to {most:,}"] = ~pl.col(name).is_between(least, most)
    for name in frame.columns:
        if name.startswith(OTHER_METRIC):
            out[f"{name} must be finite"] = ~pl.col(name).is_finite()
        if name in _LISTS:
            out[f"{name} lacks a part, or has a number beyond {LARGEST:g}"] = _faulty(
                frame[name].dtype, pl.col(name), _LISTS[name]
            )
    number = pl.col("row").cast(pl.Int64) * pl.col("n") + pl.col("col") + 1  # a clip's segments are one row
    out["cell must be the number of the cell in its row and column, row by row from 1"] = pl.col(
        "cell"
    ).is_not_null() & (pl.col("cell") != number).fill_null(True)
    for name in ("names", "gold_at"):
        out[f"{name} must be the place of one of its options"] = (pl.col("choices") > 0) & (
            pl.col(name) > pl.col("choices")
        )
    return out


def _faulty(kind: Any, value: pl.Expr, never: Sequence[str] = ()) -> pl.Expr:
    """Return whether a value has a number that is not finite or too large, or lacks a part that is never null."""
    if isinstance(kind, pl.List):
        inside = value.list.eval(_faulty(kind.inner, pl.element(), never)).list.any()
        return inside | (value.list.eval(pl.element().is_null()).list.any() if never else False)
    if isinstance(kind, pl.Struct):
        parts = [_faulty(one.dtype, value.struct.field(one.name)) for one in kind.fields]
        return pl.any_horizontal(
            pl.lit(False), *parts, *(value.is_not_null() & value.struct.field(name).is_null() for name in never)
        )
    return ~value.is_between(-LARGEST, LARGEST) if kind == REAL else pl.lit(False)
