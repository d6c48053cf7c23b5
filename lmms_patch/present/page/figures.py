"""The figures of a page: each chooses rows for a drawing of ``present.draw``, and says what is drawn."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lmms_patch import files
from lmms_patch.ask.kinds import OF_CLIPS, OF_IMAGES, Kind, Words
from lmms_patch.present import draw, palette
from lmms_patch.present.draw import Panels
from lmms_patch.present.page import tables
from lmms_patch.present.page.rows import Entry, Row
from lmms_patch.present.sheets import Sheet, ends_in_percent, levels_in, number, said
from lmms_patch.runs import catalogue, reading
from lmms_patch.stats.index import band, fragmentation
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import clean, latex, line

LANES = 30
"""The most indices that are drawn with their intervals; more become a table in colours."""
ROWS, MODELS = 120, 40
"""The most benchmarks and models in a drawing."""
ALONE = 8
"""How many results have a heat map each."""
PANELS = 11
"""The most panels of a drawing."""
GRIDS = 3
"""The fewest grids that make a curve."""
SCORING = 10
"""Docs with a cell that scores; from fewer, shares are one doc's accident."""
OPEN = 0.8
"""The width of a share's interval from which on its bar would say what nobody knows."""
LEAST, FARTHEST = 0.42, 1.1
"""The axis of the index reaches at least so far from 0, and at most."""
FULL = "full"
"""The first tick of a curve."""
BANDS = dict(zip(palette.NAMES, palette.BAND_LIGHT, strict=True))
_SHARE_NAMES = ("none", "¼", "half of even", "¾", "even", "1¼ ×", "1½ × even", "1¾ ×", "2 × or more")
LEVELS = dict(zip(_SHARE_NAMES, palette.SHARES, strict=True))
NEEDS = dict(zip(tables.SHARES, palette.NEEDS, strict=True))
"""What docs are solved by: the number's name, and what it is called."""


@dataclass(frozen=True)
class Drawing:
    """A figure before drawing.

    Attributes:
        name: of its files.
        title, caption: for people.
        section: of the page.
        tips: what its marks tell: names and numbers.
        chart: draws it.
        entry: label of the one result that it is about; "" of several.
    """

    name: str
    title: str
    caption: str
    section: str
    tips: Sequence[str]
    chart: Callable[[], Any]
    entry: str = ""


@dataclass(frozen=True)
class Figure:
    """A drawing of the page.

    Attributes:
        name: of its files ``figures/<name>.svg``, ``.pdf``, ``.png``, ``.tex``.
        title, caption, section, entry: as of ``Drawing``.
        alt: what it shows, in words, for who cannot see it.
        svg: with what its marks tell as titles; ``safe.drawing`` makes it ready for the page.
        told: what its marks tell, for readers without a mouse.
    """

    name: str
    title: str
    caption: str
    section: str
    entry: str
    alt: str
    svg: str
    told: tuple[str, ...]


def write(one: Drawing, folder: Path) -> Figure:
    """Write a figure as SVG, PDF and PNG, with LaTeX for a paper; return what the page shows."""
    title, caption, tips = line(one.title), line(one.caption), tuple(dict.fromkeys(map(line, one.tips)))
    svg = draw.write(one.chart(), folder / one.name)
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
    return Figure(one.name, title, caption, one.section, one.entry, alt, svg, tips)


def drawings(entries: Sequence[Entry], rows: Sequence[Row], sheets: Mapping[str, Sequence[Sheet]]) -> Iterator[Drawing]:
    """Yield every figure, not drawn yet: of images, then of clips."""
    overall = {sheet.name: sheet for sheet in sheets.get("models", ())}
    for way, words, end in (("index", OF_IMAGES, ""), ("trci", OF_CLIPS, "-time")):
        first = tables.first_rows(rows, way)
        need = list(composition(first, words, end))
        some = [entry for entry in entries if entry.kind.needs_video == bool(end)]
        yield from need
        yield from indices(first, words, end, bool(need))
        if sheet := overall.get(f"overall{end.replace('-', '_')}"):
            yield from models(sheet, words)
        yield from full_and_best(first, words, end)
        yield from cells(some, end)
        yield from curves(some, words, end)
        yield from without_image(some, end)
    yield from regions(entries)


# --- rows of drawings -----------------------------------------------------------------------------


def _row(
    row: str, lane: str, estimate: Estimate | None, who: str, signed: bool = False, note: str = ""
) -> dict[str, Any]:
    """Return a number with its interval and a note as a row of ``draw.intervals``."""
    made = {"row": row, "lane": lane, "solid": 1}
    if estimate is None or estimate.value is None:
        told = f"N/A: {note}"
        none = dict.fromkeys(("value", "low", "high"))
        return {**made, **none, "label": told, "shade": 0.65, "tip": f"{who}: {told}"}
    beyond = ("" if abs(estimate.value) <= FARTHEST else "▸ " if estimate.value > 0 else "◂ ") * signed
    label, tip = (", ".join(filter(None, [said(estimate, signed, digits), note])) for digits in (2, 3))
    return {**made, **_ends_of(estimate), "label": beyond + label, "shade": 1, "tip": f"{who}: {tip}"}


def _defined(estimate: Estimate | None) -> Estimate | None:
    return None if estimate is None or estimate.value is None else estimate


def _ends_of(estimate: Estimate) -> dict[str, Any]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _tips(*panels: Iterable[Mapping[str, Any]]) -> list[str]:
    return [row["tip"] for rows in panels for row in rows]


def _axis(rows: Iterable[Mapping[str, Any]], *keys: str) -> tuple[float, float]:
    """Return the ends of an axis with room for 0 and some columns."""
    known = [0.0, *(row[key] for row in rows for key in keys if row[key] is not None)]
    room = 0.06 * (max(known) - min(known) or 1.0)
    return min(known) - room * (min(known) < 0), max(known) + room


def _names(entries: Iterable[Entry]) -> dict[str, str]:
    """Return what the row of each result is called, by label: benchmark (task, where a model has several), and the model below."""
    some = {entry.label: entry for entry in entries}
    several, often = len({entry.model for entry in some.values()}) > 1, Counter(map(_who, some.values()))
    names = {label: clean(e.result.base if often[_who(e)] == 1 else e.result.label) for label, e in some.items()}
    return {label: f"{names[label]}\n{clean(e.model)}" if several else names[label] for label, e in some.items()}


def _by_scale(entries: Iterable[Entry]) -> Iterator[tuple[str, list[Entry], str]]:
    """Yield the results whose metrics can share an axis, the scale, and what names of files end with where there are several."""
    out: dict[str, list[Entry]] = {}
    for entry in entries:
        ceiling = entry.result.measures.get("ceiling")
        full = (ceiling.value if ceiling else None) or 0
        own = f"{clean(entry.result.metric)} of {clean(entry.result.base)}"
        out.setdefault("0 to 1" if 0 < full <= 1.0001 else "0 to 100" if 50 < full <= 100.01 else own, []).append(entry)
    yield from ((scale, some, f"-{k + 1}" * (len(out) > 1)) for k, (scale, some) in enumerate(out.items()))


def _who(entry: Entry) -> str:
    return f"{clean(entry.result.base)} with {clean(entry.model)}"


# --- the composition and the index ----------------------------------------------------------------


def composition(rows: Sequence[Row], words: Words, end: str) -> Iterator[Drawing]:
    """Yield what docs are solved by, at the finest grid of each result: text, a cell, the whole image, or nothing."""
    finest = {(row.benchmark, row.model): row for row in sorted(rows, key=lambda row: row.n or 0) if _shares(row)}
    told = [
        row for row in finest.values() if all((one.high or 0) - (one.low or 0) < OPEN for one in _shares(row).values())
    ]
    shown = told[: ROWS // 2]
    names = _names(row.entry for row in shown if row.entry)
    marks = []
    for row in shown:
        start = 0.0
        for key, share in _shares(row).items():
            part, stop = words.say(NEEDS[key]), start + 100 * (share.value or 0.0)
            text = f"{stop - start:.0f} %"
            tip = f"{clean(row.benchmark)} with {clean(row.model)}, {row.size}, {part}: {text}{ends_in_percent(share)} of {share.n:,} docs"
            place = {"start": start, "end": stop, "middle": (start + stop) / 2, "text": text * (stop - start > 8)}
            marks.append({"row": names[row.entry.label if row.entry else ""], "part": part, "tip": tip, **place})
            start = stop
    if marks:
        caption = words.say(
            "Shares of the docs, luck removed by asking again. Text: answered without the image; one cell: answered on some cell "
            "alone; whole image: on the full image only; unsolved: not answered."
        )
        if len(finest) > len(shown):
            open_ones = f", of {len(finest) - len(told)} a share may be nearly anything" * (len(finest) > len(told))
            caption += f" Not drawn: {len(finest) - len(shown)} of {len(finest)} results{open_ones}."
        colours = {words.say(NEEDS[key]): palette.NEEDS[NEEDS[key]][0] for key in tables.SHARES}
        chart = partial(draw.bars, marks, colours, "% of the docs")
        yield Drawing(f"composition{end}", words.say("What the docs need"), caption, "headline", _tips(marks), chart)


def _shares(row: Row) -> dict[str, Estimate]:
    """Return the four shares of a row; empty where they are not all known."""
    known = {key: one for key in tables.SHARES if (one := _defined(row.numbers.get(key)))}
    return known if len(known) == len(tables.SHARES) else {}


def indices(rows: Sequence[Row], words: Words, end: str, composed: bool) -> Iterator[Drawing]:
    """Yield the index of each benchmark over the bands, and benchmarks by models in colours, a figure for each grid.

    Where no composition is drawn, the first opens the page.
    """
    section = "results" if composed else "headline"
    for n in tables.grids(rows)[::-1]:
        some, note = _ordered([row for row in rows if row.n == n])
        several = min(len({row.benchmark for row in some}), len({row.model for row in some})) > 1
        yield (_map if several and len(some) > LANES else _intervals)(some, n, words, f"index{n}{end}", note, section)
        section = "results"


def _ordered(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Return rows from the most local benchmark to the most global, those without an index last; and what is not drawn."""

    def middle(name: str) -> float:
        known = [row.index.value or 0.0 for row in rows if row.benchmark == name and row.index is not None]
        return float(np.mean(known)) if known else np.inf

    names = sorted(dict.fromkeys(row.benchmark for row in rows), key=middle)[:ROWS]
    some = list(dict.fromkeys(row.model for row in rows))[:MODELS]
    at = {(row.benchmark, row.model): row for row in rows}
    kept = [at[key] for key in itertools.product(names, some) if key in at]
    left = len(rows) - len(kept)
    return kept, f" Not drawn: {left} of {len(rows)} indices; all are in the tables." * (left > 0)


def _index_row(row: Row) -> dict[str, Any]:
    """Return an index as a row of a drawing."""
    name = reading.name("trci" if row.kind.needs_video else "rci", steady=row.is_steady)
    raw = row.numbers.get("index")
    contradicted = row.is_steady and reading.contradicted(raw)
    who = f"{clean(row.benchmark)}, {clean(row.model)}, {row.size}{f', {name}' * (row.index is not None)}"
    note = "RCI contradicted" * contradicted if row.index is not None else row.state
    made = _row(clean(row.benchmark), clean(row.model), row.index, who, True, note) | {"solid": int(row.is_steady)}
    return made | {"tip": f"{who}: N/A, {raw.reason}"} if row.index is None and raw and raw.reason else made


def _intervals(rows: Sequence[Row], n: int, words: Words, name: str, note: str, section: str) -> Drawing:
    """Return the index to go by with its interval over the bands, a row for each benchmark and a lane for each model."""
    marks = [_index_row(row) for row in rows]
    values = [mark[key] for mark in marks for key in ("value", "low", "high") if mark[key] is not None]
    ends = max(-FARTHEST, min(-LEAST, *values, 0)), min(FARTHEST, max(LEAST, *values, 0) + 0.04)
    known = [row.index for row in rows if row.index is not None]
    raw, steady = (reading.name("trci" if words.instead else "rci", steady=which) for which in (False, True))
    kinds = {row.is_steady for row in rows if row.index is not None}
    share = words.say("(of the docs answered with their image, the share that needs all of it)")
    caption = (
        f"{words.size(n)}, over the bands of the RCI paper, 3.2. {f'Filled: {steady} {share}. ' * (True in kinds)}"
    )
    caption += f"Hollow: {raw} = 1 − MPP/FIP, not asked again. " * (False in kinds)
    caption += levels_in(
        "Lines: {} interval, bootstrap over docs.", known, "Published numbers, without intervals." * bool(known)
    )
    caption += f" N/A ({len(rows) - len(known)}): refused by the gate, or not defined." * (len(rows) > len(known))
    caption += f" Mind: {fragmentation(n)}." * bool(fragmentation(n) and not words.instead) + note
    axis = steady if kinds == {True} else raw if kinds == {False} else "index"
    chart = partial(draw.intervals, marks, f"{axis}, {words.size(n)}", ends, True)
    title = words.say("How much of what is answered needs the whole image")
    return Drawing(name, f"{title}, {words.size(n)}", caption, section, _tips(marks), chart)


def _map(rows: Sequence[Row], n: int, words: Words, name: str, note: str, section: str) -> Drawing:
    """Return benchmarks by models in the colours of the bands."""
    marks = []
    for row in rows:
        mark, index = _index_row(row), row.index
        text = "N/A" if index is None else said(index.value, True, 2)
        text = f"({text})" if reading.contradicted(index) else text
        level = None if index is None or index.value is None else band(index.value)
        marks.append(_cell(clean(row.model), clean(row.benchmark), level, text, mark["tip"]))
    caption = (
        f"{words.size(n)}, steady where docs were asked again, in the colours of the bands of the RCI paper, 3.2. "
        f"N/A: refused by the gate, or not defined. In brackets: contradicted. Intervals are in the tables.{note}"
    )
    return Drawing(
        name,
        f"The index in colours, {words.size(n)}",
        caption,
        section,
        _tips(marks),
        partial(draw.heat, {"": marks}, BANDS, (48, 24)),
    )


def _cell(
    x: str, row: str, level: str | None, text: str, tip: str, ink: str = palette.INK, edge: float = 0
) -> dict[str, Any]:
    return {"x": x, "row": row, "level": level, "text": text, "tip": tip, "ink": ink, "edge": edge}


def models(sheet: Sheet, words: Words) -> Iterator[Drawing]:
    """Yield how far the index of each model is from 0, over the shared benchmarks (PCRI paper, figures 2 to 4)."""
    rows = []
    for of in sheet.rows:
        if isinstance(size := of["size"], Estimate):
            name, grid = clean(str(of["model"])), words.size(str(of["n"]))
            rows.append(_row(name, grid, size, f"{name}, mean |index|, {grid}"))
    if len({row["row"] for row in rows}) > 1:
        chart = partial(draw.intervals, rows, "mean |index| over benchmarks", _axis(rows, "value", "low", "high"))
        yield Drawing(f"{sheet.name}-models", "Models by |index|", sheet.note, "models", _tips(rows), chart)


# --- scores, and where they come from -------------------------------------------------------------


def full_and_best(rows: Sequence[Row], words: Words, end: str) -> Iterator[Drawing]:
    """Yield MPP over FIP, a panel for each grid and a figure for each scale of the metrics."""
    for scale, some, more in _by_scale({row.entry.label: row.entry for row in rows if row.entry}.values()):
        labels = {entry.label for entry in some}
        panels: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            full, best = _defined(row.numbers.get("score")), _defined(row.numbers.get("mpp"))
            if row.entry and row.entry.label in labels and full and best:
                tip = f"{clean(row.benchmark)} with {clean(row.model)}, {row.size}: "
                tip += f"FIP {said(full)}, MPP {said(best)}{f'; refused: {row.state}' * row.refused}"
                panels.setdefault(row.size, []).append(
                    _point(full, best, clean(row.benchmark), clean(row.model), tip, not row.refused)
                )
        caption = words.say(
            "Score of each doc's best cell against the whole image. Above the dotted line a cell is enough (index below 0). "
            "MPP also rises by luck: the best of many tries. Hollow: refused by the gate."
        )
        of = f"fip-mpp{more}{end}", words.say("Whole image and best cell"), caption, "results"
        yield from _scatter(
            of, panels, (f"whole {words.medium} (FIP), {scale}", f"best {words.part} (MPP), {scale}"), True
        )


def _point(x: Estimate, y: Estimate, name: str, lane: str, tip: str, solid: bool = True) -> dict[str, Any]:
    ends = {"xlow": x.low, "xhigh": x.high, "ylow": y.low, "yhigh": y.high}
    return {"x": x.value, "y": y.value, **ends, "name": name, "lane": lane, "tip": tip, "solid": int(solid)}


def _scatter(
    of: tuple[str, str, str, str], panels: Panels, axes: tuple[str, str], diagonal: bool = False
) -> Iterator[Drawing]:
    """Yield points with two numbers each; none where there are none."""
    rows = [row for part in panels.values() for row in part]
    if rows:
        name, title, caption, section = of
        ends = _axis(rows, "x", "xlow", "xhigh", "y", "ylow", "yhigh")
        shown = {title: part for title, part in panels.items() if part}
        chart = partial(draw.scatter, shown, *axes, (ends[0] - 0.1 * ends[1], 1.05 * ends[1]), diagonal)
        yield Drawing(name, title, f"{caption} Lines: intervals.", section, _tips(rows), chart)


def cells(entries: Sequence[Entry], end: str) -> Iterator[Drawing]:
    """Yield where in the image the score comes from: of each result, and of all (RCI paper, figures 3, 4, 6 to 8)."""
    caption = (
        "Percent of the score that each cell earns in isolation. Colours: share over even, from none (green) over even (white) to twice "
        "even or more (purple). Outlined: Holm-corrected p < 0.05 against random turns of each doc's cells."
    )
    found = [
        (entry, n, grid.shares)
        for entry in entries
        for n in entry.result.indexed
        if (grid := entry.result.grid(n)) and grid.shares and grid.shares.score is not None
    ]
    for entry in list(dict.fromkeys(entry for entry, *_ in found))[:ALONE]:
        panels = {}
        for n, shares in ((n, shares) for one, n, shares in found if one is entry):
            p = "not tested" if shares.p is None else f"p = {reading.p_text(shares.p)}"
            title = f"{entry.words.size(n)}, {shares.docs} docs\neven: {p}"
            panels[title] = _cells(shares.score, n, entry.kind, _who(entry), shares.p_cells)
        who = f"Where the score comes from: {_who(entry)}{f' ({entry.gate})' * entry.refused}"
        chart, tips = partial(draw.heat, panels, LEVELS), _tips(*panels.values())
        yield Drawing(f"cells-{entry.label}", who, entry.words.say(caption), "details", tips, chart, entry.label)
    for n in sorted({n for _, n, _ in found}):
        shown = [
            (entry, shares)
            for entry, one, shares in found
            if one == n and not entry.refused and _scoring(entry, n) >= SCORING
        ]
        if len(shown) > 1:
            kind, names = shown[0][0].kind, _names(entry for entry, _ in shown)
            mean = f"mean over {len(shown)} results"
            panels = {mean: _cells(np.mean([np.asarray(shares.score) for _, shares in shown], axis=0), n, kind, mean)}
            for entry, shares in shown[:PANELS]:
                panels[names[entry.label]] = _cells(shares.score, n, kind, _who(entry), shares.p_cells)
            told = (
                f"{caption} Without results that the gate refuses, or few scores."
                + f" Not drawn: {len(shown) - PANELS} of {len(shown)} results." * (len(shown) > PANELS)
            )
            title = f"Where the score comes from, {kind.words.size(n)}"
            yield Drawing(
                f"cells{n}-all{end}",
                title,
                kind.words.say(told),
                "benchmarks",
                _tips(*panels.values()),
                partial(draw.heat, panels, LEVELS),
            )


def _scoring(entry: Entry, n: int) -> float:
    """Estimate the number of docs with a scoring cell, MPP / ceiling × docs; enough where nothing is known."""
    best, ceiling = entry.result.measures.get(f"mpp{n}"), entry.result.measures.get("ceiling")
    return (
        best.value / ceiling.value * best.n
        if best and ceiling and best.value is not None and ceiling.value
        else SCORING
    )


def _cells(shares: Any, n: int, kind: Kind, who: str, p: Any = None) -> list[dict[str, Any]]:
    """Return the shares of a grid's cells as rows of a heat map; outlined where p is below 0.05."""
    rows = []
    for i, share in enumerate(shares):
        down, across = divmod(i, kind.shape(n)[1])
        where = f"segment {i + 1}" if kind.needs_video else f"row {down + 1}, column {across + 1}"
        level, text = palette.share_level(share, len(shares)), number(100 * float(share), digits=1)
        tip = f"{who}, {kind.words.size(n)}, {where}: {text} % (even: {number(100 / len(shares), digits=1)} %)"
        tip += "" if p is None else f", p = {reading.p_text(p[i])}"
        ink, edge = palette.on(palette.SHARES[level]), 2.5 * bool(p is not None and p[i] < 0.05)
        rows.append(
            _cell(
                str(across + 1),
                "" if kind.needs_video else str(down + 1),
                _SHARE_NAMES[level],
                text * (n <= 6),
                tip,
                ink,
                edge,
            )
        )
    return rows


def without_image(entries: Sequence[Entry], end: str) -> Iterator[Drawing]:
    """Yield chance, text only and blind scores beside the full image, a figure for each scale."""
    every = tables.without_looking(entries)
    every += [
        entry for entry in entries if entry.kind.folds and entry.result.base not in {one.result.base for one in every}
    ]
    names = _names(every)
    for scale, some, more in _by_scale(every):
        rows = []
        for entry in some:
            get = entry.result.measures.get
            full = {"full image": None if entry.kind.folds else get("score"), "without the image (blind)": entry.blind}
            for lane, one in {**full, "text only (TsT)": entry.tst or get("tst"), "chance": get("chance")}.items():
                if _defined(one):
                    rows.append(_row(names[entry.label], lane, one, f"{_who(entry)}, {lane}"))
        caption = (
            "TsT: a text-only model, cross-validated on the test set's own questions; blind: the model itself without image. What is "
            "scored without the image, above chance, the text gives away. Lines: intervals, over docs."
        )
        chart = partial(draw.intervals, rows, f"score, {scale}", _axis(rows, "value", "low", "high"))
        yield Drawing(f"without-image{more}{end}", "With and without the image", caption, "text", _tips(rows), chart)


# --- curves and regions ---------------------------------------------------------------------------


def curves(entries: Sequence[Entry], words: Words, end: str) -> Iterator[Drawing]:
    """Yield scores with less detail or fewer frames, and indices over grids."""
    for kind in dict.fromkeys(entry.kind for entry in entries if entry.kind.curve):
        sized = bool(kind.words.sized)
        caption = "1/k: each block of k × k pixels is averaged, and the image is shown at its own size. " * sized
        caption += (
            f"Docs whose {'image is too small for a size' if sized else 'clip has fewer frames'} are left out there"
        )
        caption += "; beside it the full image of the same docs." if kind.full else "."
        title = f"How {'much detail is' if sized else 'many frames are'} needed"
        for scale, some, more in _by_scale(entry for entry in entries if entry.kind == kind):
            of = f"curve-{kind.name}{more}", title, "size of the image" if sized else "frames", f"score, {scale}"
            yield from _curve([curve for entry in some for curve in _reduced(entry)], of, caption)
    known = [(entry, clean(entry.model), _over_grids(entry)) for entry in entries if len(entry.result.indexed) >= GRIDS]
    caption = words.say(
        "Steady where docs were asked again at each grid; else of one pass, in which the best of many cells also wins by luck, "
        "the more the finer the grid."
    )
    axes = "segments" if words.instead else "n of the n × n grid", "index"
    yield from _curve(
        known, (f"curve-grids{end}", words.say("The index from coarse to fine cells"), *axes), caption, True
    )


def _reduced(entry: Entry) -> Iterator[tuple[Entry, str, dict[str, Estimate]]]:
    """Yield scores by reduction or number of frames, and the full image over the docs of each."""
    kind, measures, model = entry.kind, entry.result.measures, clean(entry.model)
    family = {n: measures[name] for n in kind.points(entry.result.grids) if (name := f"{kind.name}{n}") in measures}
    ticks = {n: kind.words.size(int(n)) if kind.words.sized else str(n) for n in sorted(family, key=int)}
    yield (
        entry,
        model,
        {**({FULL: measures["score"]} if kind.full else {}), **{tick: family[n] for n, tick in ticks.items()}},
    )
    if kind.full:
        same = {tick: reading.full_of_the_same(measures, kind, str(n)) for n, tick in ticks.items()}
        yield (
            entry,
            f"{model}, full image of the same docs",
            {tick: catalogue.without_interval(value, 0) for tick, value in same.items()},
        )


def _over_grids(entry: Entry) -> dict[str, Estimate]:
    """Return the index at each grid: steady where known at all of them."""
    raw, steady = (
        {
            str(n): one
            for n in entry.result.indexed
            if (one := _defined(entry.result.measures.get(f"{entry.kind.index}{n}{more}")))
        }
        for more in ("", "_steady")
    )
    return steady if steady.keys() >= raw.keys() else raw


def _curve(
    known: Sequence[tuple[Entry, str, Mapping[str, Estimate]]],
    words: tuple[str, str, str, str],
    caption: str,
    signed: bool = False,
) -> Iterator[Drawing]:
    """Yield a figure with a panel for each benchmark; none where no curve has two points."""
    name, title, x, y = words
    often = Counter((entry.result.base, lane) for entry, lane, _ in known)
    ticks = sorted({tick for *_, some in known for tick in some}, key=lambda tick: (tick != FULL, len(tick), tick))
    panels: dict[str, list[dict[str, Any]]] = {clean(entry.result.base): [] for entry, *_ in known}
    several = [(entry, lane, some) for entry, lane, some in known if sum(map(bool, map(_defined, some.values()))) > 1]
    lanes = list(dict.fromkeys(lane for _, lane, _ in several))
    for entry, lane, some in several:
        base, by = clean(entry.result.base), (lanes.index(lane) - (len(lanes) - 1) / 2) * min(0.06, 0.7 / len(lanes))
        called = lane if often[entry.result.base, lane] == 1 else f"{lane}, {clean(entry.result.label)}"
        for tick, one in some.items():
            if _defined(one):
                looks = {"lane": called, "joined": None if tick == FULL else called, "solid": int(not entry.refused)}
                tip = f"{base} with {called}, {tick}: {said(one, signed)}"
                panels[base].append({"x": ticks.index(tick) + by, **_ends_of(one), **looks, "tip": tip})
    if drawn := {base: rows for base, rows in panels.items() if rows}:
        empty = ", ".join(base for base in panels if base not in drawn)
        told = f"{caption} Lines: intervals, over docs.{f' Not drawn, no number may be read: {empty}.' * bool(empty)}"
        axis = _axis(itertools.chain(*drawn.values()), "value", "low", "high")
        chart = partial(draw.curves, drawn, ticks, x, y, axis)
        yield Drawing(name, title, told, "results", _tips(*drawn.values()), chart)


def regions(entries: Sequence[Entry]) -> Iterator[Drawing]:
    """Yield whether models that look at the relevant boxes answer well (MAGIC paper, figure 4)."""
    panels: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        for name in ("acc_short", "acc_synonym") if entry.result.magic and entry.result.magic.variant == "all" else ():
            x, y = (_defined(entry.result.measures.get(key)) for key in ("magiscore_f1_macro", name))
            if x and y:
                who = f"{clean(entry.model)}, {clean(entry.result.label)}"
                tip = f"{who}: F1, macro {said(x)}, share of right answers {said(y)}"
                panels.setdefault(tables.MAGIC[name][0], []).append(_point(x, y, clean(entry.model), who, tip))
    caption = "A model with the right answer and little focus found it elsewhere, or says little of where it looked."
    yield from _scatter(
        ("magic", "Region focus and answers", caption, "magic"), panels, ("F1, macro", "share of right answers")
    )
