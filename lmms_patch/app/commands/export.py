"""``lmms-patch export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import examples, say, told


@examples(
    "# every doc and view of the newest run: samples.parquet",
    "lmms-patch export out",
    "# one task for a spreadsheet",
    "lmms-patch export out --task gqa_rci3 --output gqa.csv",
    "# the numbers for a model's page on the Hub: eval_results.yaml",
    "lmms-patch export out --to eval-results",
)
def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The --output_path of the run, or one *_results.json.")],
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
        Path | None,
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
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there and no earlier export.")] = False,
) -> None:
    """Write the docs of a run as a table (docs/tables.md), or its numbers for another site (docs/trackers.md)."""
    taken = api.newest_wrapped(run)
    told([taken])
    if to is None or to in ("parquet", "csv", "jsonl"):
        path, rows = api.export(taken.path, task, to=to, output=output, force=force)
        say(f"written: {path}, {rows:,} rows")
        return
    done = api.publish(
        taken.path, to, task, output=output, organization=organization, relationship=relationship, force=force
    )
    if done.left_out:
        say(f"left out: {done.left_out}")
    say(f"written: {done.path}, {done.numbers} numbers")
