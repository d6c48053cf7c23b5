"""The JSON schemas (draft 2020-12) of the files that lmms-patch reads and writes: one ``<name>.json`` each, in this folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmms_patch.errors import UnknownNameError, nearest

FOLDER = Path(__file__).resolve().parent


def names() -> list[str]:
    """The names of all schemas."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> dict[str, Any]:
    """One schema.

    Raises:
        UnknownNameError: there is none of this name.
    """
    if name not in names():
        close = nearest(name, names())
        hint = f"did you mean {' or '.join(close)}?" if close else f"allowed: {', '.join(names())}"
        raise UnknownNameError(f"no schema {name!r}; {hint}; type 'lmms-patch schema' for the list")
    return dict(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
