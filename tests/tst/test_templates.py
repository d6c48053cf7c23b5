"""Templates: what is the same in most questions of a category, and what fills the slots."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.tst.templates import MOST_SLOTS, Texts, find_slots, words
from tests.sizes import examples

FILLINGS = ["ceiling light", "bed", "dishwasher", "left door", "plant", "tv", "sofa", "towel"]


def slots_of(questions, category=None, train=None):
    texts = Texts.of(questions)
    category = np.zeros(len(questions), np.intp) if category is None else np.array(category)
    return texts, find_slots(texts, category, np.arange(len(questions)) if train is None else np.array(train, np.intp))


def fillings(texts, slots, at):
    return [
        " ".join(texts.names[w] for w in texts.words[a:b])
        for o, a, b in zip(slots.owner, slots.start, slots.stop, strict=True)
        if o == at
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Is the TV left?", ["is", "the", "tv", "left", "?"]),
        ("", []),
        ("  \n\t", []),
        ("?!…", ["?", "!", "…"]),
        ("don't 3.5", ["don", "'", "t", "3", ".", "5"]),
        ("这是什么?", ["这是什么", "?"]),
        ("ما هذا؟", ["ما", "هذا", "؟"]),
        ("a🙂b", ["a", "🙂", "b"]),
        ("10 m²", ["10", "m²"]),
    ],
)
def test_words_in_lower_case_with_marks(text, expected):
    assert words(text) == expected


def test_neighbouring_words_fill_one_slot():
    texts, slots = slots_of([f"How long is the {thing} in meters?" for thing in FILLINGS])
    for at, thing in enumerate(FILLINGS):
        assert fillings(texts, slots, at) == [thing]
    assert slots.number.tolist() == [0] * len(FILLINGS)
    assert len(set(slots.value.tolist())) == len(FILLINGS)
    assert len(set(slots.skeleton.tolist())) == 1


def test_two_slots_are_numbered_and_a_value_is_the_same_in_either():
    pairs = [(a, b) for a in FILLINGS for b in FILLINGS if a != b]
    texts, slots = slots_of([f"Is the {a} nearer than the {b}?" for a, b in pairs])
    value = {}
    for at, pair in enumerate(pairs):
        own = slots.owner == at
        assert fillings(texts, slots, at) == list(pair)
        assert slots.number[own].tolist() == [0, 1]
        for thing, found in zip(pair, slots.value[own].tolist(), strict=True):
            assert value.setdefault(thing, found) == found
    assert len(set(value.values())) == len(FILLINGS)


def test_the_order_of_the_words_in_a_slot_matters():
    _, slots = slots_of(
        [f"the {x}?" for x in ("light ceiling", "ceiling light", "one", "two", "three", "four", "five")]
    )
    assert slots.value[0] != slots.value[1]


def test_skeletons_tell_templates_apart_and_categories_have_their_own_words():
    questions = [f"How long is the {x}?" for x in FILLINGS] + [f"Is the {x} long?" for x in FILLINGS]
    texts, slots = slots_of(questions, [0] * 8 + [1] * 8)
    assert len(set(slots.skeleton[:8].tolist())) == len(set(slots.skeleton[8:].tolist())) == 1
    assert slots.skeleton[0] != slots.skeleton[8]
    assert fillings(texts, slots, 8) == ["ceiling light"]


def test_a_word_in_exactly_half_of_the_training_questions_belongs_to_the_template():
    texts, slots = slots_of(["the red one", "the red two", "the blue three", "the green four"])
    assert [fillings(texts, slots, at) for at in range(4)] == [["one"], ["two"], ["blue three"], ["green four"]]


def test_a_word_that_comes_twice_in_a_question_counts_once():
    texts, slots = slots_of(["dog dog the a", "the b", "the c"])
    assert fillings(texts, slots, 0) == ["dog dog", "a"]


def test_only_training_texts_say_what_the_template_is():
    """All three training texts say "red": template.

    That the four held-out ones do not changes nothing; nor do they get a vote.
    """
    texts, slots = slots_of(["red a", "red b", "red c", "blue a", "blue d", "blue e", "blue f"], train=[0, 1, 2])
    assert fillings(texts, slots, 0) == ["a"]
    assert fillings(texts, slots, 4) == ["blue d"]


def test_texts_of_other_scripts_have_slots():
    texts, slots = slots_of([f"图中 有 {x} 吗 ?" for x in ("猫", "狗", "床", "门")] + ["هل يوجد قط في الصورة ؟"])
    assert [fillings(texts, slots, at) for at in range(4)] == [["猫"], ["狗"], ["床"], ["门"]]


def test_slots_of_free_text_are_bounded():
    stop = " the ".join(f"word{i}" for i in range(40))
    _, slots = slots_of([stop, "the x", "the y"])
    assert (slots.owner == 0).sum() == MOST_SLOTS
    assert slots.number.max() == MOST_SLOTS - 1


def test_hashes_are_the_same_in_every_process():
    code = (
        "import numpy as np; from lmms_patch.tst.templates import *; t = Texts.of(['the cat?', 'the 猫', 'the x']);"
        "s = find_slots(t, np.zeros(3, int), np.arange(3)); print(hash_of('chaise é 🙂'), int(mix(3, np.uint64(5))), s.value.tolist(), s.skeleton.tolist())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(found) == 1


alphabet = st.text("ab ?猫é🙂3", max_size=12)


@examples(80)
@given(st.lists(alphabet, min_size=2, max_size=10), st.lists(alphabet, min_size=10, max_size=10), st.integers(0, 2**10))
def test_held_out_texts_change_nothing_of_how_training_texts_are_read(before, other, mask):
    held = [bool(mask >> i & 1) for i in range(len(before))]
    after = [b if out else a for a, b, out in zip(before, other, held, strict=False)]
    train = np.flatnonzero(~np.array(held))
    category = np.arange(len(before)) % 2
    read = []
    for questions in (before, after):
        texts = Texts.of(questions)
        slots = find_slots(texts, category, train)
        own = np.isin(slots.owner, train)
        read.append(
            (
                slots.owner[own].tolist(),
                slots.number[own].tolist(),
                slots.value[own].tolist(),
                slots.skeleton[train].tolist(),
            )
        )
    assert read[0] == read[1]
