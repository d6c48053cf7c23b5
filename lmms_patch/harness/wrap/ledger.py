"""The records of a finished filter, and the native metrics over them: which are called once, which again, and which not at all."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from lmms_patch.ask.answers import is_missing
from lmms_patch.ask.kinds import Key
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.harness import compat
from lmms_patch.harness.names.effects import client_of
from lmms_patch.harness.refuse import fail_at_exit
from lmms_patch.harness.wrap.again import CallError
from lmms_patch.harness.wrap.calls import Draws, call_native, copied, draws, one_line
from lmms_patch.harness.wrap.metrics import Metrics
from lmms_patch.harness.wrap.state import RunState
from lmms_patch.harness.wrap.statistics import Estimates
from lmms_patch.runs.frames import frame_of, merged_of
from lmms_patch.runs.numbers import none_used
from lmms_patch.runs.scored import SampleRecord, ScoredView, decisive
from lmms_patch.runs.scoring import scalar
from lmms_patch.runs.tables import Table
from lmms_patch.stats.forms import MEAN, is_whole
from lmms_patch.text import log


class PatchItem(dict[str, Any]):
    """The ``patch`` object of a doc in the harness's log, for people alone: its scores. Its attributes hold the doc.

    Attributes:
        record: its views, scored.
        full: the native items of the first view (the full image) by metric.
        whole: the native items that FIP is made of, by metric: those of ``full``, or of its worst order.
        chosen: the native items of the cells that the doc keeps, by the name of the metric over them.
        from_m: the metric whose scalar had to be M of the one item; None where no metric needed that.
    """

    record: SampleRecord
    full: dict[str, Any]
    whole: dict[str, Any]
    chosen: dict[str, Any]
    from_m: str | None

    def __init__(
        self,
        record: SampleRecord,
        full: dict[str, Any],
        whole: dict[str, Any],
        chosen: dict[str, Any],
        from_m: str | None = None,
    ) -> None:
        super().__init__(_scores(record))
        self.record, self.full, self.whole, self.chosen, self.from_m = record, full, whole, chosen, from_m

    def __reduce__(self) -> Any:
        # ranks exchange items by pickle, and a plain dictionary would lose the attributes
        return PatchItem, (self.record, self.full, self.whole, self.chosen, self.from_m)


def _scores(record: SampleRecord) -> dict[str, Any]:
    """Return the scores of a doc by what its views show, by the first metric that each has."""
    out: dict[str, Any] = {}
    for one in record.every_view:
        name = f"{'wrong image, ' * one.view.swapped}{one.view.kind}{f' {one.view.n}' if one.view.n else ''}"
        out.setdefault(name, []).append(one.failed or one.error or next(iter(one.scores.values()), None))
    return {name: scores[0] if len(scores) == 1 else scores for name, scores in out.items()}


class NativeCalls:
    """Calls of the native aggregations: once for the host, and once more without a trace.

    Args:
        spec: what was asked.
        metrics: the native metrics.
        state: holds the host's arguments.
    """

    def __init__(self, spec: WrapSpec, metrics: Metrics, state: RunState) -> None:
        self._spec, self._metrics, self._state = spec, metrics, state
        self._told = set[tuple[str, str]]()
        """Metrics whose aggregation failed, and how: each is told once, not for each of a thousand bootstrap draws."""

    def asked_again(self, metric: str, items: list[Any], first: float | None, start: Draws) -> str:
        """Say why M over other items cannot be trusted; "" for no reason.

        Not trusted: an aggregation whose second call with the same items gives another number.

        Args:
            metric: the metric.
            items: its items.
            first: what the aggregation gave in the first call.
            start: the state of the random generators before that call.
        """
        function = self._metrics.native[metric]
        # the host's plain aggregations remember nothing, and a call of a client costs money
        if first is None or compat.has_stderr(function) or client_of(function) is not None:
            return ""
        try:
            second = self._metrics.again(metric, items, start)
        except CallError as error:
            return f"the aggregation of {metric} cannot be called twice: {error}"
        if second is not None and math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12):
            return ""
        told = "nothing" if second is None else f"{second:.4g}"
        return f"the aggregation of {metric} remembers what it was asked before: of the same docs it gave {first:.4g}, then {told}"

    def natively(self, metric: str, items: list[Any]) -> Any:
        """Call a native aggregation as the host does; return None where the call fails."""
        if not items:
            return None
        function = self._metrics.native[metric]
        if not compat.has_stderr(function):
            self._metrics.again.start()
        try:
            return call_native(function, copied(items), self._state.args)
        except Exception as error:
            self._told.add((metric, type(error).__name__))
            fail_at_exit(f"{self._spec.name}: the aggregation of {metric} failed: {one_line(error)}")
            return None

    def aside(self, metric: str, items: list[Any]) -> float | None:
        """Call a native aggregation once more without a trace (no file, no output); return None where the call fails."""
        if not items:
            return None
        try:
            return self._metrics.again(metric, items)
        except CallError as error:
            if (failed := (metric, str(error).partition(":")[0])) not in self._told:
                self._told.add(failed)
                log().warning(f"{self._spec.name}: {metric} of {len(items)} docs cannot be aggregated: {error}")
            return None


class Ledger:
    """The records of a filter, and the numbers computed from them, each computed once.

    Args:
        spec: what was asked.
        metrics: the native metrics.
        state: says how docs are asked.
        items: the docs, as ``process_results`` returned them.
    """

    def __init__(self, spec: WrapSpec, metrics: Metrics, state: RunState, items: Sequence[PatchItem] = ()) -> None:
        self._spec, self._kind, self._metrics, self._state, self.items = spec, spec.kind, metrics, state, items
        self.calls = NativeCalls(spec, metrics, state)
        self.records = [item.record for item in items]
        self._native: dict[str, Any] = {}
        self._one_number: dict[str, str] = {}
        self._of_answered: dict[str, float | None] = {}
        self._both: dict[tuple[str, Key], tuple[float | None, float | None]] = {}
        self._best_of: dict[tuple[str, Key], float | None] = {}
        self._reasons: dict[tuple[str, Key], str] = {}

    @functools.cached_property
    def unscored(self) -> bool:
        """Whether the first view of some doc has no native item, or no doc has an answer: the native metric would then say nothing."""
        return any(
            item.record.views[0].error is not None or (item.record.unanswered and not item.full) for item in self.items
        ) or bool(self.items and all(one.unanswered for one in self.records))

    @property
    def sampled(self) -> bool:
        """Whether docs were left out, which makes metrics estimates."""
        return self._spec.leaves_out and any(record.estimated for record in self.records)

    def _estimated(self, metric: str, n: Key | None = None) -> tuple[float | None, float | None]:
        """Return estimates of the metric over full images and over the best cells of a set (None: of no set).

        None where there is none.

        The best cells are known for the primary metric alone, because its scores decided which cells were asked.
        """
        form = (
            self._state.plan.form
            if metric == self._metrics.primary
            else MEAN
            if compat.has_stderr(self._metrics.native[metric])
            else None
        )
        if form is None or self.unscored:
            return None, None
        primary = self._metrics.primary
        table = Table(
            frame_of(self.records, list(dict.fromkeys([primary, metric]))),
            metric,
            kind=self._kind,
            grids=self._spec.grids,
            primary=primary,
            higher=self._metrics.higher.get(metric, True),
            merged=merged_of(self.records),
        )
        found = Estimates(table, form, self.records)
        if n is None:
            return found.whole(), None
        full, best, _ = found.over_cells(n)
        return full, best if metric == self._metrics.primary else None

    def own_items(self, metric: str) -> list[Any]:
        """Return a metric's native items of the first view of each doc."""
        return [item.full[metric] for item in self.items if metric in item.full]

    def native_value(self, metric: str) -> Any:
        """Return the native metric over all docs.

        Called once per filter, with the files and calls that the base task would make.
        """
        if self.sampled:
            return self._estimated(metric)[0]
        if metric not in self._native:
            # a second call must draw the same random numbers as the first
            start = draws()
            self._native[metric] = None if self.unscored else self.calls.natively(metric, self.own_items(metric))
            self._one_number[metric] = self.calls.asked_again(
                metric, self.own_items(metric), scalar(self._native[metric]), start
            )
        return self._native[metric]

    def why_once(self, metric: str) -> str:
        """Say why M may be called only once (``NativeCalls.asked_again``); "" where further calls are fine."""
        self.native_value(metric)
        return self._one_number.get(metric, "")

    def whole(self, metric: str) -> float | None:
        """Return FIP: the native metric over the docs whose first view has a score.

        Where every doc has one, this is the number that the harness prints. Else the aggregation is called once more,
        without the other docs.
        """
        lost = (one.unanswered or one.unscored(metric) for one in self.records)
        if not (self._kind.every_order or any(lost)):
            return scalar(self.native_value(metric))
        # kept, since a call may take long or cost money
        if metric not in self._of_answered:
            self._of_answered[metric] = self.aside(metric, [item.whole[metric] for item in self._answered(metric)])
        return self._of_answered[metric]

    def _answered(self, metric: str) -> list[PatchItem]:
        """Return the docs of a metric whose first view was answered; ``tables.Table`` takes the same docs."""
        failed = [item for item in self.items if item.record.unanswered]
        answered = [
            item for item in self.items if not is_missing(item.whole.get(metric)) and not item.record.unanswered
        ]
        return self._whole_clusters(metric, answered, failed)

    def _whole_clusters(self, metric: str, kept: list[PatchItem], out: list[PatchItem]) -> list[PatchItem]:
        """Return the kept docs; where the metric works on whole clusters, drop clusters with a lost doc."""
        if not out or not is_whole(self._spec.options.form(metric)):
            return kept
        halved = {repr(item.record.fields.get("cluster")) for item in out}
        return [item for item in kept if repr(item.record.fields.get("cluster")) not in halved]

    def aside(self, metric: str, items: list[Any]) -> float | None:
        """Call a native aggregation once more without a trace; return None on failure, or if only a single call is allowed."""
        return None if not items or self.why_once(metric) else self.calls.aside(metric, items)

    def full_and_cells(self, metric: str, n: Key) -> tuple[float | None, float | None]:
        """Return M over full images and M over chosen cells, both over the docs with a chosen cell of the set n."""
        name = self._metrics.over_cells(metric, n)
        if self.sampled:
            return self._estimated(metric, n)
        if (metric, n) not in self._both:
            used = self._used(metric, name)
            # over all docs this is FIP, which is known already
            everyone = len(used) == len(self._answered(metric))
            if self.why_none(metric, n):
                self._both[metric, n] = None, None
            else:
                full = self.whole(metric) if everyone else self.aside(metric, [item.whole[metric] for item in used])
                self._both[metric, n] = full, self._best(metric, n)
        return self._both[metric, n]

    def _best(self, metric: str, n: Key) -> float | None:
        """Return M over chosen cells. Called once, since some aggregations cost money."""
        name = self._metrics.over_cells(metric, n)
        if (metric, n) not in self._best_of:
            self._best_of[metric, n] = self.aside(metric, [item.chosen[name] for item in self._used(metric, name)])
        return self._best_of[metric, n]

    def _used(self, metric: str, name: str) -> list[PatchItem]:
        """Return the docs with a chosen cell.

        Where the metric works on whole clusters, of clusters in which all docs have one.
        """
        items = self._answered(metric)
        used, out = ([item for item in items if (name in item.chosen) is chosen] for chosen in (True, False))
        return self._whole_clusters(metric, used, out)

    def why_none(self, metric: str, n: Key) -> str:
        """Say why there is no number over cells; "" where there is a number."""
        items, name = self.items, self._metrics.over_cells(metric, n)
        if self._spec.leaves_out and metric != self._metrics.primary:
            return f"cells were left out by the scores of {self._metrics.primary}"
        if any(view.error is not None for item in items for view in item.record.views):
            return "some docs could not be scored"
        if once := self.why_once(metric):
            return once
        if not any(name in item.chosen for item in items):
            excluded = sum(n in item.record.excluded for item in items)
            return none_used(n) if excluded == len(items) else f"no item of {metric} has a scalar; {_SET_SCORE}"
        if (metric, n) not in self._reasons:
            self._reasons[metric, n] = self._why_not_by_item(metric, n)
        return self._reasons[metric, n]

    def _why_not_by_item(self, metric: str, n: Key) -> str:
        """Say why single items do not show which cell is best; "" where they do.

        They do not where best cells were chosen by M on single items, but M is not made up of single items (F1, CIDEr).
        """
        items = [item for item in self.items if metric in item.whole]
        full = [score for item in items if (score := self._counted(item, metric)[0].scores.get(metric)) is not None]
        if (
            metric != self._metrics.primary
            and len(full) < len(items)
            and (reason := self.why_none(self._metrics.primary, n))
        ):
            # some docs have no scalar of this metric, so they followed the primary metric's choice
            return reason
        if not any(item.from_m == metric for item in items):
            return ""
        name = self._metrics.over_cells(metric, n)
        chosen = [item for item in items if name in item.chosen]
        best = [score for item in chosen if (score := self._chosen_score(item, metric, n)) is not None]
        # where no answer is right, only the golds tell scores apart
        of_golds = (one.scores.get(metric) for item in items for one in item.record.baselines)
        of_views = (view.scores.get(metric) for item in items for view in item.record.views)
        tells_apart = len({score for score in (*full, *of_views, *of_golds) if score is not None}) > 1
        over_cells = self._best(metric, n)
        if tells_apart and _is_mean(self.whole(metric), full) and _is_mean(over_cells, best):
            return ""
        return f"{metric} of single docs does not make up {metric} of all, so it cannot tell which cell is best; {_SET_SCORE}"

    def _chosen_score(self, item: PatchItem, metric: str, n: Key) -> float | None:
        """Return the scalar of a doc's chosen cell."""
        cells = [view.scores.get(metric) for view in self._counted(item, metric) if view.view.set == n]
        known = [score for score in cells if score is not None]
        highest = self._metrics.higher.get(metric, True) == self._kind.keeps_best
        return (max if highest else min)(known) if known else None

    def _counted(self, item: PatchItem, metric: str) -> Sequence[ScoredView]:
        """Return the views of a doc as they count: each in its worst order, where the index is of every order of the options."""
        views = item.record.views
        higher = self._metrics.higher.get(metric, True)
        return [views[place] for place in decisive(views, metric, higher)] if self._kind.every_order else views


def _is_mean(whole: float | None, scores: list[float]) -> bool:
    """Return whether a metric is the mean of its docs' scalars, up to rounding by the metric."""
    if whole is None or not scores:
        return False
    mean = sum(scores) / len(scores)
    # a metric may round its result, so compare as many decimals as the result has
    decimals = max(2, len(repr(float(whole)).partition(".")[2]))
    return math.isclose(mean, whole, rel_tol=1e-4, abs_tol=1e-6) or round(mean, decimals) == whole


_SET_SCORE = (
    "set 'score' to the key of the item that holds its scalar (metadata: {lmms_patch: {score: KEY}} in the task file)"
)
