"""Rows of a page's tables as markup. Pure.

Why not in a template: a board has tens of thousands of rows, and templates would take most of its time. Texts are
escaped here; there are classes only, no inline styles, as the page's policy allows none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from markupsafe import Markup, escape

from lmms_patch.present.page import wording
from lmms_patch.present.sheets import NOT_DEFINED, Cell, Column, Sheet
from lmms_patch.runs import reading
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import block, cut

LONGEST, WORDY = 600, 40
"""Characters that are shown of a cell, and from which on it is wrapped."""
_MARKS = {reading.VALID: ("right", "✓"), reading.UNKNOWN: ("unknown", "?")}


def rows(
    sheet: Sheet,
    finish: Callable[[str, Mapping[str, Cell], Column], str] = lambda made, row, column: made,
    attributes: str = "",
) -> Markup:
    """Return the body of a table; the first cell of each row is its head.

    Args:
        sheet: the table.
        finish: takes a cell as HTML, its row and its column, and returns what stands in the table.
        attributes: of each row, as HTML, with a space before.
    """
    out = []
    for row in sheet.rows:
        cells = (finish(cell(row.get(c.key), c, not place), row, c) for place, c in enumerate(sheet.columns))
        out.append(f"<tr{attributes}>{''.join(cells)}</tr>")
    return Markup("\n".join(out))


def numeric(sheet: Sheet) -> set[str]:
    """Return the keys of the columns whose cells are numbers."""
    return {
        column.key
        for column in sheet.columns
        if any(isinstance(row.get(column.key), (int, float, Estimate)) for row in sheet.rows)
    }


def cell(given: Cell, column: Column, head: bool = False) -> str:
    """Return a cell as HTML with its sort key; only columns of indices are coloured, by band.

    Args:
        given: the cell.
        column: its column.
        head: whether it is the head of its row.
    """
    raw = escape(cut(wording.raw(given), LONGEST)) if isinstance(given, (int, float, Estimate)) else ""
    value = f' data-value="{raw}"' if raw or isinstance(given, Estimate) else ""
    if isinstance(given, bool):
        given = "yes" if given else "no"
    if isinstance(given, Estimate):
        shown = estimate(given, column.signed, column.digits)
        style = f"num {wording.colour(given)}".rstrip() if column.index else "num"
    elif isinstance(given, (int, float)):
        number = wording.number(given, column.signed, column.digits)
        shown = f'<span class="{"na" if number == NOT_DEFINED else "v"}">{number}</span>'
        style = f"num {wording.band_class(given)}".rstrip() if column.index else "num"
    else:
        shown = gate(given) if column.key == "gate" and given else text(given or "")
        style = "wordy" if len(given or "") > WORDY else ""
    if head:
        return f'<th scope="row"{value}>{shown}</th>'
    return f"<td{f' class={chr(34)}{style}{chr(34)}' if style else ''}{value}>{shown}</td>"


def estimate(number: Estimate, signed: bool = False, digits: int = 3) -> str:
    """Return a number as HTML with interval and notes.

    N/A with the first words of the reason where it is not defined.
    """
    if number.value is None:
        why = (
            f' <span class="why" title="{text(wording.in_words(number.reason))}">{text(wording.short_reason(number.reason))}</span>'
            if number.reason
            else ""
        )
        return f'<span class="na">{NOT_DEFINED}</span>{why}'
    ends, words = wording.ends(number, signed, digits), wording.words(number)
    parts = [f'<span class="v">{wording.value(number, signed, digits)}</span>']
    parts += [f'<span class="ci">{ends}</span>'] if ends else []
    return " ".join([*parts, *([f'<span class="why">{text(words)}</span>'] if words else [])])


def gate(word: str) -> str:
    """Return the state of a gate: a mark and a word (``reading.gate_word``), never colour alone."""
    style, mark = _MARKS.get(word) or (("unknown", "!") if word.startswith(reading.VALID) else ("wrong", "✕"))
    return f'<span class="mark {style}"><span aria-hidden="true">{mark}</span> {text(word)}</span>'


def text(words: str) -> Markup:
    """Return a text escaped, on a bearable length."""
    return escape(block(cut(words, LONGEST)))
