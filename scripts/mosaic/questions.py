"""Questions about a scene, and the answer that the visible part of it supports.

Every question is asked of a *view*: the cells of the sheet that can be seen. Where the view lacks the evidence,
the right answer is `unknown`: a model that has learned this does not guess, so the best cell earns no luck.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from scenes import GREY, GRID, INK_NAMES, Digit, Scene

UNKNOWN = "unknown"
LETTERS = "ABCD"
NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

OPEN_LOCAL = "What digit is shown in {ink}?"
CHOICE_LOCAL = "Which digit is shown in {ink}?"
YESNO_LOCAL = "Is the {ink} digit a {digit}?"
COUNT = "How many digits are shown?"
SUM = "What is the sum of the two digits?"
SAME = "Are all digits the same?"
LARGER = "Is the left digit larger than the right one?"
TEXT = "Which digit is written as the word {word}?"
OPTIONS = "\nA. {}\nB. {}\nC. {}\nD. {}"

# Only for training: the same skills without a picture.
TEXT_SUM = "What is the sum of {a} and {b}?"
TEXT_SAME = "Is {a} a {b}?"
TEXT_CHOICE = "Which digit is {a}?"
TEMPLATES = (
    OPEN_LOCAL,
    CHOICE_LOCAL,
    YESNO_LOCAL,
    COUNT,
    SUM,
    SAME,
    LARGER,
    TEXT,
    OPTIONS,
    TEXT_SUM,
    TEXT_SAME,
    TEXT_CHOICE,
)


class Question(NamedTuple):
    """text: what is asked, options included; answer: one word; form: open, yesno or mc; choices: of mc only."""

    text: str
    answer: str
    form: str
    choices: list[str] | None = None


def ask(kind: str, scene: Scene, visible: Collection[int], rng: np.random.Generator) -> Question:
    """Return a question of one of KINDS, answered from the visible cells."""
    seen = {cell: digit for cell, digit in scene.digits.items() if cell in visible}
    return KINDS[kind](scene, seen, rng)


def yes_no(truth: bool) -> str:
    """Return the word for a truth value."""
    return "yes" if truth else "no"


def with_options(stem: str, right: int | None, pool: range, rng: np.random.Generator) -> Question:
    """Multiple choice: four different numbers of `pool`, the right one among them (if there is one)."""
    wrong = [number for number in pool if number != right]
    drawn = rng.choice(wrong, 3 if right is not None else 4, replace=False).tolist()
    options = rng.permutation(drawn if right is None else [right, *drawn]).tolist()
    answer = UNKNOWN if right is None else LETTERS[options.index(right)]
    return Question(stem + OPTIONS.format(*options), answer, "mc", [str(option) for option in options])


def pick_ink(scene: Scene, seen: dict[int, Digit], rng: np.random.Generator) -> tuple[int, int | None]:
    """Return the ink to ask about, and the value of the visible digit in it: usually a visible one, else None."""
    visible = sorted({digit.ink for digit in seen.values()} - {GREY})
    anywhere = sorted({digit.ink for digit in scene.digits.values()} - {GREY}) or [1, 2, 3]
    ink = int(rng.choice(visible if visible and rng.random() < 0.85 else anywhere))
    return ink, next((digit.value for digit in seen.values() if digit.ink == ink), None)


def local_open(scene: Scene, seen: dict[int, Digit], rng: np.random.Generator) -> Question:
    """Return the digit in one ink."""
    ink, value = pick_ink(scene, seen, rng)
    return Question(OPEN_LOCAL.format(ink=INK_NAMES[ink]), UNKNOWN if value is None else str(value), "open")


def local_yesno(scene: Scene, seen: dict[int, Digit], rng: np.random.Generator) -> Question:
    """Whether the digit in one ink is the named one."""
    ink, value = pick_ink(scene, seen, rng)
    named = value if value is not None and rng.random() < 0.5 else int(rng.integers(0, 10))
    answer = UNKNOWN if value is None else yes_no(value == named)
    return Question(YESNO_LOCAL.format(ink=INK_NAMES[ink], digit=named), answer, "yesno")


def local_mc(scene: Scene, seen: dict[int, Digit], rng: np.random.Generator) -> Question:
    """Return the digit in one ink, among four."""
    ink, value = pick_ink(scene, seen, rng)
    return with_options(CHOICE_LOCAL.format(ink=INK_NAMES[ink]), value, range(10), rng)


def count_open(scene: Scene, seen: dict[int, Digit], rng: np.random.Generator) -> Question:
    """How many digits the view holds."""
    return Question(COUNT, str(len(seen)), "open")


def count_mc(scene: Scene, seen: dict[int, Digit], rng: np.random.Generator) -> Question:
    """Return the same, among four; at times the right number is not there, which is `unknown`."""
    right = len(seen) if seen and (len(seen) == len(scene.digits) or rng.random() < 0.6) else None
    pool = [number for number in range(1, 10) if number != len(seen)] if right is None else range(1, 10)
    return with_options(COUNT, right, pool, rng)


def sum_of_two(scene: Scene, seen: dict[int, Digit], rng: np.random.Generator) -> Question:
    """Return the sum, if the view holds exactly two digits."""
    values = [digit.value for digit in seen.values()]
    return Question(SUM, str(sum(values)) if len(values) == 2 else UNKNOWN, "open")


def same(scene: Scene, seen: dict[int, Digit], rng: np.random.Generator) -> Question:
    """Whether all digits are equal, if the view holds at least two."""
    values = {digit.value for digit in seen.values()}
    return Question(SAME, yes_no(len(values) == 1) if len(seen) > 1 else UNKNOWN, "yesno")


def larger(scene: Scene, seen: dict[int, Digit], rng: np.random.Generator) -> Question:
    """Whether the left of exactly two digits is larger than the right one."""
    cells = sorted(seen, key=lambda cell: cell % GRID)
    if len(cells) != 2 or cells[0] % GRID == cells[1] % GRID:
        return Question(LARGER, UNKNOWN, "yesno")
    left, right = (seen[cell].value for cell in cells)
    return Question(LARGER, yes_no(left > right), "yesno")


def text_open(scene: Scene, seen: dict[int, Digit], rng: np.random.Generator) -> Question:
    """Return a digit that the wording itself gives."""
    value = int(rng.integers(0, 10))
    return Question(TEXT.format(word=NUMBER_WORDS[value]), str(value), "open")


def text_mc(scene: Scene, seen: dict[int, Digit], rng: np.random.Generator) -> Question:
    """Return the same, among four."""
    value = int(rng.integers(0, 10))
    return with_options(TEXT.format(word=NUMBER_WORDS[value]), value, range(10), rng)


KINDS = {
    "local_open": local_open,
    "local_yesno": local_yesno,
    "local_mc": local_mc,
    "count_open": count_open,
    "count_mc": count_mc,
    "sum": sum_of_two,
    "same": same,
    "larger": larger,
    "text_open": text_open,
    "text_mc": text_mc,
}


def practise(rng: np.random.Generator) -> Question:
    """Return a question of pure text that drills option matching, number words, addition and equality (training only)."""
    drill, a, b = rng.random(), *rng.integers(0, 10, 2).tolist()
    if drill < 0.3:
        return with_options(TEXT_CHOICE.format(a=a), a, range(10), rng)
    if drill < 0.5:
        return text_mc(Scene({}), {}, rng)
    if drill < 0.65:
        return text_open(Scene({}), {}, rng)
    if drill < 0.85:
        return Question(TEXT_SUM.format(a=a, b=b), str(a + b), "open")
    b = a if rng.random() < 0.5 else b
    return Question(TEXT_SAME.format(a=a, b=b), yes_no(a == b), "yesno")
