"""Who lends to whom, which answers are scored beside the model's, and the names of the strata."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.ask.answers import Asked
from lmms_patch.ask.references import CONSTANTS, Doc, plan, questions, shown

LETTERS = "ABCDEFGH"


def mc(doc_id, gold, options=4, question="What is it?", **more):
    listed = "\n".join(
        f"{letter}. {more.get('text', '')}{letter.lower()}{doc_id if 'text' not in more else ''}"
        for letter in LETTERS[:options]
    )
    more.pop("text", None)
    return Doc(doc_id, Asked(f"{question}\n{listed}", gold), question, **more)


def say(doc_id, gold, question="What is it?", **more):
    return Doc(doc_id, Asked(question, gold), question, **more)


def test_the_plan_is_one_for_all_ranks():
    docs = [say(i, random.Random(i).choice(["cat", "dog"])) for i in range(50)]
    assert plan(docs, seed=3) == plan(docs, seed=3)


def test_the_majority_of_a_stratum_leaves_the_doc_out():
    """Golds A, A, B, B: to an A the others are A, B, B.

    With three As, the others of each A are A, A, and of the B three As.
    """
    even = plan([mc(i, gold) for i, gold in enumerate("AABB")])
    assert [next(a for a, roles in even.baselines[i].items() if "stratum" in roles) for i in range(4)] == [
        "B",
        "B",
        "A",
        "A",
    ]
    most = plan([mc(i, gold) for i, gold in enumerate("AAAB")])
    assert [next(a for a, roles in most.baselines[i].items() if "stratum" in roles) for i in range(4)] == ["A"] * 4


def test_thirty_types_do_not_lift_the_floor():
    """Four even options, 30 types of 33 docs: counted with the doc itself the floor is 0.34, without it no more than chance."""
    stream = random.Random(0)
    docs = [mc(i, stream.choice("ABCD"), stratum=f"type {i % 30}") for i in range(990)]
    made = plan(docs)
    right = [
        doc.asked.target in (a for a, roles in made.baselines[doc.doc_id].items() if "stratum" in roles) for doc in docs
    ]
    assert sum(right) / 990 < 0.27


# --- roles -------------------------------------------------------------------------------------------------


def test_roles_of_multiple_choice_by_hand():
    """Golds A, A, B, C of four options: letters are options and constants of each doc, A is the majority of the stratum."""
    docs = [mc(i, gold) for i, gold in zip((10, 11, 12, 13), "AABC", strict=True)]
    made = plan(docs)
    assert {i: answer.gold for i, answer in made.answers.items()} == {10: "A", 11: "A", 12: "B", 13: "C"}
    for doc in docs:
        gold = doc.asked.target
        roles = made.baselines[doc.doc_id]
        assert list(roles) == [gold, *(letter for letter in "ABCD" if letter != gold)]
        for letter in "ABCD":
            given_roles = set(roles[letter]) - {"other"}
            assert given_roles == {"option", "constant"} | ({"gold"} if letter == gold else set()) | (
                {"stratum"} if letter == "A" else set()
            )
        others = [letter for letter, found in roles.items() if "other" in found]
        assert len(others) == 1
        assert others[0] in {d.asked.target for d in docs if d is not doc}


def test_the_other_gold_is_that_of_another_doc():
    made = plan([say(i, f"word {i}") for i in range(40)])
    for i in range(40):
        (other,) = [answer for answer, roles in made.baselines[i].items() if "other" in roles]
        assert other in {f"word {j}" for j in range(40) if j != i}


def test_constants_of_four_and_five_options():
    """E is an answer of the format, so that it is tried on docs of four options too, where it is no option."""
    docs = [mc(i, "D") for i in range(5)] + [mc(i, "E", options=5) for i in range(5, 8)]
    made = plan(docs)
    assert set(made.baselines[0]["E"]) - {"other"} == {"constant"}
    assert "option" in made.baselines[5]["E"]
    assert set(made.baselines[0]) == set(made.baselines[5]) == set("ABCDE")


def test_constants_where_any_text_may_be_given():
    """Golds with counts 6, 5, 4, 3, 2, 1: the five most frequent are tried on every doc."""
    golds = [word for word, count in zip("abcdef", (6, 5, 4, 3, 2, 1), strict=True) for _ in range(count)]
    made = plan([say(i, f"{gold} word") for i, gold in enumerate(golds)])
    assert CONSTANTS == 5
    for i, gold in enumerate(golds):
        tried = {answer for answer, roles in made.baselines[i].items() if "constant" in roles}
        assert tried == {f"{letter} word" for letter in "abcde"}
        assert "gold" in made.baselines[i][f"{gold} word"]


def test_constants_of_options_that_never_recur():
    """Answers by text, each doc with its own options: no answer could be constant but the most frequent golds."""
    docs = [Doc(i, Asked("Which?", f"{i} x", (f"{i} x", f"{i} y")), "Which?") for i in range(8)]
    made = plan(docs)
    assert made.answers[0].options == ("0 x", "0 y")
    tried = {answer for answer, roles in made.baselines[7].items() if "constant" in roles}
    assert tried == {f"{i} x" for i in range(5)}


def test_constants_are_of_the_own_format():
    docs = [say(0, "yes"), say(1, "no"), say(2, "7"), say(3, "7"), say(4, "a red cat"), mc(5, "A"), mc(6, "B")]
    made = plan(docs)
    tried = {i: {answer for answer, roles in made.baselines[i].items() if "constant" in roles} for i in range(7)}
    assert tried == {
        0: {"yes", "no"},
        1: {"yes", "no"},
        2: {"7"},
        3: {"7"},
        4: {"a red cat"},
        5: set("ABCD"),
        6: set("ABCD"),
    }


def test_log_likelihoods_are_answered_by_index():
    docs = [
        Doc(i, Asked("Which?", gold, ("red", "green", "blue"), by_index=True), "Which?")
        for i, gold in enumerate([0, 2, 2, 1])
    ]
    made = plan(docs)
    assert set(made.baselines[0]) == {"0", "1", "2"}
    assert set(made.baselines[0]["0"]) - {"other"} == {"gold", "option", "constant"}
    assert set(made.baselines[0]["2"]) - {"other"} == {"option", "constant", "stratum"}


def test_several_golds_are_all_scored_but_no_more_than_ten():
    made = plan([say(0, [f"gold number {k}" for k in range(14)]), say(1, ["cat", "cat", "dog"])])
    assert [answer for answer, roles in made.baselines[0].items() if "gold" in roles] == [
        f"gold number {k}" for k in range(10)
    ]
    assert [answer for answer, roles in made.baselines[1].items() if "gold" in roles] == ["cat", "dog"]


def test_docs_without_a_gold():
    """Hidden golds: nothing is gold, the constants are those of the docs that have one."""
    made = plan([say(0, None), say(1, ""), say(2, "a cat"), say(3, "a cat")])
    assert made.answers[0].gold is None
    for i in (0, 1):
        assert made.baselines[i]["a cat"][:2] == ["constant", "stratum"]
        assert not any("gold" in roles for roles in made.baselines[i].values())
    assert plan([say(0, None), say(1, None)]).baselines == {0: {}, 1: {}}


def test_the_majority_is_that_of_the_own_stratum():
    """Skeletons "what is" (mostly dog) and "who is" (mostly cat), 25 docs each.

    "why" has 3 docs and goes to all 53 (28 cats).
    """
    docs = [say(i, "a dog" if i < 15 else "a cat", "What is it?") for i in range(25)]
    docs += [say(100 + i, "a cat" if i < 20 else "a dog", "Who is it?") for i in range(25)]
    docs += [say(200 + i, "a bird", "Why so?") for i in range(3)]
    made = plan(docs)

    def majority(i):
        return [answer for answer, roles in made.baselines[i].items() if "stratum" in roles]

    assert majority(0) == ["a dog"]
    assert majority(124) == ["a cat"]
    assert majority(200) == ["a cat"]  # 10 + 20 cats, 15 + 5 dogs, 3 birds


# --- strata ------------------------------------------------------------------------------------------------


def test_names_of_strata():
    """Format, number of options, their set, the first two words; or the profile's field in place of the words."""
    assert set(plan([mc(i, "AB"[i % 2]) for i in range(20)]).strata.values()) == {"mc | 4 | A / B / C / D | what is"}
    assert set(plan([say(i, "yes") for i in range(20)]).strata.values()) == {"yesno | 2 | yes / no | what is"}
    assert set(plan([say(i, "a cat", stratum="animals") for i in range(20)]).strata.values()) == {
        "open | 0 |  | animals"
    }


def test_options_that_recur_as_a_set_make_a_stratum():
    """The same four texts in 20 docs or more, in any order."""
    docs = [mc(i, "AB"[i % 2], text="colour ") for i in range(20)] + [mc(100 + i, "AB"[i % 2]) for i in range(20)]
    names = plan(docs).strata
    assert names[0] == "mc | 4 | colour a / colour b / colour c / colour d | what is"
    assert names[100] == "mc | 4 | A / B / C / D | what is"


def test_few_docs_go_to_their_parent_and_are_counted():
    docs = [say(i, "a cat", "What is it?") for i in range(20)] + [say(100 + i, "a cat", "Why so?") for i in range(5)]
    made = plan(docs)
    assert (made.strata[0], made.strata[100]) == ("open | 0 |  | what is", "open | 0 | ")


def test_formats_are_never_one_stratum():
    made = plan([say(i, gold) for i, gold in enumerate(["a cat", "7", "yes"] * 5)])
    formats = {doc_id: answer.format for doc_id, answer in made.answers.items()}
    assert len(set(formats.values())) == 3
    for one, other in itertools.product(formats, repeat=2):
        assert formats[one] == formats[other] or made.strata[one] != made.strata[other]


def test_a_declared_format_is_that_of_all():
    made = plan([say(i, gold) for i, gold in enumerate(["a cat", "7", "yes"])], declared="open")
    assert {answer.format for answer in made.answers.values()} == {"open"}


# --- questions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompts", "fields", "found"),
    [
        (["Answer: who?", "Answer: what?"], [None, None], ["o?", "at?"]),  # "Answer: wh" is shared
        (["Look. Is it?", "Look. Are they?"], [None, None], ["Is it?", "Are they?"]),
        (["x who?", "x what?"], ["Who is it?", "What is it?"], ["Who is it?", "What is it?"]),
        (["x who?", "x is?"], ["Who is it?", ""], ["Who is it?", "is?"]),
        (["x who?", "x is?"], [{"text": "no"}, 3], ["who?", "is?"]),
        (["same", "same"], [None, None], ["", ""]),
        (["same", "same and more"], [None, None], ["", " and more"]),
        (["alone"], [None], ["alone"]),
        ([], [], []),
    ],
)
def test_questions(prompts, fields, found):
    assert questions(prompts, fields) == found


@given(st.lists(st.text("ab ", max_size=6), min_size=2, max_size=8))
def test_what_all_prompts_start_with_is_left_out(prompts):
    found = questions(prompts, [None] * len(prompts))
    shared = prompts[0][: len(prompts[0]) - len(found[0])]
    assert all(shared + question == prompt for prompt, question in zip(prompts, found, strict=True))
    assert not all(found) or len({question[0] for question in found}) > 1


# --- what was shown -------------------------------------------------------------------------------


def seen_records(count):
    return [(i, [(9, 9 + i % 2)], f"{i:016x}") for i in range(count)]


def test_what_was_shown_does_not_depend_on_the_order_in_which_ranks_give_their_docs():
    whole = shown(seen_records(7))
    assert set(whole) == {"image_sizes", "images"}
    ranks = [seen_records(7)[k::2] for k in (0, 1)]
    assert shown([*ranks[1], *ranks[0]]) == whole
    assert shown(seen_records(6)) != whole


def test_other_images_and_other_sizes_are_told_apart():
    whole = shown(seen_records(4))
    images, sizes = seen_records(4), seen_records(4)
    images[2], sizes[2] = (2, [(9, 9)], "f" * 16), (2, [(8, 8)], f"{2:016x}")
    assert [shown(images)[key] == whole[key] for key in ("image_sizes", "images")] == [True, False]
    assert [shown(sizes)[key] == whole[key] for key in ("image_sizes", "images")] == [False, True]
