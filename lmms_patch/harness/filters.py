"""The base's filters, applied once per view and choice.

Filters pair answers and docs by position, so each call gets the docs of exactly its answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.api.instance import Instance

from lmms_patch.harness import compat
from lmms_patch.harness.calls import one_line
from lmms_patch.harness.scorer import Unanswered


def apply_filters(instances: Sequence[Instance], ensembles: Sequence[Any], rows: Any, with_media: Any) -> None:
    """Fill ``filtered_resps`` of every instance.

    Where a filter fails, or the model gave no answer, an ``Unanswered`` stands, with the reason.

    Args:
        instances: the requests of a wrapped task; ``metadata`` says view and choice.
        ensembles: the base's filter pipelines.
        rows: the docs without media, by doc id.
        with_media: the docs with media, by doc id; opened only where a filter asks.
    """
    groups: dict[tuple[Any, Any], list[Instance]] = {}
    for inst in instances:
        if inst.request_type == "loglikelihood":
            inst.resps = [compat.as_log_likelihood(resp) for resp in inst.resps]
        if inst.resps:
            groups.setdefault((inst.metadata["view"], inst.metadata["choice"]), []).append(inst)
    for ensemble in ensembles:
        for group in groups.values():
            _apply(ensemble, group, _Rows(rows, with_media, [inst.doc_id for inst in group]))
        for inst in instances:
            if not inst.resps:
                inst.filtered_resps[ensemble.name] = Unanswered("", "the model gave no answer")


def _apply(ensemble: Any, group: list[Instance], docs: _Rows) -> None:
    why = f"filter {ensemble.name!r} gave no answer"
    try:
        ensemble.apply(group, docs)
    except Exception as error:
        why = f"filter {ensemble.name!r}: {one_line(error)}"
    for inst in group:
        if ensemble.name not in inst.filtered_resps:
            inst.filtered_resps[ensemble.name] = Unanswered(inst.resps[0], why)


class _Rows:
    """The docs of some answers: without media, until a filter asks for a field that needs it."""

    def __init__(self, rows: Any, with_media: Any, doc_ids: list[Any]) -> None:
        self._rows, self._with_media, self._doc_ids = rows, with_media, doc_ids

    def __len__(self) -> int:
        return len(self._doc_ids)

    def __getitem__(self, place: int) -> Any:
        return self._row(self._doc_ids[place])

    def __iter__(self) -> Iterator[Any]:
        return (self._row(doc_id) for doc_id in self._doc_ids)

    def _row(self, doc_id: int) -> Any:
        row = self._rows[doc_id]
        return _LazyRow(row, self._with_media, doc_id) if isinstance(row, Mapping) else row


class _LazyRow(dict):  # type: ignore[type-arg]
    """A row that fetches its media when a field is asked that it lacks."""

    def __init__(self, row: Mapping[str, Any], with_media: Any, doc_id: int) -> None:
        super().__init__(row)
        self._with_media, self._doc_id = with_media, doc_id

    def __missing__(self, key: str) -> Any:
        return self._with_media[self._doc_id][key]
