"""Reasoning about a question, step by step, in the first person.

And the slips that are planted in it, each with its correction.

A chain: what is asked, the setting, how to search, a look at other digits, for each digit that is needed where it is
and what it shows, and what follows. Boxes are named by their place in the item's list: R2 is the second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from magic_questions import COLOURS, Asked, a, misread
from scenes import INK_NAMES, Scene

from lmms_patch.magic.items import Step

PLANS: dict[str, tuple[str, ...]] = {
    "right": (),
    "read": ("read 0",),
    "place": ("place 0",),
    "place and read": ("place 0", "read 0"),
    "other": ("other 0",),
    "two": ("other 0", "read 0"),
    "two targets": ("place 0", "read 1"),
    "to the end": ("read 0", "found", "answer"),
    "from the start": ("goal", "read 0"),
    "no correction": ("read 0",),
}
"""Which parts of a chain are wrong; the last of them has no correction."""

GOALS = ("Okay, I need to find out {goal}.", "I am asked {goal}.", "Let me work out {goal}.")
SETTINGS = (
    "The picture is a sheet of light paper with {count} handwritten digits scattered over it.",
    "I see a light sheet on which {count} handwritten digits are spread out, most of them grey.",
    "It looks like a page of handwriting, where {count} single digits stand far apart.",
)
SEARCHES = {
    True: (
        "Colour is what sets them apart, so I look for colour first.",
        "Most of the ink is grey, so anything in colour should catch my eye.",
    ),
    False: (
        "I have to read the digits one after the other and see which one fits.",
        "Every digit has to be read, so I go through the sheet row by row.",
    ),
}
OTHERS = (
    "R{n} marks {thing}, which is not what I need.",
    "There is {thing} in R{n}, but the question does not ask about it.",
    "I notice {thing} in R{n} and move on.",
)
PLACES = (
    "I find the {name} in R{n}.",
    "The {name} stands in R{n}.",
    "Going over the sheet, I come to the {name} in R{n}.",
)
VALUES = (
    "In R{n} I read {a_value}.",
    "Looking closely at R{n}, I see {a_value}.",
    "The strokes in R{n} make {a_value}.",
)
INKS = (
    "In R{n} the ink is {colour}.",
    "Looking closely at R{n}, I see {colour} ink.",
    "The strokes in R{n} are {colour}.",
)
AGAIN = "Wait, let me look once more: the {name} is in R{n}, and it is {shown}."
CHECKS = (
    "I compare what I have read with the question.",
    "That is all that the question asks for.",
    "Nothing else on the sheet matters here.",
)


@dataclass(frozen=True)
class Part:
    """One part of a chain: its name in ``PLANS``, what is true, and what a slip would say ("" where none is written)."""

    name: str
    right: str
    wrong: str = ""


@dataclass(frozen=True)
class Sight:
    """What a chain speaks of. scene; asked; place: cell -> number of its box, from 1, of the digits that have one."""

    scene: Scene
    asked: Asked
    place: Mapping[int, int]

    def value(self, cell: int) -> int:
        """Return the digit in a cell."""
        return self.scene.digits[cell].value

    def colour(self, cell: int) -> str:
        """Return the name of its ink."""
        return INK_NAMES[self.scene.digits[cell].ink]

    def name(self, cell: int) -> str:
        """Return a target as the question names it."""
        return f"{self.colour(cell)} digit" if self.asked.by_colour else str(self.value(cell))

    def others(self) -> list[int]:
        """Cells of boxes that the question does not need."""
        return [cell for cell in sorted(self.place, key=lambda c: self.place[c]) if cell not in self.asked.targets]


def chain(sight: Sight, plan: str, rng: np.random.Generator) -> tuple[Step, ...]:
    """Write the steps, 6 to 12 of them, with the slips of one of ``PLANS``."""
    wrong = PLANS[plan]
    say = Sayer(sight, rng, "place 0" in wrong and "read 0" in wrong)
    parts = [say.goal(), say.setting()]
    targets = len(sight.asked.targets)
    if targets < 3 and rng.random() < 0.6:
        parts.append(say.search())
    parts += say.others(1 if targets > 1 else int(rng.integers("other 0" in wrong, 3)))
    for number, cell in enumerate(sight.asked.targets):
        parts += say.target(number, cell)
        if {f"place {number}", f"read {number}"} & set(wrong) and plan != "to the end":
            parts.append(say.again(cell))
    if plan == "to the end" or (targets == 1 and rng.random() < 0.5):
        parts.append(say.check())
    steps = [
        Step(part.wrong, False, part.right) if part.name in wrong else Step(part.right, True)
        for part in [*parts, *say.end()]
    ]
    if plan == "no correction":
        steps = [Step(step.text, step.correct) for step in steps]
    if missing := set(wrong) - {part.name for part in [*parts, *say.end()] if part.wrong}:
        raise AssertionError(f"plan {plan!r} cannot be told of {sight.asked.text!r}: no {missing}")
    return tuple(steps)


class Sayer:
    """Writes the parts of one chain; what is drawn depends on the generator alone."""

    def __init__(self, sight: Sight, rng: np.random.Generator, misplaced: bool):
        self.sight, self.rng = sight, rng
        self.wrong_cell = {cell: self.mistaken_for(cell) for cell in sight.asked.targets}
        self.misplaced = misplaced  # then the first target's value is that of the wrong digit

    def one(self, phrases: Sequence[str]) -> str:
        """One phrase of several."""
        return phrases[int(self.rng.integers(len(phrases)))]

    def mistaken_for(self, target: int) -> int:
        """Write the digit that a target is taken for: an adversarial one of another value and colour."""
        s = self.sight
        fit = [cell for cell in s.others() if s.value(cell) != s.value(target) and s.colour(cell) != s.colour(target)]
        if not fit:
            raise AssertionError("no digit differs from the target in value and colour")
        return fit[int(self.rng.integers(len(fit)))]

    def goal(self) -> Part:
        """Write what is asked; wrong: another colour."""
        asked = self.sight.asked
        phrase = self.one(GOALS)
        named = [colour for colour in COLOURS if f" {colour}" in asked.goal]
        wrong = ""
        if len(named) == 1 and asked.by_colour:
            wrong = phrase.format(goal=asked.goal.replace(named[0], next(c for c in COLOURS if c != named[0])))
        return Part("goal", phrase.format(goal=asked.goal), wrong)

    def setting(self) -> Part:
        """Write the whole sheet."""
        return Part("setting", self.one(SETTINGS).format(count=len(self.sight.scene.digits)))

    def search(self) -> Part:
        """How to go about it."""
        return Part("search", self.one(SEARCHES[self.sight.asked.by_colour]))

    def others(self, count: int) -> list[Part]:
        """Write a look at adversarial boxes; wrong: misread."""
        s, parts = self.sight, []
        targets = tuple(s.value(cell) for cell in s.asked.targets)
        numbers = (int(s.asked.answer),) if s.asked.answer.isdigit() else ()
        for number, cell in enumerate([s.others()[i] for i in self.rng.permutation(len(s.others()))[:count]]):
            phrase, colour = self.one(OTHERS), s.colour(cell)
            wrong = misread(s.value(cell), self.rng, (*targets, *numbers))
            told = [phrase.format(n=s.place[cell], thing=f"a {colour} {value}") for value in (s.value(cell), wrong)]
            parts.append(Part(f"other {number}", *told))
        return parts

    def target(self, number: int, cell: int) -> list[Part]:
        """Where a digit is, and what it shows."""
        s, other = self.sight, self.wrong_cell[cell]
        where, what = self.one(PLACES), self.one(VALUES if s.asked.by_colour else INKS)
        shown = [what.format(n=s.place[cell], a_value=a(s.value(cell)), colour=s.colour(cell))]
        if number == 0 and self.misplaced:
            shown.append(what.format(n=s.place[other], a_value=a(s.value(other)), colour=s.colour(other)))
        else:
            value = s.asked.slip[0] if number == 0 and s.asked.slip else misread(s.value(cell), self.rng)
            colour = next(c for c in COLOURS if c != s.colour(cell))
            shown.append(what.format(n=s.place[cell], a_value=a(value), colour=colour))
        places = [where.format(name=s.name(cell), n=s.place[at]) for at in (cell, other)]
        return [Part(f"place {number}", *places), Part(f"read {number}", *shown)]

    def again(self, cell: int) -> Part:
        """Write that a slip is noticed."""
        s = self.sight
        shown = a(s.value(cell)) if s.asked.by_colour else s.colour(cell)
        return Part("again", AGAIN.format(name=s.name(cell), n=s.place[cell], shown=shown))

    def check(self) -> Part:
        """Write a pause before the end."""
        return Part("check", self.one(CHECKS))

    def end(self) -> list[Part]:
        """Write what follows, and the answer."""
        asked = self.sight.asked
        said, answer = (asked.slip[1], asked.slip[2]) if asked.slip else ("", "")
        return [
            Part("found", asked.found, said),
            Part("answer", f"The answer is {asked.answer}.", f"The answer is {answer}." if answer else ""),
        ]
