"""Where in the image the score comes from: heatmaps of cells, and how cells spread over results (RCI paper, figures 3, 4, 6 to 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import Kind
from lmms_patch.present import palette
from lmms_patch.present.page import wording
from lmms_patch.present.report.benchmarks import readable
from lmms_patch.present.report.data import Entry, Shares
from lmms_patch.present.report.figures import canvas, lettering, plots
from lmms_patch.present.report.figures.canvas import EDGE, INK, ONE, TWO, Mark, Sketch
from lmms_patch.present.report.figures.lettering import SIZE, SMALL
from lmms_patch.present.report.points import counted, model_names, once
from lmms_patch.stats.resample import Array

ALPHA = 0.05
PANELS = 16
NUMBERED = 5
"""Finest grid whose cells carry their numbers; of finer ones each cell tells its number to who points at it."""
MOST_BOXES = 4
"""Finest grid of the box plots: 16 cells."""
SCORE = "share of the score"
WIN = "share of best cells"
_SIDE, _SPACE = 1.36, 0.24
"""Inches: side of a heatmap where there is room, and the room between two."""


def _read(kind: Kind) -> str:
    """Return how the cells of a kind are read: their numbers, order and colours."""
    even = "1/n" if kind.needs_video else "1/n²"
    places = "segments stand in the order of time" if kind.needs_video else "row 1, column 1 is the top left"
    return f"Percent; {places}. Colours: share over even ({even}), from none (green) over even (white) to twice even or more (purple)."


@dataclass(frozen=True)
class Grid:
    """A heatmap.

    Attributes:
        n: the grid.
        kind: of the task: how many rows and columns there are, and what cells are called.
        shares: a fraction for each cell, row by row from the top left.
        title: in lines.
        whole: what the title names, for who points at it.
        p: the cells' p-values; empty: not tested.
    """

    n: int
    kind: Kind
    shares: Array
    title: str
    whole: str
    p: Array | tuple[()] = ()

    @property
    def tall(self) -> float:
        """Its height over its width: cells are squares."""
        rows, columns = self.kind.shape(self.n)
        return rows / columns


def place(i: int, n: int, kind: Kind) -> str:
    """Return a cell's place in words, from 1 at the top left; for clips the number of the segment.

    >>> from lmms_patch.ask.kinds import RCI, TRCI
    >>> place(2, 3, RCI), place(2, 3, TRCI)
    ('row 1, column 3', 'segment 3')
    """
    columns = kind.shape(n)[1]
    return f"segment {i + 1}" if kind.needs_video else f"row {i // columns + 1}, column {i % columns + 1}"


def draw_grid(
    drawing: Any, grid: Grid, left: float, bottom: float, side: float, numbered: bool = True, named: bool = True
) -> None:
    """Draw a heatmap, row 1 on top, column 1 on the left; cells with a small p-value are outlined.

    Args:
        drawing: matplotlib's figure.
        grid: what is drawn.
        left: of the cells, in inches.
        bottom: of the cells.
        side: its width.
        numbered: write each share.
        named: number rows and columns.
    """
    rows, columns = grid.kind.shape(grid.n)
    step = side / columns
    size = min(SIZE, 72 * 0.8 * step / 2.6)
    for i, share in enumerate(grid.shares):
        row, column = divmod(i, columns)
        told = (
            f"{grid.whole}, {grid.kind.words.size(grid.n)}, {place(i, grid.n, grid.kind)}: {wording.percent(share)} %"
        )
        told += f" (even: {wording.percent(1 / (rows * columns))} %)"
        told += f", {wording.p_value(grid.p[i])}" if len(grid.p) else ""
        plots.cell(
            drawing,
            left + column * step,
            bottom + (rows - 1 - row) * step,
            step,
            step,
            palette.SHARES[palette.share_level(share, rows * columns)],
            told,
            wording.percent(share) if numbered and size >= 4.5 else "",
            size,
            len(grid.p) > 0 and grid.p[i] < ALPHA,
        )
    middle, looks = left + side / 2, dict[str, Any](ha="center", va="top")
    top = bottom + rows * step + 0.05
    title = canvas.write_at(drawing, middle, top, grid.title, ha="center", va="bottom", linespacing=1.2)
    canvas.tip(title, grid.whole)
    if not named:
        return
    for i in range(columns):
        canvas.write_at(drawing, left + (i + 0.5) * step, bottom - 0.04, str(i + 1), **looks)
    canvas.write_at(drawing, middle, bottom - 0.17, "column" if rows > 1 else grid.kind.words.part, **looks)
    for i in range(rows) if rows > 1 else ():
        y = bottom + (rows - i - 0.5) * step
        canvas.write_at(drawing, left - 0.04, y, str(i + 1), ha="right", va="center_baseline")
    if rows > 1:
        canvas.write_at(drawing, left - 0.17, bottom + rows * step / 2, "row", ha="right", va="center", rotation=90)


def scale(tested: bool, kind: Kind) -> list[Mark]:
    """Return the legend of the colours."""
    out = [
        Mark("none", "patch", palette.SHARES[0]),
        Mark("half of even", "patch", palette.SHARES[2]),
        Mark("even (1/n)" if kind.needs_video else "even (1/n²)", "patch", palette.SHARES[4]),
    ]
    out += [Mark("1.5 × even", "patch", palette.SHARES[6]), Mark("2 × even or more", "patch", palette.SHARES[8])]
    return [*out, Mark(f"outlined: not even, p < {ALPHA:g}", "s", INK, hollow=True, size=6)] if tested else out


def lay(grids: Sequence[Grid], across: float, most: int, axes_named: bool = True) -> Any:
    """Draw heatmaps in rows, with the legend of their colours.

    Args:
        grids: at least one, all of images or all of clips.
        across: inches.
        most: heatmaps in a row, where there is room.
        axes_named: whether rows and columns are numbered and named.
    """
    left, gap = (0.38, _SPACE + 0.16) if axes_named else (EDGE, _SPACE)
    columns = max(1, min(most, len(grids), int((across - left + _SPACE) / (1.02 + _SPACE))))
    widest = min(_SIDE if axes_named else 1.5, (across - left - EDGE - (columns - 1) * gap) / columns)
    drawing, places, side = plots.layout(
        across,
        len(grids),
        columns=columns,
        left=left,
        right=EDGE,
        gap=gap,
        head=lettering.height(max(one.title.count("\n") + 1 for one in grids), SMALL) + 0.08,
        below=0.36 if axes_named else 0.06,
        widest=widest,
        body=widest * max(one.tall for one in grids),
        marks=scale(any(len(one.p) for one in grids), grids[0].kind),
    )
    for one, spot in zip(grids, places, strict=True):
        draw_grid(drawing, one, *spot, side, one.n <= NUMBERED, axes_named)
    return drawing


# --- one result -----------------------------------------------------------------------------------


def heatmap(entry: Entry, papers: tuple[float, ...] = (ONE,)) -> Sketch | None:
    """Return both shares of each cell at each grid; None where no cell scores. ``papers``: as in ``Sketch``."""
    known = [(n, shares) for n in entry.grids if (shares := entry.whole.shares(n))]
    if not known:
        return None
    who = f"{entry.name} with {entry.model}"
    say, kind = entry.words.say, entry.kind
    grids = [one for n, shares in known for one in _pair(n, shares, who, kind)]
    near = f" ({entry.whole.gate_word})" if entry.whole.gate == 0 else ""
    caption = say(
        "How the score that cells earn in isolation spreads over them, and how often a cell is a doc's best. "
    ) + _read(kind)
    caption += say(
        f" Outlined: Holm-corrected p < {ALPHA} against random turns of each doc's cells; p above: of an even spread over all cells."
    )
    caption += say(" The gate refuses the index: the cells are noise.") if near else ""
    title, alt = f"Where the score comes from: {who}{near}", _alt(who, known, kind)
    return Sketch(
        f"cells-{entry.label}",
        title,
        caption,
        alt,
        "runs",
        lambda across: lay(grids, across, 4),
        (entry.label,),
        papers,
    )


def _pair(n: int, shares: Shares, who: str, kind: Kind) -> Iterator[Grid]:
    """Yield both heatmaps of a grid: shares of the score, and shares of best cells where these are known."""
    spread = wording.p_value(shares.p) or "not tested"
    docs, size, win = counted(shares.docs, "doc"), kind.words.size(n), kind.words.say(WIN)
    yield Grid(n, kind, shares.score, f"{size}, {SCORE}\n{docs}; even: {spread}", f"{who}, {SCORE}", shares.p_cells)
    if shares.win is not None:
        yield Grid(n, kind, shares.win, f"{size}, {win}\nties split", f"{who}, {win}")


def _alt(who: str, grids: Sequence[tuple[int, Shares]], kind: Kind) -> str:
    """Return in words where most of the score comes from, at each grid."""
    parts = []
    for n, shares in grids:
        most = int(np.argmax(shares.score))
        spread = wording.p_value(shares.p) or "not tested"
        share, where = wording.percent(shares.score[most]), place(most, n, kind)
        parts.append(f"{kind.words.size(n, ' by ')}: most of the score, {share} %, in {where}; even spread: {spread}")
    return f"Heatmap of {who}. {'. '.join(parts)}."


# --- many results ---------------------------------------------------------------------------------


def overview(entries: Sequence[Entry]) -> Iterator[Sketch]:
    """Draw small heatmaps side by side, per grid (RCI paper, figures 7 and 8); split where there are many."""
    for kind, n in _grids(entries):
        shown = readable(entries, n, kind)
        for part, end, told in plots.parts(shown, PANELS) if len(shown) > 1 else ():
            yield _overview(part, n, kind, f"{kind.words.parts}{n}-all{end}", told)


def _grids(entries: Sequence[Entry]) -> list[tuple[Kind, int]]:
    """Return the grids of some results, each with a kind of its medium."""
    by_shape = {(entry.kind.shape(n), n): entry.kind for entry in reversed(entries) for n in reversed(entry.grids)}
    return [(by_shape[key], key[1]) for key in once((entry.kind.shape(n), n) for entry in entries for n in entry.grids)]


def _section(kind: Kind) -> str:
    """Return the section of a drawing over results of a kind."""
    return "benchmarks_time" if kind.needs_video else "benchmarks"


def _overview(known: Sequence[tuple[Entry, Shares]], n: int, kind: Kind, name: str, part: str) -> Sketch:
    """Return the small heatmaps of some results at a grid."""
    entries = [entry for entry, _ in known]
    names = lettering.short(entry.model for entry in entries)
    several = len(names) > 1

    def grid(entry: Entry, shares: Shares) -> Grid:
        title = lettering.fit(entry.name, 1.35, SMALL, 1 if several else 2)
        title += f"\n{lettering.fit(names[entry.model], 1.35, SMALL, 1)}" if several else ""
        return Grid(n, kind, shares.score, title, f"{entry.name} with {entry.model}", shares.p_cells)

    def draw(across: float) -> Any:
        return lay([grid(*one) for one in known], across, 4 if across >= TWO else 2, axes_named=False)

    size = kind.words.size(n)
    caption = f"{SCORE.capitalize()} that each {kind.words.part} earns in isolation, {size}. {_read(kind)} Outlined: Holm-corrected p < {ALPHA}. "
    caption += f"Without results that the gate refuses, or few scores.{lettering.of_several(names)}"
    told = ", ".join(once(entry.name for entry in entries)[:8])
    alt = f"Small heatmaps of {counted(len(entries), 'result')}: {told}."
    return Sketch(
        name,
        f"Where the score comes from, {size}{part}",
        caption,
        alt,
        _section(kind),
        draw,
        tuple(e.label for e in entries),
    )


def boxes(entries: Sequence[Entry]) -> Iterator[Sketch]:
    """Yield the mean share of each cell over results, and its spread (RCI paper, figures 3, 4 and 6), per grid."""
    for kind, n in _grids(entries):
        shown = list(readable(entries, n, kind))
        if len(shown) > 2 and kind.cells(n) <= MOST_BOXES**2:
            yield _boxes(shown, n, kind)


def _boxes(known: Sequence[tuple[Entry, Shares]], n: int, kind: Kind) -> Sketch:
    """Return the box plots of cells over results at a grid."""
    entries, values = [entry for entry, _ in known], np.array([found.score for _, found in known])
    mean = values.mean(axis=0)
    over, models = counted(len(entries), "result"), model_names(entries)
    caption = (
        f"{SCORE.capitalize()} that each {kind.words.part} earns in isolation: its mean over {over} (benchmarks and models), and each result as a "
        f"point, with median, quartiles, and whiskers to the lowest and highest. {_read(kind)} Dotted: even. Without what the gate refuses, or with "
        f"very few docs that score.{lettering.of_several(models) if len(models) <= len(palette.MARKERS) else ''}"
    )
    top = int(np.argmax(mean))
    part, share = kind.words.part, wording.percent(float(mean[top]))
    alt = f"Mean share per {part}, {kind.words.size(n, ' by ')}: largest, {share} %, in {place(top, n, kind)}; box plots of each {part}."
    name, title = (
        f"{'t' * kind.needs_video}spread{n}",
        f"{kind.words.parts.capitalize()} over benchmarks, {kind.words.size(n)}",
    )
    shown = tuple(entry.label for entry in entries)
    return Sketch(
        name, title, caption, alt, _section(kind), lambda across: _draw_boxes(entries, values, n, kind, across), shown
    )


def _draw_boxes(entries: Sequence[Entry], values: Array, n: int, kind: Kind, across: float) -> Any:
    """Draw the mean heatmap, and the box plots of its cells beside or below."""
    models = model_names(entries)
    marks = plots.model_marks(models)
    key = canvas.key_height(marks, across - 2 * EDGE)
    stacked = across < TWO
    side, left, below, head = 1.5, 0.5, 0.48, lettering.height(2, SMALL) + 0.1
    over = f"mean over {counted(len(entries), 'result')}"
    grid = Grid(n, kind, values.mean(axis=0), f"{over}, %", over)
    high = side * grid.tall
    tall = head + (2.0 if not stacked else 2.0 + high + 0.45 + head) + below + key
    drawing = canvas.new(across, tall)
    draw_grid(drawing, grid, left, tall - head - high, side)
    start = left if stacked else left + side + 0.6
    spread = canvas.axes(drawing, start, below + key, across - start - EDGE, 2.0)
    _spread(spread, entries, values, n, kind)
    canvas.key(drawing, marks, EDGE, EDGE / 2, across - 2 * EDGE)
    return drawing


def _spread(axes: Any, entries: Sequence[Entry], values: Array, n: int, kind: Kind) -> None:
    """Draw a box of each cell over results, and each result as a point."""
    models = [entry.model for entry in entries]
    percent, cells = 100 * values, kind.cells(n)
    thin = {"color": INK, "linewidth": 0.8}
    looks = {"boxprops": thin, "whiskerprops": thin, "medianprops": {"color": INK, "linewidth": 2}}
    drawn = axes.boxplot(percent, positions=range(cells), widths=0.64, whis=(0, 100), showcaps=False, **looks)
    for i in range(cells):
        low, first, middle, third, high = (float(q) for q in np.quantile(percent[:, i], (0, 0.25, 0.5, 0.75, 1)))
        told = f"{place(i, n, kind)}: median {middle:.1f} %, quartiles {first:.1f} and {third:.1f}, from {low:.1f} to {high:.1f}"
        for part in ("boxes", "medians"):
            canvas.tip(drawn[part][i], told)
    nudge = np.linspace(-0.22, 0.22, len(entries))
    for entry, row, by in zip(entries, percent, nudge, strict=True):
        look = plots.model_look(models, entry.model, size=2.8)
        for i, value in enumerate(row):
            told = f"{entry.name} with {entry.model}, {place(i, n, kind)}: {value:.1f} %"
            plots.mark(axes, i + by, value, look, told, alpha=0.8, markeredgewidth=0)
    axes.axhline(100 / cells, color=INK, linewidth=0.8, linestyle=":", zorder=1)
    names = [f"{i + 1}" if kind.needs_video else f"{i // n + 1},{i % n + 1}" for i in range(cells)]
    axes.set_xticks(range(cells), names, fontsize=SMALL - 0.5 * (cells > 9))
    least = float(percent.min())
    axes.set(
        xlabel="segment" if kind.needs_video else "cell: row, column", ylabel=f"{SCORE}, %", xlim=(-0.6, cells - 0.4)
    )
    # The axis begins at half of an even share, or at 0 where some share is lower.
    half = 50 / cells
    axes.set_ylim(0.0 if least < half else half, None)
