"""The profiles' benchmarks on a handful of docs each, with every number derived by hand: those answered by letters.

In each case the cell in place ``doc % 4`` of a 2x2 grid gets the right answer, the other three a wrong one; but for the
docs in ``never``, no cell of which is right. The full image gets the right answer, but for the docs in ``off``. So the
best cell is known, and FIP and MPP can be counted; the floors are counted from the golds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.harness import standins
from tests.harness.standins import Rows, StandIn, noise
from tests.harness.told import rows_of, with_rows


@dataclass(frozen=True)
class Case:
    """One benchmark.

    Attributes:
        task: the wrapped task.
        rows: the docs, each with its image.
        right: what the model says where it is right, by doc.
        wrong: what it says elsewhere, by doc.
        off, never: see the module; the questions are asked of a 2x2 grid.
        asked: answer class and gold of each doc, as read off the real prompt.
        floors: those that can be counted.
        chance: the floor that decides, and its value.
        fip, mpp: of the primary metric, over the docs that the grid uses.
        others: other metrics.
        ceiling, gold_below, clusters, form, gate: as in the analysis.
        gone: docs that the grid does not use.
        standin: None where the task reads files of its own.
        base: the native task, where its scorer gives numbers that can be asked for one by one.
    """

    task: str
    rows: Rows
    right: list[str]
    wrong: list[str]
    asked: list[str]
    floors: dict[str, float]
    chance: tuple[str, float]
    fip: float
    mpp: float
    form: str | None
    off: frozenset[int] = frozenset({0})
    never: frozenset[int] = frozenset()
    others: dict[str, float] = field(default_factory=dict)
    ceiling: float | None = 1.0
    gold_below: int = 0
    clusters: int | None = None
    gate: int | None = 1
    gone: frozenset[int] = frozenset()
    standin: StandIn | None = None
    base: str | None = None

    def says(self, doc: int, view: int) -> str:
        good = doc not in self.off if view == 0 else doc not in self.never and view - 1 == doc % 4
        return self.right[doc] if good else self.wrong[doc]


def ai2d() -> Case:
    """3, 4, 5, 3, ... options, golds A B C A ...: A is right four times of ten, a guess (4/3 + 3/4 + 3/5) / 10."""
    standin = standins.ai2d()
    texts = ["A. lung", "B. heart", "C. leaf"]
    return Case(
        "ai2d_rci2",
        rows_of(standin),
        right=[texts[i % 3] for i in range(10)],  # lmms-eval's filter takes the letter before the full stop
        wrong=["none of these"] * 10,
        asked=[f"mc{3 + i % 3} {'ABC'[i % 3]}" for i in range(10)],
        floors={"uniform": (4 / 3 + 3 / 4 + 3 / 5) / 10, "constant": 0.4, "stratum": 0.4},
        chance=("stratum", 0.4),
        never=frozenset({1, 2}),
        fip=0.9,
        mpp=0.8,
        form="mean",
        standin=standin,
        base="ai2d",
    )


def blink() -> Case:
    """Golds A B A A A C A B A A, 2, 3, 4, 2, ... options: (A) is right seven times of ten, a guess (4/2 + 3/3 + 3/4) / 10.

    0.9 is not above 0.7 by two standard errors (one: (0.7 · 0.3 / 10) ** 0.5 = 0.145), but it is above a guess: near
    chance. Every other doc has a second image.
    """
    standin = standins.blink_counting()
    rows = [{**row, "image_2": noise(1250 + i) if i % 2 else None} for i, row in enumerate(rows_of(standin))]
    golds = "ABAAACABAA"
    return Case(
        "blink_counting_rci2",
        rows,
        right=[f"The answer is ({gold})." for gold in golds],
        wrong=[f"({'B' if gold == 'A' else 'A'})" for gold in golds],
        asked=[f"mc{2 + i % 3} ({gold})" for i, gold in enumerate(golds)],
        floors={"uniform": 0.375, "constant": 0.7, "stratum": 0.7},
        chance=("stratum", 0.7),
        never=frozenset({1, 2}),
        fip=0.9,
        mpp=0.8,
        form="mean",
        gate=0,
        standin=with_rows(standin, rows),
        base="blink_counting",
    )


def mmmu() -> Case:
    """Docs 3 and 7 are open (a number, a text), the others have three options (five docs) or four (three).

    A guess: (5/3 + 3/4) of the eight; the two open docs take the best constant of their format, their own gold: 2. The
    constant A is right for docs 0, 6 and 9 (C as often; the first in the alphabet counts), with the open ones 5 of 10.
    Among the others of its kind no letter has the lead that is a doc's own: only the open ones are right by it.
    """
    standin = standins.mmmu()
    golds = ["A", "B", "C", "8.5", "B", "C", "A", "$24 million", "C", "A"]
    return Case(
        "mmmu_val_rci2",
        rows_of(standin),
        right=["so (A) it is", "B", "C.", "The answer is 8.50", "B", "(C)", "A", "It is $24 million.", "C", "A"],
        wrong=[("none of these" if len(gold) > 1 else "B" if gold == "A" else "A") for gold in golds],
        asked=[
            f"{'number' if i == 3 else 'open' if i == 7 else f'mc{3 + i % 2}'} {gold}" for i, gold in enumerate(golds)
        ],
        floors={"uniform": (5 / 3 + 3 / 4 + 2) / 10, "constant": 0.5, "stratum": 0.2},
        chance=("constant", 0.5),
        never=frozenset({1, 3}),
        fip=0.9,
        mpp=0.8,
        form="mean",
        gate=0,
        standin=standin,
    )


def mmstar() -> Case:
    """A mean over the 12 values of l2_category: six of one doc (docs 0 to 5), six of two (docs i and i + 6, i from 6 to 11).

    Doc 0 is a category: FIP 11/12. Doc 1 is one too, doc 7 is half of one: MPP (12 - 1.5)/12. The constant A is right
    for docs 0 and 4, each a category, and 8, 12 and 16, each half of one (B as often): 3.5/12. A and B are five each:
    without the doc itself the other leads.
    """
    standin = standins.mmstar()
    golds = ["ABCD"[i % 4] for i in range(18)]
    return Case(
        "mmstar_rci2",
        rows_of(standin),
        right=golds,
        wrong=["I cannot tell"] * 18,
        asked=[f"mc4 {gold}" for gold in golds],
        floors={"constant": 3.5 / 12, "stratum": 0.0},
        chance=("constant", 3.5 / 12),
        never=frozenset({1, 7}),
        fip=11 / 12,
        mpp=10.5 / 12,
        others={
            "coarse perception": 0.5,
            "fine-grained perception": 1.0,
            "fine-grained perception_mpp2": 0.25,
            "math_mpp2": 1.0,
        },
        form="macro",
        standin=standin,
        base="mmstar",
    )


def realworldqa() -> Case:
    """Six docs with three letters (golds A B C A B C), yes and no, a number, a word.

    The image of doc 4 is one pixel wide.

    A guess: 6/3 + 2/2, and the two open docs take their own gold: 5 of 10. Constants: two of the six letters, yes or
    no, and the two: 5 of 10. Without the doc itself its own letter or word never leads, so that only the two are right
    by their kind.
    """
    standin = standins.realworldqa()
    golds = ["A", "B", "C", "Yes", "A", "2", "Downhill", "B", "No", "C"]
    kinds = [
        "yesno" if gold in ("Yes", "No") else "number" if gold == "2" else "open" if gold == "Downhill" else "mc3"
        for gold in golds
    ]
    return Case(
        "realworldqa_rci2",
        rows_of(standin),
        right=["A", "B. Right", "(C)", "yes.", "A", "2", "downhill", "B", "No", "C"],
        wrong=["I see nothing"] * 10,
        asked=[f"{kind} {gold}" for kind, gold in zip(kinds, golds, strict=True)],
        floors={"uniform": 0.5, "constant": 0.5, "stratum": 0.2},
        chance=("constant", 0.5),
        never=frozenset({1, 2}),
        fip=8 / 9,
        mpp=7 / 9,
        form="mean",
        others={"exact_match": 0.9},
        gone=frozenset({4}),
        gate=0,
        standin=standin,
        base="realworldqa",
    )


def scienceqa() -> Case:
    """Two options and gold A, three options and gold B, in turn: A is right five times of ten, a guess (5/2 + 5/3) / 10. Docs 2 and 7 have no image.

    A and B are five each: without the doc itself the other leads.
    """
    standin = standins.scienceqa_img()
    return Case(
        "scienceqa_img_rci2",
        rows_of(standin),
        right=["A", "B. fish"] * 5,
        wrong=["I do not know"] * 10,
        asked=[f"mc{2 + i % 2} {'AB'[i % 2]}" for i in range(10)],
        floors={"uniform": (5 / 2 + 5 / 3) / 10, "constant": 0.5, "stratum": 0.0},
        chance=("constant", 0.5),
        never=frozenset({1, 3}),
        fip=7 / 8,
        mpp=6 / 8,
        form="mean",
        others={"exact_match": 0.9},
        gone=frozenset({2, 7}),
        gate=0,
        standin=standin,
        base="scienceqa_img",
    )
