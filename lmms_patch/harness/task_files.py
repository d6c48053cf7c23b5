"""Reads the host's own task files with libyaml, in a tenth of the time: the host reads all 1,700 of them at each start.

Only files that came with the host and with lmms-patch are read so; tests compare each of them, read both ways. A user's
file is read as the host does it, since libyaml words faults otherwise.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import yaml

from lmms_patch import resources


def load(
    original: Callable[..., Any],
    yaml_path: Any = None,
    yaml_config: Any = None,
    yaml_dir: Any = None,
    mode: str = "full",
) -> Any:
    """Return the config of a task file, as ``lmms_eval.utils.load_yaml_config`` does.

    Args:
        original: that function. It is handed what libyaml has read, and reads the file itself where that was not
        possible.
        yaml_path: the file.
        yaml_config: what the file holds, where that is known.
        yaml_dir: the folder of files that are included.
        mode: ``simple``: functions are not imported. The other mode, ``full``, is left to the host: it runs code as it
            reads.
    """
    if (
        _Loader is not None
        and yaml_config is None
        and mode == "simple"
        and os.path.abspath(yaml_path).startswith(_folders())
    ):
        yaml_config = _read(yaml_path)
    return original(yaml_path, yaml_config, yaml_dir, mode)


@functools.cache
def _folders() -> tuple[str, ...]:
    """Return the folders whose files are read with libyaml, each with a separator at its end."""
    import lmms_eval.tasks

    host = os.path.dirname(os.path.abspath(str(lmms_eval.tasks.__file__)))
    return os.path.join(host, ""), os.path.join(resources.folder("tasks"), "")


def _read(path: Any) -> Any:
    """Return what a file holds; None for a file libyaml cannot read."""
    try:
        with open(path, "rb") as file:
            return yaml.load(file, _Loader)
    except Exception:
        # the host reads it then, or says what is wrong with it
        return None


_TABLES = ("yaml_constructors", "yaml_multi_constructors", "yaml_implicit_resolvers")


def _loader() -> Any:
    """Return a class which reads with libyaml, and builds the same objects as PyYAML's ``FullLoader``.

    None where PyYAML was built without libyaml.
    """
    if not hasattr(yaml, "CFullLoader"):
        return None

    class Loader(yaml.CFullLoader):
        def __init__(self, stream: Any) -> None:
            from lmms_eval.utils import ignore_constructor

            super().__init__(stream)
            # anybody may have added to these
            tables = {table: getattr(yaml.FullLoader, table) for table in _TABLES}
            vars(self).update(
                tables, yaml_constructors={**tables["yaml_constructors"], "!function": ignore_constructor}
            )

    return Loader


_Loader = _loader()
