"""The native metrics of a wrapped task, and the names of ours over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_patch.ask.kinds import Key, end
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.harness.wrap.again import Again
from lmms_patch.harness.wrap.calls import Aggregation
from lmms_patch.harness.wrap.state import RunState


class Metrics:
    """The metrics of the base task.

    Args:
        spec: what was asked.
        native: the base task's aggregations by metric.
        higher: whether higher is better, by metric.
        primary: the metric that the index is built on.
        state: holds the host's arguments, which some aggregations ask for.
    """

    def __init__(
        self,
        spec: WrapSpec,
        native: Mapping[str, Aggregation],
        higher: Mapping[str, bool],
        primary: str,
        state: RunState,
    ) -> None:
        self.native, self.higher, self.primary = native, higher, primary
        self.names = list(dict.fromkeys([primary, *higher]))
        """The primary metric first."""
        # a first call may take long by itself
        self.again = Again(native, state, 10 * spec.options.seconds)
        self._stem = "mpp" if spec.kind.keeps_best else "drop"

    def over_cells(self, metric: str, key: Key) -> str:
        """Name the metric over each doc's chosen cell: ``m_mpp3``, ``m_mpp_relevant``, or ``m_drop3`` where cells are hidden."""
        return f"{metric}_{self._stem}{end(key)}"

    def primary_among(self, items: Mapping[str, Any]) -> str | None:
        """Return the primary metric, or else the first metric of the doc (each doc of MME has only half of them)."""
        return self.primary if self.primary in items else next((m for m in self.native if m in items), None)
