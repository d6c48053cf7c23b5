"""Sentences broken into lines that fit a terminal.

Chinese, Japanese and Korean characters take two cells of a line each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len

_WORD = re.compile(r"(?:\[[^][]{1,40}\]|\S| (?=%))+")
"""What stands between spaces; an interval such as ``[0.1, 0.3]`` is a word, or the end of one."""


def fold(text: str, most: int | None, first: str = "", rest: str = "  ") -> str:
    """Return a text broken into lines, at its spaces and beside wide characters.

    Paths, intervals and other narrow words stay whole.

    Args:
        text: the text; spaces in a row become one.
        most: cells in a line, which a single word may exceed; None: the text is not broken.
        first: stands before the first line.
        rest: stands before every other line.
    """
    if most is None:
        return first + text
    lines, line, taken, is_empty = [], first, cell_len(first), True
    for gap, piece in _pieces(text):
        wide = cell_len(gap) + cell_len(piece)
        if taken + wide > most and not is_empty:
            lines.append(line)
            line, taken, is_empty = rest, cell_len(rest), True
        line += piece if is_empty else gap + piece
        taken += cell_len(piece) if is_empty else wide
        is_empty = False
    return "\n".join([*lines, line])


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield what no line may break, each with the space before it, or with nothing where a wide character begins or has ended a piece."""
    for word in _WORD.findall(text):
        pieces = [""]
        for char in word:
            # Combining accents have width 0 and must stay with their letter.
            begins = cell_len(char) == 2 or (cell_len(char) == 1 and cell_len(pieces[-1][:1]) == 2)
            if begins and pieces[-1]:
                pieces.append("")
            pieces[-1] += char
        for place, piece in enumerate(pieces):
            yield "" if place else " ", piece
