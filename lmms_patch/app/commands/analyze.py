"""``lmms-patch analyze``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from lmms_patch.app.commands.common import (
    Cells,
    JsonFile,
    Places,
    Wide,
    answer,
    examples,
    folded,
    paths,
    progress,
    told,
    width,
)
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.stats.bounds import LARGEST, check_bootstrap, is_number

if TYPE_CHECKING:
    from lmms_patch.rci.ensemble import Ensemble
    from lmms_patch.rci.pooling import Averaged, Pooled
    from lmms_patch.rci.recompute import Analyzed, Changes, TaskRun
    from lmms_patch.runs.run import Taken

    Floor: TypeAlias = float | str
# typer knows no unions
else:
    Floor = str


@dataclass(frozen=True)
class Recomputed:
    """Recomputed numbers.

    Attributes:
        runs: by run, its tasks.
        pooled: by run, the pooled indices of its groups.
        averaged: the tasks of all runs, averaged; empty with one run, and of an ensemble.
        ensembles: the tasks of all runs over their models; empty but for an ensemble.
        warnings: what to mind of the average, one line each.
        taken: by run, its results file, and how many others its folder holds.
    """

    runs: list[list[Analyzed]]
    pooled: list[list[Pooled]]
    averaged: list[Averaged] = field(default_factory=list)
    ensembles: list[Ensemble] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that ``lmms-patch analyze --json`` writes (schema ``analysis``)."""
        from lmms_patch.runs import numbers

        runs = [
            {"tasks": [a.to_json() for a in run], "groups": numbers.to_json(groups)}
            for run, groups in zip(self.runs, self.pooled, strict=True)
        ]
        average = {"average": numbers.to_json(self.averaged)} if self.averaged else {}
        ensemble = {"ensemble": numbers.to_json(self.ensembles)} if self.ensembles else {}
        return {
            "schema": 1,
            "runs": runs,
            **average,
            **ensemble,
            **({"warnings": list(self.warnings)} if self.warnings else {}),
        }


@examples(
    "# the numbers of the run once more, from its files",
    "lmms-patch analyze out",
    "# 90 % intervals, each category by itself, everything into a file",
    "lmms-patch analyze out --level 0.9 --by-category --json numbers.json",
    "# three runs of the same, averaged",
    "lmms-patch analyze out1 out2 out3",
    "# shards of one run (--offset, --limit), written as one that every command reads",
    "lmms-patch analyze out1 out2 out3 --join whole",
    "# runs of three models: the benchmark's index over models, and which docs all of them answer from one cell",
    "lmms-patch analyze --ensemble out1 out2 out3",
)
def analyze(
    folders: Annotated[
        Places,
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
    chance: Annotated[
        Floor | None,
        typer.Option(
            "--chance", metavar="FLOOR", help="A documented chance floor on the metric's own scale, or 'majority'."
        ),
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="Build the index on another metric of the task.")
    ] = None,
    by_category: Annotated[bool, typer.Option("--by-category", help="Also each category by itself.")] = False,
    ensemble: Annotated[
        bool, typer.Option("--ensemble", help="The runs are of different models: the index over models.")
    ] = False,
    join: Annotated[
        Path | None,
        typer.Option("--join", metavar="FOLDER", help="The runs are shards of one: write it into this folder."),
    ] = None,
) -> Recomputed:
    """Recompute a finished run's numbers, with other settings where given.

    Average several runs, or sum up several models.
    """
    from lmms_patch.rci import ensemble as models
    from lmms_patch.rci import pooling, recompute
    from lmms_patch.runs import shards
    from lmms_patch.runs.run import Taken

    changes = recompute.Changes(draws, level, delta, _floor(chance), metric)
    check_bootstrap(draws, level)
    _check_changes(changes)
    # All paths first: a wrong path must fail before the resampling, which takes long.
    taken = [recompute.one_run(folder) for folder in paths(folders)]
    if join is not None:
        taken = [Taken(shards.join([one.run for one in taken], join))]
    files = [one.path for one in taken]
    if ensemble and len(files) < 2:
        raise OptionError(
            "an ensemble is of at least two models: give a run of each, such as 'lmms-patch analyze --ensemble RUN1 RUN2 RUN3'"
        )
    if ensemble and by_category:
        raise OptionError("an ensemble is not split by category; leave out --by-category or --ensemble")
    warnings = _check_runs(files, ensemble) if len(files) > 1 else []
    loaded: list[list[TaskRun]] = [recompute.load(one.run) for one in taken]
    told(taken)
    runs = [
        [recompute.recompute(one, changes, "category" if by_category else "") for one in progress(run, str(path))]
        for path, run in zip(files, loaded, strict=True)
    ]
    pooled = [pooling.groups(run, changes) for run in runs]
    if ensemble:
        found = models.ensembles(dict(zip(_models(files), runs, strict=True)), changes)
        return Recomputed(runs, pooled, [], found, warnings, taken)
    return Recomputed(runs, pooled, pooling.average(runs, changes) if len(runs) > 1 else [], [], warnings, taken)


def display(recomputed: Recomputed, cells: Cells = False, json_file: JsonFile = None, wide: Wide = False) -> None:
    """Print what the runs say, and what was written."""

    def everything() -> str:
        magic = ((one.path, ", ".join(left)) for one in recomputed.taken if (left := _magic(one.path)))
        lines = (
            f"not recomputed, as MAGIC tasks have no index: {left}; type 'lmms-patch magic show {path}'"
            for path, left in magic
        )
        return "\n".join([text(recomputed, cells, width(wide)), *lines])

    answer(everything, recomputed.to_json, json_file)


def text(recomputed: Recomputed, cells: bool = False, most: int | None = None) -> str:
    """Lay out what each run says and its tables, and the average of several runs; of several models what they say together."""
    from lmms_patch.present.terminal import ensemble, rci

    warnings = folded(recomputed.warnings, most)
    if recomputed.ensembles:
        parts = [ensemble.block(one, most) for one in recomputed.ensembles]
    else:
        parts = [
            "\n\n".join(blocks(run, groups, cells, most))
            for run, groups in zip(recomputed.runs, recomputed.pooled, strict=True)
        ]
        parts += [rci.averaged_table(recomputed.averaged, recomputed.runs, most)] if recomputed.averaged else []
    return "\n\n".join(filter(None, [*parts, warnings]))


def _magic(file: Path) -> list[str]:
    """List the MAGIC tasks of a run."""
    from lmms_patch.runs.run import read

    return [result.task for result in read(file).results if result.kind.name == "magic"]


def _floor(given: Floor | None) -> Floor | None:
    """Return a number as a float; other texts unchanged, to be checked by their reader."""
    try:
        return None if given is None else float(given)
    except ValueError:
        return given


def blocks(run: Sequence[Analyzed], groups: Sequence[Pooled], cells: bool, most: int | None) -> list[str]:
    """Lay out a run's findings, tables, notes and warnings (see ``display``)."""
    from lmms_patch.present.findings import case, findings
    from lmms_patch.present.terminal import rci

    shown = rci.recomputed(run)
    found = folded((one.text for one in findings([case(a.result) for a in run])), most)
    out = [found, rci.table(shown, most), rci.chances(shown, most, floors=False)]
    out += [rci.cell_tables(shown)] if cells else []
    out += [rci.pooled_table(groups, most)] if groups else []
    out += [rci.category_table(one, most) for one in run if one.categories]
    return [*filter(None, out), folded([*(one.note for one in run if one.note), *rci.warnings(shown)], most)]


_OF_ADAPTERS = ("prompts", "generation", "system instruction")
"""Settings that tasks may choose for each adapter."""


def _models(paths: Sequence[Path]) -> list[str]:
    """Return the model name of each run, else its adapter, else its path."""
    from lmms_patch.runs import run as runs

    return [one.model or one.adapter or str(path) for path, one in zip(paths, map(runs.read, paths), strict=True)]


def _check_runs(paths: Sequence[Path], ensemble: bool) -> list[str]:
    """Check that runs asked the same docs in the same way, so that they can be averaged or form an ensemble.

    Runs to be averaged are of one model; only the model's arguments may differ, as a seed does. Runs of an ensemble are
    of as many models, and what tasks may choose for an adapter may differ.

    Returns:
        Warnings: what differs all the same, and what could not be checked.

    Raises:
        RecordError: one run twice, several models (of an ensemble: one model twice), or tasks that were asked
            otherwise.
    """
    from lmms_patch.compare import alike
    from lmms_patch.runs import run as runs

    read = [runs.read(path) for path in paths]
    models = {(run.model, run.adapter) for run in read if run.adapter}
    if ensemble:
        named = _models(paths)
        if twice := next((name for name in named if named.count(name) > 1), None):
            raise RecordError(
                f"two of these runs are of the model {twice}; give one run of each model, or leave out --ensemble to average them"
            )
    elif len(models) > 1:
        names = ", ".join(sorted(model for model, _ in models))
        raise RecordError(
            f"these are runs of {len(models)} models ({names}); only runs of one model are averaged: "
            "type 'lmms-patch analyze --ensemble ...' for the index over models, or 'lmms-patch compare A B'"
        )
    warnings: dict[str, None] = {}
    first = {(result.task, result.filter): result for result in read[0].results}
    seen: dict[str, Path] = {}
    for path, run in zip(paths, read, strict=True):
        for result in run.results:
            # Copies of a results file in two folders would count as two runs and shrink the spread.
            if (origin := result.origin) in seen:
                raise RecordError(
                    f"{seen[origin]} and {path} are one run, not two: {result.task} has the same date, model and numbers; give each once"
                )
            seen[origin] = path
            if run is read[0] or (result.task, result.filter) not in first:
                continue
            prints = [first[result.task, result.filter].fingerprint, result.fingerprint]
            # a new version of lmms-eval need not have changed these tasks, so it is told and not refused
            told = ["lmms-eval version", *(_OF_ADAPTERS if ensemble else ())]
            apart = alike.apart(prints[0], prints[1], told)
            if apart:
                what = "an ensemble is of runs" if ensemble else "average only runs"
                raise RecordError(
                    f"{result.task}: {paths[0]} and {path} differ in {', '.join(apart)}; {what} that were asked alike"
                )
            version = alike.apart({key: prints[0].get(key) for key in told}, prints[1])
            said = [*(f"the runs differ in {one}" for one in version), runs.not_compared(*prints)]
            warnings |= {f"{result.task}: {line}": None for line in said if line}
    return list(warnings)


def _check_changes(changes: Changes) -> None:
    """Refuse settings of ``analyze`` that are out of range."""
    chance = changes.chance
    if chance is not None and chance != "majority" and not is_number(chance):
        raise OptionError(
            f"chance must be a number on the metric's own scale, at most ±{LARGEST:g}, or 'majority', not {chance!r}"
        )
    if changes.delta is not None and not is_number(changes.delta):
        raise OptionError(
            f"delta must be a number on the metric's own scale, at most ±{LARGEST:g}, not {changes.delta}"
        )
