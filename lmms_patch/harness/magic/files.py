"""The user's own task file over a MAGIC dataset (``class: !function lmms_patch.Magic``).

With such files, one run can ask several datasets, each under a name of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_patch.errors import OptionError, nearest
from lmms_patch.harness.magic import docs, tasks
from lmms_patch.harness.names import configs
from lmms_patch.magic.score.results import VARIANTS

MARKER = "lmms_patch.Magic"
TASKS = {"all": "magic", "relevant": "magic_relevant", "none": "magic_nobox", "selfheal": "magic_selfheal"}
"""The shipped task of each variant."""
_KEYS = ("task", "class", "data", "variant")


@dataclass(frozen=True)
class MagicFile:
    """What such a file says.

    Attributes:
        task: the task's name.
        data: a folder or a file (relative to the task file), or a name on the hub.
        variant: one of ``results.VARIANTS``.
    """

    task: str
    data: str
    variant: str = "all"


def of(manager: Any, name_or_config: Any) -> MagicFile | None:
    """Return the task file meant by a name, or given as a config; None for no such file.

    Raises:
        OptionError: it is such a file, and something in it is wrong.
    """
    config, folder = name_or_config, None
    if isinstance(name_or_config, str):
        if manager.task_index.get(name_or_config, {}).get("type") != "python_task":
            return None
        config, folder = (
            configs.read(manager, name_or_config),
            Path(manager.task_index[name_or_config]["yaml_path"]).parent,
        )
    if not isinstance(config, Mapping) or configs.marker_of(config) != MARKER:
        return None
    return _parsed(config, folder)


def _parsed(config: Mapping[str, Any], folder: Path | None) -> MagicFile:
    """Return what a task file says, checked."""
    where = f"task file {config.get('task')!r}"
    for key in config:
        if key not in _KEYS:
            close = nearest(key, _KEYS)
            raise OptionError(
                f"{where}: unknown key {key!r}; {f'did you mean {close[0]}? ' if close else ''}allowed: {', '.join(_KEYS)}"
            )
    data, variant = config.get("data"), config.get("variant", "all")
    if not isinstance(data, str) or not data.strip():
        raise OptionError(
            f"{where}: 'data' is missing; add the folder, file or hub name of a MAGIC dataset, such as 'data: ./kitchen'"
        )
    if variant not in VARIANTS:
        raise OptionError(f"{where}: variant {variant!r} is not known; allowed: {', '.join(VARIANTS)}")
    try:
        path = Path(data).expanduser()
    except RuntimeError:
        raise OptionError(
            f"{where}: data {data!r}: there is no home folder of that name; write the whole path"
        ) from None
    beside = path if folder is None or path.is_absolute() else folder / path
    return MagicFile(
        str(config["task"]), str(beside) if beside.exists() or data.startswith((".", "~", "/")) else data, str(variant)
    )


def load(manager: Any, native: Callable[..., Mapping[Any, Any]], name_or_config: Any, **kwargs: Any) -> dict[Any, Any]:
    """Load a task for the host; for a task file over MAGIC data, load our task over these data.

    Each MAGIC task is bound to its data (``tasks.bind``).

    Args:
        manager: the host's task manager.
        native: the host's loader.
        name_or_config: the task that the loader is asked for.
        kwargs: the other arguments of the loader.
    """
    file = of(manager, name_or_config)
    if file is None:
        return dict(tasks.bind_all(native(name_or_config, **kwargs)))
    metadata = {
        "version": 1.0,
        "magic": {"kind": "magic", "variant": file.variant, "data": file.data},
        "lmms_patch": dict(PROFILE),
    }
    changes = {"process_docs": functools.partial(_docs, file.variant, file.data), "metadata": metadata}
    (task,) = native(
        TASKS[file.variant],
        # no parent's name: with one, the host would rename the task
        **{**kwargs, "update_config": {**(kwargs.get("update_config") or {}), **changes}, "parent_name": None},
    ).values()
    task.config.task = file.task
    return dict(tasks.bind_all({file.task: task}))


PROFILE = {"metric": "acc_synonym", "cluster": "group", "category": "type", "gold": "answer", "box_image": "last"}
"""What tasks/magic/*.yaml say of the docs, for wrapped names such as ``magic_rci3``."""


def _docs(variant: str, data: str, _: Any) -> Any:
    """Return the docs of a variant: ``process_docs`` of the task, whose given rows do not matter."""
    return docs.docs(variant, data)
