"""How many frames of a video an adapter takes, as its attributes say."""

from __future__ import annotations

import sys
from typing import Any, Literal, TypeGuard

from lmms_patch.harness.names.adapters import limit_of_rate, reads_as_qwen
from lmms_patch.harness.video.clip import Sampling

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
    counts = {name: value for name in _COUNTS if _is_count(value := getattr(model, name, None))}
    rates = {name: value for name in _RATES if _is_rate(value := getattr(model, name, None))}
    if not counts and not rates:
        return Sampling(), ""
    told = ", ".join(f"{name}={value}" for name, value in [*list(counts.items())[:1], *list(rates.items())[:1]])
    count, rate = next(iter(counts.values()), None), next((float(rate) for rate in rates.values()), None)
    reader: Literal["", "qwen_vl_utils"] = "qwen_vl_utils" if reads_as_qwen(type(model)) else ""
    if counts and rates and (limit := limit_of_rate(type(model))) is not None:
        most = getattr(model, limit, None) if limit else None
        # at a rate, this limit holds in place of the number of frames
        count = most if _is_count(most) else _most_of_qwen()
        told = f"{next(iter(rates))}={rate:g}, {f'{limit}={most}' if _is_count(most) else f'in place of {next(iter(counts))}'}"
    return Sampling(count, rate, reader), told


def _most_of_qwen() -> int:
    """Return how many frames ``qwen_vl_utils`` takes at most where a rate is given."""
    # nothing is imported for this; 768 is the package's default
    return int(getattr(sys.modules.get("qwen_vl_utils.vision_process"), "FPS_MAX_FRAMES", 768))


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_rate(value: object) -> TypeGuard[float]:
    # no clip has more frames a second; NaN and infinity are no rates either
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1000
