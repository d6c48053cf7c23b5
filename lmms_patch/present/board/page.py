"""The page of a board: one HTML file, from disk, without a network; the report's style, script and policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jinja2

from lmms_patch.present.board import rows, tables
from lmms_patch.present.board.board import Board, Group
from lmms_patch.present.board.overall import Changes, Overall
from lmms_patch.present.report.page import assets, environment

OPEN = 12
"""Tables of single benchmarks are open where there are no more than so many."""
SHORT = 4_000
"""With more results than this the page shows the most important columns only; the files have all."""


def page(title: str, board: Board, overalls: Sequence[Overall], changes: Sequence[Changes]) -> str:
    """The page as HTML, to be written as UTF-8.

    Args:
        title: of the page.
        board: all groups.
        overalls: ``overall.overall``.
        changes: ``overall.changes``.
    """
    several = board.crowded()
    short = sum(len(group.entries) for group in board.groups) > SHORT
    loader = jinja2.ChoiceLoader([jinja2.PackageLoader("lmms_patch.present.board"), jinja2.PackageLoader("lmms_patch.present.report")])
    shown = [_shown(group, (group.kind, group.base, group.grid) in several, f"g{i}", short) for i, group in enumerate(board.groups)]
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
            overalls=[_overall(one, f"o{i}") for i, one in enumerate(overalls)],
            changes=[(f"c{i}", tables.changes_sheet(one)) for i, one in enumerate(changes)],
            kinds=[(kind, tables.KINDS.get(kind, "By benchmark"), [one for one in shown if one["kind"] == kind]) for kind in kinds],
            open_all=len(board.groups) <= OPEN,
        )
    )


def _shown(group: Group, several: bool, identifier: str, short: bool) -> dict[str, Any]:
    columns = rows.index_columns(group, short) if group.kind == "index" else []
    return {
        "kind": group.kind,
        "id": identifier,
        "title": tables.title(group, several),
        "models": len(group.entries),
        "settings": tables.settings(group),
        "remarks": tables.remarks(group),
        "columns": columns,
        "rows": rows.group_rows(group, columns) if columns else "",
        "sheet": None if columns else tables.group_sheet(group, several),
    }


def _overall(table: Overall, identifier: str) -> dict[str, Any]:
    return {
        "id": identifier,
        "title": tables.overall_title(table),
        "note": tables.overall_note(table),
        "type": table.type,
        "models": len(table.lines),
        "heads": rows.overall_heads(table),
        "rows": rows.overall_rows(table),
    }
