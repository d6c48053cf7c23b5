"""``lmms-patch demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import Place, examples, folded, say, watching, width

if TYPE_CHECKING:
    from lmms_patch.app.commands.show import Run

IMAGES = ("--model", "mosaic_vlm", "--batch_size", "16", "--tasks", "mosaic_rci,mosaic_blind")
"""What lmms-eval is asked: the embedded benchmark on both grids of the papers, on wrong images, and without any."""
VIDEO = ("--model", "mosaic_reader", "--tasks", "mosaic_video_trci4")
"""Likewise of videos: each embedded question on its clip, on its four segments, and for some on another question's clip."""


@examples(
    "# what the tool finds on a benchmark whose truth is known; a page to open",
    "lmms-patch demo",
    "# the same for video: which moment does it need? (three and a half minutes)",
    "lmms-patch demo --video --output out/demo-video",
)
def demo(
    output: Annotated[
        Place, typer.Option("--output", "-o", metavar="DIR", help="The folder for the run and its page.")
    ] = Path("out/demo"),
    video: Annotated[
        bool, typer.Option("--video", help="The embedded clips and the model that reads them, instead of the images.")
    ] = False,
) -> Run:
    """Run the embedded benchmark with the embedded model, say what that finds, and write its page: 3 minutes on 2 cores, no network."""
    from lmms_patch.app.commands.report import report
    from lmms_patch.app.commands.show import show
    from lmms_patch.app.watched import lmms_eval

    options = [*(VIDEO if video else IMAGES), "--verbosity", "WARNING", "--output_path", str(output)]
    with watching() as watch:
        lmms_eval(options, Path(output), watch)
    run = show(output)
    report(run.path, Path(output) / "report", with_images=True)
    return run


def display(run: Run, output: Path) -> None:
    """Print the findings, the indices, and where the page is."""
    from lmms_patch.present.terminal import rci

    indexed = [one for one in run.shown if one.result.indexed]
    found, page = folded((one.text for one in run.findings), width()), output / "report" / "index.html"
    say("\n\n".join([found, rci.indices(indexed, width()), f"page: {page}"]))
