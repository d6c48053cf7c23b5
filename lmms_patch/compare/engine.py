"""What a comparison of two results, doc by doc, says: the contract between ``paired``, ``magic_pairs`` and those that show it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lmms_patch.stats.paired import Difference, McNemar


@dataclass(frozen=True)
class Compared:
    """Two results of one task.

    Attributes:
        task: the second's name, with its filter where it has several.
        metric: the primary metric.
        docs: docs that both have scored, and that are compared.
        only_first, only_second: ids of docs that only one of them asked; of MAGIC tasks the names of their docs.
        unscored: docs that both asked and that one of them could not score.
        differences: by name (``measures``), second less first.
        mcnemar: of 0/1 scores; None for others. "Right" is the better score.
        settings: in what else the two differ, in words.
        warnings: what to mind.
        base: the benchmark.
        kind: of the second (``spec.KINDS``).
        index: ``rci``, ``pcri`` or None, of the second.
        higher: whether higher is better.
        clusters: number of clusters of the docs; None where docs are independent.
        draws: of the bootstrap.
        identical: whether the two score the same on every doc and view.
        unchanged: the second's numbers (``measures``) of which no answer changed: every doc of both, also one that could not be scored, has
            the same scores in all views that the number is made of. Equal numbers alone do not show that.
        tests: McNemar's test of each metric whose scores are 0 or 1, where a task has several (MAGIC); else empty.
        lower: the numbers that are better when lower, of tasks with numbers of several directions (MAGIC); else empty.
        marks: of each index as published, by name, how the corrected index of a run contradicts it, a line for each such run.
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


def primary_of(found: Compared) -> str:
    """Return the name of the number that carries a comparison: the task's primary metric on its first view.

    >>> primary_of(Compared("gqa_rci3", "exact_match", 9, (), (), 0, {"fip": None, "rci3": None}, None, ()))
    'fip'
    """
    return next((name for name in (found.metric, "fip", "tst", "score") if name in found.differences), "")


def plain_name(name: str) -> str:
    """A number's name with pcri called rci: they are one."""
    return f"rci{name.removeprefix('pcri')}" if name.startswith("pcri") else name
