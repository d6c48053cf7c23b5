"""What the docs of a benchmark need: the composition at each grid (``stats.composition``)."""

from __future__ import annotations

from collections.abc import Mapping

from lmms_patch.ask.kinds import Key
from lmms_patch.runs.again import asked_again
from lmms_patch.runs.details import Settings
from lmms_patch.runs.numbers import NEEDS, Necessity
from lmms_patch.runs.tables import Table
from lmms_patch.stats.composition import LEAST, Composition, compose
from lmms_patch.stats.resample import Estimate

NOT_ASKED = "no doc was asked again (option steady; a task's name with _steady at its end asks all docs)"


def necessity(
    table: Table, refused: Mapping[int, str], no_index: Mapping[Key, str], settings: Settings
) -> tuple[Necessity, ...]:
    """Return what docs need at each grid, the finest first; nothing where docs are not right or wrong, or no grid was asked.

    Args:
        table: the docs.
        refused: by grid, why no number of it may be read; "" where they may.
        no_index: likewise of the index alone.
        settings: level and seed of the intervals.
    """
    if not is_told(table):
        return ()
    return tuple(_at(table, n, settings, refused[n], no_index[n]) for n in sorted(refused, reverse=True))


def is_told(table: Table) -> bool:
    """Return whether docs are right or wrong."""
    return table.higher and len(table) > 0 and not table.references.captions


def composed(table: Table, key: Key, settings: Settings, refused: str) -> tuple[Composition | str, int, int]:
    """Return the composition at a set of views, or why there is none; of how many docs, and how many of them were asked again."""
    found = asked_again(table, key)
    if found is None:
        few = f"{len(table)} docs are too few to ask them again; {LEAST} or more are needed" * (len(table) < LEAST)
        return refused or few or NOT_ASKED, len(table), 0
    asked, of, kinds, rows = found
    if refused:
        return refused, len(of), len(rows)
    clusters = table.groups.clusters_of(of, renumbered=True)
    return compose(asked, kinds, rows, clusters, level=settings.level, seed=settings.seed), len(of), len(rows)


def _at(table: Table, n: int, settings: Settings, refused: str, no_index: str) -> Necessity:
    made, docs, again = composed(table, n, settings, refused)
    if isinstance(made, str):
        nothing = Estimate.nothing(docs, made, settings.level)
        return Necessity(n, docs, again, dict.fromkeys(NEEDS, nothing), nothing, nothing)
    index = made.index.without(no_index) if no_index else made.index
    return Necessity(n, docs, again, dict(zip(NEEDS, made.shares, strict=True)), made.whole, index, made.told_apart)
