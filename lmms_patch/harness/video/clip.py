"""Clips: the uniform frames of a video, and the views that are made from them. NumPy and Pillow only."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lmms_patch.ask.views import View, cut, derangement
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.video.sound import Sound

Frames = NDArray[np.uint8]
"""Frames as RGB: shape (F, height, width, 3)."""
Seconds = NDArray[np.float64]


@dataclass(frozen=True)
class Sampling:
    """Which frames of a video an adapter takes.

    Attributes:
        count: the most frames; None for no limit.
        fps: frames per second of the video; None where ``count`` alone decides. Where both are None, every frame is
        taken.
        reader: ``qwen_vl_utils`` where the adapter has that package choose the frames: an even number of them, at least
            four by a rate. "" otherwise.
    """

    count: int | None = 32
    fps: float | None = None
    reader: Literal["", "qwen_vl_utils"] = ""

    def __post_init__(self) -> None:
        if (self.count is not None and self.count < 1) or (self.fps is not None and not 0 < self.fps < math.inf):
            raise ValueError(f"a clip has at least 1 frame and a positive rate, not {self}")

    def indices(self, total: int, duration: float) -> NDArray[np.int_]:
        """Return the indices of the frames: uniform, first and last included.

        Args:
            total: frames of the video, at least 1.
            duration: of the video, in seconds.
        """
        most = total if self.count is None else min(total, self.count)
        if not self.reader:
            # 1e-6: a duration may fall short of a whole second by rounding
            return self.places(total, max(1, most if self.fps is None else min(most, int(duration * self.fps + 1e-6))))
        # at a rate, ``qwen_vl_utils`` takes at least 4 frames
        most = most if self.fps is None else min(most, max(4, int(duration * self.fps)))
        # an even number; a single frame where there is no second
        return self.places(total, most // 2 * 2 or most)

    def places(self, total: int, count: int) -> NDArray[np.int_]:
        """Return the indices of ``count`` frames of a video: rounded down as in lmms-eval's ``load_video_stream``, or to the nearest frame.

        Why torch: ``qwen_vl_utils`` goes by ``torch.linspace``, whose single precision decides to which side a half is
        rounded.
        """
        if not self.reader:
            return np.linspace(0, total - 1, count, dtype=int)
        # the adapter has imported it
        import torch

        return np.asarray(torch.linspace(0, total - 1, count).round().long().numpy(), int)


# compared by identity: == of two arrays gives an array
@dataclass(frozen=True, eq=False)
class Clip:
    """Frames of a video in the order in which they are shown.

    Attributes:
        frames: uint8 RGB of shape (F, height, width, 3), as displayed: turned where the file says so.
        times: seconds from the first frame of the video to each frame, shape (F,).
        spans: the stretch of the video that each frame stands for, from and to in seconds, shape (F, 2). The spans of
            the full clip cover the video without overlap. A span that is shown backwards ends before it starts.
        rate: frames per second at which the clip is shown.
        total: frames of the video.
        sound: of the whole video; None where the clip has none. The spans say which of it is heard.
    """

    frames: Frames
    times: Seconds
    spans: Seconds
    rate: Fraction
    total: int
    sound: Sound | None = None

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return (self.frames.shape[2], self.frames.shape[1])

    @property
    def duration(self) -> float:
        """Seconds taken by the clip."""
        return float(len(self) / self.rate)

    def take(self, which: slice | NDArray[np.int_]) -> Clip:
        """Return the clip of some frames, in this order, at the same rate. A slice shares the memory of the frames."""
        return dataclasses.replace(self, frames=self.frames[which], times=self.times[which], spans=self.spans[which])


def segment(count: int, k: int, number: int) -> slice:
    """Return which of ``count`` frames segment ``number`` (from 0) of ``k`` holds: ``count·number//k`` to ``count·(number+1)//k``.

    >>> [segment(10, 3, i) for i in range(3)]
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    return slice(count * number // k, count * (number + 1) // k)


def count_of(clip: Clip, view: View) -> int:
    """Return how many frames of a clip a view shows."""
    if view.kind == "segment":
        part = segment(len(clip), view.n, view.col)
        return part.stop - part.start
    return {"frame": 1, "frames": view.n}.get(view.kind, len(clip))


def shown(clip: Clip, view: View, *, min_cell: int = 0, seed: str = "") -> Clip:
    """Return the clip shown by a view.

    Views in time: ``segment`` (number ``view.col`` of ``view.n``), ``frame`` (the middle frame), ``frames`` (``view.n``
    uniform frames over the same duration; a single one is the middle frame), ``tshuffle`` (``view.n`` segments, none
    left in its place) and ``treverse``. All but ``frames`` keep the rate. Any other view is cut from each frame as
    ``ask.views.cut`` does, with the same seed.

    The sound follows the frames: a segment has its own sound, ``tshuffle`` permutes it, ``treverse`` plays it
    backwards, views in space keep it. ``frame`` and ``frames`` are stills without sound.

    Args:
        clip: the full clip.
        view: the view.
        min_cell: as for ``ask.views.cut``.
        seed: decides the permutation of ``tshuffle`` and ``shuffle``.

    Raises:
        CannotWrapError: the clip has fewer frames than the view has segments or frames.
        ValueError: the view has no image.
    """
    if view.kind == "full":
        return clip
    if view.kind in ("segment", "tshuffle", "frames") and len(clip) < view.n:
        raise CannotWrapError(f"the clip has {len(clip)} frame{'s' * (len(clip) > 1)}: too few for {view.n}")
    if view.kind == "segment":
        return clip.take(segment(len(clip), view.n, view.col))
    if view.kind == "frame" or (view.kind == "frames" and view.n == 1):
        return dataclasses.replace(clip.take(slice(len(clip) // 2, len(clip) // 2 + 1)), sound=None)
    if view.kind == "frames":
        taken = clip.take(np.linspace(0, len(clip) - 1, view.n, dtype=int))
        # fewer frames over the same duration
        return dataclasses.replace(taken, rate=clip.rate * view.n / len(clip), sound=None)
    if view.kind == "tshuffle":
        frames = np.arange(len(clip))
        return clip.take(
            np.concatenate([frames[segment(len(clip), view.n, number)] for number in derangement(view.n, seed)])
        )
    if view.kind == "treverse":
        backwards = clip.take(slice(None, None, -1))
        # each span ends before it begins, so that the sound is played backwards too
        return dataclasses.replace(backwards, spans=backwards.spans[:, ::-1])
    cells: list[Any] = [cut(Image.fromarray(frame), view, min_cell=min_cell, seed=seed) for frame in clip.frames]
    return dataclasses.replace(clip, frames=np.stack([np.asarray(cell.convert("RGB")) for cell in cells]))
