"""Write the MAGIC items about mosaics: tasks/magic/mosaic/items.jsonl and its images.

    python scripts/mosaic/build_magic.py

60 questions, 12 of each type, on 36 sheets that are made as those of the mosaic benchmark are, in larger print: 504x504
px, a cell is 84 px. Same seed, same items. Only scans of the test part of the split appear.
"""

import argparse
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from magic_questions import KINDS, Asked
from magic_steps import Sight, chain
from PIL import Image
from scans import draw_mark, load_scans, round_ink
from scenes import GRID, INK_NAMES, INKS, MARK_INK, Digit, Scene, blend, many, place, png

from lmms_patch.magic.dataset import write
from lmms_patch.magic.items import Box, MagicItem

OUT = Path(__file__).resolve().parents[2] / "tasks" / "magic" / "mosaic"
SEED = 2027
CELL = 84  # px
SIZES = (58, 70)  # of a scan, px
MARGIN = 3  # px between a digit and its box
FEWEST, MOST = 3, 5  # adversarial boxes

# One line a sheet: kind of question, gold answer where it is planned, and the slips of its reasoning
# (magic_steps.PLANS).
Wanted = tuple[str, str, str]
SHEETS: tuple[tuple[Wanted, ...], ...] = (
    (("verify_colour", "yes", "read"), ("query_value", "", "right")),
    (("verify_colour", "no", "place"), ("choose_value", "", "read")),
    (("verify_colour", "yes", "to the end"), ("logical_both", "no", "two targets")),
    (("verify_colour", "no", "right"), ("compare_larger", "yes", "place")),
    (("verify_colour", "yes", "from the start"), ("query_sum", "", "read")),
    (("verify_colour", "no", "to the end"), ("choose_even", "", "place and read")),
    (("verify_colour", "yes", "place and read"), ("logical_all", "yes", "right")),
    (("verify_colour", "no", "two"), ("compare_which", "", "two targets")),
    (("verify_shown", "yes", "right"), ("query_colour", "", "place")),
    (("verify_shown", "no", "read"), ("choose_colour", "", "right")),
    (("verify_shown", "yes", "place"), ("logical_either", "yes", "two targets")),
    (("verify_shown", "no", "no correction"), ("compare_same", "yes", "right")),
    (("query_value", "", "to the end"), ("choose_value", "", "right")),
    (("query_value", "", "place and read"), ("logical_both", "yes", "right")),
    (("query_value", "", "from the start"), ("compare_larger", "no", "read")),
    (("query_value", "", "two"), ("choose_colour", "", "read")),
    (("query_colour", "", "read"), ("logical_either", "no", "place and read")),
    (("query_colour", "", "right"), ("compare_which", "", "right")),
    (("query_sum", "", "right"), ("choose_value", "", "to the end")),
    (("choose_value", "", "from the start"), ("logical_all", "no", "place and read")),
    (("choose_value", "", "place"), ("compare_same", "no", "read")),
    (("choose_even", "", "right"), ("logical_both", "no", "place")),
    (("logical_both", "yes", "read"), ("compare_larger", "yes", "right")),
    (("query_sum", "", "two targets"), ("compare_largest", "", "place and read")),
    (("query_value", "", "to the end"),),
    (("choose_value", "", "to the end"),),
    (("choose_colour", "", "no correction"),),
    (("choose_even", "", "right"),),
    (("logical_either", "yes", "other"),),
    (("logical_either", "no", "right"),),
    (("logical_all", "no", "right"),),
    (("logical_all", "yes", "other"),),
    (("compare_larger", "no", "right"),),
    (("compare_which", "", "other"),),
    (("compare_same", "yes", "right"),),
    (("compare_largest", "", "right"),),
)


class Sheet(NamedTuple):
    """scene: what lies where; boxes: cell -> (left, top, right, bottom) of each digit, pixels, half-open.

    Picture: as PNG.
    """

    scene: Scene
    boxes: dict[int, tuple[int, int, int, int]]
    picture: bytes


def draw_scene(rng: np.random.Generator) -> Scene:
    """Seven to ten digits, one of each colour and the rest grey, and stray marks.

    None right below another, where labels stand.
    """
    return many(
        place(int(rng.integers(7, 11)), rng, lambda cells: not set(cells) & {cell + GRID for cell in cells}), 3, rng
    )


def draw_until(wanted: tuple[Wanted, ...], rng: np.random.Generator) -> tuple[Scene, list[Asked]]:
    """Return a scene of which the wanted questions can be asked, with the wanted golds."""
    while True:
        scene = draw_scene(rng)
        asked = [KINDS[kind](scene, rng) for kind, _, _ in wanted]
        found = [one for one in asked if one is not None]
        if len(found) == len(wanted) and all(
            gold in ("", one.answer) for (_, gold, _), one in zip(wanted, found, strict=True)
        ):
            return scene, found


def render(scene: Scene, rng: np.random.Generator) -> Sheet:
    """Draw a scene in large print."""
    paper, shades = rng.uniform(222, 250, 3), np.array(list(INKS.values())) + rng.uniform(-18, 18, (len(INKS), 3))
    pixels = np.broadcast_to(paper, (GRID * CELL, GRID * CELL, 3)).astype(np.uint8)
    boxes = {}
    for cell, digit in scene.digits.items():
        top, left = cell // GRID * CELL, cell % GRID * CELL
        coverage = large_sprite(digit, rng)
        part = np.s_[top : top + CELL, left : left + CELL]
        pixels[part] = blend(pixels[part], coverage, shades[digit.ink])
        rows, columns = np.flatnonzero(coverage.any(axis=1)), np.flatnonzero(coverage.any(axis=0))
        inner = (columns[0] - MARGIN, rows[0] - MARGIN, columns[-1] + 1 + MARGIN, rows[-1] + 1 + MARGIN)
        x0, y0, x1, y1 = (min(CELL, max(0, int(edge))) for edge in inner)
        boxes[cell] = (left + x0, top + y0, left + x1, top + y1)
    for cell in scene.marks:
        top, left = cell // GRID * CELL, cell % GRID * CELL
        part = np.s_[top : top + CELL, left : left + CELL]
        pixels[part] = blend(pixels[part], enlarged(draw_mark(rng), CELL), np.array(MARK_INK))
    return Sheet(scene, boxes, png(pixels))


def large_sprite(digit: Digit, rng: np.random.Generator) -> np.ndarray:
    """Return a random test scan of a digit at a random size and place in a cell: coverage, (84, 84) uint8."""
    scan = load_scans().images[int(rng.choice(clear_scans()[digit.value]))]
    size = int(rng.integers(SIZES[0], SIZES[1] + 1))
    left, top = rng.integers(4, CELL - size - 3, 2).tolist()
    coverage = np.zeros((CELL, CELL), np.uint8)
    coverage[top : top + size, left : left + size] = enlarged((scan * (255 / 16)).clip(0, 255).astype(np.uint8), size)
    return coverage


@lru_cache(maxsize=1)
def clear_scans() -> list[np.ndarray]:
    """For each digit its test scans that nobody misreads: the five training scans that are most alike show the same digit."""
    scans = load_scans()
    flat = scans.images.reshape(len(scans.images), -1)
    test, train = flat[scans.test], flat[scans.train]
    far = (test**2).sum(1)[:, None] - 2 * test @ train.T + (train**2).sum(1)
    nearest = scans.labels[scans.train][np.argsort(far, axis=1, kind="stable")[:, :5]]
    clear = scans.test[(nearest == scans.labels[scans.test][:, None]).all(axis=1)]
    return [clear[scans.labels[clear] == value] for value in range(10)]


def enlarged(coverage: np.ndarray, size: int) -> np.ndarray:
    """Coverage at another size, with edges as sharp as in small print."""
    large = np.asarray(Image.fromarray(coverage).resize((size, size), Image.Resampling.BICUBIC)).astype(float)
    return round_ink((large - 70) * 2.4)


def build_sheet(number: int, first: int) -> tuple[bytes, list[MagicItem]]:
    """One sheet, from 0, as a PNG, and its items.

    Args:
        number: place in ``SHEETS``.
        first: number of its first item, from 1.
    """
    wanted, rng = SHEETS[number], np.random.default_rng([SEED, number])
    scene, questions = draw_until(wanted, rng)
    sheet = render(scene, rng)
    name = f"sheet_{number + 1:02d}"
    items = []
    for place_of_question, (asked, (_, _, plan)) in enumerate(zip(questions, wanted, strict=True)):
        others = [cell for cell in sorted(scene.digits) if cell not in asked.targets]
        adversarial = draw_others(scene, asked, others, rng)
        cells = [[*asked.targets, *adversarial][i] for i in rng.permutation(len(asked.targets) + len(adversarial))]
        boxes = tuple(
            Box(
                *sheet.boxes[cell],
                relevant=cell in asked.targets,
                label=f"{INK_NAMES[scene.digits[cell].ink]} {scene.digits[cell].value}",
            )
            for cell in cells
        )
        sight = Sight(scene, asked, {cell: at for at, cell in enumerate(cells, 1)})
        items.append(
            MagicItem(
                id=f"mosaic_{first + place_of_question:02d}",
                image=f"images/{name}.png",
                question=asked.text,
                type=asked.type,
                answer=asked.answer,
                full_answer=asked.full,
                boxes=boxes,
                steps=chain(sight, plan, rng),
                group=name,
            )
        )
    return sheet.picture, items


def draw_others(scene: Scene, asked: Asked, others: list[int], rng: np.random.Generator) -> list[int]:
    """Cells of adversarial boxes: for each target at least one of another value and colour, which it could be taken for."""
    while True:
        drawn = rng.permutation(others)[: int(rng.integers(FEWEST, MOST + 1))].tolist()
        digits = [scene.digits[cell] for cell in drawn]
        targets = [scene.digits[cell] for cell in asked.targets]
        if all(any(other.value != target.value and other.ink != target.ink for other in digits) for target in targets):
            return drawn


def firsts() -> list[int]:
    """Return the number of the first item of each sheet, from 1."""
    return [1 + sum(len(sheet) for sheet in SHEETS[:number]) for number in range(len(SHEETS))]


def save(data: bytes, path: Path) -> None:
    """Write a file whole or not at all."""
    handle, held = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
    os.chmod(held, 0o644)
    os.replace(held, path)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    out = parser.parse_args().out
    (out / "images").mkdir(parents=True, exist_ok=True)
    items = []
    for number, first in enumerate(firsts()):
        picture, built = build_sheet(number, first)
        save(picture, out / built[0].image)
        items += built
    write(out / "items.jsonl", items)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{len(items)} items on {len(SHEETS)} sheets, {size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
