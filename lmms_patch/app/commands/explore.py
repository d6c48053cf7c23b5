"""``lmms-patch explore``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app.commands.common import IncludePath, Quiet, examples, say, tell, teller, told
from lmms_patch.errors import OptionError, require


@examples(
    "# every doc of a run in the browser",
    "lmms-patch explore out",
    "# two models side by side",
    "lmms-patch explore out/qwen out/internvl",
    "# a folder to hand on, of up to 2,000 docs; opens without a server",
    "lmms-patch explore out --export docs-of-out",
)
def command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN [RUN2]",
            help="The --output_path of a run (of several the newest), or one *_results.json; at most two.",
        ),
    ],
    port: Annotated[
        int,
        typer.Option("--port", metavar="N", min=0, max=65535, help="Of the page's address; any free one if left out."),
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser, or only print its address.")
    ] = True,
    images: Annotated[
        bool,
        typer.Option("--images/--no-images", help="Take images through lmms-eval, where their dataset can be reached."),
    ] = True,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="DIR", help="Write the page and all docs into a folder instead.")
    ] = None,
    include_path: IncludePath = None,
    quiet: Quiet = False,
) -> None:
    """Look at every doc of one or two finished runs: image, cells, answers, and what each doc needs."""
    from lmms_patch.app.serving import pictures_of, serve
    from lmms_patch.present.explore.explorer import open_runs

    if len(runs) > 2:
        raise OptionError(f"explore shows one run, or two side by side, not {len(runs)}")
    # a page that is written opens from disk, and needs no server
    if export is None:
        require("explore")
    explorer = open_runs(runs)
    told(explorer.taken, quiet)
    for line in explorer.left_out:
        tell(f"not shown: {line}", quiet)
    pictures = pictures_of(images, include_path)
    if export is not None:
        from lmms_patch.present.explore.static import write

        count = write(explorer, pictures, export, teller(quiet))
        say(f"{count:,} docs; written: {export / 'index.html'}")
        return
    serve(explorer, pictures, port, browser)
