"""What a diagnostic scores on golds that say nothing their categories do not: the null of the verdict, where simpler comparisons do not decide. Pure.

Folds are stratified by gold, so the most frequent gold of the training folds is that of the held-out fold too: the
frequency baseline knows the test set. Of 80 docs with random golds among four options the most frequent gold stands on
31 %. And where each category of few docs has every gold once, the training folds never show the right one, and the
baseline knows too little. Both hold for the trees too, which see the category. Golds that are shuffled within the
category keep what the category gives away, and only that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import t as student

from lmms_patch.runs.numbers import ALPHA, Null
from lmms_patch.tst.diagnosis import Diagnosis, Runner, diagnose, model_seed
from lmms_patch.tst.folds import Grouping
from lmms_patch.tst.items import Diagnostic, Item, Places
from lmms_patch.tst.results import sign_flip_p
from lmms_patch.tst.rewards import Rewards
from lmms_patch.tst.shuffle import permute_golds

SHUFFLES, FEWEST = 20, 5
"""The most and the fewest sets of shuffled golds on which a gain is held to be beyond them."""
CLEAR = 0.001
"""The p-value below which a gain is clear before the last shuffle."""
MANY, SMALL = 10, 100
"""There are many categories from this number on, where they have fewer docs than this on average."""


def has_many_categories(items: Sequence[Item]) -> bool:
    """Return whether the items have many categories of few docs each."""
    categories = len({item.category for item in items})
    return categories >= MANY and len(items) < SMALL * categories


def p_beyond_kinds(found: Diagnosis, clusters: Places | None, many: bool, null: Callable[[], Null]) -> float | None:
    """Return the p-value of text-only answers that know more than a question's category.

    None where nothing is scored.

    They must be above a guess. They must also be above the frequency baseline, which knows the test set and so makes
    the claim harder; where they are not, or where categories are many, shuffled golds decide in its place.

    Args:
        found: the cross-validation.
        clusters: labels of its docs, shape (n,); None: each doc alone.
        many: whether categories are many (``has_many_categories``).
        null: cross-validates on shuffled golds; called only where they decide.
    """
    scores, baseline, known = found.means
    if not known.any():
        return None
    own = None if clusters is None else clusters[known]
    p_guess, p_frequent = (sign_flip_p((scores - other)[known], own) for other in (found.floor, baseline))
    if p_guess >= ALPHA or (p_frequent < ALPHA / 2 and not many):
        return max(p_guess, p_frequent) if p_guess < ALPHA else p_guess
    return max(p_guess, null().p)


def shuffled_null(
    diagnostic: Diagnostic,
    items: Sequence[Item],
    rewards: Rewards,
    grouping: Grouping,
    found: Diagnosis,
    *,
    k: int,
    fold_seed: int,
    seed: int = 0,
    shuffles: int = SHUFFLES,
    runner: Runner | None = None,
) -> Null:
    """Cross-validate on shuffled golds, one fold seed for each shuffle, until it is decided whether the golds as they are give more.

    The first set of shuffled golds with at least the same accuracy decides against it. From ``FEWEST`` on, p below
    ``CLEAR`` decides for it.

    Args:
        diagnostic: the text-only model class.
        items: all items.
        rewards: their native scores.
        grouping: of the cross-validation.
        found: the cross-validation with the golds as they are. The mean over its fold seeds varies less than the accuracy of
        one, so that the test errs on the safe side.
        k: number of folds.
        fold_seed: the first fold seed.
        seed: of the models and the shuffles.
        shuffles: the most shuffles.
        runner: runs the folds.
    """
    everyone = np.arange(len(items))
    own, shuffled, p = found.accuracy, [], 1.0
    for number in range(shuffles):
        within = permute_golds(items, model_seed(seed, number))
        scores = rewards.regold(within)
        prepared = diagnostic.prepare(within, scores)
        shuffled.append(
            diagnose(
                prepared, within, scores, everyone, grouping, k=k, seeds=(fold_seed,), seed=seed, runner=runner
            ).accuracy
        )
        p = p_above(own, shuffled)
        # equal accuracies may differ by float error
        if own <= shuffled[-1] + 1e-12 or (len(shuffled) >= FEWEST and p < CLEAR):
            break
    return Null(own, tuple(shuffled), p)


def p_above(own: float, shuffled: Sequence[float]) -> float:
    """Return the two-sided p-value of an accuracy above shuffled accuracies, by Student's t.

    Where one of these is as high, at least its rank says.
    """
    # as many hits may come out a trace apart
    if len(shuffled) < 2 or max(shuffled) >= own - 1e-12:
        return (1 + sum(other >= own - 1e-12 for other in shuffled)) / (1 + len(shuffled))
    # the spread of one more accuracy about a mean that so many give; these may all be equal
    spread = max(float(np.std(shuffled, ddof=1)), 1e-9) * np.sqrt(1 + 1 / len(shuffled))
    return float(2 * student.sf((own - np.mean(shuffled)) / spread, len(shuffled) - 1))
