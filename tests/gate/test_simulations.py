"""Runs with a known truth: how often a gate raises a false alarm, and how often it catches a real drop.

The studies are those of benchmarks/studies/rules.py, which judges arrays in place of files: a test below holds it to
the command line.
"""

import importlib.util
import sys

import numpy as np
import pytest

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
    ours, theirs = study.verdict(two), ended.of(metric="fip")
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
            assert row.score == {"pass": runs}


@pytest.mark.parametrize("docs", size((300,), (300, 1000)))
def test_a_change_of_guesses_fails_no_build_and_a_loss_of_the_whole_image_does(docs):
    """The rule on the share that the whole image answers; a loss of .2 is found in three of four builds."""
    found = {what: (fails, missed) for what, fails, _, missed in study.shares(size(20, 200), docs)}
    assert not any(missed for _, missed in found.values()), found
    assert min(fails for what, (fails, _) in found.items() if what.startswith(".2 fewer")) >= 0.75, found


def test_a_guesser_never_passes_a_valid_gate(tmp_path, capsys):
    """The gate asks for two standard errors above chance, where a guesser comes in 2.3 % of runs: none of these 20 did."""
    config = rules_file(tmp_path, {"require": "valid gate"})
    for i in range(20):
        full, best = lean.scored(300, 0.25, 0.25, i)
        lean.write(tmp_path / "run", [lean.task(full, best)])
        ended = gate(capsys, tmp_path, tmp_path / "run", config)
        assert ended.status == 1
        assert "near chance" in ended.of()["reason"]
