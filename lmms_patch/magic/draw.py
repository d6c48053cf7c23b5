"""Drawing of numbered boxes on an image: red outlines with plates ``R1`` .. ``Rk``. Pillow and NumPy only.

The outline lies *around* the box, so that the region itself is not painted. Where a box touches the edge of the image,
that side of the outline lies inside. Plates stand outside the box where there is room: above, below, left, right; else
inside it. A plate avoids every other box and every other outline, because a reader would take its number for that box's
own (``in_other_boxes`` finds plates that have no such place).

Boxes are in pixels of the upright image (EXIF orientation applied), half-open ``(left, top, right, bottom)``. The
image's size, the boxes and the numbers decide everything: the same input gives the same pixels.

Source: MAGIC paper, 3.1 and 5.1 ("clearly marked bounding boxes"), figures 3, 5 and 13.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageCms, ImageDraw, ImageFont, ImageOps

from lmms_patch.errors import PatchError

Rect = tuple[int, int, int, int]

PIXELS = 3
"""The version of the pixels. Raise it when the same boxes are drawn with other pixels, so that the harness's response cache asks again.

1: plates could stand in a neighbouring box. 2: they keep off it; images whose plates did so before are drawn as in 1.
3: plates keep off other outlines and each other; images whose plates did so before are drawn as in 2.
"""

RED = (230, 0, 0)
WHITE = (255, 255, 255)

# of the image's side: the size of a label
_FONT = 0.032
# of the image's side: the width of an outline
_LINE = 0.0045
# pixels: smaller digits cannot be read
_SMALLEST = 11
# factors of the size, tried until no plate meets another
_SMALLER = (1.0, 0.8, 0.65)
# pixels: the smallest size of a plate that otherwise would stand in another box
_TINY = 8
# the most rounds: two plates may dodge each other without end
_PASSES = 6
# how many rectangles around a box lend their edges as places for its plate: more take too long
_NEIGHBOURS = 64
# how many places of a plate are weighed against those of others
_OPTIONS = 64
# cost of a plate in a box that does not hold the plate's own box
_STRANGE = 1e6
# cost of meeting another plate: a number that cannot be read is worse than a number in the wrong place
_MEETING = 1e7
# of a box: a plate may hide that much of it to stand a pixel off all other outlines
_LITTLE = 0.1
# of a box: a plate may hide that much of it to keep off other outlines
_MUCH = 0.5
# The kind of place that crosses another outline: kinds before it are free, kinds after it lie in other boxes.
_CROSSING = 3
# how many sets of plates are asked to make room for one
_EXCHANGES = 8
# cost of a plate outside its own box but in a box that holds it: as much as hiding a tenth of its own box
_HELD = 15.0


class BoxError(PatchError):
    """A box outside the image, or an empty box."""


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
    """Return a new RGB image as a person sees the image; boxes are measured on this upright image.

    EXIF orientation is applied and transparent pixels are put on white. 16-bit and floating-point images are scaled to
    8 bits (16 bits by their full range; 32 bits by their own range where they exceed 8 bits). CMYK and LAB are
    converted. Of an animation the present frame is taken.

    Raises:
        OSError: the file behind the image is truncated or damaged.
    """
    turned = ImageOps.exif_transpose(image)
    if turned.mode in ("I", "F") or turned.mode.startswith("I;16"):
        turned = _to_8_bits(turned)
    if turned.mode == "LAB":
        # Pillow turns LAB into RGB by colour profiles only
        srgb, lab = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        turned = ImageCms.profileToProfile(turned, lab, srgb, outputMode="RGB") or turned
    # Without a white ground, converting to RGB would show whatever colour lies under transparent pixels.
    if turned.has_transparency_data:
        turned = turned.convert("RGBA")
        white = Image.new("RGBA", turned.size, (*WHITE, 255))
        turned = Image.alpha_composite(white, turned)
    out = turned.convert("RGB")
    out = out.copy() if out is image else out
    # EXIF would turn the upright image a second time for whoever reads it.
    out.info = {}
    return out


def _to_8_bits(image: Image.Image) -> Image.Image:
    """Convert a grey image of 16 or 32 bits to 8 bits."""
    values = np.asarray(image).astype(np.float64)
    # 65,535 is 257 times 255
    if image.mode.startswith("I;16"):
        values = values / 257
    elif image.mode == "I" and values.size and values.min() >= 0 and 255 < values.max() <= 65535:
        # Older versions of Pillow open a 16-bit PNG in mode I.
        values = values / 257
    elif values.size:
        low, high = np.nanmin(values), np.nanmax(values)
        if image.mode == "F" and low >= 0 and high <= 1:
            values = values * 255
        elif low < 0 or high > 255:
            # an image of one value has no range
            values = (values - low) / max(high - low, 1e-12) * 255
    # floats may be NaN, which no whole number stands for
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
    # All halos before all outlines: a halo must not cut through a neighbour's red frame. Plates cover both.
    for outline in drawing.outlines:
        _ring(pen, outline.halo, outline.outer, WHITE)
    for outline in drawing.outlines:
        _ring(pen, outline.outer, outline.inner, RED)
    for plate in drawing.plates:
        _paint_plate(pen, plate)
    return out


def layout(size: tuple[int, int], boxes: Sequence[Rect], numbers: Sequence[int]) -> Drawing:
    """Place outlines and plates, without painting.

    Plates are placed greedily, the most constrained box first, then each again given the others until nothing moves.
    The cost of a place, by weight: how much of the plate meets other plates; what share of its own and of other regions
    it hides; how much of other outlines it hides; its rank in the order above, below, left, right. Where plates cannot
    be kept apart, smaller ones are tried, down to 11 pixels.

    Where a plate then stands in another box, all are placed anew: more places are tried, and none in a box that does
    not hold the plate's own box unless there is no other. Such a plate may become smaller than the others, down to 8
    pixels.

    Where a plate then touches another box's outline or covers a part of another plate, it moves to a free place, and
    becomes smaller if it must, down to the smallest size tried before. A place is free if it covers nothing of another
    outline, another plate or a box that does not hold the plate's own box, and at most half of any box. Free places a
    pixel or more from all other outlines come first, if they hide at most a tenth of any box. Other plates stay, unless
    they can make room for one that has no free place.

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
    scene = _Scene(size, tuple(boxes), tuple(outline(box, size, width) for box in boxes))
    texts = [f"R{number}" for number in numbers]
    sizes = (
        [_font_size(size, texts, max(_SMALLEST, round(side * _FONT * factor))) for factor in _SMALLER] if texts else []
    )
    plates = _placed(scene, texts, sizes, strict=False)
    if any(_meets_others(boxes, plates)):
        plates = _moved(scene, _placed(scene, texts, sizes, strict=True), _off_other_boxes)
    return Drawing(scene.outlines, tuple(_cleared(scene, plates, sizes)))


def in_other_boxes(boxes: Sequence[Rect], drawing: Drawing) -> list[int]:
    """Return the places (from 0) of boxes with a plate over a part of a foreign box.

    ``layout`` leaves such a plate only where the image has no other place for it: boxes too small for a number, side by
    side.
    """
    return [place for place, strange in enumerate(_meets_others(boxes, drawing.plates)) if strange == 2]


def hidden_shares(boxes: Sequence[Rect], drawing: Drawing) -> list[float]:
    """Return for each box the share of its pixels under plates and outlines, from 0 to 1.

    A box's own plate counts, and so does its own outline where that lies inside the box, at the image's edge.
    """
    painted = [plate.rect for plate in drawing.plates]
    painted += [strip for outline in drawing.outlines for strip in _strips(outline.halo, outline.inner)]
    return [_covered(box, np.array(painted, np.int64)) / ((box[2] - box[0]) * (box[3] - box[1])) for box in boxes]


def _covered(box: Rect, rects: Any) -> int:
    """Return the number of a box's pixels under any of n rectangles."""
    clipped = np.concatenate([np.maximum(rects[:, :2], box[:2]), np.minimum(rects[:, 2:], box[2:])], axis=1)
    clipped = clipped[(clipped[:, :2] < clipped[:, 2:]).all(axis=1)]
    # On the grid of all edges a pixel under several rectangles counts once.
    xs, ys = np.unique(clipped[:, ::2]), np.unique(clipped[:, 1::2])
    cells = np.zeros((max(0, len(ys) - 1), max(0, len(xs) - 1)), bool)
    for left, top, right, bottom in clipped:
        cells[
            np.searchsorted(ys, top) : np.searchsorted(ys, bottom),
            np.searchsorted(xs, left) : np.searchsorted(xs, right),
        ] = True
    return int(np.diff(ys) @ cells @ np.diff(xs)) if cells.size else 0


def _meets_others(boxes: Sequence[Rect], plates: Sequence[Plate]) -> list[int]:
    """Return for each plate: 2, 1 or 0.

    2: it covers a part of a box that does not hold its own box. 1: it stands outside its own box, in a box that holds
    it. 0: neither.
    """
    regions = _rects(boxes)
    return [int(_strangeness(_rects([plate.rect]), regions, place)[0][0]) for place, plate in enumerate(plates)]


def _holders(regions: Any, place: int) -> Any:
    """Return which boxes contain a box completely, itself included."""
    own = regions[place]
    return (regions[:, :2] <= own[:2]).all(axis=1) & (regions[:, 2:] >= own[2:]).all(axis=1)


def _strangeness(rects: Any, regions: Any, place: int) -> tuple[Any, Any]:
    """Return for each of n places of a plate how far the place lies in foreign boxes.

    Returns:
        For each place 0, 1 or 2 as in ``_meets_others``; and the largest share of the plate in one box that does not
        hold its own box.
    """
    own, holds = regions[place], _holders(regions, place)
    shares = _overlap(rects, regions) / np.maximum(1, _area(rects))[:, None]
    inside = (rects[:, :2] >= own[:2]).all(axis=1) & (rects[:, 2:] <= own[2:]).all(axis=1)
    strange = shares[:, ~holds].max(axis=1, initial=0)
    others = holds & (np.arange(len(regions)) != place)
    held = (shares[:, others] > 0).any(axis=1) & ~inside
    return np.where(strange > 0, 2, held.astype(int)), strange


_Kind = tuple[Any, float]
"""A kind of places for a plate: the rectangles that the plate must not meet, shape (n, 4), and the largest share of a box that it may hide."""


@dataclass(frozen=True)
class _Scene:
    """What plates are placed on.

    Attributes:
        size: width and height of the image (pixels).
        boxes: the k boxes.
        outlines: their outlines.
    """

    size: tuple[int, int]
    boxes: tuple[Rect, ...]
    outlines: tuple[Outline, ...]

    @functools.cached_property
    def regions(self) -> Any:
        """The boxes as an array, shape (k, 4)."""
        return _rects(self.boxes)

    @functools.cached_property
    def frames(self) -> Any:
        """The outer edges of the outlines, without the white hairlines, shape (k, 4)."""
        return _rects(frame.outer for frame in self.outlines)

    @functools.cached_property
    def halos(self) -> Any:
        """The outer edges of the white hairlines, shape (k, 4)."""
        return _rects(frame.halo for frame in self.outlines)

    @functools.cached_property
    def rings(self) -> list[Any]:
        """What each outline paints, hairline included: up to four rectangles, shape (up to 4, 4)."""
        return [_rects(_strips(frame.halo, frame.inner)) for frame in self.outlines]

    @functools.cached_property
    def kinds(self) -> list[list[_Kind]]:
        """The kinds of places for the plate of each box, best first (``_kinds``)."""
        return [_kinds(self, place) for place in range(len(self.boxes))]


def _placed(scene: _Scene, texts: Sequence[str], sizes: Sequence[int], strict: bool) -> list[Plate]:
    """Return the plates of the first font size at which none is in the way, else of the best size.

    Args:
        scene: the boxes on their image.
        texts: their labels.
        sizes: font sizes to try, in order.
        strict: whether plates avoid other boxes.
    """
    best: tuple[tuple[int, float], list[Plate]] | None = None
    for points in dict.fromkeys(sizes):
        plates, overlap = _place(scene, texts, points, strict)
        badness = (_meets_others(scene.boxes, plates).count(2) if strict else 0, overlap)
        if best is None or badness < best[0]:
            best = (badness, plates)
        if badness == (0, 0):
            break
    return best[1] if best else []


def _require_inside(box: Rect, number: int, size: tuple[int, int]) -> None:
    left, top, right, bottom = box
    if right <= left or bottom <= top:
        raise BoxError(
            f"box R{number} {list(box)} is empty; a box is [left, top, right, bottom] with left < right and top < bottom"
        )
    if left < 0 or top < 0 or right > size[0] or bottom > size[1]:
        raise BoxError(
            f"box R{number} {list(box)} leaves the image of {size[0]} x {size[1]} pixels (upright, after EXIF orientation)"
        )


def outline(box: Rect, size: tuple[int, int], width: int) -> Outline:
    """Return the frame of a box: ``width`` pixels around the box, inside the box where the image ends.

    >>> outline((0, 10, 20, 30), (100, 100), 2)
    Outline(outer=(0, 8, 22, 32), inner=(2, 10, 20, 30), halo=(0, 7, 23, 33))
    """
    outer = clip((box[0] - width, box[1] - width, box[2] + width, box[3] + width), size)
    inner = (
        min(outer[0] + width, box[2]),
        min(outer[1] + width, box[3]),
        max(outer[2] - width, box[0]),
        max(outer[3] - width, box[1]),
    )
    hair = max(1, width // 4)
    return Outline(outer, inner, clip((outer[0] - hair, outer[1] - hair, outer[2] + hair, outer[3] + hair), size))


def clip(rect: Rect, size: tuple[int, int]) -> Rect:
    """Return the part of a box inside an image of this size (width, height)."""
    return (max(0, rect[0]), max(0, rect[1]), min(size[0], rect[2]), min(size[1], rect[3]))


def _ring(pen: ImageDraw.ImageDraw, outer: Rect, inner: Rect, colour: tuple[int, int, int]) -> None:
    """Paint the area between ``inner`` and ``outer``."""
    for left, top, right, bottom in _strips(outer, inner):
        # Pillow's rectangles hold their last row and column, ours do not
        pen.rectangle((left, top, right - 1, bottom - 1), fill=colour)


def _strips(outer: Rect, inner: Rect) -> list[Rect]:
    """Return non-overlapping rectangles for the area between ``inner`` and ``outer``."""
    left, top, right, bottom = outer
    strips = (
        (left, top, right, inner[1]),
        (left, inner[3], right, bottom),
        (left, inner[1], inner[0], inner[3]),
        (inner[2], inner[1], right, inner[3]),
    )
    return [strip for strip in strips if strip[0] < strip[2] and strip[1] < strip[3]]


# plates


@functools.lru_cache(maxsize=64)
def _font(points: int) -> Any:
    return ImageFont.load_default(points)


@functools.lru_cache(maxsize=1024)
def _plate_size(text: str, points: int) -> tuple[int, int]:
    """Return width and height of a plate: the text, and a margin of a sixth of the font size.

    Plates of one font size are equally high.
    """
    left, _, right, _ = _font(points).getbbox(text)
    # The height of all digits and "R", so that plates of a size are equally high.
    _, top, _, bottom = _font(points).getbbox("R0123456789")
    margin = max(2, round(points / 6))
    return int(right - left) + 2 * margin, int(bottom - top) + 2 * margin


def _font_size(size: tuple[int, int], texts: Sequence[str], points: int) -> int:
    """Return the font size asked for, or the largest at which all labels fit the image."""
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
    # the ink of a text begins some pixels beyond the place it is drawn at
    text_left, _, text_right, _ = font.getbbox(plate.text)
    _, text_top, _, text_bottom = font.getbbox("R0123456789")
    x = left + (right - left - (text_right - text_left)) // 2 - text_left
    y = top + (bottom - top - (text_bottom - text_top)) // 2 - text_top
    pen.text((x, y), plate.text, fill=WHITE, font=font)


def _candidates(size: tuple[int, int], frame: Outline, plate: tuple[int, int]) -> tuple[Any, Any]:
    """Return the places of a plate at a box, best first, shape (n, 4), and which of them lie inside the box."""
    left, top, right, bottom = frame.halo
    width, height = plate
    xs = list(
        dict.fromkeys(
            (left, right - width, (left + right - width) // 2, *range(left - width, right + 1, max(1, width)))
        )
    )
    ys = list(
        dict.fromkeys(
            (top, bottom - height, (top + bottom - height) // 2, *range(top - height, bottom + 1, max(1, height)))
        )
    )
    beside = [(x, top - height) for x in _few(xs)] + [(x, bottom) for x in _few(xs)]
    beside += [(left - width, y) for y in _few(ys)] + [(right, y) for y in _few(ys)]
    beside = [(x, y) for x, y in beside if x >= 0 and y >= 0 and x + width <= size[0] and y + height <= size[1]]
    near, far = frame.inner[:2], (frame.inner[2] - width, frame.inner[3] - height)
    middle = ((frame.inner[0] + frame.inner[2] - width) // 2, (frame.inner[1] + frame.inner[3] - height) // 2)
    inside = [(near[0], near[1]), (far[0], near[1]), (near[0], far[1]), (far[0], far[1])]
    inside += [(middle[0], near[1]), (middle[0], far[1]), (near[0], middle[1]), (far[0], middle[1])]
    inside = [(min(max(x, 0), max(0, size[0] - width)), min(max(y, 0), max(0, size[1] - height))) for x, y in inside]
    corners = list(dict.fromkeys(beside)) + list(dict.fromkeys(inside))
    rects = [clip((x, y, x + width, y + height), size) for x, y in corners]
    return _rects(rects), np.arange(len(rects)) >= len(dict.fromkeys(beside))


def _further(scene: _Scene, place: int, plate: tuple[int, int], avoid: Any) -> tuple[Any, Any]:
    """Return further places of a plate near its box without meeting ``avoid``, shape (n, 4), and which lie inside.

    If any place along a side of the box, or in it, is free, then a free place exists whose edges touch the ends of that
    side or a rectangle to avoid. So only such places are tried, and those that touch the edges of boxes that hold the
    box: it is better not to cross them.

    Args:
        scene: the boxes on their image.
        place: of the box, from 0.
        plate: width and height of the plate.
        avoid: rectangles that the plate must not meet, shape (n, 4).
    """
    box, frame, holds = scene.boxes[place], scene.outlines[place], _holders(scene.regions, place)
    holders = scene.regions[holds & (np.arange(len(holds)) != place)]
    width, height = plate
    left, top, right, bottom = frame.halo
    avoid = avoid[_overlap(_rects([(left - width, top - height, right + width, bottom + height)]), avoid)[0] > 0]
    edges = np.concatenate([avoid[:_NEIGHBOURS], holders[:_NEIGHBOURS]])
    xs = np.unique([left - width, left, right - width, right, *edges[:, 2], *(edges[:, 0] - width)])
    ys = np.unique([top - height, top, bottom - height, bottom, *edges[:, 3], *(edges[:, 1] - height)])
    xs, ys = xs[(xs >= max(0, left - width)) & (xs <= right)], ys[(ys >= max(0, top - height)) & (ys <= bottom)]
    beside = np.concatenate([_crossings(xs, [top - height, bottom]), _crossings(ys, [left - width, right])[:, ::-1]])
    across = np.unique([box[0], frame.inner[0], *avoid[:_NEIGHBOURS, 2]])
    down = np.unique([box[1], frame.inner[1], *avoid[:_NEIGHBOURS, 3]])
    across, down = (
        across[(across >= box[0]) & (across + width <= box[2])],
        down[(down >= box[1]) & (down + height <= box[3])],
    )
    corners = np.concatenate([beside, _crossings(across, down)])
    rects = np.concatenate([corners, corners + (width, height)], axis=1)
    within = np.arange(len(rects)) >= len(beside)
    fits = (
        (rects[:, :2] >= 0).all(axis=1) & (rects[:, 2:] <= scene.size).all(axis=1) & ~_overlap(rects, avoid).any(axis=1)
    )
    return rects[fits], within[fits]


def _crossings(first: Any, second: Any) -> Any:
    """Return all pairs (first number, second number), the first changing fastest, shape (n, 2)."""
    return np.stack([np.tile(first, len(second)), np.repeat(second, len(first))], axis=1)


def _few(places: list[int], most: int = 16) -> list[int]:
    """Return the three aligned places, then evenly spread places."""
    rest = places[3:]
    step = max(1, -(-len(rest) // (most - 3)))
    return places[:3] + rest[::step]


def _place(scene: _Scene, texts: Sequence[str], points: int, strict: bool) -> tuple[list[Plate], float]:
    """Return the plates at a font size, and the number of pixels shared between plates.

    With ``strict`` plates avoid other boxes.
    """
    options, fixed = [], []
    for place, frame in enumerate(scene.outlines):
        plate = _plate_size(texts[place], points)
        rects, inside = _candidates(scene.size, frame, plate)
        if strict:
            more = _further(scene, place, plate, scene.regions[~_holders(scene.regions, place)])
            rects, inside = np.concatenate([rects, more[0]]), np.concatenate([inside, more[1]])
        options.append(rects)
        fixed.append(_fixed_cost(scene, place, rects, inside, strict))
        if strict:
            # sorted back, since of places of one cost the first is taken
            best = np.sort(np.argsort(fixed[-1], kind="stable")[:_OPTIONS])
            options[-1], fixed[-1] = options[-1][best], fixed[-1][best]
    # Plates with few good places choose first, since they cannot dodge later.
    order = sorted(range(len(texts)), key=lambda place: (int((fixed[place] < 1).sum()), place))
    # Plates not yet placed are empty rectangles, which meet nothing.
    taken = np.zeros((len(texts), 4), np.int64)
    meeting = _MEETING if strict else 50.0
    chosen: dict[int, int] = {}

    # A plate may move once its neighbours have chosen, so all choose again until nothing changes.
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
    # a plate shares all its pixels with itself
    np.fill_diagonal(shared, 0)
    plates = [
        Plate((int(r[0]), int(r[1]), int(r[2]), int(r[3])), text, points) for r, text in zip(taken, texts, strict=True)
    ]
    # each pair is in the table twice
    return plates, float(shared.sum()) / 2


_Better = Callable[[_Scene, int, Plate, Any], Plate | None]
"""From the boxes, the place of a box, its plate and the other plates: the plate in a better place that meets no other plate, if there is one."""


def _moved(scene: _Scene, plates: Sequence[Plate], better: _Better) -> list[Plate]:
    """Move plates to better places until there are none.

    No plate gets worse by another's move, so the moves come to an end.
    """
    moved, before = list(plates), None
    while moved != before:
        before = list(moved)
        for place, plate in enumerate(before):
            moved[place] = better(scene, place, plate, _others(moved, place)) or plate
    return moved


def _others(plates: Sequence[Plate], place: int) -> Any:
    """Return the rectangles of all plates except the plate at ``place``, shape (k - 1, 4)."""
    return _rects(plate.rect for at, plate in enumerate(plates) if at != place)


def _off_other_boxes(scene: _Scene, place: int, plate: Plate, others: Any) -> Plate | None:
    """Return a plate moved out of a foreign box into free room nearby, smaller where needed; None if not moved."""
    strange = scene.regions[~_holders(scene.regions, place)]
    sizes = range(plate.size, min(plate.size, _TINY) - 1, -1) if _meets(plate, strange) else ()
    for points in sizes:
        places = _further(scene, place, _plate_size(plate.text, points), np.concatenate([strange, others]))
        if len(places[0]):
            return _plates(scene, place, plate.text, points, places)[0]
    return None


def _first_free(
    scene: _Scene, place: int, plate: Plate, kinds: Sequence[_Kind], others: Any, sizes: Sequence[int]
) -> Plate | None:
    """Return the plate in the best free place of the first possible kind and font size.

    None where none has.

    Args:
        scene: the boxes on their image.
        place: of the box, from 0.
        plate: its plate.
        kinds: kinds of places, best first; a place that suits one of them suits the last.
        others: the other plates, shape (n, 4).
        sizes: font sizes, falling. Where much of a box may be hidden, the last alone is tried.
    """
    tries = [
        (points, (np.concatenate([avoid, others]), most))
        for avoid, most in kinds
        for points in (sizes[-1:] if most == _MUCH else sizes)
        # A place that suits any try suits the last, so without a place there the other tries are spared.
    ]
    last = _free_places(scene, place, plate.text, *tries[-1]) if tries else []
    # no place of any kind and size
    if not last:
        return None
    return next((free[0] for one in tries[:-1] if (free := _free_places(scene, place, plate.text, *one))), last[0])


def _free_places(scene: _Scene, place: int, text: str, points: int, kind: _Kind) -> list[Plate]:
    """Return the plate of a font size in each place of a kind, best first."""
    avoid, most = kind
    plate = _plate_size(text, points)
    usual, further = _candidates(scene.size, scene.outlines[place], plate), _further(scene, place, plate, avoid)
    off = ~_overlap(usual[0], avoid).any(axis=1)
    rects, inside = np.concatenate([usual[0][off], further[0]]), np.concatenate([usual[1][off], further[1]])
    fits = (_hidden(rects, scene.regions) <= most).all(axis=1)
    return _plates(scene, place, text, points, (rects[fits], inside[fits]))


def _plates(scene: _Scene, place: int, text: str, points: int, places: tuple[Any, Any]) -> list[Plate]:
    """Return the plate at a font size in each of n places, the cheapest place first."""
    rects = places[0][np.argsort(_fixed_cost(scene, place, *places, strict=True), kind="stable")]
    return [Plate((left, top, right, bottom), text, points) for left, top, right, bottom in rects.tolist()]


# plates on other outlines


def _cleared(scene: _Scene, plates: Sequence[Plate], sizes: Sequence[int]) -> list[Plate]:
    """Move plates off the outlines of foreign boxes and off further plates.

    Where it helps, plates in their way move too.

    Args:
        scene: the boxes on their image.
        plates: the plates.
        sizes: the font sizes that plates may take.
    """
    better = functools.partial(_off_outlines, sizes=sizes)
    moved = _moved(scene, plates, better)
    for place in range(len(moved)):
        with_room = _with_room(scene, moved, place, sizes)
        moved = _moved(scene, with_room, better) if with_room else moved
    return moved


def _kinds(scene: _Scene, place: int) -> list[_Kind]:
    """Return the kinds of places for a plate, best first: rectangles to avoid, and the largest share of a box to hide.

    The first three are free: a pixel or more from all other outlines; maybe beside one; and maybe hiding much of a box.
    The next may cross outlines; the next may lie in a box that does not hold the plate's own, but crosses no outline;
    the last may do both. Each of the first four suits the next. A box equal to the plate's own is no other box.
    """
    regions, holds = scene.regions, _holders(scene.regions, place)
    unlike = (regions != regions[place]).any(axis=1)
    around = np.concatenate([scene.halos[~holds], *(scene.rings[at] for at in np.flatnonzero(holds & unlike))])
    apart = around + (-1, -1, 1, 1)
    rings = np.concatenate([_rects([]), *(scene.rings[at] for at in np.flatnonzero(unlike))])
    return [
        (apart, _LITTLE),
        (around, _LITTLE),
        (around, _MUCH),
        (regions[~holds], 1.0),
        (rings, 1.0),
        (_rects([]), 1.0),
    ]


def _kind(scene: _Scene, plate: Plate, kinds: Sequence[_Kind], others: Any) -> int:
    """Return the kind of a plate's place as a number from 0; the number of kinds where the plate meets another."""
    if _meets(plate, others):
        return len(kinds)
    hidden = _hidden(_rects([plate.rect]), scene.regions).max()
    return next(at for at, (avoid, most) in enumerate(kinds) if hidden <= most and not _meets(plate, avoid))


def _off_outlines(scene: _Scene, place: int, plate: Plate, others: Any, *, sizes: Sequence[int]) -> Plate | None:
    """Return a plate moved off a foreign outline or another plate to a place of a better kind; None if not moved.

    Args:
        scene: the boxes on their image.
        place: of the box, from 0.
        plate: its plate.
        others: the other plates, shape (k - 1, 4).
        sizes: the font sizes that plates may take. A plate in a box that does not hold its own, or on another plate,
            may become smaller than these: that comes before a place in such a box.
    """
    kinds = scene.kinds[place]
    if not _meets(plate, kinds[0][0]) and not _meets(plate, others):
        return None
    now, usual = _kind(scene, plate, kinds, others), _not_larger(plate, sizes)
    tiny = range(usual[-1] - 1, _TINY - 1, -1) if now > _CROSSING else ()
    # Free places and places across outlines come before places inside foreign boxes.
    outside, inside = (
        kinds[: min(now, _CROSSING + 1)],
        kinds[_CROSSING + 1 : now],
    )
    tries = ((outside, usual), (outside, tiny), (inside, usual), (inside, tiny))
    found = (_first_free(scene, place, plate, some, others, some_sizes) for some, some_sizes in tries)
    return next((better for better in found if better), None)


def _not_larger(plate: Plate, sizes: Sequence[int]) -> list[int]:
    """Return the plate's font size and the smaller of the given sizes, falling."""
    return [plate.size, *sorted({points for points in sizes if points < plate.size}, reverse=True)]


def _with_room(scene: _Scene, plates: Sequence[Plate], place: int, sizes: Sequence[int]) -> list[Plate] | None:
    """Move a plate to a free place, and the plates there to free places elsewhere; return all plates.

    None where the plate crosses no other outline and no other plate, or this cannot be done.
    """
    plate, kind = plates[place], scene.kinds[place][_CROSSING - 1]
    if not _meets(plate, kind[0]) and not _meets(plate, _others(plates, place)):
        return None
    in_the_way: dict[tuple[int, ...], Plate] = {}
    for free in _free_places(scene, place, plate.text, _not_larger(plate, sizes)[-1], kind):
        met = tuple(at for at, other in enumerate(plates) if at != place and _meets(free, _rects([other.rect])))
        in_the_way.setdefault(met, free)
    for met, free in list(in_the_way.items())[:_EXCHANGES]:
        moved = list(plates)
        moved[place] = free
        for at in met:
            kinds, usual = scene.kinds[at][:_CROSSING], _not_larger(plates[at], sizes)
            moved[at] = _first_free(scene, at, plates[at], kinds, _others(moved, at), usual) or moved[at]
        if all(moved[at] != plates[at] for at in met):
            return moved
    return None


def _fixed_cost(scene: _Scene, place: int, rects: Any, inside: Any, strict: bool) -> Any:
    """Return each candidate place's cost apart from plates already placed, shape (candidates,)."""
    regions, frames = scene.regions, scene.frames
    hidden = _hidden(rects, regions)
    hidden[:, place] *= 1.5
    # an outline is what its outer rectangle has around the box
    crossed = (_overlap(rects, frames) - _overlap(rects, regions)) / np.maximum(1, _area(rects))[:, None]
    crossed[:, place] = 0
    cost = 100 * hidden.sum(axis=1) + 3 * crossed.sum(axis=1) + 0.5 * inside + 0.005 * np.arange(len(rects))
    if not strict:
        return cost
    kind, share = _strangeness(rects, regions, place)
    return cost + _HELD * (kind == 1) + _STRANGE * (kind == 2) * (1 + share)


def _hidden(rects: Any, regions: Any) -> Any:
    """Return the hidden share of each of k boxes under each of n rectangles, shape (n, k)."""
    return _overlap(rects, regions) / np.maximum(1, _area(regions))


def _meets(plate: Plate, rects: Any) -> bool:
    """Return whether a plate shares a pixel with any of n rectangles."""
    return bool(_overlap(_rects([plate.rect]), rects).any())


def _rects(rects: Iterable[Rect]) -> Any:
    """Return rectangles as an array, shape (n, 4)."""
    return np.array(list(rects), np.int64).reshape(-1, 4)


def _area(rects: Any) -> Any:
    return (rects[:, 2] - rects[:, 0]) * (rects[:, 3] - rects[:, 1])


def _overlap(first: Any, second: Any) -> Any:
    """Return the number of pixels shared by each of n with each of m rectangles, shape (n, m)."""
    wide = np.minimum(first[:, None, 2], second[None, :, 2]) - np.maximum(first[:, None, 0], second[None, :, 0])
    high = np.minimum(first[:, None, 3], second[None, :, 3]) - np.maximum(first[:, None, 1], second[None, :, 1])
    return np.maximum(0, wide) * np.maximum(0, high)
