"""The rows of each doc: the base's filters and scorer on every view, and what the host gets of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.instance import Instance

from lmms_patch.ask.views import View
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness import compat
from lmms_patch.harness.wrap.aggregate import PatchItem
from lmms_patch.harness.wrap.docs import TaggedDoc, TaggedDocs
from lmms_patch.harness.wrap.filters import apply_filters, as_the_host_will, is_unfinished, tokens_of
from lmms_patch.harness.wrap.requests import Requests
from lmms_patch.harness.wrap.rows import Tokens, rows_of
from lmms_patch.harness.wrap.scorer import Scored, Unanswered
from lmms_patch.harness.wrap.session import Session
from lmms_patch.harness.wrap.swap import said
from lmms_patch.runs.frames import Doc
from lmms_patch.runs.scoring import Scalar
from lmms_patch.stats.composition import KNOWN
from lmms_patch.text import log

_NO_WRONG_IMAGE = "not asked: no other doc shows other images in the same number"


class Recorder:
    """Scores the docs of a session.

    Args:
        session: the parts of the task.
        requests: which views are asked.
    """

    def __init__(self, session: Session, requests: Requests) -> None:
        self._session, self._requests = session, requests
        self._spec, self._table, self._state, self._scorer = session.spec, session.table, session.state, session.scorer
        self._known: dict[tuple[int, int], tuple[str, Scored]] = {}
        """Views that were scored while the model was still asked, by doc id and number, with the answers that were scored."""
        self._warned = False
        self._unfinished = set[tuple[int, int]]()
        self._tokens = dict[tuple[int, int], Tokens]()

    # --- while the model is asked -------------------------------------------------------------------

    def filter_now(self, instances: Sequence[Instance]) -> None:
        """Apply the base's filters to some requests while the model is still asked."""
        adapter = compat.adapter_of(getattr(self._session.base, "model_name", None))
        as_the_host_will(
            instances,
            self._session.filters,
            TaggedDocs(self._session.rows.plain()),
            self._session.base.eval_docs,
            adapter,
            self._session.base.config,
            self._state.args,
        )

    def score_now(self, doc_id: int, filtered: Mapping[int, Sequence[Any]]) -> dict[int, Scalar]:
        """Score some views of a doc while the model is still asked; return the scalar of each by the primary metric.

        ``process_results`` takes these scores as they are, so what was decided by them holds.

        Args:
            doc_id: the doc.
            filtered: by number of the view, the filtered answers: one, or one per choice.
        """
        every, numbers = self._table.views_of(doc_id), sorted(filtered)
        answers = [self._answers(doc_id, every[number], filtered[number]) for number in numbers]
        # as the host will hand the doc to the scorer
        with_media = getattr(self._state.args, "process_with_media", False)
        doc = (self._session.docs if with_media else TaggedDocs(self._session.rows.plain()))[doc_id]
        views = [every[number] for number in numbers]
        scored = self._scorer.score(doc, views, answers, shown=self._shown(doc, views), from_first=0 in filtered)
        out: dict[int, Scalar] = {}
        for number, got, one in zip(numbers, answers, scored, strict=True):
            self._known[doc_id, number] = repr(list(got)), one
            usable = not every[number].n or self._table.cutter.why_unusable(doc_id, every[number].n) is None
            out[number] = one.scores.get(self._session.primary) if usable and not one.unscored else None
        return out

    def names_now(self, doc_id: int, filtered: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """Score some views of a doc while the model is still asked; return what each names: equal for equal answers, None where it names nothing.

        Args:
            doc_id: the doc.
            filtered: as in ``score_now``.
        """
        scores, every, marks = (
            self.score_now(doc_id, filtered),
            self._table.views_of(doc_id),
            self._session.references.marks(doc_id),
        )
        views = [(self._known[doc_id, number][1], filtered[number]) for number in filtered]
        told = self._session.references.named(doc_id, views)
        out: dict[int, Any] = {}
        for number, (one, got), named in zip(filtered, views, told, strict=True):
            assert one.view == every[number]
            score = scores[number]
            if score is None or not marks:
                out[number] = None
            elif score >= KNOWN * marks:
                out[number] = ("gold",)
            else:
                out[number] = (named["names"] or None) if "names" in named else said(got) or None
        return out

    # --- when all is answered -------------------------------------------------------------------------

    def apply_filters(self, instances: Sequence[Instance], filters: Any) -> None:
        """Apply the base's filters once per view and choice.

        Where one fails, report the cause and keep the raw answers.
        """
        adapter = compat.adapter_of(getattr(self._session.base, "model_name", None))
        rows, with_media = TaggedDocs(self._session.rows.plain()), self._session.base.eval_docs
        self._unfinished = {(one.doc_id, one.metadata["view"]) for one in instances if is_unfinished(one)}
        self._tokens = {(one.doc_id, one.metadata["view"]): counted for one in instances if (counted := tokens_of(one))}
        apply_filters(instances, filters, rows, with_media, adapter, self._table.as_shown)

    def process_results(self, doc: Any, results: Sequence[Any], **kwargs: Any) -> dict[str, Any]:
        """Score every view of a doc with the native scorer.

        Args:
            doc: a row that knows its number (from ``eval_docs`` or ``eval_docs_no_media``).
            results: the filtered answers, view by view, each with all choices.
            kwargs: handed on to the native scorer.

        Returns:
            Three groups of metrics, in this order. ``patch``: the rows. Our derived metrics: None, since they are made
            of the rows. The native metrics: the items of the full view. Where that view could not be scored they are
            None, so that the metric is null and not that of the other docs; where its call failed they are what the
            base's scorer makes of the text that stands for the answer. Native metrics come last, because the host takes
            the number of docs from the metric that it aggregates last.
        """
        if not isinstance(doc, TaggedDoc):
            raise CannotWrapError(f"{self._spec.name}: a doc without a number cannot be scored; take it from eval_docs")
        every, numbers = self._table.views_of(doc.doc_id), list(self._requests.numbers_of(doc.doc_id))
        # a doc that nothing was asked of keeps the requests of its first view (``WrappedTask.take``)
        results = results if numbers else []
        if numbers and len(results) % len(numbers):
            raise CannotWrapError(
                f"{self._spec.name}: {len(results)} answers for {len(numbers)} views of doc {doc.doc_id}"
            )
        size, views = len(results) // max(1, len(numbers)), [every[number] for number in numbers]
        answers = [self._answers(doc.doc_id, view, results[i * size : (i + 1) * size]) for i, view in enumerate(views)]
        scored = self._scored(doc, numbers, views, answers, kwargs)
        # nothing was asked about the doc's own image, so its rows begin with a view without scores
        if 0 not in numbers:
            numbers, scored, answers = [0, *numbers], [Scored(every[0]), *scored], [(), *answers]
        saw_its_own_image = self._spec.kind.swapped and self._table.wrong_image_of(doc.doc_id) is None
        if saw_its_own_image and not self._table.cutter.not_shown(doc.doc_id, views[0]):
            scored = [Scored(view, failed=_NO_WRONG_IMAGE) for view in views]
        rows = rows_of(
            self._session, doc, numbers, list(zip(scored, answers, strict=True)), self._unfinished, self._tokens
        )
        return self._metrics_of(rows, scored)

    def _scored(
        self,
        doc: TaggedDoc,
        numbers: Sequence[int],
        views: Sequence[View],
        answers: Sequence[Sequence[Any]],
        kwargs: Mapping[str, Any],
    ) -> list[Scored]:
        """Score the views of a doc, but for views scored while the model was asked."""
        if self._session.predict_only:
            return [Scored(view) for view in views]
        # a score from while the model was asked holds only for the same answer
        known = [self._known.get((doc.doc_id, number)) for number in numbers]
        kept = [
            one[1] for one, got in zip(known, answers, strict=True) if one is not None and one[0] == repr(list(got))
        ]
        if len(kept) == len(views):
            return kept
        if None not in known and not self._warned:
            self._warned = True
            log().warning(
                f"{self._spec.name}: lmms-eval filters answers otherwise than when they came, so other cells might have been asked"
            )
        return self._scorer.score(doc, views, answers, shown=self._shown(doc, views), from_first=0 in numbers, **kwargs)

    def _shown(self, doc: Any, views: Sequence[View]) -> Sequence[Any]:
        """Return a doc as each view shows it, with its options in the view's order; empty where options are not moved."""
        orders = self._table.orders
        return [] if orders is None else [orders.as_shown(doc, doc.doc_id, view.turn) for view in views]

    def _answers(self, doc_id: int, view: View, filtered: Sequence[Any]) -> Sequence[Any]:
        """Return the answers of a view, marked as failed calls where the model saw a grey image in place of the doc's."""
        why = self._table.cutter.not_shown(doc_id, view)
        return (
            [one if isinstance(one, Unanswered) else Unanswered(one, why, failed=True, native=one) for one in filtered]
            if why
            else filtered
        )

    # --- for the host ---------------------------------------------------------------------------------

    def _metrics_of(self, doc: Doc, scored: Sequence[Scored]) -> dict[str, Any]:
        """Return what ``process_results`` returns for a doc."""
        session, first = self._session, scored[0]
        patch = PatchItem(doc, dict(first.items), next((one.from_m for one in scored if one.from_m), None))
        if session.predict_only:
            return {"patch": patch, **dict.fromkeys(session.base.aggregation())}
        native = dict.fromkeys(session.metrics.native)
        # the host would take a sample for the whole, in its own standard errors
        if not self._state.plan.sampled and (first.items or not first.unscored):
            native = dict(first.items)
        return {"patch": patch, **dict.fromkeys(session.aggregations.derived), **native}
