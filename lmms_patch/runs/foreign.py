"""Results of another harness as the samples table of a run (docs/tables.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from lmms_patch.errors import OptionError
from lmms_patch.runs import samples
from lmms_patch.runs.details import About, Model, Of, Settings
from lmms_patch.runs.schema import FIELD, LISTS, OTHER_METRIC, TYPES

NAMED = ("category", "cluster", "group", "stratum")
"""Columns that a task's options name a field for; here they have their own names."""


def write_samples(
    frame: pl.DataFrame,
    folder: str | Path,
    *,
    task: str,
    base: str,
    model: str,
    kind: str = "rci",
    grids: Sequence[int] = (3,),
    metric: str = "acc",
    higher: bool = True,
    settings: Mapping[str, Any] = {},
) -> Path:
    """Write results as the samples table of a run finished now, and return its path.

    What follows from other columns is filled in where the frame lacks it: ``view``, ``row`` and ``col`` of cells,
    ``best``, ``choices`` of ``options``, ``label``.

    Args:
        frame: columns of ``schema.COLUMNS``, ``score.<metric>`` and ``doc.<name>``; ``doc_id``, ``kind``, ``score`` at least.
        folder: of the run.
        task: the name of the wrapped task, such as ``mmbench_rci3``.
        base: the benchmark.
        model: its name.
        kind: of the task (docs/names.md).
        grids: the grid sizes.
        metric: what ``score`` is by; the numbers are means over docs.
        higher: whether a higher score is better.
        settings: of the statistics: ``chance``, a number or ``"majority"``, and ``scale``, the full marks.

    Raises:
        OptionError: a column is unknown, missing or of another type.
    """
    named = [name for name in frame.columns if not name.startswith((OTHER_METRIC, FIELD))]
    if unknown := [name for name in named if name not in TYPES]:
        raise OptionError(f"no columns {unknown}; allowed: those of docs/tables.md, score.<metric>, doc.<name>")
    try:
        frame = filled(frame.cast({name: TYPES[name] for name in named}), higher)
    except pl.exceptions.PolarsError as error:
        raise OptionError(f"samples of {task}: {str(error).splitlines()[0]}") from None
    date = datetime.now().strftime("%Y%m%d_%H%M%S_%f")
    options = {name: name for name in NAMED if name in named}
    about = About(
        schema=1,
        task=task,
        asked={"base": base, "kind": kind, "grids": [*grids], "metric": metric, "options": options},
        metrics={metric: higher},
        native={"none": Of("mean")},
        settings=Settings(**settings),
        model=Model(model, date=date),
        run=f"{model} {date}",
        rows=0,
        docs=0,
        columns=[],
    )
    path = samples.path_of(Path(folder) / f"{date}_results.json", task)
    samples.write(path, frame, about)
    return path


def filled(frame: pl.DataFrame, higher: bool = True) -> pl.DataFrame:
    """Return rows of docs in the order of their views, with the columns implied by the rest (``write_samples``)."""
    absent = [pl.lit(None, kind).alias(name) for name, kind in TYPES.items() if name not in frame.columns]
    frame = frame.with_columns(absent).sort("doc_id", "swapped", pl.col("kind") != "full", "n", "cell")
    cell, n, score = pl.col("cell"), pl.col("n"), pl.col("score") if higher else -pl.col("score")
    rivals, places = ("doc_id", "swapped", "kind", "n"), pl.int_range(pl.len(), dtype=pl.Int32)
    wins = (places.over(rivals) == score.arg_max().over(rivals)) & score.is_not_null().all().over(rivals)
    choices = pl.coalesce("choices", pl.col("options").list.len().max().over("doc_id").cast(pl.Int32), 0)
    frame = frame.with_columns(
        choices,
        pl.coalesce("view", places.over("doc_id")),
        pl.coalesce("row", (cell - 1) // n),
        pl.coalesce("col", (cell - 1) % n),
        pl.coalesce("best", pl.when(wins, cell.is_not_null(), pl.col("swapped").is_null()).then(True)),
        pl.coalesce("label", pl.when(choices > 0).then(pl.format("mc{}", choices)).otherwise(pl.lit("open"))),
    )
    return frame.with_columns(pl.when(view=0).then(pl.col(LISTS)))
