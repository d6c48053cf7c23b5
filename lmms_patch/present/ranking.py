"""Ranks, means over benchmarks, and which models may be ranked together: one way for reports and boards. Pure.

Means are over benchmarks that all ranked models have an index for: a mean over other benchmarks is of another thing.
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lmms_patch.errors import OptionError, nearest
from lmms_patch.stats.index import relative_change
from lmms_patch.stats.intervals import normal_quantile
from lmms_patch.stats.resample import LEVEL, Estimate

Ends = tuple[float, float]
K = TypeVar("K", bound=Hashable)
STEADY = "Of the steady index: docs were asked again in every run."
NO_INTERVALS = "an index without interval: none for the mean"


# --- what is ranked by ----------------------------------------------------------------------------


@dataclass(frozen=True)
class By:
    """A number for ranking results.

    Attributes:
        key: its name on the command line.
        stem: of the measure's name; ``{index}`` and ``{n}`` stand for ``rci`` or ``pcri`` and the grid size.
        zero: whether nearer 0 is better; else the metric's own direction counts.
        gated: whether a result that its gate refuses has no place (its number is luck).
        words: what is better, for people.
        steady: whether it is a steady index, which carries a rank only where docs were asked again.
    """

    key: str
    stem: str
    zero: bool
    gated: bool
    words: str
    steady: bool = False

    def name(self, index: str, n: int) -> str:
        """Return the measure's name (``runs.measures``) at a grid."""
        return self.stem.format(index=index, n=n)


BY = {
    by.key: by
    for by in (
        By(
            "pcri",
            "{index}{n}",
            True,
            True,
            "the index; nearer 0 is better (the model depends less on what surrounds the answer)",
        ),
        By("steady", "{index}{n}_steady", True, True, "the steady index; nearer 0 is better", True),
        By("gap", "gap{n}", True, True, "the gap FIP − MPP; nearer 0 is better"),
        By("mpp", "mpp{n}", False, True, "MPP, the score on best cells"),
        By("fip", "fip", False, False, "FIP, the score on full images"),
    )
}
INDEX = BY["pcri"]
PRIMARY = By("score", "score", False, False, "the primary metric")
"""What boards of MAGIC tasks are ranked by, always: they have no index."""


def by_of(name: str) -> By:
    """Return the ranking number of a name; ``rci`` and ``index`` mean ``pcri``.

    Raises:
        OptionError: an unknown name.
    """
    key = {"rci": "pcri", "index": "pcri"}.get(name, name)
    if key not in BY:
        close = nearest(name, [*BY, "rci"], 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise OptionError(f"a board cannot be ranked by {name!r}; {hint}allowed: {', '.join([*BY, 'rci'])}")
    return BY[key]


def goes_by_steady(steady: Collection[Estimate | None]) -> bool | None:
    """Return whether a benchmark's ranks go by the steady index.

    None where no result has an index that may be read.

    Args:
        steady: of each result with an index that may be read, its steady index; None where no doc was asked again.
    """
    return all(one is not None and one.value is not None for one in steady) if steady else None


def means_by_steady(benchmarks: Iterable[Collection[Estimate | None]]) -> bool:
    """Return whether means use the steady index: only where every benchmark's ranks do.

    Never of both.

    Args:
        benchmarks: of each, what ``goes_by_steady`` takes.
    """
    return {goes_by_steady(steady) for steady in benchmarks} - {None} == {True}


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

    >>> badness(Estimate(-0.2, None, -0.3, 0.1, 9, 9, 9), BY["pcri"])
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


# --- who is ranked together -----------------------------------------------------------------------


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


@dataclass(frozen=True)
class Group(Generic[K]):
    """Models connected by shared benchmarks, directly or through further models.

    Attributes:
        models: those that have all shared benchmarks, in the order in which they come: they are ranked.
        shared: the benchmarks that means are over (``shared_benchmarks``).
        left_out: the other benchmarks.
        without: models that lack a shared benchmark, and so have no rank.
    """

    models: tuple[K, ...]
    shared: tuple[str, ...]
    left_out: tuple[str, ...]
    without: tuple[K, ...]


def groups(have: Mapping[K, Collection[str]]) -> list[Group[K]]:
    """Return models in groups without a common benchmark between groups.

    Args:
        have: the benchmarks of each model that may be averaged.
    """
    out, left = [], dict(have)
    while left:
        first = next(iter(left))
        members, reached = {first}, set(left[first])
        while more := [model for model in left if model not in members and reached & set(left[model])]:
            members |= set(more)
            reached |= {name for model in more for name in left[model]}
        theirs = {model: names for model, names in left.items() if model in members}
        shared = shared_benchmarks(theirs)
        ranked = tuple(model for model, names in theirs.items() if set(shared) <= set(names))
        others = dict.fromkeys(name for names in theirs.values() for name in names if name not in shared)
        out.append(Group(ranked, shared, tuple(others), tuple(model for model in theirs if model not in ranked)))
        left = {model: names for model, names in left.items() if model not in members}
    return out


# --- means ----------------------------------------------------------------------------------------


def standard_error(index: Estimate) -> float | None:
    """Return the standard error implied by an interval's width; None without an interval."""
    if index.low is None or index.high is None:
        return None
    return (index.high - index.low) / (2 * normal_quantile((1 + index.level) / 2))


def mean_index(indices: Sequence[Estimate]) -> Estimate:
    """Return the mean of the indices of independent benchmarks: standard errors add in quadrature, normal interval.

    Of one benchmark it is that benchmark's own interval. Of several it is symmetric, although theirs may not be: by
    simulation that holds its level, while adding the lower and the upper half-widths apart falls to 91 % with twelve
    lopsided intervals. ``n`` is the number of benchmarks.
    """
    known = [one for one in indices if one.value is not None]
    count, level = len(known), min((one.level for one in known), default=LEVEL)
    if not count:
        return Estimate.nothing(0, "no benchmark that all of them have", level)
    value = math.fsum(one.value or 0.0 for one in known) / count
    errors = [error for one in known if (error := standard_error(one)) is not None]
    if len(errors) < count:
        return Estimate(value, None, None, None, count, count, 0, level, NO_INTERVALS)
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
    plain = mean_index([_turned(one) if (one.value or 0.0) < 0 else one for one in known])
    if plain.low is None or plain.high is None:
        return plain
    surplus = math.fsum(_surplus(one) for one in known) / len(known)
    return dataclasses.replace(plain, low=max(0.0, plain.low - surplus))


def _turned(index: Estimate) -> Estimate:
    """Return the index with its sign and its interval turned round."""
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
    return se * math.sqrt(2 / math.pi) * math.exp(-(size**2) / (2 * se**2)) - size * math.erfc(
        size / (se * math.sqrt(2))
    )


def change(coarse: Estimate, fine: Estimate, published: bool = False) -> Estimate:
    """Return the relative change of an index to a finer grid: (fine − coarse) / |coarse| (PCRI paper, A.4.6).

    It has no interval, since both grids share their docs. It is not defined where the coarser index cannot be told from
    0.

    Args:
        coarse: the index at the coarser grid.
        fine: at the finer one.
        published: whether the numbers are from a published table, which has no intervals.
    """
    first, second = coarse, fine
    unclear = not published if first.low is None or first.high is None else first.low <= 0 <= first.high
    value = None if unclear else relative_change(first.value, second.value)
    shown = "" if first.value is None else f", {first.value:.3f},"
    reason = "" if value is not None else f"the coarser index{shown} cannot be told from 0"
    return Estimate(value, None, None, None, coarse.n, coarse.clusters, 0, coarse.level, reason)


@dataclass(frozen=True)
class Standing(Generic[K]):
    """A model over the shared benchmarks.

    Attributes:
        model: the model.
        size: mean distance of the index from 0; None where the model lacks a shared benchmark.
        signed: mean index, with its sign; None likewise.
        rank: by size, from 1; equal sizes share the better rank. None without a size.
        place: the range of places that intervals leave open; None without a size.
        lacks: the shared benchmarks that it has no index for.
    """

    model: K
    size: Estimate | None
    signed: Estimate | None
    rank: int | None
    place: Place | None
    lacks: tuple[str, ...]


def standings(
    cells: Mapping[K, Mapping[str, Estimate]], shared: Sequence[str], names: Mapping[K, str]
) -> list[Standing[K]]:
    """Return the models by their mean distance from 0, the nearest first; then those without a mean, by name.

    Args:
        cells: of each model the index by benchmark.
        shared: the benchmarks to take means over.
        names: the models' names, by which equal ones are sorted.
    """
    ranked, rest = [], []
    for model, indices in cells.items():
        lacks = tuple(name for name in shared if name not in indices)
        if lacks or not shared:
            rest.append(Standing(model, None, None, None, None, lacks))
        else:
            ranked.append(
                (model, mean_size([indices[name] for name in shared]), mean_index([indices[name] for name in shared]))
            )
    # Rounded, so that equal means stay equal whatever the order of summing.
    values = [round(size.value or 0.0, 9) for _, size, _ in ranked]
    spans = places([badness(size, INDEX)[1] for _, size, _ in ranked])
    ranks = [
        Standing(model, size, signed, 1 + sum(other < value for other in values), place, ())
        for (model, size, signed), value, place in zip(ranked, values, spans, strict=True)
    ]
    ranks.sort(key=lambda one: (one.rank, names[one.model]))
    return [*ranks, *sorted(rest, key=lambda one: names[one.model])]
