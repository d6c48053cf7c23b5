"""Reads the uniform frames of a video, exactly: what counts is the frames that a decoder gives, never what the file's header claims.

Frames are turned as the file says. OpenCV and decord show them so (measured); PyAV leaves that to its caller. Their
colours are PyAV's ``rgb24``, as in lmms-eval's own reader.
"""

from __future__ import annotations

import bisect
import contextlib
import io
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.video.clip import Clip, Frames, Sampling
from lmms_patch.harness.wrap import media
from lmms_patch.text import line

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_KEYS = ("bytes", "path", "video", "video_url", "url")
_FORMATS = {"mov", "mp4", "matroska", "webm"}
Packets = list[tuple[int | None, bool]]
"""The coded frames of a video in the order of the file: when each is shown, in ticks, and whether decoding can start from it."""
_CODECS = {"h264", "hevc", "vp9", "av1"}
"""Codecs that put exactly one shown frame into a packet in one of ``_FORMATS``. VP8, for one, has packets that show nothing."""


def read(medium: Any, sampling: Sampling | None = None) -> Clip:
    """Return the uniform frames of a video.

    Args:
        medium: a path, ``file://...``, a data URL, bytes, or a mapping that holds one of these.
        sampling: which frames to take; by default 32 uniform ones.

    Raises:
        UnreadableError: the file is missing, damaged at any place that is decoded, shorter than its index, or without a
            picture.
        CannotWrapError: the medium is a web address, or nothing that holds a video.
    """
    source = _source(medium)
    try:
        return _read(source, sampling or Sampling())
    except Exception as error:
        # a damaged file makes FFmpeg's readers raise nearly anything
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        name = "the video" if isinstance(source, bytes) else f"the video {source}"
        raise media.UnreadableError(f"{name} cannot be read: {line(reason)}") from None


def _source(medium: Any) -> str | bytes:
    """Return the absolute path or the bytes of a video."""
    if isinstance(medium, Mapping):
        medium = next((medium[key] for key in _KEYS if medium.get(key) is not None), medium)
    if isinstance(medium, (bytes, bytearray)):
        return bytes(medium)
    if not isinstance(medium, (str, os.PathLike)):
        raise CannotWrapError(f"the doc holds a {type(medium).__name__} in place of a video; give a path or bytes")
    path = os.fspath(medium).removeprefix("file://")
    if path.startswith("data:"):
        try:
            return media.of_data_url(path)
        except ValueError as error:
            raise media.UnreadableError(f"the video cannot be read: {error}") from None
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path):
        raise CannotWrapError(f"the video {path[:80]!r} is a web address; download it first")
    if not os.path.isfile(path):
        raise media.UnreadableError(f"the video {path} cannot be read: there is no such file")
    # a path from the root: FFmpeg takes "concat:..." and the like for instructions
    return os.path.abspath(path)


@contextlib.contextmanager
def opened(source: str | bytes) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open a video: give its container, and its first track that is not the cover of an album."""
    import av

    # metadata that are no UTF-8 must not make a video unreadable
    with av.open(
        io.BytesIO(source) if isinstance(source, bytes) else source, "r", metadata_errors="replace"
    ) as container:
        tracks = (one for one in container.streams.video if not one.disposition & one.disposition.attached_pic)
        stream = next(tracks, None)
        if stream is None:
            raise ValueError("it holds no video")
        # threads for frames, too: by default PyAV uses them for parts of a frame alone
        stream.thread_type = "AUTO"
        yield container, stream


def _read(source: str | bytes, sampling: Sampling) -> Clip:
    """Return the clip of a file.

    The packets are counted first. As a rule they are as many as the frames: then only what leads to the wanted frames is
    decoded. Where decoding shows another number, a pass over all frames follows. Only wanted frames are held.
    """
    with opened(source) as (container, stream):
        packets, certain = packets_of(container, stream)
        # some streams tell no rate; FFmpeg then takes 25, too
        rate = next((Fraction(one) for one in (stream.average_rate, stream.guessed_rate) if one), Fraction(25))
        base = stream.time_base or 1 / rate

    def timed(times: Sequence[int | None]) -> tuple[Fraction, list[int]]:
        duration = _duration(times, base, rate)
        return duration, sampling.indices(len(times), float(duration)).tolist() if times else []

    times: list[int | None] = [time for time, _ in packets]
    # packets stand in the order of decoding, frames in the order of their times
    duration, wanted = timed(times if None in times else sorted(times))  # type: ignore[type-var] # none is None
    frames = by_seeking(source, packets, wanted) if certain and wanted else None
    while frames is None:
        times = []
        frames = _pictures(_in_order(source, wanted, times), len(wanted))
        if not times:
            raise ValueError("it holds no frame")
        duration, found = timed(times)
        if found != wanted:
            frames, wanted = None, found
    # an mp4 file has 32 bits for either number
    return Clip(frames, (len(frames) / duration).limit_denominator(1_000_000))


def packets_of(container: InputContainer, stream: VideoStream) -> tuple[Packets, bool]:
    """Return the coded frames of a video, and whether each is shown as one frame for certain.

    Raises:
        ValueError: one of them is not complete, or the file's index has more.
    """
    packets, sound, shown = list[tuple[int | None, bool]](), True, True
    for packet in container.demux(stream):
        # an empty packet is the mark of the end
        if packet.size:
            packets.append((packet.pts, packet.is_keyframe))
            sound, shown = sound and not packet.is_corrupt, shown and not packet.is_discard
    # 0: the file does not say how many frames it has
    if not sound:
        raise ValueError("it is cut short or damaged")
    times = {time for time, _ in packets}
    return packets, (
        shown
        and bool(_FORMATS & set(container.format.name.split(",")))
        and stream.codec_context.name in _CODECS
        and stream.frames in (0, len(packets))
        and None not in times
        and len(times) == len(packets) > 0
        and packets[0][1]
    )


def _duration(times: Sequence[int | None], base: Fraction, rate: Fraction) -> Fraction:
    """Return for how many seconds all frames are shown.

    The last frame is shown as long as the frames before it are on average: what the file says of it may be anything.
    Where the times do not rise from frame to frame, the rate that the file claims decides.
    """
    total, ticks = len(times), [time for time in times if time is not None]
    if len(ticks) < total or any(after <= before for before, after in itertools.pairwise(ticks)):
        return total / rate
    if total == 1:
        return 1 / max(rate, Fraction(1))
    return (ticks[-1] - ticks[0]) * base * Fraction(total, total - 1) if ticks else Fraction(0)


def _in_order(source: str | bytes, wanted: Sequence[int], times: list[int | None]) -> Iterator[VideoFrame]:
    """Decode a whole video, and yield its frames number ``wanted``; ``times`` gets the time of each frame in ticks."""
    kept = frozenset(wanted)
    with opened(source) as (container, stream):
        for number, frame in enumerate(_undamaged(container.decode(stream))):
            times.append(frame.pts)
            if number in kept:
                yield frame


def by_seeking(source: str | bytes, packets: Packets, wanted: Sequence[int]) -> Frames | None:
    """Return the frames number ``wanted``, decoding only what leads to them; None where a decoder numbers the frames in another way."""
    times: list[Any] = [time for time, _ in packets]
    order = sorted(range(len(times)), key=times.__getitem__)
    keys = [place for place, (_, key) in enumerate(packets) if key]

    def key_of(number: int) -> int:
        """Return the time of the last key frame that is both stored and shown no later than a frame."""
        place = order[number]
        return next((times[key] for key in reversed(keys) if key <= place and times[key] <= times[place]), times[0])

    def found() -> Iterator[VideoFrame]:
        with opened(source) as (container, stream):
            for key, numbers in itertools.groupby(wanted, key_of):
                decoded, own = _undamaged(_from_key(container, stream, key)), list(numbers)
                for number in range(bisect.bisect_left(order, key, key=times.__getitem__), own[-1] + 1):
                    frame = next(decoded, None)
                    if frame is None or frame.pts != times[order[number]]:
                        return
                    if number in own:
                        yield frame

    return _pictures(found(), len(wanted))


def _from_key(container: InputContainer, stream: VideoStream, time: int) -> Iterator[VideoFrame]:
    """Yield the frames shown from the key frame of a given time on."""
    container.seek(time, stream=stream)
    # a seek may land before the key frame
    packets = itertools.dropwhile(lambda one: not (one.pts == time and one.is_keyframe), container.demux(stream))
    decoded = itertools.chain.from_iterable(map(stream.decode, packets))
    yield from (frame for frame in decoded if frame.pts is not None and frame.pts >= time)


def _undamaged(frames: Iterator[VideoFrame]) -> Iterator[VideoFrame]:
    for frame in frames:
        if frame.is_corrupt:
            raise ValueError("it holds a damaged frame")
        yield frame


def _pictures(frames: Iterator[VideoFrame], count: int) -> Frames | None:
    """Return frames as an array, turned as the file says, in the size of the first; None where there are fewer than ``count``."""
    kept: Frames = np.empty((0, 0, 0, 3), np.uint8)
    place = -1
    for place, frame in enumerate(frames):
        turns = round(frame.rotation / 90) % 4
        # a frame is scaled before it is turned, so a quarter turn exchanges its sides
        sides = kept.shape[2:0:-1] if turns % 2 else kept.shape[1:3]
        height, width = sides if len(kept) else (frame.height, frame.width)
        picture = np.rot90(frame.to_ndarray(format="rgb24", width=width, height=height), turns)
        if not len(kept):
            # at once, so that a clip is held once
            kept = np.empty((count, *picture.shape), np.uint8)
        kept[place] = picture
    return kept if place + 1 == count else None
