"""The results that a gate judges, and the baseline's result for each of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from lmms_patch.compare import alike
from lmms_patch.compare import result as paired
from lmms_patch.compare.formats import Task
from lmms_patch.errors import OptionError, RecordError, nearest
from lmms_patch.gate.rules import SELECTORS, Rule
from lmms_patch.runs import catalogue
from lmms_patch.runs import run as runs
from lmms_patch.runs.measures import matching
from lmms_patch.runs.numbers import Grid
from lmms_patch.runs.unjudged import BY_JUDGE, Bounds
from lmms_patch.stats.resample import LEVEL, Estimate


class Subject(runs.Labelled):
    """A judged result, or a result of the baseline; ``label`` is its task's name, with the filter where there are several."""

    @cached_property
    def numbers(self) -> Mapping[str, Estimate]:
        """Every number by name, computed from its samples; a number with several names is a single object."""
        return self.result.measures

    @cached_property
    def bounds(self) -> Mapping[str, Bounds]:
        """A judge's numbers with docs without a verdict counted as wrong, and as right; only where there is such a doc."""
        if self.result.magic is None:
            return {}
        found = self.result.magic.bounds
        return found | ({"score": found[self.result.metric]} if self.result.metric in found else {})

    @property
    def partial(self) -> str:
        """The options by which only a part of the benchmark was run, as they are typed; empty where all docs were."""
        limit, offset = self.result.run.limit, self.result.run.offset
        said = "" if limit is None else f"--limit {limit:g}" if isinstance(limit, (int, float)) else f"--limit {limit}"
        return " ".join(filter(None, [said, f"--offset {offset}" if offset else ""]))

    def grid(self, name: str) -> Grid | None:
        """Return the grid of a number by the number's name; None for numbers of no grid."""
        n = catalogue.grids_of(self.result.kind, self.result.grids).get(name)
        return None if n is None else self.result.grid(n)

    def names(self, selector: str) -> tuple[str, ...]:
        """Return its names for a selector (``rules.SELECTORS``); the name for people comes last."""
        one = self.result
        return {
            "task": (one.task, self.label),
            "model": (one.run.model, self.model),
            "base": (one.base,),
            "kind": (one.kind.name,),
        }[selector]

    def selected(self, rule: Rule, selectors: Collection[str] = SELECTORS) -> bool:
        """Return whether a wildcard of each selector matches."""
        return all(
            any(fnmatchcase(name, pattern) for name in self.names(key) for pattern in getattr(rule, key))
            for key in selectors
        )


def read(path: Path, what: str, judged: Collection[Hashable] = ()) -> tuple[list[Subject], list[str]]:
    """Return the newest results under a folder, and notes on the results left aside.

    Args:
        path: a folder, or a results file.
        what: the word for it in messages.
        judged: ``Result.origin`` of results to leave out: a run that is its own baseline would always pass.

    Raises:
        RecordError: there is no run, no wrapped task, or a file that cannot be read; or nothing is left.
    """
    found = [one for run in runs.find([path]) for one in run.results]
    others = [one for one in found if one.origin not in judged]
    if found and not others:
        raise RecordError(f"{path}: the baseline is the run itself, or a copy of it; give a folder with an earlier run")
    if not others:
        raise RecordError(f"{path}: {what} has no wrapped task to judge; ask for one, such as --tasks gqa_rci3")
    newest, older = runs.newest(others)
    named = runs.labels(one.run for one in found)
    notes = [f"{older} older results in {path} left aside: of each model and task the newest counts"] if older else []
    if itself := list(dict.fromkeys(one.task for one in found if one.origin in judged)):
        notes.append(f"{path} holds what is judged, {some(itself, 5)}: left out of the baseline")
    # a verdict rests on the samples, never on numbers that lie beside them
    return [Subject(replace(one, fresh=True), named[one.run.identity], one.label) for one in newest], notes


def select(rule: Rule, results: Sequence[Subject]) -> list[Subject]:
    """Return the results matching all selectors of a rule.

    Raises:
        OptionError: there is none; says which selector finds nothing, and what there is.
        RecordError: one of them is empty.
    """
    left = list(results)
    for key in SELECTORS:
        there = list(dict.fromkeys(one.names(key)[-1] for one in left))
        left = [one for one in left if one.selected(rule, [key])]
        if not left:
            close = nearest(getattr(rule, key)[0].strip("*"), there, 1)
            hint = f"did you mean {close[0]}? " if close else ""
            hint += f"ask for one, such as --tasks {results[0].result.base}_{rule.kind[0]}; " if key == "kind" else ""
            raise OptionError(f"{key} {' or '.join(getattr(rule, key))} matches nothing; {hint}there is {some(there)}")
    for one in left:
        if not one.result.docs:
            raise RecordError(
                f"{one.result.run.path}: nothing was scored in {one.label}; an empty run cannot be judged"
            )
    return left


def some(names: Sequence[str], most: int = 12) -> str:
    """Return names as a list in words, with the number of names beyond ``most``."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# --- the baseline ---------------------------------------------------------------------------------


class Baseline:
    """A folder of earlier results, and the differences to them.

    Args:
        path: the folder.
        ignore: settings that may differ.
        judged: the results that are judged; they and copies of them are left out.

    Raises:
        RecordError: as ``read``; nothing is left without what is judged.
    """

    def __init__(self, path: Path, ignore: Sequence[str], judged: Sequence[Subject] = ()) -> None:
        self.path, self.ignore = path, tuple(ignore)
        self.results, notes = read(path, "the baseline", {one.result.origin for one in judged})
        self.notes = dict.fromkeys(notes)
        # by id: a result is not hashable, and results live as long as the baseline does
        self._partners: dict[int, Subject] = {}
        self._compared: dict[tuple[int, float], Task] = {}

    def partner(self, one: Subject) -> Subject:
        """Return the baseline's result for a judged result: of the same task and, if possible, the same model.

        Raises:
            RecordError: there is none, there are several, or it has other settings.
        """
        if id(one) not in self._partners:
            self._partners[id(one)] = self._partner(one)
        return self._partners[id(one)]

    def _partner(self, one: Subject) -> Subject:
        left = _of_task(self.results, one)
        # each step narrows only where something is left, so another model still finds a partner
        left = [other for other in left if other.result.run.identity == one.result.run.identity] or left
        left = [other for other in left if other.result.run.model == one.result.run.model] or left
        if len(left) != 1:
            there = some([f"{other.label} of {other.model}" for other in left or self.results])
            several = "could be set against several; give a baseline with one of them"
            what = several if left else "has nothing to be set against"
            raise RecordError(f"{self.path}: {one.label} of {one.model} {what}; the baseline has {there}")
        (other,) = left
        if not other.result.docs:
            raise RecordError(f"{other.result.run.path}: nothing was scored in {other.label}: an empty baseline")
        prints = other.result.fingerprint, one.result.fingerprint
        if told := alike.apart(*prints, self.ignore):
            raise RecordError(
                f"{other.result.run.path}: the baseline of {one.label} was made otherwise: {', '.join(told)} differ; "
                "run it again with the same settings, or list under defaults 'ignore' what may differ"
            )
        if ignored := alike.apart(*prints):
            self._note(one, f"differs from the baseline in {', '.join(ignored)}: ignored, as the rules say")
        self._note(one, runs.not_compared(*prints))
        return other

    def _note(self, one: Subject, *said: str) -> None:
        self.notes |= dict.fromkeys(f"{one.label}: {note}" for note in said if note)

    def compared(self, one: Subject, level: float = LEVEL) -> Task:
        """Return the differences of a result to its partner, paired by doc.

        Raises:
            RecordError: other docs, or samples that are not whole.
        """
        key, other = (id(one), level), self.partner(one)
        if key in self._compared:
            return self._compared[key]
        compared = self._compared[key] = paired.compare(other.result, one.result, level=level)
        if only := compared.only_first or compared.only_second:
            where = "the baseline" if compared.only_first else "this run"
            raise RecordError(
                f"{other.result.run.path}: the baseline of {one.label} asks other docs: {len(only)} are in {where} only, such as doc {only[0]}"
            )
        self._note(one, *compared.warnings)
        if compared.identical and one.result.run.model == other.result.run.model:
            dates = f"this run is of {one.result.run.date}, the baseline of {other.result.run.date}"
            self._note(one, f"every score is the baseline's: a model that answers as before, or a copy ({dates})")
        if compared.docs < (docs := max(one.result.docs, other.result.docs)):
            said = f"{compared.docs} of {docs} docs are paired; value, baseline and difference are over those"
            self._note(one, said)
        return compared

    def gone(self, rule: Rule, judged: Sequence[Subject]) -> list[tuple[Subject, str]]:
        """Return what was taken out of the run and the sight of a rule, and why.

        Else the cheapest way to pass would be to withdraw the task, the docs or the grid that fails. A result of the
        baseline stands where this run has none, this run's result elsewhere.
        """
        models = {one.result.run.identity for one in judged}
        # another model in the place of the baseline's only model must have its tasks, too
        if not models & {other.result.run.identity for other in self.results}:
            models = {self.partner(one).result.run.identity for one in judged if rule.of_difference}
        # with another judge ignored, a run without a judge may lack the judge's numbers
        skipped = BY_JUDGE if "judge" in self.ignore else ()
        fewer_docs_allowed = bool({"docs", "limit", "number of docs"} & set(self.ignore))
        out: list[tuple[Subject, str]] = []
        for other in self.results:
            if other.result.run.identity not in models or not other.selected(rule, ("task", "base", "kind")):
                continue
            names = [f"{other.result.kind.index}{n}" for n in other.result.indexed]
            if rule.metric and not (names := matching(other.numbers, rule.metric)):
                continue
            mine = _of_task(judged, other)[:1]
            if not mine:
                out.append((other, "the baseline has this task, this run has not"))
            for one in mine:
                if one.result.docs < other.result.docs and not fewer_docs_allowed:
                    out.append((one, f"{one.result.docs} docs, of {other.result.docs} in the baseline"))
                if lost := [name for name in names if name not in skipped and not matching(one.numbers, name)]:
                    out.append((one, f"the baseline has {some(lost)}, this run has not"))
        return out


def _of_task(results: Sequence[Subject], one: Subject) -> list[Subject]:
    """Return the results with the benchmark and kind of a result: of its task, or else of renamed tasks."""
    fits = [other for other in results if alike.matches(other.result, one.result)]
    return [other for other in fits if other.result.task == one.result.task] or fits
