"""Results of finished runs, made up, and entries of a report whose analysis says something else."""

from dataclasses import replace
from pathlib import Path

from lmms_patch.runs.details import About, Computed, MagicNumbers, Model, Of, TstDetails
from lmms_patch.runs.numbers import Analysis
from lmms_patch.runs.run import Run
from lmms_patch.runs.typed import convert


def result(model, base, kind, grids=(), task="", metric="acc", type_="", date="2026-01-01",
           path="out/1_results.json", values=None, docs=0, **details):  # fmt: skip
    """A result with the numbers that a test names, in plain JSON types under ``analysis``, ``tst_details``, ``magic``."""
    asked = {"base": base, "kind": kind, "grids": list(grids), "metric": metric, "options": {"type": type_}}
    higher = details.pop("higher_is_better", {metric: True})
    about = About(
        schema=1,
        task=task or f"{base}_{kind}",
        asked=asked,
        metrics={metric: True, **higher},
        model=Model(model, date=date),
        native={"none": Of(values=values or {})},
        rows=docs,
        docs=docs,
        columns=[],
    )
    own = {"analysis": _of(Analysis), "tst_details": _of(TstDetails), "magic": _of(MagicNumbers)}
    known = {name: make(details[name]) for name, make in own.items() if details.get(name)}
    found = Computed(known.get("analysis"), known.get("tst_details"), known.get("magic"))
    return replace(Run(Path(path), ((about, None),)).results[0], given=found)


def _of(kind):
    return lambda value: value if isinstance(value, kind) else convert(value, kind)


def cross_validated(accuracy, above, majority, chance, **more):
    """The numbers of a text-only cross-validation by source, in plain JSON types, from two estimates."""
    head = {"accuracy": accuracy, "above": above, "majority": majority, "sd": 0.01, "seeds": 3, "p": 0.001}
    known = {"diagnostic": "rf", "headline": "source", "folds": 5, "by_grouping": {"source": head}, "chance": chance}
    return known | dict.fromkeys(("leakage", "zero_shot", "delta", "s")) | more


def with_grid(entry, n, **changes):
    """An entry of a report with other numbers of a grid."""
    found = entry.whole.analysis
    return with_analysis(entry, grids={**found.grids, n: replace(found.grids[n], **changes)})


def with_analysis(entry, **changes):
    """An entry of a report whose analysis says something else."""
    return replace(entry, whole=replace(entry.whole, analysis=replace(entry.whole.analysis, **changes)))
