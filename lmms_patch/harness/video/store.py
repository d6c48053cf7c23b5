"""The written clips of this process: one bounded folder for all tasks."""

from __future__ import annotations

import functools
import threading
from collections.abc import Hashable

import numpy as np

from lmms_patch.ask.views import View
from lmms_patch.harness.video.cache import Cache
from lmms_patch.harness.video.clip import Clip, shown
from lmms_patch.text import log

_cache = functools.cache(Cache)
_first = threading.Lock()
"""Held while the cache is asked for: of two that threads made at once, one would be thrown away with its files."""
_told: set[str] = set()


def written(owner: object, key: Hashable, clip: Clip, view: View, *, min_cell: int, seed: str) -> str:
    """Return the path of a file that holds a view of a clip; it is written where it is not there.

    Args:
        owner: what the file is written for; ``forget`` removes all files of an owner.
        key: names the doc and the view.
        clip: the full clip.
        view: the view.
        min_cell: as for ``ask.views.cut``.
        seed: decides permutations.
    """
    from lmms_patch.harness.video.writing import encode  # takes PyAV to import

    def make() -> bytes:
        cut = shown(clip, view, min_cell=min_cell, seed=seed)
        # the readers of Qwen models refuse a video of one frame
        encoded = encode(cut if len(cut) > 1 else cut.take(np.array([0, 0])))
        if encoded.lost and encoded.lost not in _told:
            _told.add(encoded.lost)
            log().warning(f"clips are shown without their sound: {encoded.lost}")
        return encoded.data

    with _first:
        cache = _cache()
    return str(cache.path_of(id(owner), key, make))


def forget(owner: object) -> None:
    """Remove the files of an owner, once nobody reads them any more."""
    if _cache.cache_info().currsize:
        _cache().drop(id(owner))
