"""A report's data in the shapes that its page shows: rows, cells, shares, facts. Pure; no markup is made here."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lmms_patch.ask.kinds import Kind, Words
from lmms_patch.present import palette
from lmms_patch.present.findings import Case, case, names
from lmms_patch.present.page.wording import in_words, words
from lmms_patch.present.report.data import Entry, Indexed, Part, Report
from lmms_patch.present.report.magic_words import WORDS
from lmms_patch.present.report.run_sheets import NEED_WORDS, band_text, in_each, maps_of, without_looking
from lmms_patch.present.sheets import Sheet, ends_in_percent
from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.catalogue import NO_INTERVAL
from lmms_patch.runs.failures import states_in_words
from lmms_patch.runs.numbers import Necessity
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import line

FEW = 8
"""So many results are named where a finding or a drawing is about several."""
TABS = 40
"""Categories that get a tab of their own."""
_OF_TEXT = {
    "tst": "TsT",
    "tst_majority": "Majority answer",
    "tst_above": "TsT above majority",
    "tst_over_chance": "TsT above chance",
    "tst_leakage": "Leakage (random folds less by source)",
    "tst_zero_shot": "Zero-shot",
    "tst_delta": "TsT above zero-shot",
    "tst_s": "Mean bias score s(x)",
}
"""What numbers of text-only cross-validations are called, for people."""
_DIFFERENCES = ("tst_above", "tst_over_chance", "tst_leakage", "tst_delta")


# --- findings -------------------------------------------------------------------------------------


def cases(entries: Sequence[Entry]) -> list[Case]:
    """Return the results as findings read them; a case's key is the entry's label."""
    return [
        dataclasses.replace(case(e.result, e.model, e.label), measures=e.whole.measures, analysis=e.whole.analysis)
        for e in entries
    ]


@dataclass(frozen=True)
class Piece:
    """A part of a sentence.

    Attributes:
        text: as it is written.
        entry: label of the result that it names; None: it names none.
        aside: whether it stands in brackets: numbers, reasons.
    """

    text: str
    entry: str | None = None
    aside: bool = False


@dataclass(frozen=True)
class Sentence:
    """A finding with its links.

    Attributes:
        kind: of the finding.
        pieces: its text, in order.
        others: names and entries of the results that the text does not name, at most ``FEW``.
        more: how many further results there are.
    """

    kind: str
    pieces: tuple[Piece, ...]
    others: tuple[tuple[str, str], ...]
    more: int


def sentences(report: Report) -> list[Sentence]:
    """Return the findings as pieces of text with links to the results they name."""
    called, entries = names(cases(report.entries)), {entry.label: entry for entry in report.entries}
    out = []
    for finding in report.findings:
        about = [entries[key] for key in finding.cases if key in entries]
        # Reversed, so that of several results with one base name the first gets the link.
        by_name = {text: one.label for one in reversed(about) for text in (line(one.base), called[one.label])}
        pieces = _pieces(finding.text, by_name)
        said = {piece.entry for piece in pieces} | {
            one.label for one in about if any(piece.text == line(one.base) for piece in pieces)
        }
        others = [(called[one.label], one.label) for one in about if one.label not in said]
        out.append(Sentence(finding.kind, tuple(pieces), tuple(others[:FEW]), max(0, len(others) - FEW)))
    return out


_ASIDE = re.compile(r"\((?:[^()]|\([^()]*\))*\)")


def _pieces(text: str, by_name: Mapping[str, str]) -> list[Piece]:
    """Cut a text at the first mention of each name and at brackets, into linked and plain pieces.

    A name inside a longer word or name does not count.
    """
    # A shorter name inside a longer one must not take its link.
    longest_first = sorted(by_name, key=len, reverse=True)
    # ``(?!)`` never matches: without names there is nothing to find.
    anywhere = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first)) or '(?!)'})(?![\w-])")
    out: list[Piece] = []
    at = 0
    for match in anywhere.finditer(text):
        if any(piece.text == match[0] and piece.entry for piece in out):
            continue
        out += [*_asides(text[at : match.start()]), Piece(match[0], by_name[match[0]])]
        at = match.end()
    return [*out, *_asides(text[at:])]


def _asides(text: str) -> Iterator[Piece]:
    """Yield the pieces of a text, with bracketed parts as separate pieces, and with true minus signs."""
    text = in_words(text)
    at = 0
    for match in _ASIDE.finditer(text):
        yield from (piece for piece in (Piece(text[at : match.start()]), Piece(match[0], aside=True)) if piece.text)
        at = match.end()
    if text[at:]:
        yield Piece(text[at:])


# --- results --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A line of the table of results: one result at one grid (or without one).

    Attributes:
        entry: the result.
        at: its index.
        score, chance: None where the kind has no such number.
        span: the bands that the interval of the index reaches, in words.
        excluded: docs that the grid leaves out.
        failed: views without a score.
        fip_used: FIP over the docs that the grid uses; None where those are all.
    """

    entry: Entry
    at: Indexed
    score: Estimate | None
    chance: Estimate | None
    span: str
    excluded: int
    failed: int
    fip_used: float | None

    @property
    def numbers(self) -> tuple[Estimate | None, ...]:
        """The numbers in the line."""
        return self.score, self.at.mpp, self.at.gap, self.at.raw, self.at.steady, self.chance

    @property
    def steady(self) -> bool:
        """Whether the index shown as headline is the steady index."""
        return self.at.headline is not None and self.at.headline is self.at.steady

    @property
    def has_index(self) -> bool:
        """Whether the headline index has a value."""
        return self.at.headline is not None and self.at.headline.value is not None


def rows(entries: Sequence[Entry]) -> list[Row]:
    """Return the lines of the table of results, a line for each result and grid.

    MAGIC tasks and text-only cross-validations have tables of their own; a blind run stands beside its full images in
    the table of what is answered without looking.
    """
    # A blind run whose full images are there has a line in the other table; alone it would be lost, so it stays here.
    beside = {(one.base, one.model, one.result.filter) for one in without_looking(entries) if one.blind is not None}
    return [
        _row(entry, n)
        for entry in entries
        if not entry.result.magic and not entry.kind.folds
        if entry.kind.name != "blind" or (entry.base, entry.model, entry.result.filter) not in beside
        for n in (entry.grids or (None,))
    ]


def _row(entry: Entry, n: int | None) -> Row:
    """Return the line of a result at a grid; n is None for a result without grids."""
    get, at, failures = entry.whole.measures.get, entry.index(n), entry.failures
    excluded = sum(entry.excluded.get(n or 0, {}).values())
    return Row(
        entry,
        at,
        get("fip", get("score")),
        get("chance"),
        band_text(at.headline) or "",
        excluded,
        failures.get("full", 0) + failures.get("cells", 0),
        at.grid.fip if at.grid and excluded else None,
    )


@dataclass(frozen=True)
class Number:
    """A line of a table of numbers.

    Attributes:
        name: as in ``lmms_patch.runs.measures``.
        label: for people.
        estimate: the number.
        signed: whether it is a difference or an index.
        index: whether it is an index: coloured by its band.
        note: why it is not defined, or what to mind.
    """

    name: str
    label: str
    estimate: Estimate
    signed: bool
    index: bool
    note: str


def numbers(part: Part, entry: Entry) -> list[Number]:
    """Return all numbers of a part of a result's docs, each under a single name."""
    known = catalogue.keyed(entry.kind, entry.result.grids)
    out = []
    for name, estimate in part.measures.items():
        if name == "score" if entry.result.magic else name in ("fip", entry.result.metric) and "score" in part.measures:
            continue  # the same number under another name
        note = "; ".join(filter(None, [words(estimate), "" if estimate.reason == NO_INTERVAL else estimate.reason]))
        number, key = known.get(name, (None, None))
        signed = name in _DIFFERENCES if number is None else number.signed
        of_grid = number is not None and bool(number.words) and isinstance(key, int)
        out.append(Number(name, label(name, entry), estimate, signed, of_grid, note))
    return out


def label(name: str, entry: Entry) -> str:
    """Return a number's name for people."""
    if entry.result.magic:
        own = entry.result.metric if name == "score" else name
        return WORDS[own][0] if own in WORDS else name
    number, key = catalogue.keyed(entry.kind, entry.result.grids).get(name, (None, None))
    if number is not None:
        return number.called(entry.kind, key)
    n = catalogue.grids_of(entry.kind, entry.result.grids).get(name)
    return _OF_TEXT.get(name, name) if n is None else f"Worst cell hidden, {entry.words.size(n)}"


@dataclass(frozen=True)
class Share:
    """A cell of the table of shares; the place is from 1, from the top left.

    Attributes:
        score, win: fractions; ``win`` None where no cell wins.
        level: the colour (``palette.share_level``).
        odd: whether it differs from an even share (Holm-corrected p below 0.05).
    """

    row: int
    col: int
    score: float
    win: float | None
    level: int
    odd: bool


@dataclass(frozen=True)
class Shares:
    """Where in the image the score of a grid comes from: ``rows[0][2]`` is the top right of 3×3.

    Or when in the clip: ``rows[0][2]`` is segment 3.
    """

    n: int
    words: Words
    even: float
    rows: tuple[tuple[Share, ...], ...]
    p: float | None
    centre: float | None
    docs: int


def shares(part: Part, n: int, kind: Kind) -> Shares | None:
    """Return the shares of a grid's cells; None where no cell scores, or the run stored no shares."""
    found = part.shares(n)
    if found is None:
        return None
    (rows, columns), cells = kind.shape(n), kind.cells(n)
    made = [
        Share(i // columns + 1, i % columns + 1, score, win, palette.share_level(score, cells), p < 0.05)
        for i, (score, win, p) in enumerate(
            zip(found.score, [None] * cells if found.win is None else found.win, found.p_cells, strict=True)
        )
    ]
    lines = tuple(tuple(made[row * columns : (row + 1) * columns]) for row in range(rows))
    return Shares(n, kind.words, 1 / cells, lines, found.p, found.centre, found.docs)


def categories(entry: Entry) -> tuple[list[tuple[str, Part]], int]:
    """Return the ``TABS`` largest categories in the result's order, and how many categories are left out."""
    most = {name for name, _ in sorted(entry.categories.items(), key=lambda one: -one[1].docs)[:TABS]}
    return [(name, part) for name, part in entry.categories.items() if name in most], len(entry.categories) - len(most)


def marks(part: Part, entry: Entry) -> str:
    """Return the contradictions between raw and steady indices of a part, at any grid.

    Empty where they do not.
    """
    at = (entry.index(n, part) for n in entry.grids)
    return "; ".join(f"{entry.words.size(one.n or 0)}, {reading.explained(one.mark)}" for one in at if one.mark)


# --- need of the image ----------------------------------------------------------------------------

_ROOMS = {"long": 0.2, "short": 0.11, "tiny": 0.045}
"""From which share on a part of a bar has room for its name and count on a wide screen, for its percentage on a narrow one, and on a wide one."""


@dataclass(frozen=True)
class Need:
    """A part of a bar of the necessity map.

    Attributes:
        name: of ``run_sheets.NEED_WORDS``.
        style: its class in the style sheet.
        at, width: where the part begins and how wide it is, in percent of the bar.
        label: its percentage.
        count: its docs in words.
        room: what it has room for: ``long`` (name, percentage and count), ``short`` (percentage), ``tiny`` (percentage,
        on wide screens), or nothing.
        says: all of it in words.
    """

    name: str
    style: str
    at: float
    width: float
    label: str
    count: str
    room: str
    says: str


@dataclass(frozen=True)
class Needs:
    """A bar of the necessity map: one result at its finest grid.

    Attributes:
        entry: the result.
        n: the grid.
        docs: docs that the shares are of.
        parts: from left to right.
        size: the grid in words.
    """

    entry: Entry
    n: int
    docs: int
    parts: tuple[Need, ...]
    size: str


def need_words(entries: Sequence[Entry]) -> dict[str, tuple[str, str]]:
    """Return the name and meaning of each class of docs, worded for the media of these results."""
    some = [entry.words for entry in entries if maps_of(entry.whole)]
    return {need: (in_each(some, need), in_each(some, what)) for need, what in NEED_WORDS.items()}


def needs(entries: Sequence[Entry]) -> list[Needs]:
    """Return a bar for each result with a necessity map, benchmark by benchmark."""
    order = list(dict.fromkeys(entry.base for entry in entries))
    maps = [
        (entry, found)
        for entry in entries
        for found in maps_of(entry.whole)[:1]
        if found.shares["one cell"].value is not None
    ]  # else refused
    return [_needs(entry, found) for entry, found in sorted(maps, key=lambda one: order.index(one[0].base))]


def _needs(entry: Entry, found: Necessity) -> Needs:
    """Return the bar of a result's necessity map, with a part for each class with docs."""
    parts = []
    at = 0.0
    for name in NEED_WORDS:
        share = found.shares[name]
        if not share.value:
            continue
        count = f"about {round(share.value * found.docs):,}"
        percent, width = f"{100 * share.value:.0f} %", 100 * share.value
        room = next((room for room, least in _ROOMS.items() if share.value >= least), "")
        called = entry.words.say(name)
        says = f"{called}: {percent}{ends_in_percent(share)}, {count} of {found.docs:,} docs"
        parts.append(
            Need(
                called,
                f"need-{name.replace(' ', '-')}",
                round(at, 3),
                round(width, 3),
                percent,
                f"{count} docs",
                room,
                says,
            )
        )
        at += width
    size = f"{'' if entry.kind.needs_video else 'cells of '}{entry.words.size(found.n)}"
    return Needs(entry, found.n, found.docs, tuple(parts), size)


# --- the whole ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """What was run, counted.

    Attributes:
        models, benchmarks: names, in order.
        results: how many.
        docs: docs of all benchmarks, each counted once.
        readable: results with an index that may be read: the gate is valid, and at no grid the steady index
        contradicts it.
        contradicted: results whose gate is valid, but whose index is contradicted at some grid.
        refused: results whose gate fails, by what tables say of it (``near chance``, ``does not look``, ...).
        unknown: results whose gate is unknown.
        unchecked: results whose gate does not fail, but of which nobody checked whether the model looks.
        warned: results with warnings.
    """

    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    results: int
    docs: int
    readable: int
    contradicted: int
    refused: Mapping[str, int]
    unknown: int
    unchecked: int
    warned: int

    @property
    def with_index(self) -> int:
        """Results of a kind with an index."""
        return self.readable + self.contradicted + sum(self.refused.values()) + self.unknown


def facts(report: Report) -> Facts:
    """Return counts of what was run."""
    entries = report.entries
    docs: dict[str, int] = {}
    # Models may have been asked different numbers of docs; the largest is the benchmark's.
    for entry in entries:
        docs[entry.base] = max(docs.get(entry.base, 0), entry.whole.docs)
    asked = [entry for entry in entries if entry.kind.index]
    states = Counter((entry.whole.gate, any(entry.index(n).mark for n in entry.grids)) for entry in asked)
    return Facts(
        tuple(dict.fromkeys(entry.model for entry in entries)),
        tuple(docs),
        len(entries),
        sum(docs.values()),
        states[1, False],
        states[1, True],
        dict(Counter(entry.whole.gate_word for entry in asked if entry.whole.gate == 0)),
        states[None, False] + states[None, True],
        sum(reading.unchecked(entry.whole.analysis) for entry in asked if entry.whole.gate != 0),
        sum(bool(entry.warnings) for entry in entries),
    )


def matrix(report: Report, facts: Facts) -> list[tuple[str, list[list[Entry]]]]:
    """Return the results by benchmark and, within a benchmark, by model in the order of ``facts.models``."""
    return [
        (base, [[e for e in report.entries if e.base == base and e.model == model] for model in facts.models])
        for base in facts.benchmarks
    ]


@dataclass(frozen=True)
class Tables:
    """Tables of a section: shown at once, or folded.

    Tables in neither group repeat numbers that stand elsewhere on the page, which links their files.
    """

    shown: tuple[Sheet, ...]
    folded: tuple[Sheet, ...]


_FOLDED = {
    "fit",
    "percentiles",
    "correlations",
    "by_type",
    "granularity",
    "magic_contrast_sides",
    "magic_tasks",
    "magic_types",
    "magic_counts",
}
_TABLE_2 = {"rci", "rci_steady", "trci", "trci_steady"}
_IN_RESULTS = {"runs", "categories", "excluded", "necessity", "bands", "indices", "correlation_matrix"}
"""Tables whose numbers the table of results, the details, or another table has."""
_CELLS = re.compile(r"(cells|segments)\d")


def tables(report: Report) -> dict[str, Tables]:
    """Return the tables of each section, without those whose numbers the page shows elsewhere.

    Sections without any are not there.
    """
    across = [*report.sheets.get("benchmarks", ()), *report.sheets.get("benchmarks_time", ())]
    # Published numbers have no line in the table of results, so their tables must stay.
    published = not report.entries or any(row.get("source") for sheet in across for row in sheet.rows)
    repeated = _IN_RESULTS | (set() if published else {"no_index", *_TABLE_2})
    folded = _FOLDED | ({*_TABLE_2, "no_index"} if report.entries else set())
    out = {}
    for section, sheets in report.sheets.items():
        kept = [
            sheet
            for sheet in sheets
            if _plain(sheet) not in repeated and not (_CELLS.fullmatch(sheet.name) and report.entries)
        ]
        made = Tables(
            tuple(one for one in kept if _plain(one) not in folded), tuple(one for one in kept if _plain(one) in folded)
        )
        if kept:
            out[section] = made
    return out


def _plain(sheet: Sheet) -> str:
    """Return a table's name without ``_time``: tables of clips follow the rules of tables of images."""
    return sheet.name.removesuffix("_time")


def explore(report: Report) -> str:
    """Return the command line of ``lmms-patch explore`` for the report's runs."""
    folders = {str(entry.result.run.path.parent) for entry in report.entries}
    return f"lmms-patch explore {shlex.quote(folders.pop()) if len(folders) == 1 else 'RUN'}"


@dataclass(frozen=True)
class Places:
    """Where each drawing goes, by its number.

    Attributes:
        sections: section -> drawings.
        named: entry label -> drawings that show it among a few.
        files: entry label -> drawings of it alone whose numbers its details have as a table: only their files are
            linked.
    """

    sections: Mapping[str, Sequence[int]]
    named: Mapping[str, Sequence[int]]
    files: Mapping[str, Sequence[int]]

    @property
    def drawn(self) -> list[int]:
        """The drawings in the page."""
        return sorted(i for some in self.sections.values() for i in some)


def placed(report: Report) -> Places:
    """Return which section, result or list of files each drawing belongs to."""
    alone = {f"cells-{entry.label}": entry.label for entry in report.entries}
    sections: dict[str, list[int]] = {}
    named: dict[str, list[int]] = {}
    files: dict[str, list[int]] = {}
    for i, figure in enumerate(report.figures):
        if figure.name in alone:
            files.setdefault(alone[figure.name], []).append(i)
            continue
        sections.setdefault(figure.section, []).append(i)
        for one in figure.entries if len(figure.entries) <= FEW and figure.section != "headline" else ():
            named.setdefault(one, []).append(i)
    return Places(sections, named, files)


# --- what is missing -----------------------------------------------------------------------------


def notes(entry: Entry) -> Iterator[str]:
    """Yield a line for each kind of gap in a result: docs left out of a grid, views without a score, failed calls."""
    for n, reasons in entry.excluded.items():
        for reason, count in reasons.items():
            yield f"{count:,} {'doc is' if count == 1 else 'docs are'} not used at {entry.words.size(n)}: {reason}"
    words = {
        "full": "full view without a score",
        "cells": f"{entry.words.part} view without a score",
        "empty": "empty answer to the first view",
    }
    views = entry.failures.get("views", 0)
    for key, what in words.items():
        if count := entry.failures.get(key, 0):
            yield f"{count:,} × {what}" + (f" (of {views:,} views)" if key != "empty" and views else "")
    yield from filter(None, [states_in_words(entry.failures, views)])
    if entry.whole.analysis and (failed := entry.whole.analysis.failed):
        yield from filter(None, (failed.sentence, failed.native(entry.result.metric)))
