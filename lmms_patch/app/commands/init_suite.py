"""``lmms-patch init suite``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app import api, api_init
from lmms_patch.app.commands.common import IncludePath, examples, say
from lmms_patch.app.commands.init_shared import Force, text


@examples(
    "# one name for three benchmarks, in any way of wrapping: ours_rci3, ours_blind",
    "lmms-patch init suite ours gqa mmstar realworldqa",
    "# one name for wrapped tasks of several ways",
    "lmms-patch init suite weekly gqa_rci3 gqa_blind mmstar_pcri",
)
def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the suite.")],
    tasks: Annotated[list[str], typer.Argument(metavar="TASK", help="Base tasks, groups or tags; or wrapped names.")],
    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="The folder of task files, for --include_path.")] = api_init.TASKS,
    include_path: IncludePath = None,
    force: Force = False,
) -> None:
    """Write a group of tasks: one name that asks for all of them."""
    say(text(api.init.suite(name, tasks, output=output, include_path=include_path, force=force)))
