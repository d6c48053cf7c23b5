"""MAGIC as a method (``ask.methods``): the numbers of a task from its samples table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lmms_patch.ask.methods import Method
from lmms_patch.errors import RecordError, shown
from lmms_patch.magic.score import results, rows
from lmms_patch.magic.score.magiscore import counted
from lmms_patch.magic.score.results import Record
from lmms_patch.runs.details import LeftOut, MagicNumbers
from lmms_patch.runs.run import Result

Part = tuple[float, float]
SEED = 0
"""The seed of the bootstrap."""


def part(record: Record, metric: str) -> Part | None:
    """Return a doc's share above and below the fraction line of a metric; None where the doc does not count.

    Args:
        record: of the doc.
        metric: one of ``results.metrics``.
    """
    if record.failed is not None:
        return None
    if metric.endswith("_micro"):
        return counted(results.item_score(record), metric.removeprefix("magiscore_"))
    value = results.score(record, metric)
    return None if value is None else (value, 1.0)


def read(result: Result) -> dict[str, Record]:
    """Return the docs of a result by their ids.

    Raises:
        RecordError: the table is not whole, or its variant is unknown.
    """
    variant = str(result.about.magic.get("variant"))
    if variant not in results.VARIANTS:
        raise RecordError(
            f"{result.path}: {result.task}: no variant {shown(variant)}; there is {', '.join(results.VARIANTS)}"
        )
    if result.metric not in (known := results.metrics(variant, result.about.magic.get("judge") is not None)):
        raise RecordError(
            f"{result.path}: {result.task}: no metric {shown(result.metric)}; there is {', '.join(known)}"
        )
    try:
        return {record.id: record for record in rows.records_of(result.frame(), variant)}
    except RecordError as error:
        raise RecordError(f"{result.path}: {error}") from None


def value_of(records: Sequence[Record], metric: str) -> float | None:
    """Return a metric of some docs; None where undefined."""
    above, below = (
        np.array([sums for record in records if (sums := part(record, metric)) is not None], float)
        .reshape(-1, 2)
        .sum(axis=0)
    )
    return float(above / below) if below else None


def numbers_of(records: Sequence[Record], about: Mapping[str, Any]) -> MagicNumbers:
    """Return all numbers of a task with their intervals, and how they came about (docs/magic.md).

    Args:
        records: its docs.
        about: what the footer of its table says under ``magic``.
    """
    variant, judge = str(about["variant"]), about.get("judge")
    judged = judge is not None
    answered = results.answered(records)
    counts = {**results.counts(answered, variant, judged), "failed": len(records) - len(answered)}
    bounds = results.bounds(answered, variant, seed=SEED) if judged else {}
    left_out = LeftOut(about.get("left_out", {}).get("items"))
    notes = results.warnings(counts, judged, bounds)
    if left_out.items:
        notes.append(
            f"{left_out.items} items of {about.get('dataset')} cannot be used and were left out: type 'lmms-patch magic check' for the reasons"
        )
    return MagicNumbers(
        variant=variant,
        metric=results.primary(variant, judged),
        judge=judge,
        numbers=results.numbers(answered, variant, judged, seed=SEED),
        counts=counts,
        warnings=notes,
        by_type=results.by_type(answered, variant, judged, seed=SEED),
        bounds=bounds,
        dataset=about.get("dataset"),
        seed=about.get("seed"),
        left_out=left_out,
        judged_by=about.get("judged_by", {}),
    )


class _Magic(Method):
    def flat(self, found: MagicNumbers | None) -> Mapping[str, float | None]:
        ends = {"": "value", "_low": "low", "_high": "high"}
        numbers = found.numbers if found else {}
        return {f"{name}{end}": getattr(one, field) for name, one in numbers.items() for end, field in ends.items()}

    def numbers_of(self, result: Result) -> MagicNumbers:
        return numbers_of(list(read(result).values()), result.about.magic)

    def better(self, result: Result, metric: str) -> bool:
        # lmms-eval's configs say nothing of MAGIC's metrics
        return results.higher_is_better(metric, result.about.magic.get("variant", ""))


METHOD = _Magic()
