"""Scores what no model said: uninformed answers, the gold, and each doc's answers under the golds of other docs.

An answer is scored under another doc's gold on
the rank that has the answer, and the score goes into the record of the doc that gave it. So ranks exchange nothing, and
the log of a finished run holds all that the statistics need.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lmms_patch.ask.answers import Answer
from lmms_patch.ask.kinds import Key
from lmms_patch.ask.named import named
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.harness.wrap.golds import Golds
from lmms_patch.harness.wrap.orders import OrderTable
from lmms_patch.harness.wrap.scorer import Scorer, Unanswered
from lmms_patch.harness.wrap.swap import said
from lmms_patch.runs.scored import Baseline, Exchanged, Lent, ScoredView, cells_of
from lmms_patch.runs.scoring import Scalar, best, worst_orders

_DOCS_TO_TRY = 8
"""How many docs ``golds_from`` tries."""
_KEPT = 200_000
"""How many scores are kept to be used again: many donors give the same answer."""


class Scores:
    """Scores of answers that no model gave, each kept for further use.

    Args:
        scorer: the native scorer.
        rows: gives the docs as the host hands them to scorers, by doc id.
    """

    def __init__(self, scorer: Scorer, rows: Callable[[], Any]) -> None:
        self._scorer, self._rows = scorer, rows
        self._known: OrderedDict[tuple[int, str], ScoredView] = OrderedDict()

    def on(self, doc_id: int, answers: list[Any], who: str = "", told: str = "") -> tuple[ScoredView, bool]:
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

    def keep(self, key: tuple[int, str], scored: ScoredView) -> None:
        """Keep a score."""
        self._known[key] = scored
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)

    @functools.lru_cache(maxsize=512)  # noqa: B019 - one object per task, as long-lived as the task
    def row(self, doc_id: int) -> Any:
        """Return a doc."""
        return self._rows()[doc_id]


class References:
    """The references of a wrapped task: everything scored beside the model's answers.

    Args:
        spec: what was asked.
        base: the native task.
        rows: gives the docs as the host hands them to scorers, by doc id.
        golds: what is known of the docs.
        scorer: the native scorer.
        primary: the metric for which donors' answers are scored.
        orders: the orders of docs' options, where answers count by their worst order; None elsewhere.
        silent: whether the scorer calls a judge or the network. It is then never called for references.
    """

    def __init__(
        self,
        spec: WrapSpec,
        base: Any,
        rows: Callable[[], Any],
        golds: Golds,
        scorer: Scorer,
        primary: str,
        orders: OrderTable | None,
        *,
        silent: bool,
    ) -> None:
        self._spec, self._base, self._rows, self._golds, self._scorer = spec, base, rows, golds, scorer
        self._primary, self._orders, self._silent = primary, orders, silent
        self._lock = threading.RLock()
        self._scores = Scores(scorer, rows)

    def scalar_of(self, doc_id: int, text: str) -> Scalar:
        """Return the primary metric's scalar of an answer that no model gave (``Scorer.score_plainly``)."""
        made = self._golds.plan
        options = len(made.answers[doc_id].options) if made is not None and made.answers[doc_id] else 0
        results = self._golds.as_results(text, options)
        return self._scorer.score_plainly(self._scores.row(doc_id), results).get(self._primary)

    def marks(self, doc_id: int) -> Scalar:
        """Return a doc's full marks: what its gold earns by the primary metric (the best of several golds).

        None where that is not known.
        """
        made = self._golds.plan
        if self._silent or made is None or doc_id not in made.baselines:
            return None
        golds = [text for text, roles in made.baselines[doc_id].items() if "gold" in roles]
        known = [
            score for text in golds if (score := self._baseline_of(doc_id, text).scores.get(self._primary)) is not None
        ]
        return max(known, default=None)

    def items(self, doc_ids: Sequence[int]) -> dict[str, list[tuple[Any, Scalar]]]:
        """Return native items with their scalars to try the metric's aggregation on: of golds, and of further answers.

        Args:
            doc_ids: which docs; those without such an answer are left out.
        """
        out: dict[str, list[tuple[Any, Scalar]]] = {"gold": [], "other": []}
        made = self._golds.plan
        for doc_id in doc_ids if made is not None and not self._silent else ():
            for text, roles in made.baselines.get(doc_id, {}).items() if made is not None else ():
                scored = self._baseline_of(doc_id, text)
                if self._primary in scored.items:
                    out["gold" if "gold" in roles else "other"].append(
                        (scored.items[self._primary], scored.scores.get(self._primary))
                    )
        return out

    def _baseline_of(self, doc_id: int, text: str) -> ScoredView:
        made = self._golds.plan
        assert made is not None
        return self._scores.on(doc_id, self._golds.as_results(text, len(made.answers[doc_id].options)))[0]

    def golds_from(self) -> tuple[str, str]:
        """Return, in words, where golds come from.

        And where golds earn nothing, the field that the scorer seems to compare with.

        That field is found by trial: it is the first whose text earns more than 0 on each of the first docs.
        """
        given, target = self._spec.options.gold, self._base.config.doc_to_target
        shown = f"function {target.__name__}" if callable(target) and hasattr(target, "__name__") else repr(target)
        told = f"the option gold, {given!r}" if given else f"doc_to_target, {shown}"
        if self._silent or self._golds.plan is None or self._golds.by_index:
            return told, ""
        first = [
            (doc.doc_id, self._golds.plan.answers[doc.doc_id].gold, self._scores.row(doc.doc_id))
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
        return self._scores.on(doc_id, [text])[0].scores.get(self._primary)

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
        gold_at, marks = _gold_at(answer), self.marks(doc_id)
        out = []
        for one, got in zip(scored, answers, strict=True):
            score, place, misread = one.scores.get(self._primary), None, False
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
        about = {"format": answer.format, "label": answer.label, "options": len(answer.options), "gold": answer.gold}
        about |= {"gold_at": _gold_at(answer)}
        out: dict[str, Any] = {"answer": about, "stratum": made.strata[doc_id]}
        # a judge or the network is never asked about references
        if self._silent:
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
            for loan in made.loans.get(doc_id, ()):
                out.setdefault("lent", []).append(
                    Lent(loan.to, loan.p, *self._elsewhere(doc_id, loan.to, scored, answers, used))
                )
            # only a doc that was also asked on a wrong image has both sorts of answers
            for to in made.alike.get(doc_id, ()) if wrong[0] else ():
                both = [
                    self._elsewhere(doc_id, to, *views, used, of)
                    for of, views in (("", (scored, answers)), ("wrong ", wrong))
                ]
                out.setdefault("exchanged", []).append(Exchanged(to, *both[0], *both[1]))
        return out

    def _baselines(self, doc_id: int, text: str, roles: Sequence[str], options: int) -> list[Baseline]:
        """Return an uninformed answer, scored: as gold in the doc's order; in further roles by its worst order where orders count."""
        answers = self._golds.as_results(text, options)
        own, _ = self._scores.on(doc_id, answers)
        if self._orders is None:
            return [Baseline(text, tuple(roles), own.items, own.scores)]
        out = [Baseline(text, ("gold",), own.items, own.scores)] if "gold" in roles else []
        if others := tuple(role for role in roles if role != "gold"):
            scored = [
                own,
                *(
                    self._scorer.score_answers(row, doc_id, answers, f"order {turn}/{text}")[0]
                    for turn, row in enumerate(self._orders.others(self._rows()[doc_id], doc_id), 1)
                ),
            ]
            # the scores are of a single view in all its orders, so a single place comes back
            (worst,) = (
                scored[place]
                for place in worst_orders(scored, lambda one: text, lambda one: one.scores.get(self._primary))
            )
            out.append(Baseline(text, others, worst.items, worst.scores))
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
            score = scored.scores.get(self._primary)
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
