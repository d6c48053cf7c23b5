"""A task's numbers as columns of a results file: standard errors and intervals beside the values. Pure.

The harness names a column ``"<metric>,<filter>"``, and the column of its standard error ``"<metric>_stderr,<filter>"``.
It computes a standard error where the metric is a mean of its docs; of our metrics it writes "N/A" three times each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from lmms_patch.runs import catalogue
from lmms_patch.runs.measures import over_cells
from lmms_patch.runs.results import by_filter
from lmms_patch.runs.run import OBJECTS, Result
from lmms_patch.stats import bounds
from lmms_patch.stats.resample import Estimate

MOST = 20
"""How many numbers of a task go to an experiment tracker."""
LAST = 6
"""How many numbers of a task lmms-eval's last table shows."""
_ERROR = re.compile(r"(?P<metric>.+)_stderr(?P<sort>_clt|_clustered)?,(?P<filter>.*)")


def with_errors(values: Mapping[str, Any], results: Iterable[Result]) -> dict[str, Any]:
    """Return the columns of a task with our standard errors, and without the harness's "N/A" for those of our metrics.

    A standard error that the harness computed stays.

    Args:
        values: the columns as the harness made them.
        results: the results of the task, one for each filter pipeline.
    """
    out = dict(values)
    native: set[tuple[str, str]] = set()
    for result in results:
        # all metrics of a MAGIC task are ours
        if result.kind.name != "magic":
            native |= {(metric, result.filter) for metric in result.details.get("higher_is_better") or ()}
        for metric, estimate in estimates(result).items():
            key = f"{metric}_stderr,{result.filter}"
            if estimate.se is not None and math.isfinite(estimate.se) and not bounds.is_number(out.get(key)):
                out[key] = float(estimate.se)
    for key, value in values.items():
        error = _ERROR.fullmatch(key)
        if error and value == "N/A" and out[key] == "N/A" and (error["metric"], error["filter"]) not in native:
            del out[key]
    return out


def with_ends(values: Mapping[str, Any], results: Iterable[Result]) -> dict[str, Any]:
    """Return the columns of a task with the ends of our intervals, each after its value, and with the number of docs.

    Without our objects.

    Args:
        values: the columns of the task (``with_errors``).
        results: the results of the task, one for each filter pipeline.
    """
    added: dict[str, Any] = {}
    for result in results:
        of_magic = result.details.get("magic", {}).get("numbers", {})
        flat = {
            **result.details,
            **{f"{metric}_{side}": one[side] for metric, one in of_magic.items() for side in ("low", "high")},
        }
        name = result.filter
        for metric in _columns(result):
            ends = {
                f"{metric}_{side},{name}": flat[f"{metric}_{side}"]
                for side in ("low", "high")
                if f"{metric}_{side}" in flat
            }
            added |= {f"{metric},{name}": ends}
        if "n_docs" in flat:
            added |= {
                f"gate,{name}" if f"gate,{name}" in values else f"chance,{name}": {f"n_docs,{name}": flat["n_docs"]}
            }
    out: dict[str, Any] = {}
    for key, value in values.items():
        # objects stand in the file beside
        if not _is_object(key):
            out |= {key: value, **added.get(key, {})}
    return out


def tracked(result: Result, most: int = MOST) -> dict[str, float]:
    """Return a result's most important numbers, by the names of their columns, for an experiment tracker.

    First come the primary metric, the number of docs, the gate and the chance floor. Then each index with its corrected
    form, the metric over best cells, and all other columns. What room is left goes to intervals, those of indices
    first; then to our own standard errors.
    """
    metric, known = result.metric, estimates(result)
    numbers = {name: value for name in _columns(result) if (value := result.metrics.get(name)) is not None}
    numbers["n_docs"] = result.metrics.get("n_docs") or float(result.docs)

    first, rows, cells = (
        (metric, "n_docs", "gate", "chance"),
        catalogue.keyed(result.kind, result.grids),
        over_cells(result),
    )
    indices = {name for name, (number, _) in rows.items() if number.words}
    gaps = {name for name, (number, _) in rows.items() if number.name == "gap{key}"}
    ranks = {
        **dict.fromkeys(indices, 4),
        **dict.fromkeys(cells, 5),
        **dict.fromkeys(gaps, 7),
        **{name: place for place, name in enumerate(first)},
    }
    names = sorted(numbers, key=lambda name: ranks.get(name, 6))
    out = {name: numbers[name] for name in names[:most]}
    for name in sorted(out, key=lambda name: 0 if name in indices else 1 if name == metric else 2):
        one = known.get(name)
        if (
            one is not None
            and one.low is not None
            and one.high is not None
            and len(out) + 2 <= most
            and name not in gaps
        ):
            out |= {f"{name}_low": one.low, f"{name}_high": one.high}
    for name in names:
        # not the column, which nothing checks
        one = known.get(name)
        if one is not None and one.se is not None and math.isfinite(one.se) and len(out) < most:
            out[f"{name}_stderr"] = float(one.se)
    return out


def last(values: Mapping[str, Any], results: Iterable[Result]) -> dict[str, Any]:
    """Return a task's columns for lmms-eval's last table: at most six numbers of each filter pipeline, with standard errors.

    Of a task with an index these are the primary metric, the metric over best cells and both indices of the finest
    grid, the chance floor and the number of docs. A number that is not defined is left out: the findings below the
    table say why.

    Args:
        values: the columns of the task (``with_errors``).
        results: the results of the task, one for each filter pipeline.
    """
    out = {key: value for key, value in values.items() if "," not in key}
    for result in results:
        metric, index = result.metric, result.kind.index
        # of several grids the finest
        n = max(result.grids, default=None) if index else None
        names = (
            [metric, f"{metric}_mpp{n}", f"{index}{n}", f"{index}{n}_adj", "chance"]
            if n
            else list(tracked(result, LAST))
        )
        for name in [name for name in names if result.metrics.get(name) is not None]:
            # the harness writes standard errors in up to three columns
            keys = [f"{name}{sort},{result.filter}" for sort in ("", "_stderr", "_stderr_clt", "_stderr_clustered")]
            out |= {key: values[key] for key in keys if key in values}
        out[f"n_docs,{result.filter}"] = int(result.metrics.get("n_docs") or result.docs)
    return out


def errors(result: Result) -> dict[tuple[str, str], float]:
    """Return the standard errors among a result's columns, by metric and sort: "", or "_clt" and "_clustered" of the harness."""
    found = (
        (match, value) for key, value in result.run.written[result.task].items() if (match := _ERROR.fullmatch(key))
    )
    return {
        (match["metric"], match["sort"] or ""): float(value)
        for match, value in found
        if match["filter"] == result.filter and bounds.is_number(value)
    }


def _is_object(key: str) -> bool:
    """Return whether a column has an object of ours, or stands beside such a column."""
    metric = key.partition(",")[0]
    return metric in OBJECTS or (key.partition("_stderr")[0] in OBJECTS and "_stderr" in metric)


def _columns(result: Result) -> list[str]:
    """Return the metrics of which a result has a column.

    Without the ends of intervals, which a results file has as columns too.
    """
    names = by_filter(result.run.written[result.task]).get(result.filter, {})
    ends = {f"{name}_{side}" for name in names for side in ("low", "high")}
    return [name for name in names if name not in OBJECTS and name not in ends]


def estimates(result: Result) -> dict[str, Estimate]:
    """Return the estimates of a result's columns; a column with another value than its estimate is left out.

    They differ where calls failed: the harness's own metric counts them as wrong answers, ours leaves them out.
    """
    metric, known = result.metric, result.measures
    out = {}
    for name in _columns(result):
        estimate = known.get(name) or known.get(name.removeprefix(f"{metric}_"))
        value = result.metrics.get(name)
        if (
            estimate is not None
            and estimate.value is not None
            and value is not None
            and math.isclose(value, estimate.value, abs_tol=1e-9)
        ):
            out[name] = estimate
    return out
