"""``lmms-patch tst``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import Grouping, IncludePath, Quiet, examples, say
from lmms_patch.app.commands.show import text

Diagnostic = Literal["rf", "lora"]


@examples(
    "# the embedded benchmark, one family of which can be answered without looking",
    "lmms-patch tst mosaic",
    "# ten folds, five fold seeds, and first a check that nothing leaks",
    "lmms-patch tst mosaic_text --folds 10 --fold-seeds 5 --check",
    "# a small language model in place of features and trees",
    "lmms-patch tst mosaic_text --diagnostic lora --model-args model=Qwen/Qwen2.5-0.5B-Instruct",
)
def command(
    task: Annotated[str, typer.Argument(metavar="TASK", help="A base task, group or tag, such as gqa.")],
    diagnostic: Annotated[Diagnostic, typer.Option("--diagnostic", help="rf: features and trees, on the CPU; lora: a language model.")] = "rf",
    folds: Annotated[int, typer.Option("--folds", metavar="K", help="Number of folds, 2 to 50.")] = 5,
    fold_seed: Annotated[int | None, typer.Option("--fold-seed", metavar="S", help="The first fold seed; 0 if left out.")] = None,
    fold_seeds: Annotated[int | None, typer.Option("--fold-seeds", metavar="R", help="Number of fold seeds to average over; 3 if left out.")] = None,
    grouping: Annotated[
        Grouping | None, typer.Option("--grouping", help="What stays in one fold; auto if left out: the source, where it is known.")
    ] = None,
    model_args: Annotated[
        str, typer.Option("--model-args", metavar="K=V,...", help="Arguments of the diagnostic, such as model=forest,trees=1000.")
    ] = "",
    check: Annotated[bool, typer.Option("--check", help="First see on these docs that nothing leaks from held-out ones (rf only).")] = False,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="The first N docs only.")] = None,
    include_path: IncludePath = None,
    output: Annotated[Path, typer.Option("--output", metavar="OUT", help="Folder for results and sample log.")] = Path("out/tst"),
    quiet: Quiet = False,
) -> None:
    """Test-set Stress-Test: can a text-only model, cross-validated on the test set, answer without looking?"""
    run = api.tst(
        task,
        quiet=quiet,
        diagnostic=diagnostic,
        folds=folds,
        fold_seed=fold_seed,
        fold_seeds=fold_seeds,
        grouping=grouping,
        model_args=model_args,
        check=check,
        limit=limit,
        include_path=include_path,
        output=output,
    )
    say(text(run, causes=True))
