"""The result of a comparison, whatever was compared, and the check that two results may be compared at all. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_patch.compare.checks import in_words
from lmms_patch.errors import RecordError
from lmms_patch.runs.run import Result, differences
from lmms_patch.stats.paired import Difference, McNemar


@dataclass(frozen=True)
class Compared:
    """The comparison of two results of a task.

    Attributes:
        task: the second's name, with its filter where it has several.
        metric: the primary metric.
        docs: number of docs that are compared: both runs have scored them.
        only_first, only_second: ids of docs that only one of them asked; of MAGIC tasks the names of their docs.
        unscored: number of docs that both asked and that one of them could not score.
        differences: by name (``measures``), second less first.
        mcnemar: McNemar's test of the first view's 0/1 scores; None for other scores. "Right" is the better score.
        settings: other differences between the two, in words.
        warnings: what a reader must know, one line each.
        base: the benchmark.
        kind: of the second (``ask.kinds.KINDS``).
        index: ``rci``, ``pcri`` or None, of the second.
        higher: whether higher is better.
        clusters: number of clusters of the docs; None where docs are independent.
        draws: of the bootstrap.
        identical: whether the two score the same on every doc and view.
        tests: McNemar's test of each metric whose scores are 0 or 1, where a task has several (MAGIC); else empty.
        lower: the numbers that are better when lower, of tasks with numbers of several directions (MAGIC); else empty.
        marks: of each index that is not luck-corrected, by name, how the luck-corrected one of a run contradicts it, a
        line for each such run.
        unchanged: the second's numbers (``measures``) of which no answer changed: all docs of both runs, also docs
            without a score, have the same scores in all views that the number is made of. Equal numbers alone do not
            show that.
        bounds: of the numbers that a judge gives and that lack verdicts (MAGIC): the least and the greatest difference
            (``magic.bounds``).
    """

    task: str
    metric: str
    docs: int
    only_first: tuple[int | str, ...]
    only_second: tuple[int | str, ...]
    unscored: int
    differences: Mapping[str, Difference]
    mcnemar: McNemar | None
    settings: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    base: str = ""
    kind: str = ""
    index: str | None = None
    higher: bool = True
    clusters: int | None = None
    draws: int = 0
    identical: bool = False
    tests: Mapping[str, McNemar] = field(default_factory=dict)
    lower: tuple[str, ...] = ()
    marks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unchanged: tuple[str, ...] = ()
    bounds: Mapping[str, tuple[Difference, Difference]] = field(default_factory=dict)


def matches(one: Result, other: Result) -> bool:
    """Return whether two results have the same benchmark, kind and filter (rci and pcri count as the same kind)."""
    ways = [plain_name(result.kind.name) for result in (one, other)]
    return one.base == other.base and ways[0] == ways[1] and one.filter == other.filter


def fingerprints(first: Result, second: Result, same: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fingerprints of two results.

    Args:
        first: a result.
        second: the result of the other side.
        same: the settings that two results must share to be compared at all.

    Raises:
        RecordError: they differ in one of these.
    """
    prints = first.fingerprint, second.fingerprint
    apart = differences({key: prints[0][key] for key in same}, prints[1])
    if apart:
        raise RecordError(
            f"{first.task} and {second.task} cannot be compared: other {', other '.join(in_words(apart))}"
        )
    return prints


def primary_of(compared: Compared) -> str:
    """Return the name of the comparison's main number: the task's primary metric on the first view.

    >>> primary_of(Compared("gqa_rci3", "exact_match", 9, (), (), 0, {"fip": None, "rci3": None}, None, ()))
    'fip'
    """
    return next((name for name in (compared.metric, "fip", "tst", "score") if name in compared.differences), "")


def plain_name(name: str) -> str:
    """Return a number's name with pcri spelled rci, since both name the same number."""
    return f"rci{name.removeprefix('pcri')}" if name.startswith("pcri") else name
