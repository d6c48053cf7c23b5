"""The explorer: a folder with a page, every doc of one or two runs in pieces of 200, and pictures of some.

The page opens from disk. Browsers read no JSON from there, so a piece is a script that hands its data to the page.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl

from lmms_patch import files
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.present import look
from lmms_patch.present.explore.docs import docs_of, listed
from lmms_patch.present.explore.pictures import OpenTask, opened, save
from lmms_patch.rci import recompute
from lmms_patch.runs import reading
from lmms_patch.runs.need import NEEDS, has_classes
from lmms_patch.runs.numbers import Analysis
from lmms_patch.runs.run import Result, Run, labels
from lmms_patch.text import block, line

PIECE, MOST_OPTIONS, NAME = 200, 100, 160
"""Docs in a piece, options of a doc that are shown, and characters of a name."""
MARK = "explore.json"
"""The file by which a folder is known to be an explorer, and may be replaced."""
STATES = {"right": "1", "wrong": "0", "unscored": "u", "failed": "f", "not asked": "n"}
"""The character for the state of an answer, where a text holds those of all docs."""
NOT_TAKEN = "no picture was taken of this doc: choose more with --docs and --where"
NOT_SHOWN = "the run found no other doc's image that fits, so this doc was shown none"
Tell = Callable[[str], None]


@dataclass
class Task:
    """A task of one run, or the same task of two.

    Attributes:
        name: as it is shown; no two tasks have the same.
        sides: the task in each run; None in the run that lacks it.
    """

    name: str
    sides: list[Result | None]

    @property
    def main(self) -> Result:
        """The result whose docs are listed."""
        return next(one for one in self.sides if one is not None)


def why_not(result: Result) -> str:
    """Say why the docs of a task cannot be shown; empty where they can."""
    if result.kind.name == "magic":
        return f"a MAGIC task has no cells; type 'lmms-patch magic show {result.run.path}'"
    return ""


def write(
    runs: Sequence[Run],
    output: Path,
    open_task: OpenTask,
    docs: int = 100,
    where: str = "",
    tell: Tell = lambda said: None,
) -> tuple[int, int]:
    """Write the explorer of one or two runs into a folder, whole or not at all.

    Args:
        runs: the runs.
        output: the folder; an earlier explorer there is replaced, anything else is refused.
        open_task: the images of a base task.
        docs: of how many docs of each task a picture is taken at most.
        where: of which: a condition in SQL over the columns of the samples tables; empty: of the first.
        tell: is handed a line as work goes on.

    Returns:
        How many docs it has, and of how many there are pictures.

    Raises:
        PatchError: a table cannot be read, the runs were asked different docs, or the folder cannot be written.
    """
    files.check_folder(output, MARK, "--output", "an earlier explorer")
    models = _models(runs)
    tasks = _tasks(runs, models)
    for result in (one for run in runs for one in run.results):
        if why := why_not(result):
            tell(f"not shown: {result.label}: {why}")
    bases = list(dict.fromkeys(line(task.main.base, NAME) for task in tasks))
    of = ", ".join(bases) if len(bases) < 4 else f"{len(bases)} benchmarks"
    count = taken = 0
    if docs:
        tell(
            f"taking pictures of {docs} docs of each task: lmms-eval loads their data first, up to a minute a benchmark"
        )
    with files.folder(output, "--output") as folder:
        for name in ("data", "images"):
            (folder / name).mkdir()
        page = resources.files("lmms_patch.present.explore") / "page"
        for name in ("index.html", "explore.css", "explore.js"):
            text = (page / name).read_text(encoding="utf-8")
            (folder / name).write_text(look.css() + text if name.endswith(".css") else text, encoding="utf-8")
        about = []
        for number, task in enumerate(tasks):
            frames = [None if one is None else docs_of(one, _blind(one)) for one in task.sides]
            main = next(frame for frame in frames if frame is not None)
            chosen = _chosen(task.main, main, docs, where)
            pictures = _pictures(task, number, main.filter(chosen), folder, open_task, tell)
            aligned = [frame if frame is main else _aligned(frame, main) for frame in frames]
            _hand(folder, f"{number}", _columns(main, aligned))
            for piece, start in enumerate(range(0, len(main), PIECE)):
                parts = [None if one is None else one[start : start + PIECE].to_dicts() for one in aligned]
                _hand(folder, f"{number}-{piece}", _docs(main[start : start + PIECE].to_dicts(), parts, pictures))
            about.append(_about(task, main))
            count, taken = count + len(main), taken + sum("file" in one for one in pictures.values())
        title = f"{of} with {' and '.join(models)}"
        _hand(folder, "about", {"title": title, "models": models, "needs": NEEDS, "piece": PIECE, "tasks": about})
        (folder / MARK).write_text(json.dumps({"made by": "lmms-patch explore", "docs": count}) + "\n")
    return count, taken


def _hand(folder: Path, name: str, value: Any) -> None:
    """Write the script by which the page gets a value."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    (folder / "data" / f"{name}.js").write_text(f"arrived({json.dumps(name)}, {text});\n", encoding="ascii")


# --- which tasks ----------------------------------------------------------------------------------


def _models(runs: Sequence[Run]) -> list[str]:
    named = labels(runs)
    models = [line(named[run.identity], NAME) for run in runs]
    if len(set(models)) == len(models):
        return models
    return [f"{model} ({which} run)" for model, which in zip(models, ("first", "second"), strict=True)]


def _tasks(runs: Sequence[Run], models: Sequence[str]) -> list[Task]:
    """Return the tasks of the runs, those with an index first.

    Raises:
        RecordError: there is none, or two runs were asked different docs.
    """
    sides = [[one for one in run.results if not why_not(one)] for run in runs]
    if not any(sides):
        told = [why_not(one) for run in runs for one in run.results]
        none = "no task of lmms-patch in this run, so there are no docs with cells to look at; ask for one, as gqa_rci3"
        raise RecordError(f"{runs[0].path}: {next(iter(told), none)}")
    pairs: list[list[Result | None]] = [[one] for one in sides[0]] if len(sides) == 1 else _pairs(*sides)
    pairs.sort(key=lambda pair: not next(one for one in pair if one).kind.index)
    tasks = [Task("", pair) for pair in pairs]
    often = Counter(task.main.label for task in tasks)
    for task in tasks:
        label = line(task.main.label, NAME)
        task.name = label if often[task.main.label] == 1 else f"{label} ({models[0 if task.sides[0] else 1]})"
        known = {one.fingerprint.get("docs") for one in task.sides if one} - {None}
        if len(known) > 1:
            raise RecordError(
                f"{task.name}: the two runs were asked different docs, or docs with different golds; explore each run by itself"
            )
    return tasks


def _pairs(first: Sequence[Result], second: Sequence[Result]) -> list[list[Result | None]]:
    """Return the tasks of two runs side by side; a task without a partner stands alone.

    Partners are alike in base, kind, filter, grids and folds. Among several of these, as of a quick run and a full one,
    partners have the same name. Of the others a task has a partner only where each run has one of them left.
    """
    partner: dict[int, Result] = {}
    for alike in (lambda one: (*_settings(one), one.task), _settings):
        left = [[one for one in side if id(one) not in partner] for side in (first, second)]
        for one in left[0]:
            same = [[each for each in side if alike(each) == alike(one)] for side in left]
            if len(same[0]) == len(same[1]) == 1:
                partner |= {id(one): same[1][0], id(same[1][0]): one}
    return [[one, partner.get(id(one))] for one in first] + [[None, one] for one in second if id(one) not in partner]


def _settings(one: Result) -> tuple[Any, ...]:
    return one.base, one.kind.name, one.filter, tuple(one.grids), one.described.get("folds")


def _blind(result: Result) -> Result | None:
    """Return the blind task of the same run and base; None where there is none, or the task has no index."""
    of_base = (one for one in result.run.results if one.kind.name == "blind" and not one.place)
    return next((one for one in of_base if one.base == result.base), None) if result.kind.index else None


# --- what the page is told ------------------------------------------------------------------------


def _about(task: Task, main: pl.DataFrame) -> dict[str, Any]:
    """Return what the page is told of a task: its shares of docs, of all and by category, and how to ask a doc again."""
    result, kinds = task.main, [one for one in task.sides if one]
    notes = [
        *["only one of the two runs has this task"] * (len(kinds) < len(task.sides)),
        *["a quick run: shares are of the docs that were asked whole"]
        * any(reading.is_sampled(one.analysis) for one in kinds),
    ]
    if result.metric == "bypass":  # the host's mark of --predict_only
        notes.append("answers were written and not scored (--predict_only), so none is right or wrong")
    elif not result.higher_is_better:
        notes.append(f"{result.metric} is better when lower, so answers have a score, but are not right or wrong")
    parts = [_by_category(one) if one else {} for one in task.sides]
    return {
        "name": task.name,
        "docs": len(main),
        "clips": result.kind.needs_video,
        "note": line("; ".join(notes)),
        "classes": has_classes(result),
        "maps": [one and _map(one.analysis) for one in task.sides],
        "parts": {name: [_map(of.get(name)) for of in parts] for name in sorted({*parts[0], *parts[-1]})},
        "commands": [one and command(one) for one in task.sides],
    }


def _by_category(result: Result) -> dict[str, Analysis]:
    return recompute.by_category(recompute.TaskRun(result))[0] if has_classes(result) else {}


def _map(analysis: Analysis | None) -> dict[str, Any] | None:
    """Return the shares of docs by what they need; None where there are none."""
    if analysis is None or not analysis.necessity:
        return None
    found = analysis.necessity[0]
    shares = {name: [one.value, one.low, one.high] for name, one in found.shares.items()}
    any_share = next(iter(found.shares.values()))
    return {
        "n": found.n,
        "docs": found.docs,
        "again": found.again,
        "level": any_share.level,
        "reason": any_share.reason,
        "shares": shares,
    }


def command(result: Result) -> str:
    """Return the command line to ask a doc again, whose id is to follow.

    lmms-eval has no option for one doc; ``--limit 1 --offset N`` asks the doc in row N of the split, which is its id.
    """
    run, host = result.run, result.about.host
    words = ["lmms-eval", "--model", run.adapter or "MODEL"]
    words += ["--model_args", run.model_args] if run.model_args else []
    words += ["--tasks", result.task, "--output_path", "out/again"]
    words += ["--num_fewshot", str(host.few_shot)] if host.few_shot else []
    words += ["--gen_kwargs", host.gen_kwargs] if isinstance(host.gen_kwargs, str) and host.gen_kwargs else []
    # a cross-validation needs all docs
    words += [] if result.kind.folds else ["--limit", "1", "--offset"]
    return " ".join(shlex.quote(line(word, 2000)) for word in words)


def _columns(main: pl.DataFrame, sides: Sequence[pl.DataFrame | None]) -> dict[str, Any]:
    """Return the columns by which the page lists, filters and sorts docs; of each model a text with a character a doc."""
    shown = [None if one is None else line(one, NAME) for one in main.get_column("category")]
    names = sorted({one for one in shown if one is not None})
    number = {name: place for place, name in enumerate(names)}
    return {
        "ids": main.get_column("doc_id").to_list(),
        "categories": names,
        "category": [-1 if one is None else number[one] for one in shown],
        "questions": listed(main.get_column("question")),
        "golds": listed(main.get_column("gold")),
        "sides": [None if side is None else _side(side) for side in sides],
    }


def _side(docs: pl.DataFrame) -> dict[str, Any]:
    def digits(name: str) -> str:
        return "".join("-" if one is None or one < 0 else str(one) for one in docs[name])

    def flags(name: pl.Expr) -> str:
        return "".join("01"[bool(one)] for one in docs.select(name).to_series())

    return {
        "answers": listed(docs.get_column("answer")),
        "first": "".join(STATES[one or "not asked"] for one in docs["first"]),
        "need": digits("need"),
        "image": digits("image"),
        "cells": docs.get_column("cells").fill_null(0).to_list(),
        "failed": flags(pl.col("lost")),
        "excluded": flags(pl.col("excluded").is_not_null()),
        "unfinished": flags(pl.col("unfinished")),
    }


def _aligned(frame: pl.DataFrame | None, main: pl.DataFrame) -> pl.DataFrame | None:
    """Return the docs of the second run in the order of the listed docs; null where a doc is missing there."""
    return None if frame is None else main.select("doc_id").join(frame, on="doc_id", how="left", maintain_order="left")


def _docs(
    docs: Sequence[dict[str, Any]],
    sides: Sequence[Sequence[dict[str, Any]] | None],
    pictures: dict[int, dict[str, str]],
) -> list[dict[str, Any]]:
    """Return everything on some docs: texts, and each model's answers."""
    out = []
    for place, doc in enumerate(docs):
        own = {name: doc[name] for name in ("question", "gold", "category", "cluster", "seen", "width", "height")}
        options = [block(one) for one in (doc["options"] or [])[:MOST_OPTIONS]]
        answers = [None if side is None else _answers(side[place]) for side in sides]
        picture = pictures.get(doc["doc_id"], {"why": NOT_TAKEN})
        out.append(_filled({**own, "id": doc["doc_id"], "options": options, **picture}) | {"sides": answers})
    return out


def _answers(doc: dict[str, Any]) -> dict[str, Any] | None:
    if doc["views"] is None:
        return None
    lists = {name: [_filled(view) for view in doc[name] or ()] for name in ("views", "wrong")}
    blind = {"blind": _filled(doc["blind"])} if doc.get("blind") else {}
    return lists | blind | _filled({name: doc[name] for name in ("seen", "wrong_from", "excluded")})


def _filled(values: dict[str, Any]) -> dict[str, Any]:
    """Return what is neither null nor false."""
    return {name: value for name, value in values.items() if value is not None and value is not False}


# --- pictures -------------------------------------------------------------------------------------


def _chosen(result: Result, main: pl.DataFrame, docs: int, where: str) -> pl.Series:
    """Return of which docs pictures are taken.

    Raises:
        OptionError: the condition cannot be read.
    """
    ids = main.get_column("doc_id")
    if where:
        try:
            frame = result.frame()
            ids = frame.filter(pl.sql_expr(where))["doc_id"].unique(maintain_order=True)
        except pl.exceptions.PolarsError as error:
            columns = ", ".join(name for name in frame.columns)
            raise OptionError(f"--where {where!r}: {line(error, 200)}; columns: {columns}") from None
    return main.get_column("doc_id").is_in(ids.head(docs).implode())


def _pictures(
    task: Task, number: int, docs: pl.DataFrame, folder: Path, open_task: OpenTask, tell: Tell
) -> dict[int, dict[str, str]]:
    """Write the images of some docs of a task, and return by doc its file, or why there is none."""
    if not len(docs) or not task.main.kind.needs_image:
        return {}
    of_doc = opened(open_task, task.main.base)
    if isinstance(of_doc, str):
        tell(f"{task.name}: {of_doc}")
        return {doc_id: {"why": of_doc} for doc_id in docs.get_column("doc_id")}
    out: dict[int, dict[str, str]] = {}
    for doc_id, seen, width, height, digest in docs.select("doc_id", "seen", "width", "height", "images").iter_rows():
        path = folder / "images" / f"{number}-{doc_id}"
        out[doc_id] = {"why": NOT_SHOWN} if seen is None else save(of_doc, seen, path, (width, height), digest)
    return out
