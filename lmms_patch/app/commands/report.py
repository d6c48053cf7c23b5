"""``lmms-patch report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmms_patch.app.commands.common import IncludePath, Place, Places, examples, is_telling, paths, say, tell

if TYPE_CHECKING:
    from lmms_patch.present.page.report import Report


@examples(
    "# one folder with index.html, figures and tables, from any mix of runs",
    "lmms-patch report out",
    "# with the images of the examples, taken through the harness",
    "lmms-patch report out --with-images --output report",
    "# two models side by side, and a published table beside them",
    "lmms-patch report out/qwen out/internvl --from-csv rci_table2.csv",
)
def report(
    folders: Annotated[
        Places, typer.Argument(metavar="OUT", help="The --output_path of runs, or *_results.json files.")
    ] = (),
    output: Annotated[
        Place,
        typer.Option("--output", "-o", metavar="DIR", help="The folder to write; an earlier page there is replaced."),
    ] = Path("out/report"),
    from_csv: Annotated[
        Places,
        typer.Option(
            "--from-csv",
            metavar="FILE",
            help="A published table with the columns dataset, model, n and rci (or pcri); may be repeated.",
        ),
    ] = (),
    with_images: Annotated[
        bool,
        typer.Option(
            "--with-images", help="Take the examples' images through lmms-eval, where their dataset can be reached."
        ),
    ] = False,
    include_path: IncludePath = None,
    examples: Annotated[
        int | None,
        typer.Option(
            "--examples",
            metavar="N",
            min=0,
            max=20,
            help="Docs to show by rule and result: 2, or none of over 100 results, if left out.",
        ),
    ] = None,
) -> Report:
    """Make a report of finished runs: a page to read, figures, and tables as CSV, JSON, Markdown and LaTeX."""
    from lmms_patch.present.page.report import build

    def images(base: str, ids: Sequence[int]) -> Mapping[int, Any]:
        from lmms_patch.harness.images import first_images
        from lmms_patch.harness.names.catalog import quietly

        with quietly(bars=is_telling()):
            return first_images(base, ids, include_path)

    made = build(
        paths(folders),
        Path(output),
        from_csv=paths(from_csv),
        count=examples,
        images=images if with_images else None,
        tell=tell,
    )
    for line in made.warnings:
        tell(line)
    return made


def display(made: Report, output: Path) -> None:
    """Print what the page holds, and where to find the page."""
    models = {one.model for one in made.entries}
    counted = f"{len(made.entries)} results of {len(models)} model{'s' * (len(models) != 1)}, " if made.entries else ""
    tables = sum(len(sheets) for sheets in made.sheets.values())
    say(f"{counted}{len(made.figures)} figures, {tables} tables, {len(made.examples)} examples")
    say(f"written: {output / 'index.html'}")
