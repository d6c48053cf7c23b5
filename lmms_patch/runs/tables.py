"""The samples of a task by a metric, as arrays: what the statistics are computed from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cache, cached_property

import numpy as np
import polars as pl

from lmms_patch.ask.kinds import REGIONS, Key, Kind
from lmms_patch.runs.docs import Groups, References, Sampling, entries_of, used_for
from lmms_patch.runs.schema import FLAG, LISTS, OF_DOC, OTHER_METRIC, REAL, TYPES
from lmms_patch.runs.views import Chosen, Items, Views, set_of
from lmms_patch.stats.forms import Form, Picked, on, value_of
from lmms_patch.stats.resample import Array, Bools, Ints
from lmms_patch.stats.sampled import Sampled

_ROUNDING = 1e-9
NEEDED = (
    *("doc_id", "view", "kind", "swapped", "n", "cell", "row", "col", "relevant", "hidden", "repeat", "gold_at"),
    *(
        "answer_no",
        "as_gold",
        "names",
        "wrong_from",
        "said_yes",
        "gold_yes",
        "best",
        "failed",
        "error",
        "unfinished",
        "denied",
    ),
    *(
        "gold",
        "prompt_digest",
        "choices",
        "label",
        "stratum",
        "category",
        "cluster",
        "images",
        "excluded",
        "references",
        "quick",
    ),
)
"""The columns that a table needs beside the scores; one that the samples lack is null."""
_OF_DOC = [name for name in (*OF_DOC, *LISTS) if name not in ("doc_id", "choices")]


@dataclass(eq=False)
class Table:
    """The docs of a task with a given metric and an answer to their first view, in the order of the samples.

    Attributes:
        frame: the samples (``runs.schema``) of one filter, by doc and view, with a column of scores of each metric.
        metric: the metric; docs without it are left out.
        kind: the kind of task.
        grids: the numbers of the task, for kinds with a curve.
        primary: the metric of the column ``score``; "": ``metric``.
        higher: whether higher is better.
        whole: the aggregation works on whole clusters (MME's pairs): all docs of a cluster are used or none.
        merged: category -> what it counts in.
        items: the native items of the frame's rows, in the run alone.
        docs: the first row of each doc, with the lists of the doc.
        doc_id: their ids.
        logged: the rows of docs that have the metric and were asked, in all orders of the options; ``other`` marks those
            on another doc's image.
        asked_docs: how many docs have the metric, also those of which nothing was asked, or whose first call failed.
        unscored: how many of them have an answer to the first view without a value of the metric.
        views: the views of the docs' own image.
        wrong: what docs score on another doc's image.
        groups: the docs' clusters and categories.
        references: their golds and uninformed answers.
        sampling: how they were asked, in a run that left views out.
    """

    frame: pl.DataFrame
    metric: str
    _: KW_ONLY
    kind: Kind
    grids: Sequence[int] = ()
    primary: str = ""
    higher: bool = True
    whole: bool = False
    merged: Mapping[str, str] = field(default_factory=dict)
    items: Items | None = None

    def __post_init__(self) -> None:
        of_other = self.primary not in ("", self.metric)
        whole = _prepared(self.frame, f"{OTHER_METRIC}{self.metric}" if of_other else "score", self.kind, self.items)
        once = pl.col("repeat").is_null()
        frame = whole.filter(once) if whole["repeat"].null_count() < len(whole) else whole
        docs = _docs(frame)
        having = _have_metric(frame, docs)
        self.frame, frame = _kept(whole, having), _kept(frame, having)
        docs, rows = docs.filter(having), frame.drop(_OF_DOC, strict=False)
        asked = docs["steps"].to_numpy() > 0
        self.logged = _kept(rows, asked)
        self.asked_docs = len(docs)
        first = rows.filter(view=0)
        failed = first["failed"].is_not_null().to_numpy()
        unscored = asked & ~failed & (first["error"].is_null() & ~first["known"]).to_numpy()
        self.unscored = int(unscored.sum())
        # an aggregation over whole clusters (MME's pairs) fails on half a cluster, so the rest of the cluster goes too
        kept = self._groups(docs).complete(~(failed | unscored))
        rows, self.docs = _kept(rows, kept).with_columns(doc=pl.col("doc_id").rle_id()), docs.filter(kept)
        self.doc_id: Ints = self.docs["doc_id"].to_numpy()
        self.groups = self._groups(self.docs)
        other, items = rows["other"], self.items
        self.views = Views(rows.filter(~other) if other.any() else rows, len(self), items and items.views)
        self.wrong = WrongImages(self, Views(rows.filter(other), len(self), items and items.views))
        self.references = References(self.docs, self.metric, items and items.references)
        self.sampling = Sampling(self.docs, self.primary if of_other else "")
        # several numbers are made of each
        self.best_seen = cache(self._best_seen)

    def _groups(self, docs: pl.DataFrame) -> Groups:
        return Groups(docs, self.whole, self.merged)

    def __len__(self) -> int:
        return len(self.docs)

    def of(self, doc_ids: Iterable[int]) -> Table:
        """Return the table of chosen docs, among those with the metric.

        Args:
            doc_ids: ids of the docs, in the order that the table is to have.
        """
        ids = pl.DataFrame({"doc_id": list(doc_ids)}, {"doc_id": TYPES["doc_id"]})
        frame = ids.join(self.frame, on="doc_id", maintain_order="left_right")
        return dataclasses.replace(self, frame=frame)

    @cached_property
    def place(self) -> dict[int, int]:
        """The place of each doc by its id."""
        return {doc_id: place for place, doc_id in enumerate(self.doc_id.tolist())}

    @property
    def excluded(self) -> pl.DataFrame:
        """Which sets (``set``) docs with the metric are not used for, by ``doc_id``, and ``why``."""
        return entries_of(_docs(self.frame), "excluded", "doc_id")

    # --- answers ----------------------------------------------------------------------------------

    @cached_property
    def full(self) -> Chosen:
        """What each doc scores on the full image (its first view).

        In a run that left docs out: an estimate, which may exceed the scale.
        """
        if not self.sampling.used:
            return self.full_seen
        return _estimates(self, self.how_asked(None).whole, np.ones(len(self), bool))

    @cached_property
    def full_seen(self) -> Chosen:
        """What each doc scores on the full image; nan where the full image was not asked."""
        return self.views.chosen(np.zeros(len(self), np.intp))

    def best(self, key: Key) -> Chosen:
        """Return the answer of each doc's best view of a set; in a sampled run an estimate, as in ``full``.

        There is none where the doc is not used for the set.
        """
        if self.sampling.no_best:
            return self.views.chosen(np.full(len(self), -1))
        if not self.sampling.used:
            return self.best_seen(key)
        used = used_for(self.docs, key)
        return _estimates(self, self.how_asked(key).cells, used).where(used)

    def _best_seen(self, key: Key) -> Chosen:
        """Return the answer of each doc's best view among those asked, by this metric's scores, else by the run's own choice."""
        views, used = self.views, used_for(self.docs, key)
        inside = views.in_set(key) & used[views.docs]
        best = views.best(inside, self.higher)
        if (best[used] < 0).any() and (isinstance(key, int) or key in REGIONS):
            chosen = views.first(inside & views.where(pl.col("best") & pl.col("known")))
            best = np.where(best < 0, chosen, best)
        return views.chosen(np.where(self.groups.complete(best >= 0), best, -1))

    @cached_property
    def points(self) -> dict[Key, Chosen]:
        """What each doc scores at each point (``Kind.points``), ascending; nothing where the doc is unused there.

        Empty for kinds without points.

        Where the full image is asked too, a doc is used only if its full image has a score: then each point can be compared
        with the full image, doc by doc.
        """
        out = {}
        for key in self.kind.points(sorted(self.grids)):
            there = self.views.where(set_of(key) if isinstance(key, str) else pl.col("n") == key)
            found = self.views.chosen(np.where(used_for(self.docs, key), self.views.first(there), -1))
            used = np.isfinite(found.scores)
            out[key] = found.where(used & np.isfinite(self.full.scores) if self.kind.full else used)
        return out

    def cells(self, n: int) -> Array:
        """Return the scores of the cells of a grid (``Kind.cells`` of them), shape (docs, cells).

        Nan where the doc is not used for the grid.

        In a run that left views out, only docs asked whole to plan the rest count. Further docs may have all cells asked too,
        but only because none of their cells earned full marks.
        """
        return self.views.cells(n, self.kind.cells(n), self.sampling.pilot & used_for(self.docs, n))

    def how_asked(self, key: Key | None) -> Sampled:
        """Return how each doc was asked, and its scores on the full image and on the best cell of a set (None: of no set)."""
        best = np.full(len(self), math.nan) if key is None else self.best_seen(key).scores
        return self.sampling.sampled(key, self.full_seen.scores, best)

    # --- the aggregation --------------------------------------------------------------------------

    def picked(self, chosen: Chosen) -> Picked:
        """Return what a form sums of some answers."""
        groups = self.groups
        said, gold = chosen.labels() or (None, None)
        return Picked(chosen.scores, said, gold, groups.clusters, groups.category_numbers, groups.merged)

    def fitted(self, form: Form) -> Form:
        """Return the form of M for these docs: with merged categories, and in a sampled run bounded by the scale."""
        form = on(form, self.groups.merged)
        return form.within(min(0.0, self.range_seen[0]), self.range_seen[1]) if self.sampling.used else form

    def value(self, form: Form, chosen: Chosen, mask: Bools | None = None) -> float:
        """Return M of some answers by its form; nan where undefined.

        An estimate beyond the scale is moved to the scale's end.
        """
        picked = self.picked(chosen)
        return value_of(self.fitted(form), picked if mask is None else picked.where(mask))

    @cached_property
    def signed(self) -> bool:
        """Whether an answer, of the model or uninformed, scores below 0: then the metric's scale has no natural zero."""
        return any((of.scores < -_ROUNDING).any() for of in (self.views, self.references))

    @cached_property
    def range_seen(self) -> tuple[float, float]:
        """The least and the highest score of any view, uninformed answer or gold; 0 and 1 where nothing is scored."""
        answers = self.views, self.wrong.views, self.references
        known = np.concatenate([of.scores[np.isfinite(of.scores)] for of in answers])
        return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)

    @property
    def marks(self) -> Array:
        """What the gold of each doc scores; 1 where the score is unknown or not above 0."""
        return self.references.marks


def _estimates(table: Table, scores: Array, used: Bools) -> Chosen:
    """Return estimated scores as answers.

    Where the mean of the used docs lies outside the scale, as the mean of few heavy docs may, all scores are moved by the
    same amount, so that the mean lies at the scale's end. Draws then lie on both sides of the end, and the interval
    keeps its width.
    """
    if used.any():
        mean = float(scores[used].mean())
        scores = scores + float(np.clip(mean, min(0.0, table.range_seen[0]), table.range_seen[1])) - mean
    return Chosen(scores)


class WrongImages:
    """The answers of docs to views of another doc's image.

    Attributes:
        views: these views.
        full: each doc's answer on the whole of another doc's image; nothing for docs without a wrong image.

    Args:
        table: the docs.
        views: see above.
    """

    def __init__(self, table: Table, views: Views) -> None:
        self._table, self.views = table, views
        self.full = self._scored(views.first(np.ones(len(views.rows), bool)))

    def cells(self, n: int) -> Array:
        """Return the scores of the cells of a grid, as ``Table.cells``; nan for docs without a wrong image."""
        return self.views.cells(n, self._table.kind.cells(n), used_for(self._table.docs, n))

    def _scored(self, places: Ints) -> Chosen:
        found = self.views.chosen(places)
        return found.where(np.isfinite(found.scores))


def _prepared(frame: pl.DataFrame, score: str, kind: Kind, items: Items | None) -> pl.DataFrame:
    """Return samples with every needed column and with marks (see ``Table.logged``); ``score`` is that of a chosen column."""
    if "known" in frame.columns:
        return frame
    others = [name for name in frame.columns if f"{name}.".startswith(OTHER_METRIC) and name != score]
    missing = [name for name in (score, *NEEDED) if name not in (*frame.columns, *LISTS)]
    known = pl.any_horizontal(pl.col(score, "said_yes").is_not_null())
    if items is not None:
        known = pl.lit(pl.Series([item is not None for item in items.views], dtype=FLAG))
    return frame.with_columns(pl.lit(None, TYPES.get(name, REAL)).alias(name) for name in missing).with_columns(
        item=pl.int_range(pl.len(), dtype=pl.UInt32),
        known=known,
        score=pl.col(score),
        by_primary=pl.col("score") if "score" in frame.columns else pl.lit(None, REAL),
        by_others=pl.any_horizontal(pl.lit(False), *(pl.col(name).is_not_null() for name in others)),
        other=pl.col("swapped").fill_null(False) & (not kind.swapped),
    )


def _docs(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the first row of each doc, with the doc's lists and ``steps``."""
    first = frame.filter(view=0)
    # a list column of nulls takes memory, so it has no place in the rows of views
    lists = [pl.lit(None, TYPES[name]).alias(name) for name in NEEDED if name in LISTS and name not in frame.columns]
    return first.with_columns(lists).with_columns(steps=pl.col("quick").struct.field("steps").fill_null(2))


def _have_metric(frame: pl.DataFrame, docs: pl.DataFrame) -> Bools:
    """Return which docs have the metric, or may have it: none of their calls succeeded, or none was made."""
    place, otherwise = frame["doc_id"].rle_id().to_numpy(), frame["by_others"] | frame["error"].is_not_null()
    known, others = (
        np.bincount(place[(of & ~frame["other"]).to_numpy()], minlength=len(docs)) > 0
        for of in (frame["known"], otherwise)
    )
    return np.asarray((docs["steps"].to_numpy() == 0) | known | ~others)


def _kept(rows: pl.DataFrame, docs: Bools) -> pl.DataFrame:
    """Return the rows of some docs; the table itself where they are all, which costs no copy."""
    return rows if docs.all() else rows.filter(docs[rows["doc_id"].rle_id().to_numpy()])


def range_of(tables: Sequence[Table]) -> tuple[float, float]:
    """Return the least and the highest score in any of some tables (``Table.range_seen``)."""
    lows, highs = zip(*(table.range_seen for table in tables), strict=True)
    return min(lows), max(highs)
