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
    "# MMStar's gain and leakage: llm is a run of gqa_blind by the language model that the model was made from",
    "lmms-patch gap out out --language-model llm",
)
def command(
    full: Annotated[
        Path,
        typer.Argument(
            metavar="FULL", help="Run with images: of the plain task, or a wrapped one that asks the full image."
        ),
    ],
    blind: Annotated[Path, typer.Argument(metavar="BLIND", help="Run of the _blind task.")],
    subset: Annotated[
        Path | None,
        typer.Option(
            "--subset", metavar="KEPT", help="Folder of lmms-patch prune, its kept_ids.txt, or a file of doc ids."
        ),
    ] = None,
    language_model: Annotated[
        Path | None,
        typer.Option(
            "--language-model",
            metavar="RUN",
            help="Run of the _blind task by the model's language model: MMStar's leakage.",
        ),
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="The base task, where the runs have several.")] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="The metric; the primary one if left out.")] = None,
    match: Annotated[Match, MATCH] = "category",
) -> None:
    """Measure the vision-blind gap of two finished runs, on all docs, a pruned set and random ones."""
    say(text(api.gap(full, blind, subset=subset, language_model=language_model, task=task, metric=metric, match=match)))


def text(gap: Gap) -> str:
    """Lay out the table, the verdict and the warnings."""
    from lmms_patch.compare.gap import leaked, rows
    from lmms_patch.present.sheets import table

    heads, *numbers = rows(gap)
    leakage = "" if gap.leakage is None else leaked(gap.leakage)
    return "\n".join(
        [table(heads, numbers).to_text(), *(line for line in (gap.verdict, leakage, *gap.warnings) if line)]
    )
