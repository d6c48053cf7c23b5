"""A task's numbers as columns of the host's results: our standard errors beside the values. Pure.

The harness names a column ``"<metric>,<filter>"``, and the column of its standard error ``"<metric>_stderr,<filter>"``.
It computes a standard error where the metric is a mean of its docs; of our metrics it writes "N/A" three times each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from lmms_patch.runs.run import Result
from lmms_patch.stats import bounds

LAST = 6
"""How many numbers of a task lmms-eval's last table shows."""
ERRORS = ("_stderr", "_stderr_clt", "_stderr_clustered")
"""What follows a metric's name in the columns where the harness puts standard errors."""


def by_filter(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a task's values by filter pipeline and metric, from the keys ``"<metric>,<filter>"`` of the host."""
    out: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        metric, comma, name = key.partition(",")
        if comma and "_stderr" not in metric:
            out.setdefault(name, {})[metric] = value
    return out


def with_errors(values: Mapping[str, Any], results: Iterable[Result]) -> dict[str, Any]:
    """Return the columns of a task with our standard errors and the number of docs, and without the harness's "N/A".

    A standard error that the harness computed stays. A column with another value than our estimate gets none: where calls
    failed, the harness's own metric counts them as wrong answers, ours leaves them out.

    Args:
        values: the columns as the harness made them.
        results: the results of the task, one for each filter pipeline.
    """
    out = {key: value for key, value in values.items() if not isinstance(value, str) or value != "N/A"}
    for result in results:
        for name, value in _numbers(values, result).items():
            own = result.measures.get(name) or result.measures.get(name.removeprefix(f"{result.metric}_"))
            key = f"{name}_stderr,{result.filter}"
            if own is None or own.value is None or own.se is None or bounds.is_number(out.get(key)):
                continue
            if math.isclose(value, own.value, abs_tol=1e-9):
                out[key] = float(own.se)
        out[f"n_docs,{result.filter}"] = result.scored if result.analysis else result.docs
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
        metric, index, known = result.metric, result.kind.index, _numbers(values, result)
        names = dict.fromkeys([metric, "chance", *known])
        if index and result.grids:
            # of several grids the finest
            n = max(result.grids)
            names = dict.fromkeys([metric, f"{metric}_mpp{n}", f"{index}{n}", f"{index}{n}_steady", "chance"])
        shown = [name for name in names if name in known and name != "n_docs"][: LAST - 1]
        keys = [f"{name}{error},{result.filter}" for name in (*shown, "n_docs") for error in ("", *ERRORS)]
        out |= {key: values[key] for key in keys if key in values}
    return out


def _numbers(values: Mapping[str, Any], result: Result) -> dict[str, float]:
    """Return the columns of a result with a number."""
    own = by_filter(values).get(result.filter, {})
    return {name: float(value) for name, value in own.items() if bounds.is_number(value)}
