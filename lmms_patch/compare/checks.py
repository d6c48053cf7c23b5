"""Two results before they are compared doc by doc: read, checked, and told apart in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import BESIDE, REGIONS
from lmms_patch.errors import RecordError
from lmms_patch.rci.recompute import TaskRun
from lmms_patch.runs.groups import drawn_with
from lmms_patch.runs.record import Record, View
from lmms_patch.runs.run import Result
from lmms_patch.runs.tables import Table

_DIGESTS = (
    "docs",
    "prompts",
    "image sizes",
    "images",
    "generation",
    "views",
    "boxes shown",
    "statistics",
    "system instruction",
)


def load(result: Result) -> TaskRun:
    """Return a result with its records.

    Raises:
        RecordError: its sample log is missing, cut, of another benchmark, or of another run.
    """
    return TaskRun(result, list(result.records()))


# --- docs -----------------------------------------------------------------------------------------


def tst_score(record: Record) -> float:
    """Return a doc's text-only score, the mean over fold seeds (as ``tst.results``).

    Nan where a fold seed has no score.
    """
    scores = [] if record.tst is None else record.tst.scores[record.tst.grouping]
    return (
        math.nan if not scores or None in scores else float(np.mean([score for score in scores if score is not None]))
    )


def sources(table: Table) -> list[Hashable] | None:
    """Return what each doc of a text-only cross-validation is drawn with (as ``tst.results``)."""
    return drawn_with([record.tested_with for record in table.records])


def view_sets(record: Record) -> dict[str, list[View]]:
    """Return the views of a doc by set: a grid, one of ``REGIONS``, ``BESIDE``, or "" for the first view."""
    sets: dict[str, list[View]] = {"": record.views[:1]}
    for view in record.views[1:]:
        of_boxes = BESIDE if view.relevant is None else REGIONS[0 if view.relevant else 1]
        key = "" if view.kind == "full" else str(view.n or of_boxes)
        sets.setdefault(key, []).append(view)
    return sets


def failed(record: Record, n: int) -> bool:
    """Return whether a cell of a grid could not be scored."""
    return any(view.error is not None for view in record.views if view.n == n)


# --- what is refused ------------------------------------------------------------------------------


def check_golds(first: TaskRun, second: TaskRun, common: set[int]) -> None:
    """Check the docs for equal golds in both runs, as docs are joined by number alone."""
    golds = {record.doc_id: record.answer.gold for record in first.records}
    for record in second.records:
        ours, theirs = golds.get(record.doc_id), record.answer.gold
        if record.doc_id in common and ours is not None and theirs is not None and ours != theirs:
            raise RecordError(
                f"{second.result.task}: doc {record.doc_id} has the gold {ours!r} in the first run and {theirs!r} in the second: "
                "the benchmark has changed"
            )


def check_digest(task: str, prints: Sequence[Mapping[str, Any]], results: Sequence[Result]) -> None:
    """Compare the runs' digests of all golds, where the same version of lmms-patch made both digests."""
    docs, made = [one["docs"] for one in prints], [result.made.lmms_patch for result in results]
    if None not in docs and docs[0] != docs[1] and made[0] == made[1]:
        raise RecordError(f"{task}: the same docs have other golds in the two runs: the benchmark has changed")


# --- words ----------------------------------------------------------------------------------------


def in_words(apart: Sequence[str]) -> list[str]:
    """Return the differences of two fingerprints without digests, which nobody can read."""
    return [key if key in _DIGESTS else one for one in apart for key in [one.partition(" (")[0]]]


def options_apart(key: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """Return the name of a differing setting; for the statistics, also the differing options."""
    if key != "statistics":
        return key
    names = [name for name, value in ours["options"].items() if theirs["options"].get(name) != value]
    return f"statistics (option {', '.join(names)})" if names else key
