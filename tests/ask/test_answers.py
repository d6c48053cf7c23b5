"""Formats, options and golds: on real docs in the prompts of lmms-eval's own tasks, and on tricky ones by hand."""

import functools
import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.ask.answers import Answer, Asked, counted, options_in, recognise, same_answer
from tests.places import SHARED
from tests.sizes import each

DATA = SHARED
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@functools.cache
def load(name):
    path = DATA / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"no {path.name}: public data that is not part of the repository")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def one(prompt="", target=None, choices=(), by_index=False, declared=None):
    return recognise([Asked(prompt, target, tuple(choices), by_index)], declared)[0]


# --- prompts as lmms-eval's tasks build them -----------------------------------------------------------------


def utils(task):
    return pytest.importorskip(f"lmms_eval.tasks.{task}.utils")


LETTER_ONLY = "\nAnswer with the option's letter from the given choices directly."


def ai2d(prompt_format, kind):
    module = utils("ai2d")
    kwargs = {"prompt_format": prompt_format, "pre_prompt": "", "post_prompt": LETTER_ONLY}

    def ask(row):
        doc = {"question": row["question"], "options": row["choices"], "answer": str(LETTERS.index(row["answer"]))}
        return module.ai2d_doc_to_text(doc, kwargs), module.ai2d_doc_to_target(doc, kind)

    return ask


def scienceqa(prompt_format):
    module = utils("scienceqa")

    def ask(row):
        hint, _, question = row["question"].rpartition("\n")
        doc = {"hint": hint, "question": question, "choices": row["choices"], "answer": LETTERS.index(row["answer"])}
        kwargs = {"format": prompt_format, "pre_prompt": "", "post_prompt": LETTER_ONLY}
        return module.sqa_doc_to_text(doc, kwargs), module.sqa_doc_to_target(doc)

    return ask


def mmmu(row):
    doc = {
        "question": f"<image 1> {row['question']}",
        "question_type": "multiple-choice",
        "options": str(row["choices"]),
    }
    kwargs = {
        "prompt_type": "format",
        "multiple_choice_prompt": LETTER_ONLY.strip(),
        "open_ended_prompt": "Answer the question.",
    }
    return utils("mmmu").mmmu_doc_to_text(doc, kwargs), row["answer"]


def mmmu_qwen(row):
    doc = {"question": row["question"], "question_type": "multiple-choice", "options": str(row["choices"])}
    kwargs = {
        "format": "qwen3_vl",
        "pre_prompt": "Question: ",
        "post_prompt": "Answer with the option letter only.",
        "open_ended_prompt": "",
    }
    return utils("mmmu").mmmu_doc_to_text(doc, kwargs), row["answer"]


def mmstar(row):
    """Its dataset has the options in the question: "Options: A: ..., B: ..."."""
    listed = ", ".join(f"{letter}: {text}" for letter, text in zip(LETTERS, row["choices"], strict=False))
    kwargs = {"pre_prompt": "", "post_prompt": LETTER_ONLY.rstrip(".")}
    return utils("mmstar").mmstar_doc_to_text({"question": f"{row['question']}\nOptions: {listed}"}, kwargs), row[
        "answer"
    ]


def blink(row):
    """Its dataset has a prompt with "(A) ..." on lines, and golds in brackets."""
    listed = "\n".join(f"({letter}) {text}" for letter, text in zip(LETTERS, row["choices"], strict=False))
    doc = {"choices": row["choices"], "prompt": f"{row['question']}\nSelect from the following choices.\n{listed}"}
    pre = "Note: You only need to respond with {} without providing any additional information.\n"
    return utils("blink").blink_doc_to_text(doc, {"pre_prompt": pre, "post_prompt": ""}), f"({row['answer']})"


def realworldqa(row):
    """Its dataset has the options and the instruction in the question."""
    listed = "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, row["choices"], strict=False))
    doc = {
        "question": f"{row['question']}\n{listed}\nPlease answer directly with only the letter of the correct option and nothing else."
    }
    return utils("realworldqa").realworldqa_doc_to_text(doc, {"pre_prompt": "", "post_prompt": ""}), row["answer"]


def videomme(row):
    doc = {
        "question": row["question"],
        "options": [f"{letter}. {text}" for letter, text in zip(LETTERS, row["choices"], strict=False)],
    }
    return utils("videomme").videomme_doc_to_text(doc, {"post_prompt": "\nAnswer with the option's letter."}), row[
        "answer"
    ]


def vsibench(row):
    doc = {
        "question": row["question"],
        "question_type": "object_rel_distance",
        "options": [f"{letter}. {text}" for letter, text in zip(LETTERS, row["choices"], strict=False)],
    }
    return utils("vsibench").vsibench_doc_to_text(doc), row["answer"]


STYLES = {
    "ai2d": lambda: ai2d("mcq", "mcq"),
    "ai2d, xcomposer": lambda: ai2d("mcq_xcomposer", "mcq"),
    "scienceqa": lambda: scienceqa("default"),
    "scienceqa, qwen": lambda: scienceqa("qwen_vl"),
    "mmmu": lambda: mmmu,
    "mmmu, qwen": lambda: mmmu_qwen,
    "mmstar": lambda: mmstar,
    "blink": lambda: blink,
    "realworldqa": lambda: realworldqa,
    "videomme": lambda: videomme,
    "vsibench": lambda: vsibench,
}


@pytest.mark.parametrize(
    ("style", "data"), each(list(STYLES), ["scienceqa_test", "puzzlevqa", "videomme", "vsi_bench"])
)
def test_options_of_real_docs(data, style):
    """Format, gold, number and texts of the options of at least 99 % of the docs.

    A text of several lines counts by its first (ScienceQA has letters as options), without the commas at its end.
    """
    ask = STYLES[style]()
    rows = [row for row in load(data) if row["choices"]]
    asked = [ask(row) for row in rows]
    failures = []
    for row, (prompt, target), answer in zip(rows, asked, recognise([Asked(*pair) for pair in asked]), strict=True):
        spelled = tuple(target.replace(row["answer"], LETTERS[i]) for i in range(len(row["choices"])))
        texts = [text.strip().split("\n")[0].rstrip(", ;") for text in row["choices"]]
        found = [text.rstrip(", ;") for text in answer.texts]
        if "xcomposer" in style and found:  # the options end with a space, where the instruction would follow
            assert prompt.endswith(LETTER_ONLY)
        if (answer.format, answer.gold, answer.options, found) != ("mc", target, spelled, texts):
            failures.append((row["id"], target, answer))
    assert len(failures) <= 0.01 * len(rows), failures[:20]
    assert {answer.label for answer in recognise([Asked(*pair) for pair in asked[:50]])} <= {
        f"mc{n}" for n in range(2, 9)
    }


def test_golds_that_are_option_texts():
    """ai2d for qwen_vl: the options are listed without letters, the gold is a text.

    Only a field tells what they are.
    """
    rows = load("puzzlevqa")
    ask = ai2d("qa", "qa")
    asked = [(*ask(row), tuple(row["choices"])) for row in rows]
    for row, answer in zip(rows, recognise([Asked(*parts) for parts in asked]), strict=True):
        expected = Answer("mc", (row["answer_text"],), tuple(row["choices"]), tuple(row["choices"]))
        assert answer == expected or answer.format == "yesno"


@pytest.mark.parametrize(
    ("data", "formats"),
    [  # counted in the files' own field `format`
        ("pope_coco", {"yesno": 9000}),
        ("nlvr", {"yesno": 2964}),
        ("blindtest", {"number": 1218, "yesno": 672, "open": 264}),
    ],
)
def test_formats_of_real_docs(data, formats):
    rows = load(data)
    pope, gqa = utils("pope"), utils("gqa")
    kwargs = {"pre_prompt": "", "post_prompt": "\nAnswer the question using a single word or phrase."}
    for to_text in (pope.pope_doc_to_text, gqa.gqa_doc_to_text):
        found = recognise([Asked(to_text({"question": row["question"]}, kwargs), row["answer"]) for row in rows])
        own = [{"num": "number"}.get(row["format"], row["format"]) for row in rows]
        assert [answer.format for answer in found] == own
        assert Counter(own) == formats
        assert all(answer.gold in answer.options for answer in found if answer.format == "yesno")
        assert all(answer.options == () for answer in found if answer.format != "yesno")


def test_numbers_and_letters_in_one_task():
    """VSI-Bench: half the golds are numbers, half letters with options in the prompt."""
    rows = load("vsi_bench")
    asked = [vsibench(row) if row["choices"] else (row["question"], row["answer"]) for row in rows]
    found = recognise([Asked(*pair) for pair in asked])
    assert Counter(answer.format for answer in found) == {"number": 2640, "mc": 2490}
    assert all(
        len(answer.options) == len(row["choices"]) for row, answer in zip(rows, found, strict=True) if row["choices"]
    )


def test_textvqa():
    """Ten people's answers; most frequent first, each once."""
    doc = {"question": "what is the brand of this camera?"}
    kwargs = {"pre_prompt": "", "post_prompt": "\nAnswer the question using a single word or phrase.", "ocr": False}
    prompt = utils("textvqa").textvqa_doc_to_text(doc, kwargs)
    found = one(
        prompt,
        [
            "nous les gosses",
            "dakota",
            "clos culombu",
            "dakota digital",
            "dakota",
            "dakota",
            "dakota digital",
            "dakota",
            "",
            "?",
        ],
    )
    assert (found.format, found.golds[:2], found.options) == ("open", ("dakota", "dakota digital"), ())
    assert set(found.golds) == {"dakota", "dakota digital", "nous les gosses", "clos culombu", "?"}


# --- options in a prompt, by hand --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "texts"),
    [
        ("Which?\nA. red\nB. green\nC. blue", ("red", "green", "blue")),
        ("Which?\nA) red\nB) green", ("red", "green")),
        ("Which? (A) red (B) green", ("red", "green")),
        ("Which?\nOptions: A: red, B: green, C: dark blue\nAnswer with a letter", ("red", "green", "dark blue")),
        ("Which?\nOptions: A. red; B. green.", ("red", "green.")),
        ("A. red\nB. green", ("red", "green")),  # right at the start
        ("Which?\nA.\nB.\nC.", ("", "", "")),  # the options are in the image
        ("Which?\nA. A\nB. B", ("A", "B")),
        ("Which?\nA. 1.5 A\nB. 2.5 A", ("1.5 A", "2.5 A")),
        ("Which?\nA. yes, it is\nB. no, it is not\n\nAnswer.", ("yes, it is", "no, it is not")),
        ("Who is A. B. Smith?\nA. a poet\nB. a judge\nC. a king", ("a poet", "a judge", "a king")),
        ("Who is A. B. Smith?\nA. a poet\nB. a judge", ("a poet", "a judge")),  # of equal runs the last
        ("Points A, B, C and D are on a line. Which is longest?\nA. AB\nB. AC", ("AB", "AC")),
        ("Plan A. was dropped.\nA. why\nB. when", ("why", "when")),
        ("Answer with A, B, C, or D) only.\nA. x\nB. y", ("x", "y")),
        (
            "\n".join(f"{letter}. option {letter}" for letter in LETTERS[:10]),
            tuple(f"option {letter}" for letter in LETTERS[:10]),
        ),
    ],
)
def test_options_in(prompt, texts):
    assert options_in(prompt) == texts


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "What colour is the bus?",
        "Is vitamin A. good for you?",  # one mark is no list
        "B. red\nC. green",  # it must start at A
        "A. red\nC. green",  # and go on without a gap
        "Who is J. R. R. Tolkien?",
        "a. red\nb. green",  # small letters are not read (and not guessed)
        "A.red\nB.green",
        "USA. B. is",
    ],
)
def test_no_options_in(prompt):
    assert options_in(prompt) == ()


WORDS = st.lists(st.from_regex(r"[a-z0-9 ]{0,12}[a-z0-9]", fullmatch=True), min_size=2, max_size=8)


@given(WORDS, st.sampled_from(["{}. ", "({}) ", "{}) ", "{}: "]), st.sampled_from(["\n", " ", ", "]))
def test_any_list_is_read_back(texts, mark, between):
    listed = between.join(mark.format(letter) + text for letter, text in zip(LETTERS, texts, strict=False))
    assert options_in(f"Which one is it?\n{listed}\nAnswer.") == tuple(text.strip() for text in texts)


@pytest.mark.parametrize(
    "texts",
    [  # Video-MME, as they are there
        ("Quantum computers.", "VPN.", "Airline flights.", "Formula E."),
        (
            "a keyboard with sparkling keys.",
            "two black letters of K and C.",
            "a cartoon character.",
            "a magnifying glass.",
        ),
    ],
)
def test_marks_within_the_texts(texts):
    listed = "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=False))
    assert options_in(f"What is it?\n{listed}\nAnswer with the option's letter.") == texts


# --- golds, by hand ------------------------------------------------------------------------------------------------

LIST = "Which?\nA. red\nB. green\nC. blue\nD. grey"


@pytest.mark.parametrize(
    ("gold", "options"),
    [
        ("B", ("A", "B", "C", "D")),
        ("(B)", ("(A)", "(B)", "(C)", "(D)")),
        ("B.", ("A.", "B.", "C.", "D.")),
        (" B\n", ("A", "B", "C", "D")),
        ("[B]", ("[A]", "[B]", "[C]", "[D]")),
        ("B)", ("A)", "B)", "C)", "D)")),
    ],
)
def test_letters_are_spelled_as_the_gold_is(gold, options):
    found = one(LIST, gold)
    assert (found.format, found.gold, found.options) == ("mc", gold.strip(), options)
    assert found.texts == ("red", "green", "blue", "grey")
    assert found.label == "mc4"


def test_options_of_a_field_win_over_the_prompt():
    found = one(LIST, "B", ("rot", "gruen", "blau"))
    assert (found.texts, found.label) == (("rot", "gruen", "blau"), "mc3")


def test_golds_that_are_option_texts_by_hand():
    assert one(LIST, "green") == Answer(
        "mc", ("green",), ("red", "green", "blue", "grey"), ("red", "green", "blue", "grey")
    )
    assert one("Which?", "4", ("3", "4")) == Answer("mc", ("4",), ("3", "4"), ("3", "4"))
    assert one("Which?", "green", ("Red", "Green")).format == "open"  # not as the field spells it
    assert one("Which?", "green", ("green",)).format == "open"  # nothing to choose from


def test_small_letters_are_not_taken_for_options():
    """They are open answers, not misread as capital ones."""
    assert one("Which?\n(a) red\n(b) green", "b").format == "open"
    assert one("Which?", "b", ("red", "green")).format == "open"


def test_letters_without_a_list():
    """The options are in the image, or the prompt cannot be read: the letters up to the highest gold, where nearly all golds are letters."""
    found = recognise([Asked("Which?", gold) for gold in "ABDACABDCA"])
    assert {answer.options for answer in found} == {("A", "B", "C", "D")}
    assert {answer.texts for answer in found} == {()}
    nine = recognise([Asked("Which?", gold) for gold in [*"ABDACABDC", "red"]])
    assert [answer.format for answer in nine] == ["mc"] * 9 + ["open"]
    eight = recognise([Asked("Which?", gold) for gold in [*"ABDACABD", "red", "blue"]])
    assert {answer.format for answer in eight} == {"open"}
    assert {answer.format for answer in recognise([Asked("Which?", "B")] * 10)} == {
        "open"
    }  # always the same letter says nothing
    assert {answer.format for answer in recognise([Asked("Which?", gold) for gold in "ABX"])} == {
        "open"
    }  # no test has 24 options


@pytest.mark.parametrize(
    ("gold", "options"),
    [
        ("yes", ("yes", "no")),
        ("No", ("Yes", "No")),
        ("YES", ("YES", "NO")),
        (" no ", ("yes", "no")),
        ("true", ("true", "false")),
        ("False", ("True", "False")),
        (True, ("True", "False")),
    ],
)
def test_yes_and_no(gold, options):
    found = one("Is it?", gold)
    assert (found.format, found.options, found.label) == ("yesno", options, "yesno")
    assert found.gold in found.options


@pytest.mark.parametrize(("gold", "options"), [("Yes.", ("Yes.", "No.")), ("no.", ("yes.", "no."))])
def test_yes_and_no_with_a_dot(gold, options):
    found = one("Is it?", gold)
    assert (found.format, found.gold, found.options) == ("yesno", gold, options)


@pytest.mark.parametrize("gold", ["yes it is", "not", "none", "nope", "y", "truely", "0"])
def test_what_is_not_yes_or_no(gold):
    assert one("Is it?", gold).format != "yesno"


def test_yes_or_no_by_a_letter():
    """The gold is a letter, so the answer is one."""
    assert one("Is it?\nA. Yes\nB. No", "A") == Answer("mc", ("A",), ("A", "B"), ("Yes", "No"))


@pytest.mark.parametrize("gold", ["7", "-3", "3.14", "1,000", "1,234,567.5", "5%", "$12", "2e3", "1/2", 12, 0.5])
def test_numbers(gold):
    found = one("How many?", gold)
    assert found.format == ("open" if gold == "1/2" else "number")
    assert (found.gold, found.options) == (str(gold), ())


def test_captions():
    five = ["a man rides a horse", "a man on a brown horse", "someone is riding on a horse"]
    assert one("Describe.", five).format == "caption"
    assert one("Describe.", [*five, "a horse"]).format == "open"  # one that is short: a list of answers
    assert one("Describe.", five[:1]).format == "open"
    assert one("Describe.", [five[0]] * 5).format == "open"  # one reference, five times
    assert one("Describe.", five[0]).format == "open"


def test_several_golds():
    assert one("Is it?", ["yes", "no", "yes"]) == Answer("yesno", ("yes", "no"), ("yes", "no"))
    assert one("How many?", ["2", "two", "2"]).golds == ("2", "two")
    assert one("How many?", ["2", "two", "2"]).format == "number"
    assert one("Which?", ("B", "B"), ("x", "y")).label == "mc2"


# --- log-likelihoods -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "golds"),
    [
        (1, ("1",)),
        ("green", ("1",)),
        ("purple", ()),
        (None, ()),
        (True, ("1",)),
        ("1", ("1",)),
        (1.0, ("1",)),
        (np.int64(1), ("1",)),
        ("1.0", ("1",)),
        (1.5, ()),
        (3, ()),
        (-1, ()),
        (math.nan, ()),
    ],
)
def test_indices_of_choices(target, golds):
    found = one("Which?", target, ("red", "green", "blue"), by_index=True)
    assert found == Answer("mc", golds, ("0", "1", "2"), ("red", "green", "blue"))


def test_golds_of_any_type_are_one_thing():
    """An integer, a float, numpy's integer and a text give the same number.

    None and the nan of tables are no gold, in lists too.
    """
    found = recognise(
        [
            Asked("How many?", target)
            for target in (3, 3.0, np.int64(3), "3", " 3 ", None, math.nan, [None, "3"], [math.nan])
        ]
    )
    assert [answer.format for answer in found[:5]] == ["number"] * 5
    assert {same_answer(answer.golds[0]) for answer in found[:5]} == {"3"}
    assert [answer.golds for answer in found[5:]] == [(), (), ("3",), ()]


def test_yes_and_no_by_index_are_choices():
    """A log-likelihood task answers by index, whatever the texts are."""
    found = one("Is it?", 0, ("yes", "no"), by_index=True)
    assert (found.format, found.gold, found.options) == ("mc", "0", ("0", "1"))


# --- what a profile declares -----------------------------------------------------------------------------------------


def test_a_declared_format_wins():
    assert one("Is it?", "2", declared="open") == Answer("open", ("2",))
    assert one("Describe.", ["a bus", "a red bus"], declared="caption").format == "caption"
    assert one("Which?", "1", declared="yesno").options == ("Yes", "No")
    assert one("Is it?", "no", declared="yesno").options == ("yes", "no")  # as it is spelled here
    assert one(LIST, "B", declared="mc").options == ("A", "B", "C", "D")
    assert one(LIST, "B", declared="open") == Answer("open", ("B",), (), ("red", "green", "blue", "grey"))


# --- the skeleton of a question
# -----------------------------------------------------------------------------------------


@given(st.permutations(["Blue", "blue", "blue", "BLUE ", "2", "2.0", "2.0", "1,000", "1000", "red", "red", "red"]))
def test_answers_are_counted_whatever_their_spelling_and_order(texts):
    """By hand: blue 4 times, 2 and red 3 times each, a thousand twice.

    Of two spellings as frequent the first in the alphabet is shown.
    """
    assert counted(texts) == [("blue", 4), ("2.0", 3), ("red", 3), ("1,000", 2)]
    assert counted([]) == []


# --- declared multiple choice, where golds are places or texts -----------------------------------------------

LISTED = "How many?\nA. 2\nB. 1\nC. a dog\nD. The end.\nAnswer with a letter."


@pytest.mark.parametrize(
    ("target", "letter"),
    [
        (0, "A"),
        (1, "B"),
        ("1", "B"),
        (2, "C"),
        ("a dog", "C"),
        ("3", "D"),
        ("C", "C"),
        ("C. a dog", "C"),
        ("The end.", "D"),
        (4, "4"),
        ("a cat", "a cat"),
        (-1, "-1"),
    ],
)
def test_a_place_or_a_text_is_a_letter_where_mc_is_declared(target, letter):
    """A number is a place, counted from 0; a text that is an option (here "1") is that option."""
    assert one(LISTED, target, declared="mc").gold == letter


def test_the_options_of_a_place_are_letters():
    answer = one(LISTED, 2, declared="mc")
    assert (answer.options, answer.texts) == (("A", "B", "C", "D"), ("2", "1", "a dog", "The end."))


def test_places_and_texts_stay_without_a_declaration_or_without_letters_in_the_prompt():
    assert one(LISTED, "a dog").gold == "a dog"
    assert one(LISTED, 2).gold == "2"
    assert one("How many? 2, 1, or a dog?", "a dog", ("2", "1", "a dog"), declared="mc").gold == "a dog"
    assert one(LISTED, 2, ("2", "1", "a dog", "The end."), by_index=True, declared="mc").options == ("0", "1", "2", "3")


# --- golds 1 and 0 ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "choices", "golds", "read"),
    [
        ("Is it red? Please answer yes or no.", (), "10", ["Yes", "No"]),
        ("Is it red? (yes/no)", (), "01", ["No", "Yes"]),
        ("Is it red?", ("Yes", "No"), "01", ["Yes", "No"]),
        ("Is it red?", ("no", "yes"), "01", ["no", "yes"]),
    ],
)
def test_golds_1_and_0_of_yes_no_questions(prompt, choices, golds, read):
    """By the prompt 1 is yes; of options a gold is the place."""
    found = recognise([Asked(prompt, gold, choices) for gold in golds])
    assert [(answer.format, answer.gold) for answer in found] == [("yesno", word) for word in read]
    assert all(answer.gold in answer.options for answer in found)


@pytest.mark.parametrize(
    ("prompts", "golds"),
    [
        (["How many cups are there?"] * 2, "10"),
        (["Is it red? Answer yes or no."] * 2, "12"),
        (["Is it red? Answer yes or no.", "How many?"], "10"),
        (["Say no more: how many say yes?"] * 2, "10"),
    ],
)
def test_golds_1_and_0_of_other_questions_are_numbers(prompts, golds):
    assert {
        answer.format
        for answer in recognise([Asked(prompt, gold) for prompt, gold in zip(prompts, golds, strict=True)])
    } == {"number"}


def test_golds_1_and_0_where_yes_and_no_are_declared():
    (answer,) = recognise([Asked("Is it red?", "0")], "yesno")
    assert (answer.format, answer.golds, answer.options) == ("yesno", ("No",), ("Yes", "No"))
