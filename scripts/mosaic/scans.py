"""Real handwritten digits for the mosaics: scikit-learn's 1,797 scans, cut into a training and a test part.

A *sprite* is one scan drawn into a 28x28 px tile as ink coverage: uint8, 0 = paper, 255 = full ink.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw
from sklearn.datasets import load_digits

TILE = 28  # px; one tile is one vision token of the model
N_TEST = 497  # scans that only the test data may show; the other 1,300 train the model
INK_STEP = 17  # coverage is rounded to 16 levels, so that sheets compress well


class Print(NamedTuple):
    """How digits are drawn: the range of sizes in px (inclusive), and the random distortions."""

    smallest: int
    largest: int
    distort: bool = False  # rotation up to 12 degrees and varying stroke strength


class Scans(NamedTuple):
    """images: (1797, 8, 8) floats from 0 to 16; labels: (1797,) digits; train and test: disjoint index arrays."""

    images: np.ndarray
    labels: np.ndarray
    train: np.ndarray
    test: np.ndarray


@lru_cache(maxsize=1)
def load_scans() -> Scans:
    """Return the scans and their fixed split."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    return Scans(digits.images, digits.target, train=order[N_TEST:], test=order[:N_TEST])


class SpriteBank:
    """Ready-made sprites of one part of the split.

    tiles: (N, 28, 28) uint8 coverage. of_digit[d]: indices of the sprites that show digit d.
    scan_of: (N,) which scan each sprite was drawn from.
    """

    def __init__(self, scan_indices: np.ndarray, style: Print, per_scan: int, rng: int | np.random.Generator):
        rng = np.random.default_rng(rng)
        scans = load_scans()
        self.scan_of = np.repeat(scan_indices, per_scan)
        self.tiles = np.stack([draw_sprite(scans.images[i], style, rng) for i in self.scan_of])
        labels = scans.labels[self.scan_of]
        self.of_digit = [np.flatnonzero(labels == digit) for digit in range(10)]

    def draw(self, digit: int, rng: np.random.Generator) -> np.ndarray:
        """Return a random sprite of `digit`, (28, 28)."""
        return self.tiles[rng.choice(self.of_digit[digit])]


def draw_sprite(scan: np.ndarray, style: Print, rng: np.random.Generator) -> np.ndarray:
    """One scan (8, 8) at a random size and place inside a tile."""
    size = int(rng.integers(style.smallest, style.largest + 1))
    left, top = rng.integers(0, TILE - size + 1, 2).tolist()
    ink = Image.fromarray((scan * (255 / 16)).clip(0, 255).astype(np.uint8)).resize((size, size), Image.BICUBIC)
    strength = 1.0
    if style.distort:
        ink = ink.rotate(float(rng.uniform(-12, 12)), Image.BICUBIC)
        strength = float(rng.uniform(0.7, 1.3))
    tile = Image.new("L", (TILE, TILE), 0)
    tile.paste(ink, (left, top))
    return round_ink(255 * (np.asarray(tile) / 255) ** strength)


def draw_mark(rng: np.random.Generator) -> np.ndarray:
    """Return a stray pen mark that is no digit: a line, a dot or a rule, (28, 28) coverage."""
    tile = Image.new("L", (TILE, TILE), 0)
    pen = ImageDraw.Draw(tile)
    kind = rng.integers(0, 3)
    if kind == 0:
        (x0, y0), (x1, y1) = rng.integers(1, TILE - 1, (2, 2)).tolist()
        pen.line([x0, y0, x1, y1], fill=200, width=1)
    elif kind == 1:
        x, y, radius = *rng.integers(6, 22, 2).tolist(), int(rng.integers(1, 4))
        pen.ellipse([x - radius, y - radius, x + radius, y + radius], fill=180)
    else:
        y = int(rng.integers(4, 24))
        pen.line([0, y, TILE - 1, y], fill=120, width=2)
    return round_ink(np.asarray(tile))


def round_ink(coverage: np.ndarray) -> np.ndarray:
    """Coverage rounded to 16 levels."""
    return (np.round(coverage / INK_STEP) * INK_STEP).clip(0, 255).astype(np.uint8)
