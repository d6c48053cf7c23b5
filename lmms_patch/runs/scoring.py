"""The scalar of a native item, and plain JSON types. Pure."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

_PLAIN = frozenset({bool, int, str, type(None)})

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
