"""The chance floor: what uninformed answers score with the benchmark's own scorer. No model is asked. Pure.

Each doc was scored for a few uninformed answers. This module combines those scores into floors:

- ``uniform``: a random option (a doc without options takes the constant);
- ``constant``: the best single answer for all docs of a format;
- ``stratum``: the most frequent gold among the *other* docs that are asked alike;
- ``other``: the gold of another doc of the same kind (for captions and corpus metrics).

Source: RCI paper (https://arxiv.org/abs/2509.23673), A.2. The paper's own rule (1/|C|; max(0.5, majority); the majority
answer) is reported beside our floors. Alone it is too weak: where one letter holds 30 % of the golds of 5 options, that
constant letter always passes 1/|C|.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lmms_patch.stats.bounds import Number
from lmms_patch.stats.resample import Estimate

FLOORS = ("uniform", "constant", "stratum", "other")
CLOSED = ("mc", "yesno")


class Uninformed(NamedTuple):
    """One uninformed answer of one doc, with its score. A named tuple: a log has millions.

    Attributes:
        answer: the answer's text.
        roles: what the answer stands for: ``gold``, ``option``, ``constant``, ``stratum``, ``other``.
        score: its score as a number; None where the scorer gave none.
        item: what the benchmark's scorer returned.
    """

    answer: str
    roles: frozenset[str]
    score: float | None
    item: Any


@dataclass(frozen=True)
class Asked:
    """The uninformed answers of one doc.

    Attributes:
        format: the doc's answer format.
        options: number of options; 0 for open formats.
        gold: the gold answer, None where there is none.
        scored: the uninformed answers with their scores.
    """

    format: str
    options: int
    gold: str | None
    scored: tuple[Uninformed, ...]

    def of(self, role: str) -> list[Uninformed]:
        """Return those uninformed answers that play a role, such as ``constant`` or ``stratum``, and that the scorer could score."""
        return [one for one in self.scored if role in one.roles and one.score is not None]


@dataclass(frozen=True)
class Chance:
    """The chance floors of a task.

    Attributes:
        value, se: the floor that the gate uses, on the metric's own scale; None where unknown.
        floor: its name: one of ``FLOORS``, ``documented`` or ``majority``.
        floors: every floor that could be computed.
        published: the floor by the paper's rule; None where it is not on the metric's scale.
        constants: the best constant answer of each format.
        reason: why the floor is unknown; empty otherwise.
    """

    value: Number | None
    se: Number | None
    floor: str | None
    floors: Mapping[str, Estimate] = field(default_factory=dict)
    published: Number | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


def constants(docs: Sequence[Asked]) -> dict[str, str]:
    """Return the best constant answer of each format: the answer with the highest total score.

    Ties go to the first in the alphabet.
    """
    total: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    # docs that are asked alike may be one object: its constants are looked up once
    answers = {id(doc): doc.of("constant") for doc in dict(zip(map(id, docs), docs, strict=True)).values()}
    for doc in docs:
        for one in answers[id(doc)]:
            total[doc.format][one.answer] += one.score or 0.0
    return {name: max(sorted(sums), key=lambda answer: sums[answer]) for name, sums in total.items()}


def pick(doc: Asked, floor: str, best: Mapping[str, str]) -> list[Uninformed]:
    """Return the answers that make up a floor for one doc: all options for ``uniform``, else at most one answer.

    A doc without options takes the constant for ``uniform``; a doc without others of its kind takes the constant for
    ``stratum``.
    """
    if floor == "uniform" and (options := doc.of("option")):
        return options
    role = "constant" if floor == "uniform" or (floor == "stratum" and not doc.of("stratum")) else floor
    answers = doc.of(role)
    if role == "constant":
        answers = [one for one in answers if one.answer == best.get(doc.format)]
    return answers[:1]


def floors_for(docs: Sequence[Asked]) -> tuple[str, ...]:
    """Return the names of the floors among which the largest is the chance floor.

    Captions are compared with another doc's gold. The uniform guess counts where any doc has options.

    >>> floors_for([Asked("open", 0, "cat", ())])
    ('constant', 'stratum')
    """
    formats = {doc.format for doc in docs}
    if formats == {"caption"}:
        return ("other",)
    return ("uniform", "constant", "stratum") if formats & set(CLOSED) else ("constant", "stratum")


def published(docs: Sequence[Asked], scale: float) -> float | None:
    """Return the chance level by the rule of RCI A.2 (Table 3), averaged over docs: 1/|C|, max(0.5, majority), or the majority answer's score.

    Args:
        docs: all docs.
        scale: the metric's full marks.

    Returns:
        None where a doc's rule cannot be applied.
    """
    golds: dict[str, Counter[str]] = defaultdict(Counter)
    for doc in docs:
        if doc.gold is not None:
            golds[doc.format][doc.gold] += 1
    total = 0.0
    for doc in docs:
        if doc.format == "mc" and doc.options:
            total += scale / doc.options
        elif doc.format == "yesno":
            total += scale * max(0.5, majority_share(golds["yesno"]))
        else:
            typical = golds[doc.format].most_common(1)
            scores = [one.score for one in doc.of("constant") if typical and one.answer == typical[0][0]]
            if not scores or scores[0] is None:
                return None
            total += scores[0]
    return total / len(docs) if docs else None


def majority_share(golds: Counter[str]) -> float:
    """Return the share of the most frequent gold, 0..1."""
    return golds.most_common(1)[0][1] / golds.total() if golds else 0.0


def decide(floors: Mapping[str, Estimate], deciding: Sequence[str]) -> tuple[str | None, Estimate | None]:
    """Return the name and estimate of the largest of the deciding floors; (None, None) where none is known."""
    known = [
        (estimate.value, name)
        for name in deciding
        if (estimate := floors.get(name)) is not None and estimate.value is not None
    ]
    if not known:
        return None, None
    name = max(known)[1]
    return name, floors[name]
