"""Names in figures: how much room they take, how they are wrapped and shortened, and short names of models."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from lmms_patch.present.report.points import once
from lmms_patch.text import line

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

FONT = "DejaVu Sans"
SIZE, SMALL = 8.0, 7.0
"""Points. Papers ask for 8 to 9 in figures; numbers in cells and notes are small."""
LEADING = 1.22
"""From one line of text to the next, in sizes of the font."""
_MISSING = 1.17
"""Width of a character that the font lacks, in sizes of the font: those of readers' fonts and matplotlib's boxes are at most as wide."""
_BREAKS = re.compile(r"(?<=[\s\-_/.:,·])")
_LESS = (re.compile(r"^[\w.-]+/(?=[^/\s]+$)"), re.compile(r"(?i)[-_](?:instruct|chat|hf|it)$"))
"""What a short name does without: the owner, and the ending that most models have."""


@functools.cache
def _advance(character: str) -> float:
    """Return the width of a character, in sizes of the font."""
    font = _font()
    if not font.get_char_index(ord(character)):
        return _MISSING
    return float(font.load_char(ord(character)).linearHoriAdvance) / 65536 / 100


@functools.cache
def _font() -> FT2Font:
    """Return the font at 100 points, loaded separately, because matplotlib changes the size of its fonts."""
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    font = FT2Font(findfont(FONT))
    font.set_size(100, 72)
    return font


def width(text: str, size: float = SIZE) -> float:
    """Return the width of a text in inches: of its longest line."""
    return max((sum(map(_advance, one)) for one in text.split("\n")), default=0.0) * size / 72


def height(lines: int, size: float = SIZE) -> float:
    """Return the height of so many lines of text in inches."""
    return lines * LEADING * size / 72


@functools.lru_cache(4096)
def fit(given: str, room: float, size: float = SIZE, lines: int = 2) -> str:
    """Return a name wrapped to fit, with the middle left out where the name is too long for all lines.

    It is broken after separators, unless breaking inside words keeps half as much again of it.

    Args:
        given: any text.
        room: inches across.
        size: of the font, in points.
        lines: how many there may be.
    """
    whole = line(given)
    ways = [_longest(whole, room, size, lines, breaks) for breaks in (_BREAKS, None)]
    kept = [len("".join(way)) for way in ways]
    best = ways[0] if 3 * kept[0] >= 2 * kept[1] else ways[1]
    return "\n".join(best) if best else whole if width(whole, size) <= room else f"{whole[:1]}…"


def _longest(whole: str, room: float, size: float, lines: int, breaks: re.Pattern[str] | None) -> list[str]:
    """Return as much of a text as fits, in lines; empty where nothing fits."""
    for most in range(min(len(whole), int(lines * room * 72 / size / 0.25)), 3, -1):
        shown = line(whole, most)
        wrapped = _wrapped(breaks.split(shown) if breaks else list(shown), room, size)
        if len(wrapped) <= lines and all(width(one, size) <= room for one in wrapped):
            return wrapped
    return []


def _wrapped(parts: Sequence[str], room: float, size: float) -> list[str]:
    """Return the parts of a text in lines of a width, as many parts in each as fit."""
    out = [""]
    for part in parts:
        if width(out[-1] + part.rstrip(), size) > room and out[-1]:
            out.append("")
        out[-1] += part
    return [one.strip() for one in out]


def short(models: Iterable[str]) -> dict[str, str]:
    """Return a short name for each model: without the owner in front and ``-Instruct`` behind, where the names stay different.

    >>> short(["Qwen/Qwen2.5-VL-7B-Instruct", "a/x", "b/x"])
    {'Qwen/Qwen2.5-VL-7B-Instruct': 'Qwen2.5-VL-7B', 'a/x': 'a/x', 'b/x': 'b/x'}
    """
    known = once(models)
    out = {model: line(model) for model in known}
    for pattern in _LESS:
        shorter = {model: pattern.sub("", name) or name for model, name in out.items()}
        often = Counter(shorter.values())
        out = {model: shorter[model] if often[shorter[model]] == 1 else name for model, name in out.items()}
    return out


def of_several(models: Iterable[str]) -> str:
    """Return the sentence on the whole names of models with short names (``explained``).

    Empty for one model.
    """
    names = short(models)
    return explained(names) if len(names) > 1 else ""


def explained(names: Mapping[str, str]) -> str:
    """Return the sentence on the whole names of shortened names; empty where nothing was shortened."""
    pairs = [f"{name} is {line(model)}" for model, name in names.items() if name != line(model)]
    return f" Short names: {'; '.join(pairs)}." if pairs else ""
