import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lmms_patch.magic.score.extract import regions, regions_of_steps
from lmms_patch.magic.score.response import MARKERS, Response, parse, sentences
from tests.sizes import examples

SENTENCES = [
    ("R1 shows a dog. It is brown.", ["R1 shows a dog.", "It is brown."]),
    ("1. Okay, I look at R1.\n2. It shows a dog.", ["Okay, I look at R1.", "It shows a dog."]),
    ("1) First.\n2) Second!", ["First.", "Second!"]), ("- R1: a chair\n- R3: a table", ["R1: a chair", "R3: a table"]),
    ("R1. The man is standing. R2. The dog sits.", ["R1. The man is standing.", "R2. The dog sits."]),
    ("**R1.** The man is standing.", ["**R1.** The man is standing."]),
    ("I look at R1. The man is standing.", ["I look at R1.", "The man is standing."]),
    ("Step 1: look around.\nStep 2: find the cup.", ["look around.", "find the cup."]),
    ("The cup is 2.5 cm wide. It is in R2.", ["The cup is 2.5 cm wide.", "It is in R2."]),
    ("There are vehicles, e.g. R2 and i.e. R3. Done.", ["There are vehicles, e.g. R2 and i.e. R3.", "Done."]),
    ("Mr. Smith vs. Dr. Jones. They talk.", ["Mr. Smith vs. Dr. Jones.", "They talk."]),
    ("It shows cups, plates, etc. The table is red.", ["It shows cups, plates, etc.", "The table is red."]),
    ("It shows cups, etc. on the table.", ["It shows cups, etc. on the table."]),
    ("Hmm... maybe it is R2. Is it? Yes!", ["Hmm... maybe it is R2.", "Is it?", "Yes!"]),
    ("Wait... The cup is red.", ["Wait...", "The cup is red."]),
    ('He says "stop." Then he goes.', ['He says "stop."', "Then he goes."]),
    ("it is red. it is in `R2`. `R3` is empty.", ["it is red.", "it is in `R2`.", "`R3` is empty."]),
    ("J. Smith is in R1. He waves.", ["J. Smith is in R1.", "He waves."]),
    ("I would say option B. The rest is wrong.", ["I would say option B.", "The rest is wrong."]),
    ("There are 2. Both are red.", ["There are 2.", "Both are red."]),
    ("a line that is wrapped\nand goes on. Next.", ["a line that is wrapped and goes on.", "Next."]),
    ("## R1\n\n---\nA dog.", ["R1", "A dog."]), ("1. Look at R1. 2. Look at R2.", ["Look at R1.", "Look at R2."]),
    ("看R2。有一只狗。", ["看R2。", "有一只狗。"]), ("", []), ("...\n***\n", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "steps"), SENTENCES)
def test_sentences_by_hand(text, steps):
    assert list(sentences(text)) == steps


@pytest.mark.parametrize(
    ("response", "answer", "marker", "steps"),
    [
        (
            "**Thought Process**: I see R1. It is red.\n**Answer**: It is red.",
            "It is red.",
            "line",
            ["I see R1.", "It is red."],
        ),
        ("I see R1.\n\n**Answer:** Yes, there is a helmet.", "Yes, there is a helmet.", "line", ["I see R1."]),
        ("I see R1.\nFinal answer: red", "red", "line", ["I see R1."]),
        ("I see R1. Answer: red", "red", "line", ["I see R1."]),
        ("**Final Answer**\n\nAnswer: blue.", "blue.", "line", []),
        ("R1 is red.\n\n### Final Answer\nred", "red", "line", ["R1 is red."]),
        ("R1 is red.\n**Answer**: red\nR2 is blue.", "red", "line", ["R1 is red.", "R2 is blue."]),
        ("Answer: these:\n- a cup\n- a plate", "these: - a cup - a plate", "line", []),
        (
            "Answer: red?\nWait, R2 is closer.\n\nFinal Answer: blue",
            "blue",
            "line",
            ["Answer: red?", "Wait, R2 is closer."],
        ),
        ("**Answer**:\nThe woman.\n\nBecause R2 shows her.", "The woman.", "line", ["Because R2 shows her."]),
        ("Answer: yes\nExplanation: R2 shows it.", "yes", "line", ["Explanation: R2 shows it."]),
        ("R1 is red. The answer is red.", "red.", "sentence", ["R1 is red.", "The answer is red."]),
        ("So the final answer is: **two dogs**.", "two dogs.", "sentence", ["So the final answer is: **two dogs**."]),
        ("R1 is red. $\\boxed{\\text{red}}$", "red", "boxed", ["R1 is red."]),
        ("R1 is red.\n<answer>red</answer>", "red", "tag", ["R1 is red."]),
        ("<think>R1 is red. R2 is not.</think>\nred", "red", "after thinking", ["R1 is red.", "R2 is not."]),
        ("R1 is red.</think>\n\n**Answer**: red", "red", "line", ["R1 is red."]),
        ('{"thought": "R1 is red", "answer": "red"}', "red", "json", None),
        (
            "## Image 1 (4 bounding box(es))\n**Question**: What color?\n**Thought Process**: R1.\n**Answer**: red",
            "red",
            "line",
            ["R1."],
        ),
        (
            "I see R1.\n**Answer**: red\n\n## Image 2 (3 bounding box(es))\n**Question**: x\n**Answer**: blue",
            "red",
            "line",
            ["I see R1."],
        ),
        ('Answer: "red"', "red", "line", []),
    ],
)
def test_answers_that_are_marked(response, answer, marker, steps):
    found = parse(response)
    assert (found.answer, found.found, found.marker) == (answer, True, marker)
    assert marker in MARKERS
    assert steps is None or list(found.steps) == steps


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("I see R1. It is red.", "It is red."),
        ("I see R1.\n**Answer**:", "I see R1."),
        ("<think>I see R1. It is red", "It is red"),
        ("I wonder whether the answer is red. R1 is blue. R2 is green. Hm.", "Hm."),
        ("Next, to answer: look at R1.", "Next, to answer: look at R1."),
        ("", ""),
        ("   \n", ""),
    ],
)
def test_answers_that_are_not_marked_are_told(response, answer):
    found = parse(response)
    assert (found.found, found.marker) == (False, "")
    assert found.answer == answer


def test_the_answer_is_no_step_where_it_is_marked():
    found = parse("I look at R1 only.\n**Answer**: the man in R3")
    assert regions_of_steps(found.steps, 4).used == {1}


def test_figure_8_of_the_paper():
    text = (
        "Reasoning Steps:\n"
        "1. Okay, I need to figure out what is in the pot to the right of the person.\n"
        "2. Let me first take a look at the image to see what we've got.\n"
        "3. It looks like there's a body of water, a bench, and people sitting around tables under umbrellas.\n"
        "4. There are several people gathered around region Region 2, which seems to be the main activity area.\n"
        "**Answer**: The pot contains flowers."
    )
    found = parse(text)
    assert found.answer == "The pot contains flowers."
    assert len(found.steps) == 4
    assert found.steps[1] == "Let me first take a look at the image to see what we've got."
    assert regions(found.reasoning, 4).used == {2}


PARTS = "R1. ,Answer: ,**,<think>,</think>,\n,yes,\\boxed{,},. ,The answer is ,2"


@examples(200)
@given(st.one_of(st.text(max_size=120), st.lists(st.sampled_from(PARTS.split(","))).map("".join)))
@example("0</THINK>\\boxed{}")
def test_every_text_has_a_response(text):
    found = parse(text)
    assert isinstance(found, Response)
    assert found.found == bool(found.marker)
    assert all(step.strip() == step and step for step in found.steps)
    assert not found.found or found.answer


@given(
    st.lists(
        st.sampled_from(["I look at R1.", "The dog is brown.", "Is it R2?", "There are 2.5 cups.", "Yes!"]),
        min_size=1,
        max_size=6,
    )
)
def test_plain_sentences_come_back(steps):
    assert list(sentences(" ".join(steps))) == steps
    assert list(sentences("\n".join(f"{i}. {step}" for i, step in enumerate(steps, 1)))) == steps


@pytest.mark.parametrize(
    ("response", "steps", "answer"),
    [
        ("7", (), "7"),
        (" 7.\n", (), "7"),
        ("R2 shows a digit.\n7", ("R2 shows a digit.",), "7"),
        ("<think>R2 shows a digit.</think>\n7", ("R2 shows a digit.",), "7"),
        ("R2 shows a digit.\n\n---\n", ("R2 shows a digit.",), "R2 shows a digit"),
        ("1. R1 shows a cup.\n2.", ("R1 shows a cup.",), "R1 shows a cup"),
        ("***", (), ""),
    ],
)
def test_a_number_alone_is_an_answer(response, steps, answer):
    found = parse(response)
    assert (found.steps, found.answer.rstrip(".")) == (steps, answer)


OWN = "What is left of the plate?"
ECHO = f"## Image 1 (4 outlined regions)\n**Question**: {OWN}\n**Thought Process**: R2 holds a plate. R4 holds a bottle.\n**Answer**: bottle"


@pytest.mark.parametrize(
    "response",
    [
        ECHO,
        f"<think>I need to end with **Answer**: and the answer. Let me look.</think>\n{ECHO}",
        f"<think>... and end with a line **Answer**: and the answer.\n\nQuestion: {OWN}\nThe answer has to be short.</think>\n\n{ECHO}",
        f"I'll end with a line that begins with **Answer**: as asked.\n\n**Question**: {OWN}\n\nR2 holds a plate. R4 holds a bottle.\n\n**Answer**: bottle",
        f"{ECHO}\n\n## Image 2 (3 outlined regions)\n**Question**: What is that?\n**Thought Process**: R1 holds a cat.\n**Answer**: a cat",
        f"R2 holds a plate.\n**Answer**: perhaps a cup\n\n**Question**: {OWN}\nNo, R4 holds a bottle.\n**Answer**: bottle",
    ],
)
def test_a_question_that_is_said_again_ends_nothing_and_another_one_does(response):
    found = parse(response, OWN)
    assert (found.answer, found.found) == ("bottle", True)
    assert regions_of_steps(found.steps, 4).used == {2, 4}


@pytest.mark.parametrize(
    ("response", "answer", "used"),
    [
        (
            "**Short answer**: yes\n\n### Image analysis\n- R1: a plate.\n- R3: a cup.\n\n**Final answer**: no",
            "no",
            {1, 3},
        ),
        ("**Answer**: brown **Thought Process**: R1 shows a bag.", "brown", {1}),
        (
            "**Answer**: a bottle. I know this since R2 holds a plate.",
            "a bottle. I know this since R2 holds a plate.",
            {2},
        ),
        ("R1 it is. **Answer**: R4", "R4", {1}),
        ("R1 it is. <answer>R4</answer>", "R4", {1}),
        ("R1 it is. \\boxed{R4}", "R4", {1}),
        ("R1 it is. The answer is R4", "R4", {1, 4}),  # a sentence, so a step
        ('So be it. {"answer": 3}', "3", set()),
        ('R1 it is. {"reasoning": "so", "answer": true}', "true", {1}),
        ("R1 it is. {'answer': 'a hat'}", "a hat", {1}),
        ("<SUMMARY>R1 it is.</SUMMARY><CONCLUSION>hat</CONCLUSION>", "hat", {1}),
        ("R1 it is. <|begin_of_box|>hat<|end_of_box|>", "hat", {1}),
        ("◁think▷R1 it is.◁/think▷The hat.", "The hat.", {1}),
        ("R1 it is.\n**Final Answer**\n\nThe final answer is $\\boxed{bottle}$.", "bottle.", {1}),
        ("R1 it is.\n**Answer**: hat<|im_end|>", "hat", {1}),
        ("R1 it is.\n**Answer**: hat</s>", "hat", {1}),
        ("R1 it is.\n**Answer**: hat<|endoftext|>Human: and R9?", "hat", {1}),
        ("R1 it is.\n**Answer** brown", "brown", {1}),
        ("R1 it is.\nAnswer - brown", "brown", {1}),
        ("R1 it is.\n**答案**：狗", "狗", {1}),
        ("R1 it is.\n**Respuesta**: perro", "perro", {1}),
        ("R1 it is.\n**Réponse** : chien", "chien", {1}),
        ("R1 it is. The answer to the question 'What is left?' is bottle.", "bottle.", {1}),
        ("R1 it is.\n**Answer**: {bottle}", "bottle", {1}),
    ],
)
def test_answers_as_models_write_them(response, answer, used):
    found = parse(response)
    assert (found.answer, found.found) == (answer, True)
    assert regions_of_steps(found.steps, 4).used == used


def test_a_number_after_the_last_sentence_is_what_a_response_ends_with():
    found = parse("I count the cups. R1 has it. 3")
    assert (found.answer, found.found) == ("3", False)
