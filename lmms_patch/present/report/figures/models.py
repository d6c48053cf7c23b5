"""Models by how far their index is from 0, by task type, and from coarse to fine cells (PCRI paper, figures 2 to 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lmms_patch.present.ranking import Group
from lmms_patch.present.report import models as tables
from lmms_patch.present.report.figures import canvas
from lmms_patch.present.report.figures.heatmaps import Made
from lmms_patch.present.report.models import Change, Standing
from lmms_patch.present.report.points import TYPES, Point, counted, once
from lmms_patch.stats.resample import Estimate

MOST = 40
"""Models in one drawing: the first by rank."""
CHANGE_EDGE = 300
"""Percent: a larger change is written at the edge."""


def drawings(points: Sequence[Point]) -> Iterator[Made]:
    """Draw ranking, task types, and relative change, of each group of models that can be compared; of the index that the tables rank by."""
    by_grid = {n: tables.standings(points, n) for n in tables.grids(points)}
    known = once(one.group for rows in by_grid.values() for one in rows if one.rank is not None and len(one.group.models) > 1)
    for k, group in enumerate(known):
        yield _ranking([one for rows in by_grid.values() for one in rows if one.group == group and one.rank is not None], group, k, len(known))
    yield from _types(points)
    yield from _changes(points)


def _interval(estimates: Sequence[Estimate]) -> str:
    levels = once(f"{100 * e.level:g} %" for e in estimates if e.low is not None)
    return f"Lines: {' or '.join(levels)} interval, benchmarks as independent." if levels else "Published numbers, without intervals."


def _mark(axes: Any, estimate: Estimate, place: float, k: int) -> None:
    colour = canvas.COLOURS[k % len(canvas.COLOURS)]
    if estimate.value is None:
        return
    if estimate.low is not None and estimate.high is not None:
        axes.plot([estimate.low, estimate.high], [place, place], color=colour, linewidth=1.3, solid_capstyle="butt", zorder=2)
    axes.plot([estimate.value], [place], canvas.MARKERS[k % len(canvas.MARKERS)], color=colour, markersize=5, zorder=3)


def _rows(axes: Any, models: Sequence[str], others: Sequence[Any] = ()) -> None:
    axes.set_yticks(range(len(models)), [canvas.name(model) for model in models])
    axes.set_ylim(len(models) - 0.5, -0.5)
    for one, place in ((one, place) for one in (axes, *others) for place in range(len(models))):
        one.axhline(place, color=canvas.INK, alpha=0.12, linewidth=0.6, zorder=0)


def _key(drawing: Any, grids: Sequence[int]) -> None:
    """Draw the legend below all axes: which mark is which grid."""
    looks = [(canvas.MARKERS[k % len(canvas.MARKERS)], canvas.COLOURS[k % len(canvas.COLOURS)]) for k in range(len(grids))]
    canvas.key(drawing, [canvas.mark(f"{n}×{n}", *look) for n, look in zip(grids, looks, strict=True)])


def _ranking(rows: Sequence[Standing], group: Group[str], place: int, count: int) -> Made:
    grids = sorted({row.n for row in rows})
    order = [row.model for row in rows if row.n == grids[-1]][:MOST]
    drawing, axes = canvas.new(6.8, 1.35 + 0.27 * len(order), 1, 1)
    one = axes[0, 0]
    for row in rows:
        if row.model in order:
            k = grids.index(row.n)
            _mark(one, row.size, order.index(row.model) + (k - (len(grids) - 1) / 2) * min(0.26, 0.7 / len(grids)), k)
    _rows(one, order)
    one.set_xlim(left=0)
    one.set_xlabel("mean |index| over benchmarks (0: the same from one cell as from the whole image)")
    _key(drawing, grids)
    rest = f" Shown: the first {MOST} of {len(group.models)}." if len(group.models) > MOST else ""
    means = tables.left_out(group)
    end, said = tables.basis({f"{row.n}x{row.n}": row.luck_free for row in rows})
    caption = f"{said}{means[0].upper()}{means[1:]} Sorted by the {grids[-1]}×{grids[-1]} grid. {_interval([row.size for row in rows])}{rest}"
    first = next(row for row in rows if row.n == grids[-1])
    alt = f"{counted(len(order), 'model')} by mean size of the index. Nearest 0 at {grids[-1]} by {grids[-1]}: {first.model}, {first.size.value:.3f}."
    return drawing, f"ranking{f'-{place + 1}' if count > 1 else ''}", f"Models by |PCRI|{end}", caption, alt, "models", ()


# --- by task type ---------------------------------------------------------------------------------


def _types(points: Sequence[Point]) -> Iterator[Made]:
    """Draw the mean index of each model, a panel per task type; grids joined by a line. One panel of all benchmarks where no type is known."""
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
    drawing, axes = canvas.new(2.2 + 2.05 * len(panels) + (1.2 if len(panels) == 1 else 0), 1.5 + 0.27 * len(order), 1, len(panels), sharey=True)
    for one, (kind, rows) in zip(axes.flat, panels.items(), strict=True):
        _type_panel(one, rows, order, grids)
        one.set_title(canvas.name(TYPES.get(kind, "all benchmarks"), 26), fontsize=9)
        one.set_xlabel("mean index")
    _rows(axes[0, 0], order, axes[0, 1:])
    _key(drawing, grids)
    over = "; ".join(f"{TYPES.get(kind, 'all')}: {_counts(rows)}" for kind, rows in panels.items())
    rest = f" Shown: {MOST} of {len(models)} models." if len(models) > MOST else ""
    ends = _interval([row.signed for some in panels.values() for row in some])
    basis, said = tables.basis({f"{row.n}x{row.n} ({TYPES.get(kind, 'all')})": row.luck_free for kind, some in panels.items() for row in some})
    caption = (
        f"{said}Mean index, with its sign, over the benchmarks that all models of the panel have ({over}). {ends}{rest} Each panel has its own scale."
    )
    names = ", ".join(TYPES.get(kind, "all benchmarks") for kind in panels)
    alt = f"Mean index of {counted(len(order), 'model')} by task type: {names}; numbers are in the tables."
    yield drawing, "by-type", f"Models by task type, coarse and fine cells{basis}", caption, alt, "models", ()


def _counts(rows: Sequence[Standing]) -> str:
    counts = sorted({row.signed.n for row in rows})
    return counted(counts[0], "benchmark") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} benchmarks"


def _type_panel(axes: Any, rows: Sequence[Standing], order: Sequence[str], grids: Sequence[int]) -> None:
    axes.axvline(0, color=canvas.INK, linewidth=0.8, zorder=1)
    for place, model in enumerate(order):
        mine = [row for row in rows if row.model == model]
        ends = [row.signed.value for row in mine if row.signed.value is not None]
        step = min(0.26, 0.7 / len(grids)) if any(row.signed.low is not None for row in mine) else 0.0
        places = [place + (grids.index(row.n) - (len(grids) - 1) / 2) * step for row in mine]
        if len(ends) > 1:
            axes.plot(ends, places, color=canvas.INK, alpha=0.45, linewidth=0.9, zorder=1)
        for row, at in zip(mine, places, strict=True):
            _mark(axes, row.signed, at, grids.index(row.n))
    axes.margins(x=0.08)


# --- relative change ------------------------------------------------------------------------------


def _changes(points: Sequence[Point]) -> Iterator[Made]:
    """Draw the relative change of the mean index from the coarsest to the finest grid, a colour per task type."""
    kinds = tables.types(points) or [""]
    changes = [one for kind in kinds for one in tables.changes(points, kind)]
    finest = max((one.fine for one in changes), default=0)
    rows = [one for one in changes if one.fine == finest and one.relative.value is not None]
    models = once(one.model for one in rows)
    if len(rows) < 2:
        return
    order = models[:MOST]
    drawing, axes = canvas.new(6.8, 1.5 + 0.27 * len(order), 1, 1)
    one = axes[0, 0]
    one.axvline(0, color=canvas.INK, linewidth=0.8, zorder=1)
    for row in rows:
        if row.model in order:
            k = kinds.index(row.type)
            _change(one, row, order.index(row.model) + (k - (len(kinds) - 1) / 2) * 0.16, k)
    _rows(one, order)
    most = min(CHANGE_EDGE, max(100 * abs(row.relative.value or 0) for row in rows)) * 1.12
    one.set_xlim(-most, most)
    one.set_xlabel(f"(index at {finest}×{finest} − index at {rows[0].coarse}×{rows[0].coarse}) / |the latter|, %")
    _kinds(drawing, kinds)
    out = [f"{r.model} ({TYPES.get(r.type, 'all')})" for r in changes if r.fine == finest and r.relative.value is None]
    basis, said = tables.basis({TYPES.get(row.type, "all"): row.luck_free for row in rows})
    caption = (
        f"{said}Relative change of the mean index; no interval: both grids share their docs. Of a small coarse index, a large change is a small one."
    )
    caption += f" Not drawn, the coarse index cannot be told from 0: {', '.join(out[:8])}{' and more' if len(out) > 8 else ''}." if out else ""
    alt = f"Relative change of the index of {counted(len(order), 'model')}; the numbers are in the table."
    yield drawing, "change", f"From coarse to fine cells: relative change{basis}", caption, alt, "models", ()


def _change(axes: Any, row: Change, place: float, k: int) -> None:
    value = 100 * (row.relative.value or 0)
    colour = canvas.COLOURS[k % len(canvas.COLOURS)]
    if abs(value) > CHANGE_EDGE:
        left = value < 0
        label = f"◂ {value:+.0f}" if left else f"{value:+.0f} ▸"
        axes.text((-1 if left else 1) * 1.1 * CHANGE_EDGE, place, label, color=colour, fontsize=6.5, va="center", ha="left" if left else "right")
    else:
        axes.plot([value], [place], canvas.MARKERS[k % len(canvas.MARKERS)], color=colour, markersize=4.5)


def _kinds(drawing: Any, kinds: Sequence[str]) -> None:
    if len(kinds) > 1:
        canvas.key(drawing, [canvas.mark(TYPES.get(kind, kind), canvas.MARKERS[k], canvas.COLOURS[k]) for k, kind in enumerate(kinds)])
