"""``lmms-patch gap``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import JsonFile, Place, answer, examples

if TYPE_CHECKING:
    from lmms_patch.compare.gap import Gap
    from lmms_patch.present.sheets import Cells


@examples(
    "# after lmms-eval --tasks gqa_rci3,gqa_blind --output_path out ...",
    "lmms-patch gap out out",
    "# is it wider on what lmms-patch prune gqa left?",
    "lmms-patch gap out out --subset out/pruned/gqa",
)
def gap(
    full: Annotated[Place, typer.Argument(metavar="FULL", help="Run of a wrapped task that asks the full image.")],
    blind: Annotated[Place, typer.Argument(metavar="BLIND", help="Run of the _blind task.")],
    subset: Annotated[
        Place | None, typer.Option("--subset", metavar="FOLDER", help="What lmms-patch prune wrote.")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="A task or its base, where the runs have several.")] = None,
) -> Gap:
    """Measure the vision-blind gap of two finished runs, on all docs and on a pruned set."""
    from lmms_patch.compare import gap as gaps

    return gaps.of_runs(Path(full), Path(blind), None if subset is None else Path(subset), task)


def display(found: Gap, json_file: JsonFile = None) -> None:
    """Print the table, the verdict and the warnings."""
    from lmms_patch.present.sheets import Column, table
    from lmms_patch.runs.numbers import to_json

    heads = ("docs", "n", "full", "blind", Column("gap", signed=True))
    rows: list[Cells] = [[row.name, row.docs, row.full, row.blind, row.gap] for row in found.rows]
    made = "\n".join([table(heads, rows).to_text(), found.verdict, *found.warnings])
    answer(lambda: made, lambda: {"schema": 1, **to_json(found)}, json_file)
