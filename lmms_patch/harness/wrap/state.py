"""What becomes known of a wrapped task while it runs: the host's arguments, kept answers, and how docs are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_patch.stats.forms import Form


@dataclass(frozen=True)
class AskPlan:
    """The views of each doc asked in a run with views left out. ``asking.quick`` makes the plan.

    Attributes:
        form: the form of the primary metric's aggregation, known before the model is asked; None where it is not known.
        asked: by doc id, how each evaluated doc was asked, as column ``quick`` says. Docs that are not in it were asked whole.
        numbers: by doc id, the numbers of the views that were asked, ascending, for the docs of this rank.
        sampled: whether docs were left out.
    """

    form: Form | None = None
    asked: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    numbers: Mapping[int, Sequence[int]] = field(default_factory=dict)
    sampled: bool = False

    def is_asked(self, doc_id: int) -> bool:
        """Return whether any view of a doc was asked."""
        return doc_id not in self.asked or self.asked[doc_id]["steps"] > 0


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
