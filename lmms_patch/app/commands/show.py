"""``lmms-patch show``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import Cells, examples, say, told

if TYPE_CHECKING:
    from lmms_patch.runs.run import Result


@examples(
    "# after lmms-eval --tasks gqa_rci3 --output_path out --log_samples ...",
    "lmms-patch show out",
    "# also where in the image the score comes from, and what an uninformed answer scores",
    "lmms-patch show out --cells --chance",
)
def command(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="The --output_path of the run, or one *_results.json.")],
    cells: Cells = False,
    causes: Annotated[
        bool, typer.Option("--causes", help="For text-only cross-validations: which features, and what questions, give answers away.")
    ] = False,
    chance: Annotated[bool, typer.Option("--chance", help="Also every chance floor, and what the gate asked for.")] = False,
) -> None:
    """Show the table of a finished run."""
    run = api.show(folder)
    told([run.taken])
    say(text(run, cells=cells, causes=causes, chance=chance))
    if run.magic:
        say(f"\nwhat other boxes cost or give, with intervals: lmms-patch magic show {folder}")


def text(run: api.Run, *, cells: bool = False, causes: bool = False, chance: bool = False) -> str:
    """Lay out the tables of a run, one for each kind of task."""
    from lmms_patch.present.terminal import rci

    parts = []
    if run.shown:
        blocks = [rci.table(run.shown), *([rci.chances(run.shown)] if chance else []), *([rci.cell_tables(run.shown)] if cells else [])]
        lines = rci.warnings(run.shown)
        parts.append("\n\n".join([*blocks, *(["\n".join(lines)] if lines else []), rci.meaning(run.shown)]))
    if run.tested:
        parts.append("\n\n".join(block for block in stress_blocks(run.tested, causes) if block))
    if run.magic:
        from lmms_patch.present.terminal import magic

        parts.append("\n\n".join([magic.table(run.magic), "\n".join(magic.minds(run.magic))]).rstrip())
    return "\n".join(parts) if not run.magic else "\n\n".join(parts)


def stress_blocks(tested: Sequence[Result], causes: bool) -> list[str]:
    """Lay out the tables of text-only cross-validations; empty where a task has nothing to show."""
    from lmms_patch.present.terminal import tst

    blocks = [tst.stress_table(tested), "\n".join(line for result in tested for line in tst.notes(result))]
    for result in tested:
        blocks.append(tst.categories(result))
        if causes:
            blocks += [tst.importances(result), tst.causes(result)]
    return blocks
