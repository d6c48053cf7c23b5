"""Candidates for open answers: the frequent golds of the category, and those that the words of a question speak for."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import poisson

from lmms_patch.tst.candidates import CANDIDATES, FREQUENT, SPEAKS, Candidates
from tests.tst.worlds import free, gqa_like, vocabulary


def drawn(items, train=None):
    """Candidates of all items; those that train are in inner folds 0, 1, 2."""
    train = np.arange(len(items)) if train is None else train
    inner = np.full(len(items), -1)
    inner[train] = np.arange(len(train)) % 3
    return Candidates(items).of(train, inner)


def test_without_telling_words_the_most_frequent_golds_are_asked():
    stream = np.random.default_rng(0)
    items = [free(i, "what is it?", f"g{min(39, int(stream.exponential(8)))}") for i in range(300)]
    candidates, right = drawn(items, np.arange(250))
    counts = Counter(item.golds[0] for item in items[:250])
    top = {gold for gold, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:CANDIDATES]}
    assert all(set(own) == top for own in candidates[250:])
    assert [[own[place] for place in places] for own, places in zip(candidates, right, strict=True)] == [
        [item.golds[0]] if item.golds[0] in own else [] for item, own in zip(items, candidates, strict=True)
    ]


def test_a_word_that_tells_a_rare_gold_is_heard_among_many_that_tell_nothing():
    """60 golds, each told by a word of its own, in questions of 30 other words."""
    stream = np.random.default_rng(0)
    words, tells = vocabulary(100, stream), [f"told{k}" for k in range(60)]
    golds = stream.integers(60, size=900)
    items = [free(i, " ".join([*stream.choice(words, 30), tells[k]]), f"gold {k}") for i, k in enumerate(golds)]
    _, right = drawn(items)
    assert np.mean([bool(places) for places in right]) > 0.95


def test_questions_of_many_kinds_have_better_candidates_than_the_most_frequent_golds():
    """Twice as many of these hold fewer of the right answers."""
    items = gqa_like(1200)
    _, right = drawn(items)
    common = {gold for gold, _ in Counter(item.golds[0] for item in items).most_common(2 * CANDIDATES)}
    assert np.mean([bool(places) for places in right]) > np.mean([item.golds[0] in common for item in items])


def test_a_category_always_asks_its_own_frequent_golds():
    items = [free(i, f"how {i % 4}?", f"common {i % 20}", category="large") for i in range(400)]
    items += [free(400 + i, "how 0?", f"rare {i % 2}", category="small") for i in range(8)]
    candidates, _ = drawn(items)
    assert all({"rare 0", "rare 1"} <= set(own) for own in candidates[400:])
    assert all(len(own) == len(set(own)) == CANDIDATES for own in candidates)
    assert FREQUENT == 2
    assert drawn(items[:1]) == ([[]], [[]]), "a training item alone has no others"
    assert drawn(items, np.arange(0))[0] == [[]] * len(items)


def test_spellings_of_one_answer_are_one_candidate_and_an_own_gold_teaches_nothing():
    items = [free(i, "how many?", ("2", "2", "2.0", "Two")[i % 4]) for i in range(30)]
    items.append(free(30, "how many?", "its own alone"))
    candidates, _ = drawn(items)
    assert {tuple(own) for own in candidates[:30] if "its own alone" not in own} == {("2", "Two")}
    assert candidates[30] == ["2", "Two"]


@pytest.mark.parametrize("seed", range(3))
def test_what_a_word_says_is_a_significant_excess(seed):
    """Truth: for each word and gold the log of observed over expected, where the likelihood ratio of a Poisson count is beyond its limit."""
    stream = np.random.default_rng(seed)
    items = [
        free(i, " ".join("abcde"[k] for k in stream.integers(5, size=3)), "xyz"[stream.integers(3)]) for i in range(40)
    ]
    made, gold = Candidates(items), np.array(["xyz".index(item.golds[0]) for item in items])
    share = np.bincount(gold, minlength=3) / 40
    found = made._speaks(np.arange(40), gold, share).toarray()
    vocabulary_ = sorted({"\0", *(word for item in items for word in item.question.split())})
    for row, word in zip(found, vocabulary_, strict=True):
        own = [i for i, item in enumerate(items) if word in item.question.split() or word == "\0"]
        for k in range(3):
            seen, expected = int((gold[own] == k).sum()), len(own) * share[k]
            ratio = 2 * (poisson.logpmf(seen, seen) - poisson.logpmf(seen, expected)) if seen else 0.0
            said = np.log(seen / expected) if seen > expected and ratio > SPEAKS else 0.0
            assert row[k] == pytest.approx(said)
