"""Notes which frames an adapter reads from the videos that it is handed, and compares them with what the views hold.

Why: the full view hands over the video's own file, and the other views are made of the frames that the adapter's
attributes promise (``adapter.sampling_of``). An adapter that reads others from the file would see other frames in the
full clip than in its segments, unnoticed.

The functions that adapters read videos with are replaced while a run asks (``compat.VIDEO_READERS``), also where other
modules imported them. What an adapter reads by other means, or in another process, is not seen; it then counts as
unchecked.

One thing is changed and not only noted: a reader that is asked for more frames than a written view has gives all that
there are, where it would refuse (``compat.FRAME_COUNTERS``, ``compat.FRAME_CHOOSER``).
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lmms_patch.harness import compat
from lmms_patch.harness.names.adapters import decodes_sound
from lmms_patch.harness.video import cache

_CLOSE = 1e-3
"""Seconds by which the times of two frames may differ and still be those of one frame."""


@dataclass(frozen=True)
class Reading:
    """Frames read from a file in a single go.

    Attributes:
        count: how many frames.
        indices: their numbers in the file, from 0, without repetition; None where the reader does not say.
        times: seconds from the first of them to each; None where the reader does not say.
    """

    count: int
    indices: tuple[int, ...] | None = None
    times: tuple[float, ...] | None = None

    @property
    def exact(self) -> bool:
        """Whether the very frames are known, and not only their count."""
        return self.indices is not None or self.times is not None


@dataclass(frozen=True)
class Expected:
    """What an adapter should read from a file.

    Attributes:
        indices: the numbers of the frames that the views of the clip hold; of a written view, all frames of its file.
        times: seconds from the first of them to each; () where frames are known by their numbers alone.
        full: whether the file is the video's own, of which more could be read. A written view should be read whole, and
            repetitions do no harm.
    """

    indices: tuple[int, ...]
    times: tuple[float, ...] = ()
    full: bool = True

    def agrees(self, reading: Reading) -> bool:
        """Return whether a reading agrees with the expectation, as far as the reader tells."""
        if reading.indices is not None:
            return set(reading.indices) == set(self.indices) if self.full else set(reading.indices) >= set(self.indices)
        if not self.full:
            return reading.count >= len(self.indices)
        if reading.times is not None and self.times and reading.count == len(self.times):
            return bool(np.allclose(reading.times, self.times, rtol=0, atol=_CLOSE))
        return reading.count == len(self.indices)


@dataclass
class Watch:
    """What the files of a task should give, and what was read from them.

    Attributes:
        handed: whether a full clip was handed over as its own file.
        checked: whether it was noticed of any of them what was read.
        full: how many frames the views of a full clip hold, and how many other or more frames were read from it, where
        these differ most.
        part: the same of a written view that was not read whole.
        lost: why written views have no sound although their video has; "" where none lost its sound.
        heard: whether a written view has a sound.
        adapter: the class of the model; its code tells whether it decodes sound by itself
            (``names.adapters.decodes_sound``).
    """

    handed: bool = False
    checked: bool = False
    full: tuple[int, int] | None = None
    part: tuple[int, int] | None = None
    lost: str = ""
    heard: bool = False
    adapter: type = object
    _expected: dict[str, Expected] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)

    def hear(self) -> None:
        """Note that a written view has a sound."""
        self.heard = True

    def expect(self, path: str, expected: Expected) -> None:
        """Note that a file is handed to the adapter, and which frames to expect."""
        with self._lock:
            self._expected[path] = expected

    def lose(self, why: str) -> None:
        """Note why a written view has no sound although its video has.

        Of several reasons the same one stays, whichever thread comes first.
        """
        with self._lock:
            self.lost = min(self.lost or why, why)

    def settle(self) -> None:
        """Compare what was read with what was expected, of all files handed over since the last time."""
        with self._lock:
            # taken at once, since threads of the adapter may hand over files meanwhile
            expected, self._expected = self._expected, {}
        for path, one in expected.items():
            reading = _readings.get(path)
            self.handed |= one.full
            if reading is None:
                continue
            self.checked |= one.full
            if one.agrees(reading):
                continue
            found = (len(one.indices), reading.count)
            if one.full:
                self.full = max(self.full or found, found, key=_gap)
            else:
                self.part = max(self.part or found, found, key=_gap)

    def record(self) -> dict[str, Any] | None:
        """Return the frames read, for the results file (``runs.details.FramesRead``).

        None where no clip was handed over.

        The number of clips is left out, so that a run resumed after a kill says the same.
        """
        out: dict[str, Any] = {"checked": self.checked}
        if self.full is not None:
            out |= {"held": self.full[0], "read": self.full[1]}
        if self.part is not None:
            out |= {"part_held": self.part[0], "part_read": self.part[1]}
        if self.lost:
            out["sound_lost"] = self.lost
        # reads its whole source, so only where there was a sound
        if self.heard and (at := decodes_sound(self.adapter)):
            out["sound_decoder"] = at
        return out if self.handed or len(out) > 1 else None


def _gap(found: tuple[int, int]) -> int:
    return abs(found[0] - found[1])


_readings: dict[str, Reading] = {}
"""What was read since the last portion, by the absolute path of the file: of several readings, the one with most frames."""
_lock = threading.Lock()


def forget() -> None:
    """Forget what was read, once all tasks have settled."""
    with _lock:
        _readings.clear()


def _note(path: Any, reading: Reading | None) -> None:
    """Keep a reading, unless a reading of more frames of the file, or a more exact reading of as many, is known."""
    if reading is None or not isinstance(path, (str, os.PathLike)):
        return
    key = os.path.abspath(str(path).removeprefix("file://"))
    with _lock:
        known = _readings.get(key)
        if known is None or (reading.count, reading.exact) > (known.count, known.exact):
            _readings[key] = reading


# --- the readers -----------------------------------------------------------------------------------


@contextlib.contextmanager
def watching() -> Iterator[Callable[[], None]]:
    """Let the readers of videos note what they read, from the first call of the yielded function to the block's end.

    Call the yielded function again to reach modules imported since.
    """
    replaced: dict[int, tuple[Any, Any]] = {}
    decord: list[Any] = []
    modules = 0

    def again() -> None:
        nonlocal modules
        # nothing was imported since the last call
        if len(sys.modules) == modules:
            return
        modules = len(sys.modules)
        for table, wrapped in ((compat.VIDEO_READERS, _watched), (compat.FRAME_COUNTERS, _bounded)):
            for module, function in (
                (sys.modules.get(name), function) for name, functions in table.items() for function in functions
            ):
                original = vars(module).get(function) if module is not None else None
                if callable(original) and not hasattr(original, "__watched__"):
                    # the pair keeps the original alive, so that no new object can take its id
                    replaced[id(original)] = (original, wrapped(original))
        _exchange({key: (old, new) for key, (old, new) in replaced.items()})
        # an adapter that reads with decord has imported it
        reader = getattr(sys.modules.get("decord"), "VideoReader", None)
        if isinstance(reader, type) and not decord:
            decord.append(_watch_decord(reader))

    try:
        yield again
    finally:
        _exchange({id(new): (new, old) for old, new in replaced.values()})
        for undo in decord:
            undo()
        forget()


def _exchange(pairs: Mapping[int, tuple[Any, Any]]) -> None:
    """Put new objects in the place of old objects in every loaded module.

    Lazy modules are not made to load anything.
    """
    for module in list(sys.modules.values()) if pairs else ():
        # the module's dictionary, not ``getattr`` by name: a lazy module would load what it is asked for
        names: Any = getattr(module, "__dict__", None)
        found = (
            [(name, value) for name, value in list(names.items()) if id(value) in pairs]
            if isinstance(names, dict)
            else ()
        )
        for name, value in found:
            old, new = pairs[id(value)]
            if value is old:
                names[name] = new


def _watched(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reader that reads as the original does, and notes what it read.

    A failure to understand what was read is no failure to read.
    """

    @functools.wraps(original)
    def read(*args: Any, **kwargs: Any) -> Any:
        path = _path_in(args[0] if args else next(iter(kwargs.values()), None))
        if (choose := kwargs.get(compat.FRAME_CHOOSER)) is not None and cache.holds(path):
            kwargs[compat.FRAME_CHOOSER] = _all_where_too_few(choose)
        found = original(*args, **kwargs)
        with contextlib.suppress(Exception):
            _note(path, _reading_in(found))
        return found

    # a mark, so that the function is not replaced a second time
    read.__dict__["__watched__"] = True
    return read


def _all_where_too_few(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return a chooser of frames like ``choose`` that takes all frames of a short video where ``choose`` refuses it (as in transformers)."""

    @functools.wraps(choose)
    def chosen(metadata: Any, **kwargs: Any) -> Any:
        try:
            return choose(metadata=metadata, **kwargs)
        except ValueError:
            return np.arange(metadata.total_num_frames)

    return chosen


def _bounded(original: Callable[..., int]) -> Callable[..., int]:
    """Return a counter of frames like the original, capped at the length of a written view.

    Why: an adapter asks for as many frames of a segment as of the full clip, and Qwen's reader refuses a video with
    fewer. Of other videos it goes on to refuse, as it does in the base task.
    """

    @functools.wraps(original)
    def count(asked: Mapping[str, Any], total_frames: int, *args: Any, **kwargs: Any) -> int:
        if "nframes" in asked and cache.holds(_path_in(asked)):
            # Qwen's reader takes even numbers
            asked = {**asked, "nframes": min(int(asked["nframes"]), total_frames // 2 * 2)}
        return original(asked, total_frames, *args, **kwargs)

    count.__dict__["__watched__"] = True
    return count


def _path_in(source: Any) -> Any:
    """Return the path in a reader's argument: a path, a list headed by a path, a mapping with a video, or an open container."""
    if isinstance(source, (list, tuple)) and source:
        return _path_in(source[0])
    if isinstance(source, Mapping):
        return source.get("video")
    return source if isinstance(source, (str, os.PathLike)) else getattr(source, "name", None)


def _reading_in(found: Any) -> Reading | None:
    """Return the frames a reader reports: from an array or a list of frames, or from a tuple of these and metadata."""
    metadata: Any = None
    while isinstance(found, tuple) and found:
        metadata = next((one for one in found[1:] if _indices_in(one) is not None), metadata)
        found = found[0]
    if (indices := _indices_in(metadata)) is not None:
        return _numbered(indices)
    times = [getattr(frame, "time", None) for frame in found] if isinstance(found, list) else []
    known = [float(time) for time in times if time is not None]
    if known and len(known) == len(times):
        return Reading(len(found), times=tuple(time - known[0] for time in known))
    return Reading(len(found)) if len(found) else None


def _indices_in(metadata: Any) -> Any:
    return (
        metadata.get("frames_indices") if isinstance(metadata, Mapping) else getattr(metadata, "frames_indices", None)
    )


def _numbered(indices: Any) -> Reading:
    whole = tuple(sorted({int(one) for one in np.asarray(indices).reshape(-1)}))
    return Reading(len(whole), whole)


def _watch_decord(reader: Any) -> Callable[[], None]:
    """Let decord's reader note the frames taken from a video, and return a function to undo the change.

    Why the methods of the class: adapters import the class itself, and take from one reader in several calls.
    """
    names = ("__init__", "get_batch", "__getitem__")
    if not all(name in vars(reader) for name in names):
        return lambda: None
    originals = {name: vars(reader)[name] for name in names}

    def init(self: Any, uri: Any, *args: Any, **kwargs: Any) -> None:
        originals["__init__"](self, uri, *args, **kwargs)
        self._watched_path, self._watched_frames = uri, set()

    def taking(name: str) -> Callable[[Any, Any], Any]:
        @functools.wraps(originals[name])
        def take(self: Any, which: Any) -> Any:
            found = originals[name](self, which)
            with contextlib.suppress(Exception):
                # what cannot be noted must not fail the reading
                numbers = range(len(self))[which] if isinstance(which, slice) else np.asarray(which).reshape(-1)
                # negative numbers count from the video's end
                self._watched_frames |= {int(one) % len(self) for one in numbers}
                _note(self._watched_path, _numbered(sorted(self._watched_frames)))
            return found

        return take

    reader.__init__ = functools.wraps(originals["__init__"])(init)
    for name in names[1:]:
        setattr(reader, name, taking(name))

    def undo() -> None:
        for name, original in originals.items():
            setattr(reader, name, original)

    return undo
