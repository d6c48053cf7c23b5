"""Checks that a value from a file is a number which arithmetic can go on with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, TypeGuard

from msgspec import Meta

from lmms_patch.errors import OptionError

LARGEST = 1e15
"""No score, count or size is larger; sums and squares of what is smaller stay finite."""
MOST = 10**9
"""No number of docs, draws or seeds is larger."""
Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
"""A number in a file: finite."""
Share = Annotated[float, Meta(ge=0, le=1)]
Level = Annotated[float, Meta(ge=0.5, lt=1)]
"""Coverage of an interval."""
Count = Annotated[int, Meta(ge=0, le=MOST)]
Some = Annotated[int, Meta(ge=1, le=MOST)]
"""A count of at least one."""
GridSize = Annotated[int, Meta(ge=2, le=9)]
"""Cells in a row of a grid, or segments of a clip."""
FEWEST_DRAWS = 200
"""With fewer draws, less than 5 draws decide each end of a 95 % interval."""
MOST_DRAWS = 100_000
"""More draws change no digit that is shown, but cost time and memory."""
Parts = Annotated[int, Meta(ge=1, le=64)]
"""The number after a kind of task: a grid size, a number of segments or frames, or a reduction."""


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is an int or float within ±``LARGEST``.

    Texts, truth values, NaN and infinities are not.
    """
    # to Python a truth value is an int
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def is_whole(value: Any, least: int = 0, most: int = MOST) -> bool:
    """Return whether a value is a whole number from ``least`` to ``most``."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def one_of(names: Iterable[str]) -> Meta:
    """Return a constraint on a text in a file: it must be one of these names.

    Why not ``Literal``: it cannot take its values from a table, and would have to repeat them.
    """
    known = sorted(names)
    return Meta(pattern=f"^({'|'.join(known)})$", extra_json_schema={"enum": known})


def check_bootstrap(draws: int | None, level: float | None, seed: int | None = None) -> None:
    """Refuse settings of a bootstrap that are out of range; None is not looked at.

    Raises:
        OptionError: a setting out of range.
    """
    if draws is not None and not FEWEST_DRAWS <= draws <= MOST_DRAWS:
        raise OptionError(f"draws must be a whole number from {FEWEST_DRAWS} to {MOST_DRAWS}, not {draws}")
    if level is not None and not 0.5 <= level < 1:
        raise OptionError(f"level must be a fraction from 0.5 to below 1, such as 0.95, not {level:g}")
    if seed is not None and seed < 0:
        raise OptionError(f"seed must be a whole number of at least 0, not {seed}")
