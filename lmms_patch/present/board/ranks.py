"""Ranks that respect noise: the range of places that a result can have, from intervals that do or do not overlap. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from lmms_patch.ask.spec import KINDS
from lmms_patch.errors import OptionError, nearest
from lmms_patch.stats.resample import Estimate

Ends = tuple[float, float]


@dataclass(frozen=True)
class Place:
    """The places that a result can have among ``of``: ``first`` .. ``last``, from 1."""

    first: int
    last: int
    of: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


@dataclass(frozen=True)
class By:
    """What a board is ranked by.

    Attributes:
        key: its name on the command line.
        stem: of the measure's name; ``{index}`` and ``{n}`` stand for ``rci`` or ``pcri`` and the grid size.
        zero: whether nearer 0 is better; else the metric's own direction counts.
        gated: whether a result that its gate refuses has no place (its number is luck).
        words: what is better, for people.
        corrected: whether it is a corrected index, which carries a rank only where its null is measured.
    """

    key: str
    stem: str
    zero: bool
    gated: bool
    words: str
    corrected: bool = False

    def name(self, index: str, n: int) -> str:
        """The measure's name (``measures``) for a grid."""
        return self.stem.format(index=index, n=n)


BY = {
    by.key: by
    for by in (
        By("pcri", "{index}{n}", True, True, "the index; nearer 0 is better (the model depends less on what surrounds the answer)"),
        By("adj", "{index}{n}_adj", True, True, "the index with luck removed; nearer 0 is better", True),
        By("adj_blind", "{index}{n}_adj_blind", True, True, "the index with luck and blind answers removed; nearer 0 is better", True),
        By("gap", "gap{n}", True, True, "the gap FIP − MPP; nearer 0 is better"),
        By("mpp", "mpp{n}", False, True, "MPP, the score on best cells"),
        By("fip", "fip", False, False, "FIP, the score on full images"),
    )
}

PRIMARY = By("score", "score", False, False, "the primary metric")
"""What boards of MAGIC tasks are ranked by, always: they have no index."""


def by_of(name: str) -> By:
    """What a board is ranked by, by name; ``rci`` and ``index`` are other words for ``pcri``.

    Raises:
        OptionError: an unknown name.
    """
    key = {"rci": "pcri", "index": "pcri"}.get(name, name)
    if key not in BY:
        close = nearest(name, [*BY, "rci"], 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise OptionError(f"a board cannot be ranked by {name!r}; {hint}allowed: {', '.join([*BY, 'rci'])}")
    return BY[key]


def badness(estimate: Estimate, by: By, higher: bool) -> tuple[float, Ends]:
    """A number and its interval on a scale where less is better; without an interval it can be anything.

    The interval of a distance from 0 is the image of the interval: [−0.3, 0.1] becomes [0, 0.3]. It covers at least as often.

    >>> badness(Estimate(-0.2, None, -0.3, 0.1, 9, 9, 9), BY["pcri"], True)
    (0.2, (0.0, 0.3))
    """
    value, low, high = estimate.value, estimate.low, estimate.high
    assert value is not None
    if by.zero:
        return abs(value), (-math.inf, math.inf) if low is None or high is None else folded(low, high)
    sign = -1.0 if higher else 1.0
    ends = (-math.inf, math.inf) if low is None or high is None else (sign * low, sign * high)
    return sign * value, (min(ends), max(ends))


def folded(low: float, high: float) -> Ends:
    """The interval of \\|x\\| where x lies in [low, high]."""
    inside = low <= 0 <= high
    return (0.0 if inside else min(abs(low), abs(high))), max(abs(low), abs(high))


def places(ends: Sequence[Ends]) -> list[Place]:
    """The range of places of each of some intervals, less being better.

    The first place counts those that are surely better (their whole interval lies below), the last those that are surely worse.
    Intervals that touch overlap. Two results are thus called different only where their 95 % intervals do not overlap, which asks for
    more than a test at 5 % does (Schenker & Gentleman 2001, The American Statistician 55:182).

    >>> [str(place) for place in places([(0.0, 0.1), (0.05, 0.2), (0.3, 0.4)])]
    ['1–2', '1–2', '3']
    """
    lows, highs = sorted(low for low, _ in ends), sorted(high for _, high in ends)
    return [Place(1 + bisect_left(highs, low), bisect_right(lows, high), len(ends)) for low, high in ends]


def index_names() -> list[str]:
    """The names under which an index is reported."""
    return sorted({kind.index for kind in KINDS.values() if kind.index})
