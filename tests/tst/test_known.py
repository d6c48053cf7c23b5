"""Docs that models know without the image, on answers whose truth is planted: guessers, priors (models that know some docs) and lookers."""

import numpy as np
import pytest
from scipy.stats import binomtest

from lmms_patch.tst.known import guess_rates, known
from tests.sizes import size
from tests.tst.worlds import blind_answers

OPTIONS = 4


def told(gold, answers, options=OPTIONS):
    right = np.array([(row == gold).astype(float) for row in answers])
    guess = np.array(
        [
            guess_rates(row.tolist(), [{g} for g in gold.tolist()], [0] * len(gold), [options] * len(gold))
            for row in answers
        ]
    )
    return known(right, guess), right, guess


def test_a_guess_rate_is_the_share_of_the_others_that_would_be_right():
    """Of the other four docs of its kind three were answered A, so a gold A is guessed at (3 + 1) / (4 + 2).

    The doc of its own kind has no others.
    """
    answers, golds = ["A", "A", "B", "A", "A", "A", None], ["A", "B", "B", "B", "A", "A", "A"]
    found = guess_rates(answers, [{gold} for gold in golds], [0, 0, 0, 0, 0, 1, 0], [2] * 7)
    assert found == pytest.approx([4 / 6, 2 / 6, 1 / 6, 2 / 6, 4 / 6, 1 / 2, 5 / 7])


def test_a_model_that_always_says_the_same_knows_nothing():
    gold, _, _ = blind_answers(400, knows=(0,))
    found, _, guess = told(gold, np.zeros((2, 400), int))
    assert not any(found.counts)
    assert (found.posterior == 0).all()
    assert guess[0, gold == 0].min() > 0.99


@pytest.mark.parametrize("seed", range(size(3, 20)))
def test_by_chance_alone_nothing_is_known(seed):
    """Five guessers, one of them biased, and five copies of a guesser: by "any model is right" 3 of 4 docs, or 1 of 4, would go."""
    gold, _, answers = blind_answers(1000, knows=(0, 0, 0, 0, 0), seed=1000 + seed)
    assert (answers == gold).any(axis=0).mean() > 0.7
    for own in (answers, np.tile(answers[:1], (5, 1))):
        assert (told(gold, own)[0].posterior == 0).all()


def test_known_docs_are_found_and_the_innocent_ones_are_counted():
    """Two guessers, and three models that know 90, 60 and 40 % of the 200 known docs.

    A test of level .01 may count a guesser in its share of the seeds.
    """
    gone, innocent, expected, kept, shares = [], [], [], [], []
    guessers, weak = [], []
    for seed in range(size(4, 20)):
        gold, truth, answers = blind_answers(1000, knows=(0, 0, 0.9, 0.6, 0.4), seed=seed)
        found, _, _ = told(gold, answers)
        goes = found.posterior > 0.5
        assert all(found.counts[2:4])
        weak.append(found.counts[4])
        guessers += found.counts[:2]
        gone.append(goes.sum())
        innocent.append((goes & ~truth).sum())
        expected.append((1 - found.posterior[goes]).sum())
        kept.append(truth[goes].sum() / truth.sum())
        shares.append(found.share)
    assert binomtest(sum(guessers), len(guessers), 0.01, "greater").pvalue > 0.01
    assert np.mean(weak) >= 0.8, "40 % of 200 docs are not always more than luck among 1,000"
    assert np.mean(shares) == pytest.approx(0.2, abs=0.03)
    assert np.mean(kept) > 0.55
    assert np.mean(innocent) < 0.35 * np.mean(gone), "any right answer: 604 innocent of 810"
    assert np.mean(expected) == pytest.approx(np.mean(innocent), rel=0.25)


def test_five_copies_of_a_model_count_as_one():
    """Each lucky guess is there five times: taken for five models, all 400 right docs would be sure to be known."""
    gold, truth, answers = blind_answers(1000, knows=(0.9,))
    found, _, _ = told(gold, np.tile(answers, (5, 1)))
    assert found.as_many_as == pytest.approx(1, abs=0.2)
    goes = found.posterior > 0.5
    assert (goes & ~truth).sum() < 1.2 * (1 - found.posterior[goes]).sum() + 1
    alone, _, _ = told(gold, answers)
    assert found.posterior == pytest.approx(alone.posterior, abs=0.05)


@pytest.mark.parametrize("options", [2, 4])
def test_a_letter_bias_that_models_share_is_no_knowledge(options):
    """All say A in 7 of 10 guesses.

    Their own answers tell how often A is right by luck; "1 of 4" would not, and models would seem to err together.
    """
    bias = np.array([0.7, *[0.3 / (options - 1)] * (options - 1)])
    gold, truth, answers = blind_answers(2000, knows=(0.8, 0.8, 0.8), bias=bias, options=options, seed=1)
    found, right, _ = told(gold, answers, options)
    goes = found.posterior > 0.5
    assert found.as_many_as > 2.5
    assert truth[goes].mean() > 0.75
    innocent, expected = (goes & ~truth).sum(), (1 - found.posterior[goes]).sum()
    assert expected / 2 < innocent < 1.2 * expected, (
        "rather too many are expected: what a model knows is among the answers that its guess rate counts"
    )
    assert known(right, np.full(right.shape, 1 / options)).as_many_as < 2.5


def test_docs_that_a_model_was_not_asked_say_nothing():
    gold, _, answers = blind_answers(600, knows=(0.9, 0.9, 0.9))
    _, right, guess = told(gold, answers)
    right[:, :100] = np.nan
    found = known(right, guess)
    assert np.ptp(found.posterior[:100]) < 1e-9
    assert found.posterior[0] == pytest.approx(found.share, abs=0.01)
    right[2, 100:] = np.nan
    assert known(right, guess).counts[2] is False
