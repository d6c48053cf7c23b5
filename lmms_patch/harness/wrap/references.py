"""Scores what no model said: uninformed answers, the gold, and each doc's answers under the golds of other docs.

An answer is scored under another doc's gold on
the rank that has the answer, and the score goes into the record of the doc that gave it. So ranks exchange nothing, and
the log of a finished run holds all that the statistics need.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from lmms_patch.ask.answers import Answer
from lmms_patch.ask.kinds import Key
from lmms_patch.ask.named import named
from lmms_patch.harness.wrap.golds import Golds
from lmms_patch.harness.wrap.orders import OrderTable
from lmms_patch.harness.wrap.scorer import Scorer, Unanswered
from lmms_patch.harness.wrap.scores import Scores
from lmms_patch.harness.wrap.swap import said
from lmms_patch.runs.scored import Baseline, Exchanged, ScoredView, cells_of
from lmms_patch.runs.scoring import Scalar, best, worst_orders


class References:
    """What a doc's record says beside its views' scores: which option an answer names, and what other answers and golds earn.

    Args:
        golds: what is known of the docs.
        scorer: the native scorer.
        scores: scores answers that no model gave to a doc.
        orders: the orders of docs' options, where answers count by their worst order; None elsewhere.
    """

    def __init__(self, golds: Golds, scorer: Scorer, scores: Scores, orders: OrderTable | None) -> None:
        self._golds, self._scorer, self._scores, self._orders = golds, scorer, scores, orders
        self._lock = threading.RLock()

    def named(self, doc_id: int, scored: Sequence[ScoredView], answers: Sequence[Sequence[Any]]) -> list[ScoredView]:
        """Return the scored views of a doc, each with the place of its answer among the doc's options.

        The scorer decides whether that is the gold: an answer with full marks names it, whatever it looks like, and one
        without does not. Options that are shown in another order are not read.

        Args:
            doc_id: the doc.
            scored: its views.
            answers: the filtered answers of each view.
        """
        made = self._golds.plan
        answer = None if made is None else made.answers.get(doc_id)
        if answer is None or len(answer.options) < 2 or self._orders is not None:
            return list(scored)
        gold_at, marks = _gold_at(answer), self._scores.marks(doc_id)
        out = []
        for one, got in zip(scored, answers, strict=True):
            score, place, misread = one.scores.get(self._golds.primary), None, False
            if score is not None and marks and not one.view.turn:
                read = named(said(got, whole=True), answer)
                # full marks name the gold, however the answer reads; without them the gold is not named
                place = gold_at or 0 if score >= marks else 0 if read == gold_at else read
                misread = score >= marks and gold_at is not None and read != gold_at
            out.append(msgspec.structs.replace(one, names=place, misread=misread))
        return out

    # --- what goes into a doc's record ------------------------------------------------------------

    def of(
        self,
        doc_id: int,
        scored: Sequence[ScoredView],
        answers: Sequence[Sequence[Any]],
        wrong: tuple[Sequence[ScoredView], Sequence[Sequence[Any]]],
        used: Sequence[Key],
        apart: bool,
    ) -> dict[str, Any]:
        """Return the reference fields of a doc's ``SampleRecord``.

        Args:
            doc_id: the doc.
            scored: its views.
            answers: the filtered answers of each view.
            wrong: the views of the wrong image, and their answers.
            used: the grids, or sets of boxes, that the doc is used for.
            apart: whether the scorer may score the same answer in two ways (``Scorer.keeps_apart``).
        """
        made = self._golds.plan
        if made is None or doc_id not in made.answers:
            return {}
        answer = made.answers[doc_id]
        about = {
            "format": answer.format,
            "label": answer.label,
            "options": len(answer.options),
            "gold": answer.gold,
            "gold_at": _gold_at(answer),
        }
        out: dict[str, Any] = {"answer": about, "stratum": made.strata[doc_id]}
        # a judge or the network is never asked about references
        if self._golds.silent:
            return out
        # docs are scored in several threads, which share the kept scores
        with self._lock:
            for one, got in zip((*scored, *wrong[0]), (*answers, *wrong[1]), strict=True):
                # the model's answers are scored already: an uninformed answer with the same text needs no further call
                if not apart and one.error is None and not one.failed and not one.view.turn:
                    self._scores.keep((doc_id, repr(list(got))), one)
            told_so = made.baselines[doc_id].items()
            out["baselines"] = tuple(
                one for text, roles in told_so for one in self._baselines(doc_id, text, roles, len(answer.options))
            )
            # only a doc that was also asked on a wrong image has both sorts of answers
            for to in made.alike.get(doc_id, ()) if wrong[0] else ():
                own = self._elsewhere(doc_id, to, scored, answers, used)
                out.setdefault("exchanged", []).append(
                    Exchanged(to, *own, *self._elsewhere(doc_id, to, *wrong, used, "wrong "))
                )
        return out

    def _baselines(self, doc_id: int, text: str, roles: Sequence[str], options: int) -> list[Baseline]:
        """Return an uninformed answer, scored: as gold in the doc's order; in further roles by its worst order where orders count."""
        answers = self._golds.as_results(text, options)
        own, _ = self._scores.on(doc_id, answers)
        if self._orders is None:
            return [Baseline.of(text, roles, own)]
        out = [Baseline.of(text, ("gold",), own)] if "gold" in roles else []
        if others := tuple(role for role in roles if role != "gold"):
            scored = [
                own,
                *(
                    self._scorer.score_answers(row, doc_id, answers, f"order {turn}/{text}")[0]
                    for turn, row in enumerate(self._orders.others(self._golds.rows()[doc_id], doc_id), 1)
                ),
            ]
            # the scores are of a single view in all its orders, so a single place comes back
            (worst,) = (
                scored[place]
                for place in worst_orders(scored, lambda one: text, lambda one: one.scores.get(self._golds.primary))
            )
            out.append(Baseline.of(text, others, worst))
        return out

    def _elsewhere(
        self,
        doc_id: int,
        to: int,
        scored: Sequence[ScoredView],
        answers: Sequence[Sequence[Any]],
        used: Sequence[Key],
        of: str = "",
    ) -> tuple[Scalar, dict[Key, Scalar]]:
        """Score a doc's answers under the gold of another doc.

        Return the scalar of the first view, and of the best of each set.

        Views with the same answer are scored once.

        Args:
            doc_id: the doc that got the answers.
            to: the doc under whose gold they are scored.
            scored: the views.
            answers: the filtered answers of each view.
            used: the sets.
            of: of which image, for the random stream.
        """
        known: dict[str, Scalar] = {}

        def scalar(view: int) -> Scalar:
            if Unanswered in map(type, answers[view]):
                return None
            text = repr(list(answers[view]))
            if text in known:
                return known[text]
            scored, drew = self._scores.on(to, list(answers[view]), f"{doc_id}/{of}{view}", text)
            score = scored.scores.get(self._golds.primary)
            if not drew:
                known[text] = score
            return score

        def best_of(places: Sequence[int]) -> Scalar:
            scores = [scalar(place) for place in places]
            place = best(scores)
            return None if place is None else scores[place]

        cells = {key: cells_of([one.view for one in scored], key) for key in used}
        return scalar(0), {key: best_of(places) for key, places in cells.items() if places}


def _gold_at(answer: Answer) -> int | None:
    """Return the place of the gold among the options, from 1; None where the gold is not among them."""
    return answer.options.index(answer.gold) + 1 if answer.gold in answer.options else None
