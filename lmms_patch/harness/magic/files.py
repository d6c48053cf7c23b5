"""The user's own task file over a MAGIC dataset (``class: !function lmms_patch.Magic``).

With such files, one run can ask several datasets, each under a name of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lmms_patch.errors import must, read_as
from lmms_patch.harness.magic import docs, tasks
from lmms_patch.harness.names import configs

TASKS = {"all": "magic", "relevant": "magic_relevant", "none": "magic_nobox", "selfheal": "magic_selfheal"}
"""The shipped task of each variant."""
PROFILE = {"metric": "acc_synonym", "cluster": "group", "category": "type", "gold": "answer", "box_image": "last"}
"""What tasks/magic/*.yaml say of the docs, for wrapped names such as ``magic_rci3``."""


class MagicFile(BaseModel):
    """What such a file says.

    Attributes:
        task: the task's name.
        marker: the class, by which the file is known.
        data: a folder or a file (relative to the task file), or a name on the hub.
        variant: which boxes are drawn, and whether a wrong chain is injected.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    task: str
    marker: Any = Field(alias="class")
    data: Annotated[
        str, Field(pattern=r"\S"), must("the folder, file or hub name of a MAGIC dataset, such as 'data: ./kitchen'")
    ]
    variant: Literal["all", "relevant", "none", "selfheal"] = "all"


def load(manager: Any, native: Callable[..., Mapping[Any, Any]], name_or_config: Any, **kwargs: Any) -> dict[Any, Any]:
    """Load our task over the data of a task file, and bind it to these data (``tasks.bind``).

    Args:
        manager: the host's task manager.
        native: the host's loader.
        name_or_config: the name or the config of the task file.
        kwargs: the other arguments of the loader.

    Raises:
        OptionError: something in the file is wrong.
    """
    config = configs.config_of(manager, name_or_config)
    file = read_as(MagicFile, dict(config), f"task file {config.get('task')!r}")
    data = file.data
    if isinstance(name_or_config, str):
        beside = Path(manager.task_index[name_or_config]["yaml_path"]).parent / docs.path_of(data)
        data = str(beside) if beside.exists() or data.startswith((".", "~", "/")) else data
    changes = {
        "process_docs": functools.partial(_docs, file.variant, data),
        "metadata": {
            "version": 1.0,
            "magic": {"kind": "magic", "variant": file.variant, "data": data},
            "lmms_patch": dict(PROFILE),
        },
    }
    (task,) = native(
        TASKS[file.variant],
        # no parent's name: with one, the host would rename the task
        **{**kwargs, "update_config": {**(kwargs.get("update_config") or {}), **changes}, "parent_name": None},
    ).values()
    task.config.task = file.task
    tasks.bind(task)
    return {file.task: task}


def _docs(variant: str, data: str, _: Any) -> Any:
    """Return the docs of a variant: ``process_docs`` of the task, whose given rows do not matter."""
    return docs.docs(variant, data)
