"""Entries, comparable groups of them, and who stands where in each.

Pure: from the store alone, nothing is computed anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low
from typing import Any

from msgspec.structs import replace

from lmms_patch.ask.kinds import KINDS, Words
from lmms_patch.ask.references import digest
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.present.board.memory import NO_NOTES, BoardNotes, BoardResult, BoardRun, Identity, date_order
from lmms_patch.present.board.store import Store
from lmms_patch.present.ranking import BY, PRIMARY, By, Place, badness, goes_by_corrected, places
from lmms_patch.present.report.points import listed
from lmms_patch.runs import reading
from lmms_patch.runs import run as runs
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import clean

INDICES = ("index", "crci", "trci")
"""The kinds of groups that are ranked by an index: that of cells (rci and pcri are one), that of cells in every order, and that of segments."""
NEEDED = ("benchmark", "kind", "metric", "filter")
"""Without these a number is another number: they cannot be ignored."""
TOLD = runs.RECORDED
"""A run that does not say these leaves them unknown. For the others, nothing said means nothing set."""


@dataclass(frozen=True)
class Entry:
    """The newest result of a model on a benchmark at a grid, under the settings of a group.

    Attributes:
        model: the model's name as it is shown.
        identity: the model.
        grid: grid size; 0 for kinds without one.
        result: the result; it may have other grids too.
        date: of the run.
        runs: how many runs there are of it, this one included.
        id: digest of the settings fingerprint (``Result.fingerprint``), 16 hex digits.
        run: SHA-256 of the run's results file.
        pipeline: the place of its filter pipeline among those of the task, from 0, the task's primary one.
    """

    model: str
    identity: Identity
    grid: int
    result: BoardResult
    date: str
    runs: int
    id: str
    run: str
    pipeline: int = 0

    def number(self, name: str) -> Estimate:
        """Return a number of the entry; ``index``, ``adj``, ``mpp``, ``gap`` mean the numbers at the entry's grid.

        Returns:
            An estimate without value, with the reason, where there is none; an index with the words that stand beside
            it.
        """
        index, n = self.result.index, self.grid
        names = {"index": f"{index}{n}", "adj": f"{index}{n}_adj", "mpp": f"mpp{n}", "gap": f"gap{n}"}
        whole = names.get(name, name)
        estimate = self.result.numbers.get(whole)
        if estimate is None:
            return Estimate.nothing(self.result.docs, "nothing was scored")
        return self.result.noted(n).get(whole, estimate) if name in ("index", "adj") else estimate

    @property
    def score(self) -> Estimate:
        """The main number of a result without an index; for a curve, the score at the entry's size."""
        asked = self.result.asked
        own = f"{self.result.kind}{self.grid}" if asked.curve else "rotate_every" if asked.turns else "score"
        return self.number("tst" if asked.folds else own)

    @property
    def notes(self) -> BoardNotes:
        """What stands beside the index of its grid."""
        return self.result.notes.get(self.grid, NO_NOTES)

    @property
    def mark(self) -> str:
        """The contradiction between index and luck-corrected index at this grid; empty where they agree."""
        return self.result.mark(self.grid)

    @property
    def used(self) -> int | None:
        """How many docs MPP, index and gap of its grid rest on; None where there is no MPP."""
        best = self.number("mpp")
        return None if best.value is None else best.n

    @property
    def limit(self) -> str:
        """The run's ``--limit`` in words; ``all`` for a run without limit."""
        return str(self.result.fingerprint.get("limit") or "unknown")


@dataclass(frozen=True)
class Group:
    """Comparable entries: of the same benchmark, kind, grid and settings.

    Attributes:
        kind: one of ``INDICES``, or a kind without an index (``tst``, ``blind``, ...).
        base, grid: which benchmark; which grid, 0 for none.
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
        return self.kind in INDICES

    @property
    def words(self) -> Words:
        """What the parts of its images or clips are called."""
        return self.entries[0].result.asked.words

    @property
    def index(self) -> str:
        """What its index is called (``most_called``)."""
        return most_called(self.entries)

    @property
    def headline(self) -> str:
        """The index behind colours and bands, as a name of ``Entry.number``: ``adj`` where ranks use ``adj``."""
        return "adj" if self.by is not None and self.by.key == "adj" else "index"

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
        runs: how many runs with results stand behind it.
        remembered: of how many of them the numbers were not compared with their files.
    """

    groups: tuple[Group, ...]
    by: By
    ignored: tuple[str, ...]
    models: Mapping[Identity, str]
    runs: int
    remembered: int = 0

    def of(self, kind: str) -> tuple[Group, ...]:
        """Return the groups of a kind."""
        return tuple(group for group in self.groups if group.kind == kind)

    def crowded(self) -> set[tuple[str, str, int]]:
        """Return the (kind, benchmark, grid) triples with several groups."""
        return {(group.kind, group.base, group.grid) for group in self.groups if group.number > 1}


def board(store: Store, by: By, ignore: Collection[str] = ()) -> Board:
    """Return the board of all stored runs.

    Args:
        store: the runs.
        by: what to rank by.
        ignore: keys of ``Result.fingerprint`` in which runs of one group may differ.

    Raises:
        RecordError: no wrapped task in any run, or an unknown key to ignore.
        OptionError: a key that cannot be ignored.
    """
    first = next((result for run in store.runs for result in run.results), None)
    if first is None:
        raise RecordError("no wrapped task in these runs; ask lmms-eval for one, such as --tasks gqa_pcri")
    settings = dict.fromkeys(key for run in store.runs for result in run.results for key in result.fingerprint)
    runs.check_keys(ignore, settings)
    if wrong := [key for key in ignore if key in NEEDED]:
        allowed = ", ".join(key for key in settings if key not in NEEDED)
        raise OptionError(f"{wrong[0]!r} cannot be ignored: it says what the number is; allowed: {allowed}")
    names = _names(store.runs)
    by_settings: dict[tuple[str, str, int], dict[str, list[Entry]]] = {}
    for key, entries in _latest(store.runs, names, set(ignore)).items():
        kind, base, grid, group = key
        by_settings.setdefault((kind, base, grid), {})[group] = entries
    groups = [
        group
        for place in sorted(by_settings, key=_order)
        for group in _groups(place, by_settings[place], by, tuple(ignore))
    ]
    with_results = [run for run in store.runs if run.results]
    return Board(
        tuple(groups),
        by,
        tuple(ignore),
        names,
        len(with_results),
        sum(run.sha256 in store.remembered for run in with_results),
    )


def _order(place: tuple[str, str, int]) -> tuple[int, str, int]:
    kinds = ["index", *KINDS]
    return kinds.index(place[0]), place[1], place[2]


def _names(stored: Iterable[BoardRun]) -> dict[Identity, str]:
    return runs.labels(runs.Run(Path(), *run.identity) for run in stored if run.results)


def most_called(entries: Iterable[Entry]) -> str:
    """Return the more frequent name of the entries' index, ``RCI`` or ``PCRI``, as both name the same number."""
    names = Counter(str(entry.result.index) for entry in entries)
    return max(sorted(names), key=lambda name: names[name], default="pcri").upper()


def kind_of(result: BoardResult) -> str:
    """Return the name shared by results allowed in the same table (``Kind.way``)."""
    return result.asked.way


def _latest(
    stored: Sequence[BoardRun], names: Mapping[Identity, str], ignore: set[str]
) -> dict[tuple[str, str, int, str], list[Entry]]:
    """Return the newest result of each model, by kind, benchmark, grid and settings.

    A whole run before one that left docs out.
    """
    stored = _with_images(stored)
    newest: dict[tuple[Any, ...], tuple[BoardRun, BoardResult, str, int]] = {}
    count: Counter[tuple[Any, ...]] = Counter()
    for run in sorted(stored, key=lambda run: run.order):
        # A run lists a task's filter pipelines in their order.
        pipelines: Counter[str] = Counter()
        for result in run.results:
            place = pipelines[result.task]
            pipelines[result.task] += 1
            whole = digest(sorted(result.fingerprint.items()))
            shared = digest(sorted((key, value) for key, value in result.fingerprint.items() if key not in ignore))
            for grid in result.grids or (0,):
                key = (kind_of(result), result.base, grid, shared, run.identity)
                count[key] += 1
                # A newer run on a part of the docs must not replace a run on all of them.
                if not (result.sampled and key in newest and not newest[key][1].sampled):
                    newest[key] = run, result, whole, place
    out: dict[tuple[str, str, int, str], list[Entry]] = {}
    for key, (run, result, whole, place) in newest.items():
        entry = Entry(names[run.identity], run.identity, key[2], result, run.date, count[key], whole, run.sha256, place)
        out.setdefault(key[:4], []).append(entry)
    return out


_OF_IMAGES = ("image sizes", "images")


def _with_images(stored: Sequence[BoardRun]) -> list[BoardRun]:
    """Return the runs, with missing image digests of sampled runs filled in from matching whole runs.

    Why: a run that left docs out did not look at their images, and would stand apart from the whole runs of the same
    benchmark.
    """

    def others(result: BoardResult) -> str:
        return digest(sorted((key, value) for key, value in result.fingerprint.items() if key not in _OF_IMAGES))

    known: dict[str, set[tuple[Any, ...]]] = {}
    for run in stored:
        for result in run.results:
            if not result.sampled:
                known.setdefault(others(result), set()).add(tuple(result.fingerprint.get(key) for key in _OF_IMAGES))

    def filled(result: BoardResult) -> BoardResult:
        # With several whole runs that differ in their images, nobody can say which the sampled run saw.
        found = known.get(others(result), set()) if result.sampled else set()
        images = dict(zip(_OF_IMAGES, next(iter(found)), strict=True)) if len(found) == 1 else {}
        return replace(result, fingerprint={**result.fingerprint, **images}) if images else result

    return [replace(run, results=list(map(filled, run.results))) for run in stored]


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
    reference = ordered[0][1][0].result.fingerprint
    out = []
    for number, (identifier, entries) in enumerate(ordered, 1):
        given = entries[0].result.fingerprint
        how, why = choose(entries, by) if place[0] in INDICES else ({"magic": PRIMARY}.get(place[0]), "")
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


def choose(entries: Sequence[Entry], by: By) -> tuple[By, str]:
    """Return what a group of indices is ranked by, and why, in words.

    Asked for the index, it is the corrected one where every entry that could have a place has a measured null: then no
    rank is luck.
    """
    placed = [entry for entry in entries if not why_not(entry, by)]
    if by.key != "pcri" or not placed:
        return by, ""
    if goes_by_corrected(corrected(placed)):
        return BY["adj"], "Ranked by the luck-corrected index: luck is measured on wrong images in every run"
    if without := sorted(entry.model for entry in placed if entry.notes.null != reading.MEASURED):
        return by, f"Ranked by the index, not luck-corrected: luck is not measured in {listed(without, 3)}"
    return (
        by,
        f"Ranked by the index, not luck-corrected: there is no luck-corrected one ({why_not(placed[0], BY['adj']).partition(':')[0]})",
    )


def corrected(entries: Iterable[Entry]) -> list[Estimate | None]:
    """Return of each entry whose index may be read its luck-corrected index; None where the null was not measured."""
    return [
        entry.number("adj") if entry.notes.null == reading.MEASURED else None
        for entry in entries
        if not why_not(entry, BY["pcri"])
    ]


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
        min(entry.pipeline for entry in entries),
    )


def _unsaid(reference: Mapping[str, Any], given: Mapping[str, Any], ignore: Collection[str]) -> list[str]:
    """Return the settings missing in exactly a single one of two fingerprints."""
    out = []
    # A row of an earlier version may lack keys, so both key sets are walked.
    for key in dict.fromkeys([*reference, *given]):
        if key not in ignore and (reference.get(key) is None) != (given.get(key) is None):
            nothing = "unknown" if key in TOLD else "none"
            out.append(f"{key} ({nothing} {'there' if reference.get(key) is None else 'here'})")
    return out


def _merged(entries: Sequence[Entry], ignore: Collection[str]) -> tuple[str, ...]:
    """Return the ignored settings in which the entries of a group differ, each with its values where these are short."""
    out = []
    for key in ignore:
        values = sorted(
            {"unknown" if (value := entry.result.fingerprint.get(key)) is None else clean(value) for entry in entries}
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
    higher = all(entry.result.higher for entry in entries)
    for entry in sorted(entries, key=_label):
        reason = why_not(entry, by)
        if reason:
            unranked.append((entry, reason))
        else:
            value, ends = badness(entry.number(by.name(str(entry.result.index), entry.grid)), by, higher)
            placed.append((value, entry, ends))
    placed.sort(key=lambda one: one[0])
    spans = places([ends for _, _, ends in placed])
    return tuple((place, entry) for place, (_, entry, _) in zip(spans, placed, strict=True)), tuple(unranked)


def why_not(entry: Entry, by: By) -> str:
    """Return the reason why an entry has no rank; empty for an entry with a rank."""
    if entry.result.nonsense:
        return f"contradicts itself: {entry.result.nonsense}"
    if by.gated and entry.result.gate == 0:
        return entry.result.gate_reason or "near chance"
    number = entry.number(by.key if by.corrected else by.name(str(entry.result.index), entry.grid))
    if reading.assumed(number):
        return f"{reading.ASSUMED}: no rank rests on it; {reading.MEASURE_IT}"
    if number.value is not None:
        return ""
    return number.reason or entry.notes.reason or "not defined"


def _label(entry: Entry) -> tuple[str, str]:
    return entry.model.lower(), entry.model
