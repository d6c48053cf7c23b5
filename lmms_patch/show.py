"""The table of a finished run, from its results file and its sample logs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lmms_patch.records import (
    PairedScores,
    TaskResult,
    cell_scores,
    excluded_docs,
    majority_gold,
    paired_scores,
    read_results,
    read_samples,
    samples_file,
)
from lmms_patch.spec import KINDS
from lmms_patch.stats.index import interval
from lmms_patch.stats.resample import Estimate
from lmms_patch.stats.spatial import CellShares, cell_shares

Row = list[str]


@dataclass(frozen=True)
class Shown:
    """One wrapped task of a finished run, as the table shows it.

    Attributes:
        result: its metrics.
        name: its name, with the filter where the task has several.
        majority: the share of its most frequent gold answer (0..1); None where it was not logged or says nothing.
        excluded: how many docs are left out at one grid at least; None where there is no log.
        intervals: by grid, the index with its interval; only where the sample log gives one.
        cells: by grid, where in the image the score comes from; only where there is a log.
    """

    result: TaskResult
    name: str
    majority: float | None = None
    excluded: int | None = None
    intervals: Mapping[int, Estimate] = field(default_factory=dict)
    cells: Mapping[int, CellShares] = field(default_factory=dict)


def load(path: Path) -> list[Shown]:
    """The wrapped tasks of a results file, with what their sample logs beside it add.

    Raises:
        RecordError: the file or a log cannot be read.
    """
    results = read_results(path)
    filters = Counter(r.task for r in results)
    return [_load(r, path) if filters[r.task] == 1 else Shown(r, f"{r.task}, {r.filter}") for r in results]


def _load(result: TaskResult, path: Path) -> Shown:
    log = samples_file(path, result.task)
    if log is None:
        return Shown(result, result.task)
    grids = result.described["grids"] if KINDS[result.described["kind"]].index else []
    found = {n: estimate for n in grids if (estimate := _interval(result, log, n)) is not None}
    scores = {n: cell_scores(read_samples(log), n, result.described["metric"]) for n in grids}
    cells = {n: cell_shares(rows, clusters) for n, (rows, clusters) in scores.items() if rows and min(map(min, rows)) >= 0}
    return Shown(result, result.task, majority_gold(log), excluded_docs(read_samples(log)), found, cells)


def _interval(result: TaskResult, log: Path, n: int) -> Estimate | None:
    """The interval of the index, where the reported index is that of a mean: recomputed from the log, they must agree."""
    reported = result.metrics.get(f"{KINDS[result.described['kind']].index}{n}")
    scores = paired_scores(read_samples(log), n, result.described["metric"])
    if scores is None or reported is None:
        return None
    estimate = interval(scores.full, scores.best, scores.clusters)
    agrees = estimate.value is not None and math.isclose(estimate.value, reported, rel_tol=1e-9, abs_tol=1e-9)
    return estimate if agrees and estimate.low is not None and _is_of_means(result, scores, n) else None


def _is_of_means(result: TaskResult, scores: PairedScores, n: int) -> bool:
    """Whether FIP and MPP are the means of the docs' scalars: as they are, in percent, or summed."""
    mpp, gap = result.metrics.get(f"{result.described['metric']}_mpp{n}"), result.metrics.get(f"gap{n}")
    docs = len(scores.full)
    if mpp is None or gap is None or not docs:
        return False
    means = sum(scores.full) / docs, sum(scores.best) / docs
    return any(
        all(math.isclose(factor * mean, value, rel_tol=1e-9, abs_tol=1e-9) for mean, value in zip(means, (gap + mpp, mpp), strict=True))
        for factor in (1, 100, docs)
    )


def table(shown: Sequence[Shown]) -> str:
    """One row per wrapped task: FIP, MPP_n and the index with its 95 % interval for each grid, as plain text.

    Scores are on the metric's own scale; ``n/a`` where a number is not defined. FIP is over all
    docs; MPP and the index leave out the docs that the second column counts.
    """
    grids = sorted({n for s in shown for n in s.result.described["grids"] if KINDS[s.result.described["kind"]].index})
    index = [KINDS[s.result.described["kind"]].index for s in shown if KINDS[s.result.described["kind"]].index]
    name = (index[0] or "rci").upper() if index else "RCI"
    hidden = sorted({n for s in shown for n in s.result.described["grids"] if s.result.described["kind"] == "occlude"})
    header = [
        "task",
        "metric",
        "docs",
        "majority gold",
        "full (FIP)",
        *(f"best of {n * n} (MPP_{n})" for n in grids),
        *(f"{name}_{n} [95 %]" for n in grids),
    ]
    header += [f"drop_{n}" for n in hidden]
    rows = [[s.name, s.result.described["metric"], _docs(s), _number(s.majority), _number(_fip(s.result)), *_cells(s, grids, hidden)] for s in shown]
    return _aligned([header, *rows])


def _fip(result: TaskResult) -> float | None:
    metric = result.described["metric"]
    return None if metric == "bypass" else result.metrics.get(metric)  # the host's mark of --predict_only


def _docs(shown: Shown) -> str:
    return f"{shown.result.docs} ({shown.excluded} left out)" if shown.excluded else str(shown.result.docs)


def _cells(shown: Shown, grids: Sequence[int], hidden: Sequence[int]) -> Row:
    result = shown.result
    m, index = result.described["metric"], KINDS[result.described["kind"]].index
    best = [_number(result.metrics[f"{m}_mpp{n}"]) if f"{m}_mpp{n}" in result.metrics else "" for n in grids]
    values = [_with_interval(result.metrics[f"{index}{n}"], shown.intervals.get(n)) if f"{index}{n}" in result.metrics else "" for n in grids]
    drops = [_number(result.metrics[f"{m}_drop{n}"]) if f"{m}_drop{n}" in result.metrics else "" for n in hidden]
    return best + values + drops


def _with_interval(value: float | None, estimate: Estimate | None) -> str:
    span = f" [{_number(estimate.low, signed=True)}, {_number(estimate.high, signed=True)}]" if estimate else ""
    return _number(value, signed=True) + span


def _number(value: float | None, signed: bool = False) -> str:
    if value is None:
        return "n/a"
    return f"{value:+.3f}" if signed else f"{value:.3f}"


def _aligned(rows: Sequence[Row]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))) for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def cell_tables(shown: Sequence[Shown]) -> str:
    """For each task and grid: the share of the score that each cell earns, in percent, and whether it could be even."""
    return "\n\n".join(_cell_table(s, n, shares) for s in shown for n, shares in s.cells.items())


def _cell_table(shown: Shown, n: int, shares: CellShares) -> str:
    title = f"{shown.name}, {n}x{n}: share of the cells' score"
    if shares.score is None or shares.p is None or shares.p_cells is None:
        return f"{title}: no cell scores"
    marked = [f"{100 * s:.0f}{'*' if p < 0.05 else ' '}" for s, p in zip(shares.score, shares.p_cells, strict=True)]
    rows = ["  ".join(cell.rjust(4) for cell in marked[row * n : (row + 1) * n]) for row in range(n)]
    middle = "" if shares.centre is None else f"; the middle earns {shares.centre:.1f} times its share of the area"
    return "\n".join([f"{title}, in % (even: p = {shares.p:.3f}; * a cell that is not even, Holm-corrected{middle})", *rows])


def meaning(shown: Sequence[Shown]) -> str:
    """One sentence: which tasks one cell answers as well as the whole image, and which need the whole image.

    "As well" is RCI ≤ 0 at every grid, "need" is RCI ≥ 0.30 at every grid (the papers' band for
    strong global reasoning). A task whose full score is not above a constant answer's by two
    standard errors is said to show nothing.
    """
    local: list[str] = []
    whole: list[str] = []
    nothing: list[str] = []
    for s in shown:
        described = s.result.described
        values = [s.result.metrics.get(f"{KINDS[described['kind']].index}{n}") for n in described["grids"]]
        known = [v for v in values if v is not None]
        if not known or len(known) < len(values):
            continue
        name = described["base"] if s.name == s.result.task else s.name
        if _like_a_constant(s):
            nothing.append(name)
        elif max(known) <= 0:
            local.append(name)
        elif min(known) >= 0.30:
            whole.append(name)
    parts = []
    if local:
        parts.append(f"one cell is enough for {_listed(local)} (RCI at or below 0)")
    if whole:
        parts.append(f"only the whole image answers {_listed(whole)} (RCI of 0.30 or more)")
    if nothing:
        parts.append(f"the index of {_listed(nothing)} means nothing, since the full image does not beat a constant answer")
    return f"In words: {'; '.join(parts)}." if parts else "In words: no task is clearly answered by one cell, and none clearly needs the whole image."


def _like_a_constant(shown: Shown) -> bool:
    """Whether FIP is within two standard errors (of a share, over docs) of the most frequent gold's share.

    Only for a metric in 0..1; one on another scale is not a share.
    """
    fip, majority, docs = _fip(shown.result), shown.majority, shown.result.docs
    if fip is None or majority is None or not docs or not 0 <= fip <= 1:
        return False
    return fip <= majority + 2 * math.sqrt(majority * (1 - majority) / docs)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
