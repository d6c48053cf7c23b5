"""The drawings that figures are made of: panels, rows and points with intervals, cells of heat maps. Places are in inches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from lmms_patch.present import palette
from lmms_patch.present.report.figures import canvas
from lmms_patch.present.report.figures.canvas import EDGE, INK, SPAN, TWO, Mark, tip, write_at
from lmms_patch.present.report.figures.lettering import SIZE, SMALL, fit, height, short, width
from lmms_patch.present.report.points import once
from lmms_patch.stats.resample import Estimate

T = TypeVar("T")

# --- panels ---------------------------------------------------------------------------------------


def layout(
    across: float,
    count: int,
    *,
    columns: int,
    left: float,
    head: float,
    below: float,
    widest: float,
    right: float = 2 * EDGE,
    gap: float = 0.2,
    body: float | None = None,
    marks: Sequence[Mark] = (),
    note: str = "",
) -> tuple[Any, list[tuple[float, float]], float]:
    """Return a figure with legend and note at the foot, and room above for panels of equal size.

    Args:
        across: width of the figure.
        count: how many panels there are.
        columns: how many stand side by side.
        left: room left of the panels.
        head: room above each.
        below: room below each.
        widest: the most width of a panel; narrower rows of panels stand in the middle.
        right: room right of the panels.
        gap: room between two.
        body: height of a panel; None: it is a square.
        marks: the legend.
        note: a text below the legend.

    Returns:
        The figure, the lower left corner of each panel, row by row, and the width of a panel.
    """
    room, rows = across - 2 * EDGE, -(-count // columns)
    side = min(widest, (across - left - right - (columns - 1) * gap) / columns)
    left += max(0.0, across - left - right - columns * side - (columns - 1) * gap) / 2
    note = note and fit(note, room, SMALL, 3)
    foot = EDGE / 2 + (height(note.count("\n") + 1, SMALL) + 0.03 if note else 0.0)
    bottom, tall = foot + canvas.key_height(marks, room), head + (side if body is None else body) + below
    drawing = canvas.new(across, bottom + rows * tall)
    if note:
        write_at(drawing, EDGE, foot, note, va="top")
    canvas.key(drawing, marks, EDGE, foot, room)
    places = (divmod(k, columns) for k in range(count))
    return drawing, [(left + c * (side + gap), bottom + (rows - 1 - r) * tall + below) for r, c in places], side


def panels(
    across: float,
    titles: Sequence[str],
    x: str,
    y: str = "",
    *,
    widest: float,
    columns: int = 3,
    left: float = 0.5,
    right: float = 2 * EDGE,
    gap: float = 0.2,
    body: float | None = None,
    **more: Any,
) -> tuple[Any, list[Any], float]:
    """Return a figure with axes side by side on two columns, stacked on a single column, which share their vertical axis.

    Args:
        across: width of the figure.
        titles: of the panels, in at most two lines.
        x: what the horizontal axes say, in at most two lines.
        y: what the vertical axes say.
        columns: the most panels side by side.
        widest: as of ``layout``.
        left: as of ``layout``.
        right: as of ``layout``.
        gap: as of ``layout``.
        body: as of ``layout``.
        **more: the other arguments of ``layout``.

    Returns:
        The figure, the axes, and their width.
    """
    columns = min(columns, len(titles)) if across >= TWO else 1
    side = min(widest, (across - left - right - (columns - 1) * gap) / columns)
    lines, told = [fit(title, side, SIZE) for title in titles], fit(x, side, SIZE)
    head = height(max(one.count("\n") + 1 for one in lines)) + 0.07 if any(lines) else EDGE
    below = height(told.count("\n") + 1) + 0.26
    drawing, places, _ = layout(
        across,
        len(titles),
        columns=columns,
        left=left,
        right=right,
        gap=gap,
        head=head,
        below=below,
        widest=side,
        body=body,
        **more,
    )
    made = []
    for k, (title, place) in enumerate(zip(lines, places, strict=True)):
        made.append(one := canvas.axes(drawing, *place, side, body or side))
        tip(one.set_title(title), titles[k])
        one.set_xlabel(told)
        one.set_ylabel("" if k % columns else fit(y, body or side, SIZE, 1))
        one.tick_params(labelleft=k % columns == 0)
        few_ticks(one, side)
    return drawing, made, side


def few_ticks(where: Any, across: float) -> None:
    """Let the horizontal axis have no more ticks than there is room for."""
    from matplotlib.ticker import MaxNLocator

    where.xaxis.set_major_locator(MaxNLocator(nbins=max(2, int(across / 0.48)), steps=[1, 2, 2.5, 5, 10]))


def ends(numbers: Iterable[Estimate | None]) -> list[float]:
    """Return the values of some numbers, and the ends of their intervals, as far as there are any."""
    return [end for one in numbers if one is not None for end in (one.value, one.low, one.high) if end is not None]


# --- marks and intervals ---------------------------------------------------------------------------


def mark(where: Any, x: float, y: float, look: Mark, said: str, **more: Any) -> None:
    """Draw a mark with an attached text (``tip``)."""
    tip(where.plot([x], [y], **{**look.looks, "linestyle": "", "zorder": 4, "clip_on": False, **more})[0], said)


def within(where: Any, x: float, y: float, look: Mark, said: str, shown: str, **more: Any) -> None:
    """Draw a mark at its place; beyond the axis, an arrow with the number at its edge.

    Args:
        where: the axes, whose ends are set.
        x: the number.
        y: the place of its row.
        look: of the mark.
        said: what it tells.
        shown: the number as text.
        **more: looks of the mark.
    """
    low, high = where.get_xlim()
    if low <= x <= high:
        mark(where, x, y, look, said, **more)
        return
    end, side, text = (low, "left", f"◂ {shown}") if x < low else (high, "right", f"{shown} ▸")
    tip(where.text(end, y, text, va="center", ha=side, fontsize=SMALL, color=look.colour), said)


def span(where: Any, xs: Sequence[float], ys: Sequence[float], colour: str, said: str, **more: Any) -> None:
    """Draw an interval as a line with an attached text (``tip``).

    So do its surroundings in an SVG, because the line itself is hard to point at.
    """
    style = {"color": colour, "linewidth": 1.3, "solid_capstyle": "butt", "zorder": 3, **more}
    tip(where.plot(xs, ys, **style)[0], said, SPAN)


def interval(where: Any, number: Estimate, place: float, look: Mark, said: str, up: bool = False) -> None:
    """Draw a number as a mark, with the interval as a line where known.

    Args:
        where: the axes.
        number: the number.
        place: of the mark on the other axis.
        look: of the mark.
        said: what both tell.
        up: whether the number stands on the vertical axis.
    """
    low, high, value = number.low, number.high, number.value or 0.0
    if low is not None and high is not None:
        xs, ys = ([place, place], [low, high]) if up else ([low, high], [place, place])
        span(where, xs, ys, look.colour, said)
    mark(where, place if up else value, value if up else place, look, said)


def cross(where: Any, x: Estimate, y: Estimate, look: Mark, said: str) -> list[tuple[float, float, float, float]]:
    """Draw a point with both of its intervals, and return these as lines: left, bottom, right, top."""
    at = x.value or 0.0, y.value or 0.0
    lines = [(x.low, at[1], x.high, at[1])] if x.low is not None and x.high is not None else []
    lines += [(at[0], y.low, at[0], y.high)] if y.low is not None and y.high is not None else []
    for left, bottom, right, top in lines:
        span(where, [left, right], [bottom, top], look.colour, said, linewidth=0.9)
    mark(where, *at, look, said)
    return lines


def series(k: int, label: str = "", **more: Any) -> Mark:
    """Return the mark of the k-th model, grid or kind; shapes and colours differ among the first six."""
    k %= len(palette.MARKERS)
    return Mark(**{"label": label, "shape": palette.MARKERS[k], "colour": palette.SERIES_LIGHT[k], **more})


def model_look(models: Sequence[str], model: str, **more: Any) -> Mark:
    """Return a model's mark: distinct shape and colour among up to six models, else the same mark for all."""
    known = once(models)
    return series(known.index(model), **more) if len(known) <= len(palette.MARKERS) else series(0, shape="o", **more)


def model_marks(models: Sequence[str]) -> list[Mark]:
    """Return the legend of the models' colours.

    Empty for one model, and for more models than there are marks.
    """
    names = short(models)
    if not 1 < len(names) <= len(palette.MARKERS):
        return []
    return [series(k, fit(name, 2.6, SMALL, 1)) for k, name in enumerate(names.values())]


# --- rows with names ------------------------------------------------------------------------------


def label_rows(where: Any, places: Sequence[float], shown: Sequence[str], whole: Sequence[str]) -> None:
    """Write the names of rows left of the axes; each tells its whole name."""
    where.tick_params(axis="y", length=0)
    where.spines["left"].set_visible(False)
    where.set_yticks(list(places), list(shown), fontsize=SIZE)
    for tick, name in zip(where.yaxis.get_major_ticks(), whole, strict=True):
        tip(tick.label1, name)


def line_rows(where: Any, places: Sequence[float]) -> None:
    """Draw a faint line through each row."""
    for place in places:
        where.axhline(place, color=INK, alpha=0.14, linewidth=0.5, zorder=1)


def row_panels(
    across: float,
    names: Sequence[str],
    whole: Sequence[str],
    row: float,
    x: str,
    titles: Sequence[str],
    marks: Sequence[Mark],
) -> tuple[Any, list[Any], list[float]]:
    """Return panels with the same rows: side by side on two columns, stacked on a single column.

    Args:
        across: inches.
        names: of the rows; wrapped or shortened here. One of two lines keeps these.
        whole: what each row tells who points at its name.
        row: the least height of a row, in inches.
        x: what the horizontal axes say.
        titles: of the panels; a single empty one: no title.
        marks: the legend, drawn below.

    Returns:
        The figure, the axes, and the place of each row, in inches from the top of the axes.
    """
    room = 2.0 if across >= TWO else 1.05
    parts = [name.split("\n") for name in names]
    shown = ["\n".join(fit(part, room, SIZE, 2 if len(some) == 1 else 1) for part in some) for some in parts]
    heights = [max(row, height(one.count("\n") + 1) + 0.04) for one in shown]
    places = [sum(heights[:i]) + heights[i] / 2 for i in range(len(heights))]
    left = max(map(width, shown), default=0.0) + 0.1 + EDGE
    drawing, made, _ = panels(across, titles, x, left=left, widest=across, body=sum(heights), marks=marks)
    for one in made:
        one.set_ylim(sum(heights), 0)
        label_rows(one, places, shown, whole)
        line_rows(one, places)
    return drawing, made, places


# --- cells ----------------------------------------------------------------------------------------


def box(drawing: Any, x: float, y: float, wide: float, tall: float, said: str, **looks: Any) -> None:
    """Draw a rectangle with a text shown to whoever points at the rectangle."""
    from matplotlib.patches import Rectangle

    drawing.add_artist(tip(Rectangle((x, y), wide, tall, transform=drawing.dpi_scale_trans, **looks), said))


def cell(
    drawing: Any,
    x: float,
    y: float,
    wide: float,
    tall: float,
    colour: str | None,
    said: str,
    text: str = "",
    size: float = SMALL,
    outlined: bool = False,
) -> None:
    """Draw a cell of a heat map with its number; a cell without a colour is empty.

    Axes would take most of the time of a drawing, so that cells are put into the figure itself.
    """
    looks: dict[str, Any] = {"facecolor": colour} if colour else {"fill": False, "alpha": 0.5}
    ink = palette.on(colour) if colour else INK
    box(drawing, x, y, wide, tall, said, edgecolor=INK, linewidth=0.3, **looks)
    if outlined:
        box(drawing, x + 0.03, y + 0.03, wide - 0.06, tall - 0.06, said, fill=False, edgecolor=ink, linewidth=1.2)
    if text:
        looks = {"ha": "center", "va": "center" if "\n" in text else "center_baseline", "linespacing": 1.05}
        tip(write_at(drawing, x + wide / 2, y + tall / 2, text, size, color=ink, **looks), said)


# --- parts of what does not fit one drawing ---------------------------------------------------------


def parts(items: Sequence[T], most: int) -> Iterator[tuple[Sequence[T], str, str]]:
    """Yield items in parts of a bearable size, each with what the names of its files and its title end with.

    Nothing where all are in one part.
    """
    count = -(-len(items) // most)
    for k in range(count):
        yield items[k * most : (k + 1) * most], *((f"-{k + 1}", f" ({k + 1} of {count})") if count > 1 else ("", ""))


def blocks(
    models: Sequence[str], most: int, rows: Sequence[str], rows_most: int
) -> Iterator[tuple[Sequence[str], Sequence[str], str, str]]:
    """Yield models and rows of each part of a large table, with the ends of its names as in ``parts``."""
    pairs = [(some, names) for some, *_ in parts(models, most) for names, *_ in parts(rows, rows_most)]
    yield from ((*pair, end, told) for (pair,), end, told in parts(pairs, 1))
