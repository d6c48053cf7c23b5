"""Scores what no model said: uninformed answers, the gold, and each doc's answers under the golds of other docs.

An answer is scored under another doc's gold on the rank that has the answer, and the score goes into the rows of the
doc that gave it. So ranks exchange nothing, and the table of a finished run holds all that the statistics need.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_patch.ask.answers import Answer
from lmms_patch.ask.kinds import Key
from lmms_patch.ask.named import named
from lmms_patch.harness.wrap.choice import best
from lmms_patch.harness.wrap.golds import Golds
from lmms_patch.harness.wrap.scorer import Scored, Scorer, Unanswered
from lmms_patch.harness.wrap.scores import Scores
from lmms_patch.harness.wrap.swap import said
from lmms_patch.runs.frames import labels, text
from lmms_patch.runs.scoring import Scalar

Answered = Sequence[tuple[Scored, Sequence[Any]]]
"""Scored views of a doc, each with its filtered answers."""


class References:
    """What a doc's rows say beside its views' scores: which option an answer names, and what other answers and golds earn.

    Args:
        golds: what is known of the docs.
        scorer: the native scorer.
        scores: scores answers that no model gave to a doc.
    """

    def __init__(self, golds: Golds, scorer: Scorer, scores: Scores) -> None:
        self._golds, self._scorer, self._scores = golds, scorer, scores
        self._lock = threading.RLock()

    def named(self, doc_id: int, views: Answered) -> list[dict[str, Any]]:
        """Return for each view of a doc which of the doc's options its answer names (columns ``names``, ``misread``).

        The scorer decides whether that is the gold: an answer with full marks names it, whatever it looks like, and one
        without does not. Of options that are shown in another order a letter names the one that stands there.
        """
        answer = self._golds.answer(doc_id)
        if answer is None or len(answer.options) < 2:
            return [{} for _ in views]
        at, marks = gold_at(answer), self._scores.marks(doc_id)
        out: list[dict[str, Any]] = []
        for one, got in views:
            score = one.scores.get(self._golds.primary)
            if score is None or not marks:
                out.append({})
                continue
            read = _read(said(got, whole=True), answer, one.view.turn)
            # full marks name the gold, however the answer reads; without them the gold is not named
            place = at or 0 if score >= marks else 0 if read == at else read
            out.append({"names": place, "misread": (score >= marks and at is not None and read != at) or None})
        return out

    def of(
        self, doc_id: int, own: Answered, wrong: Answered, used: Sequence[Key], *, apart: bool
    ) -> tuple[dict[str, Any], list[Any]]:
        """Return a doc's ``references`` and ``exchanged``, and the native item of each entry of the former.

        Args:
            doc_id: the doc.
            own: its views.
            wrong: those on a wrong image.
            used: the grids, or sets of boxes, that the doc is used for.
            apart: whether the scorer may score the same answer in two ways (``Scorer.keeps_apart``).
        """
        made = self._golds.plan
        # a judge or the network is never asked about references
        if made is None or doc_id not in made.answers or self._golds.silent:
            return {}, []
        options = len(made.answers[doc_id].options)
        # docs are scored in several threads, which share the kept scores
        with self._lock:
            for one, got in (*own, *wrong):
                # the model's answers are scored already: an uninformed answer with the same text needs no further call
                if not apart and not one.unscored and not one.view.turn:
                    self._scores.keep((doc_id, repr(list(got))), one)
            scored = [
                (answer, roles, self._scores.on(doc_id, self._golds.as_results(answer, options))[0])
                for answer, roles in made.baselines[doc_id].items()
            ]
            # only a doc that was also asked on a wrong image has both sorts of answers
            exchanged = [
                entry
                for to in (made.alike.get(doc_id, ()) if wrong else ())
                for entry in self._exchanged(doc_id, to, own, wrong, used)
            ]
        entries = [(answer, roles, one, metric) for answer, roles, one in scored for metric in one.scores]
        columns = {
            "references": [
                {"answer": text(answer), "roles": list(roles), "metric": metric, "score": one.scores[metric]}
                | labels(one.items.get(metric))
                for answer, roles, one, metric in entries
            ],
            "exchanged": exchanged,
        }
        items = [one.items.get(metric, one.scores[metric]) for _, _, one, metric in entries]
        return {name: column for name, column in columns.items() if column}, items

    def _exchanged(
        self, doc_id: int, to: int, own: Answered, wrong: Answered, used: Sequence[Key]
    ) -> list[dict[str, Any]]:
        """Return what a doc's answers earn under the gold of another doc (column ``exchanged``)."""
        scores = self._elsewhere(doc_id, to, own, used)
        others = self._elsewhere(doc_id, to, wrong, used, "wrong ")
        return [{"to": to, "set": key, "score": score, "wrong": others[key]} for key, score in scores.items()]

    def _elsewhere(
        self, doc_id: int, to: int, views: Answered, used: Sequence[Key], of: str = ""
    ) -> Mapping[str, Scalar]:
        """Return the scalar of a doc's first view (``full``), and of the best of each set, under the gold of another doc.

        Views with the same answer are scored once.

        Args:
            doc_id: the doc that got the answers.
            to: the doc under whose gold they are scored.
            views: the views.
            used: the sets.
            of: of which image, for the random stream.
        """
        known: dict[str, Scalar] = {}

        def scalar(place: int) -> Scalar:
            _, got = views[place]
            if Unanswered in map(type, got):
                return None
            answers = repr(list(got))
            if answers in known:
                return known[answers]
            scored, drew = self._scores.on(to, list(got), f"{doc_id}/{of}{place}", answers)
            score = scored.scores.get(self._golds.primary)
            if not drew:
                known[answers] = score
            return score

        out = {"full": scalar(0)}
        for key in used:
            places = [place for place, (one, _) in enumerate(views) if one.view.set == key]
            scores = [scalar(place) for place in places]
            at = best(scores)
            if places:
                out[str(key)] = None if at is None else scores[at]
        return out


def gold_at(answer: Answer) -> int | None:
    """Return the place of the gold among the options, from 1; None where the gold is not among them."""
    return answer.options.index(answer.gold) + 1 if answer.gold in answer.options else None


def _read(text: str, answer: Answer, turn: int) -> int | None:
    """Return the place of the option that an answer names, in the doc's own order, where options are shown moved by some places."""
    by_place = not answer.texts or answer.options != answer.texts
    if not turn or not by_place:
        return named(text, answer)
    count = len(answer.options)
    order = [(place + turn) % count for place in range(count)]
    texts = tuple(answer.texts[place] for place in order) if len(answer.texts) == count else ()
    read = named(text, dataclasses.replace(answer, texts=texts))
    return order[read - 1] + 1 if read else read
