"""Reading and checking of MAGIC datasets: a JSONL or parquet file, a folder with one of them, or a dataset of the hub.

``inspect`` and ``check`` return every fault with its line. ``read`` returns the usable items, and says in one line
which were left out. None of them needs the harness; pyarrow and ``datasets`` are imported only for the forms that need
them.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from lmms_patch import files
from lmms_patch.magic.draw import hidden_shares, in_other_boxes, layout
from lmms_patch.magic.items import MagicItem, shown
from lmms_patch.magic.rows import KINDS, Fault, Faults, check_size, parse, to_row
from lmms_patch.magic.score.selfheal import wrong_runs
from lmms_patch.magic.sources import (
    DatasetError,
    ImageFaultError,
    Source,
    Unreadable,
    decode_image,
    open_source,
    upright_size,
)

__all__ = ["Checked", "Dataset", "DatasetError", "inspect", "read", "write"]

# the share of a box that numbers and outlines may hide without a warning
_HIDDEN = 0.1
# how many faults the one line of a run names
_NAMED = 3


@dataclass(frozen=True)
class Dataset:
    """The usable items of a dataset.

    Attributes:
        name: the file, or the name on the hub.
        items: in the order of the file.
        lines: the line of each item, by id.
        total: number of lines in the file, usable or not.
        faults: every fault, warnings included.
    """

    name: str
    items: tuple[MagicItem, ...]
    lines: Mapping[str, int]
    total: int
    faults: tuple[Fault, ...]
    _source: Source = field(repr=False)

    @property
    def left_out(self) -> int:
        """Number of unusable lines."""
        return self.total - len(self.items)

    @property
    def note(self) -> str:
        """A line with the number of left-out lines and the reasons; "" where no line was left out."""
        return (
            f"{self.name}: {self.left_out} of {self.total} items left out: {_why(self.faults, self.name)}"
            if self.left_out
            else ""
        )

    def picture(self, item: MagicItem) -> Path | bytes:
        """Return the path of the item's image, or the file's bytes where the image lies in the row.

        Raises:
            DatasetError: the image is missing or not allowed.
        """
        try:
            return self._source.image(item, self.lines[item.id])
        except ImageFaultError as error:
            raise DatasetError(f"{self.name}: line {self.lines[item.id]} ({item.id}): image: {error}") from None

    def image(self, item: MagicItem) -> Image.Image:
        """Return the item's image as stored: neither turned upright nor converted (``draw.upright`` does both).

        Raises:
            DatasetError: the image cannot be read.
        """
        try:
            return decode_image(self._source.image(item, self.lines[item.id]))
        except ImageFaultError as error:
            raise DatasetError(f"{self.name}: line {self.lines[item.id]} ({item.id}): image: {error}") from None


@dataclass(frozen=True)
class Checked:
    """The result of checking a dataset.

    Attributes:
        name: the file, or the name on the hub.
        total: number of lines in the file.
        usable: number of lines that runs will ask.
        faults: every fault, in the order of the lines.
        counts: counts over the usable items, by name: ``images``, ``relevant boxes``, ``adversarial boxes``, ``items
            with steps``, ``steps``, ``wrong steps``, and the runs of wrong steps that Self-Heal tests (``wrong runs to
            test``) or leaves out (``wrong runs at the start``, ``wrong runs near the end``, ``wrong runs without
            correction``; ``selfheal.WrongRuns``).
    """

    name: str
    total: int
    usable: int
    faults: tuple[Fault, ...]
    counts: Mapping[str, int]

    def level(self, level: str) -> list[Fault]:
        """Return the faults of a level, ``error`` or ``warning``."""
        return [fault for fault in self.faults if fault.level == level]

    def kinds(self) -> list[tuple[str, str, int, int]]:
        """Return (level, kind, number of faults, number of lines), errors first, in the order of ``rows.KINDS``."""
        many = Counter((fault.level, fault.kind) for fault in self.faults)
        lines = Counter(
            (level, kind) for level, kind, _ in {(fault.level, fault.kind, fault.line) for fault in self.faults}
        )
        order = sorted(many, key=lambda found: (found[0], KINDS.index(found[1])))
        return [(level, kind, many[level, kind], lines[level, kind]) for level, kind in order]

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``lmms-patch magic check --json`` (schema ``magic-check``)."""
        return {
            "schema": 1,
            "dataset": self.name,
            "items": self.total,
            "usable": self.usable,
            "errors": len(self.level("error")),
            "warnings": len(self.level("warning")),
            "kinds": [
                {"level": level, "kind": kind, "faults": many, "lines": lines}
                for level, kind, many, lines in self.kinds()
            ],
            "counts": dict(self.counts),
            "faults": [asdict(fault) for fault in self.faults],
        }


def read(path: str | Path, *, split: str = "test", decode: bool = True) -> Dataset:
    """Read the usable items of a dataset.

    Args:
        path: a .jsonl or .parquet file, a folder that holds one (``items.jsonl`` first), or a name on the hub
        (``owner/name``).
        split: of a hub dataset.
        decode: whether to decode every image, so that a truncated image is found now and not during a run; else only
            headers are read.

    Raises:
        DatasetError: there is no such dataset, it cannot be read, or none of its items can be used.
    """
    source = open_source(path, split)
    items, lines, total, faults = [], {}, 0, []
    for line, item, line_faults in _lines(source, decode):
        total += 1
        faults += line_faults
        if item is not None:
            items.append(item)
            lines[item.id] = line
    if not total:
        raise DatasetError(f"{source.name} holds no item; every line must be one JSON object (docs/magic.md)")
    if not items:
        raise DatasetError(f"{source.name}: none of its {total} items can be used: {_why(faults, source.name)}")
    return Dataset(source.name, tuple(items), lines, total, tuple(faults), source)


def inspect(path: str | Path, *, split: str = "test", tell: Callable[[int], None] | None = None) -> Checked:
    """Return every fault of a dataset, and counts of its content.

    Args:
        path: as in ``read``.
        split: as in ``read``.
        tell: called after each line, with the number of lines so far.

    Raises:
        DatasetError: there is no such dataset, or the file has another form.
    """
    source = open_source(path, split)
    faults: list[Fault] = []
    counts: Counter[str] = Counter()
    images: set[str] = set()
    total = usable = 0
    with warnings.catch_warnings():
        # Pillow warns of large images, which are no fault here.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        for line, item, line_faults in _lines(source, decode=True, drawn=True):
            total += 1
            faults += line_faults
            if item is not None:
                usable += 1
                # an image that lies in its row has no name
                images.add(item.image or f"line {line}")
                counts.update(_counts(item))
            if tell is not None:
                tell(total)
    if not total:
        faults = [Fault(0, "", "", "holds no item; every line must be one JSON object", "error", "no item")]
    return Checked(
        source.name, total, usable, tuple(faults), {"images": len(images), **{name: counts[name] for name in _COUNTED}}
    )


_COUNTED = (
    "relevant boxes",
    "adversarial boxes",
    "items with steps",
    "steps",
    "wrong steps",
    "wrong runs to test",
    "wrong runs at the start",
    "wrong runs near the end",
    "wrong runs without correction",
)


def _counts(item: MagicItem) -> dict[str, int]:
    """Return the counts of an item, by the names in ``_COUNTED``."""
    runs = wrong_runs(item.steps)
    relevant = sum(box.relevant for box in item.boxes)
    wrong = sum(not step.correct for step in item.steps)
    of_boxes_and_steps = (relevant, len(item.boxes) - relevant, int(bool(item.steps)), len(item.steps), wrong)
    return dict(
        zip(
            _COUNTED,
            (*of_boxes_and_steps, len(runs.tested), runs.at_start, runs.near_end, runs.uncorrected),
            strict=True,
        )
    )


def write(path: str | Path, items: Iterable[MagicItem]) -> None:
    """Write items as JSONL, whole or not at all.

    Raises:
        RecordError: the file cannot be written.
    """
    text = "".join(json.dumps(to_row(item), ensure_ascii=False, allow_nan=False) + "\n" for item in items)
    files.write(Path(path), text)


def _why(faults: Sequence[Fault], name: str) -> str:
    """Name the first unusable lines, each with its first error."""
    first: dict[int, Fault] = {}
    for fault in faults:
        if fault.level == "error":
            first.setdefault(fault.line, fault)
    named = [
        f"line {f.line}{f' ({f.item})' if f.item else ''}: {f'{f.key}: ' if f.key else ''}{f.message}"
        for f in list(first.values())[:_NAMED]
    ]
    rest = f"; and {len(first) - _NAMED} more" if len(first) > _NAMED else ""
    return f"{'; '.join(named)}{rest}; type 'lmms-patch magic check {name}' for all"


def _lines(source: Source, decode: bool, drawn: bool = False) -> Iterator[tuple[int, MagicItem | None, list[Fault]]]:
    """Yield each line's number, the item (None for an unusable line), and the faults.

    With ``drawn`` also the faults of the drawing.
    """
    seen: dict[tuple[str, bool], tuple[str, int]] = {}
    # an image of many items is decoded once
    sizes: dict[str, tuple[int, int] | ImageFaultError] = {}
    for line, row in source.rows():
        faults = Faults(line)
        if isinstance(row, Unreadable):
            faults.error("", row.why, "line unreadable")
            yield line, None, faults.found
            continue
        item = parse(row, faults)
        _check_id(row, seen, faults)
        size = _check_image(source, row, item, line, faults, sizes, decode)
        if drawn and size is not None and item is not None and not faults.fatal:
            _check_drawing(item, size, faults)
        yield line, None if faults.fatal else item, faults.found


def _check_id(row: Any, seen: dict[tuple[str, bool], tuple[str, int]], faults: Faults) -> None:
    """Note an id equal to an earlier line's id, exactly or up to white space.

    Args:
        row: the row.
        seen: (id, True) and (id with single spaces, False) -> id and line; is added to.
        faults: takes what is found.
    """
    identity = row.get("id") if isinstance(row, Mapping) else None
    if not isinstance(identity, str) or not identity.strip():
        return
    exact = seen.setdefault((identity, True), (identity, faults.line))
    if exact[1] != faults.line:
        faults.error("id", f"{faults.item!r} is also the id of line {exact[1]}; ids must be unique", "id twice")
        return
    alike, line = seen.setdefault((" ".join(identity.split()), False), (identity, faults.line))
    if alike != identity:
        faults.warn(
            "id",
            f"differs from the id of line {line} by white space alone; files of labels cannot tell the two apart",
            "ids alike",
        )


def _check_image(
    source: Source,
    row: Any,
    item: MagicItem | None,
    line: int,
    faults: Faults,
    sizes: dict[str, tuple[int, int] | ImageFaultError],
    decode: bool,
) -> tuple[int, int] | None:
    """Note an unreadable image, and boxes beyond the image; return the size of a readable image.

    Items with other faults are checked too, so that a user sees all faults at once.
    """
    if any(fault.key == "image" for fault in faults.found) or not isinstance(row, Mapping):
        return None
    name = item.image if item is not None else _image_name(row)
    size = sizes.get(name) if name else None
    if size is None:
        try:
            size = upright_size(source.found_image(row, name, line), decode)
        except ImageFaultError as error:
            size = error
        if name:
            sizes[name] = size
    if isinstance(size, ImageFaultError):
        faults.error("image", str(size), "image missing" if size.missing else "image unreadable")
        return None
    check_size(row.get("boxes"), size, faults)
    return size


def _check_drawing(item: MagicItem, size: tuple[int, int], faults: Faults) -> None:
    """Note boxes whose number has room only in a foreign box, and boxes hidden by the drawing.

    Boxes are numbered with the seed 0.
    """
    places = shown(item.boxes, item.id).places
    boxes = [(box.left, box.top, box.right, box.bottom) for box in (item.boxes[place] for place in places)]
    drawing = layout(size, boxes, range(1, len(boxes) + 1))
    for at in sorted(places[one] for one in in_other_boxes(boxes, drawing)):
        said = "has no room for its number, which is drawn in another box and may be read as that box's; leave out a box, or make it larger"
        faults.warn(f"boxes[{at + 1}]", said, "number in another box")
    for at, share in sorted(zip(places, hidden_shares(boxes, drawing), strict=True)):
        if share > _HIDDEN:
            said = f"numbers and outlines hide {100 * share:.1f} % of the box; leave out a box, make it larger, or use a larger image"
            faults.warn(f"boxes[{at + 1}]", said, "box hidden")


def _image_name(row: Mapping[str, Any]) -> str:
    value = row.get("image")
    if isinstance(value, Mapping):
        value = None if value.get("bytes") is not None else value.get("path")
    return value if isinstance(value, str) else ""
