"""The types of ``pruned.json``."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lmms_patch.stats.bounds import Count, Number, Share


class PrunedSettings(Struct, kw_only=True):
    """How docs were chosen."""

    budget: Annotated[float, Meta(ge=0)]
    batch: Annotated[float, Meta(ge=0)] | None
    tau: Number | None
    near_chance: bool
    over_pruned: bool
    by: Literal["s_minus_chance", "s", "delta", "blind"]
    strategy: Literal["top", "weighted", "balanced"]
    allocation: Literal["global", "format", "category"] | dict[str, Annotated[float, Meta(ge=0)]]
    seed: int
    fold_seeds: Annotated[int, Meta(ge=1)]
    model: Literal["boosting", "forest", "linear"]
    judge: Literal["boosting", "forest", "linear"]
    folds: Annotated[int, Meta(ge=2, le=50)]
    grouping: str


class ControlJson(Struct, kw_only=True):
    """The comparison with one kind of random removal.

    Attributes:
        match: what the random removals keep
        controls: the judge's accuracy after each of them
        fall: their mean less the accuracy on the kept docs
        shuffled: the same fall with shuffled golds
    """

    match: Literal["category", "format", "none"]
    controls: list[Number]
    fall: Number
    shuffled: list[Number]
    p: Share | None


class JudgedJson(Struct, kw_only=True):
    """What an independent judge says; absent where nothing went, or no model was trained.

    Attributes:
        original: the judge's text-only accuracy on all docs
        compared: with random removal: matched, and unmatched where that is another one
    """

    original: Number
    kept: Number
    compared: list[ControlJson]
    baseline: Number | None
    p_above: Share | None
    p_below: Share | None
    verdict: Literal["reduction", "selection noise", "controls disagree", "over-pruned", "unknown"]
    sentence: str


class BlindModel(Struct, kw_only=True):
    """A model that was asked without the right image.

    Attributes:
        task: the task that asked it so
        right: the share of docs that it got right
        guess: the share that a model with its answers, but without knowledge, would get right
        p: of right above guess, one-sided
        counts: whether it counts: p is below 0.05 / models
    """

    model: str
    task: str
    right: Share
    guess: Share
    p: Share
    counts: bool


class Blind(Struct, kw_only=True):
    """What blind answers of several models say, where --blind pruned by them.

    Attributes:
        share: the share of known docs among all
        as_many_as: how many independent models those that count are worth
    """

    models: list[BlindModel]
    share: Share
    as_many_as: Annotated[float, Meta(ge=0)]


class PrunedDoc(Struct, kw_only=True):
    """A doc.

    Attributes:
        key: stable id
    """

    key: str = ""
    doc_id: Count


class Verdict(Struct):
    """The verdict of the judge."""

    sentence: str = ""


class Pruning(Struct, kw_only=True):
    """What readers need of ``pruned.json``, which people may also write by hand.

    Attributes:
        base: the task that was pruned; "" where it is not named.
    """

    base: str = ""
    stopped: str = ""
    judged: Verdict | None = None
    kept: list[PrunedDoc]
    removed: list[PrunedDoc] = []


class PrunedJson(Struct, kw_only=True):
    """The file pruned.json in the folder that `lmms-patch prune` writes: what is kept, what went, and what a judge says.

    Attributes:
        stopped: why it ended
        judged: what an independent judge says; absent where nothing went, or no model was trained
        blind: what blind answers say; absent without --blind
        removed: in the order in which they went
    """

    schema: Literal[1]
    base: str
    settings: PrunedSettings
    stopped: str
    over_pruned: bool
    judged: JudgedJson | UnsetType = UNSET
    blind: Blind | UnsetType = UNSET
    kept: list[PrunedDoc]
    removed: list[PrunedDoc]
