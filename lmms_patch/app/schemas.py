"""The JSON schemas (draft 2020-12) of the files that people write: each is made of the type of its file."""

from __future__ import annotations

import importlib
from typing import Any

from lmms_patch.errors import UnknownNameError, nearest

_TYPES = {
    "gate-config": "gate.rules.File",
    "magic-item": "magic.formats.MagicItem",
    "magic-label": "magic.score.labels.Row",
}


def names() -> list[str]:
    """Return the names of all schemas."""
    return sorted(_TYPES)


def load(name: str) -> dict[str, Any]:
    """Return a schema.

    Raises:
        UnknownNameError: there is none of this name.
    """
    if name not in _TYPES:
        close = nearest(name, names())
        hint = f"did you mean {' or '.join(close)}?" if close else f"allowed: {', '.join(names())}"
        raise UnknownNameError(f"no schema {name!r}; {hint}; type 'lmms-patch config schemas' for the list")
    # Imported late: NumPy is slow to load, and the list of names does not need it.
    from lmms_patch.runs.typed import DRAFT, schema_of

    module, _, kind = _TYPES[name].rpartition(".")
    found = getattr(importlib.import_module(f"lmms_patch.{module}"), kind)
    if hasattr(found, "model_json_schema"):
        return {"$schema": DRAFT, **found.model_json_schema(), "title": name}
    return dict(schema_of(name, found))
