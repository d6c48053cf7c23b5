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
    by: Literal["s_minus_chance", "s", "delta", "locality"]
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
    """What an independent judge says; absent where nothing went, or it went by locality.

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
        judged: what an independent judge says; absent where nothing went, or it went by locality
        overlap: with the docs of --against; absent where not asked
        removed: in the order in which they went
    """

    schema: Literal[1]
    base: str
    settings: PrunedSettings
    stopped: str
    over_pruned: bool
    judged: JudgedJson | UnsetType = UNSET
    overlap: OverlapJson | UnsetType = UNSET
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
    """The file published.json in the folder that `lmms-patch prune --to` writes: what the folder holds. Folders and repositories are known by it.

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
