"""What a diagnostic scores where the golds say nothing that their categories do not: the null of the verdict where categories are many. Pure.

The frequency baseline counts golds within a category. In a category of few docs that count says more than anyone can know before the test, or less:
of 30 docs with random golds among four options the most frequent one stands on 35 %, and where each category has every gold once, the training
folds never show the right one. Both hold for the trees too, which see the category. So with many categories a gain over the baseline is compared with
the gain on shuffled golds: shuffled within the category they keep what the category gives away, and only that. The baseline itself is compared with
golds that are shuffled over all docs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmms_patch.runs.numbers import Null
from lmms_patch.tst.diagnosis import Diagnosis, Runner, deal, diagnose, frequency_baseline, model_seed
from lmms_patch.tst.folds import Grouping
from lmms_patch.tst.items import Diagnostic, Item, Places
from lmms_patch.tst.rewards import Rewards
from lmms_patch.tst.shuffle import permute_golds

SHUFFLES = 20
MANY, SMALL = 10, 100
"""There are many categories from this number on, where they have fewer docs than this on average."""


def has_many_categories(items: Sequence[Item]) -> bool:
    """Return whether the items have many categories of few docs each."""
    categories = len({item.category for item in items})
    return categories >= MANY and len(items) < SMALL * categories


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
    """Cross-validate on shuffled golds: one fold seed for each shuffle.

    Args:
        diagnostic: the text-only model class.
        items: all items.
        rewards: their native scores.
        grouping: of the cross-validation.
        found: the cross-validation with the golds as they are; its first fold seed counts.
        k: number of folds.
        fold_seed: the first fold seed.
        seed: of the models and the shuffles.
        shuffles: number of shuffles; p is at least 1 / (shuffles + 1).
        runner: runs the folds.
    """
    everyone: Places = np.arange(len(items))
    shuffled, majority = [], []
    for number in range(shuffles):
        within = permute_golds(items, model_seed(seed, number))
        scores = rewards.regold(within)
        prepared = diagnostic.prepare(within, scores)
        shuffled.append(diagnose(prepared, within, scores, everyone, grouping, k=k, seeds=(fold_seed,), seed=seed, runner=runner).accuracy)
        over_all = permute_golds(items, model_seed(seed, number), within_category=False)
        majority.append(_majority(over_all, rewards.regold(over_all), everyone, grouping, k, fold_seed))
    own = float(np.nanmean(found.scores[0]))
    p = (1 + sum(other >= own - 1e-12 for other in shuffled)) / (1 + shuffles)
    return Null(own, tuple(shuffled), p, float(np.nanmean(found.baseline[0])), tuple(majority))


def _majority(items: Sequence[Item], rewards: Rewards, places: Places, grouping: Grouping, k: int, fold_seed: int) -> float:
    """Return the score of the frequency baseline."""
    answers, _ = frequency_baseline(items, rewards, places, deal(items, places, grouping, k, fold_seed), k)
    scores = [rewards.exact(i, a) for i, a in enumerate(answers) if a is not None and items[i].golds]
    return float(np.nanmean(scores)) if scores else float("nan")
