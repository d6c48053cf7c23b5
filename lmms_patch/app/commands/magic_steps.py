"""``lmms-patch magic steps``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import Quiet, counting, examples, say

if TYPE_CHECKING:
    from lmms_patch.app.api_magic import Steps

# reasons that are named
_NAMED = 5


@examples(
    "# 100 items for two people, each a file of their own",
    "lmms-patch magic steps out --items 100 --annotator ann --output ann.csv",
    "lmms-patch magic steps out --items 100 --annotator bob --output bob.csv",
    "# the same items labelled by a judge (address and key: OPENAI_API_URL, OPENAI_API_KEY)",
    "lmms-patch magic steps out --items 100 --judge Qwen/Qwen2.5-72B-Instruct --output judge.csv",
)
def command(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The --output_path of the run, or its *_results.json.")],
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="File to write: .csv or .jsonl.")] = Path(
        "steps.csv"
    ),
    task: Annotated[
        str | None, typer.Option("--task", metavar="NAME", help="The MAGIC task, where the run has several.")
    ] = None,
    items: Annotated[
        int | None, typer.Option("--items", metavar="N", help="At most so many items: a seeded sample.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the sample.")] = 0,
    annotator: Annotated[
        str, typer.Option("--annotator", metavar="NAME", help="Who is to label: written into each line.")
    ] = "",
    judge: Annotated[
        str, typer.Option("--judge", metavar="MODEL", help="Label them by a judge model (docs/magic-judge.md).")
    ] = "",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file where it is there: it may hold labels.")
    ] = False,
    quiet: Quiet = False,
) -> int:
    """List the reasoning steps of a run, one line each, for people or a judge to label.

    Write 1 (correct) or 0 in the column 'correct' of each line, then type 'lmms-patch magic stepsense FILE'.
    0: written. 1: written, but the judge labelled no step. 2: nothing could be written.
    """
    from lmms_patch.app import api
    from lmms_patch.errors import OptionError
    from lmms_patch.files import write_all
    from lmms_patch.magic.score.labels import FORMS

    form = output.suffix.lower()
    if form not in FORMS:
        raise OptionError(f"--output {output}: steps are written as {' or '.join(FORMS)}")
    if output.exists() and not overwrite:
        raise OptionError(f"{output} is there already, and may hold labels; give another --output, or --overwrite")
    with counting("judge", quiet) as bar:
        steps = api.magic.steps(
            out, task=task, items=items, seed=seed, annotator=annotator, judge=judge, tell=lambda n, of: bar(n, of)
        )
    write_all({output: steps.to_text(form)})
    say(text(steps, output))
    return int(bool(steps.judge) and steps.unjudged == len(steps.rows))


def text(steps: Steps, output: Path) -> str:
    """Tell what was written, what was left out, and what to do next."""
    lines = [
        f"{steps.task}: {len(steps.rows)} steps of {steps.items} items"
        + (f" (of {steps.of})" if steps.items < steps.of else "")
    ]
    if steps.without:
        lines.append(f"mind: {steps.without} responses have no reasoning step, and are no part of this")
    if steps.otherwise:
        lines.append(
            f"mind: {steps.otherwise} of these items were split into another number of steps when the run was scored, by another version"
        )
    if steps.judge:
        labelled = len(steps.rows) - steps.unjudged
        lines.append(f"labelled by {steps.judge}: {labelled} steps")
        if steps.unjudged:
            lines.append(
                f"mind: {steps.unjudged} steps have no verdict ({_reasons(steps)}); the same command with --overwrite asks only for these"
            )
        if not labelled:
            return "\n".join([*lines, f"written: {output}", "there is nothing to score yet"])
        do = "score them"
    else:
        do = (
            "write 1 (correct) or 0 into the column 'correct'"
            + ("" if steps.rows[0].get("annotator") else ", your name into 'annotator'")
            + ", then"
        )
    return "\n".join([*lines, f"written: {output}", f"{do}: lmms-patch magic stepsense {output}"])


def _reasons(steps: Steps) -> str:
    """Say why there are no verdicts, each reason once."""
    more = len(steps.errors) - _NAMED
    return "; ".join(steps.errors[:_NAMED]) + (f"; and {more} more reasons" if more > 0 else "")
