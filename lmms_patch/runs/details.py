"""What a results file says of a task of ours: what was asked (``lmms_patch`` in its config), and its numbers (the metric ``patch``).

``wrong`` says where one of the two is not as we write it. Readers refuse such a file before a number is taken from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, cast

from msgspec import UNSET, Meta, Struct, UnsetType

from lmms_patch.ask.kinds import KINDS, Kind
from lmms_patch.ask.spec import Options
from lmms_patch.runs import catalogue
from lmms_patch.runs.numbers import Analysis, Null, Stress
from lmms_patch.runs.record import WrappedKind, sizes_at_odds
from lmms_patch.runs.typed import Digest, convert, fault
from lmms_patch.stats.bounds import LARGEST, Count, Level, Number, Parts, Share, Some
from lmms_patch.stats.resample import DRAWS, LEVEL, Estimate

Hex = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9a-f]+$"})]
Seconds = Annotated[float, Meta(gt=0, le=LARGEST)]
Majority = Annotated[str, Meta(pattern="^majority$")]


# --- what was asked -------------------------------------------------------------------------------


class ClipFrames(Struct, omit_defaults=True):
    """Which frames of a video make a clip.

    Attributes:
        count: the most frames; null: no limit
        fps: the most frames per second of the video; null: no limit
        reader: the package that the adapter has choose them; "" where lmms-eval's own way is assumed
    """

    count: Annotated[int, Meta(ge=1)] | None
    fps: Number | None
    reader: Literal["", "qwen_vl_utils"] = ""


class Described(Struct, kw_only=True):
    """What readers need to know of a task.

    Attributes:
        grids: grid sizes n, numbers of segments or frames, or reductions; empty for kinds without such a number
        metric: the primary metric
    """

    base: str
    kind: str
    grids: list[Parts]
    options: Options
    metric: str


class TaskConfig(Described, kw_only=True):
    """The object `configs.<task>.lmms_patch` of a results file: what was asked.

    Attributes:
        pixels: version of how views are cut
        grids: grid sizes n, numbers of segments or frames, or reductions; empty for kinds without such a number
        folds: of tst only
        metric: the primary metric
        run: of tst only: makes the response cache ask again
        boxes: of regions only: digest of all docs' boxes
        wrong_images: digest of what decides whose image is a doc's wrong image; absent where no doc is asked on one
        clip: of tasks whose docs show videos: which frames make a clip
    """

    schema: Literal[1]
    pixels: Some = 1
    kind: WrappedKind
    folds: Annotated[int, Meta(ge=2, le=50)] | UnsetType = UNSET
    run: str | UnsetType = UNSET
    boxes: Digest | UnsetType = UNSET
    wrong_images: Annotated[str, Meta(extra_json_schema={"pattern": "^([0-9a-f]{16})?$"})] | UnsetType = UNSET
    clip: ClipFrames | UnsetType = UNSET


# --- its numbers ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Settings:
    """What may be set of the statistics; every default serves.

    Attributes:
        draws: B, number of bootstrap draws.
        level: nominal coverage of intervals, 0..1.
        seed: of the bootstrap, the permutations and the guesses.
        delta: the gate's margin δ on the metric's own scale; None: ``stats.gate.DELTA`` of the scale.
        scale: the metric's full marks; None: what the gold answers score.
        chance: a documented floor, ``majority``, or None: asked of the scorer.
        seconds: time budget where the native aggregation is called for each draw.
        form: the aggregation's declared form, by a profile.
        signed: whether a profile says that the metric's scale goes below 0, so that it has no index.
        gold: where golds come from, in words; empty: not recorded.
        read: the field that the scorer seems to compare with in its place; empty where golds score, or none was found.
        asking: when the run was told to stop asking, in words; empty where it asked everything.
    """

    draws: Annotated[int, Meta(ge=2, le=100_000)] = DRAWS
    level: Level = LEVEL
    seed: Annotated[int, Meta(ge=0, le=10**15)] = 0
    delta: Number | None = None
    scale: Number | None = None
    chance: Number | Majority | None = None
    seconds: Seconds = 60.0
    form: str | None = None
    signed: bool = False
    gold: str = ""
    read: str = ""
    asking: str = ""

    @property
    def how(self) -> dict[str, Any]:
        """How intervals are drawn: ``draws``, ``level`` and ``seed``, as the functions of ``stats`` take them."""
        return {"draws": self.draws, "level": self.level, "seed": self.seed}


class Made(Struct):
    """By what versions, and of which docs.

    Attributes:
        all_docs: how many docs the benchmark has, asked or not; absent where that is not known
        kept: answers that an earlier process of the same command had given; absent where none were
        docs: digest: which docs with which golds
        prompts: digest: what they are asked
        image_sizes: digest: which docs with images of which sizes; absent where none is shown
        images: digest: the pixels of these images, at up to 64 x 64 points each
    """

    MORE: ClassVar[bool] = True
    lmms_patch: str | None = None
    lmms_eval: str | None = None
    all_docs: Some | UnsetType = UNSET
    kept: Some | UnsetType = UNSET
    docs: Hex | UnsetType | None = UNSET
    prompts: Hex | UnsetType | None = UNSET
    image_sizes: Hex | UnsetType = UNSET
    images: Hex | UnsetType = UNSET


class Donors(Struct, frozen=True):
    """How many sorts of docs there are to choose donors among."""

    strata: Count | UnsetType = UNSET
    merged_strata: Count | UnsetType = UNSET
    merged_docs: Count | UnsetType = UNSET


class Texts(Struct):
    """How often the texts of a task are the same.

    Attributes:
        near: docs with a near copy
    """

    different: Count
    repeated: Count
    conflicting: Count
    near: Count | UnsetType = UNSET


class Importance(Struct):
    """What a feature is worth to the text-only model."""

    kind: str
    feature: str
    gain: Number
    permutation: Number | None


class Cause(Struct, kw_only=True):
    """A row of the root-cause table."""

    rank: Some
    category: str
    words: str
    docs: Count
    s: Number | None = None
    s_minus_chance: Number | None
    gold: str
    gold_share: Share
    mean: Number | None
    sd: Number | None
    cv: Number | None


@dataclasses.dataclass(frozen=True)
class TstDetails(Stress):
    """The numbers of a text-only cross-validation, and what the diagnostic found out about the task as a whole.

    Attributes:
        unusable: grouping -> why it was not done, or is not the headline
        shuffled: the same diagnostic on shuffled golds; null where they decide nothing
        leakage: accuracy with random folds less accuracy with source-grouped folds, paired by doc; null without both
        zero_shot: accuracy of the same model before training; null where the diagnostic has none
        delta: headline accuracy less zero-shot, paired by doc; null without it
        chance: mean of what an uninformed guess earns, on the metric's own scale
        s: mean bias score
        unscored: docs without a score
    """

    diagnostic: str | UnsetType = UNSET
    settings: dict[str, Any] | UnsetType = UNSET
    folds: Annotated[int, Meta(ge=2, le=50)] | UnsetType = UNSET
    grouping: str | UnsetType = UNSET
    unusable: dict[str, str] | UnsetType = UNSET
    texts: Texts | UnsetType = UNSET
    importance: list[Importance] | UnsetType = UNSET
    causes: list[Cause] | UnsetType = UNSET
    shuffled: Null | UnsetType | None = UNSET
    seconds: Number | UnsetType = UNSET


class JudgedBounds(Struct):
    """What a number by the judge would be, were all docs without a verdict wrong (low), or all right (high).

    Attributes:
        unjudged: docs without a verdict
    """

    low: Estimate
    high: Estimate
    unjudged: Count


class LeftOut(Struct, frozen=True):
    """What of a MAGIC dataset is not asked.

    Attributes:
        items: items that cannot be used; null: the run does not say
    """

    MORE: ClassVar[bool] = True

    items: Count | None = None


class MagicNumbers(Struct):
    """The numbers of a MAGIC task (docs/magic.md).

    Attributes:
        metric: what the task is about
        judge: null: no judge
        numbers: by metric
        by_type: the same by type of question
        counts: docs that a convention touches
        bounds: by metric, of numbers by the judge that lack verdicts
        judged_by: how the judge was asked; absent without one
    """

    MORE: ClassVar[bool] = True
    variant: str
    metric: str
    judge: str | None
    numbers: dict[str, Estimate]
    counts: dict[str, Any]
    warnings: list[str]
    by_type: dict[str, dict[str, Estimate]] | None = None
    bounds: dict[str, JudgedBounds] | UnsetType = UNSET
    dataset: str | None = None
    seed: int | None = None
    left_out: LeftOut = LeftOut()
    judged_by: dict[str, Any] | UnsetType = UNSET

    @property
    def failed(self) -> int:
        """The number of docs whose call failed."""
        return int(self.counts.get("failed") or 0)


class Details(Struct):
    """The value of the metric `patch` in a results file (results.<task>."patch,<filter>"): every number of a task.

    Attributes:
        records: docs with a record in the sample log
        n_failed: docs with a failed call
        gate: 1: the index may be read
        made: by what versions, and of which docs
        settings: of the statistics
        higher_is_better: metric -> bool
    """

    MORE: ClassVar[dict[str, Any]] = {
        "type": ["number", "null"],
        "description": "numbers of docs/tst.md; scores on the metric's own scale",
    }
    RULES: ClassVar[dict[str, Any]] = {"patternProperties": catalogue.schema()}

    records: Count = 0
    chance: Number | None = None
    ceiling: Number | None = None
    n_docs: Number | None = None
    n_failed: Number | None = None
    settings: Settings = Settings()
    higher_is_better: dict[str, bool] = {}
    donors: Donors = Donors()
    # left out where nothing was scored; never null
    analysis: Analysis = cast(Any, None)
    gate: Literal[0, 1] | UnsetType | None = UNSET
    made: Made | UnsetType = UNSET
    tst_details: TstDetails | UnsetType = UNSET


class MagicSettings(Struct, frozen=True):
    """Of the statistics of a MAGIC task."""

    draws: Annotated[int, Meta(ge=2, le=100_000)] = DRAWS
    level: Level = LEVEL
    seed: Annotated[int, Meta(ge=0, le=10**15)] = 0


class MagicDetails(Struct):
    """The value of the metric `magic` of a MAGIC task in a results file (results.<task>."magic,<filter>"): every number of the task.

    Attributes:
        records: docs with a record in the sample log
        n_failed: docs with a failed call
        made: by what versions, and of which docs
        settings: of the statistics
        higher_is_better: metric -> bool
        magic: numbers, counts and settings (docs/magic.md)
    """

    MORE: ClassVar[dict[str, Any]] = {
        "type": ["number", "null"],
        "description": "the numbers of docs/magic.md, without their intervals",
    }

    records: Count = 0
    n_failed: Number | None = None
    settings: MagicSettings = MagicSettings()
    higher_is_better: dict[str, bool] = {}
    made: Made | UnsetType = UNSET
    # left out where the statistics failed; never null
    magic: MagicNumbers = cast(Any, None)


class ObjectColumns(Struct):
    """The columns of a task with an object."""

    PATTERNS: ClassVar[dict[str, type]] = {"^patch,": Details, "^magic,": MagicDetails}


class Objects(Struct, kw_only=True):
    """The file `<date>_patch.json` beside a results file: the long objects of its tasks.

    Attributes:
        results: by task
    """

    schema: Literal[1]
    results: dict[str, ObjectColumns]


# --- is it as we write it? ------------------------------------------------------------------------


_TYPES: Mapping[str, tuple[type[Described], type[Details] | type[MagicDetails]]] = {"magic": (Described, MagicDetails)}
"""By kind, what describes a task, and the object of its numbers."""
_OF_OTHERS = TaskConfig, Details


def wrong(described: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    """Say what of a task is not as we write it; empty where all is.

    Args:
        described: ``configs.<task>.lmms_patch``.
        details: the value of the metric ``patch``, or ``magic`` of a MAGIC task; may be empty.
    """
    asked, kind = _TYPES.get(str(described.get("kind")), _OF_OTHERS)
    said = fault(described, asked)
    if not said and (odd := sizes_at_odds(described["kind"], described["grids"])):
        said = f"grids {odd}"
    if said or not details:
        return said
    parts = _filled(details)
    # beside the parts of the object stand plain columns, each a number or null
    flat = {key: value for key, value in details.items() if key not in kind.__struct_fields__}
    said = fault(parts, kind) or fault(flat, dict[str, Number | None]) or _lacking(parts)
    return said or _at_odds(KINDS[described["kind"]], parts) or _unordered(parts)


def read(details: Mapping[str, Any], kind: str) -> Details | MagicDetails:
    """Return a task's numbers from an object checked by ``wrong``, in the type of its kind."""
    return convert(_filled(details), _TYPES.get(kind, _OF_OTHERS)[1])


def _filled(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's object without empty parts, as left where nothing was scored."""
    return {
        key: value for key, value in details.items() if value != {} or key not in ("analysis", "tst_details", "magic")
    }


def _lacking(details: Mapping[str, Any]) -> str:
    """Say which key is missing from a file. Every version writes these keys, but our types have defaults for them."""
    if not (analysis := details.get("analysis")):
        return ""
    needed = [
        ("analysis", analysis, ("grids", "warnings")),
        ("analysis.chance", analysis["chance"], ("floors", "reason")),
        ("analysis.gate", analysis["gate"], ("reason",)),
        *(
            (f"analysis.gate.looks[{i}]", one, ("wanted", "reason"))
            for i, one in enumerate(analysis["gate"].get("looks", ()))
        ),
    ]
    return next((f"{where}.{key} is missing" for where, part, keys in needed for key in keys if key not in part), "")


def _at_odds(kind: Kind, details: Mapping[str, Any]) -> str:
    """Say which parts do not fit together."""
    analysis, tst, magic = (details.get(key) or {} for key in ("analysis", "tst_details", "magic"))
    for n, grid in analysis.get("grids", {}).items():
        shares = grid.get("shares") or {}
        # each of these has an entry per cell
        parts = [shares.get(key) for key in ("score", "win", "p_cells")]
        cells = kind.cells(int(n))
        if any(part is not None and len(part) != cells for part in parts) or (
            parts[0] is not None and parts[2] is None
        ):
            return f"analysis.grids.{n}.shares are not of {cells} {kind.words.parts}"
    regions = analysis.get("regions") or {}
    if missing := [name for name in regions.get("sets", ()) if name not in regions["mean"]]:
        return f"analysis.regions.mean has no {missing[0]}"
    if tst and tst["headline"] not in tst["by_grouping"]:
        return f"tst_details.by_grouping has no {tst['headline']!r}"
    return (
        f"magic.numbers has no {magic['metric']!r}, which the task is about"
        if magic and magic["metric"] not in magic["numbers"]
        else ""
    )


def _unordered(value: Any, where: str = "") -> str:
    """Say which interval ends before its start."""
    if isinstance(value, Mapping):
        low, high = value.get("low"), value.get("high")
        # 1e-9: both ends may be the same number, computed in two ways
        if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low > high + 1e-9:
            return f"{where.removeprefix('.')} must be an interval that ends after it starts"
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    return next(
        (
            said
            for key, one in inner
            if isinstance(one, (Mapping, list)) and (said := _unordered(one, f"{where}.{key}"))
        ),
        "",
    )
