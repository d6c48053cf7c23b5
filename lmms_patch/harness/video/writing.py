"""Writes clips as mp4 files without loss: H.264 of RGB, which every decoder built on FFmpeg reads back bit for bit."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from lmms_patch.harness.video.clip import Clip

_VIDEO = {"qp": "0", "preset": "ultrafast", "x264-params": "rc-lookahead=0:sync-lookahead=0"}
"""Lossless, and nothing is planned ahead. The preset uses no B-frames: frames are stored as they are shown, and the file needs no edit list."""


def encode(clip: Clip) -> bytes:
    """Return a clip as an mp4 file: its frames bit for bit at its rate."""
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
