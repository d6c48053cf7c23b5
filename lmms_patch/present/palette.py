"""The colours of everything that we draw, for light and for dark ground: bands of the index, models, and shares of cells. Pure.

All are told apart with protanopia and deuteranopia (``tests/present/test_palette.py`` simulates both), and none stands
alone: a band is written or lies in its place on the axis, a model has a mark of its own, a share is written in its
cell.

- Bands run from orange (local) to blue (global): orange and blue stay different to colour-blind readers, as green and
  red do not.
- Models take colours of Okabe & Ito ("Color Universal Design", 2008), darkened or lightened until each has a contrast
  of 3:1 with its ground.
- Shares of cells take ColorBrewer's PRGn, which has its own hues, so that a share is not taken for a band: green below
  an even share, purple above.
"""

from __future__ import annotations

import functools

from lmms_patch.stats.index import BANDS

LIGHT, DARK = "#ffffff", "#12161a"
"""The grounds."""
INK = "#010203"
"""Texts and axes of drawings: all but black, so that it serves as black in files; a page draws it in its own colour."""
NAMES = (*(name for _, name in BANDS), "strong global")
"""The bands, from local to global."""
BAND_LIGHT = ("#f3b878", "#fae0c2", "#eceff2", "#d2e5f6", "#97c5ec")
BAND_DARK = ("#7c4516", "#503219", "#2b333b", "#183d5e", "#1c5c93")
TEXT_LIGHT, TEXT_DARK = "#1a1f24", "#f4f7fa"
"""What is written on a band."""
SERIES_LIGHT = ("#0072b2", "#d55e00", "#009e73", "#a3246e", "#4a2c00", "#231f5c")
SERIES_DARK = ("#56b4e9", "#e98a15", "#0a9a70", "#ffc9e6", "#f5ee7a", "#7b6bf5")
"""Of up to six models, grids or kinds."""
SHARES = ("#1b7837", "#5aae61", "#a6dba0", "#d9f0d3", "#f7f7f7", "#e7d4e8", "#c2a5cf", "#9970ab", "#762a83")
"""Of a share from nothing over even (the fifth) to twice as much as even or more; the same on both grounds."""
NEEDS = {
    "text": ("#d2bfe9", "#5b3f85"),
    "one cell": (BAND_LIGHT[0], BAND_DARK[0]),
    "whole image": (BAND_LIGHT[-1], BAND_DARK[-1]),
    "unsolved": ("#d5dade", "#414b54"),
}
"""Of the classes of the necessity map."""
PAGE = {
    "bg": (LIGHT, DARK),
    "panel": ("#f5f6f8", "#1b2127"),
    "line": ("#d9dee4", "#343d46"),
    "strong-line": ("#8a949e", "#77828d"),
    "text": ("#1a1f24", "#e8ecf0"),
    "muted": ("#545e69", "#a9b4bf"),
    "accent": ("#0a57a4", "#86c2ff"),
    "focus": ("#0a57a4", "#86c2ff"),
    "right": ("#00704c", "#4ed3a4"),
    "wrong": ("#b03a00", "#ff9c6b"),
    "unscored": ("#5b656f", "#a9b4bf"),
    "warn-bg": ("#fff5db", "#2e2612"),
    "warn-line": ("#c98a00", "#b98a1d"),
    "on-need": (TEXT_LIGHT, TEXT_DARK),
}
"""Colours of pages alone: grounds, lines and texts. Texts have a contrast of 4.5:1 with their ground."""


def share_level(share: float, cells: int) -> int:
    """Return the colour, from 0 to 8, for a share among so many cells: 4 is an even share, 8 twice an even share.

    >>> share_level(1 / 9, 9), share_level(0.0, 9), share_level(0.9, 9)
    (4, 0, 8)
    """
    return max(0, min(8, round(4 * share * cells)))


def on(colour: str) -> str:
    """Return black or white, whichever is read better on a colour.

    >>> on("#f7f7f7"), on("#762a83")
    ('#000000', '#ffffff')
    """
    return "#000000" if luminance(colour) > 0.179 else "#ffffff"


def luminance(colour: str) -> float:
    """Return the relative luminance (WCAG 2) of a colour such as ``#0072b2``: 0 is black, 1 is white."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@functools.cache
def variables() -> dict[str, tuple[str, str]]:
    """Return the colours of drawings by their names in style sheets: each on light and on dark ground."""
    bands = {
        name.replace(" ", "-"): pair for name, pair in zip(NAMES, zip(BAND_LIGHT, BAND_DARK, strict=True), strict=True)
    }
    series = {f"series-{k + 1}": pair for k, pair in enumerate(zip(SERIES_LIGHT, SERIES_DARK, strict=True))}
    shares = {f"share-{k}": (colour, colour) for k, colour in enumerate(SHARES)}
    on_shares = {f"on-share-{k}": (on(colour), on(colour)) for k, colour in enumerate(SHARES)}
    needs = {f"need-{need.replace(' ', '-')}": pair for need, pair in NEEDS.items()}
    return {**bands, **needs, "on-band": (TEXT_LIGHT, TEXT_DARK), **series, **shares, **on_shares}


def css() -> str:
    """Return a style sheet with every colour as a custom property: light, dark on demand, and light on paper."""

    def rule(selector: str, ground: int) -> str:
        named = " ".join(f"--{name}: {pair[ground]};" for name, pair in {**PAGE, **variables()}.items())
        return f"{selector} {{ color-scheme: {('light', 'dark')[ground]}; {named} }}"

    chosen, asked = rule(':root[data-theme="dark"]', 1), rule(':root:not([data-theme="light"])', 1)
    return f"{rule(':root', 0)}\n@media screen {{ {chosen} }}\n@media screen and (prefers-color-scheme: dark) {{ {asked} }}\n"


def in_page(colour: str) -> str:
    """Return what stands in a page in place of a colour for light ground, so as to follow the page's ground: a CSS variable.

    >>> in_page("#0072b2"), in_page("#123456")
    ('var(--series-1, #0072b2)', '#123456')
    """
    if colour == INK:
        return "currentColor"
    names = {pair[0]: name for name, pair in variables().items() if pair[0] != pair[1] and name != "on-band"}
    return f"var(--{names[colour]}, {colour})" if colour in names else colour
