"""Docs to look at, picked by rule and never by hand: which cells answer, and which do not (RCI Table 7, PCRI Table 4).

Pure.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import polars as pl

from lmms_patch.ask.kinds import Words
from lmms_patch.ask.views import cell_box, window_box
from lmms_patch.runs.docs import full_marks
from lmms_patch.runs.run import Result
from lmms_patch.text import cut

T = TypeVar("T")

RULES = {
    "any cell": "The full image and every cell are answered rightly: the question can be answered without looking, or the answer is everywhere.",
    "global only": "Only the full image is answered rightly, no cell of any grid.",
    "luck-like": "Some cell is right, but the cells answer as guesses would: another answer is given at least as often as the right one.",
    "distracted": "The full image is answered wrongly, and a cell rightly: the rest of the image distracts.",
    "local": "The full image is answered rightly, and so are some of the cells: one cell is enough.",
    "unanswered": "Neither the full image nor any cell is answered rightly.",
}
"""The rules in the order in which they are asked; the first that holds is the doc's. Right: at least half of full marks."""

QUESTION, ANSWER = 1_500, 400
"""Characters that are shown of a question, and of an answer."""


COLUMNS = (
    *("doc_id", "view", "kind", "swapped", "n", "cell", "row", "col", "turn", "answer", "score"),
    *("question", "gold", "shown", "excluded", "references", "quick"),
)
"""The columns of the samples that docs are picked and shown by."""


@dataclass(frozen=True)
class Cell:
    """The answer to a cell.

    Attributes:
        place: where it is, in words.
        box: left, top, width and height, in pixels of the image; of a clip its image stands for its length.
        answer: cut to a readable length.
        score: on the metric's own scale; None: unscored.
        right: at least half of what the doc's gold scores; None: unscored.
    """

    place: str
    box: tuple[float, float, float, float]
    answer: str
    score: float | None
    right: bool | None


@dataclass(frozen=True)
class Example:
    """A doc picked by a rule.

    Attributes:
        entry: label of its result.
        rule: ``local``, ``global only``, ``focused``, ... (``RULES``, ``magic_examples.RULES``).
        doc: its row in the base task's eval split; of a MAGIC task its name.
        question, gold, answer: texts, cut to a readable length; the answer is to the full image.
        right: whether the answer is right; None: unscored.
        size: width and height of the first image in pixels.
        grids: by its size in words, the cells of each grid row by row.
        lines: of a MAGIC task, what is known of each box and of the answer: whether it is good, and in words.
        response: of a MAGIC task, all that the model wrote.
        key: by which the image is found: the doc, or the digest of what it shows.
        image: the first image as a ``data:`` URI; None where it was not taken.
    """

    entry: str
    rule: str
    doc: int | str
    question: str
    gold: str
    answer: str
    right: bool | None
    size: tuple[int, int] = (1, 1)
    grids: Mapping[str, tuple[Cell, ...]] = field(default_factory=dict)
    lines: tuple[tuple[bool | None, str], ...] = ()
    response: str = ""
    key: int | str | None = None
    image: str | None = None


def by_rule(
    ruled: Iterable[tuple[str | None, T]], rules: Iterable[str], count: int, rank: Callable[[T], Any]
) -> dict[str, list[T]]:
    """Return a few docs of each rule, those of the lowest rank.

    Args:
        ruled: docs with their rules; None: a doc that is not shown.
        rules: the rules, in the order in which they are shown.
        count: docs per rule; 0: none.
        rank: from a doc to what it is sorted by. It depends on nothing that a model said, so that two models show the
            same docs where the same rules hold.
    """
    docs: dict[str | None, list[T]] = {}
    for rule, doc in ruled:
        docs.setdefault(rule, []).append(doc)
    return {rule: heapq.nsmallest(count, docs[rule], key=rank) for rule in rules if count and rule in docs}


def picked(entry: str, result: Result, samples: pl.DataFrame, count: int) -> dict[str, list[Example]]:
    """Return a few docs of each rule of a task with cells; they are ranked by a hash of benchmark and doc id.

    Args:
        entry: id of the result in the report.
        result: the result.
        samples: its rows, with ``COLUMNS``.
        count: docs per rule; 0: none.
    """
    # rules need to know right from wrong, which a metric better when lower does not tell
    if not (count and result.kind.index and result.higher_is_better):
        return {}
    docs = samples.filter(view=0).with_columns(need=full_marks(result.metric) / 2)
    views = _counted(samples).join(docs.select("doc_id", "need"), on="doc_id")
    views = views.sort("doc_id", "at").with_columns(right=pl.col("score") >= pl.col("need"))

    def rank(doc_id: int) -> tuple[str, int]:
        return hashlib.sha256(f"{result.base}/{doc_id}".encode("utf-8", "surrogatepass")).hexdigest()[:12], doc_id

    ruled = rules_of(docs, views).select("rule", "doc_id").iter_rows()
    return {
        rule: [
            _example(entry, rule, docs.row(by_predicate=pl.col("doc_id") == one, named=True), views, result.kind.words)
            for one in ids
        ]
        for rule, ids in by_rule(ruled, RULES, count, rank).items()
    }


def _counted(samples: pl.DataFrame) -> pl.DataFrame:
    """Return the views of the right image; ``at`` is the place of the view."""
    own = samples.filter(~pl.col("swapped").fill_null(False)).with_columns(at=pl.col("view"))
    return own.with_columns(pl.col("answer").fill_null(""))


def rules_of(docs: pl.DataFrame, views: pl.DataFrame) -> pl.DataFrame:
    """Return the rule of each doc; null where the full image or a cell is unscored or was not asked, or there are no cells.

    Args:
        docs: a row a doc.
        views: their own views as they count, with whether each is ``right``.
    """
    cell, right = pl.col("cell").is_not_null(), pl.col("right")
    wrong = views.filter(cell, ~right).with_columns(said=pl.col("answer").str.strip_chars().str.to_lowercase())
    often = wrong.group_by("doc_id", "said").len().group_by("doc_id").agg(often=pl.max("len"))
    found = views.group_by("doc_id").agg(
        cells=cell.sum(),
        good=(cell & right).sum(),
        full=right.filter(pl.col("at") == 0).first(),
        whole=right.filter(cell | (pl.col("at") == 0)).is_not_null().all(),
    )
    found = docs.join(found, on="doc_id").join(often, on="doc_id", how="left")
    cells, good, full, often_said = pl.col("cells"), pl.col("good"), pl.col("full"), pl.col("often").fill_null(0)
    # A wrong answer as frequent among cells as the right one. Where most cells give one wrong answer, say "unknown", a
    # right one stands out: that is no guess.
    guessed = (good <= often_said) & (often_said <= cells / 2)
    asked = (pl.col("quick").struct.field("unasked").fill_null(0) == 0) & pl.col("excluded").is_null()
    return found.with_columns(
        rule=pl.when(~(asked & pl.col("whole") & (cells > 0))).then(None)
        .when(full & (good == cells)).then(pl.lit("any cell"))
        .when(good == 0).then(pl.when(full).then(pl.lit("global only")).otherwise(pl.lit("unanswered")))
        .when(guessed).then(pl.lit("luck-like"))
        .otherwise(pl.when(full).then(pl.lit("local")).otherwise(pl.lit("distracted")))
    )  # fmt: skip


def _example(entry: str, rule: str, doc: dict[str, Any], views: pl.DataFrame, words: Words) -> Example:
    """Return a picked doc in the form for display."""
    first, *rest = views.filter(doc_id=doc["doc_id"]).rows(named=True)
    shown = (doc["shown"] or [{"width": 1, "height": 1}])[0]
    size = width, height = max(1, shown["width"]), max(1, shown["height"])
    grids: dict[str, list[Cell]] = {}
    for one in sorted(rest, key=lambda view: view["n"] or 0):
        n, row, col = one["n"], one["row"], one["col"]
        if n is None or row is None or col is None:
            continue
        place = f"row {row + 1}, column {col + 1}"
        if one["kind"] == "segment":  # drawn as a part of the clip's length
            place, box = f"{words.part} {col + 1}", (width * col / n, 0.0, width / n, float(height))
        else:
            left, top, right, bottom = (window_box if one["kind"] == "window" else cell_box)(size, n, row, col)
            box = float(left), float(top), float(right - left), float(bottom - top)
        cell = Cell(place, box, cut(one["answer"], ANSWER), one["score"], one["right"])
        grids.setdefault(words.size(n), []).append(cell)
    texts = cut(doc["question"] or "", QUESTION), cut(doc["gold"] or "", ANSWER), cut(first["answer"], ANSWER)
    cells = {n: tuple(some) for n, some in grids.items()}
    return Example(entry, rule, doc["doc_id"], *texts, first["right"], size, cells, key=doc["doc_id"])
