"""A task's numbers as columns of the host's results: standard errors and intervals beside the values. Pure.

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
from lmms_patch.runs.run import Result
from lmms_patch.stats import bounds
from lmms_patch.stats.resample import Estimate

MOST = 20
"""How many numbers of a task go to an experiment tracker."""
LAST = 6
"""How many numbers of a task lmms-eval's last table shows."""
OBJECTS = ("patch", "magic")
"""The metrics whose value is an object of ours."""
_ERROR = re.compile(r"(?P<metric>.+)_stderr(?P<sort>_clt|_clustered)?,(?P<filter>.*)")


def by_filter(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a task's values by filter pipeline and metric, from the keys ``"<metric>,<filter>"`` of the host."""
    out: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        metric, comma, name = key.partition(",")
        if comma and "_stderr" not in metric:
            out.setdefault(name, {})[metric] = value
    return out


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
        if result.kind.suffix:
            native |= {(metric, result.filter) for metric in result.about.metrics}
        for metric, estimate in estimates(values, result).items():
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
        name, flat, known = result.filter, _flat(result), estimates(values, result)
        for metric in _names(values, result):
            ends = {
                f"{metric}_{side},{name}": flat[f"{metric}_{side}"]
                for side in ("low", "high")
                if f"{metric}_{side}" in flat
            }
            if not result.kind.suffix and (one := known.get(metric)) is not None:
                ends = {f"{metric}_low,{name}": one.low, f"{metric}_high,{name}": one.high}
            added[f"{metric},{name}"] = ends
        if "n_docs" in flat:
            last_of_task = f"gate,{name}" if f"gate,{name}" in values else f"chance,{name}"
            added[last_of_task] = {f"n_docs,{name}": flat["n_docs"]}
    out: dict[str, Any] = {}
    for key, value in values.items():
        # the objects are for this process alone
        if not _is_object(key):
            out |= {key: value, **added.get(key, {})}
    return out


def tracked(values: Mapping[str, Any], result: Result, most: int = MOST) -> dict[str, float]:
    """Return a result's most important numbers, by the names of their columns, for an experiment tracker.

    First come the primary metric, the number of docs, the gate and the chance floor. Then each index with its corrected
    form, the metric over best cells, and all other columns. What room is left goes to intervals, those of indices
    first; then to our own standard errors.
    """
    metric, known, numbers = result.metric, estimates(values, result), _values(values, result)
    numbers["n_docs"] = float(_docs(result))
    rows = catalogue.keyed(result.kind, result.grids)
    indices = {name for name, (number, _) in rows.items() if number.words}
    gaps = {name for name, (number, _) in rows.items() if number.name == "gap{key}"}
    ranks = {
        **dict.fromkeys(indices, 4),
        **dict.fromkeys(over_cells(result), 5),
        **dict.fromkeys(gaps, 7),
        **{name: place for place, name in enumerate((metric, "n_docs", "gate", "chance"))},
    }
    names = sorted(numbers, key=lambda name: ranks.get(name, 6))
    out = {name: numbers[name] for name in names[:most]}
    for name in sorted(out, key=lambda name: 0 if name in indices else 1 if name == metric else 2):
        one = known.get(name)
        has_ends = one is not None and one.low is not None and one.high is not None
        if one is not None and has_ends and len(out) + 2 <= most and name not in gaps:
            out |= {f"{name}_low": float(one.low or 0.0), f"{name}_high": float(one.high or 0.0)}
    for name in names:
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
        metric, index, known = result.metric, result.kind.index, _values(values, result)
        # of several grids the finest
        n = max(result.grids, default=None) if index else None
        names = (
            [metric, f"{metric}_mpp{n}", f"{index}{n}", f"{index}{n}_adj", "chance"]
            if n
            else list(tracked(values, result, LAST))
        )
        for name in [name for name in names if name in known]:
            # the harness writes standard errors in up to three columns
            keys = [f"{name}{sort},{result.filter}" for sort in ("", "_stderr", "_stderr_clt", "_stderr_clustered")]
            out |= {key: values[key] for key in keys if key in values}
        out[f"n_docs,{result.filter}"] = _docs(result)
    return out


def estimates(values: Mapping[str, Any], result: Result) -> dict[str, Estimate]:
    """Return the estimates of a result's columns; a column with another value than its estimate is left out.

    They differ where calls failed: the harness's own metric counts them as wrong answers, ours leaves them out.
    """
    metric, known = result.metric, result.measures
    out = {}
    for name, value in _values(values, result).items():
        estimate = known.get(name) or known.get(name.removeprefix(f"{metric}_"))
        if estimate is not None and estimate.value is not None and math.isclose(value, estimate.value, abs_tol=1e-9):
            out[name] = estimate
    return out


def _flat(result: Result) -> dict[str, float | int | None]:
    """Return every flat number of a wrapped task."""
    return {} if result.analysis is None else catalogue.columns(result.analysis, result.kind)


def _docs(result: Result) -> int:
    return int(result.scored or result.docs)


def _is_object(key: str) -> bool:
    """Return whether a column has an object of ours, or stands beside such a column."""
    metric = key.partition(",")[0]
    return metric in OBJECTS or (key.partition("_stderr")[0] in OBJECTS and "_stderr" in metric)


def _names(values: Mapping[str, Any], result: Result) -> list[str]:
    """Return the metrics of which a result has a column, but for the ends of intervals."""
    names = by_filter(values).get(result.filter, {})
    ends = {f"{name}_{side}" for name in names for side in ("low", "high")}
    return [name for name in names if name not in OBJECTS and name not in ends]


def _values(values: Mapping[str, Any], result: Result) -> dict[str, float]:
    """Return the columns of a result that have a number."""
    own = by_filter(values).get(result.filter, {})
    return {name: float(own[name]) for name in _names(values, result) if bounds.is_number(own[name])}
