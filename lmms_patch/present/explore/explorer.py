"""What the explorer's page is told: tasks with their necessity maps, columns of all docs, and single docs.

In plain JSON types; writes nothing.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.errors import RecordError, message
from lmms_patch.present.explore.docs import Docs, Seen, digits, table_of
from lmms_patch.present.explore.views import NOT_ASKED
from lmms_patch.rci import recompute
from lmms_patch.runs import reading
from lmms_patch.runs.need import NEEDS, UNKNOWN, has_classes
from lmms_patch.runs.numbers import Necessity
from lmms_patch.runs.run import Result, Taken, labels, newest_of
from lmms_patch.text import line

NAME = 160
"""Characters of a name."""
MANY, FIRST = 3_000, 500
"""Of a task with more docs the first are shown before the rest is read."""


@dataclass
class ModelAnswers:
    """One model's answers to a task.

    Attributes:
        result: the task of its run.
        blind: the same base task asked without an image, of the same run, with a sample log; None: there is none.
        docs: as far as they are read; None: not yet.
        blind_docs: those of ``blind``.
        whole: whether all are read.
    """

    result: Result
    blind: Result | None
    docs: Docs | None = None
    blind_docs: Docs | None = None
    whole: bool = False
    _maps: dict[str | None, dict[str, Any] | None] = field(default_factory=dict)

    @property
    def right_blind(self) -> NDArray[np.float64] | None:
        """Whether each doc is right in the blind run: 1, 0, or nan; None where there is no blind run."""
        return (
            None
            if self.blind_docs is None
            else _aligned(self.blind_docs.views.first_right, self.blind_docs, _docs(self), np.nan)
        )

    def necessity(self, category: str | None = None) -> dict[str, Any] | None:
        """Return the necessity map at the finest grid; None where no map exists or the docs are still being read.

        The map of all docs is the one that the run stored, where there is one and no blind run beside it. A run that
        left docs out has no other map: the run alone knows which docs the shares are of.

        Args:
            category: the name of a category; None: all docs.
        """
        analysis, sampled = self.result.analysis, reading.is_sampled(self.result.analysis)
        if not has_classes(self.result):
            return None
        stored = analysis is not None and (self.blind is None or sampled)
        if category is None and stored and analysis is not None and analysis.necessity:
            return _map(analysis.necessity[0])
        if sampled or not self.whole:
            return None
        if category not in self._maps:  # the bootstrap takes a while, and the page asks again and again
            self._maps[category] = self._computed(category)
        return self._maps[category]

    def _computed(self, category: str | None) -> dict[str, Any] | None:
        """Return the necessity map of a category or of all docs by the function that the run calls; None where no doc has a class."""
        run = self._run
        found = recompute.recompute(run).analysis if category is None else recompute.of_category(run, category)
        return _map(found.necessity[0]) if found and found.necessity else None

    @cached_property
    def _run(self) -> recompute.TaskRun:
        """The result with its records, and the scores of the blind run beside it."""
        blind = {} if self.blind is None else recompute.scores(self.blind, self.result.metric)
        return recompute.TaskRun(self.result, blind)


@dataclass
class Task:
    """A task of one run, or the same task of two runs.

    Attributes:
        name: as it is shown; with the filter pipeline where there are several. No two tasks have the same name.
        sides: the answers of each model; of a task that only one of two runs has, None for the other.
        note: what to mind; may be empty.
        fault: why its docs cannot be read; empty where they can, so far.
    """

    name: str
    sides: list[ModelAnswers | None]
    note: str = ""
    fault: str = ""

    @property
    def known(self) -> list[ModelAnswers]:
        """The sides whose run has this task."""
        return [side for side in self.sides if side is not None]

    @property
    def main(self) -> ModelAnswers:
        """The side whose docs are listed."""
        return self.known[0]

    @property
    def ready(self) -> bool:
        """Whether some docs of every side are read, enough to show."""
        return all(side.docs is not None for side in self.known)

    @property
    def whole(self) -> bool:
        """Whether all docs of every side are read."""
        return all(side.whole for side in self.known)

    def load(self) -> None:
        """Read the docs of all sides; on any error, store the reason in ``fault``.

        No error is raised, so that the other tasks can be shown.
        """
        try:
            for side in self.known:
                self._load_blind(side)
                for docs in _read(side.result):
                    side.docs = docs
                side.whole = True
            if any(reading.is_sampled(side.result.analysis) for side in self.known):
                self._note("a quick run: shares are of the docs that were asked whole")
        except Exception as error:  # the docs are read in a thread of their own, where nobody would hear of it
            self.fault = line(f"{self.name}: its docs cannot be read: {message(error)}")

    def _note(self, said: str) -> None:
        """Add a text to the task's note, unless the note has the text already."""
        self.note = line("; ".join(dict.fromkeys(filter(None, [self.note, said]))))

    def _load_blind(self, side: ModelAnswers) -> None:
        """Read the docs of a side's blind run; on any error, drop the blind run and say so in the note."""
        if side.blind is None:
            return
        try:
            side.blind_docs = Docs(table_of(side.blind))
        except Exception as error:  # as above
            self._note(f"{side.blind.task} is not used, its docs cannot be read: {message(error)}")
            side.blind = None


@dataclass
class Explorer:
    """One or two runs.

    Attributes:
        models: a name for each run's model.
        tasks: all wrapped tasks, those with an index first.
        title: of the page.
        taken: the files of the runs.
        left_out: the tasks that are not shown, and why; one line each.
    """

    models: list[str]
    tasks: list[Task]
    title: str
    taken: list[Taken] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def fault(self) -> str:
        """The faults of all tasks, joined; empty where no reading failed so far."""
        return "; ".join(task.fault for task in self.tasks if task.fault)

    # --- reading ----------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the docs of all tasks in turn.

        A task can be shown as soon as its first docs are read (``Task.load``).
        """
        for task in self.tasks:
            task.load()

    # --- what the page asks for ---------------------------------------------------------------------

    def about(self) -> dict[str, Any]:
        """Return models and tasks for the page: numbers of docs, and whether all docs of a task are read."""
        return {
            "title": line(self.title, NAME),
            "models": self.models,
            "needs": list(NEEDS),
            "fault": line(self.fault),
            "tasks": [self._about(task) for task in self.tasks],
        }

    def _about(self, task: Task) -> dict[str, Any]:
        """Return what the page needs of a task before the page asks for docs."""
        result = task.main.result
        docs = task.main.docs if task.ready else None
        return {
            "name": task.name,
            "base": line(result.base, NAME),
            "kind": result.kind.name,
            "metric": line(result.metric, NAME),
            "docs": len(docs or ()),
            "of": result.docs,
            "whole": task.whole,
            "grids": list(result.grids),
            "note": task.note,
            "fault": task.fault,
            "classes": not task.fault and has_classes(result),
            "maps": [None if task.fault else side and side.necessity() for side in task.sides],
        }

    def columns(self, number: int) -> dict[str, Any]:
        """Return the columns by which the page lists, filters and sorts the docs of a task.

        Args:
            number: of the task; its docs are ready.

        Returns:
            ``ids``, ``categories`` (names) and ``category`` (of each doc the number of its name, -1: none); and lists
            with an entry per model, null where it has no such task: ``first`` and ``need`` and ``image`` (texts with a
            character per doc: ``STATES``; the class; the class by the image alone), ``cells`` (right cells),
            ``failed``, ``excluded``, and ``unfinished`` of the first view (texts of 0 and 1).
        """
        task = self.tasks[number]
        main = _docs(task.main)
        names, category = main.categories
        sides = [None if side is None else _columns(side, main) for side in task.sides]
        keys = ("first", "need", "image", "cells", "failed", "excluded", "unfinished")
        each = {key: [one and one[key] for one in sides] for key in keys}
        return {"ids": main.ids.tolist(), "categories": names, "category": category, **each}

    def maps(self, number: int, category: int) -> list[dict[str, Any] | None]:
        """Return the necessity map of each model over the docs of a category.

        Args:
            number: of the task.
            category: the number of its name among the categories of ``columns``. The other model may number its
                categories otherwise.

        Raises:
            RecordError: there is no such category.
        """
        task = self.tasks[number]
        names = _docs(task.main).categories[0]
        if category >= len(names):
            raise RecordError("there is no such category")
        return [None if side is None else side.necessity(names[category]) for side in task.sides]

    def search(self, words: str) -> list[list[int]]:
        """Return the places of each task's docs with a text in question, gold, category, or any model's first answer."""

        def found(task: Task) -> list[int]:
            main = _docs(task.main)
            sides = [_aligned(docs.matches(words), docs, main, False) for docs in map(_docs, task.known)]
            return np.flatnonzero(np.any(sides, axis=0)).tolist()

        return [found(task) if task.ready and words else [] for task in self.tasks]

    def rows(self, number: int, places: Sequence[int]) -> list[dict[str, Any]]:
        """Return question, gold and each model's first answer of the docs at some places, for the page's list."""
        task = self.tasks[number]
        main = _docs(task.main)
        ids = main.ids[list(places)].tolist()

        def told(docs: Docs) -> list[str | None]:
            where = [docs.places.get(doc_id) for doc_id in ids]
            rows = iter(docs.rows([place for place in where if place is not None]))
            return [None if place is None else next(rows).answer for place in where]

        answers = [[None] * len(ids) if side is None else told(_docs(side)) for side in task.sides]
        return [
            {"question": one.question, "gold": one.gold, "answers": given}
            for one, *given in zip(main.rows(places), *answers, strict=True)
        ]

    def doc(self, number: int, place: int) -> dict[str, Any]:
        """Return everything on a doc: texts, and for each model class, answers, and the command that asks again."""
        task = self.tasks[number]
        main = _docs(task.main)
        doc_id = int(main.ids[place])
        return {
            "task": number,
            "place": place,
            **main.doc(place),
            "sides": [_answers(side, doc_id) for side in task.sides],
        }

    def seen(self, number: int, place: int) -> tuple[str, Seen | None]:
        """Return the base task of a doc, and the image that its views show.

        None where they show none that is known (``Docs.seen``).
        """
        main = self.tasks[number].main
        return main.result.base, _docs(main).seen(place)


def open_runs(paths: Sequence[Path]) -> Explorer:
    """Return the explorer of one or two runs, with no doc read yet.

    Args:
        paths: of each run its output folder, of several in it the newest, or its results file.

    Raises:
        RecordError: a run cannot be read, has no task with docs to show, or the two were asked different docs.
    """
    taken = [newest_of(path, lambda run: not all(map(_why_not, run.results)), "with a wrapped task") for path in paths]
    runs = [one.run for one in taken]
    left_out = [f"{line(one.label, NAME)}: {why}" for run in runs for one in run.results if (why := _why_not(one))]
    if all(_why_not(one) for run in runs for one in run.results):
        why = (
            left_out[0]
            if left_out
            else "no task of lmms-patch in this run, so there are no docs with cells to look at; ask for one, as gqa_rci3"
        )
        raise RecordError(f"{runs[0].path}: {why}")
    named = labels(runs)
    models = [line(named[run.identity], NAME) for run in runs]
    if len(set(models)) < len(models):
        models = [f"{model} ({'first' if not place else 'second'} run)" for place, model in enumerate(models)]
    sides = [[ModelAnswers(one, _blind_of(one)) for one in run.results if not _why_not(one)] for run in runs]
    tasks = [Task("", pair) for pair in _pairs(*sides)] if len(sides) > 1 else [Task("", [side]) for side in sides[0]]
    often = Counter(task.main.result.label for task in tasks)
    for task in tasks:
        label = line(task.main.result.label, NAME)
        task.name = label if often[task.main.result.label] == 1 else f"{label} ({models[0 if task.sides[0] else 1]})"
        _check(task)
    ordered = sorted(tasks, key=lambda task: not task.main.result.kind.index)
    bases = list(dict.fromkeys(task.main.result.base for task in ordered))
    title = f"{', '.join(bases) if len(bases) < 4 else f'{len(bases)} benchmarks'} with {' and '.join(models)}"
    return Explorer(models, ordered, title, taken=taken, left_out=left_out)


def _blind_of(result: Result) -> Result | None:
    """Return the blind task of the same run and base; None where there is none, or the task has no index."""
    base = result.base
    beside = (one for one in result.run.results if one.kind.name == "blind" and not one.place and one.base == base)
    return next(beside, None) if result.kind.index else None


def _pairs(first: Sequence[ModelAnswers], second: Sequence[ModelAnswers]) -> list[list[ModelAnswers | None]]:
    """Return the tasks of two runs side by side; a task without a partner stands alone.

    Partners are of one base, kind, filter, grids and folds. Among several of these, as of a quick run and a full one,
    partners have the same name. Of the others a task has a partner only where each run has one of them left.
    """
    partner: dict[int, ModelAnswers] = {}
    # First by name, so that a quick run is not paired with a full one; then what is left, by settings.
    for alike in (lambda side: (*_settings(side), side.result.task), _settings):
        left = [[side for side in sides if id(side) not in partner] for sides in (first, second)]
        for one in left[0]:
            # Several alike on either side cannot be told apart: none is paired.
            same = [[side for side in sides if alike(side) == alike(one)] for sides in left]
            if len(same[0]) == len(same[1]) == 1:
                partner |= {id(one): same[1][0], id(same[1][0]): one}
    return [[one, partner.get(id(one))] for one in first] + [[None, one] for one in second if id(one) not in partner]


def _settings(side: ModelAnswers) -> tuple[Any, ...]:
    """Return the settings that must be equal for two tasks to be shown side by side."""
    result = side.result
    return result.base, result.kind.name, result.filter, tuple(result.grids), result.described.get("folds")


def _why_not(result: Result) -> str:
    """Say why a task's docs cannot be shown; empty where they can."""
    if result.kind.name == "magic":
        return f"a MAGIC task has no cells; type 'lmms-patch magic show {result.run.path}'"
    return ""


def _check(task: Task) -> None:
    """Check that the two sides of a task were asked the same docs.

    Raises:
        RecordError: they were not.
    """
    known = [side.result.fingerprint.get("docs") for side in task.known]
    if len(known) == 2 and None not in known and known[0] != known[1]:
        raise RecordError(
            f"{task.name}: the two runs were asked different docs, or docs with different golds; explore each run by itself"
        )
    notes = ["only one of the two runs has this task"] if len(known) < len(task.sides) else []
    metric = task.main.result.metric
    if metric == "bypass":  # the host's mark of --predict_only
        notes.append("answers were written and not scored (--predict_only), so none is right or wrong")
    elif not task.main.result.higher_is_better:
        notes.append(f"{metric} is better when lower, so answers have a score, but are not right or wrong")
    task.note = line("; ".join(dict.fromkeys(notes)))


def _read(result: Result) -> Iterator[Docs]:
    """Yield the docs of a task."""
    yield Docs(table_of(result), swap=result.kind.swapped, classes=has_classes(result))


def _docs(side: ModelAnswers) -> Docs:
    """Return the docs of a side.

    Raises:
        RecordError: none is read yet.
    """
    if side.docs is None:
        raise RecordError("the docs are not read yet")
    return side.docs


def _columns(side: ModelAnswers, main: Docs) -> dict[str, Any]:
    """Return the answers of a side as columns, in the order of the listed docs."""
    own = _docs(side)
    views = own.views

    def column(values: NDArray[Any], missing: Any) -> Any:
        return _aligned(values, own, main, missing).tolist()

    def flags(values: NDArray[np.bool_]) -> str:
        return "".join("01"[value] for value in column(values, False))

    return {
        "first": "".join(column(views.first, NOT_ASKED)),
        "need": digits(column(own.found(side.right_blind).classes, UNKNOWN)),
        "image": digits(column(own.by_image, UNKNOWN)),
        "cells": column(views.right_cells, 0),
        "failed": flags(views.failed),
        "excluded": flags(own.excluded),
        "unfinished": flags(views.first_unfinished),
    }


def _aligned(values: NDArray[Any], own: Docs, main: Docs, missing: Any) -> NDArray[Any]:
    """Return values of one side's docs in the order of another side's docs."""
    if own is main:
        return values
    where = np.array([own.places.get(doc_id, -1) for doc_id in main.ids.tolist()], np.intp)
    # An empty array cannot be indexed, not even where every place is masked.
    if not len(values):
        return np.full(len(where), missing)
    return np.where(where >= 0, values[where], missing)


def _answers(side: ModelAnswers | None, doc_id: int) -> dict[str, Any] | None:
    """Return a model's answers to a doc; None where the model was not asked."""
    place = None if side is None else _docs(side).places.get(doc_id)
    if side is None or place is None:
        return None
    out = _docs(side).answers(place)
    blind = None if side.blind_docs is None else side.blind_docs.places.get(doc_id)
    if side.blind_docs is not None and blind is not None:
        out["blind"] = side.blind_docs.answers(blind)["views"][0]
    return out | {"command": command(side.result, doc_id)}


def command(result: Result, doc_id: int) -> str:
    """Return the command line that asks a doc again.

    lmms-eval has no option for one doc; ``--limit 1 --offset N`` asks the doc in row N of the split, which is the doc's
    id.
    """
    run = result.run
    words = [
        "lmms-eval",
        # Where a run does not name its adapter, the reader fills in the word.
        "--model",
        run.adapter or "MODEL",
        *(["--model_args", run.model_args] if run.model_args else []),
        "--tasks",
        result.task,
    ]
    few, given = result.about.host.few_shot, result.about.host.gen_kwargs
    words += ["--num_fewshot", str(few)] if few else []
    words += ["--gen_kwargs", given] if isinstance(given, str) and given else []
    words += [] if result.kind.folds else ["--limit", "1", "--offset", str(doc_id)]  # a cross-validation needs all docs
    words += ["--output_path", "out/again"]
    return " ".join(shlex.quote(line(word, 2000)) for word in words)


def _map(found: Necessity) -> dict[str, Any]:
    """Return a necessity map as the page shows it."""
    shares = {
        need: {key: getattr(found.shares[need], key) for key in ("value", "low", "high", "level", "reason")}
        for need in NEEDS
    }
    return {"n": found.n, "docs": found.docs, "again": found.again, "shares": shares}
