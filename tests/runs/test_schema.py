"""The columns of the samples table, as they were frozen: a later version may add columns, and fields of a struct, and nothing else.

One that is dropped on purpose is taken out of the file by hand.
"""

import json
from pathlib import Path

import polars as pl

from lmms_patch.runs.schema import TYPES

FROZEN = Path(__file__).with_name("columns.json")
"""Name -> type; of a struct, by field."""


def told(kind):
    """Return a type in plain JSON types."""
    if isinstance(kind, pl.List):
        return [told(kind.inner)]
    return {one.name: told(one.dtype) for one in kind.fields} if isinstance(kind, pl.Struct) else str(kind)


def holds(now, then):
    """Whether a type is as it was, or has more fields."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(name in now and holds(now[name], kind) for name, kind in then.items())
    if isinstance(then, list):
        return isinstance(now, list) and holds(now[0], then[0])
    return now == then


def test_columns_are_only_added():
    now, then = {name: told(kind) for name, kind in TYPES.items()}, json.loads(FROZEN.read_text())
    assert [name for name, kind in then.items() if name not in now or not holds(now[name], kind)] == []
