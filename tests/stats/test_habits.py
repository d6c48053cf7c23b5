"""Weights by habit: against Monte Carlo by their definition, and shares that are known."""

import numpy as np
import pytest

from lmms_patch.stats import habits

STREAM = np.random.default_rng(5)


def answers(concentration, options, tries, docs):
    """Options that docs name, each by its own Dirichlet preferences, shape (docs, tries)."""
    shares = STREAM.standard_gamma(concentration, (docs, options)) + 1e-300
    ends = (shares / shares.sum(axis=1, keepdims=True)).cumsum(axis=1)
    return (STREAM.random((docs, tries))[:, :, None] > ends[:, None, :]).sum(axis=2).clip(max=options - 1)


@pytest.mark.parametrize("place", [3, 5, 7, 12])
@pytest.mark.parametrize(("options", "tries"), [(2, 4), (3, 4), (4, 9), (6, 6)])
def test_probabilities_by_their_definition(place, options, tries):
    docs = 60_000
    said = answers(habits.GRID[place], options, tries, docs)
    named = np.stack([(said == option).any(axis=1) for option in range(options)])
    error = 4 * 0.5 / np.sqrt(docs)
    for given in range(1, options):
        assert (~named[:given]).all(axis=0).mean() == pytest.approx(
            habits.never(np.array([tries]), options, given)[place, 0], abs=error
        )
    assert named.all(axis=0).mean() == pytest.approx(habits.every(np.array([tries]), options)[place, 0], abs=error)


@pytest.mark.parametrize("options", [3, 4, 5])
@pytest.mark.parametrize("mixture", [(0.01,), (0.5,), (1000.0,), (0.01, 1000.0)])
def test_docs_that_say_all_are_extrapolated(options, mixture):
    """Gold is option 0.

    The docs that say every option are 0 of those that never say the gold; how many there are is known here.
    """
    tries, docs = 6, 60_000
    said = np.concatenate([answers(one, options, tries, docs) for one in mixture])
    counts = np.stack([(said == option).sum(axis=1) for option in range(options)], 1)
    truth = (counts > 0).all(axis=1).sum()
    others = -np.sort(-counts[counts[:, 0] == 0][:, 1:], axis=1)
    kinds, often = np.unique(others, axis=0, return_counts=True)
    found = (habits.said_all(kinds.astype(float), often[None].astype(float), options) * often).sum()
    # two other options tell little of a habit: docs/statistics.md names what that costs
    assert found == pytest.approx(truth, abs={3: 0.08, 4: 0.03, 5: 0.02}[options] * len(said))


def test_with_fewer_answers_than_options_none_says_all():
    kinds = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    assert habits.said_all(kinds, np.array([[10.0, 5.0]]), 4).tolist() == [[0.0, 0.0]]
