"""How many docs a task has, where that is known without the network and without loading data."""

from __future__ import annotations

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
    files = dataset_kwargs(config).get("data_files")
    if files is not None:
        return _rows_in_files(files.get(split) if isinstance(files, Mapping) else files, path)
    return _rows_in_cache(path, config.get("dataset_name"), split)


def _rows_in_files(files: Any, builder: str) -> int | None:
    """Count the rows of local files; None where a file is missing, or of a kind we cannot count."""
    total = 0
    for file in files if isinstance(files, list) else [files]:
        if not isinstance(file, str) or not os.path.isfile(file):
            return None
        rows = _rows_in_file(file, builder)
        if rows is None:
            return None
        total += rows
    return total or None


def _rows_in_file(file: str, builder: str) -> int | None:
    if builder == "parquet":
        import pyarrow.parquet as pq

        return int(pq.ParquetFile(file).metadata.num_rows)
    # lines of JSON only: any other JSON file would have to be parsed
    if builder == "json" and file.endswith("l"):
        with open(file, "rb") as lines:
            return sum(1 for line in lines if line.strip())
    return None


def _rows_in_cache(path: str, name: str | None, split: str) -> int | None:
    """Read the number of rows from the ``dataset_info.json`` beside a prepared dataset of the datasets library."""
    root = os.environ.get("HF_DATASETS_CACHE") or os.path.join(
        os.environ.get("HF_HOME", "~/.cache/huggingface"), "datasets"
    )
    # as the datasets library names its folders
    folder = Path(root).expanduser() / path.replace("/", "___").lower()
    for info in sorted(folder.glob(f"{name or '*'}/*/*/dataset_info.json")):
        try:
            splits = json.loads(info.read_text(encoding="utf-8")).get("splits") or {}
        except (OSError, ValueError):
            continue
        if split in splits:
            return int(splits[split]["num_examples"])
    return None
