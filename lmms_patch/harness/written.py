"""Results of a run as the host writes them, and as it hands them to experiment trackers.

In memory a wrapped task's results hold one long object, ``patch`` (``wrap.statistics.Details``). The results file has
its numbers alone, and the object stands in a file beside it (``runs.results``). A tracker shows every value of a task
as a column, so it gets the few that matter.
"""

from __future__ import annotations

import shlex
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.errors import message
from lmms_patch.harness.wrap.statistics import Details
from lmms_patch.runs import reading
from lmms_patch.runs.columns import MOST, last, tracked, with_ends, with_errors
from lmms_patch.runs.results import objects_file, objects_text
from lmms_patch.runs.run import Result, Run
from lmms_patch.text import log

TOOK = "lmms_patch_seconds"
"""The key by which the seconds that the model took stand in the results in memory (``asking.seam``); no file has it."""
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
    """Write the results file as the host does, and the long objects of our tasks to a file beside.

    The file beside it comes first: no results file lacks its objects, wherever a run is killed. Where that file cannot
    be written, the objects stay in the results file.

    Args:
        original: writes the results that it is given. It adds keys to them.
        results: all that the host has of the run; gets the keys that the host adds.
        path: of the results file.
    """
    filed = {key: value for key, value in results.items() if key != TOOK}
    if found := _by_task(results):
        try:
            from lmms_eval.utils import handle_non_serializable

            columns = {task: with_ends(results["results"][task], of_task) for task, of_task in found.items()}
            objects = {
                task: {key: one for key, one in results["results"][task].items() if isinstance(one, Details)}
                for task in found
            }
            files.write(objects_file(path), objects_text(objects, handle_non_serializable))
            about = {"file": objects_file(path).name}
            filed |= {"results": {**results["results"], **columns}, "lmms_patch": about}
        except Exception as error:
            log().warning(f"{objects_file(path)} is not written, so the results file has all of it: {message(error)}")
    original(filed)
    # the host keeps the keys that it has added to its results
    results.update({key: value for key, value in filed.items() if key not in ("results", "lmms_patch")})


def for_tracker(results: dict[str, Any], say: Callable[[list[Result]], list[str]]) -> dict[str, Any]:
    """Return results with at most 20 numbers for each of our tasks, and with what they say as its ``findings``.

    Args:
        results: all that the host has of the run; stays as it is.
        say: gives the sentences to know first of a task's results.
    """
    columns = {}
    for task, found in _by_task(results).items():
        values = results["results"][task]
        # the limit is for a task, so its filter pipelines share it
        share = MOST // len(found)
        numbers = {f"{name},{one.filter}": value for one in found for name, value in tracked(one, share).items()}
        columns[task] = {
            **({"alias": values["alias"]} if "alias" in values else {}),
            **numbers,
            "findings": " ".join(say(found)),
        }
    return {**results, "results": {**results["results"], **columns}} if columns else results


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
        following = "the same command with --output_path OUT --log_samples: nothing of this run is kept"
    elif not given.get("log_samples"):
        following = f"lmms-patch show {shlex.quote(str(out))}; for report and explore run it again with --log_samples"
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
    there = max((counted.original for one in results if (counted := one.run.counted(one.task))), default=0)
    ask, more = f"for {what} ± {NEAR} ask about {wanted:,.0f} docs of each task", ""
    if 0 < there < wanted:
        ask, more = f"ask all {there:,} docs of each task", f" ({what} ± {NEAR} would take about {wanted:,.0f})"
        wanted = there
    if took is not None:
        minutes = took * wanted * len(results) / sum(one.docs for one in results) / 60
        ask += f", about {max(1, minutes):,.0f} minute{'s' * (minutes >= 1.5)} at this speed"
    return f"a trial of {docs} doc{'s' * (docs > 1)}: the pipeline works, and most numbers will change; {ask}{more}"


def _by_task(results: Mapping[str, Any]) -> dict[str, list[Result]]:
    """Return the results of our tasks by name, a result for each filter pipeline.

    Empty where a result is not as we make results.
    """
    ours = [
        task for task, values in results["results"].items() if any(isinstance(one, Details) for one in values.values())
    ]
    if not ours:
        return {}
    out: dict[str, list[Result]] = {}
    try:
        about = {"n-samples": results.get("n-samples", {})}
        configs = {task: config for task, config in results["configs"].items() if task in ours}
        for result in Run(Path(), configs=configs, written=results["results"], about=about).results:
            result.measures  # noqa: B018 - read for its check: it raises here rather than while a file is written
            out.setdefault(result.task, []).append(result)
    except Exception as error:
        log().warning(f"the results are left as lmms-eval makes them: {message(error)}")
        return {}
    return out
