"""JSON that anybody may have written, and the numbers in it. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

DIGITS = 300
"""Of a whole number: every longer one is larger than any float, so arithmetic with it raises."""


LARGEST = 1e15
"""No score, count or size is larger; sums and squares of what is smaller stay finite."""


def is_number(value: Any) -> bool:
    """Tell whether a value is a number that arithmetic can go on with: no text, no truth value, not NaN, not beyond ``LARGEST``."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def is_whole(value: Any, least: int = 0, most: int = 10**9) -> bool:
    """Tell whether a value is a whole number from ``least`` to ``most``."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def are_scores(values: Iterable[Any]) -> bool:
    """Tell whether values are numbers as in ``is_number``, truth values or None. One loop without calls: a log has millions of them."""
    for value in values:  # noqa: SIM110
        if value is not None and not (isinstance(value, (int, float)) and -LARGEST <= value <= LARGEST):
            return False
    return True


def loads(text: str | bytes) -> Any:
    """Read JSON, as ``json.loads`` does, for files of a few megabytes.

    Raises:
        ValueError: it is not JSON, is nested too deeply, or has a number that no float can hold. The message is short.
    """
    try:
        return json.loads(text, parse_int=_whole, parse_float=_float)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return int(digits)


def _float(digits: str) -> float:
    found = float(digits)
    if math.isinf(found):
        raise ValueError(f"the number {digits[:20]} is larger than any float")
    return found
