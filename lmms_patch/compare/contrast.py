"""What other boxes on the image change: two variants of one MAGIC dataset, item by item, with clustered bootstrap intervals. NumPy only.

| contrast | difference | what |
|---|---|---|
| ``distraction`` | relevant − all | what the adversarial boxes cost: above 0, the model does better without them |
| ``boxes`` | all − none | what the drawn boxes give, adversarial ones included |
| ``hints`` | relevant − none | what the relevant boxes alone give |

Of accuracies and, where both variants have boxes, of recall. Precision and F1 are left out: without adversarial boxes nothing can be used
wrongly, and they would rise by construction.

Source: MAGIC paper, 3.1 (adversarial regions), 5.3 (exhaustive use); the contrasts are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmms_patch.errors import RecordError
from lmms_patch.magic.score import results
from lmms_patch.stats import paired
from lmms_patch.stats.paired import Difference
from lmms_patch.stats.resample import LEVEL, Array, Seed, cluster_numbers, totals

Record = Mapping[str, Any]

CONTRASTS = {"distraction": ("all", "relevant"), "boxes": ("none", "all"), "hints": ("none", "relevant")}
"""By name, the variant that is subtracted and the one that it is subtracted from."""
RECALL = ("magiscore_recall_micro", "magiscore_recall_macro")


@dataclass(frozen=True)
class Contrast:
    """Two variants compared.

    Attributes:
        name: one of ``CONTRASTS``.
        items: number of items that both have.
        only_first, only_second: number of items that only one of them has; they are left out.
        differences: by metric (``results``), second less first; an item without a verdict in either is left out of that metric.
    """

    name: str
    items: int
    only_first: int
    only_second: int
    differences: Mapping[str, Difference]


def contrast(
    name: str,
    first: Sequence[Record],
    second: Sequence[Record],
    *,
    skip: Sequence[str] = (),
    draws: int = paired.DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
) -> Contrast:
    """Compare two variants, paired by item.

    Args:
        name: one of ``CONTRASTS``.
        first, second: records (``magic`` objects) of its two variants.
        skip: metrics to leave out (judged ones, where the judges are not the same).
        draws, level, seed: of the bootstrap over images.

    Raises:
        RecordError: records of other variants, no item in both, or the same item with other data.
    """
    for wanted, records in zip(CONTRASTS[name], (first, second), strict=True):
        if other := sorted({str(record["variant"]) for record in records} - {wanted}):
            raise RecordError(f"the contrast {name!r} is of {' and '.join(CONTRASTS[name])}, not of {other[0]}")
    ours, theirs = ({str(record["item"]): record for record in results.answered(records)} for records in (first, second))
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        raise RecordError("the two variants have no item in common; both must be asked of the same data")
    pairs = [(ours[item], theirs[item]) for item in both]
    for pair in pairs:
        _check_same(*pair)
    found = {metric: _difference(metric, pairs, draws, level, seed) for metric in compared(first, second) if metric not in skip}
    return Contrast(name, len(both), len(ours) - len(both), len(theirs) - len(both), found)


def compared(first: Sequence[Record], second: Sequence[Record]) -> list[str]:
    """The metrics that two variants can be compared in."""
    answers = {**results.JUDGED, **results.ANSWERS}
    out = [metric for metric, key in answers.items() if all(any(record.get(key) is not None for record in side) for side in (first, second))]
    boxes = all(side and side[0]["variant"] != "none" for side in (first, second))
    return [*out, *(RECALL if boxes else ())]


def _check_same(first: Record, second: Record) -> None:
    """Whether two records are of the same data, as far as they say."""
    if first.get("asked", {}).get("data") != second.get("asked", {}).get("data"):
        raise RecordError(f"item {first['item']} has another question, answer, image or boxes in one variant than in the other: other data")
    if first["group"] != second["group"]:
        raise RecordError(f"item {first['item']} is on image {first['group']!r} in one variant and on {second['group']!r} in the other: other data")
    if "none" not in (first["variant"], second["variant"]) and len(first["relevant"]) != len(second["relevant"]):
        raise RecordError(
            f"item {first['item']} has {len(first['relevant'])} relevant boxes in one variant and {len(second['relevant'])} in the other: other data"
        )


def _difference(metric: str, pairs: Sequence[tuple[Record, Record]], draws: int, level: float, seed: Seed) -> Difference:
    """One metric: each side is a ratio of sums over items."""
    counted = [(pair, sides) for pair in pairs if (sides := _parts(metric, *pair)) is not None]
    rows = np.array([[*first, *second] for _, (first, second) in counted], float).reshape(-1, 4)
    labels = cluster_numbers(results.clusters([pair[0] for pair, _ in counted])) if counted else np.zeros(0, int)
    sums = totals(rows, labels)
    apart = int((np.abs(sums[:, :2] - sums[:, 2:]) > 1e-9).any(axis=1).sum())
    told: dict[str, Any] = {"extremes": {metric: paired.unseen_ratios(rows)}, "differing": {metric: apart}}
    return paired.differences(rows, {metric: _sides}, labels, draws=draws, level=level, seed=seed, **told)[metric]


def _parts(metric: str, first: Record, second: Record) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Numerator and denominator of each side; None where the pair does not count."""
    sides = []
    for record in (first, second):
        if metric == "magiscore_recall_micro":
            one = results.item_score(record)
            sides.append((float(one.tp), float(one.relevant)))
        elif (value := results.score(record, metric)) is None:
            return None
        else:
            sides.append((value, 1.0))
    return sides[0], sides[1]


def _sides(sums: Array) -> tuple[Any, Any]:
    return sums[..., 0] / sums[..., 1], sums[..., 2] / sums[..., 3]
