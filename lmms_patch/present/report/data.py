"""What a report is made of. Filled by ``gather`` and ``examples``; read by ``across``, ``figures`` and ``page``.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from lmms_patch.ask.kinds import Kind, Words
from lmms_patch.present.findings import Finding
from lmms_patch.present.sheets import Sheet
from lmms_patch.runs import reading
from lmms_patch.runs.numbers import Analysis, Grid
from lmms_patch.runs.run import Labelled
from lmms_patch.stats.resample import Array, Estimate
from lmms_patch.stats.spatial import CellShares


class Shares(CellShares):
    """The shares of a grid of which some cell scores."""

    score: Array
    p_cells: Array


@dataclass(frozen=True)
class Part:
    """The numbers of some docs of a result: of all docs or of a category.

    Attributes:
        docs: how many.
        measures: every number by its name (``lmms_patch.runs.measures``), on the metric's own scale.
        gate: 1 valid, 0 refused (near chance, or the answers do not depend on the image), None unknown or no gate.
        analysis: what the numbers are made of; None for a kind without an analysis.
    """

    docs: int
    measures: Mapping[str, Estimate]
    gate: int | None
    analysis: Analysis | None = None

    @property
    def gate_word(self) -> str:
        """What tables say of the gate."""
        gate = self.analysis and self.analysis.gate
        return reading.verdict_word(self.gate, gate.reason, gate.marginal) if gate else reading.verdict_word(self.gate)

    def grid(self, n: int | None) -> Grid | None:
        """Return the numbers of a grid; None where there are none."""
        return self.analysis.grids.get(n or 0) if self.analysis else None

    def shares(self, n: int) -> Shares | None:
        """Return how the score spreads over the cells of a grid; None where no cell scores."""
        grid = self.grid(n)
        return cast(Shares, grid.shares) if grid and grid.shares and grid.shares.score is not None else None


class Indexed:
    """The index of some docs at a grid, and the numbers behind the index.

    Each number is None where the kind has no such number.

    Args:
        part: the docs.
        index: ``rci``, ``pcri`` or ``trci``; None for a kind without an index.
        n: the grid; None for a result without grids.
    """

    def __init__(self, part: Part, index: str | None, n: int | None) -> None:
        get, self.n, self.grid = part.measures.get, n, part.grid(n)
        self.mpp, self.gap, self.raw = (get(name) for name in (f"mpp{n}", f"gap{n}", f"{index}{n}"))
        self.steady = get(f"{index}{n}_steady")
        self.mark = reading.mark_of(self.grid)
        self.headline = reading.headline(self.raw, self.steady)


@dataclass(frozen=True)
class Entry(Labelled):
    """A result in a report: a task of a run.

    Attributes:
        label: unique in the report; letters, digits and hyphens.
        whole: all docs.
        categories: by name; empty where the run named none, or one only.
        blind: score of the same model's blind run on the same docs, None without.
        gain: score on the full image less ``blind``, paired by doc; None where that cannot be had.
        tst: the best text-only cross-validation of the same docs, None without.
        excluded: by grid, reason -> number of docs.
        failures: what has no score: ``full`` and ``cells`` (views whose call or scorer failed), ``empty`` (empty
            answers to the full view), ``views`` (all); and by state of the answer ``failed``, ``unscored`` and
            ``unfinished`` views (``runs.failures.states``).
        warnings: one line each.
    """

    whole: Part
    categories: Mapping[str, Part] = field(default_factory=dict)
    blind: Estimate | None = None
    gain: Estimate | None = None
    tst: Estimate | None = None
    excluded: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The benchmark."""
        return self.result.base

    @property
    def kind(self) -> Kind:
        """The kind of task."""
        return self.result.kind

    @property
    def grids(self) -> tuple[int, ...]:
        """The grids with an index."""
        return tuple(self.result.indexed)

    def index(self, n: int | None, part: Part | None = None) -> Indexed:
        """Return the index at a grid, of all docs or of those of a category."""
        return Indexed(part or self.whole, self.kind.index, n)

    @property
    def words(self) -> Words:
        """What its parts are called."""
        return self.kind.words

    @property
    def name(self) -> str:
        """The benchmark's name in figures."""
        return self.base


@dataclass(frozen=True)
class CellAnswer:
    """The answer to a cell.

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
    """A doc picked by a rule.

    Attributes:
        entry: label of its result.
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
    """A numbered box of a doc of a MAGIC task: whether relevant, and whether used by the reasoning."""

    number: int
    relevant: bool
    used: bool


@dataclass(frozen=True)
class RegionExample:
    """A doc of a MAGIC task picked by a rule.

    Attributes:
        entry: label of its result.
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
    """A drawing of the report.

    Attributes:
        name: of its files ``figures/<name>.svg``, ``.pdf``, ``.png``, ``.tex``.
        title, caption: for people; the caption says what is drawn, its scale and units, n, and what the intervals are.
        alt: what it shows, in words, for who cannot see it.
        svg: with what its marks tell as titles; ``safe.drawing`` makes it ready for the page.
        section: ``headline`` (at the top of the page), ``needs``, ``runs``, ``benchmarks``, ``models``, ``tst``, ``magic``.
        entries: labels of the results that it shows.
        files: names of all its files in ``figures/``.
        narrow: the same drawing for the page on a phone; empty where it has none, and the wide one scrolls in its box.
        told: what its marks tell, for readers without a mouse.
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
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """The whole report.

    Attributes:
        title: of the page.
        made: what made it: versions, and when.
        entries: the results.
        sheets: the tables by section: ``runs``, ``benchmarks``, ``models``, ``tst``, ``magic``.
        figures: the drawings.
        examples: picked docs.
        regions: picked docs of MAGIC tasks.
        warnings: of the report as a whole, one line each.
        findings: what to know first; their cases are labels of entries.
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
