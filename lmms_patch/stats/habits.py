"""What a doc's wrong answers say of its luck: from docs whose gold was never said to the share of docs that know nothing. NumPy and SciPy.

A model that knows nothing of a doc answers its views by some *habit*: it guesses, repeats itself, prefers an option,
abstains. Often it hits the gold by luck, so the docs whose gold it never says are too few. Two things are missing of
them:

1. Docs that say some options, the gold among them. A doc that says the options S is as likely to have any gold, so it
   misses with probability 1 − G(S), G the spread of golds over options. Each doc that misses counts 1 / (1 − G(S))
   (Horvitz & Thompson 1952). That needs no model of the habit.
2. Docs that say every option: they always hit. How many there are must be extrapolated (``said_all``), if there are as
   many views as options.

Answers without options, which may earn partial marks, are scored under the golds of docs that are asked alike instead
(``of_exchanged``).

The assumption of all is that a habit treats the gold like any other option; text priors break it (``stats.luck``).

With options p ~ Dirichlet(α, ..., α) over M options, and m answers that name an option, the probability that j given
options are never said is

    Γ(Mα) Γ((M − j)α + m) / (Γ(Mα + m) Γ((M − j)α))

The mixture of α over docs is the nonparametric maximum likelihood estimate on a grid (Kiefer & Wolfowitz 1956; Laird
1978), by EM, from the counts of the *other* options of docs whose gold is never said: the gold's count would let what a
doc knows pass for a habit.
"""

from __future__ import annotations

import math

import numpy as np

from lmms_patch.stats.resample import Array, Bools

GRID = np.array([0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.5, 2.5, 5.0, 20.0, 1000.0])
"""Concentrations α of the mixture, from "says one option again and again" to "says all options alike"."""
GOLDS = 20
"""Golds of how many docs asked alike an answer without options is scored under (``of_exchanged``).

A doc whose answers fit all of them stands for none, so few golds make too few docs: with 10 of 11 uneven ones the index is up to 0.04 too low."""
STEPS = 300
"""Steps of EM. With 60, a uniform start still shows in the weights (+0.03 in a share of 0.65)."""


def of_missed(said: Bools, gold: Bools) -> Array:
    """Return how many docs that know nothing each doc stands for that misses its gold, shape (docs,), at least 1.

    Args:
        said: shape (docs, candidates), which answers the doc gives; the gold may be among them.
        gold: shape (docs, candidates), which of them is the doc's gold; none where its gold is another. Its columns'
            means are G.
    """
    # no doc stands for more docs than there are; without a bound,
    # a doc that says all other golds would divide by 0
    left = 1 - (said & ~gold) @ gold.mean(axis=0)
    return np.asarray(1 / np.maximum(left, 1 / (len(gold) + 1)))


def of_exchanged(loss: Array, mean: Array) -> Array:
    """Return how many docs that know nothing each doc stands for by its loss, shape (docs,), at least 0.

    1 where nothing is lost anywhere.

    If the gold is one like the others, a doc's loss is the mean loss over all golds in expectation, so its loss counts
    1 / mean.

    Args:
        loss: what the doc's answer loses, as a share of full marks; shape (docs,).
        mean: the mean of that loss over the doc's own gold and some golds of docs that are asked alike.
    """
    return np.asarray(1 / np.where((loss > 0) & (mean > 0), mean, 1))


def said_all(others: Array, counts: Array, options: int) -> Array:
    """Return for how many docs that say every option a doc of each kind stands, under each draw; shape (B, kinds).

    Args:
        others: shape (kinds, M − 1), how often the views of a doc name each option but its gold. The gold of all these
        docs is never said.
        counts: shape (B, kinds), how many docs of each kind there are in each draw.
        options: M, at least 3: with 2, the count of the one other option says nothing of α.
    """
    likelihood = _sequence(others)
    # Only their ratios count. Of many views and options the
    # likelihoods themselves come near the smallest float.
    likelihood /= likelihood.max(axis=0)
    mixture, answers = _mixture(likelihood, counts), others.sum(axis=1)
    return np.asarray(
        (mixture @ (likelihood * every(answers, options) / never(answers, options, 1))) / (mixture @ likelihood)
    )


def never(answers: Array, options: int, given: int) -> Array:
    """Return the probability that some given options are never said for each concentration of ``GRID``, shape (13, kinds).

    Args:
        answers: m, how many views name an option, shape (kinds,).
        options: M.
        given: how many options these are, less than M.

    >>> never(np.array([0.0, 1.0]), 4, 1)[-1].round(2).tolist()
    [1.0, 0.75]
    """
    from scipy.special import gammaln

    a, m, left = GRID[:, None], np.asarray(answers, float), options - given
    return np.asarray(
        # by logarithms, since the gamma function itself overflows from 172 on
        np.exp(gammaln(options * a) - gammaln(options * a + m) + gammaln(left * a + m) - gammaln(left * a))
    )


def every(answers: Array, options: int) -> Array:
    """Return the probability that each option is said, by inclusion and exclusion; as ``never``.

    >>> every(np.array([1.0, 2.0]), 2)[-1].round(2).tolist()
    [0.0, 0.5]
    """
    parts = [(-1) ** given * math.comb(options, given) * never(answers, options, given) for given in range(1, options)]
    # an alternating sum loses digits, so its result may lie a little outside 0..1
    return np.where(np.asarray(answers) >= options, np.clip(1 + np.sum(parts, axis=0), 0, 1), 0)


def _sequence(counts: Array) -> Array:
    """Return the probability of some answers in their order for each concentration, shape (13, kinds).

    Args:
        counts: shape (kinds, options), how often each option is named.
    """
    from scipy.special import gammaln

    options, a = counts.shape[1], GRID[:, None, None]
    named = (gammaln(a + counts) - gammaln(a)).sum(axis=2)
    return np.asarray(np.exp(gammaln(options * a[..., 0]) - gammaln(options * a[..., 0] + counts.sum(axis=1)) + named))


def _mixture(likelihood: Array, counts: Array) -> Array:
    """Return the shares of the mixture's parts that fit best, by EM from equal shares; shape (B, parts).

    Args:
        likelihood: shape (parts, kinds).
        counts: shape (B, kinds).
    """
    shares = np.full((len(counts), len(likelihood)), 1 / len(likelihood))
    # a draw may leave all docs of a sort out: then 0 / 0 must be 0
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    for _ in range(STEPS if counts.any() else 0):
        shares *= (counts / np.maximum(shares @ likelihood, 1e-300)) @ likelihood.T / total
    return shares
