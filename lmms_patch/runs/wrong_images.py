"""What docs score on the image of another doc. NumPy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lmms_patch.ask.kinds import Key
from lmms_patch.runs.groups import Groups
from lmms_patch.runs.record import Record
from lmms_patch.runs.views import Chosen, Views, used_for
from lmms_patch.stats.resample import Array


@dataclass(frozen=True)
class WrongImages:
    """The answers of docs to views of another doc's image.

    Attributes:
        records: the docs.
        metric: the metric.
        higher: whether higher is better.
        groups: the docs' clusters.
    """

    records: Sequence[Record]
    metric: str
    higher: bool
    groups: Groups

    @cached_property
    def views(self) -> Views:
        """The views of another doc's image, as arrays."""
        return Views([record.wrong_views for record in self.records])

    @cached_property
    def full(self) -> Chosen:
        """Each doc's item on the whole of another doc's image; nan and None for docs without a wrong image."""
        there = self.views.per_doc(np.ones(len(self.views.docs), bool))
        return self._scored([0 if count else None for count in there])

    def best(self, key: Key) -> Chosen:
        """Return each doc's best item of a set of views of another doc's image.

        Nan and None where the doc was not asked so, or is not used.
        """
        views = self.views
        inside = views.in_set(key) & used_for(self.records, key)[views.docs]
        # a set with an unscored view has no best view: the unscored view might have been the best
        scored = views.per_doc(inside & np.isnan(views.scores(self.metric))) == 0
        best = np.where(scored, views.best(self.metric, inside, self.higher), -1)
        return self._scored(self.groups.complete([None if place < 0 else place for place in best.tolist()]))

    def cells(self, n: int, count: int) -> Array:
        """Return the scalars of the cells of a grid, shape (docs, count); nan for docs without a wrong image.

        Args:
            n: the grid.
            count: how many cells it has.
        """
        return self.views.cells(self.metric, n, count, used_for(self.records, n))

    def _scored(self, places: Sequence[int | None]) -> Chosen:
        found = self.views.chosen(self.metric, places)
        return found.where(np.isfinite(found.scores))
