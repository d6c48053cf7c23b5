"""Reading of the sample log of a finished MAGIC task: a line for each doc and filter pipeline (docs/magic.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_patch.errors import OTHER_VERSION, RecordError, shown
from lmms_patch.magic.score.results import SCHEMA, Record
from lmms_patch.runs.logs import CHANGED, json_lines
from lmms_patch.runs.typed import read_as


class Line(Struct):
    """A line of the sample log of a MAGIC task.

    Attributes:
        record: of the doc.
        magic: the record as the log writes it.
        target: the gold.
        input: what was asked.
        resps: the responses of the model, in lists.
        filtered_resps: the responses, after the filter.
        doc_id: as the harness writes it beside the record.
    """

    record: Record
    magic: Mapping[str, Any] = {}
    target: Any = None
    input: Any = None
    resps: Any = None
    filtered_resps: Any = None
    doc_id: Any = None

    @property
    def response(self) -> str:
        """The model's response: the scored text.

        Raises:
            RecordError: the line has none.
        """
        said = self.resps if self.filtered_resps is None else self.filtered_resps
        while isinstance(said, list) and len(said) == 1:
            said = said[0]
        if not isinstance(said, str):
            raise RecordError(f"doc {self.record.id} has no response in the log; {CHANGED}")
        return said


def lines(path: Path, filter_place: int | None = None) -> Iterator[Line]:
    """Yield the lines of a log, in file order.

    Args:
        path: the log.
        filter_place: only the lines of this filter pipeline. The host writes a line per doc and filter, in the order of
            the filters.

    Raises:
        RecordError: a line is cut, is not of a MAGIC task, or holds impossible values; or a doc occurs twice.
    """
    seen: Counter[str] = Counter()
    for number, sample in json_lines(path):
        where = f"{path}, line {number}"
        magic = sample.get("magic")
        if not isinstance(magic, Mapping) or "schema" not in magic:
            raise RecordError(f"{where}: no 'magic' object; this is not the log of a MAGIC task")
        if magic["schema"] != SCHEMA:
            raise RecordError(f"{where}: records of schema {shown(magic['schema'])}; {OTHER_VERSION}")
        try:
            record = _record(magic)
        except RecordError as error:
            raise RecordError(f"{where}: {error}; {CHANGED}") from None
        seen[record.id] += 1
        if filter_place is None or seen[record.id] == filter_place + 1:
            told = {name: sample.get(name) for name in ("target", "input", "resps", "filtered_resps", "doc_id")}
            yield Line(record, magic, **told)
    # a task with several filters has as many lines of every doc
    often = min(seen.values(), default=0)
    if twice := [name for name, times in seen.items() if times != often]:
        raise RecordError(
            f"{path}: doc {twice[0]!r} is there {seen[twice[0]]} times, others {often} times: two runs in one file?"
        )


def _record(magic: Mapping[str, Any]) -> Record:
    record = read_as(magic, Record, "magic")
    if outside := sorted(box for box in {*record.used, *record.relevant} if not 1 <= box <= record.boxes):
        raise RecordError(f"a record with {record.boxes} boxes that names box {outside[0]}")
    return record
