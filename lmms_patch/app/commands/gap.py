"""``lmms-patch gap``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import examples, say
from lmms_patch.app.options import MATCH, Match

if TYPE_CHECKING:
    from lmms_patch.compare.gap import Gap


@examples(
    "# after lmms-eval --tasks gqa,gqa_blind --output_path out --log_samples ...",
    "lmms-patch gap out out",
    "# is it wider on what lmms-patch prune gqa left?",
    "lmms-patch gap out out --subset out/pruned/gqa",
)
def command(
    full: Annotated[Path, typer.Argument(metavar="FULL", help="Run with images: of the plain task, or a wrapped one that asks the full image.")],
    blind: Annotated[Path, typer.Argument(metavar="BLIND", help="Run of the _blind task.")],
    subset: Annotated[
        Path | None, typer.Option("--subset", metavar="KEPT", help="Folder of lmms-patch prune, its kept_ids.txt, or a file of doc ids.")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="The base task, where the runs have several.")] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="The metric; the primary one if left out.")] = None,
    match: Annotated[Match, MATCH] = "category",
) -> None:
    """Measure the vision-blind gap of two finished runs, on all docs, a pruned set and random ones."""
    say(text(api.gap(full, blind, subset=subset, task=task, metric=metric, match=match)))


def text(gap: Gap) -> str:
    """Lay out the table, the verdict and the warnings."""
    from lmms_patch.compare.gap import rows
    from lmms_patch.present.sheets import table

    heads, *numbers = rows(gap)
    return "\n".join([table(heads, numbers).to_text(), *(line for line in (gap.verdict, *gap.warnings) if line)])
