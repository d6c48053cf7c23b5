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
)
def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The --output_path of the run, or one *_results.json.")],
    task: Annotated[str | None, typer.Option("--task", metavar="TASK", help="One task of the run. Default: all.")] = None,
    to: Annotated[
        Literal["parquet", "csv", "jsonl"] | None, typer.Option("--to", help="The form. Default: by the ending of --output, else parquet.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: samples.parquet, .csv or .jsonl here.")] = None,
) -> None:
    """Write the docs of a run as a table: one row per doc and view (docs/tables.md)."""
    taken = api.newest_wrapped(run)
    told([taken])
    path, rows = api.export(taken.path, task, to=to, output=output)
    say(f"written: {path}, {rows:,} rows")
