"""Writing the files of a board: all of them, or none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from lmms_patch import files
from lmms_patch.errors import PatchError, RecordError

LOCK = ".leaderboard.lock"
"""The file that updates of a board take turns by. It stays: removing a lock file lets two processes hold it."""
PATIENCE = 600.0
"""Seconds to wait for another update of the same board."""


class _Lock(FileLock):
    """A lock with turns between callers in the same process, too.

    Why a class of its own: after an evaluation in the same process, lmms-eval has ``FileLock(path)`` return one object
    for all callers.
    """


@contextlib.contextmanager
def locked(folder: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Hold a board's folder to the end of the block, so that every update reads the previous update's files.

    Args:
        folder: made if it is not there, and removed again where the block raises.
        tell: told where another update is waited for.

    Raises:
        PatchError: another update takes too long, or the folder cannot be made.
    """
    made = not folder.exists()
    lock = _Lock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            tell(f"{folder}: waiting for another update of this board")
            lock.acquire(timeout=PATIENCE)
    except Timeout:
        raise PatchError(
            f"{folder}: another update of this board has not ended for {PATIENCE:.0f} s; try again when it has"
        ) from None
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        yield
    except BaseException:
        # A folder that this call made goes again, so that a failed update leaves nothing.
        if made:
            (folder / LOCK).unlink(missing_ok=True)
            # A folder that is not empty is not ours to remove.
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise
    finally:
        lock.release()


def publish(folder: Path, contents: Mapping[str, str], gone: Iterable[str] = ()) -> list[str]:
    """Bring a folder to hold these files, all of them or none.

    Others that are in it stay; files that are as they should be are not touched.

    Args:
        folder: the board's; see ``locked``.
        contents: text by path in the folder (``/`` between folders).
        gone: paths to remove.

    Returns:
        What was written or removed.

    Raises:
        PatchError: the folder cannot be written; it is as it was.
    """
    made = [place for place in {(folder / name).parent for name in contents} - {folder} if not place.exists()]
    try:
        for place in {(folder / name).parent for name in contents} - {folder}:
            # Writing through a link would write outside the board.
            if place.is_symlink():
                raise OSError(None, f"{place.name} is a link")
        # Unchanged files keep their times, so that a site or a version control sees only what is new.
        changed = {
            name: data
            for name, text in contents.items()
            if (data := text.encode("utf-8", "replace")) != _current(folder / name)
        }
        stale = [name for name in gone if name not in contents and (folder / name).is_file()]
        with files.staged({folder / name: data for name, data in changed.items()}, [folder / name for name in stale]):
            pass
    except (OSError, RecordError) as error:
        for place in made:
            # The folder was never made, or is not empty.
            with contextlib.suppress(OSError):
                place.rmdir()
        raise _unwritable(folder, error) from None
    if changed or stale:
        files.sweep(folder)
    return [*changed, *stale]


def _unwritable(folder: Path, error: OSError | RecordError) -> PatchError:
    why = (error.strerror if isinstance(error, OSError) else str(error).rpartition("cannot be written: ")[2]) or error
    return PatchError(
        f"{folder}: the board cannot be written ({why}) and is as it was; make the folder writable or give another --output"
    )


def _current(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
