"""What a check-up says: a line for each thing that was looked at, and the type of ``--format json``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Literal, ParamSpec

from msgspec import Struct

from lmms_patch import __version__
from lmms_patch.text import line

State = Literal["ok", "warning", "wrong"]
P = ParamSpec("P")


class Line(Struct, frozen=True):
    """The finding of a check.

    Attributes:
        about: what it is, in a word or two: ``lmms-eval``, ``entry point``, ``disk``.
        state: ``ok``; ``warning``: runs work, but less is known or possible; ``wrong``: runs fail, or their numbers
        cannot be trusted.
        said: what was found.
        type: what to type or to do about it; empty where it is ok.
    """

    about: str
    state: State
    said: str
    type: str = ""


class Made(Struct, frozen=True):
    """What made the file."""

    lmms_patch: str


class DoctorJson(Struct, frozen=True, kw_only=True):
    """What ``lmms-patch doctor --format json`` prints.

    Attributes:
        status: The exit status. 0: nothing is wrong, 1: something is.
        lines: One for each thing that was looked at.
    """

    schema: Literal[1] = 1
    made: Made
    status: Literal[0, 1]
    lines: list[Line]


def status(found: list[Line]) -> Literal[0, 1]:
    """Return the exit status: 1 where something is wrong, else 0."""
    return 1 if any(one.state == "wrong" for one in found) else 0


def to_json(found: list[Line]) -> DoctorJson:
    """Return the lines as ``--format json`` prints them."""
    return DoctorJson(made=Made(__version__), status=status(found), lines=found)


def check(about: str) -> Callable[[Callable[P, Iterator[Line]]], Callable[P, list[Line]]]:
    """Make a check of a function with lines to yield; an unexpected error becomes a line.

    Args:
        about: what that line is about.
    """

    def marked(function: Callable[P, Iterator[Line]]) -> Callable[P, list[Line]]:
        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> list[Line]:
            out: list[Line] = []
            try:
                for one in function(*args, **kwargs):
                    out.append(one)
            except Exception as error:
                # One broken check must not hide what the others find.
                out.append(
                    Line(
                        about, "wrong", f"could not be looked at ({brief(error)})", "see what the other lines say first"
                    )
                )
            return out

        return checked

    return marked


def brief(error: BaseException) -> str:
    """Return an error as a short line."""
    return line(f"{type(error).__name__}: {error}", 200)
