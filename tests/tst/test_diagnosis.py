"""Cross-validation: every item once, by models that never saw its group; credits and baselines by hand."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from lmms_patch.ask.answers import same_answer
from lmms_patch.tst.diagnosis import (
    Diagnosis,
    credit,
    diagnose,
    frequency_baseline,
    in_threads,
    scored,
)
from lmms_patch.tst.folds import grouping
from lmms_patch.tst.items import Prediction
from lmms_patch.tst.rewards import Rewards
from tests.tst.worlds import free, mc, mra, number, rewards_of, yesno


@dataclass
class Spy:
    """A diagnostic that answers with the id of the item, and remembers what it was asked."""

    items: list
    asked: list = field(default_factory=list)

    def predict(self, train, test, *, seed, groups):
        self.asked.append((train, test, seed))
        return [Prediction(f"answer {self.items[place].doc_id}", ("a",), np.ones(1)) for place in test]


@pytest.mark.parametrize("workers", [1, 3])
def test_every_item_is_predicted_once_by_those_that_never_saw_its_group(workers):
    items = [free(100 + i, f"q{i}", "ab"[i % 2], source=i // 3) for i in range(60)]
    spy, rewards, by = Spy(items), rewards_of(items), grouping(items, "source")
    found = diagnose(spy, items, rewards, np.arange(60), by, k=4, seeds=(3, 4), runner=in_threads(workers))
    assert len(spy.asked) == 8
    assert Counter(int(place) for _, test, _ in spy.asked for place in test) == dict.fromkeys(range(60), 2)
    for train, test, _ in spy.asked:
        assert len(train) + len(test) == 60
        assert not {items[i].source for i in train} & {items[i].source for i in test}
    assert len({seed for *_, seed in spy.asked}) == 8
    assert found.answers == (tuple(f"answer {item.doc_id}" for item in items),) * 2
    assert found.folds.shape == found.scores.shape == found.baseline.shape == (2, 60)
    assert found.s.shape == found.chance.shape == (60,)


def test_only_the_places_that_are_asked_take_part():
    items = [free(i, f"q{i}", "ab"[i % 2], source=i // 2) for i in range(40)]
    places = np.arange(7, 37, 2)
    spy = Spy(items)
    found = diagnose(spy, items, rewards_of(items), places, grouping(items, "source"), k=3, seeds=(0,))
    assert {int(p) for train, test, _ in spy.asked for p in (*train, *test)} == set(places.tolist())
    assert found.answers[0] == tuple(f"answer {place}" for place in places)


def test_fold_seeds_give_seeds_of_their_own():
    """Fold seeds of 1000 and more do not meet those of another seed."""
    items = [free(i, "q", "a") for i in range(8)]
    spy = Spy(items)
    for seed in (0, 1):
        diagnose(
            spy, items, rewards_of(items), np.arange(8), grouping(items, "none"), k=2, seeds=(0, 1, 1000), seed=seed
        )
    assert len({seed for *_, seed in spy.asked}) == len(spy.asked) == 12


# ---- credit ----


def test_the_credit_of_a_choice_is_the_probability_of_its_gold():
    items = [mc(0, "q", "xyz", 2), mc(1, "q", "xyz", None), replace(mc(2, "q", "xyz", 0), golds=("Q",))]
    said = Prediction("A", ("A", "B", "C"), np.array([0.5, 0.3, 0.2]))
    rewards = rewards_of(items)
    assert credit(items, rewards, 0, said) == 0.2
    assert np.isnan(credit(items, rewards, 1, said))
    assert np.isnan(credit(items, rewards, 2, said))


def test_the_credit_of_a_number_is_the_expected_score_of_a_draw():
    """Gold 100: 100 scores 1, 90 (10 % off) the thresholds to 0.90, 9 of 10.

    300 none. 0.5 · 1 + 0.25 · 0.9 + 0.25 · 0 = 0.725.
    """
    items = [number(0, "q", 100), number(1, "q", None)]
    said = Prediction("90", ("100", "90", "300"), np.array([0.5, 0.25, 0.25]))
    assert credit(items, rewards_of(items), 0, said) == pytest.approx(0.725)
    assert np.isnan(credit(items, rewards_of(items), 1, said))


def test_the_credit_of_an_open_answer_and_what_cannot_be_scored():
    items = [free(0, "q", "red", "crimson")]
    said = Prediction("red", ("red", "blue", "crimson"), np.array([0.4, 0.3, 0.1]))  # 0.2 for none of these
    assert credit(items, rewards_of(items), 0, said) == pytest.approx(0.5)
    unscored = Rewards(items, lambda place, answer: None if answer == "red" else float(answer in items[place].golds))
    assert credit(items, unscored, 0, said) == pytest.approx(0.1)


def test_scored_is_nan_without_a_gold():
    items = [yesno(0, "q", "no"), yesno(1, "q", None)]
    said = Prediction("no", ("yes", "no"), np.array([0.1, 0.9]))
    s, scores = scored(items, rewards_of(items), np.arange(2), [said, said])
    np.testing.assert_array_equal(s, [0.9, np.nan])
    np.testing.assert_array_equal(scores, [1.0, np.nan])


# ---- frequency baseline ----


def test_the_baseline_of_choices_by_hand():
    """Fold 0 holds items 0-2; the others' golds are B B A: B. Fold 1 sees A A C: A.

    The yes/no items are a class of their own.
    """
    golds = [0, 0, 2, 1, 1, 0]
    items = [mc(i, "q", "xyz", gold) for i, gold in enumerate(golds)] + [yesno(6, "q", "no"), yesno(7, "q", "no")]
    fold = np.array([0, 0, 0, 1, 1, 1, 0, 1])
    answers, chance = frequency_baseline(items, rewards_of(items), np.arange(8), fold, 2)
    assert answers == ["B"] * 3 + ["A"] * 3 + ["no"] * 2
    np.testing.assert_allclose(chance, [1 / 3] * 6 + [1 / 2] * 2)


def test_the_baseline_goes_by_category():
    items = [
        mc(i, "q", "xy", right, category=c) for i, (right, c) in enumerate([(0, "a"), (0, "a"), (1, "b"), (1, "b")] * 2)
    ]
    answers, _ = frequency_baseline(items, rewards_of(items), np.arange(8), np.arange(8) // 4, 2)
    assert answers == ["A", "A", "B", "B"] * 2


def test_the_baseline_of_numbers_is_what_the_score_rewards_most():
    """Training golds 94, 100, 106, 300; the thresholds that each answer reaches on each gold, of ten:

    =======  ===================  ==================  ==================  ====
    answer   94                   100                 106                 mean
    =======  ===================  ==================  ==================  ====
    94       10                   9 (error .06)       8 (error .113)      .675
    100      9 (error .064)       10                  9 (error .057)      .7
    106      8 (error .128)       9 (error .06)       10                  .675
    =======  ===================  ==================  ==================  ====

    and none of them any on 300, nor 300 any but on itself (.25).
    """
    items = [number(i, "q", gold) for i, gold in enumerate([94, 100, 106, 300, 100])]
    answers, chance = frequency_baseline(items, rewards_of(items), np.arange(5), np.array([0, 0, 0, 0, 1]), 2)
    assert answers == ["100"] * 5
    assert chance[4] == pytest.approx((0.9 + 1 + 0.9 + 0) / 4)  # a draw from the four on the gold 100
    assert chance[3] == 0
    assert mra("106", "94") == 0.8


def test_the_baseline_of_open_answers_by_hand():
    items = [free(i, "q", gold) for i, gold in enumerate(["red", "red", "blue", "red", "green"])]
    answers, chance = frequency_baseline(items, rewards_of(items), np.arange(5), np.array([0, 0, 0, 1, 1]), 2)
    assert answers == ["red"] * 5 or answers[:3] == ["green"] * 3  # red and green once each in fold 1: a tie
    assert answers[3:] == ["red"] * 2
    np.testing.assert_allclose(chance, [1 / 2, 1 / 2, 0, 2 / 3, 0])


def test_spellings_of_one_open_answer_count_together():
    """Fold 1 is asked; the training golds are blue 3 (two spellings), 2 twice (two spellings), red twice.

    By spelling red would win with 2 of 7. On the gold "BLUE" a draw of the three answers earns 3 / 7, on "2.00" 2 / 7,
    whatever the spelling.
    """
    golds = ["Blue", "blue", "blue ", "red", "red", "2", "2.0", "BLUE", "2.00", "red"]
    items = [free(i, "q", gold) for i, gold in enumerate(golds)]
    rewards = Rewards(items, lambda place, answer: float(same_answer(answer) == same_answer(golds[place])))
    answers, chance = frequency_baseline(items, rewards, np.arange(10), np.array([0] * 7 + [1] * 3), 2)
    assert [same_answer(a) for a in answers[7:]] == ["blue"] * 3
    np.testing.assert_allclose(chance[7:], [3 / 7, 2 / 7, 2 / 7])


def test_the_baseline_where_no_training_item_has_a_gold():
    items = [
        free(0, "q", "a", category="x"),
        free(1, "q", "b", category="y"),
        yesno(2, "q", "no", category="z"),
        number(3, "q", "many", category="n"),
    ]
    answers, chance = frequency_baseline(items, rewards_of(items), np.arange(4), np.array([0, 1, 0, 1]), 2)
    assert answers == ["b", "a", "yes", None], "those of the format stand in for those of the category"
    np.testing.assert_array_equal(chance, [0, 0, 0.5, np.nan])


def test_choices_that_are_answered_by_their_texts_have_a_baseline():
    """Each item has texts of its own, and the last is always right: the most frequent *place* is what knows nothing of the question."""
    items = [replace(mc(i, "q", "xyz", 2), answers=(f"a{i}", f"b{i}", f"c{i}"), golds=(f"c{i}",)) for i in range(8)]
    answers, chance = frequency_baseline(items, rewards_of(items), np.arange(8), np.arange(8) % 2, 2)
    assert answers == [f"c{i}" for i in range(8)]
    np.testing.assert_allclose(chance, 1 / 3)


def test_held_out_golds_never_decide_the_baseline():
    items = [mc(i, "q", "xyz", i % 3) for i in range(30)]
    fold = np.arange(30) // 6
    before, _ = frequency_baseline(items, rewards_of(items), np.arange(30), fold, 5)
    changed = [replace(item, golds=("C",)) if fold[i] == 2 else item for i, item in enumerate(items)]
    after, _ = frequency_baseline(changed, rewards_of(changed), np.arange(30), fold, 5)
    assert [a for a, f in zip(before, fold, strict=True) if f == 2] == [
        a for a, f in zip(after, fold, strict=True) if f == 2
    ]


def test_accuracy_is_over_items_and_seeds():
    scores = np.array([[1.0, 0.0, np.nan], [1.0, 1.0, np.nan]])
    none = np.full(3, np.nan)
    assert Diagnosis(none, none, scores, scores).accuracy == 0.75
    assert np.isnan(Diagnosis(none, none, scores * np.nan, scores).accuracy)


def test_options_that_are_spelled_alike_are_right_together():
    """Two of four options are the gold: a guess is right half the time, and their probabilities add up."""
    item = replace(mc(0, "q", ("cup", "cup", "door", "bed"), 0), answers=("cup", "cup", "door", "bed"), golds=("cup",))
    assert (item.rights, item.chance) == ([0, 1], 0.5)
    said = Prediction("cup", item.answers, np.array([0.1, 0.5, 0.3, 0.1]))
    assert credit([item], rewards_of([item]), 0, said) == pytest.approx(0.6)


def test_s_is_full_marks_at_most_whatever_the_scale():
    """A scorer of 0 to 100: s is the expected score over the full marks; reported scores keep their scale."""
    items = [number(i, "q", 3) for i in range(4)]
    rewards = Rewards(items, lambda place, answer: 100.0 * (answer == "3"))
    said = Prediction("3", ("3", "4"), np.array([0.25, 0.75]))
    assert rewards.scale == 100
    assert credit(items, rewards, 0, said) == pytest.approx(0.25)
    assert rewards.exact(0, "3") == 100


def test_reported_scores_are_those_of_the_item_itself():
    """A scorer that reads more of a doc than its gold: what is shared among items alike may be another's, what is reported is not."""
    items = [mc(i, "q", ("x", "y"), 0) for i in range(3)]
    rewards = Rewards(items, lambda place, answer: (1.0 + place) * (answer == "A"))
    assert [rewards.exact(i, "A") for i in range(3)] == [1, 2, 3]
    assert len({rewards.of(i, "A") for i in range(3)}) == 1


def test_a_judge_is_asked_once_for_all_items_alike():
    asked = []
    items = [mc(i, "q", ("x", "y"), 0) for i in range(20)]
    rewards = Rewards(items, lambda place, answer: asked.append(answer) or float(answer == "A"), costly=True)
    assert [rewards.exact(i, answer) for i in range(20) for answer in "AB"] == [1, 0] * 20
    assert sorted(asked) == ["A", "B"]
