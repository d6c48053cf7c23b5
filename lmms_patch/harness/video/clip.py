"""Clips: which frames of a video an adapter takes, the views that are made from them, and the files that hold these."""

from __future__ import annotations

import dataclasses
import io
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lmms_patch.ask.views import View, cut, derangement
from lmms_patch.errors import CannotWrapError

Frames = NDArray[np.uint8]
"""Frames as RGB: shape (F, height, width, 3)."""


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

    def indices(self, total: int, duration: float) -> NDArray[np.int_]:
        """Return the indices of the frames: uniform, first and last included.

        Args:
            total: frames of the video, at least 1.
            duration: of the video, in seconds.
        """
        most = total if self.count is None else min(total, self.count)
        if not self.reader:
            # 1e-6: a duration may fall short of a whole second by rounding
            count = max(1, most if self.fps is None else min(most, int(duration * self.fps + 1e-6)))
            # rounded down, as in lmms-eval's ``load_video_stream``
            return np.linspace(0, total - 1, count, dtype=int)
        # the adapter has imported it. ``qwen_vl_utils`` goes by this function, whose single precision decides to which
        # side a half is rounded
        import torch

        # at a rate, ``qwen_vl_utils`` takes at least 4 frames
        most = most if self.fps is None else min(most, max(4, int(duration * self.fps)))
        # an even number; a single frame where there is no second
        return np.asarray(torch.linspace(0, total - 1, most // 2 * 2 or most).round().long().numpy(), int)


# compared by identity: == of two arrays gives an array
@dataclass(frozen=True, eq=False)
class Clip:
    """Frames of a video in the order in which they are shown.

    Attributes:
        frames: uint8 RGB of shape (F, height, width, 3), as displayed: turned where the file says so.
        rate: frames per second at which the clip is shown.
    """

    frames: Frames
    rate: Fraction

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
        return dataclasses.replace(self, frames=self.frames[which])


def segment(count: int, k: int, number: int) -> slice:
    """Return which of ``count`` frames segment ``number`` (from 0) of ``k`` holds: ``count·number//k`` to ``count·(number+1)//k``.

    >>> [segment(10, 3, i) for i in range(3)]
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    return slice(count * number // k, count * (number + 1) // k)


def shown(clip: Clip, view: View, *, min_cell: int = 0, seed: str = "") -> Clip:
    """Return the clip shown by a view.

    Views in time: ``segment`` (number ``view.col`` of ``view.n``), ``frame`` (the middle frame), ``frames`` (``view.n``
    uniform frames over the same duration; a single one is the middle frame), ``tshuffle`` (``view.n`` segments, none
    left in its place) and ``treverse``. All but ``frames`` keep the rate. Any other view is cut from each frame as
    ``ask.views.cut`` does, with the same seed.

    Args:
        clip: the full clip.
        view: the view.
        min_cell: as for ``ask.views.cut``.
        seed: decides the permutation of ``tshuffle`` and ``shuffle``.

    Raises:
        CannotWrapError: the clip has fewer frames than the view has segments or frames.
        ValueError: the view has no image.
    """
    if view.kind == "full" and not view.trim:
        return clip
    if view.kind in ("segment", "tshuffle", "frames") and len(clip) < view.n:
        raise CannotWrapError(f"the clip has {len(clip)} frame{'s' * (len(clip) > 1)}: too few for {view.n}")
    if view.kind == "segment":
        return shown(clip.take(segment(len(clip), view.n, view.col)), View("full", trim=view.trim))
    if view.kind == "frame" or (view.kind == "frames" and view.n == 1):
        return clip.take(slice(len(clip) // 2, len(clip) // 2 + 1))
    if view.kind == "frames":
        taken = clip.take(np.linspace(0, len(clip) - 1, view.n, dtype=int))
        # fewer frames over the same duration
        return dataclasses.replace(taken, rate=clip.rate * view.n / len(clip))
    if view.kind == "tshuffle":
        frames = np.arange(len(clip))
        return clip.take(
            np.concatenate([frames[segment(len(clip), view.n, number)] for number in derangement(view.n, seed)])
        )
    if view.kind == "treverse":
        return clip.take(slice(None, None, -1))
    cells: list[Any] = [cut(Image.fromarray(frame), view, min_cell=min_cell, seed=seed) for frame in clip.frames]
    return dataclasses.replace(clip, frames=np.stack([np.asarray(cell.convert("RGB")) for cell in cells]))


_VIDEO = {"qp": "0", "preset": "ultrafast", "x264-params": "rc-lookahead=0:sync-lookahead=0"}
"""Lossless, and nothing is planned ahead. The preset uses no B-frames: frames are stored as they are shown, and the file needs no edit list."""


def encode(clip: Clip) -> bytes:
    """Return a clip as an mp4 file without loss: H.264 of RGB, which every decoder built on FFmpeg reads back bit for bit, at its rate."""
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as out:
        video: Any = out.add_stream("libx264rgb", rate=clip.rate, options=_VIDEO)
        video.width, video.height = clip.size
        video.pix_fmt = "rgb24"
        video.codec_context.time_base = 1 / clip.rate

        def put(packets: Any) -> None:
            for packet in packets:
                # otherwise the last frame has no duration, and the rate comes out too high
                packet.duration = 1
                out.mux(packet)

        for number, picture in enumerate(clip.frames):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            frame.pts, frame.time_base = number, 1 / clip.rate
            put(video.encode(frame))
        # the encoder keeps its last packets until it is flushed
        put(video.encode())
    return buffer.getvalue()


# --- which frames an adapter takes ----------------------------------------------------------------

_COUNTS = (
    "max_num_frames",
    "max_frames_num",
    "nframes",
    "num_frames",
    "max_frames",
    "num_video_frames",
    "video_max_frames",
    "num_segments",
)
_RATES = ("fps", "video_fps", "target_fps")
"""The names that adapters of lmms-eval give to the number of frames that they take, and to the frames per second that they take at most."""

READ_BY_QWEN = {
    "chat.async_openai",
    "chat.llava_onevision1_5",
    "chat.llava_onevision2",
    "chat.openai",
    "chat.qwen2_5_vl",
    "chat.qwen3_vl",
    "chat.thyme",
    "chat.vllm",
    "chat.vllm_generate",
    "simple.qwen3_vl",
}
"""The modules of adapters that let ``qwen_vl_utils`` choose the frames, given a number or a rate."""
MOST_AT_A_RATE = {
    "chat.async_openai": "max_frames",
    "chat.openai": "",
    "chat.qwen2_5_vl": "",
    "chat.sglang": "max_frame_num",
    "chat.thyme": "",
    "chat.vllm": "max_frame_num",
    "chat.vllm_generate": "max_frame_num",
}
"""The modules of adapters that take either a rate or a number of frames, and the attribute that limits the frames at a rate; "" where none does."""


_MOST_OF_QWEN = 768
"""The most frames that ``qwen_vl_utils`` takes where a rate is given."""


def sampling_of(model: Any, frames: int | None = None) -> tuple[Sampling, str]:
    """Return which frames of a video an adapter takes, and what tells us so.

    Args:
        model: the host's model.
        frames: what the task's option ``frames`` says; it goes before everything else.

    Returns:
        The frames; and a text such as ``max_num_frames=32``, or "" where nothing says so and 32 frames are assumed.
    """
    if frames is not None:
        return Sampling(frames), f"the option frames: {frames}"
    counts = [(name, value) for name in _COUNTS if _is_count(value := getattr(model, name, None))][:1]
    rates = [(name, float(value)) for name in _RATES if _is_rate(value := getattr(model, name, None))][:1]
    if not counts and not rates:
        return Sampling(), ""
    count, rate = counts[0][1] if counts else None, rates[0][1] if rates else None
    told = ", ".join([*(f"{name}={value}" for name, value in counts), *(f"{name}={value:g}" for name, value in rates)])
    # those of its parents too: an adapter of another package may be made of one of lmms-eval's
    modules = [home.__module__.removeprefix("lmms_eval.models.") for home in type(model).__mro__]
    reader: Literal["", "qwen_vl_utils"] = "" if READ_BY_QWEN.isdisjoint(modules) else "qwen_vl_utils"
    limit = next((MOST_AT_A_RATE[module] for module in modules if module in MOST_AT_A_RATE), None)
    if count is not None and rate is not None and limit is not None:
        most = getattr(model, limit, None) if limit else None
        # at a rate, this limit holds in place of the number of frames
        limited = f"{limit}={most}" if _is_count(most) else f"in place of {counts[0][0]}"
        told, count = f"{rates[0][0]}={rate:g}, {limited}", most if _is_count(most) else _MOST_OF_QWEN
    return Sampling(count, rate, reader), told


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_rate(value: object) -> TypeGuard[float]:
    # no clip has more frames a second; NaN and infinity are no rates either
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1000
