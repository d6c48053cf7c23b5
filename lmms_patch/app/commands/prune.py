"""``lmms-patch prune``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmms_patch.app.commands.common import Places, examples, is_telling, paths, say, tell
from lmms_patch.app.options import PruneArguments, options_of
from lmms_patch.errors import read_as

if TYPE_CHECKING:
    from lmms_patch.app.pruning import Pruning


@examples(
    "# the embedded benchmark's text family: up to 30 % of it, into out/pruned/mosaic_text",
    "lmms-patch prune mosaic_text",
    "# 20 docs at most",
    "lmms-patch prune mosaic_text --budget 20 --output out/pruned/twenty",
    "# by the scores of a finished run, without asking again",
    "lmms-patch prune mosaic_text --from out/tst --output out/pruned/from_run",
    "# what several models answer without the image: runs of gqa_blind or gqa_swap",
    "lmms-patch prune gqa --blind out/model_a out/model_b out/model_c",
    "# also send the folder to the hub, as a private dataset repository",
    "lmms-patch prune gqa --push me/gqa_pruned",
)
@options_of(PruneArguments)
def prune(task: str, runs: Places = (), **options: Any) -> Pruning:
    """Remove what can be answered without looking, and say whether that was more than noise."""
    from lmms_patch.app import pruning
    from lmms_patch.harness.names import catalog

    # bars of lmms-eval only where somebody watches
    with catalog.quietly(bars=is_telling()):
        return pruning.run(read_as(PruneArguments, {"task": task, "runs": paths(runs), **options}, "prune"), tell)


def display(done: Pruning) -> None:
    """Print what was removed, and where on the hub it is."""
    say(text(done))
    if done.pushed:
        say(f"on the hub: {done.pushed}")


def text(done: Pruning) -> str:
    """Tell what was removed, the judge's or blind answers' verdict, the categories, and how to run the rest."""
    from lmms_patch.present import card

    asked, task = done.arguments, done.task_file
    luck = "" if done.found.innocent is None else f", {done.found.innocent:.1f} of them expected by luck"
    lines = [
        f"{asked.task}: {len(done.found.removed)} of {len(done.items)} docs removed{luck}; stopped: {done.found.stopped}"
    ]
    if done.judged is not None:
        lines.append(done.judged.sentence)
    if done.blind is not None:
        lines += ["", card.blind_models(done.blind).to_text(), card.of_known(done.blind)]
    lines += ["", card.category_sheet(done.categories).to_text()]
    lines += [
        "",
        f"written: {done.folder}",
        f"to run the kept docs: lmms-eval --tasks {task.stem} --include_path {task.parent} ...",
    ]
    return "\n".join(lines)
