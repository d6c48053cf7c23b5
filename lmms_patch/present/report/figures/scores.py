"""Scores on the metric's own scale: the whole image against the best cell, and with and without the image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_patch.ask.kinds import Words, by_medium
from lmms_patch.present.page import wording
from lmms_patch.present.report.data import Entry
from lmms_patch.present.report.figures import labels, lettering, plots
from lmms_patch.present.report.figures.canvas import INK, Mark, Sketch
from lmms_patch.present.report.figures.labels import Dot
from lmms_patch.present.report.figures.lettering import SMALL
from lmms_patch.present.report.points import counted, docs_each, listed, once
from lmms_patch.present.report.run_sheets import without_looking
from lmms_patch.present.sheets import levels_in
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import line

ROWS, PANELS = 20, 3
FEW, NAMED = 8, 40
"""Of more benchmarks than this in a panel names are on one line; of more than that none is named."""


def scales(entries: Iterable[Entry]) -> Iterator[tuple[str, list[Entry], str]]:
    """Yield the results whose metrics can share an axis: fractions, percent, or each metric by itself.

    Yields:
        The scale, the results, and what names of files end with where there are several scales.
    """
    out: dict[str, list[Entry]] = {}
    for entry in entries:
        ceiling = entry.whole.measures.get("ceiling")
        full = ceiling.value if ceiling is not None else None
        if full is not None and 0 < full <= 1.0001:
            name = "0 to 1"
        elif full is not None and 50 < full <= 100.01:
            name = "0 to 100"
        else:
            name = f"{entry.result.metric} of {entry.base}"
        out.setdefault(name, []).append(entry)
    yield from ((scale, some, f"-{k + 1}" * (len(out) > 1)) for k, (scale, some) in enumerate(out.items()))


def _parts(entries: Sequence[Entry]) -> Iterator[tuple[str, Sequence[Entry], str, str]]:
    """Yield the results by scale, in parts of a bearable size: scale, results, and what the name of the files and the title end with."""
    for scale, some, of_scale in scales(entries):
        yield from ((scale, part, f"{of_scale}{end}", told) for part, end, told in plots.parts(some, ROWS))


def _unit(scale: str) -> str:
    """Return what the axis of a scale says."""
    return f"scale {scale}" if scale in ("0 to 1", "0 to 100") else scale


# --- the whole image against the best cell --------------------------------------------------------


@dataclass(frozen=True)
class Both:
    """FIP and MPP of a result, over the same docs.

    Attributes:
        entry: the result.
        full: FIP, the score of the whole image.
        best: MPP, the score of each doc's best cell.
    """

    entry: Entry
    full: Estimate
    best: Estimate


def both(entry: Entry, n: int) -> Both | None:
    """Return FIP and MPP of a result; None where either is not defined.

    FIP is over the docs that MPP uses, where the run tells it.
    """
    best = entry.whole.measures.get(f"mpp{n}")
    full: Estimate | None = entry.whole.measures.get("fip")
    grid = entry.whole.grid(n)
    if full is not None and grid and grid.fip is not None and grid.fip != full.value:
        # This FIP is over fewer docs than the run's, and only its value is stored.
        full = Estimate(grid.fip, None, None, None, best.n if best else full.n, full.clusters, 0)
    if full is None or best is None or full.value is None or best.value is None:
        return None
    return Both(entry, full, best)


def whole_and_best(entries: Sequence[Entry]) -> Iterator[Sketch]:
    """Draw MPP over FIP, a panel per grid and a drawing per scale of the metrics."""
    for words, of_medium in by_medium((entry for entry in entries if entry.kind.index), lambda entry: entry.words):
        yield from _of_medium(of_medium, words, "fip-mpp-time" if words.instead else "fip-mpp")


def _of_medium(entries: Sequence[Entry], words: Words, name: str) -> Iterator[Sketch]:
    """Draw the results of images, or those of clips."""
    for scale, some, end in scales(entries):
        pairs = {
            n: [one for e in some if n in e.grids and (one := both(e, n))]
            for n in sorted({n for e in some for n in e.grids})
        }
        panels = {n: rows for n, rows in pairs.items() if rows}
        if panels:
            yield _whole_and_best(panels, scale, words, f"{name}{end}")


def _whole_and_best(grids: Mapping[int, Sequence[Both]], scale: str, words: Words, name: str) -> Sketch:
    """Return the drawing of MPP over FIP for a scale."""
    panels = dict(list(grids.items())[:PANELS])
    everything = [one for rows in panels.values() for one in rows]
    models = once(one.entry.model for one in everything)
    bases = once(one.entry.name for one in everything)
    rest = (
        f" Not drawn: {', '.join(words.size(n) for n in grids if n not in panels)}." if len(grids) > len(panels) else ""
    )
    hollow = " Hollow: refused by the gate." if any(one.entry.whole.gate == 0 for one in everything) else ""
    several = (
        " Each benchmark is named once, where its models are in the middle; faint lines join them."
        if len(models) > 1 and len(bases) > 1
        else ""
    )
    several = f" The only benchmark is {bases[0]}." if len(bases) == 1 else several
    unnamed = f" No names: there are more than {NAMED}." if len(bases) > NAMED else ""
    lines = levels_in(
        "Lines: {} intervals, bootstrap over docs. ", (number for one in everything for number in (one.full, one.best))
    )
    caption = words.say(
        "Score of each doc's best cell against the whole image, over the same docs. Above the dotted line a cell is enough (index below 0). "
    )
    caption += f"{lines}MPP also rises by luck: the best of {'n' if words.instead else 'n²'} tries.{hollow}{rest}{several}{unnamed}"
    caption += docs_each(one.full.n for one in everything) + lettering.of_several(models)
    above = sum((one.best.value or 0) > (one.full.value or 0) for one in everything)
    alt = (
        words.say("Best cell against whole image: ")
        + f"{above} of {counted(len(everything), 'point')} above the diagonal."
    )
    labels_of = tuple(once(one.entry.label for one in everything))
    title = words.say("Whole image and best cell")
    return Sketch(
        name, title, caption, alt, "runs", lambda across: _draw_panels(panels, scale, models, words, across), labels_of
    )


def _draw_panels(
    panels: Mapping[int, Sequence[Both]], scale: str, models: Sequence[str], words: Words, across: float
) -> Any:
    """Draw a panel per grid."""
    everything = [one for rows in panels.values() for one in rows]
    ends = plots.ends(number for one in everything for number in (one.full, one.best))
    low, high = min(ends), max(ends)
    edge = 0.08 * (high - low or high or 1.0)
    low, high = (max(0.0, low - edge) if low >= 0 else low - edge), high + edge
    axis = f"whole {words.medium} (FIP), {_unit(scale)}", f"best {words.part} (MPP), {_unit(scale)}"

    def draw(note: str) -> tuple[Any, list[str]]:
        sizes, marks = [words.size(n) for n in panels], plots.model_marks(models)
        drawing, made, _ = plots.panels(
            across, sizes, *axis, widest=3.6 if len(panels) == 1 else 3.05, marks=marks, note=note
        )
        unnamed = []
        for axes, (n, some) in zip(made, panels.items(), strict=True):
            axes.set(xlim=(low, high), ylim=(low, high))
            axes.plot([low, high], [low, high], color=INK, linewidth=0.8, linestyle=":", zorder=1)
            unnamed += labels.scatter(drawing, axes, _panel(axes, some, models, words.size(n)))
        return drawing, unnamed

    return labels.noted(draw)


def _panel(axes: Any, rows: Sequence[Both], models: Sequence[str], size: str) -> Iterator[Dot]:
    """Join the points of each benchmark, and yield all points of a grid, of which one of each benchmark is named."""
    bases = once(one.entry.name for one in rows)
    room = (1.1, SMALL, 2) if len(bases) <= FEW else (0.8, SMALL, 1)
    for base in bases:
        mine = [one for one in rows if one.entry.name == base]
        middle = _middle(mine)
        for one in mine:
            told = f"{base} with {one.entry.model}, {size}: FIP {wording.said(one.full)}, MPP {wording.said(one.best)}"
            told += f"; refused: {one.entry.whole.gate_word}" if one.entry.whole.gate == 0 else ""
            look = plots.model_look(models, one.entry.model, hollow=one.entry.whole.gate == 0)
            if one is not middle:
                xs, ys = (
                    [number.value for number in pair] for pair in ((one.full, middle.full), (one.best, middle.best))
                )
                axes.plot(xs, ys, color=INK, alpha=0.3, linewidth=0.5, zorder=1)
            is_named = one is middle and 1 < len(bases) <= NAMED
            yield Dot(one.full, one.best, look, told, lettering.fit(base, *room) if is_named else "", base)


def _middle(rows: Sequence[Both]) -> Both:
    """Return the point nearest to the mean of all points."""
    x = sum(one.full.value or 0.0 for one in rows) / len(rows)
    y = sum(one.best.value or 0.0 for one in rows) / len(rows)
    return min(rows, key=lambda one: ((one.full.value or 0.0) - x) ** 2 + ((one.best.value or 0.0) - y) ** 2)


# --- with and without the image -------------------------------------------------------------------


def without_image(entries: Sequence[Entry]) -> Iterator[Sketch]:
    """Draw chance, text only, blind and full image of each benchmark.

    One drawing per scale, split where there are many.
    """
    tst = {
        entry.base: entry.whole.measures["tst"]
        for entry in entries
        if entry.kind.folds and "tst" in entry.whole.measures
    }
    shown = without_looking(entries)
    alone = [e for e in entries if e.kind.folds and e.base not in {f.base for f in shown}]
    for scale, part, end, told in _parts([*shown, *alone]):
        yield _without(part, tst, scale, f"without-image{end}", told)


_LOOKS = (
    Mark("chance", "|", INK, size=8),
    plots.series(1, "text only (TsT)"),
    plots.series(2, "without the image (blind)", size=5.2),
    plots.series(0, "full image"),
)


def _without(entries: Sequence[Entry], tst: Mapping[str, Estimate], scale: str, name: str, part: str) -> Sketch:
    """Return the drawing of scores with and without the image, of some results."""
    known = [_four(entry, tst.get(entry.base) or entry.tst) for entry in entries]

    def draw(across: float) -> Any:
        drawing, axes = _draw_rows(entries, known, _LOOKS, across, f"score, {_unit(scale)}")
        right = max(axes.get_xlim()[1], {"0 to 1": 1.0, "0 to 100": 100.0}.get(scale, 0.0))
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]), right=right)
        return drawing

    lines = levels_in("Lines: {} intervals, over docs. ", (number for four in known for number in four))
    caption = (
        "What is scored without looking, beside the full image. TsT: a text-only model, cross-validated on the test set's own questions; blind: the "
        f"model itself without image. {lines}What is scored without the image, above chance, the text gives away."
    )
    caption += lettering.of_several(entry.model for entry in entries)
    told = listed(once(e.base for e in entries), 8)
    alt = f"Scores with and without the image of {counted(len(entries), 'result')}: {told}; numbers are in the tables."
    return Sketch(
        name, f"With and without the image{part}", caption, alt, "tst", draw, tuple(entry.label for entry in entries)
    )


def _four(entry: Entry, tst: Estimate | None) -> tuple[Estimate | None, ...]:
    """Return the scores of a result in the order of ``_LOOKS``."""
    full = None if entry.kind.folds else entry.whole.measures["score"]
    return entry.whole.measures.get("chance"), tst, entry.blind, full


def _draw_rows(
    entries: Sequence[Entry],
    known: Sequence[Sequence[Estimate | None]],
    looks: Sequence[Mark],
    across: float,
    axis: str,
) -> tuple[Any, Any]:
    """Draw a row for each result, with a mark for each of its numbers; return the figure and its axes.

    Args:
        entries: the results.
        known: of each, its numbers in the order of ``looks``.
        looks: the marks; those without any number are left out of the legend.
        across: inches.
        axis: what the horizontal axis says.
    """
    names = lettering.short(entry.model for entry in entries)
    rows = [f"{line(e.base)}\n{names[e.model]}" if len(names) > 1 else e.base for e in entries]
    shown = [
        look
        for look, *column in zip(looks, *known, strict=True)
        if any(e is not None and e.value is not None for e in column)
    ]
    whole = [f"{e.base} with {e.model}" for e in entries]
    drawing, (axes,), places = plots.row_panels(across, rows, whole, 0.34, axis, [""], shown)
    for place, entry, numbers in zip(places, entries, known, strict=True):
        _scores(axes, entry, numbers, looks, place)
    return drawing, axes


def _scores(axes: Any, entry: Entry, numbers: Sequence[Estimate | None], looks: Sequence[Mark], place: float) -> None:
    """Draw the numbers of a result, stacked."""
    points = [look for look in looks if look.shape != "|"]
    for look, estimate in zip(looks, numbers, strict=True):
        if estimate is None or estimate.value is None:
            continue
        told = f"{entry.base} with {entry.model}, {look.label}: {wording.said(estimate)}"
        if look.shape == "|":
            plots.span(axes, [estimate.value] * 2, [place - 0.13, place + 0.13], INK, told, linewidth=1.6)
            continue
        at = place + (points.index(look) - (len(points) - 1) / 2) * 0.09
        plots.interval(axes, estimate, at, look, told)


# --- with docs' own boxes hidden ------------------------------------------------------------------


_HIDDEN = {
    "drop_relevant": plots.series(0, "relevant boxes hidden"),
    "drop_adversarial": plots.series(1, "adversarial boxes hidden"),
}


def boxes_hidden(entries: Sequence[Entry]) -> Iterator[Sketch]:
    """Draw the fall of the score with each set of docs' boxes hidden.

    One drawing per scale, split where there are many.
    """
    hiding = [entry for entry in entries if entry.kind.hides and _HIDDEN.keys() <= entry.whole.measures.keys()]
    for scale, part, end, told in _parts(hiding):
        yield _boxes_hidden(part, scale, f"boxes-hidden{end}", told)


def _boxes_hidden(entries: Sequence[Entry], scale: str, name: str, part: str) -> Sketch:
    """Return the drawing of the drops of some results."""
    known = [[entry.whole.measures[drop] for drop in _HIDDEN] for entry in entries]

    def draw(across: float) -> Any:
        drawing, axes = _draw_rows(
            entries, known, tuple(_HIDDEN.values()), across, f"full image less that with boxes hidden, {_unit(scale)}"
        )
        axes.axvline(0, color=INK, linewidth=0.7, linestyle=":", zorder=1)
        return drawing

    lines = levels_in("Lines: {} intervals, over docs. ", (number for drops in known for number in drops))
    caption = (
        "How far the score falls with all relevant, or all adversarial, boxes of each doc hidden, each over the docs that have such boxes. "
        f"{lines}Where the evidence is used, the relevant boxes cost more.{lettering.of_several(entry.model for entry in entries)}"
    )
    told = listed(once(e.base for e in entries), 8)
    alt = f"Drops with boxes hidden of {counted(len(entries), 'result')}: {told}; numbers are in the tables."
    ids = tuple(entry.label for entry in entries)
    return Sketch(name, f"Relevant and adversarial boxes hidden{part}", caption, alt, "runs", draw, ids)
