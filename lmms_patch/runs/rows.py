"""The lines of a task's sample log as columns: one row per doc and view (docs/tables.md). NumPy and pyarrow."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lmms_patch.ask.answers import options_in
from lmms_patch.ask.kinds import Kind
from lmms_patch.errors import RecordError
from lmms_patch.runs.logs import Line, answers_of
from lmms_patch.runs.need import has_classes, needs
from lmms_patch.runs.packed import COLUMNS as PACKED
from lmms_patch.runs.packed import SHARED_TEXT, pack
from lmms_patch.runs.record import Record, View, full_marks
from lmms_patch.runs.run import Result

COLUMNS: dict[str, pa.DataType] = {
    "task": SHARED_TEXT,
    "filter": SHARED_TEXT,
    "doc_id": pa.int64(),
    "view": pa.int32(),
    "kind": SHARED_TEXT,
    "swapped": pa.bool_(),
    "n": pa.int8(),
    "cell": pa.int16(),
    "row": pa.int8(),
    "col": pa.int8(),
    "region": pa.int32(),
    "relevant": pa.bool_(),
    "turn": pa.int8(),
    "gold_at": pa.int8(),
    "asked": pa.bool_(),
    "score": pa.float64(),
    "right": pa.bool_(),
    "chosen": pa.bool_(),
    "answer": pa.string(),
    "failed": pa.string(),
    "error": pa.string(),
    "unfinished": pa.bool_(),
    "names": pa.int32(),
    "question": pa.string(),
    "gold": pa.string(),
    "options": pa.list_(pa.string()),
    "category": pa.string(),
    "cluster": pa.string(),
    "group": pa.string(),
    "stratum": pa.string(),
    "excluded": pa.string(),
    "width": pa.int32(),
    "height": pa.int32(),
    "images": pa.string(),
    "wrong_from": pa.int64(),
    "need": SHARED_TEXT,
}
"""The columns that every table has; a task with several metrics has ``score.<metric>`` after ``score`` for each metric but the primary."""
CAPTION = "caption"
"""A column of ``_caption`` tasks only: the description that stood in place of the image."""
_NUMBERS = ("swapped", "n", "cell", "row", "col", "region", "relevant", "turn", "gold_at", "unfinished", "names")
"""Columns that are attributes of a view, beside its texts."""
BATCH = 4096
"""Docs that are turned into columns at once."""


def metrics_of(result: Result) -> list[str]:
    """Return the metrics reported by the harness for a task, the primary metric first."""
    primary = result.metric
    return [primary, *(name for name in result.details.get("higher_is_better", {}) if name != primary)]


def schema_of(result: Result, *, packed: bool = False) -> pa.Schema:
    """Return the columns of a task's table; ``packed``: also those of ``runs.packed``."""
    names = list(COLUMNS)
    place = names.index("score") + 1
    others = [(_column_of(name), pa.float64()) for name in metrics_of(result)[1:]]
    return pa.schema(
        [
            *((name, COLUMNS[name]) for name in names[:place]),
            *others,
            *((name, COLUMNS[name]) for name in names[place:]),
            *((CAPTION, pa.string()) for _ in range(result.kind.captions)),
            *(PACKED.items() if packed else ()),
        ]
    )


def _column_of(metric: str) -> str:
    """Return the name of the column with the scores of a metric beside the primary metric."""
    return f"score.{_whole(metric)}"


def batches(result: Result, *, packed: bool = False, most: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's table from its sample log, some thousand docs at a time.

    Args:
        result: the task.
        packed: also the columns of ``runs.packed``, which are not documented.
        most: how many docs, from the first of the log on; None: all.

    Raises:
        RecordError: the task has no sample log, its log cannot be read, or it is a MAGIC task, whose docs have no
            views.
    """
    if result.kind.name == "magic":
        raise RecordError(
            f"{result.run.path}: {result.task} is a MAGIC task: its docs have no views; type 'lmms-patch magic show'"
        )
    schema, lines = schema_of(result, packed=packed), itertools.islice(result.lines(), most)
    while some := list(itertools.islice(lines, BATCH)):
        yield _batch(result, schema, some)


# --- from lines to columns ------------------------------------------------------------------------


def _batch(result: Result, schema: pa.Schema, lines: Sequence[Line]) -> pa.RecordBatch:
    """Return the rows of some docs."""
    docs = [_Doc(line) for line in lines]
    counts = [len(doc.views) for doc in docs]
    of_row = np.repeat(np.arange(len(docs)), counts)
    # every row has the same task and filter: entry 0 of a dictionary of one text
    one = pa.array(np.zeros(len(of_row), np.int32))
    columns = {
        "task": pa.DictionaryArray.from_arrays(one, texts([result.task])),
        "filter": pa.DictionaryArray.from_arrays(one, texts([result.filter])),
        "view": pa.array(np.concatenate([np.arange(count) for count in counts])),
        "asked": pa.array(np.concatenate([doc.asked for doc in docs])),
        "chosen": pa.array(np.concatenate([doc.chosen for doc in docs])),
        "answer": texts(answer for doc in docs for answer in doc.answers),
        **_of_views(schema, metrics_of(result), [view for doc in docs for view in doc.views]),
        **{
            name: column.take(pa.array(of_row))
            for name, column in {**_of_docs(lines), "need": _needs(result, lines)}.items()
        },
    }
    full = np.array([full_marks(line.record, result.metric) for line in lines])
    # right is at least half of what the gold scores, as in the necessity map
    right = pc.greater_equal(columns["score"], pa.array(full[of_row] / 2))
    if "record.own" in schema.names:
        columns |= pack([line.record for line in lines], [doc.of_record for doc in docs])
    columns["right"] = right if result.higher_is_better else pa.nulls(len(of_row), pa.bool_())
    return pa.record_batch([columns[name].cast(schema.field(name).type) for name in schema.names], schema=schema)


class _Doc:
    """The rows of a doc.

    Attributes:
        views: its own in the order of a full pass, those that were left out among them, and then those on another doc's
        image.
        of_record: of each, the view of the record; None where it has none.
        asked: of each, whether it was asked.
        chosen: of each, whether it is the best of its set.
        answers: of each, the answer; None where none came.
    """

    def __init__(self, line: Line) -> None:
        record = line.record
        self.of_record: list[View | None] = [*record.views]
        if record.asked is not None and record.asked.unasked:
            # where views were left out, the rows are those of a full pass all the same
            there = {(view.n, view.cell): view for view in record.views}
            self.of_record = [
                there.get((view.n, view.cell)) for view in _full_pass(record.task_kind, tuple(record.grids))
            ]
        self.views = [
            view or _full_pass(record.task_kind, tuple(record.grids))[place]
            for place, view in enumerate(self.of_record)
        ] + record.wrong_views
        self.asked = np.array(
            [view is not None and record.is_asked for view in self.of_record] + [True] * len(record.wrong_views), bool
        )
        # only now: above, ``of_record`` must hold the views of the doc's image alone
        self.of_record += record.wrong_views
        rows = np.flatnonzero(self.asked)
        self.chosen = np.zeros(len(self.views), bool)
        # places among the views that were asked
        self.chosen[rows[list(record.best.values())]] = True
        self.answers: list[str | None] = [None] * len(self.views)
        for row, answer in zip(rows.tolist(), answers_of(line), strict=True):
            self.answers[row] = None if self.views[row].failed is not None else answer


# every doc of a run that left views out asks for it
@functools.lru_cache
def _full_pass(kind: Kind, grids: tuple[int, ...]) -> list[View]:
    """Return every view of a full pass as not asked: the full image, and the cells of each grid."""
    out = [View(kind="full", scores={}, items={})]
    for n in grids:
        rows, columns = kind.shape(n)
        places = [(row, col) for row in range(rows) for col in range(columns)]
        out += [
            View(kind=kind.view, n=n, cell=cell, row=row, col=col, scores={}, items={})
            for cell, (row, col) in enumerate(places, 1)
        ]
    return out


def _of_views(schema: pa.Schema, metrics: Sequence[str], views: Sequence[View]) -> dict[str, pa.Array]:
    """Return the columns of views.

    Many docs share the objects of equal views, so each object is looked at once.
    """
    seen: dict[int, int] = {}
    rows = pa.array(np.array([seen.setdefault(id(view), len(seen)) for view in views], np.int64))
    different = list({id(view): view for view in views}.values())
    columns = {
        name: pa.array([getattr(view, name) for view in different], schema.field(name).type) for name in _NUMBERS
    }
    columns |= {name: texts(getattr(view, name) for view in different) for name in ("failed", "error", CAPTION)}
    columns["kind"] = pa.array([view.kind for view in different]).dictionary_encode()
    for metric in metrics:
        name = "score" if metric == metrics[0] else _column_of(metric)
        columns[name] = pa.array([view.scores.get(metric) for view in different], pa.float64())
    return {name: column.take(rows) for name, column in columns.items()}


def _of_docs(lines: Sequence[Line]) -> dict[str, pa.Array]:
    """Return the columns of docs, a row per doc."""
    records = [line.record for line in lines]
    sizes = [record.image_sizes[0] if record.image_sizes else (None, None) for record in records]
    fields = {name: texts(record.fields.get(name) for record in records) for name in ("category", "cluster", "group")}
    return {
        "doc_id": pa.array([record.doc_id for record in records]),
        "question": texts(line.input for line in lines),
        "gold": texts(line.target if line.record.answer.gold is None else line.record.answer.gold for line in lines),
        "options": _options(lines),
        **fields,
        "stratum": texts(record.stratum or None for record in records),
        "excluded": texts(_excluded(record) for record in records),
        "width": pa.array([width for width, _ in sizes], pa.int32()),
        "height": pa.array([height for _, height in sizes], pa.int32()),
        "images": texts(record.images for record in records),
        "wrong_from": pa.array(
            [None if (wrong := record.wrong_image) is None else wrong.source for record in records], pa.int64()
        ),
    }


def _needs(result: Result, lines: Sequence[Line]) -> pa.Array:
    """Return what each doc needs at the finest grid (``runs.need``); null where the task's docs have no classes."""
    if not has_classes(result):
        return pa.nulls(len(lines), SHARED_TEXT)
    found = needs([line.record for line in lines], result.metric, max(result.grids))
    return pa.array(found, pa.string()).dictionary_encode()


def _options(lines: Sequence[Line]) -> pa.Array:
    """Return the options of each doc: of the field ``choices``, else as listed in the prompt, else the answers scored as options, sorted."""
    found: list[list[str] | None] = []
    for line in lines:
        record = line.record
        named, scored = (
            record.fields.get("choices"),
            sorted(one.answer for one in record.baselines if "option" in one.roles),
        )
        listed = options_in(line.input) if isinstance(line.input, str) and record.answer.format in ("mc", "") else ()
        found.append([str(one) for one in (named if isinstance(named, list) else listed or scored)] or None)
    ends = np.cumsum([0, *(len(one or ()) for one in found)])
    inner = texts(text for one in found for text in one or ())
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), inner, mask=pa.array([one is None for one in found]))


def _excluded(record: Record) -> str | None:
    """Return why a doc is left out; of some of its sets of views alone, with their names.

    None where it is used for all.
    """
    reasons = record.excluded
    if not reasons:
        return None
    everywhere = set(reasons.values()) if not record.best else ()
    return (
        next(iter(reasons.values()))
        if len(everywhere) == 1
        else "; ".join(f"{key}: {why}" for key, why in reasons.items())
    )


def texts(values: Iterable[Any]) -> pa.Array:
    """Return values as texts, None as null; halves of characters, which Arrow cannot hold, become U+FFFD."""
    given = [value if value is None or isinstance(value, str) else str(value) for value in values]
    try:
        return pa.array(given, pa.string())
    except UnicodeEncodeError:
        return pa.array([None if text is None else _whole(text) for text in given], pa.string())


def _whole(text: str) -> str:
    """Return a text in which the two halves of a character are joined, and half a character by itself is U+FFFD."""
    # UTF-16 writes the two halves one after the other, which decoding joins
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
