"""Is a doc's record as we write it? Readers refuse what is not, before a number is taken from it. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from lmms_patch.errors import RecordError
from lmms_patch.plain_json import are_scores, is_whole
from lmms_patch.scoring import plain
from lmms_patch.spec import MAX_GRID, REGIONS

LOANS = 100
"""Donors of a doc that a log may have; ours write 10."""
DOCS = 10**15
PIXELS = 10**6
"""Of a side of an image."""
_PLACES = ("n", "cell", "row", "col")


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
    if not is_whole(doc_id, 0, DOCS):
        raise TypeError("'doc_id' as a whole number")
    for name in ("best", "excluded"):
        if not isinstance(record[name], dict):
            raise TypeError(f"{name!r} as an object")
    if not _wholes(list(record["best"].values()), 0, len(record["views"]) - 1):
        raise TypeError("'best' as places of views")
    for view in (*record["views"], *wrong_views(record)):
        if not isinstance(view["items"], dict) or not isinstance(view["kind"], str):
            raise TypeError("views with items and kind")
        if not isinstance(view.get("failed", ""), str):
            raise TypeError("views that say in words what failed")
        if "cell" in view and not _wholes([view[key] for key in _PLACES], 0, MAX_GRID**2):
            raise TypeError("cells with n, row and col")
        if "region" in view and not (is_whole(view["region"]) and isinstance(view["relevant"], bool)):
            raise TypeError("boxes that say whether they are relevant")
    if not all(isinstance(view["said"], str) for view in wrong_views(record)):
        raise TypeError("what was said of a wrong image")
    sizes = record.get("image_sizes", [])
    if not isinstance(sizes, list) or not all(_wholes(size, 1, PIXELS) and len(size) == 2 for size in sizes):
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


def _wholes(values: Any, least: int, most: int) -> bool:
    """Tell whether a value is a list of whole numbers within bounds; in few calls, since a log has millions of them."""
    return isinstance(values, list) and (not values or (set(map(type, values)) == {int} and least <= min(values) and max(values) <= most))


def first_box(view: Mapping[str, Any]) -> list[int]:
    """Return the box of a cell on the first image. Checked here and not by ``whole``: few readers need boxes, and logs have millions.

    Raises:
        RecordError: it has none, or one that is not of four pixels.
    """
    boxes = view.get("boxes")
    if not isinstance(boxes, list) or not boxes or not _wholes(boxes[0], -PIXELS, PIXELS) or len(boxes[0]) != 4:
        raise RecordError("a cell of the log without its box in pixels; the file was changed or written by another program")
    found: list[int] = boxes[0]
    return found


def _check_references(record: Mapping[str, Any]) -> None:
    """Check what the chance floors, the ceiling and luck are computed from; ``p`` of a loan sizes a table.

    Raises:
        TypeError: a part is of another type, or a number out of bounds.
    """
    for one in record.get("baselines", ()):
        told = isinstance(one, dict) and isinstance(one.get("answer"), str) and isinstance(one.get("items", {}), dict)
        if not told or not _texts(one.get("roles")) or not isinstance(one.get("scores"), dict) or not are_scores(one["scores"].values()):
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
        if not _wholes(to, 0, DOCS) or not _wholes(places, 0, LOANS - 1) or not all(map(are_scores, scores)):
            raise TypeError(f"'lent' with doc ids, numbers below {LOANS} and scores")


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def hashed(record: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of a doc's record, whatever the order of its keys and however a file writes it."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), default=plain)
    return hashlib.sha256(text.encode()).digest()


def log_digest(hashes: Iterable[bytes]) -> str:
    """Return the digest of a whole log, 16 hex digits, from its records (``hashed``) in any order.

    A run writes it into its results file, so that a log that was changed afterwards does not pass for the run's own.
    """
    return hashlib.sha256(b"".join(sorted(hashes))).hexdigest()[:16]
