"""A board as tables: the flat one of all entries, one for each group, and the means. Pure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_patch.ask.kinds import KINDS, RCI, Kind
from lmms_patch.present.board.board import INDICES, Board, Entry, Group, day
from lmms_patch.present.board.overall import Basis, Changes, Line, Overall
from lmms_patch.present.ranking import STEADY, By, Place
from lmms_patch.present.report import magic_words
from lmms_patch.present.report.points import listed
from lmms_patch.present.report.run_sheets import band_text
from lmms_patch.present.sheets import Column, Row, Sheet
from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.catalogue import without_interval
from lmms_patch.stats.index import band
from lmms_patch.text import clean, harmless, markdown

SCHEMA = 1
ON = "on:"
FIP_ON = "fip:"
"""In front of a benchmark's name where that is the key of the column with the index, or with FIP."""
NEARER = "nearer 0 is better"
MARKED = 6
"""Entries whose contradiction is written out."""
OVERLAP = (
    "A rank is a range: 1 and the number of results that are surely better, to the number of results less those that are surely worse. Surely: the"
    " intervals do not overlap. That is cautious: results whose intervals overlap can still differ. To compare two of them, pair their docs:"
    " `lmms-patch compare A B`."
)
BOTH = "A table is ranked by the steady index where docs were asked again in all its runs, else by the index; each table says by which, and why."
IN_TIME = (
    "TRCI is the index in time: MPP keeps each doc's best segment of the clip in place of its best cell. No mean has both. "
    "Near 0 is no merit on a benchmark that needs the whole clip: rank that by FIP (--by fip)."
)
NEAR_ZERO = (
    "The mean distance of the index from 0, over the same benchmarks for every ranked model."
    " Its interval takes benchmarks as independent, and its lower end allows for what noise adds to a distance."
)


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def range_words(places: Iterable[Place | None]) -> str:
    """Explain ranks such as 2–3 by the first range of a table; empty where each rank is a single place.

    >>> range_words([Place(1, 1, 3), Place(2, 3, 3), Place(2, 3, 3)])
    'Rank 2–3 means the intervals cannot separate second from third.'
    """
    for place in places:
        if place is not None and place.first < place.last:
            return (
                f"Rank {place} means the intervals cannot separate {_ordinal(place.first)} from {_ordinal(place.last)}."
            )
    return ""


def _ordinal(place: int) -> str:
    if place <= len(_ORDINALS):
        return _ORDINALS[place - 1]
    return f"{place}{'th' if place // 10 % 10 == 1 else {1: 'st', 2: 'nd', 3: 'rd'}.get(place % 10, 'th')}"


# --- one group ------------------------------------------------------------------------------------


def title(group: Group, several: bool) -> str:
    """Return the title of a group's table, with its number where there are several for its benchmark and grid."""
    grid = f", {group.words.size(group.grid)}" if group.grid else ""
    what = group.index if group.has_index else group.kind if group.kind not in INDICES else group.entries[0].kind.shows
    return f"{clean(group.base)}{grid}, {what}{f', group {group.number}' if several else ''}"


def settings(group: Group) -> str:
    """Describe the settings shared by a group's runs, without long digests.

    ``Group.id`` stands for those with long digests.
    """
    known = group.fingerprint
    docs = {entry.result.docs for entry in group.entries}
    data = {clean(name) for entry in group.entries if (name := entry.result.about.magic.get("dataset"))}
    parts = [
        f"{', '.join(f'{n:,}' for n in sorted(docs)[:4])} docs{' of ' * bool(data)}{' and '.join(sorted(data)[:2])}"
    ]
    for key, words in (
        ("limit", "limit {}"),
        ("few-shot", "{}-shot"),
        ("metric", "metric {}"),
        ("filter", "filter {}"),
        ("judge", "judge {}"),
    ):
        if known.get(key) is not None:
            lower = key == "metric" and not any(entry.result.higher_is_better for entry in group.entries)
            parts.append(words.format(clean(known[key])) + " (lower is better)" * lower)
    if known.get("folds"):
        parts.append(f"{clean(known['folds'])} folds")
    for key in ("benchmark version", "lmms-eval version"):
        if known.get(key) is not None:
            parts.append(f"{key.removeprefix('benchmark ').removesuffix(' version')} {clean(known[key])}")
    return ", ".join(parts)


def remarks(group: Group) -> list[str]:
    """Return cautions about a group, a sentence each."""
    out = [f"Not comparable with group 1; it differs in: {clean('; '.join(group.differs))}."] if group.differs else []
    if group.unknown:
        out.append(f"Unknown, and so perhaps not the same in these runs: {', '.join(group.unknown)}.")
    if group.merged:
        out.append(f"Set side by side although they differ in (--ignore): {'; '.join(group.merged)}.")
    return [*out, *_on_reading(group)]


def _on_reading(group: Group) -> list[str]:
    """Say what a group of indices is ranked by, which indices are contradicted, and which models are unchecked."""
    if not group.has_index:
        return [f"{group.why}."] if group.why else []
    unlooked = group.words.say("Not known whether the answers depend on the image (no or too few docs on wrong images)")
    marked = [f"{clean(entry.model)}: {entry.mark}" for entry in group.entries if entry.mark and not entry.refused]
    unchecked = [clean(entry.model) for entry in group.entries if reading.unchecked(entry.result.analysis)]
    marginal = [clean(entry.model) for entry in group.entries if entry.gate and entry.gate.marginal]
    out = [f"{clean(group.why)}."] if group.why else []
    rest = [f"and {len(marked) - MARKED} more"] if len(marked) > MARKED else []
    out += [f"{reading.CONTRADICTED.capitalize()}: {'; '.join([*marked[:MARKED], *rest])}."] if marked else []
    out += [f"{unlooked}: {listed(unchecked, 6)}."] if unchecked else []
    return out + (
        [f"{reading.MARGINAL_PASS[0].upper()}{reading.MARGINAL_PASS[1:]}: {listed(marginal, 6)}."] if marginal else []
    )


def group_sheet(group: Group, several: bool) -> Sheet:
    """Return the table of a group."""
    columns = (
        _index_columns(group)
        if group.has_index
        else _magic_columns(group)
        if group.kind == "magic"
        else _other_columns(group)
    )
    note = " ".join([settings(group) + ".", *remarks(group)])
    return Sheet(f"{group.kind}-{group.id}-{group.grid}", title(group, several), columns, _rows(group), note)


_OF_ALL, _OF_INDEX = ("fip", "chance", "ceiling"), ("mpp{key}", "gap{key}")
"""Rows of the catalogue that are not of one kind, and those that each table of an index has a column for."""
_SAME = {"{kind}{key}": "score", "rotate_every": "score", "drop{key}": "drop", "rotate_lost": "drop"}
"""Rows of the catalogue that share a column of ``leaderboard.csv``: a kind's own score, and what it lost against the full image."""
FIP = Column("fip", "FIP", help="The native metric on full images, on its own scale, over all docs.")
CHANCE = Column("chance", "Chance", help="What the best uninformed answer scores.")
GATE = Column(
    "gate",
    "Gate",
    help="Whether FIP beats chance, and the answers depend on the image: if not, the index means nothing.",
)
DOCS, DATE = Column("docs", "Docs"), Column("date", "Date")
_LAST = (
    DOCS,
    Column("runs", "Runs", help="How many runs there are; the newest counts."),
    DATE,
    Column("reason", "Why no rank"),
)


def _index_columns(group: Group) -> tuple[Column, ...]:
    """Return the columns of a group with an index; those about left-out docs only where an entry leaves some out."""
    index, out, say = group.index, any(entry.cells and entry.cells.excluded for entry in group.entries), group.words.say
    return (
        Column("rank", "Rank", help="The range of places that noise leaves open."),
        Column("model", "Model"),
        Column(
            "index",
            index,
            signed=True,
            help="1 − MPP / FIP, without unit, with its interval.",
            index=group.headline == "index",
        ),
        Column(
            "steady",
            reading.name(index, steady=True),
            signed=True,
            help="Of the docs answered with their image, the share that needs all of it: guesses are not said again.",
            index=group.headline == "steady",
        ),
        Column("span", "Band", help="The bands that the interval of the number reaches that ranks go by."),
        dataclasses.replace(FIP, help=say(FIP.help)),
        *(
            [
                Column(
                    "fip_used",
                    "FIP, used docs",
                    help="The same over the docs that the index does not leave out: index = 1 − MPP / this.",
                )
            ]
            if out
            else []
        ),
        Column("mpp", "MPP", help=say("The native metric on each doc's best cell, on its own scale.")),
        Column("gap", "Gap", signed=True, help="FIP − MPP, on the metric's own scale."),
        *of_numbers(group).values(),
        CHANCE,
        dataclasses.replace(GATE, help=say(GATE.help)),
        DOCS,
        *([Column("docs_used", "Used docs", help="Docs that MPP, index and gap rest on.")] if out else []),
        Column("excluded", "Left out", help="Docs that the index leaves out."),
        *_LAST[1:],
    )


def _magic_columns(group: Group) -> tuple[Column, ...]:
    """Return the columns of a group of MAGIC tasks, for the numbers of its entries."""
    return (
        Column("model", "Model"),  # first: it stays in sight on narrow screens
        Column(
            "rank",
            "Rank",
            help=f"By {clean(group.entries[0].result.metric)}; the range of places that noise leaves open.",
        ),
        *magic_words.columns(name for entry in group.entries for name in entry.result.measures),
        *_LAST,
    )


def _other_columns(group: Group) -> tuple[Column, ...]:
    """Return the columns of a kind without an index: its numbers."""
    kind, own = group.entries[0].kind, list(of_numbers(group).values())
    if kind.folds:
        own = [
            Column("diagnostic", "Diagnostic"),
            Column("tst", "Text-only score", help="Held-out score of a text-only model, on the metric's own scale."),
            Column("tst_over_chance", "Over chance", signed=True, help="The same less chance."),
            Column("tst_above", "Over the majority", signed=True, help="The same less the frequency baseline, paired."),
        ]
    if kind.full:
        own.insert(0, FIP)
    if group.kind == "occlude":
        own.append(Column("drop", "Drop", signed=True, help="FIP less the score with the worst cell hidden."))
    return (
        Column("model", "Model"),
        *([Column("rank", "Rank", help="The range of places that noise leaves open.")] if group.ranked else []),
        *own,
        CHANCE,
        DOCS,
        Column("runs", "Runs"),
        DATE,
    )


def of_numbers(group: Group) -> dict[str, Column]:
    """Return a column for each catalogue number of a group's entries, by the number's name.

    An index is not among them: it has a column in every table of indices.
    """
    kind, out = group.entries[0].kind, {}
    for name, (number, key) in catalogue.keyed(kind, [group.grid] if group.grid else []).items():
        known = number.words or number.name in (*_OF_ALL, *(_OF_INDEX if kind.index else ()))
        known = known or (name == "score" and (kind.full or kind.curve or kind.folds or group.kind == "magic"))
        if number.measured and not known and any(name in entry.result.measures for entry in group.entries):
            same = _SAME.get(number.name) if key is None or isinstance(key, int) else None
            out[name] = Column(
                same or name,
                number.called(kind, key),
                signed=number.signed,
                help=f"{number.help[0].upper()}{number.help[1:]}.",
            )
    return out


def _rows(group: Group) -> tuple[Row, ...]:
    """Return the rows of a group, the ranked first; each table takes the cells of its columns."""
    own = of_numbers(group)
    ranked = [{**_row(entry, place, "", group, own), "rank": str(place)} for place, entry in group.ranked]
    return (*ranked, *(_row(entry, None, reason, group, own) for entry, reason in group.unranked))


def _row(entry: Entry, place: Place | None, reason: str, group: Group, own: Mapping[str, Column]) -> Row:
    """Return all cells of an entry; ``own`` are the columns of ``of_numbers``."""
    result = entry.result
    row: Row = {
        "kind": group.kind,
        "benchmark": clean(group.base),
        "grid": entry.grid or None,
        "group": group.number,
        "first": place.first if place else None,
        "last": place.last if place else None,
        "model": entry.model,
        "task": clean(result.task),
        "filter": clean(result.filter),
        "metric": clean(result.metric),
        "type": clean(result.type) or None,
        "fip": entry.number("fip") if group.has_index or entry.kind.full else None,
        "chance": result.measures.get("chance"),
        "docs": result.docs,
        "runs": entry.runs,
        "date": day(entry.date),
        "fingerprint": entry.id,
        "reason": clean(reason) or None,
    }
    if group.has_index:
        row |= {name: entry.number(name) for name in ("index", "steady", "mpp", "gap")}
        row["band"], row["span"] = bands(entry, group)
        row |= {
            "gate": reading.gate_word(entry.gate),
            "excluded": entry.cells.excluded if entry.cells else 0,
            "fip_used": entry.cells.fip if entry.cells else None,
            "docs_used": entry.used,
            "mark": entry.mark or None,
            "ranked_by": None if group.by is None else group.by.key,
        }
    elif group.kind == "tst":
        row |= {name: entry.number(name) for name in ("tst", "tst_over_chance", "tst_above")} | {
            "diagnostic": clean((result.tst and result.tst.diagnostic) or "")
        }
    elif group.kind == "occlude":
        row["drop"] = result.measures.get(f"drop{entry.grid}")
    else:
        row["score"] = entry.score
    row |= {column.key: result.measures.get(name) for name, column in own.items()}
    if group.kind == "magic":
        row |= {name: result.measures[name] for name in magic_words.order(result.measures)}
    return row


def bands(entry: Entry, group: Group) -> tuple[str | None, str | None]:
    """Return the band of the headline index, and the bands within reach of its interval."""
    if group.headline == "index":
        grid = entry.cells
        return (None, None) if grid is None else (grid.band, grid.span or grid.band)
    number = entry.number(group.headline)
    return None if number.value is None else band(number.value), band_text(number)


# --- all entries ----------------------------------------------------------------------------------


def flat_sheet(board: Board) -> Sheet:
    """Return a table of all entries, as in ``leaderboard.csv``."""
    words = (
        "kind benchmark grid group rank_first rank_last ranked_by model task filter metric type index mark band span steady fip fip_used"
        " mpp gap score drop"
    )
    words += (
        " tst tst_over_chance tst_above diagnostic chance gate docs docs_used excluded runs date fingerprint reason"
    )
    rows = [row for group in board.groups for row in _rows(group)]
    known = {*words.split()}
    words += "".join(
        f" {column.key}" for group in board.groups for column in of_numbers(group).values() if column.key not in known
    )
    # Columns of MAGIC numbers appear only on boards with MAGIC tasks.
    words += "".join(f" {name}" for name in magic_words.order(name for row in rows for name in row))
    named = tuple({**row, "rank_first": row["first"], "rank_last": row["last"]} for row in rows)
    return Sheet("leaderboard", "Leaderboard", tuple(Column(word) for word in dict.fromkeys(words.split())), named)


# --- means ----------------------------------------------------------------------------------------


def overall_title(table: Overall) -> str:
    """Return the title of a table of models × benchmarks."""
    return f"{'All benchmarks' if not table.type else f'Task type {table.type}'}, {asked(table).words.size(table.grid)}"


def asked(table: Overall) -> Kind:
    """Return the kind of the results of a table."""
    return KINDS["pcri" if table.kind == "index" else table.kind]


def overall_note(table: Overall) -> str:
    """Return what the means of a table are over, in words."""
    if not table.shared:
        return "No benchmark has an index here, so there are no means."
    ranked = sum(line.place is not None for line in table.lines)
    named = ", ".join(clean(base) for base in table.shared)
    without = len(table.lines) - ranked
    more = f" Without a rank, because they lack some of these: {without}." if without else ""
    known = len({*table.benchmarks, *table.shared})
    means = (
        f"Means over {len(table.shared)} of {known} benchmarks, which every ranked model has ({ranked}): {named}.{more}"
    )
    ranked_by = f"Ranked by the mean distance from 0, {NEARER}. FIP is the score on full images."
    return f"{means} {basis_words(table.by)} {ranked_by} {bases_note(table.bases)}"


def basis_words(by: By) -> str:
    """Return which index a table of means is of, and why."""
    if by.steady:
        return STEADY
    return "Of the index of one pass: docs were not asked again in every run."


def bases_note(bases: Mapping[str, Basis]) -> str:
    """Describe the runs behind each benchmark's numbers: whole runs, and apart from these, runs with a limit."""
    whole = [f"{clean(base)} ({_docs(one)})" for base, one in bases.items() if one.whole]
    limited = [f"{clean(base)} ({_docs(one)}, {_limits(one)})" for base, one in bases.items() if not one.whole]
    out = [f"From whole runs: {', '.join(whole)}."] if whole else []
    out += (
        [f"From runs with a limit, which say little of the whole benchmark: {', '.join(limited)}."] if limited else []
    )
    return " ".join(out)


def _docs(one: Basis) -> str:
    docs = " or ".join(f"{n:,}" for n in one.docs) if len(one.docs) < 4 else f"{one.docs[0]:,} to {one.docs[-1]:,}"
    return f"{docs} docs" + (f", {one.sampled} estimated from a part of them" if one.sampled else "")


def _limits(one: Basis) -> str:
    return clean(f"limit {' or '.join('none' if limit == 'all' else limit for limit in one.limits[:4])}")


def overall_head(table: Overall, base: str) -> str:
    """Return the head of a benchmark's column: the name, with the runs' limit where some runs have a limit."""
    one = table.bases[base]
    return clean(base) if one.whole else f"{clean(base)} ({_limits(one)})"


def overall_sheet(table: Overall) -> Sheet:
    """Return models × benchmarks."""
    kind = asked(table)
    words, name, wholes = kind.words, table.index, f"whole {kind.words.medium}s"
    score = any(line.score is not None for line in table.lines)
    columns = (
        Column("rank", "Rank"),
        Column("model", "Model"),
        Column("mean_abs", f"Mean {mean_of(table.by, name, size=True)}, {NEARER}", help=NEAR_ZERO),
        Column(
            "mean",
            f"Mean {mean_of(table.by, name)}",
            signed=True,
            help=f"With its sign: below 0, {words.parts} are better than {wholes}.",
        ),
        *(
            [
                Column(
                    "score",
                    "Mean FIP",
                    help=words.say("The mean score on full images, over the same benchmarks; fractions."),
                )
            ]
            if score
            else []
        ),
        *(column for base in table.benchmarks for column in _benchmark_columns(table, base)),
        Column("lacks", "Lacks"),
    )
    rows = [_overall_row(line) for line in table.lines]
    end = f"{'-segments' if kind.needs_video else ''}{f'-{table.type}' if table.type else ''}"
    return Sheet(f"overall-{table.grid}{end}", overall_title(table), columns, rows, overall_note(table))


def _benchmark_columns(table: Overall, base: str) -> tuple[Column, Column]:
    """Return the two columns of a benchmark: the index and FIP."""
    head = overall_head(table, base)
    apart = "" if base in table.shared else ", not in the mean"
    return Column(column_of(base), f"{head}{apart}", signed=True, index=True), Column(
        FIP_ON + clean(base), f"{head}, FIP"
    )


def mean_of(by: By, name: str, size: bool = False) -> str:
    """Return what a mean is of: the index of this name or its distance from 0, steady or not."""
    index = reading.name(name, steady=by.steady)
    return f"|{index}|" if size else index


def column_of(base: str) -> str:
    """Return the key of a benchmark's column."""
    return ON + clean(base)


def _overall_row(line: Line) -> Row:
    cells: Row = {column_of(base): one for base, one in line.cells.items()}
    cells |= {column_of(base): without_interval(None, 0, clean(why)) for base, why in line.missing.items()}
    cells |= {FIP_ON + clean(base): score for base, score in line.scores.items()}
    means: Row = {"mean_abs": line.mean_abs, "mean": line.mean, "score": line.score}
    return {
        "rank": str(line.place or ""),
        "model": line.model,
        **means,
        **cells,
        "lacks": clean(", ".join(line.lacks)) or None,
    }


def changes_sheet(changes: Changes) -> Sheet:
    """Return the table of relative changes of the index from a grid to a finer grid."""
    coarse, fine = f"{changes.coarse}×{changes.coarse}", f"{changes.fine}×{changes.fine}"
    columns = (
        Column("model", "Model"),
        Column("coarse", f"Mean {mean_of(changes.by, changes.index)}, {coarse}", signed=True, index=True),
        Column("fine", f"Mean {mean_of(changes.by, changes.index)}, {fine}", signed=True, index=True),
        Column(
            "change",
            "Relative change",
            signed=True,
            help="(fine − coarse) / |coarse| of the two means, a fraction (PCRI paper, A.4.6).",
        ),
        *(
            Column(column_of(base), clean(base), signed=True, help="Relative change on this benchmark.")
            for base in changes.benchmarks
        ),
        Column("lacks", "Lacks"),
    )
    rows = []
    for row in changes.lines:
        cells: Row = {column_of(base): one for base, one in row.cells.items()}
        means: Row = {"coarse": row.coarse and row.coarse.value, "fine": row.fine and row.fine.value}
        means["change"] = row.change if row.change is None or row.change.value is None else row.change.value
        rows.append({"model": row.model, **means, **cells, "lacks": clean(", ".join(row.lacks)) or None})
    shared = ", ".join(clean(base) for base in changes.shared)
    note = (
        f"(fine − coarse) / |coarse|, a fraction: −1 is a fall by 100 %. Means over {len(changes.shared)} benchmarks with both grids: {shared}."
        f" {basis_words(changes.by)} {bases_note(changes.bases)}"
        " A large change of a small index says little: read it beside the index itself. N/A: the coarser index cannot be told from 0."
    )
    return Sheet(f"change-{changes.coarse}-{changes.fine}", f"From {coarse} to {fine}", columns, rows, note)


# --- files ----------------------------------------------------------------------------------------


def head(board: Board) -> list[str]:
    """Return what to know of the whole board, a sentence each."""
    out = [
        f"Runs: {len(board.runs):,}; models: {len(board.models):,}. Ranked by {board.by.words}.",
        *([IN_TIME] if board.of("trci") else []),
        *([BOTH] if board.by.key == "pcri" and board.of("index") else []),
        *(
            ["MAGIC tasks are ranked by their primary metric, higher first; other judges stand in other tables."]
            if board.of("magic")
            else []
        ),
        "Results stand in one table only where all but the model is the same: docs, prompts, limit, versions, settings.",
    ]
    if board.ignored:
        out.append(f"Differences in these settings are ignored on this board: {', '.join(board.ignored)}.")
    return out


def group_sheets(board: Board) -> list[Sheet]:
    """Return the table of each group, in their order."""
    several = board.crowded()
    return [group_sheet(group, (group.kind, group.base, group.grid) in several) for group in board.groups]


def heading(kind: str) -> str:
    """Return the heading of the tables of a kind (``Group.kind``)."""
    return (RCI if kind == "index" else KINDS[kind]).heading


def markdown_text(
    name: str, board: Board, overalls: Sequence[Overall], changes: Sequence[Changes], sheets: Sequence[Sheet]
) -> str:
    """Return the board as a Markdown page, with ``sheets`` from ``group_sheets``."""
    blocks = [f"# {markdown(name)}", " ".join(markdown(line) for line in head(board)), OVERLAP]
    for table in overalls:
        blocks += _blocks(overall_sheet(table), 2)
    for change in changes:
        blocks += _blocks(changes_sheet(change), 2)
    for kind in dict.fromkeys(group.kind for group in board.groups):
        blocks.append(f"## {heading(kind)}")
        for group, sheet in zip(board.groups, sheets, strict=True):
            blocks += _blocks(sheet, 3) if group.kind == kind else []
    return "\n\n".join(blocks) + "\n"


def _blocks(sheet: Sheet, level: int) -> list[str]:
    """Return a table in Markdown with heading and note; columns without any value are left out."""
    used = tuple(c for c in sheet.columns if any(row.get(c.key) not in (None, "") for row in sheet.rows))
    return [
        f"{'#' * level} {markdown(sheet.title)}",
        markdown(sheet.note),
        dataclasses.replace(sheet, columns=used).to_markdown().rstrip(),
    ]


def to_json(
    name: str,
    board: Board,
    overalls: Sequence[Overall],
    changes: Sequence[Changes],
    sheets: Sequence[Sheet],
    pages: Sequence[str],
) -> dict[str, Any]:
    """Return the tables: ``board.json``; ``sheets`` as ``group_sheets`` makes them, ``pages`` the files of models."""
    return {
        "schema": SCHEMA,
        "title": clean(name),
        "ranked_by": board.by.key,
        "ignored": list(board.ignored),
        "runs": len(board.runs),
        "models": sorted(board.models.values()),
        "pages": list(pages),
        "overall": [
            {
                "kind": one.kind,
                "grid": one.grid,
                "type": one.type,
                "shared": list(one.shared),
                "bases": _bases_json(one.bases),
                "table": overall_sheet(one).to_json(),
            }
            for one in overalls
        ],
        "changes": [
            {
                "coarse": one.coarse,
                "fine": one.fine,
                "shared": list(one.shared),
                "bases": _bases_json(one.bases),
                "table": changes_sheet(one).to_json(),
            }
            for one in changes
        ],
        "groups": [_group_json(group, sheet) for group, sheet in zip(board.groups, sheets, strict=True)],
    }


def _bases_json(bases: Mapping[str, Basis]) -> dict[str, Any]:
    return {
        base: {"group": one.group, "docs": list(one.docs), "limits": list(one.limits)} for base, one in bases.items()
    }


def json_text(
    name: str,
    board: Board,
    overalls: Sequence[Overall],
    changes: Sequence[Changes],
    sheets: Sequence[Sheet],
    pages: Sequence[str],
) -> str:
    """Return ``to_json`` as text, each table on a line."""
    lists = ("overall", "changes", "groups")
    plain = harmless(to_json(name, board, overalls, changes, sheets, pages))
    parts = [f"{json.dumps(key)}:{json.dumps(value)}" for key, value in plain.items() if key not in lists]
    parts += [f"{json.dumps(key)}:[\n" + ",\n".join(json.dumps(one) for one in plain[key]) + "\n]" for key in lists]
    return "{" + ",\n".join(parts) + "}\n"


def _group_json(group: Group, sheet: Sheet) -> dict[str, Any]:
    """Return a group and its table in plain JSON types."""
    about = {name: getattr(group, name) for name in ("kind", "base", "grid", "number", "id")}
    told: dict[str, Any] = {name: list(getattr(group, name)) for name in ("differs", "unknown", "merged")}
    told |= {"ranked_by": None if group.by is None else group.by.key, "why": group.why}
    return {**about, **told, "settings": dict(group.fingerprint), "table": sheet.to_json()}
