"""The result of a comparison, whatever was compared, and the check that two results may be compared at all. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import field

from lmms_patch.compare.checks import in_words
from lmms_patch.compare.formats import Task
from lmms_patch.errors import RecordError
from lmms_patch.runs.run import Result, differences
from lmms_patch.stats.paired import Difference


class Compared(Task, frozen=True, kw_only=True):
    """The comparison of two results of a task, whose numbers are not yet corrected together: ``numbers`` is empty.

    Attributes:
        differences: by name (``measures``), second less first.
        unchanged: the second's numbers (``measures``) of which no answer changed: all docs of both runs, also docs
            without a score, have the same scores in all views that the number is made of. Equal numbers alone do not
            show that.
        bounds: of the numbers that a judge gives and that lack verdicts (MAGIC): the least and the greatest difference
            (``magic.bounds``).
    """

    differences: Mapping[str, Difference]
    unchanged: tuple[str, ...]
    bounds: Mapping[str, tuple[Difference, Difference]] = field(default_factory=dict)


def matches(one: Result, other: Result) -> bool:
    """Return whether two results have the same benchmark, kind and filter (rci and pcri count as the same kind)."""
    ways = [plain_name(result.kind.name) for result in (one, other)]
    return one.base == other.base and ways[0] == ways[1] and one.filter == other.filter


def fingerprints(first: Result, second: Result, same: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fingerprints of two results.

    Args:
        first: a result.
        second: the result of the other side.
        same: the settings that two results must share to be compared at all.

    Raises:
        RecordError: they differ in one of these.
    """
    prints = first.fingerprint, second.fingerprint
    apart = differences({key: prints[0][key] for key in same}, prints[1])
    if apart:
        raise RecordError(
            f"{first.task} and {second.task} cannot be compared: other {', other '.join(in_words(apart))}"
        )
    return prints


def primary_of(compared: Compared) -> str:
    """Return the name of the comparison's main number: the task's primary metric on the first view."""
    return next((name for name in (compared.metric, "fip", "tst", "score") if name in compared.differences), "")


def plain_name(name: str) -> str:
    """Return a number's name with pcri spelled rci, since both name the same number."""
    return f"rci{name.removeprefix('pcri')}" if name.startswith("pcri") else name
