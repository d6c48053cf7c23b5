"""Checks that a video file is whole, by the lengths that its container states.

Many demuxers end a file that was cut short without an error.
"""

from __future__ import annotations

import io
import os
from typing import BinaryIO


def check(source: str | bytes) -> None:
    """Refuse a file that is shorter than its container says.

    Streams do not say how long they are.

    Args:
        source: path or bytes of an AVI, Matroska, WebM or MP4 file; any other passes.

    Raises:
        ValueError: the file is empty or cut short.
    """
    with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as file:
        head = file.read(16)
        length = file.seek(0, os.SEEK_END)
        if not length:
            raise ValueError("it is empty")
        end = length
        if head.startswith(b"RIFF"):
            size = int.from_bytes(head[4:8], "little")
            # a stream writes no size
            end = length if size in (0, 0xFFFFFFFF) else 8 + size
        elif head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
            end = _mp4_end(file, length)
        elif head.startswith(b"\x1a\x45\xdf\xa3"):
            end = _matroska_end(file, length)
    if end > length:
        raise ValueError("it is cut short")


def _mp4_end(file: BinaryIO, length: int) -> int:
    """Return where the last of an MP4 file's boxes ends, in bytes."""
    at = 0
    while at + 8 <= length:
        file.seek(at)
        head = file.read(16)
        size = int.from_bytes(head[:4], "big")
        # the size follows in 64 bits
        if size == 1:
            size = int.from_bytes(head[8:], "big")
        if size < 8 or (at + size > length and head[4:8] not in (b"mdat", b"moov", b"moof")):
            # 0: the box runs to the end of the file. Any other such thing is no box, but padding
            return length
        at += size
    return at


def _matroska_end(file: BinaryIO, length: int) -> int:
    """Return where the segment of a Matroska file ends, in bytes: the second element, which holds all frames."""
    at = 0
    for _ in range(2):
        file.seek(at)
        head = file.read(16)
        # the first bits of a name, and of a size, say how long it is
        name = 9 - head[0].bit_length()
        width = 9 - head[name].bit_length() if len(head) > name else 9
        bits = (1 << 7 * width) - 1
        size = int.from_bytes(head[name : name + width], "big") & bits
        if len(head) < name + width or size == bits:
            # all bits set: a stream writes no size
            return length if len(head) == 16 else length + 1
        at += name + width + size
    return at
