"""Numbered boxes on an image: red outlines with plates ``R1`` .. ``Rk``. Pillow and NumPy only.

The outline lies *around* the box, so that the region itself stays as it is; where a box touches the edge of the image, that side of the
outline lies inside. Plates stand outside the box where there is room: above, below, left, right; inside a corner as the last resort.

Boxes are in pixels of the upright image (EXIF orientation applied), half-open ``(left, top, right, bottom)``. Everything is
decided by the image's size, the boxes and the numbers: the same input gives the same pixels.

Source: MAGIC paper, §3.1 and §5.1 ("clearly marked bounding boxes"), figures 3, 5 and 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageCms, ImageDraw, ImageFont, ImageOps

from lmms_patch.errors import PatchError

Rect = tuple[int, int, int, int]

PIXELS = 1
"""Goes up whenever the same boxes come to be drawn with other pixels: the harness's response cache must then ask again."""

RED = (230, 0, 0)
WHITE = (255, 255, 255)

_FONT = 0.032  # of the image's side: the size of a label
_LINE = 0.0045  # of the image's side: the width of an outline
_SMALLEST = 11  # pixels: smaller digits cannot be read
_SMALLER = (1.0, 0.8, 0.65)  # sizes that are tried until no plate meets another
_PASSES = 6


class BoxError(PatchError):
    """A box that cannot be drawn: outside the image, or empty."""


@dataclass(frozen=True)
class Plate:
    """A label's place.

    Attributes:
        rect: pixels, half-open; inside the image wherever the image is larger than the plate.
        text: what stands on it.
        size: of the font, pixels.
    """

    rect: Rect
    text: str
    size: int


@dataclass(frozen=True)
class Outline:
    """The frame around a box.

    Attributes:
        outer: its outer edge, pixels, half-open; never outside the image.
        inner: its inner edge: what lies within is not painted. The box itself, but for sides at the image's edge.
        halo: its outer edge with the white hairline around it.
    """

    outer: Rect
    inner: Rect
    halo: Rect


@dataclass(frozen=True)
class Drawing:
    """What is painted, in the order of the boxes."""

    outlines: tuple[Outline, ...]
    plates: tuple[Plate, ...]


def upright(image: Image.Image) -> Image.Image:
    """A new RGB image as a person sees it: what boxes are measured on, and what is shown with or without them.

    EXIF orientation is applied, transparent pixels lie on white, 16-bit and floating-point images are scaled to 8 bits (16 bits by their
    full range; 32 bits by their own range where they exceed 8 bits), CMYK and LAB are converted, of an animation the present frame is taken.

    Raises:
        OSError: the file behind the image is truncated or damaged.
    """
    turned = ImageOps.exif_transpose(image)
    if turned.mode in ("I", "F") or turned.mode.startswith("I;16"):
        turned = _to_8_bits(turned)
    if turned.mode == "LAB":
        srgb, lab = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        turned = ImageCms.profileToProfile(turned, lab, srgb, outputMode="RGB") or turned
    if turned.has_transparency_data:
        turned = turned.convert("RGBA")
        white = Image.new("RGBA", turned.size, (*WHITE, 255))
        turned = Image.alpha_composite(white, turned)
    out = turned.convert("RGB")
    out = out.copy() if out is image else out
    out.info = {}
    return out


def _to_8_bits(image: Image.Image) -> Image.Image:
    """A grey image of 16 or 32 bits as 8 bits."""
    values = np.asarray(image).astype(np.float64)
    if image.mode.startswith("I;16"):
        values = values / 257
    elif image.mode == "I" and values.size and values.min() >= 0 and 255 < values.max() <= 65535:
        values = values / 257  # a 16-bit PNG, as older versions of Pillow open it
    elif values.size:
        low, high = np.nanmin(values), np.nanmax(values)
        if image.mode == "F" and low >= 0 and high <= 1:
            values = values * 255
        elif low < 0 or high > 255:
            values = (values - low) / max(high - low, 1e-12) * 255
    return Image.fromarray(np.nan_to_num(values).round().clip(0, 255).astype(np.uint8))


def draw(image: Image.Image, boxes: Sequence[Rect], numbers: Sequence[int]) -> Image.Image:
    """The upright image in RGB with numbered boxes; the image given is left as it is.

    Args:
        image: any PIL image.
        boxes: k boxes, pixels of the upright image, half-open.
        numbers: k numbers; box i is labelled ``R<number>``. With no boxes this is ``upright(image)``.

    Raises:
        BoxError: a box lies outside the image, or is empty.
        ValueError: not as many numbers as boxes.
    """
    out = upright(image)
    if len(boxes) != len(numbers):
        raise ValueError(f"{len(boxes)} boxes, but {len(numbers)} numbers")
    if not boxes:
        return out
    drawing = layout(out.size, boxes, numbers)
    pen = ImageDraw.Draw(out)
    for outline in drawing.outlines:
        _ring(pen, outline.halo, outline.outer, WHITE)
    for outline in drawing.outlines:
        _ring(pen, outline.outer, outline.inner, RED)
    for plate in drawing.plates:
        _paint_plate(pen, plate)
    return out


def layout(size: tuple[int, int], boxes: Sequence[Rect], numbers: Sequence[int]) -> Drawing:
    """Where outlines and plates go, without painting.

    Plates are placed greedily, the most constrained box first, then each again given the others until nothing moves. What a place costs, by
    weight: how much of the plate meets other plates; what share of its own and of other regions it hides; how much of other outlines it hides;
    its place in the order above, below, left, right. Where plates cannot be kept apart, smaller ones are tried, down to 11 pixels.

    Args:
        size: width and height of the image, pixels.
        boxes, numbers: as in ``draw``.

    Raises:
        BoxError: a box lies outside the image, or is empty.
    """
    for box, number in zip(boxes, numbers, strict=True):
        _require_inside(box, number, size)
    side = (size[0] * size[1]) ** 0.5
    width = max(1, round(side * _LINE)) if side < 150 else max(2, round(side * _LINE))
    outlines = tuple(outline(box, size, width) for box in boxes)
    texts = [f"R{number}" for number in numbers]
    best: tuple[float, list[Plate]] | None = None
    tried: set[int] = set()
    for factor in _SMALLER:
        points = _font_size(size, texts, max(_SMALLEST, round(side * _FONT * factor)))
        if points in tried:
            continue
        tried.add(points)
        plates, overlap = _place(size, boxes, outlines, texts, points)
        if best is None or overlap < best[0]:
            best = (overlap, plates)
        if not overlap:
            break
    return Drawing(outlines, tuple(best[1]) if best else ())


def _require_inside(box: Rect, number: int, size: tuple[int, int]) -> None:
    left, top, right, bottom = box
    if right <= left or bottom <= top:
        raise BoxError(f"box R{number} {list(box)} is empty; a box is [left, top, right, bottom] with left < right and top < bottom")
    if left < 0 or top < 0 or right > size[0] or bottom > size[1]:
        raise BoxError(f"box R{number} {list(box)} leaves the image of {size[0]} x {size[1]} pixels (upright, after EXIF orientation)")


def outline(box: Rect, size: tuple[int, int], width: int) -> Outline:
    """The frame of one box: ``width`` pixels around it, moved inwards on the sides where the image ends.

    >>> outline((0, 10, 20, 30), (100, 100), 2)
    Outline(outer=(0, 8, 22, 32), inner=(2, 10, 20, 30), halo=(0, 7, 23, 33))
    """
    outer = _clip((box[0] - width, box[1] - width, box[2] + width, box[3] + width), size)
    inner = (
        min(outer[0] + width, box[2]),
        min(outer[1] + width, box[3]),
        max(outer[2] - width, box[0]),
        max(outer[3] - width, box[1]),
    )
    hair = max(1, width // 4)
    return Outline(outer, inner, _clip((outer[0] - hair, outer[1] - hair, outer[2] + hair, outer[3] + hair), size))


def _clip(rect: Rect, size: tuple[int, int]) -> Rect:
    return (max(0, rect[0]), max(0, rect[1]), min(size[0], rect[2]), min(size[1], rect[3]))


def _ring(pen: ImageDraw.ImageDraw, outer: Rect, inner: Rect, colour: tuple[int, int, int]) -> None:
    """Paint what lies in ``outer`` and not in ``inner``."""
    left, top, right, bottom = outer
    for strip in (
        (left, top, right, inner[1]),
        (left, inner[3], right, bottom),
        (left, inner[1], inner[0], inner[3]),
        (inner[2], inner[1], right, inner[3]),
    ):
        if strip[0] < strip[2] and strip[1] < strip[3]:
            pen.rectangle((strip[0], strip[1], strip[2] - 1, strip[3] - 1), fill=colour)


# plates


def _font(points: int) -> Any:
    return ImageFont.load_default(points)


def _plate_size(text: str, points: int) -> tuple[int, int]:
    """Width and height of a plate: the digits, and a margin of a sixth of their size; all plates of one font size are equally high."""
    left, _, right, _ = _font(points).getbbox(text)
    _, top, _, bottom = _font(points).getbbox("R0123456789")
    margin = max(2, round(points / 6))
    return int(right - left) + 2 * margin, int(bottom - top) + 2 * margin


def _font_size(size: tuple[int, int], texts: Sequence[str], points: int) -> int:
    """The size asked for, or what the image can hold."""
    while points > 4:
        widths, heights = zip(*(_plate_size(text, points) for text in texts), strict=True)
        if max(widths) <= size[0] and max(heights) <= size[1]:
            break
        points -= 1
    return points


def _paint_plate(pen: ImageDraw.ImageDraw, plate: Plate) -> None:
    left, top, right, bottom = plate.rect
    edge = max(1, plate.size // 14)
    pen.rectangle((left, top, right - 1, bottom - 1), fill=RED, outline=WHITE, width=edge)
    font = _font(plate.size)
    text_left, _, text_right, _ = font.getbbox(plate.text)
    _, text_top, _, text_bottom = font.getbbox("R0123456789")
    x = left + (right - left - (text_right - text_left)) // 2 - text_left
    y = top + (bottom - top - (text_bottom - text_top)) // 2 - text_top
    pen.text((x, y), plate.text, fill=WHITE, font=font)


def _candidates(size: tuple[int, int], frame: Outline, plate: tuple[int, int]) -> tuple[list[Rect], int]:
    """Places of a plate beside a box, best first, and how many of them lie outside the box."""
    left, top, right, bottom = frame.halo
    width, height = plate
    xs = list(dict.fromkeys((left, right - width, (left + right - width) // 2, *range(left - width, right + 1, max(1, width)))))
    ys = list(dict.fromkeys((top, bottom - height, (top + bottom - height) // 2, *range(top - height, bottom + 1, max(1, height)))))
    beside = [(x, top - height) for x in _few(xs)] + [(x, bottom) for x in _few(xs)]
    beside += [(left - width, y) for y in _few(ys)] + [(right, y) for y in _few(ys)]
    beside = [(x, y) for x, y in beside if x >= 0 and y >= 0 and x + width <= size[0] and y + height <= size[1]]
    near, far = frame.inner[:2], (frame.inner[2] - width, frame.inner[3] - height)
    middle = ((frame.inner[0] + frame.inner[2] - width) // 2, (frame.inner[1] + frame.inner[3] - height) // 2)
    inside = [(near[0], near[1]), (far[0], near[1]), (near[0], far[1]), (far[0], far[1])]
    inside += [(middle[0], near[1]), (middle[0], far[1]), (near[0], middle[1]), (far[0], middle[1])]
    inside = [(min(max(x, 0), max(0, size[0] - width)), min(max(y, 0), max(0, size[1] - height))) for x, y in inside]
    corners = list(dict.fromkeys(beside)) + list(dict.fromkeys(inside))
    rects = [_clip((x, y, x + width, y + height), size) for x, y in corners]
    return rects, len(dict.fromkeys(beside))


def _few(places: list[int], most: int = 16) -> list[int]:
    """The three aligned places, then others evenly spread."""
    rest = places[3:]
    step = max(1, -(-len(rest) // (most - 3)))
    return places[:3] + rest[::step]


def _place(size: tuple[int, int], boxes: Sequence[Rect], outlines: Sequence[Outline], texts: Sequence[str], points: int) -> tuple[list[Plate], float]:
    """Plates of one font size, and how many pixels of them meet another."""
    regions, frames = np.array(boxes, np.int64), np.array([frame.outer for frame in outlines], np.int64)
    options, fixed = [], []
    for place, frame in enumerate(outlines):
        rects, outside = _candidates(size, frame, _plate_size(texts[place], points))
        options.append(np.array(rects, np.int64))
        fixed.append(_fixed_cost(options[-1], outside, regions, frames, place))
    order = sorted(range(len(boxes)), key=lambda place: (int((fixed[place] < 1).sum()), place))
    chosen: dict[int, int] = {}
    for _ in range(_PASSES):
        before = dict(chosen)
        for place in order:
            others = np.array([options[other][at] for other, at in chosen.items() if other != place], np.int64).reshape(-1, 4)
            meets = _overlap(options[place], others).sum(axis=1) / np.maximum(1, _area(options[place]))
            chosen[place] = int(np.argmin(fixed[place] + 1000 * meets + 50 * (meets > 0)))
        if chosen == before:
            break
    taken = np.array([options[place][chosen[place]] for place in range(len(boxes))])
    shared = _overlap(taken, taken)
    np.fill_diagonal(shared, 0)
    plates = [Plate((int(r[0]), int(r[1]), int(r[2]), int(r[3])), text, points) for r, text in zip(taken, texts, strict=True)]
    return plates, float(shared.sum()) / 2


def _fixed_cost(rects: Any, outside: int, regions: Any, frames: Any, place: int) -> Any:
    """What a plate's place costs whatever the other plates do: one number per candidate."""
    hidden = _overlap(rects, regions) / np.maximum(1, _area(regions))
    hidden[:, place] *= 1.5
    crossed = (_overlap(rects, frames) - _overlap(rects, regions)) / np.maximum(1, _area(rects))[:, None]
    crossed[:, place] = 0
    inside = (np.arange(len(rects)) >= outside).astype(float)
    return 100 * hidden.sum(axis=1) + 3 * crossed.sum(axis=1) + 0.5 * inside + 0.005 * np.arange(len(rects))


def _area(rects: Any) -> Any:
    return (rects[:, 2] - rects[:, 0]) * (rects[:, 3] - rects[:, 1])


def _overlap(first: Any, second: Any) -> Any:
    """Pixels that each of n rectangles shares with each of m: (n, m)."""
    wide = np.minimum(first[:, None, 2], second[None, :, 2]) - np.maximum(first[:, None, 0], second[None, :, 0])
    high = np.minimum(first[:, None, 3], second[None, :, 3]) - np.maximum(first[:, None, 1], second[None, :, 1])
    return np.maximum(0, wide) * np.maximum(0, high)
