"""Asks some requests again alone, where the adapter answers in batches: a batch that is padded wrongly garbles its shorter inputs.

Views differ in size, so such a fault always hits some views more than others, and an index is of nothing but the fault.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lmms_patch.harness import compat
from lmms_patch.text import line, log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

SURE = 0.005
"""Significance level: a warning is given where the p-value is at most this."""
SHORT = 32
"""Characters of the longest answer that is compared: a long one differs by the rounding of sums, which go in another order in a batch."""


def differences(
    ask: Callable[[Sequence[Instance]], Sequence[Any]], answered: Mapping[Any, tuple[Instance, Any]], count: int
) -> str:
    """Say how many answers differ when their requests are asked alone, if more than chance allows.

    "" elsewhere.

    An answer, and two answers to the same request alone, are three draws of the same if batches change nothing. Then
    the first is the odd one of the three as often as each of the others: a third of the requests of which exactly two
    answers are equal.

    Args:
        ask: gives the answers to requests.
        answered: requests and their answers, as they came in batches.
        count: how many to ask alone. Each is asked once, or twice where the model draws at random.
    """
    from lmms_eval.caching.response_cache import extract_gen_kwargs, is_deterministic

    known = [(request, _said(answer)) for request, answer in answered.values() if 0 < len(_said(answer)) <= SHORT]
    # spread over all requests, since neighbours are views of the same few docs
    places = np.unique(np.linspace(0, len(known) - 1, min(count, len(known))).astype(int)) if known else ()
    odd = [0, 0, 0]
    example = ""
    for request, batched in (known[place] for place in places):
        draws = not is_deterministic(request.request_type, extract_gen_kwargs(request))
        with _quietly():
            alone = _said(ask([request])[0])
            again = _said(ask([request])[0]) if draws else alone
        said = [batched, alone, again]
        # three equal or three different answers say nothing about batches
        if len(set(said)) == 2:
            place = next(place for place in range(3) if said.count(said[place]) == 1)
            odd[place] += 1
            example = example or (f"{batched!r} in a batch and {alone!r} alone" if place == 0 else "")
    if _tail(odd[0], sum(odd)) > SURE:
        return ""
    return f"{odd[0]} of {len(places)} answers differ when their requests are asked alone (for example {line(example)}), so batches garble them"


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Hide the progress bar and the summary an adapter prints for each call."""
    log().disable("lmms_eval.models")
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        log().enable("lmms_eval.models")


def _tail(hits: int, of: int) -> float:
    """Return the probability of so many hits or more, each with probability 1/3."""
    return sum(math.comb(of, k) * 2 ** (of - k) for k in range(hits, of + 1)) / 3**of


def _said(answer: Any) -> str:
    text = compat.text_of(answer)
    return " ".join(text.split()).strip(" .").lower() if isinstance(text, str) else ""
