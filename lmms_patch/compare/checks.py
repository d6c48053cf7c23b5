"""Two results before they are compared doc by doc: read, checked, and told apart in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from lmms_patch.ask.spec import REGIONS, Key
from lmms_patch.errors import RecordError
from lmms_patch.rci.recompute import TaskRun
from lmms_patch.runs.logs import read_samples
from lmms_patch.runs.record import Record, View
from lmms_patch.runs.results import TaskResult
from lmms_patch.runs.run import Run
from lmms_patch.runs.tables import Table
from lmms_patch.stats import forms
from lmms_patch.stats.forms import Form

_DIGESTS = ("docs", "prompts", "image sizes", "images", "generation", "views", "boxes shown", "statistics", "system instruction")


def load(run: Run, result: TaskResult, *, lent: bool = True) -> TaskRun:
    """A result with its records.

    Args:
        run: the run.
        result: one of its results.
        lent: with the answers lent to other docs, which only the index with luck removed needs; else only whether they are the same can be told.

    Raises:
        RecordError: its sample log is missing, cut, of another benchmark, or of another run.
    """
    log = run.log(result)
    if log is None:
        raise RecordError(f"{run.path}: no sample log of {result.task} beside it; run with --log_samples")
    records, hashes, base = [], {}, result.described["base"]
    for record in read_samples(log, result.place, lean=True):
        if record.base != base:
            raise RecordError(f"{log}: records of {record.base}, but {result.task} asks {base}; the file is of another run")
        if not lent:
            hashes[record.doc_id], record.lent = hash(repr(record.lent)), None
        records.append(record)
    if len(records) != result.docs:
        raise RecordError(f"{log}: {len(records)} docs, but the run scored {result.docs}; the file is not whole, or of another run")
    return TaskRun(result, records, lent=hashes)


def check_result(run: Run, result: TaskResult) -> None:
    """Whether a result is described in the types that docs/records.md gives.

    Raises:
        RecordError: it is not.
    """
    described, details = result.described, result.details
    analysis = details.get("analysis") or {}
    inner = analysis.get("gate") if isinstance(analysis, dict) else None
    objects = [described["options"], analysis, inner or {}, *(details.get(key, {}) for key in ("made", "settings", "higher_is_better"))]
    grids = described["grids"]
    if not isinstance(grids, list) or not all(isinstance(n, int) for n in grids) or not all(isinstance(one, dict) for one in objects):
        raise RecordError(f"{run.path}: {result.task} is not described as a run writes it; the file was changed or written by another program")


# --- docs -----------------------------------------------------------------------------------------


def of_docs(table: Table, ids: Sequence[int]) -> Table:
    """The docs of these ids, in this order."""
    records = [table.records[table.place[doc_id]] for doc_id in ids]
    return Table(records, table.metric, higher=table.higher, cluster=table.cluster, whole=table.whole)


def tst_score(record: Record) -> float:
    """As ``tst.results``: nan where a fold seed has no score."""
    scores = [] if record.tst is None else record.tst.scores[record.tst.grouping]
    return math.nan if not scores or None in scores else float(np.mean([score for score in scores if score is not None]))


def sources(table: Table) -> list[Hashable] | None:
    """What a doc of a text-only cross-validation is drawn with, as ``tst.results``: its source, else its cluster."""
    found = []
    for record in table.records:
        source = None if record.tst is None else record.tst.source
        found.append(source if source is not None else record.fields.get("cluster"))
    return None if all(one is None for one in found) else [f"doc {i}" if one is None else repr(one) for i, one in enumerate(found)]


def view_scores(record: Record) -> list[Any]:
    """The scores of each view."""
    return [view.scores for view in record.views]


def view_sets(record: Record) -> dict[str, list[View]]:
    """Return the views of a doc by the set that they are of: "" for the first view, a grid, or one of ``REGIONS``."""
    out: dict[str, list[View]] = {"": record.views[:1]}
    for view in record.views[1:]:
        out.setdefault(str(view.n or REGIONS[0 if view.relevant else 1]), []).append(view)
    return out


def failed(record: Record, n: int) -> bool:
    """Whether a cell of a grid could not be scored."""
    return any(view.error is not None for view in record.views if view.n == n)


class Sums:
    """The aggregation of some docs, as its form gives it (``draws.Native``)."""

    no_calls = "the native aggregation can only be called in the run"

    def __init__(self, table: Table, form: Form) -> None:
        self._table, self._form, self.form = table, form, form.name

    def whole(self) -> float | None:
        """Over these docs; None where it is not defined."""
        value = forms.value_of(self._form, self._table.picked(self._table.full))
        return value if math.isfinite(value) else None

    def over_cells(self, key: Key) -> tuple[float | None, float | None, str]:
        """Not asked: it is handed on without grids."""
        raise NotImplementedError

    def aggregate(self, items: list[Any]) -> float | None:
        """None: there is no code to call."""
        return None


# --- what is refused ------------------------------------------------------------------------------


def check_golds(first: TaskRun, second: TaskRun, common: set[int]) -> None:
    """Whether the docs are the same in both; they are joined by their numbers."""
    golds = {record.doc_id: record.answer.gold for record in first.records}
    for record in second.records:
        ours, theirs = golds.get(record.doc_id), record.answer.gold
        if record.doc_id in common and ours is not None and theirs is not None and ours != theirs:
            raise RecordError(
                f"{second.result.task}: doc {record.doc_id} has the gold {ours!r} in the first run and {theirs!r} in the second: "
                "the benchmark has changed"
            )


def check_digest(task: str, prints: Sequence[Mapping[str, Any]], results: Sequence[TaskResult], others: bool) -> None:
    """Whether all golds are the same, also those of docs with several, where one version made both digests."""
    docs = [one["docs"] for one in prints]
    made = [(result.details.get("made") or {}).get("lmms_patch") for result in results]
    if not others and None not in docs and docs[0] != docs[1] and made[0] == made[1]:
        raise RecordError(f"{task}: the same docs have other golds in the two runs: the benchmark has changed")


# --- words ----------------------------------------------------------------------------------------


def in_words(apart: Sequence[str]) -> list[str]:
    """The differences of two fingerprints, without digests that nobody can read."""
    return [key if key in _DIGESTS else one for one in apart for key in [one.partition(" (")[0]]]


def options_apart(key: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """Where the statistics differ, by which options."""
    if key != "statistics":
        return key
    names = [name for name, value in ours["options"].items() if theirs["options"].get(name) != value]
    return f"statistics (option {', '.join(names)})" if names else key
