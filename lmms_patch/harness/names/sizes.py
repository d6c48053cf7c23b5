"""How many docs a task has, where that is known without the network and without loading data."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


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
