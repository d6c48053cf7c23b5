"""Results of a run as the host writes them, and as it hands them to experiment trackers.

In memory a wrapped task's results hold one long object, ``patch`` (``wrap.statistics.Details``). The results file has its numbers alone, and the
object stands in a file beside it (``runs.results``). A tracker shows every value of a task as a column, so it gets the few that matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.errors import PatchError
from lmms_patch.harness.wrap.statistics import Details
from lmms_patch.runs.columns import MOST, tracked, with_ends, with_errors
from lmms_patch.runs.results import objects_file, objects_text
from lmms_patch.runs.run import Result, Run
from lmms_patch.text import log


def add_errors(results: dict[str, Any]) -> None:
    """Put our standard errors into the host's columns for them; leave the results as they are where that fails.

    Args:
        results: what ``evaluator.evaluate`` returns; changed.
    """
    for task, found in _by_task(results).items():
        results["results"][task] = with_errors(results["results"][task], found)


def save(original: Callable[..., Any], results: dict[str, Any], path: Path) -> None:
    """Write a results file as the host does, with the long objects of our tasks in a file beside it.

    The file beside it comes first: no results file lacks its objects, wherever a run is killed. Where that file cannot be written, the objects
    stay in the results file.

    Args:
        original: writes the results that it is given. It adds keys to them.
        results: all that the host has of the run; gets the keys that the host adds.
        path: of the results file.
    """
    filed = results
    if found := _by_task(results):
        try:
            from lmms_eval.utils import handle_non_serializable

            columns = {task: with_ends(results["results"][task], of_task) for task, of_task in found.items()}
            objects = {task: {key: one for key, one in results["results"][task].items() if isinstance(one, Details)} for task in found}
            content, digest = objects_text(objects, handle_non_serializable)
            files.write(objects_file(path), content)
            about = {"file": objects_file(path).name, "sha256": digest}
            filed = {**results, "results": {**results["results"], **columns}, "lmms_patch": about}
        except Exception as error:
            log().warning(f"{objects_file(path)} is not written, so the results file has all of it: {_said(error)}")
    original(filed)
    results.update({key: value for key, value in filed.items() if key not in ("results", "lmms_patch")})


def for_tracker(results: dict[str, Any], say: Callable[[list[Result]], str]) -> dict[str, Any]:
    """Return results with at most 20 numbers for each of our tasks, and with what they say as its ``findings``.

    Args:
        results: all that the host has of the run; stays as it is.
        say: gives the sentences to know first of a task's results.
    """
    columns = {}
    for task, found in _by_task(results).items():
        values = results["results"][task]
        share = MOST // len(found)
        numbers = {f"{name},{one.filter}": value for one in found for name, value in tracked(one, share).items()}
        columns[task] = {**({"alias": values["alias"]} if "alias" in values else {}), **numbers, "findings": say(found)}
    return {**results, "results": {**results["results"], **columns}} if columns else results


def _by_task(results: Mapping[str, Any]) -> dict[str, list[Result]]:
    """Return the results of our tasks by name, one for each filter pipeline; empty where something of them is not as we make it."""
    ours = [task for task, values in results["results"].items() if any(isinstance(one, Details) for one in values.values())]
    if not ours:
        return {}
    out: dict[str, list[Result]] = {}
    try:
        about = {"n-samples": results.get("n-samples") or {}}
        configs = {task: config for task, config in results["configs"].items() if task in ours}
        for result in Run(Path(), configs=configs, written=results["results"], about=about).results:
            result.measures  # noqa: B018 - read for its check: it raises here rather than while a file is written
            out.setdefault(result.task, []).append(result)
    except Exception as error:
        log().warning(f"the results are left as lmms-eval makes them: {_said(error)}")
        return {}
    return out


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, PatchError) else f"{type(error).__name__}: {error}"
