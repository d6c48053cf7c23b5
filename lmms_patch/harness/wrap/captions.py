"""Descriptions of images: those that a finished ``_caption`` run holds (option ``captions``), and those that are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_patch.errors import OptionError, PatchError
from lmms_patch.harness.wrap.media import blind_prompt
from lmms_patch.runs.run import find
from lmms_patch.text import line

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

    from lmms_patch.harness.wrap.docs import VariantDocs
    from lmms_patch.harness.wrap.session import Session


class Descriptions:
    """The descriptions of a task's images while they are asked for.

    Args:
        table: all views of all docs, which shows the descriptions.
        requests: a request for a description of each doc; none where no description is asked for.
    """

    def __init__(self, table: VariantDocs, requests: Sequence[Instance]) -> None:
        self._table, self._requests = table, requests

    def wanted(self, doc_ids: Collection[int]) -> list[Instance]:
        """Return the requests for descriptions of some docs' images; none where descriptions are known."""
        return [one for one in self._requests if one.doc_id in doc_ids and one.doc_id not in self._table.captions]

    def put(self, requests: Iterable[Instance], captions: Mapping[int, str]) -> None:
        """Put descriptions in place of the docs' images, in the table and in all requests without an image."""
        self._table.captions.update(captions)
        for one in requests:
            view = self._table.views_of(one.doc_id)[one.metadata["view"]]
            if view.kind == "caption" and one.doc_id in captions:
                one.arguments = (blind_prompt(one.arguments[0], view), *one.arguments[1:])


def taken(session: Session, evaluated: Sequence[int]) -> dict[int, str]:
    """Return the descriptions of the docs of a task by doc id, from the newest run of the option's folder on the same docs.

    Raises:
        OptionError: there is no such run, or it lacks docs; one line that says what to type.
    """
    name, folder, plan = session.spec.name, str(session.spec.options.captions), session.golds.plan
    docs = "" if plan is None else plan.digests["docs"]
    try:
        found = [
            one
            for run in find([Path(folder).expanduser()])
            for one in run.results
            if one.kind.captions and one.base == session.spec.base and one.made.docs == docs
        ]
        newest = max(found, key=lambda one: one.run.date, default=None)
        known = {} if newest is None else dict(newest.frame(["doc_id", "caption"]).drop_nulls().iter_rows())
    except (PatchError, OSError) as error:
        raise OptionError(f"{name}: captions {folder}: {line(error)}") from None
    if lacking := [doc_id for doc_id in evaluated if doc_id not in known]:
        base = session.spec.base
        raise OptionError(
            f"{name}: {folder} holds no description of {len(lacking)} of {len(evaluated)} docs; type first: lmms-eval --tasks {base}_caption "
            f"--output_path {folder}, with the model that describes, and the same --limit"
        )
    return known
