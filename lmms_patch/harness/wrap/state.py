"""What becomes known of a wrapped task while it runs: the host's arguments, kept answers, and how docs are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_patch.runs.scored import Asked
from lmms_patch.stats.forms import Form


@dataclass(frozen=True)
class AskPlan:
    """The views of each doc asked in a run with views left out. ``asking.quick`` makes the plan.

    Attributes:
        form: the form of the primary metric's aggregation, known before the model is asked; None where it is not known.
        asked: by doc id, how each evaluated doc was asked. Docs that are not in it were asked whole.
        numbers: by doc id, the numbers of the views that were asked, ascending, for the docs of this rank.
    """

    form: Form | None = None
    asked: Mapping[int, Asked] = field(default_factory=dict)
    numbers: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @property
    def sampled(self) -> bool:
        """Whether docs were left out."""
        return any(min(asked.p) < 1 for asked in self.asked.values())


@dataclass
class RunState:
    """What is known of the run so far.

    Attributes:
        args: the host's command-line arguments, which the host sets before it scores.
        kept: how many of the task's answers an earlier process of the same command gave.
        plan: how docs are asked.
    """

    args: Any = None
    kept: int = 0
    plan: AskPlan = field(default_factory=AskPlan)

    def hand(self, args: Any) -> None:
        """Take the host's arguments."""
        self.args = args

    def keep(self, answers: int) -> None:
        """Note answers of an earlier process: whoever could write its journal could have written them."""
        self.kept += answers

    def ask(self, plan: AskPlan) -> None:
        """Take note of how docs are asked."""
        self.plan = plan
