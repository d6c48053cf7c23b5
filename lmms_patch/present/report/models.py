"""What the indices say of models (PCRI's reading): ranking, by task type, coarse against fine grid. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lmms_patch.ask.kinds import OF_IMAGES, Words
from lmms_patch.present import ranking as ranks
from lmms_patch.present.ranking import Group, Place, mean_index, mean_size
from lmms_patch.present.report.points import TYPES, Point, as_means, counted, listed, medium_of, model_names, once
from lmms_patch.present.sheets import Column, Row, Sheet, used
from lmms_patch.runs import reading
from lmms_patch.stats.resample import Estimate


@dataclass(frozen=True)
class Standing:
    """A model's place at a grid, over the benchmarks shared by its group.

    Attributes:
        model, n, type: which; type "" is all benchmarks.
        size: mean of |index|; its ``n`` is the number of benchmarks. Without a value where the model lacks a shared
        benchmark.
        signed: mean index.
        rank: by size, from 1, within its group; ties share the better rank. None without a size.
        place: the places that intervals leave open; None where no model of the group has an interval.
        group: its group.
        own: the mean of |index| over all benchmarks that this model has: not comparable.
        steady: whether all of this is of the steady index.
    """

    model: str
    n: int
    type: str
    size: Estimate
    signed: Estimate
    rank: int | None
    place: Place | None
    group: Group[str]
    own: Estimate
    steady: bool


def standings(points: Sequence[Point], n: int, kind: str = "") -> list[Standing]:
    """Return the models at a grid, nearest 0 first within each group.

    Args:
        points: indices; those that may not be read are left out.
        n: the grid.
        kind: a task type; "": all.
    """
    known, steady = as_means([p for p in points if p.n == n and (not kind or p.type == kind)])
    cells = _cells(known)
    out = []
    for group in ranks.groups(cells):
        members = {model: cells[model] for model in (*group.models, *group.without)}
        ordered = ranks.standings(members, group.shared, dict(zip(members, members, strict=True)))
        certain = any(one.size is not None and one.size.low is not None for one in ordered)
        for one in ordered:
            own = mean_size(list(cells[one.model].values()))
            none = dataclasses.replace(mean_size([]), reason=f"lacks {listed(one.lacks, 3)}")
            size, signed = one.size or none, one.signed or none
            out.append(
                Standing(one.model, n, kind, size, signed, one.rank, one.place if certain else None, group, own, steady)
            )
    return out


def _cells(points: Iterable[Point]) -> dict[str, dict[str, Estimate]]:
    """Return the indices for averaging, by model and benchmark."""
    out: dict[str, dict[str, Estimate]] = {}
    for point in points:
        if point.valid and point.value is not None:
            out.setdefault(point.model, {})[point.benchmark] = point.estimate
    return out


def grids(points: Iterable[Point]) -> list[int]:
    """Return the grid sizes, from coarse to fine."""
    return sorted({p.n for p in points})


def types(points: Iterable[Point]) -> list[str]:
    """Return the papers' task types among the points, in the papers' order."""
    there = {p.type for p in points if p.valid}
    return [kind for kind in TYPES if kind in there]


# --- tables ---------------------------------------------------------------------------------------


def sheets(points: Sequence[Point]) -> list[Sheet]:
    """Return all tables across models; those without rows are left out.

    Of one model there is nothing to compare. Task types and grids are the papers', which are of images.
    """
    if len(model_names(points)) < 2:
        return []
    made = [ranking(points)] if medium_of(points).instead else [ranking(points), by_type(points), granularity(points)]
    return [sheet for sheet in made if sheet.rows]


def _named(heads: Sequence[Column], words: Words, index: str) -> tuple[Column, ...]:
    """Return columns with "PCRI" in titles replaced by the name from ``basis``."""
    named = [(head, head.title.replace("PCRI", index)) for head in heads]
    return tuple(
        dataclasses.replace(head, title=words.parts if head.key == "n" and words.instead else title)
        for head, title in named
    )


def basis(parts: Mapping[str, bool], words: Words, points: Sequence[Point] = ()) -> tuple[str, str]:
    """Return the name of the index behind some means (``index`` where parts differ) and a sentence on the choice.

    Args:
        parts: of each part of a table or drawing, whether it is of the steady index.
        words: of the medium.
        points: the indices of one pass; contradicted ones are named where the means are of these.
    """
    index = "trci" if words.instead else "pcri"
    some = [name for name, steady in parts.items() if steady]
    if some and len(some) == len(parts):
        return reading.name(index, steady=True), f"{ranks.STEADY} "
    told = f"Steady at {listed(some)}, where docs were asked again in every run; else of one pass. " if some else ""
    marked = once(
        f"{p.benchmark} with {p.model}, {p.medium.size(p.n, 'x')}" for p in points if p.valid and p.contradicted
    )
    more = (
        f"Of the index of one pass; the steady one contradicts it for {listed(marked, 6)}. "
        if marked and not some
        else ""
    )
    return "index" if some else reading.name(index, steady=False), told + more


_MEANS = (
    Column("size", "mean |PCRI|", help="mean over the shared benchmarks of the index's distance from 0: 0 is robust"),
    Column(
        "signed",
        "mean PCRI",
        signed=True,
        index=True,
        help="mean over the same benchmarks, with its sign: benchmarks of both signs cancel",
    ),
    Column("benchmarks", help="that all ranked models have"),
)
_HEADS = (
    Column("model"),
    *_MEANS,
    Column("rank", help="1: nearest 0"),
    Column("ranks", "rank, by intervals", help="the ranks that the intervals leave open"),
    Column("group", help="models of different groups have no benchmark in common"),
    Column("n", "grid n"),
    Column("own", "mean |PCRI|, all its own", help="over every benchmark that this model has; do not compare these"),
    Column("own_benchmarks", "its benchmarks"),
)
_HOW = (
    "Interval: benchmarks as independent, their standard errors added in quadrature; the lower end also allows for what noise adds to |PCRI|. "
    "Published numbers have none. Models answered the same docs: lmms-patch compare pairs them, and tells two apart better than these intervals do."
)


def _rows(standings: Sequence[Standing]) -> list[Row]:
    known = once(one.group for one in standings)
    return [_row(one, known.index(one.group) + 1 if len(known) > 1 else None) for one in standings]


def _row(one: Standing, group: int | None) -> Row:
    """Return a model's row: place, means over shared benchmarks, and over all of the model's benchmarks."""
    place = one.place
    span = (
        None if place is None else str(place.first) if place.first == place.last else f"{place.first} to {place.last}"
    )
    own = one.own if one.own.n != one.size.n else None
    means: Row = {"size": one.size, "signed": one.signed, "benchmarks": one.size.n}
    means |= {"own": own, "own_benchmarks": one.own.n if own else None}
    return {"group": group, "n": one.n, "rank": one.rank, "ranks": span, "model": one.model, **means}


def ranking(points: Sequence[Point]) -> Sheet:
    """Return models by mean |PCRI|, at each grid."""
    rows: list[Row] = []
    notes: list[tuple[str, str]] = []
    parts: dict[str, bool] = {}
    words = medium_of(points)
    for n in grids(points):
        ordered = standings(points, n)
        if len(ordered) > 1:
            rows += _rows(ordered)
            notes += [(words.size(n, "x"), left_out(group)) for group in once(one.group for one in ordered)]
            parts[words.size(n, "x")] = ordered[0].steady
    index, said = basis(parts, words, points)
    name = "ranking_time" if words.instead else "ranking"
    note = f"{said}{_HOW.replace('PCRI', index)} {_by_grid(notes)}"
    return Sheet(name, f"Models by |{index}|", _named(used(_HEADS, rows), words, index), rows, note)


def _by_grid(notes: Sequence[tuple[str, str]]) -> str:
    """Return each distinct text with the grids concerned in front."""
    texts = once(text for _, text in notes)
    return " ".join(f"{' and '.join(size for size, other in notes if other == text)}: {text}" for text in texts)


def left_out(group: Group[str]) -> str:
    """Say over which benchmarks a mean goes, and which benchmarks and models are left out."""
    text = f"mean over {counted(len(group.shared), 'benchmark')} ({listed(group.shared)})"
    if group.left_out:
        text += f"; left out, because some ranked model has no index there: {listed(group.left_out)}"
    if group.without:
        text += f"; without a rank, because they lack some of these: {listed(group.without, 6)}"
    return text + "."


def by_type(points: Sequence[Point]) -> Sheet:
    """Return models by mean |PCRI| for each of the papers' task types."""
    rows: list[Row] = []
    notes: list[str] = []
    parts: dict[str, bool] = {}
    for kind in types(points):
        for n in grids(points):
            if ordered := standings(points, n, kind):
                rows += [{"type": TYPES[kind], **row} for row in _rows(ordered)]
                told = [group for group in once(one.group for one in ordered) if group.left_out or group.without]
                notes += [f"{TYPES[kind].capitalize()}, {n}x{n}: {left_out(group)}" for group in told]
                parts[f"{n}x{n} ({TYPES[kind]})"] = ordered[0].steady
    unknown = once(p.benchmark for p in points if p.valid and not p.type)
    if unknown and rows:
        notes.append(f"Of unknown type, in none of these: {listed(unknown)}.")
    index, said = basis(parts, OF_IMAGES, points)
    heads = _named(used((Column("type", "task type"), *_HEADS), rows), OF_IMAGES, index)
    note = " ".join(["Models without a benchmark of the type are not in it.", *once(notes)])
    return Sheet("by_type", f"Models by task type, {index}", heads, rows, said + note)


# --- grids ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """The mean index of a model at two grids, over the same benchmarks.

    Attributes:
        model, type: which; type "" is all benchmarks.
        coarse, fine: grid sizes.
        first, second: the means.
        relative: (second − first) / |first|; without a value, with the reason, where the first cannot be told from 0.
        group: the models that it may be compared with.
        steady: whether it is of the steady index.
    """

    model: str
    type: str
    coarse: int
    fine: int
    first: Estimate
    second: Estimate
    relative: Estimate
    group: Group[str]
    steady: bool


def changes(points: Sequence[Point], kind: str = "") -> list[Change]:
    """Return the change from the coarsest grid to each finer grid, over benchmarks shared by a group's models."""
    some = [p for p in points if not kind or p.type == kind]
    out = []
    for fine in grids(p for p in some if p.valid)[1:]:
        coarse = grids(p for p in some if p.valid)[0]
        at = [{p.benchmark for p in some if p.n == n} for n in (coarse, fine)]
        known, steady = as_means([p for p in some if p.n in (coarse, fine) and p.benchmark in at[0] & at[1]])
        first, second = (_cells(p for p in known if p.n == n) for n in (coarse, fine))
        published = {p.model for p in known if p.source}
        both = {model: [b for b in cells if b in second[model]] for model, cells in first.items() if model in second}
        for group in ranks.groups({model: names for model, names in both.items() if names}):
            for model in group.models:
                before, after = (mean_index([cells[model][b] for b in group.shared]) for cells in (first, second))
                relative = ranks.change(before, after, published=model in published)
                out.append(Change(model, kind, coarse, fine, before, after, relative, group, steady))
    return out


def granularity(points: Sequence[Point]) -> Sheet:
    """Return 2x2 against 3x3 (PCRI paper, figure 7), by task type and over all."""
    rows: list[Row] = []
    notes: list[str] = []
    parts: dict[str, bool] = {}
    for kind in ["", *(types(points) if len(types(points)) > 1 else [])]:
        name, changed = TYPES.get(kind, "all"), changes(points, kind)
        for one in changed:
            change = None if one.relative.value is None else 100 * one.relative.value
            means: Row = {
                "first": one.first,
                "second": one.second,
                "change": change,
                "why": one.relative.reason or None,
            }
            rows.append(
                {
                    "type": name,
                    "model": one.model,
                    "coarse": one.coarse,
                    "fine": one.fine,
                    "benchmarks": one.first.n,
                    **means,
                }
            )
            parts[f"{one.coarse}x{one.coarse} to {one.fine}x{one.fine} ({name})"] = one.steady
        told = [group for group in once(one.group for one in changed) if group.left_out or group.without]
        notes += [f"{name.capitalize()}: {left_out(group)}" for group in told]
    heads = (
        Column("type", "task type"),
        Column("model"),
        Column("coarse", "coarse n"),
        Column("fine", "fine n"),
        Column("first", "mean PCRI, coarse", signed=True, index=True),
        Column("second", "mean PCRI, fine", signed=True, index=True),
        Column(
            "change",
            "relative change, %",
            signed=True,
            digits=0,
            help="(fine - coarse) / |coarse|; the paper's 'relative drop' has the other sign",
        ),
        Column("benchmarks"),
        Column("why", "why not"),
    )
    index, said = basis(parts, OF_IMAGES, points)
    note = (
        "Relative change of the mean index (PCRI paper, A.4.6), no interval: both grids share their docs. "
        "Where the coarse index is small, a large change is still a small one: read the means beside it."
    )
    return Sheet(
        "granularity",
        f"From coarse to fine cells, {index}",
        _named(used(heads, rows), OF_IMAGES, index),
        rows,
        said + " ".join([note, *once(notes)]),
    )
