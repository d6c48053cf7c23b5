"""The luck-corrected index: luck, what the best of several tries earns by guessing, is estimated and removed.

NumPy only.

For X in {FIP, MPP}, with X⁰ what the answers earn without the right picture (the null),

    κ_X = (X − X⁰) / (ceiling − X⁰)        RCI_adj = 1 − κ_MPP / κ_FIP

This is the form of Cohen's κ (1960). κ is computed per answer class and combined with the same doc weights in numerator
and denominator. X⁰ is measured: for some docs, it is made of the model's own answers on another doc's image. 1 − κ is then
a ratio of losses, own over wrong image, each with the weight that the doc's other answers give it (``stats.habits``). It
is right if a wrong image is answered as a cell that shows nothing is, or if a guess takes the gold for an option like the
others. ``Tests`` are of both.

``luck_ceiling`` is the analytic bound beside them, 1 − (1 − p)^tries: n² tries on the cells of an image, k on the
segments of a clip.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lmms_patch.stats import habits
from lmms_patch.stats.bounds import Count, Number, Share
from lmms_patch.stats.intervals import TOO_FEW_CLUSTERS, effective_clusters, summarise, would_do
from lmms_patch.stats.resample import (
    DRAWS,
    LEVEL,
    Array,
    Bools,
    Estimate,
    Ints,
    Seed,
    generator,
    totals,
    weighted_sums,
)

NO_VARIETY, SIGNAL_SE = 0.02, 2.0
"""The least room above the null, as a share of the metric's scale; and the standard errors by which FIP must exceed FIP⁰."""
SATURATED_SE = 3.0
"""The number of standard errors by which the ceiling must exceed MPP⁰.

A null rests on few docs. With 4, yes/no at n = 2 has no index in 30 % of runs, and the other runs are lucky draws, off by −0.1 to
−0.2; with 3 they are off by at most 0.05 (docs/statistics.md)."""

DIFFERS = 0.99
"""The level of the tests of the assumptions."""
LEAST_TOLD, FEW_OF_TWO = 20, 0.1
"""The fewest docs on either side that a test rests on; and the share of docs of which habits say nothing (``Tests.two``) that may stay though wrong
images are answered otherwise."""
MISREAD = 0.03
"""The share of right answers that are not read as the gold from which on nothing rests on how wrong answers are read. Where a fifth of a guesser's
answers on cells is not read, and wrong images are left without an answer, RCI_adj reads .36 for .50."""
APART, TILT, SILENCE, SHORT = 0.05, 0.02, 0.1, 0.3
"""The least that counts: how far apart two ways to count docs that say every option lie, as an index; and what ``Tests.tilt``, ``Tests.silence`` (and
``Tests.elsewhere``) and ``Tests.short`` exceed."""
ALL = 0.9
"""The share of docs that say every option from which on too few are left to tell how many know nothing."""
MOST_NAMED = 64
"""The most options of a doc of which it is counted how often each is named; luck among more is small."""
UNLIKE = "wrong images are answered otherwise than cells that show nothing"
LEAST_ASKED = 50
"""The fewest docs asked on a wrong image that make a class of their own: with fewer, ceiling − MPP⁰ is mostly noise."""
PRIOR = 0.5
"""Jeffreys' pseudo-count: each draw adds Gamma(½) docs at each corner of the scale.

Without it, a null of 0 in the data would be 0 in every draw, as if it were certain."""


@dataclass(frozen=True)
class Habits:
    """Which of their options docs name (``stats.habits``).

    Attributes:
        options: shape (docs,), M; 0 where the doc has no options, or it is not known which of them an answer names.
        gold: shape (docs,), the place of the gold among the options, from 0; any value where there are none.
        cells: shape (docs, most options), how often the cells name each option.
        full: shape (docs,), the place of the option that the full image's answer names; −1: none.
        tries: shape (docs,), the number of cells.
        null_cells: as ``cells``, of the wrong image; any values where the doc was not asked on one.
        null_full: as ``full``, of the whole wrong image.
        elsewhere: shape (docs, 4), the mean loss, as a share of full marks, of the answers on the full image, the best
            cell, the whole wrong image and its best cell, over the doc's own gold and those of docs that are asked
            alike; nan where that is not known; None: nowhere.
        varied: shape (docs,), whether the views of the wrong image got different answers; None: not known.
        misread: the share of answers with full marks that are not read as the gold, 0..1.
    """

    options: Ints
    gold: Ints
    cells: Ints
    full: Ints
    tries: Ints
    null_cells: Ints
    null_full: Ints
    elsewhere: Array | None = None
    varied: Bools | None = None
    misread: float = 0.0


@dataclass(frozen=True)
class Measured:
    """The input of the measured correction: rows of an aggregation's form (``forms.Form.rows``).

    Attributes:
        full: shape (docs, d): rows of the full image.
        best: shape (docs, d): rows of the best cell.
        ceiling: shape (docs, d): rows of the gold answer.
        null_full: shape (docs, d): rows of the whole wrong image; any values where the doc was not asked on one.
        null_best: shape (docs, d): rows of the best cell of the wrong image; any values where the doc was not asked on
        one.
        asked: shape (docs,), whether the doc was asked on a wrong image.
        classes: shape (docs,), numbers from 0 of the answer classes.
        labels: names of the classes.
        corners: rows of a doc that scores nothing and of a doc with full marks, shape (2, d); None where the form has
        no such rows.
        stands_for: how many docs a doc stands for whose cells were asked; above 1 in a run that left docs out.
        habits: how docs answer; None where that is not known, or the form is no mean of scores.
    """

    full: Array
    best: Array
    ceiling: Array
    null_full: Array
    null_best: Array
    asked: Bools
    classes: Ints
    labels: tuple[str, ...]
    corners: Array | None = None
    stands_for: float = 1.0
    habits: Habits | None = None


@dataclass(frozen=True)
class ClassLuck:
    """The numbers of one answer class, on the metric's own scale; nan where not defined.

    Attributes:
        label: such as ``mc4``.
        docs: number of docs.
        state: ``used``, ``saturated``, ``no variety``, or ``not asked``.
        fip: FIP.
        mpp: MPP.
        ceiling: the metric where every answer is the gold.
        fip0: FIP⁰, the null of FIP.
        mpp0: MPP⁰, the null of MPP.
    """

    label: str
    docs: Count
    state: str
    fip: Number | None
    mpp: Number | None
    ceiling: Number | None
    fip0: Number | None
    mpp0: Number | None


@dataclass(frozen=True)
class Tests:
    """The tests of what the measured correction assumes, each with a 99 % interval.

    Attributes:
        differs: by how much the index with equal weights exceeds RCI_adj.
        silence: by how much more often than cells a wrong image gets an answer that names no option, in docs that never
        say the gold.
        apart: by how much RCI_adj exceeds that in which docs that say every option are counted another way; of docs
        with three options and more.
        tilt: by how much more often than by chance docs name their gold on a wrong image, as a share of the options
        named.
        short: which part is missing of what the cells must score above wrong images, by κ_MPP; of docs with two options
        (``_Weighted.short``).
        two: the share of docs with two options, or with one gold for all docs of as many options, 0..1.
        misread: of ``Habits``.
        elsewhere: by how much less the answers to a wrong image earn under other golds than those to cells, as a share
            of full marks, in docs without options that lose marks.
    """

    differs: Estimate
    silence: Estimate
    apart: Estimate
    tilt: Estimate
    short: Estimate
    two: Share
    misread: Share = 0.0
    elsewhere: Estimate | None = None

    @property
    def unlike(self) -> bool:
        """Whether wrong images are answered otherwise than cells that show nothing."""
        less = self.elsewhere is not None and _beyond(self.elsewhere, SILENCE)
        short = _beyond(self.short, 0) > 0 and (self.short.value or 0) > SHORT
        return bool(_beyond(self.differs, 0) or _beyond(self.silence, SILENCE) or less or short)

    @property
    def said(self) -> str:
        """What is unlike, in a sentence; empty where nothing is."""
        if not self.unlike:
            return ""
        seen = ""
        for test, what, ending in (
            (self.silence, "an answer names no option", " often"),
            (self.elsewhere, "an answer fits other docs' golds", ""),
        ):
            if test is not None and _beyond(test, SILENCE):
                amount, sign = 100 * abs(test.value or 0), (test.value or 0) * (1 if ending else -1)
                seen = f" ({what} {amount:.0f} points {'more' if sign > 0 else 'less'}{ending})"
        return f"{UNLIKE}{seen}: luck is removed by how often such answers would fit other golds"

    @property
    def reason(self) -> str:
        """Why no form of the index is right; empty where one may be."""
        if self.unlike and _beyond(self.tilt, TILT) > 0:
            return f"{UNLIKE}, and the words alone point to the gold"
        if self.unlike and self.misread > MISREAD:
            return f"{UNLIKE}, and {self.misread:.0%} of right answers are not read as the gold, so wrong ones may be misread"
        # then there is no other form
        if self.unlike and self.two > FEW_OF_TWO:
            return UNLIKE
        apart = math.nan if self.apart.value is None else abs(self.apart.value)
        return UNLIKE if self.unlike and not apart <= max(APART, 2 * (self.apart.se or 0)) else ""


@dataclass(frozen=True)
class Luck:
    """The luck-corrected index, and what it was computed from.

    Attributes:
        estimate: RCI_adj with its interval; its reason says why there is none.
        fip0: FIP⁰ over all classes, docs as weights; None where no doc was asked on a wrong image.
        mpp0: MPP⁰ likewise.
        kappa_full: κ_FIP over the used classes; None where there is none.
        kappa_best: κ_MPP over the used classes; None where there is none.
        classes: every class.
        saturated_docs: number of docs of classes that were left out because luck saturates.
        asked: number of docs that were asked on a wrong image.
        tests: of the assumptions; None where it is not known which options docs name.
    """

    LEFT_OUT: ClassVar[tuple[str, ...]] = ("tests",)

    estimate: Estimate
    fip0: Number | None
    mpp0: Number | None
    kappa_full: Number | None
    kappa_best: Number | None
    classes: tuple[ClassLuck, ...]
    saturated_docs: Count
    asked: Count = 0
    tests: Tests | None = None

    @property
    def misleads(self) -> bool:
        """Whether single cells mislead the model: they score less than a wrong picture does (the interval lies above 1)."""
        return self.estimate.low is not None and self.estimate.low > 1


def luck_ceiling(p: Array, tries: int | Ints) -> float:
    """Return what the best of several independent guesses scores: the mean of 1 − (1 − p)^tries.

    Args:
        p: shape (docs,), the probability in 0..1 that a guess is right.
        tries: how many guesses a doc has, or shape (docs,): the cells of its grid.

    >>> round(luck_ceiling(np.array([0.25]), 9), 4)
    0.9249
    """
    return float(np.mean(1 - (1 - np.asarray(p, float)) ** tries))


def measured(
    scores: Measured,
    value: Callable[[Array], Array],
    clusters: Ints | None = None,
    *,
    scale: float = 1.0,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
) -> Luck:
    """Correct the index by what the model's own answers on wrong images earn (the measured null).

    With ``habits``, each loss (ceiling less score) counts with the weight of ``stats.habits``. Then the index is right
    if *either* a wrong picture is answered as a cell that shows nothing is (the weights cancel between the two), *or* a
    habit treats the gold like the other options (each side's weighted losses are its share of docs that know nothing).
    ``Tests.differs`` compares the index with that of equal weights, as Hausman (1978) does.

    Args:
        scores: rows of all docs.
        value: a function from sums of rows of shape (..., d) to the metric, shape (...).
        clusters: numbers from 0 of shape (docs,); None: docs are independent.
        scale: the metric's scale.
        draws: B.
        level: nominal coverage in 0..1.
        seed: of the bootstrap.
    """
    n = len(scores.full)
    groups = n if clusters is None else int(clusters.max()) + 1 if n else 0
    asked = int(scores.asked.sum())
    effective = float(n) if clusters is None else effective_clusters(np.bincount(clusters))
    if effective < TOO_FEW_CLUSTERS:
        reason = f"{groups} clusters are too few{would_do(n, effective)}"
        return dataclasses.replace(_none(n, groups, level, reason), asked=asked)
    classes, labels = _merged(scores)
    kept = [c for c in range(len(labels)) if (scores.asked & (classes == c)).any()]
    plain = _by_class(scores, classes, kept)
    said = scores.habits
    known = said is not None and (
        (said.options > 1).any() or (said.elsewhere is not None and bool(np.isfinite(said.elsewhere).any()))
    )
    weights = None if said is None or not known else _Weighted(scores, said, classes, kept)
    stacked, d = plain if weights is None else np.hstack([plain, weights.columns]), scores.full.shape[1]
    per_cluster, width, stream = totals(stacked, clusters), plain.shape[1], generator(seed)
    drawn, given = weighted_sums(per_cluster, draws, stream), per_cluster.sum(axis=0)[None]
    # a copy, since imagined docs are added in place, and the tests need the sums without them
    with_prior = _with_prior(drawn[:, :width].copy(), plain, scores.corners, d, stream, scores.stands_for)
    beside = None
    if weights is not None:
        sums = ((given, given[:, :width]), (drawn, with_prior))
        by_habit, by_full = (
            tuple(_of_sums(weights.sums(one, prior, how), value, d) for one, prior in sums) for how in (False, True)
        )
        tilt, silence, short, less = (
            tuple(test(one) for one, _ in sums)
            for test in (weights.tilt, weights.silence, weights.short, weights.elsewhere)
        )
        beside = _Beside(
            by_habit, by_full, tilt, silence, short, less, weights.two, 0.0 if said is None else said.misread
        )
    corrected = judge(
        tuple(labels[c] for c in kept),
        _of_sums(given[:, :width], value, d),
        _of_sums(with_prior, value, d),
        n,
        groups,
        effective,
        scale=scale,
        level=level,
        beside=beside,
    )
    return dataclasses.replace(corrected, asked=asked)


def on_lines(
    cells: Measured,
    windows: Measured,
    with_full: tuple[Measured, Measured],
    clusters: Ints | None = None,
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
) -> tuple[Estimate, Estimate]:
    """Return how much more is known once windows between the cells count, and what that makes of the need of the whole image; both luck-corrected.

    With U as in ``needs``, and docs known from the text left out: the first is U(cells) − U(windows), a share of all
    docs. The second is a share of the docs that no cell answers and the full image does, U(cells) − U(cells and full
    image): those of them that a window answers, too. By inclusion and exclusion these are U(cells) − U(cells and full
    image) − U(windows) + U(windows and full image).

    Args:
        cells: the docs with their best cells, of a form that is a mean.
        windows: the same docs with the better of best cell and best window.
        with_full: the same two with the full image among the views.
        clusters: numbers from 0 of shape (docs,); None: docs are independent.
        draws: B.
        level: nominal coverage in 0..1.
        seed: of the bootstrap.

    Returns:
        The second has no value where the interval of the docs that seem to need the whole image reaches 0.
    """
    sample = _Unknown((cells, windows, *with_full), clusters, draws, seed)

    def shares(found: _Lost) -> Array:
        cell, window, cell_full, window_full = found.unknown
        each = [cell - window, cell - cell_full, cell - cell_full - window + window_full]
        return np.stack([(found.docs * found.wrong * one).sum(axis=1) for one in each], axis=1)

    raw, spread = shares(sample.given)[0], shares(sample.drawn)
    rise, whole = (
        sample.share(float(raw[i].clip(0, 1)), spread[:, i] - raw[i] + raw[i].clip(0, 1), level) for i in (0, 1)
    )
    if whole.low is None or whole.low <= 0:
        why = whole.reason or "it is not certain that any doc needs more than a cell"
        return rise, rise.without(why)
    with np.errstate(divide="ignore", invalid="ignore"):
        # single draws may have nothing to divide by
        value, drawn = float(raw[2] / raw[1]), spread[:, 2] / spread[:, 1]
    kept = min(max(value, 0.0), 1.0)
    return rise, sample.share(kept, drawn + kept - value, level)


@dataclass(frozen=True)
class _Lost:
    """What is not known, without luck, by answer class.

    Attributes:
        docs: shape (draws, classes), the share of docs in each class.
        wrong: shape (draws, classes), the losses on the whole wrong image, as a share of full marks.
        unknown: for each set of views, shape (draws, classes): the losses as a share of those on the same views of the
            wrong image.
    """

    docs: Array
    wrong: Array
    unknown: tuple[Array, ...]


class _Unknown:
    """Several sets of views of the same docs, on the data and on each draw."""

    def __init__(self, sets: Sequence[Measured], clusters: Ints | None, draws: int, seed: Seed) -> None:
        first = sets[0]
        self.docs = len(first.full)
        self.groups = self.docs if clusters is None else int(clusters.max()) + 1
        self.effective = float(self.docs) if clusters is None else effective_clusters(np.bincount(clusters))
        classes, labels = _merged(first)
        kept = [c for c in range(len(labels)) if (first.asked & (classes == c)).any()]
        self._stream, self._parts = generator(seed), []
        columns: list[Array] = []
        for one in sets:
            plain = _by_class(one, classes, kept)
            weights = None if one.habits is None else _Weighted(one, one.habits, classes, kept)
            start = sum(part.shape[1] for part in columns)
            columns.append(plain if weights is None else np.hstack([plain, weights.columns]))
            self._parts.append((one, plain, weights, slice(start, start + columns[-1].shape[1])))
        per_cluster = totals(np.hstack(columns), clusters)
        drawn = weighted_sums(per_cluster, draws, self._stream)
        self.given = self._lost(per_cluster.sum(axis=0)[None], prior=False)
        self.drawn = self._lost(drawn, prior=True)

    def _lost(self, sums: Array, *, prior: bool) -> _Lost:
        unknown, wrong = [], np.zeros(0)
        for number, (one, plain, weights, place) in enumerate(self._parts):
            of_class = sums[:, place][:, : plain.shape[1]]
            if prior:
                of_class = _with_prior(of_class.copy(), plain, one.corners, 2, self._stream, one.stands_for)
            whole = of_class if weights is None else weights.sums(sums[:, place], of_class, by_full=False)
            found = _of_sums(whole, lambda part: np.asarray(part[..., 0] / part[..., 1]), 2)
            with np.errstate(divide="ignore", invalid="ignore"):
                unknown.append((1 - found.mpp / found.ceiling) / (1 - found.mpp0 / found.ceiling))
            # the whole wrong image is the same for all sets of views
            if number == 0:
                wrong = 1 - found.fip0 / found.ceiling
        return _Lost(found.docs / found.docs.sum(axis=1, keepdims=True), wrong, tuple(unknown))

    def share(self, value: float, drawn: Array, level: float) -> Estimate:
        """Return a share, 0..1, with its interval."""
        one = summarise(value, drawn, self.docs, self.groups, self.effective, level=level)
        if one.low is None or one.high is None:
            return one
        return dataclasses.replace(one, low=max(0.0, one.low), high=min(1.0, one.high))


def _merged(scores: Measured) -> tuple[Ints, tuple[str, ...]]:
    """Merge the answer classes in which too few docs were asked; return new class numbers and labels."""
    often = np.bincount(scores.classes[scores.asked], minlength=len(scores.labels)) >= LEAST_ASKED
    if often.all():
        return scores.classes, scores.labels
    new = np.where(often, np.cumsum(often) - 1, int(often.sum()))
    return new[scores.classes], (
        *(label for label, keep in zip(scores.labels, often, strict=True) if keep),
        "other" if often.any() else "all",
    )


def _by_class(scores: Measured, classes: Ints, kept: Sequence[int]) -> Array:
    """Return the rows to be summed, shape (docs, kept · (5d + 1)): for each class full, best, ceiling, the two of the null, and a 1."""
    blocks = []
    for c in kept:
        mine = classes == c
        seen, lost = mine[:, None], (mine & scores.asked)[:, None]
        blocks += [np.where(seen, part, 0) for part in (scores.full, scores.best, scores.ceiling)]
        blocks += [np.where(lost, part, 0) for part in (scores.null_full, scores.null_best)]
        blocks.append(seen.astype(float))
    return np.hstack(blocks) if blocks else np.zeros((len(classes), 0))


class _Weighted:
    """The columns from which weighted losses are summed, and the sums (``stats.habits``).

    A loss is the ceiling less the score. A form that is a mean of scores has two columns, scores and docs, so each
    class has eleven in ``_by_class``.

    Attributes:
        columns: shape (docs, all columns), to be summed beside those of ``_by_class``.
        two: of ``Tests``.
    """

    def __init__(self, scores: Measured, said: Habits, classes: Ints, kept: Sequence[int]) -> None:
        self._first = len(kept) * 11
        self._classes: list[list[_Exchanged | _Named]] = []
        columns: list[Array] = []
        for c in kept:
            parts: list[_Exchanged | _Named] = []
            for options in np.unique(said.options[classes == c]).tolist():
                docs = (classes == c) & (said.options == options)
                if options < 2:
                    parts.append(_Exchanged(columns, scores, said, docs))
                else:
                    parts.append(_Named(columns, scores, said, docs, options))
            self._classes.append(parts)
        self.columns = np.column_stack(columns) if columns else np.zeros((len(scores.full), 0))
        self.two = sum(part.without_form for part in self._named()) / max(1, len(scores.full))

    def sums(self, drawn: Array, prior: Array, by_full: bool) -> Array:
        """Return the sums of ``_by_class`` with weighted losses in place of losses, shape (b, kept · 11).

        Args:
            drawn: sums of all columns.
            prior: sums of the columns of ``_by_class`` with the imagined docs of ``_with_prior``; these count as the
            docs of the wrong image do.
            by_full: whether docs that say every option are counted where the full image's answer is wrong; else
                extrapolated.
        """
        out, mine = prior.copy(), drawn[:, self._first :]
        for c, parts in enumerate(self._classes):
            block = slice(c * 11, c * 11 + 10)
            lost, _ = _losses(drawn[:, block])
            lost_with_prior, marks = _losses(prior[:, block])
            weighted = np.sum([part.losses(mine, by_full) for part in parts], axis=0)
            for at, (part, null) in enumerate(((0, 3), (1, 4), (3, 3), (4, 4))):
                average = np.where(
                    lost[:, null] > 0, weighted[2 + at % 2] / np.where(lost[:, null] > 0, lost[:, null], 1), 1
                )
                # imagined docs have no answers of their own: they weigh what the asked ones do on average
                imagined = np.maximum(lost_with_prior[:, part] - lost[:, part], 0)
                out[:, c * 11 + 2 * part] = marks[:, part] - weighted[at] - average * imagined
        return out

    def tilt(self, drawn: Array) -> Array:
        """Return by how much more often than by chance docs name their gold on a wrong image, as a share of the answers that name an option.

        Docs whose answers are all alike do not count: the words alone may tell their gold.
        """
        excess, named = self._tests(drawn)[:2]
        others = [drawn[:, self._first :][:, part.tests].T for part in self._exchanged()]
        more, answers = np.sum(others, axis=0) if others else np.zeros((2, len(drawn)))
        return _share(excess + more, named + answers)

    def silence(self, drawn: Array) -> Array:
        """Return by how much more often than on cells a wrong image gets an answer that names no option, in docs that never say the gold."""
        if not self._named() or min(np.sum([part.missed for part in self._named()], axis=0)) < LEAST_TOLD:
            return np.full(len(drawn), math.nan)
        _, _, *counts = self._tests(drawn)
        return _share(*counts[2:]) - _share(*counts[:2])

    def elsewhere(self, drawn: Array) -> Array:
        """Return by how much less answers to a wrong image earn under other golds than those to cells.

        Nan where few docs lose marks.
        """
        if not self._exchanged() or min(np.sum([part.missed for part in self._exchanged()], axis=0)) < LEAST_TOLD:
            return np.full(len(drawn), math.nan)
        mine = drawn[:, self._first :]
        lost = np.sum([mine[:, part.known] for part in self._exchanged()], axis=0)
        weighted = np.sum([mine[:, part.weighted] for part in self._exchanged()], axis=0)
        own, wrong = (1 - _share(lost[:, i], weighted[:, i]) for i in (1, 3))
        return np.asarray(own - wrong)

    def short(self, drawn: Array) -> Array:
        """Return which part is missing of what cells of docs with two options must score above wrong images, by κ_MPP.

        Nan where few have two.

        A doc that one cell answers has at least one right cell more than its habit gives it, so the mean score of the
        cells must exceed that of wrong images by κ (1 − that) / cells. Below 0, κ takes at least one right cell from as
        many docs as it says. Where habits are alike, more cells may know, so only a shortfall speaks.
        """
        parts = [part for part in self._named() if part.options == 2]
        if sum(part.asked for part in parts) < LEAST_TOLD:
            return np.full(len(drawn), math.nan)
        sums = np.sum([drawn[:, self._first :][:, part.means].T for part in parts], axis=0)
        lost, null_lost, right, null_right, docs, null_docs, tries = sums
        cells = _share(tries, docs)
        missed = _share(null_lost, null_docs)
        kappa = 1 - _share(lost, docs) / np.where(missed > 0, missed, math.nan)
        gain, base = _share(right, docs) - _share(null_right, null_docs), _share(null_right, null_docs)
        wanted = kappa * np.where(kappa > 0, 1 - base, missed) / cells
        return np.asarray(1 - gain / np.where(wanted == 0, math.nan, wanted))

    def _tests(self, drawn: Array) -> Array:
        """Return the sums of ``_Named.tests`` over all classes, shape (6, b)."""
        parts = self._named()
        return (
            np.asarray(np.sum([drawn[:, self._first :][:, part.tests].T for part in parts], axis=0))
            if parts
            else np.zeros((6, len(drawn)))
        )

    def _named(self) -> list[_Named]:
        return [part for parts in self._classes for part in parts if isinstance(part, _Named)]

    def _exchanged(self) -> list[_Exchanged]:
        return [part for parts in self._classes for part in parts if isinstance(part, _Exchanged)]


class _Exchanged:
    """Losses of docs without options, weighted by what their answers lose under other golds (``habits.of_exchanged``).

    That is known of some docs, so the weighted share of these docs' losses is applied to the losses of all.
    """

    def __init__(self, columns: list[Array], scores: Measured, said: Habits, docs: Bools) -> None:
        marks = np.maximum(scores.ceiling[:, 0], 1e-300)
        sides, losses = _sides(scores, docs), _lost(scores)
        means = np.full((4, len(docs)), math.nan) if said.elsewhere is None else said.elsewhere.T
        known = [docs & scores.asked & np.isfinite(mean) for mean in means]
        weights = [habits.of_exchanged(loss / marks, mean) for loss, mean in zip(losses, means, strict=True)]
        self._all = _put(columns, [np.where(who, loss, 0) for who, loss in zip(sides, losses, strict=True)])
        self.known = _put(columns, [np.where(who, loss, 0) for who, loss in zip(known, losses, strict=True)])
        self.weighted = _put(
            columns, [np.where(who, loss * weight, 0) for who, loss, weight in zip(known, losses, weights, strict=True)]
        )
        """Losses of the docs of which their weights are known, without and with these."""
        self.missed = [int((known[i] & (losses[i] > 0)).sum()) for i in (1, 3)]
        """How many of these docs lose marks by their best cell, own and of the wrong image."""
        varied = [known[i] & (docs if said.varied is None else said.varied) for i in (2, 3)]
        excess = [np.where(who, means[i] - losses[i] / marks, 0) for i, who in zip((2, 3), varied, strict=True)]
        self.tests = _put(columns, [np.sum(excess, axis=0), np.sum(varied, axis=0, dtype=float)])
        """What the answers to varied wrong images earn above what they earn under other golds, and how many these answers are."""

    def losses(self, mine: Array, by_full: bool) -> Array:
        """Return the losses on the full image, the best cell, the whole wrong image and its best cell; shape (4, b)."""
        known = mine[:, self.known]
        weighted = np.divide(mine[:, self.weighted], known, out=np.ones_like(known), where=known > 0)
        return np.asarray(mine[:, self._all] * weighted).T


class _Named:
    """Losses of docs with options, and how the docs name these.

    Args:
        columns: the columns so far; more are appended.
        scores, said: of all docs.
        docs: shape (docs,), which these are.
        options: M.
    """

    def __init__(self, columns: list[Array], scores: Measured, said: Habits, docs: Bools, options: int) -> None:
        self.options = options
        share = np.bincount(said.gold[docs], minlength=options)[:options] / docs.sum()
        self.without_form = int(docs.sum()) if options == 2 or share.max() == 1 else 0
        """Docs that no weights can correct: what a doc says beside a gold that never varies has no other doc's gold among it."""
        # the last row is of no option
        once = np.eye(options + 1, options, dtype=int)
        gold = once[np.where(docs, said.gold, -1)] > 0
        full, null_full = (once[np.where(docs, which, -1)] for which in (said.full, said.null_full))
        counts = [full, said.cells[:, :options], null_full, said.null_cells[:, :options]]
        sides, losses = _sides(scores, docs), _lost(scores)
        weights = []
        for count in counts:
            weight = np.ones(len(docs))
            weight[docs] = habits.of_missed(count[docs] > 0, gold[docs])
            weights.append(weight)
        self._plain = _put(columns, [np.where(who, loss, 0) for who, loss in zip(sides, losses, strict=True)])
        self._weighted = _put(
            columns, [np.where(who, loss * weight, 0) for who, loss, weight in zip(sides, losses, weights, strict=True)]
        )
        every = [np.where(sides[i], losses[i] * weights[i] * (counts[i + 1] > 0).all(axis=1), 0) for i in (0, 2)]
        self._all = _put(columns, every)
        self._kinds = []
        for i in (1, 3):
            # sorted, since only how often options are named counts, not which: so there are few different rows
            others = -np.sort(-np.where(gold, 0, counts[i]), axis=1)[:, : options - 1]
            # with fewer answers than options, no doc of this sort can have said every option
            kinds, masks = _kinds(others, sides[i] & (losses[i] > 0) & (others.sum(axis=1) >= options))
            self._kinds.append((kinds, _put(columns, [np.where(mask, losses[i], 0) for mask in masks])))
        varied = sides[3] & ((counts[3] > 0).sum(axis=1) > 1)
        named = counts[3].sum(axis=1)
        excess = (counts[3] * gold).sum(axis=1) - counts[3] @ share
        self.missed, self.asked = list[int](), int(sides[3].sum())
        """Docs that never say the gold, on cells and on wrong images; docs on wrong images."""
        tests = [np.where(varied, excess, 0), np.where(varied, named, 0)]
        for i in (1, 3):
            missed = sides[i] & ~(counts[i] * gold).any(axis=1)
            self.missed.append(int(missed.sum()))
            tests += [np.where(missed, said.tries - counts[i].sum(axis=1), 0), np.where(missed, said.tries, 0)]
        marks = np.maximum(scores.ceiling[:, 0], 1e-300)
        right = [(counts[i] * gold).sum(axis=1) / np.maximum(said.tries, 1) for i in (1, 3)]
        means = [losses[1] / marks, losses[3] / marks, *right, np.ones(len(docs)), np.ones(len(docs)), said.tries]
        self.means = _put(
            columns,
            [np.where(sides[i], mean, 0) for i, mean in zip((1, 3, 1, 3, 1, 3, 1), means, strict=True)]
            if options == 2
            else [],
        )
        """Losses of the best cell, mean score of the cells (each own and of the wrong image), as shares of full marks; docs of both; cells."""
        self.tests = _put(columns, tests)
        """Excess of golds and named options on varied wrong images; answers without an option and all answers, of docs that never say the gold, on
        cells and on wrong images."""

    def losses(self, mine: Array, by_full: bool) -> Array:
        """Return the weighted losses on the full image, the best cell, the whole wrong image and its best cell.

        Shape (4, b).
        """
        out = mine[:, self._weighted].T.copy()
        if by_full:
            for i, side in enumerate((1, 3)):
                whole = out[side - 1]
                # near 1 the few docs that are left would be multiplied to stand for nearly all docs
                missing = _share(mine[:, self._all.start + i], whole)
                out[side] = np.where(missing < ALL, out[side] / np.where(missing < ALL, 1 - missing, 1), math.nan)
            return out
        if self.options == 2:
            out[1::2] = mine[:, self._plain].T[1::2]
            return out
        for side, (kinds, place) in zip((1, 3), self._kinds, strict=True):
            out[side] += (
                (habits.said_all(kinds, mine[:, place], self.options) * mine[:, place]).sum(axis=1) if len(kinds) else 0
            )
        return out


def _lost(scores: Measured) -> list[Array]:
    """Return the losses of the docs on the full image, the best cell, the whole wrong image and its best cell."""
    return [
        scores.ceiling[:, 0] - part[:, 0] for part in (scores.full, scores.best, scores.null_full, scores.null_best)
    ]


def _sides(scores: Measured, docs: Bools) -> list[Bools]:
    """Return which of some docs have each of the losses of ``_lost``."""
    return [docs, docs, docs & scores.asked, docs & scores.asked]


def _share(part: Array, whole: Array) -> Array:
    """Return part / whole, shape (b,); 0 where the whole is 0."""
    return np.asarray(np.divide(part, whole, out=np.zeros_like(whole, float), where=whole > 0))


def _put(columns: list[Array], more: list[Array]) -> slice:
    """Append columns, and return where they stand."""
    columns += more
    return slice(len(columns) - len(more), len(columns))


def _kinds(counts: Ints, docs: Bools) -> tuple[Array, list[Bools]]:
    """Return the different rows of some docs, and which docs have each."""
    kinds, code = np.unique(counts[docs], axis=0, return_inverse=True)
    places = np.full(len(docs), -1)
    # NumPy 2.0 gives these places a second axis
    places[docs] = code.ravel()
    return kinds.astype(float), [places == kind for kind in range(len(kinds))]


def _losses(sums: Array) -> tuple[Array, Array]:
    """Return by how much full, best, ceiling and the two of the null miss the marks of as many golds, and these marks.

    Shape (b, 5) each.

    Args:
        sums: of one class, shape (b, 10): score and number of docs of each of the five.
    """
    scores, docs = sums[:, ::2], sums[:, 1::2]
    marks = docs * (scores[:, 2:3] / np.where(docs[:, 2:3] > 0, docs[:, 2:3], 1))
    return marks - scores, marks


def _with_prior(
    drawn: Array, stacked: Array, corners: Array | None, d: int, stream: np.random.Generator, stands_for: float
) -> Array:
    """Add Gamma(½) docs at each corner of (full, best), and of the two of the null, shared among classes by their docs.

    Those of (full, best) count ``stands_for`` times, as docs that were asked do.

    Changes ``drawn`` in place. The order of the gamma draws is part of the result: keep it.
    """
    if corners is None:
        return drawn
    width = 5 * d + 1
    count = stacked.shape[1] // width
    docs = stacked.sum(axis=0)[width - 1 :: width]
    for c in range(count):
        share = PRIOR * docs[c] / docs.sum()
        for first, last in ((0, 1), (3, 4)):
            for ends in itertools.product((0, 1), (0, 1)):
                weight = stream.gamma(share, size=(len(drawn), 1)) * (stands_for if first == 0 else 1.0)
                for part, which in zip((first, last), ends, strict=True):
                    at = c * width + part * d
                    drawn[:, at : at + d] += weight * corners[which]
                if first == 0:
                    drawn[:, c * width + 2 * d : c * width + 3 * d] += weight * corners[1]
    return drawn


def _of_sums(sums: Array, value: Callable[[Array], Array], d: int) -> Numbers:
    """Return the metric of each class from sums of ``_by_class``, shape (b, kept · (5d + 1))."""
    by_class = sums.reshape(len(sums), -1, 5 * d + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # of a class that a draw leaves out the number is 0 / 0, which is nan
        full, best, ceiling, null_full, null_best = (value(by_class[..., i * d : (i + 1) * d]) for i in range(5))
    return Numbers(full, best, ceiling, null_full, null_best, by_class[..., -1])


def _none(n: int, groups: int, level: float, reason: str) -> Luck:
    return Luck(Estimate(None, None, None, None, n, groups, 0, level, reason), None, None, None, None, (), 0)


@dataclass(frozen=True)
class Numbers:
    """The metric of each class, shape (b, classes), and its docs."""

    fip: Array
    mpp: Array
    ceiling: Array
    fip0: Array
    mpp0: Array
    docs: Array

    def of_used(self, used: Bools) -> Iterator[Array]:
        """Yield κ_FIP, κ_MPP and FIP − FIP⁰ over the used classes, docs as weights; shape (b,) each."""
        # a draw leaves out the classes of which it has no pair
        known = np.isfinite(self.fip0) & np.isfinite(self.mpp0) & used
        docs = np.where(known, self.docs, 0)
        share = docs / docs.sum(axis=1, keepdims=True)
        for x, null in ((self.fip, self.fip0), (self.mpp, self.mpp0)):
            yield np.where(known, share * (x - null) / (self.ceiling - null), 0).sum(axis=1)
        yield np.where(known, share * (self.fip - self.fip0), 0).sum(axis=1)


def judge(
    labels: Sequence[str],
    point: Numbers,
    drawn: Numbers,
    n: int,
    groups: int,
    effective: float,
    *,
    scale: float,
    level: float,
    beside: _Beside | None = None,
) -> Luck:
    """Apply the null rules, to each class and then over all, and form the luck-corrected index.

    Args:
        labels: names of the classes.
        point: the metric on the data, b = 1.
        drawn: the metric on each draw.
        n: number of docs.
        groups: number of clusters.
        effective: effective number of clusters (``intervals.effective_clusters``).
        scale: the metric's scale.
        level: nominal coverage in 0..1.
        beside: the same two with weighted losses, of which the index is then made.
    """
    se = np.array(
        [
            np.std(known, ddof=1) if len(known := gap[np.isfinite(gap)]) > 1 else math.nan
            for gap in (drawn.mpp - drawn.mpp0).T
        ]
    )
    states = [_state(point, c, SATURATED_SE * float(se[c]), scale) for c in range(len(labels))]
    used = np.array([state == "used" for state in states])
    docs = point.docs[0]
    nothing = Estimate(None, None, None, None, n, groups, 0, level)
    saturated = int(docs[[state == "saturated" for state in states]].sum())
    luck = Luck(nothing, *_null_of_all(point), None, None, _by_class_label(labels, states, point), saturated)
    # an index of less than half of the docs would be of another benchmark
    if 2 * docs[used].sum() < n or not docs[used].sum():
        left = {
            state: sum(docs[c] for c, of_class in enumerate(states) if of_class == state)
            for state in ("saturated", "no variety", "not asked")
        }
        # of classes of which no doc was asked on a wrong image
        left["not asked"] += n - docs.sum()
        why = f"{_WHY[max(left, key=left.__getitem__)]} in {int(n - docs[used].sum())} of {n} docs"
        return dataclasses.replace(luck, estimate=dataclasses.replace(nothing, reason=why))
    with np.errstate(divide="ignore", invalid="ignore"):
        (full,), (best,), (signal,) = point.of_used(used)
        full_drawn, best_drawn, signal_drawn = drawn.of_used(used)
        luck = dataclasses.replace(luck, kappa_full=float(full), kappa_best=float(best))
        # RCI_adj divides by κ_FIP, which may be 0 without a signal
        if signal <= SIGNAL_SE * np.nanstd(signal_drawn, ddof=1):
            return dataclasses.replace(luck, estimate=dataclasses.replace(nothing, reason=_WHY["no signal"]))
        if beside is not None:
            alike, alike_drawn = 1 - best / full, 1 - best_drawn / full_drawn
            ((full,), (best,), _), (full_drawn, best_drawn, _) = (one.of_used(used) for one in beside.by_habit)
            by_full, by_full_drawn = (1 - b / f for f, b, _ in (one.of_used(used) for one in beside.by_full))

            def less(first: Array, second: Array, drawn: Array) -> Estimate:
                return summarise(float(np.ravel(first - second)[0]), drawn, n, groups, effective, level=DIFFERS)

            tests = Tests(
                less(alike, 1 - best / full, alike_drawn - (1 - best_drawn / full_drawn)),
                less(beside.silence[0], np.zeros(1), beside.silence[1]),
                less(1 - best / full, by_full, 1 - best_drawn / full_drawn - by_full_drawn),
                less(beside.tilt[0], np.zeros(1), beside.tilt[1]),
                less(beside.short[0], np.zeros(1), beside.short[1]),
                beside.two,
                beside.misread,
                less(beside.elsewhere[0], np.zeros(1), beside.elsewhere[1]),
            )
            luck = dataclasses.replace(luck, kappa_full=float(full), kappa_best=float(best), tests=tests)
            if tests.reason:
                return dataclasses.replace(luck, estimate=dataclasses.replace(nothing, reason=tests.reason))
        estimate = summarise(float(1 - best / full), 1 - best_drawn / full_drawn, n, groups, effective, level=level)
    return dataclasses.replace(luck, estimate=estimate)


@dataclass(frozen=True)
class _Beside:
    """What stands beside the index of equal weights: the metric on the data, and on each draw.

    Attributes:
        by_habit: with weighted losses; docs that say every option are extrapolated from the habits of others.
        by_full: with weighted losses; docs that say every option are counted among those whose full image is answered
        wrongly.
        tilt, silence, short, elsewhere: the tests of the same names in ``_Weighted``, on the data and on each draw.
        two: ``_Weighted.two``.
        misread: ``Habits.misread``.
    """

    by_habit: tuple[Numbers, ...]
    by_full: tuple[Numbers, ...]
    tilt: tuple[Array, ...]
    silence: tuple[Array, ...]
    short: tuple[Array, ...]
    elsewhere: tuple[Array, ...]
    two: float
    misread: float


def _beyond(one: Estimate, least: float) -> int:
    """Return 1 or -1 where an interval lies wholly above ``least`` or below its negative; else 0."""
    return 0 if one.low is None or one.high is None else int(one.low > least) - int(one.high < -least)


def _by_class_label(labels: Sequence[str], states: Sequence[str], point: Numbers) -> tuple[ClassLuck, ...]:
    """Return the numbers of each answer class on the data."""
    columns = (point.fip, point.mpp, point.ceiling, point.fip0, point.mpp0)
    return tuple(
        ClassLuck(label, int(point.docs[0][c]), states[c], *(float(column[0, c]) for column in columns))
        for c, label in enumerate(labels)
    )


def _null_of_all(point: Numbers) -> tuple[float | None, float | None]:
    """Return FIP⁰ and MPP⁰ over all classes that have a null, docs as weights; None where there is no such class."""
    known, docs = np.isfinite(point.fip0[0]) & np.isfinite(point.mpp0[0]), point.docs[0]
    if not known.any():
        return None, None
    fip0, mpp0 = (float(np.average(x[0, known], weights=docs[known])) for x in (point.fip0, point.mpp0))
    return fip0, mpp0


_WHY = {
    "saturated": "luck saturates: the best cell of a wrong picture is nearly always right",
    "no variety": "a wrong picture is nearly always answered rightly",
    "not asked": "no answers on wrong pictures",
    "no signal": "no signal: FIP is not above what wrong pictures score",
}


def _state(point: Numbers, c: int, least: float, scale: float) -> str:
    """Return the state of answer class ``c`` (``ClassLuck.state``).

    Args:
        point: the metric on the data.
        c: the class.
        least: how far the ceiling must exceed MPP⁰, on the metric's own scale.
        scale: the metric's scale.
    """
    ceiling, fip0, mpp0 = (float(x[0, c]) for x in (point.ceiling, point.fip0, point.mpp0))
    if not (math.isfinite(fip0) and math.isfinite(mpp0) and math.isfinite(ceiling)):
        return "not asked"
    if ceiling - fip0 < NO_VARIETY * scale:
        return "no variety"
    # "not >=" and not "<": the standard error may be nan, and then nothing shows that luck leaves room
    return "saturated" if not ceiling - mpp0 >= max(NO_VARIETY * scale, least) else "used"
