"""A table, and the forms in which it is written: plain text, CSV, JSON, Markdown, LaTeX. Pure.

A cell is a text, a number, None (there is nothing to say), or an ``Estimate``, which brings its interval, and its
reason where its value is None; its ``words`` stand beside the number.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from lmms_patch import text
from lmms_patch.ask.methods import Method
from lmms_patch.runs import reading
from lmms_patch.runs.run import Labelled
from lmms_patch.stats.resample import Estimate

Cell = str | int | float | bool | Estimate | None
Cells = list[Cell]
Row = dict[str, Cell]
"""The cells of a row by the keys of their columns."""
NOT_DEFINED = "N/A"
"""What every table says in place of a number that is not defined."""
FORMS = {"csv": "to_csv", "json": "to_json", "md": "to_markdown", "tex": "to_latex"}
"""File ending -> method of ``Sheet``."""
_LIKE_A_NUMBER = re.compile(r"[-+<]?\d[\d.]*(?:[\s\[,–%]|$)")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        key: its name in CSV and JSON.
        title: its head, for people; its key where nothing else is said.
        signed: write a plus before numbers above 0.
        digits: decimals of fractions; whole numbers are written as they are.
        help: one sentence on what it is, with its unit.
        index: whether pages colour its numbers by the bands of the index.
        percent: whether people read its fractions as whole percent.
        aside: whether it stands in files alone, and not on a page.
    """

    key: str
    title: str = ""
    signed: bool = False
    digits: int = 3
    help: str = ""
    index: bool = False
    percent: bool = False
    aside: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.key)


Heads = list[str | Column]
"""The heads of a table for display only (``table``)."""


@dataclass(frozen=True)
class Sheet:
    """A table.

    Attributes:
        name: of its files, without ending.
        title: for people.
        columns: in order.
        rows: by column key; a key that is missing is None.
        note: what to know to read it; may be empty.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Cell]]
    note: str = ""

    def shown(self, row: Mapping[str, Cell], column: Column) -> str:
        """Return a cell as text for people."""
        return shown(row.get(column.key), column)

    def to_json(self) -> dict[str, Any]:
        """Return ``name``, ``title``, ``note``, ``columns`` and ``rows`` as plain JSON types.

        Each cell as ``to_json`` gives it.
        """
        columns = [{"key": c.key, "title": c.title, "help": c.help} for c in self.columns]
        rows = [{c.key: to_json(row.get(c.key)) for c in self.columns} for row in self.rows]
        return {"name": self.name, "title": self.title, "note": text.block(self.note), "columns": columns, "rows": rows}

    def written(self, form: str) -> str:
        """Return the table as the text of a file in a form of ``FORMS``."""
        made = getattr(self, FORMS[form])()
        return made if isinstance(made, str) else json.dumps(made, indent=2, allow_nan=False, ensure_ascii=False) + "\n"

    def to_csv(self) -> str:
        """Return the table with a head.

        An estimate takes the columns ``<key>``, ``<key>_low``, ``<key>_high``; ``<key>_note`` where one has words
        beside it, and ``<key>_reason`` where one is not defined.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        spread = {c.key: _spread([row.get(c.key) for row in self.rows]) for c in self.columns}
        writer.writerow([text.csv_cell(c.key + end) for c in self.columns for end in spread[c.key]])
        for row in self.rows:
            writer.writerow([_csv_cell(row.get(c.key), end) for c in self.columns for end in spread[c.key]])
        return out.getvalue()

    def to_markdown(self) -> str:
        """Return a GitHub table."""
        head, *rows = ("| " + " | ".join(map(text.markdown, line)) + " |\n" for line in self._lines())
        return "".join([head, "| " + " | ".join("---" for _ in self.columns) + " |\n", *rows])

    def to_latex(self) -> str:
        r"""Return a ``tabular`` for ``\usepackage{booktabs}``."""
        align = "".join("l" if any(isinstance(row.get(c.key), str) for row in self.rows) else "r" for c in self.columns)
        head, *rows = (" & ".join(map(text.latex, line)) + " \\\\\n" for line in self._lines())
        return f"\\begin{{tabular}}{{{align}}}\n\\toprule\n{head}\\midrule\n{''.join(rows)}\\bottomrule\n\\end{{tabular}}\n"

    def to_text(self, width: int | None = None) -> str:
        """Return the table for a terminal: a line under its head, columns of numbers to the right.

        Args:
            width: characters in a line. Columns that do not fit come below in tables of their own, each behind the
                first columns that hold no numbers; a line may still be longer where a column is too wide beside these.
                None: any.
        """
        lines = [[text.line(cell) for cell in line] for line in self._lines()]
        columns, named = [], 1
        for place, cells in enumerate(zip(*lines, strict=True)):
            most = max(map(cell_len, cells))
            right = place > 0 and any(map(_LIKE_A_NUMBER.match, cells[1:]))
            # The columns of texts at the left name the rows, so they are repeated in each part.
            named += place == named and not right
            pads = [" " * (most - cell_len(cell)) for cell in cells]
            columns.append([pad + cell if right else cell + pad for cell, pad in zip(cells, pads, strict=True)])
        return "\n\n".join(map(_ruled, _parts(columns, named, width)))

    def _lines(self) -> list[list[str]]:
        """Return the head and the rows as people read them."""
        return [[c.title for c in self.columns], *([self.shown(row, c) for c in self.columns] for row in self.rows)]


def _parts(columns: Sequence[Sequence[str]], named: int, width: int | None) -> list[list[Sequence[str]]]:
    """Return columns in parts within a width, each part beginning with the columns of row names.

    Args:
        columns: cells of equal length in each.
        named: how many of the first columns name the rows; fewer are repeated where they take more than two thirds of
        the width.
        width: characters in a line; None: any.
    """
    widths = [cell_len(column[0]) for column in columns]
    if width is None or sum(widths) + 2 * (len(widths) - 1) <= width:
        return [[*columns]]
    # Where names alone would fill the line, fewer of them are repeated.
    while named > 1 and sum(widths[:named]) + 2 * (named - 1) > 2 * width / 3:
        named -= 1
    first = [*columns[:named]]
    parts, taken = [first], sum(widths[:named]) + 2 * (named - 1)
    left = width - taken
    for column, wide in zip(columns[named:], widths[named:], strict=True):
        if 2 + wide > left and len(parts[-1]) > named:
            parts.append(first)
            left = width - taken
        parts[-1] = [*parts[-1], column]
        left -= 2 + wide
    return parts


def _ruled(columns: Iterable[Sequence[str]]) -> str:
    """Return columns of equally long cells as lines, with a rule under the first."""
    head, *rows = ("  ".join(line).rstrip() for line in zip(*columns, strict=True))
    return "\n".join([head, "-" * cell_len(head), *rows])


def table(heads: Iterable[str | Column], rows: Iterable[Sequence[Cell]]) -> Sheet:
    """Return a table for display only, whose columns need no names.

    Args:
        heads: titles, or columns whose keys do not count.
        rows: as many cells each.
    """
    given = [Column(head) if isinstance(head, str) else head for head in heads]
    # Not an empty title: the column would be called by its place.
    columns = tuple(Column(str(place), c.title or " ", c.signed, c.digits, c.help) for place, c in enumerate(given))
    return Sheet("", "", columns, [{c.key: cell for c, cell in zip(columns, row, strict=True)} for row in rows])


def used(columns: Iterable[Column], rows: Sequence[Mapping[str, Cell]]) -> tuple[Column, ...]:
    """Return the columns with a value in any row."""
    return tuple(c for c in columns if any(row.get(c.key) is not None for row in rows))


def of_methods(shown: Iterable[Labelled]) -> list[Sheet]:
    """Return the tables of methods from outside (``ask.methods``)."""
    by_method: dict[Method, list[Labelled]] = {}
    for one in shown:
        if method := one.result.kind.brought:
            by_method.setdefault(method, []).append(one)
    return [sheet for method, some in by_method.items() for sheet in method.sheets(some)]


# --- cells ----------------------------------------------------------------------------------------


def or_na(cell: Cell) -> Cell:
    """Return a cell; for None what tables say of an undefined number."""
    return NOT_DEFINED if cell is None else cell


def signed(cell: Cell) -> str:
    """Return a difference or an index as text for people, with a plus above 0."""
    return shown(cell, Column("", signed=True))


def shown(cell: Cell, column: Column | None = None) -> str:
    """Return a cell as text for people.

    >>> shown(Estimate(0.5, 0.1, 0.25, 0.75, 9, 9, 9)), shown(-0.25), shown(None)
    ('0.500 [0.250, 0.750]', '-0.250', '')
    """
    column = column or Column("")
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if not isinstance(cell, Estimate):
        return f"{number(100 * cell, digits=0)} %" if column.percent else number(cell, column.signed, column.digits)
    if cell.value is None:
        return NOT_DEFINED
    if column.percent:
        return ", ".join([f"{100 * cell.value:.0f} %{ends_in_percent(cell)}", *reading.words(cell)])
    return reading.text(cell, lambda value: number(value, column.signed, column.digits))


def said(cell: Cell, signed: bool = False, digits: int = 3) -> str:
    """Return a cell as text for pages: with true minus signs, and from 10 up with at most a single decimal."""
    ends = (cell.value, cell.low, cell.high) if isinstance(cell, Estimate) else (cell,)
    large = any(isinstance(end, float) and abs(end) >= 10 for end in ends)
    return shown(cell, Column("", signed=signed, digits=min(digits, 1) if large else digits)).replace("-", "−")


def number(value: float | int | None, signed: bool = False, digits: int = 3, thousands: bool = False) -> str:
    """Return a number as text for people.

    Args:
        value: the number; None or not finite: it is not defined.
        signed: write a plus before numbers above 0.
        digits: decimals of fractions.
        thousands: set commas between thousands.

    >>> number(-0.25, signed=True), number(-0.0001), number(3), number(None)
    ('-0.250', '0.000', '3', 'N/A')
    """
    if value is None or not math.isfinite(value):
        return NOT_DEFINED
    form = f"{'+' if signed else ''}{',' if thousands else ''}"
    if isinstance(value, int):
        return f"{value:{form}d}"
    said = f"{value:{form}.{digits}f}"
    # A rounded -0.0001 must not read as -0.000.
    return said if any(c in "123456789" for c in said) else said.lstrip("+-")


def ends_in_percent(share: Estimate) -> str:
    """Return the interval of a share in whole percent, with a space before; empty without an interval."""
    return "" if share.low is None or share.high is None else f" [{100 * share.low:.0f}, {100 * share.high:.0f}]"


def levels(cells: Iterable[Cell]) -> str:
    """Return at which levels the intervals among some cells are, in words; empty where none has an interval.

    >>> levels([Estimate(0.5, 0.1, 0.25, 0.75, 9, 9, 9), Estimate(0.5, 0.1, 0.3, 0.7, 9, 9, 9, level=0.9), "text", None])
    '90 % or 95 %'
    """
    known = {
        cell.level for cell in cells if isinstance(cell, Estimate) and cell.low is not None and cell.high is not None
    }
    return " or ".join(f"{100 * level:.4g} %" for level in sorted(known))


def levels_in(sentence: str, cells: Iterable[Cell], otherwise: str = "") -> str:
    """Return a sentence with the levels of some cells' intervals (``levels``) in its place.

    Something else where none has an interval.
    """
    level = levels(cells)
    return sentence.format(level) if level else otherwise


ESTIMATE = ("value", "se", "low", "high", "n", "clusters", "level")
"""The fields of an estimate in the JSON files that people read; the reason comes with them where the file has no other place for it."""


def to_json(cell: Cell, fields: Sequence[str] = (*ESTIMATE, "reason")) -> Any:
    """Return a cell in plain JSON types: an estimate as an object, with its notes under ``note``.

    Nothing as null.

    Args:
        cell: the cell.
        fields: what of an estimate is written.
    """
    if isinstance(cell, Estimate):
        said = {"note": ", ".join(reading.words(cell))} if reading.words(cell) and "reason" in fields else {}
        return {key: to_json(getattr(cell, key)) for key in fields} | said
    if isinstance(cell, str):
        return text.block(cell)
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _spread(cells: Sequence[Cell]) -> list[str]:
    """Return the name endings of the CSV columns needed for some cells."""
    estimates = [cell for cell in cells if isinstance(cell, Estimate)]
    told = {
        "_note": any(map(reading.words, estimates)),
        "_reason": any(one.value is None and one.reason for one in estimates),
    }
    return ["", *(["_low", "_high"] if estimates else []), *(end for end, is_there in told.items() if is_there)]


def _csv_cell(cell: Cell, end: str) -> Any:
    """Return a cell's value for a CSV column with a given name ending."""
    if isinstance(cell, Estimate):
        reason = cell.reason if cell.value is None else None
        value = {
            "": cell.value,
            "_low": cell.low,
            "_high": cell.high,
            "_note": ", ".join(reading.words(cell)),
            "_reason": reason,
        }[end]
    else:
        value = cell if not end else None
    # ``repr`` gives back the very same float; nan and infinity are no numbers in a CSV file.
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    if isinstance(value, str):
        return text.csv_cell(value)
    return "" if value is None else value
