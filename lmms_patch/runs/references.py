"""What docs are held against: the gold, and answers that are given without the image. NumPy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lmms_patch.runs.failures import different
from lmms_patch.runs.record import Baseline, Record
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import chance
from lmms_patch.stats.chance import Uninformed


@dataclass(frozen=True)
class References:
    """The scored golds and uninformed answers of docs.

    Attributes:
        records: the docs.
        metric: the metric that scores them.
    """

    records: Sequence[Record]
    metric: str

    @cached_property
    def asked(self) -> list[chance.Asked]:
        """The uninformed answers of each doc; docs with the same answers share an object."""
        of_one = {
            id(one): Uninformed(
                one.answer,
                frozenset(one.roles),
                one.scores.get(self.metric),
                one.items.get(self.metric, one.scores.get(self.metric)),
            )
            for one in self._baselines
        }
        known: dict[Any, chance.Asked] = {}
        out = []
        for record in self.records:
            # by identity: equal answers that were read from a log are a single object
            answer, ids = record.answer, tuple(map(id, record.baselines))
            about = (answer.format or "open", answer.options, answer.gold)
            if (asked := known.get((about, ids))) is None:
                asked = known[about, ids] = chance.Asked(*about, tuple(of_one[one] for one in ids))
            out.append(asked)
        return out

    @cached_property
    def ceiling(self) -> Chosen | None:
        """Each doc's gold under the scorer (the best of several golds); None where some doc has none."""
        best = {
            id(doc): max(found, key=lambda one: one.score or 0.0) if (found := doc.of("gold")) else None
            for doc in different(self.asked)
        }
        golds = [best[id(doc)] for doc in self.asked]
        if not golds or None in golds:
            return None
        return Chosen([one.item for one in golds if one], np.asarray([one.score for one in golds if one], float))

    @property
    def highest(self) -> float | None:
        """The highest score of a gold; None where some doc has no gold, or no gold has a score."""
        if self.ceiling is None or not np.isfinite(self.ceiling.scores).any():
            return None
        return float(np.nanmax(self.ceiling.scores))

    @property
    def captions(self) -> bool:
        """Whether each doc is answered with a caption."""
        return all(doc.format == "caption" for doc in self.asked)

    @property
    def scores(self) -> list[float]:
        """The scores of the different golds and uninformed answers."""
        scores = (one.scores.get(self.metric) for one in self._baselines)
        return [score for score in scores if score is not None]

    @cached_property
    def _baselines(self) -> list[Baseline]:
        """The different uninformed answers of all docs."""
        return different(one for record in self.records for one in record.baselines)
