"""The studies of benchmarks/studies with few runs: their targets, widened by four standard errors of the runs."""

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


gate, intervals = (load(name) for name in ("gate", "intervals"))


def within(share, runs, low, high):
    below, above = (4 * math.sqrt(p * (1 - p) / runs) for p in (low, high))
    return low - below <= share <= high + above


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
