"""The docs of one task of one run as columns: what each doc needs, asks and was answered.

NumPy and pyarrow; ``runs.samples`` reads the files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lmms_patch.ask.kinds import LOWRES, OF_CLIPS, OF_IMAGES, Words, shape
from lmms_patch.ask.views import cell_box, window_box
from lmms_patch.runs.need import NEEDS, UNKNOWN, Found, by_image, without_image
from lmms_patch.runs.rows import CAPTION
from lmms_patch.runs.run import Result
from lmms_patch.stats.resample import cluster_numbers
from lmms_patch.text import block, cut, line

Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

RIGHT, WRONG, UNSCORED, FAILED, NOT_ASKED = "10ufn"
STATES = {RIGHT: "right", WRONG: "wrong", UNSCORED: "unscored", FAILED: "failed", NOT_ASKED: "not asked"}
"""What an answer is, by the character that stands for it where a text holds those of all docs."""
TITLE, LONGEST, MOST_OPTIONS = 160, 20_000, 100
"""Characters of a question or answer in the list, and of any text of a doc; options that are shown."""


class View(NamedTuple):
    """The columns of one view (docs/tables.md)."""

    kind: str
    swapped: bool | None
    n: int | None
    cell: int | None
    row: int | None
    col: int | None
    region: int | None
    relevant: bool | None
    turn: int | None
    asked: bool | None
    score: float | None
    right: bool | None
    answer: str | None
    failed: str | None
    error: str | None
    unfinished: bool | None
    caption: str | None = None


class Doc(NamedTuple):
    """The columns of one doc (docs/tables.md)."""

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


def columns_of(result: Result) -> list[str]:
    """Return the columns that the page needs of a task; only ``_caption`` tasks have captions."""
    names = [name for name in View._fields if name != CAPTION or result.kind.captions]
    return [*names, *Doc._fields]


class Docs:
    """The docs of one task of one run, in the order of its log.

    Args:
        table: the columns ``COLUMNS``, one row per doc and view; the rows of a doc stand together, its full image
        first.
        swap: whether the task itself shows another doc's image. Its views are the doc's own here, though each is marked
        as swapped.
        classes: whether its docs have classes (``runs.need.has_classes``).

    Attributes:
        ids: shape (docs,), doc ids.
        starts: shape (docs + 1,), the first row of each doc.
    """

    def __init__(self, table: pa.Table, *, swap: bool = False, classes: bool = True) -> None:
        self._swap, self._classes = swap, classes
        ids = table.column("doc_id").to_numpy()
        # The rows of a doc stand together, so a doc begins where the id changes.
        first = np.r_[True, ids[1:] != ids[:-1]] if len(ids) else np.zeros(0, bool)
        self.starts = np.r_[np.flatnonzero(first), len(ids)]
        self.ids: NDArray[np.int64] = ids[first]
        self._views = table.select([name for name in View._fields if name in table.column_names]).combine_chunks()
        self._docs = table.select(list(Doc._fields)).filter(pa.array(first)).combine_chunks()
        self._n, self._cell, self._score, self._right = (
            _numbers(self._views.column(name)) for name in ("n", "cell", "score", "right")
        )
        self._asked, marked = (
            pc.fill_null(self._views.column(name), False).to_numpy().astype(bool) for name in ("asked", "swapped")
        )
        # In a ``_swap`` task every view is marked as swapped, and the page shows them as the doc's normal views.
        self._swapped: Bools = marked & (not swap)
        self._is_full, cells, segments, occluded = (
            pc.fill_null(pc.equal(self._views.column("kind"), kind), False).to_numpy().astype(bool)
            for kind in ("full", "cell", "segment", "occlude")
        )
        self._in_time = bool(segments.any())
        self._is_crop = cells | segments
        self._is_cell = self._is_crop | occluded
        # Only cells tell: ``_rotate`` turns the options of the full image alone, and there every order is shown.
        self._in_orders = bool((self._is_crop & pc.is_valid(self._views.column("turn")).to_numpy()).any())

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def places(self) -> dict[int, int]:
        """The place of each doc by its id."""
        return {doc_id: place for place, doc_id in enumerate(self.ids.tolist())}

    @cached_property
    def _counts(self) -> Bools:
        """Whether a row counts: of a view asked in every order of the options, only the worst order does."""
        if not self._in_orders:
            return np.ones(len(self._is_cell), bool)
        docs = np.repeat(np.arange(len(self)), np.diff(self.starts))
        places = np.stack([docs, self._swapped, np.nan_to_num(self._n), np.nan_to_num(self._cell)])
        # Ascending by score with nan first: the first row of each place is the worst order.
        order = np.lexsort((np.arange(len(docs)), np.where(np.isnan(self._score), -np.inf, self._score), *places[::-1]))
        out = np.zeros(len(docs), bool)
        out[order[np.r_[True, (np.diff(places[:, order]) != 0).any(axis=0)]]] = True
        return out

    # --- what each doc is -------------------------------------------------------------------------

    @cached_property
    def grids(self) -> list[int]:
        """The grids of which cells were shown, the coarsest first."""
        known = self._n[self._is_cell & ~self._swapped]
        return [int(n) for n in np.unique(known)]

    @cached_property
    def _states(self) -> NDArray[np.str_]:
        """The state of each row's answer, as a character of ``STATES``."""
        failed = pc.is_valid(self._views.column("failed")).to_numpy()
        # The order decides: a view that was not asked has no score either, and must not count as unscored.
        kinds = [~self._asked, failed, np.isnan(self._right), self._right == 1]
        return np.asarray(np.select(kinds, [NOT_ASKED, FAILED, UNSCORED, RIGHT], WRONG))

    @cached_property
    def first(self) -> NDArray[np.str_]:
        """The state of the answer to each doc's first view (``STATES``); the first view is the full image where shown."""
        return np.asarray(self._states[self._firsts])

    @cached_property
    def first_unfinished(self) -> Bools:
        """Whether the token limit cut the answer to each doc's first view; cut answers are scored unchanged."""
        cut = pc.fill_null(self._views.column("unfinished"), False).to_numpy().astype(bool)
        return np.asarray(cut[self._firsts])

    @cached_property
    def _firsts(self) -> Ints:
        """The row of each doc's first view.

        Where it was asked in every order of the options, that of the order that counts.
        """
        return (
            np.flatnonzero(self._counts & self._is_full & ~self._swapped)
            if self._in_orders
            else np.asarray(self.starts[:-1])
        )

    @cached_property
    def _own_cells(self) -> Bools:
        """Whether a row is a cell of the finest grid, cut from the image of the row's doc (not of a swapped doc)."""
        finest = self._n == self.grids[-1] if self.grids else np.zeros(len(self._is_cell), bool)
        return np.asarray(self._is_cell & finest & ~self._swapped & self._counts)

    @cached_property
    def right_cells(self) -> Ints:
        """How many cells of the finest grid are right."""
        return self._count(self._own_cells & (self._right == 1))

    @cached_property
    def failed(self) -> Bools:
        """Whether a call or the scorer failed on any view of the doc."""
        found = pc.or_(pc.is_valid(self._views.column("failed")), pc.is_valid(self._views.column("error"))).to_numpy()
        return self._count(found) > 0

    @cached_property
    def excluded(self) -> Bools:
        """Whether the doc is left out of a number."""
        return np.asarray(pc.is_valid(self._docs.column("excluded")).to_numpy())

    @cached_property
    def _left_out(self) -> Bools:
        """Whether the finest grid leaves the doc out; a reason without a grid's number applies to all grids."""
        finest = f"{self.grids[-1]}: " if self.grids else ""
        reasons = self._docs.column("excluded").to_pylist()
        return np.array(
            [one is not None and (not re.match(r"\d+: ", one) or finest in f" {one}") for one in reasons], bool
        )

    @cached_property
    def by_image(self) -> NDArray[np.int8]:
        """The class of each doc by its answers on the full image and on cells alone (``runs.need.by_image``).

        ``UNKNOWN`` where the call on the full image failed, where the finest grid leaves the doc out, and where cells
        are hidden in place of shown.
        """
        if not self._classes or not self.grids:
            return np.full(len(self), UNKNOWN, np.int8)
        crops = self._own_cells & self._is_crop
        rows, columns = shape("segment" if self._in_time else "cell", self.grids[-1])
        scored = self._count(crops & ~np.isnan(self._right)) == rows * columns
        used = (self.first != FAILED) & (self._count(crops) > 0) & ~self._left_out
        return by_image(np.where(used, self.first_right, np.nan), used & (self.right_cells > 0), scored)

    @cached_property
    def on_wrong_image(self) -> NDArray[np.float64]:
        """Whether each doc is right on another doc's whole image: 1, 0, or nan where no such view has a score."""
        rows = np.flatnonzero(self._swapped & self._is_full & self._counts)
        out = np.full(len(self), np.nan)
        out[np.searchsorted(self.starts, rows, side="right") - 1] = self._right[rows]
        return out

    @cached_property
    def first_right(self) -> NDArray[np.float64]:
        """Whether the first view of each doc is right: 1, 0, or nan."""
        return np.asarray(self._right[self._firsts])

    def found(self, blind: NDArray[np.float64] | None = None) -> Found:
        """Return what the answers say of each doc, for a run that asked all docs.

        Docs whose call on the full image failed have no class.

        Args:
            blind: shape (docs,), whether the doc is right in a blind run: 1, 0, or nan.
        """
        # Without classes or grids, no doc may get a class from answers without its image.
        lost = self.first == FAILED if self._classes and self.grids else np.ones(len(self), bool)
        blind = np.full(len(self), np.nan) if blind is None else blind
        wrong, blind = (np.where(lost, np.nan, right) for right in (self.on_wrong_image, blind))
        text, alike, sources = without_image(wrong, blind)
        every = np.ones(len(self), bool)
        return Found(self.by_image, text, ~(np.isnan(wrong) & np.isnan(blind)), alike, every, every, ~every, sources)

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

    def _count(self, rows: Bools) -> Ints:
        """Return how many rows of each doc are marked."""
        total = np.r_[0, np.cumsum(rows)]
        return np.asarray(total[self.starts[1:]] - total[self.starts[:-1]])

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
        answers = self._views.column("answer").take(pa.array(self.starts[:-1]))
        found = np.zeros(len(self), bool)
        for column in (
            self._docs.column("question"),
            self._docs.column("gold"),
            self._docs.column("category"),
            answers,
        ):
            found |= pc.fill_null(pc.match_substring(column, words, ignore_case=True), False).to_numpy().astype(bool)
        return found

    def rows(self, places: Sequence[int]) -> list[Told]:
        """Return question, gold and first answer of the docs at some places, each cut to one short line for the page's list."""
        answers = self._views.column("answer").take(pa.array(self.starts[:-1][np.asarray(places, np.intp)])).to_pylist()
        docs = self._docs.take(pa.array(places, pa.int64()))
        texts = zip(docs.column("question").to_pylist(), docs.column("gold").to_pylist(), answers, strict=True)
        return [Told(*(line(one or "", TITLE) for one in three)) for three in texts]

    def _doc(self, place: int) -> Doc:
        """Return the columns of a doc."""
        return Doc(*self._docs.slice(place, 1).to_pylist()[0].values())

    def doc(self, place: int) -> dict[str, Any]:
        """Return what is known of a doc without any model's answers: texts, options, size of the shown image."""
        found, seen = self._doc(place), self.seen(place)
        return {
            "id": found.doc_id,
            "seen": None if seen is None else seen.doc_id,
            "size": None if seen is None or seen.size is None else list(seen.size),
            "options": [_text(one) for one in (found.options or [])[:MOST_OPTIONS]],
            **{name: _text(getattr(found, name)) for name in ("question", "gold", "category", "cluster")},
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
            ``views``: the views that the task is of, in order; ``seen``: the doc whose image they show, or None;
            ``wrong``: those that were asked on another doc's image beside them; ``wrong_from``: that doc's id;
            ``excluded``: why the doc is left out. Of a view: ``name``, ``state`` (``STATES``), ``unfinished`` (whether
            the token limit cut the answer), ``answer``, ``score``, ``why`` (of a failure), and of a cell ``n``,
            ``row``, ``col`` and ``box`` (left, top, width, height in percent of the image). Where views are asked in
            every order of the options, ``counts``: whether it is the order that counts.
        """
        start, stop = self.starts[place], self.starts[place + 1]
        about, seen = self._doc(place), self.seen(place)
        size = (seen and seen.size) or (about.width or 1, about.height or 1)
        other = f" of doc {about.wrong_from}" if self._swap and about.wrong_from is not None else ""
        own: list[dict[str, Any]] = []
        wrong: list[dict[str, Any]] = []
        for at, found in enumerate(self._views.slice(start, stop - start).to_pylist(), start):
            view = View(*found.values())
            made = {
                "name": self._words.say(_name(view)) + other,
                "state": STATES[str(self._states[at])],
                **_shown(view, size),
            }
            (wrong if self._swapped[at] else own).append(
                made | ({"counts": bool(self._counts[at])} if self._in_orders else {})
            )
        source = None if self._swap else about.wrong_from
        return {
            "views": own,
            "seen": seen and seen.doc_id,
            "wrong": wrong,
            "wrong_from": source,
            "excluded": _text(about.excluded),
        }

    @property
    def _words(self) -> Words:
        """What the parts of the task's images or clips are called (``Kind.words``)."""
        return OF_CLIPS if self._in_time else OF_IMAGES


class Seen(NamedTuple):
    """The image that the views of a doc show.

    Attributes:
        doc_id: the doc whose image it is.
        size: width and height in pixels of that doc's first image; None: not known.
        digest: of that doc's images (``runs.record.Record.images``); None: not recorded.
    """

    doc_id: int
    size: tuple[int, int] | None
    digest: str | None


def _shown(view: View, size: tuple[int, int]) -> dict[str, Any]:
    """Return what the page shows of a view, beside its name and state.

    Args:
        view: its columns.
        size: of the image in pixels.
    """
    caption = {} if view.caption is None else {"caption": _text(view.caption)}
    out: dict[str, Any] = caption | {
        "unfinished": bool(view.unfinished),
        "answer": _text(view.answer),
        "score": view.score if view.score is not None and np.isfinite(view.score) else None,
        "why": _text(view.failed or view.error),
    }
    if view.n is None or view.row is None or view.col is None:
        return out
    # Boxes are cut at whole pixels, so percentages come from the pixels and not from the grid's fractions.
    place = window_box if view.kind == "window" else cell_box
    left, top, right, bottom = place(size, view.n, view.row, view.col)
    percent = (
        100 * left / size[0],
        100 * top / size[1],
        100 * (right - left) / size[0],
        100 * (bottom - top) / size[1],
    )
    if view.kind == "segment":  # drawn as a part of the clip's length
        percent = (100 * view.col / view.n, 0.0, 100 / view.n, 100.0)
    box = [round(end, 4) for end in percent]
    return out | {"n": view.n, "row": view.row, "col": view.col, "place": _place(view), "box": box}


def _place(view: View) -> str:
    """Return the place of a cell or window in words, or the number of a segment."""
    if view.kind == "segment":
        return f"segment {view.cell}"
    # Windows move by half a cell.
    row, column = (at / 2 if view.kind == "window" else at for at in (view.row or 0, view.col or 0))
    return f"row {row + 1:g}, column {column + 1:g}"


def _name(view: View) -> str:
    """Return the name of a view on the page, such as ``3×3, row 2, column 1``.

    Views of one doc have different names.
    """
    moved = "" if view.turn is None else f", options moved by {view.turn}"
    boxes = "relevant" if view.relevant else "adversarial"
    if view.n is not None and view.row is not None:
        hidden = "all but " if view.kind == "occlude" else ""
        words = OF_CLIPS if view.kind == "segment" else OF_IMAGES
        return f"{hidden}{words.size(view.n)}, {_place(view)}{moved}"
    if view.region is not None:
        return f"box {view.region}, {boxes}"
    if moved:
        return f"full image{moved}"
    if view.relevant is not None:
        return f"all {boxes} boxes hidden"
    if view.kind == "frames":
        return f"{view.n} frame{'s' * (view.n != 1)}"
    if view.kind == "lowres" and view.n is not None:
        return LOWRES.words.grid(view.n)
    return _NAMED.get(view.kind, view.kind or "view")


_NAMED = {
    "full": "full image",
    "blind": "no image",
    "caption": "its caption",
    "blank": "blank image",
    "frame": "middle frame",
    "tshuffle": "segments shuffled",
    "treverse": "clip reversed",
}
"""Names of views that are not of a cell."""


def _text(value: Any) -> str | None:
    return None if value is None else cut(block(value), LONGEST)


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column as floats, with nan for null."""
    return np.asarray(pc.fill_null(column.cast(pa.float64()), float("nan")).to_numpy(), float)


def digits(classes: NDArray[np.int8]) -> str:
    """Return classes as a text, a character per doc: the class's index in ``NEEDS``, or ``-`` where not known.

    >>> digits(np.array([0, 3, -1]))
    '03-'
    """
    return "".join(np.array([*map(str, range(len(NEEDS))), "-"])[classes].tolist())
