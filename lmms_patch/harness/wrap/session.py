"""The parts of one wrapped task. They are made whole, in the order in which they need each other; other options make a new session."""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_patch.ask.spec import UNWRITTEN, WrapSpec
from lmms_patch.ask.views import pixels, times_of, views_of
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.names.effects import calls_judge
from lmms_patch.harness.wrap.aggregate import Aggregations
from lmms_patch.harness.wrap.boxes import BoxTable
from lmms_patch.harness.wrap.docs import TaggedDocs, VariantDocs
from lmms_patch.harness.wrap.golds import CaptionScore, Golds
from lmms_patch.harness.wrap.metrics import Metrics
from lmms_patch.harness.wrap.orders import OrderTable
from lmms_patch.harness.wrap.primary import primary_of
from lmms_patch.harness.wrap.references import References
from lmms_patch.harness.wrap.scorer import Scorer
from lmms_patch.harness.wrap.state import RunState
from lmms_patch.harness.wrap.swap import WrongImages, said
from lmms_patch.harness.wrap.text_only import TextOnly
from lmms_patch.stats.asking import pilot_of
from lmms_patch.stats.composition import LEAST

_tables: weakref.WeakValueDictionary[str, VariantDocs] = weakref.WeakValueDictionary()
"""The table of the last wrapped task of each name, which is that of the current run."""


@dataclass(frozen=True)
class Rows:
    """The docs of a base task in every available form.

    Attributes:
        base: the base task.
        state: says whether the host scores with media.
    """

    base: Any
    state: RunState

    def with_media(self) -> Any:
        """Return the docs with their media."""
        return self.base.eval_docs

    def plain(self) -> Any:
        """Return the docs, without media where the base can."""
        return getattr(self.base, "eval_docs_no_media", self.base.eval_docs)

    def scored(self) -> Any:
        """Return the docs as the host hands them to scorers."""
        with_media = getattr(self.state.args, "process_with_media", False) or not hasattr(
            self.base, "eval_docs_no_media"
        )
        return self.base.eval_docs if with_media else self.base.eval_docs_no_media


class Session:
    """All parts of a wrapped task.

    Attributes:
        about_metric: how the primary metric was chosen, where that is worth a line.
        asks_again: whether some docs are asked again.
        metrics: the base task's metrics.
        golds: what is known of the docs.
        scorer: the native scorer.
        orders: the orders of docs' options; None where docs are asked in their own order alone.
        references: what stands in records beside the views' scores, and scores answers that no model gave.
        text_only: the docs of a ``_tst`` task as a text-only diagnostic sees them; None for other kinds.
        boxes: the docs' own boxes; None for kinds without.
        table: all views of all docs.
        aggregations: the aggregations of the task.
    """

    def __init__(self, base: Any, spec: WrapSpec, state: RunState, *, predict_only: bool = False) -> None:
        """Make the parts; of the task's data nothing is read yet, or some docs where it has several metrics.

        Args:
            base: the native task.
            spec: what was asked, with all options filled in.
            state: what is known of the run.
            predict_only: whether answers are kept only, and nothing is scored.

        Raises:
            CannotWrapError: the base reports no metric, or a ``_tst`` task one whose lower values are better.
            OptionError: the option ``metric`` names none of the base's metrics.
        """
        self.base, self.spec, self.state, self.predict_only = base, spec, state, predict_only
        self._gold_shares: dict[str, dict[str, float]] = {}
        kind, options = spec.kind, spec.options
        native, higher = dict(base.aggregation()), dict(base.higher_is_better())
        self.rows, judged = Rows(base, state), calls_judge(base) is not None
        primary, self.about_metric = primary_of(spec, list(native))
        # a judge would be asked as often as the model, so only where somebody wants that
        wanted = not judged or "steady" in options.given
        self.asks_again = spec.asks_again and wanted and not predict_only and higher.get(primary) is not False
        self.metrics = Metrics(spec, native, higher, primary, state)
        self.golds = Golds(spec, base, self.rows, primary, silent=judged)
        captions = CaptionScore(self.golds) if options.scorer == "cider_d" else None
        self.scorer = Scorer(spec, base, self.metrics, captions)
        # the host makes another class of task for a chat model
        chat = hasattr(base, "doc_to_messages")
        config = base.config
        # whether the base makes messages itself; else the host makes them of the visuals and the prompt
        own_messages = (
            callable(getattr(config, "doc_to_messages", None)) or getattr(config, "doc_to_visual", None) is None
        )
        self.orders = (
            OrderTable(self.golds, self.scorer, messages=chat and own_messages)
            if kind.turns or self.asks_again
            else None
        )
        self.references = References(self.golds, self.scorer)
        if kind.folds and higher.get(primary) is False:
            told = "a text-only diagnostic chooses what scores highest; name another metric with 'metric'"
            raise CannotWrapError(f"{spec.name}: lower {primary} is better, and {told}")
        self.text_only = TextOnly(spec, base, self.golds, self.references, self.rows.scored) if kind.folds else None
        self.boxes = BoxTable(spec, self.rows.plain) if kind.own_boxes else None
        # a ``_swap`` task shows wrong images alone; further kinds show some for the null
        swaps = kind.swapped or (kind.has_index and options.null)
        self.table = VariantDocs(
            base.eval_docs,
            base,
            views_of(spec),
            options,
            own_messages=own_messages,
            boxes=self.boxes,
            plain=self.rows.plain,
            wrong=functools.partial(WrongImages, spec, self.rows.plain, self.golds.read) if swaps else None,
            orders=self.orders,
            every_order=kind.turns,
            asks_again=self._times_of if self.asks_again else None,
            text_only=self.text_only,
        )
        _tables[spec.name] = self.table
        self.aggregations = Aggregations(spec, self.metrics, state, self.golds, self.text_only)

    @property
    def primary(self) -> str:
        """The metric of the index."""
        return self.metrics.primary

    @property
    def docs(self) -> TaggedDocs:
        """The docs, each with its number."""
        return TaggedDocs(self.base.eval_docs, self.rows.plain)

    @property
    def request_type(self) -> str:
        """What lmms-eval calls the task's requests: ``loglikelihood`` or ``generate_until``."""
        return "loglikelihood" if self.golds.by_index else "generate_until"

    @property
    def filters(self) -> Sequence[Any]:
        """The base's filter pipelines."""
        return list(self.base._filters or ())

    def described(self) -> dict[str, Any]:
        """Return all settings of views and index, in plain JSON types.

        The host's response cache goes by it: a run with a larger ``null`` must find the answers of an earlier run.
        """
        described = {"schema": 1, "pixels": pixels(self.spec), **self.spec.described(), "metric": self.primary}
        # an option that changes no answer must not keep a run from finding earlier answers
        for name in UNWRITTEN:
            described["options"].pop(name)
        if self.table.wrong is not None:
            described["wrong_images"] = self.table.wrong.digest
        if self.spec.kind.needs_video or self.table.shelf.shows_clips:
            described["clip"] = {
                name: value
                for name, value in dataclasses.asdict(self.table.shelf.sampling).items()
                if name != "reader" or value
            }
        # a new id each time: a cached answer would come without a diagnosis
        run = {} if self.text_only is None else {"run": self.text_only.run_id}
        boxes = {} if self.boxes is None else {"boxes": self.boxes.digest}
        return {**described, **run, **boxes}

    def evaluate(self, doc_ids: Sequence[int]) -> None:
        """Set which docs are evaluated, on all ranks together. Called before the first doc is scored."""
        self.golds.evaluate(doc_ids)
        if self.table.wrong is not None:
            self.table.wrong.evaluate(doc_ids)

    def _times_of(self, doc_id: int) -> int:
        """Return how often the views of a doc are asked; 0 where the doc is asked once alone."""
        again = self.again
        return self.times if again is None or doc_id in again else 0

    @property
    def again(self) -> frozenset[int] | None:
        """The docs asked again; None: all. A run with views left out asks docs of its pilot again."""
        options, wrong = self.spec.options, self.table.wrong
        assert wrong is not None
        if self.spec.leaves_out:
            pilot = pilot_of(options.pilot, wrong.docs)
            return wrong.some(min(pilot, options.null, pilot if options.steady == "all" else options.steady))
        return None if options.steady == "all" else wrong.some(min(options.steady, options.null))

    def gold_shares(self, doc_id: int) -> Mapping[str, float] | None:
        """Return how often each answer is the gold of docs that are asked like a doc; None where the doc has options."""
        plan = self.golds.plan
        if plan is None or len(plan.answers[doc_id].options) > 1:
            return None
        stratum = plan.strata[doc_id]
        if stratum not in self._gold_shares:
            golds = [said([plan.answers[one].gold]) for one, of in plan.strata.items() if of == stratum]
            self._gold_shares[stratum] = {gold: count / len(golds) for gold, count in Counter(golds).items()}
        return self._gold_shares[stratum]

    @functools.cached_property
    def times(self) -> int:
        """How often the views of docs asked again are asked, by the commonest number of options.

        0 of captions, which are not right or wrong, and where too few docs would be asked again to say anything.
        """
        answers = [] if self.golds.plan is None else [*self.golds.plan.answers.values()]
        few = (
            self.table.wrong is None
            or len(self.table.wrong.sampled if (again := self.again) is None else again) < LEAST
        )
        if few or any(answer.format == "caption" for answer in answers):
            return 0
        counts = Counter(len(answer.options) for answer in answers)
        return times_of(max(counts, key=lambda count: (counts[count], -count)))

    def calls_on_wrong_images(self, doc_ids: Sequence[int]) -> int:
        """Count the requests on wrong images, without those that ask again."""
        views = (self.table.views_of(doc_id) for doc_id in doc_ids)
        return sum(view.swapped and not view.repeat for of_doc in views for view in of_doc)


def was_shown(task: str, doc_id: int) -> bool:
    """Return whether a wrapped task could show all images of a doc, as far as asked; True for native tasks."""
    table = _tables.get(task)
    return table is None or not table.cutter.has_stand_in(doc_id)
