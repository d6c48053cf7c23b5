"""Which frames of a video an adapter takes: what its attributes say, and for some of lmms-eval's own adapters a table."""

from __future__ import annotations

from typing import Any, Literal, TypeGuard

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
