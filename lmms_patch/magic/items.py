"""An item of a MAGIC dataset, and how its boxes are shown. Pure.

A dataset is a JSONL (or parquet) file, one item a line; docs/magic.md describes every key. Boxes are in pixels of the
image, half-open: ``[left, top, right, bottom)``. In the texts of reasoning steps and corrections a box is named by its
place in the item's list, from 1: ``R2`` is the second box of the line. A model may see other numbers (``shown``): texts
are then renumbered.

Source: MAGIC paper, §3, §4, appendices B to E.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SCHEMA = 1
TYPES = ("verify", "query", "choose", "logical", "compare")
"""The five question types (paper, §3)."""


@dataclass(frozen=True)
class Box:
    """A box of an item.

    Attributes:
        left: pixels.
        top: pixels.
        right: pixels, exclusive.
        bottom: pixels, exclusive.
        relevant: whether the answer needs it; otherwise it is adversarial.
        label: what it shows, where that is known.
    """

    left: int
    top: int
    right: int
    bottom: int
    relevant: bool
    label: str = ""

    @property
    def area(self) -> int:
        """Area in pixels; 0 where the box is empty."""
        return max(0, self.right - self.left) * max(0, self.bottom - self.top)


@dataclass(frozen=True)
class Step:
    """A step of an annotated reasoning chain.

    Attributes:
        text: one sentence.
        correct: whether annotators marked it correct.
        correction: what it should say; "" where it is correct, or nobody wrote a correction.
    """

    text: str
    correct: bool
    correction: str = ""


@dataclass(frozen=True)
class MagicItem:
    """A question with its image, boxes and gold answers.

    Attributes:
        id: unique in its file.
        image: path of the image, relative to the file; "" where the image itself lies in the row (parquet).
        question: the question.
        type: one of ``TYPES``; "" where it is not known.
        answer: short gold answer.
        full_answer: gold answer as a sentence.
        boxes: in the order of the file.
        steps: the annotated reasoning chain; empty where there is none.
        group: what is resampled together (the image); "": each item alone.
        more: other keys of the line, kept as they are.
    """

    id: str
    image: str
    question: str
    type: str
    answer: str
    full_answer: str
    boxes: tuple[Box, ...]
    steps: tuple[Step, ...] = ()
    group: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ShownBoxes:
    """The boxes as a model sees them: the first is R1.

    Attributes:
        places: for each shown box, its place in the item's list, from 0.
        numbers: number in the file (from 1) -> number shown (from 1), for the boxes that are shown.
        relevant: for each shown box, whether it is relevant.
    """

    places: tuple[int, ...]
    numbers: Mapping[int, int]
    relevant: tuple[bool, ...]


def shown(boxes: Sequence[Box], item_id: str, which: str = "all", seed: int = 0) -> ShownBoxes:
    """Choose which boxes are drawn, and number them: relevant and adversarial boxes are mixed in a seeded order.

    The order depends only on the seed and the item's id: neither on other items nor on the order of the file.

    Args:
        boxes: the item's boxes.
        item_id: its id.
        which: ``all`` (the candidate set), ``relevant`` or ``none``.
        seed: of the order.
    """
    # not hash(), which differs from process to process
    stream = np.random.default_rng(int(hashlib.sha256(f"{seed}/{item_id}".encode()).hexdigest()[:16], 16))
    order = [int(place) for place in stream.permutation(len(boxes))]
    kept = [] if which == "none" else [place for place in order if which == "all" or boxes[place].relevant]
    return ShownBoxes(
        tuple(kept),
        {place + 1: number for number, place in enumerate(kept, 1)},
        tuple(boxes[place].relevant for place in kept),
    )
