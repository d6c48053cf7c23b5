"""Writes a pruned benchmark as a task folder that plain lmms-eval runs, without lmms-patch.

| file | what |
|---|---|
| ``<base>_pruned.yaml`` | the base's config, its ``include:`` chain resolved, with ``process_docs`` replaced by the filter |
| ``pruned_filter.py`` | the filter: a copy of ``lmms_patch.tst.pruned_filter`` |
| ``kept_ids.txt`` | the ids of the kept docs, one a line |
| ``pruned_task.json`` | what the filter checks: ``schema`` (1), ``task``, ``base``, ``split``, ``other_splits``, ``docs`` (of the split, before), ``kept``, ``sha256`` (of the sorted kept ids), ``key``, ``process_docs`` (the base's), ``lmms_eval`` |
| ``base/``, ``base2/`` ... | copies of a base's own files, one folder for each folder they come from |

A function of lmms-eval's own tasks is named by its module (``lmms_eval.tasks.<folder>.utils.f``). Of a function of
another file (the plugin's tasks, a user's ``--include_path``) the folder's code is copied, with the files that it names;
so are local ``data_files``. What is larger than ``MAX_BYTES`` is named by a path relative to the task folder. All else
(names on the hub, folders in ``dataset_path``) stays as it is.
"""  # noqa: E501 - a table

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lmms_eval
import yaml

from lmms_patch import __version__, files
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness import compat, plugin, task_files
from lmms_patch.harness.names import catalog, configs
from lmms_patch.tst import pruned_filter
from lmms_patch.tst.keys import keys_of

LEFT_OUT = ("include", "tag", "group", "group_alias", "task_alias", "task")
"""Keys of a base that would list the pruned task under the base's name."""
MAX_BYTES = 64 * 2**20
HOST = Path(lmms_eval.__file__).parent


class _Dumper(yaml.Dumper):
    """Writes the node of a ``!function`` as it stands, and no anchors: these would tie keys together that only happen to have the same value."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(yaml.ScalarNode, lambda dumper, node: dumper.represent_scalar("!function", node.value))


@dataclass(frozen=True)
class PrunedTask:
    """A base to be written with fewer docs: all is checked.

    Attributes:
        base: its name.
        folder: to write to.
        keys: the stable ids (``tst.keys``) of its docs.
        about: of ``pruned_task.json``, what does not depend on the kept docs.
        config: the base's, flat, its functions found from the task folder.
        copies: the files that go with it, by their place in the task folder.
        header: what the task needs, a line each.
    """

    base: str
    folder: Path
    keys: Sequence[str]
    about: Mapping[str, Any]
    config: Mapping[str, Any]
    copies: Mapping[str, Path]
    header: Sequence[str]

    def write(self, kept: Sequence[str]) -> Path:
        """Write the task folder with the docs of some ids, and return its YAML file, which ``--include_path <folder>`` runs."""
        wanted, name = set(kept), self.about["task"]
        counts = {"kept": len(wanted), "sha256": pruned_filter.digest(wanted)}
        for place, path in self.copies.items():
            files.write(self.folder / place, path.read_bytes())
        files.write(self.folder / "pruned_filter.py", Path(pruned_filter.__file__).read_bytes())
        # in the order of the docs, whatever the order of ``kept``
        files.write(self.folder / pruned_filter.KEPT, "".join(f"{key}\n" for key in self.keys if key in wanted))
        files.write(self.folder / pruned_filter.ABOUT, json.dumps({**self.about, **counts}, indent=2) + "\n")
        config = {"task": name, **{key: value for key, value in self.config.items() if key not in LEFT_OUT}}
        config["process_docs"] = _function("pruned_filter.process_docs")
        metadata = config.get("metadata") or {}
        if isinstance(metadata, Mapping):
            note = {"base": self.base, "docs": len(self.keys), "kept": len(wanted)}
            config["metadata"] = {**metadata, "pruned": note}
        lines = [
            f"{self.base} without the docs that can be answered without looking: {len(wanted)} of the {len(self.keys)} docs of its split "
            f"{self.about['split']}.",
            f"Made by lmms-patch {__version__} from the task of lmms-eval {self.about['lmms_eval']}; it runs without lmms-patch:",
            f"  lmms-eval --include_path <this folder> --tasks {name} --model ...",
            "It needs all files of this folder (pruned_filter.py says what is checked) and the same dataset.",
            *self.header,
        ]
        text = yaml.dump(config, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=150)
        path = self.folder / f"{name}.yaml"
        files.write(path, "".join(f"# {line}\n" for line in lines) + text)
        return path


def prepare(
    base: str,
    folder: Path,
    include_path: str | os.PathLike[str] | None = None,
    key: str | None = None,
    keys: Sequence[str] = (),
) -> PrunedTask:
    """Load a base, and check whether a pruned task can be made of the base.

    Args:
        base: the task to prune.
        folder: to write to, later. A folder holds one pruned task.
        include_path: the folder of the base, where the base does not come from the host or the plugin.
        key: the field that the ids come from; None where they are digests of the docs.
        keys: ids that its docs must have.

    Raises:
        PatchError: the base is no YAML task, or pruned itself; an id belongs to none of its docs; the name or the folder
            is taken; or a file that its code reads is too large to copy.
    """
    manager, name = catalog.task_manager(include_path), f"{base}_pruned"
    row, taken = manager.task_index[base], manager.task_index.get(name, {}).get("yaml_path", -1)
    if row["type"] != "task":
        raise CannotWrapError(
            f"{base} is no YAML task, so no task folder can be made of it; the kept ids are in kept_ids.txt"
        )
    source = Path(row["yaml_path"])
    if (source.parent / pruned_filter.ABOUT).exists():
        raise CannotWrapError(
            f"{base} is pruned itself; prune the task that it was made of, and keep the docs that both have kept"
        )
    if taken != -1 and Path(taken).resolve().parent != folder.resolve():
        raise OptionError(f"{name}: lmms-eval knows a task of this name already ({taken})")
    if others := [path for path in folder.glob("*.yaml") if path.stem != name]:
        raise OptionError(f"{folder} holds the task {others[0].stem} already; choose another folder")
    docs, split, other_splits = evaluated_docs(manager, base)
    known = keys_of(docs, key)
    if missing := sorted(set(keys) - set(known)):
        raise OptionError(
            f"{base}: {len(missing)} of the {len(keys)} ids are not those of its docs (the first: {missing[0]!r}); "
            "the option key is another, or process_docs draws at random (then name a field with key)"
        )
    copies = _Copies(folder, source.parent)
    config = copies.placed(task_files.read(str(source)))
    own, path = config.get("process_docs"), config.get("dataset_path")
    header = [f"Not copied, being large: {large}; it must stay there, seen from here." for large in copies.large]
    if any(b"lmms_patch" in file.read_bytes() for file in copies.files.values() if file.suffix == ".py"):
        header.append(f"Code of {base} imports lmms_patch, so it must be installed after all.")
    if path and os.path.isdir(path):
        header.append(f"The dataset is a folder of the machine where this was made: {path}")
    about = {
        "schema": pruned_filter.SCHEMA,
        "task": name,
        "base": base,
        "split": split,
        "other_splits": other_splits,
        "docs": len(known),
        "key": key,
        "process_docs": own.value if own else None,
        "lmms_eval": compat.host_version(),
    }
    return PrunedTask(base, folder, known, about, config, copies.files, header)


def evaluated_docs(manager: Any, base: str) -> tuple[Any, str, list[str]]:
    """Load the base once: return its evaluated docs, the name of their split, and the other splits that its config names.

    Raises:
        CannotWrapError: the dataset could not be loaded, the filter could not tell the evaluated split from others, or
            the docs come as a stream.
    """
    # Note which rows became which docs: the filter is called with the rows of every split, and must tell the evaluated
    # split by its name.
    own = manager._get_config(base).get("process_docs")
    calls: list[tuple[Any, Any]] = []

    def noting(rows: Any) -> Any:
        calls.append((rows, own(rows) if own else rows))
        return calls[-1][1]

    with plugin.loading(manager, base):
        changed = {"task": base, **configs.without_videos(manager, base), "process_docs": noting}
        task = manager.load_task_or_group([changed])[base]
    config = task.config
    split = config.test_split if task.has_test_docs() else config.validation_split
    docs = task.dataset[split]
    if not hasattr(docs, "__len__"):
        raise CannotWrapError(
            f"{base} streams its docs, so they cannot be known by ids; prune a task without streaming"
        )
    named = {config.training_split, config.validation_split, config.test_split, config.fewshot_split} - {None, split}
    others = sorted(named & set(task.dataset))
    for called in [split, *others] if others else []:
        # by identity, since two splits may have equal docs
        rows = next(before for before, after in calls if after is task.dataset[called])
        if str(getattr(rows, "split", None)) != called:
            raise CannotWrapError(
                f"{base}: its rows do not carry the name of their split, so the filter cannot tell {split} from {', '.join(others)}"
            )
    return docs, split, others


def _function(name: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("!function", name)


class _Copies:
    """The files of a base to copy. Each folder they come from gets a folder of its own: ``base``, ``base2``, ...

    Args:
        folder: the task folder.
        home: the folder of the base's YAML file, which becomes ``base``.

    Attributes:
        files: each file by its place in the task folder.
        large: data files that are not copied, as paths relative to the task folder.
    """

    def __init__(self, folder: Path, home: Path) -> None:
        self._folder, self._roots = folder, [home.resolve()]
        self.files: dict[str, Path] = {}
        self.large: list[str] = []

    def placed(self, value: Any, data: bool = False) -> Any:
        """Return a value of a config with its functions and data files placed in the task folder.

        Args:
            value: of a config.
            data: whether its texts name files: ``data_files``.
        """
        if isinstance(value, yaml.ScalarNode):
            return _function(self._reference(value.value, Path(value.start_mark.name).parent))
        if isinstance(value, Mapping):
            return {key: self.placed(inner, data or key == "data_files") for key, inner in value.items()}
        if isinstance(value, list):
            return [self.placed(inner, data) for inner in value]
        return self._data(Path(value)) if data and os.path.isabs(value) and os.path.isfile(value) else value

    def _reference(self, function: str, folder: Path) -> str:
        """Return what to write for a function that a YAML file in ``folder`` names: the host looks for a file beside it, then for a module."""
        module, _, name = function.rpartition(".")
        path = Path(os.path.normpath(folder / f"{module}.py"))
        if not path.exists():
            return function
        if path.is_relative_to(HOST):
            parts = path.relative_to(HOST).with_suffix("").parts
            # a folder with a dot in its name cannot be imported
            if not any("." in part for part in parts):
                return ".".join([HOST.name, *parts, name])
        self._code(folder)
        return f"{self._add(path, folder).removesuffix('.py')}.{name}"

    def _code(self, folder: Path) -> None:
        """Add the modules of a folder, and what is named in them of the files beside them and one folder down."""
        modules = list(folder.glob("*.py"))
        code = "\n".join(path.read_text(encoding="utf-8") for path in modules)
        # the host would take YAML files for tasks
        beside = (path for depth in ("*", "*/*") for path in folder.glob(depth) if path.suffix not in (".yaml", ".yml"))
        named = (path for path in beside if path.name.removesuffix(".py") in code and path.is_file())
        for path in {*modules, *(path for path in named if path.parent == folder or path.parent.name in code)}:
            if path.stat().st_size > MAX_BYTES:
                raise CannotWrapError(f"the code of {folder} reads {path}, which is too large for a task folder")
            self._add(path, folder)

    def _data(self, path: Path) -> str:
        """Add a data file, unless large, and return its path for the YAML file."""
        if path.stat().st_size <= MAX_BYTES:
            return self._add(path, self._roots[0])
        # relative, so that file and folder can be moved together
        self.large.append(Path(os.path.relpath(path.resolve(), self._folder.resolve())).as_posix())
        return self.large[-1]

    def _add(self, path: Path, root: Path) -> str:
        """Add a file, and return its place in the task folder."""
        path, root = path.resolve(), root.resolve()
        root = root if path.is_relative_to(root) else path.parent
        if root not in self._roots:
            self._roots.append(root)
        number = self._roots.index(root) + 1
        place = f"base{number if number > 1 else ''}/{path.relative_to(root).as_posix()}"
        self.files[place] = path
        return place
