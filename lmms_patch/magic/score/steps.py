"""The reasoning steps of a finished run, one row each, to be labelled by people or a judge. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lmms_patch.magic.score.labels import Row
from lmms_patch.magic.score.response import parse
from lmms_patch.magic.score.results import Record


@dataclass(frozen=True)
class Chain:
    """A model's reasoning on an item.

    Attributes:
        item: the item's id.
        group: its image; "" where it is not known.
        question: as asked.
        gold: short gold answer.
        answer: the model's final answer.
        steps: its sentences; there may be none.
        scored: number of steps when the run was scored.
    """

    item: str
    group: str
    question: str
    gold: str
    answer: str
    steps: tuple[str, ...]
    scored: int


def chain_of(record: Record) -> Chain:
    """Return the chain of a doc of a MAGIC task: the response, split as in the run."""
    response = parse(record.response, record.question)
    question = " ".join(record.question.split())
    return Chain(record.item, record.group, question, record.target, response.answer, response.steps, record.steps)


def sample(chains: Sequence[Chain], items: int | None, seed: int = 0) -> list[Chain]:
    """Draw a random sample of the chains with a step, by item.

    It depends only on the seed and the items' ids, not on the order of the log. A larger sample of the same seed
    contains the smaller one.

    Args:
        chains: all of a run.
        items: how many; None: all.
        seed: of the sample.
    """
    order = sorted(chains, key=lambda chain: hashlib.sha256(f"{seed}/steps/{chain.item}".encode()).hexdigest())
    return sorted([chain for chain in order if chain.steps][:items], key=lambda chain: chain.item)


def rows(
    chains: Iterable[Chain],
    annotator: str = "",
    source: Literal["human", "judge"] = "human",
    verdicts: Mapping[str, Sequence[bool | None]] = {},
) -> list[Row]:
    """Return a row for each step.

    Args:
        chains: from ``sample``.
        annotator: who is to label, or the judge that did; "": left empty.
        source: who labels.
        verdicts: by item, one for each step; items that are not labelled yet are not here.
    """
    out = []
    for chain in chains:
        said = verdicts.get(chain.item, [None] * len(chain.steps))
        for number, (text, verdict) in enumerate(zip(chain.steps, said, strict=True), 1):
            out.append(
                Row(
                    item=chain.item,
                    step=number,
                    annotator=annotator,
                    correct=None if verdict is None else 1 if verdict else 0,
                    source=source,
                    group=chain.group,
                    question=chain.question,
                    answer=chain.gold,
                    text=text,
                )
            )
    return out
