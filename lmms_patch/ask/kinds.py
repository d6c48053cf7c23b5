"""The kinds of views that a task can be asked in: a row of ``KINDS`` says all of a kind but its pixels (``ask.views``).

Names, types of records, schemas, tables, help and boards follow from the row.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal, TypeVar

from lmms_patch.ask.methods import Method, Own, others

MIN_GRID, MAX_GRID = 2, 9
MAX_FRAMES = 64
MAX_REDUCTION = 64

T = TypeVar("T")
Key = int | str
"""Names a set of a doc's views that compete to be its best: a grid size n (the cells of ``shape``), ``windows(n)``, one
of ``REGIONS``, or ``BESIDE``."""
REGIONS = ("relevant", "adversarial")
"""The two sets of a doc's own boxes."""
BESIDE = "beside"
"""The view that a doc has beside the full image (``Kind.beside``)."""
TURNS = "turns"
"""The key of why a doc is not asked in other orders of its options, among its sets that are excluded."""


def shape(view: str, n: int) -> tuple[int, int]:
    """Return how many rows and columns the grid of size n has: n × n cells of an image, 1 × n segments of a clip.

    Args:
        view: the kind of the views that are its cells, such as ``cell`` or ``segment``.
        n: the size of the grid.

    >>> shape("cell", 3), shape("segment", 4)
    ((3, 3), (1, 4))
    """
    return (1, n) if view == "segment" else (n, n)


def windows(n: int) -> Key:
    """Return the name of the set of the cells of grid n together with the windows between them (``Kind.shifted``)."""
    return f"windows{n}"


def end(key: Key) -> str:
    """Return the end of the names of a set's numbers.

    >>> f"rci{end(3)}", f"rci{end('relevant')}", f"drop{end(BESIDE)}"
    ('rci3', 'rci_relevant', 'drop')
    """
    return str(key) if isinstance(key, int) else "" if key == BESIDE else f"_{key}"


@dataclass(frozen=True)
class Words:
    """What people read of the parts of what a doc shows.

    Attributes:
        medium: what a doc shows whole: ``image``.
        part: what is asked alone: ``cell``.
        number: what the number after a kind says: ``grid size``.
        sized: how that number is written in tables, such as ``1/{n}``; empty where it counts parts.
        instead: the words to put in place of those of images, for sentences that are written for images.
    """

    medium: str = "image"
    part: str = "cell"
    number: str = "grid size"
    sized: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)

    @property
    def parts(self) -> str:
        """The plural of ``part``."""
        return f"{self.part}s"

    def say(self, sentence: str) -> str:
        """Replace the words for images in a sentence by those of this medium.

        Give the sentence without names: a benchmark called ``image`` would be replaced too.

        >>> OF_CLIPS.say("Cells of an image: it looks at one cell")
        'Segments of a clip: it watches one segment'
        """
        if not self.instead:
            return sentence
        # longest first, or "image" would be replaced within "an image"
        longest_first = sorted(self.instead, key=len, reverse=True)
        return re.sub(
            rf"\b(?:{'|'.join(longest_first)})\b", lambda match: self._put(match[0]), sentence, flags=re.IGNORECASE
        )

    def _put(self, found: str) -> str:
        new = self.instead[found.lower()]
        return new[0].upper() + new[1:] if found[0].isupper() else new

    def grid(self, n: int) -> str:
        """Return a grid's name for a sentence.

        >>> OF_IMAGES.grid(3), OF_CLIPS.grid(4), LOWRES.words.grid(4)
        ('grid 3', 'the cut into 4 segments', '1/4 of the size')
        """
        if self.sized:
            return f"{self.size(n)} of the size"
        return f"the cut into {n} {self.parts}" if self.instead else f"grid {n}"

    def each(self, n: int) -> str:
        """Return the cells of a grid for a sentence.

        >>> OF_IMAGES.each(3), OF_CLIPS.each(4)
        ('the cells of grid 3', 'the 4 segments')
        """
        return f"the {n} {self.parts}" if self.instead else f"the {self.parts} of grid {n}"

    def size(self, n: int | str, times: str = "×") -> str:
        """Return a grid's size for tables.

        >>> OF_IMAGES.size(3), OF_CLIPS.size(4), LOWRES.words.size(4)
        ('3×3', '4 segments', '1/4')
        """
        if self.sized:
            return self.sized.format(n=n)
        return f"{n} {self.part if int(n) == 1 else self.parts}" if self.instead else f"{n}{times}{n}"


OF_IMAGES = Words()
OF_CLIPS = Words(
    "clip",
    "segment",
    "number of segments",
    instead={
        "an image": "a clip",
        "image": "clip",
        "images": "clips",
        "cell": "segment",
        "cells": "segments",
        "looks at": "watches",
        "looks": "watches",
        "look": "watch",
        "looking": "watching",
        "area": "length",
        "at this grid": "in so many segments",
    },
)


_OF_FRAMES = dataclasses.replace(OF_CLIPS, part="frame", number="number of frames")
_OF_DETAIL = Words(number="reduction", sized="1/{n}")


def by_medium(items: Iterable[T], words_of: Callable[[T], Words]) -> list[tuple[Words, list[T]]]:
    """Return items by the medium that they are of, in the order in which media come: those of images and of clips have other words."""
    out: dict[str, tuple[Words, list[T]]] = {}
    for one in items:
        words = words_of(one)
        out.setdefault(words.medium, (words, []))[1].append(one)
    return list(out.values())


@dataclass(frozen=True)
class Kind:
    """One row of the grammar.

    Attributes:
        name: the suffix, as in ``gqa_<name>3``.
        summary: what it shows, in a few words (for ``lmms-patch tasks`` and the documentation).
        view: the kind of the views other than the full image: one per cell, or one per doc.
        grid: whether a number (a grid size) follows the suffix: it must, it may (else ``default_grids``), or it cannot.
        default_grids: the grids of a name without a number.
        full: whether the full image is asked too (view 0).
        per_cell: whether there is one view per cell of the grid (``shape``) rather than one.
        index: the name under which 1 − MPP/FIP is reported, if it is.
        folds: whether the number after the suffix is a number of folds, not of cells.
        suffix: whether a task can be asked so by its name; else the kind is that of tasks of our own (docs/magic.md).
        regions: whether there is one view per box of the doc (docs/regions.md).
        hides: whether the doc's own boxes are hidden instead, all of a set at once.
        swapped: whether the doc's question is asked on another doc's image.
        needs_video: whether it cuts a clip in time, so that the base must show video.
        turns: whether each view is asked once in each cyclic order of the doc's options.
        beside: what one more view shows beside the full image, as tables call it: ``without colour``. Its score is a number
            of its own (``<name>``), and so is how far the full image is above it (``drop``). Empty: there is none.
        curve: whether each number has one view, and a score of its own (``<name><n>``): together they make a curve.
        captions: whether the model first describes the image, and the view beside the full image has the description
            in the image's place.
        shifted: whether windows of a cell's size that lie half a cell beside the cells are asked after them.
        exits: whether a doc's cells are asked only until one is right (``Options.exit``) where nobody says otherwise.
        sizes: the least and the largest number after the suffix.
        words: what people read of its parts.
        heading: what stands over the kind's results on a board.
        adds: a line after each prompt; "" where the prompt is the base's own.
        shows: what a doc's first view shows, as a label: ``Score, grey image``.
        where: the same in a sentence: "A is better on grey images".
        home: our package that has its ``method``.
        brought: the method of another package that has the kind; None for a kind of ours.
        own: the numbers of ``brought``.
    """

    name: str
    summary: str
    _: dataclasses.KW_ONLY
    view: str
    grid: Literal["required", "optional", "none"] = "none"
    default_grids: tuple[int, ...] = ()
    full: bool = False
    per_cell: bool = False
    index: str | None = None
    folds: bool = False
    suffix: bool = True
    regions: bool = False
    hides: bool = False
    swapped: bool = False
    needs_video: bool = False
    turns: bool = False
    beside: str = ""
    curve: bool = False
    captions: bool = False
    shifted: bool = False
    exits: bool = False
    sizes: tuple[int, int] = (MIN_GRID, MAX_GRID)
    words: Words = OF_IMAGES
    heading: str = "By benchmark"
    adds: str = ""
    shows: str = "full image"
    where: str = "on the full image"
    home: str = "rci"
    brought: Method | None = None
    own: tuple[Own, ...] = ()

    def __hash__(self) -> int:
        """Return the hash of the name, by which a kind is known: its words hold a mapping, which has none."""
        return hash(self.name)

    @property
    def method(self) -> Method:
        """The method by which results of this kind are computed and judged."""
        # loaded here, since a gate on runs without MAGIC needs none of its word lists
        return self.brought or import_module(f"lmms_patch.{self.home}.method").METHOD

    @property
    def keeps_best(self) -> bool:
        """Whether a doc keeps its best cell or box; ``occlude`` keeps the worst, other kinds have none."""
        return self.has_index or self.swapped

    @property
    def has_index(self) -> bool:
        """Whether an index is made of the best cells or boxes."""
        return self.prefix is not None

    @property
    def prefix(self) -> str | None:
        """The beginning of the names of indices; None without an index."""
        return "rci" if self.regions else self.index

    @property
    def own_boxes(self) -> bool:
        """Whether docs must carry boxes."""
        return self.regions or self.hides

    @property
    def way(self) -> str:
        """The name that results share which may stand in one table: ``index`` for RCI and PCRI over cells, else the kind's own."""
        return "index" if self.index in ("rci", "pcri") else self.name

    @property
    def may_leave_out(self) -> bool:
        """Whether a run may leave cells out (``Options.exit``, ``Options.quick``): each cell must be one request."""
        return self.index is not None and not self.shifted

    @property
    def asks_again(self) -> bool:
        """Whether some docs are asked again with their options moved, to tell knowledge from luck (``stats.composition``)."""
        return self.index is not None and not self.exits

    @property
    def example(self) -> int:
        """A number to show after the suffix."""
        return (self.default_grids or ((4,) if self.needs_video else (3,)))[-1]

    @property
    def written(self) -> str:
        """The suffix as people write it, with a number where it stands for cells or is required: ``rci3``, ``blind``."""
        numbered = self.grid == "required" or (self.per_cell and self.grid != "none")
        return f"{self.name}{self.example if numbered else ''}"

    def shape(self, n: int) -> tuple[int, int]:
        """Return how many rows and columns a grid of size n has for this kind of view."""
        return shape(self.view, n)

    def cells(self, n: int) -> int:
        """Return how many cells its grid of size n has."""
        rows, columns = self.shape(n)
        return rows * columns

    def sets(self, grids: Iterable[int]) -> tuple[Key, ...]:
        """Return the sets of views of which a doc keeps one: the cells of each grid, or its relevant and its adversarial boxes."""
        return REGIONS if self.regions else tuple(grids) if self.per_cell else ()

    def points(self, grids: Iterable[int]) -> tuple[Key, ...]:
        """Return what has a score of its own beside the first view: a number of a curve, a set of boxes that is hidden, or the view beside."""
        return REGIONS if self.hides else (BESIDE,) if self.beside else tuple(grids) if self.curve else ()

    def called(self, key: Key) -> str:
        """Return what tables call a set of views, or a point."""
        return self.words.size(key) if isinstance(key, int) else self.beside if key == BESIDE else key

    @property
    def has_points(self) -> bool:
        """Whether ``points`` may be more than none."""
        return bool(self.hides or self.beside or self.curve)

    @property
    def needs_image(self) -> bool:
        """Whether a base must show images or clips to be asked so."""
        return self.view != "blind"


RCI = Kind(
    "rci",
    "full image and each cell: RCI, a property of the benchmark",
    grid="optional",
    full=True,
    view="cell",
    per_cell=True,
    default_grids=(2, 3),
    index="rci",
)
PCRI = dataclasses.replace(
    RCI, name="pcri", summary="the same numbers as rci, read as a property of the model", index="pcri"
)
TST = Kind(
    "tst",
    "text-only cross-validation (--model tst_rf or tst_lora)",
    grid="optional",
    view="blind",
    default_grids=(5,),
    folds=True,
    heading="Answerable without looking: text-only cross-validation",
    shows="text only",
    where="from the text alone",
    home="tst",
)
LOWRES = Kind(
    "lowres",
    "the image at 1/k of its size, shown at its size: alone, the curve of 1/2, 1/4 and 1/8",
    grid="optional",
    full=True,
    view="lowres",
    default_grids=(2, 4, 8),
    curve=True,
    sizes=(2, MAX_REDUCTION),
    words=_OF_DETAIL,
    heading="Less detail",
)
TRCI = Kind(
    "trci",
    "full clip and each segment of it: RCI in time",
    grid="optional",
    full=True,
    view="segment",
    per_cell=True,
    default_grids=(4,),
    index="trci",
    needs_video=True,
    words=OF_CLIPS,
    heading="In time: the full clip and its segments",
    shows="full clip",
    where="on the full clip",
)
_EVERY_GRID = tuple(range(MIN_GRID, MAX_GRID + 1))
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        RCI,
        PCRI,
        dataclasses.replace(
            RCI,
            name="rcicurve",
            summary="RCI at every grid from 2 to 9: from which size on a cell is not enough",
            grid="none",
            default_grids=_EVERY_GRID,
            exits=True,
        ),
        TST,
        Kind(
            "blind",
            "no image at all",
            view="blind",
            heading="No image at all",
            shows="no image",
            where="without the image",
        ),
        Kind(
            "blindguess",
            "no image at all, and the prompt says so and asks for a guess",
            view="blind",
            adds="There is no image. If you do not know the answer, guess.",
            heading="No image at all, told to guess",
            shows="no image, told to guess",
            where="without the image, told to guess",
        ),
        Kind(
            "caption",
            "full image, and the model's own description in its place: what of the image survives in words",
            full=True,
            view="caption",
            beside="its caption",
            captions=True,
            heading="A caption in place of the image",
        ),
        Kind(
            "blank",
            "a uniform grey image of the same size",
            view="blank",
            heading="A grey image",
            shows="grey image",
            where="on grey images",
        ),
        Kind(
            "swap",
            "another doc's image: what is answered without the right picture",
            grid="optional",
            view="swap",
            per_cell=True,
            swapped=True,
            heading="Another doc's image",
            shows="another doc’s image",
            where="on another doc's image",
        ),
        Kind(
            "shuffle",
            "cells permuted: local cues kept, layout destroyed",
            grid="required",
            view="shuffle",
            heading="Cells permuted",
            shows="cells shuffled",
            where="on shuffled cells",
        ),
        Kind(
            "occlude",
            "full image, and one cell greyed at a time",
            grid="required",
            full=True,
            view="occlude",
            per_cell=True,
            heading="One cell greyed",
        ),
        LOWRES,
        Kind(
            "rotate",
            "full image, once in each order of the options: what is right in all of them",
            full=True,
            view="full",
            turns=True,
            heading="In every order of the options",
        ),
        dataclasses.replace(
            RCI,
            name="shift",
            summary="rci, and windows between the cells: how much that needs the whole image only fell on a line",
            default_grids=(3,),
            sizes=(MIN_GRID, 4),
            shifted=True,
            heading="Cells, and windows between them",
        ),
        Kind(
            "regions",
            "full image and each of the doc's own boxes: relevant against adversarial",
            full=True,
            view="region",
            regions=True,
            heading="The docs' own boxes",
        ),
        Kind(
            "hidden",
            "full image, and all relevant or all adversarial boxes of the doc greyed: is the evidence needed?",
            full=True,
            view="hidden",
            hides=True,
            heading="The docs' own boxes hidden",
        ),
        TRCI,
        Kind(
            "frame",
            "the middle frame of the clip alone",
            view="frame",
            needs_video=True,
            words=_OF_FRAMES,
            heading="The middle frame alone",
            shows="middle frame",
            where="on the middle frame",
        ),
        Kind(
            "frames",
            "so many uniform frames of the clip: alone, the curve of 1, 2, 4 and 8",
            grid="optional",
            view="frames",
            default_grids=(1, 2, 4, 8),
            needs_video=True,
            curve=True,
            sizes=(1, MAX_FRAMES),
            words=_OF_FRAMES,
            heading="Few frames of the clip",
            shows="few frames",
            where="on few frames",
        ),
        Kind(
            "tshuffle",
            "segments permuted: what a moment shows is kept, the order destroyed",
            grid="required",
            view="tshuffle",
            needs_video=True,
            words=OF_CLIPS,
            heading="Segments permuted",
            shows="segments shuffled",
            where="on shuffled segments",
        ),
        Kind(
            "treverse",
            "the frames of the clip in reverse order",
            view="treverse",
            needs_video=True,
            words=OF_CLIPS,
            heading="The clip in reverse",
            shows="clip reversed",
            where="on the reversed clip",
        ),
        Kind(
            "magic",
            "region focus, judged accuracy and self-correction",
            view="full",
            suffix=False,
            heading="Region focus, answers and self-correction (MAGIC)",
            home="magic",
        ),
    )
}
# after ours, so that no other package can take the place of a kind of ours
KINDS |= others(KINDS)

INDICES = tuple(dict.fromkeys(kind.index for kind in KINDS.values() if kind.index))
"""The names of indices: ``rci``, ``pcri`` and ``trci``."""
