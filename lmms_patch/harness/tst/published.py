"""Writes a pruned benchmark so that others can load it: as a filter over the original dataset, or as a copy of the kept docs.

| form | ``data/`` | ``task/`` |
|---|---|---|
| filter | ``<split>.parquet`` with ``key`` and ``row``: stable ids and places of the kept docs, no content | the task folder of ``pruned_task``, with the original's commit |
| copy | the kept docs as Parquet, media inside, after the base's own ``process_docs``; other splits that the task names stay whole | the base's task, which reads ``data/`` |
"""  # noqa: E501 - a table

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets

from lmms_patch import __version__, files
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness import compat
from lmms_patch.harness.names import catalog
from lmms_patch.harness.names.sizes import dataset_kwargs
from lmms_patch.harness.tst import pruned_task
from lmms_patch.harness.tst.flat_config import BUILDERS, Copies, dump, flat
from lmms_patch.tst import pruned_filter
from lmms_patch.tst.keys import keys_of

_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Original:
    """The dataset behind a pruned benchmark.

    Attributes:
        repository: its name on the hub; "" where it is none.
        config: the name of its configuration; "" where it has none.
        split: the evaluated split.
        revision: the commit that was pruned; "" where it is not known.
        license: as the dataset itself says; "" where it does not.
        citation: BibTeX, as the dataset itself says; "" where it does not.
        whole: whether the rows of the split are the docs, so that places of docs are places of rows.
    """

    repository: str
    config: str
    split: str
    revision: str
    license: str
    citation: str
    whole: bool


@dataclass(frozen=True)
class Written:
    """The data and the task of a published benchmark.

    Attributes:
        task_file: the YAML file, below ``task/``.
        splits: the Parquet file of each split, relative to the folder; the evaluated split first.
    """

    task_file: Path
    splits: Mapping[str, str]
    original: Original


def check(base: str, *, copy: bool, include_path: str | os.PathLike[str] | None = None) -> None:
    """Refuse before any work what ``write`` would refuse; the docs are loaded for the check.

    Raises:
        PatchError: the base is no single task of a YAML file, others could not load a filter over its dataset, or a
            copy would lack the images.
    """
    manager = catalog.task_manager(include_path)
    source = pruned_task.source_of(manager, base)
    _check_form(base, pruned_task.evaluated_docs(manager, base), flat(source, Copies(Path(), source.parent)), copy)


def _check_form(base: str, evaluated: pruned_task.Evaluated, config: Mapping[str, Any], copy: bool) -> None:
    """Refuse a filter over files of this machine, and a copy that would lack something.

    Say what is possible instead, if anything is.
    """
    local, lacks = _is_local(config), _why_no_copy(evaluated)
    if local and lacks:
        raise CannotWrapError(
            f"{base} reads files of this machine, which others do not have, and {lacks}; nothing can be published of it as it is: "
            "put its images into the docs (a field of images, which Parquet holds), or leave --to and --push out"
        )
    if copy and lacks:
        raise CannotWrapError(f"{base}: {lacks}; leave --copy out")
    if local and not copy:
        raise OptionError(
            f"{base} reads files of this machine, which others do not have, so a list of kept ids is of no use to them; "
            "type --copy --license NAME to write the kept docs themselves"
        )


def _is_local(config: Mapping[str, Any]) -> bool:
    """Return whether a task reads files of this machine."""
    path = str(config.get("dataset_path") or "")
    kwargs = dataset_kwargs(config)
    if path in BUILDERS:
        return not all("://" in one for one in _texts(kwargs.get("data_files") or kwargs.get("data_dir") or ""))
    return bool(kwargs.get("load_from_disk")) or os.path.exists(path)


def _why_no_copy(evaluated: pruned_task.Evaluated) -> str:
    """Say why the docs cannot be copied; empty where they can."""
    for split, docs in {evaluated.split: evaluated.docs, **evaluated.others}.items():
        if not isinstance(docs, datasets.Dataset):
            return f"the docs of split {split} are no datasets.Dataset, so they cannot be written as Parquet"
    if not any(map(pruned_filter.is_media_feature, evaluated.docs.features.values())):
        return "the docs only name their images or videos, which a copy would lack"
    return ""


def _texts(value: Any) -> list[str]:
    """Return all texts of nested lists and mappings."""
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _texts(inner)]
    return [text for inner in value for text in _texts(inner)] if isinstance(value, (list, tuple)) else [str(value)]


def write(
    base: str,
    kept_keys: Sequence[str],
    folder: Path,
    *,
    copy: bool,
    include_path: str | os.PathLike[str] | None = None,
    key: str | None = None,
) -> Written:
    """Write ``data/`` and ``task/``.

    Args:
        base: the task that was pruned.
        kept_keys: the stable ids of the docs to keep, in any order.
        folder: the folder to write into.
        copy: write the kept docs themselves, not a filter.
        include_path: the folder of the base, where the base does not come from the host or the plugin.
        key: the field that the ids come from; None where they are digests of the docs.

    Raises:
        PatchError: see ``pruned_task.write``; or a copy would lack the docs' images.
    """
    manager = catalog.task_manager(include_path)
    evaluated = pruned_task.evaluated_docs(manager, base)
    known = keys_of(evaluated.docs, key)
    pruned_task.check_kept(base, kept_keys, known)
    wanted = set(kept_keys)
    places = [place for place, one in enumerate(known) if one in wanted]
    copies = Copies(folder / "task", pruned_task.source_of(manager, base).parent)
    config = flat(pruned_task.source_of(manager, base), copies)
    _check_form(base, evaluated, config, copy)
    original = _original(evaluated, config)
    if copy:
        return _copy(base, evaluated, places, folder, config, copies, original)
    task_file = pruned_task.write(
        base, kept_keys, folder / "task", include_path, key, revision=original.revision or None
    )
    # ids and places alone: the content stays with the original
    rows = datasets.Dataset.from_dict(
        {"key": [known[place] for place in places], "row": places},
        datasets.Features({"key": datasets.Value("string"), "row": datasets.Value("int64")}),
    )
    return Written(task_file, {evaluated.split: _parquet(rows, folder, evaluated.split)}, original)


def _original(evaluated: pruned_task.Evaluated, config: Mapping[str, Any]) -> Original:
    """Return where the docs come from, as far as dataset and config tell."""
    info = getattr(evaluated.docs, "info", None)
    path = str(config.get("dataset_path") or "")
    # a name on the hub, and neither a loader nor a local folder
    repository = (
        path if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", path) and path not in BUILDERS and not os.path.exists(path) else ""
    )
    # a task may pin the commit itself
    pinned = dataset_kwargs(config).get("revision")
    revision = str(pinned) if pinned else _commit(evaluated.docs, repository) if repository else ""
    return Original(
        repository=repository,
        config=str(config.get("dataset_name") or ""),
        split=evaluated.split,
        revision=revision,
        license=str(getattr(info, "license", None) or ""),
        citation=str(getattr(info, "citation", None) or ""),
        whole=not config.get("process_docs"),
    )


def _commit(docs: Any, repository: str) -> str:
    """Return the commit of a dataset on the hub, from the addresses of its files or the path of its cache; "" where in neither."""
    addresses = list(getattr(getattr(docs, "info", None), "download_checksums", None) or {})
    found = {
        match[1]
        for one in addresses
        if (match := re.search(rf"/{re.escape(repository)}@({_COMMIT.pattern})/", str(one)))
    }
    if not found:
        cached = [str(one.get("filename", "")) for one in getattr(docs, "cache_files", [])]
        found = {part for path in cached for part in Path(path).parts if _COMMIT.fullmatch(part)}
    # of several commits nobody knows which was loaded
    return found.pop() if len(found) == 1 else ""


def _copy(
    base: str,
    evaluated: pruned_task.Evaluated,
    places: Sequence[int],
    folder: Path,
    config: dict[str, Any],
    copies: Copies,
    original: Original,
) -> Written:
    """Write the kept docs as Parquet, and a task to read them.

    ``process_docs`` and the data files of the base are left out: the written docs are those that it gave.
    """
    splits = {evaluated.split: evaluated.docs.select(places), **evaluated.others}
    written = {split: _parquet(docs, folder, split) for split, docs in splits.items()}
    about = {"task": f"{base}_pruned", "base": base, "docs": len(evaluated.docs), "kept": len(places)}
    # as seen from the task file, which lies in ``task/``
    data_files = {split: f"../{path}" for split, path in written.items()}
    # the docs were read after ``process_docs``, which must not change them a second time
    own = {k: v for k, v in config.items() if k != "process_docs"}
    new = pruned_task.renamed(
        own, about, dataset_path="parquet", dataset_name=None, dataset_kwargs={"data_files": data_files}
    )
    task_file = folder / "task" / f"{about['task']}.yaml"
    # the docs stand in ``data/`` already
    copies.make(docs=False)
    lines = [
        f"{len(places)} of the {len(evaluated.docs)} docs of {base}, split {evaluated.split}: those that stayed after pruning.",
        f"Made by lmms-patch {__version__} from the task of lmms-eval {compat.host_version()}; it runs without lmms-patch:",
        f"  lmms-eval --include_path <this folder> --tasks {about['task']} --model ...",
        "It reads the Parquet files of ../data.",
        *([f"Code of {base} imports lmms_patch, so it must be installed after all."] if copies.needs_plugin else []),
    ]
    files.write(task_file, "".join(f"# {line}\n" for line in lines) + dump(new))
    return Written(task_file, written, original)


def _parquet(docs: Any, folder: Path, split: str) -> str:
    """Write the docs of a split with their images inside; return the path relative to the folder."""
    place = f"data/{split}.parquet"
    (folder / "data").mkdir(parents=True, exist_ok=True)
    docs.to_parquet(str(folder / place))
    return place
