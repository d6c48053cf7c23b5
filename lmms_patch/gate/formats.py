"""The types of what ``lmms-patch gate`` writes; the rules that it reads are in ``gate.rules``."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType, field

from lmms_patch.gate.limits import Basis, Call
from lmms_patch.present.formats import Value
from lmms_patch.stats.bounds import Number

Shape = TypeVar("Shape")
"""What a number with its interval is: an ``Estimate`` in memory, a ``Value`` in the file."""


class Made(Struct, kw_only=True):
    """What made the file."""

    lmms_patch: str | UnsetType = UNSET


class Ruling(Struct, Generic[Shape], frozen=True, kw_only=True):
    """What a rule says of one number.

    Attributes:
        metric: A number of docs/metrics.md, gate, looks, checked, excluded or n_docs; in bars: its distance from 0.
        limit: In words, with the margin.
        value: With its interval at level.
        baseline: The baseline's number, over the docs of the difference.
        difference: value - baseline, with its interval at level; null: value itself is judged.
        primary: Whether it is the primary number of its comparison with the baseline, which carries the claim; null: no
            difference is judged.
        level: Of this one interval, after the correction; null: no interval decides.
        detectable: How far beyond limit and margin the truth must be to fail in 80 % of runs; null: nothing varies, or
            no interval decides.
        basis: Paired or unpaired difference, the number's own interval, or the number alone.
        warned: Inconclusive, and the rule says that this does not block.
        reason: Why, in one line; may be empty.
        base: The benchmark.
        measure: The number as people know it: the benchmark's own metric in place of fip and score.
        least: The lower end of what is allowed, limit and margin together; null: there is none.
        most: The upper end, likewise.
    """

    rule: str
    task: str
    model: str
    metric: str
    limit: str
    value: Shape
    baseline: Number | None = None
    baseline_model: str | None = None
    difference: Shape | None = None
    primary: bool | None = None
    level: Number | None = None
    detectable: Number | None = None
    basis: Basis = "number"
    call: Call = field(name="verdict", default="fail")
    warned: bool = False
    reason: str = ""
    base: str = ""
    measure: str = ""
    least: Number | None = None
    most: Number | None = None


class Verdict(Ruling[Value], frozen=True, kw_only=True):  # noqa: D101 - the next line gives it the docstring of Ruling
    __doc__ = Ruling.__doc__


class GateJson(Struct, kw_only=True):
    """What `lmms-patch gate --json` writes: every verdict, and the exit status.

    Attributes:
        status: The exit status.
        sentence: The verdict with the fact that matters: the first line that the command prints.
        counts: How many verdicts there are of each kind, in words.
        error: Why nothing could be judged.
    """

    schema: Literal[1]
    status: Literal[0, 1, 2, 3]
    verdict: Literal["passed", "failed", "bad input", "inconclusive"]
    sentence: str
    counts: str
    error: str | None
    config: str
    out: str
    baseline: str | None
    made: Made
    notes: list[str]
    verdicts: list[Verdict]
