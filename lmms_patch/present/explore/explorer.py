"""What the explorer's page is told: tasks with their necessity maps, columns of all docs, and single docs. In plain JSON types; writes nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lmms_patch.errors import RecordError
from lmms_patch.present.explore.docs import COLUMNS, Docs, digits
from lmms_patch.rci import necessity
from lmms_patch.runs import reading, rows, samples
from lmms_patch.runs.need import NEEDS, UNKNOWN
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.results import Taken, newest
from lmms_patch.runs.run import Result, labels, read
from lmms_patch.stats.resample import DRAWS, LEVEL
from lmms_patch.text import line

NAME = 160
"""Characters of a name."""
MANY, FIRST = 3_000, 500
"""Of a task with more docs the first are shown before the rest is read."""


@dataclass
class Side:
    """One model's answers to a task.

    Attributes:
        result: the task of its run.
        blind: the same base task asked without an image, of the same run; None: there is none.
        docs: as far as they are read; None: not yet.
        blind_docs: those of ``blind``.
        whole: whether all are read.
    """

    result: Result
    blind: Result | None
    docs: Docs | None = None
    blind_docs: Docs | None = None
    whole: bool = False
    _maps: dict[int | None, dict[str, Any] | None] = field(default_factory=dict)

    @property
    def right_blind(self) -> NDArray[np.float64] | None:
        """Whether each doc is right in the blind run: 1, 0, or nan; None where there is no blind run."""
        return None if self.blind_docs is None else _aligned(self.blind_docs.first_right, self.blind_docs, _docs(self), np.nan)

    def necessity(self, category: int | None = None) -> dict[str, Any] | None:
        """Return the necessity map at the finest grid; None where there is none.

        Of all docs it is the one that the run stored, where there is one and no blind run beside it. Of a run that left docs out there is no other:
        it says which docs the shares are of.

        Args:
            category: the number of a category; None: all docs.
        """
        analysis = self.result.details.get("analysis") or {}
        stored = analysis.get("necessity")
        if not self.result.kind.index or stored == []:  # the run says that its docs have no classes, as of captions
            return None
        if stored and category is None and self.blind is None:
            return _map(stored[0])
        if not self.whole or not _docs(self).grids or not self.result.higher_is_better or reading.is_sampled(analysis):
            return None
        docs = _docs(self)
        found = docs.found(self.right_blind)
        of = found.by_image != UNKNOWN
        if category is not None:
            of &= np.array(docs.categories[1]) == category
        if not of.any():
            return None
        shares = to_json(necessity.shares(found, of, docs.clusters, {"draws": DRAWS, "level": LEVEL, "seed": 0}))
        checked = int((of & (found.text != UNKNOWN)).sum())
        return _map({"n": docs.grids[-1], "docs": int(of.sum()), "checked": checked, "sources": list(found.sources), "shares": shares})


@dataclass
class Task:
    """One task of one run, or of two.

    Attributes:
        name: as it is shown; with the filter pipeline where there are several.
        sides: the answers of each model; of a task that only one of two runs has, None for the other.
        note: what to mind; may be empty.
    """

    name: str
    sides: list[Side | None]
    note: str = ""

    @property
    def main(self) -> Side:
        """The side whose docs are listed."""
        return next(side for side in self.sides if side is not None)

    @property
    def ready(self) -> bool:
        """Whether some docs of every side can be shown."""
        return all(side is None or side.docs is not None for side in self.sides)

    @property
    def whole(self) -> bool:
        """Whether all docs of every side are read."""
        return all(side is None or side.whole for side in self.sides)


@dataclass
class Explorer:
    """One or two runs.

    Attributes:
        models: a name for each run's model.
        tasks: all wrapped tasks, those with an index first.
        title: of the page.
        fault: why a log cannot be read; empty where all can, so far.
        taken: the files of the runs.
        left_out: the tasks that are not shown, and why; one line each.
    """

    models: list[str]
    tasks: list[Task]
    title: str
    fault: str = ""
    taken: list[Taken] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    # --- reading ----------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the docs of all tasks, one task after the other. A task can be shown as soon as its first docs are read.

        Raises:
            RecordError: a log cannot be read; the others were read all the same.
        """
        faults = []
        for task in self.tasks:
            try:
                for side in filter(None, task.sides):
                    _load(side)
            except RecordError as error:
                faults.append(error)
        if faults:
            raise faults[0]

    # --- what the page asks for ---------------------------------------------------------------------

    def about(self) -> dict[str, Any]:
        """Return what there is: models and tasks, and how far it is read."""
        return {
            "title": line(self.title, NAME),
            "models": self.models,
            "needs": list(NEEDS),
            "fault": line(self.fault),
            "tasks": [self._about(task) for task in self.tasks],
        }

    def _about(self, task: Task) -> dict[str, Any]:
        described = task.main.result.described
        docs = task.main.docs if task.ready else None
        return {
            "name": task.name,
            "base": line(described["base"], NAME),
            "kind": task.main.result.kind.name,
            "metric": line(described["metric"], NAME),
            "docs": 0 if docs is None else len(docs),
            "of": task.main.result.docs,
            "whole": task.whole,
            "grids": list(described["grids"]),
            "note": task.note,
            "maps": [side.necessity() if side is not None and task.ready else None for side in task.sides],
        }

    def columns(self, number: int) -> dict[str, Any]:
        """Return what is known of every doc of a task, to list, filter and sort by.

        Args:
            number: of the task; its docs are ready.

        Returns:
            ``ids``, ``categories`` (names) and ``category`` (of each doc the number of its name, -1: none); and lists with an entry per model, null
            where it has no such task: ``first`` and ``need`` and ``image`` (texts with a character per doc: ``STATES``; the class; the class by
            the image alone), ``cells`` (right cells), ``failed`` and ``excluded`` (texts of 0 and 1).
        """
        task = self.tasks[number]
        main = _docs(task.main)
        names, category = main.categories
        sides = [None if side is None else _columns(side, main) for side in task.sides]
        keys = ("first", "need", "image", "cells", "failed", "excluded")
        each = {key: [None if one is None else one[key] for one in sides] for key in keys}
        return {"ids": main.ids.tolist(), "categories": names, "category": category, **each}

    def maps(self, number: int, category: int) -> list[dict[str, Any] | None]:
        """Return the necessity map of each model over the docs of a category."""
        return [None if side is None else side.necessity(category) for side in self.tasks[number].sides]

    def search(self, words: str) -> list[list[int]]:
        """Return the places of the docs of each task that have a text, in any model's answer to the full image too."""
        out: list[list[int]] = []
        for task in self.tasks:
            if not task.ready or not words:
                out.append([])
                continue
            main = _docs(task.main)
            found = main.matches(words)
            for side in task.sides:
                if side is not None and side is not task.main:
                    found |= _aligned(_docs(side).matches(words), _docs(side), main, False)
            out.append(np.flatnonzero(found).tolist())
        return out

    def rows(self, number: int, places: Sequence[int]) -> list[dict[str, Any]]:
        """Return what the list shows of some docs of a task, with the answer of each model."""
        task = self.tasks[number]
        main = _docs(task.main)
        out: list[dict[str, Any]] = [{"question": one["question"], "gold": one["gold"], "answers": []} for one in main.rows(places)]
        for side in task.sides:
            where = [None if side is None else _docs(side).places.get(doc_id) for doc_id in main.ids[list(places)].tolist()]
            known = [place for place in where if place is not None]
            answers = iter(_docs(side).rows(known) if side is not None and known else ())
            for row, place in zip(out, where, strict=True):
                row["answers"].append(None if place is None else next(answers)["answer"])
        return out

    def doc(self, number: int, place: int) -> dict[str, Any]:
        """Return all that is known of a doc: its texts, and of each model its class, its answers, and the command that asks it again."""
        task = self.tasks[number]
        main = _docs(task.main)
        doc_id = int(main.ids[place])
        return {"task": number, "place": place, **main.doc(place), "sides": [_answers(side, doc_id) for side in task.sides]}

    def size_of(self, number: int, place: int) -> tuple[str, int, tuple[int, int] | None]:
        """Return the base task and the id of a doc, and the size of its image in pixels, None where it is not known."""
        main = _docs(self.tasks[number].main)
        size = main.doc(place)["size"]
        return self.tasks[number].main.result.described["base"], int(main.ids[place]), None if size is None else (size[0], size[1])


def open_runs(paths: Sequence[Path]) -> Explorer:
    """Return the explorer of one or two runs, with no doc read yet.

    Args:
        paths: of each run its output folder, of several in it the newest, or its results file.

    Raises:
        RecordError: a run cannot be read, has no task with docs to show, or the two were asked different docs.
    """
    taken = [newest(path, lambda file: any(_shown(one) for one in read(file).results), "with a wrapped task") for path in paths]
    runs = [read(one.path) for one in taken]
    left_out = [f"{line(one.label, NAME)}: {why}" for run in runs for one in run.results if (why := _why_not(one))]
    if not any(_shown(one) for run in runs for one in run.results):
        why = left_out[0] if left_out else "no task of lmms-patch in this run, so there are no docs with cells to look at; ask for one, as gqa_rci3"
        raise RecordError(f"{runs[0].path}: {why}")
    named = labels(runs)
    models = [line(named[run.identity], NAME) for run in runs]
    if len(set(models)) < len(models):
        models = [f"{model} ({'first' if not place else 'second'} run)" for place, model in enumerate(models)]
    tasks: dict[tuple[str, ...], Task] = {}
    for place, run in enumerate(runs):
        blind = {one.described["base"]: one for one in run.results if one.kind.name == "blind" and not one.place}
        for one in filter(_shown, run.results):
            key = (one.described["base"], one.kind.index or one.kind.name, one.filter)
            task = tasks.setdefault(key, Task(line(one.label, NAME), [None] * len(runs)))
            if task.sides[place] is None:
                task.sides[place] = Side(one, blind.get(one.described["base"]) if one.kind.index else None)
    for task in tasks.values():
        _check(task)
    ordered = sorted(tasks.values(), key=lambda task: not task.main.result.kind.index)
    bases = list(dict.fromkeys(task.main.result.described["base"] for task in ordered))
    title = f"{', '.join(bases) if len(bases) < 4 else f'{len(bases)} benchmarks'} with {' and '.join(models)}"
    return Explorer(models, ordered, title, taken=taken, left_out=left_out)


def _shown(result: Result) -> bool:
    """Tell whether a task has docs with views to look at."""
    return not _why_not(result)


def _why_not(result: Result) -> str:
    """Say why a task's docs cannot be shown; empty where they can."""
    if result.kind.name == "magic":
        return f"a MAGIC task has no cells; type 'lmms-patch magic show {result.run.path}'"
    return "" if result.log is not None else "no sample log, so its docs are not known; run with --log_samples"


def _check(task: Task) -> None:
    """Check that the two sides of a task were asked the same docs.

    Raises:
        RecordError: they were not.
    """
    known = [side.result.fingerprint.get("docs") for side in task.sides if side is not None]
    if len(known) == 2 and None not in known and known[0] != known[1]:
        raise RecordError(f"{task.name}: the two runs were asked different docs, or docs with different golds; explore each run by itself")
    notes = ["only one of the two runs has this task"] if len(known) < len(task.sides) else []
    if not task.main.result.higher_is_better:
        notes.append(f"{task.main.result.described['metric']} is better when lower, so answers have a score, but are not right or wrong")
    if reading.is_sampled(task.main.result.details.get("analysis") or {}):
        notes.append("a quick run: shares are of the docs that were asked whole")
    task.note = line("; ".join(notes))


def _load(side: Side) -> None:
    """Read the docs of a side."""
    if side.blind is not None:
        side.blind_docs = Docs(samples.table(side.blind, COLUMNS), side.blind.described["metric"])
    for docs in _read(side.result):
        side.docs = docs
    side.whole = True


def _read(result: Result) -> Iterator[Docs]:
    """Yield the first docs of a task, which the log gives in no time, and then all of them."""
    metric = result.described["metric"]
    if result.docs > MANY:
        yield Docs(pa.Table.from_batches(rows.batches(result, most=FIRST)).select(list(COLUMNS)), metric)
    yield Docs(samples.table(result, COLUMNS), metric)


def _docs(side: Side) -> Docs:
    if side.docs is None:
        raise RecordError("the docs are not read yet")
    return side.docs


def _columns(side: Side, main: Docs) -> dict[str, Any]:
    """Return what is known of a side's answers to the docs that are listed."""
    own = _docs(side)
    needs = own.needs(side.right_blind)

    def text(flags: NDArray[np.bool_]) -> str:
        return "".join(np.where(_aligned(flags, own, main, False), "1", "0").tolist())

    return {
        "first": "".join(_aligned(own.first, own, main, "n").tolist()),
        "need": digits(_aligned(needs, own, main, -1)),
        "image": digits(_aligned(own.by_image, own, main, -1)),
        "cells": _aligned(own.right_cells, own, main, 0).tolist(),
        "failed": text(own.failed),
        "excluded": text(own.excluded),
    }


def _aligned(values: NDArray[Any], own: Docs, main: Docs, missing: Any) -> NDArray[Any]:
    """Return values of one side's docs in the order of another side's docs."""
    if own is main:
        return values
    where = np.array([own.places.get(doc_id, -1) for doc_id in main.ids.tolist()], np.intp)
    if not len(values):
        return np.full(len(where), missing)
    return np.where(where >= 0, values[where], missing)


def _answers(side: Side | None, doc_id: int) -> dict[str, Any] | None:
    """Return one model's answers to a doc; None where it was not asked."""
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

    lmms-eval has no option for one doc; ``--limit 1 --offset N`` asks the doc in row N of the split, which is the doc's id.
    """
    run = result.run
    words = ["lmms-eval", "--model", run.adapter or "MODEL", *(["--model_args", run.model_args] if run.model_args else []), "--tasks", result.task]
    few, given = run.about.get("n-shot", {}).get(result.task), run.about.get("gen_kwargs")
    words += ["--num_fewshot", str(few)] if few else []
    words += ["--gen_kwargs", given] if isinstance(given, str) and given else []
    words += [] if result.kind.folds else ["--limit", "1", "--offset", str(doc_id)]  # a cross-validation needs all docs
    words += ["--output_path", "out/again", "--log_samples"]
    return " ".join(shlex.quote(line(word, 2000)) for word in words)


def _map(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a necessity map as the page shows it."""
    shares = {need: {key: found["shares"][need][key] for key in ("value", "low", "high", "reason")} for need in NEEDS}
    luck = (found.get("luck") or {}).get("value")
    return {**{key: found[key] for key in ("n", "docs", "checked", "sources")}, "luck": luck, "shares": shares}
