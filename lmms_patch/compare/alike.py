"""May two results be set side by side, and in what else do they differ?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from lmms_patch.errors import RecordError
from lmms_patch.runs.run import Result, differences

SAME = ("benchmark", "kind", "metric", "filter", "views")
"""Settings that two results must share to be compared at all; other differences are told."""
OF_DOCS = ("docs", "prompts", "number of docs", "limit", "image sizes", "images")
"""Settings that differ anyway where the docs do."""
_DIGESTS = (
    "docs",
    "prompts",
    "image sizes",
    "images",
    "generation",
    "views",
    "boxes shown",
    "statistics",
    "system instruction",
)


def apart(first: Mapping[str, Any], second: Mapping[str, Any], ignore: Collection[str] = ()) -> list[str]:
    """Return in what two fingerprints differ, in words: no digests, which nobody can read."""
    told = [(one.partition(" (")[0], one) for one in differences(first, second, ignore)]
    return [key if key in _DIGESTS else one for key, one in told]


def check(first: Result, second: Result, same: Iterable[str] = SAME) -> None:
    """Check two results for the settings without which they are of different benchmarks.

    Raises:
        RecordError: they differ in one of these.
    """
    if other := apart({key: first.fingerprint[key] for key in same}, second.fingerprint):
        raise RecordError(f"{first.task} and {second.task} cannot be compared: other {', other '.join(other)}")


def matches(first: Result, second: Result) -> bool:
    """Return whether two results have the same benchmark, kind and filter (rci and pcri count as the same kind)."""
    ways = [(one.base, plain_name(one.kind.name), one.filter) for one in (first, second)]
    return ways[0] == ways[1]


def plain_name(name: str) -> str:
    """Return a number's name with pcri spelled rci, since both name the same number."""
    return f"rci{name.removeprefix('pcri')}" if name.startswith("pcri") else name
