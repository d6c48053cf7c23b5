"""The statistics of a run, where its native aggregations can still be called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_patch.ask.kinds import Key
from lmms_patch.ask.references import Plan, shown
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.harness import compat
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.draws import of_cells
from lmms_patch.runs import failures
from lmms_patch.runs.catalogue import columns
from lmms_patch.runs.details import Settings
from lmms_patch.runs.numbers import Stress, sentences, to_json
from lmms_patch.runs.record import Record
from lmms_patch.runs.tables import Table
from lmms_patch.stats.forms import Form, is_whole
from lmms_patch.text import log


class Details(dict):  # type: ignore[type-arg]
    """All numbers of a task, as the value of its metric ``patch``: no row of the printed table.

    The host prints every metric whose value is not empty, so this one says that its length is 0.
    """

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True

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

    def __init__(self, table: Table, form: Form, records: Sequence[Record]) -> None:
        self._table, self._form, self.form = table, form, form.name
        self._records = records
        self._unscored = any(record.views[0].error is not None for record in records)

    def whole(self) -> float | None:
        if self._unscored:
            return None
        return self._table.value(self._form, self._table.full) if len(self._table) else None

    def over_cells(self, key: Key) -> tuple[float | None, float | None, str]:
        return of_cells(self._table, key, self._form, self._records)

    def aggregate(self, items: list[Any]) -> float | None:
        return None


def _mind_tst(tested: Stress, records: Sequence[Record], native: float | None) -> list[str]:
    """Return the warnings of a text-only cross-validation."""
    first = [r.tst.scores[tested.headline][0] for r in records if r.tst is not None]
    out = (
        [f"{tested.unscored} docs have no gold or no score: left out of the text-only numbers"]
        if tested.unscored
        else []
    )
    known = [score for score in first if score is not None and math.isfinite(score)]
    if native is not None and known and abs(native - sum(known) / len(known)) > 1e-6 * max(1.0, abs(native)):
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
    records: Sequence[Record],
    metric: str,
    higher: Mapping[str, bool],
    native: Native | Estimates,
    plan: Plan | None,
    about_tst: Mapping[str, Any] = {},
    golds: tuple[str, str] = ("", ""),
    form: Form | None = None,
    kept: int = 0,
) -> Details:
    """Compute the numbers of a finished run, log what they say, and return them as its results file has them (docs/records.md)."""
    settings = settings_of(spec.options, metric, golds)
    table = Table(records, metric, higher=higher.get(metric, True), whole=is_whole(settings.form))
    # docs were left out: estimates by the form take the place of the native aggregation
    if table.sampling.used and form is not None:
        native = Estimates(table, form, records)
    name = spec.kind.prefix
    # without an index, no set of views has numbers
    found = analyse(table, native, settings, spec.sets if name else ())
    flat = columns(found, spec.kind)
    planned = (
        {}
        if plan is None
        else {"strata": len(set(plan.strata.values())), "merged_strata": plan.merged, "merged_docs": plan.merged_docs}
    )
    all_docs = None if plan is None else plan.all_docs
    about = {
        "made": {
            **compat.versions(),
            **({} if all_docs is None else {"all_docs": all_docs}),
            **({"kept": kept} if kept else {}),
            **({} if plan is None else plan.digests),
            # images that were not asked about were not looked at
            **(shown(records) if all(record.is_asked for record in records) else {}),
        },
        "settings": to_json(settings),
        "higher_is_better": dict(higher),
        "donors": planned,
        "analysis": to_json(found),
    }
    out = Details({"records": len(records), **flat, **about})
    told, mind = sentences(found, spec.kind)
    # nothing was scored, so only failed calls are worth a line
    if metric == compat.OUTPUT_ONLY:
        told, mind = [], [failed.sentence] if (failed := failures.count(records)) else []
    # None for every task but a text-only cross-validation
    tested = spec.kind.method.recompute(records, seed=settings.seed)
    if tested is not None:
        out |= {**spec.kind.method.flat(tested), "tst_details": {**about_tst, **to_json(tested)}}
        mind += _mind_tst(tested, records, found.fip.value)
    for line in told:
        log().info(f"{spec.name}: {line}")
    for line in mind:
        log().warning(f"{spec.name}: {line}")
    return out
