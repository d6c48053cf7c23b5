"""Calls of native aggregations as the host makes them, and the state of the random generators."""

from __future__ import annotations

import contextlib
import copy
import inspect
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lmms_patch.text import line

Aggregation = Callable[[list[Any]], Any]


def one_line(error: BaseException) -> str:
    """Return an exception as a single line; of the host's ``RetryError``, the exception that it hides."""
    # a ``RetryError`` hides the exception of the last try
    attempt = getattr(error, "last_attempt", None)
    error = (attempt.exception() if attempt is not None else None) or error
    return line(f"{type(error).__name__}: {error}")


def copied(items: list[Any]) -> list[Any]:
    """Return a copy of the items for a single call: some aggregations change their items.

    The items themselves where they cannot be copied.
    """
    try:
        return copy.deepcopy(items)
    except Exception:
        return list(items)


def takes_args(native: Aggregation) -> bool:
    """Return whether the host hands its command-line arguments to this aggregation."""
    return "args" in inspect.signature(native).parameters


def call_native(native: Aggregation, items: list[Any], args: Any) -> Any:
    """Call a native aggregation as the host does."""
    return native(items, args=args) if takes_args(native) else native(items)  # type: ignore[call-arg]


Draws = tuple[Any, Any]
"""A state of the process's random generators: Python's, and NumPy's global one."""


def draws() -> Draws:
    """Return the state of the process's random generators."""
    return random.getstate(), np.random.get_state()


def same_draws(one: Draws, other: Draws) -> bool:
    """Return whether no random number was drawn between two states."""
    # the second part of NumPy's state is an array, which ``==`` alone does not compare
    (python, (_, *numpy)), (python_then, (_, *numpy_then)) = one, other
    return python == python_then and numpy[1:] == numpy_then[1:] and bool((numpy[0] == numpy_then[0]).all())


@contextlib.contextmanager
def drawing_from(start: Draws) -> Iterator[None]:
    """Start the process's random generators at a state, and restore them afterwards."""
    before = draws()
    set_draws(start)
    try:
        yield
    finally:
        set_draws(before)


def set_draws(to: Draws) -> None:
    """Set the state of the process's random generators."""
    random.setstate(to[0])
    np.random.set_state(to[1])
