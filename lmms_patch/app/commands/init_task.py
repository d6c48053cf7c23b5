"""``lmms-patch init task``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app import api, api_init
from lmms_patch.app.commands.common import IncludePath, examples, say
from lmms_patch.app.commands.init_shared import Force, text


@examples(
    "# a file with every option of GQA's cells, to be changed",
    "lmms-patch init task gqa_rci3",
    "# under a name of your own, in a folder of your own",
    "lmms-patch init task mosaic_local_rci2 --name small_cells --output tasks",
)
def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A wrapped name, such as gqa_rci3: what to wrap, and how.")
    ],
    called: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Of the new task; my_ and the wrapped name, if left out."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="The folder of task files, for --include_path.")
    ] = api_init.TASKS,
    include_path: IncludePath = None,
    force: Force = False,
) -> None:
    """Write a task file with every option that a way of wrapping takes, to be changed."""
    say(text(api.init.task(name, called=called, output=output, include_path=include_path, force=force)))
