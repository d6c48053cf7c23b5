"""What the samples table of a task says of itself, in its footer (``About``): what was asked, and what made it."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from lmms_patch.runs.numbers import Analysis, Null, Stress
from lmms_patch.runs.unjudged import Bounds
from lmms_patch.stats.bounds import LARGEST, Count, Level, Number, Share, Some
from lmms_patch.stats.resample import DRAWS, LEVEL, Estimate

Seconds = Annotated[float, Meta(gt=0, le=LARGEST)]


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
    """

    draws: Annotated[int, Meta(ge=2, le=100_000)] = DRAWS
    level: Level = LEVEL
    seed: Annotated[int, Meta(ge=0, le=10**15)] = 0
    delta: Number | None = None
    scale: Number | None = None
    chance: Number | Literal["majority"] | None = None
    seconds: Seconds = 60.0
    form: str | None = None
    signed: bool = False

    @property
    def how(self) -> dict[str, Any]:
        """How intervals are drawn: ``draws``, ``level`` and ``seed``, as the functions of ``stats`` take them."""
        return {"draws": self.draws, "level": self.level, "seed": self.seed}


class Made(Struct, frozen=True, omit_defaults=True):
    """By what versions, and of which docs.

    Attributes:
        all_docs: how many docs the benchmark has, asked or not; absent where that is not known
        kept: answers that an earlier process of the same command had given; absent where none were
        docs: digest: which docs with which golds
        prompts: digest: what they are asked
        image_sizes: digest: which docs with images of which sizes; absent where none is shown
        images: digest: the pixels of these images, at up to 64 x 64 points each
    """

    lmms_patch: str | None = None
    lmms_eval: str | None = None
    all_docs: Some | None = None
    kept: Some | None = None
    docs: str | None = None
    prompts: str | None = None
    image_sizes: str | None = None
    images: str | None = None


class Texts(Struct):
    """How often the texts of a task are the same.

    Attributes:
        near: docs with a near copy
    """

    different: Count
    repeated: Count
    conflicting: Count
    near: Count = 0


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

    diagnostic: str | None = None
    settings: dict[str, Any] | None = None
    folds: Annotated[int, Meta(ge=2, le=50)] | None = None
    grouping: str | None = None
    unusable: dict[str, str] | None = None
    texts: Texts | None = None
    importance: list[Importance] | None = None
    causes: list[Cause] | None = None
    shuffled: Null | None = None
    seconds: Number | None = None


class LeftOut(Struct, frozen=True):
    """What of a MAGIC dataset is not asked.

    Attributes:
        items: items that cannot be used; null: the run does not say
    """

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
        judged_by: how the judge was asked; empty without one
    """

    variant: str
    metric: str
    judge: str | None
    numbers: dict[str, Estimate]
    counts: dict[str, Any]
    warnings: list[str]
    by_type: dict[str, dict[str, Estimate]] | None = None
    bounds: dict[str, Bounds] = {}
    dataset: str | None = None
    seed: int | None = None
    left_out: LeftOut = LeftOut()
    judged_by: dict[str, Any] = {}

    @property
    def failed(self) -> int:
        """The number of docs whose call failed."""
        return int(self.counts.get("failed") or 0)


@dataclasses.dataclass(frozen=True)
class Computed:
    """Every number of a task.

    Attributes:
        analysis: of a wrapped task; None where nothing was scored.
        tst: of a text-only cross-validation.
        magic: of a MAGIC task.
        drops: of ``occlude``: by name, the primary metric on full images less that with the worst cell hidden.
    """

    analysis: Analysis | None = None
    tst: TstDetails | None = None
    magic: MagicNumbers | None = None
    drops: dict[str, Number | None] = dataclasses.field(default_factory=dict)


# --- the footer of a samples table ------------------------------------------------------------------


class Model(Struct, frozen=True):
    """Which model answered.

    Attributes:
        name: its checkpoint (of a local folder the name), or else the adapter.
        adapter: what ``--model`` was.
        args: what ``--model_args`` was, without secrets.
        date: when the run was, as the harness writes it; sorts by time.
    """

    name: str = ""
    adapter: str = ""
    args: str = ""
    date: str = ""


class Host(Struct, frozen=True):
    """What else the harness was told, and what it counted.

    Attributes:
        limit: ``--limit``: the most docs of the task, or a share of them; null: all were asked.
        offset: docs at the beginning of the task that were skipped.
        original: docs of the benchmark, as the harness counts them; null: it is silent.
        effective: docs of it that were asked, likewise.
        few_shot: examples in the prompt.
        benchmark_version: the task's own.
        generation: how answers were generated, as JSON.
        system_instruction: its digest, ``none`` where none was given.
        dataset: where the data lie.
        hub: their name on the Hub; null of local files.
        config: the part of them that the task asks, where it names one.
        revision: of the data, where the task pins it.
        split: which was asked.
        gen_kwargs: as they were typed.
    """

    limit: float | None = None
    offset: int = 0
    original: Count | None = None
    effective: Count | None = None
    few_shot: Any = None
    benchmark_version: str | None = None
    generation: str | None = None
    system_instruction: str | None = None
    dataset: str | None = None
    hub: str | None = None
    config: str | None = None
    revision: str | None = None
    split: str | None = None
    gen_kwargs: str | None = None


class Of(Struct, frozen=True):
    """What only the run could compute of a filter pipeline: its native aggregations can be called in the run alone.

    Attributes:
        form: the form of the primary metric's aggregation; null: it has none that is known.
        values: by metric, what the harness printed; null: nothing.
        analysis: every number, where the aggregation has no known form; else null.
    """

    form: str | None = None
    values: dict[str, Number | None] = {}
    analysis: Analysis | None = None


class Probe(Struct, frozen=True, omit_defaults=True):
    """Whether batches garble answers (docs/metrics.md).

    Attributes:
        asked: how many requests were asked again alone.
        differed: of how many the answer from the batch was the odd one.
        failed: whether batches garble answers: then no answer of the run has a score.
        why: why none was asked again, or what was found.
    """

    asked: Count = 0
    differed: Count = 0
    failed: bool = False
    why: str = ""


class About(Struct, kw_only=True, frozen=True):
    """The JSON in the footer of a samples table, under the key ``lmms_patch`` (docs/tables.md).

    Attributes:
        task: its name.
        asked: what was wrapped and how.
        metrics: the native metrics, the primary one first, and whether higher is better.
        filters: the harness's filter pipelines, in order.
        settings: of the statistics.
        made: by what versions, and of which docs.
        native: by filter pipeline.
        merged: category -> what it counts in.
        quick: the metric by whose scores views were left out.
        tst: what a text-only diagnostic found out about the task as a whole.
        magic: what a MAGIC task shows, and who judged it.
        groups: group -> its tasks, of the whole run.
        probe: whether batches garble answers.
        run: what no other run has.
        place: of the task among those of the run.
        rows, docs: how many the table has.
        columns: their names.
    """

    schema: Literal[1]
    task: str
    asked: dict[str, Any]
    metrics: dict[str, bool]
    filters: Annotated[list[str], Meta(min_length=1)] = field(default_factory=lambda: ["none"])
    settings: Settings = Settings()
    model: Model = Model()
    host: Host = Host()
    made: Made = Made()
    native: dict[str, Of] = {}
    merged: dict[str, str] = {}
    quick: str | None = None
    tst: dict[str, Any] = {}
    magic: dict[str, Any] = {}
    groups: dict[str, list[str]] = {}
    probe: Probe = Probe()
    run: str = ""
    place: Count = 0
    rows: Count
    docs: Count
    columns: list[str]
