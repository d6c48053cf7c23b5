"""The results that a gate judges, and the baseline's result for each of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path

from lmms_patch.compare import alike
from lmms_patch.compare import result as paired
from lmms_patch.compare.formats import Task
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.gate.rules import SELECTORS, Rule
from lmms_patch.runs import reading
from lmms_patch.runs import run as runs
from lmms_patch.runs.measures import matching
from lmms_patch.stats.resample import Estimate


class Subject(runs.Labelled):
    """A judged result, or a result of the baseline; ``label`` is its task's name, with the filter where there are several."""

    @cached_property
    def numbers(self) -> Mapping[str, Estimate]:
        """Every number by name, computed from its samples; a number with several names is a single object."""
        return self.result.measures

    def unjudged(self, name: str) -> int:
        """Return how many docs have no verdict of the judge who gives a number."""
        bounds = self.result.magic.bounds if self.result.magic else {}
        found = bounds.get(self.result.metric if name == "score" else name)
        return found.unjudged if found else 0

    @property
    def sampled(self) -> bool:
        """Whether the run left docs out, so that its numbers are estimates."""
        return reading.is_sampled(self.result.analysis)

    @property
    def partial(self) -> str:
        """Which docs were asked, such as ``limit 40 from 80``; empty where all were."""
        limit = self.result.fingerprint["limit"]
        return "" if limit == "all" else f"limit {limit}"

    @property
    def selectable(self) -> dict[str, tuple[str, ...]]:
        """Its names for each selector (``rules.SELECTORS``); the name for people comes last."""
        one = self.result
        return {
            "task": (one.task, self.label),
            "model": (one.run.model, self.model),
            "base": (one.base,),
            "kind": (one.kind.name,),
        }

    def selected(self, rule: Rule, selectors: Collection[str] = SELECTORS) -> bool:
        """Return whether a wildcard of each selector matches."""
        return all(
            any(fnmatchcase(name, pattern) for name in self.selectable[key] for pattern in getattr(rule, key))
            for key in selectors
        )


def read(path: Path, judged: Collection[Hashable] = ()) -> tuple[list[Subject], list[str]]:
    """Return the newest results under a folder, and notes on the results left aside.

    Args:
        path: a folder, or a results file.
        judged: ``Result.origin`` of results to leave out: a run that is its own baseline would always pass.

    Raises:
        RecordError: there is no run, no wrapped task, or a file that cannot be read; or nothing is left.
    """
    found = [one for run in runs.find([path]) for one in run.results]
    others = [one for one in found if one.origin not in judged]
    if found and not others:
        raise RecordError(f"{path}: the baseline is the run itself, or a copy of it; give a folder with an earlier run")
    if not others:
        raise RecordError(f"{path}: no wrapped task to judge; ask for one, such as --tasks gqa_rci3")
    newest, older = runs.newest(others)
    named = runs.labels(one.run for one in found)
    notes = [f"{older} older results in {path} left aside: of each model and task the newest counts"] * (older > 0)
    # a verdict rests on the samples, never on numbers that lie beside them
    fresh = [Subject(replace(one, fresh=True), named[one.run.identity], one.label) for one in newest]
    same: dict[str, list[str]] = {}
    for one in fresh:
        for said in getattr(one.result.analysis, "same", ()):
            same.setdefault(said, []).append(one.label)
    return fresh, [*notes, *(f"{', '.join(names)}: {said}" for said, names in same.items())]


def select(rule: Rule, results: Sequence[Subject]) -> list[Subject]:
    """Return the results matching all selectors of a rule.

    Raises:
        OptionError: there is none; says which selector finds nothing, and what there is.
    """
    left = list(results)
    for key in SELECTORS:
        there = list(dict.fromkeys(one.selectable[key][-1] for one in left))
        left = [one for one in left if one.selected(rule, [key])]
        if not left:
            raise OptionError(f"{key} {' or '.join(getattr(rule, key))} matches nothing; there is {', '.join(there)}")
    return left


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
        self.path, self.ignore = path, ignore
        self.results, self.notes = read(path, {one.result.origin for one in judged})
        self.partner, self.compared = cache(self._partner), cache(self._compare)

    def _partner(self, one: Subject) -> Subject:
        """Return the baseline's result for a judged result: of the same task and, if possible, the same model.

        Raises:
            RecordError: there is none, there are several, or it has other settings.
        """
        left = _of_task(self.results, one)
        # each step narrows only where something is left, so another model still finds a partner
        left = [other for other in left if other.result.run.identity == one.result.run.identity] or left
        left = [other for other in left if other.result.run.model == one.result.run.model] or left
        if len(left) != 1:
            there = ", ".join(f"{other.label} of {other.model}" for other in left or self.results)
            several = "could be set against several; give a baseline with one of them"
            what = several if left else "has nothing to be set against"
            raise RecordError(f"{self.path}: {one.label} of {one.model} {what}; the baseline has {there}")
        (other,) = left
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
        self.notes += [f"{one.label}: {note}" for note in said if note]

    def _compare(self, one: Subject, level: float) -> Task:
        """Return the differences of a result to its partner, paired by doc.

        Raises:
            RecordError: other docs, or samples that are not whole.
        """
        other = self.partner(one)
        compared = paired.compare(other.result, one.result, level=level)
        if only := compared.only_first or compared.only_second:
            raise RecordError(
                f"{other.result.run.path}: the baseline of {one.label} asks other docs, such as {only[0]}"
            )
        self._note(one, *compared.warnings)
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
        fewer_docs_allowed = bool({"docs", "limit", "number of docs"} & set(self.ignore))
        out: list[tuple[Subject, str]] = []
        for other in self.results:
            if other.result.run.identity not in models or not other.selected(rule, ("task", "base", "kind")):
                continue
            names = matching(other.numbers, rule.metric or f"{other.result.kind.index}?")
            if rule.metric and not names:
                continue
            mine = _of_task(judged, other)[:1]
            if not mine:
                out.append((other, "the baseline has this task, this run has not"))
            for one in mine:
                if one.result.docs < other.result.docs and not fewer_docs_allowed:
                    out.append((one, f"{one.result.docs} docs, of {other.result.docs} in the baseline"))
                if lost := [name for name in names if not matching(one.numbers, name)]:
                    out.append((one, f"the baseline has {', '.join(lost)}, this run has not"))
        return out


def _of_task(results: Sequence[Subject], one: Subject) -> list[Subject]:
    """Return the results with the benchmark and kind of a result: of its task, or else of renamed tasks."""
    fits = [other for other in results if alike.matches(other.result, one.result)]
    return [other for other in fits if other.result.task == one.result.task] or fits
