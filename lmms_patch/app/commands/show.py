"""``lmms-patch show``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import Cells, Wide, examples, folded, say, told, width

if TYPE_CHECKING:
    from lmms_patch.runs.run import Result


@examples(
    "# after lmms-eval --tasks gqa_rci3 --output_path out --log_samples ...",
    "lmms-patch show out",
    "# all columns in one table",
    "lmms-patch show out --wide",
    "# also where in the image the score comes from, and what an uninformed answer scores",
    "lmms-patch show out --cells --chance",
)
def command(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="The --output_path of the run, or one *_results.json.")],
    cells: Cells = False,
    causes: Annotated[
        bool,
        typer.Option(
            "--causes", help="For text-only cross-validations: which features, and what questions, give answers away."
        ),
    ] = False,
    chance: Annotated[
        bool, typer.Option("--chance", help="Also every chance floor, and what the gate asked for.")
    ] = False,
    wide: Wide = False,
) -> None:
    """Say what a finished run found, and show its table."""
    run = api.show(folder)
    told([run.taken])
    say(text(run, cells=cells, causes=causes, chance=chance, most=width(wide)))
    if run.magic:
        say(f"\nwhat other boxes cost or give, with intervals: lmms-patch magic show {folder}")


def text(
    run: api.Run, *, cells: bool = False, causes: bool = False, chance: bool = False, most: int | None = None
) -> str:
    """Lay out a run's findings and tables, a table for each kind of task.

    Args:
        run: the run.
        cells: also where in the image the score comes from.
        causes: also why text-only cross-validations find answers.
        chance: also every chance floor.
        most: characters in a line; None: any.
    """
    from lmms_patch.present.terminal import rci

    parts = [folded((one.text for one in run.findings), most)]
    if run.shown:
        parts += [
            rci.table(run.shown, most),
            *([rci.chances(run.shown, most)] if chance else []),
            *([rci.cell_tables(run.shown)] if cells else []),
        ]
        parts.append(folded(rci.warnings(run.shown), most))
    if run.tested:
        parts += stress_blocks(run.tested, causes, most)
    if run.magic:
        from lmms_patch.present.terminal import magic

        parts += [magic.table(run.magic, most), folded(magic.minds(run.magic), most)]
    return "\n\n".join(filter(None, [*parts, folded(run.unchecked, most)]))


def stress_blocks(tested: Sequence[Result], causes: bool, most: int | None) -> list[str]:
    """Lay out the tables of text-only cross-validations; empty where a task has nothing to show."""
    from lmms_patch.present.terminal import tst

    blocks = [
        folded(tst.next_steps(tested), most),
        tst.stress_table(tested, most),
        folded((line for result in tested for line in tst.notes(result)), most),
    ]
    for result in tested:
        blocks.append(tst.categories(result))
        if causes:
            blocks += [tst.importances(result), tst.causes(result)]
    return blocks
