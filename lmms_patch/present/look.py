"""The style rules that every page has alike, with all colours; each page adds a sheet of its own."""

from __future__ import annotations

import functools
from importlib import resources

from lmms_patch.present import palette


@functools.cache
def css() -> str:
    """Return the shared style sheet: the colours (``palette.css``), and the rules of ``look.css``."""
    return palette.css() + resources.files("lmms_patch.present").joinpath("look.css").read_text(encoding="utf-8").replace("\r\n", "\n")
