"""The types of what ``lmms-patch compare --json`` writes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lmms_patch.ask.kinds import ANY_INDEX
from lmms_patch.stats.bounds import Count, Level, Number, Share, Some, one_of
from lmms_patch.stats.resample import Estimate


class Side(Struct, kw_only=True):
    """One of the two runs.

    Attributes:
        path: as it was given
        files: results files that were used
        older: older results of the same tasks that were left aside
        only: tasks that the other does not have
    """

    path: str
    model: str
    files: list[str]
    older: Count
    only: list[str]


class McNemarJson(Struct, kw_only=True):
    """McNemar's test.

    Attributes:
        only_first: docs that only A has right
        only_second: docs that only B has right
        p: exact, two-sided; docs taken as independent
    """

    only_first: Count
    only_second: Count
    p: Share


class NumberJson(Struct, kw_only=True):
    """One number of both runs, and how far they differ.

    Attributes:
        name: fip, mpp<n>, rci<n> or pcri<n>, gap<n>; score; tst
        primary: whether it is the one number of the task that carries the claim; the others are corrected together
        first: A's, over the compared docs
        second: B's, over the compared docs
        p: two-sided; null without an interval
        p_holm: p, corrected by Holm's method: of a primary number over the tasks, of the others over all others of all
        tasks
        tests: over how many p-values it is corrected
        detectable: difference that would be found with 80 % power at the level 1 - (1 - level) / tests; null where too
        little differs to say
        differing: in how many clusters (docs) the two differ; null: not counted
    """

    name: str
    primary: bool
    first: Number | None
    second: Number | None
    difference: Estimate
    p: Share | None
    p_holm: Share | None
    tests: Count
    detectable: Number | None
    differing: Count | None


class TaskJson(Struct, kw_only=True):
    """One task of both runs.

    Attributes:
        first: its name in A
        second: its name in B
        metric: the primary metric
        docs: compared: scored in both
        only_first: ids of docs that only A asked; of MAGIC tasks their names
        only_second: ids of docs that only B asked; of MAGIC tasks their names
        unscored: docs of both that one of them could not score
        mcnemar: of 0/1 scores of the first view; null for others
        settings: in what else the two differ
        warnings: what to mind
        base: the benchmark
        kind: how it was wrapped, in B
        index: name of the index, in B
        higher: whether higher scores are better
        clusters: number of clusters; null where docs are independent
        draws: of the bootstrap
        identical: whether both score the same on every doc and view
        tests: of MAGIC tasks, by metric: docs that count 0 or 1 in it; right is the better score
        lower: of MAGIC tasks: the numbers that are better when lower
        marks: by index: how the luck-corrected index of a run contradicts it, a line for each such run
    """

    first: str
    second: str
    metric: str
    docs: Count
    only_first: list[int | str]
    only_second: list[int | str]
    unscored: Count
    mcnemar: McNemarJson | None
    settings: list[str]
    warnings: list[str]
    base: str
    kind: str
    index: Annotated[str, one_of(ANY_INDEX.split("|"))] | None
    higher: bool
    clusters: Some | None
    draws: Count
    identical: bool
    numbers: list[NumberJson]
    tests: dict[str, McNemarJson] | UnsetType = UNSET
    lower: list[str] | UnsetType = UNSET
    marks: dict[str, list[str]] | UnsetType = UNSET


class CompareJson(Struct, kw_only=True):
    """What `lmms-patch compare --json` writes: the differences of two runs, second (B) less first (A), on each metric's own scale.

    Attributes:
        lmms_patch: version that wrote it
        first: A
        second: B
        same_run: both are one run: the same results file, or a copy of it
        level: nominal coverage of the intervals, a fraction
        seed: of the bootstrap
        tasks: those that both have
    """

    schema: Literal[1]
    lmms_patch: str
    first: Side
    second: Side
    same_run: bool
    level: Level
    seed: Count
    tasks: Annotated[list[TaskJson], Meta(min_length=1)]
