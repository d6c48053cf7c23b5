"""The records of a sample log, each checked alone against the results file. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET

from lmms_patch.ask.kinds import Key
from lmms_patch.ask.views import between
from lmms_patch.compare.audit_file import CHANGED, check_same, check_version, refuse
from lmms_patch.errors import RecordError
from lmms_patch.rci.recompute import (
    TaskRun,
)
from lmms_patch.runs import samples
from lmms_patch.runs.digests import of_line
from lmms_patch.runs.logs import read_lines
from lmms_patch.runs.record import (
    TURNS,
    Record,
    View,
    hashed_text,
    in_set,
    in_worst_order,
    log_digest,
)
from lmms_patch.runs.results import IMPORTED, sample_log
from lmms_patch.runs.run import Result
from lmms_patch.runs.scoring import best, scalar
from lmms_patch.runs.trees import same
from lmms_patch.text import clean

NO_ANSWERS = "prompts, answers and golds (an earlier version recorded no digest of them)"
DECLARED = 5
"""Docs from which on a gap in their numbers may show a missing rank."""


def check_digest(result: Result, path: object, hashes: Iterable[bytes]) -> list[str]:
    """Check the digest of the log against the digest in the results file; return what cannot be checked."""
    told = result.made.log
    if told is UNSET:
        return ["the log as a whole (an earlier version recorded no digest of it)"]
    if told != (digest := log_digest(hashes, result.all_docs)):
        raise RecordError(
            f"{path}: not the log that the run wrote: its digest is {digest}, but the run reported {told}; {CHANGED}"
        )
    return []


def unsealed_of(result: Result, hashes: Iterable[bytes] | None) -> tuple[str, ...]:
    """Check the digest of prompts, answers and golds of the log; return what cannot be checked.

    Args:
        result: the result.
        hashes: of the lines (``digests.of_line``); None: the Parquet file was read, whose rows are held to the log.
    """
    told = result.made.answers
    if told is UNSET:
        return (NO_ANSWERS,)
    if hashes is not None and told != (digest := log_digest(hashes)):
        raise RecordError(
            f"{result.log}: its prompts, answers or golds are not those that the run wrote: "
            f"their digest is {digest}, but the run reported {told}; {CHANGED}"
        )
    return ()


class Records:
    """The records of a result's sample log, each checked as it is read, and the digests of the log."""

    def __init__(self, result: Result, where: str, stored: bool) -> None:
        self.where, self.result, self.kind = where, result, result.kind
        self.path = sample_log(result.run.path, result.task)
        self.hashes: list[bytes] = []
        self.answers: list[bytes] = []
        self.sources: set[int] = set()
        """Docs whose images other docs were asked on."""
        self._views: dict[int, tuple[View, int]] = {}
        """Views that were checked, by ``id()``, each with its number in ``_places``; docs share one object for equal views."""
        self._places: dict[tuple[Any, ...], int] = {}
        self._checked: set[tuple[Any, ...]] = set()
        """Of docs whose best views were checked, what that goes by: many docs have it alike."""
        known = samples.checked(result) if stored and result.pipelines == 1 else None
        self.run = TaskRun(result, self._records(result.pipelines) if known is None else self._of_table(known))
        self.unchecked = check_digest(result, self.path, self.hashes) if known is None else []
        self.unsealed = unsealed_of(result, self.answers if known is None else None)
        exchanged, named = (
            any(map(told, self.run.records))
            for told in (lambda one: one.exchanged is not None, lambda one: one.answer.gold_at)
        )
        check_version(result, 3 if exchanged else 2 if named else 0, where)

    def _of_table(self, records: list[Record]) -> list[Record]:
        """Check each record of the Parquet file and the set of their docs; return the records."""
        for record in records:
            self._check_record(record, None)
        self._check_docs([record.doc_id for record in records])
        return records

    def _check_docs(self, doc_ids: Sequence[int]) -> None:
        """Refuse a log with missing docs, or with docs outside the harness's count."""
        # Tasks with boxes skip docs without boxes, so gaps in their numbers are no sign of a missing rank.
        if not self.kind.regions and (gap := missing_rank(list(doc_ids))):
            raise RecordError(f"{self.path}: {gap}; a rank's part is missing")
        run = self.result.run
        counts, first = run.counted(self.result.task), run.offset
        # Imported rows keep the numbers of their table, which need not begin at 0.
        numbered = run.adapter != IMPORTED
        if numbered and counts and doc_ids and not first <= min(doc_ids) <= max(doc_ids) < first + counts.effective:
            said = f"docs {min(doc_ids)} to {max(doc_ids)} have a record, but the harness asked {counts.effective} from doc {first} on"
            raise RecordError(f"{self.path}: {said}; {CHANGED}")
        if numbered and counts and (all_docs := self._least_docs()) > counts.original:
            said = (
                f"the records tell of {all_docs} docs or more, but the harness's count is {counts.original} (n-samples)"
            )
            raise RecordError(f"{self.path}: {said}; {CHANGED}")

    def _least_docs(self) -> int:
        """Return the least number of docs of the benchmark, as file and log show.

        A wrong image may come from any doc of the benchmark, also from one that was not asked. So its doc id bounds the
        number from below.
        """
        return max(self.result.all_docs or 0, 1 + max(self.sources, default=-1))

    def _records(self, pipelines: int) -> list[Record]:
        """Return the records of this filter, each checked alone; check the number of lines of the log."""
        times, out = Counter[int](), []
        # The lines of all filters are counted: a lost line of any filter shows a damaged log.
        for line in read_lines(self.path, lean=True):
            record = line.record
            self._check_record(record, line.doc_id)
            times[record.doc_id] += 1
            # A log has a line of each filter for each doc, in the order of the filters.
            if times[record.doc_id] == self.result.place + 1:
                self.hashes.append(hashed_text(bytes(line.patch)))
                self.answers.append(of_line(record.doc_id, line.input, line.filtered_resps, line.target))
                out.append(record)
        docs = self.result.docs
        if times.total() != docs * pipelines:
            raise RecordError(
                f"{self.path}: {times.total()} lines, but the run scored {docs * pipelines}; the file is not whole, or of another run"
            )
        if wrong := [doc for doc, count in times.items() if count != pipelines]:
            said = f"doc {wrong[0]} has {times[wrong[0]]} lines, but the task has {pipelines} filter{'s' * (pipelines > 1)}"
            raise RecordError(f"{self.path}: {said}; each doc has one line per filter: two runs in one file?")
        self._check_docs(list(times))
        return out

    def _check_record(self, record: Record, doc_id: Any) -> None:
        """Check a record's task, kind, grids, views, and best views."""
        if record.base != self.result.base:
            said = f"records of {clean(record.base)}, but {self.result.task} asks {self.result.base}"
            raise RecordError(f"{self.path}: {said}; the file is of another run")
        where = f"{self.path}: doc {record.doc_id}"
        if doc_id is not None and doc_id != record.doc_id:
            raise refuse(where, "doc_id", record.doc_id, doc_id, "its line")
        check_same(where, "task", record.task, self.result.task, "the results file")
        check_same(where, "kind", record.kind, self.kind.name, "the results file")
        check_same(where, "grids", record.grids, self.result.grids, "the results file")
        self.sources |= {record.wrong_image.source} if record.wrong_image else set()
        metric = self.result.metric
        for view in (*record.views, *record.wrong_views):
            # Docs share the objects of equal views (``_views``), so most views were checked with an earlier doc.
            if id(view) not in self._views:
                self._check_view(view, metric, where)
        alike = (
            *(self._views[id(view)][1] for view in record.views),
            *(tuple(record.best.items()), tuple(record.excluded), record.answer.options),
        )
        # With ``asked``, what is right also depends on the doc's plan, so such a doc is always checked.
        if record.asked is None and alike in self._checked:
            return
        if self.kind.turns:
            self._check_orders(record, where)
        for key in self.kind.sets(self.result.grids):
            self._check_set(record, key, metric, where)
            if self.kind.shifted and str(key) not in record.excluded:
                there = [(one.kind, one.row, one.col) for one in record.views if one.kind == "window" and one.n == key]
                whole = [(one.kind, one.row, one.col) for one in between(int(key))]
                if there != whole:
                    raise refuse(where, f"windows of grid {key}", len(there), len(whole), "the grid")
        if record.asked is None:
            self._checked.add(alike)

    def _check_view(self, view: View, metric: str, where: str) -> None:
        """Check a view's scores against the view's items, and store the view with a number for its place and score."""
        for name, score in view.scores.items():
            item = view.items.get(name)
            if isinstance(item, (int, float)) and not same(scalar(item), score):
                raise refuse(where, f"the score of a view ({name})", score, scalar(item), "its item")
        of = (view.kind, view.n, view.row, view.col, view.relevant, view.turn, view.gold_at, view.scores.get(metric))
        self._views[id(view)] = view, self._places.setdefault(of, len(self._places))

    def _check_set(self, record: Record, key: Key, metric: str, where: str) -> None:
        """Check the cells (or boxes) of a doc, and the kept view among them."""
        # A doc asked in every order counts with its worst order, so the best cell is chosen among worst orders.
        if self.kind.every_order:
            record = in_worst_order(record, metric, self.result.better(metric))
        views = record.views
        places = [i for i, view in enumerate(views) if in_set(view, key)]
        kept = record.best.get(str(key))
        if str(key) in record.excluded:
            if kept is not None:
                raise refuse(where, f"best {key}", kept, None, "being excluded")
            return
        if isinstance(key, int):
            self._check_cells(record, key, [views[i].cell or 0 for i in places], where)
        if kept is not None and kept not in places:
            raise refuse(where, f"best {key}", kept, "one of its own views", "the set")
        own = best([views[i].scores.get(metric) for i in places], self.result.better(metric) == self.kind.keeps_best)
        if own is not None and kept != places[own]:
            raise refuse(where, f"best {key}", kept, places[own], "the scores of its views")

    def _check_orders(self, record: Record, where: str) -> None:
        """Check the orders of each view: as many as the doc has options, each place of the gold once.

        A doc whose options cannot be moved has one view.
        """
        of_views: dict[Any, list[tuple[int, int]]] = {}
        for view in record.views:
            of_views.setdefault((view.n, view.cell), []).append((view.turn or 0, view.gold_at or 0))
        options = 0 if TURNS in record.excluded else record.answer.options
        for (n, cell), own in of_views.items():
            golds = sorted(gold for _, gold in own)
            if [turn for turn, _ in sorted(own)] != list(range(max(1, options))) or (
                options and golds != list(range(1, options + 1))
            ):
                told = "the full image" if cell is None else f"cell {cell} of grid {n}"
                raise refuse(where, f"orders of {told}", len(own), max(1, options), "the number of its options")

    def _check_cells(self, record: Record, n: int, cells: Sequence[int], where: str) -> None:
        """Check the cells of a grid: all, or as many as the doc's record counts as asked."""
        asked, whole = record.asked, list(range(1, self.kind.cells(n) + 1))
        if asked is None or asked.block == 0:
            if cells != whole:
                raise refuse(where, f"cells of grid {n}", len(cells), len(whole), "the grid")
            return
        if cells != sorted(set(cells) & set(whole)) or bool(cells) != (asked.steps == 2):
            raise refuse(
                where, f"cells of grid {n}", len(cells), "1 or more" if asked.steps == 2 else 0, "how the doc was asked"
            )
        every = 1 + sum(map(self.kind.cells, record.grids))
        if len(record.views) * record.is_asked + asked.unasked != every:
            raise refuse(
                where,
                "views that were not asked",
                asked.unasked,
                every - len(record.views) * record.is_asked,
                "the grids",
            )


def missing_rank(ids: Sequence[int]) -> str:
    """Name the docs missing in regular steps, as after the loss of a rank's part; else empty.

    >>> missing_rank([0, 2, 4, 6, 8, 10])
    '6 docs, of every 2 from doc 0 on only one'
    >>> missing_rank(list(range(10))), missing_rank([0, 1, 5, 9])
    ('', '')
    """
    if len(ids) < DECLARED:
        return ""
    first, span = min(ids), max(ids) - min(ids) + 1
    there = set(ids)
    if len(there) == span:
        return ""
    for ranks in range(2, min(64, len(ids)) + 1):
        kept = {doc % ranks for doc in there}
        if len(kept) < ranks and len(there) == sum(
            len(range(first + (own - first) % ranks, first + span, ranks)) for own in kept
        ):
            many = "one" if len(kept) == 1 else str(len(kept))
            return f"{len(there)} docs, of every {ranks} from doc {first} on only {many}"
    return ""
