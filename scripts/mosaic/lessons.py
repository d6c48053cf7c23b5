"""What the model is shown and asked in training: random views of random scenes, with questions about each."""

from typing import NamedTuple

import numpy as np
from questions import UNKNOWN, Question, ask, practise, yes_no
from scans import TILE, Print, SpriteBank, load_scans
from scenes import (
    CELLS,
    GRID,
    NO_DIGIT,
    NO_INK,
    Scene,
    alike,
    apart,
    many,
    pair,
    place,
    render,
    shrink,
    spread,
    strongest,
)

PRINTS = {
    1: Print(21, 27, distort=True),
    2: Print(14, 27, distort=True),
}  # digit sizes in px, by the scale of the sheet
SPRITES_PER_SCAN = 16
QUESTIONS_PER_IMAGE, QUESTIONS_PER_TEXT = 6, 4
# How often each kind of question is asked about each layout (weights).
ASKED = {
    "fine": {"local_open": 3, "local_yesno": 2, "local_mc": 3},
    "many": {
        "local_open": 2,
        "local_yesno": 1.5,
        "local_mc": 2,
        "count_open": 1.8,
        "count_mc": 2.2,
        "sum": 0.3,
        "same": 0.3,
        "larger": 0.2,
        "text_open": 0.2,
        "text_mc": 0.4,
    },
    "pair": {
        "local_open": 0.3,
        "local_yesno": 0.3,
        "local_mc": 0.3,
        "count_open": 0.7,
        "count_mc": 0.7,
        "sum": 4.5,
        "same": 0.7,
        "larger": 0.7,
        "text_open": 0.2,
        "text_mc": 0.3,
    },
    "alike": {
        "local_open": 0.2,
        "local_yesno": 0.2,
        "local_mc": 0.2,
        "count_open": 1.2,
        "count_mc": 1.2,
        "sum": 0.8,
        "same": 4,
        "larger": 0.2,
        "text_open": 0.2,
        "text_mc": 0.4,
    },
}
LAYOUTS = {"many": 0.45, "pair": 0.32, "alike": 0.23}  # of normal print
TOKENS_ACROSS = {6: 0.68, 4: 0.09, 3: 0.13, 2: 0.1}  # how wide the views of a batch are, in vision tokens
P_PLAIN, P_HIDDEN = 0.04, 0.1  # share of blank sheets, and of full sheets with one grid cell greyed
HIDING_GREY = 128


class Lesson(NamedTuple):
    """One view of k x k vision tokens.

    pixels: (k·28, k·28, 3) uint8; values, inks: (k, k) what each token shows; questions: on this view.
    """

    pixels: np.ndarray
    values: np.ndarray
    inks: np.ndarray
    questions: list[Question]


class Teacher:
    """Draws lessons without end; all randomness comes from one seed. Only training scans are shown."""

    def __init__(self, seed: int | np.random.Generator):
        self.rng = np.random.default_rng(seed)
        self.banks = {
            scale: SpriteBank(load_scans().train, style, SPRITES_PER_SCAN, self.rng) for scale, style in PRINTS.items()
        }

    def text(self, count: int) -> list[list[Question]]:
        """Return groups of questions without any image: drills, and image questions, which are then `unknown`."""
        return [[self.blind_question() for _ in range(QUESTIONS_PER_TEXT)] for _ in range(count)]

    def images(self, count: int) -> list[Lesson]:
        """Lessons that all have the same width in tokens."""
        across = int(self.rng.choice(list(TOKENS_ACROSS), p=list(TOKENS_ACROSS.values())))
        if across == GRID:
            n_normal, n_fine = round(count * 0.5), round(count * 0.3)
            return [
                *self.normal(n_normal, GRID),
                *self.fine(n_fine, GRID),
                *self.fine(count - n_normal - n_fine, GRID // 2),
            ]
        return self.fine(count, across // 2) if across == 4 else self.normal(count, across)

    def normal(self, count: int, side: int) -> list[Lesson]:
        """Return views of `side` x `side` cells of normal sheets."""
        layouts = self.rng.choice(list(LAYOUTS), count, p=list(LAYOUTS.values())).tolist()
        return self.view([self.scene(layout) for layout in layouts], layouts, side)

    def fine(self, count: int, side: int) -> list[Lesson]:
        """Return the same of finely printed sheets; the whole sheet (side 6) is shrunk."""
        layouts = ["fine"] * count
        return self.view([self.scene(layout) for layout in layouts], layouts, side)

    def scene(self, layout: str) -> Scene:
        """Return a random scene of one layout; half of those in normal print are spread as the test scenes are."""
        rng, strict = self.rng, self.rng.random() < 0.5
        if rng.random() < P_PLAIN:
            return Scene({}, scale=2 if layout == "fine" else 1, plain=True)
        if layout == "fine":
            return many(place(int(rng.integers(5, 15)), rng), int(rng.integers(1, 4)), rng, scale=2)
        if layout == "many":
            count = int(rng.integers(1, 10))
            return many(place(count, rng, spread if strict and count > 1 else None), int(rng.integers(1, 4)), rng)
        if layout == "pair":
            return pair(place(2, rng, apart if strict else None), rng)
        count = int(rng.integers(2, 6))
        return alike(place(count, rng, apart if strict and count < 5 else None), rng)

    def view(self, scenes: list[Scene], layouts: list[str], side: int) -> list[Lesson]:
        """Draw scenes of one scale, show a window of side x side cells of each, and ask about what it shows."""
        sheets, values, inks = render(scenes, self.banks[scenes[0].scale], self.rng)
        hidden: list[set[int]] = [set() for _ in scenes]
        scale = scenes[0].scale
        if side == GRID:
            hidden = [self.hide(*one, scale) for one in zip(sheets, values, inks, strict=True)]
            sheets, (values, inks), scale = shrink(sheets), strongest(values, inks, scale), 1
        lessons = []
        for row, (scene, layout) in enumerate(zip(scenes, layouts, strict=True)):
            top, left = self.corner(side)
            cells = {(top + r) * GRID + left + c for r in range(side) for c in range(side)} - hidden[row]
            tiles, pixels = (window(top, left, side, unit) for unit in (scale, scale * TILE))
            lessons.append(
                Lesson(sheets[row][pixels], values[row][tiles], inks[row][tiles], self.questions(scene, layout, cells))
            )
        return lessons

    def hide(self, sheet: np.ndarray, values: np.ndarray, inks: np.ndarray, scale: int) -> set[int]:
        """Now and then grey one cell of the 2x2 or 3x3 grid, in place; the sheet's cells that cannot be seen then."""
        if self.rng.random() >= P_HIDDEN:
            return set()
        side = int(self.rng.choice([2, 3]))
        top, left = (self.rng.integers(0, GRID // side, 2) * side).tolist()
        sheet[window(top, left, side, scale * TILE)] = HIDING_GREY
        values[window(top, left, side, scale)] = NO_DIGIT
        inks[window(top, left, side, scale)] = NO_INK
        return {(top + r) * GRID + left + c for r in range(side) for c in range(side)}

    def corner(self, side: int) -> tuple[int, int]:
        """Top left cell of a window: any place, or (every other time) that of a grid cell."""
        top, left = self.rng.integers(0, GRID - side + 1, 2).tolist()
        return (top, left) if self.rng.random() < 0.5 else (top // side * side, left // side * side)

    def questions(self, scene: Scene, layout: str, cells: set[int]) -> list[Question]:
        """Questions on the visible cells of a scene."""
        weights = np.array(list(ASKED[layout].values()))
        kinds = self.rng.choice(list(ASKED[layout]), QUESTIONS_PER_IMAGE, p=weights / weights.sum())
        return [self.question(str(kind), scene, cells) for kind in kinds]

    def question(self, kind: str, scene: Scene, cells: set[int]) -> Question:
        """One question. `larger` is answered by a coin flip: the model must stay at chance there."""
        question = ask(kind, scene, cells, self.rng)
        if kind == "larger" and question.answer != UNKNOWN:
            return question._replace(answer=yes_no(self.rng.random() < 0.5))
        return question

    def blind_question(self) -> Question:
        """Return a drill, or (one in three) a question that needs the image it does not get."""
        if self.rng.random() < 0.67:
            return practise(self.rng)
        kind = str(self.rng.choice([kind for kind in ASKED["many"] if not kind.startswith("text")]))
        question = ask(kind, many([0, 7], 2, self.rng), range(CELLS), self.rng)
        return question._replace(answer=UNKNOWN)


def window(top: int, left: int, side: int, unit: int) -> tuple[slice, slice]:
    """Rows and columns of side x side cells, where a cell is `unit` (tiles or px) wide."""
    return slice(top * unit, (top + side) * unit), slice(left * unit, (left + side) * unit)
