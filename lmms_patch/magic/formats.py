"""The types of the lines of a MAGIC dataset."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lmms_patch.stats.bounds import Count

FaultKind = Literal[
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
    "box hidden",
    "full answer missing",
    "correction missing",
    "correction of a correct step",
]


class BoxJson(Struct, kw_only=True):
    """A box on the image.

    Attributes:
        box: [left, top, right, bottom] in pixels of the upright image (EXIF orientation applied), half-open: left <
        right, top < bottom
        relevant: true: the answer needs it; false: adversarial
        label: what it shows, where that is known; models do not see it
    """

    box: Annotated[list[Count], Meta(min_length=4, max_length=4)]
    relevant: bool
    label: str | UnsetType | None = UNSET


class StepJson(Struct, kw_only=True):
    """A step of a reasoning chain.

    Attributes:
        text: one sentence
        correct: whether annotators marked it correct
        correction: what a wrong step should say: a complete rewrite; empty where the step is correct
    """

    text: Annotated[str, Meta(pattern="\\S")]
    correct: bool
    correction: str | UnsetType | None = UNSET


class MagicItem(Struct, kw_only=True):
    """One line of a MAGIC dataset (JSONL, or parquet with these columns): a question about an image with relevant and adversarial boxes.

    `lmms-patch magic check` also looks at what a schema cannot say: the image, boxes against its size, duplicate ids,
    boxes that steps name.

    Attributes:
        schema: version of the form; absent: 1
        id: unique in the file
        image: path of the image, relative to the file; in a parquet file it may be the image itself ({bytes, path})
        question_type: empty or absent: not known
        answer: short gold answer
        full_answer: gold answer as a sentence; empty: the accuracy against full answers is not defined for the item
        boxes: R1 is the first box, in the texts of steps and corrections; models may see them under other numbers. At
        least one must be relevant.
        steps: annotated reasoning chain, one sentence a step; absent where there is none
        group: what is resampled together, as a rule the image; empty: each item for itself
    """

    schema: Literal[1] | UnsetType = UNSET
    id: Annotated[str, Meta(pattern="\\S")]
    image: Annotated[str, Meta(pattern="\\S")]
    question: Annotated[str, Meta(pattern="\\S")]
    question_type: Literal["verify", "query", "choose", "logical", "compare", "", None] | UnsetType = UNSET
    answer: Annotated[str, Meta(pattern="\\S")]
    full_answer: str | UnsetType | None = UNSET
    boxes: Annotated[
        list[BoxJson],
        Meta(extra_json_schema={"contains": {"properties": {"relevant": {"const": True}}, "required": ["relevant"]}}),
    ]
    steps: list[StepJson] | UnsetType | None = UNSET
    group: str | UnsetType | None = UNSET
