"""The written clips of this process: one folder for all tasks, which never takes more of the disk than allowed."""

from __future__ import annotations

import functools
import math
import os
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lmms_patch import files
from lmms_patch.ask.views import View
from lmms_patch.errors import OptionError
from lmms_patch.harness.video.clip import Clip, encode, shown
from lmms_patch.text import size

LIMIT, DEFAULT = "LMMS_PATCH_VIDEO_CACHE", "5"
"""The environment variable with the gigabytes of disk that the clips of a run may take, and what counts where it is not set."""
_MORE = (
    f"set the environment variable {LIMIT} to more gigabytes ({DEFAULT} by default, shared by the processes of a run)"
)
LEAST_HELD = 8
"""How many clips stay at least: adapters with threads give batch size 1, but hold a clip in each thread."""
_NEVER = 0
"""The time of the last access (ns) of a file that nobody has read. File systems set it anew at the first reading, also those that save such writes
(``relatime``). Where it is never set (``noatime``), no clip goes before its portion of requests is answered."""
_RANKS = ("LOCAL_WORLD_SIZE", "WORLD_SIZE")
"""How many processes of a run share this machine, as torchrun and accelerate say it; the first that is set counts."""


def limit() -> int:
    """Return how many bytes of clips this process may hold: its equal share of ``LMMS_PATCH_VIDEO_CACHE``.

    Each of the run's processes on this machine has its own folder and its own share, so that none waits for another.

    Raises:
        OptionError: the variable is no number above 0.
    """
    text = os.environ.get(LIMIT, "").strip() or DEFAULT
    ranks = next((int(count) for name in _RANKS if (count := os.environ.get(name, "")).isdecimal()), 1)
    try:
        share = float(text) * 1e9 / max(ranks, 1)
    except ValueError:
        share = math.nan
    if not 0 < share < math.inf:
        raise OptionError(
            f"environment variable {LIMIT} must be a number of gigabytes above 0, not {text[:40]!r}; type, for example, {LIMIT}=5"
        )
    return int(share)


class Cache:
    """The written clips of a process, in a temporary folder removed when the process ends.

    Folders of processes that were killed are removed by the next one. Threads may share a cache. A clip stays until
    room is needed, and the one that was asked for least recently goes first. A clip that nobody has read yet never
    goes, nor do the last ones that were asked for: an adapter may open a file twice.

    Args:
        most: bytes; by default the share of this process (``limit``).
        folder: where to make the folder; by default where the system keeps temporary files.
        held: how many of the last clips never go; the batch size of the adapter, or more.
    """

    def __init__(self, most: int | None = None, folder: Path | None = None, held: int = LEAST_HELD) -> None:
        self._most, self.held = limit() if most is None else most, held
        parent = folder or Path(tempfile.gettempdir())
        files.sweep(parent)
        self.folder = files.temporary(parent)
        # the parent is shared by all users of the machine: nobody else may read or replace the clips
        self.folder.mkdir(mode=0o700)
        self._lock = threading.Lock()
        # by doc and view, the least recently asked for first: the file, and its bytes
        self._clips: dict[tuple[Hashable, Hashable], tuple[Path, int]] = {}
        self._written = 0
        # not ``__del__``: this is run at the end of the process too
        weakref.finalize(self, _remove, self.folder, os.getpid())

    @property
    def used(self) -> int:
        """Bytes of all held clips."""
        return sum(length for _, length in self._clips.values())

    def path_of(self, doc: Hashable, view: Hashable, make: Callable[[], bytes]) -> Path:
        """Return the file of a clip; ``make`` is called where there is none yet.

        Paths are never used a second time for other bytes.

        Raises:
            OptionError: the clip has no room: it alone is larger than the limit, or the clips that must stay are.
            RecordError: the file cannot be written.
        """
        # held while the clip is made, so that each is made once
        with self._lock:
            clip = self._clips.pop((doc, view), None) or self._write(make())
            # last again: the one that was asked for most recently
            self._clips[doc, view] = clip
            return clip[0]

    def _write(self, data: bytes) -> tuple[Path, int]:
        if len(data) > self._most:
            raise OptionError(
                f"one clip takes {size(len(data))}, and all clips of this process may take {size(self._most)}: {_MORE}"
            )
        while self.used + len(data) > self._most:
            self._forget(self._spare())
        # a new number for each file, since an adapter may still hold an old path
        self._written += 1
        path = self.folder / f"{self._written}.mp4"
        files.write(path, data)
        os.utime(path, ns=(_NEVER, path.stat().st_mtime_ns))
        return path, len(data)

    def drop(self, doc: Hashable) -> None:
        """Remove the clips of a doc."""
        with self._lock:
            for key in [key for key in self._clips if key[0] == doc]:
                self._forget(key)

    def _spare(self) -> tuple[Hashable, Hashable]:
        """Return the clip to remove first where room is needed."""
        for key, (path, _) in list(self._clips.items())[: max(0, len(self._clips) - self.held)]:
            if not path.exists() or path.stat().st_atime_ns != _NEVER:
                return key
        raise OptionError(
            f"the clips that the model still has to read take more than {size(self._most)}, which all clips of this process may take: {_MORE}, "
            "or lower --batch_size"
        )

    def _forget(self, key: tuple[Hashable, Hashable]) -> None:
        self._clips.pop(key)[0].unlink(missing_ok=True)


def _remove(folder: Path, process: int) -> None:
    """Remove a folder, but not in a forked child: the folder is its parent's."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


# --- the cache of this process ---------------------------------------------------------------------

# made for the first clip and not at import, since it makes a folder and most runs show no video
_cache = functools.cache(Cache)
_first = threading.Lock()
"""Held while the cache is asked for: of two that threads made at once, one would be thrown away with its files."""


def written(owner: object, key: Hashable, clip: Clip, view: View, *, min_cell: int, seed: str, batch: int = 1) -> str:
    """Return the path of a file with a view of a clip.

    It is written where it is not there.

    Args:
        owner: what the file is written for; ``forget`` removes all files of an owner.
        key: names the doc and the view.
        clip: the full clip.
        view: the view.
        min_cell: as for ``ask.views.cut``.
        seed: decides permutations.
        batch: how many clips the adapter asks for before it opens them.

    Raises:
        OptionError: the clip has no room.
        RecordError: the file cannot be written.
    """

    def make() -> bytes:
        cut = shown(clip, view, min_cell=min_cell, seed=seed)
        # the readers of Qwen models refuse a video of one frame
        return encode(cut if len(cut) > 1 else cut.take(np.array([0, 0])))

    with _first:
        cache = _cache()
        cache.held = max(cache.held, batch)
    return str(cache.path_of(id(owner), key, make))


def holds(path: object) -> bool:
    """Return whether a path, or a ``file://`` address, names a file that ``written`` wrote."""
    made = _cache.cache_info().currsize and isinstance(path, (str, os.PathLike))
    return bool(made) and Path(str(path).removeprefix("file://")).parent == _cache().folder


def forget(owner: object) -> None:
    """Remove the files of an owner, once nobody reads them any more."""
    if _cache.cache_info().currsize:
        _cache().drop(id(owner))


# --- readers that want more frames than a view has ------------------------------------------------
# An adapter asks for as many frames of a segment as of the full clip, and the readers of ``qwen_vl_utils`` and transformers refuse a
# video with fewer. Of a written view they take all frames; of all other videos they go on to refuse, as in the base task.


def read_whole() -> None:
    """Replace the refusing functions of the readers that are imported by now; those replaced before stay."""
    qwen: Any = sys.modules.get("qwen_vl_utils.vision_process")
    if qwen is not None and qwen.smart_nframes.__module__ != __name__:
        qwen.smart_nframes = _at_most(qwen.smart_nframes)
    decoders = getattr(sys.modules.get("transformers.video_utils"), "VIDEO_DECODERS", {})
    decoders |= {name: _all(decode) for name, decode in decoders.items() if decode.__module__ != __name__}


def _at_most(count: Callable[..., int]) -> Callable[..., int]:
    """Return a counter of frames like ``count``, which is handed the request and how many frames the video has."""

    def smart_nframes(ele: Mapping[str, Any], total_frames: int, *args: Any, **kwargs: Any) -> int:
        if "nframes" in ele and holds(ele.get("video")):
            # Qwen's reader takes even numbers
            ele = {**ele, "nframes": min(int(ele["nframes"]), total_frames // 2 * 2)}
        return count(ele, total_frames, *args, **kwargs)

    return smart_nframes


def _all(decode: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decoder like ``decode``, which is handed the file and a function that chooses frames by the video's metadata."""

    def whole(path: Any, choose: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        def chosen(metadata: Any, **more: Any) -> Any:
            try:
                return choose(metadata=metadata, **more)
            except ValueError:
                return np.arange(metadata.total_num_frames)

        return decode(path, chosen if holds(path) else choose, *args, **kwargs)

    return whole
