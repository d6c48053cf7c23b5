"""The types of the file of a report, and of what ``lmms-patch magic show --json`` writes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lmms_patch.ask.kinds import KINDS
from lmms_patch.runs.unjudged import Bounds
from lmms_patch.stats.bounds import Count, Number, Some, one_of
from lmms_patch.stats.resample import Estimate

KindName = Annotated[str, one_of(KINDS)]
Variant = Literal["all", "relevant", "none", "selfheal"]


class Value(Struct, kw_only=True):
    """A number with its interval.

    Attributes:
        se: standard error, clustered
        n: docs
        level: nominal coverage of the interval, 0..1
    """

    value: Number | None
    se: Number | None
    low: Number | None
    high: Number | None
    n: int
    clusters: int
    level: Number


class Shown(Value, kw_only=True):
    """A number as the report shows it.

    Attributes:
        se: standard error, clustered
        n: docs
        level: nominal coverage of the interval, 0..1
        reason: why value or interval is null, or a warning
        note: words that stand beside the number in every table: contradicted, marginal, sampled
    """

    reason: str
    note: str | UnsetType = UNSET


Measures = dict[str, Shown]
"""by name (docs/report.md)"""


class Part(Struct, kw_only=True):
    """A task or one of its categories.

    Attributes:
        gate: 1 valid, 0 refused (near chance, or the answers do not depend on the image), null unknown or none
    """

    docs: int
    gate: Literal[0, 1, None]
    measures: Measures


class ReportResult(Part, kw_only=True):
    """A task of a run.

    Attributes:
        base: the benchmark
        type: the papers' task type; empty where no profile says it
        path: the results file, as it was given
        grids: those with an index
        excluded: by grid: reason -> docs
        failures: views whose call or scorer failed (full, cells), empty answers to the full view (empty), all views
            (views), and views by the state of their answer (failed, unscored, unfinished)
    """

    id: Annotated[str, Meta(pattern="^[a-z0-9-]+$")]
    model: str
    base: str
    task: str
    kind: KindName
    metric: str
    type: str
    date: str
    path: str
    grids: list[int]
    categories: dict[str, Part]
    excluded: dict[str, dict[str, int]]
    failures: dict[str, int]
    warnings: list[str]


class Column(Struct, kw_only=True):
    """A column of a table."""

    key: str
    title: str
    help: str


class Table(Struct, kw_only=True):
    """A table.

    Attributes:
        name: of tables/<name>.csv, .json, .md and .tex
    """

    name: str
    title: str
    note: str
    columns: list[Column]
    rows: list[dict[str, Shown | str | Number | bool | None]]


class Figure(Struct, kw_only=True):
    """A figure.

    Attributes:
        name: of figures/<name>.svg and .png
    """

    name: str
    title: str
    caption: str
    section: Literal["headline", "needs", "runs", "benchmarks", "models", "tst", "magic"]


class Piece(Struct, kw_only=True):
    """A part of a sentence.

    Attributes:
        case: id of the result that it names; empty: none
        aside: whether it stands in brackets behind a name
        numbers: that it gives, by name
    """

    text: str
    case: str
    aside: bool
    numbers: dict[str, Estimate]


class Finding(Struct, kw_only=True):
    """A sentence that the page opens with.

    Attributes:
        kind: what it is about
        cases: ids of the results that it is about
        pieces: the sentence in parts
    """

    kind: str
    text: str
    cases: list[str]
    pieces: list[Piece] = []


class Example(Struct, kw_only=True):
    """A doc that is shown.

    Attributes:
        result: id of a result
        doc_id: of MAGIC tasks the name of the doc
    """

    result: str
    rule: str
    doc_id: int | str


class Report(Struct, kw_only=True):
    """report.json of lmms-patch report: what its page shows, all results with all their numbers, and the tables.

    Scores on the metric's own scale; null is not defined.

    Attributes:
        made: versions, and when
        tables: by section of the page
        findings: at most six sentences, the most important first
    """

    schema: Literal[1]
    title: str
    made: dict[str, str]
    warnings: list[str]
    results: list[ReportResult]
    tables: dict[str, list[Table]]
    figures: list[Figure]
    examples: list[Example]
    findings: list[Finding] | UnsetType = UNSET


class MagicTask(Struct, kw_only=True):
    """The numbers of a MAGIC task.

    Attributes:
        judge: null: no judge
        results: the results file
        numbers: by metric (docs/magic.md)
        bounds: by metric, of numbers by the judge that lack verdicts; absent where none does
        counts: docs that a convention touches
    """

    model: str
    task: str
    variant: Variant
    dataset: str | None
    judge: str | None
    docs: Count
    results: str
    numbers: dict[str, Estimate]
    bounds: dict[str, Bounds] | UnsetType = UNSET
    counts: dict[str, Count]
    warnings: list[str]


class MagicDifference(Struct, kw_only=True):
    """A metric of two tasks, and how far they differ.

    Attributes:
        p: two-sided, paired clustered bootstrap
        differing: images on which the two differ
    """

    first: Number | None
    second: Number | None
    difference: Estimate
    p: Number | None
    differing: int | None


class MagicContrast(Struct, kw_only=True):
    """Two tasks that differ in the boxes that are drawn.

    Attributes:
        contrast: relevant - all, all - none, relevant - none
        first: task that is subtracted
        second: task that it is subtracted from
        items: in both
        differences: by metric
    """

    model: str
    contrast: Literal["distraction", "boxes", "hints"]
    first: str
    second: str
    variants: Annotated[list[Variant], Meta(min_length=2, max_length=2)]
    items: Some
    only_first: Count
    only_second: Count
    differences: dict[str, MagicDifference]
    minds: list[str]


class MagicShow(Struct, kw_only=True):
    """What `lmms-patch magic show --json` writes: the numbers of MAGIC tasks, and what other boxes change.

    Fractions in 0..1.

    Attributes:
        contrasts: paired by item, images resampled
        notes: what was left aside, and why
    """

    schema: Literal[1]
    tasks: Annotated[list[MagicTask], Meta(min_length=1)]
    contrasts: list[MagicContrast]
    notes: list[str]
