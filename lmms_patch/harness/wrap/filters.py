"""The base's filters, applied once per view and choice.

Filters pair answers and docs by position, so each call gets exactly the docs of its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval.api.instance import Instance

from lmms_patch.harness import compat
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.known import Known
from lmms_patch.harness.wrap.scorer import Unanswered, native_answer

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
