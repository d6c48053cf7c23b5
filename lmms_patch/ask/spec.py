"""``"gqa_rci3"`` -> ``WrapSpec(base="gqa", kind="rci", grids=(3,))``. Pure: no harness, no image.

The grammar of wrapped names is one table, ``KINDS``; a new kind of view is a new row.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.json_schema import GenerateJsonSchema

from lmms_patch.errors import OptionError, UnknownNameError, must, read_as
from lmms_patch.stats.bounds import LARGEST

MIN_GRID, MAX_GRID = 2, 9
MAX_FRAMES = 64
MAX_REDUCTION = 64
MIN_FOLDS, MAX_FOLDS = 2, 50

T = TypeVar("T")
Key = int | str
"""Names a set of a doc's views that compete to be its best: a grid size n (the cells of ``shape``), ``windows(n)``, or one of ``REGIONS``."""
REGIONS = ("relevant", "adversarial")
"""The two sets of a doc's own boxes."""


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
        longest_first = sorted(self.instead, key=len, reverse=True)
        return re.sub(
            rf"\b(?:{'|'.join(longest_first)})\b", lambda match: self._put(match[0]), sentence, flags=re.IGNORECASE
        )

    def _put(self, found: str) -> str:
        new = self.instead[found.lower()]
        return new[0].upper() + new[1:] if found[0].isupper() else new

    def grid(self, n: int) -> str:
        """Return a grid's name for a sentence.

        >>> OF_IMAGES.grid(3), OF_CLIPS.grid(4), KINDS["lowres"].words.grid(4)
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
        """Return a grid's size as tables have it.

        >>> OF_IMAGES.size(3), OF_CLIPS.size(4), KINDS["lowres"].words.size(4)
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
        curve: whether each number has one view, and a score of its own (``<name><n>``): together they make a curve.
        shifted: whether windows of a cell's size that lie half a cell beside the cells are asked after them.
        exits: whether a doc's cells are asked only until one is right (``Options.exit``) where nobody says otherwise.
        sizes: the least and the largest number after the suffix.
        words: what people read of its parts.
        heading: what stands over the kind's results on a board.
        adds: a line after each prompt; "" where the prompt is the base's own.
        shows: what a doc's first view shows, as a label: ``Score, grey image``.
        where: the same in a sentence: "A is better on grey images".
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
    curve: bool = False
    shifted: bool = False
    exits: bool = False
    sizes: tuple[int, int] = (MIN_GRID, MAX_GRID)
    words: Words = OF_IMAGES
    heading: str = "By benchmark"
    adds: str = ""
    shows: str = "full image"
    where: str = "on the full image"

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
        """What the names of its indices start with; None where it has none."""
        return "rci" if self.regions else self.index

    @property
    def own_boxes(self) -> bool:
        """Whether docs must carry boxes of their own."""
        return self.regions or self.hides

    @property
    def every_order(self) -> bool:
        """Whether the index is of what is right in every order of the options: a view counts as it was answered in its worst order."""
        return self.turns and self.has_index

    @property
    def way(self) -> str:
        """The name that results share which may stand in one table: ``index`` for RCI and PCRI over cells, else the kind's own."""
        return "index" if self.index in ("rci", "pcri") else self.name

    @property
    def may_leave_out(self) -> bool:
        """Whether a run may leave cells out (``Options.exit``, ``Options.quick``): each cell must be one request."""
        return self.index is not None and not self.turns and not self.shifted

    @property
    def takes_null(self) -> bool:
        """Whether some docs are also asked on another doc's image, to measure what answers earn without the right picture."""
        return self.has_index

    @property
    def example(self) -> int:
        """A number to show after the suffix."""
        return (self.default_grids or ((4,) if self.needs_video else (3,)))[-1]

    @property
    def written(self) -> str:
        """The suffix as people write it, with a number where it stands for cells or is required: ``rci3``, ``blind``."""
        return (
            f"{self.name}{self.example if self.grid == 'required' or (self.per_cell and self.grid != 'none') else ''}"
        )

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
        """Return what has a score of its own beside the first view: each number of a curve, or each set of boxes that is hidden."""
        return REGIONS if self.hides else tuple(grids) if self.curve else ()

    @property
    def needs_image(self) -> bool:
        """Whether a base must show images or clips to be asked so."""
        return self.view != "blind"


_RCI = Kind(
    "rci",
    "full image and each cell: RCI, a property of the benchmark",
    grid="optional",
    full=True,
    view="cell",
    per_cell=True,
    default_grids=(2, 3),
    index="rci",
)
_EVERY_GRID = tuple(range(MIN_GRID, MAX_GRID + 1))
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        _RCI,
        dataclasses.replace(
            _RCI, name="pcri", summary="the same numbers as rci, read as a property of the model", index="pcri"
        ),
        dataclasses.replace(
            _RCI,
            name="rcicurve",
            summary="RCI at every grid from 2 to 9: from which size on a cell is not enough",
            grid="none",
            default_grids=_EVERY_GRID,
            exits=True,
        ),
        Kind(
            "tst",
            "text-only cross-validation (--model tst_rf or tst_lora)",
            grid="optional",
            view="blind",
            default_grids=(5,),
            folds=True,
            heading="Answerable without looking: text-only cross-validation",
            shows="text only",
            where="from the text alone",
        ),
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
        Kind(
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
        ),
        Kind(
            "rotate",
            "full image, once in each order of the options: what is right in all of them",
            full=True,
            view="full",
            turns=True,
            heading="In every order of the options",
        ),
        dataclasses.replace(
            _RCI,
            name="shift",
            summary="rci, and windows between the cells: how much that needs the whole image only fell on a line",
            grid="optional",
            default_grids=(3,),
            sizes=(MIN_GRID, 4),
            shifted=True,
            heading="Cells, and windows between them",
        ),
        dataclasses.replace(
            _RCI,
            name="crci",
            summary="RCI of what is right in every order of the options: full image and each cell, once in each order",
            index="crci",
            turns=True,
            heading="RCI in every order of the options",
            shows="full image, every order",
            where="on the full image, in every order of the options",
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
        Kind(
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
        ),
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
        ),
    )
}


def of_index(name: str) -> Kind:
    """Return the kind whose index a number belongs to.

    >>> of_index("trci4_adj").name, of_index("pcri3").name, of_index("mpp3").name
    ('trci', 'pcri', 'rci')
    """
    return next((kind for kind in KINDS.values() if kind.index and re.match(rf"{kind.index}\d", name)), KINDS["rci"])


ANY_INDEX = "|".join(dict.fromkeys(kind.index for kind in KINDS.values() if kind.index))
"""The pattern of the name of an index: ``rci``, ``pcri``, ``crci`` or ``trci``."""


SUFFIXES = tuple(name for name, kind in KINDS.items() if kind.suffix)
"""The kinds that a name can end in."""

QUICK = "quick"
"""The last part of a name such as ``gqa_rci3_quick``: no more is asked than the interval needs (docs/quick.md)."""
_SUFFIX = re.compile(rf"^(?P<base>.+)_(?P<kind>{'|'.join(SUFFIXES)})(?P<n>\d*)(?P<quick>_{QUICK})?$")


_Text = Annotated[str, Field(min_length=1)]
Name = Annotated[_Text, must("a name")]
ASKING = ("exit", "quick", "precision", "budget", "target", "pilot", "reference")
"""The options that decide how much is asked; none of them changes a view."""
UNWRITTEN = ("null", "probe", *ASKING)
"""The options that a results file does not hold: they change no view, and the harness's response cache goes by what it holds."""
Fields = Annotated[_Text | Annotated[list[_Text], Field(min_length=1)], must("the name of a field, or a list of names")]
"""One field of a doc, or several that count together."""
Form = Literal["mean", "percent", "sum", "f1", "precision", "recall", "mme", "macro"]
"""The names of ``stats.forms.FORMS``, which takes NumPy to import."""
Count = Annotated[int, Field(ge=0, le=LARGEST), must("a whole number of at least 0")]
_Number = Annotated[int | float, Field(ge=-LARGEST, le=LARGEST), WithJsonSchema({"type": "number"})]
Above0 = Annotated[
    _Number, Field(gt=0), must("a number above 0"), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})
]
_FORM_OF_EACH = f"a form for each metric ({', '.join(get_args(Form))}), such as {{acc: mean}}"


_Values = Annotated[list[str | int], Field(min_length=1)]
_MERGED = "a list of categories for each name, such as {animals: [cat, dog]}, no category twice"


def _no_category_twice(merged: dict[str, list[str | int]]) -> dict[str, list[str | int]]:
    """Check that no category is merged into two."""
    named = [str(one) for several in merged.values() for one in several]
    if len(set(named)) < len(named):
        raise ValueError(_MERGED)
    return merged


class Options(BaseModel):
    """What a task file, a base task's inline profile or a profile may set. Every default serves."""

    LATE: ClassVar[tuple[str, ...]] = (*UNWRITTEN, "frames", "timeline", "merged")
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    metric: Name | None = None
    """The primary metric, which the index is built on. Default: the only one, else the first."""
    score: Fields | None = None
    """The key of a native item that holds its scalar, or several of which an item has one.

    Default: the item itself if it is a number, else its ``score``, else the native aggregation of that one item.
    """
    scorer: Literal["cider_d"] | None = None
    """``cider_d``: the scalar of a caption item is its CIDEr-D, with the corpus's document frequencies."""
    aggregation: Annotated[dict[str, Form], Field(min_length=1), must(_FORM_OF_EACH)] | None = None
    """Metric -> form (``stats.forms.FORMS``), where a native aggregation is not a mean."""
    chance: (
        Annotated[_Number | Literal["majority"], must("a number on the metric's own scale, or 'majority'")] | None
    ) = None
    """A documented chance floor on the metric's own scale, or ``majority``: the share of the most frequent gold, at least 1/2 for yes/no.

    Default: asked of the native scorer.
    """
    scale: Above0 | None = None
    """The metric's full marks, on its own scale. Default: what the gold answers score."""
    delta: Above0 | None = None
    """The gate's margin, on the metric's own scale. Default: 1 % of the full marks."""
    signed: bool = False
    """The metric's scale goes below 0 (-1..1), also where no answer shows it: it has no natural zero, and so no index."""
    type: Literal["mcq", "yesno", "vqa", "caption"] | None = None
    """The papers' task type, for reports."""
    format: Literal["mc", "yesno", "number", "open", "caption"] | None = None
    """The answer format. Default: recognised from golds and prompts."""
    gold: Name | None = None
    """The doc field that holds the gold, where the base's target is not what its scorer compares with."""
    cluster: Fields | None = None
    """Doc field, or fields, of docs that are resampled together."""
    group: Fields | None = None
    """Doc field, or fields, that name the image: donors never share it."""
    category: Fields | None = None
    """Doc field by which results are split."""
    stratum: Fields | None = None
    """Doc field that says which answers are possible (a question type)."""
    choices: Name | None = None
    """Doc field with the list of option texts."""
    images: Literal["all", "first"] = "all"
    """Cut every image of a doc, or only the first (the others stay whole)."""
    min_side: Annotated[int, Field(ge=1, le=10**6), must("a whole number of at least 1, and at most a million")] = 1
    """A cell side below this many pixels makes a doc unusable for that grid."""
    min_cell: Annotated[int, Field(ge=0, le=10**6), must("a whole number of at least 0, and at most a million")] = 0
    """Upsample cells whose shorter side is below this many pixels (bicubic). 0: never."""
    allow_judge: bool = False
    """Run tasks whose scorer calls a judge model, once per view."""
    seconds: Above0 = 60.0
    """Time budget of the bootstrap where the native aggregation must be called for each draw."""
    seed: Count = 0
    """Seed of the permutations of ``shuffle``, of the donors, of the wrong images and of the bootstrap."""
    null: Count = 300
    """How many docs are also asked on another doc's image (whole clusters; all docs where there are no more). 0: none."""
    probe: Count = 16
    """How many requests are asked again alone, where the adapter answers in batches: a batch may garble them. 0: none."""
    grouping: Literal["auto", "source", "none", "text", "joined"] = "auto"
    """What ``tst`` keeps in one fold: docs of one ``group`` (source), of one text, of either (joined), or nothing (none).

    auto: source where a usable one is known; joined where docs of one text have different golds.
    """
    fold_seed: Count = 0
    """The first fold seed of ``tst``: its answers go to the native scorer."""
    fold_seeds: Annotated[int, Field(ge=1, le=1000), must("a whole number of at least 1, and at most 1000")] | None = (
        None
    )
    """Number of fold seeds, over which scores are averaged. Default: 5, or 3 from 5,000 docs on."""
    features: Name | None = None
    """``module.function`` that adds features to a doc for ``tst_rf``: row -> {name: number or text}."""
    key: Name | None = None
    """Doc field with an id that stays the same when docs are added or reordered. Default: a hash of the doc."""
    exit: bool = False
    """Ask a doc's cells, the most promising first, only until one earns the marks of its gold. MPP and the index stay what they are.

    ``rcicurve`` does so unless ``exit: false`` is written down. The docs of ``pilot`` are asked whole: they order the cells, and say where in the
    image the score comes from.
    """
    quick: bool = False
    """Ask only as many docs as ``precision`` needs, with ``exit``. A name that ends in ``_quick`` sets it."""
    precision: Annotated[Above0, Field(lt=1), must("a number above 0 and below 1")] = 0.03
    """Of ``quick``: the half-width of the 95 % interval of RCI that is enough."""
    budget: Annotated[int, Field(ge=1, le=LARGEST), must("a whole number of at least 1")] | None = None
    """Of ``quick``: the most calls, those of ``null`` among them. Default: as many as ``precision`` needs."""
    target: Literal["benchmark", "population"] = "benchmark"
    """Of ``quick``: what the interval is of: what a full pass over this benchmark would print, or the docs that the benchmark is a sample of."""
    pilot: Count | None = None
    """Of ``exit`` and ``quick``: how many docs are asked whole. Default: 300, or a tenth of the docs, at least 100."""
    reference: Literal["auto", "none"] = "auto"
    """Of ``exit`` and ``quick``: ``auto`` predicts answers from earlier runs on the same docs, in the folders of ``LMMS_PATCH_REFERENCES``."""
    boxes: Name = "boxes"
    """Of ``regions`` and ``hidden``: the doc field with its boxes (docs/regions.md)."""
    relevant: Name = "relevant"
    """Of ``regions`` and ``hidden``: the doc field that says which of the boxes are relevant; ``all``: each of them is."""
    box_form: Literal["ltrb", "ltwh"] = "ltrb"
    """Of ``regions`` and ``hidden``: how four numbers name a box: left, top, right, bottom; or left, top, width, height (COCO)."""
    box_image: Literal["first", "last"] = "first"
    """Of ``regions`` and ``hidden``: which of the images shown the boxes lie on."""
    frames: Annotated[int, Field(ge=1, le=10**4), must("a whole number of at least 1, and at most 10000")] | None = None
    """Of videos: of how many uniform frames a clip is made. Default: as many as the model takes, as far as its adapter says so, else 32."""
    timeline: Annotated[list[str | int], Field(min_length=1), must("a list of values of the category")] | None = None
    """Of ``trci``: the categories whose questions point into the clip's own time, beside those whose words do; they are left out of the index."""
    merged: (
        Annotated[dict[str, _Values], Field(min_length=1), AfterValidator(_no_category_twice), must(_MERGED)] | None
    ) = None
    """Of an ``aggregation`` that is ``macro``: categories that count as one, by a name of yours: name -> list of categories. Their means are averaged
    first."""

    @model_validator(mode="before")
    @classmethod
    def _with_null(cls, data: Any) -> Any:
        """Undo that YAML reads the bare key null as None."""
        return (
            {"null" if key is None else key: value for key, value in data.items()}
            if isinstance(data, Mapping)
            else data
        )

    @classmethod
    def from_mapping(cls, mapping: Mapping[Any, Any], where: str) -> Options:
        """Return the options of a task file.

        Args:
            mapping: what it sets.
            where: the file, as users know it.

        Raises:
            OptionError: unknown options, or values that are not allowed.
        """
        return read_as(cls, mapping, where)

    @classmethod
    def of_file(cls, mapping: Any, where: str) -> Options:
        """Return the options that a results file holds. Options that only another version knows are left out.

        Raises:
            OptionError: values that are not allowed.
        """
        known = (
            {name: value for name, value in mapping.items() if name in cls.model_fields}
            if isinstance(mapping, Mapping)
            else mapping
        )
        return read_as(cls, known, where)

    @classmethod
    def names(cls) -> list[str]:
        """Return the names that a file may set."""
        return list(cls.model_fields)

    @property
    def given(self) -> frozenset[str]:
        """The options that were written down, also where they equal the default."""
        return frozenset(self.model_fields_set)

    def over(self, base: Options) -> Options:
        """Return these options where they were given, else those of ``base``."""
        return base.model_copy(update={key: getattr(self, key) for key in self.given})

    def filled_by(self, profile: Options) -> Options:
        """Return these options where they were given, else those of a profile, which do not count as given."""
        return Options.model_construct(set(self.given), **self.over(profile).model_dump())

    def described(self) -> dict[str, Any]:
        """Return all options, in plain JSON types."""
        return self.model_dump()

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the options."""
        return cls.model_json_schema(schema_generator=_Untitled)


class _Untitled(GenerateJsonSchema):
    """Makes JSON schemas without titles, which would repeat the names of the options."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@dataclass(frozen=True)
class WrapSpec:
    """What to make of a base task.

    Attributes:
        base: a task, group or tag that the harness knows.
        kind: a key of ``KINDS``.
        grids: grid sizes, numbers of segments or frames, or reductions, ascending, each within ``Kind.sizes``; empty
        for kinds without a number.
        folds: number of folds of ``tst``, 2..50; 0 for other kinds.
        options: the options of the wrapped task.
        name: the name of the wrapped task; by default it is made of the parts.
    """

    base: str
    kind: str
    grids: tuple[int, ...] = ()
    options: Options = field(default_factory=Options)
    name: str = ""
    folds: int = 0

    def __post_init__(self) -> None:
        if KINDS[self.kind].folds and not self.folds:
            object.__setattr__(self, "folds", KINDS[self.kind].default_grids[0])
        if not self.name:
            object.__setattr__(self, "name", f"{self.base}_{self.suffix}")

    @property
    def suffix(self) -> str:
        """The part of the name after the base: ``rci3``, ``rci``, ``blind``."""
        kind = KINDS[self.kind]
        if kind.folds:
            return self.kind if self.name == f"{self.base}_{self.kind}" else f"{self.kind}{self.folds}"
        bare = not self.grids or self.grids == kind.default_grids
        if (
            len(kind.default_grids) == 1
        ):  # "trci" and "trci4" ask the same: the suffix is as the name has it, so that members of a group take it
            bare = self.name.removesuffix(f"_{QUICK}") == f"{self.base}_{self.kind}"
        suffix = self.kind if bare else self.kind + "_".join(str(n) for n in self.grids)
        return f"{suffix}_{QUICK}" if self.options.quick else suffix

    @property
    def sets(self) -> tuple[Key, ...]:
        """The sets of views of which a doc keeps one (``Kind.sets``)."""
        return KINDS[self.kind].sets(self.grids)

    @property
    def points(self) -> tuple[Key, ...]:
        """What has a score of its own beside the first view (``Kind.points``)."""
        return KINDS[self.kind].points(self.grids)

    @property
    def parts(self) -> tuple[Key, ...]:
        """What a doc can be left out of: sets of views, points of a curve, sets of hidden boxes, or the one grid of a shuffle."""
        return self.sets or self.points or self.grids

    @property
    def leaves_out(self) -> bool:
        """Whether the run may leave requests out: some cells (``exit``), or some cells and some docs (``quick``)."""
        return KINDS[self.kind].may_leave_out and (self.options.exit or self.options.quick)

    def of(self, base: str) -> WrapSpec:
        """Return the same wrapping of another base, for the members of a group.

        Members of a task file with a name of its own carry that name: its options may differ from
        those of the plain wrapped name, and two tasks of one name would overwrite each other.
        """
        own = self.name != f"{self.base}_{self.suffix}"
        return dataclasses.replace(self, base=base, name=f"{base}_{self.name if own else self.suffix}")

    def described(self) -> dict[str, Any]:
        """Return the spec in plain JSON types, with everything that changes a view."""
        folds = {"folds": self.folds} if self.folds else {}
        return {
            "base": self.base,
            "kind": self.kind,
            "grids": list(self.grids),
            **folds,
            "options": self.options.described(),
        }


def end(key: Key) -> str:
    """Return the end of the names of a set's numbers.

    >>> f"rci{end(3)}", f"rci{end('relevant')}"
    ('rci3', 'rci_relevant')
    """
    return str(key) if isinstance(key, int) else f"_{key}"


def check_grids(kind: str, grids: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Return ``grids`` if they fit ``kind``, its defaults if there are none.

    Raises:
        UnknownNameError: too few, too many, or out of ``Kind.sizes``; says what to type.
    """
    row = KINDS[kind]
    least, most = row.sizes
    if row.turns and grids and not row.per_cell:
        cells = next(one.name for one in KINDS.values() if one.every_order)
        told = f"takes no {row.words.number}; type '..._{kind}', or to ask its cells so too, '..._{cells}{max(grids[0], least)}'"
        raise UnknownNameError(f"{name}: '{kind}' asks the full image alone, so it {told}")
    if row.grid == "none" and grids:
        raise UnknownNameError(f"{name}: '{kind}' takes no {row.words.number}; type '..._{kind}'")
    if row.grid == "required" and not grids:
        raise UnknownNameError(
            f"{name}: '{kind}' needs a {row.words.number} {least} to {most}; type '..._{kind}{row.example}'"
        )
    for n in grids:
        if not least <= n <= most:
            raise UnknownNameError(
                f"{name}: {row.words.number} {n} is not possible; allowed: {least} to {most}; type '..._{kind}{row.example}'"
            )
    return tuple(sorted(set(grids))) or row.default_grids


def check_folds(kind: str, numbers: tuple[int, ...], name: str) -> int:
    """Return the number of folds.

    Raises:
        UnknownNameError: several, or out of 2..50; says what to type.
    """
    if len(numbers) > 1 or any(not MIN_FOLDS <= k <= MAX_FOLDS for k in numbers):
        raise UnknownNameError(
            f"{name}: {numbers[0]} folds are not possible; allowed: {MIN_FOLDS} to {MAX_FOLDS}; type '..._{kind}5'"
        )
    return numbers[0] if numbers else KINDS[kind].default_grids[0]


def parse(name: str) -> WrapSpec | None:
    """Read a wrapped name.

    Returns:
        The spec, or None where the name does not end in ``_<kind>`` or ``_<kind><n>``.

    Raises:
        UnknownNameError: it ends so, but with a grid size that is not possible.

    >>> spec = parse("gqa_rci3")
    >>> spec.base, spec.kind, spec.grids
    ('gqa', 'rci', (3,))
    >>> parse("gqa_lite") is None
    True
    >>> parse("gqa_rci3_quick").options.quick
    True
    """
    match = _SUFFIX.match(name)
    if match is None:
        return None
    digits = match["n"]
    row = KINDS[match["kind"]]
    if len(digits) > 1 and digits.startswith("0"):
        least, most = (MIN_FOLDS, MAX_FOLDS) if row.folds else row.sizes
        raise UnknownNameError(f"{name}: write the number without leading zeros, {least} to {most}")
    grids = (int(digits),) if digits else ()
    if row.folds and not match["quick"]:
        return WrapSpec(match["base"], match["kind"], name=name, folds=check_folds(match["kind"], grids, name))
    options = Options(quick=True) if match["quick"] else Options()
    check_exit(match["kind"], options, name)
    return WrapSpec(match["base"], match["kind"], check_grids(match["kind"], grids, name), options, name=name)


def check_exit(kind: str, options: Options, name: str) -> None:
    """Check that a kind can be asked in part.

    Raises:
        OptionError: ``exit`` or ``quick`` is set for a kind without an index over cells.
    """
    ways, asked = [one.name for one in KINDS.values() if one.may_leave_out], KINDS[kind]
    why = "asks each cell several times" if asked.every_order else "has no cells to leave out"
    if asked.shifted:
        why = "needs the answers to all windows"
    for way in (QUICK, "exit"):
        if getattr(options, way) and kind not in ways:
            raise OptionError(f"{name}: '{kind}' {why}, so it cannot be asked with '{way}'; allowed: {', '.join(ways)}")


def from_file(config: Mapping[str, Any]) -> WrapSpec:
    """Return the spec of an explicit task file (``class: !function lmms_patch.Wrap``).

    Args:
        config: the file's keys: ``task``, ``base``, ``kind``, ``grids`` (for ``tst``: ``folds``), and any of
            ``Options``.

    Raises:
        OptionError, UnknownNameError: a key that is missing, unknown, or out of range.
    """
    config = {k: v for k, v in config.items() if k != "class"}
    name = config.pop("task", None)
    where = f"task file {name!r}"
    base, kind = config.pop("base", None), config.pop("kind", "rci")
    if not isinstance(base, str) or not base:
        raise OptionError(f"{where}: 'base' is missing; add the task to wrap, such as 'base: gqa'")
    if not isinstance(kind, str) or kind not in SUFFIXES:
        raise OptionError(f"{where}: kind {kind!r} is not known; allowed: {', '.join(SUFFIXES)}")
    if KINDS[kind].folds:
        folds = config.pop("folds", KINDS[kind].default_grids[0])
        if not isinstance(folds, int) or isinstance(folds, bool):
            raise OptionError(f"{where}: folds must be a whole number, such as 'folds: 5', not {folds!r}")
        return WrapSpec(
            base,
            kind,
            (),
            Options.from_mapping(config, where),
            name=str(name),
            folds=check_folds(kind, (folds,), where),
        )
    grids = config.pop("grids", ())
    grids = tuple(grids or ()) if isinstance(grids, (list, tuple)) or grids is None else (grids,)
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in grids):
        raise OptionError(f"{where}: grids must be whole numbers, such as 'grids: [3]', not {list(grids)!r}")
    options = Options.from_mapping(config, where)
    check_exit(kind, options, where)
    return WrapSpec(base, kind, check_grids(kind, grids, where), options, name=str(name))
