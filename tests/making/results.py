"""Results of finished runs, made up, and entries of a report whose analysis says something else."""

from dataclasses import replace
from pathlib import Path

from lmms_patch.runs.run import Result, Run


def result(
    model,
    base,
    kind,
    grids=(),
    task="",
    metric="acc",
    type_="",
    date="2026-01-01",
    path="out/1_results.json",
    **details,
):
    described = {"base": base, "kind": kind, "grids": list(grids), "metric": metric, "options": {"type": type_}}
    return Result(Run(Path(path), model, date=date), task or f"{base}_{kind}", described, {}, "none", details)


def with_grid(entry, n, **changes):
    """An entry of a report with other numbers of a grid."""
    found = entry.whole.analysis
    return with_analysis(entry, grids={**found.grids, n: replace(found.grids[n], **changes)})


def with_analysis(entry, **changes):
    """An entry of a report whose analysis says something else."""
    return replace(entry, whole=replace(entry.whole, analysis=replace(entry.whole.analysis, **changes)))
