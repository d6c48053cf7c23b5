"""Reduction or selection noise: simulated worlds whose truth is known."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lmms_patch.app.options import PruneArguments
from lmms_patch.app.pruning import settings_of
from lmms_patch.tst.controls import judge, matched_random
from lmms_patch.tst.diagnosis import Diagnosis
from lmms_patch.tst.items import Item
from lmms_patch.tst.shuffle import shuffle_golds
from lmms_patch.tst.tree_diagnostic import RfDiagnostic
from tests.sizes import size
from tests.tst.worlds import rewards_of

ANSWERS = ("A", "B", "C", "D")


def items(n=400):
    return [Item(i, f"q{i}", f"q{i}", "mc", ANSWERS, ANSWERS, ("A",), "xy"[i % 2], key=f"k{i}") for i in range(n)]


def test_matched_random_keeps_the_counts_per_group():
    groups = ["a"] * 30 + ["b"] * 10 + ["c"] * 5
    removed = np.array([0, 1, 2, 31, 32])
    drawn = matched_random(groups, removed, 3)
    assert Counter(groups[i] for i in drawn) == {"a": 3, "b": 2}
    assert len(set(drawn.tolist())) == 5
    assert (matched_random(groups, removed, 3) == drawn).all()
    assert not (matched_random(groups, removed, 4) == drawn).all()
    assert len(matched_random(groups, np.empty(0, int), 0)) == 0


def probability_world(p, stable):
    """Each item is answered right with its own probability.

    With ``stable`` that is the items' nature, else this draw of golds alone.

    Selection takes the items that a first draw got right; the judge draws anew from ``p``.
    """

    def judged_by(places, seeds):
        stream = np.random.default_rng([11, *seeds])
        scores = (stream.random((len(seeds), len(p))) < p)[:, places].astype(float)
        n = len(places)
        return Diagnosis(scores.mean(axis=0), np.full(n, 0.25), scores, np.full((len(seeds), n), 0.25))

    return judged_by


def test_a_planted_shortcut_is_called_a_reduction():
    """100 of 400 items are known for sure, the others guessed: without them 0.25 is left, after random removal (100 + 300/4)/400 = 0.44."""
    p = np.full(400, 0.25)
    p[:100] = 1.0
    guess = np.full(400, 0.25)

    def world(seed):
        return np.random.default_rng(seed).choice(400, 100, replace=False), probability_world(guess, True)

    found = judge(items(), np.arange(100), probability_world(p, True), world, shuffles=20)
    assert found.verdict == "reduction"
    assert abs(found.kept - 0.25) < 0.05
    assert [one.match for one in found.compared] == ["category", "none"]
    for one in found.compared:
        assert abs(np.mean(one.controls) - 0.4375) < 0.05
        assert one.p == pytest.approx(1 / 21)
    assert found.sentence.startswith("reduction: ")
    assert found.sentence.count("p = 0.048") == 2, "both p-values are said"


def test_selection_noise_is_not():
    """The judge sees the same chance pattern that the selection fed on, in the world as it is and in the shuffled ones alike."""
    claims, repeats = 0, size(15, 40)
    for repeat in range(repeats):
        stream = np.random.default_rng(repeat)

        def draw(stream):
            p = np.where(stream.random(400) < 0.25, 0.6, 0.14)  # what chance made predictable, in this draw of golds
            removed = np.argsort(-(p + 0.1 * stream.normal(size=400)))[:80]
            return removed, probability_world(p, False)

        removed, judged_by = draw(stream)

        def world(seed, repeat=repeat, draw=draw):
            return draw(np.random.default_rng([repeat, seed + 1]))

        claims += judge(items(), removed, judged_by, world, controls=3, shuffles=20, seed=repeat).verdict == "reduction"
    assert claims <= stats.binom.ppf(0.99, repeats, 0.05)  # of 40: 2 expected; P(more than 6) < 0.01


def flat_world(p, removed):
    """Golds that mean nothing: every item at the mean of ``p``; the same number of items goes."""

    def world(seed):
        gone = np.random.default_rng(seed).choice(len(p), len(removed), replace=False)
        return gone, probability_world(np.full(len(p), p.mean()), True)

    return world


def test_a_pruning_of_whole_categories_shows_in_unmatched_controls_alone():
    """All of category x goes, whose docs are answered at 0.9, the others at 0.25: matched removals are the very same docs, so their fall is 0.

    Unmatched ones leave (0.9 + 0.25) / 2 = 0.575.
    """
    p = np.where(np.arange(400) % 2 == 0, 0.9, 0.25)
    removed = np.arange(0, 400, 2)
    found = judge(items(), removed, probability_world(p, True), flat_world(p, removed))
    matched, unmatched = found.compared
    assert matched.fall == 0
    assert abs(unmatched.fall - 0.325) < 0.05
    assert (matched.shows, unmatched.shows, found.verdict) == (False, True, "controls disagree")
    assert (
        "with counts per category kept no more than selection on noise explains; with nothing kept more than selection on noise"
        in found.sentence
    )
    assert f"p = {matched.p:.3f}" in found.sentence
    assert "p = 0.048" in found.sentence


def test_a_pruning_within_a_hard_category_shows_in_matched_controls_alone():
    """Category x is answered at 0.9.

    Of y the half goes that is answered at 0.6, the other is at 0.1: matched removals leave 0.35 of y.

    The kept docs score (200 · 0.9 + 100 · 0.1) / 300 = 0.63, matched removals (180 + 35) / 300 = 0.72, unmatched ones
    0.625.
    """
    p = np.where(np.arange(400) % 2 == 0, 0.9, np.where(np.arange(400) < 200, 0.6, 0.1))
    removed = np.arange(1, 200, 2)
    found = judge(items(), removed, probability_world(p, True), flat_world(p, removed))
    matched, unmatched = found.compared
    assert abs(matched.fall - 0.083) < 0.03
    assert abs(unmatched.fall + 0.008) < 0.03
    assert (matched.shows, unmatched.shows, found.verdict) == (True, False, "controls disagree")


def test_over_pruned_wins_over_everything():
    def judged_by(places, seeds):
        n = len(places)
        right = 0.5 if n == 400 else 0.0
        return Diagnosis(np.zeros(n), np.full(n, 0.25), np.full((1, n), right), np.full((1, n), 0.25))

    found = judge(items(), np.arange(100), judged_by, lambda seed: (np.arange(100), judged_by), shuffles=1)
    assert found.verdict == "over-pruned"
    assert "worse than by guessing" in found.sentence


def test_shuffled_golds_are_the_items_own_options():
    number = [Item(i, "q", "q", "number", golds=(str(i),), category="n", key=f"n{i}") for i in range(50)]
    shuffled = shuffle_golds([*items(2000), *number], 5)
    counts = Counter(item.golds[0] for item in shuffled[:2000])
    assert set(counts) == set(ANSWERS)
    assert all(abs(count - 500) < 4 * (2000 * 0.25 * 0.75) ** 0.5 for count in counts.values())
    assert sorted(item.golds[0] for item in shuffled[2000:]) == sorted(item.golds[0] for item in number)
    assert [item.golds for item in shuffled[2000:]] != [item.golds for item in number]
    assert shuffle_golds(items(30), 5) == shuffle_golds(items(30), 5)


@pytest.mark.parametrize("selects", ["boosting", "forest", "linear"])
def test_the_judge_is_of_another_class_on_other_features(selects):
    asked = PruneArguments(task="toy", model=selects)
    world = [
        replace(item, question=f"What is {i % 7}?", prompt=f"What is {i % 7}?") for i, item in enumerate(items(40))
    ]
    train, groups = np.arange(30), np.arange(40)
    names = [
        {
            name
            for table in RfDiagnostic(settings).prepare(world, rewards_of(world)).features(train, 0, groups)
            for name in table.names
        }
        for settings in (settings_of(selects), settings_of(asked.judge_model))
    ]
    assert (selects == "linear") != (asked.judge_model == "linear")
    assert names[0]
    assert names[1]
    assert not names[0] & names[1]
