"""Curves: the score with less detail or fewer frames, in other orders of the options, and the index over grids, from coarse to fine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_patch.ask.kinds import Kind, Words, by_medium
from lmms_patch.present.page import wording
from lmms_patch.present.report.data import Entry
from lmms_patch.present.report.figures import lettering, plots
from lmms_patch.present.report.figures.canvas import INK, Mark, Sketch
from lmms_patch.present.report.figures.scores import scales
from lmms_patch.present.report.points import counted, listed, model_names, once
from lmms_patch.present.sheets import levels_in
from lmms_patch.runs import catalogue, reading
from lmms_patch.stats.resample import Estimate

PANELS = 9
LEAST = 3
"""Fewer grids are no curve: the table and the other figures show them."""
FULL = "full"
_AXES = {"lowres": "size of the image", "frames": "frames"}
_TITLES = {"lowres": "How much detail is needed", "frames": "How many frames are needed"}


@dataclass(frozen=True)
class Curve:
    """The numbers of a result, from left to right.

    Attributes:
        entry: the result.
        numbers: by tick, in any order; only those that have a value.
        beside: by tick, what the full image scores over the same docs; empty where no full image is asked.
    """

    entry: Entry
    numbers: Mapping[str, Estimate]
    beside: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Chart:
    """The parts shared by all panels of a figure.

    Attributes:
        curves: all of them; those of one benchmark share a panel.
        ticks: from left to right.
        across: what the horizontal axis is called.
        up: what the vertical axis is called.
        signed: whether numbers are written with a sign, and 0 has a line.
        apart: how many of the first ticks are numbers by themselves, which no line joins.
    """

    curves: Sequence[Curve]
    ticks: Sequence[str]
    across: str
    up: str
    signed: bool
    apart: int = 0

    @property
    def bases(self) -> list[str]:
        """The benchmarks with a panel."""
        return once(curve.entry.base for curve in self.curves)[:PANELS]


def drawings(entries: Sequence[Entry]) -> Iterator[Sketch]:
    """Yield curves of scores, a figure per kind and scale, and curves of indices, a figure per medium."""
    for kind in once(entry.kind for entry in entries if entry.kind.curve):
        for scale, some, end in scales(entry for entry in entries if entry.kind == kind):
            yield from _of_scores(kind, some, scale, f"curve-{kind.name}{end}")
    for scale, some, end in scales(entry for entry in entries if entry.kind.turns):
        yield from _of_orders(some, scale, f"curve-orders{end}")
    for words, some in by_medium(
        (entry for entry in entries if entry.kind.index and len(entry.grids) >= LEAST), lambda entry: entry.words
    ):
        yield from _of_indices(some, "curve-time" if words.instead else "curve-grids")


def _of_scores(kind: Kind, entries: Sequence[Entry], scale: str, file: str) -> Iterator[Sketch]:
    """Yield the figure of a kind's scores over the reduction or the number of frames."""
    curves, sizes = [], set[int]()
    for entry in entries:
        measures = entry.whole.measures
        known = catalogue.family("{kind}{key}", measures, kind, entry.result.grids)
        sizes |= {int(n) for n in known}
        numbers = {FULL: measures["fip"]} if kind.full else {}
        beside: dict[str, float] = {}
        for n, one in known.items():
            tick = _tick(kind.words, int(n))
            numbers[tick] = one
            same = reading.full_of_the_same(measures, kind, str(n)) if kind.full else None
            beside |= {} if same is None else {tick: same}
        curves.append(Curve(entry, _defined(numbers), beside))
    ticks = [*([FULL] if kind.full else []), *(_tick(kind.words, n) for n in sorted(sizes))]
    what = "the score with less detail" if kind.words.sized else "the score on few frames"
    rule = (
        "1/k: each block of k × k pixels is averaged, and the image is shown at its own size. "
        "Dashed: the full image of the docs that have a score at this size; full: of all docs. "
        "Detail is shown to be needed where the interval of the drop (in the tables: dashed less solid, paired by doc) lies above 0"
        f"{'; below 0 for metrics that are better when lower' * any(not one.result.higher_is_better for one in entries)}. "
        if kind.words.sized
        else ""
    )
    yield from _sketch(
        _Chart(curves, ticks, _AXES[kind.name], f"score, {scale}", False, int(kind.full)),
        file,
        _TITLES[kind.name],
        what,
        rule,
    )


_ORDERS = {"rotate_once": "once", "rotate_mean": "mean", "rotate_every": "every"}
"""Name of a number -> its tick."""


def _of_orders(entries: Sequence[Entry], scale: str, file: str) -> Iterator[Sketch]:
    """Yield the figure of scores in every order of the options, and by the place of the gold."""
    curves = []
    for entry in entries:
        measures = entry.whole.measures
        places = catalogue.family("rotate_at{key}", measures, entry.kind, ())
        letters = {chr(ord("A") + int(place) - 1): one for place, one in places.items()}
        curves.append(
            Curve(
                entry,
                _defined({**{tick: measures[name] for name, tick in _ORDERS.items() if name in measures}, **letters}),
            )
        )
    at = sorted({tick for curve in curves for tick in curve.numbers} - set(_ORDERS.values()))
    rule = (
        "Once: as the doc has its options; mean: over all cyclic orders; every: right in all of them. "
        "Then the score where the gold stands at A, at B, and so on. Chance alone makes these differ; "
        f"a taste for places is shown where p is below {reading.UNEVEN}{_p_of_places(entries)}. "
    )
    chart = _Chart(
        curves, [*_ORDERS.values(), *at], "orders, and place of the gold", f"score, {scale}", False, len(_ORDERS)
    )
    yield from _sketch(chart, file, "In every order of the options", "the score in every order of the options", rule)


def _p_of_places(entries: Sequence[Entry]) -> str:
    """Return the p-values of "the place of the gold changes nothing", for the caption; empty where there are none."""
    models = model_names(entries)
    told = []
    for entry in entries:
        turned = entry.whole.analysis and entry.whole.analysis.turned
        placed = turned and turned.placed
        if placed and placed.p is not None:
            told.append(f"{entry.base}{f' with {entry.model}' * (len(models) > 1)} {reading.p_text(placed.p)}")
    return f" ({listed(told, 6)})" if told else ""


def _tick(words: Words, n: int) -> str:
    return words.size(n) if words.sized else str(n)


def _of_indices(entries: Sequence[Entry], file: str) -> Iterator[Sketch]:
    """Yield the figure of indices over the size of the grid."""
    curves, steady = [], []
    for entry in entries:
        read = [at for at in map(entry.index, entry.grids) if at.raw is not None and at.raw.value is not None]
        is_steady = bool(read) and all(at.steady is not None and at.steady.value is not None for at in read)
        steady += [entry.label] if is_steady else []
        chosen = {str(at.n): at.steady if is_steady else at.raw for at in read}
        curves.append(Curve(entry, _defined({size: one for size, one in chosen.items() if one is not None})))
    words = entries[0].words
    sizes = sorted({n for entry in entries for n in entry.grids})
    index = str(entries[0].kind.index) if len({entry.kind.index for entry in entries}) == 1 else "index"
    name, other = (reading.name(index, steady=which) for which in (False, True))
    luck = once(curve.entry.base for curve in curves if len(curve.numbers) > 1 and curve.entry.label not in steady)
    rule = f"{other[0].upper()}{other[1:]}. " if steady else ""
    if luck:
        rule = f"{name[0].upper()}{name[1:]}{f' for {listed(luck, 6)}' if steady else ''}, in which "
        rule += "the best of many cells also wins by luck, the more the finer the grid. "
        rule += f"{other[0].upper()}{other[1:]} for the others. " if steady else ""
    name = other if steady and not luck else name if not steady else "index"
    across = "segments" if words.instead else "n of the n × n grid"
    chart = _Chart(curves, list(map(str, sizes)), across, name, True)
    yield from _sketch(
        chart, file, words.say("The index from coarse to fine cells"), "the index over grids", words.say(rule)
    )


def _defined(numbers: Mapping[str, Estimate]) -> dict[str, Estimate]:
    return {tick: one for tick, one in numbers.items() if one.value is not None}


# --- drawing --------------------------------------------------------------------------------------


def _sketch(chart: _Chart, file: str, title: str, what: str, rule: str) -> Iterator[Sketch]:
    """Yield the figure of a chart; none where no curve has two points.

    Args:
        chart: what is drawn.
        file: name of the figure's files.
        title: for people.
        what: what is drawn over what, for the alternative text.
        rule: sentences of the caption on how it is read.
    """
    empty = [curve for curve in chart.curves if len(curve.numbers) < 2]
    chart = dataclasses.replace(chart, curves=[curve for curve in chart.curves if len(curve.numbers) > 1])
    if not chart.curves:
        return
    models = once(curve.entry.model for curve in chart.curves)
    bases = once(curve.entry.base for curve in chart.curves)
    caption = rule + levels_in(
        "Lines: {} intervals, over docs. ", (one for curve in chart.curves for one in curve.numbers.values())
    )
    if not any(name in file for name in ("time", "orders")):
        caption += f"Docs whose {'clip has fewer frames' if 'frames' in file else 'image is too small for a size'} are left out there."
    caption += f" Not drawn, no number may be read: {listed(once(c.entry.base for c in empty), 6)}." if empty else ""
    caption += f" Shown: {PANELS} of {len(bases)} benchmarks." if len(bases) > PANELS else ""
    caption += lettering.of_several(models)
    alt = f"{what[0].upper()}{what[1:]} of {counted(len(chart.curves), 'result')}: {listed(bases, 8)}; numbers are in the tables."
    drawn = [curve for curve in chart.curves if curve.entry.base in chart.bases]
    yield Sketch(
        file,
        title,
        caption.strip(),
        alt,
        "runs",
        lambda across: _draw(chart, models, across),
        tuple(c.entry.label for c in drawn),
    )


def _draw(chart: _Chart, models: Sequence[str], across: float) -> Any:
    """Draw a panel per benchmark, three side by side on two columns, or stacked on a single column."""
    drawing, made, _ = plots.panels(
        across, chart.bases, chart.across, chart.up, widest=3.4, body=1.5, marks=plots.model_marks(models)
    )
    for axes, base in zip(made, chart.bases, strict=True):
        axes.set(xlim=(-0.4, len(chart.ticks) - 0.6), ylim=_limits(chart))
        axes.set_xticks(range(len(chart.ticks)), chart.ticks)
        if chart.signed:
            axes.axhline(0, color=INK, linewidth=0.7, linestyle=":", zorder=1)
        _panel(axes, [curve for curve in chart.curves if curve.entry.base == base], chart, models)
    return drawing


def _limits(chart: _Chart) -> tuple[float, float]:
    """Return the ends of the vertical axis, shared by all panels and with 0 inside."""
    ends = plots.ends(number for curve in chart.curves for number in curve.numbers.values())
    ends += [value for curve in chart.curves for value in curve.beside.values()]
    low, high = min(0.0, *ends), max(0.0, *ends)
    edge = 0.06 * (high - low or 1.0)
    return (low - edge if low < 0 else low), high + edge


def _panel(axes: Any, curves: Sequence[Curve], chart: _Chart, models: Sequence[str]) -> None:
    """Draw a benchmark's curves, shifted sideways to keep points apart."""
    for k, curve in enumerate(curves):
        entry = curve.entry
        look = plots.model_look(models, entry.model, hollow=entry.whole.gate == 0)
        ink = look.colour
        by, who = (k - (len(curves) - 1) / 2) * 0.08, f"{entry.base} with {entry.model}"
        points = [(n + by, tick, curve.numbers[tick]) for n, tick in enumerate(chart.ticks) if tick in curve.numbers]
        apart = chart.ticks[: chart.apart]
        solid = [(x, one.value) for x, tick, one in points if tick not in apart]
        full = [(x, tick, curve.beside[tick]) for x, tick, _ in points if tick in curve.beside]
        for joined, line in ((solid, "-"), ([(x, value) for x, _, value in full], "--")):
            xs, ys = zip(*joined, strict=True) if joined else ((), ())
            axes.plot(xs, ys, line, color=ink, linewidth=0.9, alpha=0.6, zorder=2)
        for x, tick, value in full:
            told = f"{who}, full image of the docs at {tick}: {wording.number(value)}"
            plots.mark(axes, x, value, Mark("", "_", ink), told)
        for x, tick, one in points:
            plots.interval(axes, one, x, look, f"{who}, {tick}: {wording.said(one, chart.signed)}", up=True)
