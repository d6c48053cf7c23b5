"""Reads tables of indices that somebody published, or that a report of ours wrote: CSV -> points. Pure.

Two layouts, with a head; column names in any case:

- one index a row: ``dataset`` (or ``benchmark``), ``model``, ``n``, ``rci`` (or ``pcri``, ``index``; ``trci`` in time);
  and if you like ``docs``, ``type``, ``<index>_low``, ``<index>_high``, ``<index>_note`` (``contradicted``),
  ``<index>_reason``;
- the RCI paper's Table 2: ``dataset`` (or ``benchmark``), and one column ``<model>, n=<grid>`` for each model and grid.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lmms_patch.ask.kinds import MAX_GRID, MIN_GRID
from lmms_patch.errors import RecordError
from lmms_patch.present.report.points import TYPES, Point
from lmms_patch.runs import reading
from lmms_patch.text import from_csv_cell

BENCHMARK, INDEX = ("dataset", "benchmark"), ("rci", "pcri", "index", "trci")
EMPTY = ("", "n/a", "na", "nan", "null", "none", "-")
LARGEST = 10_000_000
"""Bytes: no table of indices is larger; anything else was given by mistake."""
_WIDE = re.compile(r"^(?P<model>.+), *n *= *(?P<n>\d+)(?P<end>_low|_high|_note|_reason)?$", re.IGNORECASE)
_KNOWN = {
    "mcq": ("ai2d", "blink", "mmmu", "mmstar", "realworldqa", "scienceqa"),
    "yesno": ("amber", "hallusionbench", "mme", "pope"),
    "vqa": ("chartqa", "gqa", "textvqa", "vizwiz"),
    "caption": ("coco", "mscoco"),
}
"""Task types of the papers' benchmarks (PCRI paper, 4), for tables that do not say them."""
_ALLOWED = "dataset,model,n,rci (or pcri); or dataset and a column '<model>, n=3' for each model and grid"


def read(path: Path) -> list[Point]:
    """Return the indices of a table, in its order.

    Raises:
        RecordError: not a CSV file of one of the two layouts; a line with another number of cells, a grid outside of
            2..9, an index that is not a number or above 1, ends that do not hold it, or the same benchmark, model and
            grid twice. Says the line.
    """
    lines = _lines(path)
    number, head = next(lines, (0, []))
    names = [name.strip() for name in head]
    keys = [name.lower() for name in names]
    if not any(keys):
        raise RecordError(f"{path}: an empty table; expected the columns {_ALLOWED}")
    twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
    if twice is not None:
        raise RecordError(f"{path}, line {number}: the column {twice!r} comes twice")
    wide = [_WIDE.match(name) for name in names]
    long = "model" in keys and "n" in keys
    reader = _Long(path, keys) if long else _Wide(path, keys, wide) if any(wide) else None
    if reader is None:
        missing = [name for name in ("model", "n") if name not in keys]
        raise RecordError(f"{path}, line {number}: no column {' and no column '.join(missing)}; expected {_ALLOWED}")
    out: dict[tuple[str, str, int, bool], Point] = {}
    for number, row in lines:
        if len(row) != len(names):
            raise RecordError(f"{path}, line {number}: {len(row)} cells, but the head has {len(names)}")
        for point in reader.points(number, [from_csv_cell(cell.strip()) for cell in row]):
            if point.key in out:
                raise RecordError(
                    f"{path}, line {number}: {point.benchmark} with {point.model} at n={point.n} comes twice"
                )
            out[point.key] = point
    if not out:
        raise RecordError(f"{path}: a head, but no row with an index")
    return list(out.values())


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the non-empty rows, each with its line number."""
    try:
        if Path(path).stat().st_size > LARGEST:
            raise RecordError(f"{path}: larger than {LARGEST // 1_000_000} MB; not a table of indices")
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RecordError(
            f"{path}: not a text file in UTF-8; expected a CSV file with the columns {_ALLOWED}"
        ) from None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from None
    if "\0" in text:
        raise RecordError(f"{path}: a binary file; expected a CSV file with the columns {_ALLOWED}")
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in rows:
            if any(cell.strip() for cell in row):
                yield rows.line_num, row
    except csv.Error as error:
        raise RecordError(f"{path}, line {rows.line_num}: not CSV ({error})") from None


def task_type(benchmark: str, given: str = "") -> str:
    """Return a task type of the papers: the given type, or the type of a benchmark known from the papers.

    "" where neither is known.

    >>> task_type("GQA_TestDev_Balanced"), task_type("AI2D_TEST"), task_type("gqarium")
    ('vqa', 'mcq', '')
    """
    if given:
        by_title = {title: kind for kind, title in TYPES.items()}
        return by_title.get(given.lower(), given.lower())
    first = re.split(r"[\s_]", benchmark.lower().replace("-", ""))[0]
    return next((kind for kind, names in _KNOWN.items() if first in names), "")


class _Cells:
    """Reads the cells of a row, and names the line of a wrong cell."""

    def __init__(self, path: Path, keys: Sequence[str]) -> None:
        self.path, self.keys = path, keys
        names = [name for name in BENCHMARK if name in keys]
        if len(names) != 1:
            raise RecordError(
                f"{path}: {'no column dataset' if not names else 'both dataset and benchmark'}; expected {_ALLOWED}"
            )
        self.benchmark = names[0]

    def fail(self, number: int, text: str) -> RecordError:
        return RecordError(f"{self.path}, line {number}: {text}")

    def row(self, cells: Sequence[str]) -> dict[str, str]:
        return dict(zip(self.keys, cells, strict=True))

    def text(self, number: int, row: Mapping[str, str], key: str) -> str:
        if not row[key]:
            raise self.fail(number, f"no {key}")
        return row[key]

    def number(self, line: int, text: str, name: str) -> float | None:
        """Return a cell as a number; None for an empty cell."""
        if text.lower() in EMPTY:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.fail(line, f"{name} is {text!r}; expected a number such as -0.215, or nothing")
        return value

    def grid(self, line: int, text: str) -> int:
        if not re.fullmatch(r"\d{1,2}", text, re.ASCII) or not MIN_GRID <= int(text) <= MAX_GRID:
            raise self.fail(line, f"n is {text!r}; expected a grid size from {MIN_GRID} to {MAX_GRID}")
        return int(text)

    def point(
        self,
        line: int,
        where: tuple[str, str, int],
        cells: Mapping[str, str],
        docs: int | None = None,
        given: str = "",
        in_time: bool = False,
    ) -> Point:
        """Return the point of some cells, which are given by ``""``, ``_low``, ``_high``, ``_note``, ``_reason``."""
        benchmark, model, n = where
        value, low, high = (self.number(line, cells.get(end, ""), f"index{end}") for end in ("", "_low", "_high"))
        for end in (value, low, high):
            if end is not None and end > 1:
                raise self.fail(line, f"an index of {end:g}: 1 - MPP/FIP is at most 1; is it in percent?")
        if (low is None) != (high is None):
            raise self.fail(line, "one end of an interval without the other")
        if value is not None and low is not None and high is not None and not low - 1e-9 <= value <= high + 1e-9:
            raise self.fail(line, f"an index of {value:g} outside of its interval {low:g} to {high:g}")
        reason = cells.get("_reason", "") or ("" if value is not None else "the table has no number")
        if value is None:
            low = high = None
        kind = task_type(benchmark, given)
        words = tuple(
            word
            for word in (reading.CONTRADICTED, reading.MARGINAL)
            if word in cells.get("_note", "").split(", ") and value is not None
        )
        known = (benchmark, model, n, value, low, high, docs, kind, value is not None, reason)
        return Point(*known, source=Path(self.path).name, words=words, in_time=in_time)


class _Long(_Cells):
    """Tables with an index per row."""

    def __init__(self, path: Path, keys: Sequence[str]) -> None:
        super().__init__(path, keys)
        columns = [name for name in INDEX if name in keys]
        if len(columns) != 1:
            what = f"both {' and '.join(columns)}" if columns else "no column rci"
            raise RecordError(f"{path}: {what}; expected the columns {_ALLOWED}")
        self.index = columns[0]

    def points(self, line: int, cells: Sequence[str]) -> Iterator[Point]:
        """Yield the result of a line in a table with a result per line."""
        row = self.row(cells)
        where = self.text(line, row, self.benchmark), self.text(line, row, "model"), self.grid(line, row["n"])
        docs = row.get("docs", "")
        if docs and not re.fullmatch(r"\d{1,12}", docs, re.ASCII):
            raise self.fail(line, f"docs is {docs!r}; expected a whole number")
        ends = {end: row.get(self.index + end, "") for end in ("", "_low", "_high", "_note", "_reason")}
        given = row.get("type", "")
        if given and task_type("", given) not in TYPES:
            raise self.fail(line, f"type is {given!r}; allowed: {', '.join(TYPES)}")
        yield self.point(line, where, ends, int(docs) if docs else None, given, self.index == "trci")


class _Wide(_Cells):
    """Tables with a benchmark per row, and a model and grid per column."""

    def __init__(self, path: Path, keys: Sequence[str], heads: Sequence[re.Match[str] | None]) -> None:
        super().__init__(path, keys)
        self.columns: dict[tuple[str, str], dict[str, int]] = {}
        for i, head in enumerate(heads):
            if head is not None:
                self.columns.setdefault((head["model"], head["n"]), {})[(head["end"] or "").lower()] = i

    def points(self, line: int, cells: Sequence[str]) -> Iterator[Point]:
        """Yield the results of a line in a table with a column for each model and grid."""
        benchmark = self.text(line, self.row(cells), self.benchmark)
        for (model, n), places in self.columns.items():
            ends = {end: cells[i] for end, i in places.items()}
            # An empty cell: this model was not asked.
            if ends.get("") or ends.get("_reason"):
                yield self.point(line, (benchmark, model, self.grid(line, n)), ends)
