"""A filter that keeps only some docs of a benchmark, identified by stable ids.

Uses only the standard library, nothing of lmms-patch.

lmms-patch copies this file into the task folder of a pruned benchmark (``lmms_patch.harness.tst.pruned_task``), so that
the benchmark runs in lmms-eval without lmms-patch. Beside it lie ``kept_ids.txt`` (one id a line) and
``pruned_task.json`` (what the folder was made from). ``lmms_patch.tst.keys`` uses the same ids.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
KEPT, ABOUT = "kept_ids.txt", "pruned_task.json"
SCHEMA = 1
DIGITS = 16
"""Hex digits of an id: the probability that any two of a million docs share an id is 3 in 10^8."""


class KeysError(ValueError):
    """Docs without distinct ids, as a short error."""


class PrunedTaskError(SystemExit):
    """A task folder in conflict with the dataset or with files in the folder, as a short error.

    Why ``SystemExit``: lmms-eval retries the loading of data five times and then hides an ordinary exception.
    """


# --- stable ids -----------------------------------------------------------------------------------


def keys_of(rows: Any, field: str | None = None) -> list[str]:
    """Return the stable ids of docs: they stay the same when docs are added or reordered.

    Args:
        rows: a ``datasets.Dataset`` (its media are not decoded) or a list of dicts.
        field: a field with a different value for every doc (``meta.id``: a field of a field). Default: the first 16 hex
            digits of the SHA-256 of the doc without its images, audio, video and bytes (canonical JSON: sorted keys,
            ASCII, no blanks, NaN as null). A later doc of the same content gets ``#2``, ``#3`` ..., in dataset order:
            only those may change places when docs are added.

    Returns:
        One text for each doc, without repeats.

    Raises:
        KeysError: the field is missing, empty or not unique; or the docs hold nothing but media.
    """
    return _hashes(rows) if field is None else _values(rows, field)


def _hashes(rows: Any) -> list[str]:
    names = _text_columns(rows)
    if not names and len(rows):
        raise KeysError(
            "the docs hold nothing but media, so no id can be made of their content; name a field with 'key'"
        )
    seen: dict[str, int] = {}
    out = []
    for row in _rows(rows, names):
        digest = hashlib.sha256(canonical(row).encode("ascii")).hexdigest()[:DIGITS]
        seen[digest] = seen.get(digest, 0) + 1
        # equal docs are told apart by how many came before
        out.append(digest if seen[digest] == 1 else f"{digest}#{seen[digest]}")
    return out


def _values(rows: Any, field: str) -> list[str]:
    known = _columns(rows)
    top = field if field in known else field.split(".")[0]
    if top not in known:
        raise KeysError(f"key names the field {field!r}, which the docs lack; their fields: {', '.join(known)}")
    out = [_text(_within(row, field), field, place) for place, row in enumerate(_rows(rows, [top]))]
    first: dict[str, int] = {}
    for place, key in enumerate(out):
        if key in first:
            raise KeysError(
                f"key: docs {first[key]} and {place} share the value {key!r} of {field!r}; name a field with a value of its own "
                "for every doc, or leave key out (then ids are made of the content)"
            )
        first[key] = place
    return out


def _text(value: Any, field: str, place: int) -> str:
    text = (
        value
        if isinstance(value, str)
        else str(value)
        if isinstance(value, int)
        else ""
        if value is None
        else canonical(value)
    )
    if not text:
        raise KeysError(f"key: doc {place} has no {field!r}; name a field that every doc has, or leave key out")
    if "\n" in text or "\r" in text:
        raise KeysError(
            f"key: {field!r} of doc {place} is more than one line; name a field of short values, or leave key out"
        )
    return text


def _within(row: Mapping[str, Any], field: str) -> Any:
    """Return a doc's field, or a field of a field; None where there is none."""
    if field in row:
        return row[field]
    value: Any = row
    for part in field.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def canonical(value: Any) -> str:
    """Return the canonical JSON of plain values: equal values give equal texts, in every process and on every machine."""
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        # tables write a missing value as nan, which is no JSON
        return None if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (date, datetime, time, timedelta, Decimal)):
        return str(value)
    # NumPy
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    raise KeysError(f"a doc holds a {type(value).__name__}, of which no id can be made; name a field with 'key'")


def _columns(rows: Any) -> list[str]:
    """Return the names of the docs' fields."""
    return (
        list(rows.column_names)
        if hasattr(rows, "column_names")
        else list(dict.fromkeys(name for row in rows for name in row))
    )


def _text_columns(rows: Any) -> list[str]:
    """Return the fields without media in any doc: by feature type where known, else by the values."""
    features = getattr(rows, "features", None)
    if features:
        return [name for name, feature in features.items() if not is_media_feature(feature)]
    media = {name for row in rows for name, value in row.items() if _is_media(value)}
    return [name for name in _columns(rows) if name not in media]


def is_media_feature(feature: Any) -> bool:
    """Return whether a feature of a ``datasets.Dataset`` is or contains image, audio, video, file, or bytes."""
    if isinstance(feature, Mapping):
        return any(map(is_media_feature, feature.values()))
    if isinstance(feature, (list, tuple)):
        return any(map(is_media_feature, feature))
    # features of images, audio, video and documents
    if hasattr(feature, "decode"):
        return True
    # features of lists
    inner = getattr(feature, "feature", None)
    return is_media_feature(inner) if inner is not None else "binary" in str(getattr(feature, "dtype", ""))


def _is_media(value: Any) -> bool:
    """Return whether a value is, or contains, bytes or an object of a library for images, audio or video."""
    if isinstance(value, Mapping):
        return any(map(_is_media, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_is_media, value))
    module = type(value).__module__.split(".")[0]
    return isinstance(value, (bytes, bytearray, memoryview)) or module in (
        "PIL",
        "torch",
        "torchvision",
        "torchcodec",
        "decord",
        "av",
    )


def _rows(rows: Any, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the docs with these fields only; of a ``datasets.Dataset`` nothing else is read."""
    if not hasattr(rows, "select_columns"):
        yield from ({name: row[name] for name in names if name in row} for row in rows)
        return
    # without a format such as "torch", which would give values of other types
    for batch in rows.select_columns(list(names)).with_format(None).iter(1000):
        for values in zip(*batch.values()):  # noqa: B905 - columns of one batch are as long as each other
            yield dict(zip(batch, values))  # noqa: B905


# --- the folder -----------------------------------------------------------------------------------


def digest(keys: Iterable[str]) -> str:
    """Return the SHA-256 of the sorted ids, each on a line."""
    return hashlib.sha256("".join(f"{key}\n" for key in sorted(keys)).encode()).hexdigest()


def process_docs(rows: Any) -> Any:
    """Apply the base task's ``process_docs``, then keep the kept docs of the evaluated split.

    Raises:
        PrunedTaskError: the dataset or the folder has changed since the benchmark was pruned.
    """
    about = _about()
    own = about["process_docs"]
    docs = _function(own)(rows) if own else rows
    return keep(docs, about, _kept(about)) if _is_evaluated(rows, about) else docs


def keep(docs: Any, about: Mapping[str, Any], kept: Sequence[str]) -> Any:
    """Return the kept docs, in dataset order.

    Args:
        docs: all docs of the evaluated split, as the base task has them.
        about: ``pruned_task.json``.
        kept: the ids to keep.

    Raises:
        PrunedTaskError: the number of docs has changed, or a kept doc is not found.
    """
    if len(docs) != about["docs"]:
        raise _changed(about, f"it has {len(docs)} docs, and had {about['docs']}")
    try:
        keys = keys_of(docs, about["key"])
    except KeysError as error:
        raise _changed(about, str(error)) from None
    missing = sorted(set(kept) - set(keys))
    if missing:
        raise _changed(about, f"{len(missing)} of the {len(kept)} kept docs are not in it (the first: {missing[0]!r})")
    wanted = set(kept)
    places = [place for place, key in enumerate(keys) if key in wanted]
    return docs.select(places) if hasattr(docs, "select") else [docs[place] for place in places]


def _changed(about: Mapping[str, Any], what: str) -> PrunedTaskError:
    return PrunedTaskError(
        f"{about['task']}: the dataset is not the one that was pruned: split {about['split']!r} of {about['base']}: {what}; "
        f"get the dataset (and lmms-eval {about['lmms_eval']}) as it was, or prune {about['base']} again"
    )


def _is_evaluated(rows: Any, about: Mapping[str, Any]) -> bool:
    """Return whether docs are those of the evaluated split.

    lmms-eval does not say which split it hands over. But it calls only for the splits that the task names, and a
    dataset knows its own name.
    """
    name = str(getattr(rows, "split", None))
    if name == about["split"] or not about["other_splits"]:
        return True
    if name in about["other_splits"]:
        return False
    known = ", ".join([about["split"], *about["other_splits"]])
    raise PrunedTaskError(
        f"{about['task']}: the dataset has changed: a split calls itself {name}, and not one of {known}; prune {about['base']} again"
    )


def _about() -> dict[str, Any]:
    path = os.path.join(FOLDER, ABOUT)
    try:
        with open(path, encoding="utf-8") as file:
            about: dict[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        raise PrunedTaskError(f"{path} cannot be read ({error}); take the whole folder from where it came") from None
    if about.get("schema") != SCHEMA:
        raise PrunedTaskError(
            f"{path} has schema {about.get('schema')}, and this folder's filter reads {SCHEMA}; take the whole folder from where it came"
        )
    return about


def _kept(about: Mapping[str, Any]) -> list[str]:
    path = os.path.join(FOLDER, KEPT)
    try:
        with open(path, encoding="utf-8") as file:
            # not splitlines(): an id may hold a line separator of Unicode
            kept = [line for line in file.read().split("\n") if line]
    except (OSError, ValueError) as error:
        raise PrunedTaskError(f"{path} cannot be read ({error}); take the whole folder from where it came") from None
    if len(kept) != about["kept"] or digest(kept) != about["sha256"]:
        raise PrunedTaskError(
            f"{path} is not the list that was written ({len(kept)} ids, then {about['kept']}; or others); take the whole folder from where it came"
        )
    return kept


def _function(reference: str) -> Callable[[Any], Any]:
    """Return a function by the text of a ``!function``, found as in lmms-eval: in this folder, else in a module."""
    module, _, name = reference.rpartition(".")
    path = os.path.join(FOLDER, f"{module}.py")
    if not os.path.exists(path):
        return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]
    spec = importlib.util.spec_from_file_location(module, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return getattr(loaded, name)  # type: ignore[no-any-return]
