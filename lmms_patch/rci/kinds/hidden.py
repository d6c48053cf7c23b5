"""The numbers of docs whose own boxes are hidden, beside the score and the drop of each set: the extra drop, and how much is hidden."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lmms_patch.ask.kinds import REGIONS, Key, Kind
from lmms_patch.rci.draws import minus
from lmms_patch.rci.kinds.part import left_out, warned
from lmms_patch.runs.docs import used_for
from lmms_patch.runs.numbers import Analysis, Grid, Hidden
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
from lmms_patch.stats.resample import Array, Bools

if TYPE_CHECKING:
    from lmms_patch.rci.work import Work

MOST_HIDDEN = 0.5
"""The share of the image above which a set of hidden boxes says little of where in the image the evidence is."""
UNEQUAL = 1.5
"""How many times the area of one set of hidden boxes may be that of the other without a warning."""


def of(kind: Kind) -> bool:
    """Return whether tasks of a kind have the part."""
    return kind.hides


def sets(work: Work) -> dict[str, list[Chosen]]:
    """Return sets of answers by name (``Part.sets``)."""
    both = _in_both(work.table)
    return {f"both_{key}": [work.table.points[key].where(both)] for key in REGIONS} if both.any() else {}


def add(work: Work, found: Analysis, by_set: Mapping[Key, Grid]) -> Analysis:
    """Return an analysis with the part's numbers (``Part.add``)."""
    table = work.table
    used = {key: np.isfinite(table.points[key].scores) for key in REGIONS}
    both = _in_both(table)
    parts = {key: _hidden_part(table, key) for key in REGIONS}
    share = {key: float(part[used[key]].mean()) for key, part in parts.items() if used[key].any()}
    of_both = {key: float(part[both].mean()) for key, part in parts.items() if both.any()}
    lost = next(filter(None, work.too_many.values()), "")
    extra = work.draws.estimate_of(minus, (f"both_{REGIONS[1]}", f"both_{REGIONS[0]}"), None, both)
    numbers = Hidden(
        both=int(both.sum()),
        extra=work.nothing(lost) if lost else extra if both.any() else work.nothing("no doc has boxes of both sets"),
        share=share,
        share_of_both=of_both,
        left_out={key: left_out(table, key, int((~used[key]).sum()), "no score with them hidden") for key in REGIONS},
    )
    weak = f"the drops say little: {found.gate.reason}" if found.gate.valid is False else ""
    return warned(
        dataclasses.replace(found, hidden=numbers),
        *hidden_warnings(share, of_both),
        weak,
        f"no drop: {lost}" if lost else "",
    )


def _hidden_part(table: Table, key: Key) -> Array:
    """Return what part of each doc's image is hidden with a set of boxes, shape (docs,).

    Nan where the doc is not used for the set.
    """
    views, out = table.views, np.full(len(table), np.nan)
    places = np.where(used_for(table.docs, key), views.first(views.in_set(key)), -1)
    there = places >= 0
    out[there] = views.column("hidden", np.nan)[(views.starts + places)[there]]
    return out


def _in_both(table: Table) -> Bools:
    """Return which docs have a score with either set of boxes hidden, shape (docs,)."""
    return np.asarray(np.logical_and.reduce([np.isfinite(table.points[key].scores) for key in REGIONS]))


def hidden_warnings(share: Mapping[str, float], of_both: Mapping[str, float]) -> list[str]:
    """Return what to mind of how much is hidden.

    Args:
        share: of each set, what part of the image is hidden, as a mean over its docs.
        of_both: the same over the docs that have both sets.
    """
    out = [
        f"the {key} boxes hide {part:.0%} of the image on average: the drop then says that the image is needed, and little of where"
        for key, part in share.items()
        if part > MOST_HIDDEN
    ]
    if of_both and max(of_both.values()) > UNEQUAL * min(of_both.values()):
        told = " and ".join(f"the {key} boxes {part:.1%}" for key, part in of_both.items())
        out.append(
            f"unequal areas: {told} of the image are hidden; a part of the extra drop may come from how much is hidden, not from what"
        )
    return out
