"""The requests of a wrapped task: each native request once per view, with our function to show the doc, and a ``ViewId`` for its doc id."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import Instance

from lmms_patch.ask.views import DESCRIBE, TEXTS
from lmms_patch.errors import CannotWrapError, OptionError, PatchError
from lmms_patch.harness.wrap.media import blind_prompt
from lmms_patch.harness.wrap.session import Session
from lmms_patch.runs.run import find
from lmms_patch.text import line


class Requests:
    """Clones the base's requests of docs.

    Args:
        session: the parts of the task.
        shown: our function that shows a doc.
        place: where such a function stands among a request's arguments.
    """

    def __init__(self, session: Session, shown: Callable[..., Any], place: int) -> None:
        self._session, self._spec, self._table = session, session.known.spec, session.table
        self._shown, self._place = shown, place

    def of_views(self, native: Sequence[Instance]) -> list[Instance]:
        """Return the requests of a doc: view by view, each with all choices, ``idx = view · C + choice``.

        Args:
            native: the base's requests of the doc.
        """
        views = self._session.numbers_of(native[0].doc_id)
        return [self._clone(one, view, choice, len(native)) for view in views for choice, one in enumerate(native)]

    def describing(self, native: Sequence[Instance]) -> Instance:
        """Return the request for a description of a doc's images."""
        return self._clone(native[0], self._table.views_of(native[0].doc_id).index(DESCRIBE), 0, 1)

    def _clone(self, native: Instance, view: int, choice: int, choices: int) -> Instance:
        """Return a native request for a view."""
        doc_id, options = native.doc_id, self._spec.options
        arguments = list(native.arguments)
        # adapters read the doc id in the fourth place
        if len(arguments) < 6 or arguments[3] != doc_id or not callable(arguments[self._place]):
            raise CannotWrapError(
                f"{self._spec.name}: {self._spec.base} builds its requests in a form that lmms-patch does not know"
            )
        shows = self._table.views_of(doc_id)[view]
        if self._table.orders is not None:
            arguments = self._table.orders.asked(doc_id, shows.turn, arguments, choice)
        # our function and our id, so that an adapter gets this view through whichever task it asks
        arguments[self._place], arguments[3] = self._shown, self._table.id(doc_id, view)
        arguments = [_copied(a) if isinstance(a, dict) else a for a in arguments]
        if shows.kind in TEXTS and isinstance(arguments[0], str):
            arguments[0] = blind_prompt(arguments[0], shows)
        if shows == DESCRIBE:
            # nothing ends a description early: the harness's default is a blank line
            settings = {"max_new_tokens": options.caption_tokens, "until": []}
            arguments = [{**one, **settings} if isinstance(one, dict) else one for one in arguments]
            arguments[0] = options.caption_prompt
        own = {"doc_id": doc_id, "task": self._spec.name, "repeats": 1, "view": view, "choice": choice}
        return Instance(
            request_type=native.request_type,
            arguments=tuple(arguments),
            idx=view * choices + choice,
            metadata={**native.metadata, **own},
        )

    def put(self, requests: Iterable[Instance], captions: Mapping[int, str]) -> None:
        """Put descriptions in place of docs' images, in the table and in all requests without an image."""
        self._table.captions.update(captions)
        for one in requests:
            view = self._table.views_of(one.doc_id)[one.metadata["view"]]
            if view.kind == "caption" and one.doc_id in captions:
                one.arguments = (blind_prompt(one.arguments[0], view), *one.arguments[1:])


def by_doc(instances: Iterable[Instance]) -> dict[int, list[Instance]]:
    """Return requests by their doc."""
    out: dict[int, list[Instance]] = {}
    for inst in instances:
        out.setdefault(inst.doc_id, []).append(inst)
    return out


def descriptions(session: Session, evaluated: Collection[int]) -> dict[int, str]:
    """Return the descriptions of the docs of a task by doc id, from the newest run of the option's folder on the same docs.

    Raises:
        OptionError: there is no such run, or it lacks docs; one line that says what to type.
    """
    spec, plan = session.known.spec, session.golds.plan
    folder, docs = str(spec.options.captions), "" if plan is None else plan.digests["docs"]
    try:
        found = [
            one
            for run in find([Path(folder).expanduser()])
            for one in run.results
            if one.kind.captions and one.base == spec.base and one.made.docs == docs
        ]
        newest = max(found, key=lambda one: one.run.date, default=None)
        known = {} if newest is None else dict(newest.frame(["doc_id", "caption"]).drop_nulls().iter_rows())
    except (PatchError, OSError) as error:
        raise OptionError(f"{spec.name}: captions {folder}: {line(error)}") from None
    if lacking := [doc_id for doc_id in evaluated if doc_id not in known]:
        raise OptionError(
            f"{spec.name}: {folder} holds no description of {len(lacking)} of {len(evaluated)} docs; type first: lmms-eval --tasks "
            f"{spec.base}_caption --output_path {folder}, with the model that describes, and the same --limit"
        )
    return known


def _copied(value: Any) -> Any:
    """Return a deep copy of a request's settings, ten times as fast as ``copy.deepcopy``: every view of every doc needs a copy."""
    if isinstance(value, str | int | float | None):
        return value
    if type(value) is dict:
        return {key: _copied(one) for key, one in value.items()}
    return [_copied(one) for one in value] if type(value) is list else copy.deepcopy(value)
