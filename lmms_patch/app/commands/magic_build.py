"""``lmms-patch magic build``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import Place, counting, examples, say
from lmms_patch.app.commands.magic_check import magic_check

if TYPE_CHECKING:
    from lmms_patch.magic.build.builder import Built

# dropped questions that are named for each reason
_NAMED = 3


@examples(
    "# the paper's pipeline: GQA's questions and scene graphs, and human saliency maps <qid>_0.png to <qid>_2.png",
    "lmms-patch magic build questions.json sceneGraphs.json images --saliency maps --output out/magic",
    "# the weakly supervised split: no maps, no adversarial boxes; 50 questions of it",
    "lmms-patch magic build questions.json sceneGraphs.json images --weak --limit 50 --output out/weak",
)
def magic_build(
    questions: Annotated[Place, typer.Argument(metavar="QUESTIONS", help="JSON in the form of GQA's questions.")],
    scenes: Annotated[Place, typer.Argument(metavar="SCENES", help="JSON in the form of GQA's scene graphs.")],
    images: Annotated[Place, typer.Argument(metavar="IMAGES", help="Folder with <imageId>.jpg, or .png and others.")],
    output: Annotated[Place, typer.Option("--output", metavar="DIR", help="Folder to write.")] = Path("out/magic"),
    saliency: Annotated[
        Place | None, typer.Option("--saliency", metavar="DIR", help="Folder with maps <qid>_0.png to <qid>_2.png.")
    ] = None,
    weak: Annotated[
        bool,
        typer.Option("--weak", help="The weakly supervised split: relevant boxes are the annotated objects alone."),
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="At most so many items: a seeded sample.")
    ] = None,
) -> Built:
    """Make a dataset from questions, scene graphs and saliency maps (Algorithm 1 of the paper).

    The same inputs give the same bytes. A build that was interrupted is begun again by the same command.
    0: done. 1: done, but the dataset has faults of its own (damaged texts, say). 2: nothing could be made.
    """
    from lmms_patch.magic.build.builder import BuildSettings, build

    settings = BuildSettings(saliency=saliency, weak=weak, limit=limit)
    with counting("build") as bar:
        return build(questions, scenes, images, output, settings, lambda at: bar(at.done, at.total))


def display(built: Built) -> int:
    """Print what was made and dropped, check the dataset, and return 1 where it has faults of its own."""
    say(text(built))
    checked = magic_check(str(built.folder))
    if errors := checked.level("error"):
        say(f"\nthe dataset has {len(errors)} errors: type 'lmms-patch magic check {built.folder}'")
        return 1
    say(f"check: {checked.total} items, no error")
    return 0


def text(built: Built) -> str:
    """Tell what was made, what was dropped and why, and where to look."""
    from lmms_patch.present.sheets import table

    n, lines = built.counts, []
    out_of = f" of {n['questions']} questions" + (
        f" ({n['considered']} gone through)" if n["considered"] < n["questions"] else ""
    )
    lines.append(f"{n['items']} items{out_of}, on {n['images']} images")
    boxes = f"{n['relevant boxes']} relevant and {n['adversarial boxes']} adversarial boxes"
    lines.append(boxes + (f", {n['synthetic boxes']} of these synthetic" if n["synthetic boxes"] else ""))
    noted = [
        [name, str(count)]
        for name, count in n.items()
        if count and name not in _TOLD and not name.startswith("dropped: ")
    ]
    if built.dropped:
        lines += ["", table(["dropped", "questions", "such as"], _dropped(built)).to_text()]
    if noted:
        lines += ["", table(["noted", "how often"], noted).to_text()]
    lines += [
        "",
        f"written: {built.folder / 'items.jsonl'}",
        f"settings, and everything that was dropped: {built.folder / 'build.json'}",
    ]
    return "\n".join(
        [*lines, f"to run it: MAGIC_DATA={built.folder} lmms-eval --tasks magic,magic_relevant,magic_nobox ..."]
    )


_TOLD = (
    "questions",
    "considered",
    "items",
    "dropped",
    "images",
    "relevant boxes",
    "adversarial boxes",
    "synthetic boxes",
)


def _dropped(built: Built) -> list[list[str]]:
    """Return a row for each reason: how many questions, and the first of them."""
    by_reason: dict[str, list[str]] = {}
    for qid, reason, _ in built.dropped:
        by_reason.setdefault(reason, []).append(qid)
    return [[reason, str(len(ids)), ", ".join(ids[:_NAMED])] for reason, ids in sorted(by_reason.items())]
