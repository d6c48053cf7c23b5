"""Reads tables of indices that somebody published, or that a page of ours wrote: CSV -> rows. Pure.

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
from collections.abc import Iterator, Mapping
from pathlib import Path

from lmms_patch.ask.kinds import MAX_GRID, MIN_GRID, RCI, TRCI
from lmms_patch.errors import RecordError
from lmms_patch.present.page.rows import Row
from lmms_patch.runs import reading
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import from_csv_cell

INDEX = ("rci", "pcri", "index", "trci")
EMPTY = ("", "n/a", "na", "nan", "null", "none", "-")
ENDS = ("", "_low", "_high", "_note", "_reason")
LARGEST = 10_000_000
"""Bytes: no table of indices is larger; anything else was given by mistake."""
TYPES = {"mcq": "multiple choice", "yesno": "yes/no", "vqa": "visual question answering", "caption": "captioning"}
"""The papers' task types, and what they are called for people (PCRI paper, 4)."""
_KNOWN = {
    "mcq": ("ai2d", "blink", "mmmu", "mmstar", "realworldqa", "scienceqa"),
    "yesno": ("amber", "hallusionbench", "mme", "pope"),
    "vqa": ("chartqa", "gqa", "textvqa", "vizwiz"),
    "caption": ("coco", "mscoco"),
}
"""Task types of the papers' benchmarks (PCRI paper, 4), for tables that do not say them."""
_WIDE = re.compile(r"^(?P<model>.+), *n *= *(?P<n>\d+)(?P<end>_low|_high|_note|_reason)?$", re.IGNORECASE)
_ALLOWED = (
    "expected the columns dataset,model,n,rci (or pcri); or dataset and a column '<model>, n=3' for each model and grid"
)


def read(path: Path) -> list[Row]:
    """Return the indices of a table, in its order.

    Raises:
        RecordError: not a CSV file of one of the two layouts; a line with another number of cells, a grid outside of
            2..9, an index that is not a number or above 1, ends that do not hold it, or the same benchmark, model and
            grid twice. Says the line.
    """
    (_, head), *lines = _lines(path)
    names = [name.lower() for name in head]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    benchmark = [name for name in ("dataset", "benchmark") if name in names]
    index = [name for name in INDEX if name in names]
    wide = {name: match for name in head if (match := _WIDE.match(name))}
    long = {"model", "n"} <= set(names)
    if twice is not None or len(benchmark) != 1 or (len(index) != 1 if long else not wide):
        found = f"the column {twice!r} comes twice" if twice is not None else f"its columns are {', '.join(head)}"
        raise RecordError(f"{path}: {found}; {_ALLOWED}")
    out: dict[tuple[str, str, int | None, str], Row] = {}
    for number, cells in lines:
        where = f"{path}, line {number}"
        if len(cells) != len(head):
            raise RecordError(f"{where}: {len(cells)} cells, but the head has {len(head)}")
        row = dict(zip(names, cells, strict=True))
        given: dict[tuple[str, str], dict[str, str]] = {}
        if long:
            given[row["model"], row["n"]] = {end: row.get(f"{index[0]}{end}", "") for end in ENDS}
        for name, match in wide.items() if not long else ():
            given.setdefault((match["model"], match["n"]), {})[(match["end"] or "").lower()] = row[name.lower()]
        for (model, n), ends in given.items():
            if not (ends.get("") or ends.get("_reason")):
                continue  # this model was not asked, or there is no index in this row
            in_time = "trci" in (*index, row.get("kind", ""))
            made = _row(where, (row[benchmark[0]], model, n), ends, row, in_time, path.name)
            key = made.benchmark, made.model, made.n, made.kind.way
            if key in out:
                raise RecordError(f"{where}: {made.benchmark} with {made.model} at n={made.n} comes twice")
            out[key] = made
    if not out:
        raise RecordError(f"{path}: a head, but no row with an index")
    return list(out.values())


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the non-empty rows, each with its line number; the head first, which is there."""
    try:
        if path.stat().st_size > LARGEST:
            raise RecordError(f"{path}: larger than {LARGEST // 1_000_000} MB; not a table of indices")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise RecordError(f"{path}: not a text file in UTF-8; {_ALLOWED}")
    if not text.strip(" \r\n,"):
        raise RecordError(f"{path}: an empty table; {_ALLOWED}")
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in rows:
            if any(cell.strip() for cell in row):
                yield rows.line_num, [from_csv_cell(cell.strip()) for cell in row]
    except csv.Error as error:
        raise RecordError(f"{path}, line {rows.line_num}: not CSV ({error})") from None


def _row(
    where: str,
    named: tuple[str, str, str],
    ends: Mapping[str, str],
    row: Mapping[str, str],
    in_time: bool,
    source: str,
) -> Row:
    benchmark, model, n = named
    docs, given = row.get("docs", ""), row.get("type", "")
    value, low, high = (_number(where, ends.get(end, "")) for end in ("", "_low", "_high"))
    faults = {
        "no benchmark or no model": not (benchmark and model),
        f"n is {n!r}; expected a grid size from {MIN_GRID} to {MAX_GRID}": not (
            re.fullmatch(r"\d", n, re.ASCII) and int(n) >= MIN_GRID
        ),
        f"docs is {docs!r}; expected a whole number": bool(docs and not re.fullmatch(r"\d{1,12}", docs, re.ASCII)),
        f"type is {given!r}; allowed: {', '.join(TYPES)}": bool(given and task_type("", given) not in TYPES),
        "an index above 1: 1 - MPP/FIP is at most 1; is it in percent?": any(
            end is not None and end > 1 for end in (value, low, high)
        ),
        "one end of an interval without the other": (low is None) != (high is None),
        "an index outside of its interval": None not in (value, low, high) and not low - 1e-9 <= value <= high + 1e-9,  # type: ignore[operator] # none of the three is None here
    }
    if fault := next((text for text, so in faults.items() if so), ""):
        raise RecordError(f"{where}: {fault}")
    reason = ends.get("_reason", "") or ("" if value is not None else "the table has no number")
    known = Estimate(
        value, None, *((low, high) if value is not None else (None, None)), int(docs or 0), 0, 0, reason=reason
    )
    words = [word for word in (reading.CONTRADICTED, reading.MARGINAL) if word in ends.get("_note", "").split(", ")]
    kind = TRCI if in_time else RCI
    numbers = {"index": reading.noted(known, *words)}
    return Row(
        benchmark, model, kind, int(n), numbers, int(docs) if docs else None, task_type(benchmark, given), source=source
    )


def _number(where: str, text: str) -> float | None:
    """Return a cell as a number; None for an empty cell."""
    try:
        value = None if text.lower() in EMPTY else float(text)
    except ValueError:
        value = math.nan
    if value is not None and not math.isfinite(value):
        raise RecordError(f"{where}: an index is {text!r}; expected a number such as -0.215, or nothing")
    return value


def task_type(benchmark: str, given: str = "") -> str:
    """Return a task type of the papers: the given type, or the type of a benchmark known from the papers.

    "" where neither is known.

    >>> task_type("GQA_TestDev_Balanced"), task_type("AI2D_TEST"), task_type("gqarium")
    ('vqa', 'mcq', '')
    """
    if given:
        return {title: kind for kind, title in TYPES.items()}.get(given.lower(), given.lower())
    first = re.split(r"[\s_]", benchmark.lower().replace("-", ""))[0]
    return next((kind for kind, names in _KNOWN.items() if first in names), "")
