"""Do the statistics keep what they promise? Made-up answers whose truth is known, many times over.

    python benchmarks/calibration.py [--runs 4000] [--only NAME ...] [--processes 2]

Each study draws answers from a model whose index is known by construction, computes the numbers with
the functions of ``lmms_patch`` themselves, and averages over the runs. It prints one Markdown table
per study (``--only`` takes names of ``STUDIES``). Where there is a target, the last column says
whether it is met; the script fails where one is missed. docs/statistics.md says what follows from it.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.analysis import analyse
from lmms_patch.answers import Asked
from lmms_patch.draws import Settings
from lmms_patch.outcome import Analysis
from lmms_patch.planning import Doc, Plan, plan
from lmms_patch.records import Baseline, Lent, SampleRecord, ScoredView, best_cell
from lmms_patch.scoring import best
from lmms_patch.spec import WrapSpec
from lmms_patch.stats import chance, donors, gate, luck, spatial
from lmms_patch.stats.forms import MEAN, Picked
from lmms_patch.stats.intervals import UNSEEN_OF_PAIRS, estimate, mean, normal_quantile
from lmms_patch.stats.resample import Array, Estimate
from lmms_patch.tables import Table
from lmms_patch.views import views_of

SEED = 20
RUNS = 4000
WITHIN, ICC, SHARED = 0.6, 0.3, 0.5
"""Correlations of the latent normals: two readers of a doc, two docs of a cluster. Share of docs that take their cluster's gold or guess."""
DRAWS = 500
"""Draws for the index with luck removed; rows of that study with 1000 show that it makes no difference."""
GRADES = (1.0, 0.9, 0.6, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Graded scores: what the ten answers that anybody gives to a doc score (a consensus of ten people)."""
METRIC = "acc"
CORNERS = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
"""What an unseen doc may score on the full image and on its best cell."""

Ints = NDArray[np.intp]
Stream = np.random.Generator
Numbers = dict[str, float]


# --- made-up answers ----------------------------------------------------------------------------


def cluster_labels(stream: Stream, docs: int, size: int | str) -> Ints | None:
    """Cluster numbers: all of one size, or ``uneven`` (geometric, 5 on average); None for clusters of one."""
    if size == 1:
        return None
    if isinstance(size, int):
        return np.arange(docs) // size
    return np.repeat(np.arange(docs), stream.geometric(1 / 5, docs))[:docs]


def latent(stream: Stream, docs: int, readers: int, clusters: Ints | None = None) -> Array:
    """Standard normals, shape (docs, readers), correlated between the readers of a doc and between the docs of a cluster."""

    def normals(rows: int) -> Array:
        common = stream.standard_normal((rows, 1))
        return math.sqrt(WITHIN) * common + math.sqrt(1 - WITHIN) * stream.standard_normal((rows, readers))

    own = normals(docs)
    if clusters is None:
        return own
    return math.sqrt(ICC) * normals(int(clusters.max()) + 1)[clusters] + math.sqrt(1 - ICC) * own


@functools.cache
def threshold(share: float) -> float:
    """Below this a standard normal falls in this share of cases."""
    return normal_quantile(share)


def known(stream: Stream, docs: int, shares: Sequence[float], clusters: Ints | None = None) -> NDArray[np.bool_]:
    """Which docs each reader knows, shape (docs, readers): the shares are exact, whatever the correlations."""
    return latent(stream, docs, len(shares), clusters) < [threshold(share) for share in shares]


def two_scores(stream: Stream, docs: int, fip: float, mpp: float, clusters: Ints | None = None, *, graded: bool = False) -> Array:
    """Scores on the full image and on the best cell, shape (docs, 2), with these means: 0 or 1, or graded."""
    if not graded:
        return known(stream, docs, (fip, mpp), clusters).astype(float)
    step = 0.04  # the share of each of .9, .6 and .3: together they add 1.8 steps to the mean
    z = latent(stream, docs, 2, clusters)
    ends = np.array([[threshold(mean + (k - 1.8) * step) for k in range(4)] for mean in (fip, mpp)])
    return (z[:, :, None] < ends) @ np.array([0.1, 0.3, 0.3, 0.3])


@dataclass(frozen=True)
class World:
    """Answers of a model; answers are numbers.

    Attributes:
        scores: shape (docs, answers), what each answer scores on each doc.
        full: shape (docs,), the answer on the full image.
        cells: shape (docs, n²), the answers on the cells.
        kinds: shape (docs,), the type of question.
        names: the answers as text.
        clusters: shape (docs,), or None.
        blind: shape (docs,), the answer to the question without the image, or None.
    """

    scores: Array
    full: Ints
    cells: Ints
    kinds: Ints
    names: tuple[str, ...]
    clusters: Ints | None = None
    blind: Ints | None = None

    def of(self, answers: Ints, docs: Ints | None = None) -> Array:
        """The scores of answers, of shape (docs, ...), under the golds of these docs (of all docs, in order)."""
        rows = np.arange(len(answers)) if docs is None else docs
        return self.scores[rows.reshape(-1, *[1] * (answers.ndim - 1)), answers]

    @property
    def pairs(self) -> Array:
        """Scores on the full image and on the best cell, shape (docs, 2)."""
        return np.column_stack([self.of(self.full), self.of(self.cells).max(axis=1)])

    @property
    def golds(self) -> Ints:
        """The best answer of each doc."""
        return self.scores.argmax(axis=1)


def world(
    stream: Stream,
    docs: int,
    *,
    options: int = 4,
    n: int = 3,
    full: float = 0.8,
    cell: float = 0.0,
    rest: str = "guess",
    types: int = 1,
    graded: bool = False,
    size: int | str = 1,
    text: float = 0.4,
) -> World:
    """A model that knows or guesses; the truth of the index without luck is 1 − cell/full.

    Args:
        stream: of random numbers.
        docs: number of docs.
        options: answers that a doc may have; those of each type of question are its own.
        n: grid.
        full: the share of docs that the full image knows; it guesses among the options of the type on the rest.
        cell: the share that one cell knows.
        rest: what all other cells do: ``guess``, ``constant`` (always the same answer), ``repeat`` (one guess per doc),
            or ``blind`` (the answer to the question alone), or ``blind, else guess``.
        types: types of question.
        graded: ten answers that score ``GRADES``, in place of options of which one is right.
        size: of clusters.
        text: the share of docs whose blind answer is right.
    """
    clusters = cluster_labels(stream, docs, size)
    options = len(GRADES) if graded else options
    kinds = stream.integers(0, types, docs)
    scores = np.zeros((docs, types * options))
    golds = kinds * options + stream.integers(0, options, docs)
    if graded:
        scores = stream.permuted(np.tile(GRADES, (docs, 1)), axis=1)
        golds = scores.argmax(axis=1)
    scores[np.arange(docs), golds] = 1

    def guess(count: int) -> Ints:
        return kinds[:, None] * options + stream.integers(0, options, (docs, count))

    knows = known(stream, docs, (full, cell or 0.5), clusters)
    wrong = kinds * options + (golds + stream.integers(1, options, docs)) % options if options > 1 else golds
    solved = stream.random(docs) < text
    blind = np.where(solved, golds, wrong)
    cells = {
        "guess": lambda: guess(n * n),
        "constant": lambda: np.column_stack([guess(1), np.tile(kinds * options, (n * n - 1, 1)).T]),
        "repeat": lambda: np.tile(guess(1), n * n),
        "blind": lambda: np.tile(blind[:, None], n * n),
        "blind, else guess": lambda: np.where(solved[:, None], golds[:, None], guess(n * n)),
    }[rest]()
    if cell:
        cells[:, 0] = np.where(knows[:, 1], golds, cells[:, 0])
    names = tuple(f"{'abcdefghij'[k]} word {a}" for k in range(types) for a in range(options)) if types > 1 else tuple("ABCDEFGHIJKLMNOP"[:options])
    return World(scores, np.where(knows[:, 0], golds, guess(1)[:, 0]), cells, kinds, names, clusters, blind)


def uninformed(stream: Stream, docs: int, prior: Sequence[Sequence[float]], model: str, *, n: int = 3, size: int | str = 1) -> World:
    """A model that does not look.

    Args:
        stream: of random numbers.
        docs: number of docs.
        prior: of each type of question, the shares of its golds; all types have the same answers.
        model: ``uniform``, ``prior`` (guesses as often as each gold comes), ``letter`` (the most frequent gold of all), ``majority`` (of the type).
        n: grid.
        size: of clusters; half of a cluster's docs share its gold, and half its guess.
    """
    shares = np.asarray(prior, float)
    clusters = cluster_labels(stream, docs, size)
    kinds = stream.integers(0, len(shares), docs)

    def drawn(of: Array) -> Ints:
        u = stream.random(docs)
        if clusters is not None:
            common = stream.random(int(clusters.max()) + 1)[clusters]
            u = np.where(stream.random(docs) < SHARED, common, u)
        return (u[:, None] > np.cumsum(of, axis=1)[kinds][:, :-1]).sum(axis=1)

    golds = drawn(shares)
    answers = {
        "uniform": lambda: drawn(np.full_like(shares, 1 / shares.shape[1])),
        "prior": lambda: drawn(shares),
        "letter": lambda: np.full(docs, shares.mean(axis=0).argmax()),
        "majority": lambda: shares.argmax(axis=1)[kinds],
    }[model]
    names = ("yes", "no") if shares.shape[1] == 2 else tuple("ABCDEFGHIJ"[: shares.shape[1]])
    cells = np.column_stack([answers() for _ in range(n * n)])
    return World(np.eye(shares.shape[1])[golds], answers(), cells, kinds, names, clusters)


# --- as a run writes it -------------------------------------------------------------------------

STARTS = ("how many", "what colour", "where is", "who has", "which side", "what kind", "why do", "what time", "how far", "whose is")


def planned(made: World, seed: int = 0) -> Plan:
    """What a run would score beside the model's answers."""
    letters = len(made.names[0]) == 1
    choices = tuple(f"item {name}" for name in made.names) if letters else ()
    docs = [
        Doc(i, Asked("", made.names[gold], choices), f"{STARTS[kind]} things?", None if made.clusters is None else int(made.clusters[i]))
        for i, (gold, kind) in enumerate(zip(made.golds, made.kinds, strict=True))
    ]
    return plan(docs, seed=seed)


def records_of(made: World, by: Plan) -> Iterator[dict[str, Any]]:
    """The ``patch`` objects that a run with these answers would leave, one by one."""
    n = math.isqrt(made.cells.shape[1])
    spec = WrapSpec("made_up", "rci", (n,))
    views = views_of(spec)
    numbers = {name: k for k, name in enumerate(made.names)}
    answers = np.column_stack([made.full, made.cells])
    for i, row in enumerate(answers):
        scored = tuple(ScoredView(view, {METRIC: score}, {METRIC: score}) for view, score in zip(views, made.scores[i, row].tolist(), strict=True))

        def score(text: str, i: int = i) -> dict[str, float]:
            return {METRIC: float(made.scores[i, numbers[text]]) if text in numbers else 0.0}

        lent = []
        for loan in by.loans.get(i, ()):
            under = made.scores[loan.to, row].tolist()
            place = best(under[1:])
            lent.append(Lent(loan.to, loan.p, under[0], {n: under[1:][place or 0]}))
        place = best_cell(scored, n, METRIC)
        answer = by.answers[i]
        yield SampleRecord(
            "made_up_rci",
            spec,
            i,
            ((640, 480),),
            scored,
            {} if place is None else {n: place},
            {},
            {} if made.clusters is None else {"cluster": int(made.clusters[i])},
            {"format": answer.format, "label": answer.label, "options": len(answer.options), "gold": answer.gold},
            by.strata[i],
            tuple(Baseline(text, tuple(roles), score(text), score(text)) for text, roles in by.baselines[i].items()),
            tuple(lent),
        ).to_json()


class MeanOf:
    """A native aggregation that is a mean, as a run hands it to the statistics (``draws.Native``)."""

    form = None
    no_calls = ""

    def __init__(self, pairs: Array) -> None:
        self.pairs = pairs  # shape (docs, 2): scores on the full image and on the best cell

    def whole(self) -> float | None:
        return float(self.pairs[:, 0].mean())

    def over_cells(self, n: int) -> tuple[float | None, float | None, str]:
        return float(self.pairs[:, 0].mean()), float(self.pairs[:, 1].mean()), ""

    def aggregate(self, items: list[Any]) -> float | None:
        return float(np.mean(items)) if items else None


def analysed(made: World, seed: int = 0, draws: int = 1000, *, blind: bool = False) -> Analysis:
    """All numbers, by way of the plan and the records."""
    table = Table(list(records_of(made, planned(made, seed))), METRIC)
    known_blind = dict(enumerate(made.of(made.blind).tolist())) if blind and made.blind is not None else None
    return analyse(table, MeanOf(made.pairs), Settings(draws=draws, seed=seed), [math.isqrt(made.cells.shape[1])], known_blind)


def without_luck(made: World, stream: Stream, *, draws: int = DRAWS, typed: bool = True, blind: bool = False) -> luck.Luck:
    """RCI_adj of a world at the level of arrays: donors within the type of question, or among all docs."""
    docs = len(made.full)
    found = donors.strata([("all", int(kind)) if typed else ("all",) for kind in made.kinds])
    units = list(range(docs)) if made.clusters is None else made.clusters.tolist()
    lenders = donors.draw(found, units, seed=stream)

    def rows(scores: Array) -> Array:
        return MEAN.rows(Picked(scores))

    places = np.arange(docs)
    null = [(rows(made.of(made.full[d], places)), rows(made.of(made.cells[d], places).max(axis=1))) for d in lenders.T]
    full, cell = made.pairs.T
    scores = luck.Scores(
        rows(full),
        rows(cell),
        rows(np.ones(docs)),
        np.stack([one for one, _ in null]),
        np.stack([one for _, one in null]),
        lenders,
        np.zeros(docs, np.intp),
        ("all",),
        rows(made.of(made.blind)) if blind and made.blind is not None else None,
    )
    return luck.adjusted(scores, MEAN.value, made.clusters, draws=draws, seed=stream)


# --- studies ------------------------------------------------------------------------------------

SCARCE = 10
"""Where fewer docs than this are wrong on every cell, MPP is so near its ceiling that intervals may be too narrow: there, 89 % are asked for."""


def met(yes: bool) -> str:
    """The word in the tables."""
    return "met" if yes else "MISSED"


@dataclass(frozen=True)
class Target:
    """A column whose mean must lie in low..high."""

    column: str
    low: float
    high: float

    def text(self, value: float) -> str:
        """The cell of the table."""
        percent = self.column.endswith("%")
        low, high = (f"{100 * x:.0f} %" if percent else f"{x:.2f}" for x in (self.low, self.high))
        span = f"at most {high}" if self.low <= 0 and percent else f"at least {low}" if self.high >= 1 and percent else f"{low} to {high}"
        return f"{span}: {met(self.low <= value <= self.high)}"


@dataclass(frozen=True)
class Setting:
    """One row of a table.

    Attributes:
        shown: its first columns.
        once: one run, from a stream of random numbers to numbers by column; nan is left out of the mean.
        target: what must come out, if anything.
        part: of the runs that are asked for, how many are made (slow settings make fewer).
    """

    shown: Mapping[str, object]
    once: Callable[[Stream], Numbers]
    target: Target | None = None
    part: float = 1.0

    def runs(self, asked: int) -> int:
        """How many runs this setting makes."""
        return max(1, round(asked * self.part))


@dataclass(frozen=True)
class Study:
    """A table: its title, and what makes its rows."""

    title: str
    settings: Callable[[], list[Setting]]


def held(estimate: Estimate, truth: float) -> float:
    """1 where the interval holds the truth, 0 where not, nan where there is none."""
    if estimate.low is None or estimate.high is None:
        return math.nan
    return float(estimate.low - 1e-12 <= truth <= estimate.high + 1e-12)


def width(estimate: Estimate) -> float:
    """Half the interval's width; nan where there is none."""
    return math.nan if estimate.low is None or estimate.high is None else (estimate.high - estimate.low) / 2


def one_minus_ratio(sums: Array) -> Array:
    """RCI of the sums of full and best scores; nan where FIP is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[..., 0] > 0, 1 - sums[..., 1] / sums[..., 0], math.nan)


HOLDS, PASSES, NULL = "holds the truth, %", "passes the gate, %", "null, %"
STRICTER = "passes with the SE of FIP − floor too, %"


def rci_once(
    stream: Stream,
    *,
    docs: int,
    fip: float,
    mpp: float,
    size: int | str,
    graded: bool = False,
    ignore: bool = False,
    chance_floor: float | None = None,
) -> Numbers:
    """RCI's interval on one draw; ``ignore``: as if there were no clusters; ``chance_floor``: only where the gate with this floor is passed."""
    clusters = cluster_labels(stream, docs, size)
    scores = two_scores(stream, docs, fip, mpp, clusters, graded=graded)
    used = None if ignore else clusters
    found = estimate(scores, one_minus_ratio, used, extremes=CORNERS, unseen=UNSEEN_OF_PAIRS, seed=stream)
    out = {"half width": width(found), HOLDS: held(found, 1 - mpp / fip)}
    if chance_floor is None:
        return out
    full = mean(scores[:, 0], used, seed=stream)
    near = gate.se_at_chance(full.se, full.value, chance_floor)
    passed = gate.gate(full.value, chance_floor, se_fip=full.se, se_chance=near).valid
    return {PASSES: float(bool(passed)), **{name: value if passed else math.nan for name, value in out.items()}}


def mpp_of(fip: float, kind: str) -> float:
    """A best cell that scores a quarter more than the full image (97 % at most), or 60 % of it."""
    return min(0.97, 1.25 * fip) if kind == "local" else 0.6 * fip


def holding(wrong: float, groups: int) -> Target:
    """The target of an interval, by the docs that are wrong on every cell and the clusters."""
    few = groups < 50
    return Target(HOLDS, 0.89 if wrong < SCARCE else 0.91 if few else 0.93, 1 if few else 0.97)


def rci_settings() -> list[Setting]:
    """Sizes, clusters, FIP and RCI; then graded scores and uneven clusters."""
    out = []
    for docs, size in itertools.product((200, 1000, 5000), (1, 2, 5, 18)):
        groups = -(-docs // size)
        for fip, kind in itertools.product((0.3, 0.6, 0.9), ("local", "global") if docs < 5000 else ("local",)):
            mpp = mpp_of(fip, kind)
            once = functools.partial(rci_once, docs=docs, fip=fip, mpp=mpp, size=size)
            target = holding(docs * (1 - mpp), groups)
            out.append(Setting({"docs": docs, "clusters of": size, "clusters": groups, "FIP": fip, "RCI": f"{1 - mpp / fip:+.2f}"}, once, target))
    for docs, size in ((200, 1), (1000, 5), (300, "uneven"), (1000, "uneven")):
        for graded in (False, True):
            once = functools.partial(rci_once, docs=docs, fip=0.6, mpp=0.75, size=size, graded=graded)
            groups = docs if size == 1 else docs // 5
            shown = {"docs": docs, "clusters of": f"{size}{', graded scores' if graded else ''}", "clusters": groups, "FIP": 0.6, "RCI": "-0.25"}
            out.append(Setting(shown, once, Target(HOLDS, 0.93, 0.97)))
    return out


def few_settings() -> list[Setting]:
    """From 10 to 49 clusters."""
    out = []
    for groups, size, kind in itertools.product((10, 20, 35, 49), (5, 18), ("local", "global")):
        mpp = mpp_of(0.6, kind)
        once = functools.partial(rci_once, docs=groups * size, fip=0.6, mpp=mpp, size=size)
        out.append(Setting({"clusters": groups, "clusters of": size, "FIP": 0.6, "RCI": f"{1 - mpp / 0.6:+.2f}"}, once, Target(HOLDS, 0.91, 1)))
    return out


def ignored_settings() -> list[Setting]:
    """The same draws with and without their clusters."""
    return [
        Setting(
            {"docs": 1000, "clusters of": size, "intervals": "docs as independent" if ignore else "clusters together"},
            functools.partial(rci_once, docs=1000, fip=0.6, mpp=0.75, size=size, ignore=ignore),
            Target(HOLDS, 0.0, 0.93) if ignore and size >= 5 else None,
        )
        for size, ignore in itertools.product((2, 5, 18), (False, True))
    ]


def hard_settings() -> list[Setting]:
    """Near chance, near 0 and near 1; no targets."""
    rows = [
        ("FIP just above chance (0.25), intervals that the gate lets through", {"docs": 200, "fip": 0.3, "mpp": 0.3, "chance_floor": 0.25}),
        ("the same, more docs", {"docs": 1000, "fip": 0.3, "mpp": 0.3, "chance_floor": 0.25}),
        ("FIP twice chance (0.25)", {"docs": 200, "fip": 0.5, "mpp": 0.5, "chance_floor": 0.25}),
        ("FIP 0.05, no gate", {"docs": 200, "fip": 0.05, "mpp": 0.1}),
        ("FIP 0.98, MPP 0.995", {"docs": 200, "fip": 0.98, "mpp": 0.995}),
        ("the same, more docs", {"docs": 1000, "fip": 0.98, "mpp": 0.995}),
        ("FIP 0.9, MPP 0.97, 12 clusters of 18", {"docs": 216, "fip": 0.9, "mpp": 0.97, "size": 18}),
        ("FIP 0.9, MPP 0.9, 12 clusters of 18", {"docs": 216, "fip": 0.9, "mpp": 0.9, "size": 18}),
        ("FIP 0.9, MPP 0.97, 25 clusters of 18", {"docs": 450, "fip": 0.9, "mpp": 0.97, "size": 18}),
    ]
    return [Setting({"case": name, "docs": args["docs"]}, functools.partial(rci_once, **{"size": 1, **args})) for name, args in rows]


def adj_once(stream: Stream, *, truth: float | None, draws: int = DRAWS, **args: Any) -> Numbers:
    """RCI_adj on one draw of a world."""
    docs = args.pop("docs")
    found = without_luck(world(stream, docs, **args), stream, draws=draws).estimate
    saturated = found.value is None and found.reason.startswith("luck saturates")
    out = {NULL: float(found.value is None), "luck saturates, %": float(saturated), "median": math.nan if found.value is None else found.value}
    return out if truth is None else {**out, "half width": width(found), HOLDS: held(found, truth)}


WORLDS: tuple[tuple[str, float, dict[str, Any]], ...] = (
    ("cells only guess", 1.0, {}),
    ("one cell knows 0.4", 0.5, {"cell": 0.4}),
    ("one cell knows as much as the full image", 0.0, {"cell": 0.8}),
)


def adj_settings() -> list[Setting]:
    """What the cells do, docs, options and clusters; saturation."""
    out = []

    def add(docs: int, name: str, truth: float | None, target: Target | None, draws: int = DRAWS, **args: Any) -> None:
        options = "graded" if args.get("graded") else args.get("options", 4)
        shown = {"docs": docs, "what the cells do": name, "options, n": f"{options}, {args.get('n', 3)}", "clusters of": args.get("size", 1)}
        once = functools.partial(adj_once, docs=docs, truth=truth, draws=draws, **args)
        out.append(Setting({**shown, "draws": draws, "truth": "" if truth is None else f"{truth:.2f}"}, once, target))

    good = Target(HOLDS, 0.93, 0.97)
    scarce = holding(300 * 0.2 * 0.75**9, 300)  # 4 options, n = 3, one cell knows 0.8
    for docs, (name, truth, args) in itertools.product((300, 1000), WORLDS):
        add(docs, name, truth, scarce if truth == 0 and docs == 300 else good, **args)
        if docs == 300:
            add(docs, name, truth, good, options=5, n=2, **args)
    name, truth, args = WORLDS[1]
    for docs in (300, 1000):
        add(docs, name, truth, good, size=5, **args)
        add(docs, name, truth, good, options=2, n=2, **args)
    add(300, name, truth, good, graded=True, n=2, **args)
    add(300, name, truth, good, draws=1000, **args)
    add(300, name, truth, good, draws=1000, options=5, n=2, **args)
    for docs in (300, 1000):
        add(docs, "cells only guess", None, Target("luck saturates, %", 1.0, 1.0), options=2)
    return out


GOLDS: tuple[tuple[str, list[list[float]]], ...] = (
    ("10 options, even", [[0.1] * 10]),
    ("5 options, even", [[0.2] * 5]),
    ("4 options, even", [[0.25] * 4]),
    ("4 options, one 0.4", [[0.4, 0.2, 0.2, 0.2]]),
    ("yes/no, even", [[0.5, 0.5]]),
    ("yes/no, 0.65 yes", [[0.65, 0.35]]),
    ("yes/no, 0.8 yes in one type of question, 0.2 in the other", [[0.8, 0.2], [0.2, 0.8]]),
    ("yes/no, 0.8 yes", [[0.8, 0.2]]),
)


def floor_scores(made: World) -> dict[str, Array]:
    """What each floor scores on each doc, from the golds of the same docs: uniform, best constant, majority of the type."""
    right = made.scores
    constant = chance.constants([_constants(right)])
    by_type = np.zeros(len(right), np.intp)
    for kind in range(int(made.kinds.max()) + 1):
        docs = made.kinds == kind
        by_type[docs] = right[docs].sum(axis=0).argmax()
    return {"uniform": right.mean(axis=1), "constant": right[:, int(constant[""])], "stratum": right[np.arange(len(right)), by_type]}


def _constants(right: Array) -> chance.Asked:
    """One doc that stands for all: each constant answer with its total score."""
    totals = right.sum(axis=0).tolist()
    return chance.Asked("", 0, None, tuple(chance.Uninformed(str(a), frozenset({"constant"}), total, None) for a, total in enumerate(totals)))


def mean_of(scores: Array, clusters: Ints | None, stream: Stream) -> Estimate:
    """A mean and its standard error."""
    return mean(scores, clusters, seed=stream)


def gate_once(stream: Stream, *, docs: int, prior: list[list[float]], model: str, size: int) -> Numbers:
    """Whether a model that does not look passes; ``any``: right as often as the best floor, whatever the gold."""
    if model in ("any", "documented"):
        made = uninformed(stream, docs, prior, "uniform", size=size)
        floor = float(np.max(prior, axis=1).mean())
        full = known(stream, docs, (floor,), made.clusters)[:, 0].astype(float)
    else:
        made = uninformed(stream, docs, prior, model, size=size)
        full = made.of(made.full)
    fip = mean_of(full, made.clusters, stream)
    if model == "documented":
        judged = gate.gate(fip.value, floor, se_fip=fip.se, se_chance=gate.se_at_chance(fip.se, fip.value, floor))
        return {"FIP": fip.value or 0.0, PASSES: float(judged.valid is True)}
    scores = floor_scores(made)
    name, estimate = chance.decide({name: mean_of(found, made.clusters, stream) for name, found in scores.items()}, tuple(scores))
    assert name is not None
    assert estimate is not None
    assert fip.se is not None
    own = estimate.se or gate.se_at_chance(fip.se, fip.value, estimate.value)
    judged = gate.gate(fip.value, estimate.value, se_fip=fip.se, se_chance=own)
    gap = mean_of(full - scores[name], made.clusters, stream)
    stricter = gate.gate(fip.value, estimate.value, se_fip=max(fip.se, gap.se or 0.0), se_chance=own)
    return {"FIP": fip.value or 0.0, PASSES: float(judged.valid is True), STRICTER: float(stricter.valid is True)}


MODELS = {
    "uniform": "guesses evenly",
    "prior": "guesses as often as each gold comes",
    "letter": "always the most frequent gold",
    "majority": "the most frequent gold of the type",
    "documented": "right as often as the documented floor",
    "any": "right as often as the floor, not by the floor's answers",
}


def gate_settings() -> list[Setting]:
    """Golds and models that do not look, with floors from the same golds or a documented one."""
    out = []

    def add(name: str, prior: list[list[float]], model: str, docs: int, size: int) -> None:
        shown = {"golds": name, "model": MODELS[model], "docs": docs, "clusters of": size}
        limit = 0.0 if model in ("letter", "majority") else 0.03
        target = Target(STRICTER, 0, 0.03) if model == "any" else Target(PASSES, 0, limit)
        out.append(Setting(shown, functools.partial(gate_once, docs=docs, prior=prior, model=model, size=size), target))

    for name, prior in GOLDS:
        for docs, size in ((200, 1), (200, 4)):
            add(name, prior, "prior", docs, size)
            add(name, prior, "documented", docs, size)
    for name, prior in GOLDS[3:]:
        add(name, prior, "letter", 200, 4)
        add(name, prior, "majority", 200, 4)
        add(name, prior, "any", 200, 1)
    for docs, size in ((1000, 20), (5000, 1)):
        add(*GOLDS[2], "prior", docs, size)
        add(*GOLDS[6], "prior", docs, size)
        add(*GOLDS[2], "documented", docs, size)
    for docs in (1000, 5000):
        add(*GOLDS[7], "any", docs, 1)
    return out


def guess_once(stream: Stream, *, docs: int, options: int, n: int) -> Numbers:
    """RCI of a model that guesses everywhere, with the gate bypassed."""
    made = uninformed(stream, docs, [[1 / options] * options], "uniform", n=n)
    found = estimate(made.pairs, one_minus_ratio, extremes=CORNERS, unseen=UNSEEN_OF_PAIRS, seed=stream)
    return {"mean RCI": found.value or 0.0, "half width": width(found), HOLDS: held(found, by_guessing(options, n))}


def by_guessing(options: int, n: int) -> float:
    """RCI of a model that guesses everywhere: 1 − (1 − (1 − p)^(n²)) / p."""
    p = 1 / options
    return 1 - luck.luck_ceiling(np.array([p]), n) / p


def guess_settings() -> list[Setting]:
    """Options and grids."""
    return [
        Setting(
            {"options, n": f"{options}, {n}", "1 − (1 − (1 − p)^(n²)) / p": f"{by_guessing(options, n):+.3f}"},
            functools.partial(guess_once, docs=1000, options=options, n=n),
            Target(HOLDS, 0.93, 0.97),
        )
        for options, n in itertools.product((2, 4, 5), (2, 3))
    ]


def whole_once(stream: Stream, *, make: Callable[[Stream], World], truth: float | None = None, blind: bool = False) -> Numbers:
    """Everything by way of plan, records and analysis."""
    found = analysed(make(stream), int(stream.integers(2**31)), blind=blind)
    (grid,) = found.grids.values()
    out = {PASSES: float(found.gate.valid is True), "RCI is null, %": float(grid.index.value is None)}
    if truth is None:
        return out
    adj = grid.adj_blind if blind else grid.adj
    return {**out, "RCI_adj is null, %": float(adj is None or adj.estimate.value is None), HOLDS: held(adj.estimate, truth) if adj else math.nan}


def whole_settings() -> list[Setting]:
    """The gate, then RCI_adj."""
    part = 0.1
    out = []
    for name, prior in (GOLDS[2], GOLDS[5], GOLDS[6]):
        for model in ("prior", "letter", "majority"):
            make = functools.partial(uninformed, docs=200, prior=prior, model=model, size=4)
            target = Target(PASSES, 0, 0.03 if model == "prior" else 0.0)
            out.append(Setting({"golds or cells": name, "model": MODELS[model], "docs": 200}, functools.partial(whole_once, make=make), target, part))
    for name, truth, args in WORLDS:
        make = functools.partial(world, docs=300, size=5, n=2, **args)
        shown = {"golds or cells": f"{name}; 4 options, 60 clusters of 5, n = 2", "model": f"truth {truth}", "docs": 300}
        out.append(Setting(shown, functools.partial(whole_once, make=make, truth=truth), Target(HOLDS, 0.92, 0.98), part))
    make = functools.partial(world, docs=300, options=12, rest="blind")
    shown = {"golds or cells": "cells repeat the blind answer; 12 options, blind run at hand", "model": "truth 1.0", "docs": 300}
    out.append(Setting(shown, functools.partial(whole_once, make=make, truth=1.0, blind=True), None, part))
    return out


TABLE_DOCS = 20_000

BEHAVIOURS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("only guess", {}),
    ("one cell knows 0.4, the rest guess", {"cell": 0.4}),
    ("one cell knows 0.85, the rest guess", {"cell": 0.85}),
    ("one cell knows 0.85, the rest answer a constant", {"cell": 0.85, "rest": "constant"}),
    ("all repeat one guess", {"rest": "repeat"}),
)


def forms_once(stream: Stream, **args: Any) -> Numbers:
    """The three forms of the index on one large draw."""
    made = world(stream, TABLE_DOCS, **args)
    found = without_luck(made, stream, draws=200)
    fip, mpp = made.pairs.mean(axis=0)
    assert found.fip0 is not None
    assert found.mpp0 is not None
    adj = found.estimate.value
    null = math.nan if adj is None else adj
    return {"RCI": 1 - mpp / fip, "difference form": 1 - (mpp - found.mpp0) / (fip - found.fip0), "RCI_adj": null}


def table_settings() -> list[Setting]:
    """What the cells do, options (0: graded scores) and grids."""
    out = []
    for (name, args), (options, n) in itertools.product(BEHAVIOURS, [*itertools.product((4, 5, 2), (3, 2)), (0, 3), (0, 2)]):
        truth = 1 - args.get("cell", 0) / 0.8
        of = {"graded": True} if not options else {"options": options}
        shown = {"what the cells do": name, "options, n": f"{options or 'graded'}, {n}", "truth": f"{truth:+.2f}"}
        saturates = options == 2 and n == 3 and args.get("rest", "guess") == "guess"
        target = None if saturates else Target("RCI_adj", truth - 0.1, truth + 0.1)
        out.append(Setting(shown, functools.partial(forms_once, n=n, **args, **of), target, 0))
    return out


def strata_once(stream: Stream, *, typed: bool, blind: bool = False, docs: int = TABLE_DOCS, **args: Any) -> Numbers:
    """RCI_adj of a large world, donors of the same type of question or not, with a blind run or not."""
    found = without_luck(world(stream, docs, **args), stream, draws=200, typed=typed, blind=blind).estimate
    return {"RCI_adj": math.nan if found.value is None else found.value}


def strata_settings() -> list[Setting]:
    """Donors of the same type or not; with a blind run or not."""
    guess = {"types": 4, "options": 6, "n": 3}
    text = {"options": 12, "n": 3, "rest": "blind"}
    both = {"options": 12, "n": 2, "rest": "blind, else guess"}
    rows: list[tuple[str, str, dict[str, Any], Target | None]] = [
        ("4 types of question with 6 answers each; cells guess", "all docs", {"typed": False, **guess}, Target("RCI_adj", 0.0, 0.2)),
        ("", "the same type", {"typed": True, **guess}, Target("RCI_adj", 0.9, 1.1)),
        ("cells repeat a blind answer that is right in 40 %; 12 options", "the same type", {"typed": True, **text}, Target("RCI_adj", 0.45, 0.65)),
        ("", "and a blind run", {"typed": True, "blind": True, **text}, Target("RCI_adj", 0.97, 1.03)),
        ("cells know from the text 40 %, and each guesses on the rest; 12 options, n = 2", "the same type", {"typed": True, **both}, None),
        ("", "and a blind run", {"typed": True, "blind": True, **both}, None),
    ]
    return [
        Setting({"world": name, "donors from": source, "truth": "+1.00"}, functools.partial(strata_once, **args), target, 0)
        for name, source, args, target in rows
    ]


def spatial_once(stream: Stream, *, docs: int, size: int, favour: float = 0.0) -> Numbers:
    """The test of an even spread over 3×3; ``favour``: how much more often the middle is right."""
    clusters = cluster_labels(stream, docs, size)
    right = latent(stream, docs, 9, clusters) < threshold(0.3)
    right[:, 4] |= stream.random(docs) < favour
    found = spatial.cell_shares(right.astype(float), clusters, permutations=199, seed=stream)
    return {"p ≤ 0.05, %": float((found.p or 0) <= 0.05), "some cell p ≤ 0.05, %": float(np.min(found.p_cells) <= 0.05)}  # type: ignore[arg-type]


def spatial_settings() -> list[Setting]:
    """An even spread, then one that favours the middle."""
    return [
        Setting(
            {"spread": "even" if not favour else f"the middle also right in {favour:.0%}", "docs": docs, "clusters of": size},
            functools.partial(spatial_once, docs=docs, size=size, favour=favour),
            Target("p ≤ 0.05, %", 0, 0.06) if not favour else None,
            0.5,
        )
        for favour, (docs, size) in itertools.product((0.0, 0.1), ((200, 1), (300, 5)))
    ]


STUDIES = {
    "rci": Study("RCI's 95 % interval", rci_settings),
    "few": Study("RCI's interval with few clusters (widened)", few_settings),
    "ignored": Study("RCI's interval where clusters are ignored", ignored_settings),
    "hard": Study("Where RCI's interval is off", hard_settings),
    "adj": Study("RCI_adj's 95 % interval (the full image knows 0.8)", adj_settings),
    "gate": Study("The gate against models that do not look", gate_settings),
    "guess": Study("RCI of a model that guesses everywhere, gate bypassed, 1000 docs", guess_settings),
    "whole": Study("By way of plan, records and analysis (a tenth of the runs)", whole_settings),
    "table": Study(f"The forms of the index on {TABLE_DOCS} docs (the full image knows 0.8)", table_settings),
    "strata": Study(f"Donors and text, {TABLE_DOCS} docs (the full image knows 0.8)", strata_settings),
    "spatial": Study("The test of an even spread over 3×3 cells (half of the runs, 199 permutations)", spatial_settings),
}


# --- running ------------------------------------------------------------------------------------


def outcomes(name: str, place: int, runs: Sequence[int]) -> list[Numbers]:
    """Some runs of one setting of a study; each has a stream of its own."""
    setting = STUDIES[name].settings()[place]
    number = list(STUDIES).index(name)
    return [setting.once(np.random.default_rng([SEED, number, place, run])) for run in runs]


def averages(found: Sequence[Numbers]) -> Numbers:
    """The mean of each column over the runs that have it (the median of ``median``)."""
    out = {}
    for column in found[0]:
        values = np.array([one[column] for one in found])
        values = values[~np.isnan(values)]
        out[column] = math.nan if not len(values) else float(np.median(values) if column == "median" else values.mean())
    return out


def verdict(setting: Setting, means: Numbers) -> str:
    """The last column."""
    return "" if setting.target is None else setting.target.text(means[setting.target.column])


def missed(setting: Setting, means: Numbers) -> bool:
    """Whether a target is not met."""
    target = setting.target
    return target is not None and not target.low <= means[target.column] <= target.high


def markdown(study: Study, rows: Sequence[tuple[Setting, Numbers]]) -> str:
    """A study's table."""
    numbers = list(dict.fromkeys(column for _, means in rows for column in means))
    header = [*rows[0][0].shown, *numbers, "target"]
    body = [
        [*(str(x) for x in setting.shown.values()), *(_cell(c, means.get(c)) for c in numbers), verdict(setting, means)] for setting, means in rows
    ]
    if not any(row[-1] for row in body):
        header, body = header[:-1], [row[:-1] for row in body]
    lines = ["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *body)]
    return f"\n### {study.title}\n\n" + "\n".join(lines)


def _cell(column: str, value: float | None) -> str:
    if value is None:
        return ""
    return "null" if math.isnan(value) else f"{100 * value:.1f}" if column.endswith("%") else f"{value:.3f}"


def run(names: Sequence[str], runs: int, processes: int) -> int:
    """Print the tables; the number of targets that are missed."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes that are started: each has a core
    failures, start = 0, time.monotonic()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        waiting = {}
        for name in names:
            for place, setting in enumerate(STUDIES[name].settings()):
                ids = range(setting.runs(runs))
                waiting[name, place] = [pool.submit(outcomes, name, place, part) for part in np.array_split(ids, min(len(ids), 4 * processes))]
        for name in names:
            rows = []
            for place, setting in enumerate(STUDIES[name].settings()):
                found = [numbers for part in waiting.pop((name, place)) for numbers in part.result()]
                rows.append((setting, averages(found)))
                print(f"{time.monotonic() - start:6.0f} s  {name} {place + 1}/{len(STUDIES[name].settings())}", file=sys.stderr, flush=True)
            print(markdown(STUDIES[name], rows), flush=True)
            failures += sum(missed(setting, means) for setting, means in rows)
    return failures


def main() -> int:
    """Reads the command line; 0 where all targets are met, else 1."""
    parser = argparse.ArgumentParser(description="Simulation studies of the statistics; see the head of this file.")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs per setting (default {RUNS})")
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=list(STUDIES), metavar="NAME", help=f"studies: {', '.join(STUDIES)}")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1), help="default 2")
    arguments = parser.parse_args()
    failures = run(arguments.only, arguments.runs, arguments.processes)
    print(
        f"\n{arguments.runs} runs per setting: the error of 95 % is {100 * math.sqrt(0.95 * 0.05 / arguments.runs):.2f} % (one standard deviation)."
    )
    print(f"{failures} targets missed" if failures else "all targets met")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
