"""A model some of whose calls fail, and its scores by hand."""

from __future__ import annotations

import zlib

import numpy as np

OPTIONS = ("ant", "bee", "cat", "dog")


def gold(doc):
    return OPTIONS[doc * 7 % 4]


def answer_of(doc, view):
    """What the model says: right in 80 % of the full images and 30 % of the cells, by a hash.

    ``view`` is "full" or the cell's corner.
    """
    right = zlib.crc32(f"{doc} {view}".encode()) % 100 < (80 if view == "full" else 30)
    return gold(doc) if right else OPTIONS[(OPTIONS.index(gold(doc)) + 1) % 4]


def view_of(image):
    """Doc and view of a coded image (``toys.coded_image``): the whole one is 60 pixels wide."""
    red, green, blue = (int(x) for x in np.asarray(image.convert("RGB"))[0, 0])
    return blue, "full" if image.size == (60, 60) else f"{image.size} {red} {green}"


def cells(n):
    side = 60 // n
    return [f"{(side, side)} {60 // n * r} {60 // n * c}" for r in range(n) for c in range(n)]


def right(doc, view):
    return float(answer_of(doc, view) == gold(doc))


def by_hand(docs, n):
    """FIP and MPP of some docs from the model's own answers."""
    fip = np.mean([right(doc, "full") for doc in docs])
    return fip, np.mean([max(right(doc, cell) for cell in cells(n)) for doc in docs])
