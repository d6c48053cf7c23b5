"""Writes clips as mp4 files without loss: H.264 of RGB, which every decoder built on FFmpeg reads back bit for bit, and FLAC of 16 bits.

Why FLAC: encoding AAC takes ten times as long, and longer than all the rest.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from lmms_patch.harness.video.clip import Clip, Seconds
from lmms_patch.harness.video.sound import Sound, SoundError

_VIDEO = {"qp": "0", "preset": "ultrafast", "x264-params": "rc-lookahead=0:sync-lookahead=0"}
"""Lossless, and nothing is planned ahead. The preset uses no B-frames: frames are stored as they are shown, and the file needs no edit list."""


@dataclass(frozen=True)
class Encoded:
    """A clip as an mp4 file.

    Attributes:
        data: the file.
        lost: why the clip's sound is not in it; None where it is, and where the clip has none.
    """

    data: bytes
    lost: str | None = None


def encode(clip: Clip) -> Encoded:
    """Return a clip as an mp4 file: its frames bit for bit at its rate, and its sound, or a word on why the sound is lost."""
    try:
        return Encoded(_encode(clip))
    except SoundError as error:
        return Encoded(_encode(dataclasses.replace(clip, sound=None)), str(error))


def _encode(clip: Clip) -> bytes:
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as out:
        _put(out, clip)
    return buffer.getvalue()


def _put(out: Any, clip: Clip) -> None:
    """Write a clip into an open container."""
    video = out.add_stream("libx264rgb", rate=clip.rate, options=_VIDEO)
    video.width, video.height = clip.size
    video.pix_fmt = "rgb24"
    video.codec_context.time_base = 1 / clip.rate
    sound = clip.sound
    if sound and not sound.rate:
        raise SoundError("the sound cannot be decoded: FFmpeg does not know its format")
    # all tracks come before the first packet
    audio = out.add_stream("flac", rate=sound.rate, layout=sound.layout) if sound else None
    _put_frames(out, video, clip)
    if sound:
        _put_sound(out, audio, sound, stretches(clip.spans))


def _put_frames(out: Any, video: Any, clip: Clip) -> None:
    import av

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


def _put_sound(out: Any, audio: Any, sound: Sound, parts: Iterable[tuple[float, float]]) -> None:
    import av

    done = 0
    for piece in (piece for begin, end in parts for piece in sound.between(begin, end)):
        # s16 is a packed format: the samples of the channels stand in turn
        samples = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(piece).reshape(1, -1), format="s16", layout=sound.layout
        )
        samples.sample_rate, samples.pts, samples.time_base = sound.rate, done, Fraction(1, sound.rate)
        done += len(piece)
        out.mux(audio.encode(samples))
    out.mux(audio.encode())


def stretches(spans: Seconds) -> list[tuple[float, float]]:
    """Return the spans of a clip, with adjoining spans joined.

    >>> stretches(np.array([[4.0, 5.0], [5.0, 6.0], [1.0, 2.0]]))
    [(4.0, 6.0), (1.0, 2.0)]
    """
    joined: list[tuple[float, float]] = []
    for begin, end in spans.tolist():
        if joined and joined[-1][1] == begin:
            begin = joined.pop()[0]
        joined.append((begin, end))
    return joined
