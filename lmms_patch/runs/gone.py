"""Numbers that are no longer computed. Files of earlier versions hold them: readers leave them out, and say what takes their place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")
_INSTEAD = {
    r".*adj_blind": "use ..._adj, which rests on answers on wrong images (run the task with the option 'null')",
}
"""What a number's name matches -> what takes its place."""
_ENDS = "(_low|_high)?"


def instead(name: str) -> str:
    """Say what takes the place of a number; empty where the number is still computed.

    >>> instead("rci3_adj"), instead("rci3_adj_blind_low")[:14]
    ('', 'use ..._adj, w')
    """
    return next((said for pattern, said in _INSTEAD.items() if re.fullmatch(pattern + _ENDS, name)), "")


def kept(numbers: Mapping[str, T]) -> dict[str, T]:
    """Return some numbers by name, without those that are no longer computed."""
    return {name: one for name, one in numbers.items() if not instead(name)}
