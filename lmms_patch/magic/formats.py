"""The types of MAGIC's files: items, labels, and what ``build``, ``check`` and ``stepsense`` write."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lmms_patch.stats.bounds import Count, Share, Some
from lmms_patch.stats.resample import Estimate

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


class Dropped(Struct, kw_only=True):
    """What was dropped, and why.

    Attributes:
        id: the question
    """

    id: str
    reason: str
    detail: str


class MagicBuild(Struct, kw_only=True):
    """The file `build.json` of a dataset that `lmms-patch magic build` made: its settings, counts, and everything that was dropped.

    Attributes:
        settings: that decide the items
        counts: by name
        items: by id, what was noted
    """

    schema: Literal[1]
    settings: dict[str, Any]
    counts: dict[str, Count]
    dropped: list[Dropped]
    items: dict[str, dict[str, Any]]


class FaultCount(Struct, kw_only=True):
    """How often something is wrong.

    Attributes:
        level: error: the item is left out of runs
        kind: what is wrong
        lines: on how many lines
    """

    level: Literal["error", "warning"]
    kind: FaultKind
    faults: Some
    lines: Some


class FaultJson(Struct, kw_only=True):
    """Something that is wrong.

    Attributes:
        line: in the file, from 1 (of a parquet file or a hub dataset: the row); 0: the file as a whole
        item: its id; empty where it could not be read
        key: where in the line, as boxes[2].relevant, places from 1; empty: the whole line
        message: what is wrong, and what is allowed
        level: error: the item is left out of runs
        kind: what is wrong
    """

    line: Count
    item: str
    key: str
    message: str
    level: Literal["error", "warning"]
    kind: FaultKind


class MagicCheck(Struct, kw_only=True):
    """What `lmms-patch magic check --json` writes: every fault of a MAGIC dataset, and what is in it.

    Attributes:
        dataset: the file, or the name on the hub
        items: lines of the file
        usable: lines that runs ask
        kinds: faults counted, errors first
        counts: of the usable items: images, boxes, steps, and the runs of wrong steps that Self-Heal tests or leaves
        out
        faults: in the order of the lines
    """

    schema: Literal[1]
    dataset: str
    items: Count
    usable: Count
    errors: Count
    warnings: Count
    kinds: list[FaultCount]
    counts: dict[str, Count]
    faults: list[FaultJson]


class AgreementJson(Struct, kw_only=True):
    """How far two annotators agree.

    Attributes:
        annotators: the two names; empty: all pairs together
        steps: labelled by both; over pairs: label pairs
    """

    annotators: list[str]
    kappa: Estimate
    agreed: Estimate
    steps: Count


class StepBoundsJson(Struct, kw_only=True):
    """What a judge's scores would be, were all steps without a verdict wrong (low), or all right (high).

    Attributes:
        unjudged: steps without a verdict
    """

    micro_low: Share
    micro_high: Share
    macro_low: Share
    macro_high: Share
    unjudged: Some


class ScoreJson(Struct, kw_only=True):
    """StepSense: the share of reasoning steps that were labelled correct, by human annotators or by a judge model.

    Attributes:
        disputed: steps with both verdicts
        agreement: null: no two annotators share a step
        bounds: null: people, or a judge that gave a verdict on every step
    """

    source: Literal["human", "judge"]
    micro: Estimate
    macro: Estimate
    items: Some
    steps: Some
    annotators: Annotated[list[str], Meta(min_length=1)]
    disputed: Count
    pairs: list[AgreementJson]
    agreement: AgreementJson | None
    bounds: StepBoundsJson | None


class MagicStepsense(Struct, kw_only=True):
    """What `lmms-patch magic stepsense --json` writes: the share of steps labelled correct, and how far annotators agree.

    Attributes:
        scores: by source; people and judges are never mixed
        across: a person and a judge each
        unlabelled: lines without a verdict, by source
        clustered: whether items of one image were kept together
        notes: what else is to be minded
    """

    schema: Literal[1]
    scores: Annotated[list[ScoreJson], Meta(min_length=1)]
    across: list[AgreementJson]
    unlabelled: dict[str, Count]
    clustered: bool
    notes: list[str]
