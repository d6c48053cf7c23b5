"""Questions and scene graphs in GQA's form, for the builder of MAGIC datasets. Pure, except ``load_json``.

Questions: ``{qid: {imageId, question, answer, fullAnswer, types: {structural}, annotations: {question: {span: object
id}, answer, fullAnswer}}}``.
Scenes: ``{imageId: {width, height, objects: {id: {name, x, y, w, h}}}}``. Real files are damaged in places: unusable
entries are returned with a reason instead of raising, so that a build can count them.

Source: GQA (Hudson & Manning, 2019, https://arxiv.org/abs/1902.09506); MAGIC paper, 3.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_patch.errors import PatchError
from lmms_patch.magic.build.saliency import Rect, area
from lmms_patch.magic.draw import clip
from lmms_patch.magic.items import TYPES
from lmms_patch.magic.rows import is_id, is_writable, noting_repeats

# the most pixels of a side or a coordinate
_LARGEST = 1e9
MOST_OBJECTS = 1_000
"""The most objects of a scene: each is compared with each other."""
# the most by which the aspect ratios of a scene and its image may differ (relative)
_SHAPE = 0.01


class BuildError(PatchError):
    """A reason why a MAGIC dataset cannot be built from its inputs."""


class DropError(Exception):
    """A reason why a question gives no item.

    Attributes:
        reason: one of a few, to be counted.
        detail: about this question.
    """

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True)
class Question:
    """A question of GQA.

    Attributes:
        id: its key in the file.
        image: the id of its image.
        text: the question.
        answer: as in ``MagicItem``.
        full_answer: as in ``MagicItem``; may be empty.
        type: one of ``TYPES``, or "" where the file names no known type.
        objects: ids of the scene's objects that its annotations name, sorted.
    """

    id: str
    image: str
    text: str
    answer: str
    full_answer: str
    type: str
    objects: tuple[str, ...]


@dataclass(frozen=True)
class Scene:
    """The objects of an image.

    Attributes:
        boxes: object id -> box on the image (pixels, clipped to it).
        names: object id -> name.
        faults: object id -> why it has no box.
    """

    boxes: Mapping[str, Rect]
    names: Mapping[str, str]
    faults: Mapping[str, str] = field(default_factory=dict)


def load_json(path: str | Path, what: str) -> dict[str, Any]:
    """Read a JSON file with a single object.

    Raises:
        BuildError: the file is missing, truncated, holds something else, or repeats a key in one object (its value
            would be ambiguous).
    """
    twice: list[str] = []
    try:
        # editors on Windows begin a file with a byte-order mark
        data = json.loads(Path(path).read_text(encoding="utf-8-sig"), object_pairs_hook=noting_repeats(twice))
    except json.JSONDecodeError as error:
        raise BuildError(
            f"{path}: the {what} are not JSON ({error.msg} at line {error.lineno}, character {error.colno}); is the file whole?"
        ) from None
    except UnicodeDecodeError as error:
        raise BuildError(f"{path}: the {what} are not UTF-8 text (byte {error.start + 1})") from None
    except (OSError, RecursionError, ValueError) as error:
        raise BuildError(
            f"{path}: the {what} cannot be read: {getattr(error, 'strerror', None) or str(error) or type(error).__name__}"
        ) from None
    if not isinstance(data, dict):
        raise BuildError(f"{path}: the {what} must be one JSON object {{id: ...}}, not a {type(data).__name__}")
    if twice:
        more = f"; in {len(twice)} objects in all" if len(twice) > 1 else ""
        raise BuildError(f"{path}: the {what} are not clear: {twice[0]}{more}; give each entry a key of its own")
    return data


def object_ids(annotations: Any) -> tuple[str, ...]:
    """Return the object ids named in a question's annotations, sorted, without repeats.

    Empty for annotations of unknown form.

    >>> object_ids({"question": {"2": "12", "4:6": "7"}, "answer": {}, "fullAnswer": {"1": "12,13"}})
    ('12', '13', '7')
    """
    return tuple(sorted(set(_ids(annotations))))


def _ids(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _ids(one)
    elif isinstance(value, str):
        yield from (part.strip() for part in value.split(",") if part.strip())
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)


def image_id(data: Any) -> str | None:
    """Return the id of a question's image; None for a missing id, or an id unfit for a file name."""
    value = data.get("imageId") if isinstance(data, Mapping) else None
    # some files have numbers for ids
    name = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    return (
        name
        if name and name == Path(name).name and name not in (".", "..") and "\\" not in name and "\0" not in name
        else None
    )


def question(qid: str, data: Any) -> Question:
    """Convert an entry of the file to a question.

    Raises:
        DropError: ("question damaged") a key is missing or has the wrong type.
    """
    if not isinstance(data, Mapping):
        raise DropError("question damaged", "it is no object")
    if not qid.strip():
        raise DropError("question damaged", "its id is empty")
    if not is_id(qid):
        raise DropError("question damaged", "its id holds a control character or half a character")
    image = image_id(data)
    if image is None:
        raise DropError("question damaged", f"imageId is {data.get('imageId')!r:.60}, which names no image file")
    texts = {}
    for key in ("question", "answer"):
        value = data.get(key)
        if not isinstance(value, str) or not value.strip():
            raise DropError(
                "question damaged",
                f"{key} is missing or empty" if value is None or isinstance(value, str) else f"{key} is no text",
            )
        texts[key] = value
    full = data.get("fullAnswer")
    if not all(is_writable(text) for text in (image, *texts.values(), full) if isinstance(text, str)):
        raise DropError("question damaged", "its text holds half a character (a lone surrogate)")
    objects = object_ids(data.get("annotations"))
    if not all(map(is_writable, objects)):
        raise DropError("question damaged", "its annotations name an object by half a character (a lone surrogate)")
    types = data.get("types")
    kind = types.get("structural") if isinstance(types, Mapping) else None
    return Question(
        id=qid,
        image=image,
        text=texts["question"],
        answer=texts["answer"],
        full_answer=full if isinstance(full, str) else "",
        type=kind if kind in TYPES else "",
        objects=objects,
    )


def scene(data: Any, size: tuple[int, int]) -> Scene:
    """Return the objects of a scene on its image.

    Boxes are scaled where the image is a larger or smaller copy of the scene, rounded outwards, and clipped.

    Args:
        data: the scene's entry in the file.
        size: width and height of the image (pixels), upright.

    Raises:
        DropError: ("scene damaged") no objects, no size; ("scene of another image") its aspect ratio differs from the
            image's.
    """
    objects = data.get("objects") if isinstance(data, Mapping) else None
    if not isinstance(objects, Mapping):
        raise DropError("scene damaged", "it has no objects")
    if len(objects) > MOST_OBJECTS:
        raise DropError("scene damaged", f"it has {len(objects)} objects; at most {MOST_OBJECTS} are read")
    scale = _scale(data, size)
    boxes, names, faults = {}, {}, {}
    # No question can name a key that is not writable.
    for key in sorted(filter(is_writable, objects)):
        one = objects[key]
        extent = _extent(one)
        if extent is None:
            faults[key] = "object without size"
            continue
        x, y, w, h = extent
        edges = (_floor(x * scale[0]), _floor(y * scale[1]), -_floor(-(x + w) * scale[0]), -_floor(-(y + h) * scale[1]))
        box = clip(edges, size)
        if not area(box):
            faults[key] = "object outside the image"
            continue
        boxes[key] = box
        name = one.get("name")
        names[key] = name if isinstance(name, str) and is_writable(name) else ""
    return Scene(boxes, names, faults)


def _extent(one: Any) -> tuple[float, float, float, float] | None:
    """Return left, top, width and height of an object; None where they are missing or invalid."""
    numbers = [one.get(name) for name in ("x", "y", "w", "h")] if isinstance(one, Mapping) else []
    # NaN and infinity, which Python reads in JSON, are not below the limit either
    good = [float(n) for n in numbers if isinstance(n, (int, float)) and not isinstance(n, bool) and abs(n) < _LARGEST]
    return (good[0], good[1], good[2], good[3]) if len(good) == 4 and good[2] > 0 and good[3] > 0 else None


def _floor(value: float) -> int:
    """Round down, but treat 2.9995 as 3: scaling errors are as large."""
    return int((value + 1e-3) // 1)


def _scale(data: Mapping[str, Any], size: tuple[int, int]) -> tuple[float, float]:
    """Return image pixels per scene pixel, across and down.

    Raises:
        DropError: the scene has no size, or its aspect ratio differs from the image's.
    """
    wide, high = data.get("width"), data.get("height")
    if (
        not all(isinstance(n, (int, float)) and not isinstance(n, bool) and 1 <= n < _LARGEST for n in (wide, high))
        or wide is None
        or high is None
    ):
        raise DropError("scene damaged", f"width {wide!r:.20} and height {high!r:.20} are no size")
    scale = (size[0] / wide, size[1] / high)
    # of a small image one rounded pixel changes the shape by more, so sides may also differ by a pixel
    if abs(scale[0] / scale[1] - 1) > _SHAPE and (
        abs(scale[0] * high - size[1]) > 1.5 and abs(scale[1] * wide - size[0]) > 1.5
    ):
        raise DropError(
            "scene of another image", f"the scene is {wide} x {high}, the image {size[0]} x {size[1]} pixels"
        )
    return scale
