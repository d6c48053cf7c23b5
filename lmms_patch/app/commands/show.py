"""``lmms-patch show``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmms_patch.app.commands.common import Cells, JsonFile, Place, Wide, answer, examples, folded, tell, told, width

if TYPE_CHECKING:
    from lmms_patch.present.findings import Finding
    from lmms_patch.rci.recompute import Analyzed
    from lmms_patch.runs.run import Labelled, Result, Taken


@dataclass(frozen=True)
class Run:
    """The wrapped tasks of a finished run, with the numbers of the run.

    Attributes:
        taken: its results file, and how many others the folder holds.
        shown: tasks that show the image in some way, as the table has them.
        tested: text-only cross-validations; ``tst`` has their numbers.
        magic: MAGIC tasks; ``magic_show`` has more of them.
        findings: what to know first, at most six sentences (``present.findings``).
        parts: of tasks with categories, where asked for, their numbers by category.
    """

    taken: Taken
    shown: list[Labelled]
    tested: list[Result]
    magic: list[Result] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    parts: list[Analyzed] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """The results file."""
        return self.taken.path

    def to_json(self) -> dict[str, Any]:
        """Return the findings and every number of the run as ``--json`` writes them."""
        from lmms_patch.present.terminal import rci

        return rci.to_json(self.taken.run, self.findings, self.parts)

    def _repr_html_(self) -> str:
        """Return the findings, and the score and indices of each task, as HTML for a notebook."""
        from lmms_patch.runs import reading
        from lmms_patch.runs.catalogue import indices
        from lmms_patch.text import html_list, html_table

        rows = [
            [result.label, name, reading.text(one, "{:.3f}".format)]
            for result in self.taken.run.results
            for name, one in result.measures.items()
            if one.value is not None and (name == "score" or name in indices())
        ]
        return html_list(one.text for one in self.findings) + html_table(["task", "number", "value"], rows)


@examples(
    "# after lmms-eval --tasks gqa_rci3 --output_path out ...",
    "lmms-patch show out",
    "# all columns in one table",
    "lmms-patch show out --wide",
    "# also where in the image the score comes from, and what an uninformed answer scores",
    "lmms-patch show out --cells --chance",
    "# what docs need, score and index of each category, or by a field of the docs",
    "lmms-patch show out --by-category",
    "lmms-patch show out --by doc.source",
)
def show(
    folder: Annotated[
        Place, typer.Argument(metavar="OUT", help="The --output_path of the run, or one *_results.json.")
    ],
    by_category: Annotated[bool, typer.Option("--by-category", help="Also each category by itself.")] = False,
    by: Annotated[
        str,
        typer.Option("--by", metavar="COLUMN", help="Also by the values of a column of the samples table: doc.source."),
    ] = "",
) -> Run:
    """Say what a finished run found, and show its table."""
    from lmms_patch.errors import RecordError
    from lmms_patch.present import findings
    from lmms_patch.present.terminal import rci
    from lmms_patch.runs.run import newest_of

    taken = newest_of(Path(folder))
    results = taken.run.results
    shown = rci.load(taken.run)
    tested = [result for result in results if result.tst]
    magic = [result for result in results if result.magic]
    # Cross-validations and MAGIC tasks without scores are in none of these lists: say so, and show no empty table.
    if not shown and not tested and not magic:
        raise RecordError(f"{taken.path}: nothing of {', '.join(result.task for result in results)} was scored")
    told([taken])
    found = findings.findings([findings.case(result) for result in results])
    column = by or "category" * by_category
    return Run(taken, shown, tested, magic, found, _by(column, [one.result for one in shown]) if column else [])


def _by(column: str, results: Sequence[Result]) -> list[Analyzed]:
    """Return the numbers of tasks by the values of a column, and say why others have none."""
    from lmms_patch.rci.recompute import Analyzed, TaskRun, by_category, is_analyzed

    parts = [(run, *by_category(run, column)) for run in map(TaskRun, results) if is_analyzed(run.result.kind)]
    for run, found, why in parts:
        if why or not found:
            tell(f"{run.name}: {why or 'no categories'}")
    return [Analyzed(run, None, {}, found) for run, found, _ in parts if found]


def display(
    run: Run,
    cells: Cells = False,
    causes: Annotated[
        bool,
        typer.Option(
            "--causes", help="For text-only cross-validations: which features, and what questions, give answers away."
        ),
    ] = False,
    chance: Annotated[
        bool, typer.Option("--chance", help="Also every chance floor, and what the gate asked for.")
    ] = False,
    json_file: JsonFile = None,
    wide: Wide = False,
) -> None:
    """Print a run's findings and tables."""
    answer(lambda: text(run, cells=cells, causes=causes, chance=chance, most=width(wide)), run.to_json, json_file)


def text(run: Run, *, cells: bool = False, causes: bool = False, chance: bool = False, most: int | None = None) -> str:
    """Lay out a run's findings and tables, a table for each kind of task, in lines of at most ``most`` characters."""
    from lmms_patch.present.terminal import rci

    parts = [folded((one.text for one in run.findings), most)]
    if run.shown:
        parts += [
            rci.table(run.shown, most),
            *([rci.chances(run.shown, most)] if chance else []),
            *([rci.cell_tables(run.shown)] if cells else []),
            *(rci.category_table(one, most) for one in run.parts),
        ]
        parts.append(folded(rci.warnings(run.shown), most))
    if run.tested:
        from lmms_patch.present.terminal import tst

        parts += tst.blocks(run.tested, causes, most)
    if run.magic:
        from lmms_patch.present.terminal import magic

        parts += [magic.table(run.magic, most), folded(magic.minds(run.magic), most)]
    if run.magic:
        parts.append(f"what other boxes cost or give, with intervals: lmms-patch magic show {run.path}")
    return "\n\n".join(filter(None, parts))
