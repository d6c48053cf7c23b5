"""Reads task files as lmms-eval does, with libyaml in a tenth of the time, and without importing it, which takes seconds.

Functions stay unread (the host's mode ``simple``). The host itself reads its own files and ours so; tests compare each
of them, read both ways. A user's file it reads itself, since libyaml words faults otherwise.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

import yaml

from lmms_patch import resources
from lmms_patch.errors import OptionError

BUILDERS = frozenset({"csv", "json", "parquet", "text", "pandas", "arrow"})
"""Values of ``dataset_path`` whose relative ``data_files`` the host looks for beside the YAML file."""


class _Loader(getattr(yaml, "CFullLoader", yaml.FullLoader)):  # type: ignore[misc] # PyYAML may lack libyaml
    """Reads YAML as the host does, and leaves a ``!function`` as its node."""


_Loader.add_constructor("!function", lambda loader, node: node)


def read(path: str) -> dict[str, Any]:
    """Return the config of a task file, its includes read and local data files made absolute.

    Keys of earlier includes override those of later ones, and the file's own keys override all.
    """
    with open(path, "rb") as file:
        own = yaml.load(file, _Loader)
    if not isinstance(own, dict):
        raise ValueError("it is no mapping")
    folder, config = os.path.dirname(path), dict[str, Any]()
    includes = own.pop("include", [])
    for include in reversed([includes] if isinstance(includes, str) else includes):
        config.update(read(include if os.path.isfile(include) else os.path.join(folder, include)))
    config.update(own)
    kwargs = config.get("dataset_kwargs")
    if config.get("dataset_path") in BUILDERS and isinstance(kwargs, dict) and "data_files" in kwargs:
        config["dataset_kwargs"] = {**kwargs, "data_files": _absolute(kwargs["data_files"], folder)}
    return config


def _absolute(value: Any, folder: str) -> Any:
    """Return the value of ``data_files`` with the path of each file below a folder made absolute."""
    if isinstance(value, dict):
        return {key: _absolute(inner, folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [_absolute(inner, folder) for inner in value]
    beside = os.path.join(folder, value) if isinstance(value, str) and value else ""
    return beside if os.path.isfile(beside) else value


def load(
    original: Callable[..., Any],
    yaml_path: Any = None,
    yaml_config: Any = None,
    yaml_dir: Any = None,
    mode: str = "full",
) -> Any:
    """Return the config of a task file, as ``lmms_eval.utils.load_yaml_config``, the original, does.

    Args:
        original: the host's function. It is handed all but what libyaml can read of the host's files and ours.
        yaml_path: the file.
        yaml_config: what the file holds, where that is known.
        yaml_dir: the folder of files that are included.
        mode: ``simple``: functions are not imported. The other mode, ``full``, is left to the host: it runs code as it
            reads.
    """
    if yaml_config is None and mode == "simple" and os.path.abspath(yaml_path).startswith(_shipped()):
        try:
            return read(yaml_path)
        except Exception:
            # the host says what is wrong with it
            pass
    return original(yaml_path, yaml_config, yaml_dir, mode)


@functools.cache
def _shipped() -> tuple[str, ...]:
    """Return the folders of the host's tasks and of ours, each with a separator at its end."""
    spec = find_spec("lmms_eval")
    host = os.path.dirname(spec.origin) if spec and spec.origin else ""
    return os.path.join(host, "tasks", ""), os.path.join(resources.folder("tasks"), "")


def folders_of(include_path: Any) -> list[str]:
    """Return the folders named by a user: a folder, a list, or a text with several at the separator of PATH."""
    if isinstance(include_path, (str, os.PathLike)):
        return [str(include_path)] if os.path.exists(include_path) else str(include_path).split(os.pathsep)
    return list(map(str, include_path or []))


class Index:
    """Every name that lmms-eval knows, as the index of its ``TaskManager`` has them, made in a second.

    Attributes:
        task_index: by name its ``type`` (``task``, ``python_task``, ``group``, ``tag``), its ``yaml_path`` (-1 for a
            tag), and of a tag its tasks (``task``).
        all_tasks: the names, sorted.
    """

    def __init__(self, include_path: Any = None) -> None:
        """Read all task files.

        Raises:
            OptionError: a file of the user's folder cannot be read; the message names it.
        """
        self.task_index: dict[str, dict[str, Any]] = {}
        # the first folder that has a name wins
        for folder in [*_shipped(), *folders_of(include_path)]:
            self.task_index = {**indexed(folder), **self.task_index}
        self.all_tasks = sorted(self.task_index)


def indexed(folder: str) -> dict[str, dict[str, Any]]:
    """Return the index of a folder, by the rules of the host's ``_get_task_and_group``.

    Raises:
        OptionError: a file cannot be read; the message names it.
    """
    index: dict[str, dict[str, Any]] = {}
    for path in _task_files(folder):
        try:
            config = read(path)
            task, group = config.get("task"), config.get("group")
            if "class" in config:
                index[config["task"]] = {"type": "python_task", "yaml_path": path}
            elif isinstance(task, list):
                index[config["group"]] = {"type": "group", "task": -1, "yaml_path": path}
            elif isinstance(task, str):
                index[task] = {"type": "task", "yaml_path": path}
                for names in (config.get("tag", []), group or []):
                    for tag in [names] if isinstance(names, str) else names:
                        row = index.setdefault(tag, {"type": "tag", "task": [], "yaml_path": -1})
                        if row["type"] != "tag":
                            break
                        row["task"].append(task)
        except Exception as error:
            # damaged YAML raises nearly anything
            fault = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            raise OptionError(
                f"--include-path {folder}: {os.path.relpath(path, folder)} cannot be read as a task file: {fault}"
            ) from None
    return index


def _task_files(folder: str) -> Iterable[str]:
    """Yield the task files below a folder, in the order in which the host reads them."""
    for root, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if name not in ("__pycache__", ".ipynb_checkpoints")]
        yield from (os.path.join(root, name) for name in names if name.endswith(".yaml"))
