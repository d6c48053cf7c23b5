"""The numbers of one set of views: MPP, the index with its interval, where in the image the score comes from."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from lmms_patch.ask.kinds import Key
from lmms_patch.rci.draws import minus
from lmms_patch.rci.work import Work
from lmms_patch.runs.numbers import Grid
from lmms_patch.stats import gate, intervals, sampled, spatial
from lmms_patch.stats.index import Index, band, disagreement, fragmentation, index, span
from lmms_patch.stats.resample import Bools, Estimate

NO_ENDS = "the few docs that are right decide what a full pass would print: type the task's name without _quick, or leave out the budget"
"""Why a quick run has no interval of the full pass."""


def grid_of(work: Work, n: Key, judged: gate.Gate, no_index: str, steady: Estimate | None) -> Grid:
    """Compute the numbers of a set of views.

    Args:
        work: the analysis in progress.
        n: the set.
        judged: the gate of the docs that the set uses (``gates.of_set``).
        no_index: why no index of the set may be read; "" where it may.
        steady: the steady index of the set; None where it has none.
    """
    full, best, why = work.cells[n]
    used = work.used[n]
    signed = _signed(work, judged)
    point = Index(None, None, why) if why else index(full, best, higher_is_better=work.table.higher, signed=signed)
    reason = work.too_many[n] or work.say(point.reason) or no_index
    warnings = _warnings_of(work, n, judged)
    count, sets = int(used.sum()), (f"full{n}", f"best{n}")
    # two objects: a gate takes one object for one number with several names
    value, gap = (Estimate.nothing(count, reason, work.settings.level) for _ in range(2))
    # The gap needs no division by FIP, so it is given even where the index is not defined.
    if judged.valid is not False and point.gap is not None and not work.too_many[n]:
        gap = work.draws.estimate_of(minus, sets, point.gap, used)
    if not reason and point.value is not None:
        value = work.draws.estimate_of(lambda full, best: 1 - best / full, sets, point.value, used)
    # The papers define bands for grids only.
    banded = not work.table.kind.regions
    return Grid(
        n=n,
        excluded=int((~used).sum()),
        fip=full,
        mpp=work.estimate(f"best{n}", best, used),
        index=value,
        gap=gap,
        band=band(value.value) if banded and value.value is not None else None,
        span=span(value.low, value.high) if banded and value.low is not None and value.high is not None else None,
        shares=_shares(work, n, used) if isinstance(n, int) else None,
        warnings=tuple(warnings),
        reason=reason,
        mark=disagreement(value.value, steady.value)
        if banded and value.value is not None and steady is not None and steady.value is not None
        else "",
        full_pass=_full_pass(work, n, used, value),
    )


def _full_pass(work: Work, n: Key, used: Bools, value: Estimate) -> Estimate | None:
    """Estimate the index that a run over all docs would print, with an interval.

    None if this run asked all docs, or has no index.
    """
    if not work.table.sampling.used or value.value is None:
        return None
    found = sampled.interval(
        work.table.how_asked(n).take(used),
        level=work.settings.level,
        most=max(work.table.range_seen[1], 1e-9),
    )
    if not math.isfinite(found.half):
        return dataclasses.replace(value, se=None, low=None, high=None, draws=0, reason=NO_ENDS)
    se = found.half / intervals.normal_quantile((1 + work.settings.level) / 2)
    # Where FIP or MPP was clipped to the scale, the interval moves with the value.
    moved = value.value - found.value
    # No index is above 1.
    low, high = found.low + moved, max(min(found.high + moved, 1.0), value.value)
    return dataclasses.replace(value, se=se, low=low, high=high, draws=0, reason="")


def _warnings_of(work: Work, n: Key, judged: gate.Gate) -> list[str]:
    """Return the cautions on a set's numbers: too small cells, failed calls, an unknown gate."""
    warnings = list(filter(None, [fragmentation(n, work.table.kind.cells(n))])) if isinstance(n, int) else []
    if work.too_many[n]:
        warnings.append(f"no index: {work.too_many[n]}")
    if judged.valid is None:
        warnings.append(f"the gate is {judged.reason}")
    return warnings


def _signed(work: Work, judged: gate.Gate) -> bool:
    """Return whether the metric's scale goes below 0, by the profile, an answer, or the chance floor."""
    return work.settings.signed or work.table.signed or (judged.chance is not None and judged.chance < 0)


def _shares(work: Work, n: int, used: Bools) -> spatial.CellShares | None:
    cells = work.table.cells(n)
    keep = used & np.isfinite(cells).all(axis=1)
    # Shares of a score are meaningless with negative parts, or where lower is better.
    if not keep.any() or cells[keep].min() < 0 or not work.table.higher:
        return None
    clusters = work.table.groups.clusters_of(keep)
    return spatial.cell_shares(cells[keep], clusters, shape=work.table.kind.shape(n), seed=work.settings.seed)
