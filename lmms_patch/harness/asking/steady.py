"""Asks some docs again: a view only while all its answers agree, since later answers could change no number."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_patch.harness.wrap.known import AskPlan
from lmms_patch.harness.wrap.rows import Recorder

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

    from lmms_patch.harness.wrap.session import Session

Place = tuple[str, int, int]


class Again:
    """The asking of a task whose docs are asked again, on this rank. Ranks need not agree: each doc is asked for itself.

    Args:
        session: the parts of the task.
        recorder: scores answers while the model is asked.
        requests: this rank's requests of the task.
    """

    def __init__(self, session: Session, recorder: Recorder, requests: Iterable[Instance]) -> None:
        self._session, self._recorder = session, recorder
        self._requests: dict[int, dict[int, list[Instance]]] = {}
        for request in requests:
            self._requests.setdefault(int(request.doc_id), {}).setdefault(request.metadata["view"], []).append(request)
        self._chains = {doc_id: chains for doc_id in self._requests if (chains := chains_of(session, doc_id))}
        self._names: dict[int, dict[int, Any]] = {doc_id: {} for doc_id in self._chains}

    def wanted(self, time: int) -> list[Instance]:
        """Return the requests of a round; round 0 is of everything asked once.

        Args:
            time: how often views were asked before.
        """
        if not time:
            later = {doc_id: repeated(self._session, doc_id) for doc_id in self._chains}
            return [
                request
                for doc_id, of_doc in self._requests.items()
                for view, requests in of_doc.items()
                if view not in later.get(doc_id, ())
                for request in requests
            ]
        return [
            request
            for doc_id, chains in self._chains.items()
            for chain in chains
            if len(chain) > time and self._agree(doc_id, chain[:time])
            for request in self._requests[doc_id][chain[time]]
        ]

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


def chains_of(session: Session, doc_id: int) -> list[list[int]]:
    """Return the numbers of a doc's views by what they show, in the order of asking; none of a doc asked once."""
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
        answer = answers.get((request.task_name, int(request.doc_id), request.idx))
        own.resps, own.filtered_resps = [evaluator.unwrap_generation_output(answer)[0]], {}
        copies.append(own)
    recorder.filter_now(copies)
    out: dict[int, dict[int, list[Any]]] = {}
    for own in copies:
        of_doc = out.setdefault(int(own.doc_id), {})
        of_doc.setdefault(own.metadata["view"], []).append(next(iter(own.filtered_resps.values())))
    return out
