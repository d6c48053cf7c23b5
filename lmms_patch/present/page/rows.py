"""The rows of a page: a model's numbers on a benchmark at a grid, who may be ranked together, and who stands where. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

from lmms_patch.ask.kinds import Key, Kind, Words
from lmms_patch.ask.references import digest
from lmms_patch.errors import OptionError
from lmms_patch.present.ranking import BY, By, Place, badness, places
from lmms_patch.runs import catalogue, reading
from lmms_patch.runs import run as runs
from lmms_patch.runs.numbers import Analysis
from lmms_patch.runs.run import Labelled, Result, Run
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import clean

NEEDED = ("benchmark", "kind", "metric", "filter")
"""Settings without which a number is another number: they cannot be ignored."""
_IMAGES = ("image sizes", "images")
NAMED = 6
"""Models that a sentence about a group names."""


@dataclass(frozen=True)
class Part:
    """The numbers of some docs of a result: a category."""

    docs: int
    measures: Mapping[str, Estimate]
    analysis: Analysis | None = None


@dataclass(frozen=True, eq=False)
class Entry(Labelled):
    """A result on a page; its label is unique there: letters, digits and hyphens.

    Attributes:
        categories: by name; empty where the run named none, or one only.
        blind: score of the same model's blind run on the same docs, None without.
        gain: score on the full image less ``blind``, paired by doc; None where that cannot be had.
        tst: the best text-only cross-validation of the same docs, None without.
        notes: what to mind, one line each.
    """

    categories: Mapping[str, Part] = field(default_factory=dict)
    blind: Estimate | None = None
    gain: Estimate | None = None
    tst: Estimate | None = None
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """The kind of task."""
        return self.result.kind

    @property
    def words(self) -> Words:
        """What its parts are called."""
        return self.kind.words

    @property
    def gate(self) -> str:
        """What tables say of the gate; empty for a kind without an index."""
        analysis = self.result.analysis
        return reading.gate_word(analysis.gate) if analysis and self.kind.index else ""

    @property
    def refused(self) -> bool:
        """Whether the gate refuses the index."""
        analysis = self.result.analysis
        return bool(analysis and self.kind.index and analysis.gate.valid is False)


@dataclass(frozen=True)
class Row:
    """The numbers of a model on a benchmark at a grid: of a result of ours, or of a published table.

    Attributes:
        benchmark, model: as they are shown.
        kind: the kind of task.
        n: the grid of its index; None without an index.
        numbers: by the names that they have whatever the grid (``key_of``): ``score``, ``mpp``, ``index``, ``steady``.
        docs: docs that were asked; None where a published table does not say.
        type: the papers' task type; "" where it is not known.
        entry: the result; None for a published number.
        source: the published table it is from; "" for ours.
        runs: runs of it, of which the newest counts.
        group: from 1, among the groups of comparable rows of its benchmark, kind and grid.
        place: its range of ranks in the group; None without a rank.
        why: why it has no rank.
    """

    benchmark: str
    model: str
    kind: Kind
    n: int | None
    numbers: Mapping[str, Estimate]
    docs: int | None = None
    type: str = ""
    entry: Entry | None = None
    source: str = ""
    runs: int = 1
    group: int = 1
    place: Place | None = None
    why: str = ""

    @property
    def where(self) -> tuple[str, str, tuple[int, ...]]:
        """Kind, benchmark and grid: what rows of a ranking share."""
        asked = self.entry.result.grids if self.entry and not self.kind.folds else ()
        return self.kind.way, self.benchmark, tuple(asked) if self.n is None else (self.n,)

    @property
    def size(self) -> str:
        """The grid in words; "" without a grid."""
        return ", ".join(self.kind.words.size(n) for n in self.where[2])

    @property
    def index(self) -> Estimate | None:
        """The index to go by: steady where docs were asked again, else 1 − MPP / FIP; None where neither may be read."""
        known = reading.headline(self.numbers.get("index"), self.numbers.get("steady"))
        return known if known is not None and known.value is not None and not self.refused else None

    @property
    def is_steady(self) -> bool:
        """Whether ``index`` is steady."""
        return self.index is not None and self.index is self.numbers.get("steady")

    @property
    def refused(self) -> bool:
        """Whether the gate refuses its index."""
        return self.entry is not None and self.entry.refused

    @property
    def state(self) -> str:
        """Why there is no index, in a word or two."""
        return self.entry.gate if self.entry and self.refused else "not defined"

    def number(self, by: By) -> Estimate | None:
        """Return the number to rank by; None where the row has no rank."""
        one = self.numbers.get(by.key)
        return one if one is not None and one.value is not None and not (by.gated and self.refused) else None

    def lacks(self, by: By) -> str:
        """Return why the number to rank by carries no rank."""
        if by.gated and self.refused and self.entry and self.entry.result.analysis:
            return self.entry.result.analysis.gate.reason or reading.NEAR_CHANCE
        one = self.numbers.get(by.key)
        return (one.reason if one is not None else "") or "not defined"


def key_of(number: catalogue.Number, key: Key | None, n: int | None, kind: Kind) -> str:
    """Return the name of a number of the catalogue whatever the grid of the row: ``mpp3`` is ``mpp``, ``rci3_steady`` is ``steady``."""
    if n is None or key != n or number.of[0] != "sets":
        return number.named(kind, key)
    return {"raw": "index", "steady": "steady", "": number.name.format(key="", index="", kind="")}[number.words]


def numbers_of(
    measures: Mapping[str, Estimate], kind: Kind, grids: Sequence[int], n: int | None
) -> dict[str, Estimate]:
    """Return the numbers of some docs of a result for a row, by names without the grid (``key_of``)."""
    known = catalogue.keyed(kind, grids if n is None else [n])
    out = {}
    for name, one in measures.items():
        number, key = known.get(name, (None, None))
        if number is not None and number.measured:
            out[key_of(number, key, n, kind)] = one
        elif number is None and (kind.name == "magic" or name.startswith(("tst", "drop"))):
            out[name] = one
    out.setdefault("score", measures["score"])
    return {name: one for name, one in out.items() if name != "fip"}


def rows_of(entry: Entry) -> list[Row]:
    """Return the rows of a result: a row for each grid with an index, else a single row."""
    result, kind = entry.result, entry.kind
    about = result.docs, result.type, entry
    return [
        Row(result.base, entry.model, kind, n, numbers_of(result.measures, kind, result.grids, n), *about)
        for n in result.indexed or (None,)
    ]


# --- who stands where -----------------------------------------------------------------------------


def date_order(date: str) -> str:
    """Return a date's digits, padded, as a text for sorting by time."""
    return re.sub(r"\D", "", date)[:20].ljust(20, "0")


def labelled(found: Iterable[Result]) -> list[Entry]:
    """Return results as entries, with unique names of models and labels."""
    some = list(found)
    names = runs.labels(one.run for one in some)
    texts = [f"e-{names[one.run.identity]}-{one.label}" for one in some]
    stems = [re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-") for text in texts]
    seen: Counter[str] = Counter()
    out = []
    for one, stem in zip(some, stems, strict=True):
        seen[stem] += 1
        out.append(Entry(one, names[one.run.identity], stem if stems.count(stem) == 1 else f"{stem}-{seen[stem]}"))
    return out


def check_ignored(ignore: Collection[str], found: Sequence[Run]) -> None:
    """Refuse unknown settings, and settings without which a number is another number.

    Raises:
        RecordError: an unknown setting.
        OptionError: a setting that cannot be ignored.
    """
    known = dict.fromkeys(key for run in found for result in run.results for key in result.fingerprint)
    runs.check_keys(ignore, known)
    if wrong := [key for key in ignore if key in NEEDED]:
        allowed = ", ".join(key for key in known if key not in NEEDED)
        raise OptionError(f"{wrong[0]!r} cannot be ignored: it says what the number is; allowed: {allowed}")


def ranked(rows: Sequence[Row], by: By, ignore: Collection[str] = ()) -> tuple[list[Row], list[str]]:
    """Return rows with their groups and places, and what is to be said of the groups, a sentence each.

    Rows are in one group where everything but the model is the same. Of several rows of a model in a group the last
    counts, one of all docs before one that is estimated from a part. The first group of a benchmark, kind and grid is
    the one of whole runs, then of most docs, of most models, of the task's first filter, and of the newest run: so a
    later try with a limit never becomes what a benchmark is known by.
    """
    settings = _settings([row.entry for row in rows if row.entry])
    found: dict[tuple[Any, ...], dict[str, dict[Any, Row]]] = {}
    for row in rows:
        own = settings[row.entry.label] if row.entry else {}
        shared = digest(sorted((key, value) for key, value in own.items() if key not in ignore))
        by_model = found.setdefault(row.where, {}).setdefault(shared, {})
        identity = row.entry.result.run.identity if row.entry else row.model
        before = by_model.pop(identity, None)
        kept = before if before is not None and _sampled(row) and not _sampled(before) else row
        by_model[identity] = dataclasses.replace(kept, runs=1 + (before.runs if before else 0))
    out: list[Row] = []
    notes: list[str] = []
    for where in sorted(found, key=lambda one: (one[0] != "index", one)):
        groups = sorted(([*one.values()] for one in found[where].values()), key=_filter_and_date, reverse=True)
        groups.sort(key=_standing)
        fingerprints = [[settings[row.entry.label] for row in group if row.entry] for group in groups]
        for number, group in enumerate(groups, 1):
            out += _placed([dataclasses.replace(row, group=number) for row in group], by)
            if some := fingerprints[number - 1]:
                notes += _notes(group, number, some, next(iter(fingerprints[0]), {}), ignore)
    return out, notes


def _settings(entries: Sequence[Entry]) -> dict[str, Mapping[str, Any]]:
    """Return the settings of results by label; a run with docs left out gets the image digests of the whole run with the same settings.

    Why: it did not look at the images of these docs, and would stand apart from the whole runs of the same benchmark.
    """

    def others(entry: Entry) -> str:
        return digest(sorted((key, value) for key, value in entry.result.fingerprint.items() if key not in _IMAGES))

    out: dict[str, Mapping[str, Any]] = {one.label: one.result.fingerprint for one in entries}
    sampled = [one for one in entries if reading.is_sampled(one.result.analysis)]
    wholes: dict[str, set[tuple[Any, ...]]] = {}
    for one in entries if sampled else ():
        if not reading.is_sampled(one.result.analysis):
            wholes.setdefault(others(one), set()).add(tuple(one.result.fingerprint.get(key) for key in _IMAGES))
    for one in sampled:
        # with several whole runs that differ in their images, nobody can say which the sampled run saw
        if len(known := wholes.get(others(one), set())) == 1:
            out[one.label] = {**one.result.fingerprint, **dict(zip(_IMAGES, next(iter(known)), strict=True))}
    return out


def _sampled(row: Row) -> bool:
    return row.entry is not None and reading.is_sampled(row.entry.result.analysis)


def _standing(group: Sequence[Row]) -> tuple[bool, int, int, int]:
    results = [row.entry.result for row in group if row.entry]
    whole = 2 * sum(one.fingerprint.get("limit") == "all" for one in results) > len(results)
    docs = median_low(one.docs for one in results) if results else 0
    return not whole, -docs, -len(group), min((one.place for one in results), default=0)


def _filter_and_date(group: Sequence[Row]) -> tuple[str, str]:
    results = [row.entry.result for row in group if row.entry]
    return max((date_order(one.run.date) for one in results), default=""), "".join(one.filter for one in results[:1])


def _placed(group: Sequence[Row], by: By) -> list[Row]:
    """Return the rows of a group with their places, the best first; then those without a place, each with the reason."""
    kind, order = group[0].kind, sorted(group, key=lambda row: (row.model.lower(), row.model))
    if not kind.index and kind.name != "magic":
        return order
    by = by if kind.index and group[0].n else BY["score"]
    higher = all(row.entry.result.higher_is_better for row in group if row.entry)
    known = [(row, badness(number, by, higher)) for row in order if (number := row.number(by)) is not None]
    placed = zip(known, places([ends for _, (_, ends) in known]), strict=True)
    return [
        *(dataclasses.replace(row, place=place) for (row, _), place in sorted(placed, key=lambda one: one[0][1][0])),
        *(dataclasses.replace(row, why=clean(row.lacks(by))) for row in order if row.number(by) is None),
    ]


def _notes(
    group: Sequence[Row],
    number: int,
    fingerprints: Sequence[Mapping[str, Any]],
    first: Mapping[str, Any],
    ignore: Collection[str],
) -> list[str]:
    """Say in what a group differs from the first, what its runs do not say, and what was ignored."""
    own, models = fingerprints[0], [clean(row.model) for row in group]
    listed = ", ".join(models[:NAMED]) + (f" and {len(models) - NAMED} more" if len(models) > NAMED else "")
    name = f"{clean(group[0].benchmark)}{f', {group[0].size}' * bool(group[0].size)}, {group[0].kind.way}, group {number} ({listed})"
    out = []
    if number > 1:
        unsaid = [
            f"{key} (said by one of them alone)"
            for key in own
            if key not in ignore and (own[key] is None) != (first.get(key) is None)
        ]
        differs = clean("; ".join([*runs.differences(first, own, ignore), *unsaid]) or "its settings")
        out.append(f"{name} is not comparable with group 1; it differs in: {differs}")
    if len(group) > 1 and (unknown := [key for key in runs.RECORDED if key not in ignore and own.get(key) is None]):
        out.append(f"{name}: unknown, and so perhaps not the same in these runs: {', '.join(unknown)}")
    apart = {key: sorted({str(one.get(key)) for one in fingerprints}) for key in ignore}
    if merged := [f"{key} ({', '.join(values[:4])})" for key, values in apart.items() if len(values) > 1]:
        out.append(clean(f"{name}: ranked together although they differ in: {'; '.join(merged)}"))
    return out
