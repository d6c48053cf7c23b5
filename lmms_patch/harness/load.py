"""Loads one task for text-only work outside a run of the harness: its docs as items, and its native scorer."""

from __future__ import annotations

import os
from typing import Any

from lmms_patch.errors import CannotWrapError
from lmms_patch.harness import catalog, configs, names
from lmms_patch.harness.tasks import WrappedTask
from lmms_patch.harness.text_only import MODELS, TextOnly
from lmms_patch.spec import Options, WrapSpec


def text_only(base: str, *, folds: int = 5, include_path: str | os.PathLike[str] | None = None, **options: Any) -> TextOnly:
    """The text-only side of a task, as a ``_tst<k>`` task of a run has it.

    Args:
        base: a task of the harness; a group has no one scorer, so it is refused.
        folds: number of folds.
        include_path: a folder with more task files.
        options: any of ``spec.Options``; they win over the base's profile.

    Raises:
        PatchError: the task is unknown, a group, or cannot be read.
    """
    manager = catalog.task_manager(include_path)
    manager.model_name = MODELS[0]
    spec = WrapSpec(base, "tst", options=Options.from_mapping(options, base), folds=folds)
    names.require_base(manager, spec)
    if manager.task_index[base]["type"] not in ("task", "python_task"):
        raise CannotWrapError(f"{base} is a group of tasks; name one of its members")
    manager._lmms_patch_text_only = True  # its videos are not needed
    configs.check(manager, spec)
    task = WrappedTask(manager.load_task_or_group([base])[base], spec)
    assert task.text_only is not None
    task.text_only.check()
    return task.text_only
