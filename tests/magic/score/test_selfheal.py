import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.magic.items import Step
from lmms_patch.magic.score.selfheal import (
    BORROWED,
    Claim,
    WrongRuns,
    chance_by_words,
    claims,
    continuation,
    healed_by_words,
    mentions_correction,
    read_sentences,
    self_heal,
    wrong_runs,
)


def chain(marks, corrections=True):
    """'.' a correct step, 'x' a wrong one with a correction, 'o' a wrong one without."""
    return [Step(f"s{n}", mark == ".", f"c{n}" if mark == "x" else "") for n, mark in enumerate(marks, 1)]


@pytest.mark.parametrize(
    ("marks", "tested", "left_out"),
    [
        ("......", [], (0, 0, 0)),
        ("xxxxxx", [], (1, 0, 0)),
        ("x.....", [], (1, 0, 0)),
        (".x....", [(2, 2)], (0, 0, 0)),
        ("...x..", [(4, 4)], (0, 0, 0)),  # j = n - 2, the last that is allowed
        ("....x.", [], (0, 1, 0)),  # j = n - 1
        (".....x", [], (0, 1, 0)),
        ("..xxx.", [], (0, 1, 0)),  # never cut to fit
        (".xx.x...", [(2, 3), (5, 5)], (0, 0, 0)),
        ("xx.xx.xx", [(4, 5)], (1, 1, 0)),
        (".o....", [], (0, 0, 1)),
        (".ox...", [(2, 3)], (0, 0, 0)),
        (".o.x.....o", [(4, 4)], (0, 1, 1)),
        ("x", [], (1, 0, 0)),
        (".x", [], (0, 1, 0)),
        (".x.", [], (0, 1, 0)),
        (".x..", [(2, 2)], (0, 0, 0)),
        ("", [], (0, 0, 0)),
    ],
)
def test_runs_by_hand(marks, tested, left_out):
    found = wrong_runs(chain(marks))
    assert [(run.first, run.last) for run in found.tested] == tested
    assert (found.at_start, found.near_end, found.uncorrected) == left_out


def test_what_is_injected():
    (run,) = wrong_runs(chain("..xox..")).tested
    assert run.prefix == ("s1", "s2", "s3", "s4", "s5")
    assert run.wrong == ("s3", "s4", "s5")
    assert run.corrections == ("c3", "c5")
    assert wrong_runs([Step("a", True), Step("b", False, "  "), Step("c", True), Step("d", True)]).uncorrected == 1


@given(st.text("..xo", max_size=14))
def test_runs_against_brute_force(marks):
    n = len(marks)
    maximal = [
        (i, j)
        for i in range(1, n + 1)
        for j in range(i, n + 1)
        if "." not in marks[i - 1 : j] and (i == 1 or marks[i - 2] == ".") and (j == n or marks[j] == ".")
    ]
    found = wrong_runs(chain(marks))
    assert [(run.first, run.last) for run in found.tested] == [(i, j) for i, j in maximal if 2 <= i <= j <= n - 2 and "x" in marks[i - 1 : j]]
    assert len(found.tested) + found.at_start + found.near_end + found.uncorrected == len(maximal)


def test_score_by_hand():
    score = self_heal([True, False, None, True, True], runs=[WrongRuns((), 1, 2, 3), WrongRuns((), 0, 1, 0)])
    assert score.score.value == pytest.approx(3 / 4)
    assert (score.judged, score.unjudged) == (4, 1)
    assert (score.at_start, score.near_end, score.uncorrected) == (1, 3, 3)
    assert score.score.low is None
    assert self_heal([]).score.value is None
    assert self_heal([None, None], ["a", "b"]).score.value is None


def test_subsequences_of_one_image_go_together():
    rng = np.random.default_rng(0)
    verdicts = [bool(v) for v in rng.random(60) < 0.4 for _ in range(4)]
    clustered, free = self_heal(verdicts, [i // 4 for i in range(240)]), self_heal(verdicts)
    assert clustered.score.clusters == 60
    assert clustered.score.se / free.score.se == pytest.approx(2, rel=0.15)
    assert free.score.se == pytest.approx(np.std(verdicts) / np.sqrt(240), rel=0.1)  # the binomial standard error
    with pytest.raises(ValueError, match="clusters"):
        self_heal([True], ["a", "b"])


WRONG, RIGHT = (
    "To their right, there is a table, and on top of that table, there is a pot.",
    "To their right, there is a big pot on the ground in Region 1.",
)


@pytest.mark.parametrize(
    ("continuation", "healed"),
    [
        ("Wait, I was wrong: the big pot stands on the ground in R1.", True),
        ("It is not on the table, it is on the ground in region 1, a big pot.", True),
        ("So, there is a pot on the table. It holds flowers.", False),
        ("The flowers are red.", False),
        ("", False),
        ("The big pot on the ground in R1? No. The pot is on top of the table.", False),
        ("The pot is on top of the table. Actually, the big pot is on the ground in Region 1.", True),
    ],
)
def test_without_a_judge(continuation, healed):
    assert mentions_correction(continuation, RIGHT, WRONG) is healed


def test_boxes_are_words():
    right, wrong = "I see a white plate in Region 1.", "I see a white plate in Region 2."
    assert mentions_correction("Hmm, the plate is in `R1`.", right, wrong)
    assert not mentions_correction("Hmm, the plate is in `R2`.", right, wrong)
    assert mentions_correction("It is R1 and not R2.", right, wrong)
    assert not mentions_correction("R1 and R2 both.", right, wrong)


def test_what_cannot_be_seen():
    assert not mentions_correction("There is a dog.", "There is a dog.", "There is a brown dog.")


PREFIX = ["I am asked about the pot.", "I see a person in R2.", "There is a pot on the table."]


@pytest.mark.parametrize(
    ("response", "rest"),
    [
        ("No, it is on the ground.", "No, it is on the ground."),
        ("There is a pot on the table. No, it is on the ground.", "No, it is on the ground."),
        (
            "**Thought Process**: I am asked about the pot. I see a person in R2.\nThere is a pot on the table.\n\nNo, on the ground.",
            "No, on the ground.",
        ),
        ("i am asked about the pot; I see a person in `R2`. There is a pot on the table.\n1. Wait.", "1. Wait."),
        ("I see a person in R2. That is all.", "I see a person in R2. That is all."),  # not up to the last injected step
        ("I am asked about the pot. I see a person in R2. There is a pot on the table.", ""),
        ("", ""),
    ],
)
def test_a_continuation_is_without_the_steps_that_were_injected(response, rest):
    assert continuation(response, PREFIX) == rest


@pytest.mark.parametrize(
    ("continuation", "healed"),
    [
        ("It is not true that the big pot is on the ground in Region 1.", False),
        ("The big pot is on the ground in R1. That is not true.", False),
        ("The big pot is on the ground in R1? No.", False),
        ("I doubt the big pot is on the ground in R1.", False),
        ("There isn\u2019t a big pot on the ground in R1.", False),
        ("I do not think there is a table. It is a big pot on the ground in R1.", True),
        ("That is not right: the big pot is on the ground in R1.", True),
        ("No, the big pot is on the ground in R1.", True),
        ("No doubt the big pot is on the ground in R1.", True),
        ("The pot is on the ground in R1, not on the table.", True),
        ("The table was wrong. The big pot is on the ground in R1.", True),
        ("The big pot is on the ground in R1, so the table was wrong.", True),
        ("It's not a table but the ground in R1.", True),
    ],
)
def test_what_is_denied_is_not_said(continuation, healed):
    assert mentions_correction(continuation, RIGHT, WRONG) is healed


def test_words_of_the_question_do_not_count():
    assert claims(["It is a 5."], ["It is a 6."], "Is it a 5?") == ()
    assert claims(["R1 shows a 5."], ["R2 shows a 6."], "Is it a 5?") == (Claim(frozenset({"#1"}), frozenset({"#2", "6"})),)
    assert not mentions_correction("Is it a 5? It is a 5.", "It is a 5.", "It is a 6.", "Is it a 5?")


def claim(*right, wrong=("6",)):
    return Claim(frozenset(right), frozenset(wrong))


@pytest.mark.parametrize(
    ("said", "own", "others", "question", "boxes", "share"),
    [
        ("It is a 5.", [claim("5")], [claim("5"), claim("1"), claim("2"), claim("3")], "", 4, 1 / 4),
        (
            "It is a 5.",
            [claim("5")],
            [claim("5"), claim("6"), claim("2"), claim("red")],
            "",
            4,
            1 / 2,
        ),  # not 6, which is the mistake; not red: no number
        ("It is a 5.", [claim("5")], [claim("5"), claim("2"), claim("3")], "Is it a 2?", 4, 1 / 2),
        ("It is a 5.", [claim("5")], [claim("red"), claim("blue")], "", 4, 0),  # no other number: any word
        ("It is a 5.", [claim("5")], [], "", 4, 1),  # nothing to compare with
        ("It is in R1.", [claim("#1", wrong=["#2"])], [claim("#7")], "", 4, 1 / 3),  # one of R1, R3 and R4
        ("Look at R1. Look at R3. Look at R4.", [claim("#1", wrong=["#2"])], [claim("#7")], "", 4, 1),
        ("It is in R1.", [claim("#1", wrong=["#2"])], [claim("#7", "#8")], "", 3, 1),  # two of R1 and R3; one is half of them
        ("It is a 5 in R1.", [claim("5"), claim("#1", wrong=["#2"])], [claim("4"), claim("5"), claim("#9")], "", 3, 1 - 1 / 2 * 1 / 2),
    ],
)
def test_chance_by_hand(said, own, others, question, boxes, share):
    found = chance_by_words(read_sentences(said), own, others, question, boxes, 7)
    assert found == pytest.approx(share, abs=0.0 if share in (0, 1) else 3 * math.sqrt(share * (1 - share) / BORROWED))
    assert found == chance_by_words(read_sentences(said), own, others, question, boxes, 7)


def test_without_a_claim_there_is_neither_verdict_nor_chance():
    assert healed_by_words(read_sentences("It is a 5."), ()) is None
    assert chance_by_words(read_sentences("It is a 5."), (), [claim("5")], "", 4) is None
