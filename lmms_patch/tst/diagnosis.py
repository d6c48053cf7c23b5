"""Cross-validates a text-only diagnostic on a test set, over several fold seeds. Pure.

Source: TsT paper, §3.1. s(x): paper, §3.1 and §B.1; DESIGN §7.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmms_patch.answers import as_number
from lmms_patch.tst.folds import Grouping, check_folds, folds
from lmms_patch.tst.items import Item, Places, Prediction, Prepared
from lmms_patch.tst.rewards import Rewards, values_of

Array = NDArray[np.float64]

FOLD_SEEDS = (0, 1, 2)
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Diagnosis:
    """One or more cross-validations (R fold seeds) of the same n items.

    Attributes:
        s: shape (n,), the bias score: held-out credit of the gold, averaged over the seeds (probability of the gold
            option, or the expected native score of a draw from the predictive distribution); nan: unscored.
        chance: shape (n,), what an uninformed guess earns on this item: 1 / options, or for open formats the expected
            native score of a draw from the golds of the training folds.
        scores: shape (R, n), native score of the held-out answer; nan: unscored.
        baseline: shape (R, n), native score of the training folds' majority answer (frequency baseline).
        answers: the held-out answers, one tuple per seed.
        folds: shape (R, n), the fold of each item.
    """

    s: Array
    chance: Array
    scores: Array
    baseline: Array
    answers: tuple[tuple[str, ...], ...] = ()
    folds: Places | None = None

    @property
    def accuracy(self) -> float:
        """TsT accuracy: mean over items and seeds (fraction); nan where nothing is scored."""
        return float(np.nanmean(self.scores)) if np.isfinite(self.scores).any() else float("nan")


Diagnose = Callable[[Places, Sequence[int]], Diagnosis]
"""(places of the items that are kept, fold seeds) -> arrays in the order of the places."""


@dataclass(frozen=True)
class CrossValidation:
    """One cross-validation, as ``predictions`` made it.

    Attributes:
        folds: shape (n,).
        predictions: of each item, from the model that did not train on it.
    """

    folds: Places
    predictions: tuple[Prediction, ...]


def cross_validate(
    prepared: Prepared, items: Sequence[Item], places: Places, grouping: Grouping, k: int, fold_seed: int, *, seed: int = 0, workers: int = 1
) -> CrossValidation:
    """Predict every item by a model that was trained on the other folds.

    Args:
        prepared: the diagnostic.
        items: all items it has read.
        places: those that take part, shape (n,).
        grouping: of all items; no group is in two folds.
        k: number of folds.
        fold_seed: of the folds.
        seed: of the models, together with the fold seed.
        workers: folds that run at the same time, in threads.
    """
    _, groups = np.unique(grouping.groups[places], return_inverse=True)
    fold = folds([items[i] for i in places], k, groups, fold_seed)
    check_folds(fold, groups)

    def held_out(number: int) -> list[Prediction]:
        return prepared.predict(
            places[fold != number], places[fold == number], seed=(seed * 1000 + fold_seed) * 1000 + number, groups=grouping.groups
        )

    if workers > 1:
        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(held_out, range(k)))
    else:
        found = [held_out(number) for number in range(k)]
    out: list[Prediction | None] = [None] * len(places)
    for number, predicted in enumerate(found):
        for at, prediction in zip(np.flatnonzero(fold == number), predicted, strict=True):
            out[at] = prediction
    return CrossValidation(fold, tuple(p for p in out if p is not None))


def diagnose(
    prepared: Prepared,
    items: Sequence[Item],
    rewards: Rewards,
    places: Places,
    grouping: Grouping,
    *,
    k: int = 5,
    seeds: Sequence[int] = FOLD_SEEDS,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> Diagnosis:
    """Cross-validate over fold seeds, and score what comes out.

    Args:
        prepared, items, places, grouping, k, seed, workers: see ``cross_validate``.
        rewards: the native scores.
        seeds: the fold seeds.
        progress: told after each cross-validation.
    """
    s, chance, scores, baseline = (np.full((len(seeds), len(places)), np.nan) for _ in range(4))
    answers, dealt = [], []
    for at, fold_seed in enumerate(seeds):
        run = cross_validate(prepared, items, places, grouping, k, fold_seed, seed=seed, workers=workers)
        typical, guessed = frequency_baseline(items, rewards, places, run.folds, k)
        s[at], scores[at] = scored(items, rewards, places, run.predictions)
        baseline[at] = [
            rewards.of(int(place), a) if a is not None and items[place].golds else np.nan for place, a in zip(places, typical, strict=True)
        ]
        chance[at] = guessed
        answers.append(tuple(p.answer for p in run.predictions))
        dealt.append(run.folds)
        if progress is not None:
            progress(f"fold seed {fold_seed}: {np.nanmean(scores[at]) if np.isfinite(scores[at]).any() else float('nan'):.3f}")
    return Diagnosis(_mean(s), _mean(chance), scores, baseline, tuple(answers), np.array(dealt, np.intp))


def scored(items: Sequence[Item], rewards: Rewards, places: Places, predictions: Sequence[Prediction]) -> tuple[Array, Array]:
    """Bias score and native score of each prediction, shape (n,) each; nan for items without a gold."""
    s = [credit(items, rewards, int(place), p) for place, p in zip(places, predictions, strict=True)]
    scores = [rewards.of(int(place), p.answer) if items[place].golds else np.nan for place, p in zip(places, predictions, strict=True)]
    return np.array(s, float), np.array(scores, float)


def _mean(values: Array) -> Array:
    """Mean over the seeds; nan where an item is unscored in one of them."""
    return np.asarray(values.mean(axis=0))


def credit(items: Sequence[Item], rewards: Rewards, place: int, prediction: Prediction) -> float:
    """s(x) of one prediction: the probability of the gold option, or the expected native score of a draw; nan without a gold."""
    item = items[place]
    if item.is_choice:
        return float(prediction.probabilities[item.right]) if item.right is not None else np.nan
    if not item.golds:
        return np.nan
    return float(np.nan_to_num(rewards.vector(place, prediction.answers)) @ prediction.probabilities)


def frequency_baseline(items: Sequence[Item], rewards: Rewards, places: Places, fold: Places, k: int) -> tuple[list[str | None], Array]:
    """The answer that knows nothing of the question but its category, and what a guess earns.

    For choices the most frequent gold (a letter) of the training items of the category with as many options; for numbers the
    training gold of the category that the native score rewards most; else the most frequent training gold of the category.

    Returns:
        The answer for each of ``places`` (None where no training item has a gold), and shape (n,): 1 / options, or the
        expected native score of a draw from the training golds of the category.
    """
    answers: list[str | None] = [None] * len(places)
    guess = np.full(len(places), np.nan)
    kinds: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for at, place in enumerate(places):
        item = items[place]
        kinds[item.category, item.format, item.answers if item.is_choice else ()].append(at)
    for members in kinds.values():
        own = np.array(members)
        for number in range(k):
            train = [int(places[at]) for at in own[fold[own] != number] if items[places[at]].golds]
            for at, answer, earned in _typical(items, rewards, train, [int(places[at]) for at in own[fold[own] == number]]):
                where = own[fold[own] == number][at]
                answers[where], guess[where] = answer, earned
    return answers, guess


def _typical(items: Sequence[Item], rewards: Rewards, train: Sequence[int], test: Sequence[int]) -> list[tuple[int, str | None, float]]:
    if not test:
        return []
    if items[test[0]].is_choice:
        counts = Counter(items[i].golds[0] for i in train)
        answer = counts.most_common(1)[0][0] if counts else None
        return [(at, answer if answer is not None else items[i].answers[0], items[i].chance) for at, i in enumerate(test)]
    if items[test[0]].format == "number":
        train = [i for i in train if as_number(items[i].golds[0]) is not None]
    if not train:
        return [(at, None, np.nan) for at in range(len(test))]
    if items[test[0]].format == "number":
        values = values_of(rewards, np.array(train))
        weights = np.bincount(values.place, minlength=len(values.texts)) / len(train)
        answer, texts = values.texts[int((values.reward @ weights).argmax())], values.texts
    else:
        common = Counter(items[i].golds[0] for i in train).most_common(20)
        texts, weights = tuple(text for text, _ in common), np.array([count for _, count in common]) / len(train)
        answer = texts[0]
    return [(at, answer, float(np.nan_to_num(rewards.vector(i, texts)) @ weights)) for at, i in enumerate(test)]
