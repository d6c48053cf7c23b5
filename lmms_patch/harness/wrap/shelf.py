"""The docs of a task as its base shows them: rows, decoded images and clips, and what is known of each doc's media."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from lmms_patch.ask.views import Size
from lmms_patch.errors import CannotWrapError, PatchError
from lmms_patch.harness.compat import LONGEST_FAILURE
from lmms_patch.harness.video.clip import Clip, Sampling
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.known import Known

CACHED_DOCS = 8
"""How many docs are kept decoded. The views of a doc arrive together, so a batch touches few docs."""
CACHED_CLIPS = 2
"""How many docs are kept decoded where docs show clips, whose frames can take 200 MB each."""
_POINTS = 64
"""Points by which ``sight`` looks at an image, in width and in height."""
Shown = Image.Image | Clip
"""A decoded medium."""
Show = Callable[[Any], Any]
"""``doc_to_visual`` or ``doc_to_messages`` of the base."""
Walk = Callable[..., Any]
"""The function of ``media`` that replaces the images in what ``Show`` returns."""


def fetched(rows: Any, place: int, plain: Callable[[], Any] | None) -> tuple[Any, str]:
    """Return a row, and why its media are missing; "" where they are not.

    Datasets decode the images of a row when the row is fetched, so one damaged image would end the run.

    Args:
        rows: the docs, media included.
        place: the number of the row.
        plain: gives the docs without media; None where there is no such form, so that the error is raised.
    """
    try:
        return rows[place], ""
    except Exception as error:
        if plain is None:
            raise
        try:
            return plain()[place], not_loaded(error)
        except Exception:
            # the first error names the cause; the second is only of the fallback
            raise error from None


def not_loaded(error: BaseException) -> str:
    """Return the line for an image or video that cannot be loaded, cut to ``LONGEST_FAILURE``."""
    return f"its image cannot be loaded: {one_line(error)}"[:LONGEST_FAILURE]


@dataclass
class Facts:
    """What is known of a doc's media; kept when they are no longer decoded.

    Attributes:
        sizes: width and height in pixels of each image shown; () where none can be cut; None before the first look.
        sight: a digest of the images (``sight``).
        clips: how many frames each clip has, and how many seconds it takes.
        prints: a digest of each image (``prints``); None where nobody asked.
        stored: the sizes of the images that the row itself holds.
        problem: why the media cannot be cut; empty where no reason is known.
        unreadable: whether an image cannot be loaded.
    """

    sizes: tuple[Size, ...] | None = None
    sight: str = ""
    clips: tuple[tuple[int, float], ...] = ()
    prints: tuple[str, ...] | None = None
    stored: frozenset[Size] = frozenset()
    problem: str = ""
    unreadable: bool = False

    def cannot_load(self, why: str) -> None:
        """Note that an image cannot be loaded."""
        self.problem, self.unreadable = why, True

    @property
    def no_image(self) -> str:
        """Why there is no image to cut; "" where there is."""
        return "" if self.sizes and not self.problem else self.problem or "no image"


class _Entry:
    """A doc while its views are asked: its row, what the base shows of the doc, and its decoded images."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.row: Any = None
        self.shown: dict[Show, tuple[Any, list[Shown]]] = {}


class Shelf:
    """The docs of a task. A row is fetched, and its images decoded, once for all views; the last docs are kept.

    Safe for threads.

    Attributes:
        sampling: which frames of a video the model takes.
        shows_clips: whether a doc shows a video, as far as docs were decoded.

    Args:
        known: the task.
    """

    def __init__(self, known: Known) -> None:
        self._known, self.rows, self.base = known, known.rows, known.base
        # clips that are cut in time, so that still images are refused; and boxes of docs' own, which lie on still images
        self.in_time, self._boxed = known.spec.kind.needs_video, known.spec.kind.own_boxes
        self.sampling, self.shows_clips = Sampling(), False
        self._facts: dict[int, Facts] = {}
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, sampling: Sampling) -> None:
        """Set which frames of a video the model takes."""
        self.sampling = sampling

    def of(self, doc_id: int) -> Facts:
        """Return what is known so far of a doc's media."""
        return self._facts.setdefault(doc_id, Facts())

    def row(self, doc_id: int) -> Any:
        """Return the base task's row, media included."""
        entry = self._entry(doc_id)
        with entry.lock:
            return self._row(entry, doc_id)

    def _row(self, entry: _Entry, doc_id: int) -> Any:
        if entry.row is None:
            entry.row, why = fetched(self.rows, doc_id, lambda: self._known.plain_rows)
            if why:
                self.of(doc_id).cannot_load(why)
        return entry.row

    def _entry(self, doc_id: int) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(doc_id, _Entry())
            self._entries.move_to_end(doc_id)
            while len(self._entries) > (CACHED_CLIPS if self.shows_clips else CACHED_DOCS):
                self._entries.popitem(last=False)
            return entry

    def blind(self, doc_id: int, show: Show) -> tuple[Any, str]:
        """Return what the base shows of a doc without its media, and why showing failed; "" where nothing failed.

        Where the base fails without an image, the prompt stands alone.
        """
        row = self.row(doc_id)
        try:
            return media.without_media(show(dict(row))), ""
        except (Exception, SystemExit) as error:
            return media.without_media(self._in_its_place(row, show)), not_loaded(error)

    def _in_its_place(self, row: Any, show: Show) -> list[Any]:
        """Return a substitute for a row the base cannot show: a grey image, and in messages the prompt after the image."""
        if show != getattr(self.base, "doc_to_messages", None):
            return [media.stand_in()]
        try:
            text = media.without_placeholders(str(self.base.doc_to_text(dict(row))))
        except Exception:
            # the text does not matter: the doc is left out
            text = ""
        return [
            {"role": "user", "content": [{"type": "image", "url": media.stand_in()}, {"type": "text", "text": text}]}
        ]

    def shown(self, doc_id: int, show: Show, walk: Walk) -> tuple[Any, list[Shown]]:
        """Return what the base shows of a doc, and the decoded images.

        Both are kept while the doc is among the last ones used. Where an image cannot be loaded, that is noted, and what
        is shown has grey images.
        """
        entry, facts = self._entry(doc_id), self.of(doc_id)
        # a lock for each doc, so that threads may decode different docs at once
        with entry.lock:
            if show not in entry.shown:
                row, payload, images = self._row(entry, doc_id), None, list[Shown]()
                # a doc that could not be shown once is not tried again
                if not facts.unreadable:
                    facts.stored = _sizes_in(row)
                    try:
                        payload = show(dict(row))
                    except (Exception, SystemExit) as error:
                        # many benchmarks end the process where a video is missing
                        facts.cannot_load(not_loaded(error))
                    else:
                        images = self._decode(facts, payload, walk)
                if facts.unreadable:
                    facts.sizes, images = facts.sizes or (), []
                    grey = self._in_its_place(row, show) if payload is None else payload
                    payload = walk(grey, lambda *_: media.stand_in())
                entry.shown[show] = payload, images
            return entry.shown[show]

    def _decode(self, facts: Facts, payload: Any, walk: Walk) -> list[Shown]:
        """Decode the images and videos of a doc and note their sizes.

        Where one cannot be cut, note the problem.
        """
        shown = list[Shown]()
        try:
            shown = [self._decoded(medium) for medium in media.images_in(payload, walk)]
            clips = any(isinstance(one, Clip) for one in shown)
            if shown and not clips and self.in_time:
                raise CannotWrapError(
                    "it shows still images, which have no moments; its cells are asked with the suffix _rci3"
                )
            if clips and self._boxed:
                raise CannotWrapError("it shows a video; boxes lie on still images")
        except media.UnreadableError as error:
            facts.cannot_load(str(error))
        except PatchError as error:
            # the media are there, but cannot be cut
            facts.problem = str(error)
        facts.sight = facts.sight or sight(shown)
        facts.clips = tuple((len(one), one.duration) for one in shown if isinstance(one, Clip))
        # now, since few clips are kept, and to decode one again takes longer
        if facts.clips:
            facts.prints = prints(shown)
        # always set again, never deleted: other threads read it
        facts.sizes = tuple(one.size for one in shown)
        return shown

    def _decoded(self, medium: Any) -> Shown:
        if not media.is_video(medium):
            return media.decode(medium)
        # takes PyAV to import, which tasks with images do not need
        from lmms_patch.harness.video import reading

        clip = reading.read(medium.medium if isinstance(medium, media.Video) else medium, self.sampling)
        self.shows_clips = True
        return clip

    def known(self, doc_id: int) -> Facts:
        """Return what is known of a doc's media after a look at them.

        Mostly the look was for a request. A doc whose answers all came from a response cache is decoded here. A doc that
        cannot be fetched any more is noted as a problem, so that its scores are not lost.
        """
        facts = self.of(doc_id)
        if facts.sizes is None:
            try:
                self._show(doc_id)
            except Exception as error:
                facts.sizes, facts.problem = (), not_loaded(error)
        return facts

    def sizes(self, doc_id: int) -> tuple[Size, ...]:
        """Return width and height in pixels of each image of a doc; () where the doc shows nothing to cut."""
        return self.known(doc_id).sizes or ()

    def prints(self, doc_id: int) -> tuple[str, ...]:
        """Return a digest of each image of a doc (``prints``)."""
        facts = self.of(doc_id)
        if facts.prints is None:
            facts.prints = prints(self._show(doc_id))
        return facts.prints

    def _show(self, doc_id: int) -> list[Shown]:
        if hasattr(self.base, "doc_to_messages"):
            return self.shown(doc_id, self.base.doc_to_messages, media.replace_in_messages)[1]
        return self.shown(doc_id, self.base.doc_to_visual, media.replace_in_visuals)[1]


def _sizes_in(row: Any) -> frozenset[Size]:
    """Return the sizes of the images in a row, directly or in lists."""
    values = row.values() if isinstance(row, Mapping) else ()
    media = (medium for value in values for medium in (value if isinstance(value, (list, tuple)) else (value,)))
    return frozenset(medium.size for medium in media if isinstance(medium, Image.Image))


def prints(shown: Iterable[Shown]) -> tuple[str, ...]:
    """Return a digest of the mode, size and pixels of each image; for a clip, of its frames."""
    pixels = (
        f"{one.mode}{one.size}".encode() + one.tobytes()
        if isinstance(one, Image.Image)
        else f"clip{one.size}{len(one)}".encode() + one.frames.tobytes()
        for one in shown
    )
    return tuple(hashlib.blake2b(of_one, digest_size=8).hexdigest() for of_one in pixels)


def sight(shown: Sequence[Shown]) -> str:
    """Return a digest of what a doc shows; "" where the doc shows neither image nor clip.

    It covers the mode and size of each image, and its colours at no more than 64 x 64 points, so it takes the same time
    for any size: every doc of every run gets one, so that two runs can be compared. Of a clip it covers the frames at
    no more than 16 x 16 points each. ``prints`` tells any two images apart.
    """
    seen = hashlib.blake2b(digest_size=8)
    for one in shown:
        if isinstance(one, Image.Image):
            points = one.resize((min(one.width, _POINTS), min(one.height, _POINTS)), Image.Resampling.NEAREST)
            seen.update(f"{one.mode}{one.size}".encode() + points.tobytes())
        else:
            sides = one.frames.shape[1:3]
            rows, columns = (np.linspace(0, side - 1, min(side, _POINTS // 4), dtype=int) for side in sides)
            seen.update(f"clip{one.size}{len(one)}".encode() + one.frames[:, rows][:, :, columns].tobytes())
    return seen.hexdigest() if shown else ""
