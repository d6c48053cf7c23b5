"""The aggregations of a wrapped task: the native ones, and those made of them; and the numbers of a finished run.

The host calls the ``patch`` aggregation first. It keeps the rows of all docs, and the other aggregations of ours
look their numbers up, in whatever order the host calls them. None of ours raises, because an exception in an
aggregation would lose the run.

A native aggregation is handed to the host itself if the host looks up its standard error by the function's identity.
Any other is called once, for both the host and us.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from lmms_patch.ask.kinds import Key
from lmms_patch.ask.references import Plan, shown
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.harness import compat
from lmms_patch.harness.names.effects import client_of
from lmms_patch.harness.refuse import fail_at_exit
from lmms_patch.harness.wrap.calls import (
    Again,
    Aggregation,
    CallError,
    call_native,
    copied,
    draws,
    one_line,
    takes_args,
)
from lmms_patch.harness.wrap.known import Golds, Known
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.draws import ByForm, Native
from lmms_patch.rci.method import drops
from lmms_patch.runs import failures
from lmms_patch.runs.catalogue import columns, listed
from lmms_patch.runs.details import Computed, Made, Of, Settings, TstDetails
from lmms_patch.runs.frames import Doc, frame_of, images_of, items_of, merged_of
from lmms_patch.runs.numbers import none_used, to_json, to_mind
from lmms_patch.runs.scoring import scalar
from lmms_patch.runs.tables import Table
from lmms_patch.runs.typed import convert
from lmms_patch.runs.views import Chosen
from lmms_patch.stats.forms import MEAN, is_whole
from lmms_patch.text import log

_SET_SCORE = (
    "set 'score' to the key of the item that holds its scalar (metadata: {lmms_patch: {score: KEY}} in the task file)"
)


class PatchItem(dict[str, Any]):
    """The ``patch`` object of a doc, empty in the harness's log. Its attributes hold the doc.

    Attributes:
        doc: its rows.
        full: the native items of the first view (the full image) by metric.
        from_m: the metric whose scalar had to be M of the one item; None where no metric needed that.
    """

    def __init__(self, doc: Doc, full: Mapping[str, Any], from_m: str | None = None) -> None:
        super().__init__()
        self.doc, self.full, self.from_m = doc, full, from_m

    def __reduce__(self) -> Any:
        # ranks exchange items by pickle, and a plain dictionary would lose the attributes
        return PatchItem, (self.doc, self.full, self.from_m)


class Docs:
    """The docs of a finished filter.

    Attributes:
        known: the task.
        again: calls its aggregations.
        items: the docs, as ``process_results`` returned them.
        docs: their rows.
        samples: the same as a frame.
        failed: how many docs have no answer to their first view.
        metric: takes a name, and returns the native metric over the docs.
    """

    def __init__(self, known: Known, again: Again, items: Sequence[PatchItem] = ()) -> None:
        self.known, self.again, self.items = known, again, items
        self.docs = [item.doc for item in items]
        self.samples, self.failed = frame_of(self.docs, known.names), sum(doc.failed for doc in self.docs)
        self.metric = functools.cache(lambda name: NativeMetric(self, name))

    @functools.cached_property
    def errors(self) -> list[tuple[int, str]]:
        """The views without a score, wrong images aside: doc id and cause."""
        swapped = self.samples["swapped"].fill_null(False)
        own = self.samples if self.known.spec.kind.swapped else self.samples.filter(~swapped)
        return list(own.filter(own["repeat"].is_null()).select("doc_id", "error").drop_nulls().iter_rows())

    @functools.cached_property
    def unscored(self) -> bool:
        """Whether the first view of some doc has no native item, or no doc has an answer: the native metric would then say nothing."""
        none = any(item.doc.unscored or (item.doc.failed and not item.full) for item in self.items)
        return none or 0 < self.failed == len(self.items)

    @property
    def sampled(self) -> bool:
        """Whether docs were left out, which makes metrics estimates."""
        return self.known.spec.leaves_out and self.known.state.plan.sampled

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
        self._of, self.name, self._spec = of, name, of.known.spec
        self._function, self._primary = of.known.native[name], of.known.primary
        self._client = client_of(self._function)
        self._told = set[str]()
        """How the aggregation failed: each way is told once, not for each of a thousand bootstrap draws."""

    @functools.cached_property
    def table(self) -> Table:
        """The docs by this metric."""
        return Table(
            self._of.samples,
            self.name,
            kind=self._spec.kind,
            grids=self._spec.grids,
            primary=self._primary,
            higher=self._of.known.higher.get(self.name, True),
            whole=is_whole(self._spec.options.form(self.name)),
            merged=merged_of(self._of.docs),
            items=items_of(self._of.docs, self.name),
        )

    # --- calls ----------------------------------------------------------------------------------

    @functools.cached_property
    def own_items(self) -> list[Any]:
        """The native items of the first view of each doc."""
        return [item.full[self.name] for item in self._of.items if self.name in item.full]

    @functools.cached_property
    def _called(self) -> tuple[Any, str]:
        """The aggregation of all docs, with the files and calls of the base task; and why a second call is not allowed."""
        # a second call must draw the same random numbers as the first
        start = draws()
        value = None if self._of.unscored else self.natively(self.own_items)
        # the host's plain aggregations remember nothing, and a call of a client costs money
        if scalar(value) is None or compat.has_stderr(self._function) or self._client is not None:
            return value, ""
        try:
            self._of.again(self.name, self.own_items, start)
        except CallError as error:
            return value, f"the aggregation of {self.name} cannot be called twice: {error}"
        return value, ""

    @property
    def value(self) -> Any:
        """The native metric over all docs."""
        return self._estimated(None)[0] if self._of.sampled else self._called[0]

    @property
    def no_calls(self) -> str:
        """Why the aggregation may not be called again and again; "" where allowed."""
        return f"the aggregation calls the network ({self._client})" if self._client else self._called[1]

    def natively(self, items: list[Any]) -> Any:
        """Call the aggregation as the host does; return None where the call fails."""
        if not items:
            return None
        if not compat.has_stderr(self._function):
            self._of.again.start()
        try:
            return call_native(self._function, copied(items), self._of.known.state.args)
        except Exception as error:
            self._told.add(type(error).__name__)
            fail_at_exit(f"{self._spec.name}: the aggregation of {self.name} failed: {one_line(error)}")
            return None

    def aggregate(self, items: list[Any]) -> float | None:
        """Return M of any items, without a trace; None where impossible, or where the network would be asked."""
        return None if self._client else self._aside(items)

    def _aside(self, items: Iterable[Any]) -> float | None:
        """Call the aggregation once more without a trace; return None on failure, or if only a single call is allowed."""
        known = [item for item in items if item is not None]
        if not known or self._called[1]:
            return None
        try:
            return self._of.again(self.name, known)
        except CallError as error:
            if (failed := str(error).partition(":")[0]) not in self._told:
                self._told.add(failed)
                log().warning(f"{self._spec.name}: {self.name} of {len(known)} docs cannot be aggregated: {error}")
            return None

    # --- over chosen views ------------------------------------------------------------------------

    @functools.lru_cache  # noqa: B019 - one object a run
    def whole(self) -> float | None:
        """Return FIP: the native metric over the docs whose first view has a score."""
        # a number of the docs that could be scored would pass for that of all
        if any(doc.unscored for doc in self._of.docs):
            return None
        full = self.table.full
        # of all docs it is the number that the harness prints; else the aggregation is called without the others
        lost = self._of.unscored or full.known.sum() != len(self.own_items)
        return self._aside(full.items or ()) if lost else scalar(self.value)

    @functools.lru_cache  # noqa: B019 - one object a run
    def over_cells(self, key: Key) -> tuple[float | None, float | None, str]:
        """Return M over full images and over the chosen views of a set, both over the docs with a chosen view, and why they are missing."""
        of, table = self._of, self.table
        if of.sampled:
            return (*self._estimated(key), "")
        if reason := self._why_none(key):
            return None, None, reason
        used = self._best(key).known
        # over all docs this is FIP, which is known already
        everyone = used.sum() == table.full.known.sum()
        full = self.whole() if everyone else self._aside(table.full.where(used).items or ())
        out = len(of.excluded(key))
        if full is None and self.value is None:
            reason = f"the aggregation of {self.name} failed, or gave no number"
        elif full is None and out:
            reason = f"{self.name} cannot be aggregated without the {out} docs that are left out"
        return full, self._of_best(key), reason

    @functools.lru_cache  # noqa: B019 - one object a run
    def _best(self, key: Key) -> Chosen:
        """Return the answer of each doc's best view of a set; of hidden cells, of the cell most missed when hidden."""
        table = self.table
        return (table if self._spec.kind.keeps_best else dataclasses.replace(table, higher=not table.higher)).best(key)

    @functools.lru_cache  # noqa: B019 - one object a run
    def _of_best(self, key: Key) -> float | None:
        """Return M over chosen views. Called once, since some aggregations cost money."""
        return self._aside(self._best(key).items or ())

    def _why_none(self, key: Key) -> str:
        """Say why there is no number over cells; "" where there is a number."""
        of, best, full = self._of, self._best(key), self.table.full
        if self._spec.leaves_out and self.name != self._primary:
            return f"cells were left out by the scores of {self._primary}"
        if of.errors or self._called[1]:
            return "some docs could not be scored" if of.errors else self._called[1]
        if not best.known.any():
            alone = len(of.excluded(key)) == len(of.docs)
            return none_used(key) if alone else f"no item of {self.name} has a scalar; {_SET_SCORE}"
        scores = full.scores[full.known]
        if self.name != self._primary and np.isnan(scores).any() and (why := of.metric(self._primary)._why_none(key)):
            # some docs have no scalar of this metric, so they followed the primary metric's choice
            return why
        # best cells may have been chosen by M of single items, but M need not be made up of single items (F1, CIDEr)
        if all(item.from_m != self.name for item in of.items):
            return ""
        # where no answer is right, only the golds tell scores apart
        every = np.concatenate([self.table.views.scores, self.table.references.scores])
        tells_apart = len(np.unique(every[np.isfinite(every)])) > 1
        if tells_apart and _is_mean(self.whole(), scores) and _is_mean(self._of_best(key), best.scores[best.known]):
            return ""
        return f"{self.name} of single docs does not make up {self.name} of all, so it cannot tell which cell is best; {_SET_SCORE}"

    def _estimated(self, key: Key | None) -> tuple[float | None, float | None]:
        """Return estimates of M over full images, and over the best cells of a set (None: of no set), of a run with docs left out.

        The best cells are known for the primary metric alone, because its scores decided which cells were asked.
        """
        primary = self.name == self._primary
        form = self._of.known.state.plan.form if primary else MEAN if compat.has_stderr(self._function) else None
        if form is None or self._of.unscored:
            return None, None
        found = ByForm(self.table, form)
        if key is None:
            return found.whole(), None
        full, best, _ = found.over_cells(key)
        return full, best if primary else None


def _is_mean(whole: float | None, scores: Any) -> bool:
    """Return whether a metric is the mean of its docs' scalars, up to rounding by the metric."""
    scores = scores[np.isfinite(scores)]
    if whole is None or not len(scores):
        return False
    mean = float(scores.mean())
    # a metric may round its result, so compare as many decimals as the result has
    decimals = max(2, len(repr(float(whole)).partition(".")[2]))
    return math.isclose(mean, whole, rel_tol=1e-4, abs_tol=1e-6) or round(mean, decimals) == whole


class Aggregations:
    """All aggregations of a wrapped task.

    Args:
        known: the task.
        again: calls its aggregations.
        golds: what its docs ask.
        about_tst: gives what a text-only diagnostic found out about the task as a whole.
    """

    def __init__(self, known: Known, again: Again, golds: Golds, about_tst: Callable[[], Mapping[str, Any]]) -> None:
        self._known, self._again, self._golds, self._about_tst = known, again, golds, about_tst
        self._docs, self._details = Docs(known, again), Details()

    def functions(self) -> dict[str, Aggregation]:
        """Return all aggregations by the name of their metric, as what is known of the docs allows."""
        known, spec = self._known, self._known.spec
        # first: the host calls them in this order, and the numbers of all the rest come from the records
        out: dict[str, Aggregation] = {"patch": self._collect}
        for key in spec.sets:
            out |= {known.over_cells(m, key): _ignoring(self._over_cells, m, key) for m in known.native}
        for name in (*listed(spec.kind, spec.grids), *spec.kind.method.rows):
            out[name] = _ignoring(lambda name: self._details.get(name), name)
        return out | {m: self._native_function(m) for m in known.native}

    @functools.cached_property
    def derived(self) -> tuple[str, ...]:
        """The names of our metrics. Every doc returns each name, with None where the doc has no item."""
        return tuple(name for name in self.functions() if name not in self._known.native and name != "patch")

    def higher_is_better(self) -> dict[str, bool | None]:
        """Return, for the arrows of the host's table, which metrics are better when higher.

        None for those without a direction.
        """
        known = self._known
        out: dict[str, bool | None] = dict.fromkeys(self.functions())
        for m in known.native:
            cells = [known.over_cells(m, key) for key in known.spec.sets if known.spec.kind.keeps_best]
            out |= dict.fromkeys([m, *cells], known.higher.get(m))
        return out

    def _collect(self, items: list[Any]) -> Details:
        """Keep the docs of this filter, and compute all our numbers from them."""
        try:
            self._docs = Docs(self._known, self._again, items)
            self._report()
            native, known = self._docs.metric(self._known.primary), self._known
            self._details = details(
                known.spec,
                self._docs.samples,
                native.table,
                # docs were left out: estimates by the form take the place of the native aggregation
                ByForm(native.table, known.state.plan.form) if native.table.sampling.used else native,
                higher=known.higher,
                plan=self._golds.plan,
                about_tst=self._about_tst(),
                kept=known.state.kept,
            )
        except Exception as error:
            fail_at_exit(
                f"{self._known.spec.name}: the statistics failed: {one_line(error)}; the native metrics and the sample log are whole"
            )
            # an exception here would lose the run
            self._details = Details(records=len(items))
        return self._details

    def _over_cells(self, metric: str, key: Key) -> float | None:
        """Return MPP, M over best-cell items; of hidden cells FIP less M over the items of the cell that hurts most."""
        full, cells, _ = self._docs.metric(metric).over_cells(key)
        if self._known.spec.kind.keeps_best:
            return cells
        return None if full is None or cells is None else full - cells

    def _report(self) -> None:
        """Say which docs could not be scored, which are left out, and which failed calls the native metric counts."""
        docs, spec, primary = self._docs, self._known.spec, self._known.primary
        if errors := docs.errors:
            # the process then ends with status 2
            lost, (first, why) = len({doc_id for doc_id, _ in errors}), errors[0]
            fail_at_exit(
                f"{spec.name}: {lost} of {len(docs.items)} docs could not be scored by {spec.base}, first doc {first}: "
                f"{why}; the answers are kept in the sample log, the numbers that need these docs are null"
            )
        if primary == compat.OUTPUT_ONLY:
            return
        what = "left out of MPP and the index" if spec.kind.keeps_best else "shown whole, and counted all the same"
        what = "left out of its number" if spec.points else what
        for key in spec.parts:
            where = f"at {spec.kind.words.grid(key)}" if isinstance(key, int) else f"of {key} boxes"
            if reasons := [why for why in docs.excluded(key) if why != failures.REASON]:
                log().warning(
                    f"{spec.name}: {len(reasons)} of {len(docs.items)} docs are {what} {where} (first: {reasons[0]})"
                )
        # the statistics say how many failed calls there are in all
        if docs.failed and not docs.sampled:
            every = docs.failed == len(docs.items)
            why = "no call was answered" if every else f"{spec.base} has no score for failed calls"
            told = f"is null: {why}" if docs.unscored else f"counts {docs.failed} failed calls as wrong answers"
            log().warning(f"{spec.name}: {primary}, the harness's own, {told}; our numbers leave them out")

    def _native_function(self, metric: str) -> Aggregation:
        """Return a native metric's aggregation for the host."""
        function, spec = self._known.native[metric], self._known.spec
        estimated = spec.leaves_out and spec.options.quick
        # the host looks the standard error up by identity, so it must get the function itself
        if compat.has_stderr(function) and not (self._docs.unscored or estimated):
            return function

        def aggregation(items: list[Any]) -> Any:
            return self._for_host(metric, items)

        def aggregation_with_args(items: list[Any], args: Any) -> Any:
            return self._for_host(metric, items)

        return aggregation_with_args if takes_args(function) else aggregation  # type: ignore[return-value]

    def _for_host(self, metric: str, items: list[Any]) -> Any:
        """Return the native metric of the host's items, which are those of our rows unless filters came in an odd order over ranks."""
        native = self._docs.metric(metric)
        if self._docs.unscored:
            return None
        # items may be arrays, which ``==`` does not compare as a whole
        try:
            own = self._docs.sampled or bool(items == native.own_items)
        except Exception:
            own = False
        return native.value if own else native.natively(items)


def _ignoring(function: Callable[..., Any], *arguments: Any) -> Aggregation:
    """Return a function of the items that ignores them: the records are known already.

    Why so plain: the host looks at an aggregation's signature and name.
    """

    def aggregation(items: list[Any]) -> Any:
        return function(*arguments)

    return aggregation


# --- the numbers of a finished run ----------------------------------------------------------------


class Details(dict):  # type: ignore[type-arg] # it holds nothing: the host asks for a dictionary
    """All numbers of a task, as the value of its metric ``patch`` or ``magic``: no row of the printed table.

    The host prints every metric whose value is not empty, so this one says that its length is 0.

    Attributes:
        computed: every number.
        about: what the footer of the task's table says, as far as the task knows it (``runs.details.About``).
        of: what only the run could compute.
        frame: makes the rows of the table.
    """

    computed = Computed()
    about: Mapping[str, Any] = {}
    of = Of()
    frame: Callable[[], pl.DataFrame] | None = None

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True

    def __deepcopy__(self, memo: object) -> Details:
        return self

    def __reduce__(self) -> Any:
        return Details, (dict(self.items()),)


def details(
    spec: WrapSpec,
    samples: pl.DataFrame,
    table: Table,
    native: Native,
    *,
    higher: Mapping[str, bool],
    plan: Plan | None = None,
    about_tst: Mapping[str, Any] = {},
    kept: int = 0,
) -> Details:
    """Compute the numbers of a finished run, log what to mind of them, and return them with all that the task's table is to say.

    Args:
        spec: what was asked.
        samples: the rows of the docs.
        table: the same by the primary metric.
        native: its aggregation.
        higher: whether higher is better, by native metric.
        plan: the golds and uninformed answers of the docs.
        about_tst: what a text-only diagnostic found out about the task as a whole.
        kept: how many answers an earlier process of the same command gave.
    """
    metric, options, kind, firsts = table.metric, spec.options, spec.kind, samples.filter(view=0)
    settings = Settings(
        **{name: getattr(options, name) for name in ("seed", "delta", "scale", "chance", "seconds", "signed")},
        form=options.form(metric),
    )
    # without an index, no set of views has numbers
    found = analyse(table, native, settings, spec.sets if kind.prefix else ())
    steps = firsts["quick"].struct.field("steps")
    out = Details({"records": len(firsts), **columns(found, kind)})
    out.about = {
        "metrics": dict(higher) if metric == compat.OUTPUT_ONLY else {metric: True, **higher},
        "settings": settings,
        "made": Made(
            **compat.versions(),
            all_docs=None if plan is None else plan.all_docs,
            kept=kept or None,
            **({} if plan is None else plan.digests),
            # images that were not asked about were not looked at
            **(shown(images_of(firsts)) if (steps.fill_null(1) > 0).all() else {}),
        ),
        "merged": dict(table.merged),
        "quick": metric if steps.null_count() < len(steps) else None,
        "tst": dict(about_tst),
    }
    out.of = Of(found.form, analysis=found if found.form is None else None)
    out.frame = lambda: samples
    # without a metric nothing was scored, so only failed calls are worth a line
    silent = metric == compat.OUTPUT_ONLY
    mind = [] if silent else [*to_mind(found, kind), failures.repeated(samples)]
    # None for every task but a text-only cross-validation
    tested = kind.method.recompute(samples, about_tst, seed=settings.seed)
    beside = None
    if tested is not None:
        out |= kind.method.flat(tested)
        beside = convert({**about_tst, **to_json(tested)}, TstDetails)
        if tested.unscored:
            mind.append(f"{tested.unscored} docs have no gold or no score: left out of the text-only numbers")
        folds = samples.select(pl.col("tst").struct.field("folds")).explode("folds").unnest("folds")
        mean = folds.filter(grouping=tested.headline, seed=0)["score"].mean()
        own = found.fip.value
        if own is not None and isinstance(mean, float) and not math.isclose(own, mean, rel_tol=1e-6, abs_tol=1e-6):
            mind.append(
                "the native metric is not the mean of docs' scores (or its scorer guesses): tst numbers are means of scores, on their scale"
            )
    hides = kind.per_cell and not kind.keeps_best
    out.computed = Computed(found, beside, drops=drops(samples, kind, spec.grids, found.form) if hides else {})
    # many failed calls are among the warnings
    if found.failed and (silent or not found.failed.many):
        (log().warning if silent else log().info)(f"{spec.name}: {found.failed.sentence}")
    for line in filter(None, mind):
        log().warning(f"{spec.name}: {line}")
    return out
