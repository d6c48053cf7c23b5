"""The aggregations of a wrapped task: the native ones, and those made of them.

The host calls the ``patch`` aggregation first. It keeps the rows of all docs, and the other aggregations of ours
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
from lmms_patch.harness.refuse import fail_at_exit
from lmms_patch.harness.wrap.calls import (
    Aggregation,
    one_line,
    with_signature_of,
)
from lmms_patch.harness.wrap.docs import VariantDocs
from lmms_patch.harness.wrap.golds import Golds
from lmms_patch.harness.wrap.metrics import Metrics
from lmms_patch.harness.wrap.native import Docs
from lmms_patch.harness.wrap.scores import Scores
from lmms_patch.harness.wrap.state import RunState
from lmms_patch.harness.wrap.statistics import Details, details
from lmms_patch.harness.wrap.text_only import TextOnly
from lmms_patch.rci.draws import ByForm
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
        self._docs, self._details = Docs(spec, metrics, state), Details()
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

    # --- the docs -------------------------------------------------------------------------------

    def _collect(self, items: list[Any]) -> Details:
        """Keep the docs of this filter, and compute all our numbers from them."""
        # made anew at the next question, for what the new docs allow
        self._functions = {}
        try:
            self._docs = docs = Docs(self.spec, self.metrics, self._state, items)
            self._report_errors()
            if self.primary != compat.OUTPUT_ONLY:
                self._report_excluded()
                self._report_native()
            native = docs.metric(self.primary)
            self._details = details(
                self.spec,
                docs.samples,
                native.table,
                # docs were left out: estimates by the form take the place of the native aggregation
                ByForm(native.table, self._state.plan.form) if native.table.sampling.used else native,
                higher=self.higher,
                plan=self._golds.plan,
                about_tst={} if self._text_only is None else self._text_only.about(),
                golds=self._scores.golds_from(),
                kept=self._state.kept,
            )
        except Exception as error:
            fail_at_exit(
                f"{self.spec.name}: the statistics failed: {one_line(error)}; the native metrics and the sample log are whole"
            )
            # an exception here would lose the run
            self._details = Details(records=len(items))
        return self._details

    def _detail(self, name: str) -> Any:
        return self._details.get(name)

    def _report_errors(self) -> None:
        """Report the docs whose scorer or filter failed; the process then ends with status 2."""
        if errors := self._docs.errors:
            docs, (first, why) = len({doc_id for doc_id, _ in errors}), errors[0]
            fail_at_exit(
                f"{self.spec.name}: {docs} of {len(self._docs.items)} docs could not be scored by {self.spec.base}, first doc {first}: "
                f"{why}; the answers are kept in the sample log, the numbers that need these docs are null"
            )

    def _report_excluded(self) -> None:
        """Warn of docs left out of a grid or a set of boxes."""
        what = "left out of MPP and the index" if self._kind.keeps_best else "shown whole, and counted all the same"
        what = "left out of its number" if self.spec.points else what
        for n in self.spec.parts:
            reasons = [why for why in self._docs.excluded(n) if why != failures.REASON]
            where = f"at {self._kind.words.grid(n)}" if isinstance(n, int) else f"of {n} boxes"
            if reasons:
                log().warning(
                    f"{self.spec.name}: {len(reasons)} of {len(self._docs.items)} docs are {what} {where} (first: {reasons[0]})"
                )

    def _report_native(self) -> None:
        """Say how many failed calls the native metric counts as answers.

        The statistics say how many there are in all.
        """
        docs = self._docs
        if docs.failed and not docs.sampled:
            why = (
                "no call was answered"
                if docs.failed == len(docs.items)
                else f"{self.spec.base} has no score for failed calls"
            )
            said = f"is null: {why}" if docs.unscored else f"counts {docs.failed} failed calls as wrong answers"
            log().warning(f"{self.spec.name}: {self.primary}, the harness's own, {said}; our numbers leave them out")

    # --- native metrics -------------------------------------------------------------------------

    def _native_function(self, metric: str) -> Aggregation:
        """Return a native metric's aggregation for the host."""
        function = self.native[metric]
        if self._docs.unscored:
            return with_signature_of(function, lambda items: None)
        # the host looks the standard error up by identity, so it must get the function itself
        if compat.has_stderr(function) and not (self.spec.leaves_out and self.spec.options.quick):
            return function
        return with_signature_of(function, lambda items: self._for_host(metric, items))

    def _for_host(self, metric: str, items: list[Any]) -> Any:
        """Return the native metric of the host's items, which are those of our rows unless filters came in an odd order over ranks."""
        native = self._docs.metric(metric)
        if self._docs.sampled:
            return native.value
        # items may be arrays, which ``==`` does not compare as a whole
        try:
            own = bool(items == native.own_items)
        except Exception:
            own = False
        return native.value if own else native.natively(items)

    def _mpp(self, metric: str, n: Key) -> float | None:
        """Return MPP: M over best-cell items."""
        return self._docs.metric(metric).over_cells(n)[1]

    def _drop(self, metric: str, n: Key) -> float | None:
        """Return FIP less M over the items of the cell that hurts most when it is hidden."""
        full, hidden, _ = self._docs.metric(metric).over_cells(n)
        return None if full is None or hidden is None else full - hidden
