"""Shards of a benchmark, asked on several machines with ``--offset`` and ``--limit``, as one run: their tables one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from msgspec import structs

from lmms_patch.ask.references import digest
from lmms_patch.errors import RecordError
from lmms_patch.runs import samples
from lmms_patch.runs.details import About, Of
from lmms_patch.runs.run import Run, differences, read

_OF_A_SHARD = ("docs", "number of docs", "prompts", "limit", "image sizes", "images")
"""In what the fingerprints of shards may differ."""


def join(runs: Sequence[Run], folder: Path) -> Run:
    """Write shards as a single run into a folder, and return the run.

    Args:
        runs: the shards, in any order.
        folder: where the tables are written; made where it does not exist.

    Raises:
        RecordError: these are no shards of one run: other tasks, other settings, or a doc in two of them.
    """
    ordered = sorted(runs, key=lambda run: run.about.host.offset)
    first = ordered[0]
    for run in ordered[1:]:
        if [one.label for one in run.results] != [one.label for one in first.results]:
            raise RecordError(f"{run.path}: its tasks are not those of {first.path}, so these are no shards of one run")
        for ours, theirs in zip(first.results, run.results, strict=True):
            told = differences(ours.fingerprint, theirs.fingerprint, _OF_A_SHARD)
            if told or ours.run.identity != theirs.run.identity:
                what = ", ".join(told) or "model"
                raise RecordError(f"{run.path}: {ours.task} was asked otherwise than in {first.path} ({what})")
    for of_task in zip(*(run.tables for run in ordered), strict=True):
        _join(of_task, folder / samples.path_of(first.path, of_task[0][0].task).name)
    return read(folder / first.path.name)


def _join(shards: Sequence[tuple[About, Path | None]], path: Path) -> None:
    """Write the tables of a task's shards as a single table."""
    abouts = [about for about, _ in shards]
    frame = pl.concat([samples.frame_of(table) for _, table in shards if table is not None], how="diagonal_relaxed")
    names = [name for name in ("filter", "doc_id", "view") if frame[name].count()]
    if frame.select(pl.struct(names).is_duplicated().any()).item():
        raise RecordError(f"{path.name}: a doc is in two shards; give each --offset and --limit docs of its own")
    host, made = abouts[0].host, abouts[0].made
    # the last shard may be given a limit that goes beyond the benchmark
    asked = sum(
        min(about.host.effective or about.docs, (host.original or about.docs) - about.host.offset) for about in abouts
    )
    whole = asked == (host.original or 0) - host.offset
    about = structs.replace(
        abouts[0],
        host=structs.replace(host, limit=None if whole else float(asked), effective=asked),
        made=structs.replace(
            made,
            kept=sum(about.made.kept or 0 for about in abouts) or None,
            **{name: digest([getattr(about.made, name) for about in abouts]) for name in ("docs", "prompts")},
            image_sizes=None,
            images=None,
        ),
        # what only the run could compute was computed of each shard alone
        native={name: Of(of.form) for name, of in abouts[0].native.items()},
        probe=next((about.probe for about in abouts if about.probe.failed), abouts[0].probe),
        run=digest([about.run for about in abouts]),
    )
    samples.write(path, frame, about)
