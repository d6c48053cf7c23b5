"""The diagnostic with embeddings, on worlds whose words are all new: only who knows which words mean the same can answer."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from lmms_patch.tst import checks
from lmms_patch.tst.trees import ModelSettings
from lmms_patch.tst.vectors import COMPONENTS, VectorSpace
from tests.sizes import each, size
from tests.tst.worlds import (
    FEW_TREES,
    SMALL_FOREST,
    cross_validate,
    free,
    mc,
    number,
    prepare,
    vocabulary,
    yesno,
)

CONCEPTS, DIMENSIONS = 6, 24
DOCS = size(110, 200)
LUCK = 4 * 0.5 / DOCS**0.5
"""Four standard errors of an accuracy on so many docs."""
EVERY_MODEL = [FEW_TREES, SMALL_FOREST, ModelSettings("linear")]


class Meanings:
    """An embedding of made-up words: a word lies near its concept, any other text anywhere. It never sees an item.

    Attributes:
        calls: how often each text was asked for.
    """

    def __init__(self, words):
        stream = np.random.default_rng(7)
        self._centres = np.linalg.qr(stream.normal(size=(DIMENSIONS, DIMENSIONS)))[0][:CONCEPTS]
        self._concept = {word: i % CONCEPTS for i, word in enumerate(words)}
        self.calls = Counter()

    def __call__(self, texts):
        self.calls.update(texts)
        return np.array([self._vector(text) for text in texts], np.float32).reshape(len(texts), DIMENSIONS)

    def _vector(self, text):
        own = np.random.default_rng(list(text.encode())).normal(0, 0.05, DIMENSIONS)
        known = [self._centres[self._concept[word]] for word in text.rstrip("?").split() if word in self._concept]
        vector = own + sum(known)
        return vector / np.linalg.norm(vector)


def new_words(n):
    """Return n words, the i-th of concept i modulo ``CONCEPTS``, and their embedding."""
    words = vocabulary(n, np.random.default_rng(3))
    return words, Meanings(words)


def synonyms(n, make):
    """Return items that each ask for a word of their own, in random order, and the embedding."""
    words, embed = new_words(n)
    return [
        make(i, words[place], place % CONCEPTS) for i, place in enumerate(np.random.default_rng(5).permutation(n))
    ], embed


def asks(n=DOCS):
    """Yes for half of the concepts."""
    return synonyms(n, lambda i, word, concept: yesno(i, f"Is there a {word}?", "yes" if concept % 2 else "no"))


def matches(n=DOCS):
    """Four options of four concepts.

    Right is the one that means what the question's word means, and no word is used twice.
    """
    words, embed = new_words(5 * CONCEPTS * n)
    stream, unused = np.random.default_rng(5), [words[concept::CONCEPTS] for concept in range(CONCEPTS)]
    items = []
    for i in range(n):
        concepts = stream.permutation(CONCEPTS)[:4]
        right = int(stream.integers(4))
        items.append(
            mc(
                i,
                f"What is like a {unused[concepts[right]].pop()}?",
                [unused[concept].pop() for concept in concepts],
                right,
            )
        )
    return items, embed


def favourites(n=DOCS):
    """Right is the option of concept 0, whatever the question."""
    words, embed = new_words(4 * CONCEPTS * n)
    stream, unused = np.random.default_rng(5), [words[concept::CONCEPTS] for concept in range(CONCEPTS)]
    items = []
    for i in range(n):
        concepts = stream.permutation([0, *(1 + stream.permutation(CONCEPTS - 1)[:3])])
        items.append(mc(i, "Which one?", [unused[concept].pop() for concept in concepts], concepts.tolist().index(0)))
    return items, embed


def sizes(n=DOCS):
    """A concept has a size, give or take 2 %."""
    return synonyms(
        n,
        lambda i, word, concept: number(
            i, f"How long is the {word}?", f"{10 * 1.6**concept * (1 + 0.02 * np.sin(i)):.1f}"
        ),
    )


def colours(n=DOCS):
    return synonyms(
        n, lambda i, word, concept: free(i, f"What colour is the {word}?", ("red", "green", "blue")[concept % 3])
    )


@pytest.mark.parametrize(
    ("world", "settings"), each([(asks, 0.5), (matches, 0.25), (favourites, 0.25), (colours, 1 / 3)], EVERY_MODEL)
)
def test_synonyms_are_found_by_embeddings_alone(settings, world):
    """All words differ, so without embeddings nobody beats a guess."""
    made, guess = world
    items, embed = made()
    assert abs(cross_validate(items, settings=settings).accuracy - guess) < LUCK
    assert cross_validate(items, settings=replace(settings, embed=embed)).accuracy > 0.9


@pytest.mark.parametrize("settings", EVERY_MODEL, ids=lambda one: one.model)
def test_synonyms_have_sizes(settings):
    """Who knows the concept is within 4 % of the gold, which earns 0.9 or more.

    The best constant is near one concept in six.
    """
    items, embed = sizes()
    assert cross_validate(items, settings=settings).accuracy < 0.35
    assert cross_validate(items, settings=replace(settings, embed=embed)).accuracy > 0.65


def test_embeddings_of_meaningless_golds_are_worth_nothing():
    """Golds are coins."""
    items, embed = asks()
    stream = np.random.default_rng(0)
    coins = [replace(item, golds=(str(stream.choice(["yes", "no"])),)) for item in items]
    assert abs(cross_validate(coins, settings=replace(FEW_TREES, embed=embed), seeds=(0, 1)).accuracy - 0.5) < LUCK


# --- folds stay apart -----------------------------------------------------------------------------


@pytest.mark.parametrize(("world", "settings", "held"), each([asks, matches, sizes, colours], EVERY_MODEL, [10, 37]))
def test_nothing_of_held_out_docs_leaks(settings, world, held):
    """Bitwise: other held-out golds move no feature, other held-out texts none of a training doc."""
    items, embed = world(90)
    with_embeddings = replace(settings, embed=embed)
    train, test = np.arange(held, 90), np.arange(held)
    prepared = [
        prepare(own, with_embeddings)[0]
        for own in (items, checks.other_golds(items, test), checks.other_texts(items, train, test))
    ]
    columns = [name for table in prepared[0].features(train, 0, np.arange(90)) for name in table.names]
    assert settings.model == "linear" or any("(embedding)" in name for name in columns)
    assert checks.leaks(items, lambda own: prepare(own, with_embeddings)[0], train, test, 0, np.arange(90)) == []


@pytest.mark.parametrize(("world", "settings"), each([asks, matches], EVERY_MODEL))
def test_held_out_golds_change_no_prediction(settings, world):
    items, embed = world(90)
    train, test = np.arange(30, 90), np.arange(30)
    permuted = checks.other_golds(items, test)
    assert [item.golds for item in permuted[:30]] != [item.golds for item in items[:30]]
    first, second = (
        prepare(own, replace(settings, embed=embed))[0].predict(train, test, seed=0, groups=np.arange(90))
        for own in (items, permuted)
    )
    for one, other in zip(first, second, strict=True):
        assert one.answer == other.answer
        np.testing.assert_array_equal(one.probabilities, other.probabilities)


# --- components ---------------------------------------------------------------------------------------


def test_components_are_the_principal_ones_of_the_distinct_training_texts():
    """Against the eigenvectors of the covariance matrix, up to sign; a repeated text counts once."""
    stream = np.random.default_rng(0)
    spread = stream.normal(size=(120, DIMENSIONS)) * 0.5 ** np.arange(DIMENSIONS)
    rotated = (spread @ np.linalg.qr(stream.normal(size=(DIMENSIONS, DIMENSIONS)))[0]).astype(np.float32)
    space = VectorSpace(lambda texts: rotated[[int(text) for text in texts]], [str(i) for i in range(120)] + ["0"] * 50)
    found = space.components(np.r_[0:80, 120:170], 0)
    known = rotated[:80].astype(float)
    axes = np.linalg.eigh(np.cov(known.T)).eigenvectors
    expected = (rotated - known.mean(axis=0)) @ axes[:, ::-1][:, :COMPONENTS]
    assert found.shape == (170, COMPONENTS)
    np.testing.assert_array_equal(found[120:], np.repeat(found[:1], 50, axis=0))
    for mine, theirs in zip(
        found[:120].T[:6], expected.T[:6], strict=True
    ):  # the first six hold all but 1 / 4**6 of the variance
        np.testing.assert_allclose(mine * np.sign(mine @ theirs), theirs, atol=1e-3)


def test_cosines_are_scalar_products_of_rows():
    embed = Meanings(())
    one, other = VectorSpace(embed, ["a", "b", "a"]), VectorSpace(embed, ["c", "b"])
    expected = [float(embed(["b"])[0] @ embed(["c"])[0]), 1.0, float(embed(["a"])[0] @ embed(["b"])[0])]
    np.testing.assert_allclose(one.cosines(np.array([1, 1, 2]), other, np.array([0, 1, 1])), expected, atol=1e-6)
    assert one.cosines(np.arange(0), other, np.arange(0)).shape == (0,)
