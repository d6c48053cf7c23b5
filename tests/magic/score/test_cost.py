"""What a model or a judge writes costs time in proportion to its length, whatever it is: ten times the text, at most 25 times the time.

The texts are runs of what the patterns repeat, before, behind and between what they look for. Before patterns were made
to read each run in one way, several of these took minutes for 100 kB.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from lmms_patch.magic.prompts import ask
from lmms_patch.magic.rows import unique_keys
from lmms_patch.magic.score.extract import own_steps, regions, renumber
from lmms_patch.magic.score.matching import exact, synonym
from lmms_patch.magic.score.mentions import groups
from lmms_patch.magic.score.response import parse
from lmms_patch.magic.score.selfheal import continuation
from lmms_patch.magic.score.verdicts import heal_inquiry, read, short_inquiry, steps_inquiry
from tests.sizes import size

SHORT, HEAL, STEPS = short_inquiry("Q", "a", "b"), heal_inquiry("p", ["c"], "x"), steps_inquiry("q", "g", ["a", "b"])

Text = tuple[str, str, str]
"""What stands before the run, what is repeated, what stands behind it."""


def text(parts: Text, length: int) -> str:
    before, run, after = parts
    return before + (run * (length // len(run) + 1))[:length] + after


def seconds(read_one: Callable[[str], Any], parts: Text, length: int) -> float:
    given = text(parts, length)
    begin = time.process_time()
    read_one(given)
    return time.process_time() - begin


SMALL = size(250, 4_000)
"""Characters of the short text."""


def assert_in_proportion(read_one: Callable[[str], Any], parts: Text) -> None:
    """Compare a text with ten times as much, best of several where the first try does not do: other processes disturb."""
    small = seconds(read_one, parts, SMALL)
    assert small < 2, parts  # else the long one may take hours
    large = seconds(read_one, parts, 10 * SMALL)
    for _ in range(4):
        if large <= 25 * max(small, 0.0005):
            return
        small, large = min(small, seconds(read_one, parts, SMALL)), min(large, seconds(read_one, parts, 10 * SMALL))
    raise AssertionError(f"{parts}: {small:.4f} s for {SMALL} bytes, {large:.4f} s for ten times as many")


DECORATION = [("box ", run, "x") for run in (" ", "*", '"', "\t", "_", "`", "(")] + [("R1-", run, "x") for run in "`[ "]
REGIONS: list[Text] = [
    *DECORATION, ("", "box \n", ""), ("", "R1, R2, ", ""), ("", "R1-", ""), ("R1, ", " ", "1. x"), ("", "1st, ", ""),
    ("", "first, second and ", ""), ("the first box", " ", "x"), ("the first box ", "is ", "x"), ("", "box 1 of ", ""),
    ("", "R1 (", ""), ("R1 ", "(", ""), ("", "not in the R1 ", ""), ("", "region one ", ""), ("", "９", ""),
    ("box **", "*", "1, 2"), ("boxes 1", "*", "*, 2"), ("", "R1R2", ""), ("R[1", ",1", "x"), ("<box>1", ", 1", "x"),
    ("", "<region>1", ""), ("", "#1 ", ""), ("", "\n#1 is", ""), ("", "the box around the dog (1) ", ""),
    ("", "the box around ", "(1)"), ("", "第1个", "框"), ("", "区域一和", ""), ("", "R\u200b1 ", ""),
    ("R1", " \\ldots ", "R2"), ("", "from R1 to R2 ", ""), ("", "(R)1 ", ""), ("", "R (1), L (1) ", ""),
    ("", "boxes 1 (a), ", ""), ("R1", " (a)", ", 2"), ("R1 ", "(a", ")"), ("boxes 1", ": a", ", 2"),
    ("", "the last box ", ""), ("", "all four ", "boxes"), ("", "область ", "1"), ("", "vùng thứ hai và ", ""),
    ("box ", "id ", "1"), ("box", " =", "1"), ("box", "\n", "1"), ("", "The 日本", ""), ("", "I used every box ", ""),
    ("the first box ", "and the ", "third."), ("", "the first box and the second, ", ""),
    ("the first box ", "as primeiras ", "2"), ("", "all boxes except 1 ", ""),
    ("the relevant boxes are ", "the first, ", "x"), ("", "in ② ", ""), ("", "#1 box ", ""), ("", "object 2 ", ""),
    ("", "第1、2、", "3个框"), ("第1", "、2", "个框"),
]  # fmt: skip
DISMISSED: list[Text] = [
    ("", "not R1 ", ""), ("R1", " ", "x"), ("", "~~R1", ""), ("R1", "都", "x"), ("without ", "the ", "R1"),
    ("R1 is", " not", ""), ("", "R1, no, ", ""), ("R1", ", no", ", R2"), ("R1 ", "it ", "is irrelevant"),
    ("R1 ", "skip ", "it"), ("I thought ", "I thought ", "R1"), ("", "all but R1 ", ""),
    ("", "except R1, all boxes ", ""), ("R1", "以外の全", "領域"), ("", "枠1以外のすべての枠", ""), ("all ", "boxes ", "except R1"),
    ("", "R1 ❌ ", ""), ("R1 ", "a ", "❌"), ("R1's ", "lamp ", "is irrelevant"), ("ignoring ", "the ", "R1"),
    ("", "ignored_", "boxes: 1"), ("", "不是框4", ""), ("R1 ", "и ", "не важна"), ("R1 ", "no ", "question"),
    ("I ignore ", "the ", "lamp in R1"), ("", "R1. No, ", ""), ("", "R1 (a) and ", ""), ("", "R1: a → ", "toss"),
    ("R1 ", "→ ", "toss"), ("the others ", "(", "R1) don't"), ("", "the others (R1) ", "don't"),
    ("", "neither ", "R1 helps"), ("", "not R1, but R2. R1 ", ""),
]  # fmt: skip
HEADED: list[Text] = [
    ("", "Relevant: 1, ", ""), ("Used: ", "1, ", "2"), ("Used:", " ", "1, 2"), ("Used: 1", " ", ", 2"),
    ("", "Used: 1 (", ""), ("", "dog [1] ", ""), ("", "| Relevant | ", ""), ("", "| Region | 1 |\n", ""),
    ("| Region |\n", "| 1", ""), ("Regions:\n", "- 1\n", ""), ("", "boxes: 1 - a, ", ""), ("boxes: ", "1 - a, ", ""),
    ("among the boxes, 1", ", 2", ""), ("", "relevant_", "regions:"), ("| ", "*", " |"),
    ("", '{"id": 1, "box": 2}, ', ""), ("", "{", '"id": 1}'), ('{"id": ', "1", ', "box": 2}'),
    ('{"', "a_", 'id": 1, "box": 2}'), ('"boxes": [', " ", "{}"), ("| ID | a |\n", "| 1 | a |\n", ""),
    ("Irrelevant regions:\n", "- R1\n", ""), ("boxes that ", "matter ", ": 1, 2."), ("boxes: 1", ", 1", "x"),
    ('"evidence": [1', ", 2", '], "a": 1'), ("", '"look_at": 1, ', ""), ("从", "[1]里", "[2]中"),
    ('"', "a_", 'evidence": 1}'),
]  # fmt: skip
ANSWERS: list[Text] = [
    ("", "red ", ""), ("", "red or ", ""), ("", "not ", ""), ("", "1.", ""), ("", "a", ""), ("", "2, ", ""),
    ("", "…", ""), ("box ", "*", "x"), ("", "red.\n", ""),
]  # fmt: skip
RESPONSES: list[Text] = [
    *((before, run, "x") for before in ("Answer", "Answer:", "Step 1", "x") for run in " *`_\t\n"),
    ("", "Answer: explanation: ", ""), ("", "Answer:\n", ""), ("", "<answer>", ""), ("", "<think>", ""),
    ("", "</think>", ""), ("", '{"answer": "', ""), ('"answer": "', '\\"', ""), ("", "\\boxed{", ""),
    ("Answer: ", "\\text{", "x"), ("Answer: ", "$", "x"), ("", "```\n", ""), ("", "{", ""), ("", "a\n", ""),
    ("", "a.\n", ""), ("", ".", ""), ("", "…", " x"), ("", "the answer is ", ""), ("the answer is", " ", "x"),
    ("", "**Question**: a\n", ""), ("Answer: x\n", "## Image 2\nquestion: a\n", ""), ("", '"to the question "', ""),
    ("", "(a) ", ""),
]  # fmt: skip
REPLIES: list[Text] = [

    *((start, run, "x") for start in ("x", "Correctness", "Correctness:", "Step 1", "```") for run in "\n.* "),
    *(("Step 1: Correct", run, "x") for run in "\n.* "),
    ("", "Correctness: ", ""), ("", "Correctness:\n", ""), ("", "x. Correctness: Correct\n", ""),
    ("", "Step 1: Correct\n", ""), ("", "Step 1:", ""), ("", "**\n", ""), ("", "```json\n", ""),
    ("```\n", "\n \n", ""), ("", "[", ""), ("", '{"steps": ', ""), ("[", "1,", ""), ("[1, ", "1", "]"),
    ("", "> ", "Final judgement: YES"),
]  # fmt: skip


@pytest.mark.parametrize("parts", REGIONS[:: size(3, 1)], ids=repr)
def test_regions(parts: Text) -> None:
    assert_in_proportion(lambda given: groups(given, 4), parts)


@pytest.mark.parametrize("parts", [*DISMISSED, *HEADED][:: size(3, 1)], ids=repr)
def test_dismissals_and_headings(parts: Text) -> None:
    assert_in_proportion(lambda given: regions(given, 4), parts)


PROMPT = ask("Is the dog in R1 bigger than the cat in R2?", 4)
FIRST = "On the image, 4 regions are outlined in red and numbered R1 to R4"


@pytest.mark.parametrize(
    "parts",
    [("", f"{FIRST}. ", ""), ("", f"{FIRST} ", ""), ("", "regions R1 to R4 and R2. ", ""), ("", "the R1 ", "")],
    ids=repr,
)
def test_repeated_prompts(parts: Text) -> None:
    assert_in_proportion(lambda given: own_steps(parse(given).steps, PROMPT, 4), parts)


@pytest.mark.parametrize("parts", ANSWERS, ids=repr)
def test_answers(parts: Text) -> None:
    for gold in ("red", "2", "yes"):
        assert_in_proportion(lambda given, gold=gold: (synonym(given, gold), exact(given, gold)), parts)


@pytest.mark.parametrize("parts", RESPONSES[:: size(3, 1)], ids=repr)
def test_responses(parts: Text) -> None:
    assert_in_proportion(lambda given: parse(given, "What is it?"), parts)


def test_wrappings_of_an_answer_one_in_the_other() -> None:
    for length in (1_000, 10_000):
        assert parse("Answer: " + "\\boxed{" * length + "cup" + "}" * length).answer == "cup"
    assert_in_proportion(
        lambda given: parse("Answer: " + given + "cup" + "}" * (len(given) // 7)), ("", "\\boxed{", "")
    )


@pytest.mark.parametrize("parts", REPLIES[:: size(3, 1)], ids=repr)
def test_replies_of_a_judge(parts: Text) -> None:
    assert_in_proportion(lambda given: [read(inquiry, given) for inquiry in (SHORT, HEAL, STEPS)], parts)


@pytest.mark.parametrize(
    "parts",
    [("", "R1, ", ""), ("", "a ", ""), ("", "a. ", "b"), ("", "the second box ", ""), ("", "and it is ", "")],
    ids=repr,
)
def test_other_readers(parts: Text) -> None:
    assert_in_proportion(lambda given: regions(given, 4), parts)
    assert_in_proportion(lambda given: renumber(given, {1: 2, 2: 1}, 2), parts)


@pytest.mark.parametrize("parts", [("", "a ", ""), ("", "a ", "b"), ("", "a b a c ", "")], ids=repr)
def test_injected_steps_that_are_written_again(parts: Text) -> None:
    assert_in_proportion(lambda given: continuation(given, [*given.split(), "x"]), parts)


def test_keys_of_an_object() -> None:
    keys: list[tuple[str, Any]] = [*((str(at), 0) for at in range(100_000)), ("99999", 0)]
    with pytest.raises(ValueError, match="'99999' stands twice"):
        unique_keys(keys)  # before, every key was counted in all of them: minutes
