"""``lmms-patch demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import Quiet, Verbose, examples, folded, say, watching, width


@examples(
    "# what the tool finds on a benchmark whose truth is known; a page to open",
    "lmms-patch demo",
    "# the same for video: which moment does it need? (a minute and a half)",
    "lmms-patch demo --video",
    "# with all that lmms-eval prints",
    "lmms-patch demo --verbose --output out/demo",
)
def command(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="The folder for the run and its page. Default: out/demo, or out/demo-video.",
        ),
    ] = None,
    video: Annotated[
        bool, typer.Option("--video", help="The embedded clips and the model that reads them, instead of the images.")
    ] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Run the embedded benchmark with the embedded model, say what that finds, and write its page: 3 minutes on 2 cores, no network."""
    from lmms_patch.present.terminal import rci

    output = output or Path("out/demo-video" if video else "out/demo")
    with watching(quiet or verbose) as watch:
        run = api.demo(output, video=video, quiet=not verbose, watch=watch)
    indexed, page = [one for one in run.shown if one.result.indexed], output / "report" / "index.html"
    say(
        "\n\n".join([folded((one.text for one in run.findings), width()), rci.table(indexed, width()), f"page: {page}"])
    )
