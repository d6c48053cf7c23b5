"""The diagnostic against plain pipelines on the same folds, and what it reads beside the question."""

from dataclasses import replace

import numpy as np
import pytest

from lmms_patch.ask.answers import as_number
from lmms_patch.tst.diagnosis import diagnose
from lmms_patch.tst.folds import grouping
from lmms_patch.tst.rewards import Rewards, rewards_nearness
from lmms_patch.tst.tree_diagnostic import RfDiagnostic
from lmms_patch.tst.trees import ModelSettings
from tests.sizes import size
from tests.tst.rivals import rival_scores
from tests.tst.worlds import (
    FEW_TREES,
    FOLDS,
    OBJECTS,
    cross_validate,
    free,
    mc,
    mra,
    number,
    rewards_of,
    two_captions,
    weak_yesno,
    yesno,
)

ALONE = replace(FEW_TREES, beside=False)


@pytest.mark.parametrize(("world", "folds"), [(weak_yesno, 5), (two_captions, FOLDS)])
def test_a_shortcut_of_many_weak_words_is_found(world, folds):
    """A character n-gram regression never beats it by more than one SE of the paired difference.

    Trees alone do not get there.
    """
    items, knows = world(1200)
    ours, trees = (cross_validate(items, k=folds, settings=settings).scores[0] for settings in (FEW_TREES, ALONE))
    rival = rival_scores(items, "character n-gram regression", grouping(items, "none"), folds=folds)
    error = (ours - rival).std(ddof=1) / len(items) ** 0.5
    assert ours.mean() > rival.mean() - error
    assert ours.mean() - trees.mean() > 2 * (ours - trees).std(ddof=1) / len(items) ** 0.5
    assert ours.mean() < knows + 0.03


def test_the_linear_model_does_not_spoil_what_trees_find():
    """Where only combinations tell, it is left aside: in XOR of two words no single word says anything."""
    stream = np.random.default_rng(0)
    items = []
    for i in range(600):
        a, b = (int(one) for one in stream.integers(0, 2, 2))
        items.append(mc(i, f"Is the {OBJECTS[a]} beside the {OBJECTS[10 + b]}?", ("left", "right"), a ^ b))
    ours, alone = (cross_validate(items, settings=settings).accuracy for settings in (FEW_TREES, ALONE))
    assert alone > 0.9
    assert ours > alone - 0.02


def test_golds_that_mean_nothing_stay_at_chance():
    """Sets of yes/no questions with coins as golds: the linear model and its choice by inner folds add no optimism."""
    means, sets = [], size(6, 40)
    for seed in range(sets):
        stream = np.random.default_rng(seed)
        items = [
            yesno(i, f"Is the {OBJECTS[stream.integers(20)]} on the {OBJECTS[stream.integers(20)]}?", "yes")
            for i in range(100)
        ]
        items = [replace(item, golds=(("yes", "no")[i % 2],)) for i, item in enumerate(items)]
        means.append(cross_validate(items, k=3, settings=replace(FEW_TREES, trees=10)).accuracy)
    assert abs(np.mean(means) - 0.5) < 3 * np.std(means, ddof=1) / sets**0.5


# --- numbers -------------------------------------------------------------------------------------------


def exact(items):
    return Rewards(items, lambda place, answer: float(as_number(answer) == as_number(items[place].golds[0])))


def test_whether_nearness_is_rewarded_is_asked_of_the_scorer():
    items = [number(i, "How many?", value) for i, value in enumerate([3, 5, 8, 13, 21])]
    assert not rewards_nearness(exact(items), range(5))
    assert rewards_nearness(rewards_of(items), range(5))  # mean relative accuracy
    assert rewards_nearness(
        Rewards(items, lambda place, answer: float(abs(float(answer) - float(items[place].golds[0])) <= 1)), range(5)
    )
    assert not rewards_nearness(exact(items[:1]), [0])
    assert mra("101", "100") == 1.0


def test_numbers_that_are_right_or_wrong_are_chosen_among_the_golds():
    """The word tells the number, and neighbouring words tell far numbers: a regression would answer the means between them."""
    stream = np.random.default_rng(0)
    value = [2, 900, 7, 350, 12, 64, 500, 1, 33, 128]
    items = [
        number(i, f"In row {i}, how many times {OBJECTS[k]}?", value[k])
        for i, k in enumerate(stream.integers(0, 10, 200))
    ]
    items[0] = replace(items[0], golds=(f"{float(items[0].golds[0]):.1f}",))  # another spelling of the same number
    rewards = exact(items)
    prepared = RfDiagnostic(FEW_TREES).prepare(items, rewards)
    found = diagnose(prepared, items, rewards, np.arange(200), grouping(items, "none"), seeds=(0,))
    assert found.accuracy > 0.95
    assert set(found.answers[0]) <= {item.golds[0] for item in items}


# --- what it reads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["option named", "letter named", "yes or no", "open", "number"])
def test_a_hint_in_the_prompt_is_read(kind):
    """Questions and options are random; a hint beside them names the gold."""
    stream = np.random.default_rng(0)
    items = []
    for i in range(size(100, 200)):
        right, question = int(stream.integers(4)), f"Which one, {OBJECTS[stream.integers(20)]}?"
        options = stream.choice(OBJECTS, 4, replace=False).tolist()
        item, hint = {
            "option named": (mc(i, question, options, right), f"Hint: look for the {options[right]}."),
            "letter named": (mc(i, question, options, right), f"Key: {'ABCD'[right]}"),
            "yes or no": (yesno(i, question, ("yes", "no")[right % 2]), ("It is sunny.", "It is dark.")[right % 2]),
            "open": (
                free(i, question, OBJECTS[right]),
                f"It is a kind of {('light', 'seat', 'board', 'couch')[right]}.",
            ),
            "number": (
                number(i, question, (1, 10, 100, 1000)[right]),
                ("One.", "A few.", "Many.", "No end of them.")[right],
            ),
        }[kind]
        items.append(replace(item, context=hint))
    assert cross_validate(items).accuracy > 0.9
    assert cross_validate([replace(item, context="") for item in items]).accuracy < 0.65


def test_settings_of_the_linear_model_alone():
    items = weak_yesno(300)[0]
    found = cross_validate(items, settings=ModelSettings("linear"))
    assert 0.5 < found.accuracy <= 1
    assert np.isfinite(found.s).all()
