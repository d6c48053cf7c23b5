"""From finished runs to the entries of a report. Reads each sample log line by line: to check it, to count, and to pair it with a blind run. Pure."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_patch.ask.spec import KINDS
from lmms_patch.compare import audit
from lmms_patch.compare import magic as magic_pairs
from lmms_patch.compare import result as paired
from lmms_patch.errors import RecordError
from lmms_patch.present.report import magic, magic_examples
from lmms_patch.present.report.data import Entry, Part
from lmms_patch.present.report.examples import Picker
from lmms_patch.rci.recompute import TaskRun, by_category, recompute
from lmms_patch.runs import numbers, reading
from lmms_patch.runs import run as runs
from lmms_patch.runs.failures import has_failed
from lmms_patch.runs.logs import Line, read_lines
from lmms_patch.runs.measures import measures, of_analysis
from lmms_patch.runs.record import Record
from lmms_patch.runs.results import TaskResult
from lmms_patch.runs.run import Run
from lmms_patch.stats.intervals import trimmed
from lmms_patch.stats.resample import Estimate

Tell = Callable[[str], None]


@dataclass
class Source:
    """Where an entry comes from.

    Attributes:
        run, result: the run and its result.
        picked: the lines of the sample log that are shown as examples, by rule.
    """

    run: Run
    result: TaskResult
    picked: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def gather(
    given: Sequence[Run], *, examples: int = 2, categories: bool = True, tell: Tell = lambda line: None
) -> tuple[list[Entry], list[Source], list[str]]:
    """Return the newest result of each model, task and filter.

    Args:
        given: the runs.
        examples: how many docs to pick by each rule.
        categories: also each category by itself, where the run named any.
        tell: is handed a line when a log is being read.

    Returns:
        Entries, where each comes from, and warnings.

    Raises:
        RecordError: a sample log is cut or of another run; no run has a wrapped task that scored a doc.
    """
    latest, older = runs.newest(given)
    warnings = [f"{older} older results of the same model and task are not shown"] if older else []
    warnings += [f"{run.path}: {result.task} scored nothing" for run, result in latest if not result.docs]
    latest = [(run, result) for run, result in latest if result.docs]
    if not latest:
        where = ", ".join(str(run.path) for run in given[:3])
        raise RecordError(f"{where}: no wrapped task that scored a doc in these runs; ask for one, such as --tasks gqa_rci3")
    labels = runs.labels(run for run, _ in latest)
    ids = _ids([f"{labels[run.identity]}-{runs.task_label(run, result)}" for run, result in latest])
    entries, sources = [], []
    for name, (run, result) in zip(ids, latest, strict=True):
        tell(f"reading {runs.task_label(run, result)} of {labels[run.identity]}")
        read = _read(run, result, latest, examples, categories)
        blind = _blind(run, result, latest, warnings)
        entries.append(
            dataclasses.replace(
                read.entry(name, labels[run.identity]),
                blind=None if blind is None else measures(blind[1])["score"],
                gain=None if blind is None else _gain(blind, (run, result)),
                tst=_tst(result, latest),
            )
        )
        sources.append(Source(run, result, read.picked))
    return entries, sources, warnings


def _same_docs(one: TaskResult, other: TaskResult) -> bool:
    """Return whether two results are of the same docs of one benchmark, as far as they say."""
    ours, theirs = ((result.details.get("made") or {}).get("docs") for result in (one, other))
    return one.described["base"] == other.described["base"] and one.docs == other.docs and (None in (ours, theirs) or ours == theirs)


def _blind(run: Run, result: TaskResult, latest: Sequence[tuple[Run, TaskResult]], warnings: list[str]) -> tuple[Run, TaskResult] | None:
    """Return the same model's result on the same docs without the image; None without, and a warning where it was asked other docs."""
    if result.described["kind"] == "blind":
        return None
    of_model = [pair for pair in latest if pair[0].identity == run.identity and pair[1].described["kind"] == "blind"]
    asked = [pair for pair in of_model if pair[1].filter == result.filter and _asked_alike(pair[1], result)]
    same = [pair for pair in asked if _same_docs(pair[1], result)]
    if asked and not same:
        warnings.append(f"{result.task}: the blind run was asked other docs ({asked[-1][1].docs} and {result.docs}) and is not set beside it")
    return same[-1] if same else None


def _asked_alike(one: TaskResult, other: TaskResult) -> bool:
    return all(one.described[key] == other.described[key] for key in ("base", "metric"))


def _gain(blind: tuple[Run, TaskResult], full: tuple[Run, TaskResult]) -> Estimate | None:
    """Return what the image adds, paired by doc; None where a log is missing, the docs do not match, or there is no full image."""
    if not KINDS[full[1].described["kind"]].full:
        return None
    with contextlib.suppress(RecordError):
        gained = paired.gain(blind, full)
        return None if gained is None else gained.estimate
    return None


def _tst(result: TaskResult, latest: Sequence[tuple[Run, TaskResult]]) -> Estimate | None:
    """Return the best text-only cross-validation of the same docs: what one diagnostic finds is there, whatever another misses."""
    kind = KINDS[result.described["kind"]]
    scores = [measures(r)["score"] for _, r in latest if KINDS[r.described["kind"]].folds and r.details.get("tst_details") and _same_docs(r, result)]
    return None if kind.folds else max(scores, key=lambda one: -1.0 if one.value is None else one.value, default=None)


def _ids(texts: Sequence[str]) -> list[str]:
    """Return names for use in a page: letters, digits and hyphens; each once."""
    out: list[str] = []
    for text in texts:
        plain = "e-" + (re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "entry")
        taken = sum(one == plain or re.fullmatch(re.escape(plain) + r"-\d+", one) is not None for one in out)
        out.append(f"{plain}-{taken + 1}" if taken else plain)
    return out


@dataclass
class _Read:
    """What one result and its log give."""

    run: Run
    result: TaskResult
    whole: Part
    categories: dict[str, Part] = field(default_factory=dict)
    excluded: dict[int, Counter[str]] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    picked: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def entry(self, name: str, model: str) -> Entry:
        described, kind = self.result.described, KINDS[self.result.described["kind"]]
        analysis = self.whole.analysis
        grids = tuple(int(n) for n in described["grids"]) if kind.index else ()
        told = [*analysis.get("warnings", ()), *(line for n in grids for line in self.whole.grid(n).get("warnings", ()))]
        told += reading.minds(analysis) if kind.index else []
        return Entry(
            name,
            model,
            described["base"],
            runs.task_label(self.run, self.result),
            described["kind"],
            kind.index,
            grids,
            described["metric"],
            bool(self.result.details.get("higher_is_better", {}).get(described["metric"], True)),
            described["options"].get("type") or "",
            self.whole,
            self.categories,
            excluded={n: dict(reasons) for n, reasons in self.excluded.items()},
            failures=dict(self.failures),
            date=self.run.date,
            path=str(self.run.path),
            warnings=tuple(dict.fromkeys([*told, *self.warnings])),
            tst_details=self.result.details.get("tst_details") or {},
            magic=self.result.details.get("magic") or {},
        )


def _read(run: Run, result: TaskResult, latest: Sequence[tuple[Run, TaskResult]], examples: int, categories: bool) -> _Read:
    audit.check(run, result, intervals=False)
    if result.described["kind"] == "magic":
        return _read_magic(run, result, examples, categories)
    stored = result.details.get("analysis") or {}
    out = _Read(run, result, Part(result.docs, measures(result), _gate(result.metrics.get("gate")), stored))
    log = run.log(result)
    if log is None:
        out.warnings.append("no sample log (run with --log_samples): no categories, no examples, no counts of failures")
        _tst_categories(out)
        return out
    picker = Picker(result, examples)
    records = list(_records(read_lines(log, result.place, lean=True), out, picker))
    out.picked = picker.picked()
    if KINDS[result.described["kind"]].index:
        _numbers(out, TaskRun(result, records, _blind_scores(run, result)), categories)
    _tst_categories(out)
    return out


def _read_magic(run: Run, result: TaskResult, examples: int, categories: bool) -> _Read:
    """Return a MAGIC task: its numbers are the run's own, and its log is checked against them."""
    about = magic_pairs.stored(run, result)
    try:
        out = _Read(run, result, Part(result.docs, measures(result), None), warnings=[str(line) for line in about["warnings"]])
        out.categories = magic.parts(result.details) if categories else {}
    except TypeError as error:
        raise RecordError(
            f"{run.path}: {result.task} has a number that is not whole ({error}); the file was changed or written by another program"
        ) from None
    if run.log(result) is None:
        out.warnings.append("no sample log (run with --log_samples): no examples, no contrasts")
        return out
    out.picked = magic_examples.pick(magic_pairs.read(run, result).values(), examples)
    return out


def _records(lines: Iterator[Line], out: _Read, picker: Picker) -> Iterator[Record]:
    """Yield the record of each line; count and pick as they pass."""
    for line in lines:
        record = line.record
        picker.see(line)
        for n, reason in record.excluded.items() if not KINDS[out.result.described["kind"]].regions else ():
            out.excluded.setdefault(int(n), Counter())[str(reason)] += 1
        views, answers = record.views, line.filtered_resps
        out.failures["views"] += len(views)
        for i, view in enumerate(views):
            if view.error is not None or has_failed(view):
                out.failures["cells" if i and view.cell is not None else "full"] += 1
        if isinstance(answers, list) and answers and isinstance(answers[0], str) and not answers[0].strip() and not has_failed(views[0]):
            out.failures["empty"] += 1
        yield record


def _blind_scores(run: Run, result: TaskResult) -> dict[int, float] | None:
    """Return by doc id the scores of the base's blind task in the same run; None without."""
    described = result.described
    for other in run.tasks:
        about = other.described
        if about["kind"] == "blind" and about["base"] == described["base"] and other.filter == result.filter and (log := run.log(other)):
            scores = {line.record.doc_id: line.record.views[0].scores.get(described["metric"]) for line in read_lines(log, other.place, lean=True)}
            return {doc_id: score for doc_id, score in scores.items() if score is not None}
    return None


def _numbers(out: _Read, run: TaskRun, categories: bool) -> None:
    """Add each category by itself; with a blind run beside it, also free the index of what the text alone gives."""
    index = KINDS[out.result.described["kind"]].index
    if run.blind:
        again = recompute(run)
        if again.analysis is not None:
            analysis = numbers.to_json(again.analysis)
            out.whole = Part(out.whole.docs, {**out.whole.measures, **of_analysis(analysis, index)}, again.analysis.gate.number, analysis)
    by_name, why = by_category(run) if categories else ({}, "")
    if why:
        out.warnings.append(why)
    for name, one in by_name.items():
        analysis = numbers.to_json(one)
        out.categories[name] = Part(one.n_docs, of_analysis(analysis, index), one.gate.number, analysis)


def _tst_categories(out: _Read) -> None:
    """Add the categories into which a text-only cross-validation splits by itself."""
    for name, stored in ((out.result.details.get("tst_details") or {}).get("categories") or {}).items():
        score = Estimate(stored["accuracy"], None, stored["low"], stored["high"], stored["docs"], stored["docs"], 0)
        score = trimmed(score, (0.0, 1.0)) if score.value is not None and 0 <= score.value <= 1 else score  # those of earlier versions could leave it
        bare = {key: Estimate(stored[key], None, None, None, stored["docs"], stored["docs"], 0) for key in ("majority", "chance", "s")}
        own = {"score": score, "tst": score, "tst_majority": bare["majority"], "chance": bare["chance"], "tst_s": bare["s"]}
        out.categories[name] = Part(stored["docs"], own, None)


def _gate(number: float | None) -> int | None:
    return None if number is None else int(number)
