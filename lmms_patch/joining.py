"""Two results before they are compared doc by doc: read, checked, and told apart in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from lmms_patch.errors import RecordError
from lmms_patch.recompute import TaskRun, fip_of
from lmms_patch.records import TaskResult, read_samples
from lmms_patch.runs import Run
from lmms_patch.spec import REGIONS, Key
from lmms_patch.stats import forms
from lmms_patch.stats.forms import Form
from lmms_patch.tables import Table

_DIGESTS = ("docs", "prompts", "generation", "views", "boxes shown", "statistics", "system instruction")


def load(run: Run, result: TaskResult, *, lent: bool = True) -> TaskRun:
    """A result with its records.

    Args:
        run: the run.
        result: one of its results.
        lent: with the answers lent to other docs, which only the index with luck removed needs.

    Raises:
        RecordError: its sample log is missing, cut, of another benchmark, or of another run.
    """
    log = run.log(result)
    if log is None:
        raise RecordError(f"{run.path}: no sample log of {result.task} beside it; run with --log_samples")
    records, base = [], result.described["base"]
    for record in read_samples(log, result.place, lean=True):
        if record.get("base") != base:
            raise RecordError(f"{log}: records of {record.get('base')}, but {result.task} asks {base}; the file is of another run")
        if not lent:  # of the answers lent to other docs only whether they are the same
            record["lent_hash"] = hash(repr(record.pop("lent", None)))
        records.append(record)
    if len(records) != result.docs:
        raise RecordError(f"{log}: {len(records)} docs, but the run scored {result.docs}; the file is not whole, or of another run")
    return TaskRun(result, records)


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


def tst_score(record: Mapping[str, Any]) -> float:
    """As ``tst.results``: nan where a fold seed has no score."""
    found = record.get("tst")
    scores: list[Any] = found["scores"][found["grouping"]] if found else []
    return math.nan if not scores or None in scores else float(np.mean(scores))


def sources(table: Table) -> list[Hashable] | None:
    """What a doc of a text-only cross-validation is drawn with, as ``tst.results``: its source, else its cluster."""
    found = []
    for record in table.records:
        source = (record.get("tst") or {}).get("source")
        found.append(source if source is not None else (record.get("fields") or {}).get("cluster"))
    return None if all(one is None for one in found) else [f"doc {i}" if one is None else repr(one) for i, one in enumerate(found)]


def view_scores(record: Mapping[str, Any]) -> list[Any]:
    """The scores of each view."""
    return [view["scores"] for view in record["views"]]


def view_sets(record: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the views of a doc by the set that they are of: "" for the first view, a grid, or one of ``REGIONS``."""
    out: dict[str, list[Mapping[str, Any]]] = {"": record["views"][:1]}
    for view in record["views"][1:]:
        out.setdefault(str(view.get("n", REGIONS[0 if view.get("relevant") else 1])), []).append(view)
    return out


def failed(record: Mapping[str, Any], n: int) -> bool:
    """Whether a cell of a grid could not be scored."""
    return any("error" in view for view in record["views"] if view.get("n") == n)


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
    golds = {record["doc_id"]: (record.get("answer") or {}).get("gold") for record in first.records}
    for record in second.records:
        ours, theirs = golds.get(record["doc_id"]), (record.get("answer") or {}).get("gold")
        if record["doc_id"] in common and ours is not None and theirs is not None and ours != theirs:
            raise RecordError(
                f"{second.result.task}: doc {record['doc_id']} has the gold {ours!r} in the first run and {theirs!r} in the second: "
                "the benchmark has changed"
            )


def check_digest(task: str, prints: Sequence[Mapping[str, Any]], results: Sequence[TaskResult], others: bool) -> None:
    """Whether all golds are the same, also those of docs with several, where one version made both digests."""
    docs = [one["docs"] for one in prints]
    made = [(result.details.get("made") or {}).get("lmms_patch") for result in results]
    if not others and None not in docs and docs[0] != docs[1] and made[0] == made[1]:
        raise RecordError(f"{task}: the same docs have other golds in the two runs: the benchmark has changed")


def check_own(run: TaskRun, table: Table, form: Form | None, grids: Sequence[int], folds: bool) -> list[str]:
    """Whether the log gives the numbers that the run reported: on full images, and of each grid on best cells (and so its index and gap).

    Args:
        run: the run.
        table: all its docs.
        form: of its aggregation; None: nothing can be checked.
        grids: those of an index; empty for kinds without one.
        folds: a text-only cross-validation.

    Returns:
        Warnings: numbers that are only nearly the run's own.

    Raises:
        RecordError: a number is another: it is the log of another run, or was changed.
    """
    if form is None:
        return []
    own = run.result.metrics.get("tst") if folds else fip_of(run.result, table)
    scores = np.array([tst_score(record) for record in table.records]) if folds else table.full.scores
    out = []
    if own is not None and np.isfinite(scores).all():
        out += _check(run, table.metric, form, float(scores.mean()) if folds else forms.value_of(form, table.picked(table.full)), own)
    for n in grids:
        out += _check_grid(run, table, form, n)
    return out


def _check_grid(run: TaskRun, table: Table, form: Form, n: int) -> list[str]:
    """FIP and MPP over the docs that a grid uses, as the run reported them. Docs that could not be scored: then the run has no such number."""
    best = table.at(table.best_places(n))
    used = np.array([item is not None for item in best.items], bool)
    if not used.any() or any("error" in view for record in table.records for view in record["views"]):
        return []
    grid = ((run.result.details.get("analysis") or {}).get("grids") or {}).get(str(n)) or {}
    name = f"{table.metric}_mpp{n}"
    numbers = {f"{table.metric} over the docs of grid {n}": (table.full, grid.get("fip")), name: (best, run.result.metrics.get(name))}
    warnings = {}
    for what, (chosen, own) in numbers.items():
        picked = table.picked(chosen).where(used)
        if own is not None and np.isfinite(picked.scores).all():
            warnings[what] = _check(run, what, form, forms.value_of(form, picked), own)
    return warnings.get(name, [])  # of FIP it is said already


def _check(run: TaskRun, name: str, form: Form, value: float, own: float) -> list[str]:
    """Nothing where a number is the run's own, within rounding; a warning where it is nearly so, as a mean of docs may be."""
    decimals = max(2, len(repr(own).partition(".")[2]))
    if not math.isfinite(own) or not math.isfinite(value) or forms.same(value, own, decimals):
        return []
    if form is forms.MEAN and abs(value - own) <= 0.02 * abs(own):  # captions: ``analysis`` takes this form so
        return [f"{name} is compared as the mean of its docs, {value:.4g}; the run's own aggregation gives {own:.4g}"]
    raise RecordError(
        f"{run.name}: the sample log gives {name} {value:.4g}, but the run reported {own:.4g}; the log is of another run, or was changed"
    )


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
