"""``lmms-patch prune``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import Quiet, examples, say, teller
from lmms_patch.app.options import PruneArguments, options_of

if TYPE_CHECKING:
    from lmms_patch.app.pruning import Pruning


@examples(
    "# the embedded benchmark's text family: up to 30 % of it, into out/pruned/mosaic_text",
    "lmms-patch prune mosaic_text",
    "# 20 docs at most, and 10 of every category stay",
    "lmms-patch prune mosaic_text --budget 20 --floor 10 --output out/pruned/twenty",
    "# by the scores of a finished run, without asking again",
    "lmms-patch prune mosaic_text --from out/tst --output out/pruned/from_run",
    "# what several models answer without the image: runs of gqa_blind or gqa_swap",
    "lmms-patch prune gqa --blind out/model_a out/model_b out/model_c",
    "# also the kept docs, as a dataset that others can load",
    "lmms-patch prune mosaic_text --to out/mosaic_text_pruned --copy --license apache-2.0",
)
@options_of(PruneArguments)
def command(
    no_near_chance_stop: Annotated[
        bool, typer.Option("--no-near-chance-stop", help="Go on when what would go is no more than luck.")
    ] = False,
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Remove what can be answered without looking, and say whether that was more than noise."""
    done = api.prune(
        tell=teller(quiet), finished=lambda done: say(text(done)), near_chance_stop=not no_near_chance_stop, **options
    )
    if done.dataset is not None:
        say(f"the dataset for others: {done.dataset} (README.md is its card)")
    if done.pushed is not None:
        say(
            f"on the hub: {done.pushed.repository} ({'private' if done.pushed.private else 'public'}), {done.pushed.url}"
        )


def text(done: Pruning) -> str:
    """Tell what was removed, the judge's or blind answers' verdict, the categories, and how to run the rest."""
    from lmms_patch.present import card
    from lmms_patch.present.sheets import table

    asked, task = done.arguments, done.task_file
    luck = "" if done.found.innocent is None else f", {done.found.innocent:.1f} of them expected by luck"
    lines = [
        f"{asked.task}: {len(done.found.removed)} of {len(done.items)} docs removed{luck}; stopped: {done.found.stopped}"
    ]
    if done.judged is not None:
        lines.append(done.judged.sentence)
    if done.overlap is not None:
        o = done.overlap
        lines.append(
            f"of the removed docs {100 * o.share:.1f} % are marked {asked.against} "
            f"(matched-random removal: {100 * o.expected:.1f} %, p = {o.p:.3f}; Jaccard index {o.jaccard:.2f})"
        )
    if done.blind is not None:
        lines += ["", card.blind_models(done.blind).to_text(), card.of_dependence(done.blind)]
        lines += (
            ["", card.blind_ranks(done.blind).to_text(), card.of_swaps(done.blind)]
            if done.blind.ranks
            else [card.NO_RANKS]
        )
    rows = [[name, str(a), str(b), f"{c:.1f} %", str(d)] for name, a, b, c, d in done.categories]
    lines += ["", table(["question category", "original", "removed", "percent", "final"], rows).to_text()]
    lines += [
        "",
        f"written: {done.folder}",
        f"to run the kept docs: lmms-eval --tasks {task.stem} --include_path {task.parent} ...",
    ]
    return "\n".join(lines)
