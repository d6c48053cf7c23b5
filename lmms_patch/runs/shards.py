"""Shards of a benchmark, asked on several machines with ``--offset`` and ``--limit``, as one run: their tables one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from msgspec import structs

from lmms_patch.ask.references import digest
from lmms_patch.errors import RecordError
from lmms_patch.runs import samples
from lmms_patch.runs.details import Made, Of
from lmms_patch.runs.run import Result, Run, differences, read

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
    for shards in zip(*(run.results for run in ordered), strict=True):
        # the filters of a task share a table
        if not shards[0].place:
            _join(shards, samples.path_of(folder / first.path.name, shards[0].task))
    return read(folder / first.path.name)


def _join(shards: Sequence[Result], path: Path) -> None:
    """Write the tables of a task's shards as a single table."""
    frame = pl.concat([samples.frame_of(one.path) for one in shards if one.path], how="diagonal_relaxed")
    if frame["doc_id"].n_unique() < sum(one.docs for one in shards):
        raise RecordError(f"{path.name}: a doc is in two shards; give each --offset and --limit docs of its own")
    about = shards[0].about
    host, made = about.host, about.made
    # the last shard may be given a limit that goes beyond the benchmark
    docs = sum(
        min(one.about.host.effective or one.docs, (one.about.host.original or one.docs) - one.about.host.offset)
        for one in shards
    )
    whole = docs == (host.original or 0) - host.offset
    told = structs.replace(
        about,
        host=structs.replace(host, limit=None if whole else float(docs), effective=docs),
        # digests of docs and images were made of each shard alone, as was what only the run could compute
        made=Made(made.lmms_patch, made.lmms_eval, made.all_docs),
        native={name: Of(of.form) for name, of in about.native.items()},
        probe=next((one.about.probe for one in shards if one.about.probe.failed), about.probe),
        run=digest([one.about.run for one in shards]),
    )
    samples.write(path, frame, told)
