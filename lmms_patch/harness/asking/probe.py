"""Asks some requests again alone, where the adapter answers in batches: a batch that is padded wrongly garbles some of its inputs.

Views differ in size, so such a fault hits some views more than others, and an index is of nothing but the fault.

An answer from a batch and two answers to the same request alone are three draws of the same, if batches change nothing:
then each is the odd one of the three equally often, whether the model draws at random or not. A model that rounds in
another order in a batch changes a few answers of any kind; a fault changes most answers of one kind. So where an answer
was odd, more of its kind are asked.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scipy.special import bdtrc

from lmms_patch.ask.wrong_images import hashed
from lmms_patch.harness import compat
from lmms_patch.harness.asking.rounds import Ranks
from lmms_patch.runs.details import Probe
from lmms_patch.runs.failures import GARBLED
from lmms_patch.text import line, log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

    from lmms_patch.harness.wrap.task import WrappedTask

SURE = 2e-4
"""Significance level of each test: a run has at most four."""
ENOUGH = 1_000
"""Requests after which a run is probed: few enough to lose little, and enough of each kind."""
BEGINNING = 32
"""Characters of an answer that are compared. A long one differs further on by the rounding of sums alone."""
_POOL = 4_096
"""From how many requests, chosen by hash, those to ask again are taken."""


Draws = tuple[int | None, tuple[Hashable, ...], str]
"""Which of three answers to a request is odd (0: that of the batch), the request's traits, and two of the answers in words."""


@dataclass(frozen=True)
class Answered:
    """A request answered in a batch.

    Attributes:
        request: the request.
        answer: what came.
        traits: what a fault may go by: the sizes of the view and of those in its batch; the view; the place in the batch.
    """

    request: Instance
    answer: Any
    traits: tuple[Hashable, ...]


def answered(tasks: Mapping[str, WrappedTask], given: Sequence[tuple[Instance, Any]], batch: int) -> list[Answered]:
    """Return requests and their answers, in the order in which they were asked, with their traits.

    Grid and kind of a view tell sizes apart without a look at the image.
    """
    numbers = [request.metadata["view"] for request, _ in given]
    looks = []
    for (request, _), number in zip(given, numbers, strict=True):
        view = tasks[request.task_name].table.views_of(int(request.doc_id))[number]
        looks.append((request.task_name, view.kind, view.n, view.swapped))
    beside = [frozenset(looks[start : start + batch]) for start in range(0, len(looks), batch)]
    return [
        Answered(request, answer, ((looks[i], beside[i // batch]), (request.task_name, numbers[i]), i % batch))
        for i, (request, answer) in enumerate(given)
    ]


def verdict(
    ask: Callable[[Sequence[Instance]], Sequence[Any]], answered: Sequence[Answered], count: int, ranks: Ranks
) -> Probe:
    """Ask some requests again, each twice in a call alone, and say whether batches garble answers.

    All ranks call this at the same time, ask as often, and return the same.

    Args:
        ask: gives the answers to requests.
        answered: this rank's requests with their answers.
        count: how many requests to ask again, by all ranks together; as many for each trait of those that are odd.
        ranks: this process, and how many share the run.
    """
    left = sorted(answered, key=lambda one: hashed("probe", one.request.task_name, int(one.request.doc_id)))
    # what all answers begin with, such as a repeated question
    begins = len(os.path.commonprefix([_said(one.answer) for one in left]))  # noqa: RUF071 - by characters, as wanted
    first = _spread(left[:_POOL], -(-count // ranks.world))
    done, found = set(map(id, first)), _odd_ones(ask, first, ranks, begins, left)
    garbled, every = _is_sure(found), found
    for trait in range(3):
        if garbled or not (faulty := _faulty(found, trait)):
            break
        more = [one for one in left if one.traits[trait] == faulty[0] and id(one) not in done]
        more = more[: -(-2 * count // ranks.world)]
        done |= set(map(id, more))
        again = _odd_ones(ask, more, ranks, begins, left)
        garbled, every = _is_sure(again), [*every, *again]
    odd, why = [told for place, _, told in every if place == 0], "" if every else "no answer can be compared"
    if garbled:
        of = f"{len(odd)} of {len(every)} differ when their requests are asked alone (for example {odd[0]})"
        why = f"{GARBLED}: {of}; run it with --batch_size 1"
    return Probe(len(every), len(odd), garbled, why)


def _faulty(found: Sequence[Draws], trait: int) -> list[Hashable]:
    """Return the value of a trait of whose answers more were odd than chance explains, the worst alone; none where none was."""
    excess = Counter[Hashable]()
    for place, traits, _ in found:
        # twice as often one of the other two is odd, if batches change nothing
        excess[traits[trait]] += 0 if place is None else 2 if place == 0 else -1
    return [value for value, much in excess.most_common(1) if much > 0]


def _is_sure(found: Sequence[Draws]) -> bool:
    """Return whether more answers from batches are odd than chance or rounding explains."""
    odd = Counter(place for place, _, _ in found)
    hits, of = odd[0], odd[0] + odd[1] + odd[2]
    return 3 * hits >= len(found) and bool(bdtrc(hits - 1, of, 1 / 3) <= SURE)


def _spread(pool: Sequence[Answered], count: int) -> list[Answered]:
    """Choose requests with each value of the first trait about equally often, then of the second, then of the third."""
    left, chosen = list(pool), list[Answered]()
    met: list[Counter[Hashable]] = [Counter(), Counter(), Counter()]
    while left and len(chosen) < count:
        rarest = min(left, key=lambda one: [counts[trait] for counts, trait in zip(met, one.traits, strict=True)])
        left.remove(rarest)
        chosen.append(rarest)
        for counts, trait in zip(met, rarest.traits, strict=True):
            counts[trait] += 1
    return chosen


def _odd_ones(
    ask: Callable[[Sequence[Instance]], Sequence[Any]],
    some: Sequence[Answered],
    ranks: Ranks,
    begins: int,
    spare: Sequence[Answered],
) -> list[Draws]:
    """Ask requests again, equally often on every rank, and return what all ranks found."""
    found: list[Draws] = []
    for number in range(ranks.most(len(some))):
        # a rank without any request has nothing to repeat
        for one in [*some[number : number + 1], *spare[:1]][:1]:
            with _quietly():
                draws = [_said(answer) for answer in (one.answer, *ask([one.request]), *ask([one.request]))]
            if number < len(some):
                told = f"{line(repr(draws[0]), 60)} in a batch and {line(repr(draws[1]), 60)} alone"
                found.append((odd_one([draw[begins:] for draw in draws]), one.traits, told))
    return [draws for of_rank in ranks.all(found) for draws in of_rank]


def odd_one(draws: Sequence[str]) -> int | None:
    """Return the place of the text least like the rest of three; None where undecided.

    >>> odd_one(["b", "a", "a"]), odd_one(["a", "a", "a"]), odd_one(["a", "b", "c"])
    (0, None, None)
    """
    one, two, three = (draw[:BEGINNING] for draw in draws)
    same = [two == three, one == three, one == two]
    if sum(same) == 1:
        return same.index(True)
    if any(same):
        return None
    words = [set(draw.split()) for draw in draws]
    shared = [len(words[i] & words[j]) / max(1, len(words[i] | words[j])) for i, j in ((1, 2), (0, 2), (0, 1))]
    return shared.index(max(shared)) if shared.count(max(shared)) == 1 else None


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Hide the progress bar and the summary an adapter prints for each call."""
    log().disable("lmms_eval.models")
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        log().enable("lmms_eval.models")


def _said(answer: Any) -> str:
    text = compat.text_of(answer)
    return " ".join(text.split()).strip(" .").lower() if isinstance(text, str) else ""
