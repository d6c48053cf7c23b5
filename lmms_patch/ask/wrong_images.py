"""The choice of docs that are asked on another doc's image, and of that image. Pure.

A model's answers on a wrong picture of the right kind show what its answers are worth without the right one: guessing,
text priors and habits. Both choices come from seeded hashes of docs, so neither the order of docs, nor ``--limit``, nor
the number of ranks changes what a doc is asked. A doc's wrong image depends on all docs of the split. Whether a doc is
asked on it depends on the evaluated docs, too.
"""

from __future__ import annotations

import bisect
import hashlib
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lmms_patch.ask.views import Size
from lmms_patch.stats.donors import Strata

LOOKED_AT, ACCEPTED = 40, 5
"""How many docs are considered as lender of a wrong image, and after how many that fit the search ends."""


def hashed(*parts: object) -> int:
    """Return a 64-bit hash of some values, by their texts.

    >>> hashed(0, "a") == hashed(0, "a") != hashed(1, "a")
    True
    """
    return int.from_bytes(
        # parted by a mark, since 1 and 23 would hash like 12 and 3 otherwise
        hashlib.blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=8).digest(),
        "big",
    )


def sample(units: Mapping[int, str], least: int, seed: int) -> frozenset[int]:
    """Choose whole clusters of docs by the hashes of their names, until at least ``least`` docs are chosen.

    Every cluster is as likely to be chosen as any other, whatever its size; so is every doc.

    Args:
        units: by doc id, the name of each evaluated doc's cluster; for a doc without one, an id that does not depend on
        its place.
        least: how many docs are wanted; all are chosen where there are no more.
        seed: of the hashes.
    """
    if len(units) <= least:
        return frozenset(units)
    members: dict[str, list[int]] = {}
    for doc_id, unit in units.items():
        members.setdefault(unit, []).append(doc_id)
    chosen: list[int] = []
    for unit in sorted(members, key=lambda name: hashed(seed, "null", name)):
        if len(chosen) >= least:
            break
        chosen += members[unit]
    return frozenset(chosen)


@dataclass(frozen=True)
class Look:
    """What is known of a doc's images.

    Attributes:
        sizes: width and height of each image (pixels).
        prints: a digest of the pixels of each image.
        usable: whether every view can be cut from them.
        clips: how many of them are clips.
    """

    sizes: tuple[Size, ...]
    prints: tuple[str, ...]
    usable: bool
    clips: int = 0


class Ring:
    """The docs of a split on a ring, at the places of their hashes. Each doc starts its search at a place of its own.

    Args:
        found: the strata of all docs, by place.
        keys: for each doc an id that does not depend on its place.
        units: the cluster of each doc.
        sources: the image of each doc, as far as its fields name it; None: unknown.
        seed: of the hashes.
    """

    def __init__(
        self, found: Strata, keys: Sequence[str], units: Sequence[Hashable], sources: Sequence[Hashable], seed: int
    ) -> None:
        self._found, self._keys, self._units, self._sources, self._seed = found, keys, units, sources, seed
        self._places = [hashed(seed, "ring", key) for key in keys]
        self._rings: dict[tuple[Hashable, ...], list[tuple[int, int]]] = {}

    def candidates(self, doc: int) -> Iterator[int]:
        """Yield the docs that may lend their image, each once: docs of the same stratum first, then of ever coarser ones."""
        start, seen = hashed(self._seed, "start", self._keys[doc]), {doc}
        label = self._found.labels[doc]
        for depth in range(len(label), -1, -1):
            ring = self._ring(label[:depth])
            # -1, so that a doc at this very place is not passed over
            at = bisect.bisect_left(ring, (start, -1))
            for _, other in (*ring[at:], *ring[:at]):
                if other not in seen and self._allowed(doc, other):
                    yield other
                seen.add(other)

    def _allowed(self, doc: int, other: int) -> bool:
        same_source = self._sources[doc] is not None and self._sources[doc] == self._sources[other]
        return self._units[doc] != self._units[other] and not same_source

    def _ring(self, label: tuple[Hashable, ...]) -> list[tuple[int, int]]:
        if label not in self._rings:
            docs = (i for i, one in enumerate(self._found.labels) if one[: len(label)] == label)
            self._rings[label] = sorted((self._places[i], i) for i in docs)
        return self._rings[label]


def choose(own: Look, candidates: Iterator[int], look: Callable[[int], Look | None], most: int = 1) -> tuple[int, ...]:
    """Return the docs whose images replace those of a doc, the best first.

    Candidates must show as many images as the doc, and as many clips, none of them the doc's own. Of the first
    ``ACCEPTED`` candidates that fit, the doc with the most similar image shapes is returned. At most ``LOOKED_AT`` docs
    are considered, since each look decodes an image. Further docs are those that fit, each with images that
    no other shows, in the order of the candidates.

    Args:
        own: the doc's own images.
        candidates: docs in the order in which they are considered (``Ring.candidates``).
        look: returns what is known of a doc's images; None where they cannot be read.
        most: how many docs are wanted; fewer where fewer fit.
    """
    fits: list[tuple[float, int, int, tuple[str, ...]]] = []
    for rank, other in enumerate(candidates):
        if rank >= LOOKED_AT or (len(fits) >= ACCEPTED and len({one[3] for one in fits}) >= most):
            break
        seen = look(other)
        if seen is None or not seen.usable or set(seen.prints) & set(own.prints):
            continue
        if (len(seen.sizes), seen.clips) != (len(own.sizes), own.clips):
            continue
        # logarithms of aspect ratios: twice as wide and half as wide are equally far
        shapes = (abs(math.log(a * d / (b * c))) for (a, b), (c, d) in zip(own.sizes, seen.sizes, strict=True))
        fits.append((sum(shapes), rank, other, seen.prints))
    if not fits:
        return ()
    # among equal shapes the candidate that came first, so that the choice does not depend on doc ids
    _, _, best, shown = min(fits[:ACCEPTED])
    first_with = {one[3]: one[2] for one in reversed(fits) if one[3] != shown}
    return (best, *reversed(first_with.values()))[:most]
