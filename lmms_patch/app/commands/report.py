"""``lmms-patch report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app.commands.common import IncludePath, Quiet, examples, say, tell, teller


@examples(
    "# one folder with index.html, figures and tables, from any mix of runs",
    "lmms-patch report out",
    "# with the images of the examples, taken through the harness",
    "lmms-patch report out --with-images --output report",
    "# two models side by side, and a published table beside them",
    "lmms-patch report out/qwen out/internvl --from-csv rci_table2.csv",
)
def command(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="OUT", help="The --output_path of runs, or *_results.json files.")
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="The folder to write; an earlier report there is replaced."),
    ] = Path("out/report"),
    from_csv: Annotated[
        list[Path] | None,
        typer.Option(
            "--from-csv",
            metavar="FILE",
            help="A published table with the columns dataset, model, n and rci (or pcri); may be repeated.",
        ),
    ] = None,
    with_images: Annotated[
        bool,
        typer.Option(
            "--with-images", help="Take the examples' images through lmms-eval, where their dataset can be reached."
        ),
    ] = False,
    include_path: IncludePath = None,
    count: Annotated[
        int | None,
        typer.Option(
            "--examples",
            metavar="N",
            min=0,
            max=20,
            help="Docs to show by rule and result: 2, or none of over 100 results, if left out.",
        ),
    ] = None,
    categories: Annotated[
        bool | None,
        typer.Option(
            "--categories/--no-categories", help="Also each category by itself: of up to 100 results, if left out."
        ),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Of the page; made from what is in it if left out.")] = "",
    quiet: Quiet = False,
) -> None:
    """Make a report of finished runs: a page to read, figures, and tables as CSV, JSON, Markdown and LaTeX."""
    from lmms_patch.app import api

    made = api.report(
        folders or [],
        output,
        from_csv=from_csv or [],
        title=title,
        examples=count,
        categories=categories,
        with_images=with_images,
        include_path=include_path,
        tell=teller(quiet),
    )
    for line in made.warnings:
        tell(line)
    models = {one.model for one in made.entries}
    counted = f"{len(made.entries)} results of {len(models)} model{'s' * (len(models) != 1)}, " if made.entries else ""
    tables, shown = sum(len(sheets) for sheets in made.sheets.values()), len(made.examples) + len(made.regions)
    say(f"{counted}{len(made.figures)} figures, {tables} tables, {shown} examples")
    say(f"written: {output / 'index.html'}")
