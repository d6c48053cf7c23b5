"""The table of a finished run, in plain text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from lmms_patch import text
from lmms_patch.ask.spec import KINDS, OF_CLIPS, OF_IMAGES, REGIONS, Key, Kind, Words, by_medium, end, of_index
from lmms_patch.present import sheets
from lmms_patch.present.sheets import NOT_DEFINED, Cell, Column, Sheet, number
from lmms_patch.present.terminal import necessity
from lmms_patch.rci.analysis import ASSUMED
from lmms_patch.rci.pooling import Averaged, Pooled
from lmms_patch.rci.recompute import Analyzed
from lmms_patch.runs import catalogue, failures, numbers, reading
from lmms_patch.runs.numbers import EXTRA, Analysis, Grid, sets_in
from lmms_patch.runs.run import Result, read
from lmms_patch.stats.resample import LEVEL, Estimate

_OF_EARLIER_VERSIONS = {
    "text priors not removed from the adjusted index: run the blind task too": ASSUMED,
    "the corrected index rests on an assumed null: it may still contain text shortcuts, and must not be ranked by": ASSUMED,
}
"""Lines in results files of earlier versions, by what is said now."""


@dataclass(frozen=True)
class Shown:
    """One wrapped task, as the table shows it.

    Attributes:
        name: its name, with the filter where the task has several.
        described: what was wrapped and how.
        metrics: its numbers by name.
        analysis: what they are made of (``numbers.Analysis`` in plain JSON types); empty where there is none.
        frames_read: which frames of clips the adapter read (``runs.details.FramesRead`` in plain JSON types); empty where that is not recorded.
        kept: ``reading.kept``.
    """

    name: str
    described: Mapping[str, Any]
    metrics: Mapping[str, float | None]
    analysis: Mapping[str, Any] = field(default_factory=dict)
    frames_read: Mapping[str, Any] = field(default_factory=dict)
    kept: str = ""

    @property
    def kind(self) -> Kind:
        """The kind of the task."""
        return KINDS[self.described["kind"]]

    @property
    def words(self) -> Words:
        """What its parts are called."""
        return self.kind.words

    @property
    def index(self) -> str | None:
        """``rci``, ``pcri``, ``crci`` or ``trci``; None for a kind without an index."""
        return self.kind.index

    @property
    def grids(self) -> list[int]:
        """The grids with an index."""
        return list(self.described["grids"]) if self.index else []

    @property
    def regions(self) -> bool:
        """Whether docs' own boxes are shown in place of cells."""
        return self.kind.regions

    @property
    def points(self) -> tuple[Key, ...]:
        """What has a score of its own beside the first view (``Kind.points``)."""
        return self.kind.points(self.described["grids"])

    @property
    def refused(self) -> str:
        """Why the gate does not let the index be read, in a word or two; empty where it does."""
        if self.metrics.get("gate") != 0:
            return ""
        return reading.refusal(self.typed.gate.reason if self.typed else "")

    @cached_property
    def typed(self) -> Analysis | None:
        """The analysis as a type."""
        return numbers.read(self.analysis) if self.analysis else None

    def typed_set(self, key: Key) -> Grid | None:
        """Return the numbers of a set of views; None where there are none."""
        return self.typed.sets.get(key) if self.typed else None

    def set(self, key: Key) -> Mapping[str, Any]:
        """Return what is stored of a grid, or of a set of boxes; empty where nothing is."""
        return sets_in(self.analysis).get(str(key)) or {}


def load(path: Path) -> list[Shown]:
    """Return the wrapped tasks of a results file that show the image in some way, with the numbers of the run.

    Raises:
        RecordError: the file cannot be read.
    """
    return [_of(one, one.label) for one in read(path).results if not one.kind.folds and one.kind.name != "magic"]


def _of(result: Result, name: str) -> Shown:
    details = result.details
    return Shown(name, result.described, result.metrics, details.get("analysis") or {}, details.get("frames_read") or {}, reading.kept(details))


def recomputed(analyzed: Sequence[Analyzed]) -> list[Shown]:
    """Return the rows of the table with recomputed numbers."""
    return [_of(a.result, a.run.name) for a in analyzed]


def table(shown: Sequence[Shown], width: int | None = None) -> str:
    """Return one row per wrapped task: chance, FIP, MPP_n, the index with its interval, and the luck-corrected index.

    Scores are on the metric's own scale; ``N/A`` where a number is not defined, ``near chance`` or ``does not look`` where the gate
    says that the index means nothing. FIP, MPP and the index leave out the docs that the third column counts: where they are not the
    same docs at every grid, there is a FIP for each. Of docs with a failed call, all or some numbers are missing. What stands beside an
    index (``assumed null``, ``contradicted``, ...) is explained by ``warnings``. Tasks that show docs' own boxes have a table of their own, and so
    have tasks that cut clips in time, and those that do not show the whole image, whose score is no FIP.

    Args:
        shown: the tasks.
        width: characters in a line; where the table is wider, it has a row per grid and fewer columns. None: any.
    """
    of_boxes, points = [s for s in shown if s.regions], [s for s in shown if s.points]
    turned = [s for s in shown if s.kind.turns]
    others = [s for s in shown if s.kind.full and not (s.regions or s.points or s.kind.turns)]
    without = [s for s in shown if not (s.kind.full or s.points)]
    of_grids = by_medium(others, lambda s: s.words) + by_medium((s for s in turned if s.index), lambda s: s.words)
    parts = [_fitted(some, width) for _, some in of_grids] if shown else [_fitted([], width)]
    parts += [_shown_table(without).to_text(width)] if without else []
    parts += [_order_table(turned).to_text(width), _place_table(turned).to_text(width)] if turned else []
    for name in dict.fromkeys(s.kind.name for s in points):
        parts.append((_loss_table if KINDS[name].full else _curve_table)([s for s in points if s.kind.name == name]).to_text(width))
    hidden = [s for s in points if s.kind.hides]
    parts += [_hidden_table(hidden).to_text(width)] if hidden else []
    parts += [_region_table(of_boxes).to_text(width), _difference_table(of_boxes).to_text(width)] if of_boxes else []
    return "\n\n".join(parts)


def _fitted(shown: Sequence[Shown], width: int | None) -> str:
    """Return the table in the fullest form that fits a width.

    The forms: a row per task; a row per task and grid; that without what is said elsewhere; that with names above; the same in parts.
    """
    few = _by_grid(shown, full=False)
    made = _grid_table(shown).to_text()
    made = made if _fits(made, width) else _by_grid(shown, full=True).to_text()
    made = made if _fits(made, width) else few.to_text()
    made = made if _fits(made, width) else _names_above(few)
    return made if _fits(made, width) else few.to_text(width)


def _fits(made: str, width: int | None) -> bool:
    return width is None or max(map(cell_len, made.splitlines())) <= width


def _by_grid(shown: Sequence[Shown], *, full: bool) -> Sheet:
    """Return a row per task and grid.

    Args:
        shown: the tasks.
        full: with docs, chance, and the intervals of both indices; else the interval of the one that people should go by, and docs where some
            are left out.
    """
    noted = full or any("(" in _docs(s) for s in shown)
    occluded = any(s.described["kind"] == "occlude" for s in shown)
    indexed = any(s.index for s in shown) or not occluded
    words, name = _heads(shown)
    raw, corrected = (reading.name(name, corrected=which) for which in (False, True))
    columns = (
        ("task", True),
        ("parts" if words.instead else "grid", True),
        ("docs", noted),
        ("chance", full),
        ("full (FIP)" if full else "full", True),
        (f"best {words.part} (MPP)" if full else "best", indexed),
        ("worst cell hidden", occluded),
        (f"{raw} {_level(shown)}" if full else raw, indexed),
        (f"{corrected} {_level(shown)}", indexed),
    )
    rows = [_row_of_grid(s, n, full) for s in shown for n in s.described["grids"] or [None]]
    heads = [Column("", title, signed=name in title) for title, there in columns if there]
    return sheets.table(heads, [[cell for cell, (_, there) in zip(row, columns, strict=True) if there] for row in rows])


def _row_of_grid(shown: Shown, n: int | None, full: bool) -> list[Cell]:
    """Return all cells of a task at a grid; without a grid, those that it has."""
    metric, name = shown.described["metric"], f"{shown.index}{n}"
    grid = {} if n is None else shown.set(n)
    raw, adj = (_index(shown, name, n), _adjusted(shown, name, n)) if n is not None and shown.index else (None, None)
    if (
        not full
        and isinstance(raw, Estimate)
        and isinstance(adj, Estimate)
        and n is not None
        and reading.null_of(shown.typed_set(n)) == reading.MEASURED
    ):
        raw = ", ".join([number(raw.value, signed=True), *(word for word in reading.words(raw) if word not in reading.words(adj))])
    scores = [_or_na(shown.metrics[key]) if (key := f"{metric}_{what}{n}") in shown.metrics else None for what in ("mpp", "drop")]
    fip = _fip_text(shown) if grid.get("fip") is None else number(grid["fip"])
    return [shown.name, None if n is None else shown.words.size(n, "x"), _docs(shown), _or_na(shown.metrics.get("chance")), fip, *scores, raw, adj]


def _heads(shown: Sequence[Shown]) -> tuple[Words, str]:
    """Return the words of the tasks of a table, which are all of one medium, and what its index is called."""
    kind = shown[0].kind if shown else KINDS["rci"]
    return (OF_CLIPS if kind.needs_video else OF_IMAGES), _name(kind)


def _name(kind: Kind) -> str:
    """Return what the column of an index is called, where all tasks of a table are of the kind's medium; PCRI has that of RCI."""
    return "TRCI" if kind.needs_video else str(kind.index).upper() if kind.every_order else "RCI"


def _names_above(sheet: Sheet) -> str:
    """Return a table whose first column stands on lines of its own, each above the rows that begin with it."""
    first, *others = sheet.columns
    head, rule, *lines = Sheet("", "", (Column("", "  "), *others), sheet.rows).to_text().splitlines()
    out = [head, rule]
    for place, (row, line) in enumerate(zip(sheet.rows, lines, strict=True)):
        name = row[first.key]
        out += [*([text.line(name)] if place == 0 or name != sheet.rows[place - 1][first.key] else []), line]
    return "\n".join(out)


def _level(shown: Sequence[Shown]) -> str:
    """Return the coverage of the intervals, for a head; files in which no number says it have the default."""
    levels = (one.get("level") for s in shown for one in [s.analysis.get("fip") or {}])
    return f"[{100 * next(filter(None, levels), LEVEL):.3g} %]"


def _or_na(cell: Cell) -> Cell:
    return NOT_DEFINED if cell is None else cell


def _shown_table(shown: Sequence[Shown]) -> Sheet:
    """Return one row per task that does not show the whole image: what it shows in its place, and the score on that."""
    swapped = [s for s in shown if s.kind.swapped]
    grids = sorted({n for s in swapped for n in s.described["grids"]})
    heads: list[str | Column] = ["task", "shown", "metric", "docs", "chance", "score", *(f"best of {swapped[0].kind.cells(n)} cells" for n in grids)]
    rows: list[list[Cell]] = []
    for s in shown:
        sizes = "" if s.kind.swapped else ", ".join(map(s.words.size, s.described["grids"]))
        metric = s.described["metric"]
        best = (s.metrics.get(f"{metric}_mpp{n}") for n in grids)
        what = ", ".join(filter(None, [s.kind.shows, sizes]))
        rows.append([s.name, what, metric, _docs(s), _or_na(s.metrics.get("chance")), _or_na(_fip(s)), *best])
    return sheets.table(heads, rows)


def _curve_table(shown: Sequence[Shown]) -> Sheet:
    """Return one row per task of one kind, with its scores along the curve."""
    kind, numbers = shown[0].kind, sorted({n for s in shown for n in s.described["grids"]})
    heads: list[str | Column] = ["task", "metric", "docs", "chance", *(kind.words.size(n) for n in numbers)]
    rows: list[list[Cell]] = []
    for s in shown:
        scores = [_or_na(_estimate(s, f"{kind.name}{n}")) if n in s.described["grids"] else None for n in numbers]
        rows.append([s.name, s.described["metric"], _docs(s), _or_na(s.metrics.get("chance")), *scores])
    return sheets.table(heads, rows)


def _loss_table(shown: Sequence[Shown]) -> Sheet:
    """Return one row per task and point, with what is lost against the full image over the same docs."""
    heads: list[str | Column] = [
        "task",
        "boxes hidden" if shown[0].kind.hides else "shown at",
        "docs",
        "chance",
        "full",
        f"score {_level(shown)}",
        Column("", f"full - score {_level(shown)}", signed=True),
    ]
    rows: list[list[Cell]] = []
    for s in shown:
        for key in s.points:
            score, drop = (s.metrics.get(f"{stem}{end(key)}") for stem in (s.kind.name, "drop"))
            full = NOT_DEFINED if score is None or drop is None else number(score + drop)
            left_out = int(s.metrics.get(f"n_excluded{end(key)}") or 0)
            docs = str(int(s.metrics.get("n_docs") or 0) - left_out) + (f" ({left_out} left out)" if left_out else "")
            estimates = (_or_na(_estimate(s, f"{stem}{end(key)}")) for stem in (s.kind.name, "drop"))
            at = s.words.size(key) if isinstance(key, int) else key
            rows.append([s.name, at, docs, _or_na(s.metrics.get("chance")), full, *estimates])
    return sheets.table(heads, rows)


def _hidden_table(shown: Sequence[Shown]) -> Sheet:
    """Return one row per task that hides docs' own boxes: what the relevant ones cost beyond the adversarial ones, and how much each set hides."""
    heads: list[str | Column] = ["task", "docs with both", Column("", f"relevant drop - adversarial drop {_level(shown)}", signed=True)]
    heads += [f"image hidden, {key}" for key in REGIONS]
    rows: list[list[Cell]] = []
    for s in shown:
        share = (s.analysis.get("hidden") or {}).get("share_of_both") or {}
        docs = s.metrics.get("n_both")
        shares = [f"{share[key]:.1%}" if key in share else NOT_DEFINED for key in REGIONS]
        rows.append([s.name, NOT_DEFINED if docs is None else int(docs), _or_na(_estimate(s, EXTRA)), *shares])
    return sheets.table(heads, rows)


def _order_table(shown: Sequence[Shown]) -> Sheet:
    """Return one row per task that asks every order of the options."""
    heads: list[str | Column] = ["task", "docs", "once", "mean", f"every order {_level(shown)}", Column("", "once - every", signed=True), "guesses"]
    rows: list[list[Cell]] = []
    for s in shown:
        used = int(s.metrics.get("n_rotated") or 0)
        docs = used + sum((s.analysis.get("turned") or {}).get("left_out", {}).values())
        once, mean, guess = (_or_na(s.metrics.get(f"rotate_{name}")) for name in ("once", "mean", "guess"))
        every, lost = (_or_na(_estimate(s, f"rotate_{name}")) for name in ("every", "lost"))
        rows.append([s.name, f"{used} of {docs}" if used < docs else str(used), once, mean, every, lost, guess])
    return sheets.table(heads, rows)


def _place_table(shown: Sequence[Shown]) -> Sheet:
    """Return the score by the place of the gold, one row per task and number of options."""
    found = [(s, int(count), one) for s in shown for count, one in ((s.analysis.get("turned") or {}).get("places") or {}).items()]
    most = max((count for _, count, _ in found), default=0)
    heads: list[str | Column] = ["task", "options", "docs", *(f"gold at {chr(ord('A') + place)}" for place in range(most)), "p, if even"]
    rows: list[list[Cell]] = []
    for s, count, one in sorted(found, key=lambda row: (shown.index(row[0]), row[1])):
        scores: list[Cell] = [_or_na(score["value"]) for score in one["scores"]]
        rows.append([s.name, count, one["docs"], *scores, *[None] * (most - count), _or_na(one["p"])])
    return sheets.table(heads, rows)


def _region_table(shown: Sequence[Shown]) -> Sheet:
    """Return one row per task and set of boxes."""
    heads: list[str | Column] = ["task", "boxes", "docs", "chance", "full (FIP)", "best box (MPP)"]
    heads += [Column("", f"{reading.name('rci', corrected=which)} {_level(shown)}", signed=True) for which in (False, True)]
    heads += ["one box, on average"]
    rows: list[list[Cell]] = []
    for s in shown:
        for key in REGIONS:
            numbers = s.set(key)
            docs = str(numbers["mpp"]["n"]) + (f" ({numbers['excluded']} left out)" if numbers["excluded"] else "") if numbers else NOT_DEFINED
            scores = (s.metrics.get("chance"), numbers.get("fip"), s.metrics.get(f"{s.described['metric']}_mpp{end(key)}"))
            name = f"rci{end(key)}"
            rows.append([s.name, key, docs, *map(_or_na, scores), _index(s, name, key), _adjusted(s, name, key), _estimate(s, f"mean_{key}")])
    return sheets.table(heads, rows)


def _difference_table(shown: Sequence[Shown]) -> Sheet:
    """Return what sets relevant and adversarial boxes apart, one row per task."""
    titles = ("best boxes", "best of equally many", "one box, on average")
    heads: list[str | Column] = ["task", "relevant minus adversarial", "docs with both"]
    heads += [Column("", title, signed=True) for title in titles]
    rows: list[list[Cell]] = []
    for s in shown:
        docs = s.metrics.get("n_both")
        rows.append(
            [
                s.name,
                s.described["metric"],
                NOT_DEFINED if docs is None else int(docs),
                *(_estimate(s, f"regions_{name}") for name in ("best", "even", "mean")),
            ]
        )
    return sheets.table(heads, rows)


def _grid_table(shown: Sequence[Shown]) -> Sheet:
    """Return one row per task with its grids side by side."""
    grids = sorted({n for s in shown for n in s.grids})
    name = next((s.index for s in shown if s.index), None) or "rci"
    cells = (shown[0].kind if shown else KINDS["rci"]).cells
    hidden = sorted({n for s in shown for n in s.described["grids"] if s.described["kind"] == "occlude"})
    heads: list[str | Column] = ["task", "metric", "docs", "chance", "full (FIP)", *(f"best of {cells(n)} (MPP_{n})" for n in grids)]
    for n in grids:
        heads += [Column("", f"{reading.name(name, n, corrected=which)} {_level(shown)}", signed=True) for which in (False, True)]
    heads += [f"drop_{n}" for n in hidden]
    more = _with_a_title(shown)
    heads += more.values()
    rows = [[s.name, s.described["metric"], _docs(s), _or_na(s.metrics.get("chance")), _fip_text(s), *_cells(s, grids, hidden)] for s in shown]
    return sheets.table(heads, [[*row, *(_estimate(s, name) for name in more)] for s, row in zip(shown, rows, strict=True)])


def _with_a_title(shown: Sequence[Shown]) -> dict[str, str]:
    """Return the numbers of the catalogue that have a column of their own, by name, each with its head."""
    out: dict[str, str] = {}
    for s in shown:
        out |= catalogue.titles(s.kind, s.described["grids"])
    return {name: title for name, title in out.items() if any(name in s.metrics for s in shown)}


def _fip(shown: Shown) -> float | None:
    """Return FIP as the harness printed it, but where calls failed over the answered docs alone; None of a run that scored nothing.

    Where the index is of every order of the options, FIP is too, and what the harness printed is of one order.
    """
    metric = shown.described["metric"]
    if shown.kind.every_order or shown.metrics.get("n_failed"):  # what the harness prints counts failed calls as answers
        return (shown.analysis.get("fip") or {}).get("value")
    return None if metric == "bypass" else shown.metrics.get(metric)  # the host's mark of --predict_only


def _fips_of_used_docs(shown: Shown) -> list[float]:
    """Return FIP over the docs that MPP and the index use, grid by grid; empty where they use all docs, or the run does not say."""
    grids = [shown.set(n) for n in shown.grids]
    known = [grid["fip"] for grid in grids if grid.get("fip") is not None]
    return known if len(known) == len(grids) and any(grid.get("excluded") for grid in grids) else []


def _fip_text(shown: Shown) -> str:
    """Return FIP over the docs of the index, so that 1 - MPP / FIP is the index beside it."""
    return " / ".join(dict.fromkeys(map(number, _fips_of_used_docs(shown)))) or number(_fip(shown))


def _fip_of_used_docs(shown: Shown) -> str:
    """Say what FIP is over all docs, where the table shows that of the docs that the index uses; "" where it shows that of all."""
    of_all = number(_fip(shown))
    if not (fips := _fips_of_used_docs(shown)) or set(map(number, fips)) == {of_all}:
        return ""
    return f"full (FIP) is over the docs that the index uses; over all {int(shown.metrics.get('n_docs') or 0)} docs it is {of_all}"


def _docs(shown: Shown) -> str:
    """Return how many docs count, and how many are left out or failed."""
    failed = int(shown.metrics.get("n_failed") or 0)
    docs = int(shown.metrics.get("n_docs") or (0 if failed else shown.metrics.get("records")) or 0)
    out = max([int(shown.metrics.get(f"n_excluded{n}") or 0) for n in shown.grids], default=0)
    notes = [*([f"{out} left out"] if out else []), *([f"{failed} failed"] if failed else [])]
    return f"{docs} ({', '.join(notes)})" if notes else str(docs)


def _cells(shown: Shown, grids: Sequence[int], hidden: Sequence[int]) -> list[Cell]:
    """Return the cells of a task from MPP on; empty ones where it was not asked for them."""
    numbers, metric, index = shown.metrics, shown.described["metric"], shown.index
    cells: list[Cell] = [_or_na(numbers[name]) if (name := f"{metric}_mpp{n}") in numbers else None for n in grids]
    for n in grids:
        cells += [_index(shown, f"{index}{n}", n), _adjusted(shown, f"{index}{n}", n)]
    return cells + [_or_na(numbers[name]) if (name := f"{metric}_drop{n}") in numbers else None for n in hidden]


def _index(shown: Shown, name: str, key: Key) -> Cell:
    """Return 1 − MPP / FIP, or why it must not be read."""
    if name not in shown.metrics:
        return None
    index = _estimate(shown, name)
    if index.value is None:
        return shown.refused or NOT_DEFINED
    return reading.raw(index, reading.mark_of(shown.typed_set(key)), _marginal(shown), reading.is_sampled(shown.typed))


def _adjusted(shown: Shown, name: str, key: Key) -> Cell:
    """Return the luck-corrected index, or why it is not defined."""
    if shown.metrics.get(name) is None:
        return None
    index, adj = _estimate(shown, f"{name}_adj"), shown.set(key).get("adj") or {}
    if index.value is None:
        return str(adj.get("estimate", {}).get("reason", "")).partition(":")[0] or NOT_DEFINED
    sampled = reading.is_sampled(shown.typed)
    parts = shown.words.parts if isinstance(key, int) else "boxes"
    return reading.corrected(index, reading.null_of(shown.typed_set(key)), _marginal(shown), parts, sampled)


def _marginal(shown: Shown) -> bool:
    return shown.typed is not None and shown.typed.gate.marginal


def _estimate(shown: Shown, name: str) -> Estimate:
    """Return a number of the table with the ends of its interval."""
    value, low, high = (shown.metrics.get(f"{name}{ending}") for ending in ("", "_low", "_high"))
    return Estimate(value, None, low, high, 0, 0, 0)


def warnings(shown: Sequence[Shown]) -> list[str]:
    """Return what to mind, one line each, with the tasks that it is true of."""
    tasks: dict[str, list[str]] = {}
    for s in shown:
        lines = [*s.analysis.get("warnings", ()), *(w for grid in sets_in(s.analysis).values() for w in grid["warnings"]), *_left_out(s)]
        lines += [s.typed.gate.reason] if s.refused and s.typed else []
        lines += reading.minds(s.described, s.typed, s.words) if s.typed and (s.index or s.regions) else []
        lines += reading.frames(s.frames_read).values()
        lines += [s.kept, *_of_failures(s)]
        lines += [_fip_of_used_docs(s), *_above_one(s)]
        if s.described["metric"] == "bypass":  # --predict_only: of numbers that nobody asked for there is nothing to say
            lines = _of_failures(s)
        for line in dict.fromkeys(_OF_EARLIER_VERSIONS.get(line, line) for line in lines if line):
            tasks.setdefault(line, []).append(s.name)
    return [text.line(f"{', '.join(names)}: {line}") for line, names in tasks.items()]


def _above_one(shown: Shown) -> list[str]:
    """Return why intervals of the luck-corrected index reach above 1."""
    sets = shown.typed.sets.values() if shown.typed else ()
    measured = (grid.adj.estimate for grid in sets if grid.adj and grid.adj.null == reading.MEASURED)
    return [reading.above_one(ends.low, ends.high, shown.words) for ends in measured]


def _left_out(shown: Shown) -> list[str]:
    """Return of a task with boxes why docs are left out, and how many."""
    out = []
    of_boxes: Mapping[str, Any] = shown.analysis.get("regions") or shown.analysis.get("hidden") or {}
    for key, reasons in (of_boxes.get("left_out") or {}).items():
        told = ", ".join(f"{count} with {why}" for why, count in sorted(reasons.items(), key=lambda item: -item[1]))
        out += [f"docs left out of the numbers of {key} boxes: {told}"] if told else []
    return out


def _of_failures(shown: Shown) -> list[str]:
    """Return how many calls failed, and what the harness's own number makes of them; nothing where each was answered."""
    failed, metric = failures.from_json(shown.analysis.get("failed")), shown.described["metric"]
    if failed is None:
        return []
    return [failed.sentence, *filter(None, [failed.native(metric) if shown.metrics.get(metric) is not None else ""])]


def chances(shown: Sequence[Shown], width: int | None = None) -> str:
    """Return every chance floor of every task, and the gate: what the full image had to beat, a wrong image among it.

    Tasks of clips have a table of their own.
    """
    return "\n\n".join(_chances(some, words).to_text(width) for words, some in by_medium(shown, lambda s: s.words))


def _chances(shown: Sequence[Shown], words: Words) -> Sheet:
    """Return the chance floors of the tasks of one medium."""
    whole = all(s.kind.full for s in shown)
    heads: list[str | Column] = [
        "task",
        "metric",
        *(["full (FIP)"] if whole else ["shown", "score"]),
        "needs",
        "gate",
        f"wrong {words.medium}",
        Column("", "full - wrong", signed=True),
        "docs asked",
    ]
    heads += ["uniform", "constant", "by stratum", "other gold", "published rule", "ceiling"]
    rows: list[list[Cell]] = []
    for s in shown:
        chance, gate = s.analysis.get("chance", {}), s.analysis.get("gate", {})
        floors = [(chance.get("floors", {}).get(name) or {}).get("value") for name in ("uniform", "constant", "stratum", "other")]
        looked: Mapping[str, Any] = next(iter(gate.get("looks") or ()), {})
        ends = looked.get("difference") or {}
        difference = Estimate(ends.get("value"), None, ends.get("low"), ends.get("high"), 0, 0, 0)
        score = [_fip(s)] if whole else [s.kind.shows, _fip(s)]
        needs = [
            s.name,
            s.described["metric"],
            *score,
            gate.get("threshold"),
            reading.gate_word(s.typed.gate if s.typed else None),
        ]
        cells = [*needs, looked.get("other"), difference, looked.get("docs"), *floors, chance.get("published"), s.metrics.get("ceiling")]
        rows.append([_or_na(cell) for cell in cells])
    return sheets.table(heads, rows)


def cell_tables(shown: Sequence[Shown]) -> str:
    """Return for each task and grid the share of the score that each cell or segment earns, in percent, and whether it could be even."""
    tables = [_cell_table(s, n, s.analysis["grids"][str(n)].get("shares")) for s in shown if s.analysis for n in s.grids]
    return "\n\n".join([*tables, *(f"{s.name}: no shares of cells; the boxes of a doc are no places that all docs have" for s in shown if s.regions)])


def _cell_table(shown: Shown, n: int, shares: Mapping[str, Any] | None) -> str:
    """Return the shares of the cells of a grid, row by row, with the test of evenness above them."""
    say, (rows, columns) = shown.words.say, shown.kind.shape(n)
    title = f"{shown.name}, {shown.words.size(n, 'x')}: share of the {shown.words.parts}' score"
    if not shares or shares["score"] is None:
        return f"{title}: {say('no cell scores')}"
    marked = [f"{100 * s:.0f}{'*' if p < 0.05 else ' '}" for s, p in zip(shares["score"], shares["p_cells"], strict=True)]
    lines = ["  ".join(cell.rjust(4) for cell in marked[row * columns : (row + 1) * columns]) for row in range(rows)]
    middle = "" if shares["centre"] is None else f"; the middle earns {shares['centre']:.1f} times its share of the area"
    tested = say(f"in % (even: p = {shares['p']:.3f}; * a cell that is not even, Holm-corrected{middle})")
    return "\n".join([f"{title}, {tested}", *lines])


def category_table(analyzed: Analyzed, width: int | None = None) -> str:
    """Return one row per category of a task."""
    kind = analyzed.run.result.kind
    parts = {name: dataclasses.replace(analyzed, analysis=one, metrics=catalogue.columns(one, kind)) for name, one in analyzed.categories.items()}
    rows = [_of(part.result, name) for name, part in parts.items()]
    needs = necessity.table(((s.name, s.analysis, s.words) for s in rows), width)
    return "\n\n".join(filter(None, [f"{analyzed.run.name}, by category\n{table(rows, width)}", needs]))


def pooled_table(pooled: Sequence[Pooled], width: int | None = None) -> str:
    """Return one row per group and grid: the index of the pooled FIP and MPP. CRCI, and tasks of clips, have tables of their own."""
    of_name: dict[str, list[Pooled]] = {}
    for one in pooled:
        of_name.setdefault(_name(one.asked), []).append(one)
    return "\n\n".join(_pooled_sheet(some, some[0].asked.words).to_text(width) for some in of_name.values())


def _pooled_sheet(pooled: Sequence[Pooled], words: Words) -> Sheet:
    """Return the pooled numbers of one medium."""
    name = _name(pooled[0].asked)
    heads: list[str | Column] = ["group", "grid", "docs", "full (FIP)", f"best {words.part} (MPP)", Column("", f"{name} [interval]", signed=True)]
    rows: list[list[Cell]] = []
    for p in pooled:
        index = p.index.reason if p.index.value is None else p.index
        rows.append([p.group, words.size(p.n, "x"), p.index.n, number(p.fip), number(p.mpp), index])
    return sheets.table(heads, rows)


def averaged_table(averaged: Sequence[Averaged], runs: Sequence[Sequence[Analyzed]] = (), width: int | None = None) -> str:
    """Return one row per task and number: mean over runs, standard deviation between runs, and the interval over docs.

    Args:
        averaged: the tasks.
        runs: what they are averaged of; an index that must not be read as it stands in one of them is marked.
        width: characters in a line; None: any.
    """
    heads: list[str | Column] = ["task", "number", "runs", "mean", "SD between runs", "interval over docs"]
    rows: list[list[Cell]] = []
    for a in averaged:
        beside = _in_any(a.task, runs)
        for name, value in a.metrics.items():
            if not name.endswith(("_low", "_high")):
                said = ", ".join([name, *beside.get(name, ())])
                rows.append([a.task, said, a.runs, number(value), number(a.spread[name]), _span(a.intervals.get(name))])
        for name, one in a.split.items():
            said = f"{name}, {of_index(name).words.part} chosen on another run"
            rows.append([a.task, said, a.runs, number(one.value), "", _span(one)])
    return sheets.table(heads, rows).to_text(width)


def _span(estimate: Estimate | None) -> str:
    """Return the interval alone; empty where there is none to be shown."""
    if estimate is None or estimate.low is None or estimate.high is None or not reading.shows_interval(estimate):
        return ""
    return f"[{number(estimate.low, signed=True)}, {number(estimate.high, signed=True)}]"


def _in_any(task: str, runs: Sequence[Sequence[Analyzed]]) -> dict[str, tuple[str, ...]]:
    """Return what stands beside the indices of a task in any of some runs, by the names of the indices."""
    out: dict[str, tuple[str, ...]] = {}
    for a in (one for run in runs for one in run if one.run.result.task == task and one.analysis is not None):
        name = KINDS[a.run.result.described["kind"]].prefix
        for key, grid in a.analysis.sets.items() if a.analysis else ():
            if grid.mark:
                out[f"{name}{end(key)}"] = (reading.CONTRADICTED,)
            if grid.adj is not None and grid.adj.null != reading.MEASURED:
                out[f"{name}{end(key)}_adj"] = (reading.ASSUMED,)
    return out
