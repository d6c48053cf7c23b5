"""Answers of docs asked again, as arrays (``stats.composition``)."""

from __future__ import annotations

import numpy as np
import polars as pl

from lmms_patch.ask.kinds import MAX_GRID, Key
from lmms_patch.runs.docs import used_for
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import set_of
from lmms_patch.stats.composition import GOLD, KNOWN, NONE, Asked, kinds_of
from lmms_patch.stats.resample import Array, Bools, Ints

_FEW = 20
"""Docs of a class whose golds are counted; options of a smaller class are as likely as each other."""
_OWN, _WRONG, _WORDS, _GREY = range(4)


def asked_again(table: Table, key: Key) -> tuple[Asked, Ints, Ints, Ints] | None:
    """Return the answers of docs asked again; None where no doc was.

    Args:
        table: the docs.
        key: the grid, or its cells and the windows between them (``kinds.windows``).

    Returns:
        The answers; the places in the table of the docs that the composition is of, whose every view has a score; the
        kind of each of them; and which of them were asked again, by their place among them.
    """
    rows = _rows(table, key)
    if rows["repeat"].null_count() == len(rows):
        return None
    parts = int(rows["at"].to_numpy().max())
    own = table.views.cells(key, parts, used_for(table.docs, key))
    first = np.column_stack([table.full_seen.scores, own])
    # of docs that were not asked whole, those whose every view was asked are no sample
    of = np.flatnonzero(np.isfinite(first).all(1) & table.sampling.pilot)
    again = rows.filter(pl.col("repeat") > 1)["doc"].unique().to_numpy()
    wrong = rows.filter(pl.col("way") == _GREY)["doc"].unique().to_numpy()
    kinds = kinds_of(first[of] >= KNOWN * table.marks[of, None])
    place = np.flatnonzero(np.isin(of, again))
    return _asked(table, rows, of[place], np.isin(of[place], wrong), 1 + parts), of, kinds, place


def _rows(table: Table, key: Key) -> pl.DataFrame:
    """Return the rows of docs by way of asking: ``doc``, ``way``, ``at``, ``time``, and the number of the answer, ``said``."""
    docs = pl.DataFrame({"doc_id": table.doc_id, "doc": np.arange(len(table)), "marks": table.marks})
    docs = docs.with_columns(table.docs.select("choices", place="gold_at"))
    columns = [
        "doc_id",
        "view",
        "kind",
        "swapped",
        "n",
        "cell",
        "row",
        "col",
        "repeat",
        "wrong_from",
        "score",
        "names",
        "answer_no",
        "as_gold",
    ]
    rows = (
        table.frame.select(columns)
        .filter(pl.col("n").is_null() | set_of(key))
        .join(docs, on="doc_id", maintain_order="left")
    )
    swapped, full = pl.col("swapped").fill_null(False), pl.col("kind") == "full"
    first = pl.col("wrong_from").filter(swapped & full).first().over("doc_id")
    own, place = pl.col("names"), pl.col("place")
    named = pl.when(own == 0).then(None).when(own < place).then(own).otherwise(own - 1)
    said = pl.when(pl.col("choices") > 1).then(named).otherwise(pl.col("answer_no") + 1)
    hit = pl.col("score") >= KNOWN * pl.col("marks")
    return rows.with_columns(
        way=pl.when(pl.col("kind") == "blank")
        .then(_GREY)
        .when(full & swapped & (pl.col("wrong_from") != first))
        .then(_WORDS)
        .when(swapped)
        .then(_WRONG)
        .otherwise(_OWN),
        # windows come after the cells, row by row
        at=pl.when(pl.col("kind") == "window")
        .then(
            pl.col("n").cast(int) ** 2
            + (pl.col("row").cast(int) * 2 * MAX_GRID + pl.col("col")).rank("dense").over("kind")
        )
        .otherwise(pl.col("cell").fill_null(0)),
        time=pl.col("repeat").fill_null(1) - 1,
        said=pl.when(pl.col("score").is_null()).then(NONE).when(hit).then(GOLD).otherwise(said.fill_null(NONE)),
    )


def _asked(table: Table, rows: pl.DataFrame, docs: Ints, on_wrong: Bools, views: int) -> Asked:
    times = int(rows["time"].to_numpy().max()) + 1
    place = np.full(len(table), -1)
    place[docs] = np.arange(len(docs))

    def answers(way: int, wide: int) -> Ints:
        out = np.full((len(docs), wide, times), NONE)
        mine = rows.filter(pl.col("way") == way).select("doc", "at", "time", "said")
        doc, at, time, said = (mine[name].to_numpy().astype(np.intp) for name in mine.columns)
        kept = place[doc] >= 0
        out[place[doc[kept]], at[kept], time[kept]] = said[kept]
        return out

    wrong, words = answers(_WRONG, views), answers(_WORDS, 1)[:, 0]
    # the first wrong image is the first of the other wrong images, too
    words[:, 0] = wrong[:, 0, 0]
    spread, options, exact = _spread(table, rows, docs)
    return Asked(answers(_OWN, views), wrong, words, answers(_GREY, 1)[:, 0], on_wrong, spread, options, exact)


def _spread(table: Table, rows: pl.DataFrame, docs: Ints) -> tuple[Array, Bools, bool]:
    """Return how often each answer is the gold of docs asked alike, which answers are options, and whether all docs have options."""
    facts = table.docs.select("choices", "gold_at", "gold", "label", "stratum").with_columns(
        pl.col("choices").fill_null(0)
    )
    alike = pl.struct("stratum", "gold").count().over("stratum", "gold") / pl.len().over("stratum")
    options, gold = (facts[name].fill_null(0).to_numpy()[docs] for name in ("choices", "gold_at"))
    several = (options > 1) & (gold > 0)
    most = int(max(options[several].max(initial=0), rows["said"].to_numpy().max())) + 1
    spread, has = np.zeros((len(docs), most)), np.zeros((len(docs), most), bool)
    spread[:, GOLD] = facts.select(alike).to_series().to_numpy()[docs]
    shares: dict[str, Array] = {
        str(label): np.bincount(at, minlength=most) / len(at)
        for (label,), of in facts.filter((pl.col("choices") > 1) & (pl.col("gold_at") > 0)).group_by("label")
        if len(at := of["gold_at"].to_numpy() - 1) >= _FEW
    }
    labels = facts["label"].to_list()
    for row in np.flatnonzero(several):
        count, place = int(options[row]), int(gold[row]) - 1
        even = np.full(count, 1 / count)
        golds = shares.get(labels[docs[row]], even)[:count]
        spread[row, :count] = np.append(golds[place], np.delete(golds, place))
        has[row, :count] = True
    # of answers in words it is known which of them are golds of docs asked alike
    told = rows.filter(pl.col("as_gold").is_not_null() & (pl.col("said") > 0)).select("doc", "said", "as_gold").unique()
    where = dict(zip(docs.tolist(), range(len(docs)), strict=True))
    for number, said, share in told.iter_rows():
        if number in where and not several[where[number]]:
            spread[where[number], said] = share
    return spread, has, bool(several.all())
