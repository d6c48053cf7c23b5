"""Writing the files of a board: all of them, or none."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from lmms_patch import files
from lmms_patch.errors import PatchError

LOCK = ".leaderboard.lock"
"""The file that updates of a board take turns by. It stays: removing a lock file lets two processes hold it."""
PATIENCE = 600.0
"""Seconds to wait for another update of the same board."""


class _Lock(FileLock):
    """A lock that two callers of one process take turns by, too.

    Why a class of its own: after an evaluation in the same process, lmms-eval has ``FileLock(path)`` return one object for all callers.
    """


@contextlib.contextmanager
def locked(folder: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Hold a board's folder to the end of the block, so that no other update reads it before this one has written.

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
        raise PatchError(f"{folder}: another update of this board has not ended for {PATIENCE:.0f} s; try again when it has") from None
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        yield
    except BaseException:
        if made:
            (folder / LOCK).unlink(missing_ok=True)
            _remove_empty(folder)
        raise
    finally:
        lock.release()


def publish(folder: Path, files: Mapping[str, str], gone: Iterable[str] = ()) -> list[str]:
    """Bring a folder to hold these files. Others that are in it stay; files that are as they should be are not touched.

    All are written beside their places first, then renamed; where a rename fails, those before it are taken back.

    Args:
        folder: the board's; see ``locked``.
        files: text by path in the folder (``/`` between folders).
        gone: paths to remove.

    Returns:
        What was written or removed.

    Raises:
        PatchError: the folder cannot be written; it is as it was.
    """
    try:
        for place in {(folder / name).parent for name in files} - {folder}:
            if place.is_symlink():
                raise OSError(None, f"{place.name} is a link")
        changed = {name: data for name, text in files.items() if (data := text.encode("utf-8", "replace")) != _current(folder / name)}
        stale = [name for name in gone if name not in files and (folder / name).is_file()]
        if changed or stale:
            _swap(folder, changed, stale)
        return [*changed, *stale]
    except OSError as error:
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> PatchError:
    why = error.strerror or error
    return PatchError(f"{folder}: the board cannot be written ({why}) and is as it was; make the folder writable or give another --output")


def _current(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _swap(folder: Path, changed: Mapping[str, bytes], stale: Iterable[str]) -> None:
    stage = files.temporary(folder)
    stage.mkdir()
    done: list[str] = []
    try:
        for name, data in changed.items():
            place = stage / "new" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        for name in [*changed, *stale]:
            _keep(folder / name, stage / "old" / name)
        for name in changed:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            done.append(name)
            os.replace(stage / "new" / name, folder / name)
        for name in stale:
            done.append(name)
            (folder / name).unlink()
    except BaseException:
        for name in done:
            _restore(stage / "old" / name, folder / name)
        raise
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        files.sweep(folder)


def _keep(path: Path, copy: Path) -> None:
    if path.is_file():
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, copy)
        except OSError:  # a file system without links
            shutil.copy2(path, copy)


def _restore(copy: Path, path: Path) -> None:
    if copy.is_file():
        os.replace(copy, path)
    elif path.is_file():
        path.unlink()


def _remove_empty(folder: Path) -> None:
    try:
        for inner in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
            inner.rmdir()
        folder.rmdir()
    except OSError:
        pass  # it was never made, or is not empty: not ours to remove
