"""The results that a gate judges, and the baseline's result for each of them: found, checked to be whole, and compared. Pure."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from lmms_patch.ask.kinds import KINDS
from lmms_patch.compare import result as paired
from lmms_patch.compare.checks import in_words
from lmms_patch.compare.engine import Compared, matches
from lmms_patch.errors import OptionError, RecordError, nearest
from lmms_patch.gate.rules import SELECTORS, Rule
from lmms_patch.runs import catalogue
from lmms_patch.runs import run as runs
from lmms_patch.runs.measures import matching
from lmms_patch.runs.numbers import Grid
from lmms_patch.runs.unjudged import BY_JUDGE, Bounds, stored_bounds
from lmms_patch.stats.resample import LEVEL, Estimate


class Subject(runs.Labelled):
    """A judged result, or a result of the baseline."""

    @property
    def run(self) -> runs.Run:
        """The run."""
        return self.result.run

    @property
    def task(self) -> str:
        """The task's name, with the filter where the task has several."""
        return self.label

    @cached_property
    def measures(self) -> Mapping[str, Estimate]:
        """All numbers by name (``lmms_patch.runs.measures``), without infinite values and nan."""
        with guarded(self.run.path):
            numbers = self.result.measures
            # A number with several names stays one object.
            once = {id(number): checked(number) for number in numbers.values()}
            return {name: once[id(number)] for name, number in numbers.items()}

    def bounds(self, name: str) -> Bounds | None:
        """Return a judge's number with docs without a verdict counted as wrong, and as right.

        None where there is no such doc.

        Raises:
            RecordError: a damaged file.
        """
        if self.kind != "magic":
            return None
        with guarded(self.run.path):
            # Tasks without an object have no bounds: the empty ``numbers`` stand for them.
            found = stored_bounds(self.result.details.get("magic") or {"numbers": {}})
            own = found.get(str(self.result.metric) if name == "score" else name)
            return None if own is None else dataclasses.replace(own, low=checked(own.low), high=checked(own.high))

    @cached_property
    def fingerprint(self) -> Mapping[str, object]:
        """The settings in which this result and its baseline must agree (``Result.fingerprint``)."""
        with guarded(self.run.path):
            return self.result.fingerprint

    @property
    def partial(self) -> str:
        """The options by which only a part of the benchmark was run, as they are typed.

        Empty where all docs were run, or nothing says otherwise.
        """
        limit, offset = self.run.limit, self.run.offset
        parts = (
            [f"--limit {limit:g}" if isinstance(limit, (int, float)) else f"--limit {limit}"]
            if limit is not None
            else []
        )
        return " ".join([*parts, *([f"--offset {offset}"] if offset else [])])

    @property
    def place(self) -> tuple[Path, str]:
        """The path of the results file, links followed, and the task; filters of a task share both."""
        return self.run.path.resolve(), self.result.task

    @property
    def higher(self) -> bool:
        """Whether the primary metric is better when higher."""
        return self.better(self.result.metric)

    def better(self, metric: str) -> bool:
        """Return whether a native metric is better when higher, as its method says."""
        return self.result.kind.method.better(self.result, metric)

    @property
    def kind(self) -> str:
        """The kind of the task (``ask.kinds.KINDS``)."""
        return self.result.kind.name

    def grid(self, name: str) -> Grid | None:
        """Return the grid of a number by the number's name; None for numbers of no grid."""
        n = catalogue.grids_of(self.result.kind, self.result.grids).get(name)
        return None if n is None else self.result.grid(n)

    def names(self, selector: str) -> tuple[str, ...]:
        """Return the names of this result for a selector (``rules.SELECTORS``); the name for people comes last."""
        every = {
            "task": (self.result.task, self.task),
            "model": (self.run.model, self.model),
            "base": (self.result.base,),
            "kind": (self.kind,),
        }
        return every[selector]

    def selected(self, rule: Rule, selectors: Sequence[str] = SELECTORS) -> bool:
        """Return whether this result matches some selectors of a rule."""
        # not ``fnmatch``, which ignores case on Windows alone
        return all(
            any(fnmatchcase(name, one) for name in self.names(key) for one in getattr(rule, key)) for key in selectors
        )


def checked(number: Estimate) -> Estimate:
    """Return an estimate from a file, with None in place of infinite values and nan.

    Raises:
        RecordError: ends that are in the wrong order.
    """
    ends = (number.value, number.se, number.low, number.high)
    value, se, low, high = (None if end is None or not math.isfinite(end) else end for end in ends)
    if value is None or low is None or high is None:
        low = high = None
    elif low > high:
        raise RecordError(f"an interval from {low:g} to {high:g}; the file was changed or written by another program")
    return dataclasses.replace(number, value=value, se=se, low=low, high=high)


@contextlib.contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Raise ``RecordError`` with a short message in place of any error from reading a damaged file."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        raise RecordError(
            f"{path}: not as this version of lmms-patch writes it ({type(error).__name__}: {error})"
        ) from None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror or error})") from None


def read(path: Path, what: str, judged: Container[tuple[Path, str] | str] = ()) -> tuple[list[Subject], int, list[str]]:
    """Return the newest results under a folder, the number of older results, and the left-out results in words.

    Args:
        path: a folder, or a results file.
        what: the word for it in messages.
        judged: results to leave out, as ``Result.place`` and, for copies of them, as ``runs.Result.origin``.

    Raises:
        RecordError: there is no run, no wrapped task, or a file that cannot be read; or nothing is left.
    """
    with guarded(path):
        found = [one for run in runs.find([path]) for one in run.results]
        # A run that is its own baseline would always pass, so it is taken out first and named to the user.
        itself = list(dict.fromkeys(f"{one.task} of {one.run.path.name}" for one in found if _is_judged(one, judged)))
        others = [one for one in found if not _is_judged(one, judged)]
        if itself and not others:
            raise RecordError(
                f"{path}: the baseline is the run itself, or a copy of it; give a folder with an earlier run"
            )
        newest, older = runs.newest(others)
        named = runs.labels(one.run for one in found)
    if not newest:
        raise RecordError(f"{path}: {what} has no wrapped task to judge; ask for one, such as --tasks gqa_rci3")
    return [Subject(one, named[one.run.identity], one.label) for one in newest], older, itself


def _is_judged(one: runs.Result, judged: Container[tuple[Path, str] | str]) -> bool:
    return (one.run.path.resolve(), one.task) in judged or one.origin in judged


def select(rule: Rule, results: Sequence[Subject], source: str) -> list[Subject]:
    """Return the results matching all selectors of a rule.

    Raises:
        OptionError: there is none; says which selector finds nothing, and what there is, or which command makes a
        result of the kind.
        RecordError: one of them is empty.
    """
    left = list(results)
    for key in SELECTORS:
        kept = [one for one in left if one.selected(rule, [key])]
        if not kept:
            if key == "kind":
                raise OptionError(f"{source}: rule {rule.name!r}: {made_by(left, rule.kind)}")
            there = list(dict.fromkeys(one.names(key)[-1] for one in left))
            close = nearest(getattr(rule, key)[0].strip("*"), there, 1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise OptionError(
                f"{source}: rule {rule.name!r}: {key} {' or '.join(getattr(rule, key))} matches nothing; {hint}there is {some(there)}"
            )
        left = kept
    for one in left:
        if not one.result.docs:
            raise RecordError(f"{one.run.path}: nothing was scored in {one.task}; an empty run cannot be judged")
    return left


def made_by(results: Sequence[Subject], kinds: Sequence[str]) -> str:
    """Return an error text on missing kinds of results, with a command to make such a result.

    Args:
        results: those that are there, of other kinds.
        kinds: wildcards of kinds; the command is for the first kind that they match.
    """
    kind = next(KINDS[name] for pattern in kinds for name in KINDS if fnmatchcase(name, pattern))
    bases = list(dict.fromkeys(one.names("base")[-1] for one in results))
    number = results[0].result.grids[:1] or [3] if kind.grid == "required" else ""
    names = [f"{base}_{kind.name}{''.join(map(str, number))}" for base in bases] if kind.suffix else [kind.name]
    run = results[0].run
    # A text-only cross-validation asks no model: its adapter is always the same.
    model = ("tst_rf", "") if kind.folds else (run.adapter, run.model_args)
    again = runs.command(*model, names, str(results[0].fingerprint["limit"]))
    return f"no {kind.name} run{f' of {some(bases, 3)}' if kind.suffix else ''} here; make one: {again}"


def some(names: Sequence[str], most: int = 12) -> str:
    """Return names as a list in words, with the number of names beyond ``most``."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# --- the baseline ---------------------------------------------------------------------------------


class Baseline:
    """A folder of earlier results, and the differences to them.

    Args:
        path: the folder.
        ignore: settings that may differ.
        judged: the results that are judged. They and copies of them are left out of the baseline: a run that is its own
            baseline would always pass.

    Raises:
        RecordError: as ``read``; nothing is left without what is judged.
    """

    def __init__(self, path: Path, ignore: Sequence[str], judged: Sequence[Subject] = ()) -> None:
        self.path, self.ignore = path, tuple(ignore)
        self.results, self.older, self.itself = read(
            path, "the baseline", {key for one in judged for key in (one.place, one.result.origin)}
        )
        left = f"{path} holds what is judged, {some(self.itself, 5)}: left out of the baseline"
        self.notes: dict[str, None] = {left: None} if self.itself else {}
        self._partners: dict[int, Subject] = {}
        self._compared: dict[tuple[int, float], Compared | None] = {}

    def partner(self, one: Subject) -> Subject:
        """Return the baseline's result for a judged result: of the same task and, if possible, the same model.

        Raises:
            RecordError: there is none, there are several, or it has other settings.
        """
        if id(one) not in self._partners:
            self._partners[id(one)] = self._find(one)
        return self._partners[id(one)]

    def _find(self, one: Subject) -> Subject:
        """Find the baseline's only result of the same benchmark, preferring the same task, run identity and model.

        Else a one-line error.
        """
        left = [other for other in self.results if matches(other.result, one.result)]
        # Each step narrows only where something is left, so a renamed task or another model still finds a partner.
        left = [other for other in left if other.result.task == one.result.task] or left
        left = [other for other in left if other.run.identity == one.run.identity] or left
        left = [other for other in left if other.run.model == one.run.model] or left
        if not left:
            there = list(dict.fromkeys(other.task for other in self.results))
            itself = "without the run itself " if self.itself else ""
            raise RecordError(
                f"{self.path}: {itself}the baseline has nothing to set {one.task} against; it has {some(there)}"
            )
        if len(left) > 1:
            names = [f"{other.task} of {other.model}" for other in left]
            raise RecordError(
                f"{self.path}: {one.task} of {one.model} could be set against {some(names)}; give a baseline with one of them"
            )
        self._check(one, left[0])
        return left[0]

    def _check(self, one: Subject, other: Subject) -> None:
        """Refuse a partner with different settings; note the differences allowed by the rules."""
        if not other.result.docs:
            raise RecordError(
                f"{other.run.path}: nothing was scored in {other.task}; an empty baseline cannot be compared with"
            )
        apart = in_words(runs.differences(other.fingerprint, one.fingerprint, self.ignore))
        if apart:
            raise RecordError(
                f"{other.run.path}: the baseline of {one.task} was made otherwise: {', '.join(apart)} differ; "
                "run it again with the same settings, or list under defaults 'ignore' what may differ"
            )
        allowed = in_words(runs.differences(other.fingerprint, one.fingerprint))
        if allowed:
            self.notes[f"{one.task}: differs from the baseline in {', '.join(allowed)}: ignored, as the rules say"] = (
                None
            )
        if unknown := runs.not_compared(other.fingerprint, one.fingerprint):
            self.notes[f"{one.task}: {unknown}"] = None

    def compared(self, one: Subject, level: float = LEVEL) -> Compared | None:
        """Return the differences of a result to its partner, paired by doc; None where a sample log is missing.

        Args:
            one: the result.
            level: of the intervals.

        Raises:
            RecordError: other docs, or a log that is not whole.
        """
        # By id: a result is not hashable, and results live as long as the baseline does.
        key = id(one), level
        if key not in self._compared:
            self._compared[key] = self._compare(one, self.partner(one), level)
        return self._compared[key]

    def _compare(self, one: Subject, other: Subject, level: float) -> Compared | None:
        """Compare two results doc by doc; None, with a note, where a sample log is missing."""
        if one.result.log is None or other.result.log is None:
            where = " and ".join(
                name for name, side in (("this run", one), ("the baseline", other)) if side.result.log is None
            )
            self.notes[f"{one.task}: no sample log in {where}: compared as if on other docs, which finds less"] = None
            return None
        with guarded(other.run.path):
            compared = paired.compare(other.result, one.result, level=level)
        for only, which in ((compared.only_first, "the baseline"), (compared.only_second, "this run")):
            if only:
                raise RecordError(
                    f"{other.run.path}: the baseline of {one.task} asks other docs: {len(only)} are in {which} only, such as doc {only[0]}"
                )
        docs, lines = max(one.result.docs, other.result.docs), list(compared.warnings)
        if compared.identical and one.run.model == other.run.model:
            dates = f"this run is of {one.run.date}, the baseline of {other.run.date}"
            lines.append(
                f"every score is the baseline's: the model answers as before, or one is a copy of the other under another date ({dates})"
            )
        if compared.docs < docs:
            lines.append(f"{compared.docs} of {docs} docs are paired; value, baseline and difference are over those")
        self.notes |= dict.fromkeys(f"{one.task}: {line}" for line in lines)
        return compared

    def check_grids(self, rule: Rule, judged: Sequence[Subject], source: str) -> None:
        """Refuse a run without all numbers of the baseline under the rule.

        This holds for rules that compare nothing, too: a rule over every grid must not pass because the grid that
        failed was left out.

        Raises:
            RecordError: a number is gone.
        """
        # With another judge ignored, a run without a judge may lack the judge's numbers.
        skipped = BY_JUDGE if "judge" in self.ignore else ()
        for one in judged:
            alike = [
                other
                for other in self.results
                if matches(other.result, one.result) and other.run.identity == one.run.identity
            ]
            for other in [other for other in alike if other.task == one.task] or alike[:1]:
                index = KINDS[other.kind].index
                asked = [f"{index}{n}" for n in other.result.grids] if index else []
                names = matching(other.measures, rule.metric) if rule.metric else asked
                gone = [name for name in names if name not in skipped and not matching(one.measures, name)]
                if gone:
                    what = f"the baseline of {one.task} has {some(gone)}, this run has not"
                    raise RecordError(
                        f"{source}: rule {rule.name!r}: {what}; run it with the same grids and metrics, or narrow the rule (metric)"
                    )

    def check_complete(self, rule: Rule, judged: Sequence[Subject], source: str) -> None:
        """Refuse a run without all tasks of the baseline under the rule.

        Else a regression there would not be seen.

        Raises:
            RecordError: a task was not.
        """
        models = {self.partner(one).run.identity for one in judged}
        for other in self.results:
            if other.run.identity not in models or not other.selected(rule, ["task", "base", "kind"]):
                continue
            again = any(matches(other.result, one.result) for one in judged)
            if not again and matching(other.measures, str(rule.metric)):
                what = f"the baseline has {other.task}, this run has not; run it too, or narrow the rule (task, base, kind)"
                raise RecordError(f"{source}: rule {rule.name!r}: {what}")


def check_ignored(ignore: Sequence[str], known: Mapping[str, object], source: str) -> None:
    """Refuse unknown settings under ``ignore``, and settings needed by every comparison.

    Raises:
        OptionError: there is no such setting, or without it two results are not of one benchmark.
    """
    allowed = [key for key in known if key not in paired.SAME]
    for key in ignore:
        if key not in allowed:
            close = nearest(key, allowed, 1)
            why = (
                "two results of other " + key + " cannot be compared"
                if key in paired.SAME
                else "there is no such setting"
            )
            hint = f"did you mean {close[0]}? " if close and key not in paired.SAME else ""
            raise OptionError(f"{source}: defaults: ignore {key!r}: {why}; {hint}allowed: {', '.join(allowed)}")
