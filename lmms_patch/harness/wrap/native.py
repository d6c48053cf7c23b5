"""The native metrics over the docs of a finished filter: which are called once, which again, and which not at all."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from lmms_patch.ask.kinds import Key
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.harness import compat
from lmms_patch.harness.names.effects import client_of
from lmms_patch.harness.refuse import fail_at_exit
from lmms_patch.harness.wrap.again import CallError
from lmms_patch.harness.wrap.calls import call_native, copied, draws, one_line
from lmms_patch.harness.wrap.metrics import Metrics
from lmms_patch.harness.wrap.state import RunState
from lmms_patch.rci.draws import ByForm
from lmms_patch.runs.frames import Doc, frame_of, items_of, merged_of
from lmms_patch.runs.numbers import none_used
from lmms_patch.runs.scoring import scalar
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
from lmms_patch.stats.forms import MEAN, is_whole
from lmms_patch.text import log

_SET_SCORE = (
    "set 'score' to the key of the item that holds its scalar (metadata: {lmms_patch: {score: KEY}} in the task file)"
)


class PatchItem(dict[str, Any]):
    """The ``patch`` object of a doc in the harness's log, for people alone: its scores. Its attributes hold the doc.

    Attributes:
        doc: its rows.
        full: the native items of the first view (the full image) by metric.
        from_m: the metric whose scalar had to be M of the one item; None where no metric needed that.
    """

    def __init__(self, doc: Doc, full: Mapping[str, Any], from_m: str | None = None) -> None:
        super().__init__(doc.scores())
        self.doc, self.full, self.from_m = doc, full, from_m

    def __reduce__(self) -> Any:
        # ranks exchange items by pickle, and a plain dictionary would lose the attributes
        return PatchItem, (self.doc, self.full, self.from_m)


class Docs:
    """The docs of a finished filter.

    Attributes:
        spec: what was asked.
        metrics: the native metrics.
        state: how docs are asked, and the host's arguments.
        items: the docs, as ``process_results`` returned them.
        docs: their rows.
        samples: the same as a frame.
        merged: what categories count in, where several count as one.
    """

    def __init__(self, spec: WrapSpec, metrics: Metrics, state: RunState, items: Sequence[PatchItem] = ()) -> None:
        self.spec, self.metrics, self.state, self.items = spec, metrics, state, items
        self.docs = [item.doc for item in items]
        self.samples, self.merged = frame_of(self.docs, metrics.names), merged_of(self.docs)
        self._metrics: dict[str, NativeMetric] = {}

    def metric(self, name: str) -> NativeMetric:
        """Return a native metric over the docs."""
        return self._metrics.setdefault(name, NativeMetric(self, name))

    @functools.cached_property
    def failed(self) -> int:
        """How many docs have no answer to their first view."""
        return sum(doc.failed for doc in self.docs)

    @functools.cached_property
    def errors(self) -> list[tuple[int, str]]:
        """The views without a score, wrong images aside: doc id and cause."""
        own = self.samples if self.spec.kind.swapped else self.samples.filter(~self.samples["swapped"].fill_null(False))
        return list(own.filter(pl.col("repeat").is_null()).select("doc_id", "error").drop_nulls().iter_rows())

    @functools.cached_property
    def unscored(self) -> bool:
        """Whether the first view of some doc has no native item, or no doc has an answer: the native metric would then say nothing."""
        none = any(item.doc.unscored or (item.doc.failed and not item.full) for item in self.items)
        return none or bool(self.items and self.failed == len(self.items))

    @property
    def sampled(self) -> bool:
        """Whether docs were left out, which makes metrics estimates."""
        return self.spec.leaves_out and self.state.plan.sampled

    def excluded(self, key: Key) -> list[str]:
        """Return why docs are not used for a set of views."""
        return [why for doc in self.docs if (why := doc.excluded(key))]


class NativeMetric:
    """A native metric of the docs, as the statistics take it (``rci.draws.Native``). Each number is computed once.

    Args:
        of: the docs.
        name: the metric.
    """

    form = None

    def __init__(self, of: Docs, name: str) -> None:
        self._of, self.name, self._function = of, name, of.metrics.native[name]
        self._higher = of.metrics.higher.get(name, True)
        self._client = client_of(self._function)
        self._known: dict[Key, tuple[float | None, float | None, str]] = {}
        self._told = set[str]()
        """How the aggregation failed: each way is told once, not for each of a thousand bootstrap draws."""

    @functools.cached_property
    def table(self) -> Table:
        """The docs by this metric."""
        of, spec = self._of, self._of.spec
        return Table(
            of.samples,
            self.name,
            kind=spec.kind,
            grids=spec.grids,
            primary=of.metrics.primary,
            higher=self._higher,
            whole=is_whole(spec.options.form(self.name)),
            merged=of.merged,
            items=items_of(of.docs, self.name),
        )

    # --- on full images -------------------------------------------------------------------------

    @functools.cached_property
    def own_items(self) -> list[Any]:
        """The native items of the first view of each doc."""
        return [item.full[self.name] for item in self._of.items if self.name in item.full]

    @functools.cached_property
    def _called(self) -> tuple[Any, str]:
        """The aggregation of all docs, with the files and calls of the base task; and why a second call is not allowed.

        It may be called only once where a second call with the same items gives another number.
        """
        # a second call must draw the same random numbers as the first
        start, again = draws(), self._of.metrics.again
        value = None if self._of.unscored else self.natively(self.own_items)
        first = scalar(value)
        # the host's plain aggregations remember nothing, and a call of a client costs money
        if first is None or compat.has_stderr(self._function) or self._client is not None:
            return value, ""
        try:
            second = again(self.name, self.own_items, start)
        except CallError as error:
            return value, f"the aggregation of {self.name} cannot be called twice: {error}"
        if second is not None and math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12):
            return value, ""
        told = "nothing" if second is None else f"{second:.4g}"
        so = f"remembers what it was asked before: of the same docs it gave {first:.4g}, then {told}"
        return value, f"the aggregation of {self.name} {so}"

    @property
    def value(self) -> Any:
        """The native metric over all docs."""
        return self._estimated(None)[0] if self._of.sampled else self._called[0]

    @property
    def once(self) -> str:
        """Why the aggregation may be called only once; "" where further calls are fine."""
        return self._called[1]

    @property
    def no_calls(self) -> str:
        """Why the aggregation may not be called again and again; "" where allowed."""
        return f"the aggregation calls the network ({self._client})" if self._client else self.once

    def natively(self, items: list[Any]) -> Any:
        """Call the aggregation as the host does; return None where the call fails."""
        if not items:
            return None
        if not compat.has_stderr(self._function):
            self._of.metrics.again.start()
        try:
            return call_native(self._function, copied(items), self._of.state.args)
        except Exception as error:
            self._told.add(type(error).__name__)
            fail_at_exit(f"{self._of.spec.name}: the aggregation of {self.name} failed: {one_line(error)}")
            return None

    def _aside(self, items: list[Any]) -> float | None:
        """Call the aggregation once more without a trace; return None on failure, or if only a single call is allowed."""
        if not items or self.once:
            return None
        try:
            return self._of.metrics.again(self.name, items)
        except CallError as error:
            if (failed := str(error).partition(":")[0]) not in self._told:
                self._told.add(failed)
                log().warning(f"{self._of.spec.name}: {self.name} of {len(items)} docs cannot be aggregated: {error}")
            return None

    def aggregate(self, items: list[Any]) -> float | None:
        """Return M of any items, without a trace; None where impossible, or where the network would be asked."""
        return None if self._client else self._aside(items)

    @functools.cached_property
    def _whole(self) -> float | None:
        # a number of the docs that could be scored would pass for that of all
        if any(doc.unscored for doc in self._of.docs):
            return None
        full = _known(self.table.full)
        # of all docs it is the number that the harness prints; else the aggregation is called without the others
        lost = self._of.unscored or len(full) != len(self.own_items)
        return self._aside(full) if lost else scalar(self.value)

    def whole(self) -> float | None:
        """Return FIP: the native metric over the docs whose first view has a score."""
        return self._whole

    # --- over chosen views ------------------------------------------------------------------------

    def over_cells(self, key: Key) -> tuple[float | None, float | None, str]:
        """Return M over full images and over the chosen views of a set, both over the docs with a chosen view, and why they are missing."""
        if key not in self._known:
            self._known[key] = (*self._estimated(key), "") if self._of.sampled else self._over_cells(key)
        return self._known[key]

    def _over_cells(self, key: Key) -> tuple[float | None, float | None, str]:
        if reason := self._why_none(key):
            return None, None, reason
        used = self._best(key).known
        # over all docs this is FIP, which is known already
        everyone = bool(used.sum() == self.table.full.known.sum())
        full = self._whole if everyone else self._aside(_known(self.table.full.where(used)))
        out = len(self._of.excluded(key))
        if full is None and self.value is None:
            reason = f"the aggregation of {self.name} failed, or gave no number"
        elif full is None and out:
            reason = f"{self.name} cannot be aggregated without the {out} docs that are left out"
        return full, self._of_best(key), reason

    def _best(self, key: Key) -> Chosen:
        """Return the answer of each doc's best view of a set; of hidden cells, of the cell most missed when hidden."""
        return (self.table if self._of.spec.kind.keeps_best else self._by_worst).best(key)

    @functools.cached_property
    def _by_worst(self) -> Table:
        """The docs, the worst score taken for the best."""
        return dataclasses.replace(self.table, higher=not self._higher)

    @functools.lru_cache  # noqa: B019 - one object a run
    def _of_best(self, key: Key) -> float | None:
        """Return M over chosen views. Called once, since some aggregations cost money."""
        return self._aside(_known(self._best(key)))

    @functools.lru_cache  # noqa: B019 - one object a run
    def _why_none(self, key: Key) -> str:
        """Say why there is no number over cells; "" where there is a number."""
        of, primary = self._of, self._of.metrics.primary
        if of.spec.leaves_out and self.name != primary:
            return f"cells were left out by the scores of {primary}"
        if of.errors:
            return "some docs could not be scored"
        if self.once:
            return self.once
        best = self._best(key)
        if not best.known.any():
            alone = len(of.excluded(key)) == len(of.docs)
            return none_used(key) if alone else f"no item of {self.name} has a scalar; {_SET_SCORE}"
        full = self.table.full.scores[self.table.full.known]
        if self.name != primary and np.isnan(full).any() and (reason := of.metric(primary)._why_none(key)):
            # some docs have no scalar of this metric, so they followed the primary metric's choice
            return reason
        # best cells may have been chosen by M of single items, but M need not be made up of single items (F1, CIDEr)
        if not any(item.from_m == self.name for item in of.items):
            return ""
        # where no answer is right, only the golds tell scores apart
        known = np.concatenate([one.scores for one in (self.table.views, self.table.references)])
        tells_apart = len(np.unique(known[np.isfinite(known)])) > 1
        if tells_apart and _is_mean(self._whole, full) and _is_mean(self._of_best(key), best.scores[best.known]):
            return ""
        return f"{self.name} of single docs does not make up {self.name} of all, so it cannot tell which cell is best; {_SET_SCORE}"

    def _estimated(self, key: Key | None) -> tuple[float | None, float | None]:
        """Return estimates of M over full images, and over the best cells of a set (None: of no set), of a run with docs left out.

        The best cells are known for the primary metric alone, because its scores decided which cells were asked.
        """
        primary = self.name == self._of.metrics.primary
        form = self._of.state.plan.form if primary else MEAN if compat.has_stderr(self._function) else None
        if form is None or self._of.unscored:
            return None, None
        found = ByForm(self.table, form)
        if key is None:
            return found.whole(), None
        full, best, _ = found.over_cells(key)
        return full, best if primary else None


def _known(chosen: Chosen) -> list[Any]:
    return [item for item in chosen.items or () if item is not None]


def _is_mean(whole: float | None, scores: Any) -> bool:
    """Return whether a metric is the mean of its docs' scalars, up to rounding by the metric."""
    scores = scores[np.isfinite(scores)]
    if whole is None or not len(scores):
        return False
    mean = float(scores.mean())
    # a metric may round its result, so compare as many decimals as the result has
    decimals = max(2, len(repr(float(whole)).partition(".")[2]))
    return math.isclose(mean, whole, rel_tol=1e-4, abs_tol=1e-6) or round(mean, decimals) == whole
