"""MagiScore: did the model use the boxes that the answer needs, and only those? NumPy only.

For an item, ŷ says which boxes the reasoning used and y* which are relevant: TP boxes are both, FP used only, FN
relevant only, TN neither. P = TP / (TP + FP), R = TP / (TP + FN), F1 = 2 TP / (2 TP + FP + FN). *Micro* sums the counts
over items first; *macro* averages the items' P, R and F1 (MAGIC paper, 4.1; worked example in appendix D).

Where a number is not defined, one convention holds everywhere:

* An item with a relevant box on which the model used none has no precision (0 / 0). It counts **0** in macro precision,
as its F1 is 0 by its own
formula: the model looked at nothing that it had to. This is scikit-learn's ``zero_division=0``, and it agrees with the
paper's Table 2: LLaVA-OneVision's macro precision (48.3) lies far below its micro precision (77.8), which only items
that count 0 can cause. ``regions_unused`` is the share of such items.
* An item without a relevant box has no recall, and nothing that a precision could find. Such items are always **left
out** of macro recall and F1, and of macro precision where no box was used (where one was used, precision is 0 / FP = 0,
and counts). ``results.counts`` counts them. A 0 would punish a model for using no box where none is needed; a 1 would
reward silence.
* Micro numbers are ratios of sums, so such items simply add their counts. A denominator of 0 is not defined: None, with
  the reason.
* Boxes that do not exist are no part of P, R or F1 (φ maps into 1..count): they are reported separately.

Intervals: over clusters of items (``stats.intervals``); macro means over the items on which they are defined.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmms_patch.errors import PatchError
from lmms_patch.stats import intervals
from lmms_patch.stats.resample import DRAWS, LEVEL, Estimate, Seed, cluster_numbers


class RegionError(PatchError):
    """An impossible box number: outside the boxes of its item."""


@dataclass(frozen=True)
class ItemScore:
    """The counts and scores of an item.

    Attributes:
        tp: number of boxes that are relevant and used. The four counts sum to the number of boxes.
        fp: number of boxes used only.
        tn: number of boxes neither relevant nor used.
        fn: number of boxes relevant only.
        precision: in 0..1; None where nothing is relevant and nothing used; 0 where something is relevant and nothing
        used.
        recall: in 0..1; None where nothing is relevant.
        f1: in 0..1; None where nothing is relevant.
        exhaustive: whether all boxes were used; None where there is no box.
        invented: number of named boxes that do not exist.
    """

    tp: int
    fp: int
    tn: int
    fn: int
    precision: float | None
    recall: float | None
    f1: float | None
    exhaustive: bool | None
    invented: int

    @property
    def used(self) -> int:
        """Number of boxes used."""
        return self.tp + self.fp

    @property
    def relevant(self) -> int:
        """Number of relevant boxes."""
        return self.tp + self.fn


@dataclass(frozen=True)
class MagiScore:
    """MagiScore of a set of items; fractions in 0..1.

    Attributes:
        precision_micro: from the sums over items.
        recall_micro: from the sums over items.
        f1_micro: from the sums over items.
        precision_macro: mean over items (which ones: module docstring).
        recall_macro: mean over items.
        f1_macro: mean over items.
    """

    precision_micro: Estimate
    recall_micro: Estimate
    f1_micro: Estimate
    precision_macro: Estimate
    recall_macro: Estimate
    f1_macro: Estimate


def score_item(
    used: Collection[int], relevant: Collection[int], count: int, invented: Collection[int] = ()
) -> ItemScore:
    """Compare the used boxes with the relevant boxes (paper, 4.1, appendix D).

    Args:
        used: numbers within 1..count (``extract.Mentions.used``).
        relevant: numbers within 1..count.
        count: number of boxes shown.
        invented: numbers named outside 1..count.

    Raises:
        RegionError: a used or relevant number is outside 1..count.

    >>> score_item({1, 2, 3}, {1, 4}, 5).f1
    0.4
    """
    for what, numbers in (("used", used), ("relevant", relevant)):
        if wrong := sorted(number for number in set(numbers) if not 1 <= number <= count):
            raise RegionError(
                f"box {wrong[0]} cannot be {what}: the item has {count} boxes, numbered from 1; boxes that do not exist go in 'invented'"
            )
    chosen, needed = set(used), set(relevant)
    tp, fp, fn = len(chosen & needed), len(chosen - needed), len(needed - chosen)
    # no box used where one was needed: 0 / 0 counts 0 (see above)
    precision = None if not chosen and not needed else tp / max(1, tp + fp)
    recall = tp / len(needed) if needed else None
    f1 = 2 * tp / (2 * tp + fp + fn) if needed else None
    exhaustive = len(chosen) == count if count else None
    return ItemScore(tp, fp, count - tp - fp - fn, fn, precision, recall, f1, exhaustive, len(set(invented)))


_COLUMNS = ("tp", "fp", "fn", "p", "p_n", "r", "r_n", "f")


def _row(item: ItemScore) -> list[float]:
    """Return an item's columns for summing, by ``_COLUMNS``."""
    return [
        item.tp,
        item.fp,
        item.fn,
        item.precision or 0.0,
        item.precision is not None,
        item.recall or 0.0,
        item.recall is not None,
        item.f1 or 0.0,
    ]


_STATISTICS: tuple[tuple[str, dict[str, float], dict[str, float]], ...] = (
    ("precision_micro", {"tp": 1}, {"tp": 1, "fp": 1}),
    ("recall_micro", {"tp": 1}, {"tp": 1, "fn": 1}),
    ("f1_micro", {"tp": 2}, {"tp": 2, "fp": 1, "fn": 1}),
    ("precision_macro", {"p": 1}, {"p_n": 1}),
    ("recall_macro", {"r": 1}, {"r_n": 1}),
    ("f1_macro", {"f": 1}, {"r_n": 1}),
)


def counted(item: ItemScore, name: str) -> tuple[float, float]:
    """Return what an item adds above and below the line of a micro number, such as ``f1_micro``."""
    above, below = next(sides for one, *sides in _STATISTICS if one == name)
    return _weighted(item, above), _weighted(item, below)


def _weighted(item: ItemScore, weights: Mapping[str, float]) -> float:
    return float(sum(weight * getattr(item, count) for count, weight in weights.items()))


def magiscore(
    items: Sequence[ItemScore],
    clusters: Sequence[Hashable] | None = None,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
) -> MagiScore:
    """Compute MagiScore of many items, each number with its interval; clusters are kept together.

    Args:
        items: from ``score_item``.
        clusters: for each item, what it is resampled with (its image); None: each item alone.
        draws: B.
        level: nominal coverage in 0..1.
        seed: an int gives every number the same draws; a generator continues from number to number.
    """
    if clusters is not None and len(clusters) != len(items):
        raise ValueError(f"{len(clusters)} clusters for {len(items)} items")
    # without items the array would have no second axis
    rows = np.array([_row(item) for item in items], float).reshape(len(items), len(_COLUMNS))
    labels = cluster_numbers(clusters) if items else None
    estimates = {}
    for name, *sides in _STATISTICS:
        above, below = (rows @ [side.get(column, 0.0) for column in _COLUMNS] for side in sides)
        estimates[name] = intervals.ratio(above, below, labels, draws=draws, level=level, seed=seed)
    return MagiScore(**estimates)
