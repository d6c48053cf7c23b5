"""MAGIC tasks: which boxes models use (precision against recall), and whether those who look well answer well (MAGIC paper, figure 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lmms_patch.present.report.data import Entry
from lmms_patch.present.report.figures import canvas
from lmms_patch.present.report.figures.heatmaps import Made, model_colours
from lmms_patch.present.report.magic_words import WORDS
from lmms_patch.present.report.points import counted, listed, once
from lmms_patch.stats.resample import Estimate

F1 = (0.2, 0.4, 0.6, 0.8)
"""Where the contours are drawn."""
NAMED = 12
"""More models than this are drawn without their names."""
ANSWERS = ("acc_short", "acc_synonym")
_EDGE = 0.04
_LINES = "Lines: 95 % intervals, from a bootstrap over images."


def drawings(entries: Sequence[Entry]) -> Iterator[Made]:
    """Yield both drawings, of the tasks that show relevant and adversarial boxes."""
    shown = [entry for entry in entries if entry.magic and entry.magic.get("variant") == "all"]
    if any(_both(entry, mean) for entry in shown for mean in ("micro", "macro")):
        yield _precision_recall(shown)
    if any(_answered(entry, metric) for entry in shown for metric in ANSWERS):
        yield _focus_and_answers(shown)


def _known(entry: Entry, *names: str) -> list[Estimate] | None:
    given = [entry.whole.measures.get(name) for name in names]
    known = [one for one in given if one is not None and one.value is not None]
    return known if len(known) == len(names) else None


def _both(entry: Entry, mean: str) -> list[Estimate] | None:
    """Return recall and precision; None where one is not defined."""
    return _known(entry, f"magiscore_recall_{mean}", f"magiscore_precision_{mean}")


def _answered(entry: Entry, metric: str) -> list[Estimate] | None:
    return _known(entry, "magiscore_f1_macro", metric)


# --- precision against recall ---------------------------------------------------------------------


def _precision_recall(entries: Sequence[Entry]) -> Made:
    drawing, axes = canvas.new(7.4, 4.3, 1, 2)
    for axis, mean in zip(axes.flat, ("micro", "macro"), strict=True):
        if mean == "micro":
            _contours(axis)
        _points(axis, [(entry, both) for entry in entries if (both := _both(entry, mean))], entries)
        axis.set(title=f"{mean}", xlabel="recall")
        _square(axis)
    axes[0, 0].set_ylabel("precision")
    _key(drawing, entries)
    caption = (
        "Precision: of the boxes that the reasoning uses, the share that is relevant. Recall: of the relevant boxes, the share that is used. Micro: "
        "summed over docs, with contours of F1; macro: means over docs, where F1 is a mean of its own and no contour. "
        f"{_LINES}{_missing(entries)}"
    )
    told = [
        f"{entry.model} {both[1].value:.2f} at {both[0].value:.2f}"
        for entry in entries
        if (both := _both(entry, "micro")) and both[1].value is not None
    ]
    alt = f"Precision against recall of {counted(len(once(e.model for e in entries)), 'model')}; micro: {listed(told, 6) or 'not defined'}."
    return drawing, "magic-precision-recall", "Which boxes are used", caption, alt, "magic", tuple(entry.id for entry in entries)


def _contours(axis: Any) -> None:
    """Draw where precision and recall have the same F1: P = F R / (2 R − F)."""
    for level in F1:
        recall = np.linspace(level / (2 - level), 1, 80)
        axis.plot(recall, level * recall / (2 * recall - level), color=canvas.INK, alpha=canvas.FAINT, linewidth=0.7, zorder=0)
        axis.text(1.01, level / (2 - level), f"F1 {level:g}", fontsize=6.5, color=canvas.INK, alpha=0.7, va="center", ha="left", clip_on=False)


def _square(axis: Any) -> None:
    axis.set(xlim=(-_EDGE, 1 + _EDGE), ylim=(-_EDGE, 1 + _EDGE))
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axis.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axis.set_aspect("equal")


def _points(axis: Any, points: Sequence[tuple[Entry, Sequence[Estimate]]], entries: Sequence[Entry]) -> None:
    """Draw each result as a point with both of its intervals."""
    models, tasks = once(entry.model for entry in entries), once(entry.task for entry in entries)
    colour = model_colours(models)
    for entry, (x, y) in points:
        tone = colour(entry.model)
        shape = canvas.MARKERS[tasks.index(entry.task) % len(canvas.MARKERS)]
        if x.low is not None and x.high is not None:
            axis.plot([x.low, x.high], [y.value, y.value], color=tone, linewidth=1, solid_capstyle="butt")
        if y.low is not None and y.high is not None:
            axis.plot([x.value, x.value], [y.low, y.high], color=tone, linewidth=1, solid_capstyle="butt")
        axis.plot([x.value], [y.value], shape, markersize=5.5, color=tone, clip_on=False)
    if len(models) > len(canvas.COLOURS) and len(points) <= NAMED:  # too many for a legend of colours
        for entry, (x, y) in points:
            flip = (x.value or 0) > 0.5
            axis.annotate(
                canvas.name(entry.model, 22),
                (x.value, y.value),
                xytext=(-5 if flip else 5, 5),
                textcoords="offset points",
                fontsize=7,
                ha="right" if flip else "left",
            )


def _key(drawing: Any, entries: Sequence[Entry]) -> None:
    """Draw the legend: colours are models, shapes are tasks."""
    models, tasks = once(entry.model for entry in entries), once(entry.task for entry in entries)
    colour = model_colours(models)
    marks = [canvas.mark(canvas.name(model), "", colour(model), linestyle="-", linewidth=4) for model in models[: len(canvas.COLOURS)]]
    if len(tasks) > 1:
        marks += [
            canvas.mark(canvas.name(task), canvas.MARKERS[k % len(canvas.MARKERS)], canvas.INK, markerfacecolor="none")
            for k, task in enumerate(tasks)
        ]
    canvas.key(drawing, marks if len(models) <= len(canvas.COLOURS) else marks[len(canvas.COLOURS) :])


def _missing(entries: Sequence[Entry]) -> str:
    out = [f"{entry.model} ({mean})" for entry in entries for mean in ("micro", "macro") if not _both(entry, mean)]
    return f" Not drawn, since not defined: {listed(out, 6)}." if out else ""


# --- answers against region focus -----------------------------------------------------------------


def _focus_and_answers(entries: Sequence[Entry]) -> Made:
    metrics = [metric for metric in ANSWERS if any(_answered(entry, metric) for entry in entries)]
    drawing, axes = canvas.new(max(4.6, 3.7 * len(metrics)), 4.3, 1, len(metrics))
    told = []
    for axis, metric in zip(axes.flat, metrics, strict=True):
        points = [(entry, known) for entry in entries if (known := _answered(entry, metric))]
        _points(axis, points, entries)
        axis.set(title=WORDS[metric][0] + (" (judged)" if metric == "acc_short" else " (no judge)"), xlabel="MagiScore F1, macro")
        _square(axis)
        told += [f"{entry.model} {y.value:.2f} at F1 {x.value:.2f}" for entry, (x, y) in points]
    axes[0, 0].set_ylabel("share of answers that are right")
    _key(drawing, entries)
    out = listed([entry.model for entry in entries if not any(_answered(entry, metric) for metric in metrics)], 6)
    caption = (
        "Does who looks at the right boxes also answer rightly (MAGIC paper, figure 4)? With relevant and adversarial boxes drawn. "
        f"{_LINES} A model with the right answer and little focus found it elsewhere, or says little of where it looked."
        f"{f' Not drawn, since not defined: {out}.' if out else ''}"
    )
    alt = f"Share of right answers against MagiScore F1: {listed(told, 6)}."
    return drawing, "magic-focus-answers", "Region focus and answers", caption, alt, "magic", tuple(entry.id for entry in entries)
