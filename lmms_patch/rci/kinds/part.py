"""What a part of an analysis must give: from the records of a task of its kinds to numbers beside FIP and the indices."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from lmms_patch.ask.kinds import Key, Kind
from lmms_patch.runs.numbers import Analysis, Grid
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen

if TYPE_CHECKING:
    from lmms_patch.rci.work import Work


class Part(Protocol):
    """A part of an analysis: a module with these functions."""

    def of(self, kind: Kind) -> bool:
        """Return whether tasks of a kind have the part."""

    def sets(self, work: Work) -> Mapping[str, list[Chosen]]:
        """Return sets of items by name, of which M is computed on each bootstrap draw (``Draws``)."""

    def add(self, work: Work, found: Analysis, by_set: Mapping[Key, Grid]) -> Analysis:
        """Return an analysis with the part's numbers, and what to mind of them.

        Args:
            work: the analysis in progress.
            found: the numbers that every task has, and those of earlier parts.
            by_set: the numbers of each set of views.
        """


def warned(found: Analysis, *warnings: str) -> Analysis:
    """Return an analysis with more warnings; empty ones are left out."""
    return dataclasses.replace(found, warnings=(*found.warnings, *filter(None, warnings)))


def left_out(table: Table, key: Key, excluded: int, otherwise: str) -> dict[str, int]:
    """Return why docs are not used for a set of boxes, and how many.

    Args:
        table: the records.
        key: the set.
        excluded: how many docs are not used.
        otherwise: why those are not of which the record does not say it.
    """
    whys = table.docs.select("excluded").drop_nulls().explode("excluded").unnest("excluded").filter(set=str(key))["why"]
    reasons = Counter(why.partition(":")[0] for why in whys)
    if other := excluded - sum(reasons.values()):
        reasons[otherwise] += other
    return dict(reasons)
