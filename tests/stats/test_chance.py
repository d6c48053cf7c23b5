"""Floors on a handful of docs, by hand. Every doc is scored by exact match, but where a test says otherwise."""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.stats import chance
from lmms_patch.stats.chance import Uninformed, decide, expected, guess, majority_share
from lmms_patch.stats.resample import Estimate

LETTERS = "ABCDEFGH"


def exact(answer, gold):
    return float(answer == gold)


class Doc(NamedTuple):
    """A doc with its uninformed answers: (text, roles, score)."""

    format: str
    options: int
    gold: str | None
    scored: tuple = ()


def together(docs):
    """The answers of docs as arrays."""
    every = [(place, *answer) for place, doc in enumerate(docs) for answer in doc.scored]
    texts = sorted({text for _, text, _, _ in every})
    scores = np.array([np.nan if score is None else score for *_, score in every])
    roles = {
        name: np.array([name in of for _, _, of, _ in every], bool) & np.isfinite(scores)
        for name in ("gold", "option", "constant", "stratum", "other")
    }
    return Uninformed(
        np.array([doc.format for doc in docs], str), np.array([doc.options for doc in docs], int), [doc.gold for doc in docs],
        np.array([place for place, *_ in every], int), np.array([texts.index(text) for _, text, _, _ in every], int), texts, scores, roles,
    )  # fmt: skip


def constants(docs):
    return chance.constants(together(docs))


def published(docs, scale):
    return chance.published(together(docs), scale)


def floors_for(docs):
    return chance.floors_for(doc.format for doc in docs)


def pick(doc, name, best):
    """The text of the answer that is picked of a doc; None: there is none."""
    of = together([doc])
    (number,) = chance.pick(of, name, best)
    return None if number < 0 else of.texts[of.answers[number]]


def asked(form, gold, options=(), constant=(), stratum=None, other=None, score=exact):
    """A doc whose uninformed answers are scored, one entry per answer with all of its roles, as the plan makes them."""
    roles = {}
    for role, answers in (
        ("gold", [gold]),
        ("option", options),
        ("constant", constant),
        ("stratum", [stratum]),
        ("other", [other]),
    ):
        for answer in answers:
            if answer is not None:
                roles.setdefault(answer, set()).add(role)
    return Doc(form, len(options), gold, tuple((answer, found, score(answer, gold)) for answer, found in roles.items()))


def letters(gold, options, **more):
    return asked("mc", gold, LETTERS[:options], more.pop("constant", LETTERS[:5]), **more)


def floor(docs, name):
    """The floor under a mean: of each doc the mean of the answers that are picked, which is what a draw is worth."""
    of = together(docs)
    best = chance.constants(of)
    return (expected(of, best) if name == "uniform" else of.scores[chance.pick(of, name, best)]).mean()


# --- multiple choice -------------------------------------------------------------------------------------


def test_four_options():
    """Golds A, A, B, C: a guess gets 1/4, the constant A 2/4."""
    docs = [letters(gold, 4) for gold in "AABC"]
    assert constants(docs) == {"mc": "A"}
    assert floor(docs, "uniform") == pytest.approx(1 / 4)
    assert floor(docs, "constant") == pytest.approx(1 / 2)
    assert published(docs, 1.0) == pytest.approx(1 / 4)
    assert floors_for(docs) == ("uniform", "constant", "stratum")


def test_four_and_five_options():
    """A guess gets (1/4 + 1/4 + 1/5 + 1/5) / 4 = 0.225.

    "E" is right in two docs of five options, and no option of the others.
    """
    docs = [letters("D", 4), letters("A", 4), letters("E", 5), letters("E", 5)]
    assert floor(docs, "uniform") == pytest.approx(0.225)
    assert constants(docs) == {"mc": "E"}
    assert floor(docs, "constant") == pytest.approx(0.5)
    assert published(docs, 1.0) == pytest.approx(0.225)
    assert published(docs, 100.0) == pytest.approx(22.5)


def test_stratum_is_the_answer_of_its_own_kind():
    """Two kinds of questions, A in one and C in the other: the majority of the kind gets 5/6, any constant 3/6."""
    docs = [letters(gold, 4, stratum="A") for gold in "AAA"] + [letters(gold, 4, stratum="C") for gold in "CCB"]
    assert floor(docs, "stratum") == pytest.approx(5 / 6)
    assert floor(docs, "constant") == pytest.approx(3 / 6)


def test_constants_that_tie_go_to_the_first_in_the_alphabet():
    docs = [letters(gold, 4) for gold in "CBCB"]
    assert constants(docs) == {"mc": "B"}
    assert constants(docs[::-1]) == {"mc": "B"}


# --- yes and no ------------------------------------------------------------------------------------------


def binary(gold, **more):
    return asked("yesno", gold, ("yes", "no"), ("yes", "no"), **more)


@pytest.mark.parametrize(
    ("golds", "constant", "rule"), [(["no"] * 3 + ["yes"], 3 / 4, 3 / 4), (["no", "yes"] * 2, 1 / 2, 1 / 2)]
)
def test_skewed_golds(golds, constant, rule):
    docs = [binary(gold) for gold in golds]
    assert floor(docs, "uniform") == pytest.approx(1 / 2)
    assert floor(docs, "constant") == pytest.approx(constant)
    assert published(docs, 1.0) == pytest.approx(rule)


def test_the_rule_for_yes_and_no_is_at_least_one_half():
    """Three spellings: the most frequent gold has a share of 1/3."""
    assert published([binary(gold) for gold in ("yes", "no", "No")], 1.0) == pytest.approx(1 / 2)


def test_a_scorer_that_takes_no_answer_gives_a_floor_of_0_and_the_rule_stays():
    """RCI paper, Table 3, knows nothing of the scorer: max(0.5, majority); ours asks it."""
    docs = [binary(gold, score=lambda answer, gold: 0.0) for gold in ("yes", "no", "no")]
    assert floor(docs, "uniform") == 0
    assert floor(docs, "constant") == 0
    assert published(docs, 1.0) == pytest.approx(2 / 3)


# --- open answers ----------------------------------------------------------------------------------------


def words(gold, **more):
    return asked("open", gold, (), ("cat", "dog"), **more)


def test_open_answers():
    """Golds cat, cat, dog, bird: the constant "cat" gets 2/4; there is nothing to guess from."""
    docs = [words(gold) for gold in ("cat", "cat", "dog", "bird")]
    assert constants(docs) == {"open": "cat"}
    assert floor(docs, "constant") == pytest.approx(1 / 2)
    assert floor(docs, "uniform") == pytest.approx(1 / 2)  # a doc without options takes the constant
    assert floors_for(docs) == ("constant", "stratum")
    assert published(docs, 1.0) == pytest.approx(1 / 2)


def test_the_best_constant_need_not_be_the_most_frequent_gold():
    """Consensus scores: "cat" is the gold of two docs at 0.3 each, "dog" of one at 1: the scorer decides, the paper's rule counts golds."""
    score = {("cat", "cat"): 0.3, ("dog", "dog"): 1.0}
    docs = [
        words(gold, score=lambda answer, gold: score.get((answer, gold), 0.0)) for gold in ("cat", "cat", "dog", "bird")
    ]
    assert constants(docs) == {"open": "dog"}
    assert floor(docs, "constant") == pytest.approx(1 / 4)
    assert published(docs, 1.0) == pytest.approx(0.6 / 4)


def test_no_rule_where_the_majority_answer_was_not_scored():
    docs = [asked("open", gold, (), ("dog",)) for gold in ("cat", "cat", "dog")]
    assert published(docs, 1.0) is None
    assert published([], 1.0) is None
    assert published([asked("open", None, (), ("dog",))], 1.0) is None


# --- mixed formats, captions -----------------------------------------------------------------------------


def test_mixed_formats_take_the_best_constant_of_each():
    """Two yes/no docs (no, no), two of four options (A, B), two open (cat, dog).

    Guess: (1/2 + 1/2 + 1/4 + 1/4 + 1 + 0) / 6 = 2.5/6, open docs by their constant. Constants no, A, cat: (1 + 1 + 1 +
    0 + 1 + 0) / 6. The rule: max(1/2, 2/2) twice, 1/4 twice, and cat.
    """
    docs = [binary("no"), binary("no"), letters("A", 4), letters("B", 4), words("cat"), words("dog")]
    assert constants(docs) == {"yesno": "no", "mc": "A", "open": "cat"}
    assert floor(docs, "uniform") == pytest.approx(2.5 / 6)
    assert floor(docs, "constant") == pytest.approx(4 / 6)
    assert published(docs, 1.0) == pytest.approx((1 + 1 + 0.25 + 0.25 + 1 + 0) / 6)
    assert floors_for(docs) == ("uniform", "constant", "stratum")


def test_captions_take_the_gold_of_another_doc():
    def overlap(answer, gold):
        return len(set(answer.split()) & set(gold.split())) / 3

    golds = ["a red bus", "a red car", "two small dogs"]
    docs = [asked("caption", gold, (), golds[:1], other=golds[i - 1], score=overlap) for i, gold in enumerate(golds)]
    assert floors_for(docs) == ("other",)
    assert floor(docs, "other") == pytest.approx((0 + 2 / 3 + 0) / 3)
    assert floors_for([*docs, words("cat")]) == ("constant", "stratum")


@pytest.mark.parametrize(
    ("formats", "deciding"),
    [
        (["number"], ("constant", "stratum")),
        (["open", "number"], ("constant", "stratum")),
        (["open", "yesno"], ("uniform", "constant", "stratum")),
        (["caption"], ("other",)),
        (["caption", "mc"], ("uniform", "constant", "stratum")),
        ([], ("constant", "stratum")),
    ],
)
def test_which_floors_decide(formats, deciding):
    assert floors_for([Doc(form, 0, None) for form in formats]) == deciding


# --- what was not scored ---------------------------------------------------------------------------------


def test_unscored_answers_are_no_zeros():
    """The scorer gave nothing for "B": the guess is over the other three, and a constant cannot be B."""
    docs = [
        letters(gold, 4, score=lambda answer, gold: None if answer == "B" else exact(answer, gold)) for gold in "ABB"
    ]
    assert constants(docs) == {"mc": "A"}
    assert floor(docs[:1], "uniform") == pytest.approx(1 / 3)


def test_guesses_are_options_and_as_often_each():
    """A doc of four options between two of two and one of none, which takes its constant."""
    of = together([letters("A", 2), letters("A", 4), letters("B", 2), words("cat")])
    stream = np.random.default_rng(0)
    drawn = np.array([guess(of, {"open": "dog"}, stream) for _ in range(4000)])
    texts = np.array(of.texts)[of.answers[drawn]]
    assert (of.docs[drawn] == np.arange(4)).all()
    assert [sorted(set(column)) for column in texts.T] == [["A", "B"], list("ABCD"), ["A", "B"], ["dog"]]
    assert [np.mean(texts[:, k] == "A") for k in range(3)] == pytest.approx([1 / 2, 1 / 4, 1 / 2], abs=0.04)


# --- the largest -----------------------------------------------------------------------------------------


def estimate(value):
    return Estimate(value, 0.01, None, None, 10, 10, 1000)


def test_the_largest_of_the_deciding_floors():
    floors = {"uniform": estimate(0.25), "constant": estimate(0.3), "stratum": estimate(0.2), "other": estimate(0.9)}
    assert decide(floors, ("uniform", "constant", "stratum")) == ("constant", floors["constant"])
    assert decide(floors, ("other",)) == ("other", floors["other"])
    assert decide(floors, ("uniform",)) == ("uniform", floors["uniform"])


@given(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=30))
def test_no_uniform_guess_beats_the_best_constant_where_all_docs_have_the_same_options(golds):
    docs = [letters(gold, 4, constant="ABCD") for gold in golds]
    assert floor(docs, "constant") >= floor(docs, "uniform") - 1e-12
    assert floor(docs, "constant") == pytest.approx(majority_share(Counter(golds)))
