import math
import random
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.ask.captions import CiderD, tokenize

REFERENCES = [
    ["a man rides a brown horse", "a person on a horse", "the man is riding a horse on the beach"],
    ["two dogs play with a ball", "dogs on the grass with a red ball"],
    ["a red bus on the street", "a bus", "a double decker bus drives down the street", "red bus"],
    ["a plate of food on a table", "food on a plate"],
]
CAPTIONS = ["a man on a horse", "two dogs with a ball on the grass", "a red bus on the street", "a cat"]


def official(captions, references):
    """Per-image scores of the scorer that lmms-eval's caption tasks use."""
    from pycocoevalcap.cider.cider_scorer import CiderScorer

    scorer = CiderScorer(n=4, sigma=6.0)
    for caption, refs in zip(captions, references, strict=True):
        scorer += (caption, list(refs))
    return scorer.compute_score()


def test_equals_the_official_scorer_on_a_small_corpus():
    mean, each = official(CAPTIONS, REFERENCES)
    ours = [CiderD(REFERENCES).score(c, r) for c, r in zip(CAPTIONS, REFERENCES, strict=True)]
    assert ours == pytest.approx(list(each), rel=1e-12)
    assert sum(ours) / len(ours) == pytest.approx(mean, rel=1e-12)
    assert ours[3] == 0 or ours[3] < min(ours[:3])


words = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=9).map(" ".join)


@given(st.lists(st.tuples(words, st.lists(words, min_size=1, max_size=4)), min_size=1, max_size=6))
def test_equals_the_official_scorer_on_any_corpus(corpus):
    captions, references = [c for c, _ in corpus], [r for _, r in corpus]
    if not any(text for refs in references for text in refs):
        return  # the official scorer asserts that some reference has a word
    scorer = CiderD(references)
    ours = [scorer.score(c, r) for c, r in corpus]
    assert ours == pytest.approx(list(official(captions, references)[1]), rel=1e-9, abs=1e-12)


def test_by_hand():
    """Two images: "red bus" and "cat". Every n-gram is in one image of two, so its idf is log 2 =: L.

    Caption "red bus bus" against "red bus":
    n=1: caption (red L, bus 2L), norm L√5; reference (L, L), norm L√2; clipped dot L·L + min(2L, L)·L = 2L². So 2/√10.
    n=2: caption {red bus: L, bus bus: L} (an n-gram that no image has counts as one image: log 2 − log 1), norm L√2;
         reference norm L; dot L². So 1/√2.
    n=3, n=4: the reference has none. So 0.
    Lengths in bigrams 2 and 1: exp(−1/72). Mean over four n, times 10.
    """
    scorer = CiderD([["red bus"], ["cat"]])
    expected = 10 / 4 * (2 / math.sqrt(10) + 1 / math.sqrt(2)) * math.exp(-1 / 72)
    assert scorer.score("red bus bus", ["red bus"]) == pytest.approx(expected, rel=1e-12)


def test_four_words_repeated_exactly_score_ten():
    """All four cosines are 1 and the lengths are equal; with three words there is no 4-gram, so 3/4 of it."""
    scorer = CiderD([["one two three four"], ["five six seven"]])
    assert scorer.score("one two three four", ["one two three four"]) == pytest.approx(10)
    assert scorer.score("five six seven", ["five six seven"]) == pytest.approx(7.5)


def test_words_in_every_image_weigh_nothing():
    scorer = CiderD([["the bus"], ["the cat"]])
    assert scorer.score("the", ["the bus"]) == 0


def test_an_empty_caption_scores_zero():
    scorer = CiderD(REFERENCES)
    assert scorer.score("", REFERENCES[0]) == 0
    assert scorer.score("a horse", [""]) == 0


def test_one_image_scores_zero():
    """log(N/df) = log(1/1) = 0 for every n-gram: why the aggregation of one item cannot rank captions."""
    assert CiderD([["a red bus"]]).score("a red bus", ["a red bus"]) == 0


def test_references_that_are_missing_are_refused():
    with pytest.raises(ValueError, match="at least one image"):
        CiderD([])
    with pytest.raises(ValueError, match="at least one reference"):
        CiderD([["a"]]).score("a", [])
    with pytest.raises(ValueError, match="at least one reference"):
        CiderD([["a"]]).score("a", "a text where a list belongs")


def test_scoring_leaves_the_corpus_as_it_is():
    scorer = CiderD(REFERENCES)
    order = list(range(4))
    before = [scorer.score(CAPTIONS[i], REFERENCES[i]) for i in order]
    random.Random(0).shuffle(order)
    after = {i: scorer.score(CAPTIONS[i], REFERENCES[i]) for i in order}
    assert [after[i] for i in range(4)] == before
    assert all(isinstance(value, float) and not isinstance(value, np.floating) for value in before)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A man's dog doesn't run, away!", "a man 's dog does n't run away"),
        ("Two T-shirts: \"red\" -- 'blue'...", "two t-shirts red blue"),
        ("It costs $5.00; at 10:30 (a.m.)", "it costs $ 5.00 at 10:30 -lrb- a.m. -rrb-"),
        ("they cannot", "they can not"),
        ("", ""),
        (" .,;:!? ", ""),
        ("café – “open”", "café open"),
    ],
)
def test_tokens(text, expected):
    assert " ".join(tokenize(text)) == expected


@pytest.mark.skipif(shutil.which("java") is None, reason="the official tokenizer needs Java")
def test_tokens_are_those_of_the_official_tokenizer():
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    texts = [
        "A man's dog doesn't run, and it's 3.5 miles (about) away!",
        "Two T-shirts: \"red\" & 'blue' -- $5.00; 10:30 a.m. on 5/6/2020...",
        "They've 2,000 people's kids' toys on a table/desk.",
        "A black-and-white photo of the U.S. flag, 50% off",
        "She can't see; they cannot hear; I'll go and we'd stay",
        "A street sign that reads 'stop'.",
    ]
    official_tokens = PTBTokenizer().tokenize({i: [{"caption": text}] for i, text in enumerate(texts)})
    assert [" ".join(tokenize(text)) for text in texts] == [official_tokens[i][0] for i in range(len(texts))]
