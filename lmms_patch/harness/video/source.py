"""Where the bytes of a video are, and how its file is opened."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.wrap import media

if TYPE_CHECKING:
    from av.container import InputContainer

_KEYS = ("bytes", "path", "video", "video_url", "url")


def source_of(medium: Any) -> str | bytes:
    """Return the absolute path or the bytes of a video.

    Raises:
        UnreadableError: there is no such file.
        CannotWrapError: the medium is a web address, or nothing that holds a video.
    """
    if isinstance(medium, Mapping):
        inside = next((medium[key] for key in _KEYS if medium.get(key) is not None), None)
        if inside is not None:
            return source_of(inside)
    if isinstance(medium, (bytes, bytearray)):
        return bytes(medium)
    if not isinstance(medium, (str, os.PathLike)):
        raise CannotWrapError(f"the doc holds a {type(medium).__name__} in place of a video; give a path or bytes")
    path = os.fspath(medium)
    if path.startswith("data:"):
        try:
            return media.of_data_url(path)
        except ValueError as error:
            raise media.UnreadableError(f"the video cannot be read: {error}") from None
    path = path.removeprefix("file://")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path):
        raise CannotWrapError(f"the video {path[:80]!r} is a web address; download it first")
    if not os.path.isfile(path):
        raise media.UnreadableError(f"the video {path} cannot be read: there is no such file")
    # a path from the root: FFmpeg takes "concat:..." and the like for instructions
    return os.path.abspath(path)


@contextlib.contextmanager
def opened(source: str | bytes) -> Iterator[InputContainer]:
    """Open a video for reading."""
    import av

    # metadata that are no UTF-8 must not make a video unreadable
    with av.open(
        io.BytesIO(source) if isinstance(source, bytes) else source, "r", metadata_errors="replace"
    ) as container:
        yield container
