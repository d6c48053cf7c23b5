"""Models by how far their index is from 0, by task type, and from coarse to fine cells (PCRI paper, figures 2 to 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_patch.ask.kinds import OF_IMAGES, Words
from lmms_patch.present.page import wording
from lmms_patch.present.ranking import Group
from lmms_patch.present.report import models as tables
from lmms_patch.present.report.figures import lettering, plots
from lmms_patch.present.report.figures.canvas import INK, Mark, Sketch
from lmms_patch.present.report.models import Change, Standing
from lmms_patch.present.report.points import TYPES, Point, counted, medium_of, model_names, once
from lmms_patch.present.sheets import levels_in
from lmms_patch.stats.resample import Estimate

MOST = 40
"""Models in one drawing: the first by rank."""
CHANGE_EDGE = 300
"""Percent: a larger change is written at the edge."""
_STEP, _ROW = 0.13, 0.2
"""Inches: between two marks of a row, and the least height of a row."""


def drawings(points: Sequence[Point]) -> Iterator[Sketch]:
    """Draw ranking, task types, and relative change, for each group of comparable models.

    Of the index that the tables rank by; none of a single model.
    """
    if len(model_names(points)) < 2:
        return
    words = medium_of(points)
    by_grid = {n: tables.standings(points, n) for n in tables.grids(points)}
    known = once(
        one.group for rows in by_grid.values() for one in rows if one.rank is not None and len(one.group.models) > 1
    )
    for k, group in enumerate(known):
        yield _ranking(
            [one for rows in by_grid.values() for one in rows if one.group == group and one.rank is not None],
            group,
            k,
            len(known),
            words,
        )
    # Task types and grids are the papers', which are of images.
    if not medium_of(points).instead:
        yield from _types(points)
        yield from _changes(points)


def _interval(estimates: Sequence[Estimate]) -> str:
    """Return what the lines of means are."""
    return levels_in(
        "Lines: {} interval, benchmarks as independent.", estimates, "Published numbers, without intervals."
    )


def _grids(grids: Sequence[int], words: Words = OF_IMAGES) -> list[Mark]:
    """Return the legend: which mark is which grid."""
    return [plots.series(k, words.size(n)) for k, n in enumerate(grids)]


def _rows(across: float, names: Mapping[str, str], x: str, titles: Sequence[str], marks: Sequence[Mark]) -> Any:
    """Return panels with a row for each model, which has room for every mark of the legend (``plots.row_panels``)."""
    row = max(_ROW, _STEP * len(marks) + 0.08)
    return plots.row_panels(across, [*names.values()], [*names], row, x, titles, [mark for mark in marks if mark.label])


def _mark(axes: Any, estimate: Estimate, place: float, k: int, who: str, signed: bool) -> None:
    """Draw a mean with its interval; nothing for an undefined mean."""
    if estimate.value is None:
        return
    plots.interval(axes, estimate, place, plots.series(k), f"{who}: {wording.said(estimate, signed)}")


def _off(k: int, count: int) -> float:
    """Return how far the k-th of some marks lies from the middle of its row, in inches."""
    return (k - (count - 1) / 2) * _STEP


def _ranking(rows: Sequence[Standing], group: Group[str], place: int, count: int, words: Words) -> Sketch:
    """Return the drawing of a group of models by rank."""
    grids = sorted({row.n for row in rows})
    order = [row.model for row in rows if row.n == grids[-1]][:MOST]
    names = lettering.short(order)

    index, told = tables.basis({words.size(row.n, "x"): row.steady for row in rows}, words)

    def draw(across: float) -> Any:
        drawing, (axes,), places = _rows(across, names, f"mean |{index}| over benchmarks", [""], _grids(grids, words))
        for row in rows:
            if row.model in order:
                k = grids.index(row.n)
                at = places[order.index(row.model)] + _off(k, len(grids))
                _mark(
                    axes,
                    row.size,
                    at,
                    k,
                    f"{row.model}, mean |{index}| {'in' if words.instead else 'at'} {words.size(row.n)}",
                    False,
                )
        axes.set_xlim(left=0)
        return drawing

    rest = f" Shown: the first {MOST} of {len(group.models)}." if len(group.models) > MOST else ""
    means = tables.left_out(group)
    finest = words.each(grids[-1]) if words.instead else f"the {grids[-1]}×{grids[-1]} grid"
    caption = f"{told}{means[0].upper()}{means[1:]} Sorted by {finest}. {_interval([row.size for row in rows])}{rest}"
    first = next(row for row in rows if row.n == grids[-1])
    where = f"in {words.size(grids[-1])}" if words.instead else f"at {grids[-1]} by {grids[-1]}"
    alt = f"{counted(len(order), 'model')} by mean size of the {index}. Nearest 0 {where}: {first.model}, {first.size.value:.3f}."
    time = "_time" if words.instead else ""
    name = f"ranking{f'-{place + 1}' if count > 1 else ''}{time.replace('_', '-')}"
    return Sketch(name, f"Models by |{index}|", caption + lettering.explained(names), alt, f"models{time}", draw)


# --- by task type ---------------------------------------------------------------------------------


def _types(points: Sequence[Point]) -> Iterator[Sketch]:
    """Draw the mean index of each model, a panel per task type; grids joined by a line.

    One panel of all benchmarks where no type is known.
    """
    kinds = tables.types(points) or [""]
    grids = tables.grids(points)
    panels: dict[str, list[Standing]] = {}
    for kind in kinds:
        shown = [one for n in grids for one in tables.standings(points, n, kind) if one.signed.value is not None]
        if shown:
            panels[kind] = shown
    models = once(one.model for rows in panels.values() for one in sorted(rows, key=lambda row: -row.n))
    if not panels or (len(models) < 2 and len(panels) < 2):
        return
    order = models[:MOST]
    names = lettering.short(order)

    parts = {f"{row.n}x{row.n} ({TYPES.get(kind, 'all')})": row.steady for kind, some in panels.items() for row in some}
    index, told = tables.basis(parts, OF_IMAGES)

    def draw(across: float) -> Any:
        titles = [TYPES.get(kind, "all benchmarks") for kind in panels]
        drawing, made, places = _rows(across, names, f"mean {index}", titles, _grids(grids))
        for axes, (kind, rows) in zip(made, panels.items(), strict=True):
            _type_panel(axes, rows, order, grids, places, TYPES.get(kind, "all benchmarks"))
        return drawing

    over = "; ".join(f"{TYPES.get(kind, 'all')}: {_counts(rows)}" for kind, rows in panels.items())
    rest = f" Shown: {MOST} of {len(models)} models." if len(models) > MOST else ""
    ends = _interval([row.signed for some in panels.values() for row in some])
    caption = f"{told}Mean {index}, with its sign, over the benchmarks that all models of the panel have ({over}). "
    caption += f"{ends}{rest} Each panel has its own scale."
    listed = ", ".join(TYPES.get(kind, "all benchmarks") for kind in panels)
    alt = f"Mean {index} of {counted(len(order), 'model')} by task type: {listed}; numbers are in the tables."
    title = f"Models by task type, coarse and fine cells, {index}"
    yield Sketch("by-type", title, caption + lettering.explained(names), alt, "models", draw)


def _counts(rows: Sequence[Standing]) -> str:
    """Return over how many benchmarks the means of a panel are."""
    counts = sorted({row.signed.n for row in rows})
    return counted(counts[0], "benchmark") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} benchmarks"


def _type_panel(
    axes: Any, rows: Sequence[Standing], order: Sequence[str], grids: Sequence[int], places: Sequence[float], what: str
) -> None:
    """Draw the means of a task type."""
    axes.axvline(0, color=INK, linewidth=0.7, zorder=1)
    for place, model in zip(places, order, strict=True):
        mine = [row for row in rows if row.model == model]
        ends = [row.signed.value for row in mine if row.signed.value is not None]
        at = [place + _off(grids.index(row.n), len(grids)) for row in mine]
        if len(ends) > 1:
            axes.plot(ends, at, color=INK, alpha=0.45, linewidth=0.8, zorder=2)
        for row, y in zip(mine, at, strict=True):
            _mark(axes, row.signed, y, grids.index(row.n), f"{model}, mean index at {row.n}×{row.n}, {what}", True)
    axes.margins(x=0.08)


# --- relative change ------------------------------------------------------------------------------


def _changes(points: Sequence[Point]) -> Iterator[Sketch]:
    """Draw the relative change of the mean index from the coarsest to the finest grid, a mark per task type."""
    kinds = tables.types(points) or [""]
    changes = [one for kind in kinds for one in tables.changes(points, kind)]
    finest = max((one.fine for one in changes), default=0)
    rows = [one for one in changes if one.fine == finest and one.relative.value is not None]
    models = model_names(rows)
    if len(rows) < 2:
        return
    order = models[:MOST]
    names = lettering.short(order)
    index, told = tables.basis({TYPES.get(row.type, "all"): row.steady for row in rows}, OF_IMAGES)
    label = f"({index} at {finest}×{finest} − {index} at {rows[0].coarse}×{rows[0].coarse}) / |the latter|, %"
    most = min(CHANGE_EDGE, max(100 * abs(row.relative.value or 0) for row in rows)) * 1.12

    def draw(across: float) -> Any:
        marks = [plots.series(k, TYPES.get(kind, kind)) for k, kind in enumerate(kinds)]
        drawing, (axes,), places = _rows(across, names, label, [""], marks)
        axes.axvline(0, color=INK, linewidth=0.7, zorder=1)
        axes.set_xlim(-most, most)
        for row in rows:
            if row.model in order:
                k = kinds.index(row.type)
                _change(axes, row, places[order.index(row.model)] + _off(k, len(kinds)), k)
        return drawing

    out = [f"{r.model} ({TYPES.get(r.type, 'all')})" for r in changes if r.fine == finest and r.relative.value is None]
    caption = f"{told}Relative change of the mean {index}; no interval: both grids share their docs. "
    caption += "Of a small coarse index, a large change is a small one."
    caption += (
        f" Not drawn, the coarse index cannot be told from 0: {', '.join(out[:8])}{' and more' if len(out) > 8 else ''}."
        if out
        else ""
    )
    caption += f" Shown: {MOST} of {len(models)} models." if len(models) > MOST else ""
    alt = f"Relative change of the {index} of {counted(len(order), 'model')}; the numbers are in the table."
    title = f"From coarse to fine cells: relative change of {index}"
    yield Sketch("change", title, caption + lettering.explained(names), alt, "models", draw)


def _change(axes: Any, row: Change, place: float, k: int) -> None:
    """Draw a relative change; a very large change is written at the edge."""
    value = 100 * (row.relative.value or 0)
    told = f"{row.model}{f', {TYPES[row.type]}' if row.type in TYPES else ''}: {wording.number(value, True, 1)} %"
    plots.within(axes, value, place, plots.series(k), told, wording.number(value, True, 0))
