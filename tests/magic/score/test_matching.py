import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.magic.score import matching
from lmms_patch.magic.score.matching import exact, normalise, synonym

NORMALISED = [
    ("**The** two dogs!", "2 dogs"), ("A man's hat.", "man hat"), ("It isn’t red", "it is not red"),
    ("T-shirt", "t shirt"), ("10:30", "10:30"), ("", ""), ("...", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "plain"), NORMALISED)
def test_normalised_by_hand(text, plain):
    assert normalise(text) == plain


EXACT = [
    ("Red.", "red", True), ("the red", "red", True), ("It is red.", "red", False), ("Two", "2", True),
    ("a dog", "the Dog", True), ("dogs", "dog", False), ("Yes, there is a helmet.", "yes", True),
    ("No, there is no yes sign.", "yes", False), ("No, there is no yes sign.", "no", True), ("yes", "no", False),
    ("YES!", "yes", True), ("I think yes", "yes", False), ("", "red", False), ("", "", False),
    ("sofa", "couch", False), ("not red", "red", False), ("None", "no", False), ("Nope", "no", False),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "gold", "right"), EXACT)
def test_exact_by_hand(answer, gold, right):
    assert exact(answer, gold) is right


SYNONYMS = [
    # colours
    ("beige", "tan", True), ("tan", "beige", True),
    ("tan", "brown", True),  # paper, 4.2
    ("light brown", "beige", True),  # figure 16
    ("brown", "beige", False),  # sets are not chained
    ("The couch is gray.", "grey", True), ("metallic grey", "silver", True), ("not red", "red", False),
    ("It isn't red.", "red", False), ("It is not really red", "red", False), ("It's not blue but red.", "red", True),
    ("No, it is red.", "red", True), ("It is blue, not red.", "red", False), ("red rather than blue", "blue", False),
    ("red rather than blue", "red", True), ("red and blue", "red", False), ("red or blue", "red", False),
    ("The bottle to the right of the plate in R2 is red.", "red", True), ("The redhead waves.", "red", False),
    ("dark blue", "blue", True), ("orange", "red", False),
    # materials
    ("The table is wooden.", "wood", True), ("metal", "wood", False),
    ("It is made of stainless steel.", "metal", True),
    # furniture, animals, things, people
    ("sofa", "couch", True), ("They are sofas", "couch", True), ("the couches", "sofa", True),
    ("television", "tv", True), ("a cell phone", "phone", True),
    ("He is holding his mobile phone in R1.", "cell phone", True), ("bike", "bicycle", True),
    ("The women are standing.", "woman", True), ("The woman next to the man", "woman", True),
    ("The woman next to the man", "man", False), ("The human", "man", False), ("cat or dog", "cat", False),
    ("It is a cat.", "cat", True), ("a caterpillar", "cat", False), ("She wears glasses.", "eyeglasses", True),
    ("It is made of glass.", "glasses", False), ("baseball bat", "bat", True), ("bat", "baseball bat", False),
    ("There is no dog", "dog", False), ("Without a dog", "dog", False), ("children", "kid", True),
    ("a frisbee", "frisbee", True), ("Cherries.", "cherry", True), ("two ponies", "pony", True),
    ("The object that the boy throws is a frisbee.", "frisbee", True),
    # numbers
    ("There are two dogs.", "2", True), ("3", "2", False), ("2 of the 3 dogs", "2", False),
    ("The two men in R3 and region 4", "2", True), ("There are 12 dogs.", "2", False),
    # sides
    ("It is on the left side.", "left", True), ("right", "left", False),
    # yes and no
    ("Yes, there is a helmet.", "yes", True), ("So the answer is no.", "no", True),
    ("I would say yes, since R1 shows it.", "yes", True), ("There is no yes sign", "yes", False),
    ("No, there is no yes sign.", "yes", False),
    ("There is no cat.", "no", False),  # "no" belongs to the cat
    ("Maybe yes, maybe no.", "yes", False),
    # nothing
    ("", "red", False), ("red", "", False),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "gold", "right"), SYNONYMS)
def test_synonym_by_hand(answer, gold, right):
    assert synonym(answer, gold) is right


WORDS = sorted({word for category in matching._table().values() for word in category.members})


@given(st.sampled_from(WORDS), st.sampled_from(["{}", "The {}.", "It is {}!", "I think that it is {} in R2."]))
def test_every_word_of_the_table_finds_itself(word, frame):
    assert synonym(frame.format(word), word)
    assert not synonym(f"It is not {word}.", word)
    assert exact(word.upper() + ".", word)


@given(st.sampled_from(WORDS), st.sampled_from(WORDS))
def test_synonyms_go_both_ways(one, other):
    assert synonym(one, other) == synonym(other, one) or one in other or other in one


@given(st.text(max_size=60), st.text(max_size=20))
def test_exact_is_also_a_synonym(answer, gold):
    if exact(answer, gold):
        assert synonym(answer, gold)


def test_the_table_is_well_formed():
    data = yaml.safe_load((matching.resources.files("lmms_patch.magic.score") / "synonyms.yaml").read_text())
    for name, entry in data.items():
        assert set(entry) == {"exclusive", "sets"}, name
        assert isinstance(entry["exclusive"], bool)
        for one in entry["sets"]:
            assert len(one) == len(set(one))
            assert all(isinstance(word, str) and word == word.lower() for word in one), one
