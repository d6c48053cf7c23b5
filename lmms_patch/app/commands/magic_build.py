"""``lmms-patch magic build``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lmms_patch.app.commands.common import Quiet, counting, examples, say, tell

if TYPE_CHECKING:
    from lmms_patch.magic.build.builder import Built

Scale = Literal["peak", "full"]
Keep = Literal["larger", "earlier"]
_NAMED = 3  # dropped questions that are named for each reason


@examples(
    "# the paper's pipeline: GQA's questions and scene graphs, and human saliency maps <qid>_0.png to <qid>_2.png",
    "lmms-patch magic build questions.json sceneGraphs.json images --saliency maps --output out/magic",
    "# the weakly supervised split: no maps, no adversarial boxes, no image of the first one",
    "lmms-patch magic build questions.json sceneGraphs.json images --weak --apart-from out/magic --output out/weak",
    "# try it on 50 questions, with a picture of each",
    "lmms-patch magic build questions.json sceneGraphs.json images --weak --adversarial 3 --limit 50 --previews --output out/try",
)
def command(
    questions: Annotated[Path, typer.Argument(metavar="QUESTIONS", help="JSON in the form of GQA's questions.")],
    scenes: Annotated[Path, typer.Argument(metavar="SCENES", help="JSON in the form of GQA's scene graphs.")],
    images: Annotated[Path, typer.Argument(metavar="IMAGES", help="Folder with <imageId>.jpg, or .png and others.")],
    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="Folder to write, or to go on with.")] = Path("out/magic"),
    saliency: Annotated[Path | None, typer.Option("--saliency", metavar="DIR", help="Folder with maps <qid>_0.png to <qid>_2.png.")] = None,
    weak: Annotated[bool, typer.Option("--weak", help="The weakly supervised split: relevant boxes are the annotated objects alone.")] = False,
    adversarial: Annotated[
        int | None, typer.Option("--adversarial", metavar="N", help="Adversarial boxes per item; 3 if left out, and 0 with --weak.")
    ] = None,
    apart_from: Annotated[Path | None, typer.Option("--apart-from", metavar="DATA", help="A dataset none of whose images is used.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="At most so many items: a seeded sample.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of adversarial boxes, of the sample, and of the contact sheet.")] = 0,
    link: Annotated[bool, typer.Option("--link", help="Hard links to the images, on one disk; they are copied if left out.")] = False,
    previews: Annotated[bool, typer.Option("--previews", help="Also a picture of each item with its boxes.")] = False,
    contact: Annotated[int, typer.Option("--contact", metavar="N", help="Items on the contact sheet; 0: no sheet.")] = 24,
    threshold: Annotated[float, typer.Option("--threshold", help="Of a saliency map, from 0 to 1: what exceeds it is a hotspot.")] = 0.5,
    scale: Annotated[Scale, typer.Option("--scale", help="What 1 means: the map's own peak, or the full range of its pixels.")] = "peak",
    clean: Annotated[float, typer.Option("--clean", help="Side of the morphological element, as a share of the image's shorter side.")] = 0.012,
    min_area: Annotated[float, typer.Option("--min-area", help="The smallest hotspot, as a share of the image.")] = 0.002,
    merge: Annotated[float, typer.Option("--merge", help="A hotspot is an object where their IoU reaches this.")] = 0.5,
    iou: Annotated[float, typer.Option("--iou", help="Two relevant boxes of a larger IoU than this: one goes.")] = 0.5,
    coverage: Annotated[float, typer.Option("--coverage", help="Likewise, the covered share of the smaller one.")] = 0.8,
    keep: Annotated[Keep, typer.Option("--keep", help="Which of the two stays.")] = "larger",
    min_size: Annotated[float, typer.Option("--min-size", help="Shortest side of an adversarial box, as a share of the image's.")] = 0.03,
    max_size: Annotated[float, typer.Option("--max-size", help="Longest side, likewise.")] = 0.6,
    quiet: Quiet = False,
) -> int:
    """Make a dataset from questions, scene graphs and saliency maps (Algorithm 1 of the paper).

    A build that was interrupted goes on when the same command is typed again. The same inputs and seed give the same bytes.
    0: done. 1: done, but the dataset has faults of its own (damaged texts, say). 2: nothing could be made.
    """
    from lmms_patch.app import api

    try:
        with counting("build", quiet) as bar:
            built = api.magic.build(
                questions,
                scenes,
                images,
                output,
                tell=lambda at: bar(at.done, at.total),
                saliency=saliency,
                weak=weak,
                adversarial=adversarial,
                apart_from=apart_from,
                limit=limit,
                seed=seed,
                placing="link" if link else "copy",
                previews=previews,
                contact=contact,
                threshold=threshold,
                scale=scale,
                clean=clean,
                min_area=min_area,
                merge=merge,
                iou=iou,
                coverage=coverage,
                keep=keep,
                min_size=min_size,
                max_size=max_size,
            )
    except KeyboardInterrupt:
        tell(f"stopped; what is finished lies in {output}, and the same command goes on from there", quiet)
        raise
    with counting("check", quiet) as bar:
        checked = api.magic.check(output, tell=lambda lines: bar(lines, len(built.items)))
    say(text(built, previews))
    errors = checked.level("error")
    if errors:
        say(f"\nthe dataset has {len(errors)} errors: type 'lmms-patch magic check {output}'")
        return 1
    say(f"check: {checked.total} items, no error")
    return 0


def text(built: Built, previews: bool = False) -> str:
    """What was made, what was dropped and why, and where to look."""
    from lmms_patch.magic.build.builder import UNNAMED
    from lmms_patch.present.sheets import table

    n, lines = built.counts, []
    out_of = f" of {n['questions']} questions" + (f" ({n['considered']} gone through)" if n["considered"] < n["questions"] else "")
    lines.append(f"{n['items']} items{out_of}, on {n['images']} images")
    boxes = f"{n['relevant boxes']} relevant and {n['adversarial boxes']} adversarial boxes"
    lines.append(boxes + (f", {n['synthetic boxes']} of these synthetic" if n["synthetic boxes"] else ""))
    noted = [[name, str(count)] for name, count in n.items() if count and name not in _TOLD and not name.startswith("dropped: ")]
    if built.dropped:
        lines += ["", table(["dropped", "questions", "such as"], _dropped(built)).to_text()]
    if built.counts.get(UNNAMED):
        what = "their images may be in this dataset too; give them 'group', or image paths"
        lines += ["", f"mind: {n[UNNAMED]} rows of the other dataset do not name their image: {what}"]
    if noted:
        lines += ["", table(["noted", "how often"], noted).to_text()]
    lines += ["", f"written: {built.folder / 'items.jsonl'}", f"settings, and everything that was dropped: {built.folder / 'build.json'}"]
    if previews:
        lines.append(f"each item with its boxes: {built.folder / 'previews'}")
    if (built.folder / "contact.png").is_file():
        lines.append(f"look at it: {built.folder / 'contact.png'}")
    return "\n".join([*lines, f"to run it: MAGIC_DATA={built.folder} lmms-eval --tasks magic,magic_relevant,magic_nobox ..."])


_TOLD = ("questions", "considered", "items", "dropped", "images", "relevant boxes", "adversarial boxes", "synthetic boxes")


def _dropped(built: Built) -> list[list[str]]:
    """By reason: how many, and the first of them."""
    by_reason: dict[str, list[str]] = {}
    for qid, reason, _ in built.dropped:
        by_reason.setdefault(reason, []).append(qid)
    return [[reason, str(len(ids)), ", ".join(ids[:_NAMED])] for reason, ids in sorted(by_reason.items())]
