"""A task that wraps another task, its base, and hands on to it what it does not answer itself."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from lmms_eval.api.task import Task

from lmms_patch.harness import compat

_OfBase: Any = type("_OfBase", (), {name: property(attrgetter(f"_base.{name}")) for name in compat.HANDED_ON})
"""What ``Task`` defines would hide what the base has, so this class stands before it."""


class Delegate(_OfBase, Task):
    """A task which hands every undefined attribute to ``_base``; a subclass sets ``_base`` first.

    ``compat.HANDED_ON`` lists what the base answers by name; tests/harness/wrap/test_task.py what a subclass answers, and
    what reaches the base through ``__getattr__``.
    """

    _base: Any

    def __getattr__(self, name: str) -> Any:
        # while a copy is being made there is no base, and looking for it here would never end
        if name.startswith("__") or name == "_base":
            raise AttributeError(name)
        return getattr(self._base, name)
