"""Two results of one benchmark, doc by doc: what differs between them, from both sample logs. Pure.

Docs are joined by their id. The same draws of docs serve both runs, so that what a doc is like (hard, easy) leaves the difference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.errors import RecordError
from lmms_patch.measures import measures
from lmms_patch.recompute import Changes, TaskRun, form_of, table_of
from lmms_patch.records import TaskResult, read_samples
from lmms_patch.runs import Run, differences, fingerprint, task_label
from lmms_patch.spec import KINDS
from lmms_patch.stats import forms, paired
from lmms_patch.stats.forms import Form
from lmms_patch.stats.paired import Difference, McNemar
from lmms_patch.stats.resample import LEVEL, Array, Estimate
from lmms_patch.tables import Chosen, Table

MANY_DOCS, FEWER_DRAWS = 20_000, 2_000
SAME = ("benchmark", "kind", "metric", "filter", "views")
"""What two results must share to be compared at all; other differences are told."""


@dataclass(frozen=True)
class Compared:
    """Two results of one task.

    Attributes:
        task: the second's name, with its filter where it has several.
        metric: the primary metric.
        docs: docs that both have scored.
        only_first, only_second: ids of docs that only one of them asked.
        unscored: docs that both asked and that one of them could not score.
        differences: by name (``measures``), second less first.
        mcnemar: of 0/1 scores; None for others.
        settings: in what else the two differ, in words.
        warnings: what to mind.
    """

    task: str
    metric: str
    docs: int
    only_first: tuple[int, ...]
    only_second: tuple[int, ...]
    unscored: int
    differences: Mapping[str, Difference]
    mcnemar: McNemar | None
    settings: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def matches(one: TaskResult, other: TaskResult) -> bool:
    """Whether two results are of one benchmark, asked in one way (rci and pcri are one way)."""
    kinds = [KINDS[result.described["kind"]] for result in (one, other)]
    ways = [kind.index is not None or kind.name for kind in kinds]
    return one.described["base"] == other.described["base"] and ways[0] == ways[1] and one.filter == other.filter


def compare(first: tuple[Run, TaskResult], second: tuple[Run, TaskResult], *, level: float = LEVEL, draws: int = 0, seed: int = 0) -> Compared:
    """The differences of all numbers of two results, paired by doc.

    Args:
        first, second: a result and its run each.
        level: nominal coverage of the intervals, 0..1.
        draws: bootstrap draws; 0: 10,000, and 2,000 for more than 20,000 docs.
        seed: of the bootstrap.

    Raises:
        RecordError: results of different benchmarks, metrics or views; a log that is missing, cut or of another run; other golds.
    """
    prints = [fingerprint(*side) for side in (first, second)]
    apart = differences({key: prints[0][key] for key in SAME}, prints[1])
    if apart:
        raise RecordError(f"{first[1].task} and {second[1].task} cannot be compared: other {', other '.join(apart)}")
    both = _Both(load(*first), load(*second))
    found = both.differences(draws or (FEWER_DRAWS if len(both.ids) > MANY_DOCS else paired.DRAWS), level, seed)
    ignore = (*SAME, *(("docs", "prompts", "number of docs", "limit") if both.only[0] or both.only[1] else ()))
    return Compared(
        task_label(*second),
        second[1].described["metric"],
        len(both.ids),
        *both.only,
        both.unscored,
        found,
        both.mcnemar(),
        tuple(differences(prints[0], prints[1], ignore)),
        tuple(both.warnings),
    )


def load(run: Run, result: TaskResult) -> TaskRun:
    """A result with its records.

    Raises:
        RecordError: its sample log is missing, cut, or of another run.
    """
    log = run.log(result)
    if log is None:
        raise RecordError(f"{run.path}: no sample log of {result.task} beside it; run with --log_samples")
    records = list(read_samples(log, result.place, lean=True))
    if len(records) != result.docs:
        raise RecordError(f"{log}: {len(records)} docs, but the run scored {result.docs}; the file is not whole, or of another run")
    return TaskRun(result, records)


class _Both:
    """The docs that both have, as arrays in one order."""

    def __init__(self, first: TaskRun, second: TaskRun) -> None:
        self.runs = (first, second)
        self.index = KINDS[second.result.described["kind"]].index
        self.folds = KINDS[second.result.described["kind"]].folds
        ids = [{record["doc_id"] for record in run.records} for run in self.runs]
        self.only = tuple(sorted(ids[0] - ids[1])), tuple(sorted(ids[1] - ids[0]))
        self.warnings: list[str] = []
        tables, self.forms = zip(*(_table_of(run) for run in self.runs), strict=True)
        common = sorted(ids[0] & ids[1])
        if not common:
            raise RecordError(f"{first.result.task}: the two runs have no doc in common; both must be asked the same docs")
        _check_golds(first, second, set(common))
        common = self._whole_clusters(tables, common)
        self.tables = tuple(_of_docs(table, common) for table in tables)
        own = self._scores()
        keep = np.asarray(np.isfinite(own).all(axis=0))
        self.unscored = int((~keep).sum())
        self.ids = [doc_id for doc_id, scored in zip(common, keep, strict=True) if scored]
        if not self.ids:
            raise RecordError(f"{first.result.task}: no doc is scored in both runs")
        if self.unscored:
            self.tables = tuple(_of_docs(table, self.ids) for table in self.tables)
        self.scores = self._scores()
        self.clusters = self.tables[1].clusters if self.tables[1].clusters is not None else self.tables[0].clusters

    def _whole_clusters(self, tables: Sequence[Table], common: list[int]) -> list[int]:
        """The docs of clusters that both have whole, where the aggregation works on whole clusters."""
        if not any(table.whole for table in tables):
            return common
        shared, halved = set(common), set()
        for table in tables:
            labels = table.clusters if table.clusters is not None else np.arange(len(table))
            missing = {label for record, label in zip(table.records, labels.tolist(), strict=True) if record["doc_id"] not in shared}
            halved |= {record["doc_id"] for record, label in zip(table.records, labels.tolist(), strict=True) if label in missing}
        return [doc_id for doc_id in common if doc_id not in halved]

    def _scores(self) -> Array:
        """Shape (2, docs): the primary scalar of the first view, or the text-only score, mean over fold seeds."""
        if not self.folds:
            return np.stack([table.full.scores for table in self.tables])
        return np.array([[_tst_score(record) for record in table.records] for table in self.tables], float)

    def mcnemar(self) -> McNemar | None:
        return paired.mcnemar(*self.scores)

    def differences(self, draws: int, level: float, seed: int) -> dict[str, Difference]:
        """By name; the numbers of the runs themselves, without interval, where the aggregation cannot be computed from sums."""
        first, second = self.forms
        if self.folds:
            first = second = forms.MEAN
        if first is None or second is None or first is not second:
            return self._as_run(level)
        parts, names = [self._rows(first, [table.full for table in self.tables])], ["score"]
        grids = [n for n in self.runs[0].result.described["grids"] if n in self.runs[1].result.described["grids"]] if self.index else []
        for n in grids:
            best = [table.at(table.best_places(n)) for table in self.tables]
            used = np.array([all(one.items[i] is not None for one in best) for i in range(len(self.ids))], bool)
            parts += [self._rows(first, [table.full for table in self.tables], used), self._rows(first, best, used)]
            names += [f"full{n}", f"best{n}"]
        width = parts[0].shape[1] // 2
        at = {name: 2 * width * k for k, name in enumerate(names)}
        value = first.value

        def both(name: str) -> Callable[[Array], tuple[Any, Any]]:
            start = at[name]
            return lambda sums: (value(sums[..., start : start + width]), value(sums[..., start + width : start + 2 * width]))

        wanted = {"tst" if self.folds else "score": both("score")}
        for n in grids:
            wanted |= _of_grid(str(self.index), n, both(f"full{n}"), both(f"best{n}"))
        found = paired.differences(np.hstack(parts), wanted, self.clusters, draws=draws, level=level, seed=seed)
        if self.index:
            found = {"fip": found["score"], **found}
        return self._gated(found)

    def _rows(self, form: Form, chosen: Sequence[Chosen], used: NDArray[np.bool_] | None = None) -> Array:
        """What the form sums, of both runs side by side; docs that are not used are 0."""
        if self.folds:
            return np.hstack([np.column_stack([scores, np.ones(len(scores))]) for scores in self.scores])
        out = np.hstack([form.rows(table.picked(one)) for table, one in zip(self.tables, chosen, strict=True)])
        out[~np.isfinite(out).all(axis=1)] = 0
        if used is not None:
            out[~used] = 0
        return out

    def _gated(self, found: dict[str, Difference]) -> dict[str, Difference]:
        """Without the indices, where a gate does not let one be read."""
        for which, run in zip(("first", "second"), self.runs, strict=True):
            if self.index and run.result.metrics.get("gate") == 0:
                for name, one in found.items():
                    if name.startswith((self.index, "gap")):
                        estimate = Estimate(None, None, None, None, one.estimate.n, one.estimate.clusters, 0, one.estimate.level)
                        reason = f"near chance: the gate of the {which} run does not let it be read"
                        found[name] = Difference(one.first, one.second, dataclasses.replace(estimate, reason=reason), None)
        return found

    def _as_run(self, level: float) -> dict[str, Difference]:
        metric = self.runs[1].result.described["metric"]
        if self.only[0] or self.only[1]:
            raise RecordError(f"{self.runs[1].name}: the aggregation of {metric} can only be computed in the run, and the two runs have other docs")
        self.warnings.append(f"the aggregation of {metric} can only be computed in the run: differences without interval")
        ours, theirs = (measures(run.result) for run in self.runs)
        names = [name for name in ours if name in theirs and name.startswith(("score", "fip", "mpp", "gap", self.index or "tst"))]
        bare = {name: [dataclasses.replace(side[name], se=None) for side in (ours, theirs)] for name in names}
        return {name: paired.unpaired(*sides, level=level) for name, sides in bare.items()}


def _of_grid(index: str, n: int, full: Callable[..., Any], best: Callable[..., Any]) -> dict[str, Callable[[Array], tuple[Any, Any]]]:
    """MPP, index and gap of one grid, of both runs."""

    def ratio(sums: Array) -> tuple[Any, Any]:
        return tuple(np.where(np.asarray(f) > 0, 1 - b / f, np.nan) for f, b in zip(full(sums), best(sums), strict=True))  # type: ignore[return-value]

    def gap(sums: Array) -> tuple[Any, Any]:
        return tuple(f - b for f, b in zip(full(sums), best(sums), strict=True))

    return {f"mpp{n}": best, f"{index}{n}": ratio, f"gap{n}": gap}


def _table_of(run: TaskRun) -> tuple[Table, Form | None]:
    settings, _, table = table_of(run, Changes())
    if KINDS[run.result.described["kind"]].folds:
        return table, forms.MEAN
    return table, form_of(run, table, settings, run.result.described["grids"])


def _of_docs(table: Table, ids: Sequence[int]) -> Table:
    """The docs of these ids, in this order."""
    missing = [doc_id for doc_id in ids if doc_id not in table.place]
    by_id = {record["doc_id"]: record for record in table.records}
    if missing:
        empty: dict[str, Any] = {"views": [{"scores": {}, "items": {table.metric: None}}], "excluded": {}, "best": {}}
        by_id |= {doc_id: {**empty, "doc_id": doc_id} for doc_id in missing}
    return Table([by_id[doc_id] for doc_id in ids], table.metric, higher=table.higher, cluster=table.cluster, whole=table.whole)


def _tst_score(record: Mapping[str, Any]) -> float:
    found = record.get("tst")
    scores = [score for score in found["scores"][found["grouping"]] if score is not None] if found else []
    return float(np.mean(scores)) if scores else np.nan


def _check_golds(first: TaskRun, second: TaskRun, common: set[int]) -> None:
    """Whether the docs are the same in both; they are joined by their numbers."""
    golds = {record["doc_id"]: (record.get("answer") or {}).get("gold") for record in first.records}
    for record in second.records:
        ours, theirs = golds.get(record["doc_id"]), (record.get("answer") or {}).get("gold")
        if record["doc_id"] in common and ours is not None and theirs is not None and ours != theirs:
            raise RecordError(
                f"{second.result.task}: doc {record['doc_id']} has the gold {ours!r} in the first run and {theirs!r} in the second: "
                "the benchmark has changed"
            )
