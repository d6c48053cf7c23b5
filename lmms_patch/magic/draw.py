"""Drawing of numbered boxes on an image: red outlines with plates ``R1`` .. ``Rk``. Pillow and NumPy only.

The outline lies *around* the box, so that the region itself is not painted. Where a box touches the edge of the image, that side of the outline lies
inside. Plates stand outside the box where there is room: above, below, left, right; else inside it. A plate avoids every other box, because a reader
would take its number for that box's own (``in_other_boxes`` finds the plates for which no such place is left).

Boxes are in pixels of the upright image (EXIF orientation applied), half-open ``(left, top, right, bottom)``. The image's size, the boxes and the
numbers decide everything: the same input gives the same pixels.

Source: MAGIC paper, 3.1 and 5.1 ("clearly marked bounding boxes"), figures 3, 5 and 13.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageCms, ImageDraw, ImageFont, ImageOps

from lmms_patch.errors import PatchError

Rect = tuple[int, int, int, int]

PIXELS = 2
"""The version of the pixels. Raise it when the same boxes are drawn with other pixels, so that the harness's response cache asks again.

1: plates could stand in a neighbouring box. 2: they keep off it; images whose plates did so before are drawn as in 1.
"""

RED = (230, 0, 0)
WHITE = (255, 255, 255)

_FONT = 0.032  # of the image's side: the size of a label
_LINE = 0.0045  # of the image's side: the width of an outline
_SMALLEST = 11  # pixels: smaller digits cannot be read
_SMALLER = (1.0, 0.8, 0.65)  # factors of the size, tried until no plate meets another
_TINY = 8  # pixels: the smallest size of a plate that otherwise would stand in another box
_PASSES = 6
_NEIGHBOURS = 48  # how many boxes around a box lend their edges as places for its plate: more take too long
_OPTIONS = 64  # how many places of a plate are weighed against those of others
_STRANGE = 1e6  # cost of a plate in a box that does not hold the plate's own box
_MEETING = 1e7  # cost of meeting another plate: a number that cannot be read is worse than a number in the wrong place
_HELD = 15.0  # cost of a plate outside its own box but in a box that holds it: as much as hiding a tenth of its own box


class BoxError(PatchError):
    """A box that cannot be drawn: outside the image, or empty."""


@dataclass(frozen=True)
class Plate:
    """A label with its place.

    Attributes:
        rect: pixels, half-open; inside the image wherever the image is larger than the plate.
        text: the label.
        size: of the font (pixels).
    """

    rect: Rect
    text: str
    size: int


@dataclass(frozen=True)
class Outline:
    """The frame around a box.

    Attributes:
        outer: its outer edge, pixels, half-open; never outside the image.
        inner: its inner edge: what lies within is not painted. Equals the box, except on sides at the image's edge.
        halo: its outer edge including the white hairline around it.
    """

    outer: Rect
    inner: Rect
    halo: Rect


@dataclass(frozen=True)
class Drawing:
    """All outlines and plates, in the order of the boxes."""

    outlines: tuple[Outline, ...]
    plates: tuple[Plate, ...]


def upright(image: Image.Image) -> Image.Image:
    """Return a new RGB image as a person sees it: boxes are measured on it, and it is shown with or without them.

    EXIF orientation is applied and transparent pixels are put on white. 16-bit and floating-point images are scaled to 8 bits (16 bits by their full
    range; 32 bits by their own range where they exceed 8 bits). CMYK and LAB are converted. Of an animation the present frame is taken.

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
    """Convert a grey image of 16 or 32 bits to 8 bits."""
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
    """Draw numbered boxes on the upright image in RGB; the image given is not changed.

    Args:
        image: any PIL image.
        boxes: k boxes, pixels of the upright image, half-open.
        numbers: k numbers; box i is labelled ``R<number>``. Without boxes the result is ``upright(image)``.

    Raises:
        BoxError: a box lies outside the image, or is empty.
        ValueError: the numbers are not as many as the boxes.
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
    """Place outlines and plates, without painting.

    Plates are placed greedily, the most constrained box first, then each again given the others until nothing moves. The cost of a place, by weight:
    how much of the plate meets other plates; what share of its own and of other regions it hides; how much of other outlines it hides; its rank in
    the order above, below, left, right. Where plates cannot be kept apart, smaller ones are tried, down to 11 pixels.

    Where a plate then stands in another box, all are placed anew: more places are tried, and none in a box that does not hold the plate's own box
    unless there is no other. Such a plate may become smaller than the others, down to 8 pixels.

    Args:
        size: width and height of the image (pixels).
        boxes: as in ``draw``.
        numbers: as in ``draw``.

    Raises:
        BoxError: a box lies outside the image, or is empty.
    """
    for box, number in zip(boxes, numbers, strict=True):
        _require_inside(box, number, size)
    side = (size[0] * size[1]) ** 0.5
    width = max(1, round(side * _LINE)) if side < 150 else max(2, round(side * _LINE))
    outlines = tuple(outline(box, size, width) for box in boxes)
    texts = [f"R{number}" for number in numbers]
    points = [_font_size(size, texts, max(_SMALLEST, round(side * _FONT * factor))) for factor in _SMALLER] if texts else []
    plates = _placed(size, boxes, outlines, texts, points, strict=False)
    if any(_meets_others(boxes, plates)):
        plates = _squeezed(size, boxes, outlines, _placed(size, boxes, outlines, texts, points, strict=True))
    return Drawing(outlines, tuple(plates))


def in_other_boxes(boxes: Sequence[Rect], drawing: Drawing) -> list[int]:
    """Return the places (from 0) of the boxes whose plate covers a part of a box that does not hold theirs.

    ``layout`` leaves such a plate only where the image has no other place for it: boxes too small for a number, side by side.
    """
    return [place for place, strange in enumerate(_meets_others(boxes, drawing.plates)) if strange == 2]


def _meets_others(boxes: Sequence[Rect], plates: Sequence[Plate]) -> list[int]:
    """Return for each plate: 2, 1 or 0.

    2: it covers a part of a box that does not hold its own box. 1: it stands outside its own box, in a box that holds it. 0: neither.
    """
    regions, rects = np.array(boxes, np.int64).reshape(-1, 4), [np.array([plate.rect], np.int64) for plate in plates]
    return [int(_strangeness(rect, regions, place)[0][0]) for place, rect in enumerate(rects)]


def _holders(regions: Any, place: int) -> Any:
    """Return which boxes contain a box completely, itself included."""
    own = regions[place]
    return (regions[:, :2] <= own[:2]).all(axis=1) & (regions[:, 2:] >= own[2:]).all(axis=1)


def _strangeness(rects: Any, regions: Any, place: int) -> tuple[Any, Any]:
    """Return how far each of n places of a plate is in a box that is not its own.

    Returns:
        For each place 0, 1 or 2 as in ``_meets_others``; and the largest share of the plate in one box that does not hold its own box.
    """
    own, holds = regions[place], _holders(regions, place)
    shares = _overlap(rects, regions) / np.maximum(1, _area(rects))[:, None]
    inside = (rects[:, :2] >= own[:2]).all(axis=1) & (rects[:, 2:] <= own[2:]).all(axis=1)
    strange = shares[:, ~holds].max(axis=1, initial=0)
    others = holds & (np.arange(len(regions)) != place)
    held = (shares[:, others] > 0).any(axis=1) & ~inside
    return np.where(strange > 0, 2, held.astype(int)), strange


def _placed(
    size: tuple[int, int], boxes: Sequence[Rect], outlines: Sequence[Outline], texts: Sequence[str], sizes: Sequence[int], strict: bool
) -> list[Plate]:
    """Return the plates of the first font size at which none is in the way, else of the best size.

    Args:
        size: width and height of the image (pixels).
        boxes: the boxes.
        outlines: their outlines.
        texts: their labels.
        sizes: font sizes to try, in order.
        strict: whether plates avoid other boxes.
    """
    best: tuple[tuple[int, float], list[Plate]] | None = None
    for points in dict.fromkeys(sizes):
        plates, overlap = _place(size, boxes, outlines, texts, points, strict)
        badness = (_meets_others(boxes, plates).count(2) if strict else 0, overlap)
        if best is None or badness < best[0]:
            best = (badness, plates)
        if badness == (0, 0):
            break
    return best[1] if best else []


def _require_inside(box: Rect, number: int, size: tuple[int, int]) -> None:
    left, top, right, bottom = box
    if right <= left or bottom <= top:
        raise BoxError(f"box R{number} {list(box)} is empty; a box is [left, top, right, bottom] with left < right and top < bottom")
    if left < 0 or top < 0 or right > size[0] or bottom > size[1]:
        raise BoxError(f"box R{number} {list(box)} leaves the image of {size[0]} x {size[1]} pixels (upright, after EXIF orientation)")


def outline(box: Rect, size: tuple[int, int], width: int) -> Outline:
    """Return the frame of one box: ``width`` pixels around it, moved inwards on the sides where the image ends.

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
    """Paint the area between ``inner`` and ``outer``."""
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


@functools.lru_cache(maxsize=64)
def _font(points: int) -> Any:
    return ImageFont.load_default(points)


@functools.lru_cache(maxsize=1024)
def _plate_size(text: str, points: int) -> tuple[int, int]:
    """Return width and height of a plate: the text, and a margin of a sixth of the font size. Plates of one font size are equally high."""
    left, _, right, _ = _font(points).getbbox(text)
    _, top, _, bottom = _font(points).getbbox("R0123456789")
    margin = max(2, round(points / 6))
    return int(right - left) + 2 * margin, int(bottom - top) + 2 * margin


def _font_size(size: tuple[int, int], texts: Sequence[str], points: int) -> int:
    """Return the font size asked for, or the largest that fits the image."""
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


def _candidates(size: tuple[int, int], frame: Outline, plate: tuple[int, int]) -> tuple[list[Rect], list[bool]]:
    """Return the places of a plate at a box, best first, and which of them lie inside the box."""
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
    return rects, [at >= len(dict.fromkeys(beside)) for at in range(len(rects))]


def _further(size: tuple[int, int], box: Rect, frame: Outline, plate: tuple[int, int], avoid: Any, holders: Any) -> tuple[list[Rect], list[bool]]:
    """Return places near a box that avoid other rectangles: at its edges and in it; the form is that of ``_candidates``.

    If any place along a side of the box, or in it, is free, then a free place exists whose edges touch the ends of that side or a rectangle to avoid.
    So only such places are tried.

    Args:
        size: width and height of the image (pixels).
        box: the box.
        frame: its outline.
        plate: width and height of the plate.
        avoid: rectangles that the plate must not meet.
        holders: rectangles that hold the box; it is better not to meet their edges.
    """
    width, height = plate
    left, top, right, bottom = frame.halo
    near = _overlap(np.array([(left - width, top - height, right + width, bottom + height)]), avoid)[0] > 0
    avoid = avoid[np.flatnonzero(near)[:_NEIGHBOURS]]
    edges = np.concatenate([avoid, holders[:_NEIGHBOURS]])
    xs = np.unique([left - width, left, right - width, right, *edges[:, 2], *(edges[:, 0] - width)])
    ys = np.unique([top - height, top, bottom - height, bottom, *edges[:, 3], *(edges[:, 1] - height)])
    xs, ys = xs[(xs >= max(0, left - width)) & (xs <= right)], ys[(ys >= max(0, top - height)) & (ys <= bottom)]
    beside = [(x, y) for y in (top - height, bottom) for x in xs] + [(x, y) for x in (left - width, right) for y in ys]
    across = np.unique([box[0], frame.inner[0], *avoid[:, 2]])
    down = np.unique([box[1], frame.inner[1], *avoid[:, 3]])
    inside = [(x, y) for y in down for x in across if x >= box[0] and y >= box[1] and x + width <= box[2] and y + height <= box[3]]
    corners = np.array([*beside, *inside], np.int64).reshape(-1, 2)
    rects = np.concatenate([corners, corners + (width, height)], axis=1)
    within = np.arange(len(rects)) >= len(beside)
    fits = (rects[:, :2] >= 0).all(axis=1) & (rects[:, 2:] <= size).all(axis=1) & ~(_overlap(rects, avoid) > 0).any(axis=1)
    return [(int(r[0]), int(r[1]), int(r[2]), int(r[3])) for r in rects[fits]], within[fits].tolist()


def _few(places: list[int], most: int = 16) -> list[int]:
    """Return the three aligned places, then other places evenly spread."""
    rest = places[3:]
    step = max(1, -(-len(rest) // (most - 3)))
    return places[:3] + rest[::step]


def _place(
    size: tuple[int, int], boxes: Sequence[Rect], outlines: Sequence[Outline], texts: Sequence[str], points: int, strict: bool
) -> tuple[list[Plate], float]:
    """Return the plates of one font size, and how many of their pixels meet another plate; with ``strict`` plates avoid other boxes."""
    regions, frames = np.array(boxes, np.int64), np.array([frame.outer for frame in outlines], np.int64)
    options, fixed = [], []
    for place, frame in enumerate(outlines):
        plate = _plate_size(texts[place], points)
        rects, inside = _candidates(size, frame, plate)
        if strict:
            more = _off_others(size, boxes[place], frame, plate, regions, place)
            rects, inside = rects + more[0], inside + more[1]
        options.append(np.array(rects, np.int64))
        fixed.append(_fixed_cost(options[-1], np.array(inside), regions, frames, place, strict))
        if strict:
            best = np.sort(np.argsort(fixed[-1], kind="stable")[:_OPTIONS])
            options[-1], fixed[-1] = options[-1][best], fixed[-1][best]
    order = sorted(range(len(boxes)), key=lambda place: (int((fixed[place] < 1).sum()), place))
    taken = np.zeros((len(boxes), 4), np.int64)  # a plate without a place is empty, so it meets nothing
    meeting = _MEETING if strict else 50.0
    chosen: dict[int, int] = {}

    for _ in range(_PASSES):
        before = dict(chosen)
        for place in order:
            taken[place] = 0
            meets = _overlap(options[place], taken).sum(axis=1) / np.maximum(1, _area(options[place]))
            chosen[place] = int(np.argmin(fixed[place] + 1000 * meets + meeting * (meets > 0)))
            taken[place] = options[place][chosen[place]]
        if chosen == before:
            break
    shared = _overlap(taken, taken)
    np.fill_diagonal(shared, 0)
    plates = [Plate((int(r[0]), int(r[1]), int(r[2]), int(r[3])), text, points) for r, text in zip(taken, texts, strict=True)]
    return plates, float(shared.sum()) / 2


def _squeezed(size: tuple[int, int], boxes: Sequence[Rect], outlines: Sequence[Outline], plates: Sequence[Plate]) -> list[Plate]:
    """Move plates out of boxes that do not hold theirs into any free room between boxes and plates; make them smaller where needed."""
    regions, frames = np.array(boxes, np.int64), np.array([frame.outer for frame in outlines], np.int64)
    moved = list(plates)
    for _ in range(_PASSES):
        before = list(moved)
        for place in in_other_boxes(boxes, Drawing(tuple(outlines), tuple(moved))):
            others = np.array([plate.rect for at, plate in enumerate(moved) if at != place], np.int64).reshape(-1, 4)
            for points in range(moved[place].size, min(moved[place].size, _TINY) - 1, -1):
                plate = _plate_size(moved[place].text, points)
                rects, inside = _off_others(size, boxes[place], outlines[place], plate, regions, place, others)
                if rects:
                    costs = _fixed_cost(np.array(rects, np.int64), np.array(inside), regions, frames, place, strict=True)
                    moved[place] = Plate(rects[int(np.argmin(costs))], moved[place].text, points)
                    break
        if moved == before:
            break
    return moved


def _off_others(
    size: tuple[int, int], box: Rect, frame: Outline, plate: tuple[int, int], regions: Any, place: int, plates: Any = None
) -> tuple[list[Rect], list[bool]]:
    """Return places of a plate that avoid all boxes not holding its own, and ``plates`` (``_further``)."""
    holds = _holders(regions, place)
    strange = regions[~holds] if plates is None else np.concatenate([regions[~holds], plates])
    return _further(size, box, frame, plate, strange, regions[holds & (np.arange(len(regions)) != place)])


def _fixed_cost(rects: Any, inside: Any, regions: Any, frames: Any, place: int, strict: bool) -> Any:
    """Return the cost of each candidate place as far as it does not depend on the other plates, shape (candidates,)."""
    hidden = _overlap(rects, regions) / np.maximum(1, _area(regions))
    hidden[:, place] *= 1.5
    crossed = (_overlap(rects, frames) - _overlap(rects, regions)) / np.maximum(1, _area(rects))[:, None]
    crossed[:, place] = 0
    cost = 100 * hidden.sum(axis=1) + 3 * crossed.sum(axis=1) + 0.5 * inside + 0.005 * np.arange(len(rects))
    if not strict:
        return cost
    kind, share = _strangeness(rects, regions, place)
    return cost + _HELD * (kind == 1) + _STRANGE * (kind == 2) * (1 + share)


def _area(rects: Any) -> Any:
    return (rects[:, 2] - rects[:, 0]) * (rects[:, 3] - rects[:, 1])


def _overlap(first: Any, second: Any) -> Any:
    """Return the number of pixels that each of n rectangles shares with each of m, shape (n, m)."""
    wide = np.minimum(first[:, None, 2], second[None, :, 2]) - np.maximum(first[:, None, 0], second[None, :, 0])
    high = np.minimum(first[:, None, 3], second[None, :, 3]) - np.maximum(first[:, None, 1], second[None, :, 1])
    return np.maximum(0, wide) * np.maximum(0, high)
