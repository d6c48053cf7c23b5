"""The wrong images of a task: which docs are asked on one, and whose image it is. A clip counts as an image."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from lmms_patch.ask.references import Doc, alike, digest, unit_of
from lmms_patch.ask.wrong_images import Look, Ring, choose, sample
from lmms_patch.errors import PatchError
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.known import Known
from lmms_patch.text import log
from lmms_patch.tst.keys import keys_of


class WrongImages:
    """The wrong images of a task, computed when first asked for, and the same on every rank.

    Args:
        known: the task.
        read: gives all docs of the split, as ``ask.references.plan`` takes them.
        look: decodes a doc's images and gives what is known of them; None where they cannot be loaded.
    """

    def __init__(self, known: Known, read: Callable[[], Sequence[Doc]], look: Callable[[int], Look | None]) -> None:
        self._known, self._options, self._read, self._look = known, known.spec.options, read, look
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
        return self.some(self._options.null)

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
                self._sampled[least] = sample(units, least, self._options.seed) if least else frozenset()
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
        units, sources = map(unit_of, self._docs), (doc.source for doc in self._docs)
        return digest([*zip(self._keys, self._alike.labels, units, sources, strict=True)])

    @cached_property
    def _docs(self) -> Sequence[Doc]:
        try:
            return self._read()
        except Exception as error:
            name = self._known.spec.name
            log().warning(f"{name}: its docs cannot be read, so none is asked on a wrong image: {one_line(error)}")
            return []

    @cached_property
    def _alike(self) -> Any:
        return alike(self._docs, self._options.format)[1]

    @cached_property
    def _keys(self) -> list[str]:
        return stable_keys(self._known.plain_rows, self._options.key)

    @cached_property
    def _ring(self) -> Ring:
        units, sources = [unit_of(doc) for doc in self._docs], [doc.source for doc in self._docs]
        return Ring(self._alike, self._keys, units, sources, self._options.seed)


def stable_keys(rows: Any, field: str | None) -> list[str]:
    """Return the stable ids of docs; their numbers where docs hold nothing but images."""
    try:
        return keys_of(rows, field)
    except PatchError:
        return [str(i) for i in range(len(rows))]
