"""Files of step labels: read with all their mistakes told, and written to be filled in. Pure.

A CSV (with a header line) or JSONL file, one step a line. Needed: ``item``, ``step`` (from 1), ``annotator``, ``correct`` (1 or 0; empty: not
labelled yet). Known too: ``source`` (``human``, which it is where nothing is said, or ``judge``), ``group`` (the item's image), ``text`` (the step),
and what a reader needs to judge it, ``question`` and ``answer``. Other columns are ignored.
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
from typing import Any

from lmms_patch.errors import PatchError
from lmms_patch.magic.rows import is_writable, printable, unique_keys

SOURCES = ("human", "judge")
KEYS = ("item", "step", "annotator", "correct")
FIELDS = ("item", "group", "step", "annotator", "correct", "source", "question", "answer", "text")
"""The columns of a file to be filled in, in their order."""
FORMS = (".csv", ".jsonl")

_RISKY = ("=", "+", "-", "@", "\t")
"""Beginnings that a spreadsheet would run: they are written behind a ``'``."""
_SELECTORS = ("\ufe0e", "\ufe0f")  # whether a symbol is drawn as text or in colour; some programs drop them


class LabelError(PatchError):
    """A file of step labels that cannot be read as such."""


@dataclass(frozen=True)
class StepLabel:
    """One annotator's verdict on one step.

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
    """

    labels: tuple[StepLabel, ...]
    groups: Mapping[str, str] = field(default_factory=dict)
    unlabelled: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def of(self, source: str) -> list[StepLabel]:
        """The labels of one source."""
        return [label for label in self.labels if label.source == source]


def read_labels(paths: Sequence[str | Path]) -> Labels:
    """The labels of some files together.

    Args:
        paths: ``.csv`` or ``.jsonl`` files: of one annotator each, or of several.

    Raises:
        LabelError: the file and the line of the first fault: not readable, a key missing, a step that is no whole number from 1, a verdict
            other than 0 or 1, the same annotator twice on a step, a step or an item that is another one elsewhere, or not one label.
    """
    labels: list[StepLabel] = []
    unlabelled: Counter[str] = Counter()
    items: set[str] = set()
    known: dict[tuple[Any, ...], tuple[str, str]] = {}  # what must be the same wherever it is said -> (what is said, where)
    for path in map(Path, paths):
        for number, row in _rows(path):
            where = f"{path}, line {number}"
            item, step, source = _place(row, where)
            items.add(item)
            for what, key, value in (("text", (item, step), _letters(row.get("text"))), ("group", (item,), _text(row.get("group")))):
                before = known.setdefault((what, *key), (value, where)) if value else (value, where)
                if before[0] != value:
                    about = f"step {step} of {_name(item)}" if what == "text" else _name(item)
                    raise LabelError(
                        f"{where}: {about} has another {what} in {before[1]}: labels of two runs? score the files of each run by themselves"
                    )
            if _text(row.get("correct")) == "":
                unlabelled[source] += 1
                continue
            label = StepLabel(item, step, _annotator(row, where), _verdict(row, where), source)
            twice = known.setdefault(("label", item, step, label.annotator, source), ("", where))
            if twice[1] != where:
                who = f"{_name(label.annotator)} labelled step {step} of {_name(item)}"
                raise LabelError(f"{where}: {who} in {_short(twice[1], path)} already; keep one")
            labels.append(label)
    if not labels:
        raise LabelError(_nothing([str(path) for path in paths], sum(unlabelled.values())))
    groups = {key[1]: value for key, (value, _) in known.items() if key[0] == "group"}
    people = {label.annotator for label in labels}
    notes = (*_alike(items, "items", "white space", lambda name: name), *_alike(people, "annotators", "case or white space", str.casefold))
    return Labels(tuple(labels), groups, dict(unlabelled), notes)


def _alike(names: Iterable[str], what: str, how: str, as_one: Callable[[str], str]) -> list[str]:
    """A line where some names differ by white space, or by what ``as_one`` takes away, alone."""
    spelt: dict[str, list[str]] = {}
    for name in sorted(names):
        spelt.setdefault(" ".join(as_one(name).split()), []).append(name)
    found = [" and ".join(map(repr, same)) for same in spelt.values() if len(same) > 1]
    more = f", and {len(found) - 1} more such" if len(found) > 1 else ""
    return [f"{what} {found[0]}{more} differ by {how} alone; they are counted as different {what}"] if found else []


def _nothing(paths: Sequence[str], unlabelled: int) -> str:
    names = ", ".join(paths)
    if unlabelled:
        return (
            f"{names}: none of the {unlabelled} steps is labelled yet; write 1 (correct) or 0 in the column 'correct', and who you are in 'annotator'"
        )
    return f"{names}: no labels; write one a line, with {', '.join(KEYS)}"


def _name(text: str, most: int = 80) -> str:
    """Return a text of the file as it can stand in a message: on one line, and not longer than that."""
    text = printable(text[: most + 1])
    return text if len(text) <= most else text[: most - 3] + "..."


def _short(where: str, path: Path) -> str:
    """A place, without the file's name where it is the same file."""
    return where.removeprefix(f"{path}, ")


# --- lines ----------------------------------------------------------------------------------------


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Line number and content of each line."""
    if path.suffix.lower() not in FORMS:
        raise LabelError(f"{path}: step labels are read from {' or '.join(FORMS)} files")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LabelError(f"{path}: not UTF-8 text (byte {error.start + 1}); save it as 'CSV UTF-8'") from None
    except OSError as error:
        raise LabelError(f"{path}: cannot be read: {error.strerror}") from None
    if path.suffix.lower() == ".csv":
        yield from _csv_rows(path, text)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _object(line, f"{path}, line {number}")


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The lines of a CSV file; spreadsheets of some countries part cells by semicolons."""
    head = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count), strict=True)
    try:
        if missing := [key for key in KEYS if key not in (reader.fieldnames or ())]:
            raise LabelError(f"{path}, line 1: no column {missing[0]!r}; the header must name {', '.join(KEYS)}")
        if twice := [key for key in FIELDS if list(reader.fieldnames or ()).count(key) > 1]:
            raise LabelError(f"{path}, line 1: several columns {twice[0]!r}; keep one")
        for row in reader:
            if any(_text(value) for value in row.values()):
                yield reader.line_num, {key: _unguarded(value) for key, value in row.items() if isinstance(key, str)}
    except csv.Error as error:
        raise LabelError(f"{path}, line {reader.line_num}: not CSV: {error}") from None


def _object(line: str, where: str) -> dict[str, Any]:
    twice: list[str] = []

    def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        try:
            return unique_keys(pairs)
        except ValueError as error:
            twice.append(printable(str(error)))
            return {}

    try:
        row = json.loads(line, object_pairs_hook=noted)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise LabelError(f"{where}: cut or not a JSON object; write one label a line")
    if twice:
        raise LabelError(f"{where}: {twice[0]}; keep one")
    if nested := [key for key in FIELDS if isinstance(row.get(key), (list, dict))]:
        raise LabelError(f"{where}: {nested[0]} is a {type(row[nested[0]]).__name__}; a label holds text and numbers")
    if broken := [key for key in FIELDS if isinstance(row.get(key), str) and not is_writable(row[key])]:
        raise LabelError(f"{where}: {broken[0]} holds half a character (a lone surrogate such as \\ud800), which no file can hold")
    return row


def _text(value: Any) -> str:
    """A cell as text; "" where there is none."""
    return " ".join(map(str, value)).strip() if isinstance(value, list) else "" if value is None else str(value).strip()


def _letters(value: Any) -> str:
    """A text by its letters (with the marks that belong to them) and digits: what programs that open and save a file leave as it is.

    Of any script, upper and lower case and compatible forms (full width, ligatures) as one; of a text without any, all but white space.

    >>> _letters("R\u2081: \u201cA  Dog\u201d, \u732b!")
    'r1adog\u732b'
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _text(value)).casefold())
    kept = "".join(c for c in folded if unicodedata.category(c)[0] in "LMN" and c not in _SELECTORS)
    return kept or "".join(folded.split())


def _place(row: Mapping[str, Any], where: str) -> tuple[str, int, str]:
    """Item, step and source of a line."""
    for key in ("item", "step"):
        if _text(row.get(key)) == "":
            raise LabelError(f"{where}: no {key!r}; each label has {', '.join(KEYS)}")
    step, source = _text(row["step"]), _text(row.get("source")).lower() or SOURCES[0]
    if isinstance(row["step"], bool) or not step.isascii() or not step.isdigit() or len(step) > 6 or int(step) < 1:
        raise LabelError(f"{where}: step {_name(repr(row['step']))}; steps are whole numbers from 1")
    if source not in SOURCES:
        raise LabelError(f"{where}: source {_name(repr(source))}; allowed: {', '.join(SOURCES)}")
    return _text(row["item"]), int(step), source


def _annotator(row: Mapping[str, Any], where: str) -> str:
    if not (name := _text(row.get("annotator"))):
        raise LabelError(f"{where}: a verdict, but no 'annotator'; write who gave it")
    return name


def _verdict(row: Mapping[str, Any], where: str) -> bool:
    verdict = {"0": False, "1": True, "false": False, "true": True}.get(_text(row["correct"]).lower())
    if verdict is None:
        raise LabelError(f"{where}: correct is {_name(repr(row['correct']))}; allowed: 1, 0, or empty where it is not labelled yet")
    return verdict


# --- to be filled in ------------------------------------------------------------------------------


def to_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Lines with the columns ``FIELDS``, as CSV with a mark by which spreadsheets know that it is UTF-8."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(FIELDS)
    writer.writerows([[_guarded(row.get(key)) for key in FIELDS] for row in rows])
    return "\ufeff" + out.getvalue()


def to_jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    """The same as one JSON object a line; what is empty is null."""
    return "".join(json.dumps({key: row.get(key) for key in FIELDS}, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def _guarded(value: Any) -> Any:
    """A cell that a spreadsheet takes as text."""
    if isinstance(value, str):
        value = " ".join(value.replace("\0", " ").split())
        return "'" + value if value.startswith(_RISKY) else value
    return "" if value is None else value


def _unguarded(value: Any) -> Any:
    return value[1:] if isinstance(value, str) and value[:1] == "'" and value[1:].startswith(_RISKY) else value
