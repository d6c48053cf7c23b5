"""Sample logs: a line for each doc and filter pipeline, read as records."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from lmms_patch.errors import OTHER_VERSION, RecordError, shown
from lmms_patch.files import POINTER, PULL
from lmms_patch.runs.record import SCHEMA, Baseline, Record, View, WrongImage, parts_at_odds, record_of, view_at_odds

CHANGED = "the file was changed or written by another program"
_KEPT = 50_000
"""How many different views and baselines a reader remembers by their text: one that comes again is not decoded again."""

_LOSSES = re.compile(r"^[(\[]\s*(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?)\s*,", re.IGNORECASE)


class _Fields(Struct):
    """The keys of a sample log's line which readers use; the record is still undecoded.

    Attributes:
        patch: the record as the log writes it.
        doc_id: as the harness writes it beside the record.
        filtered_resps: the answers, after the filter.
        input: what was asked.
        target: the gold.
    """

    patch: Raw = Raw()
    doc_id: Any = None
    filtered_resps: Any = None
    input: Any = None
    target: Any = None


class Line(_Fields, kw_only=True):
    """A line of the sample log of a wrapped task, with the doc's record.

    Attributes:
        record: of the doc, checked.
    """

    record: Record

    def whole(self) -> Record:
        """Return the record with all of its parts, also where the log is read without boxes.

        Raises:
            RecordError: it is not as we write it.
        """
        return record_of(self.hashable())

    def hashable(self) -> Mapping[str, Any]:
        """Return the record as written in the log, in plain JSON types."""
        found: Mapping[str, Any] = json.loads(bytes(self.patch))
        return found


class _WrongParts(WrongImage):
    """What a record says of a wrong image, whose views are not read yet."""

    views: list[Raw] = []  # type: ignore[assignment] # undecoded in place of decoded


class _Parts(Record):
    """A record whose parts shared by many docs are still undecoded."""

    views: Annotated[list[Raw], Meta(min_length=1)]  # type: ignore[assignment] # undecoded in place of decoded
    baselines: list[Raw] = []  # type: ignore[assignment] # the same
    wrong_image: _WrongParts | None = None


_OTHERS = [name for name in Record.__struct_fields__ if name not in ("views", "baselines", "wrong_image")]
_FIELDS, _PARTS = msgspec.json.Decoder(_Fields), msgspec.json.Decoder(_Parts)
_VIEW, _BASELINE = msgspec.json.Decoder(View), msgspec.json.Decoder(Baseline)


def read_lines(
    path: Path, filter_place: int | None = None, *, filters: int | None = None, lean: bool = False
) -> Iterator[Line]:
    """Yield the lines of a wrapped task's sample log, in file order, each with its record.

    Args:
        path: the log.
        filter_place: only those of this filter pipeline: the host writes a line per doc and filter, in the order of the
        filters.
        filters: how many pipelines the task has; None: not known.
        lean: without the boxes, and with equal views and baselines as one object: a tenth of the memory. Only to read.

    Raises:
        RecordError: a line that is cut or has no ``patch``, a part of another type, records of an unknown schema, or a
            doc twice.
    """
    times: Counter[int] = Counter()
    shared = Shared(boxes=not lean)
    for number, text in _texts(path):
        line = _read(text, shared, f"{path}, line {number}")
        doc_id = line.record.doc_id
        times[doc_id] += 1
        if filter_place is None or times[doc_id] == filter_place + 1:
            yield line
    # a log has a line per doc for each filter, so every doc must come equally often
    often = filters or min(times.values(), default=0)
    twice = [doc_id for doc_id, count in times.items() if count != often]
    if twice:
        raise RecordError(
            f"{path}: doc {twice[0]} is there {times[twice[0]]} times, not {often}; each doc has one line per filter: two runs in one file?"
        )


class Shared:
    """The parts of records read so far: equal parts become the same object.

    Args:
        boxes: keep the boxes of views.
    """

    def __init__(self, *, boxes: bool) -> None:
        self._boxes = boxes
        self._read: dict[bytes, Any] = {}
        self._known: dict[Any, Any] = {}

    def record(self, text: Raw) -> Record:
        """Return a record, checked.

        Raises:
            msgspec.DecodeError: it is not JSON as we write it.
            RecordError: its parts do not fit together.
        """
        # views and baselines stay undecoded here, since equal ones are decoded once
        found = _PARTS.decode(text)
        views = [self._part(one, _VIEW) for one in found.views]
        baselines = [self._part(one, _BASELINE) for one in found.baselines]
        wrong = None
        if (given := found.wrong_image) is not None:
            wrong = WrongImage(given.source, given.image_sizes, [self._part(one, _VIEW) for one in given.views])
        record = Record(
            views=views, baselines=baselines, wrong_image=wrong, **{name: getattr(found, name) for name in _OTHERS}
        )
        if said := parts_at_odds(record):
            raise RecordError(said)
        return self._known_parts(record)

    def known(self, record: Record) -> Record:
        """Return a record whose parts are replaced by equal parts of earlier records.

        Views are replaced only where boxes are not kept.
        """
        if not self._boxes:
            record.views = [self._lean(view) for view in record.views]
            if record.wrong_image is not None:
                record.wrong_image.views = [self._lean(view) for view in record.wrong_views]
        return self._known_parts(record)

    def _known_parts(self, record: Record) -> Record:
        """Replace the parts of a record by equal parts of earlier records, but for its views and baselines."""
        for name in ("task", "base", "stratum", "answer"):
            one = getattr(record, name)
            # equal parts are held once, since a log repeats them in every line
            setattr(record, name, self._known.setdefault(one, one))
        sizes = record.image_sizes
        record.image_sizes = self._known.setdefault(str(sizes), sizes)
        return record

    def _part(self, text: Raw, decoder: msgspec.json.Decoder[Any]) -> Any:
        """Return a part of a record from its JSON, the same object for equal texts."""
        key = bytes(text)
        part = self._read.get(key)
        if part is None:
            part = decoder.decode(key)
            if decoder is _VIEW and view_at_odds(part):
                # ``_slowly`` finds the words
                raise msgspec.ValidationError
            if decoder is _VIEW and not self._boxes:
                part = self._lean(part)
            # views that never come again must not fill the memory
            if len(self._read) < _KEPT:
                self._read[key] = part
        return part

    def _lean(self, view: View) -> View:
        """Return a view without its boxes; equal views are the same object."""
        if not view.boxes:
            return view
        lean = msgspec.structs.replace(view, boxes=None)
        # views hold dictionaries, which are no keys; equal views have equal texts
        known: View = self._known.setdefault(repr(lean), lean)
        return known


def _read(text: bytes, shared: Shared, where: str) -> Line:
    """Return a line as a ``Line``; a line refused by the quick decoder is read again, slowly, to say what is wrong."""
    try:
        fields = _FIELDS.decode(text)
        record = shared.record(fields.patch)
        return Line(fields.patch, fields.doc_id, fields.filtered_resps, fields.input, fields.target, record=record)
    except RecordError as error:
        raise RecordError(f"{where}: {error}; {CHANGED}") from None
    except (ValueError, RecursionError):
        # a number that is none, half a character: JSON that Python reads
        return _slowly(text, shared, where)


def _slowly(text: bytes, shared: Shared, where: str) -> Line:
    """Return a line refused by the quick decoder, or raise a RecordError which names the place of the fault."""
    sample = line_object(text, where)
    patch = sample.get("patch")
    if not isinstance(patch, dict):
        raise RecordError(f"{where}: no 'patch' object; this is not the log of a wrapped task")
    if patch.get("schema") != SCHEMA:
        raise RecordError(f"{where}: records of schema {shown(patch.get('schema'))}; {OTHER_VERSION}")
    try:
        record = shared.known(record_of(patch))
    except RecordError as error:
        raise RecordError(f"{where}: {error}; {CHANGED}") from None
    given = {name: sample.get(name) for name in ("doc_id", "filtered_resps", "input", "target")}
    return Line(Raw(json.dumps(patch)), **given, record=record)


# --- answers --------------------------------------------------------------------------------------


def answers_of(line: Line) -> list[str | None]:
    """Return the answer to each view asked: first on the doc's image, then on another doc's image.

    Of log-likelihoods it is the number of the option with the lowest loss, from 0. Answers that do not fit the views
    are None.
    """
    given, own = line.filtered_resps, len(line.record.views) if line.record.is_asked else 0
    asked = own + len(line.record.wrong_views)
    # the harness writes a single answer without its list
    if asked == 1 and not isinstance(given, list):
        given = [] if given is None else [given]
    each = len(given) // asked if isinstance(given, list) and asked else 0
    if not each or each * asked != len(given):
        return [None] * asked
    return [_answer(given[i * each : (i + 1) * each]) for i in range(asked)]


def _answer(given: Sequence[Any]) -> str:
    """Return a view's answer as a text: of several losses (multiple choice), the option with the lowest."""
    if len(given) == 1:
        return str(given[0])
    losses = [float(match[1]) if (match := _LOSSES.match(str(one))) else None for one in given]
    known = [loss for loss in losses if loss is not None]
    return f"option {losses.index(min(known))}" if len(known) == len(losses) else " | ".join(map(str, given))


# --- lines as they are ----------------------------------------------------------------------------


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the lines of a sample log as objects, each with its number from 1.

    Raises:
        RecordError: the log cannot be opened, or a line is cut, or no JSON object.
    """
    return ((number, line_object(text, f"{path}, line {number}")) for number, text in _texts(path))


def _texts(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers from 1; an unreadable file raises a RecordError."""
    try:
        lines = open(path, "rb")  # noqa: SIM115 - closed below; only opening it is a matter of this message
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from None
    with lines:
        yield from enumerate(lines, 1)


def line_object(text: bytes, where: str) -> dict[str, Any]:
    """Return a line of a sample log as an object.

    Raises:
        RecordError: it is cut, or no JSON object.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if text.startswith(POINTER):
        raise RecordError(f"{where}: {PULL}")
    if not isinstance(found, dict):
        raise RecordError(f"{where}: cut or not JSON; the run did not finish writing this file")
    return found
