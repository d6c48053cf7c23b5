"""Checks that a value from a file is a number which arithmetic can go on with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

LARGEST = 1e15
"""The largest number accepted as score, count or size: sums and squares of numbers below it stay finite."""


def is_number(value: Any) -> bool:
    """Tell whether a value is an int or float within ±``LARGEST``; texts, truth values, NaN and infinities are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def is_whole(value: Any, least: int = 0, most: int = 10**9) -> bool:
    """Tell whether a value is a whole number from ``least`` to ``most``."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def are_scores(values: Iterable[Any]) -> bool:
    """Tell whether all values are numbers within ±``LARGEST``, truth values or None.

    The loop makes no function call: a log has millions of scores.
    """
    for value in values:  # noqa: SIM110
        if value is not None and not (isinstance(value, (int, float)) and -LARGEST <= value <= LARGEST):
            return False
    return True
