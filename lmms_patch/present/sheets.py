"""A table, and the forms in which it is written: plain text, CSV, JSON, Markdown, LaTeX. Pure.

A cell is a text, a number, None (there is nothing to say), or an ``Estimate``, which brings its interval, and its reason where
its value is None; a ``reading.Noted`` also brings words that stand beside the number.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_patch import text
from lmms_patch.runs import reading
from lmms_patch.stats.resample import Estimate

Cell = str | int | float | bool | Estimate | None
NOT_DEFINED = "N/A"
FORMS = {"csv": "to_csv", "json": "to_json", "md": "to_markdown", "tex": "to_latex"}
"""File ending -> method of ``Sheet``."""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        key: its name in CSV and JSON.
        title: its head, for people.
        signed: write a plus before numbers above 0.
        digits: decimals of fractions; whole numbers are written as they are.
        help: one sentence on what it is, with its unit.
    """

    key: str
    title: str
    signed: bool = False
    digits: int = 3
    help: str = ""


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
    rows: tuple[Mapping[str, Cell], ...]
    note: str = ""

    def shown(self, row: Mapping[str, Cell], column: Column) -> str:
        """A cell as people read it."""
        return shown(row.get(column.key), column)

    def to_json(self) -> dict[str, Any]:
        """``name``, ``title``, ``note``, ``columns`` (``key``, ``title``, ``help``) and ``rows``; estimates as objects, nothing as null."""
        columns = [{"key": c.key, "title": c.title, "help": c.help} for c in self.columns]
        rows = [{c.key: _plain(row.get(c.key)) for c in self.columns} for row in self.rows]
        return {"name": self.name, "title": self.title, "note": self.note, "columns": columns, "rows": rows}

    def to_csv(self) -> str:
        """Return the table with a head.

        An estimate takes the columns ``<key>``, ``<key>_low``, ``<key>_high``; ``<key>_note`` where one has words beside it, and
        ``<key>_reason`` where one is not defined.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        spread = {c.key: _spread([row.get(c.key) for row in self.rows]) for c in self.columns}
        writer.writerow([text.csv_cell(c.key + end) for c in self.columns for end in spread[c.key]])
        for row in self.rows:
            writer.writerow([_csv_cell(row.get(c.key), end) for c in self.columns for end in spread[c.key]])
        return out.getvalue()

    def to_markdown(self) -> str:
        """A GitHub table."""
        lines = [[c.title for c in self.columns], *([self.shown(row, c) for c in self.columns] for row in self.rows)]
        head, *rows = ("| " + " | ".join(map(text.markdown, line)) + " |\n" for line in lines)
        return "".join([head, "| " + " | ".join("---" for _ in self.columns) + " |\n", *rows])

    def to_latex(self) -> str:
        r"""A ``tabular`` for ``\usepackage{booktabs}``."""
        align = "".join("l" if any(isinstance(row.get(c.key), str) for row in self.rows) else "r" for c in self.columns)
        head = " & ".join(text.latex(c.title) for c in self.columns)
        body = "".join(" & ".join(text.latex(self.shown(row, c)) for c in self.columns) + " \\\\\n" for row in self.rows)
        return f"\\begin{{tabular}}{{{align}}}\n\\toprule\n{head} \\\\\n\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n"

    def to_text(self) -> str:
        """Columns aligned with spaces, for a terminal."""
        rows = [[text.line(c.title) for c in self.columns], *([text.line(self.shown(row, c)) for c in self.columns] for row in self.rows)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(self.columns))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def shown(cell: Cell, column: Column | None = None) -> str:
    """A cell as people read it.

    >>> shown(Estimate(0.5, 0.1, 0.25, 0.75, 9, 9, 9)), shown(-0.25), shown(None)
    ('0.500 [0.250, 0.750]', '-0.250', '')
    """
    column = column or Column("", "")
    if cell is None:
        return ""
    if isinstance(cell, Estimate):
        return NOT_DEFINED if cell.value is None else reading.text(cell, lambda value: _number(value, column))
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return cell if isinstance(cell, str) else _number(cell, column)


def _number(value: float, column: Column) -> str:
    if isinstance(value, int):
        return f"{value:+d}" if column.signed else str(value)
    if not math.isfinite(value):
        return NOT_DEFINED
    said = f"{value:{'+' if column.signed else ''}.{column.digits}f}"
    zero = f"{0:.{column.digits}f}"
    return zero if said in (f"-{zero}", f"+{zero}") else said


def _spread(cells: Sequence[Cell]) -> list[str]:
    found = [cell for cell in cells if isinstance(cell, Estimate)]
    told = {"_note": any(map(reading.words, found)), "_reason": any(one.value is None and one.reason for one in found)}
    return ["", *(["_low", "_high"] if found else []), *(end for end, is_there in told.items() if is_there)]


def _csv_cell(cell: Cell, end: str) -> Any:
    if isinstance(cell, Estimate):
        reason = cell.reason if cell.value is None else None
        value = {"": cell.value, "_low": cell.low, "_high": cell.high, "_note": ", ".join(reading.words(cell)), "_reason": reason}[end]
    else:
        value = cell if not end else None
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    if isinstance(value, str):
        return text.csv_cell(value)
    return "" if value is None else value


def _plain(cell: Cell) -> Any:
    if isinstance(cell, Estimate):
        said = {"note": ", ".join(reading.words(cell))} if reading.words(cell) else {}
        return {key: _plain(getattr(cell, key)) for key in ("value", "se", "low", "high", "n", "clusters", "level", "reason")} | said
    if isinstance(cell, str):
        return text.block(cell)
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
