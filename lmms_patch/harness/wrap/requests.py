"""The requests of a wrapped task: each native request once per view, with our function to show the doc, and a ``ViewId`` for its doc id."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lmms_eval.api.instance import Instance

from lmms_patch.ask.views import DESCRIBE, TEXTS
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.wrap.media import blind_prompt
from lmms_patch.harness.wrap.session import Session


class Requests:
    """Which views of the docs of a session are asked, and how they are asked for.

    Args:
        session: the parts of the task.
    """

    def __init__(self, session: Session) -> None:
        self._spec, self._table, self._state = session.spec, session.table, session.state

    def numbers_of(self, doc_id: int) -> Sequence[int]:
        """Return the numbers of a doc's views in this run."""
        if doc_id in self._state.plan.numbers:
            return self._state.plan.numbers[doc_id]
        views = self._table.views_of(doc_id)
        return range(len(views) - (DESCRIBE in views))

    def clones(self, native: Sequence[Instance], shown: Callable[..., Any], place: int) -> list[Instance]:
        """Return the requests of a doc: view by view, each with all choices, ``idx = view · C + choice``.

        Args:
            native: the base's requests of the doc.
            shown: our function that shows a doc.
            place: where such a function stands among a request's arguments.
        """
        views = self.numbers_of(native[0].doc_id)
        return [
            self._clone(one, view, choice, len(native), shown, place)
            for view in views
            for choice, one in enumerate(native)
        ]

    def describing(self, native: Sequence[Instance], shown: Callable[..., Any], place: int) -> Instance:
        """Return the request for a description of a doc's images; arguments as of ``clones``."""
        number = self._table.views_of(native[0].doc_id).index(DESCRIBE)
        return self._clone(native[0], number, 0, 1, shown, place)

    def _clone(
        self, native: Instance, view: int, choice: int, choices: int, shown: Callable[..., Any], place: int
    ) -> Instance:
        """Return a native request for a view."""
        doc_id = native.doc_id
        arguments = list(native.arguments)
        # adapters read the doc id in the fourth place
        if len(arguments) < 6 or arguments[3] != doc_id or not callable(arguments[place]):
            raise CannotWrapError(
                f"{self._spec.name}: {self._spec.base} builds its requests in a form that lmms-patch does not know"
            )
        shows = self._table.views_of(doc_id)[view]
        if self._table.orders is not None:
            arguments = self._table.orders.asked(doc_id, shows.turn, arguments, choice)
        # our function and our id, so that an adapter gets this view through whichever task it asks
        arguments[place], arguments[3] = shown, self._table.id(doc_id, view)
        arguments = [_copied(a) if isinstance(a, dict) else a for a in arguments]
        if shows.kind in TEXTS and isinstance(arguments[0], str):
            arguments[0] = blind_prompt(arguments[0], shows)
        if shows == DESCRIBE:
            told = self._spec.options
            arguments[0] = told.caption_prompt
            arguments = [
                # nothing ends a description early: the harness's default is a blank line
                {**one, "max_new_tokens": told.caption_tokens, "until": []} if isinstance(one, dict) else one
                for one in arguments
            ]
        metadata = {
            **native.metadata,
            "doc_id": doc_id,
            "task": self._spec.name,
            "repeats": 1,
            "view": view,
            "choice": choice,
        }
        return Instance(
            request_type=native.request_type, arguments=tuple(arguments), idx=view * choices + choice, metadata=metadata
        )


def by_doc(instances: Iterable[Instance]) -> dict[int, list[Instance]]:
    """Return requests by their doc."""
    out: dict[int, list[Instance]] = {}
    for inst in instances:
        out.setdefault(inst.doc_id, []).append(inst)
    return out


def _copied(value: Any) -> Any:
    """Return a deep copy of a request's settings, ten times as fast as ``copy.deepcopy``: every view of every doc needs a copy."""
    if isinstance(value, str | int | float | None):
        return value
    if type(value) is dict:
        return {key: _copied(one) for key, one in value.items()}
    return [_copied(one) for one in value] if type(value) is list else copy.deepcopy(value)
