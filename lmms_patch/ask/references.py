"""The plan of what is scored beside a model's answers: uninformed answers and the gold. Pure.

The plan is made from the docs alone, before any answer is known. So every rank makes the same plan, and each doc's
record can carry its own part of it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_patch.ask.answers import Answer, Asked, first_words, recognise
from lmms_patch.stats.donors import Strata, draw, draw_clusters, strata

CONSTANTS = 5
"""How many of the most frequent golds are tried as the constant answer of an open format."""


@dataclass(frozen=True)
class Doc:
    """A doc as far as the plan needs it.

    Attributes:
        doc_id: its row in the base task's eval split.
        asked: prompt, gold, choices.
        question: the question without the words that all prompts of the task start with.
        cluster: value of the field that the options name; None where none is named.
        source: likewise.
        stratum: likewise.
    """

    doc_id: int
    asked: Asked
    question: str = ""
    cluster: Hashable = None
    source: Hashable = None
    stratum: Hashable = None


@dataclass(frozen=True)
class Plan:
    """The plan of what to score beside the model's answers, by doc id.

    Attributes:
        answers: how each doc is to be answered.
        strata: the name of each doc's stratum.
        baselines: for each doc, answer -> its roles: ``gold``, ``option``, ``constant``, ``stratum``, ``other``.
        digests: ``docs`` (which docs with which golds) and ``prompts`` (what they are asked), 16 hex digits each: two
            runs with equal digests were asked the same.
        all_docs: how many docs the benchmark has, asked or not; None where that is not known.
    """

    answers: dict[int, Answer]
    strata: dict[int, str]
    baselines: dict[int, dict[str, list[str]]]
    digests: dict[str, str] = field(default_factory=dict)
    all_docs: int | None = None


def questions(prompts: Sequence[str], fields: Sequence[Any]) -> list[str]:
    """Return the question of each doc: the text of its field ``question`` where there is one, else the prompt without the common beginning."""
    shared = len(os.path.commonprefix(prompts)) if len(prompts) > 1 else 0  # noqa: RUF071 - characters are meant
    return [
        field if isinstance(field, str) and field else prompt[shared:]
        for prompt, field in zip(prompts, fields, strict=True)
    ]


def plan(
    docs: Sequence[Doc],
    *,
    declared: str | None = None,
    clusters_whole: bool = False,
    seed: int = 0,
) -> Plan:
    """Plan what is scored beside the model's answers.

    Args:
        docs: all docs that are evaluated, on all ranks.
        declared: the profile's answer format.
        clusters_whole: whether other docs are drawn as whole clusters (MME's pairs).
        seed: of the other docs that are drawn.
    """
    answers, strata_of_docs = alike(docs, declared)
    units = [unit_of(doc) for doc in docs]
    sources = None if all(doc.source is None for doc in docs) else [doc.source for doc in docs]
    # captions are compared with another doc's gold
    drawn = (draw_clusters if clusters_whole else draw)(strata_of_docs, units, sources, donors=1, seed=seed)
    others = {i: int(row[0]) for i, row in enumerate(drawn) if row[0] >= 0}
    ids = [doc.doc_id for doc in docs]
    return Plan(
        dict(zip(ids, answers, strict=True)),
        {
            doc_id: " | ".join(str(part) for part in label)
            for doc_id, label in zip(ids, strata_of_docs.labels, strict=True)
        },
        dict(zip(ids, _baselines(answers, strata_of_docs, others), strict=True)),
        {
            "docs": digest((doc_id, answer.golds) for doc_id, answer in zip(ids, answers, strict=True)),
            "prompts": digest((doc.doc_id, doc.asked.prompt) for doc in docs),
        },
    )


def alike(docs: Sequence[Doc], declared: str | None) -> tuple[list[Answer], Strata]:
    """Return how each doc is to be answered, and the strata of docs that are asked alike.

    Args:
        docs: the docs.
        declared: the profile's answer format.
    """
    answers = recognise([doc.asked for doc in docs], declared)
    return answers, strata(_kinds(docs, answers))


def unit_of(doc: Doc) -> str:
    """Return the name of a doc's cluster; a doc without a cluster gets a unique name."""
    return repr(doc.cluster) if doc.cluster is not None else f"doc {doc.doc_id}"


def digest(parts: Iterable[Any]) -> str:
    """Return the first 16 hex digits of the SHA-256 of some values, as JSON and in their order."""
    sha = hashlib.sha256()
    for part in parts:
        # a gold may hold half a character, which UTF-8 alone refuses; a library that reads JSON lets it through
        sha.update(json.dumps(part, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass") + b"\n")
    return sha.hexdigest()[:16]


def shown(docs: Iterable[tuple[int, Sequence[tuple[int, int]], str]]) -> dict[str, str]:
    """Return digests of the sizes and of the pixels of all images shown; empty where no image was shown.

    Args:
        docs: of each its id, the sizes of its images, and a digest of these; "" where it shows none.
    """
    rows = sorted(docs)
    if not any(images for _, _, images in rows):
        return {}
    return {
        "image_sizes": digest((doc_id, sizes) for doc_id, sizes, _ in rows),
        "images": digest((doc_id, images) for doc_id, _, images in rows),
    }


def _kinds(docs: Sequence[Doc], answers: Sequence[Answer]) -> list[tuple[Hashable, ...]]:
    """Return the kind of each doc, from coarse to fine.

    The levels are: format; number of options; option set (where it recurs); the profile's stratum, or the question's
    first words.
    """
    sets = Counter(tuple(sorted(answer.texts)) for answer in answers if answer.texts)
    out: list[tuple[Hashable, ...]] = []
    for doc, answer in zip(docs, answers, strict=True):
        texts = tuple(sorted(answer.texts))
        # a set of options that fewer docs share would be too small for a stratum
        own = " / ".join(texts) if sets.get(texts, 0) >= 20 else " / ".join(answer.options)
        last = str(doc.stratum) if doc.stratum is not None else first_words(doc.question)
        out.append((answer.format, len(answer.options), own, last))
    return out


def _baselines(answers: Sequence[Answer], strata_of_docs: Strata, others: dict[int, int]) -> list[dict[str, list[str]]]:
    """Return the uninformed answers of each doc with their roles."""
    constants = _constants(answers)
    golds = {
        label: Counter(gold for i in members if (gold := answers[i].gold) is not None)
        for label, members in strata_of_docs.members.items()
    }
    out = []
    for i, answer in enumerate(answers):
        roles: dict[str, list[str]] = defaultdict(list)
        # VQA's docs have ten golds, and each gold is one more call of the scorer
        for gold in answer.golds[:10]:
            roles[gold].append("gold")
        for option in answer.options:
            roles[option].append("option")
        for constant in constants[answer.format]:
            roles[constant].append("constant")
        typical = _majority_of_others(golds[strata_of_docs.labels[i]], answer.gold)
        if typical is not None:
            roles[typical].append("stratum")
        other = answers[others[i]].gold if i in others else None
        if other is not None:
            roles[other].append("other")
        out.append(dict(roles))
    return out


def _constants(answers: Sequence[Answer]) -> dict[str, list[str]]:
    """Return the constant answers to try, by format: all options that recur, or the most frequent golds where any text may be given."""
    out = {}
    for name in {answer.format for answer in answers}:
        own = [answer for answer in answers if answer.format == name]
        offered = Counter(option for answer in own if len(answer.options) <= 26 for option in answer.options)
        recurring = [option for option, count in offered.items() if count >= 2]
        golds = Counter(gold for answer in own for gold in answer.golds[:1])
        frequent = [gold for gold, _ in golds.most_common(CONSTANTS)]
        out[name] = recurring if 0 < len(recurring) <= 26 else frequent
    return out


def _majority_of_others(golds: Counter[str], own: str | None) -> str | None:
    """Return the most frequent gold of a stratum without the doc itself; ties go to the first in the alphabet.

    With the doc itself included, a model-free guess would use the doc's own gold: 30 types of 33 docs then lift the
    floor of four even options from 0.25 to 0.34.
    """
    counts = {gold: count - (gold == own) for gold, count in golds.items()}
    return max(sorted(counts), key=lambda gold: counts[gold]) if any(counts.values()) else None
