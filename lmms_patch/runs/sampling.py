"""How a run that left docs and views out asked each doc (``stats.asking``). NumPy only."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from lmms_patch.ask.kinds import Key
from lmms_patch.runs.record import Asked, Record
from lmms_patch.stats.resample import Array, Bools
from lmms_patch.stats.sampled import Sampled

WHOLE = Asked(metric="", block=0, steps=2)
"""Of a doc all of whose views were asked."""


class Sampling:
    """How docs were asked; in a run that left nothing out, all of them whole.

    Attributes:
        used: whether docs were left out, so that a doc's scores on the full image and its best cell are estimates.
        no_best: why no doc's best cell is known by the metric; empty where it is.

    Args:
        records: the docs.
        metric: the metric that they are scored by.
    """

    def __init__(self, records: Sequence[Record], metric: str) -> None:
        self._asked, self._metric = [record.asked or WHOLE for record in records], metric
        self.used = any(record.estimated for record in records)
        # cells were left out by the scores of a single metric; the best cell by another metric may be among them
        other = next((one.metric for one in self._asked if one.unasked and one.metric != metric), "")
        self.no_best = f"cells were left out by the scores of {other}" if other else ""

    @property
    def pilot(self) -> Bools:
        """Which docs were asked whole to plan the rest, shape (docs,); all where none was left out."""
        return np.array([not one.block for one in self._asked], bool)

    @property
    def asked_docs(self) -> int:
        """How many docs were asked anything."""
        return sum(one.steps > 0 for one in self._asked)

    def stands_for(self, steps: int, used: Bools) -> float:
        """Return how many docs are represented by a doc asked in so many steps; 1 where all docs were asked."""
        if not self.used:
            return 1.0
        asked = [one.steps >= steps for one, keep in zip(self._asked, used, strict=True) if keep]
        return len(asked) / max(1, sum(asked))

    def sampled(self, key: Key | None, full: Array, best: Array) -> Sampled:
        """Return how each doc was asked, with its scores, as the estimates take them.

        Args:
            key: a set (None: of no set).
            full: shape (docs,), what the docs score on the full image.
            best: shape (docs,), what they score on the best cell of the set.
        """
        # what a doc was expected to score is of the metric that the run went by; by another metric expect 0
        own = [
            one if one.metric in ("", self._metric) else msgspec.structs.replace(one, full=0.0, before={}, after={})
            for one in self._asked
        ]
        name = str(key)
        expected = [(one.full or 0.0, one.before.get(name, 0.0), one.after.get(name, 0.0)) for one in own]
        return Sampled(
            np.nan_to_num(full),
            np.nan_to_num(best),
            np.array([one.steps for one in own], np.intp),
            np.array([one.p for one in own], float).reshape(-1, 2),
            *np.array(expected, float).reshape(-1, 3).T,
        )
