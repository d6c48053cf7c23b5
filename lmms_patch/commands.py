"""lmms-patch from Python: each command is a function, which returns data and prints nothing.

>>> from lmms_patch import commands
>>> commands.config("schemas/magic-item").splitlines()[1].strip()
'"$schema": "https://json-schema.org/draft/2020-12/schema",'

Arguments and options are those of the command line (``lmms-patch show --help``), a path is a text or a ``Path``, and a
command of a group has both words in its name: ``commands.magic_check``. A user's mistake raises
``lmms_patch.errors.PatchError``, whose message is one line. A command is imported when it is called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmms_patch.app.commands.analyze import analyze as analyze
    from lmms_patch.app.commands.compare import compare as compare
    from lmms_patch.app.commands.config import config as config
    from lmms_patch.app.commands.demo import demo as demo
    from lmms_patch.app.commands.doctor import doctor as doctor
    from lmms_patch.app.commands.explore import explore as explore
    from lmms_patch.app.commands.export import export as export
    from lmms_patch.app.commands.gap import gap as gap
    from lmms_patch.app.commands.gate import gate as gate
    from lmms_patch.app.commands.leaderboard import leaderboard as leaderboard
    from lmms_patch.app.commands.magic_build import magic_build as magic_build
    from lmms_patch.app.commands.magic_check import magic_check as magic_check
    from lmms_patch.app.commands.magic_show import magic_show as magic_show
    from lmms_patch.app.commands.magic_steps import magic_steps as magic_steps
    from lmms_patch.app.commands.magic_stepsense import magic_stepsense as magic_stepsense
    from lmms_patch.app.commands.prune import prune as prune
    from lmms_patch.app.commands.report import report as report
    from lmms_patch.app.commands.show import show as show
    from lmms_patch.app.commands.tasks import tasks as tasks
    from lmms_patch.app.commands.tst import tst as tst


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name in __dir__():
        return getattr(import_module(f"lmms_patch.app.commands.{name}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from lmms_patch.app.cli import paths

    return ["_".join(words) for words in paths()]
