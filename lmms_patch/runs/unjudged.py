"""Bounds of the numbers that a judge gives: what they would be, were all docs without a verdict wrong, or all right.

Pure.

With s of k judged docs right and u docs unjudged, a number s / k lies between s / (k + u) and (s + u) / (k + u),
whatever the judge would have said. A judge that refuses long answers may refuse just the wrong ones, so the number
alone may be far from the truth, and looks like any other.

A difference of two runs has such bounds too (``compare.magic.bounds``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmms_patch.stats.bounds import Count
from lmms_patch.stats.intervals import of_file
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
        return (
            self.low.value is not None
            and self.high.value is not None
            # bounds just a point apart may come out a trace further
            and self.high.value - self.low.value > A_POINT + 1e-12
        )

    @property
    def span(self) -> str:
        """Both, in words."""
        low, high = ("n/a" if end.value is None else f"{end.value:.3f}" for end in (self.low, self.high))
        return f"{low} to {high} with the unjudged"


def stored_bounds(about: Mapping[str, Any]) -> dict[str, Bounds]:
    """Return the bounds of the numbers of a results file.

    Earlier versions wrote none. Theirs are the number and its interval, v, moved to v·k / (k + u) and (v·k + u) / (k +
    u); none where no doc has a verdict.

    Args:
        about: the ``magic`` object of the file.
    """
    counts, out = about.get("counts", {}), {}
    for name in BY_JUDGE:
        kept = about.get("bounds", {}).get(name)
        unjudged = int(counts.get(f"unjudged_{name}") or 0) - int(counts.get(f"without_gold_{name}") or 0)
        if kept is not None:
            out[name] = Bounds(
                of_file(kept["low"], (0.0, 1.0)), of_file(kept["high"], (0.0, 1.0)), int(kept["unjudged"])
            )
        elif unjudged > 0 and about["numbers"].get(name, {}).get("value") is not None:
            one = of_file(about["numbers"][name], (0.0, 1.0))
            out[name] = Bounds(_with(one, unjudged, 0.0), _with(one, unjudged, 1.0), unjudged)
    return out


def _with(one: Estimate, more: int, worth: float) -> Estimate:
    """Return the mean of scores with some more docs, all of the same worth."""
    own = one.n / (one.n + more)
    value, low, high = (
        None if end is None else end * own + worth * (1 - own) for end in (one.value, one.low, one.high)
    )
    return dataclasses.replace(one, value=value, low=low, high=high, n=one.n + more)
