"""Means over benchmarks, only over those that all ranked models share in comparable runs. Pure."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lmms_patch.errors import OptionError, nearest
from lmms_patch.present import ranking
from lmms_patch.present.board.board import (
    INDICES,
    Board,
    Entry,
    Group,
    Identity,
    most_called,
    steady,
    why_not,
)
from lmms_patch.present.ranking import BY, INDEX, By, Place, mean_index, shared_benchmarks
from lmms_patch.runs import reading
from lmms_patch.stats.resample import Estimate


@dataclass(frozen=True)
class Line:
    """A model's row in a table over benchmarks.

    Attributes:
        model: as it is shown.
        cells: its index by benchmark, where it has one in comparable runs.
        missing: of each other benchmark, why it has none there.
        scores: its FIP by benchmark, where it has a result in comparable runs.
        mean_abs: mean of the index's distance from 0 over the shared benchmarks, with an interval; None where it lacks
        some of them.
        mean: mean of the index itself, with its sign.
        score: mean of FIP over the shared benchmarks; None where it lacks some of them, or where not all of these
        scores are fractions.
        place: its range of places by ``mean_abs``.
        lacks: shared benchmarks that it has no index for, each with the reason.
    """

    model: str
    cells: Mapping[str, Estimate]
    missing: Mapping[str, str]
    scores: Mapping[str, Estimate]
    mean_abs: Estimate | None
    mean: Estimate | None
    score: Estimate | None
    place: Place | None
    lacks: tuple[str, ...]


@dataclass(frozen=True)
class Basis:
    """The runs behind a benchmark's numbers: the runs of its group 1.

    Attributes:
        group: ``Group.id``.
        docs: numbers of docs that its runs asked, rising; several only where the number of docs is ignored.
        limits: their limits; ``("all",)`` where all are whole runs.
        sampled: how many of the runs asked only a part of the docs, and estimate the rest.
    """

    group: str
    docs: tuple[int, ...]
    limits: tuple[str, ...]
    sampled: int = 0

    @property
    def whole(self) -> bool:
        """Whether no run had a limit."""
        return self.limits == ("all",)


@dataclass(frozen=True)
class Overall:
    """A table of models × benchmarks at a grid.

    Attributes:
        grid: its size.
        type: the papers' task type that it is of; "" for all benchmarks.
        benchmarks: all of them.
        shared: those that the means are over: every ranked model has all of them.
        lines: ranked models first, best first; then the others.
        bases: what the numbers of each benchmark rest on.
        by: what its numbers are: the index, or the steady index.
        kind: ``Group.kind``: cells and segments are never in one mean.
        index: what its numbers are called, such as ``RCI`` (``Group.index``).
    """

    grid: int
    type: str
    benchmarks: tuple[str, ...]
    shared: tuple[str, ...]
    lines: tuple[Line, ...]
    bases: Mapping[str, Basis]
    by: By
    kind: str
    index: str


@dataclass(frozen=True)
class Change:
    """A model's change between two grids.

    Attributes:
        model: as it is shown.
        coarse, fine: mean index over the shared benchmarks; None where it lacks some.
        change: how much the mean changes (``ranking.change``); None where it lacks some.
        cells: the same of each benchmark.
        lacks: shared benchmarks that it lacks.
    """

    model: str
    coarse: Estimate | None
    fine: Estimate | None
    change: Estimate | None
    cells: Mapping[str, Estimate]
    lacks: tuple[str, ...]


@dataclass(frozen=True)
class Changes:
    """The changes from a grid to a finer grid, over runs with equal docs, prompts and settings.

    ``index`` as of ``Overall``.
    """

    coarse: int
    fine: int
    benchmarks: tuple[str, ...]
    shared: tuple[str, ...]
    lines: tuple[Change, ...]
    bases: Mapping[str, Basis]
    by: By
    index: str


def number_of(groups: Iterable[Group], by: By) -> By:
    """Return the number for means over several groups (``ranking.means_by_steady``)."""
    return (
        BY["steady"]
        if by.key == "steady" or ranking.means_by_steady(steady(group.entries) for group in groups)
        else INDEX
    )


def check_over(over: Collection[str], board: Board) -> None:
    """Refuse names of no benchmark on the board.

    Raises:
        OptionError: one is not.
    """
    known = sorted({group.base for group in board.groups if group.has_index})
    for name in over:
        if name not in known:
            close = nearest(name, known)
            hint = (
                f"did you mean {' or '.join(close)}?"
                if close
                else f"allowed: {', '.join(known[:20])}{', ...' if len(known) > 20 else ''}"
            )
            raise OptionError(f"no benchmark {name!r} with an index on this board; {hint}")


def overall(board: Board, over: Collection[str] = ()) -> list[Overall]:
    """Return the table of each grid: all benchmarks, then those of each task type where there are several types.

    Then those of segments.

    Args:
        board: the board.
        over: the benchmarks to take means over; empty: ``ranking.shared_benchmarks``.
    """
    return [table for kind in INDICES for table in _of_kind(board, kind, over)]


def _of_kind(board: Board, kind: str, over: Collection[str]) -> Iterator[Overall]:
    """Yield the tables for a kind of index, over the benchmarks of ``over`` with this index."""
    groups = [group for group in board.of(kind) if group.has_index]
    # A benchmark that has no index of this kind cannot be in its means.
    over = [base for base in over if any(group.base == base for group in groups)]
    for grid in sorted({group.grid for group in groups}):
        main = {group.base: group for group in groups if group.grid == grid and group.number == 1}
        others = [group for group in groups if group.grid == grid and group.number > 1]
        types = {
            base: next((e.result.type for e in group.entries if e.result.type), "") for base, group in main.items()
        }
        yield _overall(board, grid, "", main, others, over)
        named = sorted({name for name in types.values() if name})
        # With a single task type the table of this type would repeat the table of all.
        for name in named if len(set(types.values())) > 1 else ():
            of_type = {base: group for base, group in main.items() if types[base] == name}
            yield _overall(board, grid, name, of_type, others, [base for base in over if base in of_type])


def _overall(
    board: Board, grid: int, name: str, main: Mapping[str, Group], others: Sequence[Group], over: Collection[str]
) -> Overall:
    """Return the table of means over benchmarks at a grid; models with all shared benchmarks are ranked."""
    entries = {base: {entry.identity: entry for entry in group.entries} for base, group in main.items()}
    elsewhere = {(group.base, entry.identity) for group in others for entry in group.entries}
    models = {entry.identity for one in entries.values() for entry in one.values()} | {
        identity for base, identity in elsewhere if base in main
    }
    how = number_of(main.values(), board.by)
    cells = {model: _cells(entries, model, how) for model in models}
    shared = tuple(sorted(over)) or shared_benchmarks(cells)
    asked = [entry for base in shared for entry in entries.get(base, {}).values()]
    # FIP can only be averaged over benchmarks whose scores are fractions of full marks.
    fractions = all(e.result.higher_is_better and 0 < (e.number("ceiling").value or 0.0) <= 1 + 1e-9 for e in asked)
    lines = []
    for one in ranking.standings(cells, shared, board.models):
        mine, results = cells[one.model], {base: by_model.get(one.model) for base, by_model in entries.items()}
        missing = {
            base: _lack(results.get(base), (base, one.model) in elsewhere, how)
            for base in sorted({*main, *shared})
            if base not in mine
        }
        scores = {base: entry.number("fip") for base, entry in results.items() if entry is not None}
        lacks = tuple(f"{base} ({missing[base]})" for base in one.lacks)
        size, signed = (
            _of_docs(mean, [mine[base] for base in shared if base in mine]) for mean in (one.size, one.signed)
        )
        full = [scores[base] for base in shared] if one.place and fractions else []
        score = _of_docs(mean_index(full), full) if full else None
        lines.append(Line(board.models[one.model], mine, missing, scores, size, signed, score, one.place, lacks))
    kind = next((group.kind for group in main.values()), "index")
    return Overall(
        grid, name, tuple(sorted(main)), shared, tuple(lines), _bases(main), how, kind, name_of(main.values())
    )


def name_of(groups: Iterable[Group]) -> str:
    """Return what the indices of some groups are called: as most of their results are."""
    return most_called(entry for group in groups for entry in group.entries)


def _of_docs(mean: Estimate | None, indices: Sequence[Estimate]) -> Estimate | None:
    """Return a mean with the number of docs of all its benchmarks, not of benchmarks, as its ``n``."""
    if mean is None:
        return None
    return dataclasses.replace(mean, n=sum(one.n for one in indices), clusters=sum(one.clusters for one in indices))


def _bases(groups: Mapping[str, Group]) -> dict[str, Basis]:
    """Return on which runs the numbers of each benchmark rest: docs, limits, and how many runs are estimated from a part of the docs."""
    return {
        base: Basis(
            one.id,
            tuple(sorted({e.result.docs for e in one.entries})),
            one.limits,
            sum(e.sampled for e in one.entries),
        )
        for base, one in sorted(groups.items())
    }


def _cells(entries: Mapping[str, Mapping[Identity, Entry]], model: Identity, how: By) -> dict[str, Estimate]:
    """Return a model's rankable numbers by benchmark."""
    out = {}
    for base, by_model in sorted(entries.items()):
        entry = by_model.get(model)
        if entry is not None and not why_not(entry, how):
            out[base] = _number(entry, how)
    return out


def _number(entry: Entry, how: By) -> Estimate:
    return entry.number("steady" if how.steady else "index")


def _lack(entry: Entry | None, elsewhere: bool, how: By) -> str:
    """Return the reason why a model has no index on a benchmark of the means."""
    if entry is not None:
        return reading.gate_word(entry.gate) if entry.refused else why_not(entry, how)
    return "only with other settings" if elsewhere else "not run"


# --- from one grid to a finer one -----------------------------------------------------------------


def changes(board: Board, over: Collection[str] = ()) -> list[Changes]:
    """Return the relative change of the index from each grid to the next finer grid."""
    grids = sorted({group.grid for group in board.of("index") if group.has_index})
    return [
        one for coarse, fine in itertools.pairwise(grids) if (one := _changes(board, coarse, fine, over)) is not None
    ]


def _changes(board: Board, coarse: int, fine: int, over: Collection[str]) -> Changes | None:
    """Return the change of the index from a grid to a finer grid, over the results with both grids.

    None where no benchmark has both.
    """
    firsts = {group.base: group for group in board.of("index") if group.grid == coarse and group.number == 1}
    finer = {(group.base, group.id): group for group in board.of("index") if group.grid == fine}
    pairs: dict[Identity, dict[str, tuple[Estimate, Estimate]]] = {}
    both = [(group, same) for base, group in firsts.items() if (same := finer.get((base, group.id)))]
    how = number_of([group for pair in both for group in pair], board.by)
    for group, same in both:
        theirs = {entry.identity: entry for entry in same.entries}
        for entry in group.entries:
            other = theirs.get(entry.identity)
            if other is not None and not why_not(entry, how) and not why_not(other, how):
                pairs.setdefault(entry.identity, {})[group.base] = _number(entry, how), _number(other, how)
    if not pairs:
        return None
    shared = tuple(sorted(over)) or shared_benchmarks(pairs)
    lines = [_line(board.models[model], cells, shared) for model, cells in pairs.items()]
    lines.sort(key=lambda line: (bool(line.lacks), line.model))
    benchmarks = tuple(sorted({base for cells in pairs.values() for base in cells}))
    return Changes(
        coarse,
        fine,
        benchmarks,
        shared,
        tuple(lines),
        _bases({base: firsts[base] for base in benchmarks}),
        how,
        name_of(firsts.values()),
    )


def _line(model: str, cells: Mapping[str, tuple[Estimate, Estimate]], shared: Sequence[str]) -> Change:
    """Return a model's change: of the means over shared benchmarks, and of each benchmark."""
    lacks = tuple(base for base in shared if base not in cells)
    changed = {base: ranking.change(*pair) for base, pair in sorted(cells.items())}
    if lacks or not shared:
        return Change(model, None, None, None, changed, lacks)
    coarse, fine = (mean_index([cells[base][side] for base in shared]) for side in (0, 1))
    return Change(model, coarse, fine, ranking.change(coarse, fine), changed, lacks)
