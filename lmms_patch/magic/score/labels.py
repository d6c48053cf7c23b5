"""Files of step labels: read with all their mistakes told, and written to be filled in. Pure.

A CSV (with a header line) or JSONL file, one step a line. Needed: ``item``, ``step`` (from 1), ``annotator``,
``correct`` (1 or 0; empty: not labelled yet). Known too: ``source`` (``human``, which it is where nothing is said, or
``judge``), ``group`` (the item's image), ``text`` (the step), and what a reader needs to judge it, ``question`` and
``answer``. Other columns are ignored.
"""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from lmms_patch.errors import PatchError, listed, must, read_as
from lmms_patch.magic.rows import is_writable, noting_repeats, printable

SOURCES = ("human", "judge")
KEYS = ("item", "step", "annotator", "correct")
FIELDS = ("item", "group", "step", "annotator", "correct", "source", "question", "answer", "text")
"""The columns of a file to be filled in, in their order."""
FORMS = (".csv", ".jsonl")

_RISKY = ("=", "+", "-", "@", "\t")
"""Beginnings that a spreadsheet would run: they are written behind a ``'``."""
# whether a symbol is drawn as text or in colour; some programs drop them
_SELECTORS = ("\ufe0e", "\ufe0f")


class LabelError(PatchError):
    """A file of step labels with faults."""


@dataclass(frozen=True)
class StepLabel:
    """The verdict of an annotator on a step.

    Attributes:
        item: id of the item.
        step: number of the step, from 1.
        annotator: name of who (or which judge) labelled it.
        correct: the verdict.
        source: one of ``SOURCES``.
    """

    item: str
    step: int
    annotator: str
    correct: bool
    source: str = "human"


@dataclass(frozen=True)
class Labels:
    """What some files hold.

    Attributes:
        labels: in the order of the files.
        groups: item -> its image, where the files say.
        unlabelled: number of lines without a verdict, by source.
        notes: names that are nearly the same, one line each: perhaps one name spelt in two ways.
        open: steps that no annotator of a source labelled, by source: item and number of the step.
    """

    labels: tuple[StepLabel, ...]
    groups: Mapping[str, str] = field(default_factory=dict)
    unlabelled: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    open: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)

    def of(self, source: str) -> list[StepLabel]:
        """Return the labels from a source."""
        return [label for label in self.labels if label.source == source]


# --- one line -------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    """Return a cell as text; "" where there is none."""
    return " ".join(map(str, value)).strip() if isinstance(value, list) else "" if value is None else str(value).strip()


def _number(value: Any) -> Any:
    """Return a cell of up to six digits as a number, and any further cell unchanged."""
    digits = _text(value)
    return (
        int(digits)
        # ``isdigit`` alone takes digits of other scripts; an endless number would be slow to convert.
        if not isinstance(value, bool) and digits.isascii() and digits.isdigit() and len(digits) <= 6
        else value
    )


def _verdict(value: Any) -> Any:
    return {"0": False, "1": True, "false": False, "true": True, "": None}.get(_text(value).lower(), value)


_Cell = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "null"]})]
_Verdict = Annotated[bool | None, BeforeValidator(_verdict), WithJsonSchema({"enum": [0, 1, True, False, None]})]
_Source = Annotated[
    Literal["human", "judge"],
    BeforeValidator(lambda value: _text(value).lower() or SOURCES[0]),
    WithJsonSchema({"enum": [*SOURCES, None]}),
]


class Row(BaseModel):
    """One line of a file of step labels (JSONL, or CSV with these columns), of `lmms-patch magic steps` and `lmms-patch magic stepsense`."""

    model_config = ConfigDict(frozen=True, strict=True, use_attribute_docstrings=True)

    item: Annotated[str, BeforeValidator(_text), Field(min_length=1), must("the id of an item")]
    """Id of the item."""
    step: Annotated[int, BeforeValidator(_number), Field(ge=1, le=999_999), must("a whole number from 1")]
    """Number of the step, from 1."""
    annotator: _Cell = ""
    """Name of who (or which judge) labels the step."""
    correct: Annotated[_Verdict, must("1, 0, or empty where it is not labelled yet")] = None
    """The verdict: 1 or 0; empty: not labelled yet."""
    source: _Source = "human"
    """Who labels: ``human`` or ``judge``."""
    group: _Cell = ""
    """The item's image."""
    text: _Cell = ""
    """The step."""

    @model_validator(mode="after")
    def _signed(self) -> Row:
        if self.correct is not None and not self.annotator:
            raise ValueError("a verdict, but no 'annotator'; write who gave it")
        return self


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a line of a JSONL file."""
    return Row.model_json_schema()


def read_labels(paths: Sequence[str | Path]) -> Labels:
    """Return the labels of some files together.

    Args:
        paths: ``.csv`` or ``.jsonl`` files: of one annotator each, or of several.

    Raises:
        LabelError: the faults of the first file with some, each with its line: the file cannot be read, a key is
            missing, a step is no whole number from 1, a verdict is none of 0 and 1, an annotator labelled a step twice,
            a step or an item is another one elsewhere; or there is not one label.
    """
    labels: list[StepLabel] = []
    unlabelled: Counter[str] = Counter()
    without: set[tuple[str, str, int]] = set()
    items: set[str] = set()
    # what must be the same wherever it is said -> (what is said, where)
    known: dict[tuple[Any, ...], tuple[str, str]] = {}
    for path in map(Path, paths):
        faults: list[str] = []
        for number, content in _rows(path):
            try:
                row = read_as(Row, content, f"line {number}", LabelError)
                _agree(row, known, path, number)
            except LabelError as error:
                faults.append(str(error))
                continue
            items.add(row.item)
            if row.correct is None:
                unlabelled[row.source] += 1
                without.add((row.source, row.item, row.step))
            else:
                labels.append(StepLabel(row.item, row.step, row.annotator, row.correct, row.source))
        if faults:
            raise LabelError(listed(str(path), faults))
    if not labels:
        raise LabelError(_nothing([str(path) for path in paths], sum(unlabelled.values())))
    groups = {key[1]: value for key, (value, _) in known.items() if key[0] == "group"}
    people = {label.annotator for label in labels}
    notes = (
        *_alike(items, "items", "white space", lambda name: name),
        *_alike(people, "annotators", "case or white space", str.casefold),
    )
    without -= {(label.source, label.item, label.step) for label in labels}
    steps = {
        source: tuple(sorted((item, step) for own, item, step in without if own == source)) for source in unlabelled
    }
    return Labels(tuple(labels), groups, dict(unlabelled), notes, steps)


def _agree(row: Row, known: dict[tuple[Any, ...], tuple[str, str]], path: Path, number: int) -> None:
    """Note what a line says of its step and item.

    Raises:
        LabelError: another line says something else, or the annotator labelled the step before.
    """
    step = f"step {row.step} of {_name(row.item)}"
    said = [(("text", row.item, row.step), _letters(row.text), step), (("group", row.item), row.group, _name(row.item))]
    for key, value, about in said:
        before, where = known.setdefault(key, (value, f"{path}, line {number}")) if value else (value, "")
        if before != value:
            raise LabelError(
                f"line {number}: {about} has another {key[0]} in {where}: labels of two runs? score the files of each run by themselves"
            )
    if row.correct is None:
        return
    key = ("label", row.item, row.step, row.annotator, row.source)
    if key in known:
        where = known[key][1].removeprefix(f"{path}, ")
        raise LabelError(f"line {number}: {_name(row.annotator)} labelled {step} in {where} already; keep one")
    known[key] = ("", f"{path}, line {number}")


def _alike(names: Iterable[str], what: str, how: str, as_one: Callable[[str], str]) -> list[str]:
    """Return a line on names with no difference but white space, or but what ``as_one`` removes."""
    spelt: dict[str, list[str]] = {}
    for name in sorted(names):
        spelt.setdefault(" ".join(as_one(name).split()), []).append(name)
    pairs = [" and ".join(map(repr, same)) for same in spelt.values() if len(same) > 1]
    more = f", and {len(pairs) - 1} more such" if len(pairs) > 1 else ""
    return [f"{what} {pairs[0]}{more} differ by {how} alone; they are counted as different {what}"] if pairs else []


def _nothing(paths: Sequence[str], unlabelled: int) -> str:
    names = ", ".join(paths)
    if unlabelled:
        return (
            f"{names}: none of the {unlabelled} steps is labelled yet; write 1 (correct) or 0 in the column 'correct', "
            "and who you are in 'annotator'"
        )
    return f"{names}: no labels; write one a line, with {', '.join(KEYS)}"


def _name(text: str) -> str:
    """Return a text of the file shortened for messages: a printable line of at most 80 characters."""
    # cut first: a cell may hold megabytes
    text = printable(text[:81])
    return text if len(text) <= 80 else text[:77] + "..."


# --- lines ----------------------------------------------------------------------------------------


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield number and content of each line."""
    if path.suffix.lower() not in FORMS:
        raise LabelError(f"{path}: step labels are read from {' or '.join(FORMS)} files")
    try:
        # ``utf-8-sig``: the byte order mark of spreadsheets would become part of the first column's name.
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LabelError(f"{path}: not UTF-8 text (byte {error.start + 1}); save it as 'CSV UTF-8'") from None
    except OSError as error:
        raise LabelError(f"{path}: cannot be read: {error.strerror}") from None
    if path.suffix.lower() == ".csv":
        yield from _csv_rows(path, text)
        return
    # not splitlines: JSON allows U+2028 and its like inside a text
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _object(line, f"{path}, line {number}")


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the lines of a CSV file; spreadsheets of some countries part cells by semicolons."""
    head = text.partition("\n")[0]
    # strict: a quote that is never closed would otherwise take in the rest of the file
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count), strict=True)
    try:
        if missing := [key for key in KEYS if key not in (reader.fieldnames or ())]:
            raise LabelError(f"{path}, line 1: no column {missing[0]!r}; the header must name {', '.join(KEYS)}")
        # csv would keep the last column of a name and say nothing.
        if twice := [key for key in FIELDS if list(reader.fieldnames or ()).count(key) > 1]:
            raise LabelError(f"{path}, line 1: several columns {twice[0]!r}; keep one")
        for row in reader:
            if any(_text(value) for value in row.values()):
                # the reader keeps cells beyond the header under None
                yield reader.line_num, {key: _unguarded(value) for key, value in row.items() if isinstance(key, str)}
    except csv.Error as error:
        raise LabelError(f"{path}, line {reader.line_num}: not CSV: {error}") from None


def _object(line: str, where: str) -> dict[str, Any]:
    twice: list[str] = []
    try:
        row = json.loads(line, object_pairs_hook=noting_repeats(twice))
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise LabelError(f"{where}: cut or not a JSON object; write one label a line")
    if twice:
        raise LabelError(f"{where}: {twice[0]}; keep one")
    if nested := [key for key in FIELDS if isinstance(row.get(key), (list, dict))]:
        raise LabelError(f"{where}: {nested[0]} is a {type(row[nested[0]]).__name__}; a label holds text and numbers")
    if broken := [key for key in FIELDS if isinstance(row.get(key), str) and not is_writable(row[key])]:
        raise LabelError(
            f"{where}: {broken[0]} holds half a character (a lone surrogate such as \\ud800), which no file can hold"
        )
    return row


def _letters(value: Any) -> str:
    """Return the letters (with marks) and digits of a text, which survive any program's opening and saving of a file.

    Upper and lower case and compatible forms (full width, ligatures) count as one. A text without letters and digits
    keeps all but white space.

    >>> _letters("R\u2081: \u201cA  Dog\u201d, \u732b!")
    'r1adog\u732b'
    """
    # twice, since folding the case may part what was composed before
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _text(value)).casefold())
    kept = "".join(c for c in folded if unicodedata.category(c)[0] in "LMN" and c not in _SELECTORS)
    return kept or "".join(folded.split())


# --- to be filled in ------------------------------------------------------------------------------


def to_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return lines with the columns ``FIELDS`` as CSV, with a mark for spreadsheets to read the file as UTF-8."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(FIELDS)
    writer.writerows([[_guarded(row.get(key)) for key in FIELDS] for row in rows])
    return "\ufeff" + out.getvalue()


def to_jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return lines with the columns ``FIELDS`` as JSON objects; empty cells are null."""
    return "".join(
        json.dumps({key: row.get(key) for key in FIELDS}, ensure_ascii=False, allow_nan=False) + "\n" for row in rows
    )


def _guarded(value: Any) -> Any:
    """Return a cell as text for spreadsheets: white space joined, with ``'`` before what would run as a formula."""
    if isinstance(value, str):
        value = " ".join(value.replace("\0", " ").split())
        return "'" + value if value.startswith(_RISKY) else value
    return "" if value is None else value


def _unguarded(value: Any) -> Any:
    return value[1:] if isinstance(value, str) and value[:1] == "'" and value[1:].startswith(_RISKY) else value
