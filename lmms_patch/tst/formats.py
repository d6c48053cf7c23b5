"""The types of ``pruned.json``."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from lmms_patch.stats.bounds import Count, Share


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
