"""``lmms-patch prune``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import MATCH_HELP, Grouping, IncludePath, Match, Quiet, examples, say, teller

if TYPE_CHECKING:
    from lmms_patch.app.pruning import Pruning

By = Literal["s_minus_chance", "s", "delta", "locality"]
Strategy = Literal["top", "weighted", "balanced"]
Model = Literal["boosting", "forest"]


@examples(
    "# the embedded benchmark's text family: up to 30 % of it, into out/pruned/mosaic_text",
    "lmms-patch prune mosaic_text",
    "# 20 docs at most, and 10 of every category stay",
    "lmms-patch prune mosaic_text --budget 20 --floor 10 --output out/pruned/twenty",
    "# by the scores of a finished run, without asking again",
    "lmms-patch prune mosaic_text --from out/tst --output out/pruned/from_run",
)
def command(
    task: Annotated[str, typer.Argument(metavar="TASK", help="A base task, such as gqa.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Folder for lists, history and the pruned task; out/pruned/TASK if left out.")
    ] = None,
    include_path: IncludePath = None,
    budget: Annotated[float, typer.Option("--budget", metavar="N", help="Docs to remove: a number, or a share below 1.")] = 0.3,
    batch: Annotated[float | None, typer.Option("--batch", metavar="N", help="Docs per round, likewise; a fifth of the budget if left out.")] = None,
    tau: Annotated[float | None, typer.Option("--tau", help="Stop when no score is this high.")] = None,
    no_near_chance_stop: Annotated[
        bool, typer.Option("--no-near-chance-stop", help="Go on when text-only answers are no better than the majority answer.")
    ] = False,
    by: Annotated[By, typer.Option("--by", help="The score that ranks.")] = "s_minus_chance",
    strategy: Annotated[Strategy, typer.Option("--strategy", help="Top, weighted draw, or balanced over golds.")] = "top",
    allocate: Annotated[
        str, typer.Option("--allocate", metavar="HOW", help="global, format, category, or budgets by category: a=0.3,b=20.")
    ] = "global",
    floor: Annotated[float, typer.Option("--floor", metavar="N", help="Docs that every category keeps: a number, or a share below 1.")] = 0,
    scores_of: Annotated[
        Path | None,
        typer.Option("--from", metavar="OUT", help="Single pass by the scores of a finished _tst run, or for locality of an _rci run."),
    ] = None,
    grid: Annotated[int | None, typer.Option("--grid", metavar="N", help="For --by locality: the grid; the finest of the run if left out.")] = None,
    folds: Annotated[int, typer.Option("--folds", metavar="K", help="Number of folds, 2 to 50.")] = 5,
    fold_seeds: Annotated[int, typer.Option("--fold-seeds", metavar="R", help="Fold seeds per round.")] = 3,
    grouping: Annotated[Grouping, typer.Option("--grouping", help="What stays in one fold.")] = "auto",
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="FIELD", help="Doc field with a stable id; if left out the task's option key, else a hash of the doc."),
    ] = None,
    model: Annotated[Model, typer.Option("--model", help="The diagnostic that selects; the judge is the other.")] = "boosting",
    controls: Annotated[int, typer.Option("--controls", metavar="N", help="Matched-random removals.")] = 5,
    shuffles: Annotated[int, typer.Option("--shuffles", metavar="N", help="Prunings of shuffled golds; 0: no verdict.")] = 20,
    match: Annotated[Match, typer.Option("--match", help=MATCH_HELP)] = "category",
    against: Annotated[
        str | None, typer.Option("--against", metavar="FIELD", help="A true/false doc field: how far the removed docs are those.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of ties, draws and fold seeds.")] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew where an earlier call was interrupted.")] = False,
    quiet: Quiet = False,
) -> None:
    """Remove what can be answered without looking, and say whether that was more than noise."""
    done = api.prune(
        task,
        tell=teller(quiet),
        output=output,
        include_path=include_path,
        budget=budget,
        batch=batch,
        tau=tau,
        near_chance_stop=not no_near_chance_stop,
        by=by,
        strategy=strategy,
        allocate=allocate,
        floor=floor,
        scores_of=scores_of,
        grid=grid,
        folds=folds,
        fold_seeds=fold_seeds,
        grouping=grouping,
        key=key,
        model=model,
        controls=controls,
        shuffles=shuffles,
        match=match,
        against=against,
        seed=seed,
        fresh=fresh,
    )
    say(text(done))


def text(done: Pruning) -> str:
    """What went, what a judge says of it, by category, and how to run what is left."""
    from lmms_patch.present.sheets import table

    found, asked, task = done.found, done.arguments, done.task_file
    lines = [f"{asked.task}: {len(found.removed)} of {len(done.items)} docs removed; stopped: {found.stopped}"]
    if done.judged is not None:
        lines.append(done.judged.sentence)
    if done.overlap is not None:
        o = done.overlap
        lines.append(
            f"of the removed docs {100 * o.share:.1f} % are marked {asked.against} "
            f"(matched-random removal: {100 * o.expected:.1f} %, p = {o.p:.3f}; Jaccard index {o.jaccard:.2f})"
        )
    rows = [[name, str(a), str(b), f"{c:.1f} %", str(d)] for name, a, b, c, d in done.categories]
    lines += ["", table(["question category", "original", "removed", "percent", "final"], rows).to_text()]
    lines += ["", f"written: {done.folder}", f"to run the kept docs: lmms-eval --tasks {task.stem} --include_path {task.parent} ..."]
    return "\n".join(lines)
