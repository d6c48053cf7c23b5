"""Writes a pruned benchmark as a task folder that plain lmms-eval runs, without lmms-patch.

| file | what |
|---|---|
| ``<name>.yaml`` | the base's config, its ``include:`` chain resolved, with ``process_docs`` replaced by the filter |
| ``pruned_filter.py`` | the filter: a copy of ``lmms_patch.tst.pruned_filter`` |
| ``kept_ids.txt`` | the ids of the kept docs, one a line |
| ``pruned_task.json`` | what the filter checks: ``schema`` (1), ``task``, ``base``, ``split``, ``other_splits``, ``docs`` (of the split, before), ``kept``, ``sha256`` (of the sorted kept ids), ``key``, ``process_docs`` (the base's), ``lmms_eval`` |
| ``base/``, ``base2/`` ... | copies of a base's own files, one folder for each folder they come from |

``flat_config`` says what becomes of the functions and files that a base refers to.
"""  # noqa: E501 - a table

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_patch import __version__, files
from lmms_patch.errors import CannotWrapError, OptionError, RecordError, UnknownNameError, nearest
from lmms_patch.harness import compat, load
from lmms_patch.harness.names import catalog, configs
from lmms_patch.harness.tst.flat_config import Copies, Function, dump, flat
from lmms_patch.tst import pruned_filter
from lmms_patch.tst.keys import keys_of

LEFT_OUT = ("include", "tag", "group", "group_alias", "task_alias")
"""Keys of a base that would list the pruned task under the base's name."""


def write(
    base: str,
    kept_keys: Sequence[str],
    folder: Path,
    include_path: str | os.PathLike[str] | None = None,
    key: str | None = None,
    name: str | None = None,
) -> Path:
    """Write the task folder of a pruned benchmark.

    Args:
        base: the task that was pruned.
        kept_keys: the stable ids (``tst.keys``) of the docs to keep, in any order.
        folder: the folder to write to; made if it is missing. A folder holds one pruned task.
        include_path: the folder of the base, where the base does not come from the host or the plugin.
        key: the field that the ids come from; None where they are digests of the docs.
        name: the name of the new task; default ``<base>_pruned``.

    Returns:
        The YAML file. ``--include_path <folder> --tasks <name>`` runs it.

    Raises:
        PatchError: the base is unknown, is not a single task of a YAML file, or is pruned itself; an id belongs to none
            of its docs; the name is taken; or a file that its code reads is too large to copy.
    """
    name = name or f"{base}_pruned"
    manager = catalog.task_manager(include_path)
    source = source_of(manager, base)
    check_name(manager, name, folder)
    evaluated = evaluated_docs(manager, base)
    known = keys_of(evaluated.docs, key)
    check_kept(base, kept_keys, known)
    copies = Copies(folder, source.parent)
    config = flat(source, copies)
    own, wanted = config.get("process_docs"), set(kept_keys)
    about = {
        "schema": pruned_filter.SCHEMA,
        "task": name,
        "base": base,
        "split": evaluated.split,
        "other_splits": list(evaluated.others),
        "docs": len(known),
        "kept": len(kept_keys),
        "sha256": pruned_filter.digest(kept_keys),
        "key": key,
        "process_docs": own.text if own else None,
        "lmms_eval": compat.host_version(),
    }
    # only now, when all is checked
    folder.mkdir(parents=True, exist_ok=True)
    copies.make()
    files.write(folder / "pruned_filter.py", Path(pruned_filter.__file__).read_bytes())
    # in the order of the docs, whatever the order of ``kept_keys``
    files.write(folder / pruned_filter.KEPT, "".join(f"{known_key}\n" for known_key in known if known_key in wanted))
    files.write(folder / pruned_filter.ABOUT, json.dumps(about, indent=2) + "\n")
    path = folder / f"{name}.yaml"
    files.write(path, _header(about, copies, config) + dump(_renamed(config, about)))
    return path


def check(base: str, folder: Path, include_path: str | os.PathLike[str] | None = None) -> None:
    """Refuse what ``write`` would refuse without a look at the docs.

    Raises:
        PatchError: see ``write``.
    """
    manager = catalog.task_manager(include_path)
    source_of(manager, base)
    check_name(manager, f"{base}_pruned", folder)


def try_out(
    base: str, keys: Sequence[str], include_path: str | os.PathLike[str] | None = None, key: str | None = None
) -> None:
    """Write the task of all docs to a temporary folder: what ``write`` would refuse is refused before the work.

    Raises:
        PatchError: see ``write``.
    """
    with tempfile.TemporaryDirectory() as spare:
        write(base, keys, Path(spare), include_path, key, name=f"{base}_tried_out")


# --- checks ---------------------------------------------------------------------------------------


def source_of(manager: Any, base: str) -> Path:
    """Return the YAML file of a task.

    Raises:
        PatchError: the task is unknown, is not a single task of a YAML file, or is pruned itself.
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
        raise CannotWrapError(
            f"{base} is a Python class and no YAML task, so no task folder can be made of it; the kept ids are in kept_ids.txt"
        )
    path = Path(row["yaml_path"])
    if (path.parent / pruned_filter.ABOUT).exists():
        first = _made_from(path.parent, "base")
        raise CannotWrapError(f"{base} is pruned itself; prune {first}, and keep the docs that both have kept")
    return path


def check_name(manager: Any, name: str, folder: Path) -> None:
    """Refuse a taken or unusable name or folder."""
    if not re.fullmatch(r"[\w.-]+", name):
        raise OptionError(f"{name!r} is no name of a task; allowed: letters, digits, '_', '-', '.'")
    row = manager.task_index.get(name)
    if (
        row is not None
        # lmms-eval gives a tag, which has no file of its own, the path -1
        and Path(row["yaml_path"] if row["yaml_path"] != -1 else "").resolve().parent != folder.resolve()
    ):
        raise OptionError(
            f"{name}: lmms-eval knows a task of this name already ({row['yaml_path']}); choose another name"
        )
    if (folder / pruned_filter.ABOUT).exists() and (held := _made_from(folder, "task")) != name:
        raise OptionError(f"{folder} holds the pruned task {held} already; choose another folder")


def _made_from(folder: Path, key: str) -> str:
    """Return an entry of a pruned task's ``pruned_task.json``.

    Raises:
        RecordError: the file lacks it, or cannot be read.
    """
    path = folder / pruned_filter.ABOUT
    try:
        return str(files.parse_json(path.read_text(encoding="utf-8"))[key])
    except (OSError, ValueError, TypeError, KeyError):
        raise RecordError(f"{path} is not whole, so {folder} cannot be told to be that of a pruned task") from None


def check_kept(base: str, kept: Sequence[str], known: Sequence[str]) -> None:
    """Refuse kept ids missing among the base's docs, or repeated."""
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
class Evaluated:
    """The evaluated docs of the base, as its scorer and models get them.

    Attributes:
        docs: those of the evaluated split.
        split: its name.
        others: the names of the other splits that the config names.
    """

    docs: Any
    split: str
    others: tuple[str, ...]


def evaluated_docs(manager: Any, base: str) -> Evaluated:
    """Load the base once, and note what its ``process_docs`` is called with.

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

    with load.named(manager, base):
        loaded = manager.load_task_or_group(
            [{"task": base, **configs.without_videos(manager, base), "process_docs": noting}]
        )
    task = loaded[base]
    config = task.config
    split = config.test_split if task.has_test_docs() else config.validation_split
    docs = task.dataset[split]
    if not hasattr(docs, "__len__"):
        raise CannotWrapError(
            f"{base} streams its docs, so they cannot be known by ids; prune a task without streaming"
        )
    named = {config.training_split, config.validation_split, config.test_split, config.fewshot_split} - {None, split}
    others = tuple(sorted(named & set(task.dataset)))
    for called in [split, *others] if others else []:
        # by identity, since two splits may have equal docs
        rows = next(before for before, after in calls if after is task.dataset[called])
        if str(getattr(rows, "split", None)) != called:
            raise CannotWrapError(
                f"{base}: its rows do not carry the name of their split, so the filter cannot tell {split} from {', '.join(others)}"
            )
    return Evaluated(docs, split, others)


# --- the new config -------------------------------------------------------------------------------


def _renamed(config: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new config: the base's, flat, under the new name and with the filter; ``about`` is ``pruned_task.json``."""
    metadata = config.get("metadata") or {}
    note = {"base": about["base"], "docs": about["docs"], "kept": about["kept"]}
    own = {k: v for k, v in config.items() if k not in LEFT_OUT and k != "task"}
    out = {"task": about["task"], **own, "process_docs": Function("pruned_filter.process_docs")}
    return {**out, "metadata": {**metadata, "pruned": note}} if isinstance(metadata, Mapping) else out


def _header(about: Mapping[str, Any], copies: Copies, config: Mapping[str, Any]) -> str:
    """Return the comments at the top of the YAML: what the task is, how to run the task, and what is needed."""
    name, base, path = about["task"], about["base"], config.get("dataset_path")
    lines = [
        f"{base} without the docs that can be answered without looking: {about['kept']} of the {about['docs']} docs of its split {about['split']}.",
        f"Made by lmms-patch {__version__} from the task of lmms-eval {about['lmms_eval']}; it runs without lmms-patch:",
        f"  lmms-eval --include_path <this folder> --tasks {name} --model ...",
        "It needs all files of this folder (pruned_filter.py says what is checked) and the same dataset.",
        *(f"Not copied, being large: {large}; it must stay there, seen from here." for large in copies.large),
    ]
    if copies.needs_plugin:
        lines.append(f"Code of {base} imports lmms_patch, so it must be installed after all.")
    if path and os.path.isdir(path):
        lines.append(f"The dataset is a folder of the machine where this was made: {path}")
    return "".join(f"# {line}\n" for line in lines)
