"""Where in the image the score comes from: heatmaps of cells, and how cells spread over results (RCI paper, figures 3, 4, 6 to 8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lmms_patch.present.report import wording
from lmms_patch.present.report.benchmarks import readable
from lmms_patch.present.report.data import Entry
from lmms_patch.present.report.figures import canvas
from lmms_patch.present.report.points import counted, once
from lmms_patch.stats.resample import Array

ALPHA = 0.05
PANELS, PER_ROW = 24, 4
NUMBERED = 5
"""Finest grid whose cells carry their numbers."""
MOST_BOXES = 4
"""Finest grid of the box plots: 16 cells."""
SCORE = "Share of the score, cells in isolation"
WIN = "Share of best cells, ties split"
Made = tuple[Any, str, str, str, str, str, tuple[str, ...]]
"""Arguments of ``canvas.write`` but the folder: drawing, name, title, caption, alt, section, entries."""


def square(shares: Sequence[float], n: int) -> Array:
    """Return n² shares, row by row from the top left, as percent in the shape that is drawn: [row, column]."""
    return 100 * np.asarray(shares, float).reshape(n, n)


def mesh(axes: Any, values: Array, most: float, stars: Sequence[bool] = (), numbers: bool = True) -> Any:
    """Draw percentages of cells; row 1 on top, column 1 on the left.

    Args:
        axes: matplotlib's.
        values: shape (n, n), percent.
        most: where the colours end; they begin at 0.
        stars: shape (n²,): cells whose share is not even by chance.
        numbers: write each.
    """
    import matplotlib

    n = len(values)
    colours = matplotlib.colormaps["cividis"].resampled(32)
    made = axes.pcolormesh(np.arange(n + 1), np.arange(n + 1), values, cmap=colours, vmin=0, vmax=most, edgecolors="face", linewidth=0.3)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    axes.set_xticks(np.arange(n) + 0.5, [str(i + 1) for i in range(n)])
    axes.set_yticks(np.arange(n) + 0.5, [str(i + 1) for i in range(n)])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for i in range(n * n if numbers else 0):
        row, column = divmod(i, n)
        star = "*" if len(stars) and stars[i] else ""
        ink = canvas.in_cells(colours(values[row, column] / most if most else 0.0))
        axes.text(
            column + 0.5,
            row + 0.5,
            f"{values[row, column]:.1f}{star}",
            ha="center",
            va="center",
            color=ink,
            fontsize=9 if n <= 3 else 7,
            in_layout=False,
        )
    return made


def _bar(drawing: Any, made: Any, axes: Any, n: int) -> None:
    _label(drawing.colorbar(made, ax=axes, shrink=0.9, aspect=18, pad=0.02), n)


def _label(bar: Any, n: int) -> None:
    bar.set_label(f"share, % (even: {100 / n**2:.1f})")
    canvas.plain_bar(bar)


def _p(value: float | None) -> str:
    return wording.p_value(value) or "not tested"


# --- one result -----------------------------------------------------------------------------------


def heatmap(entry: Entry) -> Made | None:
    """Return both shares of each cell, a row of drawings per grid; None where no cell scores."""
    grids = [(n, shares) for n in entry.grids if (shares := entry.shares(n))]
    if not grids:
        return None
    drawing, axes, bars = _places(len(grids))
    for (n, shares), pair, bar in zip(grids, axes, bars, strict=True):
        score = square(shares["score"], n)
        win = square(shares["win"], n) if shares.get("win") is not None else None
        most = max(float(score.max()), 0.0 if win is None else float(win.max()))
        stars = [p < ALPHA for p in shares.get("p_cells") or ()]
        made = mesh(pair[0], score, most, stars, n <= NUMBERED)
        if win is not None:
            mesh(pair[1], win, most, numbers=n <= NUMBERED)
        pair[0].set_title(
            f"{n}×{n}, {counted(shares['docs'], 'doc')}; even spread: {_p(shares.get('p'))}\n{SCORE[0].lower()}{SCORE[1:]}", fontsize=8.5
        )
        pair[1].set_title(f"{WIN[0].lower()}{WIN[1:]}", fontsize=8.5)
        pair[0].set(xlabel="column", ylabel="row")
        pair[1].set(xlabel="column")
        _label(drawing.colorbar(made, cax=bar), n)
    near = f" ({entry.whole.gate_word})" if entry.whole.gate == 0 else ""
    caption = (
        "Left, how the score that the cells earn in isolation spreads over them; right, how often a cell is a doc's best. Percent; row 1, column 1 "
        f"is the top left. Star: Holm-corrected p < {ALPHA}, random turns of each doc's cells; p in the title: of an even spread over all cells."
    )
    caption += " Near chance: the cells are noise." if near else ""
    title = f"{canvas.name(entry.base, 30)} with {canvas.name(entry.model, 30)}{near}: where the score comes from"
    return drawing, f"cells-{entry.id}", title, caption, _alt(entry, grids), "runs", (entry.id,)


def _places(rows: int) -> tuple[Any, Any, list[Any]]:
    """Return a figure with two squares and a colour bar in each row, at fixed places: many are drawn, and laying out would take most of the time."""
    side, above, below, title = 2.3, 0.45, 0.45, 0.4
    width, height = 6.6, title + rows * (side + above + below)
    drawing, axes = canvas.new(width, height, rows, 2, fixed=True)
    bars = []
    for row in range(rows):
        low = (height - title - (row + 1) * (side + above + below) + below) / height
        for column, left in enumerate((0.6, 3.25)):
            axes[row, column].set_position((left / width, low, side / width, side / height))
        bars.append(drawing.add_axes((5.75 / width, low, 0.13 / width, side / height)))
    return drawing, axes, bars


def _alt(entry: Entry, grids: Sequence[tuple[int, Mapping[str, Any]]]) -> str:
    parts = []
    for n, shares in grids:
        most = int(np.argmax(shares["score"]))
        place = f"row {most // n + 1}, column {most % n + 1}"
        parts.append(f"{n} by {n}: most of the score, {100 * shares['score'][most]:.1f} %, in {place}; {_p(shares.get('p'))}")
    return f"Heatmap of {entry.base} with {entry.model}. {'. '.join(parts)}."


# --- many results ---------------------------------------------------------------------------------


def overview(entries: Sequence[Entry]) -> Iterator[Made]:
    """Draw small heatmaps side by side, per grid (RCI paper, figures 7 and 8); split where there are many."""
    for n in once(n for entry in entries for n in entry.grids):
        shown = readable(entries, n)
        parts = [shown[i : i + PANELS] for i in range(0, len(shown), PANELS)] if len(shown) > 1 else []
        for k, part in enumerate(parts):
            yield _overview(
                part, n, f"cells{n}-all" + (f"-{k + 1}" if len(parts) > 1 else ""), f" ({k + 1} of {len(parts)})" if len(parts) > 1 else ""
            )


def _overview(entries: Sequence[Entry], n: int, name: str, part: str) -> Made:
    columns = min(PER_ROW, len(entries))
    rows = math.ceil(len(entries) / columns)
    drawing, axes = canvas.new(max(4.2, 1.95 * columns + 0.8), 0.4 + 2.1 * rows, rows, columns)
    values = [square((entry.shares(n) or {})["score"], n) for entry in entries]
    most = max(float(one.max()) for one in values)
    several = len({entry.model for entry in entries}) > 1
    for i, one in enumerate(axes.flat):
        if i >= len(entries):
            one.set_visible(False)
            continue
        made = mesh(one, values[i], most, numbers=n <= 3)
        one.set_xticks([])
        one.set_yticks([])
        model = f"\n{canvas.name(entries[i].model, 24)}" if several else ""
        one.set_title(canvas.name(entries[i].base, 24) + model, fontsize=8)
    _bar(drawing, made, axes.ravel().tolist(), n)
    caption = f"{SCORE}, percent, {n}×{n}; one scale for all; row 1, column 1 is the top left. Without results that the gate refuses, or few scores."
    title = f"Where the score comes from, {n}×{n}{part}"
    names = ", ".join(once(entry.base for entry in entries)[:8])
    return drawing, name, title, caption, f"Small heatmaps of {counted(len(entries), 'result')}: {names}.", "benchmarks", tuple(e.id for e in entries)


def boxes(entries: Sequence[Entry]) -> Iterator[Made]:
    """Yield the mean share of each cell over results, and its spread (RCI paper, figures 3, 4 and 6), per grid."""
    for n in once(n for entry in entries for n in entry.grids):
        shown = readable(entries, n)
        if len(shown) > 2 and n <= MOST_BOXES:
            yield _boxes(shown, n)


def _boxes(entries: Sequence[Entry], n: int) -> Made:
    drawing, axes = canvas.new(8.6, 3.5, 1, 2, width_ratios=[1, 1.9])
    values = np.array([100 * np.asarray((entry.shares(n) or {})["score"], float) for entry in entries])
    mean = values.mean(axis=0).reshape(n, n)
    made = mesh(axes[0, 0], mean, float(mean.max()))
    axes[0, 0].set(xlabel="column", ylabel="row", title=f"Mean over {counted(len(entries), 'result')}")
    _bar(drawing, made, axes[0, 0], n)
    spread, places = axes[0, 1], np.arange(n * n) + 1
    line = {"color": canvas.INK}
    spread.boxplot(
        values,
        positions=places,
        widths=0.6,
        whis=(0, 100),
        medianprops={"color": canvas.COLOURS[4], "linewidth": 1.8},
        boxprops=line,
        whiskerprops=line,
        capprops=line,
    )
    nudge = np.linspace(-0.18, 0.18, len(entries)) if len(entries) > 1 else np.zeros(1)
    colour = model_colours([entry.model for entry in entries])
    for entry, row, by in zip(entries, values, nudge, strict=True):
        spread.plot(places + by, row, "o", markersize=3.2, alpha=0.75, color=colour(entry.model), markeredgewidth=0)
    spread.axhline(100 / n**2, color=canvas.INK, linewidth=0.8, linestyle=":")
    labels = [f"{i + 1}\nr{i // n + 1} c{i % n + 1}" for i in range(n * n)]
    spread.set_xticks(places, labels)
    spread.set(
        xlabel="cell, by row and column from the top left",
        ylabel="share of the score, %",
        ylim=(_floor(float(values.min()), 100 / n**2), None),
        title="Each cell over results (dotted: even)",
    )
    model_key(drawing, [entry.model for entry in entries])
    caption = (
        f"{SCORE}, percent. Left the mean of each cell over {counted(len(entries), 'result')} (benchmarks and models); right each result as a "
        "point, with median, quartiles, and whiskers to the lowest and highest. Without what the gate refuses, or with very few docs that score."
    )
    top = int(np.argmax(mean))
    alt = f"Mean share per cell, {n} by {n}: largest, {mean.flat[top]:.1f} %, in row {top // n + 1}, column {top % n + 1}; box plots of each cell."
    return drawing, f"spread{n}", f"Cells over benchmarks, {n}×{n}", caption, alt, "benchmarks", tuple(entry.id for entry in entries)


def _floor(least: float, even: float) -> float:
    """Return where the axis of shares begins: at half of an even share, or at 0 where some share is lower."""
    return 0.0 if least < even / 2 else even / 2


def model_colours(models: Sequence[str]) -> Callable[[str], str]:
    """Return a colour for each of up to six models; one for all of more."""
    known = once(models)
    few = len(known) <= len(canvas.COLOURS)
    return lambda model: canvas.COLOURS[known.index(model) if few else 0]


def model_key(drawing: Any, models: Sequence[str]) -> None:
    """Draw the legend of models, where there are several, and few."""
    known = once(models)
    if 1 < len(known) <= len(canvas.COLOURS):
        canvas.key(drawing, [canvas.mark(canvas.name(model), "o", model_colours(models)(model)) for model in known])
