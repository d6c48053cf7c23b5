"""The docs of one task of one run, a row each: what each needs, asks and was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from lmms_patch.ask.kinds import LOWRES, OF_CLIPS, OF_IMAGES, Words
from lmms_patch.rci import recompute
from lmms_patch.runs import need
from lmms_patch.text import block, cut, line

if TYPE_CHECKING:
    from lmms_patch.runs.run import Result

TITLE, LONGEST = 300, 20_000
"""Characters of a question or answer in the list, in which the page searches, and of any text of a doc."""
_PLACE = ["kind", "n", "cell", "row", "col", "region", "relevant", "turn"]
"""The columns that say which part of the image a view shows."""
_TEXTS = ["question", "gold", "category", "cluster", "answer", "failed", "error", "caption"]
_OF_DOC = [
    "question",
    "gold",
    "options",
    "category",
    "cluster",
    "images",
    "shown",
    "wrong_shown",
    "excluded",
    "references",
    "quick",
]
_VIEW = ["name", "state", "answer", "score", "why", "caption", "unfinished", "kind", "n", "row", "col", "place"]
"""What the page is told of a view."""


def docs_of(result: Result, blind: Result | None = None) -> pl.DataFrame:
    """Return the docs of a task, a row each, in the order of its table.

    A view has a ``state``: right (at least half of what the gold scores), wrong, unscored, failed or not asked.

    Args:
        result: the task.
        blind: the base task asked without an image, of the same run.

    Returns:
        ``doc_id``, texts, ``options``; ``seen`` (the doc whose image was shown as its own), ``width``, ``height`` and
        ``images`` (digest) of it; ``wrong_from`` (the other doc whose image was shown too); ``excluded`` (why it is left out
        of a number); ``views``, ``wrong`` and ``blind`` (``_VIEW``: of its own image, of another doc's, without one);
        ``first``, ``answer`` and ``unfinished`` of the first view; ``lost`` (whether some call failed); ``cells`` (how many of
        the finest grid are right); ``need`` and ``image`` (places in ``NEEDS``, -1 where not known: what the doc needs, and
        what it needs if it needs an image at all).
    """
    wanted = [*_PLACE, *_TEXTS, *_OF_DOC, "doc_id", "view", "swapped", "wrong_from", "score", "unfinished"]
    frame = result.frame(list(dict.fromkeys(wanted)))
    views = _views(frame, result)
    finest = pl.col("n") == max(result.grids, default=0)
    own = ~pl.col("other")
    docs = views.group_by("doc_id", maintain_order=True).agg(
        pl.struct(_VIEW).filter(own).alias("views"),
        pl.struct(_VIEW).filter(~own).alias("wrong"),
        pl.col("wrong_from").drop_nulls().first(),
        first=pl.col("state").first(),
        answer=pl.col("answer").first(),
        unfinished=pl.col("unfinished").first(),
        lost=pl.col("why").is_not_null().any(),
        cells=(own & finest & pl.col("cell").is_not_null() & pl.col("state").eq("right")).sum(),
    )
    swap = result.kind.swapped
    size = pl.col("wrong_shown" if swap else "shown").list.first().struct
    why = pl.col("excluded").list.eval(pl.format("{}: {}", *(pl.element().struct.field(f) for f in ("set", "why"))))
    first = frame.filter(view=0).select(
        *("doc_id", "question", "gold", "category", "cluster", "options", "images"),
        width=size.field("width"),
        height=size.field("height"),
        excluded=why.list.join("; ").replace("", None),
    )
    docs = first.join(docs, on="doc_id", how="left", maintain_order="left")
    seen = {"seen": pl.col("wrong_from" if swap else "doc_id")}
    docs = docs.with_columns(**seen, **({"wrong_from": pl.lit(None, pl.Int64)} if swap else {}))
    if swap:
        docs = docs.drop("images").join(
            first.select("images", seen="doc_id"), on="seen", how="left", maintain_order="left"
        )
    docs = docs.join(_needs(result, blind), on="doc_id", how="left", maintain_order="left")
    docs = docs.with_columns(pl.col("need", "image").fill_null(need.UNKNOWN))
    if blind is not None:
        alone = _views(blind.frame(list(dict.fromkeys(wanted))), blind).filter(view=0)
        docs = docs.join(alone.select("doc_id", blind=pl.struct(_VIEW)), on="doc_id", how="left", maintain_order="left")
    return _readable(docs, [*_TEXTS[:4], "excluded"])


def _views(frame: pl.DataFrame, result: Result) -> pl.DataFrame:
    """Return a row a view, with what the page tells of views; ``other``: shown on another doc's image beside the doc's."""
    marks = frame.filter(view=0).select("doc_id", "references").explode("references", empty_as_null=True)
    gold = (pl.col("metric") == result.metric) & pl.col("roles").list.contains("gold") & (pl.col("score") > 0)
    best = marks.unnest("references").filter(gold).group_by("doc_id").agg(marks=pl.max("score"))
    asked = frame.filter(view=0).select("doc_id", asked=pl.col("quick").struct.field("steps").fill_null(2) > 0)
    rows = frame.join(best, on="doc_id", how="left", maintain_order="left")
    rows = rows.join(asked, on="doc_id", how="left", maintain_order="left")
    rows = rows.join(_named(frame, result.kind.words), on=_PLACE, how="left", nulls_equal=True, maintain_order="left")
    score = pl.col("score").fill_nan(None)
    right = score >= pl.col("marks").fill_null(1.0) / 2
    unscored = score.is_null() | pl.lit(not result.higher_is_better)
    state = (
        pl.when(~pl.col("asked"))
        .then(pl.lit("not asked"))
        .when(pl.col("failed").is_not_null())
        .then(pl.lit("failed"))
        .when(unscored)
        .then(pl.lit("unscored"))
        .when(right)
        .then(pl.lit("right"))
        .otherwise(pl.lit("wrong"))
    )
    # a _swap task shows no image but another doc's
    other = pl.col("swapped").fill_null(False) & pl.lit(not result.kind.swapped)
    of = pl.format("{} of doc {}", "name", "wrong_from")
    made = rows.with_columns(
        name=pl.when(pl.col("wrong_from").is_not_null()).then(of).otherwise("name"),
        state=state,
        other=other,
        score=score,
        why=pl.coalesce("failed", "error"),
    )
    return _readable(made, ["answer", "why", "caption"])


def _named(frame: pl.DataFrame, words: Words) -> pl.DataFrame:
    """Return the ``name`` and ``place`` of each different view, such as "3×3, row 2, column 1"."""
    shown = frame.select(_PLACE).unique(maintain_order=True)
    told = [
        (words.say(_name(**row)), _place(row["kind"], row["cell"], row["row"], row["col"])) for row in shown.to_dicts()
    ]
    names, places = zip(*told, strict=True) if told else ((), ())
    return shown.with_columns(name=pl.Series(names, dtype=pl.String), place=pl.Series(places, dtype=pl.String))


def _place(kind: str, cell: int | None, row: int | None, col: int | None) -> str | None:
    if kind == "segment":
        return f"segment {cell}"
    if row is None or col is None:
        return None
    # windows move by half a cell
    half = 2 if kind == "window" else 1
    return f"row {row / half + 1:g}, column {col / half + 1:g}"


def _name(
    kind: str,
    n: int | None,
    cell: int | None,
    row: int | None,
    col: int | None,
    region: int | None,
    relevant: bool | None,
    turn: int | None,
) -> str:
    """Return the name of a view, which tells the views of a doc apart."""
    moved = "" if turn is None else f", options moved by {turn}"
    boxes = "relevant" if relevant else "adversarial"
    if n is not None and row is not None:
        hidden = "all but " if kind == "occlude" else ""
        words = OF_CLIPS if kind == "segment" else OF_IMAGES
        return f"{hidden}{words.size(n)}, {_place(kind, cell, row, col)}{moved}"
    if region is not None:
        return f"box {region}, {boxes}"
    if moved:
        return f"full image{moved}"
    if relevant is not None:
        return f"all {boxes} boxes hidden"
    if kind == "frames":
        return f"{n} frame{'s' * (n != 1)}"
    if kind == "lowres" and n is not None:
        return LOWRES.words.grid(n)
    return _NAMED.get(kind, kind or "view")


_NAMED = {
    "full": "full image",
    "blind": "no image",
    "caption": "its caption",
    "blank": "blank image",
    "frame": "middle frame",
    "tshuffle": "segments shuffled",
    "treverse": "clip reversed",
}


def _needs(result: Result, blind: Result | None) -> pl.DataFrame:
    """Return what each doc needs, by its id."""
    if not need.has_classes(result):
        return pl.DataFrame(schema={"doc_id": pl.Int64, "need": pl.Int8, "image": pl.Int8})
    scores = {} if blind is None else recompute.scores(blind, result.metric)
    _, _, table = recompute.table_of(recompute.TaskRun(result), recompute.Changes())
    found = need.find(table, max(result.grids), scores)
    return pl.DataFrame({"doc_id": table.doc_id, "need": found.classes, "image": found.by_image})


def _readable(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Return a frame whose texts are harmless, and not too long; each different text is looked at once."""
    for name in names:
        texts = frame[name].drop_nulls().unique().to_list()
        frame = frame.with_columns(pl.col(name).replace(texts, [cut(block(text), LONGEST) for text in texts]))
    return frame


def listed(texts: pl.Series) -> list[str]:
    """Return texts each on a short line, for a list."""
    return [line(text or "", TITLE) for text in texts]
