"""The scalar of a native item, and the best view of a doc. Pure."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

_PLAIN = frozenset({bool, int, str, type(None)})

V = TypeVar("V")
Scalar = float | None
"""A score on the metric's own scale, or None where the item is unscored."""


def scalar(item: Any, keys: Sequence[str] = ("score",)) -> Scalar:
    """Return the scalar of a native item: a number, or the number under a key.

    Args:
        item: what the native ``process_results`` returned for one metric.
        keys: the keys to look for in a dict item, in order.

    Returns:
        The scalar, or None where nothing gives a finite number: unscored, never zero.
    """
    value = _number(item)
    if value is None and isinstance(item, Mapping):
        value = next((v for v in (_number(item.get(key)) for key in keys) if v is not None), None)
    return value


def _number(value: Any) -> Scalar:
    """Return a finite number as a float, else None. NumPy scalars and booleans count as numbers."""
    if type(value) is not float and hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    # most scores are floats; the question below costs ten times as much
    if type(value) is float:
        return value if math.isfinite(value) else None
    if not isinstance(value, numbers.Real):
        return None
    try:
        value = float(value)
    except OverflowError:
        # a whole number of more than 308 digits
        return None
    return value if math.isfinite(value) else None


def best(scores: Sequence[Scalar], higher_is_better: bool = True) -> int | None:
    """Return the index of the best score; ties go to the lowest index; unscored views never win.

    Returns:
        The index, or None where all are unscored.

    >>> best([0.0, 1.0, 1.0, None])
    1
    """
    scored = {place: score for place, score in enumerate(scores) if score is not None}
    return max(scored, key=lambda place: scored[place] if higher_is_better else -scored[place], default=None)


def worst_orders(
    views: Sequence[V], of: Callable[[V], Hashable], score: Callable[[V], Scalar], higher_is_better: bool = True
) -> list[int]:
    """Return the place of each view's worst order, for views asked in several orders of the options.

    A view is right only if every order of it is. One that lacks a score in some order has none: that order decides.
    Ties go to the first order.

    Args:
        views: views of one doc, each once for each order.
        of: tells which view it is, whatever the order.
        score: its score in that order.
        higher_is_better: of the metric.

    >>> worst_orders([("full", 1.0), ("cell", 0.0), ("full", 0.0), ("cell", 0.0)], lambda one: one[0], lambda one: one[1])
    [2, 1]
    """
    places: dict[Hashable, list[int]] = {}
    for place, view in enumerate(views):
        places.setdefault(of(view), []).append(place)

    def rank(place: int) -> float:
        found = score(views[place])
        return -math.inf if found is None else found if higher_is_better else -found

    return [min(own, key=rank) for own in places.values()]


def plain(value: Any) -> Any:
    """Return a value in plain JSON types: NumPy scalars unwrapped, tuples and sets as lists, NaN as null.

    Dict keys become strings; anything else that JSON lacks becomes its ``str``.
    """
    # most values are plain; the questions below cost ten times as much
    if type(value) in _PLAIN or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(inner) for inner in value), key=str)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else None
    # a subclass of str is none that msgspec can encode
    return str.__str__(value) if isinstance(value, str) else str(value)
