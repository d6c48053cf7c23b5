"""What is known of a native task before anything is asked: its metrics, its docs in every form, and the state of its run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_patch.ask.kinds import Key, end
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness import compat
from lmms_patch.harness.names.effects import calls_judge
from lmms_patch.harness.wrap.calls import Aggregation
from lmms_patch.stats.forms import Form

_OVER_ALL = re.compile(r"(^|[\W_])(average|overall|all)([\W_](acc|accuracy|score))*$", re.IGNORECASE)
"""What a metric over all docs is called among metrics over categories: ``average``, ``seed_all``, ``overall_accuracy``."""
_ONLY_A_FILE = "submission"
"""What lmms-eval calls a metric that writes the answers into a file and gives no number."""


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
    """What becomes known of a task while it runs.

    Attributes:
        args: the host's command-line arguments, which the host sets before it scores.
        kept: how many of the task's answers an earlier process of the same command gave.
        plan: how docs are asked.
    """

    args: Any = None
    kept: int = 0
    plan: AskPlan = field(default_factory=AskPlan)

    def note(self, **what: Any) -> None:
        """Set what has become known."""
        vars(self).update(what)


@dataclass(frozen=True)
class Known:
    """A native task, how it is wrapped, and its metrics.

    Attributes:
        base: the native task.
        spec: what was asked, with all options filled in.
        state: what is known of the run.
        predict_only: whether answers are kept only, and nothing is scored.
        native: the base's aggregations by metric.
        higher: whether higher is better, by metric.
        primary: the metric that the index is built on.
        about_primary: how it was chosen, where that is worth a line.
        judge: the client by which its scorer calls a judge or the network; None where it calls neither. Such a scorer is
            never called for references.
    """

    base: Any
    spec: WrapSpec
    state: RunState
    predict_only: bool
    native: Mapping[str, Aggregation]
    higher: Mapping[str, bool]
    primary: str
    about_primary: str
    judge: str | None

    @classmethod
    def of(cls, base: Any, spec: WrapSpec, state: RunState, *, predict_only: bool = False) -> Known:
        """Read what a native task says of itself.

        Raises:
            CannotWrapError: the base reports no metric.
            OptionError: the option ``metric`` names none of the base's metrics.
        """
        native = dict(base.aggregation())
        chosen = primary_of(spec, list(native))
        return cls(base, spec, state, predict_only, native, dict(base.higher_is_better()), *chosen, calls_judge(base))

    @property
    def names(self) -> list[str]:
        """The metrics, the primary one first."""
        return list(dict.fromkeys([self.primary, *self.higher]))

    @property
    def by_index(self) -> bool:
        """Whether answers are places among the options: those of log-likelihood tasks."""
        return (self.base.OUTPUT_TYPE or self.base.config.output_type) == "multiple_choice"

    @property
    def chat(self) -> bool:
        """Whether the model is asked by messages: the host makes another class of task for a chat model."""
        return hasattr(self.base, "doc_to_messages")

    @property
    def own_messages(self) -> bool:
        """Whether the base makes messages itself; else the host makes them of the visuals and the prompt."""
        config = self.base.config
        return callable(getattr(config, "doc_to_messages", None)) or getattr(config, "doc_to_visual", None) is None

    @property
    def rows(self) -> Any:
        """The docs with their media."""
        return self.base.eval_docs

    @property
    def plain_rows(self) -> Any:
        """The docs, without media where the base can."""
        return getattr(self.base, "eval_docs_no_media", self.base.eval_docs)

    @property
    def scored_rows(self) -> Any:
        """The docs as the host hands them to scorers."""
        return self.rows if getattr(self.state.args, "process_with_media", False) else self.plain_rows

    def over_cells(self, metric: str, key: Key) -> str:
        """Name a metric over each doc's chosen cell: ``m_mpp3``, ``m_mpp_relevant``, or ``m_drop3`` where cells are hidden."""
        return f"{metric}_{'mpp' if self.spec.kind.keeps_best else 'drop'}{end(key)}"

    def primary_among(self, items: Mapping[str, Any]) -> str | None:
        """Return the primary metric, or else the first metric of a doc (each doc of MME has only half of them)."""
        return self.primary if self.primary in items else next((m for m in self.native if m in items), None)


def primary_of(spec: WrapSpec, native: list[str]) -> tuple[str, str]:
    """Return the metric behind the index, and a line on the choice; "" where there was none.

    It is the option's. Else it is the first in the task's list that its name says is over all docs; else the first. No
    scorer is called to find out: some write files.

    Args:
        spec: what was asked.
        native: the base's metrics, in the order of its list.

    Raises:
        CannotWrapError: there is no metric.
        OptionError: a task file names a metric that is not there.
    """
    wanted, about = spec.options.metric, ""
    if not native:
        raise CannotWrapError(f"{spec.name}: {spec.base} reports no metric")
    # under --predict_only the host leaves a single metric, whatever was asked
    if wanted is not None and native != [compat.OUTPUT_ONLY]:
        if wanted in native:
            return wanted, ""
        # only what a user wrote is refused; a shipped profile gives way
        if "metric" in spec.options.given:
            raise OptionError(f"{spec.name}: {spec.base} has no metric {wanted!r}; allowed: {', '.join(native)}")
        about = f"its profile's metric {wanted!r} is not there; "
    numbers = [name for name in native if name != _ONLY_A_FILE] or native
    named = next(filter(_OVER_ALL.search, numbers), None)
    if len(native) > 1 and spec.sets:
        why = "the one over all docs by its name," if named else "the first,"
        about += f"{len(native)} metrics; the index is built on {why} {named or numbers[0]!r} (option 'metric' chooses another)"
    return named or numbers[0], about.removesuffix("; ")
