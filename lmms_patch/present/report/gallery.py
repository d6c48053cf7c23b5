"""Examples as pictures: the cells of a doc over its image, each with what was answered there.

Pure; no markup is made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmms_patch.ask.kinds import OF_IMAGES, Words
from lmms_patch.present.report.data import CellAnswer, Example
from lmms_patch.text import clean

WIDTH = 320.0
TALLEST, FLATTEST = 1.5, 0.25
"""Height over width of a picture's frame: taller or flatter images are drawn in the middle of it."""
_INSET = 2.5
_LETTER = 7.7
"""Width of a letter, in units of the frame."""


@dataclass(frozen=True)
class Box:
    """A cell in the picture of an example.

    Attributes:
        place: where it is, in words.
        x, y, width, height: its outline, in units of the frame.
        verdict: ``right``, ``wrong`` or ``unscored``.
        says: the answer as far as the cell has room for it.
        cell: all of it.
    """

    place: str
    x: float
    y: float
    width: float
    height: float
    verdict: str
    says: str
    cell: CellAnswer


@dataclass(frozen=True)
class Frame:
    """A grid of an example.

    Attributes:
        n: the grid; size: the same in words.
        width, height: of the frame; x, y, w, h: of the image in it.
        boxes: row by row.
        right: how many cells are right; places: which, in words.
        label: all of it in words, for who cannot see it.
    """

    n: int
    size: str
    width: float
    height: float
    x: float
    y: float
    w: float
    h: float
    boxes: tuple[Box, ...]
    right: int
    label: str


def verdict(right: bool | None) -> str:
    """Return ``right``, ``wrong`` or ``unscored``."""
    return "unscored" if right is None else "right" if right else "wrong"


def frames(example: Example, words: Words = OF_IMAGES) -> list[Frame]:
    """Return the grids of an example, coarsest first.

    Segments of a clip stand side by side, from its start on the left.
    """
    return [_frame(example, n, example.grids[n], words) for n in sorted(example.grids)]


def _frame(example: Example, n: int, cells: Sequence[CellAnswer], words: Words) -> Frame:
    """Return where an image and its cells lie in a frame of fixed width; very tall and very wide images get bars."""
    ratio = max(1, example.size[1]) / max(1, example.size[0])
    height = WIDTH * min(TALLEST, max(FLATTEST, ratio))
    h = min(height, WIDTH * ratio)
    w = h / ratio
    x, y = (WIDTH - w) / 2, (height - h) / 2
    inset = min(_INSET, w / (6 * n), h / (6 * n))
    boxes = []
    for cell in cells:
        left, top, width, tall = cell.box
        at = x + w * left / 100 + inset, y + h * top / 100 + inset
        size = max(0.5, w * width / 100 - 2 * inset), max(0.5, h * tall / 100 - 2 * inset)
        room = int(size[0] / _LETTER)
        # Two letters of a longer answer would say nothing.
        said = clean(cell.answer, room) if room > 2 else clean(cell.answer)
        says = said if len(said) <= room else ""
        place = f"{words.part} {cell.col + 1}" if words.instead else f"row {cell.row + 1}, column {cell.col + 1}"
        boxes.append(
            Box(
                place,
                round(at[0], 2),
                round(at[1], 2),
                round(size[0], 2),
                round(size[1], 2),
                verdict(cell.right),
                says,
                cell,
            )
        )
    right = [box.place.replace(",", "") for box in boxes if box.cell.right]
    unscored = sum(cell.right is None for cell in cells)
    grid = words.size(n) if words.instead else f"grid {n} by {n}"
    label = f"{example.alt}; {grid}: {len(right)} of {len(cells)} {words.parts} right{': ' + ', '.join(right) if right else ''}"
    label += f"; {unscored} unscored" if unscored else ""
    return Frame(
        n,
        words.size(n),
        WIDTH,
        round(height, 2),
        round(x, 2),
        round(y, 2),
        round(w, 2),
        round(h, 2),
        tuple(boxes),
        len(right),
        label,
    )
