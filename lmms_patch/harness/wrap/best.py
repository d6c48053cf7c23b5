"""Chooses which views of a doc its numbers are made of: the best cell or box, and the worst order of the options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_patch.ask.kinds import TURNS, Key
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.harness.wrap.metrics import Metrics
from lmms_patch.runs.scored import SampleRecord, ScoredView, best_cell, decisive


class BestViews:
    """Chooses among the scored views of a doc. Keeps nothing of a doc.

    Args:
        spec: what was asked.
        metrics: the metrics of the native task.
    """

    def __init__(self, spec: WrapSpec, metrics: Metrics) -> None:
        self._spec, self._metrics = spec, metrics

    def _place(self, scored: Sequence[ScoredView], key: Key, metric: str | None) -> int | None:
        """Return the index of the best cell or box for a metric.

        For ``occlude``, of the cell that hurts most when hidden.
        """
        if metric is None:
            return None
        higher = self._metrics.higher.get(metric, True)
        return best_cell(
            scored,
            key,
            metric,
            # of hidden cells, the one that hurts most counts
            higher if self._spec.kind.keeps_best else not higher,
            every_order=self._spec.kind.every_order,
        )

    def cells(self, scored: Sequence[ScoredView], excluded: Mapping[Key, str]) -> dict[Key, int]:
        """Return the index of the best cell or box by the primary metric, for each set that the doc is used for."""
        metric = next((m for view in scored if (m := self._metrics.primary_among(view.items)) is not None), None)
        return {
            key: place
            for key in self._spec.sets
            if key not in excluded and (place := self._place(scored, key, metric)) is not None
        }

    def whole(self, record: SampleRecord) -> dict[str, Any]:
        """Return the native items behind FIP, by metric: of the full image, in its worst order where every order counts.

        Empty then for a doc whose options cannot be moved.
        """
        if not self._spec.kind.every_order:
            return dict(record.views[0].items)
        full = [one for one in record.views if one.view.set is None]
        if TURNS in record.excluded:
            return {}
        places = {m: decisive(full, m, self._metrics.higher.get(m, True))[0] for m in full[0].items}
        primary = self._metrics.primary_among(full[0].items)
        # a metric without scalars follows the primary metric's choice
        if primary is not None:
            places |= {m: places[primary] for m in places if full[0].scores.get(m) is None}
        return {m: full[place].items[m] for m, place in places.items() if m in full[place].items}

    def chosen(self, record: SampleRecord) -> dict[str, Any]:
        """Return the native items of the doc's best views, for each metric and set, named by ``Metrics.over_cells``.

        Each metric chooses by its own scalar. A metric without scalars follows the primary metric's choice.
        """
        out: dict[str, Any] = {}
        for key in self._spec.sets:
            for m in self._metrics.native if key not in record.excluded else ():
                place = self._place(record.views, key, m)
                place = record.best.get(key) if place is None else place
                if place is not None and m in record.views[place].items:
                    out[self._metrics.over_cells(m, key)] = record.views[place].items[m]
        return out
