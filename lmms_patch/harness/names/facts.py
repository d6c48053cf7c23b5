"""What the *config* of a task says before any data, module or model is loaded: what it shows, who judges it, how many docs it has.

A ``!function`` in a config stays a YAML node, and nothing is imported. What a ``doc_to_visual`` hands to a model is in shipped
tables: ``scripts/host/shown.py`` makes ``configs/host-VERSION.csv`` of the code of a version's tasks. A row holds for every file
with the same bytes, whatever the version and the folder; files that it imports are not compared. Of all other code
nothing is known before the first docs.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lmms_patch import resources
from lmms_patch.harness import task_files
from lmms_patch.harness.names.effects import file_of, judge_in, magic_judge


@dataclass(frozen=True)
class Media:
    """What a function may show, over all docs.

    Attributes:
        media: any of ``clip``, ``image``, ``sound``, ``stretch`` (a video with a time span), ``frames`` (arrays or a
            video reader), ``nothing``, ``missing`` (there is no such function), ``unknown``, and ``unread`` beside
            ``unknown`` where no table knows the code.
        certain: whether the code leaves no doubt, as where PIL makes every image.
    """

    media: frozenset[str]
    certain: bool = False


UNKNOWN = Media(frozenset({"unknown"}))
UNREAD = Media(frozenset({"unknown", "unread"}))


def shown_by(path: str, name: str) -> Media:
    """Return what a function of a file may show.

    Args:
        path: the module's file.
        name: a function that takes a doc and returns the list of what is shown.
    """
    return _table().get((digest(path), name), UNREAD)


def digest(path: str) -> str:
    """Return the digest by which the tables know a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


@functools.cache
def _table() -> dict[tuple[str, str], Media]:
    """Return what functions show, by the digest of the file and the name of the function."""
    rows = (
        row
        for file in resources.folder("configs").glob("host-*.csv")
        for row in csv.reader(file.read_text(encoding="utf-8").splitlines())
    )
    return {
        (file, name): Media(frozenset(media.split()), certain == "certain") for _, name, file, media, certain in rows
    }


@dataclass(frozen=True)
class Facts:
    """What the config of a task shows.

    Attributes:
        name: the task's name.
        output_type: the host's type of its requests, such as ``generate_until``.
        shows: whether the config names a function that shows docs to a model.
        judge: the client library (of a judge or the network) that its scorer can reach, if any.
        shown: what the code of ``doc_to_visual`` hands to a model, where a table knows it.
        python: whether the task is a Python class, whose config is known only when it is loaded.
        docs: the number of docs, where it is known without the network and without loading data.
        metadata: the task's metadata, which may carry an inline profile.
        problem: why the config cannot be read, if it cannot.
    """

    name: str
    output_type: str = "generate_until"
    shows: bool = False
    judge: str | None = None
    shown: Media = UNREAD
    python: bool = False
    docs: int | None = None
    metadata: Any = None
    problem: str | None = None


def facts_of(name: str, config: Mapping[str, Any]) -> Facts:
    """Return what a task's config shows; the config is read in simple mode."""
    if "class" in config:
        return Facts(name, python=True)
    visual = config.get("doc_to_visual")
    # a text names a field of the doc that is shown as it is
    shown = UNKNOWN if isinstance(visual, str) else shown_by(*place) if (place := _place(visual)) else UNREAD
    if config.get("doc_to_messages") is not None:
        # a chat model is shown these
        shown = UNREAD if "nothing" in shown.media else dataclasses.replace(shown, certain=False)
    judge = next(
        (client for node in _scorers(config) if (where := _place(node)) and (client := judge_in(*where))), None
    )
    return Facts(
        name,
        output_type=config.get("output_type") or "generate_until",
        shows=visual is not None or config.get("doc_to_messages") is not None,
        judge=judge or magic_judge(config.get("metadata")),
        shown=shown,
        docs=docs_of(config),
        metadata=config.get("metadata"),
    )


def _scorers(config: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a config's scoring functions: ``process_results`` and the aggregations."""
    yield config.get("process_results")
    metrics = config.get("metric_list")
    for metric in metrics if isinstance(metrics, list) else ():
        if isinstance(metric, Mapping):
            yield metric.get("aggregation")


def _place(node: Any) -> tuple[str, str] | None:
    """Return the file and the name of the function behind an unread ``!function`` node; None where no file is found."""
    if not isinstance(node, yaml.ScalarNode):
        return None
    module, _, function = node.value.rpartition(".")
    origin = Path(node.start_mark.name).parent
    # a task file names a module beside itself, or an installed module of the host
    beside = origin / f"{module}.py"
    file = str(beside) if beside.is_file() else file_of(module)
    return (file, function) if file else None


def read(manager: Any, name: str) -> dict[str, Any]:
    """Return the config of an indexed name, in simple mode; empty where the name has no file."""
    path = manager.task_index[name]["yaml_path"]
    # -1 stands for a name without a file, such as a tag
    return {} if path == -1 else task_files.read(path)


def leaves(manager: Any, name: str, _seen: frozenset[str] = frozenset()) -> Iterator[Facts]:
    """Yield the facts of every task under a task, group or tag. Where a config cannot be read, its facts say so."""
    # groups may hold each other; without this check the walk would not end
    if name in _seen:
        return
    entry = manager.task_index[name]
    try:
        config = read(manager, name)
    except Exception as error:
        # a broken file must not hide the tasks beside it
        yield Facts(name, problem=f"{type(error).__name__}: {error}".splitlines()[0])
        return
    members = entry.get("task", -1) if entry["type"] == "tag" or entry.get("task", -1) != -1 else config.get("task")
    if entry["type"] in ("task", "python_task"):
        yield facts_of(name, config)
        return
    for member in members or []:
        yield from _member(manager, member, _seen | {name})


def _member(manager: Any, member: Any, seen: frozenset[str]) -> Iterator[Facts]:
    """Yield the facts of a member of a group: a name, a list of names, or an inline config."""
    if isinstance(member, str):
        if member in manager.task_index:
            yield from leaves(manager, member, seen)
    elif not isinstance(member, Mapping):
        yield Facts(str(member), problem="it stands among the tasks of a group, and is neither a name nor a config")
    elif isinstance(named := member.get("task"), list):
        for inner in named:
            yield from _member(manager, inner, seen)
    elif str(named) in manager.task_index:
        yield from leaves(manager, str(named), seen)
    else:
        yield facts_of(str(named), member)


# --- how many docs --------------------------------------------------------------------------------


def dataset_kwargs(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a task's config hands on to the loader of its data; empty where the config hands on nothing."""
    found = config.get("dataset_kwargs")
    return found if isinstance(found, Mapping) else {}


def docs_of(config: Mapping[str, Any]) -> int | None:
    """Count the docs of a config's eval split, from its local files or the dataset cache.

    Args:
        config: a task config, with ``data_files`` made absolute as the host's loader does.

    Returns:
        The number of docs; None where it is not known, as of a dataset that was never downloaded. A filter in
        ``process_docs`` may leave fewer.
    """
    split = config.get("test_split") or config.get("validation_split")
    path = config.get("dataset_path")
    if not isinstance(split, str) or not isinstance(path, str):
        return None
    given = dataset_kwargs(config)
    if os.path.isdir(path) or given.keys() & {"data_files", "data_dir"}:
        return _rows_here(path, config.get("dataset_name"), split, given)
    return _rows_in_cache(path, config.get("dataset_name"), split)


def _rows_here(path: str, name: str | None, split: str, given: Mapping[str, Any]) -> int | None:
    """Count the rows of local files, in any form that the datasets library reads; None where it cannot read them."""
    import datasets
    import pyarrow.parquet as pq

    try:
        if given.get("load_from_disk"):
            return len(datasets.load_from_disk(path)[split])
        builder = datasets.load_dataset_builder(path, name, **given)
        files = builder.config.data_files[split]
        # the number stands in a file of this form, which may hold gigabytes of images
        if all(file.endswith(".parquet") for file in files):
            return sum(pq.ParquetFile(file).metadata.num_rows for file in files)
        return sum(map(len, builder.as_streaming_dataset(split).with_format("arrow").iter(10_000)))
    # the library raises errors of many kinds, also its own, and the run will tell them
    except Exception:
        return None


def _rows_in_cache(path: str, name: str | None, split: str) -> int | None:
    """Read the number of rows from the ``dataset_info.json`` beside a prepared dataset of the datasets library."""
    home = os.environ.get("HF_HOME", "~/.cache/huggingface")
    root = Path(os.environ.get("HF_DATASETS_CACHE") or Path(home, "datasets")).expanduser()
    # as the datasets library names its folders
    for info in sorted((root / path.replace("/", "___").lower()).glob(f"{name or '*'}/*/*/dataset_info.json")):
        with contextlib.suppress(OSError, ValueError, AttributeError, KeyError, TypeError):
            return int(json.loads(info.read_text(encoding="utf-8"))["splits"][split]["num_examples"])
    return None
