"""MAGIC tasks: which boxes models use (precision against recall), and whether those who look well answer well (MAGIC paper, figure 4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from lmms_patch.present import palette
from lmms_patch.present.page import wording
from lmms_patch.present.report.data import Entry
from lmms_patch.present.report.figures import labels, lettering, plots
from lmms_patch.present.report.figures.canvas import INK, Mark, Sketch
from lmms_patch.present.report.figures.labels import Dot
from lmms_patch.present.report.figures.lettering import SMALL
from lmms_patch.present.report.magic_words import WORDS
from lmms_patch.present.report.points import counted, listed, model_names, once
from lmms_patch.present.sheets import levels_in
from lmms_patch.stats.resample import Estimate

F1 = (0.2, 0.4, 0.6, 0.8)
"""Where the contours are drawn."""
NAMED = 24
"""Of more models than this in a panel none is named."""
ANSWERS = {"acc_short": "judged", "acc_synonym": "no judge"}
_EDGE = 0.04
_TICKS = (0, 0.25, 0.5, 0.75, 1)


def drawings(entries: Sequence[Entry]) -> Iterator[Sketch]:
    """Yield both drawings for tasks with relevant and adversarial boxes."""
    shown = [entry for entry in entries if entry.result.magic and entry.result.magic.variant == "all"]
    if any(_both(entry, mean) for entry in shown for mean in ("micro", "macro")):
        yield _precision_recall(shown)
    if any(_answered(entry, metric) for entry in shown for metric in ANSWERS):
        yield _focus_and_answers(shown)


def _known(entry: Entry, *names: str) -> list[Estimate] | None:
    """Return some numbers of a result; None unless all are defined."""
    given = [entry.whole.measures.get(name) for name in names]
    known = [one for one in given if one is not None and one.value is not None]
    return known if len(known) == len(names) else None


def _both(entry: Entry, mean: str) -> list[Estimate] | None:
    """Return recall and precision; None unless both are defined."""
    return _known(entry, f"magiscore_recall_{mean}", f"magiscore_precision_{mean}")


def _answered(entry: Entry, metric: str) -> list[Estimate] | None:
    """Return F1 and the share of right answers; None unless both are defined."""
    return _known(entry, "magiscore_f1_macro", metric)


def _lines(panels: Iterable[Iterable[tuple[Entry, list[Estimate]]]]) -> str:
    """Return what the lines through the points of some panels are, as a sentence; empty where there are none."""
    numbers = (number for points in panels for _, known in points for number in known)
    return levels_in("Lines: {} intervals, from a bootstrap over images.", numbers)


# --- precision against recall ---------------------------------------------------------------------


def _precision_recall(entries: Sequence[Entry]) -> Sketch:
    """Return the drawing of precision against recall."""
    panels = {mean: [(entry, both) for entry in entries if (both := _both(entry, mean))] for mean in ("micro", "macro")}

    caption = (
        "Precision: of the boxes that the reasoning uses, the share that is relevant. Recall: of the relevant boxes, the share that is used. Micro: "
        "summed over docs, with contours of F1; macro: means over docs, where F1 is a mean of its own and no contour. "
        f"{_lines(panels.values())}{_missing(entries)}{_keyed(entries)}"
    )
    told = [f"{entry.model} {y.value:.2f} at {x.value:.2f}" for entry, (x, y) in next(iter(panels.values()))]
    alt = f"Precision against recall of {counted(len(model_names(entries)), 'model')}; micro: {listed(told, 6) or 'not defined'}."
    words = "magic-precision-recall", "Which boxes are used", caption, alt
    return _sketch(words, entries, panels, ("recall",) * 2, ("precision",) * 2)


def _contours(axes: Any) -> None:
    """Draw where precision and recall have the same F1: P = F R / (2 R − F)."""
    for level in F1:
        recall = np.linspace(level / (2 - level), 1, 80)
        axes.plot(recall, level * recall / (2 * recall - level), color=INK, alpha=0.35, linewidth=0.7, zorder=0)
        axes.text(
            1.05,
            level / (2 - level),
            f"F1 {level:g}",
            fontsize=SMALL,
            color=INK,
            alpha=0.75,
            va="center",
            ha="left",
            clip_on=False,
        )


def _sketch(
    words: tuple[str, str, str, str],
    entries: Sequence[Entry],
    panels: Mapping[str, Sequence[tuple[Entry, Sequence[Estimate]]]],
    x: tuple[str, str],
    y: tuple[str, str],
) -> Sketch:
    """Return square panels from 0 to 1 with each result as a point.

    Args:
        words: name, title, caption and alternative text.
        entries: all results.
        panels: by title, results with their two numbers.
        x: what the horizontal axis says, and what points tell of it.
        y: the same of the vertical axis.
    """

    def draw(across: float, note: str) -> tuple[Any, list[str]]:
        drawing, made, _ = plots.panels(
            across, [*panels], x[0], y[0], widest=2.7, right=0.42, gap=0.5, marks=_key(entries), note=note
        )
        unnamed = []
        for axes, (title, points) in zip(made, panels.items(), strict=True):
            axes.set(xlim=(-_EDGE, 1 + _EDGE), ylim=(-_EDGE, 1 + _EDGE), xticks=_TICKS, yticks=_TICKS)
            if title == "micro":
                _contours(axes)
            unnamed += labels.scatter(drawing, axes, _dots(points, entries, x[1], y[1]))
        return drawing, unnamed

    labels_of = tuple(entry.label for entry in entries)
    return Sketch(*words, "magic", lambda across: labels.noted(partial(draw, across)), labels_of)


def _is_named(entries: Sequence[Entry]) -> bool:
    """Return whether names stand beside points because models outnumber the legend's marks."""
    return len(palette.MARKERS) < len({entry.model for entry in entries}) <= NAMED


def _dots(
    points: Sequence[tuple[Entry, Sequence[Estimate]]], entries: Sequence[Entry], x: str, y: str
) -> Iterator[Dot]:
    """Yield each result as a point, with its name where there is no legend."""
    models, tasks = model_names(entries), once(entry.result.label for entry in entries)
    names = lettering.short(models)
    for entry, (first, second) in points:
        told = f"{entry.model}, {entry.result.label}: {x} {wording.said(first)}, {y} {wording.said(second)}"
        look = plots.model_look(models, entry.model, hollow=tasks.index(entry.result.label) % 2 == 1)
        name = lettering.fit(names[entry.model], 1.0, SMALL) if _is_named(entries) else ""
        yield Dot(first, second, look, told, name, entry.model)


def _key(entries: Sequence[Entry]) -> list[Mark]:
    """Return the legend: colours and shapes are models; of two tasks the second is hollow."""
    models, tasks = model_names(entries), once(entry.result.label for entry in entries)
    out = plots.model_marks(models)
    if len(tasks) > 1:
        for filled, some in ((True, tasks[::2]), (False, tasks[1::2])):
            out.append(Mark(lettering.fit(", ".join(some), 2.6, SMALL, 1), "o", INK, hollow=not filled))
    return out


def _keyed(entries: Sequence[Entry]) -> str:
    """Return the sentence on the names of models."""
    models = model_names(entries)
    return lettering.explained(lettering.short(models)) if len(models) > 1 else f" Model: {models[0]}."


def _missing(entries: Sequence[Entry]) -> str:
    """Return a sentence on the results missing from the drawing."""
    out = [f"{entry.model} ({mean})" for entry in entries for mean in ("micro", "macro") if not _both(entry, mean)]
    return f" Not drawn, since not defined: {listed(out, 6)}." if out else ""


# --- answers against region focus -----------------------------------------------------------------


def _focus_and_answers(entries: Sequence[Entry]) -> Sketch:
    """Return the drawing of right answers against region focus."""
    answered = {
        metric: [(entry, known) for entry in entries if (known := _answered(entry, metric))] for metric in ANSWERS
    }
    panels = {metric: points for metric, points in answered.items() if points}

    told = [
        f"{entry.model} {y.value:.2f} at F1 {x.value:.2f}" for points in panels.values() for entry, (x, y) in points
    ]
    out = listed([entry.model for entry in entries if not any(_answered(entry, metric) for metric in panels)], 6)
    caption = (
        "Does who looks at the right boxes also answer rightly (MAGIC paper, figure 4)? With relevant and adversarial boxes drawn. "
        f"{_lines(panels.values())} A model with the right answer and little focus found it elsewhere, or says little of where it looked."
        f"{f' Not drawn, since not defined: {out}.' if out else ''}{_keyed(entries)}"
    )
    alt = f"Share of right answers against MagiScore F1: {listed(told, 6)}."
    titled = {f"{WORDS[metric][0]} ({ANSWERS[metric]})": points for metric, points in panels.items()}
    words = "magic-focus-answers", "Region focus and answers", caption, alt
    axes = ("MagiScore F1, macro", "F1"), ("share of answers that are right", "right")
    return _sketch(words, entries, titled, *axes)
