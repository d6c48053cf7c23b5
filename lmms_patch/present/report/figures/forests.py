"""The index of each benchmark with its interval over the papers' bands: the headline of a report, and a drawing per grid (RCI paper, figure 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import Words
from lmms_patch.present import palette
from lmms_patch.present.page import wording
from lmms_patch.present.report.figures import canvas, lettering, plots
from lmms_patch.present.report.figures.canvas import EDGE, INK, TWO, Mark, Sketch
from lmms_patch.present.report.figures.lettering import SIZE, SMALL
from lmms_patch.present.report.points import Point, benchmarks, counted, docs_each, medium_of, model_names, once
from lmms_patch.present.sheets import levels_in
from lmms_patch.runs import reading
from lmms_patch.stats.index import BANDS, fragmentation
from lmms_patch.stats.resample import Estimate

LEAST, MOST = 0.42, 1.1
"""The axis reaches at least so far from 0, and at most: an index beyond is written at its edge."""
MODELS = len(palette.MARKERS)
"""Models in one drawing."""
LANES = 120
"""Marks (benchmarks times models) in the headline."""
ROWS = 30
"""Benchmarks in one drawing of a grid."""
TALLEST = 5.4
"""A taller drawing for two columns is set in two panels."""
MANY_MODELS = 12
"""Of more models there is no drawing per grid: the map shows them."""
_LANE, _PAD = 0.118, 0.12
_TINT = 0.5
"""How strongly the bands are drawn, so that every mark stands out."""
_RAW = "#7a7f85"
"""Of RCI beside steady RCI: a grey with a contrast of 3:1 on both grounds."""
_RING = Mark("", "o", _RAW, hollow=True, size=5.8)
"""RCI beside steady RCI: around it, where both are the same."""
_LETTERS = {
    reading.MARGINAL: "m",
    reading.SAMPLED: "s",
    reading.CONTRADICTED: "c",
    **{f"{reading.name(index, steady=False)} {reading.CONTRADICTED}": "c" for index in ("rci", "trci")},
}
"""What stands for a word in a drawing for one column."""


def drawings(points: Sequence[Point]) -> Iterator[Sketch]:
    """Yield the headline, and a drawing for each grid with an index not in the headline."""
    chosen = _chosen(points)
    shown = {point.key for point in chosen.points} if chosen else set()
    if chosen:
        yield _headline(chosen)
    own = [p for p in points if not p.source]
    few = points if len({p.model for p in points}) <= (MANY_MODELS if own else MODELS) else own
    models = model_names(few)
    if len(models) > MANY_MODELS:
        return
    for n in sorted({p.n for p in few}):
        of_grid = [p for p in few if p.n == n]
        if not {p.key for p in of_grid} <= shown:
            yield from _of_grid(of_grid, models, n)


# --- what is drawn --------------------------------------------------------------------------------


def leading(point: Point) -> tuple[Estimate | None, bool]:
    """Return the headline index and whether it is the steady one; None where no index may be read."""
    if not point.valid or point.value is None:
        return None, False
    steady = point.steady
    if steady is not None and steady.value is not None:
        return steady, True
    return point.estimate, False


def said(estimate: Estimate) -> str:
    """Return an index with interval and notes, as in tables."""
    return ", ".join([wording.said(estimate, True), *reading.words(estimate)])


def words(point: Point) -> tuple[str, ...]:
    """Return the notes beside the headline index, and the note of ``_contradicted`` where due."""
    estimate, steady = leading(point)
    other = (_contradicted(point),) if steady and point.contradicted else ()
    return (*reading.words(estimate), *other)


def _contradicted(point: Point) -> str:
    """Return the note beside a steady index in contradiction to the raw index."""
    return f"{_name(point, False)} {reading.CONTRADICTED}"


def _shown(points: Sequence[Point]) -> str:
    """Return what the indices to go by are called.

    ``index`` where some are steady and some are not, or none may be read.
    """
    which = _kinds(points)
    return _name(points[0], which.pop()) if len(which) == 1 else "index"


def _kinds(points: Sequence[Point]) -> set[bool]:
    """Return whether the indices to go by are steady: True, False, or both; nothing where none may be read."""
    return {steady for estimate, steady in map(leading, points) if estimate is not None}


def _name(point: Point, steady: bool) -> str:
    """Return what an index is called in this drawing, where PCRI has the name of RCI."""
    return reading.name("trci" if point.in_time else "rci", steady=steady)


def reason(point: Point) -> str:
    """Return why an index may not be read, in a word or two, as tables do."""
    return f"N/A: {wording.short_reason(point.reason) or 'not defined'}"


def order(points: Sequence[Point]) -> list[str]:
    """Return the benchmarks from the most local to the most global, by the mean over models.

    Those without an index last.
    """

    def mean(name: str) -> float:
        values = [e.value for p in points if p.benchmark == name and (e := leading(p)[0]) and e.value is not None]
        return float(np.mean(values)) if values else np.inf

    return sorted(benchmarks(points), key=mean)


def index_name(points: Sequence[Point], room: float) -> str:
    """Return what the axis is called: in full where there is room."""
    grids = ", ".join(once(p.medium.size(p.n) for p in points))
    name = _shown(points)
    names = (f"{name}, {grids}", name)
    return next((name for name in names if lettering.width(name, SIZE) <= room), "index")


@dataclass(frozen=True)
class _Chosen:
    """What the headline shows.

    Attributes:
        points: at most one of each benchmark and model.
        models: in the order of their marks.
        rows: the benchmarks, from top to bottom.
        grid: the grid of most points; of others the row says so.
        left_out: in words, what is not drawn; empty where all is.
    """

    points: list[Point]
    models: list[str]
    rows: list[str]
    grid: int
    left_out: str


def _chosen(points: Sequence[Point]) -> _Chosen | None:
    """Return the points of the headline, a grid for each benchmark and model; None without any index.

    That is the finest grid that at least half of the results have; for a result without it, its own finest.
    """
    if not points:
        return None
    results = {(p.benchmark, p.model) for p in points}
    grids = Counter(p.n for p in points)
    grid = max((n for n, count in grids.items() if 2 * count >= len(results)), default=max(grids))
    best: dict[tuple[str, str], Point] = {}
    for point in points:
        held = best.get((point.benchmark, point.model))
        if held is None or (point.n == grid, point.n) > (held.n == grid, held.n):
            best[point.benchmark, point.model] = point
    models = once(model for _, model in best)
    kept = models[:MODELS]
    shown = [p for p in best.values() if p.model in kept]
    rows = order(shown)
    most = max(1, LANES // len(kept))
    if len(rows) > most:  # both ends of the order, because these say most
        rows = rows[: (most + 1) // 2] + rows[len(rows) - most // 2 :]
    out = []
    if len(models) > len(kept):
        out.append(f"{len(models) - len(kept)} of {len(models)} models")
    if len(benchmarks(shown)) > len(rows):
        out.append(
            f"{len(benchmarks(shown)) - len(rows)} of {len(benchmarks(shown))} benchmarks, from the middle of the order"
        )
    told = f"Not drawn: {' and '.join(out)}; all are in the tables." if out else ""
    return _Chosen([p for p in shown if p.benchmark in rows], kept, rows, grid, told)


def _aloud(medium: Words, n: int) -> str:
    """Return a grid's size in words for screen readers: "at 3 by 3"."""
    return f"in {medium.size(n)}" if medium.instead else f"at {n} by {n}"


def _headline(chosen: _Chosen) -> Sketch:
    """Return the drawing at the top of the page."""
    medium = medium_of(chosen.points)
    return _sketch(
        (chosen.points, chosen.models, chosen.rows, chosen.grid, chosen.left_out),
        "headline",
        "headline",
        medium.say("How much each benchmark needs the whole image"),
        ", from one segment to the whole clip" if medium.instead else ", from the most local to the most global",
        on_phones=True,
    )


def _of_grid(points: Sequence[Point], models: Sequence[str], n: int) -> Iterator[Sketch]:
    """Yield the drawings of a grid, split by models and benchmarks where there are many."""
    medium = medium_of(points)
    for some, names, end, told in plots.blocks(models, MODELS, order(points), ROWS):
        shown = [p for p in points if p.model in some and p.benchmark in names]
        if shown:
            kept = [m for m in some if any(p.model == m for p in shown)]
            rows = [name for name in names if any(p.benchmark == name for p in shown)]
            title = f"{_what(shown)}, {medium.size(n)}{told}"
            section = f"benchmarks{'_time' * bool(medium.instead)}"
            yield _sketch((shown, kept, rows, n, ""), f"index{n}{end}", section, title)


def _what(points: Sequence[Point]) -> str:
    """Return what is drawn, for titles."""
    what = _shown(points)
    return f"{what[0].upper()}{what[1:]} by benchmark"


def _sketch(
    drawn: tuple[Sequence[Point], Sequence[str], Sequence[str], int, str],
    name: str,
    section: str,
    title: str,
    ends: str = "",
    **more: Any,
) -> Sketch:
    """Return a drawing of some benchmarks and models.

    Args:
        drawn: what ``draw_forest`` draws: points, models, rows, grid and note.
        name: of its files, without ``-time``.
        section: of the page.
        title: for people.
        ends: from where to where the rows run, with a comma before.
        **more: as of ``Sketch``.
    """
    points, models, rows, n, note = drawn
    medium = medium_of(points)
    caption = f"{_caption(points, n)} {note}".strip() + lettering.explained(lettering.short(models))
    alt = f"{_what(points)} {_aloud(medium, n)}{ends}: {_in_words(points, rows)}"
    file = f"{name}{'-time' * bool(medium.instead)}"
    return Sketch(file, title, caption, alt, section, lambda across: draw_forest(across, *drawn), **more)


def _in_words(points: Sequence[Point], rows: Sequence[str]) -> str:
    """Return the indices in words, of at most 12 results."""
    several = len({p.model for p in points}) > 1
    mixed = _shown(points) == "index"
    told = []
    for row in rows:
        for point in (p for p in points if p.benchmark == row):
            estimate, steady = leading(point)
            who = f"{row}, {point.model}" if several else row
            who += f", {_name(point, steady)}" if mixed and estimate is not None else ""
            told.append(f"{who} {said(estimate) if estimate is not None else reason(point)}")
    return "; ".join(told[:12]) + ("; and more, in the table." if len(told) > 12 else ".")


def _caption(points: Sequence[Point], n: int) -> str:
    """Return what is drawn, what the lines are, and what the marks and letters mean."""
    leads = [leading(p)[0] for p in points]
    known = [estimate for estimate in leads if estimate is not None]
    size = docs_each(estimate.n for estimate in known if estimate.n)
    grids = sorted({p.n for p in points})
    medium = medium_of(points)
    sizes = " and ".join(medium.size(k) if medium.instead else f"{k}×{k}" for k in grids) + (
        "" if medium.instead else " cells"
    )
    raw, steady = (_name(points[0], which) for which in (False, True))
    out = [f"By benchmark, {sizes}, over the bands of the RCI paper, 3.2."]
    if True in _kinds(points):
        told = medium.say("(of the docs answered with their image, the share that needs all of it)")
        out.append(f"Filled: {steady} {told}. Hollow: {raw} = 1 − MPP/FIP.")
    elif known:
        out.append(f"Hollow: {raw} = 1 − MPP/FIP, not asked again.")
    out.append(
        levels_in("Lines: {} interval, bootstrap over docs.", known, "Published numbers, without intervals.") + size
    )
    seen = once(word for p in points for word in words(p))
    letters = once(f"{_LETTERS[word]} {word}" for word in seen if word in _LETTERS)
    out += [f"In one column: {', '.join(letters)}."] if letters else []
    refused = leads.count(None)
    out += (
        [f"N/A ({counted(refused, 'result')}): refused by the gate, or not defined, for the reason in the row."]
        if refused
        else []
    )
    out += [f"Mind: {fragmentation(n)}."] if fragmentation(n) and not medium.instead else []
    return " ".join(out)


# --- drawing --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    """Where a benchmark stands in a panel of a forest plot, with a lane for each model.

    Attributes:
        name: of the benchmark.
        label: its name as it is drawn.
        top, bottom: inches from the top of the panel.
        lanes: of each model, what is drawn, and how many inches from the top of the panel.
        grey: whether no index of it may be read.
    """

    name: str
    label: str
    top: float
    bottom: float
    lanes: list[tuple[Point, float]]
    grey: bool


def draw_forest(
    across: float, points: Sequence[Point], models: Sequence[str], rows: Sequence[str], grid: int, note: str
) -> Any:
    """Draw the index of some benchmarks and models.

    Args:
        across: inches.
        points: at most one of each benchmark and model.
        models: in the order of their marks.
        rows: the benchmarks, from top to bottom.
        grid: the grid that goes without saying; others are written beside the benchmark.
        note: what is left out; written below.
    """
    tall = sum(_tall(rows, models, 1.6))
    split = 2 if across >= TWO and tall > TALLEST and len(rows) > 1 else 1
    room = across / split - (EDGE if split > 1 else 0)
    names_room = min(1.9, 0.29 * room) if split == 1 else 1.0
    parts = _parts(rows, models, names_room, split)
    blocks = [_blocks(points, models, part, names_room, grid) for part in parts]
    body = max(some[-1].bottom for some in blocks)
    limits = _limits(points)
    left = max((lettering.width(b.label) for some in blocks for b in some), default=0.0) + 0.1 + EDGE
    right = max(lettering.width(_beside(point, models, room), SMALL) for point in points)
    right = right + 0.08 if right else 0.0
    plot = room - left - right - EDGE
    named = _names_fit(limits, plot)
    drawing, places, plot = plots.layout(
        across,
        split,
        columns=split,
        left=left,
        right=right + EDGE,
        gap=left + right + 3 * EDGE,
        head=lettering.height(3 if named else 1, SMALL) + 0.05,
        below=0.36,
        widest=across,
        body=body,
        marks=_key(points, models, named),
        note=note,
    )
    for some, (x, y) in zip(blocks, places, strict=True):
        axes = canvas.axes(drawing, x, y + body - some[-1].bottom, plot, some[-1].bottom)
        _panel(axes, some, models, limits, plot, named, room)
    return drawing


def _tall(rows: Sequence[str], models: Sequence[str], room: float) -> list[float]:
    """Return the height of each row in inches: as much as its lanes, or its wrapped name, need."""
    lanes = _LANE * len(models) + (_PAD if len(models) > 1 else 0.085)
    return [max(lanes, lettering.height(lettering.fit(row, room).count("\n") + 1) + 0.05) for row in rows]


def _parts(rows: Sequence[str], models: Sequence[str], room: float, split: int) -> list[Sequence[str]]:
    """Return the rows of each panel: of about the same height."""
    if split == 1:
        return [rows]
    ends = np.cumsum(_tall(rows, models, room))
    first = max(1, min(len(rows) - 1, int(np.searchsorted(ends, ends[-1] / 2)) + 1))
    return [rows[:first], rows[first:]]


def _blocks(
    points: Sequence[Point], models: Sequence[str], rows: Sequence[str], room: float, grid: int
) -> list[_Block]:
    """Return the blocks of a panel from top to bottom."""
    out, top = [], 0.0
    for row, tall in zip(rows, _tall(rows, models, room), strict=True):
        mine = {p.model: p for p in points if p.benchmark == row}
        lanes = [
            (mine[model], top + tall / 2 + (m - (len(models) - 1) / 2) * _LANE)
            for m, model in enumerate(models)
            if model in mine
        ]
        other = once(p.n for p in mine.values() if p.n != grid)
        whole = f"{row} ({', '.join(medium_of(points).size(n) for n in other)})" if other else row
        grey = all(leading(p)[0] is None for p in mine.values())
        out.append(_Block(row, lettering.fit(whole, room), top, top + tall, lanes, grey))
        top += tall
    return out


def _limits(points: Sequence[Point]) -> tuple[float, float]:
    """Return the ends of the axis: as far as marks and intervals reach, within bounds."""
    ends = plots.ends(number for p in points if p.valid for number in (leading(p)[0], p.estimate))
    known = [end for end in ends if abs(end) <= MOST]
    low, high = min(known, default=0.0), max(known, default=0.0)
    return max(-MOST, min(-LEAST, low - 0.06)), min(MOST, max(LEAST, high + 0.06))


def band_ends(low: float, high: float) -> list[tuple[str, float, float]]:
    """Return each band with its ends on an axis."""
    ends = [low, *(min(high, max(low, end)) for end, _ in BANDS), high]
    return list(zip(palette.NAMES, ends[:-1], ends[1:], strict=True))


def _names_fit(limits: tuple[float, float], plot: float) -> bool:
    """Return whether the bands' names have room above the panel, each over its band."""
    unit = plot / (limits[1] - limits[0])
    return all(
        lettering.width(name.replace(" ", "\n"), SMALL) <= (right - left) * unit - 0.03
        for name, left, right in band_ends(*limits)
    )


def _panel(
    axes: Any,
    blocks: Sequence[_Block],
    models: Sequence[str],
    limits: tuple[float, float],
    plot: float,
    named: bool,
    room: float,
) -> None:
    """Draw a panel: bands, names, lanes, and what its axis says."""
    low, high = limits
    for colour, (name, left, right) in zip(palette.BAND_LIGHT, band_ends(low, high), strict=True):
        canvas.tip(axes.axvspan(left, right, facecolor=colour, alpha=_TINT, linewidth=0, zorder=0), name)
    axes.axvline(0, color=INK, linewidth=0.7, zorder=2)
    axes.set_xlim(low, high)
    axes.set_ylim(blocks[-1].bottom, 0)
    middles = [(b.top + b.bottom) / 2 for b in blocks]
    plots.label_rows(axes, middles, [b.label for b in blocks], [b.name for b in blocks])
    for tick, block in zip(axes.yaxis.get_major_ticks(), blocks, strict=True):
        tick.label1.set_alpha(0.6 if block.grey else 1.0)
    plots.line_rows(axes, middles if len(models) == 1 else [b.bottom for b in blocks[:-1]])
    unit = (high - low) / plot
    lanes = [lane for block in blocks for lane in block.lanes]
    for point, place in lanes:
        _lane(axes, point, place, models, plot)
        estimate, _ = leading(point)
        if estimate is not None and (text := _beside(point, models, room)):
            looks = {"fontsize": SMALL, "va": "center_baseline", "zorder": 6}
            written = axes.text(high + 0.06 * unit, place, text, **looks)
            canvas.tip(written, f"{point.benchmark}: {said(estimate)}")
    plots.few_ticks(axes, plot)
    axes.set_xlabel(index_name([point for point, _ in lanes], plot))
    top = -0.03
    if named:
        for name, left, right in band_ends(low, high):
            looks = {"ha": "center", "va": "bottom", "fontsize": SMALL, "linespacing": 1.05}
            axes.text((left + right) / 2, top, name.replace(" ", "\n"), **looks)
        top -= lettering.height(2, SMALL)
    medium = medium_of(point for point, _ in lanes)
    ends = (f"◂ one {medium.part} is enough", f"needs the whole {medium.medium} ▸")
    if sum(lettering.width(end, SMALL) for end in ends) + 0.1 > plot:
        ends = (f"◂ one {medium.part}", f"whole {medium.medium} ▸")
    if sum(lettering.width(end, SMALL) for end in ends) + 0.06 <= plot:
        axes.text(low + 0.02 * unit, top, ends[0], ha="left", va="bottom", fontsize=SMALL)
        axes.text(high - 0.02 * unit, top, ends[1], ha="right", va="bottom", fontsize=SMALL)


def _lane(axes: Any, point: Point, place: float, models: Sequence[str], plot: float) -> None:
    """Draw a result: interval and marks, or the reason for lacking these."""
    low, high = axes.get_xlim()
    m = models.index(point.model)
    colour = palette.SERIES_LIGHT[m]
    who = f"{point.benchmark}, {point.model}, {point.medium.size(point.n)}"
    estimate, steady = leading(point)
    if estimate is None:
        _refused(axes, point, place, who, m if len(models) > 1 else None, plot)
        return
    told = f"{who}, {_name(point, steady)}: {said(estimate)}"
    told += f"; {_contradicted(point)}" if steady and point.contradicted else ""
    value = estimate.value
    assert value is not None
    if steady and point.value is not None:
        raw = f"{who}, {_name(point, False)}: {said(point.estimate)}"
        _at(axes, point.value, place, _RING, raw, zorder=5, markeredgewidth=0.9)
    if estimate.low is not None and estimate.high is not None:
        ends = [max(low, min(high, end)) for end in (estimate.low, estimate.high)]
        plots.span(axes, ends, [place, place], colour, told)
        for end, arrow in ((estimate.low, "<"), (estimate.high, ">")):
            if not low <= end <= high:  # the line goes on
                plots.mark(axes, max(low, min(high, end)), place, Mark("", arrow, colour, size=3), told)
    shape = palette.MARKERS[m] if steady or len(models) > 1 else "o"
    _at(axes, value, place, Mark("", shape, colour, hollow=not steady), told)


def _at(axes: Any, value: float, place: float, look: Mark, told: str, **more: Any) -> None:
    """Draw the mark of an index, or the number at the edge of the axis."""
    plots.within(axes, value, place, look, told, wording.number(value, signed=True, digits=2), **more)


def _refused(axes: Any, point: Point, place: float, who: str, m: int | None, plot: float) -> None:
    """Write why an index may not be read, in grey, in its row; with the model's mark where there are several."""
    low, high = axes.get_xlim()
    unit, sign = (high - low) / plot, 0.09 if m is not None else 0.0
    shown = lettering.fit(reason(point), plot - sign - 0.1, SMALL, 1)
    needs = (lettering.width(shown, SMALL) + sign + 0.1) * unit
    # Rather not across the line at 0.
    at = (low if needs < -low or needs > high else 0.0) + 0.07 * unit
    told = f"{who}: N/A, {point.reason or 'not defined'}"
    if m is not None:
        plots.mark(axes, at, place, Mark("", palette.MARKERS[m], _RAW, hollow=True, size=3.6), told)
    looks = {"fontsize": SMALL, "style": "italic", "alpha": 0.75, "zorder": 3}
    canvas.tip(axes.text(at + sign * unit, place, shown, va="center_baseline", ha="left", **looks), told)


def _beside(point: Point, models: Sequence[str], room: float) -> str:
    """Return the text right of a lane: the number (with a single model) and notes, as letters where room is short."""
    estimate, _ = leading(point)
    if estimate is None:
        return ""
    wide = room > 4
    told = words(point)
    text = [", ".join(told)] if wide else [" ".join(once(_LETTERS.get(word, word) for word in told))]
    if len(models) == 1:
        text.insert(0, wording.said(estimate, True, 2) if wide else wording.value(estimate, True, 2))
    return ("  " if not wide else ", ").join(filter(None, text))


def _key(points: Sequence[Point], models: Sequence[str], named: bool) -> list[Mark]:
    """Return the legend: models where there are several, the two indices, and the bands where they are not named above."""
    kinds = _kinds(points)
    several = len(models) > 1
    out = []
    if several:
        out += [replace(mark, hollow=kinds == {False}) for mark in plots.model_marks(models)]
        if kinds == {True, False}:
            out.append(plots.series(0, "hollow: not asked again", hollow=True))
    elif True in kinds:
        out.append(plots.series(0, _name(points[0], True)))
    if False in kinds and not several:
        name = f"{_name(points[0], False)}{', not asked again' * (True in kinds)}"
        out.append(plots.series(0, name, shape="o", hollow=True))
    if True in kinds:
        out.append(replace(_RING, label=_name(points[0], False)))
    if not named:
        out += [
            Mark(name, "patch", colour, alpha=_TINT)
            for name, colour in zip(palette.NAMES, palette.BAND_LIGHT, strict=True)
        ]
    return out
