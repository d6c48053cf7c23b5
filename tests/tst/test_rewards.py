"""Native scores: asked once for each answer and gold, and never for the wrong item."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.tst.rewards import MOST_VALUES, Rewards, values_of
from tests.sizes import examples
from tests.tst.worlds import free, mc, mra, number, rewards_of, yesno


def counting(items, score=None):
    asked = Counter()

    def ask(place, answer):
        asked[items[place].format, items[place].golds, answer] += 1
        return float(answer in items[place].golds) if score is None else score(place, answer)

    return Rewards(items, ask), asked


def test_choices_and_numbers_are_asked_once_for_each_answer_and_gold():
    items = [yesno(i, f"q{i}", ("yes", "no")[i % 2]) for i in range(20)] + [
        number(20 + i, "q", i % 3) for i in range(9)
    ]
    rewards, asked = counting(items)
    for _ in range(2):
        for place in range(20):
            assert rewards.vector(place, ("yes", "no")).tolist() == [1 - place % 2, place % 2]
        for place in range(20, 29):
            assert rewards.vector(place, ("0", "1", "2")).tolist() == [float((place - 20) % 3 == n) for n in range(3)]
    assert set(asked.values()) == {1}
    assert len(asked) == 4 + 9


@pytest.mark.parametrize(("earned", "scale"), [(4.0, 4.0), (0.0, 1.0), (-2.0, 1.0), (float("nan"), 1.0)])
def test_the_scale_is_what_golds_earn_and_1_where_that_says_nothing(earned, scale):
    rewards, _ = counting([yesno(i, f"q{i}", "yes") for i in range(5)], lambda place, answer: earned)
    assert rewards.scale == scale


def test_open_answers_are_asked_item_by_item():
    items = [free(i, "q", "a") for i in range(5)]
    rewards, asked = counting(items)
    assert [rewards.of(place, "a") for place in range(5) for _ in range(2)] == [1.0] * 10
    assert asked["open", ("a",), "a"] == 5


def test_categories_and_answers_are_kept_apart():
    """The native score of yes may depend on the category, and on how the answers are spelled."""
    items = [yesno(0, "q", "yes", category="a"), yesno(1, "q", "yes", category="b")]
    rewards = Rewards(items, lambda place, answer: float(place))
    assert [rewards.of(place, "yes") for place in range(2)] == [0, 1]


def test_items_with_several_golds_are_scored_as_themselves():
    """VQA scores: golds come as different texts without their counts, so 'no' may be half right on one item and wrong on another."""
    golds = [("yes", "no"), ("yes",), ("yes", "no")]
    table = [{"yes": 1.0, "no": 1.0}, {"yes": 1.0, "no": 0.0}, {"yes": 1.0, "no": 0.3}]
    items = [replace(yesno(i, "is it?", "yes"), golds=own) for i, own in enumerate(golds)]
    rewards = Rewards(items, lambda place, answer: table[place][answer])
    assert [rewards.of(place, "no") for place in range(3)] == [1.0, 0.0, 0.3]
    counts = [replace(number(i, "how many?", 2), golds=own) for i, own in enumerate([("2", "3"), ("2",), ("2", "3")])]
    table = [{"3": 0.9}, {"3": 0.0}, {"3": 0.3}]
    rewards = Rewards(counts, lambda place, answer: table[place][answer])
    assert [rewards.of(place, "3") for place in range(3)] == [0.9, 0.0, 0.3]


def test_equal_tuples_that_come_and_go_are_not_mixed_up():
    """Vectors are kept by identity: an id that is used again must not find the old vector."""
    rewards = rewards_of([number(0, "q", 5)])
    for n in range(300):
        assert rewards.vector(0, (str(n), "5")).tolist() == [mra(str(n), "5"), 1.0]


def test_regold_scores_by_the_new_gold():
    items = [
        yesno(0, "q", "yes"),
        yesno(1, "q", "no"),
        number(2, "q", 100),
        number(3, "q", 110),
        free(4, "q", "a"),
        free(5, "q", "b"),
    ]
    shuffled = [replace(item, golds=items[i ^ 1].golds) for i, item in enumerate(items)]
    other = rewards_of(items).regold(shuffled)
    assert [other.of(i, "yes") for i in (0, 1)] == [0, 1]
    assert other.of(2, "100") == mra("100", "110") == 0.9
    assert other.of(3, "100") == 1
    assert [other.of(4, "a"), other.of(4, "b"), other.of(5, "a")] == [0, 1, 1]


def test_regold_to_golds_that_no_item_of_the_kind_has():
    items = [mc(0, "q", ("x", "y", "z"), 0), mc(1, "q", ("x", "y", "z"), 0)]
    other = rewards_of(items).regold([replace(items[0], golds=("C",)), items[1]])
    assert [other.of(0, a) for a in "ABC"] == [0, 0, 1]
    assert other.of(1, "A") == 1


def test_regold_scores_open_answers_as_the_scorer_does():
    """A scorer of 100 marks that takes any case and gives half marks to a first word: the shuffled golds are scored by it, not by equality."""
    items = [free(0, "q", "Blue"), free(1, "q", "red car"), free(2, "q", "green", "lime")]

    def score(place, answer):
        golds = [gold.lower() for gold in items[place].golds]
        return 100.0 * max(
            1.0 * (answer.lower() == gold) or 0.5 * (answer.lower() == gold.split()[0]) for gold in golds
        )

    other = Rewards(items, score).regold(
        [replace(item, golds=items[(i + 1) % 3].golds) for i, item in enumerate(items)]
    )
    assert [other.of(0, a) for a in ("RED CAR", "red", "blue")] == [100, 50, 0]
    assert [other.of(1, a) for a in ("Lime", "GREEN", "red car")] == [100, 100, 0]
    assert [other.exact(2, a) for a in ("blue", "green")] == [100, 0]


def test_regold_never_asks_a_judge_about_open_answers():
    items = [free(0, "q", "Blue"), free(1, "q", "2")]
    asked = []
    judged = Rewards(
        items,
        lambda place, answer: asked.append((place, answer)) or 10.0 * (answer == items[place].golds[0]),
        costly=True,
    )
    other = judged.regold([replace(items[0], golds=("2",)), replace(items[1], golds=("Blue",))])
    assert [other.of(0, "2.0"), other.of(0, "Blue"), other.of(1, " blue")] == [10, 0, 10]
    assert set(asked) <= {(0, "Blue"), (1, "2")}, "only what full marks are"


golds = st.lists(
    st.sampled_from(["1", "2", "2.0", "3", "10", "1,000", "50%", "-4", "0", "$7"]), min_size=1, max_size=40
)


@examples(80)
@given(golds)
def test_few_values_are_the_golds_themselves(texts):
    items = [number(i, "q", text) for i, text in enumerate(texts)]
    asked = []
    rewards = Rewards(
        items, lambda place, answer: asked.append((place, answer)) or float(answer == items[place].golds[0])
    )
    found = values_of(rewards, np.arange(len(items)))
    numbers = [float(text.strip("%$").replace(",", "")) for text in texts]
    spelled = [float(text.strip("%$").replace(",", "")) for text in found.texts]
    assert spelled == sorted(set(numbers))
    assert [spelled[place] for place in found.place] == numbers
    assert set(found.texts) <= set(texts)
    np.testing.assert_array_equal(found.reward, np.eye(len(spelled)))


def test_many_values_are_quantiles_and_each_gold_goes_to_the_nearest():
    stream = np.random.default_rng(0)
    items = [number(i, "q", repr(float(v))) for i, v in enumerate(np.exp(stream.standard_normal(500)))]
    found = values_of(rewards_of(items), np.arange(500))
    values = np.array([float(text) for text in found.texts])
    assert len(values) == MOST_VALUES
    assert (np.diff(values) > 0).all()
    own = np.array([float(item.golds[0]) for item in items])
    assert values[0] == own.min()
    assert values[-1] == own.max()
    nearest = np.abs(own[:, None] - values[None]).argmin(axis=1)
    np.testing.assert_array_equal(found.place, nearest)
    for a in range(0, 60, 7):
        for g in range(0, 60, 11):
            assert found.reward[a, g] == mra(found.texts[a], found.texts[g])
