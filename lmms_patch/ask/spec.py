"""``"gqa_rci3"`` -> ``WrapSpec(base="gqa", kind=KINDS["rci"], grids=(3,))``: the grammar of wrapped names, and the options of tasks."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from lmms_patch.ask.kinds import KINDS, Key, Kind
from lmms_patch.errors import OptionError, UnknownNameError, must, read_as
from lmms_patch.stats.bounds import LARGEST

MIN_FOLDS, MAX_FOLDS = 2, 50

SUFFIXES = tuple(name for name, kind in KINDS.items() if kind.suffix)
"""The kinds that a name can end in."""

QUICK = "quick"
"""The last part of a name such as ``gqa_rci3_quick``: no more is asked than the interval needs (docs/quick.md)."""
STEADY = "steady"
"""The last part of a name such as ``gqa_rci3_steady``: every doc is asked again."""
_SUFFIX = re.compile(rf"^(?P<base>.+)_(?P<kind>{'|'.join(SUFFIXES)})(?P<n>\d*)(?:_(?P<way>{QUICK}|{STEADY}))?$")


_Text = Annotated[str, Field(min_length=1)]
Name = Annotated[_Text, must("a name")]
ASKING = ("exit", "quick", "precision", "budget", "target", "pilot")
"""The options that decide how much is asked; none of them changes a view."""
UNWRITTEN = ("null", "steady", "probe", "doc_fields", *ASKING)
"""The options that a results file does not hold: they change no view, and the harness's response cache goes by what it holds."""
DESCRIBING = ("caption_prompt", "caption_tokens", "captions")
"""The options of ``caption``; no other kind writes them."""
Fields = Annotated[_Text | Annotated[list[_Text], Field(min_length=1)], must("the name of a field, or a list of names")]
"""One field of a doc, or several that count together."""
Form = Literal["mean", "percent", "sum", "f1", "precision", "recall", "mme", "macro"]
"""The names of ``stats.forms.FORMS``, which takes NumPy to import."""
Count = Annotated[int, Field(ge=0, le=LARGEST), must("a whole number of at least 0")]
_Number = Annotated[int | float, Field(ge=-LARGEST, le=LARGEST)]
Above0 = Annotated[_Number, Field(gt=0), must("a number above 0")]
_FORM_OF_EACH = f"a form for each metric ({', '.join(get_args(Form))}), such as {{acc: mean}}"


_Values = Annotated[list[str | int], Field(min_length=1)]
_MERGED = "a list of categories for each name, such as {animals: [cat, dog]}, no category twice"


def _no_category_twice(merged: dict[str, list[str | int]]) -> dict[str, list[str | int]]:
    """Refuse a category merged into two."""
    named = [str(one) for several in merged.values() for one in several]
    if len(set(named)) < len(named):
        raise ValueError(_MERGED)
    return merged


class Options(BaseModel):
    """What a task file, a base task's inline profile or a profile may set. Every default serves."""

    # strict, or pydantic would take the text "no" and the number 0 for false
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    metric: Name | None = None
    """The primary metric, which the index is built on. Default: the only one, else the one over all docs."""
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
    doc_fields: bool = True
    """Keep the short fields of each doc (numbers, yes or no, texts of up to 64 characters) as columns ``doc.<name>``."""
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
    steady: Annotated[Count | Literal["all"], must("a whole number of at least 0, or 'all'")] = 300
    """How many of the docs of ``null`` are asked again with options moved or crops trimmed, for the composition. 0: none; all: every doc.

    A name that ends in ``_steady`` sets ``all``.
    """
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
    boxes: Name = "boxes"
    """Of ``regions`` and ``hidden``: the doc field with its boxes (docs/regions.md)."""
    relevant: Name = "relevant"
    """Of ``regions`` and ``hidden``: the doc field that says which of the boxes are relevant; ``all``: each of them is."""
    box_form: Literal["ltrb", "ltwh"] = "ltrb"
    """Of ``regions`` and ``hidden``: how four numbers name a box: left, top, right, bottom; or left, top, width, height (COCO)."""
    box_image: Literal["first", "last"] = "first"
    """Of ``regions`` and ``hidden``: which of the images shown the boxes lie on."""
    caption_prompt: Name = "Describe this image."
    """Of ``caption``: what the model is asked for the description."""
    caption_tokens: Annotated[int, Field(ge=1, le=10**4), must("a whole number of at least 1, and at most 10000")] = 128
    """Of ``caption``: the most tokens of a description."""
    captions: Name | None = None
    """Of ``caption``: the folder of a finished ``_caption`` run whose descriptions are taken, such as those of a stronger model."""
    frames: Annotated[int, Field(ge=1, le=10**4), must("a whole number of at least 1, and at most 10000")] | None = None
    """Of videos: of how many uniform frames a clip is made. Default: as many as the model takes, as far as its adapter says so, else 32."""
    merged: (
        Annotated[dict[str, _Values], Field(min_length=1), AfterValidator(_no_category_twice), must(_MERGED)] | None
    ) = None
    """Of an ``aggregation`` that is ``macro``: categories that count as one, by a name of yours: name -> list of categories. Their means are averaged
    first."""

    @model_validator(mode="before")
    @classmethod
    def _with_null(cls, data: Any) -> Any:
        """Undo YAML's reading of the bare key null as None."""
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

    @property
    def given(self) -> frozenset[str]:
        """The options as written down, defaults too."""
        return frozenset(self.model_fields_set)

    def over(self, base: Options) -> Options:
        """Return these options where they were given, else those of ``base``."""
        return base.model_copy(update={key: getattr(self, key) for key in self.given})

    def filled_by(self, profile: Options) -> Options:
        """Return these options where they were given, else those of a profile, which do not count as given."""
        # not validated again: the first argument says which options
        # count as given, and all values were checked before
        return Options.model_construct(set(self.given), **self.over(profile).model_dump())

    def form(self, metric: str) -> Form | None:
        """Return the declared form of a metric's aggregation; None where none is declared."""
        return self.aggregation.get(metric) if self.aggregation else None


class _File(Options):
    """A task file: what to wrap, and the options."""

    base: Annotated[Name, must("the task to wrap, such as 'base: gqa'")]
    kind: str = "rci"


class _OfGrids(_File):
    grids: Annotated[int | list[int] | None, must("whole numbers, such as 'grids: [3]'")] = None


class _OfFolds(_File):
    folds: Annotated[int | None, must("a whole number, such as 'folds: 5'")] = None


@dataclass(frozen=True)
class WrapSpec:
    """What to make of a base task.

    Attributes:
        base: a task, group or tag that the harness knows.
        kind: how its docs are asked.
        grids: grid sizes, numbers of segments or frames, or reductions, ascending, each within ``Kind.sizes``; empty
        for kinds without a number.
        folds: number of folds of ``tst``, 2..50; 0 for other kinds.
        options: the options of the wrapped task.
        name: the name of the wrapped task; by default it is made of the parts.
    """

    base: str
    kind: Kind
    grids: tuple[int, ...] = ()
    options: Options = field(default_factory=Options)
    name: str = ""
    folds: int = 0

    def __post_init__(self) -> None:
        if self.kind.folds and not self.folds:
            object.__setattr__(self, "folds", self.kind.default_grids[0])
        if not self.name:
            object.__setattr__(self, "name", f"{self.base}_{self.suffix}")

    @property
    def suffix(self) -> str:
        """The part of the name after the base: ``rci3``, ``rci``, ``blind``."""
        kind, name = self.kind, self.kind.name
        if kind.folds:
            return name if self.name == f"{self.base}_{name}" else f"{name}{self.folds}"
        bare = not self.grids or self.grids == kind.default_grids
        # "trci" and "trci4" ask the same: the suffix is as the name has it, so that members of a group take it
        if len(kind.default_grids) == 1:
            bare = self.name.removesuffix(f"_{QUICK}").removesuffix(f"_{STEADY}") == f"{self.base}_{name}"
        suffix = name if bare else name + "_".join(str(n) for n in self.grids)
        if self.options.quick:
            return f"{suffix}_{QUICK}"
        return f"{suffix}_{STEADY}" if self.options.steady == "all" else suffix

    @property
    def sets(self) -> tuple[Key, ...]:
        """The sets of views of which a doc keeps one (``Kind.sets``)."""
        return self.kind.sets(self.grids)

    @property
    def points(self) -> tuple[Key, ...]:
        """What has a score of its own beside the first view (``Kind.points``)."""
        return self.kind.points(self.grids)

    @property
    def parts(self) -> tuple[Key, ...]:
        """What a doc can be left out of: sets of views, points of a curve, sets of hidden boxes, or the one grid of a shuffle."""
        return self.sets or self.points or self.grids

    @property
    def leaves_out(self) -> bool:
        """Whether the run may leave requests out: some cells (``exit``), or some cells and some docs (``quick``)."""
        return self.kind.may_leave_out and (self.options.exit or self.options.quick)

    @property
    def asks_again(self) -> bool:
        """Whether some docs are asked again (``steady``); with a budget of calls none is, since nobody knows the price."""
        known = not self.leaves_out or self.options.budget is None
        return self.kind.asks_again and bool(self.options.steady and self.options.null) and known

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
        options = self.options.model_dump()
        for name in () if self.kind.captions else DESCRIBING:
            del options[name]
        return {"base": self.base, "kind": self.kind.name, "grids": list(self.grids), **folds, "options": options}


def _made(base: str, kind: Kind, numbers: tuple[int, ...], options: Options, name: str, where: str) -> WrapSpec:
    """Return a spec, its numbers checked; without numbers those of its kind.

    Raises:
        UnknownNameError: too few numbers, too many, or out of bounds; says what to type.
        OptionError: ``exit`` or ``quick`` is set for a kind without an index over cells.
    """
    told, word = kind.name, "number of folds" if kind.folds else kind.words.number
    least, most = (MIN_FOLDS, MAX_FOLDS) if kind.folds else kind.sizes
    ways = ", ".join(one.name for one in KINDS.values() if one.may_leave_out)
    why = "needs the answers to all windows" if kind.shifted else "has no cells to leave out"
    for way in (QUICK, "exit"):
        if getattr(options, way) and not kind.may_leave_out:
            raise OptionError(f"{where}: '{told}' {why}, so it cannot be asked with '{way}'; allowed: {ways}")
    fault = ""
    if kind.turns and numbers:
        fault = (
            f"'{told}' asks the full image alone, so it takes no {word}; type '..._{told}', or to ask cells again too, "
        )
        fault += f"'..._rci{max(numbers[0], least)}_{STEADY}'"
    elif kind.grid == "none" and numbers:
        fault = f"'{told}' takes no {word}; type '..._{told}'"
    elif kind.grid == "required" and not numbers:
        fault = f"'{told}' needs a {word} {least} to {most}; type '..._{told}{kind.example}'"
    elif odd := [n for n in numbers if not least <= n <= most]:
        fault = f"{word} {odd[0]} is not possible; allowed: {least} to {most}; type '..._{told}{kind.example}'"
    if fault:
        raise UnknownNameError(f"{where}: {fault}")
    numbers = tuple(sorted(set(numbers))) or kind.default_grids
    return WrapSpec(base, kind, () if kind.folds else numbers, options, name, numbers[0] if kind.folds else 0)


def parse(name: str) -> WrapSpec | None:
    """Read a wrapped name.

    Returns:
        The spec, or None where the name does not end in ``_<kind>`` or ``_<kind><n>``.

    Raises:
        UnknownNameError: it ends so, but with a grid size that is not possible.

    >>> spec = parse("gqa_rci3")
    >>> spec.base, spec.kind.name, spec.grids
    ('gqa', 'rci', (3,))
    >>> parse("gqa_lite") is None
    True
    >>> parse("gqa_rci3_quick").options.quick
    True
    """
    match = _SUFFIX.match(name)
    if match is None:
        return None
    kind, digits = KINDS[match["kind"]], match["n"]
    if len(digits) > 1 and digits.startswith("0"):
        raise UnknownNameError(f"{name}: write the number without leading zeros")
    ways = {QUICK: Options(quick=True), STEADY: Options(steady="all")}
    options = ways.get(match["way"] or "", Options())
    return _made(match["base"], kind, (int(digits),) if digits else (), options, name, name)


def from_file(config: Mapping[str, Any]) -> WrapSpec:
    """Return the spec of an explicit task file (``class: !function lmms_patch.Wrap``).

    Args:
        config: the file's keys: ``task``, ``base``, ``kind``, ``grids`` (for ``tst``: ``folds``), and any of
            ``Options``.

    Raises:
        OptionError, UnknownNameError: a key that is missing, unknown, or out of range.
    """
    where, asked = f"task file {config.get('task')!r}", config.get("kind", "rci")
    if not isinstance(asked, str) or asked not in SUFFIXES:
        raise OptionError(f"{where}: kind {asked!r} is not known; allowed: {', '.join(SUFFIXES)}")
    kind, given = KINDS[asked], {key: value for key, value in config.items() if key not in ("class", "task")}
    file = read_as(_OfFolds if kind.folds else _OfGrids, given, where)
    options = Options(**{name: getattr(file, name) for name in file.given & Options.model_fields.keys()})
    numbers = getattr(file, "folds" if kind.folds else "grids")
    several = numbers if isinstance(numbers, list) else [] if numbers is None else [numbers]
    return _made(file.base, kind, tuple(several), options, str(config.get("task")), where)
