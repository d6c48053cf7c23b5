"""Writes a pruned benchmark as a task folder that plain lmms-eval runs, without lmms-patch.

| file | what |
|---|---|
| ``<name>.yaml`` | the base's config, its ``include:`` chain resolved, with ``process_docs`` replaced by the filter |
| ``pruned_filter.py`` | the filter: a copy of ``lmms_patch.tst.pruned_filter`` |
| ``kept_ids.txt`` | the ids of the kept docs, one a line |
| ``pruned_task.json`` | what the filter checks: ``schema`` (1), ``task``, ``base``, ``split``, ``other_splits``, ``docs`` (of the split, before), ``kept``, ``sha256`` (of the sorted kept ids), ``key``, ``process_docs`` (the base's), ``lmms_eval`` |
| ``base/``, ``base2/`` ... | copies of a base's own files, one folder for each folder they come from |

What a base refers to, and what becomes of it:

- functions of lmms-eval's own tasks: ``utils.f`` becomes ``lmms_eval.tasks.<folder>.utils.f``, so the folder works wherever that lmms-eval is installed;
- functions of other files (the plugin's tasks, a user's ``--include_path``): the module is copied, with the modules beside it that it imports and the
  files beside it that its texts name;
- local ``data_files``: copied up to ``MAX_BYTES``; a larger one is referred to by a path relative to the folder;
- all else (names on the hub, folders in ``dataset_path``) stays as it is.
"""  # noqa: E501 - a table

from __future__ import annotations

import ast
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lmms_eval
import yaml

from lmms_patch import __version__
from lmms_patch.errors import CannotWrapError, OptionError, UnknownNameError, nearest
from lmms_patch.harness import catalog, compat, configs
from lmms_patch.tst import pruned_filter
from lmms_patch.tst.keys import keys_of

MAX_BYTES = 64 * 2**20
"""Larger files are not copied."""

BUILDERS = frozenset({"csv", "json", "parquet", "text", "pandas", "arrow"})
"""Values of ``dataset_path`` whose relative ``data_files`` the host looks for beside the YAML file."""

LEFT_OUT = ("include", "tag", "group", "group_alias", "task_alias")
"""Keys of a base that would put the pruned task under the base's name somewhere."""

HOST = Path(lmms_eval.__file__).parent


def write(
    base: str, kept_keys: Sequence[str], folder: Path, include_path: str | None = None, key: str | None = None, name: str | None = None
) -> Path:
    """Write the task folder.

    Args:
        base: the task that was pruned.
        kept_keys: the stable ids (``tst.keys``) of the docs to keep, in any order.
        folder: where; made if it is missing. A folder holds one pruned task.
        include_path: the folder of the base, where it is not the host's or the plugin's.
        key: the field that the ids come from; None: of the content.
        name: of the new task; default ``<base>_pruned``.

    Returns:
        The YAML file. ``--include_path <folder> --tasks <name>`` runs it.

    Raises:
        PatchError: the base is unknown, no single task of a YAML file, or pruned itself; an id is not one of its docs; the
            name is taken; or a file that its code reads is too large to copy.
    """
    name = name or f"{base}_pruned"
    manager = catalog.task_manager(include_path)
    source = _source(manager, base)
    _check_name(manager, name, folder)
    evaluated = _evaluated(manager, base)
    known = keys_of(evaluated.docs, key)
    _check_kept(base, kept_keys, known)
    copies = _Copies(folder, source.parent)
    config = flat(source, copies)
    about = _about(name, base, evaluated, known, kept_keys, key, config.get("process_docs"))
    wanted = set(kept_keys)
    folder.mkdir(parents=True, exist_ok=True)
    copies.make()
    shutil.copyfile(pruned_filter.__file__, folder / "pruned_filter.py")
    _save(folder / pruned_filter.KEPT, "".join(f"{known_key}\n" for known_key in known if known_key in wanted))
    _save(folder / pruned_filter.ABOUT, json.dumps(about, indent=2) + "\n")
    path = folder / f"{name}.yaml"
    _save(path, _header(about, copies, config) + dump(_pruned(config, about)))
    return path


def _about(
    name: str, base: str, evaluated: _Evaluated, known: Sequence[str], kept: Sequence[str], key: str | None, own: Function | None
) -> dict[str, Any]:
    """``pruned_task.json``; ``own`` is the base's ``process_docs``, as the new YAML would write it."""
    return {
        "schema": pruned_filter.SCHEMA,
        "task": name,
        "base": base,
        "split": evaluated.split,
        "other_splits": list(evaluated.others),
        "docs": len(known),
        "kept": len(kept),
        "sha256": pruned_filter.digest(kept),
        "key": key,
        "process_docs": own.text if own else None,
        "lmms_eval": compat.host_version(),
    }


def _save(path: Path, text: str) -> None:
    temporary = path.with_suffix(path.suffix + ".tmp")
    with open(temporary, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    temporary.replace(path)


# --- checks ---------------------------------------------------------------------------------------


def _source(manager: Any, base: str) -> Path:
    """The YAML file of a task.

    Raises:
        PatchError: there is none, or it is not one task's.
    """
    row = manager.task_index.get(base)
    if row is None:
        close = nearest(base, manager.all_tasks)
        hint = f"did you mean {' or '.join(close)}?" if close else "type 'lmms-patch tasks' for what there is"
        raise UnknownNameError(f"{base}: lmms-eval knows no such task; {hint}")
    if row["type"] in ("group", "tag"):
        members = sorted({facts.name for facts in configs.leaves(manager, base)})
        shown = ", ".join(members[:5]) + (", ..." if len(members) > 5 else "")
        raise CannotWrapError(f"{base} is a {row['type']} of tasks; prune its members one by one ({shown})")
    if row["type"] != "task":
        raise CannotWrapError(f"{base} is a Python class and no YAML task, so no task folder can be made of it; the kept ids are in kept_ids.txt")
    path = Path(row["yaml_path"])
    if (path.parent / pruned_filter.ABOUT).exists():
        first = json.loads((path.parent / pruned_filter.ABOUT).read_text(encoding="utf-8"))["base"]
        raise CannotWrapError(f"{base} is pruned itself; prune {first}, and keep the docs that both have kept")
    return path


def _check_name(manager: Any, name: str, folder: Path) -> None:
    if not re.fullmatch(r"[\w.-]+", name):
        raise OptionError(f"{name!r} is no name of a task; allowed: letters, digits, '_', '-', '.'")
    row = manager.task_index.get(name)
    if row is not None and Path(row["yaml_path"] if row["yaml_path"] != -1 else "").resolve().parent != folder.resolve():
        raise OptionError(f"{name}: lmms-eval knows a task of this name already ({row['yaml_path']}); choose another name")
    about = folder / pruned_filter.ABOUT
    if about.exists() and (held := json.loads(about.read_text(encoding="utf-8")).get("task")) != name:
        raise OptionError(f"{folder} holds the pruned task {held} already; choose another folder")


def _check_kept(base: str, kept: Sequence[str], known: Sequence[str]) -> None:
    if not kept:
        raise OptionError(f"{base}: no doc is kept, so there is no task to write")
    if len(set(kept)) < len(kept):
        raise OptionError(f"{base}: {next(k for k in kept if list(kept).count(k) > 1)!r} is twice among the kept ids")
    missing = sorted(set(kept) - set(known))
    if missing:
        raise OptionError(
            f"{base}: {len(missing)} of the {len(kept)} kept ids are not those of its docs (the first: {missing[0]!r}); "
            "the dataset has changed since, the option key is another, or process_docs draws at random (then name a field with key)"
        )


# --- the base's docs ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Evaluated:
    """The evaluated docs of the base, as its scorer and models get them, and the splits that its config names."""

    docs: Any
    split: str
    others: tuple[str, ...]


def _evaluated(manager: Any, base: str) -> _Evaluated:
    """Load the base once, and note what ``process_docs`` is called with.

    Raises:
        CannotWrapError: the filter could not know the evaluated split among several, or the docs come as a stream.
    """
    own = manager._get_config(base).get("process_docs")
    calls: list[tuple[Any, Any]] = []

    def noting(rows: Any) -> Any:
        calls.append((rows, own(rows) if own else rows))
        return calls[-1][1]

    loaded = manager.load_task_or_group([{"task": base, **configs.without_videos(manager, base), "process_docs": noting}])
    task = loaded[base]
    config = task.config
    split = config.test_split if task.has_test_docs() else config.validation_split
    docs = task.dataset[split]
    if not hasattr(docs, "__len__"):
        raise CannotWrapError(f"{base} streams its docs, so they cannot be known by ids; prune a task without streaming")
    named = {config.training_split, config.validation_split, config.test_split, config.fewshot_split} - {None, split}
    others = tuple(sorted(named & set(task.dataset)))
    for called in [split, *others] if others else []:
        rows = next(before for before, after in calls if after is task.dataset[called])
        if str(getattr(rows, "split", None)) != called:
            raise CannotWrapError(f"{base}: its splits do not know their names, so {split} cannot be told from {', '.join(others)} when it is loaded")
    return _Evaluated(docs, split, others)


# --- the base's config, flat ----------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """A ``!function`` as it is written: ``text`` is what follows the tag."""

    text: str


@dataclass(frozen=True)
class _Found:
    """A ``!function`` as it was read, in a YAML file of ``folder``."""

    text: str
    folder: Path


@dataclass(frozen=True)
class _Data:
    """A local data file that a YAML file of ``folder`` names."""

    path: Path
    folder: Path


class _Loader(yaml.FullLoader):
    """Reads a ``!function`` as a ``_Found``, to be placed later."""


class _Dumper(yaml.Dumper):
    """Writes it again, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _construct(loader: Any, node: Any) -> _Found:
    return _Found(loader.construct_scalar(node), Path(os.path.dirname(loader.name)))


def _represent(dumper: Any, function: Function) -> Any:
    return dumper.represent_scalar("!function", function.text)


_Loader.add_constructor("!function", _construct)
_Dumper.add_representer(Function, _represent)


def dump(config: Mapping[str, Any]) -> str:
    """The YAML text of a flat config."""
    text: str = yaml.dump(dict(config), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=150)
    return text


def flat(path: Path, copies: _Copies) -> dict[str, Any]:
    """A task's config without ``include``, whose functions and files can be found from another folder.

    Args:
        path: the YAML file.
        copies: gets the files that must go with it.
    """
    return {key: _placed(value, copies) for key, value in _read(str(path)).items()}


def _read(path: str) -> dict[str, Any]:
    """The same with functions unplaced: keys of later includes lose against earlier ones, and all against the file's own, as the host has it."""
    with open(path, "rb") as file:
        own = dict(yaml.load(file, Loader=_Loader))
    folder = os.path.dirname(path)
    includes = own.pop("include", [])
    config: dict[str, Any] = {}
    for include in reversed([includes] if isinstance(includes, str) else includes):
        config.update(_read(include if os.path.isfile(include) else os.path.join(folder, include)))
    config.update(own)
    kwargs = config.get("dataset_kwargs")
    if config.get("dataset_path") in BUILDERS and isinstance(kwargs, Mapping) and "data_files" in kwargs:
        config["dataset_kwargs"] = {**kwargs, "data_files": _data(kwargs["data_files"], Path(folder))}
    return config


def _data(value: Any, folder: Path) -> Any:
    if isinstance(value, Mapping):
        return {key: _data(inner, folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [_data(inner, folder) for inner in value]
    if isinstance(value, str) and value and (folder / value).is_file():
        return _Data(folder / value, folder)
    return value


def _placed(value: Any, copies: _Copies) -> Any:
    if isinstance(value, _Found):
        return Function(_reference(value, copies))
    if isinstance(value, _Data):
        return copies.data(value.path, value.folder)
    if isinstance(value, Mapping):
        return {key: _placed(inner, copies) for key, inner in value.items()}
    return [_placed(inner, copies) for inner in value] if isinstance(value, list) else value


def _reference(function: _Found, copies: _Copies) -> str:
    """What to write for a function in another folder. The host looks for a file beside the YAML first, then for an installed module."""
    module, _, name = function.text.rpartition(".")
    path = Path(os.path.normpath(function.folder / f"{module}.py"))
    if not path.exists():
        return function.text
    if path.is_relative_to(HOST):
        parts = path.relative_to(HOST).with_suffix("").parts
        if not any("." in part for part in parts):
            return ".".join([HOST.name, *parts, name])
    return f"{copies.module(path, function.folder).removesuffix('.py')}.{name}"


def _pruned(config: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    metadata = config.get("metadata") or {}
    note = {"base": about["base"], "docs": about["docs"], "kept": about["kept"]}
    out = {"task": about["task"], **{k: v for k, v in config.items() if k not in LEFT_OUT and k != "task"}}
    out["process_docs"] = Function("pruned_filter.process_docs")
    return {**out, "metadata": {**metadata, "pruned": note}} if isinstance(metadata, Mapping) else out


def _header(about: Mapping[str, Any], copies: _Copies, config: Mapping[str, Any]) -> str:
    """The comments at the top: what this is, how it runs, what it needs."""
    name, base = about["task"], about["base"]
    lines = [
        f"{base} without the docs that can be answered without looking: {about['kept']} of the {about['docs']} docs of its split {about['split']}.",
        f"Made by lmms-patch {__version__} from the task of lmms-eval {about['lmms_eval']}; it runs without lmms-patch:",
        f"  lmms-eval --include_path <this folder> --tasks {name} --model ...",
        "It needs all files of this folder (pruned_filter.py says what is checked) and the same dataset.",
        *(f"Copied here, with what they read: {', '.join(found)}." for found in [sorted(copies.files)] if found),
        *(f"Not copied, being large: {path}; it must stay there, seen from here." for path in copies.large),
        *([f"Code of {base} imports lmms_patch, so it must be installed after all."] if copies.needs_plugin else []),
        *(
            f"The dataset is a folder of the machine where this was made: {path}"
            for path in [config.get("dataset_path")]
            if path and os.path.isdir(path)
        ),
    ]
    return "".join(f"# {line}\n" for line in lines)


# --- files that go with it ------------------------------------------------------------------------


@dataclass
class _Copies:
    """The files of a base that are copied, each under the name of its folder (``base``, ``base2``, ...).

    Attributes:
        folder: the task folder.
        home: the folder of the base's YAML file, which becomes ``base``.
        files: place in the task folder -> file.
        large: paths, seen from the task folder, of data that is not copied.
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
        """The place of a module; what it imports and reads from beside it comes along."""
        place = self._place(path, root)
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
                raise CannotWrapError(f"{path} reads {other}, which is too large to copy into a task folder ({other.stat().st_size / 1e6:.0f} MB)")
            self.files[self._place(other, root)] = other
        return place

    def data(self, path: Path, root: Path) -> str:
        """The place of a data file, as the YAML names it."""
        if path.stat().st_size > MAX_BYTES:
            self.large.append(Path(os.path.relpath(path.resolve(), self.folder.resolve())).as_posix())
            return self.large[-1]
        place = self._place(path, root)
        self.files[place] = path
        return place

    def _place(self, path: Path, root: Path) -> str:
        path, root = path.resolve(), root.resolve()
        if not path.is_relative_to(root):
            root = path.parent
        if root not in self._roots:
            self._roots.append(root)
        number = self._roots.index(root) + 1
        return f"base{number if number > 1 else ''}/{path.relative_to(root).as_posix()}"

    def make(self) -> None:
        """Copy them."""
        for place, path in self.files.items():
            (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, self.folder / place)


def _imported(tree: ast.AST) -> Iterator[str]:
    """The modules that code imports, as written; of ``from . import x`` the x."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" if node.module else alias.name for alias in node.names)


def _read_by(tree: ast.AST, folder: Path) -> list[Path]:
    """The files beside a module that its texts name: ``"words.txt"``, ``"data/words.txt"``, or ``"data"`` and ``"words.txt"``.

    YAML files are left out: in the new folder the host would take them for tasks.
    """
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = sorted(text for text in texts if 0 < len(text) < 200 and text.isprintable() and not os.path.isabs(text) and ".." not in text)
    folders = [folder, *(folder / name for name in names if name.strip("./") and (folder / name).is_dir())]
    found = [inside / name for inside in folders for name in names if (inside / name).is_file()]
    return sorted({path for path in found if path.suffix not in (".yaml", ".py", ".pyc")})
