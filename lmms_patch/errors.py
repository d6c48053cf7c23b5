"""What a user can get wrong: one line each, saying what was wrong, what is allowed, what to type."""

from __future__ import annotations

import difflib
import importlib.util
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
    """Return the known names that look most like ``name``, in any case of letters, best first (at most ``count``).

    None for a name so long that comparing would take minutes.
    """
    lower = {one.lower(): one for one in known}
    return [] if len(name) > 200 else [lower[close] for close in difflib.get_close_matches(name.lower(), lower, n=count, cutoff=0.6)]


def require(extra: str, *modules: str) -> None:
    """Check that the modules of an optional part are installed.

    Args:
        extra: the name of the part in ``pip install 'lmms-patch[...]'``.
        modules: the modules that the part imports.

    Raises:
        PatchError: a module is missing; the message says what to type.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise PatchError(f"{module} is not installed; type: pip install 'lmms-patch[{extra}]'")
