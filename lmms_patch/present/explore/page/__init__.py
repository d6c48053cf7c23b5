"""The files of the explorer's page, by their names."""

from __future__ import annotations

import functools
from importlib import resources

from lmms_patch.present import look

FILES = {
    "index.html": "text/html; charset=utf-8",
    "explore.css": "text/css; charset=utf-8",
    "explore.js": "text/javascript; charset=utf-8",
}
"""Their media types."""


@functools.cache
def file(name: str) -> str:
    """Return the text of a file of the page; that of the style sheet with what all pages share (``present.look``)."""
    if name not in FILES:
        raise KeyError(name)
    text = resources.files(__name__).joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")
    return look.css() + text if name.endswith(".css") else text
