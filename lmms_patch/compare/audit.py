"""Are the numbers of a results file those of its own sample log? Every reader of finished runs asks here. Pure.

A results file may be edited, a log may be cut, and both may be of different runs. ``check`` recomputes what can be
recomputed:

- the file with the tasks' objects has the SHA-256 that the results file says.
- within the file: the flat numbers are those of the ``patch`` object, ends of intervals are on the right sides, the
  index is 1 − MPP/FIP, the gate says what its terms give, the grids are those that were asked.
- against the log: how many docs, which; the best views; FIP, MPP and every other number that follows from the records.
  Draws are seeded, so intervals are the same too.

What a run of an earlier version computed by another method, what only the native aggregation's own code can compute,
and whatever lacks its witness in the files cannot be checked: ``check`` names it in words, and the gate's ``require:
checked`` makes it a failure.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import UNSET

from lmms_patch.ask.kinds import Key, end
from lmms_patch.ask.references import shown
from lmms_patch.compare.audit_file import (
    check_columns,
    check_file,
    check_objects,
    check_range,
    check_results_file,
    check_same,
    flat_of,
    refuse,
    unproven,
)
from lmms_patch.compare.audit_records import Records, check_digest, unsealed_of
from lmms_patch.compare.checks import tst_score
from lmms_patch.errors import RecordError
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.recompute import (
    Changes,
    Logged,
    TaskRun,
    check_number,
    fip_of,
    form_of,
    is_native,
    sets_of,
    table_of,
)
from lmms_patch.runs import catalogue, columns, failures
from lmms_patch.runs import numbers as outcome
from lmms_patch.runs.digests import of_line
from lmms_patch.runs.reading import CIRCULAR
from lmms_patch.runs.record import (
    circular,
    in_set,
)
from lmms_patch.runs.results import IMPORTED
from lmms_patch.runs.run import Result
from lmms_patch.runs.scoring import best
from lmms_patch.runs.tables import Table
from lmms_patch.runs.trees import differences, same
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import forms
from lmms_patch.stats.forms import Form
from lmms_patch.stats.resample import Array
from lmms_patch.text import line as one_line

NO_LOG = "no sample log beside the results file (--log_samples writes one): its numbers stand unchecked"
OLD = "made by another version of lmms-patch, which computed some of it otherwise"


@dataclasses.dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes:
        unchecked: what could not be checked, in words; empty where everything was.
        aside: numbers that no rule goes by and that were not computed again: a standard error by lmms-eval's bootstrap,
        for example.
        unproven: what the file alone says of the run, in words.
        unsealed: what beside the numbers no digest of the run covers, in words: a page that shows it says so.
    """

    unchecked: tuple[str, ...]
    aside: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    unsealed: tuple[str, ...] = ()

    @property
    def numbers(self) -> str:
        """Name the unchecked numbers in a text to stand beside the numbers; empty where all were checked."""
        return f"not checked: {'; '.join(self.unchecked)}" if self.unchecked else ""

    @property
    def whole(self) -> str:
        """The same text for a whole page: unchecked numbers, settings, docs and answers."""
        return dataclasses.replace(self, unchecked=(*self.unchecked, *self.unsealed)).numbers


def check(result: Result, *, stored: bool = False) -> Audit:
    """Check the numbers of a result against each other and against the sample log.

    Args:
        result: the result.
        stored: take the records from the Parquet file beside the log, where that was compared with the results file
            when it was written, and the log is still the same file (``samples.checked``). Not for a gate: who changes a
            results file may change its Parquet file too.

    Raises:
        RecordError: a number is not what the others, or the log, give. The message names it, with both values.
    """
    # First, since every number below is read from that file; the results file last (see ``check_results_file``).
    check_objects(result.run)
    found = _numbers(result, stored) if result.docs else Audit(("nothing was scored",))
    return dataclasses.replace(found, unsealed=(*check_results_file(result.run), *found.unsealed))


def _numbers(result: Result, stored: bool) -> Audit:
    """Return what ``check`` finds out about the numbers of a result, and about its log."""
    where = f"{result.run.path}: {result.task}"
    try:
        lacking = check_file(result, where)
        if result.log is None:
            check_range(result, where)
            return Audit((NO_LOG, *lacking))
        if not result.kind.suffix:
            found = _check_own(result, where)
            return dataclasses.replace(found, unchecked=(*lacking, *found.unchecked), unproven=unproven(result))
        log = Records(result, where, stored)
        numbers = _Numbers(log, where)
        unchecked = (*lacking, *numbers.check())
        return Audit(unchecked, tuple(numbers.aside), () if log.sources else unproven(result), log.unsealed)
    # A changed file may hold anything anywhere: such an error means a file to refuse, not a bug to show.
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        raise RecordError(
            f"{where}: not as this version of lmms-patch writes it ({type(error).__name__}: {error})"
        ) from None
    except OSError as error:
        raise RecordError(f"{where}: cannot be read ({error.strerror or error})") from None


def told(results: Iterable[Result]) -> list[str]:
    """Check the numbers of some results, and read Parquet files in place of logs where these were compared before.

    Returns:
        What was not checked, a line for each such result.

    Raises:
        RecordError: as ``check``.
    """
    lines = ((one.label, check(one, stored=True).numbers) for one in results)
    return [one_line(f"{label}: {said}") for label, said in lines if said]


# --- against the sample log -----------------------------------------------------------------------


class _Numbers:
    """The numbers of a result, held against the records of its sample log."""

    def __init__(self, records: Records, where: str) -> None:
        self.where, self.run, self.result, self.kind = where, records.run, records.result, records.kind
        self.unchecked = records.unchecked
        self.aside: list[str] = []
        """Numbers that only the run could compute."""
        self.given: set[str] = set()
        """Flat numbers that were held against the log."""

    def check(self) -> tuple[str, ...]:
        """Check all numbers against the log; return what could not be checked."""
        result = self.result
        analysis, tst = result.analysis, result.tst
        settings, metric, table = table_of(self.run, Changes())
        sets = sets_of(self.run)
        form = form_of(self.run, table, settings, sets)
        # Before the numbers: of a doc that could not be scored they would only say "another number".
        self._check_errors()
        self._check_images()
        if form is None:
            # No aggregation makes a number of calls that all failed: without this line any number would pass as unchecked.
            if analysis and np.isnan(table.full.scores).all():
                check_same(self.where, "fip", analysis.fip.value, None)
            self.unchecked.append(f"{metric} and what is made of it: only its own aggregation can compute it")
        else:
            self.unchecked += check_points(self.run, table, form, sets, folds=False, where=self.where)
        if self.kind.folds:
            self.unchecked += check_points(self.run, table, forms.MEAN, (), folds=True, where=self.where)
        self._check_others(metric, settings.form)
        self._check_errors_of_columns()
        flat = flat_of(result, analysis) if analysis else {}
        if form and analysis:
            fresh = analyse(table, Logged(self.run, table, form, True), settings, sets)
            self._compare(analysis, fresh, "analysis")
            more = {name: value for name, value in catalogue.columns(fresh, self.kind).items() if name not in flat}
            # Other versions may lack columns of this version, or hold them computed otherwise.
            if result.version == outcome.NUMBERS:
                check_columns(result, more, self.where, "the sample log")
            flat |= more
        elif not analysis:
            self.unchecked.append("intervals, chance and gate: the run has none")
        if result.run.adapter == IMPORTED:
            told = circular(self.run.records, metric)
            check_same(self.where, f"{metric}{CIRCULAR}", result.metrics.get(f"{metric}{CIRCULAR}"), told)
            flat[f"{metric}{CIRCULAR}"] = told
        tested = self.kind.method.recompute(self.run.records, seed=settings.seed)
        if tested is not None:
            self._compare(tst, tested, "tst_details")
            self.aside += [f"tst_details.{key}" for key in _OF_DIAGNOSTIC if getattr(tst, key, None)]
        given = {"records", *self.given, *flat, *self.kind.method.flat(tst)}
        odd = [name for name, value in result.metrics.items() if value is not None and name not in given]
        # An unknown number may come from anybody, so it is named and not refused.
        self.unchecked += [f"{name}: the log does not give it" for name in odd if analysis]
        return tuple(dict.fromkeys(self.unchecked))

    def _check_images(self) -> None:
        """Check the digests of the shown images against the records, where both have them."""
        given = shown(self.run.records)
        for name, told in (("image_sizes", self.result.made.image_sizes), ("images", self.result.made.images)):
            if told is not UNSET and name in given:
                check_same(self.where, f"made.{name}", told, given[name])

    def _check_errors(self) -> None:
        """Refuse an MPP in a run with a failed doc."""
        broken = next(
            (record.doc_id for record in self.run.records if any(view.error is not None for view in record.views)), None
        )
        analysis = None if broken is None else self.result.analysis
        for key, grid in analysis.sets.items() if analysis else ():
            if grid.mpp.value is not None:
                raise refuse(
                    self.where, f"MPP {key}", grid.mpp.value, None, f"doc {broken}, which could not be scored,"
                )

    def _check_others(self, primary: str, declared: str | None) -> None:
        """Check native metrics beside the primary, and drops of kinds without index, where they are means or sums."""
        metrics = {m: None for record in self.run.records for m in record.views[0].items}
        self.given |= {primary, *metrics}
        for metric in metrics:
            table = Table(self.run.records, metric, higher=self.result.better(metric), whole=forms.is_whole(declared))
            failed = not is_native(table)
            wanted = [] if metric == primary or failed else [(metric, table.full)]
            for n in self.result.grids if not self.kind.has_index else ():
                wanted.append((f"{metric}_drop{n}", self._worst(table, n)))
            if metric != primary:
                wanted += [(f"{metric}_mpp{end(key)}", table.best(key)) for key in sets_of(self.run)]
            self.given |= {name for name, _ in wanted}
            for name, chosen in wanted:
                self._check_other(
                    name, table, chosen, self.result.metrics.get(name), declared if metric == primary else None
                )
            if failed and (own := self.result.metrics.get(metric)) is not None:
                items = self._items(metric) if self.kind.every_order and self._is_mean(metric) else None
                if items is not None:
                    check_same(self.where, metric, own, float(items.mean()))
                else:
                    # For the primary metric rules use FIP (no failed calls, every order), not this number.
                    said = self.aside if metric == primary else self.unchecked
                    said.append(f"{metric} as lmms-eval counts it")

    def _check_errors_of_columns(self) -> None:
        """Check columns with standard errors: ours against the estimates, the harness's against the docs' items."""
        known = columns.estimates(self.result)
        for (metric, sort), told in columns.errors(self.result).items():
            own = [known[metric].se] if not sort and metric in known else []
            spread = None if sort == "_clustered" else self._spread(metric)
            if any(same(told, one) for one in (*own, spread)):
                continue
            natives = self.result.stored.higher_is_better
            native = next(
                (name for name in natives if metric == name or metric.startswith((f"{name}_mpp", f"{name}_drop"))), None
            )
            if native is None or (spread is not None and (sort or self._is_mean(native))):
                raise refuse(self.where, f"{metric}_stderr{sort}", told, next(iter(own), spread))
            self.aside.append(f"{metric}_stderr{sort}")

    def _is_mean(self, metric: str) -> bool:
        """Return whether the task's config makes a native metric a mean; else lmms-eval may use a bootstrap."""
        return self.result.run.aggregation(self.result.task, metric) == "mean"

    def _spread(self, metric: str) -> float | None:
        """Compute the standard error of a metric as lmms-eval does: deviation of scores by √docs.

        None where the log lacks scores.
        """
        items = self._items(metric)
        return None if items is None or len(items) < 2 else float(np.std(items, ddof=1) / math.sqrt(len(items)))

    def _items(self, metric: str) -> Array | None:
        """Return the items averaged by lmms-eval for a metric, over the full images or over the best cells.

        None where the log does not hold all of it.
        """
        native, _, key = metric.rpartition("_mpp")
        if not self._is_whole or (native and self.kind.every_order):
            return None
        views = ((record.views, record.best.get(key.removeprefix("_")) if native else 0) for record in self.run.records)
        items = [own[place].items.get(native or metric) for own, place in views if place is not None]
        return np.array(items, float) if all(isinstance(item, (int, float)) for item in items) else None

    @cached_property
    def _is_whole(self) -> bool:
        """Whether each doc was asked and answered."""
        return not any(record.estimated or failures.unanswered(record) for record in self.run.records)

    def _worst(self, table: Table, n: int) -> Chosen:
        """Return for each doc the item of the most harmful hidden cell; for an excluded doc, None."""
        places: list[int | None] = []
        for record in table.records:
            cells = [i for i, view in enumerate(record.views) if in_set(view, n)]
            own = best([record.views[i].scores.get(table.metric) for i in cells], not table.higher)
            places.append(None if str(n) in record.excluded else record.best.get(str(n)) if own is None else cells[own])
        return table.at(places)

    def _check_other(self, name: str, table: Table, chosen: Chosen, own: float | None, declared: str | None) -> None:
        if own is None:
            return
        known = chosen.known
        picked = table.picked(chosen).where(known)
        value = own
        # A drop is FIP less M with a cell hidden, both over the same docs.
        if "_drop" in name:
            full = table.picked(table.full).where(known)
            form = next(
                (one for one in (forms.FORMS.get(declared or ""), forms.MEAN, forms.PERCENT) if one is not None),
                forms.MEAN,
            )
            if known.any() and forms.same(forms.value_of(form, full) - forms.value_of(form, picked), own):
                return
        elif known.any() and forms.recognise([(picked, value)], declared)[0] is not None:
            return
        self.unchecked.append(f"{name}: no mean of its docs")

    def _compare(self, stored: Any, fresh: Any, path: str) -> None:
        """Compare an object of the run with the same object computed anew from the log.

        Where another version computed a number, only what all compute alike counts.
        """
        for place, own, given in differences(stored, fresh, path, self.result.version):
            if outcome.since(place) <= self.result.version:
                raise refuse(self.where, place, own, given)
            # No rule goes by the necessity map, and earlier versions counted lucky docs in it.
            if ".necessity" not in place:
                self.unchecked.append(f"intervals, chance and gate ({OLD})")


_OF_DIAGNOSTIC = ("causes", "importance", "shuffled")
"""Parts of a cross-validation that only a model's run gives."""


# --- the numbers that every version computes alike ------------------------------------------------


def check_points(
    run: TaskRun, table: Table, form: Form | None, sets: Sequence[Key], *, folds: bool, where: str = ""
) -> list[str]:
    """Check FIP and MPP of the run against the log: the full images, and the best views of each set.

    Args:
        run: the run.
        table: all its docs.
        form: of its aggregation; None: nothing can be checked.
        sets: those of an index; empty for kinds without one.
        folds: a text-only cross-validation.
        where: what an error starts with; default: the task's name.

    Returns:
        Warnings: numbers that are only nearly the run's own.

    Raises:
        RecordError: a number is another: it is the log of another run, or was changed.
    """
    if form is None:
        return []
    where = where or run.name
    own = run.result.metrics.get("tst") if folds else fip_of(run.result, table)
    scores = np.array([tst_score(record) for record in table.records]) if folds else table.full.scores
    out = []
    if own is not None and np.isfinite(scores).all():
        value = float(scores.mean()) if folds else table.value(form, table.full)
        out += check_number(where, table.metric, form, value, own, table)
    for key in sets:
        out += _check_best(run, table, form, key, where)
    return out


def _check_best(run: TaskRun, table: Table, form: Form, key: Key, where: str) -> list[str]:
    """Check FIP and MPP over the docs used by a set.

    Docs that could not be scored: then the run has no such number.
    """
    best = table.best(key)
    used = best.known
    if not used.any() or any(view.error is not None for record in table.records for view in record.views):
        return []
    analysis, name = run.result.analysis, f"{table.metric}_mpp{end(key)}"
    fip = analysis.sets[key].fip if analysis and key in analysis.sets else None
    numbers = {
        f"{table.metric} over the docs of grid {key}": (table.full, fip),
        name: (best, run.result.metrics.get(name)),
    }
    warnings = {}
    for what, (chosen, own) in numbers.items():
        if own is not None and np.isfinite(chosen.scores[used]).all():
            warnings[what] = check_number(where, what, form, table.value(form, chosen, used), own, table)
    return warnings.get(name, [])  # of FIP it is said already


# --- methods with a log of their own --------------------------------------------------------------


def _check_own(result: Result, where: str) -> Audit:
    """Check the numbers of a task whose method reads its own log, by recomputing each."""
    method = result.kind.method
    again = method.again(result)
    unchecked = [*check_digest(result, result.log, again.hashes), *again.unchecked]
    unsealed = unsealed_of(
        result, (of_line(line.doc_id, line.input, line.filtered_resps, line.target) for line in again.lines)
    )
    for place, own, fresh in differences(again.kept, again.fresh, result.kind.name, result.version):
        if outcome.since(place) <= result.version:
            raise refuse(where, place, own, fresh)
        unchecked.append(f"intervals ({OLD})")
    given = {"records", "n_failed", *method.flat(result.magic)}
    odd = [name for name, value in result.metrics.items() if value is not None and name not in given]
    unchecked += [f"{name}: the log does not give it" for name in odd]
    errors = columns.errors(result)
    aside = again.aside + [f"*_stderr{sort}" for sort in dict.fromkeys(sort for _, sort in errors if sort)]
    for (name, sort), told in errors.items():
        if not sort:
            one = again.numbers.get(name)
            check_same(where, f"{name}_stderr", told, one and one.se, method.held)
    return Audit(tuple(dict.fromkeys(unchecked)), tuple(aside), unsealed=unsealed)
