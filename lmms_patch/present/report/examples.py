"""Docs to look at, picked by rule and never by hand: which cells answer, and which do not (RCI Table 7, PCRI Table 4).

Pure.
"""

from __future__ import annotations

import bisect
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from lmms_patch.present.report.data import CellAnswer, Example
from lmms_patch.runs import logs
from lmms_patch.runs.logs import Line
from lmms_patch.runs.record import Record, View, first_box, full_marks
from lmms_patch.runs.run import Result
from lmms_patch.runs.scoring import worst_orders
from lmms_patch.text import cut

RULES = {
    "any cell": "The full image and every cell are answered rightly: the question can be answered without looking, or the answer is everywhere.",
    "global only": "Only the full image is answered rightly, no cell of any grid.",
    "luck-like": "Some cell is right, but the cells answer as guesses would: another answer is given at least as often as the right one.",
    "distracted": "The full image is answered wrongly, and a cell rightly: the rest of the image distracts.",
    "local": "The full image is answered rightly, and so are some of the cells: one cell is enough.",
    "unanswered": "Neither the full image nor any cell is answered rightly.",
}
"""The rules in the order in which they are asked; the first that holds is the doc's. Right: at least half of full marks."""

QUESTION, ANSWER = 1_500, 400
"""Characters that are shown of a question, and of an answer."""


class Picker:
    """Keeps a few docs of each rule while a log passes by: those of the lowest rank, whatever the order of the log.

    Args:
        count: docs per rule; 0: none.
        rules: the rules, in the order in which they are shown.
        rule_of: from a line of the sample log to the rule of its doc; None for a doc that is not shown.
        rank: from a line to what it is sorted by. It depends on nothing that a model said, so that two models show the
            same docs where the same rules hold.
    """

    def __init__(
        self,
        count: int,
        rules: Iterable[str],
        rule_of: Callable[[Any], str | None],
        rank: Callable[[Any], tuple[Any, ...]],
    ) -> None:
        self._count, self._rules, self._rule_of, self._rank = count, rules, rule_of, rank
        self._kept: dict[str, list[tuple[tuple[Any, ...], Any]]] = {}

    def see(self, line: Any) -> None:
        """Take a line of the sample log, if a rule picks the doc."""
        if self._count and (rule := self._rule_of(line)) is not None:
            kept = self._kept.setdefault(rule, [])
            bisect.insort(kept, (self._rank(line), line), key=itemgetter(0))
            del kept[self._count :]

    def picked(self) -> dict[str, list[Any]]:
        """Return the picked lines by rule."""
        return {rule: [line for _, line in self._kept[rule]] for rule in self._rules if rule in self._kept}


def picker(result: Result, count: int) -> Picker:
    """Return what picks docs of a task with cells; they are ranked by a hash of benchmark and doc id."""

    def rank(line: Line) -> tuple[str, int]:
        doc_id = int(line.record.doc_id)
        return hashlib.sha256(f"{result.base}/{doc_id}".encode("utf-8", "surrogatepass")).hexdigest()[:12], doc_id

    # Rules need to know right from wrong, which a metric better when lower does not tell.
    known = result.kind.index and result.higher_is_better
    return Picker(count if known else 0, RULES, lambda line: rule_of(line, result.metric), rank)


def rule_of(line: Line, metric: str) -> str | None:
    """Return the rule of a doc.

    None where its full image or a cell is unscored or was not asked, or it has no cells.

    Args:
        line: of the sample log.
        metric: the primary metric.
    """
    record = line.record
    views, answers = _counted(line.record, line, metric)
    need = full_marks(record, metric) / 2
    scores = [view.scores.get(metric) for view in views]
    cells = [i for i, view in enumerate(views) if view.cell is not None]
    if record.asked is not None and record.asked.unasked:
        return None
    if not cells or None in [scores[i] for i in (0, *cells)] or record.excluded:
        return None
    right = [score is not None and score >= need for score in scores]
    good = [i for i in cells if right[i]]
    if right[0] and len(good) == len(cells):
        return "any cell"
    if not good:
        return "global only" if right[0] else "unanswered"
    # With turned options the same letter means different answers, so letters cannot show guessing.
    if not record.task_kind.every_order and _like_guesses(answers, right, cells):
        return "luck-like"
    return "local" if right[0] else "distracted"


def _like_guesses(answers: Sequence[str], right: Sequence[bool], cells: Sequence[int]) -> bool:
    """Return whether a wrong answer is as frequent among cells as the right answer, with no answer in most cells.

    (Where most cells give one wrong answer, say "unknown", a right one stands out: that is no guess.)
    """
    wrong = Counter(answers[i].strip().lower() for i in cells if not right[i])
    often = max(wrong.values(), default=0)
    return sum(right[i] for i in cells) <= often <= len(cells) / 2


def _counted(record: Record, line: Line, metric: str) -> tuple[list[View], list[str]]:
    """Return the views of a doc with the answers.

    Where each was asked in every order of the options, in its worst order, which it counts as.
    """
    answers = answers_of(line)
    if not record.task_kind.every_order:
        return record.views, answers
    places = worst_orders(record.views, lambda view: (view.n, view.cell), lambda view: view.scores.get(metric))
    told = [
        f"{answers[place]} (options moved by {turn})" if (turn := record.views[place].turn) else answers[place]
        for place in places
    ]
    return [record.views[place] for place in places], told


def answers_of(line: Line) -> list[str]:
    """Return the answers on the doc's image; empty texts where unknown."""
    return [answer or "" for answer in logs.answers_of(line)[: len(line.record.views)]]


def example(entry: str, rule: str, line: Line, metric: str, image: str | None = None) -> Example:
    """Return a picked doc in the form for display.

    Args:
        entry: id of its result in the report.
        rule: see ``RULES``.
        line: of the sample log.
        metric: the primary metric.
        image: its first image as a ``data:`` URI.
    """
    record = line.whole()
    (views, answers), need = _counted(record, line, metric), full_marks(record, metric) / 2
    sizes = record.image_sizes or [[1, 1]]
    width, height = int(sizes[0][0]), int(sizes[0][1])
    grids: dict[int, list[CellAnswer]] = {}
    for view, answer in zip(views, answers, strict=True):
        if view.n is None or view.row is None or view.col is None:
            continue
        if view.kind == "segment":  # drawn as a part of the clip's length
            box = (100 * view.col / view.n, 0.0, 100 / view.n, 100.0)
        else:
            left, top, right, bottom = first_box(view)
            box = (100 * left / width, 100 * top / height, 100 * (right - left) / width, 100 * (bottom - top) / height)
        score = view.scores.get(metric)
        grids.setdefault(view.n, []).append(
            CellAnswer(view.row, view.col, box, cut(answer, ANSWER), score, None if score is None else score >= need)
        )
    score = views[0].scores.get(metric)
    gold = record.answer.gold if record.answer.gold is not None else line.target
    return Example(
        entry,
        rule,
        int(record.doc_id),
        cut(str(line.input or ""), QUESTION),
        cut("" if gold is None else str(gold), ANSWER),
        cut(answers[0], ANSWER),
        score,
        None if score is None else score >= need,
        (width, height),
        {n: tuple(cells) for n, cells in grids.items()},
        image,
        f"doc {record.doc_id}, {width} by {height} pixels",
    )
