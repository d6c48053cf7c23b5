"""Names beside points that hide neither each other nor the points: a place for each by search, with a leader line where it is not near."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lmms_patch.present.report.figures import canvas
from lmms_patch.present.report.figures.canvas import INK
from lmms_patch.present.report.figures.lettering import SMALL, height, width
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

    Names in the densest places are placed first. Each takes the nearest place inside the frame that overlaps no mark and no other name, and
    whose leader crosses neither; of two as near, the one over fewer lines. In a crowd, a leader may cross marks, but no name and no leader.

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
    order = sorted(range(len(points)), key=lambda k: (-dense[k], k))
    best: list[Placed | None] = [None] * len(points)
    for _ in range(_ROUNDS):
        found = _in_order(order, points, sizes, frame, hard, soft)
        if found.count(None) < best.count(None) or not points:
            best = found
        if None not in best:
            break
        order.sort(key=lambda k: found[k] is not None)  # those that found no place go first
    return best


def _in_order(
    order: Sequence[int], points: Sequence[tuple[float, float]], sizes: Sequence[tuple[float, float]], frame: Box, hard: Array, soft: Array
) -> list[Placed | None]:
    out: list[Placed | None] = [None] * len(points)
    leaders: list[Ends] = []
    for i in order:
        taken = np.array([one.box for one in out if one is not None]).reshape(-1, 4)
        found = _best(points[i], sizes[i], frame, hard, taken, soft, leaders) or _best(points[i], sizes[i], frame, hard, taken, soft, leaders, True)
        out[i] = found
        if found is not None and found.leader is not None:
            leaders.append(found.leader)
    return out


def _best(
    point: tuple[float, float],
    size: tuple[float, float],
    frame: Box,
    hard: Array,
    taken: Array,
    soft: Array,
    leaders: Sequence[Ends],
    crowd: bool = False,
) -> Placed | None:
    best: tuple[float, Placed] | None = None
    for away in _AWAY:
        if best is not None and best[0] <= away:
            break
        for turn in range(_TURNS):
            angle = 2 * math.pi * turn / _TURNS
            right, up = math.cos(angle), math.sin(angle)
            x = point[0] + right * (_MARK + away + size[0] / 2)
            y = point[1] + up * (_MARK + away + size[1] / 2)
            box = (x - size[0] / 2, y - size[1] / 2, x + size[0] / 2, y + size[1] / 2)
            if box[0] < frame[0] or box[1] < frame[1] or box[2] > frame[2] or box[3] > frame[3]:
                continue
            if _touching(box, hard).any() or _touching(box, taken).any():
                continue
            leader = _leader(point, box)
            ends = leader or (point, point)
            others = hard[~_touching((*point, *point), hard)]  # marks that lie on this one cannot be told apart anyway
            if _leaders_cross(box, leaders):
                continue
            if leader and ((not crowd and _crosses(ends, others)) or _crosses(ends, taken) or _crosses_any(ends, leaders)):
                continue
            cost = away + _OVER_LINE * int(_touching(box, soft).sum()) + 0.004 * (turn % 6 != 0) + 0.002 * turn / _TURNS
            if best is None or cost < best[0]:
                best = cost, Placed(box, leader)
    return best[1] if best else None


def _touching(box: Box, others: Array) -> Mask:
    """Return which boxes overlap this one, shape (len(others),)."""
    return (others[:, 0] < box[2] + _PAD) & (others[:, 2] > box[0] - _PAD) & (others[:, 1] < box[3] + _PAD) & (others[:, 3] > box[1] - _PAD)


def _leader(point: tuple[float, float], box: Box) -> Ends | None:
    end = (min(max(point[0], box[0]), box[2]), min(max(point[1], box[1]), box[3]))
    far = math.dist(point, end)
    if far <= _MARK + _LEADER:
        return None
    start = (point[0] + (end[0] - point[0]) * _MARK / far, point[1] + (end[1] - point[1]) * _MARK / far)
    return start, end


def _crosses(ends: Ends, boxes: Array) -> bool:
    """Return whether a line goes through any box: clipped against all four sides (Liang and Barsky)."""
    if not len(boxes):
        return False
    (x, y), (u, v) = ends
    first, last = np.zeros(len(boxes)), np.ones(len(boxes))
    for start, step, low, high in ((x, u - x, boxes[:, 0], boxes[:, 2]), (y, v - y, boxes[:, 1], boxes[:, 3])):
        if abs(step) < 1e-12:
            inside = (low < start) & (start < high)
            first = np.where(inside, first, 2.0)
            continue
        a, b = (low - start) / step, (high - start) / step
        first, last = np.maximum(first, np.minimum(a, b)), np.minimum(last, np.maximum(a, b))
    return bool((first < last).any())


def _leaders_cross(box: Box, leaders: Sequence[Ends]) -> bool:
    around = np.array([[box[0] - _PAD, box[1] - _PAD, box[2] + _PAD, box[3] + _PAD]])
    return any(_crosses(one, around) for one in leaders)


def _crosses_any(ends: Ends, leaders: Sequence[Ends]) -> bool:
    def side(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    p, q = ends
    return any(side(p, q, r) * side(p, q, s) < 0 and side(r, s, p) * side(r, s, q) < 0 for r, s in leaders)


def write(
    drawing: Any, axes: Any, names: Sequence[tuple[str, str, float, float]], marks: Sequence[tuple[float, float]], lines: Sequence[Box]
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
            drawing.add_artist(Line2D([x, u], [y, v], color=INK, alpha=0.6, linewidth=0.5, transform=drawing.dpi_scale_trans))
    return [told for (_, told, _, _), one in zip(names, found, strict=True) if one is None]
