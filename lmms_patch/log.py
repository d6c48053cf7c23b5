"""Our log lines. They go where those of the harness go; the texts in them come from task files, docs and models."""

from __future__ import annotations

from typing import Any

from loguru import logger as _shared

from lmms_patch.text import said


def _harmless(record: Any) -> None:
    record["message"] = said(record["message"])


logger = _shared.patch(_harmless)
