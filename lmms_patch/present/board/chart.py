"""A forest plot as rows of a table: each result's interval as a small drawing that is as wide as its cell. Pure.

Why not one drawing: names stay text that wraps, and positions in percent fit any width without scaling letters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lmms_patch.present.sheets import levels
from lmms_patch.stats.resample import Estimate

MOST = 20
"""Results that a chart shows."""
_EDGE = 0.04
"""Of the axis, left free at both ends."""


@dataclass(frozen=True)
class Bar:
    """One row of a chart.

    Attributes:
        name: the model's name.
        number: the model's number, with its interval. at, low, high: the places on the axis of the number and of both
        ends of its interval, in percent of the axis; without an interval
            all three are one place.
    """

    name: str
    number: Estimate
    at: float
    low: float
    high: float


@dataclass(frozen=True)
class Chart:
    """The first results of a table.

    Attributes:
        title: what is drawn.
        bars: in the order of the ranks.
        ticks: place in percent, and label.
        zero: where 0 lies, in percent.
        signed: whether numbers above 0 have a plus.
        of: how many ranked results there are.
    """

    title: str
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    zero: float
    signed: bool
    of: int

    @property
    def intervals(self) -> str:
        """What the lines are, such as ``95 % intervals``; empty where no number has an interval."""
        said = levels(bar.number for bar in self.bars)
        return f"{said} intervals" if said else ""


def chart(title: str, ranked: Iterable[tuple[str, Estimate | None]], signed: bool = True) -> Chart | None:
    """Return the chart of the first results; None where fewer than two have a number.

    Args:
        title: what is drawn.
        ranked: names and numbers, the best first.
        signed: whether numbers above 0 have a plus.
    """
    known = [(name, number) for name, number in ranked if number is not None and number.value is not None]
    if len(known) < 2:
        return None
    first = known[:MOST]
    ends = [end for _, one in first for end in (one.value, one.low, one.high) if end is not None]
    start, stop = min(0.0, *ends), max(0.0, *ends)
    room = _EDGE * ((stop - start) or 1.0)
    start, stop = start - room, stop + room

    def place(value: float) -> float:
        return round(100 * (value - start) / (stop - start), 2)

    bars = []
    for name, one in first:
        at = place(one.value or 0.0)
        bars.append(Bar(name, one, at, *(at if end is None else place(end) for end in (one.low, one.high))))
    return Chart(
        title,
        tuple(bars),
        tuple((place(tick), _label(tick)) for tick in ticks(start, stop)),
        place(0.0),
        signed,
        len(known),
    )


def ticks(start: float, stop: float, most: int = 6) -> Sequence[float]:
    """Return round numbers between two ends: multiples of 1, 2 or 5 times a power of ten.

    >>> ticks(-0.33, 0.52)
    [-0.2, 0.0, 0.2, 0.4]
    """
    rough = (stop - start) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * by for by in (1, 2, 5, 10) if unit * by >= rough)
    return [
        round(step * k, 10) + 0.0 for k in range(math.ceil(start / step - 1e-9), math.floor(stop / step + 1e-9) + 1)
    ]


def _label(tick: float) -> str:
    return f"{tick:g}".replace("-", "−")
