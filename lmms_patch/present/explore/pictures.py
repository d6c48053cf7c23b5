"""The images of docs: taken one after the other in a thread of their own, so that no page waits for lmms-eval, and kept while there is room."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lmms_patch.errors import PatchError
from lmms_patch.text import line

LONGEST, QUALITY = 1_600, 88
"""Longest side in pixels of an image that is shown, and its JPEG quality."""
SMALL = 300_000
"""Pixels up to which an image is a PNG, whose pixels are those that the model saw."""
ROOM = 128 << 20
"""Bytes of images that are kept."""
WAITING = 64
"""Images that may wait to be taken; of more the oldest are dropped."""
Key = tuple[str, int]
Size = tuple[int, int]
OpenTask = Callable[[str], Callable[[int], Any]]
"""From a base task to a function from a doc id to its PIL image, or None; raises PatchError where the task cannot be loaded."""


@dataclass(frozen=True)
class Picture:
    """An image as it is sent.

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
        self._waiting: deque[tuple[Key, Size | None]] = deque(maxlen=WAITING)
        self._opened: dict[str, Callable[[int], Any] | str] = {}
        self._news = threading.Condition()
        self._bytes = 0
        if open_task is not None:
            threading.Thread(target=self._work, daemon=True, name="images").start()

    def get(self, base: str, doc_id: int, size: Size | None) -> Picture | None:
        """Return an image if it was taken, or why it cannot be; None while it is not known yet.

        Args:
            base: a base task.
            doc_id: row of its eval split.
            size: what the run says of the image's width and height; another image is refused.
        """
        if self._open is None:
            return Picture(why=self._why)
        key = base, doc_id
        with self._news:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            if all(waiting != key for waiting, _ in self._waiting):
                self._waiting.append((key, size))
                self._news.notify()
        return None

    def take(self, base: str, doc_id: int, size: Size | None) -> Picture:
        """Return an image, or why there is none; waits for it."""
        if self._open is None:
            return Picture(why=self._why)
        first = self._task(base)
        if isinstance(first, str):
            return Picture(why=first)
        try:
            return encoded(first(doc_id), size)
        except Exception as error:  # a broken image, or a dataset that went away: the doc is shown without it
            return Picture(why=line(f"its image cannot be read: {error}", 300))

    def _work(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: bool(self._waiting))
                key, size = self._waiting[-1]  # the newest: what is looked at now
            picture = self.take(*key, size)
            with self._news:
                self._waiting = deque((one for one in self._waiting if one[0] != key), WAITING)
                self._kept[key] = picture
                self._bytes += len(picture.data)
                while self._bytes > ROOM and len(self._kept) > 1:
                    self._bytes -= len(self._kept.popitem(last=False)[1].data)

    def _task(self, base: str) -> Callable[[int], Any] | str:
        """Return the function that gives the images of a base task, or why there is none."""
        if base not in self._opened:
            try:
                assert self._open is not None
                self._opened[base] = self._open(base)
            except PatchError as error:
                self._opened[base] = line(f"no images: {error}", 400)
            except Exception as error:  # lmms-eval may raise anything while it loads a task
                self._opened[base] = line(f"no images: {base} cannot be loaded here: {error!r}", 400)
        return self._opened[base]


def encoded(image: Any, size: Size | None) -> Picture:
    """Return a PIL image as a file for pages; transparent parts on white. An image of another size than the run's is refused."""
    from PIL import Image

    if image is None:
        return Picture(why="the doc has no image that can be read")
    if size is not None and tuple(image.size) != size:
        return Picture(why=f"the image here has {image.width} × {image.height} pixels, in the run it had {size[0]} × {size[1]}: it is another image")
    small = image.convert("RGBA")
    small.thumbnail((LONGEST, LONGEST))
    ground = Image.new("RGBA", small.size, "white")
    ground.alpha_composite(small)
    out = io.BytesIO()
    if small.width * small.height <= SMALL:
        ground.convert("RGB").save(out, "PNG")
        return Picture(out.getvalue(), "image/png")
    ground.convert("RGB").save(out, "JPEG", quality=QUALITY)
    return Picture(out.getvalue(), "image/jpeg")
