"""``lmms-patch compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app.commands.common import Quiet, examples, progress, say
from lmms_patch.app.commands.outputs import JsonFile, SheetFile


@examples(
    "# two models on the same tasks, each in a folder of its own",
    "lmms-patch compare out/model_a out/model_b",
    "# only tasks of GQA, everything into files",
    "lmms-patch compare out/model_a out/model_b --task 'gqa*' --json compare.json --sheet compare.md",
    "# two runs of one folder: give their files",
    "lmms-patch compare out/m/20260101_120000_results.json out/m/20260201_120000_results.json",
)
def command(
    first: Annotated[Path, typer.Argument(metavar="A", help="The --output_path of a run, a folder of runs of one model, or one *_results.json.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The other; differences are B less A.")],
    task: Annotated[
        str | None, typer.Option("--task", metavar="GLOB", help="Only tasks, or base tasks, of this name; * and ? are wildcards.")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Coverage of the intervals, from 0.5 to below 1.")] = 0.95,
    draws: Annotated[
        int, typer.Option("--draws", metavar="N", help="Bootstrap draws, 200 to 100,000; 0: 10,000, and 2,000 for more than 20,000 docs.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Of the bootstrap.")] = 0,
    json_file: JsonFile = None,
    sheet_file: SheetFile = None,
    quiet: Quiet = False,
) -> None:
    """Compare two models, or two versions, on the same docs: which is better, and is that more than noise?"""
    from lmms_patch.app import api
    from lmms_patch.app.commands.outputs import check_names, write
    from lmms_patch.present.terminal import compare

    check_names(json_file, sheet_file)
    compared = api.compare(first, second, task=task, level=level, draws=draws, seed=seed, watch=lambda pairs, label: progress(pairs, label, quiet))
    written = write(compared.to_json, json_file, lambda: compare.sheet(compared), sheet_file)
    say("\n".join([compare.text(compared), *written]))
