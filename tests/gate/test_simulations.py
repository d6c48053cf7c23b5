"""Runs with a known truth: how often a gate raises a false alarm, and how often it catches a real drop.

The studies are those of benchmarks/studies/rules.py, which judges arrays in place of files: a test below holds it to
the command line.
"""

import importlib.util
import math
import sys
from statistics import NormalDist

import numpy as np
import pytest

from lmms_patch.gate import rules
from lmms_patch.gate.limits import smallest
from lmms_patch.stats import paired
from tests.gate.running import gate, rules_file
from tests.making import lean
from tests.places import ROOT
from tests.sizes import size

FILE = ROOT / "benchmarks" / "studies" / "rules.py"


def load():
    spec = importlib.util.spec_from_file_location("rules_study", FILE)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


study = load()
NO_MARGIN = rules.parse({"schema": 1, "rules": [{"name": "a", "metric": "fip", "max_drop": 0}]})


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    """The number of draws is for small p-values; the ends of 95 % intervals do not need it."""
    monkeypatch.setattr(paired, "DRAWS", 2_000)
    monkeypatch.setattr(study, "DRAWS", 500)


@pytest.mark.parametrize("world", study.WORLDS)
@pytest.mark.parametrize("drop", [0.0, 0.05])
def test_the_study_says_what_the_command_line_says(tmp_path, capsys, world, drop):
    """The same answers, as arrays and as the files of two runs; only the draws of the bootstrap are others."""
    two = study.pair(world, 200, drop, np.random.default_rng(1))
    for name, answers in (("old", two.old), ("new", two.new)):
        lean.write(tmp_path / name, [lean.task(answers.full, answers.best, clusters=two.clusters, chance=0.0)])
    ended = gate(capsys, tmp_path, tmp_path / "new", "model-regression", tmp_path / "old")
    for name, metric in (("fip", "fip"), ("rci2", "|rci2|")):
        ours, theirs = study.verdicts(two)[name], ended.of(metric=metric)
        assert (ours.verdict, ours.level, ours.primary) == (theirs["verdict"], theirs["level"], theirs["primary"])
        assert ours.difference.value == pytest.approx(theirs["difference"]["value"])
        width = ours.difference.high - ours.difference.low
        assert (ours.difference.low, ours.difference.high) == pytest.approx(
            (theirs["difference"]["low"], theirs["difference"]["high"]), abs=0.1 * width
        )


@pytest.mark.parametrize("world", study.WORLDS)
def test_false_alarms_keep_their_targets(world):
    """No change: at most 1 % of builds fail; a drop of 2 points, which is the margin: at most 2.5 %.

    The same answers: none but pass.
    """
    runs = size(40, 100)
    for row in study.study(runs, 1, [world], size((300,), (150, 300)), (0.0, 0.02)):
        assert not row.missed, study.line(row)
        if world == "deterministic" and not row.drop:
            assert row.score == row.index == {"pass": runs}


def test_a_drop_of_five_points_is_caught_as_often_as_the_formula_says():
    """Power Φ((0.05 − margin) / SE − z): 0.67 for independent answers at n = 1,000 and level 0.95, where 0.058 is detectable with 80 %.

    With the margin of the shipped rules, 2 points, and their level, 0.975, z = 2.24: 0.21.
    """
    se = math.sqrt((0.7 * 0.3 + 0.65 * 0.35) / 1000)
    found, runs = {name: [] for name in ("no margin", "shipped")}, size(60, 200)
    for run in range(runs):
        two = study.pair("independent", 1000, 0.05, np.random.default_rng([2, run]))
        found["no margin"].append(study.verdicts(two, NO_MARGIN)["fip"])
        found["shipped"].append(study.verdicts(two)["fip"])
    for name, margin, level, expected in (("no margin", 0.0, 0.95, 0.667), ("shipped", 0.02, 0.975, 0.212)):
        power = NormalDist().cdf((0.05 - margin) / se - NormalDist().inv_cdf((1 + level) / 2))
        assert power == pytest.approx(expected, abs=0.005)
        caught = sum(one.verdict == "fail" for one in found[name])
        assert caught == pytest.approx(runs * power, abs=3 * math.sqrt(runs * power * (1 - power)))
    assert np.mean([smallest(one.number, one.level) for one in found["no margin"]]) == pytest.approx(
        2.8016 * se, rel=0.02
    )


def test_a_drop_of_the_detectable_size_beyond_the_margin_is_caught_in_four_of_five_runs():
    """Docs are hard or easy for both runs, as in practice, which leaves less to the difference than two samples would."""
    margin = rules.parse({"schema": 1, "rules": [{"name": "a", "metric": "fip", "max_drop": 0.01, "margin": 0.01}]})
    said = [
        study.verdicts(study.pair("easy and hard", 1000, 0.0, np.random.default_rng([3, run])), margin)["fip"]
        for run in range(size(10, 20))
    ]
    detectable, runs = float(np.mean([smallest(one.number, one.level) for one in said])), size(60, 200)
    caught = [
        study.verdicts(study.pair("easy and hard", 1000, 0.02 + detectable, np.random.default_rng([4, run])), margin)[
            "fip"
        ].verdict
        for run in range(runs)
    ]
    assert caught.count("fail") == pytest.approx(0.8 * runs, abs=3 * math.sqrt(runs * 0.8 * 0.2))


def test_a_guesser_never_passes_a_valid_gate(tmp_path, capsys):
    """The gate asks for two standard errors above chance, where a guesser comes in 2.3 % of runs: none of these 20 did."""
    config = rules_file(tmp_path, {"require": "valid gate"})
    for i in range(20):
        full, best = lean.scored(300, 0.25, 0.25, i)
        lean.write(tmp_path / "run", [lean.task(full, best)])
        ended = gate(capsys, tmp_path, tmp_path / "run", config)
        assert ended.status == 1
        assert "near chance" in ended.of()["reason"]
