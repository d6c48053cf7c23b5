"""Reading of the sample log of a finished MAGIC task: one ``magic`` object a line (docs/magic.md), beside the harness's own keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lmms_patch.errors import RecordError
from lmms_patch.magic.score.results import SCHEMA, VARIANTS
from lmms_patch.runs.logs import json_lines
from lmms_patch.stats.bounds import is_whole

LARGEST = 10_000
"""The most boxes or steps of an item: a larger number, in a damaged file, would only make loops very long."""


def read(path: Path, filter_place: int | None = None) -> list[dict[str, Any]]:
    """Read the ``magic`` objects of a log, in file order.

    Args:
        path: the log.
        filter_place: only the records of this filter pipeline. The host writes a line per doc and filter, in the order of the filters.

    Raises:
        RecordError: a line is cut, is not of a MAGIC task, or holds impossible values; or a doc occurs twice.
    """
    return [sample["magic"] for sample in lines(path, filter_place)]


def lines(path: Path, filter_place: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log, checked as ``read`` says; each also has the harness's ``doc``, ``resps`` and ``filtered_resps``."""
    seen: Counter[str] = Counter()
    for number, sample in json_lines(path):
        record = sample.get("magic")
        if not isinstance(record, Mapping) or not isinstance(record.get("schema"), int):
            raise RecordError(f"{path}, line {number}: no 'magic' object; this is not the log of a MAGIC task")
        if record["schema"] != SCHEMA:
            raise RecordError(
                f"{path}, line {number}: records of schema {record['schema']}; this version of lmms-patch reads schema {SCHEMA} of MAGIC tasks"
            )
        if said := _wrong(record):
            raise RecordError(f"{path}, line {number}: {said}; the file was changed or written by another program")
        seen[record["id"]] += 1
        if filter_place is None or seen[record["id"]] == filter_place + 1:
            yield sample
    often = min(seen.values(), default=0)
    if twice := [name for name, times in seen.items() if times != often]:
        raise RecordError(f"{path}: doc {twice[0]!r} is there {seen[twice[0]]} times, others {often} times: two runs in one file?")


def response_of(line: Mapping[str, Any]) -> str:
    """Return the model's response from a line of a log: the text that was scored.

    Raises:
        RecordError: the line has none.
    """
    said = line.get("filtered_resps", line.get("resps"))
    while isinstance(said, list) and len(said) == 1:
        said = said[0]
    if not isinstance(said, str):
        raise RecordError(f"doc {line['magic']['id']} has no response in the log; the file was changed or written by another program")
    return said


def _wrong(record: Mapping[str, Any]) -> str:
    """Describe what is wrong with a record; empty where nothing is."""
    for key, fits in _KEYS.items():
        if key not in record:
            return f"a record without its {key!r}"
        if not fits(record[key]):
            return f"a record whose {key!r} is of another type"
    if not isinstance(record.get("asked", {}), Mapping):
        return "a record whose 'asked' is of another type"
    for key in ("short", "full", "healed", "healed_words"):
        if not isinstance(record.get(key), (bool, type(None))):
            return f"a record whose {key!r} is of another type"
    if outside := sorted(box for box in {*record["used"], *record["relevant"]} if not 1 <= box <= record["boxes"]):
        return f"a record with {record['boxes']} boxes that names box {outside[0]}"
    return ""


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _whole(value: Any) -> bool:
    return is_whole(value, -LARGEST, LARGEST)


def _wholes(value: Any) -> bool:
    return isinstance(value, list) and all(map(_whole, value))


_KEYS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("id", "item", "group", "type", "answer"), _text),
    **dict.fromkeys(("boxes", "steps"), lambda value: is_whole(value, 0, LARGEST)),
    **dict.fromkeys(("relevant", "used", "invented"), _wholes),
    **dict.fromkeys(("exact", "synonym", "answer_found"), _flag),
    "variant": lambda value: value in VARIANTS,
}
