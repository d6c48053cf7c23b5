"""Scores on the metric's own scale: the whole image against the best cell, and with and without the image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_patch.ask.spec import KINDS
from lmms_patch.present.report.data import Entry
from lmms_patch.present.report.figures import canvas
from lmms_patch.present.report.figures.heatmaps import Made, model_colours
from lmms_patch.present.report.points import counted, once
from lmms_patch.stats.resample import Estimate

ROWS, PANELS = 30, 3
NAMED = 14
"""More points than this are drawn without their benchmark's name."""


def scales(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return the results whose metrics can share an axis: fractions, percent, or each metric by itself."""
    out: dict[str, list[Entry]] = {}
    for entry in entries:
        ceiling = entry.whole.measures.get("ceiling")
        full = ceiling.value if ceiling is not None else None
        if full is not None and 0 < full <= 1.0001:
            name = "0 to 1"
        elif full is not None and 50 < full <= 100.01:
            name = "0 to 100"
        else:
            name = f"{entry.metric} of {entry.base}"
        out.setdefault(name, []).append(entry)
    return out


def _unit(scale: str) -> str:
    return "scale 0 to 1" if scale == "0 to 1" else "scale 0 to 100" if scale == "0 to 100" else canvas.name(scale)


# --- the whole image against the best cell --------------------------------------------------------


@dataclass(frozen=True)
class Both:
    """FIP and MPP of one result, over the same docs."""

    entry: Entry
    full: Estimate
    best: Estimate


def both(entry: Entry, n: int) -> Both | None:
    """Return FIP and MPP of a result; None where either is not defined. FIP is over the docs that MPP uses, where the run tells it."""
    best = entry.whole.measures.get(f"mpp{n}")
    full: Estimate | None = entry.whole.measures.get("fip")
    used = entry.whole.analysis.get("grids", {}).get(str(n), {}).get("fip")
    if full is not None and used is not None and used != full.value:
        full = Estimate(used, None, None, None, best.n if best else full.n, full.clusters, 0)  # of fewer docs: no interval is known
    if full is None or best is None or full.value is None or best.value is None:
        return None
    return Both(entry, full, best)


def whole_and_best(entries: Sequence[Entry]) -> Iterator[Made]:
    """Draw MPP over FIP, a panel per grid; one drawing per scale of the metrics."""
    shown = [entry for entry in entries if entry.index]
    for k, (scale, some) in enumerate(scales(shown).items()):
        pairs = {n: [one for e in some if n in e.grids and (one := both(e, n))] for n in sorted({n for e in some for n in e.grids})}
        panels = {n: rows for n, rows in pairs.items() if rows}
        if panels:
            yield _whole_and_best(panels, scale, f"fip-mpp-{k + 1}" if len(scales(shown)) > 1 else "fip-mpp")


def _whole_and_best(grids: Mapping[int, Sequence[Both]], scale: str, name: str) -> Made:
    panels = dict(list(grids.items())[:PANELS])
    drawing, axes = canvas.new(max(4.6, 3.7 * len(panels)), 4.3, 1, len(panels))
    everything = [one for rows in panels.values() for one in rows]
    models, bases = once(one.entry.model for one in everything), once(one.entry.base for one in everything)
    shapes = dict(zip(bases, canvas.MARKERS, strict=False)) if len(bases) <= len(canvas.MARKERS) else {}
    colour = model_colours(models)
    ends = [end for one in everything for e in (one.full, one.best) for end in (e.value, e.low, e.high) if end is not None]
    top = {"0 to 1": 1.0, "0 to 100": 100.0}.get(scale, max(ends))
    low, high = min(0.0, *ends), max(top, *ends)
    edge = 0.04 * (high - low or 1)
    for axis, (n, rows) in zip(axes.flat, panels.items(), strict=True):
        axis.plot([low, high], [low, high], color=canvas.INK, linewidth=0.8, linestyle=":")
        for one in rows:
            _cross(axis, one, colour(one.entry.model), shapes.get(one.entry.base, "o"))
            if not shapes and len(rows) <= NAMED:
                _name(axis, one, (one.full.value or 0) > (low + high) / 2)
        axis.set(xlim=(low - edge, high + edge), ylim=(low - edge, high + edge), xlabel=f"whole image (FIP), {_unit(scale)}", title=f"{n}×{n}")
        axis.set_aspect("equal")
    axes[0, 0].set_ylabel(f"best cell (MPP), {_unit(scale)}")
    _key(drawing, models, shapes)
    rest = f" Not drawn: {', '.join(f'{n}×{n}' for n in grids if n not in panels)}." if len(grids) > len(panels) else ""
    hollow = " Hollow: refused by the gate." if any(one.entry.whole.gate == 0 for one in everything) else ""
    caption = (
        "Score of each doc's best cell against the whole image, over the same docs. Above the dotted line a cell is enough (index below 0). "
        f"Lines: 95 % intervals, bootstrap over docs. MPP also rises by luck: the best of n² tries.{hollow}{rest}"
    )
    docs = [one.full.n for one in everything]
    caption += f" {min(docs):,} to {max(docs):,} docs each." if min(docs) < max(docs) else f" {docs[0]:,} docs each."
    above = sum((one.best.value or 0) > (one.full.value or 0) for one in everything)
    alt = f"Best cell against whole image: {above} of {counted(len(everything), 'point')} above the diagonal."
    return drawing, name, "Whole image and best cell", caption, alt, "runs", tuple(once(one.entry.id for one in everything))


def _cross(axes: Any, one: Both, colour: str, shape: str) -> None:
    x, y = one.full.value, one.best.value
    if one.full.low is not None and one.full.high is not None:
        axes.plot([one.full.low, one.full.high], [y, y], color=colour, linewidth=1)
    if one.best.low is not None and one.best.high is not None:
        axes.plot([x, x], [one.best.low, one.best.high], color=colour, linewidth=1)
    axes.plot([x], [y], shape, markersize=5.5, color=colour, markerfacecolor="none" if one.entry.whole.gate == 0 else colour)


def _name(axes: Any, one: Both, flip: bool) -> None:
    """Write the benchmark beside its point, on the side where there is room."""
    away = (-5, -9) if flip else (5, 5)
    where = (one.full.value, one.best.value)
    axes.annotate(canvas.name(one.entry.base, 22), where, xytext=away, textcoords="offset points", fontsize=7, ha="right" if flip else "left")


def _key(drawing: Any, models: Sequence[str], shapes: Mapping[str, str]) -> None:
    """Draw the legend: colours are models, shapes are benchmarks."""
    marks = []
    if 1 < len(models) <= len(canvas.COLOURS):
        colour = model_colours(models)
        marks += [canvas.mark(canvas.name(model), "", colour(model), linestyle="-", linewidth=4) for model in models]
    marks += [canvas.mark(canvas.name(base), shape, canvas.INK, markerfacecolor="none") for base, shape in shapes.items()]
    canvas.key(drawing, marks)


# --- with and without the image -------------------------------------------------------------------


def without_image(entries: Sequence[Entry]) -> Iterator[Made]:
    """Draw chance, text only, blind and full image of each benchmark; one drawing per scale, split where there are many."""
    tst = {entry.base: entry.whole.measures["tst"] for entry in entries if KINDS[entry.kind].folds and "tst" in entry.whole.measures}
    full: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        if KINDS[entry.kind].full:
            full.setdefault((entry.base, entry.model), entry)
    shown = [e for e in full.values() if e.blind is not None or e.tst is not None]
    alone = [e for e in entries if KINDS[e.kind].folds and e.base not in {f.base for f in shown}]
    groups = scales([*shown, *alone])
    for k, (scale, some) in enumerate(groups.items()):
        parts = [some[i : i + ROWS] for i in range(0, len(some), ROWS)]
        for j, part in enumerate(parts):
            end = f"-{k + 1}" * (len(groups) > 1) + f"-{j + 1}" * (len(parts) > 1)
            yield _without(part, tst, scale, f"without-image{end}")


_LOOKS = (
    ("chance", "|", canvas.INK),
    ("TsT, text only", "D", canvas.COLOURS[1]),
    ("blind", "s", canvas.COLOURS[4]),
    ("full image", "o", canvas.COLOURS[0]),
)


def _without(entries: Sequence[Entry], tst: Mapping[str, Estimate], scale: str, name: str) -> Made:
    drawing, axes = canvas.new(6.8, 1.4 + 0.42 * len(entries), 1, 1)
    one = axes[0, 0]
    for place, entry in enumerate(entries):
        alone = KINDS[entry.kind].folds
        scores = (entry.whole.measures.get("chance"), tst.get(entry.base) or entry.tst, entry.blind, None if alone else entry.whole.measures["score"])
        one.axhline(place, color=canvas.INK, alpha=0.12, linewidth=0.6, zorder=0)
        for k, ((_, marker, colour), estimate) in enumerate(zip(_LOOKS, scores, strict=True)):
            if estimate is not None and estimate.value is not None:
                at = place + (k - 1.5) * 0.13 if k else place
                if k and estimate.low is not None and estimate.high is not None:
                    one.plot([estimate.low, estimate.high], [at, at], color=colour, linewidth=1.3, solid_capstyle="butt")
                one.plot([estimate.value], [at], marker, color=colour, markersize=14 if not k else 5, markeredgewidth=1.6 if not k else 1)
    several = len({entry.model for entry in entries}) > 1
    labels = [canvas.name(e.base, 30) + (f"\n{canvas.name(e.model, 30)}" if several else "") for e in entries]
    one.set_yticks(range(len(entries)), labels)
    one.set_ylim(len(entries) - 0.5, -0.5)
    one.set_xlabel(f"score, {_unit(scale)}")
    one.set_xlim(left=min(0.0, one.get_xlim()[0]), right=max(one.get_xlim()[1], {"0 to 1": 1.02, "0 to 100": 102}.get(scale, 0)))
    canvas.key(drawing, [canvas.mark(label, m, c, markersize=9 if m == "|" else 5) for label, m, c in _LOOKS])
    caption = (
        "What is scored without looking, beside the full image. TsT: a text-only model, cross-validated on the test set's own questions; blind: the "
        "model itself without image. Lines: 95 % intervals, over docs. What is scored without the image, above chance, the text gives away."
    )
    names = ", ".join(once(entry.base for entry in entries)[:8])
    alt = f"Scores with and without the image of {counted(len(entries), 'result')}: {names}; numbers are in the tables."
    return drawing, name, "With and without the image", caption, alt, "tst", tuple(entry.id for entry in entries)


__all__ = ["both", "scales", "whole_and_best", "without_image"]
