"""The studies of benchmarks/studies with few runs: their targets, widened by four standard errors of the runs.

And their made-up models by hand.
"""

import importlib.util
import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.places import ROOT
from tests.sizes import size

STUDIES = ROOT / "benchmarks" / "studies"


def load(name):
    spec = importlib.util.spec_from_file_location(f"study_{name}", STUDIES / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


null, gate, intervals = (load(name) for name in ("null", "gate", "intervals"))


def within(share, runs, low, high):
    below, above = (4 * math.sqrt(p * (1 - p) / runs) for p in (low, high))
    return low - below <= share <= high + above


# --- the measured null ----------------------------------------------------------------------------


@pytest.mark.parametrize("world", null.KEPT[:: size(5, 1)], ids=lambda world: f"{world.name}, {world.truth:g}")
def test_made_up_models_are_right_as_often_as_they_should_be(world):
    """FIP 0.8 in all; and 1 − κ_MPP / κ_FIP from the shares themselves is the truth (Monte Carlo, 60,000 docs)."""
    made = null.answers(np.random.default_rng(0), replace(world, size=1), 60_000)
    full, best = made.right(made.seen[:, :1]).mean(), made.right(made.seen[:, 1:]).max(axis=1).mean()
    full0, best0 = made.right(made.wrong[:, :1]).mean(), made.right(made.wrong[:, 1:]).max(axis=1).mean()
    assert full == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 60_000))
    if not world.others and world.habit != "half repeat":  # where docs of two sorts are alike
        index = 1 - (best - best0) / (1 - best0) / ((full - full0) / (1 - full0))
        assert index == pytest.approx(null.truth_of(world), abs=0.15 if best0 < 0.95 else 0.3)


FEW = [
    *(
        world
        for world in null.KEPT
        if world.truth == 0.5
        and world.name.startswith(("guesses anew on each", "always yes", "docs that know", "the text"))
    ),
    next(world for world in null.KEPT if world.cells_fail),
]


@pytest.mark.parametrize("world", FEW[:: size(2, 1)], ids=lambda world: world.name)
def test_the_measured_null_finds_what_was_planted(world):
    runs = size(12, 60)
    found = null.study(world, "by habit", runs, 7)
    assert abs(found.bias) <= null.BIAS + 4 * found.width / (2 * 1.96) / math.sqrt(runs)
    assert within(found.covered, runs, null.LOW, 1)
    assert found.none < 0.2


def test_yes_or_no_with_nine_guesses_has_no_index():
    (world, *_) = (world for world in null.LITTLE if world.name.startswith("guesses anew, yes/no"))
    assert null.study(world, "by habit", size(5, 20), 7).none == 1


KNOWN_TO_FAIL = (
    "3 options",
    "by the place of the cell; abstains .7",
    "guesses anew on cells, one guess a doc on wrong pictures, yes/no",
)
"""Worlds of docs/statistics.md in which the index misses its target, or is left out in too few runs."""


@pytest.mark.parametrize("world", null.UNLIKE[:: size(4, 1)], ids=lambda world: f"{world.name}, {world.truth:g}")
def test_where_wrong_pictures_are_answered_otherwise(world):
    """The index with equal weights is wrong there; the one by habit is right, or is left out.

    And the test says that habits differ.
    """
    runs = size(10, 60)
    found, alike = null.study(world, "by habit", runs, 7), null.study(world, "alike", size(3, 6), 7)
    assert abs(alike.bias) > 0.1
    assert found.unlike > 0.7 - 1 / math.sqrt(runs) or found.none > 0.7
    if not any(name in world.name for name in KNOWN_TO_FAIL):
        right = abs(found.bias) <= null.BIAS + 4 * found.width / (2 * 1.96) / math.sqrt(runs) and within(
            found.covered, runs, null.LOW_IF_UNLIKE, 1
        )
        assert found.none > 0.8 or right


@pytest.mark.parametrize("world", null.HIDDEN, ids=lambda world: world.name)
def test_what_no_run_can_tell_is_wrong_and_the_docs_say_so(world):
    """If a change made these right, docs/statistics.md would have to say so."""
    found = null.study(world, "by habit", size(5, 12), 7)
    assert found.bias < -0.1
    assert found.unlike < 0.5


# --- the gate -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [i for i, row in enumerate(gate.ROWS) if row.target and row.target[0] == 0],
    ids=lambda i: gate.ROWS[i].name,
)
def test_a_model_that_knows_nothing_does_not_pass(place):
    runs = size(6, 30)
    assert within(gate.passes(place, 60, runs, 7), runs, 0, gate.KNOWS_NOTHING)


@pytest.mark.parametrize(
    "place", [i for i, row in enumerate(gate.ROWS) if row.target == gate.MUST_PASS and "anew" not in row.name]
)
def test_a_model_that_looks_passes(place):
    runs = size(2, 12)
    assert within(gate.passes(place, 1000, runs, 7), runs, gate.LOOKS, 1)


def test_without_wrong_pictures_and_without_a_blind_run_text_priors_pass():
    """What the gate cannot do, and docs/statistics.md says so."""
    (place,) = (i for i, row in enumerate(gate.ROWS) if "neither wrong pictures" in row.name)
    assert gate.passes(place, 200, size(4, 8), 7) == 1


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "docs", "means"),
    [("independent", 50, (0.99, 0.995)), ("even clusters", 300, (0.6, 0.1)), ("power law", 300, (0.9, 0.95))],
)
def test_intervals_hold_the_truth(world, docs, means):
    runs = size(30, 150)
    found = intervals.cell(intervals.WORLDS[world], docs, means, runs, 7)
    assert all(within(found.held["after", name], runs, intervals.LOW, 1) for name in intervals.NUMBERS)


def test_docs_of_a_cluster_that_are_taken_for_independent_are_too_sure():
    """1,000 docs in clusters of 18 with a correlation of 0.95: with clusters 93 % and more, without far less."""
    world, stream, held = (
        replace(intervals.WORLDS["even clusters"], icc=0.95),
        np.random.default_rng(7),
        {True: 0, False: 0},
    )
    sizes, runs = np.full(56, 18), size(40, 100)
    for _ in range(runs):
        rows = np.column_stack([intervals.scores(stream, sizes, world, (0.6, 0.75)), np.ones(sizes.sum())])
        for together in held:
            low, high = intervals.after(rows, np.repeat(np.arange(56), sizes) if together else None, stream)["RCI"]
            held[together] += low <= 1 - 0.75 / 0.6 <= high
    assert within(held[True] / runs, runs, 0.93, 1)
    assert held[False] < 0.75 * runs
