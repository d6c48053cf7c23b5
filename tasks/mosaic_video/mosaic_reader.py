"""``mosaic_reader``: answers the questions of ``mosaic_video`` by reading the digits in the frames that it is handed.

It needs no GPU.

The reader finds dark shapes in each frame, names them by their nearest neighbour among scans that no clip shows, and
answers from the places and frames where it saw a digit. It knows the question, the pixels and nothing else. Where the
frames lack the evidence it says ``unknown``, except: it counts what it saw, and it says ``no`` when it did not see both
digits that a question of order names.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import av
import numpy as np
import numpy.typing as npt
from accelerate import Accelerator
from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms
from PIL import Image
from scipy import ndimage

from lmms_patch.errors import CannotWrapError, OptionError, unknown
from lmms_patch.harness.refuse import refuse
from lmms_patch.resources import folder

UNKNOWN = "unknown"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SIDE = 10
"""Shapes are compared as squares of this many pixels."""
PRINTED = 21
"""Size in pixels at which the scans are learned. The digits of the clips are about as large."""
SMALLEST, LARGEST = 8, 40
"""The larger side, in pixels, of a dark shape that is looked at. Smaller ones are dirt, larger ones are painted over."""
NEAR = 8
"""Two shapes whose centres are at most this many pixels apart, in each direction, are in the same place."""
REMEMBERED = 4096
"""How many frames are kept read. The views of a doc share their frames."""
FROM_HOST = {"batch_size", "max_batch_size", "device"}
"""Arguments that the host hands to every model, and that have no use here."""

Frame = npt.NDArray[np.uint8]
"""An RGB frame, (height, width, 3)."""
Floats = npt.NDArray[np.float64]


class Sighting(NamedTuple):
    """A digit in a frame: its value, the pixel of its centre, and the colour of the box around ("" for none)."""

    value: int
    x: float
    y: float
    box: str


class Place(NamedTuple):
    """A digit over the frames of a clip: its value, the frame of its first sighting, and the colour of its box."""

    value: int
    first: int
    box: str


class Digits:
    """Nearest neighbours among scans of digits, and among four plain shapes which are no digits."""

    def __init__(self) -> None:
        with np.load(folder("tasks") / "mosaic_video" / "scans.npz") as stored:
            scans = [
                # the scans have 16 levels of ink, and times 16 the darkest would wrap around to 0
                Image.fromarray(scan * np.uint8(15)).resize((PRINTED, PRINTED), Image.Resampling.BICUBIC)
                for scan in stored["images"]
            ]
            labels: list[int | None] = stored["labels"].tolist()
        plain = plain_shapes()
        # with paper around each scan, so that its strokes do not touch the edge
        drawn = [np.pad(np.asarray(scan) / 255, 2) for scan in scans] + plain
        self._vectors = np.stack([shapes(ink)[0][0] for ink in drawn])
        self._labels = labels + [None] * len(plain)

    def name(self, vector: Floats) -> int | None:
        """Return the digit most like a shape; None for a shape which is no digit."""
        return self._labels[int(np.argmax(self._vectors @ vector))]


def plain_shapes() -> list[Floats]:
    """Return a disc, a square, a bar and a triangle as ink, each (25, 25)."""
    y, x = np.mgrid[-1.25:1.25:25j, -1.25:1.25:25j]
    return [
        (inside & (abs(y) <= 1)).astype(float)
        for inside in (x**2 + y**2 <= 1, abs(x) <= 1, (abs(y) <= 0.4) & (abs(x) <= 1), abs(x) <= (y + 1) / 2)
    ]


def shapes(ink: Floats) -> list[tuple[Floats, float, float]]:
    """Return the dark shapes of a picture: each as a vector of length 1, and the x and y of its centre in pixels.

    Args:
        ink: (height, width), from 0 (paper) to 1 (ink).
    """
    dark = ink > 0.35
    # a stroke with a gap of a pixel or two is one shape
    numbered, _ = ndimage.label(ndimage.binary_dilation(dark), np.ones((3, 3)))
    found = []
    for number, where in enumerate(ndimage.find_objects(numbered), 1):
        rows, columns = (np.flatnonzero(((numbered[where] == number) & dark[where]).any(axis)) for axis in (1, 0))
        top, left = where[0].start + rows[0], where[1].start + columns[0]
        height, width = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
        side = max(height, width)
        if not SMALLEST <= side <= LARGEST:
            continue
        square = np.zeros((side, side), np.float32)
        square[(side - height) // 2 :, (side - width) // 2 :][:height, :width] = ink[
            top : top + height, left : left + width
        ]
        vector = np.asarray(Image.fromarray(square).resize((SIDE, SIDE), Image.Resampling.BOX), float).ravel()
        # of length 1, so that the product of two vectors tells how alike they are
        found.append((vector / np.linalg.norm(vector), left + (width - 1) / 2, top + (height - 1) / 2))
    return found


def boxes(frame: Frame) -> dict[str, tuple[int, int, int, int]]:
    """Return left, top, right and bottom pixel of the red and of the blue box, if in the frame."""
    # differences of bytes would wrap around below 0
    red, green, blue = np.moveaxis(frame, 2, 0).astype(np.int16)
    found = {}
    for colour, strength in (("red", red - np.maximum(green, blue)), ("blue", blue - np.maximum(red, green))):
        y, x = np.nonzero(strength > 50)
        if len(y) > 40:
            found[colour] = (int(x.min()), int(y.min()), int(x.max()), int(y.max()))
    return found


class Reader:
    """Reads digits in frames and answers questions about them. Read frames are remembered."""

    def __init__(self) -> None:
        self._digits = Digits()
        self._read: OrderedDict[bytes, list[Sighting]] = OrderedDict()

    def answer(self, question: str, frames: Iterable[Frame]) -> str:
        """Return the answer to a question of ``mosaic_video``, as far as the frames support an answer."""
        # a question that is answered by its text alone
        if word := re.search(r"as the word (\w+)", question):
            return str(WORDS.index(word[1])) if word[1] in WORDS else UNKNOWN
        places = self.places(frames)
        if box := re.search(r"in the (red|blue) box", question):
            return next((str(place.value) for place in places if place.box == box[1]), UNKNOWN)
        if question.startswith("How many digits"):
            return str(len(places))
        if asked := re.search(r"the (\d) appear before the (\d)", question):
            first, second = (
                min((place.first for place in places if place.value == int(digit)), default=None)
                for digit in asked.groups()
            )
            return "yes" if first is not None and second is not None and first < second else "no"
        return UNKNOWN

    def places(self, frames: Iterable[Frame]) -> list[Place]:
        """Return the places of digits, each with its most frequent value, in the order of their first frames."""
        seen: list[list[tuple[int, Sighting]]] = []
        for number, frame in enumerate(frames):
            for sighting in self.see(frame):
                for place in seen:
                    if max(abs(place[0][1].x - sighting.x), abs(place[0][1].y - sighting.y)) <= NEAR:
                        place.append((number, sighting))
                        break
                else:
                    seen.append([(number, sighting)])
        return [
            Place(Counter(one.value for _, one in place).most_common(1)[0][0], place[0][0], place[0][1].box)
            for place in seen
        ]

    def see(self, frame: Frame) -> list[Sighting]:
        """Return the digits in a frame."""
        # the shape is part of the key: frames of different shapes may have the same bytes
        key = blake2b(frame.tobytes(), digest_size=16, person=b"%dx%d" % frame.shape[:2]).digest()
        if key not in self._read:
            self._read[key] = self._see(frame)
            if len(self._read) > REMEMBERED:
                self._read.popitem(last=False)
        return self._read[key]

    def _see(self, frame: Frame) -> list[Sighting]:
        red, green, blue = np.moveaxis(frame, 2, 0)
        brightest = np.maximum(np.maximum(red, green), blue)
        # the boxes are bright in their colour, so they are no ink
        ink = ((195 - brightest.astype(float)) / 165).clip(0, 1)
        around = boxes(frame)
        found = []
        for vector, x, y in shapes(ink):
            value = self._digits.name(vector)
            if value is not None:
                inside = (
                    colour
                    for colour, (left, top, right, bottom) in around.items()
                    if left < x < right and top < y < bottom
                )
                found.append(Sighting(value, x, y, next(inside, "")))
        return found


def frames_of(medium: Any, most: int) -> list[Frame]:
    """Return the frames of a video file, taken uniformly as by the host's adapters; or an image as a single frame.

    Args:
        medium: the path of a video or an image, a PIL image, or an array (height, width, 3).
        most: how many frames to take of a video that has more.
    """
    if isinstance(medium, np.ndarray):
        return [medium]
    if isinstance(medium, Image.Image):
        return [np.asarray(medium.convert("RGB"))]
    if not isinstance(medium, str):
        raise CannotWrapError(
            f"mosaic_reader reads paths of videos and images, and images, not a {type(medium).__name__}"
        )
    with av.open(medium) as container:
        # some files do not say how many frames they have
        total = container.streams.video[0].frames or sum(1 for _ in container.decode(video=0))
    wanted, frames = set(uniform(total, most)), []
    with av.open(medium) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number in wanted:
                frames.append(np.asarray(frame.to_ndarray(format="rgb24"), np.uint8))
    return frames


def uniform(total: int, most: int) -> list[int]:
    """Return the numbers of at most ``most`` of ``total`` frames, at equal distances, from the first to the last."""
    return [int(number) for number in np.linspace(0, total - 1, min(most, total), dtype=int)]


class MosaicReader(lmms):
    """``--model mosaic_reader``: the reader behind the host's simple interface.

    Model arguments: ``max_num_frames`` (32), the number of frames that are taken of a clip.
    """

    is_simple = True

    def __init__(self, max_num_frames: int = 32, **other: Any) -> None:
        super().__init__()
        if odd := sorted(set(other) - FROM_HOST):
            refuse(OptionError(f"--model_args of mosaic_reader: {unknown(odd[0], ['max_num_frames'])}"))
        # ``type``, since ``isinstance`` takes True for a whole number
        if type(max_num_frames) is not int or max_num_frames < 1:
            refuse(
                OptionError(
                    f"--model_args of mosaic_reader: max_num_frames must be a whole number of at least 1, not {max_num_frames!r}"
                )
            )
        self.max_num_frames = max_num_frames
        self.accelerator = Accelerator()
        self._rank, self._world_size = self.accelerator.process_index, self.accelerator.num_processes
        self._reader = Reader()

    @property
    def device(self) -> Any:
        """The device where the host gathers the counts of all ranks."""
        return self.accelerator.device

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Return the answers in the order of the requests."""
        return [self._reader.answer(text, self._frames(media)) for text, media in map(self._shown, requests)]

    def _shown(self, request: Instance) -> tuple[str, list[Any]]:
        """Return the text and the media of a request."""
        text, _, doc_to_visual, doc_id, task, split = request.args
        return text, doc_to_visual(self.task_dict[task][split][doc_id]) or [] if doc_to_visual else []

    def _frames(self, media: Sequence[Any]) -> list[Frame]:
        """Return the frames of all media: of clips, or images as the frames of a clip."""
        frames = [frame for medium in media for frame in frames_of(medium, self.max_num_frames)]
        return [frames[number] for number in uniform(len(frames), self.max_num_frames)]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError("mosaic_reader answers with a text")

    def generate_until_multi_round(self, requests: list[Instance]) -> list[str]:
        raise NotImplementedError("mosaic_reader answers in one round")


class MosaicReaderChat(MosaicReader):
    """The same reader behind the host's chat interface."""

    is_simple = False

    def _shown(self, request: Instance) -> tuple[str, list[Any]]:
        """Return the text and the media of a request."""
        _, doc_to_messages, _, doc_id, task, split = request.args
        contents = [message["content"] for message in doc_to_messages(self.task_dict[task][split][doc_id])]
        parts: list[Mapping[str, Any]] = [
            part
            for content in contents
            for part in ([{"type": "text", "text": content}] if isinstance(content, str) else content)
        ]
        return "\n".join(part["text"] for part in parts if part["type"] == "text"), [
            part["url"] for part in parts if part["type"] in ("image", "video")
        ]
