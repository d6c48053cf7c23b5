"""What every page has alike: the style rules, with all colours (each page adds a sheet of its own), and how an image is made ready for it."""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources
from typing import Any

from lmms_patch.present import palette


@functools.cache
def css() -> str:
    """Return the shared style sheet: the colours (``palette.css``), and the rules of ``look.css``."""
    return palette.css() + resources.files("lmms_patch.present").joinpath("look.css").read_text(
        encoding="utf-8"
    ).replace("\r\n", "\n")


def hashed(text: str) -> str:
    """Return the hash of a style sheet or script in the form of a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def on_white(image: Any, longest: int) -> Any:
    """Return a PIL image for a page, in RGB: its transparent parts white, and neither side longer than ``longest`` pixels."""
    from PIL import Image

    small = image.convert("RGBA")
    small.thumbnail((longest, longest))
    ground = Image.new("RGBA", small.size, "white")
    ground.alpha_composite(small)
    return ground.convert("RGB")
