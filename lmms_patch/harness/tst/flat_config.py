"""The config of a task in one piece, and the files that must go with it, for use from another folder.

- A function of lmms-eval's own tasks: ``utils.f`` becomes ``lmms_eval.tasks.<folder>.utils.f``, which works wherever
  that lmms-eval is installed.
- A function of another file (the plugin's tasks, a user's ``--include_path``): its module is copied, with the modules
  that it imports and the files that its texts name, as far as they lie beside it.
- Local ``data_files``: copied up to ``MAX_BYTES``; a larger file is named by a path relative to the task folder.
- Everything else (names on the hub, folders in ``dataset_path``) stays as it is.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lmms_eval
import yaml

from lmms_patch import files
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness import task_files

MAX_BYTES = 64 * 2**20
"""Larger files are not copied."""

HOST = Path(lmms_eval.__file__).parent


@dataclass(frozen=True)
class Function:
    """A ``!function`` to be written; ``text`` is what follows the tag."""

    text: str


class _Dumper(yaml.Dumper):
    """Writes a ``Function`` to YAML as a ``!function``, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        # an anchor would tie keys together that only happen to have the same value
        return True


def _represent(dumper: Any, function: Function) -> Any:
    return dumper.represent_scalar("!function", function.text)


_Dumper.add_representer(Function, _represent)


def dump(config: Mapping[str, Any]) -> str:
    """Return the YAML text of a flat config."""
    text: str = yaml.dump(dict(config), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=150)
    return text


def flat(path: Path, copies: Copies) -> dict[str, Any]:
    """Return a task's config without ``include``, whose functions and files can be found from another folder.

    Args:
        path: the YAML file.
        copies: collects the files that must go with the config.
    """
    config = task_files.read(str(path))
    kwargs = config.get("dataset_kwargs")
    if config.get("dataset_path") in task_files.BUILDERS and isinstance(kwargs, Mapping) and "data_files" in kwargs:
        config["dataset_kwargs"] = {**kwargs, "data_files": _data(kwargs["data_files"], copies)}
    return {key: _placed(value, copies) for key, value in config.items()}


def _data(value: Any, copies: Copies) -> Any:
    """Return the value of ``data_files`` with its local files placed in the task folder."""
    if isinstance(value, Mapping):
        return {key: _data(inner, copies) for key, inner in value.items()}
    if isinstance(value, list):
        return [_data(inner, copies) for inner in value]
    return copies.data(Path(value)) if isinstance(value, str) and os.path.isfile(value) else value


def _placed(value: Any, copies: Copies) -> Any:
    """Return a value of a config with its functions placed in the task folder."""
    if isinstance(value, yaml.ScalarNode):
        return Function(_reference(value.value, Path(value.start_mark.name).parent, copies))
    if isinstance(value, Mapping):
        return {key: _placed(inner, copies) for key, inner in value.items()}
    return [_placed(inner, copies) for inner in value] if isinstance(value, list) else value


def _reference(function: str, folder: Path, copies: Copies) -> str:
    """Return what to write in another folder for a function that a YAML file in ``folder`` names.

    The host looks for a file beside the YAML first, then for an installed module.
    """
    module, _, name = function.rpartition(".")
    path = Path(os.path.normpath(folder / f"{module}.py"))
    if not path.exists():
        return function
    if path.is_relative_to(HOST):
        parts = path.relative_to(HOST).with_suffix("").parts
        # a folder with a dot in its name cannot be imported
        if not any("." in part for part in parts):
            return ".".join([HOST.name, *parts, name])
    return f"{copies.module(path, folder).removesuffix('.py')}.{name}"


# --- files that go with it ------------------------------------------------------------------------


@dataclass
class Copies:
    """The files of a base to copy.

    Each folder they come from gets a folder of its own: ``base``, ``base2``, ...

    Attributes:
        folder: the task folder.
        home: the folder of the base's YAML file, which becomes ``base``.
        files: each file by its place in the task folder.
        large: data files that are not copied, as paths relative to the task folder.
        needs_plugin: whether copied code imports lmms_patch.
    """

    folder: Path
    home: Path
    files: dict[str, Path] = field(default_factory=dict)
    large: list[str] = field(default_factory=list)
    needs_plugin: bool = False
    _roots: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._roots.append(self.home.resolve())

    def module(self, path: Path, root: Path) -> str:
        """Add a module, and the modules and files beside it that its code needs. Return its place in the task folder."""
        place = self._place(path, root)
        # modules may import each other
        if place in self.files:
            return place
        self.files[place] = path
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = set(_imported(tree))
        self.needs_plugin |= "lmms_patch" in {name.split(".")[0] for name in imported}
        for beside in (path.parent.joinpath(*name.split(".")).with_suffix(".py") for name in sorted(imported) if name):
            if beside.is_file():
                self.module(beside, root)
        for other in _read_by(tree, path.parent):
            if other.stat().st_size > MAX_BYTES:
                raise CannotWrapError(
                    f"{path} reads {other}, which is too large to copy into a task folder ({other.stat().st_size / 1e6:.0f} MB)"
                )
            self.files[self._place(other, root)] = other
        return place

    def data(self, path: Path) -> str:
        """Add a data file, unless large. Return its path for the YAML file."""
        if path.stat().st_size > MAX_BYTES:
            # relative, so that file and folder can be moved together
            self.large.append(Path(os.path.relpath(path.resolve(), self.folder.resolve())).as_posix())
            return self.large[-1]
        place = self._place(path, self.home)
        self.files[place] = path
        return place

    def _place(self, path: Path, root: Path) -> str:
        """Return the place of a file in the task folder."""
        path, root = path.resolve(), root.resolve()
        if not path.is_relative_to(root):
            root = path.parent
        if root not in self._roots:
            self._roots.append(root)
        number = self._roots.index(root) + 1
        return f"base{number if number > 1 else ''}/{path.relative_to(root).as_posix()}"

    def make(self) -> None:
        """Copy the files."""
        for place, path in self.files.items():
            files.write(self.folder / place, path.read_bytes())


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield the modules imported by code, as written; of ``from . import x`` the x."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            # ``from x import y``: y may be a module of the package x
            yield from (f"{node.module}.{alias.name}" if node.module else alias.name for alias in node.names)


def _read_by(tree: ast.AST, folder: Path) -> list[Path]:
    """Return the files beside a module named by its texts: ``"words.txt"``, ``"data/words.txt"``, or ``"data"`` and ``"words.txt"``.

    YAML files are left out, since the host would take them for tasks in the new folder.
    """
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = sorted(
        text
        for text in texts
        # longer texts are no names of files, and a path that leads out of the folder is not copied
        if 0 < len(text) < 200 and text.isprintable() and not os.path.isabs(text) and ".." not in text
    )
    folders = [folder, *(folder / name for name in names if name.strip("./") and (folder / name).is_dir())]
    beside = [inside / name for inside in folders for name in names if (inside / name).is_file()]
    return sorted({path for path in beside if path.suffix not in (".yaml", ".py", ".pyc")})
