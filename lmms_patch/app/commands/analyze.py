"""``lmms-patch analyze``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import Cells, Quiet, Wide, examples, folded, progress, say, told, width

if TYPE_CHECKING:
    from lmms_patch.rci.pooling import Pooled
    from lmms_patch.rci.recompute import Analyzed


@examples(
    "# the numbers of the run once more, from its files",
    "lmms-patch analyze out",
    "# 90 % intervals, each category by itself, everything into a file",
    "lmms-patch analyze out --level 0.9 --by-category --json numbers.json",
    "# three runs of the same, averaged",
    "lmms-patch analyze out1 out2 out3",
    "# runs of three models: the benchmark's index over models, and which docs all of them answer from one cell",
    "lmms-patch analyze --ensemble out1 out2 out3",
)
def command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="OUT",
            help="The --output_path of a run (of several the newest with an index), or one *_results.json; several: averaged, or --ensemble.",
        ),
    ],
    draws: Annotated[
        int | None,
        typer.Option("--draws", metavar="B", help="Bootstrap draws, 200 to 100,000; as the run if left out."),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option("--level", help="Coverage of the intervals, from 0.5 to below 1; as the run if left out."),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="The gate's margin on the metric's own scale; as in the run if left out."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the bootstrap; as the run if left out.")] = None,
    chance: Annotated[
        str | None,
        typer.Option(
            "--chance", metavar="FLOOR", help="A documented chance floor on the metric's own scale, or 'majority'."
        ),
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="Build the index on another metric of the task.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", metavar="FIELD", help="The field that names clusters, or 'none' for independent docs."
        ),
    ] = None,
    category: Annotated[str | None, typer.Option("--category", help="Only docs of this category.")] = None,
    by_category: Annotated[bool, typer.Option("--by-category", help="Also each category by itself.")] = False,
    ensemble: Annotated[
        bool, typer.Option("--ensemble", help="The runs are of different models: the index over models.")
    ] = False,
    cells: Cells = False,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all numbers as JSON.")] = None,
    wide: Wide = False,
    quiet: Quiet = False,
) -> None:
    """Recompute a finished run's numbers, with other settings where given.

    Average several runs, or sum up several models.
    """
    from lmms_patch.app.commands.outputs import write
    from lmms_patch.rci.recompute import Changes

    changes = Changes(draws, level, delta, seed, _floor(chance), metric, cluster, category)
    recomputed = api.analyze(
        folders,
        changes,
        by_category=by_category,
        ensemble=ensemble,
        watch=lambda runs, label: progress(runs, label, quiet),
    )
    told(recomputed.taken)
    written = write(recomputed.to_json, json_file)
    say(text(recomputed, cells, width(wide), of_category=category is not None))
    for one in recomputed.taken:
        if left := _magic(one.path):
            say(
                f"not recomputed, as MAGIC tasks have no index: {', '.join(left)}; type 'lmms-patch magic show {one.path}'"
            )
    for line in written:
        say(line)


def _magic(file: Path) -> list[str]:
    """List the MAGIC tasks of a run."""
    from lmms_patch.runs.run import read

    return [result.task for result in read(file).results if result.kind.name == "magic"]


def _floor(text: str | None) -> float | str | None:
    """Return a number as a float; other texts unchanged, to be checked by their reader."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def text(recomputed: api.Recomputed, cells: bool = False, most: int | None = None, *, of_category: bool = False) -> str:
    """Lay out what each run says and its tables, and the average of several runs.

    Args:
        recomputed: the runs; of several models what they say together; 'lmms-patch show' has each.
        cells: also where in the image the score comes from.
        most: characters in a line; None: any.
        of_category: whether the numbers are of one category of the docs.
    """
    from lmms_patch.present.terminal import ensemble, rci

    if recomputed.ensembles:
        return "\n\n".join(
            [
                *(ensemble.block(one, most) for one in recomputed.ensembles),
                *filter(None, [folded(recomputed.warnings, most)]),
            ]
        )
    parts = [
        "\n\n".join(blocks(run, groups, cells, most, of_category))
        for run, groups in zip(recomputed.runs, recomputed.pooled, strict=True)
    ]
    parts += [rci.averaged_table(recomputed.averaged, recomputed.runs, most)] if recomputed.averaged else []
    return "\n\n".join(filter(None, [*parts, folded(recomputed.warnings, most)]))


def blocks(
    run: Sequence[Analyzed], groups: Sequence[Pooled], cells: bool, most: int | None, of_category: bool
) -> list[str]:
    """Lay out a run's findings, tables, notes and warnings (see ``text``)."""
    from lmms_patch.present.findings import case, findings
    from lmms_patch.present.terminal import necessity, rci

    shown = rci.recomputed(run)
    cases = [case(a.result) for a in run]
    # The size of the benchmark says nothing about the size of a category.
    if of_category:
        cases = [dataclasses.replace(one, size=None) for one in cases]
    out = [folded((one.text for one in findings(cases)), most), rci.table(shown, most), rci.gates(shown, most)]
    out.append(necessity.table(shown, most))
    out += [rci.cell_tables(shown)] if cells else []
    out += [rci.pooled_table(groups, most)] if groups else []
    out += [rci.category_table(one, most) for one in run if one.categories]
    return [*filter(None, out), folded([*(one.note for one in run if one.note), *rci.warnings(shown)], most)]
