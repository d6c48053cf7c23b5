"""The values of a comparison, as ``lmms-patch compare --json`` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from lmms_patch import __version__
from lmms_patch.ask.kinds import INDICES
from lmms_patch.stats.bounds import Count, Level, Number, Share, Some, one_of
from lmms_patch.stats.paired import Difference, McNemar
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import html_table


class Side(Struct, frozen=True):
    """One of the two runs, or folders of runs.

    Attributes:
        path: as it was given
        model: made different from the other side's
        older: older results of the same tasks that were left aside
        only: tasks that the other does not have
    """

    path: str
    model: str
    older: Count
    only: tuple[str, ...]


class Change(Struct, frozen=True):
    """One number of both runs, and how far they differ.

    Attributes:
        name: fip (of a text-only run tst, of a run without the full image score), mpp<n>, rci<n> or pcri<n>, gap<n>, ...
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


class Task(Struct, frozen=True, kw_only=True):
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
        numbers: the primary one first
        lower: of MAGIC tasks: the numbers that are better when lower
        marks: by index: how the steady index of a run contradicts it, a line for each such run
        bounds: of the numbers that a judge gives and that lack verdicts (MAGIC): the least and the greatest difference
            (``magic.bounds``)
    """

    first: str
    second: str
    metric: str
    docs: Count
    only_first: tuple[int | str, ...]
    only_second: tuple[int | str, ...]
    unscored: Count
    mcnemar: McNemar | None
    settings: tuple[str, ...]
    warnings: tuple[str, ...]
    base: str
    kind: str
    index: Annotated[str, one_of(INDICES)] | None
    higher: bool
    clusters: Some | None
    draws: Count
    identical: bool
    numbers: tuple[Change, ...] = ()
    lower: tuple[str, ...] = ()
    marks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bounds: Mapping[str, tuple[Difference, Difference]] = field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, Change]:
        """The numbers by their names."""
        return {number.name: number for number in self.numbers}


def numbers_of(differences: Mapping[str, Difference], primary: str) -> tuple[Change, ...]:
    """Return differences by name as the numbers of a task, p-values uncorrected.

    Args:
        differences: by name, second less first.
        primary: the name of the one that carries the claim.
    """
    return tuple(
        Change(name, name == primary, one.first, one.second, one.estimate, one.p, None, 0, None, one.differing)
        for name, one in differences.items()
    )


class Comparison(Struct, frozen=True, kw_only=True):
    """What `lmms-patch compare --json` writes: the differences of two runs, second (B) less first (A), on each metric's own scale.

    Attributes:
        lmms_patch: version that wrote it
        first: A
        second: B
        same_run: both are one run: the same results file, or a copy of it
        level: nominal coverage of the intervals, a fraction
        tasks: those that both have
    """

    schema: Literal[1] = 1
    lmms_patch: str = __version__
    first: Side
    second: Side
    same_run: bool
    level: Level
    tasks: Annotated[tuple[Task, ...], Meta(min_length=1)]

    @property
    def alpha(self) -> float:
        """The largest p-value, corrected by Holm, at which a difference is shown."""
        # float error must not decide on a p-value at the limit
        return 1 - self.level + 1e-12

    def _repr_html_(self) -> str:
        """Return a table of the differences for a notebook."""
        rows = []
        for task in self.tasks:
            for one in task.numbers:
                found = one.first, one.second, one.difference.value, one.difference.low, one.difference.high, one.p_holm
                rows.append([task.second, one.name, *("" if end is None else f"{end:.3f}" for end in found)])
        return html_table(
            ["task", "number", self.first.model, self.second.model, "difference", "low", "high", "p (Holm)"], rows
        )
