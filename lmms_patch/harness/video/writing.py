"""Writes clips as mp4 files: lossless H.264 of RGB, which every decoder built on FFmpeg reads back bit for bit, with the sound as AAC."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch import files
from lmms_patch.harness.video.clip import Clip, Seconds
from lmms_patch.harness.video.reading import opened

if TYPE_CHECKING:
    from av.container import OutputContainer

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


def _put(out: OutputContainer, clip: Clip, sound: bool) -> None:
    """Write the frames of a clip, and its sound where ``sound``, into a file."""
    import av

    video = out.add_stream("libx264rgb", rate=clip.rate, options=_VIDEO)
    video.width, video.height = clip.size
    video.pix_fmt = "rgb24"
    video.codec_context.time_base = 1 / clip.rate
    heard = _heard(clip) if sound else None
    rate, channels, pieces = heard if heard else (0, 0, iter(()))
    layout = "mono" if channels == 1 else "stereo"
    audio = out.add_stream("aac", rate=rate, layout=layout) if heard else None

    for number, picture in enumerate(clip.frames):
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        frame.pts, frame.time_base = number, 1 / clip.rate
        for packet in video.encode(frame):
            packet.duration = 1  # otherwise the last frame has no duration, and the rate comes out too high
            out.mux(packet)
    for packet in video.encode():
        packet.duration = 1
        out.mux(packet)
    if audio is None:
        return
    done = 0
    for piece in pieces:
        samples = av.AudioFrame.from_ndarray(piece, format="fltp", layout=layout)
        samples.sample_rate, samples.pts, samples.time_base = rate, done, Fraction(1, rate)
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


def _heard(clip: Clip) -> tuple[int, int, Iterator[NDArray[np.float32]]]:
    """Return samples per second, number of channels (1 or 2), and the sound of a clip in pieces of shape (channels, samples).

    Raises:
        _SoundError: the sound cannot be decoded. The iterator raises it too.
    """
    try:
        with opened(_source(clip)) as container:
            context = container.streams.audio[0].codec_context
            rate = min(_RATES, key=lambda known: abs(known - context.sample_rate))
            channels = min(2, context.channels)
    except Exception as error:  # a damaged file makes FFmpeg's readers raise nearly anything
        raise _SoundError(_word(error)) from None
    return rate, channels, _pieces(clip, rate, channels)


def _source(clip: Clip) -> str | bytes:
    if clip.source is None:
        raise ValueError("a list of images has no sound")
    return clip.source


def _word(error: Exception) -> str:
    return f"the sound cannot be decoded: {' '.join((getattr(error, 'strerror', None) or str(error)).split())}"


def _pieces(clip: Clip, rate: int, channels: int) -> Iterator[NDArray[np.float32]]:
    """Yield the sound of a clip's stretches one after the other; what is shown backwards is heard backwards."""
    try:
        with opened(_source(clip)) as container:
            for begin, end in stretches(clip.spans):
                count = max(1, int(np.ceil(abs(end - begin) / _PIECE)))
                for edge in range(count):
                    low, high = (begin + (end - begin) * part / count for part in (edge, edge + 1))
                    piece = _samples(container, clip.start + min(low, high), clip.start + max(low, high), rate, channels)
                    yield np.ascontiguousarray(piece if begin <= end else piece[:, ::-1])
    except Exception as error:
        raise _SoundError(_word(error)) from None


def _samples(container: Any, begin: float, end: float, rate: int, channels: int) -> NDArray[np.float32]:
    """Return the sound between two times of the file's clock, in seconds; silence where the file has none."""
    import av

    stream = container.streams.audio[0]
    convert = av.AudioResampler("fltp", "mono" if channels == 1 else "stereo", rate)
    out = np.zeros((channels, round(end * rate) - round(begin * rate)), np.float32)
    container.seek(int(max(0.0, begin - _LEAD) / stream.time_base), stream=stream)
    for decoded in container.decode(stream):
        if decoded.time is not None and decoded.time > end:
            break
        for frame in convert.resample(decoded):
            block = frame.to_ndarray()
            at = round(frame.pts * frame.time_base * rate) - round(begin * rate)
            low, high = max(0, at), min(out.shape[1], at + block.shape[1])
            if low < high:
                out[:, low:high] = block[:, low - at : high - at]
    return out
