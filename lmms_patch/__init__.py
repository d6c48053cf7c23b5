"""lmms-patch: what does a multimodal benchmark, or a model, really use?

A plugin for lmms-eval. After ``pip install lmms-patch`` any task, group or tag that the harness
knows can be asked for under a wrapped name, such as ``gqa_rci3``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Return ``samples`` or ``results``, which read tables of runs (docs/tables.md), or the module of commands.

    Why here: importing the package must stay cheap, as lmms-eval imports it at every start.
    """
    if name in ("samples", "results"):
        return getattr(import_module("lmms_patch.app.tables"), name)
    if name == "commands":
        return import_module("lmms_patch.commands")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Wrap:
    """Marks an explicit task file; lmms-patch replaces it by the wrapped base task.

    A YAML file in an ``--include_path`` folder names a wrapped task and its options::

        task: my_rci3
        class: !function lmms_patch.Wrap
        base: gqa
        kind: rci
        grids: [3]

    The plugin recognises this class and never makes an object of it. See docs/options.md.
    """

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError(
            "this task file needs the lmms-patch plugin, which did not load; see docs/footguns.md, 'Tasks were not found'"
        )
