"""``lmms-patch import vlmevalkit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app.commands.common import examples, say
from lmms_patch.text import line


@examples(
    "# every model and benchmark below a folder that VLMEvalKit wrote and evaluated",
    "lmms-patch import vlmevalkit outputs --output out/imported",
    "# an RCI run made there, whose cells are named in a way of its own, such as MMStar_p5of9",
    "lmms-patch import vlmevalkit outputs --crop {dataset}_p{cell}of9",
    "# two files, and scores in a column of one's own",
    "lmms-patch import vlmevalkit m_MMStar.tsv --model m --score right",
)
def command(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Folders or files that VLMEvalKit wrote.")],
    output: Annotated[
        Path, typer.Option("--output", metavar="OUT", help="Folder for the runs, one folder for each model.")
    ] = Path("out/imported"),
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="The model, as files' names begin; if left out, the name of a folder above them.",
        ),
    ] = None,
    crop: Annotated[
        str | None,
        typer.Option(
            "--crop",
            metavar="PATTERN",
            help="How datasets of cells are named: {dataset}_patch_{n}_{row}_{col}, or with {cell}.",
        ),
    ] = None,
    score: Annotated[
        str | None, typer.Option("--score", metavar="COLUMN", help="The column of scores; if left out, hit, score, ...")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", metavar="NAME", help="Whose scores, where there are several: openai, exact_matching."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="COLUMN",
            help="The column whose equal values are one cluster, such as the image's name.",
        ),
    ] = None,
    category: Annotated[
        str, typer.Option("--category", metavar="COLUMN", help="The column of categories.")
    ] = "category",
    chance: Annotated[
        float | None, typer.Option("--chance", help="What an uninformed answer scores, where that is documented.")
    ] = None,
    scale: Annotated[float, typer.Option("--scale", help="Full marks of a score.")] = 1.0,
    trust_pickle: Annotated[
        bool, typer.Option("--trust-pickle", help="Read pickles, which can run any code: only your own.")
    ] = False,
) -> None:
    """Turn results of VLMEvalKit into finished runs, for the commands show, report, compare, gate and leaderboard."""
    from lmms_patch.app import api

    done = api.import_.vlmevalkit(
        paths,
        output=output,
        model=model,
        crop=crop,
        score=score,
        judge=judge,
        cluster=cluster,
        category=category,
        chance=chance,
        scale=scale,
        trust_pickle=trust_pickle,
    )
    lines = []
    for one in done:
        grids = ", ".join(f"{n}x{n}" for n in one.grids) or "full images alone"
        lines += [
            line(f"{one.model}: {one.task}, {one.docs:,} docs, {grids}"),
            *(f"- {line(note)}" for note in one.notes),
        ]
    written = dict.fromkeys(one.path for one in done)
    say(
        "\n".join(
            [*lines, "", *(f"written: {path}" for path in written), f"to see it: lmms-patch show {done[0].path.parent}"]
        )
    )
