"""The processes (ranks) that share a run, and the numbers that they exchange so that all ask in step."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ranks:
    """All processes of a run.

    Attributes:
        number: this one, from 0.
        world: how many there are.
    """

    number: int
    world: int

    @classmethod
    def here(cls) -> Ranks:
        """Return the ranks as the launcher (``accelerate``, ``torchrun``) tells them.

        The host goes by the same variables.
        """
        return cls(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))

    @property
    def several(self) -> bool:
        """Whether the ranks can talk: there are several, and the host or the model has connected them."""
        return self.world > 1 and _distributed() is not None

    @property
    def first(self) -> bool:
        """Whether this rank prints."""
        return self.number == 0

    def most(self, count: int) -> int:
        """Return the largest count of all ranks."""
        return int(max(self.all(count)))

    def sum(self, count: int) -> int:
        """Return the sum of the counts of all ranks."""
        return sum(self.all(count))

    def told(self, value: Any) -> Any:
        """Return what the first rank says, on every rank."""
        return self.all(value)[0]

    def all(self, value: Any) -> list[Any]:
        """Return what each rank says, by the number of the rank."""
        if not self.several:
            return [value]
        gathered: list[Any] = [None] * self.world
        _distributed().all_gather_object(gathered, value)
        return gathered


def _distributed() -> Any:
    """Return the module ``torch.distributed`` if the ranks are connected by a process group, and None if they are not."""
    from torch import distributed

    return distributed if distributed.is_available() and distributed.is_initialized() else None
