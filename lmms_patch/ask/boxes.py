"""A doc's own boxes, read from its row. Pure; docs/regions.md lists the forms that are understood.

A doc with one unreadable box counts as a doc without boxes: with one box missing, another box could come out best. The
fault names the kind of problem before the colon and the details after it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_patch import files
from lmms_patch.ask.kinds import REGIONS
from lmms_patch.ask.views import Box, HiddenView, Region, Size

_NUMBERS = (("left", "top", "right", "bottom"), ("x", "y", "w", "h"), ("x", "y", "width", "height"))
# 1 and 0 are the same keys as True and False, so numbers are understood, too
_FLAGS: dict[Any, bool] = {True: True, False: False, "relevant": True, "adversarial": False}
ALL = "all"
"""The value of the option ``relevant`` that makes every box relevant, whatever the doc says."""
_NOISE = 1e-6


@dataclass(frozen=True)
class DocBoxes:
    """The boxes of one doc.

    Attributes:
        boxes: in the doc's order, numbered from 1; none where there is a fault.
        fault: why the doc's boxes cannot be used; empty otherwise.
    """

    boxes: tuple[Region, ...] = ()
    fault: str = ""


class _BoxError(ValueError):
    """A fault in a doc's boxes."""


def read(row: Mapping[str, Any], boxes: str = "boxes", relevant: str = "relevant", form: str = "ltrb") -> DocBoxes:
    """Read the boxes of a doc.

    Args:
        row: the doc.
        boxes: name of the field with the boxes: a list, each box four numbers or a mapping; or a mapping of lists; or
            JSON text of either; or the four numbers of a single box.
        relevant: name of the field that says which boxes are relevant: a list as long as that of the boxes. Not read
            where each box says it itself. ``all``, where the doc has no field of this name: each of them.
        form: meaning of the four numbers (pixels): ``ltrb`` left, top, right, bottom; ``ltwh`` left, top, width,
            height.

    >>> read({"boxes": [[0, 0, 9, 5]], "relevant": [True]}).boxes[0].area
    (0, 0, 9, 5)
    >>> read({"boxes": [[9, 0, 9, 5]], "relevant": [True]}).fault
    'a box without area: box 1 is [9, 0, 9, 5]'
    """
    try:
        entries = _entries(_plain(within(row, boxes)), boxes)
        marks = within(row, relevant)
        if marks is None and relevant == ALL:
            marks = [True] * len(entries)
        flags = _flags(entries, _plain(marks), boxes, relevant) if entries else []
        corners = [_corners(entry, place, form) for place, entry in enumerate(entries, 1)]
        numbers = [x for one in corners for x in one]
        # with whole numbers alone it may be the single pixel [0, 0, 1, 1]
        if all(abs(x) <= 1 for x in numbers) and any(x != int(x) for x in numbers):
            raise _BoxError("boxes that are not in pixels: all numbers lie between 0 and 1")
        places = enumerate(zip(corners, flags, strict=True), 1)
        return DocBoxes(tuple(Region(number=i, area=_area(one, i), relevant=flag) for i, (one, flag) in places))
    except _BoxError as fault:
        return DocBoxes((), str(fault))


def misfit(boxes: Sequence[Region], size: Size, min_side: int = 1) -> str:
    """Return why a doc's boxes do not fit an image of this size; empty where they do.

    Args:
        boxes: the boxes of the doc.
        size: width and height of the image as the base task shows it (pixels).
        min_side: the shortest allowed side of a box (pixels).
    """
    for one in boxes:
        left, top, right, bottom = one.area
        if right > size[0] or bottom > size[1]:
            return f"a box that leaves the image: box {one.number} is {list(one.area)}, the image has {size[0]}x{size[1]} pixels"
        if min(right - left, bottom - top) < min_side:
            return f"a box that is too small: box {one.number} has {right - left}x{bottom - top} pixels, min_side is {min_side}"
    return ""


def hide(boxes: Sequence[Region], name: str, size: Size) -> HiddenView | str:
    """Return the view of a doc's image with all boxes of a set hidden, or why there is none.

    Pixels in boxes of both sets are hidden with the relevant boxes alone: the adversarial view is to hide nothing that
    the answer needs.

    Args:
        boxes: all boxes of the doc; they fit the image (``misfit``).
        name: the set, one of ``kinds.REGIONS``.
        size: of the image (pixels).
    """
    areas: dict[Any, list[Box]] = {key: [one.area for one in boxes if one.set == key] for key in REGIONS}
    relevant = name == REGIONS[0]
    if not areas[name]:
        return f"no {name} box" if boxes else "no box"
    shown = disjoint(areas[name], [] if relevant else areas[REGIONS[0]])
    hidden = sum((right - left) * (bottom - top) for left, top, right, bottom in shown)
    if not hidden:
        return f"{name} boxes that lie within relevant ones"
    if hidden == size[0] * size[1]:
        return f"{name} boxes that cover the whole image"
    return HiddenView(relevant=relevant, areas=shown, share=hidden / (size[0] * size[1]))


def disjoint(boxes: Sequence[Box], without: Sequence[Box] = ()) -> tuple[Box, ...]:
    """Return rectangles without a common pixel that cover exactly the pixels of some boxes that are in none of some others.

    >>> disjoint([(0, 0, 4, 4), (2, 2, 6, 4)], [(0, 0, 1, 4)])
    ((1, 0, 4, 2), (1, 2, 6, 4))
    """
    out: list[Box] = []
    for top, bottom in itertools.pairwise(sorted({y for box in (*boxes, *without) for y in (box[1], box[3])})):
        inside, outside = (
            _spans(box for box in some if box[1] <= top and bottom <= box[3]) for some in (boxes, without)
        )
        for left, right in itertools.pairwise(sorted({x for span in (*inside, *outside) for x in span})):
            if not (_within(left, inside) and not _within(left, outside)):
                continue
            above = out[-1] if out else (0, 0, 0, 0)
            # the rectangle before ends here: it grows to the right, so that there are fewer of them
            if (above[1], above[3], above[2]) == (top, bottom, left):
                out[-1] = (above[0], top, right, bottom)
            else:
                out.append((left, top, right, bottom))
    return tuple(out)


def _spans(boxes: Iterable[Box]) -> list[tuple[int, int]]:
    return [(left, right) for left, _, right, _ in boxes]


def _within(x: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(left <= x < right for left, right in spans)


def _plain(value: Any) -> Any:
    """Return a field of a doc with JSON text parsed, and an array as a list."""
    if isinstance(value, str):
        try:
            return files.parse_json(value) if value.strip() else []
        except ValueError:
            return value
    # rows of a Parquet file may have arrays in place of lists
    return value.tolist() if hasattr(value, "tolist") else value


def _entries(value: Any, name: str) -> list[Any]:
    """Return an entry for each box, from a list, a mapping of lists, or the four numbers of a single box."""
    fault = f"boxes that cannot be read: field {name!r}"
    if value is None:
        return []
    # datasets gives a list of structs as a mapping of columns
    if isinstance(value, Mapping):
        columns = list(map(_plain, value.values()))
        if not all(isinstance(column, (list, tuple)) for column in columns) or len(set(map(len, columns))) != 1:
            raise _BoxError(f"{fault} is a mapping, but not of lists that are equally long")
        return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]
    if not isinstance(value, (list, tuple)):
        raise _BoxError(f"{fault} holds a {type(value).__name__}, not a list of boxes")
    return [value] if len(value) == 4 and all(map(_is_number, value)) else list(value)


def _flags(entries: Sequence[Any], marks: Any, boxes: str, relevant: str) -> list[bool]:
    """Return whether each box is relevant: as the box itself says, else as the field beside the boxes does."""
    own = all(isinstance(entry, Mapping) and entry.keys() & {"relevant", "adversarial"} for entry in entries)
    turned = [own and "relevant" not in entry for entry in entries]
    if own:
        marks = [entry["adversarial" if turn else "relevant"] for entry, turn in zip(entries, turned, strict=True)]
    if not isinstance(marks, (list, tuple)):
        told = f"neither the boxes nor a list in field {relevant!r} say so"
        mend = "name the field with the option 'relevant', or set relevant: all"
        raise _BoxError(f"boxes of which it is not known whether they are relevant: {told}; {mend}")
    if len(marks) != len(entries):
        raise _BoxError(f"lists that are not equally long: {len(entries)} in {boxes!r}, {len(marks)} in {relevant!r}")
    for place, mark in enumerate(marks, 1):
        if not isinstance(mark, (bool, int, float, str)) or mark not in _FLAGS:
            raise _BoxError(
                f"a box that is neither relevant nor not: box {place} is marked {mark!r}; allowed: true, false"
            )
    return [_FLAGS[mark] != turn for mark, turn in zip(marks, turned, strict=True)]


def _corners(entry: Any, place: int, form: str) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a box, as given."""
    numbers: Any = entry
    if isinstance(entry, Mapping):
        numbers = next((entry[key] for key in ("box", "bbox") if entry.get(key) is not None), None)
        keys = next((keys for keys in _NUMBERS if all(entry.get(key) is not None for key in keys)), None)
        if numbers is None and keys is not None:
            numbers, form = [entry[key] for key in keys], "ltrb" if keys[0] == "left" else "ltwh"
    numbers = _plain(numbers)
    if not isinstance(numbers, (list, tuple)) or len(numbers) != 4 or not all(map(_is_number, numbers)):
        raise _BoxError(f"a box that is not four numbers: box {place} is {entry!r:.80}")
    left, top, right, bottom = map(float, numbers)
    return (left, top, left + right, top + bottom) if form == "ltwh" else (left, top, right, bottom)


def _area(corners: tuple[float, float, float, float], place: int) -> Box:
    """Round a box outwards to whole pixels: left, top, right, bottom.

    Coordinates within ``_NOISE`` of a whole pixel count as that pixel: scaled boxes are inexact by about that much.
    """
    left, top, right, bottom = corners
    told = f"box {place} is {[int(x) if x == int(x) else round(x, 3) for x in corners]}"
    if right - left <= _NOISE or bottom - top <= _NOISE:
        raise _BoxError(f"a box without area: {told}")
    if left < -_NOISE or top < -_NOISE:
        raise _BoxError(f"a box that leaves the image: {told}")
    return math.floor(left + _NOISE), math.floor(top + _NOISE), math.ceil(right - _NOISE), math.ceil(bottom - _NOISE)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def within(row: Mapping[str, Any], name: str) -> Any:
    """Return a doc's field, or a field of a field (``meta.boxes``); None where there is none."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
