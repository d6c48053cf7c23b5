"""``lmms-patch init gate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import examples, say
from lmms_patch.app.commands.init_shared import Force, text


@examples(
    "# rules with limits from a run, and a workflow that makes such a run and holds it to them",
    "lmms-patch init gate out",
    "# the workflow evaluates on a machine of yours with a GPU, and takes the action from here",
    "lmms-patch init gate out --runner self-hosted --action OWNER/lmms-patch@TAG",
)
def command(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="The --output_path of runs, or one *_results.json: its numbers become the limits."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="The root of your repository.")] = Path(),
    action: Annotated[
        str | None,
        typer.Option(
            "--action",
            metavar="REPO@TAG",
            help="Where the action lies on GitHub; if left out, lmms-patch is taken from where it was installed from.",
        ),
    ] = None,
    runner: Annotated[
        str, typer.Option("--runner", metavar="LABEL", help="The machine that evaluates, as GitHub calls it.")
    ] = "ubuntu-latest",
    force: Force = False,
) -> None:
    """Write gates.yaml, with limits from a run, and a GitHub workflow that evaluates and holds the numbers to them."""
    say(text(api.init.gate(run, output=output, action=action, runner=runner, force=force)))
