"""Entries, comparable groups of them, and who stands where in each.

Pure: from the runs' results files alone, nothing is computed anew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median_low
from typing import Any

from lmms_patch.ask.kinds import KINDS, Kind, Words
from lmms_patch.ask.references import digest
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.present.ranking import BY, PRIMARY, By, Place, badness, goes_by_steady, places
from lmms_patch.present.report.points import listed
from lmms_patch.runs import reading
from lmms_patch.runs import run as runs
from lmms_patch.runs.numbers import Grid
from lmms_patch.runs.run import Result, Run
from lmms_patch.stats.gate import Gate
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import clean

Identity = tuple[str, str, str]
"""What makes two runs runs of one model: ``Run.identity``."""
INDICES = ("index", "trci")
"""The kinds of groups that are ranked by an index: that of cells (rci and pcri are one), and that of segments."""
NEEDED = ("benchmark", "kind", "metric", "filter")
"""Without these a number is another number: they cannot be ignored."""
TOLD = runs.RECORDED
"""A run that does not say these leaves them unknown. For the others, nothing said means nothing set."""
ONLY_FULL = "Ranked by FIP: nothing but full images was asked, so there is no index"


def date_order(date: str) -> str:
    """Return a date's digits, padded, as a text for sorting by time.

    >>> date_order("20260102_030405") < date_order("2026-01-03T00-00-00.123")
    True
    """
    return re.sub(r"\D", "", date)[:20].ljust(20, "0")


def day(date: str) -> str:
    """Return the day of a run as YYYY-MM-DD; a date without a recognisable day unchanged.

    >>> day("20260102_030405"), day("2026-01-03T00-00-00.123"), day("once")
    ('2026-01-02', '2026-01-03', 'once')
    """
    match = re.match(r"(\d{4})-?(\d\d)-?(\d\d)(?!\d)", date)
    return "-".join(match.groups()) if match else clean(date)


@dataclass(frozen=True)
class Entry:
    """The newest result of a model on a benchmark at a grid, under the settings of a group.

    Attributes:
        model: the model's name as it is shown.
        result: the result; it may have other grids too.
        grid: grid size; 0 for results without one.
        settings: the result's fingerprint, with the images of a whole run where the run itself left docs out.
        runs: how many runs there are of it, this one included.
    """

    model: str
    result: Result
    grid: int
    settings: Mapping[str, Any]
    runs: int

    @property
    def identity(self) -> Identity:
        """The model."""
        return self.result.run.identity

    @property
    def kind(self) -> Kind:
        """The kind of its task."""
        return self.result.kind

    @property
    def date(self) -> str:
        """When the run was made."""
        return self.result.run.date

    @cached_property
    def id(self) -> str:
        """The digest of its settings, 16 hex digits."""
        return digest(sorted(self.settings.items()))

    @property
    def gate(self) -> Gate | None:
        """The gate of the index; None for kinds without an index."""
        return self.result.analysis.gate if self.result.analysis and self.kind.index else None

    @property
    def refused(self) -> bool:
        """Whether the gate refuses its index."""
        return self.gate is not None and self.gate.valid is False

    @property
    def cells(self) -> Grid | None:
        """What stands beside the index of its grid; None where there is none."""
        return self.result.grid(self.grid) if self.kind.index else None

    @property
    def mark(self) -> str:
        """How index and steady index disagree; empty where they agree."""
        return reading.mark_of(self.cells)

    @property
    def sampled(self) -> bool:
        """Whether its numbers are estimated from a part of the docs."""
        return reading.is_sampled(self.result.analysis)

    def number(self, name: str) -> Estimate:
        """Return a number by name; to ``index``, ``steady``, ``mpp`` and ``gap`` the entry's grid is added, as in ``mpp3``.

        Returns:
            An estimate without value, with the reason, where there is none; an index with the words that stand beside
            it.
        """
        index, n = self.kind.index, self.grid
        names = {"index": f"{index}{n}", "steady": f"{index}{n}_steady", "mpp": f"mpp{n}", "gap": f"gap{n}"}
        estimate = self.result.measures.get(names.get(name, name))
        return Estimate.nothing(self.result.docs, "nothing was scored") if estimate is None else estimate

    @property
    def score(self) -> Estimate:
        """The main number of a result without an index; for a curve, the score at the entry's size."""
        kind = self.kind
        own = f"{kind.name}{self.grid}" if kind.curve else "rotate_every" if kind.turns else "score"
        return self.number("tst" if kind.folds else own)

    @property
    def used(self) -> int | None:
        """How many docs MPP, index and gap of its grid rest on; None where there is no MPP."""
        best = self.number("mpp")
        return None if best.value is None else best.n

    @property
    def limit(self) -> str:
        """The run's ``--limit`` in words; ``all`` for a run without limit."""
        return str(self.settings.get("limit") or "unknown")


@dataclass(frozen=True)
class Group:
    """Comparable entries: of the same benchmark, kind, grid and settings.

    Attributes:
        kind: one of ``INDICES``, or a kind without an index (``tst``, ``blind``, ...).
        base, grid: which benchmark; which grid, 0 for none. A group of ``INDICES`` without a grid is of full images alone.
        number: from 1, among the groups of this benchmark, kind and grid: whole runs (no limit) first, then by number
            of docs, then of models, then the task's primary filter pipeline, then the newest run, then the filter's
            name.
        ranked: entries with their places, best first.
        unranked: entries without a place, with the reason.
        fingerprint: what they share; ignored keys left out.
        id: its digest.
        differs: in what it differs from the first group, in words.
        unknown: settings that its runs do not say.
        merged: ignored settings in which its runs do differ.
        by: what it is ranked by; None for a kind without ranks.
        why: why it is ranked by that, in words; empty where that was asked for.
    """

    kind: str
    base: str
    grid: int
    number: int
    ranked: tuple[tuple[Place, Entry], ...]
    unranked: tuple[tuple[Entry, str], ...]
    fingerprint: Mapping[str, Any]
    id: str
    differs: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    by: By | None = None
    why: str = ""

    @property
    def has_index(self) -> bool:
        """Whether its entries have an index."""
        return self.kind in INDICES and bool(self.grid)

    @property
    def words(self) -> Words:
        """What the parts of its images or clips are called."""
        return self.entries[0].kind.words

    @property
    def index(self) -> str:
        """What its index is called (``most_called``)."""
        return most_called(self.entries)

    @property
    def headline(self) -> str:
        """The index behind colours and bands, as a name of ``Entry.number``: ``steady`` where ranks use ``steady``."""
        return "steady" if self.by is not None and self.by.key == "steady" else "index"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of them, in the order in which they are listed."""
        return (*(entry for _, entry in self.ranked), *(entry for entry, _ in self.unranked))

    @property
    def limits(self) -> tuple[str, ...]:
        """The limits of its runs; ``("all",)`` where all are whole."""
        return tuple(sorted({entry.limit for entry in self.entries}))


@dataclass(frozen=True)
class Board:
    """All groups, by kind, benchmark, grid and number.

    Attributes:
        groups: see there.
        by: what they are ranked by.
        ignored: settings in which runs of one group may differ.
        models: identity -> name as it is shown.
        runs: the runs with results behind it, oldest first.
    """

    groups: tuple[Group, ...]
    by: By
    ignored: tuple[str, ...]
    models: Mapping[Identity, str]
    runs: tuple[Run, ...]

    def of(self, kind: str) -> tuple[Group, ...]:
        """Return the groups of a kind."""
        return tuple(group for group in self.groups if group.kind == kind)

    def crowded(self) -> set[tuple[str, str, int]]:
        """Return the (kind, benchmark, grid) triples with several groups."""
        return {(group.kind, group.base, group.grid) for group in self.groups if group.number > 1}


def board(found: Sequence[Run], by: By, ignore: Collection[str] = ()) -> Board:
    """Return the board of some runs; copies of a results file count as a single run.

    Args:
        found: the runs, the first of copies first.
        by: what to rank by.
        ignore: keys of ``Result.fingerprint`` in which runs of one group may differ.

    Raises:
        RecordError: no wrapped task in any run, or an unknown key to ignore.
        OptionError: a key that cannot be ignored.
    """
    once = {
        tuple((result.origin, *result.fingerprint.values()) for result in run.results): run
        for run in reversed(found)
        if run.results
    }
    if not once:
        raise RecordError("no wrapped task in these runs; ask lmms-eval for one, such as --tasks gqa_pcri")
    kept = sorted(once.values(), key=lambda run: (date_order(run.date), str(run.path)))
    settings = dict.fromkeys(key for run in kept for result in run.results for key in result.fingerprint)
    runs.check_keys(ignore, settings)
    if wrong := [key for key in ignore if key in NEEDED]:
        allowed = ", ".join(key for key in settings if key not in NEEDED)
        raise OptionError(f"{wrong[0]!r} cannot be ignored: it says what the number is; allowed: {allowed}")
    names = runs.labels(kept)
    by_settings: dict[tuple[str, str, int], dict[str, list[Entry]]] = {}
    for (kind, base, grid, group), entries in _latest(kept, names, set(ignore)).items():
        by_settings.setdefault((kind, base, grid), {})[group] = entries
    groups = [
        group
        for place in sorted(by_settings, key=_order)
        for group in _groups(place, by_settings[place], by, tuple(ignore))
    ]
    return Board(tuple(groups), by, tuple(ignore), names, tuple(kept))


def _order(place: tuple[str, str, int]) -> tuple[int, str, int]:
    kinds = ["index", *KINDS]
    return kinds.index(place[0]), place[1], place[2]


def most_called(entries: Iterable[Entry]) -> str:
    """Return the more frequent name of the entries' index, ``RCI`` or ``PCRI``, as both name the same number."""
    names = Counter(str(entry.kind.index) for entry in entries)
    return max(sorted(names), key=lambda name: names[name], default="pcri").upper()


def _latest(
    found: Sequence[Run], names: Mapping[Identity, str], ignore: set[str]
) -> dict[tuple[str, str, int, str], list[Entry]]:
    """Return the newest result of each model, by kind, benchmark, grid and settings.

    A whole run before one that left docs out.
    """
    newest: dict[tuple[Any, ...], Entry] = {}
    count: Counter[tuple[Any, ...]] = Counter()
    for result, settings in _with_images(found):
        shared = digest(sorted((key, value) for key, value in settings.items() if key not in ignore))
        for grid in result.grids or (0,):
            key = (result.kind.way, result.base, grid, shared, result.run.identity)
            count[key] += 1
            entry = Entry(names[result.run.identity], result, grid, settings, count[key])
            # A newer run on a part of the docs must not replace a run on all of them.
            if entry.sampled and key in newest and not newest[key].sampled:
                entry = newest[key]
            newest[key] = replace(entry, runs=count[key])
    out: dict[tuple[str, str, int, str], list[Entry]] = {}
    for key, entry in newest.items():
        out.setdefault(key[:4], []).append(entry)
    return out


_OF_IMAGES = ("image sizes", "images")


def _with_images(found: Sequence[Run]) -> Iterator[tuple[Result, Mapping[str, Any]]]:
    """Yield the results with their fingerprints; a sampled run has the image digests of the matching whole run.

    Why: a run that left docs out did not look at their images, and would stand apart from the whole runs of the same
    benchmark.
    """

    def others(result: Result) -> str:
        return digest(sorted((key, value) for key, value in result.fingerprint.items() if key not in _OF_IMAGES))

    results = [result for run in found for result in run.results]
    known: dict[str, set[tuple[Any, ...]]] = {}
    for result in results:
        if not reading.is_sampled(result.analysis):
            known.setdefault(others(result), set()).add(tuple(result.fingerprint.get(key) for key in _OF_IMAGES))
    for result in results:
        # With several whole runs that differ in their images, nobody can say which the sampled run saw.
        whole = known.get(others(result), set()) if reading.is_sampled(result.analysis) else set()
        images = dict(zip(_OF_IMAGES, next(iter(whole)), strict=True)) if len(whole) == 1 else {}
        yield result, {**result.fingerprint, **images}


def _groups(
    place: tuple[str, str, int], by_settings: Mapping[str, list[Entry]], by: By, ignore: tuple[str, ...]
) -> list[Group]:
    """Return the groups of a kind, benchmark and grid; the first is the board's reference.

    Entries in a group share all settings.
    """
    # Python's sort is stable: the last key sorts first, the earlier keys break its ties.
    ordered = sorted(by_settings.items(), key=lambda one: (one[1][0].result.filter, one[0]))
    ordered.sort(key=lambda one: max(date_order(entry.date) for entry in one[1]), reverse=True)
    ordered.sort(key=lambda one: _standing(one[1]))
    reference = ordered[0][1][0].settings
    out = []
    for number, (identifier, entries) in enumerate(ordered, 1):
        given = entries[0].settings
        how, why = _ranked_by(place[0], place[2], entries, by)
        ranked, unranked = (
            _ranked(entries, how) if how else ((), tuple((entry, "") for entry in sorted(entries, key=_label)))
        )
        fingerprint = {key: value for key, value in given.items() if key not in ignore}
        unknown = tuple(key for key in TOLD if key not in ignore and fingerprint.get(key) is None)
        differs = (
            () if number == 1 else (*runs.differences(reference, given, ignore), *_unsaid(reference, given, ignore))
        )
        out.append(
            Group(
                *place,
                number,
                ranked,
                unranked,
                fingerprint,
                identifier,
                differs,
                unknown,
                _merged(entries, ignore),
                how,
                why,
            )
        )
    return out


def _ranked_by(kind: str, grid: int, entries: Sequence[Entry], by: By) -> tuple[By | None, str]:
    """Return what a group is ranked by, or None, and why, in words."""
    if kind not in INDICES:
        return {"magic": PRIMARY}.get(kind), ""
    return choose(entries, by) if grid else (BY["fip"], ONLY_FULL)


def choose(entries: Sequence[Entry], by: By) -> tuple[By, str]:
    """Return what a group of indices is ranked by, and why, in words.

    Asked for the index, it is the steady one where docs of every entry that could have a place were asked again: then no
    rank is luck.
    """
    placed = [entry for entry in entries if not why_not(entry, by)]
    if by.key != "pcri" or not placed:
        return by, ""
    if goes_by_steady(steady(placed)):
        return BY["steady"], "Ranked by the steady index: docs were asked again in every run"
    without = sorted(entry.model for entry in placed if entry.number("steady").value is None)
    return by, f"Ranked by the index of one pass: there is no steady one of {listed(without, 3)}"


def steady(entries: Iterable[Entry]) -> list[Estimate | None]:
    """Return of each entry whose index may be read its steady index."""
    return [entry.number("steady") for entry in entries if not why_not(entry, BY["pcri"])]


def _standing(entries: Sequence[Entry]) -> tuple[bool, int, int, int]:
    """Return what decides first which group is the first: a later try with a limit must never become what a board is known by.

    Where the limit or the number of docs is ignored, runs of a group differ in it: then what more than half of them
    have, and the median.
    """
    whole = 2 * sum(entry.limit == "all" for entry in entries) > len(entries)
    return (
        not whole,
        -median_low(entry.result.docs for entry in entries),
        -len(entries),
        min(entry.result.place for entry in entries),
    )


def _unsaid(reference: Mapping[str, Any], given: Mapping[str, Any], ignore: Collection[str]) -> list[str]:
    """Return the settings missing in exactly a single fingerprint."""
    out = []
    for key in reference:
        if key not in ignore and (reference.get(key) is None) != (given.get(key) is None):
            nothing = "unknown" if key in TOLD else "none"
            out.append(f"{key} ({nothing} {'there' if reference.get(key) is None else 'here'})")
    return out


def _merged(entries: Sequence[Entry], ignore: Collection[str]) -> tuple[str, ...]:
    """Return the ignored settings in which the entries of a group differ, each with its values where these are short."""
    out = []
    for key in ignore:
        values = sorted(
            {"unknown" if (value := entry.settings.get(key)) is None else clean(value) for entry in entries}
        )
        if len(values) > 1:
            out.append(
                f"{key} ({', '.join(values)})" if len(", ".join(values)) < 60 else f"{key} ({len(values)} different)"
            )
    return tuple(out)


def _ranked(entries: Sequence[Entry], by: By) -> tuple[tuple[tuple[Place, Entry], ...], tuple[tuple[Entry, str], ...]]:
    """Return the entries with their places, the best first, and those without a place, each with the reason."""
    placed: list[tuple[float, Entry, tuple[float, float]]] = []
    unranked = []
    higher = all(entry.result.higher_is_better for entry in entries)
    for entry in sorted(entries, key=_label):
        reason = why_not(entry, by)
        if reason:
            unranked.append((entry, reason))
        else:
            value, ends = badness(entry.number(by.name(str(entry.kind.index), entry.grid)), by, higher)
            placed.append((value, entry, ends))
    placed.sort(key=lambda one: one[0])
    spans = places([ends for _, _, ends in placed])
    return tuple((place, entry) for place, (_, entry, _) in zip(spans, placed, strict=True)), tuple(unranked)


def why_not(entry: Entry, by: By) -> str:
    """Return the reason why an entry has no rank; empty for an entry with a rank."""
    if by.gated and entry.gate is not None and entry.refused:
        return entry.gate.reason or "near chance"
    number = entry.number(by.key if by.steady else by.name(str(entry.kind.index), entry.grid))
    if number.value is not None:
        return ""
    return number.reason or (entry.cells.reason if entry.cells else "") or "not defined"


def _label(entry: Entry) -> tuple[str, str]:
    return entry.model.lower(), entry.model
