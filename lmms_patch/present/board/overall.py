"""Means over benchmarks, only over those that all ranked models share in comparable runs. Pure."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lmms_patch.errors import OptionError, nearest
from lmms_patch.present.board.board import Board, Entry, Group, choose, why_not
from lmms_patch.present.board.ranks import BY, By, Place, badness, places
from lmms_patch.present.report.models import mean_index, mean_size
from lmms_patch.present.report.points import Point
from lmms_patch.runs import reading
from lmms_patch.stats.index import relative_change
from lmms_patch.stats.resample import Estimate

Identity = tuple[str, str, str]
T = TypeVar("T")
_INDEX = BY["pcri"]


@dataclass(frozen=True)
class Line:
    """One model over some benchmarks.

    Attributes:
        model: as it is shown.
        cells: its index by benchmark, where it has one in comparable runs.
        mean_abs: mean of the index's distance from 0 over the shared benchmarks, with an interval; None where it lacks some of them.
        mean: mean of the index itself, with its sign.
        place: its range of places by ``mean_abs``.
        lacks: shared benchmarks that it has no index for, each with the reason.
    """

    model: str
    cells: Mapping[str, Estimate]
    mean_abs: Estimate | None
    mean: Estimate | None
    place: Place | None
    lacks: tuple[str, ...]


@dataclass(frozen=True)
class Basis:
    """The runs that the numbers of one benchmark are of: those of its group 1.

    Attributes:
        group: ``Group.id``.
        docs: numbers of docs that its runs asked, rising; several only where the number of docs is ignored.
        limits: their limits; ``("all",)`` where all are whole runs.
    """

    group: str
    docs: tuple[int, ...]
    limits: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether no run had a limit."""
        return self.limits == ("all",)


@dataclass(frozen=True)
class Overall:
    """Models × benchmarks at one grid.

    Attributes:
        grid: its size.
        type: the papers' task type that it is of; "" for all benchmarks.
        benchmarks: all of them.
        shared: those that the means are over: every ranked model has all of them.
        lines: ranked models first, best first; then the others.
        bases: what the numbers of each benchmark rest on.
        by: what its numbers are: the index, or the index with luck removed.
    """

    grid: int
    type: str
    benchmarks: tuple[str, ...]
    shared: tuple[str, ...]
    lines: tuple[Line, ...]
    bases: Mapping[str, Basis]
    by: By = _INDEX


@dataclass(frozen=True)
class Change:
    """One model at two grids.

    Attributes:
        model: as it is shown.
        coarse, fine: mean index over the shared benchmarks; None where it lacks some.
        change: (fine − coarse) / \\|coarse\\| of these means (PCRI paper, A.4.6).
        cells: the same of each benchmark.
        lacks: shared benchmarks that it lacks.
    """

    model: str
    coarse: float | None
    fine: float | None
    change: float | None
    cells: Mapping[str, Estimate]
    lacks: tuple[str, ...]


@dataclass(frozen=True)
class Changes:
    """From one grid to a finer one, over comparable runs: the same docs, prompts and settings at both."""

    coarse: int
    fine: int
    benchmarks: tuple[str, ...]
    shared: tuple[str, ...]
    lines: tuple[Change, ...]
    bases: Mapping[str, Basis]
    by: By = _INDEX


def number_of(groups: Iterable[Group], by: By) -> By:
    """Return the number that means over several groups are of: the index with luck removed where each of them is ranked by it."""
    if by.key == "adj":
        return by
    found = {how.key for group in groups for how, why in [choose(group.entries, _INDEX)] if why}
    return BY["adj"] if found == {"adj"} else _INDEX


def shared_benchmarks(have: Mapping[T, Collection[str]]) -> tuple[str, ...]:
    """The benchmarks to take means over: starting from the one that most models have, the next is always the one that the fewest models lack;
    of these sets the one with the most numbers in it (models × benchmarks), with at least two models where that is possible.

    It depends on who has what, never on what the numbers are. Equal sets: more models, then the alphabet.

    >>> shared_benchmarks({"a": ["x", "y"], "b": ["x", "y"], "c": ["z"]})
    ('x', 'y')
    """
    left = {model: set(benchmarks) for model, benchmarks in have.items()}
    rest, chosen = sorted({name for names in left.values() for name in names}), []
    best: tuple[tuple[bool, int, int], tuple[str, ...]] = ((False, 0, 0), ())
    while rest and left:
        following = min(rest, key=lambda name: (-sum(name in names for names in left.values()), name))
        rest.remove(following)
        chosen.append(following)
        left = {model: names for model, names in left.items() if following in names}
        score = (len(left) > 1, len(left) * len(chosen), len(left))
        if score > best[0]:
            best = score, tuple(sorted(chosen))
    return best[1]


def check_over(over: Collection[str], found: Board) -> None:
    """Whether some names are benchmarks of the board.

    Raises:
        OptionError: one is not.
    """
    known = sorted({group.base for group in found.of("index")})
    for name in over:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean {' or '.join(close)}?" if close else f"allowed: {', '.join(known[:20])}{', ...' if len(known) > 20 else ''}"
            raise OptionError(f"no benchmark {name!r} with an index on this board; {hint}")


def overall(found: Board, over: Collection[str] = ()) -> list[Overall]:
    """The table of each grid: all benchmarks, then those of each task type where there are several types.

    Args:
        found: the board.
        over: the benchmarks to take means over; empty: ``shared_benchmarks``.
    """
    out = []
    for grid in sorted({group.grid for group in found.of("index")}):
        main = {group.base: group for group in found.of("index") if group.grid == grid and group.number == 1}
        others = [group for group in found.of("index") if group.grid == grid and group.number > 1]
        types = {base: next((e.result.type for e in group.entries if e.result.type), "") for base, group in main.items()}
        out.append(_overall(found, grid, "", main, others, over))
        named = sorted({name for name in types.values() if name})
        for name in named if len(set(types.values())) > 1 else ():
            of_type = {base: group for base, group in main.items() if types[base] == name}
            out.append(_overall(found, grid, name, of_type, others, [base for base in over if base in of_type]))
    return out


def _overall(found: Board, grid: int, name: str, main: Mapping[str, Group], others: Sequence[Group], over: Collection[str]) -> Overall:
    entries = {base: {entry.identity: entry for entry in group.entries} for base, group in main.items()}
    elsewhere = {(group.base, entry.identity) for group in others for entry in group.entries}
    models = {entry.identity for one in entries.values() for entry in one.values()} | {identity for base, identity in elsewhere if base in main}
    how = number_of(main.values(), found.by)
    cells = {model: _cells(entries, model, how) for model in models}
    shared = tuple(sorted(over)) or shared_benchmarks(cells)
    lines = []
    for model in models:
        lacks = tuple(_lack(base, entries[base].get(model), (base, model) in elsewhere, how) for base in shared if base not in cells[model])
        whole = bool(shared) and not lacks
        means = [cells[model][base] for base in shared] if whole else []
        lines.append(Line(found.models[model], cells[model], _mean(means, mean_size), _mean(means, mean_index), None, lacks))
    return Overall(grid, name, tuple(sorted(main)), shared, _placed(lines), _bases(main), how)


def _bases(groups: Mapping[str, Group]) -> dict[str, Basis]:
    return {base: Basis(one.id, tuple(sorted({e.result.docs for e in one.entries})), one.limits) for base, one in sorted(groups.items())}


def _cells(entries: Mapping[str, Mapping[Identity, Entry]], model: Identity, how: By) -> dict[str, Estimate]:
    out = {}
    for base, by_model in sorted(entries.items()):
        entry = by_model.get(model)
        if entry is not None and not why_not(entry, how):
            out[base] = _number(entry, how)
    return out


def _number(entry: Entry, how: By) -> Estimate:
    return entry.number("adj" if how.corrected else "index")


def _lack(base: str, entry: Entry | None, elsewhere: bool, how: By) -> str:
    if entry is not None:
        return f"{base} ({entry.result.gate_word if entry.result.gate == 0 else why_not(entry, how)})"
    return f"{base} (only with other settings)" if elsewhere else f"{base} (not run)"


def _mean(estimates: Sequence[Estimate], of: Callable[[Sequence[Point]], Estimate]) -> Estimate | None:
    """As the report gives it (``report.models``); its ``n`` is the number of docs of all benchmarks.

    An index that is shown as 1.00, as cells mislead, counts as 1, as unsure as it is: a mean must follow from what the table shows.
    """
    if not estimates:
        return None
    found = of([_point(one) for one in estimates])
    return dataclasses.replace(found, n=sum(one.n for one in estimates), clusters=sum(one.clusters for one in estimates))


def _point(one: Estimate) -> Point:
    """Return an index as ``report.models`` averages it; one that is shown as 1.00 is moved to 1, and keeps the width of its interval."""
    by = one.value - 1 if reading.misleads(one) and one.value is not None else 0.0
    value, low, high = (None if end is None else end - by for end in (one.value, one.low, one.high))
    return Point("", "", 0, value, low, high, one.n, "", True, "", one.level)


def _placed(lines: Sequence[Line]) -> tuple[Line, ...]:
    ranked = [(line.mean_abs.value, line) for line in lines if line.mean_abs is not None and line.mean_abs.value is not None]
    ranked.sort(key=lambda one: (one[0], one[1].model))
    spans = [badness(line.mean_abs, _INDEX, True)[1] for _, line in ranked if line.mean_abs is not None]
    first = [dataclasses.replace(line, place=place) for (_, line), place in zip(ranked, places(spans), strict=True)]
    rest = sorted((line for line in lines if line.mean_abs is None), key=lambda line: line.model)
    return (*first, *rest)


# --- from one grid to a finer one -----------------------------------------------------------------


def changes(found: Board, over: Collection[str] = ()) -> list[Changes]:
    """From each grid to the next finer one: how much the index changes, relative to the coarser one."""
    grids = sorted({group.grid for group in found.of("index")})
    return [one for coarse, fine in itertools.pairwise(grids) if (one := _changes(found, coarse, fine, over)) is not None]


def _changes(found: Board, coarse: int, fine: int, over: Collection[str]) -> Changes | None:
    firsts = {group.base: group for group in found.of("index") if group.grid == coarse and group.number == 1}
    finer = {(group.base, group.id): group for group in found.of("index") if group.grid == fine}
    pairs: dict[Identity, dict[str, tuple[Estimate, Estimate]]] = {}
    both = [(group, same) for base, group in firsts.items() if (same := finer.get((base, group.id)))]
    how = number_of([group for pair in both for group in pair], found.by)
    for group, same in both:
        theirs = {entry.identity: entry for entry in same.entries}
        for entry in group.entries:
            other = theirs.get(entry.identity)
            if other is not None and not why_not(entry, how) and not why_not(other, how):
                pairs.setdefault(entry.identity, {})[group.base] = _number(entry, how), _number(other, how)
    if not pairs:
        return None
    shared = tuple(sorted(over)) or shared_benchmarks(pairs)
    lines = [_line(found.models[model], cells, shared) for model, cells in pairs.items()]
    lines.sort(key=lambda line: (bool(line.lacks), line.model))
    benchmarks = tuple(sorted({base for cells in pairs.values() for base in cells}))
    return Changes(coarse, fine, benchmarks, shared, tuple(lines), _bases({base: firsts[base] for base in benchmarks}), how)


def _line(model: str, cells: Mapping[str, tuple[Estimate, Estimate]], shared: Sequence[str]) -> Change:
    lacks = tuple(base for base in shared if base not in cells)
    whole = bool(shared) and not lacks
    mean: Callable[[int], float | None] = lambda i: sum(_value(cells[base][i]) for base in shared) / len(shared) if whole else None  # noqa: E731
    coarse, fine = mean(0), mean(1)
    return Change(model, coarse, fine, relative_change(coarse, fine), {base: _change(*pair) for base, pair in sorted(cells.items())}, lacks)


def _value(estimate: Estimate) -> float:
    assert estimate.value is not None
    return estimate.value


def _change(coarse: Estimate, fine: Estimate) -> Estimate:
    """Without an interval; null where the coarser index may be 0: a ratio to it says nothing."""
    near = coarse.low is None or coarse.high is None or coarse.low <= 0 <= coarse.high
    value = None if near else relative_change(coarse.value, fine.value)
    reason = f"the coarser index, {_value(coarse):.3f}, cannot be told from 0" if near else ""
    return Estimate(value, None, None, None, coarse.n, coarse.clusters, 0, coarse.level, reason)
