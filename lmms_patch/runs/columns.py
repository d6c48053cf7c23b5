"""A task's numbers as columns of the host's results: standard errors and intervals beside the values. Pure.

The harness names a column ``"<metric>,<filter>"``, and the column of its standard error ``"<metric>_stderr,<filter>"``.
It computes a standard error where the metric is a mean of its docs; of our metrics it writes "N/A" three times each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from lmms_patch.runs import catalogue
from lmms_patch.runs.run import Result
from lmms_patch.stats import bounds
from lmms_patch.stats.resample import Estimate

LAST = 6
"""How many numbers of a task lmms-eval's last table shows."""
OBJECTS = ("patch", "magic")
"""The metrics whose value is an object of ours."""
SIDES, ERRORS = ("low", "high"), ("_stderr", "_stderr_clt", "_stderr_clustered")
"""What follows a metric's name in the columns of its interval, and in those where the harness puts standard errors."""


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
    for result in results:
        for metric, estimate in estimates(values, result).items():
            key = f"{metric}_stderr,{result.filter}"
            if bounds.is_number(estimate.se) and not bounds.is_number(out.get(key)):
                out[key] = float(estimate.se)
        # all metrics of a MAGIC task are ours
        native = result.about.metrics if result.kind.suffix else ()
        for metric in by_filter(values).get(result.filter, {}).keys() - native:
            for key in (f"{metric}{error},{result.filter}" for error in ERRORS):
                if out.get(key) == "N/A":
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
        name, flat = result.filter, {} if result.analysis is None else catalogue.columns(result.analysis, result.kind)
        if not result.kind.suffix:
            known = estimates(values, result)
            flat = {f"{metric}_{side}": getattr(one, side) for metric, one in known.items() for side in SIDES}
        for metric in _names(values, result):
            ends = [f"{metric}_{side}" for side in SIDES]
            added[f"{metric},{name}"] = {f"{end},{name}": flat[end] for end in ends if end in flat}
        if "n_docs" in flat:
            last_of_task = f"gate,{name}" if f"gate,{name}" in values else f"chance,{name}"
            added[last_of_task] = {f"n_docs,{name}": flat["n_docs"]}
    out: dict[str, Any] = {}
    for key, value in values.items():
        # the objects are for this process alone
        if key.partition(",")[0].partition("_stderr")[0] not in OBJECTS:
            out |= {key: value, **added.get(key, {})}
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
        names = [metric, f"{metric}_mpp{n}", f"{index}{n}", f"{index}{n}_adj", "chance"]
        if n is None:
            names = list(dict.fromkeys([metric, "chance", *known]))[: LAST - 1]
        for name in [name for name in names if name in known]:
            keys = [f"{name}{error},{result.filter}" for error in ("", *ERRORS)]
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


def _docs(result: Result) -> int:
    return int(result.scored or result.docs)


def _names(values: Mapping[str, Any], result: Result) -> list[str]:
    """Return the metrics of which a result has a column, but for the ends of intervals."""
    names = by_filter(values).get(result.filter, {})
    ends = {f"{name}_{side}" for name in names for side in SIDES}
    return [name for name in names if name not in OBJECTS and name not in ends]


def _values(values: Mapping[str, Any], result: Result) -> dict[str, float]:
    """Return the columns of a result with a number."""
    own = by_filter(values).get(result.filter, {})
    return {name: float(own[name]) for name in _names(values, result) if bounds.is_number(own[name])}
