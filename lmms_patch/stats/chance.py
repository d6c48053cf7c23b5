"""What an uninformed answer scores: floors through the native scorer, without asking any model. Pure.

Each doc was scored for a few uninformed answers; here they are put together into floors:

- ``uniform``: a random option (a doc without options takes the constant);
- ``constant``: one answer for all docs of a format, the best one;
- ``stratum``: the most frequent gold among the *other* docs that are asked alike;
- ``other``: the gold of another doc of the same kind (captions and corpus metrics).

Source: RCI paper, A.2; DESIGN 6. The paper's own rule (1/|C|; max(0.5, majority); the majority
answer) stands beside them: against 1/|C| alone a constant letter that holds 30 % of 5-way golds
passes every time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_patch.stats.bounds import Number
from lmms_patch.stats.resample import Estimate

FLOORS = ("uniform", "constant", "stratum", "other")
CLOSED = ("mc", "yesno")


@dataclass(frozen=True)
class Uninformed:
    """One uninformed answer of one doc, scored.

    Attributes:
        answer: the answer.
        roles: what it stands for: ``gold``, ``option``, ``constant``, ``stratum``, ``other``.
        score: its scalar; None where the scorer gave none.
        item: the native item.
    """

    answer: str
    roles: frozenset[str]
    score: float | None
    item: Any


@dataclass(frozen=True)
class Asked:
    """The uninformed answers of one doc.

    Attributes:
        format: its answer format.
        options: number of options; 0 for open formats.
        gold: the gold answer, None where there is none.
        scored: what was scored.
    """

    format: str
    options: int
    gold: str | None
    scored: tuple[Uninformed, ...]

    def of(self, role: str) -> list[Uninformed]:
        """The scored answers with a role."""
        return [one for one in self.scored if role in one.roles and one.score is not None]


@dataclass(frozen=True)
class Chance:
    """The floors of a task.

    Attributes:
        value, se: the floor that the gate uses, on the metric's own scale; None where unknown.
        floor: its name: one of ``FLOORS``, ``documented`` or ``majority``.
        floors: every floor that could be computed.
        published: what the paper's rule gives; None where it is not on the metric's scale.
        constants: the best constant answer of each format.
        reason: why it is unknown; empty otherwise.
    """

    value: Number | None
    se: Number | None
    floor: str | None
    floors: Mapping[str, Estimate] = field(default_factory=dict)
    published: Number | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


def constants(docs: Sequence[Asked]) -> dict[str, str]:
    """The best constant answer of each format: the one with the highest mean score; ties go to the first in the alphabet."""
    total: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for doc in docs:
        for one in doc.of("constant"):
            total[doc.format][one.answer] += one.score or 0.0
    return {name: max(sorted(sums), key=lambda answer: sums[answer]) for name, sums in total.items()}


def pick(doc: Asked, floor: str, best: Mapping[str, str]) -> list[Uninformed]:
    """The answers of a floor for one doc: all options for ``uniform``, else at most one; empty where it has none.

    A doc without options takes the constant for ``uniform``; so does a doc without others of its kind for ``stratum``.
    """
    if floor == "uniform" and (options := doc.of("option")):
        return options
    role = "constant" if floor == "uniform" or (floor == "stratum" and not doc.of("stratum")) else floor
    found = doc.of(role)
    if role == "constant":
        found = [one for one in found if one.answer == best.get(doc.format)]
    return found[:1]


def floors_for(docs: Sequence[Asked]) -> tuple[str, ...]:
    """Which floors decide: captions by another doc's gold; any doc with options brings in the uniform guess.

    >>> floors_for([Asked("open", 0, "cat", ())])
    ('constant', 'stratum')
    """
    formats = {doc.format for doc in docs}
    if formats == {"caption"}:
        return ("other",)
    return ("uniform", "constant", "stratum") if formats & set(CLOSED) else ("constant", "stratum")


def published(docs: Sequence[Asked], scale: float) -> float | None:
    """The rule of RCI A.2 (Table 3), averaged over docs: 1/|C|, max(0.5, majority), or the majority answer under the scorer.

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
            found = [one.score for one in doc.of("constant") if typical and one.answer == typical[0][0]]
            if not found or found[0] is None:
                return None
            total += found[0]
    return total / len(docs) if docs else None


def majority_share(golds: Counter[str]) -> float:
    """The share of the most frequent gold, 0..1."""
    return golds.most_common(1)[0][1] / golds.total() if golds else 0.0


def decide(floors: Mapping[str, Estimate], deciding: Sequence[str]) -> tuple[str | None, Estimate | None]:
    """The largest of the deciding floors, by name and value."""
    known = [(estimate.value, name) for name in deciding if (estimate := floors.get(name)) is not None and estimate.value is not None]
    if not known:
        return None, None
    name = max(known)[1]
    return name, floors[name]
