"""The index over benchmarks, and whether models agree on it (RCI paper, figures 2 and 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lmms_patch.present.report import benchmarks as tables
from lmms_patch.present.report.figures import canvas
from lmms_patch.present.report.figures.heatmaps import Made
from lmms_patch.present.report.points import Point, benchmarks, columns, counted, listed, once
from lmms_patch.stats.index import BANDS, fragmentation

LEAST, EDGE = 0.45, 1.1
"""The axis reaches at least to ±0.45, and at most to ±1.1: an index beyond is written at its edge."""
ROWS, MODELS, MOST_MODELS = 30, 6, 12
MAP_FROM, MAP_MODELS = 4, 24
MATRIX, NUMBERED, WITH_INTERVAL = 24, 20, 8
SHADES = ("#B35806", "#FDB863", "#9A9A9A", "#B2ABD2", "#542788")
"""Of the five bands, from local to global: ColorBrewer's PuOr, with grey in the middle."""


def reach(values: Sequence[float]) -> float:
    """Return how far the axis reaches from 0."""
    return min(EDGE, max(LEAST, 1.12 * max((abs(v) for v in values), default=0.0)))


def shade_bands(axes: Any, most: float) -> None:
    """Draw the bands of the RCI paper, 3.2, behind the points; horizontal axis is the index."""
    ends = [-most, *(end for end, _ in BANDS), most]
    for left, right, colour in zip(ends[:-1], ends[1:], SHADES, strict=True):
        axes.axvspan(left, right, color=colour, alpha=0.13, linewidth=0, zorder=0)
    axes.axvline(0, color=canvas.INK, linewidth=0.8, zorder=1)
    axes.set_xlim(-most, most)


def band_names(axes: Any, most: float) -> None:
    """Write the bands' names above the axes."""
    ends = [-most, *(end for end, _ in BANDS), most]
    for left, right, name in zip(
        ends[:-1], ends[1:], ("strong\nlocal", "moderate\nlocal", "balanced", "moderate\nglobal", "strong\nglobal"), strict=True
    ):
        axes.text((left + right) / 2, 1.01, name, transform=axes.get_xaxis_transform(), ha="center", va="bottom", fontsize=7)


# --- forest ---------------------------------------------------------------------------------------


def forests(points: Sequence[Point]) -> Iterator[Made]:
    """Draw index and interval of each benchmark, a drawing per grid; split by models and benchmarks where there are many."""
    own = [p for p in points if not p.source]
    if len({p.model for p in points}) > (MOST_MODELS if any(p.low is not None for p in points) else MODELS):
        points = own  # the published ones are in the map
    models = once(p.model for p in points)
    if len(models) > MOST_MODELS:
        return
    for n in sorted({p.n for p in points}):
        of_grid = [p for p in points if p.n == n]
        order = _order(of_grid)
        parts = [(models[i : i + MODELS], order[j : j + ROWS]) for i in range(0, len(models), MODELS) for j in range(0, len(order), ROWS)]
        for k, (some, rows) in enumerate(parts):
            shown = [p for p in of_grid if p.model in some and p.benchmark in rows]
            if shown:
                end = (f"-{k + 1}", f" ({k + 1} of {len(parts)})") if len(parts) > 1 else ("", "")
                yield _forest(shown, some, rows, n, f"index{n}{end[0]}", end[1])


def _order(points: Sequence[Point]) -> list[str]:
    """Return the benchmarks from the most local to the most global, by the mean over models; those without an index last."""

    def mean(name: str) -> float:
        values = [p.value for p in points if p.benchmark == name and p.valid and p.value is not None]
        return float(np.mean(values)) if values else np.inf

    return sorted(benchmarks(points), key=mean)


def _forest(points: Sequence[Point], models: Sequence[str], rows: Sequence[str], n: int, name: str, part: str) -> Made:
    many = len(models)
    drawing, axes = canvas.new(7.4, 1.25 + len(rows) * max(0.3, 0.17 * many) + 0.2 * ((many + 2) // 3), 1, 1)
    one = axes[0, 0]
    most = reach([v for p in points for v in (p.value, p.low, p.high) if v is not None and p.valid])
    shade_bands(one, most)
    band_names(one, most)
    for point in points:
        m = models.index(point.model)
        place = rows.index(point.benchmark) + (m - (many - 1) / 2) * min(0.17, 0.8 / many)
        _draw(one, point, place, m, most)
    one.set_yticks(range(len(rows)), [canvas.name(row) for row in rows])
    one.set_ylim(len(rows) - 0.5, -0.5)
    for place in range(len(rows)):
        one.axhline(place, color=canvas.INK, alpha=0.12, linewidth=0.6, zorder=0)
    levels = once(f"{100 * p.level:g} %" for p in points if p.low is not None)
    one.set_xlabel("index = 1 − MPP/FIP (below 0: one cell beats the whole image)" + (f";\nlines: {' or '.join(levels)} intervals" if levels else ""))
    canvas.key(drawing, [canvas.mark(canvas.name(name), canvas.MARKERS[m], canvas.COLOURS[m]) for m, name in enumerate(models)])
    docs = [p.docs for p in points if p.docs]
    size = "" if not docs else f" {min(docs):,} to {max(docs):,} docs each." if min(docs) < max(docs) else f" {docs[0]:,} docs each."
    caption = f"The index of each benchmark and model on the {n}×{n} grid. {interval_text(points)}{size} Shaded: the bands of the RCI paper, 3.2."
    caption += f" Mind: {fragmentation(n)}." if fragmentation(n) else ""
    out = [f"{p.benchmark} with {p.model}" for p in points if not p.valid]
    caption += f" N/A (refused by the gate, or not defined): {listed(out, 6)}." if out else ""
    marked = [f"{p.benchmark} with {p.model}" for p in points if p.valid and p.contradicted]
    caption += f" Hollow: with luck removed the index says something else ({listed(marked, 6)})." if marked else ""
    lines = [f"{p.benchmark}, {p.model}: {p.value:+.2f}" for p in points if p.valid and p.value is not None]
    alt = f"Index by benchmark at {n} by {n}. " + "; ".join(lines[:12]) + ("; and more, in the table." if len(lines) > 12 else ".")
    return drawing, name, f"Index by benchmark, {n}×{n}{part}", caption, alt, "benchmarks", ()


def interval_text(points: Sequence[Point]) -> str:
    """Return what the lines are."""
    levels = once(f"{100 * p.level:g} %" for p in points if p.low is not None)
    return f"Lines: {' or '.join(levels)} interval, bootstrap over docs." if levels else "Published numbers, without intervals."


def _draw(axes: Any, point: Point, place: float, m: int, most: float) -> None:
    colour = canvas.COLOURS[m % MODELS]
    if not point.valid or point.value is None:
        axes.text(-0.985 * most, place, "N/A", va="center", ha="left", fontsize=7, color=colour)
        return
    if abs(point.value) > most:
        side = -1 if point.value < 0 else 1
        label = f"◂ {point.value:+.2f}" if side < 0 else f"{point.value:+.2f} ▸"
        axes.text(side * 0.985 * most, place, label, va="center", ha="left" if side < 0 else "right", fontsize=7, color=colour)
        return
    if point.low is not None and point.high is not None:
        axes.plot([max(point.low, -most), min(point.high, most)], [place, place], color=colour, linewidth=1.3, solid_capstyle="butt", zorder=2)
    fill = "none" if point.contradicted else colour
    axes.plot([point.value], [place], canvas.MARKERS[m % MODELS], color=colour, markerfacecolor=fill, markersize=5, zorder=3)


def short(value: float) -> str:
    """Return two decimals, without the leading 0.

    >>> short(-0.254), short(0.0012), short(-1.27)
    ('−.25', '.00', '−1.27')
    """
    text = f"{value:+.2f}"
    return ".00" if text[1:] == "0.00" else text.replace("-", "−").replace("0.", ".", 1) if text[1] == "0" else text.replace("-", "−")


# --- maps -----------------------------------------------------------------------------------------


def maps(points: Sequence[Point]) -> Iterator[Made]:
    """Draw benchmarks by models in colours that diverge around 0, per grid: for many models."""
    models, names = once(p.model for p in points), benchmarks(points)
    if len(models) < MAP_FROM or len(names) < 2:
        return
    for n in sorted({p.n for p in points}):
        shown = [p for p in points if p.n == n]
        order = _order(shown)
        parts = [(models[i : i + MAP_MODELS], order[j : j + ROWS]) for i in range(0, len(models), MAP_MODELS) for j in range(0, len(order), ROWS)]
        for k, (some, rows) in enumerate(parts):
            end = (f"-{k + 1}", f" ({k + 1} of {len(parts)})") if len(parts) > 1 else ("", "")
            yield _map(shown, some, rows, n, f"map{n}{end[0]}", end[1])


def _map(points: Sequence[Point], models: Sequence[str], rows: Sequence[str], n: int, name: str, part: str) -> Made:
    import matplotlib

    at = {(p.benchmark, p.model): p for p in points}
    drawing, axes = canvas.new(2.6 + 0.46 * len(models), 1.9 + 0.27 * len(rows), 1, 1)
    one = axes[0, 0]
    values = np.full((len(rows), len(models)), np.nan)
    colours = matplotlib.colormaps["PuOr"].resampled(33)
    for i, row in enumerate(rows):
        for j, model in enumerate(models):
            point = at.get((row, model))
            if point is not None and point.valid and point.value is not None:
                values[i, j] = point.value
                ink = canvas.in_cells(colours((np.clip(point.value, -0.6, 0.6) + 0.6) / 1.2))
                label = f"({short(point.value)})" if point.contradicted else short(point.value)
                one.text(j + 0.5, i + 0.5, label, ha="center", va="center", fontsize=7, color=ink, in_layout=False)
            elif point is not None:
                one.text(j + 0.5, i + 0.5, "N/A", ha="center", va="center", fontsize=7, in_layout=False)
    made = one.pcolormesh(
        np.arange(len(models) + 1),
        np.arange(len(rows) + 1),
        np.ma.masked_invalid(values),
        cmap=colours,
        vmin=-0.6,
        vmax=0.6,
        edgecolors="face",
        linewidth=0.3,
    )
    one.set_xticks(np.arange(len(models)) + 0.5, [canvas.name(m, 28) for m in models], rotation=50, ha="right", rotation_mode="anchor")
    one.set_yticks(np.arange(len(rows)) + 0.5, [canvas.name(row, 28) for row in rows])
    one.tick_params(length=0)
    one.invert_yaxis()
    one.spines[:].set_visible(False)
    bar = drawing.colorbar(made, ax=one, extend="both", shrink=0.8, aspect=20, pad=0.02)
    bar.set_label("index = 1 − MPP/FIP")
    canvas.plain_bar(bar)
    caption = f"The index on the {n}×{n} grid; colours end at ±0.6; empty: not asked. N/A: refused by the gate, or not defined."
    caption += " Intervals are in the tables."
    caption += " In brackets: with luck removed the index says something else." if any(p.valid and p.contradicted for p in points) else ""
    what = f"{counted(len(rows), 'benchmark')} with {counted(len(models), 'model')}"
    alt = f"Table in colours of the index of {what} at {n} by {n}; the numbers are in the table of indices."
    return drawing, name, f"Index of each benchmark and model, {n}×{n}{part}", caption, alt, "benchmarks", ()


# --- agreement ------------------------------------------------------------------------------------


def matrices(points: Sequence[Point]) -> Iterator[Made]:
    """Draw the correlation over benchmarks between models and grids; one drawing per grid where there are many columns."""
    usable = [p for p in points if p.valid]
    sets = [usable] if len(columns(usable)) <= tables.WIDEST_MATRIX else [[p for p in usable if p.n == n] for n in sorted({p.n for p in usable})]
    for some in sets:
        pairs = columns(some)
        if 2 <= len(pairs) <= MATRIX and any(r.value is not None for r, _ in tables.by_pair(some).values()):
            yield _matrix(some, pairs, "correlation" if len(sets) == 1 else f"correlation{some[0].n}")


def _matrix(points: Sequence[Point], pairs: Sequence[tuple[str, int]], name: str) -> Made:
    import matplotlib

    size = len(pairs)
    by_place = {(pairs.index(b), pairs.index(a)): r for (a, b), (r, _) in tables.by_pair(points).items()}
    values = np.full((size, size), np.nan)
    np.fill_diagonal(values, 1.0)
    for (a, b), r in by_place.items():
        values[a, b] = values[b, a] = np.nan if r.value is None else r.value
    least = -1.0 if np.nanmin(values) < 0 else 0.0
    colours = matplotlib.colormaps["PuOr" if least else "cividis"].resampled(33)
    width = (0.92 if size <= WITH_INTERVAL else 0.45) * size
    drawing, axes = canvas.new(2.9 + width, 1.7 + 0.72 * width if size <= WITH_INTERVAL else 1.9 + 0.8 * width, 1, 1)
    one = axes[0, 0]
    edges = np.arange(size + 1)
    made = one.pcolormesh(edges, edges, np.ma.masked_invalid(values), cmap=colours, vmin=least, vmax=1, edgecolors="face", linewidth=0.3)
    for a in range(size):
        for b in range(size):
            one_r = by_place.get((max(a, b), min(a, b)))
            label = "1" if a == b else _r(one_r, size <= WITH_INTERVAL)
            ink = canvas.INK if np.isnan(values[a, b]) else canvas.in_cells(colours((values[a, b] - least) / (1 - least)))
            if size <= NUMBERED:
                one.text(b + 0.5, a + 0.5, label, ha="center", va="center", fontsize=8 if size <= WITH_INTERVAL else 6.5, color=ink, in_layout=False)
    labels = [f"{canvas.name(model, 24)}, {n}×{n}" for model, n in pairs]
    one.set_xticks(np.arange(size) + 0.5, labels, rotation=45, ha="right", rotation_mode="anchor")
    one.set_yticks(np.arange(size) + 0.5, labels)
    one.tick_params(length=0)
    one.invert_yaxis()
    one.spines[:].set_visible(False)
    bar = drawing.colorbar(made, ax=one, shrink=0.85, aspect=20, pad=0.02)
    bar.set_label("Pearson's r over benchmarks")
    canvas.plain_bar(bar)
    counts = sorted({r.n for r in by_place.values()})
    over = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    known = [r.value for r in by_place.values() if r.value is not None]
    span = f" r from {min(known):.3f} to {max(known):.3f}." if known else ""
    caption = f"Pearson's r of the index over {over} benchmarks.{span} 95 % intervals by Fisher's z are in the table."
    if len(once(model for model, _ in pairs)) < size:
        caption += " Columns of one model share its answers to the full images, so they agree by construction."
    grid = "" if name == "correlation" else f", {pairs[0][1]}×{pairs[0][1]}"
    return (
        drawing,
        name,
        f"Do models agree on benchmarks{grid}?",
        caption,
        f"Correlation matrix of {counted(size, 'column')}.{span}",
        "benchmarks",
        (),
    )


def _r(r: Any, ends: bool) -> str:
    if r is None or r.value is None:
        return "N/A"
    text = f"{r.value:.3f}" if ends else short(r.value).lstrip("+")
    text = text.replace("-", "−")
    return f"{text}\n[{r.low:.2f}, {r.high:.2f}]".replace("-", "−") if ends and r.low is not None else text
