"""How much of an index is luck: the best of n² tries rises by guessing. NumPy only.

For X in {FIP, MPP}, with X⁰ what the answers earn without the right picture,

    κ_X = (X − X⁰) / (ceiling − X⁰)        RCI_adj = 1 − κ_MPP / κ_FIP

(the form of Cohen's κ, 1960; DESIGN 6 says why this form and not a difference). κ is formed per answer class and combined with the
same doc weights above and below. X⁰ comes from one of two nulls:

- ``measured``: the model's own answers on another doc's image, of some docs. Nothing is assumed but that a wrong picture is as
  uninformative as a cell that does not show what is asked.
- ``assumed``: without asking the model, the gold of doc i is scored against the full answer and the whole cell vector of a donor doc of
  the same kind. Right only where docs that know and docs that guess have equally varied answers. In the bootstrap
  X⁰* = Σ w_i w_d h_id / Σ w_i w_d over the frozen pairs (i, d): a new draw of donors could pick a doc as its own donor.

Beside them stands the analytic ceiling of luck, 1 − (1 − p)^(n²).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lmms_patch.stats.bounds import Count, Number
from lmms_patch.stats.intervals import TOO_FEW_CLUSTERS, effective_clusters, summarise
from lmms_patch.stats.resample import DRAWS, LEVEL, Array, Estimate, Seed, generator, totals, unit_weights, weighted_sums

NO_VARIETY, SIGNAL_SE = 0.02, 2.0
"""Null rules: a share of the metric's scale, and a number of standard errors (DESIGN 6)."""
SATURATED_SE = {"assumed": 4.0, "measured": 3.0}
"""How many standard errors must be left above luck. A measured null rests on few docs. With 4, yes/no at n = 2 has no index in 30 % of
runs, and the others are lucky draws, off by −0.1 to −0.2; with 3 they are off by at most 0.05 (docs/statistics.md)."""

LEAST_ASKED = 50
"""Docs asked on a wrong image that a class of its own needs: C − MPP⁰ of fewer is mostly noise."""
PRIOR = 0.5
"""Jeffreys' pseudo-counts: each draw adds Gamma(½) docs at each corner of the scale, so that "no wrong picture was ever answered" is no certainty."""

Null = Literal["measured", "assumed"]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Measured:
    """What the index is corrected from where some docs were asked on another doc's image; rows are those of an aggregation's form.

    Attributes:
        full, best, ceiling: shape (docs, d): rows of the full image, of the best cell, of the gold answer.
        null_full, null_best: shape (docs, d): rows of the whole wrong image, and of its best cell; anything where a doc was not asked so.
        asked: shape (docs,), whether the doc was asked on a wrong image.
        varied: shape (docs,), whether its answers on the cells of the wrong image differ from each other; anything where it was not asked.
        chance_alike: shape (docs,), how likely they are to be all alike by chance, 0..1 (``alike_by_chance``).
        classes: shape (docs,), numbers from 0 of the answer classes.
        labels: names of the classes.
        corners: rows of a doc that scores nothing and of one that has full marks, shape (2, d); None where the form has no such rows.
    """

    full: Array
    best: Array
    ceiling: Array
    null_full: Array
    null_best: Array
    asked: Flags
    varied: Flags
    chance_alike: Array
    classes: Ints
    labels: tuple[str, ...]
    corners: Array | None = None


@dataclass(frozen=True)
class Scores:
    """What the index with luck removed is computed from; rows are those of an aggregation's form (``forms.Form.rows``).

    Attributes:
        full, best, ceiling: shape (docs, d): rows of the full image, of the best cell, of the gold answer.
        null_full, null_best: shape (P, docs, d): rows of the p-th donor's answers under the doc's own gold; all 0 where there is no donor.
        donors: shape (docs, P), places of the donors; −1 where there is none.
        classes: shape (docs,), numbers from 0 of the answer classes.
        labels: names of the classes.
        blind: rows of a blind run's answers, where there is one.
    """

    full: Array
    best: Array
    ceiling: Array
    null_full: Array
    null_best: Array
    donors: Ints
    classes: Ints
    labels: tuple[str, ...]
    blind: Array | None = None


@dataclass(frozen=True)
class ClassLuck:
    """One answer class; numbers on the metric's own scale, nan where not defined.

    Attributes:
        label: such as ``mc4``.
        docs: number of docs.
        state: ``used``, ``saturated``, ``no variety``, or ``no donors``.
        fip, mpp, ceiling, fip0, mpp0: X, the gold's score, and X⁰.
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
class Luck:
    """The index with luck removed, and what it was made of.

    Attributes:
        estimate: RCI_adj with its interval; its reason says why there is none.
        fip0, mpp0: the null over all classes, docs as weights; None where there are no donors.
        kappa_full, kappa_best: κ_FIP and κ_MPP over the classes that are used; None where none is.
        classes: every class.
        saturated_docs: docs of classes that left both sides because luck saturates.
        without_donor: docs for which no donor could be found.
        null: where X⁰ comes from: ``measured`` or ``assumed``.
        asked: docs that were asked on a wrong image; 0 for an assumed null.
    """

    estimate: Estimate
    fip0: Number | None
    mpp0: Number | None
    kappa_full: Number | None
    kappa_best: Number | None
    classes: tuple[ClassLuck, ...]
    saturated_docs: Count
    without_donor: Count
    null: Null = "assumed"
    asked: Count = 0

    @property
    def misleads(self) -> bool:
        """Whether single cells mislead: they score less than a wrong picture does."""
        return self.null == "measured" and self.estimate.low is not None and self.estimate.low > 1


def luck_ceiling(p: Array, n: int) -> float:
    """What the best of n² independent guesses scores: the mean of 1 − (1 − p)^(n²).

    Args:
        p: chance of a guess to be right, of each doc, in 0..1.
        n: grid.

    >>> round(luck_ceiling(np.array([0.25]), 3), 4)
    0.9249
    """
    return float(np.mean(1 - (1 - np.asarray(p, float)) ** (n * n)))


def adjusted(
    scores: Scores,
    value: Callable[[Array], Array],
    clusters: Ints | None = None,
    *,
    scale: float = 1.0,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
) -> Luck:
    """RCI_adj with its interval, or the reason why there is none.

    Args:
        scores: rows of all docs.
        value: from sums of rows of shape (..., d) to the metric, shape (...).
        clusters: numbers from 0 of shape (docs,); None: docs are independent. Donors lie in other clusters.
        scale: the metric's scale.
        draws: B.
        level: nominal coverage in 0..1.
        seed: of the bootstrap.
    """
    n = len(scores.full)
    places = np.arange(n) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    groups = int(places.max()) + 1 if n else 0
    without = int((scores.donors < 0).all(axis=1).sum()) if n else 0
    if without == n:
        return _none(n, groups, level, "no donors: no doc has another doc of its kind", without)
    sums = _Sums(scores, places)
    point = _of_pairs(sums.at(np.ones((1, groups))), value, sums)
    effective = effective_clusters(np.bincount(places))
    if effective < TOO_FEW_CLUSTERS:
        return _none(n, groups, level, f"{groups} clusters are too few", without)
    blocks = [_of_pairs(sums.at(block), value, sums) for block in unit_weights(groups, draws, seed, columns=-(-n // groups))]
    drawn = Numbers(*(np.concatenate([getattr(b, name) for b in blocks]) for name in Numbers.__annotations__))
    return dataclasses.replace(judge(scores.labels, point, drawn, n, groups, effective, scale=scale, level=level), without_donor=without)


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
    """Correct the index by what the model's own answers on wrong images earn.

    Args:
        scores: rows of all docs.
        value: from sums of rows of shape (..., d) to the metric, shape (...).
        clusters: numbers from 0 of shape (docs,); None: docs are independent.
        scale: the metric's scale.
        draws: B.
        level: nominal coverage in 0..1.
        seed: of the bootstrap.

    Docs that give one answer to every cell of the wrong image win less by luck than docs whose answers vary. Where docs of one sort also
    know more than the others, one κ over all of them is biased (truth 0.50 reads 0.35 to 1.03), so they become classes of their own:
    in each answer class where both sorts are common, and where more docs repeat themselves than chance explains. Only docs that were
    asked on a wrong image can be told apart so: FIP and MPP then come from these docs too.
    """
    n = len(scores.full)
    groups = n if clusters is None else int(clusters.max()) + 1 if n else 0
    asked = int(scores.asked.sum())
    classes, labels = _merged(scores)
    split = _split(scores, classes, len(labels))
    if split.any():
        classes = 2 * classes + (split[classes] & scores.varied)
        labels = tuple(
            f"{label}{end}" for label, is_split in zip(labels, split, strict=True) for end in ((", one answer", ", varied") if is_split else ("", ""))
        )
    of_all = scores.asked if split.any() else np.ones(n, bool)
    kept = [c for c in range(len(labels)) if (scores.asked & (classes == c)).any()]
    stacked, d = _by_class(scores, classes, kept, of_all), scores.full.shape[1]
    per_cluster = totals(stacked, clusters)
    stream = generator(seed)
    effective = float(n) if clusters is None else effective_clusters(np.bincount(clusters))
    if effective < TOO_FEW_CLUSTERS:
        return dataclasses.replace(_none(n, groups, level, f"{groups} clusters are too few", 0), null="measured", asked=asked)
    drawn = _with_prior(weighted_sums(per_cluster, draws, stream), stacked, scores.corners, d, stream)
    found = judge(
        tuple(labels[c] for c in kept),
        _of_sums(per_cluster.sum(axis=0)[None], value, d),
        _of_sums(drawn, value, d),
        n,
        groups,
        effective,
        scale=scale,
        level=level,
        null="measured",
        may_leave=np.array([bool(split[c // 2]) for c in kept]) if split.any() else None,
    )
    return dataclasses.replace(found, asked=asked)


def alike_by_chance(said: Sequence[Sequence[str]], classes: Ints) -> Array:
    """Return, for each doc, how likely its answers on all cells are to be alike if each is drawn by itself.

    Formula: Σ_a q_a^m, q_a the share of answer a among all answers of the doc's class, m the doc's number of cells.

    Args:
        said: of each doc, what was answered on each cell; empty where it was not asked.
        classes: shape (docs,), answer classes.

    >>> alike_by_chance([["a", "b"], ["b", "a"]], np.array([0, 0])).tolist()
    [0.5, 0.5]
    """
    out = np.zeros(len(said))
    for c in set(classes.tolist()):
        docs = [i for i in np.flatnonzero(classes == c).tolist() if said[i]]
        counts = Counter(answer for i in docs for answer in said[i])
        shares = np.array(list(counts.values()), float) / max(1, counts.total())
        by_size = {m: float((shares**m).sum()) for m in {len(said[i]) for i in docs}}
        for i in docs:
            out[i] = by_size[len(said[i])]
    return out


def _merged(scores: Measured) -> tuple[Ints, tuple[str, ...]]:
    """The answer classes that enough docs were asked in; all others are one class."""
    often = np.bincount(scores.classes[scores.asked], minlength=len(scores.labels)) >= LEAST_ASKED
    if often.all():
        return scores.classes, scores.labels
    new = np.where(often, np.cumsum(often) - 1, int(often.sum()))
    return new[scores.classes], (*(label for label, keep in zip(scores.labels, often, strict=True) if keep), "other" if often.any() else "all")


def _split(scores: Measured, classes: Ints, count: int) -> Flags:
    """Whether docs that repeat one answer and docs that vary it become classes of their own, by answer class."""
    out = np.zeros(count, bool)
    for c in range(count):
        here = scores.asked & (classes == c)
        varied = int((here & scores.varied).sum())
        beyond = int(here.sum()) - varied - scores.chance_alike[here].sum()
        out[c] = min(varied, beyond) >= LEAST_ASKED
    return out


def _by_class(scores: Measured, classes: Ints, kept: Sequence[int], of_all: Flags) -> Array:
    """Rows to be summed, shape (docs, kept · (5d + 1)): of each class full, best, ceiling, the two of the null, and a one."""
    blocks = []
    for c in kept:
        mine = classes == c
        seen, lost = (mine & of_all)[:, None], (mine & scores.asked)[:, None]
        blocks += [np.where(seen, part, 0) for part in (scores.full, scores.best, scores.ceiling)]
        blocks += [np.where(lost, part, 0) for part in (scores.null_full, scores.null_best)]
        blocks.append(seen.astype(float))
    return np.hstack(blocks) if blocks else np.zeros((len(classes), 0))


def _with_prior(drawn: Array, stacked: Array, corners: Array | None, d: int, stream: np.random.Generator) -> Array:
    """Add Gamma(½) docs at each corner of (full, best), and of (full, best) of the wrong image, shared among classes by their docs."""
    if corners is None:
        return drawn
    width = 5 * d + 1
    count = stacked.shape[1] // width
    docs = stacked.sum(axis=0)[width - 1 :: width]
    for c in range(count):
        share = PRIOR * docs[c] / docs.sum()
        for first, last in ((0, 1), (3, 4)):
            for ends in itertools.product((0, 1), (0, 1)):
                weight = stream.gamma(share, size=(len(drawn), 1))
                for part, which in zip((first, last), ends, strict=True):
                    at = c * width + part * d
                    drawn[:, at : at + d] += weight * corners[which]
                if first == 0:
                    drawn[:, c * width + 2 * d : c * width + 3 * d] += weight * corners[1]
    return drawn


def _of_sums(sums: Array, value: Callable[[Array], Array], d: int) -> Numbers:
    """The metric of each class from sums of ``_by_class``, shape (b, kept · (5d + 1))."""
    by_class = sums.reshape(len(sums), -1, 5 * d + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        full, best, ceiling, null_full, null_best = (value(by_class[..., i * d : (i + 1) * d]) for i in range(5))
    return Numbers(full, best, ceiling, null_full, null_best, by_class[..., -1])


def _none(n: int, groups: int, level: float, reason: str, without: int) -> Luck:
    return Luck(Estimate(None, None, None, None, n, groups, 0, level, reason), None, None, None, None, (), 0, without)


class _Sums:
    """Weighted sums of rows per class; docs are sorted by class once, so that a class is a slice."""

    def __init__(self, scores: Scores, places: Ints) -> None:
        order = np.argsort(scores.classes, kind="stable")
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        self.d = scores.full.shape[1]
        self.places = places[order]
        donors = scores.donors[order]
        self.donor_places = np.where(donors >= 0, places[donors], -1)
        parts = [scores.full, scores.best, scores.ceiling, *([] if scores.blind is None else [scores.blind])]
        self.parts = len(parts)
        self.observed = np.concatenate([np.asarray(part, float)[order].T for part in parts] + [np.ones((1, len(order)))])
        null = np.concatenate([scores.null_full[:, order], scores.null_best[:, order]], axis=2)
        null[np.asarray(donors.T < 0)] = 0
        self.null = np.ascontiguousarray(null.transpose(0, 2, 1))
        ends = np.searchsorted(scores.classes[order], np.arange(len(scores.labels) + 1))
        self.slices = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self.single = self.observed.astype(np.float32), self.null.astype(np.float32)

    def at(self, weights: NDArray[np.floating]) -> tuple[Array, Array]:
        """Sums under weights of shape (b, groups): observed (b, classes, parts·d + 1), null (b, classes, 2d).

        Draws lie along the last axis inside: the weights of a donor are then one run of memory.
        """
        observed, null = self.single if weights.dtype == np.float32 else (self.observed, self.null)
        weights = np.ascontiguousarray(weights.T)
        of_docs = weights[self.places]
        seen = np.stack([observed[:, s] @ of_docs[s] for s in self.slices])
        lost = np.zeros((len(self.slices), 2 * self.d, weights.shape[1]))
        for p in range(len(null)):
            both = weights[self.donor_places[:, p]]
            both *= of_docs
            for c, s in enumerate(self.slices):
                lost[c] += null[p, :, s] @ both[s]
        return np.asarray(seen.transpose(2, 0, 1), float), lost.transpose(2, 0, 1)


@dataclass(frozen=True)
class Numbers:
    """The metric of each class, shape (b, classes), and its docs."""

    fip: Array
    mpp: Array
    ceiling: Array
    fip0: Array
    mpp0: Array
    docs: Array

    def of_used(self, used: NDArray[np.bool_]) -> Iterator[Array]:
        """κ_FIP, κ_MPP and FIP − FIP⁰ over the used classes, docs as weights; shape (b,) each."""
        known = np.isfinite(self.fip0) & np.isfinite(self.mpp0) & used  # a class of which a draw has no pair leaves that draw
        docs = np.where(known, self.docs, 0)
        share = docs / docs.sum(axis=1, keepdims=True)
        for x, null in ((self.fip, self.fip0), (self.mpp, self.mpp0)):
            yield np.where(known, share * (x - null) / (self.ceiling - null), 0).sum(axis=1)
        yield np.where(known, share * (self.fip - self.fip0), 0).sum(axis=1)


def _of_pairs(sums: tuple[Array, Array], value: Callable[[Array], Array], made: _Sums) -> Numbers:
    """The metric of each class from ``_Sums.at``."""
    seen, lost = sums
    d = made.d
    with np.errstate(divide="ignore", invalid="ignore"):
        full, best, ceiling, *blind = (value(seen[..., i * d : (i + 1) * d]) for i in range(made.parts))
        fip0, mpp0 = value(lost[..., :d]), value(lost[..., d:])
    if blind:
        fip0, mpp0 = np.maximum(fip0, blind[0]), np.maximum(mpp0, blind[0])
    return Numbers(full, best, ceiling, fip0, mpp0, seen[..., -1])


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
    null: Null = "assumed",
    may_leave: Flags | None = None,
) -> Luck:
    """Apply the null rules, class by class and then over all, and form the corrected index.

    Args:
        labels: names of the classes.
        point: the metric on the data, b = 1.
        drawn: the same on each draw.
        n: docs.
        groups: clusters.
        effective: ``intervals.effective_clusters`` of them.
        scale: the metric's scale.
        level: nominal coverage in 0..1.
        null: where X⁰ comes from: ``measured`` or ``assumed``.
        may_leave: shape (classes,), classes that may leave both sides however many docs they have: there the others are told apart from
            them by how they answer, not by what they are asked.
    """
    se = np.array([np.std(known, ddof=1) if len(known := gap[np.isfinite(gap)]) > 1 else math.nan for gap in (drawn.mpp - drawn.mpp0).T])
    states = [_state(point, c, SATURATED_SE[null] * float(se[c]), scale) for c in range(len(labels))]
    used = np.array([state == "used" for state in states])
    docs = point.docs[0]
    classes = tuple(
        ClassLuck(label, int(docs[c]), states[c], *(float(getattr(point, x)[0, c]) for x in ("fip", "mpp", "ceiling", "fip0", "mpp0")))
        for c, label in enumerate(labels)
    )
    saturated = int(docs[[state == "saturated" for state in states]].sum())
    has_null = np.isfinite(point.fip0[0]) & np.isfinite(point.mpp0[0])
    fip0, mpp0 = (float(np.average(x[0, has_null], weights=docs[has_null])) if has_null.any() else None for x in (point.fip0, point.mpp0))

    def result(estimate: Estimate, full: float | None = None, best: float | None = None) -> Luck:
        return Luck(estimate, fip0, mpp0, full, best, classes, saturated, 0, null)

    def none(reason: str, full: float | None = None, best: float | None = None) -> Luck:
        return result(Estimate(None, None, None, None, n, groups, 0, level, reason), full, best)

    staying = used if may_leave is None else used | may_leave
    if not docs[used].sum() or 2 * docs[staying].sum() < docs.sum():
        lost = max(("saturated", "no variety", "no donors"), key=lambda s: sum(docs[c] for c, state in enumerate(states) if state == s))
        return none(f"{_WHY[null][lost]} in {int(docs.sum() - docs[used].sum())} of {int(docs.sum())} docs")
    with np.errstate(divide="ignore", invalid="ignore"):
        (full,), (best,), (signal,) = point.of_used(used)
        full_drawn, best_drawn, signal_drawn = drawn.of_used(used)
        if signal <= SIGNAL_SE * np.nanstd(signal_drawn, ddof=1):
            return none(_WHY[null]["no signal"], float(full), float(best))
        estimate = summarise(float(1 - best / full), 1 - best_drawn / full_drawn, n, groups, effective, level=level)
    return result(estimate, float(full), float(best))


_WHY = {
    "assumed": {
        "saturated": "luck saturates: the best of the donors' cells is nearly always right",
        "no variety": "no variety: any answer of the same kind is nearly always right",
        "no donors": "no donors",
        "no signal": "no signal: FIP is not above what a donor's answer scores",
    },
    "measured": {
        "saturated": "luck saturates: the best cell of a wrong picture is nearly always right",
        "no variety": "a wrong picture is nearly always answered rightly",
        "no donors": "no answers on wrong pictures",
        "no signal": "no signal: FIP is not above what wrong pictures score",
    },
}


def _state(point: Numbers, c: int, least: float, scale: float) -> str:
    """Return the state of answer class ``c`` (``ClassLuck.state``); ``least``: how much of the metric must be left above luck."""
    ceiling, fip0, mpp0 = (float(x[0, c]) for x in (point.ceiling, point.fip0, point.mpp0))
    if not (math.isfinite(fip0) and math.isfinite(mpp0) and math.isfinite(ceiling)):
        return "no donors"
    if ceiling - fip0 < NO_VARIETY * scale:
        return "no variety"
    return "saturated" if not ceiling - mpp0 >= max(NO_VARIETY * scale, least) else "used"
