"""Lets readers that are told a number of frames take all frames of a written view that has fewer.

Why: an adapter asks for as many frames of a segment as of the full clip, and the readers of ``qwen_vl_utils`` and
transformers refuse a video with fewer. Of all other videos they go on to refuse, as in the base task.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lmms_patch.harness.video import cache


def read_whole() -> None:
    """Replace the refusing functions of the readers that are imported by now; those replaced before stay."""
    qwen: Any = sys.modules.get("qwen_vl_utils.vision_process")
    if qwen is not None and qwen.smart_nframes.__module__ != __name__:
        qwen.smart_nframes = _at_most(qwen.smart_nframes)
    decoders = getattr(sys.modules.get("transformers.video_utils"), "VIDEO_DECODERS", {})
    decoders |= {name: _all(decode) for name, decode in decoders.items() if decode.__module__ != __name__}


def _at_most(count: Callable[..., int]) -> Callable[..., int]:
    """Return a counter of frames like ``count``, which is handed the request and how many frames the video has."""

    def smart_nframes(ele: Mapping[str, Any], total_frames: int, *args: Any, **kwargs: Any) -> int:
        if "nframes" in ele and cache.holds(ele.get("video")):
            # Qwen's reader takes even numbers
            ele = {**ele, "nframes": min(int(ele["nframes"]), total_frames // 2 * 2)}
        return count(ele, total_frames, *args, **kwargs)

    return smart_nframes


def _all(decode: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decoder like ``decode``, which is handed the file and a function that chooses frames by the video's metadata."""

    def whole(path: Any, choose: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        def chosen(metadata: Any, **more: Any) -> Any:
            try:
                return choose(metadata=metadata, **more)
            except ValueError:
                return np.arange(metadata.total_num_frames)

        return decode(path, chosen if cache.holds(path) else choose, *args, **kwargs)

    return whole
