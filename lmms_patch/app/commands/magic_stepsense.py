"""``lmms-patch magic stepsense``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app.commands.common import examples, say
from lmms_patch.app.commands.outputs import JsonFile, SheetFile


@examples(
    "# two people, and how far they agree",
    "lmms-patch magic stepsense ann.csv bob.csv",
    "# a judge beside them, the table also as Markdown",
    "lmms-patch magic stepsense ann.csv bob.csv judge.csv --sheet stepsense.md",
)
def command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="LABELS", help="Files of step labels, .csv or .jsonl, as 'magic steps' writes them."),
    ],
    level: Annotated[float, typer.Option("--level", help="Coverage of the intervals, from 0.5 to below 1.")] = 0.95,
    draws: Annotated[int, typer.Option("--draws", metavar="N", help="Bootstrap draws, 200 to 100,000.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Of the bootstrap.")] = 0,
    json_file: JsonFile = None,
    sheet_file: SheetFile = None,
) -> None:
    """Compute the share of steps labelled correct (StepSense), and how far annotators agree (Cohen's kappa).

    People and judges apart.
    """
    from lmms_patch.app import api
    from lmms_patch.app.commands.outputs import check_names, write
    from lmms_patch.present.terminal import stepsense

    check_names(json_file, sheet_file)
    scores = api.magic.stepsense(files, draws=draws, level=level, seed=seed)
    written = write(scores.to_json, json_file, lambda: stepsense.sheet(scores), sheet_file)
    say("\n".join([stepsense.text(scores), *written]))
