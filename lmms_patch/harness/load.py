"""Loads one task for text-only work outside a run of the harness. Says which dataset cannot be loaded, and why."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from tenacity import RetryError

from lmms_patch import Wrap
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.names import catalog, configs
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.text_only import TextOnly


def text_only(
    base: str, *, folds: int = 5, include_path: str | os.PathLike[str] | None = None, **options: Any
) -> TextOnly:
    """Load the text-only side of a task: what a ``_tst<k>`` task of a run has.

    Args:
        base: a task of the harness. A group is refused, since its members have different scorers.
        folds: number of folds.
        include_path: a folder with more task files.
        options: any of ``spec.Options``; they override the base's profile.

    Raises:
        PatchError: the task is unknown, a group, or cannot be read.
    """
    manager = catalog.task_manager(include_path)
    manager.model_name = configs.TEXT_ONLY_MODELS[0]
    if manager.task_index.get(base, {}).get("type") in ("group", "tag"):
        raise CannotWrapError(f"{base} is a group of tasks; name one of its members")
    name = f"{base}_tst{folds}"
    asked = {"task": name, "class": Wrap, "base": base, "kind": "tst", "folds": folds, **options}
    found: TextOnly = manager.load_task_or_group([asked])[name].session.text_only
    found.check()
    return found


@contextlib.contextmanager
def named(manager: Any, name_or_config: Any) -> Iterator[None]:
    """Turn a failure to load a task's dataset into a line with the task, the dataset and the cause.

    Two exceptions are caught. The host tries a download five times and then raises ``RetryError``, whose text only
    names a future object. A task that is a Python class loads its data itself, and lets errors of the network and the
    disk (``OSError``) through.

    Args:
        manager: the harness's task manager.
        name_or_config: the task, as ``TaskManager`` was asked for it.

    Raises:
        CannotWrapError: the dataset could not be loaded.
    """
    try:
        yield
    except (RetryError, OSError) as error:
        config = name_or_config if isinstance(name_or_config, Mapping) else {}
        name = str(config.get("task") if config else name_or_config)
        row = manager.task_index.get(name, {})
        # raised by the code of a YAML task: its traceback says more than our line
        if isinstance(error, OSError) and row.get("type") != "python_task":
            raise
        given = config.get("dataset_path") or (configs.read(manager, name).get("dataset_path") if row else None)
        dataset = f"its dataset {given}" if given else "its data"
        raise CannotWrapError(
            f"{name}: {dataset} could not be loaded: {one_line(error).rstrip('.')}; type 'lmms-eval --tasks {name} ...' to see where"
        ) from None
