"""Writes clips as mp4 files: lossless H.264 of RGB, which every decoder built on FFmpeg reads back bit for bit, with the sound as AAC."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch import files
from lmms_patch.harness.video.clip import Clip, Seconds
from lmms_patch.harness.video.reading import opened

Samples = NDArray[np.float32]
"""A sound of shape (channels, samples)."""
_VIDEO = {"qp": "0", "preset": "ultrafast"}
"""Lossless. The preset uses no B-frames, so frames are stored as they are shown, and the file needs no edit list."""
_RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000)
"""Samples per second that AAC knows."""
_PIECE = 60.0
"""Seconds of sound that are held in memory at a time."""
_LEAD = 0.5
"""Seconds of sound decoded before a piece: the first frames after a jump depend on what came before."""


class _SoundError(Exception):
    """The sound of the source cannot be decoded."""


@dataclass(frozen=True)
class Encoded:
    """A clip as an mp4 file.

    Attributes:
        data: the file.
        lost: why the clip's sound is not in it; None where it is, and where the clip has none.
    """

    data: bytes
    lost: str | None = None


def write(clip: Clip, path: Path) -> str | None:
    """Write a clip as an mp4 file, whole or not at all; return why its sound was lost, as ``Encoded.lost``.

    Raises:
        RecordError: the file cannot be written.
    """
    encoded = encode(clip)
    files.write(path, encoded.data)
    return encoded.lost


def encode(clip: Clip) -> Encoded:
    """Return a clip as an mp4 file: its frames bit for bit at its rate, and its sound, or a word on why that is lost."""
    if not clip.sound:
        return Encoded(_encode(clip, False))
    try:
        return Encoded(_encode(clip, True))
    except _SoundError as error:
        return Encoded(_encode(clip, False), str(error))


def _encode(clip: Clip, sound: bool) -> bytes:
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as out:
        _put(out, clip, sound)
    return buffer.getvalue()


def _put(out: Any, clip: Clip, sound: bool) -> None:
    """Write the frames of a clip, and its sound where ``sound``, into an open container."""
    video = out.add_stream("libx264rgb", rate=clip.rate, options=_VIDEO)
    video.width, video.height = clip.size
    video.pix_fmt = "rgb24"
    video.codec_context.time_base = 1 / clip.rate
    heard = _heard(clip) if sound else None
    audio = out.add_stream("aac", rate=heard.rate, layout=heard.layout) if heard else None  # all tracks come before the first packet
    _put_frames(out, video, clip)
    if heard:
        _put_sound(out, audio, heard)


def _put_frames(out: Any, video: Any, clip: Clip) -> None:
    import av

    def put(packets: Any) -> None:
        for packet in packets:
            packet.duration = 1  # otherwise the last frame has no duration, and the rate comes out too high
            out.mux(packet)

    for number, picture in enumerate(clip.frames):
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        frame.pts, frame.time_base = number, 1 / clip.rate
        put(video.encode(frame))
    put(video.encode())


def _put_sound(out: Any, audio: Any, heard: _Heard) -> None:
    import av

    done = 0
    for piece in heard.pieces:
        samples = av.AudioFrame.from_ndarray(piece, format="fltp", layout=heard.layout)
        samples.sample_rate, samples.pts, samples.time_base = heard.rate, done, Fraction(1, heard.rate)
        done += piece.shape[1]
        out.mux(audio.encode(samples))
    out.mux(audio.encode())


# --- sound -----------------------------------------------------------------------------------------


def stretches(spans: Seconds) -> list[tuple[float, float]]:
    """Return the spans of a clip with those that follow each other joined.

    >>> stretches(np.array([[4.0, 5.0], [5.0, 6.0], [1.0, 2.0]]))
    [(4.0, 6.0), (1.0, 2.0)]
    """
    joined: list[tuple[float, float]] = []
    for begin, end in spans.tolist():
        if joined and joined[-1][1] == begin:
            begin = joined.pop()[0]
        joined.append((begin, end))
    return joined


@dataclass(frozen=True)
class _Heard:
    """The sound of a clip: samples per second, ``mono`` or ``stereo``, and pieces of shape (channels, samples) as they are decoded."""

    rate: int
    layout: str
    pieces: Iterator[Samples]


def _heard(clip: Clip) -> _Heard:
    """Return the sound of a clip.

    Raises:
        _SoundError: it cannot be decoded. The iterator over its pieces raises it too.
    """
    try:
        with opened(_source(clip)) as container:
            context = container.streams.audio[0].codec_context
            rate = min(_RATES, key=lambda known: abs(known - context.sample_rate))
            layout = "mono" if context.channels == 1 else "stereo"
    except Exception as error:  # a damaged file makes FFmpeg's readers raise nearly anything
        raise _SoundError(_word(error)) from None
    return _Heard(rate, layout, _pieces(clip, rate, layout))


def _source(clip: Clip) -> str | bytes:
    if clip.source is None:
        raise ValueError("a list of images has no sound")
    return clip.source


def _word(error: Exception) -> str:
    return f"the sound cannot be decoded: {' '.join((getattr(error, 'strerror', None) or str(error)).split())}"


def _pieces(clip: Clip, rate: int, layout: str) -> Iterator[Samples]:
    """Yield the sound of a clip's stretches one after the other; what is shown backwards is heard backwards."""
    try:
        with opened(_source(clip)) as container:
            for begin, end in stretches(clip.spans):
                edges = np.linspace(begin, end, max(1, math.ceil(abs(end - begin) / _PIECE)) + 1).tolist()
                for low, high in itertools.pairwise(edges):
                    piece = _samples(container, clip.start + min(low, high), clip.start + max(low, high), rate, layout)
                    yield np.ascontiguousarray(piece if low <= high else piece[:, ::-1])
    except Exception as error:
        raise _SoundError(_word(error)) from None


def _samples(container: Any, begin: float, end: float, rate: int, layout: str) -> Samples:
    """Return the sound between two times of the file's clock, in seconds; silence where the file has none."""
    import av

    stream = container.streams.audio[0]
    convert = av.AudioResampler("fltp", layout, rate)
    first = round(begin * rate)
    out = np.zeros((1 if layout == "mono" else 2, round(end * rate) - first), np.float32)
    container.seek(int(max(0.0, begin - _LEAD) / stream.time_base), stream=stream)
    for decoded in container.decode(stream):
        if decoded.time is not None and decoded.time > end:
            break
        for frame in convert.resample(decoded):
            block = frame.to_ndarray()
            at = round((frame.time or 0.0) * rate) - first
            low, high = max(0, at), min(out.shape[1], at + block.shape[1])
            if low < high:
                out[:, low:high] = block[:, low - at : high - at]
    return out
