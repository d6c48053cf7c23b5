"""The index of benchmarks by models in colours, and whether models agree on it (RCI paper, figure 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lmms_patch.present import palette
from lmms_patch.present.page import wording
from lmms_patch.present.report import benchmarks as tables
from lmms_patch.present.report.figures import canvas, forests, lettering, plots
from lmms_patch.present.report.figures.canvas import EDGE, ONE, TWO, Mark, Sketch
from lmms_patch.present.report.figures.lettering import SIZE, SMALL
from lmms_patch.present.report.points import Point, benchmarks, columns, counted, model_names
from lmms_patch.present.sheets import levels
from lmms_patch.stats.resample import Estimate

MAP_FROM, MAP_MODELS, ROWS = 4, 14, 30
MATRIX = 24
NARROW = 4
"""Columns that one column of a paper has room for."""
_NAMES = 1.35
"""Room for the names of rows and of columns."""
_TURN = 45.0


def short(value: float) -> str:
    """Return two decimals, without the leading 0.

    >>> short(-0.254), short(0.0012), short(-1.27)
    ('−.25', '.00', '−1.27')
    """
    text = f"{value:+.2f}"
    return (
        ".00"
        if text[1:] == "0.00"
        else text.replace("-", "−").replace("0.", ".", 1)
        if text[1] == "0"
        else text.replace("-", "−")
    )


# --- a table in colours ---------------------------------------------------------------------------


Spot = tuple[float, float, float, float]
"""Left, bottom, width and height of a cell."""


def _table(
    across: float, rows: Sequence[str], heads: Sequence[str], widest: float, marks: Sequence[Mark]
) -> tuple[Any, Callable[[int, int], Spot]]:
    """Return a figure with the names of rows and slanted heads, and the place of the cell of a row and a column; row 0 is on top."""
    room = _NAMES if across >= TWO else 1.0
    shown, named = ([lettering.fit(one, room, SIZE, 1) for one in names] for names in (rows, heads))
    left = max(map(lettering.width, shown)) + 0.1 + EDGE
    above = max(map(lettering.width, named)) * math.sin(math.radians(_TURN)) + 0.2
    # The last head is turned and leans over the right edge.
    beyond, free = lettering.width(named[-1]) * math.cos(math.radians(_TURN)), across - left - EDGE
    side = min(widest, free / len(heads), (free - beyond) / max(0.5, len(heads) - 0.5))
    tall = max(0.22, min(side * 0.72, 0.46, 6.4 / len(rows)))
    right = EDGE + max(0.0, beyond - side / 2)
    drawing, ((x, y),), _ = plots.layout(
        across,
        1,
        columns=1,
        left=left,
        right=right,
        head=above,
        below=0.07,
        widest=side * len(heads),
        body=tall * len(rows),
        marks=marks,
    )
    for k, (name, whole) in enumerate(zip(shown, rows, strict=True)):
        at = x - 0.05, y + (len(rows) - k - 0.5) * tall
        canvas.tip(canvas.write_at(drawing, *at, name, SIZE, ha="right", va="center_baseline"), whole)
    for k, (name, whole) in enumerate(zip(named, heads, strict=True)):
        at = x + (k + 0.5) * side, y + tall * len(rows) + 0.05
        canvas.tip(canvas.write_at(drawing, *at, name, SIZE, rotation=_TURN, rotation_mode="anchor"), whole)
    return drawing, lambda row, column: (x + column * side, y + (len(rows) - 1 - row) * tall, side, tall)


# --- maps -----------------------------------------------------------------------------------------


def maps(points: Sequence[Point]) -> Iterator[Sketch]:
    """Draw benchmarks by models in the colours of the bands, per grid: for many models."""
    every, names = model_names(points), benchmarks(points)
    if len(every) < MAP_FROM or len(names) < 2:
        return
    for n in sorted({p.n for p in points}):
        shown = [p for p in points if p.n == n]
        rows = forests.order(shown)
        for some, part, end, told in plots.blocks(every, MAP_MODELS, rows, ROWS):
            yield _map(shown, some, part, n, f"map{n}{end}", told)


def _map(points: Sequence[Point], models: Sequence[str], rows: Sequence[str], n: int, name: str, part: str) -> Sketch:
    """Return the table of some models and benchmarks in colours."""
    names = lettering.short(models)
    at = {(p.benchmark, p.model): p for p in points if p.model in models and p.benchmark in rows}
    contradicted = any(p.valid and p.contradicted for p in at.values())
    caption = (
        f"RCI of one pass, on the {n}×{n} grid, in the colours of the bands of the RCI paper, 3.2; "
        "no cell: not asked. N/A: refused by the "
    )
    caption += f"gate, or not defined. Intervals are in the tables.{' In brackets: steady RCI says something else.' * contradicted}"
    caption += lettering.explained(names)
    what = f"{counted(len(rows), 'benchmark')} with {counted(len(models), 'model')}"
    alt = f"Table in colours of the RCI of {what} at {n} by {n}; the numbers are in the table of indices."

    def draw(across: float) -> Any:
        marks = [Mark(band, "patch", colour) for band, colour in zip(palette.NAMES, palette.BAND_LIGHT, strict=True)]
        drawing, spot = _table(across, rows, [names[model] for model in models], 0.85, marks)
        for (row, model), point in at.items():
            _map_cell(drawing, spot(rows.index(row), models.index(model)), point)
        return drawing

    title = f"RCI of each benchmark and model, {n}×{n}{part}"
    return Sketch(name, title, caption, alt, "benchmarks", draw, papers=(ONE, TWO) if len(models) <= NARROW else (TWO,))


def _map_cell(drawing: Any, spot: Spot, point: Point) -> None:
    """Draw the index of a benchmark and model, or N/A."""
    who = f"{point.benchmark}, {point.model}, {point.n}×{point.n}"
    if point.valid and point.value is not None:
        label = f"({short(point.value)})" if point.contradicted else short(point.value)
        plots.cell(drawing, *spot, palette.band_colour(point.value), f"{who}: {forests.said(point.estimate)}", label)
    else:
        plots.cell(drawing, *spot, None, f"{who}: N/A, {point.reason or 'not defined'}", "N/A")


# --- agreement ------------------------------------------------------------------------------------


def matrices(points: Sequence[Point]) -> Iterator[Sketch]:
    """Draw the correlation over benchmarks between models and grids.

    One drawing per grid where there are many columns; none of a single model.
    """
    usable = [p for p in points if p.valid]
    if len(model_names(usable)) < 2:
        return
    sets = (
        [usable]
        if len(columns(usable)) <= tables.WIDEST_MATRIX
        else [[p for p in usable if p.n == n] for n in sorted({p.n for p in usable})]
    )
    for some in sets:
        pairs = columns(some)
        if 2 <= len(pairs) <= MATRIX and any(r.value is not None for r, _ in tables.by_pair(some).values()):
            yield _matrix(some, pairs, "correlation" if len(sets) == 1 else f"correlation{some[0].n}")


_LEVELS = ((-0.6, 0), (-0.2, 2), (0.2, 4), (0.6, 6), (1.01, 8))
"""Upper ends of r, and which colour of a share it takes: a correlation below 0 green, about 0 white, above 0 purple."""


def r_colour(r: float) -> str:
    """Return the colour of a correlation."""
    return palette.SHARES[next(level for end, level in _LEVELS if r < end)]


def _matrix(points: Sequence[Point], pairs: Sequence[tuple[str, int]], name: str) -> Sketch:
    """Return the correlation matrix of some columns."""
    known = {(pairs.index(b), pairs.index(a)): r for (a, b), (r, _) in tables.by_pair(points).items()}
    names = lettering.short(model for model, _ in pairs)
    size = len(pairs)
    counts = sorted({r.n for r in known.values()})
    over = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    values = [r.value for r in known.values() if r.value is not None]
    spanned = f" r from {min(values):.3f} to {max(values):.3f}." if values else ""
    caption = f"Pearson's r of the index over {over} benchmarks.{spanned}"
    if sure := levels(known.values()):
        caption += f" In brackets or in the table: {sure} intervals by Fisher's z. Outlined: the interval leaves out 0."
    caption += lettering.explained(names)
    if len(names) < size:
        caption += " Columns of one model share its answers to the full images, so they agree by construction."
    grid = "" if name == "correlation" else f", {pairs[0][1]}×{pairs[0][1]}"

    def draw(across: float) -> Any:
        heads = [f"{names[model]}, {n}×{n}" for model, n in pairs]
        marks = [
            Mark(label, "patch", palette.SHARES[level])
            for (_, level), label in zip(_LEVELS, ("r < −0.6", "to −0.2", "to 0.2", "to 0.6", "above"), strict=True)
        ]
        drawing, spot = _table(across, heads, heads, 0.95, marks)
        for a in range(size):
            for b in range(size):
                r = known.get((max(a, b), min(a, b)))
                if a == b:
                    plots.cell(drawing, *spot(a, b), None, f"{heads[a]} and {heads[b]}", "1")
                else:
                    _r_cell(drawing, spot(a, b), r, f"{heads[a]} and {heads[b]}")
        return drawing

    alt = f"Correlation matrix of {counted(size, 'column')}.{spanned}"
    return Sketch(
        name,
        f"Do models agree on benchmarks{grid}?",
        caption,
        alt,
        "benchmarks",
        draw,
        papers=(ONE, TWO) if size <= NARROW else (TWO,),
    )


def _r_cell(drawing: Any, spot: Spot, r: Estimate | None, who: str) -> None:
    """Draw a correlation, outlined where the interval leaves out 0."""
    side = spot[2]
    if r is None or r.value is None:
        told = f"{who}: N/A{f', {r.reason}' if r else ''}"
        plots.cell(drawing, *spot, None, told, "N/A" if side >= 0.26 else "")
        return
    ends = wording.ends(r, digits=2)
    whole = ends and lettering.width(ends, SMALL - 1) + 0.04 < side
    text = f"{wording.number(r.value)}\n{ends}" if whole else short(r.value).lstrip("+")
    sure = r.low is not None and r.high is not None and (r.low > 0 or r.high < 0)
    size, told = SMALL - 1 if whole else SMALL, f"{who}: r = {wording.said(r)}"
    plots.cell(drawing, *spot, r_colour(r.value), told, text if side >= 0.26 else "", size, sure)
