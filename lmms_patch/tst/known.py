"""Which docs models know without the image, from blind answers of several models. NumPy only.

A doc is *known* if models can tell its answer without looking. "Right once in m models" would also remove what guesses
got right, so a doc goes where it is more likely known than not:

- A model that does not know a doc is right at its *guess rate*: how often it gives an answer that is right for this doc
  to the other docs of its category and number of options. So a model that always says "A" gains nothing from golds at
  A, and answers on wrong images are held to the same.
- Each model knows a share of the known docs: a binomial share under a beta prior. These shares, and the share of known
  docs among all, are those that make the answers most likely. (One beta distribution for all models found 64 to 307
  docs in five worlds of one kind: models differ too much.)
- Only models that are right more often than their guess rates count.

Assumed: given a doc, models err independently. Where a model is wrong, a second one must then be right at its guess
rate at least, since known docs only make it right more often. ``_dependence`` measures what is missing of that, and
evidence of models that err together (copies of one model, say) counts less.

Idea: B-Clean (https://arxiv.org/abs/2603.21687) removes each question that any model answers without its image.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmms_patch.runs.numbers import ALPHA
from lmms_patch.tst.items import Places
from lmms_patch.tst.results import sign_flip_p

Array = NDArray[np.float64]

PRIOR = (5.0, 0.1)
"""As if each model had known five more docs of five that are known. With a flat prior too many docs were known where docs are few: of 120 docs 27
innocent ones went, and 16 were expected; with this prior 15 and 14 (means of 30 worlds)."""
TWO = 1.5
"""Fewer models than this are one: many known docs of which it knows few, and few of which it knows all, look alike. The fewest are assumed."""
ROUNDS = 200
"""Of expectation and maximisation; the shares stand still long before."""


@dataclass(frozen=True)
class Known:
    """What the blind answers of M models say of n docs.

    Attributes:
        posterior: shape (n,), the probability that the doc is known without the image; 0 where no model counts.
        p: for each model the one-sided p-value of right answers above its guess rates.
        counts: whether each model counts: p is below 0.05 / M.
        share: the share of known docs among all.
        as_many_as: how many independent models the counted ones are worth.
    """

    posterior: Array
    p: tuple[float, ...]
    counts: tuple[bool, ...]
    share: float
    as_many_as: float


def guess_rates(
    answers: Sequence[Hashable],
    right: Sequence[Collection[Hashable]],
    alike: Sequence[Hashable],
    options: Sequence[int],
) -> Array:
    """Return the probability of a right answer by a model without knowledge of the doc.

    Args:
        answers: the model's answer to each of n docs; None: none.
        right: the answers that are right for each doc.
        alike: of each doc, what the docs share by which its guesses are judged: category, format and number of options.
        options: how many answers a doc has to choose from.

    Returns:
        Shape (n,): of the answers to the other docs alike the share that would be right here, drawn towards 1 / options
            a little.
    """
    members: dict[Hashable, list[int]] = defaultdict(list)
    for at, kind in enumerate(alike):
        if answers[at] is not None:
            members[kind].append(at)
    said: dict[Hashable, dict[Hashable, int]] = {kind: defaultdict(int) for kind in members}
    for kind, own in members.items():
        for at in own:
            said[kind][answers[at]] += 1
    out = np.empty(len(answers))
    for at, kind in enumerate(alike):
        here = said.get(kind, {})
        # Without the doc's own answer: it must not vouch for itself.
        hits = sum(here.get(answer, 0) for answer in set(right[at])) - (
            answers[at] is not None and answers[at] in right[at]
        )
        others = len(members.get(kind, ())) - (answers[at] is not None)
        # One hit is added, so that no rate is 0.
        out[at] = (hits + 1) / (others + options[at])
    return out


def known(right: Array, guess: Array, clusters: Places | None = None) -> Known:
    """Return the probability of each doc of being known without the image.

    Args:
        right: shape (M, n), whether each model is right: 1, 0, or nan where it was not asked or not scored.
        guess: shape (M, n), their guess rates.
        clusters: labels of the docs, shape (n,); None: each doc alone.
    """
    p = tuple(_p(row - rate, clusters) for row, rate in zip(right, guess, strict=True))
    # Bonferroni over the models.
    counts = np.array(p) < ALPHA / len(p)
    nothing = np.zeros(right.shape[1])
    if not counts.any():
        return Known(nothing, p, tuple(counts.tolist()), 0.0, 0.0)
    right, guess = right[counts], guess[counts]
    # Models that err together count as fewer: ``as_one`` of them say as much as one.
    as_one = 1 + (len(right) - 1) * _dependence(right, guess)
    posterior, share = _fitted(right, guess, as_one)
    return Known(posterior, p, tuple(counts.tolist()), share, len(right) / as_one)


def _p(differences: Array, clusters: Places | None) -> float:
    """Return the one-sided p-value of a mean above 0, with nan left out."""
    used = np.isfinite(differences)
    return sign_flip_p(differences[used], None if clusters is None else clusters[used]) if used.any() else 1.0


def _dependence(right: Array, guess: Array) -> float:
    """Return how far models err together: 0 given a doc not at all, 1 as if they were one.

    Looked at are docs that a model gets wrong: there a second model that errs independently is right at its guess rate
    at least.

    Args:
        right: shape (M, n).
        guess: shape (M, n).
    """
    wrong, beyond = (right == 0).astype(float), np.nan_to_num(guess - right)
    rate = np.where(np.isfinite(right), guess, 0.0)
    missing = wrong.sum(axis=0) * beyond.sum(axis=0) - (wrong * beyond).sum(axis=0)
    possible = wrong.sum(axis=0) * rate.sum(axis=0) - (wrong * rate).sum(axis=0)
    return float(np.clip(missing.sum() / max(possible.sum(), 1e-12), 0, 1))


def _fitted(right: Array, guess: Array, as_one: float) -> tuple[Array, float]:
    """Return posterior and share of known docs, by expectation and maximisation.

    Args:
        right: shape (M, n), of the models that count.
        guess: shape (M, n).
        as_one: how many of them count as one: evidence of so many is divided by it.
    """
    asked, is_right = np.isfinite(right), right == 1
    luck = np.where(is_right, guess, 1 - guess)
    # not 1, where one wrong answer would give the logarithm of 0
    share, knows = 0.1, np.full((len(right), 1), 1 - 1e-6)
    for _ in range(ROUNDS):
        able = guess + (1 - guess) * knows
        evidence = np.where(asked, np.log(np.where(is_right, able, 1 - able) / luck), 0.0).sum(axis=0) / as_one
        posterior = share / (share + (1 - share) * np.exp(-evidence))
        # a share of 0 or 1 could never change again
        share = float(np.clip(posterior.mean(), 1e-6, 1 - 1e-6))
        if len(right) / as_one >= TWO:
            knew = posterior * np.where(is_right, knows / able, 0.0)
            knows = (knew.sum(axis=1, keepdims=True) + PRIOR[0]) / (
                (posterior * asked).sum(axis=1, keepdims=True) + sum(PRIOR)
            )
    return posterior, share
