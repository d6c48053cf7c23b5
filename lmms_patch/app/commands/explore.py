"""``lmms-patch explore``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import IncludePath, Place, Places, examples, paths, say, tell, told
from lmms_patch.errors import OptionError

if TYPE_CHECKING:
    from lmms_patch.present.explore.pictures import OfDoc


@dataclass(frozen=True)
class Explored:
    """The folder of an explorer.

    Attributes:
        folder: where it is.
        docs: how many docs it has.
        pictures: of how many docs it has a picture.
    """

    folder: Path
    docs: int
    pictures: int


@examples(
    "# every doc of a run; open out/explore/index.html in a browser",
    "lmms-patch explore out",
    "# two models side by side",
    "lmms-patch explore out/qwen out/internvl --output side-by-side",
    "# pictures of docs that the full image gets wrong",
    "lmms-patch explore out --docs 300 --where 'view = 0 and score = 0'",
    "# on a machine without a browser: an address on that machine, which ssh -L can lead to",
    "lmms-patch explore out --serve",
)
def explore(
    runs: Annotated[
        Places,
        typer.Argument(
            metavar="RUN [RUN2]",
            help="The --output_path of a run (of several the newest), or one *_results.json; at most two.",
        ),
    ],
    output: Annotated[
        Place,
        typer.Option(
            "--output", "-o", metavar="DIR", help="The folder to write; an earlier explorer there is replaced."
        ),
    ] = Path("out/explore"),
    docs: Annotated[
        int, typer.Option("--docs", metavar="N", min=0, help="Of how many docs of each task pictures are taken.")
    ] = 100,
    where: Annotated[
        str,
        typer.Option(
            "--where", metavar="SQL", help="Of which: a condition on columns of the samples table (docs/tables.md)."
        ),
    ] = "",
    include_path: IncludePath = None,
) -> Explored:
    """Look at every doc of one or two finished runs: image, cells, answers, and what each doc needs."""
    from lmms_patch.present.explore import folder
    from lmms_patch.runs.run import newest_of

    if len(given := paths(runs)) > 2:
        raise OptionError(f"explore shows one run, or two side by side, not {len(given)}")
    taken = [newest_of(path, lambda run: not all(map(folder.why_not, run.results)), "with cells") for path in given]
    told(taken)

    def open_task(base: str) -> OfDoc:
        from lmms_patch.harness.images import image_of
        from lmms_patch.harness.names.catalog import quietly

        with quietly(bars=False):
            return image_of(base, include_path)

    runs_shown = [one.run for one in taken]
    return Explored(Path(output), *folder.write(runs_shown, Path(output), open_task, docs, where, tell))


def display(
    explored: Explored,
    serve: Annotated[
        bool, typer.Option("--serve", help="Also serve the folder on this machine alone, until Ctrl-C.")
    ] = False,
) -> None:
    """Say where the page is, and serve it where asked."""
    say(f"{explored.docs:,} docs, {explored.pictures:,} with a picture; written: {explored.folder / 'index.html'}")
    if serve:
        from lmms_patch.present.explore.serve import serve as until_ended

        until_ended(explored.folder)
