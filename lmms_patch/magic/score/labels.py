"""Files of step labels: JSON lines that ``lmms-patch magic steps`` writes, a step a line, and people fill in. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from lmms_patch import files
from lmms_patch.errors import PatchError, RecordError, listed
from lmms_patch.runs.typed import read_as

SOURCES = ("human", "judge")


class LabelError(PatchError):
    """A file of step labels with faults."""


class Row(Struct, frozen=True, kw_only=True):
    """A line of a file of step labels, of `lmms-patch magic steps` and `lmms-patch magic stepsense`.

    Attributes:
        item: id of the item
        step: number of the step, from 1
        annotator: name of who (or which judge) labels the step
        correct: 1 or 0; null: not labelled yet
        source: who labels
        group: the item's image
        question: of the item
        answer: the short gold answer
        text: the step
    """

    item: Annotated[str, Meta(min_length=1)]
    step: Annotated[int, Meta(ge=1, le=999_999)]
    annotator: str = ""
    correct: Literal[0, 1, None] = None
    source: Literal["human", "judge"] = "human"
    group: str = ""
    question: str = ""
    answer: str = ""
    text: str = ""


@dataclass(frozen=True)
class Labels:
    """What some files hold.

    Attributes:
        labels: the lines with a verdict, in the order of the files.
        groups: item -> its image, where the files say.
        unlabelled: number of lines without a verdict, by source.
        open: steps that no annotator of a source labelled, by source: item and number of the step.
    """

    labels: tuple[Row, ...]
    groups: Mapping[str, str] = field(default_factory=dict)
    unlabelled: Mapping[str, int] = field(default_factory=dict)
    open: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)

    def of(self, source: str) -> list[Row]:
        """Return the labels from a source."""
        return [label for label in self.labels if label.source == source]


def read_labels(paths: Sequence[str | Path]) -> Labels:
    """Return the labels of some files together.

    Args:
        paths: of one annotator each, or of several.

    Raises:
        LabelError: the faults of the first file with some, each with its line: the file cannot be read, a line is no
            label, an annotator labelled a step twice, a step or an item is another one elsewhere; or there is not one
            label.
    """
    rows: list[Row] = []
    # what must be the same wherever it is said -> (what is said, where)
    known: dict[tuple[Any, ...], tuple[str, str]] = {}
    for path in map(Path, paths):
        faults: list[str] = []
        for number, line in _lines(path):
            try:
                row = _row(line)
                _agree(row, known, f"{path}, line {number}")
                rows.append(row)
            except PatchError as error:
                faults.append(f"line {number}: {error}")
        if faults:
            raise LabelError(listed(str(path), faults))
    labels = tuple(row for row in rows if row.correct is not None)
    if not labels:
        what = f"none of the {len(rows)} steps is labelled yet" if rows else "no labels"
        raise LabelError(
            f"{', '.join(map(str, paths))}: {what}; write 1 (correct) or 0 as 'correct' of each line, and who you are as 'annotator'"
        )
    groups = {key[1]: value for key, (value, _) in known.items() if key[0] == "group"}
    judged = {(row.source, row.item, row.step) for row in labels}
    missing = {(row.source, row.item, row.step) for row in rows} - judged
    unlabelled: Counter[str] = Counter(row.source for row in rows if row.correct is None)
    steps = {
        source: tuple(sorted((item, step) for own, item, step in missing if own == source)) for source in unlabelled
    }
    return Labels(labels, groups, dict(unlabelled), steps)


def to_text(rows: Iterable[Row]) -> str:
    """Return the lines of a file to be filled in."""
    return "".join(json.dumps(msgspec.to_builtins(row), ensure_ascii=False) + "\n" for row in rows)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line; blank lines are passed over."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LabelError(f"{path}: cannot be read: {error}") from None
    # not splitlines: JSON allows U+2028 and its like inside a text
    yield from ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _row(line: str) -> Row:
    """Return the label of a line.

    Raises:
        LabelError: it has no annotator, or is no JSON object.
        RecordError: a key has another value than is allowed.
    """
    try:
        found = files.parse_json(line)
    except ValueError as error:
        raise LabelError(f"cut or not JSON ({error}); write one label a line") from None
    row = read_as(found, Row)
    if row.correct is not None and not row.annotator:
        raise LabelError("a verdict, but no 'annotator'; write who gave it")
    return row


def _agree(row: Row, known: dict[tuple[Any, ...], tuple[str, str]], where: str) -> None:
    """Note what a line says of its step and item.

    Raises:
        RecordError: another line says something else, or the annotator labelled the step before.
    """
    for key, value in ((("text", row.item, row.step), row.text), (("group", row.item), row.group)):
        said, place = known.setdefault(key, (value, where)) if value else (value, "")
        if said != value:
            raise RecordError(
                f"item {row.item!r:.80} has another {key[0]} in {place}: labels of two runs? score the files of each run by themselves"
            )
    label = ("label", row.item, row.step, row.annotator, row.source)
    if row.correct is not None and (before := known.setdefault(label, ("", where)))[1] != where:
        raise RecordError(
            f"{row.annotator!r:.80} labelled step {row.step} of {row.item!r:.80} in {before[1]} already; keep one"
        )
