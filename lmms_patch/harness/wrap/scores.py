"""Scores of answers that no model gave to a doc: its gold, uninformed answers, and what models said of other docs."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from lmms_patch.harness.wrap.golds import Golds
from lmms_patch.harness.wrap.scorer import Scored, Scorer
from lmms_patch.runs.scoring import Scalar

_DOCS_TO_TRY = 8
"""How many docs ``golds_from`` tries."""
_KEPT = 200_000
"""How many scores are kept to be used again: many donors give the same answer."""


class Scores:
    """Scores of answers that no model gave, each kept for further use.

    Args:
        golds: what is known of the docs. Where their scorer is ``silent``, it is never called for golds and uninformed answers.
        scorer: the native scorer.
    """

    def __init__(self, golds: Golds, scorer: Scorer) -> None:
        self._golds, self._scorer = golds, scorer
        self._known: OrderedDict[tuple[int, str], Scored] = OrderedDict()

    def on(self, doc_id: int, answers: list[Any], who: str = "", told: str = "") -> tuple[Scored, bool]:
        """Score answers on a doc, and tell whether the scorer drew a random number.

        The score is kept to be used again, unless the scorer drew: then each view gets a guess of its own.

        Args:
            doc_id: the doc.
            answers: one filtered answer, or one per choice.
            who: names the random stream of the answers.
            told: the answers as a text, where it is known; else it is made here.
        """
        key = doc_id, told or repr(answers)
        if key in self._known:
            return self._known[key], False
        scored, drew = self._scorer.score_answers(self.row(doc_id), doc_id, answers, f"{who}/{key[1]}")
        if not drew:
            self.keep(key, scored)
        return scored, drew

    def keep(self, key: tuple[int, str], scored: Scored) -> None:
        """Keep a score."""
        self._known[key] = scored
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)

    @functools.lru_cache(maxsize=512)  # noqa: B019 - one object per task, as long-lived as the task
    def row(self, doc_id: int) -> Any:
        """Return a doc."""
        return self._golds.rows()[doc_id]

    def scalar_of(self, doc_id: int, text: str) -> Scalar:
        """Return the primary metric's scalar of an answer that no model gave (``Scorer.score_plainly``)."""
        return self._scorer.score_plainly(self.row(doc_id), self._results(doc_id, text)).get(self._golds.primary)

    def marks(self, doc_id: int) -> Scalar:
        """Return a doc's full marks: what its gold earns by the primary metric (the best of several golds).

        None where that is not known.
        """
        made = self._golds.plan
        if self._golds.silent or made is None or doc_id not in made.baselines:
            return None
        golds = [text for text, roles in made.baselines[doc_id].items() if "gold" in roles]
        known = [
            score
            for text in golds
            if (score := self._baseline_of(doc_id, text).scores.get(self._golds.primary)) is not None
        ]
        return max(known, default=None)

    def items(self, doc_ids: Sequence[int]) -> tuple[list[tuple[Any, Scalar]], list[tuple[Any, Scalar]]]:
        """Return native items with their scalars to try the metric's aggregation on: of golds, and of wrong answers.

        Args:
            doc_ids: which docs; those without such an answer are left out.
        """
        golds: list[tuple[Any, Scalar]] = []
        others: list[tuple[Any, Scalar]] = []
        made, primary = self._golds.plan, self._golds.primary
        for doc_id in doc_ids if made is not None and not self._golds.silent else ():
            for text, roles in made.baselines.get(doc_id, {}).items() if made is not None else ():
                scored = self._baseline_of(doc_id, text)
                if primary in scored.items:
                    to = golds if "gold" in roles else others
                    to.append((scored.items[primary], scored.scores.get(primary)))
        return golds, others

    def _baseline_of(self, doc_id: int, text: str) -> Scored:
        return self.on(doc_id, self._results(doc_id, text))[0]

    def _results(self, doc_id: int, text: str) -> list[Any]:
        """Return a text in the form of a doc's answers (``Golds.as_results``)."""
        answer = self._golds.plan and self._golds.plan.answers[doc_id]
        return self._golds.as_results(text, len(answer.options) if answer else 0)

    def golds_from(self) -> tuple[str, str]:
        """Return, in words, where golds come from.

        And where golds earn nothing, the field that the scorer seems to compare with.

        That field is found by trial: it is the first whose text earns more than 0 on each of the first docs.
        """
        given, target = self._golds.spec.options.gold, self._golds.base.config.doc_to_target
        shown = f"function {target.__name__}" if callable(target) and hasattr(target, "__name__") else repr(target)
        told = f"the option gold, {given!r}" if given else f"doc_to_target, {shown}"
        if self._golds.silent or self._golds.plan is None or self._golds.by_index:
            return told, ""
        first = [
            (doc.doc_id, self._golds.plan.answers[doc.doc_id].gold, self.row(doc.doc_id))
            for doc in self._golds.docs[:_DOCS_TO_TRY]
        ]
        # golds that earn something are in the right field
        if not first or any(gold is None or (self._earned(doc_id, gold) or 0) > 0 for doc_id, gold, _ in first):
            return told, ""
        names = [
            name
            for name, value in first[0][2].items()
            if isinstance(value, (str, int, float)) and not isinstance(value, bool)
        ]
        for name in names:
            if all((self._earned(doc_id, str(row.get(name, ""))) or 0) > 0 for doc_id, _, row in first):
                return told, name
        return told, ""

    def _earned(self, doc_id: int, text: str) -> Scalar:
        """Return the primary metric's scalar of a text taken as the answer to a doc."""
        return self.on(doc_id, [text])[0].scores.get(self._golds.primary)
