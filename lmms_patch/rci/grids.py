"""The numbers of one set of views: MPP, the index with its interval, the luck-corrected index, where in the image the score comes from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import Key
from lmms_patch.rci.draws import minus
from lmms_patch.rci.gates import of_set
from lmms_patch.rci.work import Work
from lmms_patch.runs import luck_rows
from lmms_patch.runs.numbers import Grid
from lmms_patch.stats import forms, gate, intervals, luck, sampled, spatial
from lmms_patch.stats.forms import Form
from lmms_patch.stats.index import Index, band, disagreement, fragmentation, index, span
from lmms_patch.stats.resample import Bools, Estimate

PARTIAL = 0.1
"""The share of docs whose best cell earns some of the marks from which on a warning is due."""
NO_ENDS = "the few docs that are right decide what a full pass would print: type the task's name without _quick, or leave out the budget"
"""Why a quick run has no interval of the full pass."""


def grid_of(work: Work, n: Key, judged: gate.Gate, scale: float, unread: str) -> Grid:
    """Compute the numbers of a set of views.

    Args:
        work: the analysis in progress.
        n: the set.
        judged: the gate of all docs.
        scale: the metric's scale.
        unread: the evidence that the scorer does not compare with the golds; empty where there is none.
    """
    full, best, why = work.cells[n]
    used = work.used[n]
    judged = of_set(work, n, judged)
    signed = _signed(work, judged)
    point = Index(None, None, why) if why else index(full, best, higher_is_better=work.table.higher, signed=signed)
    # With a documented floor and scale, a scorer that ignores the golds does no harm.
    ignored = "" if work.without_golds else unread
    reason = work.too_many[n] or work.say(point.reason) or (judged.reason if judged.valid is False else ignored)
    warnings = _warnings_of(work, n, judged)
    count, sets = int(used.sum()), (f"full{n}", f"best{n}")
    # two objects: a gate takes one object for one number with several names
    value, gap = (Estimate.nothing(count, reason, work.settings.level) for _ in range(2))
    adj = None
    # The gap needs no division by FIP, so it is given even where the index is not defined.
    if judged.valid is not False and point.gap is not None and not work.too_many[n]:
        gap = work.draws.estimate_of(minus, sets, point.gap, used)
    if not reason and point.value is not None:
        value = work.draws.estimate_of(lambda full, best: 1 - best / full, sets, point.value, used)
        adj = None if unread else _corrected(work, n, used, scale)
    corrected = None if adj is None else adj.estimate.value
    if adj is not None and adj.tests is not None and corrected is not None and adj.tests.unlike:
        warnings.append(adj.tests.said)
    best_scores, marks = work.table.best_seen(n).scores[used], work.table.marks[used]
    # a trace below full marks is full marks
    partial = float(np.mean((best_scores > 0) & (best_scores < marks - 1e-9))) if used.any() else 0.0
    if adj is not None and adj.tests is None and corrected is not None and partial > PARTIAL:
        images = f"wrong {work.table.kind.words.medium}s"
        warnings.append(
            f"partial marks in {partial:.0%} of docs: that {images} earn as many by luck is assumed, not tested"
        )
    # The papers define bands for grids only.
    banded = not work.table.kind.regions
    return Grid(
        n=n,
        excluded=int((~used).sum()),
        fip=full,
        mpp=work.estimate(f"best{n}", best, used),
        index=value,
        gap=gap,
        adj=adj,
        luck_ceiling=_luck_ceiling(work, n),
        band=band(value.value) if banded and value.value is not None else None,
        span=span(value.low, value.high) if banded and value.low is not None and value.high is not None else None,
        shares=_shares(work, n, used) if isinstance(n, int) else None,
        warnings=tuple(warnings),
        reason=reason,
        mark=disagreement(value.value, corrected)
        if banded and value.value is not None and corrected is not None
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


def _corrected(work: Work, n: Key, used: Bools, scale: float) -> luck.Luck | None:
    """Return the luck-corrected index; None where no doc was asked on a wrong image, or no gold has a score."""
    s = work.settings
    form, scale = _of_docs(work, scale)
    if form is None:
        return _by_calls(work, n, used, scale)
    scores = luck_rows.measured(work.table, n, form, used)
    if scores is None:
        return None
    clusters = work.table.groups.clusters_of(used, renumbered=True)
    return luck.measured(scores, form.value, clusters, scale=scale, **s.how)


def _signed(work: Work, judged: gate.Gate) -> bool:
    """Return whether the metric's scale goes below 0, by the profile, an answer, or the chance floor."""
    return work.settings.signed or work.table.signed or (judged.chance is not None and judged.chance < 0)


def _of_docs(work: Work, scale: float) -> tuple[Form | None, float]:
    """Return the form and the scale with which luck is computed.

    A sum over docs becomes their mean, since the null has fewer docs.
    """
    if work.form is forms.SUM:
        return forms.MEAN, scale / max(1, len(work.table))
    return work.form, scale


def _by_calls(work: Work, n: Key, used: Bools, scale: float) -> luck.Luck | None:
    """Return the luck-corrected index where M must be called: over all docs together, without answer classes."""
    names = (f"full{n}", f"best{n}", f"ceiling{n}", f"null_full{n}", f"null_best{n}")
    if any(name not in work.draws.sets for name in names) or not len(work.draws.drawn.get(names[0], ())):
        return None
    full, best, ceiling, null_full, null_best = names

    def numbers(found: Mapping[str, Any]) -> luck.Numbers:
        parts = {name: np.atleast_1d(found[name])[:, None] for name in names}
        docs = np.full(parts[full].shape, float(used.sum()))
        return luck.Numbers(parts[full], parts[best], parts[ceiling], parts[null_full], parts[null_best], docs)

    point, drawn = numbers(work.draws.point), numbers(work.draws.drawn)
    found = luck.judge(
        ("all",),
        point,
        drawn,
        *work.draws.counts(used),
        scale=scale,
        level=work.settings.level,
    )
    return dataclasses.replace(found, asked=int(np.isfinite(work.draws.sets[null_best][0].scores).sum()))


def _luck_ceiling(work: Work, n: Key) -> float | None:
    options = work.table.references.uninformed.options
    if not len(options) or not options.all():
        return None
    if isinstance(n, int):
        return luck.luck_ceiling(1 / options, work.table.kind.cells(n))
    used, views = work.used[n], work.table.views
    tries = views.per_doc(views.in_set(n))
    return luck.luck_ceiling(1 / options[used], tries[used]) if used.any() else None


def _shares(work: Work, n: int, used: Bools) -> spatial.CellShares | None:
    cells = work.table.cells(n)
    keep = used & np.isfinite(cells).all(axis=1)
    # Shares of a score are meaningless with negative parts, or where lower is better.
    if not keep.any() or cells[keep].min() < 0 or not work.table.higher:
        return None
    clusters = work.table.groups.clusters_of(keep)
    return spatial.cell_shares(cells[keep], clusters, shape=work.table.kind.shape(n), seed=work.settings.seed)
