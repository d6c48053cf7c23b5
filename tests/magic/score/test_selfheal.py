import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.magic.items import Step
from lmms_patch.magic.score.selfheal import continuation, wrong_runs


def chain(marks, corrections=True):
    """'.' a correct step, 'x' a wrong one with a correction, 'o' a wrong one without."""
    return [Step(f"s{n}", mark == ".", f"c{n}" if mark == "x" else "") for n, mark in enumerate(marks, 1)]


RUNS = [
    ("......", [], (0, 0, 0)), ("xxxxxx", [], (1, 0, 0)), ("x.....", [], (1, 0, 0)), (".x....", [(2, 2)], (0, 0, 0)),
    ("...x..", [(4, 4)], (0, 0, 0)),  # j = n - 2, the last that is allowed
    ("....x.", [], (0, 1, 0)),  # j = n - 1
    (".....x", [], (0, 1, 0)),
    ("..xxx.", [], (0, 1, 0)),  # never cut to fit
    (".xx.x...", [(2, 3), (5, 5)], (0, 0, 0)), ("xx.xx.xx", [(4, 5)], (1, 1, 0)), (".o....", [], (0, 0, 1)),
    (".ox...", [(2, 3)], (0, 0, 0)), (".o.x.....o", [(4, 4)], (0, 1, 1)), ("x", [], (1, 0, 0)), (".x", [], (0, 1, 0)),
    (".x.", [], (0, 1, 0)), (".x..", [(2, 2)], (0, 0, 0)), ("", [], (0, 0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("marks", "tested", "left_out"), RUNS)
def test_runs_by_hand(marks, tested, left_out):
    found = wrong_runs(chain(marks))
    assert [(run.first, run.last) for run in found.tested] == tested
    assert (found.at_start, found.near_end, found.uncorrected) == left_out


def test_what_is_injected():
    (run,) = wrong_runs(chain("..xox..")).tested
    assert run.prefix == ("s1", "s2", "s3", "s4", "s5")
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
    assert [(run.first, run.last) for run in found.tested] == [
        (i, j) for i, j in maximal if 2 <= i <= j <= n - 2 and "x" in marks[i - 1 : j]
    ]
    assert len(found.tested) + found.at_start + found.near_end + found.uncorrected == len(maximal)


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
        (
            "I see a person in R2. That is all.",
            "I see a person in R2. That is all.",
        ),  # not up to the last injected step
        ("I am asked about the pot. I see a person in R2. There is a pot on the table.", ""),
        ("", ""),
    ],
)
def test_a_continuation_is_without_the_steps_that_were_injected(response, rest):
    assert continuation(response, PREFIX) == rest
