"""The files that an adapter reads views of clips from."""

from __future__ import annotations

from typing import Any

from lmms_patch.ask.views import View
from lmms_patch.errors import OptionError, PatchError, RecordError
from lmms_patch.harness.refuse import refuse
from lmms_patch.harness.video.cache import forget, written
from lmms_patch.harness.video.clip import Clip


class ClipFiles:
    """The files for the clips of a task.

    Args:
        min_cell: cells whose shorter side is below this (pixels) are upsampled.
    """

    def __init__(self, min_cell: int) -> None:
        self._min_cell = min_cell
        self.batch = 1
        """How many requests the model takes at a time."""
        self._no_room: PatchError | None = None

    def write(self, clip: Clip, view: View, key: tuple[Any, ...], seed: str) -> str:
        """Return the path of a file that holds a view of a clip."""
        try:
            return written(self, key, clip, view, min_cell=self._min_cell, seed=seed, batch=self.batch)
        except (OptionError, RecordError) as error:
            # an adapter may take the exception for a failed call: ``forget`` then ends the run
            self._no_room = error
            refuse(error)

    def forget(self) -> None:
        """Remove the files written for views. Where a file could not be written, end the run."""
        forget(self)
        # the adapter took it for a failed call
        if self._no_room is not None:
            refuse(self._no_room)
