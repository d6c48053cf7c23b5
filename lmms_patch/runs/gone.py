"""Numbers that are no longer computed.

Files of earlier versions hold them: readers leave them out, and say what takes their place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")
_INSTEAD = {
    r".*adj_blind": "use ..._adj, which rests on answers on wrong images (run the task with the option 'null')",
    "self_heal_words": "use self_heal, a judge's verdict (set MAGIC_JUDGE in the run)",
}
"""What a number's name matches -> what takes its place."""
_ENDS = "(_low|_high)?"
PRIMARY = {"self_heal_words": "acc_synonym"}
"""A number that a task was about, and that is no longer computed -> the number that the task is about now."""


def instead(name: str) -> str:
    """Return the advice for a number that was removed, such as "use self_heal, ..."; empty for numbers still in use.

    >>> instead("rci3_adj"), instead("rci3_adj_blind_low")[:14]
    ('', 'use ..._adj, w')
    """
    return next((said for pattern, said in _INSTEAD.items() if re.fullmatch(pattern + _ENDS, name)), "")


def kept(numbers: Mapping[str, T]) -> dict[str, T]:
    """Drop removed numbers from a mapping by name."""
    return {name: one for name, one in numbers.items() if not instead(name)}


def of_magic(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop removed numbers from the value of the metric ``magic`` (``details.MagicDetails``)."""
    magic = details.get("magic")
    if not magic:
        return details
    left = {
        "numbers": kept(magic["numbers"]),
        "by_type": {name: kept(one) for name, one in (magic.get("by_type") or {}).items()},
        "metric": PRIMARY.get(magic["metric"], magic["metric"]),
        "warnings": [line for line in magic["warnings"] if not instead(line.partition(" ")[0])],
    }
    return {**details, "magic": {**magic, **left}}
