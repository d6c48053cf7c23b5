"""Names beside points that hide neither each other nor the points: a place for each by search, with a leader line where it is not near."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lmms_patch.present.report.figures import canvas
from lmms_patch.present.report.figures.canvas import EDGE, INK
from lmms_patch.present.report.figures.lettering import SMALL, fit, height, width
from lmms_patch.present.report.points import listed, once
from lmms_patch.stats.resample import Array

Mask = npt.NDArray[np.bool_]
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
_AT_ONCE = 16
"""Places that are tried at once."""
_AROUND = np.array([-_PAD, -_PAD, _PAD, _PAD])
"""What makes a box wider by the room that is left free around it."""
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
        found = _in_order(order, points, sizes, frame, hard, soft)
        if found.count(None) < best.count(None) or not points:
            best = found
        if None not in best:
            break
        # Names without a place choose first in the next round.
        order.sort(key=lambda k: found[k] is not None)
    return best


def _in_order(
    order: Sequence[int],
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    hard: Array,
    soft: Array,
) -> list[Placed | None]:
    """Place the names in turn, each clear of the names placed before."""
    out: list[Placed | None] = [None] * len(points)
    for i in order:
        taken = [one for one in out if one is not None]
        out[i] = _best(points[i], sizes[i], frame, hard, taken, soft)
    return out


def _best(
    point: tuple[float, float],
    size: tuple[float, float],
    frame: Box,
    hard: Array,
    placed: Sequence[Placed],
    soft: Array,
) -> Placed | None:
    """Return the cheapest place of a name among all distances and directions; None where each hides something.

    Places are tried many at once, as arrays, from the cheapest on: one at a time they took more time than all the rest
    of a drawing.
    """
    middle, half = np.array(point), np.array(size) / 2
    centres = middle + _DIRECTIONS * (_MARK + _DISTANCES[:, None] + half)
    boxes = np.hstack([centres - half, centres + half])
    taken = np.array([one.box for one in placed]).reshape(-1, 4)
    leaders = np.array([[*one.leader[0], *one.leader[1]] for one in placed if one.leader is not None]).reshape(-1, 4)
    free = (boxes[:, 0] >= frame[0]) & (boxes[:, 1] >= frame[1]) & (boxes[:, 2] <= frame[2]) & (boxes[:, 3] <= frame[3])
    free &= ~_touching(boxes, hard).any(axis=1) & ~_touching(boxes, taken).any(axis=1)
    costs = np.where(free, _DISTANCES + _OVER_LINE * _touching(boxes, soft).sum(axis=1) + _DETOURS, np.inf)
    cheapest = np.argsort(costs, kind="stable")[: int(free.sum())]
    # Marks on top of this mark cannot be told apart anyway, so they block no place.
    others = hard[~_touching(np.array([[*point, *point]]), hard)[0]]
    in_crowd = None
    # In portions, the cheapest first: most names find a place among the first few.
    for k in range(0, len(cheapest), _AT_ONCE):
        some = boxes[cheapest[k : k + _AT_ONCE]]
        ends, near = _leaders(middle, some)
        clear = ~_through(leaders, some + _AROUND).any(axis=0)
        clear &= near | ~(_through(ends, taken).any(axis=1) | _crossing(ends, leaders).any(axis=1))
        whole = clear & (near | ~_through(ends, others).any(axis=1))
        if whole.any():
            return _placed(some, ends, near, int(whole.argmax()))
        # In a crowd, a leader may cross marks.
        if in_crowd is None and clear.any():
            in_crowd = _placed(some, ends, near, int(clear.argmax()))
    return in_crowd


def _placed(boxes: Array, ends: Array, near: Mask, k: int) -> Placed:
    """Return a place, out of several, in plain numbers."""
    left, bottom, right, top = map(float, boxes[k])
    x, y, u, v = map(float, ends[k])
    return Placed((left, bottom, right, top), None if near[k] else ((x, y), (u, v)))


def _leaders(point: Array, boxes: Array) -> tuple[Array, Mask]:
    """Return the line from a mark to each box, shape (boxes, 4): both ends.

    And whether the box is so near that it needs none.
    """
    ends = np.clip(point, boxes[:, :2], boxes[:, 2:])
    away = np.hypot(*(ends - point).T)
    starts = point + (ends - point) * (_MARK / np.maximum(away, _MARK))[:, None]
    return np.hstack([starts, ends]), away <= _MARK + _LEADER


def _touching(boxes: Array, others: Array) -> Mask:
    """Return which boxes overlap or nearly overlap which of ``others``: shape (boxes, others)."""
    left, bottom, right, top = (boxes[:, k, None] for k in range(4))
    return (
        (others[:, 0] < right + _PAD)
        & (others[:, 2] > left - _PAD)
        & (others[:, 1] < top + _PAD)
        & (others[:, 3] > bottom - _PAD)
    )


def _through(lines: Array, boxes: Array) -> Mask:
    """Return which lines go through which boxes, shape (lines, boxes): each is clipped against all four sides (Liang and Barsky)."""
    first, last = np.zeros((len(lines), len(boxes))), np.ones((len(lines), len(boxes)))
    for axis in (0, 1):
        start, step = lines[:, axis, None], (lines[:, axis + 2] - lines[:, axis])[:, None]
        low, high = boxes[:, axis], boxes[:, axis + 2]
        # A line parallel to a side never crosses it: the line is between both sides or outside the box.
        along = np.abs(step) < 1e-12
        a, b = (low - start) / np.where(along, 1.0, step), (high - start) / np.where(along, 1.0, step)
        between = np.where((low < start) & (start < high), 0.0, 2.0)
        first = np.maximum(first, np.where(along, between, np.minimum(a, b)))
        last = np.minimum(last, np.where(along, 1.0, np.maximum(a, b)))
    return np.asarray(first < last)


def _crossing(lines: Array, others: Array) -> Mask:
    """Return which lines cross which of ``others``, shape (lines, others)."""

    def side(a: Array, b: Array, c: Array) -> Array:
        """Return the sign of the turn from a over b to c."""
        return np.asarray(
            (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])
        )

    p, q, r, s = lines[:, None, :2], lines[:, None, 2:], others[None, :, :2], others[None, :, 2:]
    return np.asarray((side(p, q, r) * side(p, q, s) < 0) & (side(r, s, p) * side(r, s, q) < 0))


def tell_unnamed(drawing: Any, names: Sequence[str]) -> None:
    """Write at the foot of a figure which names found no room."""
    if names:
        told = fit(f"No room for the names of {listed(once(names), 6)}", drawing.get_size_inches()[0] - 2 * EDGE, SMALL)
        canvas.write_at(drawing, EDGE, EDGE / 2 + height(2, SMALL), told, va="top")


def write(
    drawing: Any,
    axes: Any,
    names: Sequence[tuple[str, str, float, float]],
    marks: Sequence[tuple[float, float]],
    lines: Sequence[Box],
) -> list[str]:
    """Write names beside the points of a panel.

    Args:
        drawing: matplotlib's figure.
        axes: the panel; its ends and its place are set.
        names: text, what it tells who points at it, and the point's place in the axes' units.
        marks: all points of the panel, same units.
        lines: the intervals, same units: left, bottom, right, top.

    Returns:
        What those names tell that have no place, and are not written.
    """
    from matplotlib.lines import Line2D

    inches = axes.transData + drawing.dpi_scale_trans.inverted()
    frame = axes.get_position().transformed(drawing.transFigure + drawing.dpi_scale_trans.inverted()).extents

    def at(x: float, y: float) -> tuple[float, float]:
        found = inches.transform((x, y))
        return float(found[0]), float(found[1])

    sizes = [(width(name, SMALL), height(name.count("\n") + 1, SMALL) * 0.92) for name, *_ in names]
    boxes = [(*at(line[0], line[1]), *at(line[2], line[3])) for line in lines]
    found = place([at(x, y) for _, _, x, y in names], sizes, tuple(frame), [at(*mark) for mark in marks], boxes)
    for (name, told, _, _), one in zip(names, found, strict=True):
        if one is None:
            continue
        middle = (one.box[0] + one.box[2]) / 2, (one.box[1] + one.box[3]) / 2
        canvas.tip(canvas.write_at(drawing, *middle, name, SMALL, ha="center", va="center", zorder=6), told)
        if one.leader:
            (x, y), (u, v) = one.leader
            drawing.add_artist(
                Line2D([x, u], [y, v], color=INK, alpha=0.6, linewidth=0.5, transform=drawing.dpi_scale_trans)
            )
    return [told for (_, told, _, _), one in zip(names, found, strict=True) if one is None]
