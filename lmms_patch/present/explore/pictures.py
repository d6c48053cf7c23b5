"""The images of docs.

A thread of its own takes them one after the other, so that no page waits for lmms-eval; they are kept while there is
room.
"""

from __future__ import annotations

import io
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lmms_patch.errors import PatchError
from lmms_patch.present import look
from lmms_patch.present.explore.docs import Seen
from lmms_patch.text import line

LONGEST, QUALITY = 1_600, 88
"""Longest side in pixels of an image that is shown, and its JPEG quality."""
SMALL = 300_000
"""Pixels up to which an image is a PNG, whose pixels are those that the model saw."""
ROOM = 128 << 20
"""Bytes of images that are kept."""
WAITING = 64
"""Images that may wait to be taken; of more the oldest are dropped."""
NONE_SHOWN = "the run found no other doc's image that fits, so this doc was shown none"
"""Why a doc of a ``_swap`` task may have no image."""
Key = tuple[str, int]
OfDoc = Callable[[int], tuple[Any, str] | None]
"""From a doc id to the doc's first PIL image, and the digest that a record has of what the doc shows (column ``images``; empty: not known); None: no
image."""
OpenTask = Callable[[str], OfDoc]
"""From a base task to the images of its docs; raises PatchError where the task cannot be loaded."""


@dataclass(frozen=True)
class Picture:
    """An image in the form sent to the page.

    Attributes:
        data: the file; empty where there is none.
        type: its media type.
        why: why there is none.
    """

    data: bytes = b""
    type: str = ""
    why: str = ""


class Pictures:
    """The images of docs by base task and doc id.

    Args:
        open_task: see ``OpenTask``; None: no image is taken.
        why: why none is taken.
    """

    def __init__(self, open_task: OpenTask | None, why: str = "") -> None:
        self._open, self._why = open_task, why
        self._kept: OrderedDict[Key, Picture] = OrderedDict()
        self._waiting: deque[tuple[Key, Seen]] = deque(maxlen=WAITING)
        self._opened: dict[str, OfDoc | str] = {}
        self._news = threading.Condition()
        self._bytes = 0
        if open_task is not None:
            threading.Thread(target=self._work, daemon=True, name="images").start()

    def get(self, base: str, seen: Seen | None) -> Picture | None:
        """Return an image taken before, or the reason why there is none; None while the image is still to be taken.

        Args:
            base: a base task.
            seen: whose image it is and what the run says of it: another image is refused. None: the doc was shown none.
        """
        if self._open is None or seen is None:
            return Picture(why=self._why if seen is not None else NONE_SHOWN)
        key = base, seen.doc_id
        with self._news:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            if all(waiting != key for waiting, _ in self._waiting):
                self._waiting.append((key, seen))
                self._news.notify()
        return None

    def take(self, base: str, seen: Seen | None) -> Picture:
        """Take an image now, and return the picture or the reason why there is none; arguments as in ``get``."""
        if self._open is None or seen is None:
            return Picture(why=self._why if seen is not None else NONE_SHOWN)
        first = self._task(base)
        if isinstance(first, str):
            return Picture(why=first)
        try:
            return _checked(first(seen.doc_id), seen)
        except Exception as error:
            # A broken image or a dataset that went away: the page shows the doc without it.
            return Picture(why=line(f"its image cannot be read: {error}", 300))

    def _work(self) -> None:
        """Take the waiting images, the newest request first.

        Runs in a thread of its own, to the end of the process.
        """
        while True:
            with self._news:
                self._news.wait_for(lambda: bool(self._waiting))
                # The newest request first: that doc is on the screen now.
                key, seen = self._waiting[-1]
            picture = self.take(key[0], seen)
            with self._news:
                self._waiting = deque((one for one in self._waiting if one[0] != key), WAITING)
                self._kept[key] = picture
                self._bytes += len(picture.data)
                while self._bytes > ROOM and len(self._kept) > 1:
                    self._bytes -= len(self._kept.popitem(last=False)[1].data)

    def _task(self, base: str) -> OfDoc | str:
        """Return the function for images of a base task, or the reason for having none."""
        if base not in self._opened:
            try:
                assert self._open is not None
                self._opened[base] = self._open(base)
            except PatchError as error:
                self._opened[base] = line(f"no images: {error}", 400)
            except Exception as error:
                # lmms-eval may raise anything while it loads a task.
                self._opened[base] = line(f"no images: {base} cannot be loaded here: {error!r}", 400)
        return self._opened[base]


def _checked(found: tuple[Any, str] | None, seen: Seen) -> Picture:
    """Return an image as a file for pages, or the reason why the run showed a different image."""
    if found is None:
        return Picture(why="the doc has no image that can be read")
    image, digest = found
    if seen.size is not None and tuple(image.size) != seen.size:
        was, now = (f"{width} × {height}" for width, height in (seen.size, image.size))
        return Picture(why=f"another image: the one here has {now} pixels, the one in the run had {was}")
    if seen.digest and digest and seen.digest != digest:
        return Picture(why="another image: its colours are not those of the image in the run")
    return encoded(image)


def encoded(image: Any) -> Picture:
    """Return a PIL image as a file for pages; transparent parts on white."""
    small, out = look.on_white(image, LONGEST), io.BytesIO()
    if small.width * small.height <= SMALL:
        small.save(out, "PNG")
        return Picture(out.getvalue(), "image/png")
    small.save(out, "JPEG", quality=QUALITY)
    return Picture(out.getvalue(), "image/jpeg")
