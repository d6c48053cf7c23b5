"""Is a doc's record as we write it? Readers refuse what is not, before a number is taken from it. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from lmms_patch.scoring import plain
from lmms_patch.spec import REGIONS


def wrong_views(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a doc's views on another doc's image; empty where it was not asked so, and in records of earlier versions.

    Raises:
        TypeError: they are no list of objects, or their doc is no number.
    """
    wrong = record.get("wrong_image")
    if wrong is None:
        return []
    if not isinstance(wrong, dict) or not isinstance(wrong.get("from"), int):
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
    doc_id = record["doc_id"]
    if not isinstance(doc_id, int) or isinstance(doc_id, bool):
        raise TypeError("'doc_id' as a whole number")
    for name in ("best", "excluded"):
        if not isinstance(record[name], dict):
            raise TypeError(f"{name!r} as an object")
    for view in (*record["views"], *wrong_views(record)):
        if not isinstance(view["items"], dict) or not isinstance(view["kind"], str):
            raise TypeError("views with items and kind")
        if not isinstance(view.get("failed", ""), str):
            raise TypeError("views that say in words what failed")
        if "cell" in view and not all(isinstance(view[key], int) for key in ("n", "cell", "row", "col")):
            raise TypeError("cells with n, row and col")
        if "region" in view and not (isinstance(view["region"], int) and isinstance(view["relevant"], bool)):
            raise TypeError("boxes that say whether they are relevant")
    if not all(isinstance(view["said"], str) for view in wrong_views(record)):
        raise TypeError("what was said of a wrong image")
    sizes = record.get("image_sizes", [])
    if not isinstance(sizes, list) or not all(
        isinstance(size, list) and len(size) == 2 and all(isinstance(x, int) and x > 0 for x in size) for size in sizes
    ):
        raise TypeError("'image_sizes' as pairs of pixels")
    if not all(isinstance(reason, str) for reason in record["excluded"].values()) or not all(
        str(n).isdigit() or n in REGIONS for n in record["excluded"]
    ):
        raise TypeError("'excluded' as reasons by grid")
    for name, kind in (("baselines", list), ("fields", dict), ("answer", dict), ("lent", dict), ("tst", dict)):
        if not isinstance(record.get(name, kind()), kind):
            raise TypeError(f"{name!r} as {'a list' if kind is list else 'an object'}")
    return doc_id


def hashed(record: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of a doc's record, whatever the order of its keys and however a file writes it."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), default=plain)
    return hashlib.sha256(text.encode()).digest()


def log_digest(hashes: Iterable[bytes]) -> str:
    """Return the digest of a whole log, 16 hex digits, from its records (``hashed``) in any order.

    A run writes it into its results file, so that a log that was changed afterwards does not pass for the run's own.
    """
    return hashlib.sha256(b"".join(sorted(hashes))).hexdigest()[:16]
