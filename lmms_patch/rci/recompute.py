"""The numbers of finished runs from the samples tables of their tasks, with the settings of the run or with others.

It needs neither the model, the data nor lmms_eval. With the settings of the run it gives the numbers of the run. Where
the native aggregation has no known form, only the run itself could compute it: then its own numbers are shown, and
nothing is recomputed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from lmms_patch.ask.kinds import Key, Kind, end
from lmms_patch.ask.spec import Options
from lmms_patch.errors import RecordError, shown
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.draws import ByForm
from lmms_patch.runs import catalogue
from lmms_patch.runs.details import Computed, Settings
from lmms_patch.runs.numbers import Analysis, to_json
from lmms_patch.runs.run import Result, Run, Taken, newest_of
from lmms_patch.runs.schema import OTHER_METRIC
from lmms_patch.runs.tables import NEEDED, Table
from lmms_patch.stats import forms

MOST_CATEGORIES = 50
LEAST_OF_CATEGORY = 20
"""Of how many docs of a category a run that left docs out must have asked something: its numbers would be predictions."""


@dataclass(frozen=True)
class Changes:
    """Settings in place of the run's settings; None keeps the run's.

    Attributes:
        draws: see ``Settings``.
        level: see ``Settings``.
        delta: see ``Settings``.
        chance: see ``Settings``.
        metric: another metric of the task.
    """

    draws: int | None = None
    level: float | None = None
    delta: float | None = None
    chance: float | str | None = None
    metric: str | None = None


@dataclass(frozen=True)
class TaskRun:
    """A wrapped task of a finished run.

    Attributes:
        result: what its table says of itself.
        blind: by doc id, the scores of the base task's blind run, where the same run has one.
    """

    result: Result
    blind: Mapping[int, float] = field(default_factory=dict)

    @property
    def metrics(self) -> list[str]:
        """The metrics of its docs; the column ``score`` is by the first."""
        return list(self.result.about.metrics)

    @cached_property
    def samples(self) -> pl.DataFrame:
        """Its docs as rows of the samples table."""
        others = [f"{OTHER_METRIC}{name}" for name in self.metrics[1:]]
        return self.result.frame([*NEEDED, "score", *others], again=True)

    @property
    def name(self) -> str:
        """The task's name, with the filter where the task has several."""
        return self.result.label


@dataclass(frozen=True)
class Analyzed:
    """The recomputed numbers of a task.

    Attributes:
        run: what they are of.
        analysis: the numbers; None where only the run's own can be shown.
        metrics: the flat numbers by name (docs/metrics.md).
        categories: the same for each category; only where asked.
        note: why nothing was recomputed, or what its categories leave out; empty otherwise.
    """

    run: TaskRun
    analysis: Analysis | None
    metrics: Mapping[str, float | int | None]
    categories: Mapping[str, Analysis] = field(default_factory=dict)
    note: str = ""

    @property
    def result(self) -> Result:
        """The run's result with the recomputed numbers put in."""
        own = self.run.result
        if self.analysis is None:
            return own
        asked = {**own.described, "metric": self.analysis.metric}
        about = msgspec.structs.replace(own.about, asked=asked)
        return dataclasses.replace(own, about=about, given=Computed(self.analysis))

    def to_json(self) -> dict[str, Any]:
        """Return the numbers in plain JSON types."""
        return {
            "task": self.run.result.task,
            "filter": self.run.result.filter,
            "base": self.run.result.base,
            "metrics": dict(self.metrics),
            "analysis": to_json(self.analysis if self.analysis is not None else self.run.result.analysis),
            **({"categories": to_json(self.categories)} if self.categories else {}),
            **({"note": self.note} if self.note else {}),
        }


# --- reading ------------------------------------------------------------------------------------


def is_analyzed(kind: Kind) -> bool:
    """Return whether the numbers of a kind are recomputed: those with an index, of every order of the options, of a curve, or of hidden boxes."""
    return bool(kind.has_index or kind.turns or kind.has_points or kind.own)


def one_run(path: Path) -> Taken:
    """Return the newest run whose numbers are recomputed (``is_analyzed``) under a path (``runs.run.newest_of``)."""
    return newest_of(path, lambda run: any(is_analyzed(one.kind) for one in run.results), "with an index")


def load(run: Run) -> list[TaskRun]:
    """Return the tasks of a run whose numbers can be recomputed, each with the scores of a blind run beside it.

    Raises:
        RecordError: there is no such task, or a table is not whole.
    """
    wanted = [one for one in run.results if is_analyzed(one.kind)]
    if not wanted:
        magic = any(one.kind.name == "magic" for one in run.results)
        hint = (
            "the numbers of MAGIC tasks are those of the run: type 'lmms-patch magic show'"
            if magic
            else "ask for one, such as --tasks gqa_rci3"
        )
        raise RecordError(f"{run.path}: no task with an index in this run; {hint}")
    blind = {one.base: scores(one, one.metric) for one in run.results if one.kind.name == "blind" and not one.place}
    return [TaskRun(one, blind.get(one.base, {})) for one in wanted]


def scores(result: Result, metric: str) -> dict[int, float]:
    """Return the score of each doc's first view by doc id; docs without a score are left out."""
    name = "score" if metric == next(iter(result.about.metrics)) else f"{OTHER_METRIC}{metric}"
    found = result.frame(["doc_id", "view", name]).filter(pl.col("view") == 0).drop_nulls()
    return dict(zip(found["doc_id"].to_list(), found[name].to_list(), strict=True))


# --- computing ----------------------------------------------------------------------------------


def analysed(result: Result) -> Analysis | None:
    """Compute the numbers of a wrapped task under its own settings; None where nothing was scored."""
    if result.metric not in result.about.metrics:
        return None
    found = recompute(TaskRun(result))
    return result.native.analysis if found.analysis is None else found.analysis


def recompute(run: TaskRun, changes: Changes | None = None, by: str = "") -> Analyzed:
    """Compute the numbers of a task with changed settings, and where a column is named (``by_category``) by category.

    Raises:
        RecordError: the log lacks the metric or categories.
    """
    changes = changes or Changes()
    settings, metric, table = table_of(run, changes)
    kind, sets = run.result.kind, sets_of(run)
    form = form_of(run, table, settings, sets)
    if form is None and len(table):
        return _as_run(run, changes, metric)
    analysis = analyse(table, ByForm(table, form), settings, sets, run.blind)
    categories, told = _categories(run, table, by, form, settings, sets) if by else ({}, "")
    if by and not categories:
        raise RecordError(f"{run.name}: {told}")
    note = f"{run.name}: {told}" if told else ""
    return Analyzed(run, analysis, catalogue.columns(analysis, kind), categories, note)


def sets_of(run: TaskRun) -> tuple[Key, ...]:
    """Return the sets of views with an index: grids, or the two sets of boxes."""
    kind = run.result.kind
    return kind.sets(run.result.grids) if kind.has_index else ()


def by_category(run: TaskRun, column: str = "category") -> tuple[dict[str, Analysis], str]:
    """Compute the numbers of each category under the run's settings.

    Args:
        run: the task.
        column: of its samples table, by whose values its docs are split, such as ``doc.source``.

    Returns:
        The numbers by category, and what to mind; without numbers why there are none (no reason where the run names
        at most one category).
    """
    settings, metric, table = table_of(run, Changes())
    if column == "category" and table.docs[column].drop_nulls().n_unique() < 2:
        return {}, ""
    sets = sets_of(run)
    form = form_of(run, table, settings, sets)
    if form is None:
        return {}, f"no categories: the aggregation of {metric} can only be computed in the run"
    return _categories(run, table, column, form, settings, sets)


def _categories(
    run: TaskRun, table: Table, column: str, form: forms.Form | None, settings: Settings, sets: Sequence[Key]
) -> tuple[dict[str, Analysis], str]:
    # docs without an answer too, which count as failed
    docs = table.frame.filter(view=0).select("doc_id", value="category")
    if column != "category":
        values = run.result.frame(["doc_id", "view", column]).filter(view=0).select("doc_id", value=column)
        docs = docs.select("doc_id").join(values, on="doc_id", how="left", maintain_order="left")
    known = docs.with_columns(pl.col("value").cast(pl.String)).drop_nulls()
    groups = known.partition_by("value", as_dict=True)
    if len(groups) > MOST_CATEGORIES:
        return {}, f"{len(groups)} categories, more than {MOST_CATEGORIES}; choose a field with fewer values"
    if not groups:
        own = "name one with the option 'category' (docs/options.md)"
        return {}, f"no categories in the log; {own if column == 'category' else f'no doc has {column}'}"
    parts = {str(name): table.of(some["doc_id"]) for (name,), some in sorted(groups.items())}
    few = [name for name, part in parts.items() if part.sampling.used and part.sampling.asked_docs < LEAST_OF_CATEGORY]
    found = {
        name: analyse(part, ByForm(part, form), settings, sets, run.blind, part=True)
        for name, part in parts.items()
        if name not in few
    }
    without = len(docs) - len(known)
    notes = [f"{without} docs have no category: they are in no category's numbers"] if without else []
    if few:
        notes.append(
            f"no numbers of categories of which fewer than {LEAST_OF_CATEGORY} docs were asked: {', '.join(few)}"
        )
    return found, "; ".join(notes)


def table_of(run: TaskRun, changes: Changes) -> tuple[Settings, str, Table]:
    """Return settings, metric and records of a task with the changes applied."""
    described = run.result.described
    options = Options.of_file(described["options"], run.name)
    metric = changes.metric or described["metric"]
    if metric not in (known := run.result.about.metrics):
        raise RecordError(f"{run.name}: no metric {shown(metric)} in its table; allowed: {', '.join(sorted(known))}")
    higher = run.result.better(metric)
    base = run.result.about.settings
    # These settings were made for the run's metric, and mean nothing for another.
    if changes.metric and changes.metric != described["metric"]:
        base = dataclasses.replace(base, chance=None, delta=None, scale=None, form=options.form(metric), signed=False)
    given = {
        name: value for name in ("draws", "level", "delta", "chance") if (value := getattr(changes, name)) is not None
    }
    settings = dataclasses.replace(base, **given)
    return (
        settings,
        metric,
        Table(
            run.samples,
            metric,
            kind=run.result.kind,
            grids=run.result.grids,
            primary=run.metrics[0],
            higher=higher,
            merged=run.result.about.merged,
            whole=forms.is_whole(settings.form),
        ),
    )


def form_of(run: TaskRun, table: Table, settings: Settings, sets: Sequence[Key]) -> forms.Form | None:
    """Return the form of the aggregation: as the run recognised it, else recognised from what the harness printed."""
    native = run.result.native
    # only for the primary metric did the run look for a form
    if table.metric == run.result.metric:
        return forms.FORMS.get(native.form or "")
    checks = [(table.picked(table.full), native.values.get(table.metric))]
    for key in sets:
        best = table.best(key)
        checks.append((table.picked(best).where(best.known), native.values.get(f"{table.metric}_mpp{end(key)}")))
    return forms.recognise([check for check in checks if check[1] is not None], settings.form)[0]


def _as_run(run: TaskRun, changes: Changes, metric: str) -> Analyzed:
    note = f"{run.name}: the aggregation of {metric} is not a mean, so it can only be computed in the run"
    if changes.metric not in (None, run.result.metric):
        return Analyzed(run, None, {}, note=f"{note}: nothing to show for another metric")
    note += ": these are its own numbers" + (", with its own settings" if changes != Changes() else "")
    own = run.result.native.analysis
    return Analyzed(run, None, {} if own is None else catalogue.columns(own, run.result.kind), note=note)
