"""What is the same in two results: scores, and the numbers of which no answer changed."""

from __future__ import annotations

import polars as pl

from lmms_patch.compare.pair import Pair
from lmms_patch.runs import catalogue
from lmms_patch.runs.schema import OTHER_METRIC

VIEW = ("doc_id", "swapped", "kind", "n", "cell", "row", "col", "region", "relevant", "turn")
"""What a view is: its number says nothing, since a quick run asks fewer views."""
_OF_VIEW = ("wrong_from", "said_yes", "gold_yes", "answer_no", "answer")
_OF_CELLS = ("mpp{key}", "{index}{key}", "{index}{key}_adj", "gap{key}")
"""The numbers (``catalogue.Number.name``) that are made of the cells of a grid."""
FIRST, WRONG = "first view", "wrong image"
_SET = (
    pl.when(pl.col("swapped").fill_null(False))
    .then(pl.lit(WRONG))
    .when((pl.col("view") == 0) | (pl.col("kind") == "full"))
    .then(pl.lit(FIRST))
    .otherwise(pl.col("n").cast(pl.String).fill_null(""))
)


def sameness(pair: Pair) -> tuple[bool, tuple[str, ...]]:
    """Return whether every doc has the same scores in every view, and the second run's numbers of which no answer changed.

    Neither where the runs asked other docs, or asked a doc otherwise.
    """
    result, frames = pair.sides[1].result, [side.frame for side in pair.sides]
    first, second = (one.filter(view=0).select("doc_id", "quick", "tst", "excluded").sort("doc_id") for one in frames)
    if any(pair.only) or not first.equals(second):
        return False, ()
    if pair.kind.folds:
        return True, tuple(result.measures)
    scores = [one for one in frames[0].columns if one == "score" or one.startswith(OTHER_METRIC)]
    told = [pl.col(*VIEW, *_OF_VIEW), pl.col("^score.*$"), _SET.alias("set")]
    first, second = (one.select(*told, time=pl.int_range(pl.len()).over(VIEW)) for one in frames)
    views = first.join(second, [*VIEW, "time"], how="full", suffix="_2", coalesce=True, nulls_equal=True)
    scores = [one for one in scores if f"{one}_2" in views]

    def changed(*columns: str) -> set[str]:
        """Return the sets with a view asked in a single run, or with different values in some columns."""
        gone = pl.col("set").is_null() | pl.col("set_2").is_null()
        apart = (pl.col(name).ne_missing(pl.col(f"{name}_2")) for name in ("wrong_from", *columns))
        return set(views.filter(gone.or_(*apart)).select(pl.coalesce("set", "set_2")).to_series())

    of_primary = changed("score", "said_yes", "gold_yes", "answer_no")
    # an item of unknown form may differ where its score does not, so the answers must be the same, and known
    known = views["answer"].null_count() < len(views)
    rows = catalogue.keyed(result.kind, result.grids)

    def alike(name: str) -> bool:
        other = f"{OTHER_METRIC}{name}"
        if other in scores:
            return known and FIRST not in changed(other, "answer")
        if pair.form is None and (not known or changed("answer")):
            return False
        if name in ("score", "fip", result.metric):
            return FIRST not in of_primary
        row, key = rows.get(name, (None, None))
        # chance and numbers of boxes may be made of any view, so any change counts
        if row is None or row.name not in _OF_CELLS or not isinstance(key, int):
            return not of_primary
        more = [FIRST] * (row.name != _OF_CELLS[0]) + [WRONG] * (row.words == "corrected")
        return not of_primary & {str(key), *more}

    return not changed(*scores), tuple(name for name in result.measures if alike(name))
