"""From an adapter's response to a score: the base task's own filters, once per view and choice, and its own scorer on each view."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import numbers
import random
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
from lmms_eval.api.instance import Instance

from lmms_patch.ask.views import View
from lmms_patch.harness import compat
from lmms_patch.harness.wrap.calls import Again, draws, one_line, same_draws, set_draws, undrawn
from lmms_patch.harness.wrap.known import Known
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


def native_answer(answer: Any) -> Any:
    """Return what the harness itself would score: after a failed call, the text in place of the answer."""
    return answer.native if isinstance(answer, Unanswered) else answer


MOST_SAID = 32
"""Characters of an answer that are kept; a longer answer ends in a digest."""


def said(answers: Sequence[Any], *, whole: bool = False) -> str:
    """Return a short text of the answer in a view, equal for equal answers; "" for a failed call.

    Args:
        answers: the filtered answer; or one (loss, ...) pair per choice, where the lowest loss marks the answer.
        whole: return the answer as it is, however long.
    """
    if any(isinstance(one, Unanswered) for one in answers):
        return ""
    # log-likelihoods: the answer is the option with the lowest loss
    if len(answers) > 1 or (answers and isinstance(answers[0], (tuple, list))):
        losses = [float(one[0]) if isinstance(one, (tuple, list)) else float(one) for one in answers]
        return str(losses.index(min(losses)))
    text = str(answers[0] if answers else "")
    if whole:
        return text
    # case, spaces and a final stop make no other answer
    text = " ".join(text.split()).strip(" .").lower()
    if len(text) <= MOST_SAID:
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{text[: MOST_SAID - 9]}#{digest}"


class Scorer:
    """The native scorer of a task: scores views, and answers that no model gave. Keeps nothing of a doc.

    Attributes:
        draws: whether the scorer has drawn a random number so far.

    Args:
        known: the task.
        again: calls its aggregations.
        captions: gives the scalar of a caption item, where the option ``scorer`` names one.
    """

    def __init__(self, known: Known, again: Again, captions: Callable[[Any], Scalar] | None = None) -> None:
        self._known, self._again, self._captions, self.draws = known, again, captions, False
        named = known.spec.options.score
        keys = [named] if isinstance(named, str) else named or []
        self._keys = [key for key in (*keys, known.base.config.score_key, "score") if key]

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

        def one(place: int) -> Scored:
            return self._score_one(*plan[place], kwargs, first=from_first and not place)

        def plainly() -> list[Scored]:
            # views with the same answer share a score, in the same order of the options
            known, out = dict[tuple[int, str], Scored](), list[Scored]()
            for place, (_, view, got) in enumerate(plan):
                told = view.turn, repr(list(got))
                if told not in known or Unanswered in map(type, got):
                    known[told] = one(place)
                out.append(msgspec.structs.replace(known[told], view=view))
            return out

        def seeded() -> list[Scored]:
            out = []
            for place, view in enumerate(views):
                turned = f"{'/swapped' * view.swapped}{f'/turn {view.turn}' * bool(view.turn)}"
                # the doc's first view draws random numbers as the base task would
                first = from_first and not place
                with contextlib.nullcontext() if first else own_stream(f"{doc.doc_id}/{view}{turned}"):
                    out.append(one(place))
            return out

        # a judge is slow, and its views are seeded in any case (``keeps_apart``): docs need not wait for each other
        with contextlib.nullcontext() if self._known.spec.options.allow_judge else _one_doc:
            return self._without_draws(plainly, seeded)

    @property
    def keeps_apart(self) -> bool:
        """Whether views with equal answers are scored separately: the scorer draws, or a judge may change its mind."""
        return self.draws or self._known.spec.options.allow_judge

    def _score_one(self, doc: Any, view: View, got: Sequence[Any], kwargs: Mapping[str, Any], *, first: bool) -> Scored:
        """Score a view. After a failed call score the first view as the harness would, and give further views no score."""
        none = [answer for answer in got if isinstance(answer, Unanswered)]
        failed = next((answer.why for answer in none if answer.failed), "")
        if none and not failed:
            return Scored(view, error=none[0].why)
        if failed and (not first or None in map(native_answer, got)):
            return Scored(view, failed=failed)
        scored = self._call(doc, view, list(map(native_answer, got)), kwargs)
        # without scalars: a failed call has no score
        return Scored(view, scored.items, failed=failed) if failed else scored

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
            return self._call(doc, View("full"), list(answers), {})

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
        return self._call(doc, View("full"), list(answers), {}).scores

    def _call(self, doc: Any, view: View, answers: list[Any], kwargs: Mapping[str, Any]) -> Scored:
        """Call the native scorer on the answers to a view; keep an exception as the view's error, without items."""
        try:
            items = self._native(fresh(doc), answers, **kwargs)
            if not isinstance(items, Mapping):
                raise TypeError(f"process_results returned a {type(items).__name__}, not a dict of metrics")
            native, primary = self._known.native, self._known.primary
            # no aggregation takes None
            items = {m: item for m, item in items.items() if m in native and (item is not None or m != primary)}
            scores, from_m = self._scalars(items)
            return Scored(view, items, scores, from_m=from_m)
        except Exception as error:
            return Scored(view, error=one_line(error))

    @functools.cached_property
    def _native(self) -> Callable[..., Any]:
        """The base's ``process_results``, without the host's retries unless a judge is called, which may be busy."""
        method = self._known.base.process_results
        plain = compat.without_retries(method)
        # without its retries the function is no bound method
        bare = plain is not method and not self._known.spec.options.allow_judge
        return functools.partial(plain, self._known.base) if bare else method

    def _scalars(self, items: Mapping[str, Any]) -> tuple[dict[str, Scalar], str | None]:
        """Return the scalar of each item, and the metric whose scalar is M over its single item, if any."""
        out = {m: scalar(item, self._keys) for m, item in items.items()}
        primary = self._known.primary_among(items)
        if self._captions is not None and primary == self._known.primary:
            return {**out, primary: self._captions(items[primary])}, None
        if primary is None or out[primary] is not None or self.says_unscored(items[primary]):
            return out, None
        return {**out, primary: self._again.of_one(primary, items[primary])}, primary

    def says_unscored(self, item: Any) -> bool:
        """Return whether the scorer gave an item no score: None, NaN, or a score key without a value."""
        if isinstance(item, Mapping):
            return any(key in item for key in self._keys) and scalar(item, self._keys) is None
        return item is None or (isinstance(item, numbers.Real) and scalar(item) is None)


def fresh(value: Any) -> Any:
    """Copy a row, or a request's settings: containers are copied, images and all further leaves shared; much faster than ``copy.deepcopy``.

    Why: some scorers change the row in place, and would find their changes in the next view's row.
    """
    # most values are texts or numbers; asked first, since ``Mapping`` takes ten times as long
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (dict, Mapping)):
        return {key: fresh(inner) for key, inner in value.items()}
    return [fresh(inner) for inner in value] if isinstance(value, list) else value


_one_doc = threading.Lock()
"""Scorers share the process's random generators, so one doc is scored at a time to tell whose draws they are."""


@contextlib.contextmanager
def own_stream(seed: str) -> Iterator[None]:
    """Seed the random generators for a scorer, and restore them afterwards.

    Some scorers guess where they cannot parse an answer. The generators are restored so that the first view of each doc
    draws what the base task would have drawn.
    """
    with undrawn():
        random.seed(seed)
        np.random.seed(zlib.crc32(seed.encode()))
        yield


# --- filters --------------------------------------------------------------------------------------
# Filters pair answers and docs by position, so each call gets exactly the docs of its answers.

THINKING = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<analysis>", "</analysis>"))
"""The tags around what a model thinks before it answers; the first pair is the one that lmms-eval strips."""
SHORT = 8
"""Tokens to which tasks limit an answer that is a letter or a number: such an answer is whole where it reaches the limit."""
AsShown = Callable[[Any, int, int], Any]
"""Takes a row, its doc id and the number of a view; returns the row as the view shows it, its options in the view's order."""


def apply_filters(instances: Sequence[Instance], ensembles: Sequence[Any], known: Known, as_shown: AsShown) -> None:
    """Fill ``filtered_resps`` of every instance.

    Where the filter or the call failed, ``Unanswered`` says why. The texts that stand for failed calls are filtered
    too, because the native metric counts them as the harness does.

    Args:
        instances: the requests of a wrapped task; their ``metadata`` holds view and choice.
        ensembles: the filter pipelines of the base.
        known: the task.
        as_shown: gives a doc as a view shows it.
    """
    groups: dict[tuple[Any, Any, bool], list[Instance]] = {}
    failed: list[tuple[Instance, str]] = []
    adapter = compat.adapter_of(getattr(known.base, "model_name", None))
    for inst in instances:
        if inst.request_type == "loglikelihood":
            # the host has made a text of the pair
            inst.resps = [compat.as_log_likelihood(resp) for resp in inst.resps]
        if why := _failure(inst, adapter):
            failed.append((inst, why))
        # failed calls in a group of their own: a filter that fails on them spares the answers
        if _can_be_filtered(inst):
            groups.setdefault((inst.metadata["view"], inst.metadata["choice"], bool(why)), []).append(inst)
    for ensemble in ensembles:
        for group in groups.values():
            why = f"filter {ensemble.name!r} gave no answer"
            try:
                ensemble.apply(group, _Rows(known, group, as_shown))
            except Exception as error:
                why = f"filter {ensemble.name!r}: {one_line(error)}"
            for inst in group:
                inst.filtered_resps.setdefault(ensemble.name, Unanswered(inst.resps[0], why))
        for inst, why in failed:
            # what the harness itself makes of a missing answer
            nothing = None if inst.request_type == "loglikelihood" else ""
            native = native_answer(inst.filtered_resps.get(ensemble.name, nothing))
            raw = inst.resps[0] if inst.resps else ""
            inst.filtered_resps[ensemble.name] = Unanswered(raw, why, failed=True, native=native)


def as_the_host_will(instances: Sequence[Instance], ensembles: Sequence[Any], known: Known, as_shown: AsShown) -> None:
    """Filter answers before the host does, as it will: reasoning is stripped before or after the filters. Arguments as of ``apply_filters``."""
    from lmms_eval.api.reasoning import parse_reasoning_tags_config, strip_reasoning_tags
    from lmms_eval.filters.transformation import StripThinkingFilter

    config = known.base.config
    tags = parse_reasoning_tags_config(
        cli_value=getattr(known.state.args, "reasoning_tags", None), task_value=getattr(config, "reasoning_tags", None)
    )
    # only where no tags are set, as the host does
    if tags is None and getattr(config, "auto_strip_thinking", False):
        every = StripThinkingFilter().apply([inst.resps for inst in instances], None)
        for inst, stripped in zip(instances, every, strict=True):
            inst.resps = stripped
    apply_filters(instances, ensembles, known, as_shown)
    if tags is None:
        return

    def stripped_of(answer: Any) -> Any:
        if isinstance(answer, list):
            return [stripped_of(one) for one in answer]
        return strip_reasoning_tags(answer, tags) if isinstance(answer, str) else answer

    for inst in instances:
        inst.filtered_resps = {name: stripped_of(answer) for name, answer in inst.filtered_resps.items()}


def is_unfinished(inst: Instance) -> bool:
    """Return whether an answer stops before its end: a thinking tag has no closing tag, or all allowed tokens are used.

    Adapters of servers, and some others, say how many tokens an answer has; of an answer without tags by another
    adapter nothing is known.
    """
    text = inst.resps[0] if inst.resps else ""
    if not isinstance(text, str):
        return False
    if "<" in text and any(text.count(start) > text.count(end) for start, end in THINKING):
        return True
    settings = next((one for one in inst.arguments if isinstance(one, dict)), {})
    most, (_, tokens) = settings.get("max_new_tokens"), tokens_of(inst)
    return isinstance(most, int) and isinstance(tokens, int) and tokens >= most > SHORT


def tokens_of(inst: Instance) -> tuple[int | None, int | None]:
    """Return how many tokens a request and its answer have; None where the adapter does not count them."""
    counts = next(iter(getattr(inst, "token_counts", None) or ()), None)
    return getattr(counts, "input_tokens", None), getattr(counts, "output_tokens", None)


def _failure(inst: Instance, adapter: str) -> str:
    """Say why a request has no answer of the model; "" for an answer."""
    if not inst.resps:
        return "no answer came"
    if not _can_be_filtered(inst) and inst.request_type == "loglikelihood":
        return compat.failure(inst.resps[0]) or f"no log-likelihood but {inst.resps[0]!r:.80}"
    return compat.failure(inst.resps[0], adapter)


def _can_be_filtered(inst: Instance) -> bool:
    """Return whether a request has a response that filters can read."""
    response = next(iter(inst.resps), None)
    return response is not None and (inst.request_type != "loglikelihood" or isinstance(response, (tuple, list)))


class _Rows(Sequence[Any]):
    """The docs of some answers: without media, until a filter asks for a field in the docs with media alone."""

    def __init__(self, known: Known, group: Sequence[Instance], as_shown: AsShown) -> None:
        self._known, self._as_shown = known, as_shown
        self._places = [(inst.doc_id, inst.metadata["view"]) for inst in group]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: Any) -> Any:
        doc_id, view = self._places[place]
        row = self._known.plain_rows[doc_id]
        return self._as_shown(LazyRow(row, self._known.rows, doc_id), doc_id, view) if isinstance(row, Mapping) else row


class LazyRow(dict[str, Any]):
    """A row without media, which fetches the row with media when a missing field is asked for."""

    def __init__(self, row: Mapping[str, Any], with_media: Any, doc_id: int) -> None:
        super().__init__(row)
        self._with_media, self._doc_id = with_media, doc_id

    def __missing__(self, key: str) -> Any:
        return self._with_media[self._doc_id][key]
