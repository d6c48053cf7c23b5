"""How much of an index is luck: the best of n² tries rises by guessing. NumPy only.

Two references that ask the model nothing: the analytic ceiling 1 − (1 − p)^(n²), and the mismatched
null, in which the gold of doc i is scored against the full answer and the whole cell vector of a
donor doc of the same kind, giving FIP⁰ and MPP⁰. Then, for X in {FIP, MPP},

    κ_X = (X − X⁰) / (ceiling − X⁰)        RCI_adj = 1 − κ_MPP / κ_FIP

(the form of Cohen's κ, 1960; DESIGN §6 says why this form and not a difference). κ is formed per
answer class and combined with the same doc weights above and below. In the bootstrap
X⁰* = Σ w_i w_d h_id / Σ w_i w_d over the frozen pairs (i, d): a new draw of donors could pick a doc
as its own donor.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmms_patch.stats.intervals import TOO_FEW_CLUSTERS, effective_clusters, summarise
from lmms_patch.stats.resample import DRAWS, LEVEL, Array, Estimate, Seed, unit_weights

NO_VARIETY, SATURATED_SE, SIGNAL_SE = 0.02, 4.0, 2.0
"""Null rules: shares of the metric's scale, and numbers of standard errors (DESIGN §6)."""

Ints = NDArray[np.intp]


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
    docs: int
    state: str
    fip: float
    mpp: float
    ceiling: float
    fip0: float
    mpp0: float


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
    """

    estimate: Estimate
    fip0: float | None
    mpp0: float | None
    kappa_full: float | None
    kappa_best: float | None
    classes: tuple[ClassLuck, ...]
    saturated_docs: int
    without_donor: int


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
    point = _Numbers.of(sums.at(np.ones((1, groups))), value, sums)
    effective = effective_clusters(np.bincount(places))
    if effective < TOO_FEW_CLUSTERS:
        return _none(n, groups, level, f"{groups} clusters are too few", without)
    blocks = [_Numbers.of(sums.at(block), value, sums) for block in unit_weights(groups, draws, seed, columns=-(-n // groups))]
    drawn = _Numbers(*(np.concatenate([getattr(b, name) for b in blocks]) for name in _Numbers.__annotations__))
    return _judge(scores, point, drawn, n, groups, effective, scale, level, without)


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
class _Numbers:
    """The metric of each class, shape (b, classes), and its docs."""

    fip: Array
    mpp: Array
    ceiling: Array
    fip0: Array
    mpp0: Array
    docs: Array

    @classmethod
    def of(cls, sums: tuple[Array, Array], value: Callable[[Array], Array], made: _Sums) -> _Numbers:
        seen, lost = sums
        d = made.d
        with np.errstate(divide="ignore", invalid="ignore"):
            full, best, ceiling, *blind = (value(seen[..., i * d : (i + 1) * d]) for i in range(made.parts))
            fip0, mpp0 = value(lost[..., :d]), value(lost[..., d:])
        if blind:
            fip0, mpp0 = np.maximum(fip0, blind[0]), np.maximum(mpp0, blind[0])
        return cls(full, best, ceiling, fip0, mpp0, seen[..., -1])

    def of_used(self, used: NDArray[np.bool_]) -> Iterator[Array]:
        """κ_FIP, κ_MPP and FIP − FIP⁰ over the used classes, docs as weights; shape (b,) each."""
        known = np.isfinite(self.fip0) & np.isfinite(self.mpp0) & used  # a class of which a draw has no pair leaves that draw
        docs = np.where(known, self.docs, 0)
        share = docs / docs.sum(axis=1, keepdims=True)
        for x, null in ((self.fip, self.fip0), (self.mpp, self.mpp0)):
            yield np.where(known, share * (x - null) / (self.ceiling - null), 0).sum(axis=1)
        yield np.where(known, share * (self.fip - self.fip0), 0).sum(axis=1)


def _judge(scores: Scores, point: _Numbers, drawn: _Numbers, n: int, groups: int, effective: float, scale: float, level: float, without: int) -> Luck:
    """Apply the null rules, class by class and then over all."""
    se = np.array([np.std(known, ddof=1) if len(known := gap[np.isfinite(gap)]) > 1 else math.nan for gap in (drawn.mpp - drawn.mpp0).T])
    states = [_state(point, c, float(se[c]), scale) for c in range(len(scores.labels))]
    used = np.array([state == "used" for state in states])
    docs = point.docs[0]
    classes = tuple(
        ClassLuck(label, int(docs[c]), states[c], *(float(getattr(point, x)[0, c]) for x in ("fip", "mpp", "ceiling", "fip0", "mpp0")))
        for c, label in enumerate(scores.labels)
    )
    saturated = int(docs[[state == "saturated" for state in states]].sum())
    has_null = np.isfinite(point.fip0[0]) & np.isfinite(point.mpp0[0])
    fip0, mpp0 = (float(np.average(x[0, has_null], weights=docs[has_null])) if has_null.any() else None for x in (point.fip0, point.mpp0))

    def result(estimate: Estimate, full: float | None = None, best: float | None = None) -> Luck:
        return Luck(estimate, fip0, mpp0, full, best, classes, saturated, without)

    def null(reason: str, full: float | None = None, best: float | None = None) -> Luck:
        return result(Estimate(None, None, None, None, n, groups, 0, level, reason), full, best)

    if not docs[used].sum() or 2 * docs[used].sum() < docs.sum():
        lost = max(("saturated", "no variety", "no donors"), key=lambda s: sum(docs[c] for c, state in enumerate(states) if state == s))
        return null(f"{_WHY[lost]} in {int(docs.sum() - docs[used].sum())} of {int(docs.sum())} docs")
    with np.errstate(divide="ignore", invalid="ignore"):
        (full,), (best,), (signal,) = point.of_used(used)
        full_drawn, best_drawn, signal_drawn = drawn.of_used(used)
        if signal <= SIGNAL_SE * np.nanstd(signal_drawn, ddof=1):
            return null("no signal: FIP is not above what a donor's answer scores", float(full), float(best))
        estimate = summarise(float(1 - best / full), 1 - best_drawn / full_drawn, n, groups, effective, level=level)
    return result(estimate, float(full), float(best))


_WHY = {
    "saturated": "luck saturates: the best of the donors' cells is nearly always right",
    "no variety": "no variety: any answer of the same kind is nearly always right",
    "no donors": "no donors",
}


def _state(point: _Numbers, c: int, se: float, scale: float) -> str:
    ceiling, fip0, mpp0 = (float(x[0, c]) for x in (point.ceiling, point.fip0, point.mpp0))
    if not (math.isfinite(fip0) and math.isfinite(mpp0) and math.isfinite(ceiling)):
        return "no donors"
    if ceiling - fip0 < NO_VARIETY * scale:
        return "no variety"
    return "saturated" if not ceiling - mpp0 >= max(NO_VARIETY * scale, SATURATED_SE * se) else "used"
