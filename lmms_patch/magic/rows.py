"""Conversion between a row of a MAGIC dataset and an item, with every fault of the row. Pure.

The schema ``magic-item`` describes the form. What the schema cannot say (the image, duplicate ids, boxes against the image's size) is checked in
``dataset``.

Levels: an ``error`` means that the item cannot be used, and runs leave it out. A ``warning`` means that some number may not be defined for it, or
that a human should look. Every fault has one of ``KINDS``, by which faults are counted.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmms_patch.magic.items import SCHEMA, TYPES, Box, MagicItem, Step

KEYS = ("schema", "id", "image", "question", "question_type", "answer", "full_answer", "boxes", "steps", "group")
"""The keys of a row; ``MagicItem.more`` keeps all others."""
MOST_BOXES = 40
"""The most boxes without a warning: the labels of more can hardly be kept apart."""
ALL_BOXES = 99
"""The most boxes: ``R100`` is not recognised in all texts, and placing the labels of more boxes takes seconds an image."""
ALL_STEPS = 200
"""The most steps: each wrong run is asked with all steps before it, so the cost grows with the square of the chain."""
_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")  # control characters, halves of characters, ends of lines and paragraphs


KINDS = (
    "no item",
    "line unreadable",
    "form unknown",
    "key missing",
    "value wrong",
    "id twice",
    "ids alike",
    "image missing",
    "image unreadable",
    "box wrong",
    "box without area",
    "box outside the image",
    "no relevant box",
    "same box, relevant and not",
    "box named that is not there",
    "same box twice",
    "no adversarial box",
    "many boxes",
    "number in another box",
    "full answer missing",
    "correction missing",
    "correction of a correct step",
)
"""The kinds of faults, in the order in which counts are shown; docs/magic.md says what to do about each."""


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
    """The faults of one line, collected while it is read."""

    line: int
    item: str = ""
    found: list[Fault] = field(default_factory=list)

    def error(self, key: str, message: str, kind: str = "value wrong") -> None:
        """Note a fault that makes the item unusable."""
        self.found.append(Fault(self.line, self.item, key, message, "error", kind))

    def warn(self, key: str, message: str, kind: str) -> None:
        """Note a fault that leaves the item usable."""
        self.found.append(Fault(self.line, self.item, key, message, "warning", kind))

    @property
    def fatal(self) -> bool:
        """Whether there is an error among the faults."""
        return any(fault.level == "error" for fault in self.found)


def parse(row: Any, faults: Faults) -> MagicItem | None:
    """Convert a row to an item; return None, and note at least one error, where it cannot be used.

    Args:
        row: an object of the JSONL file, or a row of a table, where null means absent.
        faults: takes what is found; its ``item`` is set.
    """
    if not isinstance(row, Mapping):
        faults.error("", f"the line must be a JSON object {{...}}, not {_kind(row)}", "line unreadable")
        return None
    identity = row.get("id")
    faults.item = printable(identity) if isinstance(identity, str) else ""
    version = row.get("schema")
    if version is not None and (version != SCHEMA or isinstance(version, bool)):
        faults.error("schema", f"{_short(version)} is a form that this version does not know; allowed: {SCHEMA}", "form unknown")
    boxes, count = _boxes(row.get("boxes"), faults)
    kind = _text(row, "question_type", faults, required=False)
    if kind and kind not in TYPES:
        faults.error("question_type", f"{_short(kind)} is unknown; allowed: {', '.join(TYPES)}, or leave it out")
    item = MagicItem(
        id=_identity(row, faults),
        image=_image(row, faults),
        question=_text(row, "question", faults),
        type=kind,
        answer=_text(row, "answer", faults),
        full_answer=_text(row, "full_answer", faults, required=False),
        boxes=tuple(boxes),
        steps=_steps(row.get("steps"), count, faults),
        group=_text(row, "group", faults, required=False),
        more={key: value for key, value in row.items() if key not in KEYS},
    )
    if not item.full_answer:
        faults.warn("full_answer", "is empty: the accuracy against full answers is not defined for this item", "full answer missing")
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
        "boxes": [{"box": [b.left, b.top, b.right, b.bottom], "relevant": b.relevant, "label": b.label} for b in item.boxes],
        "steps": [{"text": step.text, "correct": step.correct, "correction": step.correction} for step in item.steps],
        "group": item.group,
        **{key: value for key, value in item.more.items() if key not in KEYS},
    }


def check_size(boxes: Any, size: tuple[int, int], faults: Faults) -> None:
    """Note every box that leaves an image at its right or lower edge.

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
    r"""Escape the characters of a text that files and terminals do not keep: control characters, line ends, surrogates (``\x1b``, ``\ud800``).

    >>> printable("q\ud8001")
    'q\\ud8001'
    """
    return "".join(c.encode("unicode_escape").decode() if unicodedata.category(c) in _UNPRINTABLE else c for c in text)


def is_id(text: str) -> bool:
    """Tell whether a text can be an item's id: no character of it needs escaping."""
    return printable(text) == text


def unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON file, for ``object_pairs_hook``.

    Raises:
        ValueError: a key occurs twice, so that its value is ambiguous.
    """
    out = dict(pairs)
    if len(out) != len(pairs):
        times = Counter(key for key, _ in pairs)
        raise ValueError(f"the key {_short(next(key for key, _ in pairs if times[key] > 1))} stands twice in one object")
    return out


def _identity(row: Mapping[str, Any], faults: Faults) -> str:
    """Return the id of a row; a fault is noted where it is missing or not printable."""
    text = _text(row, "id", faults)
    if not is_id(text):
        faults.error("id", f"{_short(text)} holds a control character or a line end, which files and terminals do not keep")
    return text


def _text(row: Mapping[str, Any], key: str, faults: Faults, required: bool = True) -> str:
    """Return a text of the row; "" where it is missing, empty or no text. A fault is noted, unless the text may be missing."""
    value = row.get(key)
    if value is None:
        if required:
            faults.error(key, "is missing" if key not in row else "is null; it must be text", "key missing")
        return ""
    if not isinstance(value, str):
        faults.error(key, f"must be text in quotes, not {_kind(value)} ({_short(value)})")
        return ""
    if required and not value.strip():
        faults.error(key, "is empty", "key missing")
    if not is_writable(value):
        faults.error(key, "holds half a character (a lone surrogate such as \\ud800), which no file can hold")
        return ""
    return value


def is_writable(text: str) -> bool:
    """Tell whether a text can be written as UTF-8: JSON can spell lone surrogates, which UTF-8 cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _image(row: Mapping[str, Any], faults: Faults) -> str:
    """Return the path of the image; "" where the image itself is in the row."""
    value = row.get("image")
    if isinstance(value, (bytes, bytearray)):
        return ""
    if isinstance(value, Mapping):
        if value.get("bytes") is not None:
            return ""
        if isinstance(value.get("path"), str):
            value = value["path"]
    if isinstance(value, str) and "://" in value:
        faults.error("image", f"{_short(value)} is an address; download the image, and give its path relative to the file", "image missing")
        return ""
    return _text({"image": value} if "image" in row else {}, "image", faults)


def _boxes(value: Any, faults: Faults) -> tuple[list[Box], int | None]:
    """Return the boxes without a fault of their own, and the length of the list; (empty, None) where there is no list."""
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
    good = [_check_box(one, f"boxes[{place}]", faults) for place, one in enumerate(value, 1)]
    _check_set(value, faults)
    made = [(_corners(one["box"]), one) for one, fine in zip(value, good, strict=True) if fine]
    return [Box(*corners, one["relevant"], one.get("label") or "") for corners, one in made if corners is not None], len(value)


def _check_set(boxes: Sequence[Any], faults: Faults) -> None:
    """Note faults of an item's boxes as a set; invalid marks and corners are reported elsewhere."""
    marks = [one.get("relevant") if isinstance(one, Mapping) else None for one in boxes]
    if all(mark is False for mark in marks):
        faults.error("boxes", 'no box is relevant: recall is not defined; mark at least one with "relevant": true', "no relevant box")
    elif all(mark is True for mark in marks):
        faults.warn("boxes", "no box is adversarial: a model that names every box has full precision here", "no adversarial box")
    if len(boxes) > MOST_BOXES:
        faults.warn("boxes", f"{len(boxes)} boxes; more than {MOST_BOXES} can hardly be told apart on an image", "many boxes")
    seen: dict[tuple[int, int, int, int], int] = {}
    for place, (one, mark) in enumerate(zip(boxes, marks, strict=True), 1):
        corners = _corners(one.get("box")) if isinstance(one, Mapping) else None
        if corners is None or not isinstance(mark, bool):
            continue
        first = seen.setdefault(corners, place)
        if first == place:
            continue
        if marks[first - 1] != mark:
            faults.error(f"boxes[{place}]", f"is the same rectangle as boxes[{first}], once relevant and once not", "same box, relevant and not")
        else:
            faults.warn(f"boxes[{place}]", f"is the same rectangle as boxes[{first}]", "same box twice")


def _check_box(value: Any, key: str, faults: Faults) -> bool:
    """Tell whether an entry is a box; its faults are noted."""
    if not isinstance(value, Mapping):
        faults.error(key, f'must be an object {{"box": [left, top, right, bottom], "relevant": true}}, not {_kind(value)}', "box wrong")
        return False
    before = len(faults.found)
    corners, relevant, label = _corners(value.get("box")), value.get("relevant"), value.get("label")
    if corners is None:
        faults.error(f"{key}.box", f"must be 4 whole numbers [left, top, right, bottom] in pixels, not {_short(value.get('box'))}", "box wrong")
    if not isinstance(relevant, bool):
        said = "is missing; allowed: true, false" if relevant is None else f"must be true or false, not {_short(relevant)}"
        faults.error(f"{key}.relevant", said, "box wrong")
    if label is not None and (not isinstance(label, str) or not is_writable(label)):
        said = "holds half a character (a lone surrogate)" if isinstance(label, str) else f"must be text, not {_kind(label)}"
        faults.error(f"{key}.label", said, "box wrong")
    if corners is not None:
        left, top, right, bottom = corners
        shape = _short(list(corners))
        if right <= left or bottom <= top:
            faults.error(f"{key}.box", f"{shape} has no area; needed: left < right and top < bottom", "box without area")
        if left < 0 or top < 0:
            faults.error(f"{key}.box", f"{shape} leaves the image: left and top must be 0 or more", "box outside the image")
    return len(faults.found) == before


def _corners(value: Any) -> tuple[int, int, int, int] | None:
    """Return left, top, right and bottom; None where a value is not a box of 4 whole numbers."""
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)) or len(value) != 4 or not all(map(_is_whole, value)):
        return None
    left, top, right, bottom = (int(number) for number in value)
    return left, top, right, bottom


def _is_whole(number: Any) -> bool:
    return not isinstance(number, bool) and (isinstance(number, int) or (isinstance(number, float) and number.is_integer()))


def _steps(value: Any, count: int | None, faults: Faults) -> tuple[Step, ...]:
    """Return the steps; ``count`` is the number of boxes, None where it is not known."""
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
    inner = Faults(faults.line, faults.item)
    text = _text(value, "text", inner)
    correction = _text(value, "correction", inner, required=False)
    correct = value.get("correct")
    if not isinstance(correct, bool):
        inner.error("correct", "is missing; allowed: true, false" if correct is None else f"must be true or false, not {_short(correct)}")
    elif correct and correction.strip():
        inner.warn("correction", "the step is correct and has a correction; it is not used", "correction of a correct step")
    elif not correct and not correction.strip():
        inner.warn("correction", "is missing: the step is wrong, and Self-Heal cannot tell whether a model repairs it", "correction missing")
    faults.found += [replace(fault, key=f"{key}.{fault.key}") for fault in inner.found]
    return None if inner.fatal else Step(text, bool(correct), correction)


def _check_names(step: Step, count: int, key: str, faults: Faults) -> None:
    """Note boxes that a step names and the item does not have. In a wrong step the name may be the very error, so there it is a warning."""
    from lmms_patch.magic.score.extract import regions

    allowed = f"the item has {f'R1 to R{count}' if count > 1 else 'R1 alone' if count else 'no box'}"
    for part, text, note in (("text", step.text, faults.error if step.correct else faults.warn), ("correction", step.correction, faults.error)):
        invented = sorted(regions(text, count).invented) if text else []
        if invented:
            note(f"{key}.{part}", f"names {', '.join(f'R{number}' for number in invented)}, but {allowed}", "box named that is not there")
