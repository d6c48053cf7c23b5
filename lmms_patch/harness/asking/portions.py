"""How many requests are asked at once: enough for a minute of work, so that a kill costs no more than that."""

from __future__ import annotations

from typing import Any

SECONDS = 60.0
"""How long one portion should take; 30 s to 2 minutes are fine.

Why not shorter: at the end of each portion a server's queue runs empty, and adapters that sort requests by length have fewer to sort.
"""
BATCHES = 8
"""The smallest portion, in batches."""
FIRST = 64
"""The least number of requests in the first portion.

Why not ``BATCHES`` alone: threaded adapters give batch size 1, but ask many requests at once.
"""
GROWTH = 4
"""The largest ratio of a portion to the one before. Why a limit: the first calls load weights and compile, so their speed says little."""


class Portions:
    """The sizes of a run's portions, following the measured speed.

    Attributes:
        batch: the largest batch size that was given.

    Args:
        batch_sizes: the batch sizes that the command line and the adapter give. The largest number counts; text such as
            ``auto`` is ignored.
    """

    def __init__(self, *batch_sizes: Any) -> None:
        known = [int(size) for size in batch_sizes if str(size).isdecimal()]
        self.batch = max(1, *known) if known else 1
        self._least = BATCHES * self.batch
        self._next = max(FIRST, self._least)

    def size(self, left: int) -> int:
        """Return how many requests to ask next: whole batches, or all if less than half a portion would remain.

        Args:
            left: how many requests are left.

        >>> portions = Portions(16)
        >>> portions.size(1000), portions.size(190), portions.size(5)
        (128, 190, 5)
        """
        # a batch that is not full takes about as long as a full one
        size = -(-self._next // self.batch) * self.batch
        return left if left < 1.5 * size else size

    def took(self, size: int, seconds: float) -> None:
        """Note how long a portion took.

        >>> portions = Portions(1)
        >>> portions.took(64, 32.0)
        >>> portions.size(10**6)
        120
        """
        # a clock of coarse steps may tell no time at all
        wanted = size * SECONDS / max(seconds, 1e-6)
        self._next = int(max(self._least, min(wanted, GROWTH * size)))
