"""Settings of ``_quick`` and ``exit`` for one run: environment variables, since the harness's command line has no place for a task's options."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lmms_patch.ask.spec import Options

PREFIX = "LMMS_PATCH_"
NAMES = ("precision", "budget", "target", "pilot")
"""The options that an environment variable sets, such as ``LMMS_PATCH_BUDGET``. It wins over task files and profiles."""


def with_environment(options: Options, env: Mapping[str, str] | None = None) -> Options:
    """Return the options of a task with views left out, with the values set by environment variables.

    Others as they are.

    Raises:
        OptionError: a variable has a value that the option does not allow.
    """
    if not (options.quick or options.exit):
        return options
    env = os.environ if env is None else env
    given = {name: text for name in NAMES if (text := env.get(PREFIX + name.upper(), "").strip())}
    if not given:
        return options
    where = "environment variables " + ", ".join(PREFIX + name.upper() for name in given)
    return Options.from_mapping({name: _read(text) for name, text in given.items()}, where).over(options)


def _read(text: str) -> int | float | str:
    """Return a text as a number, if possible.

    >>> _read("0.05"), _read("2000"), _read("population")
    (0.05, 2000, 'population')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
