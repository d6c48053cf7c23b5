"""Scores the views of a doc with the base task's own scorer."""

from __future__ import annotations

import contextlib
import numbers
import random
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np

from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.views import View
from lmms_patch.harness import compat
from lmms_patch.harness.wrap.calls import drawing_from, draws, one_line, same_draws, set_draws
from lmms_patch.harness.wrap.metrics import Metrics
from lmms_patch.runs.scoring import Scalar, scalar

_T = TypeVar("_T")


# without garbage collection: a run has too many for each collection to walk through
class Scored(msgspec.Struct, frozen=True, gc=False):
    """A view of a doc, or an answer that no model gave, scored by the base task.

    Attributes:
        view: which view.
        items: native item of each metric, as the base's ``process_results`` returned it.
        scores: scalar of each metric (fraction, or whatever the metric's own scale is), None: unscored.
        error: why there is no score (the scorer's exception, in one line); None where it scored.
        from_m: the metric whose scalar is the aggregation of its one item, if any.
        failed: what came in place of an answer, in one short line: the view is unscored. Its items are for the native
        metric.
    """

    view: View
    items: Mapping[str, Any] = {}
    scores: Mapping[str, Scalar] = {}
    error: str | None = None
    from_m: str | None = None
    failed: str = ""

    @property
    def unscored(self) -> bool:
        """Whether there is no score because the call or the scorer failed."""
        return bool(self.failed) or self.error is not None


class Scorer:
    """The native scorer of a task: scores views, and answers that no model gave. Keeps nothing of a doc."""

    def __init__(
        self, spec: WrapSpec, base: Any, metrics: Metrics, captions: Callable[[Any], Scalar] | None = None
    ) -> None:
        """Make the scorer; nothing is scored yet.

        Args:
            spec: what was asked.
            base: the native task.
            metrics: the metrics of the native task.
            captions: gives the scalar of a caption item, where the option ``scorer`` names one.
        """
        self._spec, self._base, self._metrics, self._captions = spec, base, metrics, captions
        self.draws = False
        """Whether the scorer has drawn a random number so far."""
        named = spec.options.score
        self._keys = [
            key
            for key in (*([named] if isinstance(named, str) else named or ()), base.config.score_key, "score")
            if key
        ]

    def score(
        self,
        doc: Any,
        views: Sequence[View],
        answers: Sequence[Sequence[Any]],
        *,
        shown: Sequence[Any] = (),
        from_first: bool = True,
        **kwargs: Any,
    ) -> list[Scored]:
        """Score a doc's views.

        Args:
            doc: the row, with its ``doc_id``.
            views: the views, in request order.
            answers: of each view, its filtered answers (one, or one per choice).
            shown: the row as each view shows it: with its options in another order. Empty: as it is.
            from_first: whether the doc's first view is the first of them.
            kwargs: handed on to the native scorer.
        """
        plan = list(zip(shown or [doc] * len(views), views, answers, strict=True))
        # the doc's first view draws random numbers as the base task would, so only the views after it get a seed
        own = 1 if from_first else 0

        def first() -> list[Scored]:
            return [self._score_one(row, view, got, kwargs, first=True) for row, view, got in plan[:own]]

        def plainly() -> list[Scored]:
            out, known = first(), {}
            if out:
                known[_told(*plan[0][1:])] = out[0]
            return out + [self._score_once(row, view, got, kwargs, known) for row, view, got in plan[own:]]

        def seeded() -> list[Scored]:
            return first() + [self._in_own_stream(doc.doc_id, row, view, got, kwargs) for row, view, got in plan[own:]]

        # a judge is slow, and its views are seeded in any case (``keeps_apart``): docs need not wait for each other
        with contextlib.nullcontext() if self._spec.options.allow_judge else _one_doc:
            return self._without_draws(plainly, seeded)

    @property
    def keeps_apart(self) -> bool:
        """Whether views with equal answers are scored separately: the scorer draws, or a judge may change its mind."""
        return self.draws or self._spec.options.allow_judge

    def _score_once(
        self,
        doc: Any,
        view: View,
        got: Sequence[Any],
        kwargs: Mapping[str, Any],
        known: dict[tuple[int, str], Scored],
    ) -> Scored:
        """Score a view, unless another view of the doc, in the same order of its options, has the same answer."""
        told = _told(view, got)
        if told not in known or Unanswered in map(type, got):
            known[told] = self._score_one(doc, view, got, kwargs)
        return msgspec.structs.replace(known[told], view=view)

    def _score_one(
        self, doc: Any, view: View, got: Sequence[Any], kwargs: Mapping[str, Any], first: bool = False
    ) -> Scored:
        """Score a view. After a failed call score the first view as the harness would, and give further views no score."""
        none = [answer for answer in got if isinstance(answer, Unanswered)]
        failed = next((answer.why for answer in none if answer.failed), "")
        if none and not failed:
            return Scored(view, error=none[0].why)
        if failed and (not first or None in map(native_answer, got)):
            return Scored(view, failed=failed)
        scored = self._score_view(_fresh(doc), view, [native_answer(answer) for answer in got], kwargs)
        # without scalars: a failed call has no score
        return Scored(view, scored.items, failed=failed) if failed else scored

    def _in_own_stream(
        self, doc_id: int, doc: Any, view: View, got: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Scored:
        """Score a view with random numbers seeded by the doc and the view."""
        with own_stream(f"{doc_id}/{view}{'/swapped' * view.swapped}{f'/turn {view.turn}' * bool(view.turn)}"):
            return self._score_one(doc, view, got, kwargs)

    def _without_draws(self, plain: Callable[[], _T], seeded: Callable[[], _T]) -> _T:
        """Score as if no scorer drew random numbers.

        Where this one does, score again with a random stream for each view.

        Why: few scorers draw, and making a stream for each of 100,000 views takes longer than scoring them. From the
        first draw on, each view gets its stream at once; so it does for a judge, which must not be asked twice.
        """
        if self.keeps_apart:
            return seeded()
        before = draws()
        out = plain()
        if same_draws(before, draws()):
            return out
        self.draws = True
        # back to where the first pass began, so that the first view draws again what the base task would draw
        set_draws(before)
        return seeded()

    def score_answers(self, doc: Any, doc_id: int, answers: Sequence[Any], stream: str) -> tuple[Scored, bool]:
        """Score answers that no model gave, and return whether the scorer drew random numbers.

        Args:
            doc: the row.
            doc_id: its number.
            answers: one filtered answer, or one per choice.
            stream: names the random stream, for scorers that draw.
        """

        def score() -> Scored:
            return self._score_view(_fresh(doc), View("full"), list(answers), {})

        def seeded() -> tuple[Scored, bool]:
            with own_stream(f"{doc_id}/{stream}"):
                before = draws()
                return score(), not same_draws(before, draws())

        with _one_doc:
            return self._without_draws(lambda: (score(), False), seeded)

    def score_plainly(self, doc: Any, answers: Sequence[Any]) -> Mapping[str, Scalar]:
        """Return the scalars of answers that no model gave, by metric; empty where the scorer fails.

        Made for very many calls: it sets no random stream, so the caller sets one around all of them (``own_stream``).
        """
        return self._score_view(_fresh(doc), View("full"), list(answers), {}).scores

    def _score_view(self, doc: dict[str, Any], view: View, answers: list[Any], kwargs: Mapping[str, Any]) -> Scored:
        """Call the native scorer on the answers to a view; keep an exception as the view's error, without items."""
        try:
            items = self._native_scorer()(doc, answers, **kwargs)
            if not isinstance(items, Mapping):
                raise TypeError(f"process_results returned a {type(items).__name__}, not a dict of metrics")
            native, primary = self._metrics.native, self._metrics.primary
            # no aggregation takes None
            items = {m: item for m, item in items.items() if m in native and (item is not None or m != primary)}
            scores, from_m = self._scalars(items)
            return Scored(view, items, scores, from_m=from_m)
        except Exception as error:
            return Scored(view, error=one_line(error))

    def _native_scorer(self) -> Callable[..., Any]:
        """Return the base's ``process_results``, without the host's retries unless a judge is called, which may be busy."""
        method = self._base.process_results
        plain = compat.without_retries(method)
        if plain is method or self._spec.options.allow_judge:
            return method
        # without its retries the function is no bound method
        return lambda *args, **kwargs: plain(self._base, *args, **kwargs)

    def _scalars(self, items: Mapping[str, Any]) -> tuple[dict[str, Scalar], str | None]:
        """Return the scalar of each item, and the metric whose scalar is M over its single item, if any."""
        out = {m: scalar(item, self._keys) for m, item in items.items()}
        primary = self._metrics.primary_among(items)
        if self._captions is not None and primary == self._metrics.primary:
            return {**out, primary: self._captions(items[primary])}, None
        if primary is None or out[primary] is not None or self.says_unscored(items[primary]):
            return out, None
        out[primary] = self._metrics.again.of_one(primary, items[primary])
        return out, primary

    def says_unscored(self, item: Any) -> bool:
        """Return whether the scorer gave an item no score: None, NaN, or a score key without a value."""
        if isinstance(item, Mapping):
            return any(key in item for key in self._keys) and scalar(item, self._keys) is None
        return item is None or (isinstance(item, numbers.Real) and scalar(item) is None)


@dataclass(frozen=True)
class Unanswered:
    """Stands in place of a missing filtered answer. The log shows the raw answer.

    Attributes:
        raw: the model's answer before filters.
        why: what went wrong, in one line.
        failed: whether the call failed, and not the filter.
        native: for a failed call, what the harness would hand to the scorer: the filtered text that stands for the
            answer; None for nothing.
    """

    raw: Any
    why: str
    failed: bool = False
    native: Any = None

    def __str__(self) -> str:
        return str(self.raw)


def _told(view: View, answers: Sequence[Any]) -> tuple[int, str]:
    """Return what views of a doc share where a single score holds for all: the order of options, and the answers."""
    return view.turn, repr(list(answers))


def native_answer(answer: Any) -> Any:
    """Return what the harness itself would score: after a failed call, the text in place of the answer."""
    return answer.native if isinstance(answer, Unanswered) else answer


def _fresh(value: Any) -> Any:
    """Copy a row for a call of a scorer: containers are copied, images and all further leaves shared.

    Why: some scorers change the row in place, and would find their changes in the next view's row.
    """
    # most values are texts or numbers; asked first, since ``Mapping`` takes ten times as long
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (dict, Mapping)):
        return {key: _fresh(inner) for key, inner in value.items()}
    return [_fresh(inner) for inner in value] if isinstance(value, list) else value


_one_doc = threading.Lock()
"""Scorers share the process's random generators, so one doc is scored at a time to tell whose draws they are."""


@contextlib.contextmanager
def own_stream(seed: str) -> Iterator[None]:
    """Seed the random generators for a scorer, and restore them afterwards.

    Some scorers guess where they cannot parse an answer. The generators are restored so that the first view of each doc
    draws what the base task would have drawn.
    """
    with drawing_from(draws()):
        random.seed(seed)
        np.random.seed(zlib.crc32(seed.encode()))
        yield
