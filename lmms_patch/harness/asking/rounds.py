"""The ways in which wrapped tasks are asked: each yields the requests of a round, and is sent all answers so far.

Ranks ask in equally many rounds. Answers are the only state: a run that was killed finds them in its journal, and comes to
the same rounds.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_patch.harness import compat
from lmms_patch.harness.wrap.known import AskPlan
from lmms_patch.text import log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

    from lmms_patch.harness.wrap.rows import Recorder
    from lmms_patch.harness.wrap.session import Session
    from lmms_patch.harness.wrap.task import WrappedTask


@dataclass(frozen=True)
class Ranks:
    """All processes of a run.

    Attributes:
        number: this one, from 0.
        world: how many there are.
    """

    number: int
    world: int

    @classmethod
    def here(cls) -> Ranks:
        """Return the ranks as the launcher (``accelerate``, ``torchrun``) tells them.

        The host goes by the same variables.
        """
        return cls(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))

    @property
    def several(self) -> bool:
        """Whether the ranks can talk: there are several, and the host or the model has connected them."""
        return self.world > 1 and _distributed() is not None

    @property
    def first(self) -> bool:
        """Whether this rank prints."""
        return self.number == 0

    def most(self, count: int) -> int:
        """Return the largest count of all ranks."""
        return int(max(self.all(count)))

    def sum(self, count: int) -> int:
        """Return the sum of the counts of all ranks."""
        return sum(self.all(count))

    def told(self, value: Any) -> Any:
        """Return what the first rank says, on every rank."""
        return self.all(value)[0]

    def all(self, value: Any) -> list[Any]:
        """Return what each rank says, by the number of the rank."""
        if not self.several:
            return [value]
        gathered: list[Any] = [None] * self.world
        _distributed().all_gather_object(gathered, value)
        return gathered


def _distributed() -> Any:
    """Return the module ``torch.distributed`` if the ranks are connected by a process group, and None if they are not."""
    from torch import distributed

    return distributed if distributed.is_available() and distributed.is_initialized() else None


Place = tuple[str, int, int]
"""What identifies a request in this process: task, doc id, number among the doc's requests. Copies of a request, as the host pads with, share it."""


def place_of(request: Instance) -> Place:
    """Return what identifies a request in this process."""
    return request.task_name, int(request.doc_id), request.idx


@dataclass(frozen=True)
class Round:
    """What is asked at once.

    Attributes:
        requests: this rank's.
        planned: how many calls of all ranks are expected in all; None: those of the round.
        told: what is known so far, in a few words.
        catches: whether a call that raises is a failed call. Else the exception ends the run.
    """

    requests: Sequence[Instance]
    planned: int | None = None
    told: str = ""
    catches: bool = False


_GOLD = ("gold",)
"""What a right answer names (``Recorder.names_now``)."""
Rounds = Generator[Round, dict[Place, Any], None]


def together(tasks: Sequence[WrappedTask], requests: Sequence[Instance]) -> Rounds:
    """Ask tasks, and then some of their docs again (``steady``)."""
    again = {task: Again(task, _of(task, requests)) for task in tasks if task.session.asks_again and task.session.times}
    once = [one for task in tasks if task not in again for one in _of(task, requests)]
    yield from again_and_again(again, once)


def again_and_again(again: Mapping[WrappedTask, Again], once: Sequence[Instance] = (), first: int = 0) -> Rounds:
    """Ask docs again, and with round 0 what is asked once alone.

    Args:
        again: by task, what asks its docs again.
        once: requests of further tasks.
        first: the first round.
    """
    # every rank asks as often, also one without such docs
    for number in range(first, max([1, *(asking.rounds for asking in again.values())])):
        wanted = [one for asking in again.values() for one in asking.wanted(number)]
        wanted += [] if number else once
        answers = yield Round(wanted)
        for task, asking in again.items():
            asking.take(_of(task, wanted), answers)
    for task, asking in again.items():
        task.take(asking.plan(task.session.known.state.plan))


def without_images(tasks: Sequence[WrappedTask], requests: Sequence[Instance]) -> Rounds:
    """Ask requests without an image.

    Where an adapter raises on them, these calls failed, and it goes on with the requests that have one.
    """
    answers, ranks = (yield Round(requests, catches=True)), Ranks.here()
    for task in tasks:
        lost = [failure_of(task, answers[place_of(one)]) for one in _of(task, requests)]
        # of each rank with a doc of the task why all of its calls failed; "" where one did not
        failed = [why for of_rank in ranks.all([lost[0] if all(lost) else ""] if lost else []) for why in of_rank]
        if failed and all(failed) and ranks.first:
            instead = " or ".join(f"{task.spec.base}_{kind}" for kind in ("blank", "swap"))
            log().warning(
                f"{task.spec.name}: every call without an image fails ({failed[0]}), so this adapter cannot be asked so; type --tasks {instead}, "
                "a grey image or that of another doc"
            )


def described(task: WrappedTask, requests: Sequence[Instance]) -> Rounds:
    """Ask a task first for descriptions of images, then its questions: with the images, and with the descriptions in their place.

    Where a call for a description failed, its answer stands for the one that could not be asked.
    """
    asked = {int(request.doc_id) for request in requests}
    describing = [one for one in task.describing if one.doc_id in asked and one.doc_id not in task.table.captions]
    answers = yield Round(describing)
    said = {one.doc_id: answers[place_of(one)] for one in describing}
    failed = {doc_id for doc_id, answer in said.items() if failure_of(task, answer)}
    task.requests.put(requests, {i: compat.text_of(answer).strip() for i, answer in said.items() if i not in failed})
    # the full image needs no description
    yield Round([one for one in requests if one.metadata["view"] == 0])
    rest = [one for one in requests if one.metadata["view"]]
    for one in rest:
        if one.doc_id in failed:
            answers[place_of(one)] = said[one.doc_id]
    yield from without_images([task], [one for one in rest if one.doc_id not in failed])


def failure_of(task: WrappedTask, answer: Any) -> str:
    """Say why the call behind an answer failed; "" where the call went well."""
    return compat.failure(compat.text_of(answer), compat.adapter_of(getattr(task, "model_name", None)))


def _of(task: WrappedTask, requests: Iterable[Instance]) -> list[Instance]:
    return [one for one in requests if one.task_name == task.spec.name]


# --- docs that are asked again --------------------------------------------------------------------


class Again:
    """The asking of a task whose docs are asked again, on this rank: a view only while its answers agree, since later ones could change no number.

    Ranks need not agree: each doc is asked for itself.

    Args:
        task: the task.
        requests: this rank's requests of the task.
    """

    def __init__(self, task: WrappedTask, requests: Iterable[Instance]) -> None:
        self._session, self._recorder, self._requests = task.session, task.recorder, by_view(requests)
        self._chains = {doc_id: chains for doc_id in self._requests if (chains := chains_of(task.session, doc_id))}
        self._names: dict[int, dict[int, Any]] = {doc_id: {} for doc_id in self._chains}

    @property
    def rounds(self) -> int:
        """How many rounds there are; the same on every rank."""
        spec = self._session.known.spec
        phases = 3 if spec.options.steady == "all" and not spec.leaves_out else 1
        return 1 + phases * (self._session.times - 1)

    def wanted(self, number: int) -> list[Instance]:
        """Return the requests of a round; round 0 is of everything asked once."""
        if not number:
            later = {doc_id: repeated(self._session, doc_id) for doc_id in self._chains}
            return [
                request
                for doc_id, of_doc in self._requests.items()
                for view, requests in of_doc.items()
                if view not in later.get(doc_id, ())
                for request in requests
            ]
        phase, time = divmod(number - 1, self._session.times - 1)
        return [
            request
            for doc_id in self._chains
            for chain in self._of_phase(doc_id, phase)
            if len(chain) > time + 1 and self._agree(doc_id, chain[: time + 1])
            for request in self._requests[doc_id][chain[time + 1]]
        ]

    def _of_phase(self, doc_id: int, phase: int) -> list[list[int]]:
        """Return the views to ask again: in phase 0 the full image and a cell that is right, then the other right cells, then the rest.

        A cell that is right every time ends a doc: what its other cells know changes no share. Of a doc on wrong images
        all are asked, in phase 0: tests go by them.
        """
        chains, names = self._chains[doc_id], self._names[doc_id]
        views = self._session.table.views_of(doc_id)
        if any(views[chain[0]].swapped for chain in chains):
            return [] if phase else chains
        full = [chain for chain in chains if views[chain[0]].kind == "full"]
        right = [chain for chain in chains if chain not in full and names.get(chain[0]) == _GOLD]
        if phase and any(names.get(chain[-1]) == _GOLD for chain in right):
            return []
        return [full + right[:1], right[1:], [chain for chain in chains if chain not in (*full, *right)]][phase]

    def _agree(self, doc_id: int, views: Sequence[int]) -> bool:
        names = [self._names[doc_id].get(view) for view in views]
        return names[0] is not None and names.count(names[0]) == len(names)

    def take(self, requests: Sequence[Instance], answers: Mapping[Place, Any]) -> None:
        """Note what the views of a round name."""
        asked = [request for request in requests if int(request.doc_id) in self._chains]
        for doc_id, filtered in filtered_now(self._recorder, asked, answers).items():
            self._names[doc_id] |= self._recorder.names_now(doc_id, filtered)

    def plan(self, plan: AskPlan) -> AskPlan:
        """Return a plan with the views asked."""
        numbers = {doc_id: sorted(names) for doc_id, names in self._names.items()}
        return dataclasses.replace(plan, numbers={**plan.numbers, **numbers})


def by_view(requests: Iterable[Instance]) -> dict[int, dict[int, list[Instance]]]:
    """Return requests by doc id and number of the view."""
    out: dict[int, dict[int, list[Instance]]] = {}
    for request in requests:
        out.setdefault(int(request.doc_id), {}).setdefault(request.metadata["view"], []).append(request)
    return out


def chains_of(session: Session, doc_id: int) -> list[list[int]]:
    """Group the views of a doc that show the same, each group in the order of asking, as numbers of views; empty for a doc asked once."""
    views = session.table.views_of(doc_id)
    if not views[-1].repeat:
        return []
    out: dict[Any, list[int]] = {}
    for number, view in enumerate(views):
        of = (*view.place, view.swapped, view.donor > 0)
        out.setdefault(of, []).append(number)
        # the first wrong image is the first of the other wrong images, too
        if view.kind == "full" and view.swapped and not view.repeat:
            out.setdefault((*view.place, True, True), []).append(number)
    return list(out.values())


def repeated(session: Session, doc_id: int) -> set[int]:
    """Return the numbers of a doc's views that ask again what another view asked before."""
    return {view for chain in chains_of(session, doc_id) for view in chain[1:]}


def filtered_now(
    recorder: Recorder, requests: Iterable[Instance], answers: Mapping[Place, Any]
) -> dict[int, dict[int, list[Any]]]:
    """Return the answers of a round as the base's filters leave them, by doc id and number of the view, a list with an answer per choice."""
    from lmms_eval import evaluator

    copies = []
    for request in requests:
        # a copy, since the host filters the request itself later
        own = copy.copy(request)
        own.resps = [evaluator.unwrap_generation_output(answers.get(place_of(request)))[0]]
        own.filtered_resps = {}
        copies.append(own)
    recorder.filter_now(copies)
    return {
        doc_id: {view: [next(iter(own.filtered_resps.values())) for own in of_view] for view, of_view in of_doc.items()}
        for doc_id, of_doc in by_view(copies).items()
    }
