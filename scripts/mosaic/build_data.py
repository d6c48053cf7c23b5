"""Write the seven mosaic tasks' data: tasks/mosaic/data/<family>.parquet.

    python scripts/mosaic/build_data.py
    python scripts/mosaic/build_data.py --docs 600 --seed 7 --out FOLDER     # other docs, as many as are wanted

Same seed, same rows: every pixel and word is drawn from one generator per family. Only scans of the test part
of the split appear.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from datasets import Dataset, Features, Image, List, Value
from questions import LETTERS, Question, ask
from scans import Print, SpriteBank, load_scans
from scenes import CELLS, GRID, INK_NAMES, Scene, alike, apart, block_of, many, pair, place, png, render, spread

DATA_DIR = Path(__file__).resolve().parents[2] / "tasks" / "mosaic" / "data"
DOCS, SEED = 120, 2026  # those of the shipped files
PRINTS = {1: Print(23, 26), 2: Print(21, 23)}  # digit sizes in px, by the scale of the sheet
FEATURES = Features(
    {
        "id": Value("string"),
        "image": Image(),
        "question": Value("string"),
        "choices": List(Value("string")),
        "answer": Value("string"),
        "format": Value("string"),
        "category": Value("string"),
        "cells": List(Value("int64")),
        "group": Value("string"),
    }
)
Wanted = list[tuple[str, str]]  # the questions of one scene: kind, gold answer


class Family(NamedTuple):
    """draw: a random scene; plan: for each scene its questions and their golds; cells: those a question needs."""

    draw: Callable[[np.random.Generator], Scene]
    plan: list[Wanted]
    cells: Callable[[Scene, Question], list[int]]


def families(docs: int) -> dict[str, Family]:
    """All tasks of the benchmark, `docs` questions each (a multiple of 6, so that each form has its share)."""
    half, third, sixth = docs // 2, docs // 3, docs // 6
    digits, letters, yes_no = (
        cycle([str(d) for d in range(10)], third),
        cycle(LETTERS, third),
        cycle(["yes", "no"], third),
    )
    opens, checks, choices = (
        [(kind, gold) for gold in golds]
        for kind, golds in [("local_open", digits), ("local_yesno", yes_no), ("local_mc", letters)]
    )
    local = [
        *couple(opens[:sixth], checks[:sixth]),
        *couple(checks[sixth:], choices[:sixth]),
        *couple(choices[sixth:], opens[sixth:]),
    ]
    counts = couple(
        [("count_open", n) for n in cycle([str(n) for n in range(2, 10)], half)],
        [("count_mc", letter) for letter in cycle(LETTERS, half)],
    )
    texts = [("text_open", d) for d in cycle([str(d) for d in range(10)], 2 * third)] + [
        ("text_mc", letter) for letter in cycle(LETTERS, third)
    ]
    sums, checked = [str(n) for n in range(19)], ["yes", "no"]
    return {
        "mosaic_local": Family(draw_local, local, inked_cell),
        "mosaic_center": Family(draw_center, local, inked_cell),
        "mosaic_count": Family(draw_count, counts, every_digit),
        "mosaic_sum": Family(lambda rng: pair(place(2, rng, apart), rng), singles("sum", sums, docs), every_digit),
        "mosaic_same": Family(
            lambda rng: alike(place(int(rng.integers(3, 5)), rng, apart), rng),
            singles("same", checked, docs),
            every_digit,
        ),
        "mosaic_larger": Family(draw_larger, singles("larger", checked, docs), every_digit),
        "mosaic_text": Family(draw_count, [[text] for text in texts], lambda scene, question: []),
    }


def cycle(values: list[str] | str, count: int) -> list[str]:
    """`count` golds, every value as often as every other."""
    return [values[i % len(values)] for i in range(count)]


def couple(first: list, second: list) -> list[Wanted]:
    """Two questions per scene."""
    return [list(both) for both in zip(first, second, strict=True)]


def singles(kind: str, golds: list[str], count: int) -> list[Wanted]:
    """`count` scenes with one question of one kind."""
    return [[(kind, gold)] for gold in cycle(golds, count)]


def draw_local(rng: np.random.Generator) -> Scene:
    """Fine print, digits anywhere, two or three of them in colour."""
    return many(place(int(rng.integers(8, 14)), rng), int(rng.integers(2, 4)), rng, scale=2)


def draw_center(rng: np.random.Generator) -> Scene:
    """Fine print with one coloured digit, in the centre cell of the 3x3 grid."""
    in_center = [cell for cell in range(CELLS) if block_of(cell, 3) == 4]
    cells = place(int(rng.integers(8, 14)), rng, lambda drawn: drawn[0] in in_center)
    return many(cells, 1, rng, scale=2)


def draw_count(rng: np.random.Generator) -> Scene:
    """Two to nine digits, some in colour, that no single cell of a grid holds."""
    return many(place(int(rng.integers(2, 10)), rng, spread), int(rng.integers(0, 4)), rng)


def draw_larger(rng: np.random.Generator) -> Scene:
    """Two different digits, one in the left half and one in the right half."""
    while True:
        scene = pair(place(2, rng, lambda cells: apart(cells) and (cells[0] % GRID < 3) != (cells[1] % GRID < 3)), rng)
        if len({digit.value for digit in scene.digits.values()}) == 2:
            return scene


def inked_cell(scene: Scene, question: Question) -> list[int]:
    """Return the cell of the digit in the colour that the question names."""
    return [cell for cell, digit in scene.digits.items() if f" {INK_NAMES[digit.ink]}" in question.text]


def every_digit(scene: Scene, question: Question) -> list[int]:
    """All cells with a digit."""
    return sorted(scene.digits)


def draw_until(
    wanted: Wanted, draw: Callable[[np.random.Generator], Scene], rng: np.random.Generator
) -> tuple[Scene, list[Question]]:
    """Return a scene whose questions have exactly the wanted golds."""
    while True:
        scene = draw(rng)
        questions = [ask(kind, scene, range(CELLS), rng) for kind, _ in wanted]
        if [question.answer for question in questions] == [gold for _, gold in wanted]:
            return scene, questions


def build(name: str, family: Family, banks: dict[int, SpriteBank], rng: np.random.Generator) -> Dataset:
    """Return the rows of one family, in random order of scenes."""
    rows = []
    for number, at in enumerate(rng.permutation(len(family.plan)).tolist()):
        scene, questions = draw_until(family.plan[at], family.draw, rng)
        sheet = render([scene], banks[scene.scale], rng)[0][0]
        image = {"bytes": png(sheet), "path": None}
        for question in questions:
            rows.append(
                {
                    "id": f"{name}_{len(rows):03d}",
                    "image": image,
                    "question": question.text,
                    "choices": question.choices,
                    "answer": question.answer,
                    "format": question.form,
                    "category": f"{name.removeprefix('mosaic_')}_{question.form}",
                    "cells": family.cells(scene, question),
                    "group": f"{name}_scene_{number:03d}",
                }
            )
    return Dataset.from_list(rows, features=FEATURES)


def test_banks(seed: int) -> dict[int, SpriteBank]:
    """Sprites by scale, drawn from test scans only."""
    scans = load_scans()
    banks = {scale: SpriteBank(scans.test, style, 2, seed + scale) for scale, style in PRINTS.items()}
    used = set().union(*(bank.scan_of.tolist() for bank in banks.values()))
    if used & set(scans.train.tolist()):
        raise AssertionError("a scan of the training part is in the test data")
    return banks


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DATA_DIR)
    parser.add_argument(
        "--docs", type=int, default=DOCS, help=f"questions of each family, a multiple of 6 (default {DOCS})"
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help=f"another seed draws other sheets and questions (default {SEED})"
    )
    options = parser.parse_args()
    if options.docs < 6 or options.docs % 6:
        parser.error(f"--docs must be a multiple of 6, got {options.docs}")
    options.out.mkdir(parents=True, exist_ok=True)
    banks = test_banks(options.seed)
    for number, (name, family) in enumerate(families(options.docs).items()):
        data = build(name, family, banks, np.random.default_rng([options.seed, number]))
        path = options.out / f"{name}.parquet"
        data.to_parquet(path)
        print(f"{name}: {len(data)} questions, {path.stat().st_size / 1024:.0f} KB", flush=True)


if __name__ == "__main__":
    main()
