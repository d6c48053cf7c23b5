"""``lmms-patch magic show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app.commands.common import Wide, examples, say, width
from lmms_patch.app.commands.outputs import JsonFile, SheetFile


@examples(
    "# after lmms-eval --tasks magic,magic_relevant,magic_nobox --output_path out --log_samples ...",
    "lmms-patch magic show out",
    "# two models, everything into a table",
    "lmms-patch magic show out/a out/b --sheet magic.csv",
)
def command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="OUT",
            help="The --output_path of runs (of each model and task the newest), or *_results.json files.",
        ),
    ],
    level: Annotated[
        float, typer.Option("--level", help="Coverage of the differences' intervals, from 0.5 to below 1.")
    ] = 0.95,
    draws: Annotated[
        int, typer.Option("--draws", metavar="N", help="Bootstrap draws of the differences, 200 to 100,000.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="Of that bootstrap.")] = 0,
    json_file: JsonFile = None,
    sheet_file: SheetFile = None,
    wide: Wide = False,
) -> None:
    """Show the MAGIC tasks of a run, and what other boxes cost or give: differences paired by item, with intervals."""
    from lmms_patch.app import api
    from lmms_patch.app.commands.outputs import check_names, write
    from lmms_patch.present.terminal import magic

    check_names(json_file, sheet_file)
    runs = api.magic.show(folders, draws=draws, level=level, seed=seed)
    written = write(lambda: magic.to_json(runs), json_file, lambda: magic.sheet(runs), sheet_file)
    say("\n".join([magic.text(runs, width(wide)), *written]))
