"""``lmms-patch magic show``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import JsonFile, Places, Wide, answer, examples, paths, width

if TYPE_CHECKING:
    from lmms_patch.compare.magic import MagicRuns


@examples(
    "# after lmms-eval --tasks magic,magic_relevant,magic_nobox --output_path out ...",
    "lmms-patch magic show out",
    "# two models, everything into a file",
    "lmms-patch magic show out/a out/b --json magic.json",
)
def magic_show(
    folders: Annotated[
        Places,
        typer.Argument(
            metavar="OUT",
            help="The --output_path of runs (of each model and task the newest), or *_results.json files.",
        ),
    ],
) -> MagicRuns:
    """Show the MAGIC tasks of a run, and what other boxes cost or give: differences paired by item, with intervals."""
    from lmms_patch.compare import magic

    return magic.gather(paths(folders))


def display(runs: MagicRuns, json_file: JsonFile = None, wide: Wide = False) -> None:
    """Print the table and the differences."""
    from lmms_patch.present.terminal import magic

    answer(lambda: magic.text(runs, width(wide)), lambda: magic.to_json(runs), json_file)
