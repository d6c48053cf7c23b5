"""Two results of one benchmark, doc by doc: what differs between them, from both sample logs. Pure.

Docs are joined by their id. The same random draws of docs serve both runs, so what a doc is like (hard, easy) cancels
out of the difference. Both sides are computed over the docs that both runs have scored. Where these are not all docs, a
side is not the run's own number.
"""

from __future__ import annotations

from lmms_patch.compare import same, withheld
from lmms_patch.compare.checks import check_digest, in_words, load, options_apart
from lmms_patch.compare.differences import Drawn, changes_of
from lmms_patch.compare.engine import Compared, fingerprints
from lmms_patch.compare.pair import join
from lmms_patch.errors import RecordError
from lmms_patch.runs.run import Result, differences, not_compared
from lmms_patch.stats import paired
from lmms_patch.stats.paired import Difference
from lmms_patch.stats.resample import LEVEL

MANY_DOCS, FEWER_DRAWS = 20_000, 2_000
SAME = ("benchmark", "kind", "metric", "filter", "views")
"""Settings that two results must share to be compared at all; other differences are told."""
_OF_DOCS = ("docs", "prompts", "number of docs", "limit", "image sizes", "images")
"""Settings that differ anyway where the docs do."""


def compare(first: Result, second: Result, *, level: float = LEVEL, draws: int = 0, seed: int = 0) -> Compared:
    """Return the differences of all numbers of two results, paired by doc.

    Args:
        first: a result.
        second: the result of the other side.
        level: nominal coverage of the intervals, 0..1.
        draws: bootstrap draws; 0: 10,000, and 2,000 for more than 20,000 docs.
        seed: of the bootstrap.

    Raises:
        RecordError: results of different benchmarks, metrics or views; a log that is missing, cut or of another run;
            other golds.
    """
    if not second.kind.suffix:
        # here, since most comparisons need none of it
        from lmms_patch.compare import magic

        return magic.compare(first, second, level=level, draws=draws, seed=seed)
    prints = fingerprints(first, second, SAME)
    pair = join(load(first), load(second))
    other_docs = bool(pair.only[0] or pair.only[1])
    # The digest of docs covers all golds, so between runs of different docs it always differs.
    if not other_docs:
        check_digest(second.task, prints, (first, second))
    draws = draws or (FEWER_DRAWS if len(pair.ids) > MANY_DOCS else paired.DRAWS)
    changes = changes_of(pair, draws, level, seed)
    settings = in_words(differences(*prints, (*SAME, *(_OF_DOCS if other_docs else ()))))
    if other_docs and (other_images := same.other_images(pair)):
        settings.append(f"images (of {other_images} of the docs)")
    return Compared(
        first=first.label,
        second=second.label,
        metric=second.metric,
        docs=len(pair.ids),
        only_first=pair.only[0],
        only_second=pair.only[1],
        unscored=pair.unscored,
        differences=changes,
        mcnemar=pair.mcnemar(),
        settings=tuple(options_apart(setting, first.described, second.described) for setting in settings),
        warnings=tuple(dict.fromkeys(filter(None, [*pair.warnings, not_compared(*prints)]))),
        base=second.base,
        kind=second.kind.name,
        index=pair.kind.index,
        higher=pair.higher,
        clusters=None if pair.clusters is None else int(pair.clusters.max()) + 1,
        draws=draws,
        identical=same.identical(pair),
        marks=withheld.marks(pair),
        unchanged=same.unchanged(pair),
    )


def gain(blind: Result, full: Result) -> Difference | None:
    """Return the first-view score of a task less the score of its blind task, paired by doc: what the image adds.

    None where the aggregation cannot be computed from sums over docs.

    Raises:
        RecordError: a log that is missing, cut or of another run; other docs or golds.
    """
    pair = join(load(blind), load(full))
    if pair.only[0] or pair.only[1]:
        raise RecordError(f"{full.task}: the blind run was asked other docs")
    return None if pair.form is None else Drawn(pair, pair.form, {}).of_first_views()
