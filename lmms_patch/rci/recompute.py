"""Recomputation of the numbers of finished runs from their two files, with other settings.

It needs neither the model, the data nor lmms_eval. With the settings of the run it gives the numbers of the run. Where
the native aggregation has no known form, only the run itself could compute it: then its own numbers are shown, and
nothing is recomputed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import Key, Kind, end
from lmms_patch.ask.spec import Options
from lmms_patch.errors import RecordError, shown
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.draws import of_cells
from lmms_patch.runs import catalogue, failures, samples
from lmms_patch.runs.details import Settings
from lmms_patch.runs.numbers import Analysis, to_json
from lmms_patch.runs.record import Record
from lmms_patch.runs.results import Taken, newest
from lmms_patch.runs.run import Result, read
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
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
    """A wrapped task of a finished run: its result and its records.

    Attributes:
        result: its numbers.
        records: its ``patch`` objects, one per doc.
        blind: by doc id, the scores of the base task's blind run, where the same run has one.
    """

    result: Result
    records: list[Record]
    blind: Mapping[int, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The task's name, with the filter where the task has several."""
        return (
            self.result.task
            if self.result.filter == "none" and not self.result.place
            else f"{self.result.task}, {self.result.filter}"
        )


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
        metric, of_sets = self.analysis.metric, {end(key): grid.mpp.value for key, grid in self.analysis.sets.items()}
        own_fip = {} if own.kind.every_order else {metric: self.analysis.fip.value}
        found = {**own_fip, **{f"{metric}_mpp{stem}": value for stem, value in of_sets.items()}}
        return dataclasses.replace(
            own,
            described={**own.described, "metric": metric},
            metrics={**own.metrics, **self.metrics, **found},
            details={**own.details, "analysis": to_json(self.analysis)},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the numbers in plain JSON types."""
        stored = self.run.result.details.get("analysis")
        return {
            "task": self.run.result.task,
            "filter": self.run.result.filter,
            "base": self.run.result.base,
            "metrics": dict(self.metrics),
            "analysis": stored if self.analysis is None else to_json(self.analysis),
            **({"categories": to_json(self.categories)} if self.categories else {}),
            **({"note": self.note} if self.note else {}),
        }


# --- reading ------------------------------------------------------------------------------------


def is_analyzed(kind: Kind) -> bool:
    """Return whether the numbers of a kind are recomputed: those with an index, of every order of the options, of a curve, or of hidden boxes."""
    return bool(kind.has_index or kind.turns or kind.has_points or kind.own)


def one_run(path: Path) -> Taken:
    """Return the newest run whose numbers are recomputed (``is_analyzed``) under a path (``results.newest``)."""
    return newest(path, lambda file: any(is_analyzed(one.kind) for one in read(file).results), "with an index")


def load(path: Path) -> list[TaskRun]:
    """Read the tasks of a run whose numbers can be recomputed, with their records.

    Raises:
        RecordError: a file is missing, cut, of another schema, or holds fewer docs than were scored.
    """
    file = one_run(path).path
    results = read(file).results
    wanted = [one for one in results if is_analyzed(one.kind)]
    if not wanted:
        magic = any(one.kind.name == "magic" for one in results)
        hint = (
            "the numbers of MAGIC tasks are those of the run: type 'lmms-patch magic show'"
            if magic
            else "ask for one, such as --tasks gqa_rci3"
        )
        raise RecordError(f"{file}: no task with an index in this run; {hint}")
    blind = {one.base: scores(one, one.metric) for one in results if one.kind.name == "blind" and not one.place}
    return [TaskRun(one, samples.records(one), blind.get(one.base, {})) for one in wanted]


def scores(result: Result, metric: str) -> dict[int, float]:
    """Return the score of each doc's first view by doc id; docs without a score are left out."""
    first = {record.doc_id: record.views[0].scores.get(metric) for record in samples.records(result)}
    return {doc_id: score for doc_id, score in first.items() if score is not None}


# --- computing ----------------------------------------------------------------------------------


class Logged:
    """The native aggregation of a finished run (``draws.Native``): the run's numbers where nothing was changed, else those of its form."""

    no_calls = "the native aggregation can only be called in the run"

    def __init__(self, run: TaskRun, table: Table, form: forms.Form | None, whole: bool) -> None:
        self._run, self._table, self._form, self._whole = run, table, form, whole

    @property
    def form(self) -> str | None:
        return None if self._form is None else self._form.name

    def whole(self) -> float | None:
        if self._whole and has_fip(self._run.result, self._table):
            own = fip_of(self._run.result, self._table)
            self._check(self._table.metric, self._table.full, own)
            return own
        return None if self._form is None else self._table.value(self._form, self._table.full)

    def over_cells(self, key: Key) -> tuple[float | None, float | None, str]:
        stored, best = self._stored(key), self._table.best(key)
        if stored is not None:
            if (used := best.known).any():
                self._check(f"{self._table.metric} over the docs of grid {key}", self._table.full, stored[0], used)
                self._check(f"{self._table.metric}_mpp{end(key)}", best, stored[1], used)
            return stored
        full, cells, why = of_cells(self._table, key, self._form, self._table.records)
        if self._form is None and not why:
            cells = self._run.result.metrics.get(f"{self._table.metric}_mpp{end(key)}")
        return full, cells, why

    def _stored(self, key: Key) -> tuple[float | None, float | None, str] | None:
        """Return what the run computed for a set; None unless docs and metric are the same."""
        analysis = self._run.result.analysis
        if not self._whole or analysis is None or analysis.metric != self._table.metric or key not in analysis.sets:
            return None
        grid = analysis.sets[key]
        return grid.fip, grid.mpp.value, "" if grid.mpp.value is not None else grid.reason

    def _check(self, name: str, chosen: Chosen, own: float | None, used: Any = None) -> None:
        """Check a number of the results file against the log, since its interval will come from the log."""
        known = chosen.scores if used is None else chosen.scores[used]
        if self._form is not None and own is not None and np.isfinite(known).all():
            check_number(self._run.name, name, self._form, self._table.value(self._form, chosen, used), own)

    def aggregate(self, items: list[Any]) -> float | None:
        return None


def check_number(
    where: str, name: str, form: forms.Form, value: float, own: float, table: Table | None = None
) -> list[str]:
    """Check a number of the results file against the log, within rounding.

    Args:
        where: what an error starts with.
        name: of the number.
        form: of the aggregation.
        value: what the log gives.
        own: what the run reported.
        table: the docs, where only a mean of captions may differ by up to 2 %; None: any mean may.

    Returns:
        A warning where it does so only approximately, as the mean over captions may.

    Raises:
        RecordError: it gives another number.
    """
    # The results file may hold rounded numbers: only as many decimals as it shows can agree.
    decimals = max(2, len(repr(own).partition(".")[2]))
    if not math.isfinite(own) or not math.isfinite(value) or forms.same(value, own, decimals):
        return []
    # For captions ``analysis`` takes the mean although the native aggregation differs a little.
    near = form is forms.MEAN and abs(value - own) <= 0.02 * abs(own)
    if near and (table is None or table.references.captions):
        return [f"{name} is compared as the mean of its docs, {value:.4g}; the run's own aggregation gives {own:.4g}"]
    raise RecordError(
        f"{where}: the sample log gives {name} {value:.4g}, but the run reported {own:.4g}; the log is of another run, or was changed"
    )


def has_fip(result: Result, table: Table) -> bool:
    """Return whether a run reported FIP of a table's docs."""
    return is_native(table) or (result.analysis is not None and result.analysis.metric == table.metric)


def is_native(table: Table) -> bool:
    """Return whether the harness's number is FIP: false with failed calls, and with several orders of options."""
    return not (table.kind.every_order or any(map(failures.unanswered, table.asked_records)))


def fip_of(result: Result, table: Table) -> float | None:
    """Return FIP of a table's docs as stored by the run; None where the run stored none.

    The number under the metric's own name is the harness's: over all docs, in their own order.
    """
    if is_native(table):
        return result.metrics.get(table.metric)
    return result.analysis.fip.value if result.analysis is not None and has_fip(result, table) else None


def recompute(run: TaskRun, changes: Changes | None = None, by_category: bool = False) -> Analyzed:
    """Compute the numbers of a task with changed settings.

    Raises:
        RecordError: the log lacks the metric or categories.
    """
    changes = changes or Changes()
    settings, metric, table = table_of(run, changes)
    kind, sets = run.result.kind, sets_of(run)
    form = form_of(run, table, settings, sets)
    if form is None and table.records:
        return _as_run(run, changes, metric)
    analysis = analyse(table, Logged(run, table, form, True), settings, sets, run.blind)
    categories = _categories(run, table, form, settings, sets) if by_category else {}
    without = sum(record.fields.get("category") is None for record in table.records) if by_category else 0
    notes = [f"{without} docs have no category: they are in no category's numbers"] if without else []
    if by_category and (few := [name for name in category_names(table) if name not in categories]):
        notes.append(
            f"no numbers of categories of which fewer than {LEAST_OF_CATEGORY} docs were asked: {', '.join(few)}"
        )
    note = f"{run.name}: {'; '.join(notes)}" if notes else ""
    return Analyzed(run, analysis, catalogue.columns(analysis, kind), categories, note)


def sets_of(run: TaskRun) -> tuple[Key, ...]:
    """Return the sets of views with an index: grids, or the two sets of boxes."""
    kind = run.result.kind
    return kind.sets(run.result.grids) if kind.has_index else ()


def by_category(run: TaskRun) -> tuple[dict[str, Analysis], str]:
    """Compute the numbers of each category under the run's settings.

    Returns:
        The numbers by category; none, with the reason, where they cannot be computed (no reason where the run names no
        category).
    """
    settings, metric, table = table_of(run, Changes())
    sets = sets_of(run)
    names = category_names(table)
    if len(names) < 2:
        return {}, ""
    form = form_of(run, table, settings, sets)
    if form is None:
        return {}, f"no categories: the aggregation of {metric} can only be computed in the run"
    if len(names) > MOST_CATEGORIES:
        return {}, f"no categories: {len(names)} are more than {MOST_CATEGORIES}"
    without = sum(record.fields.get("category") is None for record in table.records)
    return _categories(
        run, table, form, settings, sets
    ), f"{without} docs have no category: they are in no category's numbers" if without else ""


def of_category(run: TaskRun, name: str) -> Analysis | None:
    """Compute the numbers of a category's docs under the run's settings.

    None where this model has no doc of it, too few of a sample were asked, or only the run could aggregate.
    """
    settings, _, table = table_of(run, Changes())
    form = form_of(run, table, settings, sets_of(run))
    if form is None or name not in category_names(table):
        return None
    return _category(run, table, name, form, settings, sets_of(run))


def category_names(table: Table) -> list[str]:
    """Return the distinct categories of the docs as sorted texts."""
    values = (record.fields.get("category") for record in table.records)
    return sorted({str(value) for value in values if value is not None})


def _part(table: Table, category: str) -> Table:
    """Return the docs of a category as a table, with metric, direction and clusters of the whole table."""
    named = ((record.doc_id, record.fields.get("category")) for record in table.logged)
    return table.of(doc_id for doc_id, value in named if value is not None and str(value) == category)


def _categories(
    run: TaskRun, table: Table, form: forms.Form | None, settings: Settings, sets: Sequence[Key]
) -> dict[str, Analysis]:
    names = category_names(table)
    if not names:
        raise RecordError(
            f"{run.name}: no categories in the log; name one with the option 'category' (docs/options.md)"
        )
    if len(names) > MOST_CATEGORIES:
        raise RecordError(
            f"{run.name}: {len(names)} categories, more than {MOST_CATEGORIES}; choose a field with fewer values"
        )
    found = {name: _category(run, table, name, form, settings, sets) for name in names}
    return {name: one for name, one in found.items() if one is not None}


def _category(
    run: TaskRun, table: Table, name: str, form: forms.Form | None, settings: Settings, sets: Sequence[Key]
) -> Analysis | None:
    """Compute the numbers of a category's docs; None where fewer than ``LEAST_OF_CATEGORY`` of a sample were asked."""
    part = _part(table, name)
    if part.sampling.used and part.sampling.asked_docs < LEAST_OF_CATEGORY:
        return None
    # A category is not the whole run, so its stored numbers cannot serve.
    return analyse(part, Logged(run, part, form, False), settings, sets, run.blind, part=True)


def table_of(run: TaskRun, changes: Changes) -> tuple[Settings, str, Table]:
    """Return settings, metric and records of a task with the changes applied."""
    described = run.result.described
    options = Options.of_file(described["options"], run.name)
    metric = changes.metric or described["metric"]
    # Docs share the objects of equal views, so few are left to look at.
    known = {
        m for view in failures.different(view for record in run.records for view in record.views) for m in view.items
    }
    # Where every call failed the log knows no metric: a metric without scores is then no mistake.
    if known and metric not in known:
        raise RecordError(f"{run.name}: no metric {shown(metric)} in the log; allowed: {', '.join(sorted(known))}")
    higher = run.result.better(metric)
    stored = run.result.details.get("settings", {})
    base = Settings(**{f.name: stored[f.name] for f in dataclasses.fields(Settings) if f.name in stored})
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
            run.records,
            metric,
            higher=higher,
            cluster="cluster" if options.cluster else None,
            whole=forms.is_whole(settings.form),
        ),
    )


def form_of(run: TaskRun, table: Table, settings: Settings, sets: Sequence[Key]) -> forms.Form | None:
    """Return the form of the aggregation: stored by the run, or else recognised from the run's numbers."""
    analysis = run.result.analysis
    # Only for the analysed metric did the run look for a form.
    if analysis and analysis.metric == table.metric:
        return forms.FORMS.get(analysis.form or "")
    checks = [(table.picked(table.full), fip_of(run.result, table))]
    for key in sets:
        best = table.best(key)
        checks.append((table.picked(best).where(best.known), run.result.metrics.get(f"{table.metric}_mpp{end(key)}")))
    return forms.recognise([check for check in checks if check[1] is not None], settings.form)[0]


def _as_run(run: TaskRun, changes: Changes, metric: str) -> Analyzed:
    note = f"{run.name}: the aggregation of {metric} is not a mean, so it can only be computed in the run"
    if changes.metric not in (None, run.result.metric):
        return Analyzed(run, None, {}, note=f"{note}: nothing to show for another metric")
    note += ": these are its own numbers" + (", with its own settings" if changes != Changes() else "")
    known = catalogue.named(run.result.kind, run.result.grids)
    return Analyzed(run, None, {name: value for name, value in run.result.metrics.items() if name in known}, note=note)
