"""The table of a finished run, in plain text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial

from rich.cells import cell_len

from lmms_patch import text
from lmms_patch.ask.kinds import OF_CLIPS, OF_IMAGES, RCI, REGIONS, Key, Kind, Words, by_medium, end
from lmms_patch.present import sheets
from lmms_patch.present.sheets import NOT_DEFINED, Cell, Cells, Column, Heads, Sheet, number, or_na
from lmms_patch.present.terminal import necessity
from lmms_patch.present.terminal.folding import fold
from lmms_patch.rci.pooling import Averaged, Pooled
from lmms_patch.rci.recompute import Analyzed
from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.numbers import EXTRA, Grid, Placed
from lmms_patch.runs.run import Labelled, Result, Run
from lmms_patch.stats.gate import Gate
from lmms_patch.stats.resample import LEVEL, Estimate
from lmms_patch.stats.spatial import CellShares

Columns = list[tuple[str | Column, Callable[[Labelled], Cell]]]
"""Columns of a table with a row per task: the head of each, and what makes its cell."""
BYPASS = "bypass"
"""The host's mark of --predict_only, in place of a metric."""


def load(run: Run) -> list[Labelled]:
    """Return the wrapped tasks of a run except cross-validations and MAGIC tasks."""
    return [
        _of(result, result.label) for result in run.results if not result.kind.folds and result.kind.name != "magic"
    ]


def _of(result: Result, name: str) -> Labelled:
    return Labelled(result, result.run.model, name)


def recomputed(analyzed: Sequence[Analyzed]) -> list[Labelled]:
    """Return the rows of the table with recomputed numbers."""
    return [_of(a.result, a.run.name) for a in analyzed]


def table(shown: Sequence[Labelled], width: int | None = None) -> str:
    """Return one row per wrapped task: chance, FIP, MPP_n, the index with its interval, and the steady index.

    Scores are on the metric's own scale; ``N/A`` where a number is not defined, ``near chance`` or ``does not look``
    where the gate says that the index means nothing. FIP, MPP and the index leave out the docs that the third column
    counts: where they are not the same docs at every grid, there is a FIP for each. Of docs with a failed call, all or
    some numbers are missing. What stands beside an index (``contradicted``, ...) is explained by
    ``warnings``. Tasks that show docs' own boxes have a table of their own, and so have tasks that cut clips in time,
    and those that do not show the whole image, whose score is no FIP.

    Args:
        shown: the tasks.
        width: characters in a line; where the table is wider, it has a row per grid and fewer columns. None: any.
    """
    of_boxes, points = [s for s in shown if s.result.kind.regions], [s for s in shown if _points(s)]
    turned = [s for s in shown if s.result.kind.turns]
    others = [
        s for s in shown if s.result.kind.full and not (s.result.kind.regions or _points(s) or s.result.kind.turns)
    ]
    without = [s for s in shown if not (s.result.kind.full or _points(s))]
    of_grids = by_medium(others, _words) + by_medium((s for s in turned if s.result.kind.index), _words)
    parts = [_fitted(some, width) for _, some in of_grids] if shown else [_fitted([], width)]
    parts += [_shown_table(without).to_text(width)] if without else []
    parts += [_order_table(turned).to_text(width), _place_table(turned).to_text(width)] if turned else []
    for kind in dict.fromkeys(s.result.kind for s in points):
        of_kind = [s for s in points if s.result.kind == kind]
        parts.append((_loss_table if kind.full else _curve_table)(of_kind).to_text(width))
    hidden = [s for s in points if s.result.kind.hides]
    parts += [_hidden_table(hidden).to_text(width)] if hidden else []
    parts += [_region_table(of_boxes).to_text(width), _difference_table(of_boxes).to_text(width)] if of_boxes else []
    parts += [sheet.to_text(width) for sheet in sheets.of_methods(shown)]
    return "\n\n".join(parts)


def _points(shown: Labelled) -> tuple[Key, ...]:
    """Return the keys of a task's scores beside the first view: points of a curve, or sets of boxes."""
    return shown.result.kind.points(shown.result.grids)


def _words(shown: Labelled) -> Words:
    return shown.result.kind.words


def _set(shown: Labelled, key: Key) -> Grid | None:
    """Return the numbers of a task at a grid or set of boxes; None where the run stored none."""
    return shown.result.analysis.sets.get(key) if shown.result.analysis else None


def _fitted(shown: Sequence[Labelled], width: int | None) -> str:
    """Return the table in the fullest form that fits a width.

    The forms: a row per task; a row per task and grid; that without what is said elsewhere; that with names above; the
    same in parts.
    """
    few = _by_grid(shown, full=False)
    made = _grid_table(shown).to_text()
    made = made if _fits(made, width) else _by_grid(shown, full=True).to_text()
    made = made if _fits(made, width) else few.to_text()
    # On a narrow terminal the names stand on lines of their own, which saves a column.
    made = made if _fits(made, width) else _names_above(few)
    return made if _fits(made, width) else few.to_text(width)


def _fits(made: str, width: int | None) -> bool:
    return width is None or max(map(cell_len, made.splitlines())) <= width


def _by_grid(shown: Sequence[Labelled], *, full: bool) -> Sheet:
    """Return a row per task and grid.

    Args:
        shown: the tasks.
        full: with docs, chance, and the intervals of both indices; else the interval of the one that people should go
            by, and docs where some are left out.
    """
    noted = full or any("(" in _docs(s) for s in shown)
    occluded = any(s.result.kind.name == "occlude" for s in shown)
    indexed = any(s.result.kind.index for s in shown) or not occluded
    words, name = _heads(shown)
    raw, steady = (reading.name(name, steady=which) for which in (False, True))
    columns = (
        ("task", True),
        ("parts" if words.instead else "grid", True),
        ("docs", noted),
        ("chance", full),
        ("full (FIP)" if full else "full", True),
        (f"best {words.part} (MPP)" if full else "best", indexed),
        ("worst cell hidden", occluded),
        (f"{raw} {_level(shown)}" if full else raw, indexed),
        (f"{steady} {_level(shown)}", indexed),
    )
    rows = [_row_of_grid(s, n, full) for s in shown for n in s.result.grids or (None,)]
    heads = [Column(title, signed=name in title) for title, there in columns if there]
    return sheets.table(heads, [[cell for cell, (_, there) in zip(row, columns, strict=True) if there] for row in rows])


def _row_of_grid(shown: Labelled, n: int | None, full: bool) -> Cells:
    """Return all cells of a task's row at a grid; for a task without grids, grid cells are None."""
    result, grid = shown.result, None if n is None else _set(shown, n)
    raw, steady = (_index(shown, n), _steady(shown, n)) if n is not None and result.kind.index else (None, None)
    if not full and isinstance(raw, Estimate) and isinstance(steady, Estimate):
        # The steady index beside it shows the interval; words that both would carry are said there alone.
        raw = ", ".join(
            [
                number(raw.value, signed=True),
                *(word for word in reading.words(raw) if word not in reading.words(steady)),
            ]
        )
    scores = [_native(shown, f"{what}{n}") for what in ("mpp", "drop")]
    fip = _fip_text(shown) if grid is None or grid.fip is None else number(grid.fip)
    return [
        shown.label,
        None if n is None else _words(shown).size(n, "x"),
        _docs(shown),
        _value(shown, "chance"),
        fip,
        *scores,
        raw,
        steady,
    ]


def _heads(shown: Sequence[Labelled]) -> tuple[Words, str]:
    """Return the words for parts of images or clips, and the name of the index, for a table of tasks of one medium."""
    kind = shown[0].result.kind if shown else RCI
    return (OF_CLIPS if kind.needs_video else OF_IMAGES), _name(kind)


def _name(kind: Kind) -> str:
    """Return the name of an index in a column's head: ``RCI`` or ``TRCI``.

    PCRI has that of RCI.
    """
    return "TRCI" if kind.needs_video else "RCI"


def _names_above(sheet: Sheet) -> str:
    """Return a table without its first column, whose names stand on separate lines above their rows."""
    first, *others = sheet.columns
    head, rule, *lines = Sheet("", "", (Column("  "), *others), sheet.rows).to_text().splitlines()
    out = [head, rule]
    for place, (row, line) in enumerate(zip(sheet.rows, lines, strict=True)):
        name = row[first.key]
        out += [*([text.line(name)] if place == 0 or name != sheet.rows[place - 1][first.key] else []), line]
    return "\n".join(out)


def _level(shown: Sequence[Labelled]) -> str:
    """Return the level of the intervals as a table's head shows it, such as ``[95 %]``."""
    return f"[{100 * next((s.result.analysis.fip.level for s in shown if s.result.analysis), LEVEL):.3g} %]"


def _label(shown: Labelled) -> Cell:
    return shown.label


def _metric(shown: Labelled) -> Cell:
    return shown.result.metric


def _made(shown: Sequence[Labelled], columns: Columns) -> Sheet:
    """Return a table with a row per task."""
    return sheets.table([head for head, _ in columns], [[cell(s) for _, cell in columns] for s in shown])


def _measured(shown: Labelled, name: str) -> Cell:
    """Return a number with its interval."""
    return or_na(shown.result.measures.get(name))


def _shown_table(shown: Sequence[Labelled]) -> Sheet:
    """Return one row per task without the whole image: the view in its place, and the score on that view."""
    swapped = [s for s in shown if s.result.kind.swapped]
    columns: Columns = [_ABOUT[0], ("shown", _what), *_ABOUT[1:], ("score", lambda s: or_na(_fip(s)))]
    for n in sorted({n for s in swapped for n in s.result.grids}):
        columns.append((f"best of {swapped[0].result.kind.cells(n)} cells", partial(_native, name=f"mpp{n}")))
    return _made(shown, columns + _with_a_title(shown))


def _what(shown: Labelled) -> Cell:
    """Return what a task shows in place of the whole image."""
    kind = shown.result.kind
    return ", ".join([kind.shows, *(() if kind.swapped else map(kind.words.size, shown.result.grids))])


def _curve_table(shown: Sequence[Labelled]) -> Sheet:
    """Return a row per task of a kind, with its scores along the curve."""
    kind = shown[0].result.kind
    grids = sorted({n for s in shown for n in s.result.grids})
    columns: Columns = [*_ABOUT, *((kind.words.size(n), partial(_at_point, n=n)) for n in grids)]
    return _made(shown, columns + _with_a_title(shown))


def _at_point(shown: Labelled, n: int) -> Cell:
    """Return the score at a point of a curve; nothing where the task was not asked there."""
    return _measured(shown, f"{shown.result.kind.name}{n}") if n in shown.result.grids else None


def _loss_table(shown: Sequence[Labelled]) -> Sheet:
    """Return one row per task and point, with what is lost against the full image over the same docs."""
    more = _with_a_title(shown)
    heads: Heads = [
        "task",
        "boxes hidden" if shown[0].result.kind.hides else "shown at",
        "docs",
        "chance",
        "full",
        f"score {_level(shown)}",
        Column(f"full - score {_level(shown)}", signed=True),
        *(head for head, _ in more),
    ]
    rows: list[Cells] = []
    for s in shown:
        kind, measures = s.result.kind, s.result.measures
        for key in _points(s):
            score, drop = (measures.get(f"{stem}{end(key)}") for stem in (kind.name, "drop"))
            full = number(reading.full_of_the_same(measures, kind, end(key)))
            docs = score.n if score else 0
            left_out = s.result.analysis.n_docs - docs if s.result.analysis else 0
            rows.append(
                [
                    s.label,
                    kind.called(key),
                    f"{docs}{f' ({left_out} left out)' * bool(left_out)}",
                    _value(s, "chance"),
                    full,
                    or_na(score),
                    or_na(drop),
                    *(cell(s) for _, cell in more),
                ]
            )
    return sheets.table(heads, rows)


def _hidden_table(shown: Sequence[Labelled]) -> Sheet:
    """Return the cost of hiding relevant beyond adversarial boxes, and how much each set hides, one row per task."""
    columns: Columns = [("task", _label), ("docs with both", _with_both)]
    columns.append(
        (Column(f"relevant drop - adversarial drop {_level(shown)}", signed=True), partial(_measured, name=EXTRA))
    )
    for key in REGIONS:
        columns.append((f"image hidden, {key}", partial(_share_hidden, key=key)))
    return _made(shown, columns)


def _share_hidden(shown: Labelled, key: str) -> Cell:
    """Return which part of the image a set of boxes hides, over the docs with both sets."""
    hidden = shown.result.analysis.hidden if shown.result.analysis else None
    return f"{hidden.share_of_both[key]:.1%}" if hidden and key in hidden.share_of_both else NOT_DEFINED


def _with_both(shown: Labelled) -> Cell:
    """Return how many docs have usable boxes of both sets."""
    analysis = shown.result.analysis
    of_both = (analysis.regions or analysis.hidden) if analysis else None
    return of_both.both if of_both else NOT_DEFINED


def _order_table(shown: Sequence[Labelled]) -> Sheet:
    """Return a row per task with docs in every order of the options."""
    columns: Columns = [
        ("task", _label),
        ("docs", _docs_turned),
        ("once", partial(_value, name="rotate_once")),
        ("mean", partial(_value, name="rotate_mean")),
        (f"every order {_level(shown)}", partial(_measured, name="rotate_every")),
        (Column("once - every", signed=True), partial(_measured, name="rotate_lost")),
        (
            "guesses",
            lambda s: or_na(s.result.analysis.turned.guess if s.result.analysis and s.result.analysis.turned else None),
        ),
    ]
    return _made(shown, columns)


def _docs_turned(shown: Labelled) -> str:
    """Return how many docs were asked in every order, of how many."""
    turned = shown.result.analysis.turned if shown.result.analysis else None
    used, left_out = (turned.docs, sum(turned.left_out.values())) if turned else (0, 0)
    return f"{used} of {used + left_out}" if left_out else str(used)


def _place_table(shown: Sequence[Labelled]) -> Sheet:
    """Return the score by the place of the gold, one row per task and number of options."""
    found: list[tuple[Labelled, int, Placed]] = []
    for s in shown:
        turned = s.result.analysis.turned if s.result.analysis else None
        found += [(s, count, turned.places[count]) for count in sorted(turned.places)] if turned else []
    most = max((count for _, count, _ in found), default=0)
    heads = ["task", "options", "docs", *(f"gold at {chr(ord('A') + place)}" for place in range(most)), "p, if even"]
    # Docs differ in how many options they have: rows with fewer places are filled with empty cells.
    rows: list[Cells] = []
    for s, count, placed in found:
        scores: Cells = [or_na(score.value) for score in placed.scores]
        rows.append([s.label, count, placed.docs, *scores, *[None] * (most - count), or_na(placed.p)])
    return sheets.table(heads, rows)


def _region_table(shown: Sequence[Labelled]) -> Sheet:
    """Return a row per task and set of boxes."""
    heads: Heads = ["task", "boxes", "docs", "chance", "full (FIP)", "best box (MPP)"]
    heads += [Column(f"RCI {_level(shown)}", signed=True), "one box, on average"]
    rows: list[Cells] = []
    for s in shown:
        for key in REGIONS:
            grid = _set(s, key)
            docs = f"{grid.mpp.n}{f' ({grid.excluded} left out)' * bool(grid.excluded)}" if grid else NOT_DEFINED
            fip, mpp = (or_na(value) for value in ((grid.fip, grid.mpp.value) if grid else (None, None)))
            rows.append(
                [
                    s.label,
                    key,
                    docs,
                    _value(s, "chance"),
                    fip,
                    mpp,
                    _index(s, key),
                    _measured(s, f"mean_{key}"),
                ]
            )
    return sheets.table(heads, rows)


def _difference_table(shown: Sequence[Labelled]) -> Sheet:
    """Return the differences between relevant and adversarial boxes, one row per task."""
    columns: Columns = [("task", _label), ("relevant minus adversarial", _metric), ("docs with both", _with_both)]
    for name, title in (("best", "best boxes"), ("even", "best of equally many"), ("mean", "one box, on average")):
        columns.append((Column(title, signed=True), partial(_measured, name=f"regions_{name}")))
    return _made(shown, columns)


def _grid_table(shown: Sequence[Labelled]) -> Sheet:
    """Return one row per task with its grids side by side."""
    grids = sorted({n for s in shown for n in s.result.indexed})
    kind = next((s.result.kind for s in shown if s.result.kind.index), RCI)
    hidden = sorted({n for s in shown for n in s.result.grids if s.result.kind.name == "occlude"})
    columns: Columns = [*_ABOUT, ("full (FIP)", _fip_text)]
    for n in grids:
        columns.append(
            (
                f"best of {(shown[0].result.kind if shown else kind).cells(n)} (MPP_{n})",
                partial(_native, name=f"mpp{n}"),
            )
        )
    for n in grids:
        for which, cell in ((False, _index), (True, _steady)):
            title = f"{reading.name(str(kind.index), n, steady=which)} {_level(shown)}"
            columns.append((Column(title, signed=True), partial(cell, key=n)))
    for n in hidden:
        columns.append((f"drop_{n}", partial(_native, name=f"drop{n}")))
    return _made(shown, columns + _with_a_title(shown))


def _with_a_title(shown: Sequence[Labelled]) -> Columns:
    """Return a column for each number with a title in the catalogue and a value in some task."""
    out: dict[str, str] = {}
    for s in shown:
        out |= catalogue.titles(s.result.kind, s.result.grids)
    return [
        (title, partial(_measured, name=name))
        for name, title in out.items()
        if any(name in s.result.measures for s in shown)
    ]


def _fip(shown: Labelled) -> float | None:
    """Return FIP as the harness printed its number, but over the answered docs alone where calls failed.

    None of a run that scored nothing.
    """
    result = shown.result
    if result.failed:  # what the harness prints counts failed calls as answers
        return result.analysis.fip.value if result.analysis else None
    if result.metric == BYPASS:
        return None
    printed = result.native.values.get(result.metric)
    return result.measures["score"].value if printed is None else printed


def _fips_of_used_docs(shown: Labelled) -> list[float]:
    """Return FIP at each grid, over the docs that enter MPP and the index at this grid.

    Empty where they use all docs, or the run does not say.
    """
    grids = [grid for n in shown.result.indexed if (grid := _set(shown, n))]
    known = [grid.fip for grid in grids if grid.fip is not None]
    return known if len(known) == len(shown.result.indexed) and any(grid.excluded for grid in grids) else []


def _fip_text(shown: Labelled) -> str:
    """Return FIP over the docs of the index, so that 1 - MPP / FIP gives the index in the same row."""
    return " / ".join(dict.fromkeys(map(number, _fips_of_used_docs(shown)))) or number(_fip(shown))


def _fip_of_used_docs(shown: Labelled) -> str:
    """Say what FIP is over all docs, where the table shows FIP over fewer docs.

    "" where it shows that of all.
    """
    of_all = number(_fip(shown))
    if not (fips := _fips_of_used_docs(shown)) or set(map(number, fips)) == {of_all}:
        return ""
    return f"full (FIP) is over the docs that the index uses; over all {shown.result.scored} docs it is {of_all}"


def _docs(shown: Labelled) -> str:
    """Return how many docs count, and how many are left out or failed."""
    result = shown.result
    docs = result.scored or (0 if result.failed else result.docs)
    out = max([grid.excluded for n in result.indexed if (grid := _set(shown, n))], default=0)
    notes = [*([f"{out} left out"] if out else []), *([f"{result.failed} failed"] if result.failed else [])]
    return f"{docs} ({', '.join(notes)})" if notes else str(docs)


def _native(shown: Labelled, name: str) -> Cell:
    """Return the harness's number for the chosen cells, unchanged.

    Nothing where the task was not asked for it.
    """
    if name.startswith("drop"):
        return or_na(shown.result.computed.drops[name]) if name in shown.result.computed.drops else None
    grids = shown.result.analysis.sets if shown.result.analysis else {}
    found = {f"mpp{end(key)}": grid.mpp.value for key, grid in grids.items()}
    return or_na(found[name]) if name in found else None


def _index(shown: Labelled, key: Key) -> Cell:
    """Return 1 − MPP / FIP, or why it must not be read."""
    index = shown.result.measures.get(f"{shown.result.kind.prefix}{end(key)}")
    return (_refused(shown) or NOT_DEFINED) if index is not None and index.value is None else index


def _steady(shown: Labelled, key: Key) -> Cell:
    """Return the steady index, or why it is not defined."""
    index, found = (
        shown.result.measures.get(f"{shown.result.kind.prefix}{end(key)}{ending}") for ending in ("", "_steady")
    )
    if index is None or index.value is None:
        return None
    if found is None:
        return "not asked again"
    # Only the words before the colon fit a cell.
    return found if found.value is not None else found.reason.partition(":")[0]


def _refused(shown: Labelled) -> str:
    """Return in a word or two why the gate refuses the index; empty where the index may be read."""
    gate = shown.result.analysis.gate if shown.result.analysis and shown.result.kind.has_index else None
    return reading.refusal(gate.reason) if gate and gate.valid is False else ""


def _value(shown: Labelled, name: str) -> Cell:
    """Return a number without its interval."""
    found = shown.result.measures.get(name)
    return or_na(found and found.value)


_ABOUT: Columns = [
    ("task", _label),
    ("metric", _metric),
    ("docs", _docs),
    ("chance", partial(_value, name="chance")),
]
"""The columns that tables of scores begin with."""


def warnings(shown: Sequence[Labelled]) -> list[str]:
    """Return warnings, one line each; a line begins with the names of all tasks with this warning."""
    tasks: dict[str, list[str]] = {}
    for s in shown:
        lines = (
            _of_failures(s) if s.result.metric == BYPASS else _minds(s)
        )  # of numbers that nobody asked for there is nothing to say
        for line in dict.fromkeys(filter(None, lines)):
            tasks.setdefault(line, []).append(s.label)
    return [text.line(f"{', '.join(names)}: {line}") for line, names in tasks.items()]


def _minds(shown: Labelled) -> list[str]:
    """Return a task's warnings, one line each; some lines may be empty."""
    result, analysis = shown.result, shown.result.analysis
    lines: list[str] = []
    if analysis:
        lines += [
            *analysis.warnings,
            *(line for grid in analysis.sets.values() for line in grid.warnings),
            *_left_out(shown),
        ]
        lines += [analysis.gate.reason] if _refused(shown) else []
        lines += reading.minds(analysis, _words(shown)) if result.kind.index or result.kind.regions else []
    return [*lines, reading.kept(result.made), *_of_failures(shown), _fip_of_used_docs(shown)]


def _left_out(shown: Labelled) -> list[str]:
    """Return of a task with boxes why docs are left out, and how many."""
    out = []
    of_boxes = (shown.result.analysis.regions or shown.result.analysis.hidden) if shown.result.analysis else None
    for key, reasons in of_boxes.left_out.items() if of_boxes else ():
        told = ", ".join(f"{count} with {why}" for why, count in sorted(reasons.items(), key=lambda item: -item[1]))
        out += [f"docs left out of the numbers of {key} boxes: {told}"] if told else []
    return out


def _of_failures(shown: Labelled) -> list[str]:
    """Return how many calls failed, and how failed calls change the number that the harness prints.

    Nothing where each was answered.
    """
    failed, metric = shown.result.analysis.failed if shown.result.analysis else None, shown.result.metric
    if failed is None:
        return []
    return [failed.sentence, failed.native(metric) if shown.result.native.values.get(metric) is not None else ""]


def chances(shown: Sequence[Labelled], width: int | None = None) -> str:
    """Return every chance floor of every task, and the gate: the scores that the full image had to beat.

    Tasks of clips have a table of their own.
    """
    return "\n\n".join(_chances(some, words).to_text(width) for words, some in by_medium(shown, _words))


def gates(shown: Sequence[Labelled], width: int | None = None) -> str:
    """Return the scores that the full image had to beat in each task: chance plus margin, and the wrong-image score."""
    parts = []
    for words, some in by_medium(shown, _words):
        heads: Heads = [
            "task",
            "score",
            "needs",
            "gate",
            "wrong",
            Column("score - wrong", signed=True),
        ]
        rows: list[Cells] = []
        for s in some:
            gate = s.result.analysis.gate if s.result.analysis else None
            cells = [_fip(s), gate.threshold if gate else None, reading.gate_word(gate), *_against(gate)[:2]]
            rows.append([s.label, *map(or_na, cells)])
        title = f"What the score had to beat: chance and its margin (needs), and a wrong {words.medium}"
        parts.append("\n".join([fold(title, width), sheets.table(heads, rows).to_text(width)]))
    return "\n\n".join(parts)


def _against(gate: Gate | None) -> Cells:
    """Return the score without the right image, what the right image adds to it, and how many docs were asked so."""
    looked = gate.looks[0] if gate and gate.looks else None
    return [looked.other, looked.difference, looked.docs] if looked else [None] * 3


def _chances(shown: Sequence[Labelled], words: Words) -> Sheet:
    """Return the chance floors of the tasks of one medium."""
    whole = all(s.result.kind.full for s in shown)
    heads: Heads = ["task", "metric", *(["full (FIP)"] if whole else ["shown", "score"]), "needs", "gate"]
    heads += [f"wrong {words.medium}", Column("full - wrong", signed=True), "docs asked"]
    heads += ["uniform", "constant", "by stratum", "other gold", "published rule", "ceiling"]
    rows: list[Cells] = []
    for s in shown:
        named: Cells = [s.label, s.result.metric, *([] if whole else [s.result.kind.shows]), _fip(s)]
        if (analysis := s.result.analysis) is None:
            rows.append([*named, None, reading.gate_word(None), *[None] * 9])
            continue
        gate, chance = analysis.gate, analysis.chance
        floors = [
            floor.value if (floor := chance.floors.get(name)) else None
            for name in ("uniform", "constant", "stratum", "other")
        ]
        rows.append(
            [
                *named,
                gate.threshold,
                reading.gate_word(gate),
                *_against(gate),
                *floors,
                chance.published,
                analysis.ceiling,
            ]
        )
    return sheets.table(heads, [[or_na(cell) for cell in row] for row in rows])


def cell_tables(shown: Sequence[Labelled]) -> str:
    """Return each cell's share of the score in percent, and whether the shares could be even, for each task and grid."""
    tables = [_cell_table(s, n, grid.shares) for s in shown for n in s.result.indexed if (grid := _set(s, n))]
    of_boxes = (s.label for s in shown if s.result.kind.regions)
    return "\n\n".join(
        [
            *tables,
            *(f"{name}: no shares of cells; the boxes of a doc are no places that all docs have" for name in of_boxes),
        ]
    )


def _cell_table(shown: Labelled, n: int, shares: CellShares | None) -> str:
    """Return the shares of a grid's cells, row by row, below a title with the test of evenness."""
    words, (rows, columns) = _words(shown), shown.result.kind.shape(n)
    title = f"{shown.label}, {words.size(n, 'x')}: share of the {words.parts}' score"
    if shares is None or shares.score is None or shares.p_cells is None:
        return f"{title}: {words.say('no cell scores')}"
    marked = [
        f"{100 * score:.0f}{'*' if p < 0.05 else ' '}" for score, p in zip(shares.score, shares.p_cells, strict=True)
    ]
    lines = ["  ".join(cell.rjust(4) for cell in marked[row * columns : (row + 1) * columns]) for row in range(rows)]
    middle = "" if shares.centre is None else f"; the middle earns {shares.centre:.1f} times its share of the area"
    tested = words.say(f"in % (even: p = {shares.p:.3f}; * a cell that is not even, Holm-corrected{middle})")
    return "\n".join([f"{title}, {tested}", *lines])


def category_table(analyzed: Analyzed, width: int | None = None) -> str:
    """Return one row per category of a task."""
    kind = analyzed.run.result.kind
    parts = {
        name: dataclasses.replace(analyzed, analysis=one, metrics=catalogue.columns(one, kind))
        for name, one in analyzed.categories.items()
    }
    rows = [_of(part.result, name) for name, part in parts.items()]
    return "\n\n".join(
        filter(None, [f"{analyzed.run.name}, by category\n{table(rows, width)}", necessity.table(rows, width)])
    )


def pooled_table(pooled: Sequence[Pooled], width: int | None = None) -> str:
    """Return a row per group and grid: the index of the pooled FIP and MPP.

    CRCI, and tasks of clips, have tables of their own.
    """
    of_name: dict[str, list[Pooled]] = {}
    for one in pooled:
        of_name.setdefault(_name(one.asked), []).append(one)
    parts = []
    for some in of_name.values():
        why = dict.fromkeys(f"- {p.group}: {p.index.reason}" for p in some if p.index.value is None and p.index.reason)
        table = _pooled_sheet(some, some[0].asked.words).to_text(width)
        parts.append(
            "\n".join(["All tasks of a group, pooled", table, *(fold(text.line(line), width) for line in why)])
        )
    return "\n\n".join(parts)


def _pooled_sheet(pooled: Sequence[Pooled], words: Words) -> Sheet:
    """Return the pooled numbers of one medium."""
    name = _name(pooled[0].asked)
    heads: Heads = [
        "group",
        "grid",
        "docs",
        "full (FIP)",
        f"best {words.part} (MPP)",
        Column(f"{name} [interval]", signed=True),
    ]
    return sheets.table(
        heads, [[p.group, words.size(p.n, "x"), p.index.n, number(p.fip), number(p.mpp), p.index] for p in pooled]
    )


def averaged_table(
    averaged: Sequence[Averaged], runs: Sequence[Sequence[Analyzed]] = (), width: int | None = None
) -> str:
    """Return one row per task and number: mean over runs, standard deviation between runs, and the interval over docs.

    Args:
        averaged: the tasks.
        runs: what they are averaged of; an index that must not be read as it stands in one of them is marked.
        width: characters in a line; None: any.
    """
    heads: Heads = ["task", "number", "runs", "mean", "SD between runs", "interval over docs"]
    rows: list[Cells] = []
    for a in averaged:
        beside = _in_any(a.task, runs)
        for name, value in a.metrics.items():
            # Bounds of intervals are metrics too; here the last column has the interval.
            if not name.endswith(("_low", "_high")):
                said = ", ".join([name, *beside.get(name, ())])
                rows.append([a.task, said, a.runs, number(value), number(a.spread[name]), _span(a.intervals.get(name))])
        for name, one in a.split.items():
            said = f"{name}, {catalogue.indices()[name].words.part} chosen on another run"
            rows.append([a.task, said, a.runs, number(one.value), "", _span(one)])
    return sheets.table(heads, rows).to_text(width)


def _span(estimate: Estimate | None) -> str:
    """Return an interval without its estimate, such as ``[+0.10, +0.30]``; empty where none may be shown."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"[{number(estimate.low, signed=True)}, {number(estimate.high, signed=True)}]"


def _in_any(task: str, runs: Sequence[Sequence[Analyzed]]) -> dict[str, tuple[str, ...]]:
    """Return the marks of a task's indices by name: "contradicted", where at least one run has the mark."""
    out: dict[str, tuple[str, ...]] = {}
    for a in (one for run in runs for one in run if one.run.result.task == task and one.analysis is not None):
        name = a.run.result.kind.prefix
        for key, grid in a.analysis.sets.items() if a.analysis else ():
            if grid.mark:
                out[f"{name}{end(key)}"] = (reading.CONTRADICTED,)
    return out
