"""The docs of one task of one run as columns: what each doc needs, asks and was answered. NumPy and pyarrow; ``runs.samples`` reads the files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lmms_patch.ask.spec import KINDS, OF_CLIPS, OF_IMAGES, Words, shape
from lmms_patch.ask.views import cell_box
from lmms_patch.runs.need import NEEDS, UNKNOWN, Found, by_image, without_image
from lmms_patch.stats.resample import cluster_numbers
from lmms_patch.text import block, cut, line

Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

_PLACE = ("kind", "swapped", "n", "cell", "row", "col", "region", "relevant", "turn")
VIEW = (*_PLACE, "asked", "score", "right", "answer", "failed", "error", "unfinished")
DOC = ("doc_id", "question", "gold", "options", "category", "cluster", "excluded", "width", "height", "images", "wrong_from")
COLUMNS = (*VIEW, *DOC)
"""The columns of ``runs.samples`` that the explorer reads."""
STATES = {"right": "1", "wrong": "0", "unscored": "u", "failed": "f", "not asked": "n"}
"""What an answer is, and the character that stands for it where a text holds those of all docs."""
TITLE, LONGEST, MOST_OPTIONS = 160, 20_000, 100
"""Characters of a question or answer in the list, and of any text of a doc; options that are shown."""


class Docs:
    """The docs of one task of one run, in the order of its log.

    Args:
        table: the columns ``COLUMNS``, one row per doc and view; the rows of a doc stand together, its full image first.
        swap: whether the task itself shows another doc's image. Its views are the doc's own here, though each is marked as swapped.
        classes: whether its docs have classes (``runs.need.has_classes``).

    Attributes:
        ids: shape (docs,), doc ids.
        starts: shape (docs + 1,), the first row of each doc.
    """

    def __init__(self, table: pa.Table, *, swap: bool = False, classes: bool = True) -> None:
        self._swap, self._classes = swap, classes
        ids = table.column("doc_id").to_numpy()
        first = np.r_[True, ids[1:] != ids[:-1]] if len(ids) else np.zeros(0, bool)
        self.starts = np.r_[np.flatnonzero(first), len(ids)]
        self.ids: NDArray[np.int64] = ids[first]
        self._views = table.select(list(VIEW)).combine_chunks()
        self._docs = table.select(list(DOC)).filter(pa.array(first)).combine_chunks()
        self._numbers = {name: _numbers(self._views.column(name)) for name in ("n", "row", "col", "cell", "score", "right")}
        self._asked, marked = (pc.fill_null(self._views.column(name), False).to_numpy().astype(bool) for name in ("asked", "swapped"))
        self._swapped: Bools = marked & (not swap)
        kinds = {
            kind: pc.fill_null(pc.equal(self._views.column("kind"), kind), False).to_numpy().astype(bool)
            for kind in ("full", "cell", "segment", "occlude")
        }
        self._in_time = bool(kinds["segment"].any())
        self._is_full, self._is_crop = kinds["full"], kinds["cell"] | kinds["segment"]
        self._is_cell = self._is_crop | kinds["occlude"]
        self._in_orders = bool((self._is_crop & pc.is_valid(self._views.column("turn")).to_numpy()).any())

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def places(self) -> dict[int, int]:
        """The place of each doc by its id."""
        return {doc_id: place for place, doc_id in enumerate(self.ids.tolist())}

    @cached_property
    def _counts(self) -> Bools:
        """Whether a row counts: of each view that was asked in every order of the options, its worst order (``runs.scoring.worst_orders``)."""
        if not self._in_orders:
            return np.ones(len(self._is_cell), bool)
        score, n, cell = (self._numbers[name] for name in ("score", "n", "cell"))
        docs = np.repeat(np.arange(len(self)), np.diff(self.starts))
        places = np.stack([docs, self._swapped, np.nan_to_num(n), np.nan_to_num(cell)])
        order = np.lexsort((np.arange(len(docs)), np.where(np.isnan(score), -np.inf, score), *places[::-1]))
        out = np.zeros(len(docs), bool)
        out[order[np.r_[True, (np.diff(places[:, order]) != 0).any(axis=0)]]] = True
        return out

    # --- what each doc is -------------------------------------------------------------------------

    @cached_property
    def grids(self) -> list[int]:
        """The grids of which cells were shown, the coarsest first."""
        known = self._numbers["n"][self._is_cell & ~self._swapped]
        return [int(n) for n in np.unique(known)]

    @cached_property
    def _states(self) -> NDArray[np.str_]:
        """Of each row, what its answer is (``STATES``)."""
        right = self._numbers["right"]
        failed = pc.is_valid(self._views.column("failed")).to_numpy()
        kinds = [~self._asked, failed, np.isnan(right), right == 1]
        return np.asarray(np.select(kinds, [STATES[name] for name in ("not asked", "failed", "unscored", "right")], STATES["wrong"]))

    @cached_property
    def first(self) -> NDArray[np.str_]:
        """What the answer to each doc's first view is (``STATES``): the full image, where it is shown."""
        return np.asarray(self._states[self._firsts])

    @cached_property
    def first_unfinished(self) -> Bools:
        """Whether the answer to each doc's first view was cut by the token limit; it is scored as it is."""
        cut = pc.fill_null(self._views.column("unfinished"), False).to_numpy().astype(bool)
        return np.asarray(cut[self._firsts])

    @cached_property
    def _firsts(self) -> Ints:
        """The row of each doc's first view; where it was asked in every order of the options, that of the order that counts."""
        return np.flatnonzero(self._counts & self._is_full & ~self._swapped) if self._in_orders else np.asarray(self.starts[:-1])

    @cached_property
    def _own_cells(self) -> Bools:
        """Whether a row is a cell of the finest grid, cut from the doc's own image."""
        finest = self._numbers["n"] == self.grids[-1] if self.grids else np.zeros(len(self._is_cell), bool)
        return np.asarray(self._is_cell & finest & ~self._swapped & self._counts)

    @cached_property
    def right_cells(self) -> Ints:
        """How many cells of the finest grid are right."""
        return self._count(self._own_cells & (self._numbers["right"] == 1))

    @cached_property
    def failed(self) -> Bools:
        """Whether a call of the doc failed, or its scorer did."""
        found = pc.or_(pc.is_valid(self._views.column("failed")), pc.is_valid(self._views.column("error"))).to_numpy()
        return self._count(found) > 0

    @cached_property
    def excluded(self) -> Bools:
        """Whether the doc is left out of a number."""
        return np.asarray(pc.is_valid(self._docs.column("excluded")).to_numpy())

    @cached_property
    def _left_out(self) -> Bools:
        """Whether the finest grid leaves the doc out; a reason without a grid is of all grids."""
        finest = f"{self.grids[-1]}: " if self.grids else ""
        reasons = self._docs.column("excluded").to_pylist()
        return np.array([one is not None and (not re.match(r"\d+: ", one) or finest in f" {one}") for one in reasons], bool)

    @cached_property
    def by_image(self) -> NDArray[np.int8]:
        """The class of each doc by the answers to its own image alone (``runs.need.by_image``).

        ``UNKNOWN`` where the call on the full image failed, where the finest grid leaves the doc out, and where cells are hidden in place of shown.
        """
        if not self._classes or not self.grids:
            return np.full(len(self), UNKNOWN, np.int8)
        crops = self._own_cells & self._is_crop
        rows, columns = shape("segment" if self._in_time else "cell", self.grids[-1])
        scored = self._count(crops & ~np.isnan(self._numbers["right"])) == rows * columns
        used = (self.first != STATES["failed"]) & (self._count(crops) > 0) & ~self._left_out
        return by_image(np.where(used, self.first_right, np.nan), used & (self.right_cells > 0), scored)

    @cached_property
    def on_wrong_image(self) -> NDArray[np.float64]:
        """Whether each doc is right on the whole of another doc's image that was asked beside its own: 1, 0, or nan where it has no score there."""
        rows = np.flatnonzero(self._swapped & self._is_full & self._counts)
        out = np.full(len(self), np.nan)
        out[np.searchsorted(self.starts, rows, side="right") - 1] = self._numbers["right"][rows]
        return out

    @cached_property
    def first_right(self) -> NDArray[np.float64]:
        """Whether the first view of each doc is right: 1, 0, or nan."""
        return np.asarray(self._numbers["right"][self._firsts])

    def found(self, blind: NDArray[np.float64] | None = None) -> Found:
        """Return what the answers say of each doc, for a run that asked all docs. Docs whose call on the full image failed have no class.

        Args:
            blind: shape (docs,), whether the doc is right in a blind run: 1, 0, or nan.
        """
        lost = self.first == STATES["failed"] if self._classes and self.grids else np.ones(len(self), bool)
        blind = np.full(len(self), np.nan) if blind is None else blind
        wrong, blind = (np.where(lost, np.nan, right) for right in (self.on_wrong_image, blind))
        text, alike, sources = without_image(wrong, blind)
        every = np.ones(len(self), bool)
        return Found(self.by_image, text, ~(np.isnan(wrong) & np.isnan(blind)), alike, every, every, ~every, sources)

    @cached_property
    def clusters(self) -> Ints | None:
        """Cluster numbers of the docs; None where no doc has a cluster. A doc without one is a cluster of its own."""
        column = self._docs.column("cluster")
        if column.null_count == len(column):
            return None
        return cluster_numbers([f"doc {place}" if one is None else repr(one) for place, one in enumerate(column.to_pylist())])

    def _count(self, rows: Bools) -> Ints:
        """Return how many rows of each doc are marked."""
        total = np.r_[0, np.cumsum(rows)]
        return np.asarray(total[self.starts[1:]] - total[self.starts[:-1]])

    # --- what each doc says -----------------------------------------------------------------------

    @cached_property
    def categories(self) -> tuple[list[str], list[int]]:
        """The names of the categories, sorted, and the number of each doc's category; -1 where it has none."""
        column = pc.dictionary_encode(self._docs.column("category")).combine_chunks()
        shown = ["" if one is None else line(one, TITLE) for one in column.dictionary.to_pylist()]
        names = sorted(set(shown))  # two categories whose names look the same on the page are one
        new = [names.index(one) for one in shown]
        return names, [-1 if one is None else new[one] for one in column.indices.to_pylist()]

    def matches(self, words: str) -> Bools:
        """Return which docs have a text in their question, gold, category or answer to the first view, upper and lower case alike."""
        answers = self._views.column("answer").take(pa.array(self.starts[:-1]))
        found = np.zeros(len(self), bool)
        for column in (self._docs.column("question"), self._docs.column("gold"), self._docs.column("category"), answers):
            found |= pc.fill_null(pc.match_substring(column, words, ignore_case=True), False).to_numpy().astype(bool)
        return found

    def rows(self, places: Sequence[int]) -> list[dict[str, str]]:
        """Return what the list shows of some docs: ``question``, ``gold``, and ``answer`` to the first view."""
        docs = self._docs.select(["question", "gold"]).take(pa.array(places, pa.int64()))
        answers = self._views.column("answer").take(pa.array(self.starts[:-1][np.asarray(places, np.intp)])).to_pylist()
        texts = zip(docs.column("question").to_pylist(), docs.column("gold").to_pylist(), answers, strict=True)
        return [{name: line(one or "", TITLE) for name, one in zip(("question", "gold", "answer"), three, strict=True)} for three in texts]

    def doc(self, place: int) -> dict[str, Any]:
        """Return what is said of a doc, whoever answered: texts, options, and the size of the image that its views show."""
        found = self._docs.slice(place, 1).to_pylist()[0]
        options = [_text(one) for one in (found["options"] or [])[:MOST_OPTIONS]]
        seen = self.seen(place)
        return {
            "id": found["doc_id"],
            "seen": None if seen is None else seen.doc_id,
            "size": None if seen is None or seen.size is None else list(seen.size),
            "options": options,
            **{name: _text(found[name]) for name in ("question", "gold", "category", "cluster")},
        }

    def seen(self, place: int) -> Seen | None:
        """Return which image the views of a doc show: its own, or in a ``_swap`` task that of another doc; None where no other doc's image fits."""
        about = self._docs.slice(place, 1).to_pylist()[0]
        if not self._swap:
            return _seen(about)
        if about["wrong_from"] is None:
            return None
        other = self.places.get(about["wrong_from"])
        return Seen(about["wrong_from"], None, None) if other is None else _seen(self._docs.slice(other, 1).to_pylist()[0])

    def answers(self, place: int) -> dict[str, Any]:
        """Return what was answered on each view of a doc.

        Returns:
            ``views``: the views that the task is of, in order; ``seen``: the doc whose image they show, or None; ``wrong``: those that were asked on
            another doc's image beside them; ``wrong_from``: that doc's id; ``excluded``: why the doc is left out. Of a view: ``name``, ``state``
            (``STATES``), ``unfinished`` (whether the token limit cut the answer), ``answer``, ``score``, ``why`` (of a failure), and of a cell ``n``,
            ``row``, ``col`` and ``box`` (left, top, width, height in percent of the image). Where views are asked in every order of the
            options, ``counts``: whether it is the order that counts.
        """
        start, stop = self.starts[place], self.starts[place + 1]
        found, states = self._views.slice(start, stop - start).to_pylist(), self._states[start:stop]
        about, seen = self._docs.slice(place, 1).to_pylist()[0], self.seen(place)
        size = (seen and seen.size) or (about["width"] or 1, about["height"] or 1)
        other = f" of doc {about['wrong_from']}" if self._swap and about["wrong_from"] is not None else ""
        words = OF_CLIPS if self._in_time else OF_IMAGES
        made = [_view(one, state, size, words, other) for one, state in zip(found, states.tolist(), strict=True)]
        beside = self._swapped[start:stop].tolist()
        if self._in_orders:
            made = [{**view, "counts": counts} for view, counts in zip(made, self._counts[start:stop].tolist(), strict=True)]
        own, wrong = ([view for view, apart in zip(made, beside, strict=True) if apart == wanted] for wanted in (False, True))
        source = None if self._swap else about["wrong_from"]
        return {"views": own, "seen": seen and seen.doc_id, "wrong": wrong, "wrong_from": source, "excluded": _text(about["excluded"])}


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


def _seen(about: Mapping[str, Any]) -> Seen:
    """Return the image of a doc from its columns."""
    size = (about["width"], about["height"]) if about["width"] and about["height"] else None
    return Seen(about["doc_id"], size, about["images"])


_NAMES = {character: name for name, character in STATES.items()}


def _view(found: Mapping[str, Any], state: str, size: tuple[int, int], words: Words, suffix: str) -> dict[str, Any]:
    """Return one view as the page shows it.

    Args:
        found: its columns.
        state: a character of ``STATES``.
        size: of the image in pixels.
        words: of the task (``Kind.words``).
        suffix: what its name ends in.
    """
    n, row, col = found["n"], found["row"], found["col"]
    out: dict[str, Any] = {
        "name": words.say(_name(found)) + suffix,
        "state": _NAMES[state],
        "unfinished": bool(found["unfinished"]),
        "answer": _text(found["answer"]),
        "score": _finite(found["score"]),
    }
    out["why"] = _text(found["failed"] or found["error"])
    if found["cell"] is not None:
        left, top, right, bottom = cell_box(size, n, row, col)
        percent = (100 * left / size[0], 100 * top / size[1], 100 * (right - left) / size[0], 100 * (bottom - top) / size[1])
        if found["kind"] == "segment":  # drawn as a part of the clip's length
            percent = (100 * col / n, 0.0, 100 / n, 100.0)
        out |= {"n": n, "row": row, "col": col, "place": _place(found), "box": [round(one, 4) for one in percent]}
    return out


def _place(found: Mapping[str, Any]) -> str:
    """Return where a cell is, in words; or which segment it is."""
    return f"segment {found['cell']}" if found["kind"] == "segment" else f"row {found['row'] + 1}, column {found['col'] + 1}"


def _name(found: Mapping[str, Any]) -> str:
    """Return the name of a view on the page, such as ``3×3, row 2, column 1``. Views of one doc have different names."""
    moved = "" if found["turn"] is None else f", options moved by {found['turn']}"
    if found["cell"] is not None:
        hidden = "all but " if found["kind"] == "occlude" else ""
        words = OF_CLIPS if found["kind"] == "segment" else OF_IMAGES
        return f"{hidden}{words.size(found['n'])}, {_place(found)}{moved}"
    if found["region"] is not None:
        return f"box {found['region']}, {'relevant' if found['relevant'] else 'adversarial'}"
    if moved:
        return f"full image{moved}"
    if found["relevant"] is not None:
        return f"all {'relevant' if found['relevant'] else 'adversarial'} boxes hidden"
    if found["kind"] == "frames":
        return f"{found['n']} frame{'s' * (found['n'] != 1)}"
    if found["kind"] == "lowres":
        return KINDS["lowres"].words.grid(found["n"])
    return _NAMED.get(found["kind"], found["kind"] or "view")


_NAMED = {
    "full": "full image",
    "blind": "no image",
    "blank": "blank image",
    "frame": "middle frame",
    "tshuffle": "segments shuffled",
    "treverse": "clip reversed",
}
"""Names of views that are not of a cell."""


def _text(value: Any) -> str | None:
    return None if value is None else cut(block(value), LONGEST)


def _finite(score: float | None) -> float | None:
    return score if score is not None and np.isfinite(score) else None


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column as floats; nan where it is null."""
    return np.asarray(pc.fill_null(column.cast(pa.float64()), float("nan")).to_numpy(), float)


def digits(classes: NDArray[np.int8]) -> str:
    """Return classes as a text with one character per doc: the place in ``NEEDS``, or ``-`` where it is not known.

    >>> digits(np.array([0, 3, -1]))
    '03-'
    """
    return "".join(np.array([*map(str, range(len(NEEDS))), "-"])[classes].tolist())
