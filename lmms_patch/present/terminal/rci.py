"""The tables of a finished run, in plain text: numbers × catalogue, a row for each task and grid."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len

from lmms_patch import text
from lmms_patch.ask.kinds import Key, Kind, Words, by_medium, end
from lmms_patch.present import sheets
from lmms_patch.present.findings import Finding
from lmms_patch.present.sheets import NOT_DEFINED, Cell, Cells, Column, Heads, number, or_na
from lmms_patch.present.terminal.folding import fold
from lmms_patch.rci.pooling import Averaged, Pooled
from lmms_patch.rci.recompute import Analyzed
from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.numbers import Grid
from lmms_patch.runs.numbers import to_json as as_json
from lmms_patch.runs.run import Labelled, Result, Run
from lmms_patch.stats.resample import LEVEL, Estimate
from lmms_patch.stats.spatial import CellShares

NARROW = 110
"""From how many characters in a line on the steady index stands beside RCI; the shares that it is made of always do."""
BYPASS = "bypass"
"""The host's mark of --predict_only, in place of a metric."""
SHARE = "%"
"""The form of a share, which is written in whole percent."""
VALUE = "."
"""The form of a number without its interval."""
HEADS: dict[str, tuple[str, str]] = {
    "text{key}": ("text", SHARE),
    "one{key}": ("one cell", SHARE),
    "whole{key}": ("whole image", SHARE),
    "unsolved{key}": ("unsolved", SHARE),
    "{index}{key}": ("RCI", ""),
    "{index}{key}_steady": ("steady RCI", ""),
    "rotate_every": ("every order", ""),
    "score": ("score", VALUE),
    "fip": ("full", VALUE),
    "mpp{key}": ("best", VALUE),
    "chance": ("chance", VALUE),
    "{kind}{key}": ("score", ""),
    "drop{key}": ("lost", ""),
    "worst": ("worst cell hidden", VALUE),
    "drop_extra": ("relevant drop - adversarial drop", ""),
    "mpp_windows{key}": ("best with windows", VALUE),
    "one_windows{key}": ("one with windows", SHARE),
    "mean{key}": ("one box, on average", ""),
    "regions_best": ("relevant - adversarial: best boxes", ""),
    "regions_even": ("best of equally many", ""),
    "regions_mean": ("one box, on average, each", ""),
    "n_both": ("docs with both", VALUE),
    "n_rotated": ("docs in every order", VALUE),
    "rotate_once": ("once", VALUE),
    "rotate_mean": ("mean", VALUE),
    "rotate_lost": ("once - every", ""),
    "rotate_at{key}": ("gold there", VALUE),
    "rotate_guess": ("guesses", VALUE),
    "rotate_p": ("p, if even", VALUE),
}
"""By the name of a number in the catalogue: the head of its column, and how its cells are written; in order."""
SHARES = ("text{key}", "one{key}", "whole{key}", "unsolved{key}")
WIDE = {"needs_whole{key}": ("whole/solved", SHARE), "gap{key}": ("full - best", ""), "ceiling": ("ceiling", VALUE)}
"""Further columns of a table of any width."""


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


# --- the tables of a run --------------------------------------------------------------------------


def indices(shown: Sequence[Labelled], width: int | None = None) -> str:
    """Return the index of each task at its finest grid, with the scores that it is made of."""
    rows = list({row["task"]: row for s in shown for row in _rows(s)[0]}.values())
    key = "parts" if any(_words(s).instead for s in shown) else "grid"
    columns = [Column("task"), Column("key", key), Column("{index}{key}", f"RCI {_level(shown)}", signed=True)]
    return _laid_out([*columns, Column("fip", "full"), Column("mpp{key}", "best"), Column("chance")], rows, width)


def table(shown: Sequence[Labelled], width: int | None = None) -> str:
    """Return a table for each kind of tasks: what their docs need, the index with its interval, and scores.

    Shares are in percent, scores on the metric's own scale; ``N/A`` where a number is not defined, and in place of an index
    that may not be read why. Full, best and index are over the docs that the grid uses.

    Args:
        shown: the tasks.
        width: characters in a line; where the table is wider, columns follow below. None: any, and all columns.
    """
    groups: dict[str, list[Labelled]] = {}
    for s in shown:
        kind = s.result.kind
        groups.setdefault(kind.heading if kind.full or kind.has_points else "", []).append(s)
    tables = [_table(some, width) for some in groups.values()]
    return "\n\n".join([*tables, *(sheet.to_text(width) for sheet in sheets.of_methods(shown))])


def _table(shown: Sequence[Labelled], width: int | None) -> str:
    """Return the tables of tasks of a kind: what docs need at the finest grid, then a row a key, then numbers of no key."""
    words, level, kind = _words(shown[0]), _level(shown), shown[0].result.kind
    rows, singles = ([row for s in shown for row in _rows(s)[of]] for of in (0, 1))
    key = "boxes" if kind.regions else "at" if not kind.index else "parts" if words.instead else "grid"
    columns = [Column("task"), Column("shown"), Column("key", key)]
    known = {one.name: one for one in catalogue.NUMBERS}
    left_out = [] if width is None else [*WIDE, "metric", *["{index}{key}_steady"] * (width < NARROW)]
    for name, (title, form) in {**HEADS, **WIDE, **_titled()}.items():
        head = words.say(title).replace("RCI", "TRCI") if words.instead else title
        signed = name in known and known[name].signed
        columns.append(Column(name, head if form else f"{head} {level}", signed=signed))
    columns = [one for one in [*columns, Column("docs"), Column("metric")] if one.key not in left_out]
    made = []
    if width and any(row.get(SHARES[0], NOT_DEFINED) != NOT_DEFINED for row in rows):
        finest = list({row["task"]: row for row in rows if SHARES[0] in row}.values())
        grids = ", ".join(dict.fromkeys(str(row["key"]) for row in finest))
        title = f"{words.say('What the docs need, %')} {level}, {key} {grids}"
        made.append(f"{title}\n{_laid_out([one for one in columns if one.key in ('task', *SHARES)], finest, width)}")
    if width:
        columns = [one for one in columns if one.key not in SHARES]
    made += [_laid_out(columns, some, width) for some in (rows, singles) if some]
    return "\n\n".join(made)


@functools.cache
def _titled() -> dict[str, tuple[str, str]]:
    """Return the columns of numbers that say their title in the catalogue: those of a method or kind of its own."""
    titled = (one for one in catalogue.NUMBERS if one.title and one.name not in HEADS)
    return {one.name: (one.title.replace("{key}", "").rstrip(" _"), "") for one in titled}


def _laid_out(columns: Sequence[Column], rows: Sequence[dict[str, Cell]], width: int | None) -> str:
    """Return rows as text; each task whose name would fill the line has a table of its own below its name."""
    used = sheets.used(dict.fromkeys(columns), rows)
    named = dict.fromkeys(str(row["task"]) for row in rows)
    if width is None or max(map(cell_len, named)) < width / 3:
        return sheets.Sheet("", "", used, rows).to_text(width)
    below = ([row for row in rows if row["task"] == name] for name in named)
    tables = (sheets.Sheet("", "", used[1:], some).to_text(width) for some in below)
    return "\n\n".join(f"{text.line(name)}\n{made}" for name, made in zip(named, tables, strict=True))


def _rows(shown: Labelled) -> tuple[list[dict[str, Cell]], list[dict[str, Cell]]]:
    """Return a row for each grid, set of boxes, point or place of a task, and a row of further numbers of no such key."""
    result, kind, analysis = shown.result, shown.result.kind, shown.result.analysis
    keyed, grids = catalogue.keyed(kind, result.grids), catalogue.grids_of(kind, result.grids)
    flat = catalogue.columns(analysis, kind) if analysis else {}
    rows: dict[Key | None, dict[str, Cell]] = {key: {} for key in result.indexed}
    single: dict[str, Cell] = {}
    for name, value in {**flat, **result.measures}.items():
        found, key = keyed.get(name) or (None, grids.get(name))
        column = found.name if found else "worst" if key else name
        if column in HEADS or column in WIDE or column in _titled():
            row = single if key is None else rows.setdefault(key, {})
            row[column] = _cell(shown, column, value)
    shows = ", ".join([kind.shows, *([] if kind.swapped else map(kind.words.size, result.grids))])
    of_all: dict[str, Cell] = {"task": shown.label, "metric": result.metric, "chance": single.pop("chance", None)}
    if kind.full:
        of_all["fip"] = or_na(_fip(shown))
    elif not kind.has_points:
        of_all |= {"shown": shows, "score": or_na(_fip(shown))}
    of_all |= {name: single.pop(name) for name in _titled() if name in single}
    further = {name: cell for name, cell in single.items() if name not in ("score", "fip", "ceiling")}
    if kind.swapped and analysis:
        rows = {key: {"mpp{key}": or_na(grid.mpp.value)} for key, grid in analysis.sets.items()}
    out = []
    for key, row in (rows or {None: further}).items():
        size = "" if key is None else end(key)
        grid, score = _set(shown, key), result.measures.get(f"{kind.name}{size}") if kind.has_points else None
        row = {**of_all, "key": _called(kind, key), "docs": _docs(shown, grid, score), **row}
        of_same = reading.full_of_the_same(result.measures, kind, size) if kind.full else None
        of_used = of_same if of_same is not None else grid.fip if grid else None
        if kind.full and of_used is not None:
            row["fip"] = of_used
        if isinstance(row.get("{index}{key}"), str):  # why is said once
            row.pop("{index}{key}_steady", None)
        out.append(row)
    return out, [{"task": shown.label, **further}] if rows and further else []


def _called(kind: Kind, key: Key | None) -> str | None:
    """Return what a row is of: a grid, a set of boxes, a point of a curve, or a place of the gold."""
    if key is None:
        return None
    if kind.turns and not kind.index:
        return f"gold at {chr(ord('A') + int(key) - 1)}"
    return kind.words.size(key, "x") if isinstance(key, int) else kind.called(key)


def _cell(shown: Labelled, column: str, value: Estimate | float | None) -> Cell:
    """Return a number as its column writes it, or why there is none."""
    form = {**HEADS, **WIDE}.get(column, ("", ""))[1]
    if not isinstance(value, Estimate):
        return or_na(value)
    if value.value is None and column.startswith("{index}"):
        # only the words before the colon fit a cell
        why = value.reason.partition(":")[0] if column.endswith("_steady") else NOT_DEFINED
        return _refused(shown) or why
    if form == SHARE:
        return percent(value)
    return or_na(value.value) if form == VALUE or value.value is None else value


def percent(share: Estimate, unit: str = "") -> str:
    """Return a share with its interval in whole percent, the unit behind the share.

    >>> percent(Estimate(0.244, None, 0.19, 0.31, 9, 9, 9)), percent(Estimate(1.0, None, None, None, 9, 9, 9))
    ('24 [19, 31]', '100')
    """
    return NOT_DEFINED if share.value is None else f"{100 * share.value:.0f}{unit}{sheets.ends_in_percent(share)}"


def _words(shown: Labelled) -> Words:
    return shown.result.kind.words


def _set(shown: Labelled, key: Key | None) -> Grid | None:
    """Return the numbers of a task at a grid or set of boxes; None where the run stored none."""
    return shown.result.analysis.sets.get(key) if shown.result.analysis and key is not None else None


def _level(shown: Sequence[Labelled]) -> str:
    """Return the level of the intervals as a table's head shows it, such as ``[95 %]``."""
    return f"[{100 * next((s.result.analysis.fip.level for s in shown if s.result.analysis), LEVEL):.3g} %]"


def _fip(shown: Labelled) -> float | None:
    """Return FIP as the harness printed its number, but over the answered docs alone where calls failed.

    None of a run that scored nothing.
    """
    result = shown.result
    if result.failed:  # what the harness prints counts failed calls as answers
        return result.analysis.fip.value if result.analysis else None
    printed = result.native.values.get(result.metric)
    score = result.measures["score"].value if printed is None else printed
    return None if result.metric == BYPASS else score


def _docs(shown: Labelled, grid: Grid | None, score: Estimate | None) -> str:
    """Return how many docs count at a grid or for a score, and how many are left out or failed."""
    result = shown.result
    docs = result.scored or (0 if result.failed else result.docs)
    out = grid.excluded if grid else docs - score.n if score else 0
    notes = [f"{count} {why}" for count, why in ((out, "left out"), (result.failed, "failed")) if count]
    return " ".join([str(score.n if score else docs), *[f"({', '.join(notes)})"] * bool(notes)])


def _refused(shown: Labelled) -> str:
    """Return in a word or two why the gate refuses the index; empty where the index may be read."""
    gate = shown.result.analysis.gate if shown.result.analysis and shown.result.kind.has_index else None
    return reading.refusal(gate.reason) if gate and gate.valid is False else ""


def to_json(run: Run, findings: Sequence[Finding], parts: Sequence[Analyzed] = ()) -> dict[str, Any]:
    """Return the findings and every number of a run in plain JSON types.

    Args:
        run: the run.
        findings: its findings.
        parts: the numbers of tasks by category, where these are asked for.
    """
    categories = {one.run.name: one.categories for one in parts}
    tasks = [
        {
            **{name: getattr(result, name) for name in ("task", "filter", "base", "metric", "docs")},
            "kind": result.kind.name,
            "numbers": as_json(result.measures),
            "analysis": as_json(result.analysis),
            "tst": as_json(result.tst),
            "categories": as_json(categories.get(result.label, {})),
        }
        for result in run.results
    ]
    return {"schema": 1, "model": run.model, "findings": as_json(findings), "tasks": tasks}


# --- what to mind ---------------------------------------------------------------------------------


def warnings(shown: Sequence[Labelled]) -> list[str]:
    """Return warnings, one line each; a line begins with the names of all tasks with this warning."""
    tasks: dict[str, list[str]] = {}
    for s in shown:
        # of numbers that nobody asked for there is nothing to say
        for line in dict.fromkeys(filter(None, _of_failures(s) if s.result.metric == BYPASS else _minds(s))):
            tasks.setdefault(line, []).append(s.label)
    return [text.line(f"{', '.join(names)}: {line}") for line, names in tasks.items()]


def _minds(shown: Labelled) -> list[str]:
    """Return a task's warnings, one line each; some lines may be empty."""
    result, analysis = shown.result, shown.result.analysis
    lines: list[str] = []
    if analysis:
        lines += [*analysis.warnings, *(line for grid in analysis.sets.values() for line in grid.warnings)]
        of_boxes = analysis.regions or analysis.hidden
        for key, reasons in of_boxes.left_out.items() if of_boxes else ():
            told = ", ".join(f"{count} with {why}" for why, count in sorted(reasons.items(), key=lambda one: -one[1]))
            lines += [f"docs left out of the numbers of {key} boxes: {told}"] * bool(told)
        lines += [analysis.gate.reason] if _refused(shown) else []
        lines += reading.minds(analysis, _words(shown)) if result.kind.index or result.kind.regions else []
        lines += [why for one in analysis.necessity if (why := one.shares["text"].reason) and one.again]
        lines += [_words(shown).say(BOTH)] * any(not one.told_apart for one in analysis.necessity)
    return [*lines, reading.kept(result.made), *_of_failures(shown), _fip_of_used_docs(shown)]


BOTH = "text and one cell are not told apart: all cells know docs that wrong images do not"


def _of_failures(shown: Labelled) -> list[str]:
    """Return how many calls failed, and how failed calls change the number that the harness prints.

    Nothing where each was answered.
    """
    failed, metric = shown.result.analysis.failed if shown.result.analysis else None, shown.result.metric
    if failed is None:
        return []
    return [failed.sentence, failed.native(metric) if shown.result.native.values.get(metric) is not None else ""]


def _fip_of_used_docs(shown: Labelled) -> str:
    """Say what FIP is over all docs, where the table shows FIP over fewer docs; "" where it shows that of all."""
    of_all = number(_fip(shown))
    used = {number(grid.fip) for n in shown.result.indexed if (grid := _set(shown, n)) and grid.fip is not None}
    if not used - {of_all}:
        return ""
    return f"full is over the docs that the index uses; over all {shown.result.scored} docs it is {of_all}"


# --- further tables -------------------------------------------------------------------------------


def chances(shown: Sequence[Labelled], width: int | None = None, *, floors: bool = True) -> str:
    """Return the scores that the full image had to beat in each task: chance plus margin, and the score on wrong images.

    Args:
        shown: the tasks; those of clips have a table of their own.
        width: characters in a line; None: any.
        floors: with every chance floor.
    """
    parts = []
    for words, some in by_medium(shown, _words):
        title = f"What the score had to beat: chance and its margin (needs), and a wrong {words.medium}"
        heads: Heads = ["task", "score", "needs", "gate", "wrong", Column("score - wrong", signed=True), "docs asked"]
        heads += ["uniform", "constant", "by stratum", "other gold", "published rule", "ceiling"] if floors else []
        rows = [[or_na(cell) for cell in _chances(s)][: len(heads)] for s in some]
        parts.append("\n".join([fold(title, width), sheets.table(heads, rows).to_text(width)]))
    return "\n\n".join(parts)


def _chances(shown: Labelled) -> Cells:
    analysis = shown.result.analysis
    if analysis is None:
        return [shown.label, _fip(shown), None, reading.gate_word(None), *[None] * 9]
    looked = next(iter(analysis.gate.looks), None)
    cells: Cells = [shown.label, _fip(shown), analysis.gate.threshold, reading.gate_word(analysis.gate)]
    cells += [looked.other, looked.difference, looked.docs] if looked else [None] * 3
    floors = (analysis.chance.floors.get(name) for name in ("uniform", "constant", "stratum", "other"))
    return [*cells, *(floor and floor.value for floor in floors), analysis.chance.published, analysis.ceiling]


def cell_tables(shown: Sequence[Labelled]) -> str:
    """Return each cell's share of the score in percent, and whether the shares could be even, for each task and grid."""
    tables = [_cell_table(s, n, grid.shares) for s in shown for n in s.result.indexed if (grid := _set(s, n))]
    of_boxes = [s.label for s in shown if s.result.kind.regions]
    none = "no shares of cells; the boxes of a doc are no places that all docs have"
    return "\n\n".join([*tables, *(f"{name}: {none}" for name in of_boxes)])


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
    parts = (
        (name, dataclasses.replace(analyzed, analysis=one, metrics=catalogue.columns(one, kind)))
        for name, one in analyzed.categories.items()
    )
    rows = [_of(part.result, name) for name, part in parts]
    none: dict[str, list[str]] = {}
    for row in rows:
        for one in row.result.analysis.necessity[:1] if row.result.analysis else ():
            none.setdefault(one.shares["text"].reason, []).append(row.label)
    why = (f"- no shares of {', '.join(names)}: {reason}" for reason, names in none.items() if reason)
    made = [f"{analyzed.run.name}, by category\n{table(rows, width)}", *(fold(text.line(one), width) for one in why)]
    return "\n".join(made)


def pooled_table(pooled: Sequence[Pooled], width: int | None = None) -> str:
    """Return a row per group and grid: the index of the pooled FIP and MPP; tasks of clips have a table of their own."""
    parts = []
    for words, some in by_medium(pooled, lambda one: one.asked.words):
        why = dict.fromkeys(f"- {p.group}: {p.index.reason}" for p in some if p.index.value is None and p.index.reason)
        name = "TRCI" if words.instead else "RCI"
        heads: Heads = ["group", "grid", "docs", "full", "best", Column(f"{name} [interval]", signed=True)]
        rows: list[Cells] = [
            [p.group, words.size(p.n, "x"), p.index.n, number(p.fip), number(p.mpp), p.index] for p in some
        ]
        told = (fold(text.line(line), width) for line in why)
        parts.append("\n".join(["All tasks of a group, pooled", sheets.table(heads, rows).to_text(width), *told]))
    return "\n\n".join(parts)


def averaged_table(
    averaged: Sequence[Averaged], runs: Sequence[Sequence[Analyzed]] = (), width: int | None = None
) -> str:
    """Return one row per task and number: mean over runs, standard deviation between runs, and the interval over docs.

    Args:
        averaged: the tasks.
        runs: what they are averaged of; an index that must not be read as it stands in one of them is marked.
        width: characters in a line; None: any.
    """
    rows: list[Cells] = []
    for a in averaged:
        marked = _contradicted(one for run in runs for one in run if one.run.result.task == a.task)
        for name, value in a.metrics.items():
            # bounds of intervals are metrics too; here the last column has the interval
            if not name.endswith(("_low", "_high")):
                said = f"{name}, {reading.CONTRADICTED}" if name in marked else name
                rows.append([a.task, said, a.runs, number(value), number(a.spread[name]), _span(a.intervals.get(name))])
        for name, one in a.split.items():
            said = f"{name}, {catalogue.indices()[name].words.part} chosen on another run"
            rows.append([a.task, said, a.runs, number(one.value), "", _span(one)])
    heads: Heads = ["task", "number", "runs", "mean", "SD between runs", "interval over docs"]
    return sheets.table(heads, rows).to_text(width)


def _span(estimate: Estimate | None) -> str:
    """Return an interval without its estimate, such as ``[+0.10, +0.30]``; empty where none may be shown."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"[{number(estimate.low, signed=True)}, {number(estimate.high, signed=True)}]"


def _contradicted(analyzed: Iterable[Analyzed]) -> set[str]:
    """Return the names of the indices that the steady index contradicts in some run."""
    sets = [(a.run.result.kind.prefix, a.analysis.sets) for a in analyzed if a.analysis]
    return {f"{prefix}{end(key)}" for prefix, grids in sets for key, grid in grids.items() if grid.mark}
