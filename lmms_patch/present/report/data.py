"""What a report is made of. Filled by ``gather`` and ``examples``; read by ``across``, ``figures`` and ``page``. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lmms_patch.ask.spec import KINDS, Kind, Words
from lmms_patch.present.findings import Finding
from lmms_patch.present.sheets import Sheet
from lmms_patch.runs import reading
from lmms_patch.runs.numbers import Analysis, Grid, read
from lmms_patch.stats.resample import Estimate


@dataclass(frozen=True)
class Part:
    """The numbers of some docs of a result: all, or those of one category.

    Attributes:
        docs: how many.
        measures: every number by its name (``lmms_patch.runs.measures``), on the metric's own scale.
        gate: 1 valid, 0 refused (near chance, or the answers do not depend on the image), None unknown or no gate.
        analysis: what the numbers are made of (docs/records.md, ``analysis``); empty for a kind without one.
    """

    docs: int
    measures: Mapping[str, Estimate]
    gate: int | None
    analysis: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gate_word(self) -> str:
        """What tables say of the gate."""
        return reading.verdict_word(self.gate, self.typed.gate.reason, self.typed.gate.marginal) if self.typed else reading.verdict_word(self.gate)

    @cached_property
    def typed(self) -> Analysis | None:
        """The analysis as a type."""
        return read(self.analysis) if self.analysis else None

    def of_grid(self, n: int) -> Grid | None:
        """Return the numbers of a grid; None where there are none."""
        return self.typed.grids.get(n) if self.typed else None

    def grid(self, n: int | None) -> Mapping[str, Any]:
        """Return what is stored of a grid; empty where nothing is."""
        return self.analysis.get("grids", {}).get(str(n)) or {}


@dataclass(frozen=True)
class Entry:
    """One result: one task of one run.

    Attributes:
        id: unique in the report; letters, digits and hyphens.
        model: the model's name as it is shown.
        base: the benchmark.
        task: the wrapped task's name, with its filter where it has several.
        kind: ``spec.KINDS``.
        index: ``rci``, ``pcri``, ``crci``, ``trci`` or None.
        grids: those with an index.
        metric: the primary metric.
        higher: whether higher is better.
        type: the papers' task type (``mcq``, ``yesno``, ``vqa``, ``caption``); "" where no profile says it.
        whole: all docs.
        categories: by name; empty where the run named none, or one only.
        blind: score of the same model's blind run on the same docs, None without.
        gain: score on the full image less ``blind``, paired by doc; None where that cannot be had.
        tst: the best text-only cross-validation of the same docs, None without.
        excluded: by grid, reason -> number of docs.
        failures: what has no score: ``full`` and ``cells`` (views whose call or scorer failed), ``empty`` (empty answers to the full view),
            ``views`` (all); and by state of the answer ``failed``, ``unscored`` and ``unfinished`` views (``runs.failures.states``).
        date: of the run.
        path: its results file, as it was given.
        warnings: one line each.
        tst_details: docs/records.md; empty for other kinds.
        magic: the ``magic`` object of a MAGIC task's results (docs/records.md); empty for other kinds.
        size: how many docs the benchmark has; None where that is not known.
    """

    id: str
    model: str
    base: str
    task: str
    kind: str
    index: str | None
    grids: tuple[int, ...]
    metric: str
    higher: bool
    type: str
    whole: Part
    categories: Mapping[str, Part] = field(default_factory=dict)
    blind: Estimate | None = None
    gain: Estimate | None = None
    tst: Estimate | None = None
    excluded: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    date: str = ""
    path: str = ""
    warnings: tuple[str, ...] = ()
    tst_details: Mapping[str, Any] = field(default_factory=dict)
    magic: Mapping[str, Any] = field(default_factory=dict)
    size: int | None = None

    @property
    def asked(self) -> Kind:
        """The kind as a row of the grammar."""
        return KINDS[self.kind]

    @property
    def name(self) -> str:
        """What the benchmark is called in figures, where results of cells in every order stand beside others."""
        return f"{self.base}, every order" if self.asked.every_order else self.base

    @property
    def words(self) -> Words:
        """What its parts are called."""
        return self.asked.words

    def shares(self, n: int) -> Mapping[str, Any] | None:
        """Return ``score``, ``win``, ``p_cells`` (a number for each cell, row by row), ``centre``, ``p``, ``docs``; None where no cell scores."""
        shares = self.whole.grid(n).get("shares")
        return shares if shares and shares.get("score") is not None else None


@dataclass(frozen=True)
class CellAnswer:
    """What was answered from one cell.

    Attributes:
        row, col: from 0, from the top left.
        box: left, top, width, height, in percent of the image.
        answer: cut to a readable length.
        score: on the metric's own scale; None: unscored.
        right: at least half of what the doc's gold scores; None: unscored.
    """

    row: int
    col: int
    box: tuple[float, float, float, float]
    answer: str
    score: float | None
    right: bool | None


@dataclass(frozen=True)
class Example:
    """One doc, picked by a rule.

    Attributes:
        entry: id of its result.
        rule: ``local only``, ``global only``, ``luck-like``, ``distracted``, ``needs both``, ... (``examples.RULES``).
        doc_id: row in the base task's eval split.
        question, gold, answer: texts, cut to a readable length; the answer is to the full image.
        score, right: of the full image.
        size: width and height of the first image in pixels.
        grids: by grid, its cells row by row.
        image: the first image as a ``data:`` URI; None where it was not taken.
        alt: what the picture shows, in words.
    """

    entry: str
    rule: str
    doc_id: int
    question: str
    gold: str
    answer: str
    score: float | None
    right: bool | None
    size: tuple[int, int]
    grids: Mapping[int, tuple[CellAnswer, ...]]
    image: str | None
    alt: str


@dataclass(frozen=True)
class BoxUse:
    """One box of a doc of a MAGIC task, by its number on the image: is it relevant, did the reasoning use it?"""

    number: int
    relevant: bool
    used: bool


@dataclass(frozen=True)
class RegionExample:
    """One doc of a MAGIC task, picked by a rule.

    Attributes:
        entry: id of its result.
        rule: ``focused``, ``distracted``, ... (``magic_examples.RULES``).
        doc: its name.
        question, gold, answer, response: texts, cut to a readable length; the response is all that the model wrote.
        right: whether the answer is right, by the judge where there is a verdict, else by synonyms.
        by: who says so, in words.
        healed: of Self-Heal, whether the continuation corrects the injected error; None: not known, or another task.
        boxes: as drawn, by number.
        invented: numbers that were named and that no box has.
        image: what the model saw, boxes drawn, as a ``data:`` URI; None where it was not taken.
        alt: what the picture shows, in words.
    """

    entry: str
    rule: str
    doc: str
    question: str
    gold: str
    answer: str
    response: str
    right: bool | None
    by: str
    healed: bool | None
    boxes: tuple[BoxUse, ...]
    invented: tuple[int, ...]
    image: str | None
    alt: str


@dataclass(frozen=True)
class Figure:
    """One drawing.

    Attributes:
        name: of its files ``figures/<name>.svg``, ``.pdf``, ``.png``, ``.tex``.
        title, caption: for people; the caption says what is drawn, its scale and units, n, and what the intervals are.
        alt: what it shows, in words, for who cannot see it.
        svg: for the page: no script, no outer link, colours of text and axes as ``currentColor``.
        section: ``headline`` (at the top of the page), ``runs``, ``benchmarks``, ``models``, ``tst``, ``magic``.
        entries: ids of the results that it shows.
        files: names of all its files in ``figures/``.
        narrow: the same drawing for the page on a phone; empty where it has none, and the wide one scrolls in its box.
    """

    name: str
    title: str
    caption: str
    alt: str
    svg: str
    section: str
    entries: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    narrow: str = ""


@dataclass(frozen=True)
class Report:
    """All of it.

    Attributes:
        title: of the page.
        made: what made it: versions, and when.
        entries: the results.
        sheets: the tables by section: ``runs``, ``benchmarks``, ``models``, ``tst``, ``magic``.
        figures: the drawings.
        examples: picked docs.
        regions: picked docs of MAGIC tasks.
        warnings: of the report as a whole, one line each.
        findings: what to know first; their cases are ids of entries.
    """

    title: str
    made: Mapping[str, str]
    entries: tuple[Entry, ...]
    sheets: Mapping[str, tuple[Sheet, ...]] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    examples: tuple[Example, ...] = ()
    regions: tuple[RegionExample, ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
