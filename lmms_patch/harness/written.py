"""What a run leaves: the table of samples of each task and their numbers, and flat numbers in the host's own files.

In memory a wrapped task's results hold one object, ``patch`` (``wrap.aggregate.Details``), from which all of it is
made. The host's results file has flat numbers alone, which nobody reads back. A tracker shows every value of a task as
a column, so it gets the few that matter.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import structs

from lmms_patch.ask.references import digest
from lmms_patch.errors import message
from lmms_patch.harness.refuse import fail_at_exit
from lmms_patch.harness.wrap.aggregate import Details
from lmms_patch.runs import cache, samples
from lmms_patch.runs.columns import by_filter, last, with_errors
from lmms_patch.runs.details import About, Host, Model, Probe
from lmms_patch.runs.run import Result, Run, dataset_of, name_of
from lmms_patch.stats.bounds import is_number
from lmms_patch.text import arguments, log, masked

TOOK = "lmms_patch_seconds"
"""The key by which the seconds that the model took stand in the results in memory (``asking.seam``); no file has it."""
PROBE = "lmms_patch_probe"
"""Likewise of what was found out about batches; it goes into the footers of the tables."""
FEW = 100
"""Below how many docs a run is a trial."""


def add_errors(results: dict[str, Any]) -> None:
    """Put our standard errors into the host's columns; leave the results unchanged where this fails.

    Args:
        results: what ``evaluator.evaluate`` returns; changed.
    """
    for task, found in _by_task(results).items():
        results["results"][task] = with_errors(results["results"][task], found)


def save(original: Callable[..., Any], results: dict[str, Any], path: Path) -> None:
    """Write the tables of our tasks and their numbers, and then the results file as the host does.

    The tables come first: no results file lacks its record, wherever a run is killed.

    Args:
        original: writes the results that it is given. It adds keys to them.
        results: all that the host has of the run; gets the keys that the host adds.
        path: of the results file.
    """
    found, kept = _by_task(results), list[Result]()
    if lost := [task for task in _details(results) if task not in found]:
        fail_at_exit(f"no table is written of {', '.join(lost)}, so nothing can be said of these tasks")
    for task, of_task in found.items():
        try:
            kept += write(of_task, _details(results)[task], path)
        except Exception as error:
            fail_at_exit(
                f"{samples.path_of(path, task)} is not written, so nothing can be said of {task}: {message(error)}"
            )
    if kept:
        cache.keep(kept)
    # the objects are for this process alone
    columns = {
        task: {key: value for key, value in values.items() if not isinstance(value, Details)}
        for task, values in results["results"].items()
    }
    filed = {key: value for key, value in results.items() if key not in (TOOK, PROBE)} | {"results": columns}
    original(filed)
    # the host keeps the keys that it has added to its results
    results.update({key: value for key, value in filed.items() if key != "results"})


def write(results: Sequence[Result], details: Mapping[str, Details], path: Path) -> list[Result]:
    """Write the table of a task, and return its results as those of the table.

    Args:
        results: a result for each filter pipeline.
        details: of each, what the run computed, with the rows.
        path: of the results file.
    """
    about, made = results[0].about, [(one.filter, details[one.filter].frame) for one in results]
    rows = [make().with_columns(filter=pl.lit(name)) for name, make in made if make is not None]
    # under --predict_only nothing was scored, and there are rows all the same
    if not rows:
        return []
    frame = pl.concat(rows, how="diagonal_relaxed")
    table = samples.path_of(path, about.task)
    about = samples.write(table, frame if len(rows) > 1 else frame.drop("filter"), about)
    filed = Run(path, ((about, table),)).results
    return [dataclasses.replace(one, given=computed.given) for one, computed in zip(filed, results, strict=True)]


def about_of(results: Mapping[str, Any], task: str, details: Mapping[str, Details]) -> About:
    """Return what the footer of a task's table says; rows, docs and columns are filled in when it is written.

    Args:
        results: all that the host has of the run.
        task: one of ours.
        details: of each filter pipeline, in their order.
    """
    config, given = results["configs"][task], results.get("config") or {}
    asked = config.get("lmms_patch") or config["metadata"]["magic"]
    first = next(iter(details.values()))
    counts = results.get("n-samples", {}).get(task) or {}
    limit, model_args = given.get("limit"), given.get("model_args")
    adapter = str(given.get("model") or results.get("model_source") or "")
    if isinstance(model_args, dict):
        model_args = ",".join(f"{key}={value}" for key, value in model_args.items())
    values = by_filter(results["results"][task])
    native = {
        name: structs.replace(one.of, values=_numbers(values.get(name, {}), first)) for name, one in details.items()
    }
    version = (results.get("versions") or {}).get(task)
    instructions = [results[key] for key in ("system_instruction_sha", "system_instruction") if key in results]
    return About(
        schema=1,
        task=task,
        asked={**asked, "metric": first.about.get("magic", {}).get("metric") or asked["metric"]},
        filters=list(details),
        model=Model(
            # without secrets, which arguments of a model may hold
            name_of(masked(str(results.get("model_name") or adapter))),
            adapter,
            arguments(str(model_args or "")),
            str(results.get("date") or ""),
        ),
        host=Host(
            # lmms-eval takes -1 for all docs
            limit=None if limit in (None, -1) else float(limit),
            offset=int(given.get("offset") or 0),
            original=counts.get("original"),
            effective=counts.get("effective"),
            few_shot=(results.get("n-shot") or {}).get(task),
            benchmark_version=None if version is None else str(version),
            generation=json.dumps([config.get("generation_kwargs"), given.get("gen_kwargs") or None], default=str),
            # a digest; "none" where none was given, None where the host does not say
            system_instruction=next((digest([one]) for one in instructions if one), "none") if instructions else None,
            gen_kwargs=str(given["gen_kwargs"]) if given.get("gen_kwargs") else None,
            **dataset_of(config),
        ),
        native=native,
        groups={group: list(map(str, of)) for group, of in (results.get("group_subtasks") or {}).items() if of},
        probe=results.get(PROBE, Probe()),
        run=digest([results.get("date"), results.get("start_time"), adapter, given.get("model_args")]),
        place=list(results["results"]).index(task),
        rows=0,
        docs=int(first.get("records") or 0),
        columns=[],
        **first.about,
    )


def _numbers(values: Mapping[str, Any], details: Details) -> dict[str, float | None]:
    """Return the numbers that the host has of native metrics, and of these over chosen views."""
    names = tuple(details.about.get("metrics", ()))
    ours = [name for name in values if name in names or name.startswith(tuple(f"{m}_mpp" for m in names))]
    return {name: float(values[name]) if is_number(values[name]) else None for name in ours}


def for_tracker(results: dict[str, Any], say: Callable[[list[Result]], list[str]]) -> dict[str, Any]:
    """Return results with the numbers of ``for_screen`` for each of our tasks, and what they say as its ``findings``.

    Args:
        results: all that the host has of the run; stays as it is.
        say: gives the sentences to know first of a task's results.
    """
    columns = dict(results["results"])
    for task, found in _by_task(results).items():
        columns[task] = {**last(columns[task], found), "findings": " ".join(say(found))}
    return {**results, "results": columns}


def for_screen(results: dict[str, Any]) -> dict[str, Any]:
    """Return results with at most six numbers for each of our tasks: what lmms-eval prints when a run ends."""
    columns = {task: last(results["results"][task], found) for task, found in _by_task(results).items()}
    return {**results, "results": {**results["results"], **columns}}


def ending(results: dict[str, Any], say: Callable[[list[Result]], list[str]]) -> str:
    """Return what stands below lmms-eval's last table: what the run found, and what to type next.

    Empty for a run without tasks of ours.

    Args:
        results: all that the host has of the run; stays as it is.
        say: gives the sentences to know first of some results.
    """
    found = [one for of_task in _by_task(results).values() for one in of_task]
    if not found:
        return ""
    given = results.get("config", {}).get("resolved_cli_args") or {}
    lines = [*([_trial(found, results.get(TOOK))] if given.get("limit") else []), *say(found)]
    out = given.get("output_path")
    following = "\n      ".join(
        f"lmms-patch {command} {shlex.quote(str(out))}" for command in ("show", "report", "explore")
    )
    if not out:
        following = "the same command with --output_path OUT: nothing of this run is kept"
    # no wider than reads well, and no narrower than can be read
    most = max(60, min(100, shutil.get_terminal_size().columns))
    folded = [
        textwrap.fill(said, most, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
        for said in filter(None, lines)
    ]
    return "\n".join(["", *folded, f"next: {following}", ""])


def _trial(results: Sequence[Result], took: float | None) -> str:
    """Say of a run of few docs that the pipeline works, and how long all docs would take; empty for a run of 100 docs or more.

    Args:
        results: those of the run.
        took: how many seconds the model took for the whole run; None where earlier answers were used.
    """
    docs = max(one.docs for one in results)
    if not 0 < docs < FEW:
        return ""
    every = max((one.about.host.original or 0 for one in results), default=0)
    minutes = max(1, (took or 0) * every * len(results) / sum(one.docs for one in results) / 60)
    rest = f"; all {every:,} docs of each task, about {minutes:,.0f} minute{'s' * (minutes >= 1.5)} at this speed"
    told = f"a trial of {docs} doc{'s' * (docs > 1)}: the pipeline works, and most numbers will change"
    return told + rest * bool(took and every)


def _details(results: Mapping[str, Any]) -> dict[str, dict[str, Details]]:
    """Return the objects of our tasks by the name of the task, one for each filter pipeline."""
    found = {
        task: {key.partition(",")[2]: one for key, one in values.items() if isinstance(one, Details)}
        for task, values in results["results"].items()
    }
    return {task: details for task, details in found.items() if details}


def _by_task(results: Mapping[str, Any]) -> dict[str, list[Result]]:
    """Return the results of our tasks by name, a result for each filter pipeline.

    Empty where a result is not as we make results.
    """
    ours, out = _details(results), dict[str, list[Result]]()
    try:
        abouts = [(about_of(results, task, details), None) for task, details in ours.items()]
        for result in Run(Path(f"{results.get('date') or ''}_results.json"), tuple(abouts)).results:
            one = dataclasses.replace(result, given=ours[result.task][result.filter].computed)
            one.measures  # noqa: B018 - read for its check: it raises here rather than while a file is written
            out.setdefault(result.task, []).append(one)
    except Exception as error:
        log().warning(f"the results are left as lmms-eval makes them: {message(error)}")
        return {}
    return out
