"""The numbers of one set of views: MPP, the index with its interval, the luck-corrected index, where in the image the score comes from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import Key
from lmms_patch.rci.draws import minus
from lmms_patch.rci.gates import Gates
from lmms_patch.rci.kinds.orders import guessed
from lmms_patch.rci.work import Work
from lmms_patch.runs import luck_rows
from lmms_patch.runs.numbers import Grid
from lmms_patch.runs.views import set_places
from lmms_patch.stats import forms, gate, intervals, luck, sampled, spatial
from lmms_patch.stats.forms import Form
from lmms_patch.stats.index import Index, band, disagreement, fragmentation, index, span
from lmms_patch.stats.resample import Bools, Estimate

PARTIAL = 0.1
"""The share of docs whose best cell earns some of the marks from which on a warning is due."""
NO_ENDS = "the few docs that are right decide what a full pass would print: type the task's name without _quick, or leave out the budget"
"""Why a quick run has no interval of the full pass."""


class Grids:
    """The numbers of each set of views of a task.

    Args:
        work: the analysis in progress.
        gates: the gates of the task.
        unread: the evidence that the scorer does not compare with the golds; empty where there is none.
    """

    def __init__(self, work: Work, gates: Gates, unread: str) -> None:
        self._work, self._table, self._gates, self._unread = work, work.table, gates, unread

    def of(self, n: Key, judged: gate.Gate, scale: float) -> Grid:
        """Compute the numbers of a set of views.

        Args:
            n: the set.
            judged: the gate of all docs.
            scale: the metric's scale.
        """
        full, best, why = self._work.cells[n]
        used = self._work.used[n]
        judged = self._gates.of_set(n, judged)
        point = (
            Index(None, None, why)
            if why
            else index(full, best, higher_is_better=self._table.higher, signed=self._signed(judged))
        )
        # With a documented floor and scale, a scorer that ignores the golds does no harm.
        unread = "" if self._work.without_golds else self._unread
        reason = (
            self._work.too_many[n]
            or self._work.say(point.reason)
            or (judged.reason if judged.valid is False else unread)
        )
        warnings = self._warnings_of(n, judged)
        count, sets = int(used.sum()), (f"full{n}", f"best{n}")
        nothing = Estimate.nothing(count, reason, self._work.settings.level)
        value, gap, adj = nothing, nothing, None
        # The gap needs no division by FIP, so it is given even where the index is not defined.
        if judged.valid is not False and point.gap is not None and not self._work.too_many[n]:
            gap = self._work.draws.estimate_of(minus, sets, point.gap, used)
        if not reason and point.value is not None:
            value = self._work.draws.estimate_of(lambda full, best: 1 - best / full, sets, point.value, used)
            adj = self._corrected(n, used, scale)
        corrected = None if adj is None else adj.estimate.value
        if adj is not None and adj.tests is not None and corrected is not None and adj.tests.unlike:
            warnings.append(adj.tests.said)
        best_scores, marks = self._table.best_seen(n).scores[used], self._table.marks[used]
        # a trace below full marks is full marks
        partial = float(np.mean((best_scores > 0) & (best_scores < marks - 1e-9))) if used.any() else 0.0
        if adj is not None and adj.tests is None and corrected is not None and partial > PARTIAL:
            medium = self._table.kind.words.medium
            warnings.append(
                f"partial marks in {partial:.0%} of docs: that wrong {medium}s earn as many by luck is assumed, not tested"
            )
        # The papers define bands for grids only.
        banded = not self._table.kind.regions
        return Grid(
            n=n,
            excluded=int((~used).sum()),
            fip=full,
            mpp=self._work.estimate(f"best{n}", best, used),
            index=value,
            gap=gap,
            adj=adj,
            luck_ceiling=self._luck_ceiling(n),
            band=band(value.value) if banded and value.value is not None else None,
            span=span(value.low, value.high) if banded and value.low is not None and value.high is not None else None,
            shares=self._shares(n, used) if isinstance(n, int) else None,
            warnings=tuple(warnings),
            reason=reason,
            mark=disagreement(value.value, corrected)
            if banded and value.value is not None and corrected is not None
            else "",
            full_pass=self._full_pass(n, used, value),
        )

    def _full_pass(self, n: Key, used: Bools, value: Estimate) -> Estimate | None:
        """Estimate the index that a run over all docs would print, with an interval.

        None if this run asked all docs, or has no index.
        """
        if not self._table.sampling.used or value.value is None:
            return None
        found = sampled.interval(
            self._table.how_asked(n).take(used),
            level=self._work.settings.level,
            most=max(self._table.range_seen[1], 1e-9),
        )
        if not math.isfinite(found.half):
            return dataclasses.replace(value, se=None, low=None, high=None, draws=0, reason=NO_ENDS)
        se = found.half / intervals.normal_quantile((1 + self._work.settings.level) / 2)
        # Where FIP or MPP was clipped to the scale, the interval moves with the value.
        moved = value.value - found.value
        # No index is above 1.
        low, high = found.low + moved, max(min(found.high + moved, 1.0), value.value)
        return dataclasses.replace(value, se=se, low=low, high=high, draws=0, reason="")

    def _warnings_of(self, n: Key, judged: gate.Gate) -> list[str]:
        """Return the cautions on a set's numbers: too small cells, failed calls, an unknown gate."""
        warnings = list(filter(None, [fragmentation(n, self._table.kind.cells(n))])) if isinstance(n, int) else []
        if self._work.too_many[n]:
            warnings.append(f"no index: {self._work.too_many[n]}")
        if judged.valid is None:
            warnings.append(f"the gate is {judged.reason}")
        return warnings

    def _corrected(self, n: Key, used: Bools, scale: float) -> luck.Luck | None:
        """Return the luck-corrected index; None where no doc was asked on a wrong image, or no gold has a score."""
        if self._unread:
            return None
        s = self._work.settings
        form, scale = self._of_docs(scale)
        if form is None:
            return self._by_calls(n, used, scale)
        scores = luck_rows.measured(self._table, n, form, used)
        if scores is None:
            return None
        clusters = self._table.groups.clusters_of(used, renumbered=True)
        return luck.measured(scores, form.value, clusters, scale=scale, **s.how)

    def _signed(self, judged: gate.Gate) -> bool:
        """Return whether the metric's scale goes below 0, by the profile, an answer, or the chance floor."""
        return self._work.settings.signed or self._table.signed or (judged.chance is not None and judged.chance < 0)

    def _of_docs(self, scale: float) -> tuple[Form | None, float]:
        """Return the form and the scale with which luck is computed.

        A sum over docs becomes their mean, since the null has fewer docs.
        """
        if self._work.form is forms.SUM:
            return forms.MEAN, scale / max(1, len(self._table))
        return self._work.form, scale

    def _by_calls(self, n: Key, used: Bools, scale: float) -> luck.Luck | None:
        """Return the luck-corrected index where M must be called: over all docs together, without answer classes."""
        names = (f"full{n}", f"best{n}", f"ceiling{n}", f"null_full{n}", f"null_best{n}")
        if any(name not in self._work.draws.sets for name in names) or not len(
            self._work.draws.drawn.get(names[0], ())
        ):
            return None
        full, best, ceiling, null_full, null_best = names

        def numbers(found: Mapping[str, Any]) -> luck.Numbers:
            parts = {name: np.atleast_1d(found[name])[:, None] for name in names}
            docs = np.full(parts[full].shape, float(used.sum()))
            return luck.Numbers(parts[full], parts[best], parts[ceiling], parts[null_full], parts[null_best], docs)

        point, drawn = numbers(self._work.draws.point), numbers(self._work.draws.drawn)
        found = luck.judge(
            ("all",),
            point,
            drawn,
            *self._work.draws.counts(used),
            scale=scale,
            level=self._work.settings.level,
        )
        return dataclasses.replace(found, asked=int(np.isfinite(self._work.draws.sets[null_best][0].scores).sum()))

    def _luck_ceiling(self, n: Key) -> float | None:
        options = np.array([doc.options for doc in self._table.references.asked if doc.options], float)
        if len(options) != len(self._table) or not len(options):
            return None
        if isinstance(n, int):
            return luck.luck_ceiling(
                guessed(options) if self._table.kind.every_order else 1 / options, self._table.kind.cells(n)
            )
        tries = np.array([len(places) for places in set_places(self._table.records, n)])
        used = self._work.used[n]
        return luck.luck_ceiling(1 / options[used], tries[used]) if used.any() else None

    def _shares(self, n: int, used: Bools) -> spatial.CellShares | None:
        cells = self._table.cells(n)
        keep = used & np.isfinite(cells).all(axis=1)
        # Shares of a score are meaningless with negative parts, or where lower is better.
        if not keep.any() or cells[keep].min() < 0 or not self._table.higher:
            return None
        clusters = self._table.groups.clusters_of(keep)
        return spatial.cell_shares(
            cells[keep], clusters, shape=self._table.kind.shape(n), seed=self._work.settings.seed
        )
