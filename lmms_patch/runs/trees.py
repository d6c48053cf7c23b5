"""The numbers of a task as a tree of objects, mappings and lists: walked, and compared part by part. Pure.

A class says under ``LATE`` which of its fields files of earlier versions lack: by field, the first version
(``numbers.NUMBERS``) that wrote it, and 0 for a field that is older than these versions.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import UNSET, Struct

from lmms_patch.stats.resample import Estimate

TOLERANCE = 1e-6
"""Relative to the larger of two numbers and to 1: sums in another order differ in the 12th digit."""
WORDS = ("metric", "form", "floor", "band", "span", "null", "against", "state", "label", "headline", "withheld")
"""Texts that readers go by; all others are for people, and may be worded otherwise by another version."""
_LISTS = (list, tuple, np.ndarray)


def parts(tree: Any) -> dict[str, Any]:
    """Return the parts of a tree by name: set fields of an object, values of a mapping, entries of a list.

    None of a number or a text.
    """
    if isinstance(tree, Mapping):
        return {str(key): part for key, part in tree.items()}
    if isinstance(tree, _LISTS):
        return {str(place): part for place, part in enumerate(tree)}
    if isinstance(tree, Struct):
        names = tree.__struct_fields__
    else:
        names = tuple(field.name for field in dataclasses.fields(tree)) if dataclasses.is_dataclass(tree) else ()
    return {name: part for name in names if (part := getattr(tree, name)) is not UNSET}


def estimates(tree: Any, path: str = "") -> Iterator[tuple[str, Estimate]]:
    """Yield every estimate in a tree, with its path, such as ``analysis.grids.3.index``."""
    if isinstance(tree, Estimate):
        yield path, tree
    for name, part in parts(tree).items():
        yield from estimates(part, f"{path}.{name}" if path else name)


def written_by(tree: Any) -> int:
    """Return the first version (``numbers.NUMBERS``) that can have written a tree, by the fields that say something."""
    late = getattr(tree, "LATE", {})
    versions = (
        max(late[name] if late.get(name) and part else 0, written_by(part)) for name, part in parts(tree).items()
    )
    return max(versions, default=0)


def differences(stored: Any, fresh: Any, path: str, version: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield where a tree from a file differs from the same tree computed again: the path, what is stored, what was computed.

    Two texts for people never differ, but for a reason that only one of the trees has.

    Args:
        stored: the tree from the file. A field that its version did not write yet, and that says nothing, does not
        differ.
        fresh: the tree computed again.
        path: where both stand.
        version: of the numbers in the file.
    """
    both, name = (stored, fresh), path.rpartition(".")[2]
    # texts and lists of texts: most are for people, and may be worded otherwise
    if all(isinstance(one, (str, *_LISTS)) for one in both) and any(
        isinstance(text, str) for one in both for text in (one, *one)
    ):
        # a reason that comes or goes is a change, whatever its words
        counts = name in WORDS or (name in ("reason", "mark") and bool(stored) != bool(fresh))
        if counts and stored != fresh:
            yield path, stored, fresh
    elif any(one is None or isinstance(one, (str, int, float, np.generic)) for one in both):
        if not same(stored, fresh):
            yield path, stored, fresh
    else:
        ours, theirs, late = parts(stored), parts(fresh), getattr(stored, "LATE", {})
        if isinstance(stored, _LISTS) and len(ours) != len(theirs):
            yield f"{path} (its length)", len(ours), len(theirs)
        names = {**ours, **theirs} if isinstance(stored, Mapping) else [name for name in ours if name in theirs]
        for name in names:
            if late.get(name, 0) <= version or ours[name]:
                yield from differences(ours.get(name), theirs.get(name), f"{path}.{name}", version)


def same(one: Any, other: Any) -> bool:
    """Return whether two numbers, texts or truth values are the same, but for the error of adding in another order.

    Nan is None.
    """
    one, other = (None if isinstance(value, float) and not math.isfinite(value) else value for value in (one, other))
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(one == other)
