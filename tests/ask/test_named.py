"""Which option an answer names: how models really write. The cases were written before the code."""

import time

import pytest

from lmms_patch.ask.answers import Answer
from lmms_patch.ask.named import named

LETTERS = Answer("mc", ("B",), ("A", "B", "C", "D"), ("a cat", "a dog", "a red car", "a car"))
MARKED = Answer("mc", ("(B)",), ("(A)", "(B)", "(C)", "(D)"), ("red", "blue", "green", "yellow"))
BARE = Answer("mc", ("B",), ("A", "B", "C", "D"))
TEXTS = Answer("mc", ("left",), ("left", "right", "on top"))
MANY = Answer("mc", ("B",), tuple("ABCDEFGHIJ"))
YESNO = Answer("yesno", ("Yes",), ("Yes", "No"))
TRUE = Answer("yesno", ("true",), ("true", "false"))
PIZZA = Answer("mc", ("A",), ("A", "B"), ("a box", "pizza box"))
PLACES = Answer("mc", ("1",), ("0", "1", "2"), ("x", "y", "z"))


@pytest.mark.parametrize("text", [
    "B", "b", "B.", "B)", "(B)", "(b)", "B:", "**B**", "[B]", " B \n", "B. a dog", "B) a dog", "B: a dog", "(B) a dog", "B, a dog", "B - a dog",
    "The answer is B", "The answer is (B).", "Answer: B", "answer is b", "ANSWER: (B)", "Option B", "option (B)", "My choice: B", "\\boxed{B}",
    "<answer>B</answer>", "<answer> (B) </answer>", "The correct answer is B because A is wrong.", "A seems wrong. Final answer: B",
    "Let me think. A. is a cat, C. is a car.\nThe answer is B.", "a dog", "A dog", "A dog.", "It is a dog.", "The image shows a dog", "Ｂ", "答案是B",
    "答案：B", "选B", "B、a dog", "Antwort: B", "La réponse est B", "It must be (B).", "I think it's B.", "Answer: a dog", "B\nbecause it barks",
])  # fmt: skip
def test_letters(text):
    assert named(text, LETTERS) == 2


@pytest.mark.parametrize("text", [
    '{"answer": "B"}', '```json\n{"answer": "B"}\n```', '{"reasoning": "it barks", "answer": "B"}', "<think>It could be A or C.</think>\n\nB",
    "<think>A.</think>The answer is B", "The answer is not A. It is B.", "It is not A but a dog", "B is the correct answer.", "B is correct since it barks",
    "Of these, B is the best match.", "答えはBです。", "正解はBです", "정답은 B입니다.", "答案为B。", "<|begin_of_box|>B<|end_of_box|>", "My answer is B!", "dog",
    "the dog", "Answer: B\nExplanation: A is no dog; C and D are cars.", "B\n\nA and C are wrong.", "Options A and D are wrong. Answer: (B)",
])  # fmt: skip
def test_reasons_beside_the_answer(text):
    assert named(text, LETTERS) == 2


@pytest.mark.parametrize(
    "text",
    [
        "Not A",
        "The answer is not B.",
        "Neither A nor B",
        "It isn't (C).",
        "N/A",
        "<think>B</think>",
        "The answer is either A or B.",
    ],
)
def test_what_is_ruled_out_is_not_named(text):
    assert named(text, LETTERS) == 0


@pytest.mark.parametrize("text", [
    "", " ", "unknown", "I cannot see the image clearly.", "I can't tell", "I don't know", "A or B", "A, B", "(A) and (B)", "Both A and B", "E",
    "None of the above", "a cat or a dog", "It is not a dog", "I am sorry, but I can't help.", "As an AI model, I cannot see images.", "...", "?",
    "The image is blank.", "A picture is needed to answer this.", "cats", "Answer:", "The answer is unclear", "a", "42",
])  # fmt: skip
def test_none(text):
    expected = 1 if text == "a" else 0  # a letter alone is the letter
    assert named(text, LETTERS) == expected


@pytest.mark.parametrize(("text", "place"), [
    ("a red car", 3), ("It is a red car", 3), ("a car", 4), ("A cat, not a dog", 0), ("A", 1), ("A.", 1), ("A cat is sitting there", 1), ("D", 4),
    ("C. a red car", 3), ("d)", 4),
])  # fmt: skip
def test_texts_beside_letters(text, place):
    assert named(text, LETTERS) == place


@pytest.mark.parametrize(("answer", "text", "place"), [
    (MARKED, "(B)", 2), (MARKED, "B", 2), (MARKED, "blue", 2), (MARKED, "(B) blue", 2), (MARKED, "The sky is blue", 2), (MARKED, "red and blue", 0),
    (BARE, "B", 2), (BARE, "A dog", 0), (BARE, "A man holds a cup", 0), (BARE, "I", 0), (MANY, "I", 9), (MANY, "I am not sure", 0), (MANY, "I cannot", 0),
    (MANY, "J.", 10), (MANY, "I'm unable to view it", 0),
    (TEXTS, "left", 1), (TEXTS, "Left.", 1), (TEXTS, "to the left of it", 1), (TEXTS, "left or right", 0), (TEXTS, "on top of it", 3), (TEXTS, "below", 0),
    (YESNO, "Yes", 1), (YESNO, "yes.", 1), (YESNO, "Yes, there is a dog.", 1), (YESNO, "No", 2), (YESNO, "No, there is not.", 2),
    (YESNO, "There is no dog in the image.", 2), (YESNO, "yes and no", 0), (YESNO, "I do not know", 0), (YESNO, "Not sure", 0), (YESNO, "", 0),
    (YESNO, "The answer is yes", 1), (YESNO, "Answer: No", 2), (YESNO, "None", 0), (YESNO, "nothing", 0), (YESNO, "**Yes**", 1),
    (YESNO, "Yes, there is no dog.", 1), (YESNO, "Yes.\n\nThere is no doubt.", 1), (YESNO, "No. Yes would need a dog.", 2), (YESNO, "I have no idea.", 0),
    (YESNO, "No image is provided.", 0), (YESNO, "There is no information about it", 0), (YESNO, "There is no way to tell", 0),
    (YESNO, "There is no picture on the wall", 2), (PIZZA, "pizza box", 2), (PIZZA, "box", 1), (PIZZA, "The box", 1),
    (TRUE, "True", 1), (TRUE, "false", 2), (TRUE, "The statement is false.", 2),
    (PLACES, "1", 2), (PLACES, "7", 0),
])  # fmt: skip
def test_other_forms(answer, text, place):
    assert named(text, answer) == place


def test_open_answers_have_no_options():
    assert named("a dog", Answer("open", ("a dog",))) is None
    assert named("B", Answer("mc", ("B",), ("B",))) is None


def test_a_model_that_repeats_itself_is_read_quickly():
    """Each announcement is read to the text's end: 20,000 of them took two minutes."""
    begun = time.process_time()
    assert named("answer " * 20_000, LETTERS) == 0
    assert named("The answer is B. " * 5_000, LETTERS) == 2
    assert time.process_time() - begun < 5
