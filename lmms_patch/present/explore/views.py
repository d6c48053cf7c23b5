"""The views of the docs of one task of one run as columns: which parts of images they show, and what was answered to them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lmms_patch.ask.kinds import LOWRES, OF_CLIPS, OF_IMAGES, shape
from lmms_patch.ask.views import cell_box, window_box
from lmms_patch.runs import need
from lmms_patch.text import block, cut

Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

RIGHT, WRONG, UNSCORED, FAILED, NOT_ASKED = "10ufn"
STATES = {RIGHT: "right", WRONG: "wrong", UNSCORED: "unscored", FAILED: "failed", NOT_ASKED: "not asked"}
"""What an answer is, by the character that stands for it where a text holds those of all docs."""
LONGEST = 20_000
"""Characters of any text of a doc."""


class View(NamedTuple):
    """The columns of a view (docs/tables.md)."""

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


class Views:
    """The views of all docs of a task, a row for each view.

    Args:
        table: the columns ``View._fields``; the rows of a doc stand together, its full image first.
        starts: shape (docs + 1,), the first row of each doc.
        swap: whether the task itself shows another doc's image. Its views are the doc's own here, though each is marked
        as swapped.
    """

    def __init__(self, table: pa.Table, starts: Ints, *, swap: bool) -> None:
        self._table, self._starts = table, starts
        self._n, self._cell, self._score, self._right = (
            _numbers(table.column(name)) for name in ("n", "cell", "score", "right")
        )
        self._asked, marked = (flags(table.column(name)) for name in ("asked", "swapped"))
        # In a ``_swap`` task every view is marked as swapped, and the page shows them as the doc's normal views.
        self._swapped: Bools = marked & (not swap)
        self._is_full, cells, segments, occluded = (
            flags(pc.equal(table.column("kind"), kind)) for kind in ("full", "cell", "segment", "occlude")
        )
        self._in_time = bool(segments.any())
        self._is_crop = cells | segments
        self._is_cell = self._is_crop | occluded

    # --- what each view is ------------------------------------------------------------------------

    @cached_property
    def _states(self) -> NDArray[np.str_]:
        """The state of each row's answer, as a character of ``STATES``."""
        failed = pc.is_valid(self._table.column("failed")).to_numpy()
        # The order decides: a view that was not asked has no score either, and must not count as unscored.
        kinds = [~self._asked, failed, np.isnan(self._right), self._right == 1]
        return np.select(kinds, [NOT_ASKED, FAILED, UNSCORED, RIGHT], WRONG)

    @cached_property
    def grids(self) -> list[int]:
        """The grids of which cells were shown, the coarsest first."""
        return [int(n) for n in np.unique(self._n[self._is_cell & ~self._swapped])]

    @cached_property
    def _own_cells(self) -> Bools:
        """Whether a row is a cell of the finest grid, cut from the image of the row's doc (not of a swapped doc)."""
        finest = self._n == self.grids[-1] if self.grids else np.zeros(len(self._is_cell), bool)
        return np.asarray(self._is_cell & finest & ~self._swapped)

    # --- what the views say of each doc, shape (docs,) --------------------------------------------

    @cached_property
    def _firsts(self) -> Ints:
        """The row of each doc's first view."""
        return self._starts[:-1]

    @cached_property
    def first(self) -> NDArray[np.str_]:
        """The state of the answer to each doc's first view (``STATES``); the first view is the full image where shown."""
        return self._states[self._firsts]

    @cached_property
    def first_right(self) -> NDArray[np.float64]:
        """Whether the first view of each doc is right: 1, 0, or nan."""
        return self._right[self._firsts]

    @cached_property
    def first_unfinished(self) -> Bools:
        """Whether the token limit cut the answer to each doc's first view; cut answers are scored unchanged."""
        return flags(self._table.column("unfinished"))[self._firsts]

    def first_answers(self, places: Any) -> pa.ChunkedArray:
        """Return the answers to the first views of the docs at some places."""
        return self._table.column("answer").take(pa.array(self._starts[:-1][places]))

    @cached_property
    def right_cells(self) -> Ints:
        """How many cells of the finest grid are right."""
        return self._count(self._own_cells & (self._right == 1))

    @cached_property
    def failed(self) -> Bools:
        """Whether a call or the scorer failed on any view of the doc."""
        found = pc.or_(pc.is_valid(self._table.column("failed")), pc.is_valid(self._table.column("error"))).to_numpy()
        return self._count(found) > 0

    @cached_property
    def on_wrong_image(self) -> NDArray[np.float64]:
        """Whether each doc is right on another doc's whole image: 1, 0, or nan where no such view has a score."""
        rows = np.flatnonzero(self._swapped & self._is_full)
        out = np.full(len(self._starts) - 1, np.nan)
        out[np.searchsorted(self._starts, rows, side="right") - 1] = self._right[rows]
        return out

    def by_image(self, left_out: Bools) -> NDArray[np.int8]:
        """Return the class of each doc by its answers on the full image and on cells alone (``runs.need.by_image``).

        ``UNKNOWN`` where the call on the full image failed, where the finest grid leaves the doc out, and where cells
        are hidden in place of shown. There is a grid.

        Args:
            left_out: whether the finest grid leaves the doc out.
        """
        crops = self._own_cells & self._is_crop
        rows, columns = shape("segment" if self._in_time else "cell", self.grids[-1])
        scored = self._count(crops & ~np.isnan(self._right)) == rows * columns
        used = (self.first != FAILED) & (self._count(crops) > 0) & ~left_out
        return need.by_image(np.where(used, self.first_right, np.nan), used & (self.right_cells > 0), scored)

    def _count(self, rows: Bools) -> Ints:
        """Return how many rows of each doc are marked."""
        total: Ints = np.r_[0, np.cumsum(rows)]
        return np.diff(total[self._starts])

    # --- what the page shows of them --------------------------------------------------------------

    def shown(self, place: int, size: tuple[int, int], of: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return what the page shows of a doc's views: of those that the task is of, and of those on a wrong image.

        Args:
            place: of the doc.
            size: of its image in pixels.
            of: what the names of views end with; may be empty.

        Returns:
            Of a view: ``name``, ``state`` (``STATES``), ``unfinished`` (whether the token limit cut the answer),
            ``answer``, ``score``, ``why`` (of a failure), and of a cell ``n``, ``row``, ``col`` and ``box`` (left, top,
            width, height in percent of the image).
        """
        own: list[dict[str, Any]] = []
        wrong: list[dict[str, Any]] = []
        words = OF_CLIPS if self._in_time else OF_IMAGES
        start, stop = self._starts[place], self._starts[place + 1]
        for at, found in enumerate(self._table.slice(start, stop - start).to_pylist(), start):
            view = View(*found.values())
            made = {"name": words.say(_name(view)) + of, "state": STATES[str(self._states[at])]}
            (wrong if self._swapped[at] else own).append(made | _shown(view, size))
        return own, wrong


def _shown(view: View, size: tuple[int, int]) -> dict[str, Any]:
    """Return what the page shows of a view, beside its name and state.

    Args:
        view: its columns.
        size: of the image in pixels.
    """
    caption = {} if view.caption is None else {"caption": page_text(view.caption)}
    out: dict[str, Any] = caption | {
        "unfinished": bool(view.unfinished),
        "answer": page_text(view.answer),
        "score": view.score if view.score is not None and np.isfinite(view.score) else None,
        "why": page_text(view.failed or view.error),
    }
    if view.n is None or view.row is None or view.col is None:
        return out
    # Boxes are cut at whole pixels, so percentages come from the pixels and not from the grid's fractions.
    place = window_box if view.kind == "window" else cell_box
    left, top, right, bottom = place(size, view.n, view.row, view.col)
    ends = (left, top, right - left, bottom - top)
    percent = tuple(100 * end / side for end, side in zip(ends, size * 2, strict=True))
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


def page_text(value: Any) -> str | None:
    """Return a harmless text for the page, cut after ``LONGEST`` characters; None for None."""
    return None if value is None else cut(block(value), LONGEST)


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column as floats, with nan for null."""
    return np.asarray(pc.fill_null(column.cast(pa.float64()), float("nan")).to_numpy(), float)


def flags(column: pa.ChunkedArray) -> Bools:
    """Return a column of truth values, with False for null."""
    return np.asarray(pc.fill_null(column, False).to_numpy(), bool)
