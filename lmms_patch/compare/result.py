"""Two results of one benchmark, doc by doc: what differs between them.

Docs are joined by their id. The same random draws of docs serve both runs, so what a doc is like (hard, easy) cancels
out of the difference. Both sides are computed over the docs that both runs have scored. Where these are not all docs, a
side is not the run's own number.
"""

from __future__ import annotations

import gc

from lmms_patch.compare import alike
from lmms_patch.compare.differences import changes_of, first_views, mcnemar
from lmms_patch.compare.formats import Task, numbers_of
from lmms_patch.compare.pair import join
from lmms_patch.errors import RecordError
from lmms_patch.runs import reading
from lmms_patch.runs.run import Result, not_compared
from lmms_patch.runs.schema import OTHER_METRIC
from lmms_patch.stats import paired
from lmms_patch.stats.paired import Difference
from lmms_patch.stats.resample import LEVEL

MANY_DOCS, FEWER_DRAWS = 20_000, 2_000
_VIEWS = ("doc_id", "swapped", "kind", "n", "cell", "row", "col", "region", "relevant", "turn", "wrong_from")
"""What was asked of a doc."""
_COUNTED = ("quick", "tst", "excluded", "said_yes", "gold_yes", "answer_no", "score")
"""What goes into a number."""


def compare(first: Result, second: Result, *, level: float = LEVEL, draws: int = 0) -> Task:
    """Return the differences of all numbers of two results, paired by doc.

    Args:
        first: a result.
        second: the result of the other side.
        level: nominal coverage of the intervals, 0..1.
        draws: bootstrap draws; 0: 10,000, and 2,000 for more than 20,000 docs.

    Raises:
        RecordError: results of different benchmarks, metrics or views; samples that are missing or cut; other golds.
    """
    if not second.kind.suffix:
        # here, since most comparisons need none of it
        from lmms_patch.compare import magic

        return magic.compare(first, second, level=level, draws=draws)
    alike.check(first, second)
    if garbled := next((one.about.probe.why for one in (first, second) if one.about.probe.failed), ""):
        raise RecordError(f"{second.task}: {garbled}")
    # the numbers of each run come first: their tables, which refer to themselves, are gone before both runs are joined
    for one in (first, second):
        _ = one.computed
        gc.collect()
    identical = _identical(first, second)
    pair = join(first, second)
    draws = draws or (FEWER_DRAWS if len(pair.ids) > MANY_DOCS else paired.DRAWS)
    changes = changes_of(pair, draws=draws, level=level)
    prints = first.fingerprint, second.fingerprint
    contradicted = {
        f"{pair.kind.index}{n}": tuple(
            f"of the {which} run is {reading.explained(mark)}"
            for which, one in (("first", first), ("second", second))
            if (grid := one.grid(n)) and (mark := grid.mark)
        )
        for n in pair.grids
    }
    return Task(
        first=first.label,
        second=second.label,
        metric=second.metric,
        docs=len(pair.ids),
        only_first=pair.only[0],
        only_second=pair.only[1],
        unscored=pair.unscored,
        mcnemar=mcnemar(pair),
        settings=tuple(alike.apart(*prints, (*alike.SAME, *(alike.OF_DOCS if any(pair.only) else ())))),
        warnings=tuple(dict.fromkeys(filter(None, [*pair.warnings, not_compared(*prints)]))),
        base=second.base,
        kind=second.kind.name,
        index=pair.kind.index,
        higher=pair.higher,
        clusters=None if pair.clusters is None else int(pair.clusters.max()) + 1,
        draws=draws,
        identical=identical,
        numbers=numbers_of(changes, next(iter(changes))),
        marks={name: said for name, said in contradicted.items() if said},
    )


def _identical(first: Result, second: Result) -> bool:
    """Return whether both runs asked the same of the same docs, and score the same in every view."""
    columns = [*_VIEWS, *_COUNTED, *(f"{OTHER_METRIC}{name}" for name in list(second.about.metrics)[1:])]
    if second.native.form is None:
        # an item of unknown form may differ where its score does not
        columns.append("answer")
    return first.frame(columns).equals(second.frame(columns))


def gain(blind: Result, full: Result) -> Difference | None:
    """Return the first-view score of a task less the score of its blind task, paired by doc: what the image adds.

    None where the aggregation cannot be computed from sums over docs.

    Raises:
        RecordError: samples that are missing or cut; other docs or golds.
    """
    pair = join(blind, full)
    if any(pair.only):
        raise RecordError(f"{full.task}: the blind run was asked other docs")
    return None if pair.form is None else first_views(pair, pair.form)
