"""The numbers of a run, kept beside its tables: taken where they are of these tables, computed where they are not.

``<date>_numbers.parquet`` has a row a number (``runs.tabular``). Its footer holds the same as the objects that pages
still draw from, each under a key: digest of the table, and version of the computation. A gate never looks here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import lmms_patch
from lmms_patch import files
from lmms_patch.ask.references import digest
from lmms_patch.errors import RecordError
from lmms_patch.runs import samples
from lmms_patch.runs.details import Computed
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.typed import convert

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_patch.runs.run import Result

NAME = "_numbers.parquet"
"""What follows a run's date."""
COMPUTATION = 2
"""Goes up where a number is computed otherwise."""
_FAULTS = (OSError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException, msgspec.ValidationError)
"""What a file of numbers raises that is missing, damaged, or of another program."""


def computed(result: Result) -> Computed:
    """Return the numbers of a result: as they are kept, else computed, and kept for the next reader.

    Raises:
        RecordError: the table is not whole.
    """
    with contextlib.suppress(*_FAULTS):
        kept = _kept(place(result.run.path))[_name(result)]
        if kept["key"] == _key(result, kept["numbers"]):
            return convert(kept["numbers"], Computed)
    found = compute(result)
    keep([dataclasses.replace(result, given=found)])
    return found


def compute(result: Result) -> Computed:
    """Compute the numbers of a result from its table, whatever is kept.

    Raises:
        RecordError: the table is not whole.
    """
    kind = result.kind
    if not kind.suffix:
        return Computed(magic=kind.method.numbers_of(result))
    # every wrapped task is analysed so, also one whose kind another method brings
    rci = import_module("lmms_patch.rci.method").METHOD
    return Computed(rci.numbers_of(result), kind.method.beside(result), drops=rci.drops_of(result))


def keep(results: Sequence[Result]) -> None:
    """Write the numbers of results of a run beside its tables, and leave those of further tasks.

    Where they cannot be written (a folder that nobody may write to), the next reader computes them.
    """
    from lmms_patch.runs.tabular import rows_of

    path = place(results[0].run.path)
    with contextlib.suppress(RecordError, OSError, pa.ArrowException):
        frame, tasks = rows_of(results), {}
        with contextlib.suppress(*_FAULTS, pl.exceptions.PolarsError):
            old = pl.DataFrame(pl.from_arrow(pq.read_table(samples.mapped(path), page_checksum_verification=True)))
            tasks = _kept(path)
            frame = pl.concat([old.join(frame, on=["task", "filter"], how="anti"), frame])
        for one in results:
            found = to_json(one.computed)
            tasks[_name(one)] = {"key": _key(one, found), "numbers": found}
        samples.store(path, frame, {samples.KEY: json.dumps({"schema": 1, "tasks": tasks}).encode()})


def place(results: Path) -> Path:
    """Return where the numbers of a run are kept."""
    return results.with_name(f"{results.name.removesuffix('_results.json')}{NAME}")


def _kept(path: Path) -> dict[str, Any]:
    """Return what a file of numbers holds, by task and filter."""
    found = files.parse_json(pq.read_metadata(samples.mapped(path)).metadata[samples.KEY])
    return dict(found["tasks"]) if found["schema"] == 1 else {}


def _name(result: Result) -> str:
    return f"{result.task},{result.filter}"


def _key(result: Result, numbers: Any) -> str:
    """Return a digest of a table, this version and numbers: the same only of unchanged numbers of this table."""
    assert result.path is not None
    return digest([samples.digest_of(result.path), lmms_patch.__version__, COMPUTATION, numbers])
