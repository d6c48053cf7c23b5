"""``lmms-patch magic stepsense``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import JsonFile, Places, answer, examples, paths

if TYPE_CHECKING:
    from lmms_patch.magic.score.stepsense import StepSenses


@examples(
    "# two people, and how far they agree",
    "lmms-patch magic stepsense ann.jsonl bob.jsonl",
    "# a judge beside them, everything also into a file",
    "lmms-patch magic stepsense ann.jsonl bob.jsonl judge.jsonl --json stepsense.json",
)
def magic_stepsense(
    files: Annotated[
        Places, typer.Argument(metavar="LABELS", help="Files of step labels, as 'magic steps' writes them.")
    ],
) -> StepSenses:
    """Compute the share of steps labelled correct (StepSense), and how far annotators agree (Cohen's kappa).

    People and judges apart.
    """
    from lmms_patch.magic.score.labels import SOURCES, read_labels
    from lmms_patch.magic.score.stepsense import MOST_ANNOTATORS, StepSenses, across
    from lmms_patch.magic.score.stepsense import stepsense as score

    labelled = read_labels(paths(files))
    groups = labelled.groups or None
    scores = tuple(
        score(labels, groups, unjudged=labelled.open.get(source, ()))
        for source in SOURCES
        if (labels := labelled.of(source))
    )
    between = across(labelled.of("human"), labelled.of("judge"), groups) if len(scores) > 1 else ()
    many = max(len(one.annotators) for one in scores)
    crowd = (
        (f"{many} annotators: how far they agree is computed for at most {MOST_ANNOTATORS}",)
        if many > MOST_ANNOTATORS
        else ()
    )
    return StepSenses(scores, between, dict(labelled.unlabelled), bool(labelled.groups), crowd)


def display(scores: StepSenses, json_file: JsonFile = None) -> None:
    """Print the shares and the agreement."""
    from lmms_patch.present.terminal import stepsense

    answer(lambda: stepsense.text(scores), scores.to_json, json_file)
