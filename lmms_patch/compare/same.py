"""What is the same in two results: scores, and the numbers of which no answer changed."""

from __future__ import annotations

import polars as pl

from lmms_patch.compare.pair import Pair
from lmms_patch.runs.schema import OTHER_METRIC

VIEW = ("doc_id", "swapped", "kind", "n", "cell", "row", "col", "region", "relevant", "turn")
"""What a view is: its number says nothing, since a quick run asks fewer views."""
_OF_DOC = ("quick", "tst", "excluded")
_OF_VIEW = ("wrong_from", "said_yes", "gold_yes", "answer_no")
_AT_ONCE = 5_000
"""Docs whose views are joined at once: a join of all takes more memory than the tables themselves."""
FIRST = "first view"
_SET = (
    pl.when(pl.col("swapped").fill_null(False))
    .then(pl.lit("wrong image"))
    .when((pl.col("view") == 0) | (pl.col("kind") == "full"))
    .then(pl.lit(FIRST))
    .otherwise(pl.col("n").cast(pl.String).fill_null(""))
)
"""What a view belongs to: a grid by its number."""


def sameness(pair: Pair) -> tuple[bool, tuple[str, ...]]:
    """Return whether every doc has the same scores in every view, and the second run's numbers of which no answer changed.

    Neither where the runs asked other docs, or asked a doc otherwise.
    """
    sides = [side.result for side in pair.sides]
    result, metrics = sides[1], [list(one.about.metrics)[1:] for one in sides]
    columns = [*_OF_VIEW, "score", *(f"{OTHER_METRIC}{name}" for name in metrics[1] if name in metrics[0])]
    # an item of unknown form may differ where its score does not, so the answers must be the same, and known
    columns += ["answer"] * (pair.form is None)
    first, second = (one.frame(["doc_id", "view", *_OF_DOC]).filter(view=0) for one in sides)
    if any(pair.only) or not first.equals(second):
        return False, ()
    frames = [one.frame([*VIEW, "view", *columns]) for one in sides]
    changed = set() if pair.kind.folds else _changed(frames, first["doc_id"], columns)
    if pair.form is None and frames[0]["answer"].null_count() == len(frames[0]):
        return not changed, ()
    # of which views a number is made; what is not listed may be made of any
    made_of = {name: {FIRST} for name in ("score", "fip", result.metric)} | {f"mpp{n}": {str(n)} for n in result.grids}
    for n in result.indexed:
        made_of |= {name: {FIRST, str(n)} for name in (f"{result.kind.index}{n}", f"gap{n}")}
    return not changed, tuple(name for name in result.measures if not changed & made_of.get(name, changed))


def _changed(frames: list[pl.DataFrame], docs: pl.Series, columns: list[str]) -> set[str]:
    """Return the sets with a view asked in a single run, or with different values in some columns."""
    changed = set[str]()
    for low in range(0, len(docs), _AT_ONCE):
        inside = pl.col("doc_id").is_between(docs[low], docs[min(low + _AT_ONCE, len(docs)) - 1])
        first, second = (
            one.filter(inside).select(*VIEW, *columns, _SET.alias("set"), time=pl.int_range(pl.len()).over(VIEW))
            for one in frames
        )
        views = first.join(second, [*VIEW, "time"], how="full", suffix="_2", coalesce=True, nulls_equal=True)
        apart = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_2")) for name in ("set", *columns))
        changed |= set(views.filter(apart).select(pl.coalesce("set", "set_2")).to_series())
    return changed
