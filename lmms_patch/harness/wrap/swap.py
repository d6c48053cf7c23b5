"""The wrong images of one task: whose image takes the place of each doc's own, and which docs are asked so."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from PIL import Image

from lmms_patch.ask.references import Doc, alike, digest, unit_of
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.wrong_images import Look, Ring, choose, sample
from lmms_patch.errors import PatchError
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.scorer import Unanswered
from lmms_patch.text import log
from lmms_patch.tst.keys import keys_of


class WrongImages:
    """The wrong images of one task.

    Args:
        spec: what was asked.
        rows: gives all docs of the split, without media where the base can.
        read: gives all docs of the split as a plan needs them.
        look: gives what is known of a doc's images; None where they cannot be had. It decodes them.
    """

    def __init__(self, spec: WrapSpec, rows: Callable[[], Any], read: Callable[[], Sequence[Doc]], look: Callable[[int], Look | None]) -> None:
        self._spec, self._rows, self._read, self._look = spec, rows, read, look
        self._evaluated: Sequence[int] | None = None
        self._sampled: frozenset[int] | None = None
        self._donors: dict[int, int | None] = {}
        self._lock = threading.RLock()

    def evaluate(self, doc_ids: Sequence[int]) -> None:
        """Say which docs are evaluated, on all ranks together."""
        with self._lock:
            self._evaluated, self._sampled = list(doc_ids), None

    @property
    def sampled(self) -> frozenset[int]:
        """The evaluated docs that are also asked on a wrong image, if one can be found."""
        with self._lock:
            if self._sampled is None:
                known = len(self._docs)
                chosen = [i for i in (range(known) if self._evaluated is None else self._evaluated) if i < known]
                units = {i: self._keys[i] if (cluster := self._docs[i].cluster) is None else repr(cluster) for i in chosen}
                options = self._spec.options
                self._sampled = sample(units, options.null, options.seed) if options.null else frozenset()
            return self._sampled

    def donor(self, doc_id: int) -> int | None:
        """Return the doc whose images are shown in place of a doc's own; None where no doc has images that fit."""
        with self._lock:
            if doc_id not in self._donors and doc_id >= len(self._docs):
                self._donors[doc_id] = None
            if doc_id not in self._donors:
                own = self._look(doc_id)
                usable = own is not None and bool(own.sizes)
                self._donors[doc_id] = choose(doc_id, own, self._ring.candidates(doc_id), self._look) if usable and own is not None else None
            return self._donors[doc_id]

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits of all that decides on wrong images: with other docs in the split, other images are shown under the same name."""
        return digest([*zip(self._keys, self._found.labels, map(unit_of, self._docs), (doc.source for doc in self._docs), strict=True)])

    @cached_property
    def _docs(self) -> Sequence[Doc]:
        try:
            return self._read()
        except Exception as error:
            log().warning(f"{self._spec.name}: no wrong images: its docs cannot be read for them: {one_line(error)}")
            return []

    @cached_property
    def _found(self) -> Any:
        return alike(self._docs, self._spec.options.format)[1]

    @cached_property
    def _keys(self) -> list[str]:
        rows = self._rows()
        try:
            return keys_of(rows, self._spec.options.key)
        except PatchError:  # docs that say nothing beside their images go by their place
            return [str(i) for i in range(len(rows))]

    @cached_property
    def _ring(self) -> Ring:
        docs = self._docs
        return Ring(self._found, self._keys, [unit_of(doc) for doc in docs], [doc.source for doc in docs], self._spec.options.seed)


def prints(images: Iterable[Image.Image]) -> tuple[str, ...]:
    """Return a digest of the mode, size and pixels of each image."""
    return tuple(hashlib.blake2b(f"{image.mode}{image.size}".encode() + image.tobytes(), digest_size=8).hexdigest() for image in images)


def sight(images: Sequence[Image.Image]) -> str:
    """Return a digest of what a doc shows: mode and size of each image, and the colours at no more than 64 x 64 points of it; empty without images.

    Fast whatever the size: two runs are compared by it, and it must not slow them. ``prints`` tells any two images apart.
    """
    found = hashlib.blake2b(digest_size=8)
    for image in images:
        points = image.resize((min(image.width, _POINTS), min(image.height, _POINTS)), Image.Resampling.NEAREST)
        found.update(f"{image.mode}{image.size}".encode() + points.tobytes())
    return found.hexdigest() if images else ""


def said(answers: Sequence[Any]) -> str:
    """Return a short text of what was answered in one view: equal for equal answers; "" where a call failed.

    Args:
        answers: the filtered answer, or one (loss, ...) pair per choice, of which the lowest loss is the answer.
    """
    if any(isinstance(one, Unanswered) for one in answers):
        return ""
    if len(answers) > 1 or (answers and isinstance(answers[0], (tuple, list))):
        losses = [float(one[0]) if isinstance(one, (tuple, list)) else float(one) for one in answers]
        return str(losses.index(min(losses)))
    text = " ".join(str(answers[0] if answers else "").split()).strip(" .").lower()
    return (
        text
        if len(text) <= MOST_SAID
        else f"{text[: MOST_SAID - 9]}#{hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"
    )


_POINTS = 64
MOST_SAID = 32
"""Characters of an answer that are kept; longer ones end in a digest."""
