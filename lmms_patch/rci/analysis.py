"""The analysis of one task, from its records to its numbers: chance, gate, index with interval, composition, cells.

The same code serves the run itself, where the native aggregation can be called, and ``lmms-patch analyze``, which has
only the files of a finished run. It computes; it prints and reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lmms_patch.ask.kinds import Key
from lmms_patch.rci import floors
from lmms_patch.rci.draws import Native
from lmms_patch.rci.gates import of_all, of_set, refusal, unlike
from lmms_patch.rci.grids import grid_of
from lmms_patch.rci.necessity import necessity
from lmms_patch.rci.work import Work, the_same
from lmms_patch.runs.details import Settings
from lmms_patch.runs.numbers import Analysis
from lmms_patch.runs.tables import Table
from lmms_patch.stats.resample import Estimate


def analyse(
    table: Table,
    native: Native,
    settings: Settings | None = None,
    sets: Sequence[Key] = (),
    blind: Mapping[int, float] = {},
    *,
    part: bool = False,
) -> Analysis:
    """Compute all numbers of a task.

    Args:
        table: its records.
        native: its aggregation.
        settings: see ``Settings``.
        sets: the sets of views with an index: grids, or the two sets of boxes (``WrapSpec.sets``).
        blind: by doc id, the scores of a blind run of the same base task.
        part: whether the records are only a part of the task's (``gate.with_looks``).
    """
    work = Work(table, native, settings or Settings(), sets, blind, part)
    unread = floors.unread(work)
    fip, chance, scale = (
        work.estimate("fip", work.fip, None),
        floors.chance_of(work),
        work.settings.scale or work.ceiling,
    )
    judged, of_gate = of_all(work, unread, fip, chance, scale)
    below, of_golds = floors.gold_below(work)
    gates = {n: of_set(work, n, judged) for n in work.cells}
    forms = {n: unlike(work, n) for n in work.cells}
    no_index = {n: refusal(work, n, gates[n], unread) or forms[n] for n in work.cells}
    # where calls failed, or answers cannot be compared, shares say nothing either
    no_shares = {n: (judged.reason if work.failed else "") or forms[n] for n in work.cells if isinstance(n, int)}
    needs = necessity(table, no_shares, no_index, work.settings)
    steady: dict[Key, Estimate] = {one.n: one.index for one in needs}
    by_set = {n: grid_of(work, n, gates[n], no_index[n], steady.get(n)) for n in work.cells}
    grids = {n: grid for n, grid in by_set.items() if isinstance(n, int)}
    clusters = table.groups.clusters
    found = Analysis(
        metric=table.metric,
        n_docs=len(table),
        clusters=None if clusters is None or not len(clusters) else int(clusters.max()) + 1,
        form=work.form.name if work.form else None,
        fip=fip,
        chance=chance,
        ceiling=work.ceiling,
        gold_below=below,
        gate=judged,
        grids=grids,
        warnings=tuple(filter(None, [*work.notices, *of_gate, of_golds])),
        failed=work.failed,
        asked=table.sampling.part(table.views.per_doc(np.ones(len(table.views.rows), bool))),
        necessity=needs,
        same=the_same(table),
        own={one.name: work.mean(one.values(table)) for one in table.kind.own} or None,
    )
    for one in work.parts:
        found = one.add(work, found, by_set)
    return found
