"""From a doc's answers to its rows of the samples table (``runs.schema``): the base's filters and scorer on every view, and what the host gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_eval.api.instance import Instance

from lmms_patch.ask.answers import options_in
from lmms_patch.ask.kinds import TURNS, Key
from lmms_patch.ask.references import digest
from lmms_patch.ask.views import View
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.wrap.aggregate import PatchItem
from lmms_patch.harness.wrap.docs import TaggedDoc, TaggedDocs
from lmms_patch.harness.wrap.known import fields
from lmms_patch.harness.wrap.references import Answered, gold_at
from lmms_patch.harness.wrap.scorer import (
    Scored,
    Unanswered,
    apply_filters,
    as_the_host_will,
    is_unfinished,
    said,
    tokens_of,
)
from lmms_patch.harness.wrap.session import Session
from lmms_patch.runs import failures
from lmms_patch.runs.frames import Doc, labels, shown, text
from lmms_patch.runs.schema import FIELD, OTHER_METRIC
from lmms_patch.runs.scoring import Scalar, plain
from lmms_patch.stats.composition import KNOWN

_NO_WRONG_IMAGE = "not asked: no other doc shows other images in the same number"
_OneView = tuple[int, int]
"""A doc id, and the number of a view among the doc's."""


class Recorder:
    """Scores the docs of a session.

    Args:
        session: the parts of the task.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._known, self._table = session, session.known, session.table
        self._scored_before: dict[_OneView, tuple[str, Scored]] = {}
        """Views that were scored while the model was still asked, with the answers that were scored."""
        self._about: dict[_OneView, dict[str, Any]] = {}
        """What the adapter tells of an answer: whether it stops before its end, and tokens."""

    # --- while the model is asked -------------------------------------------------------------------

    def filter_now(self, instances: Sequence[Instance]) -> None:
        """Apply the base's filters to some requests while the model is still asked."""
        as_the_host_will(instances, self._session.filters, self._known, self._table.as_shown)

    def score_now(self, doc_id: int, filtered: Mapping[int, Sequence[Any]]) -> dict[int, Scalar]:
        """Score some views of a doc while the model is still asked; return the scalar of each by the primary metric.

        ``process_results`` takes these scores as they are, so what was decided by them holds.

        Args:
            doc_id: the doc.
            filtered: by number of the view, the filtered answers: one, or one per choice.
        """
        every, numbers = self._table.views_of(doc_id), sorted(filtered)
        # as the host will hand the doc to the scorer
        doc = TaggedDocs(self._known.scored_rows, lambda: self._known.plain_rows)[doc_id]
        answers = [self._answers(doc_id, every[number], filtered[number]) for number in numbers]
        out: dict[int, Scalar] = {}
        for number, got, one in zip(numbers, answers, self._score(doc, numbers, answers, {}), strict=True):
            self._scored_before[doc_id, number] = repr(list(got)), one
            usable = not every[number].n or self._table.cutter.why_unusable(doc_id, every[number].n) is None
            out[number] = one.scores.get(self._known.primary) if usable and not one.unscored else None
        return out

    def names_now(self, doc_id: int, filtered: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """Score some views of a doc while the model is still asked; return what each names: equal for equal answers, None where it names nothing.

        Args:
            doc_id: the doc.
            filtered: as in ``score_now``.
        """
        scores, references = self.score_now(doc_id, filtered), self._session.references
        marks = references.marks(doc_id)
        told = references.named(doc_id, [(self._scored_before[doc_id, one][1], got) for one, got in filtered.items()])
        out: dict[int, Any] = {}
        for (number, got), named in zip(filtered.items(), told, strict=True):
            score = scores[number]
            if score is None or not marks:
                out[number] = None
            elif score >= KNOWN * marks:
                out[number] = ("gold",)
            else:
                out[number] = (named["names"] if "names" in named else said(got)) or None
        return out

    # --- when all is answered -------------------------------------------------------------------------

    def apply_filters(self, instances: Sequence[Instance], filters: Any) -> None:
        """Apply the base's filters once per view and choice.

        Where one fails, report the cause and keep the raw answers.
        """
        # of several choices the one that says something
        for one in instances:
            of_view = self._about.setdefault((one.doc_id, one.metadata["view"]), {})
            told = is_unfinished(one) or None, *tokens_of(one)
            found = zip(("unfinished", "tokens_in", "tokens_out"), told, strict=True)
            of_view |= {name: value for name, value in found if value is not None}
        apply_filters(instances, filters, self._known, self._table.as_shown)

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
        known, table = self._known, self._table
        if not isinstance(doc, TaggedDoc):
            raise CannotWrapError(f"{known.spec.name}: a doc without a number cannot be scored; take it from eval_docs")
        every, numbers = table.views_of(doc.doc_id), list(self._session.numbers_of(doc.doc_id))
        # a doc that nothing was asked of keeps the requests of its first view (``WrappedTask.take``)
        results = results if numbers else []
        if numbers and len(results) % len(numbers):
            raise CannotWrapError(
                f"{known.spec.name}: {len(results)} answers for {len(numbers)} views of doc {doc.doc_id}"
            )
        size, views = len(results) // max(1, len(numbers)), [every[number] for number in numbers]
        answers = [self._answers(doc.doc_id, view, results[i * size : (i + 1) * size]) for i, view in enumerate(views)]
        scored = [Scored(view) for view in views] if known.predict_only else self._score(doc, numbers, answers, kwargs)
        # nothing was asked about the doc's own image, so its rows begin with a view without scores
        if 0 not in numbers:
            numbers, scored, answers = [0, *numbers], [Scored(every[0]), *scored], [(), *answers]
        saw_its_own_image = known.spec.kind.swapped and table.wrong_image_of(doc.doc_id) is None
        if saw_its_own_image and not table.cutter.not_shown(doc.doc_id, views[0]):
            scored = [Scored(view, failed=_NO_WRONG_IMAGE) for view in views]
        rows = rows_of(self._session, doc, numbers, list(zip(scored, answers, strict=True)), self._about)
        first = scored[0]
        patch = PatchItem(rows, dict(first.items), next((one.from_m for one in scored if one.from_m), None))
        if known.predict_only:
            return {"patch": patch, **dict.fromkeys(known.base.aggregation())}
        native: dict[str, Any] = dict.fromkeys(known.native)
        # the host would take a sample for the whole, in its own standard errors
        if not known.state.plan.sampled and (first.items or not first.unscored):
            native = dict(first.items)
        return {"patch": patch, **dict.fromkeys(self._session.aggregations.derived), **native}

    def _answers(self, doc_id: int, view: View, filtered: Sequence[Any]) -> Sequence[Any]:
        """Return the answers of a view, marked as failed calls where the model saw a grey image in place of the doc's."""
        why = self._table.cutter.not_shown(doc_id, view)
        return (
            [one if isinstance(one, Unanswered) else Unanswered(one, why, failed=True, native=one) for one in filtered]
            if why
            else filtered
        )

    def _score(
        self, doc: Any, numbers: Sequence[int], answers: Sequence[Sequence[Any]], kwargs: Mapping[str, Any]
    ) -> list[Scored]:
        """Score views of a doc, but for views with the same answers that were scored while the model was asked."""
        doc_id, orders = doc.doc_id, self._table.orders
        before = [self._scored_before.get((doc_id, number), ("", None)) for number in numbers]
        kept = [
            one for (told, one), got in zip(before, answers, strict=True) if one is not None and told == repr(list(got))
        ]
        if len(kept) == len(numbers):
            return kept
        views = [self._table.views_of(doc_id)[number] for number in numbers]
        # with its options in each view's order; empty where options are not moved
        as_shown = [] if orders is None else [orders.as_shown(doc, doc_id, view.turn) for view in views]
        return self._session.scorer.score(doc, views, answers, shown=as_shown, from_first=0 in numbers, **kwargs)


# --- rows -----------------------------------------------------------------------------------------


def rows_of(
    session: Session,
    doc: TaggedDoc,
    numbers: Sequence[int],
    views: Answered,
    about: Mapping[_OneView, Mapping[str, Any]],
) -> Doc:
    """Return the rows of a doc.

    Args:
        session: the parts of the task.
        doc: the row of the dataset.
        numbers: of the views that were asked, and of the first.
        views: these views, scored: those on a wrong image stand behind those on the doc's own, and those asked again behind both.
        about: by doc id and view, what the adapter tells of an answer.
    """
    doc_id, known, table, golds, plan = doc.doc_id, session.known, session.table, session.golds, session.golds.plan
    count = sum(number < len(table.own_views_of(doc_id)) for number in numbers)
    once = sum(not one.view.repeat for one, _ in views)
    scored, asked = [one for one, _ in views[:count]], known.state.plan.is_asked(doc_id)
    excluded = _excluded(session, doc_id, scored, asked=asked)
    best = _best(session, scored, excluded)
    references: list[dict[str, Any]] = []
    items: list[Any] = []
    told: list[dict[str, Any]] = [{} for _ in views]
    if not known.predict_only:
        references, items = session.references.of(doc_id, views[:once] if asked else views[count:once])
        told = session.references.named(doc_id, views)
    answer, source, again = golds.answer(doc_id), table.wrong_image_of(doc_id), once < len(views)
    gold = None if answer is None else gold_at(answer)
    different = {one: number for number, one in enumerate(dict.fromkeys(said(got) for _, got in views))}
    # how often each answer is the gold of docs that are asked alike, where the doc has no options
    open_ended = again and plan is not None and len(plan.answers[doc_id].options) < 2
    shares = session.references.gold_shares(plan.strata[doc_id]) if open_ended and plan is not None else None
    rows = [
        {
            "doc_id": doc_id,
            "view": at,
            **_view(one, got, known.primary),
            **named,
            **about.get((doc_id, number), {}),
            "wrong_from": table.donor_of(doc_id, one.view) if one.view.swapped else None,
            "gold_at": one.view.gold or gold,
            "answer_no": different[said(got)] if again else None,
            "as_gold": None if shares is None else shares.get(said(got), 0.0),
            "best": (at < count and at in best.values()) or None,
        }
        for at, ((one, got), named, number) in enumerate(zip(views, told, numbers, strict=True))
    ]
    named_fields = plain(fields(doc, known.spec.options))
    rows[0] |= {
        **_asks(session, doc_id, named_fields),
        **{name: value for name, value in named_fields.items() if name.startswith(FIELD)},
        **{name: named_fields.get(name) for name in ("category", "cluster", "group")},
        **(_images(session, doc_id) if asked and known.spec.kind.needs_image else {}),
        "wrong_shown": [_size(one) for one in table.sizes(source)] if source is not None else None,
        "excluded": [{"set": str(key), "why": why} for key, why in excluded.items()],
        "references": references,
        "quick": known.state.plan.asked.get(doc_id),
        "tst": None if session.text_only is None else session.text_only.found.columns.get(doc_id),
    }
    rows = [{name: value for name, value in row.items() if value is not None and value != []} for row in rows]
    return Doc(rows, [{} if one.failed else one.items for one, _ in views], items, named_fields.get("merged"))


def _view(one: Scored, got: Sequence[Any], primary: str) -> dict[str, Any]:
    """Return what a row says of a view by itself.

    Of log-likelihoods the answer is the number of the option with the lowest loss, from 0.
    """
    losses = None
    if got and all(isinstance(answer, (tuple, list)) for answer in got):
        losses = [float(answer[0]) for answer in got]
    answer = f"option {losses.index(min(losses))}" if losses else " | ".join(map(str, got)) if got else None
    return {
        **shown(one.view),
        "answer": None if one.failed else answer,
        "losses": losses,
        "failed": one.failed or None,
        "error": one.error,
        "score": one.scores.get(primary),
        **{f"{OTHER_METRIC}{name}": score for name, score in one.scores.items() if name != primary},
        **labels(None if one.failed else one.items.get(primary)),
    }


def _excluded(session: Session, doc_id: int, scored: Sequence[Scored], *, asked: bool) -> dict[Key, str]:
    """Return the sets of views for which a doc is not used, and why."""
    spec, table, primary = session.known.spec, session.table, session.known.primary
    out: dict[Key, str] = {key: why for key in spec.parts if asked and (why := table.cutter.why_unusable(doc_id, key))}
    if spec.kind.turns and table.orders is not None and (fault := table.orders.of(doc_id).fault):
        out |= dict.fromkeys((TURNS, *spec.sets), fault)
    failed = {one.view.set for one in scored if one.failed}
    # a doc without any item of the metric is none of its docs
    with_items = [one for one in scored if not one.unscored] if any(primary in one.items for one in scored) else []
    unscored = {one.view.set for one in with_items if session.scorer.says_unscored(one.items.get(primary))}
    for sets, why in ((failed, failures.REASON), (unscored, failures.UNSCORED)):
        # None: the full image
        out |= {key: why for key in spec.sets if key not in out and sets & {None, key}}
    return out


def _best(session: Session, scored: Sequence[Scored], excluded: Mapping[Key, str]) -> dict[Key, int]:
    """Return the place of the best cell or box by the primary metric, for each set with the doc; ties go to the first.

    Of hidden cells (``occlude``), of the one that hurts most when hidden.
    """
    known = session.known
    metric = next((m for one in scored if (m := known.primary_among(one.items)) is not None), None)
    if metric is None:
        return {}
    sign = 1 if known.higher.get(metric, True) == known.spec.kind.keeps_best else -1
    out: dict[Key, int] = {}
    for key in known.spec.sets:
        scores = {
            place: sign * score
            for place, one in enumerate(scored)
            if one.view.set == key and (score := one.scores.get(metric)) is not None
        }
        if scores and key not in excluded:
            out[key] = max(scores, key=lambda place: scores[place])
    return out


def _asks(session: Session, doc_id: int, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a doc asks, and what answers there are."""
    golds, plan = session.golds, session.golds.plan
    answer, asks = golds.answer(doc_id), golds.asked(doc_id)
    target = None if asks is None or asks.target is None else str(asks.target)
    # of the field ``choices``, else as listed in the prompt, else the answers scored as options
    choices = named.get("choices")
    options: Iterable[Any] = choices if isinstance(choices, list) else ()
    if not options and asks is not None:
        choice = answer is None or answer.format in ("mc", "")
        options = asks.choices or (options_in(asks.prompt) if asks.prompt and choice else ())
    uninformed = {} if plan is None else plan.baselines.get(doc_id, {})
    options = options or sorted(said for said, roles in uninformed.items() if "option" in roles)
    out = {
        "gold": target if answer is None or answer.gold is None else answer.gold,
        "options": list(map(text, options)),
        "choices": 0 if answer is None else len(answer.options),
    }
    if answer is not None and plan is not None:
        out |= {"label": answer.label or None, "stratum": plan.strata[doc_id] or None}
    if asks is not None:
        out |= {"question": asks.prompt or None, "prompt_digest": digest([asks.prompt])}
        out |= {"doc_digest": digest([target, asks.choices])}
    return out


def _images(session: Session, doc_id: int) -> dict[str, Any]:
    """Return which images, or clips, a doc shows."""
    facts = session.table.shelf.known(doc_id)
    if not facts.sizes:
        return {}
    clips = [{"frames": frames, "seconds": round(seconds, 3)} for frames, seconds in facts.clips]
    of_clips = [*clips, *[{}] * (len(facts.sizes) - len(clips))]
    sizes = [{**_size(one), **clip} for one, clip in zip(facts.sizes, of_clips, strict=True)]
    return {"images": facts.sight or None, "shown": sizes}


def _size(of: tuple[int, int]) -> dict[str, int]:
    return {"width": of[0], "height": of[1]}
