"""Videos whose frames carry their number."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

GRID = 4
"""A frame is 4 x 4 squares, black or white: 12 bits of the number, lowest first, then 4 bits that check them."""

_FORMAT = {
    "libx264": "yuv420p",
    "libx265": "yuv420p",
    "libvpx": "yuv420p",
    "libvpx-vp9": "yuv420p",
    "mpeg4": "yuv420p",
    "mjpeg": "yuvj444p",
}
_OPTIONS: dict[str, dict[str, str]] = {
    "libx264": {"preset": "ultrafast", "crf": "18"},
    "libvpx": {"deadline": "realtime", "cpu-used": "8"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8"},
}


def numbered(number: int, size: tuple[int, int] = (160, 120)) -> np.ndarray:
    """Return the frame of a number below 4,096, as uint8 (height, width, 3)."""
    code = number | (number * 7 % 16) << 12
    width, height = size
    bits = np.array([code >> i & 1 for i in range(GRID * GRID)], np.uint8).reshape(GRID, GRID)
    rows, cols = (np.arange(length) * GRID // length for length in (height, width))
    return np.repeat((bits * 255)[rows][:, cols][..., None], 3, axis=2)


def number_of(frame: Any) -> int:
    """Return the number that a frame carries, whatever its size; the frame may have been coded with losses.

    Raises:
        AssertionError: the squares are no number: the frame is damaged, turned, or a mix of frames.
    """
    grey = np.asarray(frame).astype(float).mean(axis=2)
    height, width = grey.shape
    centres = [
        grey[(2 * r + 1) * height // (2 * GRID), (2 * c + 1) * width // (2 * GRID)]
        for r in range(GRID)
        for c in range(GRID)
    ]
    assert all(abs(value - 127.5) > 60 for value in centres), centres
    code = sum((value > 127) << i for i, value in enumerate(centres))
    assert code >> 12 == (code & 4095) * 7 % 16, "not a numbered frame"
    return code & 4095


def numbers_of(frames: Any) -> list[int]:
    """Return the numbers of several frames."""
    return [number_of(frame) for frame in frames]


def make(
    path: Path,
    frames: int | Sequence[np.ndarray] = 60,
    size: tuple[int, int] = (160, 120),
    rate: Fraction | int = 10,
    codec: str = "libx264",
    ticks: Sequence[int] | None = None,
    container: dict[str, str] | None = None,
    **options: str,
) -> Path:
    """Write a video and return its path.

    Args:
        path: its ending names the container.
        frames: how many numbered frames, or the frames themselves.
        size: width and height in pixels.
        rate: frames per second.
        codec: name of the encoder.
        ticks: when each frame is shown, in thousandths of a second; by default as the rate says.
        container: options of the container.
        options: more options of the encoder, such as ``g="12"``.
    """
    pictures = [numbered(i, size) for i in range(frames)] if isinstance(frames, int) else list(frames)
    with av.open(str(path), "w", options=container or {}) as out:
        video = out.add_stream(codec, rate=rate, options=_OPTIONS.get(codec, {}) | options)
        video.height, video.width = pictures[0].shape[:2]
        video.pix_fmt = _FORMAT.get(codec, "rgb24") if codec != "gif" else "rgb8"
        base = Fraction(1, 1000) if ticks is not None else 1 / Fraction(rate)
        video.codec_context.time_base = base
        for i, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = (ticks[i] if ticks is not None else i), base
            out.mux(video.encode(frame))
        out.mux(video.encode())
    return path
