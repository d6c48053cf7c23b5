"""The statistics of a run, where its native aggregations can still be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from lmms_patch.ask.kinds import Key
from lmms_patch.ask.references import Plan, shown
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.harness import compat
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.draws import of_cells
from lmms_patch.rci.method import drops
from lmms_patch.runs import failures
from lmms_patch.runs.catalogue import columns
from lmms_patch.runs.details import Computed, Made, Of, Settings, TstDetails
from lmms_patch.runs.frames import frame_of, items_of, merged_of
from lmms_patch.runs.numbers import Stress, to_json, to_mind
from lmms_patch.runs.scored import SampleRecord
from lmms_patch.runs.tables import Table
from lmms_patch.runs.typed import convert
from lmms_patch.stats.forms import Form, is_whole
from lmms_patch.text import log


class Details(dict):  # type: ignore[type-arg]
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


class Native:
    """The native aggregation of the primary metric, for ``analyse``.

    Args:
        whole: M on full images.
        over_cells: gives FIP and MPP of a set of views, and why they are missing.
        aggregate: gives M of other items, without a trace.
        no_calls: why M may not be called again and again; "" where it may.
        network: whether M calls the network, so that ``aggregate`` must not call it at all.
    """

    form = None

    def __init__(
        self,
        whole: Callable[[], float | None],
        over_cells: Callable[[Key], tuple[float | None, float | None, str]],
        aggregate: Callable[[list[Any]], float | None],
        no_calls: str,
        network: bool,
    ) -> None:
        self.whole, self.over_cells, self._aggregate, self.no_calls, self._network = (
            whole,
            over_cells,
            aggregate,
            no_calls,
            network,
        )

    def aggregate(self, items: list[Any]) -> float | None:
        return None if self._network else self._aggregate(items)


class Estimates:
    """The native aggregation of a run with docs left out, for ``analyse``: its form, on estimates of each doc's score.

    Args:
        table: the records.
        form: the form of the aggregation.
        records: all records of the task, also of docs that could not be scored at all.
    """

    no_calls = "docs were left out, so the native aggregation cannot be called"

    def __init__(self, table: Table, form: Form, records: Sequence[SampleRecord]) -> None:
        self._table, self._form, self.form = table, form, form.name
        self._faulty = any(view.error is not None for record in records for view in record.views)
        self._unscored = any(record.views[0].error is not None for record in records)

    def whole(self) -> float | None:
        if self._unscored:
            return None
        return self._table.value(self._form, self._table.full) if len(self._table) else None

    def over_cells(self, key: Key) -> tuple[float | None, float | None, str]:
        return of_cells(self._table, key, self._form, faulty=self._faulty)

    def aggregate(self, items: list[Any]) -> float | None:
        return None


def _mind_tst(tested: Stress, samples: pl.DataFrame, native: float | None) -> list[str]:
    """Return the warnings of a text-only cross-validation."""
    out = (
        [f"{tested.unscored} docs have no gold or no score: left out of the text-only numbers"]
        if tested.unscored
        else []
    )
    folds = samples.select(pl.col("tst").struct.field("folds")).explode("folds").unnest("folds")
    mean = folds.filter(grouping=tested.headline, seed=0)["score"].mean()
    if native is not None and isinstance(mean, float) and abs(native - mean) > 1e-6 * max(1.0, abs(native)):
        out.append(
            "the native metric is not the mean of docs' scores (or its scorer guesses): tst numbers are means of scores, on their scale"
        )
    return out


def settings_of(options: Options, metric: str, golds: tuple[str, str] = ("", "")) -> Settings:
    """Return the settings of the statistics from a task's options.

    Args:
        options: the options of the task.
        metric: the metric that the numbers are computed for.
        golds: what ``Scores.golds_from`` returns.
    """
    return Settings(
        seed=options.seed,
        delta=options.delta,
        scale=options.scale,
        chance=options.chance,
        seconds=options.seconds,
        form=options.form(metric),
        signed=options.signed,
        gold=golds[0],
        read=golds[1],
        asking=asking_in_words(options),
    )


def asking_in_words(options: Options) -> str:
    """Say when a run was told to stop asking; "" where everything is asked."""
    if not options.quick:
        return "of each doc, until a cell of each grid earns full marks" if options.exit else ""
    most = "" if options.budget is None else f", at most {options.budget} calls"
    return f"until the 95 % interval of the index of the {options.target} is ± {options.precision:g} or less{most}"


def details(
    spec: WrapSpec,
    records: Sequence[SampleRecord],
    metric: str,
    higher: Mapping[str, bool],
    native: Native | Estimates,
    plan: Plan | None,
    about_tst: Mapping[str, Any] = {},
    golds: tuple[str, str] = ("", ""),
    form: Form | None = None,
    kept: int = 0,
) -> Details:
    """Compute the numbers of a finished run, log what to mind of them, and return them with all that the task's table is to say."""
    settings = settings_of(spec.options, metric, golds)
    samples, merged = frame_of(records, list(dict.fromkeys([metric, *higher]))), merged_of(records)
    table = Table(
        samples,
        metric,
        kind=spec.kind,
        grids=spec.grids,
        higher=higher.get(metric, True),
        whole=is_whole(settings.form),
        merged=merged,
        items=items_of(records, metric),
    )
    # docs were left out: estimates by the form take the place of the native aggregation
    if table.sampling.used and form is not None:
        native = Estimates(table, form, records)
    name = spec.kind.prefix
    # without an index, no set of views has numbers
    found = analyse(table, native, settings, spec.sets if name else ())
    flat = columns(found, spec.kind)
    made = Made(
        **compat.versions(),
        all_docs=None if plan is None else plan.all_docs,
        kept=kept or None,
        **({} if plan is None else plan.digests),
        # images that were not asked about were not looked at
        **(shown(records) if all(record.is_asked for record in records) else {}),
    )
    out = Details({"records": len(records), **flat})
    names = {metric: higher.get(metric, True), **higher} if metric != compat.OUTPUT_ONLY else dict(higher)
    out.about = {
        "metrics": names,
        "settings": settings,
        "made": made,
        "merged": merged,
        "quick": next((record.asked.metric for record in records if record.asked is not None), None),
        "tst": dict(about_tst),
    }
    out.of = Of(found.form, analysis=found if found.form is None else None)
    out.frame = lambda: samples
    # without a metric nothing was scored, so only failed calls are worth a line
    silent = metric == compat.OUTPUT_ONLY
    mind = [] if silent else [*to_mind(found, spec.kind), *filter(None, [failures.repeated(samples)])]
    # None for every task but a text-only cross-validation
    tested = spec.kind.method.recompute(samples, about_tst, seed=settings.seed)
    beside = None
    if tested is not None:
        out |= spec.kind.method.flat(tested)
        beside = convert({**about_tst, **to_json(tested)}, TstDetails)
        mind += _mind_tst(tested, samples, found.fip.value)
    dropped = (
        {} if spec.kind.keeps_best or not spec.kind.per_cell else drops(samples, spec.kind, spec.grids, found.form)
    )
    out.computed = Computed(found, beside, drops=dropped)
    # many failed calls are among the warnings
    if found.failed and (silent or not found.failed.many):
        (log().warning if silent else log().info)(f"{spec.name}: {found.failed.sentence}")
    for line in mind:
        log().warning(f"{spec.name}: {line}")
    return out
