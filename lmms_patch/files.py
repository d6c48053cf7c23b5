"""Whole files or none, and reading of JSON and YAML that anybody may have written.

Every file is written under a temporary name and renamed at the end, so no reader sees half of it. Two writers of one
file never share a temporary
name: the last one wins, with its whole file. Where the target is a link, the link is replaced and never followed:
nobody can make us write elsewhere by placing a link. Folders on the way may be links.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import platform
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lmms_patch.errors import OptionError, RecordError

POINTER = b"version https://git-lfs.github.com/spec/"
"""How a file begins that stands for its content in Git LFS."""
PULL = "it only points to its content in Git LFS; type 'git lfs pull'"
OLD = 24 * 3600
"""Age in seconds at which a temporary file or folder counts as abandoned, on any machine."""
DEEPEST = 100
"""Levels of a JSON file; ours have some twelve."""
_OURS = re.compile(r"\.lmms-patch-([0-9a-f]{8})-(\d{1,10})-[0-9a-f]{16}(\.part|\.old)?")


def write(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all.

    Raises:
        RecordError: the file cannot be written.
    """
    with staged({path: content}):
        pass


def write_all(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files, all of them or none, and remove what killed processes left beside them.

    Raises:
        RecordError: a file cannot be written; the message says which, and why.
    """
    with staged(contents):
        pass
    for folder in {Path(path).parent for path in contents}:
        sweep(folder)


@contextlib.contextmanager
def staged(contents: Mapping[Path, str | bytes], gone: Iterable[Path] = ()) -> Iterator[None]:
    """Write several files under temporary names and rename all of them at the end of the block.

    Rename none where the block raises.

    Args:
        contents: what is written, by path.
        gone: files that are removed with that.

    Raises:
        RecordError: a file cannot be written; the message says which, and why.
    """
    parts: list[tuple[Path, Path]] = []
    try:
        for path, content in contents.items():
            with _told(path):
                _check_place(path)
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                part = temporary(Path(path).parent, ".part")
                parts.append((part, path))
                _create(part, content)
        yield
        _take_places([*parts, *((None, Path(path)) for path in gone)])
    finally:
        for part, _ in parts:
            with contextlib.suppress(OSError):
                part.unlink()


def _take_places(changes: Sequence[tuple[Path | None, Path]]) -> None:
    """Rename temporary files into their places, and remove files; where one of several fails, undo those before it.

    Args:
        changes: temporary name and place; None in place of the name: what is there is removed.
    """
    kept: list[tuple[Path, Path | None]] = []
    try:
        for part, path in changes:
            with _told(path):
                if len(changes) > 1:  # a single change needs no way back
                    kept.append((path, _kept(path)))
                os.replace(part, path) if part is not None else path.unlink()
    except BaseException:
        for path, copy in reversed(kept):
            os.replace(copy, path) if copy is not None else path.unlink(missing_ok=True)
        raise
    finally:
        for _, copy in kept:
            if copy is not None:
                copy.unlink(missing_ok=True)


def _kept(path: Path) -> Path | None:
    """Return a second name of what lies in a place; None where nothing does."""
    if not os.path.lexists(path):
        return None
    copy = temporary(path.parent, ".part")
    try:
        os.link(path, copy, follow_symlinks=False)
    except OSError:  # a file system without links
        shutil.copy2(path, copy, follow_symlinks=False)
    return copy


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside ``path``; what the block writes under that name replaces ``path`` at the end.

    Missing folders are made.

    Raises:
        RecordError: the file cannot be written.
    """
    with _told(path):
        _check_place(path)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        part = temporary(Path(path).parent, ".part")
        try:
            yield part
            os.replace(part, path)
        finally:
            with contextlib.suppress(OSError):
                part.unlink()


def read(path: Path) -> bytes:
    """Return the content of a regular file. Why: a pipe of that name would be waited for, for ever.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return path.read_bytes()


def temporary(folder: Path, end: str = "") -> Path:
    """Return a new name in a folder for a temporary file or folder; the name holds the machine and the process."""
    return Path(folder) / f".lmms-patch-{_host()}-{os.getpid()}-{secrets.token_hex(8)}{end}"


def is_left(path: Path) -> bool:
    """Return whether a path is an abandoned temporary file or folder of ours: its process has ended, or it is a day old."""
    match = _OURS.fullmatch(path.name)
    if match is None:
        return False
    with contextlib.suppress(OSError):
        if time.time() - path.lstat().st_mtime > OLD:
            return True
    return (
        match[1] == _host() and match[3] != ".old" and not _is_alive(int(match[2]))
    )  # .old holds a replaced report: keep it a day


def sweep(folder: Path) -> None:
    """Remove the temporary files and folders that killed processes left in a folder.

    Only those named by ``temporary``.
    """
    with contextlib.suppress(OSError):
        for path in [path for path in Path(folder).iterdir() if is_left(path)]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


# --- folders that are written whole or not at all ----------------------------------------------------


def check_folder(output: Path, mark: str, option: str, earlier: str) -> None:
    """Check that a folder may be written there, or replaced.

    Args:
        output: the folder.
        mark: the file by which a folder of the same kind is known.
        option: the option that names the folder.
        earlier: what a folder of the same kind is, in words: "an earlier report".

    Raises:
        OptionError: a file, a folder with other things in it, or no right to write.
    """
    if output.exists() and not output.is_dir():
        raise OptionError(f"{option} {output}: a file is there; name a folder")
    if output.is_dir() and any(output.iterdir()) and not (output / mark).is_file():
        raise OptionError(
            f"{option} {output}: this folder has other files in it; name a new folder, or that of {earlier}"
        )
    there = next(path for path in (output.absolute(), *output.absolute().parents) if path.exists())
    if not os.access(there, os.W_OK) or not os.access(output.absolute().parent if output.exists() else there, os.W_OK):
        raise OptionError(f"{option} {output}: {there} cannot be written to; give another {option}")


@contextlib.contextmanager
def folder(output: Path, option: str) -> Iterator[Path]:
    """Give a folder beside the output that takes its place at the end; nothing is left of it where something fails.

    What killed commands left there is removed.

    Args:
        output: the folder; what is there is replaced (``check_folder``).
        option: the option that names it.

    Raises:
        OptionError: it cannot be written.
    """
    parent = output.absolute().parent
    made, old = temporary(parent), temporary(parent, ".old")
    try:
        made.mkdir(parents=True)
        yield made
        if output.exists() or output.is_symlink():
            output.rename(old)
        try:
            made.rename(output)
        except OSError:
            if old.exists():
                old.rename(output)
            raise
        if old.is_symlink():
            old.unlink()  # what it names is somebody's folder
        shutil.rmtree(old, ignore_errors=True)
        sweep(parent)
    except OSError as error:
        raise OptionError(f"{option} {output}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _create(path: Path, content: str | bytes) -> None:
    """Create and write a file; a file or link of that name must not exist."""
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), "wb"
    ) as file:
        file.write(_bytes(content))


def _bytes(content: str | bytes) -> bytes:
    r"""Return text as UTF-8 bytes; half a surrogate pair becomes ``\udxxx``, which JSON reads back."""
    return content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content


def _check_place(path: Path) -> None:
    """Refuse a path that holds something other than a plain file: running as root we could replace ``/dev/stdout``.

    Raises:
        OSError: the path is a folder, a device or a pipe.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(None, "it is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(None, "it is not a plain file")


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn an OSError into one line about the file.

    Raises:
        RecordError: in place of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror or error}") from None


def _host() -> str:
    """Return eight hex digits that stand for this machine: process numbers have a meaning only on their own machine."""
    return hashlib.sha256(platform.node().encode("utf-8", "replace")).hexdigest()[:8]


def _is_alive(process: int) -> bool:
    """Return whether a process of this machine still runs; True where the system cannot tell."""
    if os.name != "posix":  # on Windows, signal 0 is Ctrl+C, not a question
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


# --- JSON and YAML that anybody may have written -----------------------------------------------------

DIGITS = 300
"""The most digits of a whole number: a longer one exceeds every float, and arithmetic with it would raise."""


def parse_json(text: str | bytes) -> Any:
    """Parse JSON as ``json.loads`` does; for files of a few megabytes.

    Raises:
        ValueError: the text is not JSON, is nested too deeply, or holds a number that no float can hold. The message is
            short.
    """
    try:
        found = json.loads(text, parse_int=_json_whole, parse_float=_json_float)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level, depth = [found] if isinstance(found, (dict, list)) else [], 0
    while level := [
        inner
        for one in level
        for inner in (one.values() if isinstance(one, dict) else one)
        if isinstance(inner, (dict, list))
    ]:
        if (depth := depth + 1) >= DEEPEST:  # who walks through it calls itself as often
            raise ValueError("nested too deeply")
    return found


def _json_whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return int(digits)


def _json_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:20]} is larger than any float")
    return number


YAML_LONGEST = 1_000_000
"""The most characters of a YAML file: PyYAML takes ten seconds for a megabyte."""
YAML_DEEPEST = 50
"""The most brackets inside each other: PyYAML's time grows with the square of the depth."""
YAML_MOST = 100_000
"""The most values of a YAML file, counting each repetition by reference: ten lines of references to references can stand for billions."""


class YamlLoader(yaml.SafeLoader):
    """A YAML loader that refuses references which repeat too much or contain themselves, and whole numbers that no float can hold."""

    def __init__(self, stream: str) -> None:
        if len(stream) > YAML_LONGEST:
            raise yaml.constructor.ConstructorError(None, None, f"more than {YAML_LONGEST:,} characters")
        super().__init__(stream)

    def fetch_flow_collection_start(self, token: Any) -> None:
        """Fetch an opening bracket, but refuse one that is nested too deeply."""
        if self.flow_level >= YAML_DEEPEST:
            raise yaml.constructor.ConstructorError(
                None, None, f"more than {YAML_DEEPEST} brackets in each other", self.get_mark()
            )
        super().fetch_flow_collection_start(token)

    def get_single_node(self) -> Any:
        """Compose the document, but refuse one that grows too large by references."""
        node = super().get_single_node()
        if node is not None:
            _yaml_size(node, {})
        return node


def _yaml_whole(loader: YamlLoader, node: Any) -> Any:
    if len(node.value) > DIGITS:
        raise yaml.constructor.ConstructorError(
            None, None, f"a whole number of {len(node.value)} digits", node.start_mark
        )
    return loader.construct_yaml_int(node)


def _yaml_date(loader: YamlLoader, node: Any) -> Any:
    if not isinstance(node, yaml.ScalarNode) or not loader.timestamp_regexp.match(
        node.value
    ):  # PyYAML itself fails with an AttributeError
        raise yaml.constructor.ConstructorError(None, None, "not a date", node.start_mark)
    return loader.construct_yaml_timestamp(node)


def _yaml_text(loader: YamlLoader, node: Any) -> str:
    r"""Return a text with the pairs of halves that JSON escapes characters as ("\\ud83d\\ude00") joined.

    A half by itself becomes U+FFFD.
    """
    return writable(str(loader.construct_scalar(node)))


def writable(text: str) -> str:
    r"""Return a text that UTF-8 can hold: the halves of a surrogate pair are joined, and a half by itself becomes U+FFFD.

    >>> writable("\ud83d\ude00 \ud83d") == "\U0001f600 \ufffd"
    True
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


YamlLoader.add_constructor("tag:yaml.org,2002:str", _yaml_text)
YamlLoader.add_constructor("tag:yaml.org,2002:int", _yaml_whole)
YamlLoader.add_constructor("tag:yaml.org,2002:timestamp", _yaml_date)


def _yaml_size(node: Any, known: dict[int, int]) -> int:
    """Count the values of a node, including everything it refers to.

    Args:
        node: the node.
        known: counts so far, by ``id`` of the node; 0 while a node is being counted, which shows a circle.

    Raises:
        yaml.constructor.ConstructorError: there are too many values, or a node contains itself.
    """
    if id(node) in known:
        if not known[id(node)]:
            raise yaml.constructor.ConstructorError(None, None, "a value that refers to itself", node.start_mark)
        return known[id(node)]
    known[id(node)] = 0
    held = node.value if isinstance(node, yaml.CollectionNode) else ()
    parts = [part for one in held for part in (one if isinstance(one, tuple) else (one,))]
    total = 1 + sum(_yaml_size(part, known) for part in parts)
    if total > YAML_MOST:
        raise yaml.constructor.ConstructorError(
            None, None, f"more than {YAML_MOST:,} values, most of them by reference", node.start_mark
        )
    known[id(node)] = total
    return total


def parse_yaml(text: str) -> Any:
    """Parse YAML.

    Raises:
        ValueError: the text is not YAML, or holds more than plain values.
    """
    try:
        return yaml.load(text, Loader=YamlLoader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
