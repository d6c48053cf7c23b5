"""Forms: aggregations that are a function of sums over docs, so that they can be resampled fast. NumPy only.

A benchmark's aggregation M is code that we did not write. Where M is a mean, a sum, a ratio of counts (F1) or MME's
score, the same number is a function of a few column sums, and a bootstrap draw needs only those sums. A declared form
is never trusted: ``fits`` compares it with what M itself returned.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmms_patch.stats.resample import Array, Bools, Ints


@dataclass(frozen=True)
class Picked:
    """One answer of each doc as arrays: the input of M.

    Attributes:
        scores: shape (docs,), the scores, on the metric's own scale.
        said: shape (docs,), whether the answer was the positive label; only for forms of counts.
        gold: shape (docs,), whether the gold is the positive label; only for forms of counts.
        clusters: shape (docs,), cluster numbers from 0; only for ``mme``.
        categories: shape (docs,), category numbers from 0; only for ``mme`` and ``macro``.
        merged: of each category the number of what it counts in, as ``on`` takes it; () where each category counts by
            itself.
    """

    scores: Array
    said: Bools | None = None
    gold: Bools | None = None
    clusters: Ints | None = None
    categories: Ints | None = None
    merged: tuple[int, ...] = ()

    def where(self, mask: Bools) -> Picked:
        """Return the same arrays for the docs in ``mask``, shape (docs,)."""
        parts: dict[str, Any] = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        kept: dict[str, Any] = {
            name: part[mask] if isinstance(part, np.ndarray) else part for name, part in parts.items()
        }
        return Picked(**kept)


@dataclass(frozen=True)
class Form:
    """M as a function of sums over docs.

    Attributes:
        name: the name that a profile's ``aggregation`` uses.
        rows: a function from the picked answers to shape (docs, d): the columns to be summed. Where ``whole``, a row
        counts for its whole cluster.
        value: a function from sums of shape (..., d) to M of shape (...); nan where M is not defined.
        extremes: a function from the ends of a doc's scores, and d, to shape (kinds, 2, d): for each kind of doc (its
            gold, its category) the rows of the worst and the best answer.
        whole: whether rows have a meaning only per cluster (they stand on the cluster's first doc).
        linear: whether M is linear in the scores, so that M of expected scores is the expected M.
        plain: whether M is a mean, a percentage or a sum of the scores, so that every doc weighs the same.
        weight: a function from the rows of a set of answers to what an unseen doc of this set adds below the line; 1
            but for ``RATIO``.
    """

    name: str
    rows: Callable[[Picked], Array]
    value: Callable[[Array], Array]
    extremes: Callable[[tuple[float, float], int], Array]
    whole: bool = False
    linear: bool = False
    plain: bool = False
    weight: Callable[[Array], float] = lambda _: 1.0

    @property
    def of_scores(self) -> bool:
        """Whether M depends on the scores alone, not on what was said: then a donor's scores can be aggregated too."""
        return self.linear or self.whole

    def of_weighted(self, sums: Array, docs: float) -> Array:
        """Return M of ``docs`` docs from weighted sums.

        The weights do not add up to the number of docs. That matters only where M is a sum, which is rescaled here.
        """
        return docs * _divided(sums[..., 0], sums[..., 1]) if self.name == "sum" else self.value(sums)

    def within(self, low: float, high: float) -> Form:
        """Return the form with M moved to the nearer end where it lies outside the scale of a doc's scores, as estimates may; a sum stays."""
        unit = {"mean": 1.0, "percent": 100.0}.get(self.name)
        return (
            self
            if unit is None
            else dataclasses.replace(self, value=lambda sums: np.clip(self.value(sums), unit * low, unit * high))
        )

    def unseen(self, ends: tuple[float, float], width: int, sets: int) -> Array:
        """Return the rows that an unseen doc could have in some sets of answers: for each kind of doc, each way to be worst or best in each set.

        Args:
            ends: least and most that a doc can score.
            width: d, columns of a set.
            sets: number of sets.

        Returns:
            Shape (kinds · 2^sets, sets · d).
        """
        kinds = self.extremes(ends, width)
        return np.array(
            [
                np.concatenate([kind[pick] for pick in picks])
                for kind in kinds
                for picks in itertools.product((0, 1), repeat=sets)
            ]
        )


def _divided(a: Array, b: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(a / b, float)


def _with_ones(picked: Picked) -> Array:
    return np.column_stack([picked.scores, np.ones(len(picked.scores))])


def _ends_with_ones(ends: tuple[float, float], _: int) -> Array:
    return np.array([[[end, 1.0] for end in ends]])


MEAN = Form(
    "mean", _with_ones, lambda sums: _divided(sums[..., 0], sums[..., 1]), _ends_with_ones, linear=True, plain=True
)
PERCENT = Form(
    "percent",
    _with_ones,
    lambda sums: 100 * _divided(sums[..., 0], sums[..., 1]),
    _ends_with_ones,
    linear=True,
    plain=True,
)
SUM = Form("sum", _with_ones, lambda sums: np.asarray(sums[..., 0], float), _ends_with_ones, linear=True, plain=True)


def _mean_below(rows: Array) -> float:
    counted = rows[:, 1] > 0
    return float(rows[counted, 1].mean()) if counted.any() else 1.0


RATIO = Form("ratio", _with_ones, MEAN.value, _ends_with_ones, weight=_mean_below)
"""A ratio of sums over docs that may weigh differently, from rows of what a doc adds above and below the line (MAGIC's numbers)."""


def _counts(picked: Picked) -> Array:
    """Return true positives, false positives and false negatives of each doc, shape (docs, 3)."""
    # without verdicts this form must fit nothing, and nan equals no number
    if picked.said is None or picked.gold is None:
        return np.full((len(picked.scores), 3), math.nan)
    return np.column_stack([picked.said & picked.gold, picked.said & ~picked.gold, ~picked.said & picked.gold]).astype(
        float
    )


def _ends_of_counts(_: tuple[float, float], __: int) -> Array:
    """Return the worst and best rows: a positive gold is missed or found, a negative gold is called positive or not."""
    missed, hit, false, silent = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)
    return np.array([[missed, hit], [false, silent]])


F1 = Form("f1", _counts, lambda s: _divided(2 * s[..., 0], 2 * s[..., 0] + s[..., 1] + s[..., 2]), _ends_of_counts)
PRECISION = Form("precision", _counts, lambda s: _divided(s[..., 0], s[..., 0] + s[..., 1]), _ends_of_counts)
RECALL = Form("recall", _counts, lambda s: _divided(s[..., 0], s[..., 0] + s[..., 2]), _ends_of_counts)


def _pairs(picked: Picked) -> Array:
    """Return the rows of MME's score (Fu et al. 2023, https://arxiv.org/abs/2306.13394, 2.2).

    Each question pair scores 100 · (accuracy + 1 if all right), in the column of its category.

    Returns:
        Shape (docs, 2K): K sums by category, then K numbers of pairs; on the first doc of each pair, 0 elsewhere.
    """
    if picked.clusters is None or picked.categories is None or not len(picked.scores):
        return np.full((len(picked.scores), 2), math.nan)
    _, first, place, size = np.unique(picked.clusters, return_index=True, return_inverse=True, return_counts=True)
    right = np.bincount(place, picked.scores)
    kinds = int(picked.categories.max()) + 1
    out = np.zeros((len(picked.scores), 2 * kinds))
    # a pair stands in the row of its first doc, so that sums over docs count it once
    out[first, picked.categories[first]] = 100 * (right / size + (right == size))
    out[first, kinds + picked.categories[first]] = 1
    return out


def _ends_by_category(ends: tuple[float, float], width: int) -> Array:
    """Return, for each category, the rows of a doc (or pair) with the worst and the best score, and its count of 1."""
    kinds = width // 2
    out = np.zeros((kinds, 2, width))
    for kind in range(kinds):
        out[kind, :, kind], out[kind, :, kinds + kind] = ends, 1
    return out


def _sum_of_means(sums: Array) -> Array:
    kinds = sums.shape[-1] // 2
    means = _divided(sums[..., :kinds], sums[..., kinds:])
    # a draw without any doc has no number, while a sum over nothing would be 0
    return np.asarray(np.where(np.isnan(means).all(axis=-1), math.nan, np.nansum(means, axis=-1)), float)


# a pair scores at most 200: 100 for its accuracy, and 100 more if all is right
MME = Form("mme", _pairs, _sum_of_means, lambda _, width: _ends_by_category((0.0, 200.0), width), whole=True)


def _by_category(picked: Picked, kinds: int | None = None) -> Array:
    """Return rows of shape (docs, 2K): the score, then 1, in the columns of the doc's category.

    K is ``kinds``, by default as many as occur.
    """
    if picked.categories is None or not len(picked.scores):
        return np.full((len(picked.scores), 2), math.nan)
    kinds, docs = int(picked.categories.max()) + 1 if kinds is None else kinds, np.arange(len(picked.scores))
    out = np.zeros((len(docs), 2 * kinds))
    out[docs, picked.categories], out[docs, kinds + picked.categories] = picked.scores, 1
    return out


def _mean_of_means(sums: Array) -> Array:
    kinds = sums.shape[-1] // 2
    present = (sums[..., kinds:] > 0).sum(axis=-1)
    return _divided(_sum_of_means(sums), present)


MACRO = Form("macro", _by_category, _mean_of_means, _ends_by_category, linear=True)
"""The mean over categories of the mean over their docs (MMStar); categories without docs do not count."""


# kept, since ``on`` is called anew for every set of answers
@functools.lru_cache(maxsize=64)
def _merging(merged: tuple[int, ...]) -> Form:
    """Return ``MACRO`` where the means of some categories are averaged first, and count as one."""
    into = np.array(merged)
    parts = [np.flatnonzero(into == number) for number in np.unique(into)]
    several = np.array([len(part) > 1 for part in parts])

    def value(sums: Array) -> Array:
        means = _divided(sums[..., : len(into)], sums[..., len(into) :])
        of_parts = np.stack([means[..., part].mean(axis=-1) for part in parts], axis=-1)
        known = np.isfinite(of_parts)
        whole = known.any(axis=-1) & known[..., several].all(axis=-1)
        return np.where(whole, _divided(np.where(known, of_parts, 0).sum(axis=-1), known.sum(axis=-1)), math.nan)

    return dataclasses.replace(MACRO, rows=lambda picked: _by_category(picked, len(into)), value=value)


def on(form: Form, merged: tuple[int, ...]) -> Form:
    """Return a form as it is on docs some of whose categories count as one.

    VSI-Bench has ten kinds of questions, and its number is the mean over eight: the means of three kinds are averaged
    first. It is not defined where one of the three has no docs. A kind that counts by itself may be missing.

    Args:
        form: the form.
        merged: of each category the number of what it counts in; (): each counts by itself.
    """
    return _merging(merged) if form is MACRO and merged else form


FORMS = {form.name: form for form in (MEAN, PERCENT, SUM, F1, PRECISION, RECALL, MME, MACRO)}


def is_whole(name: str | None) -> bool:
    """Return whether the form of this name works on whole clusters; False for unknown names."""
    form = FORMS.get(name or "")
    return form is not None and form.whole


def fits(form: Form, checks: Sequence[tuple[Picked, float | None]]) -> bool:
    """Return whether a form gives what M gave, on every set of items that M was called with.

    Args:
        form: the form.
        checks: sets of items, each with M's own number; None (M gave none) fits nothing.
    """
    # M may round its number, and 0.50 is written as 0.5: the
    # longest of its numbers says how many decimals it keeps
    decimals = max((_decimals(native) for _, native in checks if native is not None), default=0)
    return bool(checks) and all(
        native is not None and same(value_of(form, picked), native, decimals) for picked, native in checks
    )


def fits_nearly(form: Form, checks: Sequence[tuple[Picked, float | None]]) -> bool:
    """Return whether a form gives what M gave within 2 % of it.

    For captions: their tokens and corpus weights differ a little from the scorer's.
    """
    return bool(checks) and all(
        native is not None and abs(value_of(form, picked) - native) <= 0.02 * abs(native) for picked, native in checks
    )


def value_of(form: Form, picked: Picked) -> float:
    """Return M of these answers by the form; nan where M is not defined."""
    form = on(form, picked.merged)
    return float(form.value(form.rows(picked).sum(axis=0)))


def _decimals(native: float) -> int:
    return len(repr(float(native)).partition(".")[2])


def same(value: float, native: float, decimals: int | None = None) -> bool:
    """Return whether two numbers are equal but for float error, or but for the rounding of M (to 2 decimals or more)."""
    decimals = _decimals(native) if decimals is None else decimals
    # with one decimal a wrong form would fit too often; more than six decimals are no rounding
    rounded = 2 <= decimals <= 6 and math.isfinite(value) and abs(value - native) <= 0.51 * 10.0**-decimals
    return math.isclose(value, native, rel_tol=1e-9, abs_tol=1e-9) or rounded


def recognise(checks: Sequence[tuple[Picked, float | None]], declared: str | None = None) -> tuple[Form | None, str]:
    """Return the form of M: the declared form if it fits, else a mean, a percentage or a sum if one of them fits.

    Returns:
        The form, or None; and a warning where a declared form does not fit.

    >>> form, _ = recognise([(Picked(np.array([0.0, 1.0, 1.0])), 2 / 3)])
    >>> form.name
    'mean'
    """
    wanted: Any = FORMS.get(declared or "")
    if wanted is not None and fits(wanted, checks):
        return wanted, ""
    simple = next((form for form in (MEAN, PERCENT, SUM) if fits(form, checks)), None)
    warning = (
        f"the aggregation is declared as {declared}, but does not give the same numbers"
        if wanted is not None and checks
        else ""
    )
    return simple, warning
