"""The sound of a video, decoded where it is asked for."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.harness.video.source import opened

Samples = NDArray[np.int16]
"""A sound of shape (samples, channels)."""

BLOCK = 60
"""Seconds of sound that are decoded at a time. The last two blocks are kept: the views of a short clip need the same ones."""
_LEAD = 0.5
"""Seconds of sound decoded before a block: the first frames after a jump depend on what came before."""
_JITTER = 0.02
"""Seconds by which the stated time of a piece may miss the end of the piece before: some containers round times."""


class SoundError(Exception):
    """The sound of a video cannot be decoded."""


class Sound:
    """The first sound track of a video, in mono or stereo.

    Attributes:
        rate: samples per second.
        layout: ``mono`` or ``stereo``.
    """

    def __init__(self, source: str | bytes, start: float, rate: int, channels: int) -> None:
        """Name the track; nothing is decoded yet.

        Args:
            source: path or bytes of the video.
            start: time of the video's first frame on the clock of its file, in seconds. The sound runs on the same
            clock.
            rate: samples per second.
            channels: of the track; more than 2 are mixed.
        """
        self._source, self._start = source, start
        self.rate, self.layout = rate, "mono" if channels == 1 else "stereo"
        self._lock = threading.Lock()
        # a cache for each track: one on the method itself would keep the bytes of every video in memory
        self._block = functools.lru_cache(2)(self._decode)

    def between(self, begin: float, end: float) -> Iterator[Samples]:
        """Yield the sound between two times of the video (seconds) in pieces; backwards where the end comes first.

        Stretches that touch share no sample and leave none out.

        Raises:
            SoundError: it cannot be decoded.
        """
        first, last = round(min(begin, end) * self.rate), round(max(begin, end) * self.rate)
        length = BLOCK * self.rate
        numbers = range(first // length, -(-last // length))
        for number in numbers if begin <= end else reversed(numbers):
            # or two threads would decode the same block
            with self._lock:
                block = self._block(number)
            piece = block[max(0, first - number * length) : last - number * length]
            yield piece if begin <= end else piece[::-1]

    def _decode(self, number: int) -> Samples:
        """Return block ``number`` of the sound; silence where the file has none."""
        try:
            with opened(self._source) as container:
                return self._decode_from(container, number * BLOCK)
        except Exception as error:
            # a damaged file makes FFmpeg's readers raise nearly anything
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise SoundError(f"the sound cannot be decoded: {' '.join(reason.split())}") from None

    def _decode_from(self, container: Any, second: int) -> Samples:
        import av

        # the file's clock need not begin with the first frame of the video
        begin = self._start + second
        stream = container.streams.audio[0]
        convert = av.AudioResampler("s16", self.layout, self.rate)
        block = np.zeros((BLOCK * self.rate, 1 if self.layout == "mono" else 2), np.int16)
        at = None
        container.seek(int(max(0.0, begin - _LEAD) / stream.time_base), stream=stream)
        for decoded in container.decode(stream):
            if decoded.time is not None and decoded.time > begin + BLOCK:
                break
            for frame in convert.resample(decoded):
                heard = np.frombuffer(memoryview(frame.planes[0]), np.int16, frame.samples * block.shape[1]).reshape(
                    -1, block.shape[1]
                )
                said = round(((frame.time or 0.0) - begin) * self.rate)
                # pieces follow each other without a gap, unless their stated times truly jump
                at = said if at is None or abs(said - at) > _JITTER * self.rate else at
                low, high = max(0, at), min(len(block), at + len(heard))
                if low < high:
                    block[low:high] = heard[low - at : high - at]
                at += len(heard)
        return block
