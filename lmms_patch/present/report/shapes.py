"""A report's data in the shapes that its page shows: rows, cells, shares, facts. Pure; no markup is made here."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_patch.ask.spec import KINDS
from lmms_patch.present.report.data import Entry, Part, Report
from lmms_patch.present.report.magic_words import WORDS
from lmms_patch.present.report.run_sheets import band_text
from lmms_patch.present.report.wording import words
from lmms_patch.runs import reading
from lmms_patch.runs.failures import from_json
from lmms_patch.runs.measures import NO_INTERVAL
from lmms_patch.stats.resample import Estimate

TABS = 40
"""Categories that get a tab of their own."""
_INDEX = re.compile(r"^(?P<index>rci|pcri)(?P<n>\d)(?P<rest>_adj_blind|_adj)?$")
_GRID = re.compile(r"^(?P<what>mpp|gap|drop)(?P<n>\d)$")
_PLAIN = {
    "chance": "Chance",
    "ceiling": "Ceiling",
    "tst": "TsT",
    "tst_majority": "Majority answer",
    "tst_above": "TsT above majority",
    "tst_over_chance": "TsT above chance",
    "tst_leakage": "Leakage (random folds less by source)",
    "tst_zero_shot": "Zero-shot",
    "tst_delta": "TsT above zero-shot",
    "tst_s": "Mean bias score s(x)",
}
_WHAT = {"mpp": "MPP, best cell", "gap": "Gap, FIP less MPP", "drop": "Worst cell hidden"}


# --- results --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A line of the table of results: one result at one grid (or without one).

    Attributes:
        entry: the result.
        n: the grid; None for a kind without an index.
        score, mpp, index, adj, gap, chance, ceiling: None where the kind has no such number.
        band, span: of the index, in words.
        excluded: docs that the grid leaves out.
        failed: views without a score.
        fip_used: FIP over the docs that the grid uses; None where those are all.
        mark: how index and corrected index contradict each other; empty where they do not.
        headline: the index to go by: the corrected one where its null is measured, else the one as published.
    """

    entry: Entry
    n: int | None
    score: Estimate | None
    mpp: Estimate | None
    index: Estimate | None
    adj: Estimate | None
    gap: Estimate | None
    chance: Estimate | None
    ceiling: Estimate | None
    tst: Estimate | None
    blind: Estimate | None
    span: str
    excluded: int
    failed: int
    fip_used: float | None
    mark: str
    headline: Estimate | None

    @property
    def luck_free(self) -> bool:
        """Whether the index to go by is the corrected one."""
        return self.headline is not None and self.headline is self.adj


def rows(entries: Sequence[Entry]) -> list[Row]:
    """Return a line for each result and grid. MAGIC tasks have tables of their own."""
    return [_row(entry, n) for entry in entries if not entry.magic for n in (entry.grids or (None,))]


def _row(entry: Entry, n: int | None) -> Row:
    get = entry.whole.measures.get
    grid = entry.whole.grid(n)
    index, adj = (get(f"{entry.index}{n}{end}") if entry.index and n else None for end in ("", "_adj"))
    headline = reading.headline(index, adj, reading.null_of(grid))
    excluded = sum(entry.excluded.get(n or 0, {}).values())
    return Row(
        entry,
        n,
        None if entry.kind == "tst" else get("fip", get("score")),
        get(f"mpp{n}"),
        index,
        adj,
        get(f"gap{n}"),
        get("chance"),
        get("ceiling"),
        get("tst", entry.tst),
        get("score") if entry.kind == "blind" else entry.blind,
        band_text(headline) or "",
        excluded,
        entry.failures.get("full", 0) + entry.failures.get("cells", 0),
        grid.get("fip") if excluded else None,
        reading.mark_of(grid),
        headline,
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
    """Return every number of some docs of a result, once."""
    out = []
    for name, estimate in part.measures.items():
        if name == "score" if entry.magic else name in ("fip", entry.metric) and "score" in part.measures:
            continue  # the same number under another name
        note = "; ".join(filter(None, [words(estimate), "" if estimate.reason == NO_INTERVAL else estimate.reason]))
        signed = name.startswith(("gap", "tst_above", "tst_over", "tst_delta", "tst_leakage")) or bool(_INDEX.match(name))
        out.append(Number(name, label(name, entry), estimate, signed, bool(_INDEX.match(name)), note))
    return out


def label(name: str, entry: Entry) -> str:
    """Return what a number is called, for people."""
    if match := _INDEX.match(name):
        rest = {"_adj": ", luck removed", "_adj_blind": ", luck and blind answers removed"}.get(match["rest"] or "", "")
        return f"{match['index'].upper()} {match['n']}×{match['n']}{rest}"
    if match := _GRID.match(name):
        return f"{_WHAT[match['what']]}, {match['n']}×{match['n']}"
    if entry.magic and (own := entry.metric if name == "score" else name) in WORDS:
        return WORDS[own][0]
    if name == "score":
        what = KINDS[entry.kind].shows
        return f"Score, {what}{' (FIP)' if what == 'full image' else ''}"
    return _PLAIN.get(name, name)


@dataclass(frozen=True)
class Share:
    """A cell of the table of shares; the place is from 1, from the top left.

    Attributes:
        score, win: fractions; ``win`` None where no cell wins.
        level: 0 to 8, the colour: 4 is an even share, 8 twice that or more.
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
    """Where in the image the score of a grid comes from: ``rows[0][2]`` is the top right of 3×3."""

    n: int
    rows: tuple[tuple[Share, ...], ...]
    p: float | None
    centre: float | None
    docs: int


def shares(part: Part, n: int) -> Shares | None:
    """Return the shares of a grid; None where no cell scores, or they are not known."""
    stored = part.grid(n).get("shares")
    if not stored or not stored.get("score") or len(stored["score"]) != n * n:
        return None
    score, win, p = stored["score"], stored.get("win") or [None] * n * n, stored.get("p_cells") or [None] * n * n
    made = [
        Share(i // n + 1, i % n + 1, s, w, max(0, min(8, round(4 * s * n * n))), q is not None and q < 0.05)
        for i, (s, w, q) in enumerate(zip(score, win, p, strict=True))
    ]
    return Shares(
        n, tuple(tuple(made[row * n : (row + 1) * n]) for row in range(n)), stored.get("p"), stored.get("centre"), stored.get("docs", part.docs)
    )


def categories(entry: Entry) -> tuple[list[tuple[str, Part]], int]:
    """Return the categories that get a tab (the largest, in their own order), and how many others there are."""
    most = {name for name, _ in sorted(entry.categories.items(), key=lambda one: -one[1].docs)[:TABS]}
    return [(name, part) for name, part in entry.categories.items() if name in most], len(entry.categories) - len(most)


def marks(part: Part, entry: Entry) -> str:
    """Return how indices and corrected indices of some docs contradict each other, at any grid; empty where they do not."""
    by_grid = {n: reading.mark_of(part.grid(n)) for n in entry.grids}
    return "; ".join(f"{n}×{n}, {reading.explained(mark, reading.null_of(part.grid(n)))}" for n, mark in by_grid.items() if mark)


# --- the whole ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """What was run, counted.

    Attributes:
        models, benchmarks: names, in order.
        results: how many.
        docs: docs of all benchmarks, each counted once.
        readable: results with an index that may be read: the gate is valid, and at no grid the corrected index contradicts it.
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
        """Results of a kind that has an index."""
        return self.readable + self.contradicted + sum(self.refused.values()) + self.unknown


def facts(report: Report) -> Facts:
    """Return what was run, counted."""
    entries = report.entries
    docs: dict[str, int] = {}
    for entry in entries:
        docs[entry.base] = max(docs.get(entry.base, 0), entry.whole.docs)
    asked = [entry for entry in entries if entry.index]
    marked = [any(reading.mark_of(entry.whole.grid(n)) for n in entry.grids) for entry in asked]
    gates = [entry.whole.gate for entry in asked]
    return Facts(
        tuple(dict.fromkeys(entry.model for entry in entries)),
        tuple(docs),
        len(entries),
        sum(docs.values()),
        sum(gate == 1 and not mark for gate, mark in zip(gates, marked, strict=True)),
        sum(gate == 1 and mark for gate, mark in zip(gates, marked, strict=True)),
        dict(Counter(entry.whole.gate_word for entry in asked if entry.whole.gate == 0)),
        gates.count(None),
        sum(reading.unchecked(entry.whole.analysis) for entry in asked if entry.whole.gate != 0),
        sum(bool(entry.warnings) for entry in entries),
    )


def matrix(report: Report, facts: Facts) -> list[tuple[str, list[list[Entry]]]]:
    """Return for each benchmark and model its results."""
    return [(base, [[e for e in report.entries if e.base == base and e.model == model] for model in facts.models]) for base in facts.benchmarks]


FEW = 8
"""A drawing of at most so many results is named in the details of each."""


@dataclass(frozen=True)
class Places:
    """Where each drawing goes, by its number.

    Attributes:
        own: entry id -> drawings that stand in its details: those of section ``runs`` that show this one result.
        sections: section -> all others.
        named: entry id -> drawings elsewhere that show it among a few.
    """

    own: Mapping[str, Sequence[int]]
    sections: Mapping[str, Sequence[int]]
    named: Mapping[str, Sequence[int]]


def placed(report: Report) -> Places:
    """Return where each drawing goes."""
    known = {entry.id for entry in report.entries}
    own: dict[str, list[int]] = {}
    sections: dict[str, list[int]] = {}
    named: dict[str, list[int]] = {}
    for i, figure in enumerate(report.figures):
        if figure.section == "runs" and len(figure.entries) == 1 and figure.entries[0] in known:
            own.setdefault(figure.entries[0], []).append(i)
            continue
        sections.setdefault(figure.section, []).append(i)
        for one in figure.entries if len(figure.entries) <= FEW else ():
            named.setdefault(one, []).append(i)
    return Places(own, sections, named)


# --- what is missing, and drawings in cells ---------------------------------------------------------


def notes(entry: Entry) -> Iterator[str]:
    """Yield what is missing in a result, and why: one line each."""
    for n, reasons in entry.excluded.items():
        for reason, count in reasons.items():
            yield f"{count:,} {'doc is' if count == 1 else 'docs are'} not used at {n}×{n}: {reason}"
    words = {"full": "full view without a score", "cells": "cell view without a score", "empty": "empty answer to the first view"}
    views = entry.failures.get("views", 0)
    for key, what in words.items():
        if count := entry.failures.get(key, 0):
            yield f"{count:,} × {what}" + (f" (of {views:,} views)" if key != "empty" and views else "")
    if failed := from_json(entry.whole.analysis.get("failed")):
        yield from filter(None, (failed.sentence, failed.native(entry.metric)))


def spark(estimate: Estimate | None) -> dict[str, Any] | None:
    """Return the places of an index and its interval on a line from −1 to +1 that is 100 wide; beyond it, the ends are cut and marked."""
    if estimate is None or estimate.value is None or not math.isfinite(estimate.value):
        return None

    def at(value: float) -> float:
        return round(50 + 46 * max(-1.0, min(1.0, value)), 2)

    low, high = (estimate.value if end is None else end for end in (estimate.low, estimate.high))
    return {"at": at(estimate.value), "low": at(low), "high": at(high), "under": min(low, estimate.value) < -1, "over": max(high, estimate.value) > 1}
