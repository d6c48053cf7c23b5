"""Is the composition of a benchmark true? Made-up models of which it is known what solves each doc, held against ``stats.composition``.

    python benchmarks/studies/composition.py [--runs 40] [--docs 1000]

Each line: a world, the worst bias of the four shares over six mixtures, and in percent how often their intervals hold the
truth, nothing is said, text and cell are told as one, a sentence ("most of what is solved needs ...") is false, and one that
three quarters bear out is said; for runs that ask all docs again, and for those that ask 300. A star: a target is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lmms_patch.stats.composition import (
    CELL,
    GOLD,
    NONE,
    TEXT,
    UNSOLVED,
    Asked,
    Composition,
    compose,
    kinds_of,
)
from lmms_patch.stats.resample import Ints

BIAS, BIAS_OF_SOME, HELD, MOSTLY = 0.05, 0.06, 0.93, 0.9
"""Targets: the worst bias where all docs are asked again, and where 300 are; how often intervals hold; or how often nothing is said."""
MIXTURES = {
    "thirds": (0.27, 0.27, 0.26, 0.2),
    "mostly whole": (0.08, 0.08, 0.64, 0.2),
    "text alone": (0.8, 0.0, 0.0, 0.2),
    "cells alone": (0.0, 0.8, 0.0, 0.2),
    "whole alone": (0.0, 0.0, 0.8, 0.2),
    "nothing is solved": (0.0, 0.0, 0.0, 1.0),
}
WORLDS = {
    "guesses": {},
    "two options, eight times": {"options": 2, "times": 8},
    "three options, five times": {"options": 3, "times": 5},
    "guesses, silent on wrong images": {"wrong": "silent"},
    "one letter, silent on wrong images": {"own": "letter", "wrong": "silent"},
    "cells mislead": {"mislead": True},
    "cells half know": {"half": 0.1},
    "one in twenty answers slips": {"sure": 0.95},
    "one in ten answers slips": {"sure": 0.9},
    "letter of the doc": {"own": "letter"},
}
"""Worlds in which the shares are right."""
BROKEN = {
    "five values of open questions, said again": {"options": 5, "own": "content", "cells": 4},
    "cells half know, .2": {"half": 0.2},
    "cells half know, .3": {"half": 0.3},
    "cells half know, silent on wrong images": {"half": 0.1, "wrong": "silent"},
    "two options, four cells that half know": {"options": 2, "times": 8, "cells": 4, "half": 0.1},
    "two options, guesses, silent on wrong images": {"options": 2, "times": 8, "wrong": "silent"},
    "cells narrow to two options": {"narrow": True},
    "words are known on the doc's own image alone": {"hidden": True},
    "one content a cell, silent on wrong images": {"own": "content", "wrong": "silent"},
    "one content a cell, on wrong images too": {"own": "content"},
    "words tilt guesses to the gold": {"tilt": 0.4},
}
"""Worlds that break an assumption."""


@dataclass(frozen=True)
class World:
    """How a model answers.

    Attributes:
        docs, options, cells, times: sizes; ``times``: how often a view is asked.
        own, wrong: how a view answers that does not know: a guess ``anew`` each time, one ``content`` again and again, one
            ``letter``, or ``silent``; ``wrong``: on wrong and grey images, where that is otherwise.
        half: how often a cell that does not know says the gold all the same.
        sure: how often a view that knows says so.
        hidden: whether words are known on the doc's own image alone.
        mislead: whether cells that do not know name one wrong option together.
        narrow: whether a cell that does not know guesses between the gold and one wrong option, in half of the docs.
        tilt: how often a guess, on any image, is drawn to the gold.
        on_wrong: how many docs are asked on wrong images.
    """

    docs: int = 1000
    options: int = 4
    cells: int = 9
    times: int = 4
    own: str = "anew"
    wrong: str = ""
    half: float = 0.0
    sure: float = 1.0
    hidden: bool = False
    mislead: bool = False
    narrow: bool = False
    tilt: float = 0.0
    on_wrong: int = 300


def asked(rng: np.random.Generator, mix: Sequence[float], **world: Any) -> tuple[Asked, Ints, Ints]:
    """Return what a model answers that solves a share of the docs by each of four ways, as ``compose`` takes it.

    Args:
        rng: a generator.
        mix: shares of docs that need nothing, a cell, the whole image, or are unsolved.
        world: see ``World``.
    """
    of = World(**world)
    docs, options, cells, times = of.docs, of.options, of.cells, of.times
    need, gold, shape = rng.choice(4, docs, p=mix), rng.integers(0, options, docs), (docs, 1 + cells, times)
    golds, text = np.broadcast_to(gold[:, None, None], shape), (need == TEXT)[:, None, None]
    at = 1 + rng.integers(0, cells, docs)
    ways = {
        "anew": lambda: rng.integers(0, options, shape),
        "silent": lambda: np.full(shape, NONE),
        "content": lambda: np.broadcast_to(rng.integers(0, options, (*shape[:2], 1)), shape),
        "letter": lambda: np.broadcast_to((-np.arange(times)) % options, shape),
    }
    said, donors = ways[of.own]().copy(), [ways[of.wrong or of.own]() for _ in range(times)]
    if of.mislead:
        said[:, 1:] = (gold + rng.integers(1, options, docs))[:, None, None] % options
    else:
        said[:, 1:] = np.where(rng.random(shape) < of.half, golds, said)[:, 1:]
    if of.narrow:
        two = np.where(rng.random(shape) < 0.5, golds, ((gold + 1) % options)[:, None, None])
        said[:, 1:] = np.where((rng.random(docs) < 0.5)[:, None, None], two, said)[:, 1:]
    grey_guess = ways[of.wrong or of.own]()[:, 0]
    if of.tilt:
        said, *donors = (np.where(rng.random(shape) < of.tilt, golds, one) for one in (said, *donors))
        grey_guess = np.where(rng.random(grey_guess.shape) < of.tilt, gold[:, None], grey_guess)
    grey = np.where(text[:, 0] & (not of.hidden), gold[:, None], grey_guess)
    views = np.arange(1 + cells)
    whole = (views == 0)[:, None] & (need < UNSOLVED)[:, None, None]
    cell = ((need == CELL)[:, None] & (views == at[:, None]))[..., None]
    said = np.where((text | whole | cell) & (rng.random(shape) < of.sure), golds, said)
    donors = [np.where(text & (rng.random(shape) < of.sure) & (not of.hidden), golds, one) for one in donors]
    words = np.stack([one[:, 0, time] for time, one in enumerate(donors)], 1)

    def numbered(answers: Ints) -> Ints:  # the gold is 0
        own_gold = gold.reshape(-1, *[1] * (answers.ndim - 1))
        return np.where(answers == own_gold, GOLD, np.where(answers == 0, own_gold, answers))

    even = np.full((docs, options), 1 / options)
    found = Asked(
        *(numbered(one) for one in (said, donors[0], words, grey)), np.arange(docs) < of.on_wrong, even, even > 0
    )
    return found, kinds_of(said[:, :, 0] == gold[:, None]), np.arange(docs)


def sampled(found: Asked, kinds: Ints, rows: Ints) -> tuple[Asked, Ints, Ints]:
    """Return the same, where the docs on wrong images alone were asked again."""
    return found.where(found.on_wrong), kinds, rows[found.on_wrong]


def named(found: Composition) -> int | None:
    """Return the class that a sentence names: the one whose interval lies above half of what is solved at most."""
    most = (1 - (found.shares[UNSOLVED].low or 0.0)) / 2
    return next((which for which, one in enumerate(found.shares[:UNSOLVED]) if (one.low or 0.0) > most), None)


@dataclass
class Row:
    """A line of the table: a world, with all docs asked again or 300.

    Attributes:
        off: the worst bias of a share over the mixtures.
        held: how often intervals hold the truth.
        none: how often nothing is said.
        apart: how often text and cell are told as one.
        false: how often a sentence names a class that less than half of what is solved needs.
        found: how often a sentence names a class that three quarters of it need.
    """

    off: float
    held: float
    none: float
    apart: float
    false: float
    found: float

    def __str__(self) -> str:
        """Print the figures, those that are no bias in percent; a dash where there are none."""
        rest = (self.held, self.none, self.apart, self.false, self.found)
        return " ".join(
            [
                f"{self.off:5.2f}" if not math.isnan(self.off) else "    -",
                *(f"{100 * one:4.0f}" if not math.isnan(one) else "   -" for one in rest),
            ]
        )


def row(runs: int, docs: int, world: dict[str, Any], part: Any) -> Row:
    """Return the line of a world."""
    off, held, none, apart, false, found = [], [], [], [], [], []
    for mix in MIXTURES.values():
        made = [
            compose(*part(*asked(np.random.default_rng([8, run]), mix, docs=docs, **world)), seed=run)
            for run in range(runs)
        ]
        known = [one for one in made if isinstance(one, Composition)]
        none.append(1 - len(known) / runs)
        apart.append(np.mean([not one.told_apart for one in known] or [False]))
        solved, said = sum(mix[:UNSOLVED]), [named(one) for one in known]
        false.append(sum(one is not None and mix[one] <= solved / 2 for one in said) / runs)
        if solved and max(mix[:UNSOLVED]) >= 0.75 * solved:
            found.append(sum(one is not None and mix[one] >= 0.75 * solved for one in said) / runs)
        if len(known) > runs / 2:
            of: Any = np.array([[(s.value, s.low, s.high) for s in one.shares] for one in known])
            off.append(np.abs(np.median(of[..., 0], axis=0) - mix).max())
            held.append(((of[..., 1] <= np.maximum(mix, 0.005)) & (mix <= of[..., 2])).mean())
    nothing = float("nan")
    means = (float(np.mean(of)) for of in (none, apart, false, found))
    return Row(max(off, default=nothing), float(np.mean(held)) if held else nothing, *means)


def table(runs: int, docs: int) -> Iterator[tuple[str, bool]]:
    """Yield the lines of the table, and whether each world in which the shares are to be right reaches its target."""
    for name, world in {**WORLDS, **BROKEN}.items():
        every, some = row(runs, docs, world, lambda *given: given), row(runs, docs, world, sampled)
        right = all(
            (not one.off > off and not one.held < HELD) or one.none > MOSTLY
            for one, off in ((every, BIAS), (some, BIAS_OF_SOME))
        )
        yield f"{name:42s} {every}   {some}{'' if right or name in BROKEN else '  *'}", right or name in BROKEN


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--docs", type=int, default=1000)
    parser.add_argument("--tiny", action="store_true", help="one run of 200 docs")
    given = parser.parse_args()
    print(f"{'':42s}   all docs asked again            300 docs")
    print(f"{'':42s} {(head := ' bias held none  T|C false found')}   {head}")
    missed = 0
    for line, right in table(1, 200) if given.tiny else table(given.runs, given.docs):
        print(line, flush=True)
        missed += not right
    return 1 if missed and not given.tiny else 0


if __name__ == "__main__":
    sys.exit(main())
