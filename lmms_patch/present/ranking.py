"""Ranks, and means over benchmarks: places are ranges, and means go over benchmarks that all ranked models have. Pure."""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lmms_patch.errors import OptionError, nearest
from lmms_patch.stats.index import relative_change
from lmms_patch.stats.intervals import normal_quantile
from lmms_patch.stats.resample import LEVEL, Estimate

Ends = tuple[float, float]
K = TypeVar("K")


@dataclass(frozen=True)
class By:
    """A number for ranking results.

    Attributes:
        key: its name on the command line, and among the numbers of a row.
        zero: whether nearer 0 is better; else the metric's own direction counts.
        gated: whether a result that its gate refuses has no place (its number is luck).
        words: what is better, for people.
    """

    key: str
    zero: bool
    gated: bool
    words: str


BY = {
    by.key: by
    for by in (
        By("score", False, False, "the score on full images"),
        By("index", True, True, "the index; nearer 0 is better (the model depends less on what surrounds the answer)"),
        By("steady", True, True, "the steady index; nearer 0 is better"),
        By("gap", True, True, "the gap FIP − MPP; nearer 0 is better"),
        By("mpp", False, True, "MPP, the score on best cells"),
    )
}
NAMES = {"fip": "score", "pcri": "index", "rci": "index", "steady": "steady", "gap": "gap", "mpp": "mpp"}
"""What is typed after ``--by``, and the number that it means."""


def by_of(name: str) -> By:
    """Return the number to rank by of a name.

    Raises:
        OptionError: an unknown name.
    """
    if name not in NAMES:
        close = nearest(name, NAMES, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise OptionError(f"a board cannot be ranked by {name!r}; {hint}allowed: {', '.join(NAMES)}")
    return BY[NAMES[name]]


# --- places ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A range of ranks ``first`` .. ``last`` among ``of`` results, from 1."""

    first: int
    last: int
    of: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


def badness(estimate: Estimate, by: By, higher: bool = True) -> tuple[float, Ends]:
    """Return a number and its interval on a scale where less is better; unbounded ends without an interval.

    Args:
        estimate: the number; defined.
        by: what is ranked by.
        higher: whether more of the metric is better.

    >>> badness(Estimate(-0.2, None, -0.3, 0.1, 9, 9, 9), BY["index"])
    (0.2, (0.0, 0.3))
    """
    value, low, high = estimate.value, estimate.low, estimate.high
    assert value is not None
    sign = -1.0 if higher and not by.zero else 1.0
    size = abs(value) if by.zero else sign * value
    if low is None or high is None:
        return size, (-math.inf, math.inf)
    return size, folded(low, high) if by.zero else (min(sign * low, sign * high), max(sign * low, sign * high))


def folded(low: float, high: float) -> Ends:
    """Return the interval of the distance from 0 of a number in [low, high]: [−0.3, 0.1] becomes [0, 0.3].

    It covers at least as often.
    """
    inside = low <= 0 <= high
    return (0.0 if inside else min(abs(low), abs(high))), max(abs(low), abs(high))


def places(ends: Sequence[Ends]) -> list[Place]:
    """Return the range of places of each of some intervals, less being better.

    The first place counts those that are surely better (their whole interval lies below), the last those that are
    surely worse. Intervals that touch overlap. Two results are thus called different only where their 95 % intervals do
    not overlap, which asks for more than a test at 5 % does (Schenker & Gentleman 2001, The American Statistician
    55:182).

    >>> [str(place) for place in places([(0.0, 0.1), (0.05, 0.2), (0.3, 0.4)])]
    ['1–2', '1–2', '3']
    """
    lows, highs = sorted(low for low, _ in ends), sorted(high for _, high in ends)
    return [Place(1 + bisect_left(highs, low), bisect_right(lows, high), len(ends)) for low, high in ends]


def shared_benchmarks(have: Mapping[K, Collection[str]]) -> tuple[str, ...]:
    """Return the benchmarks to take means over. The choice depends on who has what, never on what the numbers are.

    It starts from the benchmark that most models have; the next is always the one that the fewest models lack. Of these
    sets the one with the most numbers in it (models × benchmarks) counts, with at least two models where that is
    possible. Equal sets: more models, then the alphabet.

    >>> shared_benchmarks({"a": ["x", "y"], "b": ["x", "y"], "c": ["z"]})
    ('x', 'y')
    """
    left = {model: set(benchmarks) for model, benchmarks in have.items()}
    rest, chosen = sorted({name for names in left.values() for name in names}), []
    best: tuple[tuple[bool, int, int], tuple[str, ...]] = ((False, 0, 0), ())
    while rest and left:
        following = min(rest, key=lambda name: (-sum(name in names for names in left.values()), name))
        rest.remove(following)
        chosen.append(following)
        left = {model: names for model, names in left.items() if following in names}
        score = (len(left) > 1, len(left) * len(chosen), len(left))
        if score > best[0]:
            best = score, tuple(sorted(chosen))
    return best[1]


# --- means ----------------------------------------------------------------------------------------


def standard_error(index: Estimate) -> float | None:
    """Return the standard error implied by an interval's width; None without an interval."""
    if index.low is None or index.high is None:
        return None
    return (index.high - index.low) / (2 * normal_quantile((1 + index.level) / 2))


def mean(numbers: Sequence[Estimate]) -> Estimate:
    """Return the mean of the numbers of independent benchmarks: standard errors add in quadrature, normal interval.

    Of one benchmark it is that benchmark's own interval. Of several it is symmetric, although theirs may not be: by
    simulation that holds its level, while adding the lower and the upper half-widths apart falls to 91 % with twelve
    lopsided intervals. ``n`` is the number of benchmarks.
    """
    known = [one for one in numbers if one.value is not None]
    count, level = len(known), min((one.level for one in known), default=LEVEL)
    if not count:
        return Estimate.nothing(0, "no benchmark that all of them have", level)
    value = math.fsum(one.value or 0.0 for one in known) / count
    errors = [error for one in known if (error := standard_error(one)) is not None]
    if len(errors) < count:
        reason = "a number without interval: none for the mean"
        return Estimate(value, None, None, None, count, count, 0, level, reason)
    se = math.sqrt(math.fsum(error * error for error in errors)) / count
    half = normal_quantile((1 + level) / 2) * se
    low, high = (known[0].low, known[0].high) if count == 1 else (value - half, value + half)
    return Estimate(value, se, low, high, count, count, 0, level)


def mean_size(indices: Sequence[Estimate]) -> Estimate:
    """Return the mean of |index|: how far from robust, whichever way.

    Noise alone makes |index| larger: for a true 0 by 0.8 standard errors. So the lower end of the interval is lowered
    by the mean of that surplus, each at the end of its own interval that is nearest 0, where it is largest (the mean of
    a folded normal, less its size); and is at least 0. The number itself is not corrected.
    """
    known = [one for one in indices if one.value is not None]
    plain = mean([_turned(one) if (one.value or 0.0) < 0 else one for one in known])
    if plain.low is None or plain.high is None:
        return plain
    surplus = math.fsum(_surplus(one) for one in known) / len(known)
    return dataclasses.replace(plain, low=max(0.0, plain.low - surplus))


def _turned(index: Estimate) -> Estimate:
    value, low, high = (None if end is None else -end for end in (index.value, index.high, index.low))
    return dataclasses.replace(index, value=value, low=low, high=high)


def _surplus(index: Estimate) -> float:
    """Return the upper bound of how much noise enlarges |index|, given the interval."""
    error = standard_error(index)
    if index.value is None or not error or index.low is None or index.high is None:
        return 0.0
    return folded_mean(max(0.0, abs(index.value) - (index.high - index.low) / 2), error)


def folded_mean(size: float, se: float) -> float:
    """Return E|X| − size for X normal around ``size`` ≥ 0 with this standard error (the folded normal distribution).

    >>> round(folded_mean(0, 1), 4)
    0.7979
    """
    spread = se * math.sqrt(2 / math.pi) * math.exp(-(size**2) / (2 * se**2))
    return spread - size * math.erfc(size / (se * math.sqrt(2)))


def change(coarse: Estimate, fine: Estimate, published: bool = False) -> Estimate:
    """Return the relative change of an index to a finer grid: (fine − coarse) / |coarse| (PCRI paper, A.4.6).

    It has no interval, since both grids share their docs. It is not defined where the coarser index cannot be told from
    0.

    Args:
        coarse: the index at the coarser grid.
        fine: at the finer one.
        published: whether the numbers are from a published table, which has no intervals.
    """
    unclear = not published if coarse.low is None or coarse.high is None else coarse.low <= 0 <= coarse.high
    value = None if unclear else relative_change(coarse.value, fine.value)
    shown = "" if coarse.value is None else f", {coarse.value:.3f},"
    reason = "" if value is not None else f"the coarser index{shown} cannot be told from 0"
    return Estimate(value, None, None, None, coarse.n, coarse.clusters, 0, coarse.level, reason)


@dataclass(frozen=True)
class Standing:
    """A model over the shared benchmarks.

    Attributes:
        model: its name.
        mean: of the number that is ranked by; None where the model lacks a shared benchmark.
        place: the range of places that intervals leave open; None without a mean.
        lacks: the shared benchmarks that it has no such number for.
    """

    model: str
    mean: Estimate | None
    place: Place | None
    lacks: tuple[str, ...]


def standings(cells: Mapping[str, Mapping[str, Estimate]], shared: Sequence[str], by: By) -> list[Standing]:
    """Return the models by the mean of a number, the best first; then those without a mean, by name.

    Args:
        cells: of each model the number by benchmark.
        shared: the benchmarks to take means over.
        by: what the number is.
    """
    of: Callable[[Sequence[Estimate]], Estimate] = mean_size if by.zero else mean
    lacks = {model: tuple(name for name in shared if name not in have) for model, have in cells.items()}
    means = {model: of([cells[model][name] for name in shared]) for model in cells if shared and not lacks[model]}
    bad = {model: badness(one, by) for model, one in means.items()}
    spans = dict(zip(bad, places([ends for _, ends in bad.values()]), strict=True))
    # Rounded, so that equal means stay equal whatever the order of summing.
    ranked = sorted(means, key=lambda model: (round(bad[model][0], 9), model))
    return [
        Standing(model, means.get(model), spans.get(model), lacks[model])
        for model in [*ranked, *sorted(cells.keys() - means.keys())]
    ]
