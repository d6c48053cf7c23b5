"""Algorithm 1 of the MAGIC paper (appendix E): from saliency maps and scene-graph objects to relevant and adversarial boxes.

Rectangles are in pixels, half-open ``(left, top, right, bottom)``. OpenCV cleans and labels the maps, NumPy does the
rest. The paper names the operations but no thresholds: the defaults here are ours.

Source: MAGIC paper, 3.1, 3.4, appendix E (``FindBboxes``, ``RemoveOverlap``, ``AdvBoxes``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lmms_patch.magic.draw import clip
from lmms_patch.magic.sources import open_image

Rect = tuple[int, int, int, int]

SAME, MOST_IOU, MOST_COVERED = 0.5, 0.5, 0.8
"""Limits on how far two boxes overlap. A hotspot and an object whose IoU reaches SAME are one region, which keeps the object's box. Two boxes of one
kind have an IoU of at most MOST_IOU, and at most MOST_COVERED of the smaller box lies in the larger one."""


@dataclass(frozen=True)
class RegionSettings:
    """Settings for finding, merging and drawing regions.

    Attributes:
        threshold: of a saliency map, whose lowest value is 0 and whose highest is 1; a hotspot is above it.
        clean: side of the morphological element as a fraction of the image's shorter side; smaller specks are removed,
        smaller holes are closed.
        min_area: the smallest hotspot, as a fraction of the image (counting its pixels above the threshold, not its
        box).
        min_size: the shortest sides of an adversarial box, as a fraction of the image's width and height.
        max_size: the longest sides of an adversarial box, likewise.
        min_pixels: the shortest side of any adversarial box (pixels).
    """

    threshold: float = 0.5
    clean: float = 0.012
    min_area: float = 0.002
    min_size: float = 0.03
    max_size: float = 0.6
    min_pixels: int = 8


def area(rect: Rect) -> int:
    """Return the area in pixels; 0 where the box is empty."""
    return max(0, rect[2] - rect[0]) * max(0, rect[3] - rect[1])


def shared(first: Rect, second: Rect) -> int:
    """Return the number of pixels in common."""
    return area(
        (max(first[0], second[0]), max(first[1], second[1]), min(first[2], second[2]), min(first[3], second[3]))
    )


def iou(first: Rect, second: Rect) -> float:
    """Return intersection over union; 0 where both boxes are empty."""
    common = shared(first, second)
    union = area(first) + area(second) - common
    return common / union if union else 0.0


def coverage(first: Rect, second: Rect) -> float:
    """Return the covered fraction of the smaller of two boxes; 0 for an empty box."""
    smaller = min(area(first), area(second))
    return shared(first, second) / smaller if smaller else 0.0


def overlaps(first: Rect, second: Rect, most_iou: float, most_coverage: float) -> bool:
    """Return whether two boxes overlap more than allowed."""
    return iou(first, second) > most_iou or coverage(first, second) > most_coverage


# saliency


def load_saliency(path: str | Path, size: tuple[int, int]) -> Any:
    """Read a saliency map at the image's size: its lowest value is 0, its highest 1.

    Colour maps are converted to grey. A constant map, which points nowhere, becomes all 0.

    Args:
        path: an image file, 8 or 16 bits.
        size: width and height of the image (pixels).

    Returns:
        float64, shape (height, width).

    Raises:
        OSError: the file is missing or no image.
        ImageFaultError: it has too many pixels.
    """
    with open_image(Path(path)) as opened:
        deep = opened.mode in ("I", "F") or opened.mode.startswith("I;16")
        # Pillow would cut deep maps at 255 in making them grey.
        # It resizes floats of 32 bits, and no wider ones.
        grey = Image.fromarray(np.asarray(opened if deep else opened.convert("L")).astype(np.float32))
    values = np.asarray(grey.resize(size, Image.Resampling.BILINEAR)).astype(np.float64)
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def hotspots(saliency: Any, settings: RegionSettings) -> list[Rect]:
    """Return the boxes of a map's hotspots (``FindBboxes``), from top to bottom, then from left to right.

    The map is thresholded, then opened and closed with a round element. Hotspots are the 8-connected regions of at
    least ``min_area``.

    Args:
        saliency: shape (height, width), in [0, 1].
        settings: the thresholds.
    """
    import cv2

    height, width = saliency.shape
    binary = (saliency > settings.threshold).astype(np.uint8)
    # An odd side, so that the element has a centre.
    side = round(settings.clean * min(width, height)) // 2 * 2 + 1
    if side > 1:
        element = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
        # Open before close: specks go first, or closing would join them to regions.
        binary = np.asarray(cv2.morphologyEx(binary, cv2.MORPH_OPEN, element), np.uint8)
        binary = np.asarray(cv2.morphologyEx(binary, cv2.MORPH_CLOSE, element), np.uint8)
    _, _, stats, _ = cv2.connectedComponentsWithStats(binary, connectivity=8)
    boxes = []
    # Row 0 of the statistics is the background.
    for left, top, wide, high, pixels in stats[1:].tolist():
        if pixels >= settings.min_area * width * height:
            boxes.append((int(left), int(top), int(left + wide), int(top + high)))
    return sorted(boxes, key=lambda rect: (rect[1], rect[0], rect[3], rect[2]))


# overlap


def remove_overlap(rects: Sequence[Rect], most_iou: float, most_coverage: float) -> list[int]:
    """Return which boxes are kept (``RemoveOverlap``): places in the list, ascending.

    Boxes are visited by rank. A box is kept unless it overlaps a kept box: their IoU exceeds ``most_iou``, or the
    covered fraction of the smaller exceeds ``most_coverage``. The rank is by area, the earlier of two equal boxes first, so
    that the kept boxes cover most. Empty boxes are never kept.

    Args:
        rects: n boxes.
        most_iou: threshold; 0 allows no common pixel, 1 allows all.
        most_coverage: threshold; 0 allows no common pixel, 1 allows all.
    """
    staying: list[int] = []
    for at in sorted(range(len(rects)), key=lambda at: (-area(rects[at]), at)):
        if area(rects[at]) and not any(overlaps(rects[at], rects[other], most_iou, most_coverage) for other in staying):
            staying.append(at)
    return sorted(staying)


def merge(objects: Sequence[Rect], spots: Sequence[Rect], threshold: float) -> list[int]:
    """Return the places, ascending, of the hotspots with an IoU below ``threshold`` to every object."""
    return [at for at, spot in enumerate(spots) if all(iou(spot, one) < threshold for one in objects)]


# adversarial boxes


def right_size(rect: Rect, size: tuple[int, int], settings: RegionSettings) -> bool:
    """Return whether a box has the size of an adversarial box (``size_filter``)."""
    low, high = _limits(size, settings)
    wide, tall = rect[2] - rect[0], rect[3] - rect[1]
    return low[0] <= wide <= high[0] and low[1] <= tall <= high[1]


def _limits(size: tuple[int, int], settings: RegionSettings) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the shortest and longest sides (width, height) of an adversarial box."""
    # less a trace: a product such as 0.07 * 100 comes out above 7, and would ask for an eighth pixel
    low = tuple(max(settings.min_pixels, math.ceil(settings.min_size * side - 1e-9)) for side in size)
    high = tuple(math.floor(settings.max_size * side + 1e-9) for side in size)
    return (low[0], low[1]), (high[0], high[1])


def candidates(
    objects: Sequence[Rect], relevant: Sequence[Rect], size: tuple[int, int], settings: RegionSettings
) -> list[int]:
    """Return which objects can be adversarial: places in the list, ascending.

    Such objects have the right size, share no pixel with a relevant box, and do not overlap each other too much. The
    paper filters by size last; here it is first. Otherwise a wall-sized object would remove every object before it, and
    then be removed itself.
    """
    fit = [
        at
        for at, rect in enumerate(objects)
        if right_size(rect, size, settings) and not any(shared(rect, other) for other in relevant)
    ]
    staying = remove_overlap([objects[at] for at in fit], MOST_IOU, MOST_COVERED)
    return [fit[at] for at in staying]


def sample(rects: Sequence[Rect], quota: int, random: int | np.random.Generator) -> list[int]:
    """Draw up to ``quota`` of the boxes without replacement, each equally likely; return places in the order drawn."""
    stream = np.random.default_rng(random)
    # the start of one shuffle: a larger quota draws the same boxes first
    return [int(at) for at in stream.permutation(len(rects))[:quota]]


def synthesise(
    taken: Sequence[Rect],
    like: Sequence[Rect],
    size: tuple[int, int],
    settings: RegionSettings,
    random: int | np.random.Generator,
) -> Rect | None:
    """Return a random box without a pixel of the taken boxes.

    None where there is no room for the smallest allowed box.

    Its sides are those of a random box of ``like``, each varied by up to 30 %, so that its size does not betray that it
    shows nothing in particular. Where there is no room it shrinks in steps of a fifth, down to the smallest sides. Its
    place is uniform over all places with room.

    Args:
        taken: boxes that it must not meet.
        like: boxes whose sizes it imitates; without any, sides are uniform.
        size: width and height of the image (pixels).
        settings: the limits of its sides.
        random: a seed or a generator.
    """
    stream = np.random.default_rng(random)
    low, high = _limits(size, settings)
    if low[0] > high[0] or low[1] > high[1]:
        return None
    if like:
        model = like[int(stream.integers(len(like)))]
        drawn = [round((model[2 + axis] - model[axis]) * stream.uniform(0.7, 1.3)) for axis in (0, 1)]
    else:
        drawn = [int(stream.integers(low[axis], high[axis] + 1)) for axis in (0, 1)]
    # Sums over the taken pixels: whether a place is free takes four look-ups, whatever its size.
    sums = _sums(taken, size)
    while True:
        wide, tall = (min(max(drawn[axis], low[axis]), high[axis]) for axis in (0, 1))
        tops, lefts = _room(sums, wide, tall)
        if len(tops):
            at = int(stream.integers(len(tops)))
            return (int(lefts[at]), int(tops[at]), int(lefts[at]) + wide, int(tops[at]) + tall)
        if (wide, tall) == low:
            return None
        drawn = [math.floor(wide * 0.8), math.floor(tall * 0.8)]


def _sums(taken: Iterable[Rect], size: tuple[int, int]) -> Any:
    """Return the summed-area table of the taken pixels, shape (height + 1, width + 1)."""
    held = np.zeros((size[1] + 1, size[0] + 1), np.int64)
    for rect in taken:
        left, top, right, bottom = clip(rect, size)
        if left < right and top < bottom:
            # set, not added: a pixel of two boxes is taken once
            held[top + 1 : bottom + 1, left + 1 : right + 1] = 1
    return held.cumsum(axis=0).cumsum(axis=1)


def _room(sums: Any, wide: int, tall: int) -> tuple[Any, Any]:
    """Return tops and lefts of all boxes of a size without a taken pixel."""
    inside = sums[tall:, wide:] - sums[:-tall, wide:] - sums[tall:, :-wide] + sums[:-tall, :-wide]
    tops, lefts = np.nonzero(inside == 0)
    return tops, lefts
