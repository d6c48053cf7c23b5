"""All tables of a report, by its sections. Pure.

The sections are ``runs`` (each result), ``benchmarks`` (RCI's reading), ``models`` (PCRI's reading) and ``tst`` (text
alone). RCI in time has sections of its own, ``benchmarks_time`` and ``models_time``.
"""

from __future__ import annotations

from collections.abc import Sequence

from lmms_patch.present.report import benchmarks, models, run_sheets
from lmms_patch.present.report.data import Entry
from lmms_patch.present.report.points import Point, distinct, of_medium, points_of
from lmms_patch.present.sheets import Sheet, of_methods

__all__ = ["Point", "distinct", "points_of", "sheets"]


def sheets(entries: Sequence[Entry], points: Sequence[Point]) -> dict[str, tuple[Sheet, ...]]:
    """Return the tables by section; a section without tables is not there.

    Args:
        entries: the results of our runs; may be empty.
        points: their indices (``points_of``), and those of published tables (``published.read``).
    """
    once = distinct(points)
    made = {"runs": run_sheets.runs(entries) + of_methods(entries)}
    for end, in_time in (("", False), ("_time", True)):
        some = of_medium(once, in_time)
        mine = [one for one in entries if one.kind.needs_video == in_time]
        made[f"benchmarks{end}"] = benchmarks.sheets(mine, some)
        made[f"models{end}"] = models.sheets(some)
    made["tst"] = run_sheets.tst(entries)
    return {section: tuple(tables) for section, tables in made.items() if tables}
