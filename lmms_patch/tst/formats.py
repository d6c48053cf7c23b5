"""The types of ``pruned.json``."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lmms_patch.stats.bounds import Count, Number, Share


class EmbeddingsJson(Struct, kw_only=True):
    """The text-embedding model that a diagnostic read.

    Attributes:
        name: the last part of its path or hub id
        sha256: first 16 hexadecimal digits of the digest of its weights
    """

    name: str
    pooling: Literal["mean", "cls", "max"]
    sha256: str


class PrunedSettings(Struct, kw_only=True):
    """How docs were chosen.

    Attributes:
        embeddings: read by the model that selects; absent without
    """

    budget: Annotated[float, Meta(ge=0)]
    batch: Annotated[float, Meta(ge=0)] | None
    tau: Number | None
    near_chance: bool
    over_pruned: bool
    by: Literal["s_minus_chance", "s", "delta", "locality", "blind"]
    strategy: Literal["top", "weighted", "balanced"]
    allocation: Literal["global", "format", "category"] | dict[str, Annotated[float, Meta(ge=0)]]
    floor: Annotated[float, Meta(ge=0)]
    seed: int
    fold_seeds: Annotated[int, Meta(ge=1)]
    model: Literal["boosting", "forest", "linear"]
    judge: Literal["boosting", "forest", "linear"]
    folds: Annotated[int, Meta(ge=2, le=50)]
    grouping: str
    embeddings: EmbeddingsJson | UnsetType = UNSET


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


class OverlapJson(Struct, kw_only=True):
    """What the removed docs share with those of --against; absent where not asked."""

    both: Count
    removed: Count
    other: Count
    share: Share
    jaccard: Share
    expected: Share
    p: Share


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


class RankedModel(Struct, kw_only=True):
    """A model on the full image, before and after the pruning: mean scores with 95 % intervals.

    Attributes:
        before: mean, low end, high end; of all docs
        after: the same of the kept docs
        rank_before: 1: the best
        random: mean, least and most of the means after random removals that keep the counts of each category
    """

    model: str
    task: str
    before: list[Number | None]
    after: list[Number | None]
    rank_before: Count
    rank_after: Count
    random: list[Number]


class Blind(Struct, kw_only=True):
    """What blind answers of several models say, where --blind pruned by them.

    Attributes:
        share: the share of known docs among all
        dependence: how far the models that count err together, 0 (given a doc not at all) to 1 (as if they were one)
        p_dependent: of dependence above 0, one-sided; null with fewer than two such models
        as_many_as: how many independent models those that count are worth
        ranks: models that these runs also have on the full image; empty where there are none
        swapped: pairs of these models that change places
        swapped_random: the same after random removals, their mean
    """

    models: list[BlindModel]
    share: Share
    dependence: Share
    p_dependent: Share | None
    as_many_as: Annotated[float, Meta(ge=0)]
    ranks: list[RankedModel]
    swapped: Count
    swapped_random: Annotated[float, Meta(ge=0)]


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
        overlap: with the docs of --against; absent where not asked
        blind: what blind answers say; absent without --blind
        removed: in the order in which they went
    """

    schema: Literal[1]
    base: str
    settings: PrunedSettings
    stopped: str
    over_pruned: bool
    judged: JudgedJson | UnsetType = UNSET
    overlap: OverlapJson | UnsetType = UNSET
    blind: Blind | UnsetType = UNSET
    kept: list[PrunedDoc]
    removed: list[PrunedDoc]


class OriginalJson(Struct, kw_only=True):
    """The dataset that was pruned.

    Attributes:
        repository: its name on the hub; "" where it is none
        config: "" where it has none
        revision: the commit that was pruned; "" where it is not known
    """

    repository: str
    config: str
    split: str
    revision: str


class PublishedJson(Struct, kw_only=True):
    """The file published.json in the folder that `lmms-patch prune --to` writes: what the folder holds.

    Folders and repositories are known by it.

    Attributes:
        task: the name of the pruned task
        base: the task that was pruned
        form: filter (ids of the kept docs) or copy (the kept docs)
        docs: of the split, before
    """

    schema: Literal[1]
    task: str
    base: str
    form: Literal["filter", "copy"]
    docs: Count
    kept: Count
    original: OriginalJson
