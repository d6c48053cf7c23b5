"""Failed calls of a run: which docs they cost, and when they are so many that no index may be read. Pure.

A server that gives up on a request sends no answer, and lmms-eval writes a text in place of one. Such a view is
unscored. Scored as an answer it would be wrong, and more often so on the one full image than on the best of nine cells:
5 % of failed calls move an RCI of -0.31 to -0.36.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lmms_patch.ask.answers import is_missing
from lmms_patch.ask.kinds import BESIDE, Key, Kind
from lmms_patch.runs.record import TURNS, Record, View, in_set
from lmms_patch.stats.bounds import Count, Some

if TYPE_CHECKING:
    from lmms_patch.runs.numbers import Analysis

T = TypeVar("T")
REASON = "a call failed"
"""Why a doc is not used for a set of views of which a call failed; in the records under ``excluded``."""
UNSCORED = "a view has no score"
"""Likewise where the scorer gave no value of the metric for an answer."""
WORTH_UNREAD = 0.05
"""Share of answers to the first view that name no option from which on a warning is due."""
_UNREAD = "answers that name none of the options"
WORTH_A_WARNING = 0.01
"""Share of docs with a failed call from which on a warning is due."""
TOO_MANY = 0.05
"""Share of failed calls above which there is no index."""
TOO_MANY_OF_A_PART = 0.002
"""The same in a run that left cells out. A doc that no cell answers is asked more often there, and fails more often, so unsolved docs go missing:
0.5 % of failed calls lower RCI by 0.01."""
ASK_AGAIN = "run again with the same --use_cache: only the failed calls are asked"
_NO_VALUE = "the scorer gave none"
"""What ``rci.analysis`` says of docs whose first view has no value of the metric."""
_CUT = "were cut by the token limit"
_NO_IMAGE = ("its image cannot be loaded", "an image cannot be read", "the wrong image: ")
"""How the reason begins where the model was asked, but about a grey image: that of the doc could not be loaded."""


@dataclass(frozen=True)
class Failed:
    """The failed calls of a task.

    Attributes:
        docs: docs with a failed call.
        of: docs that were asked.
        calls: failed calls; a view of a doc is a call.
        asked: calls.
        first: docs whose first view failed (the full image, where it is asked): they are in none of our numbers.
        text: what most often came in place of an answer.
    """

    docs: Some
    of: Some
    calls: Some
    asked: Some
    first: Count
    text: str

    @property
    def sentence(self) -> str:
        """Which docs failed, and what to do."""
        mend = "put the image right and " if self.text.startswith(_NO_IMAGE) else ""
        return (
            f"{self.docs} of {self.of} docs have a failed call and are left out of what needs it ({self.calls} of {self.asked} calls, "
            f"{self.first} of them of the first view; most often: {self.text}); {mend}{ASK_AGAIN}"
        )

    def native(self, metric: str) -> str:
        """Say what the harness's metric makes of the failed calls; "" where none of them count."""
        if not self.first:
            return ""
        return f"{metric} as the harness prints it counts {self.first} failed calls as wrong answers; FIP, gate and index leave these docs out"

    @property
    def many(self) -> bool:
        """Whether the failed docs are worth a warning."""
        return self.docs > WORTH_A_WARNING * self.of


def told_of(analysis: Analysis | None) -> list[str]:
    """Return the sentences of an analysis about answers that are not whole and scored: failed, unscored, unfinished, unread."""
    if analysis is None:
        return []
    said = [line for line in analysis.warnings if _NO_VALUE in line or _CUT in line or _UNREAD in line]
    return [*([] if analysis.failed is None else [analysis.failed.sentence]), *said]


def different(objects: Iterable[T]) -> list[T]:
    """Return each object once.

    Docs that are read from a log share the objects of equal views and answers, so these are few.
    """
    given = list(objects)
    return list(dict(zip(map(id, given), given, strict=True)).values())


def has_failed(view: View) -> bool:
    """Return whether a view in a record is of a failed call."""
    return view.failed is not None


def unscored(record: Record, metric: str) -> bool:
    """Return whether a doc's first view was answered, but got no value of the metric from the scorer."""
    first = record.views[0]
    return record.is_asked and not has_failed(first) and first.error is None and is_missing(first.items.get(metric))


def states(record: Record, metric: str) -> Counter[str]:
    """Count a doc's answers by fault: ``failed``, ``unscored`` (by the scorer, or after its exception) and ``unfinished``.

    An unfinished answer that is unscored too counts as unscored. Nothing is counted for a doc that was not asked, or that
    has another metric of the task.
    """
    if not record.is_asked or (
        any(view.items for view in record.views) and not any(metric in view.items for view in record.views)
    ):
        return Counter()
    named = (
        "failed"
        if has_failed(view)
        else "unscored"
        if is_missing(view.items.get(metric))
        else "unfinished"
        if view.unfinished
        else ""
        for view in record.views
    )
    return Counter(filter(None, named))


def states_in_words(counts: Mapping[str, int], views: int) -> str:
    """Say how many answers have each state but ``answered``; "" where all are whole and scored.

    Args:
        counts: ``states`` of all docs.
        views: how many were asked.
    """
    words = {
        "failed": "failed calls",
        "unscored": "without a value from the scorer",
        "unfinished": "cut by the token limit (scored as they are)",
    }
    told = [f"{counts[name]:,} {said}" for name, said in words.items() if counts.get(name)]
    return f"of {views:,} answers {', '.join(told)}" if told else ""


def unanswered(record: Record) -> bool:
    """Return whether the call for a doc's first view failed: then nothing of ours can be said of the doc."""
    return has_failed(record.views[0])


def count(records: Sequence[Record]) -> Failed | None:
    """Count the failed calls of some docs; None where no call failed."""
    records = [record for record in records if record.is_asked]
    views = [record.every_view for record in records]
    # most runs have no failed call, and the different views are few: nothing more is counted then
    if not any(map(has_failed, different(itertools.chain.from_iterable(views)))):
        return None
    texts = [[view.failed for view in of_doc if view.failed is not None] for of_doc in views]
    often = Counter(text for of_doc in texts for text in of_doc)
    return Failed(
        sum(map(bool, texts)),
        len(records),
        often.total(),
        sum(map(len, views)),
        sum(map(unanswered, records)),
        often.most_common(1)[0][0],
    )


def unfinished(records: Sequence[Record]) -> str:
    """Say how many answers were cut by the token limit, of the first view and of all further views.

    "" where none was.

    They are scored as they are, as the harness scores them. Where one kind of view is cut more often, an index compares
    unlike answers.
    """
    views = [record.views for record in records if record.is_asked]
    first, others = (
        [view.unfinished for of_doc in views for view in of_doc[place]] for place in (slice(1), slice(1, None))
    )
    if not any(first) and not any(others):
        return ""
    said = f"{sum(first)} of {len(first)} answers to the first view and {sum(others)} of {len(others)} to other views {_CUT}"
    shares = [sum(some) / max(1, len(some)) for some in (first, others)]
    # the standard error of the difference between the two shares
    error = math.sqrt(
        sum(share * (1 - share) / max(1, len(some)) for share, some in zip(shares, (first, others), strict=True))
    )
    # a difference within noise, or below 1 %, is no news
    if others and abs(shares[0] - shares[1]) > max(2 * error, WORTH_A_WARNING):
        said += "; the shares differ, so an index compares whole answers with cut ones: allow more tokens (--gen_kwargs max_new_tokens=N)"
    return said


def unread(records: Sequence[Record]) -> str:
    """Say how many answers name none of their doc's options, if more than a few to the first view do so.

    "" elsewhere.

    The scorer counts them as wrong. On cells a model may well abstain, which is no fault; what that means for luck is
    tested (``luck.Tests``).
    """
    asked = [record for record in records if record.is_asked and record.answer.options]
    parts = {
        "the first view": [record.views[0] for record in asked],
        "other views": [view for record in asked for view in record.views[1:]],
        "a wrong image": [view for record in asked for view in record.wrong_views],
    }
    read = {what: [view.names == 0 for view in views if view.names is not None] for what, views in parts.items()}
    first = read["the first view"]
    if not first or sum(first) <= WORTH_UNREAD * len(first):
        return ""
    # kinds of views of which none was read are left out
    said = ", ".join(f"{sum(some)} of {len(some)} to {what}" for what, some in read.items() if some)
    return f"{_UNREAD}: {said}; they are scored as they are, mostly as wrong"


def too_many(records: Sequence[Record], key: Key) -> str:
    """Say so if too many calls failed for the numbers of a set of views; else return "".

    More than ``TOO_MANY`` of the calls for the full image, or of those for the set, by more than the two standard
    errors by which the share of a server that fails exactly so many would vary.

    Args:
        records: ``patch`` objects of all docs that were asked.
        key: the set, a point of a curve, or ``TURNS``: the full image in every order of the options.
    """
    records = [record for record in records if record.is_asked]
    # a run that left cells out asks unsolved docs more often, and so loses them more often
    most = TOO_MANY if all(record.asked is None for record in records) else TOO_MANY_OF_A_PART
    if not records:
        return ""
    kind = records[0].task_kind
    what, of = _calls(kind, key)
    parts = {
        f"the full {kind.words.medium}" if kind.full or not kind.curve else "the first view": [
            record.views[0] for record in records
        ],
        what: [view for record in records for view in record.views if of(view)],
    }
    for what, views in parts.items():
        failed, asked = sum(map(has_failed, views)), len(views)
        if failed > most * asked + 2 * math.sqrt(most * (1 - most) * asked):
            share = (
                f"{failed / asked:.0%}, more than {most:.0%}"
                if most == TOO_MANY
                else f"{failed / asked:.2%}, more than {most:.1%} of a part"
            )
            # one view stands in place of its orders
            if kind.every_order and key != TURNS:
                return f"{failed} of {asked} views of {what} have a failed call ({share}); {ASK_AGAIN}"
            return f"{failed} of {asked} calls for {what} failed ({share}); {ASK_AGAIN}"
    return ""


def _calls(kind: Kind, key: Key) -> tuple[str, Callable[[View], bool]]:
    """Return in words which calls a set's numbers rest on, and a test for the views among them."""
    words = kind.words
    if key == TURNS:
        return f"the full {words.medium} in all orders", lambda view: view.gold_at is not None and view.cell is None
    if isinstance(key, str):
        return f"the {words.medium} {kind.beside}" if key == BESIDE else f"{key} boxes", lambda view: in_set(view, key)
    if kind.curve:
        return f"the {words.medium} at {words.size(key)}" if words.sized else words.size(
            key
        ), lambda view: view.n == key
    return words.each(key), lambda view: in_set(view, key)
