"""Benchmark profiles: what lmms-eval's task files do not say of a benchmark (clusters, chance, metric).

A profile is a YAML file: ``tasks`` (names or wildcards of base tasks) and any of ``spec.Options``.
Those of the project lie in configs/profiles; a user's folder, named in the environment variable
``LMMS_PATCH_PROFILES``, comes first. The inline profile of a task's own file wins over both.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import Field

from lmms_patch import files, resources
from lmms_patch.ask.spec import Options
from lmms_patch.errors import OptionError, must, read_as

FOLDER = "LMMS_PATCH_PROFILES"


class _File(Options):
    """The content of a profile file."""

    tasks: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        Field(min_length=1),
        must("a list of task names, such as 'tasks: [gqa]'"),
    ]


@dataclass(frozen=True)
class Profile:
    """One profile file.

    Attributes:
        name: the file's name, without its ending.
        tasks: names or wildcards of base tasks.
        options: what it sets.
    """

    name: str
    tasks: tuple[str, ...]
    options: Options


def read(path: Path) -> Profile:
    """Read a profile.

    Raises:
        OptionError: the file is not YAML, has no ``tasks``, or options that are unknown or out of range.
    """
    where = f"profile {path}"
    try:
        data = files.parse_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OptionError(f"{where}: cannot be read: {' '.join(str(error).split())}") from None
    file = read_as(_File, data, where)
    return Profile(
        path.stem, tuple(file.tasks), Options(**{name: getattr(file, name) for name in file.given - {"tasks"}})
    )


def of(task: str) -> Options | None:
    """Return a base task's options from the profiles; None where no profile names the task.

    A user's folder wins over the project's, and an exact name over a wildcard.

    Raises:
        OptionError: a profile is wrong, or the folder in the environment variable is missing.
    """
    for folder in _folders():
        matching = [profile for profile in _all(folder) if any(fnmatchcase(task, pattern) for pattern in profile.tasks)]
        if matching:
            return min(matching, key=lambda profile: task not in profile.tasks).options
    return None


def _folders() -> list[Path]:
    own = os.environ.get(FOLDER)
    if own and not Path(own).is_dir():
        raise OptionError(f"{FOLDER}={own}: no such folder; it must hold profiles (*.yaml)")
    return [*([Path(own)] if own else []), resources.folder("configs") / "profiles"]


# every file must be read to know which one names a task, and a run asks for each of its tasks
@functools.lru_cache(maxsize=8)
def _all(folder: Path) -> tuple[Profile, ...]:
    return tuple(read(path) for path in sorted(folder.glob("*.yaml")))
