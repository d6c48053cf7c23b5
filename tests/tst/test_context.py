"""What prompts say beside questions and options."""

import pytest

from lmms_patch.ask.answers import without_listed
from lmms_patch.tst.context import contexts

TELL = "Answer with the option's letter."


@pytest.mark.parametrize(
    ("prompt", "question", "expected"),
    [
        (f"Which?\nA. cup\nB. dog\n{TELL}", "Which?", ""),
        (f"Hint: it barks.\nWhich?\nA. cup\nB. dog\n{TELL}", "Which?", "Hint: it barks."),
        (f"Which?\nA. cup\nB. dog\nHint: it barks.\n{TELL}", "Which?", "Hint: it barks."),
        (
            f"Context: a walk\nin the park.\nQuestion: Which?\nA. cup\nB. dog\n{TELL}",
            "Which?",
            "Context: a walk\nin the park.\nQuestion:",
        ),
        (f"Which? A. cup B. dog\n{TELL}", "Which?", ""),
        (f"Which?\nHint: B is red.\nA. cup\nB. dog\n{TELL}", "Which?", "Hint: B is red."),
        (f"<image 1>Which?\n{TELL}", "Which is not in the prompt?", "<image 1>Which?"),
        ("", "Which?", ""),
        (TELL, "", ""),
    ],
)
def test_what_stands_beside_the_question(prompt, question, expected):
    """By hand; ten docs without a hint stand beside it, so that the instruction is known as one."""
    plain = [(f"Which {i}?\nA. a{i}\nB. b{i}\n{TELL}", f"Which {i}?") for i in range(10)]
    found = contexts([prompt, *(text for text, _ in plain)], [question, *(asked for _, asked in plain)])
    assert found == [expected, *[""] * 10]


def test_a_line_of_half_the_docs_is_no_instruction():
    assert (
        contexts(["q1\nthe dog is left", "q2\nthe dog is left", "q3", "q4"], ["q1", "q2", "q3", "q4"])
        == ["the dog is left"] * 2 + [""] * 2
    )
    assert contexts(["q\na hint"], ["q"]) == ["a hint"]
    assert contexts([], []) == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("no list", "no list"),
        ("A. alone", "A. alone"),
        ("Pick (A) red, (B) blue", "Pick "),
        ("A: x\nB: y\nC: z", "\n\n"),
        ("A. x\n\nB. y\n\nend", "\n\n\n\nend"),
    ],
)
def test_listed_options_are_cut_out(text, left):
    assert without_listed(text) == left
