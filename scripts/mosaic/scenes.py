"""Scenes: which digits lie where on a 6x6 sheet, and the sheet as pixels.

The 6x6 cells are numbered row by row from 0. Both grids of the index cut along their borders: a cell of the
2x2 grid holds 3x3 of them, a cell of the 3x3 grid 2x2.

A sheet comes in two prints:

- *normal* (scale 1): 168x168 px, a cell is one tile of 28 px;
- *fine* (scale 2): 336x336 px, a cell is 2x2 tiles, and a small digit lies in one of the four. The model's
  processor shrinks this sheet to 168x168 px, but takes a cut-out cell of the grid as it is.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image
from scans import TILE, SpriteBank, draw_mark

GRID = 6
CELLS = GRID * GRID
FULL_PX = GRID * TILE  # the model never sees a wider sheet than this
INKS = {"grey": (105, 105, 110), "red": (205, 35, 35), "green": (20, 140, 45), "blue": (35, 60, 205)}
INK_NAMES = list(INKS)
GREY = 0
MARK_INK = (150, 150, 150)
NO_DIGIT, MARK, NO_INK = 10, 11, 4  # labels of tiles without a digit


@dataclass(frozen=True)
class Digit:
    """A digit on the sheet: its value 0..9, its ink (index into INK_NAMES), and its tile 0..3 in a fine cell."""

    value: int
    ink: int = GREY
    tile: int = 0


@dataclass
class Scene:
    """digits: cell -> Digit; marks: cells with a stray pen mark; scale: 1 normal, 2 fine print.

    A scene on plain paper (`plain`) is one uniform grey, as a blank view is.
    """

    digits: dict[int, Digit]
    marks: list[int] = field(default_factory=list)
    scale: int = 1
    plain: bool = False


def block_of(cell: int, n: int) -> int:
    """Return the cell of the n x n grid, 0..n*n-1, that holds this cell of the sheet."""
    side = GRID // n
    return cell // GRID // side * n + cell % GRID // side


def spread(cells: Sequence[int]) -> bool:
    """No single cell of either grid holds all of them."""
    return all(len({block_of(c, n) for c in cells}) > 1 for n in (2, 3))


def apart(cells: Sequence[int]) -> bool:
    """No cell of either grid holds two of them (so at most four cells)."""
    return all(len({block_of(c, n) for c in cells}) == len(cells) for n in (2, 3))


def place(count: int, rng: np.random.Generator, allowed: Callable[[Sequence[int]], bool] | None = None) -> list[int]:
    """`count` different cells, drawn until `allowed` accepts them."""
    while True:
        cells = rng.choice(CELLS, count, replace=False).tolist()
        if allowed is None or allowed(cells):
            return cells


def add_marks(scene: Scene, rng: np.random.Generator) -> Scene:
    """Return the scene with up to five stray marks on its free cells."""
    free = [cell for cell in range(CELLS) if cell not in scene.digits]
    scene.marks = rng.choice(free, int(rng.integers(0, 6)), replace=False).tolist()
    return scene


def many(cells: Sequence[int], n_coloured: int, rng: np.random.Generator, scale: int = 1) -> Scene:
    """Random digits; the first `n_coloured` each in an ink of their own, the rest grey."""
    inks = rng.permutation([1, 2, 3])[:n_coloured].tolist() + [GREY] * len(cells)
    digits = {
        cell: Digit(int(rng.integers(0, 10)), ink, int(rng.integers(0, scale * scale)))
        for cell, ink in zip(cells, inks, strict=False)
    }
    return add_marks(Scene(digits, scale=scale), rng)


def pair(cells: Sequence[int], rng: np.random.Generator) -> Scene:
    """Two grey digits, equal at times."""
    return add_marks(Scene({cell: Digit(int(rng.integers(0, 10))) for cell in cells}), rng)


def alike(cells: Sequence[int], rng: np.random.Generator) -> Scene:
    """Grey digits that are all the same, or (every other time) all but the first."""
    common, odd = rng.choice(10, 2, replace=False).tolist()
    values = [odd if rng.random() < 0.5 else common] + [common] * (len(cells) - 1)
    return add_marks(Scene({cell: Digit(value) for cell, value in zip(cells, values, strict=True)}), rng)


def render(
    scenes: Sequence[Scene], bank: SpriteBank, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw B scenes of one scale s, with S = 6·s tiles a side.

    Returns the sheets (B, S·28, S·28, 3) uint8, and per tile (B, S, S) the digit shown (0..9, NO_DIGIT, MARK)
    and its ink (0..3, NO_INK): what the model's vision part is taught to see.
    """
    scale = scenes[0].scale
    side = GRID * scale
    paper = rng.uniform(222, 250, (len(scenes), 1, 1, 1, 3))
    for row, scene in enumerate(scenes):
        if scene.plain:
            paper[row] = rng.integers(90, 240)
    tiles = np.broadcast_to(paper, (len(scenes), side * side, TILE, TILE, 3)).astype(np.uint8)
    values = np.full((len(scenes), side * side), NO_DIGIT)
    inks = np.full((len(scenes), side * side), NO_INK)
    for row, scene in enumerate(scenes):
        shade = np.array(list(INKS.values())) + rng.uniform(-18, 18, (len(INKS), 3))
        for cell, digit in scene.digits.items():
            at = tile_index(cell, digit.tile, scale)
            tiles[row, at] = blend(tiles[row, at], bank.draw(digit.value, rng), shade[digit.ink])
            values[row, at], inks[row, at] = digit.value, digit.ink
        for cell in scene.marks:
            at = tile_index(cell, int(rng.integers(0, scale * scale)), scale)
            tiles[row, at] = blend(tiles[row, at], draw_mark(rng), np.array(MARK_INK))
            values[row, at] = MARK
    sheets = (
        tiles.reshape(-1, side, side, TILE, TILE, 3)
        .transpose(0, 1, 3, 2, 4, 5)
        .reshape(-1, side * TILE, side * TILE, 3)
    )
    return np.ascontiguousarray(sheets), values.reshape(-1, side, side), inks.reshape(-1, side, side)


def tile_index(cell: int, tile: int, scale: int) -> int:
    """Index, row by row, of a tile on the sheet."""
    row, column = cell // GRID * scale + tile // 2, cell % GRID * scale + tile % 2
    return row * GRID * scale + column


def blend(paper: np.ndarray, coverage: np.ndarray, ink: np.ndarray) -> np.ndarray:
    """Ink (3,) on a paper tile (28, 28, 3), by coverage (28, 28)."""
    share = coverage[..., None].astype(np.float32) / 255
    return (paper * (1 - share) + ink * share).clip(0, 255).astype(np.uint8)


def shrink(sheets: np.ndarray) -> np.ndarray:
    """Sheets (B, H, H, 3) brought to 168x168 px the way the model's processor does it."""
    if sheets.shape[1] == FULL_PX:
        return sheets
    import torch  # not needed to make data, and slow to load
    from torchvision.transforms.v2 import functional as pixels

    images = torch.from_numpy(sheets).permute(0, 3, 1, 2)
    return pixels.resize(images, [FULL_PX, FULL_PX], interpolation=3, antialias=True).permute(0, 2, 3, 1).numpy()


def png(sheet: np.ndarray) -> bytes:
    """Return a sheet (H, W, 3) as a small lossless PNG: with a palette, since a sheet has few colours."""
    colours, indices = np.unique(sheet.reshape(-1, 3), axis=0, return_inverse=True)
    if len(colours) > 256:
        raise ValueError(f"a sheet should have at most 256 colours, got {len(colours)}")
    picture = Image.fromarray(indices.reshape(sheet.shape[:2]).astype(np.uint8))
    picture.putpalette(colours.ravel().tolist())
    stream = io.BytesIO()
    picture.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def strongest(values: np.ndarray, inks: np.ndarray, factor: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels (B, S, S) of blocks of factor x factor tiles: the digit in the block, else a mark, else nothing."""
    side = values.shape[1] // factor
    blocks = [
        labels.reshape(-1, side, factor, side, factor).transpose(0, 1, 3, 2, 4).reshape(-1, side, side, factor**2)
        for labels in (values, inks)
    ]
    shown = np.where(blocks[0] < NO_DIGIT, 2, blocks[0] == MARK).argmax(-1)[..., None]
    values, inks = (np.take_along_axis(labels, shown, -1)[..., 0] for labels in blocks)
    return values, inks


def cut(image: Image.Image, n: int) -> list[Image.Image]:
    """Return the n x n cells of an image whose sides n divides, row by row."""
    width, height = image.width // n, image.height // n
    boxes = [(c * width, r * height, (c + 1) * width, (r + 1) * height) for r in range(n) for c in range(n)]
    return [image.crop(box) for box in boxes]
