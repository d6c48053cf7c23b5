"""What a run leaves: the table of samples of each task and their numbers, and flat numbers in the host's own files.

In memory a wrapped task's results hold one object, ``patch`` (``wrap.statistics.Details``), from which all of it is
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
from lmms_patch.harness.wrap.statistics import Details
from lmms_patch.runs import cache, reading, samples
from lmms_patch.runs.columns import by_filter, last, with_errors
from lmms_patch.runs.details import About, Host, Model, Probe
from lmms_patch.runs.run import Result, Run, dataset_of, name_of
from lmms_patch.stats.bounds import is_number
from lmms_patch.text import arguments, log, masked

TOOK = "lmms_patch_seconds"
"""The key by which the seconds that the model took stand in the results in memory (``asking.seam``); no file has it."""
PROBE = "lmms_patch_probe"
"""Likewise of what was found out about batches; it goes into the footers of the tables."""
FEW, NEAR = 100, 0.05
"""Below how many docs a run is a trial, and how near an index is to be known."""


def add_errors(results: dict[str, Any]) -> None:
    """Put our standard errors into the host's columns; leave the results unchanged where this fails.

    Args:
        results: what ``evaluator.evaluate`` returns; changed.
    """
    for task, found in _by_task(results).items():
        results["results"][task] = with_errors(results["results"][task], found)


def save(
    original: Callable[..., Any],
    results: dict[str, Any],
    path: Path,
) -> None:
    """Write the tables of our tasks and their numbers, and then the results file as the host does.

    The tables come first: no results file lacks its record, wherever a run is killed.

    Args:
        original: writes the results that it is given. It adds keys to them.
        results: all that the host has of the run; gets the keys that the host adds.
        path: of the results file.
    """
    filed = {key: value for key, value in results.items() if key not in (TOOK, PROBE)}
    found = _by_task(results)
    kept: list[Result] = []
    ours = [
        task for task, values in results["results"].items() if any(isinstance(one, Details) for one in values.values())
    ]
    if lost := [task for task in ours if task not in found]:
        fail_at_exit(f"no table is written of {', '.join(lost)}, so nothing can be said of these tasks")
    for task, of_task in found.items():
        try:
            kept += write(of_task, {one.filter: results["results"][task][_column(one)] for one in of_task}, path)
        except Exception as error:
            fail_at_exit(
                f"{samples.path_of(path, task)} is not written, so nothing can be said of {task}: {message(error)}"
            )
    if kept:
        cache.keep(kept)
    # the objects are for this process alone
    filed["results"] = {
        task: {key: value for key, value in values.items() if not isinstance(value, Details)}
        for task, values in results["results"].items()
    }
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
    limit = given.get("limit")
    adapter = str(given.get("model") or results.get("model_source") or "")
    values = by_filter(results["results"][task])
    native = {
        name: structs.replace(one.of, values=_numbers(values.get(name, {}), first)) for name, one in details.items()
    }
    version = (results.get("versions") or {}).get(task)
    return About(
        schema=1,
        task=task,
        asked={**asked, "metric": first.about.get("magic", {}).get("metric") or asked["metric"]},
        filters=list(details),
        model=Model(
            # without secrets, which arguments of a model may hold
            name_of(masked(str(results.get("model_name") or adapter))),
            adapter,
            arguments(_arguments(given.get("model_args"))),
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
            system_instruction=_system_instruction(results),
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


def _arguments(given: Any) -> str:
    return ",".join(f"{key}={value}" for key, value in given.items()) if isinstance(given, dict) else str(given or "")


def _system_instruction(results: Mapping[str, Any]) -> str | None:
    """Return a digest of the system instruction.

    ``none`` where none was given (the harness writes null), None where the host does not say.
    """
    known = [results[key] for key in ("system_instruction_sha", "system_instruction") if key in results]
    given = next((one for one in known if one), None)
    return (digest([given]) if given else "none") if known else None


def for_tracker(results: dict[str, Any], say: Callable[[list[Result]], list[str]]) -> dict[str, Any]:
    """Return results with the numbers of ``for_screen`` for each of our tasks, and what they say as its ``findings``.

    Args:
        results: all that the host has of the run; stays as it is.
        say: gives the sentences to know first of a task's results.
    """
    for_each = {task: " ".join(say(found)) for task, found in _by_task(results).items()}
    few = for_screen(results)
    told = {task: {**few["results"][task], "findings": findings} for task, findings in for_each.items()}
    return {**few, "results": {**few["results"], **told}} if told else results


def for_screen(results: dict[str, Any]) -> dict[str, Any]:
    """Return results with at most six numbers for each of our tasks: what lmms-eval prints when a run ends."""
    columns = {task: last(results["results"][task], found) for task, found in _by_task(results).items()}
    return {**results, "results": {**results["results"], **columns}} if columns else results


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
    lines = [*([_small(found, results.get(TOOK))] if given.get("limit") else []), *say(found)]
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


def _small(results: Sequence[Result], took: float | None) -> str:
    """Say of a small run what its numbers are worth: the pipeline works, and how many docs make the index known within 0.05.

    Empty for a run of 100 docs or more.

    The index is 1 − MPP / FIP: of so few docs the width of a luck-corrected index says little.

    Args:
        results: those of the run.
        took: how many seconds the model took for the whole run; None where earlier answers were used.
    """
    docs = max(one.docs for one in results)
    if not docs or docs >= FEW:
        return ""
    known = [
        (one.kind.index, one.measures.get(f"{one.kind.index}{max(one.grids, default='')}"))
        for one in results
        if one.kind.index
    ]
    halves = [
        (index.high - index.low) / 2
        for _, index in known
        if index is not None and index.low is not None and index.high is not None
    ]
    # a width falls with the root of the number of docs; without an index take a score of 0.5, which is widest
    wanted = max((docs * (half / NEAR) ** 2 for half in halves), default=0.25 * (1.96 / NEAR) ** 2)
    wanted = max(FEW, round(wanted, 2 - len(str(int(wanted)))))
    what = reading.name(known[0][0], corrected=False) if halves else "a score"
    there = max((one.about.host.original or 0 for one in results), default=0)
    ask, more = f"for {what} ± {NEAR} ask about {wanted:,.0f} docs of each task", ""
    if 0 < there < wanted:
        ask, more = f"ask all {there:,} docs of each task", f" ({what} ± {NEAR} would take about {wanted:,.0f})"
        wanted = there
    if took is not None:
        minutes = took * wanted * len(results) / sum(one.docs for one in results) / 60
        ask += f", about {max(1, minutes):,.0f} minute{'s' * (minutes >= 1.5)} at this speed"
    return f"a trial of {docs} doc{'s' * (docs > 1)}: the pipeline works, and most numbers will change; {ask}{more}"


def _column(result: Result) -> str:
    return f"{'patch' if result.kind.suffix else 'magic'},{result.filter}"


def _by_task(results: Mapping[str, Any]) -> dict[str, list[Result]]:
    """Return the results of our tasks by name, a result for each filter pipeline.

    Empty where a result is not as we make results.
    """
    ours: dict[str, dict[str, Details]] = {}
    for task, values in results["results"].items():
        for key, one in values.items():
            if isinstance(one, Details):
                ours.setdefault(task, {})[key.partition(",")[2]] = one
    out: dict[str, list[Result]] = {}
    try:
        abouts = {task: about_of(results, task, details) for task, details in ours.items()}
        run = Run(Path(f"{results.get('date') or ''}_results.json"), tuple((about, None) for about in abouts.values()))
        for result in run.results:
            one = dataclasses.replace(result, given=ours[result.task][result.filter].computed)
            one.measures  # noqa: B018 - read for its check: it raises here rather than while a file is written
            out.setdefault(result.task, []).append(one)
    except Exception as error:
        log().warning(f"the results are left as lmms-eval makes them: {message(error)}")
        return {}
    return out
