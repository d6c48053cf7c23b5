"""From finished runs to the entries of a report. Reads each sample log line by line: to check it, to count, and to pair it with a blind run. Pure."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_patch.compare import audit
from lmms_patch.compare import magic as magic_pairs
from lmms_patch.compare import result as paired
from lmms_patch.errors import RecordError
from lmms_patch.present.findings import case
from lmms_patch.present.report import magic, magic_examples
from lmms_patch.present.report.data import Entry, Part
from lmms_patch.present.report.examples import Picker
from lmms_patch.rci.recompute import TaskRun, by_category, recompute, scores
from lmms_patch.runs import numbers, reading
from lmms_patch.runs import run as runs
from lmms_patch.runs.failures import has_failed, states
from lmms_patch.runs.logs import Line
from lmms_patch.runs.measures import of_analysis
from lmms_patch.runs.record import Record
from lmms_patch.runs.run import Result, Run
from lmms_patch.stats.intervals import trimmed
from lmms_patch.stats.resample import Estimate

Tell = Callable[[str], None]
EXAMPLES = 2
"""Docs that are picked by each rule."""
MANY, MOST = 100, 400
"""Of more results a page has examples and categories only where they are asked for; and the most results of a page, which are 10 MB."""


@dataclass
class Source:
    """Where an entry comes from.

    Attributes:
        result: the result.
        picked: the lines of the sample log that are shown as examples, by rule.
    """

    result: Result
    picked: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def gather(
    given: Sequence[Run], *, examples: int | None = None, categories: bool | None = None, tell: Tell = lambda line: None
) -> tuple[list[Entry], list[Source], list[str]]:
    """Return the newest result of each model, task and filter.

    Args:
        given: the runs.
        examples: how many docs to pick by each rule; None: ``EXAMPLES``, and none of more than ``MANY`` results.
        categories: also each category by itself, where the run named any; None: of up to ``MANY`` results.
        tell: is handed a line when a log is being read.

    Returns:
        Entries, where each comes from, and warnings.

    Raises:
        RecordError: a sample log is cut or of another run; no run has a wrapped task that scored a doc, or there are more than ``MOST`` results.
    """
    latest, older = runs.newest(result for run in given for result in run.results)
    warnings = [f"{older} older results of the same model and task are not shown"] if older else []
    warnings += [f"{result.run.path}: {result.task} scored nothing" for result in latest if not result.docs]
    latest = [result for result in latest if result.docs]
    if not latest:
        where = ", ".join(str(run.path) for run in given[:3])
        raise RecordError(f"{where}: no wrapped task that scored a doc in these runs; ask for one, such as --tasks gqa_rci3")
    if len(latest) > MOST:
        said = "give runs of fewer models or benchmarks, or rank them all: lmms-patch leaderboard"
        raise RecordError(f"{len(latest)} results are too many for one page, which has at most {MOST}; {said}")
    if (many := len(latest) > MANY) and None in (examples, categories):
        left = [name for name, asked in (("examples", examples), ("categories", categories)) if asked is None]
        typed = [{"examples": f"--examples {EXAMPLES}", "categories": "--categories"}[name] for name in left]
        warnings.append(f"no {' and no '.join(left)}, because there are more than {MANY} results; to have them, type {' '.join(typed)}")
    examples = (0 if many else EXAMPLES) if examples is None else examples
    categories = not many if categories is None else categories
    labels = runs.labels(result.run for result in latest)
    ids = _ids([f"{labels[result.run.identity]}-{result.label}" for result in latest])
    entries, sources = [], []
    for name, result in zip(ids, latest, strict=True):
        model = labels[result.run.identity]
        tell(f"reading {result.label} of {model}")
        read = _read(result, examples, categories)
        blind = _blind(result, latest, warnings)
        entries.append(
            dataclasses.replace(
                read.entry(name, model),
                blind=None if blind is None else blind.measures["score"],
                gain=None if blind is None else _gain(blind, result),
                tst=_tst(result, latest),
            )
        )
        sources.append(Source(result, read.picked))
    return entries, sources, warnings


def _same_docs(one: Result, other: Result) -> bool:
    """Return whether two results are of the same docs of one benchmark, as far as they say."""
    ours, theirs = ((result.details.get("made") or {}).get("docs") for result in (one, other))
    return one.base == other.base and one.docs == other.docs and (None in (ours, theirs) or ours == theirs)


def _blind(result: Result, latest: Sequence[Result], warnings: list[str]) -> Result | None:
    """Return the same model's result on the same docs without the image; None without, and a warning where it was asked other docs."""
    if result.kind.name == "blind":
        return None
    of_model = [one for one in latest if one.run.identity == result.run.identity and one.kind.name == "blind"]
    asked = [one for one in of_model if one.filter == result.filter and _asked_alike(one, result)]
    same = [one for one in asked if _same_docs(one, result)]
    if asked and not same:
        warnings.append(f"{result.task}: the blind run was asked other docs ({asked[-1].docs} and {result.docs}) and is not set beside it")
    return same[-1] if same else None


def _asked_alike(one: Result, other: Result) -> bool:
    return all(one.described[key] == other.described[key] for key in ("base", "metric"))


def _gain(blind: Result, full: Result) -> Estimate | None:
    """Return what the image adds, paired by doc; None where a log is missing, the docs do not match, or there is no full image."""
    if not full.kind.full:
        return None
    with contextlib.suppress(RecordError):
        gained = paired.gain(blind, full)
        return None if gained is None else gained.estimate
    return None


def _tst(result: Result, latest: Sequence[Result]) -> Estimate | None:
    """Return the best text-only cross-validation of the same docs: what one diagnostic finds is there, whatever another misses."""
    scores = [one.measures["score"] for one in latest if one.kind.folds and one.details.get("tst_details") and _same_docs(one, result)]
    return None if result.kind.folds else max(scores, key=lambda one: -1.0 if one.value is None else one.value, default=None)


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

    result: Result
    whole: Part
    categories: dict[str, Part] = field(default_factory=dict)
    excluded: dict[int, Counter[str]] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    picked: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def entry(self, name: str, model: str) -> Entry:
        """Return the result as the report takes it, under an id and a model's name."""
        described, kind = self.result.described, self.result.kind
        analysis = self.whole.analysis
        grids = tuple(int(n) for n in described["grids"]) if kind.index else ()
        told = [*analysis.get("warnings", ()), *(line for n in grids for line in self.whole.grid(n).get("warnings", ()))]
        told += reading.minds(described, self.whole.typed, kind.words) if kind.index and self.whole.typed else []
        told += reading.frames(self.result.details.get("frames_read")).values()
        return Entry(
            name,
            model,
            described["base"],
            self.result.label,
            described["kind"],
            kind.index,
            grids,
            described["metric"],
            self.result.higher_is_better,
            described["options"].get("type") or "",
            self.whole,
            self.categories,
            excluded={n: dict(reasons) for n, reasons in self.excluded.items()},
            failures=dict(self.failures),
            date=self.result.run.date,
            path=str(self.result.run.path),
            warnings=tuple(dict.fromkeys([*told, *self.warnings])),
            tst_details=self.result.details.get("tst_details") or {},
            magic=self.result.details.get("magic") or {},
            size=case(self.result).size,
        )


def _read(result: Result, examples: int, categories: bool) -> _Read:
    """Read the log of a result, which must give the numbers of its results file, and pick its examples."""
    audit.check(result, intervals=False, stored=True)
    if result.kind.name == "magic":
        return _read_magic(result, examples, categories)
    stored = result.details.get("analysis") or {}
    out = _Read(result, Part(result.docs, result.measures, _gate(result.metrics.get("gate")), stored))
    if result.log is None:
        out.warnings.append("no sample log (run with --log_samples): no categories, no examples, no counts of failures")
        _tst_categories(out)
        return out
    picker = Picker(result, examples)
    records = list(_records(result.lines(), out, picker))
    out.picked = picker.picked()
    if result.kind.index:
        _numbers(out, TaskRun(result, records, _blind_scores(result)), categories)
    _tst_categories(out)
    return out


def _read_magic(result: Result, examples: int, categories: bool) -> _Read:
    """Return a MAGIC task: its numbers are the run's own, and its log is checked against them."""
    about = magic_pairs.stored(result)
    try:
        out = _Read(result, Part(result.docs, result.measures, None), warnings=list(about.warnings))
        out.categories = magic.parts(result.details) if categories else {}
    except TypeError as error:
        raise RecordError(
            f"{result.run.path}: {result.task} has a number that is not whole ({error}); the file was changed or written by another program"
        ) from None
    if result.log is None:
        out.warnings.append("no sample log (run with --log_samples): no examples, no contrasts")
        return out
    out.picked = magic_examples.pick(magic_pairs.read(result).values(), examples)
    return out


def _records(lines: Iterator[Line], out: _Read, picker: Picker) -> Iterator[Record]:
    """Yield the record of each line; count and pick as they pass."""
    metric = out.result.metric
    for line in lines:
        record = line.record
        picker.see(line)
        for n, reason in record.excluded.items():
            if not n.isdigit():  # a set of boxes, or the orders of the options
                continue
            out.excluded.setdefault(int(n), Counter())[str(reason)] += 1
        if not record.is_asked:
            yield record
            continue
        views, answers = record.views, line.filtered_resps
        out.failures["views"] += len(views)
        out.failures += Counter() if metric == "bypass" else states(record, metric)  # "bypass": the host's mark of --predict_only
        for i, view in enumerate(views):
            if view.error is not None or has_failed(view):
                out.failures["cells" if i and view.cell is not None else "full"] += 1
        if isinstance(answers, list) and answers and isinstance(answers[0], str) and not answers[0].strip() and not has_failed(views[0]):
            out.failures["empty"] += 1
        yield record


def _blind_scores(result: Result) -> dict[int, float] | None:
    """Return by doc id the scores of the base's blind task in the same run; None without."""
    described = result.described
    for other in result.run.results:
        if other.kind.name == "blind" and other.base == described["base"] and other.filter == result.filter and other.log:
            return scores(other, described["metric"])
    return None


def _numbers(out: _Read, run: TaskRun, categories: bool) -> None:
    """Add each category by itself; with a blind run beside it, hold the gate and the necessity map against that run too."""
    kind = out.result.kind
    if run.blind:
        again = recompute(run)
        if again.analysis is not None:
            analysis = numbers.to_json(again.analysis)
            out.whole = Part(out.whole.docs, {**out.whole.measures, **of_analysis(again.analysis, kind)}, again.analysis.gate.number, analysis)
    by_name, why = by_category(run) if categories else ({}, "")
    if why:
        out.warnings.append(why)
    for name, one in by_name.items():
        analysis = numbers.to_json(one)
        out.categories[name] = Part(one.n_docs, of_analysis(one, kind), one.gate.number, analysis)


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
