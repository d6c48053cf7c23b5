"""The docs of a task as its base shows them: rows, decoded images and clips, and what is known of each doc's media."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from PIL import Image

from lmms_patch.ask.views import Size
from lmms_patch.errors import CannotWrapError, PatchError
from lmms_patch.harness.compat import LONGEST_FAILURE
from lmms_patch.harness.video.clip import Clip, Sampling
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.swap import prints, sight

CACHED_DOCS = 8
"""How many docs are kept decoded. The views of a doc arrive together, so a batch touches few docs."""
CACHED_CLIPS = 2
"""How many docs are kept decoded where docs show clips, whose frames can take 200 MB each."""
Shown = Image.Image | Clip
"""A decoded medium."""


class Base(Protocol):
    """What the table needs of a base task: how the base shows a doc to a model."""

    def doc_to_visual(self, doc: Any) -> Any: ...

    def doc_to_messages(self, doc: Any) -> Any: ...

    def doc_to_text(self, doc: Any) -> Any: ...


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


@dataclass(frozen=True)
class Cutting:
    """How views are cut: all options with an effect on pixels.

    Attributes:
        first_only: whether only a doc's first image is cut, and the others stay whole.
        min_side: see ``Options.min_side`` (pixels per cell).
        min_cell: see ``Options.min_cell`` (pixels).
        seed: the seed of the permutations of ``shuffle``.
        boxes_on_last: whether a doc's boxes belong to the last image that it shows, instead of the first.
    """

    first_only: bool = False
    min_side: int = 1
    min_cell: int = 0
    seed: int = 0
    boxes_on_last: bool = False


@dataclass
class Facts:
    """What is known of a doc's media; kept when they are no longer decoded.

    Attributes:
        sizes: width and height in pixels of each image shown; () where none can be cut; None before the first look.
        sight: a digest of the images (``swap.sight``).
        clips: how many frames each clip has, and how many seconds it takes.
        prints: a digest of each image (``swap.prints``); None where nobody asked.
        stored: the sizes of the images that the row itself holds; None where nobody asked.
        problem: why the media cannot be cut; empty where no reason is known.
        unreadable: whether an image cannot be loaded.
    """

    sizes: tuple[Size, ...] | None = None
    sight: str = ""
    clips: tuple[tuple[int, float], ...] = ()
    prints: tuple[str, ...] | None = None
    stored: frozenset[Size] | None = None
    problem: str = ""
    unreadable: bool = False


class _Entry:
    """A doc while its views are asked: its row, what the base shows of the doc, and its decoded images."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.row: Any = None
        self.shown: dict[Callable[..., Any], tuple[Any, list[Shown]]] = {}


class Shelf:
    """The docs of a task. A row is fetched, and its images decoded, once for all views; the last docs are kept.

    Safe for threads.
    """

    def __init__(
        self,
        rows: Any,
        base: Base,
        prompt: Callable[[Any], str] | None,
        plain: Callable[[], Any] | None,
        *,
        in_time: bool,
        boxed: bool,
    ) -> None:
        """Make the shelf; nothing is read yet.

        Args:
            rows: the base task's eval split, media included; indexed by doc id.
            base: the base task.
            prompt: gives the text that the base puts after its visuals; None where its messages may hold more than
                that.
            plain: gives the docs without media.
            in_time: whether clips are cut in time, so that still images are refused.
            boxed: whether docs have boxes of their own, which lie on still images.
        """
        self.rows, self.base, self._prompt, self._plain = rows, base, prompt, plain
        self.in_time, self._boxed = in_time, boxed
        self.sampling = Sampling()
        """Which frames of a video the model takes."""
        self.shows_clips = False
        """Whether a doc shows a video, as far as docs were decoded."""
        self._facts: dict[int, Facts] = {}
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, sampling: Sampling) -> None:
        """Set which frames of a video the model takes."""
        self.sampling = sampling

    def of(self, doc_id: int) -> Facts:
        """Return what is known of a doc's media."""
        return self._facts.setdefault(doc_id, Facts())

    def row(self, doc_id: int) -> Any:
        """Return the base task's row, media included."""
        entry = self._entry(doc_id)
        with entry.lock:
            return self._row(entry, doc_id)

    def _row(self, entry: _Entry, doc_id: int) -> Any:
        if entry.row is None:
            entry.row, why = fetched(self.rows, doc_id, self._plain)
            if why:
                self._note_unreadable(doc_id, why)
        return entry.row

    def _note_unreadable(self, doc_id: int, why: str) -> None:
        facts = self.of(doc_id)
        facts.problem, facts.unreadable = why, True

    def _entry(self, doc_id: int) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(doc_id, _Entry())
            self._entries.move_to_end(doc_id)
            while len(self._entries) > (CACHED_CLIPS if self.shows_clips else CACHED_DOCS):
                self._entries.popitem(last=False)
            return entry

    def blind(self, doc_id: int, show: Callable[[Any], Any]) -> tuple[Any, str]:
        """Return what the base shows of a doc without its media, and why showing failed; "" where nothing failed.

        Where the base fails without an image, the prompt stands alone.
        """
        row = self.row(doc_id)
        try:
            return media.without_media(show(dict(row))), ""
        except (Exception, SystemExit) as error:
            return media.without_media(self.in_its_place(row, show)), not_loaded(error)

    def in_its_place(self, row: Any, show: Callable[[Any], Any]) -> list[Any]:
        """Return a substitute for a row the base cannot show: a grey image, and in messages the prompt after the image."""
        if show != getattr(self.base, "doc_to_messages", None):
            return [media.stand_in()]
        try:
            ask = self._prompt or self.base.doc_to_text
            text = media.without_placeholders(str(ask(dict(row))))
        except Exception:
            # the text does not matter: the doc is left out
            text = ""
        return [
            {"role": "user", "content": [{"type": "image", "url": media.stand_in()}, {"type": "text", "text": text}]}
        ]

    def shown(self, doc_id: int, show: Callable[[Any], Any], walk: Callable[..., Any]) -> tuple[Any, list[Shown]]:
        """Return what the base shows of a doc, and the decoded images.

        Both are kept while the doc is among the last ones used.
        """
        entry = self._entry(doc_id)
        # a lock for each doc, so that threads may decode different docs at once
        with entry.lock:
            if show not in entry.shown:
                row = self._row(entry, doc_id)
                if self._boxed and self.of(doc_id).stored is None:
                    self.of(doc_id).stored = _sizes_in(row)
                entry.shown[show] = self._read(doc_id, row, show, walk)
            return entry.shown[show]

    def _read(
        self, doc_id: int, row: Any, show: Callable[[Any], Any], walk: Callable[..., Any]
    ) -> tuple[Any, list[Shown]]:
        """Return what the base shows of a row, and its decoded images.

        Where an image cannot be loaded, that is noted, and what is shown has grey images.
        """
        # a doc that could not be shown once is not tried again
        payload, facts = None, self.of(doc_id)
        if not facts.unreadable:
            try:
                payload = show(dict(row))
            except (Exception, SystemExit) as error:
                # many benchmarks end the process where a video is missing
                self._note_unreadable(doc_id, not_loaded(error))
        images = [] if facts.unreadable else self._decode(doc_id, payload, walk)
        if not facts.unreadable:
            return payload, images
        facts.sizes = facts.sizes or ()
        stands_in = self.in_its_place(row, show) if payload is None else walk(payload, lambda *_: media.stand_in())
        return stands_in, []

    def _decode(self, doc_id: int, payload: Any, walk: Callable[..., Any]) -> list[Shown]:
        """Decode the images and videos of a doc and note their sizes.

        Where one cannot be cut, note the problem and return none.
        """
        shown, facts = list[Shown](), self.of(doc_id)
        try:
            shown = [self._decoded(medium) for medium in media.images_in(payload, walk)]
            self._check_kind(shown)
        except media.UnreadableError as error:
            self._note_unreadable(doc_id, str(error))
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

    def _check_kind(self, shown: Sequence[Shown]) -> None:
        """Refuse media of the wrong kind for the views.

        Raises:
            CannotWrapError: still images that are to be cut in time, or clips with boxes.
        """
        clips = any(isinstance(one, Clip) for one in shown)
        if shown and not clips and self.in_time:
            raise CannotWrapError(
                "it shows still images, which have no moments; its cells are asked with the suffix _rci3"
            )
        if clips and self._boxed:
            raise CannotWrapError("it shows a video; boxes lie on still images")

    def sight(self, doc_id: int) -> str:
        """Return a digest of a doc's images (``swap.sight``); "" where the doc shows nothing to cut."""
        return self.of(doc_id).sight if self.sizes(doc_id) else ""

    def sizes(self, doc_id: int) -> tuple[Size, ...]:
        """Return width and height in pixels of each image of a doc; () where the doc shows nothing to cut.

        Sizes are usually known from the requests. A doc whose answers all came from a response cache is decoded here. A doc
        that cannot be fetched any more is noted as a problem, so that its scores are not lost.
        """
        facts = self.of(doc_id)
        if facts.sizes is None:
            try:
                self.shown(doc_id, *self.way_to_show())
            except Exception as error:
                facts.sizes, facts.problem = (), not_loaded(error)
        return facts.sizes or ()

    def clips(self, doc_id: int) -> tuple[tuple[int, float], ...]:
        """Return how many frames each clip of a doc has, and its length in seconds.

        () for a doc with still images.
        """
        return self.of(doc_id).clips if self.sizes(doc_id) else ()

    def prints(self, doc_id: int) -> tuple[str, ...]:
        """Return a digest of each image of a doc (``swap.prints``)."""
        facts = self.of(doc_id)
        if facts.prints is None:
            facts.prints = prints(self.shown(doc_id, *self.way_to_show())[1])
        return facts.prints

    def way_to_show(self) -> tuple[Callable[[Any], Any], Callable[..., Any]]:
        """Return how the base shows a doc, and the function of ``media`` to walk through the result."""
        if hasattr(self.base, "doc_to_messages"):
            return self.base.doc_to_messages, media.replace_in_messages
        return self.base.doc_to_visual, media.replace_in_visuals


def _sizes_in(row: Any) -> frozenset[Size]:
    """Return the sizes of the images in a row, directly or in lists."""
    values = row.values() if isinstance(row, Mapping) else ()
    media = (medium for value in values for medium in (value if isinstance(value, (list, tuple)) else (value,)))
    return frozenset(medium.size for medium in media if isinstance(medium, Image.Image))
