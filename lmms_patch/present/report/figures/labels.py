"""Names beside points that hide neither each other nor the points: a place for each by search, with a leader line where it is not near."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmms_patch.present.report.figures import canvas, plots
from lmms_patch.present.report.figures.canvas import INK, Mark
from lmms_patch.present.report.figures.lettering import SMALL, height, width
from lmms_patch.present.report.points import listed, once
from lmms_patch.stats.resample import Array, Estimate

Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""
Ends = tuple[tuple[float, float], tuple[float, float]]
"""Of a line."""
_AWAY = (0.03, 0.08, 0.15, 0.25, 0.4, 0.6, 0.85, 1.15, 1.5, 1.9)
"""Inches between a mark and its name, tried in this order."""
_TURNS = 24
_ROUNDS = 4
"""How often the names are placed anew, those first that found no place before."""
_MARK = 0.05
"""Half of a mark's width, in inches."""
_PAD = 0.015
_LEADER = 0.09
"""A name further away than this from its mark gets a line."""
_OVER_LINE = 0.07
"""What lying over an interval costs, in inches of distance."""
_LINKS = 40
"""A leader is held to be a chain of so many points."""
_DISTANCES = np.repeat(_AWAY, _TURNS)
"""Of each place that is tried, from its mark; all arrays of places have this order."""
_DIRECTIONS = np.tile(
    [(math.cos(2 * math.pi * turn / _TURNS), math.sin(2 * math.pi * turn / _TURNS)) for turn in range(_TURNS)],
    (len(_AWAY), 1),
)
_DETOURS = np.tile([0.004 * (turn % 6 != 0) + 0.002 * turn / _TURNS for turn in range(_TURNS)], len(_AWAY))
"""What a direction costs, in inches of distance: rather beside, above or below a mark than askew."""


@dataclass(frozen=True)
class Placed:
    """Where a name lies.

    Attributes:
        box: of the text.
        leader: both ends of its line; None where it is near enough.
    """

    box: Box
    leader: Ends | None


def place(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    marks: Sequence[tuple[float, float]],
    lines: Sequence[Box] = (),
) -> list[Placed | None]:
    """Return a place for each name; None where there is none without hiding something.

    Names in the densest places are placed first. Each takes the nearest place inside the frame that overlaps no mark
    and no other name, and whose leader crosses neither; of two as near, the one over fewer lines. In a crowd, a leader
    may cross marks, but no name and no leader.

    Args:
        points: what is named, in inches.
        sizes: width and height of each name.
        frame: the panel.
        marks: all marks, named or not.
        lines: intervals, as boxes without width; a name may lie over one, but rather does not.
    """
    dense = [sum(math.dist(p, q) < 0.6 for q in marks) for p in points]
    hard = np.array([(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in marks]).reshape(-1, 4)
    soft = np.array(lines, float).reshape(-1, 4)
    # Points in dense parts choose first, as they have the fewest places.
    order = sorted(range(len(points)), key=lambda k: (-dense[k], k))
    best: list[Placed | None] = [None] * len(points)
    for _ in range(_ROUNDS):
        found: list[Placed | None] = [None] * len(points)
        for i in order:
            found[i] = _best(points[i], sizes[i], frame, hard, [one for one in found if one], soft)
        if found.count(None) < best.count(None):
            best = found
        if None not in best:
            break
        # Names without a place choose first in the next round.
        order.sort(key=lambda k: found[k] is not None)
    return best


def _best(
    point: tuple[float, float],
    size: tuple[float, float],
    frame: Box,
    hard: Array,
    placed: Sequence[Placed],
    soft: Array,
) -> Placed | None:
    """Return the cheapest place of a name among all distances and directions; None where each hides something.

    Places are tried all at once, as arrays: one at a time they took more time than all the rest of a drawing.
    """
    middle, half = np.array(point), np.array(size) / 2
    centres = middle + _DIRECTIONS * (_MARK + _DISTANCES[:, None] + half)
    boxes = np.hstack([centres - half, centres + half])
    names = np.array([one.box for one in placed]).reshape(-1, 4)
    leaders = np.array([one.leader for one in placed if one.leader]).reshape(-1, 2, 2)
    chains = _chains(leaders[:, 0], leaders[:, 1]).reshape(-1, 4)
    inside = ((boxes[:, :2] >= frame[:2]) & (boxes[:, 2:] <= frame[2:])).all(axis=1)
    free = np.flatnonzero(inside & ~_touching(boxes, np.vstack([hard, names, chains])))
    costs = _DISTANCES[free] + _DETOURS[free] + _OVER_LINE * _touching(boxes[free], soft, np.sum)
    boxes = boxes[free][np.argsort(costs, kind="stable")]
    # The leader of a name runs from the edge of its mark to the nearest point of the name.
    stops = np.clip(middle, boxes[:, :2], boxes[:, 2:])
    away = np.hypot(*(stops - middle).T)
    starts = middle + (stops - middle) * (_MARK / np.maximum(away, _MARK))[:, None]
    near, chain = away <= _MARK + _LEADER, _chains(starts, stops)
    # Marks on top of this mark cannot be told apart anyway, so they block no leader.
    others = hard[~_touching(hard, np.array([[*point, *point]]))]
    clear = near | ~_touching(chain, np.vstack([names, chains])).any(axis=1)
    whole = clear & (near | ~_touching(chain, others).any(axis=1))
    # In a crowd, a leader may cross marks.
    for ok in (whole, clear):
        if ok.any():
            k = int(ok.argmax())
            return Placed(
                tuple(boxes[k].tolist()), None if near[k] else (tuple(starts[k].tolist()), tuple(stops[k].tolist()))
            )
    return None


def _chains(starts: Array, stops: Array) -> Array:
    """Return the points along some lines as boxes without size, shape (lines, ``_LINKS``, 4)."""
    return np.tile(np.linspace(starts, stops, _LINKS, axis=1), 2)


def _touching(boxes: Array, taken: Array, over: Callable[..., Any] = np.any) -> Any:
    """Return for each box whether boxes in ``taken`` overlap or nearly overlap; with ``np.sum``, how many do."""
    left, bottom, right, top = (boxes[..., k, None] for k in range(4))
    across = (taken[:, 0] < right + _PAD) & (taken[:, 2] > left - _PAD)
    return over(across & (taken[:, 1] < top + _PAD) & (taken[:, 3] > bottom - _PAD), axis=-1)


# --- points with names ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Dot:
    """What a scatter plot draws for one result: a mark with two intervals, and a name beside it.

    Attributes:
        x, y: its numbers, drawn with both intervals.
        look: its mark.
        told: what it tells who points at it.
        name: what is written beside it; empty: nothing.
        whole: the whole name.
    """

    x: Estimate
    y: Estimate
    look: Mark
    told: str
    name: str
    whole: str


def scatter(drawing: Any, axes: Any, dots: Iterable[Dot]) -> list[str]:
    """Draw the points of a panel, whose ends and place are set, and their names.

    Returns:
        The names that have no place, and are not written.
    """
    from matplotlib.lines import Line2D

    transform = (axes.transData + drawing.dpi_scale_trans.inverted()).transform
    frame = axes.get_position().transformed(drawing.transFigure + drawing.dpi_scale_trans.inverted()).extents
    dots = list(dots)
    lines = [line for dot in dots for line in plots.cross(axes, dot.x, dot.y, dot.look, dot.told)]
    marks = transform([(dot.x.value or 0.0, dot.y.value or 0.0) for dot in dots])
    boxes = transform(np.array(lines).reshape(-1, 2)).reshape(-1, 4)
    named = [k for k, dot in enumerate(dots) if dot.name]
    sizes = [(width(dots[k].name, SMALL), height(dots[k].name.count("\n") + 1, SMALL) * 0.92) for k in named]
    unnamed = []
    for k, one in zip(named, place(marks[named], sizes, tuple(frame), marks, boxes), strict=True):
        if one is None:
            unnamed.append(dots[k].whole)
            continue
        middle = (one.box[0] + one.box[2]) / 2, (one.box[1] + one.box[3]) / 2
        canvas.tip(canvas.write_at(drawing, *middle, dots[k].name, ha="center", va="center", zorder=6), dots[k].whole)
        if one.leader:
            (x, y), (u, v) = one.leader
            drawing.add_artist(
                Line2D([x, u], [y, v], color=INK, alpha=0.6, linewidth=0.5, transform=drawing.dpi_scale_trans)
            )
    return unnamed


def noted(draw: Callable[[str], tuple[Any, list[str]]]) -> Any:
    """Return a figure with a note on the names without room.

    Args:
        draw: takes the note, and returns the figure and these names.
    """
    drawing, unnamed = draw("")
    return draw(f"No room for the names of {listed(once(unnamed), 6)}")[0] if unnamed else drawing
