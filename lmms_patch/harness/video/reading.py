"""Reads the uniform frames of a video, exactly: what counts is the frames that a decoder gives, never what the file's header claims.

Frames are turned as the file says. OpenCV and decord show them so (measured); PyAV leaves that to its caller. Their
colours are PyAV's ``rgb24``, as in lmms-eval's own reader.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lmms_patch.harness.video import whole
from lmms_patch.harness.video.clip import Clip, Frames, Sampling
from lmms_patch.harness.video.source import opened, source_of
from lmms_patch.harness.wrap import media

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_FORMATS = {"mov", "mp4", "matroska", "webm"}
_CODECS = {"h264", "hevc", "vp9", "av1"}
"""Codecs that put exactly one shown frame into a packet in one of ``_FORMATS``. VP8, for one, has packets that show nothing."""


def read(medium: Any, sampling: Sampling | None = None) -> Clip:
    """Return the uniform frames of a video.

    Args:
        medium: a path, ``file://...``, a data URL, bytes, or a mapping that holds one of these.
        sampling: which frames to take; by default 32 uniform ones.

    Raises:
        UnreadableError: the file is missing, damaged at any place that is decoded, cut short, or without a picture.
        CannotWrapError: the medium is a web address, or nothing that holds a video.
    """
    sampling = sampling or Sampling()
    source = source_of(medium)
    name = "the video" if isinstance(source, bytes) else f"the video {source}"
    try:
        whole.check(source)
        return _read(source, sampling)
    except Exception as error:
        # a damaged file makes FFmpeg's readers raise nearly anything
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise media.UnreadableError(f"{name} cannot be read: {' '.join(reason.split())}") from None


# --- decoding --------------------------------------------------------------------------------------


@dataclass
class _Packets:
    """The coded frames of a video in the order of the file, none of them decoded.

    Attributes:
        pts: when each is shown, in ticks; None where the file does not say.
        keys: positions of those from which decoding can start.
        one_each: whether each of them is shown as one frame for certain.
    """

    pts: list[int | None] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    one_each: bool = True


def _picture(container: InputContainer) -> VideoStream:
    """Return the first video track, apart from the cover of an album.

    Raises:
        ValueError: there is none.
    """
    for stream in container.streams.video:
        if not stream.disposition & stream.disposition.attached_pic:
            # threads for frames, too: by default PyAV uses them for parts of a frame alone
            stream.thread_type = "AUTO"
            return stream
    raise ValueError("it holds no video")


def _read(source: str | bytes, sampling: Sampling) -> Clip:
    """Return the clip of a file.

    The packets are counted first. As a rule they are as many as the frames: then one pass over the video finds all that
    is wanted, however long the video is, and only the wanted frames are held. Where decoding shows another number, a
    second pass follows.
    """
    with opened(source) as container:
        stream = _picture(container)
        packets = _packets(container, stream)
        # some streams tell no rate; FFmpeg then takes 25, too
        rate = next((Fraction(one) for one in (stream.average_rate, stream.guessed_rate) if one), Fraction(25))
        base = stream.time_base or 1 / rate
    # packets stand in the order of decoding, frames in the order of their times
    pts: Sequence[int | None] = (
        sorted(tick for tick in packets.pts if tick is not None) if None not in packets.pts else packets.pts
    )
    duration = _duration(pts, base, rate)
    wanted = sampling.indices(len(pts), float(duration)).tolist() if pts else []
    frames = _by_seeking(source, packets, wanted)
    while frames is None:
        frames, pts = _in_order(source, wanted)
        duration = _duration(pts, base, rate)
        true = sampling.indices(len(pts), float(duration)).tolist()
        if true != wanted:
            frames, wanted = None, true
    # an mp4 file has 32 bits for either number
    return Clip(frames, (len(frames) / duration).limit_denominator(1_000_000))


def _packets(container: InputContainer, stream: VideoStream) -> _Packets:
    """Return the coded frames of a video.

    Raises:
        ValueError: one of them is not complete.
    """
    packets = _Packets()
    for packet in container.demux(stream):
        if packet.is_corrupt:
            raise ValueError("it is cut short or damaged")
        if not packet.size:
            # the mark of the end
            continue
        if packet.is_keyframe:
            packets.keys.append(len(packets.pts))
        packets.pts.append(packet.pts)
        packets.one_each = packets.one_each and not packet.is_discard
    packets.one_each = (
        packets.one_each
        and bool(_FORMATS & set(container.format.name.split(",")))
        and stream.codec_context.name in _CODECS
        # 0: the file does not say how many frames it has
        and stream.frames in (0, len(packets.pts))
        and None not in packets.pts
        and len(set(packets.pts)) == len(packets.pts)
        and packets.keys[:1] == [0]
    )
    return packets


def _duration(pts: Sequence[int | None], base: Fraction, rate: Fraction) -> Fraction:
    """Return for how many seconds all frames are shown.

    The last frame is shown as long as the frames before it are on average: what the file says of it may be anything.
    Where the times do not rise from frame to frame, the rate that the file claims decides.
    """
    total = len(pts)
    ticks = [tick for tick in pts if tick is not None]
    if len(ticks) < total or any(after <= before for before, after in itertools.pairwise(ticks)):
        return total / rate
    if total == 1:
        return 1 / max(rate, Fraction(1))
    return (ticks[-1] - ticks[0]) * base * Fraction(total, total - 1) if ticks else Fraction(0)


def _in_order(source: str | bytes, wanted: Sequence[int]) -> tuple[Frames, list[int | None]]:
    """Decode a whole video, and return its frames number ``wanted`` (rising) with the times in ticks of all frames.

    Raises:
        ValueError: a frame is damaged, or there is none.
    """
    pts: list[int | None] = []
    kept = _Kept(len(wanted))
    places = {number: place for place, number in enumerate(wanted)}
    with opened(source) as container:
        for frame in container.decode(_picture(container)):
            if frame.is_corrupt:
                raise ValueError(f"frame {len(pts) + 1} is damaged")
            if len(pts) in places:
                kept.put(places[len(pts)], frame)
            pts.append(frame.pts)
    if not pts:
        raise ValueError("it holds no frame")
    return kept.frames, pts


def _by_seeking(source: str | bytes, packets: _Packets, wanted: Sequence[int]) -> Frames | None:
    """Return the frames number ``wanted``, decoding only what leads to them.

    Returns:
        None where that would save less than half of the decoding, or where a decoder might number the frames in another
        way.
    """
    if not packets.one_each or not wanted:
        return None
    pts = [tick for tick in packets.pts if tick is not None]
    in_order = sorted(range(len(pts)), key=pts.__getitem__)
    groups: dict[int, list[int]] = {}
    for number in wanted:
        groups.setdefault(_key_before(packets.keys, pts, in_order[number]), []).append(number)
    cost = sum(max(in_order[number] for number in numbers) - key + 1 for key, numbers in groups.items())
    # where half of the video must be decoded anyway, a single pass in order is as quick
    if 2 * cost > len(pts):
        return None
    ticks = [pts[position] for position in in_order]
    kept = _Kept(len(wanted))
    places = {number: place for place, number in enumerate(wanted)}
    with opened(source) as container:
        stream = _picture(container)
        for key, numbers in groups.items():
            decoded = _from_key(container, stream, pts[key])
            for number in range(bisect.bisect_left(ticks, pts[key]), numbers[-1] + 1):
                frame = next(decoded, None)
                # the decoder numbers the frames otherwise: decode them in order instead
                if frame is None or frame.pts != ticks[number]:
                    return None
                if frame.is_corrupt:
                    raise ValueError(f"frame {number + 1} is damaged")
                if number in places:
                    kept.put(places[number], frame)
    return kept.frames


def _key_before(keys: Sequence[int], pts: Sequence[int], position: int) -> int:
    """Return the position of the last key frame that is both stored and shown no later than a packet."""
    last = bisect.bisect_right(keys, position) - 1
    return next((key for key in reversed(keys[: last + 1]) if pts[key] <= pts[position]), 0)


def _from_key(container: InputContainer, stream: VideoStream, pts: int) -> Iterator[VideoFrame]:
    """Yield the frames shown from the key frame of a given time on."""
    container.seek(pts, stream=stream)
    started = False
    for packet in container.demux(stream):
        # a seek may land before the key frame
        started = started or (packet.pts == pts and packet.is_keyframe)
        if started:
            yield from (frame for frame in stream.decode(packet) if frame.pts is not None and frame.pts >= pts)


class _Kept:
    """Decoded frames in a single array, made for the size of the first frame."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.frames: Frames = np.empty((0, 0, 0, 3), np.uint8)

    def put(self, place: int, frame: VideoFrame) -> None:
        """Store a frame, turned as its file says. A frame of another size is scaled to the size of the first."""
        turns = round(frame.rotation / 90) % 4
        if len(self.frames):
            # a frame is scaled before it is turned, so a quarter turn exchanges its sides
            height, width = self.frames.shape[1:3] if turns % 2 == 0 else self.frames.shape[2:0:-1]
        else:
            height, width = frame.height, frame.width
        picture = np.rot90(frame.to_ndarray(format="rgb24", width=width, height=height), turns)
        if not len(self.frames):
            self.frames = np.empty((self._count, *picture.shape), np.uint8)
        self.frames[place] = picture
