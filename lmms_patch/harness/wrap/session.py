"""The parts of one wrapped task. They are made whole, in the order in which they need each other; other options make a new session."""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lmms_patch.ask.spec import UNWRITTEN
from lmms_patch.ask.views import DESCRIBE, pixels, times_of
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.wrap.aggregate import Aggregations
from lmms_patch.harness.wrap.calls import Again
from lmms_patch.harness.wrap.docs import TaggedDocs, VariantDocs
from lmms_patch.harness.wrap.forms import OrderTable
from lmms_patch.harness.wrap.known import Golds, Known, caption_score
from lmms_patch.harness.wrap.references import References
from lmms_patch.harness.wrap.scorer import Scorer
from lmms_patch.harness.wrap.text_only import TextOnly
from lmms_patch.stats.asking import pilot_of
from lmms_patch.stats.composition import LEAST

_tables: weakref.WeakValueDictionary[str, VariantDocs] = weakref.WeakValueDictionary()
"""The table of the last wrapped task of each name, which is that of the current run."""


class Session:
    """All parts of a wrapped task; of the task's data nothing is read yet.

    Attributes:
        known: the task, before anything is asked.
        asks_again: whether some docs are asked again.
        calls: calls the native aggregations again and again.
        golds: what its docs ask.
        scorer: the native scorer.
        references: what stands in rows beside the views' scores, and scores answers that no model gave.
        text_only: the docs of a ``_tst`` task as a text-only diagnostic sees them; None for other kinds.
        table: all views of all docs.
        aggregations: the aggregations of the task.
    """

    def __init__(self, known: Known) -> None:
        """Make the parts.

        Raises:
            CannotWrapError: a ``_tst`` task goes by a metric whose lower values are better.
        """
        self.known, spec = known, known.spec
        kind, options, lower = spec.kind, spec.options, known.higher.get(known.primary) is False
        if kind.folds and lower:
            told = "a text-only diagnostic chooses what scores highest; name another metric with 'metric'"
            raise CannotWrapError(f"{spec.name}: lower {known.primary} is better, and {told}")
        # a judge would be asked as often as the model, so only where somebody wants that
        wanted = not known.judge or "steady" in options.given
        self.asks_again = spec.asks_again and wanted and not known.predict_only and not lower
        # a first call may take long by itself
        self.calls = Again(known.native, known.state, 10 * options.seconds)
        self.golds = Golds(known)
        captions = caption_score(self.golds) if options.scorer == "cider_d" else None
        self.scorer = Scorer(known, self.calls, captions)
        messages = known.chat and known.own_messages
        moves = kind.turns or self.asks_again
        self.references = References(self.golds, self.scorer)
        self.text_only = TextOnly(self.golds, self.references) if kind.folds else None
        self.table = VariantDocs(
            known,
            self.golds.read,
            orders=OrderTable(self.golds, self.scorer, messages=messages) if moves else None,
            asks_again=self._times_of if self.asks_again else None,
            text_only=self.text_only,
        )
        _tables[spec.name] = self.table
        self.aggregations = Aggregations(
            known, self.calls, self.golds, lambda: {} if self.text_only is None else self.text_only.found.about
        )

    @property
    def docs(self) -> TaggedDocs:
        """The docs, each with its number."""
        return TaggedDocs(self.known.rows, lambda: self.known.plain_rows)

    @property
    def request_type(self) -> str:
        """What lmms-eval calls the task's requests: ``loglikelihood`` or ``generate_until``."""
        return "loglikelihood" if self.known.by_index else "generate_until"

    @property
    def filters(self) -> Sequence[Any]:
        """The base's filter pipelines."""
        return list(self.known.base._filters or ())

    def described(self) -> dict[str, Any]:
        """Return all settings of views and index, in plain JSON types.

        The host's response cache goes by it: a run with a larger ``null`` must find the answers of an earlier run.
        """
        spec, table = self.known.spec, self.table
        described = {"schema": 1, "pixels": pixels(spec), **spec.described(), "metric": self.known.primary}
        # an option that changes no answer must not keep a run from finding earlier answers
        for name in UNWRITTEN:
            described["options"].pop(name)
        if table.wrong is not None:
            described["wrong_images"] = table.wrong.digest
        if spec.kind.needs_video or table.shelf.shows_clips:
            clip = dataclasses.asdict(table.shelf.sampling)
            described["clip"] = {name: value for name, value in clip.items() if name != "reader" or value}
        # a new id each time: a cached answer would come without a diagnosis
        run = {} if self.text_only is None else {"run": self.text_only.run_id}
        boxes = {} if table.boxes is None else {"boxes": table.boxes.digest}
        return {**described, **run, **boxes}

    def evaluate(self, doc_ids: Sequence[int]) -> None:
        """Set which docs are evaluated, on all ranks together. Called before the first doc is scored."""
        self.golds.evaluate(doc_ids)
        if self.table.wrong is not None:
            self.table.wrong.evaluate(doc_ids)

    def numbers_of(self, doc_id: int) -> Sequence[int]:
        """Return the numbers of a doc's views in this run."""
        if doc_id in self.known.state.plan.numbers:
            return self.known.state.plan.numbers[doc_id]
        views = self.table.views_of(doc_id)
        return range(len(views) - (DESCRIBE in views))

    def _times_of(self, doc_id: int) -> int:
        """Return how often the views of a doc are asked; 0 where the doc is asked once alone."""
        again = self.again
        return self.times if again is None or doc_id in again else 0

    @property
    def again(self) -> frozenset[int] | None:
        """The docs asked again; None: all. A run with views left out asks docs of its pilot again."""
        options, wrong = self.known.spec.options, self.table.wrong
        assert wrong is not None
        if self.known.spec.leaves_out:
            pilot = pilot_of(options.pilot, wrong.docs)
            return wrong.some(min(pilot, options.null, pilot if options.steady == "all" else options.steady))
        return None if options.steady == "all" else wrong.some(min(options.steady, options.null))

    @functools.cached_property
    def times(self) -> int:
        """How often the views of docs asked again are asked, by the commonest number of options.

        0 of captions, which are not right or wrong, and where too few docs would be asked again to say anything.
        """
        answers = [] if self.golds.plan is None else [*self.golds.plan.answers.values()]
        wrong = self.table.wrong
        few = wrong is None or len(wrong.sampled if (again := self.again) is None else again) < LEAST
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
