"""The verdicts of a gate, as ``lmms-patch gate --json`` writes them; the rules that it reads are in ``gate.rules``."""

from __future__ import annotations

from msgspec import Struct

from lmms_patch.gate.limits import Basis, Call
from lmms_patch.stats.bounds import Number
from lmms_patch.stats.resample import Estimate


class Verdict(Struct, frozen=True, kw_only=True):
    """What a rule says of one number.

    Attributes:
        metric: A number of docs/metrics.md, gate, looks, complete, excluded or n_docs; in bars: its distance from 0.
        value: With its interval at level.
        baseline: The baseline's number, over the docs of the difference.
        difference: value - baseline, with its interval at level; null: value itself is judged.
        primary: Whether it is the primary number of its comparison with the baseline, which carries the claim; null: no
            difference is judged.
        level: Of this one interval, after the correction; null: no interval decides.
        basis: Paired or unpaired difference, the number's own interval, or the number alone.
        warned: Inconclusive, and the rule says that this does not block.
        reason: Why, in one line; may be empty.
        measure: The number as people know it: the benchmark's own metric in place of fip and score.
        least: The lower end of what is allowed, limit and margin together; null: there is none.
        most: The upper end, likewise.
    """

    rule: str
    task: str
    model: str
    metric: str
    value: Estimate
    baseline: Number | None = None
    baseline_model: str | None = None
    difference: Estimate | None = None
    primary: bool | None = None
    level: Number | None = None
    basis: Basis = "number"
    verdict: Call = "fail"
    warned: bool = False
    reason: str = ""
    measure: str = ""
    least: Number | None = None
    most: Number | None = None

    @property
    def number(self) -> Estimate:
        """What the limits are of: the difference, or the number itself."""
        return self.value if self.difference is None else self.difference

    @property
    def word(self) -> str:
        """The verdict in lists: ``warned`` where an inconclusive verdict does not block."""
        return "warned" if self.warned else self.verdict
