"""The results that a gate judges, and the baseline's result for each of them: found, checked whole, and set side by side. Pure."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from lmms_patch.ask.spec import KINDS
from lmms_patch.compare import audit
from lmms_patch.compare import result as paired
from lmms_patch.compare.checks import in_words
from lmms_patch.compare.engine import Compared
from lmms_patch.compare.magic import BY_JUDGE
from lmms_patch.errors import OptionError, RecordError, nearest
from lmms_patch.gate.limits import checked
from lmms_patch.gate.rules import SELECTORS, Rule
from lmms_patch.magic.score.results import higher_is_better
from lmms_patch.runs import run as runs
from lmms_patch.runs.measures import matching, measures
from lmms_patch.runs.results import TaskResult
from lmms_patch.runs.run import Run
from lmms_patch.stats.resample import LEVEL, Estimate

_OF_GRID = re.compile(r"^(?:rci|pcri)(\d+)")


@dataclass(frozen=True)
class Result:
    """One result that is judged, or stands as baseline.

    Attributes:
        run: the run.
        result: one of its wrapped tasks.
        model: the model's name, told apart from others in the folder.
        task: the task's name, with the filter where it has several.
    """

    run: Run
    result: TaskResult
    model: str
    task: str

    @cached_property
    def measures(self) -> Mapping[str, Estimate]:
        """Every number by its name (``lmms_patch.runs.measures``), without values that are no finite numbers."""
        with guarded(self.run.path):
            found = measures(self.result)
            once = {id(one): checked(one) for one in found.values()}  # what is one number by several names stays one
            return {name: once[id(one)] for name, one in found.items()}

    @cached_property
    def fingerprint(self) -> Mapping[str, object]:
        """What two results must share (``runs.fingerprint``)."""
        with guarded(self.run.path):
            return runs.fingerprint(self.run, self.result)

    @cached_property
    def unchecked(self) -> tuple[str, ...]:
        """What of its numbers could not be checked, in words (``audit.check``); whoever asks has its sample log read.

        Raises:
            RecordError: a number is not what its log, or the rest of its file, gives.
        """
        return audit.check(self.run, self.result)

    @property
    def partial(self) -> str:
        """Which part of the benchmark it is of, in words; empty where it is of all docs, or nothing says otherwise."""
        limit, offset = self.run.about.get("limit"), self.run.about.get("offset")
        parts = [f"--limit {limit:g}" if isinstance(limit, (int, float)) else f"--limit {limit}"] if limit not in (None, -1) else []
        return " ".join([*parts, *([f"--offset {offset}"] if offset else [])])

    @property
    def place(self) -> tuple[Path, str]:
        """Its results file, links followed, and its task: what it shares with no other result but those of other filters."""
        return self.run.path.resolve(), self.result.task

    @property
    def higher(self) -> bool:
        """Whether its primary metric is better when higher."""
        return self.better(self.result.described["metric"])

    def better(self, metric: str) -> bool:
        """Whether one of its native metrics is better when higher; of MAGIC tasks that is known by name."""
        if self.kind == "magic":
            return higher_is_better(metric, str((self.result.details.get("magic") or {}).get("variant")))
        return bool(self.result.details.get("higher_is_better", {}).get(metric, True))

    @property
    def kind(self) -> str:
        """``spec.KINDS``."""
        return str(self.result.described["kind"])

    def grid(self, name: str) -> Mapping[str, object]:
        """Return what is stored of the grid that an index is of, by the index's name; empty for other numbers."""
        match = _OF_GRID.match(name)
        grids = (self.result.details.get("analysis") or {}).get("grids") or {}
        return (grids.get(match[1]) or {}) if match else {}

    @property
    def log(self) -> Path | None:
        """Its sample log; None where it was not logged."""
        return self.run.log(self.result)

    def names(self, selector: str) -> tuple[str, ...]:
        """What a selector (``rules.SELECTORS``) may say to mean it; the name for people last."""
        every = {
            "task": (self.result.task, self.task),
            "model": (self.run.model, self.model),
            "base": (str(self.result.described["base"]),),
            "kind": (self.kind,),
        }
        return every[selector]

    def selected(self, rule: Rule, selectors: Sequence[str] = SELECTORS) -> bool:
        """Whether a rule is about it, by some of the selectors."""
        return all(any(fnmatchcase(name, one) for name in self.names(key) for one in getattr(rule, key)) for key in selectors)


@contextlib.contextmanager
def guarded(path: Path) -> Iterator[None]:
    """What a damaged file makes the readers stumble over, as one line.

    Raises:
        RecordError: in place of what was raised.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        raise RecordError(f"{path}: not as this version of lmms-patch writes it ({type(error).__name__}: {error})") from None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror or error})") from None


def read(path: Path, what: str, judged: Container[tuple[Path, str] | str] = ()) -> tuple[list[Result], int, list[str]]:
    """The newest result of each model, task and filter under a folder, how many older ones there are, and what was left out, in words.

    Args:
        path: a folder, or a results file.
        what: what it is to people, for the message.
        judged: results to leave out, as ``Result.place`` and, for copies of them, as ``runs.origin``.

    Raises:
        RecordError: there is no run, no wrapped task, or a file that cannot be read; or nothing is left.
    """
    with guarded(path):
        found = runs.find([path])
        itself = list(dict.fromkeys(f"{one.task} of {run.path.name}" for run in found for one in run.tasks if _is_judged(run, one, judged)))
        found = [_without(run, judged) for run in found]
        if itself and not any(run.tasks for run in found):
            raise RecordError(f"{path}: the baseline is the run itself, or a copy of it; give a folder with an earlier run")
        newest, older = runs.newest(found)
        named = runs.labels(found)
    if not newest:
        raise RecordError(f"{path}: {what} has no wrapped task to judge; ask for one, such as --tasks gqa_rci3")
    return [Result(run, result, named[run.identity], runs.task_label(run, result)) for run, result in newest], older, itself


def _without(run: Run, judged: Container[tuple[Path, str] | str]) -> Run:
    return dataclasses.replace(run, tasks=tuple(one for one in run.tasks if not _is_judged(run, one, judged)))


def _is_judged(run: Run, one: TaskResult, judged: Container[tuple[Path, str] | str]) -> bool:
    return (run.path.resolve(), one.task) in judged or runs.origin(run, one) in judged


def select(rule: Rule, results: Sequence[Result], source: str) -> list[Result]:
    """The results that a rule is about.

    Raises:
        OptionError: there is none; says which selector finds nothing, and what there is.
        RecordError: one of them is empty.
    """
    left = list(results)
    for key in SELECTORS:
        kept = [one for one in left if one.selected(rule, [key])]
        if not kept:
            there = list(dict.fromkeys(one.names(key)[-1] for one in left))
            close = nearest(getattr(rule, key)[0].strip("*"), there, 1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise OptionError(f"{source}: rule {rule.name!r}: {key} {' or '.join(getattr(rule, key))} matches nothing; {hint}there is {_some(there)}")
        left = kept
    for one in left:
        if not one.result.docs:
            raise RecordError(f"{one.run.path}: nothing was scored in {one.task}; an empty run cannot be judged")
    return left


def _some(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# --- the baseline ---------------------------------------------------------------------------------


class Baseline:
    """A folder of earlier results, and the differences to them.

    Args:
        path: the folder.
        ignore: settings that may differ.
        judged: the results that are judged. Where the folder holds those very results, or copies of them, they are left out: a run
            that is its own baseline would always pass.

    Raises:
        RecordError: as ``read``; nothing is left without what is judged.
    """

    def __init__(self, path: Path, ignore: Sequence[str], judged: Sequence[Result] = ()) -> None:
        self.path, self.ignore = path, tuple(ignore)
        self.results, self.older, self.itself = read(
            path, "the baseline", {key for one in judged for key in (one.place, runs.origin(one.run, one.result))}
        )
        left = f"{path} holds what is judged, {_some(self.itself, 5)}: left out of the baseline"
        self.notes: dict[str, None] = {left: None} if self.itself else {}
        self._partners: dict[int, Result] = {}
        self._compared: dict[tuple[int, float], Compared | None] = {}

    def partner(self, one: Result) -> Result:
        """What a result is set against: the same task, and the same model, else the only other one.

        Raises:
            RecordError: there is none, there are several, or it has other settings.
        """
        if id(one) not in self._partners:
            self._partners[id(one)] = self._find(one)
        return self._partners[id(one)]

    def _find(self, one: Result) -> Result:
        alike = [other for other in self.results if paired.matches(other.result, one.result)]
        found = [other for other in alike if other.result.task == one.result.task] or alike
        found = [other for other in found if other.run.identity == one.run.identity] or found
        found = [other for other in found if other.run.model == one.run.model] or found
        if not found:
            there = list(dict.fromkeys(other.task for other in self.results))
            itself = "without the run itself " if self.itself else ""
            raise RecordError(f"{self.path}: {itself}the baseline has nothing to set {one.task} against; it has {_some(there)}")
        if len(found) > 1:
            names = [f"{other.task} of {other.model}" for other in found]
            raise RecordError(f"{self.path}: {one.task} of {one.model} could be set against {_some(names)}; give a baseline with one of them")
        self._check(one, found[0])
        return found[0]

    def _check(self, one: Result, other: Result) -> None:
        """Whether nothing but the model differs; what may differ by the rules is noted."""
        if not other.result.docs:
            raise RecordError(f"{other.run.path}: nothing was scored in {other.task}; an empty baseline cannot be compared with")
        apart = in_words(runs.differences(other.fingerprint, one.fingerprint, self.ignore))
        if apart:
            raise RecordError(
                f"{other.run.path}: the baseline of {one.task} was made otherwise: {', '.join(apart)} differ; "
                "run it again with the same settings, or list under defaults 'ignore' what may differ"
            )
        allowed = in_words(runs.differences(other.fingerprint, one.fingerprint))
        if allowed:
            self.notes[f"{one.task}: differs from the baseline in {', '.join(allowed)}: ignored, as the rules say"] = None
        if unknown := runs.not_compared(other.fingerprint, one.fingerprint):
            self.notes[f"{one.task}: {unknown}"] = None

    def compared(self, one: Result, level: float = LEVEL) -> Compared | None:
        """The differences of a result to its partner, doc by doc; None where one of them has no sample log.

        Args:
            one: the result.
            level: of the intervals.

        Raises:
            RecordError: other docs, or a log that is not whole.
        """
        key = id(one), level
        if key not in self._compared:
            self._compared[key] = self._compare(one, self.partner(one), level)
        return self._compared[key]

    def _compare(self, one: Result, other: Result, level: float) -> Compared | None:
        if one.log is None or other.log is None:
            where = " and ".join(name for name, side in (("this run", one), ("the baseline", other)) if side.log is None)
            self.notes[f"{one.task}: no sample log in {where}: compared as if on other docs, which finds less"] = None
            return None
        with guarded(other.run.path):
            found = paired.compare((other.run, other.result), (one.run, one.result), level=level)
        if found.only_first or found.only_second:
            count, which = (len(found.only_first), "the baseline") if found.only_first else (len(found.only_second), "this run")
            first = (found.only_first or found.only_second)[0]
            raise RecordError(f"{other.run.path}: the baseline of {one.task} asks other docs: {count} are in {which} only, such as doc {first}")
        docs = max(one.result.docs, other.result.docs)
        fewer = f"{found.docs} of {docs} docs are paired; value, baseline and difference are over those" if found.docs < docs else ""
        lines = [*found.warnings, *([fewer] if fewer else [])]
        self.notes |= dict.fromkeys(f"{one.task}: {line}" for line in lines)
        return found

    def check_grids(self, rule: Rule, judged: Sequence[Result], source: str) -> None:
        """Whether every number that the baseline has, and the rule is about, is there again: no grid is gone, and no other metric.

        Also of rules that compare nothing: a rule over every grid must not pass because the grid that failed was left out.

        Raises:
            RecordError: one is not.
        """
        skipped = BY_JUDGE if "judge" in self.ignore else ()
        for one in judged:
            alike = [other for other in self.results if paired.matches(other.result, one.result) and other.run.identity == one.run.identity]
            for other in [other for other in alike if other.task == one.task] or alike[:1]:
                index = KINDS[other.kind].index
                asked = [f"{index}{n}" for n in other.result.described["grids"]] if index else []
                names = matching(other.measures, rule.metric) if rule.metric else asked
                gone = [name for name in names if name not in skipped and not matching(one.measures, name)]
                if gone:
                    what = f"the baseline of {one.task} has {_some(gone)}, this run has not"
                    raise RecordError(f"{source}: rule {rule.name!r}: {what}; run it with the same grids and metrics, or narrow the rule (metric)")

    def check_complete(self, rule: Rule, judged: Sequence[Result], source: str) -> None:
        """Whether what the baseline's models were asked, and the rule is about, was asked again.

        Raises:
            RecordError: something was not: a regression there would not be seen.
        """
        models = {self.partner(one).run.identity for one in judged}
        for other in self.results:
            if other.run.identity not in models or not other.selected(rule, ["task", "base", "kind"]):
                continue
            again = any(paired.matches(other.result, one.result) for one in judged)
            if not again and matching(other.measures, str(rule.metric)):
                what = f"the baseline has {other.task}, this run has not; run it too, or narrow the rule (task, base, kind)"
                raise RecordError(f"{source}: rule {rule.name!r}: {what}")


def check_ignored(ignore: Sequence[str], known: Mapping[str, object], source: str) -> None:
    """Whether settings may be ignored.

    Raises:
        OptionError: there is no such setting, or without it two results are not of one benchmark.
    """
    allowed = [key for key in known if key not in paired.SAME]
    for key in ignore:
        if key not in allowed:
            close = nearest(key, allowed, 1)
            why = "two results of other " + key + " cannot be compared" if key in paired.SAME else "there is no such setting"
            hint = f"did you mean {close[0]}? " if close and key not in paired.SAME else ""
            raise OptionError(f"{source}: defaults: ignore {key!r}: {why}; {hint}allowed: {', '.join(allowed)}")
