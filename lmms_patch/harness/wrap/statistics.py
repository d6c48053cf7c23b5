"""The statistics of a run, where its native aggregations can still be called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from lmms_patch.ask.references import Plan, shown
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.harness import compat
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.draws import Native
from lmms_patch.rci.method import drops
from lmms_patch.runs import failures
from lmms_patch.runs.catalogue import columns
from lmms_patch.runs.details import Computed, Made, Of, Settings, TstDetails
from lmms_patch.runs.frames import images_of
from lmms_patch.runs.numbers import to_json, to_mind
from lmms_patch.runs.tables import Table
from lmms_patch.runs.typed import convert
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
    metric, options, firsts = table.metric, spec.options, samples.filter(view=0)
    settings = Settings(
        seed=options.seed,
        delta=options.delta,
        scale=options.scale,
        chance=options.chance,
        seconds=options.seconds,
        form=options.form(metric),
        signed=options.signed,
    )
    # without an index, no set of views has numbers
    found = analyse(table, native, settings, spec.sets if spec.kind.prefix else ())
    flat = columns(found, spec.kind)
    steps = firsts["quick"].struct.field("steps")
    made = Made(
        **compat.versions(),
        all_docs=None if plan is None else plan.all_docs,
        kept=kept or None,
        **({} if plan is None else plan.digests),
        # images that were not asked about were not looked at
        **(shown(images_of(firsts)) if (steps.fill_null(1) > 0).all() else {}),
    )
    out = Details({"records": len(firsts), **flat})
    out.about = {
        "metrics": dict(higher) if metric == compat.OUTPUT_ONLY else {metric: higher.get(metric, True), **higher},
        "settings": settings,
        "made": made,
        "merged": dict(table.merged),
        "quick": metric if steps.null_count() < len(steps) else None,
        "tst": dict(about_tst),
    }
    out.of = Of(found.form, analysis=found if found.form is None else None)
    out.frame = lambda: samples
    # without a metric nothing was scored, so only failed calls are worth a line
    silent = metric == compat.OUTPUT_ONLY
    mind = [] if silent else [*to_mind(found, spec.kind), failures.repeated(samples)]
    # None for every task but a text-only cross-validation
    tested = spec.kind.method.recompute(samples, about_tst, seed=settings.seed)
    beside = None
    if tested is not None:
        out |= spec.kind.method.flat(tested)
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
    hides = spec.kind.per_cell and not spec.kind.keeps_best
    dropped = drops(samples, spec.kind, spec.grids, found.form) if hides else {}
    out.computed = Computed(found, beside, drops=dropped)
    # many failed calls are among the warnings
    if found.failed and (silent or not found.failed.many):
        (log().warning if silent else log().info)(f"{spec.name}: {found.failed.sentence}")
    for line in filter(None, mind):
        log().warning(f"{spec.name}: {line}")
    return out
