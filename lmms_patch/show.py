"""The table of a finished run, from its results file and its sample logs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lmms_patch.records import TaskResult
from lmms_patch.spec import KINDS

Row = list[str]


def table(results: Sequence[TaskResult], majority: Mapping[str, float]) -> str:
    """One row per wrapped task: FIP, MPP_n and the index for each grid, as plain text.

    Scores are on the metric's own scale; ``n/a`` where a number is not defined.

    Args:
        results: the tasks of a run.
        majority: by task, the share of its most frequent gold answer (0..1), where it was logged.
    """
    grids = sorted({n for r in results for n in r.described["grids"] if KINDS[r.described["kind"]].index})
    index = [KINDS[r.described["kind"]].index for r in results if KINDS[r.described["kind"]].index]
    name = (index[0] or "rci").upper() if index else "RCI"
    header = ["task", "metric", "majority gold", "full (FIP)", *(f"best of {n * n} (MPP_{n})" for n in grids), *(f"{name}_{n}" for n in grids)]
    rows = [[r.task, r.described["metric"], _number(majority.get(r.task)), _number(_fip(r)), *_cells(r, grids)] for r in results]
    return _aligned([header, *rows])


def _fip(result: TaskResult) -> float | None:
    return result.metrics.get(result.described["metric"])


def _cells(result: TaskResult, grids: Sequence[int]) -> Row:
    m, index = result.described["metric"], KINDS[result.described["kind"]].index
    best = [_number(result.metrics[f"{m}_mpp{n}"]) if f"{m}_mpp{n}" in result.metrics else "" for n in grids]
    values = [_number(result.metrics[f"{index}{n}"], signed=True) if f"{index}{n}" in result.metrics else "" for n in grids]
    return best + values


def _number(value: float | None, signed: bool = False) -> str:
    if value is None:
        return "n/a"
    return f"{value:+.3f}" if signed else f"{value:.3f}"


def _aligned(rows: Sequence[Row]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))) for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def meaning(results: Sequence[TaskResult], majority: Mapping[str, float]) -> str:
    """One sentence: which tasks one cell answers as well as the whole image, and which need the whole image.

    "As well" is RCI ≤ 0 at every grid, "need" is RCI ≥ 0.30 at every grid (the papers' band for
    strong global reasoning). A task whose full score is not above a constant answer's by two
    standard errors is said to show nothing. These are points without intervals: read them as such.
    """
    local: list[str] = []
    whole: list[str] = []
    nothing: list[str] = []
    for r in results:
        index = KINDS[r.described["kind"]].index
        values = [r.metrics.get(f"{index}{n}") for n in r.described["grids"]] if index else []
        known = [v for v in values if v is not None]
        if not known or len(known) < len(values):
            continue
        if _like_a_constant(r, majority.get(r.task)):
            nothing.append(r.described["base"])
        elif max(known) <= 0:
            local.append(r.described["base"])
        elif min(known) >= 0.30:
            whole.append(r.described["base"])
    parts = []
    if local:
        parts.append(f"one cell is enough for {_listed(local)} (RCI at or below 0)")
    if whole:
        parts.append(f"only the whole image answers {_listed(whole)} (RCI of 0.30 or more)")
    if nothing:
        parts.append(f"the index of {_listed(nothing)} means nothing, since the full image does not beat a constant answer")
    return f"In words: {'; '.join(parts)}." if parts else "In words: no task is clearly answered by one cell, and none clearly needs the whole image."


def _like_a_constant(result: TaskResult, majority: float | None) -> bool:
    """Whether FIP is within two standard errors (of a share, over docs) of the most frequent gold's share."""
    fip = _fip(result)
    if fip is None or majority is None or not result.docs:
        return False
    return fip <= majority + 2 * math.sqrt(majority * (1 - majority) / result.docs)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
