"""The prompts say what the paper's figures 13 and 14 say, about the boxes that are drawn."""

import re

import pytest

from lmms_patch.magic import prompts
from lmms_patch.magic.score.response import parse

QUESTION = "What is in the pot?"
SHOT = prompts.Example("What is it?", 2, ("I see a cat in R2.", "It is black."), "The cat is black.")


@pytest.mark.parametrize("boxes", [1, 2, 5, 60])
def test_the_boxes_are_named_and_counted(boxes):
    text = prompts.ask(QUESTION, boxes)
    assert f"({boxes} outlined region{'s' if boxes > 1 else ''})" in text
    numbers = {int(number) for number in re.findall(r"`R(\d+)`", text)}
    assert numbers == {1, boxes}
    assert text.endswith(f"**Question**: {QUESTION}")


def test_without_boxes_none_is_spoken_of():
    text = prompts.ask(QUESTION, 0)
    assert not re.search(r"\bR\d|region|outline|red\b", text)


def test_only_self_heal_asks_for_corrections():
    assert "turns out to be wrong" in prompts.ask(QUESTION, 3, correct=True)
    assert "turns out to be wrong" not in prompts.ask(QUESTION, 3)


def test_examples_come_first_and_say_whether_their_image_is_there():
    without = prompts.ask(QUESTION, 3, [SHOT, SHOT])
    assert (
        "## Example 2, without its image (2 outlined regions)\n**Question**: What is it?\n**Thought Process**: I see a cat in R2. It is black."
        in without
    )
    assert without.index("The cat is black.") < without.index(QUESTION)
    assert "## Image 1 (3 outlined regions)\n**Question**: What is in the pot?" in without
    assert "On the image, 3 regions" in without
    shown = prompts.ask(QUESTION, 3, [SHOT, SHOT], images=True)
    assert [int(number) for number in re.findall(r"## Image (\d)", shown)] == [1, 2, 3]
    assert "On the last image, 3 regions" in shown


def test_an_example_is_in_the_form_that_a_response_is_read_in():
    text = prompts.ask(QUESTION, 3, [SHOT]).split("**Question**: What is it?\n")[1].split("\n\n")[0]
    read = parse(text)
    assert (read.steps, read.answer) == (SHOT.steps, SHOT.answer)


def test_the_injected_steps_end_the_prompt_or_begin_the_turn():
    steps = ["I see a pot.", "It is on the table."]
    text = prompts.ask_to_go_on(prompts.ask(QUESTION, 2, correct=True), steps)
    assert f"**Question**: {QUESTION}\n**Thought Process**: I see a pot. It is on the table." in text
    assert "not finished" in text.rsplit("\n", 1)[1]
    assert prompts.go_on(steps) == "**Thought Process**: I see a pot. It is on the table."
