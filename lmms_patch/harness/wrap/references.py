"""Scores what no model said: uninformed answers and the gold; and says which option an answer names.

The scores go into the rows of the doc, on the rank that has its answers. So ranks exchange nothing, and the table of a
finished run holds all that the statistics need.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_patch.ask.answers import Answer
from lmms_patch.ask.named import named
from lmms_patch.harness.wrap.known import Golds
from lmms_patch.harness.wrap.scorer import Scored, Scorer, said
from lmms_patch.runs.frames import labels, text
from lmms_patch.runs.scoring import Scalar

Answered = Sequence[tuple[Scored, Sequence[Any]]]
"""Scored views of a doc, each with its filtered answers."""
_KEPT = 200_000
"""How many scores are kept to be used again: many docs are given the same answer."""


class References:
    """What a doc's rows say beside its views' scores. Where the scorer calls a judge, it is never called for this.

    Args:
        golds: what is known of the docs.
        scorer: the native scorer.
    """

    def __init__(self, golds: Golds, scorer: Scorer) -> None:
        self._golds, self._scorer, self._primary = golds, scorer, golds.known.primary
        self._known: OrderedDict[tuple[int, str], Scored] = OrderedDict()

    def _keep(self, doc_id: int, answers: Sequence[Any], scored: Scored) -> None:
        """Keep a score of answers on a doc."""
        self._known[doc_id, repr(list(answers))] = scored
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)

    @functools.lru_cache(maxsize=16)  # noqa: B019 - one object per task, as long-lived as the task
    def _row(self, doc_id: int) -> Any:
        """Return a doc. Few are kept, since rows may hold images."""
        return self._golds.known.scored_rows[doc_id]

    def scalar_of(self, doc_id: int, text: str) -> Scalar:
        """Return the primary metric's scalar of an answer that no model gave (``Scorer.score_plainly``)."""
        answers = self._golds.as_results(doc_id, text)
        return self._scorer.score_plainly(self._row(doc_id), answers).get(self._primary)

    def _baselines(self, doc_id: int) -> list[tuple[str, Sequence[str], Scored]]:
        """Return a doc's uninformed answers and golds, each with its roles and its score; none where a judge would be called for them.

        A score is kept to be used again, unless the scorer drew a random number: then each view gets a guess of its own.
        """
        made, out = self._golds.plan, []
        silent = made is None or self._golds.known.judge is not None
        for answer, roles in () if silent else made.baselines.get(doc_id, {}).items():  # type: ignore[union-attr] # without a plan it is silent
            answers = self._golds.as_results(doc_id, answer)
            told = repr(answers)
            scored = self._known.get((doc_id, told))
            if scored is None:
                scored, drew = self._scorer.score_answers(self._row(doc_id), doc_id, answers, f"/{told}")
                if not drew:
                    self._keep(doc_id, answers, scored)
            out.append((answer, roles, scored))
        return out

    def marks(self, doc_id: int) -> Scalar:
        """Return a doc's full marks: what its gold earns by the primary metric (the best of several golds).

        None where that is not known.
        """
        golds = [one.scores.get(self._primary) for _, roles, one in self._baselines(doc_id) if "gold" in roles]
        return max((score for score in golds if score is not None), default=None)

    def items(self, doc_ids: Sequence[int]) -> tuple[list[tuple[Any, Scalar]], list[tuple[Any, Scalar]]]:
        """Return native items with their scalars to try the metric's aggregation on: of golds, and of wrong answers.

        Args:
            doc_ids: which docs; those without such an answer are left out.
        """
        sides: tuple[list[tuple[Any, Scalar]], list[tuple[Any, Scalar]]] = [], []
        for _, roles, one in (baseline for doc_id in doc_ids for baseline in self._baselines(doc_id)):
            if self._primary in one.items:
                sides["gold" not in roles].append((one.items[self._primary], one.scores.get(self._primary)))
        return sides

    def named(self, doc_id: int, views: Answered) -> list[dict[str, Any]]:
        """Return for each view of a doc which of the doc's options its answer names (columns ``names``, ``denied``).

        The scorer decides whether that is the gold: an answer with full marks names it, whatever it looks like, and one
        without does not. Of options that are shown in another order a letter names the one that stands there.
        """
        answer = self._golds.answer(doc_id)
        if answer is None or len(answer.options) < 2:
            return [{} for _ in views]
        at, marks = gold_at(answer), self.marks(doc_id)

        def columns(one: Scored, got: Sequence[Any]) -> dict[str, Any]:
            score = one.scores.get(self._primary)
            if score is None or not marks:
                return {}
            read = _read(said(got, whole=True), answer, one.view.turn)
            # full marks name the gold, however the answer reads; without them the gold is not named
            if score >= marks:
                return {"names": at or 0}
            return {"names": 0, "denied": True} if read == at else {"names": read}

        return [columns(*view) for view in views]

    @functools.lru_cache(maxsize=256)  # noqa: B019 - one object per task, as long-lived as the task
    def gold_shares(self, stratum: str) -> Mapping[str, float]:
        """Return how often each answer is the gold of the docs of a stratum."""
        plan = self._golds.plan
        assert plan is not None
        golds = [said([plan.answers[one].gold]) for one, of in plan.strata.items() if of == stratum]
        return {gold: count / len(golds) for gold, count in Counter(golds).items()}

    def of(self, doc_id: int, views: Answered) -> tuple[list[dict[str, Any]], list[Any]]:
        """Return a doc's ``references``, and the native item of each.

        Args:
            doc_id: the doc.
            views: its views, asked once.
        """
        for one, got in views:
            # the model's answers are scored already: an uninformed answer with the same text needs no further call
            if not self._scorer.keeps_apart and not one.unscored and not one.view.turn:
                self._keep(doc_id, got, one)
        entries = [
            (answer, roles, one, metric) for answer, roles, one in self._baselines(doc_id) for metric in one.scores
        ]
        references = [
            {"answer": text(answer), "roles": list(roles), "metric": metric, "score": one.scores[metric]}
            | labels(one.items.get(metric))
            for answer, roles, one, metric in entries
        ]
        return references, [one.items.get(metric, one.scores[metric]) for _, _, one, metric in entries]


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
