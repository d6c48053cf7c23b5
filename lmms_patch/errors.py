"""What a user can get wrong: one line each, saying what was wrong, what is allowed, what to type."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PatchError(Exception):
    """A user's mistake, or an input we refuse. The message is one line, without a traceback."""


class UnknownNameError(PatchError):
    """A wrapped name that cannot be read, or whose base does not exist."""


class OptionError(PatchError):
    """An option that is unknown, or has a value that is not allowed."""


class CannotWrapError(PatchError):
    """A base task that a view kind cannot be applied to, with the reason."""


class HostError(PatchError):
    """The installed lmms-eval is not as expected."""


class RecordError(PatchError):
    """A run's files cannot be read: truncated, of another schema, or not ours."""


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names that look most like ``name``, best first (at most ``count``); none for a name so long that comparing would take minutes."""
    return [] if len(name) > 200 else difflib.get_close_matches(name, list(known), n=count, cutoff=0.6)
