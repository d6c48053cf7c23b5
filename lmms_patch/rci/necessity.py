"""What the docs of a benchmark need: the composition at each grid (``stats.composition``)."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_patch.runs.again import asked_again
from lmms_patch.runs.details import Settings
from lmms_patch.runs.need import NEEDS
from lmms_patch.runs.numbers import Necessity
from lmms_patch.runs.tables import Table
from lmms_patch.stats.composition import Composition, compose
from lmms_patch.stats.resample import Estimate

NOT_ASKED = "no doc was asked again (option steady; a task's name with _steady at its end asks all docs)"


def necessity(table: Table, grids: Sequence[int], settings: Settings, refused: str = "") -> tuple[Necessity, ...]:
    """Return what docs need at each grid, the finest first; nothing where docs are not right or wrong, or no grid was asked.

    Args:
        table: the docs.
        grids: sizes n.
        settings: level and seed of the intervals.
        refused: why no number may be read; "" where they may.
    """
    if not table.higher or not len(table) or table.references.captions:
        return ()
    return tuple(_at(table, n, settings, refused) for n in sorted(grids, reverse=True))


def _at(table: Table, n: int, settings: Settings, refused: str) -> Necessity:
    found = None if refused else asked_again(table, n)
    docs, again, why = len(table), 0, refused or NOT_ASKED
    if found is not None:
        asked, of, kinds, rows = found
        docs, again = len(of), len(rows)
        clusters = table.groups.clusters_of(of, renumbered=True)
        made = compose(asked, kinds, rows, clusters, level=settings.level, seed=settings.seed)
        if isinstance(made, Composition):
            shares = dict(zip(map(str, NEEDS), made.shares, strict=True))
            return Necessity(n, docs, again, shares, made.whole, made.index, made.told_apart)
        why = made
    nothing = Estimate.nothing(docs, why, settings.level)
    return Necessity(n, docs, again, dict.fromkeys(map(str, NEEDS), nothing), nothing, nothing)
