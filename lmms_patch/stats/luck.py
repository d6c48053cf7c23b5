"""The corrected index: luck, what the best of several tries earns by guessing, is estimated and removed. NumPy only.

For X in {FIP, MPP}, with X⁰ what the answers earn without the right picture (the null),

    κ_X = (X − X⁰) / (ceiling − X⁰)        RCI_adj = 1 − κ_MPP / κ_FIP

This is the form of Cohen's κ (1960). κ is computed per answer class and combined with the same doc weights in numerator and denominator. X⁰ comes
from one of two nulls:

- ``measured``: for some docs, the model's own answers on another doc's image. The only assumption is that a wrong picture is as uninformative as a
  cell that does not show what is asked.
- ``assumed``: the gold of doc i is scored against the full answer and all cell answers of a donor doc of the same kind; the model is not asked again.
  Right only where docs that know and docs that guess have equally varied answers. In the bootstrap X⁰* = Σ w_i w_d h_id / Σ w_i w_d over the frozen
  pairs (i, d): a new draw of donors could pick a doc as its own donor.

``luck_ceiling`` is the analytic bound beside them, 1 − (1 − p)^tries: n² tries on the cells of an image, k on the segments of a clip.
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
"""The least room above the null, as a share of the metric's scale; and the standard errors by which FIP must exceed FIP⁰."""
SATURATED_SE = {"assumed": 4.0, "measured": 3.0}
"""The number of standard errors by which the ceiling must exceed MPP⁰.

A measured null rests on few docs. With 4, yes/no at n = 2 has no index in 30 % of runs, and the other runs are lucky draws, off by −0.1 to
−0.2; with 3 they are off by at most 0.05 (docs/statistics.md)."""

LEAST_ASKED = 50
"""The fewest docs asked on a wrong image that make a class of their own: with fewer, ceiling − MPP⁰ is mostly noise."""
PRIOR = 0.5
"""Jeffreys' pseudo-count: each draw adds Gamma(½) docs at each corner of the scale.

Without it, a null of 0 in the data would be 0 in every draw, as if it were certain."""

Null = Literal["measured", "assumed"]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Measured:
    """The input of the measured correction: rows of an aggregation's form (``forms.Form.rows``).

    Attributes:
        full: shape (docs, d): rows of the full image.
        best: shape (docs, d): rows of the best cell.
        ceiling: shape (docs, d): rows of the gold answer.
        null_full: shape (docs, d): rows of the whole wrong image; any values where the doc was not asked on one.
        null_best: shape (docs, d): rows of the best cell of the wrong image; any values where the doc was not asked on one.
        asked: shape (docs,), whether the doc was asked on a wrong image.
        varied: shape (docs,), whether its answers on the cells of the wrong image differ from each other; any value where it was not asked.
        chance_alike: shape (docs,), the probability that these answers are all alike by chance, 0..1 (``alike_by_chance``).
        classes: shape (docs,), numbers from 0 of the answer classes.
        labels: names of the classes.
        corners: rows of a doc that scores nothing and of a doc with full marks, shape (2, d); None where the form has no such rows.
        stands_for: how many docs a doc stands for whose cells were asked; above 1 in a run that left docs out.
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
    stands_for: float = 1.0


@dataclass(frozen=True)
class Scores:
    """The input of the assumed correction: rows of an aggregation's form (``forms.Form.rows``).

    Attributes:
        full: shape (docs, d): rows of the full image.
        best: shape (docs, d): rows of the best cell.
        ceiling: shape (docs, d): rows of the gold answer.
        null_full: shape (P, docs, d): rows of the p-th donor's full answer under the doc's own gold; 0 where there is no donor.
        null_best: shape (P, docs, d): rows of the p-th donor's best cell under the doc's own gold; 0 where there is no donor.
        donors: shape (docs, P), places of the donors; −1 where there is none.
        classes: shape (docs,), numbers from 0 of the answer classes.
        labels: names of the classes.
        blind: shape (docs, d): rows of a blind run's answers, where there is one.
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
    """The numbers of one answer class, on the metric's own scale; nan where not defined.

    Attributes:
        label: such as ``mc4``.
        docs: number of docs.
        state: ``used``, ``saturated``, ``no variety``, or ``no donors``.
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
class Luck:
    """The corrected index, and what it was computed from.

    Attributes:
        estimate: RCI_adj with its interval; its reason says why there is none.
        fip0: FIP⁰ over all classes, docs as weights; None where there are no donors.
        mpp0: MPP⁰ likewise.
        kappa_full: κ_FIP over the used classes; None where there is none.
        kappa_best: κ_MPP over the used classes; None where there is none.
        classes: every class.
        saturated_docs: number of docs of classes that were left out because luck saturates.
        without_donor: number of docs for which no donor could be found.
        null: where X⁰ comes from: ``measured`` or ``assumed``.
        asked: number of docs that were asked on a wrong image; 0 for an assumed null.
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
        """Whether single cells mislead the model: they score less than a wrong picture does (the interval lies above 1)."""
        return self.null == "measured" and self.estimate.low is not None and self.estimate.low > 1


def luck_ceiling(p: Array, tries: int | Ints) -> float:
    """Return what the best of several independent guesses scores: the mean of 1 − (1 − p)^tries.

    Args:
        p: shape (docs,), the probability in 0..1 that a guess is right.
        tries: how many guesses a doc has, or shape (docs,): the cells of its grid.

    >>> round(luck_ceiling(np.array([0.25]), 9), 4)
    0.9249
    """
    return float(np.mean(1 - (1 - np.asarray(p, float)) ** tries))


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
    """Correct the index by what the answers of donor docs earn (the assumed null); return RCI_adj, or the reason why there is none.

    Args:
        scores: rows of all docs.
        value: a function from sums of rows of shape (..., d) to the metric, shape (...).
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
    """Correct the index by what the model's own answers on wrong images earn (the measured null).

    Docs that give one answer to every cell of the wrong image win less by luck than docs whose answers vary. Where one of these two groups also knows
    more than the other, a single κ over both is biased (truth 0.50 reads 0.35 to 1.03). So an answer class is split into the two where both are
    common, and where more docs repeat themselves than chance explains. Only docs that were asked on a wrong image can be assigned to a group: after a
    split, FIP and MPP come from these docs too.

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
    classes, labels, halves = _classes(scores)
    of_all = scores.asked if halves.any() else np.ones(n, bool)
    kept = [c for c in range(len(labels)) if (scores.asked & (classes == c)).any()]
    stacked, d = _by_class(scores, classes, kept, of_all), scores.full.shape[1]
    per_cluster = totals(stacked, clusters)
    stream = generator(seed)
    effective = float(n) if clusters is None else effective_clusters(np.bincount(clusters))
    if effective < TOO_FEW_CLUSTERS:
        return dataclasses.replace(_none(n, groups, level, f"{groups} clusters are too few", 0), null="measured", asked=asked)
    drawn = _with_prior(weighted_sums(per_cluster, draws, stream), stacked, scores.corners, d, stream, scores.stands_for)
    corrected = judge(
        tuple(labels[c] for c in kept),
        _of_sums(per_cluster.sum(axis=0)[None], value, d),
        _of_sums(drawn, value, d),
        n,
        groups,
        effective,
        scale=scale,
        level=level,
        null="measured",
        may_leave=halves[kept] if halves.any() else None,
    )
    return dataclasses.replace(corrected, asked=asked)


def alike_by_chance(said: Sequence[Sequence[str]], classes: Ints) -> Array:
    """Return, for each doc, the probability that its answers on all cells are alike if each is drawn independently.

    Formula: Σ_a q_a^m, q_a the share of answer a among all answers of the doc's class, m the doc's number of cells.

    Args:
        said: for each doc, the answers on its cells; empty where it was not asked.
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


def _classes(scores: Measured) -> tuple[Ints, tuple[str, ...], Flags]:
    """Return the answer classes, their labels, and which of them are halves of a class that was split by how docs answer."""
    classes, labels = _merged(scores)
    split = _split(scores, classes, len(labels))
    if not split.any():
        return classes, labels, split
    ends = ((", one answer", ", varied") if is_split else ("", "") for is_split in split)
    return (
        2 * classes + (split[classes] & scores.varied),
        tuple(f"{label}{end}" for label, pair in zip(labels, ends, strict=True) for end in pair),
        split.repeat(2),
    )


def _merged(scores: Measured) -> tuple[Ints, tuple[str, ...]]:
    """Merge the answer classes in which too few docs were asked; return new class numbers and labels."""
    often = np.bincount(scores.classes[scores.asked], minlength=len(scores.labels)) >= LEAST_ASKED
    if often.all():
        return scores.classes, scores.labels
    new = np.where(often, np.cumsum(often) - 1, int(often.sum()))
    return new[scores.classes], (*(label for label, keep in zip(scores.labels, often, strict=True) if keep), "other" if often.any() else "all")


def _split(scores: Measured, classes: Ints, count: int) -> Flags:
    """Tell for which answer classes the docs that repeat one answer and the docs that vary it become classes of their own, shape (count,)."""
    out = np.zeros(count, bool)
    for c in range(count):
        here = scores.asked & (classes == c)
        varied = int((here & scores.varied).sum())
        beyond = int(here.sum()) - varied - scores.chance_alike[here].sum()
        out[c] = min(varied, beyond) >= LEAST_ASKED
    return out


def _by_class(scores: Measured, classes: Ints, kept: Sequence[int], of_all: Flags) -> Array:
    """Return the rows to be summed, shape (docs, kept · (5d + 1)): for each class full, best, ceiling, the two of the null, and a 1."""
    blocks = []
    for c in kept:
        mine = classes == c
        seen, lost = (mine & of_all)[:, None], (mine & scores.asked)[:, None]
        blocks += [np.where(seen, part, 0) for part in (scores.full, scores.best, scores.ceiling)]
        blocks += [np.where(lost, part, 0) for part in (scores.null_full, scores.null_best)]
        blocks.append(seen.astype(float))
    return np.hstack(blocks) if blocks else np.zeros((len(classes), 0))


def _with_prior(drawn: Array, stacked: Array, corners: Array | None, d: int, stream: np.random.Generator, stands_for: float) -> Array:
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
        """Return sums under weights of shape (b, groups): observed (b, classes, parts·d + 1), null (b, classes, 2d).

        Inside, draws lie along the last axis: the weights of a donor are then contiguous in memory.
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
        """Yield κ_FIP, κ_MPP and FIP − FIP⁰ over the used classes, docs as weights; shape (b,) each."""
        known = np.isfinite(self.fip0) & np.isfinite(self.mpp0) & used  # a draw leaves out the classes of which it has no pair
        docs = np.where(known, self.docs, 0)
        share = docs / docs.sum(axis=1, keepdims=True)
        for x, null in ((self.fip, self.fip0), (self.mpp, self.mpp0)):
            yield np.where(known, share * (x - null) / (self.ceiling - null), 0).sum(axis=1)
        yield np.where(known, share * (self.fip - self.fip0), 0).sum(axis=1)


def _of_pairs(sums: tuple[Array, Array], value: Callable[[Array], Array], made: _Sums) -> Numbers:
    """Return the metric of each class from ``_Sums.at``."""
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
    """Apply the null rules, to each class and then over all, and form the corrected index.

    Args:
        labels: names of the classes.
        point: the metric on the data, b = 1.
        drawn: the metric on each draw.
        n: number of docs.
        groups: number of clusters.
        effective: effective number of clusters (``intervals.effective_clusters``).
        scale: the metric's scale.
        level: nominal coverage in 0..1.
        null: where X⁰ comes from: ``measured`` or ``assumed``.
        may_leave: shape (classes,), classes that do not count as lost when they are left out: the two halves of a split class, which differ in how
            docs answer, not in what they are asked.
    """
    se = np.array([np.std(known, ddof=1) if len(known := gap[np.isfinite(gap)]) > 1 else math.nan for gap in (drawn.mpp - drawn.mpp0).T])
    states = [_state(point, c, SATURATED_SE[null] * float(se[c]), scale) for c in range(len(labels))]
    used = np.array([state == "used" for state in states])
    docs = point.docs[0]
    nothing = Estimate(None, None, None, None, n, groups, 0, level)
    saturated = int(docs[[state == "saturated" for state in states]].sum())
    luck = Luck(nothing, *_null_of_all(point), None, None, _by_class_label(labels, states, point), saturated, 0, null)
    staying = used if may_leave is None else used | may_leave
    if not docs[used].sum() or 2 * docs[staying].sum() < docs.sum():
        lost = max(("saturated", "no variety", "no donors"), key=lambda s: sum(docs[c] for c, state in enumerate(states) if state == s))
        why = f"{_WHY[null][lost]} in {int(docs.sum() - docs[used].sum())} of {int(docs.sum())} docs"
        return dataclasses.replace(luck, estimate=dataclasses.replace(nothing, reason=why))
    with np.errstate(divide="ignore", invalid="ignore"):
        (full,), (best,), (signal,) = point.of_used(used)
        full_drawn, best_drawn, signal_drawn = drawn.of_used(used)
        luck = dataclasses.replace(luck, kappa_full=float(full), kappa_best=float(best))
        if signal <= SIGNAL_SE * np.nanstd(signal_drawn, ddof=1):
            return dataclasses.replace(luck, estimate=dataclasses.replace(nothing, reason=_WHY[null]["no signal"]))
        estimate = summarise(float(1 - best / full), 1 - best_drawn / full_drawn, n, groups, effective, level=level)
    return dataclasses.replace(luck, estimate=estimate)


def _by_class_label(labels: Sequence[str], states: Sequence[str], point: Numbers) -> tuple[ClassLuck, ...]:
    """Return the numbers of each answer class on the data."""
    columns = (point.fip, point.mpp, point.ceiling, point.fip0, point.mpp0)
    return tuple(ClassLuck(label, int(point.docs[0][c]), states[c], *(float(column[0, c]) for column in columns)) for c, label in enumerate(labels))


def _null_of_all(point: Numbers) -> tuple[float | None, float | None]:
    """Return FIP⁰ and MPP⁰ over all classes that have a null, docs as weights; None where there is no such class."""
    known, docs = np.isfinite(point.fip0[0]) & np.isfinite(point.mpp0[0]), point.docs[0]
    if not known.any():
        return None, None
    fip0, mpp0 = (float(np.average(x[0, known], weights=docs[known])) for x in (point.fip0, point.mpp0))
    return fip0, mpp0


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
    """Return the state of answer class ``c`` (``ClassLuck.state``).

    Args:
        point: the metric on the data.
        c: the class.
        least: how far the ceiling must exceed MPP⁰, on the metric's own scale.
        scale: the metric's scale.
    """
    ceiling, fip0, mpp0 = (float(x[0, c]) for x in (point.ceiling, point.fip0, point.mpp0))
    if not (math.isfinite(fip0) and math.isfinite(mpp0) and math.isfinite(ceiling)):
        return "no donors"
    if ceiling - fip0 < NO_VARIETY * scale:
        return "no variety"
    return "saturated" if not ceiling - mpp0 >= max(NO_VARIETY * scale, least) else "used"
