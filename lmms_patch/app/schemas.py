"""The JSON schemas (draft 2020-12) of the files that lmms-patch reads and writes: each is made of the type of its file."""

from __future__ import annotations

import importlib
from typing import Any

from lmms_patch.errors import UnknownNameError, nearest

_TYPES = {
    "analysis": "rci.formats.AnalyzeJson",
    "compare": "compare.formats.Comparison",
    "details": "runs.details.Details",
    "gate": "gate.formats.GateJson",
    "gate-config": "gate.rules.File",
    "magic-build": "magic.formats.MagicBuild",
    "magic-check": "magic.formats.MagicCheck",
    "magic-details": "runs.details.MagicDetails",
    "magic-item": "magic.formats.MagicItem",
    "magic-label": "magic.score.labels.Row",
    "magic-show": "present.formats.MagicShow",
    "magic-stepsense": "magic.formats.MagicStepsense",
    "objects": "runs.details.Objects",
    "patch": "runs.record.Record",
    "pruned": "tst.formats.PrunedJson",
    "report": "present.formats.Report",
    "task-config": "runs.details.TaskConfig",
}
_MODELS = ("gate-config",)
"""Types that are pydantic models; the function ``json_schema`` of their module gives the schema."""
_OF_PEOPLE = ("magic-item", "magic-label")
"""Files that people write, and that may lack what has a default."""


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
    found = importlib.import_module(f"lmms_patch.{module}")
    if name in _MODELS:
        return {"$schema": DRAFT, **found.json_schema(), "title": name}
    return schema_of(name, getattr(found, kind), ours=name not in _OF_PEOPLE)
