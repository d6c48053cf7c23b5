"""What a board remembers of its runs: the types of ``leaderboard.json``, schema 1, and the first way in which a result contradicts itself.

Numbers are on the metric's own scale.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lmms_patch.ask.kinds import KINDS, Kind
from lmms_patch.present.formats import KindName
from lmms_patch.runs import reading
from lmms_patch.runs.typed import Digest
from lmms_patch.stats.bounds import Count, GridSize, Number, Parts
from lmms_patch.stats.index import disagreement
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import clean

Identity = tuple[str, str, str]
"""What makes two runs runs of one model: the model's name, the adapter, the adapter's arguments."""
Plain = str | int | Number | bool | None


class BoardFile(Struct, frozen=True, kw_only=True):
    """A file, as it was when the board read it.

    Attributes:
        path: Relative to the board's folder where that is possible.
        size: Bytes.
        mtime_ns: Time of the last change, nanoseconds.
    """

    path: str
    size: Count
    mtime_ns: int


class BoardNotes(Struct, frozen=True, kw_only=True):
    """What stands beside the index of a grid.

    Attributes:
        span: The bands that the interval reaches.
        reason: Why there is no index; empty otherwise.
        excluded: Docs that the index leaves out.
        fip: FIP over the docs that it does not leave out: index = 1 - MPP / this.
        null: What the luck-corrected index rests on; null without one.
    """

    LATE: ClassVar[tuple[str, ...]] = ("null",)

    band: str | None
    span: str | None
    reason: str
    excluded: Count
    fip: Number | None
    null: Literal["measured", "assumed", None] = None


NO_NOTES = BoardNotes(band=None, span=None, reason="", excluded=0, fip=None)


class BoardDataset(Struct, frozen=True):
    """The data of a task, as its config names them.

    Attributes:
        path: Hub id; null where the data are local or not named.
        name: The dataset's configuration.
    """

    path: str | None = None
    name: str | None = None
    split: str | None = None


class BoardDetails(Struct, frozen=True):
    """What a board says of a task of some kinds.

    Attributes:
        diagnostic: Of tst: the diagnostic.
        grouping: Of tst: how docs are dealt to folds.
        dataset: Of magic: the data.
    """

    diagnostic: str | UnsetType = UNSET
    grouping: str | UnsetType = UNSET
    dataset: str | UnsetType = UNSET


class BoardResult(Struct, frozen=True, kw_only=True, dict=True):
    """A task of a run.

    Attributes:
        filter: The harness's filter pipeline.
        base: The benchmark.
        metric: The primary metric.
        grids: Grid sizes n, numbers of segments or frames, or reductions.
        higher: Whether more of the metric is better.
        type: The papers' task type; empty where none is named.
        docs: Docs with a record.
        gate: 1 valid, 0 refused (near chance, or the answers do not depend on the image), null unknown or no gate.
        gate_reason: Why the gate fails or is unknown; empty otherwise.
        fingerprint: What must be the same in runs that are ranked together, by name; null: the run does not say.
        numbers: Every number by its name (lmms_patch.runs.measures), without the words that stand beside an index.
        notes: By grid size, what stands beside the index.
        dataset: Hub id, configuration and split of the data; null where local or not named.
        looks: Whether the answers are shown to depend on the image; null: not checked, or no gate.
        marginal: Whether the gate is passed by less than one further standard error.
        sampled: Whether its numbers are estimated from a part of the docs.
        unchecked: What of its numbers could not be held to the sample log; null: an earlier version did not say.
    """

    LATE: ClassVar[tuple[str, ...]] = ("looks", "marginal", "sampled", "unchecked")

    task: str
    filter: str
    base: str
    kind: KindName
    metric: str
    grids: list[Parts]
    higher: bool
    type: Literal["", "mcq", "yesno", "vqa", "caption"]
    docs: Count
    gate: Literal[0, 1, None]
    gate_reason: str
    fingerprint: dict[str, Plain]
    numbers: dict[str, Estimate]
    notes: Annotated[dict[GridSize, BoardNotes], Meta(extra_json_schema={"propertyNames": {"pattern": "^[2-9]$"}})]
    dataset: BoardDataset
    details: BoardDetails
    looks: bool | None = None
    marginal: bool = False
    sampled: bool = False
    unchecked: str | None = None

    @property
    def asked(self) -> Kind:
        """The kind as a row of the grammar."""
        return KINDS[self.kind]

    @property
    def index(self) -> str | None:
        """``rci``, ``pcri``, ``crci`` or ``trci``; None for a kind without an index."""
        return self.asked.index

    @property
    def gate_word(self) -> str:
        """What tables say of the gate."""
        return reading.verdict_word(self.gate, self.gate_reason, self.marginal)

    @cached_property
    def nonsense(self) -> str:
        """Why these numbers cannot all be true (``_nonsense``); empty where they can."""
        return _nonsense(self)

    def value(self, name: str) -> float | None:
        """Return the value of a number; None for a missing or undefined number."""
        return None if (number := self.numbers.get(name)) is None else number.value

    def mark(self, n: int) -> str:
        """Return the contradiction between index and luck-corrected index of a grid; empty where they agree."""
        raw, adj = (self.value(f"{self.index}{n}{end}") for end in ("", "_adj"))
        return "" if raw is None or adj is None else disagreement(raw, adj)

    def noted(self, n: int) -> dict[str, Estimate]:
        """Return the indices of a grid by name, with their notes."""
        index, null = f"{self.index}{n}", self.notes.get(n, NO_NOTES).null
        out = {}
        if index in self.numbers:
            out[index] = reading.raw(self.numbers[index], self.mark(n), self.marginal, self.sampled)
        if (adj := f"{index}_adj") in self.numbers:
            out[adj] = reading.corrected(self.numbers[adj], null, self.marginal, self.asked.words.parts, self.sampled)
        return out


class BoardRun(Struct, frozen=True, kw_only=True):
    """A run.

    Attributes:
        sha256: Of the results file.
        files: Where copies of the results file lie, or where it was last.
        adapter: --model of the run.
        model_args: --model_args of the run, without keys, tokens and passwords.
        date: As the harness writes it.
        digest: Of model, date and results, so that an edited board is seen; absent in boards of earlier versions.
    """

    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    files: Annotated[list[BoardFile], Meta(min_length=1)]
    model: str
    adapter: str
    model_args: str
    date: str
    results: list[BoardResult]
    digest: Digest | UnsetType = UNSET

    @property
    def identity(self) -> Identity:
        """The model, adapter and arguments, equal for runs of the same model."""
        return self.model, self.adapter, self.model_args

    @property
    def order(self) -> tuple[str, str]:
        """What sorts runs by time, however their dates are written; equal dates by hash."""
        return date_order(self.date), self.sha256


class Leaderboard(Struct, kw_only=True):
    """Written by lmms-patch leaderboard --output FOLDER. Numbers are on the metric's own scale; null is not defined.

    Attributes:
        written: Files in the folders model-index and models that were made for models -> digest of what they were made
            of.
    """

    schema: Literal[1]
    written: dict[str, str]
    runs: list[BoardRun]


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


# --- what cannot be true --------------------------------------------------------------------------

_ROUNDING = 1e-6
_ROUNDED = 0.02
"""How far a value may lie outside its interval, as a share of itself: some aggregations round, and the interval is of what they round."""
_ABOVE = 1.1
"""How far above the score of the gold answers a number may lie: a scorer may not read some of them, and best cells pass over such docs."""


def _nonsense(result: BoardResult) -> str:
    """Return the first contradiction within a result, in words; else empty.

    It looks at the stored numbers alone, since the files of a run may have gone: counts, intervals, and FIP, MPP, index
    and gap against each other and against the range of the metric, which ends at what the gold answers score.
    """
    if said := next(filter(None, (_wrong_number(name, number) for name, number in result.numbers.items())), ""):
        return said
    score = result.value("score")
    if result.kind == "magic" and score is not None and not -_ROUNDING <= score <= 1 + _ROUNDING:
        return f"{result.metric} {_short(score)} is no fraction"
    return next((said for n in result.grids if (said := _wrong_grid(result, n))), "") if result.index else ""


def _wrong_number(name: str, number: Estimate) -> str:
    """Return what is wrong with a number: its standard error, or a value far from its interval."""
    if number.se is not None and number.se < 0:
        return f"{name} has the standard error {_short(number.se)}"
    if number.value is not None and number.low is not None and number.high is not None:
        room = _ROUNDED * abs(number.value) + _ROUNDING
        if not number.low - room <= number.value <= number.high + room:
            return (
                f"{name} {_short(number.value)} is outside its interval [{_short(number.low)}, {_short(number.high)}]"
            )
    return ""


def _wrong_grid(result: BoardResult, n: int) -> str:
    """Return what is wrong with the numbers of a grid.

    Only where it has an index: a metric whose scale goes below 0 has none.
    """
    note, full, top = result.notes.get(n, NO_NOTES), result.value("fip"), result.value("ceiling")
    if note.excluded > result.docs:
        return f"{note.excluded} of {result.docs} docs are excluded at grid {n}"
    used = result.numbers.get(f"mpp{n}")
    if used is not None and used.value is not None and used.n > result.docs:
        return f"mpp{n} is over {used.n} of {result.docs} docs"
    index, gap, mpp = (result.value(f"{stem}{n}") for stem in (result.index, "gap", "mpp"))
    if index is None:
        return ""
    if result.gate == 0:
        return f"{result.index}{n} has a value, but the gate refuses it"
    fip = full if note.fip is None else note.fip
    if fip is None or mpp is None:
        return f"{result.index}{n} has a value, but {'FIP' if fip is None else f'mpp{n}'} has none"
    for name, value in (("FIP", full), (f"FIP at grid {n}", fip), (f"mpp{n}", mpp)):
        if value is not None and value < 0:
            return f"{name} {_short(value)} is below 0, and a metric whose scale goes below 0 has no index"
        if value is not None and top is not None and 0 < top * _ABOVE < value:
            return f"{name} {_short(value)} is above {_short(top)}, which the gold answers score"
    if fip == 0 or abs(index - (1 - mpp / fip)) > _ROUNDING * max(1.0, mpp / fip):
        return f"{result.index}{n} {_short(index)} is not 1 - MPP / FIP of FIP {_short(fip)} and MPP {_short(mpp)}"
    if gap is not None and abs(gap - (fip - mpp)) > _ROUNDING * max(1.0, abs(fip), abs(mpp)):
        return f"gap{n} {_short(gap)} is not FIP - MPP of FIP {_short(fip)} and MPP {_short(mpp)}"
    return ""


def _short(value: float) -> str:
    return f"{value:.4g}"
