"""What the indices say of benchmarks (RCI's reading): Table 2, bands, agreement of models, fit for an application, calibration, cells. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lmms_patch.ask.kinds import OF_IMAGES, Kind, Words
from lmms_patch.present.report.data import Entry, Shares
from lmms_patch.present.report.points import Point, as_steady, benchmarks, columns, listed, medium_of, model_names
from lmms_patch.present.report.run_sheets import band_text
from lmms_patch.present.sheets import Cell, Column, Row, Sheet, used
from lmms_patch.runs import reading
from lmms_patch.stats.correlation import FEWEST, pearson, percentile_ranks, spearman
from lmms_patch.stats.index import fragmentation
from lmms_patch.stats.resample import LEVEL, Array, Estimate

FEWEST_RANKED = 5
"""Percentiles of fewer benchmarks are not given."""
WIDEST_MATRIX = 12
WIDEST_CELLS = 4
_BENCHMARK = Column("benchmark")
_MODEL = Column("model")
Pair = tuple[str, int]


def label(column: Pair, words: Words = OF_IMAGES) -> str:
    """Return ``<model>, n=<grid>``: a column of Table 2, which ``published.read`` reads back.

    In time it is ``<model>, 4 segments``.
    """
    return f"{column[0]}, {words.size(column[1])}" if words.instead else f"{column[0]}, n={column[1]}"


def _grid(words: Words) -> Column:
    """Return the column of grid sizes."""
    return (
        Column("n", words.parts, help=f"how many {words.parts} a clip is cut into")
        if words.instead
        else Column("n", "grid n", help="n x n cells")
    )


def _named(words: Words, name: str) -> str:
    """Return the name of a table, which its files have too."""
    return f"{name}_time" if words.instead else name


def _index(words: Words) -> str:
    """Return what the index is called."""
    return "TRCI" if words.instead else "RCI"


def sheets(entries: Sequence[Entry], points: Sequence[Point]) -> list[Sheet]:
    """Return all tables across benchmarks; those without rows are left out.

    Args:
        entries: the results.
        points: their indices, all in space or all in time (``points.of_medium``).
    """
    if not points:
        return cells(entries)
    several = [
        # The paper's applications are for images only.
        *([] if medium_of(points).instead else [fit(points)]),
        percentiles(points),
        *([matrix(points)] if len(benchmarks(points)) >= FEWEST and len(columns(points)) <= WIDEST_MATRIX else []),
        correlations(points),
    ]
    made = [
        table2(points),
        table2(points, steady=True),
        bands(points),
        indices(points),
        not_read(points),
        *(several if len(model_names(points)) > 1 else []),
        *cells(entries),
    ]
    return [sheet for sheet in made if sheet.rows]


# --- Table 2 --------------------------------------------------------------------------------------


def cell(point: Point | None) -> Cell:
    """Return a point as a cell: a bare number for a published value without an interval."""
    if point is None:
        return None
    if point.valid and point.low is None and not point.docs and not point.words:
        return point.value
    return point.estimate


def _layout(
    points: Sequence[Point], of_cell: Callable[[Point | None], Cell], *, steady: bool = False
) -> tuple[list[Row], tuple[Column, ...]]:
    """Return the rows and the columns of a table of benchmarks by (model, grid)."""
    words = medium_of(points)
    heads = tuple(
        Column(
            label(pair, words),
            f"{pair[0]}, {reading.name(_index(words), pair[1], steady=steady)}",
            signed=True,
            index=True,
            help=f"{reading.name(_index(words), steady=steady)} of {pair[0]} "
            + (f"on {words.each(pair[1])}" if words.instead else f"on the {pair[1]}x{pair[1]} grid"),
        )
        for pair in columns(points)
    )
    known = {(point.benchmark, point.model, point.n): point for point in points}
    rows: list[Row] = [
        {label(pair, words): of_cell(known.get((b, *pair))) for pair in columns(points)} | {"benchmark": b}
        for b in benchmarks(points)
    ]
    return rows, (_BENCHMARK, *heads)


def table2(points: Sequence[Point], *, steady: bool = False) -> Sheet:
    """Return benchmarks by (model, grid), as the RCI paper's Table 2: of RCI, or a second table of steady RCI, where docs were asked again."""
    words = medium_of(points)
    index, name = _index(words), reading.name(_index(words), steady=steady)
    title = f"{name[0].upper()}{name[1:]} by benchmark and model"
    file = f"{index.lower()}{'_steady' * steady}"
    if steady and all(p.steady is None for p in points):
        return Sheet(file, title, (), ())
    rows, heads = _layout(points, _steady_cell if steady else cell, steady=steady)
    raw = "1 - MPP/FIP, of one pass. Below 0 one cell beats the whole image, above 0 the task needs more than one cell"
    told = [words.say("Of the docs answered with their image, the share that needs all of it" if steady else raw)]
    told += ["N/A: refused by its gate, or not defined"]
    told += [CONTRADICTED] if not steady and any(p.contradicted for p in points) else []
    told += [] if words.instead else [fragmentation(n) for n in sorted({p.n for p in points}) if fragmentation(n)]
    return Sheet(file, title, heads, rows, ". ".join(told) + ".")


def _steady_cell(point: Point | None) -> Cell:
    """Return the steady index of a point as a cell."""
    if point is None or not point.valid:
        return cell(point)
    return cell(as_steady(point)) if point.steady is not None else "not asked again"


CONTRADICTED = "Contradicted: the steady index lies in a band that does not touch that of the index, of which less than 0 counts as 0"


def bands(points: Sequence[Point]) -> Sheet:
    """Return the same table in words: bands (RCI paper, 3.2), as far as the interval reaches."""
    rows, heads = _layout(points, _told)
    words = medium_of(points)
    heads = tuple(Column(head.key, head.title) for head in heads)
    note = "Up to -0.30 strong local, up to -0.10 moderate local, up to 0.10 balanced, under 0.30 moderate global, from 0.30 strong global. "
    return Sheet(
        _named(words, "bands"),
        f"Bands of {_index(words)}",
        heads,
        rows,
        note + "Where a number has an interval, all bands that it reaches.",
    )


def _words(point: Point | None) -> str | None:
    """Return the bands within reach of an index, in words; None without a result."""
    if point is None:
        return None
    made = cell(point)
    if isinstance(made, float):
        made = Estimate(made, None, None, None, 0, 0, 0)
    return (band_text(made) if isinstance(made, Estimate) else None) or "N/A"


def _told(point: Point | None) -> str | None:
    """Return the bands in words, and what stands beside the index."""
    words = _words(point)
    return None if point is None or words is None else ", ".join([words, *point.words])


def indices(points: Sequence[Point]) -> Sheet:
    """Return all points as a table, an index per row, readable by ``published.read``."""
    words = medium_of(points)
    # The column's name tells ``published.read`` that the indices are in time.
    index = "trci" if words.instead else "index"
    rows: list[Row] = [
        {
            "benchmark": p.benchmark,
            "model": p.model,
            "n": p.n,
            index: cell(p),
            "band": _told(p),
            "docs": p.docs,
            "type": p.type or None,
            "source": p.source or None,
        }
        for p in points
    ]
    heads = (
        _BENCHMARK,
        _MODEL,
        _grid(words),
        Column(index, _index(words), signed=True, index=True),
        Column("band"),
        Column("docs"),
        Column("type"),
        Column("source", "from"),
    )
    return Sheet(
        _named(words, "indices"),
        "All indices",
        used(heads, rows),
        rows,
        "This table can be given back with --from-csv.",
    )


def not_read(points: Sequence[Point]) -> Sheet:
    """Return the points without a readable index, with the reason."""
    rows: list[Row] = [
        {"benchmark": p.benchmark, "model": p.model, "n": p.n, "reason": p.reason} for p in points if not p.valid
    ]
    note = "They are in no mean, no rank and no correlation."
    words = medium_of(points)
    heads = (_BENCHMARK, _MODEL, _grid(words), Column("reason", "why"))
    return Sheet(_named(words, "no_index"), "Without an index, and why", heads, rows, note)


# --- agreement ------------------------------------------------------------------------------------


def correlation(points: Sequence[Point], one: Pair, other: Pair) -> tuple[Estimate, float | None]:
    """Return Pearson's r and Spearman's rho between two columns, over benchmarks with a readable index in both."""
    sides: list[dict[str, float]] = [
        {p.benchmark: p.value for p in points if (p.model, p.n) == pair and p.valid and p.value is not None}
        for pair in (one, other)
    ]
    shared = [b for b in sides[0] if b in sides[1]]
    x, y = ([side[b] for b in shared] for side in sides)
    return pearson(x, y), spearman(x, y)


def by_pair(points: Sequence[Point]) -> dict[tuple[Pair, Pair], tuple[Estimate, float | None]]:
    """Return ``correlation`` of each pair of columns."""
    kept: dict[Pair, list[Point]] = {}
    for point in points:
        kept.setdefault((point.model, point.n), []).append(point)
    return {(a, b): correlation([*kept[a], *kept[b]], a, b) for a, b in itertools.combinations(columns(points), 2)}


AGREE = (
    f"Pearson's r over benchmarks, {100 * LEVEL:g} % interval by Fisher's z: "
    "as if the benchmarks were a random sample of such, which they are not quite. "
    "Columns of one model share its answers to the full images, so they agree by construction."
)


def correlations(points: Sequence[Point]) -> Sheet:
    """Return each pair of (model, grid) columns: r with its interval, rho, and over how many benchmarks."""
    words = medium_of(points)
    rows: list[Row] = [
        {
            "first": label(a, words),
            "second": label(b, words),
            "r": r,
            "rho": rho,
            "benchmarks": r.n,
            "why": r.reason or None,
        }
        for (a, b), (r, rho) in by_pair(points).items()
    ]
    heads = (
        Column("first"),
        Column("second"),
        Column("r", "Pearson r", help="-1..1, with Fisher's interval"),
        Column("rho", "Spearman rho", help="of the ranks, -1..1"),
        Column("benchmarks", help="that both columns have"),
        *((Column("why", "why not"),) if any(row["why"] for row in rows) else ()),
    )
    return Sheet(
        _named(words, "correlations"), "Do models agree on benchmarks? Each pair", heads, rows, words.say(AGREE)
    )


def matrix(points: Sequence[Point]) -> Sheet:
    """Return the same as a square table."""
    pairs, by_columns, words = columns(points), by_pair(points), medium_of(points)
    rows = []
    for a in pairs:
        row: Row = {"column": label(a, words)}
        for b in pairs:
            row[label(b, words)] = 1.0 if a == b else (by_columns.get((a, b)) or by_columns[b, a])[0]
        rows.append(row)
    heads = (
        Column("column", f"{_index(words)} of"),
        *(Column(label(pair, words)) for pair in pairs),
    )
    return Sheet(_named(words, "correlation_matrix"), "Do models agree on benchmarks?", heads, rows, words.say(AGREE))


# --- fit for an application -----------------------------------------------------------------------


@dataclass(frozen=True)
class Domain:
    """A row of the RCI paper's Table 6.

    Attributes:
        key, title: for tables.
        advice: the paper's recommended range.
        bands: what we take it to be: the bands that fit.
        cut: the same as numbers.
    """

    key: str
    title: str
    advice: str
    bands: frozenset[str]
    cut: str


DOMAINS = (
    Domain(
        "scene", "driving, remote sensing, diagnostics", "high (>> 0)", frozenset({"strong global"}), "0.30 or more"
    ),
    Domain(
        "document",
        "documents, charts, visual analytics",
        "medium to high (0 or a little less, and up)",
        frozenset({"balanced", "moderate global", "strong global"}),
        "above -0.10",
    ),
    Domain(
        "inspection",
        "faces, fine-grained inspection, defects",
        "low (0 or a little more, and down)",
        frozenset({"strong local", "moderate local", "balanced"}),
        "up to 0.10",
    ),
    Domain("general", "general VQA, open world", "medium (near 0)", frozenset({"balanced"}), "above -0.10, up to 0.10"),
)
FITS, FITS_NOT, UNCLEAR = "fits", "does not", "unclear"


def fits(point: Point, domain: Domain) -> str:
    """Return whether the whole interval (the number itself, where there is none) lies in the domain's bands, outside of them, or neither."""
    if not point.valid or point.value is None or point.contradicted:
        return UNCLEAR
    words = _words(point)
    reached = set(_reached(str(words)))
    return FITS if reached <= domain.bands else FITS_NOT if not reached & domain.bands else UNCLEAR


_ORDER = ("strong local", "moderate local", "balanced", "moderate global", "strong global")


def _reached(words: str) -> tuple[str, ...]:
    first, _, last = words.partition(" to ")
    return _ORDER[_ORDER.index(first) : _ORDER.index(last or first) + 1]


def fit(points: Sequence[Point]) -> Sheet:
    """Return which benchmarks fit which application (RCI paper, Table 6): by every model's interval."""
    rows: list[Row] = []
    for n in sorted({p.n for p in points}):
        for b in benchmarks(points):
            known = [p for p in points if p.n == n and p.benchmark == b and p.valid and p.value is not None]
            if not known:
                continue
            ends = [
                end
                for p in known
                for end in (p.low if p.low is not None else p.value, p.high if p.high is not None else p.value)
                if end is not None
            ]
            verdicts = {d.key: {fits(p, d) for p in known} for d in DOMAINS}
            agreed: Row = {key: next(iter(said)) if len(said) == 1 else UNCLEAR for key, said in verdicts.items()}
            rows.append(
                {"benchmark": b, "n": n, "models": len(known), "lowest": min(ends), "highest": max(ends), **agreed}
            )
    heads = (
        _BENCHMARK,
        _grid(OF_IMAGES),
        Column("models"),
        Column("lowest", signed=True, help="lower end of the lowest interval, or the lowest number"),
        Column("highest", signed=True, help="upper end of the highest interval, or the highest number"),
        *(Column(d.key, d.title, help=f"recommended: {d.advice}; taken as {d.cut}") for d in DOMAINS),
    )
    cuts = "; ".join(f"{d.title}: {d.cut}" for d in DOMAINS)
    note = (
        "After the RCI paper's Table 6, which gives only signs (>> 0, near 0, ...); the cut points are ours, from its bands: "
        f"{cuts}. Fits, does not: by the whole interval of every model; unclear: an interval reaches over the cut, models disagree, or "
        "the steady index contradicts the other."
    )
    return Sheet("fit", "Fit for an application", heads, rows, note)


# --- calibration ----------------------------------------------------------------------------------


def percentiles(points: Sequence[Point]) -> Sheet:
    """Return each benchmark's percentile rank among those given, per model and grid (RCI paper, 3.2)."""
    words = medium_of(points)
    out: dict[str, Row] = {b: {"benchmark": b} for b in benchmarks(points)}
    heads: list[Column] = []
    few = []
    for pair in columns(points):
        known = [p for p in points if (p.model, p.n) == pair and p.valid and p.value is not None]
        if len(known) < FEWEST_RANKED:
            few.append(label(pair, words))
            continue
        for p, rank in zip(known, percentile_ranks([p.value for p in known if p.value is not None]), strict=True):
            out[p.benchmark][label(pair, words)] = float(100 * rank)
        heads.append(Column(label(pair, words), digits=0, help=f"percent, among {len(known)} benchmarks"))
    rows = [row for row in out.values() if len(row) > 1]
    note = (
        "Percent of the benchmarks given whose index is lower, ties and itself counting half: 50 is the middle. "
        f"It says how a benchmark compares with these {len(rows)}, not with benchmarks at large."
    )
    note += f" Not for {listed(few, 6)}: fewer than {FEWEST_RANKED} benchmarks." if few else ""
    return Sheet(
        _named(words, "percentiles"), "Percentile among the benchmarks given", (_BENCHMARK, *heads), rows, note
    )


FEWEST_SCORING = 10
"""Docs with a cell that scores; from fewer, shares are one doc's accident."""


# --- cells ----------------------------------------------------------------------------------------


def readable(entries: Sequence[Entry], n: int, kind: Kind) -> list[tuple[Entry, Shares]]:
    """Return the results with meaningful cell shares at a grid, of the kind's medium, and these shares.

    Not those whose gate fails (every cell says the same, or guesses), nor those of a handful of docs that score.
    """
    of_medium = [entry for entry in entries if entry.kind.shape(n) == kind.shape(n)]
    kept = [
        (entry, found)
        for entry in of_medium
        if n in entry.grids and entry.whole.gate != 0 and (found := entry.whole.shares(n))
    ]
    return [(entry, found) for entry, found in kept if (docs := _scoring(entry, n)) is None or docs >= FEWEST_SCORING]


def _scoring(entry: Entry, n: int) -> float | None:
    """Return an estimate of the number of docs with a scoring cell: MPP / ceiling × docs.

    None where that is not known.
    """
    best, ceiling = entry.whole.measures.get(f"mpp{n}"), entry.whole.measures.get("ceiling")
    if best is None or ceiling is None or best.value is None or not ceiling.value:
        return None
    return best.value / ceiling.value * best.n


def cells(entries: Sequence[Entry]) -> list[Sheet]:
    """Return a table per grid of the places in image or clip from which the score comes.

    The last row is the mean over results (RCI paper, figure 3).
    """
    kinds = {(entry.kind.needs_video, n): entry.kind for entry in entries for n in entry.grids}
    return [
        sheet
        for (_, n), kind in sorted(kinds.items(), key=lambda one: one[0])
        if (sheet := _cells(readable(entries, n, kind), n, kind)).rows
    ]


def _cells(known: Sequence[tuple[Entry, Shares]], n: int, kind: Kind) -> Sheet:
    """Return the table of a grid: each result's share of every cell, and the mean over results."""
    lines, across = kind.shape(n)
    places = {f"r{row + 1}c{col + 1}": f"row {row + 1} col {col + 1}" for row in range(lines) for col in range(across)}
    if kind.needs_video:
        places = {f"s{i + 1}": f"segment {i + 1}" for i in range(across)}
    names = list(places)
    rows: list[Row] = []
    for entry, found in known:
        about: Row = {
            "benchmark": entry.base,
            "model": entry.model,
            "docs": found.docs,
            "p": found.p,
            "centre": found.centre,
        }
        rows.append({**about, **_share_row(names, found.score)})
    if len(rows) > 1:
        rows.append(
            {
                "benchmark": f"mean of {len(rows)} results",
                **_share_row(names, np.mean([found.score for _, found in known], axis=0)),
            }
        )
    wide = len(names) <= WIDEST_CELLS**2
    heads = (
        _BENCHMARK,
        _MODEL,
        Column("docs"),
        Column("p", help=f"permutation test of an even spread over {kind.words.parts}"),
        *((Column("centre", help="score share of the middle over its share of the area: 1 is even"),) if n > 2 else ()),
        Column(
            "most",
            "largest",
            help=kind.words.say("row and column of the cell with the largest share")
            if lines > 1
            else "segment with the largest share",
        ),
        *(
            Column(name, title, digits=1, help=f"percent of all {kind.words.parts}' score")
            for name, title in places.items()
            if wide
        ),
    )
    note = (
        f"Percent of the score that all {kind.words.parts} earn in isolation (RCI paper, 3.3); even would be {100 / kind.cells(n):.1f} each. "
        f"Without results that the gate refuses, or with fewer than {FEWEST_SCORING} docs that score in any {kind.words.part}."
    )
    return Sheet(f"{kind.words.parts}{n}", f"Where the score comes from, {kind.words.size(n, 'x')}", heads, rows, note)


def _share_row(names: Sequence[str], score: Array) -> Row:
    """Return the cells of a row: each share in percent, and where the largest is."""
    return {
        **{name: 100 * float(share) for name, share in zip(names, score, strict=True)},
        "most": names[int(np.argmax(score))],
    }
