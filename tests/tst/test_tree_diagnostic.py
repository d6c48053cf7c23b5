"""``tst_rf`` on worlds whose shortcuts are known: what is planted is found, and where there is nothing nothing is."""

from dataclasses import replace

import numpy as np
import pytest

from lmms_patch.tst.diagnosis import diagnose, jobs_of
from lmms_patch.tst.folds import folds, grouping
from lmms_patch.tst.rewards import Rewards
from lmms_patch.tst.tree_diagnostic import RfDiagnostic, group_of
from lmms_patch.tst.trees import ModelSettings
from tests.sizes import each, size
from tests.tst.worlds import (
    FEW_TREES,
    OBJECTS,
    SMALL_FOREST,
    cross_validate,
    free,
    mc,
    mra,
    native,
    number,
    planted_choice,
    planted_number,
    planted_open,
    planted_yesno,
    prepare,
    yesno,
)

BOTH = pytest.mark.parametrize("settings", [FEW_TREES, SMALL_FOREST], ids=["boosting", "forest"])


# ---- what is planted is found ----


@pytest.mark.parametrize(
    ("world", "settings"),
    each([(planted_choice, 1 / 4), (planted_yesno, 1 / 2), (planted_open, 1 / 5)], [FEW_TREES, SMALL_FOREST]),
)
def test_a_planted_shortcut_is_found(settings, world):
    """Accuracy within 3 SE and 3 points of who knows the rule; s(x) high where it is planted, at chance elsewhere."""
    made, chance = world
    items, optimum, planted = made(600)
    found = cross_validate(items, settings=settings)
    assert optimum - 0.03 - 3 * np.sqrt(0.25 / 600) < found.accuracy < optimum + 3 * np.sqrt(0.25 / 600)
    assert found.s[planted].mean() > 0.65
    assert abs(found.s[~planted].mean() - chance) < 0.03
    assert found.accuracy > found.baseline.mean() + 0.1
    known = (optimum - chance * (~planted).mean()) / planted.mean()  # what s is on planted items for who knows the rule
    assert 0.5 * (known - chance) < found.s[planted].mean() - found.s[~planted].mean() < known - chance + 0.05


@pytest.mark.parametrize("settings", [ModelSettings(), SMALL_FOREST], ids=["boosting", "forest"])
def test_planted_numbers_are_found(settings):
    """Golds within 2 % of the object's size: answering the size earns 0.95 or more on planted items."""
    items, planted = planted_number(600)
    found = cross_validate(items, settings=settings)
    assert found.scores[0][planted].mean() > 0.85
    assert found.s[planted].mean() > 0.6
    assert abs(found.s[~planted].mean() - found.chance[~planted].mean()) < 0.03
    assert found.baseline[0].mean() < 0.3


def test_options_beat_letters():
    """The planted option stands anywhere: letters know nothing (their share is 1/4), so all that is found is of options."""
    items, *_ = planted_choice(400, seed=3)
    found = cross_validate(items)
    assert found.baseline.mean() < 0.33
    assert found.accuracy > 0.5 > found.baseline.mean() + 0.15


def test_a_letter_that_is_right_more_often_is_found_too():
    stream = np.random.default_rng(0)
    items = [
        mc(
            i,
            f"Which {i % 9}?",
            stream.choice(OBJECTS, 4, replace=False).tolist(),
            2 if stream.random() < 0.7 else int(stream.integers(4)),
        )
        for i in range(300)
    ]
    found = cross_validate(items)
    assert found.accuracy > 0.7


def test_what_was_planted_is_named():
    """Choice: only the combination of slot and option tells; numbers: the slot.

    Each is the first of the importances, and by far.
    """
    for items, kind, features in (
        (
            planted_choice(size(350, 500))[0],
            "options",
            {"slot value and option", "slot value at its place and option", "word of the question and option"},
        ),
        (planted_number(400)[0], "numbers", {"slot value", "slot value at its place"}),
        (
            planted_yesno(size(350, 500))[0],
            "options",
            {"slot value and option", "slot value at its place and option", "word of the question and option"},
        ),
        (
            planted_open(size(300, 400))[0],
            "open answers",
            {"slot value and option", "slot value at its place and option", "word of the question and option"},
        ),
    ):
        prepared, _ = prepare(items)
        everyone = np.arange(len(items))
        rows = prepared.explain(jobs_of(everyone, folds(items, 3, everyone, 0), 3, 0), everyone)
        assert {row.kind for row in rows} == {kind}
        assert {type(row.gain) for row in rows} == {float}, "results files take no other numbers"
        assert sum(row.gain for row in rows) == pytest.approx(1)
        assert rows[0].feature in features
        assert sum(row.gain for row in rows if row.feature in features) > 0.5
        if kind == "numbers":  # of options the three say the same, so none is missed when it is shuffled alone
            assert rows[0].permutation > 0.02
        assert [row.gain for row in rows] == sorted((row.gain for row in rows), reverse=True)


def test_groups_of_features():
    assert group_of("slot value: mean, relative") == group_of("slot value: count") == "slot value"
    assert group_of("question text (TF-IDF) 3") == group_of("option text (TF-IDF) 0") == "TF-IDF of the texts"
    assert group_of("option.number, relative") == "option.number"


# ---- where there is nothing, nothing is found ----


def noise(kind, n, seed):
    stream = np.random.default_rng(seed)
    items = []
    for i in range(n):
        question = f"Is the {stream.choice(OBJECTS)} near the {stream.choice(OBJECTS)}?"
        if kind == "mc":
            items.append(
                mc(
                    i,
                    question,
                    stream.choice(OBJECTS, 4, replace=False).tolist(),
                    int(stream.integers(4)),
                    source=i // 4,
                )
            )
        elif kind == "yesno":
            items.append(yesno(i, question, ("yes", "no")[stream.integers(2)], source=i // 4))
        elif kind == "number":
            items.append(number(i, question, int(stream.integers(1, 100)), source=i // 4))
        else:
            items.append(free(i, question, "abcdef"[stream.integers(6)], source=i // 4))
    return items


@pytest.mark.parametrize(("kind", "by"), each(["mc", "yesno", "number", "open"], ["none", "source"]))
def test_random_golds_give_chance(kind, by):
    """Over several worlds; never better than the frequency baseline (which knows the golds' shares in this very set), nor worse than a guess.

    A guess: 1/4 and 1/6 of options and golds that are drawn alike; for numbers the draw from the training golds, whose
    expected score stands in ``chance``; yes/no: 1/2. s(x) is a probability, so its mean is that of a guess up to what
    calibration costs.
    """
    runs = [cross_validate(noise(kind, 200, seed), by) for seed in range(size(2, 8))]
    accuracy, baseline, s, chance = (
        np.array([np.mean(value) for value in values])
        for values in zip(*((r.scores, r.baseline, r.s, r.chance) for r in runs), strict=True)
    )

    def se(values):
        return max(values.std(ddof=1), 0.5 / np.sqrt(200) if values is accuracy else 0) / np.sqrt(len(values))

    guess = {"mc": 1 / 4, "yesno": 1 / 2, "open": 1 / 6}.get(kind, chance.mean())
    assert accuracy.mean() - baseline.mean() < 3 * se(accuracy - baseline)
    assert accuracy.mean() - guess > -3 * se(accuracy) - 0.005
    assert abs((s - chance).mean()) < 3 * se(s - chance) + 0.01


# ---- the answer that the native score rewards most ----


@BOTH
def test_a_number_is_the_value_of_greatest_expected_score(settings):
    """Brute force over the values of the distribution, with the definition of the score."""
    items = [replace(item, category=f"c{i % 2}") for i, item in enumerate(planted_number(160)[0])]
    prepared, _ = prepare(items, settings)
    test = np.arange(0, 160, 4)
    for said in prepared.predict(np.setdiff1d(np.arange(160), test), test, seed=0, groups=np.arange(160)):
        assert said.probabilities.sum() == pytest.approx(1)
        expected = {
            a: sum(p * mra(a, g) for g, p in zip(said.answers, said.probabilities, strict=True)) for a in said.answers
        }
        assert expected[said.answer] == pytest.approx(max(expected.values()), abs=1e-9)


def test_another_score_gives_another_answer():
    """A score that only rewards numbers of at least 50 is answered with such a number, whatever the likely value."""
    items = [number(i, f"How long is the {OBJECTS[i % 4]}?", (5, 6, 7, 60)[i % 4]) for i in range(120)]
    rewards = Rewards(items, lambda place, answer: float(float(answer) >= 50))
    prepared = RfDiagnostic(FEW_TREES).prepare(items, rewards)
    assert {p.answer for p in prepared.predict(np.arange(100), np.arange(100, 120), seed=0, groups=np.arange(120))} == {
        "60"
    }


def test_numbers_of_one_category_are_answered_with_its_values():
    items = [
        number(i, f"How many {OBJECTS[i % 5]}?", i % 3 + (100 if i % 2 else 0), category="ab"[i % 2])
        for i in range(120)
    ]
    prepared, _ = prepare(items)
    said = prepared.predict(np.arange(90), np.arange(90, 120), seed=0, groups=np.arange(120))
    for place, p in zip(range(90, 120), said, strict=True):
        assert all((float(a) >= 100) == bool(place % 2) for a in p.answers)


# ---- forms of predictions ----


def test_ties_share_the_credit():
    """Options of equal text that no place tells apart have the same probability."""
    items = [mc(i, f"which {i % 7}?", ("x", "x") if i % 2 else ("x", "y"), 0 if i % 4 < 2 else 1) for i in range(200)]
    found = cross_validate(items, settings=FEW_TREES)
    assert abs(found.s[1::2].mean() - 0.5) < 0.05


# ---- odd sets ----


def test_docs_without_golds_are_answered_and_not_scored():
    items = [
        yesno(i, f"Is there a {OBJECTS[i % 10]}?", None if i % 3 == 0 else ("yes", "no")[i % 2]) for i in range(60)
    ]
    items += [
        number(60 + i, f"How many {OBJECTS[i % 10]}?", None if i % 3 == 0 else "many" if i % 3 == 1 else i % 5)
        for i in range(30)
    ]
    items += [free(90 + i, f"What is {OBJECTS[i % 10]}?", *(() if i % 3 == 0 else ("cat",))) for i in range(30)]

    def score(place, answer):
        assert items[place].golds, "the native scorer is asked about a doc that has no gold"
        return native(items)(place, answer)

    rewards = Rewards(items, score)
    found = diagnose(
        RfDiagnostic(FEW_TREES).prepare(items, rewards),
        items,
        rewards,
        np.arange(120),
        grouping(items, "none"),
        k=5,
        seeds=(0,),
    )
    for i, item in enumerate(items):
        assert found.answers[0][i] is not None
        assert np.isnan(found.s[i]) == np.isnan(found.scores[0][i]) == (not item.golds)


def test_golds_that_are_hidden_teach_nothing():
    """Items without a gold are as good as absent for those that have one."""
    items, *_ = planted_choice(120)
    hidden = [replace(item, golds=()) if i >= 100 else item for i, item in enumerate(items)]
    prepared, _ = prepare(items)
    partly, _ = prepare(hidden)
    test = np.arange(20)
    first = prepared.predict(np.arange(20, 100), test, seed=0, groups=np.arange(120))
    second = partly.predict(np.arange(20, 120), test, seed=0, groups=np.arange(120))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.probabilities, b.probabilities)


# ---- determinism ----


@pytest.mark.parametrize(
    ("world", "settings"), each([planted_choice, planted_number, *size([], [planted_open])], [FEW_TREES, SMALL_FOREST])
)
def test_the_same_whatever_the_threads(settings, world):
    """Bitwise: twice alike, with folds in several threads, and with several threads in a fit."""
    items = world(size(60, 100))[0]
    few = ModelSettings(settings.model, size(8, 12))
    first = cross_validate(items, k=3, settings=few)
    for workers, threads in ((1, 1), (3, 1), (1, 3)):
        again = cross_validate(items, k=3, settings=replace(few, threads=threads), workers=workers)
        np.testing.assert_array_equal(first.s, again.s)
        assert first.answers == again.answers
    assert not np.array_equal(first.s, cross_validate(items, k=3, settings=few, seed=1).s)
