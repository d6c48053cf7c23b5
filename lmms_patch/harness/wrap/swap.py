"""The wrong images of a task: which docs are asked on one, and whose image it is. A clip counts as an image."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from PIL import Image

from lmms_patch.ask.references import Doc, alike, digest, unit_of
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.wrong_images import Look, Ring, choose, sample
from lmms_patch.errors import PatchError
from lmms_patch.harness.video.clip import Clip
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.scorer import Unanswered
from lmms_patch.text import log
from lmms_patch.tst.keys import keys_of


class WrongImages:
    """The wrong images of a task, computed when first asked for, and the same on every rank.

    Args:
        spec: what was asked.
        rows: gives all docs of the split, without media where the base can.
        read: gives all docs of the split, as ``ask.references.plan`` takes them.
        look: decodes a doc's images and gives what is known of them; None where they cannot be loaded.
    """

    def __init__(
        self,
        spec: WrapSpec,
        rows: Callable[[], Any],
        read: Callable[[], Sequence[Doc]],
        look: Callable[[int], Look | None],
    ) -> None:
        self._spec, self._rows, self._read, self._look = spec, rows, read, look
        self._evaluated: Sequence[int] | None = None
        self._sampled: dict[int, frozenset[int]] = {}
        self._donors: dict[tuple[int, int], tuple[int, ...]] = {}
        self._lock = threading.RLock()

    def evaluate(self, doc_ids: Sequence[int]) -> None:
        """Set which docs are evaluated, on all ranks together."""
        with self._lock:
            self._evaluated, self._sampled = list(doc_ids), {}

    @property
    def docs(self) -> int:
        """How many docs are evaluated."""
        with self._lock:
            return len(self._docs if self._evaluated is None else self._evaluated)

    @property
    def sampled(self) -> frozenset[int]:
        """The evaluated docs that are also asked on a wrong image, where a fitting image is found."""
        return self.some(self._spec.options.null)

    def some(self, least: int) -> frozenset[int]:
        """Return the evaluated docs of a sample of so many: a smaller sample is part of a larger one."""
        with self._lock:
            if least not in self._sampled:
                known = len(self._docs)
                # where the docs cannot be read, none is known
                chosen = [i for i in (range(known) if self._evaluated is None else self._evaluated) if i < known]
                # docs of a cluster are sampled together
                units = {
                    i: self._keys[i] if (cluster := self._docs[i].cluster) is None else repr(cluster) for i in chosen
                }
                self._sampled[least] = sample(units, least, self._spec.options.seed) if least else frozenset()
            return self._sampled[least]

    def donor(self, doc_id: int) -> int | None:
        """Return the doc whose images replace a doc's images; None where no doc's images fit."""
        return next(iter(self.donors(doc_id, 1)), None)

    def donors(self, doc_id: int, most: int) -> tuple[int, ...]:
        """Return the docs whose images replace a doc's images, each another image, the best first; fewer where fewer fit."""
        with self._lock:
            if (doc_id, most) not in self._donors:
                # where the docs cannot be read, no doc has a donor
                own = self._look(doc_id) if doc_id < len(self._docs) else None
                candidates = () if own is None or not own.sizes else self._ring.candidates(doc_id)
                self._donors[doc_id, most] = choose(own, iter(candidates), self._look, most) if own is not None else ()
            return self._donors[doc_id, most]

    @cached_property
    def digest(self) -> str:
        """A digest (16 hex digits) of everything that decides which images are wrong images.

        The digest goes into the task's config: with other docs in the split, the same doc id gets another wrong image.
        """
        return digest(
            [
                *zip(
                    self._keys,
                    self._alike.labels,
                    map(unit_of, self._docs),
                    (doc.source for doc in self._docs),
                    strict=True,
                )
            ]
        )

    @cached_property
    def _docs(self) -> Sequence[Doc]:
        try:
            return self._read()
        except Exception as error:
            log().warning(
                f"{self._spec.name}: its docs cannot be read, so none is asked on a wrong image: {one_line(error)}"
            )
            return []

    @cached_property
    def _alike(self) -> Any:
        return alike(self._docs, self._spec.options.format)[1]

    @cached_property
    def _keys(self) -> list[str]:
        return stable_keys(self._rows(), self._spec.options.key)

    @cached_property
    def _ring(self) -> Ring:
        docs = self._docs
        return Ring(
            self._alike,
            self._keys,
            [unit_of(doc) for doc in docs],
            [doc.source for doc in docs],
            self._spec.options.seed,
        )


def stable_keys(rows: Any, field: str | None) -> list[str]:
    """Return the stable ids of docs; their numbers where docs hold nothing but images."""
    try:
        return keys_of(rows, field)
    except PatchError:
        return [str(i) for i in range(len(rows))]


def prints(shown: Iterable[Image.Image | Clip]) -> tuple[str, ...]:
    """Return a digest of the mode, size and pixels of each image; for a clip, of its frames."""
    out = []
    for one in shown:
        told, pixels = (
            (f"{one.mode}{one.size}", one.tobytes())
            if isinstance(one, Image.Image)
            else (f"clip{one.size}{len(one)}", one.frames.tobytes())
        )
        out.append(hashlib.blake2b(told.encode() + pixels, digest_size=8).hexdigest())
    return tuple(out)


def sight(shown: Sequence[Image.Image | Clip]) -> str:
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
            rows, columns = (
                np.linspace(0, side - 1, min(side, _POINTS // 4), dtype=int) for side in one.frames.shape[1:3]
            )
            seen.update(f"clip{one.size}{len(one)}".encode() + one.frames[:, rows][:, :, columns].tobytes())
    return seen.hexdigest() if shown else ""


def said(answers: Sequence[Any], *, whole: bool = False) -> str:
    """Return a short text of the answer in a view, equal for equal answers; "" for a failed call.

    Args:
        answers: the filtered answer; or one (loss, ...) pair per choice, where the lowest loss marks the answer.
        whole: return the answer as it is, however long.
    """
    if any(isinstance(one, Unanswered) for one in answers):
        return ""
    # log-likelihoods: the answer is the option with the lowest loss
    if len(answers) > 1 or (answers and isinstance(answers[0], (tuple, list))):
        losses = [float(one[0]) if isinstance(one, (tuple, list)) else float(one) for one in answers]
        return str(losses.index(min(losses)))
    if whole:
        return str(answers[0] if answers else "")
    # case, spaces and a final stop make no other answer
    text = " ".join(str(answers[0] if answers else "").split()).strip(" .").lower()
    if len(text) <= MOST_SAID:
        return text
    return (
        f"{text[: MOST_SAID - 9]}#{hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"
    )


_POINTS = 64
MOST_SAID = 32
"""Characters of an answer that are kept; a longer answer ends in a digest."""
