"""The types of what ``lmms-patch gate`` writes; the rules that it reads are in ``gate.rules``."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from lmms_patch.present.formats import Value
from lmms_patch.stats.bounds import Number


class Made(Struct, kw_only=True):
    """What made the file."""

    lmms_patch: str | UnsetType = UNSET


class Verdict(Struct, kw_only=True):
    """What a rule says of one number.

    Attributes:
        metric: A number of docs/metrics.md, gate, looks, checked, excluded or n_docs; in bars: its distance from 0.
        base: The benchmark.
        measure: The number as people know it: the benchmark's own metric in place of fip and score.
        least: The lower end of what is allowed, limit and margin together; null: there is none.
        most: The upper end, likewise.
        baseline: The baseline's number, over the docs of the difference.
        difference: value - baseline.
        primary: Whether it is the primary number of its comparison with the baseline, which carries the claim; null: no
        difference is judged.
        level: Of this one interval, after the correction; null: no interval decides.
        detectable: How far beyond limit and margin the truth must be to fail in 80 % of runs.
        warned: Inconclusive, and the rule says that this does not block.
    """

    rule: str
    task: str
    model: str
    metric: str
    limit: str
    value: Value
    base: str
    measure: str
    least: Number | None
    most: Number | None
    baseline: Number | None
    baseline_model: str | None
    difference: Value | None
    primary: bool | None
    level: Number | None
    detectable: Number | None
    basis: Literal["paired", "unpaired", "interval", "number"]
    verdict: Literal["pass", "fail", "inconclusive"]
    warned: bool
    reason: str


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
