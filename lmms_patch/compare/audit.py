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
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import UNSET

from lmms_patch.ask.kinds import Key, end
from lmms_patch.ask.references import shown
from lmms_patch.ask.spec import WrapSpec, parse
from lmms_patch.ask.views import between
from lmms_patch.compare.checks import tst_score
from lmms_patch.errors import PatchError, RecordError
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
from lmms_patch.runs import catalogue, columns, failures, samples
from lmms_patch.runs import numbers as outcome
from lmms_patch.runs.digests import of_line
from lmms_patch.runs.logs import read_lines
from lmms_patch.runs.numbers import Analysis, Grid
from lmms_patch.runs.reading import CIRCULAR
from lmms_patch.runs.record import (
    TURNS,
    Record,
    View,
    circular,
    hashed_text,
    in_set,
    in_worst_order,
    log_digest,
)
from lmms_patch.runs.results import IMPORTED, objects_file, sample_log
from lmms_patch.runs.run import Result, Run
from lmms_patch.runs.scoring import best, scalar
from lmms_patch.runs.tables import Table
from lmms_patch.runs.trees import TOLERANCE, differences, estimates, parts, same, written_by
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import forms
from lmms_patch.stats.forms import Form
from lmms_patch.stats.resample import Array, Estimate
from lmms_patch.text import clean
from lmms_patch.text import line as one_line

CHANGED = "the file was changed, or the log is of another run"
NO_LOG = "no sample log beside the results file (--log_samples writes one): its numbers stand unchecked"
NO_COUNT = "whether all docs were asked (the file lacks the harness's count, n-samples)"
UNPROVEN = (
    "that all docs were asked is what the file says: nothing that the log's digest covers tells how many there are"
)
NO_DIGEST = "settings, model and date (an earlier version recorded no digest of them)"
NO_ANSWERS = "prompts, answers and golds (an earlier version recorded no digest of them)"
OLD = "made by another version of lmms-patch, which computed some of it otherwise"
DECLARED = 5
"""Docs from which on a gap in their numbers may show a missing rank."""


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
    # First, since every number below is read from that file; the results file last (see ``_check_results_file``).
    _check_objects(result.run)
    found = _numbers(result, stored) if result.docs else Audit(("nothing was scored",))
    return dataclasses.replace(found, unsealed=(*_check_results_file(result.run), *found.unsealed))


def _numbers(result: Result, stored: bool) -> Audit:
    """Return what ``check`` finds out about the numbers of a result, and about its log."""
    where = f"{result.run.path}: {result.task}"
    try:
        lacking = _check_file(result, where)
        if result.log is None:
            _check_range(result, where)
            return Audit((NO_LOG, *lacking))
        if not result.kind.suffix:
            found = _check_own(result, where)
            return dataclasses.replace(found, unchecked=(*lacking, *found.unchecked), unproven=_unproven(result))
        log = _Log(result, where, stored)
        unchecked = (*lacking, *log.check())
        return Audit(unchecked, tuple(log.aside), () if log.sources else _unproven(result), log.unsealed)
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


def _refuse(where: str, name: str, reported: Any, given: Any, by: str = "the sample log") -> RecordError:
    return RecordError(f"{where}: {by} gives {name} {_said(given)}, but the run reported {_said(reported)}; {CHANGED}")


def _match(where: str, name: str, reported: Any, given: Any, by: str = "the sample log") -> None:
    """Check a reported value against the value from another source."""
    if not same(reported, given):
        raise _refuse(where, name, reported, given, by)


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = "none" if value is None else str(outcome.to_json(value))
    return text if len(text) <= 60 else f"{text[:57]}..."


# --- within the results file ----------------------------------------------------------------------


def _check_objects(run: Run) -> None:
    """Check the SHA-256 of the file with the tasks' objects against the digest in the results file."""
    if run.digests and run.digests[0] != run.digests[1]:
        told, found = run.digests
        raise RecordError(
            f"{objects_file(run.path)}: its SHA-256 is {found[:16]}..., but {run.path.name} says {told[:16]}...; the file was changed"
        )


def _check_results_file(run: Run) -> list[str]:
    """Check the digest over settings, model and date of a results file.

    This comes last: of a number that was changed another check says more.

    Returns:
        What cannot be checked.
    """
    if run.digest is None:
        return [NO_DIGEST]
    told, found = run.digest
    if told != found:
        raise RecordError(
            f"{run.path}: its digest is {found}, but the run reported {told}; its settings, its model or its date were changed"
        )
    return []


def _check_file(result: Result, where: str) -> list[str]:
    """Check what needs no log; return what cannot be checked, in words."""
    stored, analysis = result.stored, result.analysis
    _check_version(result, written_by(stored), where)
    flat = {name: value for name, value in result.details.items() if value is None or isinstance(value, (int, float))}
    _check_columns(result, flat, where, "the object of all its numbers")
    for path, one in estimates(stored):
        _check_estimate(path, one, where)
    lacking = _check_size(result, where)
    method = result.kind.method
    _check_columns(result, method.flat(result.magic or result.tst), where, method.held)
    if not result.kind.suffix:
        return lacking
    _check_settings(result, where)
    if analysis is None:
        return lacking
    _check_grids(result, analysis, where)
    _check_columns(result, _flat(result, analysis), where, "the analysis in the same file")
    for key, grid in analysis.sets.items():
        _check_index(grid, f"{where}, {key if str(key).isalpha() else f'grid {key}'}")
    _check_gate(analysis, where)
    if analysis.n_docs > result.docs:
        raise _refuse(where, "n_docs", analysis.n_docs, f"at most {result.docs}", "the number of its records")
    for key, grid in analysis.sets.items():
        if grid.excluded > analysis.n_docs:
            raise _refuse(
                where, f"n_excluded{key}", grid.excluded, f"at most {analysis.n_docs}", "the number of its docs"
            )
    return lacking


def _check_columns(result: Result, flat: Mapping[str, Any], where: str, by: str) -> None:
    """Check the columns of a result against the values in another part of the file.

    A file may lack some of the columns.
    """
    for name, value in flat.items():
        if name in result.metrics:
            _match(where, name, result.metrics[name], value, by)


def _check_version(result: Result, first: int, where: str) -> None:
    """Refuse a run whose stated version is older than its contents; older versions are checked less.

    Args:
        result: the result.
        first: the first version that wrote what the run holds.
        where: what an error starts with.
    """
    # A run with a separate file of objects is of version 1 or later.
    first = max(first, 1 if result.run.digests else 0)
    if result.version < first:
        raise RecordError(
            f"{where}: made.numbers is {result.version}, but it holds what version {first} was the first to write; the file was changed"
        )


def _check_estimate(path: str, one: Estimate, where: str) -> None:
    value, low, high = one.value, one.low, one.high
    if (low is None) != (high is None):
        raise RecordError(
            f"{where}: {path} has an interval with one end; the file was changed or written by another program"
        )
    # Rounding may put a value a hair outside an interval without width.
    slack = TOLERANCE * max([1.0, *(abs(end) for end in (value, low, high) if end is not None)])
    if low is not None and high is not None and (value is None or not low - slack <= value <= high + slack):
        raise RecordError(
            f"{where}: {path} is {_said(value)}, outside its own interval from {low:.6g} to {high:.6g}; the file was changed"
        )
    if (one.se or 0) < 0:
        raise RecordError(
            f"{where}: {path} has a standard error or level that cannot be; the file was changed or written by another program"
        )


def _check_size(result: Result, where: str) -> list[str]:
    """Check the number of docs against the harness's count; return what the count leaves open, in words."""
    run, counts = result.run, result.run.counted(result.task)
    if counts is None:
        return [NO_COUNT]
    there = counts.original - run.offset
    asked = min(counts.effective, there)
    if asked < there and run.limit is None:
        raise _refuse(where, "limit", run.limit, f"{asked} (of {there} docs)", "the harness's count of its samples")
    # A task on docs' own boxes skips docs without boxes, so fewer records than docs are right there.
    if result.docs > asked or (result.docs < asked and not result.kind.own_boxes):
        raise RecordError(
            f"{where}: {result.docs} docs have a record, but the harness asked {asked}; a rank's part is missing, or {CHANGED}"
        )
    return []


def _unproven(result: Result) -> tuple[str, ...]:
    """Return a note where only the results file says whether the whole benchmark was asked; else nothing."""
    claims = result.run.limit is None and result.run.counted(result.task) is not None
    return (UNPROVEN,) if claims and result.all_docs is None and result.run.adapter != IMPORTED else ()


def _check_settings(result: Result, where: str) -> None:
    """Check the settings of the statistics against the task's options."""
    options, settings = result.options, parts(result.stored.settings)
    said = {name: getattr(options, name) for name in ("seed", "delta", "scale", "chance", "signed")}
    for name, value in {**said, "form": (options.aggregation or {}).get(result.metric)}.items():
        # Files of the first versions may lack settings.
        if result.version or settings[name]:
            _match(where, f"settings.{name}", settings[name], value, "its configuration")


def _check_grids(result: Result, analysis: Analysis, where: str) -> None:
    """Check grids and metric of an analysis against the task's name, kind and columns."""
    kind, named = result.kind, _spec_of(result.task)
    if named and (named.base, named.kind) == (result.base, kind) and list(named.grids) != list(result.grids):
        raise _refuse(where, "grids", _listed(result.grids), _listed(named.grids), "its name")
    _match(where, "metric", result.metric, analysis.metric, "the analysis in the same file")
    wanted = kind.sets(result.grids) if kind.prefix else analysis.sets
    if sorted(map(str, analysis.sets)) != sorted(map(str, wanted)):
        raise _refuse(where, "grids", _listed(analysis.sets), _listed(wanted), "what was asked")


def _spec_of(name: str) -> WrapSpec | None:
    try:
        return parse(name)
    except PatchError:
        return None


def _listed(names: Iterable[Key]) -> str:
    return ", ".join(map(str, names)) or "none"


def _flat(result: Result, analysis: Analysis) -> dict[str, Any]:
    """Return the columns of an analysis."""
    out: dict[str, Any] = catalogue.columns(analysis, result.kind)
    failed, metric = analysis.failed, analysis.metric
    # With failed calls or several orders the harness's number is not FIP.
    if not (failed and failed.first) and not result.kind.every_order:
        out[metric] = analysis.fip.value
    if result.kind.prefix:
        out |= {f"{metric}_mpp{end(key)}": grid.mpp.value for key, grid in analysis.sets.items()}
    # Files without a version may lack both.
    unknown = () if result.version else ((failed, ("n_failed",)), (analysis.gate.looks, ("n_null", "fip0")))
    return {
        name: value for name, value in out.items() if not any(name in names for there, names in unknown if not there)
    }


def _check_index(grid: Grid, where: str) -> None:
    """Check the index against 1 − MPP/FIP, and the gap against FIP − MPP."""
    fip, mpp = grid.fip, grid.mpp.value
    for name, own in (("index", grid.index.value), ("gap", grid.gap.value)):
        if own is None:
            continue
        # An index on FIP 0 would divide by zero: no run writes such an index.
        if fip is None or mpp is None or (name == "index" and not fip):
            raise _refuse(where, name, own, None, "FIP and MPP")
        _match(where, name, own, 1 - mpp / fip if name == "index" else fip - mpp, f"FIP {fip:.6g} and MPP {mpp:.6g}")


def _check_gate(analysis: Analysis, where: str) -> None:
    """Check the gate's verdict against the gate's terms, and refuse an index behind a failed gate."""
    gate = analysis.gate
    fip, chance, threshold = gate.fip, gate.chance, gate.threshold
    _match(where, "gate.fip", fip, analysis.fip.value, "the analysis in the same file")
    _match(where, "gate.chance", chance, analysis.chance.value, "the analysis in the same file")
    if (
        fip is not None
        and chance is not None
        and threshold is not None
        and gate.delta is not None
        and gate.se is not None
    ):
        _match(where, "gate.threshold", threshold, chance + max(gate.delta, 2 * gate.se), "the gate's own terms")
    unseen = any(look.value is False for look in gate.looks)
    above = 0.0 if fip is None or threshold is None else (fip - threshold) / max(1.0, abs(threshold))
    # Within the tolerance of the threshold rounding alone could turn the verdict, so both stand.
    if gate.valid and (unseen or above < -TOLERANCE):
        raise _refuse(where, "gate", "valid", "not valid", "the gate's own terms")
    if gate.valid is False:
        if not unseen and fip is not None and threshold is not None and above >= TOLERANCE:
            raise _refuse(where, "gate", "not valid", "valid", "the gate's own terms")
        for key, grid in analysis.sets.items():
            if grid.index.value is not None:
                raise _refuse(where, f"an index ({key})", grid.index.value, None, "the gate, which fails,")


def _check_range(result: Result, where: str) -> None:
    """Refuse scores far outside the metric's scale; used where no log tells the true scores.

    The scale is a guess, so this is generous: 0 to 1 (of a percentage to 100) where the gold answers score no more,
    else to twice what they score, since a scorer may give an answer more than it gives the gold.
    """
    analysis = result.analysis
    if analysis is None or analysis.form not in ("mean", "percent", "macro") or not result.better(analysis.metric):
        return
    top = analysis.ceiling
    if not top or top < 0:
        return
    unit, top = (100.0 if analysis.form == "percent" else 1.0), max(top, result.options.scale or top)
    bound = unit if top <= unit else 2 * top
    scores = {"FIP": analysis.fip.value}
    for key, grid in analysis.sets.items():
        scores |= {f"FIP over the docs of {key}": grid.fip, f"MPP {key}": grid.mpp.value}
    for name, value in scores.items():
        if value is not None and value > bound * (1 + TOLERANCE):
            raise RecordError(
                f"{where}: {name} is {value:.6g}, but the gold answers score {top:.6g}; the file was changed"
            )


# --- against the sample log -----------------------------------------------------------------------


def _check_digest(result: Result, path: object, hashes: Iterable[bytes]) -> list[str]:
    """Check the digest of the log against the digest in the results file; return what cannot be checked."""
    told = result.made.log
    if told is UNSET:
        return ["the log as a whole (an earlier version recorded no digest of it)"]
    if told != (digest := log_digest(hashes, result.all_docs)):
        raise RecordError(
            f"{path}: not the log that the run wrote: its digest is {digest}, but the run reported {told}; {CHANGED}"
        )
    return []


def _unsealed(result: Result, hashes: Iterable[bytes] | None) -> tuple[str, ...]:
    """Check the digest of prompts, answers and golds of the log; return what cannot be checked.

    Args:
        result: the result.
        hashes: of the lines (``digests.of_line``); None: the Parquet file was read, whose rows are held to the log.
    """
    told = result.made.answers
    if told is UNSET:
        return (NO_ANSWERS,)
    if hashes is not None and told != (digest := log_digest(hashes)):
        raise RecordError(
            f"{result.log}: its prompts, answers or golds are not those that the run wrote: "
            f"their digest is {digest}, but the run reported {told}; {CHANGED}"
        )
    return ()


class _Log:
    """The records of a result, checked against the results file."""

    def __init__(self, result: Result, where: str, stored: bool) -> None:
        self.where, self.result, self.kind = where, result, result.kind
        self.path = sample_log(result.run.path, result.task)
        self.hashes: list[bytes] = []
        self.answers: list[bytes] = []
        self.sources: set[int] = set()
        """Docs whose images other docs were asked on."""
        self._views: dict[int, tuple[View, int]] = {}
        """Views that were checked, by their id, each with its number in ``_places``: docs share the objects of equal views."""
        self._places: dict[tuple[Any, ...], int] = {}
        self._checked: set[tuple[Any, ...]] = set()
        """Of docs whose best views were checked, what that goes by: many docs have it alike."""
        known = samples.checked(result) if stored and result.pipelines == 1 else None
        self.run = TaskRun(result, self._records(result.pipelines) if known is None else self._of_table(known))
        self.unchecked = _check_digest(result, self.path, self.hashes) if known is None else []
        self.unsealed = _unsealed(result, self.answers if known is None else None)
        self.aside: list[str] = []
        """Numbers that only the run could compute."""
        self.given: set[str] = set()
        """Flat numbers that were held against the log."""
        exchanged, named = (
            any(map(told, self.run.records))
            for told in (lambda one: one.exchanged is not None, lambda one: one.answer.gold_at)
        )
        _check_version(result, 3 if exchanged else 2 if named else 0, where)

    def _of_table(self, records: list[Record]) -> list[Record]:
        """Check each record of the Parquet file and the set of their docs; return the records."""
        for record in records:
            self._check_record(record, None)
        self._check_docs([record.doc_id for record in records])
        return records

    def _check_docs(self, doc_ids: Sequence[int]) -> None:
        """Refuse a log with missing docs, or with docs outside the harness's count."""
        # Tasks with boxes skip docs without boxes, so gaps in their numbers are no sign of a missing rank.
        if not self.kind.regions and (gap := missing_rank(list(doc_ids))):
            raise RecordError(f"{self.path}: {gap}; a rank's part is missing")
        run = self.result.run
        counts, first = run.counted(self.result.task), run.offset
        # Imported rows keep the numbers of their table, which need not begin at 0.
        numbered = run.adapter != IMPORTED
        if numbered and counts and doc_ids and not first <= min(doc_ids) <= max(doc_ids) < first + counts.effective:
            said = f"docs {min(doc_ids)} to {max(doc_ids)} have a record, but the harness asked {counts.effective} from doc {first} on"
            raise RecordError(f"{self.path}: {said}; {CHANGED}")
        if numbered and counts and (all_docs := self._least_docs()) > counts.original:
            said = (
                f"the records tell of {all_docs} docs or more, but the harness's count is {counts.original} (n-samples)"
            )
            raise RecordError(f"{self.path}: {said}; {CHANGED}")

    def _least_docs(self) -> int:
        """Return the least number of docs of the benchmark, as file and log show.

        A wrong image may come from any doc of the benchmark, also from one that was not asked. So its doc id bounds the
        number from below.
        """
        return max(self.result.all_docs or 0, 1 + max(self.sources, default=-1))

    def _records(self, pipelines: int) -> list[Record]:
        """Return the records of this filter, each checked alone; check the number of lines of the log."""
        times, out = Counter[int](), []
        # The lines of all filters are counted: a lost line of any filter shows a damaged log.
        for line in read_lines(self.path, lean=True):
            record = line.record
            self._check_record(record, line.doc_id)
            times[record.doc_id] += 1
            # A log has a line of each filter for each doc, in the order of the filters.
            if times[record.doc_id] == self.result.place + 1:
                self.hashes.append(hashed_text(bytes(line.patch)))
                self.answers.append(of_line(record.doc_id, line.input, line.filtered_resps, line.target))
                out.append(record)
        docs = self.result.docs
        if times.total() != docs * pipelines:
            raise RecordError(
                f"{self.path}: {times.total()} lines, but the run scored {docs * pipelines}; the file is not whole, or of another run"
            )
        if wrong := [doc for doc, count in times.items() if count != pipelines]:
            said = f"doc {wrong[0]} has {times[wrong[0]]} lines, but the task has {pipelines} filter{'s' * (pipelines > 1)}"
            raise RecordError(f"{self.path}: {said}; each doc has one line per filter: two runs in one file?")
        self._check_docs(list(times))
        return out

    def _check_record(self, record: Record, doc_id: Any) -> None:
        """Check a record's task, kind, grids, views, and best views."""
        if record.base != self.result.base:
            said = f"records of {clean(record.base)}, but {self.result.task} asks {self.result.base}"
            raise RecordError(f"{self.path}: {said}; the file is of another run")
        where = f"{self.path}: doc {record.doc_id}"
        if doc_id is not None and doc_id != record.doc_id:
            raise _refuse(where, "doc_id", record.doc_id, doc_id, "its line")
        _match(where, "task", record.task, self.result.task, "the results file")
        _match(where, "kind", record.kind, self.kind.name, "the results file")
        _match(where, "grids", record.grids, self.result.grids, "the results file")
        self.sources |= {record.wrong_image.source} if record.wrong_image else set()
        metric = self.result.metric
        for view in (*record.views, *record.wrong_views):
            # Docs share the objects of equal views (``_views``), so most views were checked with an earlier doc.
            if id(view) not in self._views:
                self._check_view(view, metric, where)
        alike = (
            *(self._views[id(view)][1] for view in record.views),
            *(tuple(record.best.items()), tuple(record.excluded), record.answer.options),
        )
        # With ``asked``, what is right also depends on the doc's plan, so such a doc is always checked.
        if record.asked is None and alike in self._checked:
            return
        if self.kind.turns:
            self._check_orders(record, where)
        for key in self.kind.sets(self.result.grids):
            self._check_set(record, key, metric, where)
            if self.kind.shifted and str(key) not in record.excluded:
                there = [(one.kind, one.row, one.col) for one in record.views if one.kind == "window" and one.n == key]
                whole = [(one.kind, one.row, one.col) for one in between(int(key))]
                if there != whole:
                    raise _refuse(where, f"windows of grid {key}", len(there), len(whole), "the grid")
        if record.asked is None:
            self._checked.add(alike)

    def _check_view(self, view: View, metric: str, where: str) -> None:
        """Check a view's scores against the view's items, and store the view with a number for its place and score."""
        for name, score in view.scores.items():
            item = view.items.get(name)
            if isinstance(item, (int, float)) and not same(scalar(item), score):
                raise _refuse(where, f"the score of a view ({name})", score, scalar(item), "its item")
        of = (view.kind, view.n, view.row, view.col, view.relevant, view.turn, view.gold_at, view.scores.get(metric))
        self._views[id(view)] = view, self._places.setdefault(of, len(self._places))

    def _check_set(self, record: Record, key: Key, metric: str, where: str) -> None:
        """Check the cells (or boxes) of a doc, and the kept view among them."""
        # A doc asked in every order counts with its worst order, so the best cell is chosen among worst orders.
        if self.kind.every_order:
            record = in_worst_order(record, metric, self.result.better(metric))
        views = record.views
        places = [i for i, view in enumerate(views) if in_set(view, key)]
        kept = record.best.get(str(key))
        if str(key) in record.excluded:
            if kept is not None:
                raise _refuse(where, f"best {key}", kept, None, "being excluded")
            return
        if isinstance(key, int):
            self._check_cells(record, key, [views[i].cell or 0 for i in places], where)
        if kept is not None and kept not in places:
            raise _refuse(where, f"best {key}", kept, "one of its own views", "the set")
        own = best([views[i].scores.get(metric) for i in places], self.result.better(metric) == self.kind.keeps_best)
        if own is not None and kept != places[own]:
            raise _refuse(where, f"best {key}", kept, places[own], "the scores of its views")

    def _check_orders(self, record: Record, where: str) -> None:
        """Check the orders of each view: as many as the doc has options, each place of the gold once.

        A doc whose options cannot be moved has one view.
        """
        of_views: dict[Any, list[tuple[int, int]]] = {}
        for view in record.views:
            of_views.setdefault((view.n, view.cell), []).append((view.turn or 0, view.gold_at or 0))
        options = 0 if TURNS in record.excluded else record.answer.options
        for (n, cell), own in of_views.items():
            golds = sorted(gold for _, gold in own)
            if [turn for turn, _ in sorted(own)] != list(range(max(1, options))) or (
                options and golds != list(range(1, options + 1))
            ):
                told = "the full image" if cell is None else f"cell {cell} of grid {n}"
                raise _refuse(where, f"orders of {told}", len(own), max(1, options), "the number of its options")

    def _check_cells(self, record: Record, n: int, cells: Sequence[int], where: str) -> None:
        """Check the cells of a grid: all, or as many as the doc's record counts as asked."""
        asked, whole = record.asked, list(range(1, self.kind.cells(n) + 1))
        if asked is None or asked.block == 0:
            if cells != whole:
                raise _refuse(where, f"cells of grid {n}", len(cells), len(whole), "the grid")
            return
        if cells != sorted(set(cells) & set(whole)) or bool(cells) != (asked.steps == 2):
            raise _refuse(
                where, f"cells of grid {n}", len(cells), "1 or more" if asked.steps == 2 else 0, "how the doc was asked"
            )
        every = 1 + sum(map(self.kind.cells, record.grids))
        if len(record.views) * record.is_asked + asked.unasked != every:
            raise _refuse(
                where,
                "views that were not asked",
                asked.unasked,
                every - len(record.views) * record.is_asked,
                "the grids",
            )

    # --- numbers ----------------------------------------------------------------------------------

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
                _match(self.where, "fip", analysis.fip.value, None)
            self.unchecked.append(f"{metric} and what is made of it: only its own aggregation can compute it")
        else:
            self.unchecked += check_points(self.run, table, form, sets, folds=False, where=self.where)
        if self.kind.folds:
            self.unchecked += check_points(self.run, table, forms.MEAN, (), folds=True, where=self.where)
        self._check_others(metric, settings.form)
        self._check_errors_of_columns()
        flat = _flat(result, analysis) if analysis else {}
        if form and analysis:
            fresh = analyse(table, Logged(self.run, table, form, True), settings, sets)
            self._compare(analysis, fresh, "analysis")
            more = {name: value for name, value in catalogue.columns(fresh, self.kind).items() if name not in flat}
            # Other versions may lack columns of this version, or hold them computed otherwise.
            if result.version == outcome.NUMBERS:
                _check_columns(result, more, self.where, "the sample log")
            flat |= more
        elif not analysis:
            self.unchecked.append("intervals, chance and gate: the run has none")
        if result.run.adapter == IMPORTED:
            told = circular(self.run.records, metric)
            _match(self.where, f"{metric}{CIRCULAR}", result.metrics.get(f"{metric}{CIRCULAR}"), told)
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
                _match(self.where, f"made.{name}", told, given[name])

    def _check_errors(self) -> None:
        """Refuse an MPP in a run with a failed doc."""
        broken = next(
            (record.doc_id for record in self.run.records if any(view.error is not None for view in record.views)), None
        )
        analysis = None if broken is None else self.result.analysis
        for key, grid in analysis.sets.items() if analysis else ():
            if grid.mpp.value is not None:
                raise _refuse(
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
                    _match(self.where, metric, own, float(items.mean()))
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
                raise _refuse(self.where, f"{metric}_stderr{sort}", told, next(iter(own), spread))
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
                raise _refuse(self.where, place, own, given)
            # No rule goes by the necessity map, and earlier versions counted lucky docs in it.
            if ".necessity" not in place:
                self.unchecked.append(f"intervals, chance and gate ({OLD})")


_OF_DIAGNOSTIC = ("causes", "importance", "shuffled")
"""Parts of a cross-validation that only a model's run gives."""


def missing_rank(ids: Sequence[int]) -> str:
    """Name the docs missing in regular steps, as after the loss of a rank's part; else empty.

    >>> missing_rank([0, 2, 4, 6, 8, 10])
    '6 docs, of every 2 from doc 0 on only one'
    >>> missing_rank(list(range(10))), missing_rank([0, 1, 5, 9])
    ('', '')
    """
    if len(ids) < DECLARED:
        return ""
    first, span = min(ids), max(ids) - min(ids) + 1
    there = set(ids)
    if len(there) == span:
        return ""
    for ranks in range(2, min(64, len(ids)) + 1):
        kept = {doc % ranks for doc in there}
        if len(kept) < ranks and len(there) == sum(
            len(range(first + (own - first) % ranks, first + span, ranks)) for own in kept
        ):
            many = "one" if len(kept) == 1 else str(len(kept))
            return f"{len(there)} docs, of every {ranks} from doc {first} on only {many}"
    return ""


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
    unchecked = [*_check_digest(result, result.log, again.hashes), *again.unchecked]
    unsealed = _unsealed(
        result, (of_line(line.doc_id, line.input, line.filtered_resps, line.target) for line in again.lines)
    )
    for place, own, fresh in differences(again.kept, again.fresh, result.kind.name, result.version):
        if outcome.since(place) <= result.version:
            raise _refuse(where, place, own, fresh)
        unchecked.append(f"intervals ({OLD})")
    given = {"records", "n_failed", *method.flat(result.magic)}
    odd = [name for name, value in result.metrics.items() if value is not None and name not in given]
    unchecked += [f"{name}: the log does not give it" for name in odd]
    errors = columns.errors(result)
    aside = again.aside + [f"*_stderr{sort}" for sort in dict.fromkeys(sort for _, sort in errors if sort)]
    for (name, sort), told in errors.items():
        if not sort:
            one = again.numbers.get(name)
            _match(where, f"{name}_stderr", told, one and one.se, method.held)
    return Audit(tuple(dict.fromkeys(unchecked)), tuple(aside), unsealed=unsealed)
