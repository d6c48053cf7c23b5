"""Conversion between a row of a MAGIC dataset and an item, with every fault of the row. Pure.

The schema ``magic-item`` describes the form. What the schema cannot say (the image, duplicate ids, boxes against the
image's size) is checked in ``dataset``.

Levels: an ``error`` means that the item cannot be used, and runs leave it out. A ``warning`` means that some number may
not be defined for it, or that a human should look. Every fault has one of ``KINDS``, by which faults are counted.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import fields

from lmms_patch.magic import formats
from lmms_patch.magic.items import SCHEMA, Box, MagicItem, Step
from lmms_patch.runs.typed import fault

KEYS = ("schema", "id", "image", "question", "question_type", "answer", "full_answer", "boxes", "steps", "group")
"""The keys of a row; ``MagicItem.more`` keeps all others."""
_TEXTS = ("id", "question", "question_type", "answer", "full_answer", "group")
MOST_BOXES = 40
"""The most boxes without a warning: the labels of more can hardly be kept apart."""
ALL_BOXES = 99
"""The most boxes: ``R100`` is not recognised in all texts, and placing the labels of more boxes takes seconds an image."""
ALL_STEPS = 200
"""The most steps: each wrong run is asked with all steps before it, so the cost grows with the square of the chain."""
# control characters, halves of characters, ends of lines and paragraphs
_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")


KINDS: tuple[str, ...] = get_args(formats.FaultKind)
"""The kinds of faults, in the order in which counts are shown."""


@dataclass(frozen=True)
class Fault:
    """A fault of a dataset.

    Attributes:
        line: in the file, from 1 (the row of a parquet file or a hub dataset); 0: the file as a whole.
        item: the item's id; "" where it could not be read.
        key: place in the row, as ``boxes[2].relevant`` (places from 1, as in R2); "": the whole line.
        message: what is wrong, and what is allowed.
        level: ``error`` (the item is left out of runs) or ``warning``.
        kind: one of ``KINDS``.
    """

    line: int
    item: str
    key: str
    message: str
    level: str = "error"
    kind: str = "value wrong"

    def __str__(self) -> str:
        where = f"line {self.line}" if self.line else "file"
        return f"{where}{f' ({self.item})' if self.item else ''}: {self.level}: {f'{self.key}: ' if self.key else ''}{self.message}"


@dataclass
class Faults:
    """The faults of a line, collected while the line is read."""

    line: int
    item: str = ""
    found: list[Fault] = field(default_factory=list)

    def error(self, key: str, message: str, kind: str = "value wrong") -> None:
        """Note a fault for which runs leave the item out."""
        self.found.append(Fault(self.line, self.item, key, message, "error", kind))

    def warn(self, key: str, message: str, kind: str) -> None:
        """Note a fault with which runs still use the item."""
        self.found.append(Fault(self.line, self.item, key, message, "warning", kind))

    @property
    def fatal(self) -> bool:
        """Whether there is an error among the faults."""
        return any(fault.level == "error" for fault in self.found)


def parse(row: Any, faults: Faults) -> MagicItem | None:
    """Convert a row to an item; None, with at least an error noted, where the row cannot be used.

    Args:
        row: an object of the JSONL file, or a row of a table, where null means absent.
        faults: takes what is found; its ``item`` is set.
    """
    if not isinstance(row, Mapping):
        faults.error("", f"the line must be a JSON object {{...}}, not {_kind(row)}", "line unreadable")
        return None
    identity = row.get("id")
    faults.item = printable(identity) if isinstance(identity, str) else ""
    values = _values(row, formats.MagicItem, ("schema", *_TEXTS), faults)
    if not is_id(values["id"]):
        faults.error(
            "id",
            f"{_short(values['id'])} holds a control character or a line end, which files and terminals do not keep",
        )
    image = _image(row, faults)
    boxes, count = _boxes(row.get("boxes"), faults)
    item = MagicItem(
        image=image,
        type=values.pop("question_type"),
        boxes=tuple(boxes),
        steps=_steps(row.get("steps"), count, faults),
        more={key: value for key, value in row.items() if key not in KEYS},
        **{key: values[key] for key in _TEXTS if key in values},
    )
    if not item.full_answer:
        faults.warn(
            "full_answer",
            "is empty: the accuracy against full answers is not defined for this item",
            "full answer missing",
        )
    return None if faults.fatal else item


def to_row(item: MagicItem) -> dict[str, Any]:
    """Return an item as a row, in plain JSON types; ``parse`` gives the same item again."""
    return {
        "schema": SCHEMA,
        "id": item.id,
        "image": item.image,
        "question": item.question,
        "question_type": item.type,
        "answer": item.answer,
        "full_answer": item.full_answer,
        "boxes": [
            {"box": [b.left, b.top, b.right, b.bottom], "relevant": b.relevant, "label": b.label} for b in item.boxes
        ],
        "steps": [{"text": step.text, "correct": step.correct, "correction": step.correction} for step in item.steps],
        "group": item.group,
        **{key: value for key, value in item.more.items() if key not in KEYS},
    }


def check_size(boxes: Any, size: tuple[int, int], faults: Faults) -> None:
    """Note every box beyond the right or lower edge of the image.

    Args:
        boxes: ``boxes`` of a row, unchecked: entries that are not boxes are ignored here, since ``parse`` reports them.
        size: width and height (pixels), after EXIF orientation.
        faults: takes what is found.
    """
    if not isinstance(boxes, Sequence) or isinstance(boxes, (str, bytes)):
        return
    for place, one in enumerate(boxes, 1):
        shape = _corners(one.get("box")) if isinstance(one, Mapping) else None
        if shape is not None and (shape[2] > size[0] or shape[3] > size[1]):
            faults.error(
                f"boxes[{place}].box",
                f"{_short(shape)} leaves the image, which is {size[0]} x {size[1]} pixels (upright, after EXIF orientation)",
                "box outside the image",
            )


def _kind(value: Any) -> str:
    names = {
        "NoneType": "nothing",
        "str": "text",
        "bool": "true or false",
        "int": "a number",
        "float": "a number",
        "list": "a list",
        "dict": "an object",
    }
    return names.get(type(value).__name__, type(value).__name__)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def printable(text: str) -> str:
    r"""Escape characters lost in files and terminals (``\x1b``, line ends, ``\ud800``).

    >>> printable("q\ud8001")
    'q\\ud8001'
    """
    return "".join(c.encode("unicode_escape").decode() if unicodedata.category(c) in _UNPRINTABLE else c for c in text)


def is_id(text: str) -> bool:
    """Return whether a text can be an item's id: no character needs escaping."""
    return printable(text) == text


def unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON file, for ``object_pairs_hook``.

    Raises:
        ValueError: a key occurs twice, so that its value is ambiguous.
    """
    out = dict(pairs)
    if len(out) != len(pairs):
        times = Counter(key for key, _ in pairs)
        raise ValueError(
            f"the key {_short(next(key for key, _ in pairs if times[key] > 1))} stands twice in one object"
        )
    return out


def noting_repeats(repeats: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return an ``object_pairs_hook`` to accept duplicate keys, with a printable line for each in ``repeats``."""

    def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        try:
            return unique_keys(pairs)
        except ValueError as error:
            repeats.append(printable(str(error)))
            return dict(pairs)

    return noted


def _values(
    row: Mapping[str, Any], kind: type[Struct], keys: Sequence[str], faults: Faults, where: str = "", wrong: str = ""
) -> dict[str, Any]:
    """Return some keys of an object as its type has them.

    Note a fault for each that is not, and return "" in its place.

    Args:
        row: the object; null means absent.
        kind: its type.
        keys: those to read.
        faults: takes what is found.
        where: place of the object in the row.
        wrong: kind of all faults; empty: by what is found.
    """
    out: dict[str, Any] = dict.fromkeys(keys, "")
    for one in fields(kind):
        key, value = one.name, row.get(one.name)
        if key not in keys or (value is None and not one.required):
            continue
        if key == "schema" and isinstance(value, float) and value == SCHEMA:
            # A table column with whole numbers and nulls is stored as floats: 1 comes as 1.0.
            value = SCHEMA
        said, found = fault(value, one.type).removeprefix("it "), "value wrong"
        if value is None or (said and one.required and isinstance(value, str) and not value.strip()):
            said, found = "is empty" if value is not None else "is null" if key in row else "is missing", "key missing"
        elif said and key == "schema":
            said, found = (
                f"{_short(value)} is a form that this version does not know; allowed: {SCHEMA}",
                "form unknown",
            )
        elif isinstance(value, str) and not is_writable(value):
            said = "holds half a character (a lone surrogate such as \\ud800), which no file can hold"
        if said:
            faults.error(f"{where}.{key}" if where else key, said, wrong or found)
        else:
            out[key] = value
    return out


def is_writable(text: str) -> bool:
    """Return whether a text can be written as UTF-8: JSON can spell lone surrogates, which UTF-8 cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _image(row: Mapping[str, Any], faults: Faults) -> str:
    """Return the path of the image; "" where the image itself is in the row."""
    value = row.get("image")
    # parquet files may hold the image itself, alone or as ``datasets`` writes it: {bytes, path}
    if isinstance(value, (bytes, bytearray)):
        return ""
    if isinstance(value, Mapping):
        if value.get("bytes") is not None:
            return ""
        if isinstance(value.get("path"), str):
            value = value["path"]
    if isinstance(value, str) and "://" in value:
        faults.error(
            "image",
            f"{_short(value)} is an address; download the image, and give its path relative to the file",
            "image missing",
        )
        return ""
    return str(_values({"image": value} if "image" in row else {}, formats.MagicItem, ("image",), faults)["image"])


def _boxes(value: Any, faults: Faults) -> tuple[list[Box], int | None]:
    """Return the boxes without faults, and the length of the list.

    (empty, None) where there is no list.
    """
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        faults.error(
            "boxes",
            "is missing" if value is None else f"must be a list of boxes, not {_kind(value)}",
            "key missing" if value is None else "value wrong",
        )
        return [], None
    if len(value) > ALL_BOXES:
        faults.error("boxes", f"{len(value)} boxes; at most {ALL_BOXES} can be drawn with their numbers", "many boxes")
        return [], len(value)
    # The place numbers the box, so a faulty box is left out only after numbering.
    boxes = [_box(one, f"boxes[{place}]", faults) for place, one in enumerate(value, 1)]
    _check_set(value, faults)
    return [box for box in boxes if box is not None], len(value)


def _check_set(boxes: Sequence[Any], faults: Faults) -> None:
    """Note faults of an item's boxes as a set; invalid marks and corners are reported elsewhere."""
    marks = [one.get("relevant") if isinstance(one, Mapping) else None for one in boxes]
    # true of a list without boxes, too
    if all(mark is False for mark in marks):
        faults.error(
            "boxes",
            'no box is relevant: recall is not defined; mark at least one with "relevant": true',
            "no relevant box",
        )
    elif all(mark is True for mark in marks):
        faults.warn(
            "boxes", "no box is adversarial: a model that names every box has full precision here", "no adversarial box"
        )
    if len(boxes) > MOST_BOXES:
        faults.warn(
            "boxes", f"{len(boxes)} boxes; more than {MOST_BOXES} can hardly be told apart on an image", "many boxes"
        )
    seen: dict[tuple[int, int, int, int], int] = {}
    for place, (one, mark) in enumerate(zip(boxes, marks, strict=True), 1):
        corners = _corners(one.get("box")) if isinstance(one, Mapping) else None
        if corners is None or not isinstance(mark, bool):
            continue
        first = seen.setdefault(corners, place)
        if first == place:
            continue
        if marks[first - 1] != mark:
            faults.error(
                f"boxes[{place}]",
                f"is the same rectangle as boxes[{first}], once relevant and once not",
                "same box, relevant and not",
            )
        else:
            faults.warn(f"boxes[{place}]", f"is the same rectangle as boxes[{first}]", "same box twice")


def _box(value: Any, key: str, faults: Faults) -> Box | None:
    """Return an entry as a box; None, with the fault noted, for a faulty entry."""
    if not isinstance(value, Mapping):
        faults.error(
            key,
            f'must be an object {{"box": [left, top, right, bottom], "relevant": true}}, not {_kind(value)}',
            "box wrong",
        )
        return None
    before, corners = len(faults.found), _corners(value.get("box"))
    if corners is None:
        faults.error(
            f"{key}.box",
            f"must be 4 whole numbers [left, top, right, bottom] in pixels, not {_short(value.get('box'))}",
            "box wrong",
        )
    values = _values(value, formats.BoxJson, ("relevant", "label"), faults, key, "box wrong")
    if corners is not None:
        left, top, right, bottom = corners
        shape = _short(list(corners))
        if right <= left or bottom <= top:
            faults.error(
                f"{key}.box", f"{shape} has no area; needed: left < right and top < bottom", "box without area"
            )
        if left < 0 or top < 0:
            faults.error(
                f"{key}.box", f"{shape} leaves the image: left and top must be 0 or more", "box outside the image"
            )
    return Box(*corners, **values) if corners is not None and len(faults.found) == before else None


def _corners(value: Any) -> tuple[int, int, int, int] | None:
    """Return left, top, right and bottom; None where a value is not a box of 4 whole numbers."""
    if (
        not isinstance(value, Sequence)
        or isinstance(value, (str, bytes))
        or len(value) != 4
        or not all(map(_is_whole, value))
    ):
        return None
    left, top, right, bottom = (int(number) for number in value)
    return left, top, right, bottom


def _is_whole(number: Any) -> bool:
    return not isinstance(number, bool) and (
        isinstance(number, int) or (isinstance(number, float) and number.is_integer())
    )


def _steps(value: Any, count: int | None, faults: Faults) -> tuple[Step, ...]:
    """Return the steps; ``count`` is the number of boxes, or None where unknown."""
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        faults.error("steps", f"must be a list of steps, not {_kind(value)}")
        return ()
    if len(value) > ALL_STEPS:
        faults.error("steps", f"{len(value)} steps; at most {ALL_STEPS} are read")
        return ()
    steps = []
    for place, one in enumerate(value, 1):
        step = _step(one, f"steps[{place}]", faults)
        if step is not None:
            steps.append(step)
            if count is not None:
                _check_names(step, count, f"steps[{place}]", faults)
    return tuple(steps)


def _step(value: Any, key: str, faults: Faults) -> Step | None:
    if not isinstance(value, Mapping):
        faults.error(key, f'must be an object {{"text": ..., "correct": true}}, not {_kind(value)}')
        return None
    before = len(faults.found)
    values = _values(value, formats.StepJson, ("text", "correct", "correction"), faults, key)
    fatal, step = len(faults.found) > before, Step(**values)
    if step.correct is True and step.correction.strip():
        faults.warn(
            f"{key}.correction",
            "the step is correct and has a correction; it is not used",
            "correction of a correct step",
        )
    elif step.correct is False and not step.correction.strip():
        faults.warn(
            f"{key}.correction",
            "is missing: the step is wrong, and Self-Heal cannot tell whether a model repairs it",
            "correction missing",
        )
    return None if fatal else step


def _check_names(step: Step, count: int, key: str, faults: Faults) -> None:
    """Note boxes named in a step but missing in the item.

    In a wrong step the name may be the very error, so there it is a warning.
    """
    # here, since compiling its patterns takes seconds, and many datasets have no steps
    from lmms_patch.magic.score.extract import regions

    allowed = f"the item has {f'R1 to R{count}' if count > 1 else 'R1 alone' if count else 'no box'}"
    for part, text, note in (
        ("text", step.text, faults.error if step.correct else faults.warn),
        ("correction", step.correction, faults.error),
    ):
        invented = sorted(regions(text, count).invented) if text else []
        if invented:
            note(
                f"{key}.{part}",
                f"names {', '.join(f'R{number}' for number in invented)}, but {allowed}",
                "box named that is not there",
            )
