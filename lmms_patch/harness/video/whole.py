"""Checks that a video file is whole, by the lengths that its container states.

Many demuxers end a file that was cut short without an error.
"""

from __future__ import annotations

import io
import os
from typing import BinaryIO

_EBML = b"\x1a\x45\xdf\xa3"
_OPEN = {b"\x18\x53\x80\x67", b"\x1f\x43\xb6\x75"}
"""Matroska's segment and cluster: what is in them is looked at one by one."""
_IN_SEGMENT = (0x114D9B74, 0x1549A966, 0x1654AE6B, 0x1C53BB6B, 0x1254C367, 0x1941A469, 0x1043A770, 0xEC, 0xBF)
_IN_CLUSTER = (0xE7, 0xA3, 0xA0, 0xA7, 0xAB, 0xAF, 0x5854)
_MATROSKA = {name.to_bytes((name.bit_length() + 7) // 8, "big") for name in _IN_SEGMENT + _IN_CLUSTER} | _OPEN | {_EBML}
"""All elements that may stand in a segment or a cluster, by https://www.rfc-editor.org/rfc/rfc9559."""


def check(source: str | bytes) -> None:
    """Refuse a file that is shorter than its container says, or whose container breaks off.

    Streams do not say how long they are.

    Args:
        source: path or bytes of an AVI, GIF, Matroska, WebM or MP4 file; any other passes.

    Raises:
        ValueError: the file is empty, cut short or damaged.
    """
    with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as file:
        head = file.read(16)
        length = file.seek(0, os.SEEK_END)
        if not length:
            raise ValueError("it is empty")
        if head.startswith(b"RIFF"):
            size = int.from_bytes(head[4:8], "little")
            # a stream writes no size
            end = length if size in (0, 0xFFFFFFFF) else 8 + size
        elif head.startswith(b"GIF8"):
            # zeros may stand behind the mark of the end
            file.seek(max(0, length - 64))
            end = length if file.read().rstrip(b"\0").endswith(b";") else length + 1
        elif head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
            end = _mp4_end(file, length)
        elif head.startswith(_EBML):
            end = _matroska_end(file, length)
        else:
            end = length
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
    """Return where the last of a Matroska file's elements ends, in bytes.

    Raises:
        ValueError: something that is no element stands in a segment or a cluster.
    """
    at, last = 0, length
    while at < min(length, last):
        file.seek(at)
        head = file.read(16)
        # the first bits of a name, and of a size, say how long it is
        width = 9 - head[0].bit_length()
        name, rest = head[:width], head[width:]
        if name not in _MATROSKA or not rest or not rest[0]:
            raise ValueError(f"it is damaged at byte {at:,}")
        more = 9 - rest[0].bit_length()
        bits = (1 << 7 * more) - 1
        size = int.from_bytes(rest[:more], "big") & bits
        at += width + more
        if name not in _OPEN:
            at += size
        elif name == b"\x18\x53\x80\x67" and size != bits:
            # all bits set: a stream writes no size
            last = at + size
    return max(at, last)
