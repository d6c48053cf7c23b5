"""What other boxes on the image change: two variants of one MAGIC dataset, item by item, with clustered bootstrap intervals. NumPy only.

| contrast | difference | what |
|---|---|---|
| ``distraction`` | relevant − all | what the adversarial boxes cost: above 0, the model does better without them |
| ``boxes`` | all − none | what the drawn boxes give, adversarial ones included |
| ``hints`` | relevant − none | what the relevant boxes alone give |

Compared are accuracies and, where both variants have boxes, recall. Precision and F1 are left out: without adversarial
boxes no box can be used wrongly, so they would rise by construction.

Source: MAGIC paper, 3.1 (adversarial regions), 5.3 (exhaustive use); the contrasts are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lmms_patch.compare.magic import bounds, difference
from lmms_patch.errors import RecordError
from lmms_patch.magic.score import results
from lmms_patch.magic.score.results import Record
from lmms_patch.runs.unjudged import BY_JUDGE
from lmms_patch.stats import paired
from lmms_patch.stats.paired import Difference
from lmms_patch.stats.resample import LEVEL, Seed

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
        differences: by metric (``results``), second less first; an item without a verdict in either is left out of that
        metric.
        bounds: of the metrics that lack verdicts: the least and the greatest difference (``magic.bounds``).
    """

    name: str
    items: int
    only_first: int
    only_second: int
    differences: Mapping[str, Difference]
    bounds: Mapping[str, tuple[Difference, Difference]]


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
        first: records of its first variant.
        second: records of its second variant.
        skip: metrics to leave out (judged metrics, where the judges are not the same).
        draws: of the bootstrap over images.
        level: nominal coverage of the intervals, 0..1.
        seed: of the bootstrap.

    Raises:
        RecordError: records of other variants, no item in both, or the same item with other data.
    """
    for wanted, records in zip(CONTRASTS[name], (first, second), strict=True):
        if other := sorted({record.variant for record in records} - {wanted}):
            raise RecordError(f"the contrast {name!r} is of {' and '.join(CONTRASTS[name])}, not of {other[0]}")
    ours, theirs = ({record.item: record for record in results.answered(records)} for records in (first, second))
    # sorted, since what the bootstrap draws must not depend on the order of a log's lines
    pairs = [(ours[item], theirs[item]) for item in sorted(ours.keys() & theirs.keys())]
    if not pairs:
        raise RecordError("the two variants have no item in common; both must be asked of the same data")
    for pair in pairs:
        _check_same(*pair)
    metrics = [metric for metric in compared(first, second) if metric not in skip]
    differences = {
        metric: difference(metric, pairs, both=True, exact=False, draws=draws, level=level, seed=seed)
        for metric in metrics
    }
    # the two variants ask for different responses
    apart = [False] * len(pairs)
    ends = {
        metric: bounds(metric, pairs, apart, draws=draws, level=level, seed=seed)
        for metric in metrics
        if metric in BY_JUDGE
    }
    known = {metric: end for metric, end in ends.items() if end is not None}
    return Contrast(name, len(pairs), len(ours) - len(pairs), len(theirs) - len(pairs), differences, known)


def compared(first: Sequence[Record], second: Sequence[Record]) -> list[str]:
    """Return the comparable metrics of two variants."""
    answers = {**results.JUDGED, **results.ANSWERS}
    out = [
        metric
        for metric, key in answers.items()
        if all(any(getattr(record, key) is not None for record in side) for side in (first, second))
    ]
    boxes = all(side and side[0].variant != "none" for side in (first, second))
    return [*out, *(RECALL if boxes else ())]


def _check_same(first: Record, second: Record) -> None:
    """Check two records for the same data, as far as known."""
    if first.asked.get("data") != second.asked.get("data"):
        raise RecordError(
            f"item {first.item} has another question, answer, image or boxes in one variant than in the other: other data"
        )
    if first.group != second.group:
        raise RecordError(
            f"item {first.item} is on image {first.group!r} in one variant and on {second.group!r} in the other: other data"
        )
    if "none" not in (first.variant, second.variant) and len(first.relevant) != len(second.relevant):
        raise RecordError(
            f"item {first.item} has {len(first.relevant)} relevant boxes in one variant and {len(second.relevant)} in the other: other data"
        )
