"""``lmms-patch export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lmms_patch.app.commands.common import Place, examples, say, told

if TYPE_CHECKING:
    from lmms_patch.app.export import Published


@examples(
    "# every doc and view of the newest run: samples.parquet",
    "lmms-patch export out",
    "# one task for a spreadsheet",
    "lmms-patch export out --task gqa_rci3 --output gqa.csv",
    "# the numbers for a model's page on the Hub: eval_results.yaml",
    "lmms-patch export out --to eval-results",
)
def export(
    run: Annotated[Place, typer.Argument(metavar="RUN", help="The --output_path of the run, or one *_results.json.")],
    task: Annotated[
        str | None, typer.Option("--task", metavar="TASK", help="One task of the run. Default: all.")
    ] = None,
    to: Annotated[
        Literal["parquet", "csv", "jsonl", "every-eval-ever", "eval-results"] | None,
        typer.Option(
            "--to",
            help="The form of the docs, or whom the numbers are for. Default: by the ending of --output, else parquet.",
        ),
    ] = None,
    output: Annotated[
        Place | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Default: samples.*, every_eval_ever.json or eval_results.yaml here."
        ),
    ] = None,
    organization: Annotated[
        str, typer.Option("--organization", metavar="NAME", help="Who ran the evaluation (every-eval-ever).")
    ] = "unknown",
    relationship: Annotated[
        Literal["first_party", "third_party", "collaborative", "other"],
        typer.Option("--relationship", help="Of that organization to the model (every-eval-ever)."),
    ] = "other",
) -> Published:
    """Write the docs of a run as a table (docs/tables.md), or its numbers for another site (docs/trackers.md)."""
    from lmms_patch.app import export as forms
    from lmms_patch.app.tables import samples
    from lmms_patch.runs.run import newest_of

    told([taken := newest_of(Path(run))])
    found, path = taken.run, None if output is None else Path(output)
    if to in ("every-eval-ever", "eval-results"):
        return forms.publish(found, to, task, path, organization=organization, relationship=relationship)
    form = forms.form_of(to, path)
    path = path or Path(f"samples.{form}")
    # Refused before the table is read, which takes long for a large log.
    forms.check_output(path, found)
    table = samples(taken.path, task)
    forms.write(table, path, form)
    return forms.Published(path, f"{len(table):,} rows")


def display(done: Published) -> None:
    """Say what was written, and what was left out."""
    if done.left_out:
        say(f"left out: {done.left_out}")
    say(f"written: {done.path}, {done.what}")
