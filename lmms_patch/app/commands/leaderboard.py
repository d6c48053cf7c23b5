"""``lmms-patch leaderboard``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import Place, Places, Wide, examples, paths, say, tell, width

if TYPE_CHECKING:
    from lmms_patch.present.board.board import Group
    from lmms_patch.present.board.build import Built


@examples(
    "# a board of all runs under two folders",
    "lmms-patch leaderboard runs/qwen runs/llava --output board",
    "# the same board, ranked by FIP",
    "lmms-patch leaderboard runs --output board --by fip",
    "# rank runs of two versions of lmms-eval together, and say so on the page",
    "lmms-patch leaderboard runs --output board --ignore 'lmms-eval version'",
)
def leaderboard(
    folders: Annotated[
        Places,
        typer.Argument(metavar="DIR", help="Folders with runs, at any depth, or single *_results.json."),
    ],
    output: Annotated[
        Place, typer.Option("--output", "-o", metavar="FOLDER", help="The board's folder; made if it is not there.")
    ] = Path("leaderboard"),
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="NUMBER",
            help="Rank by pcri (or rci; nearer 0 is better), steady, gap (nearer 0), fip or mpp.",
        ),
    ] = "pcri",
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="SETTING",
            help="Rank runs together that differ in this setting (prompts, limit, 'lmms-eval version', ...); repeatable.",
        ),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            metavar="BENCHMARK",
            help="Take overall means over these; repeatable. Default: what most models have.",
        ),
    ] = None,
) -> Built:
    """Make a board of many runs: ranked where they are comparable, apart where they are not."""
    from lmms_patch.present.board import build

    return build.leaderboard(paths(folders), Path(output), by=by, ignore=ignore or (), over=over or ())


def display(built: Built, wide: Wide = False) -> None:
    """Print what was read and what stands apart on stderr, then the overall tables and where the board is."""
    for line in notes(built):
        tell(line)
    say(text(built, width(wide)))


LINES = 20
"""Models that are printed of an overall table; the files have all."""


def text(built: Built, most: int | None = None) -> str:
    """Lay out the overall tables, and say where the board is.

    Args:
        built: the board.
        most: characters in a line; None: any.
    """
    from lmms_patch.present.board import tables
    from lmms_patch.present.terminal.folding import fold

    blocks = []
    for one in built.overall:
        if not one.type:
            sheet = tables.overall_sheet(one)
            few = [
                c for c in sheet.columns if len(one.benchmarks) <= 4 or not c.key.startswith((tables.ON, tables.FIP_ON))
            ]
            # The note says what is better, whether the index is steady, and how many models lack a benchmark.
            if most is not None:
                second = "score" if any(c.key == "score" for c in sheet.columns) else "mean"
                short = [c for c in sheet.columns if c.key in ("rank", "model", "mean_abs", second)]
                few = [dataclasses.replace(c, title=c.title.partition(",")[0]) for c in short]
            shown = dataclasses.replace(sheet, columns=tuple(few), rows=sheet.rows[:LINES])
            more = f"\n... and {len(sheet.rows) - LINES} more" if len(sheet.rows) > LINES else ""
            ranges = tables.range_words(line.place for line in one.lines[:LINES])
            notes = [fold(note, most, rest="") for note in (ranges, sheet.note) if note]
            blocks.append("\n".join([sheet.title, f"{shown.to_text(most)}{more}", *notes]))
    blocks.append(f"written: {built.folder / 'index.html'}")
    return "\n\n".join(blocks)


def notes(built: Built) -> list[str]:
    """Tell how many runs were read, and which tables stand apart and why."""
    out = [f"runs {len(built.board.runs)}, models {len(built.board.models)}"]
    apart = [group for group in built.board.groups if group.number > 1]
    out += [_apart(group) for group in apart[:10]]
    if len(apart) > 10:
        out.append(f"... and {len(apart) - 10} more tables that stand apart; the page has them all")
    return out


def _apart(group: Group) -> str:
    """Say how a group differs from the first group of the benchmark."""
    from lmms_patch.text import clean

    grid = f" {group.grid}×{group.grid}" if group.grid else ""
    differs = clean("; ".join(group.differs)) or "its settings"
    return f"{clean(group.base)}{grid}: group {group.number} ({len(group.entries)} of the models) stands apart; it differs in {differs}"
