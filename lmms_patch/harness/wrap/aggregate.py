"""The aggregations of a wrapped task: the native ones, and those made of them.

The host calls the ``patch`` aggregation first. It keeps the records of all docs, and the other aggregations of ours
look their numbers up, in whatever order the host calls them. None of ours raises, because an exception in an
aggregation would lose the run.

A native aggregation is handed to the host itself if the host looks up its standard error by the function's identity.
Any other is called once, for both the host and us.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from lmms_patch.ask.kinds import Key
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.harness import compat
from lmms_patch.harness.names.effects import client_of, effects
from lmms_patch.harness.refuse import fail_at_exit
from lmms_patch.harness.wrap.calls import (
    Aggregation,
    Draws,
    call_native,
    copied,
    draws,
    one_line,
    with_signature_of,
)
from lmms_patch.harness.wrap.docs import VariantDocs
from lmms_patch.harness.wrap.golds import Golds
from lmms_patch.harness.wrap.metrics import Metrics
from lmms_patch.harness.wrap.references import References
from lmms_patch.harness.wrap.state import RunState
from lmms_patch.harness.wrap.statistics import Details, Estimates, Native, details
from lmms_patch.harness.wrap.text_only import TextOnly
from lmms_patch.runs import failures
from lmms_patch.runs.catalogue import listed
from lmms_patch.runs.numbers import none_used
from lmms_patch.runs.record import Record, View, in_set, in_worst_order
from lmms_patch.runs.scoring import scalar
from lmms_patch.runs.tables import Table
from lmms_patch.stats.forms import MEAN, is_whole
from lmms_patch.text import log
from lmms_patch.tst.results import ROWS


class PatchItem(dict):  # type: ignore[type-arg]
    """The ``patch`` object of one doc, in plain JSON types; its attributes hold what is not logged.

    Attributes:
        record: the same as a record.
        full: the native items of the first view (the full image) by metric.
        whole: the native items that FIP is made of, by metric: those of ``full``, or of its worst order.
        chosen: the native items of the cells that the doc keeps, by the name of the metric over them.
        from_m: the metric whose scalar had to be M of the one item; None where no metric needed that.
    """

    record: Record
    full: dict[str, Any]
    whole: dict[str, Any]
    chosen: dict[str, Any]
    from_m: str | None

    def __init__(
        self,
        record: Record,
        full: dict[str, Any],
        whole: dict[str, Any],
        chosen: dict[str, Any],
        from_m: str | None = None,
    ) -> None:
        super().__init__(msgspec.to_builtins(record))
        self.record, self.full, self.whole, self.chosen, self.from_m = record, full, whole, chosen, from_m

    def __reduce__(self) -> Any:
        return PatchItem, (self.record, self.full, self.whole, self.chosen, self.from_m)


@dataclass
class _Run:
    """The records of one filter, and what has been computed from them. Each number is computed once."""

    items: list[PatchItem] = field(default_factory=list)
    native: dict[str, Any] = field(default_factory=dict)
    whole: dict[str, float | None] = field(default_factory=dict)
    cells: dict[tuple[str, Key], tuple[float | None, float | None]] = field(default_factory=dict)
    over_cells: dict[tuple[str, Key], float | None] = field(default_factory=dict)
    reasons: dict[tuple[str, Key], str] = field(default_factory=dict)
    one_number: dict[str, str] = field(default_factory=dict)
    told: set[tuple[str, type[BaseException]]] = field(default_factory=set)
    """Metrics whose aggregation failed, and how: each is told once, not for each of a thousand bootstrap draws."""
    functions: dict[str, Aggregation] = field(default_factory=dict)

    @functools.cached_property
    def unscored(self) -> bool:
        """Whether the first view of some doc has no native item, or no doc has an answer: the native metric would then say nothing."""
        return any(
            item.record.views[0].error is not None or (failures.unanswered(item.record) and not item.full)
            for item in self.items
        ) or bool(self.items and all(map(failures.unanswered, self.records)))

    @property
    def records(self) -> list[Record]:
        """The records alone."""
        return [item.record for item in self.items]


class Aggregations:
    """All aggregations of one wrapped task.

    Args:
        spec: what was asked.
        metrics: the base task's metrics.
        state: what is known of the run.
        golds: what is known of the docs.
        references: where golds come from.
        table: the docs, for the frames of clips that the model's adapter read.
        text_only: what a text-only diagnostic found out about the task as a whole; None of other kinds.
    """

    def __init__(
        self,
        spec: WrapSpec,
        metrics: Metrics,
        state: RunState,
        golds: Golds,
        references: References,
        table: VariantDocs,
        text_only: TextOnly | None,
    ) -> None:
        self.spec, self.metrics, self._state, self._golds, self._references = spec, metrics, state, golds, references
        self._table, self._text_only = table, text_only
        self.native, self.higher, self.primary, self.again = (
            metrics.native,
            metrics.higher,
            metrics.primary,
            metrics.again,
        )
        self.over_cells = metrics.over_cells
        self._run, self._details = _Run(), Details()

    def functions(self) -> dict[str, Aggregation]:
        """Return all aggregations by the name of their metric.

        The host asks for them several times for each metric and filter.
        """
        if not self._run.functions:
            self._run.functions.update(self._made())
        return self._run.functions

    def _made(self) -> dict[str, Aggregation]:
        """Make the functions of a run; the records of the run tell which of the native ones can be called."""
        out: dict[str, Aggregation] = {"patch": self._collect}
        for key in self.spec.sets:
            for m in self.native:
                out[self.over_cells(m, key)] = self._of_records(
                    self._mpp if self._kind.keeps_best else self._drop, m, key
                )
        names = listed(self._kind, self.spec.grids) + (list(ROWS) if self._kind.folds else [])
        out |= {name: self._of_records(self._detail, name) for name in names}
        return out | {m: self._native_function(m) for m in self.native}

    @property
    def _kind(self) -> Any:
        return self.spec.kind

    @functools.cached_property
    def derived(self) -> tuple[str, ...]:
        """The names of our metrics. Every doc returns each of them, None where it has no item for it."""
        return tuple(name for name in self.functions() if name not in self.native and name != "patch")

    def higher_is_better(self) -> dict[str, bool | None]:
        """Return, for the arrows of the host's table, which metrics are better when higher.

        None for those without a direction.
        """
        out: dict[str, bool | None] = dict.fromkeys(self.functions())
        for m in self.native:
            out[m] = self.higher.get(m)
            out |= {self.over_cells(m, key): self.higher.get(m) for key in self.spec.sets if self._kind.keeps_best}
        return out

    @staticmethod
    def _of_records(function: Callable[..., Any], *arguments: Any) -> Aggregation:
        """Return a function of the items that ignores them, since the records are known already.

        Why so plain: the host looks at an aggregation's signature and name.
        """

        def aggregation(items: list[Any]) -> Any:
            return function(*arguments)

        return aggregation

    # --- the records ----------------------------------------------------------------------------

    def _collect(self, items: list[Any]) -> Details:
        """Keep the records of this filter's docs, and compute all our numbers from them."""
        self._run = _Run(list(items))
        self._report_errors()
        if self.primary != compat.OUTPUT_ONLY:
            self._report_excluded()
            self._report_native()
        try:
            self._details = details(
                self.spec,
                self._run.records,
                self.primary,
                self.higher,
                self._native(),
                self._golds.plan,
                {} if self._text_only is None else self._text_only.about(),
                self._references.golds_from(),
                self._state.plan.form,
                self._table.watch.record(),
                self._state.kept,
            )
        except Exception as error:
            fail_at_exit(
                f"{self.spec.name}: the statistics failed: {one_line(error)}; the native metrics and the sample log are whole"
            )
            self._details = Details(records=len(items))
        return self._details

    def _native(self) -> Native:
        """Return the native aggregation of the primary metric, as the statistics use it."""
        function = self.native[self.primary]
        return Native(
            lambda: self._whole(self.primary),
            self._over_cells,
            lambda items: self._aside(self.primary, items),
            no_calls=effects(function) or self._why_once(self.primary),
            network=client_of(function) is not None,
        )

    def _over_cells(self, n: Key) -> tuple[float | None, float | None, str]:
        """Return FIP and MPP_n of the primary metric over the same docs, and why they are missing."""
        full, best = self._full_and_cells(self.primary, n)
        reason = self._why_none(self.primary, n)
        excluded = sum(str(n) in item.record.excluded for item in self._run.items)
        if not reason and full is None and self._native_value(self.primary) is None:
            reason = f"the aggregation of {self.primary} failed, or gave no number"
        elif not reason and excluded and full is None:
            reason = f"{self.primary} cannot be aggregated without the {excluded} docs that are left out"
        return full, best, reason

    def _detail(self, name: str) -> Any:
        return self._details.get(name)

    def _report_errors(self) -> None:
        """Report the docs whose scorer or filter failed; the process then ends with status 2."""
        failed = [
            (item.record.doc_id, view.error)
            for item in self._run.items
            for view in item.record.views
            if view.error is not None
        ]
        if failed:
            docs = len({doc for doc, _ in failed})
            fail_at_exit(
                f"{self.spec.name}: {docs} of {len(self._run.items)} docs could not be scored by {self.spec.base}, first doc {failed[0][0]}: "
                f"{failed[0][1]}; the answers are kept in the sample log, the numbers that need these docs are null"
            )

    def _report_excluded(self) -> None:
        """Warn of docs that are left out of a grid or a set of boxes."""
        what = "left out of MPP and the index" if self._kind.keeps_best else "shown whole, and counted all the same"
        what = "left out of its number" if self.spec.points else what
        for n in self.spec.parts:
            reasons = [
                why for item in self._run.items if (why := item.record.excluded.get(str(n))) and why != failures.REASON
            ]
            where = f"at {self._kind.words.grid(n)}" if isinstance(n, int) else f"of {n} boxes"
            if reasons:
                log().warning(
                    f"{self.spec.name}: {len(reasons)} of {len(self._run.items)} docs are {what} {where} (first: {reasons[0]})"
                )

    def _report_native(self) -> None:
        """Say how many failed calls the native metric counts as answers.

        The statistics say how many there are in all.
        """
        failed = sum(map(failures.unanswered, self._run.records))
        if failed and not self._sampled:
            why = (
                "no call was answered"
                if failed == len(self._run.items)
                else f"{self.spec.base} has no score for failed calls"
            )
            said = f"is null: {why}" if self._run.unscored else f"counts {failed} failed calls as wrong answers"
            log().warning(f"{self.spec.name}: {self.primary}, the harness's own, {said}; our numbers leave them out")

    # --- runs that left docs out ----------------------------------------------------------------

    @property
    def _sampled(self) -> bool:
        """Whether docs were left out, so that metrics are estimates."""
        return self.spec.leaves_out and any(
            record.asked is not None and min(record.asked.p) < 1 for record in self._run.records
        )

    def _estimated(self, metric: str, n: Key | None = None) -> tuple[float | None, float | None]:
        """Return estimates of the metric over full images and over the best cells of a set (None: of no set).

        None where there is none.

        The best cells are known for the primary metric alone, because its scores decided which cells were asked.
        """
        form = (
            self._state.plan.form
            if metric == self.primary
            else MEAN
            if compat.has_stderr(self.native[metric])
            else None
        )
        if form is None or self._run.unscored:
            return None, None
        table = Table(self._run.records, metric, higher=self.higher.get(metric, True))
        found = Estimates(table, form, self._run.records)
        if n is None:
            return found.whole(), None
        full, best, _ = found.over_cells(n)
        return full, best if metric == self.primary else None

    # --- native metrics -------------------------------------------------------------------------

    def _native_function(self, metric: str) -> Aggregation:
        """Return a native metric's aggregation for the host."""
        function = self.native[metric]
        if self._run.unscored:
            return with_signature_of(function, lambda items: None)
        if compat.has_stderr(function) and not (self.spec.leaves_out and self.spec.options.quick):
            return function
        return with_signature_of(function, lambda items: self._for_host(metric, items))

    def _own_items(self, metric: str) -> list[Any]:
        """Return a metric's native items of the first view of each doc."""
        return [item.full[metric] for item in self._run.items if metric in item.full]

    def _for_host(self, metric: str, items: list[Any]) -> Any:
        """Return the native metric of the host's items, which are those of our records unless filters came in an odd order over ranks."""
        if self._sampled:
            return self._native_value(metric)
        try:
            own = bool(items == self._own_items(metric))
        except Exception:
            own = False
        return self._native_value(metric) if own else self._natively(metric, items)

    def _native_value(self, metric: str) -> Any:
        """Return the native metric over all docs.

        Called once per filter, with the files and calls that the base task would make.
        """
        run = self._run
        if self._sampled:
            return self._estimated(metric)[0]
        if metric not in run.native:
            start = draws()
            run.native[metric] = None if self._run.unscored else self._natively(metric, self._own_items(metric))
            run.one_number[metric] = self._asked_again(metric, scalar(run.native[metric]), start)
        return run.native[metric]

    def _asked_again(self, metric: str, first: float | None, start: Draws) -> str:
        """Say why M of other items cannot be trusted; "" where it can.

        It cannot where a second call with the same items gives another number.

        Args:
            metric: the metric.
            first: what the aggregation gave in the first call.
            start: the state of the random generators before that call.
        """
        function = self.native[metric]
        if first is None or compat.has_stderr(function) or client_of(function) is not None:
            return ""
        try:
            second = scalar(self.again[metric](self._own_items(metric), start))
        except Exception as error:
            return f"the aggregation of {metric} cannot be called twice: {one_line(error)}"
        if second is not None and math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12):
            return ""
        told = "nothing" if second is None else f"{second:.4g}"
        return f"the aggregation of {metric} remembers what it was asked before: of the same docs it gave {first:.4g}, then {told}"

    def _why_once(self, metric: str) -> str:
        """Say why M may be called only once (``_asked_again``); "" where it may be called again."""
        self._native_value(metric)
        return self._run.one_number.get(metric, "")

    def _natively(self, metric: str, items: list[Any]) -> Any:
        """Call a native aggregation as the host does; None where it fails."""
        if not items:
            return None
        try:
            return call_native(self.native[metric], copied(items), self._state.args)
        except Exception as error:
            self._run.told.add((metric, type(error)))
            fail_at_exit(f"{self.spec.name}: the aggregation of {metric} failed: {one_line(error)}")
            return None

    def _whole(self, metric: str) -> float | None:
        """Return FIP: the native metric over the docs whose first view has a score.

        Where every doc has one, this is the number that the harness prints. Else the aggregation is called once more,
        without the other docs.
        """
        lost = (failures.unanswered(one) or failures.unscored(one, metric) for one in self._run.records)
        if not (self._kind.every_order or any(lost)):
            return scalar(self._native_value(metric))
        if metric not in self._run.whole:
            self._run.whole[metric] = self._aside(metric, [item.whole[metric] for item in self._answered(metric)])
        return self._run.whole[metric]

    def _answered(self, metric: str) -> list[PatchItem]:
        """Return the docs of a metric whose first view was answered; ``tables.Table`` takes the same docs."""
        failed = [item for item in self._run.items if failures.unanswered(item.record)]
        answered = [
            item
            for item in self._run.items
            if not failures.is_no_value(item.whole.get(metric)) and not failures.unanswered(item.record)
        ]
        return self._whole_clusters(metric, answered, failed)

    def _whole_clusters(self, metric: str, kept: list[PatchItem], out: list[PatchItem]) -> list[PatchItem]:
        """Return the kept docs; where the metric works on whole clusters, without clusters that have lost a doc."""
        if not out or not is_whole((self.spec.options.aggregation or {}).get(metric)):
            return kept
        halved = {repr(item.record.fields.get("cluster")) for item in out}
        return [item for item in kept if repr(item.record.fields.get("cluster")) not in halved]

    def _aside(self, metric: str, items: list[Any]) -> float | None:
        """Call the native aggregation once more without a trace: no file, no output. Return None where it fails."""
        if not items or self._why_once(metric):
            return None
        try:
            return scalar(self.again[metric](items))
        except Exception as error:
            if (metric, type(error)) not in self._run.told:
                self._run.told.add((metric, type(error)))
                log().warning(
                    f"{self.spec.name}: {metric} of {len(items)} docs cannot be aggregated: {one_line(error)}"
                )
            return None

    # --- over cells -----------------------------------------------------------------------------

    def _full_and_cells(self, metric: str, n: Key) -> tuple[float | None, float | None]:
        """Return M over full images and M over chosen cells, both over the docs that have a chosen cell of the set n."""
        run, name = self._run, self.over_cells(metric, n)
        if self._sampled:
            return self._estimated(metric, n)
        if (metric, n) not in run.cells:
            used = self._used(metric, name)
            everyone = len(used) == len(self._answered(metric))
            if self._why_none(metric, n):
                run.cells[metric, n] = None, None
            else:
                full = self._whole(metric) if everyone else self._aside(metric, [item.whole[metric] for item in used])
                run.cells[metric, n] = full, self._best(metric, n)
        return run.cells[metric, n]

    def _best(self, metric: str, n: Key) -> float | None:
        """Return M over chosen cells. Called once, since some aggregations cost money."""
        run, name = self._run, self.over_cells(metric, n)
        if (metric, n) not in run.over_cells:
            run.over_cells[metric, n] = self._aside(metric, [item.chosen[name] for item in self._used(metric, name)])
        return run.over_cells[metric, n]

    def _used(self, metric: str, name: str) -> list[PatchItem]:
        """Return the docs that have a chosen cell.

        Where the metric works on whole clusters, of clusters in which all docs have one.
        """
        items = self._answered(metric)
        used, out = ([item for item in items if (name in item.chosen) is chosen] for chosen in (True, False))
        return self._whole_clusters(metric, used, out)

    def _why_none(self, metric: str, n: Key) -> str:
        """Say why there is no number over cells; "" where there is one."""
        items, name = self._run.items, self.over_cells(metric, n)
        if self.spec.leaves_out and metric != self.primary:
            return f"cells were left out by the scores of {self.primary}"
        if any(view.error is not None for item in items for view in item.record.views):
            return "some docs could not be scored"
        if once := self._why_once(metric):
            return once
        if not any(name in item.chosen for item in items):
            excluded = sum(str(n) in item.record.excluded for item in items)
            return none_used(n) if excluded == len(items) else f"no item of {metric} has a scalar; {_SET_SCORE}"
        if (metric, n) not in self._run.reasons:
            self._run.reasons[metric, n] = self._why_not_by_item(metric, n)
        return self._run.reasons[metric, n]

    def _why_not_by_item(self, metric: str, n: Key) -> str:
        """Say why single items do not show which cell is best; "" where they do.

        They do not where best cells were chosen by M on single items, but M is not made up of single items (F1, CIDEr).
        """
        items = [item for item in self._run.items if metric in item.whole]
        full = [score for item in items if (score := self._counted(item, metric)[0].scores.get(metric)) is not None]
        if metric != self.primary and len(full) < len(items) and (reason := self._why_none(self.primary, n)):
            return reason  # some docs have no scalar of this metric, so they followed the primary metric's choice
        if not any(item.from_m == metric for item in items):
            return ""
        name = self.over_cells(metric, n)
        chosen = [item for item in items if name in item.chosen]
        best = [score for item in chosen if (score := self._chosen_score(item, metric, n)) is not None]
        of_golds = (
            one.scores.get(metric) for item in items for one in item.record.baselines
        )  # where nothing is right they alone tell
        of_views = (view.scores.get(metric) for item in items for view in item.record.views)
        tells_apart = len({score for score in (*full, *of_views, *of_golds) if score is not None}) > 1
        over_cells = self._best(metric, n)
        if tells_apart and _is_mean(self._whole(metric), full) and _is_mean(over_cells, best):
            return ""
        return f"{metric} of single docs does not make up {metric} of all, so it cannot tell which cell is best; {_SET_SCORE}"

    def _chosen_score(self, item: PatchItem, metric: str, n: Key) -> float | None:
        """Return the scalar of the cell that a doc keeps."""
        cells = [view.scores.get(metric) for view in self._counted(item, metric) if in_set(view, n)]
        known = [score for score in cells if score is not None]
        highest = self.higher.get(metric, True) == self._kind.keeps_best
        return (max if highest else min)(known) if known else None

    def _counted(self, item: PatchItem, metric: str) -> list[View]:
        """Return the views of a doc as they count: each in its worst order, where the index is of every order of the options."""
        record = item.record
        return (
            in_worst_order(record, metric, self.higher.get(metric, True)) if self._kind.every_order else record
        ).views

    def _mpp(self, metric: str, n: Key) -> float | None:
        """Return MPP: M over best-cell items."""
        return self._full_and_cells(metric, n)[1]

    def _drop(self, metric: str, n: Key) -> float | None:
        """Return FIP − M over the items of the cell that hurts most when it is hidden."""
        full, hidden = self._full_and_cells(metric, n)
        return None if full is None or hidden is None else full - hidden


def _is_mean(whole: float | None, scores: list[float]) -> bool:
    """Return whether a metric is the mean of its docs' scalars, up to rounding by the metric."""
    if whole is None or not scores:
        return False
    mean = sum(scores) / len(scores)
    decimals = max(2, len(repr(float(whole)).partition(".")[2]))
    return math.isclose(mean, whole, rel_tol=1e-4, abs_tol=1e-6) or round(mean, decimals) == whole


_SET_SCORE = (
    "set 'score' to the key of the item that holds its scalar (metadata: {lmms_patch: {score: KEY}} in the task file)"
)
