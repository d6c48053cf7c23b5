"""Questions of the five types of MAGIC about a scene, with short and full answers and the digits that they need.

In every scene there is one red, one green and one blue digit; the others are grey. A question either names colours and
asks for what is written (`by_colour`), or names a value that stands on the sheet once and asks for its colour.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from questions import yes_no
from scenes import INK_NAMES, Scene

COLOURS = INK_NAMES[1:]
LOOKALIKES = {
    0: (6, 8),
    1: (7, 4),
    2: (7, 3),
    3: (8, 5),
    4: (9, 1),
    5: (6, 3),
    6: (5, 0),
    7: (1, 2),
    8: (3, 0),
    9: (4, 8),
}
"""What a digit is misread as, likeliest first."""


class Asked(NamedTuple):
    """A question about a scene.

    type: one of MAGIC's; text; answer: one word; full: as a sentence, without full stop where it is quoted.
    targets: cells of the digits that it needs, in the order in which they are named.
    goal: the question as what has to be found out. found: what follows from the digits, and is the full answer in other
    words.
    by_colour: whether targets are named by their colour.
    slip: where a misread first target leads to another answer: the value it is misread as, what follows, and the
    answer; None where it is not asked.
    """

    type: str
    text: str
    answer: str
    full: str
    targets: tuple[int, ...]
    goal: str
    found: str
    by_colour: bool = True
    slip: tuple[int, str, str] | None = None


Draw = Callable[[Scene, np.random.Generator], Asked | None]


def a(value: int) -> str:
    """Return a value with its article."""
    return f"an {value}" if value == 8 else f"a {value}"


def cell_of(scene: Scene, colour: str) -> int:
    """Return the cell of the one digit in a colour."""
    return next(cell for cell, digit in scene.digits.items() if INK_NAMES[digit.ink] == colour)


def some(count: int, rng: np.random.Generator) -> list[str]:
    """`count` different colours."""
    return [COLOURS[i] for i in rng.permutation(len(COLOURS))[:count]]


def pick(scene: Scene, count: int, rng: np.random.Generator) -> tuple[list[str], tuple[int, ...], list[int]]:
    """`count` colours, the cells of their digits, and their values."""
    colours = some(count, rng)
    cells = tuple(cell_of(scene, colour) for colour in colours)
    return colours, cells, [scene.digits[cell].value for cell in cells]


def misread(value: int, rng: np.random.Generator, apart_from: tuple[int, ...] = ()) -> int:
    """Return a value that is taken for another: a lookalike, if it may be."""
    allowed = [v for v in (*LOOKALIKES[value], *rng.permutation(10).tolist()) if v != value and v not in apart_from]
    return int(allowed[0])


def named_value(value: int, rng: np.random.Generator) -> int:
    """Return the value that a question names: the right one as often as a lookalike."""
    return value if rng.random() < 0.5 else LOOKALIKES[value][int(rng.integers(0, 2))]


def verify_colour(scene: Scene, rng: np.random.Generator) -> Asked:
    """Is the red digit a 7?"""
    (colour,), cells, (value,) = pick(scene, 1, rng)
    named = named_value(value, rng)
    right = value == named
    other = misread(value, rng) if right else named
    full = (
        f"Yes, the {colour} digit is {a(value)}."
        if right
        else f"No, the {colour} digit is {a(value)} and not {a(named)}."
    )
    slip = (other, f"So the {colour} digit is {a(other)}.", yes_no(not right))
    return Asked(
        "verify",
        f"Is the {colour} digit {a(named)}?",
        yes_no(right),
        full,
        cells,
        f"whether the {colour} digit is {a(named)}",
        f"So the {colour} digit is {a(value)}.",
        slip=slip,
    )


def verify_shown(scene: Scene, rng: np.random.Generator) -> Asked:
    """Ask: does the sheet show a red 7?"""
    (colour,), cells, (value,) = pick(scene, 1, rng)
    named = named_value(value, rng)
    right = value == named
    full = (
        f"Yes, the sheet shows a {colour} {named}."
        if right
        else f"No, the only {colour} digit on the sheet is {a(value)}."
    )
    found = f"So the only {colour} digit on the sheet is {a(value)}."
    return Asked(
        "verify",
        f"Does the sheet show a {colour} {named}?",
        yes_no(right),
        full,
        cells,
        f"whether the sheet shows a {colour} {named}",
        found,
    )


def query_value(scene: Scene, rng: np.random.Generator) -> Asked:
    """Ask: what digit is shown in red?"""
    (colour,), cells, (value,) = pick(scene, 1, rng)
    other = misread(value, rng)
    slip = (other, f"So the {colour} digit is {a(other)}.", str(other))
    full = f"The digit shown in {colour} is {a(value)}."
    found = f"So the {colour} digit is {a(value)}."
    return Asked(
        "query",
        f"What digit is shown in {colour}?",
        str(value),
        full,
        cells,
        f"what digit is shown in {colour}",
        found,
        slip=slip,
    )


def once(scene: Scene, rng: np.random.Generator) -> tuple[str, int, int] | None:
    """Colour, cell and value of a coloured digit whose value no other digit has; None where there is none."""
    values = [digit.value for digit in scene.digits.values()]
    fit = [(colour, cell_of(scene, colour)) for colour in some(3, rng)]
    return next(
        (
            (colour, cell, scene.digits[cell].value)
            for colour, cell in fit
            if values.count(scene.digits[cell].value) == 1
        ),
        None,
    )


def query_colour(scene: Scene, rng: np.random.Generator) -> Asked | None:
    """Ask: what colour is the 7?"""
    if not (drawn := once(scene, rng)):
        return None
    colour, cell, value = drawn
    text, found = f"What colour is the {value}?", f"So the {value} is written in {colour}."
    return Asked(
        "query",
        text,
        colour,
        f"The {value} is {colour}.",
        (cell,),
        f"what colour the {value} is",
        found,
        by_colour=False,
    )


def query_sum(scene: Scene, rng: np.random.Generator) -> Asked:
    """Ask: what is the sum of the red digit and the blue digit?"""
    (first, second), cells, values = pick(scene, 2, rng)
    total, both = sum(values), f"the sum of the {first} digit and the {second} digit"
    full = f"{both[0].upper()}{both[1:]} is {total}."
    return Asked(
        "query",
        f"What is {both}?",
        str(total),
        full,
        cells,
        f"what {both} is",
        f"Added together, the two digits give {total}.",
    )


def choose_value(scene: Scene, rng: np.random.Generator) -> Asked:
    """Which digit is shown in red, 3 or 7?"""
    (colour,), cells, (value,) = pick(scene, 1, rng)
    other = misread(value, rng)
    left, right = rng.permutation([value, other]).tolist()
    text = f"Which digit is shown in {colour}, {left} or {right}?"
    slip = (other, f"So the {colour} digit is {a(other)}.", str(other))
    full, found = f"The digit shown in {colour} is {a(value)}.", f"So the {colour} digit is {a(value)}."
    return Asked("choose", text, str(value), full, cells, f"which of two digits is shown in {colour}", found, slip=slip)


def choose_colour(scene: Scene, rng: np.random.Generator) -> Asked | None:
    """Is the 7 red or blue?"""
    if not (drawn := once(scene, rng)):
        return None
    colour, cell, value = drawn
    left, right = rng.permutation([colour, next(c for c in some(3, rng) if c != colour)]).tolist()
    goal, found = f"whether the {value} is {left} or {right}", f"So the {value} is written in {colour}."
    return Asked(
        "choose",
        f"Is the {value} {left} or {right}?",
        colour,
        f"The {value} is {colour}.",
        (cell,),
        goal,
        found,
        by_colour=False,
    )


def choose_even(scene: Scene, rng: np.random.Generator) -> Asked | None:
    """Which digit is even, the red one or the blue one?"""
    colours, cells, values = pick(scene, 2, rng)
    if values[0] % 2 == values[1] % 2:
        return None
    answer = colours[values[1] % 2 == 0]
    text = f"Which digit is even, the {colours[0]} one or the {colours[1]} one?"
    goal = f"whether the {colours[0]} digit or the {colours[1]} digit is even"
    return Asked(
        "choose",
        text,
        answer,
        f"The {answer} digit is even.",
        cells,
        goal,
        f"Of the two, only the {answer} digit can be divided by two.",
    )


def logical_both(scene: Scene, rng: np.random.Generator) -> Asked:
    """Is the red digit a 7 and the blue digit a 3?"""
    return _logical("and", scene, rng)


def logical_either(scene: Scene, rng: np.random.Generator) -> Asked:
    """Is the red digit a 7 or the blue digit a 3?"""
    return _logical("or", scene, rng)


def _logical(joint: str, scene: Scene, rng: np.random.Generator) -> Asked:
    colours, cells, values = pick(scene, 2, rng)
    named = [named_value(value, rng) for value in values]
    holds = [value == name for value, name in zip(values, named, strict=True)]
    right = all(holds) if joint == "and" else any(holds)
    claims = f"the {colours[0]} digit is {a(named[0])} {joint} the {colours[1]} digit is {a(named[1])}"
    text = f"Is the {colours[0]} digit {a(named[0])} {joint} the {colours[1]} digit {a(named[1])}?"
    truth = f"the {colours[0]} digit is {a(values[0])} and the {colours[1]} digit is {a(values[1])}"
    return Asked(
        "logical",
        text,
        yes_no(right),
        f"{yes_no(right).capitalize()}, {truth}.",
        cells,
        f"whether {claims}",
        f"So {truth}.",
    )


def logical_all(scene: Scene, rng: np.random.Generator) -> Asked:
    """Are the red digit, the green digit and the blue digit all odd?"""
    colours, cells, values = pick(scene, 3, rng)
    holds = [value % 2 == 1 for value in values]
    three = f"the {colours[0]} digit, the {colours[1]} digit and the {colours[2]} digit"
    even = [f"the {colour} digit" for colour, odd in zip(colours, holds, strict=True) if not odd]
    full = (
        f"Yes, {three} are all odd."
        if all(holds)
        else f"No, {' and '.join(even)} {'is' if len(even) == 1 else 'are'} even."
    )
    found = (
        "None of the three can be divided by two."
        if all(holds)
        else f"Of the three, {' and '.join(even)} can be divided by two."
    )
    return Asked(
        "logical", f"Are {three} all odd?", yes_no(all(holds)), full, cells, f"whether {three} are all odd", found
    )


def compare_larger(scene: Scene, rng: np.random.Generator) -> Asked | None:
    """Is the red digit larger than the blue digit?"""
    (first, second), cells, values = pick(scene, 2, rng)
    if values[0] == values[1]:
        return None
    right = values[0] > values[1]
    claim, truth = (
        f"the {first} digit is larger than the {second} digit",
        f"the {first} digit is {'larger' if right else 'smaller'} than the {second} one",
    )
    text = f"Is the {first} digit larger than the {second} digit?"
    return Asked(
        "compare",
        text,
        yes_no(right),
        f"{yes_no(right).capitalize()}, {truth}.",
        cells,
        f"whether {claim}",
        f"So {truth}.",
    )


def compare_which(scene: Scene, rng: np.random.Generator) -> Asked | None:
    """Which digit is larger, the red one or the blue one?"""
    colours, cells, values = pick(scene, 2, rng)
    if values[0] == values[1]:
        return None
    answer = colours[values[1] > values[0]]
    text = f"Which digit is larger, the {colours[0]} one or the {colours[1]} one?"
    goal = f"whether the {colours[0]} digit or the {colours[1]} digit is larger"
    return Asked(
        "compare",
        text,
        answer,
        f"The {answer} digit is larger.",
        cells,
        goal,
        f"Of the two, the {answer} digit has the larger value.",
    )


def compare_same(scene: Scene, rng: np.random.Generator) -> Asked:
    """Do the red digit and the blue digit show the same number?"""
    (first, second), cells, values = pick(scene, 2, rng)
    both, same = f"the {first} digit and the {second} digit", values[0] == values[1]
    truth = f"{both} show {'the same number' if same else 'different numbers'}"
    goal = f"whether {both} show the same number"
    full = f"{yes_no(same).capitalize()}, {truth}."
    return Asked("compare", f"Do {both} show the same number?", yes_no(same), full, cells, goal, f"So {truth}.")


def compare_largest(scene: Scene, rng: np.random.Generator) -> Asked | None:
    """Which digit is the largest, the red one, the green one or the blue one?"""
    colours, cells, values = pick(scene, 3, rng)
    if values.count(max(values)) > 1:
        return None
    answer = colours[values.index(max(values))]
    text = f"Which digit is the largest, the {colours[0]} one, the {colours[1]} one or the {colours[2]} one?"
    found = f"Of the three, the {answer} digit has the largest value."
    return Asked(
        "compare",
        text,
        answer,
        f"The {answer} digit is the largest.",
        cells,
        "which of the three coloured digits is the largest",
        found,
    )


KINDS: dict[str, Draw] = {
    "verify_colour": verify_colour,
    "verify_shown": verify_shown,
    "query_value": query_value,
    "query_colour": query_colour,
    "query_sum": query_sum,
    "choose_value": choose_value,
    "choose_colour": choose_colour,
    "choose_even": choose_even,
    "logical_both": logical_both,
    "logical_either": logical_either,
    "logical_all": logical_all,
    "compare_larger": compare_larger,
    "compare_which": compare_which,
    "compare_same": compare_same,
    "compare_largest": compare_largest,
}
