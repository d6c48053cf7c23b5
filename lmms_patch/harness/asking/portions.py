"""How many requests are asked at once: enough for a minute of work, so that a kill costs no more than that."""

from __future__ import annotations

from typing import Any

SECONDS = 60.0
"""The aim for one portion: 30 s to 2 minutes. Shorter ones would cost a server its full queue, and a sorted adapter its even batches."""
BATCHES = 8
"""Batches of the smallest portion."""
FIRST = 64
"""Requests of the first portion, or ``BATCHES`` batches: threaded adapters say batch size 1 and ask many at a time."""
GROWTH = 4
"""A portion is at most so many times the one before: the first calls load weights and compile, so their speed says little."""


class Portions:
    """The sizes of the portions of a run, by the speed measured so far.

    Args:
        batch_sizes: what the command line and the adapter say; the largest number among them counts. Text such as ``auto`` says nothing.
    """

    def __init__(self, *batch_sizes: Any) -> None:
        known = [int(size) for size in batch_sizes if str(size).isdecimal()]
        self._batch = max(1, *known) if known else 1
        self._least = BATCHES * self._batch
        self._next = max(FIRST, self._least)

    def size(self, left: int) -> int:
        """Return the size of the next portion: whole batches. A rest of less than half a portion joins it.

        >>> portions = Portions(16)
        >>> portions.size(1000), portions.size(190), portions.size(5)
        (128, 190, 5)
        """
        size = -(-self._next // self._batch) * self._batch
        return left if left < 1.5 * size else size

    def took(self, size: int, seconds: float) -> None:
        """Note how long a portion took.

        >>> portions = Portions(1)
        >>> portions.took(64, 32.0)
        >>> portions.size(10**6)
        120
        """
        wanted = size * SECONDS / max(seconds, 1e-6)
        self._next = int(max(self._least, min(wanted, GROWTH * size)))
