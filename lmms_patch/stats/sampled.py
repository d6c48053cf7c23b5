"""What the answers of a sample say of all docs: RCI with its interval, where views of some docs were left out.

Pure; NumPy and SciPy.

A doc has two steps: its full image, which scores F, and its cells, of which the best scores M. It takes a step with a known
probability, W0 and W1; R0 and R1 tell whether it did. f predicts F; m and m' predict M before and after the image was
asked. So

    F^ = f + R0 (F - f) / W0        M^ = m + R0 (m' - m) / W0 + R1 (M - m') / W1

have the means of F and M whatever the predictions are: a bad prediction costs calls, and moves no number.

Sources: Horvitz & Thompson (1952) and Särndal, Swensson & Wretman, Model Assisted Survey Sampling (1992), 6.3, for the
estimates; Fieller (1954), Some Problems in Interval Estimation, for the ratio.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from lmms_patch.stats.intervals import (
    FEW_CLUSTERS,
    TOO_FEW_CLUSTERS,
    UNSEEN_OF_PAIRS,
    effective_clusters,
)
from lmms_patch.stats.resample import LEVEL, Array, Bools, Ints

Target = Literal["benchmark", "population"]
FEWEST_DOCS = 3.0
"""The half-width of a benchmark's interval in docs, at least: none among many is seen by chance where three have it (the rule of three), so where
few docs are right, a narrower interval is one that a run stopped at because it saw none."""


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
    steps: Ints
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
        return Ends(*[math.nan] * 4)
    value, deciding, few = 1 - a / b, math.inf, False
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
        return Ends(value, -math.inf, math.inf, df)
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
        return Ends(value, -math.inf, math.inf, df)
    return Ends(value, value - up, value + down, df)


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
