"""MAGIC as a method (``ask.methods``): the numbers of a task, from its sample log and from its results file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lmms_patch.ask.methods import Method
from lmms_patch.errors import RecordError
from lmms_patch.magic.score import logs, results
from lmms_patch.magic.score.logs import Line
from lmms_patch.magic.score.magiscore import counted
from lmms_patch.magic.score.results import Record
from lmms_patch.runs.details import MagicNumbers
from lmms_patch.runs.results import check_docs, sample_log
from lmms_patch.runs.run import Result

Part = tuple[float, float]

# numbers are summed anew, and their last digits may differ from machine to machine
_TOLERANCE = 1e-9


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


def read(result: Result) -> dict[str, Line]:
    """Return the lines of a result's sample log by the name of their doc.

    Raises:
        RecordError: there is no log; it is cut, of another variant, of another number of docs, or gives other numbers
            than the run reported.
    """
    log, about = sample_log(result.run.path, result.task), stored(result)
    lines = {line.record.id: line for line in logs.lines(log, result.place)}
    records = [line.record for line in lines.values()]
    check_docs(log, len(lines), result.docs)
    if other := sorted({record.variant for record in records} - {about.variant}):
        raise RecordError(
            f"{log}: records of the variant {other[0]}, but {result.task} is {about.variant}; the file is of another run"
        )
    # Before anything is compared: a changed log would make up differences.
    for name, number in about.numbers.items():
        value, own = value_of(records, name), number.value
        if (value is None) != (own is None) or (
            value is not None and own is not None and abs(value - own) > _TOLERANCE
        ):
            said = ["none" if one is None else f"{one:.4g}" for one in (value, own)]
            raise RecordError(
                f"{log}: the sample log gives {name} {said[0]}, but the run reported {said[1]}; the log is of another run, or was changed"
            )
    return lines


def stored(result: Result) -> MagicNumbers:
    """Return the ``magic`` object of a result (docs/records.md).

    Raises:
        RecordError: it is not there, or has a metric that this version does not know.
    """
    about = result.magic
    known = results.metrics(about.variant, True) if about and about.variant in results.VARIANTS else ()
    if about is None or not set(about.numbers) <= set(known):
        raise RecordError(
            f"{result.run.path}: {result.task} has no numbers as a MAGIC task writes them; the file was changed or written by another program"
        )
    return about


def value_of(records: Sequence[Record], metric: str) -> float | None:
    """Return a metric of some docs; None where undefined."""
    above, below = (
        np.array([sums for record in records if (sums := part(record, metric)) is not None], float)
        .reshape(-1, 2)
        .sum(axis=0)
    )
    return float(above / below) if below else None


class _Magic(Method):
    def flat(self, found: MagicNumbers | None) -> Mapping[str, float | None]:
        ends = {"": "value", "_low": "low", "_high": "high"}
        numbers = found.numbers if found else {}
        return {f"{name}{end}": getattr(one, field) for name, one in numbers.items() for end, field in ends.items()}

    def check(self, result: Result) -> None:
        read(result)

    def better(self, result: Result, metric: str) -> bool:
        # lmms-eval's configs say nothing of MAGIC's metrics
        return results.higher_is_better(metric, result.magic.variant if result.magic else "")


METHOD = _Magic()
