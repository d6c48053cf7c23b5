"""Contact sheets: items as thumbnails with their boxes drawn and a caption, so that a person can judge them.

Pillow only.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from lmms_patch import files
from lmms_patch.magic.draw import Rect, draw, upright
from lmms_patch.magic.items import Box, MagicItem, shown
from lmms_patch.magic.sources import decode_image

_GREEN, _ORANGE, _INK, _GREY, _PAPER = (0, 110, 40), (170, 80, 0), (20, 20, 20), (90, 90, 90), (255, 255, 255)
_MARGIN = 14
_LINE = 20
_POINTS = 15
# the most bytes of a file's name; file systems allow 255
_NAME = 160
CONTACT, PREVIEWS = "contact.png", "previews"


@dataclass(frozen=True)
class Entry:
    """An item on a sheet.

    Attributes:
        image: its image, undrawn.
        item: the item.
        seed: of the order in which its boxes are numbered; take that of the run in question.
    """

    image: Image.Image
    item: MagicItem
    seed: int = 0


def sheet(entries: Sequence[Entry], columns: int = 4, width: int = 380) -> Image.Image:
    """Return the contact sheet: a grid, row by row.

    Under each thumbnail stand the id, the question, the gold answer, and the numbers of relevant (green) and
    adversarial (orange) boxes as drawn, with their labels. Characters that Pillow's built-in font lacks are shown as
    boxes.

    Args:
        entries: at least one.
        columns: the most thumbnails in a row.
        width: of a thumbnail (pixels); it is at most as high.

    Raises:
        ValueError: there are no entries.
    """
    if not entries:
        raise ValueError("a contact sheet needs at least one item")
    columns = min(columns, len(entries))
    rows = -(-len(entries) // columns)
    wide = width + 2 * _MARGIN
    cells = [_cell(entry, width) for entry in entries]
    heights = [max(cell.height for cell in cells[row * columns : (row + 1) * columns]) for row in range(rows)]
    out = Image.new("RGB", (columns * wide, sum(heights)), _PAPER)
    top = 0
    for row in range(rows):
        for column, cell in enumerate(cells[row * columns : (row + 1) * columns]):
            out.paste(cell, (column * wide, top))
        top += heights[row]
    return out


def write_pictures(
    items: Sequence[MagicItem], folder: Path, contact: int, seed: int = 0, previews: bool = False
) -> None:
    """Write ``contact.png``, a seeded sample of the items, and where asked ``previews/<id>.png``, each item with its boxes drawn.

    Args:
        items: their images lie in ``folder``.
        folder: where to write.
        contact: items on the sheet; 0: no sheet.
        seed: of the sample.
        previews: whether to write them.

    Raises:
        RecordError: a file cannot be written.
    """
    chosen = sorted(items, key=lambda item: hashlib.sha256(f"{seed}/contact/{item.id}".encode()).hexdigest())[:contact]
    entries = {}
    for item in items if previews else chosen:
        opened = decode_image(folder / item.image)
        if previews:
            numbered = shown(item.boxes, item.id)
            boxes = [item.boxes[place] for place in numbered.places]
            drawn = draw(opened, [(b.left, b.top, b.right, b.bottom) for b in boxes], range(1, len(boxes) + 1))
            save_png(drawn, folder / PREVIEWS / preview_of(item.id))
        if item in chosen:
            entries[item.id] = Entry(opened, item)
    if entries:
        save_png(sheet([entries[key] for key in sorted(entries)]), folder / CONTACT)


def save_png(image: Image.Image, path: Path) -> None:
    """Write a PNG, whole or not at all.

    Raises:
        RecordError: it cannot be written.
    """
    held = io.BytesIO()
    image.save(held, "PNG")
    files.write(path, held.getvalue())


def preview_of(name: str) -> str:
    """Return the file name of an item's preview.

    Different ids get different names, and no name is too long for file systems.
    """
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    if plain == name and name.strip(".") and len(name.encode()) <= _NAME:
        return f"{name}.png"
    # the cut may fall within a character, whose rest is left out
    start = plain.strip(".").encode()[: _NAME // 2].decode(errors="ignore")
    return f"{start}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.png"


def _cell(entry: Entry, width: int) -> Image.Image:
    """Draw an item: thumbnail and caption."""
    numbered = shown(entry.item.boxes, entry.item.id, seed=entry.seed)
    boxes = [entry.item.boxes[place] for place in numbered.places]
    small, rects = _small(upright(entry.image), boxes, width)
    thumb = draw(small, rects, range(1, len(rects) + 1))
    lines = caption(entry.item, boxes, width)
    out = Image.new("RGB", (width + 2 * _MARGIN, thumb.height + 2 * _MARGIN + len(lines) * _LINE), _PAPER)
    out.paste(thumb, (_MARGIN + (width - thumb.width) // 2, _MARGIN))
    pen = ImageDraw.Draw(out)
    for number, (text, colour) in enumerate(lines):
        pen.text((_MARGIN, _MARGIN + thumb.height + 4 + number * _LINE), text, fill=colour, font=_font())
    return out


def _small(image: Image.Image, boxes: Sequence[Box], width: int) -> tuple[Image.Image, list[Rect]]:
    """Return the image at the thumbnail's size, with scaled boxes, so that labels drawn afterwards stay readable."""
    scale = width / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    rects = []
    for box in boxes:
        # at least a pixel, inside the thumbnail: rounding could make a thin box empty, which cannot be drawn
        left, top = min(round(box.left * scale), size[0] - 1), min(round(box.top * scale), size[1] - 1)
        right, bottom = (
            min(max(left + 1, round(box.right * scale)), size[0]),
            min(max(top + 1, round(box.bottom * scale)), size[1]),
        )
        rects.append((left, top, right, bottom))
    return image.resize(size, Image.Resampling.LANCZOS), rects


def caption(item: MagicItem, boxes: Sequence[Box], width: int) -> list[tuple[str, tuple[int, int, int]]]:
    """Return the lines under a thumbnail, with their colours.

    Args:
        item: the item.
        boxes: in the order of their numbers: the first is R1.
        width: of a line (pixels).
    """
    kinds = {}
    for relevant in (True, False):
        names = [
            f"R{number}{f' {box.label}' if box.label else ''}"
            for number, box in enumerate(boxes, 1)
            if box.relevant == relevant
        ]
        kinds[relevant] = ", ".join(names) or "none"
    lines = [(line, _GREY) for line in _wrapped(f"{item.id}{f' · {item.type}' if item.type else ''}", width, 1)]
    lines += [(line, _INK) for line in _wrapped(item.question, width, 3)]
    lines += [(line, _INK) for line in _wrapped(f"Answer: {item.answer}", width, 1)]
    lines += [(line, _GREEN) for line in _wrapped(f"relevant: {kinds[True]}", width, 2)]
    return lines + [(line, _ORANGE) for line in _wrapped(f"adversarial: {kinds[False]}", width, 2)]


def _font() -> Any:
    return ImageFont.load_default(_POINTS)


def _wrapped(text: str, width: int, most: int) -> list[str]:
    """Break a text into at most ``most`` lines of at most ``width`` pixels.

    Text that does not fit is cut and ends with an ellipsis.
    """
    font = _font()
    lines: list[str] = []
    words = text.split()
    while words and len(lines) < most:
        line = words.pop(0)
        while words and font.getlength(f"{line} {words[0]}") <= width:
            line += f" {words.pop(0)}"
        if (words and len(lines) == most - 1) or font.getlength(line) > width:
            line += "..."
            while font.getlength(line) > width and len(line) > 4:
                # the three dots and the letter before them
                line = line[:-4] + "..."
        lines.append(line)
    return lines or [""]
