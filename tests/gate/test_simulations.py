"""Runs with a known truth: how often a gate raises a false alarm, and how often it catches a real drop."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from lmms_patch.stats import paired
from tests.gate import lean
from tests.gate.running import gate, rules_file


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    """The number of draws is for small p-values; the ends of 95 % intervals do not need it."""
    monkeypatch.setattr(paired, "DRAWS", 2_000)


def pairs(count, n, before, after, tmp_path, seed):
    """Pairs of runs on the same docs, each with its own noise; chance to be right on full image and best cell of each run."""
    for i in range(count):
        stream = np.random.default_rng([seed, i])
        for name, chances in (("old", before), ("new", after)):
            lean.write(tmp_path / name, [lean.task(*lean.scored(n, *chances, 0, stream.random((2, n))))])
        yield tmp_path / "new", tmp_path / "old"


def test_two_runs_of_the_same_model_pass(tmp_path, capsys):
    """Two rules with an interval, each at level 0.975 and with one side: 1.25 % each, 4 of 150 in expectation, and 5 % asked for."""
    ended = [gate(capsys, tmp_path, new, "model-regression", old) for new, old in pairs(150, 150, (0.7, 0.6), (0.7, 0.6), tmp_path, 1)]
    assert sum(one.status == 0 for one in ended) >= 142


def test_a_drop_of_five_points_is_caught_as_often_as_the_formula_says(tmp_path, capsys):
    """Power Φ(0.05 / SE − 1.96): 0.67 for independent noise at n = 1,000, where 0.058 is detectable with 80 %."""
    config = rules_file(tmp_path, {"metric": "fip", "max_drop": 0})
    ended = [gate(capsys, tmp_path, new, config, old) for new, old in pairs(30, 1000, (0.7, 0.6), (0.65, 0.6), tmp_path, 2)]
    se = math.sqrt((0.7 * 0.3 + 0.65 * 0.35) / 1000)
    power = NormalDist().cdf(0.05 / se - 1.96)
    assert power == pytest.approx(0.667, abs=0.005)
    assert sum(one.status == 1 for one in ended) >= 30 * power - 2 * math.sqrt(30 * power * (1 - power))
    detectable = [one.of()["detectable"] for one in ended]
    assert np.mean(detectable) == pytest.approx(2.8016 * se, rel=0.02)


def test_a_drop_of_the_detectable_size_is_caught_in_four_of_five_runs(tmp_path, capsys):
    """Docs are hard or easy for both runs, as in practice: half of them are answered alike, which makes 0.05 detectable at n = 1,000."""
    config, caught, count, detectable = rules_file(tmp_path, {"metric": "fip", "max_drop": 0}), 0, 30, []
    drop = 2.8016 * math.sqrt(0.5 * (0.7 * 0.3 + 0.6 * 0.4) / 1000)  # on that half; 0.042 over it, so half of it over all
    for i in range(count):
        stream = np.random.default_rng([3, i])
        same, same_best = lean.scored(500, 0.7, 0.6, 0, stream.random((2, 500)))
        for name, chance in (("old", 0.7), ("new", 0.7 - 2 * drop)):
            own, own_best = lean.scored(500, chance, 0.6, 0, stream.random((2, 500)))
            lean.write(tmp_path / name, [lean.task(np.concatenate([same, own]), np.concatenate([same_best, own_best]))])
        ended = gate(capsys, tmp_path, tmp_path / "new", config, tmp_path / "old")
        caught += ended.status == 1
        detectable.append(ended.of()["detectable"])
    assert np.mean(detectable) == pytest.approx(drop, rel=0.03)
    assert caught >= 0.8 * count - 2 * math.sqrt(count * 0.8 * 0.2)


def test_clusters_that_turn_as_a_whole_raise_no_more_false_alarms_than_the_level_says():
    """60 images with 8 questions; in about 12 of them some answers turn, all to right or all to wrong, as likely as not: 2.5 % of 400 is 10.

    McNemar's test over docs takes 8 questions on one image for 8 proofs; the bootstrap interval alone raises 4.1 %.
    """
    groups, size, alarms, labels = 60, 8, 0, np.repeat(np.arange(60), 8)
    for i in range(400):
        stream = np.random.default_rng([4, i])
        turned = (stream.random(groups) < 0.2) * np.where(stream.random(groups) < 0.5, 1, -1)
        change = (turned[:, None] * (np.arange(size) < stream.integers(1, size + 1, groups)[:, None])).ravel()
        before = np.where(change < 0, 1, np.where(change > 0, 0, labels % 2))
        rows = np.column_stack([before, before + change, np.ones_like(before)])
        score = {"score": lambda s: (s[..., 0] / s[..., 2], s[..., 1] / s[..., 2])}
        corners = {"score": np.array([[a, b, 1.0] for a in (0.0, 1.0) for b in (0.0, 1.0)])}
        alarms += paired.differences(rows, score, labels, extremes=corners, draws=500)["score"].estimate.high < 0
    assert alarms <= 10 + 2 * math.sqrt(10)


def test_a_guesser_never_passes_a_valid_gate(tmp_path, capsys):
    """The gate asks for two standard errors above chance, where a guesser comes in 2.3 % of runs: none of these 20 did."""
    config = rules_file(tmp_path, {"require": "valid gate"})
    for i in range(20):
        full, best = lean.scored(300, 0.25, 0.25, i)
        made = lean.task(full, best)
        lean.write(tmp_path / "run", [made])
        ended = gate(capsys, tmp_path, tmp_path / "run", config)
        assert made[0]["patch,none"]["gate"] == 0
        assert ended.status == 1
        assert "near chance" in ended.of()["reason"]
