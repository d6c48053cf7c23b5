"""The record of each doc: the base's filters and scorer on every view, and what the host gets of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from lmms_eval.api.instance import Instance

from lmms_patch.ask.kinds import TURNS, Key
from lmms_patch.ask.views import View
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness import compat
from lmms_patch.harness.wrap.best import BestViews
from lmms_patch.harness.wrap.docs import TaggedDoc, TaggedDocs
from lmms_patch.harness.wrap.filters import apply_filters, as_the_host_will, is_unfinished, tokens_of
from lmms_patch.harness.wrap.golds import fields
from lmms_patch.harness.wrap.ledger import PatchItem
from lmms_patch.harness.wrap.requests import Requests
from lmms_patch.harness.wrap.scorer import Unanswered
from lmms_patch.harness.wrap.session import Session
from lmms_patch.harness.wrap.swap import said
from lmms_patch.runs import failures
from lmms_patch.runs.scored import SampleRecord, ScoredView, WrongImage
from lmms_patch.runs.scoring import Scalar, plain
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
        self._best = BestViews(session.spec, session.metrics)
        self._known: dict[tuple[int, int], tuple[str, ScoredView]] = {}
        """Views that were scored while the model was still asked, by doc id and number, with the answers that were scored."""
        self._warned = False
        self._unfinished = set[tuple[int, int]]()
        self._tokens = dict[tuple[int, int], tuple[int | None, int | None]]()

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
            Three groups of metrics, in this order. ``patch``: the record. Our derived metrics, from every doc: the
            native item of its best cell, or None. The native metrics: the items of the full view. Where that view could
            not be scored they are None, so that the metric is null and not that of the other docs; where its call
            failed they are what the base's scorer makes of the text that stands for the answer. Native metrics come
            last, because the host takes the number of docs from the metric that it aggregates last.
        """
        if not isinstance(doc, TaggedDoc):
            raise CannotWrapError(f"{self._spec.name}: a doc without a number cannot be scored; take it from eval_docs")
        every = self._table.views_of(doc.doc_id)
        numbers = self._requests.numbers_of(doc.doc_id)
        # a doc that nothing was asked of keeps the requests of its first view (``WrappedTask.take``)
        results = results if numbers else []
        if numbers and len(results) % len(numbers):
            raise CannotWrapError(
                f"{self._spec.name}: {len(results)} answers for {len(numbers)} views of doc {doc.doc_id}"
            )
        size, views = len(results) // max(1, len(numbers)), [every[number] for number in numbers]
        answers = [self._answers(doc.doc_id, view, results[i * size : (i + 1) * size]) for i, view in enumerate(views)]
        unscored = [ScoredView(view) for view in views]
        # a score from while the model was asked holds only for the same answer
        known = [self._known.get((doc.doc_id, number), ("", None)) for number in numbers]
        scored = [
            one for (told, one), got in zip(known, answers, strict=True) if one is not None and told == repr(list(got))
        ]
        if len(scored) < len(views):
            if all(one is not None for _, one in known) and known and not self._warned:
                self._warned = True
                log().warning(
                    f"{self._spec.name}: lmms-eval filters answers otherwise than when they came, so other cells might have been asked"
                )
            scored = (
                unscored
                if self._session.predict_only
                else self._scorer.score(
                    doc, views, answers, shown=self._shown(doc, views), from_first=0 in numbers, **kwargs
                )
            )
        cut = [(doc.doc_id, number) in self._unfinished for number in numbers]
        scored = [
            msgspec.structs.replace(one, unfinished=True) if ends else one
            for one, ends in zip(scored, cut, strict=True)
        ]
        scored = [
            msgspec.structs.replace(one, **_came(got, self._tokens.get((doc.doc_id, number))))
            for one, got, number in zip(scored, answers, numbers, strict=True)
        ]
        if not self._session.predict_only:
            scored = self._session.references.named(doc.doc_id, scored, answers)
        # nothing was asked about the doc's own image, so its record begins with a view without scores
        if 0 not in numbers:
            scored, answers = [ScoredView(every[0]), *scored], [(), *answers]
        saw_its_own_image = self._spec.kind.swapped and self._table.wrong_image_of(doc.doc_id) is None
        if saw_its_own_image and not self._table.cutter.not_shown(doc.doc_id, views[0]):
            scored = [ScoredView(view, failed=_NO_WRONG_IMAGE) for view in views]
        return self._metrics_of(self._record(doc, scored, answers))

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

    def _record(self, doc: TaggedDoc, scored: Sequence[ScoredView], answers: Sequence[Sequence[Any]]) -> SampleRecord:
        """Return the record of a doc: its scored views, best cells and references, and why the doc is left out of a set."""
        mine = len(self._table.own_views_of(doc.doc_id))
        own = max(1, sum(number < mine for number in self._requests.numbers_of(doc.doc_id)))
        wrong = self._wrong_image(doc.doc_id, *(of_wrong := (scored[own:], answers[own:])))
        # the views on a wrong image stand behind those on the doc's own
        scored, answers = scored[:own], answers[:own]
        # the image of another doc is not decoded for its record
        shown = (asked := self._state.plan.asked.get(doc.doc_id)) is None or asked.steps > 0
        excluded: dict[Key, str] = {
            key: why for key in self._spec.parts if shown and (why := self._table.cutter.why_unusable(doc.doc_id, key))
        }
        failed = {one.view.set for one in scored if one.failed}
        if self._table.orders is not None and (fault := self._table.orders.of(doc.doc_id).fault):
            excluded |= dict.fromkeys((TURNS, *self._spec.sets), fault)
        no_score = {
            one.view.set
            for one in scored
            if self._scorer.says_unscored(one.items.get(self._session.primary)) and not one.unscored
        }
        for sets, why in (
            (failed, failures.REASON),
            (no_score if any(self._session.primary in one.items for one in scored) else set(), failures.UNSCORED),
        ):
            # None: the full image
            excluded |= {key: why for key in self._spec.sets if key not in excluded and sets & {None, key}}
        sizes = self._table.sizes(doc.doc_id) if shown and self._spec.kind.needs_image else ()
        best = self._best.cells(scored, excluded)
        said_of = (scored, answers) if shown else ((), ())
        beside = (
            {}
            if self._session.predict_only
            else self._session.references.of(doc.doc_id, *said_of, of_wrong, list(best), self._scorer.keeps_apart)
        )
        tst = {} if self._session.text_only is None else self._session.text_only.row_of(doc.doc_id)
        return SampleRecord(
            doc.doc_id,
            sizes,
            tuple(scored),
            best,
            excluded,
            plain(fields(doc, self._spec.options)),
            **beside,
            tst=plain(tst),
            wrong_image=wrong,
            images=self._table.shelf.sight(doc.doc_id) if sizes else "",
            clips=tuple((frames, round(seconds, 3)) for frames, seconds in self._table.clips(doc.doc_id))
            if sizes
            else (),
            asked=asked,
            asks=self._session.golds.known(doc.doc_id),
        )

    def _wrong_image(
        self, doc_id: int, scored: Sequence[ScoredView], answers: Sequence[Sequence[Any]]
    ) -> WrongImage | None:
        """Return a record's part with the views on another doc's image; None where the doc has none."""
        source = self._table.wrong_image_of(doc_id)
        return (
            None
            if source is None
            else WrongImage(source, self._table.sizes(source), tuple(scored), tuple(map(said, answers)))
        )

    def _metrics_of(self, record: SampleRecord) -> dict[str, Any]:
        """Return what ``process_results`` returns for a record."""
        full, chosen = dict(record.views[0].items), self._best.chosen(record)
        from_m = next((view.from_m for view in record.views if view.from_m), None)
        patch = PatchItem(record.plain(), full, self._best.whole(record), chosen, from_m)
        if self._session.predict_only:
            return {"patch": patch, **dict.fromkeys(self._session.base.aggregation())}
        ours: dict[str, Any] = dict.fromkeys(self._session.aggregations.derived)
        # the host would take a sample for the whole, in its own standard errors
        if self._state.plan.sampled:
            return {"patch": patch, **ours, **dict.fromkeys(self._session.metrics.native)}
        if self._spec.kind.keeps_best:
            # The host's --baseline compares the first number in a log line whose key holds "score". That number must be
            # the full image's.
            ours |= {
                name: item
                for name, item in chosen.items()
                if not self._scorer.says_unscored(item) and "score" not in name.lower()
            }
        return {
            "patch": patch,
            **ours,
            **(full if full or not record.views[0].unscored else dict.fromkeys(self._session.metrics.native)),
        }


def _came(got: Sequence[Any], tokens: tuple[int | None, int | None] | None) -> dict[str, Any]:
    """Return what came of a view as its row has it: the answer as a text, losses, tokens.

    Of log-likelihoods the answer is the number of the option with the lowest loss, from 0.
    """
    losses = None
    if got and all(isinstance(one, (tuple, list)) for one in got):
        losses = [float(one[0]) for one in got]
    answer = f"option {losses.index(min(losses))}" if losses else " | ".join(map(str, got)) if got else None
    return {"answer": answer, "losses": losses, "tokens": tokens or (None, None)}
