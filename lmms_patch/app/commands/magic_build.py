"""``lmms-patch magic build``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmms_patch.app.commands.common import Quiet, counting, examples, say, tell
from lmms_patch.app.options import BuildOptions, options_of

if TYPE_CHECKING:
    from lmms_patch.magic.build.builder import Built

# dropped questions that are named for each reason
_NAMED = 3


@examples(
    "# the paper's pipeline: GQA's questions and scene graphs, and human saliency maps <qid>_0.png to <qid>_2.png",
    "lmms-patch magic build questions.json sceneGraphs.json images --saliency maps --output out/magic",
    "# the weakly supervised split: no maps, no adversarial boxes, no image of the first one",
    "lmms-patch magic build questions.json sceneGraphs.json images --weak --apart-from out/magic --output out/weak",
    "# try it on 50 questions, with a picture of each",
    "lmms-patch magic build questions.json sceneGraphs.json images --weak --adversarial 3 --limit 50 --previews --output out/try",
)
@options_of(BuildOptions)
def command(
    questions: Annotated[Path, typer.Argument(metavar="QUESTIONS", help="JSON in the form of GQA's questions.")],
    scenes: Annotated[Path, typer.Argument(metavar="SCENES", help="JSON in the form of GQA's scene graphs.")],
    images: Annotated[Path, typer.Argument(metavar="IMAGES", help="Folder with <imageId>.jpg, or .png and others.")],
    quiet: Quiet = False,
    **options: Any,
) -> int:
    """Make a dataset from questions, scene graphs and saliency maps (Algorithm 1 of the paper).

    A build that was interrupted goes on when the same command is typed again. The same inputs and seed give the same
    bytes.
    0: done. 1: done, but the dataset has faults of its own (damaged texts, say). 2: nothing could be made.
    """
    from lmms_patch.app import api

    options["placing"] = "link" if options.pop("link") else "copy"
    try:
        with counting("build", quiet) as bar:
            built = api.magic.build(questions, scenes, images, tell=lambda at: bar(at.done, at.total), **options)
    except KeyboardInterrupt:
        tell(f"stopped; what is finished lies in {options['output']}, and the same command goes on from there", quiet)
        raise
    with counting("check", quiet) as bar:
        checked = api.magic.check(built.folder, tell=lambda lines: bar(lines, len(built.items)))
    say(text(built, options["previews"]))
    errors = checked.level("error")
    if errors:
        say(f"\nthe dataset has {len(errors)} errors: type 'lmms-patch magic check {built.folder}'")
        return 1
    say(f"check: {checked.total} items, no error")
    return 0


def text(built: Built, previews: bool = False) -> str:
    """Tell what was made, what was dropped and why, and where to look."""
    from lmms_patch.magic.build.builder import UNNAMED
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
    if built.counts.get(UNNAMED):
        what = "their images may be in this dataset too; give them 'group', or image paths"
        lines += ["", f"mind: {n[UNNAMED]} rows of the other dataset do not name their image: {what}"]
    if noted:
        lines += ["", table(["noted", "how often"], noted).to_text()]
    lines += [
        "",
        f"written: {built.folder / 'items.jsonl'}",
        f"settings, and everything that was dropped: {built.folder / 'build.json'}",
    ]
    if previews:
        lines.append(f"each item with its boxes: {built.folder / 'previews'}")
    if (built.folder / "contact.png").is_file():
        lines.append(f"look at it: {built.folder / 'contact.png'}")
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
