"""``lmms-patch leaderboard``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import Place, Places, Wide, examples, paths, say, tell, width

if TYPE_CHECKING:
    from lmms_patch.present.page.report import Report


@examples(
    "# a board of all runs under two folders",
    "lmms-patch leaderboard runs/qwen runs/llava --output board",
    "# the same board, ranked by the index",
    "lmms-patch leaderboard runs --output board --by pcri",
    "# rank runs of two versions of lmms-eval together, and say so on the page",
    "lmms-patch leaderboard runs --output board --ignore 'lmms-eval version'",
)
def leaderboard(
    folders: Annotated[
        Places,
        typer.Argument(metavar="DIR", help="Folders with runs, at any depth, or single *_results.json."),
    ],
    output: Annotated[
        Place,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="The folder to write; an earlier page there is replaced."
        ),
    ] = Path("leaderboard"),
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="NUMBER",
            help="Rank by fip (the score), mpp, pcri (or rci; nearer 0 is better), steady or gap (nearer 0).",
        ),
    ] = "fip",
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
            help="Take means over these benchmarks; repeatable. Default: what most models have.",
        ),
    ] = None,
) -> Report:
    """Make the page of many runs: ranked where they are comparable, apart where they are not."""
    from lmms_patch.present.page.report import build

    return build(
        paths(folders),
        Path(output),
        by=by,
        ignore=tuple(dict.fromkeys(ignore or ())),
        over=over or (),
        every_setting=True,
        count=0,
    )


def display(made: Report, output: Path, wide: Wide = False) -> None:
    """Print what was read and what stands apart on stderr, then the table of ranks and where the page is."""
    tell(f"runs {made.runs}, models {len(made.models)}")
    for line in [*made.warnings, *made.notes[:10]]:
        tell(line)
    if len(made.notes) > 10:
        tell(f"... and {len(made.notes) - 10} more notes; the page has them all")
    say(text(made, width(wide)))
    say(f"written: {output / 'index.html'}")


LINES = 20
"""Rows that are printed; the files have all."""
_FEW = ("benchmark", "model", "n", "grid", "rank", "mean", "score", "index")
"""Columns that are printed where lines are short."""


def text(made: Report, most: int | None = None) -> str:
    """Lay out models over benchmarks; where there is nothing to compare, the results.

    Args:
        made: the page.
        most: characters in a line; None: any.
    """
    from lmms_patch.present.terminal.folding import fold

    known = [sheet for sheets in made.sheets.values() for sheet in sheets]
    sheet = next((one for one in known if one.name.startswith("overall")), known[0])
    few = tuple(one for one in sheet.columns if not one.aside and (most is None or one.key in _FEW))
    shown = dataclasses.replace(sheet, columns=few, rows=sheet.rows[:LINES])
    more = f"\n... and {len(sheet.rows) - LINES} more" * (len(sheet.rows) > LINES)
    return "\n".join([sheet.title, f"{shown.to_text(most)}{more}", fold(sheet.note, most, rest="")])
