"""Ask no more views than an interval needs: which docs and views are asked.

Pure; NumPy and SciPy.

RCI of a set of cells is 1 - sum(M) / sum(F), where F is what a doc's full image scores and M what its best cell scores.
The docs stand in an order given by hashes. The first of them are asked whole (the pilot). The others are asked in
blocks. In a block, each doc has two steps: its full image, and then its cells, until one of each set earns the most
that any doc's gold earns. Each doc has one hash u in (0, 1); it takes a step exactly if u is no larger than the step's
probability. The probability of the second step may depend on F. All probabilities and all predictions come from earlier
blocks only. So what the answers say of all docs has no bias, whatever was predicted (``stats.sampled``).

Source: Neyman (1938), Contribution to the Theory of Sampling Human Populations, for rates in two steps.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lmms_patch.stats.intervals import normal_quantile
from lmms_patch.stats.resample import LEVEL, Array, Bools, Ints
from lmms_patch.stats.sampled import Ends, Sampled, Target, interval

Wanted = tuple[Ints, Ints]
"""Views to ask for: their docs, and their numbers among a doc's views (0 is the full image)."""
Asks = Generator[Wanted, Array, None]
"""Yields views to ask for; wants to be sent their scores, in the same order, nan where a view has none."""

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
LEAST_ROUND = 16
"""How many views are asked at once, at least: where few docs are left, several cells of each. Why: models answer in batches."""
MOST_LOST = 0.1
"""Share of docs without a score in the pilot above which no doc is left out."""
_LEVELS = (0.5, 1 - 1e-9)
"""What splits F, as a share of full marks, into the three levels that have rates of their own."""
MOST_KINDS = 9
"""How many kinds of questions have predictions of their own; the others share one."""
_TINY, _EVERYTHING = 1e-9, 1e12
_SHRINK = 10.0
"""With how many docs of the average a level's variance and cost are mixed."""


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
    kinds: Ints | None = None
    shapes: tuple[tuple[int, int], ...] = ()

    @property
    def views(self) -> int:
        """How many views a doc has."""
        return 1 + sum(self.cells)

    @property
    def places(self) -> list[slice]:
        """Of each set, where its cells are among the views of a doc."""
        return [slice(end - count, end) for count, end in zip(self.cells, 1 + np.cumsum(self.cells), strict=True)]

    @property
    def may_stop(self) -> Bools:
        """Whether a cell with the gold's marks is surely the doc's best, shape (docs,): no doc has a gold that earns more."""
        return self.marks >= 1 - _TINY

    def blocks(self) -> list[Ints]:
        """Return the docs of the pilot and of each block; blocks never split a cluster."""
        n, pilot = len(self.order), min(self.pilot, len(self.order))
        cuts = [pilot, *(pilot + (n - pilot) * np.cumsum(BLOCKS)).round().astype(int)]
        own = self.clusters[self.order]
        last = np.flatnonzero(np.r_[own[1:] != own[:-1], True]) + 1
        ends = [0, *(int(last[np.searchsorted(last, min(cut, n))]) if cut else 0 for cut in cuts)]
        return [self.order[low:high] for low, high in itertools.pairwise(ends)]


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

    def rates(self) -> _Rates:
        """Return the rates with the least variance per call, over all sets."""
        levels = zip(self.share, self.finish.mean(axis=1), self.cost, strict=True)
        image, finish = best_rates(float(self.image.mean()), [*levels])
        return _Rates(self, image, np.array(finish))


@dataclass(frozen=True)
class _Rates:
    """The rates of the two steps before they are multiplied by the plan's scale.

    Attributes:
        table: what the rates were made of.
        image: the rate of the image.
        finish: shape (levels,), the rate of the cells, by the level of F.
    """

    table: _Table
    image: float
    finish: Array

    def probabilities(self, scale: float) -> tuple[float, Array]:
        """Return the probabilities of both steps: of the image, and of the cells by the level of F."""
        image = float(_probability(scale * self.image, FLOOR_OF_IMAGE))
        return image, np.minimum(image, _probability(scale * self.finish))

    def forecast(self, scale: float) -> tuple[Array, float]:
        """Return the variance a doc will add to each set (shape (sets,)), and the calls per doc."""
        table, (image, finish) = self.table, self.probabilities(scale)
        variance = table.image * (1 / image - 1) + (table.share * (1 / finish - 1)) @ table.finish
        return variance, image + float((table.share * table.cost) @ finish)


@dataclass(frozen=True)
class _Block:
    """The plan of a block.

    Attributes:
        docs: its docs.
        rates: of the two steps.
        forms: of F and then of M of each set, the coefficients of the regressions.
        ratio: shape (sets,), M / F of the docs seen before.
        scale: c, which all rates are multiplied by.
    """

    docs: Ints
    rates: _Rates
    forms: list[Array]
    ratio: Array
    scale: float

    def raised(self, keep: float) -> _Block:
        """Return the plan with higher rates, which leave only a share of the variance; a share of 0 asks everything."""
        now = self.rates.forecast(self.scale)[0]

        def enough(factor: float) -> bool:
            return bool((self.rates.forecast(self.scale * factor)[0] <= keep * now).all())

        # a level of F that no doc seen has adds nothing to the forecast, so the forecast never asks it whole
        return dataclasses.replace(self, scale=self.scale * max(1.0, _least(enough)) if keep else _EVERYTHING)


class Answers:
    """How each doc was asked so far, and what it scored, as shares of the scale.

    Attributes:
        docs, goal: see ``Asking``.
        scores: shape (docs, views); nan where a view was not asked, or gave no score.
        asked: shape (docs, views), whether the view was asked.
        block: shape (docs,), the number of the doc's block; 0: the pilot.
        steps, p, guess: as in ``Sampled``.
        before, after, best: as in ``Sampled``, of each set: shape (docs, sets).
        cost: shape (docs,), how many cells were asked until the doc was finished.
        exits: whether a doc's cells are asked only until one earns full marks: no answer earned more than every gold.
    """

    def __init__(self, docs: Docs, goal: Goal) -> None:
        self.docs, self.goal = docs, goal
        n, sets = len(docs.order), len(docs.cells)
        self.scores, self.asked = np.full((n, docs.views), np.nan), np.zeros((n, docs.views), bool)
        self.block, self.steps = np.zeros((2, n), np.intp)
        self.p = np.ones((n, 2))
        self.guess, self.cost = np.zeros((2, n))
        self.before, self.after, self.best = np.zeros((3, n, sets))
        self.exits = True

    @property
    def calls(self) -> int:
        """How many views were asked."""
        return int(self.asked.sum())

    @property
    def lost(self) -> Bools:
        """The docs of which an asked view gave no score: they are in no estimate."""
        return np.asarray((self.asked & np.isnan(self.scores)).any(axis=1))

    def kept(self, docs: Ints | None) -> Ints:
        """Return some docs (None: all) without the lost."""
        every = np.arange(len(self.steps)) if docs is None else docs
        return every[~self.lost[every]]

    def sampled(self, g: int, docs: Ints | None = None) -> Sampled:
        """Return how some docs were asked, and what they scored on set number g, as shares of the scale.

        Without docs that are lost.
        """
        kept = self.kept(docs)
        return Sampled(
            np.nan_to_num(self.scores[kept, 0]),
            self.best[kept, g],
            self.steps[kept],
            self.p[kept],
            self.guess[kept],
            self.before[kept, g],
            self.after[kept, g],
        )

    def interval(self, g: int, docs: Ints | None = None, target: Target | None = None) -> Ends:
        """Return RCI of set number g with its interval.

        Args:
            g: the number of the set.
            docs: the docs that it rests on; None: all docs, when all is asked.
            target: what the interval is of; None: the goal's.
        """
        kept = self.kept(docs)
        return interval(self.sampled(g, kept), target or self.goal.target, self.docs.clusters[kept], self.goal.level)

    def looks(self, docs: Ints) -> list[Ends]:
        """Estimate the index of each set from the docs of the finished blocks, with its interval."""
        out = []
        for g in range(len(self.docs.cells) if len(self.kept(docs)) else 0):
            found, wider = self.interval(g, docs), self.interval(g, docs, "population")
            # The docs of later blocks differ from those seen as a second sample does.
            later = math.sqrt(1 - len(docs) / len(self.docs.order))
            half = math.hypot(found.half, wider.half * later) if later else found.half
            out.append(Ends(found.value, found.value - half, found.value + half, wider.df))
        return out

    def ask(self, docs: Ints, views: ArrayLike) -> Asks:
        """Ask some views of docs, except views asked before."""
        views = np.broadcast_to(views, docs.shape)
        new = ~self.asked[docs, views]
        if new.any():
            at = docs[new], views[new]
            self.scores[at] = yield at
            self.asked[at] = True

    def ask_whole(self, docs: Ints) -> Asks:
        """Ask some docs whole."""
        yield from self.ask(np.repeat(docs, self.docs.views), np.tile(np.arange(self.docs.views), len(docs)))
        self.steps[docs] = 2
        for g, place in enumerate(self.docs.places):
            self.best[docs, g] = np.nan_to_num(self.scores[docs, place].max(axis=1))
        self.watch_golds(docs)

    def watch_golds(self, docs: Ints) -> None:
        """Note whether an answer to some docs earns more than every gold.

        Then a cell that earns a gold's marks need not be the best.
        """
        self.exits = self.exits and not bool((np.nan_to_num(self.scores[docs]) > 1 + _TINY).any())

    def finish(self, docs: Ints, best: Array, cost: Array) -> None:
        """Note what docs scored on the best cell of each set, and how many cells were asked."""
        self.best[docs], self.cost[docs] = np.where(np.isfinite(best), best, 0.0), cost

    def take_step(self, asked: Ints, plan: _Block, told: Array) -> Ints:
        """Note what a plan says of its docs once their images were asked, and return the docs whose cells are next.

        Args:
            asked: the docs whose image was asked.
            plan: the plan.
            told: shape (docs, d), what predictions rest on.
        """
        image, finish = plan.rates.probabilities(plan.scale)
        self.guess[plan.docs], self.before[plan.docs] = _predicted(told[plan.docs], plan.forms)
        self.p[plan.docs], self.steps[plan.docs], self.steps[asked] = image, 0, 1
        full = np.clip(np.nan_to_num(self.scores[asked, 0]), 0, 1)
        self.after[asked] = _after(told[asked], full, plan.forms)
        self.p[asked, 1] = finish[np.searchsorted(_LEVELS, full, "right")]
        last: Ints = asked[self.docs.u[asked] <= self.p[asked, 1]]
        self.steps[last] = 2
        return last


class Search:
    """Asks docs their cells set by set, the most promising first, until a cell of the set earns full marks.

    Which cells are promising is learned from the pilot.

    Attributes:
        told: shape (docs, d), what is known of each doc before it is asked: its kind.

    Args:
        answers: those so far; the pilot was asked whole.
        pilot: its docs.
    """

    def __init__(self, answers: Answers, pilot: Ints) -> None:
        docs = answers.docs
        self._answers, self._docs = answers, docs
        pilot, n = answers.kept(pilot), len(answers.steps)
        self._right = np.full((n, len(docs.cells)), -1)
        """Shape (docs, sets), the first cell asked that earned full marks; -1 where there is none."""
        self._strength: list[Array] = []
        self._pull: list[Array] = []
        kinds = np.zeros(n, np.intp) if docs.kinds is None else np.minimum(docs.kinds, MOST_KINDS)
        most = int(kinds.max(initial=0)) + 1
        told = [np.ones(n), *(kinds == kind for kind in range(1, most))]
        for g, (place, cells) in enumerate(zip(docs.places, docs.cells, strict=True)):
            known = answers.scores[pilot, place]
            of_all = known.mean(axis=0) if len(pilot) else np.full(cells, 0.5)
            count = np.bincount(kinds[pilot], minlength=most)[:, None]
            sums = np.zeros((most, cells))
            np.add.at(sums, kinds[pilot], known)
            rate = np.clip((sums + _SHRINK * of_all) / (count + _SHRINK), 0.01, 0.99)
            strength = np.log(rate / (1 - rate))[kinds]
            features, near = np.stack([np.ones_like(strength), strength], axis=2), self._near(g, pilot)
            own, pull = features.shape[2], np.zeros(near.shape[2])
            if len(pilot) and own + len(pull) > 2:
                told_of = np.concatenate([features[pilot], near], axis=2).reshape(-1, own + len(pull))
                weights = logistic(told_of, np.clip(known.ravel(), 0, 1))
                strength, pull = features @ weights[:own], weights[own:]
            self._strength.append(strength)
            self._pull.append(pull)
            self._note_right(g, pilot, self._order(g, pilot))
        self.told = np.column_stack(told)

    def ask(self, docs: Ints) -> Asks:
        """Ask the cells of some docs."""
        answers, sets = self._answers, self._docs.cells
        best, count = np.full((len(docs), len(sets)), -math.inf), np.zeros(len(docs))
        may_stop = self._docs.may_stop[docs]
        for g, (place, cells) in enumerate(zip(self._docs.places, sets, strict=True)):
            order, turn = self._order(g, docs), 0
            while turn < cells and len(at := np.flatnonzero(~(answers.exits & may_stop & (best[:, g] >= 1 - _TINY)))):
                views = place.start + order[at, turn : turn + max(1, LEAST_ROUND // len(at))]
                yield from answers.ask(np.repeat(docs[at], views.shape[1]), views.ravel())
                answers.watch_golds(docs)
                best[at, g] = np.fmax(best[at, g], np.fmax.reduce(answers.scores[docs[at][:, None], views], axis=1))
                count[at] += views.shape[1]
                turn += views.shape[1]
            self._note_right(g, docs, order)
        answers.finish(docs, best, count)

    def cost(self, whole: Ints) -> Array:
        """Return how many cells of docs asked whole were needed until a cell earned full marks, summed over sets."""
        stops, cost = self._answers.exits & self._docs.may_stop[whole], np.zeros(len(whole))
        for g, cells in enumerate(self._docs.cells):
            cost += np.where(stops, self._note_right(g, whole, self._order(g, whole)), cells)
        return cost

    def _order(self, g: int, docs: Ints) -> Ints:
        """Order the cells of set number g of some docs, the most promising first; shape (docs, cells)."""
        strength = self._strength[g][docs] + self._near(g, docs) @ self._pull[g]
        return np.asarray(np.argsort(-strength, axis=1, kind="stable"))

    def _near(self, g: int, docs: Ints) -> Array:
        """Return how near cells of set number g of some docs are to right cells of earlier sets.

        Evidence that one cell of 3 x 3 shows lies in the few cells of 4 x 4 that overlap it. The two numbers are the
        share of a cell that lies in such cells, on average, and in the last of them.

        Returns:
            Shape (docs, cells, 2); (docs, cells, 0) where there are no earlier sets, or the shapes of grids are not
            known.
        """
        cells, shapes = self._docs.cells[g], self._docs.shapes
        if not g or not shapes:
            return np.zeros((len(docs), cells, 0))
        mean, last = np.zeros((2, len(docs), cells))
        for h in range(g):
            right, share = self._right[docs, h], overlap(shapes[g], shapes[h])
            found = np.where(right[:, None] >= 0, share.T[right], 0.0)
            mean += found / g
            last = np.where(right[:, None] >= 0, found, last)
        return np.stack([mean, last], axis=2)

    def _note_right(self, g: int, docs: Ints, order: Ints) -> Ints:
        """Note the first full-mark cell of set number g in each doc's order, and return how many cells were asked until then.

        A doc without such a cell has -1, and all of its cells were asked.
        """
        scores = np.take_along_axis(self._answers.scores[docs, self._docs.places[g]], order, axis=1)
        right = scores >= self._docs.marks[docs, None] - _TINY
        found, first = right.any(axis=1), right.argmax(axis=1)
        self._right[docs, g] = np.where(found, order[np.arange(len(docs)), first], -1)
        return np.where(found, first + 1, self._docs.cells[g])


class Planner:
    """Plans the blocks: which share of their docs is asked, from the answers to earlier blocks.

    Args:
        answers: those so far.
        told: shape (docs, d), what predictions rest on (``Search.told``).
    """

    def __init__(self, answers: Answers, told: Array) -> None:
        self._answers, self._goal, self._told = answers, answers.goal, told
        self._fold = (FOLDS * ((answers.docs.u * 2**20) % 1)).astype(int)

    def plan(self, seen: Ints, docs: Ints, left: int, used: Array) -> _Block:
        """Plan a block: fit two regressions for each set, and choose the asking rates by their errors.

        The errors are those on docs that a regression was not fitted to, so nothing rests on the regressions being
        right.

        Args:
            seen: the docs of earlier blocks.
            docs: the docs of the block.
            left: how many docs earlier blocks leave.
            used: shape (sets,), variance of earlier blocks: a block pays for what these got wrong.
        """
        answers = self._answers
        known = answers.kept(seen[answers.steps[seen] >= 1])
        done, full = answers.steps[known] >= 2, np.clip(answers.scores[known, 0], 0, 1)
        best, told, fold = np.clip(answers.best[known], 0, 1), self._told[known], self._fold[known]
        ratio = _ratios(self.parts(seen))

        def fitted(on: Bools) -> list[Array]:
            rest = [logistic(_with(told[on & done], full[on & done]), best[on & done, g]) for g in range(best.shape[1])]
            return [logistic(told[on], full[on]), *rest]

        guess, (before, after) = np.zeros(len(known)), np.zeros((2, *best.shape))
        for k in range(FOLDS):
            at, forms = fold == k, fitted(fold != k)
            guess[at], before[at] = _predicted(told[at], forms)
            after[at] = _after(told[at], full[at], forms)
        image = (after - before - ratio * (full - guess)[:, None]) ** 2
        finish, level = (best - after) ** 2, np.searchsorted(_LEVELS, full, "right")
        table = _table(image, finish, level, done, answers.cost[known])
        rates, allowed = table.rates(), (self.allowed(seen, ratio) - used) / max(1, left)
        forms = fitted(np.ones(len(known), bool))
        return _Block(docs, rates, forms, ratio, self._scale(rates, allowed, left))

    def _scale(self, rates: _Rates, allowed: Array, left: int) -> float:
        """Return c, by which a block multiplies its rates: small enough to be cheap, large enough for the goal.

        Args:
            rates: the block's.
            allowed: shape (sets,), the variance that a doc may add.
            left: how many docs earlier blocks leave.
        """
        scale = _least(lambda c: bool((rates.forecast(c)[0] <= allowed).all()))
        if self._goal.budget is not None:
            rest = self._goal.budget - self._answers.calls
            # so that chance does not exceed it
            each = (rest - 3 * math.sqrt(max(rest, 0) * float(rates.table.cost.mean()))) / max(1, left)
            scale = min(scale, _least(lambda c: rates.forecast(c)[1] > each))
        return scale

    def parts(self, docs: Ints | None) -> list[Sampled]:
        """Return of each set how some docs (None: all) were asked, and what they scored."""
        return [self._answers.sampled(g, docs) for g in range(len(self._answers.docs.cells))]

    def variances(self, docs: Ints | None, ratio: Array) -> Array:
        """Return of each set the variance of sum(M^) - r sum(F^) over some docs (None: all), given all answers.

        Shape (sets,).
        """
        return np.array([part.variances(1, -r).sum() for part, r in zip(self.parts(docs), ratio, strict=True)])

    def allowed(self, seen: Ints | None, ratio: Array, aim: float = AIM) -> Array:
        """Return, for each set, the variance of sum(M^) - r sum(F^) within the goal, estimated from the docs seen."""
        n, out = len(self._answers.docs.order), []
        for part, r in zip(self.parts(seen), ratio, strict=True):
            whole = aim * self._goal.half * part.whole.mean() * n / normal_quantile((1 + self._goal.level) / 2)
            out.append(whole**2 - (0.0 if self._goal.target == "benchmark" else self._between(part, seen, r)))
        return np.array(out)

    def _between(self, part: Sampled, seen: Ints | None, ratio: float) -> float:
        """Return the variance left by a full pass: the variance between docs of the population, from the docs seen.

        What docs of one cluster share counts only when all docs are seen: from a part of them it is so uncertain that
        steering by it ends runs at lucky moments.
        """
        kept, docs = self._answers.kept(seen), self._answers.docs
        z, factor = part.cells - ratio * part.whole, len(docs.order) / max(1, len(kept))
        own = float((z**2).sum())
        between = max(0.0, own - float(part.variances(1, -ratio).sum()))
        if len(kept) == len(docs.order) - int(self._answers.lost.sum()):
            places = np.unique(docs.clusters[kept], return_inverse=True)[1]
            between += max(0.0, float((np.bincount(places, z) ** 2).sum()) - own)
        return float(factor * between)


class Asking:
    """Decides which views are asked, from the docs' hashes and the answers so far.

    The same answers give the same decisions.

    Attributes:
        answers: how each doc was asked so far, and what it scored.
        looks: RCI of each set with its interval, as far as the finished blocks tell.
        too_many_lost: whether so many docs of the pilot have no score that no doc is left out.
        plans: the plans of the blocks after the pilot, as far as they are made.

    Args:
        docs: the docs.
        goal: when enough is asked; None: ask all docs, but of each doc no more cells than it needs (early exit).
    """

    def __init__(self, docs: Docs, goal: Goal | None) -> None:
        self.goal, self.answers = goal, Answers(docs, goal or Goal(0.0))
        self.looks: list[Ends] = []
        self.too_many_lost = False
        self.plans: list[_Block] = []
        self._blocks = docs.blocks()
        self._before, self._left, self._each = 0, len(docs.order), float(docs.views)

    def expected_calls(self) -> int:
        """Return how many calls to expect in all, as planned from the finished blocks."""
        return max(self.answers.calls, round(self._before + self._left * self._each))

    def rounds(self) -> Asks:
        """Yield the views to ask next; the caller sends back their scores, in the same order, nan for a view without a score."""
        answers, (pilot, *blocks) = self.answers, self._blocks
        yield from answers.ask_whole(pilot)
        search, kept = Search(answers, pilot), answers.kept(pilot)
        answers.cost[kept] = search.cost(kept)
        self._before, self._left = answers.calls, self._left - len(pilot)
        self.looks = answers.looks(pilot)
        self.too_many_lost = bool(answers.lost[pilot].mean() > MOST_LOST) if len(pilot) else True
        # of docs that were not asked nothing would be known
        if self.goal is None or (self.too_many_lost and self.goal.budget is None):
            self._each = 1 + float(answers.cost[pilot].mean()) if len(pilot) else float(answers.docs.views)
            rest = np.concatenate(blocks)
            answers.block[rest] = 1
            yield from answers.ask(rest, 0)
            answers.steps[rest] = 2
            yield from search.ask(rest)
            if not answers.exits:  # a later answer beats all golds: what was left out is asked after all
                yield from search.ask(rest)
            self.looks = answers.looks(answers.docs.order)
            return
        planner, seen, used = Planner(answers, search.told), pilot, np.zeros(len(answers.docs.cells))
        for number, docs in enumerate(blocks, 1):
            answers.block[docs] = number
            if len(docs):
                plan = planner.plan(seen, docs, self._left, used)
                self.plans.append(plan)
                self._before, self._each = answers.calls, plan.rates.forecast(plan.scale)[1]
                yield from self._run(search)
                used += planner.variances(docs, plan.ratio)
                self._left -= len(docs)
            seen = np.concatenate([seen, docs])
            self.looks = answers.looks(seen)
        self._before, self._left = answers.calls, 0
        yield from self._top_up(search, planner)

    def _run(self, search: Search, again: bool = False) -> Asks:
        """Ask the docs of the last block as its plan says; again: those of all blocks.

        Asked again with a larger scale, they ask only for what is new.
        """
        answers, plans = self.answers, self.plans if again else self.plans[-1:]
        first = [plan.docs[answers.docs.u[plan.docs] <= plan.rates.probabilities(plan.scale)[0]] for plan in plans]
        yield from answers.ask(np.concatenate(first), 0)
        last = [answers.take_step(asked, plan, search.told) for asked, plan in zip(first, plans, strict=True)]
        yield from search.ask(np.concatenate(last))

    def _top_up(self, search: Search, planner: Planner) -> Asks:
        """Ask some more where the interval came out too wide. The same hashes decide, so no answer is lost."""
        answers, goal = self.answers, self.answers.goal
        # an answer beats all golds: no doc is finished before all its cells are asked
        if self.plans and not answers.exits and goal.budget is None:
            yield from self._run(search, again=True)
        for _ in range(MOST_TOP_UPS):
            half = max((answers.interval(g).half for g in range(len(answers.docs.cells))), default=0.0)
            few = (answers.steps < 2).mean() <= FEW_LEFT
            if (half <= goal.half and not few) or goal.budget is not None or answers.p.min() == 1:
                return
            ratio = _ratios(planner.parts(None))
            allowed, used = planner.allowed(None, ratio, aim=1.0), planner.variances(None, ratio)
            keep = 0.0
            if not few and (allowed > 0).all():
                keep = min(float((allowed / (1.03 * used + _TINY)).min()), (goal.half / half) ** 2, 0.95)
            self.plans = [plan.raised(keep) for plan in self.plans]
            yield from self._run(search, again=True)
            self.looks = answers.looks(answers.docs.order)


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


def pilot_of(wanted: int | None, docs: int) -> int:
    """Return how many docs are asked whole: the pilot.

    Args:
        wanted: as many as somebody wants; None: 300, or a tenth of the docs, at least 100.
        docs: how many there are.

    >>> pilot_of(None, 12_578), pilot_of(None, 1_500), pilot_of(None, 60), pilot_of(20, 60)
    (300, 150, 60, 20)
    """
    return min(docs, min(300, max(100, docs // 10)) if wanted is None else wanted)


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


def _ratios(parts: Sequence[Sampled]) -> Array:
    """Return M / F of each set, 1 where nothing scores; shape (sets,)."""
    sums = ((part.cells.sum(), part.whole.sum()) for part in parts)
    return np.array([cells / whole if whole > 0 else 1.0 for cells, whole in sums])


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
