"""What the indices say of models (PCRI's reading): ranking, by task type, coarse against fine grid. Pure.

Means are over benchmarks that all ranked models have an index for: a mean over other benchmarks is of another thing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lmms_patch.present.report.points import TYPES, Point, counted, listed, luck_free, once
from lmms_patch.present.sheets import Cell, Column, Sheet
from lmms_patch.stats.index import relative_change
from lmms_patch.stats.intervals import normal_quantile
from lmms_patch.stats.resample import LEVEL, Estimate

NO_INTERVALS = "an index without interval: none for the mean"


@dataclass(frozen=True)
class Group:
    """Models that can be ranked together.

    Attributes:
        models: in the order in which they come.
        shared: the benchmarks that all of them have; may be empty.
        left_out: the benchmarks that only some of them have.
    """

    models: tuple[str, ...]
    shared: tuple[str, ...]
    left_out: tuple[str, ...]


def groups(cells: Iterable[tuple[str, str]]) -> list[Group]:
    """Models in groups that have no benchmark in common with each other.

    Args:
        cells: (model, benchmark) that may be averaged.
    """
    of: dict[str, list[str]] = {}
    for model, benchmark in cells:
        of.setdefault(model, []).append(benchmark)
    out = []
    left = list(of)
    while left:
        members, reached = {left[0]}, set(of[left[0]])
        while more := [m for m in left if m not in members and reached & set(of[m])]:
            members |= set(more)
            reached |= {b for m in more for b in of[m]}
        models = tuple(m for m in left if m in members)
        everything = once(b for m in models for b in of[m])
        shared = tuple(b for b in everything if all(b in of[m] for m in models))
        out.append(Group(models, shared, tuple(b for b in everything if b not in shared)))
        left = [m for m in left if m not in members]
    return out


# --- means ----------------------------------------------------------------------------------------


def mean_index(points: Sequence[Point]) -> Estimate:
    """The mean of some indices of independent benchmarks: standard errors add in quadrature, normal interval.

    Of one benchmark it is that benchmark's own interval. Of several it is symmetric, although theirs may not be: by simulation that holds
    its level, while adding the lower and the upper half-widths apart falls to 91 % with twelve lopsided intervals.
    """
    found = [p for p in points if p.value is not None]
    values, ses, level = [p.value or 0.0 for p in found], [p.se for p in found], min((p.level for p in found), default=LEVEL)
    count = len(values)
    if not count:
        return Estimate(None, None, None, None, 0, 0, 0, level, "no benchmark that all of them have")
    value = math.fsum(values) / count
    known = [se for se in ses if se is not None]
    if len(known) < count:
        return Estimate(value, None, None, None, count, count, 0, level, NO_INTERVALS)
    se = math.sqrt(math.fsum(one * one for one in known)) / count
    half = normal_quantile((1 + level) / 2) * se
    low, high = (found[0].low, found[0].high) if count == 1 else (value - half, value + half)
    return Estimate(value, se, low, high, count, count, 0, level)


def mean_size(points: Sequence[Point]) -> Estimate:
    """The mean of |index|: how far from robust, whichever way.

    Noise alone makes |index| larger: for a true 0 by 0.8 standard errors. So the lower end of the interval is lowered by the mean
    of that surplus, each at the end of its own interval that is nearest 0, where it is largest (the mean of a folded normal, less
    its size); and is at least 0. The number itself is not corrected.
    """
    plain = mean_index([_turned(p) if p.value < 0 else p for p in points if p.value is not None])
    if plain.low is None or plain.high is None:
        return plain
    surplus = math.fsum(_surplus(p) for p in points) / len(points)
    return dataclasses.replace(plain, low=max(0.0, plain.low - surplus))


def _turned(point: Point) -> Point:
    """The other way round: its sign and its interval."""
    value, low, high = (None if end is None else -end for end in (point.value, point.high, point.low))
    return dataclasses.replace(point, value=value, low=low, high=high)


def _surplus(point: Point) -> float:
    """How much larger |index| comes out than it is, at most, given its interval."""
    if point.value is None or not point.se or point.low is None or point.high is None:
        return 0.0
    return folded(max(0.0, abs(point.value) - (point.high - point.low) / 2), point.se)


def folded(size: float, se: float) -> float:
    """E|X| − size for X normal around ``size`` ≥ 0 with this standard error (the folded normal distribution).

    >>> round(folded(0, 1), 4)
    0.7979
    """
    return se * math.sqrt(2 / math.pi) * math.exp(-(size**2) / (2 * se**2)) - size * math.erfc(size / (se * math.sqrt(2)))


# --- ranking --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """A model at one grid, over the benchmarks that its group shares.

    Attributes:
        model, n, type: which; type "" is all benchmarks.
        size: mean of |index|; its ``n`` is the number of benchmarks.
        signed: mean index.
        rank: by size, from 1, within its group; ties share the better rank. None where nothing is shared.
        best, worst: ranks that it may have, going by which intervals lie wholly above or below its own; None without intervals.
        group: its group.
        own: the mean of |index| over all benchmarks that this model has: not comparable.
    """

    model: str
    n: int
    type: str
    size: Estimate
    signed: Estimate
    rank: int | None
    best: int | None
    worst: int | None
    group: Group
    own: Estimate


def standings(points: Sequence[Point], n: int, kind: str = "") -> list[Standing]:
    """The models at one grid, best (nearest 0) first within each group.

    Args:
        points: indices; those that may not be read are left out.
        n: the grid.
        kind: a task type; "": all.
    """
    found = [p for p in points if p.n == n and p.valid and p.value is not None and (not kind or p.type == kind)]
    out = []
    for group in groups((p.model, p.benchmark) for p in found):
        rows = []
        for model in group.models:
            own = [p for p in found if p.model == model]
            shared = [p for p in own if p.benchmark in group.shared]
            rows.append(Standing(model, n, kind, mean_size(shared), mean_index(shared), None, None, None, group, mean_size(own)))
        out += sorted(_ranked(rows), key=lambda row: (row.rank or 0, row.model))
    return out


def _ranked(rows: Sequence[Standing]) -> list[Standing]:
    sizes = [row.size for row in rows]
    if not rows or any(size.value is None for size in sizes):
        return list(rows)
    with_ends = all(size.low is not None for size in sizes)
    out = []
    for row in rows:
        rank = 1 + sum(_number(size.value) < _number(row.size.value) for size in sizes)
        best = 1 + sum(_number(size.high) < _number(row.size.low) for size in sizes) if with_ends else None
        worst = len(sizes) - sum(_number(size.low) > _number(row.size.high) for size in sizes) if with_ends else None
        out.append(dataclasses.replace(row, rank=rank, best=best, worst=worst))
    return out


def _number(value: float | None) -> float:
    return math.nan if value is None else round(value, 9)  # equal means stay equal, whatever the order of the sum


def grids(points: Iterable[Point]) -> list[int]:
    """From coarse to fine."""
    return sorted({p.n for p in points})


def types(points: Iterable[Point]) -> list[str]:
    """The papers' task types that there are, in their order."""
    there = {p.type for p in points if p.valid}
    return [kind for kind in TYPES if kind in there]


# --- tables ---------------------------------------------------------------------------------------


def sheets(points: Sequence[Point]) -> list[Sheet]:
    """Return all tables across models; those without rows are left out. Luck is removed where every null is measured."""
    ranked, which = luck_free(points)
    said = f"{BY_LUCK_FREE} " if which else _contradicted(points)
    made = [sheet for sheet in (ranking(ranked), by_type(ranked), granularity(ranked)) if sheet.rows]
    return [dataclasses.replace(one, title=f"{one.title}, {which}" if which else one.title, note=said + one.note) for one in made]


BY_LUCK_FREE = "Of the index with luck removed: every null is measured."


def _contradicted(points: Sequence[Point]) -> str:
    """Return which raw indices are contradicted, where means are of raw ones; empty where none is."""
    found = once(f"{p.benchmark} with {p.model}, {p.n}x{p.n}" for p in points if p.valid and p.contradicted)
    return f"Of the index as published, which the one with luck removed contradicts for {listed(found, 6)}. " if found else ""


_MEANS = (
    Column("size", "mean |PCRI|", help="mean over the shared benchmarks of the index's distance from 0: 0 is robust"),
    Column("signed", "mean PCRI", signed=True, help="mean over the same benchmarks, with its sign: benchmarks of both signs cancel"),
    Column("benchmarks", "benchmarks", help="that all ranked models have"),
)
_HEADS = (
    Column("group", "group", help="models of different groups have no benchmark in common"),
    Column("n", "grid n"),
    Column("rank", "rank", help="1: nearest 0"),
    Column("ranks", "rank, by intervals", help="the ranks that the intervals leave open"),
    Column("model", "model"),
    *_MEANS,
    Column("own", "mean |PCRI|, all its own", help="over every benchmark that this model has; do not compare these"),
    Column("own_benchmarks", "its benchmarks"),
)
_HOW = (
    "Interval: benchmarks as independent, their standard errors added in quadrature; the lower end also allows for what noise adds to |PCRI|. "
    "Published numbers have none. Models answered the same docs: lmms-patch compare pairs them, and tells two apart better than these intervals do."
)


def _row(one: Standing, group: int | None) -> dict[str, Cell]:
    span = None if one.best is None else str(one.best) if one.best == one.worst else f"{one.best} to {one.worst}"
    own = one.own if one.own.n != one.size.n else None
    means: dict[str, Cell] = {
        "size": one.size,
        "signed": one.signed,
        "benchmarks": one.size.n,
        "own": own,
        "own_benchmarks": one.own.n if own else None,
    }
    return {"group": group, "n": one.n, "rank": one.rank, "ranks": span, "model": one.model, **means}


def _table(name: str, title: str, rows: Sequence[Mapping[str, Cell]], note: str, heads: Sequence[Column] = _HEADS) -> Sheet:
    return Sheet(name, title, tuple(h for h in heads if any(row.get(h.key) is not None for row in rows)), tuple(rows), note)


def ranking(points: Sequence[Point]) -> Sheet:
    """Models by mean |PCRI|, at each grid."""
    rows: list[dict[str, Cell]] = []
    notes: list[tuple[int, str]] = []
    for n in grids(points):
        found = standings(points, n)
        if len(found) < 2:
            continue
        known = once(one.group for one in found)
        rows += [_row(one, known.index(one.group) + 1 if len(known) > 1 else None) for one in found]
        notes += [(n, left_out(group)) for group in known]
    return _table("ranking", "Models by |PCRI|", rows, f"{_HOW} {_by_grid(notes)}")


def _by_grid(notes: Sequence[tuple[int, str]]) -> str:
    """Each text once, behind the grids that it holds for."""
    texts = once(text for _, text in notes)
    return " ".join(f"{' and '.join(f'{n}x{n}' for n, other in notes if other == text)}: {text}" for text in texts)


def left_out(group: Group) -> str:
    """Over which benchmarks the mean is, and which are not in it."""
    if not group.shared:
        return f"no benchmark that all of {listed(group.models, 6)} have: no ranks."
    text = f"mean over {counted(len(group.shared), 'benchmark')} ({listed(group.shared)})"
    if group.left_out:
        text += f"; left out, because some model has no index there: {listed(group.left_out)}"
    return text + "."


def by_type(points: Sequence[Point]) -> Sheet:
    """The same for each of the papers' task types."""
    rows: list[dict[str, Cell]] = []
    notes = []
    for kind in types(points):
        for n in grids(points):
            found = standings(points, n, kind)
            known = once(one.group for one in found)
            rows += [{"type": TYPES[kind], **_row(one, known.index(one.group) + 1 if len(known) > 1 else None)} for one in found]
            notes += [f"{TYPES[kind].capitalize()}, {n}x{n}: {left_out(group)}" for group in known if group.left_out or not group.shared]
    unknown = once(p.benchmark for p in points if p.valid and not p.type)
    if unknown and rows:
        notes.append(f"Of unknown type, in none of these: {listed(unknown)}.")
    heads = (Column("type", "task type"), *_HEADS)
    return _table("by_type", "Models by task type", rows, " ".join(["Models without a benchmark of the type are not in it.", *once(notes)]), heads)


# --- grids ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """The mean index of one model at two grids, over the same benchmarks.

    Attributes:
        model, type: which; type "" is all benchmarks.
        coarse, fine: grid sizes.
        first, second: the means.
        relative: (second − first) / |first|; None with the reason.
        reason: why not.
        group: the models that it may be compared with.
    """

    model: str
    type: str
    coarse: int
    fine: int
    first: Estimate
    second: Estimate
    relative: float | None
    reason: str
    group: Group


def changes(points: Sequence[Point], kind: str = "") -> list[Change]:
    """From the coarsest grid to each finer one, over the benchmarks that all models of a group have at both."""
    found = [p for p in points if p.valid and p.value is not None and (not kind or p.type == kind)]
    at = {p.key: p for p in found}
    out = []
    for fine in grids(found)[1:]:
        coarse = grids(found)[0]
        both = once((p.model, p.benchmark) for p in found if p.n == coarse and (p.benchmark, p.model, fine) in at)
        for group in groups(both):
            for model in group.models if group.shared else ():
                first, second = (mean_index([at[b, model, n] for b in group.shared]) for n in (coarse, fine))
                change, reason = _change(first, second)
                out.append(Change(model, kind, coarse, fine, first, second, change, reason, group))
    return out


def _change(first: Estimate, second: Estimate) -> tuple[float | None, str]:
    if first.low is not None and first.high is not None and first.low <= 0 <= first.high:
        return None, "the coarse index is within noise of 0: nothing to divide by"
    change = relative_change(first.value, second.value)
    return change, "" if change is not None else "the coarse index is 0"


def granularity(points: Sequence[Point]) -> Sheet:
    """2x2 against 3x3 (PCRI paper, figure 7), by task type and over all."""
    rows: list[dict[str, Cell]] = []
    notes = []
    name: Callable[[str], str] = lambda kind: TYPES.get(kind, "all")  # noqa: E731
    for kind in ["", *(types(points) if len(types(points)) > 1 else [])]:
        found = changes(points, kind)
        for one in found:
            change = None if one.relative is None else 100 * one.relative
            means: dict[str, Cell] = {"first": one.first, "second": one.second, "change": change, "why": one.reason or None}
            rows.append({"type": name(kind), "model": one.model, "coarse": one.coarse, "fine": one.fine, "benchmarks": one.first.n, **means})
        notes += [f"{name(kind).capitalize()}: {left_out(group)}" for group in once(c.group for c in found) if group.left_out]
    heads = (
        Column("type", "task type"),
        Column("model", "model"),
        Column("coarse", "coarse n"),
        Column("fine", "fine n"),
        Column("first", "mean PCRI, coarse", signed=True),
        Column("second", "mean PCRI, fine", signed=True),
        Column(
            "change", "relative change, %", signed=True, digits=0, help="(fine - coarse) / |coarse|; the paper's 'relative drop' has the other sign"
        ),
        Column("benchmarks", "benchmarks"),
        Column("why", "why not"),
    )
    note = (
        "Relative change of the mean index (PCRI paper, A.4.6), no interval: both grids share their docs. "
        "Where the coarse index is small, a large change is still a small one: read the means beside it."
    )
    return _table("granularity", "From coarse to fine cells", rows, " ".join([note, *once(notes)]), heads)
