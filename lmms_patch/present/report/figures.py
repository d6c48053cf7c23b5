"""The figures of a report: each chooses rows for a drawing of ``present.draw``, and says what is drawn.

Title, caption and alternative text are made of the rows that are drawn.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from lmms_patch import files
from lmms_patch.ask.kinds import OF_CLIPS, OF_IMAGES, Kind, Words
from lmms_patch.present import draw, palette
from lmms_patch.present.draw import Panels, Row
from lmms_patch.present.page import wording
from lmms_patch.present.report import benchmarks as tables
from lmms_patch.present.report import models as ranked
from lmms_patch.present.report.data import Entry, Figure
from lmms_patch.present.report.magic_words import WORDS
from lmms_patch.present.report.points import (
    TYPES,
    Point,
    columns,
    counted,
    distinct,
    listed,
    medium_of,
    of_medium,
    once,
)
from lmms_patch.present.report.run_sheets import NEED_WORDS, maps_of, without_looking
from lmms_patch.present.sheets import ends_in_percent, levels_in
from lmms_patch.runs import catalogue, reading
from lmms_patch.stats.index import band, fragmentation
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import clean, latex, line

LANES = 30
"""The most indices that the headline draws with their intervals; more become a table in colours."""
ROWS, MODELS = 120, 40
"""The most benchmarks and models in a drawing."""
ALONE = 8
"""How many results have a heat map each."""
PANELS = 11
"""The most panels of a drawing."""
GRIDS = 3
"""The fewest grids that make a curve."""
LEAST, FARTHEST = 0.42, 1.1
"""The axis of the index reaches at least so far from 0, and at most."""
FULL, APART = "full", ("benchmarks", "models")
"""The first tick of a curve, and the sections of a page that clips have apart from images."""
BANDS = dict(zip(palette.NAMES, palette.BAND_LIGHT, strict=True))
LEVELS = dict(
    zip(
        ("none", "¼", "half of even", "¾", "even", "1¼ ×", "1½ × even", "1¾ ×", "2 × or more"),
        palette.SHARES,
        strict=True,
    )
)
RS = {f"r = {k / 4:g}".replace("-", "−"): colour for k, colour in zip(range(-4, 5), palette.SHARES, strict=True)}


@dataclass(frozen=True)
class Drawing:
    """A figure before drawing.

    Attributes:
        name: of its files.
        title, caption: for people.
        section: of the page.
        tips: what its marks tell: names and numbers.
        chart: draws it.
        entries: labels of the results that it shows.
        narrow: draws it for a phone; None: as it is.
    """

    name: str
    title: str
    caption: str
    section: str
    tips: Sequence[str]
    chart: Callable[[], Any]
    entries: tuple[str, ...] = ()
    narrow: Callable[[], Any] | None = None


def figures(entries: Sequence[Entry], points: Sequence[Point], folder: Path) -> tuple[Figure, ...]:
    """Draw what there is to draw, and write the files of each.

    Args:
        entries: the results of our runs; may be empty.
        points: their indices, and those of published tables.
        folder: is there, and takes the files.

    Returns:
        What the page shows; the headline first.
    """
    return tuple(write(one, folder) for one in drawings(entries, distinct(points)))


def write(one: Drawing, folder: Path) -> Figure:
    """Write a figure as SVG, PDF and PNG, with LaTeX for a paper; return what the page shows."""
    title, caption, tips = line(one.title), line(one.caption), tuple(dict.fromkeys(map(line, one.tips)))
    svg = draw.write(one.chart(), folder / one.name)
    narrow = draw.svg(one.narrow()) if one.narrow else ""
    lines = (
        "% \\usepackage{graphicx}",
        "\\begin{figure}[t]",
        "  \\centering",
        f"  \\includegraphics[width=\\linewidth]{{figures/{one.name}.pdf}}",
        f"  \\caption{{{latex(f'{title}. {caption}')}}}",
        f"  \\label{{fig:{re.sub(r'[^A-Za-z0-9-]', '-', one.name)}}}",
        "\\end{figure}\n",
    )
    files.write(folder / f"{one.name}.tex", "\n".join(lines))
    alt = f"{title}: {'; '.join(tips[:12])}{f'; and {len(tips) - 12} more, as text below' * (len(tips) > 12)}."
    names = tuple(f"{one.name}.{form}" for form in ("svg", "pdf", "png", "tex"))
    return Figure(one.name, title, caption, alt, svg, one.section, one.entries, names, narrow, tips)


def drawings(entries: Sequence[Entry], points: Sequence[Point]) -> Iterator[Drawing]:
    """Yield every figure, not drawn yet: of images, then of clips, under other names."""
    for words, in_time in ((OF_IMAGES, False), (OF_CLIPS, True)):
        some = [entry for entry in entries if entry.kind.needs_video == in_time]
        for one in _of_medium(some, of_medium(points, in_time), words):
            name = one.name if one.name.startswith("cells-") or not in_time else f"{one.name}-time"
            yield replace(one, name=name, section=f"{one.section}{'_time' * (in_time and one.section in APART)}")


def _of_medium(entries: Sequence[Entry], points: Sequence[Point], words: Words) -> Iterator[Drawing]:
    yield from indices(points, words)
    yield from composition(entries, words)
    yield from full_and_best(entries, words)
    yield from cells(entries)
    yield from curves(entries, words)
    yield from agreement(points, words)
    yield from models(points, words)
    yield from without_image(entries)
    yield from regions(entries)


# --- rows -----------------------------------------------------------------------------------------


def _row(
    row: str, lane: str, estimate: Estimate | None, who: str, signed: bool = False, note: str = ""
) -> dict[str, Any]:
    """Return a number with its interval and a note as a row of ``draw.intervals``."""
    made = {"row": row, "lane": lane, "solid": 1}
    if estimate is None or estimate.value is None:
        told = f"N/A: {note}"
        return {
            **made,
            **dict.fromkeys(("value", "low", "high")),
            "label": told,
            "brief": told,
            "shade": 0.65,
            "tip": f"{who}: {told}",
        }
    beyond = ("" if abs(estimate.value) <= FARTHEST else "▸ " if estimate.value > 0 else "◂ ") * signed
    label, tip = (
        ", ".join(filter(None, [text, note]))
        for text in (beyond + wording.said(estimate, signed, 2), f"{who}: {wording.said(estimate, signed)}")
    )
    brief = beyond + wording.value(estimate, signed, 2)
    return {**made, **_number(estimate), "label": label, "brief": brief, "shade": 1, "tip": tip}


def _number(estimate: Estimate) -> dict[str, Any]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _cell(x: str, row: str, level: str | None, text: str, tip: str, ink: str = palette.INK, edge: float = 0) -> Row:
    return {"x": x, "row": row, "level": level, "text": text, "tip": tip, "ink": ink, "edge": edge}


def _point(x: Estimate, y: Estimate, name: str, lane: str, tip: str, solid: bool = True) -> Row:
    ends = {"xlow": x.low, "xhigh": x.high, "ylow": y.low, "yhigh": y.high}
    return {"x": x.value, "y": y.value, **ends, "name": name, "lane": lane, "tip": tip, "solid": int(solid)}


def _tips(*panels: Iterable[Row]) -> list[str]:
    return [row["tip"] for rows in panels for row in rows]


def _ends(rows: Iterable[Row], *keys: str) -> tuple[float, float]:
    """Return the ends of an axis with room for 0 and some columns."""
    known = [0.0, *(row[key] for row in rows for key in keys if row[key] is not None)]
    room = 0.06 * (max(known) - min(known) or 1.0)
    return min(known) - room * (min(known) < 0), max(known) + room


def _who(entry: Entry) -> str:
    return f"{clean(entry.base)} with {clean(entry.model)}"


def _labels(entries: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(once(entry.label for entry in entries))


def _rows_of(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the name of each result's row: benchmark (task, where a model has several results of a benchmark), and model below."""
    some = {entry.label: entry for entry in entries}
    several = len({entry.model for entry in some.values()}) > 1
    often = Counter(map(_who, some.values()))
    names = {label: clean(e.base if often[_who(e)] == 1 else e.result.label) for label, e in some.items()}
    return {label: f"{names[label]}\n{clean(e.model)}" if several else names[label] for label, e in some.items()}


def _scales(entries: Iterable[Entry]) -> Iterator[tuple[str, list[Entry], str]]:
    """Yield the results whose metrics can share an axis, the scale, and what names of files end with where there are several."""
    out: dict[str, list[Entry]] = {}
    for entry in entries:
        ceiling = entry.whole.measures.get("ceiling")
        full = (ceiling.value if ceiling else None) or 0
        own = f"{clean(entry.result.metric)} of {clean(entry.base)}"
        out.setdefault("0 to 1" if 0 < full <= 1.0001 else "0 to 100" if 50 < full <= 100.01 else own, []).append(entry)
    yield from ((scale, some, f"-{k + 1}" * (len(out) > 1)) for k, (scale, some) in enumerate(out.items()))


# --- the index ------------------------------------------------------------------------------------


def leading(point: Point) -> tuple[Estimate | None, bool]:
    """Return the index to go by, and whether this is steady RCI; None where no index may be read."""
    if not point.valid or point.value is None:
        return None, False
    steady = point.steady is not None and point.steady.value is not None
    return (point.steady if steady else point.estimate), steady


def indices(points: Sequence[Point], words: Words) -> Iterator[Drawing]:
    """Yield the headline, the indices of further grids, and benchmarks by models in colours."""
    if not points:
        return
    counts, results = Counter(p.n for p in points), {(p.benchmark, p.model) for p in points}
    grid = max((n for n, count in counts.items() if 2 * count >= len(results)), default=max(counts))
    best = {(p.benchmark, p.model): p for p in sorted(points, key=lambda p: (p.n == grid, p.n))}
    chosen = [p for p in points if best[p.benchmark, p.model] is p]
    made = _map if len(chosen) > LANES else _intervals
    title = words.say("How much each benchmark needs the whole image")
    yield made(chosen, grid, "headline", title, "headline")
    for n in sorted(counts):
        some = [p for p in points if p.n == n]
        new = not {p.key for p in some} <= {p.key for p in chosen}
        several = min(len({p.benchmark for p in some}), len({p.model for p in some})) > 1
        if new or made is _map:
            yield _intervals(some, n, f"index{n}", f"The index by benchmark, {words.size(n)}", "benchmarks")
        if several and (new or made is _intervals):
            yield _map(some, n, f"map{n}", f"The index in colours, {words.size(n)}", "benchmarks")


def _shown(points: Sequence[Point]) -> tuple[list[Point], str]:
    """Return points from the most local benchmark to the most global, those without an index last; and what is not drawn."""

    def mean(name: str) -> float:
        known = [e.value for p in points if p.benchmark == name and (e := leading(p)[0]) and e.value is not None]
        return float(np.mean(known)) if known else np.inf

    every = sorted(once(p.benchmark for p in points), key=mean), once(p.model for p in points)
    at = {(p.benchmark, p.model): p for p in points}
    kept = [at[key] for key in itertools.product(every[0][:ROWS], every[1][:MODELS]) if key in at]
    left = len(points) - len(kept)
    return kept, f" Not drawn: {left} of {len(points)} indices; all are in the tables." * (left > 0)


def _intervals(points: Sequence[Point], n: int, name: str, title: str, section: str) -> Drawing:
    """Return the index to go by with its interval over the bands, a row for each benchmark and a lane for each model."""
    shown, note = _shown(points)
    rows = [_index_row(p, n) for p in shown]
    values = [row[key] for row in rows for key in ("value", "low", "high") if row[key] is not None]
    ends = max(-FARTHEST, min(-LEAST, *values, 0)), min(FARTHEST, max(LEAST, *values, 0) + 0.04)
    words, leads = medium_of(shown), [leading(p) for p in shown]
    known = [estimate for estimate, _ in leads if estimate is not None]
    kinds = {steady for estimate, steady in leads if estimate is not None}
    raw, steady = (reading.name("trci" if shown[0].in_time else "rci", steady=which) for which in (False, True))
    share = words.say("(of the docs answered with their image, the share that needs all of it)")
    caption = (
        f"{words.size(n)}, over the bands of the RCI paper, 3.2. {f'Filled: {steady} {share}. ' * (True in kinds)}"
    )
    caption += f"Hollow: {raw} = 1 − MPP/FIP, not asked again. " * (False in kinds)
    published = "Published numbers, without intervals." * bool(known)
    caption += levels_in("Lines: {} interval, bootstrap over docs.", known, published)
    refused = counted(len(leads) - len(known), "result")
    caption += f" N/A ({refused}): refused by the gate, or not defined." * (len(leads) > len(known))
    caption += f" Mind: {fragmentation(n)}." * bool(fragmentation(n) and not words.instead) + note
    axis = steady if kinds == {True} else raw if kinds == {False} else "index"
    chart = partial(draw.intervals, rows, f"{axis}, {words.size(n)}", ends, True)
    narrow = partial(chart, width=draw.NARROW) if section == "headline" else None
    return Drawing(name, title, caption, section, _tips(rows), chart, narrow=narrow)


def _index_row(point: Point, n: int) -> dict[str, Any]:
    """Return an index as a row, with its grid beside the number if not n."""
    estimate, steady = leading(point)
    name = reading.name("trci" if point.in_time else "rci", steady=steady)
    row, lane, size = clean(point.benchmark), clean(point.model), point.medium.size(point.n)
    notes = [
        *reading.words(estimate),
        *["RCI contradicted"] * (steady and point.contradicted),
        *[size] * (point.n != n),
    ]
    reason = wording.short_reason(point.reason) or "not defined"
    who, note = f"{row}, {lane}, {size}{f', {name}' * bool(estimate)}", ", ".join(notes) if estimate else reason
    made = _row(row, lane, estimate, who, True, note) | {"solid": int(steady)}
    return made if estimate else made | {"tip": f"{who}: N/A, {point.reason or reason}"}


def _map(points: Sequence[Point], n: int, name: str, title: str, section: str) -> Drawing:
    """Return benchmarks by models in the colours of the bands."""
    shown, note = _shown(points)
    rows, fields = [], itemgetter("row", "lane", "value", "label", "brief", "tip")
    for row, lane, value, label, brief, tip in (fields(_index_row(point, n)) for point in shown):
        text = brief.partition(":")[0]
        text = f"({text})" if reading.CONTRADICTED in label else text
        rows.append(_cell(lane, row, None if value is None else band(value), text, tip))
    caption = (
        f"{medium_of(points).size(n)}, steady where docs were asked again, in the colours of the bands of the RCI paper, 3.2. "
        f"N/A: refused by the gate, or not defined. In brackets: contradicted. Intervals are in the tables.{note}"
    )
    chart = partial(draw.heat, {"": rows}, BANDS, (48, 24))
    return Drawing(name, title, caption, section, _tips(rows), chart)


def agreement(points: Sequence[Point], words: Words) -> Iterator[Drawing]:
    """Yield the correlation of the index between models and grids over benchmarks (RCI paper, figures 2 and 5)."""
    usable = [p for p in points if p.valid]
    known = {key: r for pair, (r, _) in tables.by_pair(usable).items() for key in (pair, pair[::-1])}
    names = {pair: f"{clean(pair[0])}, {words.size(pair[1])}" for pair in columns(usable)}
    rows = [_r_cell(names[b], names[a], known.get((a, b))) for a, b in itertools.product(names, names)]
    if len({p.model for p in usable}) < 2 or len(names) > MODELS or all(r.value is None for r in known.values()):
        return
    caption = levels_in("Pearson's r over benchmarks; {} intervals by Fisher's z are told below.", known.values())
    caption += " Columns of one model share its answers to the full images, so they agree by construction."
    chart = partial(draw.heat, {"": rows}, RS, (48, 24))
    yield Drawing("correlation", "Do models agree on benchmarks?", caption, "benchmarks", _tips(rows), chart)


def _r_cell(x: str, row: str, r: Estimate | None) -> Row:
    if r is None or r.value is None:
        return _cell(x, row, None, "N/A" if r else "1", f"{row} and {x}: {'N/A' if r else 1}")
    k, text = round(4 + 4 * r.value), wording.number(r.value, digits=2)
    return _cell(x, row, [*RS][k], text, f"{row} and {x}: r = {wording.said(r)}", palette.on(palette.SHARES[k]))


def models(points: Sequence[Point], words: Words) -> Iterator[Drawing]:
    """Yield models by how far their index is from 0, and by task type (PCRI paper, figures 2 to 4)."""
    grids = ranked.grids(points)[::-1]
    every = [one for n in grids for one in ranked.standings(points, n) if one.rank is not None]
    for group in sorted(once(one.group for one in every), key=lambda group: -len(group.models))[:1]:
        some = [one for one in every if one.group == group]
        shown = [one for model in once(one.model for one in some)[:MODELS] for one in some if one.model == model]
        if len(group.models) > 1:
            means, left = ranked.left_out(group), len({one.model for one in every} - {one.model for one in shown})
            told = f"{means[0].upper()}{means[1:]}{f' Not drawn: {left} more models, in the table.' * (left > 0)}"
            yield _means(shown, "size", words, told, "ranking")
    # Task types are the papers', which are of images.
    types = [] if words.instead or len({p.model for p in points}) < 2 else ranked.types(points)
    typed = [one for kind in types for n in grids for one in ranked.standings(points, n, kind)]
    if typed := [one for one in typed if one.signed.value is not None]:
        told = "Mean, with its sign, over the benchmarks of a type that all its models have."
        yield _means(typed, "signed", words, told, "by-type")


def _means(shown: Sequence[ranked.Standing], what: str, words: Words, told: str, name: str) -> Drawing:
    """Return means of models: of |index|, a row for each model; with their sign, a row for each task type."""
    index, basis = ranked.basis({f"{one.n}x{one.n} {one.type}": one.steady for one in shown}, words)
    index, signed = (f"|{index}|", False) if what == "size" else (index, True)
    rows = []
    for one in shown:
        model, size = clean(one.model), words.size(one.n)
        row, lane = (f"{TYPES[one.type]}, {size}", model) if signed else (model, size)
        rows.append(
            _row(row, lane, getattr(one, what), f"{model}, mean {index}, {size}{f', {one.type}' * signed}", signed)
        )
    independent = "Lines: {} interval, benchmarks as independent."
    told = f"{basis}{told} {levels_in(independent, (getattr(one, what) for one in shown), 'Published numbers, without intervals.')}"
    chart = partial(draw.intervals, rows, f"mean {index} over benchmarks", _ends(rows, "value", "low", "high"))
    return Drawing(name, f"Models by {'task type, ' * signed}{index}", told, "models", _tips(rows), chart)


# --- what docs need, and where --------------------------------------------------------------------


def composition(entries: Sequence[Entry], words: Words) -> Iterator[Drawing]:
    """Yield what docs are solved by, at the finest grid of each result: text, a cell, the whole image, or nothing."""
    maps = [(entry, found) for entry in entries for found in maps_of(entry.whole)[:1]]
    known = [(entry, found) for entry, found in maps if found.shares["one cell"].value is not None]
    parts = {need: words.say(need) for need in NEED_WORDS}
    names = _rows_of(entry for entry, _ in known)
    rows = []
    for entry, found in known:
        start = 0.0
        for need, part in parts.items():
            share = found.shares[need]
            end = start + 100 * (share.value or 0.0)
            text = f"{end - start:.0f} %"
            tip = f"{_who(entry)}, {part}: {text}{ends_in_percent(share)} of {found.docs:,} docs, {words.size(found.n)}"
            place = {"start": start, "end": end, "middle": (start + end) / 2, "text": text * (end - start > 8)}
            rows.append({"row": names[entry.label], "part": part, "tip": tip, **place})
            start = end
    meaning = words.say("; ".join(f"{need}, {what}" for need, what in NEED_WORDS.items()))
    caption = f"Shares of the docs, by the first that holds: {meaning}. Luck is removed by asking again."
    chart = partial(draw.bars, rows, {part: palette.NEEDS[need][0] for need, part in parts.items()}, "% of the docs")
    if rows:
        title, shown = words.say("What each question needs"), _labels(entry for entry, _ in known)
        yield Drawing("composition", title, caption, "needs", _tips(rows), chart, shown)


def full_and_best(entries: Sequence[Entry], words: Words) -> Iterator[Drawing]:
    """Yield MPP over FIP, a panel for each grid and a figure for each scale of the metrics."""
    for scale, some, end in _scales(entry for entry in entries if entry.kind.index):
        grids = sorted({n for entry in some for n in entry.grids})
        panels = {words.size(n): [row for entry in some if n in entry.grids for row in _both(entry, n)] for n in grids}
        caption = words.say(
            "Score of each doc's best cell against the whole image, over the same docs. "
            "Above the dotted line a cell is enough (index below 0). MPP also rises by luck: the best of many tries. "
        )
        caption += "Hollow: refused by the gate. " * any(entry.whole.gate == 0 for entry in some)
        of = f"fip-mpp{end}", words.say("Whole image and best cell"), caption, "runs"
        axes = f"whole {words.medium} (FIP), {scale}", f"best {words.part} (MPP), {scale}"
        yield from _scatter(of, panels, axes, some, ["fip"], True)


def _scatter(
    of: tuple[str, str, str, str],
    panels: Panels,
    axes: tuple[str, str],
    some: Sequence[Entry],
    numbers: Iterable[str],
    diagonal: bool = False,
) -> Iterator[Drawing]:
    """Yield points with two numbers each; none where there are none."""
    panels = {title: rows for title, rows in panels.items() if rows}
    rows = [row for part in panels.values() for row in part]
    if rows:
        sure = levels_in("Lines: {} intervals.", (entry.whole.measures.get(name) for name in numbers for entry in some))
        name, title, caption, section = of
        ends = _ends(rows, "x", "xlow", "xhigh", "y", "ylow", "yhigh")
        chart = partial(draw.scatter, panels, *axes, (ends[0] - 0.1 * ends[1], 1.05 * ends[1]), diagonal)
        yield Drawing(name, title, f"{caption}{sure}", section, _tips(rows), chart, _labels(some))


def _both(entry: Entry, n: int) -> Iterator[Row]:
    """Yield FIP and MPP over the same docs as a point."""
    full, best, grid = entry.whole.measures.get("fip"), entry.whole.measures.get(f"mpp{n}"), entry.whole.grid(n)
    if full is None or best is None or full.value is None or best.value is None:
        return
    if grid and grid.fip is not None and grid.fip != full.value:
        full = replace(full.without(), value=grid.fip)  # of so many docs only the value is stored
    tip = f"{_who(entry)}, {entry.words.size(n)}: FIP {wording.said(full)}, MPP {wording.said(best)}"
    tip += f"; refused: {entry.whole.gate_word}" * (entry.whole.gate == 0)
    yield _point(full, best, clean(entry.base), clean(entry.model), tip, entry.whole.gate != 0)


def cells(entries: Sequence[Entry]) -> Iterator[Drawing]:
    """Yield where in the image the score comes from: of each result, and of all (RCI paper, figures 3, 4, 6 to 8)."""
    alone = [entry for entry in entries if any(map(entry.whole.shares, entry.grids))]
    for entry in alone[:ALONE]:
        panels = {}
        for n in entry.grids:
            if found := entry.whole.shares(n):
                title = f"{entry.words.size(n)}, {counted(found.docs, 'doc')}\neven: {wording.p_value(found.p) or 'not tested'}"
                panels[title] = _cells(found.score, n, entry.kind, _who(entry), found.p_cells)
        refused = f" ({entry.whole.gate_word})" * (entry.whole.gate == 0)
        title = f"Where the score comes from: {_who(entry)}{refused}"
        yield _of_cells(f"cells-{entry.label}", title, entry.kind, "runs", panels, [entry])
    for n, kind in {n: entry.kind for entry in entries for n in entry.grids}.items():
        shown = tables.readable(entries, n, kind)
        if len(shown) > 1:
            mean, names = f"mean over {len(shown)} results", _rows_of(entry for entry, _ in shown)
            panels = {mean: _cells(np.mean([found.score for _, found in shown], axis=0), n, kind, mean)}
            for entry, found in shown[:PANELS]:
                panels[names[entry.label]] = _cells(found.score, n, kind, _who(entry), found.p_cells)
            title, some = f"Where the score comes from, {kind.words.size(n)}", [entry for entry, _ in shown]
            yield _of_cells(f"cells{n}-all", title, kind, "benchmarks", panels, some)


def _cells(shares: Any, n: int, kind: Kind, who: str, p: Any = ()) -> list[Row]:
    """Return the shares of a grid's cells as rows of a heat map; outlined where p is below 0.05."""
    rows = []
    for i, share in enumerate(shares):
        down, across = divmod(i, kind.shape(n)[1])
        where = f"segment {i + 1}" if kind.needs_video else f"row {down + 1}, column {across + 1}"
        level, text = palette.share_level(share, len(shares)), wording.percent(share)
        tip = f"{who}, {kind.words.size(n)}, {where}: {text} % (even: {wording.percent(1 / len(shares))} %)"
        tip += f", {wording.p_value(p[i])}" if len(p) else ""
        ink, edge = palette.on(palette.SHARES[level]), 2.5 * bool(len(p) and p[i] < 0.05)
        name = "" if kind.needs_video else str(down + 1)
        rows.append(_cell(str(across + 1), name, [*LEVELS][level], text * (n <= 6), tip, ink, edge))
    return rows


def _of_cells(name: str, title: str, kind: Kind, section: str, panels: Panels, some: Sequence[Entry]) -> Drawing:
    caption = kind.words.say(
        "Percent of the score that each cell earns in isolation. Colours: share over even, from none (green) over even (white) to twice "
        "even or more (purple). Outlined: Holm-corrected p < 0.05 against random turns of each doc's cells."
    )
    left = len(some) - PANELS
    caption += " Without results that the gate refuses, or few scores." * (section != "runs")
    caption += f" Not drawn: {left} of {len(some)} results." * (left > 0)
    return Drawing(
        name, title, caption, section, _tips(*panels.values()), partial(draw.heat, panels, LEVELS), _labels(some)
    )


# --- scores ---------------------------------------------------------------------------------------


def without_image(entries: Sequence[Entry]) -> Iterator[Drawing]:
    """Yield chance, text only and blind scores beside the full image, a figure for each scale."""
    every = without_looking(entries)
    every += [entry for entry in entries if entry.kind.folds and entry.base not in {one.base for one in every}]
    for scale, some, end in _scales(every):
        names, numbers = _rows_of(some), list[Estimate]()
        rows = []
        for entry in some:
            get = entry.whole.measures.get
            full = {"full image": None if entry.kind.folds else get("score"), "without the image (blind)": entry.blind}
            scores = {**full, "text only (TsT)": entry.tst or get("tst"), "chance": get("chance")}
            known = {lane: one for lane, one in scores.items() if one is not None and one.value is not None}
            numbers += known.values()
            rows += [_row(names[entry.label], lane, one, f"{_who(entry)}, {lane}") for lane, one in known.items()]
        caption = (
            "TsT: a text-only model, cross-validated on the test set's own questions; blind: the model itself without "
            "image. What is scored without the image, above chance, the text gives away."
        ) + levels_in(" Lines: {} intervals, over docs.", numbers)
        chart = partial(draw.intervals, rows, f"score, {scale}", _ends(rows, "value", "low", "high"))
        name, title = f"without-image{end}", "With and without the image"
        yield Drawing(name, title, caption, "tst", _tips(rows), chart, _labels(some))


# --- curves ---------------------------------------------------------------------------------------


Curve = tuple[Entry, str, Mapping[str, Estimate]]
"""A result, what its line is called, and its numbers by tick."""


def curves(entries: Sequence[Entry], words: Words) -> Iterator[Drawing]:
    """Yield scores with less detail or fewer frames, and indices over grids."""
    for kind in once(entry.kind for entry in entries if entry.kind.curve):
        sized = bool(kind.words.sized)
        caption = (
            (
                "1/k: each block of k × k pixels is averaged, and the image is shown at its own size. Detail is shown to be "
                "needed where the interval of the drop (in the tables: full image of the same docs less this) leaves out 0. "
            )
            * sized
            + f"Docs whose {'image is too small for a size' if sized else 'clip has fewer frames'} are left out there."
        )
        for scale, some, end in _scales(entry for entry in entries if entry.kind == kind):
            known = [curve for entry in some for curve in _reduced(entry)]
            title = f"How {'much detail is' if sized else 'many frames are'} needed"
            of = f"curve-{kind.name}{end}", title, "size of the image" if sized else "frames", f"score, {scale}"
            yield from _curve(known, of, caption, [FULL])
    known = [(entry, clean(entry.model), _over_grids(entry)) for entry in entries if len(entry.grids) >= GRIDS]
    caption = words.say(
        "Steady where docs were asked again at each grid; else of one pass, in which the best of many cells also wins by "
        "luck, the more the finer the grid."
    )
    axes = "segments" if words.instead else "n of the n × n grid", "index"
    title = words.say("The index from coarse to fine cells")
    yield from _curve(known, ("curve-grids", title, *axes), caption, signed=True)


def _reduced(entry: Entry) -> Iterator[Curve]:
    """Yield scores by reduction or number of frames, and beside each size the full image over the same docs."""
    kind, measures, model = entry.kind, entry.whole.measures, clean(entry.model)
    family = catalogue.family("{kind}{key}", measures, kind, entry.result.grids)
    ticks = {n: kind.words.size(int(n)) if kind.words.sized else str(n) for n in sorted(family, key=int)}
    yield entry, model, {**({FULL: measures["fip"]} if kind.full else {}), **{ticks[n]: family[n] for n in ticks}}
    if kind.full:
        same = {ticks[n]: reading.full_of_the_same(measures, kind, str(n)) for n in ticks}
        full = {tick: catalogue.without_interval(value, 0) for tick, value in same.items()}
        yield entry, f"{model}, full image of the same docs", full


def _over_grids(entry: Entry) -> dict[str, Estimate]:
    """Return the index at each grid: steady where known at all of them."""
    at = {str(n): entry.index(n) for n in entry.grids}
    raw = {n: one.raw for n, one in at.items() if one.raw is not None and one.raw.value is not None}
    steady = {n: one.steady for n, one in at.items() if one.steady is not None and one.steady.value is not None}
    return steady if steady.keys() >= raw.keys() else raw


def _curve(
    known: Sequence[Curve],
    words: tuple[str, str, str, str],
    caption: str,
    apart: Sequence[str] = (),
    signed: bool = False,
) -> Iterator[Drawing]:
    """Yield a figure with a panel for each benchmark; none where no curve has two points.

    Args:
        known: the curves.
        words: the figure's name and title, and what its axes say.
        caption: how it is read.
        apart: ticks that no line joins.
        signed: whether numbers are written with their sign.
    """
    defined = [(e, lane, {tick: one for tick, one in some.items() if one.value is not None}) for e, lane, some in known]
    often = Counter((entry.base, lane) for entry, lane, _ in known)
    shown = [
        (entry, lane if often[entry.base, lane] == 1 else f"{lane}, {clean(entry.result.label)}", some)
        for entry, lane, some in defined
        if len(some) > 1
    ]
    ticks, lanes = once(tick for *_, some in known for tick in some), once(lane for _, lane, _ in shown)
    ticks.sort(key=lambda tick: (tick not in apart, len(tick), tick))
    panels: dict[str, list[Row]] = {}
    for entry, lane, some in shown:
        by = (lanes.index(lane) - (len(lanes) - 1) / 2) * min(0.06, 0.7 / len(lanes))
        for tick, one in some.items():
            looks = {"lane": lane, "joined": None if tick in apart else lane, "solid": int(entry.whole.gate != 0)}
            tip = f"{clean(entry.base)} with {lane}, {tick}: {wording.said(one, signed)}"
            panels.setdefault(clean(entry.base), []).append(
                {"x": ticks.index(tick) + by, **_number(one), **looks, "tip": tip}
            )
    rows = [row for part in panels.values() for row in part]
    if rows:
        caption += levels_in(" Lines: {} intervals, over docs.", (one for *_, some in shown for one in some.values()))
        empty = once(
            clean(entry.base) for entry, _, some in defined if len(some) < 2 and clean(entry.base) not in panels
        )
        caption += f" Not drawn, no number may be read: {listed(empty, 6)}." * bool(empty)
        chart = partial(draw.curves, panels, ticks, words[2], words[3], _ends(rows, "value", "low", "high"))
        yield Drawing(words[0], words[1], caption, "runs", _tips(rows), chart, _labels(entry for entry, *_ in shown))


# --- regions --------------------------------------------------------------------------------------


def regions(entries: Sequence[Entry]) -> Iterator[Drawing]:
    """Yield which boxes models use, and whether those who look well answer well (MAGIC paper, figure 4)."""
    shown = [entry for entry in entries if entry.result.magic and entry.result.magic.variant == "all"]
    several = len({entry.result.label for entry in shown}) > 1
    means = {mean: (f"magiscore_recall_{mean}", f"magiscore_precision_{mean}") for mean in ("micro", "macro")}
    answers = {
        f"{WORDS[name][0]} ({how})": ("magiscore_f1_macro", name)
        for name, how in (("acc_short", "judged"), ("acc_synonym", "no judge"))
    }
    used = (
        "Precision: of the boxes that the reasoning uses, the share that is relevant. Recall: of the relevant boxes, the "
        "share that is used. Micro: summed over docs; macro: means over docs. "
    )
    focus = (
        "Does who looks at the right boxes also answer rightly (MAGIC paper, figure 4)? A model with the right answer and "
        "little focus found it elsewhere, or says little of where it looked. "
    )
    for of, axes, measures in (
        (("magic-precision-recall", "Which boxes are used", used, "magic"), ("recall", "precision"), means),
        (
            ("magic-focus-answers", "Region focus and answers", focus, "magic"),
            ("F1, macro", "share of right answers"),
            answers,
        ),
    ):
        panels = {
            title: [row for entry in shown for row in _region(entry, pair, axes, several)]
            for title, pair in measures.items()
        }
        yield from _scatter(of, panels, axes, shown, itertools.chain(*measures.values()))


def _region(entry: Entry, measures: tuple[str, str], axes: tuple[str, str], several: bool) -> Iterator[Row]:
    """Yield two numbers of a result as a point, named with the task where there are several."""
    x, y = (entry.whole.measures.get(name) for name in measures)
    if x is not None and y is not None and x.value is not None and y.value is not None:
        model, task = clean(entry.model), clean(entry.result.label)
        who = f"{model}, {task}"
        tip = f"{who}: {axes[0]} {wording.said(x)}, {axes[1]} {wording.said(y)}"
        yield _point(x, y, model, who if several else model, tip)
