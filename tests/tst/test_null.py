"""Shuffled golds: they keep what a category says of its golds, and nothing else.

And the verdict that they give where categories are many.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import t as student

from lmms_patch.runs.numbers import Null
from lmms_patch.tst.diagnosis import Diagnosis, diagnose
from lmms_patch.tst.folds import grouping
from lmms_patch.tst.items import Item, Prediction
from lmms_patch.tst.null import CLEAR, FEWEST, has_many_categories, p_above, p_beyond_kinds, shuffled_null
from lmms_patch.tst.shuffle import permute_golds, shuffle_golds
from tests.sizes import size
from tests.tst.worlds import OBJECTS, copied, free, mc, paraphrases, rewards_of, vocabulary, yesno


def world(kind, categories=30, docs=6, seed=0):
    """Questions of four options in many categories: golds that are coins, that the category names, or of which each category has every place alike."""
    stream = np.random.default_rng(seed)
    items = []
    for c in range(categories):
        named, places = int(stream.integers(4)), stream.permutation(docs) % 4
        for j in range(docs):
            right = {
                "coins": int(stream.integers(4)),
                "named": named,
                "balanced": int(places[j]),
                "told": int(stream.integers(4)),
            }[kind]
            options = [OBJECTS[k] for k in stream.choice(len(OBJECTS), 4, replace=False)]
            told = options[right] if kind == "told" and j % 2 else "thing"
            items.append(
                mc(len(items), f"Question {len(items)} on the {told}?", options, right, category=f"category {c}")
            )
    return items


def counts(items):
    return Counter((item.category, item.golds) for item in items)


def test_golds_stay_in_their_category_and_as_often_as_they_were():
    items = world("coins")
    within = permute_golds(items, 1)
    assert counts(within) == counts(items)
    assert [item.golds for item in within] != [item.golds for item in items]
    assert permute_golds(items, 1) == within


def test_a_gold_is_handed_on_by_its_text_where_all_have_the_same_options():
    """Gold texts a a b b of shuffled options a, b: the texts stay as often as they were, whatever the letters.

    Of other options the places do.
    """
    shown = [("a", "b"), ("b", "a"), ("a", "b"), ("b", "a")]
    items = [mc(i, "q", options, options.index("aabb"[i])) for i, options in enumerate(shown)]
    for seed in range(10):
        assert sorted(item.options[item.right] for item in permute_golds(items, seed)) == ["a", "a", "b", "b"]
    other = [mc(i, "q", [f"{i}", f"{i} b"], int(i == 0)) for i in range(4)]
    for seed in range(10):
        assert sorted(item.right for item in permute_golds(other, seed)) == [0, 0, 0, 1]


def test_items_without_a_gold_and_open_ones():
    items = [free(0, "q", "a", "b"), free(1, "q", "c"), yesno(2, "q", None), yesno(3, "q", "no")]
    made = [permute_golds(items, seed) for seed in range(20)]
    assert {tuple(item.golds for item in one) for one in made} == {
        (("a", "b"), ("c",), (), ("no",)),
        (("c",), ("a", "b"), (), ("no",)),
    }


def test_when_categories_are_many():
    assert has_many_categories(world("coins"))
    assert not has_many_categories(world("coins", 9)), "9 categories"
    assert not has_many_categories(world("coins", 10, 100)), "100 docs each"


# --- copies -------------------------------------------------------------------------------------------


def texts_of(items):
    return [item.options[item.right] for item in items]


@pytest.mark.parametrize("draw", [permute_golds, shuffle_golds])
def test_copies_with_one_gold_keep_one(draw):
    """30 questions, each in four rotations, beside questions that stand once."""
    items = [*copied(30, 4, rotated=True), *world("coins", 5)]
    items = [replace(item, category="", doc_id=i) for i, item in enumerate(items)]
    changed = 0
    for seed in range(20):
        golds = texts_of(draw(items, seed))
        assert all(len(set(golds[i : i + 4])) == 1 for i in range(0, 120, 4))
        changed += sum(golds[i] != texts_of(items)[i] for i in range(0, 120, 4))
    assert abs(changed / 600 - 0.75) < 0.08, "another of four options"


def test_golds_of_copies_in_other_orders_change_hands_as_one():
    """Truth: four single questions with the golds A B C C and two rotated pairs with B and D as first items: A B B C C D in all."""
    items = [
        mc(i, f"Which thing {i * 'very '}?", [f"{i} {k}" for k in "abcd"], right)
        for i, right in enumerate([0, 1, 2, 2])
    ]
    for asked, right in (("What colour", 1), ("How deep", 3)):
        shown = [f"{asked} {k}" for k in "abcd"]
        items += [mc(9, asked, shown, right), mc(9, asked, shown[1:] + shown[:1], (right - 1) % 4)]
    items += [mc(99, f"And {word}?", ["e", "f"], 0) for word in "klmno"]  # so that two of the docs are no large share
    seen = set()
    for seed in range(30):
        made = permute_golds(items, seed)
        assert sorted(made[i].right for i in (0, 1, 2, 3, 4, 6)) == [0, 1, 1, 2, 2, 3]
        assert texts_of(made)[4] == texts_of(made)[5]
        assert texts_of(made)[6] == texts_of(made)[7]
        seen.add(texts_of(made)[4])
    assert len(seen) == 4


@pytest.mark.parametrize("opposite", [True, False])
def test_pairs_of_paraphrases_stay_opposite_or_alike(opposite):
    items = paraphrases(40, opposite=opposite)
    for seed in range(10):
        golds = [item.golds for item in permute_golds(items, seed)]
        assert [golds[i] != golds[i + 1] for i in range(0, 80, 2)] == [opposite] * 40
        assert Counter(golds) == Counter(item.golds for item in items) or not opposite


def test_copies_like_no_others_and_copies_with_a_source_change_hands_one_by_one():
    """Seven copies with both golds beside singles; and pairs with one gold each, of which each stands on an image of its own."""
    lone = [yesno(i, "Is it open?", ("yes", "no")[i % 2]) for i in range(7)]
    items = [
        *lone,
        *(
            yesno(7 + i, f"Is the {word} shut?", "yes")
            for i, word in enumerate(vocabulary(40, np.random.default_rng(0)))
        ),
    ]
    made = [permute_golds(items, seed) for seed in range(20)]
    assert {sum(item.golds == ("no",) for item in one) for one in made} == {3}
    assert min(sum(item.golds == ("no",) for item in one[:7]) for one in made) == 0
    named = [yesno(i, f"Is the {OBJECTS[i // 2]} here?", ("yes", "no")[i // 2 % 2], source=i) for i in range(40)]
    golds = [item.golds for item in permute_golds(named, 0)]
    assert any(golds[i] != golds[i + 1] for i in range(0, 40, 2))


@dataclass
class ByWords:
    """A diagnostic that answers the option whose words were right most often: copies get one answer."""

    name: str = "words"
    items: Sequence[Item] = ()

    def prepare(self, items, rewards):
        return replace(self, items=items)

    def predict(self, train, test, *, seed, groups):
        seen = Counter(self.items[i].options[self.items[i].right] for i in train)
        answers = [max(self.items[i].options, key=lambda text: (seen[text], text)) for i in test]
        said = [self.items[i].answers[self.items[i].options.index(text)] for i, text in zip(test, answers, strict=True)]
        return [Prediction(one, self.items[i].answers, np.full(4, 0.25)) for i, one in zip(test, said, strict=True)]


def test_scores_on_shuffled_golds_of_copies_vary_as_much_as_those_of_single_questions():
    """25 questions, each in four rotations, answered alike: the accuracy has the spread of 25 coins of 1/4 and not of 100."""
    items, diagnostic, scores = copied(25, 4, rotated=True), ByWords(), []
    for seed in range(size(25, 100)):
        made = permute_golds(items, seed)
        rewards, by = rewards_of(made), grouping(made, "none")
        prepared = diagnostic.prepare(made, rewards)
        scores.append(diagnose(prepared, made, rewards, np.arange(100), by, seeds=(0,)).accuracy)
    assert abs(np.std(scores, ddof=1) / np.sqrt(0.1875 / 25) - 1) < size(0.4, 0.2)


@dataclass
class Counting:
    """A diagnostic that counts golds: it answers the option that the question names, else the place that is most (or least) frequent in the category."""

    least: bool = False
    name: str = "counting"

    def prepare(self, items, rewards):
        return replace(self, items=items)

    items: Sequence[Item] = ()

    def predict(self, train, test, *, seed, groups):
        seen = Counter((self.items[i].category, self.items[i].right) for i in train)

        def answer(item):
            told = [place for place, option in enumerate(item.options) if option in item.question]
            rank = [(place in told, (-1 if self.least else 1) * seen[item.category, place]) for place in range(4)]
            return item.answers[rank.index(max(rank))]

        return [Prediction(answer(self.items[i]), self.items[i].answers, np.full(4, 0.25)) for i in test]


def null_of(kind, least=False, **size):
    items, diagnostic = world(kind, **size), Counting(least)
    rewards, by = rewards_of(items), grouping(items, "none")
    found = diagnose(diagnostic.prepare(items, rewards), items, rewards, np.arange(len(items)), by, seeds=(0, 1))
    return found, shuffled_null(diagnostic, items, rewards, by, found, k=5, fold_seed=0)


def test_coins_are_no_finding_whatever_the_category_counts_say():
    """The most frequent of four coins among six docs stands on half of them: the constant answer seems to know more than a guess, also on shuffled golds."""
    found, null = null_of("coins", categories=size(40, 100))
    assert found.baseline.mean() > 0.27
    assert null.own == found.accuracy
    assert null.p > 0.05
    assert [one >= null.own for one in null.shuffled] == [False] * (len(null.shuffled) - 1) + [True], (
        "the first shuffle as high decides"
    )


def test_a_category_that_names_the_gold_is_its_constant_answer_and_no_more():
    found, null = null_of("named")
    assert null.own == found.baseline.mean() == 1.0
    assert null.shuffled == (1.0,)
    assert null.p == 1


def test_categories_with_every_gold_alike_are_no_finding():
    """What the training folds lack is right: always far above a guess and the constant answer, and so it is with shuffled golds."""
    found, null = null_of("balanced", least=True, docs=4)
    assert found.accuracy > 0.7 > 0.1 > found.baseline.mean()
    assert null.p > 0.05


def test_a_question_that_names_the_gold_is_one():
    _, null = null_of("told")
    assert null.own > 0.55 > max(null.shuffled)
    assert null.p < 0.001
    assert 5 <= len(null.shuffled) < 20, "clear before the last shuffle"


def test_the_p_value_of_an_accuracy_above_shuffled_ones():
    """A new draw above the mean of m others, by Student's t with m - 1 degrees: as SciPy's prediction interval says at its very end."""
    shuffled = [0.24, 0.26, 0.25, 0.27, 0.23]
    end = 0.25 + student.ppf(0.975, 4) * np.std(shuffled, ddof=1) * np.sqrt(1.2)
    assert p_above(end, shuffled) == pytest.approx(0.05)
    assert p_above(0.27, shuffled) == 2 / 6, "one is as high"
    assert p_above(0.2, [0.3]) == 1
    assert p_above(0.4, [0.3]) == 0.5, "one shuffle says little"


def test_random_accuracies_are_seldom_beyond_random_ones():
    """The rule of the loop on normal draws, which are exchangeable: decided against at the first as high, for where p says so."""
    stream, claimed = np.random.default_rng(0), 0
    for _ in range(2000):
        own, *shuffled = stream.normal(0.25, 0.01, 21)
        ends = [
            m
            for m in range(1, 21)
            if shuffled[m - 1] >= own or (m >= FEWEST and p_above(own, shuffled[:m]) < CLEAR) or m == 20
        ]
        claimed += p_above(own, shuffled[: ends[0]]) < 0.05
    assert claimed <= 0.025 * 2000 + 2 * np.sqrt(0.025 * 2000)


# --- where they decide ------------------------------------------------------------------------------


def beyond(scores, baseline, many=False, docs=400):
    """p, and whether shuffled golds were asked, of docs of which these shares are right; a guess gets .25."""
    asked = []

    def null():
        asked.append(True)
        return Null(0.5, (0.5,), 1.0)

    right, often = (
        np.repeat([[1.0, 0.0]], [round(docs * share), docs - round(docs * share)], axis=1)
        for share in (scores, baseline)
    )
    floor = np.full(docs, 0.25)
    return p_beyond_kinds(Diagnosis(floor, floor, right, often), None, many, null), bool(asked)


def test_shuffled_golds_are_asked_only_where_they_decide():
    (small, asked), (large, also) = beyond(0.5, 0.3), beyond(0.26, 0.2, many=True)
    assert small < 0.05 < large
    assert not asked, "above a guess and the constant answer"
    assert not also, "no more than a guess"
    assert beyond(0.4, 0.4) == (1.0, True), "the constant answer may know the test set"
    assert beyond(0.5, 0.3, many=True) == (1.0, True), "of few docs it knows too little, too"
    assert p_beyond_kinds(Diagnosis(*(np.full((1, 3), np.nan),) * 4), None, False, lambda: None) is None
