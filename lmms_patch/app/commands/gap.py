"""``lmms-patch gap``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import Place, examples, say

if TYPE_CHECKING:
    from lmms_patch.compare.gap import Gap
    from lmms_patch.compare.gap_sides import GapSide


@examples(
    "# after lmms-eval --tasks gqa,gqa_blind --output_path out --log_samples ...",
    "lmms-patch gap out out",
    "# is it wider on what lmms-patch prune gqa left?",
    "lmms-patch gap out out --subset out/pruned/gqa",
    "# MMStar's gain and leakage: llm is a run of gqa_blind by the language model that the model was made from",
    "lmms-patch gap out out --language-model llm",
)
def gap(
    full: Annotated[
        Place,
        typer.Argument(
            metavar="FULL", help="Run with images: of the plain task, or a wrapped one that asks the full image."
        ),
    ],
    blind: Annotated[Place, typer.Argument(metavar="BLIND", help="Run of the _blind task.")],
    subset: Annotated[
        Place | None,
        typer.Option(
            "--subset", metavar="KEPT", help="Folder of lmms-patch prune, its kept_ids.txt, or a file of doc ids."
        ),
    ] = None,
    language_model: Annotated[
        Place | None,
        typer.Option(
            "--language-model",
            metavar="RUN",
            help="Run of the _blind task by the model's language model: MMStar's leakage.",
        ),
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="The base task, where the runs have several.")] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="The metric; the primary one if left out.")] = None,
) -> Gap:
    """Measure the vision-blind gap of two finished runs, on all docs, a pruned set and random ones."""
    from lmms_patch.compare import gap as gaps
    from lmms_patch.compare import gap_sides

    one, other = gap_sides.read_pair(Path(full), Path(blind), task=task, metric=metric)
    one = dataclasses.replace(one, warnings=(*one.warnings, *_asked_apart(one, other)))
    found = gaps.gap(one, other, None if subset is None else gap_sides.read_subset(Path(subset), one.base))
    if language_model is None:
        return found
    text = gap_sides.read_side(Path(language_model), "blind", task=other.base, metric=other.metric)
    return dataclasses.replace(found, leakage=gaps.leakage(other, text), warnings=(*found.warnings, *text.warnings))


def display(found: Gap) -> None:
    """Print the table, the verdict and the warnings."""
    from lmms_patch.compare.gap import leaked, rows
    from lmms_patch.present.sheets import table

    heads, *numbers = rows(found)
    leakage = "" if found.leakage is None else leaked(found.leakage)
    say("\n".join(filter(None, [table(heads, numbers).to_text(), found.verdict, leakage, *found.warnings])))


def _asked_apart(full: GapSide, blind: GapSide) -> list[str]:
    """Name the settings, beside the image, in which the full and the blind run differ or are not known."""
    from lmms_patch.compare.checks import in_words
    from lmms_patch.runs import run as runs

    prints = []
    for side in (full, blind):
        assert side.file is not None
        run = runs.read(side.file)
        wrapped = next((result for result in run.results if result.task == side.task and not result.place), None)
        settings = runs.asked(run, side.task) if wrapped is None else wrapped.fingerprint
        prints.append(
            {
                key: settings.get(key)
                for key in (*runs.RECORDED, "limit", "generation")
                # Images differ by design between the two runs; a warning about them would be true of every gap.
                if key not in ("image sizes", "images")
            }
        )
    apart, unknown = in_words(runs.differences(*prints)), runs.not_compared(*prints)
    said = (
        [f"the full and the blind run differ in {', '.join(apart)} too: the gap is not of the image alone"]
        if apart
        else []
    )
    return [*said, *([unknown] if unknown else [])]
