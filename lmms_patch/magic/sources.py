"""The sources of a MAGIC dataset's rows (JSONL, parquet, a folder, the hub) and of their images.

A dataset may come from a stranger. So images must lie below the dataset's own folder, wherever links lead, and only a
few formats are read, whose decoders run no other program (Pillow hands EPS to Ghostscript). pyarrow and ``datasets``
are imported only for the forms that need them.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image, ImageFile, ImageOps

from lmms_patch.errors import PatchError
from lmms_patch.magic.items import MagicItem
from lmms_patch.magic.rows import printable, unique_keys

SUFFIXES = (".jsonl", ".parquet")
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""Formats of images, by content and not by file name. JPEG includes the files of phones with several pictures (MPO)."""
MOST_PIXELS = 178_956_970
"""The most pixels of an image: Pillow's own limit, which some tasks of lmms-eval switch off."""
_WANTED = f"a {' or '.join(SUFFIXES)} file, a folder with one, or a name on the hub (owner/name)"


class DatasetError(PatchError):
    """A MAGIC dataset not to be found, read or used."""


class ImageFaultError(Exception):
    """The reason why an image cannot be read: the text after "image:" in a message.

    Attributes:
        missing: whether there is no image, rather than a damaged one.
    """

    def __init__(self, message: str, missing: bool = False):
        super().__init__(message)
        self.missing = missing


def open_image(data: Path | bytes) -> Image.Image:
    """Open an image of any of ``FORMATS`` with at most ``MOST_PIXELS``, without decoding the pixels yet.

    Raises:
        ImageFaultError: the image has more pixels.
        Exception: any exception of Pillow, where the image is missing or of another format.
    """
    image = Image.open(io.BytesIO(data) if isinstance(data, bytes) else data, formats=FORMATS)
    if image.width * image.height > MOST_PIXELS:
        image.close()
        raise ImageFaultError(
            f"{_called(data)} has {image.width} x {image.height} pixels; at most {MOST_PIXELS:,} are read"
        )
    return image


def decode_image(data: Path | bytes) -> Image.Image:
    """Decode an image completely, from a file or its bytes.

    Raises:
        ImageFaultError: the image is missing, truncated, too large, or of a format that is not read.
    """
    try:
        image = open_image(data)
        with _strictly():
            image.load()
        return image
    except ImageFaultError:
        raise
    except Exception as error:
        # Pillow's decoders raise almost any exception on damaged files.
        raise ImageFaultError(f"{_called(data)} cannot be read: {_first_line(error)}") from None


_one_at_a_time = threading.Lock()


@contextlib.contextmanager
def _strictly() -> Iterator[None]:
    """Make Pillow treat a truncated image as damaged within the block.

    lmms-eval switches ``LOAD_TRUNCATED_IMAGES`` on for the whole process, which fills the missing part with grey.
    """
    # The setting is Pillow's own and global, so one thread at a time may change it.
    with _one_at_a_time:
        before = ImageFile.LOAD_TRUNCATED_IMAGES
        ImageFile.LOAD_TRUNCATED_IMAGES = False
        try:
            yield
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = before


def upright_size(data: Path | bytes, decode: bool) -> tuple[int, int]:
    """Return width and height after EXIF orientation (pixels); only the header is read unless ``decode``.

    Raises:
        ImageFaultError: the image cannot be read.
    """
    image = decode_image(data) if decode else None
    try:
        if image is not None:
            return ImageOps.exif_transpose(image).size
        with open_image(data) as image:
            width, height = image.size
            # These four orientations turn the image by a quarter.
            return (height, width) if image.getexif().get(0x0112) in (5, 6, 7, 8) else (width, height)
    except ImageFaultError:
        raise
    # Pillow's decoders, as above
    except Exception as error:
        raise ImageFaultError(f"{_called(data)} cannot be read: {_first_line(error)}") from None


def below(path: Path, *folders: Path) -> bool:
    """Return whether a path lies in any of some folders, after following links.

    False for a path that cannot be followed.
    """
    try:
        real = path.resolve()
        return any(real.is_relative_to(folder) for folder in folders)
    # links in a circle, a NUL
    except (OSError, RuntimeError, ValueError):
        return False


def _home(folder: Path) -> tuple[Path, ...]:
    """Return the folders, without links, in which the images of a dataset in ``folder`` may lie.

    They are the folder itself, and for a download from the hub also the folder where its links lead.
    """
    real = folder.resolve()
    for parent in folder.absolute().parents:
        if parent.name == "snapshots" and parent.parent.name.startswith("datasets--"):
            # In the hub's cache, files of a snapshot are links into ``blobs``.
            return real, parent.parent.resolve() / "blobs"
    return (real,)


def _called(data: Path | bytes) -> str:
    return repr(data.name) if isinstance(data, Path) else "the image in the row"


def _first_line(error: BaseException) -> str:
    # Pillow's own text names an object in memory
    if type(error).__name__ == "UnidentifiedImageError":
        return f"it is not an image in a format that can be read ({', '.join(FORMATS)})"
    return next(iter(str(error).splitlines()), "") or type(error).__name__


@dataclass(frozen=True)
class Unreadable:
    """A line not readable as a row, and the reason."""

    why: str


@dataclass(frozen=True)
class Source:
    """The rows of a file or a hub dataset.

    Attributes:
        name: as shown to the user.
        folder: image paths are relative to it.
        homes: folders, without links in their names, below which images must lie; none: all images lie in their rows.
        rows: yields (line, row).
        blob: returns the image cell of a row, by line, for datasets that hold their images; None for others.
    """

    name: str
    folder: Path
    homes: tuple[Path, ...]
    rows: Callable[[], Iterator[tuple[int, Any]]] = field(repr=False)
    blob: Callable[[int], Any] | None = field(default=None, repr=False)

    def found_image(self, row: Mapping[str, Any], name: str, line: int) -> Path | bytes:
        """Return the path of a row's image, or the image's bytes.

        Args:
            row: the row.
            name: the path that the row names; "" where the image lies in the row.
            line: of the row.

        Raises:
            ImageFaultError: the image is missing, or lies where it may not.
        """
        if name:
            path = self.folder / name
            shown = repr(name) if len(name) <= 120 else f"{name[:60]!r}..."
            if not self.homes:
                raise ImageFaultError(
                    f"{shown} is a path; the images of a dataset on the hub lie in its rows", missing=True
                )
            # Resolving the path of a Windows share would already contact the server, so it is refused unresolved.
            if name.startswith("\\\\") or not below(path, *self.homes):
                where = f"leads out of the dataset's folder ({self.folder})"
                raise ImageFaultError(
                    f"{shown} {where}; an image lies below it, also where links lead: copy it there", missing=True
                )
            try:
                if path.is_file():
                    return path
                kind = "is a folder" if path.is_dir() else "is no file" if path.exists() else "is missing"
            except OSError as error:
                # For example a name that is too long, or a folder that may not be entered.
                kind = f"cannot be looked for: {error.strerror}"
            raise ImageFaultError(f"{shown} {kind} (looked in {self.folder})", missing=True)
        value = row.get("image")
        value = value.get("bytes") if isinstance(value, Mapping) else value
        if not isinstance(value, (bytes, bytearray)):
            raise ImageFaultError("is missing", missing=True)
        return bytes(value)

    def image(self, item: MagicItem, line: int) -> Path | bytes:
        """Return the path of an item's image, or the image's bytes (``found_image``)."""
        return self.found_image({} if item.image or self.blob is None else {"image": self.blob(line)}, item.image, line)


def open_source(path: str | Path, split: str) -> Source:
    """Open a dataset; its rows are not read yet.

    Raises:
        DatasetError: there is no such dataset, or it has no known form.
    """
    if not str(path).strip():
        raise DatasetError(f"no dataset is named; give {_WANTED}")
    file = Path(path)
    try:
        if file.is_dir():
            file = _in_folder(file)
        is_file = file.is_file()
    # a NUL in the name
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"{printable(str(path))[:200]}: cannot be read: {getattr(error, 'strerror', None) or error}; give {_WANTED}"
        ) from None
    if is_file:
        if file.suffix not in SUFFIXES:
            raise DatasetError(
                f"{file} is not a MAGIC dataset; allowed: {', '.join(SUFFIXES)} files, a folder with one, or a name on the hub"
            )
        return _jsonl(file) if file.suffix == ".jsonl" else _parquet(file)
    name = str(path)
    # A missing path such as data/items must not be looked for on the hub.
    if (
        re.fullmatch(r"[\w.-]+/[\w.-]+", name)
        and not name.startswith(".")
        and file.suffix not in SUFFIXES
        and not file.parent.exists()
    ):
        return _hub(name, split)
    raise DatasetError(f"{printable(name)[:200]}: no such file or folder; give {_WANTED}")


def _in_folder(folder: Path) -> Path:
    # what a build writes, whatever lies beside it
    if (folder / "items.jsonl").is_file():
        return folder / "items.jsonl"
    files = sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if len(files) == 1:
        return files[0]
    if not files:
        raise DatasetError(
            f"{folder} holds no {' or '.join(SUFFIXES)} file; give the file, or the folder that holds items.jsonl"
        )
    raise DatasetError(
        f"{folder} holds {len(files)} datasets ({', '.join(file.name for file in files[:5])}); give one of the files"
    )


def _jsonl(path: Path) -> Source:
    def rows() -> Iterator[tuple[int, Any]]:
        try:
            with path.open("rb") as file:
                for line, raw in enumerate(file, 1):
                    # Windows editors write a byte order mark, which JSON does not allow.
                    raw = raw.removeprefix(b"\xef\xbb\xbf") if line == 1 else raw
                    if raw.strip():
                        yield line, _row(raw)
        except OSError as error:
            raise DatasetError(f"{path} cannot be read: {error.strerror}") from None

    return Source(str(path), path.parent, _home(path.parent), rows)


def _row(raw: bytes) -> Any:
    try:
        # Python also reads NaN and Infinity, which are no JSON: other programs could not read the file
        return json.loads(raw.decode("utf-8"), object_pairs_hook=unique_keys, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        return Unreadable(f"is not UTF-8 text (byte {error.start + 1})")
    except json.JSONDecodeError as error:
        return Unreadable(f"is not JSON: {error.msg} at character {error.pos + 1}")
    except (ValueError, RecursionError) as error:
        return Unreadable(f"is not JSON: {_first_line(error)}")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _parquet(path: Path) -> Source:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"{path} cannot be read as parquet: {_first_line(error)}") from None
    # the row group of each row, by which an image is found without reading all before it
    groups: list[int] = []
    for group in range(table.num_row_groups):
        groups += [group] * table.metadata.row_group(group).num_rows
    held: dict[str, Any] = {}

    def rows() -> Iterator[tuple[int, Any]]:
        line = 0
        try:
            # few rows at a time, since rows may hold their images
            for batch in table.iter_batches(batch_size=64):
                for row in batch.to_pylist():
                    line += 1
                    yield line, row
        except (OSError, pa.ArrowException) as error:
            raise DatasetError(f"{path} cannot be read after row {line}: {_first_line(error)}") from None

    def blob(line: int) -> Any:
        # One row group at a time: images of the whole file may not fit memory.
        group = groups[line - 1]
        if held.get("group") != group:
            held.update(
                group=group,
                first=groups.index(group) + 1,
                cells=table.read_row_group(group, columns=["image"]).column("image"),
            )
        return held["cells"][line - held["first"]].as_py()

    return Source(str(path), path.parent, _home(path.parent), rows, blob)


def _hub(name: str, split: str) -> Source:
    import datasets

    try:
        table = datasets.load_dataset(name, split=split)
    except Exception as error:
        # Hub, network, cache and pyarrow raise exceptions of many kinds.
        raise DatasetError(
            f"{name}: no such file, and the hub gives no split {split!r} of it ({_first_line(error)}); "
            "without a network, give a file or a folder, or a dataset that was downloaded before"
        ) from None
    homes: tuple[Path, ...] = ()
    if isinstance(table.features.get("image"), datasets.Image):
        # Undecoded, so that an image that cannot be read is a fault of its line, not of the whole dataset.
        table = table.cast_column("image", datasets.Image(decode=False))
        # Images of a hub dataset may lie in the caches only.
        homes = tuple(Path(one).resolve() for one in (datasets.config.HF_CACHE_HOME, datasets.config.HF_DATASETS_CACHE))

    def rows() -> Iterator[tuple[int, Any]]:
        yield from enumerate(table, 1)

    return Source(name, Path(), homes, rows, lambda line: table[line - 1]["image"])
