"""Ask no more views than an interval needs: which docs and views are asked, and what their answers say of all docs.

Pure; NumPy and SciPy.

RCI of a set of cells is 1 - sum(M) / sum(F), where F is what a doc's full image scores and M what its best cell scores.
The docs stand in an order given by hashes. The first of them are asked whole (the pilot). The others are asked in
blocks. In a block, each doc has two steps: its full image, and then its cells, until one of each set earns the most
that any doc's gold earns. Each doc has one hash u in (0, 1); it takes a step exactly if u is no larger than the step's
probability. The probability of the second step may depend on F. All probabilities and all predictions come from earlier
blocks only. So

    F^ = f + R0 (F - f) / W0        M^ = m + R0 (m' - m) / W0 + R1 (M - m') / W1

have the means of F and M whatever the predictions f, m (before the image was asked) and m' (after it) are: a bad
prediction costs calls, and moves no number. R0 and R1 tell whether a step was taken, W0 and W1 are the probabilities.

Sources: Horvitz & Thompson (1952) and Särndal, Swensson & Wretman, Model Assisted Survey Sampling (1992), 6.3, for the
estimates; Neyman (1938), Contribution to the Theory of Sampling Human Populations, for rates in two steps; Fieller
(1954), Some Problems in Interval Estimation, for the ratio.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmms_patch.stats.intervals import (
    FEW_CLUSTERS,
    TOO_FEW_CLUSTERS,
    UNSEEN_OF_PAIRS,
    effective_clusters,
    normal_quantile,
)
from lmms_patch.stats.resample import LEVEL, Array

Target = Literal["benchmark", "population"]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
Wanted = tuple[Ints, Ints]
"""Views to ask for: their docs, and their numbers among a doc's views (0 is the full image)."""

BLOCKS = (0.1, 0.2, 0.3, 0.4)
"""The share of the docs after the pilot that each block has. Early blocks are small, because their rates rest on few answers."""
FLOOR_OF_IMAGE, FLOOR, FINISH = 0.1, 0.03, 0.7
"""The least probability of the image, so that FIP and the gate are known too, and of the cells: no doc weighs more than 33 others. Above ``FINISH`` a
step is always taken: it would save little."""
AIM = 0.98
"""The share of the wanted half-width that the plan aims at."""
FOLDS = 5
MOST_TOP_UPS = 6
FEW_LEFT = 0.02
"""Share of the docs up to which those that are not finished are asked after all: they cost little, and the number is then exact."""
FEWEST_DOCS = 3.0
"""The half-width of a benchmark's interval in docs, at least: none among many is seen by chance where three have it (the rule of three), so where
few docs are right, a narrower interval is one that a run stopped at because it saw none."""
LEAST_ROUND = 16
"""How many views are asked at once, at least: where few docs are left, several cells of each. Why: models answer in batches."""
MOST_LOST = 0.1
"""Share of docs without a score in the pilot above which no doc is left out."""
MOST_OF_EARLIER = 3
"""How many earlier runs feed the predictions."""
_LEVELS = (0.5, 1 - 1e-9)
"""What splits F, as a share of full marks, into the three levels that have rates of their own."""
MOST_KINDS = 9
"""How many kinds of questions have predictions of their own; the others share one."""
_TINY, _EVERYTHING = 1e-9, 1e12
_SHRINK = 10.0
"""With how many docs of the average a level's variance and cost are mixed."""


# --- what a sampled doc says ----------------------------------------------------------------------


@dataclass(frozen=True)
class Sampled:
    """How docs were asked, and what they scored on a set of cells.

    All arrays have shape (docs,) unless they say otherwise.

    Attributes:
        full, best: F and M; any number where a doc did not take the step.
        steps: how many steps the doc took: 0, 1 (the image) or 2 (its cells, too).
        p: shape (docs, 2), the probability of each step; 1 in the pilot.
        guess: f, the prediction of F.
        before, after: m and m', the predictions of M before and after the image was asked.
    """

    full: Array
    best: Array
    steps: NDArray[np.intp]
    p: Array
    guess: Array
    before: Array
    after: Array

    @property
    def whole(self) -> Array:
        """F^, shape (docs,): an unbiased estimate of F, which may lie outside its scale."""
        return self.guess + self._errors[:, 0] / self.p[:, 0]

    @property
    def cells(self) -> Array:
        """M^, shape (docs,): an unbiased estimate of M, which may lie outside its scale."""
        return np.asarray(self.before + (self._errors[:, 1:] / self.p).sum(axis=1))

    @property
    def _errors(self) -> Array:
        """Shape (docs, 3): F - f, m' - m and M - m'; 0 for steps that were not taken."""
        image, cells = self.steps >= 1, self.steps >= 2
        return np.column_stack(
            [
                np.where(image, self.full - self.guess, 0),
                np.where(image, self.after - self.before, 0),
                np.where(cells, self.best - self.after, 0),
            ]
        )

    def variances(self, cells: float, whole: float) -> Array:
        """Return an unbiased estimate of each doc's part of the variance of ``cells`` * sum(M^) + ``whole`` * sum(F^), given all answers.

        A doc has one u, so its steps are nested: steps k <= l have the covariance (1 / W_k - 1) D_k D_l, which is seen
        only if l was taken.
        """
        errors = self._errors
        first, second = cells * errors[:, 1] + whole * errors[:, 0], cells * errors[:, 2]
        image, last = (self.steps >= 1) / self.p[:, 0], (self.steps >= 2) / self.p[:, 1]
        spread = 1 / self.p - 1
        return np.asarray(
            image * spread[:, 0] * first**2 + last * (spread[:, 1] * second**2 + 2 * spread[:, 0] * first * second)
        )

    def take(self, docs: Ints | Bools) -> Sampled:
        """Return some of the docs."""
        return Sampled(*(getattr(self, field.name)[docs] for field in dataclasses.fields(self)))


@dataclass(frozen=True)
class Ends:
    """RCI with its interval.

    Attributes:
        value: RCI.
        low, high: the interval's ends.
        df: degrees of freedom of the quantile; few heavy docs make them few, and the interval wide.
    """

    value: float
    low: float
    high: float
    df: float

    @property
    def half(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


def interval(
    docs: Sampled,
    target: Target = "benchmark",
    clusters: ArrayLike | None = None,
    level: float = LEVEL,
    most: float = 1.0,
) -> Ends:
    """Return RCI of a set of cells with its interval, by Fieller's theorem with Student's quantile.

    Args:
        docs: all docs of the benchmark, also those that were not asked.
        target: ``benchmark``: what a full pass over these docs would print. ``population``: RCI of the docs that these
        are a sample of.
        clusters: of ``population``, the cluster number of each doc; None: docs are independent.
        level: nominal coverage, 0..1.
        most: the most that a doc can score.

    Returns:
        All nan where no doc scores anything. Infinite ends where the sum of F cannot be told from 0. Of the benchmark
        also where the half-width is less than ``FEWEST_DOCS`` docs, or than the docs that are not finished. Of the
        population also under 10 effective clusters (``stats.intervals``); and, as long as docs are left out, where
        there were under 50 if docs of one cluster were all alike. A run would else stop where large clusters happen to
        agree, and such intervals hold too seldom.
    """
    from scipy.stats import gamma
    from scipy.stats import t as student

    cells, whole = docs.cells, docs.whole
    a, b, n = float(cells.sum()), float(whole.sum()), len(whole)
    if not b > 0:
        return Ends(math.nan, math.nan, math.nan, math.nan)
    deciding, few = math.inf, False
    if target == "benchmark":

        def parts(x: float, y: float) -> Array:
            return docs.variances(x, y)
    else:
        places = np.arange(n) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
        groups = int(places.max()) + 1
        sizes = np.bincount(places)
        deciding = clusters_that_decide(cells - a / b * whole, places)
        few = effective_clusters(sizes) < TOO_FEW_CLUSTERS or (
            docs.p.min() < 1 and effective_clusters(sizes**2) < FEW_CLUSTERS
        )

        def parts(x: float, y: float) -> Array:
            sums = np.bincount(places, x * (cells - a / n) + y * (whole - b / n))
            return np.asarray(sums**2 * groups / max(1, groups - 1))

    terms = parts(1, -a / b)
    mm, ff = float(parts(1, 0).sum()), float(parts(0, 1).sum())
    mf = (float(parts(1, 1).sum()) - mm - ff) / 2
    total = float(terms.sum())
    df = max(5.0, 2 * total**2 / float((terms**2).sum())) if total > 0 else 1e6
    df = max(1.0, min(df, deciding - 1))
    q = float(student.ppf((1 + level) / 2, df)) ** 2
    done = int((docs.steps >= 2).sum())
    if b * b <= q * ff or not done or few:
        return Ends(1 - a / b, -math.inf, math.inf, df)
    # Where all docs seen are alike, nothing varies, but docs that were not asked may differ. ``stats.intervals`` adds
    # half a doc of random weight, so here are as many docs as that weighs at the interval's level, each standing for as
    # many docs as one that was sampled; of the benchmark no more than were left out.
    sampled = docs.p.min(axis=1) < 1
    left_out, found = int(sampled.sum()), int((sampled & (docs.steps >= 2)).sum())
    unseen = float(gamma.ppf((1 + level) / 2, UNSEEN_OF_PAIRS)) * max(
        left_out / max(1, found), 1.0 if target == "population" else 0.0
    )
    if target == "benchmark":
        unseen = min(unseen * (1 - found / max(1, left_out)), left_out - found)
    unseen *= most
    up = math.hypot(_root(a, b, mm, mf, ff, q, 1) - a / b, unseen / b)
    down = math.hypot(a / b - _root(a, b, mm, mf, ff, q, -1), a / b - a / (b + unseen))
    missing = float((docs.steps < 2).sum())
    if target == "benchmark" and b * (up + down) / 2 < min(FEWEST_DOCS, missing) * most:
        return Ends(1 - a / b, -math.inf, math.inf, df)
    return Ends(1 - a / b, 1 - a / b - up, 1 - a / b + down, df)


def clusters_that_decide(errors: Array, places: Ints) -> float:
    """Return how many equal clusters would tell the variance as surely as these do: (sum V)^2 / sum V^2.

    A cluster of s docs adds V = s (1 + rho (s - 1)), where rho is how alike docs of one cluster are: with rho 0 few
    large clusters decide little, and with rho 1 everything. rho is one standard error above what is seen, since few
    large clusters tell it badly.

    Source: Bell & McCaffrey (2002), Bias Reduction in Standard Errors for Linear Regression with Multi-Stage Samples.

    Args:
        errors: shape (docs,), M - r F of each doc.
        places: shape (docs,), cluster numbers from 0.
    """
    sizes = np.bincount(places)
    shared = np.bincount(places, errors) ** 2 - np.bincount(places, errors**2)
    pairs = float((sizes * (sizes - 1.0)).sum()) * float((errors**2).mean())
    rho = min(1.0, max(0.0, (float(shared.sum()) + math.sqrt(float((shared**2).sum()))) / pairs)) if pairs > 0 else 0.0
    return effective_clusters(sizes * (1 + rho * (sizes - 1)))


def _root(a: float, b: float, mm: float, mf: float, ff: float, q: float, side: int) -> float:
    """Return the upper (``side`` 1) or lower (-1) end of Fieller's interval of a / b: a root of (a - r b)^2 = q (mm - 2 r mf + r^2 ff)."""
    top, middle, bottom = a * a - q * mm, a * b - q * mf, b * b - q * ff
    return (middle + side * math.sqrt(max(middle**2 - bottom * top, 0.0))) / bottom


# --- the plan ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """When enough is asked.

    Attributes:
        half: the half-width of the interval that is wanted; 0 asks everything.
        target: what the interval is of (``interval``).
        budget: the most calls for the docs' own views; None: as many as the width needs.
        level: the interval's nominal coverage, 0..1.
    """

    half: float
    target: Target = "benchmark"
    budget: int | None = None
    level: float = LEVEL


@dataclass(frozen=True)
class Docs:
    """The docs of a benchmark, before any answer is known.

    Attributes:
        order: the docs in the order of their hashes, docs of one cluster side by side.
        u: shape (docs,), a hash of each in (0, 1).
        clusters: shape (docs,), cluster numbers.
        marks: shape (docs,), what each doc's gold earns as a share of the scale, 1 where no gold earns more; nan where
            unknown. All cells are asked of a doc whose gold earns less than 1, since a cell may earn more than that
            gold.
        cells: of each set, how many cells a doc has.
        pilot: how many docs are asked whole.
        earlier: shape (runs, docs, views), what earlier runs scored, as shares of the scale; nan where they do not say.
        kinds: shape (docs,), numbers from 0 of the kinds of questions, most frequent first; None: there is one kind.
        shapes: of each set, how many rows and columns its cells have; empty: not known, so that no set says where to
            look in the next.
    """

    order: Ints
    u: Array
    clusters: Ints
    marks: Array
    cells: tuple[int, ...]
    pilot: int
    earlier: Array | None = None
    kinds: Ints | None = None
    shapes: tuple[tuple[int, int], ...] = ()

    @property
    def views(self) -> int:
        """How many views a doc has."""
        return 1 + sum(self.cells)

    def blocks(self) -> list[Ints]:
        """Return the docs of the pilot and of each block; blocks never split a cluster."""
        n, pilot = len(self.order), min(self.pilot, len(self.order))
        cuts = [pilot, *(pilot + (n - pilot) * np.cumsum(BLOCKS)).round().astype(int)]
        own = self.clusters[self.order]
        last = np.flatnonzero(np.r_[own[1:] != own[:-1], True]) + 1
        ends = [0, *(int(last[np.searchsorted(last, min(cut, n))]) if cut else 0 for cut in cuts)]
        return [self.order[low:high] for low, high in itertools.pairwise(ends)]


@dataclass
class _Block:
    """The plan of a block.

    Attributes:
        docs: its docs.
        scale: c, which all rates are multiplied by.
        image: the rate of the image at c = 1.
        finish: shape (levels,), the rate of the cells at c = 1, by the level of F.
        forms: of F and then of M of each set, the coefficients of the regressions.
        table: what the rates were made of.
    """

    docs: Ints
    image: float
    finish: Array
    forms: list[Array]
    table: _Table
    scale: float = 1.0


@dataclass(frozen=True)
class _Table:
    """What earlier blocks say of the variances and costs of the two steps.

    Attributes:
        image: shape (sets,), variance that asking the image removes.
        share: shape (levels,), share of docs by the level of F.
        finish: shape (levels, sets), variance that asking the cells removes.
        cost: shape (levels,), cells asked until a doc is finished.
    """

    image: Array
    share: Array
    finish: Array
    cost: Array


_TYPICAL = (
    (
        _Table(
            np.array([0.203]),
            np.array([0.4, 0.0, 0.6]),
            np.array([[0.249], [0.249], [0.06]]),
            np.array([5.9, 9.0, 2.4]),
        ),
        0.25,
    ),
    (
        _Table(
            np.array([0.056]),
            np.array([0.4, 0.0, 0.6]),
            np.array([[0.206], [0.206], [0.222]]),
            np.array([7.5, 9.0, 5.2]),
        ),
        0.3,
    ),
)
"""Of two benchmarks of 3 x 3 cells: what their pilots say, and the mean square of M - r F."""
_TYPICAL_SCORE = 0.6


class Asking:
    """Decides which views are asked, from the docs' hashes and the answers so far.

    The same answers give the same decisions.

    Args:
        docs: the docs.
        goal: when enough is asked; None: ask all docs, but of each doc no more cells than it needs (early exit).
    """

    def __init__(self, docs: Docs, goal: Goal | None) -> None:
        self.docs, self.goal = docs, goal
        n, sets = len(docs.order), len(docs.cells)
        self.answers = np.full((n, docs.views), np.nan)
        """Shape (docs, views), scores as shares of the scale; nan where a view was not asked, or gave no score."""
        self.asked = np.zeros((n, docs.views), bool)
        self.block = np.zeros(n, np.intp)
        self.steps = np.zeros(n, np.intp)
        self.p = np.ones((n, 2))
        self.guess, self.before, self.after = np.zeros(n), np.zeros((n, sets)), np.zeros((n, sets))
        self.best, self._cost = np.zeros((n, sets)), np.zeros(n)
        self.exits = True
        """Whether a doc's cells are asked only until one earns full marks."""
        self.looks: list[Ends] = []
        """RCI of each set with its interval, as far as the finished blocks tell."""
        self.too_many_lost = False
        """Whether so many docs of the pilot have no score that no doc is left out."""
        self.plans: list[_Block] = []
        """The plans of the blocks after the pilot, as far as they are made."""
        self._blocks = docs.blocks()
        self._right = np.full((n, sets), -1)
        """Shape (docs, sets), the first cell asked that earned full marks; -1 where there is none."""
        self._places = [slice(1 + sum(docs.cells[:g]), 1 + sum(docs.cells[: g + 1])) for g in range(sets)]
        self._ratio = np.ones(sets)
        self._finished, self._before, self._left, self._each = 0, 0, len(docs.order), float(docs.views)
        self._may_stop = docs.marks >= 1 - _TINY
        """Shape (docs,), whether a cell that earns the gold's marks is surely the doc's best: no gold of another doc earns more."""
        self._fold = (FOLDS * ((docs.u * 2**20) % 1)).astype(int)

    # --- what is known ----------------------------------------------------------------------------

    @property
    def calls(self) -> int:
        """How many views were asked."""
        return int(self.asked.sum())

    @property
    def lost(self) -> Bools:
        """The docs of which an asked view gave no score: they are in no estimate."""
        return np.asarray((self.asked & np.isnan(self.answers)).any(axis=1))

    def sampled(self, g: int, docs: Ints | None = None) -> Sampled:
        """Return how some docs were asked, and what they scored on set number g, as shares of the scale.

        Without docs that are lost.
        """
        kept = np.arange(len(self.steps)) if docs is None else docs
        kept = kept[~self.lost[kept]]
        full = np.nan_to_num(self.answers[kept, 0])
        return Sampled(
            full,
            self.best[kept, g],
            self.steps[kept],
            self.p[kept],
            self.guess[kept],
            self.before[kept, g],
            self.after[kept, g],
        )

    def interval(self, g: int) -> Ends:
        """Return RCI of set number g with its interval, when all is asked."""
        goal, kept = self.goal or Goal(0.0), np.flatnonzero(~self.lost)
        return interval(self.sampled(g, kept), goal.target, self.docs.clusters[kept], goal.level)

    def _look(self) -> None:
        """Estimate the index of each set from the finished blocks, with its interval."""
        docs = np.concatenate(self._blocks[: self._finished])
        kept, goal = docs[~self.lost[docs]], self.goal or Goal(0.0)
        self.looks = []
        for g in range(len(self._places) if len(kept) else 0):
            found, wider = (
                interval(self.sampled(g, kept), target, self.docs.clusters[kept], goal.level)
                for target in (goal.target, "population")
            )
            # The docs of later blocks differ from those seen as a second sample does.
            later = math.sqrt(1 - len(docs) / len(self.docs.order))
            half = math.hypot(found.half, wider.half * later) if later else found.half
            self.looks.append(Ends(found.value, found.value - half, found.value + half, wider.df))

    def expected_calls(self) -> int:
        """Return how many calls to expect in all, as planned from the finished blocks."""
        return max(self.calls, round(self._before + self._left * self._each))

    # --- asking -----------------------------------------------------------------------------------

    def rounds(self) -> Generator[Wanted, Array, None]:
        """Yield what to ask next; wants to be sent the scores, in the same order, nan where a view has none."""
        pilot, *blocks = self._blocks
        yield from self._whole(pilot)
        self._order_cells(pilot)
        self._finished, self._before, self._left = 1, self.calls, len(self.docs.order) - len(pilot)
        self._look()
        self.too_many_lost = bool(self.lost[pilot].mean() > MOST_LOST) if len(pilot) else True
        if self.goal is None or (
            self.too_many_lost and self.goal.budget is None
        ):  # of docs that were not asked nothing would be known
            self._each = 1 + float(self._cost[pilot].mean()) if len(pilot) else float(self.docs.views)
            yield from self._finish_all(np.concatenate(blocks))
            if not self.exits:  # a later answer beats all golds: what was left out is asked after all
                yield from self._cells(np.concatenate(blocks))
            self._finished = len(self._blocks)
            self._look()
            return
        used = np.zeros(len(self._ratio))
        for number, docs in enumerate(blocks, 1):
            self.block[docs] = number
            if len(docs):
                plan = self._plan(np.concatenate(self._blocks[:number]), docs)
                plan.scale = self._scale(plan, used)
                self.plans.append(plan)
                self._before, self._each = self.calls, _forecast(plan, plan.scale)[1]
                yield from self._run(plan)
                used += [self.sampled(g, docs).variances(1, -ratio).sum() for g, ratio in enumerate(self._ratio)]
                self._left -= len(docs)
            self._finished = number + 1
            self._look()
        self._before, self._left = self.calls, 0
        yield from self._top_up()

    def _ask(self, docs: Ints, views: ArrayLike) -> Generator[Wanted, Array, None]:
        """Ask some views of docs, except views asked before."""
        views = np.broadcast_to(views, docs.shape)
        new = ~self.asked[docs, views]
        if new.any():
            at = docs[new], views[new]
            self.answers[at] = yield at
            self.asked[at] = True

    def _whole(self, docs: Ints) -> Generator[Wanted, Array, None]:
        """Ask some docs whole."""
        yield from self._ask(np.repeat(docs, self.docs.views), np.tile(np.arange(self.docs.views), len(docs)))
        self.steps[docs] = 2
        for g, place in enumerate(self._places):
            self.best[docs, g] = np.nan_to_num(self.answers[docs, place].max(axis=1))
        self.exits = not self._beats_golds(docs)

    def _beats_golds(self, docs: Ints) -> bool:
        """Return whether an answer to some docs earns more than every gold.

        Then a cell that earns a gold's marks need not be the best.
        """
        return bool((np.nan_to_num(self.answers[docs]) > 1 + _TINY).any())

    def _finish_all(self, docs: Ints) -> Generator[Wanted, Array, None]:
        """Ask all docs, each until a cell earns full marks."""
        self.block[docs] = 1
        yield from self._ask(docs, 0)
        self.steps[docs] = 2
        yield from self._cells(docs)

    def _cells(self, docs: Ints) -> Generator[Wanted, Array, None]:
        """Ask docs their cells set by set, the most promising first, until a cell of the set earns full marks."""
        best, count = np.full((len(docs), len(self._places)), -math.inf), np.zeros(len(docs))
        may_stop = self._may_stop[docs]
        for g, (place, cells) in enumerate(zip(self._places, self.docs.cells, strict=True)):
            order, turn = self._order_of(g, docs), 0
            while turn < cells and len(at := np.flatnonzero(~(self.exits & may_stop & (best[:, g] >= 1 - _TINY)))):
                views = place.start + order[at, turn : turn + max(1, LEAST_ROUND // len(at))]
                yield from self._ask(np.repeat(docs[at], views.shape[1]), views.ravel())
                self.exits = self.exits and not self._beats_golds(docs)
                best[at, g] = np.fmax(best[at, g], np.fmax.reduce(self.answers[docs[at][:, None], views], axis=1))
                count[at] += views.shape[1]
                turn += views.shape[1]
            self._note_right(g, docs, order)
        self.best[docs] = np.where(np.isfinite(best), best, 0.0)
        self._cost[docs] = count

    # --- predicting -------------------------------------------------------------------------------

    def _order_cells(self, pilot: Ints) -> None:
        """Learn from the pilot and from earlier runs which cells of a doc are promising.

        And gather what predictions rest on.
        """
        pilot = pilot[~self.lost[pilot]]
        earlier = self._earlier()
        self._strength: list[Array] = []
        self._pull: list[Array] = []
        self._order: list[Ints] = []
        kinds = (
            np.zeros(len(self.steps), np.intp) if self.docs.kinds is None else np.minimum(self.docs.kinds, MOST_KINDS)
        )
        told = [np.ones(len(self.steps)), *(kinds == kind for kind in range(1, int(kinds.max(initial=0)) + 1))]
        for g, (place, cells) in enumerate(zip(self._places, self.docs.cells, strict=True)):
            known = self.answers[pilot, place]
            of_all = known.mean(axis=0) if len(pilot) else np.full(cells, 0.5)
            count, sums = np.zeros((kinds.max(initial=0) + 1, 1)), np.zeros((kinds.max(initial=0) + 1, cells))
            np.add.at(count, kinds[pilot], 1)
            np.add.at(sums, kinds[pilot], known)
            rate = np.clip((sums + _SHRINK * of_all) / (count + _SHRINK), 0.01, 0.99)
            strength = np.log(rate / (1 - rate))[kinds]
            each = [
                one for run in earlier for one in (run[:, place], *(_spread(run[:, at], cells) for at in (0, place)))
            ]
            features, near = np.stack([np.ones_like(strength), strength, *each], axis=2), self._near(g, pilot)
            own, pull = features.shape[2], np.zeros(near.shape[2])
            if len(pilot) and own + len(pull) > 2:
                told_of = np.concatenate([features[pilot], near], axis=2).reshape(-1, own + len(pull))
                weights = logistic(told_of, np.clip(known.ravel(), 0, 1))
                strength, pull = features @ weights[:own], weights[own:]
            self._strength.append(strength)
            self._pull.append(pull)
            self._order.append(np.zeros((len(self.steps), cells), np.intp))
            self._note_right(g, pilot, self._order_of(g, pilot))
            told += [
                one for run in earlier for one in (run[:, 0], run[:, place].max(axis=1), run[:, place].mean(axis=1))
            ]
        self._told = np.column_stack(told)
        self._cost[pilot] = self._cost_of(pilot)

    def _order_of(self, g: int, docs: Ints) -> Ints:
        """Order the cells of set number g of some docs, the most promising first; shape (docs, cells)."""
        strength = self._strength[g][docs] + self._near(g, docs) @ self._pull[g]
        self._order[g][docs] = np.argsort(-strength, axis=1, kind="stable")
        return self._order[g][docs]

    def _near(self, g: int, docs: Ints) -> Array:
        """Return how near cells of set number g of some docs are to right cells of earlier sets.

        Evidence that one cell of 3 x 3 shows lies in the few cells of 4 x 4 that overlap it. The two numbers are the
        share of a cell that lies in such cells, on average, and in the last of them.

        Returns:
            Shape (docs, cells, 2); (docs, cells, 0) where there are no earlier sets, or the shapes of grids are not
            known.
        """
        if not g or not self.docs.shapes:
            return np.zeros((len(docs), self.docs.cells[g], 0))
        mean, last = np.zeros((2, len(docs), self.docs.cells[g]))
        for h in range(g):
            right, share = self._right[docs, h], overlap(self.docs.shapes[g], self.docs.shapes[h])
            found = np.where(right[:, None] >= 0, share.T[right], 0.0)
            mean += found / g
            last = np.where(right[:, None] >= 0, found, last)
        return np.stack([mean, last], axis=2)

    def _note_right(self, g: int, docs: Ints, order: Ints) -> None:
        """Note the first full-mark cell of set number g in each doc's order; -1 for docs without."""
        scores = np.take_along_axis(self.answers[docs, self._places[g]], order, axis=1)
        right = scores >= self.docs.marks[docs, None] - _TINY
        first = np.take_along_axis(order, right.argmax(axis=1)[:, None], axis=1)[:, 0]
        self._right[docs, g] = np.where(right.any(axis=1), first, -1)

    def _earlier(self) -> Array:
        """Return what earlier runs scored, shape (runs, docs, views), with the mean of a view where a run does not say."""
        if self.docs.earlier is None or not len(self.docs.earlier):
            return np.zeros((0, 0, 0))
        runs = self.docs.earlier[:MOST_OF_EARLIER]
        means = (
            np.nan_to_num(np.nanmean(runs, axis=1, keepdims=True))
            if np.isfinite(runs).any()
            else np.zeros((len(runs), 1, runs.shape[2]))
        )
        return np.where(np.isfinite(runs), runs, means)

    def _cost_of(self, whole: Ints) -> Array:
        """Return how many cells of docs asked whole were needed until a cell earned full marks, summed over sets."""
        cost = np.zeros(len(whole))
        for g, place in enumerate(self._places):
            scores = np.take_along_axis(self.answers[whole, place], self._order[g][whole], axis=1)
            right = scores >= self.docs.marks[whole, None] - _TINY
            cost += np.where(
                right.any(axis=1) & self.exits & self._may_stop[whole], right.argmax(axis=1) + 1, self.docs.cells[g]
            )
        return cost

    def _plan(self, seen: Ints, docs: Ints) -> _Block:
        """Plan a block: fit two regressions for each set, and choose the asking rates by their errors.

        The errors are those on docs that a regression was not fitted to, so nothing rests on the regressions being
        right.

        Args:
            seen: the docs of earlier blocks.
            docs: the docs of the block.
        """
        known = seen[(self.steps[seen] >= 1) & ~self.lost[seen]]
        done, full = self.steps[known] >= 2, np.clip(self.answers[known, 0], 0, 1)
        best, told, fold = np.clip(self.best[known], 0, 1), self._told[known], self._fold[known]
        sums = [
            (sampled.cells.sum(), sampled.whole.sum())
            for sampled in (self.sampled(g, seen) for g in range(len(self._places)))
        ]
        self._ratio = np.array([cells / whole if whole > 0 else 1.0 for cells, whole in sums])

        def fitted(on: Bools) -> list[Array]:
            rest = [logistic(_with(told[on & done], full[on & done]), best[on & done, g]) for g in range(best.shape[1])]
            return [logistic(told[on], full[on]), *rest]

        guess, before, after = np.zeros(len(known)), np.zeros(best.shape), np.zeros(best.shape)
        for k in range(FOLDS):
            at, forms = fold == k, fitted(fold != k)
            guess[at], before[at] = _predicted(told[at], forms)
            after[at] = _after(told[at], full[at], forms)
        image = (after - before - self._ratio * (full - guess)[:, None]) ** 2
        finish, level = (best - after) ** 2, np.searchsorted(_LEVELS, full, "right")
        table = _table(image, finish, level, done, self._cost[known])
        first, rates = best_rates(
            float(table.image.mean()), [*zip(table.share, table.finish.mean(axis=1), table.cost, strict=True)]
        )
        return _Block(docs, first, np.array(rates), fitted(np.ones(len(known), bool)), table)

    # --- rates ------------------------------------------------------------------------------------

    def _scale(self, plan: _Block, used: Array) -> float:
        """Return c, by which a block multiplies its rates: small enough to be cheap, large enough for the goal.

        Args:
            plan: the block's plan.
            used: shape (sets,), variance of the blocks before it: a block pays for what earlier blocks got wrong.
        """
        assert self.goal is not None
        seen = np.concatenate(self._blocks[: self._finished])
        allowed = (self._allowed(seen) - used) / max(1, self._left)
        scale = _least(lambda c: bool((_forecast(plan, c)[0] <= allowed).all()))
        if self.goal.budget is not None:
            rest = self.goal.budget - self.calls
            each = (rest - 3 * math.sqrt(max(rest, 0) * float(plan.table.cost.mean()))) / max(
                1, self._left
            )  # so that chance does not exceed it
            scale = min(scale, _least(lambda c: _forecast(plan, c)[1] > each))
        return scale

    def _allowed(self, seen: Ints, aim: float = AIM) -> Array:
        """Return, for each set, the variance of sum(M^) - r sum(F^) within the goal, estimated from the docs seen."""
        assert self.goal is not None
        n, out = len(self.docs.order), []
        for g, ratio in enumerate(self._ratio):
            kept = seen[~self.lost[seen]]
            part = self.sampled(g, kept)
            whole = aim * self.goal.half * part.whole.mean() * n / normal_quantile((1 + self.goal.level) / 2)
            out.append(whole**2 - (0.0 if self.goal.target == "benchmark" else self._between(part, kept, ratio)))
        return np.array(out)

    def _between(self, part: Sampled, kept: Ints, ratio: float) -> float:
        """Return the variance left by a full pass: the variance between docs of the population, from the docs seen.

        What docs of one cluster share counts only when all docs are seen: from a part of them it is so uncertain that
        steering by it ends runs at lucky moments.
        """
        z, factor = part.cells - ratio * part.whole, len(self.docs.order) / max(1, len(kept))
        own = float((z**2).sum())
        between = max(0.0, own - float(part.variances(1, -ratio).sum()))
        if len(kept) == len(self.docs.order) - int(self.lost.sum()):
            places = np.unique(self.docs.clusters[kept], return_inverse=True)[1]
            between += max(0.0, float((np.bincount(places, z) ** 2).sum()) - own)
        return float(factor * between)

    def _run(self, *plans: _Block) -> Generator[Wanted, Array, None]:
        """Ask the docs of some blocks as their plans say.

        Asked again with a larger scale, they ask only for what is new.
        """
        first = [
            plan.docs[self.docs.u[plan.docs] <= _probability(plan.scale * plan.image, FLOOR_OF_IMAGE)] for plan in plans
        ]
        yield from self._ask(np.concatenate(first), 0)
        second = []
        for plan, asked in zip(plans, first, strict=True):
            image = _probability(plan.scale * plan.image, FLOOR_OF_IMAGE)
            finish = np.minimum(image, _probability(plan.scale * plan.finish))
            self.guess[plan.docs], self.before[plan.docs] = _predicted(self._told[plan.docs], plan.forms)
            self.p[plan.docs], self.steps[plan.docs], self.steps[asked] = image, 0, 1
            full = np.clip(np.nan_to_num(self.answers[asked, 0]), 0, 1)
            self.after[asked] = _after(self._told[asked], full, plan.forms)
            self.p[asked, 1] = finish[np.searchsorted(_LEVELS, full, "right")]
            second.append(asked[self.docs.u[asked] <= self.p[asked, 1]])
        self.steps[np.concatenate(second)] = 2
        yield from self._cells(np.concatenate(second))

    def _top_up(self) -> Generator[Wanted, Array, None]:
        """Ask some more where the interval came out too wide. The same hashes decide, so no answer is lost."""
        assert self.goal is not None
        everyone, sets = np.arange(len(self.steps)), range(len(self._ratio))
        if (
            not self.exits and self.goal.budget is None
        ):  # an answer beats all golds: no doc is finished before all its cells are asked
            yield from self._run(*self.plans)
        for _ in range(MOST_TOP_UPS):
            half, few = max((self.interval(g).half for g in sets), default=0.0), (self.steps < 2).mean() <= FEW_LEFT
            if (half <= self.goal.half and not few) or self.goal.budget is not None or self.p.min() == 1:
                return
            parts = [self.sampled(g) for g in sets]
            self._ratio = np.array([part.cells.sum() / part.whole.sum() for part in parts])
            allowed = self._allowed(everyone, aim=1.0)
            used = np.array([part.variances(1, -ratio).sum() for part, ratio in zip(parts, self._ratio, strict=True)])
            more = not few and bool((allowed > 0).all())
            keep = (
                min(float((allowed / (1.03 * used + _TINY)).min()), (self.goal.half / half) ** 2, 0.95) if more else 0.0
            )
            for plan in (
                self.plans
            ):  # a level of F that no doc seen has adds nothing to the forecast, so the forecast never asks it whole
                plan.scale = plan.scale * _raised(plan, keep) if keep else _EVERYTHING
            yield from self._run(*self.plans)
            self._look()


# --- parts of the plan ------------------------------------------------------------------------------


def overlap(shape: tuple[int, int], other: tuple[int, int]) -> Array:
    """Return the share of each cell of a grid inside each cell of a second grid, shape (cells, cells of the second).

    Args:
        shape: rows and columns of the grid.
        other: the same of the other grid.

    >>> overlap((1, 2), (1, 3)).round(2).tolist()
    [[0.67, 0.33, 0.0], [0.0, 0.33, 0.67]]
    """

    def along(count: int, others: int) -> Array:
        ends, other_ends = (np.linspace(0, 1, k + 1) for k in (count, others))
        common = np.minimum(ends[1:, None], other_ends[1:]) - np.maximum(ends[:-1, None], other_ends[:-1])
        return np.asarray(count * common.clip(0))

    rows, columns = (along(*pair) for pair in zip(shape, other, strict=True))
    return np.asarray(np.kron(rows, columns), float)


def logistic(features: Array, scores: Array, turns: int = 8) -> Array:
    """Return the coefficients of a ridge logistic regression; scores may be any shares of 0..1.

    Args:
        features: shape (rows, d).
        scores: shape (rows,).
        turns: Newton steps at most.
    """
    out = np.zeros(features.shape[1])
    for _ in range(turns):
        p = _share(features @ out)
        weight = p * (1 - p) + 1e-6
        step = np.linalg.solve((features.T * weight) @ features + np.eye(len(out)), features.T @ (scores - p) - out)
        out = out + step
        if np.abs(step).max(initial=0.0) < 1e-4:
            break
    return out


def best_rates(image: float, finish: list[tuple[float, float, float]]) -> tuple[float, list[float]]:
    """Return the two steps' rates with the least variance per call (Neyman 1938), up to a common factor.

    Args:
        image: the variance that asking the image removes; it costs one call.
        finish: by the level of F: its share of docs, the variance that asking the cells removes, and how many calls
            they cost.

    Returns:
        The rate of the image, and that of the cells by level; none of these is above that of the image.
    """
    top, cost = image, 1.0
    for share, variance, calls in sorted(finish, key=lambda level: -level[1] / level[2]):
        if variance / calls > top / cost:
            top, cost = top + share * variance, cost + share * calls
    first = math.sqrt(top / cost)
    return first, [min(first, math.sqrt(variance / calls)) for _, variance, calls in finish]


def typical_calls(docs: int, cells: int, pilot: int, goal: Goal) -> tuple[int, int]:
    """Return how many calls a goal most often takes, before anything is known of model and benchmark: the least and the most.

    They are those of the made-up benchmarks of ``benchmarks/asking.py`` on which the design does best and worst.

    Args:
        docs: how many docs there are.
        cells: how many cells a doc has, in all sets.
        pilot: how many docs are asked whole.
        goal: when enough is asked.
    """
    left = max(0, docs - pilot)

    def calls(table: _Table, spread: float) -> int:
        table = dataclasses.replace(table, cost=table.cost * cells / 9)
        first, rates = best_rates(
            float(table.image[0]), [*zip(table.share, table.finish[:, 0], table.cost, strict=True)]
        )
        plan = _Block(np.zeros(0, np.intp), first, np.array(rates), [], table)
        allowed = (AIM * goal.half * _TYPICAL_SCORE * docs / normal_quantile((1 + goal.level) / 2)) ** 2
        allowed -= docs * spread * (goal.target == "population")
        scale = _least(lambda c: bool(_forecast(plan, c)[0][0] * left <= allowed))
        return round(pilot * (1 + cells) + left * _forecast(plan, scale)[1])

    out = [calls(table, spread) for table, spread in _TYPICAL]
    return min(out), max(out)


def _table(image: Array, finish: Array, level: Ints, done: Bools, cost: Array) -> _Table:
    """Return what squared errors on seen docs say of variances and costs.

    Args:
        image: shape (docs, sets), squared errors without the image.
        finish: shape (docs, sets), squared errors with the image; of docs that are ``done``.
        level: shape (docs,), the level of F.
        done: shape (docs,), whether the cells were asked.
        cost: shape (docs,), how many cells were asked.
    """
    levels, sets = len(_LEVELS) + 1, image.shape[1]
    share, variance, calls = np.zeros(levels), np.full((levels, sets), 1e-9), np.full(levels, 9.0)
    for k in range(levels):
        on = (level == k) & done
        share[k] = (level == k).mean() if len(level) else 0.0
        if on.any():
            weight = on.sum() + _SHRINK
            variance[k] = (finish[on].sum(axis=0) + _SHRINK * finish[done].mean(axis=0)) / weight
            calls[k] = (cost[on].sum() + _SHRINK * cost[done].mean()) / weight
    unseen = 0.25 / (len(image) + 1)  # where all docs seen are alike: one that is not may come
    return _Table(
        (image.mean(axis=0) if len(image) else np.ones(sets)) + unseen, share, variance + unseen, np.maximum(calls, 1.0)
    )


def _forecast(plan: _Block, scale: float) -> tuple[Array, float]:
    """Return the variance a doc of a block will add to each set (shape (sets,)), and the calls per doc."""
    table = plan.table
    image = float(_probability(scale * plan.image, FLOOR_OF_IMAGE))
    finish = np.minimum(image, _probability(scale * plan.finish))
    variance = table.image * (1 / image - 1) + (table.share * (1 / finish - 1)) @ table.finish
    return variance, image + float((table.share * table.cost) @ finish)


def _raised(plan: _Block, keep: float) -> float:
    """Return the factor on a block's rates to leave only a share ``keep`` of the variance."""
    now = _forecast(plan, plan.scale)[0]
    return max(1.0, _least(lambda factor: bool((_forecast(plan, plan.scale * factor)[0] <= keep * now).all())))


def _probability(rate: ArrayLike, floor: float = FLOOR) -> Array:
    """Clip a rate to the bounds of a probability; rounded, to get the same decisions on all machines."""
    bounded = np.round(np.clip(rate, floor, 1), 6)
    return np.asarray(np.where(bounded > FINISH, 1.0, bounded))


def _least(enough: Callable[[float], bool]) -> float:
    """Return the least sufficient scale; if no scale suffices, a very large scale, which asks everything."""
    low, high = 1e-3, 1e5
    if enough(low):
        return low
    if not enough(high):
        return high
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _predicted(told: Array, forms: list[Array]) -> tuple[Array, Array]:
    """Return the predictions before the image is asked: of F, shape (docs,), and of M, shape (docs, sets)."""
    guess = _share(told @ forms[0])
    right, wrong = (_after(told, np.full(len(told), full), forms) for full in (1.0, 0.0))
    return guess, guess[:, None] * right + (1 - guess)[:, None] * wrong


def _after(told: Array, full: Array, forms: list[Array]) -> Array:
    """Return the predictions of M after the image was asked, shape (docs, sets)."""
    return np.column_stack([_share(_with(told, full) @ form) for form in forms[1:]])


def _with(told: Array, full: Array) -> Array:
    """Return the features of M: those of the doc, F, and F times the last of the doc's."""
    return np.column_stack([told, full, full * told[:, -1]])


def _share(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -30, 30))))


def _spread(scores: Array, cells: int) -> Array:
    """Return the mean score of each doc, once for each of its cells."""
    mean = scores if scores.ndim == 1 else scores.mean(axis=1)
    return np.broadcast_to(mean[:, None], (len(mean), cells))
