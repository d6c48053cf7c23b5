"""The files that an adapter reads clips from: a video's own, and those written for the views of a clip."""

from __future__ import annotations

import contextlib
from typing import Any

from lmms_patch.ask.views import View
from lmms_patch.errors import OptionError, PatchError, RecordError
from lmms_patch.harness.refuse import refuse
from lmms_patch.harness.video.cache import forget, written
from lmms_patch.harness.video.clip import Clip, Sampling
from lmms_patch.harness.video.source import source_of
from lmms_patch.harness.video.watch import Expected, Watch
from lmms_patch.harness.wrap import media


class ClipFiles:
    """The files for the clips of a task.

    Args:
        min_cell: cells whose shorter side is below this (pixels) are upsampled.
    """

    def __init__(self, min_cell: int) -> None:
        self._min_cell = min_cell
        self.batch = 1
        """How many requests the model takes at a time."""
        self.watch = Watch()
        """Which frames the model's adapter reads from what it is handed."""
        self._no_room: PatchError | None = None

    def read_by(self, adapter: type) -> None:
        """Watch what a model of a class reads from now on."""
        self.watch = Watch(adapter=adapter)

    def expect_full(self, doc_id: int, medium: Any, clip: Clip, sampling: Sampling) -> None:
        """Note which frames the adapter should read from a video's original file.

        Of a video that is no file, nothing can be noticed.
        """
        with contextlib.suppress(PatchError):
            source = source_of(medium.medium if isinstance(medium, media.Video) else medium)
            indices = sampling.places(clip.total, len(clip)).tolist()
            times = (clip.times - clip.times[0]).tolist()
            self.watch.expect(
                source if isinstance(source, str) else f"of doc {doc_id}", Expected(tuple(indices), tuple(times))
            )

    def write(self, clip: Clip, view: View, key: tuple[Any, ...], seed: str) -> str:
        """Return the path of a file that holds a view of a clip."""
        try:
            path, frames = written(
                self, key, clip, view, min_cell=self._min_cell, seed=seed, batch=self.batch, lost=self.watch.lose
            )
        except (OptionError, RecordError) as error:
            # an adapter may take the exception for a failed call: ``forget`` then ends the run
            self._no_room = error
            refuse(error)
        self.watch.expect(path, Expected(tuple(range(frames)), full=False))
        # a still is silent
        if clip.sound is not None and frames > 1:
            self.watch.hear()
        return path

    def forget(self) -> None:
        """Compare what the model has read with what was handed over, and remove the files written for views.

        Where a file could not be written, end the run.
        """
        self.watch.settle()
        forget(self)
        # the adapter took it for a failed call
        if self._no_room is not None:
            refuse(self._no_room)
