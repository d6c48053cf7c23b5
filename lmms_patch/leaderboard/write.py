"""Writing the files of a board: all of them, or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from lmms_patch.errors import PatchError


def publish(folder: Path, files: Mapping[str, str], gone: Iterable[str] = ()) -> list[str]:
    """Bring a folder to hold these files. Others that are in it stay; files that are as they should be are not touched.

    All are written beside their places first, then renamed; where a rename fails, those before it are taken back.

    Args:
        folder: made if it is not there.
        files: text by path in the folder (``/`` between folders).
        gone: paths to remove.

    Returns:
        What was written or removed.

    Raises:
        PatchError: the folder cannot be written; it is as it was.
    """
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        changed = {name: data for name, text in files.items() if (data := text.encode("utf-8", "replace")) != _current(folder / name)}
        stale = [name for name in gone if name not in files and (folder / name).is_file()]
        if changed or stale:
            _swap(folder, changed, stale)
        return [*changed, *stale]
    except OSError as error:
        if made:
            _remove_empty(folder)
        raise PatchError(
            f"{folder}: the board cannot be written ({error.strerror or error}) and is as it was; make the folder writable or give another --output"
        ) from None


def _current(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _swap(folder: Path, changed: Mapping[str, bytes], stale: Iterable[str]) -> None:
    stage = Path(tempfile.mkdtemp(prefix=".leaderboard-", dir=folder))
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
