"""The pages of a board (``present.page``): its table of models, and a page for each model."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jinja2
from markupsafe import Markup, escape

from lmms_patch.present.board import model_page, tables
from lmms_patch.present.board.board import Board, Entry, Group, day
from lmms_patch.present.board.chart import chart
from lmms_patch.present.board.overall import Changes, Overall
from lmms_patch.present.findings import Finding, case, findings
from lmms_patch.present.page import environment, markup, wording
from lmms_patch.present.ranking import Place
from lmms_patch.present.sheets import Cell, Column, Sheet
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import block, clean, cut

OPEN = 3
"""Tables of single benchmarks are open where there are no more than so many."""
SHORT = 4_000
"""With more results than this the page shows the most important columns only; the files have all."""
COMMAND = 20_000
"""Characters that a page shows of a command, which must be whole to be of use; of a longer one the page says how long it is."""
MANY = 5
"""Findings are folded where there are more models than so many: each has a page with its own."""
FEW = 5
"""Over more benchmarks than so many, intervals of single ones are shown where the pointer is."""
_KEPT = ("rank", "model", "index", "fip", "fip_used", "mpp", "docs", "date")


@functools.cache
def _templates() -> jinja2.Environment:
    made = environment("lmms_patch.present.board", "board.css")
    made.globals["links_of"] = _links_of
    return made


def page(
    title: str,
    board: Board,
    overalls: Sequence[Overall],
    changes: Sequence[Changes],
    sheets: Sequence[Sheet],
    hrefs: Mapping[tuple[str, str, str], str],
) -> str:
    """Return the page as HTML, to be written as UTF-8: the table first.

    Args:
        title: of the page.
        board: all groups.
        overalls: ``overall.overall``.
        changes: ``overall.changes``.
        sheets: ``tables.group_sheets``.
        hrefs: of each model, the address of its page.
    """
    short = sum(len(group.entries) for group in board.groups) > SHORT
    links = {board.models[identity]: href for identity, href in hrefs.items()}
    shown = [
        _group(group, sheet, f"g{i}", short, links)
        for i, (group, sheet) in enumerate(zip(board.groups, sheets, strict=True))
    ]
    means = [
        *(_overall(one, f"o{i}", links) for i, one in enumerate(overalls)),
        *(_change(one, f"c{i}", links) for i, one in enumerate(changes)),
    ]
    kinds = dict.fromkeys(group.kind for group in board.groups)
    found, tables_of = _findings(board)
    return (
        _templates()
        .get_template("leaderboard.html.j2")
        .render(
            title=title,
            about=about(board),
            head=tables.head(board),
            short=short,
            overlap=tables.OVERLAP.replace("`", ""),
            near_zero=tables.NEAR_ZERO,
            first=next(iter(means), None),
            rest=means[1:],
            findings=found,
            findings_at=0 if means else 1,
            fold_findings=len(board.models) > MANY,
            tables=tables_of,
            others=any(group.number > 1 for group in board.groups),
            hrefs=links,
            kinds=[(kind, tables.heading(kind), [one for one in shown if one["kind"] == kind]) for kind in kinds],
            open_all=len(board.groups) <= OPEN,
        )
    )


def about(board: Board) -> str:
    """Describe a board in a line: numbers of models, benchmarks and runs, and the newest day.

    The days are those of the results that are shown.
    """
    counts = (
        (len(board.models), "model"),
        (len({group.base for group in board.groups}), "benchmark"),
        (len(board.runs), "run"),
    )
    days = [day(entry.date) for group in board.groups for entry in group.entries]
    newest = f"; the newest of {max(days)}" if days else ""
    return ", ".join(f"{count:,} {word}{'s' * (count != 1)}" for count, word in counts) + newest


def model(
    board_title: str, name: str, entries: Sequence[tuple[Group, Entry]], ran: Sequence[model_page.Ran], more: int
) -> str:
    """Return a model's page as HTML.

    Args:
        board_title: the title of the board.
        name: the model's.
        entries: its entries, with their groups.
        ran: its runs.
        more: how many older runs are not listed.
    """
    sheet = model_page.numbers(entries)
    about = [entry.result for _, entry in model_page.told(entries)]
    cases = {id(result): case(result, name, str(i)) for i, result in enumerate(about)}
    return (
        _templates()
        .get_template("model.html.j2")
        .render(
            title=f"{name}: {board_title}",
            board=board_title,
            model=name,
            findings=findings(list(cases.values())) if cases else [],
            others=any(id(entry.result) not in cases for _, entry in entries),
            sheet=sheet,
            body=_rows(sheet, {}),
            ran=[(run, Markup(escape(block(cut(run.command, COMMAND))))) for run in ran],
            more=more,
        )
    )


def _findings(board: Board) -> tuple[list[Finding], dict[str, tuple[str, str]]]:
    """Return what was found in the first group of each benchmark, and by the key of a case the id and the name of its table."""
    cases, shown = {}, {}
    for i, group in enumerate(board.groups):
        for k, entry in enumerate(group.entries if group.number == 1 else ()):
            if id(entry.result) not in cases:
                key = f"g{i}-{k}"
                cases[id(entry.result)] = case(entry.result, entry.model, key)
                shown[key] = f"g{i}", clean(group.base) + ("" if group.has_index else f", {group.kind}")
    return (findings(list(cases.values())) if cases else []), shown


def _links_of(cases: Iterable[str], shown: Mapping[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the tables of some cases, each once: id and name."""
    return list(dict.fromkeys(shown[key] for key in cases))


def _rows(sheet: Sheet, links: Mapping[str, str]) -> Markup:
    """Return the body of a table whose rows the search box filters; models are links to their pages."""

    def finish(made: str, row: Mapping[str, Cell], column: Column) -> str:
        """Return a cell with FIP below an index, and a model as a link."""
        score = row.get(column.key.replace(tables.ON, tables.FIP_ON, 1)) if column.key.startswith(tables.ON) else None
        if isinstance(score, Estimate) and score.value is not None:
            made = made.replace("</td", f'<span class="fip"><span>FIP </span>{wording.value(score)}</span></td', 1)
        if column.key == "model" and (href := links.get(str(row.get(column.key)))):
            made = made.replace(">", f'><a href="{escape(href)}">', 1).replace("</t", "</a></t", 1)
        return made

    return markup.rows(sheet, finish, ' data-find=""')


def _shown(sheet: Sheet, identifier: str, links: Mapping[str, str], places: Iterable[Place | None]) -> dict[str, Any]:
    # The model stands first, so that it stays in sight on narrow screens.
    sheet = dataclasses.replace(sheet, columns=tuple(sorted(sheet.columns, key=lambda column: column.key != "model")))
    return {
        "id": identifier,
        "sheet": sheet,
        "body": _rows(sheet, links),
        "ranges": tables.range_words(places),
        "chart": None,
        "tight": False,
    }


def _group(group: Group, sheet: Sheet, identifier: str, short: bool, links: Mapping[str, str]) -> dict[str, Any]:
    """Return what the page shows of a group of results. Of an index, empty columns are left out."""
    if group.has_index:
        said = {
            column.key for column in sheet.columns if any(row.get(column.key) not in (None, 0) for row in sheet.rows)
        } - {"docs_used"}
        kept = {*_KEPT, group.headline} if short else said | {"model", "rank"}
        sheet = dataclasses.replace(sheet, columns=tuple(column for column in sheet.columns if column.key in kept))
    about = {
        "kind": group.kind,
        "models": len(group.entries),
        "settings": tables.settings(group),
        "remarks": tables.remarks(group),
    }
    drawn = None
    if group.by is not None:
        name, index = group.by.name(str(group.entries[0].kind.index), group.entries[0].grid), group.has_index
        key = group.headline if index and group.by.key in ("pcri", "steady") else name
        title = next((column.title for column in sheet.columns if column.key == key), group.by.key)
        drawn = chart(title, [(entry.model, entry.number(key)) for _, entry in group.ranked], group.by.zero)
    return {**_shown(sheet, identifier, links, [place for place, _ in group.ranked]), **about, "chart": drawn}


def _overall(table: Overall, identifier: str, links: Mapping[str, str]) -> dict[str, Any]:
    """Return models × benchmarks, FIP below each index; what a model lacks stands in its cells where they are shown."""
    sheet, told = tables.overall_sheet(table), set(table.benchmarks).issuperset(table.shared)
    columns = (c for c in sheet.columns if not c.key.startswith(tables.FIP_ON) and not (told and c.key == "lacks"))
    shown = _shown(
        dataclasses.replace(sheet, columns=tuple(columns)), identifier, links, [line.place for line in table.lines]
    )
    mean = f"Mean {tables.mean_of(table.by, table.index, size=True)}"
    drawn = chart(mean, [(line.model, line.mean_abs) for line in table.lines if line.place], False)
    return {**shown, "chart": drawn, "tight": len(table.benchmarks) > FEW}


def _change(one: Changes, identifier: str, links: Mapping[str, str]) -> dict[str, Any]:
    return _shown(tables.changes_sheet(one), identifier, links, ())
