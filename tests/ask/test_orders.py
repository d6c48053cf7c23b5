"""Options in every order: what each form of a row becomes, and which docs are left out.

The base tasks here are five lines each.
"""

import ast
import json
import re
import string
from pathlib import Path

import pytest
import yaml

from lmms_patch.ask.answers import Asked, listed_options, recognise
from lmms_patch.ask.mentions import LETTERS as LETTERED
from lmms_patch.ask.mentions import NUMBERS as NUMBERED
from lmms_patch.ask.mentions import PLACES, in_options, in_question
from lmms_patch.ask.orders import Base, changed, orders
from tests.places import SHARED

TEXTS = ["a cat", "a dog", "a pig", "an ox"]
LETTERS = string.ascii_uppercase
LABELLED = yaml.safe_load((Path(__file__).parent / "order_phrases.yaml").read_text(encoding="utf-8"))


def listed(texts, form="{}. {}", between="\n"):
    return between.join(form.format(letter, text) for letter, text in zip(LETTERS, texts, strict=False))


def asked(row, prompt, target=lambda row: row["answer"], scored=None, choices=None):
    """The orders of a doc, by a scorer that compares the answer with ``scored`` of the row, whatever its marks and case."""
    scored = scored or target
    base = Base(
        prompt, target, lambda row, said: float(said.strip("() .").lower() == str(scored(row)).strip("() .").lower())
    )
    (answer,) = recognise([Asked(prompt(row), target(row), tuple(choices(row)) if choices else ())])
    return orders(row, base, answer)


def in_list(row):
    return f"{row['question']}\n{listed(row['options'])}\nAnswer with a letter."


def follows(row, found, prompt, texts=TEXTS):
    """Every order: prompts by definition, the gold at each place once."""
    assert found.fault == ""
    assert found.orders[0].changes == {}
    base = prompt(row)
    for turn, order in enumerate(found.orders):
        moved = texts[turn:] + texts[:turn]
        expected = base
        for i, text in enumerate(texts):
            expected = expected.replace(text, f"<{i}>")
        for i, text in enumerate(moved):
            expected = expected.replace(f"<{i}>", text)
        assert prompt(changed(row, order.changes)) == expected
    assert sorted(order.gold for order in found.orders) == list(range(1, len(texts) + 1))
    return [changed(row, order.changes) for order in found.orders]


@pytest.mark.parametrize("answer", ["B", "(B)", "b", "B."])
def test_a_list_and_a_letter(answer):
    row = {"question": "Which?", "options": TEXTS, "answer": answer}
    turned = follows(row, asked(row, in_list, target=lambda row: row["answer"].upper()), in_list)
    assert [one["answer"].strip("().").upper() for one in turned] == ["B", "A", "D", "C"]
    assert all(one["options"]["ABCD".index(one["answer"].strip("().").upper())] == "a dog" for one in turned)
    assert row["options"] is TEXTS


@pytest.mark.parametrize(("answer", "first"), [(1, 0), ("1", 0), (2, 1), ("2", 1)])
def test_a_list_and_a_number_from_0_or_from_1(answer, first):
    def target(row):
        return LETTERS[int(row["answer"]) - first]

    row = {"id": 7, "question": "Which?", "options": TEXTS, "answer": answer}
    turned = follows(row, asked(row, in_list, target), in_list)
    assert [int(one["answer"]) - first for one in turned] == [1, 0, 3, 2]
    assert {type(one["answer"]) for one in turned} == {type(answer)}


def test_a_list_and_the_gold_as_text():
    """Nothing moves but the options: the text names the gold in every order."""

    def prompt(row):
        return row["question"] + " ".join(row["options"])

    row = {"question": "Which? ", "options": TEXTS, "answer": "a dog"}
    turned = follows(row, asked(row, prompt, choices=lambda row: row["options"]), prompt)
    assert {one["answer"] for one in turned} == {"a dog"}


def test_options_that_carry_their_letters():
    """Video-MME's form: letters stay, texts move."""

    def prompt(row):
        return row["question"] + "\n" + "\n".join(row["options"])

    row = {
        "question": "Which?",
        "options": [f"{letter}. {text}" for letter, text in zip("ABCD", TEXTS, strict=True)],
        "answer": "C",
    }
    turned = follows(row, asked(row, prompt), prompt)
    assert turned[1]["options"] == ["A. a dog", "B. a pig", "C. an ox", "D. a cat"]
    assert [one["answer"] for one in turned] == ["C", "B", "A", "D"]


def test_a_list_written_as_text():
    """MMMU's form."""

    def prompt(row):
        return f"{row['question']}\n{listed(ast.literal_eval(row['options']))}"

    row = {"question": "Which?", "options": str(TEXTS), "answer": "D"}
    turned = follows(row, asked(row, prompt), prompt)
    assert ast.literal_eval(turned[1]["options"]) == [*TEXTS[1:], TEXTS[0]]


@pytest.mark.parametrize(
    "names", ["ABCDE", ["choice_a", "choice_b", "choice_c", "choice_d", "choice_e"], ["a0", "a1", "a2", "a3", "a4"]]
)
@pytest.mark.parametrize("empty", [None, "nan", float("nan"), "", "N/A"])
def test_columns_of_which_the_last_is_empty(names, empty):
    """MMBench's form, and SEED-Bench's: k is the number of options that are there."""

    def prompt(row):
        return f"Hint. {row['question']}\n{listed([row[name] for name in names if isinstance(row[name], str) and row[name] not in ('', 'nan', 'N/A')])}"

    row = {
        "index": 2,
        "question": "Which?",
        **dict(zip(names, [*TEXTS, empty], strict=True)),
        "answer": "B",
        "L2-category": "x",
    }
    turned = follows(row, asked(row, prompt), prompt)
    assert [turned[1][name] for name in names][:4] == [*TEXTS[1:], TEXTS[0]]
    assert turned[1]["index"] == 2
    assert turned[1][names[4]] is row[names[4]]


def test_a_mapping():
    def prompt(row):
        return row["question"] + listed(list(row["options"].values()), "({}) {}", " ")

    row = {"question": "Which? ", "options": dict(zip("ABCD", TEXTS, strict=True)), "answer": "A"}
    turned = follows(row, asked(row, prompt), prompt)
    assert turned[2]["options"] == dict(zip("ABCD", [*TEXTS[2:], *TEXTS[:2]], strict=True))


def test_a_struct_of_labels_and_texts():
    def prompt(row):
        return "\n".join([row["question"], *map("{}) {}".format, row["choices"]["label"], row["choices"]["text"])])

    row = {"question": "Which?", "choices": {"label": list("ABCD"), "text": TEXTS}, "answer": "A"}
    turned = follows(row, asked(row, prompt), prompt)
    assert turned[1]["choices"] == {"label": list("ABCD"), "text": [*TEXTS[1:], TEXTS[0]]}


@pytest.mark.parametrize(
    ("form", "between", "end"),
    [("{}. {}", "\n", "\nAnswer with a letter."), ("({}) {}", "\n", ""), ("{}: {}", ", ", ""), ("{}: {}", ", ", ".")],
)
def test_options_in_the_question_alone(form, between, end):
    """RealWorldQA's form, and MMStar's."""

    def prompt(row):
        return row["question"].strip()

    row = {"question": f"Which? Options: \n{listed(TEXTS, form, between)}{end}", "answer": "C"}
    follows(row, asked(row, prompt), prompt)


def test_options_in_two_fields_move_together():
    """BLINK's form: the prompt is made of one, the scorer reads the other."""

    def prompt(row):
        return row["prompt"]

    def scored(row):
        return row["choices"]["ABCD".index(row["answer"][1])]

    row = {"choices": TEXTS, "prompt": f"Which?\n{listed(TEXTS, '({}) {}')}", "answer": "(B)"}
    base = Base(
        prompt,
        lambda row: row["answer"],
        lambda row, said: float(said[0] == "(" and row["choices"]["ABCD".index(said[1])] == scored(row)),
    )
    (answer,) = recognise([Asked(prompt(row), "(B)")])
    turned = follows(row, orders(row, base, answer), prompt)
    assert [scored(one) for one in turned] == ["a dog"] * 4


def test_a_letter_and_an_index_move_together():
    """The target is the letter, the scorer compares with the index: each alone would leave the other behind."""
    row = {"question": "Which?", "options": TEXTS, "answer": "C", "answer_index": 2, "grade": 3}
    turned = follows(row, asked(row, in_list, scored=lambda row: LETTERS[row["answer_index"]]), in_list)
    assert [(one["answer"], one["answer_index"], one["grade"]) for one in turned] == [
        ("C", 2, 3),
        ("B", 1, 3),
        ("A", 0, 3),
        ("D", 3, 3),
    ]


def test_likelihoods_of_texts_that_the_prompt_lists():
    row = {"question": "Which?", "options": TEXTS, "answer": 2}

    def score(row, said):
        return float(int(said) == row["answer"])

    base = Base(in_list, lambda row: row["answer"], score, lambda row: row["options"])
    (answer,) = recognise([Asked(in_list(row), 2, tuple(TEXTS), by_index=True)])
    turned = follows(row, orders(row, base, answer), in_list)
    assert [one["options"][one["answer"]] for one in turned] == ["a pig"] * 4


# --- docs that are left out -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["a cat", "a dog", "All of the above"], "those above"),
        (["a cat", "a dog", "none of above"], "those above"),
        (["a cat", "The above are wrong", "a dog"], "those above"),
        (["a cat", "a dog", "Both A and B"], "by their letters"),
        (["a cat", "a dog", "A, B"], "by their letters"),
        (["a cat", "a dog", "Only A"], "by their letters"),
        (["a cat", "a cat", "a dog"], "are the same"),
        (["a cat", " ", "a dog"], "without text"),
        (["a cat", "<image 2>", "a dog"], "is an image"),
    ],
)
def test_options_whose_meaning_depends_on_their_order(texts, why):
    row = {"question": "Which?", "options": texts, "answer": "A"}
    assert why in asked(row, in_list, choices=lambda row: row["options"]).fault


def option_lists(label):
    return [
        entry if isinstance(entry, list) else ["a cat", "a dog", "a pig", entry] for entry in LABELLED["options"][label]
    ]


def questions(label):
    """Questions, each with the number of its options."""
    return [
        (entry["text"], entry["options"]) if isinstance(entry, dict) else (entry, 4)
        for entry in LABELLED["questions"][label]
    ]


def in_words(texts, question="Which?"):
    """A doc whose gold is an index, so that options of letters are no doubt of their own."""
    row = {"question": question, "options": texts, "answer": 1}
    return row, asked(row, in_list, target=lambda row: LETTERS[row["answer"]])


@pytest.mark.parametrize("texts", option_lists("refers"))
def test_options_that_name_others(texts):
    assert in_options(texts) in (PLACES, LETTERED, NUMBERED)
    assert in_words(texts)[1].fault in (
        PLACES,
        LETTERED,
        NUMBERED,
        "no field holds its 4 options as its prompt lists them",
    )  # "(a) and (b)" looks like a label


@pytest.mark.parametrize("texts", option_lists("stays"))
def test_options_that_keep_their_meaning(texts):
    assert in_options(texts) == ""
    row, found = in_words(texts)
    if re.fullmatch(r"\W*[A-Da-d]\W*", texts[0]) and found.fault:
        assert (
            found.fault == "no field holds its 4 options as its prompt lists them"
        )  # these look like labels, which is a doubt of its own
        return
    assert found.fault == ""
    assert [changed(row, order.changes)["options"] for order in found.orders] == [
        texts[turn:] + texts[:turn] for turn in range(4)
    ]


@pytest.mark.parametrize(("question", "count"), questions("refers"))
def test_questions_that_name_options(question, count):
    assert in_words(TEXTS[:count], question)[1].fault == "its question names options by their letters or numbers"


@pytest.mark.parametrize(("question", "count"), questions("stays"))
def test_questions_that_ask_the_same_in_every_order(question, count):
    assert in_words(TEXTS[:count], question)[1].fault == ""


@pytest.mark.parametrize(
    ("name", "refused"), [("scienceqa_test", 0), ("puzzlevqa", 0), ("vsi_bench", 0), ("videomme", 110)]
)
def test_benchmarks_lose_the_docs_that_name_options(name, refused):
    """All of Video-MME's were read: each says "... above"."""
    path = SHARED / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is not here: public data that is not part of the repository")
    rows = [row for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()) if row["choices"]]
    assert (
        sum(bool(in_options(row["choices"])) or in_question(row["question"], len(row["choices"])) for row in rows)
        == refused
    )


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"question": "How many?", "options": [], "answer": "3"}, "no option of a list"),
        ({"question": "Which?", "options": ["a cat"], "answer": "A"}, "no option of a list"),
        ({"question": "Which?", "options": TEXTS, "answer": "E"}, "no option of a list"),
        ({"question": "Which?", "options": TEXTS, "answer": ["A", "B"]}, "several golds"),
    ],
)
def test_docs_without_options_or_without_one_gold(row, why):
    assert why in asked(row, in_list).fault


def test_a_prompt_that_changes_the_case_of_its_options():
    def prompt(row):
        return f"Which?\n{listed([text.lower() for text in row['options']])}"

    row = {"question": "Which?", "options": ["A cat", "A dog"], "answer": "A"}
    follows(row, asked(row, prompt), prompt, ["a cat", "a dog"])


def test_a_prompt_that_sorts_its_options():
    """Marks are sorted as options are not, or options come out in one order whatever the row's: never asked."""
    row = {"question": "Which?", "options": ["zebra", "ant"], "answer": "A"}
    assert asked(row, lambda row: f"Which?\n{listed(sorted(row['options']))}").fault


def test_a_target_that_stays_behind():
    row = {"question": "Which?", "options": TEXTS, "answer": "B"}
    assert asked(row, in_list, target=lambda row: "B").fault == "its target does not follow the order of its options"


def test_a_scorer_that_stays_behind():
    row = {"question": "Which?", "options": TEXTS, "answer": "B"}
    assert asked(row, in_list, scored=lambda row: "B").fault == "its scorer does not follow the order of its options"


def test_a_letter_that_is_also_an_option():
    """Is B the second option, or the option "B"? With the gold as an index, there is no doubt."""
    row = {"question": "Which label?", "options": ["B", "A", "D"], "answer": "B"}
    assert asked(row, in_list).fault == "its gold may be a letter, or the text of an option"
    row = {**row, "answer": 1}
    assert asked(row, in_list, target=lambda row: LETTERS[row["answer"]]).fault == ""


def test_labels_in_another_order_than_the_options():
    """Nobody knows whether these labels stay or move along."""

    def prompt(row):
        return row["question"] + "\n" + "\n".join(row["options"])

    row = {"question": "Which?", "options": ["B. a cat", "A. a dog"], "answer": "A"}
    assert asked(row, prompt, choices=lambda row: ["x", "y"]).fault


def test_labels_glued_to_their_options():
    """The letter is part of the text to whoever splits at blanks: moved along, it would still name the old option."""

    def prompt(row):
        return row["question"] + "\n" + "\n".join(row["options"])

    row = {"question": "Which?", "options": ["A.cat", "B.dog", "C.pig"], "answer": "B"}
    found = asked(row, prompt, choices=lambda row: row["options"])
    assert found.fault == "its prompt does not label the options as its gold does"


def test_a_gold_with_the_label_of_its_place():
    """ "A. a cat" is wrong where the cat stands at B, though prompt, target and a scorer of equal texts would all agree."""

    def prompt(row):
        return row["question"] + "\n" + "\n".join(row["options"])

    row = {"question": "Which?", "options": ["A. a cat", "B. a dog"], "answer": "A. a cat"}
    found = asked(row, prompt, choices=lambda row: row["options"])
    assert found.fault == "its gold names an option otherwise than by its text"


@pytest.mark.parametrize(
    "text",
    [
        "Which? A. red, B. green. Answer with a letter.",
        "Which?\nA. red\nwith dots\nB. green",
        "Which? (A) red (B) blue (C) green (D) grey Answer with the letter",
        "Which? A. red B. blue Please answer with the option letter",
        "Which? (A) red (B) blue Answer:",
        "Options: A: red, B: blue, C: grey Choose one",
        "Which?\nA. red\nB. blue Please answer with the option letter",
        "Which?\nA. red\nB. blue (select the right letter)",
        "Which?\nA. red\nB. blue Respond with A or B\n",
        "Which? A. red B. blue, answer directly",
        "Which?\nA. red\nB. blue Your choice:",
        "Which? (A) red (B) blue Output the letter only",
        "Which? (A) red (B) blue Give the letter",
        "哪个？A. 红 B. 蓝 请回答字母",
        "哪个？\nA. 红\nB. 蓝 回答：",
        "哪个？\nA. 红\nB. 蓝。请直接选择",
        "Which icon? (A) a key (B) the letters K and C. (C) a broom (D) a lens",
        "¿Cuál? (A) rojo (B) azul Responda con la letra",
        "Welche? (A) rot (B) blau Antworte mit dem Buchstaben",
        "Nothing listed.",
    ],
)
def test_a_text_in_which_the_end_of_an_option_cannot_be_told(text):
    assert listed_options(text) == ()


@pytest.mark.parametrize(
    ("text", "bodies"),
    [
        ("Is it (A) red or (B) green?", ["red", "green"]),
        ("Is it: A. red, B. green, or C. blue?", ["red", "green", "blue"]),
        ("Is it: A. red, B. green or C. blue.", ["red", "green", "blue"]),
        ("A. red? B. green?", ["red?", "green?"]),
        ("Which? A. red; B. green, C. blue", ["red", "green", "blue"]),
        ("What does he do?\nA. asks the man\nB. answers the phone", ["asks the man", "answers the phone"]),
        ("What should he do?\nA. Open the door\nB. Answer the phone", ["Open the door", "Answer the phone"]),
        ("Which?\nA. to please the king\nB. to please the queen", ["to please the king", "to please the queen"]),
        ("Which?\nA. red\nB. blue\nPlease answer with a letter.", ["red", "blue"]),
        ("Which? (A) red (B) blue\nAnswer:", ["red", "blue"]),
    ],
)
def test_texts_in_which_the_options_can_be_told(text, bodies):
    assert list(listed_options(text)) == bodies


@pytest.mark.parametrize("end", [" Answer with the letter", " Answer:", ". Please answer with a letter", "\nAnswer:"])
@pytest.mark.parametrize("known", [{"choices": TEXTS}, {"choices": str(TEXTS)}, dict(zip("ABCD", TEXTS, strict=True))])
def test_an_instruction_behind_options_that_the_row_knows(end, known):
    """The row says where the last option ends, so the instruction stays where it is."""

    def prompt(row):
        return row["question"]

    row = {"question": f"Which? {listed(TEXTS, '({}) {}', ' ')}{end}", **known, "answer": "B"}
    turned = follows(row, asked(row, prompt), prompt)
    assert turned[1]["question"] == f"Which? (A) a dog (B) a pig (C) an ox (D) a cat{end}"


@pytest.mark.parametrize("answer", ["a dog", 1])
def test_letters_are_answered_though_the_target_is_a_text_or_a_place(answer):
    """With ``format: mc``, as of EgoSchema and NExT-QA: the scorer compares letters."""

    def letter(row):
        return LETTERS[row["options"].index(row["answer"]) if isinstance(row["answer"], str) else row["answer"]]

    row = {"question": "Which?", "options": TEXTS, "answer": answer}
    base = Base(in_list, lambda row: row["answer"], lambda row, said: float(said == letter(row)))
    (known,) = recognise([Asked(in_list(row), answer, tuple(TEXTS))], "mc")
    turned = follows(row, orders(row, base, known), in_list)
    assert [letter(one) for one in turned] == ["B", "A", "D", "C"]


# --- scorers that read answers in words -------------------------------------------------------------

LONG = ["a red one", "a blue one", "a green one", "a grey one"]
SHORT = ["red", "blue", "green", "grey"]


def by_words(letter_of):
    """A scorer of letters that looks all other answers up in the row, by ``letter_of``."""

    def score(row, said):
        return float((said if said in tuple("ABCD") else letter_of(row, said)) == row["answer"])

    return score


def scored_by(row, score, texts=LONG):
    base = Base(in_list, lambda row: row["answer"], score)
    (answer,) = recognise([Asked(in_list(row), row["answer"], tuple(texts))])
    return orders(row, base, answer)


def contained(texts, said):
    return next((letter for letter, text in zip("ABCD", texts, strict=False) if str(text).lower() in said.lower()), "?")


HELD = {
    "a list": (SHORT, lambda held: held),
    "a list as text": (str(SHORT), ast.literal_eval),
    "a mapping": (dict(zip("ABCD", SHORT, strict=True)), lambda held: held.values()),
    "longer texts": ([f"It is {text}." for text in LONG], lambda held: [text[6:-1] for text in held]),
}


@pytest.mark.parametrize("gold", "ABCD")
@pytest.mark.parametrize("held", HELD)
def test_a_scorer_that_looks_words_up_in_another_spelling(held, gold):
    """Both move along: an answer "red" would else count as the letter at which red stood."""
    stored, read = HELD[held]
    row = {"question": "Which?", "options": LONG, "all_choices": stored, "answer": gold}
    turned = follows(
        row, scored_by(row, by_words(lambda row, said: contained(read(row["all_choices"]), said))), in_list, LONG
    )
    for one in turned:
        assert contained(read(one["all_choices"]), LONG["ABCD".index(gold)]) == one["answer"]


@pytest.mark.parametrize("gold", "ABCD")
def test_a_scorer_that_looks_words_up_where_they_move_along(gold):
    row = {"question": "Which?", "options": LONG, "answer": gold}
    found = scored_by(row, by_words(lambda row, said: contained(row["options"], said)))
    follows(row, found, in_list, LONG)


def test_words_that_the_row_holds_but_the_scorer_does_not_read():
    row = {"question": "Which?", "options": LONG, "all_choices": SHORT, "answer": "B"}
    follows(row, scored_by(row, by_words(lambda row, said: "?")), in_list, LONG)


@pytest.mark.parametrize("gold", "ABCD")
@pytest.mark.parametrize(
    "texts",
    [
        ["Candles.", "Apples.", "Berries.", "Dates."],
        ["Apples.", "Berries.", "Candles.", "Dates."],
        ["A x", "Vitamin A", "C", "b"],
    ],
)
def test_a_scorer_that_takes_letters_out_of_words_whatever_the_row_says(texts, gold):
    """Video-MME's way: "Candles." counts as C, in the base task too. That is no reason to leave the doc out."""
    row = {
        "question": "Which?",
        "options": texts,
        "names": [text.upper() for text in texts],
        "gold": LETTERS.index(gold),
    }
    letters = re.compile("[A-D]")

    def score(row, said):
        found = letters.search(said)
        return float(found is not None and found[0] == LETTERS[row["gold"]])

    base = Base(in_list, lambda row: LETTERS[row["gold"]], score)
    (answer,) = recognise([Asked(in_list(row), gold, tuple(texts))])
    assert orders(row, base, answer).fault == ""


def test_a_gold_in_words_beside_its_letter():
    """The scorer takes the letter, or the gold's text: that names the gold in every order."""
    row = {"question": "Which?", "options": LONG, "answer": "B", "answer_text": LONG[1]}
    found = scored_by(row, lambda row, said: float(said in (row["answer"], row["answer_text"])))
    follows(row, found, in_list, LONG)
