"""The aggregations of a wrapped task: the native ones, and those made of them.

The host calls the ``patch`` aggregation first. It keeps the records of all docs, and the other aggregations of ours
look their numbers up, in whatever order the host calls them. None of ours raises, because an exception in an
aggregation would lose the run.

A native aggregation is handed to the host itself if the host looks up its standard error by the function's identity.
Any other is called once, for both the host and us.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lmms_patch.ask.kinds import Key
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.harness import compat
from lmms_patch.harness.names.effects import client_of
from lmms_patch.harness.refuse import fail_at_exit
from lmms_patch.harness.wrap.calls import (
    Aggregation,
    one_line,
    with_signature_of,
)
from lmms_patch.harness.wrap.docs import VariantDocs
from lmms_patch.harness.wrap.golds import Golds
from lmms_patch.harness.wrap.ledger import Ledger
from lmms_patch.harness.wrap.metrics import Metrics
from lmms_patch.harness.wrap.scores import Scores
from lmms_patch.harness.wrap.state import RunState
from lmms_patch.harness.wrap.statistics import Details, Native, details
from lmms_patch.harness.wrap.text_only import TextOnly
from lmms_patch.runs import failures
from lmms_patch.runs.catalogue import listed
from lmms_patch.text import log


class Aggregations:
    """All aggregations of a wrapped task.

    Args:
        spec: what was asked.
        metrics: the base task's metrics.
        state: what is known of the run.
        golds: what is known of the docs.
        scores: where golds come from.
        table: the docs, for the frames of clips that the model's adapter read.
        text_only: what a text-only diagnostic found out about the task as a whole; None of other kinds.
    """

    def __init__(
        self,
        spec: WrapSpec,
        metrics: Metrics,
        state: RunState,
        golds: Golds,
        scores: Scores,
        table: VariantDocs,
        text_only: TextOnly | None,
    ) -> None:
        self.spec, self.metrics, self._state, self._golds, self._scores = spec, metrics, state, golds, scores
        self._table, self._text_only = table, text_only
        self.native, self.higher, self.primary = metrics.native, metrics.higher, metrics.primary
        self.over_cells = metrics.over_cells
        self._ledger, self._details = Ledger(spec, metrics, state), Details()
        self._functions: dict[str, Aggregation] = {}

    def functions(self) -> dict[str, Aggregation]:
        """Return all aggregations by the name of their metric.

        The host asks for them several times for each metric and filter.
        """
        if not self._functions:
            self._functions = self._made()
        return self._functions

    def _made(self) -> dict[str, Aggregation]:
        """Make the functions of a run; the records of the run tell which native aggregations can be called."""
        # first: the host calls them in this order, and the numbers of all the rest come from the records
        out: dict[str, Aggregation] = {"patch": self._collect}
        for key in self.spec.sets:
            for m in self.native:
                out[self.over_cells(m, key)] = self._of_records(
                    self._mpp if self._kind.keeps_best else self._drop, m, key
                )
        names = [*listed(self._kind, self.spec.grids), *self._kind.method.rows]
        out |= {name: self._of_records(self._detail, name) for name in names}
        return out | {m: self._native_function(m) for m in self.native}

    @property
    def _kind(self) -> Any:
        return self.spec.kind

    @functools.cached_property
    def derived(self) -> tuple[str, ...]:
        """The names of our metrics. Every doc returns each name, with None where the doc has no item."""
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
        """Return a function of the items that ignores them: the records are known already.

        Why so plain: the host looks at an aggregation's signature and name.
        """

        def aggregation(items: list[Any]) -> Any:
            return function(*arguments)

        return aggregation

    # --- the records ----------------------------------------------------------------------------

    def _collect(self, items: list[Any]) -> Details:
        """Keep the records of this filter's docs, and compute all our numbers from them."""
        self._ledger = Ledger(self.spec, self.metrics, self._state, items)
        # made anew at the next question, for what the new records allow
        self._functions = {}
        self._report_errors()
        if self.primary != compat.OUTPUT_ONLY:
            self._report_excluded()
            self._report_native()
        try:
            self._details = details(
                self.spec,
                self._ledger.records,
                self.primary,
                self.higher,
                self._native(),
                self._golds.plan,
                {} if self._text_only is None else self._text_only.about(),
                self._scores.golds_from(),
                self._state.plan.form,
                self._state.kept,
            )
        except Exception as error:
            fail_at_exit(
                f"{self.spec.name}: the statistics failed: {one_line(error)}; the native metrics and the sample log are whole"
            )
            # an exception here would lose the run
            self._details = Details(records=len(items))
        return self._details

    def _native(self) -> Native:
        """Return the native aggregation of the primary metric, for use by the statistics."""
        client = client_of(self.native[self.primary])
        return Native(
            lambda: self._ledger.whole(self.primary),
            self._over_cells,
            lambda items: self._ledger.aside(self.primary, items),
            no_calls=f"the aggregation calls the network ({client})" if client else self._ledger.why_once(self.primary),
            network=client is not None,
        )

    def _over_cells(self, n: Key) -> tuple[float | None, float | None, str]:
        """Return FIP and MPP_n of the primary metric over the same docs, and why they are missing."""
        full, best = self._ledger.full_and_cells(self.primary, n)
        reason = self._ledger.why_none(self.primary, n)
        excluded = sum(n in item.record.excluded for item in self._ledger.items)
        if not reason and full is None and self._ledger.native_value(self.primary) is None:
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
            for item in self._ledger.items
            for view in item.record.views
            if view.error is not None
        ]
        if failed:
            docs = len({doc for doc, _ in failed})
            fail_at_exit(
                f"{self.spec.name}: {docs} of {len(self._ledger.items)} docs could not be scored by {self.spec.base}, first doc {failed[0][0]}: "
                f"{failed[0][1]}; the answers are kept in the sample log, the numbers that need these docs are null"
            )

    def _report_excluded(self) -> None:
        """Warn of docs left out of a grid or a set of boxes."""
        what = "left out of MPP and the index" if self._kind.keeps_best else "shown whole, and counted all the same"
        what = "left out of its number" if self.spec.points else what
        for n in self.spec.parts:
            reasons = [
                why for item in self._ledger.items if (why := item.record.excluded.get(n)) and why != failures.REASON
            ]
            where = f"at {self._kind.words.grid(n)}" if isinstance(n, int) else f"of {n} boxes"
            if reasons:
                log().warning(
                    f"{self.spec.name}: {len(reasons)} of {len(self._ledger.items)} docs are {what} {where} (first: {reasons[0]})"
                )

    def _report_native(self) -> None:
        """Say how many failed calls the native metric counts as answers.

        The statistics say how many there are in all.
        """
        failed = sum(one.unanswered for one in self._ledger.records)
        if failed and not self._ledger.sampled:
            why = (
                "no call was answered"
                if failed == len(self._ledger.items)
                else f"{self.spec.base} has no score for failed calls"
            )
            said = f"is null: {why}" if self._ledger.unscored else f"counts {failed} failed calls as wrong answers"
            log().warning(f"{self.spec.name}: {self.primary}, the harness's own, {said}; our numbers leave them out")

    # --- native metrics -------------------------------------------------------------------------

    def _native_function(self, metric: str) -> Aggregation:
        """Return a native metric's aggregation for the host."""
        function = self.native[metric]
        if self._ledger.unscored:
            return with_signature_of(function, lambda items: None)
        # the host looks the standard error up by identity, so it must get the function itself
        if compat.has_stderr(function) and not (self.spec.leaves_out and self.spec.options.quick):
            return function
        return with_signature_of(function, lambda items: self._for_host(metric, items))

    def _for_host(self, metric: str, items: list[Any]) -> Any:
        """Return the native metric of the host's items, which are those of our records unless filters came in an odd order over ranks."""
        if self._ledger.sampled:
            return self._ledger.native_value(metric)
        # items may be arrays, which ``==`` does not compare as a whole
        try:
            own = bool(items == self._ledger.own_items(metric))
        except Exception:
            own = False
        return self._ledger.native_value(metric) if own else self._ledger.calls.natively(metric, items)

    def _mpp(self, metric: str, n: Key) -> float | None:
        """Return MPP: M over best-cell items."""
        return self._ledger.full_and_cells(metric, n)[1]

    def _drop(self, metric: str, n: Key) -> float | None:
        """Return FIP less M over the items of the cell that hurts most when it is hidden."""
        full, hidden = self._ledger.full_and_cells(metric, n)
        return None if full is None or hidden is None else full - hidden
