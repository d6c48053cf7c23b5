"""The chance floor: what uninformed answers score with the benchmark's own scorer. No model is asked. NumPy only.

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

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lmms_patch.stats.bounds import Number
from lmms_patch.stats.resample import Array, Bools, Estimate, Ints

FLOORS = ("uniform", "constant", "stratum", "other")
CLOSED = ("mc", "yesno")


@dataclass(frozen=True)
class Uninformed:
    """The golds and uninformed answers of docs, scored; an entry an answer, those of a doc one after the other.

    Attributes:
        formats: shape (docs,), the answer format of each doc.
        options: shape (docs,), its number of options; 0 for open formats.
        golds: its gold answer, None where there is none.
        docs: shape (answers,), the place of each answer's doc.
        answers: shape (answers,), the place of its text in ``texts``.
        texts: the different answers, in the order of the alphabet.
        scores: shape (answers,); nan where the scorer gave none.
        roles: what answers stand for: for each of ``gold``, ``option``, ``constant``, ``stratum`` and ``other`` the scored
            answers of that role, shape (answers,).
    """

    formats: NDArray[np.str_]
    options: Ints
    golds: Sequence[str | None]
    docs: Ints
    answers: Ints
    texts: Sequence[str]
    scores: Array
    roles: Mapping[str, Bools]

    def first(self, of: Bools) -> Ints:
        """Return the number of each doc's first answer among some; -1: it has none. Shape (docs,)."""
        out = np.full(len(self.formats), -1, np.intp)
        # of several values for one place the last is written
        last_first = np.flatnonzero(of)[::-1]
        out[self.docs[last_first]] = last_first
        return out

    def constant(self, text_of: Mapping[str, str]) -> Ints:
        """Return the number of each doc's constant answer with the text that its format has; -1: it has none."""
        number = {text: number for number, text in enumerate(self.texts)}
        wanted = np.full(len(self.formats), -1, np.intp)
        for name, text in text_of.items():
            wanted[self.formats == name] = number.get(text, -1)
        return self.first(self.roles["constant"] & (self.answers == wanted[self.docs]))


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


def constants(of: Uninformed) -> dict[str, str]:
    """Return the best constant answer of each format: the answer with the highest total score.

    Ties go to the first in the alphabet.
    """
    out, formats = {}, of.formats[of.docs]
    for name in sorted(set(of.formats.tolist())):
        own = of.roles["constant"] & (formats == name)
        totals, given = np.bincount(of.answers[own], of.scores[own]), np.unique(of.answers[own])
        if len(given):
            out[name] = of.texts[given[totals[given].argmax()]]
    return out


def pick(of: Uninformed, floor: str, best: Mapping[str, str]) -> Ints:
    """Return the number of the answer that makes up a floor for each doc; -1: there is none. Shape (docs,).

    A doc without others of its kind takes the constant for ``stratum``.

    Args:
        of: all answers.
        floor: ``constant``, ``stratum`` or ``other``.
        best: the constant answer of each format.
    """
    if floor == "other":
        return of.first(of.roles["other"])
    constant, alike = of.constant(best), of.first(of.roles["stratum"])
    return np.where((floor == "constant") | (alike < 0), constant, alike)


def expected(of: Uninformed, best: Mapping[str, str]) -> Array:
    """Return what the ``uniform`` floor earns with each doc, shape (docs,): the mean over its options, else its constant's score.

    Nan where a doc has neither.
    """
    option = of.roles["option"]
    counts, constant = np.bincount(of.docs[option], minlength=len(of.formats)), of.constant(best)
    sums = np.bincount(of.docs[option], of.scores[option], len(of.formats))
    alone = np.append(of.scores, math.nan)[constant]
    return np.where(counts > 0, sums / np.maximum(counts, 1), alone)


def guess(of: Uninformed, best: Mapping[str, str], stream: np.random.Generator) -> Ints:
    """Return the number of an answer of each doc for ``uniform``: a random option, else its constant. Shape (docs,)."""
    options = np.flatnonzero(of.roles["option"])
    counts = np.bincount(of.docs[options], minlength=len(of.formats))
    drawn = np.cumsum(counts) - counts + stream.integers(0, np.maximum(counts, 1))
    return np.where(counts > 0, options[drawn.clip(max=len(options) - 1)], of.constant(best))


def floors_for(formats: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the floors among which the largest is the chance floor.

    Captions are compared with another doc's gold. The uniform guess counts where any doc has options.

    Args:
        formats: the answer formats of all docs.

    >>> floors_for(["open", "open"])
    ('constant', 'stratum')
    """
    different = set(formats)
    if different == {"caption"}:
        return ("other",)
    return ("uniform", "constant", "stratum") if different & set(CLOSED) else ("constant", "stratum")


def published(of: Uninformed, scale: float) -> float | None:
    """Return the chance level by the rule of RCI A.2 (Table 3), averaged over docs: 1/|C|, max(0.5, majority), or the majority answer's score.

    Args:
        of: the answers of all docs.
        scale: the metric's full marks.

    Returns:
        None where a doc's rule cannot be applied.
    """
    golds: dict[str, Counter[str]] = defaultdict(Counter)
    for name, gold in zip(of.formats.tolist(), of.golds, strict=True):
        if gold is not None:
            golds[name][gold] += 1
    levels = np.full(len(of.formats), math.nan)
    constant = of.constant({name: found.most_common(1)[0][0] for name, found in golds.items()})
    levels[constant >= 0] = of.scores[constant[constant >= 0]]
    guessed = (of.formats == "mc") & (of.options > 0)
    levels[guessed] = scale / of.options[guessed]
    levels[of.formats == "yesno"] = scale * max(0.5, majority_share(golds["yesno"]))
    return float(levels.mean()) if len(levels) and np.isfinite(levels).all() else None


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
