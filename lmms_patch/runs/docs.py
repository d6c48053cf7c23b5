"""What the rows of docs say of each doc: what it is drawn with, what it is held against, and how it was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from lmms_patch.ask.kinds import Key
from lmms_patch.runs.numbers import AskedPart
from lmms_patch.runs.views import Answers, Chosen
from lmms_patch.stats.chance import Uninformed
from lmms_patch.stats.resample import Array, Bools, Ints, cluster_numbers
from lmms_patch.stats.sampled import Sampled

ROLES = ("gold", "option", "constant", "stratum", "other")
_FORMAT = pl.col("label").fill_null("").str.strip_chars_end("0123456789")


def used_for(docs: pl.DataFrame, key: Key) -> Bools:
    """Return which docs are used for a set of views, shape (docs,)."""
    named = pl.col("excluded").list.eval(pl.element().struct.field("set") == str(key)).list.any()
    return docs.select(~named.fill_null(False)).to_series().to_numpy()


def full_marks(metric: str) -> pl.Expr:
    """Return what the gold of each doc scores, over the docs' first rows; 1 where the score is unknown or not above 0."""
    one = pl.element().struct
    gold = one.field("roles").list.contains("gold") & (one.field("metric") == metric) & (one.field("score") > 0)
    return pl.col("references").list.eval(one.field("score").filter(gold)).list.max().fill_null(1.0)


def entries_of(docs: pl.DataFrame, name: str, *beside: str) -> pl.DataFrame:
    """Return the entries of a list of docs as rows, each with the place of its doc (``doc``).

    Args:
        docs: a row a doc.
        name: the column of lists.
        beside: further columns of the doc.
    """
    rows = docs.select(name, *beside, doc=pl.int_range(pl.len())).filter(pl.col(name).list.len() > 0)
    return rows.explode(name).unnest(name)


class Groups:
    """The clusters and categories of docs.

    Attributes:
        whole: whether the aggregation works on whole clusters (MME's pairs): all docs of a cluster are used or none.
        clusters: cluster numbers of the docs; None where docs are independent.
        by_image: whether nobody named what docs are drawn with, and docs that show the same images are drawn together.

    Args:
        docs: a row a doc.
        whole: see above.
        into: category -> the name of what it counts in, with others; categories that count alone are left out.
    """

    def __init__(self, docs: pl.DataFrame, whole: bool, into: Mapping[str, str]) -> None:
        self._docs, self._into = docs, into
        self.clusters, shown = numbers_of(docs["cluster"]), docs["images"].drop_nulls()
        self.by_image = self.clusters is None and shown.n_unique() < len(shown)
        if self.by_image:
            self.clusters = numbers_of(docs["images"])
        self.whole = whole and not self.by_image

    def clusters_of(self, docs: Any, *, renumbered: bool = False) -> Ints | None:
        """Return the cluster numbers of some docs, as they are or from 0 on; None where docs are independent."""
        clusters = None if self.clusters is None else self.clusters[docs]
        return clusters if clusters is None or not renumbered else cluster_numbers(clusters.tolist())

    def complete(self, there: Bools) -> Bools:
        """Return which docs can be used: those of which there is something.

        Where the aggregation works on whole clusters, a doc of which there is nothing takes the rest of its cluster along.
        """
        if not self.whole or self.clusters is None:
            return there
        return ~np.isin(self.clusters, self.clusters[~there])

    @property
    def categories(self) -> list[str] | None:
        """Category of each doc; None where a doc has none."""
        category = self._docs["category"]
        return None if category.null_count() or not len(category) else category.to_list()

    @cached_property
    def category_numbers(self) -> Ints | None:
        """Number of each doc's category; None where a doc has none."""
        return None if self.categories is None else numbers_of(self._docs["category"])

    @cached_property
    def merged(self) -> tuple[int, ...]:
        """For each category, the number of its group, as ``stats.forms.on`` takes them; () where each counts by itself."""
        names = self.categories
        if names is None or self.category_numbers is None or not self._into.keys() & set(names):
            return ()
        groups = [
            ("merged", self._into[name]) if name in self._into else ("alone", str(number))
            for number, name in sorted(set(zip(self.category_numbers.tolist(), names, strict=True)))
        ]
        return tuple(np.unique([repr(group) for group in groups], return_inverse=True)[1].tolist())


def numbers_of(labels: pl.Series) -> Ints | None:
    """Return the number of what each doc is drawn with; a doc without a label is alone. None where no doc has a label.

    Numbers stand in the order of ``cluster_numbers``, by which bootstrap draws go.
    """
    if labels.null_count() == len(labels):
        return None
    return cluster_numbers([f"doc {doc}" if label is None else repr(label) for doc, label in enumerate(labels)])


def _ranks(texts: pl.Series) -> Ints:
    """Return the place of each text among the different texts, sorted."""
    return texts.rank("dense").to_numpy().astype(np.intp) - 1


class References(Answers):
    """The scored golds and uninformed answers of docs.

    Args:
        docs: a row a doc.
        metric: the metric that scores them.
        items: native items, by doc id, of each entry of ``references``.
    """

    def __init__(self, docs: pl.DataFrame, metric: str, items: Mapping[int, Sequence[Any]] | None) -> None:
        self._docs = docs
        rows = entries_of(docs, "references", "doc_id")
        rows = rows.with_columns(number=pl.int_range(pl.len()).over("doc")) if items else rows
        rows = rows.filter(metric=metric).with_columns(item=pl.int_range(pl.len()))
        own = [items[doc_id][number] for doc_id, number in rows.select("doc_id", "number").rows()] if items else None
        super().__init__(rows, len(docs), own)

    @cached_property
    def uninformed(self) -> Uninformed:
        """The golds and uninformed answers, as the floors take them."""
        scored = np.isfinite(self.scores)
        formats = self._docs.select(pl.when(_FORMAT == "").then(pl.lit("open")).otherwise(_FORMAT)).to_series()
        return Uninformed(
            formats.to_numpy().astype(str),
            self._docs["choices"].fill_null(0).to_numpy().astype(np.intp),
            self._docs["gold"].to_list(),
            self.docs,
            _ranks(self.rows["answer"]),
            self.rows["answer"].unique().sort().to_list(),
            self.scores,
            {role: scored & self.where(pl.col("roles").list.contains(role)) for role in ROLES},
        )

    def at(self, entries: Ints) -> Chosen:
        """Return the answer of each doc by its number among all."""
        return self.chosen(np.where(entries < 0, -1, entries - self.starts))

    @cached_property
    def _golds(self) -> Chosen:
        return self.chosen(self.best(self.uninformed.roles["gold"]))

    @property
    def ceiling(self) -> Chosen | None:
        """Each doc's gold under the scorer (the best of several golds); None where some doc has none."""
        return self._golds if self.count and np.isfinite(self._golds.scores).all() else None

    @property
    def highest(self) -> float | None:
        """The highest score of a gold; None where some doc has no gold with a score."""
        return None if self.ceiling is None else float(self.ceiling.scores.max())

    @cached_property
    def marks(self) -> Array:
        """What the gold of each doc scores; 1 where the score is unknown or not above 0."""
        return np.where(self._golds.scores > 0, self._golds.scores, 1.0)

    @property
    def captions(self) -> bool:
        """Whether each doc is answered with a caption."""
        return bool((self.uninformed.formats == "caption").all())


class Sampling:
    """How docs were asked, in a run that left docs and views out (``stats.asking``); in others, all of them whole.

    Attributes:
        used: whether docs were left out, so that a doc's scores on the full image and its best cell are estimates.
        planned: whether anything may have been left out.
        no_best: why no doc's best cell is known by the metric; empty where it is.
        steps: shape (docs,), how many steps each doc took; 0: nothing was asked.

    Args:
        docs: a row a doc.
        other: the primary metric, by whose scores the run went, where the docs are scored by another one; else "".
    """

    def __init__(self, docs: pl.DataFrame, other: str) -> None:
        quick = docs["quick"].struct.unnest()
        self._quick, self._other = quick, other
        self.steps: Ints = quick["steps"].fill_null(2).to_numpy().astype(np.intp)
        self._p = quick.select(pl.col("p_full", "p_cells").fill_null(1.0)).to_numpy()
        self.planned = quick["steps"].null_count() < len(quick)
        self.used = bool((self._p < 1).any())
        # cells were left out by the scores of a single metric; the best cell by another metric may be among them
        left_out = other and quick["unasked"].sum() > 0
        self.no_best = f"cells were left out by the scores of {other}" if left_out else ""

    @property
    def pilot(self) -> Bools:
        """Which docs were asked whole to plan the rest, shape (docs,); all where none was left out."""
        return np.asarray(self._quick["block"].fill_null(0) == 0)

    @property
    def asked_docs(self) -> int:
        """How many docs were asked anything."""
        return int((self.steps > 0).sum())

    def stands_for(self, steps: int, used: Bools) -> float:
        """Return how many docs are represented by a doc asked in so many steps; 1 where all docs were asked."""
        if not self.used:
            return 1.0
        return int(used.sum()) / max(1, int((self.steps[used] >= steps).sum()))

    def sampled(self, key: Key | None, full: Array, best: Array) -> Sampled:
        """Return how each doc was asked, with its scores, as the estimates take them.

        Args:
            key: a set (None: of no set).
            full: shape (docs,), what the docs score on the full image.
            best: shape (docs,), what they score on the best cell of the set.
        """
        expected = np.zeros((len(self.steps), 3))
        # what a doc was expected to score is of the metric that the run went by; by another metric expect 0
        if not self._other:
            expected[:, 0] = self._quick["full"].fill_null(0.0)
            rows = entries_of(self._quick, "expected").filter(set=str(key))
            expected[rows["doc"], 1:] = rows.select(pl.col("before", "after").fill_null(0.0)).to_numpy()
        return Sampled(np.nan_to_num(full), np.nan_to_num(best), self.steps, self._p, *expected.T)

    def part(self, views: Ints) -> AskedPart | None:
        """Return what was asked of docs with so many views each; None where nothing was left out."""
        if not self.planned:
            return None
        known = self._quick["steps"].is_not_null().to_numpy()
        # a doc of which nothing was asked still has a view in its record, which was no call
        calls = (views * (self.steps > 0))[known]
        left_out, whole = int(self._quick["unasked"].sum()), int(self.pilot[known].sum())
        return AskedPart(int(calls.sum()), int(calls.sum()) + left_out, int((calls > 0).sum()), whole, self.used)
