"""The aggregations of a wrapped task: the native ones, and those made of them.

None of them raises: an exception in an aggregation would lose the run. The native function itself
is returned for a native metric whose standard error the host looks up by the function's identity;
any other is called through ``_Native``, so that its result is known and it is not called twice.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import io
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from loguru import logger

from lmms_patch.harness import compat
from lmms_patch.harness.refuse import fail_at_exit
from lmms_patch.scoring import scalar
from lmms_patch.spec import KINDS, WrapSpec
from lmms_patch.stats.index import Index, index

Aggregation = Callable[[list[Any]], Any]


class PatchItem(dict):  # type: ignore[type-arg]
    """The ``patch`` object of one doc, in plain JSON types.

    Attributes:
        full: native items of the full image by metric, for the aggregations; not logged.
        chosen: native items of the cell that the doc keeps, by the name of the metric over them; not logged.
    """

    full: dict[str, Any]
    chosen: dict[str, Any]

    def __init__(self, record: dict[str, Any], full: dict[str, Any], chosen: dict[str, Any]) -> None:
        super().__init__(record)
        self.full, self.chosen = full, chosen

    def __reduce__(self) -> Any:
        return PatchItem, (dict(self), self.full, self.chosen)


@dataclass
class _Seen:
    """What one filter's aggregations have seen so far: the host calls them one after the other, ``patch`` first."""

    items: list[PatchItem] = field(default_factory=list)
    native: dict[str, float | None] = field(default_factory=dict)


class Aggregations:
    """All aggregations of one wrapped task.

    Args:
        spec: what was asked.
        native: the base task's aggregations by metric.
        higher: whether higher is better, by metric.
        primary: the metric that the index is built on.
        args: gives the harness's command-line arguments when called (some native aggregations ask for them).
    """

    def __init__(
        self,
        spec: WrapSpec,
        native: dict[str, Aggregation],
        higher: dict[str, bool],
        primary: str,
        args: Callable[[], Any],
    ) -> None:
        self.spec, self.native, self.higher, self.primary, self._args = spec, native, higher, primary, args
        self._seen = _Seen()

    def functions(self) -> dict[str, Aggregation]:
        """Metric name -> aggregation, in the order in which ``process_results`` returns them."""
        kind = KINDS[self.spec.kind]
        out: dict[str, Aggregation] = {"patch": _plain_signature(self._collect)}
        out |= {m: self._native(m) for m in self.native}
        for n in self.spec.grids if kind.per_cell else ():
            for m in self.native:
                over_cells = self._mpp if kind.index else self._drop
                out[f"{m}_{self.best_name(n)}"] = _plain_signature(functools.partial(over_cells, m, n))
            if kind.index:
                out[f"{kind.index}{n}"] = _plain_signature(functools.partial(self._index, n))
                out[f"gap{n}"] = _plain_signature(functools.partial(self._gap, n))
        return out

    def not_per_doc(self) -> list[str]:
        """The derived metrics that have no item per doc: an index, a gap, a drop."""
        kind = KINDS[self.spec.kind]
        if not kind.per_cell:
            return []
        if kind.index:
            return [f"{prefix}{n}" for n in self.spec.grids for prefix in (kind.index, "gap")]
        return [f"{m}_{self.best_name(n)}" for n in self.spec.grids for m in self.native]

    def best_name(self, n: int) -> str:
        """The suffix of the metric over each doc's chosen cell: ``mpp3``, or ``drop3`` where cells are hidden."""
        return f"{'mpp' if KINDS[self.spec.kind].index else 'drop'}{n}"

    def higher_is_better(self) -> dict[str, bool | None]:
        """For the host's table: arrows beside the metrics that have a direction."""
        out: dict[str, bool | None] = dict.fromkeys(self.functions())
        for m in self.native:
            out[m] = self.higher.get(m)
            for n in self.spec.grids:
                if f"{m}_mpp{n}" in out:
                    out[f"{m}_mpp{n}"] = self.higher.get(m)
        return out

    def _collect(self, items: list[Any]) -> int:
        """Keep the records of this filter's docs; the ``patch`` row shows how many there are."""
        self._seen = _Seen(list(items))
        self._report_errors()
        self._report_excluded()
        return len(items)

    def _report_errors(self) -> None:
        failed = [(item["doc_id"], view["error"]) for item in self._seen.items for view in item["views"] if "error" in view]
        if failed:
            docs = len({doc for doc, _ in failed})
            doc_id, error = failed[0]
            fail_at_exit(
                f"{self.spec.name}: the scorer of {self.spec.base} failed on {docs} of {len(self._seen.items)} docs, first on doc {doc_id}: "
                f"{error}; the answers are kept in the sample log, the index is null"
            )

    def _report_excluded(self) -> None:
        for n in self.spec.grids:
            reasons = [item["excluded"][str(n)] for item in self._seen.items if str(n) in item["excluded"]]
            if reasons:
                logger.warning(f"{self.spec.name}: {len(reasons)} of {len(self._seen.items)} docs are left out at grid {n} (first: {reasons[0]})")

    def _native(self, metric: str) -> Aggregation:
        function = self.native[metric]
        if compat.has_stderr(function):
            return function
        return _keep_signature(function, functools.partial(self._first_call, metric))

    def _first_call(self, metric: str, items: list[Any], args: Any = None) -> Any:
        """The native aggregation, with its files and its calls, exactly once."""
        function = self.native[metric]
        try:
            kept = copy.deepcopy(items) if self._any_excluded() else items
            value = call_native(function, kept, args)
        except Exception as error:
            fail_at_exit(f"{self.spec.name}: the aggregation of {metric} failed: {type(error).__name__}: {error}")
            value = None
        self._seen.native[metric] = scalar(value)
        return value

    def _any_excluded(self) -> bool:
        return any(item["excluded"] for item in self._seen.items)

    def _mpp(self, metric: str, n: int, items: list[Any]) -> float | None:
        """MPP_n = M over best-cell items."""
        value = self._aside(metric, items)
        self._seen.native[f"{metric}_{self.best_name(n)}"] = value
        return value

    def _drop(self, metric: str, n: int, _: list[Any]) -> float | None:
        """FIP − M over the items of the cell that hurts most when it is hidden."""
        name = f"{metric}_{self.best_name(n)}"
        hidden = self._aside(metric, [item.chosen[name] for item in self._seen.items if name in item.chosen])
        fip = self._fip(metric, n)
        return None if hidden is None or fip is None else fip - hidden

    def _fip(self, metric: str, n: int) -> float | None:
        """The native metric on the full images of the docs that grid n can use."""
        used = [item for item in self._seen.items if str(n) not in item["excluded"] and metric in item.full]
        all_used = len(used) == len([item for item in self._seen.items if metric in item.full])
        if all_used and metric in self._seen.native:
            return self._seen.native[metric]
        return self._aside(metric, [item.full[metric] for item in used])

    def _aside(self, metric: str, items: list[Any]) -> float | None:
        """The native aggregation once more, without leaving a trace: no file, no output. None where it fails."""
        if not items:
            return None
        try:
            with aside(self._args()) as args:
                return scalar(call_native(self.native[metric], copy.deepcopy(items), args))
        except Exception as error:
            logger.warning(f"{self.spec.name}: {metric} of {len(items)} items cannot be aggregated ({type(error).__name__}: {error})")
            return None

    def _index_of(self, n: int) -> Index:
        m = self.primary
        fip, mpp = self._fip(m, n), self._seen.native.get(f"{m}_{self.best_name(n)}")
        if reason := self._why_none(n, fip, mpp):
            return Index(None, None, reason)
        return index(fip, mpp, higher_is_better=self.higher.get(m, True))

    def _why_none(self, n: int, fip: float | None, mpp: float | None) -> str:
        """What stands behind a missing FIP or MPP; empty where nothing does."""
        views = [view for item in self._seen.items for view in item["views"]]
        if any("error" in view for view in views):
            return "the scorer failed on some docs"
        excluded = sum(str(n) in item["excluded"] for item in self._seen.items)
        if excluded == len(self._seen.items):
            return "no doc can be used at this grid"
        if all(score is None for view in views for score in view["scores"].values()):
            return (
                f"no item of metric {self.primary!r} has a scalar; set 'score' to the key of the item that holds it "
                "(metadata: {lmms_patch: {score: KEY}} in the task file)"
            )
        if mpp is None and excluded and fip is None:
            return f"{self.primary} cannot be aggregated without the {excluded} docs that are left out"
        return ""

    def _index(self, n: int, _: list[Any]) -> float | None:
        result = self._index_of(n)
        if result.value is None:
            logger.warning(f"{self.spec.name}: {KINDS[self.spec.kind].index}{n} is null: {result.reason}")
        return result.value

    def _gap(self, n: int, _: list[Any]) -> float | None:
        return self._index_of(n).gap


def _plain_signature(function: Callable[..., Any]) -> Aggregation:
    """A function of ``items`` alone: the host asks every aggregation for its signature."""

    def aggregation(items: list[Any]) -> Any:
        return function(items)

    return aggregation


def _keep_signature(native: Aggregation, function: Callable[..., Any]) -> Aggregation:
    """``function`` as the host sees ``native``: with ``args`` if it takes them."""
    if takes_args(native):

        def aggregation_with_args(items: list[Any], args: Any) -> Any:
            return function(items, args)

        return aggregation_with_args  # type: ignore[return-value]
    return _plain_signature(function)


def takes_args(native: Aggregation) -> bool:
    """Whether the host hands this aggregation its command-line arguments."""
    return "args" in inspect.signature(native).parameters


def call_native(native: Aggregation, items: list[Any], args: Any) -> Any:
    """Call a native aggregation the way the host does."""
    return native(items, args=args) if takes_args(native) else native(items)  # type: ignore[call-arg]


_one_aside = threading.RLock()
"""The working directory and the standard streams are the whole process's: one at a time."""


@contextlib.contextmanager
def aside(args: Any) -> Iterator[Any]:
    """Run a native aggregation again without overwriting what it wrote the first time.

    Submission files go to ``args.output_path``, or to the working directory: both are a temporary
    folder here, and what is printed is swallowed.

    Yields:
        The arguments to hand to the aggregation.
    """
    with _one_aside, tempfile.TemporaryDirectory(prefix="lmms_patch_") as folder:
        here = os.getcwd()
        elsewhere = copy.copy(args)
        if elsewhere is not None and hasattr(elsewhere, "output_path"):
            elsewhere.output_path = folder
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                yield elsewhere
        finally:
            os.chdir(here)


def single_item(native: Aggregation, args: Callable[[], Any]) -> Callable[[Any], Any]:
    """M on one item, aside: the last way to a scalar. None where M fails on it."""

    def of(item: Any) -> Any:
        try:
            with aside(args()) as elsewhere:
                return call_native(native, copy.deepcopy([item]), elsewhere)
        except Exception:
            return None

    return of
