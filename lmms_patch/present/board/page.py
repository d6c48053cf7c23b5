"""The page of a board: one HTML file, from disk, without a network; the report's style, script and policy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jinja2

from lmms_patch.present.board import tables
from lmms_patch.present.board.board import Board, Group
from lmms_patch.present.board.overall import Changes, Overall
from lmms_patch.present.report.page import assets, environment
from lmms_patch.present.sheets import Sheet

OPEN = 12
"""Tables of single benchmarks are open where there are no more than so many."""
SHORT = 4_000
"""With more results than this the page shows the most important columns only; the files have all."""
_KEPT = ("rank", "model", "index", "fip", "fip_used", "mpp", "docs", "date")


def page(title: str, board: Board, overalls: Sequence[Overall], changes: Sequence[Changes], sheets: Sequence[Sheet]) -> str:
    """Return the page as HTML, to be written as UTF-8.

    Args:
        title: of the page.
        board: all groups.
        overalls: ``overall.overall``.
        changes: ``overall.changes``.
        sheets: ``tables.group_sheets``.
    """
    short = sum(len(group.entries) for group in board.groups) > SHORT
    loader = jinja2.ChoiceLoader([jinja2.PackageLoader("lmms_patch.present.board"), jinja2.PackageLoader("lmms_patch.present.report")])
    shown = [_group(group, sheet, f"g{i}", short) for i, (group, sheet) in enumerate(zip(board.groups, sheets, strict=True))]
    kinds = dict.fromkeys(group.kind for group in board.groups)
    return (
        environment()
        .overlay(loader=loader)
        .get_template("leaderboard.html.j2")
        .render(
            assets=assets(),
            title=title,
            head=tables.head(board),
            short=short,
            overlap=tables.OVERLAP.replace("`", ""),
            near_zero=tables.NEAR_ZERO,
            overalls=[(f"o{i}", bool(one.type), _overall(one)) for i, one in enumerate(overalls)],
            changes=[(f"c{i}", tables.changes_sheet(one)) for i, one in enumerate(changes)],
            kinds=[(kind, tables.heading(kind), [one for one in shown if one["kind"] == kind]) for kind in kinds],
            open_all=len(board.groups) <= OPEN,
        )
    )


def _group(group: Group, sheet: Sheet, identifier: str, short: bool) -> dict[str, Any]:
    """Return what the page shows of a group; of an index without the columns that say nothing."""
    if group.kind == "index":
        said = {column.key for column in sheet.columns if any(row.get(column.key) not in (None, 0) for row in sheet.rows)} - {"docs_used"}
        kept = {*_KEPT, group.headline} if short else said | {"model", "rank"}
        sheet = dataclasses.replace(sheet, columns=tuple(column for column in sheet.columns if column.key in kept))
    about = {"settings": tables.settings(group), "remarks": tables.remarks(group)}
    return {"kind": group.kind, "id": identifier, "models": len(group.entries), "sheet": _model_first(sheet), **about}


def _overall(table: Overall) -> Sheet:
    """Return models × benchmarks; the heads say which benchmarks are not in the mean."""
    sheet, apart = tables.overall_sheet(table), {tables.column_of(base) for base in table.benchmarks if base not in table.shared}
    columns = [dataclasses.replace(c, title=f"{c.title}, not in the mean") if c.key in apart else c for c in sheet.columns]
    return _model_first(dataclasses.replace(sheet, columns=tuple(columns)))


def _model_first(sheet: Sheet) -> Sheet:
    """Return the table with the model as first column, which stays in sight on narrow screens."""
    return dataclasses.replace(sheet, columns=tuple(sorted(sheet.columns, key=lambda column: column.key != "model")))
