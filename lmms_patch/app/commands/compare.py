"""``lmms-patch compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import JsonFile, Place, Wide, answer, examples, folded, progress, width

if TYPE_CHECKING:
    from lmms_patch.compare.formats import Comparison


@examples(
    "# two models on the same tasks, each in a folder of its own",
    "lmms-patch compare out/model_a out/model_b",
    "# only tasks of GQA, everything into a file",
    "lmms-patch compare out/model_a out/model_b --task 'gqa*' --json compare.json",
    "# two runs of one folder: give their files",
    "lmms-patch compare out/m/20260101_120000_results.json out/m/20260201_120000_results.json",
)
def compare(
    first: Annotated[
        Place,
        typer.Argument(
            metavar="A", help="The --output_path of a run, a folder of runs of one model, or one *_results.json."
        ),
    ],
    second: Annotated[Place, typer.Argument(metavar="B", help="The other; differences are B less A.")],
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="GLOB", help="Only tasks, or base tasks, of this name; * and ? are wildcards."),
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Coverage of the intervals, from 0.5 to below 1.")] = 0.95,
    draws: Annotated[
        int,
        typer.Option(
            "--draws",
            metavar="N",
            help="Bootstrap draws, 200 to 100,000; 0: 10,000, and 2,000 for more than 20,000 docs.",
        ),
    ] = 0,
) -> Comparison:
    """Compare two models, or two versions, on the same docs: which is better, and is that more than noise?"""
    from lmms_patch.compare import tasks

    return tasks.compare(first, second, task=task, level=level, draws=draws, watch=progress)


def display(compared: Comparison, first: Path, second: Path, json_file: JsonFile = None, wide: Wide = False) -> None:
    """Print the comparison, and what each side shows by itself."""
    from lmms_patch.present.terminal import compare
    from lmms_patch.runs.numbers import to_json

    def text() -> str:
        shows = [] if compared.same_run else _shows(compared, (first, second), width(wide))
        return "\n".join([compare.text(compared, wide=wide, most=width(wide)), *shows])

    answer(text, lambda: to_json(compared), json_file)


def _shows(compared: Comparison, places: Sequence[Path], most: int | None) -> list[str]:
    """Lay out the findings of both sides, limited to the compared tasks."""
    from lmms_patch.present.findings import case, findings
    from lmms_patch.runs.run import find, newest

    out = []
    names = (
        ("A", compared.first, {one.first for one in compared.tasks}),
        ("B", compared.second, {one.second for one in compared.tasks}),
    )
    for (name, side, tasks), place in zip(names, places, strict=True):
        results = [one for one in newest(one for run in find([place]) for one in run.results)[0] if one.label in tasks]
        out += [
            f"\n{name} by itself:",
            folded((one.text for one in findings([case(result, side.model) for result in results])), most),
        ]
    return out
