"""How large each claim is tried: small in ``make test``, whole in ``make test-deep`` (``LMMS_PATCH_DEEP=1``).

A test is written once, and its size is what differs: the number of worlds, replays, fuzz cases and drawn examples, the
grid of options, the states of a page. The small size is the smallest that still fails when the claim is broken.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from hypothesis import settings

T = TypeVar("T")

DEEP = os.environ.get("LMMS_PATCH_DEEP", "0") not in ("", "0")


def size(small: T, whole: T) -> T:
    """Return the small size in ``make test`` and the whole one in ``make test-deep``."""
    return whole if DEEP else small


def some(items: Iterable[T], of: int = 2, first: int = 0) -> list[T]:
    """Return every ``of``-th item from a first on, all of them in ``make test-deep``: for cases that take the same way through the code."""
    return list(items)[size(first, 0) :: size(of, 1)]


def examples(whole: int, least: int = 20) -> settings:
    """Return the settings of a property test that draws so many examples: a quarter of them, but at least ``least``, in ``make test``."""
    return settings(max_examples=size(min(whole, max(least, whole // 4)), whole), deadline=None)


def each(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return combinations of options in which each value of each axis comes at least once.

    In ``make test-deep`` all combinations.

    For options that do not work together: which of two models is asked, and what it is asked about.
    """
    longest = max(map(len, axes))
    return size([tuple(axis[at % len(axis)] for axis in axes) for at in range(longest)], list(itertools.product(*axes)))


def pairs(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return combinations of options in which each two values of two axes meet; in ``make test-deep`` all combinations.

    Most faults of options need two values that meet, seldom three (Kuhn, Wallace and Gallo 2004, "Software Fault
    Interactions").
    """
    every = list(itertools.product(*map(range, map(len, axes))))
    chosen, left = [], {pair for row in every for pair in _met(row)}
    while left:
        best = max(every, key=lambda row: len(left & _met(row)))
        chosen.append(best)
        left -= _met(best)
    return [tuple(axis[at] for axis, at in zip(axes, row, strict=True)) for row in size(chosen, every)]


def _met(row: Iterable[int]) -> set[Any]:
    """Return each two values of a combination, as (axis, value)."""
    return set(itertools.combinations(enumerate(row), 2))
