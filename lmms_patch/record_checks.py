"""Is a doc's record as we write it? Readers refuse what is not, before a number is taken from it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_patch.plain_json import is_number, is_whole
from lmms_patch.spec import MAX_GRID, MIN_GRID, REGIONS

LOANS = 100
"""Donors of a doc that a log may have; ours write 10."""
PIXELS = 10**6
"""Of a side of an image."""
_PLACES = ("cell", "row", "col")


def wrong_views(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a doc's views on another doc's image; empty where it was not asked so, and in records of earlier versions.

    Raises:
        TypeError: they are no list of objects, or their doc is no number.
    """
    wrong = record.get("wrong_image")
    if wrong is None:
        return []
    if not isinstance(wrong, dict) or not is_whole(wrong.get("from")):
        raise TypeError("'wrong_image' as an object with the number of a doc")
    views = wrong.get("views", [])
    if not isinstance(views, list) or not all(isinstance(view, dict) for view in views):
        raise TypeError("'wrong_image' with a list of views")
    return views


def whole(record: Mapping[str, Any]) -> int:
    """The doc id of a record whose parts are of the types that readers count on.

    Raises:
        TypeError, KeyError: one is not.
    """
    doc_id: int = record["doc_id"]
    if not is_whole(doc_id, 0, 10**15):
        raise TypeError("'doc_id' as a whole number")
    for name in ("best", "excluded"):
        if not isinstance(record[name], dict):
            raise TypeError(f"{name!r} as an object")
    if not all(is_whole(place, 0, len(record["views"]) - 1) for place in record["best"].values()):
        raise TypeError("'best' as places of views")
    for view in (*record["views"], *wrong_views(record)):
        if not isinstance(view["items"], dict) or not isinstance(view["kind"], str):
            raise TypeError("views with items and kind")
        if not isinstance(view.get("failed", ""), str):
            raise TypeError("views that say in words what failed")
        if "cell" in view and not (is_whole(view["n"], MIN_GRID, MAX_GRID) and all(is_whole(view[key], 0, view["n"] ** 2) for key in _PLACES)):
            raise TypeError("cells with n, row and col")
        if "region" in view and not (is_whole(view["region"]) and isinstance(view["relevant"], bool)):
            raise TypeError("boxes that say whether they are relevant")
        if not _boxes(view.get("boxes", [])):
            raise TypeError("boxes as four pixels each")
    if not all(isinstance(view["said"], str) for view in wrong_views(record)):
        raise TypeError("what was said of a wrong image")
    sizes = record.get("image_sizes", [])
    if not isinstance(sizes, list) or not all(
        isinstance(size, list) and len(size) == 2 and all(is_whole(x, 1, PIXELS) for x in size) for size in sizes
    ):
        raise TypeError("'image_sizes' as pairs of pixels")
    if not all(isinstance(reason, str) for reason in record["excluded"].values()) or not all(
        str(n).isdigit() or n in REGIONS for n in record["excluded"]
    ):
        raise TypeError("'excluded' as reasons by grid")
    for name, kind in (("baselines", list), ("fields", dict), ("answer", dict), ("lent", dict), ("tst", dict)):
        if not isinstance(record.get(name, kind()), kind):
            raise TypeError(f"{name!r} as {'a list' if kind is list else 'an object'}")
    _check_references(record)
    return doc_id


def _boxes(boxes: Any) -> bool:
    return isinstance(boxes, list) and all(
        isinstance(box, list) and (not box or (len(box) == 4 and all(is_whole(x, -PIXELS, PIXELS) for x in box))) for box in boxes
    )


def _check_references(record: Mapping[str, Any]) -> None:
    """Check what the chance floors, the ceiling and luck are computed from; ``p`` of a loan sizes a table.

    Raises:
        TypeError: a part is of another type, or a number out of bounds.
    """
    for one in record.get("baselines", ()):
        told = isinstance(one, dict) and isinstance(one.get("answer"), str) and isinstance(one.get("items", {}), dict)
        if not told or not _texts(one.get("roles")) or not isinstance(one.get("scores"), dict) or not _scores(one["scores"].values()):
            raise TypeError("baselines with answer, roles and scores")
    answer = record.get("answer", {})
    if not is_whole(answer.get("options", 0), 0, PIXELS) or not all(isinstance(answer.get(key, ""), str) for key in ("format", "label")):
        raise TypeError("'answer' with format, label and number of options")
    lent = record.get("lent")
    if lent:
        columns = [lent.get(key) for key in ("to", "p", "full")]
        columns += lent["best"].values() if isinstance(lent.get("best"), dict) else [None]
        if not all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns):
            raise TypeError("'lent' as lists of one length")
        to, places, *scores = columns
        if not all(map(is_whole, to)) or not all(is_whole(p, 0, LOANS - 1) for p in places) or not all(map(_scores, scores)):
            raise TypeError(f"'lent' with doc ids, numbers below {LOANS} and scores")


def _scores(values: Any) -> bool:
    return all(value is None or isinstance(value, bool) or is_number(value) for value in values)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
