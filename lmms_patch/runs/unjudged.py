"""Bounds of the numbers that a judge gives: what they would be, were all docs without a verdict wrong, or all right.

Pure.

With s of k judged docs right and u docs unjudged, a number s / k lies between s / (k + u) and (s + u) / (k + u),
whatever the judge would have said. A judge that refuses long answers may refuse just the wrong ones, so the number
alone may be far from the truth, and looks like any other.

A difference of two runs has such bounds too (``compare.magic.bounds``).
"""

from __future__ import annotations

from dataclasses import dataclass

from lmms_patch.stats.bounds import Count
from lmms_patch.stats.resample import Estimate

BY_JUDGE = {"acc_short": "short", "acc_full": "full", "self_heal": "healed"}
"""Metrics that are a judge's verdicts -> the key of the verdict in a doc's record."""
A_POINT = 0.01
"""Bounds that lie farther apart are shown wherever the number is."""


@dataclass(frozen=True)
class Bounds:
    """The bounds of a number.

    Attributes:
        low: were all unjudged docs wrong.
        high: were all of them right.
        unjudged: how many docs have no verdict; at least one.
    """

    low: Estimate
    high: Estimate
    unjudged: Count

    @property
    def matter(self) -> bool:
        """Whether the two lie more than a point apart."""
        low, high = self.low.value, self.high.value
        # bounds just a point apart may come out a trace further
        return low is not None and high is not None and high - low > A_POINT + 1e-12

    @property
    def span(self) -> str:
        """Both, in words."""
        low, high = ("n/a" if end.value is None else f"{end.value:.3f}" for end in (self.low, self.high))
        return f"{low} to {high} with the unjudged"
