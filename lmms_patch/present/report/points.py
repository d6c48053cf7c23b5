"""One index each, of our own runs or of a published table: what benchmarks and models are compared by. Pure."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lmms_patch.ask.kinds import OF_CLIPS, OF_IMAGES, Words
from lmms_patch.present.ranking import means_by_steady
from lmms_patch.present.report.data import Entry
from lmms_patch.runs import reading
from lmms_patch.stats.resample import LEVEL, Estimate

T = TypeVar("T", bound=Hashable)

TYPES = {"mcq": "multiple choice", "yesno": "yes/no", "vqa": "visual question answering", "caption": "captioning"}
"""The papers' task types, and what they are called for people (PCRI paper, 4)."""


@dataclass(frozen=True)
class Point:
    """The index of a model on a benchmark at a grid.

    Attributes:
        benchmark, model: as they are shown.
        n: grid size.
        value: the index, 1 − MPP/FIP, without unit; None where it is not defined.
        low, high: its interval; None for a published number.
        docs: how many it rests on; None where the table does not say.
        type: the papers' task type (``TYPES``); "" where it is not known.
        valid: whether it may be read, and averaged: it is defined, and no gate failed.
        reason: why not; or what to mind.
        level: the interval's nominal coverage.
        source: the published table it is from; "" for our own.
        words: what stands beside it in every table (``reading``): ``contradicted``, ``marginal``.
        steady: the steady index; None where no doc was asked again.
        in_time: whether it is RCI in time, of segments of clips. It never stands in one mean, table or drawing with an
            index of cells.
    """

    benchmark: str
    model: str
    n: int
    value: float | None
    low: float | None
    high: float | None
    docs: int | None
    type: str
    valid: bool
    reason: str
    level: float = LEVEL
    source: str = ""
    words: tuple[str, ...] = ()
    steady: Estimate | None = None
    in_time: bool = False

    @property
    def medium(self) -> Words:
        """What its parts are called."""
        return OF_CLIPS if self.in_time else OF_IMAGES

    @property
    def contradicted(self) -> bool:
        """Whether the steady index contradicts the index."""
        return reading.CONTRADICTED in self.words

    @property
    def key(self) -> tuple[str, str, int, bool]:
        """The benchmark, model, grid and medium, which identify a number of a table."""
        return self.benchmark, self.model, self.n, self.in_time

    @property
    def estimate(self) -> Estimate:
        """The index with interval and notes; without a value where the index may not be read."""
        value = self.value if self.valid else None
        estimate = Estimate(value, None, self.low, self.high, self.docs or 0, 0, 0, self.level, self.reason)
        return reading.noted(estimate, *self.words)


def points_of(entries: Sequence[Entry]) -> list[Point]:
    """Return the indices of some results, in their order.

    Where a model has two results of one benchmark at one grid (other filters, ``gqa_rci`` beside ``gqa_pcri3``), the
    benchmark is named with the task.
    """
    seen = Counter(
        (entry.base, entry.model, n, entry.kind.needs_video)
        for entry in entries
        if entry.kind.index
        for n in entry.grids
    )
    several = {(base, in_time) for (base, _, _, in_time), count in seen.items() if count > 1}
    out = []
    for entry in entries:
        for n in entry.grids if entry.kind.index else ():
            at = entry.index(n)
            if (index := at.raw) is None:
                continue
            valid = index.value is not None and entry.whole.gate != 0
            reason = index.reason or ("" if valid else entry.whole.gate_word)
            if valid and entry.whole.gate is None:
                reason = "; ".join(filter(None, ["whether it beats chance is not known", reason]))
            name = (
                f"{entry.base} ({entry.result.label})"
                if (entry.base, entry.kind.needs_video) in several
                else entry.base
            )
            value, low, high = (index.value, index.low, index.high) if valid else (None, None, None)
            measured, words = (at.steady, reading.words(index)) if valid else (None, ())
            known = (
                name,
                entry.model,
                n,
                value,
                low,
                high,
                index.n,
                entry.result.type,
                valid,
                reason,
                index.level,
                "",
                words,
                measured,
            )
            out.append(Point(*known, in_time=entry.kind.needs_video))
    return out


def medium_of(points: Iterable[Point]) -> Words:
    """Return the words for parts of some points, which share a medium.

    Those of images where there is none.
    """
    return next((point.medium for point in points), OF_IMAGES)


def of_medium(points: Iterable[Point], in_time: bool) -> list[Point]:
    """Return the points in time, or those in space."""
    return [point for point in points if point.in_time == in_time]


def as_means(points: Sequence[Point]) -> tuple[list[Point], bool]:
    """Return the points as means take them, and whether they are steady (``ranking.means_by_steady``), as on a leaderboard."""
    known: dict[tuple[str, int], list[Estimate | None]] = {}
    for point in points:
        if point.valid:
            known.setdefault((point.benchmark, point.n), []).append(point.steady)
    by_steady = means_by_steady(known.values())
    return [as_steady(point) if by_steady else point for point in points], by_steady


def as_steady(point: Point) -> Point:
    """Return a point with the steady index in place of the raw index.

    A point that may not be read stays as it is.
    """
    steady = point.steady
    if not point.valid or steady is None:
        return point
    plain = dataclasses.replace(
        point, value=steady.value, low=steady.low, high=steady.high, docs=steady.n, level=steady.level
    )
    return dataclasses.replace(plain, valid=steady.value is not None, reason=steady.reason, words=reading.words(steady))


def distinct(points: Sequence[Point]) -> list[Point]:
    """Return the points with each benchmark, model and grid once.

    Where two have the same, models of published tables are named with their table.
    """
    values: dict[tuple[str, str, int, bool], set[float | None]] = {}
    for point in points:
        values.setdefault(point.key, set()).add(point.value)
    clash = {point.model for point in points if len(values[point.key]) > 1}
    named = [
        dataclasses.replace(p, model=f"{p.model} ({p.source})") if p.source and p.model in clash else p for p in points
    ]
    out: dict[tuple[str, str, int, bool], Point] = {}
    for point in named:
        number, one = 1, point
        while one.key in out and out[one.key].value != point.value:
            number += 1
            one = dataclasses.replace(point, model=f"{point.model} #{number}")
        out.setdefault(one.key, one)  # the same number twice is one
    return list(out.values())


def once(items: Iterable[T]) -> list[T]:
    """Return each item once, in the order in which they come."""
    return list(dict.fromkeys(items))


def benchmarks(points: Iterable[Point]) -> list[str]:
    """Return the benchmarks in the order in which they come."""
    return once(point.benchmark for point in points)


class OfModel(Protocol):
    """An object with a model: a result, an index, a place in a ranking."""

    @property
    def model(self) -> str: ...


def model_names(some: Iterable[OfModel]) -> list[str]:
    """Return the models in the order in which they come."""
    return once(one.model for one in some)


def columns(points: Sequence[Point]) -> list[tuple[str, int]]:
    """Return the present (model, n) pairs: models in order of appearance, grids from coarse to fine."""
    models, grids = model_names(points), sorted({point.n for point in points})
    there = {(point.model, point.n) for point in points}
    return [(model, n) for model in models for n in grids if (model, n) in there]


def listed(names: Sequence[str], most: int = 12) -> str:
    """Join names for a sentence; the rest as a number.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def docs_each(counts: Iterable[int]) -> str:
    """Return how many docs some results have, as a sentence after a space; empty without results."""
    known = sorted(counts)
    size = f"{known[0]:,}{f' to {known[-1]:,}' * (known[0] < known[-1])}" if known else ""
    return f" {size} docs each." if size else ""


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 model``, ``2 models``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
