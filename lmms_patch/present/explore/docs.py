"""The docs of one task of one run as columns: what each doc needs, asks and was answered.

NumPy, polars and pyarrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lmms_patch.present.explore.views import FAILED, Bools, Ints, View, Views, flags, page_text
from lmms_patch.runs.need import UNKNOWN, DocNeeds, without_image
from lmms_patch.runs.run import Result
from lmms_patch.stats.resample import cluster_numbers
from lmms_patch.text import line

TITLE, MOST_OPTIONS = 160, 100
"""Characters of a question or answer in the list; options that are shown."""


class Doc(NamedTuple):
    """The columns of a doc (docs/tables.md)."""

    doc_id: int
    question: str | None
    gold: str | None
    options: list[str] | None
    category: str | None
    cluster: str | None
    excluded: str | None
    width: int | None
    height: int | None
    images: str | None
    wrong_from: int | None


class Told(NamedTuple):
    """What the list shows of a doc: its texts, and ``answer``, the answer to the first view."""

    question: str
    gold: str
    answer: str


def table_of(result: Result) -> pa.Table:
    """Return the columns of a task for the page: those of views and docs, a row per doc and view.

    Beside the columns of its samples table stand ``asked``, ``right`` (at least half of what the gold scores, as in the
    necessity map), and the size of the first image.
    """
    names = [name for name in View._fields if name not in _MADE and (name != "caption" or result.kind.captions)]
    own = [name for name in Doc._fields if name not in _MADE]
    frame = result.frame(list(dict.fromkeys([*names, *own, "view", "shown", "excluded", "quick", "references"])))
    first = frame.filter(pl.col("view") == 0)
    reasons = first["excluded"].to_list()
    marks = first.select("doc_id", "references").explode("references", empty_as_null=True).unnest("references")
    gold = (pl.col("metric") == result.metric) & pl.col("roles").list.contains("gold") & (pl.col("score") > 0)
    best = marks.filter(gold).group_by("doc_id").agg(marks=pl.max("score"))
    docs = first.select(
        "doc_id",
        "options",
        width=pl.col("shown").list.first().struct.field("width"),
        height=pl.col("shown").list.first().struct.field("height"),
        excluded=pl.Series([_excluded(one) for one in reasons], dtype=pl.String),
        asked=pl.col("quick").struct.field("steps").fill_null(2) > 0,
        wrong_from=pl.Series(_sources(frame), dtype=pl.Int64),
    ).join(best, on="doc_id", how="left", maintain_order="left")
    rows = frame.drop("excluded", "options", "wrong_from", strict=False)
    rows = rows.join(docs, on="doc_id", how="left", maintain_order="left")
    right = (
        pl.col("score") >= pl.col("marks").fill_null(1.0) / 2 if result.higher_is_better else pl.lit(None, pl.Boolean)
    )
    wanted = [name for name in View._fields if name != "caption" or result.kind.captions]
    table = rows.with_columns(right=right).select(*wanted, *Doc._fields)
    return table.to_arrow(compat_level=pl.CompatLevel.oldest())


_MADE = ("asked", "right", "excluded", "width", "height")


def _sources(frame: pl.DataFrame) -> list[int | None]:
    """Return of each doc whose image it was asked on beside its own."""
    found = frame.group_by("doc_id", maintain_order=True).agg(pl.col("wrong_from").drop_nulls().first())
    return found["wrong_from"].to_list()


def _excluded(reasons: Sequence[dict[str, str]] | None) -> str | None:
    """Return why a doc is left out; of some of its sets of views alone, with their names; None where it is used for all."""
    return "; ".join(f"{one['set']}: {one['why']}" for one in reasons) if reasons else None


class Docs:
    """The docs of one task of one run, in the order of its log.

    Args:
        table: the columns ``table_of``, one row per doc and view; the rows of a doc stand together, its full image
        first.
        swap: whether the task itself shows another doc's image.
        classes: whether its docs have classes (``runs.need.has_classes``).

    Attributes:
        ids: shape (docs,), doc ids.
        views: what the docs' views show, and what was answered to them.
    """

    def __init__(self, table: pa.Table, *, swap: bool = False, classes: bool = True) -> None:
        self._swap = swap
        ids = table.column("doc_id").to_numpy()
        # The rows of a doc stand together, so a doc begins where the id changes.
        first = np.r_[True, ids[1:] != ids[:-1]] if len(ids) else np.zeros(0, bool)
        self.ids: NDArray[np.int64] = ids[first]
        self._docs = table.select(list(Doc._fields)).filter(pa.array(first)).combine_chunks()
        views = table.select([name for name in View._fields if name in table.column_names]).combine_chunks()
        self.views = Views(views, np.r_[np.flatnonzero(first), len(ids)], swap=swap)
        # Without classes or grids, no doc may get a class.
        self._classes = classes and bool(self.views.grids)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def places(self) -> dict[int, int]:
        """The place of each doc by its id."""
        return {doc_id: place for place, doc_id in enumerate(self.ids.tolist())}

    # --- what each doc is -------------------------------------------------------------------------

    @cached_property
    def excluded(self) -> Bools:
        """Whether the doc is left out of a number."""
        return np.asarray(pc.is_valid(self._docs.column("excluded")).to_numpy())

    @cached_property
    def by_image(self) -> NDArray[np.int8]:
        """The class of each doc by its answers on the full image and on cells alone (``Views.by_image``)."""
        if not self._classes:
            return np.full(len(self), UNKNOWN, np.int8)
        finest = f"{self.views.grids[-1]}: "
        # A reason without a grid's number applies to all grids.
        left_out = [
            one is not None and (not re.match(r"\d+: ", one) or finest in f" {one}")
            for one in self._docs.column("excluded").to_pylist()
        ]
        return self.views.by_image(np.array(left_out, bool))

    def found(self, blind: NDArray[np.float64] | None = None) -> DocNeeds:
        """Return what the answers say of each doc, for a run that asked all docs.

        Docs whose call on the full image failed have no class.

        Args:
            blind: shape (docs,), whether the doc is right in a blind run: 1, 0, or nan.
        """
        every = np.ones(len(self), bool)
        # No doc without a class by its image may get a class from answers without its image.
        lost = self.views.first == FAILED if self._classes else every
        blind = np.full(len(self), np.nan) if blind is None else blind
        wrong, blind = (np.where(lost, np.nan, right) for right in (self.views.on_wrong_image, blind))
        text, alike, sources = without_image(wrong, blind)
        return DocNeeds(self.by_image, text, ~(np.isnan(wrong) & np.isnan(blind)), alike, every, every, ~every, sources)

    @cached_property
    def clusters(self) -> Ints | None:
        """Cluster numbers of the docs; None where no doc has a cluster. Each doc without a cluster gets a new number."""
        column = self._docs.column("cluster")
        if column.null_count == len(column):
            return None
        # repr keeps a cluster named "doc 3" apart from doc 3 without a cluster.
        return cluster_numbers(
            [f"doc {place}" if one is None else repr(one) for place, one in enumerate(column.to_pylist())]
        )

    # --- what each doc says -----------------------------------------------------------------------

    @cached_property
    def categories(self) -> tuple[list[str], list[int]]:
        """The sorted names of the categories, and the number of each doc's category; -1 for a doc without category."""
        column = pc.dictionary_encode(self._docs.column("category")).combine_chunks()
        shown = ["" if one is None else line(one, TITLE) for one in column.dictionary.to_pylist()]
        names = sorted(set(shown))  # two categories whose names look the same on the page are one
        new = [names.index(one) for one in shown]
        return names, [-1 if one is None else new[one] for one in column.indices.to_pylist()]

    def matches(self, words: str) -> Bools:
        """Return which docs have a text in question, gold, category or first answer, upper and lower case alike."""
        texts = [self._docs.column(name) for name in ("question", "gold", "category")]
        columns = [*texts, self.views.first_answers(slice(None))]
        found = [flags(pc.match_substring(column, words, ignore_case=True)) for column in columns]
        return np.asarray(np.any(found, axis=0))

    def rows(self, places: Sequence[int]) -> list[Told]:
        """Return question, gold and first answer of the docs at some places, each as a short line for the page's list."""
        answers = self.views.first_answers(np.asarray(places, np.intp))
        docs = self._docs.take(pa.array(places, pa.int64()))
        columns = (docs.column("question"), docs.column("gold"), answers)
        texts = zip(*(column.to_pylist() for column in columns), strict=True)
        return [Told(*(line(one or "", TITLE) for one in three)) for three in texts]

    def _doc(self, place: int) -> Doc:
        """Return the columns of a doc."""
        return Doc(*self._docs.slice(place, 1).to_pylist()[0].values())

    def doc(self, place: int) -> dict[str, Any]:
        """Return what is known of a doc without any model's answers: texts, options, size of the shown image."""
        found, seen = self._doc(place), self.seen(place)
        return {
            "id": found.doc_id,
            "seen": seen and seen.doc_id,
            "size": seen and seen.size and list(seen.size),
            "options": [page_text(one) for one in (found.options or [])[:MOST_OPTIONS]],
            **{name: page_text(getattr(found, name)) for name in ("question", "gold", "category", "cluster")},
        }

    def seen(self, place: int) -> Seen | None:
        """Return the image that the views of a doc show; in a ``_swap`` task the image of another doc.

        None where no other doc's image fits.
        """
        about = self._doc(place)
        if self._swap:
            if about.wrong_from is None:
                return None
            if (other := self.places.get(about.wrong_from)) is None:
                return Seen(about.wrong_from, None, None)
            about = self._doc(other)
        return Seen(about.doc_id, (about.width, about.height) if about.width and about.height else None, about.images)

    def answers(self, place: int) -> dict[str, Any]:
        """Return the answers to each view of a doc.

        Returns:
            ``views``: the views that the task is of, in order (``Views.shown``); ``seen``: the doc whose image they
            show, or None; ``wrong``: those that were asked on another doc's image beside them; ``wrong_from``: that
            doc's id; ``excluded``: why the doc is left out.
        """
        about, seen = self._doc(place), self.seen(place)
        size = (seen and seen.size) or (about.width or 1, about.height or 1)
        source = about.wrong_from
        other = f" of doc {source}" if self._swap and source is not None else ""
        own, wrong = self.views.shown(place, size, other)
        return {
            "views": own,
            "seen": seen and seen.doc_id,
            "wrong": wrong,
            "wrong_from": None if self._swap else source,
            "excluded": page_text(about.excluded),
        }


class Seen(NamedTuple):
    """The image that the views of a doc show.

    Attributes:
        doc_id: the doc whose image it is.
        size: width and height in pixels of that doc's first image; None: not known.
        digest: of that doc's images (column ``images``); None: not recorded.
    """

    doc_id: int
    size: tuple[int, int] | None
    digest: str | None


def digits(classes: Iterable[int]) -> str:
    """Return classes as a text, a character per doc: the class's index in ``NEEDS``, or ``-`` where not known.

    >>> digits([0, 3, -1])
    '03-'
    """
    return "".join("-" if one == UNKNOWN else str(one) for one in classes)
