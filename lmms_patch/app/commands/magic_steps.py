"""``lmms-patch magic steps``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import Place, counting, examples, say
from lmms_patch.errors import OptionError, RecordError

if TYPE_CHECKING:
    from lmms_patch.magic.score.labels import Row
    from lmms_patch.magic.score.results import Record
    from lmms_patch.magic.score.steps import Chain
    from lmms_patch.magic.score.verdicts import JudgeVerdict

# reasons that are named
_NAMED = 5


@dataclass(frozen=True)
class Steps:
    """Reasoning steps of a run, to be labelled or labelled by a judge.

    Attributes:
        task: the MAGIC task.
        rows: one per step.
        items: how many items are in them.
        of: how many items with a step the run has.
        without: items whose response has no step: they cannot be sampled.
        otherwise: items that are split into another number of steps than when the run was scored (by another version).
        judge: the judge; "": none.
        unjudged: steps that the judge gave no verdict on.
        errors: why, each reason once.
    """

    task: str
    rows: tuple[Row, ...]
    items: int
    of: int
    without: int
    otherwise: int
    judge: str = ""
    unjudged: int = 0
    errors: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Return the rows as the content of a file."""
        from lmms_patch.magic.score import labels

        return labels.to_text(self.rows)


@examples(
    "# 100 items for two people, each a file of their own",
    "lmms-patch magic steps out --items 100 --annotator ann --output ann.jsonl",
    "lmms-patch magic steps out --items 100 --annotator bob --output bob.jsonl",
    "# the same items labelled by a judge (address and key: OPENAI_API_URL, OPENAI_API_KEY)",
    "lmms-patch magic steps out --items 100 --judge Qwen/Qwen2.5-72B-Instruct --output judge.jsonl",
)
def magic_steps(
    out: Annotated[Place, typer.Argument(metavar="OUT", help="The --output_path of the run, or its *_results.json.")],
    output: Annotated[Place, typer.Option("--output", metavar="FILE", help="File to write.")] = Path("steps.jsonl"),
    task: Annotated[
        str | None, typer.Option("--task", metavar="NAME", help="The MAGIC task, where the run has several.")
    ] = None,
    items: Annotated[
        int | None, typer.Option("--items", metavar="N", help="At most so many items: a seeded sample.")
    ] = None,
    annotator: Annotated[
        str, typer.Option("--annotator", metavar="NAME", help="Who is to label: written into each line.")
    ] = "",
    judge: Annotated[
        str, typer.Option("--judge", metavar="MODEL", help="Label them by a judge model (docs/magic-judge.md).")
    ] = "",
) -> Steps:
    """List the reasoning steps of a run, a line each, for people or a judge to label.

    Write 1 (correct) or 0 as 'correct' of each line, then type 'lmms-patch magic stepsense FILE'.
    0: written. 1: written, but the judge labelled no step. 2: nothing could be written.
    """
    from lmms_patch.files import write

    # before a judge is asked, who may cost money
    if Path(output).exists():
        raise OptionError(f"{output} is there already, and may hold labels; remove it, or give another --output")
    found = _steps(out, task, items, annotator, judge)
    write(Path(output), found.to_text())
    return found


def display(steps: Steps, output: Path) -> int:
    """Print what was written, and return 1 where a judge labelled no step."""
    say(text(steps, output))
    return int(bool(steps.judge) and steps.unjudged == len(steps.rows))


def _lines(path: Path, task: str | None) -> tuple[str, list[Record]]:
    """Return the name of a MAGIC task of a run, and its answered docs.

    Args:
        path: ``--output_path`` of the run (of several the newest with such a task), or its results file.
        task: the task; None: the one with all boxes, else the only one.

    Raises:
        OptionError: there is no such task, several, or one whose responses only go on from injected steps.
        RecordError: no run, no MAGIC task, or samples that are missing or cut.
    """
    from lmms_patch.magic.method import read
    from lmms_patch.runs import run as runs

    newest, _ = runs.newest(result for run in runs.find([path]) for result in run.results)
    there = {one.task: one for one in newest if one.magic and one.magic.variant != "selfheal"}
    whole = [name for name, one in there.items() if one.magic and one.magic.variant == "all"]
    chosen = [task] if task else whole or list(there)
    if len(chosen) != 1 or chosen[0] not in there:
        names = ", ".join(there) or "none"
        raise OptionError(
            f"{path}: name one MAGIC task with steps of its own by --task, or give one run's file; there: {names}"
        )
    return chosen[0], [one for one in read(there[chosen[0]]).values() if one.failed is None]


def _steps(out: Place, task: str | None, items: int | None, annotator: str, judge: str) -> Steps:
    """Return the steps of a run's responses, labelled where there is a judge."""
    from lmms_patch.magic.score import steps as stepping

    if items is not None and items < 1:
        raise OptionError(f"items is {items}; allowed: 1 or more")
    if annotator and judge:
        raise OptionError("annotator and judge exclude each other: a judge's labels bear its own name")
    name, lines = _lines(Path(out), task)
    chains = [stepping.chain_of(line) for line in lines]
    chosen = stepping.sample(chains, items)
    if not chosen:
        raise RecordError(f"{out}: no response of {name} has a reasoning step; there is nothing to label")
    some = len(chosen), sum(bool(chain.steps) for chain in chains)
    counts = (*some, len(chains) - some[1], sum(len(chain.steps) != chain.scored for chain in chosen))
    if not judge:
        return Steps(name, tuple(stepping.rows(chosen, annotator)), *counts)
    with counting("judge") as tell:
        verdicts = _judged(chosen, judge, tell)
    labelled = {item: [one.value for one in said] for item, said in verdicts.items()}
    missing = [one for said in verdicts.values() for one in said if one.value is None]
    why = tuple(dict.fromkeys(one.error for one in missing))
    return Steps(name, tuple(stepping.rows(chosen, judge, "judge", labelled)), *counts, judge, len(missing), why)


def _judged(
    chains: Sequence[Chain], model: str, tell: Callable[[int, int], None] | None
) -> dict[str, Sequence[JudgeVerdict]]:
    """Return the judge's verdict on each step, by item; verdicts in the cache are not asked again."""
    import os

    from lmms_patch.harness.magic.judge import Judge
    from lmms_patch.magic.score.judge_settings import JudgeSettings
    from lmms_patch.magic.score.verdicts import steps_inquiry

    if missing := [chain.item for chain in chains if not chain.question]:
        raise RecordError(f"the log has no question of item {missing[0]}; a judge needs it")
    asked = [steps_inquiry(chain.question, chain.gold, chain.steps) for chain in chains]
    said = Judge(JudgeSettings.from_env({**os.environ, "MAGIC_JUDGE": model})).many(asked, tell)
    return {chain.item: verdicts for chain, verdicts in zip(chains, said, strict=True)}


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
                f"mind: {steps.unjudged} steps have no verdict ({_reasons(steps)}); without this file the same command asks only for these"
            )
        if not labelled:
            return "\n".join([*lines, f"written: {output}", "there is nothing to score yet"])
        do = "score them"
    else:
        do = (
            "write 1 (correct) or 0 as 'correct' of each line"
            + ("" if steps.rows[0].annotator else ", your name as 'annotator'")
            + ", then"
        )
    return "\n".join([*lines, f"written: {output}", f"{do}: lmms-patch magic stepsense {output}"])


def _reasons(steps: Steps) -> str:
    """Say why there are no verdicts, each reason once."""
    more = len(steps.errors) - _NAMED
    return "; ".join(steps.errors[:_NAMED]) + (f"; and {more} more reasons" if more > 0 else "")
