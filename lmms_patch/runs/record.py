"""The record of a doc: the object ``patch`` of a line of a sample log, schema version 1 (docs/records.md).

A key that is left out where it says nothing has a default here. What a type cannot say of a record, ``at_odds`` checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta, Struct, field

from lmms_patch.ask.kinds import BESIDE, KINDS, MAX_GRID, MIN_GRID, REGIONS, Key, Kind, shape, windows
from lmms_patch.ask.spec import SUFFIXES
from lmms_patch.errors import OTHER_VERSION, RecordError, shown
from lmms_patch.runs.scoring import worst_orders
from lmms_patch.runs.typed import Digest, read_as
from lmms_patch.stats.bounds import MOST, Number, Parts, Share, Some, one_of

SCHEMA: Final = 1
VIEWS = {"full", "window", *(kind.view for kind in KINDS.values())} - {"swap"}
"""The kinds of views that a record can have; a swapped view is marked, and is named for what it shows."""
WrappedKind = Annotated[str, one_of(SUFFIXES)]
PIXELS = 10**6
"""Of a side of an image."""
OPTIONS = 26
"""Of a doc that is asked in every order of its options (``ask.orders.MOST``)."""
MOST_OPTIONS = 10**6
TURNS = "turns"
"""The key under ``Record.excluded`` for why a doc's options are not moved."""
DocId = Annotated[int, Meta(ge=0, le=10**15)]
SetName = Annotated[str, Meta(pattern="^([1-9]|[1-5][0-9]|6[0-4]|relevant|adversarial|beside|turns)$")]
FieldName = Annotated[str, Meta(pattern="^(cluster|group|category|merged|stratum|choices)$")]
Side = Annotated[int, Meta(ge=1, le=PIXELS)]
Corner = Annotated[int, Meta(ge=0, le=PIXELS)]
Sizes = list[Annotated[list[Side], Meta(min_length=2, max_length=2)]]
Scores = dict[str, Number | None]
Numbers = list[Number | None]


# without garbage collection: a view never refers to itself, and a
# log has too many for each collection to walk through
class View(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One view of the doc.

    Attributes:
        swapped: cut from another doc's image; absent where it is the doc's own
        n: grid size, number of segments or frames, or reduction; absent where there is none
        cell: row by row from 1; of a segment of a clip its number, from 1
        region: place of the box in the doc's list
        relevant: false: the box is adversarial, or the adversarial boxes are hidden
        turn: by how many places the options are moved; absent where they stand as the doc has them
        gold_at: place of the gold among the options that are shown, from 1; absent where the doc is asked in one order
        alone
        hidden: what part of its image is hidden, where all boxes of a set are
        boxes: [left, top, right, bottom] in pixels on each image, half-open; absent where the view cuts no image
        scores: metric -> scalar on the metric's own scale; null is unscored
        items: metric -> what the native process_results returned
        error: why there is no score; absent where it scored
        failed: what came in place of an answer: the call failed, and the view is unscored; absent where an answer came
        unfinished: the answer was cut by the token limit, as far as the adapter or an open thinking tag tells; it is
        scored as it is
        said: of wrong_image only: the answer, short; equal for equal answers
        caption: of a caption view: the description that stood in place of the image
        names: the place of the answer among the doc's options, from 1; 0: it is none of them (unread); absent where the
            doc has none, where options are moved
        misread: the answer has full marks, though read by itself it would not name the gold: wrong answers may be
            misread as often
    """

    RULES: ClassVar[dict[str, Any]] = {
        "dependentRequired": {
            "cell": ["n", "row", "col"],
            "region": ["relevant", "boxes"],
            "relevant": ["boxes"],
            "hidden": ["relevant"],
        },
    }

    kind: Annotated[str, one_of(VIEWS)]
    swapped: Annotated[bool, Meta(extra_json_schema={"const": True})] = False
    n: Parts | None = None
    cell: Annotated[int, Meta(ge=1, le=81)] | None = None
    row: Annotated[int, Meta(ge=0, le=8)] | None = None
    col: Annotated[int, Meta(ge=0, le=8)] | None = None
    region: Some | None = None
    relevant: bool | None = None
    turn: Annotated[int, Meta(ge=1, lt=OPTIONS)] | None = None
    gold_at: Annotated[int, Meta(ge=1, le=OPTIONS)] | None = None
    hidden: Share | None = None
    boxes: list[Annotated[list[Corner], Meta(min_length=4, max_length=4)]] | None = None
    scores: Scores
    items: dict[str, Any]
    error: str | None = None
    failed: str | None = None
    unfinished: Annotated[bool, Meta(extra_json_schema={"const": True})] = False
    said: str | None = None
    caption: str | None = None
    names: Annotated[int, Meta(ge=0, le=MOST_OPTIONS)] | None = None
    misread: Annotated[bool, Meta(extra_json_schema={"const": True})] = False


class Answer(Struct, frozen=True, gc=False):
    """How the doc is to be answered.

    Attributes:
        label: answer class
        options: how many
        gold: null: unknown
        gold_at: the place of the gold among the options, from 1; null: it is none of them
    """

    format: Literal["mc", "yesno", "number", "open", "caption", ""] = ""
    label: str = ""
    options: Annotated[int, Meta(ge=0, le=MOST_OPTIONS)] = 0
    gold: str | None = None
    gold_at: Annotated[int, Meta(ge=1, le=MOST_OPTIONS)] | None = None


NO_ANSWER = Answer()
"""Of a doc of which it is not known how it is to be answered."""


class Baseline(Struct, omit_defaults=True, gc=False):
    """An uninformed answer or the gold, scored.

    Attributes:
        scores: metric -> scalar on the metric's own scale; null is unscored
        items: those that are more than their scalar
    """

    answer: str
    roles: Annotated[list[Literal["gold", "option", "constant", "stratum", "other"]], Meta(min_length=1)]
    scores: Scores
    items: dict[str, Any] = {}


class Exchanged(Struct, gc=False):
    """This doc's answers under the golds of docs that are asked alike; one entry per such doc in every list.

    Attributes:
        to: doc ids
        best: by set, the best cell or box
        wrong_full: of the whole wrong image
        wrong_best: as best, of the wrong image
    """

    to: list[DocId]
    full: Numbers
    best: dict[SetName, Numbers]
    wrong_full: Numbers
    wrong_best: dict[SetName, Numbers]


class ZeroShot(Struct):
    """What the untrained model says of a doc."""

    s: Number | None = None
    score: Number | None = None


CopyClass = Literal["agreeing", "conflicting", "single"]


class Tested(Struct):
    """What the text-only cross-validation says of the doc.

    Attributes:
        grouping: the headline's
        scores: native score of the held-out answer: grouping -> one per fold seed
        diagnostic: the name of the model
        fold: at the first fold seed, from 0
        source: what the doc shows; null: unknown
        answers: the held-out answer at each fold seed
        s: bias score, mean over fold seeds
        chance: what an uninformed guess earns on the metric's own scale
        delta: s less the untrained model's
        zero_shot: of the untrained model
        baseline: the same as scores of the frequency baseline
        copies: whether the other docs of the same text suggest the right answer
        text: a number that copies and near copies share, which are resampled together; null: source or cluster is known,
        or there are no copies
    """

    grouping: Literal["source", "none", "text", "joined"]
    scores: dict[str, Numbers]
    diagnostic: str = ""
    fold: Annotated[int, Meta(ge=0, le=MOST)] = 0
    source: Any = None
    answers: list[str] = []
    s: Number | None = None
    s_minus_chance: Number | None = None
    chance: Number | None = None
    delta: Number | None = None
    zero_shot: ZeroShot | None = None
    baseline: dict[str, Numbers] = {}
    copies: CopyClass | None = None
    text: Annotated[int, Meta(ge=0, le=MOST)] | None = None


class WrongImage(Struct, omit_defaults=True):
    """The doc's question on another doc's image.

    Attributes:
        source: the doc whose images were shown
        image_sizes: [width, height] in pixels of each image
        views: as views; absent in a _swap task, whose views are all of wrong images
    """

    source: DocId = field(name="from")
    image_sizes: Sizes
    views: list[View] = []


class Asked(Struct, kw_only=True, omit_defaults=True, gc=False):
    """How a doc was asked, in a run that left views out (docs/quick.md).

    A doc of which nothing was asked has one view, the full image without scores.

    Attributes:
        metric: the metric by whose scores it was decided what to ask
        block: 0: asked whole, so that the rest could be planned; later docs in the order of their blocks
        steps: 0: nothing was asked; 1: the full image; 2: the cells too, of each grid until one earned full marks
        p: the probability of each of the two steps
        unasked: views that were not asked
        full: what the full image was expected to score; this and the next two are absent where both steps were certain
        before: by grid, what the best cell was expected to score before the full image was asked
        after: the same after it
    """

    metric: str
    block: Annotated[int, Meta(ge=0, le=100)]
    steps: Annotated[int, Meta(ge=0, le=2)]
    p: Annotated[list[Annotated[float, Meta(gt=0, le=1)]], Meta(min_length=2, max_length=2)] = field(
        default_factory=lambda: [1.0, 1.0]
    )
    unasked: Annotated[int, Meta(ge=0, le=MOST)] = 0
    full: Number | None = None
    before: dict[SetName, Number] = {}
    after: dict[SetName, Number] = {}


class Clip(Struct, omit_defaults=True, frozen=True):
    """A clip that the doc shows whole; segments are cut from its frames.

    Attributes:
        frames: how many frames the full view shows
        seconds: how long the video is; absent where that is not known
    """

    frames: Some
    seconds: Annotated[float, Meta(ge=0, le=MOST)] | None = None


class Record(Struct, kw_only=True, omit_defaults=True):
    """The object `patch` of each line of a sample log (*_samples_*.jsonl): all views of one doc.

    Attributes:
        schema: readers refuse what they do not know
        task: the wrapped task
        grids: grid sizes n, numbers of segments or frames, or reductions; empty for kinds without such a number
        doc_id: the row in the base task's eval split
        image_sizes: [width, height] in pixels of each image, or of the frames of each clip
        clips: the clips that are shown, in the order of image_sizes; absent where the doc shows images
        images: digest of these images: their modes, sizes, and colours at up to 64 x 64 points of each; absent where
            none is shown
        views: in request order
        best: set -> index into views of the best cell, segment or box (the worst, for occlude); a set is a grid, or
        relevant or adversarial boxes
        excluded: set -> why the doc is not used for it; turns: why it is not asked in other orders of its options
        fields: values of the doc fields that the options name
        answer: how the doc is to be answered
        stratum: which docs it is alike
        wrong_image: the doc's question on another doc's image; absent where it was not asked so
        asked: how the doc was asked, in a run that left views out; absent where all were asked
    """

    schema: Literal[1]
    task: str
    base: str
    kind: WrappedKind
    grids: list[Parts]
    doc_id: DocId
    image_sizes: Sizes
    clips: list[Clip] = []
    images: Digest | None = None
    views: Annotated[list[View], Meta(min_length=1)]
    best: dict[SetName, Annotated[int, Meta(ge=0, le=MOST)]]
    excluded: dict[SetName, str]
    fields: dict[FieldName, Any] = {}
    answer: Answer = NO_ANSWER
    stratum: str = ""
    baselines: list[Baseline] = []
    exchanged: Exchanged | None = None
    tst: Tested | None = None
    wrong_image: WrongImage | None = None
    asked: Asked | None = None

    @property
    def estimated(self) -> bool:
        """Whether some of its scores stand for docs that were left out."""
        return self.asked is not None and min(self.asked.p) < 1

    @property
    def task_kind(self) -> Kind:
        """The kind of task, as a row of the table of kinds."""
        return KINDS[self.kind]

    @property
    def is_asked(self) -> bool:
        """Whether any of the doc's views was asked."""
        return self.asked is None or self.asked.steps > 0

    @property
    def tested_with(self) -> Any:
        """What the doc of a text-only cross-validation is resampled with: its source, else its cluster, else its copies.

        None where it stands alone.
        """
        source = None if self.tst is None else self.tst.source
        named = source if source is not None else self.fields.get("cluster")
        if named is not None or self.tst is None or self.tst.text is None:
            return named
        # marked, so that the number of a text is not taken for a source or cluster of the same value
        return "copies", self.tst.text

    @property
    def asked_grids(self) -> list[str]:
        """The names of the grids of which views may have been left out."""
        return [] if self.asked is None else [str(n) for n in self.grids]

    @property
    def wrong_views(self) -> list[View]:
        """The doc's views on another doc's image; empty without such views."""
        return [] if self.wrong_image is None else self.wrong_image.views

    @property
    def every_view(self) -> list[View]:
        """The views of the doc's image, then those on another doc's image."""
        return [*self.views, *self.wrong_views]


def in_set(view: View, key: Key) -> bool:
    """Return whether a view belongs to a set.

    A set has the cells of a grid, these and the windows between them, the segments of a clip, or the relevant or
    adversarial boxes, alone or all hidden, or is the view beside the full image.
    """
    if key == BESIDE:
        return view.kind != "full"
    if isinstance(key, int):
        return view.n == key and view.cell is not None
    if key in REGIONS:
        return view.relevant is (key == REGIONS[0])
    return view.n is not None and view.row is not None and key == windows(view.n)


def in_worst_order(record: Record, metric: str, higher: bool = True) -> Record:
    """Return a record in which each view asked in every order of the options keeps its worst order by a metric.

    Args:
        record: of a task with cells in every order.
        metric: the metric.
        higher: whether higher is better.
    """

    def chosen(views: Sequence[View]) -> list[int]:
        return worst_orders(views, _place, lambda view: view.scores.get(metric), higher)

    places = chosen(record.views)
    numbers = {_place(record.views[place]): number for number, place in enumerate(places)}
    wrong = record.wrong_image
    if wrong is not None:
        # a kept view stands for all its orders, so its answer is the answers to all of them
        said: dict[Any, list[str]] = {}
        for view in wrong.views:
            said.setdefault(_place(view), []).append(view.said or "")
        kept = [wrong.views[place] for place in chosen(wrong.views)]
        wrong = msgspec.structs.replace(
            wrong, views=[msgspec.structs.replace(view, said=" | ".join(said[_place(view)])) for view in kept]
        )
    return msgspec.structs.replace(
        record,
        views=[record.views[place] for place in places],
        best={key: numbers[_place(record.views[place])] for key, place in record.best.items()},
        wrong_image=wrong,
    )


def _place(view: View) -> tuple[str, int | None, int | None]:
    return view.kind, view.n, view.cell


def record_of(patch: Mapping[str, Any]) -> Record:
    """Return the ``patch`` object of a doc as a record.

    Raises:
        RecordError: it is not as we write it.
    """
    # before the record is read: another schema has other types
    if (schema := patch.get("schema")) != SCHEMA:
        raise RecordError(f"records of schema {shown(schema)}; {OTHER_VERSION}")
    record = read_as(patch, Record, "patch")
    if said := at_odds(record):
        raise RecordError(said)
    return record


def at_odds(record: Record) -> str:
    """Say what of a record does not fit together; empty where all does."""
    for name, views in (("views", record.views), ("wrong_image.views", record.wrong_views)):
        for i, view in enumerate(views):
            if said := view_at_odds(view):
                return f"patch.{name}[{i}].{said}"
    return parts_at_odds(record)


_OF_CURVES = {kind.view: kind.sizes for kind in KINDS.values() if kind.curve}
"""The least and the largest number of a view of a curve; other views have grid sizes."""


def view_at_odds(view: View) -> str:
    """Say what of a view does not fit together; empty where all does."""
    least, most = _OF_CURVES.get(view.kind, (MIN_GRID, MAX_GRID))
    if view.n is not None and not least <= view.n <= most:
        return f"n must be a whole number {f'>= {least}' if view.n < least else f'<= {most}'}, not {view.n}"
    if view.cell is not None:
        n, row, col = view.n, view.row, view.col
        if n is None or row is None or col is None:
            return f"{'n' if n is None else 'row' if row is None else 'col'} is missing"
        rows, columns = shape(view.kind, n)
        if view.cell != row * columns + col + 1 or row >= rows or col >= columns:
            return "cell must be the number of the cell in its row and column, row by row from 1"
    # a window has no number: its row and column count half cells
    if view.kind == "window":
        if view.n is None or view.row is None or view.col is None:
            return "n, row or col is missing"
        if max(view.row, view.col) > 2 * view.n - 2 or not (view.row % 2 or view.col % 2):
            return "row and col must be those of a window between the cells, in half cells from 0"
    return (
        "relevant is missing" if (view.region is not None or view.hidden is not None) and view.relevant is None else ""
    )


def parts_at_odds(record: Record) -> str:
    """Say what of a record does not fit together, whose views each do; empty where all does."""
    if unsaid := [i for i, view in enumerate(record.wrong_views) if view.said is None]:
        return f"patch.wrong_image.views[{unsaid[0]}].said is missing"
    count = len(record.views)
    if said := sizes_at_odds(record.kind, record.grids):
        return f"patch.grids {said}"
    if odd := [key for key, place in record.best.items() if place >= count]:
        return f"patch.best.{odd[0]} must be the place of one of its {count} views"
    if (other := record.exchanged) is not None:
        lists = [other.full, other.wrong_full, *other.best.values(), *other.wrong_best.values()]
        if {len(other.to)} != set(map(len, lists)) or set(other.best) != set(other.wrong_best):
            return "patch.exchanged must have as many numbers in each of its lists, and the same sets of both images"
    if record.tst is not None and record.tst.grouping not in record.tst.scores:
        return f"patch.tst.scores has no {record.tst.grouping!r}"
    return _answer_at_odds(record)


def _answer_at_odds(record: Record) -> str:
    """Say what of a doc's options does not fit together; empty where all does."""
    answer = record.answer
    if answer.options and (answer.gold_at or 0) > answer.options:
        return f"patch.answer.gold_at must be the place of one of its {answer.options} options"
    if answer.options and any((view.names or 0) > answer.options for view in record.every_view):
        return f"patch.views name more than the {answer.options} options of patch.answer"
    return ""


def sizes_at_odds(kind: str, sizes: Iterable[int]) -> str:
    """Say which of the numbers of a task is not possible for its kind; empty where all are."""
    # a pattern's $ lets a line break at the end of a name pass
    if kind not in KINDS:
        return "are of an unknown kind"
    least, most = KINDS[kind].sizes
    odd = next((n for n in sizes if not least <= n <= most), None)
    return "" if odd is None else f"must be whole numbers from {least} to {most}, not {odd}"


def full_marks(record: Record, metric: str) -> float:
    """Return the score of the doc's gold answer; 1 where unknown or not above 0."""
    golds = [one.scores.get(metric) for one in record.baselines if "gold" in one.roles]
    return max([score for score in golds if score is not None and score > 0], default=1.0)


def first_box(view: View) -> list[int]:
    """Return the box of a cell on the first image.

    Raises:
        RecordError: it has none.
    """
    if not view.boxes:
        raise RecordError(
            "a cell of the log without its box in pixels; the file was changed or written by another program"
        )
    return view.boxes[0]
