"""``lmms-patch explore``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import IncludePath, Place, Places, examples, paths, say, tell, told
from lmms_patch.errors import OptionError, require

if TYPE_CHECKING:
    from lmms_patch.present.explore.explorer import Explorer
    from lmms_patch.present.explore.pictures import Pictures


@dataclass(frozen=True)
class Explored:
    """The docs of one or two runs, with their images.

    Attributes:
        explorer: the docs.
        pictures: the images, as far as their dataset can be reached.
        written: how many docs were written into a folder; None: none were asked for.
    """

    explorer: Explorer
    pictures: Pictures
    written: int | None


@examples(
    "# every doc of a run in the browser",
    "lmms-patch explore out",
    "# two models side by side",
    "lmms-patch explore out/qwen out/internvl",
    "# a folder to hand on, of up to 2,000 docs; opens without a server",
    "lmms-patch explore out --export docs-of-out",
)
def explore(
    runs: Annotated[
        Places,
        typer.Argument(
            metavar="RUN [RUN2]",
            help="The --output_path of a run (of several the newest), or one *_results.json; at most two.",
        ),
    ],
    export: Annotated[
        Place | None, typer.Option("--export", metavar="DIR", help="Write the page and all docs into a folder instead.")
    ] = None,
    include_path: IncludePath = None,
) -> Explored:
    """Look at every doc of one or two finished runs: image, cells, answers, and what each doc needs."""
    from lmms_patch.app.serving import pictures_of
    from lmms_patch.present.explore.explorer import open_runs
    from lmms_patch.present.explore.static import write

    # a page that is written opens from disk, and needs no server
    if export is None:
        require("explore")
    if len(given := paths(runs)) > 2:
        raise OptionError(f"explore shows one run, or two side by side, not {len(given)}")
    explorer, pictures = open_runs(given), pictures_of(include_path)
    told(explorer.taken)
    for line in explorer.left_out:
        tell(f"not shown: {line}")
    return Explored(explorer, pictures, None if export is None else write(explorer, pictures, Path(export), tell))


def display(explored: Explored, export: Path | None) -> None:
    """Say where the page is, or serve it until Ctrl-C."""
    if export is None:
        from lmms_patch.app.serving import serve

        serve(explored.explorer, explored.pictures)
    else:
        say(f"{explored.written:,} docs; written: {export / 'index.html'}")
