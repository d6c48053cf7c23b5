"""The rows of a scored doc in the samples table (``runs.schema``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from lmms_patch.ask.answers import options_in
from lmms_patch.ask.kinds import TURNS, Key
from lmms_patch.ask.references import digest
from lmms_patch.harness.wrap.choice import best_of
from lmms_patch.harness.wrap.docs import TaggedDoc
from lmms_patch.harness.wrap.golds import fields
from lmms_patch.harness.wrap.references import Answered, gold_at
from lmms_patch.harness.wrap.scorer import Scored
from lmms_patch.harness.wrap.session import Session
from lmms_patch.harness.wrap.swap import said
from lmms_patch.runs import failures
from lmms_patch.runs.frames import Doc, labels, shown, text
from lmms_patch.runs.schema import FIELD, OTHER_METRIC
from lmms_patch.runs.scoring import plain

Tokens = tuple[int | None, int | None]
"""Of a request, and of its answer."""


def rows_of(
    session: Session,
    doc: TaggedDoc,
    numbers: Sequence[int],
    views: Answered,
    unfinished: Collection[tuple[int, int]],
    tokens: Mapping[tuple[int, int], Tokens],
) -> Doc:
    """Return the rows of a doc.

    Args:
        session: the parts of the task.
        doc: the row of the dataset.
        numbers: of the views that were asked, and of the first.
        views: these views, scored: those on a wrong image stand behind those on the doc's own, and those asked again behind both.
        unfinished: by doc id and view, which answers stop before their end.
        tokens: by doc id and view, of the adapters that count them.
    """
    doc_id, table, spec = doc.doc_id, session.table, session.spec
    mine = len(table.own_views_of(doc_id))
    count = sum(number < mine for number in numbers)
    once = sum(not one.view.repeat for one, _ in views)
    scored, asked = [one for one, _ in views[:count]], session.state.plan.is_asked(doc_id)
    excluded = _excluded(session, doc_id, scored, asked=asked)
    best = _best(session, scored, excluded)
    references: list[dict[str, Any]] = []
    items: list[Any] = []
    told: list[dict[str, Any]] = [{} for _ in views]
    if not session.predict_only:
        known = views[:once] if asked else views[count:once]
        references, items = session.references.of(doc_id, known, apart=session.scorer.keeps_apart)
        told = session.references.named(doc_id, views)
    answer, source = session.golds.answer(doc_id), table.wrong_image_of(doc_id)
    again = once < len(views)
    different = {one: number for number, one in enumerate(dict.fromkeys(said(got) for _, got in views))}
    shares = session.gold_shares(doc_id) if again else None
    gold = None if answer is None else gold_at(answer)
    rows = [
        {
            "doc_id": doc_id,
            "view": at,
            **_view(one, got, session.primary),
            **named,
            "unfinished": (doc_id, number) in unfinished or None,
            **dict(zip(("tokens_in", "tokens_out"), tokens.get((doc_id, number), ()), strict=False)),
            "wrong_from": table.donor_of(doc_id, one.view) if one.view.swapped else None,
            "gold_at": one.view.gold or gold,
            "answer_no": different[said(got)] if again else None,
            "as_gold": None if shares is None else shares.get(said(got), 0.0),
            "best": (at < count and at in best.values()) or None,
        }
        for at, ((one, got), named, number) in enumerate(zip(views, told, numbers, strict=True))
    ]
    named_fields = plain(fields(doc, spec.options))
    rows[0] |= {
        **_asks(session, doc_id, named_fields),
        **{name: value for name, value in named_fields.items() if name.startswith(FIELD)},
        **{name: named_fields.get(name) for name in ("category", "cluster", "group")},
        **(_images(session, doc_id) if asked and spec.kind.needs_image else {}),
        "wrong_shown": [_size(one) for one in table.sizes(source)] if source is not None else None,
        "excluded": [{"set": str(key), "why": why} for key, why in excluded.items()],
        "references": references,
        "quick": session.state.plan.asked.get(doc_id),
        "tst": None if session.text_only is None else session.text_only.row_of(doc_id),
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
    spec, table, primary = session.spec, session.table, session.primary
    out: dict[Key, str] = {key: why for key in spec.parts if asked and (why := table.cutter.why_unusable(doc_id, key))}
    if spec.kind.turns and table.orders is not None and (fault := table.orders.of(doc_id).fault):
        out |= dict.fromkeys((TURNS, *spec.sets), fault)
    failed = {one.view.set for one in scored if one.failed}
    no_score = {
        one.view.set for one in scored if session.scorer.says_unscored(one.items.get(primary)) and not one.unscored
    }
    for sets, why in (
        (failed, failures.REASON),
        (no_score if any(primary in one.items for one in scored) else set(), failures.UNSCORED),
    ):
        # None: the full image
        out |= {key: why for key in spec.sets if key not in out and sets & {None, key}}
    return out


def _best(session: Session, scored: Sequence[Scored], excluded: Mapping[Key, str]) -> dict[Key, int]:
    """Return the place of the best cell or box by the primary metric, for each set with the doc.

    Of hidden cells (``occlude``), of the one that hurts most when hidden.
    """
    metrics, kind = session.metrics, session.spec.kind
    metric = next((m for one in scored if (m := metrics.primary_among(one.items)) is not None), None)
    if metric is None:
        return {}
    higher = metrics.higher.get(metric, True) == kind.keeps_best
    found = {key: best_of(scored, key, metric, higher) for key in session.spec.sets if key not in excluded}
    return {key: place for key, place in found.items() if place is not None}


def _asks(session: Session, doc_id: int, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a doc asks, and what answers there are."""
    answer, asks, plan = session.golds.answer(doc_id), session.golds.known(doc_id), session.golds.plan
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
    table = session.table
    if not (sizes := table.sizes(doc_id)):
        return {}
    clips = [{"frames": frames, "seconds": round(seconds, 3)} for frames, seconds in table.clips(doc_id)]
    of_clips = [*clips, *[{}] * (len(sizes) - len(clips))]
    sizes_of = [{**_size(one), **clip} for one, clip in zip(sizes, of_clips, strict=True)]
    return {"images": table.shelf.sight(doc_id) or None, "shown": sizes_of}


def _size(of: tuple[int, int]) -> dict[str, int]:
    return {"width": of[0], "height": of[1]}
