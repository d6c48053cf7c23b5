"""The numbers of a MAGIC task from its records, each with its interval; docs of an image are kept together. NumPy only.

All numbers come from the records of docs alone, so a finished run gives them again.

| metric | variants | meaning | MAGIC paper |
|---|---|---|---|
| ``magiscore_precision_micro`` .. ``magiscore_f1_macro`` | all, relevant | MagiScore (``magiscore``) | 4.1, app. D |
| ``regions_exhaustive`` | all, relevant | share of docs with a box on which all boxes were used | 5.3 |
| ``regions_unused`` | all, relevant | share of docs with a box on which none was used | |
| ``regions_dismissed`` | all, relevant | share of docs with a box on which a box was named only to be ruled out | |
| ``regions_invented`` | all but selfheal | share of docs on which a box was named that does not exist | |
| ``acc_exact``, ``acc_synonym`` | every one | final answer right by its words (``matching``): no judge | |
| ``acc_short``, ``acc_full`` | every one, with a judge | judged against the short and the full gold answer | 4.2 |
| ``self_heal`` | selfheal, with a judge | share of injected wrong runs that the continuation corrects | 4.3 |
| ``answer_found`` | every one | share of responses that mark an answer | |

All are fractions in 0..1.

A number by the judge is of the docs with a verdict: with s of k right, s / k. It has **bounds** (``bounds``): where u
more docs should have a verdict and have none, it would be s / (k + u) were all of these wrong, and (s + u) / (k + u)
were all right. A doc without the gold answer that the number needs is no part of either.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct

from lmms_patch.magic.items import TYPES
from lmms_patch.magic.score.magiscore import ItemScore, magiscore, score_item
from lmms_patch.magic.score.verdicts import NO_GOLD
from lmms_patch.runs.failures import ASK_AGAIN
from lmms_patch.runs.unjudged import BY_JUDGE, Bounds
from lmms_patch.stats import intervals
from lmms_patch.stats.resample import DRAWS, LEVEL, Estimate, Seed, cluster_numbers

SCHEMA: Final = 1
Variant = Literal["all", "relevant", "none", "selfheal"]
VARIANTS: tuple[str, ...] = get_args(Variant)
"""What a task shows: all boxes, the relevant boxes, no box; or all boxes, and wrong steps from which the model continues."""

LARGEST = 10_000
"""The most boxes or steps of an item: a larger number, in a damaged file, would only make loops very long."""
Size = Annotated[int, Meta(ge=0, le=LARGEST)]
BoxNumber = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]


class Record(Struct, kw_only=True):
    """A doc of a MAGIC task (docs/magic.md).

    Attributes:
        id: of the doc.
        item: id of its item; Self-Heal asks several docs of one item.
        group: its image; "" where it is not known.
        type: its question type; "" where it is not known.
        asked: digests of the item (``data``), of what was shown of it (``doc``), and of the prompt.
        boxes: how many are drawn.
        relevant: numbers, as drawn, of the relevant boxes.
        used: numbers of boxes that the reasoning names.
        dismissed: the part of ``used`` that is named only to be ruled out.
        invented: numbers that the reasoning names and that are not drawn.
        steps: number of reasoning steps.
        answer_found: whether the response marks its answer.
        exact, synonym: whether the answer is right by its words.
        short, full: whether it is right by the judge; None: no verdict.
        judge: what the judge said.
        first, last: of Self-Heal: the wrong run.
        healed: of Self-Heal: whether the run is corrected, by the judge; None: no verdict.
        failed: what came in place of an answer: the call failed; None where an answer came.
        doc_id: the row of the task's docs.
        response: what the model wrote.
        target: the gold answer.
    """

    schema: Literal[1]
    variant: Variant
    id: str
    item: str
    group: str
    type: str
    question: str = ""
    asked: dict[str, Any] = {}
    boxes: Size
    relevant: list[BoxNumber]
    used: list[BoxNumber]
    invented: list[BoxNumber]
    steps: Size
    answer: str
    answer_found: bool
    exact: bool
    synonym: bool
    short: bool | None = None
    full: bool | None = None
    judge: Any = None
    first: Any = None
    last: Any = None
    healed: bool | None = None
    failed: str | None = None
    dismissed: list[BoxNumber] | None = None
    doc_id: int = 0
    response: str = ""
    target: str = ""


MAGISCORE = tuple(f"magiscore_{what}_{mean}" for mean in ("micro", "macro") for what in ("precision", "recall", "f1"))
REGIONS = ("regions_exhaustive", "regions_unused", "regions_dismissed", "regions_invented")
ANSWERS = {"acc_exact": "exact", "acc_synonym": "synonym"}
JUDGED = {"acc_short": "short", "acc_full": "full"}
HEALED = {"self_heal": "healed"}
LOWER_IS_BETTER = ("regions_exhaustive", "regions_unused", "regions_invented")
NEUTRAL_WHERE_RELEVANT = ("regions_exhaustive",)
"""Metrics without a better direction where only relevant boxes are drawn: the model is then asked to use them all."""


def metrics(variant: str, judged: bool) -> tuple[str, ...]:
    """Return the metrics of a variant, in the order in which they are shown.

    Args:
        variant: one of ``VARIANTS``.
        judged: whether there is a judge.
    """
    regions: tuple[str, ...] = ()
    if variant in ("all", "relevant"):
        regions = (*MAGISCORE, *REGIONS)
    elif variant == "none":
        regions = ("regions_invented",)
    healed = tuple(HEALED) if judged and variant == "selfheal" else ()
    return (*healed, *regions, *(JUDGED if judged else ()), *ANSWERS, "answer_found")


def primary(variant: str, judged: bool) -> str:
    """Return the main metric of a variant, for boards and gates where no metric is named."""
    if variant in ("selfheal", "none"):
        return ("self_heal" if variant == "selfheal" else "acc_short") if judged else "acc_synonym"
    return "magiscore_f1_macro"


def higher_is_better(metric: str, variant: str) -> bool:
    """Return whether a higher value of a metric is better."""
    return metric not in LOWER_IS_BETTER or (variant == "relevant" and metric in NEUTRAL_WHERE_RELEVANT)


def answered(records: Sequence[Record]) -> list[Record]:
    """Return the docs with an answer; docs with a failed call count in no number."""
    return [record for record in records if record.failed is None]


def item_score(record: Record) -> ItemScore:
    """Return MagiScore's counts of a doc."""
    return score_item(record.used, record.relevant, record.boxes, record.invented)


def score(record: Record, metric: str) -> float | None:
    """Return a doc's value of a metric from 0 to 1, for metrics averaged over docs.

    Returns:
        None where the doc does not count, or the metric is not a mean (micro numbers are ratios of sums).
    """
    if record.failed is not None:
        return None
    if metric in (keys := {**ANSWERS, **JUDGED, **HEALED, "answer_found": "answer_found"}):
        value = getattr(record, keys[metric])
        return None if value is None else float(value)
    one = item_score(record)
    if metric == "regions_invented":
        return float(one.invented > 0)
    if metric == "regions_exhaustive":
        return None if one.exhaustive is None else float(one.exhaustive)
    if metric == "regions_dismissed":
        return None if one.exhaustive is None or record.dismissed is None else float(bool(record.dismissed))
    if metric == "regions_unused":
        return None if one.exhaustive is None else float(not one.used)
    return {
        "magiscore_precision_macro": one.precision,
        "magiscore_recall_macro": one.recall,
        "magiscore_f1_macro": one.f1,
    }.get(metric)


def clusters(records: Sequence[Record]) -> list[str]:
    """Return what each doc is resampled with: its image, or else its item."""
    # marked, so that no item's id is the name of another's image
    return [f"group {record.group}" if record.group else f"item {record.item}" for record in records]


def mean(records: Sequence[Record], metric: str, draws: int = DRAWS, level: float = LEVEL, seed: Seed = 0) -> Estimate:
    """Return the mean of a metric over the docs counted by this metric, with an interval.

    Docs of an image are kept together.
    """
    kept = [(record, value) for record in records if (value := score(record, metric)) is not None]
    labels = cluster_numbers(clusters([record for record, _ in kept])) if kept else None
    estimate = intervals.mean([value for _, value in kept], labels, draws=draws, level=level, seed=seed)
    return estimate if kept else dataclasses.replace(estimate, value=None, reason=f"no doc counts in {metric}")


# --- what the judge gave no verdict on ------------------------------------------------------------


def is_due(record: Record, key: str) -> bool:
    """Return whether a doc should have a verdict: the call gave an answer, and a gold answer exists."""
    if record.failed is not None or not record.judge:
        return False
    told = record.judge if isinstance(record.judge, Mapping) else {}
    if getattr(record, key) is not None:
        return True
    return not (isinstance(told.get(key), Mapping) and told[key].get("error") == NO_GOLD)


def bounds(
    records: Sequence[Record], variant: str, draws: int = DRAWS, level: float = LEVEL, seed: Seed = 0
) -> dict[str, Bounds]:
    """Return the bounds of each judge's number with missing verdicts."""
    out = {}
    for name in metrics(variant, judged=True):
        due = [record for record in records if name in BY_JUDGE and is_due(record, BY_JUDGE[name])]
        known = [score(record, name) for record in due]
        if unjudged := known.count(None):
            labels = cluster_numbers(clusters(due))
            ends = [[end if one is None else one for one in known] for end in (0.0, 1.0)]
            low, high = (intervals.mean(scores, labels, draws=draws, level=level, seed=seed) for scores in ends)
            out[name] = Bounds(low, high, unjudged)
    return out


# --- all of them ------------------------------------------------------------------------------------


def numbers(
    records: Sequence[Record], variant: str, judged: bool, draws: int = DRAWS, level: float = LEVEL, seed: Seed = 0
) -> dict[str, Estimate]:
    """Compute every metric of a variant.

    Args:
        records: one per doc.
        variant: one of ``VARIANTS``.
        judged: whether there was a judge.
        draws: number of bootstrap draws.
        level: nominal coverage in 0..1.
        seed: of the bootstrap; an int gives every number the same draws.
    """
    out: dict[str, Estimate] = {}
    scores = None
    for name in metrics(variant, judged):
        if name in MAGISCORE:
            scores = scores or magiscore(
                [item_score(record) for record in records], clusters(records), draws, level, seed
            )
            out[name] = getattr(scores, name.removeprefix("magiscore_"))
        else:
            out[name] = mean(records, name, draws, level, seed)
    return out


def by_type(
    records: Sequence[Record], variant: str, judged: bool, draws: int = DRAWS, level: float = LEVEL, seed: Seed = 0
) -> dict[str, dict[str, Estimate]]:
    """Compute every metric by question type (paper, 3), in the order of ``TYPES``.

    Docs without a type are under ``""``.
    """
    types = Counter(record.type for record in records)
    wanted = [name for name in (*TYPES, *sorted(set(types) - set(TYPES))) if name in types]
    # one type alone would repeat the numbers of the whole
    if len(wanted) < 2:
        return {}
    of_type = {name: [record for record in records if record.type == name] for name in wanted}
    return {name: numbers(some, variant, judged, draws, level, seed) for name, some in of_type.items()}


def counts(records: Sequence[Record], variant: str, judged: bool) -> dict[str, int]:
    """Count the docs touched by each convention, to explain odd numbers."""
    out = {"docs": len(records), "answer_not_found": sum(not record.answer_found for record in records)}
    if variant in ("all", "relevant"):
        scores = [item_score(record) for record in records]
        out |= {
            "no_box": sum(one.exhaustive is None for one in scores),
            "no_relevant_box": sum(not one.relevant for one in scores),
            "precision_zero": sum(not one.used and one.relevant > 0 for one in scores),
            "boxes_invented": sum(one.invented for one in scores),
        }
    for name, key in (*JUDGED.items(), *([("self_heal", "healed")] if variant == "selfheal" else [])) if judged else ():
        out[f"unjudged_{name}"] = sum(getattr(record, key) is None for record in records)
        out[f"without_gold_{name}"] = sum(
            getattr(record, key) is None and not is_due(record, key) for record in records
        )
    return out


def warnings(found: Mapping[str, int], judged: bool, bounded: Mapping[str, Bounds] = {}) -> list[str]:
    """Return the cautions for readers of the numbers, a line each.

    Args:
        found: the counts.
        judged: whether there was a judge.
        bounded: the bounds of numbers by the judge.
    """
    out = []
    docs = found["docs"]
    for key, missing in found.items():
        if key.startswith("unjudged_") and missing:
            name = key.removeprefix("unjudged_")
            line = f"{name} is computed over the {docs - missing} docs with a verdict; {missing} of {docs} have none (docs/magic-judge.md)"
            if golds := found.get(f"without_gold_{name}"):
                line += f", {golds} of them for want of a gold answer"
            one = bounded.get(name)
            if one is not None and one.matter:
                line += (
                    f"; were all unjudged wrong it would be {one.low.value:.3f}, were all right {one.high.value:.3f}"
                )
            out.append(line)
    if found.get("failed"):
        share = f"{found['failed']} of {docs + found['failed']} calls failed: these docs count in no number"
        out.append(f"{share}; {ASK_AGAIN}")
    if found["answer_not_found"]:
        out.append(
            f"{found['answer_not_found']} of {docs} responses mark no answer; their last sentence was taken instead (cut short? see max_new_tokens)"
        )
    if found.get("no_relevant_box"):
        out.append(
            f"{found['no_relevant_box']} of {docs} docs have no relevant box: they do not count in recall and F1 (docs/magic.md)"
        )
    if not judged:
        out.append(
            "no judge: acc_exact and acc_synonym go by words and are not the paper's accuracy, and Self-Heal has no number (set MAGIC_JUDGE)"
        )
    return out
